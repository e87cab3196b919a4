# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The objective on the manifold of bodies, and its first two derivatives there [M 21].

Coordinates are scaled: masses over the prior's, centres of mass over its radius of gyration,
second moments over their mean; other unknowns over their scales.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.solvers.divergence import edge, entropic_divergence
from inertial_estimation.identification.solvers.principal_bodies import (
    PAIRS,
    PrincipalBodies,
    bending,
)
from inertial_estimation.model.inertia import pseudo_inertia

Array = NDArray[np.float64]

MIN_MASS_SHARE, MIN_MOMENT_SHARE = 1e-3, 1e-6
"""Shares of the prior's mass and mean second moment that a link keeps: strict consistency."""
EDGE = 1e-3
"""Scaled distance from which on a bound holds a coordinate that is drawn to it."""
EDGE_SHARE = 0.7
"""Share of the way to the edge of the cone that a step goes at most."""
_BASIS = pseudo_inertia(np.eye(10))


class Point(NamedTuple):
    """On the manifold."""

    bodies: PrincipalBodies
    extras: Array
    """Other unknowns, shape (n_extras,)."""


class Slope(NamedTuple):
    """Derivatives at a point, in scaled coordinates."""

    gradient: Array
    """Shape (n,)."""
    hessian: Array
    """Shape (n, n); may be indefinite."""
    convex: Array
    """The same without the curvature of the manifold [Gauss-Newton]; never indefinite."""
    free: NDArray[np.bool_]
    """Coordinates that no bound holds, shape (n,)."""
    gaps: Array
    """How far the others are from their bound, shape (n,)."""

    def straight(self, n_links: int) -> NDArray[np.bool_]:
        """
        Return which links no bound holds; these move along lines of their parameters.

        Returns (n_links,).
        """
        return np.asarray(self.free[: 10 * n_links].reshape(n_links, 10).all(axis=1))


