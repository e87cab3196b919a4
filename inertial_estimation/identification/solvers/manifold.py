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

from dataclasses import dataclass, replace
from time import perf_counter
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.arguments import require_noise, require_number
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.problem import Grade, Identification, Problem
from inertial_estimation.identification.row_space import numerical_rank
from inertial_estimation.identification.solvers.constraints import require_order
from inertial_estimation.identification.solvers.coordinates import (
    deviations_at,
    deviations_of_equations,
    extra_sizes,
    require_weight,
)
from inertial_estimation.identification.solvers.divergence import (
    edge,
    entropic_divergence,
    symmetric,
    whitening,
)
from inertial_estimation.identification.solvers.principal_bodies import (
    PAIRS,
    PrincipalBodies,
    bending,
)
from inertial_estimation.model.inertia import pseudo_inertia

OPTIMAL = 1e-7
"""Relative gradient of an optimal answer."""
ROUND_OFF = 1e-13
"""Relative gradient below which further steps are round-off."""
DAMPING, MIN_DAMPING, MAX_DAMPING = 1e-3, 1e-14, 1e12
"""Of steps, over the mean of the Hessian's diagonal."""
RESOLUTION = 1e-12
"""Decrease of the objective, over its value, below which the gradient decides."""
FIRST_WEIGHT, FADE, LAST_WEIGHT = 1e-2, 0.2, 1e-10
"""Of the prior that fades, over the objective at the start: first, factor of a stage, last."""
STAGE_DECREASE, STAGE_STEPS = 0.1, 30
"""Predicted decrease of a step, over its weight, and steps after which it fades further."""
MIN_EIGENVALUE = 1e-9
"""Least eigenvalue of a link over its prior, where deviations are evaluated."""
MAX_CHANGE = 10.0
"""Mass over the prior's, or distance of the centre over its radius of gyration, of a note."""
MIN_MASS_SHARE, MIN_MOMENT_SHARE = 1e-3, 1e-6
"""Shares of the prior's mass and mean second moment that a link keeps: strict consistency."""
EDGE = 1e-3
"""Scaled distance from which on a bound holds a coordinate that descends to it."""
EDGE_SHARE = 0.7
"""Share of the way to the edge of the cone that a step may go."""
_BASIS = pseudo_inertia(np.eye(10))


@one_thread()
def solve_manifold(
    problem: Problem,
    *,
    weight: float | None = 1e-2,
    max_iterations: int = 200,
    noise: float | None = None,
) -> Identification:
    """Minimise the objective on the manifold."""
    start = perf_counter()
    require_noise(noise)
    require_number('max_iterations', max_iterations, least=0)
    if weight is not None:
        require_weight(weight)
    bounds, links = problem.bounds, np.array(problem.unknowns.links)
    if bounds.total_mass is not None or bounds.ellipsoids is not None:
        raise ModelError("bounds of 'total_mass' and 'ellipsoids' are none of a coordinate")
    require_order(problem)
    if bounds.mass is not None and not (bounds.mass[:, 1] > 0.0).all():
        names = ', '.join(links[~(bounds.mass[:, 1] > 0.0)])
        raise ModelError(f'the greatest mass must be positive: {names}')
    problem.require_consistent_prior()
    objective = ManifoldObjective.of(problem, weight or 0.0)
    search = _Search(objective, max_iterations)
    stuck, best = search.run(), search.best
    optimality = objective.place(best).optimality
    grade = Grade.INACCURATE if stuck else Grade.STOPPED
    x = objective.unknowns(best)
    return Identification(
        method='manifold',
        unknowns=problem.unknowns,
        x=x,
        deviations=_deviations(problem, x, weight, noise),
        rank=numerical_rank(problem.factor.T @ problem.factor),
        mean_square=problem.mean_square(x),
        optimality=optimality,
        grade=Grade.OPTIMAL if optimality <= OPTIMAL else grade,
        iterations=search.used,
        solve_time=perf_counter() - start,
        notes=tuple(_notes(objective, best.bodies)),
    )


def _deviations(problem: Problem, x: Array, weight: float | None, noise: float | None) -> Array:
    """Return standard deviations as if no link were at a bound, shape (n,)."""
    if weight is None:
        return deviations_of_equations(problem, x, noise)
    moved = x[: problem.unknowns.n_inertial].reshape(-1, 10, 1) - problem.prior[..., None]
    z = np.asarray(np.linalg.solve(whitening(problem.prior), moved), dtype=np.float64)
    shares, axes = np.linalg.eigh(symmetric(z[..., 0]))
    # Round-off may put a link at the edge of the cone outside.
    inside = np.maximum(shares, MIN_EIGENVALUE - 1.0)[:, None]
    shapes = axes * inside @ np.swapaxes(axes, -1, -2)
    return deviations_at(problem, x, weight, noise, shapes=shapes)


