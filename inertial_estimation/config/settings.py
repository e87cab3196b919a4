# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Settings of both nodes and of replays: type, default, range and description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inertial_estimation.config.files import load_parameters
from inertial_estimation.config.schema import ALL, G, Group, Value, named, parse, setting, write
from inertial_estimation.errors import ConfigError, NameNotFound

NODE_NAME = 'wrench_estimator'
IDENTIFIER_NAME = 'parameter_identifier'
ZERO = (0.0,) * 6
Strings = tuple[str, ...]
Floats = tuple[float, ...]


def noise(default: Any, of: str, unit: str, **more: Any) -> Any:
    """Return a setting of a standard deviation."""
    more = {'range': (0.0, 1e6), **more}
    return setting(default, f'Standard deviation of {of} [{unit}]', **more)


@dataclass(frozen=True)
class JointStateSettings(Group):
    """Joint positions, velocities and accelerations."""

    topics: Strings = setting(
        ('joint_states',), 'JointState topics; the first one triggers each cycle'
    )
    max_age: float = setting(0.1, 'Oldest joint position used [s]', range=(0.0, 1e6), live=True)
    velocity_source: str = setting(
        'message', 'Joint velocities: of messages or filtered', choices=('message', 'filter')
    )
    acceleration_source: str = setting(
        'filter', 'Joint accelerations: filtered or neglected', choices=('filter', 'zero')
    )
    assumed: Strings = setting((), 'Joints that are never reported')
    assumed_positions: Floats = setting((), 'Their positions, in that order [rad or m]')
    position_noise: float = noise(1e-4, 'joint positions', 'rad or m', range=(1e-9, 1.0))
    velocity_noise: float = noise(0.01, 'joint velocities in messages', 'rad/s or m/s')


@dataclass(frozen=True)
class FilterSettings(Group):
    """Filter of the derivatives of joint positions and angular velocities."""

    kind: str = setting(
        'savitzky_golay',
        'Cubic over a window, quintic for a delay of half of it, or Kalman filter',
        choices=('savitzky_golay', 'quintic', 'kalman'),
    )
    window: float = setting(0.1, 'Window, 7 samples or more (quintic: 9) [s]', range=(1e-3, 10.0))
    delay: float = setting(
        0.0, 'Age of the result, without kalman at most half of the window [s]', range=(0.0, 5.0)
    )
    smooth_readings: bool = setting(False, 'Filter positions and readings too; not with kalman')
    joint_jerk: float = setting(
        3.0, 'Density of joint jerk, for kalman [(rad or m)/s^3/sqrt(Hz)]', range=(1e-3, 1e6)
    )

    def centred(self) -> FilterSettings:
        """Return a filter that does not lag, as nothing waits for it."""
        if self.kind != 'savitzky_golay':
            return replace(self, delay=max(self.delay, 0.5 * self.window))
        return replace(self, kind='quintic', window=2.0 * self.window, delay=self.window)


@dataclass(frozen=True)
class StreamSettings(Group):
    """Readings of one sensor."""

    topic: str = setting('', 'Topic; empty: ft/<name> (WrenchStamped), imu/<name> (Imu)')
    frame_id: str = setting('', 'Expected header.frame_id; empty: its name, or any frame there')
    max_age: float = setting(0.05, 'Oldest reading that is used [s]', range=(0.0, 1e6), live=True)
    time_offset: float = setting(0.0, 'Added to its stamps [s]', range=(-10.0, 10.0))


@dataclass(frozen=True)
class FtSettings(StreamSettings):
    """One FT sensor: source, place and calibration of its readings."""

    noise: Floats = noise((0.15,) * 3 + (0.005,) * 3, 'fx fy fz tx ty tz', 'N, Nm', sizes=(6,))
    offset: Floats = setting(ZERO, 'Subtracted from its readings [N, Nm]', sizes=(6,))
    range: Floats = setting(
        (), 'Range of valid readings; empty: not known [N, Nm]', range=(1e-6, 1e9), sizes=(0, 6)
    )
    temperature_topic: str = setting('', 'Temperature topic, for temperature coefficients')
    joint: str = setting('', 'Fixed joint that holds the sensor; empty: from the URDF tag')
    direction: str = setting(
        '', 'Side that acts, with joint; empty: child_to_parent',
        choices=('', 'child_to_parent', 'parent_to_child'),
    )  # fmt: skip


@dataclass(frozen=True)
class ImuSettings(StreamSettings):
    """One IMU: place and source of its readings."""

    frame: str = setting('', 'Link, frame or sensor where it sits; empty: the name itself')
    pose: Floats = setting(
        (), 'x y z roll pitch yaw in frame, a link or joint; empty: at it [m, rad]', sizes=(0, 6)
    )
    measures: str = setting('both', 'Quantities', choices=('both', 'accelerometer', 'gyroscope'))
    accelerometer_noise: float = noise(0.03, 'its accelerations', 'm/s^2')
    gyroscope_noise: float = noise(0.003, 'its angular velocities', 'rad/s')


