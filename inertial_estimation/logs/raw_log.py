# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Raw readings of one FT sensor and one accelerometer, from a table of numbers or a bag.

No robot description is needed: columns or topics are named, and readings stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import CallError, LogError
from inertial_estimation.logs.bag import BagReader, MessageReader, resolve
from inertial_estimation.logs.known_wrenches import NANOSECONDS, Stamps, at_instants
from inertial_estimation.logs.layout import MAX_TIME as LATEST
from inertial_estimation.logs.log import LogSlice
from inertial_estimation.logs.table import Signal, Table, load_table, read_signal
from inertial_estimation.signals.messages import IMU, WRENCH

Array = NDArray[np.float64]

OF_TABLES = ('.npz', '.csv')
RAW, ACCELEROMETER, GYROSCOPE, TIME = 'raw', 'accelerometer', 'gyroscope', 'time'
"""Columns that are taken unless others are named."""
MOST_APART = 0.1
"""Of a wrench and the messages of the IMU before and after it [s]."""
SINCE_1970 = 1e9
"""Seconds from which a time is one since 1970, not since the start of a log [s]."""


class RawSignals(NamedTuple):
    """Where the signals are: columns of a table, several or one of several values, or topics."""

    readings: tuple[str, ...] = ()
    """Empty: `RAW`, or the only wrench topic."""
    accelerometer: tuple[str, ...] = ()
    """Of a table; empty: `ACCELEROMETER`."""
    gyroscope: tuple[str, ...] = ()
    """Of a table; empty: `GYROSCOPE` if there is one. A bag has it in the topic of the IMU."""
    time: str = TIME
    """Of a table [s]; only needed for a part of it."""
    accelerometer_unit: str = 'm/s^2'
    """Of a table."""
    imu: str = ''
    """Of a bag; empty: the only IMU topic."""


@dataclass(frozen=True, eq=False)
class RawLog:
    """Samples in the order of time; what is not known is NaN."""

    name: str
    raw: Array
    """Shape (n, 6), in the unit of the log."""
    accelerations: Array
    """Shape (n, 3) [m/s^2]."""
    turning: Array | None
    """Shape (n, 3) [rad/s]; None: no gyroscope."""
    date: str
    """When it was recorded, ISO 8601; of a table without such times, when it was written."""


def read_raw_log(said: str, signals: RawSignals) -> RawLog:
    """Read a log or a part of it."""
    stretch = LogSlice.parse(said)
    if stretch.path.suffix in OF_TABLES:
        return _of_table(stretch, signals)
    return _of_bag(stretch, signals)


def _of_table(stretch: LogSlice, signals: RawSignals) -> RawLog:
    """Read a table."""
    if signals.imu:
        raise CallError('--imu is for bags: name columns of a table with --accelerometer')
    table = load_table(stretch.path)
    readings = _signal('readings', signals.readings or (RAW,), 'wrench').read(table, 6)
    n = len(readings)
    accelerometer = _signal(
        'accelerometer', signals.accelerometer or (ACCELEROMETER,), 'accelerometer',
        signals.accelerometer_unit,
    )  # fmt: skip
    accelerations = accelerometer.read_at(table, 3, n, 'readings')
    turning = None
    if signals.gyroscope or GYROSCOPE in table.columns:
        gyroscope = _signal('gyroscope', signals.gyroscope or (GYROSCOPE,), 'gyroscope')
        turning = gyroscope.read_at(table, 3, n, 'readings')
    stamps, date = _times(table, signals.time, n, stretch)
    rows = slice(None) if stamps is None else stretch.rows(stamps)
    return RawLog(
        str(stretch), readings[rows], accelerations[rows],
        None if turning is None else turning[rows], date,
    )  # fmt: skip


def _signal(option: str, columns: Sequence[str], kind: str, unit: str = '') -> Signal:
    """Return a signal that an option names."""
    said = {'columns': list(columns)} | ({'unit': unit} if unit else {})
    return read_signal(said, f'--{option}', kind)