def _notes(objective: ManifoldObjective, bodies: PrincipalBodies) -> list[str]:
    """Return links at or beyond what a real link has."""
    problem = objective.problem
    prior, links = PrincipalBodies.of(problem.prior), np.array(problem.unknowns.links)
    radii = np.linalg.norm(bodies.center - prior.center, axis=1) / objective.scales[:, 1]
    which = {
        'at the edge of consistency': (bodies.flat <= objective.low)[:, [0, 4, 5, 6]].any(axis=1),
        'mass or centre of mass diverges': (
            (bodies.mass > MAX_CHANGE * prior.mass) | (radii > MAX_CHANGE)
        ),
    }
    return [f'{text}: {", ".join(links[one])}' for text, one in which.items() if one.any()]


class Point(NamedTuple):
    """On the manifold."""

    bodies: PrincipalBodies
    extras: Array
    """Other unknowns, shape (n_extras,)."""


class Place(NamedTuple):
    """A point with its objective and derivatives in scaled coordinates."""

    point: Point
    value: float
    gradient: Array
    """Shape (n,)."""
    hessian: Array
    """Shape (n, n); may be indefinite."""
    convex: Array
    """The same without the curvature of the manifold [Gauss-Newton]; never indefinite."""
    free: Mask
    """Coordinates that no bound holds, shape (n,)."""
    gaps: Array
    """Distances of the others to their bound, shape (n,)."""
    optimality: float
    """Gradient of free coordinates, each over the size of its column, over the target."""


