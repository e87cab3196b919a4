# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Results without a missing FT sensor, IMU or joint: what depends on it is marked, the rest stays.

What lies apart from a missing FT sensor is equal bit by bit to the estimate without fault; where
an IMU or a joint is missing, other sums are built, and round-off may differ. Not covered: which
results depend on which joint (test_newton_euler.py), batches (test_wrench_estimator.py).
"""

from itertools import combinations

import brute_force
import numpy as np
import pytest
from consistent_readings import ConsistentReadings, random_motion
from robots import assert_close, at_ends, at_roots, nested_humanoid_urdf, random_sample

from inertial_estimation.estimation.contacts import Contact, ContactSet
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch, SensorState

EXACT = 1e-9  # N and Nm: round-off of some hundred N through a few joints
IMU_FIELDS = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')
JOINT_FIELDS = ('positions', 'velocities', 'accelerations')
FIELDS = (*JOINT_FIELDS, *IMU_FIELDS, 'ft_readings')
NOTHING = [np.nan, np.inf, -np.inf]
MERGED, DROPPED, MISSING = Quality.MERGED, Quality.DROPPED, Quality.MISSING
UNDETERMINED = Quality.UNDETERMINED
ANY_THREE = [c for n in (1, 2, 3) for c in combinations(range(3), n)]
RESULTS = {
    'wrenches': 'contact_quality',
    'torques': 'torque_quality',
    'external_torques': 'external_torque_quality',
    'residuals': 'submodel_quality',
}


@pytest.fixture
def robot():
    return Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'hand', 'shank'])


def without_fts(sample, rows):
    """Return the sample with one number of some FT readings missing."""
    readings = sample.ft_readings.copy()
    readings[list(rows), [k % 6 for k in rows]] = np.nan
    return sample._replace(ft_readings=readings)


def assert_nan_where_marked(estimate):
    """Hold every result against its mark: NaN if missing or dropped, a number otherwise."""
    for name in ('wrenches', 'torques', 'external_torques'):
        marks, nan = getattr(estimate, RESULTS[name]), np.isnan(getattr(estimate, name))
        expected = (marks & (MISSING | DROPPED)) != 0
        for found in (nan.any(axis=-1), nan.all(axis=-1)) if nan.ndim == 2 else (nan,):
            np.testing.assert_array_equal(found, expected)


# FT sensors


def joints_between(robot, one, links):
    """Return whether each joint lies between a link and any of some others."""
    found = np.zeros(len(robot.joint_names), dtype=bool)
    for k, link in enumerate(robot.links):
        if link.joint >= 0:
            beyond = brute_force.beyond(robot, k)
            found[link.joint] = any((one in beyond) != (other in beyond) for other in links)
    return found


@pytest.mark.parametrize('fixed', ['', 'foot'])
@pytest.mark.parametrize('contacts', [at_ends, at_roots])
@pytest.mark.parametrize('missing', ANY_THREE)
def test_submodels_merge_across_missing_sensors(missing, contacts, fixed, rng):
    """The first contact keeps the sum of both sides; what lies apart does not change a bit."""
    robot = Robot.from_urdf(
        nested_humanoid_urdf(), imus=['head', 'hand', 'shank'], fixed_link=fixed
    )
    contacts = contacts(robot)
    estimator = WrenchEstimator(robot, contacts)
    sample = random_sample(robot, rng)
    whole = estimator.update(sample)
    estimate = estimator.update(without_fts(sample, missing))
    left = [k for k in range(3) if k not in missing]
    merged = brute_force.submodel_roots(robot, left)
    own = brute_force.submodel_roots(robot, range(3))
    _, stay = np.unique([merged[robot.frame(c.frame)[0]] for c in contacts], return_index=True)
    stay = sorted(stay)
    answer = brute_force.estimate(robot, sample, [contacts[c] for c in stay], fts=left)
    assert_close(estimate.wrenches[stay], answer.wrenches)
    assert_close(estimate.torques, answer.torques)
    grown = {root for root, old in zip(merged, own) if root != old}
    for c, contact in enumerate(contacts):
        grew = merged[robot.frame(contact.frame)[0]] in grown
        expected = 0 if not grew else MERGED if c in stay else MERGED | DROPPED
        assert estimate.contact_quality[c] == expected
        if not grew:
            np.testing.assert_array_equal(estimate.wrenches[c], whole.wrenches[c])
    for row, submodel in enumerate(robot.submodels):
        root = merged[submodel.root]
        assert estimate.submodel_quality[row] == (MERGED if root in grown else 0)
        assert (np.isnan(estimate.residuals[row]) == (root != submodel.root)).all()
        if root not in grown:
            joints = [robot.links[k].joint for k in submodel.links if robot.links[k].joint >= 0]
            np.testing.assert_array_equal(estimate.torques[joints], whole.torques[joints])
            np.testing.assert_array_equal(estimate.torque_quality[joints], 0)
    assert_nan_where_marked(estimate)
    # External torques between the base and a contact that merged.
    marked = [robot.frame(contacts[c].frame)[0] for c in np.flatnonzero(estimate.contact_quality)]
    expected = MERGED * joints_between(robot, robot.base, marked)
    np.testing.assert_array_equal(estimate.external_torque_quality, expected)


# Contacts that the sensors do not distinguish


@pytest.mark.parametrize('fixed', ['', 'head'])
@pytest.mark.parametrize('first', ['root', 'shoulder', 'hip'])
@pytest.mark.parametrize('second', ['chest', 'head'])
def test_undetermined_wrenches_and_torques_are_marked(first, second, fixed, rng):
    """Of two full wrenches only the sum is known, and with it the torques that hold both."""
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'], fixed_link=fixed)
    contacts = (Contact(first), Contact(second), Contact('hand'))
    estimate = WrenchEstimator(robot, contacts).update(random_sample(robot, rng))
    np.testing.assert_array_equal(estimate.contact_quality, [UNDETERMINED, UNDETERMINED, 0])
    assert estimate.ranks[0] == 6
    np.testing.assert_array_equal(estimate.submodel_quality, 0)
    one, two = (robot.frame(frame)[0] for frame in (first, second))
    expected = UNDETERMINED * joints_between(robot, one, [two])
    np.testing.assert_array_equal(estimate.torque_quality, expected)
    np.testing.assert_array_equal(estimate.external_torque_quality, expected)


def test_combination_that_is_left_out_is_marked(robot, rng):
    """Three forces nearly on a line: without the moment about it the sum is not whole."""
    points = [(0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (0.2, 1e-6, 0.0)]
    contacts = [Contact('shank', 'force', point, name=f'{point}') for point in points]
    estimate = WrenchEstimator(robot, contacts).update(random_sample(robot, rng))
    (row,) = (k for k, s in enumerate(robot.submodels) if s.name == 'thigh')
    assert estimate.ranks[row] == 5
    assert estimate.submodel_quality[row] == UNDETERMINED
    marked = dict(zip(robot.joint_names, estimate.torque_quality, strict=True))
    assert {name for name, mark in marked.items() if mark} == {'knee'}


# Joints


def test_what_moves_with_an_assumed_joint_is_marked(robot, rng):
    estimator, sample = WrenchEstimator(robot, at_ends(robot)), random_sample(robot, rng)
    plain = estimator.update(sample)
    for joint in np.eye(len(robot.joint_names)):
        states = np.where(joint, SensorState.ASSUMED, SensorState.FRESH).astype(np.uint8)
        moved = {name: getattr(sample, name) + joint for name in JOINT_FIELDS}
        before = estimator.update(sample._replace(joint_states=states))
        np.testing.assert_array_equal(before.torques, plain.torques)
        after = estimator.update(sample._replace(**moved))
        gone = np.where(joint, np.nan, sample.positions)
        missing = estimator.update(sample._replace(positions=gone, joint_states=states))
        for name in ('wrenches', 'torques', 'external_torques'):
            changed = ~np.isclose(getattr(after, name), getattr(before, name), atol=EXACT)
            changed = changed.reshape(len(changed), -1).any(axis=1)
            marked = (getattr(before, RESULTS[name]) & Quality.ASSUMED) != 0
            np.testing.assert_array_equal(marked, changed, err_msg=name)
            lost = (getattr(missing, RESULTS[name]) & MISSING) != 0
            np.testing.assert_array_equal(lost, marked, err_msg=name)


# Everything at once


@pytest.mark.parametrize('contacts', [at_roots, at_ends])
def test_unmarked_results_are_exact_whatever_sensors_fail(contacts, rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['root', 'head', 'hand', 'shank'])
    contacts = contacts(robot)
    estimator, readings = WrenchEstimator(robot, contacts), ConsistentReadings(robot)
    clean = marked = 0
    for draw in range(60):
        truth = rng.normal(size=(len(contacts), 6)) * ([30.0] * 3 + [3.0] * 3)
        wrenches = {contact.frame: wrench for contact, wrench in zip(contacts, truth)}
        sample, torques, _ = readings.sample(random_motion(robot, rng), wrenches)
        arrays = {name: getattr(sample, name).copy() for name in FIELDS}
        for array in arrays.values():
            array[rng.random(array.shape) < 0.04] = rng.choice(NOTHING)
        arrays['angular_velocities'][: 4 * (draw == 0)] = np.nan
        estimate = estimator.update(sample._replace(**arrays))
        if draw == 0:
            assert ((estimate.quality & MISSING) != 0).all()
            continue
        assert_nan_where_marked(estimate)
        for name, exact in (
            ('wrenches', truth), ('torques', torques), ('residuals', np.zeros_like(truth))
        ):  # fmt: skip
            kept = getattr(estimate, RESULTS[name]) == 0
            found = getattr(estimate, name)[kept]
            np.testing.assert_allclose(found, exact[kept], rtol=0.0, atol=EXACT)
            clean, marked = clean + kept.sum(), marked + (~kept).sum()
    assert clean > 100 and marked > 100


def test_estimates_do_not_depend_on_what_the_sample_before_lacked(robot, rng):
    contacts, sample = at_ends(robot), random_sample(robot, rng)
    kinds = [sample]
    for name, number in [(name, n) for name in FIELDS for n in (np.nan, np.inf)]:
        for row in (0, -1):
            array = getattr(sample, name).copy()
            array[row] = number
            kinds.append(sample._replace(**{name: array}))
    kept, others = WrenchEstimator(robot, contacts), robot.parameters.copy()
    others[:, 0] += 0.1
    for draw in rng.integers(len(kinds), size=300):
        if draw == 0:
            kept.set_parameters(others if rng.random() < 0.5 else robot.parameters)
        # Each kind comes twice, as the second sample goes another way than the first.
        kept.update(kinds[draw])
        found = kept.update(kinds[draw])
        fresh = WrenchEstimator(kept.robot, contacts).update(kinds[draw])
        for name in found._fields[2:]:
            np.testing.assert_array_equal(getattr(found, name), getattr(fresh, name))


def test_an_estimate_does_not_depend_on_a_batch_with_other_points_of_contact(robot, rng):
    there, elsewhere = (
        ContactSet.reported([Contact('hand', 'force', point), Contact('head')])
        for point in ((0.0, 0.0, 0.1), (0.2, 0.0, -0.1))
    )
    estimator, sample = WrenchEstimator(robot), random_sample(robot, rng)
    for one in (sample, without_fts(sample, [0])):
        before = estimator.update(one, there)
        estimator.batch(SampleBatch.stack([one]), elsewhere)
        after = estimator.update(one, there)
        for name in before._fields[1:]:
            np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
