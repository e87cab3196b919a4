# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Simulated robots for experiments on identification, and wrong URDFs of them.

A standing robot (MuJoCo, embedded sensors with noise) and a robot on a pole (exact equations).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.config import EstimatorSettings, IdentifierSettings
from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.equations.wrenches import sensor_loads, wrench_columns
from inertial_estimation.identification.errors_in_variables import StateNoise
from inertial_estimation.identification.priors import widened
from inertial_estimation.identification.recursion.settings import (
    RecursionSettings,
    recursion_settings,
)
from inertial_estimation.identification.solvers.divergence import whitening
from inertial_estimation.model.link_motions import link_motions, poses_in_parents, poses_in_root
from inertial_estimation.model.regressor import wrench_to_root
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SampleBatch
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.stream_statistics import StreamRates
from inertial_estimation.simulation.noise import SensorNoise
from inertial_estimation.simulation.robot import SimulatedRobot
from inertial_estimation.simulation.scenario import Scenario
from inertial_estimation.simulation.truth import Snapshot
from inertial_estimation.uncertainty.sensor_noise import stream_noise

RATE, EVERY = 200, 2
"""Joint states per second, of which every second one is kept."""
IMUS = ('root_link', 'chest', 'head_imu_0', 'l_forearm', 'r_forearm')
SETTINGS = EstimatorSettings.from_dict(
    {'joint_states.velocity_source': 'filter', 'filter.window': 0.12, 'imus': IMUS}
)
CENTRED = replace(SETTINGS, filter=SETTINGS.filter.centred())
"""Of the identifier."""
NONE = np.empty(0)
WRONG = 0.2
"""Standard deviation of each whitened coordinate of a link: 20 % of its size."""
OFFSETS = np.array([10.0, 10.0, 10.0, 1.0, 1.0, 1.0])
"""Standard deviation of FT offsets [N, Nm]."""
SINES, SLOWEST, FASTEST = 4, 0.05, 0.8
"""Sines of each joint's motion on the pole, and their frequencies [Hz]."""
START_NS = 1_000_000_000
"""Stamp of the first sample [ns]."""


@dataclass(frozen=True, eq=False)
class StandingLog:
    """Readings of the sensors, and the true torques."""

    robot: Robot
    """As it is."""
    contacts: tuple[str, ...]
    """One frame for each submodel."""
    samples: SampleBatch
    """With noise, without offsets of FT sensors."""
    torques: Array
    """True torques, shape (n, n_joints) [Nm]."""
    centred: SampleBatch
    """Samples as the identifier takes them."""

    @property
    def times(self) -> Array:
        """Since the start of the log, shape (n,) [s]."""
        return np.asarray(1e-9 * self.samples.stamp_ns)


def record(scenario: Scenario, seconds: float) -> StandingLog:
    """Let the robot stand and move."""
    simulated = SimulatedRobot(scenario, {name: name for name in IMUS}, RATE)
    robot = Robot.from_urdf(simulated.urdf, imus=IMUS)
    readers = [_Reader(simulated, robot, scenario.seed, one) for one in (SETTINGS, CENTRED)]
    order = [simulated.joint_names.index(name) for name in robot.joint_names]
    kept, centred, torques = [], [], []
    for k in range(round(seconds * RATE)):
        snapshot = simulated.step()
        sample, earlier = (reader.read(snapshot) for reader in readers)
        if k % EVERY:
            continue
        if sample is not None:
            kept.append(sample)
            torques.append(snapshot.torques[order])
        if earlier is not None:
            centred.append(earlier)
    return StandingLog(
        robot, scenario.contacts, SampleBatch.stack(kept), np.array(torques),
        SampleBatch.stack(centred),
    )  # fmt: skip


class _Reader:
    """Turns instants into samples, as the node of the estimator does."""

    def __init__(
        self, simulated: SimulatedRobot, robot: Robot, seed: int, settings: EstimatorSettings
    ) -> None:
        names = [sensor.name for sensor in robot.ft_sensors]
        self._noise = SensorNoise(seed=seed)
        self._joints = simulated.joint_names
        self._fts = [simulated.ft_names.index(name) for name in names]
        self._assembler = SampleAssembler(robot, settings)

    def read(self, snapshot: Snapshot) -> Sample | None:
        """Return a sample of that instant; None while filters fill."""
        noisy, assembler = self._noise.apply(snapshot), self._assembler
        for k, row in enumerate(self._fts):
            assembler.push_ft(k, noisy.stamp_ns, noisy.ft_readings[row])
        for k in range(len(IMUS)):
            assembler.push_imu(
                k, noisy.stamp_ns, noisy.angular_velocities[k], noisy.proper_accelerations[k]
            )
        return assembler.push_joints(0, noisy.stamp_ns, self._joints, noisy.positions, NONE, NONE)


