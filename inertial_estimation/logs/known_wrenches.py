# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Wrenches of the environment that are known: constant, on a topic, or in columns [T 7.2, A 1].

    l_sole: /force_plate/left                         # WrenchStamped of a bag
    r_sole: {topic: /ft/r_sole, scale: -1, max_age: 0.02}
    tip: [0, 0, 0, 0, 0, 0]                           # free air
    hook: {wrench: [0, 0, -9.81, 0, 0, 0], axes: base}
    heel: {columns: plate, xyz: [0.02, 0, -0.01], rpy: [0, 0, 1.57]}   # under 'log', of a table

They act on the robot at the named frame, about its origin in its axes unless `xyz`, `rpy` or the
frame `axes` state others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array, Mask, Stamps
from inertial_estimation.calibration.support_loads import link_poses
from inertial_estimation.errors import ConfigError, LogError
from inertial_estimation.identification.preparation import Preparation, Prepared, prepare
from inertial_estimation.logs.bag import BagReader, read_in_order, resolve
from inertial_estimation.logs.frozen_readings import runs
from inertial_estimation.logs.setting_values import anything, number, numbers, record, text
from inertial_estimation.logs.table import SETTINGS, Signal, Table, read_signal
from inertial_estimation.model.inertial_sensors import same_place
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import apply, wrench_transform
from inertial_estimation.model.urdf import pose_from_xyz_rpy
from inertial_estimation.sample import SampleBatch
from inertial_estimation.signals.messages import WRENCH

