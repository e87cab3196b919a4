# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The embedded robot on two feet, its arms and torso moving at random in free air [T 7.4].

It stands at rest at first, then begins to move, and goes on; nobody pushes it. Sensors have their
noise, joint velocities and accelerations are derived as the estimator derives them, and the
truth about torques is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench.timing import Progress
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SampleBatch
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.simulation.noise import SensorNoise
from inertial_estimation.simulation.robot import SimulatedRobot
from inertial_estimation.simulation.scenario import Scenario, standing
from inertial_estimation.simulation.truth import Snapshot

Array = NDArray[np.float64]

SECONDS, ONSET = 60.0, 5.0
"""How long it goes on, and when the joints begin to move [s]."""
RATE, EVERY = 200, 2
"""Joint states per second, of which every second one is kept."""
IMUS = ('root_link', 'chest', 'head_imu_0', 'l_forearm', 'r_forearm')
SETTINGS = EstimatorSettings(velocity_source='filter', derivative_window=0.12, imus=IMUS)
NONE = np.empty(0)


@dataclass(frozen=True, eq=False)
class StandingLog:
    """What sensors said, and what torques there were."""

    robot: Robot
    """As it is."""
    contacts: tuple[str, ...]
    """One frame for each submodel."""
    samples: SampleBatch
    """With noise, without offsets of FT sensors."""
    torques: Array
    """True torques, shape (n, n_joints) [Nm]."""

    @property
    def times(self) -> Array:
        """Since the start of the log, shape (n,) [s]."""
        return np.asarray(1e-9 * self.samples.stamp_ns)


def at_random(seconds: float = SECONDS, seed: int = 0) -> Scenario:
    """
    Return a robot that stands at rest, and then moves arms, head and torso at random.

    seconds [s].
    """
    return replace(standing(seconds, seed), pushes=(), onset=ONSET)


def record(
    scenario: Scenario, seconds: float = SECONDS, progress: Progress = lambda done: None
) -> StandingLog:
    """
    Let the robot stand and move.

    seconds [s].
    """
    simulated = SimulatedRobot(scenario, {name: name for name in IMUS}, RATE)
    robot = Robot.from_urdf(simulated.urdf, imus=IMUS)
    reader = _Reader(simulated, robot, scenario.seed)
    order = [simulated.joint_names.index(name) for name in robot.joint_names]
    kept, torques = [], []
    for k in range(round(seconds * RATE)):
        snapshot = simulated.step()
        sample = reader.read(snapshot)
        if sample is not None and not k % EVERY:
            kept.append(sample)
            torques.append(snapshot.torques[order])
        if not k % RATE:
            progress(k / (seconds * RATE))
    return StandingLog(robot, scenario.contacts, SampleBatch.stack(kept), np.array(torques))


class _Reader:
    """Turns instants into samples, as the node of the estimator does."""

    def __init__(self, simulated: SimulatedRobot, robot: Robot, seed: int) -> None:
        names = [sensor.name for sensor in robot.ft_sensors]
        self._noise = SensorNoise(seed=seed)
        self._joints = simulated.joint_names
        self._fts = [simulated.ft_names.index(name) for name in names]
        self._assembler = SampleAssembler(robot.joint_names, names, IMUS, SETTINGS)

    def read(self, snapshot: Snapshot) -> Sample | None:
        """Return a sample of that instant; None while filters fill."""
        said, assembler = self._noise.apply(snapshot), self._assembler
        for k, row in enumerate(self._fts):
            assembler.push_ft(k, said.stamp_ns, said.ft_readings[row])
        for k in range(len(IMUS)):
            assembler.push_imu(
                k, said.stamp_ns, said.angular_velocities[k], said.proper_accelerations[k]
            )
        return assembler.push_joints(0, said.stamp_ns, self._joints, said.positions, NONE, NONE)
