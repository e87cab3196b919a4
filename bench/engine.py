# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Time the estimator beside iDynTree's on the same robot with the same readings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle

import numpy as np

from bench.peer import PeerStep
from bench.report import Array, Goal, Table, Timed, interleave, ratio
from bench.robots import (
    CONTACTS,
    ONE_IMU,
    PUSHING,
    SEVERAL_IMUS,
    SQUEEZE,
    random_sample,
    synthetic_urdf,
)
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SampleBatch
from inertial_estimation.simulation.description import icub_urdf
from inertial_estimation.simulation.noise import NoiseLevels
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.sensor_noise import NoiseModel

ROUNDS, BLOCK, SAMPLES, BATCH = 100, 50, 64, 1000
PEER, NATIVE = 'iDynTree, Python step', 'iDynTree, C++ calls'
ONE, SEVERAL = 'update, 1 IMU', f'update, {len(SEVERAL_IMUS)} IMUs'
SMALL, LARGE = 'update, synthetic, 32 joints', 'update, synthetic, 128 joints'
WHOLE, MISSING = 'batch, per sample', 'update, an FT sensor missing'

Step = Callable[[Sample], object]


def measure(rounds: int = ROUNDS) -> tuple[list[Table], list[Goal]]:
    """Measure on the iCub of icub-models (32 joints, 6 FT sensors), and on robots of its shape."""
    text = icub_urdf()
    one, several = (Robot.from_urdf(text, imus=imus) for imus in (ONE_IMU, SEVERAL_IMUS))
    peer = PeerStep(one, [contact.frame for contact in CONTACTS])
    batch = SampleBatch.stack(_samples(one, BATCH))
    estimator = WrenchEstimator(one, CONTACTS)
    steps: dict[str, tuple[Robot, Step]] = {
        ONE: (one, estimator.update),
        SEVERAL: (several, WrenchEstimator(several, CONTACTS).update),
        PEER: (one, peer.step),
        NATIVE: (one, lambda sample: peer.call()),
        SMALL: _synthetic(1),
        LARGE: _synthetic(4),
        MISSING: (one, WrenchEstimator(one, CONTACTS).update),
        'update, two forces in one submodel': (one, WrenchEstimator(one, SQUEEZE).update),
        'update, soles and a hand at limits': (one, WrenchEstimator(one, PUSHING).update),
        'update, a touch whose point moves': (one, _touched(one)),
        'deviations, 1 IMU': (one, _deviations(one)),
    }
    calls = {
        name: Timed(_through(step, _samples(robot, has_all=name != MISSING)), BLOCK)
        for name, (robot, step) in steps.items()
    }
    calls[WHOLE] = Timed(lambda: estimator.batch(batch), 1)
    durations = interleave(calls, rounds)
    durations[WHOLE] = durations[WHOLE] / BATCH
    columns = ('call', 'median [us]', 'p99 [us]', *(f'/ {name}' for name in (PEER, NATIVE, ONE)))
    rows = [
        (name, *map(float, np.percentile(times, (50, 99))),
         *(ratio(times, durations[other]) for other in (PEER, NATIVE, ONE)))
        for name, times in durations.items()
    ]  # fmt: skip
    return [Table('Time per call', columns, rows)], _goals(durations)


def _goals(durations: dict[str, Array]) -> list[Goal]:
    """Compare durations with the goals."""

    def over(name: str, peer: str, limit: float) -> Goal:
        return Goal(f'{name} / {peer}', ratio(durations[name], durations[peer]), limit)

    speed = 1000.0 / float(durations[WHOLE].min())
    return [
        over(ONE, PEER, 0.15),
        over(ONE, NATIVE, 0.6),
        over(MISSING, ONE, 1.15),
        over(SEVERAL, PEER, 1.0),
        over(LARGE, SMALL, 2.0),
        Goal('batch, times real time at 1 kHz (fastest round)', speed, 50.0, at_least=True),
    ]


def _samples(robot: Robot, n: int = SAMPLES, *, has_all: bool = True) -> list[Sample]:
    """Return samples, the same for every contender on the same robot; or without its first FT."""
    rng = np.random.default_rng(1)
    samples = [random_sample(robot, rng) for _ in range(n)]
    if not has_all:
        for sample in samples:
            sample.ft_readings[0] = np.nan
    return samples


def _through(step: Step, samples: Sequence[Sample]) -> Callable[[], object]:
    """Return a call that takes the samples in turn."""
    turn = cycle(samples)
    return lambda: step(next(turn))


def _synthetic(scale: int) -> tuple[Robot, Step]:
    """Return a robot of the iCub's shape, and its estimator's step."""
    robot = Robot.from_urdf(synthetic_urdf(scale), imus=['root'])
    contacts = [Contact(submodel.name) for submodel in robot.submodels]
    return robot, WrenchEstimator(robot, contacts).update


def _touched(robot: Robot) -> Step:
    """Return a step with a contact whose point changes at every sample."""
    estimator = WrenchEstimator(robot, CONTACTS)
    points = cycle((0.0, 0.0, 1e-3 * k) for k in range(64))

    def step(sample: Sample) -> object:
        touch = Contact(CONTACTS[-1].frame, 'force', next(points))
        return estimator.update(sample, estimator.with_touches([touch]))

    return step


def _deviations(robot: Robot) -> Step:
    """Return a step that computes standard deviations."""
    levels = NoiseLevels()
    joint = np.diag([levels.encoder**2, 0.05**2, 1.0])
    imu = np.diag([levels.gyroscope**2, levels.accelerometer**2, 1.0])
    noise = NoiseModel.uniform(robot, joint=joint, imu=imu, ft=np.full(6, 0.1))
    return Uncertainty(WrenchEstimator(robot, CONTACTS), noise).of
