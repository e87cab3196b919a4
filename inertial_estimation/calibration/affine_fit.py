# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Matrix and offset of one FT sensor from wrenches that a model predicts.

wrench = matrix raw - offset [T section 5.1; the offset in N, Nm]. The prior is the workshop
matrix; how much it counts is what predicts blocks of the log best that were not seen. A log tells
only about directions in which the load changed: `AffineFit.shares` says which those are, and along
the others the workshop matrix stays.

What no log of one kind of load shows is a matrix that lets too little through: where the loads are
light beside what is wrong with sensor and model, the best prediction is hardly any. So the gains
are told, and no matrix is taken that is blind in some direction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.affine_types import AffineFit, AffineSettings
from inertial_estimation.calibration.blocks import contiguous_blocks, covariances_by_blocks
from inertial_estimation.calibration.cross_validation import CrossValidation, hold_out_blocks
from inertial_estimation.calibration.outliers import finite_rows, mild_weights, undisturbed
from inertial_estimation.calibration.ridge import Spectrum
from inertial_estimation.errors import LogError, ModelError, ShapeError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

WEIGHTS = 10.0 ** np.arange(-4.0, 4.01, 0.25)
"""Of the prior that are tried: what counts as readings that spread by 0.01 N to 100 N [N^2]."""
START_WEIGHT = 4.0
"""Of the prior while spoiled samples are sought [N^2]."""
ROBUST_STEPS = 10
MOST_LEFT_OUT = 0.5
LIGHT, NO_LOAD = 5.0, 1e-6
"""Predicted loads must spread by so many times the noise of a mean, and by so many newtons."""
CLEAR = 5.0
"""
Times the noise of readings by which the prior spreads at least.

Noise moves readings in every direction while predictions stay, which no held-out block tells from
a sensor that is deaf there.
"""
ORDER, ITS_VARIANCE, NORMAL_MEDIAN = 5, 252.0, 0.4549
"""Differences of which noise is told, their variance over its own, and median over mean square."""


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
    Fit matrix and offset of one sensor to what a model predicts.

    Parameters
    ----------
    raw : ndarray, shape (n, 6)
        Raw readings, NaN where there are none.
    predicted : ndarray, shape (n, 6)
        What the sensor should say, [force; moment] in its frame, NaN where unknown [N, Nm].
    times : ndarray, shape (n,)
        In order [s].
    prior : ndarray, shape (6, 6), optional
        Workshop matrix. Default: the identity, as for readings that are wrenches.
    usable : ndarray of bool, shape (n,), optional
        Samples that nothing else acts in, as `undisturbed_samples` says. Default: it is asked.
    settings : AffineSettings, optional
        How to fit.
    name : str, optional
        What the sensor is called, for messages.

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
        If the log is too short, its loads hardly change, most of it is disturbed, or what fits is
        blind in a direction.

    """
    chosen = settings or AffineSettings()
    samples = _Samples.of(raw, predicted, times, prior, chosen, name)
    noise = _noise(samples.wrenches[samples.present]) if chosen.noise is None else chosen.noise
    _require_loads(samples, noise, name)
    used = samples.undisturbed(chosen) if usable is None else usable & samples.present
    n_present = int(samples.present.sum())
    n_disturbed = n_present - int(used.sum())
    if n_disturbed > MOST_LEFT_OUT * n_present:
        raise LogError(
            f'something else acts in {n_disturbed} of {n_present} samples of {name}: choose a '
            'part of the log in which nothing touches it, or a model of this robot'
        )
    fit = _Problem(samples, used, chosen, noise).solve(name)
    return fit._replace(n_disturbed=n_disturbed)


def undisturbed_samples(
    raw: Array,
    predicted: Array,
    times: Array,
    *,
    prior: Array | None = None,
    settings: AffineSettings | None = None,
    name: str = 'the sensor',
) -> Mask:
    """
    Tell in which samples nothing acts that the prediction does not know of.

    Returns (n,).
    """
    chosen = settings or AffineSettings()
    return _Samples.of(raw, predicted, times, prior, chosen, name).undisturbed(chosen)


class _Samples(NamedTuple):
    """What one sensor says and should say, in newtons."""

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
        """Check what was given."""
        n = len(times)
        matrix = np.eye(6) if prior is None else np.asarray(prior, dtype=np.float64)
        for what, array, shape in (
            ('raw', raw, (n, 6)),
            ('predicted', predicted, (n, 6)),
            ('prior', matrix, (6, 6)),
        ):
            if array.shape != shape:
                raise ShapeError(what, shape, array.shape)
        _require_inverse(matrix, name)
        present = finite_rows(np.hstack([raw, predicted]))
        if not present.any():
            raise LogError(f'no instant has both a reading of {name} and a predicted wrench')
        units = settings.units
        wrenches = raw @ matrix.T / units
        return cls(wrenches, predicted / units - wrenches, times, present, matrix)

    def undisturbed(self, settings: AffineSettings) -> Mask:
        """Tell which samples nothing else acts in."""
        wrenches, missing = self.wrenches[self.present], self.missing[self.present]
        counts: Array | None = None
        left = missing
        for _ in range(ROBUST_STEPS):
            D, offset = Spectrum.of(wrenches, missing, counts).correction(START_WEIGHT)
            left = wrenches @ D.T - offset - missing
            counts = mild_weights(left)
        found = self.present.copy()
        found[self.present] = undisturbed(
            self.times[self.present], left, settings.reach, settings.least_touch
        )
        return found


class _Problem:
    """Usable samples of one sensor in newtons."""

    def __init__(
        self, samples: _Samples, used: Mask, settings: AffineSettings, noise: float
    ) -> None:
        self.wrenches, self.missing = samples.wrenches[used], samples.missing[used]
        self.times, self.prior, self.used = samples.times[used], samples.prior, used
        self.settings, self.noise = settings, noise
        self.blocks = contiguous_blocks(self.times, settings.n_blocks)
        self.spectrum = Spectrum.of(self.wrenches, self.missing)

    def solve(self, name: str) -> AffineFit:
        """Choose the weight and fit."""
        validation, weight = self._weigh(name)
        D, offset = self.spectrum.correction(weight)
        deviations, offset_deviations = self._deviations(D, offset, weight)
        units = self.settings.units
        held_out = np.full(6, np.nan)
        if validation is not None:
            held_out = np.sqrt(validation.squares[np.searchsorted(validation.weights, weight)])
        correction = np.eye(6) + D * np.outer(units, 1.0 / units)
        return AffineFit(
            matrix=correction @ self.prior,
            correction=correction,
            offset=offset * units,
            matrix_deviations=deviations * np.outer(units, 1.0 / units),
            offset_deviations=offset_deviations * units,
            weight=weight,
            validation=validation,
            directions=self.spectrum.directions * units,
            spreads=self.spectrum.sizes,
            shares=self.spectrum.shares(weight),
            gains=_gains(D),
            rms_offset_only=(self.missing - self.missing.mean(axis=0)).std(axis=0) * units,
            rms=_rms(self._left(D, offset)) * units,
            rms_held_out=held_out * units,
            used=self.used,
            n_disturbed=0,
        )

    def _left(self, D: Array, offset: Array) -> Array:
        """Return what a correction leaves, (n, 6) [N]."""
        left: Array = self.wrenches @ D.T - offset - self.missing
        return left

    def _weigh(self, name: str) -> tuple[CrossValidation | None, float]:
        """Return what the weights leave of held-out blocks, and the best usable weight."""
        given = self.settings.weight
        if given is not None:
            self._require_sighted(given, name)
            return None, given
        least = (CLEAR * self.noise) ** 2
        tried = hold_out_blocks(
            self.wrenches, self.missing, self.times, self.blocks,
            gap=self.settings.gap, weights=(least, *WEIGHTS[least < WEIGHTS], np.inf),
        )  # fmt: skip
        gains = [_gains(self.spectrum.correction(weight)[0])[-1] for weight in tried.weights]
        scores = np.where(np.array(gains) >= self.settings.least_gain, tried.scores(), np.inf)
        return tried, float(tried.weights[scores.argmin()])

    def _require_sighted(self, weight: float, name: str) -> None:
        """Raise if a weight that was given makes the sensor blind."""
        least = _gains(self.spectrum.correction(weight)[0])[-1]
        if least < self.settings.least_gain:
            raise LogError(
                f'with a prior weight of {weight:g} N^2 the matrix of {name} lets through '
                f'{least:.2g} of what the prior matrix does in some direction, less than '
                f'{self.settings.least_gain:g}: its loads are too light to tell the matrix; take '
                "heavier ones or a larger 'weight'",
                about=('weight',),
            )

    def _deviations(self, D: Array, offset: Array, weight: float) -> tuple[Array, Array]:
        """Return the deviations of D, (6, 6), and of the offset, (6,) [N]."""
        spectrum, n = self.spectrum, len(self.wrenches)
        shares, V = spectrum.shares(weight), spectrum.directions
        kept = (V.T * (1.0 - shares)) @ V
        left = self._left(D, offset)
        told = np.sqrt(np.mean((D @ V.T) ** 2 * shares) / max(float(shares.mean()), 1e-12))
        prior = max(self.settings.prior_deviation, float(told) if shares.any() else 0.0)
        # Columns of the directions and of the constant: root of the share, and one.
        lengths = np.sqrt(n * _inverse_squares(spectrum, shares)) / n
        basis = np.column_stack([
            (self.wrenches - spectrum.mean) @ V.T * lengths, np.full(n, 1.0 / np.sqrt(n))
        ])  # fmt: skip
        to_unknowns = np.zeros((7, 7))
        to_unknowns[:6, :6], to_unknowns[6, 6] = V.T * lengths, -1.0 / np.sqrt(n)
        deviations, offset_deviations = np.empty((6, 6)), np.empty(6)
        for k, of_basis in enumerate(covariances_by_blocks(basis, left, self.blocks)):
            covariance = to_unknowns @ of_basis @ to_unknowns.T
            covariance[:6, :6] += prior**2 * kept @ kept.T
            # The offset is that of the mean reading: offset = D mean + constant.
            along = np.append(spectrum.mean, 1.0)
            deviations[k] = np.sqrt(np.diag(covariance)[:6])
            offset_deviations[k] = np.sqrt(along @ covariance @ along)
        return deviations, offset_deviations


def _inverse_squares(spectrum: Spectrum, shares: Array) -> Array:
    """Return 1 / (size^2 + weight) where the data have a say, (6,) [1/N^2]."""
    safe = np.where(shares > 0.0, spectrum.sizes, 1.0)
    found: Array = shares / safe**2
    return found


def _noise(wrenches: Array) -> float:
    """Return the noise of readings, root mean square of the six [N]."""
    steps = np.diff(wrenches, n=ORDER, axis=0)
    if not len(steps):
        return 0.0
    squares = np.median(steps**2, axis=0) / (NORMAL_MEDIAN * ITS_VARIANCE)
    return float(np.sqrt(squares.mean()))


def _gains(D: Array) -> Array:
    """Return the singular values of 1 + D, falling, (6,)."""
    found: Array = np.linalg.svd(np.eye(6) + D)[1]
    return found


def _rms(values: Array) -> Array:
    """Return the root mean square of each column."""
    found: Array = np.sqrt((values**2).mean(axis=0))
    return found


def _require_inverse(prior: Array, name: str) -> None:
    """Raise if a prior matrix loses something."""
    if not np.isfinite(prior).all() or np.linalg.matrix_rank(prior) < 6:
        raise ModelError(
            f'the prior matrix of {name} has no inverse: take the workshop matrix, or the '
            'identity where readings are wrenches'
        )


def _require_loads(samples: _Samples, noise: float, name: str) -> None:
    """Raise if the loads change no more than noise does."""
    wrenches = samples.wrenches[samples.present]
    predicted = wrenches + samples.missing[samples.present]
    spread = float(np.sqrt(((predicted - predicted.mean(axis=0)) ** 2).sum(axis=1).mean()))
    if spread <= max(LIGHT * noise / np.sqrt(len(wrenches)), NO_LOAD):
        raise LogError(
            f'the predicted load of {name} spreads by {spread:.2g} N, which tells nothing about '
            f'its matrix beside noise of {noise:.2g} N: bring it to other orientations'
        )
