# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logs of one FT sensor and an IMU on the rigid body beyond it, which need no joints."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.calibration.calibration_file import SensorCalibration, iso_date
from inertial_estimation.calibration.tool import ToolMotion
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CallError, ConfigError, LogError, NameNotFound
from inertial_estimation.logs.bag import BagReader, Stream, read_stream
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.log import LogSlice, TimeRange
from inertial_estimation.logs.table_formats import Layout, load_table
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import inverse_pose
from inertial_estimation.signals.sources import accepted_frame_ids

MAX_IMU_DISTANCE = 0.1
"""From a wrench to the messages of the IMU before and after it [s]."""
MIN_ABSOLUTE_NS = 1e18
"""From which a stamp is since 1970, not since the start of a log [ns]."""
FROZEN_AFTER = 0.05
"""Duration of bit-equal values of a frozen sensor [s]."""


class BodyLog(NamedTuple):
    """Samples in the order of time, NaN where not known."""

    name: str
    raw: Array
    """Readings of the FT sensor, shape (n, 6), in the unit of the log."""
    accelerations: Array
    """Proper accelerations, shape (n, 3) [m/s^2]."""
    turning: Array | None
    """Angular velocities, shape (n, 3) [rad/s]; None: no gyroscope."""
    date: str
    """Of the first sample, ISO 8601; of a table without such times, of its file."""


class SensorPair(NamedTuple):
    """Topics of an FT sensor and of an IMU beside it, and the pose between them."""

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

    def read(self, bag: Path) -> tuple[Stream, Stream]:
        """Read both streams of a bag."""
        with BagReader(bag) as reader:
            return (
                read_stream(reader, self.ft_topic, 'ft', self.ft_frames),
                read_stream(reader, self.imu_topic, 'imu', self.imu_frames),
            )


class ToolLog(NamedTuple):
    """Motion of a tool, times from the first message of its FT sensor [ns]."""

    motion: ToolMotion
    origin_ns: int


def read_body_log(part: LogSlice, settings: IdentifySettings, ft: str, imu: str = '') -> BodyLog:
    """Read a table by its layout, or a bag by the node's topics; imu: default the only one."""
    late_ns = 0
    if settings.node is not None:
        imu = _named('IMU', 'imu', imu, [imu] if imu else settings.node.imus)
        of_ft, of_imu = settings.node.ft_of(ft), settings.node.imu_of(imu)
        fts, imus = SensorPair(of_ft.topic, of_imu.topic, np.eye(4)).read(part.path)
        late_ns = round(1e9 * (of_ft.time_offset - of_imu.time_offset))
    elif settings.log is not None:
        fts, imus = _read_table(part.path, settings.log, ft, imu)
    motion = imus.at(fts.stamps_ns + late_ns, MAX_IMU_DISTANCE)
    rows = part.rows(fts.stamps_ns)
    raw, motion, start_ns = fts.values[rows], motion[rows], float(fts.stamps_ns[rows][0])
    if start_ns < MIN_ABSOLUTE_NS:
        start_ns = 1e9 * part.path.stat().st_mtime
    turning = None if np.isnan(motion[:, 3:]).all() else motion[:, 3:]
    return BodyLog(str(part), raw, motion[:, :3], turning, iso_date(start_ns))


def _read_table(path: Path, layout: Layout, ft: str, imu: str) -> tuple[Stream, Stream]:
    """Return the columns of an FT sensor and of an IMU."""
    table = load_table(path)
    seconds = layout.time.read(table, 1)[:, 0]
    # False where one is NaN.
    if len(back := np.flatnonzero(~(np.diff(seconds) >= 0.0))):
        raise LogError(f'{path}: {layout.time.name} goes back, or is NaN, at row {back[0] + 2}')
    stamps, n = np.round(1e9 * seconds).astype(np.int64), len(seconds)
    one = layout.imus[_named('IMU', 'imu', imu, list(layout.imus))]
    raw = layout.ft_sensors[_named('FT sensor', 'ft', ft, list(layout.ft_sensors))]
    turning = np.full((n, 3), np.nan) if one.gyroscope is None else one.gyroscope.read(table, 3, n)
    motion = np.hstack([one.accelerometer.read(table, 3, n), turning])
    return Stream('', stamps, raw.read(table, 6, n)), Stream('', stamps, motion)


def _named(kind: str, argument: str, name: str, known: Sequence[str]) -> str:
    """Return a known name, the only one where none is given."""
    if not name and len(known) == 1:
        return known[0]
    if not known:
        raise ConfigError(f'no {kind} is configured')
    if not name:
        expected = ', '.join(known)
        raise CallError(f"'{argument}' is empty, expected one of {expected}", about=(argument,))
    if name not in known:
        raise NameNotFound(kind, name, known, f"'{argument}' names '{name}'")
    return name


def pair_on_robot(robot: Robot, settings: EstimatorSettings, ft: str, imu: str) -> SensorPair:
    """Return a robot's FT sensor and an IMU on the tool beyond it."""
    fts = {sensor.name: sensor for sensor in robot.ft_sensors}
    imus = {one.name: one for one in robot.imus}
    sensor = fts[_named('FT sensor', 'ft', ft, list(fts))]
    source = imus[_named('IMU', 'imu', imu, list(imus))]
    if source.link != sensor.child:
        link, carried = (robot.link_names[k] for k in (source.link, sensor.child))
        raise ConfigError(f"IMU '{imu}' is on {link}, FT sensor '{ft}' carries {carried}")
    of_ft, of_imu = settings.ft_of(ft), settings.imu_of(imu)
    return SensorPair(
        of_ft.topic, of_imu.topic, inverse_pose(sensor.child_H_sensor) @ source.L_H_S,
        sensor.direction, of_imu.time_offset - of_ft.time_offset,
        accepted_frame_ids(settings, robot, sensor), accepted_frame_ids(settings, robot, source),
    )  # fmt: skip


def read_tool_log(
    bag: Path,
    pair: SensorPair,
    time_range: TimeRange,
    calibration: SensorCalibration,
    imu_offset: Sequence[float] = (0.0, 0.0, 0.0),
) -> ToolLog:
    """Read the motion of a tool from a bag; imu_offset [m/s^2]."""
    if calibration.temperature_coefficients.any():
        raise ConfigError('the sensor has temperature coefficients, which are not used here')
    streams = [one.without_frozen(FROZEN_AFTER) for one in pair.read(bag)]
    origin, found = int(streams[0].stamps_ns[0]), []
    for stream in streams:
        times = (stream.stamps_ns - origin) / 1e9
        kept = time_range.mask(times)
        if not kept.any():
            spans = f'they span {times[0]:.2f} s to {times[-1]:.2f} s'
            part = f'{time_range.start} s to {time_range.stop} s'
            raise LogError(f"no message of '{stream.topic}' lies in {part}: {spans}")
        found += [times[kept], stream.values[kept]]
    ft_times, wrenches, imu_times, values = found
    motion = ToolMotion(
        ft_times, wrenches @ calibration.matrix.T, imu_times + pair.imu_time_offset,
        values[:, :3] - np.asarray(imu_offset),
        None if np.isnan(values[:, 3:]).all() else values[:, 3:], pair.sensor_H_imu,
    )  # fmt: skip
    return ToolLog(motion, origin)
