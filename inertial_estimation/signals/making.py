# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The streams that the settings ask for: with or without filter, of now or of the past."""

from __future__ import annotations

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.signals.delays import DelayedJointPart, DelayedSensorStream
from inertial_estimation.signals.derivatives import (
    Differentiator,
    gyroscope_differentiator,
    joint_differentiator,
    smoother,
)
from inertial_estimation.signals.imu_stream import ImuStream
from inertial_estimation.signals.joint_stream import Indices, JointPart
from inertial_estimation.signals.sensor_stream import SensorStream
from inertial_estimation.signals.temperature_stream import TemperatureStream


def delays(settings: EstimatorSettings) -> bool:
    """Tell whether samples are made of what lies in the past."""
    return bool(round(1e9 * settings.filter_delay)) or settings.smooth_readings


def make_ft_stream(settings: EstimatorSettings, name: str) -> SensorStream:
    """Return the stream of an FT sensor."""
    given = settings.ft_of(name)
    if not delays(settings):
        return SensorStream(name, given)
    smooth = settings.smooth_readings
    return DelayedSensorStream(
        name, given, smoother(settings) if smooth else None, derive=False, smooth=smooth
    )


def make_temperature_stream(settings: EstimatorSettings, name: str) -> TemperatureStream | None:
    """Return the stream of the temperature of an FT sensor."""
    given = settings.ft_of(name)
    return TemperatureStream(name, given) if given.temperature_topic else None


def make_imu_stream(settings: EstimatorSettings, name: str, measures: str) -> ImuStream:
    derive = settings.angular_acceleration_source == 'filter' and measures != 'accelerometer'
    smooth = settings.smooth_readings
    differentiator: Differentiator | None = None
    if smooth:
        differentiator = smoother(settings)
    elif derive:
        differentiator = gyroscope_differentiator(settings)
    given = settings.imu_of(name)
    if not delays(settings):
        return ImuStream(name, given, differentiator, measures)
    return DelayedSensorStream(
        name, given, differentiator, derive=derive, smooth=smooth, measures=measures
    )


def make_joint_part(settings: EstimatorSettings, name: str, rows: Indices) -> JointPart:
    """Return the stream of joints that one publisher reports together; rows (n,)."""
    differentiator: Differentiator | None = None
    if 'filter' in (settings.velocity_source, settings.acceleration_source):
        differentiator = joint_differentiator(settings, len(rows))
    if not delays(settings):
        return JointPart(name, rows, differentiator)
    return DelayedJointPart(name, rows, differentiator, settings.smooth_readings)
