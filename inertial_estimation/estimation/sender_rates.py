# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Senders of points of contact that are slower than a contact lives."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

import numpy as np

KEPT_STAMPS = 32
MIN_GAPS = 3
"""Fewer long gaps may be chance."""
REGULAR = 0.25
"""Largest difference of a gap from the median of the long ones, as a share of it."""
TOGETHER = 0.05
"""Points within this share of the timeout are of one message, stamped one by one."""
MAX_SILENCE = 3.0
"""Periods without a message after which a sender has ended."""


class SlowSender(NamedTuple):
    """A frame whose contact ends and begins again at the period of its sender."""

    frame: str
    period: float
    """Median time between two messages [s]."""
    n_gaps: int
    """Number of times that it ended."""


class SenderRates:
    """
    Stamps of the points of each frame, and the senders slower than the timeout [s].

    Nearly all gaps between the messages of such a sender are too long, and as long as its period,
    so that its contacts end and begin again. The messages of a finger that taps come fast while it
    is there.
    """

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._timeout_ns = round(1e9 * timeout)
        self._stamps: dict[str, list[int]] = {}
        self._slow: dict[str, SlowSender] = {}

    def note(self, stamp_ns: int, name: str) -> None:
        """Take a point."""
        stamps = self._stamps.setdefault(name, [])
        if stamps and stamps[-1] - stamp_ns >= self._timeout_ns:
            # Time was set back; senders that are out of step differ by less.
            stamps.clear()
        place, near = bisect_left(stamps, stamp_ns), TOGETHER * self._timeout_ns
        if any(abs(stamp_ns - s) <= near for s in stamps[max(place - 1, 0) : place + 1]):
            return
        stamps.insert(place, stamp_ns)
        del stamps[:-KEPT_STAMPS]
        is_newest = len(stamps) > 1 and stamps[-1] == stamp_ns
        if is_newest and stamp_ns - stamps[-2] > self._timeout_ns:
            found, before = self._slow_sender(name), self._slow.get(name)
            if found:
                n_gaps = found.n_gaps if before is None else before.n_gaps + 1
                self._slow[name] = found._replace(n_gaps=n_gaps)

    def slow_now(self, now_ns: int) -> tuple[SlowSender, ...]:
        """Return the slow senders that are sending."""
        return tuple(
            slow
            for name, slow in self._slow.items()
            if (stamps := self._stamps.get(name))
            and 1e-9 * abs(now_ns - stamps[-1]) <= MAX_SILENCE * slow.period
            and self._slow_sender(name)
        )

    @property
    def ever_slow(self) -> tuple[SlowSender, ...]:
        """The senders that were slow at any time."""
        return tuple(self._slow.values())

    def _slow_sender(self, name: str) -> SlowSender | None:
        """Return the sender of a frame if most of its gaps are long ones of one period."""
        gaps = np.diff(self._stamps[name])
        long = gaps > self._timeout_ns
        if long.sum() < MIN_GAPS:
            return None
        period = float(np.median(gaps[long]))
        n = int((long & (np.abs(gaps - period) <= REGULAR * period)).sum())
        # Half of them: two senders, or two points far apart in one message. One end may be cut.
        if n < MIN_GAPS or 2 * n + 1 < len(gaps):
            return None
        return SlowSender(name, 1e-9 * period, n)
