# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Raw readings of single sensors, from a table of numbers or topics of a bag.

Readings of an FT sensor and an accelerometer need no URDF: columns or topics are named. Streams of
a tool keep their own stamps; temperatures are interpolated at the stamps of a log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Stamps
from inertial_estimation.calibration.calibration_file import SensorCalibration
from inertial_estimation.calibration.tool import ToolMotion
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CallError, ConfigError, LogError, NameNotFound
from inertial_estimation.logs.bag import BagReader, MessageReader, resolve
from inertial_estimation.logs.known_wrenches import at_instants
from inertial_estimation.logs.layout import MAX_TIME
from inertial_estimation.logs.log import LogSlice, TimeRange
from inertial_estimation.logs.table import TABLES, load_table, read_signal
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import inverse_pose
from inertial_estimation.signals.messages import IMU, TEMPERATURE, WRENCH
from inertial_estimation.signals.router import accepted_frame_ids

RAW, ACCELEROMETER, GYROSCOPE, TIME = 'raw', 'accelerometer', 'gyroscope', 'time'
"""Default columns."""
MAX_IMU_DISTANCE = 0.1
"""From a wrench to the messages of the IMU before and after it [s]."""
MIN_ABSOLUTE_TIME = 1e9
"""From which a time is since 1970, not since the start of a log [s]."""
MAX_EXTRAPOLATION = 10.0
"""Time before the first and after the last temperature in which it is known [s]."""
FROZEN_AFTER = 0.05
"""Duration of bit-equal values of a frozen sensor [s]."""
KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    'ft': (WRENCH, lambda reading: reading.values),
    'imu': (IMU, lambda one: np.concatenate([one.linear_acceleration, one.angular_velocity])),
    'temperature': (TEMPERATURE, lambda reading: reading.values[:1]),
}
"""Message types, and the values of their readings."""


class RawSignals(NamedTuple):
    """Columns of a table, several or one of several values, or topics of a bag."""

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


def read_raw_log(text: str, signals: RawSignals) -> RawLog:
    """Read a log or a part of it."""
    part = LogSlice.parse(text)
    return (_of_table if part.path.suffix in TABLES else _of_bag)(part, signals)


def _of_table(part: LogSlice, signals: RawSignals) -> RawLog:
    """Read a table."""
    if signals.imu:
        raise CallError('--imu is for bags: name columns of a table with --accelerometer')
    table = load_table(part.path)

    def read(option: str, columns: Sequence[str], kind: str, width: int, **unit: str) -> Array:
        signal = read_signal({'columns': list(columns), **unit}, f'--{option}', kind)
        return signal.read(table, width)

    raw = read('readings', signals.readings or (RAW,), 'wrench', 6)
    columns = {'readings': raw, 'accelerometer': read(
        'accelerometer', signals.accelerometer or (ACCELEROMETER,), 'accelerometer', 3,
        unit=signals.accelerometer_unit,
    )}  # fmt: skip
    if signals.gyroscope or GYROSCOPE in table.columns:
        names = signals.gyroscope or (GYROSCOPE,)
        columns['gyroscope'] = read('gyroscope', names, 'gyroscope', 3)
    written = datetime.fromtimestamp(part.path.stat().st_mtime, tz=timezone.utc)
    rows, date = slice(None), _date(written.timestamp())
    if signals.time in table.columns or signals.time != TIME or not part.is_whole:
        table.column(signals.time, '--time')
        columns['time'] = read('time', (signals.time,), 'time', 1)
    for option, values in columns.items():
        if len(values) != len(raw):
            raise LogError(
                f'{table.path}: --{option} has {len(values)} samples, --readings {len(raw)}'
            )
    if 'time' in columns:
        seconds = columns['time'][:, 0]
        if not (np.abs(seconds) <= MAX_TIME).all() or (np.diff(seconds) < 0.0).any():
            raise LogError(
                f"{table.path}: column '{signals.time}' for --time holds NaN, more than "
                f'{MAX_TIME:g} s, or goes back'
            )
        rows = part.rows(np.round(seconds * 1e9).astype(np.int64))
        date = _date(float(seconds[0])) if seconds[0] > MIN_ABSOLUTE_TIME else date
    turning = columns.get('gyroscope')
    return RawLog(
        str(part), raw[rows], columns['accelerometer'][rows],
        None if turning is None else turning[rows], date,
    )  # fmt: skip


def _of_bag(part: LogSlice, signals: RawSignals) -> RawLog:
    """Read a bag, with accelerations interpolated at the wrenches."""
    for option in ('accelerometer', 'gyroscope'):
        if getattr(signals, option):
            raise CallError(f'--{option} is for tables: name the topic of the IMU with --imu')
    with BagReader(part.path) as reader:
        fts = _read(reader, _topic(reader, signals.readings, 'ft', 'readings'), 'ft')
        named = (signals.imu,) * bool(signals.imu)
        imus = _read(reader, _topic(reader, named, 'imu', 'imu'), 'imu')
    fts, imus = fts.in_order(), imus.in_order()
    held = at_instants(fts.stamps_ns, imus.stamps_ns, imus.values, MAX_IMU_DISTANCE)
    rows = part.rows(fts.stamps_ns)
    date = _date(fts.stamps_ns[0] * 1e-9)
    return RawLog(str(part), fts.values[rows], held[rows, :3], held[rows, 3:], date)


