# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Each sensor against what all others say that it should read.

Readings come from the sensor models (test_sensor_models.py has their oracles). Not covered: how
large residuals of noisy sensors are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from consistent_readings import random_motion
from floating_states import random_pose
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.sensor_residuals import sensor_residuals
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.free_floating import FreeFloating
from inertial_estimation.model.representations import Representation
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensor_models import SensorModels
from inertial_estimation.model.sensors import FtCalibration, LinkSensorSpec
from inertial_estimation.sample import SampleBatch

EXACT = 1e-9
"""Of some hundred N, Nm and m/s^2; IMUs at a distance of five joints."""
WRENCHES = {
    'root': np.array([30.0, -20.0, 10.0, 2.0, -1.0, 3.0]),
    'hand': np.array([-5.0, 8.0, 3.0, 0.0, 0.0, 0.0]),
    'sole': np.array([1.0, 2.0, 80.0, 0.0, 0.0, 0.0]),
    'chest': np.array([0.0, 0.0, -25.0, 0.0, 0.0, 0.0]),
}
TOUCHED = ['root', 'hand', 'sole']
N = 3


@pytest.fixture
def humanoid(rng) -> Robot:
    """Return the humanoid with IMUs on four links, one of them at a pose of its own."""
    board = LinkSensorSpec('board', 'hand', random_pose(rng))
    return Robot.from_urdf(nested_humanoid_urdf(), imus=['head', board, 'sole', 'shank'])


def moving(robot: Robot, rng, frames=()) -> SampleBatch:
    """Return exact readings of fast motions of a floating robot under its `WRENCHES` at frames."""
    model, samples = FreeFloating(robot), []
    for _ in range(N):
        motion = random_motion(robot, rng)
        state = model.state(
            motion.positions,
            motion.velocities,
            random_pose(rng),
            rng.normal(0, 1.5, 6),
            representation=Representation.LEFT,
        )
        wrenches = {frame: WRENCHES[frame] for frame in frames}
        samples.append(SensorModels.floating(state, motion.accelerations, wrenches).sample())
    return SampleBatch.stack(samples)


def assert_zero(values) -> None:
    np.testing.assert_allclose(values, 0, rtol=0, atol=EXACT)


def test_exact_readings_leave_nothing(humanoid, rng):
    samples = moving(humanoid, rng, ['root'])
    residuals = sensor_residuals(WrenchEstimator(humanoid), samples, [Contact('root')])
    for values in residuals:
        assert_zero(values)
    assert np.abs(samples.proper_accelerations).max() > 10.0


def test_an_imu_with_an_error(humanoid, rng):
    """It shows with the opposite sign; what is predicted from the IMU deviates as well."""
    samples = moving(humanoid, rng, ['root'])
    rates, linear = samples.angular_velocities.copy(), samples.proper_accelerations.copy()
    error = np.array([0.1, -0.2, 0.3, 4.0, 5.0, -6.0])
    rates[:, 1] += error[:3]
    linear[:, 1] += error[3:]
    wrong = replace(samples, angular_velocities=rates, proper_accelerations=linear)
    found = sensor_residuals(WrenchEstimator(humanoid), wrong, [Contact('root')])
    np.testing.assert_allclose(
        found.angular_velocities[:, 1], np.tile(-error[:3], (N, 1)), rtol=0, atol=EXACT
    )
    np.testing.assert_allclose(
        found.proper_accelerations[:, 1], np.tile(-error[3:], (N, 1)), rtol=0, atol=EXACT
    )
    # The head is predicted from the board, foot and shank are from each other.
    of_head = np.linalg.norm(found.angular_velocities[:, 0], axis=1)
    np.testing.assert_allclose(of_head, np.linalg.norm(error[:3]), rtol=0, atol=EXACT)
    assert_zero(found.angular_velocities[:, 2:])
    assert_zero(found.proper_accelerations[:, 2:])


def test_an_ft_sensor_with_an_offset(humanoid, rng):
    """Only the sensor itself: with one contact no other is predicted from it."""
    samples = moving(humanoid, rng, ['root'])
    offset = np.array([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])
    readings = samples.ft_readings.copy()
    readings[:, 0] += offset
    contacts, wrong = [Contact('root')], replace(samples, ft_readings=readings)
    found = sensor_residuals(WrenchEstimator(humanoid), wrong, contacts).ft_readings
    np.testing.assert_allclose(found[:, 0], np.tile(-offset, (N, 1)), rtol=0, atol=EXACT)
    assert_zero(found[:, 1:])
    offsets = np.zeros((len(humanoid.ft_sensors), 6))
    offsets[0] = offset
    matrices = np.tile(np.eye(6), (len(offsets), 1, 1))
    calibrated = WrenchEstimator(humanoid, calibration=FtCalibration(matrices, offsets))
    assert_zero(sensor_residuals(calibrated, wrong, contacts).ft_readings)


