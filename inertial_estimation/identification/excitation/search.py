# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Search for motions within limits with the least condition number [S 5.2.2].

A random finite Fourier series that starts and ends at rest descends the gradient of the condition
number inside a barrier of its limits; several starts, as there are many local minima. Limits on
positions, velocities and accelerations are linear in the coefficients. They hold at even samples,
reduced by the overshoot of a series in between, and so everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import CallError, ConfigError
from inertial_estimation.identification.excitation.barrier_descent import (
    LinearLimits,
    Value,
    minimise_inside,
)
from inertial_estimation.identification.excitation.excitation_regressor import ExcitationRegressor
from inertial_estimation.identification.excitation.fourier import FourierBasis, FourierMotion
from inertial_estimation.model.clearance import SelfClearance
from inertial_estimation.model.joint_limits import JointLimits

Array = NDArray[np.float64]

STAGES = ((4.0, 0.3), (8.0, 0.1), (16.0, 0.03), (32.0, 0.01), (64.0, 0.003))
"""Sharpness of the condition number and weight of the barrier, one after the other."""
JUDGED, HELD = 20, 40
"""Instants for each harmonic at which the rows are taken, and at which limits are held."""
SIGN_WIDTH = 0.07
"""Of the smooth sign of a velocity, as a share of the velocity that the limits allow."""
FIRST = 0.9
"""Share of its limits that a random start uses at most."""
OFF_CENTRE = 0.3
"""Share of the room around the middle in which a random start has its centre, at most."""
POSTURES = 200
"""Random postures that are tried."""
HALVINGS, PATIENCE = 3, 20
"""Halvings of a start that is not free, one more after this many postures."""


ZONE = 0.05
"""Distance beyond the margin from which on nearness costs nothing [m]."""


class Nearest(NamedTuple):
    """The pair of links that come nearest to each other."""

    distance: float
    """Negative where they touch; infinite where nothing comes near [m]."""
    links: str
    """Both names, empty where nothing comes near."""
    instant: int
    """Row of the positions, -1 where nothing comes near."""


@dataclass(frozen=True, eq=False)
class KeepAway:
    """
    Keeps the links of a robot at a margin from each other.

    Of a pair at distance d at one of n instants ``log((d - margin) / zone)^2 / n`` is the cost.
    """

    clearance: SelfClearance
    margin: float
    """[m]"""

    def __post_init__(self) -> None:
        """Raise unless the margin makes sense."""
        if not (np.isfinite(self.margin) and self.margin >= 0.0):
            raise CallError(f'the clearance is {self.margin} m, expected zero or more')

    def penalty(self, positions: Array) -> Value:
        """Return what nearness costs; positions (n, n_joints) [rad or m]."""
        near = self.clearance.near(positions, self.margin + ZONE)
        left = near.distances - self.margin
        gradient = np.zeros_like(positions)
        if len(left) and left.min() <= 0.0:
            return Value(np.inf, gradient)
        inside = left < ZONE
        if not inside.any():
            return Value(0.0, gradient)
        few = near.of(inside)
        logs = np.log(left[inside] / ZONE)
        slopes = 2.0 * logs / left[inside] / len(positions)
        moved = self.clearance.slopes(positions, few)
        np.add.at(gradient, few.instants, slopes[:, None] * moved)
        return Value(float(np.sum(logs**2) / len(positions)), gradient)

    def nearest(self, positions: Array) -> Nearest:
        """Return who comes nearest; positions (n, n_joints)."""
        near = self.clearance.near(positions, self.margin + ZONE)
        if not len(near.distances):
            return Nearest(np.inf, '', -1)
        k = int(near.distances.argmin())
        names = self.clearance.names(int(near.pairs[k]))
        return Nearest(float(near.distances[k]), names, int(near.instants[k]))


_Judge = Callable[[Array, float], tuple[float, Value]]


@dataclass(frozen=True, eq=False)
class Attempt:
    """What came of one random start."""

    start: FourierMotion
    motion: FourierMotion
    condition: float
    """Of the motion as searched for: at few instants and with smooth signs."""
    complete: bool
    """Whether all stages were done before the time was over."""