def _topic(reader: BagReader, named: tuple[str, ...], kind: str, option: str) -> str:
    """Return the topic that is named, or the only one of its type."""
    if len(named) > 1:
        raise CallError(f'--{option} names {len(named)} topics, expected one')
    if named:
        return resolve(named[0])
    type_ = KINDS[kind][0]
    known = sorted(name for name, found in reader.topics.items() if found.type == type_)
    if len(known) != 1:
        raise LogError(
            f"'{reader.path}' has {len(known)} topics of {type_} ({', '.join(known)}): name one "
            f'with --{option}'
        )
    return known[0]


def _date(seconds: float) -> str:
    """Return a time since 1970 as ISO 8601."""
    return datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat(timespec='seconds')


class RawStream(NamedTuple):
    """One topic with its own stamps."""

    topic: str
    stamps_ns: Stamps
    """Of the headers, in the order of recording, shape (n,) [ns]."""
    values: Array
    """Of each message, shape (n, m)."""
    frame_ids: frozenset[str]
    """Of the messages."""

    def times(self, origin_ns: int) -> Array:
        """Return the stamps as seconds, (n,) [s]."""
        found: Array = (self.stamps_ns - origin_ns) / 1e9
        return found

    def in_order(self) -> RawStream:
        """Return the first message of each stamp; refuse stamps that go back."""
        steps = np.diff(self.stamps_ns)
        if (steps < 0).any():
            back = int(np.argmax(steps < 0)) + 2
            raise LogError(
                f"topic '{self.topic}': stamps go back at message {back} of {len(self.values)}"
            )
        kept = np.concatenate([[True], steps > 0])
        return self._replace(stamps_ns=self.stamps_ns[kept], values=self.values[kept])

    def without_frozen(self) -> RawStream:
        """Return a stream with NaN where it repeats itself for longer than a live sensor."""
        same = np.zeros(len(self.values), dtype=bool)
        same[1:] = (self.values[1:] == self.values[:-1]).all(axis=1)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(int)))
        values = self.values.copy()
        for first, end in edges.reshape(-1, 2):
            if self.stamps_ns[end - 1] - self.stamps_ns[first - 1] > FROZEN_AFTER * 1e9:
                values[first:end] = np.nan
        return self._replace(values=values)


def _read(reader: BagReader, topic: str, kind: str) -> RawStream:
    """Return the readings of a topic of an 'ft', an 'imu' or a 'temperature'."""
    type_, values_of = KINDS[kind]
    reader.require(topic, type_)
    decode = MessageReader(kind).read
    readings = [decode(message.data) for message in reader.messages((topic,))]
    if not readings:
        raise LogError(f"topic '{topic}' of the bag has no message")
    return RawStream(
        topic,
        np.array([one.stamp_ns for one in readings], dtype=np.int64),
        np.array([values_of(one) for one in readings]),
        frozenset(one.frame_id for one in readings),
    )


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
        origin = int(stream.stamps_ns[0])
        times, values = stream.times(origin)[known], stream.values[known, 0]
        order, at = np.argsort(times, kind='stable'), (stamps_ns - origin) / 1e9
        near = (at > times.min() - MAX_EXTRAPOLATION) & (at < times.max() + MAX_EXTRAPOLATION)
        found[near, names.index(name)] = np.interp(at[near], times[order], values[order])
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
    """Motion of a tool."""

    motion: ToolMotion
    origin_ns: int
    """Stamp that times are counted from [ns]."""


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
    origin = int(ft.stamps_ns[0])
    found = []
    for stream, frames in ((ft, source.ft_frames), (imu, source.imu_frames)):
        others = sorted(stream.frame_ids - frames)
        if frames and others:
            raise LogError(
                f"topic '{stream.topic}' names frame '{others[0]}', expected "
                f'{" or ".join(sorted(frames))}'
            )
        times = stream.times(origin)
        kept = np.flatnonzero(time_range.mask(times))
        if not len(kept):
            raise LogError(
                f"no message of '{stream.topic}' lies between {time_range.start} s and "
                f'{time_range.stop} s: they span {times.min():.2f} s to {times.max():.2f} s'
            )
        found.append((times[kept], stream.values[kept]))
    (ft_times, wrenches), (imu_times, values) = found
    motion = ToolMotion(
        ft_times,
        wrenches @ calibration.matrix.T,
        imu_times + source.imu_time_offset,
        values[:, :3] - np.asarray(imu_offset, dtype=np.float64),
        None if np.isnan(values[:, 3:]).all() else values[:, 3:],
        source.sensor_H_imu,
    )
    return ToolLog(motion, origin)
