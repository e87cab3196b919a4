# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Covariance of refitted parameters and offsets, as a root of each submodel, and base parameters.

With A the equations of all submodels above those of the prior near the answer, an error e of the
right-hand sides moves the answer by ``A^+ e``. It has two independent parts, as in
`solvers.curvature`:

    equations  each errs by the usual residual of its submodel at the answer, s
    prior      the truth is as far from it as the equations allow: by the largest likely v of what
               a divergence of about one allows. Where it is worth w equations, these err together:
               w v in variance

so the covariance is ``A^+ diag(s^2, w v) A^+'``. What equations determine is as certain as their
number makes it; what only the prior determines is as uncertain as the URDF may well be.

The variance v of the prior's relative error follows from the equations (empirical Bayes). Without
offsets and friction these are ``b_i = a_i z_i + e_i`` in the axes of their singular values a_i and
in units of their noise, with z the whitened error of the prior, so that b_i is normal of variance
``1 + v a_i^2``. The refit takes the likeliest v, but at most that of the stated error: answers
that systematic errors drew far off would free themselves of the prior. A prior that equations
confirm thus keeps their noise out of the answer. The deviations take the largest likely v, as the
likeliest of few combinations is often near zero by chance; where fewer than five are shown, even
that one is too small in every fourth case. It is at most the stated one, unless the likeliest is
larger. Errors of FT matrices are part of ``e_i`` there: counted as errors of the prior, they
make v far too large. The noise is one as stated, not s. v is that of one submodel alone, where
neighbours may determine its offsets.

