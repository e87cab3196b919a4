# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Offset of an FT sensor from raw readings and an accelerometer alone [T 5.3-5.10].

One rigid body beyond the sensor makes readings affine in gravity, raw = b + K a [T 5.4]: six
channels move along three directions, on an ellipsoid whose centre is the offset. Neither the body
nor the matrix need be known, nor the rotation of the accelerometer, which must be fixed to that
body [T Remark 5.1]. Its bias shifts the force offset by mass times bias, unless orientations all
around determine it. All channels have the same four regressors, so that least squares depends on
no weighting of channels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import inertial_estimation.calibration.residual_statistics as stats
from inertial_estimation.arrays import Array, Mask
from inertial_estimation.calibration.calibration_file import (
    NO_TEMPERATURE,
    Provenance,
    SensorCalibration,
)
from inertial_estimation.calibration.raw_readings import (
    RawSlopes,
    fit_slopes,
    require_unsaturated,
    still_channels,
    untouched,
)
from inertial_estimation.errors import CallError, LogError, ModelError
from inertial_estimation.findings import Finding, Level, finding
from inertial_estimation.model.arguments import numbers, stacked

GRAVITY = 9.80665
"""Standard gravity [m/s^2]."""
MAX_GRAVITY_ERROR = 0.1
"""Share of gravity by which the median reading may differ: more is another unit."""
MAX_REST_ACCELERATION = 0.3
"""Difference of a reading at rest from the median size [m/s^2]; biases and gains make 0.1."""
MAX_REST_TURNING = 0.2
"""[rad/s]: 1 m off the axis the centripetal acceleration is 0.04 m/s^2."""
NOT_FINITE, MOVING, TOUCHED = 'not finite', 'moving', 'touched'
"""Reasons for which samples are left out."""
MIN_GRAVITY_SPREAD = 0.03
"""Spread of gravity over its size from which a direction is excited: tilting by 20 degrees."""
MIN_BIAS_SAMPLES = 10
MIN_BIAS_SPREAD = 0.25
"""Spread of gravity, as above, from which orientations determine a bias; 0.58 is a sphere."""
BIAS_BLOCKS = 20
BIAS_DEVIATIONS, MIN_BIAS, MAX_BIAS_DEVIATION = 5.0, 0.03, 0.05
"""A bias is subtracted if it exceeds these deviations, this size, and is known to this [m/s^2]."""
SUBSPACE_ROUND_OFF = 1e-9
MIN_GAP = 4.0
"""Third singular value over the fourth; 1 kg tilted by 35 degrees with 0.1 N: 8; an iCub: 1.9."""
MAX_UNEXPLAINED = 0.5
"""Residual of the accelerometer's fit over the third spread of the readings."""
MAX_DRIFT_DEVIATIONS = 5.0
MIN_TOUCHED = 0.1
"""Share of touched samples that is reported."""


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
        """Yield missing readings, drift, many touched samples, large residuals; matrix (6, 6)."""
        n = len(self.kept)
        if missing := self.left_out[NOT_FINITE]:
            yield finding('missing', subject, what='readings', share=missing / n)
        drift, deviations = self.drift(matrix)
        if (np.abs(drift) > MAX_DRIFT_DEVIATIONS * deviations).any():
            force, moment = np.linalg.norm(drift.reshape(2, 3), axis=1)
            text = f'offset drifts by {force:.3g} N, {moment:.2g} Nm during the log'
            yield finding('offset_drift', subject, what=text, drift=drift.tolist())
        touched = self.left_out[TOUCHED] / (self.left_out[TOUCHED] + self.slopes.n_samples)
        if touched > MIN_TOUCHED:
            level = Level.ERROR if touched > stats.MAX_LEFT_OUT else None
            yield finding('disturbed', subject, level=level, share=touched)
        if self.unexplained > MAX_UNEXPLAINED:
            yield finding(
                'residual', subject, level=Level.ERROR, what='readings by the accelerometer',
                share=self.unexplained,
            )  # fmt: skip

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
            text = "the calibration has temperature coefficients: give 'temperature'"
            raise CallError(text, about=('temperature',))
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


