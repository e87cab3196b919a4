# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Preparation of a recorded log: low pass without delay, and derivatives.

All signals go through the same zero-phase low pass, so that what meets in an equation was filtered
alike, and derivatives are differences of what it leaves. It oscillates at the edges of what it
sees, so they are cut off at each gap of the log.

Noise of derivatives counts as motion without weight, and moves slow links towards zero. It grows
with the fifth power of the cutoff, which therefore follows from the spectrum of the motion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Mask, Stamps
from inertial_estimation.errors import ConfigError, LogError
from inertial_estimation.sample import SampleBatch

DERIVATIVE_POINTS = 7
"""Samples of a derivative: exact for polynomials of degree 6, 2e-6 low at 4 Hz and 100 Hz."""
EDGE = DERIVATIVE_POINTS - 1
"""Samples at each end where the second derivative of a position is wrong."""
MAX_JITTER = 0.01
"""Of stamps over the period before signals are interpolated."""
MAX_ORDER = 10
"""Of the low pass, which oscillates 6 times as long as one of the first order."""
MAX_CUTOFF_SHARE = 0.4
"""Cutoff over the rate that is kept, with next to nothing above half of it."""
ROUND_OFF = 1e-12
"""Relative change that a low pass leaves of a constant."""
MIN_SAMPLES = 10
"""That decimation must leave."""
RESPONSE_FREQUENCIES = 1 << 15
"""At which the filter is integrated."""
MAX_MOTION_CUTOFF = 10.0
"""Of a low pass that follows from the motion [Hz]; those of real arms are 4 to 25 Hz by hand."""
MOTION_OVER_NOISE = 30.0
"""
Power of the motion over that of noise up to which frequencies are kept. On simulated arms errors
are as stated from 10 to 100; with less they are larger on slow motions, or smaller on fast ones.
"""
MAX_NOISE_SHARE = 0.02
"""Of noise in the power of accelerations, by which inertias are too small."""
EDGE_PERIODS, MAX_EDGE_SHARE = 2.0, 0.1
"""Periods of such a cutoff that are cut off at each edge, and the share of a log they may be."""
HIGHEST_ORDER = 2
"""Of derivatives that are accelerations."""
MEDIAN_OF_MEAN = np.log(2.0)
"""Median over mean of the power of noise at one frequency."""
SIGNALS = (
    'positions', 'velocities', 'angular_velocities', 'proper_accelerations', 'ft_readings',
    'efforts', 'ft_temperatures',
)  # fmt: skip


@dataclass(frozen=True)
class Preparation:
    """Filter settings of a log."""

    cutoff: float | None = None
    """Of the low pass that all signals go through [Hz]; 0: none; None: see `MotionSpectrum`."""
    order: int = 4
    """Of the Butterworth filter, which runs forwards and backwards."""
    edges: float = 0.2
    """Cut off at the start, the end and each gap, where the filter oscillates [s]."""
    largest_gap: float = 0.1
    """Longer gaps between stamps are not bridged [s]."""
    every: int = 0
    """Decimation: one of this number is kept; 0: one, or as many as a cutoff of None allows."""
    measured_velocities: bool = False
    """Take joint velocities from the log, instead of derivatives of positions."""

    def __post_init__(self) -> None:
        for name, least, most in (
            ('cutoff', 0.0, np.inf), ('edges', 0.0, np.inf),
            ('largest_gap', np.finfo(float).tiny, np.inf),
            ('order', 1, MAX_ORDER), ('every', 0, np.inf),
        ):  # fmt: skip
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and least <= value <= most):
                raise ConfigError(f'{name} is {value}, expected {least:.3g} to {most:g}')


class Prepared(NamedTuple):
    """A filtered log."""

    samples: SampleBatch
    """Filtered, with derivatives."""
    period: float
    """Median period of the recorded stamps [s]."""
    how: Preparation
    """With the cutoff that was used."""
    noise_share: float
    """Of noise in the power of the accelerations."""


