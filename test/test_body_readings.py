# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Gravity at an FT sensor from an IMU anywhere on a robot.

The oracle is Pinocchio's forward kinematics of the URDF.
"""

import numpy as np
import pytest
from consistent_readings import ConsistentReadings, random_motion
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample

from inertial_estimation.calibration.raw_readings import NOT_FINITE
from inertial_estimation.calibration.session import (
    CONTACT,
    JOINTS,
    MAX_JOINT_CHANGE,
    SETTLING,
    BodyReadings,
    Collection,
)
from inertial_estimation.errors import ModelError, NameNotFound
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.model.robot import Robot

G = np.array([0.3, -0.4, -9.79])
ROUND_OFF = 1e-12


def humanoid(*imus, **more):
    return Robot.from_urdf(nested_humanoid_urdf(), imus=list(imus), **more)


def at_rest(robot, rng):
    """Return a sample of a robot at rest; gravity and turning at FT sensors, (n_fts, 3)."""
    source, motion = ConsistentReadings(robot), random_motion(robot, rng)

    def rotation(link, L_H_S):
        return source.pose(motion, robot.link_names[link])[:3, :3] @ L_H_S[:3, :3]

    imus = [rotation(imu.link, imu.L_H_S) for imu in robot.imus]
    fts = [rotation(ft.child, ft.child_H_sensor) for ft in robot.ft_sensors]
    still = random_sample(robot, rng)._replace(
        positions=motion.positions,
        proper_accelerations=np.array([-G @ R for R in imus]).reshape(-1, 3),
        angular_velocities=np.array([np.ones(3) @ R for R in imus]).reshape(-1, 3),
    )
    return still, np.array([G @ R for R in fts]), np.array([np.ones(3) @ R for R in fts])


def test_gravity_through_the_joints(rng):
    robot = humanoid('head', 'foot', 'thigh')
    for k, sensor in enumerate(robot.ft_sensors):
        for imu in ('head', 'foot', 'thigh'):
            sample, gravity, turning = at_rest(robot, rng)
            readings = BodyReadings(robot, sensor.name, imu)
            assert readings.gravity.startswith(f"IMU '{imu}'")
            found = readings.reading(sample)
            assert found.stamp_ns == sample.stamp_ns and not found.touched
            np.testing.assert_array_equal(found.raw, sample.ft_readings[k])
            np.testing.assert_allclose(found.acceleration, -gravity[k], atol=ROUND_OFF)
            np.testing.assert_allclose(found.turning, turning[k], atol=ROUND_OFF)


def test_gravity_from_the_fixed_link(rng):
    urdf = arm_with_wrist_sensor_urdf()
    robot = Robot.from_urdf(urdf, fixed_link='base', gravity=G)
    readings = BodyReadings(robot, 'wrist_sensor')
    sample, gravity, _ = at_rest(robot, rng)
    found = readings.reading(sample)
    np.testing.assert_allclose(found.acceleration, -gravity[0], atol=ROUND_OFF)
    assert found.turning is None and 'base' in readings.gravity
    with pytest.raises(NameNotFound):
        BodyReadings(humanoid('head'), 'leg_sensor', 'hed')
    with pytest.raises(ModelError):
        BodyReadings(humanoid(), 'leg_sensor')


def test_contacts_and_joints_beyond_the_sensor_disturb(rng):
    robot = humanoid('head')
    sample, *_ = at_rest(robot, rng)
    sample = sample._replace(angular_velocities=np.zeros((1, 3)))
    readings, found = BodyReadings(robot, 'leg_sensor'), Collection()

    def use(changed=sample, contacts=()):
        found.update(readings.reading(changed, contacts))
        return found.state

    for frame, why in ('thigh', CONTACT), ('sole', CONTACT), ('hip', SETTLING), ('hand', SETTLING):
        assert use(contacts=[Contact(frame)]) == why
    for name, by, why in (
        ('knee', -2 * MAX_JOINT_CHANGE, JOINTS), ('knee', 0.9 * MAX_JOINT_CHANGE, SETTLING),
        ('hip_joint', 1.0, SETTLING), ('knee', np.nan, SETTLING),
        ('hip_joint', np.nan, NOT_FINITE),
    ):  # fmt: skip
        positions = sample.positions.copy()
        positions[robot.joint_names.index(name)] += by
        assert use(sample._replace(positions=positions)) == why, (name, by)
    sample.positions[robot.joint_names.index('knee')] += 1.0
    assert use() == JOINTS
    # A new data set begins with other positions.
    found = Collection()
    assert use() == SETTLING
