# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Whether any bodies have given base parameters, and the nearest ones that some have [S 51-56].

The test asks for the bodies of largest margin, the smallest eigenvalue over all links. If even
that is negative, the multipliers are a certificate: a half-space of base parameters that holds
all that bodies can have, and not the given ones. It can be checked without any solver.

The distance of the correction depends on which columns were kept, and on units; whether base
parameters are feasible does not. It is a test, no estimator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.identification.problem import Bounds, Problem
from inertial_estimation.identification.result import Grade
from inertial_estimation.identification.solvers.conic import (
    Block,
    ConicSolution,
    Consistency,
    Kind,
    matrix,
    minimise,
    vector,
)
from inertial_estimation.identification.solvers.constraints import LinearBounds
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.base_parameters import BaseParameters

Array = NDArray[np.float64]

MARGIN = 1e-6
"""
Eigenvalue by which a correction is inside the cone, in SI units [S 21], where bodies are like
balls of one kilogramme; in proportion to the least eigenvalue of others.
"""
BALL = 5e-3
"""Least eigenvalue of the pseudo-inertia of such a ball."""
RESOLUTION = 2e-6
"""
A margin of this share of the least eigenvalue of bodies of the scale, times the largest base
parameter over their mass where that is more than one, is neither sign for sure.
"""
GREATEST_MARGIN = 200.0
"""Larger shares of it are not looked for: links that nothing is known of have any margin."""
LARGER = 10.0
"""Size of links for which certificates hold, over the nearest ones."""


