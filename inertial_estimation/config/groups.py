# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Groups of settings, as of one sensor or contact, and their dotted parameter names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from inertial_estimation.config.files import leaves
from inertial_estimation.config.schema import Value, read_fields, setting, settings_of
from inertial_estimation.errors import ConfigError, NameNotFound


class Checked:
    """Settings whose values are checked however they are made."""

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
LISTS = {
    'ft': 'ft_sensors',
    'imu': 'imus',
    'contact': 'contacts',
    'touch': 'touch_frames',
    'accelerometer': 'accelerometers',
    'gyroscope': 'gyroscopes',
}
"""The list that names the groups of each kind."""
ALL = ('all',)
"""In place of the FT sensors in use: all that the URDF has tags of."""
PLACES = ('frame', 'joint')
"""Settings of a group that place it on the robot."""


def check_listed(kind: str, groups: Iterable[str], listed: tuple[str, ...]) -> None:
    """Refuse groups that belong to nothing."""
    # The FT sensors of the URDF are known when the robot is.
    if are_all(kind, listed):
        return
    for name in groups:
        if name not in listed:
            raise NameNotFound(f"entry of '{LISTS[kind]}' for '{kind}.{name}.*'", name, listed)


def are_all(kind: str, listed: Iterable[str]) -> bool:
    """Return whether a list stands for all sensors of the URDF."""
    return kind == 'ft' and tuple(listed) == ALL


def read_parameters(top_class: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of settings that nested mappings or dotted names describe."""
    top = {s.name: s for s in settings_of(top_class)}
    values: dict[str, Any] = {}
    groups: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in GROUPS}
    for name, value in leaves(data).items():
        kind, _, rest = name.partition('.')
        owner, _, key = rest.rpartition('.')
        if kind in GROUPS and owner:
            group = groups[kind].setdefault(owner, {})
            group[key] = _read_in_group(kind, name, key, value)
        elif name in top:
            values[name] = top[name].read(value)
        else:
            known = [*top, *(f'{k}.<name>' for k in GROUPS)]
            raise NameNotFound('parameter', name, known)
    for kind, group_class in GROUPS.items():
        check_listed(kind, groups[kind], values.get(LISTS[kind], ALL if kind == 'ft' else ()))
        values[kind] = {name: group_class(**given) for name, given in groups[kind].items()}
    return values


def write_parameters(settings: Any) -> Iterator[tuple[str, Value]]:
    """Yield every setting under its dotted name, tuples as lists."""
    for item in settings_of(type(settings)):
        yield item.name, _as_list(getattr(settings, item.name))
    for kind, group_class in GROUPS.items():
        for name, group in getattr(settings, kind).items():
            for item in settings_of(group_class):
                yield f'{kind}.{name}.{item.name}', _as_list(getattr(group, item.name))


def complete_groups(kind: str, given: object, listed: tuple[str, ...]) -> dict[str, Any]:
    """Return one group for each listed name, and other groups that are not the default."""
    group_class = GROUPS[kind]
    if not isinstance(given, Mapping):
        raise ConfigError(f"'{kind}' is {given!r}, expected a dict of {group_class.__name__}")
    for name, group in given.items():
        if not isinstance(group, group_class):
            expected = f'expected {group_class.__name__}(...)'
            raise ConfigError(f"'{kind}.{name}' is {group!r}, {expected}")
    # What a name left of the list must not stop `replace` from taking it off.
    empty = group_class()
    is_tag = are_all(kind, listed)
    listed = () if is_tag else listed
    kept = {n: g for n, g in given.items() if n in listed or g != empty or is_tag}
    return {**dict.fromkeys(listed, empty), **kept}


def _read_in_group(kind: str, name: str, key: str, value: object) -> Any:
    """Read one setting of a group."""
    known = {s.name: s for s in settings_of(GROUPS[kind])}
    if key not in known:
        prefix = name.rpartition('.')[0]
        raise NameNotFound('parameter', name, [f'{prefix}.{item}' for item in known])
    return known[key].read(value, name)


def _as_list(value: Any) -> Value:
    """Return a tuple as the list that ROS has for it."""
    return list(value) if isinstance(value, tuple) else value


def split_unused(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tell parameters in use from those of groups that no list names."""
    unused = {name: value for name, value in values.items() if _is_left_over(name, values)}
    return {n: v for n, v in values.items() if n not in unused}, unused


def name_unused(unused: Mapping[str, Any], known: Set[str]) -> list[str]:
    """Return the groups that are not used, or find that one belongs to nothing at all."""
    groups: dict[str, list[Any]] = {}
    for name, value in unused.items():
        group, _, key = name.rpartition('.')
        groups.setdefault(group, []).extend([value] if key in PLACES else [])
    for group, places in groups.items():
        kind, _, owner = group.partition('.')
        if not any(place in known for place in (owner, *places)):
            raise NameNotFound(
                'frame or sensor of the robot',
                owner,
                sorted(known),
                f"'{group}.*' is given and '{LISTS[kind]}' does not name it",
            )
    return list(groups)


def _is_left_over(name: str, values: Mapping[str, Any]) -> bool:
    """Tell whether a parameter belongs to a group that its list does not name."""
    kind, _, rest = name.partition('.')
    if kind not in LISTS or not rest.rpartition('.')[0]:
        return False
    listed = values.get(LISTS[kind], ALL if kind == 'ft' else ())
    if not isinstance(listed, (list, tuple)):
        listed = ()
    # The FT sensors of the URDF are known when the robot is.
    return not are_all(kind, listed) and rest.rpartition('.')[0] not in listed