NANOSECONDS = 1e-9
PLACE = {'xyz': numbers((3,)), 'rpy': numbers((3,)), 'axes': text}
SCALING = dict.fromkeys(('scale', 'divided_by', 'offset'), anything)
TOPIC = {
    'topic': text, 'frame_id': text, 'max_age': number(0.0), 'time_offset': number(),
    'frozen_after': number(0.0),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class KnownWrench:
    """A wrench of the environment on the robot; one of `constant` and `signal` is given."""

    name: str
    frame: str
    """Where it acts."""
    F_H_W: Array
    """Pose in that frame of its point and axes, (4, 4) [m]."""
    axes: str = ''
    """Frame whose axes it has instead; empty: none."""
    constant: Array | None = None
    """Shape (6,), [force; torque] [N, Nm]."""
    signal: Signal | None = None
    """Columns of a table, or scaling of the messages of a topic."""
    topic: str = ''
    frame_id: str = ''
    """Expected header.frame_id; empty: any frame of the robot at its place."""
    max_age: float = 0.05
    """Largest distance to the messages before and after a sample [s]."""
    time_offset: float = 0.0
    frozen_after: float = 0.05
    """Bit-equal messages for longer are frozen; 0: never [s]."""

    @classmethod
    def read(cls, value: object, name: str) -> KnownWrench:
        """Read a constant, or a topic of a bag."""
        if isinstance(value, str):
            value = {'topic': value}
        elif not isinstance(value, Mapping):
            value = {'wrench': value}
        if 'wrench' in value:
            body = record({'wrench': numbers((6,)), **PLACE})(value, name)
            return cls(name, **_place(body, name), constant=body['wrench'])
        body = record({**TOPIC, **SCALING, **PLACE}, ['topic'])(value, name)
        scaling = {key: body.pop(key) for key in SCALING if key in body}
        signal = read_signal({'columns': body['topic'], **scaling}, name, 'wrench')
        return cls(name, **_place(body, name), signal=signal, **body)

    @classmethod
    def read_columns(cls, value: object, name: str) -> KnownWrench:
        """Read columns of a table."""
        body: dict[str, Any] = {'columns': value}
        if isinstance(value, Mapping):
            body = record({**dict.fromkeys(SETTINGS, anything), **PLACE})(value, name)
        place = _place(body, name)
        return cls(name, **place, signal=read_signal(body, name, 'wrench'))

    def of_table(self, table: Table, robot: Robot, samples: SampleBatch, clock: str) -> Array:
        """Return the wrench in a table about the origin of its frame, (n, 6) [N, Nm]."""
        assert self.signal is not None
        return self.at_frame(robot, samples, self.signal.read_at(table, 6, len(samples), clock))

    def of_bag(self, reader: BagReader, robot: Robot, samples: SampleBatch) -> Array:
        """Return the wrench of a topic, interpolated, (n, 6) [N, Nm]; NaN: unknown."""
        assert self.signal is not None
        topic, frames = resolve(self.topic), self._frame_ids(robot)
        stamps, readings = read_in_order(reader, topic, WRENCH, 'ft')
        for reading in readings:
            if reading.frame_id not in frames:
                raise LogError(
                    f"topic '{topic}' has header.frame_id '{reading.frame_id}', expected "
                    f"{' or '.join(sorted(frames)[:3])}, or '{self.name}.frame_id'"
                )
        raw = np.array([reading.values for reading in readings]).reshape(-1, 6)
        values = self.signal.in_si(raw, 6)
        values[_frozen(stamps, raw, self.frozen_after)] = np.nan
        stamps = stamps + round(self.time_offset / NANOSECONDS)
        return self.at_frame(
            robot, samples, at_instants(samples.stamp_ns, stamps, values, self.max_age)
        )

    def at_frame(self, robot: Robot, samples: SampleBatch, wrench: Array) -> Array:
        """Return wrenches (n, 6) about the origin of the frame in its axes."""
        pose = np.tile(self.F_H_W, (len(wrench), 1, 1))
        if self.axes:
            poses = link_poses(robot, samples.positions)
            to, of = (
                (poses[link] @ L_H_F)[:, :3, :3]
                for link, L_H_F in map(robot.frame, (self.frame, self.axes))
            )
            pose[:, :3, :3] = to.swapaxes(1, 2) @ of
        return apply(wrench_transform(pose), wrench)

    def _frame_ids(self, robot: Robot) -> set[str]:
        """Return possible values of header.frame_id."""
        if self.frame_id:
            return {self.frame_id}
        if self.axes:
            # Its point and its axes belong to two frames, and senders name either of them.
            return {self.axes, self.frame}
        link, L_H_F = robot.frame(self.frame)
        names = robot.frames_at(link, L_H_F @ self.F_H_W)
        if not names:
            raise ConfigError(f"no frame of the robot is there: '{self.name}.frame_id' is needed")
        return names


def _place(body: dict[str, Any], name: str) -> dict[str, Any]:
    """Take frame, point and axes out of the settings of a wrench."""
    if 'axes' in body and 'rpy' in body:
        raise ConfigError(f"'{name}' has both axes and rpy")
    xyz, rpy = (body.pop(key, np.zeros(3)) for key in ('xyz', 'rpy'))
    _, _, frame = name.split('.', 2)
    pose = pose_from_xyz_rpy(xyz, rpy)
    return {'frame': frame, 'F_H_W': pose, 'axes': body.pop('axes', '')}


def known_wrenches(
    known: Mapping[str, KnownWrench], path: Path, robot: Robot, samples: SampleBatch
) -> dict[str, Array]:
    """Return constant wrenches, and those that a bag holds, by frame, (n, 6) [N, Nm]."""
    found = {
        frame: one.at_frame(robot, samples, np.tile(one.constant, (len(samples), 1)))
        for frame, one in known.items()
        if one.constant is not None
    }
    topics = {frame: one for frame, one in known.items() if one.topic}
    if topics:
        with BagReader(path) as reader:
            found |= {f: one.of_bag(reader, robot, samples) for f, one in topics.items()}
    return found


def at_instants(instants: Stamps, stamps: Stamps, values: Array, max_age: float) -> Array:
    """
    Interpolate between the messages before and after each instant; NaN: one is too far away.

    instants (n,) [ns]; stamps (k,) [ns], increasing; values (k, m); max_age [s]; returns (n, m).
    """
    found = np.full((len(instants), values.shape[1]), np.nan)
    if not len(stamps):
        return found
    after = np.minimum(np.searchsorted(stamps, instants), len(stamps) - 1)
    before = np.where(stamps[after] == instants, after, np.maximum(after - 1, 0))
    ages = np.array([instants - stamps[before], stamps[after] - instants]) * NANOSECONDS
    near: Mask = np.logical_and.reduce((ages >= 0.0) & (ages <= max_age), axis=0)
    share = ages[0] / np.where(after > before, ages.sum(axis=0), 1.0)
    change = share[:, None] * (values[after] - values[before])
    return np.where(near[:, None], values[before] + change, found)


def _frozen(stamps: Stamps, raw: Array, limit: float) -> Mask:
    """Return the messages that repeat the one before, in runs that are too long."""
    frozen = np.zeros(len(stamps), dtype=bool)
    if limit and len(stamps):
        starts, ends = runs(raw)
        long = (stamps[ends] - stamps[starts]) * NANOSECONDS >= limit
        frozen = np.repeat(long, ends - starts + 1)
        frozen[starts] = False
    return frozen


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
    raise ConfigError(
        f"the wrench at '{there[0]}' needs that of the ground, at '{robot.fixed_frame}'"
    )


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
