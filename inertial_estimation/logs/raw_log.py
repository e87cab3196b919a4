# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Raw readings of single sensors, from a table of numbers or topics of a bag.

Readings of an FT sensor and an accelerometer need no URDF: columns or topics are named. Streams of
a tool keep their own stamps; temperatures are interpolated at the stamps of a log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Stamps
from inertial_estimation.calibration.calibration_file import SensorCalibration
from inertial_estimation.calibration.tool import ToolMotion
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CallError, ConfigError, LogError, NameNotFound
from inertial_estimation.logs.bag import BagReader, read_in_order, resolve
from inertial_estimation.logs.known_wrenches import at_instants
from inertial_estimation.logs.layout import MAX_TIME
from inertial_estimation.logs.log import LogSlice, TimeRange
from inertial_estimation.logs.table import TABLES, load_table, read_signal
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import inverse_pose
from inertial_estimation.signals.messages import IMU, TEMPERATURE, WRENCH
from inertial_estimation.signals.router import accepted_frame_ids

MAX_IMU_DISTANCE = 0.1
"""From a wrench to the messages of the IMU before and after it [s]."""
MIN_ABSOLUTE_TIME = 1e9
"""From which a time is since 1970, not since the start of a log [s]."""
MAX_EXTRAPOLATION = 10.0
"""Time before the first and after the last temperature in which it is known [s]."""
FROZEN_AFTER = 0.05
"""Duration of bit-equal values of a frozen sensor [s]."""
TYPES = {'ft': WRENCH, 'imu': IMU, 'temperature': TEMPERATURE}


class RawSignals(NamedTuple):
    """Columns of a table, several or one of several values, or topics of a bag."""

    readings: tuple[str, ...] = ()
    """Empty: ``raw``, or the only wrench topic."""
    accelerometer: tuple[str, ...] = ()
    """Of a table; empty: ``accelerometer``."""
    gyroscope: tuple[str, ...] = ()
    """Of a table; empty: ``gyroscope`` if there is one. A bag has it in the topic of the IMU."""
    time: str = 'time'
    """Of a table [s]; only needed for a part of it."""
    accelerometer_unit: str = 'm/s^2'
    """Of a table."""
    imu: str = ''
    """Of a bag; empty: the only IMU topic."""


class RawLog(NamedTuple):
    """Samples in the order of time, NaN where not known."""

    name: str
    raw: Array
    """Shape (n, 6), in the unit of the log."""
    accelerations: Array
    """Shape (n, 3) [m/s^2]."""
    turning: Array | None
    """Shape (n, 3) [rad/s]; None: no gyroscope."""
    date: str
    """Of the recording, ISO 8601; of a table without such times, of its file."""


