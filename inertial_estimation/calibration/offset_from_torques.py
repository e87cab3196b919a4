# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Constant FT offsets from reference torques.

An estimate is affine in its readings: its value without readings and its slopes are sufficient.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.offset_from_model import DEFAULT_LENGTH_SCALE
from inertial_estimation.errors import LogError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

RANK_TOLERANCE = 1e-2
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
    residuals = _predicted(torques, slopes, readings - start) - reference
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
    remaining = _predicted(torques, slopes, readings - offsets) - reference
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


def _predicted(torques: Array, slopes: Array, wrenches: Array) -> Array:
    """Return torques with some wrenches; a sensor that a joint does not depend on may be NaN."""
    acts = slopes != 0.0
    shares = np.where(acts, slopes * np.where(acts, wrenches[:, None], 0.0), 0.0)
    total: Array = torques + shares.sum(axis=(2, 3))
    return total
