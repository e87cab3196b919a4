# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Offset of an FT sensor from raw readings and an accelerometer alone [T 5.3-5.10].

One rigid body beyond the sensor makes readings affine in gravity: six channels move along three
directions, on an ellipsoid whose centre is the offset. Neither the body nor the matrix need be
known, nor the rotation of the accelerometer, which must be fixed to that body [T Remark 5.1]. Its
bias shifts the force offset by mass times bias, unless orientations all around determine it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.calibration.calibration_file import (
    NO_TEMPERATURE,
    Provenance,
    SensorCalibration,
)
from inertial_estimation.calibration.raw_readings import (
    MAX_REST_ACCELERATION,
    MIN_GRAVITY_SPREAD,
    MIN_SAMPLES,
    NOT_FINITE,
    TOUCHED,
    RawSlopes,
    constant_channels,
    fit_slopes,
    gravity_spreads,
    names_of,
    require_unsaturated,
    rest_samples,
    still_channels,
    untouched,
)
from inertial_estimation.calibration.residual_statistics import SCALE
from inertial_estimation.errors import CallError, LogError, ModelError
from inertial_estimation.findings import Finding, finding
from inertial_estimation.model.arguments import numbers, stacked

MIN_GAP = 4.0
"""
Third singular value over the fourth. A body of 1 kg tilted by 35 degrees makes 8 against a noise
of 0.1 N; limbs of a real iCub whose joints move 1.3 to 1.9, tools on real arms 100.
"""
MAX_UNEXPLAINED = 0.5
"""Residual of the accelerometer's fit over the third spread of the readings."""
MAX_TOUCHED = 0.4
"""Share of samples at rest that may be touched: above it the majority is uncertain."""
MAX_DRIFT_DEVIATIONS = 5.0
MAX_LEFT_OUT = 0.1
ROUND_OFF = 1e-9


@dataclass(frozen=True, eq=False)
class InSituOffset:
    """Offset without a model."""

    offset: Array
    """b in the raw unit: wrench = matrix (raw - b), shape (6,)."""
    covariance: Array
    """Of `offset`, shape (6, 6)."""
    slopes: RawSlopes
    """Affine fit before the projection onto the subspace."""
    singular_values: Array
    """Of the centred readings in comparable units, falling, shape (6,)."""
    gravity_spreads: Array
    """Of gravity along its principal axes, over its size, falling, shape (3,)."""
    unexplained: float
    """Residual within the subspace over the third spread of the readings."""
    gravity: float
    """Median size of the accelerometer's readings, less its bias [m/s^2]."""
    bias: Array
    """Of the accelerometer, subtracted; zero if not known, shape (3,) [m/s^2]."""
    kept: Mask
    """Samples that were used, shape (n,)."""
    left_out: dict[str, int]
    """Other samples by reason."""

    @property
    def gap(self) -> float:
        """Third singular value over the fourth."""
        return float(self.singular_values[2] / max(self.singular_values[3], 1e-300))

    def in_wrench(self, matrix: Array) -> tuple[Array, Array]:
        """Return the offset to subtract, (6,) [N, Nm], and its standard deviations."""
        return matrix @ self.offset, deviations_of_wrench(matrix, self.covariance)

    def drift(self, matrix: Array) -> tuple[Array, Array]:
        """Return the change of the offset in the log, (6,) [N, Nm], and its deviations."""
        deviations = deviations_of_wrench(matrix, self.slopes.drift_covariance)
        return matrix @ self.slopes.drift, deviations

    def findings(self, matrix: Array, subject: str) -> Iterator[Finding]:
        """Yield missing readings, drift, and many touched samples; matrix (6, 6)."""
        n = len(self.kept)
        if missing := self.left_out[NOT_FINITE]:
            yield finding('missing', subject, what='readings', share=missing / n)
        drift, deviations = self.drift(matrix)
        if (np.abs(drift) > MAX_DRIFT_DEVIATIONS * deviations).any():
            force, moment = np.linalg.norm(drift.reshape(2, 3), axis=1)
            text = f'offset drifts by {force:.3g} N, {moment:.2g} Nm during the log'
            yield finding('offset_drift', subject, what=text, drift=drift.tolist())
        if (touched := self.left_out[TOUCHED]) > MAX_LEFT_OUT * n:
            yield finding('disturbed', subject, share=touched / n)

    def calibration(
        self,
        before: SensorCalibration,
        date: str,
        temperature: float = NO_TEMPERATURE,
        notes: Sequence[str] = (),
    ) -> SensorCalibration:
        """Return a calibration with this offset; temperature [degrees Celsius]."""
        thermal = bool(before.temperature_coefficients.any())
        if thermal and np.isnan(temperature):
            raise CallError(
                "the calibration has temperature coefficients: give 'temperature'",
                about=('temperature',),
            )
        spread = deviations_of_wrench(before.matrix, self.slopes.noise)
        texts = [*notes, *(one.text for one in self.findings(before.matrix, ''))]
        return before.after(
            Provenance(
                'offset without a model', date, self.slopes.n_samples, temperature, spread, texts
            ),
            offset=before.matrix @ self.offset,
            reference_temperature=temperature if thermal else before.reference_temperature,
        )


def deviations_of_wrench(matrix: Array, covariance: Array) -> Array:
    """Return standard deviations of matrix raw, (6,), by the covariance of raw readings (6, 6)."""
    return np.asarray(np.sqrt(np.diagonal(matrix @ covariance @ matrix.T)))


