# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which results rest on assumed joints through the offset of an FT sensor."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.offsets import Offsets
from inertial_estimation.sample import SampleBatch

Mask = NDArray[np.bool_]
MOTION = (
    'positions',
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


def find_assumed(offsets: Offsets, estimator: WrenchEstimator, samples: SampleBatch) -> Reach:
    """
    Tell which results rest on assumed joints because some offset does.

    A wrench feels every direction of the sensors at the borders of its submodel. A torque that
    the offsets were fitted to hardly feels the directions that it did not determine: they are
    those that left it as it was in the poses of the offset range.

    Parameters
    ----------
    offsets : Offsets
        Those of the estimator.
    estimator : WrenchEstimator
        With the contacts in question.
    samples : SampleBatch
        At least one.

    Returns
    -------
    Reach
        One flag for each contact and joint.

    """
    return find_assumed_offsets(offsets, estimator, samples).of_any_sensor


def find_assumed_offsets(
    offsets: Offsets, estimator: WrenchEstimator, samples: SampleBatch
) -> Reach:
    """
    Tell the same for each FT sensor.

    Parameters
    ----------
    offsets : Offsets
        Those of the estimator.
    estimator : WrenchEstimator
        With the contacts in question.
    samples : SampleBatch
        At least one.

    Returns
    -------
    Reach
        One column for each FT sensor, empty where its offset does not rest on assumed joints.

    """
    wrenches, torques = (table & offsets.assumed for table in find_reach(estimator, samples))
    if offsets.torques is not None:
        torques &= np.isnan(offsets.torques.deviations)[:, None]
    return Reach(wrenches, torques)


def find_reach(estimator: WrenchEstimator, samples: SampleBatch) -> Reach:
    """
    Tell which results feel which FT sensors while all sensors work.

    Parameters
    ----------
    estimator : WrenchEstimator
        With the contacts in question.
    samples : SampleBatch
        At least one; the first one's pose is used.

    Returns
    -------
    Reach
        One column for each FT sensor.

    """
    n_fts = samples.ft_readings.shape[1]
    n = 1 + 6 * n_fts
    probes = samples.take(np.zeros(n, dtype=np.intp))
    readings = np.eye(n)[:, 1:].reshape(n, n_fts, 6)
    motion = {name: np.nan_to_num(getattr(probes, name)) for name in MOTION}
    estimate = estimator.batch(replace(probes, ft_readings=readings, **motion))
    wrenches = _any(estimate.wrenches[1:] != estimate.wrenches[0])
    torques = estimate.torques[1:] != estimate.torques[0]
    return Reach(_by_sensor(wrenches, n_fts), _by_sensor(torques, n_fts))


def _by_sensor(changed: Mask, n_fts: int) -> Mask:
    """Return which results any of the six axes of a sensor changes, (n_results, n_fts)."""
    axes = changed.T.reshape(changed.shape[1], n_fts, 6)
    return _any(axes)


def _any(flags: Mask) -> Mask:
    """Return whether any flag of the last axis is set."""
    found: Mask = np.logical_or.reduce(flags, axis=-1)
    return found
