# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Identification on the manifold of consistent parameters [M 20-24].

    minimise  1/2 mean((factor x - target)^2)  +  weight * sum of log-det divergences to the prior

over mass, centre of mass, principal axes and second moments of each link, all of whose values are
consistent. Steps are Levenberg-Marquardt with exact derivatives from the prior on; links at no
bound move along lines of their parameters, in which the equations are linear. Every iterate is
consistent, so that the answer is usable whenever a budget ends.

Without a prior, as in (M 21), the minimum may lie on the boundary of the cone (a link without
extension) or at infinity (a diverging mass), where steps are short: a prior that fades leads past
it, and the best point on the way counts. Masses and moments keep tiny shares of the prior's.
"""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.arguments import require_budget, require_noise
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.result import Grade, Identification
from inertial_estimation.identification.row_space import RowSpace, numerical_rank
from inertial_estimation.identification.solvers.constraints import require_order
from inertial_estimation.identification.solvers.coordinates import require_weight
from inertial_estimation.identification.solvers.deviations import by_prior, by_rows
from inertial_estimation.identification.solvers.divergence import symmetric, whitening
from inertial_estimation.identification.solvers.manifold_objective import (
    ManifoldObjective,
    Point,
    Slope,
)
from inertial_estimation.identification.solvers.principal_bodies import PrincipalBodies

Array = NDArray[np.float64]

METHOD = 'manifold'
OPTIMAL = 1e-7
"""Relative gradient of an answer that is optimal."""
ROUND_OFF = 1e-13
"""Relative gradient from which on further steps are round-off."""
DAMPING, MIN_DAMPING, MAX_DAMPING = 1e-3, 1e-14, 1e12
"""Of steps, over the mean of the Hessian's diagonal."""
RESOLUTION = 1e-12
"""Decrease of the objective, over its value, below which the gradient decides."""
FIRST_WEIGHT, FADE, LAST_WEIGHT = 1e-2, 0.2, 1e-10
"""
Of the prior that fades, over the objective at the start: where it starts, what is left of it each
time, and where it ends.
"""
STAGE_DECREASE, STAGE_STEPS = 0.1, 30
"""Decrease that a step promises, over its weight, and steps after which it fades further."""
MIN_EIGENVALUE = 1e-9
"""Least eigenvalue of a body seen from its prior, where deviations are found."""
MAX_CHANGE = 10.0
"""Mass over the prior's, or distance of the centre over its radius of gyration, of a note."""


@one_thread()
def solve_manifold(
    problem: Problem,
    *,
    weight: float | None = 1e-2,
    max_iterations: int = 200,
    time_limit: float = np.inf,
    noise: float | None = None,
    with_deviations: bool = True,
) -> Identification:
    """Return the best fit on the manifold of bodies; time_limit [s]."""
    start = perf_counter()
    require_noise(noise)
    require_budget(max_iterations, time_limit)
    _check(problem, weight)
    objective = ManifoldObjective.of(problem, 0.0 if weight is None else weight)
    found = _Search(objective, max_iterations, start + time_limit).run()
    x = objective.unknowns(found.point)
    stated = np.full(len(x), np.nan)
    if with_deviations:
        stated = _deviations(problem, x, weight, noise)
    return Identification(
        method=METHOD,
        unknowns=problem.unknowns,
        x=x,
        deviations=stated,
        rank=numerical_rank(problem.factor.T @ problem.factor),
        mean_square=problem.mean_square(x),
        optimality=found.optimality,
        grade=_grade(found),
        iterations=found.iterations,
        solve_time=perf_counter() - start,
        notes=tuple(_notes(objective, x, weight, found)),
    )


def _deviations(problem: Problem, x: Array, weight: float | None, noise: float | None) -> Array:
    """Return standard deviations as if no link were at a bound, shape (n,)."""
    if weight is None:
        return by_rows(problem, x, RowSpace.of(problem.factor), noise)
    moved = x[: problem.unknowns.n_inertial].reshape(-1, 10, 1) - problem.prior[..., None]
    z = np.asarray(np.linalg.solve(whitening(problem.prior), moved), dtype=np.float64)
    shares, axes = np.linalg.eigh(symmetric(z[..., 0]))
    # Round-off may put a body at the edge of the cone outside.
    inside = np.maximum(shares, MIN_EIGENVALUE - 1.0)[:, None]
    shapes = axes * inside @ np.swapaxes(axes, -1, -2)
    return by_prior(problem, x, weight, shapes=shapes, noise=noise)


