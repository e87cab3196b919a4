# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The topics that an estimator reads, and the frames that their messages may have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from inertial_estimation.config import EstimatorSettings, FtSettings
from inertial_estimation.errors import ConfigError
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtSensor, Imu
from inertial_estimation.signals.router import CONTACTS, Deserialize, Source


def sources_of(
    settings: EstimatorSettings,
    robot: Robot,
    deserialize: Deserialize,
    *,
    resolve: Callable[[str], str] = str,
    now_ns: Callable[[], int] | None = None,
    strict: bool = False,
) -> list[Source]:
    """
    Return the topics of FT sensors, IMUs and contacts, then those of joint states.

    Where no joint is measured, the topic of the first sensor stands for joint states as well.
    `deserialize` reads messages that are not plain little-endian CDR, `resolve` makes the full
    name of a topic, `now_ns` is the clock by which `Source.skew` is measured. With `strict` the
    first message that cannot be read or has a wrong frame raises LogError; else it is counted.
    """
    new = partial(Source, deserialize=deserialize, strict=strict, now_ns=now_ns)
    sources: list[Source] = []
    sensors: list[tuple[str, int, FtSensor | Imu]]
    sensors = [('ft', k, ft) for k, ft in enumerate(robot.ft_sensors)]
    sensors += [('imu', k, imu) for k, imu in enumerate(robot.imus)]
    for kind, k, sensor in sensors:
        given = (settings.ft_of if kind == 'ft' else settings.imu_of)(sensor.name)
        frames = accepted_frame_ids(settings, robot, sensor)
        sources.append(
            new(kind, sensor.name, resolve(given.topic), index=k, frames=frames,
                time_offset=given.time_offset)
        )  # fmt: skip
        if isinstance(given, FtSettings) and (topic := given.temperature_topic):
            sources.append(new('temperature', sensor.name, resolve(topic), index=k))
    sources += [new(topic, topic, resolve(topic)) for topic in CONTACTS]
    if sensors and not set(robot.joint_names) - set(settings.joint_states.assumed):
        first = sources[0]
        sources.append(
            new('joints', first.name, first.topic, decoder=first.kind, frames=first.frames,
                time_offset=1e-9 * first.offset_ns)
        )  # fmt: skip
    else:
        for k, topic in reversed(list(enumerate(settings.joint_states.topics))):
            sources.append(new('joints', topic, resolve(topic), index=k))
    return sources


def accepted_frame_ids(
    settings: EstimatorSettings, robot: Robot, sensor: FtSensor | Imu
) -> set[str]:
    """Return the values of header.frame_id that are accepted from a sensor."""
    if isinstance(sensor, FtSensor):
        kind, given = 'ft', settings.ft_of(sensor.name).frame_id
        names = robot.frames_at(sensor.child, sensor.child_H_sensor)
    else:
        kind, given = 'imu', settings.imu_of(sensor.name).frame_id
        names = robot.frames_at(sensor.link, sensor.L_H_S)
    names |= {sensor.name} - set(robot.frames)
    if not given and not names:
        raise ConfigError(
            f"'{kind}.{sensor.name}.frame_id' is empty, and '{sensor.name}' is a frame of the "
            "robot elsewhere: set it to the sensor's header.frame_id"
        )
    return {given} if given else names
