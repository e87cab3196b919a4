# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Raw readings of single sensors, from a table of numbers or topics of a bag.

Readings of an FT sensor and an accelerometer need no URDF: columns or topics are named. Streams of
a tool keep their own stamps; temperatures are interpolated at the stamps of a log.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Stamps
from inertial_estimation.calibration.calibration_file import SensorCalibration
from inertial_estimation.calibration.tool import ToolMotion
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CallError, ConfigError, LogError, NameNotFound
from inertial_estimation.logs.bag import BagReader
from inertial_estimation.logs.columns import TABLES, load_table, signal
from inertial_estimation.logs.log import LogSlice, TimeRange
from inertial_estimation.logs.streams import Stream, read_stream
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import inverse_pose
from inertial_estimation.signals.messages import READINGS
from inertial_estimation.signals.router import accepted_frame_ids

MAX_IMU_DISTANCE = 0.1
"""From a wrench to the messages of the IMU before and after it [s]."""
MIN_ABSOLUTE_TIME = 1e9
"""From which a time is since 1970, not since the start of a log [s]."""
MAX_EXTRAPOLATION = 10.0
"""Time before the first and after the last temperature in which it is known [s]."""
FROZEN_AFTER = 0.05
"""Duration of bit-equal values of a frozen sensor [s]."""


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
    table, found = load_table(part.path), dict[str, Array]()
    for option, kind, width, needed in (
        ('readings', 'wrench', 6, True),
        ('accelerometer', 'accelerometer', 3, True),
        ('gyroscope', 'gyroscope', 3, False),
        ('time', 'time', 1, signals.time != 'time' or not part.is_whole),
    ):
        default = 'raw' if option == 'readings' else option
        given: dict[str, Any] = {'columns': getattr(signals, option) or default}
        if given['columns'] == default and not needed and default not in table.columns:
            continue
        if option == 'accelerometer':
            given['unit'] = signals.accelerometer_unit
        n = len(found['readings']) if found else None
        found[option] = signal(kind)(given, f'--{option}').read(table, width, n, '--readings')
    rows, stamp_ns = slice(None), 1e9 * part.path.stat().st_mtime
    if 'time' in found:
        seconds = found['time'][:, 0]
        if not np.isfinite(seconds).all() or (np.diff(seconds) < 0.0).any():
            raise LogError(
                f"{table.path}: column '{signals.time}' for --time holds NaN, or goes back"
            )
        rows = part.rows(np.round(seconds * 1e9).astype(np.int64))
        stamp_ns = 1e9 * seconds[0] if seconds[0] > MIN_ABSOLUTE_TIME else stamp_ns
    turning = found['gyroscope'][rows] if 'gyroscope' in found else None
    raw, accelerations = found['readings'][rows], found['accelerometer'][rows]
    return RawLog(str(part), raw, accelerations, turning, iso_date(stamp_ns))


def _of_bag(part: LogSlice, signals: RawSignals) -> RawLog:
    """Read a bag, with accelerations interpolated at the wrenches."""
    for option in ('accelerometer', 'gyroscope'):
        if getattr(signals, option):
            raise CallError(f'--{option} is for tables: name the topic of the IMU with --imu')
    imu = (signals.imu,) if signals.imu else ()
    with BagReader(part.path) as reader:
        fts = _only_stream(reader, signals.readings, 'ft', 'readings')
        imus = _only_stream(reader, imu, 'imu', 'imu')
    held, rows = imus.at(fts.stamps_ns, MAX_IMU_DISTANCE), part.rows(fts.stamps_ns)
    date = iso_date(fts.stamps_ns[0])
    return RawLog(str(part), fts.values[rows], held[rows, :3], held[rows, 3:], date)


def _only_stream(reader: BagReader, named: tuple[str, ...], kind: str, option: str) -> Stream:
    """Return the stream of a topic that is named, or of the only one of its type."""
    if len(named) > 1:
        raise CallError(f'--{option} names {len(named)} topics, expected one')
    type_, _ = READINGS[kind]
    known = named or sorted(name for name, one in reader.topics.items() if one.type == type_)
    if len(known) != 1:
        raise LogError(
            f"'{reader.path}' has {len(known)} topics of {type_} ({', '.join(known)}): name one "
            f'with --{option}'
        )
    return read_stream(reader, known[0], kind)


def read_temperatures(
    bag: str | Path, topics: Mapping[str, str], names: Sequence[str], stamps_ns: Stamps
) -> Array:
    """Return temperatures of FT sensors at stamps (n,), (n, n_fts) [degrees Celsius]."""
    found = np.full((len(stamps_ns), len(names)), np.nan)
    for name, topic in topics.items():
        if name not in names:
            raise NameNotFound('FT sensor', name, names, f"'topics' names '{name}'")
        with BagReader(bag) as reader:
            stream = read_stream(reader, topic, 'temperature')
        known = np.isfinite(stream.values[:, 0])
        if not known.any():
            raise LogError(f"topic '{topic}' of the bag holds no finite temperature")
        times, at = ((one - stamps_ns[0]) / 1e9 for one in (stream.stamps_ns[known], stamps_ns))
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
    ft_frames: Collection[str] | None = None
    imu_frames: Collection[str] | None = None
    """Frames that messages may name; None: any."""


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
        of_ft.topic,
        of_imu.topic,
        inverse_pose(sensor.child_H_sensor) @ source.L_H_S,
        sensor.direction,
        of_imu.time_offset - of_ft.time_offset,
        accepted_frame_ids(settings, robot, sensor),
        accepted_frame_ids(settings, robot, source),
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
        streams = [
            read_stream(reader, topic, kind, frames).without_frozen(FROZEN_AFTER)
            for topic, kind, frames in (
                (source.ft_topic, 'ft', source.ft_frames),
                (source.imu_topic, 'imu', source.imu_frames),
            )
        ]
    origin, found = int(streams[0].stamps_ns[0]), []
    for stream in streams:
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
