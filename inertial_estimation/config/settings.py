# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Settings of both nodes and of replays: type, default, range and description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from inertial_estimation.config.files import load_parameters
from inertial_estimation.config.schema import ALL, Group, Value, named, read, setting, write
from inertial_estimation.errors import ConfigError, NameNotFound

NODE_NAME = 'wrench_estimator'
IDENTIFIER_NAME = 'parameter_identifier'
METHODS = (
    'entropic', 'semidefinite', 'mass_points', 'manifold', 'pullback', 'euclidean',
    'least_squares',
)  # fmt: skip
"""Methods of identification."""
LIVE_METHODS = ('entropic', 'semidefinite', 'pullback', 'euclidean')
"""Those with a prior that are fast enough for refits."""


@dataclass(frozen=True)
class JointStateSettings(Group):
    """Joint positions, velocities and accelerations."""

    topics: tuple[str, ...] = setting(
        ('joint_states',), 'JointState topics; the first one triggers each cycle'
    )
    max_age: float = setting(0.1, 'Oldest joint position used [s]', range=(0.0, 1e6))
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
        1e-4,
        'Standard deviation of joint positions, for kalman, adaptive_window and the deviations '
        '[rad or m]',
        range=(1e-9, 1.0),
    )
    velocity_noise: float = setting(
        0.01,
        'Standard deviation of joint velocities from messages, for the deviations [rad/s or m/s]',
        range=(0.0, 1e3),
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
        0.1,
        'Window of savitzky_golay, at least 7 samples; longest window of adaptive_window, at '
        'least 6 samples [s]',
        range=(1e-3, 10.0),
    )
    delay: float = setting(
        0.0,
        'Age of the estimated instant, at most half of the window except with kalman [s]',
        range=(0.0, 0.5),
    )
    smooth_readings: bool = setting(
        False,
        'Filter joint positions and readings of FT sensors and IMUs as well; savitzky_golay only',
    )
    joint_jerk: float = setting(
        3.0,
        'Root of the spectral density of the jerk of joints, for kalman '
        '[rad/s^3/sqrt(Hz) or m/s^3/sqrt(Hz)]',
        range=(1e-3, 1e6),
    )
    gyroscope_jerk: float = setting(
        30.0,
        'The same of the third derivative of angular velocities of IMUs [rad/s^4/sqrt(Hz)]',
        range=(1e-3, 1e7),
    )


@dataclass(frozen=True)
class StreamSettings(Group):
    """Readings of one sensor."""

    topic: str = setting('', 'Topic; empty: ft/<name> (WrenchStamped), imu/<name> (Imu)')
    frame_id: str = setting(
        '', 'Expected header.frame_id; empty: any frame at its place, or its own name'
    )
    max_age: float = setting(0.05, 'Oldest reading that is used [s]', range=(0.0, 1e6))
    time_offset: float = setting(0.0, 'Added to its stamps [s]', range=(-10.0, 10.0))
    frozen_after: float = setting(
        0.05,
        'Time of bit-equal values after which it counts as frozen, longer than its own period; '
        '0: off [s]',
        range=(0.0, 1e6),
    )


@dataclass(frozen=True)
class FtSettings(StreamSettings):
    """One FT sensor: source, place and calibration of its readings."""

    noise: tuple[float, ...] = setting(
        (0.15, 0.15, 0.15, 0.005, 0.005, 0.005),
        'Standard deviation of its readings, for the deviations: fx fy fz tx ty tz [N, Nm]',
        range=(0.0, 1e6),
        sizes=(6,),
    )
    offset: tuple[float, ...] = setting(
        (0.0,) * 6, 'Subtracted after the matrix: fx fy fz tx ty tz [N, Nm]', sizes=(6,)
    )
    matrix: tuple[float, ...] = setting(
        (), 'Applied to the reading first, 6 x 6 row by row; empty: identity', sizes=(0, 36)
    )
    temperature_topic: str = setting(
        '',
        'Temperature topic; empty: none, and a sensor whose calibration has temperature '
        'coefficients counts as missing',
    )
    joint: str = setting('', 'Fixed joint that holds the sensor; empty: from the URDF tag')
    pose: tuple[float, ...] = setting(
        (),
        'Sensor in the child link, x y z roll pitch yaw, with joint; empty: at it [m, rad]',
        sizes=(0, 6),
    )
    direction: str = setting(
        '', 'Side that acts, with joint; empty: child_to_parent',
        choices=('', 'child_to_parent', 'parent_to_child'),
    )  # fmt: skip


