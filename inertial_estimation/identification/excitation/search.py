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
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import CallError, ConfigError
from inertial_estimation.identification.excitation.excitation_regressor import ExcitationRegressor
from inertial_estimation.model.clearance import SelfClearance
from inertial_estimation.model.joint_limits import JointLimits

MAX_HARMONICS = 500
"""The time of a search grows with the square of their number."""
STAGES = ((4.0, 0.3), (8.0, 0.1), (16.0, 0.03), (32.0, 0.01), (64.0, 0.003))
"""Sharpness of the condition number and weight of the barrier, one after the other."""
CONDITION_SAMPLES, LIMIT_SAMPLES = 20, 40
"""Samples for each harmonic at which equations are taken, and at which limits are held."""
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
ZONE = 0.05
"""Distance beyond the clearance from which on nearness costs nothing [m]."""
SUFFICIENT_DECREASE = 1e-4
"""Share of the decrease by the slope that a step must reach."""
MIN_STEP = 1e-8
"""Share of a step below which the search along it is given up."""
MAX_STEPS, MIN_DECREASE = 200, 1e-5
"""Of a stage; decrease of the objective that ends it."""
CURVATURE = 0.3
"""First guess of the second derivative of the condition number's logarithm."""


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


class Value(NamedTuple):
    """A function at a point; infinite where it must not go."""

    value: float
    gradient: Array


class Nearest(NamedTuple):
    """The pair of links that come nearest to each other."""

    distance: float
    """Negative where they touch; infinite where nothing comes near [m]."""
    links: str
    """Both names, empty where nothing comes near."""


@dataclass(frozen=True, eq=False)
class KeepAway:
    """
    Cost that keeps the links of a robot at a margin from each other.

    Of a pair at distance d at one of n samples it is ``log((d - margin) / zone)^2 / n``.
    """

    clearance: SelfClearance
    margin: float
    """[m]"""

    def __post_init__(self) -> None:
        """Raise unless the margin is a length."""
        if not (np.isfinite(self.margin) and self.margin >= 0.0):
            raise CallError(f'the clearance is {self.margin} m, expected zero or more')

    def penalty(self, positions: Array) -> Value:
        """Return the cost; positions (n, n_joints)."""
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
        np.add.at(gradient, few.instants, slopes[:, None] * self.clearance.slopes(positions, few))
        return Value(float(np.sum(logs**2) / len(positions)), gradient)

    def nearest(self, positions: Array) -> Nearest:
        """Return the nearest pair; positions (n, n_joints)."""
        near = self.clearance.near(positions, self.margin + ZONE)
        if not len(near.distances):
            return Nearest(np.inf, '')
        k = int(near.distances.argmin())
        return Nearest(float(near.distances[k]), self.clearance.names(int(near.pairs[k])))


@dataclass(frozen=True, eq=False)
class LinearLimits:
    """Points x with ``|A_j x_j| < 1`` for each group j of variables; A (n_groups, m, k)."""

    A: Array

    def values(self, x: Array) -> Array:
        """Return values between -1 and 1, (n_groups, m)."""
        return np.asarray((self.A @ x[..., None])[..., 0])

    def barrier(self, x: Array) -> Value:
        """Return the mean logarithmic barrier of each group, summed."""
        y = self.values(x)
        room = 1.0 - y**2
        if not room.min() > 0.0:
            return Value(np.inf, np.zeros_like(x))
        m = y.shape[1]
        slopes = np.einsum('jm,jmk->jk', 2.0 * y / room, self.A) / m
        return Value(float(-np.log(room).sum() / m), slopes)

    def curvature(self, x: Array) -> Array:
        """Return the second derivative of the barrier, (n_groups, k, k)."""
        y = self.values(x)
        room = 1.0 - y**2
        weights = 2.0 / room + 4.0 * y**2 / room**2
        products = np.einsum('jma,jm,jmb->jab', self.A, weights, self.A, optimize=True)
        return np.asarray(products / y.shape[1])


