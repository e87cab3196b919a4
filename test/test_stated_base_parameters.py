# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Base parameters as text: what is read, what is refused, what comes of it.

Not covered: the verdicts on published values, see `test_feasibility` and `test_wam7`.
"""

import json

import numpy as np
import pytest

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.feasibility import (
    Verdict,
    check_stated,
    read_base_parameters,
)
from inertial_estimation.identification.solvers.conic import Consistency
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.identifiable import Rows, null_space
from inertial_estimation.model.submodels import decompose


@pytest.fixture
def robot(arm_with_wrist_sensor):
    return arm_with_wrist_sensor


@pytest.fixture
def table(robot):
    """Return combinations and values of what joint torques tell of the robot."""
    whole = decompose(robot.links, robot.ft_sensors, ())[0]
    base = BaseParameters.of_null_space(null_space(robot, whole, Rows.TORQUES))
    values = base.of(robot.parameters.reshape(-1))
    return base.combinations(Unknowns(robot.link_names).names), values


def text_of(combinations, values, digits=12):
    lines = [f'{c},{v:.{digits}g}' for c, v in zip(combinations, values, strict=True)]
    return '\n'.join(['combination,value', *lines])


@pytest.mark.parametrize('consistency', Consistency)
def test_the_description_itself_is_feasible(robot, table, consistency):
    combinations, values = table
    friction = ['shoulder.viscous', 'elbow.coulomb', 'lift.offset']
    text = text_of([*combinations, *friction], [*values, 0.5, 0.2, -0.3])
    stated = read_base_parameters(text, robot)
    assert [str(extra) for extra in stated.unknowns.extras] == friction
    found = check_stated(robot, stated, consistency=consistency)
    assert found.verdict is Verdict.FEASIBLE


def test_friction_by_itself_says_nothing_of_bodies(robot, table):
    combinations, values = table
    extras = [
        'elbow.viscous',
        'lift.coulomb',
        'shoulder.viscous + 0.5 lift.viscous',
        'shoulder.coulomb',
        'shoulder.offset',
        'elbow.coulomb - lift.drive_inertia',
    ]
    text = text_of([*combinations, *extras], [*values, -0.2, -0.1, -0.3, 0.4, -2.0, -1.0])
    stated = read_base_parameters(text, robot)
    assert check_stated(robot, stated).verdict is Verdict.FEASIBLE
    assert [(one.value, one.may_be_zero) for one in stated.below_zero] == [
        (-0.2, False), (-0.1, False), (-0.3, False),
    ]  # fmt: skip


def test_a_drive_among_parameters_of_links_is_not_negative(robot, table):
    """The base turns about the same axis: what it weighs there is at least nothing."""
    combinations, values = table
    k = next(k for k, name in enumerate(combinations) if name.startswith('upper.Izz'))
    names = [f'{combinations[k]} + shoulder.drive_inertia' if n == k else name
             for n, name in enumerate(combinations)]  # fmt: skip
    found = {}
    for added in (0.5, -10.0):
        changed = values.copy()
        changed[k] += added
        stated = read_base_parameters(text_of(names, changed), robot)
        assert stated.below_zero == []
        found[added] = check_stated(robot, stated).verdict
    assert found == {0.5: Verdict.FEASIBLE, -10.0: Verdict.INFEASIBLE}


@pytest.mark.parametrize(('deviation', 'zero'), [('0.21', True), ('0.19', False), ('', False)])
def test_friction_below_zero_may_be_zero_within_its_deviation(robot, deviation, zero):
    text = f'combination,value,deviation\nelbow.viscous,-0.2,{deviation}'
    (one,) = read_base_parameters(text, robot).below_zero
    assert one.may_be_zero == zero


def test_the_file_of_an_identification_is_read(robot):
    both = {'combination': 'tool.m', 'value': 0.25, 'deviation': 0.5}
    drive = {'combination': 'elbow.viscous', 'value': -0.1, 'deviation': None}
    found = {'submodels': [{'base_parameters': [both]}, {'base_parameters': [both, drive]}]}
    stated = read_base_parameters(json.dumps(found), robot)
    assert stated.base.combinations(stated.unknowns.names) == ['tool.m', 'elbow.viscous']
    assert stated.values.tolist() == [0.25, -0.1]
    assert stated.deviations.tolist() == [0.5, 0.0]


def test_couplings_and_payloads_of_an_identification_are_read(robot, table):
    """They leave verdicts on bodies alone; negative friction of a coupling is told."""
    combinations, values = table
    worse = values.copy()
    worse[0] -= 10.0
    more = ['elbow+shoulder.viscous', 'weight.mc_x', 'weight.Ixx']
    for stated, verdict in ((values, Verdict.FEASIBLE), (worse, Verdict.INFEASIBLE)):
        both = zip([*combinations, *more], [*stated.tolist(), -0.1, 0.3, -0.2], strict=True)
        records = [{'combination': c, 'value': v, 'deviation': None} for c, v in both]
        found = {'submodels': [{'base_parameters': records}], 'payloads': {'weight': {'m': 2.0}}}
        read = read_base_parameters(json.dumps(found), robot)
        assert [str(extra) for extra in read.unknowns.extras] == more
        assert [one.combination for one in read.below_zero] == more[:1]
        assert check_stated(robot, read).verdict is verdict


def test_impossible_inertia_is_infeasible(robot, table):
    combinations, values = table
    worse = values.copy()
    worse[0] -= 10.0
    found = check_stated(robot, read_base_parameters(text_of(combinations, worse), robot))
    assert found.verdict is Verdict.INFEASIBLE
    assert found.certificate is not None
    assert found.distance > 1.0


def test_values_are_rounded_as_they_are_printed(robot, table):
    combinations, _ = table
    values = ['1.50', '-2e-3', '7', *['0.125'] * (len(combinations) - 3)]
    lines = [f'{c},{v}' for c, v in zip(combinations, values, strict=True)]
    stated = read_base_parameters('\n'.join(['combination,value', *lines]), robot)
    np.testing.assert_allclose(stated.rounding[:4], [0.005, 5e-4, 0.5, 5e-4])
    np.testing.assert_allclose(stated.values[:4], [1.5, -2e-3, 7.0, 0.125])


def test_a_link_that_sensors_tell_by_itself_may_be_stated(robot):
    """The wrist sensor tells all of the tool; joint torques alone would not."""
    stated = read_base_parameters('combination,value\ntool.Ixx,0.5', robot)
    assert check_stated(robot, stated).verdict is Verdict.FEASIBLE
    with pytest.raises(ModelError, match='lower'):
        read_base_parameters('combination,value\nlower.Iyy,0.5', robot)
