# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Senders of contacts slower than ``contact_timeout``, whose contacts end and begin again.

The gaps between the messages of such a sender are too long, and nearly all as long as its period.
A finger that taps is another matter: its messages come fast while it is there.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

import numpy as np

KEPT = 32
"""Stamps of each frame."""
MAX_FRAMES = 64
"""More than this is not a robot but a fault of a sender; who has been silent longest goes."""
FEWEST = 3
"""Fewer long gaps may be chance."""
REGULAR = 0.25
"""Gaps that are no further from their median, as a share of it, are those of a sender."""
TOGETHER = 0.05
"""Points that come within this share of the timeout are of one message, stamped one by one."""
SILENT = 3.0
"""A sender that has not spoken for so many periods has ended, or nothing is felt any more."""
NANOSECONDS = 1_000_000_000


class SlowSender(NamedTuple):
    """A frame whose touch ends and begins again at the period of its sender."""

    frame: str
    period: float
    """Median time between two messages [s]."""
    n_gaps: int
    """How often it ended so far."""


class _Frame:
    """The newest stamps of a frame, and the long gaps found in all of them."""

    __slots__ = ('counted_ns', 'n_gaps', 'period_ns', 'stamps')

    def __init__(self) -> None:
        self.stamps: list[int] = []
        self.n_gaps = self.counted_ns = 0
        self.period_ns = 0.0

    def add(self, stamp_ns: int, timeout_ns: int) -> bool:
        """Put a stamp in its place; tell whether a gap that is too long ends with it."""
        stamps = self.stamps
        # Two senders of one frame may be out of step; time set back is another matter.
        if stamps and stamps[-1] - stamp_ns >= timeout_ns:
            stamps.clear()
            self.counted_ns = 0
        place = bisect_left(stamps, stamp_ns)
        around = stamps[max(place - 1, 0) : place + 1]
        if any(abs(stamp_ns - other) <= TOGETHER * timeout_ns for other in around):
            return False
        stamps.insert(place, stamp_ns)
        del stamps[:-KEPT]
        return len(stamps) > 1 and stamps[-1] == stamp_ns and stamp_ns - stamps[-2] > timeout_ns

    def is_slow(self, timeout_ns: int) -> bool:
        """Return whether most gaps are long ones of one period, and count those that are new."""
        gaps = np.diff(self.stamps)
        long = gaps > timeout_ns
        if long.sum() < FEWEST:
            return False
        period = float(np.median(gaps[long]))
        regular = long & (np.abs(gaps - period) <= REGULAR * period)
        n = int(regular.sum())
        # Half of them: two senders, or two points far apart in one message. One end may be cut.
        if n < FEWEST or 2 * n + 1 < len(gaps):
            return False
        self.period_ns = period
        self.n_gaps += int((regular & (np.array(self.stamps[1:]) > self.counted_ns)).sum())
        self.counted_ns = self.stamps[-1]
        return True


class TouchRhythm:
    """Notes the stamps of the touches of each frame, live or in a bag; timeout [s]."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._timeout_ns = round(timeout * NANOSECONDS)
        # Who spoke last stands last.
        self._frames: dict[str, _Frame] = {}
        self._slow: dict[str, _Frame] = {}

    def note(self, stamp_ns: int, name: str) -> None:
        """Take a point."""
        if stamp_ns <= 0:
            return
        frame = self._frames.pop(name, None) or self._slow.get(name) or _Frame()
        if len(self._frames) >= MAX_FRAMES:
            del self._frames[next(iter(self._frames))]
        self._frames[name] = frame
        # Fast ones, of which there are many, cost nothing more.
        slow = frame.add(stamp_ns, self._timeout_ns) and frame.is_slow(self._timeout_ns)
        if slow and (name in self._slow or len(self._slow) < MAX_FRAMES):
            self._slow[name] = frame

    def slow_now(self, now_ns: int) -> tuple[SlowSender, ...]:
        """Return the frames whose touches lapse, although somebody goes on reporting them."""
        return tuple(
            SlowSender(name, frame.period_ns / NANOSECONDS, frame.n_gaps)
            for name, frame in self._slow.items()
            # Time may have been set back since.
            if abs(now_ns - frame.stamps[-1]) <= SILENT * frame.period_ns
            and frame.is_slow(self._timeout_ns)
        )

    @property
    def ever_slow(self) -> tuple[SlowSender, ...]:
        """The frames whose touches lapsed at any time, as is asked of a bag."""
        return tuple(
            SlowSender(name, frame.period_ns / NANOSECONDS, frame.n_gaps)
            for name, frame in self._slow.items()
        )
