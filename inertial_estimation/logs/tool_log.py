# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A tool's FT sensor and IMU in a bag, and the calibration that comes of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.calibration_file import Provenance, SensorCalibration
from inertial_estimation.calibration.tool import ToolFit, ToolMotion
from inertial_estimation.errors import ConfigError, LogError
from inertial_estimation.logs.raw_streams import RawStream, read_imu_topic, read_wrench_topic
from inertial_estimation.logs.recording import TimeRange
from inertial_estimation.model.urdf import pose_from_xyz_rpy

Array = NDArray[np.float64]


class ToolLog(NamedTuple):
    """What was read."""

    motion: ToolMotion
    origin_ns: int
    """Stamp that times are counted from [ns]."""


def read_tool_log(
    bag: str | Path,
    ft_topic: str,
    imu_topic: str,
    imu_pose: Sequence[float],
    imu_offset: Sequence[float],
    time_range: TimeRange,
    calibration: SensorCalibration,
) -> ToolLog:
    """
    Read what an FT sensor and an IMU beside it say.

    Parameters
    ----------
    bag : str or Path
        Folder or file.
    ft_topic, imu_topic : str
        Of type WrenchStamped and Imu.
    imu_pose : sequence of float
        x y z roll pitch yaw of the IMU in the sensor frame [m, rad].
    imu_offset : sequence of float
        Subtracted from the acceleration in the IMU's axes [m/s^2].
    time_range : TimeRange
        What is used, in seconds after the first FT message.
    calibration : SensorCalibration
        Whose matrix makes wrenches of readings.

    Returns
    -------
    ToolLog

    Raises
    ------
    LogError, NameNotFound
        If the bag cannot be read, lacks a topic, or holds nothing in the range.
    ConfigError
        If the sensor has temperature coefficients: this way reads no temperatures.

    """
    if calibration.temperature_coefficients.any():
        raise ConfigError(
            'the sensor has temperature coefficients, and no temperatures are read here: write '
            'to another calibration file'
        )
    ft, imu = read_wrench_topic(bag, ft_topic), read_imu_topic(bag, imu_topic)
    origin = int(ft.stamps_ns[0])
    ft_times, ft_kept = _within(ft, origin, time_range, ft_topic)
    imu_times, imu_kept = _within(imu, origin, time_range, imu_topic)
    rates = imu.values[imu_kept, 3:]
    motion = ToolMotion(
        ft_times,
        ft.values[ft_kept] @ calibration.matrix.T,
        imu_times,
        imu.values[imu_kept, :3] - np.asarray(imu_offset, dtype=np.float64),
        None if np.isnan(rates).all() else rates,
        pose_from_xyz_rpy(imu_pose[:3], imu_pose[3:]),
    )
    return ToolLog(motion, origin)


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


def tool_calibration(fit: ToolFit, before: SensorCalibration, date: str) -> SensorCalibration:
    """
    Return what a sensor is calibrated with from now on.

    Parameters
    ----------
    fit : ToolFit
        What was found.
    before : SensorCalibration
        What it was calibrated with.
    date : str
        When the log was recorded, ISO 8601.

    Returns
    -------
    SensorCalibration
        With the offset; the tool itself belongs into the robot's description.

    """
    centre = ', '.join(f'{x:.4f}' for x in fit.centre)
    step = Provenance(
        method='offset from free motion of a tool',
        date=date,
        n_samples=int(fit.used.sum()),
        spread=tuple(float(x) for x in fit.rms),
        notes=(f'with a tool of {fit.mass:.4f} kg at ({centre}) m',),
    )
    return SensorCalibration(
        before.matrix,
        fit.offset,
        before.temperature_coefficients,
        before.reference_temperature,
        (*before.provenance, step),
    )
