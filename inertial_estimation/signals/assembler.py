# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
From the readings of all streams to samples; joint states are the clock.

A joint state of the first topic makes a sample when it holds the *lead* joint: of the joints seen
on that topic the first one in the robot's order, or of the next message if its publisher is silent
for ``max_age``. Where no joint is measured, empty joint states come with the messages of a sensor,
see `Router`. Every other stream enters with its newest message whose stamp (plus
``time_offset``) is not later. With ``filter.delay`` a sample lies so long before the joint state
that triggers. A stamp that goes back on the leading messages resets everything, else its stream.
"""

from __future__ import annotations

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample
from inertial_estimation.signals.joint_stream import (
    ACCELERATION,
    EFFORT,
    POSITION,
    VELOCITY,
    JointPart,
    JointStreams,
)
from inertial_estimation.signals.savitzky_golay import compiled, solve_together
from inertial_estimation.signals.sensor_stream import SensorStream, SensorStreams
from inertial_estimation.signals.stream_statistics import AssemblerStatistics, StreamRates

ABSENT_TRIPLE = np.full(3, np.nan).tobytes()


class SampleAssembler:
    """
    Collect readings and make a `Sample` for each joint state that triggers.

    Parameters
    ----------
    robot : Robot
        Its joints and sensors; quantities that an IMU does not measure are ignored.
    settings : EstimatorSettings
        Limits, filters and assumed joints.

    Attributes
    ----------
    joints : JointStreams
        Parts of the joint states.
    wanted_ns : int
        Instants before this one make no sample, which saves most of their time: their messages
        fill the filters. 0, also after a reset: all of them do.

    Raises
    ------
    ConfigError
        If there are more or fewer assumed positions than joints.
    NameNotFound
        If an assumed joint does not exist.

    """

    def __init__(self, robot: Robot, settings: EstimatorSettings) -> None:
        self._delay_ns = round(1e9 * settings.filter.delay)
        self._n_joints = len(robot.joint_names)
        self.joints = JointStreams(robot.joint_names, settings)
        self._sensors = SensorStreams(robot, settings)
        self._fts, self._imus = self._sensors.fts, self._sensors.imus
        self._samples = self._resets = 0
        self._lead = self._n_joints
        self._last_stamp_ns = self._last_instant_ns = self.wanted_ns = 0
        self.set_max_ages(settings)

    def set_max_ages(self, settings: EstimatorSettings) -> None:
        """
        Take over the ages from which readings are stale.

        Parameters
        ----------
        settings : EstimatorSettings
            Of which nothing else is used.

        """
        self._joint_max_age_ns = round(1e9 * settings.joint_states.max_age)
        self.joints.set_max_ages(settings)
        for ft in self._fts:
            ft.set_max_age(settings.ft_of(ft.name).max_age)
        for imu in self._imus:
            imu.set_max_age(settings.imu_of(imu.name).max_age)

    def stream(self, kind: str, index: int) -> SensorStream | None:
        """Return the stream of an 'ft' or 'imu'."""
        return {'ft': self._fts, 'imu': self._imus}[kind][index] if kind in ('ft', 'imu') else None

    def push_ft(self, index: int, stamp_ns: int, wrench: Array) -> None:
        """
        Take a reading of an FT sensor.

        Parameters
        ----------
        index : int
            Row of the sensor.
        stamp_ns : int
            Stamp of the message [ns].
        wrench : ndarray, shape (6,)
            As measured, before calibration, [force; torque] [N, Nm].

        Raises
        ------
        ShapeError
            If it is not six numbers.

        """
        self._fts[index].push(stamp_ns, wrench.tobytes())

    def push_temperature(self, index: int, stamp_ns: int, celsius: float) -> None:
        """
        Take the temperature of an FT sensor; passed over unless the settings name its topic.

        Parameters
        ----------
        index : int
            Row of the sensor.
        stamp_ns : int
            Stamp of the message [ns].
        celsius : float
            [degrees Celsius].

        """
        stream = self._sensors.temperatures.get(index)
        if stream is None:
            return
        if stamp_ns > stream.last_ns or stream.goes_back(stamp_ns):
            stream.put(stamp_ns, (stamp_ns, celsius))

    def push_imu(
        self, index: int, stamp_ns: int, angular_velocity: Array, linear_acceleration: Array
    ) -> None:
        """
        Take a reading of an IMU.

        Parameters
        ----------
        index : int
            Row of the IMU.
        stamp_ns : int
            Stamp of the message [ns].
        angular_velocity : ndarray, shape (3,)
            In the IMU's axes [rad/s].
        linear_acceleration : ndarray, shape (3,)
            Proper acceleration of the IMU's origin in its axes [m/s^2].

        Raises
        ------
        ShapeError
            If it is not six numbers.

        """
        data = angular_velocity.tobytes() + linear_acceleration.tobytes()
        measures = self._imus[index].measures
        if measures == 'accelerometer':
            data = ABSENT_TRIPLE + data[len(ABSENT_TRIPLE) :]
        elif measures == 'gyroscope':
            data = data[: len(ABSENT_TRIPLE)] + ABSENT_TRIPLE
        self._imus[index].push(stamp_ns, data)

    def push_joints(
        self,
        source_index: int,
        stamp_ns: int,
        names: tuple[str, ...],
        positions: Array,
        velocities: Array,
        efforts: Array,
    ) -> Sample | None:
        """
        Take a joint state, and make a sample if it triggers.

        Parameters
        ----------
        source_index : int
            Index of the joint topic; only the first one triggers.
        stamp_ns : int
            Stamp of the message [ns].
        names : tuple of str
            Joint names; quickest if it is the same object for the same names.
        positions, velocities, efforts : ndarray, shape (n,) or (0,)
            Values in the order of the names, NaN or empty where there are none
            [rad or m, rad/s or m/s, Nm or N].

        Returns
        -------
        Sample or None
            Its arrays belong to the caller.

        """
        if stamp_ns <= 0 or len(positions) != len(names):
            return None
        layout = self.joints.layout(source_index, names)
        if layout.part is None:
            return None
        return self.push_block(
            source_index, stamp_ns, layout.part, layout.read(positions, velocities, efforts)
        )

    def push_block(
        self, source_index: int, stamp_ns: int, part: JointPart, block: Array
    ) -> Sample | None:
        """Take a joint state as a block (4, n) of values of a part, as `push_joints` does."""
        if stamp_ns <= part.last_ns:
            if stamp_ns == part.last_ns:
                part.refused += 1
                return None
            part.restarts += 1
            if source_index == 0 and part.first_row <= self._lead:
                # The clock was set back.
                self.reset()
                self._resets += 1
            else:
                part.restart()
        part.put(stamp_ns, (stamp_ns, block))
        silent = stamp_ns - self._last_stamp_ns > self._joint_max_age_ns
        if source_index or not (part.first_row <= self._lead or silent):
            return None
        self._lead = part.first_row
        if stamp_ns <= self._last_stamp_ns:
            return None
        self._last_stamp_ns = instant_ns = stamp_ns
        if self._delay_ns:
            for stream in (*self.joints.parts, *self._sensors.streams):
                stream.feed(stamp_ns)
            latest_ns = stamp_ns - self._delay_ns
            instant_ns = part.next_instant(self._last_instant_ns, latest_ns)
            self._last_instant_ns = instant_ns or self._last_instant_ns
        return self._assemble(instant_ns) if instant_ns >= max(self.wanted_ns, 1) else None

    def reset(self) -> None:
        """Forget every message; the counters go on."""
        temperatures = self._sensors.temperatures.values()
        for stream in (*self.joints.parts, *self._sensors.streams, *temperatures):
            stream.restart()
        self._lead = self._n_joints
        self._last_stamp_ns = self._last_instant_ns = self.wanted_ns = 0

    def statistics(self) -> AssemblerStatistics:
        """
        Return the counts of messages and samples so far.

        Returns
        -------
        AssemblerStatistics
            A copy; it does not change any more.

        """
        return AssemblerStatistics(
            samples=self._samples,
            resets=self._resets,
            ignored_joints=self.joints.ignored,
            joints={part.name: part.statistics() for part in self.joints.parts},
            fts={stream.name: stream.statistics() for stream in self._fts},
            imus={stream.name: stream.statistics() for stream in self._imus},
            temperatures={t.name: t.statistics() for t in self._sensors.temperatures.values()},
        )

    def rates(self) -> StreamRates:
        """
        Return the rate of each stream.

        Returns
        -------
        StreamRates
            Of a joint that several publishers report: of the one with the newest message.

        """
        return StreamRates(
            self.joints.rates(),
            np.array([stream.rate for stream in self._imus]),
            np.array([stream.rate for stream in self._fts]),
        )

    def _assemble(self, stamp_ns: int) -> Sample:
        self._samples += 1
        if compiled is None:
            streams = (*self.joints.parts, *self._sensors.streams)
            for stream in streams:
                stream.advance(stamp_ns)
            solve_together([stream.differentiator for stream in streams], stamp_ns)
        block, joint_states = self.joints.at(stamp_ns)
        readings, spins, states = self._sensors.at(stamp_ns)
        n_fts = len(self._fts)
        return Sample(
            stamp_ns,
            block[POSITION],
            block[VELOCITY],
            block[ACCELERATION],
            readings[n_fts:, :3],
            readings[n_fts:, 3:],
            spins,
            readings[:n_fts],
            joint_states,
            states[n_fts:],
            states[:n_fts],
            block[EFFORT],
            ft_temperatures=self._sensors.temperatures_at(stamp_ns),
        )
