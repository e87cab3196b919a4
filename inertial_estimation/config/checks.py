# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What settings must fulfil together; what needs the robot is checked with the robot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from inertial_estimation.errors import ConfigError, NameNotFound

if TYPE_CHECKING:
    from inertial_estimation.config.groups import FtSettings
    from inertial_estimation.config.settings import EstimatorSettings

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
NAME_LISTS = (
    'joints',
    'joint_topics',
    'assumed_joints',
    'internal_wrench_joints',
    'net_wrench_links',
    'tare_supports',
    *LISTS.values(),
)


def check(settings: EstimatorSettings) -> None:
    """Check that the settings fit together."""
    for name in NAME_LISTS:
        _check_names(name, getattr(settings, name))
    _check_joints(settings)
    _check_groups(settings)
    _check_places(settings)
    _check_topics(settings)
    _check_derivatives(settings)
    if 0.0 < settings.update_mass_factor < 1.0:
        raise ConfigError(
            f"'update_mass_factor' is {settings.update_mass_factor:g}, expected at least 1, or 0 "
            'to take over any mass'
        )
    if settings.fixed_link and settings.imus:
        raise ConfigError(
            f"'fixed_link' is '{settings.fixed_link}' and 'imus' is {list(settings.imus)}: "
            'give one of them, the acceleration comes from either'
        )


def _check_names(setting: str, names: tuple[str, ...]) -> None:
    """Refuse empty and repeated names."""
    if '' in names:
        raise ConfigError(f"'{setting}' holds an empty name; leave the line out for an empty list")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ConfigError(f"'{setting}' names '{twice[0]}' more than once: name it once")


def _check_joints(settings: EstimatorSettings) -> None:
    """Check the joint topics and the assumed positions."""
    if not settings.joint_topics:
        raise ConfigError("'joint_topics' is empty: the first of them triggers each cycle")
    n_joints, n_values = len(settings.assumed_joints), len(settings.assumed_positions)
    if n_joints != n_values:
        raise ConfigError(
            f"'assumed_joints' has {n_joints} names and 'assumed_positions' {n_values} values: "
            'give one position for each joint'
        )
    unknown = set(settings.assumed_joints) - set(settings.joints)
    if settings.joints and unknown:
        raise NameNotFound("assumed joint in 'joints'", min(unknown), settings.joints)


def _check_groups(settings: EstimatorSettings) -> None:
    """Refuse groups of sensors and contacts that no list names, and forces without direction."""
    for kind, names in LISTS.items():
        check_listed(kind, getattr(settings, kind), getattr(settings, names))
    for name in settings.contacts:
        contact = settings.contact_of(name)
        if contact.kind == 'axial_force' and not any(contact.direction):
            raise ConfigError(f"'contact.{name}.direction' is zero: an axial force needs one")
    for name, touch in settings.touch.items():
        if touch.kind == 'axial_force' and not any(touch.direction):
            raise ConfigError(f"'touch.{name}.direction' is zero: an axial force needs one")


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


def _check_places(settings: EstimatorSettings) -> None:
    """Check the settings that say where sensors sit."""
    for name, sensor in settings.ft.items():
        _check_mounting(f'ft.{name}', sensor)
        if sensor.joint and name not in settings.ft_sensors:
            raise ConfigError(
                f"'ft.{name}.joint' is '{sensor.joint}' and 'ft_sensors' is [all], the tags of "
                "the URDF: name every sensor in 'ft_sensors', this one as well"
            )
    for kind in ('imu', 'accelerometer', 'gyroscope'):
        for name, given in getattr(settings, kind).items():
            if given.pose and not given.frame:
                raise ConfigError(
                    f"'{kind}.{name}.pose' is {list(given.pose)} without '{kind}.{name}.frame': "
                    'name the link or joint frame that the pose is in'
                )


def _check_mounting(name: str, sensor: FtSettings) -> None:
    """Check the settings that replace the URDF tag of an FT sensor."""
    for key in ('frame', 'pose', 'direction'):
        value = getattr(sensor, key)
        if value and not sensor.joint:
            raise ConfigError(
                f"'{name}.{key}' is {value!r} without '{name}.joint': name the joint as well, or "
                'leave both to the URDF tag'
            )
    if bool(sensor.pose) != (sensor.frame == 'sensor'):
        raise ConfigError(
            f"'{name}.frame' is '{sensor.frame}' and '{name}.pose' has {len(sensor.pose)} values: "
            "the pose belongs to frame 'sensor', and to it only"
        )


def _check_topics(settings: EstimatorSettings) -> None:
    """Refuse one topic for two sensors of a kind."""
    for kind, names, of in (
        (
            'ft',
            settings.ft if are_all('ft', settings.ft_sensors) else settings.ft_sensors,
            settings.ft_of,
        ),
        ('imu', settings.imus, settings.imu_of),
    ):
        owners: dict[str, str] = {}
        for name in names:
            other = owners.setdefault(of(name).topic, name)
            if other != name:
                raise ConfigError(
                    f"'{kind}.{other}.topic' and '{kind}.{name}.topic' are both "
                    f"'{of(name).topic}': each sensor needs its own"
                )


def _check_derivatives(settings: EstimatorSettings) -> None:
    """Check that the filter of derivatives can do what is asked of it."""
    kind, window, delay = (
        settings.derivative_filter,
        settings.derivative_window,
        settings.filter_delay,
    )
    if settings.smooth_readings and kind != 'savitzky_golay':
        raise ConfigError(
            f"'smooth_readings' is true and 'derivative_filter' is '{kind}': take savitzky_golay, "
            'the only one that treats every signal alike, whatever its unit and noise'
        )
    if kind != 'kalman' and delay > 0.5 * window:
        raise ConfigError(
            f"'filter_delay' is {delay:g} s and 'derivative_window' {window:g} s: take a delay of "
            'at most half of the window, beyond its middle the errors grow again'
        )
