# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Deviations of results by errors of the inertial parameters, against estimates with other ones.

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
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.sensor_noise import NoiseModel

KINDS = ('wrenches', 'torques', 'external_torques', 'residuals')
LINEAR = 1e-9  # relative to the largest deviation of a kind: results are linear in the parameters


def roots_of(robot, rng):
    """Return four independent errors of each link, in which the first submodel is exact."""
    roots = 0.01 * rng.normal(size=(len(robot.links), 10, 4))
    roots[list(robot.submodels[0].links)] = 0.0
    return roots


def no_noise(robot):
    return NoiseModel.uniform(robot, joint=np.zeros((3, 3)), imu=np.zeros((3, 3)), ft=np.zeros(6))


def check(robot, contacts, sample, roots):
    """Compare with estimates with each independent error of a submodel's parameters."""
    estimator = WrenchEstimator(robot, contacts)
    found = Uncertainty(estimator, no_noise(robot), roots).of(sample)
    usual, squares = estimator.update(sample), dict.fromkeys(KINDS, 0.0)
    for submodel in robot.submodels:
        links = list(submodel.links)
        for column in np.moveaxis(roots[links], -1, 0):
            parameters = robot.parameters.copy()
            parameters[links] += column
            estimator.set_parameters(parameters)
            moved = estimator.update(sample)
            for kind in KINDS:
                squares[kind] = squares[kind] + (getattr(moved, kind) - getattr(usual, kind)) ** 2
    for kind, square in squares.items():
        given, expected = getattr(found, kind), np.sqrt(square)
        # Undetermined wrenches have no number in the shortest solution.
        finite = ~np.isinf(given)
        size = LINEAR * np.nanmax(expected, initial=1e-3)
        np.testing.assert_allclose(given[finite], expected[finite], atol=size, err_msg=kind)


@pytest.mark.parametrize('name', ROBOTS)
def test_deviations_are_those_of_other_parameters(name, rng):
    robot = make(name)
    more = HUMANOID_CONTACTS.values() if name == 'humanoid' else ()
    for sample in faulty_samples(robot, rng):
        for contacts in (at_roots(robot), (), *more):
            check(robot, contacts, sample, roots_of(robot, rng))


def test_sensor_noise_adds_and_wrong_roots_are_refused(rng):
    robot = make('humanoid')
    sample, roots = random_sample(robot, rng), roots_of(robot, rng)
    estimator = WrenchEstimator(robot, at_roots(robot))
    uncertainty = Uncertainty(estimator, usual_noise(robot))
    by_sensors = uncertainty.of(sample)
    uncertainty.set_parameter_roots(roots)
    both = uncertainty.of(sample)
    by_parameters = Uncertainty(estimator, no_noise(robot), roots).of(sample)
    for kind in KINDS:
        expected = np.hypot(getattr(by_sensors, kind), getattr(by_parameters, kind))
        np.testing.assert_allclose(getattr(both, kind), expected, rtol=LINEAR, atol=LINEAR)
    bad = roots.copy()
    bad[2, 3, 1] = np.nan
    with pytest.raises(ModelError):
        uncertainty.set_parameter_roots(bad)
    with pytest.raises(ShapeError, match='parameter_roots'):
        uncertainty.set_parameter_roots(roots[1:])
    np.testing.assert_array_equal(uncertainty.of(sample).torques, both.torques)
