# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Matrix and offset of an FT sensor from predicted wrenches [T section 5.1].

wrench = (1 + D) prior raw - offset, least squares over D and the offset with a prior of D = 0. The
weight of the prior, the workshop matrix, is chosen by cross-validation over contiguous blocks of
the log. A log determines the matrix only along directions in which the load changes
(`AffineFit.shares`); along the others the prior stays. Light loads are best predicted by a small
matrix, which is wrong for other loads: no matrix is accepted that loses a direction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.residual_statistics import (
    contiguous_blocks,
    covariances_by_blocks,
    finite_rows,
    huber_weights,
    undisturbed,
)
from inertial_estimation.errors import LogError, ModelError, ShapeError
from inertial_estimation.findings import Finding, Level, finding, limit_of

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

WEIGHTS = 10.0 ** np.arange(-4.0, 4.01, 0.25)
"""Of the prior, tried by cross-validation [N^2]."""
START_WEIGHT = 4.0
"""Of the prior while outliers are sought [N^2]."""
ROBUST_ROUNDS = 10
MAX_DISTURBED = 0.5
MIN_LOAD_DEVIATIONS, MIN_LOAD = 5.0, 1e-6
"""Spread of the load over the noise of its mean, and at least [N]."""
MIN_WEIGHT_DEVIATIONS = 5.0
"""Root of the smallest weight over the noise of readings, which held-out blocks do not show."""
NOISE_ORDER, NOISE_VARIANCE, MEDIAN_OF_SQUARES = 5, 252.0, 0.4549
"""Order of differences that give the noise, their variance over its own; of normal noise."""
OWN_SHARE = 0.5
"""Of a direction, from which the matrix there is the log's and not the prior's."""
ROUND_OFF = 1e-12


@dataclass(frozen=True)
class AffineSettings:
    """
    Settings of `fit_affine`.

    Parameters
    ----------
    weight : float, optional
        Of the prior [N^2]: as readings that spread by its root along each direction. Default: by
        cross-validation; infinite: the matrix stays.
    n_blocks : int
        Contiguous parts of the log that are held out in turn.
    gap : float
        Time beside a block that is held out in which nothing is used [s].
    length_scale : float
        Moment over force that counts as equally large [m].
    prior_deviation : float
        Standard deviation of elements of the prior, 1 being the matrix itself.
    min_gain : float
        Smallest singular value of the matrix over the prior.
    reach : float
        Duration of a touch before and after its outliers [s].
    min_touch : float
        Residuals below are no touch, moments over the length [N].
    noise : float, optional
        Of readings, root mean square of the six, moments over the length [N]. Default: from
        differences of neighbours, which filtered readings do not show.

    """

    weight: float | None = None
    n_blocks: int = 10
    gap: float = 0.3
    length_scale: float = 0.1
    prior_deviation: float = 0.1
    min_gain: float = 0.1
    reach: float = 0.1
    min_touch: float = 3.0
    noise: float | None = None

    @property
    def units(self) -> Array:
        """Divisor that turns wrenches into newtons, shape (6,)."""
        return np.repeat([1.0, self.length_scale], 3)

    def __post_init__(self) -> None:
        """Check the ranges."""
        for names, least, most in (
            (('length_scale', 'prior_deviation'), np.nextafter(0.0, 1.0), np.finfo(float).max),
            (('gap', 'reach', 'min_touch', 'noise'), 0.0, np.finfo(float).max),
            (('weight',), 0.0, np.inf),
            (('min_gain',), 0.0, np.nextafter(1.0, 0.0)),
        ):
            for name in names:
                value = getattr(self, name)
                if value is not None and not least <= value <= most:
                    raise ModelError(
                        f"'{name}' is {value}, expected {least:g} to {most:g}", about=(name,)
                    )


class CrossValidation(NamedTuple):
    """Residuals of held-out blocks by weight of the prior."""

    weights: Array
    """Rising, the last infinite, shape (g,) [N^2]."""
    squares: Array
    """Mean square residual of each component, shape (g, 6) [N^2]."""

    def scores(self) -> Array:
        """Return the mean over components of squares over their best, (g,): least is best."""
        best = self.squares.min(axis=0)
        floor = 1e-24 * max(1.0, float(self.squares.max()))
        found: Array = (self.squares / np.maximum(best, floor)).mean(axis=1)
        return found