class MotionSpectrum(NamedTuple):
    """Power of the accelerations of joints and gyroscopes, and of the noise in it."""

    frequencies: Array
    """Increasing, shape (n,) [Hz]."""
    power: Array
    """Shape (n,)."""
    noise: Array
    """Shape (n,)."""

    @classmethod
    def of(cls, signals: Iterable[tuple[Array, int]], step: float) -> MotionSpectrum:
        """
        Return the spectrum of evenly spaced signals of one part of a log.

        signals: (n, k), and the order of the derivative that is an acceleration. Noise is white
        and seen above half of all frequencies.
        """
        from scipy.fft import rfft, rfftfreq
        from scipy.signal.windows import tukey

        power, noise, frequencies = np.zeros(1), np.zeros(1), np.zeros(1)
        for values, order in signals:
            differences = np.diff(values, order, axis=0)[: len(values) - HIGHEST_ORDER]
            n = len(differences)
            taper, shares = tukey(n, 2.0 * MAX_EDGE_SHARE)[:, None], rfftfreq(n)[:, None]
            seen = np.abs(rfft(taper * differences, axis=0)) ** 2 / (n * step ** (2 * order))
            white = (2.0 * np.sin(np.pi * shares)) ** (2 * order)
            half = len(shares) // 2
            level = np.median(seen[half:] / white[half:], axis=0) / MEDIAN_OF_MEAN
            frequencies = shares[:, 0] / step
            power = power + seen.sum(axis=1)
            noise = noise + (level * white).sum(axis=1)
        return cls(frequencies, power, noise)

    @classmethod
    def together(cls, parts: Iterable[MotionSpectrum]) -> MotionSpectrum:
        """Return the spectrum of all parts."""
        empty = cls(np.zeros(1), np.zeros(1), np.zeros(1))
        joined = [np.concatenate(columns) for columns in zip(empty, *parts, strict=True)]
        order = np.argsort(joined[0], kind='stable')
        return cls(*(column[order] for column in joined))

    @property
    def cutoff(self) -> float:
        """
        Frequency up to which motion outweighs noise [Hz].

        There the sum of MOTION_OVER_NOISE noise - power up to it is least.
        """
        sums = np.cumsum(MOTION_OVER_NOISE * self.noise - self.power)
        return float(self.frequencies[np.argmin(sums)])

    def noise_share(self, how: Preparation) -> float:
        """Return the share of noise in the accelerations behind the low pass."""
        kept = np.ones(len(self.frequencies))
        if how.cutoff:
            # A Butterworth filter forwards and backwards.
            kept = (1.0 + (self.frequencies / how.cutoff) ** (2 * how.order)) ** -2
        power = float(kept @ self.power)
        return float(kept @ self.noise) / power if power > 0.0 else 0.0


