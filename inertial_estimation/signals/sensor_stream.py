# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""FT sensors, their temperatures and IMUs: readings at an instant, and their states."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from math import isfinite, nan

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.config import EstimatorSettings, FtSettings, ImuSettings
from inertial_estimation.errors import ShapeError
from inertial_estimation.model.robot import Robot
from inertial_estimation.signals.derivatives import (
    Differentiator,
    gyroscope_differentiator,
    smoother,
)
from inertial_estimation.signals.savitzky_golay import compiled
from inertial_estimation.signals.stream import (
    FRESH,
    FROZEN,
    INVALID,
    PARTIAL,
    WARMING,
    Stream,
    all_finite,
)
from inertial_estimation.signals.stream_statistics import FrozenInterval, StreamStatistics

States = NDArray[np.uint8]

READING_BYTES = 6 * 8
NO_READING = np.full(6, np.nan).tobytes()
OTHER = 255
"""State of a reading that compiled code leaves to Python."""
MAX_TEMPERATURE_AGE = 60.0
"""Oldest temperature that is used [s]."""
MAX_INTERVALS = 1000
"""Frozen intervals that are kept; a log has a few, a broken sensor makes ten a second."""


class SensorStream(Stream):
    """
    Readings of an FT sensor or IMU.

    Six numbers are kept as bytes until a joint state asks for one: bytes are compared and joined
    faster than arrays. Messages hold the reading and the stamp since which it has not changed.
    """

    def __init__(
        self,
        name: str,
        given: FtSettings | ImuSettings,
        settings: EstimatorSettings,
        measures: str = '',
    ) -> None:
        self.measures = measures
        self._offset_ns = round(1e9 * given.time_offset)
        self._frozen_after_ns = round(1e9 * settings.frozen_after)
        limits = given.range if isinstance(given, FtSettings) else ()
        self._range = np.array(limits) if limits else None
        self._intervals: deque[FrozenInterval] = deque(maxlen=MAX_INTERVALS)
        self.angular_acceleration: Array = np.zeros(3)
        self._delayed, self._smooth = settings.filter.delay > 0.0, settings.filter.smooth_readings
        self._derives = (
            measures in ('both', 'gyroscope') and settings.angular_acceleration_source == 'filter'
        )
        filter_: Differentiator | None = None
        if self._smooth:
            filter_ = smoother(settings)
        elif self._derives:
            noise = given.gyroscope_noise if isinstance(given, ImuSettings) else 0.0
            filter_ = gyroscope_differentiator(settings, noise)
        super().__init__(name, given.max_age, filter_)

    def restart(self) -> None:
        super().restart()
        self._value = self.data = b''
        self._since_ns = self._repeated_ns = 0

    def push(self, stamp_ns: int, data: bytes) -> None:
        """Take a reading as bytes."""
        if len(data) != READING_BYTES:
            raise ShapeError(self.name, (6,), (len(data) // 8,))
        stamp = stamp_ns + self._offset_ns
        if stamp_ns <= 0:
            self.refused += 1
            return
        if stamp <= self.last_ns:
            if stamp < self.last_ns:
                self._close_interval()
            if not self.goes_back(stamp):
                return
        if self._range is not None and (np.abs(np.frombuffer(data)) >= self._range).any():
            data = NO_READING
        if data == self._value:
            self.repeated += 1
            self._repeated_ns = self._repeated_ns or stamp
        else:
            self._close_interval()
            self._value = data
            self._since_ns, self._repeated_ns = stamp, 0
        self.put(stamp, (stamp, data, self._since_ns))

    def _filter(self, differentiator: Differentiator) -> None:
        """Append the reading that is fed, unless it is frozen: not a link at rest."""
        stamp_ns, data, since_ns = self.fed
        if 0 < self._frozen_after_ns <= stamp_ns - since_ns:
            differentiator.reset()
        else:
            differentiator.append(stamp_ns, np.frombuffer(data, count=differentiator.n_channels))

    def select(self, stamp_ns: int) -> int:
        """Set `data` to the reading at the instant of the stream; return its state."""
        if self.state != FRESH:
            return self.state
        own_ns, self.data, since_ns = self.message
        if limit := self._frozen_after_ns:
            frozen = own_ns - since_ns >= limit
            if self.fed is not self.message:
                # The newest reading shows it first, for an instant in the past.
                frozen |= self.fed[0] - self.fed[2] >= limit
            if frozen and self._is_usable(self.data):
                return FROZEN
        self.used += 1
        if self._held and stamp_ns != own_ns:
            following = np.frombuffer(self._held[0][1])
            found = self.interpolated(stamp_ns, np.frombuffer(self.data), following)
            self.data = found.tobytes()
        return FRESH if self.differentiator is None else self._evaluate(stamp_ns)

    def _evaluate(self, stamp_ns: int) -> int:
        """Evaluate the filter at an instant, once; return the state of the reading."""
        filter_, stamp_ns = self.differentiator, min(stamp_ns, self.fed[0])
        if filter_ is None or (stamp_ns == self._evaluated_ns and not self._smooth):
            return FRESH
        self._evaluated_ns = stamp_ns
        self.unfiltered += not filter_.ready
        values = filter_.evaluate_at(stamp_ns)
        if self._derives:
            self.angular_acceleration = values[1, :3]
        if self._smooth and self._is_usable(self.data):
            self.data = values[0].tobytes()
            if not self._is_usable(self.data):
                self.used -= 1
                return WARMING
        return FRESH

    def judge(self, reading: Array) -> int:
        """Return the state of a reading by the numbers that are finite."""
        finite = np.isfinite(reading)
        if finite.all():
            return FRESH
        turn, shift = bool(finite[:3].all()), bool(finite[3:].all())
        if (shift and self.measures == 'accelerometer') or (turn and self.measures == 'gyroscope'):
            return FRESH
        absent = np.isnan(reading)
        in_part = (shift and absent[:3].all()) or (turn and absent[3:].all())
        return PARTIAL if in_part and self.measures == 'both' else INVALID

    def _is_usable(self, data: bytes) -> bool:
        """Return true if a part of a reading is finite."""
        return self.judge(np.frombuffer(data)) != INVALID

    def statistics(self) -> StreamStatistics:
        intervals = tuple(self._intervals)
        if interval := self._open_interval():
            intervals = (*intervals, interval)
        return replace(super().statistics(), frozen_intervals=intervals)

    def _open_interval(self) -> FrozenInterval | None:
        """Return the interval in which the newest value is frozen; NaN is invalid, not frozen."""
        frozen = 0 < self._frozen_after_ns <= self.last_ns - self._since_ns
        if not frozen or not self._is_usable(self._value):
            return None
        return FrozenInterval(self._since_ns, self._repeated_ns, self.last_ns)

    def _close_interval(self) -> None:
        """Keep the interval that ends with the last message."""
        if interval := self._open_interval():
            self._intervals.append(interval)


class TemperatureStream(Stream):
    """Temperature of one FT sensor: one number now and then, held for long."""

    def at(self, stamp_ns: int) -> float:
        """Return the newest temperature that is not later than an instant [degrees Celsius]."""
        self.advance(stamp_ns)
        if self.state != FRESH:
            return nan
        celsius: float = self.message[1]
        if not isfinite(celsius):
            self.invalid += 1
            return nan
        self.used += 1
        return celsius


class SensorStreams:
    """The streams of all sensors of a robot."""

    def __init__(self, robot: Robot, settings: EstimatorSettings) -> None:
        fts = [(ft.name, settings.ft_of(ft.name)) for ft in robot.ft_sensors]
        self.fts = [SensorStream(name, given, settings) for name, given in fts]
        self.imus = [
            SensorStream(imu.name, settings.imu_of(imu.name), settings, imu.measures)
            for imu in robot.imus
        ]
        self.temperatures = {
            k: TemperatureStream(name, MAX_TEMPERATURE_AGE)
            for k, (name, given) in enumerate(fts)
            if given.temperature_topic
        }
        self.streams = (*self.fts, *self.imus)

    def at(self, stamp_ns: int) -> tuple[Array, Array, States]:
        """
        Return the measurements at an instant; compiled code reads what is usual at once.

        Returns readings (n_fts + n_imus, 6), the angular acceleration of each IMU in its axes
        (n_imus, 3) [rad/s^2], and the state of each sensor.
        """
        n, n_fts = len(self.streams), len(self.fts)
        readings, spins, codes = np.empty((n, 6)), np.empty((n - n_fts, 3)), bytearray([OTHER] * n)
        given = self.streams, stamp_ns, readings, spins, codes
        if compiled is None or not compiled.collect(*given):
            for k in [k for k, code in enumerate(codes) if code == OTHER]:
                stream = self.streams[k]
                stream.advance(stamp_ns)
                codes[k] = stream.select(stamp_ns)
                readings[k] = np.frombuffer(stream.data if codes[k] == FRESH else NO_READING)
                if k >= n_fts:
                    spins[k - n_fts] = stream.angular_acceleration
        states = np.frombuffer(codes, dtype=np.uint8)
        if any(codes) or not (all_finite(readings) and all_finite(spins)):
            self._judge(readings, spins, states)
        return readings, spins, states

    def _judge(self, readings: Array, spins: Array, states: States) -> None:
        """Find the states of readings that are not whole."""
        finite = np.logical_and.reduce(np.isfinite(readings), axis=1)
        for k, stream in enumerate(self.streams):
            if states[k] == FRESH and not finite[k]:
                states[k] = stream.judge(readings[k])
                if states[k] == INVALID:
                    readings[k] = np.nan
                    stream.used -= 1
                    stream.invalid += 1
        n_fts = len(self.fts)
        turns = np.logical_and.reduce(np.isfinite(readings[n_fts:, :3]), axis=1)
        for k, imu in enumerate(self.imus):
            used = states[n_fts + k] in (FRESH, PARTIAL) and turns[k]
            if used and not all_finite(spins[k]):
                states[n_fts + k] = WARMING
                imu.used -= 1
            if not used or states[n_fts + k] == WARMING:
                spins[k] = np.nan

    def temperatures_at(self, stamp_ns: int) -> Array | None:
        """Return the temperature of each FT sensor, NaN where unknown; None: none is measured."""
        if not self.temperatures:
            return None
        celsius = np.full(len(self.fts), np.nan)
        for k, stream in self.temperatures.items():
            celsius[k] = stream.at(stamp_ns)
        return celsius
