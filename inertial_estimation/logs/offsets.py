# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Constant FT offsets of a replay, and predicted FT readings, from a part of a log.

``model``: with one contact, the model predicts what the sensors read [T section 4.7].
``torques``: estimated torques fit those that the robot reported; what they do not determine is
from the model if a support is named or a link is fixed, else configured. ``settings``: configured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.calibration.configured_estimator import build_estimator, noisy_sensors
from inertial_estimation.calibration.offset_from_model import (
    DEFAULT_LENGTH_SCALE,
    offset_from_model,
)
from inertial_estimation.calibration.sensor_fits import PredictedWrenches
from inertial_estimation.calibration.support_loads import support_loads
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CalibrationError, CallError, ConfigError, LogError
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import Finding
from inertial_estimation.logs.log import Log, Progress, TimeRange, changing, no_progress
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.sample import SampleBatch

SOURCES = ('settings', 'model', 'torques')
MAX_SAMPLES = 5000
"""Longer ranges are thinned: a constant needs no more."""


RANK_TOLERANCE = 1e-2
"""Singular value over the largest below which torques determine no combination of offsets."""
PRIOR_ROUND_OFF = 1e-6


class OffsetFit(NamedTuple):
    """Offsets and their residuals."""

    offsets: Array
    """Shape (n_fts, 6), [force; torque] in each sensor's frame [N, Nm]."""
    deviations: Array
    """
    Root mean square residuals, shape (m,): of each torque [Nm or N], or of each reading, six per
    sensor [N, Nm]; NaN: no data.
    """
    rank: int
    """Combinations of offsets that the data determine, of 6 n_fts."""
    n_samples: int
    assumed: Mask
    """Offsets that depend on assumed joints, shape (n_fts,)."""


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
        robot.frame(support, f"the support is '{support}'")
        progress('offsets from the model', 0.0)
        estimator = build_estimator(settings, robot, calibration=bare)
        try:
            found = offset_from_model(
                estimator, samples, [support], stillness=None, min_samples=1,
                # Wrenches do not show which channel of the readings is dead.
                noisy=np.zeros(n_fts, dtype=bool),
            )  # fmt: skip
        except CalibrationError as error:
            raise LogError(f'offset range: {error}') from error
        offsets = np.where(found.found[:, None], found.offsets, offsets)
        model = OffsetFit(
            offsets, found.spread.reshape(-1), 6 * int(found.found.sum()),
            int(found.n_samples.max()), found.assumed,
        )  # fmt: skip
        findings = found.findings
        if findings and request.source == 'model' and not request.support:
            raise LogError(
                f"'offset_range' names no part of the log in which '{support}' is the only "
                f'contact: {"; ".join(map(str, findings))}',
                about=('offset_range',),
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
        values, slopes = _affine(estimator, samples, measured, 'offsets from torques', progress)
        torques = offset_from_torques(
            samples.ft_readings, values, slopes,
            np.where(changing(reference), reference, np.nan), prior=offsets,
            prior_assumed=None if model is None else model.assumed,
        )  # fmt: skip
        offsets = torques.offsets
    return Offsets(request, calibration.with_offsets(offsets), support, model, torques, findings)


def offset_from_torques(
    readings: Array,
    torques: Array,
    slopes: Array,
    reference: Array,
    *,
    prior: Array | None = None,
    prior_assumed: Mask | None = None,
) -> OffsetFit:
    """
    Return the offsets with which estimated torques are closest to reference torques.

    readings (n, n_fts, 6) [N, Nm]; torques (n, n_joints): without readings [Nm or N]; slopes
    (n, n_joints, n_fts, 6): of torques by readings; reference (n, n_joints); prior (n_fts, 6):
    stays where the data do not determine an offset; prior_assumed (n_fts,).
    """
    n_fts = readings.shape[1]
    start = np.zeros((n_fts, 6)) if prior is None else prior
    residuals = _predicted_torques(torques, slopes, readings - start) - reference
    # A joint that depends on no sensor, or has no reference, determines nothing.
    used = np.isfinite(residuals) & (slopes != 0.0).any(axis=(2, 3))
    if not used.any():
        raise LogError('no sample of the range has both FT readings and reference torques')
    scale = np.tile(np.repeat([1.0, DEFAULT_LENGTH_SCALE], 3), n_fts)
    A = slopes[used].reshape(-1, 6 * n_fts) * scale
    U, sigma, Vt = np.linalg.svd(A, full_matrices=False)
    rank = int((sigma > RANK_TOLERANCE * sigma[0]).sum())
    change = scale * (Vt[:rank].T @ ((U.T @ residuals[used])[:rank] / sigma[:rank]))
    offsets = start + change.reshape(n_fts, 6)
    remaining = _predicted_torques(torques, slopes, readings - offsets) - reference
    remaining[~used] = np.nan
    pending = np.zeros(n_fts, dtype=bool) if prior_assumed is None else prior_assumed
    left = (np.eye(6 * n_fts) - Vt[:rank].T @ Vt[:rank])[:, np.repeat(pending, 6)]
    shares = np.abs(left).reshape(n_fts, 6, left.shape[1])
    finite = np.isfinite(remaining)
    squares = np.where(finite, remaining, 0.0) ** 2
    with np.errstate(invalid='ignore'):
        deviations = np.sqrt(squares.sum(axis=0) / finite.sum(axis=0))
    return OffsetFit(
        offsets=offsets,
        deviations=deviations,
        rank=rank,
        n_samples=int(used.any(axis=1).sum()),
        assumed=np.logical_or.reduce(shares > PRIOR_ROUND_OFF, axis=(1, 2)),
    )


def _predicted_torques(torques: Array, slopes: Array, wrenches: Array) -> Array:
    """Return torques with some wrenches; a sensor that a joint does not depend on may be NaN."""
    acts = slopes != 0.0
    shares = np.where(acts, slopes * np.where(acts, wrenches[:, None], 0.0), 0.0)
    total: Array = torques + shares.sum(axis=(2, 3))
    return total


def _affine(
    estimator: WrenchEstimator,
    samples: SampleBatch,
    pick: Callable[[WrenchEstimate], Array],
    what: str,
    progress: Progress,
) -> tuple[Array, Array]:
    """Return an estimate without readings (n, m), and its slopes by them (n, m, n_fts, 6)."""
    n_fts = samples.ft_readings.shape[1]
    readings = np.zeros_like(samples.ft_readings)
    zero = replace(samples, ft_readings=readings)
    values = pick(estimator.batch(zero)).copy()
    slopes = np.empty((*values.shape, n_fts, 6))
    for k in range(n_fts):
        for axis in range(6):
            readings[:, k, axis] = 1.0
            slopes[:, :, k, axis] = pick(estimator.batch(zero)) - values
            readings[:, k, axis] = 0.0
            progress(what, (6 * k + axis + 1) / (6 * n_fts))
    return values, slopes


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
    support = support or settings.fixed_link
    loads, _ = support_loads(
        build_estimator(settings, robot), samples, [support], DEFAULT_LENGTH_SCALE
    )
    if not np.isfinite(samples.ft_readings - loads.readings).all(axis=2).any():
        recording.require_derivatives()
    return PredictedWrenches(
        samples, part.times, loads.readings, loads.assumed, loads.sides, support, noise,
        noisy_sensors(settings, robot),
    )  # fmt: skip