@dataclass(frozen=True)
class ImuSettings(StreamSettings):
    """One IMU: place and source of its readings."""

    frame: str = setting('', 'Link, frame or sensor where it sits; empty: the name itself')
    pose: tuple[float, ...] = setting(
        (),
        'IMU in that frame, then a link or joint, x y z roll pitch yaw; empty: at it [m, rad]',
        sizes=(0, 6),
    )
    measures: str = setting(
        '',
        'Quantities that it measures; empty: both, or that of the URDF tag if imus lists tags of '
        'both kinds',
        choices=('', 'both', 'accelerometer', 'gyroscope'),
    )
    accelerometer_noise: float = setting(
        0.03,
        'Standard deviation of its accelerations, for the deviations and for its weight beside '
        'others of its link [m/s^2]',
        range=(0.0, 1e3),
    )
    gyroscope_noise: float = setting(
        0.003,
        'Standard deviation of its angular velocities, for kalman, adaptive_window, the '
        'deviations and its weight beside others of its link [rad/s]',
        range=(0.0, 1e3),
    )


@dataclass(frozen=True)
class ContactSettings(Group):
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
class TareSettings(Group):
    """Offsets from the model while the robot stands still."""

    supports: tuple[str, ...] = setting(
        (), 'Supports of the robot during a tare: links or frames; empty: the fixed link'
    )
    duration: float = setting(2.0, 'Time of collection [s]', range=(0.1, 60.0))
    on_start: bool = setting(
        False, 'Tare at activation, unless a contact on a link outside the supports is reported'
    )


@dataclass(frozen=True)
class ModelSettings(Group):
    """Inertial parameters that change while the node runs."""

    accept_updates: bool = setting(
        True, 'Take over inertial parameters from the topic inertial_parameters'
    )
    max_mass_ratio: float = setting(
        3.0,
        'Largest ratio of the mass of an update to that of the URDF, and its inverse; '
        'at least 1; 0: any mass',
        range=(0.0, 1e6),
    )
    blend_time: float = setting(
        0.5, 'Time over which parameters change to an update; 0: one cycle [s]', range=(0.0, 60.0)
    )
    file: str = setting('', 'File of parameters for ~/save_model and ~/restore_model; empty: none')


