# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Derivatives of signals at even steps, exact for polynomials of sixth degree.

Differences of two neighbours are too low by a share of (w T)^2 / 6 for a sine of angular frequency
w at steps T: 1 % of a velocity and 2 % of an acceleration at 4 Hz and 100 Hz, which masses would
make up for. With seven instants it is (w T)^6 / 140, 2e-6 there.

From a recorded log to samples that rows are made of: filtered without delay, differentiated.

A log need not be causal: all signals go through the same zero-phase low pass, so that what meets
in an equation was filtered alike, and derivatives are differences of what it leaves. Such
a filter swings at the edges of what it sees, so they are cut off at each gap of the log.

How much a filtered row is worth: the noise of its neighbours is nearly its own.

What links weigh is told by motion that is slow against the low pass, and so the noise that spoils
it is that at low frequencies, which a low pass leaves as it is. Residuals show less than that, as
the low pass takes all that is fast: n rows tell as much as n times the share of the two would if
their noise were independent. With white noise in what was recorded the share is

    every * mean |H|^4

with H the filter, which runs forwards and backwards: about 1.8 cutoff period every, at most one.
Noise that is not white, as of what the model lacks, is not counted by that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, LogError
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]

POINTS = 7
"""Instants that make up a derivative; the lowest number of rows that has one."""


def derivative(values: Array, step: float) -> Array:
    """
    Return the derivative of signals; at both ends from one side.

    values (n, ...); step [s]; returns (n, ...).
    """
    n, half = len(values), POINTS // 2
    flat = values.reshape(n, -1)
    found = np.zeros_like(flat, dtype=np.float64)
    # Differences first: of what is constant nothing is left but zeros.
    for reach, share in enumerate(_derivative_weights(half)[half + 1 :].tolist(), 1):
        later = flat[half + reach : n - half + reach]
        found[half : n - half] += share * (later - flat[half - reach : n - half - reach])
    for k in range(half):
        found[k] = _derivative_weights(k) @ (flat[:POINTS] - flat[k])
        found[n - 1 - k] = _derivative_weights(POINTS - 1 - k) @ (flat[-POINTS:] - flat[n - 1 - k])
    return np.asarray(found / step).reshape(values.shape)


def _derivative_weights(at: int) -> Array:
    """Return by how much each of `POINTS` instants counts in the derivative at one of them."""
    places = np.arange(POINTS) - float(at)
    powers = np.vander(places, increasing=True).T
    wanted = np.zeros(POINTS)
    wanted[1] = 1.0
    return np.asarray(np.linalg.solve(powers, wanted))


Mask = NDArray[np.bool_]

NANOSECONDS = 1e-9
JITTER = 0.01
"""Share of a period by which stamps may be off a grid before signals are moved onto it."""
STEEPEST = 10
"""
Greatest order of the low pass, which swings 6 times as long as one of the first order.
"""
SAFE = 0.4
"""Share of the rate that is kept up to which a cutoff leaves next to nothing beyond its half."""

ROUND_OFF = 1e-12
"""
What a low pass leaves of a constant, as a share of it: columns of rows are scaled to one length,
so that such a joint would seem to move.
"""
FEWEST = 10
"""Instants that one in so many must leave: fewer are no motion."""


@dataclass(frozen=True)
class Preparation:
    """How a log is filtered."""

    cutoff: float = 10.0
    """Of the low pass that all signals go through [Hz]; 0: none."""
    order: int = 4
    """Of the Butterworth filter, which runs forwards and backwards."""
    edges: float = 0.2
    """What is cut off at the start, the end and each gap, where the filter swings [s]."""
    largest_gap: float = 0.1
    """Longer gaps between stamps are not bridged [s]."""
    every: int = 1
    """Keep one instant in so many: what the low pass leaves is worth no more."""
    measured_velocities: bool = False
    """Take joint velocities from the log instead of its positions."""

    def __post_init__(self) -> None:
        """Raise unless the numbers make sense."""
        for name in ('cutoff', 'edges'):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise ConfigError(f'{name} is {value}, expected zero or more')
        if not (np.isfinite(self.largest_gap) and self.largest_gap > 0):
            raise ConfigError(f'largest_gap is {self.largest_gap}, expected more than zero')
        for name, least in (('order', 1), ('every', 1)):
            if getattr(self, name) < least:
                raise ConfigError(f'{name} is {getattr(self, name)}, expected at least {least}')
        if self.order > STEEPEST:
            raise ConfigError(
                f'order is {self.order}, expected at most {STEEPEST}: steeper low passes '
                'swing for longer than edges are meant for'
            )


