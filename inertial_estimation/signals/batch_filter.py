# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of a whole stream: those of `SavitzkyGolayFilter` fed with it."""

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
    stamps: Stamps,
    values: Array,
    starts: Indices,
    window: float,
    order: int,
    rows: Indices,
    instants: Stamps,
    derivatives: slice = slice(1, 3),
) -> tuple[Array, Mask]:
    """
    Return derivatives (n_derivatives, k, m), and where the window is filled (n,).

    stamps (n,) [ns], increasing; values (n, m); starts (n,): row of the first sample since the
    filter was reset; window [s]; rows (k,): newest sample of each fit, in order; instants (k,): at
    which it is evaluated, not later [ns]; derivatives: 0 to 2. NaN: not filled, the instant is not
    in the window, or a value of it is not finite.
    """
    n, m = values.shape
    kinds = range(3)[derivatives]
    found = np.full((len(kinds), len(rows), m), np.nan)
    window_ns = round(1e9 * window)
    first = np.maximum(np.searchsorted(stamps, stamps - window_ns), starts)
    span, counts = stamps - stamps[first], np.arange(n) - first + 1
    gaps = np.flatnonzero(np.diff(stamps) > MAX_GAP * window_ns) + 1
    last_gap = np.append(-1, gaps)[np.searchsorted(gaps, np.arange(n), side='right')]
    ready = (counts > order + SPARE_SAMPLES) & (span >= MIN_FILL * window_ns) & (last_gap <= first)
    regular = _regular_runs(stamps, starts) >= counts - 1
    spoilt = np.zeros((n + 1, m), dtype=np.int32)
    np.cumsum(~np.isfinite(values), axis=0, out=spoilt[1:])
    lags = stamps[rows] - instants
    fits = ready[rows] & (lags <= span[rows])
    for start in range(0, len(rows), CHUNK):
        part = slice(start, start + CHUNK)
        own, fit = rows[part], fits[part]
        if not fit.any():
            continue
        half = 0.5e-9 * np.where(fit, span[own], 1)
        # Each window is widened to the longest of its chunk, by samples of weight zero.
        begin, stop = int(own[0]), int(own[-1]) + 1
        widest = int(counts[own].max(where=fit, initial=1))
        oldest = begin + 1 - widest
        before, rows_of = max(-oldest, 0), slice(max(oldest, 0), stop)
        given = np.zeros((stop - oldest, m))
        np.copyto(given[before:], values[rows_of], where=np.isfinite(values[rows_of]))
        windows = sliding_window_view(given, widest, axis=0).swapaxes(1, 2)
        stamped = sliding_window_view(np.pad(stamps[rows_of], (before, 0)), widest)
        if len(own) < stop - begin or (np.diff(own) != 1).any():
            windows, stamped = windows[own - begin], stamped[own - begin]
        weights = _weights_of_many(
            stamped, counts[own], half, 1e-9 * lags[part], fit, regular[own], order
        )
        fitted = weights[:, derivatives] @ windows
        fitted /= np.stack([half**kind for kind in kinds], axis=1)[..., None]
        fitted[~fit] = np.nan
        found[:, part] = fitted.swapaxes(0, 1)
    found[:, spoilt[1:][rows] > spoilt[first[rows]]] = np.nan
    return found, ready


def _weights_of_many(
    stamps: Array | Stamps,
    counts: Indices,
    half: Array,
    lags: Array,
    fit: Mask,
    regular: Mask,
    order: int,
) -> Array:
    """Return the weights of the samples of each window in units of half its span, (k, 3, c)."""
    c = stamps.shape[1]
    at = 1.0 - lags / half
    if (fit & regular).all() and (counts == c).all() and (at == at[0]).all():
        return _unit_weights(np.linspace(-1.0, 1.0, c)[None, :], counts[:1], at[:1], order)
    times = (stamps - stamps[:, -1:]) * (1e-9 / half)[:, None] + 1.0
    for count in np.unique(counts[regular & fit]).tolist():
        times[regular & fit & (counts == count), c - count :] = np.linspace(-1.0, 1.0, count)
    weights = np.zeros((len(stamps), 3, c))
    weights[fit] = _unit_weights(times[fit], counts[fit], at[fit], order)
    return weights


def _unit_weights(times: Array, counts: Indices, at: Array, order: int) -> Array:
    """Return the weights in value and derivatives at a time, (k, 3, c); last counts of times."""
    n, c = times.shape
    powers = np.empty((n, order + 1, c))
    powers[:, 0] = np.arange(c) >= c - counts[:, None]
    for degree in range(order):
        np.multiply(powers[:, degree], times, out=powers[:, degree + 1])
    k, time = np.arange(order + 1.0), at[:, None]
    wanted = np.stack([
        time**k, k * time ** np.maximum(k - 1.0, 0.0),
        k * (k - 1.0) * time ** np.maximum(k - 2.0, 0.0),
    ], axis=2)  # fmt: skip
    factors = np.linalg.solve(powers @ powers.swapaxes(1, 2), wanted)
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