Errors of FT matrices are a third part, of all submodels together, see `matrix_errors`: of the size
that products of M and residuals show, whose noise is ``S = M'M - M'A (A'A)^-1 A'M``. In the first
seconds of a motion it is too large, as filters correlate the noise of loads and residuals.

Offsets are eliminated last: what the other submodels determine of them enters with its own errors.
Their weak prior counts as equations: what nothing else determines is as uncertain as that.
Friction has no rows in the roots. Faded equations count as fewer of the same noise.

Base parameters are those that the equations determine without the prior. The combinations depend
on the robot and its sensors; which of them are determined, and how well, depends on the motion.
One that is not has an infinite standard deviation [S 81-83].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.identification.evidence import EXCITED
from inertial_estimation.identification.matrix_errors import about_offsets, variance_by_sensor
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.priors import entropic_model
from inertial_estimation.identification.recursion.memory import SubmodelMemory
from inertial_estimation.identification.recursion.refit import JointRefit, SubmodelFit
from inertial_estimation.identification.row_space import (
    DETERMINED,
    RowSpace,
    across,
    column_basis,
    determined_by_others,
    eliminated,
)
from inertial_estimation.model.base_parameters import BaseParameters

VARIANCES = np.geomspace(1e-6, 1e2, 161)
"""Variances of the relative error of a prior that are compared: from the least that is stated."""
LIKELY = 1.0
"""Loss of twice the log-likelihood up to which a variance is likely: one standard deviation."""


class BaseValues(NamedTuple):
    """Base parameters of one submodel."""

    names: Sequence[str]
    """Combinations of unknowns, as `BaseParameters.combinations`."""
    values: Array
    """Shape (n_base,), in the unit of the unknown that stands first."""
    deviations: Array
    """Standard deviations by the equations alone, shape (n_base,)."""
    rank: int
    """Independent combinations that are determined."""


class Certainty(NamedTuple):
    """Uncertainty of the parameters and offsets of a submodel: roots of one covariance."""

    root: Array
    """Rows of the parameters, shape (10 n_links, r) [kg, kg m, kg m^2]."""
    offset_root: Array
    """Rows of its offsets, shape (n_own, r) [N, Nm]."""


class _Triangle(NamedTuple):
    """Reduced system ``R [parameters; offsets] = E e``, e of unit covariance."""

    own: Indices
    """Its offsets among those of all submodels, shape (k,)."""
    n: int
    """Number of parameters."""
    n_rows: int
    """Number of equations, whose errors come first; then those of the prior of the parameters."""
    R: Array
    """Upper triangle, shape (n + k, n + k)."""
    E: Array
    """Shape (n + k, n_errors)."""
    by_matrices: Array
    """Likewise for errors of FT matrices of its sensors, shape (n + k, 6 k)."""
    gram: Array
    """Products of their columns, less what all its unknowns explain."""
    left: Array
    """Products of these columns and residuals, shape (6 k,)."""

    @property
    def of_matrices(self) -> Indices:
        """Its errors of matrices among those of all, shape (6 k,)."""
        return np.asarray(np.add.outer(6 * self.own, np.arange(6)).ravel())


class PriorErrors(NamedTuple):
    """Errors of a prior as its equations show them, in the axes of their singular values."""

    strengths: Array
    """Singular values, shape (k,)."""
    turn: Array
    """Axes by whitened parameters, one in each row, shape (n, n)."""
    shown: Array
    """Error along each axis times its strength, with the noise of the equations, shape (k,)."""

    @property
    def losses(self) -> Array:
        """Minus twice the log-likelihood of each of `VARIANCES`."""
        variances = 1.0 + VARIANCES[:, None] * self.strengths**2
        return np.asarray(np.sum(np.log(variances) + self.shown**2 / variances, axis=1))

    def likeliest(self, stated: float) -> float:
        """Return the likeliest variance, at most the stated one."""
        return min(float(VARIANCES[np.argmin(self.losses)]), stated)


@one_thread()
def prior_errors(one: SubmodelMemory) -> PriorErrors:
    """Return what equations show of the errors of the prior."""
    left = eliminated(one.regularised, one.extras)
    U, strengths, turn = np.linalg.svd(one.whitened_columns(left.R))
    return PriorErrors(strengths, turn, (left.rho - left.R @ one.prior.reshape(-1)) @ U)


@one_thread()
def largest_variance(one: SubmodelMemory, errors: PriorErrors, matrix_variance: float) -> float:
    """Return the largest likely variance of the prior beside errors of FT matrices."""
    n, stated, known = one.block.unknowns.n_inertial, one.stated_variance, one.information
    assert known is not None
    strengths, turn, shown = errors
    if matrix_variance and len(one.offsets):
        offsets = one.prior_fit[one.offsets]
        YM = about_offsets(one.matrices, known.R, known.rho, one.offsets, offsets)
        Y, extra, YM = *np.split(one.regularised.R, [n], axis=1), one.projection @ YM[: known.n]
        root = RowSpace.of(extra).inverse_root()
        YM = YM[:n] - Y.T @ (extra @ (root @ (root.T @ YM[n:])))
        seen = strengths > EXCITED * strengths[0]
        moved = turn[seen] @ one.whitened_columns(YM.T).T / strengths[seen, None]
        noise = np.linalg.cholesky(np.eye(len(moved)) + matrix_variance * moved @ moved.T)
        both = np.linalg.solve(noise, np.column_stack([np.diag(strengths[seen]), shown[seen]]))
        U, strengths, turn = np.linalg.svd(both[:, :-1])
        shown = both[:, -1] @ U
    losses = PriorErrors(strengths, turn, shown).losses
    largest = float(VARIANCES[np.flatnonzero(losses <= losses.min() + LIKELY)[-1]])
    limit = max(float(VARIANCES[np.argmin(losses)]), stated)
    return max(min(largest, limit), errors.likeliest(stated))


@one_thread()
def certainties(
    found: JointRefit, errors_of: Sequence[PriorErrors] | None = None
) -> dict[str, Certainty]:
    """Return the uncertainty of parameters and offsets, by submodel; errors_of: their priors."""
    from scipy.linalg import solve_triangular

    triangles = [_triangle(fit) for fit in found.fits]
    inverses, by_matrices, deviation = _offset_inverse(triangles, len(found.offsets))
    errors_of = errors_of or [prior_errors(fit.memory) for fit in found.fits]
    for fit, one, shown in zip(found.fits, triangles, errors_of, strict=True):
        memory, after = fit.memory, one.n_rows + one.n
        memory.largest_variance = largest_variance(memory, shown, deviation**2)
        one.E[:, one.n_rows : after] *= np.sqrt(memory.largest_variance / memory.prior_variance)
    by_submodel = [part @ one.E[one.n :] for part, one in zip(inverses, triangles, strict=True)]
    certain = {}
    for fit, one, errors in zip(found.fits, triangles, by_submodel, strict=True):
        others = [each[one.own] for each in by_submodel if each is not errors]
        matrices = deviation * by_matrices[one.own]
        others.append(np.delete(matrices, one.of_matrices, axis=1))
        shared = _compressed(np.hstack(others))
        U, V = one.R[: one.n, : one.n], one.R[: one.n, one.n :]
        offsets = np.hstack([errors[one.own], matrices[:, one.of_matrices], shared])
        parts = one.E, deviation * one.by_matrices, np.zeros((one.n, shared.shape[1]))
        right = np.hstack([part[: one.n] for part in parts]) - V @ offsets
        root = _compressed(np.vstack([solve_triangular(U, right), offsets]))
        certain[fit.memory.name] = Certainty(*np.split(root, [one.n]))
    return certain


def _triangle(fit: SubmodelFit) -> _Triangle:
    """Reduce equations and prior of one submodel."""
    from scipy.linalg import solve_triangular

    one, information, v = fit.memory, fit.memory.corrected, fit.memory.prior_variance
    uncorrected = one.information
    assert uncorrected is not None
    products = about_offsets(
        one.matrices, uncorrected.R, uncorrected.rho, one.offsets, fit.x[one.offsets]
    )
    YM, yM, MM = np.split(products, [information.n, information.n + 1])
    left_over, YM = yM[0] - fit.x @ YM, one.projection @ YM
    n = one.block.unknowns.n_inertial
    prior = entropic_model(
        one.block.unknowns, one.prior, fit.parameters, one.scales_in_refit, 1.0 / v
    )
    rows = np.vstack([one.regularised.R, prior.R])
    basis = column_basis(rows)
    of_rows, _, others = np.split(basis, [information.n, information.n + n])
    # Of an equation; one if too few are left to estimate it.
    freedom = information.count - float(np.sum(of_rows**2))
    variance = information.squared_residual(fit.x) / freedom if freedom >= 1.0 else 1.0
    variances = [variance, 1.0, 1.0 / one.stated_variance]
    sizes = np.sqrt(np.repeat(variances, [len(of_rows), n, len(others)]))
    kept = np.concatenate([np.arange(n), one.offsets])
    rest = np.setdiff1d(np.arange(information.n), kept)
    left = across(rows[:, rest], np.hstack([rows[:, kept], np.diag(sizes)]))
    turn, triangle = np.linalg.qr(left[:, : len(kept)])
    # Products with columns of friction, which are eliminated, and with the others.
    root = RowSpace.of(rows[:, rest]).inverse_root()
    inner = root.T @ YM[rest]
    outer = YM[kept] - rows[:, kept].T @ (rows[:, rest] @ (root @ inner))
    by_matrices = solve_triangular(triangle, outer, trans='T')
    unexplained = MM - inner.T @ inner - by_matrices.T @ by_matrices
    E = turn.T @ left[:, len(kept) :]
    return _Triangle(one.own, n, len(of_rows), triangle, E, by_matrices, unexplained, left_over)


def _offset_inverse(triangles: Sequence[_Triangle], n: int) -> tuple[list[Array], Array, float]:
    """
    Return the effect of the last rows of each submodel's system on all offsets, (n, k) each.

    Returns also that of matrices of unit deviation, (n, 6 n), and the deviation of these.
    """
    edges = np.cumsum([0, *(len(one.own) for one in triangles)])
    lower = np.zeros((edges[-1], n))
    for start, one in zip(edges, triangles):
        lower[start : start + len(one.own), one.own] = one.R[one.n :, one.n :]
    space = RowSpace.of(lower)
    # Offsets of sensors without equations are not seen.
    inverse = space.directions / space.strengths @ space.left.T / space.scales[:, None]
    parts = np.split(inverse, edges[1:-1], axis=1)
    lower, gram, left = np.zeros((edges[-1], 6 * n)), np.zeros((6 * n, 6 * n)), np.zeros(6 * n)
    for start, one in zip(edges, triangles):
        of_own = one.of_matrices
        lower[start : start + len(one.own), of_own] = one.by_matrices[one.n :]
        gram[np.ix_(of_own, of_own)] += one.gram
        left[of_own] += one.left
    # What the offsets of one submodel explain, its neighbours may contradict.
    shares = space.left.T @ lower
    variance = variance_by_sensor(gram + lower.T @ lower - shares.T @ shares, left)
    return parts, inverse @ lower, float(np.sqrt(variance))


def _compressed(root: Array) -> Array:
    """Return a root of the same covariance with no more columns than rows."""
    if root.shape[1] <= len(root):
        return root
    return np.asarray(np.linalg.qr(root.T, mode='r')).T


@one_thread()
def base_values(
    memories: Sequence[SubmodelMemory],
    bases: Mapping[str, tuple[BaseParameters, Sequence[str]]],
    found: Mapping[str, Array],
) -> dict[str, BaseValues]:
    """
    Return the base parameters by submodel.

    bases: with the names of the combinations; found: all unknowns of a refit, (n_unknowns,).
    """
    ready = [one for one in memories if one.information is not None]
    known = [(one.block.unknowns, one.corrected) for one in ready]
    others = determined_by_others(known) if len(known) > 1 else [None] * len(known)
    values = {}
    for one, other in zip(ready, others, strict=True):
        if one.name not in found:
            continue
        rows, (base, names) = one.corrected.R, bases[one.name]
        space = RowSpace.of(rows if other is None else np.vstack([rows, other.R]), EXCITED)
        scaled = base.grouping / space.scales
        # Not by the independent columns: none holds what neighbours determine of offsets.
        outside = scaled @ space.missing / np.linalg.norm(scaled, axis=1)[:, None]
        deviations = np.linalg.norm(scaled @ space.directions / space.strengths, axis=1)
        deviations[np.linalg.norm(outside, axis=1) > DETERMINED] = np.inf
        lost = np.linalg.matrix_rank(outside, tol=DETERMINED) if outside.size else 0
        x = base.of(found[one.name])
        values[one.name] = BaseValues(names, x, deviations, len(names) - int(lost))
    return values
