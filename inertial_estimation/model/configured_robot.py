# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The robot of the settings: sensors that they select or place, and assumed joints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.config import (
    EstimatorSettings,
    FtSettings,
    ImuSettings,
    LinkSensorSettings,
)
from inertial_estimation.config.groups import are_all
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
    sensors = None
    if not are_all('ft', settings.ft_sensors):
        sensors = [_ft_spec(name, settings.ft_of(name)) for name in settings.ft_sensors]
    robot = Robot.from_urdf(
        urdf,
        joints=settings.joints or None,
        locked_positions=locked_positions,
        ft_sensors=sensors if cut else [],
        accelerometers=_link_specs(settings.accelerometers, settings.accelerometer) or None,
        gyroscopes=_link_specs(settings.gyroscopes, settings.gyroscope) or None,
        imus=_link_specs(settings.imus, settings.imu),
        fixed_link=settings.fixed_link,
        gravity=settings.gravity,
        external_torque_base=settings.external_torque_base,
    )
    known = [sensor.name for sensor in robot.ft_sensors]
    for name in settings.ft if cut else ():
        if name not in known:
            raise NameNotFound('FT sensor', name, known, f"'ft.{name}.*' is about '{name}'")
    return robot


def _ft_spec(name: str, settings: FtSettings) -> str | FtSpec:
    """Return the name of a sensor that has a tag, or the description of one that has none."""
    if not settings.joint:
        return name
    return FtSpec(
        name,
        settings.joint,
        frame=settings.frame or 'child',
        child_to_parent=settings.direction != 'parent_to_child',
        pose=_pose(settings.pose) if settings.pose else np.eye(4),
    )


def _link_specs(
    names: Iterable[str], groups: Mapping[str, ImuSettings] | Mapping[str, LinkSensorSettings]
) -> list[LinkSensorSpec]:
    """Return the descriptions of accelerometers, gyroscopes or IMUs."""
    specs = []
    for name in names:
        given = groups.get(name) or LinkSensorSettings()
        pose = _pose(given.pose) if given.pose else None
        spec = LinkSensorSpec(name, given.frame, pose)
        if isinstance(given, ImuSettings):
            noise = given.accelerometer_noise, given.gyroscope_noise
            spec = LinkSensorSpec(name, given.frame, pose, given.measures, *noise)
        specs.append(spec)
    return specs


def _pose(numbers: Sequence[float]) -> NDArray[np.float64]:
    """Return the homogeneous matrix of x y z roll pitch yaw."""
    return pose_from_xyz_rpy(numbers[:3], numbers[3:])
