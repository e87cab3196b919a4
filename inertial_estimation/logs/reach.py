# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which results rest on assumed joints through the offset of an FT sensor."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.offset import DEFAULT_TOLERANCE, felt_shares
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.affine import affine
from inertial_estimation.logs.offsets import Offsets
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.sample import Array, SampleBatch

Mask = NDArray[np.bool_]

UNFELT = 5.0 * DEFAULT_TOLERANCE
"""
A fitted torque that feels a smaller share of an assumed prior does not rest on it (`felt_shares`).

The fit itself takes for nothing what the torques feel by less than `DEFAULT_TOLERANCE`, root mean
square over the poses of its range. Some poses feel more than that, with a squatting iCub four
times as much, and what the fit takes for nothing must not be marked. A prior that is wrong by 10 N
then shifts a torque of 0.2 Nm per newton by at most 0.1 Nm without a mark.
"""
ROUND_OFF = 1e-9
"""
A slope below this times the largest one, or below this [SI units] if all are small, is zero.

Where the wrench of a contact cancels that of a sensor, about 1e-15 of both is left, times the
condition of the contacts. Lever arms are far above a nanometre.
"""
MOST_POSES = 200
"""Poses of a longer log are thinned out evenly; a brief excursion may be missed."""
MOTION = (
    'velocities',
    'accelerations',
    'angular_velocities',
    'proper_accelerations',
    'angular_accelerations',
)


class Reach(NamedTuple):
    """Truth tables."""

    wrenches: Mask
    """Shape (n_contacts,) or (n_contacts, n_fts)."""
    torques: Mask
    """Shape (n_joints,) or (n_joints, n_fts)."""

    @property
    def of_any_sensor(self) -> Reach:
        """The same without the columns of the FT sensors."""
        return Reach(_any(self.wrenches), _any(self.torques))


class Slopes(NamedTuple):
    """Derivatives of results by the wrenches of the FT sensors, NaN where poses are unknown."""

    wrenches: Array
    """Shape (n, n_contacts, 6, n_fts, 6)."""
    torques: Array
    """Shape (n, n_joints, n_fts, 6)."""

    @property
    def reach(self) -> Reach:
        """Which of them are not zero in some pose."""
        largest = max(np.nanmax(np.abs(slopes), initial=1.0) for slopes in self)
        felt = (np.abs(slopes) > ROUND_OFF * largest for slopes in self)
        wrenches, torques = (_any(_any(table), axis=0) for table in felt)
        return Reach(_any(wrenches, axis=1), torques)


def find_assumed_offsets(
    offsets: Offsets, estimator: WrenchEstimator, samples: SampleBatch
) -> Reach:
    """Tell which results rest on assumed joints because the offset of an FT sensor does."""
    slopes = find_slopes(estimator, samples)
    wrenches, torques = (table & offsets.assumed for table in slopes.reach)
    if offsets.torques is not None:
        fitted = np.isfinite(offsets.torques.deviations)
        felt = _any(felt_shares(offsets.torques, slopes.torques) > UNFELT, axis=0)
        torques &= (felt | ~fitted)[:, None]
    return Reach(wrenches, torques)


def find_slopes(estimator: WrenchEstimator, samples: SampleBatch) -> Slopes:
    """Tell how results feel the FT sensors while all sensors work."""
    n_fts = samples.ft_readings.shape[1]
    n = len(samples)
    rows = np.unique(np.linspace(0, n - 1, min(n, MOST_POSES)).round().astype(np.intp))
    poses = samples.take(rows)
    poses = replace(poses, **{name: np.zeros_like(getattr(poses, name)) for name in MOTION})
    bare = copy(estimator)
    bare.calibration = FtCalibration.identity(n_fts)
    _, slopes = affine(bare, poses, _results)
    cut = 6 * len(estimator.contacts)
    wrenches = slopes[:, :cut].reshape(len(rows), len(estimator.contacts), 6, n_fts, 6)
    return Slopes(wrenches, slopes[:, cut:])


def _results(estimate: WrenchEstimate) -> Array:
    """Return the wrenches, six numbers each, and then the torques, (n, n_results)."""
    wrenches = estimate.wrenches.reshape(len(estimate.torques), -1)
    return np.concatenate([wrenches, estimate.torques], axis=1)


def _any(flags: Mask, axis: int = -1) -> Mask:
    """Return whether any flag along an axis is set."""
    found: Mask = np.logical_or.reduce(flags, axis=axis)
    return found