@dataclass(frozen=True)
class ContactSettings(Group):
    """One default contact."""

    frame: str = setting('', 'Link or frame of the URDF; empty: the name itself')
    kind: str = setting(
        'wrench', 'Unknowns; unilateral, friction_cone and surface only push',
        choices=(
            'wrench', 'force', 'axial_force', 'unilateral', 'friction_cone', 'surface', 'known',
        ),
    )  # fmt: skip
    point: Floats = setting(
        (0.0,) * 3, 'Point of a force, centre of a surface, in the frame [m]', sizes=(3,)
    )
    direction: Floats = setting((0.0, 0.0, 1.0), 'Axis or unit normal in the frame', sizes=(3,))
    friction: float = setting(0.0, 'Coefficient of friction_cone or surface', range=(0.0, 100.0))
    size: Floats = setting((0.0, 0.0), 'Edges of a surface along x and y [m]', sizes=(2,))
    wrench: Floats = setting(ZERO, 'Known wrench, in and about the frame [N, Nm]', sizes=(6,))


@dataclass(frozen=True)
class ModelSettings(Group):
    """Inertial parameters that change while the node runs."""

    file: str = setting('', 'File of parameters for ~/save_model and ~/restore_model; empty: none')
    publisher: str = setting(IDENTIFIER_NAME, 'Node that may publish parameters; empty: any')


@dataclass(frozen=True)
class OutputSettings(Group):
    """Topics of results and their rates."""

    wrench_rate: float = setting(
        0.0, 'Rate of wrenches and residuals; 0: every cycle [Hz]', range=(0.0, 10000.0), live=True
    )
    deviations_rate: float = setting(
        10.0, 'Highest rate of standard deviations; 0: none [Hz]', range=(0.0, 1000.0), live=True
    )
    internal_wrench_joints: Strings = setting(
        (), 'Joints whose internal wrench is published, also fixed joints with an FT sensor'
    )
    net_wrench_links: Strings = setting((), 'Links whose net wrench is published')


@dataclass(frozen=True)
class EffortSettings(Group):
    """Equations of joint torques."""

    joints: Strings = setting((), "Joints whose efforts give equations; 'all': every one")
    gains: Floats = setting(
        (), 'Torque over effort of each of them [Nm/A of currents]; empty: 1', range=(-1e6, 1e6)
    )
    friction: Strings = setting(
        (), 'Unknowns of these joints beside inertia: viscous, coulomb, offset, drive_inertia'
    )
    dead_zone: float = setting(
        0.02, 'Speed below which a joint gives no equations [rad/s or m/s]', range=(0.0, 10.0)
    )


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
    joints: Strings = setting((), 'Joints to estimate; empty: all that move')
    fixed_link: str = setting('', 'Link or frame at rest in the world; empty: IMUs instead')
    ft_sensors: Strings = setting(ALL, "Those in use; 'all': of the URDF; empty: none")
    imus: Strings = setting((), 'IMUs in use; none with a fixed link')
    contacts: Strings = setting((), 'Default contacts, most trusted first')
    calibration_file: str = setting(
        '', 'Calibration of FT sensors, which ~/save writes; empty: ft.<name>.offset'
    )
    gravity: Floats = setting(
        (0.0, 0.0, -9.81), 'Gravity in the axes of the fixed link, up to 25 [m/s^2]', sizes=(3,)
    )
    touch_kind: str = setting(
        'wrench', 'Kind of reported contacts; force if it needs a normal and they have none',
        choices=('wrench', 'force', 'unilateral', 'friction_cone'),
    )  # fmt: skip
    touch_friction: float = setting(0.0, 'Friction of reported contacts', range=(0.0, 100.0))
    contact_timeout: float = setting(
        0.1, 'Time until a contact that is not repeated ends [s]', range=(1e-3, 1e3), live=True
    )
    angular_acceleration_source: str = setting(
        'filter', 'Of IMUs: filtered, from three accelerometers or more of a link, or neglected',
        choices=('filter', 'array', 'zero'),
    )  # fmt: skip
    frozen_after: float = setting(
        0.05, 'Time of equal readings until a sensor is frozen; 0: never [s]', range=(0.0, 1e6)
    )
    tare_supports: Strings = setting(
        (), 'Links or frames that carry the robot in a tare; empty: the fixed link'
    )
    autostart: bool = setting(True, 'Configure and activate at start')
    joint_states: JointStateSettings = field(default_factory=JointStateSettings)
    filter: FilterSettings = field(default_factory=FilterSettings)
    ft: Mapping[str, FtSettings] = named(FtSettings, 'ft_sensors')
    imu: Mapping[str, ImuSettings] = named(ImuSettings, 'imus')
    contact: Mapping[str, ContactSettings] = named(ContactSettings, 'contacts')
    model: ModelSettings = field(default_factory=ModelSettings)
    outputs: OutputSettings = field(default_factory=OutputSettings)

    def __post_init__(self) -> None:
        """Check all values, complete the groups, and check how everything fits together."""
        super().__post_init__()
        for contradiction in _contradictions(self):
            raise ConfigError(contradiction)

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

        """
        return parse(cls, data)

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

        """
        given = load_parameters(path, node)
        if (file := given.get('calibration_file')) and isinstance(file, str):
            given['calibration_file'] = str(Path(path).parent / Path(file).expanduser())
        try:
            return parse(cls, given)
        except (NameNotFound, ConfigError) as error:
            raise ConfigError(f'{path}: {error}') from error

    def to_parameters(self) -> dict[str, Value]:
        """Return every setting under its dotted name, tuples as lists; `from_dict` undoes it."""
        return dict(write(self))

    def ft_of(self, name: str) -> FtSettings:
        """Return the settings of an FT sensor, its topic filled in."""
        return _filled(self.ft.get(name, FtSettings()), topic=f'ft/{name}')

    def imu_of(self, name: str) -> ImuSettings:
        """Return the settings of an IMU, its topic and frame filled in."""
        return _filled(self.imu.get(name, ImuSettings()), topic=f'imu/{name}', frame=name)

    def contact_of(self, name: str) -> ContactSettings:
        """Return the settings of a contact, its frame filled in."""
        return _filled(self.contact.get(name, ContactSettings()), frame=name)


