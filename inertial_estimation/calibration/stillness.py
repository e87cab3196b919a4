# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which instants of a robot are still enough to calibrate by.

Motion is in the model, but what tells it is filtered, late and noisy; a mean over still instants
is free of that. Stillness is looked for in everything that would show motion, as each of them
alone can miss it: a robot that is carried has still joints, one that turns at a steady rate a
still accelerometer, and a floor that shakes is seen by the FT sensors alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import inf, isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError
from inertial_estimation.model.arguments import numbers
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Array, SampleBatch

Mask = NDArray[np.bool_]

WINDOW_NS = 200_000_000
"""Over which the spread of FT readings is looked at: longer than a period of most vibrations."""
LEAST_FORCE, LEAST_MOMENT = 1.0, 0.1
"""What sensors may shake by on a robot that weighs next to nothing [N, Nm]."""


@dataclass(frozen=True)
class Stillness:
    """How much may move; infinity takes no account of it."""

    joint_velocity: float = 0.1
    """Of each joint [rad/s or m/s]. A limb of 1 m then pulls by 0.1 % of its weight."""
    angular_velocity: float = 0.1
    """Of each gyroscope [rad/s]; a bias of a few degrees per second is none of it."""
    acceleration: float = 0.3
    """By which the length of a proper acceleration may differ from gravity's [m/s^2]."""
    force_spread: float = 0.03
    """
    Standard deviation of each force of an FT sensor within 0.2 s, over the robot's weight.

    A robot that balances on a foot sways by about 0.02; the mean is free of that.
    """
    moment_spread: float = 0.01
    """The same of each moment, over the robot's weight [m]."""
    momentum: float = 0.05
    """
    Mean force within 0.5 s that the momentum contradicts, over the robot's weight: accelerations
    are not those of the velocities then, and the prediction is wrong by as much.
    """
    settle: float = 0.3
    """
    Seconds before and after a motion that count as part of it [s].

    Filters spread what moves, and what was moved swings.
    """

    @classmethod
    def none(cls) -> Stillness:
        """Return limits with which any motion will do that the momentum does not contradict."""
        return cls(inf, inf, inf, inf, inf)

    @property
    def holds_poses(self) -> bool:
        """Whether what is left are poses that are held."""
        return isfinite(self.joint_velocity)

    def __post_init__(self) -> None:
        """Check the numbers."""
        for field in fields(self):
            value = float(numbers(field.name, getattr(self, field.name), (), finite=False))
            if not value >= 0.0:
                raise ConfigError(f'{field.name} of stillness is {value}, expected 0 or more')


class Cause(NamedTuple):
    """What told that the robot moves."""

    name: str
    """Such as ``joint l_knee`` or ``IMU imu_0 turning``."""
    n_instants: int
    """How often, with others or alone."""
    largest: float
    """Its largest value meanwhile."""
    limit: float
    """What it may be."""
    unit: str

    def __str__(self) -> str:
        """Return it in words."""
        return (
            f'{self.name} at {self.n_instants} instants, up to {self.largest:.3g} {self.unit} '
            f'(limit {self.limit:.3g})'
        )


class Moving(NamedTuple):
    """When a robot moves."""

    mask: Mask
    """Shape (n,)."""
    causes: tuple[Cause, ...]
    """What told it, the one that told most often first."""


def find_motion(robot: Robot, samples: SampleBatch, wrenches: Array, limits: Stillness) -> Moving:
    """
    Tell when a robot moves.

    wrenches (n, n_fts, 6) [N, Nm].
    """
    found = np.zeros(len(samples), dtype=bool)
    causes = []
    for name, values, limit, unit in _signs(robot, samples, wrenches, limits):
        over = values > limit
        if over.any():
            found |= over
            causes.append(Cause(name, int(over.sum()), float(values[over].max()), limit, unit))
    causes.sort(key=lambda cause: -cause.n_instants)
    return Moving(_spread_out(found, samples.stamp_ns, limits.settle), tuple(causes))


def _signs(
    robot: Robot, samples: SampleBatch, wrenches: Array, limits: Stillness
) -> Iterator[tuple[str, Array, float, str]]:
    """Yield what may tell a motion: name, values (n,), limit, unit."""
    for j, name in enumerate(robot.joint_names):
        velocities = np.abs(samples.velocities[:, j])
        yield f"joint '{name}'", velocities, limits.joint_velocity, 'rad/s or m/s'
    gravity = float(np.linalg.norm(robot.gravity))
    weight = robot.mass * gravity
    force_limit = max(limits.force_spread * weight, LEAST_FORCE)
    moment_limit = max(limits.moment_spread * weight, LEAST_MOMENT)
    for i, imu in enumerate(robot.imus):
        rates = np.linalg.norm(samples.angular_velocities[:, i], axis=1)
        yield f"IMU '{imu.name}' turning", rates, limits.angular_velocity, 'rad/s'
        lengths = np.linalg.norm(samples.proper_accelerations[:, i], axis=1)
        off = np.abs(lengths - gravity)
        yield f"IMU '{imu.name}' accelerating", off, limits.acceleration, 'm/s^2'
    for k, sensor in enumerate(robot.ft_sensors):
        spreads = _spreads(wrenches[:, k], samples.stamp_ns)
        force, moment = spreads[:, :3].max(axis=1), spreads[:, 3:].max(axis=1)
        yield f"force of FT sensor '{sensor.name}'", force, force_limit, 'N'
        yield f"moment of FT sensor '{sensor.name}'", moment, moment_limit, 'Nm'


def _spreads(values: Array, stamp_ns: NDArray[np.int64]) -> Array:
    """Return the standard deviation in a window around each instant; NaN where one is missing."""
    middle = np.nanmean(values, axis=0) if np.isfinite(values).any() else 0.0
    centred = values - middle
    missing = ~np.isfinite(centred).all(axis=1)
    centred[missing] = 0.0
    zero = np.zeros((1, values.shape[1]))
    sums = np.concatenate([zero, np.cumsum(centred, axis=0)])
    squares = np.concatenate([zero, np.cumsum(centred**2, axis=0)])
    count = np.concatenate([[0], np.cumsum(~missing)])
    first = np.searchsorted(stamp_ns, stamp_ns - WINDOW_NS // 2, 'left')
    last = np.searchsorted(stamp_ns, stamp_ns + WINDOW_NS // 2, 'right')
    n = np.maximum(count[last] - count[first], 1)[:, None]
    mean = (sums[last] - sums[first]) / n
    variance = (squares[last] - squares[first]) / n - mean**2
    spread: Array = np.sqrt(np.maximum(variance, 0.0))
    spread[missing] = np.nan
    return spread


def _spread_out(found: Mask, stamp_ns: NDArray[np.int64], settle: float) -> Mask:
    """Return what is within some time of a motion."""
    if not found.any():
        return found
    if settle == inf:
        return np.ones_like(found)
    reach = int(settle * 1e9)
    at = stamp_ns[found]
    near = np.searchsorted(at, stamp_ns - reach, 'left')
    past = np.searchsorted(at, stamp_ns + reach, 'right')
    return np.asarray(past > near)
