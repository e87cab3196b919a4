# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
From the messages of all streams to samples; joint states are the clock.

A joint state of the first topic makes a sample when it holds the *lead* joint: of the joints seen
on that topic the first one in the robot's order. If its publisher falls silent for
``joint_max_age``, the next message of that topic leads. Every other stream enters with its newest
message whose stamp (plus ``time_offset``) is not later, live and in replay alike.

With ``filter_delay`` a sample is about a joint state that lies at least so long before the one
that triggers; `delayed_streams` has what differs then.

A stamp that goes back says that time was set back. On the leading messages it resets everything,
on any other stream that stream alone: one bad clock must not cost the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.filters.derivatives import (
    Differentiator,
    gyroscope_differentiator,
    joint_differentiator,
    smoother,
)
from inertial_estimation.sample import Array, Sample, SensorState
from inertial_estimation.streams.delayed_streams import DelayedJointPart, DelayedSensorStream
from inertial_estimation.streams.joint_stream import (
    ACCELERATION,
    EFFORT,
    POSITION,
    VELOCITY,
    Indices,
    JointLayout,
    JointPart,
    States,
    joint_template,
)
from inertial_estimation.streams.sensor_stream import (
    FRESH,
    INVALID,
    NO_READING,
    PARTIAL,
    ImuStream,
    SensorStream,
)
from inertial_estimation.streams.stream import AssemblerStatistics, StreamRates

ABSENT_TRIPLE = np.full(3, np.nan).tobytes()
STALE = int(SensorState.STALE)
WARMING = int(SensorState.WARMING)
USED = (FRESH, PARTIAL)
"""States of IMUs of which something enters a sample."""