@dataclass(frozen=True)
class OutputSettings(Group):
    """Topics of results and their rates."""

    wrench_rate: float = setting(
        0.0,
        'Rate of external_wrench, residual, internal_wrench and net_wrench while there is a '
        'subscriber; 0: every cycle [Hz]',
        range=(0.0, 10000.0),
    )
    deviations_rate: float = setting(
        10.0,
        'Highest rate of standard deviations, while there is a subscriber to them or to the '
        'markers; 0: none [Hz]',
        range=(0.0, 1000.0),
    )
    internal_wrench_joints: tuple[str, ...] = setting(
        (), 'Joints whose internal wrench is published, also fixed joints with an FT sensor'
    )
    net_wrench_links: tuple[str, ...] = setting((), 'Links whose net wrench is published')


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
        0.1, 'Time after which a reported contact that is not repeated ends [s]', range=(1e-3, 1e3)
    )
    angular_acceleration_source: str = setting(
        'filter',
        "IMU angular accelerations: from the gyroscope's derivative, from links with three "
        'accelerometers or more that are not on one line, or neglected',
        choices=('filter', 'array', 'zero'),
    )
    length_scale: float = setting(
        0.1, 'Moment noise over force noise, scales moments [m]', range=(1e-4, 10.0)
    )
    queue_depth: int = setting(20, 'History depth of the subscriptions', range=(1, 1000))
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
        NameNotFound, ConfigError
            As `from_dict`, and if the file is no such file.

        """
        return cls.from_dict(load_parameters(path, node))

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
class EffortSettings(Group):
    """Equations of joint torques."""

    joints: tuple[str, ...] = setting(
        (), "Joints whose efforts give equations; 'all' alone: every joint"
    )
    gains: tuple[float, ...] = setting(
        (),
        'Torque per reported effort, for example current, in the order of the joints; empty: 1 '
        '[Nm/A]',
        range=(-1e6, 1e6),
    )
    friction: tuple[str, ...] = setting(
        (), 'Unknowns of these joints beside inertia: viscous, coulomb, offset, drive_inertia'
    )
    dead_zone: float = setting(
        0.02,
        'Speed below which the effort of a joint gives no equations [rad/s or m/s]',
        range=(0.0, 10.0),
    )


@dataclass(frozen=True)
class RefitSettings(Group):
    """Physically consistent parameters from all equations."""

    method: str = setting('entropic', 'Method', choices=LIVE_METHODS)
    period: float = setting(
        1.0, 'Time between two refits, in whole seconds [s]', range=(1.0, 3600.0)
    )
    prior_weight: float = setting(
        0.1,
        'Weight of the URDF, against the mean squared residual over the noise',
        range=(1e-9, 1e6),
    )
    min_determined: int = setting(
        4,
        'Combinations of parameters that the data of a submodel must determine better than the '
        'URDF before its links are published',
        range=(1, 1000),
    )


@dataclass(frozen=True)
class IdentifierSettings(EstimatorSettings):
    """
    Settings of the identifier node: those of the estimator, whose topics it shares, and its own.

    Raises
    ------
    ConfigError, NameNotFound
        As for the estimator.

    """

    sample_rate: float = setting(
        100.0, 'Rate of the samples that give equations [Hz]', range=(1.0, 1000.0)
    )
    loaded_frames: tuple[str, ...] = setting(
        (), 'Links or frames with an unknown wrench at all times, such as standing feet'
    )
    payload_links: tuple[str, ...] = setting(
        (), 'Links that carry payloads; in other submodels the last link'
    )
    half_life: float = setting(
        600.0, 'Time with data after which equations count half [s]', range=(1.0, 1e9)
    )
    force_walk: float = setting(0.3, 'Random walk of force offsets [N/sqrt(s)]', range=(0.0, 1e3))
    moment_walk: float = setting(
        0.03, 'Random walk of moment offsets [Nm/sqrt(s)]', range=(0.0, 1e3)
    )
    innovation_gate: float = setting(
        4.0,
        'Residual over the usual one from which equations are rejected; 0: never; else >= 2',
        range=(0.0, 1e3),
    )
    state_file: str = setting('', 'File of the state of the identification; empty: none')
    efforts: EffortSettings = field(default_factory=EffortSettings)
    refit: RefitSettings = field(default_factory=RefitSettings)


def _check(settings: EstimatorSettings) -> None:
    """Check that the settings fit together; what needs the robot is checked with the robot."""
    joints = settings.joint_states
    lists = {
        'joints': settings.joints,
        'joint_states.topics': joints.topics,
        'joint_states.assumed': joints.assumed,
        'ft_sensors': settings.ft_sensors,
        'imus': settings.imus,
        'contacts': settings.contacts,
        'tare.supports': settings.tare.supports,
        'outputs.internal_wrench_joints': settings.outputs.internal_wrench_joints,
        'outputs.net_wrench_links': settings.outputs.net_wrench_links,
    }
    for name, names in lists.items():
        if '' in names:
            raise ConfigError(f"'{name}' holds an empty name")
        if twice := [one for k, one in enumerate(names) if one in names[:k]]:
            raise ConfigError(f"'{name}' names '{twice[0]}' more than once")
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
    if 0.0 < settings.model.max_mass_ratio < 1.0:
        raise ConfigError(
            f"'model.max_mass_ratio' is {settings.model.max_mass_ratio:g}, expected at least 1, "
            'or 0'
        )
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
    _check_groups(settings)


def _check_groups(settings: EstimatorSettings) -> None:
    """Check sensors and contacts."""
    for name in settings.contacts:
        given = settings.contact_of(name)
        if given.kind == 'axial_force' and not any(given.direction):
            raise ConfigError(f"'contact.{name}.direction' is zero: an axial force needs one")
    for name, sensor in settings.ft.items():
        for key in ('pose', 'direction'):
            if getattr(sensor, key) and not sensor.joint:
                raise ConfigError(f"'ft.{name}.{key}' is given without 'ft.{name}.joint'")
        if sensor.joint and name not in settings.ft_sensors:
            raise ConfigError(
                f"'ft.{name}.joint' is given and 'ft_sensors' is [all]: name every sensor in it"
            )
    for name, imu in settings.imu.items():
        if imu.pose and not imu.frame:
            raise ConfigError(f"'imu.{name}.pose' is given without 'imu.{name}.frame'")
    fts = settings.ft if settings.ft_sensors == ALL else settings.ft_sensors
    for kind, pairs in (
        ('ft', [(name, settings.ft_of(name).topic) for name in fts]),
        ('imu', [(name, settings.imu_of(name).topic) for name in settings.imus]),
    ):
        owners: dict[str, str] = {}
        for name, topic in pairs:
            other = owners.setdefault(topic, name)
            if other != name:
                raise ConfigError(
                    f"'{kind}.{other}.topic' and '{kind}.{name}.topic' are both '{topic}'"
                )
