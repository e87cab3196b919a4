# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The offset of an FT sensor from its raw readings and an accelerometer alone [T 5.3-5.10].

Neither the body beyond the sensor nor the calibration matrix need be known, nor how the
accelerometer is turned against the sensor [T Remark 5.1]: it need only be fixed to that body. Its
bias makes the force offset off by the body's mass times the bias; where orientations are all
around, gravity tells it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.accelerometer_bias import Bias
from inertial_estimation.calibration.affine_subspace import (
    DIMENSIONS,
    LEAST_GAP,
    AffineSubspace,
    affine_subspace,
)
from inertial_estimation.calibration.dead_channels import require_live
from inertial_estimation.calibration.excitation import Orientations, orientations
from inertial_estimation.calibration.quiet_samples import (
    STILL_ACCELERATION,
    STILL_TURNING,
    TOUCHED,
    quiet_samples,
)
from inertial_estimation.calibration.raw_slopes import (
    RawSlopes,
    fit_slopes,
    require_samples,
    untouched,
)
from inertial_estimation.calibration.saturated_channels import require_unsaturated
from inertial_estimation.calibration.silent_channels import blamed, copies, silent
from inertial_estimation.errors import LogError
from inertial_estimation.model.arguments import numbers, stacked

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

LENGTH_SCALE = 0.1
"""Moment over force that counts as equally large [m]."""
UNEXPLAINED = 0.5
"""
Of the third spread of the readings, what the accelerometer may leave of them. More is left if it
is on another body or comes far too late.
"""
MOST_TOUCHED = 0.4
"""Share of touched samples from which it is not clear which of the samples are untouched."""


@dataclass(frozen=True, eq=False)
class InSituOffset:
    """An offset without a model, and what speaks for it."""

    offset: Array
    """b, in the raw unit, shape (6,): wrench = matrix (raw - b)."""
    covariance: Array
    """Of `offset`, shape (6, 6)."""
    slopes: RawSlopes
    """How readings follow gravity, before they are moved into the subspace."""
    subspace: AffineSubspace
    orientations: Orientations
    unexplained: float
    """What the accelerometer leaves within the subspace, over the readings' third spread."""
    gravity: float
    """Median size of what the accelerometer reads, less its bias [m/s^2]."""
    bias: Bias
    """Of the accelerometer, taken off: what was given, or what gravity tells, or zero."""
    kept: Mask
    """Which samples were used, shape (n,)."""
    left_out: dict[str, int]
    """Samples that were not, by reason."""

    @property
    def deviations(self) -> Array:
        """Standard deviations of `offset`, shape (6,) [raw unit]."""
        return np.asarray(np.sqrt(np.diagonal(self.covariance)))

    def in_wrench(self, matrix: Array) -> tuple[Array, Array]:
        """
        Return the offset as it is subtracted, with its standard deviations.

        matrix (6, 6); returns (6,) [force; moment].
        """
        C = numbers('matrix', matrix, (6, 6))
        return C @ self.offset, np.sqrt(np.diagonal(C @ self.covariance @ C.T))

    def drift(self, matrix: Array) -> tuple[Array, Array]:
        """
        Return by how much the offset drifts during the log, with standard deviations.

        matrix (6, 6); returns (6,) [force; moment].
        """
        squares = np.diagonal(matrix @ self.slopes.drift_covariance @ matrix.T)
        return matrix @ self.slopes.drift, np.sqrt(squares)

    def ellipsoid(self) -> tuple[Array, Array]:
        """
        Return the ellipsoid on which the readings lie [T Lemma 5.1].

        Returns (3,).
        """
        within = self.subspace.basis[:, :DIMENSIONS]
        centre = self.subspace.coordinates(self.offset)[:DIMENSIONS]
        shape = within.T @ self.subspace.metric @ self.slopes.slopes * self.gravity
        return centre, shape


