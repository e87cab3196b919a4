# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What a missing FT sensor, IMU or joint costs: that, and not a bit more.

What lies apart from a missing FT sensor is equal bit by bit to the estimate without fault; where
an IMU or a joint is missing, other sums are built or other zeros added, and round-off may differ.
Not covered: which results rest on which joint (test_dependence.py), batches
(test_wrench_estimator.py).
"""

from itertools import combinations

import brute_force
import numpy as np
import pytest
from robots import nested_humanoid_urdf, random_sample

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SensorState

# Relative to the largest number of a result: round-off of sums over some forty links.
ROUND_OFF = 1e-12
LEAST_SQUARES = 1e-10
IMU_FIELDS = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')
JOINT_FIELDS = ('positions', 'velocities', 'accelerations')
NOTHING = [np.nan, np.inf, -np.inf]
MERGED, DROPPED, MISSING = Quality.MERGED, Quality.DROPPED, Quality.MISSING


@pytest.fixture
def robot():
    return Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'hand', 'shank'])


def at_ends(robot):
    return tuple(Contact(robot.link_names[submodel.links[-1]]) for submodel in robot.submodels)


def at_roots(robot):
    return tuple(Contact(submodel.name) for submodel in robot.submodels)


def without(sample, field, row, value=np.nan, column=0):
    """Return the sample with one number of a field missing."""
    array = getattr(sample, field).copy()
    array[(row, column) if array.ndim == 2 else row] = value
    return sample._replace(**{field: array})


def without_fts(sample, rows):
    for k in rows:
        sample = without(sample, 'ft_readings', k, column=k % 6)
    return sample


def assert_close(got, expected, tolerance=ROUND_OFF, what=''):
    size = max(1.0, np.nanmax(np.abs(expected), initial=0.0))
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * size, err_msg=what)


def assert_nan_where_marked(estimate):
    """Hold every result against its mark: NaN if missing or dropped, a number otherwise."""
    lost = MISSING | DROPPED
    for values, marks in (
        (estimate.wrenches, estimate.contact_quality),
        (estimate.torques, estimate.torque_quality),
        (estimate.external_torques, estimate.external_torque_quality),
    ):
        nan = np.isnan(values)
        expected = (marks & lost) != 0
        np.testing.assert_array_equal(nan.any(axis=-1) if nan.ndim == 2 else nan, expected)
        if nan.ndim == 2:
            np.testing.assert_array_equal(nan.all(axis=-1), expected)


def rows_of(robot, links):
    """Return the joints whose child is among some links."""
    return [link.joint for k, link in enumerate(robot.links) if k in links and link.joint >= 0]


# FT sensors


@pytest.mark.parametrize('value', NOTHING)
@pytest.mark.parametrize('column', range(6))
def test_any_number_of_a_reading_may_be_missing(robot, column, value, rng):
    estimator = WrenchEstimator(robot, at_ends(robot))
    sample = random_sample(robot, rng)
    for k in range(3):
        estimate = estimator.update(without(sample, 'ft_readings', k, value, column))
        np.testing.assert_array_equal(estimate.used_fts, [n != k for n in range(3)])
        expected = estimator.update(without_fts(sample, [k]))
        np.testing.assert_array_equal(estimate.torques, expected.torques)
        np.testing.assert_array_equal(estimate.wrenches, expected.wrenches)


@pytest.mark.parametrize('contacts', [at_ends, at_roots])
@pytest.mark.parametrize('missing', [c for n in (1, 2, 3) for c in combinations(range(3), n)])
def test_submodels_merge_across_missing_sensors(robot, missing, contacts, rng):
    """The first contact keeps the sum of both sides; what lies apart does not change a bit."""
    contacts = contacts(robot)
    estimator = WrenchEstimator(robot, contacts)
    sample = random_sample(robot, rng)
    whole = estimator.update(sample)
    estimate = estimator.update(without_fts(sample, missing))
    left = [k for k in range(3) if k not in missing]
    merged = brute_force.submodel_roots(robot, left)
    own = brute_force.submodel_roots(robot, range(3))
    first = {}
    for c, contact in enumerate(contacts):
        first.setdefault(merged[robot.frame(contact.frame)[0]], c)
    stay = sorted(first.values())
    answer = brute_force.estimate(robot, sample, [contacts[c] for c in stay], fts=left)
    assert_close(estimate.wrenches[stay], answer.wrenches)
    assert_close(estimate.torques, answer.torques)
    for c, contact in enumerate(contacts):
        root = merged[robot.frame(contact.frame)[0]]
        grew = any(own[k] != root for k in range(len(own)) if merged[k] == root)
        expected = 0 if not grew else MERGED if c in stay else MERGED | DROPPED
        assert estimate.contact_quality[c] == expected
        if not grew:
            np.testing.assert_array_equal(estimate.wrenches[c], whole.wrenches[c])
    for row, submodel in enumerate(robot.submodels):
        alike = [k for k in range(len(own)) if merged[k] == merged[submodel.root]]
        grew = any(own[k] != submodel.root for k in alike)
        assert estimate.submodel_quality[row] == (MERGED if grew else 0)
        absorbed = merged[submodel.root] != submodel.root
        np.testing.assert_array_equal(np.isnan(estimate.residuals[row]), absorbed)
        if not grew:
            joints = rows_of(robot, submodel.links)
            np.testing.assert_array_equal(estimate.torques[joints], whole.torques[joints])
            np.testing.assert_array_equal(estimate.torque_quality[joints], 0)
    assert_nan_where_marked(estimate)


def test_torques_between_the_contacts_of_merged_submodels_are_marked(robot, rng):
    """The foot's contact gives way: its wrench is looked for at the thigh, above the knee."""
    contacts = [Contact('thigh'), Contact('hand'), Contact('foot'), Contact('root')]
    sensor = [s.name for s in robot.ft_sensors].index('foot_sensor')
    estimator = WrenchEstimator(robot, contacts)
    estimate = estimator.update(without_fts(random_sample(robot, rng), [sensor]))
    np.testing.assert_array_equal(estimate.contact_quality, [MERGED, 0, MERGED | DROPPED, 0])
    marks = dict(zip(robot.joint_names, estimate.torque_quality, strict=True))
    assert {name for name, mark in marks.items() if mark} == {'knee'}
    assert marks['knee'] == MERGED


