# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
One constant offset per FT sensor from a torque reference.

Offsets are subtracted: wrench = matrix raw - offset. Whatever an estimator returns is affine in
its readings, so its value without readings and its slopes are all that is needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.supported_offsets import (
    DEFAULT_LENGTH_SCALE,
    SupportedOffsets,
)
from inertial_estimation.errors import LogError, ShapeError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

DEFAULT_TOLERANCE = 1e-2
PRIOR_ROUND_OFF = 1e-6
"""A smaller share of a prior in an offset is the round-off of a projection."""


class OffsetFit(NamedTuple):
    """Offsets and how well the data determine them."""

    offsets: Array
    """Shape (n_fts, 6), [force; torque] in each sensor's frame [N, Nm]."""
    deviations: Array
    """
    Root mean square of what remains, shape (m,): of each torque [Nm or N], or of each reading
    minus its prediction, six per sensor, which is their standard deviation [N, Nm]; NaN where
    there are no data.
    """
    rank: int
    """Combinations of offsets that the data determine, of 6 n_fts."""
    n_samples: int
    """Instants that were used."""
    assumed: Mask
    """Which offsets rest, in whole or in part, on joints that nobody reports, shape (n_fts,)."""
    undetermined: Array
    """
    How the offsets follow what is assumed, shape (6 n_fts, 6 m) for m sensors of which the prior
    is, or the prediction: the change of the offsets [N, Nm] with a change of each force of it by
    1 N, and of each moment by 1 N times the length scale.
    """
    length_scale: float
    """Moment over force that counts as equally large [m]."""


def fit_offsets(
    readings: Array,
    torques: Array,
    slopes: Array,
    reference: Array,
    *,
    prior: Array | None = None,
    prior_assumed: Mask | None = None,
    length_scale: float = DEFAULT_LENGTH_SCALE,
    tolerance: float = DEFAULT_TOLERANCE,
) -> OffsetFit:
    """
    Return the offsets with which estimated torques come closest to reference torques.

    readings (n, n_fts, 6) [N, Nm]; torques (n, n_joints) [Nm or N]; slopes (n, n_joints, n_fts,
    6); reference (n, n_joints) [Nm or N]; prior (n_fts, 6); prior_assumed (n_fts,); length_scale
    [m].
    """
    n, n_fts = readings.shape[:2]
    for name, array, shape in (
        ('torques', torques, reference.shape),
        ('slopes', slopes, (*reference.shape, n_fts, 6)),
        ('reference', reference, (n, *reference.shape[1:])),
    ):
        if array.shape != shape:
            raise ShapeError(name, shape, array.shape)
    start = np.zeros((n_fts, 6)) if prior is None else prior
    residuals = _predicted(torques, slopes, readings - start) - reference
    # A joint that feels no sensor, or has no reference, says nothing about offsets.
    used = np.isfinite(residuals) & (slopes != 0.0).any(axis=(2, 3))
    if not used.any():
        raise LogError('no instant of the range has both FT readings and reference torques')
    scale = _scale(n_fts, length_scale)
    A = slopes[used].reshape(-1, 6 * n_fts) * scale
    U, sigma, Vt = np.linalg.svd(A, full_matrices=False)
    rank = int((sigma > tolerance * sigma[0]).sum())
    change = scale * (Vt[:rank].T @ ((U.T @ residuals[used])[:rank] / sigma[:rank]))
    offsets = start + change.reshape(n_fts, 6)
    remaining = _predicted(torques, slopes, readings - offsets) - reference
    remaining[~used] = np.nan
    pending = np.zeros(n_fts, dtype=bool) if prior_assumed is None else prior_assumed
    left = (np.eye(6 * n_fts) - Vt[:rank].T @ Vt[:rank])[:, np.repeat(pending, 6)]
    shares = np.abs(left).reshape(n_fts, 6, left.shape[1])
    return OffsetFit(
        offsets=offsets,
        deviations=_rms(remaining),
        rank=rank,
        n_samples=int(used.any(axis=1).sum()),
        assumed=np.logical_or.reduce(shares > PRIOR_ROUND_OFF, axis=(1, 2)),
        undetermined=scale[:, None] * left,
        length_scale=length_scale,
    )


def felt_shares(fit: OffsetFit, slopes: Array) -> Array:
    """
    Return how much torques feel of what the data left to an assumed prior.

    slopes (n, n_joints, n_fts, 6); returns (n, n_joints).
    """
    rows = slopes.reshape(*slopes.shape[:2], len(fit.undetermined))
    felt = np.linalg.norm(rows @ fit.undetermined, axis=2)
    largest = np.linalg.norm(rows * _scale(slopes.shape[2], fit.length_scale), axis=2)
    shares: Array = felt / np.where(largest == 0.0, 1.0, largest)
    return shares


def fit_of_model(found: SupportedOffsets, prior: Array) -> OffsetFit:
    """
    Return offsets from the model, and the prior where it does not tell.

    prior (n_fts, 6) [N, Nm].
    """
    n_fts = len(prior)
    whole = np.diag(_scale(n_fts, found.length_scale))[:, np.repeat(found.assumed, 6)]
    return OffsetFit(
        offsets=np.where(found.found[:, None], found.offsets, prior),
        deviations=found.spread.reshape(-1),
        rank=6 * int(found.found.sum()),
        n_samples=int(found.n_samples.max()),
        assumed=found.assumed,
        undetermined=whole,
        length_scale=found.length_scale,
    )


def _scale(n_fts: int, length_scale: float) -> Array:
    """Return 1 for the forces and the length scale for the moments, (6 n_fts,)."""
    return np.tile(np.repeat([1.0, length_scale], 3), n_fts)


def _predicted(torques: Array, slopes: Array, wrenches: Array) -> Array:
    """Return torques with some wrenches; a sensor that a joint does not feel may be NaN."""
    felt = slopes != 0.0
    shares = np.where(felt, slopes * np.where(felt, wrenches[:, None], 0.0), 0.0)
    total: Array = torques + shares.sum(axis=(2, 3))
    return total


def _rms(values: Array) -> Array:
    """Return the root mean square of each column, without NaN; NaN for an empty column."""
    finite = np.isfinite(values)
    count = finite.sum(axis=0)
    squares = np.where(finite, values, 0.0) ** 2
    with np.errstate(invalid='ignore'):
        rms: Array = np.sqrt(squares.sum(axis=0) / count)
    return rms