def offset_in_situ(
    raw: Array,
    accelerations: Array,
    *,
    turning: Array | None = None,
    matrix: Array | None = None,
    bias: Array | None = None,
    length_scale: float = LENGTH_SCALE,
    least_gap: float = LEAST_GAP,
    most_unexplained: float = UNEXPLAINED,
    still_acceleration: float = STILL_ACCELERATION,
    still_turning: float = STILL_TURNING,
    what: str = 'the log',
) -> InSituOffset:
    """
    Find the offset of a sensor that carries one rigid body in several orientations.

    Samples that move or are touched are left out and counted.

    Parameters
    ----------
    raw : ndarray, shape (n, 6)
        Raw readings in the order of time, in any unit.
    accelerations : ndarray, shape (n, 3)
        Of an accelerometer on the same rigid body, in its own axes [m/s^2].
    turning : ndarray, shape (n, 3), optional
        Of a gyroscope on it [rad/s]. Default: none.
    matrix : ndarray, shape (6, 6), optional
        From raw readings to about wrenches, as from a workshop: makes channels comparable, in N
        and in Nm over the length scale, and makes the result the same whatever the raw unit is;
        the identity for readings that are wrenches. Default: channels are comparable as they are,
        as counts of six like gauges.
    bias : ndarray, shape (3,), optional
        Of the accelerometer [m/s^2]. Default: from gravity, if orientations tell it.
    length_scale : float
        Moment over force that counts as equally large [m].
    least_gap : float
        Third singular value over the fourth that is needed.
    most_unexplained : float
        Of the third spread, what the accelerometer may leave.
    still_acceleration, still_turning : float
        What counts as rest [m/s^2], [rad/s].
    what : str
        Name of the log, for messages.

    Returns
    -------
    InSituOffset

    Raises
    ------
    ShapeError, ModelError
        If the arrays do not belong together, or are no numbers.
    LogError
        If too few samples are at rest, orientations leave a direction out, a channel stands still
        while others do not or is saturated, the readings move along more than three directions, or
        do not follow the accelerometer.

    """
    raw, accelerations = stacked('raw', raw, 6), stacked('accelerations', accelerations, 3)
    quiet = quiet_samples(
        raw, accelerations, turning, bias=bias, what=what,
        still_acceleration=still_acceleration, still_turning=still_turning,
    )  # fmt: skip
    left_out = quiet.left_out
    accelerations = accelerations - quiet.bias.bias
    require_samples(int(quiet.kept.sum()), left_out, what)
    orientations(accelerations[quiet.kept]).require_three(what)
    if matrix is not None:
        matrix = numbers('matrix', matrix, (6, 6))
    require_live(raw[quiet.kept], accelerations[quiet.kept], matrix, length_scale, what)
    kept = quiet.kept.copy()
    kept[quiet.kept] = untouched(raw[quiet.kept], accelerations[quiet.kept])
    left_out[TOUCHED] = int(quiet.kept.sum() - kept.sum())
    _require_clear(left_out[TOUCHED], int(quiet.kept.sum()), what)
    r, a = raw[kept], accelerations[kept]
    found = orientations(a)
    found.require_three(f'{what}, without samples that are touched')
    subspace = affine_subspace(r, _metric(matrix, length_scale))
    slopes = fit_slopes(r, a)
    require_unsaturated(raw[quiet.kept], accelerations[quiet.kept], slopes, what)
    try:
        subspace.require_gap(what, least_gap)
        unexplained = _unexplained(subspace, slopes, r, a)
        _require_followed(unexplained, most_unexplained, what)
    except LogError as error:
        raise _with_causes(error, r, a, matrix, what) from None
    P = subspace.projection()
    of_bias = slopes.slopes * quiet.bias.deviations
    return InSituOffset(
        offset=subspace.point + P @ (slopes.offset - subspace.point),
        # Not projected: off the subspace, what is known of the subspace limits the offset.
        covariance=slopes.covariance[18:, 18:] + of_bias @ of_bias.T,
        slopes=slopes,
        subspace=subspace,
        orientations=found,
        unexplained=unexplained,
        gravity=quiet.gravity,
        bias=quiet.bias,
        kept=kept,
        left_out=left_out,
    )


def _metric(matrix: Array | None, length_scale: float) -> Array | None:
    """Return what makes channels comparable."""
    if matrix is None:
        return None
    scale = np.repeat([1.0, 1.0 / length_scale], 3)
    return np.asarray(scale[:, None] * numbers('matrix', matrix, (6, 6)))


def _require_clear(touched: int, n: int, what: str) -> None:
    """Raise if so many samples disagree that the others may be the touched ones."""
    if touched > MOST_TOUCHED * n:
        raise LogError(
            f'{what}: {touched} of {n} samples at rest do not agree with the others on one rigid '
            'body, too many to tell which are touched: let nothing touch, and hold all joints '
            'beyond the sensor'
        )


def _require_followed(unexplained: float, most: float, what: str) -> None:
    """Raise if the accelerometer does not tell what the readings do."""
    if unexplained > most:
        raise LogError(
            f'{what}: the readings do not follow the accelerometer, which leaves '
            f'{unexplained:.0%} of their third spread: take one that is fixed to the body beyond '
            'the sensor, and check the delay between the two'
        )


def _with_causes(
    error: LogError, raw: Array, accelerations: Array, matrix: Array | None, what: str
) -> LogError:
    """Return a refusal with channels that may be to blame, or their units, before the body is."""
    if channels := blamed(silent(raw, accelerations), copies(raw)):
        return LogError(f'{what}: {channels}. Else: {error}', about=('readings',))
    if matrix is None or np.array_equal(matrix, np.eye(6)):
        return LogError(
            f"{error}. Readings that are no wrenches are compared with 'matrix', such as that of "
            'the workshop: give it first',
            about=('matrix',),
        )
    return error


def _unexplained(subspace: AffineSubspace, slopes: RawSlopes, raw: Array, a: Array) -> float:
    """Return what the accelerometer leaves within the subspace, over the third spread."""
    left = raw - slopes.offset - a @ slopes.slopes.T
    within = left @ subspace.metric.T @ subspace.basis[:, :DIMENSIONS]
    rms = np.sqrt((within**2).mean(axis=0)).max()
    return float(rms / subspace.spreads[DIMENSIONS - 1])