@pytest.mark.parametrize('fixed', ['', 'hand', 'foot'])
@pytest.mark.parametrize('missing', [c for n in (1, 2, 3) for c in combinations(range(3), n)])
def test_external_torques_between_base_and_merged_contacts_are_marked(missing, fixed, rng):
    """Contacts count whether they take part or gave way; nothing else does."""
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'], fixed_link=fixed)
    contacts = at_ends(robot)
    sample = without_fts(random_sample(robot, rng), missing)
    estimate = WrenchEstimator(robot, contacts).update(sample)
    expected = np.zeros(len(robot.joint_names), dtype=np.uint8)
    for k, link in enumerate(robot.links):
        beyond = brute_force.beyond(robot, k)
        for contact, mark in zip(contacts, estimate.contact_quality, strict=True):
            apart = (robot.frame(contact.frame)[0] in beyond) != (robot.base in beyond)
            if link.joint >= 0 and mark and apart:
                expected[link.joint] = MERGED
    np.testing.assert_array_equal(estimate.external_torque_quality, expected)


def test_the_priority_is_the_order_of_the_contacts(robot, rng):
    sensor = [s.name for s in robot.ft_sensors].index('foot_sensor')
    sample = without_fts(random_sample(robot, rng), [sensor])
    for names in (('thigh', 'foot'), ('foot', 'thigh')):
        estimate = WrenchEstimator(robot, [Contact(name) for name in names]).update(sample)
        np.testing.assert_array_equal(estimate.contact_quality, [MERGED, MERGED | DROPPED])
        answer = brute_force.estimate(
            robot, sample, [Contact(names[0])], fts=[k for k in range(3) if k != sensor]
        )
        assert_close(estimate.wrenches[0], answer.wrenches[0])


def test_contacts_of_the_moment_do_not_give_way(robot, rng):
    """Two full wrenches are 12 unknowns for 6 rows then: split in the shortest way, and marked."""
    contacts = at_ends(robot)
    sensor = [s.name for s in robot.ft_sensors].index('foot_sensor')
    sample = random_sample(robot, rng)
    estimate = WrenchEstimator(robot).update(without_fts(sample, [sensor]), contacts)
    assert not (estimate.contact_quality & DROPPED).any()
    split = MERGED | Quality.UNDETERMINED
    expected = [split if c.frame in ('shank', 'foot') else 0 for c in contacts]
    np.testing.assert_array_equal(estimate.contact_quality, expected)
    left = [k for k in range(3) if k != sensor]
    answer = brute_force.estimate(robot, sample, contacts, fts=left)
    assert_close(estimate.wrenches, answer.wrenches, LEAST_SQUARES)


