# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Newton's method on the bodies of all submodels and the FT offsets that they share, at once.

    minimise  sum over submodels of  count (1/2 |F u + C o - t|^2 + weight * divergence(u))

The u of different submodels have nothing in common, so each is eliminated from a step by itself
onto the offsets o. Over the weight the objective is self-concordant: near the minimum, where a
running robot always is, its decrement says how far that is, and a few steps are enough [Nesterov,
Nemirovskii 1994]. Steps are solved from products of rows. Where these have too few digits, or the
minimum is far or next to bodies that could not exist, nothing is returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.recursion.memory import SubmodelMemory
from inertial_estimation.identification.solvers.cone_steps import edge
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.divergence import (
    entropic_gradient,
    entropic_hessian,
    symmetric,
)
from inertial_estimation.model.inertia import consistency_margin

Array = NDArray[np.float64]
Columns = NDArray[np.intp]

IDENTITY: Array = np.eye(4)
"""A link at its prior."""
STEPS = 15
"""At most: it is not near then."""
LAST = 3e-5
"""Decrement, over the root of the weight, from which one more step leaves round-off."""
FULL = 0.25
"""Decrement, over the root of the weight, up to which a whole step is sure to gain."""
GAIN = 0.1
"""Least share of the gain that a step promises."""
INSIDE = 0.95
"""Share of the way to the edge of the cone that a step goes at most."""
HALVINGS = 10
DIGITS = 1e-11
"""Products of rows whose least eigenvalue is below this share of the largest tell nothing."""


class Minimum(NamedTuple):
    """Where the steps ended."""

    unknowns: tuple[Array, ...]
    """Of each submodel without the offsets."""
    offsets: Array
    """Shape (n_offsets,) [N, Nm]."""


def joint_minimum(
    known: Sequence[SubmodelMemory],
    problems: Sequence[Problem],
    names: Sequence[str],
    weight: float,
    near: Mapping[str, Array],
) -> Minimum | None:
    """
    Return the minimum if it is near.

    near (n_links, 10).
    """
    parts = [
        _part(one, problem, names, near[one.block.submodel.name])
        for one, problem in zip(known, problems, strict=True)
    ]
    found = _Descent(parts, len(names), weight).run()
    if found is None:
        return None
    us, offsets = found
    unknowns = tuple(part.coordinates.unknowns(u) for part, u in zip(parts, us, strict=True))
    inertial = [x[: 10 * part.n_links].reshape(-1, 10) for x, part in zip(unknowns, parts)]
    sound = all(consistency_margin(rows).min() > 0.0 for rows in inertial)
    return Minimum(unknowns, offsets) if sound else None


@dataclass(frozen=True, eq=False)
class _Part:
    """The rows of one submodel."""

    coordinates: Coordinates
    """Of all but its offsets."""
    count: float
    C: Array
    """Rows on its offsets, over the root of their number, shape (r, k)."""
    own: Columns
    """Its offsets among those of all, shape (k,)."""
    gram: Array
    """Products of the rows on the coordinates."""
    across: Array
    """Those with the rows on the offsets."""
    first: Array
    """Coordinates to start from."""

    @property
    def n_links(self) -> int:
        """Number of links."""
        return len(self.coordinates.links)


class _Local(NamedTuple):
    """The objective near a point."""

    value: float
    slopes: list[Array]
    """By the coordinates of each part."""
    slope: Array
    """By the offsets."""
    shapes: Array
    """S of all links, shape (n_links, 4, 4)."""


def _part(one: SubmodelMemory, problem: Problem, names: Sequence[str], near: Array) -> _Part:
    """Prepare the rows of one submodel."""
    assert one.drawn is not None
    coordinates = Coordinates.of(problem, one.maps)
    F, C = coordinates.factor, one.drawn.R[:, one.offsets] / np.sqrt(problem.count)
    first = np.zeros(F.shape[1])
    moved = (near - problem.prior)[..., None]
    first[: 10 * len(near)] = np.linalg.solve(coordinates.links, moved).reshape(-1)
    own = np.array([names.index(name) for name in one.offset_names], dtype=np.intp)
    return _Part(coordinates, problem.count, C, own, F.T @ F, F.T @ C, first)


