# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""FT sensor or IMU: the newest reading that is not later than the joint state."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np

from inertial_estimation.config import FtSettings, ImuSettings
from inertial_estimation.errors import ShapeError
from inertial_estimation.sample import Array, SensorState
from inertial_estimation.signals.derivatives import Differentiator
from inertial_estimation.signals.stream import (
    MAX_QUEUE,
    FrozenInterval,
    Stream,
    StreamStatistics,
)

READING_BYTES = 6 * 8
NO_READING = np.full(6, np.nan).tobytes()
SEEN = 4
"""Readings at least in the time after which a value counts as frozen."""
MAX_INTERVALS = 1000
"""Frozen intervals that are kept; a log has a few, a broken sensor makes ten a second."""

FRESH, ABSENT, STALE, FROZEN, INVALID, PARTIAL = (
    int(state)
    for state in (
        SensorState.FRESH,
        SensorState.ABSENT,
        SensorState.STALE,
        SensorState.FROZEN,
        SensorState.INVALID,
        SensorState.PARTIAL,
    )
)


class SensorStream(Stream):
    """
    Readings of six numbers, kept as bytes until a joint state asks for one.

    Bytes are compared and joined faster than arrays, and cannot be changed.
    """

    __slots__ = (
        '_frozen_after_ns',
        '_frozen_count',
        '_intervals',
        '_kept_ns',
        '_max_age_ns',
        '_offset_ns',
        '_queue',
        '_repeated_ns',
        '_since_ns',
        '_value',
        'data',
        'measures',
        'since_ns',
        'stamp_ns',
    )

    def __init__(self, name: str, settings: FtSettings | ImuSettings, measures: str = '') -> None:
        super().__init__(name)
        self.measures = measures
        self._max_age_ns = round(1e9 * settings.max_age)
        self._offset_ns = round(1e9 * settings.time_offset)
        self._frozen_after_ns = round(1e9 * settings.frozen_after)
        self._queue: deque[tuple[int, bytes, int]] = deque(maxlen=MAX_QUEUE)
        self._intervals: deque[FrozenInterval] = deque(maxlen=MAX_INTERVALS)
        self._frozen_count = 0
        self.restart()

    def restart(self) -> None:
        super().restart()
        self._queue.clear()
        self._value = b''
        self._since_ns = self._repeated_ns = self._kept_ns = 0
        self.data = b''
        self.stamp_ns = self.since_ns = 0

    def push(self, stamp_ns: int, data: bytes, restart_on_jump: bool) -> None:
        if len(data) != READING_BYTES:
            raise ShapeError(self.name, (6,), (len(data) // 8,))
        stamp = stamp_ns + self._offset_ns
        if stamp_ns <= 0 or stamp <= self.last_ns:
            if stamp_ns <= 0 or stamp == self.last_ns or not restart_on_jump:
                self.refused += 1
                return
            self._close_interval()
            self.restarts += 1
            self.restart()
        if data == self._value:
            self.repeated += 1
            self._repeated_ns = self._repeated_ns or stamp
        else:
            self._close_interval()
            self._value = data
            self._since_ns, self._repeated_ns = stamp, 0
        self.note(stamp)
        self._kept_ns = stamp
        if len(self._queue) == MAX_QUEUE:
            self.dropped += 1
        self._queue.append((stamp, data, self._since_ns))

    @property
    def needs_all(self) -> bool:
        """Whether a filter needs every reading."""
        return False

    def skip(self, stamp_ns: int) -> bool:
        """Count a reading without its numbers, unless they may matter."""
        stamp = stamp_ns + self._offset_ns
        standing = self._frozen_after_ns and stamp - self._kept_ns > self._frozen_after_ns // SEEN
        if self.needs_all or standing or stamp_ns <= 0 or stamp <= self.last_ns:
            return False
        self.note(stamp)
        return True

    def advance(self, stamp_ns: int) -> None:
        """Move to the newest reading that is not later than a stamp [ns]."""
        queue = self._queue
        while queue and queue[0][0] <= stamp_ns:
            self.stamp_ns, self.data, self.since_ns = queue.popleft()

    def select(self, stamp_ns: int) -> int:
        """Return whether `data` may be used for a sample."""
        self.advance(stamp_ns)
        if not self.stamp_ns:
            return ABSENT
        self.age_ns = stamp_ns - self.stamp_ns
        if self.age_ns > self._max_age_ns:
            return STALE
        if 0 < self._frozen_after_ns <= self.stamp_ns - self.since_ns and self.is_sound(self.data):
            return FROZEN
        self.used += 1
        return FRESH

    def is_standing(self, lasted_ns: int) -> bool:
        """Return whether values have not changed for longer than those of a live sensor."""
        return 0 < self._frozen_after_ns <= lasted_ns

    def judge(self, reading: Array) -> int:
        """Return how much of a reading may be used; reading (6,)."""
        finite = np.isfinite(reading)
        if finite.all():
            return FRESH
        turn, shift = bool(finite[:3].all()), bool(finite[3:].all())
        if (shift and self.measures == 'accelerometer') or (turn and self.measures == 'gyroscope'):
            return FRESH
        absent = np.isnan(reading)
        in_part = (shift and absent[:3].all()) or (turn and absent[3:].all())
        return PARTIAL if in_part and self.measures == 'both' else INVALID

    def is_sound(self, data: bytes) -> bool:
        """Return whether something of a reading may be used."""
        return is_finite(data) or self.judge(np.frombuffer(data)) != INVALID

    def reject(self) -> None:
        """Take back the use of a reading that turned out to hold NaN or infinity."""
        self.used -= 1
        self.invalid += 1

    def statistics(self) -> StreamStatistics:
        intervals, count = tuple(self._intervals), self._frozen_count
        if self._stands_still():
            intervals, count = (*intervals, self._interval()), count + 1
        return replace(super().statistics(), frozen=count, frozen_intervals=intervals)

    def _stands_still(self) -> bool:
        """Return whether the newest value has lasted too long; NaN is invalid, not frozen."""
        lasted = 0 < self._frozen_after_ns <= self.last_ns - self._since_ns
        return lasted and self.is_sound(self._value)

    def _interval(self) -> FrozenInterval:
        return FrozenInterval(self._since_ns, self._repeated_ns, self.last_ns)

    def _close_interval(self) -> None:
        """Keep the interval that ended with the last message, if it was one."""
        if self._stands_still():
            self._intervals.append(self._interval())
            self._frozen_count += 1


class ImuStream(SensorStream):
    """Readings of angular velocity and proper acceleration; the former may be differentiated."""

    __slots__ = ('_differentiator', '_evaluated_ns', 'angular_acceleration')

    def __init__(
        self,
        name: str,
        settings: FtSettings | ImuSettings,
        differentiator: Differentiator | None,
        measures: str = 'both',
    ) -> None:
        self._differentiator = differentiator
        self.angular_acceleration: Array = np.zeros(3)
        super().__init__(name, settings, measures)

    @property
    def needs_all(self) -> bool:
        return self._differentiator is not None

    def restart(self) -> None:
        super().restart()
        self._evaluated_ns = 0
        if self._differentiator is not None:
            self._differentiator.reset()

    def advance(self, stamp_ns: int) -> None:
        queue = self._queue
        differentiator = self._differentiator
        while queue and queue[0][0] <= stamp_ns:
            self.stamp_ns, self.data, self.since_ns = queue.popleft()
            if differentiator is not None:
                self._feed(differentiator, self.stamp_ns, self.data, self.since_ns)

    def _feed(
        self, differentiator: Differentiator, stamp_ns: int, data: bytes, since_ns: int
    ) -> None:
        """Give a reading to the filter, unless it stands: it would pass for a link at rest."""
        if self.is_standing(stamp_ns - since_ns):
            differentiator.reset()
        else:
            differentiator.append(stamp_ns, np.frombuffer(data, count=differentiator.n_channels))

    def select(self, stamp_ns: int) -> int:
        state = super().select(stamp_ns)
        differentiator = self._differentiator
        if differentiator is None:
            return state
        if state == FRESH and self.stamp_ns != self._evaluated_ns:
            self._evaluated_ns = self.stamp_ns
            self.unfiltered += not differentiator.ready
            self.angular_acceleration = differentiator.evaluate()[0]
        return state

    def hold_back(self) -> None:
        """Take back the use of a reading whose angular acceleration is not there."""
        self.used -= 1

    def statistics(self) -> StreamStatistics:
        lack = self._differentiator.lack if self._differentiator else ''
        return replace(super().statistics(), filter_lack=lack)


def is_finite(data: bytes) -> bool:
    """Return whether bytes hold neither NaN nor infinity."""
    return bool(np.isfinite(np.frombuffer(data)).all())


def all_finite(values: Array) -> bool:
    """Return whether no value is NaN or infinite; quicker than asking each."""
    total = float(np.vdot(values, values))
    return total - total == 0.0
