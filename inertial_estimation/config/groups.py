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
    """One FT sensor: where its readings come from and what is done to them."""

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
        "Bit-equal values for so long mean a frozen sensor; must exceed the sensor's own period "
        'from one new value to the next; 0: off [s]',
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
        '', 'Who acts on whom, if the URDF has no tag',
        choices=('', 'child_to_parent', 'parent_to_child'),
    )  # fmt: skip


@dataclass(frozen=True)
class ImuSettings(Checked):
    """One IMU: where it sits and where its readings come from."""

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
        "Bit-equal values for so long mean a frozen IMU; must exceed the IMU's own period "
        'from one new value to the next; 0: off [s]',
        range=(0.0, 1e6),
    )
    measures: str = setting(
        '',
        'What it measures; empty: both, but where imus names tags of both kinds what the tag is '
        'that it sits at, unless one of the other kind is at its frame that imus does not name',
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
    """One accelerometer or gyroscope: where it sits."""

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
        'wrench', 'What is unknown', choices=('wrench', 'force', 'axial_force', 'known')
    )
    point: tuple[float, ...] = setting(
        (0.0, 0.0, 0.0), 'Where a force acts, in the frame [m]', sizes=(3,)
    )
    direction: tuple[float, ...] = setting(
        (0.0, 0.0, 1.0), 'Direction of an axial force, in the frame', sizes=(3,)
    )
    wrench: tuple[float, ...] = setting(
        (0.0,) * 6, 'Value of a known wrench, in and about the frame [N, Nm]', sizes=(6,)
    )


@dataclass(frozen=True)
class TouchSettings(Checked):
    """What is unknown where a frame is touched, as the contacts topic says."""

    kind: str = setting('wrench', 'What is unknown', choices=('wrench', 'force', 'axial_force'))
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