class _Found(NamedTuple):
    """Where the descent ended."""

    point: Point
    optimality: float
    iterations: int
    stuck: bool
    """Whether no step got any further, instead of the budget's end."""


def _check(problem: Problem, weight: float | None) -> None:
    """Raise unless the problem can be solved so."""
    if weight is not None:
        require_weight(weight)
    if problem.bounds.total_mass is not None or problem.bounds.ellipsoids is not None:
        raise ModelError(
            'bounds of the total mass and ellipsoids are not bounds of a coordinate of the '
            'manifold: leave them out, or use a method with linear constraints'
        )
    require_order(problem)
    greatest = problem.bounds.mass
    if greatest is not None and not (greatest[:, 1] > 0.0).all():
        names = np.array(problem.unknowns.links)[~(greatest[:, 1] > 0.0)]
        raise ModelError(f'the greatest mass must be positive: {", ".join(names)}')
    problem.require_consistent_prior()


class _Place(NamedTuple):
    """A point of the way."""

    point: Point
    value: float
    slope: Slope
    optimality: float

    @classmethod
    def of(cls, objective: ManifoldObjective, point: Point) -> _Place:
        """Return the place of a point."""
        value, slope = objective.value(point), objective.slope(point)
        return cls(point, value, slope, _optimality(objective, slope, value))


class _Search:
    """The way to the least of a objective."""

    def __init__(self, goal: ManifoldObjective, max_iterations: int, deadline: float) -> None:
        self.goal, self.max_iterations, self.deadline = goal, max_iterations, deadline
        self.best = self.point = goal.start()
        self.least = goal.value(self.best)
        self.used, self.damping = 0, DAMPING

    def run(self) -> _Found:
        """Take steps until nothing improves or the budget ends."""
        self._fade()
        stuck = self._descend(self.goal, 0.0, self.max_iterations)
        optimality = _Place.of(self.goal, self.best).optimality
        return _Found(self.best, optimality, self.used, stuck)

    def _fade(self) -> None:
        """Let a heavy prior fade to what it is to be, so that no link is at the edge too soon."""
        weight, last = FIRST_WEIGHT * self.least, LAST_WEIGHT * self.least
        while weight > max(self.goal.weight, last) and self._left():
            self._descend(self.goal.faded(weight), STAGE_DECREASE * weight, STAGE_STEPS)
            if _Place.of(self.goal, self.point).optimality <= OPTIMAL:
                break
            weight *= FADE
        self.point = self.best

    def _left(self) -> bool:
        """Return whether some of the budget is left."""
        return self.used < self.max_iterations and perf_counter() < self.deadline

    def _descend(self, objective: ManifoldObjective, enough: float, most: int) -> bool:
        """
        Take steps until one would decrease the objective by no more than enough, if that is not 0.
        """
        place, damping = _Place.of(objective, self.point), min(self.damping, DAMPING)
        last, done, stuck = self.used + most, False, False
        while self.used < last and self._left() and place.optimality > ROUND_OFF and not done:
            self.used += 1
            trial = _tried(objective, place, damping)
            if trial.place is None:
                # Along a curved boundary small steps go on for ever.
                done = stuck = place.optimality <= OPTIMAL or damping > MAX_DAMPING
                damping *= 10.0
            else:
                # Far from bodies the quadratic model may promise nothing where much can be had.
                done = enough > 0.0 and trial.whole and trial.expected <= enough
                place, damping = trial.place, _adapted(damping, trial.gain)
                self._keep(place.point)
        self.point, self.damping = place.point, damping
        return stuck

    def _keep(self, point: Point) -> None:
        """Keep a point that is no worse than the best one but for round-off."""
        value = self.goal.value(point)
        if value <= self.least * (1.0 + RESOLUTION):
            self.best, self.least = point, min(value, self.least)