def iso_date(stamp_ns: float) -> str:
    """Return a time since 1970 [ns] as ISO 8601."""
    return datetime.fromtimestamp(int(stamp_ns) // 1_000_000_000, timezone.utc).isoformat()


def read_raw_log(text: str, signals: RawSignals) -> RawLog:
    """Read a log or a part of it."""
    part = LogSlice.parse(text)
    return (_of_table if part.path.suffix in TABLES else _of_bag)(part, signals)


def _of_table(part: LogSlice, signals: RawSignals) -> RawLog:
    """Read a table."""
    if signals.imu:
        raise CallError('--imu is for bags: name columns of a table with --accelerometer')
    table, columns = load_table(part.path), {}
    wanted: list[tuple[str, Sequence[str], str, int]] = [
        ('readings', signals.readings or ('raw',), 'wrench', 6),
        ('accelerometer', signals.accelerometer or ('accelerometer',), 'accelerometer', 3),
    ]
    if signals.gyroscope or 'gyroscope' in table.columns:
        wanted.append(('gyroscope', signals.gyroscope or ('gyroscope',), 'gyroscope', 3))
    if signals.time in table.columns or signals.time != 'time' or not part.is_whole:
        wanted.append(('time', (signals.time,), 'time', 1))
    for option, names, kind, width in wanted:
        given: dict[str, Any] = {'columns': list(names)}
        if option == 'accelerometer':
            given['unit'] = signals.accelerometer_unit
        columns[option] = read_signal(given, f'--{option}', kind).read(table, width)
        n, expected = len(columns[option]), len(columns['readings'])
        if n != expected:
            raise LogError(f'{table.path}: --{option} has {n} samples, --readings {expected}')
    rows, stamp_ns = slice(None), 1e9 * part.path.stat().st_mtime
    if 'time' in columns:
        seconds = columns['time'][:, 0]
        if not (np.abs(seconds) <= MAX_TIME).all() or (np.diff(seconds) < 0.0).any():
            raise LogError(
                f"{table.path}: column '{signals.time}' for --time holds NaN, more than "
                f'{MAX_TIME:g} s, or goes back'
            )
        rows = part.rows(np.round(seconds * 1e9).astype(np.int64))
        stamp_ns = 1e9 * seconds[0] if seconds[0] > MIN_ABSOLUTE_TIME else stamp_ns
    turning = columns['gyroscope'][rows] if 'gyroscope' in columns else None
    return RawLog(
        str(part), columns['readings'][rows], columns['accelerometer'][rows], turning,
        iso_date(stamp_ns),
    )  # fmt: skip


def _of_bag(part: LogSlice, signals: RawSignals) -> RawLog:
    """Read a bag, with accelerations interpolated at the wrenches."""
    for option in ('accelerometer', 'gyroscope'):
        if getattr(signals, option):
            raise CallError(f'--{option} is for tables: name the topic of the IMU with --imu')
    with BagReader(part.path) as reader:
        fts = _read(reader, _topic(reader, signals.readings, 'ft', 'readings'), 'ft')
        imus = _read(
            reader, _topic(reader, (signals.imu,) * bool(signals.imu), 'imu', 'imu'), 'imu'
        )
    held = at_instants(fts.stamps_ns, imus.stamps_ns, imus.values, MAX_IMU_DISTANCE)
    rows = part.rows(fts.stamps_ns)
    date = iso_date(fts.stamps_ns[0])
    return RawLog(str(part), fts.values[rows], held[rows, :3], held[rows, 3:], date)


def _topic(reader: BagReader, named: tuple[str, ...], kind: str, option: str) -> str:
    """Return the topic that is named, or the only one of its type."""
    if len(named) > 1:
        raise CallError(f'--{option} names {len(named)} topics, expected one')
    if named:
        return resolve(named[0])
    known = sorted(name for name, found in reader.topics.items() if found.type == TYPES[kind])
    if len(known) != 1:
        raise LogError(
            f"'{reader.path}' has {len(known)} topics of {TYPES[kind]} ({', '.join(known)}): name "
            f'one with --{option}'
        )
    return known[0]


class _Stream(NamedTuple):
    """One topic with its own stamps."""

    topic: str
    stamps_ns: Stamps
    """Of the headers, increasing, shape (n,) [ns]."""
    values: Array
    """Of each message, shape (n, m)."""
    frame_ids: frozenset[str]

    def without_frozen(self) -> _Stream:
        """Return a stream with NaN where it repeats itself for longer than a live sensor."""
        same = np.zeros(len(self.values), dtype=bool)
        same[1:] = (self.values[1:] == self.values[:-1]).all(axis=1)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(int)))
        values = self.values.copy()
        for first, end in edges.reshape(-1, 2):
            if self.stamps_ns[end - 1] - self.stamps_ns[first - 1] > FROZEN_AFTER * 1e9:
                values[first:end] = np.nan
        return self._replace(values=values)


def _read(reader: BagReader, topic: str, kind: str) -> _Stream:
    """Return the readings of a topic: wrench; acceleration and angular velocity; temperature."""
    stamps, readings = read_in_order(reader, topic, TYPES[kind], kind)
    if not readings:
        raise LogError(f"topic '{topic}' of the bag has no message")
    if kind == 'imu':
        values = [[*one.linear_acceleration, *one.angular_velocity] for one in readings]
    else:
        values = [one.values for one in readings]
    return _Stream(topic, stamps, np.array(values), frozenset(one.frame_id for one in readings))


def read_temperatures(
    bag: str | Path, topics: Mapping[str, str], names: Sequence[str], stamps_ns: Stamps
) -> Array:
    """Return temperatures of FT sensors at stamps (n,), (n, n_fts) [degrees Celsius]."""
    found = np.full((len(stamps_ns), len(names)), np.nan)
    for name, topic in topics.items():
        if name not in names:
            raise NameNotFound('FT sensor', name, names, f"'topics' names '{name}'")
        with BagReader(bag) as reader:
            stream = _read(reader, topic, 'temperature')
        known = np.isfinite(stream.values[:, 0])
        if not known.any():
            raise LogError(f"topic '{topic}' of the bag holds no finite temperature")
        times = (stream.stamps_ns[known] - stamps_ns[0]) / 1e9
        at = (stamps_ns - stamps_ns[0]) / 1e9
        near = (at > times[0] - MAX_EXTRAPOLATION) & (at < times[-1] + MAX_EXTRAPOLATION)
        found[near, names.index(name)] = np.interp(at[near], times, stream.values[known, 0])
    return found


