# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the sensor messages say, as numbers and names."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class JointReading(NamedTuple):
    """What one JointState message says; an empty array where it says nothing."""

    stamp_ns: int
    """Stamp of the header [ns]."""
    names: tuple[str, ...]
    """Joint names; the same object as long as the layout stays the same."""
    positions: Array
    """Joint positions, shape (n,) or (0,) [rad or m]."""
    velocities: Array
    """Joint velocities, shape (n,) or (0,) [rad/s or m/s]."""
    efforts: Array
    """Joint torques or forces, shape (n,) or (0,) [Nm or N]."""


class WrenchReading(NamedTuple):
    """What one WrenchStamped message says."""

    stamp_ns: int
    """Stamp of the header [ns]."""
    frame_id: str
    """Frame of the header."""
    wrench: Array
    """Wrench in and about the origin of ``frame_id``, shape (6,), [force; torque] [N, Nm]."""


class ImuReading(NamedTuple):
    """What one Imu message says; NaN where covariance[0] is -1 (REP 145: not measured)."""

    stamp_ns: int
    """Stamp of the header [ns]."""
    frame_id: str
    """Frame of the header."""
    angular_velocity: Array
    """Angular velocity in ``frame_id``, shape (3,) [rad/s]."""
    linear_acceleration: Array
    """Proper acceleration in ``frame_id``, shape (3,) [m/s^2]."""
    declares_nothing: bool = False
    """Whether both covariances begin with -1: by its own word it measures nothing."""


class OrientationReading(NamedTuple):
    """What one Imu message says of its orientation."""

    stamp_ns: int
    """Stamp of the header [ns]."""
    quaternion: Array
    """
    Orientation of the IMU in its reference frame, shape (4,), x y z w.

    NaN where covariance[0] is -1 (REP 145: not measured), or all four are zero.
    """
    variances: Array
    """Diagonal of its covariance, shape (3,) [rad^2]; zero: not stated."""


class PointReading(NamedTuple):
    """What one PointStamped message says."""

    stamp_ns: int
    """Stamp of the header [ns]."""
    frame_id: str
    """Frame of the header."""
    point: Array
    """Point in ``frame_id``, shape (3,) [m]."""


class TemperatureReading(NamedTuple):
    """What one Temperature message says."""

    stamp_ns: int
    """Stamp of the header [ns]."""
    frame_id: str
    """Frame of the header."""
    celsius: float
    """[degrees Celsius]."""


def absent_if(absent: bool, values: Array) -> Array:
    """Return NaN in place of values that the message declares as not measured."""
    return np.full(values.shape, np.nan) if absent else values
