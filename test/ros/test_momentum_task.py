# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What the diagnostics say of the momentum, with the filters of the node and the noise of the demo.

Not covered: the physics of the check (test/test_momentum_check.py).
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, START_NS, BenchRobot, figure
from inertial_estimation.ros.momentum import MomentumWatch, momentum_task
from robots import nested_humanoid_urdf

from inertial_estimation.config import EstimatorSettings, ImuSettings
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.momentum_check import MomentumReport
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.diagnostics import OK, WARN
from inertial_estimation.signals.assembler import SampleAssembler

RATE = 100
OMEGA = 2.0 * np.pi * 0.8
"""Of all joints and the IMU [rad/s]."""
NOISE = np.array([0.2, 0.05])
"""N, Nm."""


def report(unexplained, change):
    return MomentumReport(10, np.array(unexplained), np.array(change))


def watched(rng, *, late=0.0, moves=1.0, seconds=4.0, silent=(), **settings):
    """Return the task after some seconds of noise; velocities may be late, joints silent."""
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    chosen = EstimatorSettings(imus=('head',), derivative_window=0.12, **settings)
    fts = [sensor.name for sensor in robot.ft_sensors]
    assembler = SampleAssembler(robot.joint_names, fts, ['head'], chosen)
    estimator = WrenchEstimator(robot, [Contact(name) for name in ('root', 'hand', 'foot')])
    watch = MomentumWatch(robot, chosen, assembler)
    n = len(robot.joint_names)
    told = [joint not in silent for joint in robot.joint_names]
    names = [joint for joint in robot.joint_names if joint not in silent]
    phases, axes = rng.uniform(-np.pi, np.pi, n), rng.normal(size=(2, 3))
    for k in range(round(seconds * RATE)):
        time, stamp = k / RATE, START_NS + k * 10**9 // RATE
        angles, now = OMEGA * time + phases, np.sin(OMEGA * time)
        rate = moves * now * axes[0] + 3e-3 * rng.normal(size=3)
        for row in range(len(fts)):
            assembler.push_ft(row, stamp, rng.normal(size=6))
        assembler.push_imu(0, stamp, rate, np.array([0, 0, 9.81]) + moves * now * axes[1])
        sample = assembler.push_joints(
            0,
            stamp,
            names,
            (0.5 * moves * np.sin(angles) + 1e-4 * rng.normal(size=n))[told],
            (0.5 * moves * OMEGA * np.cos(angles - OMEGA * late))[told],
            np.empty(0),
        )
        if sample is not None:
            watch.add(sample, estimator.update(sample))
    return watch.task()


def test_right_filters_are_well(rng):
    for source in ('filter', 'message'):
        task = watched(rng, velocity_source=source)
        assert (task.level, task.message) == (OK, 'changes as the wrenches say')
        assert float(task.values['rate of linear momentum [N]']) > 5.0
        assert int(task.values['windows']) >= 6


def test_late_velocities_of_a_driver_are_warned_of(rng):
    task = watched(rng, velocity_source='message', late=0.08)
    assert task.level == WARN
    assert 'velocity_source' in task.message
    assert task.complaint == ('momentum', 'accelerations are not those of the velocities')


def test_neglected_accelerations_are_warned_of(rng):
    assert watched(rng, angular_acceleration_source='zero').level == WARN


def test_a_robot_at_rest_is_well(rng):
    task = watched(rng, moves=0.0)
    assert (task.level, task.message) == (OK, 'hardly changes')
    assert float(task.values['noise of the force [N]']) > 0.01


def test_noise_and_motion_must_both_be_exceeded():
    wrong = report([1.0, 0.0], [2.0, 1.0])
    assert momentum_task(wrong, NOISE).level == WARN
    assert momentum_task(wrong, 2 * NOISE).level == OK
    assert momentum_task(report([1.0, 0.0], [5.0, 1.0]), NOISE).level == OK
    assert momentum_task(report([0.0, 0.3], [5.0, 1.0]), NOISE).level == WARN
    unknown = momentum_task(wrong, np.full(2, np.nan))
    assert (unknown.level, unknown.message[:10]) == (OK, 'not judged')


def test_an_assumed_joint_has_no_noise_and_hides_no_error(rng):
    assumed = {'silent': ['neck'], 'assumed_joints': ('neck',), 'assumed_positions': (0.0,)}
    well = watched(rng, **assumed)
    assert (well.level, well.message) == (OK, 'changes as the wrenches say')
    wrong = watched(rng, velocity_source='message', late=0.08, **assumed)
    assert wrong.level == WARN


def test_the_noise_is_that_of_the_imu_it_looks_at(rng):
    quiet, loud = (
        watched(rng, moves=0.0, imu={'head': ImuSettings(gyroscope_noise=noise)})
        for noise in (0.003, 0.3)
    )
    force = 'noise of the force [N]'
    assert float(loud.values[force]) > 10.0 * float(quiet.values[force])
    other = watched(rng, moves=0.0, derivative_gyroscope_noise=0.3)
    # Both robots are seen at rest; what noise does to their positions is beyond the figures.
    assert float(other.values[force]) == pytest.approx(float(quiet.values[force]), rel=0.01)


def test_a_filter_without_a_noise_says_so(rng):
    task = watched(rng, derivative_filter='adaptive_window')
    assert task.level == OK
    assert task.message.startswith('not judged: ')
    assert task.message.endswith('adaptive_window, whose noise cannot be stated')


def test_it_is_on_the_topic(context, rng):
    robot = BenchRobot(context, HUMANOID | {'autostart': True})
    try:
        wrenches = robot.listen_to_wrenches()
        robot.listen_to_diagnostics()
        robot.send_all(START_NS, rng)
        robot.wait_for_stamp(wrenches, START_NS)
        status = robot.status('momentum')
        assert status.message.startswith('not told yet')
        assert figure(status, 'windows') == '0'
    finally:
        robot.close()
