# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Refit the parameters of all submodels and the FT offsets that they share.

    minimise  sum over submodels of  1/2 |R x - rho|^2 + count * weight * divergence to the prior

Submodels share nothing but offsets. With the entropic divergence `joint_minimum` takes Newton
steps on all unknowns at once, which converges where the minimum is near, as on a running robot.
Otherwise, and with other priors, each submodel is eliminated onto the offsets by a quadratic model
about its parameters, the offsets are solved for, and each submodel is solved with these; where
parameters move, the models are made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.priors import prior_of_method
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.recursion.memory import SubmodelMemory
from inertial_estimation.identification.recursion.offsets import placed
from inertial_estimation.identification.row_space import RowSpace, eliminated
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.divergence import (
    Distance,
    edge,
    entropic_gradient,
    entropic_hessian,
    symmetric,
)
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.identification.unknowns import FT_OFFSET, Unknowns
from inertial_estimation.model.inertia import consistency_margin

IDENTITY: Array = np.eye(4)
MAX_ROUNDS = 6
"""Of offsets and parameters in turn."""
MODEL_RANGE = 0.02
"""Relative change of parameters up to which a quadratic model holds: its error is the square."""
MAX_STEPS = 15
"""Newton steps: the minimum is not near otherwise."""
LAST_DECREMENT = 3e-5
"""Over the root of the weight, from which one more step leaves round-off."""
FULL_STEP_DECREMENT = 0.25
"""Likewise, up to which a self-concordant function decreases by a full step."""
SUFFICIENT_DECREASE = 0.1
"""Share of the predicted decrease that a step must reach."""
MAX_EDGE_SHARE = 0.95
"""Share of the way to the edge of the cone that a step may go."""
MAX_HALVINGS = 10
MIN_EIGENVALUE_RATIO = 1e-11
"""Of the reduced Hessian; below, products of equations have too few digits."""


@dataclass(frozen=True, eq=False)
class SubmodelFit:
    """Best unknowns of one submodel."""

    memory: SubmodelMemory
    x: Array
    """All unknowns, shape (n_unknowns,)."""

    @classmethod
    def joined(cls, memory: SubmodelMemory, inner: Array, offsets: Array) -> SubmodelFit:
        """Join its own unknowns with the offsets of all."""
        x = np.empty(len(memory.block.unknowns))
        x[memory.inner], x[memory.offsets] = inner, offsets[memory.own]
        return cls(memory, x)

    @property
    def parameters(self) -> Array:
        """Inertial parameters of its links, shape (n_links, 10)."""
        return self.memory.block.unknowns.split(self.x)[0]


@dataclass(frozen=True, eq=False)
class JointRefit:
    """Best unknowns of all submodels with equations."""

    fits: tuple[SubmodelFit, ...]
    offsets: Array
    """Of all FT sensors, shape (n_offsets,) [N, Nm]."""


@one_thread()
def joint_refit(
    memories: Sequence[SubmodelMemory],
    weight: float,
    start: Mapping[str, Array] | None = None,
    method: str = 'entropic',
) -> JointRefit:
    """Refit all submodels; `start`: parameters by submodel that are near, (n_links, 10) each."""
    near = {one.name: one.prior for one in memories} | dict(start or {})
    problems = [_problem(one) for one in memories]
    entropic = SOLVERS[method].distance is Distance.ENTROPIC
    found = joint_minimum(memories, problems, weight, near) if entropic else None
    return found or alternate(memories, problems, weight, near, method)


def alternate(
    memories: Sequence[SubmodelMemory],
    problems: Sequence[Problem],
    weight: float,
    near: Mapping[str, Array],
    method: str = 'entropic',
) -> JointRefit:
    """Solve for the offsets of all submodels, then for the parameters of each, until both stay."""
    solver = SOLVERS[method]
    options: dict[str, Any] = {'weight': weight, 'noise': 1.0}
    if solver.consistent:
        options['with_deviations'] = False
    for _ in range(MAX_ROUNDS):
        # What all submodels determine of the offsets with all else eliminated.
        total = Information.empty(memories[0].n_offsets)
        for one in (each for each in memories if len(each.offsets)):
            information = one.regularised
            prior = prior_of_method(
                solver.distance, {}, one.block.unknowns, one.prior, near[one.name], one.scales,
                weight * information.count,
            )  # fmt: skip
            assert prior is not None
            left = eliminated(information.merge(prior), one.inner)
            total = total.add(placed(left.R, one), left.rho)
        offsets = RowSpace.of(total.R).solve(total.rho)
        fits = []
        for one, problem in zip(memories, problems, strict=True):
            target = problem.target - one.regularised.R[:, one.offsets] @ offsets[one.own]
            if method == 'entropic' and not problem.unknowns.extras:
                options['start'] = problem.unknowns.join(near[one.name])
            else:
                options.pop('start', None)
            answer = solver(replace(problem, target=target), **options)
            fits.append(SubmodelFit.joined(one, answer.x, offsets))
        before, near = near, {fit.memory.name: fit.parameters for fit in fits}
        moved = max(one.largest_change(near[one.name] - before[one.name]) for one in memories)
        if solver.distance is not Distance.ENTROPIC or moved <= MODEL_RANGE:
            break
    return JointRefit(tuple(fits), offsets)


