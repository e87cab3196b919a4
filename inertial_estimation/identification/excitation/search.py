# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Search for motions within limits with the least condition number [S section 5.2.2].

Motions are finite Fourier series, known exactly and of little bandwidth [S 78],

    q(t) = q_0 + sum over l = 1..L of  a_l / (w l) sin(w l t) - b_l / (w l) cos(w l t)

A random series that starts and ends at rest descends the gradient of the condition number inside
a barrier of its limits, which is never left, so that a search may be stopped; several starts, as
there are many local minima. Limits on positions, velocities and accelerations are linear in the
coefficients. They hold at even samples, reduced by the overshoot of a series in between, and so
everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import block_diag

from inertial_estimation.arrays import Array
from inertial_estimation.errors import CallError, ConfigError
from inertial_estimation.identification.excitation.excitation_regressor import ExcitationRegressor
from inertial_estimation.model.clearance import SelfClearance
from inertial_estimation.model.joint_limits import JointLimits
from inertial_estimation.model.spatial import apply

MAX_HARMONICS = 500
"""The time of a search grows with the square of their number."""
STAGES = ((4.0, 0.3), (8.0, 0.1), (16.0, 0.03), (32.0, 0.01), (64.0, 0.003))
"""Sharpness of the condition number and weight of the barrier, one after the other."""
CONDITION_SAMPLES, LIMIT_SAMPLES = 20, 40
"""Samples for each harmonic at which equations are taken, and at which limits are held."""
CHECKED = 2000
"""Samples of a period at which a motion is judged."""
SIGN_WIDTH = 0.07
"""Of the smooth sign of a velocity, as a share of the velocity that the limits allow."""
MAX_START = 0.9
"""Share of its limits that a random start uses."""
MAX_OFF_CENTRE = 0.3
"""Share of the room around the middle in which a random start has its centre."""
POSTURES = 200
"""Random postures that are tried."""
HALVINGS, PATIENCE = 3, 20
"""Halvings of a start with a collision, one more after this many postures."""
SUFFICIENT_DECREASE = 1e-4
"""Share of the decrease by the slope that a step must reach."""
MIN_STEP = 1e-8
"""Share of a step below which the search along it is given up."""
MAX_STEPS, MIN_DECREASE = 200, 1e-5
"""Of a stage; decrease of the objective that ends it."""
CURVATURE = 0.3
"""First guess of the second derivative of the condition number's logarithm."""

Function = Callable[[Array], tuple[float, Array]]
"""Value, infinite where it must not go, and gradient."""


@dataclass(frozen=True)
class FourierBasis:
    """Harmonics of a motion, with coefficients a_1..a_L, b_1..b_L (velocities) and q_0."""

    period: float
    """2 pi / w [s]."""
    harmonics: int
    """L."""

    def __post_init__(self) -> None:
        """Raise unless a motion from rest to rest exists."""
        if not (np.isfinite(self.period) and self.period > 0.0):
            raise CallError(f'the period is {self.period} s, expected a positive number')
        if not 2 <= self.harmonics <= MAX_HARMONICS:
            raise CallError(
                f'the number of harmonics is {self.harmonics}, expected 2 to {MAX_HARMONICS}'
            )

    @property
    def size(self) -> int:
        """Number of coefficients of a joint."""
        return 2 * self.harmonics + 1

    def times(self, n: int) -> Array:
        """Return times that divide the period evenly, (n,) [s]."""
        return np.asarray(self.period * np.arange(n) / n)

    def overshoot(self, n: int) -> float:
        """Return by what factor a motion may exceed its largest value at n even samples."""
        return float(1.0 / np.cos(np.pi * self.harmonics / n))

    def at_rest(self) -> Array:
        """Return coefficients, (2 L + 1, 2 L - 1), with no velocity and acceleration at zero."""
        velocity, acceleration = self.matrices(np.zeros(1))[1:, 0, :-1]
        moving = np.linalg.qr(np.array([velocity, acceleration]).T, mode='complete')[0][:, 2:]
        found = np.zeros((self.size, self.size - 2))
        found[:-1, :-1], found[-1, -1] = moving, 1.0
        return found

    def matrices(self, t: Array) -> Array:
        """Return positions, velocities, accelerations of coefficients, (3, n, 2 L + 1)."""
        w = 2.0 * np.pi / self.period * np.arange(1, self.harmonics + 1)
        sine, cosine = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        one = np.ones((len(t), 1))
        return np.array(
            [
                np.hstack([sine / w, -cosine / w, one]),
                np.hstack([cosine, sine, 0.0 * one]),
                np.hstack([-w * sine, w * cosine, 0.0 * one]),
            ]
        )


