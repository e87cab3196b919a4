# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Refit the parameters of all submodels and the FT offsets that they share.

    minimise  sum over submodels of  count / 2 |F u + C o - t|^2 + weight * divergence(u)

u are the coordinates of a submodel about its prior, o the offsets of all sensors. Newton's method
eliminates each u from a step onto the offsets, which are all that submodels share. Over the least
weight the objective is self-concordant: its decrement bounds the distance to the minimum, and
damped steps reach it from any consistent parameters, mostly a few from the prior. Their number
may grow as the weight falls against the equations; then it is reached by factors of ten [Nesterov,
Nemirovskii 1994].

The weight is the inverse of the variance of the prior's relative error that the equations show:
the prior counts as one measurement of each direction. It fades where motion gives better ones, and
holds the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.recursion.memory import SubmodelMemory
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.divergence import (
    edge,
    entropic_gradient,
    entropic_hessian,
    symmetric,
)
from inertial_estimation.identification.unknowns import FT_OFFSET, Unknowns
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.parameter_update import ParameterUpdate, calibration_fingerprint
from inertial_estimation.model.robot import Robot

MAX_STEPS = 60
"""Newton steps for one weight; those from 0.01 take at most 20, also from the one before."""
DIRECT_STEPS = 20
"""Newton steps from the prior before larger weights are tried."""
DIRECT_WEIGHT = 0.01
"""Over the equations, from which the minimum is reached without larger weights before."""
LAST_DECREMENT = 1e-3
"""Over the root of the weight, from which one more step leaves its square."""
FULL_STEP_DECREMENT = 0.25
"""Likewise, up to which a self-concordant function decreases by a full step."""
SUFFICIENT_DECREASE = 0.1
"""Share of the predicted decrease that a step must reach."""
MAX_EDGE_SHARE = 0.95
"""Share of the way to the edge of the cone that a step may go."""
MAX_HALVINGS = 10
MIN_EIGENVALUE_RATIO = 1e-11
"""Of the reduced Hessian; combinations of offsets below stay: products have too few digits."""
MAX_OFFSET_DEVIATION = np.repeat([2.0, 0.2], 3)
"""Standard deviation up to which an offset is determined [N, Nm]."""


@dataclass(frozen=True, eq=False)
class Refit:
    """Result of a refit; mappings are by submodel or by FT sensor."""

    stamp_ns: int
    """Stamp of the last sample [ns]."""
    parameters: Array
    """Inertial parameters of all links, strictly consistent, shape (n_links, 10)."""
    offsets: Mapping[str, Array]
    """FT offsets that fit best beside these parameters, shape (6,) [N, Nm]."""
    subtracted: Mapping[str, Array]
    """
    Offsets that an estimator should subtract: they follow the others as slowly as sensors drift
    (`OffsetTracker`); NaN where none was determined yet.
    """
    offset_deviations: Mapping[str, Array]
    """Standard deviations of the offsets, without errors that all equations share [N, Nm]."""
    refitted: tuple[str, ...]
    """Submodels whose parameters are refitted; the others have those of the prior."""
    determined: Mapping[str, int]
    """Combinations that the equations determine better than the prior is stated to."""
    reasons: Mapping[str, str]
    """Reason for which a submodel was not refitted."""
    prior_residuals: Mapping[str, Mapping[str, float]]
    """
    Root mean squares, by kind, of the newest equations before they were added: of the prior
    parameters with all else fitted [N, Nm].
    """
    residuals: Mapping[str, Mapping[str, float]]
    """The same of the fit of that time."""
    parameter_roots: Array
    """
    Root F of the covariance F F' of the parameters of each submodel, shape (n_links, 10, r); zero
    where it was not refitted.
    """

    @property
    def determined_offsets(self) -> dict[str, Array]:
        """Offsets, NaN where they are not determined [N, Nm]."""
        return {
            name: np.where(self.offset_deviations[name] <= MAX_OFFSET_DEVIATION, offset, np.nan)
            for name, offset in self.offsets.items()
        }

    def update(self, robot: Robot, calibration: FtCalibration) -> ParameterUpdate:
        """Return the update for an estimator; offsets that are not determined yet are zero."""
        none = np.zeros(6)
        offsets = [self.subtracted.get(sensor.name, none) for sensor in robot.ft_sensors]
        return ParameterUpdate(
            self.parameters,
            self.parameter_roots,
            np.nan_to_num(np.reshape(offsets, (-1, 6))),
            calibration_fingerprint(calibration),
        )


