# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
From exact readings of the embedded robot the engine finds the truth of the physics engine.

Both scenes; one IMU, several of them, and no IMU but a pole that does not move. So the truth obeys
Newton and Euler as another library sees them. Not covered: noise, how realistic servos and
contacts are, and joint velocities and accelerations that are derived from positions.
"""

from dataclasses import replace
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip('mujoco', reason='the embedded robot runs in mujoco')
pytest.importorskip('icub_models', reason='the embedded robot is the iCub of icub-models')

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.simulation.robot import IMUS, PHYSICS_HZ, SimulatedRobot
from inertial_estimation.simulation.scenario import SCENES, Push, carrying, pole

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


def run(scenario, seconds=SECONDS):
    robot = SimulatedRobot(scenario)
    snapshots = [robot.step() for _ in range(round(500 * seconds))]
    return Scene(robot, snapshots[EVERY - 1 :: EVERY])


@pytest.fixture(scope='module', params=list(SCENES))
def scene(request):
    return run(SCENES[request.param](SECONDS, 1))


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
    assert_truth(run(SCENES['pole'](SECONDS, 1)), fixed_link='root_link')


def test_the_stop_of_a_joint_is_part_of_its_torque():
    bent = replace(pole(seed=1), motion={}, posture={**pole().posture, 'l_knee': 0.05})
    push = Push(0.1, 0.5, 'l_lower_leg', (60.0, 0.0, 0.0, 0.0, -40.0, 0.0), edge=0.2)
    scene = run(replace(bent, pushes=(push,)), 0.6)
    knee = scene.robot.joint_names.index('l_knee')
    limit = ElementTree.fromstring(scene.robot.urdf).find("joint[@name='l_knee']/limit")
    stop = float(limit.get('upper'))
    assert max(snapshot.positions[knee] for snapshot in scene.snapshots) > stop
    assert_truth(scene, imus=['chest'])


def test_a_load_acts_as_a_heavier_link_until_it_is_put_down():
    scenario = carrying(1.0, 2)
    load = replace(scenario.loads[0], end=0.75)
    scene = run(replace(scenario, loads=(load,)), 1.0)
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