# Contacts that the sensors do not tell apart


@pytest.mark.parametrize('fixed', ['', 'head'])
@pytest.mark.parametrize('first', ['root', 'chest', 'shoulder', 'hip'])
@pytest.mark.parametrize('second', ['chest', 'head', 'hip'])
def test_what_is_shared_at_will_is_marked(first, second, fixed, rng):
    """Of two full wrenches only the sum is known, and with it the torques that hold both."""
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'], fixed_link=fixed)
    contacts = (Contact(first), Contact(second), Contact('hand'))
    estimate = WrenchEstimator(robot, contacts).update(random_sample(robot, rng))
    undetermined = Quality.UNDETERMINED
    np.testing.assert_array_equal(estimate.contact_quality, [undetermined, undetermined, 0])
    assert estimate.ranks[0] == 6
    np.testing.assert_array_equal(estimate.submodel_quality, 0)
    torques, external = np.zeros((2, len(robot.joint_names)), dtype=np.uint8)
    one, two = (robot.frame(frame)[0] for frame in (first, second))
    for k, link in enumerate(robot.links):
        beyond = brute_force.beyond(robot, k)
        if link.joint >= 0 and (one in beyond) != (two in beyond):
            torques[link.joint] = external[link.joint] = undetermined
    np.testing.assert_array_equal(estimate.torque_quality, torques)
    np.testing.assert_array_equal(estimate.external_torque_quality, external)