@dataclass(frozen=True, eq=False)
class FourierMotion:
    """A periodic motion of some joints."""

    basis: FourierBasis
    joint_names: tuple[str, ...]
    coefficients: Array
    """Shape (n_joints, 2 L + 1) [rad/s or m/s; the last rad or m]."""

    def at(self, t: Array) -> Array:
        """Return positions, velocities and accelerations, (3, n, n_joints), at times, (n,)."""
        return np.asarray(self.basis.matrices(t) @ self.coefficients.T)


def descend(function: Function, x: Array, inverse: Array, stop: Callable[[], bool]) -> Array:
    """Descend a function from x by quasi-Newton steps, the first with a given inverse [BFGS]."""
    value, gradient = function(x)
    for _ in range(MAX_STEPS):
        step, share = -(inverse @ gradient.reshape(-1)).reshape(x.shape), 1.0
        slope = SUFFICIENT_DECREASE * float(np.sum(gradient * step))
        while not (there := function(x + share * step))[0] < value + share * slope:
            share /= 2.0
            if share <= MIN_STEP:
                return x
        moved, change = share * step.reshape(-1), (there[1] - gradient).reshape(-1)
        x, decrease = x + share * step, value - there[0]
        value, gradient = there
        if decrease < MIN_DECREASE or stop():
            break
        if (product := float(moved @ change)) > 0.0:
            towards = np.eye(len(moved)) - np.outer(moved, change) / product
            inverse = towards @ inverse @ towards.T + np.outer(moved, moved) / product
    return x


@dataclass(frozen=True, eq=False)
class Attempt:
    """Result of one random start."""

    motion: FourierMotion
    condition: float
    complete: bool
    """All stages ended before the limit of time."""