class Verdict(str, Enum):
    """Whether bodies have the base parameters."""

    FEASIBLE = 'feasible'
    INFEASIBLE = 'infeasible'
    UNDECIDED = 'undecided'
    """On the boundary up to round-off, or the solver failed."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """Base parameters b of bodies within the bounds have ``normal @ b >= offset``."""

    normal: Array
    """Shape (n_base,)."""
    offset: float
    multipliers: tuple[Array, ...]
    """
    Positive semidefinite Z of each link. With the matrix M of a link and multipliers of bounds,
    ``normal @ K x = sum tr(Z M(x)) + bounds`` for all x, which proves the inequality.
    """
    mismatch: float
    """Largest difference of the two sides by unit unknowns: what the proof is exact to."""


@dataclass(frozen=True, eq=False)
class BaseParameterCheck:
    """The answer of `check_base_parameters`."""

    verdict: Verdict
    consistency: Consistency
    margin: float
    """
    Largest possible smallest eigenvalue over all links [SI]; negative if infeasible, minus
    infinity if the bounds alone rule the base parameters out.
    """
    certificate: Certificate | None
    """If infeasible."""
    nearest: Array
    """Feasible base parameters nearest to the given ones, shape (n_base,) [S 55]."""
    distance: float
    """Euclidean, to the nearest ones."""
    x: Array
    """Unknowns that have the nearest base parameters, one choice of many, shape (n,)."""
    grade: Grade
    """How the search for them ended."""


def check_base_parameters(
    base: BaseParameters,
    values: Array,
    unknowns: Unknowns,
    *,
    consistency: Consistency = Consistency.FULL,
    bounds: Bounds | None = None,
    rounding: Array | None = None,
    scale: Array | None = None,
    margin: float | None = None,
) -> BaseParameterCheck:
    """
    Return whether bodies have given base parameters, and the nearest that some have.

    values (n_base,); rounding (n_base,); scale (n_links, 10).
    """
    _require_fit(base, values, unknowns)
    cone = _Cone(unknowns, consistency, bounds or Bounds(), _checked_scale(unknowns, scale))
    wanted = _Wanted(base, values, np.zeros(base.rank) if rounding is None else rounding)
    if margin is None:
        margin = MARGIN * cone.unit / BALL
    widest, solution = _widest(cone, wanted)
    verdict = _verdict(cone, widest, solution, values)
    certificate = None
    if verdict is Verdict.INFEASIBLE:
        certificate = _certificate(cone, wanted, solution)
        near = cone.sizes * _nearest(cone, wanted, margin).x[:-1]
        if not _proves(certificate, wanted, near):
            verdict, certificate = Verdict.UNDECIDED, None
    if rounding is None and verdict is Verdict.FEASIBLE and widest >= margin:
        x, nearest = cone.sizes * solution.x[:-1], values
    else:
        solution = _nearest(cone, wanted, margin)
        x = cone.sizes * solution.x[:-1]
        nearest = base.of(x)
    distance = float(np.linalg.norm(nearest - values))
    return BaseParameterCheck(
        verdict, consistency, widest, certificate, nearest, distance, x, solution.grade
    )


@dataclass(frozen=True, eq=False)
class _Wanted:
    """Base parameters that bodies should have."""

    base: BaseParameters
    values: Array
    off: Array
    """By how much they may be missed."""

    def blocks(self, sizes: Array) -> list[Block]:
        """Return them as blocks of scaled unknowns and one more variable."""
        from scipy.sparse import csc_array

        K = np.hstack([self.base.grouping * sizes, np.zeros((self.base.rank, 1))])
        exact = self.off == 0.0
        largest = self._largest(sizes)
        K, values, off = K / largest[:, None], self.values / largest, self.off / largest
        blocks = [
            Block(('exact',), Kind.ZERO, csc_array(K[exact]), -values[exact]),
            Block(('least',), Kind.NONNEGATIVE, csc_array(K[~exact]), (off - values)[~exact]),
            Block(('greatest',), Kind.NONNEGATIVE, csc_array(-K[~exact]), (off + values)[~exact]),
        ]
        return [block for block in blocks if len(block.h)]

    def _largest(self, sizes: Array) -> Array:
        """Return by what the rows of scaled unknowns are divided, shape (n_base,)."""
        return np.asarray(np.abs(self.base.grouping * sizes).max(axis=1))

    def normal(self, multipliers: Sequence[Array], labels: list[str], sizes: Array) -> Array:
        """Return the normal of the base parameters by the multipliers of these blocks."""
        normal = np.zeros(self.base.rank)
        exact = self.off == 0.0
        for label, z in zip(labels, multipliers, strict=True):
            if label == 'exact':
                normal[exact] -= z
            elif label == 'least':
                normal[~exact] -= z
            elif label == 'greatest':
                normal[~exact] += z
        return normal / self._largest(sizes)


class _Cone:
    """What bodies and bounds ask, in unknowns that are scaled to about one."""

    def __init__(
        self, unknowns: Unknowns, consistency: Consistency, bounds: Bounds, scale: Array
    ) -> None:
        self.links = unknowns.links
        self.consistency = consistency
        self.sizes = np.concatenate([_sizes(scale).reshape(-1), np.ones(len(unknowns.extras))])
        none = np.zeros((0, len(unknowns)))
        self.bounds = LinearBounds.of(
            Problem(unknowns, none, np.zeros(0), 0.0, 1.0, scale, bounds=bounds)
        )
        self.unit = float(Consistency.FULL.margins(scale).min())
        self.mass = float(scale[:, 0].max())
        self.roots = [np.diag(1 / np.sqrt(np.diag(M))) for M in consistency.matrix(scale)]

    def blocks(self, margin: float | None) -> list[Block]:
        """Return blocks of the scaled unknowns and one more variable."""
        from scipy.sparse import csc_array

        n = len(self.sizes)
        blocks = []
        for k, (link, root) in enumerate(zip(self.links, self.roots, strict=True)):
            unit = vector(root @ root)
            G = np.zeros((len(unit), n + 1))
            of_link = slice(10 * k, 10 * k + 10)
            G[:, of_link] = self.consistency.rows(root) * self.sizes[of_link]
            G[:, -1] = -unit * self.unit if margin is None else 0.0
            h = -(margin or 0.0) * unit
            blocks.append(Block((link,), Kind.SEMIDEFINITE, csc_array(G), h))
        if self.bounds.names:
            rows = self.bounds.rows * self.sizes
            largest = np.abs(rows).max(axis=1)
            G = np.hstack([rows, np.zeros((len(rows), 1))]) / largest[:, None]
            h = -self.bounds.limits / largest
            blocks.append(Block(self.bounds.names, Kind.NONNEGATIVE, csc_array(G), h))
        return blocks


def _widest(cone: _Cone, wanted: _Wanted) -> tuple[float, ConicSolution]:
    """Return the largest margin of bodies with the base parameters [S 51]."""
    from scipy.sparse import csc_array

    n = len(cone.sizes) + 1
    margin_only = np.zeros((1, n))
    margin_only[0, -1] = -1.0
    blocks = [
        *cone.blocks(None),
        *wanted.blocks(cone.sizes),
        Block(('cap',), Kind.NONNEGATIVE, csc_array(margin_only), np.array([GREATEST_MARGIN])),
    ]
    solution = minimise(csc_array((n, n)), margin_only[0], blocks)
    return (cone.unit * float(solution.x[-1]) if solution.feasible else -np.inf), solution


def _nearest(cone: _Cone, wanted: _Wanted, margin: float) -> ConicSolution:
    """Return the unknowns whose base parameters are nearest to the given ones [S 55]."""
    from scipy.sparse import csc_array

    n = len(cone.sizes) + 1
    distance = np.zeros((1, n))
    distance[0, -1] = 1.0
    size = min(1.0, float(np.abs(wanted.values).max(initial=0.0))) or 1.0
    K = np.hstack([wanted.base.grouping * cone.sizes / size, np.zeros((wanted.base.rank, 1))])
    # The distance itself: its square would be lost in round-off long before it is zero.
    lengths = csc_array(np.vstack([distance, K]))
    missed = np.concatenate([[0.0], -wanted.values / size])
    reached = Block(('distance',), Kind.SECOND_ORDER, lengths, missed)
    solution = minimise(csc_array((n, n)), distance[0], [*cone.blocks(margin), reached])
    if not solution.feasible:
        raise ModelError(
            'no bodies are within the bounds, whatever the base parameters: '
            f'{", ".join(cone.bounds.names)}'
        )
    return solution


def _verdict(cone: _Cone, widest: float, solution: ConicSolution, values: Array) -> Verdict:
    """Return the verdict of the largest margin."""
    size = max(1.0, float(np.abs(values).max(initial=0.0)) / cone.mass)
    resolution = RESOLUTION * cone.unit * size
    if not solution.feasible or widest < -resolution:
        return Verdict.INFEASIBLE
    if widest > resolution and solution.grade is Grade.OPTIMAL:
        return Verdict.FEASIBLE
    return Verdict.UNDECIDED


def _proves(certificate: Certificate, wanted: _Wanted, near: Array) -> bool:
    """Return whether base parameters are outside by more than the certificate may be off by."""
    beyond = certificate.offset - certificate.normal @ wanted.values
    beyond -= np.abs(certificate.normal) @ wanted.off
    return bool(beyond > LARGER * certificate.mismatch * np.abs(near).sum())


def _certificate(cone: _Cone, wanted: _Wanted, solution: ConicSolution) -> Certificate:
    """Return the half-space of the multipliers."""
    blocks = [*cone.blocks(None), *wanted.blocks(cone.sizes)]
    labels = [block.labels[0] for block in blocks]
    # The margin counts in units of the scale.
    shares = [cone.unit * z for z in solution.multipliers]
    normal = wanted.normal(shares, [*labels, 'cap'], cone.sizes)
    seen = np.zeros(len(cone.sizes))
    offset, multipliers = 0.0, list[Array]()
    for block, z in zip(blocks, shares, strict=False):
        if block.kind is Kind.SEMIDEFINITE:
            root = cone.roots[len(multipliers)]
            multipliers.append(root @ matrix(z) @ root)
        elif block.labels == cone.bounds.names:
            offset = -float(z @ block.h)
        else:
            continue
        seen += np.asarray(block.G.T @ z)[:-1] / cone.sizes
    mismatch = float(np.abs(wanted.base.grouping.T @ normal - seen).max())
    return Certificate(normal, offset, tuple(multipliers), mismatch)


def _sizes(scale: Array) -> Array:
    """Return how large parameters of bodies like these are, shape (n_links, 10)."""
    mass = scale[:, 0]
    length = np.sqrt((scale[:, 4] + scale[:, 6] + scale[:, 9]) / 2 / mass)
    sizes = np.ones((len(scale), 10)) * mass[:, None]
    sizes[:, 1:4] *= length[:, None]
    sizes[:, 4:] *= length[:, None] ** 2
    return sizes


def _checked_scale(unknowns: Unknowns, scale: Array | None) -> Array:
    """Return bodies of about the right size; by default balls of one kilogramme."""
    if scale is None:
        ball = np.zeros(10)
        ball[0], ball[[4, 6, 9]] = 1.0, 0.01
        return np.tile(ball, (len(unknowns.links), 1))
    if not (Consistency.FULL.margins(scale) > 0).all():
        raise ModelError('bodies that give the scale must be strictly consistent')
    return scale


def _require_fit(base: BaseParameters, values: Array, unknowns: Unknowns) -> None:
    """Raise unless values, groupings and unknowns belong together."""
    if values.shape != (base.rank,):
        raise ShapeError('values', (base.rank,), values.shape, 'one for each base parameter')
    wanted = (base.rank, len(unknowns))
    if base.grouping.shape != wanted:
        raise ShapeError('grouping', wanted, base.grouping.shape, 'one column per unknown')
    if not np.isfinite(values).all():
        raise ModelError('base parameters hold NaN or infinity')
