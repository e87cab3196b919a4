# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Groups of settings: joint states, filter, sensors, contacts, outputs, and those of refits."""

from __future__ import annotations

from dataclasses import dataclass

from inertial_estimation.config.schema import Group, setting


@dataclass(frozen=True)
class JointStateSettings(Group):
    """Joint positions, velocities and accelerations."""

    topics: tuple[str, ...] = setting(
        ('joint_states',), 'JointState topics; the first one triggers each cycle'
    )
    max_age: float = setting(0.1, 'Oldest joint position used [s]', range=(0.0, 1e6), live=True)
    velocity_source: str = setting(
        'message', 'Joint velocities: from the message or filtered from positions',
        choices=('message', 'filter'),
    )  # fmt: skip
    acceleration_source: str = setting(
        'filter', 'Joint accelerations: filtered, or neglected', choices=('filter', 'zero')
    )
    assumed: tuple[str, ...] = setting((), 'Joints that are never reported')
    assumed_positions: tuple[float, ...] = setting((), 'Their positions, in that order [rad or m]')
    position_noise: float = setting(
        1e-4, 'Standard deviation of joint positions [rad or m]', range=(1e-9, 1.0)
    )
    velocity_noise: float = setting(
        0.01, 'Standard deviation of joint velocities in messages [rad/s or m/s]', range=(0.0, 1e3)
    )


@dataclass(frozen=True)
class FilterSettings(Group):
    """Filter of the derivatives of joint positions and angular velocities."""

    kind: str = setting(
        'savitzky_golay',
        'Cubic polynomial over a fixed window, Kalman filter, or adaptive window',
        choices=('savitzky_golay', 'kalman', 'adaptive_window'),
    )
    window: float = setting(
        0.1, 'Window of savitzky_golay, at least 7 samples; longest of adaptive_window [s]',
        range=(1e-3, 10.0),
    )  # fmt: skip
    delay: float = setting(
        0.0, 'Age of the estimated instant, at most half of the window except with kalman [s]',
        range=(0.0, 5.0),
    )  # fmt: skip
    smooth_readings: bool = setting(
        False, 'Filter positions and readings of FT sensors and IMUs too; savitzky_golay only'
    )
    joint_jerk: float = setting(
        3.0, 'Root spectral density of the jerk of joints, for kalman [(rad or m)/s^3/sqrt(Hz)]',
        range=(1e-3, 1e6),
    )  # fmt: skip


@dataclass(frozen=True)
class StreamSettings(Group):
    """Readings of one sensor."""

    topic: str = setting('', 'Topic; empty: ft/<name> (WrenchStamped), imu/<name> (Imu)')
    frame_id: str = setting(
        '', 'Expected header.frame_id; empty: any frame at its place, or its own name'
    )
    max_age: float = setting(0.05, 'Oldest reading that is used [s]', range=(0.0, 1e6), live=True)
    time_offset: float = setting(0.0, 'Added to its stamps [s]', range=(-10.0, 10.0))


@dataclass(frozen=True)
class FtSettings(StreamSettings):
    """One FT sensor: source, place and calibration of its readings."""

    noise: tuple[float, ...] = setting(
        (0.15, 0.15, 0.15, 0.005, 0.005, 0.005),
        'Standard deviation of its readings: fx fy fz tx ty tz [N, Nm]',
        range=(0.0, 1e6), sizes=(6,),
    )  # fmt: skip
    offset: tuple[float, ...] = setting(
        (0.0,) * 6, 'Subtracted from its readings: fx fy fz tx ty tz [N, Nm]', sizes=(6,)
    )
    temperature_topic: str = setting(
        '', 'Temperature topic, needed by calibrations with temperature coefficients; empty: none'
    )
    joint: str = setting('', 'Fixed joint that holds the sensor; empty: from the URDF tag')
    direction: str = setting(
        '', 'Side that acts, with joint; empty: child_to_parent',
        choices=('', 'child_to_parent', 'parent_to_child'),
    )  # fmt: skip


