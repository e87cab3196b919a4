# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""``check URDF --identifiable``: ranks, groupings and predictions, as a user sees them."""

import json

from robots import arm_with_wrist_sensor_urdf, two_link_urdf

from inertial_estimation.cli import main
from inertial_estimation.cli.identifiable import check_identifiable, source_of_urdf
from inertial_estimation.model.identifiable import null_space
from inertial_estimation.model.robot import Robot

ARM = """
robot: {fixed_link: base}
log: {time: t, joints: [shoulder, elbow, lift], positions: {columns: [a, b, c], unit: rad}}
"""


def run(urdf, *more):
    return main(['check', str(urdf), '--identifiable', *map(str, more)])


def test_floating_robot_needs_no_efforts_and_a_bolted_one_does(tmp_path, capsys):
    urdf, out = tmp_path / 'robot.urdf', tmp_path / 'out.json'
    urdf.write_text(two_link_urdf())
    assert run(urdf, '--fixed-link', 'body', '--json', out) == 1
    assert capsys.readouterr().err.count('\n') == 1 and not out.exists()
    assert run(urdf, '--fixed-link', 'body', '--efforts', 'all') == 0
    shown = capsys.readouterr().out
    assert 'Never identifiable' in shown
    assert any('body' in line and 'all' in line for line in shown.splitlines())
    assert run(urdf, '--json', out) == 0
    assert 'body.m + arm.m' in capsys.readouterr().out
    found = json.loads(out.read_text())
    (submodel,) = found['submodels']
    assert found['rank'] == submodel['rank'] == len(submodel['base_parameters']) == 10 + 7
    assert submodel['never'] == []
    assert set(found['predictions']['torques_lacking'].values()) == {0}


def test_known_ground_is_that_of_identify(tmp_path, capsys):
    path, out = tmp_path / 'arm.urdf', tmp_path / 'out.json'
    path.write_text(arm_with_wrist_sensor_urdf())
    more = ('--config', tmp_path / 'rows.yaml', '--json', out)
    plate = 'external: {base: [0, 0, 0, 0, 0, 0]}'
    robot = Robot.from_urdf(path, fixed_link='base')
    base = 10 * 4 - null_space(robot, robot.submodels[0]).shape[1]
    for rows, submodels, lacking in (
        ('{wrenches: true}', {'base': 0, 'tool': 10}, True),
        (f'{{{plate}}}', {'base': base, 'tool': 10}, False),
        # The tool is a part of the slider then.
        (f'{{{plate}, base_link: true}}', {'base': base}, False),
    ):
        (tmp_path / 'rows.yaml').write_text(ARM + f'rows: {rows}')
        assert run(path, *more) == 0
        found = json.loads(out.read_text())
        assert {one['name']: one['rank'] for one in found['submodels']} == submodels
        assert (found['predictions']['wrenches_lacking']['base'] > 0) == lacking
    capsys.readouterr()


def test_efforts_and_a_wrist_sensor_of_an_arm(shared_models):
    urdf = (shared_models / 'panda_wrist_ft.urdf').read_text()
    arm = check_identifiable(*source_of_urdf(urdf, efforts=['all'], fixed_link='panda_link0'))
    base, hand = arm['submodels']
    # Seven for each joint; of the first one only the inertia about its axis.
    assert (base['rank'], hand['rank']) == (43, 14)
    assert 'panda_link0.m' in base['never']
    assert arm['predictions']['torques_lacking']['panda_joint1'] == 0
    assert arm['predictions']['wrenches_lacking']['panda_link0'] > 0
    assert any('mimic' in note for note in arm['notes'])
    alone = check_identifiable(*source_of_urdf(urdf, fixed_link='panda_link0'))
    assert [one['rank'] for one in alone['submodels']] == [0, 14]
    assert alone['predictions']['torques_lacking']['panda_joint1'] > 0