def smooth_motion(
    robot: Robot, seconds: float, rate: float = 100.0, seed: int = 0, swing: float = 0.4
) -> SampleBatch:
    """Let all joints follow sums of sines about zero; seconds, rate [s, Hz]; swing [rad]."""
    rng = np.random.default_rng(seed)
    n, joints = round(seconds * rate), len(robot.joint_names)
    t = np.arange(n) / rate
    q, v, a = np.zeros((3, n, joints))
    for _ in range(SINES):
        w = 2 * np.pi * rng.uniform(SLOWEST, FASTEST, joints)
        phase, size = rng.uniform(0, 2 * np.pi, joints), swing * rng.normal(size=joints) / 2
        q += size * np.sin(np.outer(t, w) + phase)
        v += size * w * np.cos(np.outer(t, w) + phase)
        a -= size * w**2 * np.sin(np.outer(t, w) + phase)
    none = np.zeros((n, len(robot.imus), 3))
    stamps = START_NS + (t * 1e9).astype(np.int64)
    readings = np.zeros((n, len(robot.ft_sensors), 6))
    return SampleBatch(stamps, q, v, a, none, none, none, readings)


def equal_parts(samples: SampleBatch, seconds: float) -> Sequence[SampleBatch]:
    """Split a log into windows of some length [s]."""
    times = 1e-9 * (samples.stamp_ns - samples.stamp_ns[0])
    edges = np.flatnonzero(np.diff(np.floor(times / seconds)) > 0) + 1
    starts, stops = [0, *edges.tolist()], [*edges.tolist(), len(samples)]
    return [samples.take(slice(a, b)) for a, b in zip(starts, stops, strict=True)]


def wrong_robot(robot: Robot, rng: np.random.Generator, wrong: float = WRONG) -> Robot:
    """Return the robot with bodies that are wrong at random, each still a possible one."""
    bodies, _ = widened(robot.link_names, robot.parameters)
    moves = wrong * rng.normal(size=bodies.shape)
    return robot.with_parameters(bodies + np.einsum('lij,lj->li', whitening(bodies), moves))


def node_settings(robot: Robot) -> RecursionSettings:
    """Return the settings; offsets of all FT sensors are unknown."""
    return recursion_settings(IdentifierSettings(), robot)


def state_noise(robot: Robot, settings: EstimatorSettings, rate: float) -> StateNoise:
    """Return how noisy the motion is that a node with these settings knows; rate [Hz]."""
    counts = (len(robot.joint_names), len(robot.imus), len(robot.ft_sensors))
    rates = StreamRates(*(np.full(n, rate) for n in counts))
    model = stream_noise(settings, robot, rates).model
    return StateNoise.of(
        model.joints,
        model.imus,
        measures_velocities=settings.joint_states.velocity_source == 'message',
    )


def held_by(robot: Robot, samples: SampleBatch, parameters: Array) -> Array:
    """Return the wrench that holds the root link beside the FT readings, (n, 6) [N, Nm]."""
    equations = EquationBuilder(robot).equations(samples)[0].values()
    own = parameters[list(robot.submodels[0].links)].reshape(-1)
    return np.stack([part.Y @ own - part.y for part in equations], axis=1)


def with_readings(
    robot: Robot,
    samples: SampleBatch,
    parameters: Array,
    pushes: Mapping[str, Array] | None = None,
) -> SampleBatch:
    """
    Return samples with simulated FT readings, from the tips of the limbs inward.

    pushes: wrenches by link, (n, 6) in and about its frame [N, Nm].
    """
    names = [sensor.name for sensor in robot.ft_sensors]
    readings = np.zeros((len(samples), len(names), 6))
    poses = poses_in_parents(robot, samples.positions)
    motions = link_motions(robot, samples, poses)
    acting = [(robot.link_names.index(name), wrench) for name, wrench in (pushes or {}).items()]
    for submodel in reversed(robot.submodels):
        if submodel.root_sensor < 0:
            continue
        placed = poses_in_root(robot, submodel, poses)
        columns = wrench_columns(submodel.links, placed, motions)
        net = np.einsum('ckn,k->nc', columns, parameters[list(submodel.links)].reshape(-1))
        net -= sum(
            (wrench_to_root(placed[k], wrench) for k, wrench in acting if k in placed),
            start=np.zeros(6),
        )
        root = np.zeros((len(samples), 6, 6))
        for load in sensor_loads(robot, submodel, readings, poses, placed, names):
            if load.names[0].startswith(f'{names[submodel.root_sensor]}.'):
                root = load.slopes.transpose(2, 0, 1)
            else:
                net -= load.wrench
        readings[:, submodel.root_sensor] = np.linalg.solve(root, net[..., None])[..., 0]
    return replace(samples, ft_readings=readings)
