# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Constant FT offsets of a replay, from a part of a log.

``model``: with one contact, the model predicts what the sensors read [T section 4.7].
``torques``: estimated torques fit those that the robot reported; what they do not determine is
from the model if a support is named or a link is fixed, else configured. ``settings``: configured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.calibration.offset_from_model import offset_from_model
from inertial_estimation.calibration.residual_statistics import SCALE
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CalibrationError, CallError, ConfigError, LogError
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import Finding, Level, finding, raise_errors
from inertial_estimation.logs.checks import urdf_limits
from inertial_estimation.logs.log import Log, Progress, TimeRange, no_progress
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

SOURCES = ('settings', 'model', 'torques')
MAX_SAMPLES = 5000
"""Longer ranges are thinned: a constant needs no more."""
RANK_TOLERANCE = 1e-2
"""Singular value over the largest below which torques determine no combination of offsets."""
PRIOR_ROUND_OFF = 1e-6


@dataclass(frozen=True)
class OffsetRequest:
    """Source of the offsets."""

    source: str = 'settings'
    """One of `SOURCES`."""
    time_range: TimeRange = field(default_factory=TimeRange)
    """Part of the log that they are computed from; by default the part that is estimated."""
    support: str = ''
    """Frame of the only contact [T Assumption 4.3]; empty: the fixed link."""

    def __post_init__(self) -> None:
        """Check the source."""
        if self.source not in SOURCES:
            raise ConfigError(f"offsets from '{self.source}', expected {', '.join(SOURCES)}")

    def support_of(self, robot: Robot, settings: EstimatorSettings) -> str:
        """Return the frame of the only contact; empty: none is needed."""
        support = self.support or settings.fixed_link
        if self.source == 'model' and not support:
            text = "'support' is empty, and no link is fixed"
            raise CallError(f'{text}: offsets from the model need one', about=('support',))
        if support:
            robot.frame(support, f"'support' names '{support}'")
        return support


@dataclass(frozen=True)
class Offsets:
    """Calibration of a replay, and its origin."""

    request: OffsetRequest
    calibration: FtCalibration
    assumed: Mask
    """Offsets that depend on assumed joints, shape (n_fts,)."""
    support: str = ''
    """Frame of the contact that is presumed to be the only one; empty: none."""
    findings: tuple[Finding, ...] = ()
    """Other contacts than the support."""


def compute_offsets(
    request: OffsetRequest,
    recording: Log | None,
    robot: Robot,
    settings: EstimatorSettings,
    progress: Progress = no_progress,
) -> Offsets:
    """Compute one constant offset per FT sensor."""
    configured = build_estimator(settings, robot)
    calibration = configured.calibration
    assumed = np.zeros(len(robot.ft_sensors), dtype=bool)
    if request.source == 'settings' or recording is None:
        return Offsets(request, calibration, assumed)
    support = request.support_of(robot, settings)
    part = recording.within(request.time_range).thinned(MAX_SAMPLES)
    samples = part.without_frozen()
    raise_errors(urdf_limits(robot, samples, ()))
    offsets, kept = calibration.offsets, ~assumed
    findings: tuple[Finding, ...] = ()
    if support:
        try:
            found = offset_from_model(
                configured, samples, [support], moving=True, min_samples=1, noisy=False
            )
        except CalibrationError as error:
            raise LogError(f'offset range: {error}') from error
        findings, offsets = found.findings, found.offsets
        assumed, kept = found.assumed, ~found.found
        # Readings that leap are left out.
        against = [one for one in findings if one.code != 'rating' and one.level > Level.INFO]
        if against and request.source == 'model' and not request.support:
            text = f"readings contradict the model with '{support}' as the only contact"
            reasons = '; '.join(map(str, against))
            raise LogError(f"in 'offset_range' {text}: {reasons}", about=('offset_range',))
        progress('offsets from the model', 1.0)
    if request.source == 'torques':
        reference = samples.efforts
        if reference is None or not np.isfinite(reference).any():
            raise LogError('the joint states have no efforts, which offsets from torques need')
        bare = calibration.with_offsets(np.zeros_like(calibration.offsets))
        identity = FtCalibration.identity(len(robot.ft_sensors))
        offsets, (assumed, kept) = offset_from_torques(
            bare.apply(samples.ft_readings, samples.ft_temperatures),
            *_torque_map(build_estimator(settings, robot, identity), samples, progress),
            # Efforts that do not change are not measured.
            np.where(np.fmax.reduce(reference) > np.fmin.reduce(reference), reference, np.nan),
            offsets,
            (assumed, kept),
        )
    text = 'the log does not determine the offset, a part of it is that of the settings'
    names = [sensor.name for sensor in robot.ft_sensors]
    findings += tuple(finding('unexcited', names[k], what=text) for k in np.flatnonzero(kept))
    return Offsets(request, calibration.with_offsets(offsets), assumed, support, findings)


def offset_from_torques(
    readings: Array,
    torques: Array,
    slopes: Array,
    reference: Array,
    prior: Array,
    marks: Sequence[Mask],
) -> tuple[Array, list[Mask]]:
    """
    Return offsets with which torques are closest to references, and those that marks reach.

    readings (n, n_fts, 6) [N, Nm]; torques (n, n_joints): without readings [Nm or N]; slopes
    (n, n_joints, n_fts, 6): of torques by readings; reference (n, n_joints); prior (n_fts, 6):
    stays where the data do not determine an offset; marks (n_fts,): priors that stay in others.
    """
    n_fts, acts = readings.shape[1], slopes != 0.0
    # A sensor that a joint does not depend on may be NaN.
    shares = np.where(acts, slopes * (readings - prior)[:, None], 0.0)
    before = torques + shares.sum(axis=(2, 3)) - reference
    # A joint that depends on no sensor, or has no reference, determines nothing.
    used = np.isfinite(before) & acts.any(axis=(2, 3))
    if not used.any():
        raise LogError('no sample of the range has both FT readings and reference torques')
    scale = np.tile(SCALE, n_fts)
    A = slopes[used].reshape(-1, 6 * n_fts) * scale
    U, sigma, Vt = np.linalg.svd(A, full_matrices=False)
    rank = int((sigma > RANK_TOLERANCE * sigma[0]).sum())
    known = Vt[:rank]
    change = scale * (known.T @ ((U.T @ before[used])[:rank] / sigma[:rank]))
    offsets = prior + change.reshape(n_fts, 6)
    stays = np.abs(np.eye(6 * n_fts) - known.T @ known) > PRIOR_ROUND_OFF
    of_sensors = stays.reshape(n_fts, 6, n_fts, 6).any(axis=(1, 3))
    return offsets, [(of_sensors & mark).any(axis=1) for mark in marks]


def _torque_map(
    estimator: WrenchEstimator, samples: SampleBatch, progress: Progress
) -> tuple[Array, Array]:
    """Return torques without readings (n, n_joints), and slopes (n, n_joints, n_fts, 6)."""
    readings = np.zeros_like(samples.ft_readings)
    zero = replace(samples, ft_readings=readings)

    def torques() -> Array:
        estimate = estimator.batch(zero)
        return np.where(estimate.torque_quality == 0, estimate.torques, np.nan)

    values = torques()
    slopes = np.empty((*values.shape, *readings.shape[1:]))
    for done, (k, axis) in enumerate(np.ndindex(readings.shape[1:]), start=1):
        readings[:, k, axis] = 1.0
        slopes[:, :, k, axis] = torques() - values
        readings[:, k, axis] = 0.0
        progress('offsets from torques', done / readings[0].size)
    return values, slopes