def test_an_ft_sensor_between_two_unknown_wrenches_is_not_predicted(humanoid, rng):
    samples = moving(humanoid, rng, TOUCHED)
    names = [sensor.name for sensor in humanoid.ft_sensors]
    found = sensor_residuals(WrenchEstimator(humanoid), samples, [Contact(f) for f in TOUCHED])
    arm, leg, foot = (names.index(f'{part}_sensor') for part in ('arm', 'leg', 'foot'))
    # Nothing touches the thigh and the shank: what one end of the leg reads, the other must.
    assert np.isnan(found.ft_readings[:, arm]).all()
    assert_zero(found.ft_readings[:, [leg, foot]])
    forces = [Contact('root'), Contact('hand', 'force'), Contact('sole')]
    found = sensor_residuals(WrenchEstimator(humanoid, forces), samples)
    assert np.isnan(found.ft_readings[:, arm]).all()
    known = [Contact('hand', 'known', wrench=tuple(WRENCHES['hand'])), *forces[::2]]
    assert_zero(sensor_residuals(WrenchEstimator(humanoid), samples, known).ft_readings)


def test_a_missing_sensor_takes_what_rests_on_it(humanoid, rng):
    samples = moving(humanoid, rng, ['root', 'sole'])
    readings, rates = samples.ft_readings.copy(), samples.angular_velocities.copy()
    readings[0, 2] = np.nan
    rates[0, 0] = np.nan
    wrong = replace(samples, ft_readings=readings, angular_velocities=rates)
    contacts = [Contact('root'), Contact('sole')]
    found = sensor_residuals(WrenchEstimator(humanoid), wrong, contacts)
    # Without the sensor of the foot nothing tells what passes the one above.
    assert np.isnan(found.ft_readings[0, 1:]).all()
    assert_zero(found.ft_readings[0, 0])
    assert_zero(found.ft_readings[1:])
    # The board was predicted from the head; foot and shank predict each other.
    assert np.isnan(found.angular_velocities[0, :2]).all()
    assert_zero(found.angular_velocities[0, 2:])
    assert_zero(found.angular_velocities[1:])


def test_a_missing_joint_takes_what_lies_across_it(humanoid, rng):
    samples = moving(humanoid, rng, ['root'])
    accelerations = samples.accelerations.copy()
    accelerations[:, humanoid.joint_names.index('neck')] = np.nan
    wrong = replace(samples, accelerations=accelerations)
    found = sensor_residuals(WrenchEstimator(humanoid), wrong, [Contact('root')])
    assert np.isnan(found.proper_accelerations[:, :2]).all()
    assert_zero(found.proper_accelerations[:, 2:])


def test_arrays_are_not_held_against_themselves(rng):
    """The samples bring no angular acceleration then; an exact log would look wrong."""
    places = [(0.1, 0.0, 0.0), (-0.1, 0.0, 0.0), (0.0, 0.1, 0.0)]
    board = []
    for k, place in enumerate(places):
        pose = np.eye(4)
        pose[:3, 3] = place
        board.append(LinkSensorSpec(f'acc{k}', 'chest', pose, 'accelerometer'))
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', *board])
    samples = moving(robot, rng)
    samples.angular_accelerations[:] = 0.0
    residuals = sensor_residuals(WrenchEstimator(robot, acceleration_arrays=True), samples)
    assert np.isnan(residuals.proper_accelerations).all()


@pytest.mark.parametrize('held', ['base', 'tool'])
def test_a_fixed_link_predicts_every_imu(held, rng):
    urdf = arm_with_wrist_sensor_urdf()
    robot = Robot.from_urdf(urdf, fixed_link=held, imus=['base', 'upper', 'tip'])
    motion, model = random_motion(robot, rng), FreeFloating(robot)
    state = model.state(motion.positions, motion.velocities, base=held)
    equations = state.equations(held, Representation.MIXED)
    acceleration = np.concatenate([np.zeros(6), motion.accelerations])
    sample = SensorModels(state, equations, acceleration).sample()
    samples = SampleBatch.stack([sample])
    found = sensor_residuals(WrenchEstimator(robot), samples, [Contact(held)])
    for values in found:
        assert_zero(values)
    assert np.abs(samples.angular_velocities).max() > 1.0
