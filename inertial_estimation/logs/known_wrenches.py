# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Wrenches of the environment that are known: constant, or on a topic of a bag [T 7.2, A 1].

    l_sole: /force_plate/left                         # WrenchStamped
    r_sole: {topic: /ft/r_sole, scale: -1, max_age: 0.02}
    tip: [0, 0, 0, 0, 0, 0]                           # nothing touches it
    hook: {wrench: [0, 0, -9.81, 0, 0, 0], axes: base}

They act on the robot, at the frame that they stand under. Of tables of numbers, `columns` reads
those that are measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError
from inertial_estimation.identification.preparation import Preparation, Prepared, prepare
from inertial_estimation.logs.setting_values import as_mapping, as_numbers, check_keys
from inertial_estimation.logs.table import Signal, read_signal
from inertial_estimation.logs.wrench_places import KEYS, WrenchPlace
from inertial_estimation.model.inertial_sensors import same_place
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]

OF_A_TOPIC = ('topic', 'scale', 'divided_by', 'offset', 'frame_id', 'max_age', 'time_offset',
              'frozen_after')  # fmt: skip
LIMIT = 0.05
"""Default of `max_age` and `frozen_after`, those of the node's FT sensors [s]."""


@dataclass(frozen=True, eq=False)
class ConstantWrench:
    """A wrench that is the same throughout the logs."""

    place: WrenchPlace
    wrench: Array
    """Shape (6,), [force; torque] [N, Nm]."""


@dataclass(frozen=True, eq=False)
class TopicWrench:
    """A wrench that bags hold as WrenchStamped."""

    place: WrenchPlace
    topic: str
    signal: Signal
    """What becomes of its six numbers."""
    frame_id: str
    """Expected header.frame_id; empty: any frame of the robot at its place."""
    max_age: float
    """It is known between two messages if neither is further away [s]."""
    time_offset: float
    """Added to its stamps [s]."""
    frozen_after: float
    """Bit-equal messages for so long say nothing; 0: they do [s]."""


Known = Mapping[str, ConstantWrench | TopicWrench]


def read_known(said: object, name: str) -> dict[str, ConstantWrench | TopicWrench]:
    """Read known wrenches from a configuration."""
    return {
        str(frame): _one(one, str(frame), f'{name}.{frame}')
        for frame, one in as_mapping(said, name).items()
    }


def constants(known: Known, robot: Robot, samples: SampleBatch) -> dict[str, Array]:
    """
    Return those known wrenches that are the same throughout.

    Returns (n, 6) [N, Nm].
    """
    n, q = len(samples), samples.positions
    return {
        frame: one.place.at_frame(robot, q, np.tile(one.wrench, (n, 1)))
        for frame, one in known.items()
        if isinstance(one, ConstantWrench)
    }


def check_known(robot: Robot, places: Iterable[WrenchPlace], contacts: Iterable[str]) -> None:
    """Refuse frames that there are not, and contacts that are known as well as unknown."""
    names: dict[str, str] = {}
    for place in places:
        place.check(robot)
        if place.frame in names:
            raise ConfigError(
                f"the wrench at '{place.frame}' is said twice, by '{names[place.frame]}' and "
                f"'{place.name}': keep one of them"
            )
        names[place.frame] = place.name
        for contact in contacts:
            if same_place(robot.frame(contact), robot.frame(place.frame)):
                raise ConfigError(
                    f"'{contact}' stands under 'rows.contacts', where something unknown acts, "
                    f"but '{place.name}' says what acts there: leave one of them out"
                )


def knows_ground(robot: Robot, frames: Iterable[str]) -> bool:
    """Tell whether one of the known wrenches is that of the ground on the fixed link."""
    if not robot.fixed_frame:
        return False
    ground = robot.frame(robot.fixed_frame)
    there = [name for name in frames if robot.frame(name)[0] == ground[0]]
    if not there or any(same_place(robot.frame(name), ground) for name in there):
        return bool(there)
    raise ConfigError(
        f"the wrench at '{there[0]}' is in no row: the ground holds that link with an unknown "
        f"wrench; leave it out, or say that of the ground too, at '{robot.fixed_frame}'"
    )


def prepare_with(
    samples: SampleBatch, external: Mapping[str, Array], how: Preparation
) -> tuple[Prepared, dict[str, Array]]:
    """
    Filter a log together with known wrenches: what meets in an equation is filtered alike.

    external (n, 6) [N, Nm]; returns external (m, 6).
    """
    if not external:
        return prepare(samples, how), {}
    n_sensors = samples.ft_readings.shape[1]
    pushes = np.stack(list(external.values()), axis=1)
    both = np.concatenate([samples.ft_readings, pushes], axis=1)
    prepared = prepare(replace(samples, ft_readings=both), how)
    readings = prepared.samples.ft_readings
    alone = replace(prepared.samples, ft_readings=readings[:, :n_sensors])
    found = {frame: readings[:, n_sensors + k] for k, frame in enumerate(external)}
    return prepared._replace(samples=alone), found


def _one(said: object, frame: str, name: str) -> ConstantWrench | TopicWrench:
    """Read one known wrench."""
    place, rest = WrenchPlace.split(said, frame, name)
    if isinstance(rest, str):
        rest = {'topic': rest}
    elif not isinstance(rest, Mapping):
        rest = {'wrench': rest}
    if 'wrench' in rest:
        check_keys(rest, ('wrench', *KEYS), name)
        return ConstantWrench(place, _six(rest['wrench'], name))
    check_keys(rest, (*OF_A_TOPIC, *KEYS), name)
    topic, frame_id = rest.get('topic'), rest.get('frame_id', '')
    if not isinstance(topic, str):
        raise ConfigError(f"'{name}' has neither topic nor wrench: add one of them")
    scaling = {key: rest[key] for key in ('scale', 'divided_by', 'offset') if key in rest}
    if not isinstance(frame_id, str):
        raise ConfigError(f"'{name}.frame_id' is {frame_id!r}, expected the name of a frame")
    return TopicWrench(
        place,
        topic,
        read_signal({'columns': topic, **scaling}, name, 'wrench'),
        frame_id,
        _seconds(rest, 'max_age', LIMIT, name),
        _seconds(rest, 'time_offset', 0.0, name, least=-np.inf),
        _seconds(rest, 'frozen_after', LIMIT, name),
    )


def _six(said: object, name: str) -> Array:
    """Return a wrench."""
    values = as_numbers(said, name)
    if values.shape != (6,):
        raise ConfigError(
            f"'{name}' is {said!r}, expected six numbers, force and torque [N, N m], or a topic"
        )
    return values


def _seconds(
    body: Mapping[str, object], key: str, default: float, name: str, least: float = 0.0
) -> float:
    """Return a time."""
    values = as_numbers(body.get(key, default), f'{name}.{key}')
    if values.ndim or values < least:
        raise ConfigError(f"'{name}.{key}' is {body[key]!r}, expected seconds, zero or more")
    return float(values)
