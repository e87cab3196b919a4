# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A whole stream at the samples of a log, and its derivatives: those of `SavitzkyGolayFilter`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Indices, Mask, Stamps
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.sample import SensorState as State
from inertial_estimation.signals.derivatives import smoother
from inertial_estimation.signals.savitzky_golay import (
    CUBIC,
    MAX_GAP,
    MIN_FILL,
    QUINTIC,
    REGULAR_TOLERANCE,
    SPARE_SAMPLES,
)
from inertial_estimation.signals.sensor_stream import MAX_INTERVALS
from inertial_estimation.signals.stream import MAX_QUEUE
from inertial_estimation.signals.stream_statistics import FrozenInterval, StreamStatistics

States = NDArray[np.uint8]
CHUNK = 512
"""Samples whose weights are worked on at once; they fit into a processor's cache."""


class Clock(NamedTuple):
    """Joint states that trigger, and the samples that they make."""

    triggers: Stamps
    samples: Indices
    """Row of the trigger of each sample."""
    instants: Stamps
    """Of each sample, its trigger or ``filter.delay`` before it [ns]."""


class BatchStream:
    """
    Messages of one stream at the samples: of equal stamps the first, none up to zero.

    They come in pieces; behind a piece stays what the next samples and their filter need.
    """

    def __init__(self, width: int = 0, memory_ns: int = 0) -> None:
        self.waiting: list[tuple[Any, ...]] = []
        """Stamps (n,), places in the log (n,) and values (n, ...) of messages to be taken."""
        self.stamps, self.order = np.zeros((2, 0), dtype=np.int64)
        self.values, self.known = np.zeros((0, width)), 0
        """Of the messages that are taken; the first `known` of them are of the piece before."""
        self.kept = np.zeros(0, dtype=bool)
        self.since: Indices | None = None
        self.start: tuple[int, int] = (0, 0)
        """Stamp and place of the first message of all."""
        self._memory_ns, self._lacking_ns, self._run = memory_ns, 0, (0, 0, 0)
        self._total = StreamStatistics()

    def take(self, until_ns: float) -> None:
        """Take the messages that wait, up to a stamp."""
        rows: Any = np.arange(self._oldest(), len(self.stamps))
        if self.since is not None and len(rows):
            # A frozen interval has its first message and the first that repeats it.
            first = self.since[rows[0]]
            rows = np.union1d(rows, [first, min(first + 1, rows[0])])
        self.kept, self.known = self.kept[rows], len(rows)
        parts = [(self.stamps[rows], self.order[rows], self.values[rows])] if len(rows) else []
        if not (parts or self.waiting):
            return
        stamps, order, values = (
            np.concatenate(part) for part in zip(*parts, *self.waiting, strict=True)
        )
        due = stamps <= until_ns
        self.waiting = [] if due.all() else [(stamps[~due], order[~due], values[~due])]
        rows = slice(None)
        if not due.all() or not (np.diff(stamps, prepend=0) > 0).all():
            rows = np.flatnonzero(due)
            rows = rows[np.argsort(stamps[rows], kind='stable')]
            rows = rows[np.diff(np.maximum(stamps[rows], 0), prepend=0) > 0]
        self.stamps, self.order, self.values = stamps[rows], order[rows], values[rows]
        if not self._total.received and len(self.stamps):
            self.start = int(self.stamps[0]), int(self.order[0])
        self._total.received += len(self.stamps) - self.known
        self._total.refused += int(due.sum()) - len(self.stamps)

    def _oldest(self) -> int:
        """Return the first row that later samples may need."""
        newest_ns = self.stamps[-1] if len(self.stamps) else 0
        return max(int(np.searchsorted(self.stamps, newest_ns - self._memory_ns)) - 1, 0)

    def feed(self, triggers: Stamps, fed: Indices | None = None) -> None:
        """Find the newest message at each trigger, -1 for none, and those that are not lost."""
        if fed is None:
            fed = np.searchsorted(self.stamps, triggers, side='right') - 1
        rows = np.arange(len(self.stamps))
        ends = np.append(fed, len(rows) - 1)
        kept: Mask = ends[np.searchsorted(fed, rows)] - rows < MAX_QUEUE
        kept[: self.known] = self.kept
        self.newest_fed, self.kept = fed, kept
        self._last_fed = int(fed[-1]) if len(fed) else self.known - 1
        self.is_fed: Mask = kept & (rows <= self._last_fed)
        """Messages that reach a sample or its filter."""
        self._total.dropped += int((~kept[self.known :]).sum())

    def place(self, clock: Clock, max_age: float) -> None:
        """Set the messages around each sample, and its `states` by their ages."""
        self.fed, self._instants = self.newest_fed[clock.samples], clock.instants
        self.newest, self._after = self.fed, None
        stamps = np.append(self.stamps, 0)
        if (clock.instants < clock.triggers[clock.samples]).any():
            kept = np.flatnonzero(self.kept)
            places = np.searchsorted(self.stamps[kept], clock.instants, side='right')
            around = np.concatenate([[-1], kept, [len(self.stamps)]])
            self.newest, after = around[places], around[places + 1]
            between = (after <= self.fed) & (self.newest >= 0)
            between &= stamps[self.newest] != clock.instants
            self._after = after[between], np.flatnonzero(between)
        ages = clock.instants - stamps[self.newest]
        stale = np.where(ages > round(1e9 * max_age), State.STALE, State.FRESH)
        self.states = np.where(self.newest < 0, State.ABSENT, stale).astype(np.uint8)
        if (self.newest[-1:] >= 0).any():
            self._total.age = 1e-9 * int(ages[-1])

    def at(self, values: Array, samples: Mask) -> Array:
        """Return values of the messages (n, m) at some of the samples, interpolated."""
        found: Array = values[self.newest[samples]]
        if self._after is not None:
            after, rows = self._after
            after, rows = after[samples[rows]], rows[samples[rows]]
            start = self.stamps[self.newest[rows]]
            share = (self._instants[rows] - start) / (self.stamps[after] - start)
            into = (np.cumsum(samples) - 1)[rows]
            found[into] += share[:, None] * (values[after] - found[into])
        return found

    def statistics(
        self, frozen_intervals: Sequence[FrozenInterval] = (), **counts: int
    ) -> StreamStatistics:
        """Add to the counters of the stream, and return them."""
        total, stamps = self._total, self.stamps
        for name, count in counts.items():
            setattr(total, name, getattr(total, name) + count)
        if frozen_intervals:
            # One that goes on is found again.
            first_ns = frozen_intervals[0].first_ns
            before = [one for one in total.frozen_intervals if one.first_ns < first_ns]
            is_open = frozen_intervals[-1].last_ns == stamps[-1]
            found = (*before, *frozen_intervals)[-MAX_INTERVALS - int(is_open) :]
            total.frozen_intervals = found
        if len(stamps):
            total.last_stamp_ns = int(stamps[-1])
            gaps = np.diff(stamps[max(self.known - 1, 0) :])
            total.longest_gap = max(total.longest_gap, 1e-9 * int(gaps.max(initial=0)))
            if span := 1e-9 * (total.last_stamp_ns - self.start[0]):
                total.rate = (total.received - 1) / span
        return replace(total)

    def derive(
        self,
        values: Array,
        settings: EstimatorSettings,
        frozen: Mask,
        used: Mask,
        derivatives: slice = slice(1, 3),
        *,
        each: bool = False,
    ) -> Array:
        """
        Return derivatives at the samples, (n_derivatives, n_samples, m), and set `ready`.

        values (n, m); frozen (n,): messages that reset the filter; used (n_samples,): samples
        that ask for its derivatives; each: all of these count that lack them, not their instants.
        """
        given, fed = settings.filter, self.is_fed & ~frozen
        resets = np.cumsum(frozen & self.is_fed)
        segment, stamps = resets[fed], self.stamps[fed]
        signals, n = values if fed.all() else values[fed], len(stamps)
        order = QUINTIC if given.kind == 'quintic' else CUBIC
        # The last row stands for messages that are not filtered.
        index = np.append(np.where(fed, np.cumsum(fed) - 1, n), n)
        rows = index[self.fed]
        known = rows < n
        instants = np.minimum(self._instants, np.append(self.stamps, 0)[self.fed])
        starts = np.searchsorted(segment, segment)
        runs, intervals = _regular_runs(stamps, starts, self._run)
        if (oldest := int(fed[: self._oldest()].sum())) < n:
            self._run = int(stamps[oldest]), intervals[oldest], int(runs[oldest])
        found, ready = differentiate(
            stamps, signals, starts, runs, given.window, order, rows[known], instants[known],
            derivatives,
        )  # fmt: skip
        ready = np.append(ready, False)
        self.ready: Mask = ready[rows]
        lacking = instants[used & ~self.ready]
        if not each:
            lacking = np.unique(lacking[lacking > self._lacking_ns])
            self._lacking_ns = max(self._lacking_ns, *lacking[-1:].tolist(), 0)
        self._total.unfiltered, self._total.filter_lack = self._total.unfiltered + len(lacking), ''
        newest = self._last_fed
        if not ready[index[newest]]:
            one, begin = smoother(settings, values.shape[1]), n
            if begin and newest >= 0:
                recent = np.searchsorted(stamps, stamps[-1] - round(2e9 * given.window))
                begin = max(recent, np.searchsorted(segment, resets[newest]))
            for stamp, signal in zip(stamps[begin:].tolist(), signals[begin:], strict=True):
                one.append(stamp, signal)
            self._total.filter_lack = one.lack
        if known.all():
            return found
        derived = np.full((len(found), len(rows), values.shape[1]), np.nan)
        derived[:, known] = found
        return derived


