# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How fast the estimator is, beside iDynTree's on the same robot with the same readings.

The goals are ratios of calls that were timed within milliseconds of each other, as times alone
say more about the machine than about the code. The batch has nothing to be held against but the
clock, so its fastest round counts: other work on the machine can only add to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from bench.peer import PeerStep
from bench.robots import (
    CONTACTS,
    ONE_IMU,
    SEVERAL_IMUS,
    random_sample,
    synthetic_urdf,
)
from bench.switched_on import steps
from bench.timing import Array, Progress, Timed, interleave, ratio
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SampleBatch
from inertial_estimation.simulation.description import icub_urdf

ROUNDS = 100
BLOCK = 50
"""Calls in a block: a few milliseconds."""
SLOWER = 5
"""Times as long as an update takes what finds standard deviations, about."""
SAMPLES = 64
"""Different samples that each contender goes through in turn."""
BATCH = 1000
"""Instants of a batch: one second at 1 kHz."""
PEER, TUNED, NATIVE = 'iDynTree, Python step', 'iDynTree, tuned Python step', 'iDynTree, C++ calls'
ONE, SEVERAL = 'update, 1 IMU', f'update, {len(SEVERAL_IMUS)} IMUs'
SMALL, LARGE = 'update, synthetic, 32 joints', 'update, synthetic, 128 joints'
WHOLE = 'batch, per instant'
GOAL_COLUMNS = ('goal', 'value', 'limit', '')
COMPARED = (PEER, TUNED, NATIVE, ONE)
"""Calls to which each call is a ratio; to the last, what is switched on adds to it."""
COLUMNS = ('call', 'median [us]', 'p99 [us]', *(f'/ {name}' for name in COMPARED))


@dataclass(frozen=True)
class Goal:
    """A figure with the limit that it is meant to keep."""

    name: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def reached(self) -> bool:
        """Tell whether the limit is kept."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    @property
    def row(self) -> tuple[str, ...]:
        """The goal as a row of `GOAL_COLUMNS`."""
        sign = '>=' if self.at_least else '<='
        verdict = 'reached' if self.reached else 'missed'
        return self.name, f'{self.value:.3g}', f'{sign} {self.limit:g}', verdict


@dataclass(frozen=True)
class Benchmark:
    """What was measured: durations per call [us], shape (rounds, block) each, and the goals."""

    durations: Mapping[str, Array]
    goals: tuple[Goal, ...]

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """One row of `COLUMNS` per call."""
        return tuple(
            (
                name,
                f'{np.median(times):.1f}',
                f'{np.percentile(times, 99):.1f}',
                *(f'{ratio(times, self.durations[peer]):.2f}' for peer in COMPARED),
            )
            for name, times in self.durations.items()
        )

    def as_dict(self) -> dict[str, dict[str, float]]:
        """Return the figures for a machine."""
        return {
            'median_us': {name: float(np.median(t)) for name, t in self.durations.items()},
            'p99_us': {name: float(np.percentile(t, 99)) for name, t in self.durations.items()},
            'goals': {goal.name: goal.value for goal in self.goals},
        }


def run(rounds: int = ROUNDS, block: int = BLOCK, progress: Progress | None = None) -> Benchmark:
    """Measure on the iCub of icub-models (32 joints, 6 FT sensors), and on robots of its shape."""
    durations = interleave(_contenders(block), rounds, progress)
    durations[WHOLE] = durations[WHOLE] / BATCH
    return Benchmark(durations, _goals(durations))


def _contenders(block: int) -> dict[str, Timed]:
    """Prepare the calls."""
    text = icub_urdf()
    one, several = (Robot.from_urdf(text, imus=imus) for imus in (ONE_IMU, SEVERAL_IMUS))
    peer = PeerStep(one, [contact.frame for contact in CONTACTS])
    batch = SampleBatch.stack(_samples(one, BATCH))
    estimator = WrenchEstimator(one, CONTACTS)
    calls: dict[str, Callable[[], object]] = {
        ONE: _updates(one, CONTACTS),
        SEVERAL: _updates(several, CONTACTS),
        PEER: _through(peer.step, _samples(one)),
        TUNED: _through(peer.tuned_step, _samples(one)),
        NATIVE: peer.call,
        SMALL: _synthetic(1),
        LARGE: _synthetic(4),
    }
    contenders = {name: Timed(call, block) for name, call in calls.items()}
    # Last, and as few calls as take about as long: what the goals compare stays side by side.
    for name, (robot, step) in steps(one).items():
        calls_of_block = block if name.startswith('update') else -(-block // SLOWER)
        contenders[name] = Timed(_through(step, _samples(robot)), calls_of_block)
    contenders[WHOLE] = Timed(lambda: estimator.batch(batch), 1)
    return contenders


def _samples(robot: Robot, n: int = SAMPLES) -> list[Sample]:
    """Return samples, the same for every contender on the same robot."""
    rng = np.random.default_rng(1)
    return [random_sample(robot, rng) for _ in range(n)]


def _through(step: Callable[[Sample], object], samples: Sequence[Sample]) -> Callable[[], object]:
    """Return a call that takes the samples in turn."""
    turn = cycle(samples)
    return lambda: step(next(turn))


def _updates(robot: Robot, contacts: Sequence[Contact]) -> Callable[[], object]:
    """Return a call of the estimator."""
    return _through(WrenchEstimator(robot, contacts).update, _samples(robot))


def _synthetic(scale: int) -> Callable[[], object]:
    """Return a call of the estimator on a robot of the iCub's shape."""
    robot = Robot.from_urdf(synthetic_urdf(scale), imus=['root'])
    return _updates(robot, [Contact(submodel.name) for submodel in robot.submodels])


def _goals(durations: Mapping[str, Array]) -> tuple[Goal, ...]:
    """Hold the durations against the goals."""

    def over(name: str, peer: str) -> float:
        return ratio(durations[name], durations[peer])

    period = 1000.0
    return (
        Goal(f'{ONE} / {PEER}', over(ONE, PEER), 0.6),
        Goal(f'{ONE} / {NATIVE}', over(ONE, NATIVE), 1.0),
        Goal(f'{SEVERAL} / {PEER}', over(SEVERAL, PEER), 1.0),
        Goal('128 joints / 32 joints', over(LARGE, SMALL), 2.0),
        Goal(
            'batch, times real time at 1 kHz (fastest round)',
            period / float(durations[WHOLE].min()),
            50.0,
            at_least=True,
        ),
    )
