# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Wrenches through joints and net wrenches of links.

The oracle is the thesis written out link by link (brute_force.py). Not covered: what the results
depend on (test_dependence.py).
"""

import brute_force
import numpy as np
import pytest
from robots import (
    all_kinds,
    arm_with_wrist_sensor_urdf,
    assert_close,
    at_ends,
    at_roots,
    nested_humanoid_urdf,
    random_sample,
    two_link_urdf,
)

from inertial_estimation.errors import NameNotFound
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot

# Relative to the largest number: what consistent sets of wrenches must keep; round-off of sums
# over some forty links is 1e-13.
AGREES = 1e-10
HUMANOID = nested_humanoid_urdf()
ROBOTS = {
    'two links': (two_link_urdf(), {'imus': ['arm']}),
    'arm held by its tip': (arm_with_wrist_sensor_urdf(), {'fixed_link': 'tip'}),
    'imu at the head': (HUMANOID, {'imus': ['head']}),
    'imus in a row': (HUMANOID, {'imus': ['foot', 'shank', 'hip', 'root', 'neck']}),
    'no FT sensor': (HUMANOID, {'imus': ['hand'], 'ft_sensors': []}),
}


@pytest.fixture(params=[*ROBOTS, 'icub_v2_5'])
def robot(request):
    if request.param in ROBOTS:
        text, options = ROBOTS[request.param]
        return Robot.from_urdf(text, **options)
    models = request.getfixturevalue('shared_models')
    return Robot.from_urdf(models / f'{request.param}.urdf', imus=['head', 'chest', 'l_foot'])


@pytest.mark.parametrize('contacts', [at_roots, at_ends, all_kinds])
def test_wrenches_through_joints_are_the_sums_of_the_thesis(robot, contacts, rng):
    estimator, sample = WrenchEstimator(robot, contacts(robot)), random_sample(robot, rng)
    estimate, internal = estimator.update(sample), InternalWrenches(estimator)
    motions = brute_force.link_motions(robot, sample, range(len(robot.imus)))
    net = brute_force.net_wrenches(robot, motions)
    assert_close(internal.net(sample, estimate), net, AGREES)
    poses = brute_force.link_poses(robot, sample.positions)
    member_of = brute_force.submodel_roots(robot, range(len(robot.ft_sensors)))
    n_fts = range(len(robot.ft_sensors))
    through = {k: brute_force.child_on_parent(robot, k, sample.ft_readings[k]) for k in n_fts}
    for k, sensor in enumerate(robot.ft_sensors):
        assert_close(internal.of(sample, estimate, sensor.joint), -through[k][None], AGREES)
    for contact, wrench in zip(estimate.contacts, estimate.wrenches, strict=True):
        link, pose = robot.frame(contact.frame)
        net[link] -= brute_force.wrench_transform(pose) @ wrench
    joints = {link.joint: k for k, link in enumerate(robot.links)}
    for j, wrench in enumerate(internal.of(sample, estimate, robot.joint_names)):
        k = joints[j]
        own = {n for n in brute_force.beyond(robot, k) if member_of[n] == member_of[k]}
        assert_close(wrench, brute_force.summed(robot, poses, k, own, net, through), AGREES)
        assert_close(robot.links[k].motion @ wrench, estimate.torques[j], AGREES)


@pytest.mark.parametrize('contacts', [at_ends, all_kinds])
def test_missing_sensors_cost_what_they_cost_the_torques(robot, contacts, rng):
    """A wrench depends on what its torque does, and maybe on its own position."""
    estimator, sample = WrenchEstimator(robot, contacts(robot)), random_sample(robot, rng)
    internal = InternalWrenches(estimator)
    n = len(robot.joint_names)
    for j in {0, n // 2, n - 1}:
        positions, readings = sample.positions.copy(), sample.ft_readings.copy()
        positions[j] = np.nan
        readings[: j % 2] = np.nan
        whole = sample._replace(ft_readings=readings)
        faulty = whole._replace(positions=positions)
        estimate = estimator.update(faulty)
        wrenches = internal.of(faulty, estimate, robot.joint_names)
        lost, others = np.isnan(wrenches).any(axis=1), np.arange(n) != j
        np.testing.assert_array_equal(lost[others], np.isnan(estimate.torques)[others])
        assert lost[j] or np.isfinite(estimate.torques[j])
        expected = internal.of(whole, estimator.update(whole), robot.joint_names)
        assert_close(wrenches[~lost], expected[~lost], AGREES)


def test_wrong_joints_are_refused(nested_humanoid):
    for name in ('sole_joint', 'elbo'):
        with pytest.raises(NameNotFound):
            InternalWrenches(WrenchEstimator(nested_humanoid)).frames([name])