class AffineFit(NamedTuple):
    """
    Matrix and offset of a sensor.

    Attributes
    ----------
    matrix : ndarray, shape (6, 6)
        Applied to raw readings.
    offset : ndarray, shape (6,)
        Subtracted, [force; moment] in the sensor's frame [N, Nm].
    correction : ndarray, shape (6, 6)
        Matrix times inverse prior matrix.
    matrix_deviations : ndarray, shape (6, 6)
        Of the correction, errors of the prior included.
    offset_deviations : ndarray, shape (6,)
    weight : float
        Of the prior [N^2].
    validation : CrossValidation or None
        None if the weight was given.
    directions : ndarray, shape (6, 6)
        Principal directions of readings, rows, wrenches by the prior matrix, largest spread first.
    spreads : ndarray, shape (6,)
        Root mean square of the readings along each [N].
    shares : ndarray, shape (6,)
        Share of the log, not the prior, in the matrix along each, 0 to 1.
    gains : ndarray, shape (6,)
        Singular values of the correction, moments over the length, falling.
    rms_offset_only, rms, rms_held_out : ndarray, shape (6,)
        Residuals with the prior matrix and the best offset; with the fit; of held-out blocks, NaN
        if the weight was given [N, Nm].
    used : ndarray of bool, shape (n,)
        Samples that were used.
    n_disturbed : int
        Samples with values that were left out as touched.

    """

    matrix: Array
    offset: Array
    correction: Array
    matrix_deviations: Array
    offset_deviations: Array
    weight: float
    validation: CrossValidation | None
    directions: Array
    spreads: Array
    shares: Array
    gains: Array
    rms_offset_only: Array
    rms: Array
    rms_held_out: Array
    used: Mask
    n_disturbed: int

    def findings(
        self, subject: str, predicted: Array, settings: AffineSettings
    ) -> Iterator[Finding]:
        """Yield what speaks against the fit, errors first; predicted (n, 6), used samples."""
        units = settings.units
        ratio = self.correction / np.outer(units, 1.0 / units)
        pair = (ratio, np.linalg.inv(ratio))
        change = max(float(np.linalg.norm(one - np.eye(6), 2)) for one in pair)
        if change > limit_of('matrix_change'):
            low, high = self.gains[-1], self.gains[0]
            text = (
                f'matrix differs from the former one by {change:.2g} times that along some '
                f'direction, gains {low:.2g} to {high:.2g}'
            )
            yield finding('matrix_change', subject, level=Level.ERROR, what=text, change=change)
        load = float(np.linalg.norm(predicted.std(axis=0) / units))
        left = float(np.linalg.norm(self.rms / units))
        own = self.shares >= OWN_SHARE
        if left > limit_of('residual') * load and (own.any() or left > settings.min_touch):
            yield finding(
                'residual', subject, level=Level.ERROR, what='prediction', share=left / load
            )
        if not own.all():
            text = (
                f'load hardly changes along {(~own).sum()} of 6 directions, along which the '
                'prior matrix stays'
            )
            yield finding('unexcited', subject, what=text)


