# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The benchmark compares calls that do the same job, and reports what it timed.

Not covered: the durations themselves; they say something about a machine, not about the code.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip('idyntree', reason='the benchmark measures against iDynTree')
pytest.importorskip('icub_models', reason='the benchmark runs on the iCub of icub-models')

from inertial_estimation.benchmark.peer import PeerStep
from inertial_estimation.benchmark.robots import (
    CONTACTS,
    JOINTS_PER_SCALE,
    ONE_IMU,
    SEVERAL_IMUS,
    SQUEEZE,
    random_sample,
    synthetic_urdf,
)
from inertial_estimation.benchmark.run import COLUMNS, GOAL_COLUMNS, ONE, Goal, run
from inertial_estimation.benchmark.switched_on import DEVIATIONS, SHARED, TOUCHED, steps
from inertial_estimation.benchmark.timing import Timed, interleave, ratio
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.simulation.description import icub_urdf

EXACT = 1e-9
"""N and Nm: round-off of some hundred N through 32 joints."""


@pytest.fixture(scope='module')
def icub() -> Robot:
    return Robot.from_urdf(icub_urdf(), imus=ONE_IMU)


@pytest.mark.parametrize('step', [PeerStep.step, PeerStep.tuned_step])
def test_both_sides_find_the_same(
    icub: Robot, rng: np.random.Generator, step: Callable[..., object]
) -> None:
    peer = PeerStep(icub, [contact.frame for contact in CONTACTS])
    estimator = WrenchEstimator(icub, CONTACTS)
    for _ in range(2):
        sample = random_sample(icub, rng)
        wrenches, torques = step(peer, sample)
        ours = estimator.update(sample)
        np.testing.assert_allclose(ours.wrenches, wrenches, rtol=0.0, atol=EXACT)
        in_their_order = np.empty_like(ours.torques)
        in_their_order[peer.columns] = ours.torques
        np.testing.assert_allclose(in_their_order, torques, rtol=0.0, atol=EXACT)


def test_calls_do_the_job_that_their_names_promise(icub: Robot, rng: np.random.Generator) -> None:
    sample = random_sample(icub, rng)
    assert len(icub.joint_names) == JOINTS_PER_SCALE
    assert (WrenchEstimator(icub, CONTACTS).update(sample).ranks == 6).all()
    squeezed = WrenchEstimator(icub, SQUEEZE).update(sample)
    assert sorted(squeezed.ranks) == [5, *[6] * 6]
    assert (squeezed.contact_quality[-2:] == Quality.UNDETERMINED).all()
    several = Robot.from_urdf(icub_urdf(), imus=SEVERAL_IMUS)
    used = WrenchEstimator(several, CONTACTS).update(random_sample(several, rng)).used_imus
    assert used.all() and used.size == 12


def test_what_is_switched_on_is_really_on(icub: Robot, rng: np.random.Generator) -> None:
    found = steps(icub)
    sample = random_sample(icub, rng)
    plain = WrenchEstimator(icub, CONTACTS).update(sample)
    touched = found[TOUCHED][1](sample)
    assert touched.contacts[-1].kind == 'force'
    assert plain.contacts[-1].kind == 'wrench'
    deviations = found[DEVIATIONS][1](sample)
    assert (deviations.torques > 0.0).all()
    names = [name for name in found if 'sensors' in name]
    assert [name.split(',')[0] for name in names] == ['update', 'deviations']
    sensors = {len(found[name][0].imus) for name in names}
    assert len(sensors) == 1 and min(sensors) > 60
    assert all(f' {min(sensors)} ' in name for name in names)


@pytest.mark.parametrize('scale', [1, 4])
def test_synthetic_robots_grow_in_joints_only(scale: int) -> None:
    robot = Robot.from_urdf(synthetic_urdf(scale))
    assert len(robot.joint_names) == scale * 32
    assert len(robot.ft_sensors) == 6
    assert len(robot.submodels) == 7


def test_blocks_take_turns_and_only_counted_rounds_are_returned() -> None:
    calls: list[str] = []
    contenders = {name: Timed(lambda name=name: calls.append(name), 2) for name in 'ab'}
    shares: list[float] = []
    durations = interleave(contenders, 3, shares.append)
    assert ''.join(calls) == 'aabb' * 4
    assert {name: times.shape for name, times in durations.items()} == {'a': (3, 2), 'b': (3, 2)}
    assert shares == [0.0, pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0]


def test_a_slow_phase_of_the_machine_cancels_in_a_ratio() -> None:
    under = np.array([[1.0, 1.0, 50.0], [7.0, 7.0, 7.0], [1.0, 1.0, 1.0]])
    over = np.array([[2.0, 2.0, 2.0], [14.0, 14.0, 90.0], [2.0, 30.0, 2.0]])
    assert ratio(over, under) == 2.0


@pytest.mark.parametrize(
    ('value', 'at_least', 'reached'),
    [(0.5, False, True), (0.7, False, False), (0.5, True, False), (0.7, True, True)],
)
def test_goals_know_their_side(value: float, at_least: bool, reached: bool) -> None:
    goal = Goal('some', value, 0.6, at_least)
    assert goal.reached is reached
    assert len(goal.row) == len(GOAL_COLUMNS)


def test_a_short_run_fills_the_report() -> None:
    benchmark = run(rounds=1, block=1)
    assert all(len(row) == len(COLUMNS) for row in benchmark.rows)
    report = benchmark.as_dict()
    assert report['median_us'].keys() == {row[0] for row in benchmark.rows}
    assert len(report['goals']) == 5
    # Against the plain update: what a reader may switch on, and what that costs.
    ratios = {row[0]: float(row[-1]) for row in benchmark.rows}
    assert COLUMNS[-1] == f'/ {ONE}'
    assert ratios[ONE] == 1.0
    assert {SHARED, TOUCHED, DEVIATIONS} < ratios.keys()
    for figures in report.values():
        assert all(np.isfinite(value) and value > 0.0 for value in figures.values())
