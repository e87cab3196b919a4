# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What a link of the embedded robot carries: sensors and truth are those of a heavier link.

Not covered: the jolt at the instant at which something is picked up.
"""

from dataclasses import replace

import numpy as np
import pytest

from inertial_estimation.errors import ConfigError, FrameNotFound

pytest.importorskip('mujoco', reason='the embedded robot runs in mujoco')
pytest.importorskip('icub_models', reason='the embedded robot is the iCub of icub-models')

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.simulation.robot import SimulatedRobot
from inertial_estimation.simulation.scenario import Load, carrying

IMU = 'root_link'
# N and Nm: two libraries, round-off of some hundred N.
SAME = 1e-8


@pytest.fixture(scope='module')
def run():
    """Return scenario, robot, samples without error, and truth; it puts down what it carries."""
    scenario = carrying(1.0, 2)
    scenario = replace(scenario, loads=(replace(scenario.loads[0], end=0.75),))
    simulated = SimulatedRobot(scenario, {IMU: IMU}, 250)
    snapshots = [simulated.step() for _ in range(250)]
    samples = SampleBatch.stack([snapshot.sample() for snapshot in snapshots])
    return scenario, simulated, samples, snapshots


def estimate(run, parameters=None):
    """Return forces at the contacts beyond the true ones, and torques likewise."""
    scenario, simulated, samples, snapshots = run
    robot = Robot.from_urdf(simulated.urdf, imus=[IMU])
    order = [simulated.joint_names.index(name) for name in robot.joint_names]
    columns = {
        name: getattr(samples, name)[:, order]
        for name in ('positions', 'velocities', 'accelerations')
    }
    robot = robot if parameters is None else robot.with_parameters(parameters(robot))
    contacts = [Contact(frame) for frame in scenario.contacts]
    found = WrenchEstimator(robot, contacts).batch(replace(samples, **columns))
    wrenches = found.wrenches - np.array([one.external_wrenches for one in snapshots])
    return wrenches, found.torques - np.array([one.torques[order] for one in snapshots])


def loaded(robot, load):
    """Return the parameters of the robot with a load."""
    bodies, center = robot.parameters.copy(), np.array(load.center)
    inertia = load.mass * ((center @ center) * np.eye(3) - np.outer(center, center))
    inertia += load.inertia * np.eye(3)
    link, L_H_F = robot.frame(load.frame)
    np.testing.assert_array_equal(L_H_F, np.eye(4))
    bodies[link] += [load.mass, *(load.mass * center), *inertia[np.tril_indices(3)]]
    return bodies


def test_sensors_feel_a_heavier_link_while_it_carries(run):
    scenario, _, samples, _ = run
    (load,) = scenario.loads
    times = 1e-9 * samples.stamp_ns
    carried = (times >= load.start) & (times < load.end)
    for chosen, parameters in (
        (~carried, None),
        (carried, lambda robot: loaded(robot, load)),
    ):
        wrenches, torques = estimate(run, parameters)
        assert np.abs(wrenches[chosen]).max() < SAME
        assert np.abs(torques[chosen]).max() < SAME
    # Who does not know takes it for a force.
    wrenches, _ = estimate(run)
    forces = np.linalg.norm(wrenches[carried][:, scenario.contacts.index('l_hand'), :3], axis=1)
    assert forces.mean() == pytest.approx(9.81 * load.mass, rel=0.3)


def test_it_is_no_touch(run):
    assert run[0].pushes == ()


@pytest.mark.parametrize(
    'wrong', [{'mass': 0.0}, {'mass': np.nan}, {'inertia': -1.0}, {'center': (0.0, np.inf, 0.0)},
              {'start': -1.0}, {'end': 0.5}],
)  # fmt: skip
def test_what_is_no_load(wrong):
    given = {'start': 1.0, 'frame': 'l_hand', 'mass': 1.0, 'center': (0.0,) * 3, 'inertia': 0.01}
    with pytest.raises(ConfigError):
        Load(**(given | wrong))


def test_a_link_that_is_not_there():
    scenario = carrying(2.0)
    scenario = replace(scenario, loads=(replace(scenario.loads[0], frame='third_hand'),))
    with pytest.raises(FrameNotFound, match='third_hand'):
        SimulatedRobot(scenario, {IMU: IMU}, 250)
