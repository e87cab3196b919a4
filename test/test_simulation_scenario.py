# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Pushes come and go smoothly, and the scenes keep to what the robot can stand.

Not covered: what the pushes do to the robot (test_simulation_robot, test_simulation_truth).
"""

from itertools import pairwise

import numpy as np
import pytest

from inertial_estimation.errors import ConfigError
from inertial_estimation.simulation.motion import START, Motion
from inertial_estimation.simulation.scenario import SCENES, Push, pole, standing

WRENCH = (1.0, -2.0, 3.0, 0.1, 0.2, -0.3)
STEP = 1e-5
"""s: of the differences that stand in for derivatives."""
SLOPE = 1e-4
"""rad/s: round-off over the step, and a third derivative of some 1e3 times its square."""


def test_a_push_is_smooth_and_has_its_full_strength_between_the_edges() -> None:
    push = Push(1.0, 2.0, 'l_hand', WRENCH, edge=0.5)
    assert push.at(1.0) is None and push.at(3.0) is None
    for time in (1.5, 2.0, 2.5):
        np.testing.assert_array_equal(push.at(time), WRENCH)
    for time in (1.25, 2.75):
        np.testing.assert_allclose(push.at(time), np.array(WRENCH) / 2.0)
    times = np.arange(1.0 + STEP, 3.0, 1e-3)
    strength = np.array([push.at(time)[2] for time in times])
    steepest = 0.5 * np.pi / 0.5 * 3.0
    assert np.abs(np.diff(strength)).max() <= steepest * 1e-3
    assert strength[0] < 1e-6


@pytest.mark.parametrize(
    ('duration', 'wrench', 'edge', 'said'),
    [
        (1.0, WRENCH[:3], 0.2, 'six numbers'),
        (1.0, (np.nan, *WRENCH[1:]), 0.2, 'six numbers'),
        (0.3, WRENCH, 0.2, 'at most half'),
        (1.0, WRENCH, 0.0, 'more than 0'),
    ],
)
def test_an_impossible_push_is_refused(duration, wrench, edge, said) -> None:
    with pytest.raises(ConfigError):
        Push(0.0, duration, 'l_hand', wrench, edge)


@pytest.mark.parametrize('name', list(SCENES))
@pytest.mark.parametrize('duration', [10.0, 30.0])
def test_a_scene_pushes_its_contacts_within_its_duration(name: str, duration: float) -> None:
    scenario = SCENES[name](duration, 0)
    assert scenario.name == name
    assert {push.frame for push in scenario.pushes} <= set(scenario.contacts)
    assert max(push.start + push.duration for push in scenario.pushes) <= duration
    assert min(push.start for push in scenario.pushes) > 0.0
    assert scenario == SCENES[name](duration, 0)


def test_on_the_pole_every_submodel_but_the_torso_is_pushed_with_about_50_newton() -> None:
    scenario = pole(10.0)
    forces = [np.linalg.norm(push.wrench[:3]) for push in scenario.pushes]
    assert min(forces) >= 45.0 and max(forces) <= 55.0
    assert {push.frame for push in scenario.pushes} == set(scenario.contacts) - {'root_link'}
    assert pole(10.0, seed=1).pushes != scenario.pushes


def test_standing_other_seeds_begin_with_other_pushes_of_the_same_list() -> None:
    zero, one = (
        [(push.frame, push.wrench) for push in standing(60.0, seed).pushes] for seed in (0, 1)
    )
    assert one[:-1] == zero[1:]
    assert one[0] != zero[0]


@pytest.mark.parametrize('seed', [0, 3, 11])
def test_standing_the_trunk_is_pushed_gently_sideways_and_never_twice_at_once(seed) -> None:
    pushes = standing(60.0, seed).pushes
    for push in pushes:
        if push.frame == 'chest':
            # Left and forward; the chest's second axis is the vertical one.
            assert np.hypot(push.wrench[0], push.wrench[2]) <= 10.0
    for push, after in pairwise(pushes):
        assert push.start + push.duration <= after.start


def motion(rms: float, seed: int = 0) -> Motion:
    """Return the motion of forty joints."""
    return Motion.random(np.full(40, 0.5), np.full(40, rms), np.random.default_rng(seed))


def test_a_motion_starts_at_rest_and_keeps_within_its_excursions() -> None:
    m = motion(4.0)
    positions, velocities = m.at(0.0)
    np.testing.assert_array_equal(positions, 0.5)
    np.testing.assert_array_equal(velocities, 0.0)
    path = np.array([m.at(time)[0] for time in np.arange(-1.0, 30.0, 0.01)])
    assert (np.abs(path - 0.5) <= m.excursions).all()
    assert (np.abs(path - 0.5).max(axis=0) > 0.5 * m.excursions).all()


@pytest.mark.parametrize('time', [-0.5, 0.3, 1.9, 2.0, 7.0])
def test_the_velocities_of_a_motion_are_the_derivative_of_its_positions(time: float) -> None:
    m = motion(4.0)
    slope = (m.at(time + STEP)[0] - m.at(time - STEP)[0]) / (2.0 * STEP)
    np.testing.assert_allclose(m.at(time)[1], slope, rtol=0.0, atol=SLOPE)


def test_a_motion_has_the_acceleration_that_was_asked_for() -> None:
    m = motion(4.0)
    times = np.arange(START, START + 60.0, 0.01)
    velocities = np.array([m.at(time)[1] for time in times])
    accelerations = np.gradient(velocities, times, axis=0)
    rms = np.sqrt(np.mean(accelerations**2, axis=0))
    # Sines of nearby frequencies beat: a minute shows their mean power to some percent.
    np.testing.assert_allclose(rms, 4.0, rtol=0.1)
