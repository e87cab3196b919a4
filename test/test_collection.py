# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Still poses of a body that is turned, and gravity at an FT sensor from an IMU anywhere on a robot.

The oracle of gravity is Pinocchio's forward kinematics of the URDF.
"""

import numpy as np
import pinocchio as pin
import pytest
from hanging_body import GRAVITY
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample
from turned_body import AROUND, RATE, TurnedBody

from inertial_estimation.calibration.accelerometer import MOVING, NOT_FINITE, TOUCHED
from inertial_estimation.calibration.body_readings import (
    FIXED_LINK,
    MAX_JOINT_CHANGE,
    BodyReadings,
)
from inertial_estimation.calibration.collection import (
    CONTACT,
    DIRECTIONS,
    JOINTS,
    KEPT,
    NAMES,
    SETTLING,
    WAITING,
    Collection,
)
from inertial_estimation.errors import ModelError, NameNotFound
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.model.robot import Robot

DOWN = np.array([0.0, 0.0, -GRAVITY])
POSE = 21
"""Readings of a pose: 0.2 s and the one at its start."""
G = np.array([0.3, -0.4, -9.79])
ROUND_OFF = 1e-12


@pytest.fixture
def body(rng):
    return TurnedBody(rng)


def check_sums(found):
    """Check that each reading is kept, left out for one reason, or pending."""
    assert sum(found.counts().values()) + found.pending == found.received


def test_motion_is_left_out_until_the_body_has_settled(body):
    found = Collection()
    body.hold(found, DOWN, 0.3)
    assert found.pending == 30 - POSE and found.poses[0].n_readings == POSE
    np.testing.assert_allclose(found.poses[0].acceleration, -DOWN, atol=5 * 0.02 / np.sqrt(POSE))
    assert set(body.turn(found)) == {MOVING} and not found.pending
    states = body.hold(found, DOWN, 1.0)
    # The first reading after the motion is one step after its end.
    assert states[:29] == 29 * [SETTLING] and set(states[29:]) == {KEPT, WAITING}
    assert found.counts()[MOVING] == 20 + 30 - POSE
    assert set(body.hold(found, DOWN, 0.5, disturbance='asked')) == {'asked'} == {found.state}
    one = next(body.readings(DOWN, 1))
    one[1][0] = np.nan
    assert found.update(*one) == NOT_FINITE
    check_sums(found)


def test_slow_tilt_is_seen_without_a_gyroscope(body):
    found, states = Collection(), []
    for angle in 0.5 * np.arange(200) / RATE:
        gravity = GRAVITY * np.array([np.sin(angle), 0.0, -np.cos(angle)])
        stamp, raw, a, _ = next(body.readings(gravity, 1))
        states.append(found.update(stamp, raw, a))
    assert MOVING in states and KEPT not in states


def test_touched_poses_are_rejected(body):
    found = Collection()
    body.go_through(found, AROUND[:26])
    # 3 N on a body of 2.9 kg, which is then let go.
    body.touch = np.array([3.0, 0.0, 0.0, 0.0, 0.3, 0.0])
    body.go_through(found, AROUND[:5])
    assert found.rejected[-1] == TOUCHED
    body.touch = np.zeros(6)
    body.go_through(found, AROUND[:5])
    rejected = [one.n_readings for one, why in zip(found.poses, found.rejected) if why]
    assert found.rejected[-1] == '' and found.counts()[TOUCHED] == sum(rejected) > 0
    check_sums(found)


def test_following_the_suggestions_is_enough(body):
    found, gravity = Collection(), DOWN
    empty = found.coverage()
    assert not empty.is_enough and empty.missing == NAMES and empty.orientations is None
    for _ in range(26):
        body.hold(found, gravity, 1.3)
        body.turn(found)
        seen = found.coverage()
        if seen.is_enough:
            break
        asked = DIRECTIONS[NAMES.index(seen.suggestions[0])]
        # Near to one that was reached.
        assert (DIRECTIONS[seen.counts > 0] @ asked).max() > 0.49
        gravity = GRAVITY * asked
    assert seen.is_enough and sum(seen.counts > 0) < 20


def humanoid(*imus, **more):
    return Robot.from_urdf(nested_humanoid_urdf(), imus=list(imus), **more)


def at_rest(robot, rng):
    """Return a sample of a robot at rest; gravity and turning at FT sensors, (n_fts, 3)."""
    model = pin.buildModelFromXML(robot.urdf, pin.JointModelFreeFlyer())
    data, q = model.createData(), pin.neutral(model)
    sample = random_sample(robot, rng)
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
        proper_accelerations=np.array([-G @ R for R in imus]).reshape(-1, 3),
        angular_velocities=np.array([np.ones(3) @ R for R in imus]).reshape(-1, 3),
    )
    return still, np.array([G @ R for R in fts]), np.array([np.ones(3) @ R for R in fts])


@pytest.mark.parametrize('imu', ['head', 'foot', 'thigh'])
def test_gravity_through_the_joints(rng, imu):
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
            np.testing.assert_allclose(found.turning, turning[k], atol=ROUND_OFF)


def test_gravity_from_the_fixed_link(rng):
    urdf = arm_with_wrist_sensor_urdf()
    robot = Robot.from_urdf(urdf, fixed_link='base', gravity=G)
    readings = BodyReadings(robot, 'wrist_sensor')
    sample, gravity, _ = at_rest(robot, rng)
    found = readings.reading(sample)
    np.testing.assert_allclose(found.acceleration, -gravity[0], atol=ROUND_OFF)
    assert found.turning is None and 'base' in readings.gravity
    both = Robot.from_urdf(urdf, fixed_link='base', imus=['tip'])
    assert 'tip' in BodyReadings(both, 'wrist_sensor').gravity
    assert 'base' in BodyReadings(both, 'wrist_sensor', FIXED_LINK).gravity


def test_contacts_and_joints_beyond_the_sensor_disturb(rng):
    robot = humanoid('head')
    sample, *_ = at_rest(robot, rng)
    readings = BodyReadings(robot, 'leg_sensor')
    for frame, why in (('thigh', CONTACT), ('sole', CONTACT), ('hip', ''), ('hand', '')):
        assert readings.reading(sample, [Contact(frame)]).disturbance == why
    for name, by, why in (
        ('knee', -2 * MAX_JOINT_CHANGE, JOINTS), ('knee', 0.9 * MAX_JOINT_CHANGE, ''),
        ('hip_joint', 1.0, ''), ('knee', np.nan, ''),
    ):  # fmt: skip
        positions = sample.positions.copy()
        positions[robot.joint_names.index(name)] += by
        assert readings.reading(sample._replace(positions=positions)).disturbance == why
    sample.positions[robot.joint_names.index('knee')] += 1.0
    assert readings.reading(sample).disturbance == JOINTS
    readings.begin()
    assert readings.reading(sample).disturbance == ''


def test_unknown_sensors_and_unknown_gravity_are_refused():
    for names in (('leg',), ('leg_sensor', 'foot'), ('leg_sensor', FIXED_LINK)):
        with pytest.raises(NameNotFound):
            BodyReadings(humanoid('head'), *names)
    with pytest.raises(ModelError):
        BodyReadings(humanoid(), 'leg_sensor')
