# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A stream of stamped messages: order, queue, derivative filter, and counters.

Messages wait in a queue until a joint state comes. Those up to its stamp pass the filter. The
values are those of the newest message that is not later than the instant of the sample; with
``filter.delay`` the instant lies in the past, and messages between the two are held.
"""

from __future__ import annotations

from collections import deque
from math import nan
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.sample import SensorState
from inertial_estimation.signals.derivatives import Differentiator
from inertial_estimation.signals.savitzky_golay import compiled
from inertial_estimation.signals.stream_statistics import StreamStatistics

MAX_QUEUE = 1024
"""Messages that wait for a joint state; enough for one second at 1 kHz."""
StreamFields = object if compiled is None else compiled.StreamFields
"""Numbers of a stream where compiled code finds them."""
FRESH, ASSUMED, ABSENT, STALE, FROZEN, INVALID, WARMING, PARTIAL = map(int, SensorState)


class Stream(StreamFields):  # type: ignore[misc, valid-type]
    """Messages of one publisher in the order of their stamps; tuples that begin with the stamp."""

    def __init__(
        self, name: str, max_age: float, differentiator: Differentiator | None = None
    ) -> None:
        self.name, self.differentiator = name, differentiator
        self.set_max_age(max_age)
        # Fields of `StreamStatistics`.
        self.received = self.used = self.refused = self.dropped = 0
        self.repeated = self.invalid = self.restarts = self.unfiltered = 0
        self._longest_gap_ns = 0
        self._age_ns: float = nan
        self._queue: deque[Any] = deque(maxlen=MAX_QUEUE)
        self._held: deque[Any] = deque()
        self.restart()

    def set_max_age(self, seconds: float) -> None:
        """Set the age from which a message is stale."""
        self._max_age_ns = round(1e9 * seconds)

    def restart(self) -> None:
        """Forget the messages, as at a time jump; the counters go on."""
        self.first_ns = self.last_ns = self._counted = self._evaluated_ns = 0
        self._queue.clear()
        self._held.clear()
        self.fed: Any = (0,)
        """Newest message that has passed the filter."""
        self.message: Any = (0,)
        """Newest message that is not later than the instant."""
        self.state = ABSENT
        if self.differentiator is not None:
            self.differentiator.reset()

    def goes_back(self, stamp_ns: int) -> bool:
        """Restart with a stamp that is earlier than the last, or refuse it."""
        if stamp_ns <= 0 or stamp_ns == self.last_ns:
            self.refused += 1
            return False
        self.restarts += 1
        self.restart()
        return True

    def put(self, stamp_ns: int, message: Any) -> None:
        """Count a message that is later than the last, and queue it."""
        if not self.last_ns:
            self.first_ns = stamp_ns
        elif stamp_ns - self.last_ns > self._longest_gap_ns:
            self._longest_gap_ns = stamp_ns - self.last_ns
        self.last_ns = stamp_ns
        self.received += 1
        self._counted += 1
        if len(self._queue) == MAX_QUEUE:
            self.dropped += 1
        self._queue.append(message)

    def feed(self, stamp_ns: int) -> None:
        """Filter and hold the messages between the instant and a later stamp."""
        queue = self._queue
        while queue and queue[0][0] <= stamp_ns:
            self.fed = queue.popleft()
            self._held.append(self.fed)
            if self.differentiator is not None:
                self._filter(self.differentiator)

    def _filter(self, differentiator: Differentiator) -> None:
        """Append the message that is fed to the filter."""

    def advance(self, stamp_ns: int) -> None:
        """Move to the newest message that is not later than an instant, and set its `state`."""
        held, queue = self._held, self._queue
        while held and held[0][0] <= stamp_ns:
            self.message = held.popleft()
        while queue and queue[0][0] <= stamp_ns:
            self.fed = self.message = queue.popleft()
            if self.differentiator is not None:
                self._filter(self.differentiator)
        if not self.message[0]:
            self.state = ABSENT
            return
        self._age_ns = stamp_ns - self.message[0]
        self.state = STALE if self._age_ns > self._max_age_ns else FRESH

    def interpolated(self, stamp_ns: int, before: Array, following: Array) -> Array:
        """Return values at an instant between the message and the next one that is held."""
        share = (stamp_ns - self.message[0]) / (self._held[0][0] - self.message[0])
        values: Array = before + share * (following - before)
        return values

    @property
    def rate(self) -> float:
        """Mean rate of the stamps since the last reset; NaN before the second message [Hz]."""
        span = 1e-9 * (self.last_ns - self.first_ns)
        return (self._counted - 1) / span if span > 0.0 else nan

    def statistics(self) -> StreamStatistics:
        """Return the counters as they are now."""
        return StreamStatistics(
            *(self.received, self.used, self.refused, self.dropped),
            *(self.repeated, self.invalid, self.restarts, self.unfiltered),
            last_stamp_ns=self.last_ns,
            longest_gap=1e-9 * self._longest_gap_ns,
            age=1e-9 * self._age_ns,
            rate=self.rate,
            filter_lack=self.differentiator.lack if self.differentiator else '',
        )


def all_finite(values: Array) -> bool:
    """Return true if no value is NaN or infinite; quicker than `np.isfinite`."""
    total = float(np.vdot(values, values))
    return total - total == 0.0
