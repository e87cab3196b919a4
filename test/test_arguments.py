# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What the library says to arguments of the wrong kind: the thing, the value, the remedy.

Never an error of Python or NumPy alone. Not covered: what robots are read from (test_robot.py),
settings (test_config.py), the models of chapters 2 and 3 (test_model_arguments.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from robots import nested_humanoid_urdf, random_sample

from inertial_estimation import (
    Contact,
    ContactSet,
    InternalWrenches,
    Robot,
    Sample,
    SampleBatch,
    WrenchEstimator,
    dependence_table,
)
from inertial_estimation.check import check_robot, check_settings
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import InertialEstimationError, NameNotFound
from inertial_estimation.estimation.dependence import find_informed
from inertial_estimation.estimation.momentum_check import MomentumCheck
from inertial_estimation.estimation.sensor_residuals import sensor_residuals

ROBOT = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'foot'])
CONTACTS = [Contact('sole'), Contact('hand')]
ESTIMATOR = WrenchEstimator(ROBOT, CONTACTS)
SAMPLE = random_sample(ROBOT, np.random.default_rng(1))
ESTIMATE = ESTIMATOR.update(SAMPLE)
BATCH = SampleBatch.stack([SAMPLE, SAMPLE])
WRENCHES = InternalWrenches(ESTIMATOR)
Call = Callable[[Any], Any]


def with_array(name: str, value: Any) -> Sample:
    """Return the sample with another array."""
    return SAMPLE._replace(**{name: value})


@pytest.mark.parametrize(
    'call',
    [
        lambda given: dependence_table(ROBOT, given),
        lambda given: find_informed(ROBOT, given, [0]),
        lambda given: WrenchEstimator(ROBOT, given),
        lambda given: ESTIMATOR.with_touches(given),
        lambda given: ESTIMATOR.update(SAMPLE, given or 0),
        lambda given: ESTIMATOR.batch(BATCH, given or 0),
        ContactSet.felt,
        lambda given: ContactSet(given, (False,)),
    ],
)
@pytest.mark.parametrize('given', [['sole'], 'sole', None, 3, [3], [None], Contact('sole')])
def test_contacts_that_are_none_are_refused(call: Call, given: object) -> None:
    with pytest.raises(InertialEstimationError, match="'contacts' (is|holds) .*Contact"):
        call(given)


@pytest.mark.parametrize(
    ('given', 'remedy'), [(None, "Contact('name of a frame')"), ('sole', "Contact('sole')")]
)
def test_the_remedy_for_contacts_is_one(given: Any, remedy: str) -> None:
    with pytest.raises(InertialEstimationError) as caught:
        dependence_table(ROBOT, [given])
    assert str(caught.value).endswith(f'write {remedy}')


def test_lists_of_contacts_are_taken() -> None:
    """A set of lists is as good as one of tuples, and as many of each are needed."""
    lists: Any = ([Contact('sole')], [False])
    assert ContactSet(*lists) == ContactSet((Contact('sole'),), (False,))
    with pytest.raises(InertialEstimationError, match='one for each contact'):
        ContactSet((Contact('sole'),), ())


@pytest.mark.parametrize('key', ['frame', 'kind', 'name'])
@pytest.mark.parametrize('given', [None, 3, ['sole']])
def test_texts_of_a_contact_are_texts(key: str, given: Any) -> None:
    with pytest.raises(InertialEstimationError, match=f'{key} of a contact is'):
        Contact(**{'frame': 'sole', key: given})


def test_sensors_are_taken_by_name_and_by_row() -> None:
    by_name = dependence_table(ROBOT, CONTACTS, imus=['foot'], fts=['leg_sensor', 'arm_sensor'])
    assert by_name == dependence_table(ROBOT, CONTACTS, imus=[1], fts=[0, 1])
    assert by_name == dependence_table(ROBOT, CONTACTS, imus='foot', fts=np.array([1, 0]))
    assert by_name != dependence_table(ROBOT, CONTACTS)
    assert find_informed(ROBOT, CONTACTS, ['leg_sensor']) == find_informed(ROBOT, CONTACTS, 1)


@pytest.mark.parametrize('which', ['imus', 'fts'])
@pytest.mark.parametrize(
    ('given', 'said'),
    [
        (['x'], 'names .x., but no'),
        ([7], 'holds 7, expected names or numbers from 0 to'),
        ([-1], 'holds -1'),
        ([0.5], 'holds 0.5'),
        ([None], 'holds None'),
        ([True], 'holds True'),
        (np.array([True, False]), 'holds .*True'),
        (3.5, 'is 3.5, expected a list'),
    ],
)
def test_sensors_that_there_are_not_are_refused(which: str, given: Any, said: str) -> None:
    chosen: dict[str, Any] = {which: given}
    with pytest.raises(InertialEstimationError, match=f"'{which}' {said}"):
        dependence_table(ROBOT, CONTACTS, **chosen)


def test_without_any_imu_nothing_can_be_found() -> None:
    with pytest.raises(InertialEstimationError, match='nothing tells how robot'):
        dependence_table(ROBOT, CONTACTS, imus=[])


@pytest.mark.parametrize('call', [dependence_table, WrenchEstimator, check_robot, MomentumCheck])
def test_a_robot_is_a_robot(call: Callable[..., Any]) -> None:
    more = (CONTACTS,) if call in (dependence_table, WrenchEstimator) else ()
    for given in ('robot.urdf', None, ESTIMATOR):
        with pytest.raises(InertialEstimationError, match=r"'robot' is .*Robot.from_urdf"):
            call(given, *more)


