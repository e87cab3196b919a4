# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
External joint torques J' f about a base that is named [T Remark 3.14].

Not covered: which contacts count for which joint (test_balance.py), the numbers about the default
base (test_newton_euler.py).
"""

import brute_force
import numpy as np
import pytest
from consistent_readings import ConsistentReadings, random_motion
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot

# Relative to the largest torque. Round-off of two estimates.
ROUND_OFF = 1e-10
# Central differences over STEP: truncation and round-off are of this size.
DIFFERENCES = 1e-7
STEP = 1e-5
HUMANOID, ARM = nested_humanoid_urdf(), arm_with_wrist_sensor_urdf()
BASES = ['', 'head', 'sole', 'elbow', 'hip']


def floating(base=''):
    return Robot.from_urdf(HUMANOID, imus=['head', 'shank'], external_torque_base=base)


def contacts_of(robot):
    return [Contact(robot.link_names[submodel.links[-1]]) for submodel in robot.submodels]


def relative_jacobian(robot, positions, base, link):
    """Return what joint velocities do to a link while another one rests, in the link's frame."""

    def pose(q):
        poses = brute_force.link_poses(robot, q)
        return np.linalg.inv(poses[base]) @ poses[link]

    columns = []
    for step in STEP * np.eye(len(positions)):
        rate = (pose(positions + step) - pose(positions - step)) / (2 * STEP)
        twist = np.linalg.inv(pose(positions)) @ rate
        columns.append([*twist[:3, 3], twist[2, 1], twist[0, 2], twist[1, 0]])
    return np.array(columns).T


def total_wrench(robot, positions, estimate, link):
    """Return the sum of all external wrenches in a link's frame."""
    poses = brute_force.link_poses(robot, positions)
    total = np.zeros(6)
    for contact, wrench in zip(estimate.contacts, estimate.wrenches, strict=True):
        k, pose = robot.frame(contact.frame)
        link_H_contact = np.linalg.inv(poses[link]) @ poses[k] @ pose
        total += brute_force.wrench_transform(link_H_contact) @ wrench
    return total


@pytest.mark.parametrize('second', BASES)
@pytest.mark.parametrize('first', BASES)
def test_two_bases_differ_by_the_motion_of_one_relative_to_the_other(first, second, rng):
    """A robot that floats: all external wrenches move along with the base that is not at rest."""
    robots = [floating(first), floating(second)]
    sample = random_sample(robots[0], rng)
    estimates = [WrenchEstimator(r, contacts_of(r)).update(sample) for r in robots]
    bases = [robot.base for robot in robots]
    J = relative_jacobian(robots[0], sample.positions, *bases)
    expected = J.T @ total_wrench(robots[0], sample.positions, estimates[0], bases[1])
    difference = estimates[0].external_torques - estimates[1].external_torques
    size = np.abs(estimates[0].external_torques).max()
    np.testing.assert_allclose(difference, expected, rtol=0, atol=DIFFERENCES * size)
    assert (np.abs(difference).max() > 1.0) == (bases[0] != bases[1])
    for name in ('torques', 'wrenches', 'residuals'):
        np.testing.assert_array_equal(getattr(estimates[0], name), getattr(estimates[1], name))


def test_on_a_fixed_base_they_are_what_the_contacts_take_off_the_joints(rng):
    """Torque without contact minus torque with contact, on one motion; the base may be pushed."""
    robot = Robot.from_urdf(HUMANOID, fixed_link='root')
    readings, motion = ConsistentReadings(robot), random_motion(robot, rng)
    known = {name: rng.normal(0.0, 20.0, 6) for name in ('root', 'shoulder')}
    felt = {name: rng.normal(0.0, 20.0, 6) for name in ('hand', 'shank', 'sole')}
    sample, loaded, _ = readings.sample(motion, {**known, **felt})
    _, free, _ = readings.sample(motion, {})
    contacts = [Contact(name, 'known', wrench=tuple(wrench)) for name, wrench in known.items()]
    contacts += [Contact(name) for name in felt]
    estimate = WrenchEstimator(robot, contacts).update(sample)
    size = np.abs(free - loaded).max()
    np.testing.assert_allclose(
        estimate.external_torques, free - loaded, rtol=0, atol=ROUND_OFF * size
    )


def test_on_a_fixed_base_they_do_not_rest_on_what_holds_it(rng):
    """About another link the wrench that holds the base counts, and whoever estimates it."""
    sample = random_sample(Robot.from_urdf(ARM, fixed_link='base'), rng)

    def torques(base, held):
        robot = Robot.from_urdf(ARM, fixed_link='base', external_torque_base=base)
        holds = Contact('base', 'known', wrench=(held, held, held, 0, held, 0))
        return WrenchEstimator(robot, [holds, Contact('tool')]).update(sample).external_torques

    for base in ('', 'base'):
        np.testing.assert_array_equal(torques(base, 0.0), torques(base, 100.0))
    np.testing.assert_array_equal(torques('', 0.0), torques('base', 0.0))
    assert np.abs(torques('tool', 0.0) - torques('tool', 100.0)).min() > 1.0
