# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Deviations: against numerical derivatives of the estimator, and estimates with other parameters.

Not covered: filters and many draws (test_sensor_noise.py), noise that is not white, errors of
offsets, covariances of parameters (test_recursion.py).
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, at_roots, random_sample
from standing_biped import biped, standing
from test_newton_euler import nested, sensorised
from test_set_parameters import HUMANOID_CONTACTS, ROBOTS, faulty_samples, make, usual_noise

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.estimation import contact_limits
from inertial_estimation.estimation.contacts import Contact, Limit
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import LinkSensorSpec
from inertial_estimation.sample import SampleBatch, SensorState
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.sensor_noise import NoiseModel

# Relative to the largest deviation by readings of a kind: five points, third order of the step.
DERIVATIVE = 1e-6
STEP = 1e-3
STENCIL = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))
LINEAR = 1e-9  # of the largest deviation of a kind: results are linear in the parameters
ROOT = np.array([[1.0, 0.0, 0.0], [-0.4, 0.8, 0.0], [0.5, 0.3, 1.2]])
"""Of the covariance of the three signals of a joint, and of an axis of an IMU."""
FT_NOISE = np.array([1.0, 2.0, 0.5, 1.5, 0.7, 1.2])
KINDS = ('wrenches', 'torques', 'external_torques', 'residuals')
JOINT_FIELDS = ('positions', 'velocities', 'accelerations')
IMU_FIELDS = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')


def no_noise(robot, **given):
    """Return noise of some kinds of readings alone."""
    none = {'joint': np.zeros((3, 3)), 'imu': np.zeros((3, 3)), 'ft': np.zeros(6)}
    return NoiseModel.uniform(robot, **none | given)


def numerical(estimator, sample, name):
    """Return the derivatives of all results by the entries of a field, by kind (n, n_entries)."""
    size = getattr(sample, name).size
    steps = STEP * np.concatenate([k * np.eye(size) for k, _ in STENCIL])
    samples = SampleBatch.stack([sample] * len(steps))
    moved = getattr(samples, name) + steps.reshape(getattr(samples, name).shape)
    estimate = estimator.batch(replace(samples, **{name: moved}))
    weights = np.array([weight for _, weight in STENCIL]) / STEP
    results = {kind: getattr(estimate, kind) for kind in KINDS}
    return {
        kind: np.tensordot(weights, one.reshape(len(STENCIL), size, -1), 1).T
        for kind, one in results.items()
    }


def check_derivatives(robot, sample, contacts, **options):
    """Compare deviations by readings of each kind alone, and what is infinite with the marks."""
    estimator = WrenchEstimator(robot, contacts, **options)
    covariance, estimate = ROOT @ ROOT.T, estimator.update(sample)
    marks = {
        'wrenches': estimate.contact_quality, 'torques': estimate.torque_quality,
        'external_torques': estimate.external_torque_quality,
    }  # fmt: skip
    for given, fields, root in (
        ({'joint': covariance}, JOINT_FIELDS, ROOT),
        ({'imu': covariance}, IMU_FIELDS, ROOT),
        ({'ft': FT_NOISE}, ('ft_readings',), np.eye(1)),
    ):
        if not getattr(sample, fields[0]).size:
            continue
        found = Uncertainty(estimator, no_noise(robot, **given)).of(sample)
        derivatives = [numerical(estimator, sample, name) for name in fields]
        for kind in KINDS:
            changes = np.einsum('frj,fs->rjs', [one[kind] for one in derivatives], root)
            if 'ft' in given:
                changes *= np.tile(FT_NOISE, len(robot.ft_sensors))[:, None]
            deviations = getattr(found, kind)
            expected = np.sqrt((changes**2).sum(axis=(1, 2))).reshape(deviations.shape)
            endless = np.isinf(deviations)
            if kind in marks and endless.size:
                marked = (marks[kind] & Quality.UNDETERMINED) != 0
                assert not (endless.reshape(len(marked), -1).any(axis=1) & ~marked).any()
            tolerance = DERIVATIVE * max(1.0, np.nanmax(expected, initial=0.0))
            np.testing.assert_allclose(
                deviations[~endless], expected[~endless], rtol=0, atol=tolerance, err_msg=kind
            )
    wrenches = Uncertainty(estimator, usual_noise(robot)).of(sample).wrenches
    marked = (estimate.contact_quality & Quality.UNDETERMINED) != 0
    np.testing.assert_array_equal(np.isinf(wrenches).any(axis=-1), marked)


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


