# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How sure the bodies of a refit are: a root of the covariance of each submodel's parameters.

With A the rows of all submodels below those of the prior near the answer, an error e of the rows
moves the answer by ``A^+ e``. Two kinds of error are in it, as in `curvature.deviations`:

    rows       each errs by the usual residual of its submodel at the answer
    prior      the truth is as far from it as the answer is where rows tell it: by v of what a
               divergence of about one allows. A prior of weight w among n rows has n w of them,
               which all err together: n w v in variance

so the covariance is ``A^+ diag(s^2, n w v) A^+'``. What rows tell is as sure as their number makes
it, and what only the prior holds is as uncertain as the description has shown itself to be,
however many rows there are. v is what the answer has moved from the description, as twice the
divergence. With H = B B' the projection onto what rows (1), the prior of bodies (2) and that of
friction (3) span, and D = I - H22, an error z of the description in its whitened coordinates moves
it by D z, hence on average by v tr(D D). Noise moves it by s^2 / (n w) tr(H21 H12), and friction,
which is as uncertain as its prior says, by tr(H23 H32): these are taken off. One more combination
of v = 1 is added to either: what holds before rows tell anything. The divergence of a body that
has become several times itself lies between what the description's coordinates say and the
answer's. D is of a submodel by itself: where neighbours tell its offsets more of the description
shows in what it has moved, and v comes out too large.

Submodels share offsets of FT sensors. These are eliminated last: what the other submodels tell of
them enters with its own errors. Friction and offsets have no rows in the roots. Rows that fade
are taken for fewer ones of the same noise, which is more noise than they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information import Information
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.priors import entropic_model
from inertial_estimation.identification.recursion.joint_refit import Bodies, JointRefit
from inertial_estimation.identification.row_space import RowSpace, across, column_basis
from inertial_estimation.identification.solvers.divergence import entropic_divergence

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class _Triangle:
    """
    The rows of a submodel, whatever its friction is: ``[U V; 0 T] [bodies; offsets] = E e``.

    The errors e are independent and of variance one.
    """

    own: Indices
    """Its offsets among those of all submodels, shape (k,)."""
    U: Array
    """Shape (n_inertial, n_inertial)."""
    V: Array
    """Shape (n_inertial, k)."""
    T: Array
    """Shape (k, k)."""
    errors: Array
    """E, shape (n_inertial + k, n_errors)."""

    @property
    def of_bodies(self) -> Array:
        """Errors of the upper rows, shape (n_inertial, n_errors)."""
        return self.errors[: len(self.U)]

    @property
    def of_offsets(self) -> Array:
        """Errors of the lower rows, shape (k, n_errors)."""
        return self.errors[len(self.U) :]


@one_thread()
def parameter_roots(found: JointRefit, weight: float) -> dict[str, Array]:
    """
    Return a root of the covariance of the inertial parameters of each submodel.

    Returns (10 n_links, 10 n_links) [kg, kg m, kg m^2].
    """
    names = tuple(found.offsets)
    triangles = [_triangle(bodies, names, weight) for bodies in found.bodies]
    by_submodel = _offset_errors(triangles, len(names))
    roots = {}
    for bodies, own, errors in zip(found.bodies, triangles, by_submodel, strict=True):
        others = [one[own.own] for one in by_submodel if one is not errors]
        shared = _compressed(np.hstack([np.zeros((len(own.own), 0)), *others]))
        right = np.hstack([own.of_bodies - own.V @ errors[own.own], -own.V @ shared])
        root = _compressed(_solved(own.U, right))
        roots[bodies.knowledge.block.submodel.name] = root
    return roots


def _triangle(bodies: Bodies, names: Sequence[str], weight: float) -> _Triangle:
    """Reduce the rows and the prior of one submodel."""
    one, information = bodies.knowledge, bodies.knowledge.told
    assert information is not None
    drawn, n = weight * information.count, one.block.unknowns.n_inertial
    prior = entropic_model(one.block.unknowns, one.prior, bodies.parameters, one.scales, drawn)
    rows = np.vstack([information.R, prior.R])
    basis = column_basis(rows)
    of_rows, of_bodies, others = np.split(basis, [information.n, information.n + n])
    variance = _variance(information, bodies.x, float(np.sum(of_rows**2)))
    other = moved_by_other_errors(of_bodies, of_rows, others, variance / drawn)
    wrong = _description_error(bodies, of_bodies, other)
    variances = [variance, drawn * wrong, drawn]
    sizes = np.sqrt(np.repeat(variances, [len(of_rows), n, len(others)]))
    kept = np.concatenate([np.arange(n), one.offsets])
    rest = np.setdiff1d(np.arange(information.n), kept)
    left = across(rows[:, rest], np.hstack([rows[:, kept], np.diag(sizes)]))
    turn, triangle = np.linalg.qr(left[:, : len(kept)])
    return _Triangle(
        np.array([names.index(name) for name in one.offset_names], dtype=np.intp),
        triangle[:n, :n],
        triangle[:n, n:],
        triangle[n:, n:],
        turn.T @ left[:, len(kept) :],
    )


def _variance(information: Information, x: Array, used: float) -> float:
    """Return that of a row: of what is left, by the rows that the answer does not use up."""
    freedom = information.count - used
    # Fewer rows than that tell nothing of their noise: it is the unit that they came in.
    return information.squared_residual(x) / freedom if freedom >= 1.0 else 1.0


def moved_by_other_errors(bodies: Array, rows: Array, others: Array, noise: float) -> float:
    """
    Return how far the answer is from the description on average if that is right.

    bodies, rows, others (n_bodies or n_rows or n_others, rank).
    """
    return noise * float(np.sum((bodies @ rows.T) ** 2)) + float(np.sum((bodies @ others.T) ** 2))


def _description_error(bodies: Bodies, basis: Array, other: float) -> float:
    """Return the variance of the description's error, over that of a divergence of one."""
    moved = 2.0 * float(entropic_divergence(bodies.parameters, bodies.knowledge.prior).sum())
    if not np.isfinite(moved):
        # Bodies that could not exist, which nobody is told, show nothing of the description.
        return 1.0
    # What the prior does not hold: the answer is where rows move it from there.
    told = np.eye(len(basis)) - basis @ basis.T
    return (max(moved - other, 0.0) + 1.0) / (float(np.sum(told**2)) + 1.0)


def _offset_errors(triangles: Sequence[_Triangle], n: int) -> list[Array]:
    """Return what the errors of each submodel do to all offsets, shape (n, n_errors) each."""
    placed = []
    for one in triangles:
        lower = np.zeros((len(one.own), n))
        lower[:, one.own] = one.T
        placed.append(lower)
    space = RowSpace.of(np.vstack([np.zeros((0, n)), *placed]))
    # Offsets that nobody tells stay where they are: bodies do not depend on them, as all of a
    # body is held by its prior.
    inverse = space.directions / space.strengths @ space.left.T / space.scales[:, None]
    edges = np.cumsum([len(one.own) for one in triangles])[:-1]
    parts = np.split(inverse, edges, axis=1)
    return [part @ one.of_offsets for part, one in zip(parts, triangles, strict=True)]


def _compressed(root: Array) -> Array:
    """Return a root of the same covariance with no more columns than rows."""
    if root.shape[1] <= len(root):
        return root
    return np.asarray(np.linalg.qr(root.T, mode='r')).T


def _solved(triangle: Array, right: Array) -> Array:
    """Return the inverse of an upper triangle times columns."""
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(triangle, right))
