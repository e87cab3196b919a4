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
from typing import NamedTuple

import numpy as np

import inertial_estimation.calibration.residual_statistics as stats
from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.errors import LogError, ModelError
from inertial_estimation.findings import Finding, finding, limit_of
from inertial_estimation.model.ft_calibration import MATRIX_DEVIATION

WEIGHTS = 10.0 ** np.arange(-4.0, 4.01, 0.25)
"""Of the prior, tried by cross-validation [N^2]."""
START_WEIGHT = 4.0
"""Of the prior while outliers are sought [N^2]."""
MIN_LOAD_DEVIATIONS, MIN_LOAD = 5.0, 1e-6
"""Spread of the load over the noise of its mean, and at least [N]."""
MIN_WEIGHT_DEVIATIONS = 5.0
"""Root of the smallest weight over the noise of readings, which held-out blocks do not show."""
OWN_SHARE = 0.5
"""Of a direction, from which the matrix there is the log's and not the prior's."""
GAP = 0.3
"""Time beside a block that is held out in which nothing is used [s]."""
MIN_GAIN = 0.1
"""Smallest singular value of the matrix over the prior."""
ROUND_OFF, TINY = 1e-12, 1e-300


class AffineFit(NamedTuple):
    """Matrix and offset of a sensor."""

    matrix: Array
    """Applied to raw readings, shape (6, 6)."""
    offset: Array
    """Subtracted, [force; moment] in the sensor's frame, shape (6,) [N, Nm]."""
    correction: Array
    """Matrix times inverse prior matrix, shape (6, 6)."""
    matrix_deviations: Array
    """Of the correction, errors of the prior included, shape (6, 6)."""
    offset_deviations: Array
    """Shape (6,)."""
    weight: float
    """Of the prior [N^2]."""
    directions: Array
    """Principal axes of the readings, rows, moments in Nm, shape (6, 6)."""
    spreads: Array
    """Root mean square of the readings along each, falling, shape (6,) [N]."""
    shares: Array
    """Of each direction, 1: the log determines the matrix, 0: the prior stays, shape (6,)."""
    rms_offset_only: Array
    rms: Array
    rms_held_out: Array
    """Residuals of the best offset alone, the fit, and held-out blocks, shape (6,) [N, Nm]."""
    noise: float
    """Of readings, root mean square of the six, moments over 0.1 m [N]."""
    used: Mask
    """Samples that were used, shape (n,)."""
    n_disturbed: int
    """Samples with values that were left out."""

    def findings(self, subject: str, predicted: Array) -> Iterator[Finding]:
        """Yield findings about the fit, errors first; predicted (n, 6), used samples [N, Nm]."""
        own, limit = self.shares >= OWN_SHARE, limit_of('scale')
        change = matrix_change(self.correction / np.outer(stats.SCALE, 1.0 / stats.SCALE))
        load = float(np.linalg.norm(predicted.std(axis=0) / stats.SCALE))
        factor = float(np.linalg.norm(self.spreads)) / load
        size = np.sqrt((predicted**2).mean(axis=0))
        share = self.n_disturbed / (self.n_disturbed + len(predicted))
        errors = [*stats.contradictions(
            subject, 'prediction', self.rms, size, self.noise * stats.SCALE, share
        )]  # fmt: skip
        if change > limit_of('matrix_change'):
            yield finding('matrix_change', subject, change=change)
        yield from errors
        if (errors or change > limit_of('matrix_change')) and not 1.0 / limit < factor < limit:
            yield finding('scale', subject, what='readings in motion', factor=factor)
        if not own.all():
            text = f'load hardly changes along {(~own).sum()} of 6 directions: the prior stays'
            yield finding('unexcited', subject, what=text)


def matrix_change(ratio: Array) -> float:
    """Return the largest change of a wrench by a matrix, as a share, either way; ratio (6, 6)."""
    pair = (ratio, np.linalg.inv(ratio))
    return max(float(np.linalg.norm(one - np.eye(6), 2)) for one in pair)


