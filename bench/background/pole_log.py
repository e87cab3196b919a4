# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Smooth motions of a robot on a pole whose limbs are in free air."""

from __future__ import annotations

import numpy as np

from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

SINES = 4
"""Of each joint."""
SLOWEST, FASTEST = 0.05, 0.8
"""Of the sines [Hz]."""
START_NS = 1_000_000_000
"""Stamp of the first sample [ns]."""


def smooth_motion(
    robot: Robot, seconds: float, rate: float = 100.0, seed: int = 0, swing: float = 0.4
) -> SampleBatch:
    """
    Let all joints follow sums of sines about zero.

    seconds, rate [s, Hz]; swing [rad].
    """
    rng = np.random.default_rng(seed)
    n, joints = round(seconds * rate), len(robot.joint_names)
    t = np.arange(n) / rate
    q, v, a = np.zeros((3, n, joints))
    for _ in range(SINES):
        w = 2 * np.pi * rng.uniform(SLOWEST, FASTEST, joints)
        phase, size = rng.uniform(0, 2 * np.pi, joints), swing * rng.normal(size=joints) / 2
        q += size * np.sin(np.outer(t, w) + phase)
        v += size * w * np.cos(np.outer(t, w) + phase)
        a -= size * w**2 * np.sin(np.outer(t, w) + phase)
    none = np.zeros((n, len(robot.imus), 3))
    stamps = START_NS + (t * 1e9).astype(np.int64)
    readings = np.zeros((n, len(robot.ft_sensors), 6))
    return SampleBatch(stamps, q, v, a, none, none, none, readings)
