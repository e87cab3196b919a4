# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Momentum against wrenches, sensor models, and IMUs against their prediction from the fixed link.

Motions are sines whose derivatives are exact, or states whose readings follow from their wrenches.
Not covered: how well real filters do (docs/modelling.md has figures of the simulated robot), how
large residuals of noisy sensors are; offsets are no part of the models.
"""

from typing import NamedTuple

import numpy as np
import pytest
from consistent_readings import ConsistentReadings, random_motion
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.fault_equations import predicted_imus
from inertial_estimation.estimation.momentum_check import PERIOD_NS, MomentumCheck
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.free_floating import FreeFloatingModel
from inertial_estimation.model.representations import Representation
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensor_models import floating_acceleration, sensor_readings
from inertial_estimation.sample import Sample, SampleBatch

# Momentum


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


def test_exact_derivatives_agree_and_late_ones_show(case):
    motion, contacts = case

    def late(sample, time):
        before = motion.sample(time - LATE)
        return sample._replace(
            accelerations=before.accelerations, angular_accelerations=before.angular_accelerations
        )

    right, wrong = check(motion, contacts), check(motion, contacts, late)
    assert right.windows == 5
    assert (right.change > [2.0, 0.2]).all()
    assert (right.unexplained < TRAPEZOIDS * right.change.max()).all()
    assert (wrong.unexplained > 10.0 * right.unexplained).all()
    assert (wrong.unexplained > 0.4 * OMEGA * LATE * wrong.change).all()
    # Samples in between are passed over.
    seldom = check(motion, contacts, rate=50)
    np.testing.assert_array_equal(seldom.unexplained, right.unexplained)


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


# Sensor models


LEFT, MIXED = Representation.LEFT, Representation.MIXED
READINGS = 1e-10  # of some hundred N, Nm and m/s^2
FIELDS = ('angular_velocities', 'proper_accelerations', 'angular_accelerations', 'ft_readings')
EXACT = 1e-9  # of some hundred N, Nm and m/s^2; IMUs at a distance of five joints
WRENCH = np.array([30.0, -20.0, 10.0, 2.0, -1.0, 3.0])


def assert_same_readings(ours, theirs):
    for field in FIELDS:
        got, expected = getattr(ours, field), getattr(theirs, field)
        np.testing.assert_allclose(got, expected, rtol=0, atol=READINGS, err_msg=field)


def test_floating_robot_against_pinocchio(rng):
    """IMUs on several links, FT sensors of both directions; other variables change nothing."""
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'hand', 'sole'])
    motion = random_motion(robot, rng)
    wrenches = {'hand': WRENCH, 'sole': -2 * WRENCH}
    theirs, _, _ = ConsistentReadings(robot).sample(motion, wrenches)
    v = np.append(np.zeros(3), motion.rate)
    state = FreeFloatingModel(robot).state(
        motion.positions, motion.velocities, None, v, representation=LEFT
    )
    acceleration = floating_acceleration(state, motion.accelerations, wrenches)
    root, mixed = state.equations('', LEFT), state.equations('sole', MIXED)
    for variables in (root, mixed):
        given = variables.acceleration_from(root, acceleration)
        ours, reaction = sensor_readings(state, variables, given, wrenches)
        assert_same_readings(ours, theirs)
        np.testing.assert_allclose(reaction, 0, rtol=0, atol=READINGS)


@pytest.mark.parametrize('held', ['base', 'tool'])
def test_fixed_robot_is_held_by_its_reaction_and_predicts_its_imus(held, rng):
    """Held on either side of the FT sensor; one joint is continuous."""
    imus = ['base', 'upper', 'slider', 'tip']
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link=held, imus=imus)
    motion = random_motion(robot, rng)
    state = FreeFloatingModel(robot).state(motion.positions, motion.velocities, base=held)
    accelerations = np.concatenate([np.zeros(6), motion.accelerations])
    given = state, state.equations(held, MIXED), accelerations
    ours, reaction = sensor_readings(*given)
    whole, left = sensor_readings(*given, {held: reaction})
    np.testing.assert_allclose(left, 0, rtol=0, atol=READINGS)
    assert_same_readings(whole, ours)
    samples = SampleBatch.stack([ours])
    for got, wanted in zip(
        predicted_imus(robot, samples),
        (samples.angular_velocities, samples.proper_accelerations),
        strict=True,
    ):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=EXACT)
    if held == 'base':
        theirs, _, expected = ConsistentReadings(robot).sample(motion, {})
        assert_same_readings(ours, theirs)
        np.testing.assert_allclose(reaction, expected, rtol=0, atol=READINGS)