class _Trial(NamedTuple):
    """What a step comes to."""

    place: _Place | None = None
    """Where it leads, None if nothing gets better there."""
    gain: float = 0.0
    """The decrease over what was expected; one where that is below round-off."""
    expected: float = 0.0
    """Decrease of the objective."""
    whole: bool = False
    """Whether no edge of the cone cut it short."""


def _tried(objective: ManifoldObjective, place: _Place, damping: float) -> _Trial:
    """Return what a step comes to."""
    slope = place.slope
    step = _step(slope, damping)
    if step is None:
        return _Trial()
    straight = slope.straight(len(objective.scales))
    reach = objective.reach(place.point, step, straight)
    step *= reach
    expected = -float(slope.gradient @ step + step @ slope.convex @ step / 2)
    there = objective.moved(place.point, step, straight)
    gain = 1.0
    if expected > RESOLUTION * place.value:
        gain = (place.value - objective.value(there)) / expected
        better = gain > 0.0
    else:
        better = _Place.of(objective, there).optimality < place.optimality
    return _Trial(_Place.of(objective, there) if better else None, gain, expected, reach == 1.0)


def _step(slope: Slope, damping: float) -> Array | None:
    """Return a damped step along the free coordinates, None if the damping is too weak."""
    from scipy.linalg.lapack import dposv

    free = np.flatnonzero(slope.free)
    # A bound that is near is reached at once, unless damping shortens steps.
    step = slope.gaps / (1.0 + damping)
    right = -(slope.gradient + slope.hessian @ step)[free]
    size = float(np.abs(np.diag(slope.convex)).mean()) or 1.0
    for matrix in (slope.hessian, slope.convex):
        H = matrix[np.ix_(free, free)]
        H[range(len(free)), range(len(free))] += damping * size
        _, solution, failed = dposv(H, right)
        if not failed:
            step[free] = solution
            return step
    return None


def _adapted(damping: float, gain: float) -> float:
    """Return the damping after a step whose decrease was so much of what was expected."""
    if gain > 0.75:
        return max(damping / 10.0, MIN_DAMPING)
    return damping * 4.0 if gain < 0.25 else damping


def _optimality(objective: ManifoldObjective, slope: Slope, value: float) -> float:
    """Return the gradient of free coordinates, each over the size of its rows, over the target."""
    target = objective.problem.target
    size = np.sqrt(float(target @ target) / objective.problem.count + 2 * value)
    lengths = np.sqrt(np.diag(slope.convex))
    moved = slope.free & (lengths > 0.0)
    return float(np.linalg.norm(slope.gradient[moved] / lengths[moved])) / (size or 1.0)


def _grade(found: _Found) -> Grade:
    """Return how the solver stopped."""
    if found.optimality <= OPTIMAL:
        return Grade.OPTIMAL
    return Grade.INACCURATE if found.stuck else Grade.STOPPED


def _notes(
    objective: ManifoldObjective, x: Array, weight: float | None, found: _Found
) -> list[str]:
    """Return links at or beyond what a real link has, and how far the answer is from optimal."""
    problem, bodies = objective.problem, found.point.bodies
    prior, links = PrincipalBodies.of(problem.prior), np.array(problem.unknowns.links)
    at_edge = links[(bodies.flat <= objective.low)[:, [0, 4, 5, 6]].any(axis=1)]
    radii = np.linalg.norm(bodies.center - prior.center, axis=1) / objective.scales[:, 1]
    diverging = links[(bodies.mass > MAX_CHANGE * prior.mass) | (radii > MAX_CHANGE)]
    notes = [f'at the edge of consistency: {", ".join(at_edge)}'] if len(at_edge) else []
    if len(diverging):
        notes.append(f'mass or centre of mass diverges: {", ".join(diverging)}')
    if weight is None and _grade(found) is not Grade.OPTIMAL:
        now = problem.mean_square(x)
        least = problem.mean_square(RowSpace.of(problem.factor).solve(problem.target))
        notes.append(
            f'relative gradient {found.optimality:.1g}; mean square {now:.6g}, of least squares '
            f'{least:.6g}'
        )
    return notes