def _problem(one: SubmodelMemory) -> Problem:
    """Return the problem of a submodel with all its offsets zero."""
    information, unknowns, inner = one.regularised, one.block.unknowns, one.inner
    extras = tuple(each for each in unknowns.extras if each.term not in FT_OFFSET)
    return Problem(
        Unknowns(unknowns.links, extras),
        information.R[:, inner],
        information.rho,
        information.energy,
        information.count,
        one.prior,
        extra_scales=one.scales[inner[unknowns.n_inertial :] - unknowns.n_inertial],
    )


def joint_minimum(
    memories: Sequence[SubmodelMemory],
    problems: Sequence[Problem],
    weight: float,
    near: Mapping[str, Array],
) -> JointRefit | None:
    """
    Return the entropic minimum if it is near.

    minimise  sum over submodels of  count (1/2 |F u + C o - t|^2 + weight * divergence(u))

    Each u is eliminated from a step onto the offsets o. Over the weight the objective is
    self-concordant: its decrement bounds the distance to the minimum [Nesterov, Nemirovskii 1994].
    Steps are solved from products of equations. None where these have too few digits, or the
    minimum is far or next to inconsistent parameters.
    """
    parts, us = [], []
    for one, problem in zip(memories, problems, strict=True):
        rows, n = Coordinates.of(problem, one.maps), one.block.unknowns.n_inertial
        F, C = rows.factor, one.regularised.R[:, one.offsets] / np.sqrt(problem.count)
        parts.append(_Part(rows, problem.count, n, C, one.own, F.T @ F, F.T @ C))
        moved = np.linalg.solve(rows.links, (near[one.name] - problem.prior)[..., None])
        us.append(np.concatenate([moved.reshape(-1), np.zeros(F.shape[1] - n)]))
    n_offsets = memories[0].n_offsets
    found = _Descent(parts, n_offsets, weight).run(us, np.zeros(n_offsets))
    if found is None:
        return None
    us, offsets = found
    fits = tuple(
        SubmodelFit.joined(one, part.rows.unknowns(u), offsets)
        for one, part, u in zip(memories, parts, us, strict=True)
    )
    consistent = all(consistency_margin(fit.parameters).min() > 0.0 for fit in fits)
    return JointRefit(fits, offsets) if consistent else None


class _Part(NamedTuple):
    """Equations of one submodel."""

    rows: Coordinates
    """Of all unknowns but its offsets: F and t."""
    size: float
    """Number of equations."""
    n: int
    """Number of inertial parameters."""
    C: Array
    """Regressor of its offsets over the root of the count, shape (r, k)."""
    own: Indices
    """Its offsets among those of all, shape (k,)."""
    gram: Array
    """F'F."""
    across: Array
    """F'C."""


class _Local(NamedTuple):
    """The objective at a point."""

    value: float
    slopes: list[Array]
    """By the coordinates of each part."""
    slope: Array
    """By the offsets."""
    shapes: Array
    """Matrix S of each link, shape (n_links, 4, 4)."""


