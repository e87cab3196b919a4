# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of a whole stream: those of `SavitzkyGolayFilter` at each of its samples."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from inertial_estimation.arrays import Array, Indices, Mask, Stamps
from inertial_estimation.signals.savitzky_golay import (
    MAX_GAP,
    MIN_FILL,
    REGULAR_TOLERANCE,
    SPARE_SAMPLES,
)

CHUNK = 512
"""Samples whose weights are worked on at once; they fit into a processor's cache."""


def differentiate(
    stamps: Stamps, values: Array, starts: Indices, window: float, order: int
) -> tuple[Array, Mask]:
    """
    Return both derivatives at each sample (2, n, m), and where the window is filled (n,).

    stamps (n,) [ns], increasing; values (n, m); starts (n,): row of the first sample since the
    filter was reset; window [s]. NaN: not filled, or a value of the window is not finite.
    """
    n, m = values.shape
    found, rows = np.full((2, n, m), np.nan), np.arange(n)
    window_ns = round(1e9 * window)
    first = np.maximum(np.searchsorted(stamps, stamps - window_ns), starts)
    span, counts = stamps - stamps[first], rows - first + 1
    gaps = np.flatnonzero(np.diff(stamps) > MAX_GAP * window_ns) + 1
    last_gap = np.append(-1, gaps)[np.searchsorted(gaps, rows, side='right')]
    ready = (counts > order + SPARE_SAMPLES) & (span >= MIN_FILL * window_ns) & (last_gap <= first)
    regular = _regular_runs(stamps, starts) >= counts - 1
    spoilt = np.zeros((n + 1, m), dtype=np.int32)
    np.cumsum(~np.isfinite(values), axis=0, out=spoilt[1:])
    for begin in range(0, n, CHUNK):
        part = slice(begin, min(begin + CHUNK, n))
        if not ready[part].any():
            continue
        half = 0.5e-9 * np.where(ready, span, 1)[part]
        # Each window is widened to the longest of its chunk, by samples of weight zero.
        widest = int(counts[part].max(where=ready[part], initial=1))
        oldest = begin + 1 - widest
        before, rows_of = max(-oldest, 0), slice(max(oldest, 0), part.stop)
        given = np.zeros((part.stop - oldest, m))
        np.copyto(given[before:], values[rows_of], where=np.isfinite(values[rows_of]))
        windows = sliding_window_view(given, widest, axis=0).swapaxes(1, 2)
        stamped = sliding_window_view(np.pad(stamps[rows_of], (before, 0)), widest)
        derivatives = (
            _weights_of_many(stamped, counts[part], half, ready[part], regular[part], order)
            @ windows
        )
        derivatives /= np.stack([half, half * half], axis=1)[..., None]
        derivatives[~ready[part]] = np.nan
        found[:, part] = derivatives.swapaxes(0, 1)
    found[:, spoilt[1:] > spoilt[first]] = np.nan
    return found, ready


def _weights_of_many(
    stamps: Array | Stamps, counts: Indices, half: Array, ready: Mask, regular: Mask, order: int
) -> Array:
    """Return the weights of the samples of each window in units of half its span, (k, 2, c)."""
    c = stamps.shape[1]
    if (ready & regular).all() and (counts == c).all():
        return _unit_weights(np.linspace(-1.0, 1.0, c)[None, :], counts[:1], order)
    times = (stamps - stamps[:, -1:]) * (1e-9 / half)[:, None] + 1.0
    for count in np.unique(counts[regular & ready]).tolist():
        times[regular & ready & (counts == count), c - count :] = np.linspace(-1.0, 1.0, count)
    weights = np.zeros((len(stamps), 2, c))
    weights[ready] = _unit_weights(times[ready], counts[ready], order)
    return weights


def _unit_weights(times: Array, counts: Indices, order: int) -> Array:
    """Return the weights in the derivatives at time 1, (k, 2, c); the last counts of times."""
    k, c = times.shape
    powers = np.empty((k, order + 1, c))
    powers[:, 0] = np.arange(c) >= c - counts[:, None]
    for degree in range(order):
        np.multiply(powers[:, degree], times, out=powers[:, degree + 1])
    k = np.arange(order + 1.0)
    wanted = np.stack([k, k * (k - 1.0)], axis=1)
    factors = np.linalg.solve(powers @ powers.swapaxes(1, 2), wanted[None])
    weights: Array = factors.swapaxes(1, 2) @ powers
    return weights


def _regular_runs(stamps: Stamps, starts: Indices) -> Indices:
    """Return the number of equal intervals up to each sample, as the filter counts them."""
    runs, interval, run = [], 0, 0
    for row, (step, start) in enumerate(zip(np.diff(stamps, prepend=0).tolist(), starts.tolist())):
        if row == start:
            interval = run = 0
        elif abs(step - interval) <= REGULAR_TOLERANCE * interval:
            run += 1
        else:
            interval, run = step, 1
        runs.append(run)
    return np.array(runs, dtype=np.intp)