class ToolSource(NamedTuple):
    """Topics and poses of a tool's FT sensor and IMU."""

    ft_topic: str
    """Of type WrenchStamped."""
    imu_topic: str
    """Of type Imu."""
    sensor_H_imu: Array
    """Pose of the IMU in the sensor frame, shape (4, 4) [m]."""
    direction: int = 1
    """+1: the reading is the wrench of the tool on what carries it; -1: the opposite one."""
    imu_time_offset: float = 0.0
    """Added to the stamps of the IMU over what is added to those of the FT sensor [s]."""
    ft_frames: frozenset[str] = frozenset()
    """Frames that its messages may name; empty: any."""
    imu_frames: frozenset[str] = frozenset()
    """Likewise."""


def source_on_robot(robot: Robot, settings: EstimatorSettings, ft: str, imu: str) -> ToolSource:
    """Return the source of a robot's FT sensor and an IMU on the tool."""
    fts = {sensor.name: sensor for sensor in robot.ft_sensors}
    imus = {one.name: one for one in robot.imus}
    if ft not in fts:
        raise NameNotFound('FT sensor', ft, fts, f"'ft' names '{ft}'")
    if imu not in imus:
        raise NameNotFound('IMU', imu, imus, f"'imu' names '{imu}'")
    sensor, source = fts[ft], imus[imu]
    if source.link != sensor.child:
        raise ConfigError(
            f"IMU '{imu}' is on {robot.link_names[source.link]}, FT sensor '{ft}' carries "
            f'{robot.link_names[sensor.child]}'
        )
    of_ft, of_imu = settings.ft_of(ft), settings.imu_of(imu)
    return ToolSource(
        resolve(of_ft.topic),
        resolve(of_imu.topic),
        inverse_pose(sensor.child_H_sensor) @ source.L_H_S,
        sensor.direction,
        of_imu.time_offset - of_ft.time_offset,
        frozenset(accepted_frame_ids(settings, robot, sensor)),
        frozenset(accepted_frame_ids(settings, robot, source)),
    )


class ToolLog(NamedTuple):
    """Motion of a tool, times from the first message of its FT sensor [ns]."""

    motion: ToolMotion
    origin_ns: int


def read_tool_log(
    bag: str | Path,
    source: ToolSource,
    time_range: TimeRange,
    calibration: SensorCalibration,
    imu_offset: Sequence[float] = (0.0, 0.0, 0.0),
) -> ToolLog:
    """Read an FT sensor and an IMU beside it; imu_offset [m/s^2]."""
    if calibration.temperature_coefficients.any():
        raise ConfigError('the sensor has temperature coefficients, which are not used here')
    with BagReader(bag) as reader:
        ft = _read(reader, source.ft_topic, 'ft').without_frozen()
        imu = _read(reader, source.imu_topic, 'imu').without_frozen()
    origin, found = int(ft.stamps_ns[0]), []
    for stream, frames in ((ft, source.ft_frames), (imu, source.imu_frames)):
        if frames and (others := sorted(stream.frame_ids - frames)):
            raise LogError(
                f"topic '{stream.topic}' names frame '{others[0]}', expected "
                f'{" or ".join(sorted(frames))}'
            )
        times = (stream.stamps_ns - origin) / 1e9
        kept = time_range.mask(times)
        if not kept.any():
            raise LogError(
                f"no message of '{stream.topic}' lies between {time_range.start} s and "
                f'{time_range.stop} s: they span {times[0]:.2f} s to {times[-1]:.2f} s'
            )
        found += [times[kept], stream.values[kept]]
    ft_times, wrenches, imu_times, values = found
    motion = ToolMotion(
        ft_times,
        wrenches @ calibration.matrix.T,
        imu_times + source.imu_time_offset,
        values[:, :3] - np.asarray(imu_offset),
        None if np.isnan(values[:, 3:]).all() else values[:, 3:],
        source.sensor_H_imu,
    )
    return ToolLog(motion, origin)
