# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Efforts and velocities of a log against the limits that the robot description rates them by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import parse
from inertial_estimation.sample import SampleBatch

BEYOND = 3.0
"""Times a limit that a joint does not reach in use."""
OFTEN = 0.1
"""Share of the instants at which it may."""


def rated(robot: Robot, key: str) -> dict[str, float]:
    """Return a limit of each joint."""
    tags = {tag.get('name', ''): tag.find('limit') for tag in parse(robot.urdf).findall('joint')}
    found = {}
    for name in robot.joint_names:
        tag = tags.get(name)
        try:
            value = float('nan' if tag is None else tag.get(key, 'nan'))
        except ValueError:
            value = np.nan
        found[name] = value if value > 0.0 else np.inf
    return found


def rating_warnings(robot: Robot, samples: SampleBatch, joints: Sequence[str]) -> list[str]:
    """Return which joints are faster or stronger than the description says, in words."""
    said = []
    velocity, effort = (rated(robot, key) for key in ('velocity', 'effort'))
    for k, name in enumerate(robot.joint_names):
        signals = [('velocity', samples.velocities[:, k], velocity[name], 'rad/s or m/s')]
        if samples.efforts is not None and name in joints:
            signals.append(('effort', samples.efforts[:, k], effort[name], 'N m or N'))
        for what, values, limit, unit in signals:
            known = np.abs(values[np.isfinite(values)])
            if len(known) and np.mean(known > BEYOND * limit) > OFTEN:
                said.append(
                    f"{what} of '{name}' is up to {known.max():.4g} ({unit}), but its limit in "
                    f'the description is {limit:.4g}: check its unit, gear and column, or the '
                    'limit'
                )
    return said