class Prepared(NamedTuple):
    """What is left of a log."""

    samples: SampleBatch
    """Filtered, with derivatives."""
    stretches: int
    """Parts between gaps that were long enough."""
    discarded: int
    """Recorded instants at edges and in parts that were too short."""
    period: float
    """Median of the steps between recorded stamps [s]."""


def prepare(samples: SampleBatch, how: Preparation) -> Prepared:
    """Filter a log and take its derivatives."""
    t = samples.stamp_ns * NANOSECONDS
    back = np.flatnonzero(np.diff(samples.stamp_ns) <= 0)
    if len(t) < 2:
        raise LogError(f'the log has {len(t)} instants, too few for derivatives; record more')
    if len(back):
        raise LogError(
            f'the log has {len(t)} instants whose stamps must grow, but {len(back)} of them do '
            f'not, the first at instant {back[0] + 2}, after {t[back[0]] - t[0]:.6g} s; sort '
            'them, and drop what is there twice'
        )
    period = float(np.median(np.diff(t)))
    if how.cutoff and how.cutoff >= 0.5 / period:
        raise ConfigError(
            f'cutoff is {how.cutoff:g} Hz, but a log of {1 / period:.4g} Hz holds nothing above '
            f'{0.5 / period:.4g} Hz: choose a lower one, or 0 for no filter'
        )
    cuts = np.flatnonzero(np.diff(t) > how.largest_gap) + 1
    bounds = [0, *cuts.tolist(), len(t)]
    found = []
    for start, stop in pairwise(bounds):
        if t[stop - 1] - t[start] > 2 * how.edges + _least(period, how):
            part, step = _evenly(samples.take(slice(start, stop)), period)
            found.append(_filtered(part, step, how))
    if not found:
        raise LogError(
            f'no part of the log between gaps of more than {how.largest_gap:g} s is longer than '
            f'{2 * how.edges + _least(period, how):.2g} s, which the filter takes'
        )
    kept = sum(_covered(samples.stamp_ns, part.stamp_ns) for part in found)
    joined = _joined(found)
    if how.every > 1 and len(joined) < FEWEST:
        raise ConfigError(
            f'every is {how.every}, which leaves {len(joined)} of {len(t)} instants: choose a '
            'smaller one'
        )
    return Prepared(joined, len(found), len(t) - kept, period)


def folded_back(how: Preparation, period: float) -> str:
    """
    Return what is wrong with keeping one instant in so many, or an empty string.

    period [s].
    """
    kept = 1.0 / (period * how.every)
    if how.every == 1 or 0 < how.cutoff <= (1.0 + JITTER) * SAFE * kept:
        return ''
    filtered = f'the low pass at {how.cutoff:g} Hz' if how.cutoff else 'no low pass'
    return (
        f'{filtered} leaves more than the {kept:.3g} Hz that one instant in {how.every} can show: '
        f'choose a cutoff of at most {SAFE * kept:.3g} Hz, or a smaller every'
    )


def _covered(stamps: NDArray[np.int64], kept: NDArray[np.int64]) -> int:
    """Return how many recorded instants lie within a stretch that is left."""
    return int(((stamps >= kept[0]) & (stamps <= kept[-1])).sum())


def _least(period: float, how: Preparation) -> float:
    """Return the time that a filter needs before it says anything [s]."""
    return period * (6 * how.order + 4)


def _evenly(part: SampleBatch, period: float) -> tuple[SampleBatch, float]:
    """Return a part of a log with stamps that are evenly spaced, and their step."""
    t = np.asarray((part.stamp_ns - part.stamp_ns[0]) * NANOSECONDS, dtype=np.float64)
    n = round(t[-1] / period) + 1
    step = float(t[-1]) / (n - 1)
    grid: Array = step * np.arange(n)
    if n == len(t) and np.abs(grid - t).max() < JITTER * period:
        return part, step

    def moved(values: Array | None) -> Array | None:
        return None if values is None else _interpolate(grid, t, values)

    fields = {name: moved(getattr(part, name)) for name in SIGNALS}
    empty = np.full((n, *part.accelerations.shape[1:]), np.nan)
    turning = np.full((n, *part.angular_accelerations.shape[1:]), np.nan)
    moved_to = SampleBatch(
        stamp_ns=part.stamp_ns[0] + np.round(grid / NANOSECONDS).astype(np.int64),
        accelerations=empty,
        angular_accelerations=turning,
        **fields,  # type: ignore[arg-type]
    )
    return moved_to, step


