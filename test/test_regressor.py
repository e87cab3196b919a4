# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Motions of links and regressors, against the estimator's net wrenches and Pinocchio.

Not covered: the speed of the two; `make bench` prints it.
"""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from robots import (
    arm_with_wrist_sensor_urdf,
    nested_humanoid_urdf,
    random_sample,
    two_link_urdf,
)

from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.balance import subtrees
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.link_motions import link_motions, poses_in_parents
from inertial_estimation.model.pinocchio_model import free_floating_model
from inertial_estimation.model.regressor import (
    joint_axis,
    net_wrench_regressor,
    submodel_regressors,
    wrench_to_root,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

# Sums of a dozen transforms of numbers up to a few hundred.
ROUND_OFF = 1e-11
N = 7

ROBOTS = {
    'two links': lambda: Robot.from_urdf(two_link_urdf(), imus=['body']),
    'IMU at the far end': lambda: Robot.from_urdf(two_link_urdf(), imus=['arm']),
    'fixed arm': lambda: Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base'),
    'one IMU': lambda: Robot.from_urdf(nested_humanoid_urdf(), imus=['head']),
    'IMUs': lambda: Robot.from_urdf(nested_humanoid_urdf(), imus=['hand', 'shank', 'chest']),
}


@pytest.fixture(params=ROBOTS)
def robot(request):
    return ROBOTS[request.param]()


@pytest.fixture
def samples(robot, rng):
    return SampleBatch.stack([random_sample(robot, rng) for _ in range(N)])


def test_the_net_wrench_of_every_link_is_the_estimators(robot, samples):
    estimator = WrenchEstimator(robot, [])
    estimate = estimator.batch(samples)
    motions = link_motions(robot, samples, poses_in_parents(robot, samples.positions))
    ours = [
        net_wrench_regressor(motion) @ parameters
        for motion, parameters in zip(motions, robot.parameters, strict=True)
    ]
    theirs = InternalWrenches(estimator).net(samples, estimate)
    np.testing.assert_allclose(np.moveaxis(ours, 0, 1), theirs, atol=ROUND_OFF)


def test_sums_and_projections_are_those_of_the_net_wrenches(robot, samples):
    poses = poses_in_parents(robot, samples.positions)
    motions = link_motions(robot, samples, poses)
    beyond = subtrees(robot)
    found = submodel_regressors(robot, samples)
    for submodel, rows in zip(robot.submodels, found, strict=True):
        parameters = robot.parameters[list(submodel.links)].reshape(-1)
        net = {
            k: wrench_to_root(
                rows.root_poses[k], net_wrench_regressor(motions[k]) @ robot.parameters[k]
            )
            for k in submodel.links
        }
        np.testing.assert_allclose(rows.wrench @ parameters, sum(net.values()), atol=ROUND_OFF)
        for row, side in enumerate(rows.sides):
            axis = joint_axis(rows.root_poses[side.child], robot.links[side.child].motion)
            carried = sum(net[k] for k in submodel.links if k in beyond[side.child])
            np.testing.assert_allclose(
                rows.torques[:, row] @ parameters, (axis * carried).sum(axis=1), atol=ROUND_OFF
            )


def test_without_sensors_the_torques_are_pinocchios(rng):
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base', ft_sensors=[])
    samples = SampleBatch.stack([random_sample(robot, rng) for _ in range(N)])
    (rows,) = submodel_regressors(robot, samples)
    model = free_floating_model(robot)
    model.gravity.linear = robot.gravity
    data = model.createData()
    for k, sample in enumerate(samples):
        q, v, a = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        q[7:], v[6:], a[6:] = sample.positions, sample.velocities, sample.accelerations
        torques = pin.rnea(model, data, q, v, a)
        ours = rows.torques[k] @ robot.parameters.reshape(-1)
        np.testing.assert_allclose(ours, torques[6:], atol=ROUND_OFF)
        np.testing.assert_allclose(
            rows.wrench[k] @ robot.parameters.reshape(-1), torques[:6], atol=ROUND_OFF
        )


def test_what_is_missing_costs_what_rests_on_it_and_nothing_else(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    samples = SampleBatch.stack([random_sample(robot, rng) for _ in range(N)])
    samples.velocities[2, robot.joint_names.index('knee')] = np.nan
    found = submodel_regressors(robot, samples)
    missing = {
        submodel.name: np.isnan(rows.wrench).any(axis=(1, 2))
        for submodel, rows in zip(robot.submodels, found, strict=True)
    }
    assert missing['thigh'].tolist() == [k == 2 for k in range(N)]
    assert missing['foot'].tolist() == [k == 2 for k in range(N)]
    assert not missing['root'].any()
    assert not missing['upper_arm'].any()


def test_a_robot_that_nobody_sees_moving_is_refused(rng):
    robot = Robot.from_urdf(two_link_urdf())
    samples = SampleBatch.stack([random_sample(robot, rng)])
    with pytest.raises(ModelError, match='imus'):
        submodel_regressors(robot, samples)


def test_motions_are_the_same_from_either_side_of_a_sliding_joint(rng):
    """What a link beyond it feels tells how the base moves, the turning slide included."""
    outer = Robot.from_urdf(arm_with_wrist_sensor_urdf(), imus=['base'])
    samples = SampleBatch.stack([random_sample(outer, rng) for _ in range(N)])
    poses = poses_in_parents(outer, samples.positions)
    motions = link_motions(outer, samples, poses)
    slider = motions[outer.link_names.index('slider')]
    inner = Robot.from_urdf(arm_with_wrist_sensor_urdf(), imus=['slider'])
    felt = replace(
        samples,
        angular_velocities=slider.angular_velocity[:, None],
        angular_accelerations=slider.angular_acceleration[:, None],
        proper_accelerations=slider.proper_acceleration[:, None],
    )
    for one, other in zip(link_motions(inner, felt, poses), motions, strict=True):
        for ours, true in zip(one, other, strict=True):
            np.testing.assert_allclose(ours, true, rtol=0, atol=1e-10)
