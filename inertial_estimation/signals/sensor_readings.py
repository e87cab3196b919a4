# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""All FT sensors, their temperatures and IMUs: readings at an instant, and their states."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import isfinite, nan

import numpy as np

from inertial_estimation.config import EstimatorSettings, FtSettings
from inertial_estimation.sample import Array, SensorState
from inertial_estimation.signals.delays import DelayedSensorStream, delays
from inertial_estimation.signals.derivatives import (
    Differentiator,
    gyroscope_differentiator,
    smoother,
)
from inertial_estimation.signals.joint_stream import States
from inertial_estimation.signals.sensor_stream import (
    FRESH,
    INVALID,
    NO_READING,
    PARTIAL,
    ImuStream,
    SensorStream,
    all_finite,
)
from inertial_estimation.signals.stream import MAX_QUEUE, Stream

WARMING = int(SensorState.WARMING)
USED = (FRESH, PARTIAL)
"""States of IMUs of which something enters a sample."""


class TemperatureStream(Stream):
    """Temperature of one FT sensor: one number now and then, held for long."""

    __slots__ = ('_max_age_ns', '_queue', 'stamp_ns', 'value')

    def __init__(self, name: str, settings: FtSettings) -> None:
        super().__init__(name)
        self._max_age_ns = round(1e9 * settings.temperature_max_age)
        self._queue: deque[tuple[int, float]] = deque(maxlen=MAX_QUEUE)
        self.restart()

    def restart(self) -> None:
        super().restart()
        self._queue.clear()
        self.stamp_ns, self.value = 0, nan

    def push(self, stamp_ns: int, celsius: float, restart_on_jump: bool) -> None:
        """Take a temperature [degrees Celsius]."""
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
        """Return the newest temperature that is not later than an instant [degrees Celsius]."""
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


class SensorReadings:
    """The streams of all sensors."""

    def __init__(
        self,
        ft_names: Sequence[str],
        imu_names: Sequence[str],
        imu_measures: Sequence[str],
        settings: EstimatorSettings,
    ) -> None:
        self.fts = [_ft_stream(settings, name) for name in ft_names]
        self.imus = [_imu_stream(settings, *imu) for imu in zip(imu_names, imu_measures)]
        self._streams = (*self.fts, *self.imus)
        given = [(name, settings.ft_of(name)) for name in ft_names]
        self.temperatures = [
            TemperatureStream(name, ft) if ft.temperature_topic else None for name, ft in given
        ]
        self.measured_temperatures = [t for t in self.temperatures if t is not None]

    def select(self, stamp_ns: int) -> tuple[Array, States]:
        """
        Return the newest readings that are not later than an instant.

        Returns readings (n_fts + n_imus, 6); states (n_fts + n_imus,).
        """
        streams = self._streams
        codes = [stream.select(stamp_ns) for stream in streams]
        chunks = [s.data if code == FRESH else NO_READING for s, code in zip(streams, codes)]
        readings = np.frombuffer(bytearray().join(chunks)).reshape(-1, 6)
        if any(codes) or not all_finite(readings):
            finite = np.logical_and.reduce(np.isfinite(readings), axis=1)
            for k, stream in enumerate(streams):
                if codes[k] == FRESH and not finite[k]:
                    codes[k] = stream.judge(readings[k])
                    if codes[k] == INVALID:
                        readings[k] = np.nan
                        stream.reject()
        return readings, np.frombuffer(bytearray(codes), dtype=np.uint8)

    def angular_accelerations(self, states: States, rates: Array) -> Array:
        """
        Return the angular acceleration of each IMU in its axes; mark those that warm up.

        states (n_imus,); rates (n_imus, 3) [rad/s]; returns (n_imus, 3) [rad/s^2].
        """
        accelerations = np.empty((len(self.imus), 3))
        for k, (imu, state) in enumerate(zip(self.imus, states.tolist())):
            accelerations[k] = imu.angular_acceleration if state in USED else np.nan
        if not (all_finite(accelerations) and all_finite(rates)):
            known = np.logical_and.reduce(np.isfinite(accelerations), axis=1)
            turns = np.logical_and.reduce(np.isfinite(rates), axis=1)
            accelerations[~(known & turns)] = np.nan
            for k in np.flatnonzero(~known & turns & np.isin(states, USED)).tolist():
                states[k] = WARMING
                self.imus[k].hold_back()
        return accelerations

    def temperatures_at(self, stamp_ns: int) -> Array | None:
        """Return the temperature of each FT sensor, NaN where unknown; None: none is measured."""
        if not self.measured_temperatures:
            return None
        streams = self.temperatures
        return np.array([nan if stream is None else stream.at(stamp_ns) for stream in streams])


def _ft_stream(settings: EstimatorSettings, name: str) -> SensorStream:
    given, smooth = settings.ft_of(name), settings.smooth_readings
    if not delays(settings):
        return SensorStream(name, given)
    filter_ = smoother(settings) if smooth else None
    return DelayedSensorStream(name, given, filter_, derive=False, smooth=smooth)


def _imu_stream(settings: EstimatorSettings, name: str, measures: str) -> ImuStream:
    derive = settings.angular_acceleration_source == 'filter' and measures != 'accelerometer'
    given, smooth = settings.imu_of(name), settings.smooth_readings
    filter_: Differentiator | None = None
    if smooth:
        filter_ = smoother(settings)
    elif derive:
        filter_ = gyroscope_differentiator(settings)
    if not delays(settings):
        return ImuStream(name, given, filter_, measures)
    return DelayedSensorStream(
        name, given, filter_, derive=derive, smooth=smooth, measures=measures
    )
