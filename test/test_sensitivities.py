# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Derivatives of all results by all readings: against numerical ones of the estimator.

Not covered: deviations that follow from them (test_uncertainty.py).
"""

import numpy as np
import pytest
from noisy_robots import HUMANOID_CONTACTS, ROBOTS, at_roots, make, repeated, usual_noise
from robots import arm_with_wrist_sensor_urdf, random_sample

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
JOINT_FIELDS = ('positions', 'velocities', 'accelerations')
IMU_FIELDS = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')


def unit_noise(robot):
    return NoiseModel.uniform(robot, joint=np.eye(3), imu=np.eye(3), ft=np.ones(6))


def derivative(estimator, sample, name, contacts):
    """Return the derivatives of all results by all entries of a field, one row each."""
    size = getattr(sample, name).size
    steps = STEP * np.concatenate([k * np.eye(size) for k, _ in STENCIL])
    n = len(steps)
    columns = repeated(sample, n)
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
    blocks['ft_readings'] = found.fts.reshape(len(found.fts), -1)
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


@pytest.mark.parametrize('name', ['icub_v2_5', 'icub_genova01'])
def test_derivatives_of_a_humanoid(name, shared_models, rng):
    imus = ['root_link', 'chest', 'l_foot']
    robot = Robot.from_urdf(shared_models / f'{name}.urdf', imus=imus)
    contacts = (
        *(Contact(submodel.name) for submodel in robot.submodels[:-1]),
        Contact(robot.submodels[-1].name, 'force', point=(0.0, 0.05, 0.1)),
    )
    check_derivatives(robot, random_sample(robot, rng), contacts)


def test_a_robot_that_cannot_move(rng):
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), joints=[], imus=['base'])
    check_derivatives(robot, random_sample(robot, rng), at_roots(robot))


def test_masses_that_are_negative(rng):
    robot = make('humanoid')
    parameters = robot.parameters.copy()
    hand, arm = (robot.link_names.index(name) for name in ('hand', 'upper_arm'))
    parameters[hand] *= -1.0
    light = robot.with_parameters(parameters)
    check_derivatives(light, random_sample(robot, rng), at_roots(robot))
    parameters[arm] *= 0.1
    with pytest.raises(ModelError):
        Uncertainty(WrenchEstimator(robot.with_parameters(parameters)), usual_noise(robot)).of(
            random_sample(robot, rng)
        )
