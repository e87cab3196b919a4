# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Wrenches of the environment that are known: constant, on a topic, or in columns [T 7.2, A 1].

They act on the robot at the named frame, about its origin in its axes unless `xyz`, `rpy` or the
frame `axes` state others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.config.schema import NotNegative, numbers, record
from inertial_estimation.errors import ConfigError
from inertial_estimation.identification.preparation import Preparation, Prepared, prepare
from inertial_estimation.logs.bag import BagReader, read_stream
from inertial_estimation.logs.table_formats import KnownWrench, Scaling
from inertial_estimation.model.robot import Robot, same_place
from inertial_estimation.sample import SampleBatch


@dataclass(frozen=True, eq=False, kw_only=True)
class ConstantWrench(KnownWrench):
    """A wrench that does not change."""

    wrench: Annotated[Array, numbers((6,))]

    def of_log(self, path: Path, robot: Robot, samples: SampleBatch) -> Array:
        """Return the wrench at each sample, (n, 6) [N, Nm]."""
        return self.at_frame(robot, samples, np.tile(self.wrench, (len(samples), 1)))


@dataclass(frozen=True, eq=False, kw_only=True)
class WrenchTopic(Scaling, KnownWrench):
    """A topic of a bag."""

    topic: str
    frame_id: str = ''
    """Expected header.frame_id; empty: any frame of the robot at its place."""
    max_age: NotNegative = 0.05
    """Largest distance to the messages before and after a sample [s]."""
    time_offset: float = 0.0
    frozen_after: NotNegative = 0.05
    """Bit-equal messages for longer are frozen; 0: never [s]."""

    def of_log(self, path: Path, robot: Robot, samples: SampleBatch) -> Array:
        """Return the wrench, interpolated, (n, 6) [N, Nm]; NaN: unknown."""
        with BagReader(path) as reader:
            raw = read_stream(reader, self.topic, 'ft', self.frame_ids(robot))
        live = raw.without_frozen(self.frozen_after)
        stream = live._replace(
            stamps_ns=live.stamps_ns + round(self.time_offset * 1e9),
            values=self.in_si(live.values, 6),
        )
        return self.at_frame(robot, samples, stream.at(samples.stamp_ns, self.max_age))

    def frame_ids(self, robot: Robot) -> set[str]:
        """Return possible values of header.frame_id."""
        if self.frame_id:
            return {self.frame_id}
        if self.axes:
            # Its point and its axes belong to two frames, and senders name either of them.
            return {self.axes, self.frame}
        link, L_H_F = robot.frame(self.frame)
        return robot.frames_at(link, L_H_F @ self.F_H_W)


def read_known(value: Any, name: str) -> ConstantWrench | WrenchTopic:
    """Read a constant, or a topic of a bag."""
    if not isinstance(value, Mapping):
        value = {'topic' if isinstance(value, str) else 'wrench': value}
    if 'wrench' in value:
        return record(ConstantWrench, value, name, name=name)
    return record(WrenchTopic, value, name, name=name, kind='wrench')


def check_known(robot: Robot, known: Iterable[KnownWrench], contacts: Iterable[str]) -> None:
    """Refuse unknown frames, and contacts that are known twice, or known as well as unknown."""
    names: dict[str, str] = {}
    for one in known:
        robot.frame(one.frame, f"'{one.name}' is a wrench at '{one.frame}'")
        if one.axes:
            robot.frame(one.axes, f"'{one.name}.axes' is '{one.axes}'")
        if one.frame in names:
            raise ConfigError(f"'{names[one.frame]}' and '{one.name}' are the same wrench")
        names[one.frame] = one.name
        for contact in contacts:
            if same_place(robot.frame(contact), robot.frame(one.frame)):
                raise ConfigError(f"'{contact}' of 'rows.contacts' is known by '{one.name}'")


def knows_ground(robot: Robot, frames: Iterable[str]) -> bool:
    """Return true if one of the known wrenches is that of the ground on the fixed link."""
    if not robot.fixed_frame:
        return False
    ground = robot.frame(robot.fixed_frame)
    there = [name for name in frames if robot.frame(name)[0] == ground[0]]
    if not there or any(same_place(robot.frame(name), ground) for name in there):
        return bool(there)
    raise ConfigError(f"the wrench at '{there[0]}' needs that at '{robot.fixed_frame}'")


def prepare_with(
    samples: SampleBatch, external: Mapping[str, Array], how: Preparation
) -> tuple[Prepared, dict[str, Array]]:
    """Filter a log together with known wrenches (n, 6), so that equations hold."""
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
