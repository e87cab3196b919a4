# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What the FT sensors of a log should say while one contact carries the robot [T section 4.7].

Off line nothing need be at once: derivatives are those of the middle of their window, and readings
go through the same filter, so that what moves fast is missed in both alike.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.building import build_estimator, noisy_sensors
from inertial_estimation.calibration.dead_channels import constant_channels, never_changes
from inertial_estimation.calibration.silent_sensors import DEAD
from inertial_estimation.calibration.support_loads import free_estimate, support_loads
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CallError, LogError
from inertial_estimation.logs.offsets import MAX_SAMPLES
from inertial_estimation.logs.recording import (
    Progress,
    Recording,
    no_progress,
    require_derivatives,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Array, SampleBatch

Mask = NDArray[np.bool_]


class Predicted(NamedTuple):
    """Readings and predictions of all FT sensors over a log."""

    samples: SampleBatch
    """With raw readings, NaN where a sensor repeated itself."""
    times: Array
    """Of them, as the recording counts, shape (n,) [s]."""
    wrenches: Array
    """What each sensor should say, (n, n_fts, 6), in its frame, NaN where unknown [N, Nm]."""
    assumed: Mask
    """Which predictions rest on joints that nobody reports, shape (n_fts,)."""
    sides: Mask
    """Which submodels are on each sensor's side without the support, (n_fts, n_submodels)."""
    support: str
    """Frame of the contact that carries the robot."""
    noise: Array
    """Standard deviation of the readings as they are here, filtered or not, (n_fts, 6) [N, Nm]."""
    noisy: Mask
    """Sensors whose channels all change, as noise of real ones does, shape (n_fts,)."""

    def require_live(self, sensor: int, name: str) -> None:
        """Refuse a sensor with a channel that never changes while others do."""
        dead = constant_channels(self.samples.ft_readings[:, sensor])
        if self.noisy[sensor] and dead.any():
            raise LogError(f'{name}: {never_changes(dead)}: {DEAD}')

    def within(self, sensor: int) -> tuple[int, ...]:
        """
        Return the sensors whose side lies within that of one, which feels all that they feel.
        """
        inside = ~(self.sides & ~self.sides[sensor]).any(axis=1)
        return tuple(int(k) for k in np.flatnonzero(inside) if k != sensor)


def in_hindsight(settings: EstimatorSettings) -> EstimatorSettings:
    """Return settings for a log of which all is known."""
    if settings.derivative_filter != 'savitzky_golay':
        return settings
    return replace(settings, filter_delay=0.5 * settings.derivative_window, smooth_readings=True)


def predict_wrenches(
    recording: Recording,
    robot: Robot,
    settings: EstimatorSettings,
    support: str = '',
    progress: Progress = no_progress,
) -> Predicted:
    """Predict what the FT sensors say from the motion and the masses alone."""
    frame = support or settings.fixed_link
    if not frame:
        raise CallError(
            'what the FT sensors should say is known if one contact carries the robot: name its '
            "frame with 'support', or give a fixed_link",
            about=('support',),
        )
    part = recording.thinned(MAX_SAMPLES)
    samples = part.without_frozen(sensor.name for sensor in robot.ft_sensors)
    progress('predicting', 0.0)
    free = free_estimate(build_estimator(settings, robot), samples)
    loads = support_loads(robot, samples, free, [frame], settings.length_scale)
    progress('predicting', 1.0)
    if not np.isfinite(samples.ft_readings - loads.readings).all(axis=2).any():
        require_derivatives(recording)
    return Predicted(
        samples=samples,
        times=part.times,
        wrenches=loads.readings,
        assumed=loads.assumed,
        sides=loads.sides,
        support=frame,
        noise=_noise(recording, robot, settings),
        noisy=noisy_sensors(settings, robot),
    )


def _noise(recording: Recording, robot: Robot, settings: EstimatorSettings) -> Array:
    """Return the noise of wrenches that the settings state, behind the filter, (n_fts, 6)."""
    stated = np.array([settings.ft_of(sensor.name).noise for sensor in robot.ft_sensors])
    stated = stated.reshape(-1, 6)
    if not settings.smooth_readings or len(recording.times) < 2:
        return stated
    count = settings.derivative_window / float(np.median(np.diff(recording.times)))
    # Variance of the value in the middle of a polynomial over many samples, times their number.
    variance = 9.0 / 4.0 if settings.derivative_order < 4 else 225.0 / 64.0
    found: Array = stated * min(1.0, np.sqrt(variance / count))
    return found
