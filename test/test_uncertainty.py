# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Deviations by Monte Carlo, and those by errors of parameters against estimates with other ones.

Not covered: the derivatives behind them (test_sensitivities.py), filters (test_coverage.py), noise
that is not white, errors of offsets, covariances of parameters (test_recursion.py).
"""

import numpy as np
import pytest
from noisy_robots import HUMANOID_CONTACTS, ROBOTS, make, repeated, usual_noise
from robots import at_roots, random_sample
from test_set_parameters import faulty_samples

from inertial_estimation.errors import ModelError, NameNotFound, ShapeError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.sample import SampleBatch, SensorState
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.sensor_noise import NoiseModel, covariance_root

# Two standard deviations hold 95.45 % of a normal distribution. Of 5000 draws within two lie
# 95.45 +- 0.3 %; what bends the results adds to it.
DRAWS = 5000
COVERAGE = (0.93, 0.97)
ROUND_OFF = 1e-9
LINEAR = 1e-9  # relative to the largest deviation of a kind: results are linear in the parameters
KINDS = ('wrenches', 'torques', 'external_torques', 'residuals')
JOINT_FIELDS = ('positions', 'velocities', 'accelerations')
IMU_FIELDS = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')


def draws(sample, noise, n, rng):
    """Return samples that err from one by random noise."""
    columns = repeated(sample, n)
    for fields, roots, axes in (
        (JOINT_FIELDS, covariance_root(noise.joints), ()),
        (IMU_FIELDS, covariance_root(noise.imus), (3,)),
    ):
        random = rng.normal(size=(n, 3, len(roots), *axes))
        for name, error in zip(fields, np.einsum('jik,nkj...->inj...', roots, random)):
            columns[name] = columns[name] + error
    readings = columns['ft_readings']
    columns['ft_readings'] = readings + noise.fts * rng.normal(size=readings.shape)
    return SampleBatch(**columns)


def check_coverage(robot, contacts, sample, noise, rng):
    """Count the noisy results within two deviations; return the deviations."""
    estimator = WrenchEstimator(robot, contacts)
    deviations = Uncertainty(estimator, noise).of(sample)
    exact = estimator.update(sample)
    noisy = estimator.batch(draws(sample, noise, DRAWS, rng))
    counted = 0
    for kind in KINDS:
        deviation = getattr(deviations, kind)
        error = getattr(noisy, kind) - getattr(exact, kind)
        np.testing.assert_array_equal(np.isnan(deviation), np.isnan(getattr(exact, kind)))
        sure = np.isfinite(deviation) & (deviation > ROUND_OFF)
        still = deviation <= ROUND_OFF
        assert np.abs(error[:, still]).max(initial=0.0) < ROUND_OFF * 1e3, kind
        within = (np.abs(error[:, sure]) < 2.0 * deviation[sure]).mean(axis=0)
        assert ((within > COVERAGE[0]) & (within < COVERAGE[1])).all(), kind
        counted += len(within)
    assert counted
    return deviations


@pytest.mark.parametrize(
    ('name', 'kind'),
    [*((name, '') for name in ROBOTS), *(('humanoid', kind) for kind in HUMANOID_CONTACTS)],
)
def test_deviations_hold_as_many_errors_as_they_should(name, kind, rng):
    robot = make(name)
    contacts = HUMANOID_CONTACTS[kind] if kind else at_roots(robot)
    estimator, sample = WrenchEstimator(robot, contacts), random_sample(robot, rng)
    estimate, noise = estimator.update(sample), usual_noise(robot)
    deviations = check_coverage(robot, contacts, sample, noise, rng)
    # What is infinite is marked.
    for deviation, quality in (
        (deviations.torques, estimate.torque_quality),
        (deviations.external_torques, estimate.external_torque_quality),
    ):
        assert not (np.isinf(deviation) & ((quality & Quality.UNDETERMINED) == 0)).any()
    marked = (estimate.contact_quality & Quality.UNDETERMINED) != 0
    np.testing.assert_array_equal(np.isinf(deviations.wrenches).any(axis=-1), marked)
    assert kind != 'squeeze' or np.isinf(deviations.torques).any()


@pytest.mark.parametrize('field', ['ft_readings', 'angular_velocities'])
def test_coverage_with_something_missing(field, rng):
    robot = make('several imus')
    sample, contacts = random_sample(robot, rng), HUMANOID_CONTACTS['wrenches']
    getattr(sample, field)[0, 1] = np.nan
    check_coverage(robot, contacts, sample, usual_noise(robot), rng)


@pytest.mark.parametrize(
    ('points', 'merged'),
    [
        (((0.0, 0.0, 0.0), (0.0, 0.001, 0.0)), True),
        (((0.0, 0.0, 0.1), (0.0, 0.0, -0.1), (0.03, 0.0, -0.3)), False),
    ],
    ids=['two points nearly one', 'three points nearly on a line'],
)
def test_coverage_near_a_degenerate_split(points, merged, rng):
    robot = make('humanoid')
    forces = [Contact('hand', 'force', point, name=str(k)) for k, point in enumerate(points)]
    contacts = (Contact('chest'), *forces, Contact('thigh'), Contact('foot'))
    sample, noise = random_sample(robot, rng), usual_noise(robot)
    found = check_coverage(robot, contacts, sample, noise, rng).wrenches[1:-2]
    largest = found[np.isfinite(found)].max()
    usual = Uncertainty(WrenchEstimator(robot, at_roots(robot)), noise).of(sample).wrenches
    # Noise is amplified, or the difference is undetermined.
    assert np.isinf(found).any() or not merged
    assert (largest > 1.5 * usual[:, :3].max()) != merged


def test_a_squeeze_is_undetermined_along_its_axis_only(rng):
    robot = make('humanoid')
    pair = tuple(Contact('hand', 'force', point=(x, 0.1, 0.0), name=str(x)) for x in (-0.1, 0.1))
    uncertainty = Uncertainty(WrenchEstimator(robot, pair), usual_noise(robot))
    sample = random_sample(robot, rng)
    deviations = uncertainty.of(sample)
    # The force along the line through both, and with the lever 0.1 its moment about z.
    unknown = np.array([True, False, False, False, False, True])
    for wrench in deviations.wrenches:
        np.testing.assert_array_equal(np.isinf(wrench), unknown)
    for kind in KINDS[1:]:
        assert np.isfinite(getattr(deviations, kind)).all()
    # The sum of both is as certain as one force.
    found = uncertainty.disturbances(sample)
    parts = np.append(found.motion[0] + found.motion[6], found.fts[0] + found.fts[6])
    one = Uncertainty(WrenchEstimator(robot, [Contact('hand')]), usual_noise(robot)).of(sample)
    assert np.linalg.norm(parts) < 1.1 * one.wrenches[0, 0]


def test_an_assumed_position_is_exact(rng):
    robot = make('humanoid')
    sample = random_sample(robot, rng)
    uncertainty = Uncertainty(WrenchEstimator(robot, at_roots(robot)), usual_noise(robot))
    states = np.zeros(len(robot.joint_names), dtype=np.uint8)
    states[robot.joint_names.index('knee')] = SensorState.ASSUMED
    measured = uncertainty.of(sample).wrenches
    exact = uncertainty.of(sample._replace(joint_states=states)).wrenches
    arm, thigh = ([s.name for s in robot.submodels].index(name) for name in ('upper_arm', 'thigh'))
    assert (exact[thigh] < measured[thigh]).all()
    np.testing.assert_array_equal(exact[arm], measured[arm])


def test_contacts_of_a_sample_replace_the_default_ones(rng):
    robot = make('humanoid')
    estimator, noise = WrenchEstimator(robot, at_roots(robot)), usual_noise(robot)
    uncertainty, sample = Uncertainty(estimator, noise), random_sample(robot, rng)
    # The same plan at two places.
    for x in (0.0, 0.3):
        contacts = (Contact('hand', 'force', point=(x, 0.0, 0.0)), Contact('sole'))
        given = uncertainty.of(sample, contacts)
        own = Uncertainty(WrenchEstimator(robot, contacts), noise).of(sample)
        assert given.contacts == own.contacts == contacts
        for got, expected in zip(given[2:], own[2:], strict=True):
            np.testing.assert_allclose(got, expected, rtol=ROUND_OFF)
    with pytest.raises(NameNotFound) as error:
        uncertainty.of(sample, (Contact('hnd'),))
    assert error.value.name == 'hnd'
    with pytest.raises(ModelError):
        Uncertainty(estimator, usual_noise(make('several imus')))


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
    with pytest.raises(ShapeError) as error:
        uncertainty.set_parameter_roots(roots[1:])
    assert error.value.argument == 'parameter_roots'
    np.testing.assert_array_equal(uncertainty.of(sample).torques, both.torques)