def prepare(samples: SampleBatch, how: Preparation) -> Prepared:
    """Filter a log and take its derivatives."""
    stamps = samples.stamp_ns
    t, back = stamps * 1e-9, np.flatnonzero(np.diff(stamps) <= 0)
    if len(t) < 2:
        raise LogError(f'{len(t)} samples are too few for derivatives')
    if len(back):
        raise LogError(
            f'{len(back)} of {len(t)} stamps do not increase, the first at sample {back[0] + 2}, '
            f'after {t[back[0]] - t[0]:.6g} s'
        )
    period = float(np.median(np.diff(t)))
    if how.cutoff and how.cutoff >= 0.5 / period:
        raise ConfigError(
            f'cutoff is {how.cutoff:g} Hz, expected less than {0.5 / period:.4g} Hz, half the '
            f'rate of the log'
        )
    cuts = np.flatnonzero(np.diff(t) > how.largest_gap) + 1
    spans = [*pairwise([0, *cuts.tolist(), len(t)])]
    spectrum = MotionSpectrum.together(
        _spectrum(samples.take(slice(*span)), period, how)
        for span in spans
        if span[1] - span[0] > MIN_SAMPLES
    )
    every = max(1, how.every)
    if how.cutoff is None:
        longest = max(period, *(float(t[stop - 1] - t[start]) for start, stop in spans))
        most = min(MAX_MOTION_CUTOFF, MAX_CUTOFF_SHARE / (period * every))
        cutoff = min(max(spectrum.cutoff, EDGE_PERIODS / (MAX_EDGE_SHARE * longest)), most)
        edges = max(how.edges, EDGE_PERIODS / cutoff)
        # Products of signals below the cutoff have the same mean as at any higher rate.
        most = min(MAX_CUTOFF_SHARE / cutoff, (longest - 2.0 * edges) / MIN_SAMPLES)
        every = how.every or max(1, int(most / period))
        how = replace(how, cutoff=cutoff, edges=edges)
    how = replace(how, every=every)
    shortest = 2 * max(how.edges, EDGE * period) + period * (6 * how.order + 4)
    found = [
        _filtered(samples.take(slice(*span)), period, how)
        for span in spans
        if t[span[1] - 1] - t[span[0]] > shortest
    ]
    if not found:
        raise LogError(
            f'a low pass needs more than {shortest:.2g} s without a gap of {how.largest_gap:g} s, '
            f'of which the log has {max(t[stop - 1] - t[start] for start, stop in spans):.2g} s'
        )
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in found])
        for name in ('stamp_ns', 'accelerations', 'angular_accelerations', 'directions', *SIGNALS)
        if getattr(found[0], name) is not None
    }
    joined = SampleBatch(**columns)
    if how.every > 1 and len(joined) < MIN_SAMPLES:
        raise ConfigError(f'every is {how.every}, which leaves {len(joined)} of {len(t)} samples')
    return Prepared(joined, period, how, spectrum.noise_share(how))


def cutoff_problems(prepared: Prepared) -> Iterator[str]:
    """Describe noise that a low pass leaves, and frequencies that decimation folds back."""
    how, period = prepared.how, prepared.period
    cutoff, kept = how.cutoff or 0.5 / period, 1.0 / (period * how.every)
    if prepared.noise_share > MAX_NOISE_SHARE:
        yield (
            f'cutoff is {cutoff:.3g} Hz, which leaves {prepared.noise_share:.1%} of noise in the '
            'accelerations: inertias are as much too small'
        )
    if how.every > 1 and cutoff > (1.0 + MAX_JITTER) * MAX_CUTOFF_SHARE * kept:
        yield (
            f'cutoff is {cutoff:g} Hz, expected at most {MAX_CUTOFF_SHARE * kept:.3g} Hz for the '
            f'{kept:.3g} Hz that are kept'
        )


def independent_share(prepared: Prepared) -> float:
    """
    Return the number of independent equations over all.

    Parameters are determined by motion that is slow against the low pass, hence their errors by
    noise at low frequencies, which it keeps. Residuals show less noise, as it removes the fast
    part. For white noise and the filter H, forwards and backwards, the share is

        every * mean |H|^4

    about 1.8 cutoff period every, at most one.
    """
    how = prepared.how
    if not how.cutoff:
        return 1.0
    from scipy.signal import butter, sosfreqz

    sections = butter(how.order, how.cutoff, fs=1 / prepared.period, output='sos')
    _, response = sosfreqz(sections, RESPONSE_FREQUENCIES, whole=True)
    return min(1.0, float(how.every * np.mean(np.abs(response) ** 4)))


def _spectrum(part: SampleBatch, period: float, how: Preparation) -> MotionSpectrum:
    """Return the spectrum of one part."""
    _, step, signals = _evenly_spaced(part, period)
    joints = ('velocities', 1) if how.measured_velocities else ('positions', HIGHEST_ORDER)
    return MotionSpectrum.of(
        [
            (_filled(signals[name].reshape(len(signals[name]), -1))[0], order)
            for name, order in (joints, ('angular_velocities', 1))
        ],
        step,
    )


