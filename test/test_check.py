# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The subcommand ``check``.

Not covered: how the robot is read (test_robot.py), whether the dependence is right
(test_dependence.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, two_link_urdf

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.cli import main
from inertial_estimation.cli.robot_check import check_settings, check_urdf
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import InertialEstimationError, ModelError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.robot import Robot

ACC = '<sensor name="{}" type="accelerometer"><parent link="{}"/></sensor></robot>'
GYRO = '<sensor name="{}" type="gyroscope"><parent link="{}"/></sensor></robot>'


def codes(check: Any) -> list[tuple[str, str]]:
    return [(one.code, one.subject) for one in check.findings]


def test_records_name_sensors_submodels_and_clusters() -> None:
    check = check_urdf(nested_humanoid_urdf(), imus=['head', 'foot'])
    found = json.loads(json.dumps(check.as_dict(), allow_nan=False))
    sensors = {row['sensor']: row for row in found['ft_sensors']}
    assert sensors['arm_sensor']['reads'] == {'acting_link': 'upper_arm', 'on_link': 'shoulder'}
    assert sensors['foot_sensor']['reads'] == {'acting_link': 'shank', 'on_link': 'foot'}
    assert sensors['leg_sensor']['pose_in_child_link'] == {
        'xyz_m': [0.01, -0.02, 0.03],
        'rpy_rad': [0.4, 0.1, -2.0],
    }
    submodels = {row['submodel']: row for row in found['submodels']}
    assert submodels['thigh']['mass_kg'] == 4.5
    assert submodels['thigh']['sensors_beyond'] == ['foot_sensor']
    assert submodels['root']['sensor_towards_root'] is None
    clusters = {row['source']: row['serves'] for row in found['clusters']}
    # They have no IMU of their own, and the foot's is near.
    assert clusters['foot'] == ['thigh', 'shank', 'foot']
    assert 'hip' in clusters['head']
    assert check.findings == ()


def test_robot_is_named_with_its_mass() -> None:
    robot = check_urdf(nested_humanoid_urdf(), fixed_link='sole').as_dict()['robot']
    assert (robot['name'], robot['fixed_link']) == ('nested_humanoid', 'sole')
    assert robot['mass_kg'] == pytest.approx(22.8001)
    assert (robot['links'][0], len(robot['joints'])) == ('root', 6)


def test_parts_that_cannot_be_used_are_reported() -> None:
    urdf = (
        arm_with_wrist_sensor_urdf()
        .replace('<frame>child</frame>', '<frame>parent</frame>')
        .replace('<axis xyz="0 1 0"/>', '<axis xyz="0 1 0"/><mimic joint="shoulder"/>')
        .replace('<mass value="2.0"/>', '<mass value="-2.0"/>')
    )
    check = check_urdf(urdf)
    assert ('inertia', 'upper') in codes(check)
    refusals = ' '.join(check.refusals)
    assert all(name in refusals for name in ("'wrist_sensor'", "'elbow'"))


def test_inconsistent_inertia_is_found() -> None:
    urdf = nested_humanoid_urdf().replace('ixx="0.1"', 'ixx="0.9"', 1)
    assert codes(check_urdf(urdf, imus=['head'])) == [('inertia', 'root')]


@pytest.mark.parametrize(('arm', 'far'), [(9.9, False), (10.1, True)])
def test_centre_of_mass_far_away_is_found(arm: float, far: bool) -> None:
    before, _, after = two_link_urdf().rpartition('0.02 -0.01 0.1')
    found = codes(check_urdf(f'{before}{arm} 0 0{after}', fixed_link='body'))
    assert found == [('inertia', 'arm')] * far


def test_command_prints_and_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    urdf, out = tmp_path / 'robot.urdf', tmp_path / 'out.json'
    urdf.write_text(nested_humanoid_urdf())
    assert main(['check', str(urdf), '--fixed-link', 'sole', '--json', str(out)]) == 0
    assert 'leg_sensor' in capsys.readouterr().out
    assert json.loads(out.read_text())['clusters'][0]['source'] == 'sole'


def test_command_reads_the_parameter_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    urdf, config = tmp_path / 'robot.urdf', tmp_path / 'robot.yaml'
    urdf.write_text(nested_humanoid_urdf())
    config.write_text('/**: {ros__parameters: {imus: [torso], imu: {torso: {frame: chest}}}}')
    assert main(['check', str(urdf), '--config', str(config)]) == 0
    assert 'torso' in capsys.readouterr().out


@pytest.mark.parametrize(('joint', 'n_findings'), [('wrist_sensor_joint', 0), ('elbow', 1)])
def test_sensor_inside_gazebo_only_is_found(joint: str, n_findings: int) -> None:
    tag = '<sensor name="other" type="force_torque"/>'
    nested = f'<gazebo reference="{joint}">{tag}</gazebo></robot>'
    urdf = arm_with_wrist_sensor_urdf().replace('</robot>', nested)
    assert codes(check_urdf(urdf, fixed_link='base')) == [('suboptimal', 'other')] * n_findings


def test_refused_parts_are_those_of_the_library() -> None:
    urdf = arm_with_wrist_sensor_urdf()
    mimic = urdf.replace('<axis xyz="0 1 0"/>', '<axis xyz="0 1 0"/><mimic joint="lift"/>')
    assert len(check_urdf(mimic, fixed_link='base').refusals) == 1
    with pytest.raises(ModelError):
        Robot.from_urdf(mimic)
    Robot.from_urdf(mimic, joints=['lift'])
    moving = urdf.replace('joint="wrist_sensor_joint"', 'joint="elbow"')
    assert len(check_urdf(moving, fixed_link='base').refusals) == 1
    with pytest.raises(ModelError):
        Robot.from_urdf(moving)
    Robot.from_urdf(moving, ft_sensors=[])


def test_mass_that_is_no_number_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    urdf = tmp_path / 'robot.urdf'
    urdf.write_text(arm_with_wrist_sensor_urdf().replace('value="2.0"', 'value="nan"'))
    assert main(['check', str(urdf), '--fixed-link', 'base']) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert "'upper'" in line


def test_contacts_give_the_dependence() -> None:
    contacts = [Contact(name) for name in ('chest', 'upper_arm', 'thigh', 'foot')]
    check = check_urdf(nested_humanoid_urdf(), imus=['head'], contacts=contacts)
    rows = {row['name']: row for row in check.records['torque_dependence']}
    assert rows['knee']['fts'] == ('foot_sensor',)
    assert set(rows['knee']['joints']) == {'waist', 'neck', 'hip_joint', 'knee'}
    assert rows['elbow']['fts'] == ()
    wrenches = [row['name'] for row in check.records['wrench_dependence']]
    assert wrenches == ['chest', 'upper_arm', 'thigh', 'foot']
    assert ('uninformed', 'upper_arm') in codes(check)
    without = check_urdf(nested_humanoid_urdf(), imus=['head'])
    lost = check_urdf(nested_humanoid_urdf(), imus=[], contacts=[Contact('foot')])
    assert all('torque_dependence' not in one.records for one in (without, lost))


def test_command_takes_contacts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    urdf, config, out = (tmp_path / name for name in ('robot.urdf', 'robot.yaml', 'out.json'))
    urdf.write_text(nested_humanoid_urdf())
    config.write_text(
        '/**: {ros__parameters: {imus: [head], contacts: [foot, hand], '
        'contact: {hand: {kind: force}}}}'
    )
    given = ['check', str(urdf), '--json', str(out)]
    assert main([*given, '--imu', 'head', '--contacts', 'foot', 'hand']) == 0
    by_hand = json.loads(out.read_text())
    assert 'uninformed' in {one['code'] for one in by_hand['findings']}
    informed = {row['name']: row['fts'] for row in by_hand['torque_dependence']}
    assert informed['elbow'] == ['arm_sensor']
    assert main([*given, '--config', str(config)]) == 0
    assert json.loads(out.read_text())['wrench_dependence'] == by_hand['wrench_dependence']
    assert main([*given, '--imu', 'head', '--contacts', 'foott']) == 1
    assert "'foott'" in capsys.readouterr().err


def test_imu_with_a_tag_of_one_kind_is_found() -> None:
    urdf = two_link_urdf().replace('</robot>', ACC.format('a', 'arm'))
    assert codes(check_urdf(urdf, imus=['a'])) == [('suboptimal', 'a')]
    gyro = two_link_urdf().replace('</robot>', GYRO.format('g', 'arm'))
    assert codes(check_urdf(gyro, imus=['g'])) == [('suboptimal', 'g')]
    for measures in ('both', 'accelerometer'):
        settings = {'imus': ['a', 'body'], 'imu.a.measures': measures}
        assert check_settings(EstimatorSettings.from_dict(settings), urdf).findings == ()
    both = urdf.replace('</robot>', GYRO.format('g', 'body'))
    kinds = [row['kind'] for row in check_urdf(both, imus=['a', 'g']).records['inertial_sensors']]
    assert kinds[2:] == ['IMU, accelerometer only', 'IMU, gyroscope only']


def test_motion_of_joints_is_that_of_the_settings() -> None:
    given = {'imus': ['head'], 'contacts': ['root'], 'acceleration_source': 'zero'}
    given |= {'assumed_joints': ['neck'], 'assumed_positions': [0.0]}
    check = check_settings(EstimatorSettings.from_dict(given), nested_humanoid_urdf())
    motion = check.records['motion_of_joints']
    assert motion['acceleration'] == 'zero'
    assert 'knee' in motion['joints'] and 'neck' not in motion['joints']


@pytest.mark.parametrize(
    ('given', 'name'),
    [
        ({}, ''),
        ({'imus': ['heda']}, "'heda'"),
        ({'accelerometers': ['heda'], 'imus': ['head']}, "'heda'"),
        ({'imus': ['head'], 'contacts': ['foott']}, "'foott'"),
        ({'imus': ['head'], 'contacts': ['a'], 'contact.a.frame': 'foott'}, "'foott'"),
        ({'imus': ['head'], 'assumed_joints': ['kne'], 'assumed_positions': [0.0]}, "'kne'"),
        ({'imus': ['head'], 'imu.head.measures': 'accelerometer'}, 'gyroscope'),
        (
            {'imus': ['sole'], 'imu.sole': {'frame': 'hand', 'pose': [0.1, 0.0, 0.0] * 2}},
            'imu.sole.frame_id',
        ),
        ({'imus': ['head'], 'ft_sensors': ['knee_ft']}, "'knee_ft'"),
        ({'imus': ['head'], 'joints': ['kne']}, "'kne'"),
    ],
)
def test_settings_that_the_node_refuses_fail(
    given: dict[str, Any], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    urdf, config = tmp_path / 'robot.urdf', tmp_path / 'robot.yaml'
    urdf.write_text(nested_humanoid_urdf())
    config.write_text(json.dumps({'/**': {'ros__parameters': given}}))
    assert main(['check', str(urdf), '--config', str(config)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith('inertial-estimation check: ') and name in line


def test_refusals_of_the_estimator_come_with_the_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    urdf, config, out = (tmp_path / name for name in ('robot.urdf', 'robot.yaml', 'out.json'))
    urdf.write_text(nested_humanoid_urdf())
    given = {'imus': ['head'], 'imu.head.measures': 'accelerometer', 'contacts': ['foot']}
    config.write_text(json.dumps({'/**': {'ros__parameters': given}}))
    settings = EstimatorSettings.from_dict(given)
    with pytest.raises(InertialEstimationError) as refused:
        build_estimator(settings, build_robot(settings, urdf.read_text()))
    assert main(['check', str(urdf), '--config', str(config), '--json', str(out)]) == 1
    printed = capsys.readouterr()
    assert str(refused.value) in printed.err and 'leg_sensor' in printed.out
    assert json.loads(out.read_text())['refusals'] == [str(refused.value)]


def test_without_motion_source_the_exit_code_is_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    urdf = tmp_path / 'robot.urdf'
    urdf.write_text(nested_humanoid_urdf())
    assert main(['check', str(urdf)]) == 1
    assert 'leg_sensor' in capsys.readouterr().out


def test_many_sensors_take_few_lines(
    shared_models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ['check', str(shared_models / 'icub_v2_5.urdf')]
    assert main(call) == 0
    short = capsys.readouterr().out
    assert len(short.splitlines()) < 70 and max(map(len, short.splitlines())) <= 80
    assert main([*call, '--full']) == 0
    assert 'r_upper_leg_mtb_acc_11b5' in capsys.readouterr().out


def test_contacts_named_twice_are_refused() -> None:
    contacts = [Contact(name) for name in ('head', 'sole', 'sole')]
    check = check_urdf(nested_humanoid_urdf(), imus=['head'], contacts=contacts)
    assert len(check.refusals) == 1
    apart = [Contact('sole'), Contact('sole', name='heel')]
    assert check_urdf(nested_humanoid_urdf(), imus=['head'], contacts=apart).refusals == ()
