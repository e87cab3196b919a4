# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The embedded robot: its scenes, sensors and noise; from exact readings the engine finds its truth.

Both scenes; one IMU, several of them, and no IMU but a pole that does not move. So the truth obeys
Newton and Euler as another library sees them. Not covered: how realistic servos and contacts are,
joint velocities and accelerations that are derived from positions, and real time.
"""

from dataclasses import asdict, replace
from itertools import pairwise
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip('mujoco', reason='the embedded robot runs in mujoco')
pytest.importorskip('icub_models', reason='the embedded robot is the iCub of icub-models')

from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.simulation.noise import NoiseLevels, SensorNoise
from inertial_estimation.simulation.robot import IMUS, PHYSICS_HZ, SimulatedRobot
from inertial_estimation.simulation.scenario import SCENES, Push, carrying, pole, standing


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


# Its truth

EXACT = 1e-9
"""N and Nm: the physics engine leaves 1e-12 of 400 N open; a forgotten term would show."""
KINEMATICS = 1e-9
"""m/s^2, rad/s: round-off at 30 m/s^2, through ten joints."""
SECONDS = 6.0
EVERY = 7
"""Of the snapshots at 500 Hz that are looked at: several in every edge of a push."""
PER_JOINT = ('positions', 'velocities', 'accelerations', 'efforts')
PER_IMU = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')
IMU_SETS = [('root_link',), ('head_imu_0',), ('l_forearm',), ('chest', 'r_foot'), tuple(IMUS)]


class Scene(NamedTuple):
    """A run of the embedded robot."""

    robot: SimulatedRobot
    snapshots: list


def scene_of(scenario, seconds=SECONDS):
    robot = SimulatedRobot(scenario)
    return Scene(robot, run(robot, seconds, EVERY))


@pytest.fixture(scope='module', params=list(SCENES))
def scene(request):
    return scene_of(SCENES[request.param](SECONDS, 1))


def readings(scene, robot):
    """Return what exact sensors read, rows in the order of the estimator's robot."""
    batch = SampleBatch.stack([snapshot.sample() for snapshot in scene.snapshots])
    joints = [scene.robot.joint_names.index(name) for name in robot.joint_names]
    imus = [scene.robot.imu_names.index(imu.name) for imu in robot.imus]
    return replace(
        batch,
        **{field: getattr(batch, field)[:, joints] for field in PER_JOINT},
        **{field: getattr(batch, field)[:, imus] for field in PER_IMU},
    )


def assert_truth(scene, load=None, **options):
    """Assert that wrenches and torques are those of the simulator; return truth and readings."""
    robot = Robot.from_urdf(scene.robot.urdf, ft_sensors=scene.robot.ft_names, **options)
    if load is not None:
        parameters = robot.parameters.copy()
        body = pin.Inertia(load.mass, np.array(load.center), load.inertia * np.eye(3))
        parameters[robot.link_names.index(load.frame)] += body.toDynamicParameters()
        robot = robot.with_parameters(parameters)
    batch = readings(scene, robot)
    contacts = [Contact(frame) for frame in scene.robot.contact_frames]
    estimate = WrenchEstimator(robot, contacts).batch(batch)
    truth = np.array([snapshot.external_wrenches for snapshot in scene.snapshots])
    np.testing.assert_allclose(estimate.wrenches, truth, rtol=0.0, atol=EXACT)
    np.testing.assert_allclose(estimate.torques, batch.efforts, rtol=0.0, atol=EXACT)
    return truth, batch


@pytest.mark.parametrize('imus', IMU_SETS, ids=lambda imus: f'{len(imus)} {imus[0]}')
def test_exact_readings_give_the_truth(scene, imus):
    truth, batch = assert_truth(scene, imus=imus)
    assert np.linalg.norm(truth[:, :, :3], axis=2).max() > 100.0
    assert np.abs(batch.efforts).max() > 5.0
    assert np.abs(batch.accelerations).max() > 5.0


def test_a_pole_takes_the_place_of_imus():
    assert_truth(scene_of(SCENES['pole'](SECONDS, 1)), fixed_link='root_link')


def test_the_stop_of_a_joint_is_part_of_its_torque():
    bent = replace(pole(seed=1), motion={}, posture={**pole().posture, 'l_knee': 0.05})
    push = Push(0.1, 0.5, 'l_lower_leg', (60.0, 0.0, 0.0, 0.0, -40.0, 0.0), edge=0.2)
    scene = scene_of(replace(bent, pushes=(push,)), 0.6)
    knee = scene.robot.joint_names.index('l_knee')
    limit = ElementTree.fromstring(scene.robot.urdf).find("joint[@name='l_knee']/limit")
    stop = float(limit.get('upper'))
    assert max(snapshot.positions[knee] for snapshot in scene.snapshots) > stop
    assert_truth(scene, imus=['chest'])


def test_a_load_acts_as_a_heavier_link_until_it_is_put_down():
    scenario = carrying(1.0, 2)
    load = replace(scenario.loads[0], end=0.75)
    scene = scene_of(replace(scenario, loads=(load,)), 1.0)
    carried, free = [], []
    for snapshot in scene.snapshots:
        is_carried = load.start <= 1e-9 * snapshot.time_ns < load.end
        (carried if is_carried else free).append(snapshot)
    assert_truth(scene._replace(snapshots=carried), load, imus=['root_link'])
    assert_truth(scene._replace(snapshots=free), imus=['root_link'])


@pytest.mark.parametrize('name', list(SCENES))
def test_encoders_see_the_accelerations_that_the_forces_cause(name):
    robot, period = SimulatedRobot(SCENES[name](30.0, 2), rate_hz=PHYSICS_HZ), 1.0 / PHYSICS_HZ
    snapshots = [robot.step() for _ in range(3 * PHYSICS_HZ)]
    for now, then in (snapshots[-200:-198], snapshots[-2:]):
        gained = (then.velocities - now.velocities) / period
        np.testing.assert_allclose(gained, now.accelerations, rtol=0.0, atol=KINEMATICS)
        moved = (then.positions - now.positions) / period
        np.testing.assert_allclose(moved, then.velocities, rtol=0.0, atol=KINEMATICS)


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
