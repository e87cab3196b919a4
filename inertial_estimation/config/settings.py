# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Settings of both nodes and of replays: type, default, range and description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inertial_estimation.config.files import load_parameters
from inertial_estimation.config.schema import ALL, G, Group, Value, named, read, setting, write
from inertial_estimation.errors import ConfigError, NameNotFound

NODE_NAME = 'wrench_estimator'
IDENTIFIER_NAME = 'parameter_identifier'


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
        'Cubic over a window, quintic for a delay of half of it, or Kalman filter',
        choices=('savitzky_golay', 'quintic', 'kalman'),
    )
    window: float = setting(
        0.1, 'Window, at least 7 samples, with quintic 9 [s]', range=(1e-3, 10.0)
    )
    delay: float = setting(
        0.0, 'Age of the estimated instant, at most half of the window except with kalman [s]',
        range=(0.0, 5.0),
    )  # fmt: skip
    smooth_readings: bool = setting(
        False, 'Filter positions and readings of FT sensors and IMUs too; not with kalman'
    )
    joint_jerk: float = setting(
        3.0, 'Root spectral density of the jerk of joints, for kalman [(rad or m)/s^3/sqrt(Hz)]',
        range=(1e-3, 1e6),
    )  # fmt: skip

    def centred(self) -> FilterSettings:
        """Return a filter that does not lag, as nothing waits for it."""
        if self.kind != 'savitzky_golay':
            return replace(self, delay=max(self.delay, 0.5 * self.window))
        return replace(self, kind='quintic', window=2.0 * self.window, delay=self.window)


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
    range: tuple[float, ...] = setting(
        (), 'Range of its readings, from which on they are invalid: fx fy fz tx ty tz; empty: '
        'not known [N, Nm]', range=(1e-6, 1e9), sizes=(0, 6),
    )  # fmt: skip
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
        'Unknowns of the contact; unilateral, friction_cone and surface only push',
        choices=(
            'wrench', 'force', 'axial_force', 'unilateral', 'friction_cone', 'surface', 'known',
        ),
    )  # fmt: skip
    point: tuple[float, ...] = setting(
        (0.0, 0.0, 0.0), 'Point of application of a force, centre of a surface, in the frame [m]',
        sizes=(3,),
    )  # fmt: skip
    direction: tuple[float, ...] = setting(
        (0.0, 0.0, 1.0), 'Direction of an axial force, or unit normal of a push, in the frame',
        sizes=(3,),
    )  # fmt: skip
    friction: float = setting(
        0.0, 'Coefficient of friction of a friction_cone or surface', range=(0.0, 100.0)
    )
    size: tuple[float, ...] = setting(
        (0.0, 0.0), 'Edges of the rectangle of a surface, along x and y of the frame [m]',
        sizes=(2,),
    )  # fmt: skip
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
    publisher: str = setting(
        IDENTIFIER_NAME, 'Node whose updates of parameters are used; empty: any'
    )


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

    urdf_error: float = setting(
        0.2, 'Relative error of the inertial parameters of the URDF, until motion shows less',
        range=(1e-3, 3.0),
    )  # fmt: skip


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
        '', 'Calibration of FT sensors, which ~/save writes; empty: ft.<name>.offset'
    )
    gravity: tuple[float, ...] = setting(
        (0.0, 0.0, -9.81), 'Gravity in the axes of the fixed link, up to 25 [m/s^2]', sizes=(3,)
    )
    touch_kind: str = setting(
        'wrench', 'Kind of reported contacts; those on the topic contacts, without a normal, are '
        'a force instead of one that only pushes',
        choices=('wrench', 'force', 'unilateral', 'friction_cone'),
    )  # fmt: skip
    touch_friction: float = setting(
        0.0, 'Coefficient of friction of reported contacts, for friction_cone', range=(0.0, 100.0)
    )
    contact_timeout: float = setting(
        0.1, 'Time after which a reported contact that is not repeated ends [s]',
        range=(1e-3, 1e3), live=True,
    )  # fmt: skip
    angular_acceleration_source: str = setting(
        'filter', 'IMU angular accelerations: from gyroscopes, from three accelerometers or more '
        'of a link, or neglected', choices=('filter', 'array', 'zero'),
    )  # fmt: skip
    frozen_after: float = setting(
        0.05, 'Time of equal values after which a sensor is frozen, over its period; 0: off [s]',
        range=(0.0, 1e6),
    )  # fmt: skip
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
    def from_dict(cls: type[G], data: Mapping[str, Any]) -> G:
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
        return read(cls, data)

    @classmethod
    def from_yaml(cls: type[G], path: str | Path, node: str = NODE_NAME) -> G:
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
            return read(cls, given)
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
    """Settings of the identifier node: those of the estimator, and its own."""

    loaded_frames: tuple[str, ...] = setting(
        (), 'Links or frames with an unknown wrench at all times, such as standing feet'
    )
    payload_links: tuple[str, ...] = setting(
        (), 'Links that carry payloads; in other submodels the last link'
    )
    half_life: float = setting(
        600.0, 'Time with data after which equations count half [s]', range=(1.0, 1e9)
    )
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
    if chosen.smooth_readings and chosen.kind == 'kalman':
        raise ConfigError(
            f"'filter.smooth_readings' is true and 'filter.kind' is '{chosen.kind}', expected "
            'savitzky_golay or quintic'
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
