# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Standard deviations: against numerical derivatives of the estimator, and by Monte Carlo.

Not covered: noise that is not white, errors of models and offsets, and how filters lag; a timing
of one evaluation.
"""

from dataclasses import fields

import numpy as np
import pytest
from robots import (
    arm_with_wrist_sensor_urdf,
    nested_humanoid_urdf,
    random_sample,
    two_link_urdf,
)

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.filtered_noise import (
    filter_weights,
    imu_covariance,
    joint_covariance,
)
from inertial_estimation.estimation.savitzky_golay import SavitzkyGolayFilter
from inertial_estimation.estimation.sensor_noise import NoiseModel, triangular_root
from inertial_estimation.estimation.uncertainty import Uncertainty
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.sample import SampleBatch

# Relative to the largest derivative by readings of a kind: five points, third order of the step.
DERIVATIVE = 1e-6
STEP = 1e-3
STENCIL = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))
# Two standard deviations hold 95.45 % of a normal distribution. Of 5000 draws within two lie
# 95.45 +- 0.3 %; what bends the results adds to it.
DRAWS = 5000
COVERAGE = (0.93, 0.97)
ROUND_OFF = 1e-9

SQUEEZE = (
    Contact('hand', 'force', point=(0.0, 0.1, -0.2)),
    Contact('upper_arm', 'force', point=(0.05, 0.0, 0.1)),
)
KNOWN = Contact('shoulder', 'known', wrench=(30.0, -20.0, 10.0, 1.0, 2.0, -3.0))
HUMANOID_CONTACTS = {
    'wrenches': tuple(Contact(name) for name in ('root', 'upper_arm', 'thigh', 'foot')),
    'wrenches elsewhere': tuple(Contact(name) for name in ('head', 'hand', 'shank', 'sole')),
    'free': (),
    'forces': (
        Contact('chest', 'force', point=(0.1, 0.0, 0.2)),
        Contact('hand', 'force', point=(0.0, 0.1, -0.2)),
        Contact('shank', 'axial_force', point=(0.1, 0.0, 0.0), direction=(1.0, 2.0, 0.5)),
        Contact('foot'),
    ),
    'squeeze': (Contact('chest'), *SQUEEZE, Contact('foot')),
    'two wrenches': (Contact('hand'), Contact('upper_arm'), Contact('hip')),
    'known': (
        KNOWN,
        Contact('head'),
        *SQUEEZE[:1],
        Contact('thigh', 'known', wrench=KNOWN.wrench),
    ),
    'known beside forces': (KNOWN, Contact('head', 'force'), Contact('hip', 'axial_force')),
}
ROBOTS = {
    'two_link': (two_link_urdf(), {'imus': ['arm']}),
    'arm': (arm_with_wrist_sensor_urdf(), {'fixed_link': 'lower'}),
    'humanoid': (nested_humanoid_urdf(), {'imus': ['head']}),
    'several imus': (nested_humanoid_urdf(), {'imus': ['head', 'hip', 'shank', 'thigh']}),
    'fixed humanoid': (nested_humanoid_urdf(), {'fixed_link': 'foot'}),
}


def make(name):
    text, options = ROBOTS[name]
    return Robot.from_urdf(text, **options)


def at_roots(robot):
    return tuple(Contact(submodel.name) for submodel in robot.submodels)


def usual_noise(robot):
    """Return the noise of a good robot: encoders filtered over 0.1 s at 500 Hz."""
    weights = filter_weights(SavitzkyGolayFilter(1, 0.1, 3), 500.0)
    return NoiseModel.uniform(
        robot,
        joint=joint_covariance(1e-5, weights),
        imu=imu_covariance(2e-3, 0.02, weights),
        ft=np.array([0.3, 0.3, 0.5, 0.02, 0.02, 0.01]),
    )


def unit_noise(robot):
    return NoiseModel.uniform(robot, joint=np.eye(3), imu=np.eye(3), ft=np.ones(6))


JOINT_FIELDS = ('positions', 'velocities', 'accelerations')
IMU_FIELDS = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')


def derivative(estimator, sample, name, contacts):
    """Return the derivatives of all results by all entries of a field, one row each."""
    size = getattr(sample, name).size
    steps = STEP * np.concatenate([k * np.eye(size) for k, _ in STENCIL])
    n = len(steps)
    columns = {
        field.name: None if (v := getattr(sample, field.name)) is None else np.stack([v] * n)
        for field in fields(SampleBatch)
    }
    columns[name] = columns[name] + steps.reshape(columns[name].shape)
    estimate = estimator.batch(SampleBatch(**columns), contacts)
    weights = np.array([weight for _, weight in STENCIL]) / STEP
    results = [
        getattr(estimate, kind).reshape(len(STENCIL), size, -1)
        for kind in ('wrenches', 'residuals', 'torques', 'external_torques')
    ]
    return [np.tensordot(weights, result, 1).T for result in results]


def analytic(robot, estimator, sample, contacts):
    """Return the same by the code under test, for every field."""
    uncertainty = Uncertainty(estimator, unit_noise(robot))
    found = uncertainty.disturbances(sample, contacts)
    n = len(robot.joint_names)
    blocks = dict(zip(JOINT_FIELDS, np.moveaxis(found.motion[:, :n], 2, 0)))
    imus = estimator.update(sample, contacts).used_imus
    for name, block in zip(IMU_FIELDS, np.moveaxis(found.motion[:, n:], 2, 0)):
        full = np.zeros((len(block), len(imus), 3))
        full[:, imus] = block.reshape(len(block), -1, 3)
        blocks[name] = full.reshape(len(block), -1)
    fts = found.fts.swapaxes(0, 1)
    blocks['ft_readings'] = fts.reshape(len(fts), -1)
    return blocks


def with_residual(robot, contacts):
    """Return the submodels that no full wrench has to itself."""
    rows = []
    for row, submodel in enumerate(robot.submodels):
        unknowns = [
            c.unknowns
            for c in contacts
            if robot.frame(c.frame)[0] in submodel.links and c.unknowns
        ]
        if unknowns != [6]:
            rows.append(row)
    return rows


def check_derivatives(robot, sample, contacts, **options):
    estimator = WrenchEstimator(robot, contacts, **options)
    for name, block in analytic(robot, estimator, sample, None).items():
        if not block.shape[1]:
            continue
        wrenches, residuals, *torques = derivative(estimator, sample, name, None)
        residuals = residuals.reshape(-1, 6, residuals.shape[-1])[with_residual(robot, contacts)]
        rows = np.concatenate([wrenches, *residuals, *torques])
        tolerance = DERIVATIVE * max(1.0, np.abs(rows).max(initial=0.0))
        np.testing.assert_allclose(block, rows, rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize('name', ROBOTS)
def test_derivatives_with_a_full_wrench_in_each_submodel(name, rng):
    robot = make(name)
    for _ in range(3):
        check_derivatives(robot, random_sample(robot, rng), at_roots(robot))


@pytest.mark.parametrize('kind', HUMANOID_CONTACTS)
@pytest.mark.parametrize('name', ['humanoid', 'several imus', 'fixed humanoid'])
def test_derivatives_with_other_contacts(name, kind, rng):
    robot = make(name)
    for _ in range(2):
        check_derivatives(robot, random_sample(robot, rng), HUMANOID_CONTACTS[kind])


@pytest.mark.parametrize('name', ['humanoid', 'several imus'])
def test_derivatives_of_a_combination_that_hardly_shows(name, rng):
    """It is left at zero, and how its directions turn into those that are kept counts."""
    robot = make(name)
    near = Contact('hand', 'force', point=(0.0, 0.1, -0.2), name='near')
    beside = Contact('hand', 'force', point=(0.0, 0.1, -0.2004), name='beside')
    for contacts in ((near, beside), (near, beside, Contact('upper_arm', 'axial_force'))):
        estimator = WrenchEstimator(robot, contacts)
        sample = random_sample(robot, rng)
        assert estimator.update(sample).ranks[1] < sum(contact.unknowns for contact in contacts)
        check_derivatives(robot, sample, contacts)


def test_derivatives_with_a_calibration_and_another_length(rng):
    robot = make('humanoid')
    matrices = np.eye(6) + rng.normal(0.0, 0.1, (3, 6, 6))
    calibration = FtCalibration(matrices, rng.normal(0.0, 5.0, (3, 6)))
    for kind in ('wrenches', 'squeeze'):
        check_derivatives(
            robot,
            random_sample(robot, rng),
            HUMANOID_CONTACTS[kind],
            calibration=calibration,
            length_scale=0.03,
        )


def draws(sample, noise, n, rng):
    """Return samples that err from one by random noise."""
    columns = {
        field.name: None if (v := getattr(sample, field.name)) is None else np.stack([v] * n)
        for field in fields(SampleBatch)
    }
    joints = triangular_root(noise.joints)
    errors = np.einsum('jik,nkj->inj', joints, rng.normal(size=(n, 3, len(joints))))
    for name, error in zip(JOINT_FIELDS, errors):
        columns[name] = columns[name] + error
    imus = triangular_root(noise.imus)
    errors = np.einsum('jik,nkjx->injx', imus, rng.normal(size=(n, 3, len(imus), 3)))
    for name, error in zip(IMU_FIELDS, errors):
        columns[name] = columns[name] + error
    columns['ft_readings'] = columns['ft_readings'] + noise.fts * rng.normal(
        size=columns['ft_readings'].shape
    )
    return SampleBatch(**columns)


KINDS = ('wrenches', 'torques', 'external_torques', 'residuals')


def coverages(robot, contacts, sample, noise, rng, **options):
    """Return for each kind how often the noise moves a result by less than two deviations."""
    estimator = WrenchEstimator(robot, contacts, **options)
    deviations = Uncertainty(estimator, noise).of(sample)
    exact = estimator.update(sample)
    noisy = estimator.batch(draws(sample, noise, DRAWS, rng))
    for kind in KINDS:
        deviation = getattr(deviations, kind)
        error = getattr(noisy, kind) - getattr(exact, kind)
        np.testing.assert_array_equal(np.isnan(deviation), np.isnan(getattr(exact, kind)))
        sure = np.isfinite(deviation) & (deviation > ROUND_OFF)
        still = deviation <= ROUND_OFF
        assert np.abs(error[:, still]).max(initial=0.0) < ROUND_OFF * 1e3, kind
        within = (np.abs(error[:, sure]) < 2.0 * deviation[sure]).mean(axis=0)
        yield kind, within


def check_coverage(robot, contacts, sample, noise, rng, **options):
    counted = 0
    for kind, within in coverages(robot, contacts, sample, noise, rng, **options):
        counted += len(within)
        assert (within > COVERAGE[0]).all(), kind
        assert (within < COVERAGE[1]).all(), kind
    assert counted


@pytest.mark.parametrize('name', ROBOTS)
def test_coverage_with_a_full_wrench_in_each_submodel(name, rng):
    robot = make(name)
    for _ in range(2):
        check_coverage(robot, at_roots(robot), random_sample(robot, rng), usual_noise(robot), rng)


@pytest.mark.parametrize('kind', HUMANOID_CONTACTS)
def test_coverage_with_other_contacts(kind, rng):
    robot = make('humanoid')
    sample = random_sample(robot, rng)
    check_coverage(robot, HUMANOID_CONTACTS[kind], sample, usual_noise(robot), rng)
