# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The wrench estimator of the settings, with the FT calibration that they name."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from inertial_estimation.calibration.calibration_file import (
    SensorCalibration,
    require_usable,
    stack_calibrations,
)
from inertial_estimation.calibration.calibration_file import read as read_calibrations
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import ft_specs, parse

FILE = ('calibration_file',)
"""Subject of errors in its content."""


def build_estimator(
    settings: EstimatorSettings, robot: Robot, calibration: FtCalibration | None = None
) -> WrenchEstimator:
    """Return the estimator of the settings, or one with another calibration."""
    contacts = build_contacts(settings)
    for contact in contacts:
        where = f"contact '{contact.name}' is at '{contact.frame}' (contact.{contact.name}.frame)"
        robot.frame(contact.frame, where)
    return WrenchEstimator(
        robot, contacts, calibration=calibration or build_calibration(settings, robot),
        acceleration_arrays=settings.angular_acceleration_source == 'array',
    )  # fmt: skip


def build_contacts(settings: EstimatorSettings) -> list[Contact]:
    """Return the default contacts of the settings."""
    contacts = []
    for name in settings.contacts:
        one = settings.contact_of(name)
        fields = one.point, one.direction, one.wrench, name, one.friction, one.size
        contacts.append(Contact(one.frame, one.kind, *fields))  # type: ignore[arg-type]
    return contacts


def build_calibration(settings: EstimatorSettings, robot: Robot) -> FtCalibration:
    """Return the calibration of the FT sensors in use."""
    return stack_calibrations(sensor_calibrations(settings, robot).values())


def sensor_calibrations(
    settings: EstimatorSettings, robot: Robot, *, new_file: bool = False
) -> dict[str, SensorCalibration]:
    """Return the calibration of each sensor; new_file: ~/save may still write the file."""
    path, of, saved = calibration_path(settings), '', dict[str, SensorCalibration]()
    if path is not None and (path.exists() or not (new_file and path.parent.is_dir())):
        of, saved = read_calibrations(path)
    if of and of != robot.name:
        where = f"'{path}' of 'calibration_file'"
        raise ConfigError(f"{where} is of robot '{of}', not of '{robot.name}'", about=FILE)
    names = [sensor.name for sensor in robot.ft_sensors]
    if saved and not saved.keys() >= set(names):
        # Other sensors of the URDF may be in the file.
        known = dict.fromkeys((*names, *ft_specs(parse(robot.urdf))))
        if unknown := [name for name in saved if name not in known]:
            where = f"'calibration_file' names '{path}', which holds '{unknown[0]}'"
            raise NameNotFound('FT sensor', unknown[0], known, where)
    found = {}
    for name in names:
        given = settings.ft_of(name)
        if name in saved and any(given.offset):
            where = f"'ft.{name}.offset' is given, and '{path}' of 'calibration_file'"
            raise ConfigError(f"{where} holds '{name}' too", about=FILE)
        if name in saved:
            require_usable(name, saved[name])
        found[name] = saved.get(name) or SensorCalibration(np.eye(6), np.array(given.offset))
    return found


def calibration_path(settings: EstimatorSettings) -> Path | None:
    """Return the file that holds the calibration of the FT sensors."""
    given = settings.calibration_file
    return Path(given).expanduser() if given else None