@dataclass(frozen=True, eq=False)
class ManifoldObjective:
    """
    Objective with its first two derivatives.

    Coordinates are scaled: masses over the prior's, centres of mass over its radius of gyration,
    second moments over their mean; other unknowns over their scales.
    """

    problem: Problem
    weight: float
    """Of the divergence to the prior; may be zero."""
    scales: Array
    """Of a link's coordinates, as in `PrincipalBodies.jacobian`, shape (n_links, 10)."""
    extra_scales: Array
    """Shape (n_extras,)."""
    known: Mask
    """Other unknowns with a prior, shape (n_extras,)."""
    low: Array
    """Of mass, centre of mass and second moments, shape (n_links, 7)."""
    high: Array
    extra_bounds: Array
    """Shape (n_extras, 2)."""

    @classmethod
    def of(cls, problem: Problem, weight: float) -> ManifoldObjective:
        """Return the objective."""
        prior = PrincipalBodies.of(problem.prior)
        n_links, n_extras = len(prior.mass), len(problem.unknowns.extras)
        mean = prior.moments.mean(axis=1)
        scales = np.empty((n_links, 10))
        scales[:, 0] = prior.mass
        scales[:, 1:4] = np.sqrt(3 * mean / prior.mass)[:, None]
        scales[:, 4:] = mean[:, None]
        low, high = np.full((n_links, 7), -np.inf), np.full((n_links, 7), np.inf)
        low[:, 0], low[:, 4:] = MIN_MASS_SHARE * prior.mass, MIN_MOMENT_SHARE * mean[:, None]
        bounds = problem.bounds
        if bounds.mass is not None:
            high[:, 0] = bounds.mass[:, 1]
            # A known mass may be less than the share of the prior's.
            low[:, 0] = np.minimum(np.maximum(low[:, 0], bounds.mass[:, 0]), high[:, 0])
        if bounds.center_of_mass is not None:
            low[:, 1:4], high[:, 1:4] = np.moveaxis(bounds.center_of_mass, 1, 0)
        limits = np.tile([-np.inf, np.inf], (n_extras, 1))
        if bounds.extras is not None:
            limits = bounds.extras
        return cls(problem, weight, scales, *extra_sizes(problem), low, high, limits)

    @property
    def start(self) -> Point:
        """The prior, moved into the bounds."""
        still = np.zeros_like(self.scales)
        bodies = PrincipalBodies.of(self.problem.prior).moved(still, self.low, self.high)
        extras = self.problem.prior_point()[self.problem.unknowns.n_inertial :]
        return Point(bodies, np.clip(extras, *self.extra_bounds.T))

    def straight(self, place: Place) -> Mask:
        """Return which links no bound holds: these move along lines of their parameters."""
        return np.asarray(place.free[: self.scales.size].reshape(-1, 10).all(axis=1))

    def moved(self, point: Point, step: Array, straight: Mask) -> Point:
        """Return where a step leads, within the bounds; step (n,); straight (n_links,)."""
        own = self._of_links(step)
        bodies = point.bodies.moved_straight(own, self.low, self.high, straight)
        extras = point.extras + step[self.scales.size :] * self.extra_scales
        return Point(bodies, np.clip(extras, *self.extra_bounds.T))

    def reach(self, point: Point, step: Array, straight: Mask) -> float:
        """Return the share of a step that leaves all links that move straight consistent."""
        if not straight.any():
            return 1.0
        change = np.einsum('lij,lj->li', point.bodies.jacobian, self._of_links(step))
        root = np.linalg.cholesky(pseudo_inertia(point.bodies.parameters[straight]))
        return min(1.0, EDGE_SHARE * edge(root, pseudo_inertia(change[straight])))

    def _of_links(self, step: Array) -> Array:
        """Return the part of a step that links take, unscaled, shape (n_links, 10)."""
        return np.asarray(step[: self.scales.size].reshape(self.scales.shape) * self.scales)

    def unknowns(self, point: Point) -> Array:
        """Return the unknowns of a point; returns (n,)."""
        return self.problem.unknowns.join(point.bodies.parameters, point.extras)

    def value(self, point: Point) -> float:
        """Return the objective."""
        value = self.problem.mean_square(self.unknowns(point)) / 2
        if self.weight > 0.0:
            far = entropic_divergence(point.bodies.parameters, self.problem.prior)
            value += self.weight * float(np.sum(far))
        return value + self.weight * float(self.known @ self._moved_extras(point) ** 2) / 2

    def place(self, point: Point) -> Place:
        """Return the objective and its derivatives."""
        problem, size = self.problem, self.scales.size
        residual = problem.factor @ self.unknowns(point) - problem.target
        by_x = problem.factor.T @ residual / problem.count
        by_link = by_x[:size].reshape(-1, 10)
        blocks = np.zeros((len(by_link), 10, 10))
        if self.weight > 0.0:
            J = pseudo_inertia(point.bodies.parameters)
            first = np.linalg.inv(pseudo_inertia(problem.prior)) - np.linalg.inv(J)
            by_link = by_link + self.weight * np.einsum('lij,kij->lk', first, _BASIS)
            root = np.linalg.inv(np.linalg.cholesky(J))[:, None]
            seen = (root @ _BASIS @ np.swapaxes(root, -1, -2)).reshape(len(J), 10, 16)
            blocks = self.weight * seen @ np.swapaxes(seen, 1, 2)
        T = point.bodies.jacobian * self.scales[:, None]
        own = np.einsum('lki,lk->li', T, by_link)
        gaps = self._gaps(point.bodies, own)
        free = np.isnan(gaps)
        bend = (
            bending(point.bodies, by_link, free) * self.scales[:, :, None] * self.scales[:, None]
        )
        bend[free.all(axis=1)] = 0.0
        by_links = problem.factor[:, :size].reshape(len(problem.factor), len(T), 10)
        rows = np.swapaxes(np.swapaxes(by_links, 0, 1) @ T, 0, 1).reshape(-1, size)
        rows = np.hstack([rows, problem.factor[:, size:] * self.extra_scales])
        convex = rows.T @ rows / problem.count
        columns = np.arange(size).reshape(-1, 10)
        square = columns[:, :, None], columns[:, None, :]
        convex[square] += np.swapaxes(T, 1, 2) @ blocks @ T
        others = np.arange(size, len(convex))
        convex[others, others] += self.weight * self.known
        hessian = convex.copy()
        hessian[square] += bend
        rest = by_x[size:] * self.extra_scales
        rest += self.weight * self.known * self._moved_extras(point)
        low, high = self.extra_bounds.T
        of_extras = _to_bounds(point.extras, low, high, rest, np.zeros(len(rest)))
        gaps = np.append(gaps, of_extras / self.extra_scales)
        gradient, free, value = np.append(own, rest), np.isnan(gaps), self.value(point)
        target = np.sqrt(float(problem.target @ problem.target) / problem.count + 2 * value)
        lengths = np.sqrt(np.diag(convex))
        moving = free & (lengths > 0.0)
        optimality = float(np.linalg.norm(gradient[moving] / lengths[moving])) / (target or 1.0)
        return Place(
            point, value, gradient, hessian, convex, free, np.nan_to_num(gaps), optimality
        )

    def _moved_extras(self, point: Point) -> Array:
        """Return how far the other unknowns are from their prior, scaled."""
        n = self.problem.unknowns.n_inertial
        return np.asarray((point.extras - self.problem.prior_point()[n:]) / self.extra_scales)

    def _gaps(self, bodies: PrincipalBodies, gradient: Array) -> Array:
        """Return scaled steps to the bounds that hold coordinates of links, NaN for free ones."""
        scales = self.scales[:, :7]
        gaps = _to_bounds(bodies.flat, self.low, self.high, gradient[:, :7], EDGE * scales)
        pairs = np.full((len(gaps), 3), np.nan)
        for k, (i, j) in enumerate(PAIRS):
            # Between two axes without extension there is nothing to turn.
            pairs[~np.isnan(gaps[:, 4 + i] + gaps[:, 4 + j]), k] = 0.0
        return np.column_stack([gaps / scales, pairs])


