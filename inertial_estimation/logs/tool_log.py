# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""FT sensor and IMU of a tool in a bag."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.calibration_file import SensorCalibration
from inertial_estimation.calibration.tool_solution import ToolMotion
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, LogError, NameNotFound
from inertial_estimation.logs.bag import resolve
from inertial_estimation.logs.log import TimeRange
from inertial_estimation.logs.raw_streams import RawStream, read_topic
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import inverse_pose
from inertial_estimation.signals.router import accepted_frame_ids

Array = NDArray[np.float64]


class ToolSource(NamedTuple):
    """Where a tool's FT sensor and IMU are heard, and how they sit."""

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


class ToolLog(NamedTuple):
    """What was read."""

    motion: ToolMotion
    origin_ns: int
    """Stamp that times are counted from [ns]."""


def source_on_robot(robot: Robot, settings: EstimatorSettings, ft: str, imu: str) -> ToolSource:
    """Return where a robot's FT sensor and an IMU on the tool are heard."""
    fts = {sensor.name: sensor for sensor in robot.ft_sensors}
    imus = {one.name: one for one in robot.imus}
    if ft not in fts:
        raise NameNotFound('FT sensor', ft, fts, f"'ft' names '{ft}'")
    if imu not in imus:
        raise NameNotFound('IMU', imu, imus, f"'imu' names '{imu}'")
    sensor, source = fts[ft], imus[imu]
    if source.link != sensor.child:
        raise ConfigError(
            f"IMU '{imu}' is on {robot.link_names[source.link]}, which is not what FT sensor "
            f"'{ft}' carries, {robot.link_names[sensor.child]}: take an IMU that is fixed to it"
        )
    said, heard = settings.ft_of(ft), settings.imu_of(imu)
    return ToolSource(
        resolve(said.topic),
        resolve(heard.topic),
        inverse_pose(sensor.child_H_sensor) @ source.L_H_S,
        sensor.direction,
        heard.time_offset - said.time_offset,
        frozenset(accepted_frame_ids(settings, robot, sensor)),
        frozenset(accepted_frame_ids(settings, robot, source)),
    )


def read_tool_log(
    bag: str | Path,
    source: ToolSource,
    time_range: TimeRange,
    calibration: SensorCalibration,
    imu_offset: Sequence[float] = (0.0, 0.0, 0.0),
) -> ToolLog:
    """
    Read what an FT sensor and an IMU beside it say.

    imu_offset [m/s^2].
    """
    if calibration.temperature_coefficients.any():
        raise ConfigError(
            'the sensor has temperature coefficients, and no temperatures are read here: start '
            'from a calibration file without them'
        )
    ft, imu = read_topic(bag, source.ft_topic, 'ft'), read_topic(bag, source.imu_topic, 'imu')
    _check_frames(source.ft_topic, ft, source.ft_frames)
    _check_frames(source.imu_topic, imu, source.imu_frames)
    origin = int(ft.stamps_ns[0])
    ft_times, ft_kept = _within(ft, origin, time_range, source.ft_topic)
    imu_times, imu_kept = _within(imu, origin, time_range, source.imu_topic)
    rates = imu.values[imu_kept, 3:]
    motion = ToolMotion(
        ft_times,
        ft.values[ft_kept] @ calibration.matrix.T,
        imu_times + source.imu_time_offset,
        imu.values[imu_kept, :3] - np.asarray(imu_offset, dtype=np.float64),
        None if np.isnan(rates).all() else rates,
        source.sensor_H_imu,
    )
    return ToolLog(motion, origin)


def _check_frames(topic: str, stream: RawStream, frames: frozenset[str]) -> None:
    """Raise if messages are of another frame than expected."""
    others = sorted(stream.frame_ids - frames)
    if frames and others:
        raise LogError(
            f"topic '{topic}' names frame '{others[0]}', expected {' or '.join(sorted(frames))}"
        )


def _within(
    stream: RawStream, origin_ns: int, time_range: TimeRange, topic: str
) -> tuple[Array, NDArray[np.intp]]:
    """Return the times of a range, and its rows."""
    times = stream.times(origin_ns)
    kept = np.flatnonzero(time_range.mask(times))
    if not len(kept):
        raise LogError(
            f"no message of '{topic}' lies between {time_range.start} s and {time_range.stop} s: "
            f'they span {times.min():.2f} s to {times.max():.2f} s'
        )
    return times[kept], kept
