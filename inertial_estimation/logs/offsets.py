# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Constant FT offsets from a stated part of a log.

``model``: one contact carries the robot, the rest of it is free, and the model tells what the
sensors should read [T section 4.7]. ``torques``: the estimated torques should be those that the
robot itself reported; what the torques do not see keeps the offset from the model if a support is
named or a link is fixed, else the configured one. ``settings``: the configured offsets.

Where the model tells, the support is presumed to be the only contact throughout the range
[T Assumption 4.3]. What speaks against it (`supports`) is refused for ``model`` unless the support
was named, which says that it is known; else it is told. A second contact that stays, away from the
ground, is found by nothing: it is taken for a part of the offsets.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.building import build_estimator
from inertial_estimation.calibration.offset import OffsetFit, fit_of_model, fit_offsets
from inertial_estimation.calibration.supported_offsets import supported_offsets
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CalibrationError, ConfigError, LogError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.affine import affine
from inertial_estimation.logs.comparison import speaking
from inertial_estimation.logs.log import Log, Progress, TimeRange, no_progress
from inertial_estimation.logs.supports import SupportDoubt, find_doubts
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.sample import Array, SampleBatch

Mask = NDArray[np.bool_]
SOURCES = ('settings', 'model', 'torques')
MAX_SAMPLES = 5000
"""Instants of a longer range are thinned out evenly; a constant needs no more."""


@dataclass(frozen=True)
class OffsetRequest:
    """Where the offsets come from."""

    source: str = 'settings'
    """One of `SOURCES`."""
    time_range: TimeRange = field(default_factory=TimeRange)
    """The part of the log that they are computed from."""
    support: str = ''
    """Frame of the only contact [T Assumption 4.3], which carries it; empty: the fixed link."""

    def __post_init__(self) -> None:
        """Check the source."""
        if self.source not in SOURCES:
            raise ConfigError(f"offsets from '{self.source}': choose one of {', '.join(SOURCES)}")


@dataclass(frozen=True)
class Offsets:
    """The calibration of a replay and where it comes from."""

    request: OffsetRequest
    calibration: FtCalibration
    support: str = ''
    """Frame of the contact that is presumed to be the only one; empty: nothing is presumed."""
    model: OffsetFit | None = None
    """None if the model had no say, which is where there is no support."""
    torques: OffsetFit | None = None
    """None unless they are the source; what they do not determine is that of the model."""
    doubts: tuple[SupportDoubt, ...] = ()
    """What speaks against the support being the only contact."""

    @property
    def assumed(self) -> Mask:
        """Which offsets rest on joints that nobody reports, shape (n_fts,)."""
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
    calibration = build_estimator(settings, robot).calibration
    if request.source == 'settings':
        return Offsets(request, calibration)
    part = recording.within(request.time_range).thinned(MAX_SAMPLES)
    samples = _as_wrenches(part, robot, calibration)
    bare = FtCalibration.identity(len(robot.ft_sensors))
    offsets = calibration.offsets
    support = request.support or settings.fixed_link
    by_model = by_torques = assumed = None
    doubts: tuple[SupportDoubt, ...] = ()
    if support or request.source == 'model':
        alone = (_support(support),)
        estimator = build_estimator(settings, robot, contacts=alone, calibration=bare)
        by_model = _from_model(samples, estimator, support, offsets, progress)
        offsets, assumed = by_model.offsets, by_model.assumed
        doubts = _find_doubts(request, samples, robot, settings, alone, offsets)
    if request.source == 'torques':
        estimator = build_estimator(settings, robot, calibration=bare)
        by_torques = _from_torques(samples, estimator, offsets, assumed, progress)
        offsets = by_torques.offsets
    found = calibration.with_offsets(offsets)
    return Offsets(request, found, support, by_model, by_torques, doubts)


def _find_doubts(
    request: OffsetRequest,
    samples: SampleBatch,
    robot: Robot,
    settings: EstimatorSettings,
    alone: tuple[Contact],
    offsets: Array,
) -> tuple[SupportDoubt, ...]:
    """Return what speaks against the only contact; raise if nobody said that it is one."""
    identity = FtCalibration.identity(len(robot.ft_sensors)).matrices
    fitted = FtCalibration(identity, offsets)
    estimator = build_estimator(settings, robot, contacts=alone, calibration=fitted)
    doubts = find_doubts(samples, estimator, build_estimator(settings, robot).contacts)
    if doubts and request.source == 'model' and not request.support:
        raise LogError(
            f'offsets from the model presume that the fixed link {alone[0].frame} is the only '
            f'contact in the offset range, but {"; ".join(doubt.text for doubt in doubts)}: '
            'choose an --offset-range in which it alone carries the robot; if it does so here, '
            f'say so with --support {alone[0].frame}'
        )
    return doubts


def _as_wrenches(part: Log, robot: Robot, calibration: FtCalibration) -> SampleBatch:
    """Return samples with the readings of living sensors as wrenches, offsets still in them."""
    samples = part.without_frozen(sensor.name for sensor in robot.ft_sensors)
    without = calibration.with_offsets(np.zeros_like(calibration.offsets))
    return replace(
        samples, ft_readings=without.apply(samples.ft_readings, samples.ft_temperatures)
    )


def _support(frame: str) -> Contact:
    """Return the one contact that carries the robot."""
    if not frame:
        raise ConfigError(
            'offsets from the model need the one contact that carries the robot: '
            'name its frame, or give a fixed_link'
        )
    return Contact(frame)


def _from_model(
    samples: SampleBatch,
    estimator: WrenchEstimator,
    support: str,
    prior: Array,
    progress: Progress,
) -> OffsetFit:
    """Let one contact carry the robot; motion is in the model, and every instant counts."""
    progress('offsets from the model', 0.0)
    try:
        found = supported_offsets(
            estimator,
            samples,
            [support],
            stillness=None,
            least_instants=1,
            # These are wrenches: which channel of the readings is dead does not show in them.
            noisy=np.zeros(samples.ft_readings.shape[1], dtype=bool),
        )
    except CalibrationError as error:
        raise LogError(f'offset range: {error}') from error
    progress('offsets from the model', 1.0)
    return fit_of_model(found, prior)


def _from_torques(
    samples: SampleBatch,
    estimator: WrenchEstimator,
    prior: Array,
    prior_assumed: Mask | None,
    progress: Progress,
) -> OffsetFit:
    """Compare with the efforts of the joint states, where no joint is assumed or missing."""
    reference = samples.efforts
    if reference is None or not np.isfinite(reference).any():
        raise LogError('offsets from torques need efforts in the joint states, there are none')

    def torques(estimate: WrenchEstimate) -> Array:
        return np.where(estimate.torque_quality == 0, estimate.torques, np.nan)

    values, slopes = affine(estimator, samples, torques, 'offsets from torques', progress)
    told = np.where(speaking(reference), reference, np.nan)
    return fit_offsets(
        samples.ft_readings, values, slopes, told, prior=prior, prior_assumed=prior_assumed
    )