def _to_bounds(values: Array, low: Array, high: Array, gradient: Array, near: Array) -> Array:
    """Return the steps to bounds that are near and that the descent heads for, NaN elsewhere."""
    gaps = np.full(values.shape, np.nan)
    down = (values <= low + near) & (gradient > 0.0)
    up = (values >= high - near) & (gradient < 0.0)
    gaps[down], gaps[up] = (low - values)[down], (high - values)[up]
    return gaps


class _Search:
    """Descent to the minimum."""

    def __init__(self, goal: ManifoldObjective, max_iterations: int) -> None:
        self.goal, self.max_iterations = goal, max_iterations
        self.best = self.point = goal.start
        self.least = goal.value(self.best)
        self.used, self.damping = 0, DAMPING

    def run(self) -> bool:
        """Descend until nothing improves, or the budget ends; return whether it got stuck."""
        # A heavy prior fades to its weight, so that no link is at the edge too soon.
        weight, last = FIRST_WEIGHT * self.least, LAST_WEIGHT * self.least
        while weight > max(self.goal.weight, last) and self.used < self.max_iterations:
            faded = replace(self.goal, weight=weight)
            self._descend(faded, STAGE_DECREASE * weight, STAGE_STEPS)
            if self.goal.place(self.point).optimality <= OPTIMAL:
                break
            weight *= FADE
        self.point = self.best
        return self._descend(self.goal, 0.0, self.max_iterations)

    def _descend(self, objective: ManifoldObjective, enough: float, most: int) -> bool:
        """
        Take steps until one would decrease the objective by no more than enough, if that is not 0.
        """
        place, damping = objective.place(self.point), min(self.damping, DAMPING)
        last, done, stuck = min(self.used + most, self.max_iterations), False, False
        while self.used < last and place.optimality > ROUND_OFF and not done:
            self.used += 1
            there, gain, expected, whole = _tried(objective, place, damping)
            if there is None:
                # Along a curved boundary small steps go on for ever.
                done = stuck = place.optimality <= OPTIMAL or damping > MAX_DAMPING
                damping *= 10.0
                continue
            # Far from the answer the quadratic model may promise nothing where much can be had.
            done = enough > 0.0 and whole and expected <= enough
            if gain > 0.75:
                damping = max(damping / 10.0, MIN_DAMPING)
            elif gain < 0.25:
                damping *= 4.0
            place = there
            value = self.goal.value(place.point)
            # No worse than the best one but for round-off.
            if value <= self.least * (1.0 + RESOLUTION):
                self.best, self.least = place.point, min(value, self.least)
        self.point, self.damping = place.point, damping
        return stuck


def _tried(
    objective: ManifoldObjective, place: Place, damping: float
) -> tuple[Place | None, float, float, bool]:
    """
    Return where a step leads, None if nothing is better there.

    Also its decrease over the predicted one, that one, and whether no edge cut the step short.
    """
    step = _step(place, damping)
    if step is None:
        return None, 0.0, 0.0, False
    straight = objective.straight(place)
    reach = objective.reach(place.point, step, straight)
    step *= reach
    expected = -float(place.gradient @ step + step @ place.convex @ step / 2)
    point, gain = objective.moved(place.point, step, straight), 1.0
    if expected > RESOLUTION * place.value:
        gain = (place.value - objective.value(point)) / expected
    there = objective.place(point) if gain > 0.0 else None
    if expected <= RESOLUTION * place.value and there and there.optimality >= place.optimality:
        there = None
    return there, gain, expected, reach == 1.0


def _step(place: Place, damping: float) -> Array | None:
    """Return a damped step along the free coordinates, None if the damping is too weak."""
    from scipy.linalg.lapack import dposv

    free = np.flatnonzero(place.free)
    # A bound that is near is reached at once, unless damping shortens steps.
    step = place.gaps / (1.0 + damping)
    right = -(place.gradient + place.hessian @ step)[free]
    size = float(np.abs(np.diag(place.convex)).mean()) or 1.0
    for matrix in (place.hessian, place.convex):
        H = matrix[np.ix_(free, free)]
        H[range(len(free)), range(len(free))] += damping * size
        _, solution, failed = dposv(H, right)
        if not failed:
            step[free] = solution
            return step
    return None
