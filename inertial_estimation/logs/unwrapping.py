# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Positions of joints without end stops, which drivers report within one turn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import parse
from inertial_estimation.sample import SampleBatch


def unwrapped(samples: SampleBatch, robot: Robot) -> SampleBatch:
    """Return samples whose continuous joints go on where they were reported a turn away."""
    endless = {tag.get('name') for tag in parse(robot.urdf).findall("joint[@type='continuous']")}
    positions = samples.positions.copy()
    for k, name in enumerate(robot.joint_names):
        known = np.isfinite(positions[:, k])
        if name in endless:
            positions[known, k] = np.unwrap(positions[known, k])
    return replace(samples, positions=positions)