@dataclass(frozen=True)
class ImuSettings(StreamSettings):
    """One IMU: place and source of its readings."""

    frame: str = setting('', 'Link, frame or sensor where it sits; empty: the name itself')
    pose: tuple[float, ...] = setting(
        (), 'IMU in that frame, then a link or joint, x y z roll pitch yaw; empty: at it [m, rad]',
        sizes=(0, 6),
    )  # fmt: skip
    measures: str = setting(
        'both', 'Quantities that it measures', choices=('both', 'accelerometer', 'gyroscope')
    )
    accelerometer_noise: float = setting(
        0.03, 'Standard deviation of its accelerations [m/s^2]', range=(0.0, 1e3)
    )
    gyroscope_noise: float = setting(
        0.003, 'Standard deviation of its angular velocities [rad/s]', range=(0.0, 1e3)
    )


@dataclass(frozen=True)
class ContactSettings(Group):
    """One default contact."""

    frame: str = setting('', 'Link or frame of the URDF; empty: the name itself')
    kind: str = setting(
        'wrench',
        'Unknowns of the contact; an axial force is along z',
        choices=('wrench', 'force', 'axial_force', 'known'),
    )
    point: tuple[float, ...] = setting(
        (0.0, 0.0, 0.0), 'Point of application of a force, in the frame [m]', sizes=(3,)
    )
    wrench: tuple[float, ...] = setting(
        (0.0,) * 6, 'Value of a known wrench, in and about the frame [N, Nm]', sizes=(6,)
    )


@dataclass(frozen=True)
class TareSettings(Group):
    """Offsets from the model while the robot stands still."""

    supports: tuple[str, ...] = setting(
        (), 'Supports of the robot during a tare: links or frames; empty: the fixed link'
    )
    duration: float = setting(2.0, 'Time of collection [s]', range=(0.1, 60.0))


@dataclass(frozen=True)
class ModelSettings(Group):
    """Inertial parameters that change while the node runs."""

    file: str = setting('', 'File of parameters for ~/save_model and ~/restore_model; empty: none')


@dataclass(frozen=True)
class OutputSettings(Group):
    """Topics of results and their rates."""

    wrench_rate: float = setting(
        0.0,
        'Rate of external_wrench, residual, internal_wrench and net_wrench; 0: every cycle [Hz]',
        range=(0.0, 10000.0), live=True,
    )  # fmt: skip
    deviations_rate: float = setting(
        10.0, 'Highest rate of standard deviations, also for the markers; 0: none [Hz]',
        range=(0.0, 1000.0), live=True,
    )  # fmt: skip
    internal_wrench_joints: tuple[str, ...] = setting(
        (), 'Joints whose internal wrench is published, also fixed joints with an FT sensor'
    )
    net_wrench_links: tuple[str, ...] = setting((), 'Links whose net wrench is published')


@dataclass(frozen=True)
class EffortSettings(Group):
    """Equations of joint torques."""

    joints: tuple[str, ...] = setting(
        (), "Joints whose efforts give equations; 'all' alone: every joint"
    )
    gains: tuple[float, ...] = setting(
        (), 'Torque over reported effort, in the order of the joints [Nm/A of currents]; empty: 1',
        range=(-1e6, 1e6),
    )  # fmt: skip
    friction: tuple[str, ...] = setting(
        (), 'Unknowns of these joints beside inertia: viscous, coulomb, offset, drive_inertia'
    )
    dead_zone: float = setting(
        0.02, 'Speed below which the effort of a joint gives no equations [rad/s or m/s]',
        range=(0.0, 10.0),
    )  # fmt: skip


@dataclass(frozen=True)
class RefitSettings(Group):
    """Physically consistent parameters from all equations."""

    prior_weight: float = setting(
        0.1, 'Weight of the URDF, against the mean squared residual over the noise',
        range=(1e-6, 1e6),
    )  # fmt: skip
