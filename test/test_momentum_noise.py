# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which noise the check of momentum is judged by, and when it casts doubt.

Not covered: what noise does to the momentum (test_momentum_check.py), the filters
(test_stream_noise.py), the words of diagnostics and replays (test/ros/test_momentum_task.py,
test_replay_checks.py).
"""

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.momentum_check import (
    LEAST_WINDOWS,
    MomentumCheck,
    MomentumReport,
    is_doubtful,
)
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.signals.stream import StreamRates
from inertial_estimation.uncertainty.momentum_noise import MomentumNoise

DRIVER = {'velocity_source': 'message', 'joint_velocity_noise': 0.02}
ENOUGH = MomentumReport(LEAST_WINDOWS, np.array([1.0, 0.1]), np.array([2.0, 1.0]))


def settings_of(**given):
    return EstimatorSettings.from_dict({'imus': ['head', 'shank'], **given})


@pytest.fixture
def robot():
    return Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'shank'])


def rates_of(robot, *, without=()):
    joints = np.where(np.isin(robot.joint_names, without), np.nan, 100.0)
    return StreamRates(joints, np.full(len(robot.imus), 100.0), np.empty(0))


def checked(robot, *samples):
    check, estimator = MomentumCheck(robot), WrenchEstimator(robot, [Contact('root')])
    for k, sample in enumerate(samples):
        sample = sample._replace(stamp_ns=10**9 + k * 20_000_000)
        check.add(sample, estimator.update(sample))
    return check


def without_imus(sample, *rows):
    rates = sample.angular_velocities.copy()
    rates[list(rows)] = np.nan
    return sample._replace(angular_velocities=rates)


def test_an_assumed_joint_has_no_noise_and_needs_no_rate(robot):
    settings = settings_of(assumed_joints=['neck'], assumed_positions=[0.1], **DRIVER)
    noise, rates = MomentumNoise(settings, robot), rates_of(robot, without=['neck'])
    wanted = np.where(np.isin(robot.joint_names, ['neck']), 0.0, 0.02)
    np.testing.assert_array_equal(noise.velocities(rates), wanted)


def test_joints_without_a_rate_have_no_noise_stated(robot):
    noise = MomentumNoise(settings_of(), robot)
    rates = rates_of(robot, without=['neck', 'knee'])
    missing = np.isnan(noise.velocities(rates))
    names = [name for name in robot.joint_names if name in ('neck', 'knee')]
    assert np.array(robot.joint_names)[missing].tolist() == names
    assert np.isnan(noise.velocities(None)).all()


def test_a_window_that_adapts_has_no_noise_stated(robot):
    settings = settings_of(derivative_filter='adaptive_window')
    assert np.isnan(MomentumNoise(settings, robot).velocities(rates_of(robot))).all()


def test_the_gyroscope_that_told_last_counts(robot, rng):
    sample = random_sample(robot, rng)
    noise = MomentumNoise(settings_of(**{'imu.shank.gyroscope_noise': 0.5}, **DRIVER), robot)
    rates = rates_of(robot)
    velocities = noise.velocities(rates)
    for failed, imu, gyroscope in (((), 'head', 0.003), ((0,), 'shank', 0.5)):
        check = checked(robot, without_imus(sample, *failed))
        assert check.imu == imu
        wanted = check.deviation(gyroscope, velocities)
        np.testing.assert_array_equal(noise.deviation(check, rates), wanted)
        # An instant that says nothing leaves what was said.
        silent = checked(robot, without_imus(sample, *failed), without_imus(sample, 0, 1))
        assert silent.imu == imu
        np.testing.assert_array_equal(noise.deviation(silent, rates), wanted)
    assert checked(robot).imu == ''


def test_a_fixed_robot_has_no_gyroscope(rng):
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='lower')
    check = MomentumCheck(robot)
    sample = random_sample(robot, rng)
    check.add(sample, WrenchEstimator(robot, [Contact('lower')]).update(sample))
    assert check.imu == ''
    settings = EstimatorSettings.from_dict({'fixed_link': 'lower', **DRIVER})
    assert np.isfinite(MomentumNoise(settings, robot).deviation(check, rates_of(robot))).all()


def test_noise_motion_and_windows_must_all_be_exceeded():
    small = np.array([0.2, 0.2])
    assert is_doubtful(ENOUGH, small)
    assert not is_doubtful(ENOUGH, 2.0 * small)
    assert not is_doubtful(ENOUGH, np.full(2, np.nan))
    assert not is_doubtful(ENOUGH._replace(windows=LEAST_WINDOWS - 1), small)
    assert not is_doubtful(ENOUGH._replace(change=np.array([5.0, 1.0])), small)
