# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Stated base parameters: reading, verdicts, and ``check URDF --base-parameters``."""

import json

import numpy as np
import pytest

from inertial_estimation.cli import main
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.feasibility import (
    Consistency,
    Verdict,
    check_stated,
    read_base_parameters,
)
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.identifiable import Rows, null_space
from inertial_estimation.model.tree import decompose


@pytest.fixture
def robot(arm_with_wrist_sensor):
    return arm_with_wrist_sensor


@pytest.fixture
def table(robot):
    """Return the combinations that joint torques determine, and their values."""
    whole = decompose(robot.links, robot.ft_sensors, ())[0]
    base = BaseParameters.of_null_space(null_space(robot, whole, Rows.TORQUES))
    values = base.of(robot.parameters.reshape(-1))
    return base.combinations(Unknowns(robot.link_names).names), values


def text_of(combinations, values):
    lines = [f'{c},{v:.12g}' for c, v in zip(combinations, values, strict=True)]
    return '\n'.join(['combination,value', *lines])


def stated(robot, combinations, values):
    return read_base_parameters(text_of(combinations, values), robot)


def names_below_zero(read):
    names = read.base.combinations(read.unknowns.names)
    return [name for name, below in zip(names, read.below_zero, strict=True) if below]


@pytest.mark.parametrize('consistency', Consistency)
def test_friction_alone_does_not_change_the_verdict(robot, table, consistency):
    combinations, values = table
    extras = {
        'elbow.viscous': -0.2,
        'lift.coulomb': -0.1,
        'shoulder.viscous + 0.5 lift.viscous': -0.3,
        'shoulder.coulomb': 0.4,
        'shoulder.offset': -2.0,
        'elbow.coulomb - lift.drive_inertia': -1.0,
    }
    read = stated(robot, [*combinations, *extras], [*values, *extras.values()])
    assert {str(extra).split('.')[0] for extra in read.unknowns.extras} == set(robot.joint_names)
    assert check_stated(robot, read, consistency).verdict is Verdict.FEASIBLE
    assert names_below_zero(read) == list(extras)[:3]


def test_drive_inertia_among_parameters_of_links_is_not_negative(robot, table):
    """The base turns about the same axis, about which its inertia is positive."""
    combinations, values = table
    k = next(k for k, name in enumerate(combinations) if name.startswith('upper.Izz'))
    names = [*combinations]
    names[k] += ' + shoulder.drive_inertia'
    for added, verdict in ((0.5, Verdict.FEASIBLE), (-10.0, Verdict.INFEASIBLE)):
        read = stated(robot, names, values + added * np.eye(len(values))[k])
        assert names_below_zero(read) == []
        assert check_stated(robot, read).verdict is verdict


def test_json_of_an_identification_is_read(robot, table):
    """Couplings and payloads do not change the verdict."""
    combinations, values = table
    more = {'elbow+shoulder.viscous': -0.1, 'weight.mc_x': 0.3, 'weight.Ixx': -0.2}
    for change, verdict in ((0.0, Verdict.FEASIBLE), (-10.0, Verdict.INFEASIBLE)):
        numbers = [values[0] + change, *values[1:].tolist(), *more.values()]
        records = [
            {'combination': c, 'value': v, 'deviation': None if v < 0 else 0.5}
            for c, v in zip([*combinations, *more], numbers, strict=True)
        ]
        # Two submodels beside a sensor state its offset.
        blocks = [{'base_parameters': part} for part in (records, records[:3])]
        found = {'submodels': blocks, 'payloads': {'weight': {'m': 2.0}}}
        read = read_base_parameters(json.dumps(found), robot)
        assert [str(extra) for extra in read.unknowns.extras] == list(more)
        assert read.values.tolist() == numbers
        assert names_below_zero(read) == list(more)[:1]
        check = check_stated(robot, read)
        assert check.verdict is verdict
    assert check.certificate is not None
    assert check.distance > 1.0


def test_only_identifiable_combinations_may_be_stated(robot):
    """The wrist sensor determines all parameters of the tool, torques not all of the lower arm."""
    read = read_base_parameters('combination,value\ntool.Ixx,0.50', robot)
    assert read.rounding.tolist() == [0.005]
    assert check_stated(robot, read).verdict is Verdict.FEASIBLE
    with pytest.raises(ModelError, match='lower'):
        read_base_parameters('combination,value\nlower.Iyy,0.5', robot)


@pytest.fixture
def run(robot, tmp_path):
    """Return a function that checks text with the command; its exit code and its JSON."""

    def call(text):
        urdf, values, out = (tmp_path / name for name in ('robot.urdf', 'base.csv', 'out.json'))
        urdf.write_text(robot.urdf)
        values.write_text(text)
        words = ['check', urdf, '--base-parameters', values, '--fixed-link', 'base', '--json', out]
        return main([str(word) for word in words]), json.loads(out.read_text())

    return call


def test_infeasible_values_come_with_proof_and_nearest(table, run, capsys):
    names, values = table
    bad = values.copy()
    bad[next(k for k, name in enumerate(names) if name.startswith('lower.Iyy'))] -= 10.0
    code, found = run(text_of(names, bad))
    assert code == 1 and 'Nearest' in capsys.readouterr().out
    found = found['full']
    assert found['verdict'] == 'infeasible'
    proof = found['certificate']
    assert proof['stated'] < proof['least']
    near = np.array(list(found['nearest'].values()))
    weights = np.array([proof['weights'][name] for name in found['nearest']])
    assert weights @ near >= proof['least'] - 1e-9 * np.abs(weights).max()
    assert found['distance'] == pytest.approx(np.linalg.norm(near - bad), rel=1e-6)
    assert run(text_of(names, near))[0] == 0


@pytest.mark.parametrize(('deviation', 'code'), [('0.3', 0), ('0.1', 1)])
def test_negative_friction_is_judged_beside_the_cones(table, run, capsys, deviation, code):
    lines = [f'{line},' for line in text_of(*table).splitlines()[1:]]
    lines.append(f'elbow.viscous,-0.2,{deviation}')
    exit_code, found = run('\n'.join(['combination,value,deviation', *lines]))
    assert exit_code == code and 'elbow.viscous' in capsys.readouterr().out
    assert found['full']['verdict'] == found['physical']['verdict'] == 'feasible'
    wanted = {'value': -0.2, 'deviation': float(deviation), 'may_be_zero': code == 0}
    assert found['below_zero']['elbow.viscous'] == wanted