def minimise_inside(
    function: Callable[[Array], Value],
    limits: LinearLimits,
    x: Array,
    weight: float,
    stop: Callable[[], bool] = lambda: False,
) -> Array:
    """
    Descend a function from x, (n_groups, k), inside of limits by quasi-Newton steps [BFGS].

    weight: of the limits' barrier.
    """

    def whole(x: Array) -> Value:
        barrier = limits.barrier(x)
        if not np.isfinite(barrier.value):
            return barrier
        here = function(x)
        return Value(
            here.value + weight * barrier.value, here.gradient + weight * barrier.gradient
        )

    groups, k = x.shape
    known = np.linalg.inv(weight * limits.curvature(x) + CURVATURE * np.eye(k))
    blocks = np.zeros((groups, k, groups, k))
    blocks[np.arange(groups), :, np.arange(groups)] = known
    inverse = blocks.reshape(groups * k, groups * k)
    here = whole(x)
    for _ in range(MAX_STEPS):
        step, share = -(inverse @ here.gradient.reshape(-1)).reshape(x.shape), 1.0
        slope = SUFFICIENT_DECREASE * float(np.sum(here.gradient * step))
        while not (there := whole(x + share * step)).value < here.value + share * slope:
            share /= 2.0
            if share <= MIN_STEP:
                return x
        moved = share * step.reshape(-1)
        inverse = _updated(inverse, moved, (there.gradient - here.gradient).reshape(-1))
        decrease = here.value - there.value
        x, here = x + share * step, there
        if decrease < MIN_DECREASE or stop():
            break
    return x


def _updated(inverse: Array, moved: Array, change: Array) -> Array:
    """Return the inverse Hessian after a step, as it was where the curvature is not positive."""
    product = float(moved @ change)
    if product <= np.finfo(float).eps * float(np.linalg.norm(moved) * np.linalg.norm(change)):
        return inverse
    turned = inverse @ change
    both = np.outer(turned, moved)
    gain = (1.0 + float(change @ turned) / product) / product
    return np.asarray(inverse + gain * np.outer(moved, moved) - (both + both.T) / product)


