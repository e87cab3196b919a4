# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The embedded robot: its scenes, loads, sensors and noise.

Not covered: its dynamics (test_against_mujoco.py), and real time.
"""

from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip('mujoco', reason='the embedded robot runs in mujoco')
pytest.importorskip('icub_models', reason='the embedded robot is the iCub of icub-models')

from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.simulation.noise import NoiseLevels, SensorNoise
from inertial_estimation.simulation.robot import SimulatedRobot
from inertial_estimation.simulation.scenario import SCENES, Push, pole, standing

GRAVITY = 9.81


def run(robot, seconds, every=1, rate=500):
    """Return some snapshots of a run."""
    return [robot.step() for _ in range(round(seconds * rate))][every - 1 :: every]


# Scenes


@pytest.mark.parametrize('name', list(SCENES))
def test_a_scene_pushes_its_contacts_within_its_duration(name):
    duration = 60.0
    scenario = SCENES[name](duration, 0)
    assert {push.frame for push in scenario.pushes} <= set(scenario.contacts)
    assert max(push.start + push.duration for push in scenario.pushes) <= duration
    assert min(push.start for push in scenario.pushes) > 0.0
    assert scenario == SCENES[name](duration, 0)
    assert scenario.pushes != SCENES[name](duration, 1).pushes
    for push, after in pairwise(scenario.pushes if name == 'standing' else ()):
        assert push.start + push.duration <= after.start


# The robot


@pytest.mark.parametrize('name', list(SCENES))
def test_runs_of_one_seed_are_bit_equal_at_any_rate(name):
    slow, fast = (SimulatedRobot(SCENES[name](3.0, 5), rate_hz=rate) for rate in (250, 1000))
    for one, other in zip(run(slow, 1.0, 10, 250), run(fast, 1.0, 40, 1000), strict=True):
        for mine, theirs in zip(one, other):
            np.testing.assert_array_equal(mine, theirs)
    assert one.time_ns == 1_000_000_000
    another = run(SimulatedRobot(SCENES[name](3.0, 6)), 1.0)[-1]
    assert (another.positions != one.positions).any()


# Seed 1 ends with the push that comes first with seed 0; 7 lifts a foot the farthest.
@pytest.mark.parametrize('seed', [0, 1, 7])
def test_the_standing_robot_moves_and_does_not_fall(seed):
    scenario = standing(20.0, seed)
    robot = SimulatedRobot(scenario)
    snapshots = run(robot, 20.0, 5)
    poses = np.array([snapshot.W_H_B for snapshot in snapshots])
    # A tilt of 2.5 degrees, a sway of 3 cm.
    assert poses[:, 2, 2].min() > 0.999
    assert np.ptp(poses[:, :3, 3], axis=0).max() < 0.03
    rows = [robot.joint_names.index(name) for name in scenario.motion]
    moving = np.array([snapshot.accelerations[rows] for snapshot in snapshots])
    assert np.sqrt(np.mean(moving**2)) >= 3.0
    feet = [robot.contact_frames.index(sole) for sole in ('l_sole', 'r_sole')]
    assert min(snapshot.external_wrenches[feet, 2].min() for snapshot in snapshots) > 20.0


@pytest.mark.parametrize(
    ('error', 'changes', 'options'),
    [
        (ConfigError, {}, {'rate_hz': 300}),
        (NameNotFound, {'pushes': (Push(1.0, 1.0, 'left_hand', (0.0,) * 6),)}, {}),
        (NameNotFound, {'posture': {'l_nee': 0.0}}, {}),
        (ConfigError, {'motion': {'l_wrist_yaw': 20.0}}, {}),
        (ConfigError, {'contacts': (*pole().contacts, 'chest'), 'pushes': ()}, {}),
    ],
)
def test_scenarios_that_do_not_fit_the_robot_are_refused(error, changes, options):
    with pytest.raises(error):
        SimulatedRobot(replace(pole(), **changes), **options)


# Noise

LEVELS = asdict(NoiseLevels())


def errors(sample, snapshot):
    """Return reading minus truth of each kind of sensor."""
    wrenches = sample.ft_readings - snapshot.ft_wrenches
    return {
        'force': wrenches[:, :3],
        'torque': wrenches[:, 3:],
        'encoder': sample.positions - snapshot.positions,
        'gyroscope': sample.angular_velocities - snapshot.angular_velocities,
        'accelerometer': sample.proper_accelerations - snapshot.proper_accelerations,
    }


@pytest.mark.parametrize('kind', list(LEVELS))
def test_noise_is_white_as_stated_and_apart_for_each_kind(kind):
    snapshot, noise, quiet = (
        SimulatedRobot(pole()).step(), SensorNoise(seed=1),
        SensorNoise(NoiseLevels(**{kind: 0.0}), seed=1),
    )  # fmt: skip
    n, sigmas = 2000, 5.0
    drawn = np.array([errors(noise.apply(snapshot), snapshot)[kind] for _ in range(n)])
    level = LEVELS[kind]
    np.testing.assert_allclose(drawn.mean(), 0.0, atol=sigmas * level / np.sqrt(drawn.size))
    np.testing.assert_allclose(drawn.std(), level, rtol=sigmas / np.sqrt(2.0 * drawn.size))
    flat = drawn.reshape(n, -1) / level
    along = np.mean(flat[1:] * flat[:-1], axis=0)
    assert np.abs(along).max() < sigmas / np.sqrt(n)
    one, other = (errors(s.apply(snapshot), snapshot) for s in (SensorNoise(seed=1), quiet))
    assert not other.pop(kind).any() and one.pop(kind).all()
    for name in other:
        np.testing.assert_array_equal(one[name], other[name])