class SampleAssembler:
    """
    Collects messages and makes a `Sample` for each joint state that triggers.

    Parameters
    ----------
    joint_names : sequence of str
        The robot's joints.
    ft_names : sequence of str
        The robot's FT sensors.
    imu_names : sequence of str
        The robot's IMUs.
    settings : EstimatorSettings
        Limits, filters and assumed joints.
    imu_measures : sequence of str, optional
        What each IMU measures, one of `sensors.MEASURES`; the rest of its messages is not looked
        at. Default: both quantities.

    Raises
    ------
    ConfigError
        If there are more or fewer assumed positions than joints, or every joint is assumed.
    NameNotFound
        If an assumed joint does not exist.

    """

    def __init__(
        self,
        joint_names: Sequence[str],
        ft_names: Sequence[str],
        imu_names: Sequence[str],
        settings: EstimatorSettings,
        imu_measures: Sequence[str] | None = None,
    ) -> None:
        self._settings = settings
        self._joint_names = tuple(joint_names)
        self._joint_max_age_ns = round(1e9 * settings.joint_max_age)
        self._filter_velocity = settings.velocity_source == 'filter'
        self._filter_acceleration = settings.acceleration_source == 'filter'
        self._derived = slice(
            VELOCITY if self._filter_velocity else ACCELERATION,
            ACCELERATION + 1 if self._filter_acceleration else ACCELERATION,
        )
        self._block, self._states = joint_template(self._joint_names, settings)
        self._row_of = {
            name: row
            for row, name in enumerate(joint_names)
            if name not in settings.assumed_joints
        }
        self._delay_ns = round(1e9 * settings.filter_delay)
        self._delays = bool(self._delay_ns) or settings.smooth_readings
        self._delayed: list[DelayedJointPart | DelayedSensorStream] = []
        self._fts = [self._ft_stream(name) for name in ft_names]
        measures = ['both'] * len(imu_names) if imu_measures is None else imu_measures
        self._imus = [self._imu_stream(*imu) for imu in zip(imu_names, measures, strict=True)]
        self._sensors: list[SensorStream] = [*self._fts, *self._imus]
        self._parts: dict[tuple[int, bytes], JointPart] = {}
        self._parts_overlap = False
        self._layouts: dict[tuple[int, tuple[str, ...]], JointLayout] = {}
        self._newest_layouts: dict[int, tuple[tuple[str, ...], JointLayout]] = {}
        self._ignored: dict[str, int] = {}
        self._samples = self._resets = self._malformed = 0
        self._lead = len(self._joint_names)
        self._last_stamp_ns = self._last_instant_ns = 0

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
        reset_on_jump = self._settings.reset_on_time_jump
        self._fts[index].push(stamp_ns, wrench.tobytes(), reset_on_jump)

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
        self._imus[index].push(stamp_ns, data, self._settings.reset_on_time_jump)

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
            self._malformed += 1
            return None
        layout = self._layout(source_index, names)
        found = layout.split(layout.read(positions, velocities, efforts))
        if found is None:
            return None
        part, block = found
        if stamp_ns <= part.last_ns:
            if stamp_ns == part.last_ns or not self._settings.reset_on_time_jump:
                part.refused += 1
                return None
            self._go_back(source_index, part)
        part.push(stamp_ns, block)
        if source_index == 0 and self._leads(part.joint_rows[0], stamp_ns):
            self._last_stamp_ns = stamp_ns
            if isinstance(part, DelayedJointPart):
                return self._assemble_past(part)
            return self._assemble(stamp_ns)
        return None

    def reset(self) -> None:
        """Forget every message; the counters go on."""
        for stream in (*self._parts.values(), *self._sensors):
            stream.restart()
        self._lead = len(self._joint_names)
        self._last_stamp_ns = self._last_instant_ns = 0

    def statistics(self) -> AssemblerStatistics:
        """
        Return what came in so far.

        Returns
        -------
        AssemblerStatistics
            A copy; it does not change any more.

        """
        return AssemblerStatistics(
            samples=self._samples,
            resets=self._resets,
            malformed=self._malformed,
            ignored_joints=dict(self._ignored),
            joints={part.name: part.statistics() for part in self._parts.values()},
            fts={stream.name: stream.statistics() for stream in self._fts},
            imus={stream.name: stream.statistics() for stream in self._imus},
        )

    def rates(self) -> StreamRates:
        """
        Return how often each stream speaks.

        Returns
        -------
        StreamRates
            Of a joint that several publishers report: of the one that spoke last.

        """
        joints = np.full(len(self._joint_names), np.nan)
        for part in sorted(self._parts.values(), key=lambda part: part.last_ns):
            joints[part.rows] = part.rate
        return StreamRates(
            joints,
            np.array([stream.rate for stream in self._imus]),
            np.array([stream.rate for stream in self._fts]),
        )

    def _ft_stream(self, name: str) -> SensorStream:
        settings = self._settings.ft_of(name)
        if not self._delays:
            return SensorStream(name, settings)
        smooth = self._settings.smooth_readings
        stream = DelayedSensorStream(
            name, settings, smoother(self._settings) if smooth else None,
            derive=False, smooth=smooth,
        )  # fmt: skip
        self._delayed.append(stream)
        return stream

    def _imu_stream(self, name: str, measures: str) -> ImuStream:
        source = self._settings.angular_acceleration_source
        derive = source == 'filter' and measures != 'accelerometer'
        smooth = self._settings.smooth_readings
        differentiator: Differentiator | None = None
        if smooth:
            differentiator = smoother(self._settings)
        elif derive:
            differentiator = gyroscope_differentiator(self._settings)
        settings = self._settings.imu_of(name)
        if not self._delays:
            return ImuStream(name, settings, differentiator, measures)
        stream = DelayedSensorStream(
            name, settings, differentiator, derive=derive, smooth=smooth, measures=measures
        )
        self._delayed.append(stream)
        return stream

    def _layout(self, source_index: int, names: tuple[str, ...]) -> JointLayout:
        """Return how to read a message; learnt once for each list of names."""
        newest = self._newest_layouts.get(source_index)
        if newest is not None and newest[0] is names:
            return newest[1]
        names = tuple(names)
        layout = self._layouts.get((source_index, names))
        if layout is None:
            layout = JointLayout(names, self._row_of, lambda rows: self._part(source_index, rows))
            self._layouts[source_index, names] = layout
            for name in layout.ignored:
                self._ignored[name] = self._ignored.get(name, 0) + 1
        self._newest_layouts[source_index] = (names, layout)
        return layout

    def _part(self, source_index: int, rows: Indices) -> JointPart:
        """Return the part of a topic that reports these joints together."""
        key = (source_index, rows.tobytes())
        if key not in self._parts:
            taken = {row for part in self._parts.values() for row in part.joint_rows}
            self._parts_overlap |= not taken.isdisjoint(rows.tolist())
            self._parts[key] = self._new_part(source_index, rows)
        return self._parts[key]

    def _new_part(self, source_index: int, rows: Indices) -> JointPart:
        name = f'{source_index}: {" ".join(self._joint_names[row] for row in rows)}'
        differentiator: Differentiator | None = None
        if self._filter_velocity or self._filter_acceleration:
            differentiator = joint_differentiator(self._settings, len(rows))
        if not self._delays:
            return JointPart(name, rows, differentiator)
        part = DelayedJointPart(name, rows, differentiator, self._settings.smooth_readings)
        self._delayed.append(part)
        return part

    def _go_back(self, source_index: int, part: JointPart) -> None:
        """Begin anew with everything if the clock was set back, else with the part alone."""
        part.restarts += 1
        if source_index == 0 and part.joint_rows[0] <= self._lead:
            self.reset()
            self._resets += 1
        else:
            part.restart()

    def _leads(self, first_row: int, stamp_ns: int) -> bool:
        """Tell whether a message of the first topic triggers; see the module's docstring."""
        silent = stamp_ns - self._last_stamp_ns > self._joint_max_age_ns
        if first_row <= self._lead or silent:
            self._lead = first_row
            return stamp_ns > self._last_stamp_ns
        return False

    def _assemble_past(self, part: DelayedJointPart) -> Sample | None:
        """Make the sample of a joint state of a part that lies the delay back, if there is one."""
        for stream in self._delayed:
            stream.feed(self._last_stamp_ns)
        latest_ns = self._last_stamp_ns - self._delay_ns
        instant_ns = part.next_instant(self._last_instant_ns, latest_ns)
        if not instant_ns:
            return None
        self._last_instant_ns = instant_ns
        return self._assemble(instant_ns)

    def _assemble(self, stamp_ns: int) -> Sample:
        """Make the sample of a joint state."""
        self._samples += 1
        block, joint_states = self._join_parts(stamp_ns)
        readings, states = self._select_readings(stamp_ns)
        n_fts = len(self._fts)
        return Sample(
            stamp_ns,
            block[POSITION],
            block[VELOCITY],
            block[ACCELERATION],
            readings[n_fts:, :3],
            readings[n_fts:, 3:],
            self._angular_accelerations(states[n_fts:], readings[n_fts:, :3]),
            readings[:n_fts],
            joint_states,
            states[n_fts:],
            states[:n_fts],
            block[EFFORT],
        )

    def _join_parts(self, stamp_ns: int) -> tuple[Array, States]:
        """Return the block of all joints and their states."""
        block = self._block.copy()
        states = self._states.copy()
        parts = list(self._parts.values())
        for part in parts:
            part.advance(stamp_ns)
        if self._parts_overlap:
            parts.sort(key=lambda part: part.stamp_ns)
        for part in parts:
            if not part.stamp_ns:
                continue
            part.age_ns = stamp_ns - part.stamp_ns
            if part.age_ns > self._joint_max_age_ns:
                states[part.rows] = STALE
                continue
            part.use(self._filter_velocity, self._filter_acceleration)
            block[:, part.rows] = part.block
            states[part.rows] = FRESH
        if not _all_finite(block[:EFFORT]):
            self._mark_incomplete(block, states)
        return block, states

    def _mark_incomplete(self, block: Array, states: States) -> None:
        """Mark joints whose newest position, or else a filtered derivative, is not a number."""
        finite = np.isfinite(block)
        fresh = states == FRESH
        invalid: NDArray[np.bool_] = fresh & ~finite[POSITION]
        states[fresh & ~finite[self._derived].all(axis=0)] = WARMING
        states[invalid] = INVALID
        block[:, invalid] = np.nan

    def _select_readings(self, stamp_ns: int) -> tuple[Array, States]:
        """Return the newest reading of each FT, then IMU, NaN if it is not usable; the states."""
        streams = self._sensors
        codes = [stream.select(stamp_ns) for stream in streams]
        chunks = [s.data if code == FRESH else NO_READING for s, code in zip(streams, codes)]
        readings = np.frombuffer(bytearray().join(chunks)).reshape(-1, 6)
        if any(codes) or not _all_finite(readings):
            finite = np.logical_and.reduce(np.isfinite(readings), axis=1)
            for k, stream in enumerate(streams):
                if codes[k] == FRESH and not finite[k]:
                    codes[k] = stream.judge(readings[k])
                    if codes[k] == INVALID:
                        readings[k] = np.nan
                        stream.reject()
        return readings, np.frombuffer(bytearray(codes), dtype=np.uint8)

    def _angular_accelerations(self, states: States, rates: Array) -> Array:
        """
        Return the angular acceleration of each IMU in its axes; mark those that warm up.

        One that warms up counts as missing, its acceleration too. That could be used with the
        rotation that a neighbour tells through the joints; but the neighbour alone serves the
        link as well for the tenth of a second that a window takes to fill, and what is used of
        the link would change twice more after every gap.
        """
        accelerations = np.empty((len(self._imus), 3))
        for k, (imu, state) in enumerate(zip(self._imus, states.tolist())):
            accelerations[k] = imu.angular_acceleration if state in USED else np.nan
        if not (_all_finite(accelerations) and _all_finite(rates)):
            known = np.logical_and.reduce(np.isfinite(accelerations), axis=1)
            turns = np.logical_and.reduce(np.isfinite(rates), axis=1)
            accelerations[~(known & turns)] = np.nan
            for k in np.flatnonzero(~known & turns & np.isin(states, USED)).tolist():
                states[k] = WARMING
                self._imus[k].hold_back()
        return accelerations


def _all_finite(values: Array) -> bool:
    """Tell whether no value is NaN or infinite; quicker than asking each."""
    total = float(np.vdot(values, values))
    return total - total == 0.0
