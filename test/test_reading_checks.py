# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Impossible readings of a robot that moves fast: named within half a second, results marked.

Readings come from a model of the whole robot. Results that a fault changes must be doubtful.
"""

from dataclasses import replace

import numpy as np
import pytest
from consistent_readings import ConsistentReadings, random_motion
from standing_biped import biped, standing

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.reading_checks import (
    COUNT,
    PERIOD_NS,
    ReadingChecks,
    without_leaps,
)
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.sample import SampleBatch

IMUS = ['root', 'hand', 'l_foot', 'r_foot']
CONTACTS = ['root', 'hand', 'l_thigh', 'r_thigh', 'l_foot', 'r_foot']
FIELDS = 'wrenches', 'torques', 'external_torques', 'residuals'
QUALITIES = 'contact_quality', 'torque_quality', 'external_torque_quality', 'submodel_quality'
HALF_TURN = np.diag([1.0, -1.0, -1.0])


def fast_samples(robot, rng, n=COUNT):
    """Return unrelated instants of fast motions under random wrenches."""
    source = ConsistentReadings(robot)
    wrenches = [dict(zip(CONTACTS, rng.normal(0.0, 20.0, (6, 6)))) for _ in range(n)]
    samples = [source.sample(random_motion(robot, rng), one)[0] for one in wrenches]
    return [one._replace(stamp_ns=(k + 1) * PERIOD_NS) for k, one in enumerate(samples)]


def changed(samples, field, change):
    batch = SampleBatch.stack(samples)
    values = getattr(batch, field).copy()
    change(values)
    batch = replace(batch, **{field: values})
    return [batch[k] for k in range(len(batch))]


def in_degrees(samples):
    return changed(samples, 'positions', lambda q: np.copyto(q, np.rad2deg(q)))


def upside_down(k):
    def edit(samples):
        for field in ('angular_velocities', 'proper_accelerations', 'angular_accelerations'):
            samples = changed(samples, field, lambda a: np.copyto(a[:, k], a[:, k] @ HALF_TURN))
        return samples

    return edit


def in_g(k):
    def divide(a):
        a[:, k] /= 9.81

    return lambda samples: changed(samples, 'proper_accelerations', divide)


def stuck_axis(samples):
    return changed(samples, 'ft_readings', lambda y: np.copyto(y[:, 1, 2], 7.0))


def frozen_joint(samples):
    def hold(v):
        v[:, 0] = 0.4

    samples = changed(samples, 'positions', lambda q: np.copyto(q[:, 0], q[0, 0]))
    return changed(samples, 'velocities', hold)


CASES = {
    'in degrees': (in_degrees, None),
    'IMU in use upside down': (upside_down(0), 'root'),
    'IMU upside down': (upside_down(2), 'l_foot'),
    'IMU in g': (in_g(1), 'hand'),
    'axis of an FT sensor': (stuck_axis, 1),
    'frozen joint': (frozen_joint, 0),
}


@pytest.mark.parametrize('name', CASES)
def test_impossible_readings_are_named_and_results_marked(name, rng):
    robot = biped(imus=IMUS)
    fault, subject = CASES[name]
    if isinstance(subject, int):
        sensors = [one.name for one in robot.ft_sensors]
        subject = {'frozen joint': robot.joint_names, 'axis of an FT sensor': sensors}[name][
            subject
        ]
    good = fast_samples(robot, rng)
    estimator, checks = WrenchEstimator(robot, map(Contact, CONTACTS)), ReadingChecks(robot)
    assert not checks.judge(good) and not checks.findings
    bad = fault(good)
    assert checks.judge(bad)
    if subject is not None:
        assert [one.subject for one in checks.findings] == [subject]
    right = estimator.update(good[-1])
    step, wrong = estimator.step(bad[-1])
    marked, n_marked = checks.marked(wrong, step.plan), 0
    for field, quality in zip(FIELDS, QUALITIES):
        off = np.abs(getattr(wrong, field) - getattr(right, field))
        moved = off.reshape(len(off), -1).max(axis=1) > 1e-6
        doubtful = (getattr(marked, quality) & Quality.DOUBTFUL) != 0
        assert not (moved & ~doubtful).any(), field
        n_marked += doubtful.sum()
    assert n_marked
    if name != 'in degrees':
        assert n_marked < len(marked.quality)
    failing, numbers = ReadingChecks(robot).follow(SampleBatch.stack(bad + bad))
    assert failing == [frozenset(), checks.failing]
    assert numbers.tolist() == [0] * COUNT + [1] * COUNT
    assert checks.judge(good) and not checks.marked(wrong, step.plan).quality.any()


def test_resting_joint_beside_degrees_is_not_frozen(rng):
    checks = ReadingChecks(biped(imus=IMUS))
    samples = frozen_joint(fast_samples(biped(imus=IMUS), rng))
    checks.judge(samples)
    assert {one.code for one in checks.findings} == {'frozen'}
    checks.judge(in_degrees(samples))
    assert {one.code for one in checks.findings} == {'joint_limit'}


def test_gravity_at_rest_names_the_one_imu_in_g(rng):
    robot = biped(imus=['root', 'hand'])
    rest = standing(robot, rng.uniform(-1.0, 1.0, 5), {'l_sole': 1.0})
    samples = [rest._replace(stamp_ns=(k + 1) * PERIOD_NS) for k in range(COUNT)]
    checks = ReadingChecks(robot)
    assert not checks.judge(samples)
    assert checks.judge(in_g(1)(samples))
    assert [one.subject for one in checks.findings] == ['hand']


@pytest.mark.parametrize('mounted', [(0.0, 0.0, 1.0), (0.6, -0.48, 0.64)])
def test_gravity_upwards_names_an_only_imu(rng, mounted):
    """A robot on one or two feet; the readings and weights are right for any attitude."""
    robot, push = biped(), rng.normal(0.0, 20.0, 6)
    pushed = {'r_sole': 1.0, 'hand': 0.0}, {'r_sole': -push, 'hand': push}
    for shares, squeeze in (({'l_sole': 1.4, 'r_sole': -0.4}, None), pushed):
        rest = standing(robot, rng.uniform(-1.0, 1.0, 5), shares, squeeze, mounted)
        samples = [rest._replace(stamp_ns=(k + 1) * PERIOD_NS) for k in range(COUNT)]
        checks = ReadingChecks(robot)
        assert not checks.judge(samples)
        assert checks.judge(changed(samples, 'proper_accelerations', lambda a: np.negative(a, a)))
        assert [one.subject for one in checks.findings] == ['root']


@pytest.mark.parametrize('shares', [{'l_sole': 0.5, 'r_sole': 0.5}, {'root': 1.0}])
def test_what_is_held_with_twice_its_weight_is_not_reversed(rng, shares):
    """Legs that carry the rest, or a root from which they hang."""
    robot = biped(imus=['root'], ft_sensors=['l_leg', 'r_leg'])
    rest = standing(robot, rng.uniform(-1.0, 1.0, 5), shares)
    samples = [rest._replace(stamp_ns=(k + 1) * PERIOD_NS) for k in range(COUNT)]
    assert not ReadingChecks(robot).judge(samples)


def test_windows_take_samples_at_a_period_and_begin_anew_after_gaps(rng):
    checks, (sample, *_) = ReadingChecks(biped(imus=IMUS)), fast_samples(biped(imus=IMUS), rng, 1)
    stamps = np.arange(0, COUNT * PERIOD_NS, PERIOD_NS // 10)
    windows = [checks.add(sample._replace(stamp_ns=int(t) + 1)) for t in stamps]
    assert [len(one) for one in windows if one] == [COUNT]
    assert not checks.add(sample._replace(stamp_ns=10 * COUNT * PERIOD_NS))
    assert not checks.add(sample._replace(stamp_ns=1))


LEAPING = {
    # Loads in shares of the limit, period [ms], samples that leap, those that leap out and back.
    'out and back; half a limit a cycle; one that stays': (
        [0.0, 1.2, 0.0, 0.6, 1.2, 0.6, 0.0, 0.0, 1.2, 1.2], 1, (1, 2, 8), [1]
    ),
    'beside missing readings': (
        [0.0, np.nan, 1.2, 0.0, 0.0, 1.2, np.nan, np.nan, 0.0, 0.0], 25, (2, 3, 5, 8), [2, 5]
    ),
    'after many of them': ([0.0, *[np.nan] * 6, 1.2, 1.2, 0.0], 25, (9,), []),
}  # fmt: skip


@pytest.mark.parametrize('pieces', [1, 3])
@pytest.mark.parametrize('case', LEAPING)
def test_leaps_of_readings_are_found_and_loads_are_none(rng, case, pieces):
    """Beside a sensor without readings."""
    (loads, period, leaping, alone), robot = LEAPING[case], biped(imus=IMUS)
    checks, name = ReadingChecks(robot), robot.ft_sensors[0].name
    samples = fast_samples(robot, rng)
    readings = np.tile(samples[0].ft_readings, (COUNT, 1, 1))
    readings[:, 0, 2] += checks.max_leap * np.array(loads)
    readings[np.isnan(loads), 0] = readings[:, 1] = np.nan
    stamps = (1 + np.arange(COUNT)) * period * 10**6
    batch = replace(SampleBatch.stack(samples), ft_readings=readings, stamp_ns=stamps)
    expected = [{(name, 'ft')} if k in leaping else set() for k in range(COUNT)]
    at = [
        checks.at(one.stamp_ns, checks.known.changes(one)[0])
        for one in map(batch.__getitem__, range(COUNT))
    ]
    assert at == expected
    assert checks.judge(samples) and [one.subject for one in checks.findings] == [name]
    follower, found = ReadingChecks(robot), []
    for part in np.array_split(np.arange(COUNT), pieces):
        failing, numbers = follower.follow(batch.take(part))
        found += [failing[k] for k in numbers]
    assert found == expected and (name, 'rating') in follower.seen
    kept, found = without_leaps(robot, batch)
    assert [one.subject for one in found] == [name]
    lost = np.isnan(kept.ft_readings) & ~np.isnan(readings)
    assert np.unique(np.argwhere(lost)[:, :2], axis=0).tolist() == [[k, 0] for k in alone]


def test_an_effort_that_leaps_out_and_back_is_left_out(rng):
    """A jump that stays, noise and a constant are none."""
    robot = biped(imus=IMUS)
    batch = SampleBatch.stack(fast_samples(robot, rng, 9))
    efforts = rng.normal(size=batch.positions.shape)
    efforts[4:, 1], efforts[:, 2] = 50.0, 3.0
    efforts[6, 0], efforts[2, 3] = 400.0, np.nan
    kept, found = without_leaps(robot, replace(batch, efforts=efforts))
    assert [(one.subject, one.code) for one in found] == [(robot.joint_names[0], 'rating')]
    efforts[6, 0] = np.nan
    np.testing.assert_array_equal(kept.efforts, efforts)
