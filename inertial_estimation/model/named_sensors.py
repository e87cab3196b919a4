# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sensors of a robot, given as they are or by name."""

from __future__ import annotations

from inertial_estimation.errors import NameNotFound
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtSensor, Imu, LinkSensor


def find_inertial(robot: Robot, given: str | LinkSensor | Imu, group: str) -> LinkSensor | Imu:
    """Return an accelerometer, gyroscope or IMU."""
    if isinstance(given, str):
        known: dict[str, LinkSensor | Imu] = {}
        for sensors in (
            getattr(robot, group), robot.imus, robot.accelerometers, robot.gyroscopes
        ):  # fmt: skip
            known = {sensor.name: sensor for sensor in sensors} | known
        if given not in known:
            raise NameNotFound('accelerometer, gyroscope or IMU', given, known)
        return known[given]
    return given


def find_ft(robot: Robot, given: str | FtSensor, where: str = '') -> FtSensor:
    """Return an FT sensor."""
    known = {sensor.name: sensor for sensor in robot.ft_sensors}
    if isinstance(given, str):
        if given not in known:
            raise NameNotFound('FT sensor', given, known, where)
        return known[given]
    return given
