# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Standard deviations by Monte Carlo: how often noise moves a result by less than two of them.

Not covered: the derivatives behind them (test_sensitivities.py); noise that is not white, errors
of models and offsets, and how filters lag.
"""

from dataclasses import replace

import numpy as np
import pytest
from noisy_robots import HUMANOID_CONTACTS, ROBOTS, at_roots, make, repeated, usual_noise
from robots import random_sample

from inertial_estimation.errors import FrameNotFound, ModelError, ShapeError
from inertial_estimation.estimation.contacts import Contact, ContactSet
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch, SensorState
from inertial_estimation.signals.savitzky_golay import SavitzkyGolayFilter
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.sensor_noise import (
    NoiseModel,
    filter_weights,
    imu_covariance,
    independent,
    joint_covariance,
    triangular_root,
)

# Two standard deviations hold 95.45 % of a normal distribution. Of 5000 draws within two lie
# 95.45 +- 0.3 %; what bends the results adds to it.
DRAWS = 5000
COVERAGE = (0.93, 0.97)
STATES = 2000
ROUND_OFF = 1e-9

JOINT_FIELDS = ('positions', 'velocities', 'accelerations')
IMU_FIELDS = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')


def draws(sample, noise, n, rng):
    """Return samples that err from one by random noise."""
    columns = repeated(sample, n)
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


NEARLY = {
    'two points close to each other': (
        Contact('hand', 'force'),
        Contact('upper_arm', 'force', point=(0.0, 0.03, -0.25), name='second'),
    ),
    'the same, taken for one': (
        Contact('hand', 'force'),
        Contact('upper_arm', 'force', point=(0.0, 0.001, -0.25), name='second'),
    ),
    'almost parallel': (
        Contact('hand', 'axial_force', direction=(0.0, 0.0, 1.0)),
        Contact('hand', 'axial_force', (0, 0, 0.1), direction=(0.01, 0.0, 1.0), name='second'),
    ),
    'three points almost on a line': (
        Contact('hand', 'force', point=(0.0, 0.0, 0.1)),
        Contact('hand', 'force', point=(0.0, 0.0, -0.1), name='second'),
        Contact('hand', 'force', point=(0.03, 0.0, -0.3), name='third'),
    ),
}


@pytest.mark.parametrize('near', NEARLY)
def test_coverage_near_a_split_that_degenerates(near, rng):
    robot = make('humanoid')
    contacts = (Contact('chest'), *NEARLY[near], Contact('thigh'), Contact('foot'))
    sample, noise = random_sample(robot, rng), usual_noise(robot)
    check_coverage(robot, contacts, sample, noise, rng)
    deviations = Uncertainty(WrenchEstimator(robot, contacts), noise).of(sample).wrenches
    told = deviations[1:-2][np.isfinite(deviations[1:-2])]
    usual = Uncertainty(WrenchEstimator(robot, at_roots(robot)), noise).of(sample).wrenches
    # Noise is blown up, or what it would be blown up by is said not to be told.
    if near == 'the same, taken for one':
        assert told.max() < usual[:, :3].max()
        assert np.isinf(deviations).any()
    else:
        assert told.max() > 1.5 * usual[:, :3].max()


ICUBS = ('icub_v2_5', 'icub_genova01')


def icub(name, shared_models, **options):
    return Robot.from_urdf(shared_models / f'{name}.urdf', **options)


@pytest.mark.parametrize('imus', [['root_link'], ['root_link', 'chest', 'l_foot', 'r_lower_leg']])
@pytest.mark.parametrize('name', ICUBS)
def test_coverage_on_a_humanoid(name, imus, shared_models, rng):
    robot = icub(name, shared_models, imus=imus)
    sample = random_sample(robot, rng)
    check_coverage(robot, at_roots(robot), sample, usual_noise(robot), rng)


def test_coverage_over_many_states(rng):
    """Every draw has a state and a deviation of its own."""
    robot = make('humanoid')
    contacts = HUMANOID_CONTACTS['squeeze']
    estimator, noise = WrenchEstimator(robot, contacts), usual_noise(robot)
    uncertainty = Uncertainty(estimator, noise)
    samples = [random_sample(robot, rng) for _ in range(STATES)]
    noisy = [draws(sample, noise, 1, rng)[0] for sample in samples]
    truth = estimator.batch(SampleBatch.stack(samples))
    errors = estimator.batch(SampleBatch.stack(noisy))
    deviations = uncertainty.of_batch(SampleBatch.stack(samples))
    for kind in KINDS:
        deviation = getattr(deviations, kind)
        sure = np.isfinite(deviation).all(axis=0) & (deviation > ROUND_OFF).all(axis=0)
        error = np.abs(getattr(errors, kind) - getattr(truth, kind))
        within = (error < 2.0 * deviation)[:, sure].mean(axis=0)
        assert ((within > COVERAGE[0]) & (within < COVERAGE[1])).all(), kind


def test_coverage_with_large_forces_and_coarse_encoders(rng):
    """What positions do by moving the frames of the sensors is most of it, and is in it."""
    robot = make('humanoid')
    sample = random_sample(robot, rng)
    readings = sample.ft_readings.copy()
    readings[:, 2] = 400.0
    noise = NoiseModel.uniform(
        robot,
        joint=independent(1e-3, 0.0, 0.0),
        imu=np.zeros((3, 3)),
        ft=np.full(6, 1e-3),
    )
    check_coverage(
        robot, HUMANOID_CONTACTS['forces'], sample._replace(ft_readings=readings), noise, rng
    )


def test_coverage_behind_a_filter(rng):
    """Noise of encoders and gyroscopes goes through the filter itself."""
    robot = make('humanoid')
    n, n_joints = DRAWS, len(robot.joint_names)
    encoder, gyroscope = 1e-4, 2e-3
    weights = filter_weights(SavitzkyGolayFilter(1, 0.1, 3), 100.0)
    noise = NoiseModel.uniform(
        robot,
        joint=joint_covariance(encoder, weights),
        imu=imu_covariance(gyroscope, 0.02, weights),
        ft=np.array([0.1] * 3 + [0.01] * 3),
    )
    sample = random_sample(robot, rng)
    batch = draws(sample, noise, n, rng)
    filtered = []
    for size, deviation in ((n_joints, encoder), (3, gyroscope)):
        differentiator = SavitzkyGolayFilter(n * size, 0.1, 3)
        for k in range(12):
            values = rng.normal(0.0, deviation, n * size)
            differentiator.append((k + 1) * 10_000_000, values)
        filtered.append(np.vstack([values, differentiator.evaluate()]).reshape(3, n, size))
    (q, v, a), (w, dw, _) = filtered
    batch = replace(
        batch,
        positions=sample.positions + q,
        velocities=sample.velocities + v,
        accelerations=sample.accelerations + a,
        angular_velocities=sample.angular_velocities + w[:, None],
        angular_accelerations=sample.angular_accelerations + dw[:, None],
    )
    estimator = WrenchEstimator(robot, at_roots(robot))
    exact, noisy = estimator.update(sample), estimator.batch(batch)
    deviations = Uncertainty(estimator, noise).of(sample)
    for kind in KINDS[:3]:
        error = np.abs(getattr(noisy, kind) - getattr(exact, kind))
        within = (error < 2.0 * getattr(deviations, kind)).mean(axis=0)
        within = within[getattr(deviations, kind) > ROUND_OFF]
        assert ((within > COVERAGE[0]) & (within < COVERAGE[1])).all(), kind


# What the sensors do not tell


def test_of_a_squeeze_along_an_axis_only_that_axis_is_unknown(rng):
    robot = make('humanoid')
    pair = tuple(Contact('hand', 'force', point=(x, 0.1, 0.0), name=str(x)) for x in (-0.1, 0.1))
    estimator = WrenchEstimator(robot, pair)
    uncertainty = Uncertainty(estimator, usual_noise(robot))
    sample = random_sample(robot, rng)
    deviations = uncertainty.of(sample)
    # The force along the line through both, and with the lever 0.1 its moment about z.
    unknown = np.array([True, False, False, False, False, True])
    for wrench in deviations.wrenches:
        np.testing.assert_array_equal(np.isinf(wrench), unknown)
    assert np.isfinite(deviations.torques).all()
    assert np.isfinite(deviations.external_torques).all()
    assert np.isfinite(deviations.residuals).all()
    # Together they push along it as surely as one force would.
    found = uncertainty.disturbances(sample)
    parts = np.append(found.motion[0] + found.motion[6], found.fts[0] + found.fts[6])
    one = Uncertainty(WrenchEstimator(robot, [Contact('hand')]), usual_noise(robot)).of(sample)
    assert np.linalg.norm(parts) < 1.1 * one.wrenches[0, 0]


def test_what_is_infinite_is_marked_undetermined(rng):
    robot = make('humanoid')
    for kind in HUMANOID_CONTACTS:
        contacts = HUMANOID_CONTACTS[kind]
        estimator = WrenchEstimator(robot, contacts)
        uncertainty = Uncertainty(estimator, usual_noise(robot))
        for _ in range(5):
            sample = random_sample(robot, rng)
            estimate, deviations = estimator.update(sample), uncertainty.of(sample)
            for unknown, quality in (
                (np.isinf(deviations.wrenches).any(axis=-1), estimate.contact_quality),
                (np.isinf(deviations.torques), estimate.torque_quality),
                (np.isinf(deviations.external_torques), estimate.external_torque_quality),
            ):
                marked = (quality & Quality.UNDETERMINED) != 0
                assert not (unknown & ~marked).any(), kind
            marked = (estimate.contact_quality & Quality.UNDETERMINED) != 0
            np.testing.assert_array_equal(np.isinf(deviations.wrenches).any(axis=-1), marked)
    assert np.isinf(Uncertainty(*squeezed(robot)).of(sample).torques).any()


def squeezed(robot):
    return WrenchEstimator(robot, HUMANOID_CONTACTS['squeeze']), usual_noise(robot)


# Missing sensors and joints


@pytest.mark.parametrize('name', ['humanoid', 'several imus'])
@pytest.mark.parametrize(
    ('field', 'entry'),
    [
        ('ft_readings', (0, 2)),
        ('ft_readings', (1, 0)),
        ('angular_velocities', (0, 1)),
        ('positions', (4,)),
        ('accelerations', (2,)),
    ],
)
def test_coverage_with_something_missing(name, field, entry, rng):
    robot = make(name)
    sample = random_sample(robot, rng)
    getattr(sample, field)[entry] = np.nan
    contacts = HUMANOID_CONTACTS['wrenches']
    deviations = Uncertainty(WrenchEstimator(robot, contacts), usual_noise(robot)).of(sample)
    if name == 'several imus' or field != 'angular_velocities':
        assert np.isfinite(deviations.wrenches).any()
        check_coverage(robot, contacts, sample, usual_noise(robot), rng)
    else:
        assert np.isnan(deviations.wrenches).all()


def test_an_assumed_position_errs_as_stated(rng):
    robot = make('humanoid')
    sample = random_sample(robot, rng)
    states = np.zeros(len(robot.joint_names), dtype=np.uint8)
    states[robot.joint_names.index('knee')] = SensorState.ASSUMED
    assumed = sample._replace(joint_states=states)
    contacts = at_roots(robot)
    noise = usual_noise(robot)
    estimator = WrenchEstimator(robot, contacts)
    measured = Uncertainty(estimator, noise).of(sample)
    exact = Uncertainty(estimator, noise).of(assumed)
    guessed = Uncertainty(
        estimator, replace(noise, assumed_positions=np.full(len(states), 0.1))
    ).of(assumed)
    thigh = [submodel.name for submodel in robot.submodels].index('thigh')
    assert (exact.wrenches[thigh] < measured.wrenches[thigh]).all()
    assert (guessed.wrenches[thigh, 3:] > 2.0 * measured.wrenches[thigh, 3:]).all()
    arm = [submodel.name for submodel in robot.submodels].index('upper_arm')
    for other in (exact, guessed):
        np.testing.assert_array_equal(other.wrenches[arm], measured.wrenches[arm])


def test_contacts_of_an_instant(rng):
    robot = make('humanoid')
    estimator, noise = WrenchEstimator(robot, at_roots(robot)), usual_noise(robot)
    uncertainty = Uncertainty(estimator, noise)
    sample = random_sample(robot, rng)
    default = uncertainty.of(sample)
    for contacts in (*HUMANOID_CONTACTS.values(), HUMANOID_CONTACTS['squeeze']):
        given = uncertainty.of(sample, contacts)
        own = Uncertainty(WrenchEstimator(robot, contacts), noise).of(sample)
        assert given.contacts == own.contacts == contacts
        for got, expected in zip(given[2:], own[2:], strict=True):
            np.testing.assert_array_equal(got, expected)
    touched = estimator.with_touches([Contact('hand', 'force', point=(0.0, 0.0, 0.3))])
    assert isinstance(touched, ContactSet)
    got = uncertainty.of(sample, touched)
    check = estimator.update(sample, touched)
    assert got.contacts == check.contacts
    np.testing.assert_array_equal(np.isnan(got.wrenches), np.isnan(check.wrenches))
    for got, expected in zip(uncertainty.of(sample)[2:], default[2:], strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_point_that_moves_counts_where_it_is(rng):
    robot = make('humanoid')
    estimator, noise = WrenchEstimator(robot, at_roots(robot)), usual_noise(robot)
    uncertainty = Uncertainty(estimator, noise)
    sample = random_sample(robot, rng)
    for x in (0.0, 0.1, 0.3):
        contacts = (Contact('hand', 'force', point=(x, 0.0, 0.0)), Contact('sole'))
        own = Uncertainty(WrenchEstimator(robot, contacts), noise).of(sample)
        for got, expected in zip(uncertainty.of(sample, contacts)[2:], own[2:], strict=True):
            np.testing.assert_allclose(got, expected, rtol=ROUND_OFF)


# What reaches what


def test_a_noisy_sensor_reaches_its_submodels_only(rng):
    robot = make('humanoid')
    estimator = WrenchEstimator(robot, at_roots(robot))
    sample = random_sample(robot, rng)
    fts = np.zeros((3, 6))
    fts[[s.name for s in robot.ft_sensors].index('foot_sensor')] = 1.0
    noise = NoiseModel(
        np.zeros((len(robot.joint_names), 3, 3)), np.zeros((1, 3, 3)), fts,
        np.zeros(len(robot.joint_names)),
    )  # fmt: skip
    deviations = Uncertainty(estimator, noise).of(sample)
    names = [submodel.name for submodel in robot.submodels]
    touched = [names.index('thigh'), names.index('foot')]
    others = [k for k in range(len(names)) if k not in touched]
    assert (deviations.wrenches[touched] > 0.5).all()
    assert not deviations.wrenches[others].any()
    assert not deviations.torques[robot.joint_names.index('elbow')]


def test_the_estimator_goes_on_as_before(rng):
    robot = make('humanoid')
    sample, other = random_sample(robot, rng), random_sample(robot, rng)
    for contacts in (at_roots(robot), HUMANOID_CONTACTS['squeeze']):
        estimator = WrenchEstimator(robot, contacts)
        uncertainty = Uncertainty(estimator, usual_noise(robot))
        before = estimator.update(sample)
        uncertainty.of(other)
        after = estimator.update(sample)
        for got, expected in zip(after[2:], before[2:], strict=True):
            np.testing.assert_array_equal(got, expected)


def test_a_log_is_its_instants(rng):
    robot = make('humanoid')
    samples = [random_sample(robot, rng) for _ in range(4)]
    samples[2].ft_readings[0] = np.nan
    uncertainty = Uncertainty(WrenchEstimator(robot, at_roots(robot)), usual_noise(robot))
    together = uncertainty.of_batch(SampleBatch.stack(samples))
    for k, sample in enumerate(samples):
        one = uncertainty.of(sample)
        assert together.stamp_ns[k] == one.stamp_ns
        for got, expected in zip(together[2:], one[2:], strict=True):
            np.testing.assert_array_equal(got[k], expected)


# Robots at the edges and mistakes


def test_mistakes_are_named(rng):
    robot = make('humanoid')
    other = usual_noise(make('several imus'))
    estimator = WrenchEstimator(robot)
    with pytest.raises(ModelError):
        Uncertainty(estimator, other)
    uncertainty = Uncertainty(estimator, usual_noise(robot))
    sample = random_sample(robot, rng)
    with pytest.raises(ShapeError, match="'positions'"):
        uncertainty.of(sample._replace(positions=np.zeros(2)))
    with pytest.raises(FrameNotFound, match='hnd'):
        uncertainty.of(sample, (Contact('hnd'),))