def _times(table: Table, name: str, n: int, stretch: LogSlice) -> tuple[Stamps | None, str]:
    """Return stamps if there are any, and when the log was recorded."""
    whole = (stretch.start, stretch.stop) == (0.0, np.inf)
    written = datetime.fromtimestamp(stretch.path.stat().st_mtime, tz=timezone.utc)
    if name not in table.columns:
        if not whole or name != TIME:
            table.column(name, '--time')
        return None, _iso(written)
    seconds = _signal('time', (name,), 'time').read(table, 1)[:, 0]
    if len(seconds) != n:
        raise LogError(f'{table.path}: --time has {len(seconds)} instants, --readings {n}')
    if not (np.abs(seconds) <= LATEST).all() or (np.diff(seconds) < 0.0).any():
        raise LogError(
            f"{table.path}: column '{name}' for --time holds NaN, more than {LATEST:g} s, or goes "
            'back: name another one, in seconds'
        )
    stamps = np.round(seconds / NANOSECONDS).astype(np.int64)
    recorded = seconds[0] > SINCE_1970
    return stamps, _iso(_when(float(seconds[0])) if recorded else written)


def _of_bag(stretch: LogSlice, signals: RawSignals) -> RawLog:
    """Read a bag; of the IMU what is in between its messages is interpolated."""
    for option in ('accelerometer', 'gyroscope'):
        if getattr(signals, option):
            raise CallError(f'--{option} is for tables: name the topic of the IMU with --imu')
    with BagReader(stretch.path) as reader:
        of_ft = _topic(reader, signals.readings, WRENCH, 'readings')
        of_imu = _topic(reader, (signals.imu,) * bool(signals.imu), IMU, 'imu')
        read_ft, read_imu = MessageReader('ft').read, MessageReader('imu').read
        fts, imus = [], []
        for message in reader.messages([of_ft, of_imu]):
            if message.topic == of_ft:
                reading = read_ft(message.data)
                fts.append((reading.stamp_ns, *reading.values))
            else:
                found = read_imu(message.data)
                imus.append((found.stamp_ns, *found.linear_acceleration, *found.angular_velocity))
    stamps, raw = _in_order(fts, of_ft, 6)
    imu_stamps, values = _in_order(imus, of_imu, 6)
    held = at_instants(stamps, imu_stamps, values, MOST_APART)
    rows = stretch.rows(stamps)
    date = _iso(_when(stamps[0] * NANOSECONDS))
    return RawLog(str(stretch), raw[rows], held[rows, :3], held[rows, 3:], date)


def _topic(reader: BagReader, named: tuple[str, ...], type_: str, option: str) -> str:
    """Return the topic of a signal; the only one of its type need not be named."""
    if len(named) > 1:
        raise CallError(f'--{option} names {len(named)} topics, expected one')
    if named:
        topic = resolve(named[0])
        reader.require(topic, type_)
        return topic
    known = sorted(name for name, found in reader.topics.items() if found.type == type_)
    if len(known) != 1:
        those = f'{len(known)}: {", ".join(known)}' if known else 'none'
        raise LogError(
            f"'{reader.path}' has {those} topics of {type_}: name one with --{option}"
            if known
            else f"'{reader.path}' has no topic of {type_}, for --{option}"
        )
    return known[0]


def _in_order(rows: Sequence[tuple[float, ...]], topic: str, size: int) -> tuple[Stamps, Array]:
    """Return stamps and values, of equal stamps the first."""
    if not rows:
        raise LogError(f"topic '{topic}' of the bag has no message")
    stamps = np.array([row[0] for row in rows], dtype=np.int64)
    steps = np.diff(stamps)
    if (steps < 0).any():
        back = int(np.argmax(steps < 0)) + 2
        raise LogError(
            f"topic '{topic}': stamps go back at message {back} of {len(stamps)}; cut the bag "
            'there'
        )
    kept = np.concatenate([[True], steps > 0])
    return stamps[kept], np.array([row[1:] for row in rows]).reshape(-1, size)[kept]


def _when(seconds: float) -> datetime:
    """Return a time since 1970."""
    return datetime.fromtimestamp(seconds, tz=timezone.utc)


def _iso(when: datetime) -> str:
    """Return a date and time."""
    return when.isoformat(timespec='seconds')


def log_file(said: str) -> Path:
    return LogSlice.parse(said).path