def fit_affine(
    raw: Array,
    predicted: Array,
    times: Array,
    *,
    prior: Array | None = None,
    usable: Mask | None = None,
    settings: AffineSettings | None = None,
    name: str = 'the sensor',
) -> AffineFit:
    """
    Fit matrix and offset of one sensor to predicted wrenches.

    Parameters
    ----------
    raw : ndarray, shape (n, 6)
        Raw readings, NaN where there are none.
    predicted : ndarray, shape (n, 6)
        Wrenches, [force; moment] in the sensor's frame, NaN where unknown [N, Nm].
    times : ndarray, shape (n,)
        In order [s].
    prior : ndarray, shape (6, 6), optional
        Workshop matrix. Default: the identity, as for readings that are wrenches.
    usable : ndarray of bool, shape (n,), optional
        Samples that nothing else acts in. Default: `undisturbed_samples`.
    settings : AffineSettings, optional
        Defaults if not given.
    name : str
        Name of the sensor in errors.

    Returns
    -------
    AffineFit

    Raises
    ------
    ShapeError
        If the arrays do not belong together.
    ModelError
        If the prior matrix has no inverse.
    LogError
        If the log is too short, its loads hardly change, most of it is disturbed, or the weight
        makes a matrix that loses a direction.

    """
    chosen = settings or AffineSettings()
    samples = _Samples.of(raw, predicted, times, prior, chosen, name)
    present = samples.wrenches[samples.present]
    noise = _noise(present) if chosen.noise is None else chosen.noise
    loads = present + samples.missing[samples.present]
    spread = float(np.sqrt(((loads - loads.mean(axis=0)) ** 2).sum(axis=1).mean()))
    if spread <= max(MIN_LOAD_DEVIATIONS * noise / np.sqrt(len(present)), MIN_LOAD):
        raise LogError(
            f'the predicted load of {name} spreads by {spread:.2g} N, noise {noise:.2g} N'
        )
    used = samples.undisturbed(chosen) if usable is None else usable & samples.present
    n_disturbed = len(present) - int(used.sum())
    if n_disturbed > MAX_DISTURBED * len(present):
        raise LogError(
            f'{n_disturbed} of {len(present)} samples of {name} are disturbed, limit '
            f'{MAX_DISTURBED:.0%}'
        )
    return _Problem(samples, used, chosen, noise).solve(name)._replace(n_disturbed=n_disturbed)


def undisturbed_samples(
    raw: Array,
    predicted: Array,
    times: Array,
    *,
    prior: Array | None = None,
    settings: AffineSettings | None = None,
    name: str = 'the sensor',
) -> Mask:
    """Return the samples (n,) in which nothing acts but the predicted wrench."""
    chosen = settings or AffineSettings()
    return _Samples.of(raw, predicted, times, prior, chosen, name).undisturbed(chosen)


class _Samples(NamedTuple):
    """Readings and predictions of one sensor, in newtons."""

    wrenches: Array
    """By the prior matrix, (n, 6) [N]."""
    missing: Array
    """Predicted minus that, (n, 6) [N]."""
    times: Array
    present: Mask
    """Where both are known."""
    prior: Array

    @classmethod
    def of(
        cls,
        raw: Array,
        predicted: Array,
        times: Array,
        prior: Array | None,
        settings: AffineSettings,
        name: str,
    ) -> _Samples:
        """Check the arguments, and convert them."""
        n = len(times)
        matrix = np.eye(6) if prior is None else np.asarray(prior, dtype=np.float64)
        for what, array, shape in (
            ('raw', raw, (n, 6)),
            ('predicted', predicted, (n, 6)),
            ('prior', matrix, (6, 6)),
        ):
            if array.shape != shape:
                raise ShapeError(what, shape, array.shape)
        if not np.isfinite(matrix).all() or np.linalg.matrix_rank(matrix) < 6:
            raise ModelError(f'the prior matrix of {name} has no inverse')
        present = finite_rows(np.hstack([raw, predicted]))
        if not present.any():
            raise LogError(f'no sample has both a reading of {name} and a predicted wrench')
        wrenches = raw @ matrix.T / settings.units
        return cls(wrenches, predicted / settings.units - wrenches, times, present, matrix)

    def undisturbed(self, settings: AffineSettings) -> Mask:
        """Return the samples (n,) that nothing else acts in, by a robust fit."""
        wrenches, missing = self.wrenches[self.present], self.missing[self.present]
        weights: Array | None = None
        left = missing
        for _ in range(ROBUST_ROUNDS):
            D, offset = Spectrum.of(wrenches, missing, weights).correction(START_WEIGHT)
            left = wrenches @ D.T - offset - missing
            weights = huber_weights(left)
        found = self.present.copy()
        found[self.present] = undisturbed(
            self.times[self.present], left, settings.reach, settings.min_touch
        )
        return found


