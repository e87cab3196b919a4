# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Derivatives of all results by all readings: against numerical ones of the estimator.

Not covered: deviations that follow from them (test_uncertainty.py).
"""

from itertools import product

import numpy as np
import pytest
from noisy_robots import HUMANOID_CONTACTS, ROBOTS, make, repeated, usual_noise
from robots import arm_with_wrist_sensor_urdf, at_roots, random_sample
from test_newton_euler import nested, sensorised

from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.sample import SampleBatch
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.sensor_noise import NoiseModel

# Relative to the largest derivative by readings of a kind: five points, third order of the step.
DERIVATIVE = 1e-6
STEP = 1e-3
STENCIL = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))
IMU_ROOT = np.array([[1.0, 0.0, 0.0], [-0.4, 0.8, 0.0], [0.5, 0.3, 1.2]])
JOINT_FIELDS = ('positions', 'velocities', 'accelerations')
IMU_FIELDS = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')


def numerical(estimator, sample, name):
    """Return the derivatives of all results by all entries of a field, one row each."""
    size = getattr(sample, name).size
    steps = STEP * np.concatenate([k * np.eye(size) for k, _ in STENCIL])
    columns = repeated(sample, len(steps))
    columns[name] = columns[name] + steps.reshape(columns[name].shape)
    estimate = estimator.batch(SampleBatch(**columns))
    weights = np.array([weight for _, weight in STENCIL]) / STEP
    kinds = 'wrenches', 'residuals', 'torques', 'external_torques'
    results = (getattr(estimate, kind).reshape(len(STENCIL), size, -1) for kind in kinds)
    return [np.tensordot(weights, result, 1).T for result in results]


def check_derivatives(robot, sample, contacts, **options):
    """Compare derivatives; of IMUs, of which several may disturb a link alike, the covariance."""
    estimator = WrenchEstimator(robot, contacts, **options)
    noise = NoiseModel.uniform(robot, joint=np.eye(3), imu=IMU_ROOT @ IMU_ROOT.T, ft=np.ones(6))
    found = Uncertainty(estimator, noise).disturbances(sample)
    unknowns = np.zeros((len(robot.submodels), 2))
    for contact in contacts:
        row = next(
            k for k, s in enumerate(robot.submodels) if robot.frame(contact.frame)[0] in s.links
        )
        unknowns[row] += [contact.unknowns, contact.unknowns > 0]
    # A full wrench alone in its submodel leaves no residual.
    with_residual = ~(unknowns == [6, 1]).all(axis=1)

    n, n_rows = len(robot.joint_names), len(found.motion)

    def expected(name):
        if not getattr(sample, name).size:
            return np.zeros((n_rows, 0))
        wrenches, residuals, *torques = numerical(estimator, sample, name)
        residuals = residuals.reshape(-1, 6, residuals.shape[-1])[with_residual]
        return np.concatenate([wrenches, *residuals, *torques])

    blocks = [(found.motion[:, :n, k], expected(name)) for k, name in enumerate(JOINT_FIELDS)]
    blocks.append((found.fts.reshape(n_rows, -1), expected('ft_readings')))
    by_imus = np.stack([expected(name) for name in IMU_FIELDS], axis=2) @ IMU_ROOT
    given, by_imus = (x.reshape(n_rows, -1) for x in (found.motion[:, n:], by_imus))
    for block, rows in (*blocks, (given @ given.T, by_imus @ by_imus.T)):
        tolerance = DERIVATIVE * max(1.0, np.abs(rows).max(initial=0.0))
        np.testing.assert_allclose(block, rows, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    ('name', 'kind'),
    [
        *((name, '') for name in ROBOTS),
        *product(['several imus', 'fixed humanoid'], HUMANOID_CONTACTS),
    ],
)
def test_derivatives_with_all_kinds_of_contacts(name, kind, rng):
    robot = make(name)
    contacts = HUMANOID_CONTACTS[kind] if kind else at_roots(robot)
    check_derivatives(robot, random_sample(robot, rng), contacts)


@pytest.mark.parametrize('make_robot', [nested, sensorised])
@pytest.mark.parametrize('arrays', [False, True])
def test_derivatives_with_parts_of_imus(make_robot, arrays, rng):
    robot = make_robot()
    sample = random_sample(robot, rng)
    check_derivatives(robot, sample, at_roots(robot), acceleration_arrays=arrays)


def test_derivatives_of_a_robot_without_joints(rng):
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), joints=[], imus=['base'])
    check_derivatives(robot, random_sample(robot, rng), at_roots(robot))


def test_derivatives_of_a_nearly_undetermined_combination(rng):
    """It is zero, and how its directions turn into the others counts."""
    robot = make('humanoid')
    near = Contact('hand', 'force', point=(0.0, 0.1, -0.2), name='near')
    beside = Contact('hand', 'force', point=(0.0, 0.1, -0.2004), name='beside')
    contacts, sample = (near, beside), random_sample(robot, rng)
    assert WrenchEstimator(robot, contacts).update(sample).ranks[1] < 6
    check_derivatives(robot, sample, contacts)


def test_derivatives_with_a_calibration_and_another_length(rng):
    robot = make('humanoid')
    matrices = np.eye(6) + rng.normal(0.0, 0.1, (3, 6, 6))
    options = {
        'calibration': FtCalibration(matrices, rng.normal(0.0, 5.0, (3, 6))),
        'length_scale': 0.03,
    }
    check_derivatives(robot, random_sample(robot, rng), HUMANOID_CONTACTS['squeeze'], **options)


def test_sums_of_masses_must_be_positive(rng):
    robot = make('humanoid')
    parameters = robot.parameters.copy()
    hand, arm = (robot.link_names.index(name) for name in ('hand', 'upper_arm'))
    parameters[hand] *= -1.0
    light, sample = robot.with_parameters(parameters), random_sample(robot, rng)
    check_derivatives(light, sample, at_roots(robot))
    parameters[arm] *= 0.1
    estimator = WrenchEstimator(robot.with_parameters(parameters))
    with pytest.raises(ModelError):
        Uncertainty(estimator, usual_noise(robot)).of(sample)