class ExcitationSearch:
    """
    Motions from rest to rest within limits, and the search for the best.

    Points x, (n_joints, 2 L - 1), are coefficients in shares of what the limits allow.
    """

    def __init__(
        self,
        regressor: ExcitationRegressor,
        joint_limits: JointLimits,
        basis: FourierBasis,
        clearance: SelfClearance | None = None,
    ) -> None:
        self.regressor, self.clearance = regressor, clearance
        self.basis, self.joint_limits = basis, joint_limits
        lower, upper = joint_limits.lower, joint_limits.upper
        self.middle, half = (lower + upper) / 2, (upper - lower) / 2
        n = LIMIT_SAMPLES * basis.harmonics
        rest = basis.at_rest()
        matrices = basis.matrices(basis.times(n))
        # A limit that no such motion can reach does not scale it.
        slowest = 2.0 * np.pi / basis.period
        reached = half * slowest * basis.harmonics, joint_limits.acceleration / slowest
        speeds = np.minimum(joint_limits.velocity, np.minimum(*reached))
        scales = np.repeat(speeds[:, None], rest.shape[1], axis=1)
        scales[:, -1] = half
        self.sign_widths = SIGN_WIDTH * speeds
        self.coefficients = scales[:, :, None] * rest.T
        """Of a point, (n_joints, 2 L - 1, 2 L + 1)."""
        bounds = np.array([half, joint_limits.velocity, joint_limits.acceleration])
        shares = basis.overshoot(n) * (matrices @ rest)[None] / bounds.T[:, :, None, None]
        self.A = shares.reshape(len(speeds), -1, rest.shape[1]) * scales[:, None, :]
        """Rows whose products with a point are from -1 to 1 within limits, (n_joints, m, k)."""
        self.held = matrices[0]
        self.matrices = basis.matrices(basis.times(CONDITION_SAMPLES * basis.harmonics))

    def run(
        self,
        starts: int = 3,
        seconds: float = 60.0,
        seed: int = 0,
        progress: Callable[[str, float], None] = lambda stage, done: None,
    ) -> list[Attempt]:
        """
        Search from random starts, none begun or continued after the given time [s].

        Returns the best one first.
        """
        for name, value, least in (('starts', starts, 1), ('seed', seed, 0)):
            if value < least:
                raise CallError(f"'{name}' is {value}, expected {least} or more")
        if not seconds > 0.0:
            raise CallError(f'the search has {seconds} seconds, expected more than none')
        rng, end = np.random.default_rng(seed), time.monotonic() + seconds
        found: list[Attempt] = []
        while len(found) < starts and (not found or time.monotonic() < end):
            x = self.random_start(rng)
            for done, (sharpness, weight) in enumerate(STAGES):
                progress('searching', (len(found) + done / len(STAGES)) / starts)
                objective = partial(self.objective, sharpness=sharpness, weight=weight)
                x = descend(
                    objective, x, self.first_inverse(x, weight), lambda: time.monotonic() >= end
                )
                if time.monotonic() >= end:
                    break
            motion = self.motion(x)
            condition = max(self.regressor.conditions(motion.at(self.basis.times(CHECKED))))
            found.append(Attempt(motion, condition, time.monotonic() < end))
        progress('searching', 1.0)
        return sorted(found, key=lambda attempt: attempt.condition)

    def motion(self, x: Array) -> FourierMotion:
        """Return the motion of a point."""
        coefficients = (x[:, None] @ self.coefficients)[:, 0]
        coefficients[:, -1] += self.middle
        return FourierMotion(self.basis, self.joint_limits.joint_names, coefficients)

    def positions(self, x: Array) -> Array:
        """Return the positions of a point where limits are held, (n, n_joints)."""
        return np.asarray(self.held @ self.motion(x).coefficients.T)

    def objective(self, x: Array, sharpness: float, weight: float) -> tuple[float, Array]:
        """Return the bound of the condition number, and barriers of limits and of nearness."""
        y = apply(self.A, x)
        room = 1.0 - y**2
        if not room.min() > 0.0:
            return np.inf, np.zeros_like(x)
        share = weight / y.shape[1]
        value = -share * float(np.log(room).sum())
        gradient = share * apply(self.A.swapaxes(1, 2), 2.0 * y / room)
        if self.clearance is not None:
            cost, slopes = self.clearance.penalty(self.positions(x))
            if not np.isfinite(cost):
                return np.inf, np.zeros_like(x)
            value += weight * cost
            gradient += weight * apply(self.coefficients, slopes.T @ self.held)
        states = self.matrices @ self.motion(x).coefficients.T
        bound, slopes = self.regressor.bound(states, sharpness, self.sign_widths)
        of_coefficients = np.einsum('dnj,dnk->jk', slopes, self.matrices)
        return value + bound, gradient + apply(self.coefficients, of_coefficients)

    def first_inverse(self, x: Array, weight: float) -> Array:
        """Return the inverse of the second derivative of the barrier of limits, and a guess."""
        y = apply(self.A, x)
        room = 1.0 - y**2
        weights = weight / y.shape[1] * (2.0 / room + 4.0 * y**2 / room**2)
        curvature = self.A.swapaxes(1, 2) @ (weights[..., None] * self.A)
        return np.asarray(block_diag(*np.linalg.inv(curvature + CURVATURE * np.eye(x.shape[1]))))

    def random_start(self, rng: np.random.Generator) -> Array:
        """Return a random point within the limits and free of collisions."""
        best = -np.inf, ''
        for tried in range(POSTURES):
            x: Array = np.zeros((len(self.A), self.A.shape[2]))
            x[:, -1] = MAX_OFF_CENTRE * rng.uniform() * rng.uniform(-1.0, 1.0, len(x))
            swing: Array = rng.normal(size=x.shape)
            swing[:, -1] = 0.0
            far = np.maximum(np.abs(apply(self.A, swing)), np.finfo(float).tiny)
            room = 1.0 - np.abs(apply(self.A, x))
            swing *= MAX_START * (room / far).min(axis=1)[:, None]
            if self.clearance is None:
                return np.asarray(x + swing)
            margin = self.clearance.margin
            best = max(best, nearest := self.clearance.nearest(self.positions(x)[:1]))
            if nearest[0] <= margin:
                continue
            for _ in range(HALVINGS + tried // PATIENCE):
                if self.clearance.nearest(self.positions(x + swing))[0] > margin:
                    return np.asarray(x + swing)
                swing /= 2.0
        raise ConfigError(
            f'of {POSTURES} random postures none keeps the clearance: {best[1]} are '
            f'{best[0]:.4f} m apart in the best one'
        )
