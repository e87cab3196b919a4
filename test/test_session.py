# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Calibration sessions: still poses, instructions, and the offset in the end.

The oracle of gravity at a sensor is Pinocchio's forward kinematics of the URDF. Not covered: keys
and topics, in `ros/test_calibration_session`.
"""

from argparse import Namespace

import numpy as np
import pytest
from consistent_readings import ConsistentReadings, random_motion
from hanging_body import GRAVITY, MATRIX, NOISE, OFFSET, counts, wrenches
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample

from inertial_estimation.calibration.calibration_file import SensorCalibration, read
from inertial_estimation.calibration.in_situ_offset import MOVING, NOT_FINITE
from inertial_estimation.calibration.session import (
    CONTACT,
    DIRECTIONS,
    JOINTS,
    KEPT,
    MAX_JOINT_CHANGE,
    NAMES,
    PAUSES,
    SETTLING,
    BodyReadings,
    Reading,
    Session,
)
from inertial_estimation.cli.calibrate_body import _finish_offset as finish_offset
from inertial_estimation.errors import CalibrationError, ModelError, NameNotFound
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.findings import Level
from inertial_estimation.model.robot import Robot

RATE = 100
"""[Hz]"""
STEP_NS = 1_000_000_000 // RATE
AROUND = np.tile(GRAVITY * DIRECTIONS, (2, 1))
"""Gravity in all 26 directions, twice [m/s^2]."""
WORKSHOP = SensorCalibration(1.02 * MATRIX)
DOWN = np.array([0.0, 0.0, -GRAVITY])
POSE = 21
"""Readings of a pose: 0.2 s and the one at its start."""


class TurnedBody:
    """A body with a sensor and an accelerometer."""

    def __init__(self, rng):
        self.rng = rng
        self.stamp_ns = 1_000_000_000
        self.touch = np.zeros(6)

    def still(self, gravity, n, **more):
        """Yield readings of a body at rest."""
        for _ in range(n):
            self.stamp_ns += STEP_NS
            wrench = wrenches(gravity[None])[0] + self.touch
            raw = counts((wrench + NOISE * self.rng.normal(size=6))[None])[0]
            acceleration = -gravity + 0.02 * self.rng.normal(size=3)
            turning = 0.005 * self.rng.normal(size=3)
            yield Reading(self.stamp_ns, raw, acceleration, turning, **more)

    def moving(self, n=20):
        """Yield readings of a body that is turned fast."""
        for _ in range(n):
            self.stamp_ns += STEP_NS
            raw = counts(100.0 * self.rng.normal(size=(1, 6)))[0]
            yield Reading(self.stamp_ns, raw, 15.0 * np.eye(3)[0], np.ones(3))

    def go_through(self, take, poses=AROUND, seconds=0.8):
        """Go from pose to pose, and let each reading be taken."""
        for gravity in poses:
            for reading in (*self.moving(), *self.still(gravity, round(seconds * RATE))):
                take(reading)


@pytest.fixture
def body(rng):
    return TurnedBody(rng)


def states(session, readings):
    """Return the use of each reading."""
    return [session.update(one) or session.state for one in readings]


def test_motion_is_left_out_until_the_body_has_settled(body):
    found = Session()
    states(found, body.still(DOWN, 60))
    (pose,) = found.poses
    np.testing.assert_allclose(pose[6:], -DOWN, atol=5 * 0.02 / np.sqrt(POSE))
    assert set(states(found, body.moving())) == {MOVING}
    # The first reading after the motion is one step after its end.
    assert states(found, body.still(DOWN, 29 + POSE - 1)) == 29 * [SETTLING] + (POSE - 1) * [KEPT]
    assert len(found.poses) == 1
    states(found, body.still(DOWN, 1))
    assert len(found.poses) == 2
    one = next(body.still(DOWN, 1))
    one.raw[0] = np.nan
    assert states(found, [one]) == [NOT_FINITE]
    # Neither a gap nor a clock that is set back is part of a pose.
    for step in (10**9, -(10**10)):
        body.stamp_ns += step
        assert states(found, body.still(DOWN, 30)) == 30 * [SETTLING]
    assert len(found.poses) == 2
    # A slow tilt is seen without a gyroscope.
    found = Session()
    for angle in 0.5 * np.arange(200) / RATE:
        gravity = GRAVITY * np.array([np.sin(angle), 0.0, -np.cos(angle)])
        found.update(next(body.still(gravity, 1))._replace(turning=None))
    assert not found.poses


def test_following_the_suggestions_gives_an_offset_without_touched_poses(body):
    found, gravity, reached = Session(WORKSHOP.matrix), DOWN, []
    assert found.suggestions() and found.lacking
    while found.lacking and len(reached) < 20:
        body.go_through(found.update, [gravity], 1.3)
        reached.append(gravity / GRAVITY)
        asked = DIRECTIONS[NAMES.index(found.suggestions()[0])]
        # Near to one that was reached, and new.
        assert not found.lacking or 0.49 < (reached @ asked).max() < 0.9
        gravity = GRAVITY * asked
    assert not found.lacking and found.offset.kept.all()
    offset, deviations = found.offset.in_wrench(WORKSHOP.matrix)
    assert np.abs((offset - 1.02 * OFFSET) / deviations).max() < 5.0
    # 3 N on a body of 2.9 kg, which is then let go.
    body.touch = np.array([3.0, 0.0, 0.0, 0.0, 0.3, 0.0])
    body.go_through(found.update, AROUND[:5])
    assert not found.offset.kept[-5:].any() and found.offset.kept[:-10].all()
    assert 'touched' in found.instruction()
    body.touch = np.zeros(6)
    body.go_through(found.update, AROUND[:1])
    assert found.offset.kept[-1]


def test_touches_in_half_of_the_poses_do_not_complete_a_session(body, rng, tmp_path):
    found = Session(WORKSHOP.matrix)
    for k, gravity in enumerate(AROUND):
        body.touch = (k % 2) * rng.normal(0.0, [5.0] * 3 + [0.5] * 3)
        body.go_through(found.update, [gravity])
    errors = found.offset.findings(WORKSHOP.matrix, '')
    assert 'disturbed' in {one.code for one in errors if one.level == Level.ERROR}
    assert found.lacking
    # Ended by hand, it is not written unless that is insisted on.
    chosen = Namespace(out=tmp_path / 'foot.yaml', accept=False, json=None, calibration=None,
                       robot_name='', ft='foot', temperature=np.nan)  # fmt: skip
    with pytest.raises(CalibrationError):
        finish_offset(chosen, found.offset, WORKSHOP, '2026-11-25', {})
    assert not chosen.out.exists()
    chosen.accept = True
    finish_offset(chosen, found.offset, WORKSHOP, '2026-11-25', {})
    assert 'accepted' in str(read(chosen.out)[1]['foot'].provenance[-1].notes)


def test_contacts_and_dead_channels_are_reported(body):
    found = Session()
    states(found, body.still(DOWN, 100, touched=True))
    assert found.instruction() == PAUSES[CONTACT]

    def without_channel(reading):
        reading.raw[1] = 3.0
        found.update(reading)

    body.go_through(without_channel)
    assert 'channel 2 (fy)' in found.instruction() and found.offset is None


# ---- Gravity at an FT sensor from an IMU anywhere on a robot -----------------------------------

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
    fixed = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base', gravity=G)
    floating = humanoid('head', 'foot', 'thigh')
    for robot, imus in ((floating, ('head', 'foot', 'thigh')), (fixed, ('',))):
        for k, sensor in enumerate(robot.ft_sensors):
            for imu in imus:
                sample, gravity, turning = at_rest(robot, rng)
                readings = BodyReadings(robot, sensor.name, imu)
                assert f"'{imu or 'base'}'" in readings.gravity
                found = readings.reading(sample)
                assert found.stamp_ns == sample.stamp_ns and not found.touched
                np.testing.assert_array_equal(found.raw, sample.ft_readings[k])
                np.testing.assert_allclose(found.acceleration, -gravity[k], atol=ROUND_OFF)
                if imu:
                    np.testing.assert_allclose(found.turning, turning[k], atol=ROUND_OFF)
    for robot, imu, error in (
        (humanoid('head'), 'hed', NameNotFound), (humanoid(), '', ModelError)
    ):  # fmt: skip
        with pytest.raises(error):
            BodyReadings(robot, 'leg_sensor', imu)


def test_contacts_and_joints_beyond_the_sensor_disturb(rng):
    robot = humanoid('head')
    sample, *_ = at_rest(robot, rng)
    sample = sample._replace(angular_velocities=np.zeros((1, 3)))
    readings, found = BodyReadings(robot, 'leg_sensor'), Session()

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
    # A new session begins with other positions.
    found = Session()
    assert use() == SETTLING