@dataclass(frozen=True)
class IdentifierSettings(EstimatorSettings):
    """Settings of the identifier node: those of the estimator, and its own."""

    loaded_frames: Strings = setting((), 'Links or frames that bear a load all the time, as feet')
    payload_links: Strings = setting((), 'Links with payloads; else the last one of a submodel')
    half_life: float = setting(
        600.0, 'Time with data after which equations count half [s]', range=(1.0, 1e9)
    )
    state_file: str = setting('', 'File of the state of the identification; empty: none')
    efforts: EffortSettings = field(default_factory=EffortSettings)


def _filled(group: G, **texts: str) -> G:
    """Return a group with texts in place of empty ones."""
    filled: Any = {name: getattr(group, name) or text for name, text in texts.items()}
    return replace(group, **filled)  # type: ignore[type-var]


def _contradictions(settings: EstimatorSettings) -> Iterator[str]:
    """Yield values that do not fit together; what needs the robot is checked with the robot."""
    joints, chosen = settings.joint_states, settings.filter
    if not joints.topics:
        yield "'joint_states.topics' is empty: the first of them triggers each cycle"
    if len(joints.assumed) != len(joints.assumed_positions):
        values = f"'joint_states.assumed_positions' {len(joints.assumed_positions)} values"
        yield f"'joint_states.assumed' has {len(joints.assumed)} names and {values}"
    unknown = set(joints.assumed) - set(settings.joints)
    if settings.joints and unknown:
        raise NameNotFound("assumed joint in 'joints'", min(unknown), settings.joints)
    if settings.fixed_link and settings.imus:
        both = f"'fixed_link' is '{settings.fixed_link}' and 'imus' is {list(settings.imus)}"
        yield f'{both}: give one of them'
    if chosen.smooth_readings and chosen.kind == 'kalman':
        kinds = "'filter.kind' is 'kalman', expected savitzky_golay or quintic"
        yield f"'filter.smooth_readings' is true and {kinds}"
    if chosen.kind != 'kalman' and chosen.delay > 0.5 * chosen.window:
        limit = f"expected at most half of 'filter.window', {chosen.window:g} s"
        yield f"'filter.delay' is {chosen.delay:g} s, {limit}"
    for name, sensor in settings.ft.items():
        if sensor.direction and not sensor.joint:
            yield f"'ft.{name}.direction' is given without 'ft.{name}.joint'"
        if sensor.joint and name not in settings.ft_sensors:
            yield f"'ft.{name}.joint' is given and 'ft_sensors' is [all]: name every sensor in it"
    for name, imu in settings.imu.items():
        if imu.pose and not imu.frame:
            yield f"'imu.{name}.pose' is given without 'imu.{name}.frame'"
    fts = settings.ft if settings.ft_sensors == ALL else settings.ft_sensors
    for kind, topics in (
        ('FT sensors', [settings.ft_of(name).topic for name in fts]),
        ('IMUs', [settings.imu_of(name).topic for name in settings.imus]),
    ):
        for topic in topics:
            if topics.count(topic) > 1:
                yield f"several {kind} have the topic '{topic}'"