@dataclass(frozen=True, eq=False)
class ExcitationSearch:
    """What is searched for."""

    regressor: ExcitationRegressor
    limits: JointLimits
    basis: FourierBasis
    clearance: KeepAway | None = None
    starts: int = 3
    seconds: float = 60.0
    """No start is begun, and none continued, after that long."""
    seed: int = 0
    progress: Callable[[str, float], None] = field(default=lambda what, done: None)
    """Told what is done, and how much of it, 0 to 1."""

    def __post_init__(self) -> None:
        """Raise unless the numbers make sense."""
        if self.starts < 1:
            raise CallError(f'there are {self.starts} starts, expected one or more')
        if self.seed < 0:
            raise CallError(f'the seed is {self.seed}, expected zero or more')
        if not self.seconds > 0.0:
            raise CallError(f'the search has {self.seconds} seconds, expected more than none')

    def run(self) -> list[Attempt]:
        """Search from each start."""
        rng = np.random.default_rng(self.seed)
        end = time.monotonic() + self.seconds
        found: list[Attempt] = []
        while len(found) < self.starts and (not found or time.monotonic() < end):
            found.append(self._attempt(rng, end, len(found)))
        self.progress('searching', 1.0)
        return sorted(found, key=lambda attempt: attempt.condition)

    def _attempt(self, rng: np.random.Generator, end: float, number: int) -> Attempt:
        """Search from one random start."""
        space = _Space.of(self.limits, self.basis)
        x = self._start(rng, space)
        judged = self._judge(space)
        start = self._motion(x, space)
        done = 0
        for stage, (sharpness, weight) in enumerate(STAGES):
            self.progress('searching', (number + stage / len(STAGES)) / self.starts)
            if time.monotonic() >= end and stage:
                break
            function = self._function(judged, space, sharpness, weight)
            x = minimise_inside(
                function, space.limits, x, weight, stop=lambda: time.monotonic() >= end
            )
            done = stage + 1
        complete = done == len(STAGES) and time.monotonic() < end
        condition = judged(x, STAGES[-1][0])[0]
        return Attempt(start, self._motion(x, space), condition, complete)

    def _judge(self, space: _Space) -> _Judge:
        """Return what gives the condition number of a point, and its bound with the gradient."""
        matrices = self.basis.matrices(self.basis.instants(JUDGED * self.basis.harmonics))
        widths = SIGN_WIDTH * space.scales[:, 0]

        def judged(x: Array, sharpness: float) -> tuple[float, Value]:
            motion = matrices @ space.coefficients(x).T
            found = self.regressor.judge(motion, sharpness, widths)
            slopes = np.einsum('dnj,dnk->jk', found.slopes, matrices)
            return found.condition, Value(found.bound, space.to_unit(slopes))

        return judged

    def _motion(self, x: Array, space: _Space) -> FourierMotion:
        """Return the motion of a point."""
        return FourierMotion(self.basis, self.limits.joint_names, space.coefficients(x))

    def _start(self, rng: np.random.Generator, space: _Space) -> Array:
        """Return a random point within the limits and free of contact."""
        most: Nearest | None = None
        for tried in range(POSTURES):
            x = np.zeros(space.shape)
            x[:, -1] = OFF_CENTRE * rng.uniform() * rng.uniform(-1.0, 1.0, len(x))
            swing = rng.normal(size=x.shape)
            swing[:, -1] = 0.0
            swing *= FIRST * space.room(x, swing)[:, None]
            if self.clearance is None:
                return x + swing
            nearest = self.clearance.nearest(space.positions(x)[:1])
            if most is None or nearest.distance > most.distance:
                most = nearest
            if nearest.distance <= self.clearance.margin:
                continue
            for _ in range(HALVINGS + tried // PATIENCE):
                free = self.clearance.nearest(space.positions(x + swing)).distance
                if free > self.clearance.margin:
                    return x + swing
                swing /= 2.0
        assert most is not None
        raise ConfigError(
            f'of {POSTURES} random postures within the limits none leaves room: in the best one '
            f'{most.links} are {most.distance:.4f} m apart; ask for less clearance, for other '
            'limits, or ignore this pair'
        )

    def _function(
        self, judged: _Judge, space: _Space, sharpness: float, weight: float
    ) -> Callable[[Array], Value]:
        """Return what a stage minimises: nearness is a barrier too, of the same weight."""

        def function(x: Array) -> Value:
            if self.clearance is None:
                return judged(x, sharpness)[1]
            cost = self.clearance.penalty(space.positions(x))
            if not np.isfinite(cost.value):
                return Value(np.inf, np.zeros_like(x))
            value = judged(x, sharpness)[1]
            slopes = space.to_unit(cost.gradient.T @ space.held)
            return Value(value.value + weight * cost.value, value.gradient + weight * slopes)

        return function


@dataclass(frozen=True, eq=False)
class _Space:
    """Coefficients of motions that start at rest, in shares of what the limits allow."""

    basis: Array
    """Shape (2 L + 1, 2 L - 1), as `FourierBasis.at_rest`."""
    scales: Array
    """Shape (n_joints, 2 L - 1)."""
    middle: Array
    """Shape (n_joints,) [rad or m]."""
    limits: LinearLimits
    held: Array
    """Positions at the instants where limits are held, of all coefficients, (n, 2 L + 1)."""

    @classmethod
    def of(cls, limits: JointLimits, basis: FourierBasis) -> _Space:
        """Return the space of some limits."""
        n = HELD * basis.harmonics
        rest, matrices = basis.at_rest(), basis.matrices(basis.instants(n))
        # A limit that no such motion can reach does not scale it.
        slowest = 2.0 * np.pi / basis.period
        reached = limits.half * slowest * basis.harmonics, limits.acceleration / slowest
        speeds = np.minimum(limits.velocity, np.minimum(*reached))
        scales = np.repeat(speeds[:, None], rest.shape[1], axis=1)
        scales[:, -1] = limits.half
        bounds = np.array([limits.half, limits.velocity, limits.acceleration])
        within = basis.overshoot(n) * (matrices @ rest)[None] / bounds.T[:, :, None, None]
        A = within.reshape(len(scales), -1, rest.shape[1]) * scales[:, None, :]
        return cls(
            rest, scales, limits.middle, LinearLimits(A, np.zeros(A.shape[:2])), matrices[0]
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Of a point."""
        return self.scales.shape[0], self.scales.shape[1]

    def coefficients(self, x: Array) -> Array:
        """Return the coefficients of a point, shape (n_joints, 2 L + 1)."""
        found = (x * self.scales) @ self.basis.T
        found[:, -1] += self.middle
        return np.asarray(found)

    def positions(self, x: Array) -> Array:
        """Return the positions of a point where limits are held, shape (n, n_joints)."""
        return np.asarray(self.held @ self.coefficients(x).T)

    def to_unit(self, slopes: Array) -> Array:
        """Return slopes over a point from those over coefficients."""
        return np.asarray((slopes @ self.basis) * self.scales)

    def room(self, x: Array, swing: Array) -> Array:
        """Return how often each joint's swing fits between a point and its limits."""
        here, further = self.limits.values(x), (self.limits.A @ swing[..., None])[..., 0]
        away = np.maximum(np.abs(further), np.finfo(float).tiny)
        return np.asarray(((1.0 - np.abs(here)) / away).min(axis=1))