def fit_affine(
    raw: Array,
    predicted: Array,
    times: Array,
    *,
    prior: Array | None = None,
    usable: Mask | None = None,
    noise: float,
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
    noise : float
        Of readings, root mean square of the six, moments over 0.1 m [N].
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
        If the prior matrix has no inverse, or the noise is negative.
    LogError
        If the log is too short, or its loads hardly change.

    """
    if not 0.0 <= noise < np.inf:
        raise ModelError(f"'noise' is {noise} N, expected 0 or more", about=('noise',))
    w, missing, present = _in_newtons(raw, predicted, times, prior, name)
    n, loads = int(present.sum()), (w + missing)[present]
    spread = float(np.linalg.norm(loads.std(axis=0)))
    if spread <= max(MIN_LOAD_DEVIATIONS * noise / np.sqrt(n), MIN_LOAD):
        raise LogError(f'the load of {name} spreads by {spread:.2g} N, noise {noise:.2g} N')
    if usable is None:
        usable = undisturbed_samples(raw, predicted, times, prior, name)
    used = usable & present
    w, missing, times = w[used], missing[used], times[used]
    blocks, ridge = stats.contiguous_blocks(times), Ridge.of(w, missing)
    weight, held_out = _cross_validate(w, missing, times, blocks, noise)
    D, offset = ridge.solve(weight)
    left, shares = w @ D.T - offset - missing, ridge.shares(weight)
    scale = np.outer(stats.SCALE, 1.0 / stats.SCALE)
    deviations, offset_deviations = _deviations(w, ridge, D, left, shares, blocks)
    correction = np.eye(6) + D * scale
    return AffineFit(
        matrix=correction if prior is None else correction @ prior, correction=correction,
        offset=offset * stats.SCALE, matrix_deviations=deviations * scale,
        offset_deviations=offset_deviations * stats.SCALE, weight=weight,
        directions=ridge.directions * stats.SCALE, spreads=ridge.sizes, shares=shares,
        rms_offset_only=missing.std(axis=0) * stats.SCALE,
        rms=np.sqrt((left**2).mean(axis=0)) * stats.SCALE, rms_held_out=held_out * stats.SCALE,
        noise=noise, used=used, n_disturbed=n - len(w),
    )  # fmt: skip


def undisturbed_samples(
    raw: Array,
    predicted: Array,
    times: Array,
    prior: Array | None = None,
    name: str = 'the sensor',
) -> Mask:
    """Return the samples (n,) in which nothing acts but the predicted wrench."""
    w, missing, present = _in_newtons(raw, predicted, times, prior, name)
    present[present] = stats.undisturbed(
        w[present], missing[present], times[present], START_WEIGHT
    )
    return present


def _in_newtons(
    raw: Array, predicted: Array, times: Array, prior: Array | None, name: str
) -> tuple[Array, Array, Mask]:
    """Return readings by the prior matrix, what is missing of the prediction, and where known."""
    matrix = np.eye(6) if prior is None else prior
    stats.require_shape('raw', raw, len(times), 6)
    stats.require_shape('predicted', predicted, len(times), 6)
    stats.require_shape('prior', matrix, 6, 6)
    if not np.isfinite(matrix).all() or np.linalg.matrix_rank(matrix) < 6:
        raise ModelError(f'the prior matrix of {name} has no inverse')
    present = np.isfinite(raw).all(axis=1) & np.isfinite(predicted).all(axis=1)
    if not present.any():
        raise LogError(f'no sample has both a reading of {name} and a predicted wrench')
    w = raw @ matrix.T / stats.SCALE
    return w, predicted / stats.SCALE - w, np.asarray(present)


class Ridge(NamedTuple):
    """Least squares missing = D w - offset, decomposed once for all weights of the prior D = 0."""

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
    def of(cls, w: Array, missing: Array) -> Ridge:
        """Decompose readings and what is missing, (n, 6) [N]."""
        mean, target_mean = w.mean(axis=0), missing.mean(axis=0)
        left, values, directions = np.linalg.svd(w - mean, full_matrices=False)
        sizes = values * (values > ROUND_OFF * max(values[0], ROUND_OFF)) / np.sqrt(len(w))
        projected = left.T @ (missing - target_mean) / np.sqrt(len(w))
        return cls(mean, sizes, directions, target_mean, projected)

    def shares(self, weight: float) -> Array:
        """Return the share of the data along each direction, (6,); weight of the prior [N^2]."""
        return np.asarray(self.sizes**2 / np.maximum(self.sizes**2 + weight, TINY))

    def solve(self, weight: float) -> tuple[Array, Array]:
        """Return D (6, 6) and the offset (6,) [N]; weight of the prior [N^2]."""
        gains = self.shares(weight) / np.maximum(self.sizes, TINY)
        D: Array = (gains[:, None] * self.projected).T @ self.directions
        return D, D @ self.mean - self.target_mean


def _cross_validate(
    w: Array, missing: Array, times: Array, blocks: Indices, noise: float
) -> tuple[float, Array]:
    """Return the best weight whose matrix loses no direction, and held-out residuals, (6,) [N]."""
    least = (MIN_WEIGHT_DEVIATIONS * noise) ** 2
    weights = (least, *WEIGHTS[least < WEIGHTS].tolist(), np.inf)
    squares = np.zeros((len(weights), 6))
    for block in range(stats.N_BLOCKS):
        inside = blocks == block
        first, last = times[inside][[0, -1]]
        others = (times < first - GAP) | (times > last + GAP)
        if others.sum() <= 6:
            raise LogError(f'gaps of {GAP:g} s beside a block leave {others.sum()} samples')
        ridge = Ridge.of(w[others], missing[others])
        for k, weight in enumerate(weights):
            D, offset = ridge.solve(weight)
            squares[k] += ((w[inside] @ D.T - offset - missing[inside]) ** 2).sum(axis=0)
    squares /= len(times)
    whole = Ridge.of(w, missing)
    matrices = np.array([np.eye(6) + whole.solve(weight)[0] for weight in weights])
    gains = np.linalg.svd(matrices, compute_uv=False)[:, -1]
    floor = 1e-24 * max(1.0, float(squares.max()))
    # Mean over components of squares over their best.
    scores = (squares / np.maximum(squares.min(axis=0), floor)).mean(axis=1)
    best = int(np.where(gains >= MIN_GAIN, scores, np.inf).argmin())
    return weights[best], np.sqrt(squares[best])


def _deviations(
    w: Array, ridge: Ridge, D: Array, left: Array, shares: Array, blocks: Indices
) -> tuple[Array, Array]:
    """Return the deviations of D, (6, 6), and of the offset, (6,) [N]."""
    n, V = len(left), ridge.directions
    # An error of the prior stays along the share that the data do not determine.
    kept = (V.T * (1.0 - shares)) @ V
    own = np.sqrt(np.mean((D @ V.T) ** 2 * shares) / max(float(shares.mean()), ROUND_OFF))
    prior = max(MATRIX_DEVIATION, float(own))
    # 1 / (size^2 + weight) where the data have a share.
    lengths = np.sqrt(shares / n) / np.where(shares > 0.0, ridge.sizes, 1.0)
    basis = np.column_stack([(w - ridge.mean) @ V.T * lengths, np.full(n, 1.0 / np.sqrt(n))])
    to_unknowns = np.zeros((7, 7))
    to_unknowns[:6, :6], to_unknowns[6, 6] = V.T * lengths, -1.0 / np.sqrt(n)
    covariances = to_unknowns @ stats.covariances_by_blocks(basis, left, blocks) @ to_unknowns.T
    covariances[:, :6, :6] += prior**2 * kept @ kept.T
    # The offset is that of the mean reading: offset = D mean + constant.
    along = np.append(ridge.mean, 1.0)
    deviations = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))[:, :6]
    return deviations, np.sqrt(along @ covariances @ along)
