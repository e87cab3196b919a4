# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Gravity at an FT sensor from an IMU anywhere on the robot, and what spoils a reading.

The oracle is Pinocchio's forward kinematics of the URDF. Not covered: what becomes of readings, in
`test_collection`.
"""

import numpy as np
import pinocchio as pin
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample

from inertial_estimation.calibration.body_readings import (
    FIXED_LINK,
    MAX_JOINT_CHANGE,
    BodyReadings,
)
from inertial_estimation.calibration.collection import CONTACT, JOINTS
from inertial_estimation.errors import ModelError, NameNotFound
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.model.robot import Robot

GRAVITY = np.array([0.3, -0.4, -9.79])
ROUND_OFF = 1e-12


def humanoid(*imus, **more):
    return Robot.from_urdf(nested_humanoid_urdf(), imus=list(imus), **more)


def at_rest(robot, rng, **more):
    """Return a sample of a robot at rest, and gravity at each FT sensor, shape (n_fts, 3)."""
    model = pin.buildModelFromXML(robot.urdf, pin.JointModelFreeFlyer())
    data = model.createData()
    sample = random_sample(robot, rng)
    q = pin.neutral(model)
    if not robot.fixed_frame:
        q[3:7] = rng.normal(size=4)
        q[3:7] /= np.linalg.norm(q[3:7])
    for name, position in zip(robot.joint_names, sample.positions, strict=True):
        joint = model.joints[model.getJointId(name)]
        turn = [np.cos(position), np.sin(position)] if joint.nq == 2 else [position]
        q[joint.idx_q : joint.idx_q + joint.nq] = turn
    pin.framesForwardKinematics(model, data, q)

    def rotation(link, L_H_S):
        return data.oMf[model.getFrameId(robot.link_names[link])].rotation @ L_H_S[:3, :3]

    imus = [rotation(imu.link, imu.L_H_S) for imu in robot.imus]
    fts = [rotation(ft.child, ft.child_H_sensor) for ft in robot.ft_sensors]
    still = sample._replace(
        proper_accelerations=np.array([-GRAVITY @ R for R in imus]).reshape(-1, 3),
        angular_velocities=np.array([np.ones(3) @ R for R in imus]).reshape(-1, 3),
        **more,
    )
    return still, np.array([GRAVITY @ R for R in fts]), np.array([np.ones(3) @ R for R in fts])


@pytest.mark.parametrize('imu', ['head', 'foot', 'thigh'])
def test_gravity_comes_through_the_joints(rng, imu):
    robot = humanoid('head', 'foot', 'thigh')
    for k, sensor in enumerate(robot.ft_sensors):
        readings = BodyReadings(robot, sensor.name, imu)
        assert readings.gravity.startswith(f"IMU '{imu}'")
        for _ in range(3):
            sample, gravity, turning = at_rest(robot, rng)
            readings.begin()
            found = readings.reading(sample)
            assert found.stamp_ns == sample.stamp_ns and found.disturbance == ''
            np.testing.assert_array_equal(found.raw, sample.ft_readings[k])
            np.testing.assert_allclose(found.acceleration, -gravity[k], atol=ROUND_OFF)
            # All joints at rest: the IMU turns as the body does.
            np.testing.assert_allclose(found.turning, turning[k], atol=ROUND_OFF)


def test_gravity_comes_from_the_fixed_link(rng):
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base', gravity=GRAVITY)
    readings = BodyReadings(robot, 'wrist_sensor')
    sample, gravity, _ = at_rest(robot, rng)
    found = readings.reading(sample)
    np.testing.assert_allclose(found.acceleration, -gravity[0], atol=ROUND_OFF)
    assert found.turning is None
    assert readings.gravity == "the fixed 'base' through 3 joints"


def test_an_imu_counts_before_the_fixed_link_unless_told_otherwise():
    urdf = arm_with_wrist_sensor_urdf()
    robot = Robot.from_urdf(urdf, fixed_link='base', imus=['tip'])
    assert BodyReadings(robot, 'wrist_sensor').gravity == "IMU 'tip'"
    assert 'base' in BodyReadings(robot, 'wrist_sensor', FIXED_LINK).gravity


def test_only_joints_on_the_way_need_a_position(rng):
    robot = humanoid('head')
    sample, gravity, _ = at_rest(robot, rng)
    off = robot.joint_names.index('elbow')
    sample.positions[off] = np.nan
    leg = BodyReadings(robot, 'leg_sensor').reading(sample)
    np.testing.assert_allclose(leg.acceleration, -gravity[1], atol=ROUND_OFF)
    sample.positions[robot.joint_names.index('neck')] = np.nan
    assert np.isnan(BodyReadings(robot, 'leg_sensor').reading(sample).acceleration).all()


def test_contacts_beyond_the_sensor_spoil_a_reading(rng):
    robot = humanoid('head')
    sample, *_ = at_rest(robot, rng)
    readings = BodyReadings(robot, 'leg_sensor')
    for frame, said in (('thigh', CONTACT), ('sole', CONTACT), ('hip', ''), ('hand', '')):
        assert readings.reading(sample, [Contact(frame)]).disturbance == said


def test_joints_beyond_the_sensor_must_stay(rng):
    robot = humanoid('head')
    sample, *_ = at_rest(robot, rng)
    readings = BodyReadings(robot, 'leg_sensor')
    assert readings.reading(sample).disturbance == ''
    for name, by, said in (
        ('knee', 2 * MAX_JOINT_CHANGE, JOINTS), ('knee', -3 * MAX_JOINT_CHANGE, JOINTS),
        ('knee', 0.9 * MAX_JOINT_CHANGE, ''),
        ('hip_joint', 1.0, ''), ('neck', 1.0, ''), ('knee', np.nan, ''),
    ):  # fmt: skip
        positions = sample.positions.copy()
        positions[robot.joint_names.index(name)] += by
        assert readings.reading(sample._replace(positions=positions)).disturbance == said
    sample.positions[robot.joint_names.index('knee')] += 1.0
    assert readings.reading(sample).disturbance == JOINTS
    readings.begin()
    assert readings.reading(sample).disturbance == ''


def test_what_cannot_be_is_refused():
    with pytest.raises(NameNotFound):
        BodyReadings(humanoid('head'), 'leg')
    with pytest.raises(NameNotFound):
        BodyReadings(humanoid('head'), 'leg_sensor', 'foot')
    with pytest.raises(NameNotFound):
        BodyReadings(humanoid('head'), 'leg_sensor', FIXED_LINK)
    with pytest.raises(ModelError):
        BodyReadings(humanoid(), 'leg_sensor')
