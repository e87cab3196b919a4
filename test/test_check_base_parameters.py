# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
``check URDF --base-parameters``: the verdict, its proof and what is nearest, as a user sees them.

Not covered: the mathematics; `test_feasibility.py` and `test_wam7.py` hold it against S.
"""

import json

import numpy as np
import pytest
from robots import two_link_urdf

from inertial_estimation.cli import main
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.identifiable import null_space
from inertial_estimation.model.robot import Robot


@pytest.fixture
def files(tmp_path):
    """Write a robot and its own base parameters."""
    robot = Robot.from_urdf(two_link_urdf())
    base = BaseParameters.of_null_space(null_space(robot, robot.submodels[0]))
    names = base.combinations(Unknowns(robot.link_names).names)
    values = base.of(robot.parameters.reshape(-1))
    (tmp_path / 'robot.urdf').write_text(two_link_urdf())
    return tmp_path, names, values


def write(folder, names, values):
    lines = [f'{name},{value:.12f}' for name, value in zip(names, values, strict=True)]
    (folder / 'base.csv').write_text('\n'.join(['combination,value', *lines]))


def run(folder, *more):
    return main(['check', str(folder / 'robot.urdf'), '--base-parameters',
                 str(folder / 'base.csv'), *map(str, more)])  # fmt: skip


def test_infeasible_values_come_with_proof_and_nearest(files, capsys):
    folder, names, values = files
    bad = values.copy()
    bad[next(k for k, name in enumerate(names) if name.startswith('arm.Iyy'))] -= 1.0
    write(folder, names, bad)
    assert run(folder, '--json', folder / 'out.json') == 1
    assert 'Nearest' in capsys.readouterr().out
    found = json.loads((folder / 'out.json').read_text())['full']
    assert found['verdict'] == 'infeasible'
    proof = found['certificate']
    assert proof['stated'] < proof['least']
    near = np.array(list(found['nearest'].values()))
    weights = np.array([proof['weights'][name] for name in found['nearest']])
    assert weights @ near >= proof['least'] - 1e-9 * np.abs(weights).max()
    assert found['distance'] == pytest.approx(np.linalg.norm(near - bad), rel=1e-6)
    write(folder, names, near)
    assert run(folder) == 0


@pytest.mark.parametrize(('deviation', 'code'), [('0.3', 0), ('0.1', 1)])
def test_negative_friction_is_judged_beside_the_cones(files, capsys, deviation, code):
    folder, names, values = files
    write(folder, names, values)
    lines = (folder / 'base.csv').read_text().splitlines()
    text = ['combination,value,deviation', *(f'{line},' for line in lines[1:])]
    (folder / 'base.csv').write_text('\n'.join([*text, f'elbow.viscous,-0.2,{deviation}']))
    assert run(folder, '--json', folder / 'out.json') == code
    assert 'elbow.viscous' in capsys.readouterr().out
    found = json.loads((folder / 'out.json').read_text())
    assert found['full']['verdict'] == found['physical']['verdict'] == 'feasible'
    assert found['below_zero']['elbow.viscous'] == {
        'value': -0.2,
        'deviation': float(deviation),
        'may_be_zero': code == 0,
    }
