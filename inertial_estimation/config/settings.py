# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Settings of the estimator: type, default, range and description; `groups` has the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from inertial_estimation.config.files import load_parameters
from inertial_estimation.config.groups import (
    ALL,
    LISTS,
    Checked,
    ContactSettings,
    FtSettings,
    ImuSettings,
    LinkSensorSettings,
    TouchSettings,
    are_all,
    check_listed,
    complete_groups,
    read_parameters,
    write_parameters,
)
from inertial_estimation.config.schema import Value, setting
from inertial_estimation.errors import ConfigError, NameNotFound

NODE_NAME = 'wrench_estimator'
NAME_LISTS = (
    'joints',
    'joint_topics',
    'assumed_joints',
    'internal_wrench_joints',
    'net_wrench_links',
    'tare_supports',
    *LISTS.values(),
)


@dataclass(frozen=True)
class EstimatorSettings(Checked):
    """
    Settings of the estimator node and of replays.

    The values, and how they fit together, are checked however it is made: `from_yaml`,
    `from_dict`, by hand, or `dataclasses.replace`.

    Raises
    ------
    ConfigError
        If a value does not fit, or two values do not fit together.
    NameNotFound
        If a group belongs to no listed name.

    """

    robot_description: str = setting('', 'URDF text; empty: from file or topic')
    robot_description_file: str = setting('', 'URDF file; empty: from the topic')
    joints: tuple[str, ...] = setting((), 'Joints to estimate; empty: all that move')
    fixed_link: str = setting('', 'Link or frame at rest in the world; empty: IMUs instead')
    external_torque_base: str = setting(
        '',
        'Base of external joint torques: link or frame; empty: the fixed link, else the root',
    )
    gravity: tuple[float, ...] = setting(
        (0.0, 0.0, -9.81), 'Gravity in the axes of the fixed link, up to 25 [m/s^2]', sizes=(3,)
    )
    joint_topics: tuple[str, ...] = setting(
        ('joint_states',), 'JointState topics; the first one triggers each cycle'
    )
    joint_max_age: float = setting(0.1, 'Oldest joint position used [s]', range=(0.0, 1e6))
    assumed_joints: tuple[str, ...] = setting((), 'Joints that are never reported')
    assumed_positions: tuple[float, ...] = setting((), 'Their positions, in that order [rad or m]')
    velocity_source: str = setting(
        'message', 'Joint velocities: from the message or filtered from positions',
        choices=('message', 'filter'),
    )  # fmt: skip
    acceleration_source: str = setting(
        'filter', 'Joint accelerations: filtered, or neglected', choices=('filter', 'zero')
    )
    angular_acceleration_source: str = setting(
        'filter',
        "IMU angular accelerations: from the gyroscope's derivative, from links with three "
        'accelerometers or more that are not on one line, or neglected',
        choices=('filter', 'array', 'zero'),
    )
    derivative_filter: str = setting(
        'savitzky_golay',
        'Filter of derivatives: polynomial over a fixed window, Kalman filter, or adaptive window',
        choices=('savitzky_golay', 'kalman', 'adaptive_window'),
    )
    derivative_window: float = setting(
        0.1,
        'Window of savitzky_golay, at least derivative_order + 4 samples; longest window of '
        'adaptive_window, at least 6 samples [s]',
        range=(1e-3, 10.0),
    )
    derivative_order: int = setting(3, 'Degree of the polynomial of savitzky_golay', range=(2, 5))
    derivative_joint_noise: float = setting(
        1e-4,
        'Standard deviation of joint positions, for kalman, adaptive_window and the deviations '
        '[rad or m]',
        range=(1e-9, 1.0),
    )
    derivative_gyroscope_noise: float = setting(
        3e-3,
        'Standard deviation of angular velocities of IMUs, for kalman and adaptive_window [rad/s]',
        range=(1e-9, 10.0),
    )
    derivative_joint_jerk: float = setting(
        3.0,
        'Root of the spectral density of the jerk of joints, for kalman '
        '[rad/s^3/sqrt(Hz) or m/s^3/sqrt(Hz)]',
        range=(1e-3, 1e6),
    )
    derivative_gyroscope_jerk: float = setting(
        30.0,
        'The same of the third derivative of the angular velocities of the IMUs '
        '[rad/s^4/sqrt(Hz)]',
        range=(1e-3, 1e7),
    )
    joint_velocity_noise: float = setting(
        0.01,
        'Standard deviation of joint velocities from messages, for the deviations topics '
        '[rad/s or m/s]',
        range=(0.0, 1e3),
    )
    assumed_position_noise: float = setting(
        0.0,
        'Standard deviation of assumed joint positions, for the deviations topics; 0: exact '
        '[rad or m]',
        range=(0.0, 1e3),
    )
    filter_delay: float = setting(
        0.0,
        'Age of the estimated instant, at most half of derivative_window except with kalman [s]',
        range=(0.0, 0.5),
    )
    smooth_readings: bool = setting(
        False,
        'Pass joint positions and the readings of FT sensors and IMUs through the filter as well; '
        'savitzky_golay only',
    )
    ft_sensors: tuple[str, ...] = setting(
        ALL, "FT sensors in use; 'all' alone: those of the URDF; empty: none"
    )
    calibration_file: str = setting(
        '',
        'File with matrix, offset and temperature coefficients of FT sensors, which ~/save '
        'writes; empty: those of ft.<name>',
    )
    tare_supports: tuple[str, ...] = setting(
        (),
        'Supports of the robot during a tare: links or frames; empty: the fixed link',
    )
    tare_duration: float = setting(2.0, 'Time of collection of a tare [s]', range=(0.1, 60.0))
    tare_accept_split: bool = setting(
        False,
        'Accept offsets that are not unique: smallest support wrenches of several supports',
    )
    tare_on_start: bool = setting(
        False,
        'Tare at activation, unless a contact on a link outside tare_supports is reported',
    )
    accelerometers: tuple[str, ...] = setting(
        (), 'Accelerometers of the robot; empty: every tag of the URDF'
    )
    gyroscopes: tuple[str, ...] = setting(
        (), 'Gyroscopes of the robot; empty: every tag of the URDF'
    )
    imus: tuple[str, ...] = setting((), 'IMUs in use; none with a fixed link')
    contacts: tuple[str, ...] = setting((), 'Default contacts, most trusted first')
    touch_kind: str = setting(
        'wrench', 'Kind of contacts that are reported on the topic contacts',
        choices=('wrench', 'force'),
    )  # fmt: skip
    touch_frames: tuple[str, ...] = setting(
        (),
        'Links, or frames on them, whose touches are of another kind, given in touch.<frame>; it '
        'holds for every frame fixed to the same link',
    )
    touch_spacing: float = setting(
        0.03, 'Touches of one frame that are closer than this are one [m]', range=(0.0, 10.0)
    )
    contact_timeout: float = setting(
        0.1, 'Time after which a reported contact that is not repeated ends [s]', range=(1e-3, 1e3)
    )
    length_scale: float = setting(
        0.1, 'Moment noise over force noise, scales moments [m]', range=(1e-4, 10.0)
    )
    rank_tolerance: float = setting(
        1e-2,
        'Combinations of contacts that the sensors show by less than this count as undetermined',
        range=(1e-12, 0.5),
    )
    take_inertial_parameters: bool = setting(
        True, 'Take over inertial parameters from the topic inertial_parameters'
    )
    update_mass_factor: float = setting(
        3.0,
        'Largest ratio of the mass of an update to that of the URDF, and its inverse; '
        'at least 1; 0: any mass',
        range=(0.0, 1e6),
    )
    model_blend_time: float = setting(
        0.5,
        'Time over which inertial parameters change to an update; 0: one cycle [s]',
        range=(0.0, 60.0),
    )
    model_file: str = setting(
        '',
        'File of inertial parameters for ~/save_model and ~/restore_model; empty: none',
    )
    reset_on_time_jump: bool = setting(True, 'Clear filters and buffers when time goes back')
    wrench_rate: float = setting(
        0.0,
        'Rate of external_wrench, residual, internal_wrench and net_wrench while there is a '
        'subscriber; 0: every cycle [Hz]',
        range=(0.0, 10000.0),
    )
    internal_wrench_joints: tuple[str, ...] = setting(
        (),
        'Joints whose internal wrench is published, also fixed joints with an FT sensor',
    )
    net_wrench_links: tuple[str, ...] = setting((), 'Links whose net wrench is published')
    deviations_rate: float = setting(
        10.0,
        'Highest rate of standard deviations, while there is a subscriber to them or to the '
        'markers; 0: none [Hz]',
        range=(0.0, 1000.0),
    )
    queue_depth: int = setting(20, 'History depth of the subscriptions', range=(1, 1000))
    autostart: bool = setting(True, 'Configure and activate at start')
    ft: Mapping[str, FtSettings] = field(default_factory=dict)
    imu: Mapping[str, ImuSettings] = field(default_factory=dict)
    contact: Mapping[str, ContactSettings] = field(default_factory=dict)
    touch: Mapping[str, TouchSettings] = field(default_factory=dict)
    accelerometer: Mapping[str, LinkSensorSettings] = field(default_factory=dict)
    gyroscope: Mapping[str, LinkSensorSettings] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check all values, complete the groups, and check how everything fits together."""
        super().__post_init__()
        for kind, names in LISTS.items():
            groups = complete_groups(kind, getattr(self, kind), getattr(self, names))
            object.__setattr__(self, kind, groups)
        _check(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> EstimatorSettings:
        """
        Return the settings that nested mappings or dotted names describe.

        Parameters
        ----------
        data : mapping
            As below ``ros__parameters``: ``{'ft': {'l_leg_ft': {'max_age': 0.1}}}``,
            ``{'ft.l_leg_ft.max_age': 0.1}`` or a mixture. What is missing has its default.

        Returns
        -------
        EstimatorSettings
            Each listed sensor, IMU and contact has its group.

        Raises
        ------
        NameNotFound
            If a parameter is not known, or a group belongs to nothing that is listed.
        ConfigError
            If a value does not fit, or two values do not fit together.

        """
        return cls(**read_parameters(cls, data))

    @classmethod
    def from_yaml(cls, path: str | Path, node: str = NODE_NAME) -> EstimatorSettings:
        """
        Return the settings of a ROS parameter file.

        Parameters
        ----------
        path : str or Path
            File with sections ``/**`` or the node's name, each with ``ros__parameters``.
        node : str, optional
            Name of the node.

        Returns
        -------
        EstimatorSettings

        Raises
        ------
        NameNotFound, ConfigError
            As `from_dict`, and if the file is no such file.

        """
        return cls.from_dict(load_parameters(path, node))

    def to_parameters(self) -> dict[str, Value]:
        """Return every setting under its dotted name, tuples as lists; `from_dict` undoes it."""
        return dict(write_parameters(self))

    def ft_of(self, name: str) -> FtSettings:
        """Return the settings of an FT sensor, its topic filled in."""
        given = self.ft.get(name, FtSettings())
        return replace(given, topic=given.topic or f'ft/{name}')

    def imu_of(self, name: str) -> ImuSettings:
        """Return the settings of an IMU, its topic and frame filled in."""
        given = self.imu.get(name, ImuSettings())
        topic, frame = given.topic or f'imu/{name}', given.frame or name
        return replace(given, topic=topic, frame=frame)

    def contact_of(self, name: str) -> ContactSettings:
        """Return the settings of a contact, its frame filled in."""
        given = self.contact.get(name, ContactSettings())
        return replace(given, frame=given.frame or name)

    def touch_of(self, frame: str) -> TouchSettings:
        """Return what is unknown where a frame is touched."""
        return self.touch.get(frame) or self._other_touch

    @cached_property
    def _other_touch(self) -> TouchSettings:
        """Touches at frames that have no settings of their own; asked for at every touch."""
        return TouchSettings(kind=self.touch_kind)


def _check(settings: EstimatorSettings) -> None:
    """Check that the settings fit together; what needs the robot is checked with the robot."""
    for name in NAME_LISTS:
        names = getattr(settings, name)
        if '' in names:
            raise ConfigError(f"'{name}' holds an empty name")
        twice = [other for other, count in Counter(names).items() if count > 1]
        if twice:
            raise ConfigError(f"'{name}' names '{twice[0]}' more than once")
    if not settings.joint_topics:
        raise ConfigError("'joint_topics' is empty: the first of them triggers each cycle")
    n_joints, n_values = len(settings.assumed_joints), len(settings.assumed_positions)
    if n_joints != n_values:
        raise ConfigError(
            f"'assumed_joints' has {n_joints} names and 'assumed_positions' {n_values} values"
        )
    unknown = set(settings.assumed_joints) - set(settings.joints)
    if settings.joints and unknown:
        raise NameNotFound("assumed joint in 'joints'", min(unknown), settings.joints)
    _check_groups(settings)
    _check_places(settings)
    _check_topics(settings)
    if 0.0 < settings.update_mass_factor < 1.0:
        raise ConfigError(
            f"'update_mass_factor' is {settings.update_mass_factor:g}, expected at least 1, or 0"
        )
    if settings.fixed_link and settings.imus:
        raise ConfigError(
            f"'fixed_link' is '{settings.fixed_link}' and 'imus' is {list(settings.imus)}: "
            'give one of them'
        )
    kind, delay = settings.derivative_filter, settings.filter_delay
    if settings.smooth_readings and kind != 'savitzky_golay':
        raise ConfigError(
            f"'smooth_readings' is true and 'derivative_filter' is '{kind}', expected "
            'savitzky_golay'
        )
    if kind != 'kalman' and delay > 0.5 * settings.derivative_window:
        raise ConfigError(
            f"'filter_delay' is {delay:g} s, expected at most half of 'derivative_window', "
            f'{settings.derivative_window:g} s'
        )


def _check_groups(settings: EstimatorSettings) -> None:
    """Refuse groups of sensors and contacts that no list names, and forces without direction."""
    for kind, names in LISTS.items():
        check_listed(kind, getattr(settings, kind), getattr(settings, names))
    contacts = {f'contact.{name}': settings.contact_of(name) for name in settings.contacts}
    touches = {f'touch.{name}': given for name, given in settings.touch.items()}
    groups: dict[str, ContactSettings | TouchSettings] = {**contacts, **touches}
    for name, given in groups.items():
        if given.kind == 'axial_force' and not any(given.direction):
            raise ConfigError(f"'{name}.direction' is zero: an axial force needs one")


def _check_places(settings: EstimatorSettings) -> None:
    """Check the settings that place sensors."""
    for name, sensor in settings.ft.items():
        for key in ('frame', 'pose', 'direction'):
            value = getattr(sensor, key)
            if value and not sensor.joint:
                raise ConfigError(f"'ft.{name}.{key}' is {value!r} without 'ft.{name}.joint'")
        if bool(sensor.pose) != (sensor.frame == 'sensor'):
            raise ConfigError(
                f"'ft.{name}.frame' is '{sensor.frame}' and 'ft.{name}.pose' has "
                f"{len(sensor.pose)} values: the pose belongs to frame 'sensor', and only to it"
            )
        if sensor.joint and name not in settings.ft_sensors:
            raise ConfigError(
                f"'ft.{name}.joint' is given and 'ft_sensors' is [all]: name every sensor in it"
            )
    for kind in ('imu', 'accelerometer', 'gyroscope'):
        for name, given in getattr(settings, kind).items():
            if given.pose and not given.frame:
                raise ConfigError(f"'{kind}.{name}.pose' is given without '{kind}.{name}.frame'")


def _check_topics(settings: EstimatorSettings) -> None:
    """Refuse one topic for two sensors of a kind."""
    fts = settings.ft if are_all('ft', settings.ft_sensors) else settings.ft_sensors
    topics = {'ft': [(name, settings.ft_of(name).topic) for name in fts]}
    topics['imu'] = [(name, settings.imu_of(name).topic) for name in settings.imus]
    for kind, pairs in topics.items():
        owners: dict[str, str] = {}
        for name, topic in pairs:
            other = owners.setdefault(topic, name)
            if other != name:
                raise ConfigError(
                    f"'{kind}.{other}.topic' and '{kind}.{name}.topic' are both '{topic}'"
                )
