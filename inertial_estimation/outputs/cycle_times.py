# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Durations of the cycles, and missed cycles."""

from dataclasses import dataclass
from time import monotonic_ns

import numpy as np

CAPACITY = 8192
"""Cycles that are kept, more than in a second."""
MAX_INTERVAL = 1.0
"""Time between two stamps beyond which joint states stopped or time jumped [s]."""
MAX_INTERVAL_RATIO = 10.0
"""The same over the usual interval, for slow joint states."""
MIN_INTERVALS = 3
"""Intervals that determine the usual one anew."""
MIN_WAIT_RATIO = 0.1
"""Elapsed time over an interval of stamps below which time jumped."""


@dataclass(frozen=True)
class CycleReport:
    """The cycles since the last report."""

    count: int
    missed: int
    """Stamps missing at the usual interval."""
    interval: float
    """Usual (median) interval of the stamps, NaN with less than two [s]."""
    duration_p50: float
    """Median duration, NaN without cycles [s]."""
    duration_p99: float
    """Duration that one in a hundred exceeds [s]."""
    duration_max: float
    """Longest duration [s]."""
    stopped: float = 0.0
    """Longest time without a stamp beyond `MAX_INTERVAL`; 0: none [s]."""
    jumped: float = 0.0
    """Largest forward jump of stamps; 0: none [s]."""


class Cycles:
    """A ring of stamps and durations."""

    def __init__(self) -> None:
        self._stamps = np.zeros(CAPACITY, dtype=np.int64)
        self._durations = np.zeros(CAPACITY)
        self._arrivals = np.zeros(CAPACITY, dtype=np.int64)
        self._follows = np.zeros(CAPACITY, dtype=bool)
        self._usual = float('nan')
        self._count = self._reported = 0
        self._running = False
        self.total_missed = 0

    def restart(self) -> None:
        """Count the time up to the next cycle as a pause."""
        self._running = False

    def add(self, stamp_ns: int, duration: float, now_ns: int | None = None) -> None:
        """Note a cycle; duration [s]."""
        index = self._count % CAPACITY
        self._stamps[index] = stamp_ns
        self._durations[index] = duration
        self._arrivals[index] = monotonic_ns() if now_ns is None else now_ns
        self._follows[index] = self._running
        self._running = True
        self._count += 1

    def since(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return stamps [ns] and durations [s] of the cycles after the first ones."""
        new = self._count - count
        return self._newest(self._stamps, new), self._newest(self._durations, new)

    def report(self) -> CycleReport:
        """Return the report of the cycles since the last one."""
        count = self._count - self._reported
        durations = self._newest(self._durations, count)
        # The interval that leads to the first new cycle counts as well.
        stamps = self._newest(self._stamps, count + bool(self._reported))
        self._reported = self._count
        follows = self._newest(self._follows, len(stamps))[1:]
        arrivals = self._newest(self._arrivals, len(stamps))
        usual, missed, stopped, jumped = _gaps(
            np.diff(stamps)[follows], np.diff(arrivals)[follows], self._usual
        )
        self._usual = usual if np.isfinite(usual) else self._usual
        self.total_missed += missed
        p50, p99, longest = (
            (*np.percentile(durations, (50, 99)), durations.max()) if count else (np.nan,) * 3
        )
        times = float(p50), float(p99), float(longest)
        return CycleReport(count, missed, usual, *times, stopped, jumped)

    def _newest(self, ring: np.ndarray, count: int) -> np.ndarray:
        """Return the newest values of a ring, oldest first."""
        last = self._count
        return ring[np.arange(last - min(count, CAPACITY, last), last) % CAPACITY]


def _gaps(
    intervals: np.ndarray, waited: np.ndarray, before: float
) -> tuple[float, int, float, float]:
    """
    Return usual interval [s], missing stamps, longest stop [s] and longest jump [s].

    intervals of stamps and of arrivals (n,) [ns]; time that was set back does not count.
    """
    ahead = intervals > 0
    forward, waited = intervals[ahead], waited[ahead]
    if not len(forward):
        return float('nan'), 0, 0.0, 0.0
    usual = 1e9 * before
    if len(forward) >= MIN_INTERVALS or not np.isfinite(before):
        usual = np.sort(forward)[(len(forward) - 1) // 2]
    long = forward > max(1e9 * MAX_INTERVAL, MAX_INTERVAL_RATIO * usual)
    stopped = long & (waited >= MIN_WAIT_RATIO * forward)
    # A late stamp makes a long interval and a short one: the two cancel, a missing one does not.
    missing = (np.rint(forward[~long] / usual) - 1).sum()
    return (
        1e-9 * usual,
        max(0, int(missing)),
        1e-9 * float(forward[stopped].max(initial=0)),
        1e-9 * float(forward[long & ~stopped].max(initial=0)),
    )
