# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Momentum against wrenches: exact motion agrees, wrong accelerations do not.

Motions are sines whose derivatives are exact; what the base does follows from its wrenches, or is
what an IMU reads. Not covered: how well real filters do (docs/modelling.md has figures of the
simulated robot).
"""

from typing import NamedTuple

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.momentum_check import (
    PERIOD_NS,
    MomentumCheck,
    MomentumReport,
    is_doubtful,
)
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample

START_NS = 1_700_000_000_000_000_000
SECONDS = 3.0
OMEGA = 2.0 * np.pi * 0.7  # fastest frequency of the motion [rad/s]
TRAPEZOIDS = 5e-3
"""Part of the change of momentum: (frequency step)^2 / 12 for products of three such sines."""
LATE = 0.02  # s, as a clock or a filter may be late


class Motion(NamedTuple):
    """Sines of joints and IMUs: amplitude, frequency and phase of each signal."""

    robot: Robot
    joints: np.ndarray
    rates: np.ndarray
    proper: np.ndarray
    fts: np.ndarray

    @classmethod
    def random(cls, robot, rng):
        def waves(scale, *shape):
            limits = ((0.5 * scale, scale), (0.4 * OMEGA, OMEGA), (-np.pi, np.pi))
            return np.stack([rng.uniform(*limit, shape) for limit in limits])

        imus, joints, fts = len(robot.imus), len(robot.joint_names), len(robot.ft_sensors)
        signals = (0.6, joints), (1.0, imus, 3), (8.0, imus, 3), (30.0, fts, 6)
        return cls(robot, *(waves(*signal) for signal in signals))

    def sample(self, time):
        """Return exact readings at a time [s]."""

        def derivatives(waves):
            amplitude, frequency, phase = waves
            angle = frequency * time + phase
            return [amplitude * frequency**k * np.sin(angle + k * np.pi / 2) for k in range(3)]

        w, dw, _ = derivatives(self.rates)
        proper, fts = derivatives(self.proper)[0], derivatives(self.fts)[0]
        stamp = START_NS + round(1e9 * time)
        return Sample(stamp, *derivatives(self.joints), w, proper, dw, fts)


ROBOTS = {
    'floating': (nested_humanoid_urdf(), {'imus': ['head']}, ['root', 'hand', 'sole']),
    'fixed': (arm_with_wrist_sensor_urdf(), {'fixed_link': 'lower'}, ['lower', 'tip']),
}


@pytest.fixture(params=list(ROBOTS))
def case(request, rng):
    urdf, options, frames = ROBOTS[request.param]
    motion = Motion.random(Robot.from_urdf(urdf, **options), rng)
    return motion, [Contact(frame) for frame in frames]


def check(motion, contacts, change=None, *, robot=None, rate=100):
    """Return the report of some seconds; samples go through ``change(sample, time)`` first."""
    used = robot or motion.robot
    estimator, momentum = WrenchEstimator(used, contacts), MomentumCheck(used)
    for time in np.arange(round(SECONDS * rate)) / rate:
        sample = motion.sample(time)
        sample = change(sample, time) if change else sample
        momentum.add(sample, estimator.update(sample))
    return momentum.report()


def test_exact_derivatives_agree(case):
    motion, contacts = case
    report = check(motion, contacts)
    assert report.windows == 5
    assert (report.change > [2.0, 0.2]).all()
    assert (report.unexplained < TRAPEZOIDS * report.change.max()).all()
    # Samples in between are passed over.
    seldom = check(motion, contacts, rate=50)
    np.testing.assert_array_equal(seldom.unexplained, report.unexplained)


def test_doubtful_is_what_neither_noise_nor_a_good_filter_leaves():
    def doubtful(windows, unexplained, change, noise=1.0):
        report = MomentumReport(windows, np.array([unexplained, 0.0]), np.array([change, 1.0]))
        return is_doubtful(report, np.array([noise, 1.0]))

    assert doubtful(4, 5.0, 8.0)
    for given in ((3, 5.0, 8.0), (4, 5.0, 30.0), (4, 3.9, 8.0), (4, 5.0, 8.0, 2.0)):
        assert not doubtful(*given)
    assert not doubtful(4, 5.0, 8.0, np.nan)


def test_late_accelerations_show(case):
    motion, contacts = case

    def late(sample, time):
        before = motion.sample(time - LATE)
        return sample._replace(
            accelerations=before.accelerations, angular_accelerations=before.angular_accelerations
        )

    right, wrong = check(motion, contacts), check(motion, contacts, late)
    assert (wrong.unexplained > 10.0 * right.unexplained).all()
    assert (wrong.unexplained > 0.4 * OMEGA * LATE * wrong.change).all()


def test_noise_leaves_the_predicted_deviation(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    estimator, gyroscope, encoder = WrenchEstimator(robot, [Contact('root')]), 3e-3, 5e-3
    at_rest = Motion.random(robot, rng).sample(0.0)
    n, found = len(robot.joint_names), []
    for _ in range(4):
        momentum = MomentumCheck(robot)
        for k in range(round(10.1e9 / PERIOD_NS)):
            sample = at_rest._replace(
                stamp_ns=START_NS + k * PERIOD_NS,
                velocities=encoder * rng.normal(size=n),
                accelerations=np.zeros(n),
                angular_velocities=gyroscope * rng.normal(size=(1, 3)),
                angular_accelerations=np.zeros((1, 3)),
            )
            momentum.add(sample, estimator.update(sample))
        found.append(momentum.report().unexplained)
        assert momentum.report().windows == 20
    predicted = momentum.deviation(gyroscope, np.full(n, encoder))
    # Accelerations without noise: only the momentum at both ends is uncertain.
    expected = predicted / np.sqrt(2.0)
    np.testing.assert_allclose(np.sqrt(np.mean(np.square(found), axis=0)), expected, rtol=0.2)


def test_missing_imu_or_joint_stops_the_window(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'shank'])
    motion, estimator = Motion.random(robot, rng), WrenchEstimator(robot, [Contact('root')])

    # The momentum does not need accelerations, but the wrenches do. Without an FT sensor two
    # submodels merge, and their sum is as good.
    for field, windows in (
        ('', 3), ('angular_velocities', 0), ('positions', 0), ('accelerations', 0),
        ('ft_readings', 3),
    ):  # fmt: skip
        momentum = MomentumCheck(robot)
        for k in range(100):
            sample = motion.sample(k * 1e-9 * PERIOD_NS)
            if field and k % 20 == 19:
                getattr(sample, field)[0] = np.nan
            momentum.add(sample, estimator.update(sample))
        assert momentum.report().windows == windows, field
