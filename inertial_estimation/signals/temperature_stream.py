# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The temperature of one FT sensor: the newest one that is not later than the joint state."""

from __future__ import annotations

from collections import deque
from math import isfinite, nan

from inertial_estimation.config import FtSettings
from inertial_estimation.signals.stream import MAX_QUEUE, Stream


class TemperatureStream(Stream):
    """One number now and then, held for long: it changes in minutes."""

    __slots__ = ('_max_age_ns', '_queue', 'stamp_ns', 'value')

    def __init__(self, name: str, settings: FtSettings) -> None:
        super().__init__(name)
        self._max_age_ns = round(1e9 * settings.temperature_max_age)
        self._queue: deque[tuple[int, float]] = deque(maxlen=MAX_QUEUE)
        self.restart()

    def restart(self) -> None:
        """Forget the temperatures, as at a time jump; the counters go on."""
        super().restart()
        self._queue.clear()
        self.stamp_ns, self.value = 0, nan

    def push(self, stamp_ns: int, celsius: float, restart_on_jump: bool) -> None:
        """Take a temperature; celsius [degrees Celsius]."""
        if stamp_ns <= 0 or stamp_ns <= self.last_ns:
            if stamp_ns <= 0 or stamp_ns == self.last_ns or not restart_on_jump:
                self.refused += 1
                return
            self.restarts += 1
            self.restart()
        self.note(stamp_ns)
        if len(self._queue) == MAX_QUEUE:
            self.dropped += 1
        self._queue.append((stamp_ns, celsius))

    def at(self, stamp_ns: int) -> float:
        """Return the temperature at an instant."""
        queue = self._queue
        while queue and queue[0][0] <= stamp_ns:
            self.stamp_ns, self.value = queue.popleft()
        if not self.stamp_ns:
            return nan
        self.age_ns = stamp_ns - self.stamp_ns
        if self.age_ns > self._max_age_ns:
            return nan
        if not isfinite(self.value):
            self.invalid += 1
            return nan
        self.used += 1
        return self.value
