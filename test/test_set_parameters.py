# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertial parameters that change between two estimates.

The oracle is an estimator that was made with the new ones. Not covered: how long it takes; topics,
services and diagnostics (test/ros/test_model_updates.py).
"""

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample, two_link_urdf
from test_sensor_checks import SECONDS, TRAPEZOIDS, check
from test_sensor_checks import case as case

from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.model_update import STEP_NS, ModelInUse
from inertial_estimation.estimation.momentum_check import MomentumCheck
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.parameter_update import (
    ParameterUpdate,
    calibration_fingerprint,
    fingerprint,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.signals.savitzky_golay import SavitzkyGolayFilter
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.sensor_noise import (
    NoiseModel,
    filter_weights,
    imu_covariance,
    joint_covariance,
)

NS = 1_000_000_000
# Round-off of the numbers of one estimate, relative to the largest.
ROUND_OFF = 1e-12


HUMANOID_CONTACTS = {
    'wrenches': tuple(Contact(name) for name in ('root', 'upper_arm', 'thigh', 'foot')),
    'free': (),
    'squeeze': (
        Contact('chest'),
        Contact('hand', 'force', point=(0.0, 0.1, -0.2)),
        Contact('upper_arm', 'force', point=(0.05, 0.0, 0.1)),
        Contact('foot'),
    ),
    'two wrenches': (Contact('hand'), Contact('upper_arm'), Contact('hip')),
    'kinds': (
        Contact('shoulder', 'known', wrench=(30.0, -20.0, 10.0, 1.0, 2.0, -3.0)),
        Contact('head', 'force', point=(0.1, 0.0, 0.2)),
        Contact('shank', 'axial_force', point=(0.1, 0.0, 0.0), direction=(1.0, 2.0, 0.5)),
        Contact('foot'),
        Contact('sole', 'known', wrench=(3.0, -2.0, 1.0, 0.1, 0.2, -0.3)),
    ),
}
ROBOTS = {
    'two_link': (two_link_urdf(), {'imus': ['arm']}),
    'arm': (arm_with_wrist_sensor_urdf(), {'fixed_link': 'lower', 'imus': ['tip']}),  # it is idle
    'humanoid': (nested_humanoid_urdf(), {'imus': ['head']}),
    'several imus': (nested_humanoid_urdf(), {'imus': ['head', 'hip', 'shank', 'thigh']}),
    'fixed humanoid': (nested_humanoid_urdf(), {'fixed_link': 'foot'}),
}


def make(name):
    """Return one of the robots."""
    text, options = ROBOTS[name]
    return Robot.from_urdf(text, **options)


def usual_noise(robot):
    """Return the noise of a good robot: encoders filtered over 0.1 s at 500 Hz."""
    weights = filter_weights(SavitzkyGolayFilter(1, 0.1), 500.0)
    return NoiseModel.uniform(
        robot,
        joint=joint_covariance(1e-5, weights),
        imu=imu_covariance(2e-3, 0.02, weights),
        ft=np.array([0.3, 0.3, 0.5, 0.02, 0.02, 0.01]),
    )


def others(robot, rng, scale=0.3):
    """Return other physically consistent parameters: links scaled, with a point mass added."""
    parameters = robot.parameters * rng.uniform(1.0 - scale, 1.0 + scale, (len(robot.links), 1))
    for row in parameters:
        arm, mass = rng.normal(0.0, 0.05, 3), rng.uniform(0.05, 0.2)
        xx, yy, zz = mass * (arm @ arm - arm**2)
        xy, xz, yz = -mass * arm[[0, 0, 1]] * arm[[1, 2, 2]]
        row += [mass, *(mass * arm), xx, xy, yy, xz, yz, zz]
    assert (consistency_margin(parameters) > 0.0).all()
    return parameters


def faulty_samples(robot, rng):
    """Yield samples in which nothing, each sensor, and a joint is missing."""
    yield random_sample(robot, rng)
    for names, count in (
        (['ft_readings'], len(robot.ft_sensors)),
        (['angular_velocities', 'proper_accelerations'], len(robot.imus)),
        (['positions'], 1),
    ):
        for k in range(count):
            sample = random_sample(robot, rng)
            for name in names:
                getattr(sample, name)[k] = np.nan
            yield sample


def assert_same(found, expected):
    """Compare every field of two estimates, or of two results that are tuples."""
    for name, one, other in zip(found._fields, found, expected):
        if name != 'contacts':
            np.testing.assert_array_equal(one, other, err_msg=name)


@pytest.mark.parametrize('has_contacts', [False, True])
@pytest.mark.parametrize('name', ['arm', 'several imus'])
def test_estimates_are_those_of_a_new_estimator(name, has_contacts, rng):
    """So is what depends on the estimator."""
    robot = make(name)
    contacts = [Contact(s.name) for s in robot.submodels] if has_contacts else []
    estimator, noise = WrenchEstimator(robot, contacts), usual_noise(robot)
    uncertainty, inside = Uncertainty(estimator, noise), InternalWrenches(estimator)
    samples, joints = list(faulty_samples(robot, rng)), robot.joint_names
    first = samples[0]
    uncertainty.of(first), inside.net(first, estimator.update(first))
    # Half of the models are there before the change, half of them are made after it.
    for sample in samples[::2]:
        estimator.update(sample)
    for parameters in (others(robot, rng), others(robot, rng), robot.parameters):
        estimator.set_parameters(parameters)
        fresh = WrenchEstimator(robot.with_parameters(parameters), contacts)
        np.testing.assert_array_equal(estimator.robot.parameters, parameters)
        for sample in samples:
            assert_same(estimator.update(sample), fresh.update(sample))
        batch = SampleBatch.stack(samples)
        assert_same(estimator.batch(batch), fresh.batch(batch))
        assert_same(uncertainty.of(first), Uncertainty(fresh, noise).of(first))
        given, wanted = (first, fresh.update(first)), InternalWrenches(fresh)
        np.testing.assert_array_equal(inside.net(*given), wanted.net(*given))
        np.testing.assert_array_equal(inside.of(*given, joints), wanted.of(*given, joints))


def test_momentum_check_goes_on(case, rng):
    """Changes within windows, and from sample to sample, are no missing wrenches."""
    motion, contacts = case
    robot, rate, times = motion.robot, 100, np.arange(1.0, 1.6, 0.01)
    estimator, momentum = WrenchEstimator(robot, contacts), MomentumCheck(robot)
    sets = [others(robot, rng) for _ in times]
    for k in range(round(SECONDS * rate)):
        for time, parameters in zip(times, sets):
            if round(time * rate) == k:
                estimator.set_parameters(parameters)
                momentum.set_parameters(parameters)
        sample = motion.sample(k / rate)
        momentum.add(sample, estimator.update(sample))
    report = momentum.report()
    assert report.windows == check(motion, contacts).windows
    assert (report.unexplained < TRAPEZOIDS * report.change.max()).all()
    assert np.array_equal(estimator.robot.parameters, sets[-1])


@pytest.mark.parametrize('period', [3_000_000, 25_000_000])
def test_torques_change_by_the_share_of_a_step(period, rng):
    """The bound of a step: its part of the blend time, times all that the change explains."""
    robot = make('humanoid')
    estimator = WrenchEstimator(robot, HUMANOID_CONTACTS['wrenches'])
    model, sample = ModelInUse(estimator, 0.5), random_sample(robot, rng)
    before, goal = estimator.update(sample), others(robot, rng, 0.9)
    after = WrenchEstimator(robot.with_parameters(goal), estimator.contacts).update(sample)
    assert model.offer(ParameterUpdate(goal))
    last, steps, changes = before, 0, 0
    # Cycles end steps.
    longest = -(-STEP_NS // period) * period
    while model.progress < 1.0:
        stamp = sample.stamp_ns + steps * period
        model.step(stamp)
        estimate = estimator.update(sample._replace(stamp_ns=stamp))
        for name in ('torques', 'wrenches'):
            total = np.abs(getattr(after, name) - getattr(before, name))
            change = np.abs(getattr(estimate, name) - getattr(last, name))
            share = total * longest / 0.5e9
            assert (change <= share + ROUND_OFF * np.abs(getattr(after, name)).max()).all()
        assert (consistency_margin(estimator.robot.parameters) > 0.0).all()
        changes += not np.array_equal(estimate.torques, last.torques)
        last, steps = estimate, steps + 1
    assert steps == -(-500_000_000 // period) + 1
    assert changes == -(-500_000_000 // longest)
    np.testing.assert_array_equal(estimate.torques, after.torques)


def test_update_during_a_change_starts_from_the_blend(rng):
    robot = make('humanoid')
    estimator = WrenchEstimator(robot)
    model, (one, two) = ModelInUse(estimator, 1.0), (others(robot, rng) for _ in range(2))
    model.offer(ParameterUpdate(one))
    model.step(0)
    model.step(NS // 2)
    between = 0.5 * (robot.parameters + one)
    np.testing.assert_allclose(estimator.robot.parameters, between, rtol=ROUND_OFF)
    model.offer(ParameterUpdate(two))
    # In the middle time is set back.
    for stamp in (NS, NS + NS // 4, 0, NS // 4):
        model.step(stamp)
    np.testing.assert_allclose(estimator.robot.parameters, 0.5 * (between + two), rtol=1e-10)
    model.finish()
    np.testing.assert_array_equal(estimator.robot.parameters, two)


@pytest.fixture
def calibrated(rng):
    """Return an estimator with offsets, and offsets that go with an update."""
    robot = make('humanoid')
    n = len(robot.ft_sensors)
    calibration = FtCalibration.identity(n).with_offsets(rng.normal(size=(n, 6)))
    return WrenchEstimator(robot, calibration=calibration), rng.normal(size=(n, 6))


@pytest.mark.parametrize('first', ['offsets', 'parameters'])
def test_offsets_of_an_update_are_blended_with_it(calibrated, rng, first):
    estimator, on_top = calibrated
    robot, calibration, announced = estimator.robot, estimator.calibration, []
    model = ModelInUse(estimator, 1.0, subtracted=lambda: announced.append(estimator.calibration))
    goal = others(robot, rng)
    offered = fingerprint(goal), calibration_fingerprint(calibration), on_top
    if first == 'offsets':
        model.offer_offsets(*offered)
    model.offer(ParameterUpdate(goal))
    if first == 'parameters':
        model.offer_offsets(*offered)
    np.testing.assert_array_equal(model.offsets, on_top)
    model.step(0)
    model.step(NS // 4)
    expected = calibration.offsets + 0.25 * on_top
    np.testing.assert_allclose(estimator.calibration.offsets, expected, atol=ROUND_OFF)
    expected = robot.parameters + 0.25 * (goal - robot.parameters)
    np.testing.assert_allclose(estimator.robot.parameters, expected, atol=ROUND_OFF)
    assert not announced
    model.step(NS)
    (then,) = announced
    np.testing.assert_array_equal(then.offsets, calibration.offsets + on_top)
    # As if it had been made with both.
    sample = random_sample(robot, rng)
    made = WrenchEstimator(robot.with_parameters(goal), calibration=then)
    np.testing.assert_array_equal(estimator.update(sample).wrenches, made.update(sample).wrenches)
    # Going back undoes both, and an update without offsets has none.
    for leave in (model.revert, lambda: model.offer(ParameterUpdate(others(robot, rng)))):
        model.release()
        model.offer(ParameterUpdate(goal))
        model.finish()
        assert not np.array_equal(estimator.calibration.offsets, calibration.offsets)
        leave()
        model.finish()
        np.testing.assert_array_equal(estimator.calibration.offsets, calibration.offsets)


@pytest.mark.parametrize('held', [False, True])
def test_tare_replaces_offsets_of_an_update(calibrated, rng, held):
    estimator, on_top = calibrated
    robot, calibration = estimator.robot, estimator.calibration
    model, goal = ModelInUse(estimator, 1.0), others(robot, rng)
    if held:
        model.hold()
    model.offer_offsets(fingerprint(goal), calibration_fingerprint(calibration), on_top)
    model.offer(ParameterUpdate(goal))
    model.step(0)
    model.step(NS // 2)
    # Of one sensor, in the middle of the change.
    offsets = calibration.offsets.copy()
    offsets[1] = 7.0
    tared = calibration.with_offsets(offsets)
    model.set_calibration(tared)
    np.testing.assert_array_equal(estimator.calibration.offsets[1], offsets[1])
    model.release()
    model.finish()
    expected = offsets + np.where(np.arange(len(offsets))[:, None] == 1, 0.0, on_top)
    np.testing.assert_array_equal(estimator.calibration.offsets, expected)
    # Offsets from before the tare come too late, whichever message is first.
    late = others(robot, rng)
    of = fingerprint(late)
    model.offer_offsets(of, calibration_fingerprint(calibration), on_top)
    with pytest.raises(ModelError):
        model.offer(ParameterUpdate(late))
    assert model.goal is goal
    model.offer_offsets(of, calibration_fingerprint(tared), on_top)
    assert model.offer(ParameterUpdate(late))
    model.offer_offsets(of, calibration_fingerprint(calibration), 2.0 * on_top)
    np.testing.assert_array_equal(model.offsets, on_top)
