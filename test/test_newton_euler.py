# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The engine against the thesis written out link by link (brute_force.py), on any readings at all.

IMUs contradict each other and the joints, FT sensors contradict both; still every number must be
the one that the equations give. Pinocchio's inverse dynamics of the moving robot, with its linear
velocity, is a second oracle. Not covered: which readings are missing (test_wrench_estimator.py),
other engines (test_against_idyntree.py).
"""

import brute_force
import numpy as np
import pinocchio as pin
import pytest
from robots import (
    arm_with_wrist_sensor_urdf,
    nested_humanoid_urdf,
    random_sample,
    two_link_urdf,
)

from inertial_estimation.estimation.contacts import Contact, ContactKind
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration

# Relative to the largest number of a result: round-off of sums over some sixty links, times the
# condition of the least squares, which the rank tolerance bounds at 1e3.
ROUND_OFF = 1e-10
# Newtons of some 1e4 in the moving base, of which all but some 1e2 cancel.
BASE_VELOCITY = 1e-9
TEXTS = {
    'two_link': two_link_urdf(),
    'arm': arm_with_wrist_sensor_urdf(),
    'humanoid': nested_humanoid_urdf(),
}
SHARED = ['icub_v2_5', 'icub_genova01', 'icub_sensorised', 'ergocub_sn001', 'panda_wrist_ft']
PANDA_JOINTS = [f'panda_joint{k}' for k in range(1, 8)]


def read_robot(name, request, **options):
    """Return a robot of the tests by name, or a shared one."""
    if name in TEXTS:
        return Robot.from_urdf(TEXTS[name], **options)
    path = request.getfixturevalue('shared_models') / f'{name}.urdf'
    if name.startswith('panda'):
        options.setdefault('joints', PANDA_JOINTS)
    return Robot.from_urdf(path, **options)


def any_imus(frames, rng, largest):
    """Return up to so many IMUs at any frames, some of them on one link."""
    return [(f'imu_{k}', str(rng.choice(frames))) for k in range(rng.integers(1, largest + 1))]


def any_contacts(frames, rng, largest=9):
    """Return contacts of all kinds at any frames, several, one or none to a submodel."""
    return tuple(
        Contact(
            frame=str(rng.choice(frames)),
            kind=str(rng.choice([str(kind) for kind in ContactKind])),
            point=tuple(rng.normal(0.0, 0.1, 3)),
            direction=tuple(rng.normal(size=3)),
            wrench=tuple(rng.normal(0.0, 10.0, 6)),
            name=f'contact_{k}',
        )
        for k in range(rng.integers(0, largest + 1))
    )


def one_wrench_each(robot):
    return tuple(Contact(submodel.name) for submodel in robot.submodels)


def assert_close(got, expected, what):
    size = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(got, expected, rtol=0, atol=ROUND_OFF * size, err_msg=what)


def assert_same(robot, estimate, answer):
    """Compare everything that both say."""
    roots = [submodel.root for submodel in robot.submodels]
    assert_close(estimate.wrenches, answer.wrenches, 'wrenches')
    assert_close(estimate.torques, answer.torques, 'torques')
    assert_close(estimate.external_torques, answer.external_torques, 'external torques')
    assert_close(estimate.residuals, [answer.residuals[k] for k in roots], 'residuals')
    np.testing.assert_array_equal(estimate.ranks, [answer.ranks[k] for k in roots])


def compare(robot, sample, contacts):
    estimate = WrenchEstimator(robot, contacts).update(sample)
    assert_same(robot, estimate, brute_force.estimate(robot, sample, contacts))


@pytest.mark.parametrize('seed', range(8))
@pytest.mark.parametrize('name', TEXTS)
def test_imus_anywhere(name, seed, request):
    rng = np.random.default_rng(seed)
    frames = list(read_robot(name, request).frames)
    for _ in range(5):
        robot = read_robot(name, request, imus=any_imus(frames, rng, largest=len(frames)))
        compare(robot, random_sample(robot, rng), any_contacts(frames, rng))


@pytest.mark.parametrize('seed', range(4))
@pytest.mark.parametrize('name', SHARED)
def test_imus_anywhere_on_real_robots(name, seed, request):
    rng = np.random.default_rng(seed)
    frames = list(read_robot(name, request).frames)
    robot = read_robot(name, request, imus=any_imus(frames, rng, largest=6))
    compare(robot, random_sample(robot, rng), any_contacts(frames, rng, largest=20))


@pytest.mark.parametrize('name', ['icub_v2_5', 'icub_sensorised'])
def test_all_the_imus_of_a_real_robot(name, request, rng):
    robot = read_robot(name, request)
    assert len(robot.imus) > 10
    compare(robot, random_sample(robot, rng), one_wrench_each(robot))


@pytest.mark.parametrize('seed', range(8))
@pytest.mark.parametrize('name', TEXTS)
def test_any_link_may_be_fixed(name, seed, request):
    rng = np.random.default_rng(seed)
    frames = list(read_robot(name, request).frames)
    for _ in range(5):
        robot = read_robot(
            name, request, fixed_link=str(rng.choice(frames)), gravity=rng.normal(0.0, 5.0, 3)
        )
        compare(robot, random_sample(robot, rng), any_contacts(frames, rng))


@pytest.mark.parametrize('missing', range(3))
def test_no_contacts_leave_the_sums_as_residuals(missing, request, rng):
    robot = read_robot('humanoid', request, imus=['head', 'shank'])
    contacts = one_wrench_each(robot)
    compare(robot, random_sample(robot, rng), contacts[missing + 1 :])


def test_both_directions_of_a_sensor(request, rng):
    turned = TEXTS['humanoid'].replace('child_to_parent', 'PARENT_TO_CHILD')
    turned = turned.replace('parent_to_child', 'child_to_parent').replace(
        'PARENT_TO_CHILD', 'parent_to_child'
    )
    robot = Robot.from_urdf(TEXTS['humanoid'], imus=['head'])
    opposite = Robot.from_urdf(turned, imus=['head'])
    assert [s.direction for s in robot.ft_sensors] == [-s.direction for s in opposite.ft_sensors]
    sample = random_sample(robot, rng)
    negated = sample._replace(ft_readings=-sample.ft_readings)
    contacts = one_wrench_each(robot)
    compare(opposite, sample, contacts)
    first = WrenchEstimator(robot, contacts).update(sample)
    second = WrenchEstimator(opposite, contacts).update(negated)
    np.testing.assert_array_equal(first.wrenches, second.wrenches)
    np.testing.assert_array_equal(first.torques, second.torques)


def test_a_continuous_joint_may_turn_many_times(request, rng):
    robot = read_robot('arm', request, fixed_link='base')
    sample = random_sample(robot, rng)
    turns = np.where([name == 'shoulder' for name in robot.joint_names], 1000 * 2 * np.pi, 0.0)
    far = sample._replace(positions=sample.positions + turns)
    compare(robot, far, one_wrench_each(robot))
    estimator = WrenchEstimator(robot, one_wrench_each(robot))
    near, gone = estimator.update(sample), estimator.update(far)
    assert_close(gone.torques, near.torques, 'torques')
    assert_close(gone.wrenches, near.wrenches, 'wrenches')


@pytest.mark.parametrize('speed', [0.0, 10.0])
@pytest.mark.parametrize('name', ['two_link', 'humanoid', 'icub_v2_5'])
def test_the_linear_velocity_of_the_base_changes_nothing(name, speed, request):
    """
    Compare with inverse dynamics of the whole robot that moves through the world at that speed.

    Its only contact is at the root, so that the base wrench of the inverse dynamics is the answer.
    """
    rng = np.random.default_rng(5)
    robot = read_robot(
        name, request, ft_sensors=[], imus=['arm' if name == 'two_link' else 'head']
    )
    model = pin.buildModelFromXML(robot.urdf, pin.JointModelFreeFlyer())
    data = model.createData()
    sample = random_sample(robot, rng)
    q, v, a = pin.randomConfiguration(model), np.zeros(model.nv), rng.normal(0.0, 5.0, model.nv)
    q[:7] = [*rng.normal(size=3), 0.5, 0.5, -0.5, 0.5]
    v[:6] = [*(speed * np.array([0.6, -0.64, 0.48])), *rng.normal(size=3)]
    for k, joint in enumerate(robot.joint_names):
        joint = model.joints[model.getJointId(joint)]
        q[joint.idx_q], v[joint.idx_v] = sample.positions[k], sample.velocities[k]
        a[joint.idx_v] = sample.accelerations[k]
    tau = pin.rnea(model, data, q, v, a)
    pin.forwardKinematics(model, data, q, v, a)
    pin.updateFramePlacements(model, data)
    frame, local = model.getFrameId(robot.imus[0].frame), pin.LOCAL
    W_R_S = data.oMf[frame].rotation
    felt = pin.getFrameClassicalAcceleration(model, data, frame, local).linear
    sample = sample._replace(
        angular_velocities=pin.getFrameVelocity(model, data, frame, local).angular[None],
        proper_accelerations=(felt - W_R_S.T @ model.gravity.linear)[None],
        angular_accelerations=pin.getFrameAcceleration(model, data, frame, local).angular[None],
    )
    estimate = WrenchEstimator(robot, [Contact(robot.link_names[0])]).update(sample)
    rows = [model.joints[model.getJointId(joint)].idx_v for joint in robot.joint_names]
    np.testing.assert_allclose(estimate.torques, tau[rows], rtol=0, atol=BASE_VELOCITY)
    np.testing.assert_allclose(estimate.wrenches[0], tau[:6], rtol=0, atol=BASE_VELOCITY)


def test_the_sum_of_external_wrenches_is_the_sum_of_net_wrenches(request, rng):
    """Hold the estimate against (T 4.18) about a point that no equation of the engine uses."""
    robot = read_robot('ergocub_sn001', request, imus=['head', 'r_hand_palm', 'l_foot_front'])
    sample = random_sample(robot, rng)
    contacts = one_wrench_each(robot)
    estimate = WrenchEstimator(robot, contacts).update(sample)
    A_H_B = np.eye(4)
    A_H_B[:3, 3] = [1.0, -2.0, 3.0]
    poses = [
        np.linalg.inv(A_H_B) @ pose for pose in brute_force.link_poses(robot, sample.positions)
    ]
    motions = brute_force.link_motions(robot, sample, range(len(robot.imus)))
    net = brute_force.net_wrenches(robot, motions)
    both = np.zeros((2, 6))
    for pose, wrench in zip(poses, net, strict=True):
        both[0] += brute_force.wrench_transform(pose) @ wrench
    for contact, wrench in zip(contacts, estimate.wrenches, strict=True):
        link, L_H_C = robot.frame(contact.frame)
        both[1] += brute_force.wrench_transform(poses[link] @ L_H_C) @ wrench
    assert_close(both[1], both[0], 'sums')


def test_calibrated_readings(request, rng):
    """The sensors' own wrench is matrix times reading minus offset, whatever their direction."""
    robot = read_robot('humanoid', request, imus=['head'])
    sample = random_sample(robot, rng)
    matrices, offsets = rng.normal(size=(3, 6, 6)), rng.normal(0.0, 20.0, (3, 6))
    contacts = one_wrench_each(robot)
    calibration = FtCalibration(matrices, offsets)
    estimate = WrenchEstimator(robot, contacts, calibration=calibration).update(sample)
    wrenches = np.einsum('kij,kj->ki', matrices, sample.ft_readings) - offsets
    answer = brute_force.estimate(robot, sample._replace(ft_readings=wrenches), contacts)
    assert_same(robot, estimate, answer)