@pytest.mark.parametrize('field', ['ft_readings', 'angular_velocities'])
def test_derivatives_with_something_missing(field, rng):
    robot = make('several imus')
    sample = random_sample(robot, rng)
    getattr(sample, field)[0, 1] = np.nan
    check_derivatives(robot, sample, HUMANOID_CONTACTS['wrenches'])


@pytest.mark.parametrize(
    ('points', 'rank'),
    [
        (((0.0, 0.1, -0.2), (0.0, 0.1, -0.2004)), 3),
        (((0.0, 0.0, 0.1), (0.0, 0.0, -0.1), (0.03, 0.0, -0.3)), 6),
    ],
    ids=['two points nearly one', 'three points nearly on a line'],
)
def test_derivatives_near_a_degenerate_split(points, rank, rng):
    """A combination that is nearly undetermined is zero; its directions turn into the others."""
    robot = make('humanoid')
    contacts = [Contact('hand', 'force', point, name=str(k)) for k, point in enumerate(points)]
    sample = random_sample(robot, rng)
    assert WrenchEstimator(robot, contacts).update(sample).ranks.max() == rank
    check_derivatives(robot, sample, contacts)


@pytest.mark.parametrize('lost', [False, True], ids=['determined', 'two feet undetermined'])
def test_derivatives_within_limits(lost, rng, monkeypatch):
    """The limits that hold are equations; OSQP is exact enough to be differentiated."""
    exact = {'eps_abs': 1e-11, 'eps_rel': 1e-11, 'max_iter': 100_000}
    monkeypatch.setattr(contact_limits, 'SETTINGS', contact_limits.SETTINGS | exact)
    monkeypatch.setitem(globals(), 'STEP', 1e-4)
    robot = biped()
    sole = {'kind': 'surface', 'friction': 0.5, 'size': (0.16, 0.08)}
    contacts = [Contact('l_sole', **sole), Contact('r_sole', **sole)]
    if not lost:
        contacts += [Contact('hand', 'unilateral', (0.1, 0.0, 0.0)), Contact('root', 'force')]
    held = 0
    while held < 4:
        sample = random_sample(robot, rng)
        if lost:
            q, up = rng.uniform(-0.4, 0.4, 5), rng.normal((0.1, 0.1, 1.0), 0.05)
            sample = standing(robot, q, {'l_sole': 0.7, 'r_sole': 0.3}, up=up)
            sample.ft_readings[:4] = np.nan
        limits = WrenchEstimator(robot, contacts).update(sample).limits
        # Where a sole lifts many limits hold at once, and OSQP has fewer digits.
        if limits.any() and not (lost and (limits & Limit.PUSH).any()):
            check_derivatives(robot, sample, contacts)
            held += 1


def test_deviations_without_joints(rng):
    """Also of two IMUs on one link with exact readings."""
    specs = [LinkSensorSpec(name, 'base') for name in ('one', 'other')]
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), joints=[], imus=specs)
    sample = random_sample(robot, rng)
    check_derivatives(robot, sample, at_roots(robot))
    found = Uncertainty(WrenchEstimator(robot, at_roots(robot)), no_noise(robot)).of(sample)
    np.testing.assert_array_equal(found.wrenches, 0.0)


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
    parameters[[robot.link_names.index(name) for name in ('hand', 'upper_arm')]] *= -1.0
    estimator = WrenchEstimator(robot.with_parameters(parameters))
    with pytest.raises(ModelError):
        Uncertainty(estimator, usual_noise(robot)).of(random_sample(robot, rng))


def test_a_squeeze_is_undetermined_along_its_axis_only(rng):
    robot = make('humanoid')
    pair = tuple(Contact('hand', 'force', point=(x, 0.1, 0.0), name=str(x)) for x in (-0.1, 0.1))
    deviations = Uncertainty(WrenchEstimator(robot, pair), usual_noise(robot)).of(
        random_sample(robot, rng)
    )
    # The force along the line through both, and with the lever 0.1 its moment about z.
    unknown = np.array([True, False, False, False, False, True])
    for wrench in deviations.wrenches:
        np.testing.assert_array_equal(np.isinf(wrench), unknown)
    for kind in KINDS[1:]:
        assert np.isfinite(getattr(deviations, kind)).all()


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
            np.testing.assert_allclose(got, expected, rtol=LINEAR)
    with pytest.raises(ModelError):
        Uncertainty(estimator, usual_noise(make('several imus')))


def roots_of(robot, rng):
    """Return four independent errors of each link, in which the first submodel is exact."""
    roots = 0.01 * rng.normal(size=(len(robot.links), 10, 4))
    roots[list(robot.submodels[0].links)] = 0.0
    return roots


def check_parameters(robot, contacts, sample, roots):
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
            check_parameters(robot, contacts, sample, roots_of(robot, rng))


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
