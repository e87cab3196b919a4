# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Why FT sensors tell no offset, each by itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.dead_channels import constant_channels, never_changes
from inertial_estimation.calibration.temperature import implausible
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.sample import SampleBatch, SensorState

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

STATES = {
    SensorState.ABSENT: 'nothing was received of it: look at its topic',
    SensorState.STALE: "its readings are older than 'max_age': look at its stamps",
    SensorState.FROZEN: 'its readings are frozen, the same to the last digit all the time: '
    'restart its driver',
    SensorState.INVALID: 'its readings hold NaN or infinity: look at its driver',
}
"""What is said of readings that are not there."""
NO_READING = 'it has no reading: look at its topic and stamps'
NO_TEMPERATURE = (
    'no temperature of it is known, which its calibration needs: look at its '
    "'temperature_topic' and 'temperature_max_age'"
)
NO_PREDICTION = (
    'what it should read is not known, as a joint or an IMU is missing or frozen: look at their '
    'topics and stamps'
)
DEAD = (
    "look at the sensor's cable and driver; only of a simulated sensor without noise, whose "
    "'frozen_after' is 0, it is taken for true"
)


def why_silent(
    samples: SampleBatch, calibration: FtCalibration, predicted: Array, noisy: Mask
) -> tuple[str, ...]:
    """
    Say why sensors tell no offset.

    predicted (n, n_fts, 6) [N, Nm]; noisy (n_fts,).
    """
    return tuple(
        _why(samples, k, bool(calibration.needs_temperature[k]), predicted[:, k], bool(noisy[k]))
        for k in range(samples.ft_readings.shape[1])
    )


def not_found(
    names: Sequence[str],
    why: Sequence[str],
    found: Mask,
    counts: NDArray[np.int64],
    least: int,
) -> dict[str, str]:
    """
    Say why offsets were not found of sensors that were all asked for.

    found (n_fts,); counts (n_fts,).
    """
    return {
        name: why[k] or f'{counts[k]} instants can be used, {least} are needed'
        for k, name in enumerate(names)
        if not found[k]
    }


def _why(samples: SampleBatch, k: int, is_thermal: bool, predicted: Array, is_noisy: bool) -> str:
    """Say why one sensor tells no offset."""
    reads: Mask = np.logical_and.reduce(np.isfinite(samples.ft_readings[:, k]), axis=1)
    if not reads.any():
        return _state(samples, k)
    if is_thermal:
        given = samples.ft_temperatures
        warmth = np.full(len(reads), np.nan) if given is None else given[:, k]
        told = warmth[reads & np.isfinite(warmth)]
        if not len(told):
            return NO_TEMPERATURE
        if said := implausible(told):
            return said
    if not np.isfinite(predicted[reads]).all(axis=1).any():
        return NO_PREDICTION
    dead = constant_channels(samples.ft_readings[:, k])
    if is_noisy and dead.any():
        return f'{never_changes(dead)}: {DEAD}'
    return ''


def _state(samples: SampleBatch, k: int) -> str:
    """Say why a sensor has no reading."""
    if samples.ft_states is None:
        return NO_READING
    states, counts = np.unique(samples.ft_states[:, k], return_counts=True)
    state = SensorState(int(states[counts.argmax()]))
    # A log takes repeated readings out that were fresh when they came.
    return STATES.get(state, STATES[SensorState.FROZEN])