def differentiate(
    stamps: Stamps,
    values: Array,
    starts: Indices,
    runs: Indices,
    window: float,
    order: int,
    rows: Indices,
    instants: Stamps,
    derivatives: slice = slice(1, 3),
) -> tuple[Array, Mask]:
    """
    Return derivatives (n_derivatives, k, m), and where the window is filled (n,).

    stamps (n,) [ns], increasing; values (n, m); starts (n,): row of the first sample since the
    filter was reset; runs (n,): of `_regular_runs`; window [s]; rows (k,): newest sample of each
    fit, in order; instants (k,): at which it is evaluated, not later [ns]; derivatives: 0 to 2.
    NaN: not filled, the instant is not in the window, or a value of it is not finite.
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
    regular = runs >= counts - 1
    spoilt = np.zeros((n + 1, m), dtype=np.int32)
    np.cumsum(~np.isfinite(values), axis=0, out=spoilt[1:])
    lags: Array = np.asarray(stamps[rows] - instants, dtype=np.float64)
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
        at = 1.0 - 1e-9 * lags[part] / half
        weights = _weights_of_many(stamped, counts[own], half, at, fit, regular[own], order)
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
    at: Array,
    fit: Mask,
    regular: Mask,
    order: int,
) -> Array:
    """Return weights of the samples of windows at times in units of half spans, (k, 3, c)."""
    c = stamps.shape[1]
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


def _regular_runs(
    stamps: Stamps, starts: Indices, known: tuple[int, int, int]
) -> tuple[Indices, list[int]]:
    """
    Return the number of equal intervals up to each sample, as the filter counts them, and these.

    known: stamp, interval and number of a sample from which they go on.
    """
    runs, intervals, interval, run = [], [], 0, 0
    steps, known_ns = np.diff(stamps, prepend=0).tolist(), known[0]
    for row, (stamp, step, start) in enumerate(zip(stamps.tolist(), steps, starts.tolist())):
        if stamp == known_ns:
            _, interval, run = known
        elif row == start:
            interval = run = 0
        elif abs(step - interval) <= REGULAR_TOLERANCE * interval:
            run += 1
        else:
            interval, run = step, 1
        runs.append(run)
        intervals.append(interval)
    return np.array(runs, dtype=np.intp), intervals


def unchanged_since(values: Array) -> Indices:
    """Return the first row with the bits of each row."""
    bits = values.view(np.int64)
    new = np.append(True, (bits[1:] != bits[:-1]).any(axis=1))[: len(values)]
    return np.maximum.accumulate(np.where(new, np.arange(len(values)), 0))


def judge_readings(values: Array, measures: str) -> States:
    """Return the states of readings (n, 6) by their finite numbers, as `SensorStream.judge`."""
    halves = values.reshape(-1, 2, 3)
    finite: Mask = np.asarray(np.isfinite(halves).all(axis=2))
    absent: Mask = np.asarray(np.isnan(halves).all(axis=2))
    (turn, shift), (no_turn, no_shift) = finite.T, absent.T
    declared = {'accelerometer': shift, 'gyroscope': turn}.get(measures, turn & shift)
    in_part = (measures == 'both') & ((shift & no_turn) | (turn & no_shift))
    states = np.where(in_part, State.PARTIAL, State.INVALID)
    return np.where(declared | (turn & shift), State.FRESH, states).astype(np.uint8)


def frozen_intervals(
    stamps: Stamps, since: Indices, judged: States, limit_ns: int
) -> tuple[FrozenInterval, ...]:
    """Return the intervals of bit-equal values that `SensorStream` keeps."""
    last = np.flatnonzero(np.diff(since, append=-1))
    first = since[last]
    frozen = (limit_ns > 0) & (stamps[last] - stamps[first] >= limit_ns)
    frozen &= judged[last] != State.INVALID
    # The one that is open comes on top.
    rows = np.flatnonzero(frozen)[-MAX_INTERVALS - int(frozen[-1:].sum()) :]
    ends = (stamps[first[rows]], stamps[first[rows] + 1], stamps[last[rows]])
    return tuple(FrozenInterval(*one) for one in zip(*(x.tolist() for x in ends), strict=True))
