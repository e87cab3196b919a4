# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Search for motions within limits whose efforts tell most of what a robot weighs [S 5.2.2].

A finite Fourier series that starts and ends at rest is drawn at random, kept within its limits by
a barrier, and made better by the gradient of the condition number; again from other starts, as
there are many local minima. Positions, velocities and accelerations are linear in the
coefficients, so the limits are too; they are held at even instants, with what a series may
overshoot in between taken off, and so they hold everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError
from inertial_estimation.identification.excitation import EffortRegressor
from inertial_estimation.identification.fourier import FourierBasis, FourierMotion
from inertial_estimation.identification.barrier_descent import LinearLimits, Value, minimise_inside
from inertial_estimation.model.joint_limits import JointLimits

Array = NDArray[np.float64]

STAGES = ((4.0, 0.3), (8.0, 0.1), (16.0, 0.03), (32.0, 0.01), (64.0, 0.003))
"""Sharpness of the condition number and weight of the barrier, one after the other."""
JUDGED, HELD = 20, 40
"""Instants for each harmonic at which the rows are taken, and at which limits are held."""
SIGN_WIDTH = 0.07
"""Of the smooth sign of a velocity, as a share of the velocity's limit."""
FIRST = 0.9
"""Share of its limits that a random start uses at most."""
OFF_CENTRE = 0.3
"""Share of the room around the middle in which a random start has its centre."""
POSTURES, HALVINGS = 200, 12
"""Random postures that are tried, and how often a start is made smaller, to be free."""


class Clearance(Protocol):
    """How far the parts of a robot are from each other."""

    def penalty(self, positions: Array) -> Value:
        """Return what nearness costs, infinite at contact, and its gradient, (n, n_joints)."""

    def complaint(self, positions: Array) -> str:
        """Say what touches or comes too near, nothing if all is free."""


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
    """
    What is searched for.

    Raises
    ------
    ConfigError
        If there is no start, or no time.

    """

    regressor: EffortRegressor
    limits: JointLimits
    basis: FourierBasis
    clearance: Clearance | None = None
    """Default: parts of the robot may be anywhere."""
    starts: int = 3
    seconds: float = 60.0
    """No start is begun, and none continued, after that long."""
    seed: int = 0
    progress: Callable[[str, float], None] = field(default=lambda what, done: None)
    """Told what is done, and how much of it, 0 to 1."""

    def __post_init__(self) -> None:
        """Raise unless the numbers make sense."""
        if self.starts < 1:
            raise ConfigError(f'there are {self.starts} starts, expected one or more')
        if not self.seconds > 0.0:
            raise ConfigError(f'there are {self.seconds} s to search, expected more than none')

    def run(self) -> list[Attempt]:
        """
        Search from each start.

        Returns
        -------
        list of Attempt
            The best one first. The first start is always begun: what it comes to is within the
            limits, whenever it is ended.

        Raises
        ------
        ConfigError
            If no free posture is found within the limits.

        """
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
        matrices = self.basis.matrices(self.basis.instants(JUDGED * self.basis.harmonics))

        def judged(x: Array, sharpness: float) -> tuple[float, Value]:
            motion = matrices @ space.coefficients(x).T
            found = self.regressor.judge(motion, sharpness, SIGN_WIDTH * self.limits.velocity)
            slopes = np.einsum('dnj,dnk->jk', found.slopes, matrices)
            return found.condition, Value(found.bound, space.to_unit(slopes))

        start = self._motion(x, space)
        done = 0
        for stage, (sharpness, weight) in enumerate(STAGES):
            share = (number + stage / len(STAGES)) / self.starts
            self.progress('searching', share)
            if time.monotonic() >= end and stage:
                break
            x = minimise_inside(
                lambda x, P=sharpness: self._with_clearance(x, judged(x, P)[1], space),  # type: ignore[misc]
                space.limits,
                x,
                weight,
                stop=lambda: time.monotonic() >= end,
            )
            done = stage + 1
        complete = done == len(STAGES) and time.monotonic() < end
        condition = judged(x, STAGES[-1][0])[0]
        return Attempt(start, self._motion(x, space), condition, complete)

    def _motion(self, x: Array, space: _Space) -> FourierMotion:
        """Return the motion of a point."""
        return FourierMotion(self.basis, self.limits.joint_names, space.coefficients(x))

    def _start(self, rng: np.random.Generator, space: _Space) -> Array:
        """Return a random point within the limits and free of contact."""
        complaint = ''
        for _ in range(POSTURES):
            x = np.zeros(space.shape)
            x[:, -1] = rng.uniform(-OFF_CENTRE, OFF_CENTRE, len(x))
            swing = rng.normal(size=x.shape)
            swing[:, -1] = 0.0
            swing *= FIRST * space.room(x, swing)[:, None]
            complaint = self._complaint(x, space)
            if complaint:
                continue
            for _ in range(HALVINGS):
                if not self._complaint(x + swing, space):
                    return x + swing
                swing /= 2.0
        raise ConfigError(
            f'no motion within the limits is free in {POSTURES} random postures: {complaint}; '
            'widen the limits, or leave out geometry that always touches'
        )

    def _complaint(self, x: Array, space: _Space) -> str:
        """Return what touches on the way."""
        if self.clearance is None:
            return ''
        return self.clearance.complaint(space.held @ space.coefficients(x).T)

    def _with_clearance(self, x: Array, value: Value, space: _Space) -> Value:
        """Return a value with what nearness costs."""
        if self.clearance is None:
            return value
        cost = self.clearance.penalty(space.held @ space.coefficients(x).T)
        slopes = space.to_unit(cost.gradient.T @ space.held)
        return Value(value.value + cost.value, value.gradient + slopes)


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
        scales = np.repeat(limits.velocity[:, None], rest.shape[1], axis=1)
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

    def to_unit(self, slopes: Array) -> Array:
        """Return slopes over a point from those over coefficients."""
        return np.asarray((slopes @ self.basis) * self.scales)

    def room(self, x: Array, swing: Array) -> Array:
        """Return how often each joint's swing fits between a point and its limits."""
        here, further = self.limits.values(x), (self.limits.A @ swing[..., None])[..., 0]
        away = np.maximum(np.abs(further), np.finfo(float).tiny)
        return np.asarray(((1.0 - np.abs(here)) / away).min(axis=1))
