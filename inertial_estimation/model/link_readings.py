# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What sensors on a moving link read: from the motion of the link to that of the sensor [T 4.2-4.4].

S is the frame of a sensor, L that of the link that carries it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.model.arguments import stacked

Array = NDArray[np.float64]


def gyroscope(angular_velocity: Array, L_H_S: Array) -> Array:
    """
    Return what a gyroscope on a link reads [T 4.3, 4.4].

    angular_velocity (..., 3) [rad/s]; L_H_S (4, 4) [m]; returns (..., 3) [rad/s].
    """
    L_R_S = stacked('L_H_S', L_H_S, 4, 4)[:3, :3]
    return np.asarray(stacked('angular_velocity', angular_velocity, 3) @ L_R_S)


def accelerometer(angular_velocity: Array, proper_acceleration: Array, L_H_S: Array) -> Array:
    """
    Return what an accelerometer on a link reads [T 4.2]: (4.11b) solved for the sensor.

    angular_velocity (..., 3) [rad/s]; proper_acceleration (..., 6) [m/s^2, rad/s^2]; L_H_S (4, 4)
    [m]; returns (..., 3) [m/s^2].
    """
    L_H_S = stacked('L_H_S', L_H_S, 4, 4)
    angular_velocity = stacked('angular_velocity', angular_velocity, 3)
    proper_acceleration = stacked('proper_acceleration', proper_acceleration, 6)
    arm, rate = L_H_S[:3, 3], proper_acceleration[..., 3:]
    turning = np.cross(rate, arm) + np.cross(angular_velocity, np.cross(angular_velocity, arm))
    return np.asarray((proper_acceleration[..., :3] + turning) @ L_H_S[:3, :3], dtype=np.float64)
