# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Whole wrenches through joints and net wrenches of links, on request.

The oracles are the thesis written out link by link (brute_force.py) and Pinocchio's inverse
dynamics of readings that fit together (consistent_readings.py). Not covered: what the results
rest on (test_dependence.py).
"""

import brute_force
import numpy as np
import pytest
from consistent_readings import ConsistentReadings, random_motion
from robots import (
    arm_with_wrist_sensor_urdf,
    nested_humanoid_urdf,
    random_sample,
    two_link_urdf,
)

from inertial_estimation.errors import ModelError, NameNotFound
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.sample import SampleBatch

# Relative to the largest number: what consistent sets of wrenches must keep; round-off of sums
# over some forty links is 1e-13.
AGREES = 1e-10
HUMANOID = nested_humanoid_urdf()
ROBOTS = {
    'two links': (two_link_urdf(), {'imus': ['arm']}),
    'arm on the ground': (arm_with_wrist_sensor_urdf(), {'fixed_link': 'base'}),
    'arm held by its tip': (arm_with_wrist_sensor_urdf(), {'fixed_link': 'tip'}),
    'imu at the head': (HUMANOID, {'imus': ['head']}),
    'imu at the foot': (HUMANOID, {'imus': ['foot']}),
    'imus in a row': (HUMANOID, {'imus': ['foot', 'shank', 'hip', 'root', 'neck']}),
    'imus everywhere': (HUMANOID, {'imus': ['root', 'chest', 'hand', 'hip', 'sole', 'head']}),
    'no FT sensor': (HUMANOID, {'imus': ['hand'], 'ft_sensors': []}),
}


@pytest.fixture(params=[*ROBOTS, 'icub_v2_5', 'icub_sensorised'])
def robot(request):
    if request.param in ROBOTS:
        text, options = ROBOTS[request.param]
        return Robot.from_urdf(text, **options)
    models = request.getfixturevalue('shared_models')
    return Robot.from_urdf(models / f'{request.param}.urdf', imus=['head', 'chest', 'l_foot'])


def at_roots(robot):
    return [Contact(submodel.name) for submodel in robot.submodels]


def at_ends(robot):
    return [Contact(robot.link_names[submodel.links[-1]]) for submodel in robot.submodels]


def with_known(robot):
    known = [Contact(name, 'known', wrench=(1, 2, 3, 4, 5, 6)) for name in robot.link_names]
    return [*known, *at_ends(robot)]


def all_kinds(robot):
    kinds = ['force', 'wrench', 'axial_force', 'known']
    point = (0.1, 0.2, -0.1)
    return [
        Contact(name, kinds[k % 4], point, wrench=(1, 2, 3, 4, 5, 6))
        for k, name in enumerate(robot.link_names)
    ]


def pushed_in_part(robot):
    return [Contact(s.name, 'force') for s in robot.submodels[1:]][:3]


def all_joints(robot):
    return [*robot.joint_names, *(sensor.joint for sensor in robot.ft_sensors)]


def cuts(robot):
    """Return the child link of each of these joints."""
    child = {link.joint: k for k, link in enumerate(robot.links)}
    joints = [child[j] for j in range(len(robot.joint_names))]
    return [*joints, *(sensor.child for sensor in robot.ft_sensors)]


def answers(robot, contacts, rng):
    """Return what is estimated, and who to ask about it."""
    estimator = WrenchEstimator(robot, contacts)
    sample = random_sample(robot, rng)
    return sample, estimator.update(sample), InternalWrenches(estimator)


def assert_close(got, expected):
    size = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(got, expected, rtol=0, atol=AGREES * size)


SETS = [at_roots, at_ends, with_known, all_kinds, pushed_in_part]


def moved_to(robot, sample, k, rows):
    """Return the sum of wrenches, given by the link in whose frame they are, in link k's."""
    poses = brute_force.link_poses(robot, sample.positions)
    k_H_root = np.linalg.inv(poses[k])
    return sum(
        (brute_force.wrench_transform(k_H_root @ poses[n]) @ row for n, row in rows), np.zeros(6)
    )


@pytest.mark.parametrize('contacts', SETS)
def test_the_torque_is_the_component_along_the_axis(robot, contacts, rng):
    sample, estimate, internal = answers(robot, contacts(robot), rng)
    wrenches = internal.of(sample, estimate, robot.joint_names)
    axes = [robot.links[k].motion for k in cuts(robot)[: len(robot.joint_names)]]
    assert_close((wrenches * np.array(axes)).sum(axis=1), estimate.torques)


@pytest.mark.parametrize('contacts', SETS)
def test_it_is_the_local_sum_of_the_thesis(robot, contacts, rng):
    sample, estimate, internal = answers(robot, contacts(robot), rng)
    net = brute_force.net_wrenches(
        robot, brute_force.link_motions(robot, sample, range(len(robot.imus)))
    )
    member_of = brute_force.submodel_roots(robot, range(len(robot.ft_sensors)))
    expected = []
    for k in cuts(robot)[: len(robot.joint_names)]:
        own = {n for n in brute_force.beyond(robot, k) if member_of[n] == member_of[k]}
        rows = [(n, net[n]) for n in own]
        for contact, wrench in zip(estimate.contacts, estimate.wrenches, strict=True):
            link, pose = robot.frame(contact.frame)
            if link in own:
                rows.append((link, -brute_force.wrench_transform(pose) @ wrench))
        for s, sensor in enumerate(robot.ft_sensors):
            if sensor.parent in own:
                reading = brute_force.child_on_parent(robot, s, sample.ft_readings[s])
                rows.append((sensor.child, -reading))
        expected.append(moved_to(robot, sample, k, rows))
    assert_close(internal.of(sample, estimate, robot.joint_names), np.array(expected))


