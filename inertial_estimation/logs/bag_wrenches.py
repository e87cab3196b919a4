# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Known wrenches of a bag at the instants of its samples.

A log tells what came later too: a wrench is interpolated between the messages before and after an
instant. Where one of them is too far away, or they repeat each other for too long, it is unknown.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, LogError
from inertial_estimation.logs.bag import BagReader, MessageReader, resolve
from inertial_estimation.logs.known_wrenches import Known, TopicWrench
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.signals.router import WRENCH

Array = NDArray[np.float64]
Stamps = NDArray[np.int64]

NANOSECONDS = 1e-9


def read_wrenches(
    path: str | Path, known: Known, robot: Robot, samples: SampleBatch
) -> dict[str, Array]:
    """
    Return those known wrenches that a bag holds.

    Returns (n, 6) [N, Nm].
    """
    wanted = {name: one for name, one in known.items() if isinstance(one, TopicWrench)}
    if not wanted:
        return {}
    found = {}
    with BagReader(path) as reader:
        for frame, one in wanted.items():
            stamps, raw = _messages(reader, one, _frames(one, robot))
            stamps = stamps + round(one.time_offset / NANOSECONDS)
            wrench = one.signal.in_si(raw, 6)
            wrench[_frozen(stamps, raw, one.frozen_after)] = np.nan
            values = at_instants(samples.stamp_ns, stamps, wrench, one.max_age)
            found[frame] = one.place.at_frame(robot, samples.positions, values)
    return found


def at_instants(instants: Stamps, stamps: Stamps, values: Array, max_age: float) -> Array:
    """
    Interpolate messages.

    instants (n,) [ns]; stamps (k,) [ns]; values (k, 6); max_age [s]; returns (n, 6).
    """
    found = np.full((len(instants), values.shape[1]), np.nan)
    after = np.searchsorted(stamps, instants)
    inside = after < len(stamps)
    exact = inside.copy()
    exact[inside] = stamps[after[inside]] == instants[inside]
    found[exact] = values[after[exact]]
    rows = np.flatnonzero(inside & ~exact & (after > 0))
    later, earlier = after[rows], after[rows] - 1
    to_earlier = (instants[rows] - stamps[earlier]) * NANOSECONDS
    to_later = (stamps[later] - instants[rows]) * NANOSECONDS
    near = (to_earlier <= max_age) & (to_later <= max_age)
    rows, later, earlier = rows[near], later[near], earlier[near]
    share = (to_earlier / (to_earlier + to_later))[near, None]
    found[rows] = values[earlier] + share * (values[later] - values[earlier])
    return found


def _frames(one: TopicWrench, robot: Robot) -> set[str]:
    """Return what header.frame_id may be."""
    if one.frame_id:
        return {one.frame_id}
    if one.place.axes:
        # Its point and its axes belong to two frames, and senders name either of them.
        return {one.place.axes, one.place.frame}
    link, L_H_F = robot.frame(one.place.frame)
    names = robot.frames_at(link, L_H_F @ one.place.F_H_W)
    if not names:
        raise ConfigError(
            f"no frame of the robot is where '{one.place.name}' is expressed: set "
            f"'{one.place.name}.frame_id' to the header.frame_id of its messages"
        )
    return names


def _messages(reader: BagReader, one: TopicWrench, frames: set[str]) -> tuple[Stamps, Array]:
    """Return stamps and wrenches of a topic, of equal stamps the first."""
    topic = resolve(one.topic)
    reader.require(topic, WRENCH)
    read = MessageReader('ft').read
    readings = [read(message.data) for message in reader.messages([topic])]
    for reading in readings:
        if reading.frame_id not in frames:
            raise LogError(
                f"topic '{topic}' has header.frame_id '{reading.frame_id}', expected "
                f'{" or ".join(sorted(frames)[:3])}: if its wrenches are expressed as '
                f"'{one.place.name}' says, set '{one.place.name}.frame_id'"
            )
    stamps = np.array([reading.stamp_ns for reading in readings], dtype=np.int64)
    steps = np.diff(stamps)
    if (steps < 0).any():
        back = int(np.argmax(steps < 0)) + 1
        raise LogError(
            f"topic '{topic}': stamps go back at message {back + 1} of {len(stamps)}; cut the bag "
            'there'
        )
    kept = np.concatenate([[True], steps > 0]) if len(stamps) else np.zeros(0, dtype=bool)
    wrenches = np.array([reading.wrench for reading in readings]).reshape(-1, 6)
    return stamps[kept], wrenches[kept]


def _frozen(stamps: Stamps, raw: Array, limit: float) -> NDArray[np.bool_]:
    """Tell which messages repeat the one before, in runs that are too long."""
    repeats = np.zeros(len(stamps), dtype=bool)
    if not limit or not len(stamps):
        return repeats
    repeats[1:] = (raw[1:] == raw[:-1]).all(axis=1)
    run = np.cumsum(~repeats) - 1
    starts = np.flatnonzero(~repeats)
    ends = np.append(starts[1:], len(stamps)) - 1
    long = (stamps[ends] - stamps[starts]) * NANOSECONDS >= limit
    return np.asarray(repeats & long[run])