@dataclass(frozen=True, eq=False)
class ManifoldObjective:
    """What is minimised."""

    problem: Problem
    weight: float
    """Of the divergence to the prior; may be zero."""
    scales: Array
    """Of a link's coordinates, as in `PrincipalBodies.jacobian`, shape (n_links, 10)."""
    extra_scales: Array
    """Shape (n_extras,)."""
    pull: Array
    """Second derivative of the priors of other unknowns, scaled, shape (n_extras,)."""
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
            low[:, 0] = np.maximum(low[:, 0], bounds.mass[:, 0])
            high[:, 0] = bounds.mass[:, 1]
            # A known mass may be less than what the prior would keep.
            low[:, 0] = np.minimum(low[:, 0], high[:, 0])
        if bounds.center_of_mass is not None:
            low[:, 1:4], high[:, 1:4] = np.moveaxis(bounds.center_of_mass, 1, 0)
        lengths = np.linalg.norm(problem.factor[:, 10 * n_links :], axis=0)
        given = problem.extra_scales
        known = np.zeros(n_extras, dtype=bool) if given is None else np.isfinite(given)
        free = np.sqrt(problem.count) / np.where(lengths > 0.0, lengths, np.sqrt(problem.count))
        limits = np.tile([-np.inf, np.inf], (n_extras, 1))
        return cls(
            problem,
            weight,
            scales,
            free if given is None else np.where(known, given, free),
            weight * known,
            low,
            high,
            limits if bounds.extras is None else bounds.extras,
        )

    def start(self) -> Point:
        """Return the prior, moved into the bounds."""
        problem = self.problem
        bodies = PrincipalBodies.of(problem.prior).moved(
            np.zeros_like(self.scales), self.low, self.high
        )
        extras = problem.prior_point()[problem.unknowns.n_inertial :]
        return Point(bodies, np.clip(extras, *self.extra_bounds.T))

    def faded(self, weight: float) -> ManifoldObjective:
        """Return the same with another weight of the prior."""
        scales = self.problem.extra_scales
        known = np.zeros(len(self.pull)) if scales is None else 1.0 * np.isfinite(scales)
        return replace(self, weight=weight, pull=weight * known)

    def moved(self, point: Point, step: Array, straight: NDArray[np.bool_]) -> Point:
        """Return where a step leads, within the bounds; step (n,); straight (n_links,)."""
        own = self._of_links(step)
        bodies = point.bodies.moved_straight(own, self.low, self.high, straight)
        extras = point.extras + step[self.scales.size :] * self.extra_scales
        return Point(bodies, np.clip(extras, *self.extra_bounds.T))

    def reach(self, point: Point, step: Array, straight: NDArray[np.bool_]) -> float:
        """
        Return the share of a step that leaves all links that move straight inside the cone.

        step (n,); straight (n_links,).
        """
        if not straight.any():
            return 1.0
        change = np.einsum('lij,lj->li', point.bodies.jacobian, self._of_links(step))
        bodies = pseudo_inertia(point.bodies.parameters[straight])
        return min(1.0, EDGE_SHARE * edge(bodies, pseudo_inertia(change[straight])))

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
        return value + float(self.pull @ self._strayed(point) ** 2) / 2

    def slope(self, point: Point) -> Slope:
        """Return the derivatives of the objective."""
        problem, size = self.problem, self.scales.size
        residual = problem.factor @ self.unknowns(point) - problem.target
        by_x = problem.factor.T @ residual / problem.count
        by_link = by_x[:size].reshape(-1, 10)
        blocks = np.zeros((len(by_link), 10, 10))
        if self.weight > 0.0:
            first, second = _divergence(point.bodies.parameters, problem.prior)
            by_link, blocks = by_link + self.weight * first, self.weight * second
        T = point.bodies.jacobian
        own = np.einsum('lki,lk->li', T, by_link) * self.scales
        gaps = self._gaps(point.bodies, own)
        free = np.isnan(gaps)
        bend = bending(point.bodies, by_link, free)
        bend[free.all(axis=1)] = 0.0
        rows = self._rows(T * self.scales[:, None])
        convex = rows.T @ rows / problem.count
        _add_blocks(convex, np.swapaxes(T, 1, 2) @ blocks @ T, self.scales)
        others = np.arange(size, len(convex))
        convex[others, others] += self.pull
        hessian = convex.copy()
        _add_blocks(hessian, bend, self.scales)
        rest = by_x[size:] * self.extra_scales + self.pull * self._strayed(point)
        gaps_of_extras = _to_bounds(point.extras, self.extra_bounds, rest, np.zeros(len(rest)))
        gaps = np.append(gaps, gaps_of_extras / self.extra_scales)
        return Slope(np.append(own, rest), hessian, convex, np.isnan(gaps), np.nan_to_num(gaps))

    def _strayed(self, point: Point) -> Array:
        """Return how far the other unknowns are from their prior, scaled."""
        n = self.problem.unknowns.n_inertial
        return np.asarray((point.extras - self.problem.prior_point()[n:]) / self.extra_scales)

    def _rows(self, T: Array) -> Array:
        """Return the rows in scaled coordinates."""
        factor, size = self.problem.factor, self.scales.size
        by_link = factor[:, :size].reshape(len(factor), len(T), 10)
        moved = np.swapaxes(np.swapaxes(by_link, 0, 1) @ T, 0, 1).reshape(len(factor), size)
        return np.hstack([moved, factor[:, size:] * self.extra_scales])

    def _gaps(self, bodies: PrincipalBodies, gradient: Array) -> Array:
        """Return scaled steps to the bounds that hold coordinates of links, NaN for free ones."""
        scales = self.scales[:, :7]
        limits = np.stack([self.low, self.high], axis=-1)
        gaps = _to_bounds(bodies.flat, limits, gradient[:, :7], EDGE * scales) / scales
        pairs = np.full((len(gaps), 3), np.nan)
        for k, (i, j) in enumerate(PAIRS):
            # Between two axes without extension there is nothing to turn.
            pairs[~np.isnan(gaps[:, 4 + i] + gaps[:, 4 + j]), k] = 0.0
        return np.column_stack([gaps, pairs])


def _add_blocks(matrix: Array, blocks: Array, scales: Array) -> None:
    """Add blocks of links, in unscaled coordinates, to the diagonal of a matrix."""
    columns = np.arange(scales.size).reshape(scales.shape)
    scaled = blocks * scales[:, :, None] * scales[:, None]
    matrix[columns[:, :, None], columns[:, None, :]] += scaled


def _to_bounds(values: Array, limits: Array, gradient: Array, edge: Array) -> Array:
    """Return the steps to bounds that are near and that the descent heads for, NaN elsewhere."""
    low, high = limits[..., 0], limits[..., 1]
    gaps = np.full(values.shape, np.nan)
    down = (values <= low + edge) & (gradient > 0.0)
    up = (values >= high - edge) & (gradient < 0.0)
    gaps[down], gaps[up] = (low - values)[down], (high - values)[up]
    return gaps


def _divergence(parameters: Array, prior: Array) -> tuple[Array, Array]:
    """Return gradient and Hessian of the entropic divergence by the parameters."""
    J = pseudo_inertia(parameters)
    first = np.linalg.inv(pseudo_inertia(prior)) - np.linalg.inv(J)
    root = np.linalg.inv(np.linalg.cholesky(J))[:, None]
    seen = (root @ _BASIS @ np.swapaxes(root, -1, -2)).reshape(len(J), 10, 16)
    return np.einsum('lij,kij->lk', first, _BASIS), seen @ np.swapaxes(seen, 1, 2)
