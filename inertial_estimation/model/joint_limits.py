# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Limits of position, velocity and acceleration of joints: from the URDF, or as given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import EFFORT, LIMITS, limits_of, parse

ROUNDED = 1e-5
"""Share of its size by which a limit may exceed the URDF's: numbers are rounded by hand."""


class WiderLimit(NamedTuple):
    """A given limit that is wider than that of the URDF."""

    joint: str
    key: str
    """One of `LIMITS`."""
    stated: float
    described: float


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Limits of some joints, each an array of shape (n_joints,)."""

    joint_names: tuple[str, ...]
    lower: Array
    """[rad or m]"""
    upper: Array
    """[rad or m]"""
    velocity: Array
    """[rad/s or m/s]"""
    acceleration: Array
    """[rad/s^2 or m/s^2]"""
    effort: Array
    """[Nm or N]; NaN where the URDF has none."""
    wider: tuple[WiderLimit, ...] = ()
    """Limits beyond the URDF's."""


def joint_limits(
    robot: Robot,
    given: Mapping[str, Mapping[str, float]] | None = None,
    acceleration: float | None = None,
) -> JointLimits:
    """Return the limits of all joints; acceleration [rad/s^2 or m/s^2]: where none is stated."""
    stated = {name: _checked(name, limits, robot) for name, limits in (given or {}).items()}
    rows, wider = [], list[WiderLimit]()
    tags = {tag.get('name', ''): tag for tag in parse(robot.urdf).findall('joint')}
    for name in robot.joint_names:
        own, described = stated.get(name, {}), limits_of(tags[name])
        default = {} if acceleration is None else {'acceleration': float(acceleration)}
        limits = default | described | own
        for key in LIMITS:
            if key not in limits:
                raise ConfigError(f"joint '{name}' has no limit '{key}'")
            if not np.isfinite(limits[key]) or (key in LIMITS[2:] and limits[key] <= 0.0):
                raise ConfigError(f"limit '{key}' of joint '{name}' is {limits[key]}")
        if limits['lower'] >= limits['upper']:
            raise ConfigError(
                f"joint '{name}' cannot move between {limits['lower']} and {limits['upper']}"
            )
        for key, value in own.items():
            limit = described.get(key, np.nan)
            beyond = limit - value if key == 'lower' else value - limit
            if beyond > ROUNDED * abs(limit):
                wider.append(WiderLimit(name, key, value, limit))
        rows.append([limits.get(key, np.nan) for key in (*LIMITS, EFFORT)])
    lower, upper, velocity, most, effort = np.array(rows).reshape(-1, len(LIMITS) + 1).T
    return JointLimits(robot.joint_names, lower, upper, velocity, most, effort, tuple(wider))


def _checked(name: str, limits: object, robot: Robot) -> dict[str, float]:
    """Return given limits of a joint, checked."""
    if name not in robot.joint_names:
        raise NameNotFound('joint', name, robot.joint_names, 'the limits name it')
    if not isinstance(limits, Mapping):
        raise ConfigError(f"the limits of joint '{name}' are {limits!r}, expected {{lower: ...}}")
    for key, value in limits.items():
        if key not in LIMITS:
            raise NameNotFound('limit', str(key), LIMITS, f"the limits of joint '{name}' name it")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"limit '{key}' of joint '{name}' is {value!r}, expected a number")
    return {key: float(value) for key, value in limits.items()}
