# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""States in which everything moves: what rows of them do not tell, no rows of their kind do."""

from __future__ import annotations

import numpy as np

from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch


def random_samples(robot: Robot, n: int, fastest: float = 1.0, seed: int = 0) -> SampleBatch:
    """
    Return states in which everything moves, with readings that nothing explains.

    fastest [rad/s or m/s].
    """
    rng = np.random.default_rng(seed)
    joints, imus = len(robot.joint_names), len(robot.imus)
    return SampleBatch(
        stamp_ns=np.arange(n, dtype=np.int64),
        positions=rng.normal(size=(n, joints)),
        velocities=rng.uniform(-fastest, fastest, (n, joints)),
        accelerations=rng.normal(size=(n, joints)),
        angular_velocities=rng.normal(size=(n, imus, 3)),
        proper_accelerations=10.0 * rng.normal(size=(n, imus, 3)),
        angular_accelerations=rng.normal(size=(n, imus, 3)),
        ft_readings=rng.normal(size=(n, len(robot.ft_sensors), 6)),
        efforts=rng.normal(size=(n, joints)),
        ft_temperatures=np.zeros((n, len(robot.ft_sensors))),
    )