class _Descent:
    """Newton's method."""

    def __init__(self, parts: Sequence[_Part], n_offsets: int, weight: float) -> None:
        self.parts, self.n_offsets, self.weight = parts, n_offsets, weight
        self.edges = np.cumsum([0, *(part.n // 10 for part in parts)])
        # In units of the least weight of a divergence the objective is self-concordant.
        self.unit = weight * min(part.size for part in parts)

    def run(self, us: list[Array], offsets: Array) -> tuple[list[Array], Array] | None:
        """Return the coordinates of each part and the offsets; None: not near."""
        here = self.local(us, offsets)
        for _ in range(MAX_STEPS):
            if here is None or (step := self.step(here)) is None:
                return None
            dus, doffsets, squared = step
            if squared <= LAST_DECREMENT**2 * self.unit:
                return [u + du for u, du in zip(us, dus)], offsets + doffsets
            root = np.linalg.cholesky(IDENTITY + here.shapes)
            length = min(1.0, MAX_EDGE_SHARE * edge(root, self.shapes(dus)))
            for _ in range(MAX_HALVINGS):
                moved = [u + length * du for u, du in zip(us, dus)]
                there = self.local(moved, offsets + length * doffsets)
                sure = squared <= FULL_STEP_DECREMENT**2 * self.unit
                decrease = SUFFICIENT_DECREASE * length * squared
                if there and (sure or there.value <= here.value - decrease):
                    break
                length /= 2
            else:
                return None
            us, offsets, here = moved, offsets + length * doffsets, there
        return None

    def shapes(self, us: Sequence[Array]) -> Array:
        """Return the matrix S of each link of all parts."""
        inertial = [u[: part.n] for u, part in zip(us, self.parts)]
        return symmetric(np.concatenate(inertial).reshape(-1, 10))

    def local(self, us: Sequence[Array], offsets: Array) -> _Local | None:
        """Return the objective at a point; None: outside the cone."""
        shapes = self.shapes(us)
        shares = np.linalg.eigvalsh(shapes)
        if not shares.min() > -1.0:
            return None
        divergences = np.sum(shares - np.log1p(shares), axis=1)
        pulls = entropic_gradient(shapes)
        value, slopes, slope = 0.0, [], np.zeros(self.n_offsets)
        for k, part in enumerate(self.parts):
            links = slice(self.edges[k], self.edges[k + 1])
            rows, u, n = part.rows, us[k], part.n
            left = rows.factor @ u + part.C @ offsets[part.own] - rows.target
            drawn = rows.drawn[n:] * u[n:]
            distance = divergences[links].sum() + 0.5 * drawn @ u[n:]
            value += part.size * (0.5 * left @ left + self.weight * distance)
            pull = np.concatenate([pulls[links].reshape(-1), drawn])
            slopes.append(part.size * (rows.factor.T @ left + self.weight * pull))
            slope[part.own] += part.size * (part.C.T @ left)
        return _Local(float(value), slopes, slope, shapes)

    def step(self, here: _Local) -> tuple[list[Array], Array, float] | None:
        """Return the step of both and the squared decrement; None: too few digits."""
        from scipy.linalg.blas import dtrsm

        blocks = self.weight * entropic_hessian(here.shapes)
        reduced, slope, squared = np.zeros((self.n_offsets,) * 2), -here.slope, 0.0
        roots, halves = [], []
        for k, part in enumerate(self.parts):
            root = self._root(part, blocks[self.edges[k] : self.edges[k + 1]])
            if root is None:
                return None
            right = np.empty((len(root), len(part.own) + 1), order='F')
            right[:, :-1], right[:, -1] = part.size * part.across, here.slopes[k]
            half = dtrsm(1.0, root, right, trans_a=1, overwrite_b=1)
            roots.append(root)
            halves.append(half)
            G, g = half[:, :-1], half[:, -1]
            reduced[np.ix_(part.own, part.own)] += part.size * part.C.T @ part.C - G.T @ G
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
        """Return the Cholesky factor of the Hessian by a part's coordinates."""
        from scipy.linalg.lapack import dpotrf

        H, n = part.gram.copy(), part.n
        links = np.arange(n).reshape(-1, 10)
        H[links[:, :, None], links[:, None, :]] += blocks
        rest = np.arange(n, len(H))
        H[rest, rest] += self.weight * part.rows.drawn[n:]
        root, failed = dpotrf(part.size * H.T, lower=0, overwrite_a=1)
        return None if failed else np.asarray(root)


def _solved(matrix: Array, right: Array) -> Array | None:
    """Return the solution of a symmetric system, zero where it is empty; None: singular."""
    scales = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    present = np.flatnonzero(scales > 0.0)
    solution = np.zeros(len(right))
    if not len(present):
        return solution
    scaled = matrix[np.ix_(present, present)] / scales[present] / scales[present][:, None]
    strengths, directions = np.linalg.eigh(scaled)
    if strengths[0] <= MIN_EIGENVALUE_RATIO * strengths[-1]:
        return None
    shares = (directions.T @ (right[present] / scales[present])) / strengths
    solution[present] = directions @ shares / scales[present]
    return solution
