# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Identification on the manifold of consistent parameters [M 20-24].

    minimise  1/2 mean((factor x - target)^2)  +  weight * sum of log-det divergences to the prior

over mass m, centre of mass c and a lower triangle B of each link, with ``B B' + floor`` its
central second moments: all values with a positive mass are consistent. Steps are damped Newton's
with exact second derivatives from the prior on, so that the answer is usable whenever a budget
ends; bounds hold coordinates that descend to them [Bertsekas 1982]. Links that stay inside the
cone move along lines of their parameters, in which the equations are linear. Without a prior, as
in (M 21), the minimum may be at a link without extension (B singular) or at infinity (a diverging
mass).
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
from inertial_estimation.identification.solvers.coordinates import (
    deviations_at,
    deviations_of_equations,
    extra_sizes,
    require_weight,
    times_maps,
)
from inertial_estimation.identification.solvers.divergence import (
    entropic_divergence,
    entropic_gradient,
    entropic_hessian,
    parameters_of,
    symmetric,
    whitening,
)
from inertial_estimation.identification.solvers.linear_bounds import require_order
from inertial_estimation.model.inertia import principal_axes

OPTIMAL = 1e-7
"""Relative gradient of an optimal answer."""
ROUND_OFF = 1e-13
"""Relative gradient below which further steps are round-off."""
DAMPING, MIN_DAMPING, MAX_DAMPING = 1e-1, 1e-14, 1e12
"""Of steps, over the diagonal of the Hessian."""
MIN_CURVATURE = 1e-6
"""Least element of that diagonal, over its mean."""
RESOLUTION = 1e-12
"""Decrease of the objective, over its value, below which the gradient decides."""
EDGE_SHARE = 0.3
"""Share of its least second moment that a link keeps in a step along a line."""
MIN_EIGENVALUE = 1e-9
"""Least eigenvalue of a link over its prior, where deviations are evaluated."""
MAX_CHANGE = 10.0
"""Mass over the prior's, or distance of the centre over its radius of gyration, of a note."""
MIN_MASS_SHARE, MIN_MOMENT_SHARE = 1e-3, 1e-6
"""Shares of the prior's mass and mean second moment that a link keeps: strict consistency."""
_ROW, _COLUMN = np.tril_indices(3)
_SAME_COLUMN = _COLUMN[:, None] == _COLUMN
_DUAL = parameters_of(np.eye(16).reshape(16, 4, 4)).T.reshape(10, 4, 4)
_DUAL = (_DUAL + np.swapaxes(_DUAL, 1, 2)) / 2
"""Parameter k is the inner product of _DUAL[k] and the pseudo-inertia."""


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
    best, used, stuck = _descend(objective, max_iterations)
    x = objective.unknowns(best.y)
    grade = Grade.INACCURATE if stuck else Grade.STOPPED
    return Identification(
        method='manifold',
        unknowns=problem.unknowns,
        x=x,
        deviations=_deviations(problem, x, weight, noise),
        rank=numerical_rank(problem.factor.T @ problem.factor),
        mean_square=problem.mean_square(x),
        optimality=best.optimality,
        grade=Grade.OPTIMAL if best.optimality <= OPTIMAL else grade,
        iterations=used,
        solve_time=perf_counter() - start,
        notes=_notes(objective, best.y),
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


def _notes(objective: ManifoldObjective, y: Array) -> tuple[str, ...]:
    """Return links at or beyond what a real link has."""
    mass, center, B = objective.split(y)
    own = objective.scales.reshape(-1, 10)
    links, least = np.array(objective.problem.unknowns.links), own[:, 4] ** 2 * MIN_MOMENT_SHARE
    far = np.linalg.norm(center - objective.split(objective.start)[1], axis=1) / own[:, 1]
    thin = np.linalg.eigvalsh(B @ np.swapaxes(B, 1, 2))[:, 0] <= least
    which = {
        'at the edge of consistency': thin | (mass <= MIN_MASS_SHARE * own[:, 0]),
        'mass or centre of mass diverges': (mass > MAX_CHANGE * own[:, 0]) | (far > MAX_CHANGE),
    }
    return tuple(f'{text}: {", ".join(links[one])}' for text, one in which.items() if one.any())


class Place(NamedTuple):
    """Coordinates y (n,) with the objective and its derivatives."""

    y: Array
    value: float
    gradient: Array
    """Shape (n,)."""
    hessian: Array
    """Shape (n, n); may be indefinite."""
    convex: Array
    """The same without the curvature of the manifold [Gauss-Newton]; never indefinite."""
    free: Mask
    """Coordinates that no bound holds, shape (n,)."""
    optimality: float
    """Gradient of free coordinates, each over the size of its column, over the target."""


@dataclass(frozen=True, eq=False)
class ManifoldObjective:
    """
    Objective with its first two derivatives.

    Coordinates of a link are mass, centre of mass and B in units of the prior's mass, radius of
    gyration and root of its mean second moment; other unknowns are over their scales.
    """

    problem: Problem
    weight: float
    """Of the divergence to the prior; may be zero."""
    scales: Array
    """Shape (10 n_links,)."""
    floor: Array
    """Second moment that every link has along all axes, shape (n_links,)."""
    extra_scales: Array
    """Shape (n_extras,)."""
    known: Mask
    """Other unknowns with a prior, shape (n_extras,)."""
    start: Array
    """The prior within the bounds, shape (n,)."""
    low: Array
    """Shape (n,)."""
    high: Array
    lengths: Array
    """Of the columns of the equations at the start, shape (n,)."""

    @classmethod
    def of(cls, problem: Problem, weight: float) -> ManifoldObjective:
        """Return the objective."""
        mass, _, _, moments = principal_axes(problem.prior)
        mean = moments.mean(axis=1)
        floor = np.minimum(MIN_MOMENT_SHARE * mean, moments[:, 0] / 2)
        units = np.column_stack([mass, np.sqrt(3 * mean / mass), np.sqrt(mean)])
        scales = np.repeat(units, (1, 3, 6), axis=1)
        low, high = np.full(scales.shape, -np.inf), np.full(scales.shape, np.inf)
        low[:, 0], bounds = MIN_MASS_SHARE * mass, problem.bounds
        if bounds.mass is not None:
            high[:, 0] = bounds.mass[:, 1]
            # A known mass may be less than the share of the prior's.
            low[:, 0] = np.minimum(np.maximum(low[:, 0], bounds.mass[:, 0]), high[:, 0])
        if bounds.center_of_mass is not None:
            low[:, 1:4], high[:, 1:4] = np.moveaxis(bounds.center_of_mass, 1, 0)
        sizes, known = extra_sizes(problem)
        extras = problem.prior_point()[problem.unknowns.n_inertial :]
        limits = np.tile([-np.inf, np.inf], (len(extras), 1))
        if bounds.extras is not None:
            limits = bounds.extras
        below, above = (
            np.concatenate([(of_links / scales).reshape(-1), of_extras / sizes])
            for of_links, of_extras in ((low, limits[:, 0]), (high, limits[:, 1]))
        )
        start = np.append(_coordinates(problem.prior, floor) / scales, extras / sizes)
        start = np.clip(start, below, above)
        found = cls(
            problem,
            weight,
            scales.reshape(-1),
            floor,
            sizes,
            known,
            start,
            below,
            above,
            0 * start,
        )
        return replace(found, lengths=np.sqrt(np.diag(found.place(start).convex)))

    def split(self, y: Array) -> tuple[Array, Array, Array]:
        """Return masses (n_links,), centres of mass (n_links, 3) and triangles (n_links, 3, 3)."""
        own = (y[: len(self.scales)] * self.scales).reshape(-1, 10)
        B = np.zeros((len(own), 3, 3))
        B[:, _ROW, _COLUMN] = own[:, 4:]
        return own[:, 0], own[:, 1:4], B

    def unknowns(self, y: Array) -> Array:
        """Return the unknowns, (n,), of coordinates, (n,)."""
        mass, center, B = self.split(y)
        J = np.zeros((len(mass), 4, 4))
        J[:, :3, :3] = B @ np.swapaxes(B, 1, 2) + self.floor[:, None, None] * np.eye(3)
        e = np.pad(center, ((0, 0), (0, 1)), constant_values=1.0)
        J += mass[:, None, None] * e[:, :, None] * e[:, None]
        extras = y[len(self.scales) :] * self.extra_scales
        return self.problem.unknowns.join(parameters_of(J), extras)

    def moved(self, y: Array, step: Array, free: Mask) -> Array:
        """Return where a step leads, within the bounds; all (n,), free: held by no bound."""
        size, there = len(self.scales), np.clip(y + step, self.low, self.high)
        own, here = (one[:size].reshape(-1, 10) for one in (there, self.unknowns(y)))
        line = here + np.einsum('lij,lj->li', self._jacobian(y), step[:size].reshape(-1, 10))
        inside = line[:, 0] > 0.0
        line[~inside] = here[~inside]
        # Along the line of its parameters a link would leave the bounds that hold a coordinate.
        inside &= free[:size].reshape(-1, 10).all(axis=1)
        least, before = (principal_axes(one)[3][:, 0] - self.floor for one in (line, here))
        inside &= least > EDGE_SHARE * before
        line[~inside] = self.problem.prior[~inside]
        straight = _coordinates(line, self.floor) / self.scales.reshape(-1, 10)
        low, high = (one[:size].reshape(-1, 10) for one in (self.low, self.high))
        inside &= ((straight >= low) & (straight <= high)).all(axis=1)
        own[inside] = straight[inside]
        return there

    def value(self, y: Array) -> float:
        """Return the objective."""
        x = self.unknowns(y)
        value = self.problem.mean_square(x) / 2
        if self.weight > 0.0:
            far = entropic_divergence(self.problem.unknowns.split(x)[0], self.problem.prior)
            moved = self._moved_extras(x)
            value += self.weight * float(np.sum(far) + moved @ moved / 2)
        return value

    def _moved_extras(self, x: Array) -> Array:
        """Return how far other unknowns with a prior are from it, scaled, (n_extras,)."""
        moved = (x - self.problem.prior_point())[len(self.scales) :]
        return np.asarray(self.known * moved / self.extra_scales)

    def place(self, y: Array) -> Place:
        """Return the objective and its derivatives."""
        problem, size, x = self.problem, len(self.scales), self.unknowns(y)
        by_x = problem.factor.T @ (problem.factor @ x - problem.target) / problem.count
        by_link, T = by_x[:size].reshape(-1, 10), self._jacobian(y)
        rows = times_maps(problem.factor, T, np.diag(self.extra_scales))
        convex = rows.T @ rows / problem.count
        columns, others = np.arange(size).reshape(-1, 10), np.arange(size, len(y))
        blocks = columns[:, :, None], columns[:, None, :]
        if self.weight > 0.0:
            into = np.linalg.inv(whitening(problem.prior))
            moved = (x[:size].reshape(-1, 10) - problem.prior)[..., None]
            S, into_y = symmetric((into @ moved)[..., 0]), into @ T
            pull = np.einsum('lji,lj->li', into, entropic_gradient(S))
            by_link = by_link + self.weight * pull
            convex[blocks] += (
                self.weight * np.swapaxes(into_y, 1, 2) @ entropic_hessian(S) @ into_y
            )
            convex[others, others] += self.weight * self.known
        hessian = convex.copy()
        hessian[blocks] += self._bending(y, by_link)
        rest = by_x[size:] * self.extra_scales + self.weight * self._moved_extras(x)
        gradient = np.append(np.einsum('lki,lk->li', T, by_link), rest)
        held = ((y <= self.low) & (gradient > 0.0)) | ((y >= self.high) & (gradient < 0.0))
        value = self.value(y)
        target = np.sqrt(float(problem.target @ problem.target) / problem.count + 2 * value)
        lengths = np.maximum(self.lengths, np.sqrt(np.diag(convex)))
        moving = ~held & (lengths > 0.0)
        optimality = float(np.linalg.norm(gradient[moving] / lengths[moving])) / (target or 1.0)
        return Place(y, value, gradient, hessian, convex, ~held, optimality)

    def _jacobian(self, y: Array) -> Array:
        """Return the derivatives of inertial parameters by coordinates, (n_links, 10, 10)."""
        mass, center, B = self.split(y)
        e, axes = np.pad(center, ((0, 0), (0, 1)), constant_values=1.0), np.eye(4)
        # J = m e e' + B B', of which each derivative is a b' + b a'.
        a = np.empty((len(mass), 10, 4))
        b = np.zeros((len(mass), 10, 4))
        a[:, 0], b[:, 0] = e / 2, e
        a[:, 1:4], b[:, 1:4] = axes[:3], mass[:, None, None] * e[:, None]
        a[:, 4:], b[:, 4:, :3] = axes[_ROW], np.swapaxes(B, 1, 2)[:, _COLUMN]
        half = a[..., :, None] * b[..., None, :]
        T = np.swapaxes(parameters_of(half + np.swapaxes(half, -1, -2)), 1, 2)
        return np.asarray(T * self.scales.reshape(-1, 1, 10))

    def _bending(self, y: Array, gradient: Array) -> Array:
        """Return the Hessian by the curvature of the manifold, (n_links, 10, 10)."""
        mass, center, _ = self.split(y)
        G = np.einsum('lk,kij->lij', gradient, _DUAL)
        bend, scales = np.zeros((len(mass), 10, 10)), self.scales.reshape(-1, 10)
        mixed = 2.0 * (np.einsum('lij,lj->li', G[:, :3, :3], center) + G[:, :3, 3])
        bend[:, 0, 1:4] = bend[:, 1:4, 0] = mixed
        bend[:, 1:4, 1:4] = 2.0 * mass[:, None, None] * G[:, :3, :3]
        bend[:, 4:, 4:] = 2.0 * _SAME_COLUMN * G[:, _ROW[:, None], _ROW]
        return np.asarray(bend * scales[:, :, None] * scales[:, None])


def _coordinates(parameters: Array, floor: Array) -> Array:
    """Return mass, centre of mass and B of links with larger second moments, (n_links, 10)."""
    mass, center, axes, moments = principal_axes(parameters)
    halves = np.sqrt(np.maximum(moments - floor[:, None], 0.0))
    R = np.asarray(np.linalg.qr(halves[:, :, None] * np.swapaxes(axes, 1, 2), mode='r'))
    return np.column_stack([mass, center, np.swapaxes(R, 1, 2)[:, _ROW, _COLUMN]])


def _descend(objective: ManifoldObjective, budget: int) -> tuple[Place, int, bool]:
    """Return the best place, the steps to it, and whether no step from there was better."""
    place, damping, used = objective.place(objective.start), DAMPING, 0
    while used < budget and place.optimality > ROUND_OFF:
        used += 1
        there, gain = _tried(objective, place, damping)
        if there is None:
            if damping > MAX_DAMPING:
                return place, used, True
            damping *= 10.0
            continue
        if gain > 0.75:
            damping = max(damping / 10.0, MIN_DAMPING)
        elif gain < 0.25:
            damping *= 4.0
        place = there
    return place, used, False


def _tried(
    objective: ManifoldObjective, place: Place, damping: float
) -> tuple[Place | None, float]:
    """
    Return where a damped step leads, None if nothing is better there.

    Also its decrease over the predicted one.
    """
    from scipy.linalg.lapack import dposv

    free, step = np.flatnonzero(place.free), np.zeros_like(place.y)
    sizes = np.maximum(objective.lengths**2, np.diag(place.convex))[free]
    sizes = np.maximum(sizes, MIN_CURVATURE * sizes.mean())
    for matrix in (place.hessian, place.convex):
        H = matrix[np.ix_(free, free)]
        H[range(len(free)), range(len(free))] += damping * sizes
        _, step[free], failed = dposv(H, -place.gradient[free])
        if not failed:
            break
    else:
        return None, 0.0
    y = objective.moved(place.y, step, place.free)
    taken = np.clip(place.y + step, objective.low, objective.high) - place.y
    expected = -float(place.gradient @ taken + taken @ place.convex @ taken / 2)
    if expected > RESOLUTION * place.value:
        gain = (place.value - objective.value(y)) / expected
        return (objective.place(y) if gain > 0.0 else None), gain
    there = objective.place(y)
    return (there if there.optimality < place.optimality else None), 1.0