def in_situ_offset(
    raw: Array,
    accelerations: Array,
    *,
    turning: Array | None = None,
    matrix: Array | None = None,
    bias: Array | None = None,
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
        saturated, or the readings move along more than three directions.

    """
    raw, accelerations = stacked('raw', raw, 6), stacked('accelerations', accelerations, 3)
    kept, left_out, gravity, bias, bias_deviations = rest_samples(
        raw, accelerations, turning, bias, what
    )
    n = int(kept.sum())
    others = ', '.join(f'{count} {reason}' for reason, count in left_out.items())
    others = f"left out: {others}, with an accelerometer's 'bias' of {bias.round(2).tolist()}"
    if n < stats.MIN_SAMPLES:
        text = f'{what}: {n} samples at rest, {stats.MIN_SAMPLES} are needed; {others}'
        raise LogError(text, about=('bias',))
    r, a = raw[kept], accelerations[kept] - bias
    metric = (
        np.eye(6) if matrix is None else numbers('matrix', matrix, (6, 6)) / stats.SCALE[:, None]
    )
    if np.linalg.matrix_rank(metric) < 6:
        raise ModelError("'matrix' is singular", about=('matrix',))
    # Moments of a wrench may not change; all channels of gauges do.
    gauges = matrix is not None and not np.array_equal(matrix, np.eye(6))
    units = np.linalg.norm(metric, axis=0) if gauges else np.repeat([1.0, 0.0], 3)
    if (dead := stats.constant_channels(r)).any():
        text = f'{what}: channel {stats.names_of(dead)} never changes'
        raise LogError(text, about=('readings',))
    fits = untouched(r, a)
    left_out[TOUCHED] = n - int(fits.sum())
    kept[kept] = fits
    spreads = gravity_spreads(a[fits])
    if spreads[2] < MIN_GRAVITY_SPREAD:
        values = ', '.join(f'{x:.2%}' for x in spreads)
        text = f'gravity spreads by {values} of its size, limit {MIN_GRAVITY_SPREAD:.0%}'
        raise LogError(f'{what}: along three axes {text}; {others}', about=('bias',))
    slopes = fit_slopes(r[fits], a[fits])
    if (still := still_channels(slopes.slopes, units)).any():
        text = f'{what}: channel {stats.names_of(still)} does not follow gravity'
        raise LogError(text, about=('readings',))
    expected = slopes.offset + a @ slopes.slopes.T
    require_unsaturated(r, expected, what)
    # The affine subspace of three dimensions that readings lie in [T Lemma 5.1, 5.6-5.9].
    point = r[fits].mean(axis=0)
    _, sigma, Vt = np.linalg.svd((r[fits] - point) @ metric.T, full_matrices=False)
    third, fourth = sigma[2:4] / np.sqrt(slopes.n_samples)
    if third <= max(MIN_GAP * fourth, SUBSPACE_ROUND_OFF * np.abs(metric @ point).max()):
        raise LogError(
            f'{what}: the readings do not move along three directions alone (third spread '
            f'{third:.3g}, fourth {fourth:.3g}, ratio at least {MIN_GAP:g}): not one rigid body '
            "at rest, a load too light for the noise, or raw units that need a 'matrix'",
            about=('matrix',),
        )
    basis = Vt[:3].T
    within = metric.T @ basis
    rms = np.sqrt((((r - expected)[fits] @ within) ** 2).mean(axis=0)).max()
    unexplained = float(rms * np.sqrt(slopes.n_samples) / sigma[2])
    # Not projected: off the subspace, the uncertainty of the subspace limits the offset.
    of_bias = slopes.slopes * bias_deviations
    return InSituOffset(
        offset=point + np.linalg.solve(metric, basis @ ((slopes.offset - point) @ within)),
        covariance=slopes.covariance[18:, 18:] + of_bias @ of_bias.T, slopes=slopes,
        singular_values=sigma, gravity_spreads=spreads, unexplained=unexplained, gravity=gravity,
        bias=bias, kept=kept, left_out=left_out,
    )  # fmt: skip


def gravity_spreads(accelerations: Array) -> Array:
    """Return the spread of gravity along its principal axes, over its size, falling, (3,)."""
    sigma = np.linalg.svd(accelerations - accelerations.mean(axis=0), compute_uv=False)
    return np.asarray(sigma / (np.linalg.norm(accelerations) or 1.0))


def accelerometer_bias(accelerations: Array) -> tuple[Array, Array]:
    """
    Return the bias d of |a|^2 = 2 d a + c at rest, and deviations, (3,), infinite if unknown.

    Orientations all around determine it; a swinging leg does not, as gains look the same there.
    accelerations (n, 3) [m/s^2].
    """
    n = len(accelerations)
    if n < MIN_BIAS_SAMPLES or gravity_spreads(accelerations)[2] < MIN_BIAS_SPREAD:
        return np.zeros(3), np.full(3, np.inf)
    rows = np.column_stack([2.0 * accelerations, np.ones(n)])
    squares = (accelerations**2).sum(axis=1)
    half = np.arange(n)
    for _ in range(stats.MAX_ROUNDS):
        found = np.linalg.lstsq(rows[half], squares[half], rcond=None)[0]
        left = np.abs(squares - rows @ found)
        before, half = half, np.sort(np.argsort(left, kind='stable')[: (n + 5) // 2])
        if np.array_equal(half, before):
            break
    # The median of the absolute values of noise is 0.6745 of its deviation.
    noise = float(np.median(left)) / 0.6745
    kept = left <= max(BIAS_DEVIATIONS * noise, 1e-9 * float(squares.max()))
    n = int(kept.sum())
    blocks = np.arange(n) * min(BIAS_BLOCKS, n) // n
    found, covariances = stats.fit_by_blocks(rows[kept], squares[kept, None], blocks)
    return found[:3, 0], np.sqrt(np.diagonal(covariances[0]))[:3]


def rest_samples(
    raw: Array, accelerations: Array, turning: Array | None, bias: Array | None, what: str
) -> tuple[Mask, dict[str, int], float, Array, Array]:
    """
    Return samples at rest (n,), others by reason, the size of gravity, the bias, its deviations.

    raw (n, 6); accelerations (n, 3) [m/s^2]; turning (n, 3) [rad/s]; bias (3,): None: estimated,
    zero if not significant [m/s^2].
    """
    rates = np.zeros((len(raw), 3)) if turning is None else turning
    stats.require_shape('accelerations', accelerations, len(raw), 3)
    stats.require_shape('turning', rates, len(raw), 3)
    finite = np.isfinite(raw).all(axis=1) & np.isfinite(accelerations).all(axis=1)
    if not finite.any():
        raise LogError(f'{what}: no sample has readings of both FT sensor and accelerometer')
    deviations = np.zeros(3)
    if bias is not None:
        bias = numbers('bias', bias, (3,))
    else:
        bias, deviations = accelerometer_bias(accelerations[finite])
        beyond = np.abs(bias) > np.maximum(BIAS_DEVIATIONS * deviations, MIN_BIAS)
        known = bool((deviations < MAX_BIAS_DEVIATION).all())
        if not (known and beyond.any()):
            # What is not subtracted may be there.
            deviations = np.hypot(bias, deviations) if known else np.full(3, stats.USUAL_BIAS)
            bias = np.zeros(3)
    sizes = np.linalg.norm(accelerations - bias, axis=1)
    gravity = float(np.median(sizes[finite]))
    if abs(gravity - GRAVITY) > MAX_GRAVITY_ERROR * GRAVITY:
        text = f'median of the accelerometer {gravity:.3g}, expected {GRAVITY:.2f} m/s^2'
        raise LogError(f"{what}: {text}: state its 'unit'", about=('unit',))
    moves = np.abs(sizes - gravity) > MAX_REST_ACCELERATION
    moves |= np.linalg.norm(rates, axis=1) > MAX_REST_TURNING
    left_out = {NOT_FINITE: int((~finite).sum()), MOVING: int((finite & moves).sum()), TOUCHED: 0}
    return finite & ~moves, left_out, gravity, bias, deviations
