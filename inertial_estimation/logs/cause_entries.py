# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What each cause of NaN and doubt reaches, and the reports that come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.logs.failures import STATES
from inertial_estimation.logs.figures import CauseReport
from inertial_estimation.logs.replay import Replay
from inertial_estimation.logs.wording import describe
from inertial_estimation.sample import Array

Mask = NDArray[np.bool_]
Key = tuple[str, str, int]
"""Kind, name and code."""

KINDS = ('start', 'joint', 'imu', 'ft', 'touch', 'contact', 'offset')


@dataclass
class Entry:
    """What one cause reaches; names of contacts and joints."""

    rows: Mask
    nan_contacts: set[str] = field(default_factory=set)
    nan_torques: set[str] = field(default_factory=set)
    gave_way_to: set[str] = field(default_factory=set)
    doubtful_contacts: set[str] = field(default_factory=set)
    doubtful_torques: set[str] = field(default_factory=set)


def cause_reports(entries: Mapping[Key, Entry], replay: Replay) -> tuple[CauseReport, ...]:
    """Return the causes: by kind, in the order of the robot."""
    robot, times = replay.robot, replay.recording.times
    contacts = [contact.name for contact in replay.clean.contacts]
    fts = [sensor.name for sensor in robot.ft_sensors]
    imus = [imu.name for imu in robot.imus]
    orders = {'joint': list(robot.joint_names), 'imu': imus, 'ft': fts, 'offset': fts}

    def place(key: Key) -> tuple[int, int, int]:
        kind, name, code = key
        names = orders.get(kind)
        return KINDS.index(kind), names.index(name) if names else 0, code

    return tuple(
        _report(key, entries[key], times, contacts, orders['joint'])
        for key in sorted(entries, key=place)
    )


def _report(
    key: Key,
    entry: Entry,
    times: Array,
    contacts: list[str],
    joints: list[str],
) -> CauseReport:
    kind, name, code = key
    rows = np.flatnonzero(entry.rows)
    always = len(rows) == len(times)
    return CauseReport(
        cause=describe(kind, [name], STATES[code], always=always),
        kind=kind,
        name=name,
        state=STATES[code],
        n_samples=len(rows),
        sample_share=len(rows) / len(times),
        first_s=float(times[rows[0]]),
        last_s=float(times[rows[-1]]),
        nan_contacts=_ordered(entry.nan_contacts, contacts),
        gave_way_to=_ordered(entry.gave_way_to, contacts),
        nan_torques=_ordered(entry.nan_torques, joints),
        doubtful_contacts=_ordered(entry.doubtful_contacts, contacts),
        doubtful_torques=_ordered(entry.doubtful_torques, joints),
    )


def _ordered(names: set[str], order: list[str]) -> tuple[str, ...]:
    return tuple(name for name in order if name in names)
