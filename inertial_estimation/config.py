# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Every setting of the estimator, once: type, default, range and description.

The same dataclasses are filled from a ROS parameter file (``inertial-estimation replay``), from
ROS parameters (the node declares exactly these fields) or by hand. Lists of structures are
written the ROS way: a list of names, and one group of parameters for each name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from inertial_estimation.errors import ConfigError, LogError, NameNotFound

Value = bool | int | float | str | list[bool] | list[int] | list[float] | list[str]
Group = TypeVar('Group')


def setting(
    default: Any,
    description: str,
    *,
    range: tuple[float, float] | None = None,
    choices: tuple[str, ...] = (),
    sizes: tuple[int, ...] = (),
) -> Any:
    """
    Return a dataclass field that carries what a parameter descriptor needs.

    Parameters
    ----------
    default : bool, int, float, str or tuple
        Default value; a tuple stands for a list.
    description : str
        One sentence with the unit in square brackets.
    range : tuple of float, optional
        Smallest and largest allowed number.
    choices : tuple of str, optional
        The only allowed strings.
    sizes : tuple of int, optional
        The only allowed lengths of a list.

    Returns
    -------
    dataclasses.Field

    """
    metadata = {'description': description, 'range': range, 'choices': choices, 'sizes': sizes}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class FtSettings:
    """One FT sensor: where its readings come from and what is done to them."""

    topic: str = setting('', 'WrenchStamped topic; empty: ft/<name>')
    frame_id: str = setting('', 'Expected header.frame_id; empty: any')
    max_age: float = setting(0.05, 'Oldest reading that is used [s]', range=(0.0, 1e6))
    time_offset: float = setting(0.0, 'Added to the stamps of this sensor [s]', range=(-10.0, 10.0))
    frozen_after: float = setting(
        0.05, 'Bit-equal values for so long mean a frozen sensor; 0: off [s]', range=(0.0, 1e6)
    )
    offset: tuple[float, ...] = setting(
        (0.0,) * 6, 'Subtracted after the matrix: fx fy fz tx ty tz [N, Nm]', sizes=(6,)
    )
    matrix: tuple[float, ...] = setting(
        (), 'Applied to the reading first, 6 x 6 row by row; empty: identity', sizes=(0, 36)
    )
    joint: str = setting('', 'Fixed joint that holds the sensor; empty: from the URDF tag')
    frame: str = setting(
        '', 'Frame of the reading, if the URDF has no tag', choices=('', 'child', 'sensor')
    )
    pose: tuple[float, ...] = setting(
        (), 'Sensor in the child link, x y z roll pitch yaw, for frame: sensor [m, rad]',
        sizes=(0, 6),
    )
    direction: str = setting(
        '', 'Who acts on whom, if the URDF has no tag',
        choices=('', 'child_to_parent', 'parent_to_child'),
    )  # fmt: skip


@dataclass(frozen=True)
class ImuSettings:
    """One IMU: where it sits and where its readings come from."""

    frame: str = setting('', 'Link, frame or sensor tag of the URDF; empty: the name itself')
    topic: str = setting('', 'Imu topic; empty: imu/<name>')
    frame_id: str = setting('', 'Expected header.frame_id; empty: any')
    max_age: float = setting(0.05, 'Oldest reading that is used [s]', range=(0.0, 1e6))
    time_offset: float = setting(0.0, 'Added to the stamps of this IMU [s]', range=(-10.0, 10.0))
    frozen_after: float = setting(
        0.05, 'Bit-equal values for so long mean a frozen IMU; 0: off [s]', range=(0.0, 1e6)
    )


@dataclass(frozen=True)
class ContactSettings:
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
class EstimatorSettings:
    """Everything the estimator node and the replay can be told."""

    robot_description: str = setting('', 'URDF text; empty: from file or topic')
    robot_description_file: str = setting('', 'URDF file; empty: from the topic')
    joints: tuple[str, ...] = setting((), 'Joints to estimate; empty: all that move')
    fixed_link: str = setting('', 'Link or frame at rest in the world; empty: IMUs instead')
    gravity: tuple[float, ...] = setting(
        (0.0, 0.0, -9.81), 'Gravity in the axes of the fixed link [m/s^2]', sizes=(3,)
    )
    joint_topics: tuple[str, ...] = setting(
        ('joint_states',), 'JointState topics; the first one triggers each cycle'
    )
    joint_max_age: float = setting(0.1, 'Oldest joint position used [s]', range=(0.0, 1e6))
    assumed_joints: tuple[str, ...] = setting((), 'Joints that nobody reports')
    assumed_positions: tuple[float, ...] = setting((), 'Their positions, in that order [rad or m]')
    velocity_source: str = setting(
        'message', 'Joint velocities: from the message or filtered from positions',
        choices=('message', 'filter'),
    )  # fmt: skip
    acceleration_source: str = setting(
        'filter', 'Joint accelerations: filtered, or neglected', choices=('filter', 'zero')
    )
    angular_acceleration_source: str = setting(
        'filter', "IMU angular accelerations: from the gyroscope's derivative, or neglected",
        choices=('filter', 'zero'),
    )  # fmt: skip
    derivative_window: float = setting(
        0.1, 'Length of the causal Savitzky-Golay filter [s]', range=(1e-3, 10.0)
    )
    derivative_order: int = setting(
        3, 'Degree of the polynomial of that filter', range=(2, 5)
    )
    ft_sensors: tuple[str, ...] = setting((), 'FT sensors in use; empty: all of the URDF')
    imus: tuple[str, ...] = setting((), 'IMUs in use; none with a fixed link')
    contacts: tuple[str, ...] = setting((), 'Default contacts, most trusted first')
    length_scale: float = setting(
        0.1, 'Moment noise over force noise, scales moments [m]', range=(1e-4, 10.0)
    )
    rank_tolerance: float = setting(
        1e-3, 'Singular values below this times the largest count as zero', range=(1e-12, 0.5)
    )
    reset_on_time_jump: bool = setting(True, 'Clear filters and buffers when time goes back')
    visualization_rate: float = setting(
        50.0, 'Rate of the rviz topics and markers; 0: none [Hz]', range=(0.0, 1000.0)
    )
    queue_depth: int = setting(5, 'History depth of the subscriptions', range=(1, 1000))
    executor: str = setting(
        'events', 'Executor of the node: events where rclpy has it, or single',
        choices=('events', 'single'),
    )  # fmt: skip
    raw: bool = setting(True, 'Read messages from their bytes; false: as rclpy objects')
    autostart: bool = setting(True, 'Configure and activate at start')
    fifo_priority: int = setting(0, 'SCHED_FIFO priority; 0: ordinary', range=(0, 99))
    cpu_affinity: tuple[int, ...] = setting((), 'Processors to run on; empty: any')
    ft: Mapping[str, FtSettings] = field(default_factory=dict)
    imu: Mapping[str, ImuSettings] = field(default_factory=dict)
    contact: Mapping[str, ContactSettings] = field(default_factory=dict)