SIGNALS = (
    'positions',
    'velocities',
    'angular_velocities',
    'proper_accelerations',
    'ft_readings',
    'efforts',
    'ft_temperatures',
)


def _interpolate(grid: Array, t: Array, values: Array) -> Array:
    """Return values on a grid; NaN between two instants of which one is missing."""
    columns = values.reshape(len(t), -1)
    moved = [np.interp(grid, t, column) for column in columns.T]
    return (
        np.array(moved)
        .reshape(columns.shape[1], len(grid))
        .T.reshape(len(grid), *values.shape[1:])
    )


def _filtered(part: SampleBatch, step: float, how: Preparation) -> SampleBatch:
    """Return one part, filtered, without its edges."""
    smooth = {name: _low_pass(getattr(part, name), step, how) for name in SIGNALS}
    assert smooth['positions'] is not None and smooth['angular_velocities'] is not None
    velocities = smooth['velocities']
    if not how.measured_velocities or velocities is None:
        velocities = _rate(smooth['positions'], step)
    whole = replace(
        part,
        **smooth | {'velocities': velocities},  # type: ignore[arg-type]
        accelerations=_rate(velocities, step),
        # Friction turns at once, and is filtered like the efforts that hold it.
        directions=_low_pass(np.sign(velocities), step, how),
        angular_accelerations=_rate(smooth['angular_velocities'], step),
    )
    edge = max(1, round(how.edges / step))
    return whole.take(slice(edge, len(whole) - edge, how.every))


def _rate(values: Array, step: float) -> Array:
    """Return derivatives, zero where a signal changes by no more than round-off."""
    if not values.size:
        return values
    found = derivative(values, step)
    largest = np.max(np.abs(values), axis=0, where=np.isfinite(values), initial=0.0)
    found[np.abs(found) <= ROUND_OFF * largest / step] = 0.0
    return found


def _low_pass(values: Array | None, step: float, how: Preparation) -> Array | None:
    """Return values without what is fast; near missing ones there are none."""
    if values is None or not values.size or not how.cutoff:
        return values
    from scipy.signal import butter, sosfiltfilt

    sections = butter(how.order, how.cutoff, fs=1 / step, output='sos')
    columns = values.reshape(len(values), -1)
    missing = ~np.isfinite(columns)
    filled = _filled(columns, missing)
    smooth = np.asarray(sosfiltfilt(sections, filled, axis=0))
    smooth[_near(missing, max(1, round(how.edges / step)))] = np.nan
    return smooth.reshape(values.shape)


def _filled(columns: Array, missing: Mask) -> Array:
    """Return columns with a straight line where values are missing, for the filter only."""
    filled = columns.copy()
    rows = np.arange(len(columns))
    for k in np.flatnonzero(missing.any(axis=0)):
        there = ~missing[:, k]
        filled[:, k] = np.interp(rows, rows[there], columns[there, k]) if there.any() else 0.0
    return filled


def _near(missing: Mask, reach: int) -> Mask:
    """Tell which instants are within reach of a missing one."""
    if not missing.any():
        return missing
    from scipy.ndimage import binary_dilation

    return np.asarray(binary_dilation(missing, np.ones((2 * reach + 1, 1), dtype=bool)))


def _joined(parts: Sequence[SampleBatch]) -> SampleBatch:
    """Return parts one behind the other."""
    columns: dict[str, Any] = {}
    for name in ('stamp_ns', 'accelerations', 'angular_accelerations', 'directions', *SIGNALS):
        values = [getattr(part, name) for part in parts]
        columns[name] = None if any(v is None for v in values) else np.concatenate(values)
    return SampleBatch(**columns)


FREQUENCIES = 1 << 15
"""At which the filter is looked at, from zero to the rate: its bandwidth is many of them."""


def independent_share(how: Preparation, step: float) -> float:
    """
    Return as how many rows of independent noise a filtered one counts.

    step [s].
    """
    if not how.cutoff:
        return 1.0
    from scipy.signal import butter, sosfreqz

    sections = butter(how.order, how.cutoff, fs=1 / step, output='sos')
    _, response = sosfreqz(sections, FREQUENCIES, whole=True)
    return min(1.0, float(how.every * np.mean(np.abs(response) ** 4)))