def test_net_wrenches_are_those_of_single_bodies(robot, rng):
    sample, estimate, internal = answers(robot, at_roots(robot), rng)
    motions = brute_force.link_motions(robot, sample, range(len(robot.imus)))
    assert_close(
        internal.net(sample, estimate), np.array(brute_force.net_wrenches(robot, motions))
    )


@pytest.mark.parametrize('contacts', [at_ends, lambda robot: []])
@pytest.mark.parametrize('imus', [['head'], ['head', 'l_foot', 'r_hand']])
def test_readings_that_fit_together_give_the_true_wrenches(imus, contacts, rng, shared_models):
    """Two bodies are pushed, or none: without contacts the robot falls freely."""
    robot = Robot.from_urdf(shared_models / 'icub_v2_5.urdf', imus=imus)
    readings = ConsistentReadings(robot)
    pushed = {c.frame: rng.normal(0.0, 20.0, 6) for c in contacts(robot)}
    sample, _, _ = readings.sample(random_motion(robot, rng), pushed)
    model, data = readings.model, readings.data
    true = np.array([data.f[model.getJointId(name)].vector for name in all_joints(robot)])
    estimator = WrenchEstimator(robot, contacts(robot))
    estimate, internal = estimator.update(sample), InternalWrenches(estimator)
    assert_close(internal.of(sample, estimate, all_joints(robot)), true)


def test_an_ft_joint_carries_what_its_sensor_reads(rng):
    robot = Robot.from_urdf(HUMANOID, imus=['head'])
    calibration = FtCalibration(rng.normal(size=(3, 6, 6)), rng.normal(0.0, 5.0, (3, 6)))
    estimator = WrenchEstimator(robot, at_ends(robot), calibration=calibration)
    sample = random_sample(robot, rng)
    estimate = estimator.update(sample)
    wrenches = calibration.apply(sample.ft_readings)
    expected = [-brute_force.child_on_parent(robot, k, wrenches[k]) for k in range(3)]
    names = [sensor.joint for sensor in robot.ft_sensors]
    internal = InternalWrenches(estimator)
    assert_close(internal.of(sample, estimate, names), np.array(expected))


@pytest.mark.parametrize('lost', range(3))
def test_a_lost_sensor_is_predicted(lost, rng):
    """Nothing touches its two submodels but one contact, so the others tell what it would read."""
    robot = Robot.from_urdf(HUMANOID, imus=['head', 'shank'])
    pushed = robot.submodels[0].name
    sample, _, _ = ConsistentReadings(robot).sample(
        random_motion(robot, rng), {pushed: rng.normal(0.0, 20.0, 6)}
    )
    expected = -brute_force.child_on_parent(robot, lost, sample.ft_readings[lost])
    sample.ft_readings[lost] = np.nan
    estimator = WrenchEstimator(robot, [Contact(pushed)])
    estimate = estimator.update(sample)
    assert not estimate.used_fts[lost]
    joint = robot.ft_sensors[lost].joint
    assert_close(InternalWrenches(estimator).of(sample, estimate, [joint])[0], expected)


@pytest.mark.parametrize('contacts', SETS)
def test_what_is_missing_is_nan_as_in_the_estimate(robot, contacts, rng):
    """Fault by fault; a wrench rests on what its torque does, and maybe on its own position."""
    sample, _, internal = answers(robot, contacts(robot), rng)
    estimator = WrenchEstimator(robot, contacts(robot))
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
        # What is known does not rest on what is missing: it is the same with that joint.
        expected = internal.of(whole, estimator.update(whole), robot.joint_names)
        assert_close(wrenches[~lost], expected[~lost])


def test_a_batch_gives_the_same_as_its_samples(rng):
    """Faults come and go in it, so that its instants differ in models, sensors and contacts."""
    robot = Robot.from_urdf(HUMANOID, imus=['head', 'foot'])
    samples = [random_sample(robot, rng) for _ in range(12)]
    for k, sample in enumerate(samples):
        if k % 3 == 1:
            sample.ft_readings[k % 2] = np.nan
        if k % 4 == 2:
            sample.angular_velocities[k % 2] = np.nan
        if k % 5 == 4:
            sample.velocities[k % 3] = np.nan
    estimator = WrenchEstimator(robot, at_ends(robot))
    internal, batch = InternalWrenches(estimator), SampleBatch.stack(samples)
    estimates = estimator.batch(batch)
    names = all_joints(robot)
    wrenches, net = internal.of(batch, estimates, names), internal.net(batch, estimates)
    for k, sample in enumerate(samples):
        estimate = estimator.update(sample)
        assert_close_with_gaps(wrenches[k], internal.of(sample, estimate, names))
        assert_close_with_gaps(net[k], internal.net(sample, estimate))


def assert_close_with_gaps(got, expected):
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    assert_close(np.nan_to_num(got), np.nan_to_num(expected))


def test_a_rigid_joint_is_refused(nested_humanoid, rng):
    sample, estimate, internal = answers(nested_humanoid, [], rng)
    with pytest.raises(ModelError):
        internal.of(sample, estimate, ['sole_joint'])
    with pytest.raises(NameNotFound):
        internal.of(sample, estimate, ['elbo'])
