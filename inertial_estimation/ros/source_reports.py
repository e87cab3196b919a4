# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What each subscribed topic has delivered since the report before, as tasks."""

import numpy as np

from inertial_estimation.estimation.contact_stream import ContactStream
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.diagnostics import Task
from inertial_estimation.ros.inputs import Inputs
from inertial_estimation.ros.source_tasks import (
    clock_task,
    contacts_task,
    joints_task,
    sensor_task,
)
from inertial_estimation.ros.sources import Source
from inertial_estimation.sample import Sample, SensorState
from inertial_estimation.signals.stream import AssemblerStatistics, StreamStatistics


class SourceWatch:
    """What a source has delivered since the report before."""

    def __init__(self) -> None:
        self._before: dict[str, StreamStatistics] = {}
        self._problems: dict[int, dict[str, int]] = {}

    def new_problems(self, source: Source) -> dict[str, int]:
        """Return how often each problem of a source came up since the last call."""
        before = self._problems.get(id(source), {})
        now = dict(source.problems)
        self._problems[id(source)] = now
        counts = {text: count - before.get(text, 0) for text, count in now.items()}
        return {text: count for text, count in counts.items() if count}

    def rate(self, name: str, now: StreamStatistics) -> float:
        """Return the rate of the stamps since the last call [Hz]; NaN before there are two."""
        before = self._before.get(name)
        self._before[name] = now
        if before is None or not before.last_stamp_ns:
            return now.rate
        span = 1e-9 * (now.last_stamp_ns - before.last_stamp_ns)
        return (now.received - before.received) / span if span > 0.0 else float('nan')


class SourceReports:
    """The state of each topic, once a second."""

    def __init__(self, robot: Robot, contacts: ContactStream, inputs: Inputs) -> None:
        self._robot, self._contacts, self._inputs = robot, contacts, inputs
        self._watch = SourceWatch()

    def tasks(self, statistics: AssemblerStatistics, sample: Sample | None) -> list[Task]:
        """Return the state of the clock and of each topic."""
        states = self._states(sample)
        tasks = [clock_task(self._inputs.sources)]
        for source in self._inputs.sources:
            problems = self._watch.new_problems(source)
            if source.kind == 'contacts':
                tasks.append(self._contacts_task(source, problems, sample))
            elif source.kind == 'joints':
                tasks.append(self._joints_task(source, problems, statistics))
            else:
                streams = {
                    'ft': statistics.fts,
                    'imu': statistics.imus,
                    'temperature': statistics.temperatures,
                }
                stream = streams[source.kind][source.name]
                rate = self._watch.rate(f'{source.kind} {source.name}', stream)
                state = states.get((source.kind, source.name))
                given = self._delivers(source, sample) if source.kind == 'imu' else 'both'
                tasks.append(sensor_task(source, stream, rate, state, problems, given))
        return tasks

    def _joints_task(
        self, source: Source, problems: dict[str, int], statistics: AssemblerStatistics
    ) -> Task:
        """Return the state of a joint topic."""
        parts = {
            name: part
            for name, part in statistics.joints.items()
            if name.startswith(f'{source.index}: ')
        }
        rates = {name: self._watch.rate(name, part) for name, part in parts.items()}
        return joints_task(source, parts, rates, problems)

    def _contacts_task(
        self, source: Source, problems: dict[str, int], sample: Sample | None
    ) -> Task:
        """Return the state of the topic of the points that are felt."""
        rhythm = self._inputs.touch_rhythm
        slow = () if sample is None else rhythm.slow_now(sample.stamp_ns)
        return contacts_task(source, self._contacts.statistics(), problems, slow, rhythm.timeout)

    def _delivers(self, source: Source, sample: Sample | None) -> str:
        """Return what an IMU had in the last sample, else what it is known to measure."""
        names = [imu.name for imu in self._robot.imus]
        row = names.index(source.name)
        states = None if sample is None else sample.imu_states
        if states is None or states[row] != SensorState.PARTIAL:
            return self._robot.imus[row].measures
        turns = np.isfinite(sample.angular_velocities[row]).all()
        return 'gyroscope' if turns else 'accelerometer'

    def _states(self, sample: Sample | None) -> dict[tuple[str, str], SensorState]:
        """Return how the sensors were found in the last sample."""
        if sample is None:
            return {}
        rows = (
            ('ft', self._robot.ft_sensors, sample.ft_states),
            ('imu', self._robot.imus, sample.imu_states),
        )
        found = {
            (kind, sensor.name): SensorState(int(state))
            for kind, sensors, states in rows
            for sensor, state in zip(sensors, states if states is not None else ())
        }
        if sample.ft_temperatures is not None:
            known = np.isfinite(sample.ft_temperatures)
            for sensor, told in zip(self._robot.ft_sensors, known):
                found['temperature', sensor.name] = (
                    SensorState.FRESH if told else SensorState.STALE
                )
        return found