def test_a_small_part_that_is_left_out_is_marked_where_it_is_missing(robot, rng):
    """Three forces nearly on a line: without the moment about it the sum is not whole."""
    points = [(0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (0.2, 1e-6, 0.0)]
    contacts = [Contact('shank', 'force', point, name=f'{point}') for point in points]
    estimate = WrenchEstimator(robot, contacts).update(random_sample(robot, rng))
    (row,) = (k for k, s in enumerate(robot.submodels) if s.name == 'thigh')
    assert estimate.ranks[row] == 5
    assert estimate.submodel_quality[row] == Quality.UNDETERMINED
    marked = dict(zip(robot.joint_names, estimate.torque_quality, strict=True))
    assert {name for name, mark in marked.items() if mark} == {'knee'}


# IMUs


@pytest.mark.parametrize('field', IMU_FIELDS)
@pytest.mark.parametrize('value', NOTHING)
@pytest.mark.parametrize('missing', [c for n in (1, 2) for c in combinations(range(3), n)])
def test_neighbours_take_over_from_missing_imus(robot, missing, value, field, rng):
    contacts = at_ends(robot)
    estimator = WrenchEstimator(robot, contacts)
    sample = random_sample(robot, rng)
    whole, faulty = estimator.update(sample), sample
    for k in missing:
        faulty = without(faulty, field, k, value, column=k)
    estimate = estimator.update(faulty)
    left = [k for k in range(3) if k not in missing]
    np.testing.assert_array_equal(estimate.used_imus, [k in left for k in range(3)])
    answer = brute_force.estimate(robot, sample, contacts, imus=left)
    assert_close(estimate.wrenches, answer.wrenches)
    assert_close(estimate.torques, answer.torques)
    for marks in (estimate.contact_quality, estimate.torque_quality, estimate.submodel_quality):
        np.testing.assert_array_equal(marks, 0)
    links = [imu.link for imu in robot.imus]
    before = brute_force.owners(robot, links)
    for row, submodel in enumerate(robot.submodels):
        if not {before[k] for k in submodel.links} & set(missing):
            assert_close(estimate.wrenches[row], whole.wrenches[row])
            joints = rows_of(robot, submodel.links)
            assert_close(estimate.torques[joints], whole.torques[joints])


def test_without_any_imu_nothing_can_be_said(robot, rng):
    estimator = WrenchEstimator(robot, at_ends(robot))
    sample = random_sample(robot, rng)
    before = estimator.update(sample)
    sample_without = sample
    for k, field in enumerate(IMU_FIELDS):
        sample_without = without(sample_without, field, k)
    estimate = estimator.update(sample_without)
    for name in ('wrenches', 'torques', 'external_torques', 'residuals'):
        assert np.isnan(getattr(estimate, name)).all()
    for name in ('contact', 'torque', 'external_torque', 'submodel'):
        np.testing.assert_array_equal(getattr(estimate, f'{name}_quality'), MISSING)
    assert not estimate.used_imus.any()
    assert estimate.used_fts.all()
    after = estimator.update(sample)
    np.testing.assert_array_equal(after.torques, before.torques)


def test_imus_of_one_link_are_averaged_and_stand_in_for_each_other(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', ('second', 'head'), 'foot'])
    estimator = WrenchEstimator(robot, at_ends(robot))
    sample = random_sample(robot, rng)
    before = estimator.update(sample)
    np.testing.assert_array_equal(before.used_imus, [True, True, True])
    assert_close(before.wrenches, brute_force.estimate(robot, sample, at_ends(robot)).wrenches)
    for k in (0, 1):
        left = [row for row in range(3) if row != k]
        after = estimator.update(without(sample, 'proper_accelerations', k))
        np.testing.assert_array_equal(np.flatnonzero(after.used_imus), left)
        answer = brute_force.estimate(robot, sample, at_ends(robot), imus=left)
        assert_close(after.wrenches, answer.wrenches)


# Joints


@pytest.mark.parametrize('field', JOINT_FIELDS)
@pytest.mark.parametrize('value', NOTHING)
@pytest.mark.parametrize('contacts', [at_ends, at_roots, lambda robot: ()])
def test_a_missing_joint_costs_only_what_rests_on_it(robot, contacts, value, field, rng):
    contacts = contacts(robot)
    estimator = WrenchEstimator(robot, contacts)
    sample = random_sample(robot, rng)
    whole = estimator.update(sample)
    lost = 0
    for j in range(len(robot.joint_names)):
        estimate = estimator.update(without(sample, field, j, value))
        assert_nan_where_marked(estimate)
        for name, quality in (
            ('wrenches', 'contact_quality'),
            ('torques', 'torque_quality'),
            ('external_torques', 'external_torque_quality'),
            ('residuals', 'submodel_quality'),
        ):
            marks = getattr(estimate, quality)
            assert set(marks) <= {0, MISSING}
            kept = marks == 0
            # Not bit by bit: results are summed in the axes of the root link, which the joint may
            # have turned.
            assert_close(getattr(estimate, name)[kept], getattr(whole, name)[kept], what=name)
            lost += (~kept).sum()
        assert estimate.used_fts.all() and estimate.used_imus.all()
    assert lost


def test_assumed_joints_are_marked_and_used(robot, rng):
    contacts = at_ends(robot)
    estimator = WrenchEstimator(robot, contacts)
    sample = random_sample(robot, rng)
    states = np.full(len(robot.joint_names), SensorState.FRESH, dtype=np.uint8)
    plain = estimator.update(sample)
    fresh = estimator.update(sample._replace(joint_states=states))
    np.testing.assert_array_equal(fresh.torque_quality, 0)
    states[robot.joint_names.index('elbow')] = SensorState.ASSUMED
    assumed = estimator.update(sample._replace(joint_states=states))
    np.testing.assert_array_equal(assumed.torques, plain.torques)
    np.testing.assert_array_equal(assumed.wrenches, plain.wrenches)
    marks = dict(zip(robot.joint_names, assumed.torque_quality, strict=True))
    assert [name for name, mark in marks.items() if mark] == ['elbow']
    by_frame = dict(zip((c.frame for c in contacts), assumed.contact_quality, strict=True))
    assert by_frame['hand'] == Quality.ASSUMED
    assert by_frame['foot'] == by_frame['shank'] == 0
    missing = estimator.update(
        without(sample, 'positions', robot.joint_names.index('elbow'))._replace(
            joint_states=states
        )
    )
    assert missing.contact_quality[[c.frame for c in contacts].index('hand')] & MISSING


# Everything at once


def test_every_combination_of_faults_is_a_result(robot, rng):
    """No exception, no unmarked NaN, and the faultless estimate afterwards."""
    estimator = WrenchEstimator(robot, at_ends(robot))
    sample = random_sample(robot, rng)
    expected = estimator.update(sample)
    fields = [*JOINT_FIELDS, *IMU_FIELDS, 'ft_readings']
    for _ in range(100):
        faulty = sample
        for field in rng.choice(fields, rng.integers(1, 8)):
            size = getattr(sample, field).shape
            row, column = rng.integers(size[0]), rng.integers(size[-1])
            faulty = without(faulty, field, row, rng.choice(NOTHING), column)
        assert_nan_where_marked(estimator.update(faulty))
    np.testing.assert_array_equal(estimator.update(sample).torques, expected.torques)
