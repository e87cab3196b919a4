# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""One IMU: its newest reading, and the angular acceleration that a filter makes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from inertial_estimation.config import FtSettings, ImuSettings
from inertial_estimation.sample import Array
from inertial_estimation.signals.derivatives import Differentiator
from inertial_estimation.signals.sensor_stream import FRESH, SensorStream
from inertial_estimation.signals.stream import StreamStatistics


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
        """Whether a filter needs every reading."""
        return self._differentiator is not None

    def restart(self) -> None:
        """Forget the readings, as at a time jump; the counters go on."""
        super().restart()
        self._evaluated_ns = 0
        if self._differentiator is not None:
            self._differentiator.reset()

    def advance(self, stamp_ns: int) -> None:
        """Move to the newest reading that is not later than a stamp [ns]."""
        queue = self._queue
        differentiator = self._differentiator
        while queue and queue[0][0] <= stamp_ns:
            self.stamp_ns, self.data, self.since_ns = queue.popleft()
            if differentiator is not None:
                self._feed(differentiator, self.stamp_ns, self.data, self.since_ns)

    def _feed(
        self, differentiator: Differentiator, stamp_ns: int, data: bytes, since_ns: int
    ) -> None:
        """Give a reading to the filter, unless it stands: it would pass for a body at rest."""
        if self.is_standing(stamp_ns - since_ns):
            differentiator.reset()
        else:
            differentiator.append(stamp_ns, np.frombuffer(data, count=differentiator.n_channels))

    def select(self, stamp_ns: int) -> int:
        """Say whether `data` and `angular_acceleration` may be used for a sample."""
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
        """Return the counters as they are now."""
        lack = self._differentiator.lack if self._differentiator else ''
        return replace(super().statistics(), filter_lack=lack)