class _Descent:
    """Steps from where the parts say to start."""

    def __init__(self, parts: Sequence[_Part], n_offsets: int, weight: float) -> None:
        self.parts, self.n_offsets, self.weight = parts, n_offsets, weight
        self.edges = np.cumsum([0, *(part.n_links for part in parts)])
        # The least weight of a divergence: in its units the objective is self-concordant.
        self.unit = weight * min(part.count for part in parts)

    def run(self) -> tuple[list[Array], Array] | None:
        """Return the coordinates of each part and the offsets, or None if they are not near."""
        us, offsets = [part.first for part in self.parts], np.zeros(self.n_offsets)
        here = self.local(us, offsets)
        for _ in range(STEPS):
            if here is None or (step := self.step(here)) is None:
                return None
            dus, doffsets, squared = step
            if squared <= LAST**2 * self.unit:
                return [u + du for u, du in zip(us, dus)], offsets + doffsets
            length = min(1.0, INSIDE * edge(IDENTITY + here.shapes, self.shapes(dus)))
            for _ in range(HALVINGS):
                moved = [u + length * du for u, du in zip(us, dus)]
                there = self.local(moved, offsets + length * doffsets)
                sure = squared <= FULL**2 * self.unit
                if there and (sure or there.value <= here.value - GAIN * length * squared):
                    break
                length /= 2
            else:
                return None
            us, offsets, here = moved, offsets + length * doffsets, there
        return None

    def shapes(self, us: Sequence[Array]) -> Array:
        """Return the matrix S of each link of all parts."""
        inertial = [u[: 10 * part.n_links] for u, part in zip(us, self.parts)]
        return symmetric(np.concatenate(inertial).reshape(-1, 10))

    def local(self, us: Sequence[Array], offsets: Array) -> _Local | None:
        """Return the objective near a point, None if it is outside."""
        shapes = self.shapes(us)
        shares = np.linalg.eigvalsh(shapes)
        if not shares.min() > -1.0:
            return None
        divergences = np.sum(shares - np.log1p(shares), axis=1)
        pulls = entropic_gradient(shapes)
        value, slopes, slope = 0.0, [], np.zeros(self.n_offsets)
        for k, part in enumerate(self.parts):
            links = slice(self.edges[k], self.edges[k + 1])
            rows, u, n = part.coordinates, us[k], 10 * part.n_links
            left = rows.factor @ u + part.C @ offsets[part.own] - rows.target
            drawn = rows.drawn[n:] * u[n:]
            distance = divergences[links].sum() + 0.5 * drawn @ u[n:]
            value += part.count * (0.5 * left @ left + self.weight * distance)
            pull = np.concatenate([pulls[links].reshape(-1), drawn])
            slopes.append(part.count * (rows.factor.T @ left + self.weight * pull))
            slope[part.own] += part.count * (part.C.T @ left)
        return _Local(float(value), slopes, slope, shapes)

    def step(self, here: _Local) -> tuple[list[Array], Array, float] | None:
        """Return the step of both, and the squared decrement; None if digits are lacking."""
        from scipy.linalg.blas import dtrsm

        blocks = self.weight * entropic_hessian(here.shapes)
        reduced, slope, squared = np.zeros((self.n_offsets,) * 2), -here.slope, 0.0
        roots, halves = [], []
        for k, part in enumerate(self.parts):
            root = self._root(part, blocks[self.edges[k] : self.edges[k + 1]])
            if root is None:
                return None
            right = np.empty((len(root), len(part.own) + 1), order='F')
            right[:, :-1], right[:, -1] = part.count * part.across, here.slopes[k]
            half = dtrsm(1.0, root, right, trans_a=1, overwrite_b=1)
            roots.append(root)
            halves.append(half)
            G, g = half[:, :-1], half[:, -1]
            reduced[np.ix_(part.own, part.own)] += part.count * part.C.T @ part.C - G.T @ G
            slope[part.own] += G.T @ g
            squared += float(g @ g)
        solved = _solved(reduced, slope)
        if solved is None:
            return None
        squared += float(slope @ solved)
        steps = []
        for part, root, half in zip(self.parts, roots, halves, strict=True):
            right = -half[:, -1] - half[:, :-1] @ solved[part.own]
            steps.append(dtrsm(1.0, root, right[:, None])[:, 0])
        return steps, solved, squared

    def _root(self, part: _Part, blocks: Array) -> Array | None:
        """Return the triangle U with U'U the second derivative by a part's coordinates."""
        from scipy.linalg.lapack import dpotrf

        H, n = part.gram.copy(), 10 * part.n_links
        links = np.arange(n).reshape(-1, 10)
        H[links[:, :, None], links[:, None, :]] += blocks
        rest = np.arange(n, len(H))
        H[rest, rest] += self.weight * part.coordinates.drawn[n:]
        root, failed = dpotrf(part.count * H.T, lower=0, overwrite_a=1)
        return None if failed else np.asarray(root)


def _solved(matrix: Array, right: Array) -> Array | None:
    """Return the solution of a symmetric system, zero where it says nothing."""
    scales = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    told = np.flatnonzero(scales > 0.0)
    solution = np.zeros(len(right))
    if not len(told):
        return solution
    scaled = matrix[np.ix_(told, told)] / scales[told] / scales[told][:, None]
    strengths, directions = np.linalg.eigh(scaled)
    if strengths[0] <= DIGITS * strengths[-1]:
        return None
    shares = (directions.T @ (right[told] / scales[told])) / strengths
    solution[told] = directions @ shares / scales[told]
    return solution
