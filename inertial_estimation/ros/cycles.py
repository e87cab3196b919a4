# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How long the cycles take, and which ones are missing; arrays only, read once a second."""

from time import monotonic_ns
from typing import NamedTuple

import numpy as np

CAPACITY = 8192
"""More cycles than a second has; of a longer time the newest count."""
LONGEST = 1.0
"""Between two stamps; beyond it joint states stopped, or time jumped, and none is missing [s]."""
MANY = 10.0
"""Times the usual interval at least, for this."""
FEW = 3
"""Intervals of which fewer do not tell the usual one, if it was known before."""
STOPPED = 0.1
"""Of an interval of stamps: if less time went by than this, it was time that jumped."""


class CycleReport(NamedTuple):
    """The cycles since the report before."""

    count: int
    """Cycles."""
    missed: int
    """Stamps that are not there between two that are, at the usual interval."""
    interval: float
    """Usual (median) interval of the stamps, NaN with less than two [s]."""
    duration_p50: float
    """Median duration, NaN without cycles [s]."""
    duration_p99: float
    """Duration that one in a hundred exceeds [s]."""
    duration_max: float
    """Longest duration [s]."""
    stopped: float = 0.0
    """Longest time for which no stamp came, beyond `LONGEST`; 0: all came in time [s]."""
    jumped: float = 0.0
    """Furthest that stamps went forward in less time than that; 0: they did not [s]."""


class Gaps(NamedTuple):
    """What is between stamps."""

    usual: float
    """Median, NaN without any [s]."""
    missing: int
    stopped: float
    jumped: float


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
        """Let the time up to the next cycle count as a pause, not as cycles that are missing."""
        self._running = False

    def add(self, stamp_ns: int, duration: float, now_ns: int | None = None) -> None:
        """
        Note a cycle.

        duration [s].
        """
        index = self._count % CAPACITY
        self._stamps[index] = stamp_ns
        self._durations[index] = duration
        self._arrivals[index] = monotonic_ns() if now_ns is None else now_ns
        self._follows[index] = self._running
        self._running = True
        self._count += 1

    def since(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the cycles after a number of them.

        Returns stamps [ns]; durations [s].
        """
        new = self._count - count
        return self._newest(self._stamps, new), self._newest(self._durations, new)

    def report(self) -> CycleReport:
        """Return what happened since the last report."""
        count = self._count - self._reported
        durations = self._newest(self._durations, count)
        # The interval that leads to the first new cycle counts as well.
        stamps = self._newest(self._stamps, count + bool(self._reported))
        self._reported = self._count
        follows = self._newest(self._follows, len(stamps))[1:]
        arrivals = self._newest(self._arrivals, len(stamps))
        gaps = _gaps(np.diff(stamps)[follows], np.diff(arrivals)[follows], self._usual)
        self._usual = gaps.usual if np.isfinite(gaps.usual) else self._usual
        self.total_missed += gaps.missing
        p50, p99, longest = (
            (*np.percentile(durations, (50, 99)), durations.max()) if count else (np.nan,) * 3
        )
        times = float(p50), float(p99), float(longest)
        return CycleReport(count, gaps.missing, gaps.usual, *times, gaps.stopped, gaps.jumped)

    def _newest(self, ring: np.ndarray, count: int) -> np.ndarray:
        """Return the newest values of a ring, oldest first."""
        last = self._count
        return ring[np.arange(last - min(count, CAPACITY, last), last) % CAPACITY]


def _gaps(intervals: np.ndarray, waited: np.ndarray, before: float) -> Gaps:
    """Return what is between stamps [ns], by the time that went by; time set back counts not."""
    ahead = intervals > 0
    forward, waited = intervals[ahead], waited[ahead]
    if not len(forward):
        return Gaps(float('nan'), 0, 0.0, 0.0)
    usual = 1e9 * before
    if len(forward) >= FEW or not np.isfinite(before):
        usual = np.sort(forward)[(len(forward) - 1) // 2]
    long = forward > max(1e9 * LONGEST, MANY * usual)
    stopped = long & (waited >= STOPPED * forward)
    # A late stamp makes a long interval and a short one: the two cancel, a missing one does not.
    missing = (np.rint(forward[~long] / usual) - 1).sum()
    return Gaps(
        1e-9 * usual,
        max(0, int(missing)),
        1e-9 * float(forward[stopped].max(initial=0)),
        1e-9 * float(forward[long & ~stopped].max(initial=0)),
    )
