# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""From settings and a robot description to the estimator and its sample assembler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.active_calibration import require_usable
from inertial_estimation.calibration.calibration_file import (
    SensorCalibration,
    stack_calibrations,
)
from inertial_estimation.calibration.calibration_file import read as read_calibrations
from inertial_estimation.config import (
    EstimatorSettings,
    FtSettings,
    ImuSettings,
    LinkSensorSettings,
)
from inertial_estimation.config.groups import are_all
from inertial_estimation.errors import ConfigError, ModelError, NameNotFound
from inertial_estimation.estimation.contact_stream import ContactStream
from inertial_estimation.estimation.contacts import Contact, ContactKind
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import (
    FtCalibration,
    FtSpec,
    LinkSensorSpec,
)
from inertial_estimation.model.urdf import pose_from_xyz_rpy
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.stream import StreamRates
from inertial_estimation.uncertainty.stream_noise import StreamFilters, StreamNoise, stream_noise

FILE = ('calibration_file',)
"""What errors about its content are about."""


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


def build_assembler(settings: EstimatorSettings, robot: Robot) -> SampleAssembler:
    """Return what makes samples of messages."""
    fts = [sensor.name for sensor in robot.ft_sensors]
    imus = [imu.name for imu in robot.imus]
    measures = [imu.measures for imu in robot.imus]
    return SampleAssembler(robot.joint_names, fts, imus, settings, measures)


def build_contact_stream(settings: EstimatorSettings, robot: Robot) -> ContactStream:
    """Return what makes contacts of the points that are felt."""
    for frame in settings.touch_frames:
        robot.frame(frame, f"'touch_frames' names '{frame}'")
    return ContactStream(robot, settings)


def build_calibration(settings: EstimatorSettings, robot: Robot) -> FtCalibration:
    """Return how raw readings become wrenches."""
    return stack_calibrations(sensor_calibrations(settings, robot).values())


def calibration_path(settings: EstimatorSettings) -> Path | None:
    """Return the file that holds the calibration of the FT sensors."""
    given = settings.calibration_file
    return Path(given).expanduser() if given else None


def noisy_sensors(settings: EstimatorSettings, robot: Robot) -> NDArray[np.bool_]:
    """
    Tell of which FT sensors every channel should change with noise.

    Returns (n_fts,).
    """
    after = [settings.ft_of(sensor.name).frozen_after for sensor in robot.ft_sensors]
    return np.array(after, dtype=float) > 0.0


def sensor_calibrations(
    settings: EstimatorSettings, robot: Robot, *, new_file: bool = False
) -> dict[str, SensorCalibration]:
    """Return how the raw readings of each sensor become wrenches, and where that came from."""
    path = calibration_path(settings)
    expected = path is not None and not (new_file and not path.exists())
    of, saved = read_calibrations(path) if path is not None and expected else ('', {})
    if of and of != robot.name:
        raise ConfigError(
            f"'{path}' of 'calibration_file' is of robot '{of}', not of '{robot.name}': name that "
            'of this robot, or correct the name in it',
            about=FILE,
        )
    names = [sensor.name for sensor in robot.ft_sensors]
    if saved and names and not new_file and not saved.keys() & set(names):
        raise ConfigError(
            f"'{path}' of 'calibration_file' is of {', '.join(saved)}, FT sensors in use are "
            f'{", ".join(names)}: correct the names in it, or leave the file out',
            about=FILE,
        )
    found = {}
    for name in names:
        given = settings.ft_of(name)
        said = [key for key in ('matrix', 'offset') if any(getattr(given, key))]
        if name in saved and said:
            raise ConfigError(
                f"'ft.{name}.{said[0]}' is given, and '{path}' of 'calibration_file' holds "
                f"'{name}' too: leave one of them out",
                about=FILE,
            )
        if name in saved:
            require_usable(name, saved[name])
        matrix = np.reshape(given.matrix or np.eye(6), (6, 6))
        found[name] = saved.get(name) or SensorCalibration(matrix, np.array(given.offset))
    return found


def build_estimator(
    settings: EstimatorSettings,
    robot: Robot,
    calibration: FtCalibration | None = None,
    contacts: Sequence[Contact] | None = None,
) -> WrenchEstimator:
    """Return the estimator of the settings, or one with other contacts or another calibration."""
    contacts = build_contacts(settings) if contacts is None else contacts
    for contact in contacts:
        _check_frame(robot, contact)
    return WrenchEstimator(
        robot,
        contacts,
        calibration=calibration or build_calibration(settings, robot),
        length_scale=settings.length_scale,
        rank_tolerance=settings.rank_tolerance,
        acceleration_arrays=settings.angular_acceleration_source == 'array',
    )


def build_internal_wrenches(
    settings: EstimatorSettings, estimator: WrenchEstimator
) -> InternalWrenches:
    """
    Return what computes wrenches inside the robot, once the settings ask for some that exist.
    """
    wrenches, robot = InternalWrenches(estimator), estimator.robot
    asked = "'internal_wrench_joints' names '{}'"
    for joint in settings.internal_wrench_joints:
        try:
            wrenches.frames([joint])
        except NameNotFound as error:
            raise NameNotFound('joint', joint, error.known, asked.format(joint)) from error
        except ModelError as error:
            raise ConfigError(f'{asked.format(joint)}: {error}') from error
    for link in settings.net_wrench_links:
        where = f"'net_wrench_links' names '{link}'"
        if link not in robot.link_names and link in robot.frames:
            body = robot.link_names[robot.frame(link)[0]]
            raise ConfigError(f"{where}, a frame fixed to link '{body}': name '{body}'")
        if link not in robot.link_names:
            raise NameNotFound('link', link, robot.link_names, where)
    return wrenches


def build_noise(settings: EstimatorSettings, robot: Robot, rates: StreamRates) -> StreamNoise:
    """Return the noise of all readings that the settings state, behind their filters."""
    return stream_noise(settings, robot, rates, StreamFilters(settings))


def build_contacts(settings: EstimatorSettings) -> list[Contact]:
    """Return the default contacts of the settings."""
    contacts = []
    for name in settings.contacts:
        given = settings.contact_of(name)
        kind = ContactKind[given.kind.upper()]
        contacts.append(
            Contact(given.frame, kind, given.point, given.direction, given.wrench, name)
        )
    return contacts


def _check_frame(robot: Robot, contact: Contact) -> None:
    """Refuse a contact at a frame that the robot does not have, with its setting."""
    setting = f'contact.{contact.name}.frame'
    if contact.frame == contact.name:
        where = f"'contacts' names '{contact.name}'"
        robot.frame(contact.frame, where, f"or say in '{setting}' where it is")
    robot.frame(contact.frame, f"'{setting}' is '{contact.frame}'")


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