class Spectrum(NamedTuple):
    """Readings decomposed once for all weights of the prior."""

    mean: Array
    """Of the readings, shape (6,) [N]."""
    sizes: Array
    """Root mean square along each direction, about the mean, falling, shape (6,) [N]."""
    directions: Array
    """Principal axes of the readings, rows, shape (6, 6)."""
    target_mean: Array
    """Of what is missing, shape (6,) [N]."""
    projected: Array
    """Correlation of what is missing with each direction, rows, shape (6, 6) [N]."""

    @classmethod
    def of(cls, wrenches: Array, missing: Array, weights: Array | None = None) -> Spectrum:
        """Decompose; wrenches (n, 6) [N], missing (n, 6) [N], weights (n,)."""
        n = len(wrenches)
        parts = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
        mean, target_mean = parts @ wrenches, parts @ missing
        root = np.sqrt(parts)[:, None]
        left, sizes, directions = np.linalg.svd(root * (wrenches - mean), full_matrices=False)
        projected = left.T @ (root * (missing - target_mean))
        return cls(mean, sizes, directions, target_mean, projected)

    def correction(self, weight: float) -> tuple[Array, Array]:
        """Return D (6, 6) and the offset (6,) [N]; weight of the prior [N^2]."""
        filtered = self._filter(weight)[:, None] * self.projected
        D: Array = filtered.T @ self.directions
        offset: Array = D @ self.mean - self.target_mean
        return D, offset

    def shares(self, weight: float) -> Array:
        """Return the share of the data along each direction, (6,); weight [N^2]."""
        found: Array = self._filter(weight) * self.sizes
        return found

    def _filter(self, weight: float) -> Array:
        """Return the factor of the projections along each direction, (6,) [1/N]."""
        kept = self.sizes > ROUND_OFF * max(self.sizes[0], ROUND_OFF)
        if np.isinf(weight):
            return np.zeros(len(self.sizes))
        safe = np.where(kept, self.sizes, 1.0)
        found: Array = np.where(kept, safe / (safe**2 + weight), 0.0)
        return found


