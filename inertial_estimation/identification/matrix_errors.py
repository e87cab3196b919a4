# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Errors of FT matrices, in the deviations of unknowns beside unknown FT offsets.

A matrix that is off by a share E changes readings f by E f. The part of their mean counts to the
offset; the other part stays the same however long the log is, unlike noise. Where the load hardly
turns about the sensor, an offset moves by many times E f. With the columns M of E beside those Y
of the unknowns, an answer by the equations Y x = y and a prior moves by

    dx = G E,  G = (Y'Y + prior)^-1 Y'M

and residuals by (M - Y G) E. E is zero on the average, and its size is the most likely one by the
residuals. Only columns of cross-talk are compared: gains of -1 explain all readings
of a limb, and the noise of each reading, which is in M as well. E itself is not estimated: with
links and offsets unknown, matrices that lessen all readings fit best.

The recursion carries the products of [Y y M] with M as if E were further unknowns; a refit takes
them about the loads less the offsets that it finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.identification.equations.wrenches import SparseEquations
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.row_space import DEPENDENT, RowSpace
from inertial_estimation.identification.unknowns import FT_OFFSET, Unknowns
from inertial_estimation.model.ft_calibration import MATRIX_DEVIATION, WRENCH_SCALE

ROUNDS = 30
"""Of the search for the size of errors."""
TINY = np.finfo(float).tiny
CROSSED = ~np.eye(6, dtype=bool).ravel()
"""Elements of a matrix that are no gains."""
ROUND_OFF = 1e-9
"""Share of the largest product of columns below which others are zero."""
LEAST_SQUARE = 1e-2
"""
Share of the square of the largest loads from which others show errors of matrices. Smaller ones
show more the noise of readings, which is correlated with that of other components, and products
of two errors.
"""


def matrix_columns(
    rows: SparseEquations, unknowns: Unknowns, sensors: Sequence[str], loads: Array
) -> Array:
    """
    Return the columns of E of the sensors with unknown offsets, (36 k, n).

    loads: readings of all sensors from those where E = 0 counts, (n, n_sensors, 6) [N, Nm].
    """
    own = _sensors(unknowns)
    found = np.zeros((len(own), 6, 6, len(loads)))
    for part in rows.parts:
        # Torques without friction have no unknowns of their own.
        first = part.columns[0] - unknowns.n_inertial if len(part.columns) else -1
        if first >= 0 and (extra := unknowns.extras[first]).term is FT_OFFSET[0]:
            slopes = WRENCH_SCALE[:, None] * part.values
            load = loads[:, sensors.index(extra.of)] / WRENCH_SCALE
            found[own.index(extra.of)] = slopes[:, None] * load.T
    return found.reshape(-1, len(loads))


def _sensors(unknowns: Unknowns) -> list[str]:
    """Return the sensors with unknown offsets."""
    return [one.of for one in unknowns.extras if one.term is FT_OFFSET[0]]


class MatrixEquations(NamedTuple):
    """Equations of one submodel, in units of their noise."""

    unknowns: Unknowns
    products: Array
    """[Y y M]'M, shape (n + 1 + 36 k, 36 k)."""
    rows: Information
    with_prior: Information
    x: Array
    """The answer, shape (n,)."""


def matrix_covariances(submodels: Sequence[MatrixEquations]) -> list[Array]:
    """Return a root of the covariance by errors of matrices for each submodel, (n, 36 k)."""
    names = list(dict.fromkeys(name for one in submodels for name in one.unknowns.names))
    sensors = list(dict.fromkeys(name for one in submodels for name in _sensors(one.unknowns)))
    n, size = len(names), 36 * len(sensors)
    products, x, places = np.zeros((n + 1 + size, size)), np.zeros(n), []
    for one in submodels:
        columns = np.array([names.index(name) for name in one.unknowns.names])
        of_sensors = [36 * sensors.index(name) for name in _sensors(one.unknowns)]
        own = np.add.outer(of_sensors, np.arange(36)).ravel().astype(np.intp)
        products[np.ix_(np.concatenate([columns, [n], n + 1 + own]), own)] += one.products
        x[columns] = one.x
        places.append(columns)
    rows = [
        (one.rows.placed(columns, n), one.with_prior.placed(columns, n))
        for one, columns in zip(submodels, places, strict=True)
    ]
    R, with_prior = (
        np.vstack(parts) for parts in zip(*((a.R, b.R) for a, b in rows), strict=True)
    )
    left = np.concatenate([one.rho for one, _ in rows]) - R @ x
    YM, yM, MM = np.split(products, [n, n + 1])
    root = RowSpace.of(with_prior).inverse_root()
    G = root @ (root.T @ YM)
    moved = R @ G
    gram = MM - YM.T @ G - G.T @ YM + moved.T @ moved
    crossed = np.flatnonzero(np.tile(CROSSED, len(sensors)))
    values, vectors = np.linalg.eigh(gram[np.ix_(crossed, crossed)])
    seen = values > ROUND_OFF * values[-1]
    values = values[seen]
    squares = ((yM[0] - x @ YM - left @ moved)[crossed] @ vectors[:, seen]) ** 2
    variance = likeliest_variance(values, squares / values)
    return [np.sqrt(variance) * G[columns] for columns in places]


def likeliest_variance(sizes: Array, squares: Array) -> float:
    """Return the variance of E by squares whose means are sizes * variance + 1, (m,) each."""
    variance = MATRIX_DEVIATION**2
    for _ in range(ROUNDS):
        # By scoring.
        weights = (sizes / (1.0 + variance * sizes)) ** 2
        found = weights @ ((squares - 1.0) / sizes) / max(weights.sum(), TINY)
        variance = max(float(found), 0.0)
    return variance


def variance_by_sensor(gram: Array, products: Array) -> float:
    """Return the same of each sensor by itself: products of M and residuals, gram their noise."""
    crossed = np.flatnonzero(np.tile(CROSSED, len(gram) // 36)).reshape(-1, int(CROSSED.sum()))
    values, vectors = np.linalg.eigh(gram[crossed[:, :, None], crossed[:, None]])
    seen = values > LEAST_SQUARE * values.max(initial=0.0)
    squares = np.einsum('si,sij->sj', products[crossed], vectors)[seen] ** 2
    # They depend on the errors of all sensors.
    sizes = np.sum((gram[crossed].transpose(0, 2, 1) @ vectors) ** 2, axis=1)[seen]
    return likeliest_variance(sizes / values[seen], squares / values[seen])


def about_offsets(products: Array, R: Array, rho: Array, offsets: Indices, x: Array) -> Array:
    """Return products [Y y M]'M of equations R, rho about loads less offsets x, (6 k,)."""
    n, own = len(rho), R[:, offsets]
    by_sensor = x.reshape(-1, 1, 6) / WRENCH_SCALE
    loads = (WRENCH_SCALE[:, None] * by_sensor).reshape(-1, 6)

    def constant(columns: Array) -> Array:
        """Return columns of M with the loads x, from columns of offsets, (m, 6 k)."""
        found = columns[:, :, None] * loads
        return np.asarray(found.reshape(len(columns), 6 * columns.shape[1]))

    of_offsets = constant(products[offsets].T)
    found = products.copy()
    found[:n] -= constant(R.T @ own)
    found[n] -= constant((rho @ own)[None])[0]
    found[n + 1 :] += constant(constant(own.T @ own).T) - of_offsets - of_offsets.T
    return found


def products_of_wandered(
    products: Array, before: Information, columns: Indices, deviations: Array
) -> Array:
    """Return the products [Y y M]'M that are left in `row_space.wandered` information."""
    moved = columns[deviations > 0.0]
    if not len(moved) or not products.any():
        return products
    A, steps = before.R[:, moved], 1.0 / deviations[deviations > 0.0]
    root = RowSpace.of(np.vstack([A, np.diag(steps)]), DEPENDENT).inverse_root()
    former = root @ (root.T @ products[moved])
    across = np.vstack([before.R.T @ A, before.rho @ A, products[moved, :].T])
    found = products - across @ former
    found[moved] = steps[:, None] ** 2 * former
    return np.asarray(found)
