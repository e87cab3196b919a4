# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The groups of settings: one sensor, one contact, one frame that may be touched."""

from __future__ import annotations

from dataclasses import dataclass

from inertial_estimation.config.schema import read_fields, setting


class Checked:
    """Settings that no way of making them keeps from being checked."""

    def __post_init__(self) -> None:
        """Check every value by itself."""
        read_fields(self)


@dataclass(frozen=True)
class FtSettings(Checked):
    """One FT sensor: source and calibration of its readings."""

    topic: str = setting('', 'WrenchStamped topic; empty: ft/<name>')
    frame_id: str = setting(
        '',
        'Expected header.frame_id; empty: any frame at its place, or its own name',
    )
    max_age: float = setting(0.05, 'Oldest reading that is used [s]', range=(0.0, 1e6))
    time_offset: float = setting(
        0.0, 'Added to the stamps of this sensor [s]', range=(-10.0, 10.0)
    )
    frozen_after: float = setting(
        0.05,
        "Time of bit-equal values after which the sensor is frozen; longer than the sensor's "
        'own period; 0: off [s]',
        range=(0.0, 1e6),
    )
    offset: tuple[float, ...] = setting(
        (0.0,) * 6, 'Subtracted after the matrix: fx fy fz tx ty tz [N, Nm]', sizes=(6,)
    )
    matrix: tuple[float, ...] = setting(
        (), 'Applied to the reading first, 6 x 6 row by row; empty: identity', sizes=(0, 36)
    )
    temperature_topic: str = setting(
        '',
        'Temperature topic of this sensor; empty: none, and a sensor whose calibration has '
        'temperature coefficients counts as missing',
    )
    temperature_max_age: float = setting(
        60.0, 'Oldest temperature that is used [s]', range=(0.0, 1e6)
    )
    noise: tuple[float, ...] = setting(
        (0.15, 0.15, 0.15, 0.005, 0.005, 0.005),
        'Standard deviation of its readings, for the deviations topics: fx fy fz tx ty tz [N, Nm]',
        range=(0.0, 1e6),
        sizes=(6,),
    )
    joint: str = setting('', 'Fixed joint that holds the sensor; empty: from the URDF tag')
    frame: str = setting(
        '', 'Frame of the reading, if the URDF has no tag', choices=('', 'child', 'sensor')
    )
    pose: tuple[float, ...] = setting(
        (),
        'Sensor in the child link, x y z roll pitch yaw, for frame: sensor [m, rad]',
        sizes=(0, 6),
    )
    direction: str = setting(
        '', 'Side that acts, if the URDF has no tag',
        choices=('', 'child_to_parent', 'parent_to_child'),
    )  # fmt: skip


@dataclass(frozen=True)
class ImuSettings(Checked):
    """One IMU: place and source of its readings."""

    frame: str = setting('', 'Link, frame or sensor where it sits; empty: the name itself')
    pose: tuple[float, ...] = setting(
        (),
        'IMU in that frame, then a link or joint, x y z roll pitch yaw; empty: at it [m, rad]',
        sizes=(0, 6),
    )
    topic: str = setting('', 'Imu topic; empty: imu/<name>')
    frame_id: str = setting(
        '',
        'Expected header.frame_id; empty: any frame at its place, or its own name',
    )
    max_age: float = setting(0.05, 'Oldest reading that is used [s]', range=(0.0, 1e6))
    time_offset: float = setting(0.0, 'Added to the stamps of this IMU [s]', range=(-10.0, 10.0))
    frozen_after: float = setting(
        0.05,
        "Time of bit-equal values after which the IMU counts as frozen; longer than the IMU's own "
        'period; 0: off [s]',
        range=(0.0, 1e6),
    )
    measures: str = setting(
        '',
        'Quantities that it measures; empty: both, or that of the URDF tag if imus lists tags of '
        'both kinds',
        choices=('', 'both', 'accelerometer', 'gyroscope'),
    )
    accelerometer_noise: float = setting(
        0.03,
        'Standard deviation of its accelerations, for the deviations topics, and for its weight '
        'beside others of its link [m/s^2]',
        range=(0.0, 1e3),
    )
    gyroscope_noise: float = setting(
        0.003,
        'Standard deviation of its angular velocities, for the deviations topics, and for its '
        'weight beside others of its link; filters have derivative_gyroscope_noise [rad/s]',
        range=(0.0, 1e3),
    )


@dataclass(frozen=True)
class LinkSensorSettings(Checked):
    """Place of one accelerometer or gyroscope."""

    frame: str = setting('', 'Link, frame or sensor tag of the URDF; empty: the name itself')
    pose: tuple[float, ...] = setting(
        (),
        'Sensor in that frame, then a link or joint, x y z roll pitch yaw; empty: at it [m, rad]',
        sizes=(0, 6),
    )


@dataclass(frozen=True)
class ContactSettings(Checked):
    """One default contact."""

    frame: str = setting('', 'Link or frame of the URDF; empty: the name itself')
    kind: str = setting(
        'wrench', 'Unknowns of the contact', choices=('wrench', 'force', 'axial_force', 'known')
    )
    point: tuple[float, ...] = setting(
        (0.0, 0.0, 0.0), 'Point of application of a force, in the frame [m]', sizes=(3,)
    )
    direction: tuple[float, ...] = setting(
        (0.0, 0.0, 1.0), 'Direction of an axial force, in the frame', sizes=(3,)
    )
    wrench: tuple[float, ...] = setting(
        (0.0,) * 6, 'Value of a known wrench, in and about the frame [N, Nm]', sizes=(6,)
    )


@dataclass(frozen=True)
class TouchSettings(Checked):
    """Kind of contacts that are reported on a frame."""

    kind: str = setting(
        'wrench', 'Unknowns of the contact', choices=('wrench', 'force', 'axial_force')
    )
    direction: tuple[float, ...] = setting(
        (0.0, 0.0, 1.0), 'Direction of an axial force, in the frame', sizes=(3,)
    )


GROUPS: dict[str, type] = {
    'ft': FtSettings,
    'imu': ImuSettings,
    'contact': ContactSettings,
    'touch': TouchSettings,
    'accelerometer': LinkSensorSettings,
    'gyroscope': LinkSensorSettings,
}
"""Kinds of groups, in ``<kind>.<name>.<setting>``."""