class _Problem:
    """Usable samples of one sensor in newtons."""

    def __init__(
        self, samples: _Samples, used: Mask, settings: AffineSettings, noise: float
    ) -> None:
        self._wrenches, self._missing = samples.wrenches[used], samples.missing[used]
        self._times, self._prior, self._used = samples.times[used], samples.prior, used
        self._settings, self._noise = settings, noise
        self._blocks = contiguous_blocks(self._times, settings.n_blocks)
        self._spectrum = Spectrum.of(self._wrenches, self._missing)

    def solve(self, name: str) -> AffineFit:
        """Choose the weight and fit."""
        spectrum, units = self._spectrum, self._settings.units
        validation, weight = self._choose_weight(name)
        D, offset = spectrum.correction(weight)
        deviations, offset_deviations = self._deviations(D, offset, weight)
        held_out = np.full(6, np.nan)
        if validation is not None:
            held_out = np.sqrt(validation.squares[np.searchsorted(validation.weights, weight)])
        correction = np.eye(6) + D * np.outer(units, 1.0 / units)
        return AffineFit(
            matrix=correction @ self._prior,
            correction=correction,
            offset=offset * units,
            matrix_deviations=deviations * np.outer(units, 1.0 / units),
            offset_deviations=offset_deviations * units,
            weight=weight,
            validation=validation,
            directions=spectrum.directions * units,
            spreads=spectrum.sizes,
            shares=spectrum.shares(weight),
            gains=_gains(D),
            rms_offset_only=(self._missing - self._missing.mean(axis=0)).std(axis=0) * units,
            rms=np.sqrt((self._left(D, offset) ** 2).mean(axis=0)) * units,
            rms_held_out=held_out * units,
            used=self._used,
            n_disturbed=0,
        )

    def _left(self, D: Array, offset: Array) -> Array:
        """Return the residuals of a correction, (n, 6) [N]."""
        left: Array = self._wrenches @ D.T - offset - self._missing
        return left

    def _choose_weight(self, name: str) -> tuple[CrossValidation | None, float]:
        """Return the cross-validation, and the best weight whose matrix loses no direction."""
        given, least_gain = self._settings.weight, self._settings.min_gain
        if given is not None:
            gain = _gains(self._spectrum.correction(given)[0])[-1]
            if gain < least_gain:
                raise LogError(
                    f"with 'weight' {given:g} N^2 the smallest gain of the matrix of {name} over "
                    f'the prior is {gain:.2g}, limit {least_gain:g}', about=('weight',),
                )  # fmt: skip
            return None, given
        least = (MIN_WEIGHT_DEVIATIONS * self._noise) ** 2
        tried = self._hold_out((least, *WEIGHTS[least < WEIGHTS], np.inf))
        gains = [_gains(self._spectrum.correction(weight)[0])[-1] for weight in tried.weights]
        scores = np.where(np.array(gains) >= least_gain, tried.scores(), np.inf)
        return tried, float(tried.weights[scores.argmin()])

    def _hold_out(self, weights: tuple[float, ...]) -> CrossValidation:
        """Fit without each block in turn, and predict it; weights [N^2]."""
        squares, gap = np.zeros((len(weights), 6)), self._settings.gap
        for block in range(int(self._blocks[-1]) + 1):
            held_out = self._blocks == block
            inside = self._times[held_out]
            used = (self._times < inside[0] - gap) | (self._times > inside[-1] + gap)
            if used.sum() <= 6:
                raise LogError(f'gaps of {gap:g} s beside a block leave {used.sum()} samples')
            spectrum = Spectrum.of(self._wrenches[used], self._missing[used])
            for k, weight in enumerate(weights):
                D, offset = spectrum.correction(weight)
                left = self._wrenches[held_out] @ D.T - offset - self._missing[held_out]
                squares[k] += (left**2).sum(axis=0)
        return CrossValidation(np.array(weights), squares / len(self._wrenches))

    def _deviations(self, D: Array, offset: Array, weight: float) -> tuple[Array, Array]:
        """Return the deviations of D, (6, 6), and of the offset, (6,) [N]."""
        spectrum, n = self._spectrum, len(self._wrenches)
        shares, V = spectrum.shares(weight), spectrum.directions
        kept = (V.T * (1.0 - shares)) @ V
        left = self._left(D, offset)
        own = np.sqrt(np.mean((D @ V.T) ** 2 * shares) / max(float(shares.mean()), ROUND_OFF))
        prior = max(self._settings.prior_deviation, float(own) if shares.any() else 0.0)
        # 1 / (size^2 + weight) where the data have a share.
        safe = np.where(shares > 0.0, spectrum.sizes, 1.0)
        lengths = np.sqrt(n * (shares / safe**2)) / n
        basis = np.column_stack([
            (self._wrenches - spectrum.mean) @ V.T * lengths, np.full(n, 1.0 / np.sqrt(n))
        ])  # fmt: skip
        to_unknowns = np.zeros((7, 7))
        to_unknowns[:6, :6], to_unknowns[6, 6] = V.T * lengths, -1.0 / np.sqrt(n)
        # The offset is that of the mean reading: offset = D mean + constant.
        along = np.append(spectrum.mean, 1.0)
        deviations, offset_deviations = np.empty((6, 6)), np.empty(6)
        for k, of_basis in enumerate(covariances_by_blocks(basis, left, self._blocks)):
            covariance = to_unknowns @ of_basis @ to_unknowns.T
            covariance[:6, :6] += prior**2 * kept @ kept.T
            deviations[k] = np.sqrt(np.diag(covariance)[:6])
            offset_deviations[k] = np.sqrt(along @ covariance @ along)
        return deviations, offset_deviations


def _noise(wrenches: Array) -> float:
    """Return the noise of readings, root mean square of the six [N]."""
    steps = np.diff(wrenches, n=NOISE_ORDER, axis=0)
    if not len(steps):
        return 0.0
    squares = np.median(steps**2, axis=0) / (MEDIAN_OF_SQUARES * NOISE_VARIANCE)
    return float(np.sqrt(squares.mean()))


def _gains(D: Array) -> Array:
    """Return the singular values of 1 + D, falling, (6,)."""
    found: Array = np.linalg.svd(np.eye(6) + D)[1]
    return found