def _evenly_spaced(part: SampleBatch, period: float) -> tuple[Stamps, float, dict[str, Any]]:
    """Return stamps, their period [s] and signals of one part."""
    t = np.asarray((part.stamp_ns - part.stamp_ns[0]) * 1e-9, dtype=np.float64)
    n = round(t[-1] / period) + 1
    step = float(t[-1]) / (n - 1)
    grid: Array = step * np.arange(n)
    signals: dict[str, Any] = {name: getattr(part, name) for name in SIGNALS}
    stamps = part.stamp_ns
    if n != len(t) or np.abs(grid - t).max() >= MAX_JITTER * period:
        stamps = stamps[0] + np.round(grid / 1e-9).astype(np.int64)
        signals = {name: _interpolated(values, t, grid) for name, values in signals.items()}
    return stamps, step, signals


def _filtered(part: SampleBatch, period: float, how: Preparation) -> SampleBatch:
    """Return one part with evenly spaced stamps, filtered, without its edges."""
    stamps, step, signals = _evenly_spaced(part, period)
    if not how.measured_velocities:
        signals['velocities'] = None
    smooth: dict[str, Any] = {k: _low_pass(one, step, how) for k, one in signals.items()}
    if smooth['velocities'] is None:
        smooth['velocities'] = _rate(smooth['positions'], step)
    whole = SampleBatch(
        stamp_ns=stamps,
        **smooth,
        accelerations=_rate(smooth['velocities'], step),
        # Friction changes sign at once, and is filtered like the efforts.
        directions=_low_pass(np.sign(smooth['velocities']), step, how),
        angular_accelerations=_rate(smooth['angular_velocities'], step),
    )
    edge = max(EDGE, round(how.edges / step))
    return whole.take(slice(edge, len(whole) - edge, how.every))


def _interpolated(values: Array | None, t: Array, grid: Array) -> Array | None:
    """Return signals at other times; NaN between two samples of which one is missing."""
    if values is None:
        return None
    columns = [np.interp(grid, t, column) for column in values.reshape(len(t), -1).T]
    return np.array(columns).reshape(-1, len(grid)).T.reshape(len(grid), *values.shape[1:])


def _rate(values: Array, step: float) -> Array:
    """Return derivatives, zero where a signal changes by no more than round-off."""
    from scipy.signal import savgol_filter

    if not values.size:
        return values
    # Wrong within half a filter of both ends, which are cut off.
    found = np.asarray(
        savgol_filter(
            values, DERIVATIVE_POINTS, DERIVATIVE_POINTS - 1, deriv=1, delta=step, axis=0,
            mode='nearest',
        )
    )  # fmt: skip
    largest = np.max(np.abs(values), axis=0, where=np.isfinite(values), initial=0.0)
    found[np.abs(found) <= ROUND_OFF * largest / step] = 0.0
    return found


def _low_pass(values: Array | None, step: float, how: Preparation) -> Array | None:
    """Return filtered signals, NaN within an edge of missing values."""
    if values is None or not values.size or not how.cutoff:
        return values
    from scipy.ndimage import binary_dilation
    from scipy.signal import butter, sosfiltfilt

    sections = butter(how.order, how.cutoff, fs=1 / step, output='sos')
    filled, missing = _filled(values.reshape(len(values), -1))
    smooth = np.asarray(sosfiltfilt(sections, filled, axis=0))
    if missing.any():
        reach = 2 * max(1, round(how.edges / step)) + 1
        smooth[binary_dilation(missing, np.ones((reach, 1), dtype=bool))] = np.nan
    return smooth.reshape(values.shape)


def _filled(columns: Array) -> tuple[Array, Mask]:
    """Return columns with missing values interpolated, and where they were."""
    missing, filled, rows = ~np.isfinite(columns), columns.copy(), np.arange(len(columns))
    for k in np.flatnonzero(missing.any(axis=0)):
        there = ~missing[:, k]
        filled[:, k] = np.interp(rows, rows[there], columns[there, k]) if there.any() else 0.0
    return filled, missing