@dataclass(frozen=True, eq=False)
class SubmodelFit:
    """Best unknowns of one submodel."""

    memory: SubmodelMemory
    x: Array
    """All unknowns, shape (n_unknowns,)."""

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
    converged: bool


@one_thread()
def joint_refit(memories: Sequence[SubmodelMemory]) -> JointRefit:
    """Refit all submodels, from the prior."""
    parts, n_offsets = [_part(one) for one in memories], memories[0].n_offsets
    weights = np.array([1.0 / one.prior_variance for one in memories])
    least = np.min(weights / [part.size for part in parts])
    stages = np.ceil(max(np.log10(DIRECT_WEIGHT / least), 0.0))
    ways = (np.ones(1), DIRECT_STEPS), (10.0 ** np.arange(stages, -1.0, -1.0), MAX_STEPS)
    for factors, steps in ways:
        us, offsets = [np.zeros(len(part.across)) for part in parts], np.zeros(n_offsets)
        for factor in factors:
            newton = _Newton(parts, n_offsets, factor * weights)
            us, offsets, converged = newton.minimum(us, offsets, steps)
        if converged:
            break
    fits = []
    for part, u in zip(parts, us, strict=True):
        one, x = part.memory, np.empty(len(part.memory.block.unknowns))
        x[one.inner], x[one.offsets] = part.rows.unknowns(u), offsets[one.own]
        fits.append(SubmodelFit(one, x))
    return JointRefit(tuple(fits), offsets, converged)


class _Part(NamedTuple):
    """Equations of one submodel."""

    memory: SubmodelMemory
    rows: Coordinates
    """Of all unknowns but its offsets: F and t."""
    size: float
    """Number of equations."""
    C: Array
    """Regressor of its offsets over the root of the count, shape (r, k)."""
    across: Array
    """F'C."""
    gram: Array
    """C'C."""


def _part(one: SubmodelMemory) -> _Part:
    information, unknowns, inner = one.regularised, one.block.unknowns, one.inner
    extras = tuple(each for each in unknowns.extras if each.term not in FT_OFFSET)
    problem = Problem(
        Unknowns(unknowns.links, extras),
        information.R[:, inner],
        information.rho,
        information.energy,
        information.count,
        one.prior,
        extra_scales=one.scales_in_refit[inner[unknowns.n_inertial :] - unknowns.n_inertial],
    )
    rows = Coordinates.of(problem, one.maps)
    C = information.R[:, one.offsets] / np.sqrt(problem.count)
    return _Part(one, rows, problem.count, C, rows.factor.T @ C, C.T @ C)


class _Point(NamedTuple):
    """The objective at a point."""

    us: list[Array]
    """Coordinates of each part."""
    offsets: Array
    value: float
    slopes: list[Array]
    """By the coordinates of each part."""
    slope: Array
    """By the offsets."""
    shapes: Array
    """Matrix S of each link, shape (n_links, 4, 4)."""


