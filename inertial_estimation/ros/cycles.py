# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How long the cycles take, and which ones are missing; arrays only, read once a second."""

from typing import NamedTuple

import numpy as np

CAPACITY = 8192
"""More cycles than a second has; of a longer time the newest count."""


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


class Cycles:
    """A ring of stamps and durations."""

    def __init__(self) -> None:
        self._stamps = np.zeros(CAPACITY, dtype=np.int64)
        self._durations = np.zeros(CAPACITY)
        self._follows = np.zeros(CAPACITY, dtype=bool)
        self._count = self._reported = 0
        self._running = False
        self.total_missed = 0

    def restart(self) -> None:
        """Let the time up to the next cycle count as a pause, not as cycles that are missing."""
        self._running = False

    def add(self, stamp_ns: int, duration: float) -> None:
        """
        Note a cycle.

        Parameters
        ----------
        stamp_ns : int
            Its stamp [ns].
        duration : float
            From the decoded message to the last publication [s].

        """
        index = self._count % CAPACITY
        self._stamps[index] = stamp_ns
        self._durations[index] = duration
        self._follows[index] = self._running
        self._running = True
        self._count += 1

    def since(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the cycles after a number of them.

        Parameters
        ----------
        count : int
            Cycles that are known already.

        Returns
        -------
        stamps : ndarray of int64
            At most `CAPACITY`, the newest [ns].
        durations : ndarray
            As many [s].

        """
        new = self._count - count
        return self._newest(self._stamps, new), self._newest(self._durations, new)

    def report(self) -> CycleReport:
        """
        Return what happened since the last report.

        Returns
        -------
        CycleReport

        """
        count = self._count - self._reported
        durations = self._newest(self._durations, count)
        # The interval that leads to the first new cycle counts as well.
        stamps = self._newest(self._stamps, count + bool(self._reported))
        self._reported = self._count
        follows = self._newest(self._follows, len(stamps))[1:]
        interval, missed = _gaps(np.diff(stamps)[follows])
        self.total_missed += missed
        p50, p99, longest = (
            (*np.percentile(durations, (50, 99)), durations.max()) if count else (np.nan,) * 3
        )
        return CycleReport(count, missed, interval, float(p50), float(p99), float(longest))

    def _newest(self, ring: np.ndarray, count: int) -> np.ndarray:
        """Return the newest values of a ring, oldest first."""
        last = self._count
        return ring[np.arange(last - min(count, CAPACITY, last), last) % CAPACITY]


def _gaps(intervals: np.ndarray) -> tuple[float, int]:
    """Return the usual interval [s] and how many stamps are missing; time set back counts not."""
    forward = intervals[intervals > 0]
    if not len(forward):
        return float('nan'), 0
    usual = float(np.median(forward))
    # A late stamp makes a long interval and a short one: the two cancel, a missing one does not.
    missing = (np.rint(forward / usual) - 1).sum()
    return 1e-9 * usual, max(0, int(missing))
