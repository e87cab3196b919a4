# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Regressors of wrenches and torques, against the estimator's net wrenches and Pinocchio.

Not covered: the speed of the two; `make bench` prints it.
"""

import numpy as np
import pinocchio as pin
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample

from inertial_estimation.estimation.balance import subtrees
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.link_motions import link_motions, poses_in_parents
from inertial_estimation.model.pinocchio_model import free_floating_model
from inertial_estimation.model.regressor import (
    joint_axis,
    joints_without_gravity,
    net_wrench_regressor,
    poses_in_root,
    submodel_regressors,
    wrench_to_root,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.torque_derivatives import TorqueRegressor
from inertial_estimation.sample import SampleBatch

ROUND_OFF = 1e-10  # sums of some hundred products of numbers up to a thousand
N = 7
ROBOTS = {
    'fixed arm': (arm_with_wrist_sensor_urdf(), {'fixed_link': 'base'}),
    'IMUs': (nested_humanoid_urdf(), {'imus': ['hand', 'shank', 'chest']}),
}


def assert_near(got, expected):
    np.testing.assert_allclose(got, expected, rtol=0, atol=ROUND_OFF)


def random_batch(robot, rng):
    return SampleBatch.stack([random_sample(robot, rng) for _ in range(N)])


@pytest.mark.parametrize('name', ROBOTS)
def test_rows_are_sums_of_the_net_wrenches_of_the_estimator(name, rng):
    robot = Robot.from_urdf(ROBOTS[name][0], **ROBOTS[name][1])
    samples, estimator = random_batch(robot, rng), WrenchEstimator(robot, [])
    poses = poses_in_parents(robot, samples.positions)
    motions = link_motions(robot, samples, poses)
    own = [net_wrench_regressor(m) @ p for m, p in zip(motions, robot.parameters, strict=True)]
    net = InternalWrenches(estimator).net(samples, estimator.batch(samples))
    assert_near(np.moveaxis(own, 0, 1), net)
    beyond = subtrees(robot)
    for submodel, rows in zip(robot.submodels, submodel_regressors(robot, samples), strict=True):
        parameters = robot.parameters[list(submodel.links)].reshape(-1)
        placed = poses_in_root(robot, submodel, poses)
        at_root = {k: wrench_to_root(placed[k], own[k]) for k in submodel.links}
        assert_near(rows.wrench @ parameters, sum(at_root.values()))
        for row, side in enumerate(rows.sides):
            axis = joint_axis(placed[side.child], robot.links[side.child].motion)
            carried = sum(at_root[k] for k in submodel.links if k in beyond[side.child])
            assert_near(rows.torques[:, row] @ parameters, (axis * carried).sum(axis=1))


def test_torques_without_sensors_are_pinocchio_s(rng):
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base', ft_sensors=[])
    samples = random_batch(robot, rng)
    (rows,) = submodel_regressors(robot, samples)
    model, parameters = free_floating_model(robot), robot.parameters.reshape(-1)
    model.gravity.linear = robot.gravity
    data = model.createData()
    for k, sample in enumerate(samples):
        q, v, a = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        q[7:], v[6:], a[6:] = sample.positions, sample.velocities, sample.accelerations
        torques = pin.rnea(model, data, q, v, a)
        assert_near(rows.torques[k] @ parameters, torques[6:])
        assert_near(rows.wrench[k] @ parameters, torques[:6])


def test_missing_joint_costs_what_depends_on_it(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    samples = random_batch(robot, rng)
    samples.velocities[2, robot.joint_names.index('knee')] = np.nan
    for submodel, rows in zip(robot.submodels, submodel_regressors(robot, samples), strict=True):
        missing = np.flatnonzero(np.isnan(rows.wrench).any(axis=(1, 2))).tolist()
        assert missing == ([2] if submodel.name in ('thigh', 'foot') else [])


# Rows and gradients for chosen motions


@pytest.fixture(params=[(root, cut) for root in ('base', 'root') for cut in (False, True)])
def held(request):
    """Return a chain with a prismatic joint, or a tree, at rest on a slope, cut or whole."""
    root, cut = request.param
    text = arm_with_wrist_sensor_urdf() if root == 'base' else nested_humanoid_urdf()
    sensors, gravity = None if cut else (), (1.0, -2.0, -9.0)
    return Robot.from_urdf(text, ft_sensors=sensors, fixed_link=root, gravity=gravity)


def test_torque_rows_are_those_of_logs(held, rng):
    q, v, a = rng.normal(size=(3, 5, len(held.joint_names)))
    none, readings = np.zeros((5, 0, 3)), np.zeros((5, len(held.ft_sensors), 6))
    samples = SampleBatch(np.arange(5), q, v, a, none, none, none, readings)
    regressor = TorqueRegressor(held)
    Y = regressor.rows(np.array([q, v, a]))[0].reshape(5, -1, len(held.links), 10)
    found = submodel_regressors(held, samples, ground=0)
    for submodel, wanted in zip(held.submodels, found, strict=True):
        wrench = regressor.wrench_rows.get(submodel.root, ())
        own = Y[:, [*(side.joint for side in wanted.sides), *wrench]]
        both = [wanted.torques] if submodel.root == 0 else [wanted.torques, wanted.wrench]
        expected = np.concatenate(both, axis=1)
        assert_near(own[:, :, list(submodel.links)].reshape(expected.shape), expected)
        assert not np.delete(own, submodel.links, axis=2).any()


def test_torque_gradient_is_the_slope(held, rng):
    regressor, step = TorqueRegressor(held), 1e-6
    states = rng.normal(size=(3, 2, len(held.joint_names)))
    Y, gradient = regressor.rows(states)
    slopes = rng.normal(size=Y.shape)
    found = gradient(slopes)
    for index in np.ndindex(states.shape):
        moved = np.zeros_like(states)
        moved[index] = step
        change = regressor.rows(states + moved)[0] - regressor.rows(states - moved)[0]
        slope = np.sum(slopes * change) / (2 * step)
        np.testing.assert_allclose(found[index], slope, rtol=1e-5, atol=1e-5)


# Gravity


@pytest.mark.parametrize(
    ('along', 'names'),
    [
        ((0.001, 0.0, -9.81), {'shoulder'}),  # rounded angles of a URDF
        ((0.0, -9.81, 0.0), set()),  # on a wall
        ((0.0, 0.0, 0.0), {'shoulder', 'elbow', 'lift'}),
    ],
)
def test_joints_without_gravity_have_no_torque_at_rest(along, names, rng):
    """Gravity is given in the axes of the shoulder, whose third is its own."""
    urdf = arm_with_wrist_sensor_urdf()
    axes = Robot.from_urdf(urdf, fixed_link='base', ft_sensors=()).links[1].P_H_L[:3, :3]
    robot = Robot.from_urdf(urdf, fixed_link='base', ft_sensors=(), gravity=axes @ along)
    assert joints_without_gravity(robot) == names
    q = rng.uniform(-1.0, 1.0, (4, 3))
    Y, _ = TorqueRegressor(robot).rows(np.array([q, 0 * q, 0 * q]))
    torques = np.abs(Y @ robot.parameters.reshape(-1)).max(axis=0)
    small = {n for n, torque in zip(robot.joint_names, torques, strict=True) if torque < 0.1}
    assert small == names