class _Newton:
    def __init__(self, parts: Sequence[_Part], n_offsets: int, weights: Array) -> None:
        self.parts, self.n_offsets, self.weights = parts, n_offsets, weights.tolist()
        edges = np.cumsum([0, *(part.rows.n_inertial // 10 for part in parts)])
        self.links = [slice(*pair) for pair in pairwise(edges)]
        """Of each part among all."""

    def minimum(
        self, us: list[Array], offsets: Array, steps: int
    ) -> tuple[list[Array], Array, bool]:
        """Return the minimum from some point, and whether it was reached."""
        # In units of the least weight of a divergence the objective is self-concordant.
        unit = min(self.weights)
        here = self.at(us, offsets)
        if here is None:
            # Round-off may leave a start outside, but never the prior.
            here = self.at([np.zeros(len(u)) for u in us], offsets)
        assert here is not None
        for _ in range(steps):
            dus, doffsets, squared = self.step(here)
            if squared <= LAST_DECREMENT**2 * unit:
                last = [u + du for u, du in zip(here.us, dus)]
                return last, here.offsets + doffsets, True
            is_near = squared <= FULL_STEP_DECREMENT**2 * unit
            length = 1.0
            if not is_near:
                root = np.linalg.cholesky(np.eye(4) + here.shapes)
                length = min(1.0, MAX_EDGE_SHARE * edge(root, self.shapes(dus)))
            for _ in range(MAX_HALVINGS):
                moved = [u + length * du for u, du in zip(here.us, dus)]
                there = self.at(moved, here.offsets + length * doffsets)
                least = here.value - SUFFICIENT_DECREASE * length * squared
                if there is not None and (is_near or there.value <= least):
                    break
                length /= 2
            else:
                break
            here = there
        return here.us, here.offsets, bool(is_near) and steps > DIRECT_STEPS

    def shapes(self, us: Sequence[Array]) -> Array:
        """Return the matrix S of each link of all parts."""
        inertial = [u[: part.rows.n_inertial] for u, part in zip(us, self.parts)]
        return symmetric(np.concatenate(inertial).reshape(-1, 10))

    def at(self, us: list[Array], offsets: Array) -> _Point | None:
        """Return the objective at a point; None: a link is not consistent, or by round-off."""
        shapes = self.shapes(us)
        shares = np.linalg.eigvalsh(shapes)
        parameters = [
            part.rows.unknowns(u)[: part.rows.n_inertial] for u, part in zip(us, self.parts)
        ]
        margins = consistency_margin(np.concatenate(parameters).reshape(-1, 10))
        if not (shares.min() > -1.0 and margins.min() > 0.0):
            return None
        divergences = np.sum(shares - np.log1p(shares), axis=1)
        pulls = entropic_gradient(shapes)
        value, slopes, slope = 0.0, [], np.zeros(self.n_offsets)
        for part, u, links, weight in zip(self.parts, us, self.links, self.weights):
            rows, own, n = part.rows, part.memory.own, part.rows.n_inertial
            left = rows.factor @ u + part.C @ offsets[own] - rows.target
            drawn = rows.drawn[n:] * u[n:]
            distance = divergences[links].sum() + 0.5 * drawn @ u[n:]
            value += 0.5 * part.size * left @ left + weight * distance
            pull = np.concatenate([pulls[links].reshape(-1), drawn])
            slopes.append(part.size * (rows.factor.T @ left) + weight * pull)
            slope[own] += part.size * (part.C.T @ left)
        return _Point(us, offsets, float(value), slopes, slope, shapes)

    def step(self, here: _Point) -> tuple[list[Array], Array, float]:
        """Return the step of both and the squared decrement."""
        from scipy.linalg.blas import dtrsm

        reduced, slope, squared = np.zeros((self.n_offsets,) * 2), -here.slope, 0.0
        roots, halves = [], []
        hessians = entropic_hessian(here.shapes)
        for part, links, down, weight in zip(self.parts, self.links, here.slopes, self.weights):
            root = np.sqrt(part.size) * part.rows.curvature_root(
                hessians[links], here.shapes[links], weight / part.size
            )
            right = np.empty((len(root), len(part.memory.own) + 1), order='F')
            right[:, :-1], right[:, -1] = part.size * part.across, down
            half = dtrsm(1.0, root, right, trans_a=1, overwrite_b=1)
            roots.append(root)
            halves.append(half)
            G, g, own = half[:, :-1], half[:, -1], part.memory.own
            reduced[np.ix_(own, own)] += part.size * part.gram - G.T @ G
            slope[own] += G.T @ g
            squared += float(g @ g)
        solved = _solved(reduced, slope)
        squared += float(slope @ solved)
        steps = []
        for part, root, half in zip(self.parts, roots, halves, strict=True):
            right = -half[:, -1] - half[:, :-1] @ solved[part.memory.own]
            steps.append(dtrsm(1.0, root, right[:, None])[:, 0])
        return steps, solved, squared


def _solved(matrix: Array, right: Array) -> Array:
    """Return the solution of a symmetric system, zero where it determines nothing."""
    scales = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scales[scales == 0.0] = np.inf
    strengths, directions = np.linalg.eigh(matrix / scales / scales[:, None])
    kept = strengths > MIN_EIGENVALUE_RATIO * strengths.max(initial=0.0)
    shares = (directions[:, kept].T @ (right / scales)) / strengths[kept]
    return np.asarray(directions[:, kept] @ shares / scales)
