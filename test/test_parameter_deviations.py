# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What errors of the inertial parameters make of results, against estimates with other parameters.

Not covered: where their covariance comes from (test_parameter_roots.py), and what sensors add
(test_uncertainty.py).
"""

import numpy as np
import pytest
from noisy_robots import HUMANOID_CONTACTS, ROBOTS, at_roots, make, usual_noise
from robots import random_sample
from test_set_parameters import faulty_samples

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.sensor_noise import NoiseModel

KINDS = ('wrenches', 'torques', 'external_torques', 'residuals')
# Relative to the largest deviation of a kind: results are linear in the parameters.
LINEAR = 1e-9
# Of 4000 draws within two deviations lie 95.4 +- 0.33 %; four of these.
DRAWS = 4000
COVERAGE = (0.941, 0.968)


def roots_of(robot, rng, columns=4, size=0.01):
    """Return roots in which the first submodel is exact."""
    roots = size * rng.normal(size=(len(robot.links), 10, columns))
    roots[list(robot.submodels[0].links)] = 0.0
    return roots


def no_noise(robot):
    """Return sensors without any noise."""
    return NoiseModel.uniform(robot, joint=np.zeros((3, 3)), imu=np.zeros((3, 3)), ft=np.zeros(6))


def columns_of(robot, roots):
    """Yield each independent error of the parameters, shape (n_links, 10)."""
    for submodel in robot.submodels:
        links = list(submodel.links)
        for column in np.moveaxis(roots[links], -1, 0):
            error = np.zeros((len(robot.links), 10))
            error[links] = column
            yield error


def by_brute_force(robot, contacts, sample, roots):
    """Return the deviations of each kind from estimates with other parameters."""
    estimator = WrenchEstimator(robot, contacts)
    usual = estimator.update(sample)
    squares = dict.fromkeys(KINDS, 0.0)
    for error in columns_of(robot, roots):
        estimator.set_parameters(robot.parameters + error)
        moved = estimator.update(sample)
        for kind in KINDS:
            squares[kind] = squares[kind] + (getattr(moved, kind) - getattr(usual, kind)) ** 2
    return {kind: np.sqrt(square) for kind, square in squares.items()}


def check(robot, contacts, sample, roots):
    estimator = WrenchEstimator(robot, contacts)
    found = Uncertainty(estimator, no_noise(robot), roots).of(sample)
    for kind, wanted in by_brute_force(robot, contacts, sample, roots).items():
        given = getattr(found, kind)
        # What the sensors do not tell apart is infinite, and no number of the shortest solution.
        told = ~np.isinf(given)
        size = np.nanmax(wanted, initial=1e-3)
        np.testing.assert_allclose(given[told], wanted[told], atol=LINEAR * size, err_msg=kind)
    return found


@pytest.mark.parametrize('name', ROBOTS)
def test_deviations_are_what_other_parameters_do(name, rng):
    robot = make(name)
    for sample in faulty_samples(robot, rng):
        for contacts in (at_roots(robot), ()):
            check(robot, contacts, sample, roots_of(robot, rng))


@pytest.mark.parametrize('kind', HUMANOID_CONTACTS)
def test_deviations_with_other_contacts(kind, rng):
    robot = make('humanoid')
    for sample in faulty_samples(robot, rng):
        check(robot, HUMANOID_CONTACTS[kind], sample, roots_of(robot, rng))


@pytest.mark.parametrize('imus', [['root_link'], ['root_link', 'chest', 'l_foot']])
def test_deviations_of_a_humanoid_with_lumped_frames(imus, shared_models, rng):
    robot = Robot.from_urdf(shared_models / 'icub_v2_5.urdf', imus=imus)
    found = check(robot, at_roots(robot), random_sample(robot, rng), roots_of(robot, rng))
    assert (found.wrenches[1:] > 0.0).all()


def test_they_add_to_the_noise_of_the_sensors(rng):
    robot = make('humanoid')
    sample, roots = random_sample(robot, rng), roots_of(robot, rng)
    estimator = WrenchEstimator(robot, at_roots(robot))
    uncertainty = Uncertainty(estimator, usual_noise(robot))
    by_sensors = uncertainty.of(sample)
    uncertainty.set_parameter_roots(roots)
    both = uncertainty.of(sample)
    by_parameters = Uncertainty(estimator, no_noise(robot), roots).of(sample)
    for kind in KINDS:
        wanted = np.hypot(getattr(by_sensors, kind), getattr(by_parameters, kind))
        np.testing.assert_allclose(getattr(both, kind), wanted, rtol=LINEAR, atol=LINEAR)
    uncertainty.set_parameter_roots(None)
    np.testing.assert_array_equal(uncertainty.of(sample).torques, by_sensors.torques)


def test_coverage_of_random_bodies(rng):
    robot = make('humanoid')
    sample, roots = random_sample(robot, rng), roots_of(robot, rng)
    estimator = WrenchEstimator(robot, at_roots(robot))
    found = Uncertainty(estimator, no_noise(robot), roots).of(sample)
    usual = estimator.update(sample)
    errors = {kind: [] for kind in KINDS}
    parts = list(columns_of(robot, roots))
    for weights in rng.normal(size=(DRAWS, len(parts))):
        estimator.set_parameters(robot.parameters + np.tensordot(weights, parts, 1))
        moved = estimator.update(sample)
        for kind in KINDS:
            errors[kind].append(getattr(moved, kind) - getattr(usual, kind))
    for kind in KINDS:
        deviations = getattr(found, kind)
        sure = deviations > LINEAR
        within = (np.abs(np.array(errors[kind])) < 2.0 * deviations)[:, sure].mean(axis=0)
        assert ((within > COVERAGE[0]) & (within < COVERAGE[1])).all(), kind


def test_what_is_no_root_is_refused_and_the_one_before_stays(rng):
    robot = make('humanoid')
    sample, roots = random_sample(robot, rng), roots_of(robot, rng)
    uncertainty = Uncertainty(WrenchEstimator(robot), no_noise(robot), roots)
    before = uncertainty.of(sample).torques
    bad = roots.copy()
    bad[2, 3, 1] = np.nan
    with pytest.raises(ModelError):
        uncertainty.set_parameter_roots(bad)
    for wrong in (roots[:, :, 0], roots[1:], roots[:, :9]):
        with pytest.raises(ShapeError, match='parameter_roots'):
            uncertainty.set_parameter_roots(wrong)
    np.testing.assert_array_equal(uncertainty.of(sample).torques, before)
