# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of the wrong kind or shape are refused at the door of the estimator."""

from dataclasses import replace

import numpy as np
import pytest
from robots import nested_humanoid_urdf, random_sample

from inertial_estimation import (
    Contact,
    ContactSet,
    InternalWrenches,
    Robot,
    SampleBatch,
    WrenchEstimator,
    dependence_table,
)
from inertial_estimation.errors import InertialEstimationError, NameNotFound
from inertial_estimation.estimation.dependence import find_informed
from inertial_estimation.estimation.sensor_residuals import sensor_residuals

ROBOT = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'foot'])
CONTACTS = [Contact('sole'), Contact('hand')]
ESTIMATOR = WrenchEstimator(ROBOT, CONTACTS)
SAMPLE = random_sample(ROBOT, np.random.default_rng(1))
ESTIMATE = ESTIMATOR.update(SAMPLE)
BATCH = SampleBatch.stack([SAMPLE, SAMPLE])
WRENCHES = InternalWrenches(ESTIMATOR)


@pytest.mark.parametrize(
    'call',
    [
        lambda given: dependence_table(ROBOT, given),
        lambda given: WrenchEstimator(ROBOT, given),
        lambda given: ESTIMATOR.with_touches(given),
        lambda given: ESTIMATOR.update(SAMPLE, given or 0),
        ContactSet.felt,
    ],
)
@pytest.mark.parametrize('given', [['sole'], 'sole', None, 3, [None], Contact('sole')])
def test_contacts_of_another_type_are_refused(call, given):
    with pytest.raises(InertialEstimationError):
        call(given)


def test_sensors_are_given_by_name_or_by_row():
    by_name = dependence_table(ROBOT, CONTACTS, imus=['foot'], fts=['leg_sensor', 'arm_sensor'])
    assert by_name == dependence_table(ROBOT, CONTACTS, imus=[1], fts=[0, 1])
    assert by_name != dependence_table(ROBOT, CONTACTS)
    assert find_informed(ROBOT, CONTACTS, ['leg_sensor']) == find_informed(ROBOT, CONTACTS, 1)


@pytest.mark.parametrize('which', ['imus', 'fts'])
@pytest.mark.parametrize('given', [['x'], [7], [-1], [0.5], [None], [True], 3.5])
def test_unknown_sensors_are_refused(which, given):
    with pytest.raises(InertialEstimationError):
        dependence_table(ROBOT, CONTACTS, **{which: given})


def test_one_joint_alone_is_a_list_of_one():
    whole = WRENCHES.of(SAMPLE, ESTIMATE, ['knee'])
    np.testing.assert_array_equal(WRENCHES.of(SAMPLE, ESTIMATE, 'knee'), whole)
    with pytest.raises(NameNotFound):
        WRENCHES.of(SAMPLE, ESTIMATE, 'kne')


WRONG = [
    SAMPLE._replace(positions=np.zeros(2)),
    SAMPLE._replace(positions=[0.0] * 6),
    SAMPLE._replace(positions=None),
    SAMPLE._replace(velocities=np.array(['a'] * 6)),
    SAMPLE._replace(ft_readings=np.array([[None] * 6] * 3)),
    SAMPLE._replace(joint_states=np.zeros(2, dtype=np.uint8)),
    BATCH,
    ESTIMATE,
    None,
]


@pytest.mark.parametrize('given', WRONG)
def test_samples_of_another_type_or_shape_are_refused(given):
    with pytest.raises(InertialEstimationError):
        ESTIMATOR.update(given)
    with pytest.raises(InertialEstimationError):
        WRENCHES.net(given, ESTIMATE)


@pytest.mark.parametrize(
    'given',
    [None, SAMPLE, [SAMPLE], replace(BATCH, positions=np.zeros((2, 1))),
     replace(BATCH, velocities=np.array([['a'] * 6] * 2))],
)  # fmt: skip
def test_batches_of_another_type_or_shape_are_refused(given):
    for call in (ESTIMATOR.batch, lambda one: sensor_residuals(ESTIMATOR, one)):
        with pytest.raises(InertialEstimationError):
            call(given)


def test_estimates_of_another_type_are_refused():
    for given in (None, SAMPLE):
        with pytest.raises(InertialEstimationError):
            WRENCHES.net(SAMPLE, given)


@pytest.mark.parametrize('option', ['length_scale', 'rank_tolerance', 'calibration'])
@pytest.mark.parametrize('given', ['x', [1.0], -1.0, float('nan')])
def test_options_out_of_range_are_refused(option, given):
    with pytest.raises(InertialEstimationError):
        WrenchEstimator(ROBOT, CONTACTS, **{option: given})
