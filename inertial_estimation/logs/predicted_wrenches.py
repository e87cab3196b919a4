# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Predicted FT readings of a log in which one contact carries the robot [T section 4.7]."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from inertial_estimation.calibration.configured_estimator import build_estimator, noisy_sensors
from inertial_estimation.calibration.sensor_fits import PredictedWrenches
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CallError
from inertial_estimation.logs.log import Log
from inertial_estimation.model.robot import Robot

MAX_SAMPLES = 5000
"""Longer logs are thinned."""


def in_hindsight(settings: EstimatorSettings) -> EstimatorSettings:
    """Return settings that filter readings and motion alike, without delay."""
    if settings.filter.kind != 'savitzky_golay':
        return settings
    whole = replace(settings.filter, delay=0.5 * settings.filter.window, smooth_readings=True)
    return replace(settings, filter=whole)


def predict_wrenches(
    recording: Log, robot: Robot, settings: EstimatorSettings, support: str = ''
) -> PredictedWrenches:
    """Predict FT readings from motion and inertial parameters; support: default the fixed link."""
    if not (support or settings.fixed_link):
        raise CallError("name 'support', or give a fixed_link", about=('support',))
    part = recording.thinned(MAX_SAMPLES)
    samples = part.without_frozen(sensor.name for sensor in robot.ft_sensors)
    noise = np.array([settings.ft_of(one.name).noise for one in robot.ft_sensors]).reshape(-1, 6)
    if settings.filter.smooth_readings and len(recording.times) > 1:
        count = settings.filter.window / float(np.median(np.diff(recording.times)))
        # Variance of the middle of a cubic polynomial over many samples, times their number.
        noise = noise * min(1.0, np.sqrt(9.0 / 4.0 / count))
    predicted = PredictedWrenches.of(
        build_estimator(settings, robot), samples, part.times, support or settings.fixed_link,
        length_scale=settings.length_scale, noise=noise, noisy=noisy_sensors(settings, robot),
    )  # fmt: skip
    if not np.isfinite(samples.ft_readings - predicted.wrenches).all(axis=2).any():
        recording.require_derivatives()
    return predicted
