# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Settings of both nodes and of replays: type, default, range and description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from inertial_estimation.config.files import load_parameters
from inertial_estimation.config.groups import (
    ContactSettings,
    EffortSettings,
    FilterSettings,
    FtSettings,
    ImuSettings,
    JointStateSettings,
    ModelSettings,
    OutputSettings,
    RefitSettings,
    TareSettings,
)
from inertial_estimation.config.schema import ALL, Group, Value, named, read, setting, write
from inertial_estimation.errors import ConfigError, NameNotFound

NODE_NAME = 'wrench_estimator'
IDENTIFIER_NAME = 'parameter_identifier'


@dataclass(frozen=True)
class EstimatorSettings(Group):
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
    ft_sensors: tuple[str, ...] = setting(
        ALL, "FT sensors in use; 'all' alone: those of the URDF; empty: none"
    )
    imus: tuple[str, ...] = setting((), 'IMUs in use; none with a fixed link')
    contacts: tuple[str, ...] = setting((), 'Default contacts, most trusted first')
    calibration_file: str = setting(
        '',
        'File with matrix, offset and temperature coefficients of FT sensors, which ~/save '
        'writes; empty: those of ft.<name>',
    )
    gravity: tuple[float, ...] = setting(
        (0.0, 0.0, -9.81), 'Gravity in the axes of the fixed link, up to 25 [m/s^2]', sizes=(3,)
    )
    touch_kind: str = setting(
        'wrench', 'Kind of contacts that are reported on the topic contacts',
        choices=('wrench', 'force'),
    )  # fmt: skip
    contact_timeout: float = setting(
        0.1, 'Time after which a reported contact that is not repeated ends [s]',
        range=(1e-3, 1e3), live=True,
    )  # fmt: skip
    angular_acceleration_source: str = setting(
        'filter',
        "IMU angular accelerations: from the gyroscope's derivative, from links with three "
        'accelerometers or more that are not on one line, or neglected',
        choices=('filter', 'array', 'zero'),
    )
    frozen_after: float = setting(
        0.05,
        'Time of bit-equal values after which a sensor counts as frozen, longer than its period; '
        '0: off [s]',
        range=(0.0, 1e6),
    )
    autostart: bool = setting(True, 'Configure and activate at start')
    joint_states: JointStateSettings = field(default_factory=JointStateSettings)
    filter: FilterSettings = field(default_factory=FilterSettings)
    ft: Mapping[str, FtSettings] = named(FtSettings, 'ft_sensors')
    imu: Mapping[str, ImuSettings] = named(ImuSettings, 'imus')
    contact: Mapping[str, ContactSettings] = named(ContactSettings, 'contacts')
    tare: TareSettings = field(default_factory=TareSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    outputs: OutputSettings = field(default_factory=OutputSettings)

    def __post_init__(self) -> None:
        """Check all values, complete the groups, and check how everything fits together."""
        super().__post_init__()
        _check(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
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
        found: Self = read(cls, data)
        return found

    @classmethod
    def from_yaml(cls, path: str | Path, node: str = NODE_NAME) -> Self:
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
        ConfigError
            If it is no such file, or for the reasons of `from_dict`.

        """
        given = load_parameters(path, node)
        if (file := given.get('calibration_file')) and isinstance(file, str):
            given['calibration_file'] = str(Path(path).parent / Path(file).expanduser())
        try:
            return cls.from_dict(given)
        except (NameNotFound, ConfigError) as error:
            raise ConfigError(f'{path}: {error}') from error

    def to_parameters(self) -> dict[str, Value]:
        """Return every setting under its dotted name, tuples as lists; `from_dict` undoes it."""
        return dict(write(self))

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


@dataclass(frozen=True)
class IdentifierSettings(EstimatorSettings):
    """
    Settings of the identifier node: those of the estimator, whose topics it shares, and its own.

    Raises
    ------
    ConfigError, NameNotFound
        As for the estimator.

    """

    loaded_frames: tuple[str, ...] = setting(
        (), 'Links or frames with an unknown wrench at all times, such as standing feet'
    )
    payload_links: tuple[str, ...] = setting(
        (), 'Links that carry payloads; in other submodels the last link'
    )
    half_life: float = setting(
        600.0, 'Time with data after which equations count half [s]', range=(1.0, 1e9)
    )
    force_walk: float = setting(
        0.3, 'Random walk of force offsets; that of moments is 0.1 m times it [N/sqrt(s)]',
        range=(0.0, 1e3),
    )  # fmt: skip
    state_file: str = setting('', 'File of the state of the identification; empty: none')
    efforts: EffortSettings = field(default_factory=EffortSettings)
    refit: RefitSettings = field(default_factory=RefitSettings)


def _check(settings: EstimatorSettings) -> None:
    """Check that the settings fit together; what needs the robot is checked with the robot."""
    joints = settings.joint_states
    if not joints.topics:
        raise ConfigError("'joint_states.topics' is empty: the first of them triggers each cycle")
    if len(joints.assumed) != len(joints.assumed_positions):
        raise ConfigError(
            f"'joint_states.assumed' has {len(joints.assumed)} names and "
            f"'joint_states.assumed_positions' {len(joints.assumed_positions)} values"
        )
    unknown = set(joints.assumed) - set(settings.joints)
    if settings.joints and unknown:
        raise NameNotFound("assumed joint in 'joints'", min(unknown), settings.joints)
    if settings.fixed_link and settings.imus:
        raise ConfigError(
            f"'fixed_link' is '{settings.fixed_link}' and 'imus' is {list(settings.imus)}: "
            'give one of them'
        )
    chosen = settings.filter
    if chosen.smooth_readings and chosen.kind != 'savitzky_golay':
        raise ConfigError(
            f"'filter.smooth_readings' is true and 'filter.kind' is '{chosen.kind}', expected "
            'savitzky_golay'
        )
    if chosen.kind != 'kalman' and chosen.delay > 0.5 * chosen.window:
        raise ConfigError(
            f"'filter.delay' is {chosen.delay:g} s, expected at most half of 'filter.window', "
            f'{chosen.window:g} s'
        )
    for name, sensor in settings.ft.items():
        if sensor.direction and not sensor.joint:
            raise ConfigError(f"'ft.{name}.direction' is given without 'ft.{name}.joint'")
        if sensor.joint and name not in settings.ft_sensors:
            raise ConfigError(
                f"'ft.{name}.joint' is given and 'ft_sensors' is [all]: name every sensor in it"
            )
    for name, imu in settings.imu.items():
        if imu.pose and not imu.frame:
            raise ConfigError(f"'imu.{name}.pose' is given without 'imu.{name}.frame'")
    fts = settings.ft if settings.ft_sensors == ALL else settings.ft_sensors
    for kind, topics in (
        ('FT sensors', [settings.ft_of(name).topic for name in fts]),
        ('IMUs', [settings.imu_of(name).topic for name in settings.imus]),
    ):
        for topic in topics:
            if topics.count(topic) > 1:
                raise ConfigError(f"several {kind} have the topic '{topic}'")