@dataclass(frozen=True, eq=False)
class Attempt:
    """Result of one random start."""

    start: FourierMotion
    motion: FourierMotion
    condition: float
    """Of the motion as searched for: at few samples and with smooth signs."""
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
        clearance: KeepAway | None = None,
    ) -> None:
        self.regressor, self.clearance = regressor, clearance
        self.basis, self.joint_limits = basis, joint_limits
        n = LIMIT_SAMPLES * basis.harmonics
        self.rest, matrices = basis.at_rest(), basis.matrices(basis.times(n))
        # A limit that no such motion can reach does not scale it.
        half, slowest = joint_limits.half, 2.0 * np.pi / basis.period
        reached = half * slowest * basis.harmonics, joint_limits.acceleration / slowest
        speeds = np.minimum(joint_limits.velocity, np.minimum(*reached))
        self.scales = np.repeat(speeds[:, None], self.rest.shape[1], axis=1)
        self.scales[:, -1] = half
        bounds = np.array([half, joint_limits.velocity, joint_limits.acceleration])
        within = basis.overshoot(n) * (matrices @ self.rest)[None] / bounds.T[:, :, None, None]
        A = within.reshape(len(speeds), -1, self.rest.shape[1]) * self.scales[:, None, :]
        self.limits, self.held = LinearLimits(A), matrices[0]
        self.matrices = basis.matrices(basis.times(CONDITION_SAMPLES * basis.harmonics))

    def run(
        self,
        starts: int = 3,
        seconds: float = 60.0,
        seed: int = 0,
        progress: Callable[[str, float], None] = lambda stage, done: None,
    ) -> list[Attempt]:
        """Search from random starts; none is begun or continued after the given time [s]."""
        for name, value, least in (('starts', starts, 1), ('seed', seed, 0)):
            if value < least:
                raise CallError(f"'{name}' is {value}, expected {least} or more")
        if not seconds > 0.0:
            raise CallError(f'the search has {seconds} seconds, expected more than none')
        rng, end = np.random.default_rng(seed), time.monotonic() + seconds
        found: list[Attempt] = []
        while len(found) < starts and (not found or time.monotonic() < end):
            x = self.random_start(rng)
            start, done = self.motion(x), 0
            for sharpness, weight in STAGES:
                progress('searching', (len(found) + done / len(STAGES)) / starts)
                if time.monotonic() >= end and done:
                    break
                x = minimise_inside(
                    partial(self.objective, sharpness=sharpness, weight=weight),
                    self.limits, x, weight, lambda: time.monotonic() >= end,
                )  # fmt: skip
                done += 1
            complete = done == len(STAGES) and time.monotonic() < end
            condition, _ = self.condition(x, STAGES[-1][0])
            found.append(Attempt(start, self.motion(x), condition, complete))
        progress('searching', 1.0)
        return sorted(found, key=lambda attempt: attempt.condition)

    def coefficients(self, x: Array) -> Array:
        """Return the coefficients of a point, (n_joints, 2 L + 1)."""
        found = (x * self.scales) @ self.rest.T
        found[:, -1] += self.joint_limits.middle
        return np.asarray(found)

    def positions(self, x: Array) -> Array:
        """Return the positions of a point where limits are held, (n, n_joints)."""
        return np.asarray(self.held @ self.coefficients(x).T)

    def motion(self, x: Array) -> FourierMotion:
        """Return the motion of a point."""
        return FourierMotion(self.basis, self.joint_limits.joint_names, self.coefficients(x))

    def condition(self, x: Array, sharpness: float) -> tuple[float, Value]:
        """Return the condition number of a point, and the logarithm of its smooth bound."""
        motion = self.matrices @ self.coefficients(x).T
        found = self.regressor.bound(motion, sharpness, SIGN_WIDTH * self.scales[:, 0])
        slopes = np.einsum('dnj,dnk->jk', found.slopes, self.matrices)
        return found.condition, Value(found.bound, (slopes @ self.rest) * self.scales)

    def objective(self, x: Array, sharpness: float, weight: float) -> Value:
        """Return the bound and the cost of nearness, a barrier of the same weight as limits."""
        if self.clearance is None:
            return self.condition(x, sharpness)[1]
        cost = self.clearance.penalty(self.positions(x))
        if not np.isfinite(cost.value):
            return Value(np.inf, np.zeros_like(x))
        value = self.condition(x, sharpness)[1]
        slopes = (cost.gradient.T @ self.held @ self.rest) * self.scales
        return Value(value.value + weight * cost.value, value.gradient + weight * slopes)

    def random_start(self, rng: np.random.Generator) -> Array:
        """Return a random point within the limits and free of collisions."""
        best = Nearest(-np.inf, '')
        for tried in range(POSTURES):
            x = np.zeros(self.scales.shape)
            x[:, -1] = MAX_OFF_CENTRE * rng.uniform() * rng.uniform(-1.0, 1.0, len(x))
            swing = rng.normal(size=x.shape)
            swing[:, -1] = 0.0
            far = np.maximum(np.abs(self.limits.values(swing)), np.finfo(float).tiny)
            swing *= MAX_START * ((1.0 - np.abs(self.limits.values(x))) / far).min(axis=1)[:, None]
            if self.clearance is None:
                return x + swing
            nearest = self.clearance.nearest(self.positions(x)[:1])
            best = max(best, nearest, key=lambda one: one.distance)
            if nearest.distance <= self.clearance.margin:
                continue
            for _ in range(HALVINGS + tried // PATIENCE):
                free = self.clearance.nearest(self.positions(x + swing)).distance
                if free > self.clearance.margin:
                    return x + swing
                swing /= 2.0
        raise ConfigError(
            f'of {POSTURES} random postures none keeps the clearance: {best.links} are '
            f'{best.distance:.4f} m apart in the best one'
        )
