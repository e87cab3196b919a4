# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The robot of the settings: sensors that they select or place, and assumed joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.schema import ALL
from inertial_estimation.errors import NameNotFound
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtSpec, LinkSensorSpec
from inertial_estimation.model.urdf import pose_from_xyz_rpy


def build_robot(
    settings: EstimatorSettings,
    urdf: str,
    *,
    locked_positions: Mapping[str, float] | None = None,
    cut: bool = True,
) -> Robot:
    """
    Return the robot that the settings describe.

    locked_positions [rad or m].
    """
    sensors: list[str | FtSpec] | None = None
    if settings.ft_sensors != ALL:
        sensors = []
        for name in settings.ft_sensors:
            ft = settings.ft_of(name)
            spec = FtSpec(name, ft.joint, ft.direction != 'parent_to_child')
            sensors.append(spec if ft.joint else name)
    imus = []
    for name in settings.imus:
        imu = settings.imu[name]
        pose = pose_of(imu.pose) if imu.pose else None
        noise = imu.accelerometer_noise, imu.gyroscope_noise
        imus.append(LinkSensorSpec(name, imu.frame, pose, imu.measures, *noise))
    robot = Robot.from_urdf(
        urdf,
        joints=settings.joints or None,
        locked_positions=locked_positions,
        ft_sensors=sensors if cut else [],
        imus=imus,
        fixed_link=settings.fixed_link,
        gravity=settings.gravity,
    )
    known = [sensor.name for sensor in robot.ft_sensors]
    for name in settings.ft if cut else ():
        if name not in known:
            raise NameNotFound('FT sensor', name, known, f"'ft.{name}.*' is about '{name}'")
    return robot


def pose_of(numbers: Sequence[float]) -> Array:
    """Return the homogeneous matrix of x y z roll pitch yaw, the identity of no numbers."""
    return pose_from_xyz_rpy(numbers[:3], numbers[3:]) if numbers else np.eye(4)