def test_one_joint_alone_is_a_list_of_one() -> None:
    """A text is not taken letter by letter."""
    whole = WRENCHES.of(SAMPLE, ESTIMATE, ['knee'])
    np.testing.assert_array_equal(WRENCHES.of(SAMPLE, ESTIMATE, 'knee'), whole)
    assert WRENCHES.frames('knee') == WRENCHES.frames(['knee'])
    sums = WRENCHES.both_sums(SAMPLE, ESTIMATE, 'knee')
    np.testing.assert_array_equal(sums.away, WRENCHES.both_sums(SAMPLE, ESTIMATE, ['knee']).away)
    with pytest.raises(NameNotFound, match="no joint is named 'kne'"):
        WRENCHES.of(SAMPLE, ESTIMATE, 'kne')


@pytest.mark.parametrize('given', [None, 1, [1], [['knee']], [None]])
def test_joints_are_names(given: Any) -> None:
    with pytest.raises(InertialEstimationError, match="'joints' (is|holds)"):
        WRENCHES.of(SAMPLE, ESTIMATE, given)


@pytest.mark.parametrize(
    ('sample', 'estimate', 'said'),
    [
        (ESTIMATE, SAMPLE, "'sample' is a WrenchEstimate"),
        (None, ESTIMATE, "'sample' is None"),
        (SAMPLE, None, "'estimate' is None"),
        (BATCH, ESTIMATE, 'used_fts of the estimate'),
        (with_array('positions', np.zeros(2)), ESTIMATE, "'positions' has shape"),
        (with_array('positions', [0.0] * 6), ESTIMATE, "'positions' is a list"),
        (with_array('positions', None), ESTIMATE, "'positions' has shape"),
        (with_array('ft_readings', np.array([[None] * 6] * 3)), ESTIMATE, "'ft_readings' is an"),
    ],
)
def test_samples_and_estimates_are_such(sample: Any, estimate: Any, said: str) -> None:
    for call in (WRENCHES.net, lambda s, e: WRENCHES.of(s, e, ['knee'])):
        with pytest.raises(InertialEstimationError, match=said):
            call(sample, estimate)


def test_an_estimator_is_an_estimator() -> None:
    with pytest.raises(InertialEstimationError, match="'estimator' is .*WrenchEstimator"):
        InternalWrenches(ROBOT)  # type: ignore[arg-type]


@pytest.mark.parametrize('given', [None, np.zeros(3), {}, BATCH, ESTIMATE])
def test_update_takes_a_sample(given: Any) -> None:
    with pytest.raises(InertialEstimationError, match="'sample' is .*expected Sample"):
        ESTIMATOR.update(given)


@pytest.mark.parametrize('given', [None, np.zeros(3), {}, SAMPLE, [SAMPLE]])
def test_batch_takes_a_batch(given: Any) -> None:
    with pytest.raises(InertialEstimationError, match=r"'samples' is .*SampleBatch.stack"):
        ESTIMATOR.batch(given)


@pytest.mark.parametrize('array', ['positions', 'velocities', 'accelerations'])
@pytest.mark.parametrize('entry', [None, 'a'])
def test_arrays_hold_numbers(array: str, entry: object) -> None:
    sample = with_array(array, np.array([entry] * 6))
    with pytest.raises(InertialEstimationError, match=f"'{array}' is an array of"):
        ESTIMATOR.update(sample)
    batch = replace(BATCH, **{array: np.array([[entry] * 6] * 2)})
    with pytest.raises(InertialEstimationError, match=f"'{array}' is an array of"):
        ESTIMATOR.batch(batch)


@pytest.mark.parametrize('option', ['length_scale', 'rank_tolerance', 'calibration'])
@pytest.mark.parametrize('given', ['x', [1.0], -1.0, float('nan')])
def test_options_of_the_estimator(option: str, given: Any) -> None:
    options: dict[str, Any] = {option: given}
    with pytest.raises(InertialEstimationError, match=option):
        WrenchEstimator(ROBOT, CONTACTS, **options)


@pytest.mark.parametrize('given', [None, 3, [], 'a'])
def test_settings_are_a_dict_or_a_file(given: Any) -> None:
    with pytest.raises(InertialEstimationError, match='expected a dict of values by name'):
        EstimatorSettings.from_dict(given)
    with pytest.raises(InertialEstimationError, match="'settings' is"):
        check_settings(given, nested_humanoid_urdf())
    if given != 'a':
        with pytest.raises(InertialEstimationError, match='expected its path'):
            EstimatorSettings.from_yaml(given)


@pytest.mark.parametrize(
    ('estimator', 'samples', 'said'),
    [
        (ESTIMATOR, None, "'samples' is None"),
        (ESTIMATOR, SAMPLE, "'samples' is a Sample"),
        (ESTIMATOR, [SAMPLE], "'samples' is a list"),
        (ESTIMATOR, replace(BATCH, positions=np.zeros((2, 1))), "'positions' has shape"),
        (ROBOT, BATCH, "'estimator' is"),
    ],
)
def test_residuals_are_of_an_estimator_and_a_batch(
    estimator: Any, samples: Any, said: str
) -> None:
    with pytest.raises(InertialEstimationError, match=said):
        sensor_residuals(estimator, samples)


def test_the_check_of_momentum_takes_a_sample_and_its_estimate() -> None:
    check = MomentumCheck(ROBOT)
    for sample, estimate, said in (
        (None, ESTIMATE, "'sample' is None"),
        (BATCH, ESTIMATE, "'sample' is a SampleBatch"),
        (SAMPLE, None, "'estimate' is None"),
    ):
        with pytest.raises(InertialEstimationError, match=said):
            check.add(sample, estimate)  # type: ignore[arg-type]
    for given in (None, 'a', [0.0]):
        with pytest.raises(InertialEstimationError, match='velocities'):
            check.deviation(0.1, given)  # type: ignore[arg-type]
