# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Readings of all sensors at one instant, and over a whole log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError, ShapeError

Array = NDArray[np.float64]


class SensorState(IntEnum):
    """How the values of one joint or sensor came about."""

    FRESH = 0
    """Received, and not older than its limit."""
    ASSUMED = 1
    """Nobody reports it; a configured constant stands in."""
    ABSENT = 2
    """Never received."""
    STALE = 3
    """Received once, but older than its limit."""
    FROZEN = 4
    """Stamps go on while the values stay bit-equal for longer than a live sensor would."""
    INVALID = 5
    """The newest value holds NaN or infinity."""
    WARMING = 6
    """
    The newest value is there, a derivative that is filtered is not.

    The filter's window is not filled yet, or still holds NaN. A window that is too short for the
    rate of the stream never fills.
    """
    PARTIAL = 7
    """
    The newest message of an IMU leaves out the angular velocity or the acceleration; the other one
    is used. Not said of an IMU that is known to measure only one of them.
    """


class Sample(NamedTuple):
    """
    One instant of a robot.

    Rows follow ``robot.joint_names``, ``robot.imus`` and ``robot.ft_sensors``. NaN says that a
    value is not there; whatever depends on it is left out of the result, and nothing else.

    No array is left out where there is nothing to put into it: a robot with a fixed link has no
    IMU, unless one is asked for, and its three IMU arrays have shape (0, 3), as
    ``np.empty((0, 3))``. A robot without FT sensor has readings of shape (0, 6).

    The estimator goes by the numbers: a value that is not to be used must be NaN. The states say
    why it is; they are for reports, and of them the estimator reads ``ASSUMED`` in `joint_states`
    only. A finite reading is used whatever its state says.
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

    An IMU that measures only one of the two quantities, or leaves one out for now, has three NaN
    for the other.
    """
    proper_accelerations: Array
    """Acceleration minus gravity of each IMU's origin in its own axes, (n_imus, 3) [m/s^2]."""
    angular_accelerations: Array
    """Angular acceleration of each IMU in its own axes, shape (n_imus, 3) [rad/s^2]."""
    ft_readings: Array
    """Reading of each FT sensor before calibration, (n_fts, 6), [force; torque] [N, Nm]."""
    joint_states: NDArray[np.uint8] | None = None
    """
    `SensorState` of each joint, shape (n_joints,); None: all fresh where finite.

    What rests on a joint that is ``ASSUMED`` is marked; the other states are for reports.
    """
    imu_states: NDArray[np.uint8] | None = None
    """`SensorState` of each IMU, shape (n_imus,), for reports only; None: nothing to report."""
    ft_states: NDArray[np.uint8] | None = None
    """`SensorState` of each FT sensor, shape (n_fts,), for reports only; None: as above."""
    efforts: Array | None = None
    """Joint torques that the robot itself reports, shape (n_joints,) [Nm or N], if any."""
    directions: Array | None = None
    """
    Direction of each joint's motion from -1 to 1 as a filter leaves it that `efforts` went
    through too, shape (n_joints,); None: the sign of the velocity.
    """
    ft_temperatures: Array | None = None
    """
    Temperature of each FT sensor, shape (n_fts,) [degrees Celsius]; NaN, or None for all of them:
    not known, which matters only where a calibration has temperature coefficients.
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
            If there is no sample, or something else.
        ShapeError
            If their arrays have different shapes.

        """
        if isinstance(samples, Sample) or not isinstance(samples, Iterable):
            raise ModelError(f"'samples' is a {type(samples).__name__}, expected a list of Sample")
        given = tuple(samples)
        if not given:
            raise ModelError('a batch needs at least one sample')
        for sample in given:
            if not isinstance(sample, Sample):
                raise ModelError(f"'samples' holds a {type(sample).__name__}, expected Sample")
        columns = {field.name: [getattr(s, field.name) for s in given] for field in fields(cls)}
        return cls(*(_stacked(name, values) for name, values in columns.items()))

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
        """Return the number of instants."""
        return len(self.stamp_ns)

    def __getitem__(self, index: int) -> Sample:
        """Return one instant as views into the batch."""
        stamp, *arrays = self._at(index)
        return Sample(int(stamp), *arrays)

    def _at(self, rows: int | slice | NDArray[np.intp]) -> Iterator[Any]:
        """Yield the rows of each field."""
        for field in fields(self):
            value = getattr(self, field.name)
            yield None if value is None else value[rows]


def _stacked(name: str, values: list[Any]) -> Any:
    """Return one field of many samples; None where one of them lacks it."""
    if any(value is None for value in values):
        return None
    shapes = [np.shape(value) for value in values]
    for shape in shapes:
        if shape != shapes[0]:
            raise ShapeError(name, shapes[0], shape, 'that of the first sample')
    return np.array(values)
