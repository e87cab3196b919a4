# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Small robots with contacts of all kinds, and the noise of their sensors."""

from __future__ import annotations

import numpy as np
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, two_link_urdf

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.model.robot import Robot
from inertial_estimation.signals.derivatives import SavitzkyGolayFilter
from inertial_estimation.uncertainty.sensor_noise import (
    NoiseModel,
    filter_weights,
    imu_covariance,
    joint_covariance,
)

SQUEEZE = (
    Contact('hand', 'force', point=(0.0, 0.1, -0.2)),
    Contact('upper_arm', 'force', point=(0.05, 0.0, 0.1)),
)
KNOWN = Contact('shoulder', 'known', wrench=(30.0, -20.0, 10.0, 1.0, 2.0, -3.0))
HUMANOID_CONTACTS = {
    'wrenches': tuple(Contact(name) for name in ('root', 'upper_arm', 'thigh', 'foot')),
    'free': (),
    'forces': (
        Contact('chest', 'force', point=(0.1, 0.0, 0.2)),
        Contact('hand', 'force', point=(0.0, 0.1, -0.2)),
        Contact('shank', 'axial_force', point=(0.1, 0.0, 0.0), direction=(1.0, 2.0, 0.5)),
        Contact('foot'),
    ),
    'squeeze': (Contact('chest'), *SQUEEZE, Contact('foot')),
    'two wrenches': (Contact('hand'), Contact('upper_arm'), Contact('hip')),
    'known': (
        KNOWN,
        Contact('head'),
        *SQUEEZE[:1],
        Contact('thigh', 'known', wrench=KNOWN.wrench),
    ),
    'known beside forces': (KNOWN, Contact('head', 'force'), Contact('hip', 'axial_force')),
}
ROBOTS = {
    'two_link': (two_link_urdf(), {'imus': ['arm']}),
    'arm': (arm_with_wrist_sensor_urdf(), {'fixed_link': 'lower'}),
    'humanoid': (nested_humanoid_urdf(), {'imus': ['head']}),
    'several imus': (nested_humanoid_urdf(), {'imus': ['head', 'hip', 'shank', 'thigh']}),
    'fixed humanoid': (nested_humanoid_urdf(), {'fixed_link': 'foot'}),
}


def make(name: str) -> Robot:
    """Return one of the robots."""
    text, options = ROBOTS[name]
    return Robot.from_urdf(text, **options)


def usual_noise(robot: Robot) -> NoiseModel:
    """Return the noise of a good robot: encoders filtered over 0.1 s at 500 Hz."""
    weights = filter_weights(SavitzkyGolayFilter(1, 0.1, 3), 500.0)
    return NoiseModel.uniform(
        robot,
        joint=joint_covariance(1e-5, weights),
        imu=imu_covariance(2e-3, 0.02, weights),
        ft=np.array([0.3, 0.3, 0.5, 0.02, 0.02, 0.01]),
    )
