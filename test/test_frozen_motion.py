# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Positions and velocities that stay the same to the bit: frozen where they contradict each other.

Not covered: what becomes of the rows: test_identify_doubts.py.
"""

from dataclasses import replace

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.logs.frozen_motion import without_frozen_motion
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

RATE, N = 200.0, 1600
AFTER = 0.2
STUCK = slice(600, 800)
REPEATED = np.arange(601, 800)
JOINT = 1


@pytest.fixture
def robot():
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')


@pytest.fixture
def log(robot, rng):
    """Return a log in which all joints move, but the first one."""
    t = np.arange(N)[:, None] / RATE
    w, phase = rng.uniform(1.0, 2.0, 3), rng.uniform(0.0, 6.0, 3)
    size = np.array([0.0, 0.8, 0.8])
    q, v = size * np.sin(w * t + phase), w * size * np.cos(w * t + phase)
    none = np.zeros((N, len(robot.imus), 3))
    stamps = np.round(t[:, 0] * 1e9).astype(np.int64)
    return SampleBatch(
        stamps, q, v, v, none, none, none, np.zeros((N, len(robot.ft_sensors), 6))
    )  # fmt: skip


def stuck(values):
    found = values.copy()
    found[STUCK, JOINT] = found[STUCK.start, JOINT]
    return found


def lost(found):
    """Return where something is missing of positions, and of velocities."""
    return [np.argwhere(np.isnan(one)).tolist() for one in (found.positions, found.velocities)]


def test_a_log_that_goes_on_stays_as_it_is(robot, log):
    found, said = without_frozen_motion(robot, log, AFTER, True)
    assert lost(found) == [[], []] and said == []


@pytest.mark.parametrize('which', ['positions', 'velocities'])
def test_what_stays_while_the_other_goes_on_is_left_out(robot, log, which):
    frozen = replace(log, **{which: stuck(getattr(log, which))})
    before = getattr(frozen, which).copy()
    found, (said,) = without_frozen_motion(robot, frozen, AFTER, True)
    expected = [[k, JOINT] for k in REPEATED]
    assert lost(found) == ([expected, []] if which == 'positions' else [[], expected])
    name = robot.joint_names[JOINT]
    what = 'position' if which == 'positions' else 'velocity'
    assert said.startswith(f'{what} of {name}: the same to the bit')
    assert f'at {len(REPEATED)} of {N} instants' in said
    np.testing.assert_array_equal(getattr(frozen, which), before)
    kept, nothing = without_frozen_motion(robot, frozen, 0.0, True)
    assert kept is frozen and nothing == []


def test_a_message_that_comes_again_freezes_both(robot, log):
    both = replace(log, positions=stuck(log.positions), velocities=stuck(log.velocities))
    found, _ = without_frozen_motion(robot, both, AFTER, True)
    assert lost(found) == [[[k, JOINT] for k in REPEATED]] * 2


def test_velocities_that_nobody_uses_are_not_judged(robot, log):
    frozen = replace(log, velocities=stuck(log.velocities))
    assert without_frozen_motion(robot, frozen, AFTER, False)[1] == []
    frozen = replace(log, positions=stuck(log.positions))
    assert len(without_frozen_motion(robot, frozen, AFTER, False)[1]) == 1


def test_joints_at_rest_and_steady_ones_repeat_what_is_right(robot, log):
    """Positions stay at rest, velocities at a constant rate, and errors at rest are small."""
    t = np.arange(N) / RATE
    q, v = log.positions.copy(), log.velocities.copy()
    q[:, JOINT], v[:, JOINT] = 0.4, 0.015 * np.sin(t)
    q[:, 2], v[:, 2] = 0.3 * t, 0.3
    said = without_frozen_motion(robot, replace(log, positions=q, velocities=v), AFTER, True)[1]
    assert said == []


def test_coarse_positions_stay_while_a_joint_moves_slowly(robot, log):
    """Steps of 0.05 rad, of which a joint at 0.1 rad/s takes one in half a second."""
    t = np.arange(N) / RATE
    q, v = log.positions.copy(), log.velocities.copy()
    q[:, JOINT], v[:, JOINT] = 0.05 * np.round(0.1 * t / 0.05), 0.1
    said = without_frozen_motion(robot, replace(log, positions=q, velocities=v), AFTER, True)[1]
    assert said == []


def test_without_velocities_nothing_is_told(robot, log):
    nothing = np.full_like(log.velocities, np.nan)
    frozen = replace(log, positions=stuck(log.positions), velocities=nothing)
    assert without_frozen_motion(robot, frozen, AFTER, False)[1] == []
