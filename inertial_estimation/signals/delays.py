# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Streams that are evaluated at an instant in the past.

Up to the newest joint state all messages go into the filters; the instant lies ``filter_delay``
before it. Derivatives are evaluated there, inside the filter's window. Measured values are those
of the same instant: interpolated between the messages before and after it, or the filter's value
if readings are smoothed.

Ages are reckoned from the instant. A sensor counts as frozen as soon as its newest message shows
it: the values that stand are in the window, whatever the instant.
"""

from __future__ import annotations

from collections import deque
from itertools import takewhile

import numpy as np

from inertial_estimation.config import EstimatorSettings, FtSettings, ImuSettings
from inertial_estimation.sample import Array, SensorState
from inertial_estimation.signals.derivatives import Differentiator
from inertial_estimation.signals.joint_stream import (
    ACCELERATION,
    POSITION,
    VELOCITY,
    Indices,
    JointPart,
)
from inertial_estimation.signals.sensor_stream import (
    FRESH,
    FROZEN,
    ImuStream,
    SensorStream,
)

WARMING = int(SensorState.WARMING)
WAITING = 2
"""
Joint states that may wait for their sample.

Where stamps jitter, now and then two of them come to lie the delay back at once, and then none.
"""


def delays(settings: EstimatorSettings) -> bool:
    """Return whether samples are about instants in the past."""
    return bool(round(1e9 * settings.filter_delay)) or settings.smooth_readings


class DelayedJointPart(JointPart):
    """The joints that one publisher reports together, at an instant in the past; rows (n,)."""

    __slots__ = ('_held', '_instant_ns', '_message', '_smooth')

    def __init__(
        self, name: str, rows: Indices, differentiator: Differentiator | None, smooth: bool
    ) -> None:
        self._held: deque[tuple[int, Array]] = deque()
        self._instant_ns = 0
        self._smooth = smooth
        super().__init__(name, rows, differentiator)

    def restart(self) -> None:
        super().restart()
        self._held.clear()
        self._message = self.block

    def feed(self, stamp_ns: int) -> None:
        """Let the filter see the messages up to the newest joint state."""
        queue = self._queue
        while queue and queue[0][0] <= stamp_ns:
            message = queue.popleft()
            self._held.append(message)
            if self._differentiator is not None:
                self._differentiator.append(message[0], message[1][POSITION])

    def next_instant(self, after_ns: int, until_ns: int) -> int:
        """Return the stamp of the message that the next sample is about."""
        passed = takewhile(lambda message: message[0] <= until_ns, self._held)
        stamps = [stamp for stamp, _ in passed if stamp > after_ns]
        if not stamps:
            return 0
        return stamps[0] if len(stamps) <= 1 + WAITING else stamps[-1]

    def advance(self, stamp_ns: int) -> None:
        held = self._held
        self._instant_ns = stamp_ns
        while held and held[0][0] <= stamp_ns:
            self.stamp_ns, self._message = held.popleft()

    def use(self, filter_velocity: bool, filter_acceleration: bool) -> None:
        self.block = self._measured()
        differentiator = self._differentiator
        if differentiator is None:
            self.used += 1
            return
        self.used += differentiator.ready
        self.unfiltered += not differentiator.ready
        values = differentiator.evaluate_at(self._instant_ns)
        if self._smooth:
            np.copyto(self.block[POSITION], values[0], where=np.isfinite(values[0]))
        if filter_velocity:
            self.block[VELOCITY] = values[1]
        if filter_acceleration:
            self.block[ACCELERATION] = values[2]

    def _measured(self) -> Array:
        """Return the values at the instant, interpolated between messages."""
        if self._instant_ns == self.stamp_ns or not self._held:
            return self._message.copy()
        next_ns, following = self._held[0]
        share = (self._instant_ns - self.stamp_ns) / (next_ns - self.stamp_ns)
        block: Array = self._message + share * (following - self._message)
        return block


class DelayedSensorStream(ImuStream):
    """Readings of an FT sensor or IMU at an instant in the past."""

    __slots__ = ('_derive', '_fed_ns', '_fed_since_ns', '_held', '_reading', '_smooth')

    def __init__(
        self,
        name: str,
        settings: FtSettings | ImuSettings,
        differentiator: Differentiator | None,
        *,
        derive: bool,
        smooth: bool,
        measures: str = '',
    ) -> None:
        self._held: deque[tuple[int, bytes, int]] = deque()
        self._derive = derive
        self._smooth = smooth
        super().__init__(name, settings, differentiator, measures)

    @property
    def needs_all(self) -> bool:
        return True

    def restart(self) -> None:
        super().restart()
        self._held.clear()
        self._reading = b''
        self._fed_ns = self._fed_since_ns = 0

    def feed(self, stamp_ns: int) -> None:
        queue, differentiator = self._queue, self._differentiator
        while queue and queue[0][0] <= stamp_ns:
            message = queue.popleft()
            self._held.append(message)
            self._fed_ns, data, self._fed_since_ns = message
            if differentiator is not None:
                self._feed(differentiator, self._fed_ns, data, self._fed_since_ns)

    def advance(self, stamp_ns: int) -> None:
        held = self._held
        while held and held[0][0] <= stamp_ns:
            self.stamp_ns, self._reading, self.since_ns = held.popleft()
        self.data = self._reading

    def select(self, stamp_ns: int) -> int:
        state = SensorStream.select(self, stamp_ns)
        if state == FRESH and self.is_standing(self._fed_ns - self._fed_since_ns):
            self.used -= 1
            return FROZEN
        if state != FRESH:
            return state
        self._interpolate(stamp_ns)
        return self._filter(stamp_ns)

    def _interpolate(self, stamp_ns: int) -> None:
        """Interpolate `data` between the readings before and after the instant."""
        if stamp_ns == self.stamp_ns or not self._held:
            return
        next_ns, following, _ = self._held[0]
        share = (stamp_ns - self.stamp_ns) / (next_ns - self.stamp_ns)
        before = np.frombuffer(self._reading)
        self.data = (before + share * (np.frombuffer(following) - before)).tobytes()

    def _filter(self, stamp_ns: int) -> int:
        """Evaluate the filter; return the state of the reading."""
        differentiator = self._differentiator
        if differentiator is None:
            return FRESH
        self.unfiltered += not differentiator.ready
        values = differentiator.evaluate_at(stamp_ns)
        if self._derive:
            self.angular_acceleration = values[1, :3]
        if self._smooth and self.is_sound(self.data):
            self.data = values[0].tobytes()
            if not self.is_sound(self.data):
                self.used -= 1
                return WARMING
        return FRESH