def affine_subspace(raw: Array, metric: Array, what: str) -> tuple[Array, Array, Array]:
    """
    Return the affine subspace of three dimensions that readings lie in [T Lemma 5.1, 5.6-5.9].

    raw (n, 6); metric (6, 6): to units in which channels are comparable; returns the mean (6,), an
    orthonormal basis in these units (6, 3), and all singular values (6,), falling.
    """
    point = raw.mean(axis=0)
    _, sigma, Vt = np.linalg.svd((raw - point) @ metric.T, full_matrices=False)
    spreads = sigma / np.sqrt(len(raw))
    if spreads[2] <= max(MIN_GAP * spreads[3], ROUND_OFF * np.abs(metric @ point).max()):
        values = ', '.join(f'{x:.3g}' for x in spreads)
        raise LogError(
            f'{what}: the readings do not move along three directions alone (spreads {values}; '
            f'third over fourth at least {MIN_GAP:g}): not one rigid body at rest, a load too '
            "light for the noise, or raw units that need a 'matrix'",
            about=('matrix',),
        )
    return point, Vt[:3].T, sigma


def in_situ_offset(
    raw: Array,
    accelerations: Array,
    *,
    turning: Array | None = None,
    matrix: Array | None = None,
    bias: Array | None = None,
    max_acceleration: float = MAX_REST_ACCELERATION,
    what: str = 'the log',
) -> InSituOffset:
    """
    Identify the offset of a sensor that carries one rigid body in several orientations.

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
        Approximate calibration matrix; makes channels comparable, and the result independent of
        raw units. Default: channels are comparable as they are, as counts of six like gauges.
    bias : ndarray, shape (3,), optional
        Of the accelerometer [m/s^2]. Default: from gravity, if orientations determine it.
    max_acceleration : float
        Largest difference of an acceleration at rest from the median size [m/s^2].
    what : str
        Name of the log in errors.

    Returns
    -------
    InSituOffset

    Raises
    ------
    ShapeError, ModelError
        If the arrays do not belong together, or are no numbers.
    LogError
        If too few samples are at rest, orientations leave a direction out, a channel is dead or
        saturated, the readings move along more than three directions, or do not follow the
        accelerometer.

    """
    raw, accelerations = stacked('raw', raw, 6), stacked('accelerations', accelerations, 3)
    kept, left_out, gravity, bias, bias_deviations = rest_samples(
        raw, accelerations, turning, bias, max_acceleration, what
    )
    n = int(kept.sum())
    if n < MIN_SAMPLES:
        reasons = ', '.join(f'{count} {reason}' for reason, count in left_out.items())
        raise LogError(
            f'{what}: {n} samples at rest, {MIN_SAMPLES} are needed; left out: {reasons}'
        )
    r, a = raw[kept], accelerations[kept] - bias
    metric = np.eye(6) if matrix is None else numbers('matrix', matrix, (6, 6)) / SCALE[:, None]
    if np.linalg.matrix_rank(metric) < 6:
        raise ModelError("'matrix' is singular", about=('matrix',))
    # Moments of a wrench may not change; all channels of gauges do.
    gauges = matrix is not None and not np.array_equal(matrix, np.eye(6))
    units = np.linalg.norm(metric, axis=0) if gauges else np.repeat([1.0, 0.0], 3)
    if (dead := constant_channels(r)).any():
        raise LogError(f'{what}: channel {names_of(dead)} never changes', about=('readings',))
    fits = untouched(r, a)
    left_out[TOUCHED] = n - int(fits.sum())
    if left_out[TOUCHED] > MAX_TOUCHED * n:
        raise LogError(
            f'{what}: {left_out[TOUCHED]} of {n} samples at rest do not fit one rigid body with '
            f'the others, limit {MAX_TOUCHED:.0%}'
        )
    kept[kept] = fits
    spreads = gravity_spreads(a[fits])
    if spreads[2] < MIN_GRAVITY_SPREAD:
        values = ', '.join(f'{x:.2%}' for x in spreads)
        raise LogError(
            f'{what}: along three directions of the body gravity spreads by {values} of its size, '
            f'limit {MIN_GRAVITY_SPREAD:.0%}'
        )
    slopes = fit_slopes(r[fits], a[fits])
    if (still := still_channels(slopes.slopes, units)).any():
        text = f'{what}: channel {names_of(still)} does not follow gravity'
        raise LogError(text, about=('readings',))
    expected = slopes.offset + a @ slopes.slopes.T
    require_unsaturated(r, expected, what)
    point, basis, sigma = affine_subspace(r[fits], metric, what)
    within = metric.T @ basis
    rms = np.sqrt((((r - expected)[fits] @ within) ** 2).mean(axis=0)).max()
    unexplained = float(rms * np.sqrt(slopes.n_samples) / sigma[2])
    if unexplained > MAX_UNEXPLAINED:
        raise LogError(
            f'{what}: the readings do not follow the accelerometer: residual {unexplained:.0%} of '
            f'their third spread, limit {MAX_UNEXPLAINED:.0%}'
        )
    # Not projected: off the subspace, the uncertainty of the subspace limits the offset.
    of_bias = slopes.slopes * bias_deviations
    return InSituOffset(
        offset=point + np.linalg.solve(metric, basis @ ((slopes.offset - point) @ within)),
        covariance=slopes.covariance[18:, 18:] + of_bias @ of_bias.T,
        slopes=slopes,
        singular_values=sigma,
        gravity_spreads=spreads,
        unexplained=unexplained,
        gravity=gravity,
        bias=bias,
        kept=kept,
        left_out=left_out,
    )
