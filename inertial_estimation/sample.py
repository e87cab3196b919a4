# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Readings of all sensors at one instant, and over a whole log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError


class SensorState(IntEnum):
    """Origin of the values of one joint or sensor."""

    FRESH = 0
    """Received, and not older than its limit."""
    ASSUMED = 1
    """Not reported; a configured constant stands in."""
    ABSENT = 2
    """Never received."""
    STALE = 3
    """Received once, but older than its limit."""
    FROZEN = 4
    """Bit-equal values for longer than a live sensor sends them."""
    INVALID = 5
    """The newest value holds NaN or infinity."""
    WARMING = 6
    """
    The newest value is known, a filtered derivative is not.

    The filter's window is not filled yet, or still holds NaN. A window that is too short for the
    rate of the stream never fills.
    """
    PARTIAL = 7
    """
    The newest message of an IMU leaves out the angular velocity or the acceleration; the other one
    is used. An IMU that measures only one of them by the settings is fresh.
    """


class Sample(NamedTuple):
    """
    One instant of a robot.

    Rows follow ``robot.joint_names``, ``robot.imus`` and ``robot.ft_sensors``. NaN is an unknown
    value; results that depend on it are NaN, and no others.

    No array is left out where it is empty: a robot with a fixed link has no IMU by default, and
    its three IMU arrays have shape (0, 3). A robot without FT sensor has readings of shape (0, 6).

    The estimator reads the numbers: a value that must not be used has to be NaN. The states give
    the reason for reports; of them the estimator reads only ``ASSUMED`` in `joint_states`.
    """

    stamp_ns: int
    """Stamp of the joint state that triggered the sample [ns]."""
    positions: Array
    """Joint positions, shape (n_joints,) [rad or m]."""
    velocities: Array
    """Joint velocities, shape (n_joints,) [rad/s or m/s]."""
    accelerations: Array
    """Joint accelerations, shape (n_joints,) [rad/s^2 or m/s^2]."""
    angular_velocities: Array
    """
    Angular velocity of each IMU in its own axes, shape (n_imus, 3) [rad/s].

    NaN for an IMU that does not measure it, or leaves it out.
    """
    proper_accelerations: Array
    """Acceleration minus gravity of each IMU's origin in its own axes, (n_imus, 3) [m/s^2]."""
    angular_accelerations: Array
    """Angular acceleration of each IMU in its own axes, shape (n_imus, 3) [rad/s^2]."""
    ft_readings: Array
    """Reading of each FT sensor before calibration, (n_fts, 6), [force; torque] [N, Nm]."""
    joint_states: NDArray[np.uint8] | None = None
    """`SensorState` of each joint, shape (n_joints,); None: all fresh where finite."""
    imu_states: NDArray[np.uint8] | None = None
    """`SensorState` of each IMU, shape (n_imus,), for reports; None: not known."""
    ft_states: NDArray[np.uint8] | None = None
    """`SensorState` of each FT sensor, shape (n_fts,), for reports; None: not known."""
    efforts: Array | None = None
    """Joint torques that the robot reports, shape (n_joints,) [Nm or N], if any."""
    directions: Array | None = None
    """
    Direction of motion of each joint from -1 to 1, filtered as `efforts` are, (n_joints,); None:
    the sign of the velocity.
    """
    ft_temperatures: Array | None = None
    """
    Temperature of each FT sensor, shape (n_fts,) [degrees Celsius]; NaN, or None for all: not
    known, as for calibrations without temperature coefficients.
    """


@dataclass(frozen=True, slots=True)
class SampleBatch:
    """
    Many samples: the fields of `Sample`, each with one leading axis for the instants.

    The arrays are taken as they are (no copy); ``batch[k]`` gives one `Sample` of views.
    """

    stamp_ns: NDArray[np.int64]
    positions: Array
    velocities: Array
    accelerations: Array
    angular_velocities: Array
    proper_accelerations: Array
    angular_accelerations: Array
    ft_readings: Array
    joint_states: NDArray[np.uint8] | None = None
    imu_states: NDArray[np.uint8] | None = None
    ft_states: NDArray[np.uint8] | None = None
    efforts: Array | None = None
    directions: Array | None = None
    ft_temperatures: Array | None = None

    @classmethod
    def stack(cls, samples: Sequence[Sample]) -> SampleBatch:
        """
        Stack samples along a new leading axis.

        Parameters
        ----------
        samples : sequence of Sample
            At least one; an optional field is kept when every sample has it.

        Returns
        -------
        SampleBatch
            Copies of the samples' arrays.

        Raises
        ------
        ModelError
            If there is no sample.
        ValueError
            If their arrays have different shapes.

        """
        if not samples:
            raise ModelError("'samples' holds no sample")
        columns: Iterator[tuple[Any, ...]] = zip(*samples, strict=True)
        return cls(*(None if any(v is None for v in vs) else np.array(vs) for vs in columns))  # type: ignore[arg-type]

    def take(self, rows: slice | NDArray[np.intp]) -> SampleBatch:
        """
        Return some of the instants.

        Parameters
        ----------
        rows : slice or ndarray of int
            The instants to take, views for a slice and copies otherwise.

        Returns
        -------
        SampleBatch

        """
        return SampleBatch(*self._at(rows))

    def __len__(self) -> int:
        return len(self.stamp_ns)

    def __getitem__(self, index: int) -> Sample:
        stamp, *arrays = self._at(index)
        return Sample(int(stamp), *arrays)

    def _at(self, rows: int | slice | NDArray[np.intp]) -> Iterator[Any]:
        for name in Sample._fields:
            value = getattr(self, name)
            yield None if value is None else value[rows]
