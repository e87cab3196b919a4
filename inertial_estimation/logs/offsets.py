# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Constant FT offsets of a replay, from a part of the log.

``model``: with one contact, the model predicts what the sensors read [T section 4.7].
``torques``: estimated torques fit those that the robot reported; what they do not determine is
from the model if a support is named or a link is fixed, else configured. ``settings``: configured.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.calibration.offset_from_model import offset_from_model
from inertial_estimation.calibration.offset_from_torques import (
    OffsetFit,
    fit_of_model,
    offset_from_torques,
)
from inertial_estimation.calibration.second_supports import second_supports
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CalibrationError, ConfigError, LogError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.findings import Finding
from inertial_estimation.logs.affine import affine
from inertial_estimation.logs.comparison import changing
from inertial_estimation.logs.log import Log, Progress, TimeRange, no_progress
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.sample import Array

Mask = NDArray[np.bool_]
SOURCES = ('settings', 'model', 'torques')
MAX_SAMPLES = 5000
"""Longer ranges are thinned: a constant needs no more."""


@dataclass(frozen=True)
class OffsetRequest:
    """Source of the offsets."""

    source: str = 'settings'
    """One of `SOURCES`."""
    time_range: TimeRange = field(default_factory=TimeRange)
    """Part of the log that they are computed from."""
    support: str = ''
    """Frame of the only contact [T Assumption 4.3]; empty: the fixed link."""

    def __post_init__(self) -> None:
        """Check the source."""
        if self.source not in SOURCES:
            raise ConfigError(f"offsets from '{self.source}', expected {', '.join(SOURCES)}")


@dataclass(frozen=True)
class Offsets:
    """Calibration of a replay, and its origin."""

    request: OffsetRequest
    calibration: FtCalibration
    support: str = ''
    """Frame of the contact that is presumed to be the only one; empty: none."""
    model: OffsetFit | None = None
    """None: no support."""
    torques: OffsetFit | None = None
    """None unless they are the source."""
    findings: tuple[Finding, ...] = ()
    """Other contacts than the support."""

    @property
    def assumed(self) -> Mask:
        """Offsets that depend on assumed joints, shape (n_fts,)."""
        fit = self.torques or self.model
        return np.zeros(len(self.calibration.offsets), dtype=bool) if fit is None else fit.assumed


def compute_offsets(
    request: OffsetRequest,
    recording: Log,
    robot: Robot,
    settings: EstimatorSettings,
    progress: Progress = no_progress,
) -> Offsets:
    """Compute one constant offset per FT sensor."""
    configured = build_estimator(settings, robot)
    calibration = configured.calibration
    if request.source == 'settings':
        return Offsets(request, calibration)
    n_fts = len(robot.ft_sensors)
    part = recording.within(request.time_range).thinned(MAX_SAMPLES)
    samples = part.without_frozen(sensor.name for sensor in robot.ft_sensors)
    without = calibration.with_offsets(np.zeros_like(calibration.offsets))
    samples = replace(
        samples, ft_readings=without.apply(samples.ft_readings, samples.ft_temperatures)
    )
    bare, offsets = FtCalibration.identity(n_fts), calibration.offsets
    support = request.support or settings.fixed_link
    model = torques = None
    findings: tuple[Finding, ...] = ()
    if support:
        progress('offsets from the model', 0.0)
        alone = (Contact(support),)
        estimator = build_estimator(settings, robot, contacts=alone, calibration=bare)
        try:
            found = offset_from_model(
                estimator, samples, [support], stillness=None, min_samples=1,
                # Wrenches do not show which channel of the readings is dead.
                noisy=np.zeros(n_fts, dtype=bool),
            )  # fmt: skip
        except CalibrationError as error:
            raise LogError(f'offset range: {error}') from error
        model = fit_of_model(found, offsets)
        offsets = model.offsets
        estimator.set_calibration(bare.with_offsets(offsets))
        findings = tuple(second_supports(samples, estimator, configured.contacts))
        if findings and request.source == 'model' and not request.support:
            raise LogError(
                f'offset range: {support} is not the only contact: {"; ".join(map(str, findings))}'
            )
        progress('offsets from the model', 1.0)
    elif request.source == 'model':
        raise ConfigError("offsets from the model need 'supports' or a fixed_link",
                          about=('supports',))  # fmt: skip
    if request.source == 'torques':
        reference = samples.efforts
        if reference is None or not np.isfinite(reference).any():
            raise LogError('offsets from torques need efforts in the joint states, there are none')

        def measured(estimate: WrenchEstimate) -> Array:
            return np.where(estimate.torque_quality == 0, estimate.torques, np.nan)

        estimator = build_estimator(settings, robot, calibration=bare)
        values, slopes = affine(estimator, samples, measured, 'offsets from torques', progress)
        torques = offset_from_torques(
            samples.ft_readings, values, slopes,
            np.where(changing(reference), reference, np.nan), prior=offsets,
            prior_assumed=None if model is None else model.assumed,
        )  # fmt: skip
        offsets = torques.offsets
    return Offsets(request, calibration.with_offsets(offsets), support, model, torques, findings)
