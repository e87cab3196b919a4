# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The verb ``check``.

Not covered: how the robot is read (test_robot.py), whether what is named as dependence is true
(test_dependence.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, two_link_urdf

from inertial_estimation.building import build_estimator, build_robot
from inertial_estimation.check import Check, check_settings, check_urdf
from inertial_estimation.check.records import Names, key
from inertial_estimation.cli import main
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import InertialEstimationError, ModelError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.model.robot import Robot


def _rows(check: Check, key: str) -> list[dict[str, Any]]:
    """Return the rows of one table, as another program reads them."""
    rows = json.loads(json.dumps(check.as_dict(), allow_nan=False))[key]
    assert isinstance(rows, list)
    return rows


def test_tables_name_sensors_submodels_and_clusters() -> None:
    """Sign, masses and clusters of a robot that is known by construction."""
    check = check_urdf(nested_humanoid_urdf(), imus=['head', 'foot'])
    sensors = {row['sensor']: row for row in _rows(check, 'ft_sensors')}
    assert sensors['arm_sensor']['reads'] == {'acting_link': 'upper_arm', 'on_link': 'shoulder'}
    assert sensors['foot_sensor']['reads'] == {'acting_link': 'shank', 'on_link': 'foot'}
    assert sensors['leg_sensor']['pose_in_child_link'] == {
        'xyz_m': [0.01, -0.02, 0.03],
        'rpy_rad': [0.4, 0.1, -2.0],
    }
    submodels = {row['submodel']: row for row in _rows(check, 'submodels')}
    assert submodels['thigh']['mass_kg'] == 4.5
    assert submodels['thigh']['sensors_beyond'] == ['foot_sensor']
    assert submodels['root']['sensor_towards_root'] is None
    clusters = {row['source']: row['serves'] for row in _rows(check, 'clusters')}
    # They have no IMU of their own, and the foot's is near.
    assert clusters['foot'] == ['thigh', 'shank', 'foot']
    assert 'hip' in clusters['head']
    assert check.warnings == ()


def test_tables_for_a_person_are_text() -> None:
    """The same findings, short."""
    check = check_urdf(nested_humanoid_urdf(), imus=['head', 'foot', 'sole'])
    tables = {table.title: {row[0]: row[1:] for row in table.rows} for table in check.tables}
    *_, reads, pose = tables['FT sensors']['leg_sensor']
    assert pose == 'xyz 0.01 -0.02 0.03 m, rpy 0.4 0.1 -2 rad'
    assert reads == 'thigh on hip'
    assert tables['Submodels']['thigh'] == (
        'leg_sensor',
        'foot_sensor',
        '4.500',
        'thigh, shank',
    )
    assert tables['Submodels']['root'][0] == tables['Submodels']['foot'][1] == '-'
    assert tables['Clusters']['sole'][-1] == 'with the first one of its link'


def test_the_robot_is_there_for_a_machine() -> None:
    """Names in the order of every array, and the mass."""
    robot = check_urdf(nested_humanoid_urdf(), fixed_link='sole').as_dict()['robot']
    assert (robot['name'], robot['fixed_link']) == ('nested_humanoid', 'sole')
    assert robot['mass_kg'] == pytest.approx(22.8001)
    assert (robot['links'][0], len(robot['joints'])) == ('root', 6)


def test_what_cannot_be_used_is_said() -> None:
    """Mimic joints, bad sensor frames, empty links and a missing IMU are said, not raised."""
    urdf = (
        arm_with_wrist_sensor_urdf()
        .replace('<frame>child</frame>', '<frame>parent</frame>')
        .replace('<axis xyz="0 1 0"/>', '<axis xyz="0 1 0"/><mimic joint="shoulder"/>')
        .replace('<mass value="2.0"/>', '<mass value="-2.0"/>')
    )
    check = check_urdf(urdf)
    warnings = ' | '.join((*check.warnings, *check.refusals))
    for part in ("'wrist_sensor' reports in frame 'parent'", "'elbow' is of type 'mimic'",
                 "link 'upper'", 'nothing tells how robot'):  # fmt: skip
        assert part in warnings


def test_inconsistent_inertia_is_named() -> None:
    """A link that breaks the triangle inequality is named with its eigenvalue."""
    urdf = nested_humanoid_urdf().replace('ixx="0.1"', 'ixx="0.9"', 1)
    (warning,) = check_urdf(urdf, imus=['head']).warnings
    assert warning.startswith("link 'root' is not fully physically consistent")


@pytest.mark.parametrize(('arm', 'far'), [(9.9, False), (10.1, True)])
def test_a_centre_of_mass_that_identify_refuses_is_named(arm: float, far: bool) -> None:
    """What is in millimetres stands where metres are meant."""
    before, _, after = two_link_urdf().rpartition('0.02 -0.01 0.1')
    said = check_urdf(f'{before}{arm} 0 0{after}', fixed_link='body').warnings
    assert len(said) == far
    for text in said:
        assert text.startswith("link 'arm' has its centre of mass 10.1 m off its origin")


def test_command_prints_and_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same findings for a person and for a machine."""
    urdf, out = tmp_path / 'robot.urdf', tmp_path / 'out.json'
    urdf.write_text(nested_humanoid_urdf())
    assert main(['check', str(urdf), '--fixed-link', 'sole', '--json', str(out)]) == 0
    assert 'leg_sensor' in capsys.readouterr().out
    assert json.loads(out.read_text())['clusters'][0]['source'] == 'sole'


def test_command_names_a_wrong_file(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong file name gets one sentence and exit code 1."""
    assert main(['check', 'nowhere.urdf']) == 1
    assert "cannot read the URDF 'nowhere.urdf'" in capsys.readouterr().err


def test_command_reads_the_parameter_file_of_the_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The robot is the one that the node would build."""
    urdf, config = tmp_path / 'robot.urdf', tmp_path / 'robot.yaml'
    urdf.write_text(nested_humanoid_urdf())
    config.write_text('/**: {ros__parameters: {imus: [torso], imu: {torso: {frame: chest}}}}')
    assert main(['check', str(urdf), '--config', str(config)]) == 0
    assert 'torso' in capsys.readouterr().out


def test_a_sensor_inside_gazebo_only_is_named() -> None:
    """Simulators keep tags there that do not count; a robot with no other is told so."""
    urdf = arm_with_wrist_sensor_urdf()
    tag = urdf[urdf.index('<sensor') : urdf.index('</sensor>') + len('</sensor>')]
    nested = urdf.replace(tag, f'<gazebo reference="wrist_sensor_joint">{tag}</gazebo>')
    (warning,) = check_urdf(nested, fixed_link='base').warnings
    assert "'wrist_sensor' has a tag inside <gazebo> only" in warning


def test_a_sensor_inside_gazebo_whose_joint_has_a_tag_of_another_name_is_none() -> None:
    """Simulators may call the same sensor by another name."""
    tag = '<sensor name="other" type="force_torque"/>'
    for joint, n_warnings in (('wrist_sensor_joint', 0), ('elbow', 1)):
        nested = f'<gazebo reference="{joint}">{tag}</gazebo></robot>'
        urdf = arm_with_wrist_sensor_urdf().replace('</robot>', nested)
        assert len(check_urdf(urdf, fixed_link='base').warnings) == n_warnings


def test_what_node_and_library_refuse_is_said_with_the_remedy() -> None:
    """The robot of the check is not the one that they would read; the remedy makes it that."""
    urdf = arm_with_wrist_sensor_urdf()
    mimic = urdf.replace('<axis xyz="0 1 0"/>', '<axis xyz="0 1 0"/><mimic joint="lift"/>')
    assert mimic != urdf
    (refusal,) = check_urdf(mimic, fixed_link='base').refusals
    assert "node and library refuse the robot until 'joints' names all joints" in refusal
    with pytest.raises(ModelError, match='mimic'):
        Robot.from_urdf(mimic)
    Robot.from_urdf(mimic, joints=['lift'])
    moving = urdf.replace('joint="wrist_sensor_joint"', 'joint="elbow"')
    assert moving != urdf
    (refusal,) = check_urdf(moving, fixed_link='base').refusals
    assert "of type 'revolute'; only a fixed joint can be cut. Node and library refuse" in refusal
    assert "'ft_sensors' names the others" in refusal
    with pytest.raises(ModelError):
        Robot.from_urdf(moving)
    Robot.from_urdf(moving, ft_sensors=[])


def test_a_mass_that_is_no_number_is_an_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One line that names the link, instead of those of the parser."""
    urdf = tmp_path / 'robot.urdf'
    urdf.write_text(arm_with_wrist_sensor_urdf().replace('value="2.0"', 'value="nan"'))
    assert main(['check', str(urdf), '--fixed-link', 'base']) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert "link 'upper': <mass value='nan'> is no finite number" in line


TORQUES, WRENCHES = 'what_joint_torques_rest_on', 'what_external_wrenches_rest_on'


def test_contacts_tell_what_everything_rests_on() -> None:
    """Every name, those that follow each other cut short unless all are asked for."""
    contacts = [Contact(name) for name in ('chest', 'upper_arm', 'thigh', 'foot')]
    check = check_urdf(nested_humanoid_urdf(), imus=['head'], contacts=contacts)
    tables = {key(table.title): table for table in check.dependence_tables()}
    shown = {row[0]: row[1:] for row in tables[TORQUES].rows}
    assert check.robot.joint_names[:4] == ('hip_joint', 'knee', 'waist', 'neck')
    assert shown['knee'] == ('foot_sensor', 'head', 'hip_joint … neck', 'shank')
    (whole, _) = check.dependence_tables(whole=True)
    assert {row[0]: row for row in whole.rows}['knee'][3] == 'hip_joint, knee, waist, neck'
    assert shown['elbow'] == ('none', 'head', 'neck, shoulder_joint, elbow', 'hand')
    assert [row[0] for row in tables[WRENCHES].rows] == ['chest', 'upper_arm', 'thigh', 'foot']
    rows = {row['joint']: row for row in check.as_dict()[TORQUES]}
    assert rows['knee']['ft_sensors'] == ('foot_sensor',)
    assert set(rows['knee']['joints']) == {'waist', 'neck', 'hip_joint', 'knee'}
    assert len(rows) == len(tables[TORQUES].rows)
    arm = next(text for text in check.as_dict()['warnings'] if 'elbow' in text)
    assert "submodel 'upper_arm', for example 'hand'" in arm


def test_without_contacts_nothing_is_said_of_dependence() -> None:
    """The table would be about a robot that nothing touches."""
    assert TORQUES not in check_urdf(nested_humanoid_urdf(), imus=['head']).as_dict()
    lost = check_urdf(nested_humanoid_urdf(), imus=[], contacts=[Contact('foot')])
    assert TORQUES not in lost.as_dict()


def test_command_takes_contacts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the command line, or from the parameter file with their kinds."""
    urdf, config, out = (tmp_path / name for name in ('robot.urdf', 'robot.yaml', 'out.json'))
    urdf.write_text(nested_humanoid_urdf())
    config.write_text(
        '/**: {ros__parameters: {imus: [head], contacts: [foot, hand], '
        'contact: {hand: {kind: force}}}}'
    )
    given = ['check', str(urdf), '--json', str(out)]
    assert main([*given, '--imu', 'head', '--contacts', 'foot', 'hand']) == 0
    assert 'no FT sensor informs the torques of neck: ' in capsys.readouterr().out
    by_hand = json.loads(out.read_text())
    assert [row['contact'] for row in by_hand[WRENCHES]] == ['foot', 'hand']
    informed = {row['joint']: row['ft_sensors'] for row in by_hand[TORQUES]}
    assert informed['elbow'] == ['arm_sensor']
    assert main([*given, '--config', str(config)]) == 0
    of_file = json.loads(out.read_text())
    assert of_file[WRENCHES] == by_hand[WRENCHES]
    assert main([*given, '--imu', 'head', '--contacts', 'foott']) == 1
    said = capsys.readouterr().err
    assert "the contacts name 'foott', but no frame is named 'foott'; closest: foot" in said


ACC = '<sensor name="{}" type="accelerometer"><parent link="{}"/></sensor></robot>'
GYRO = '<sensor name="{}" type="gyroscope"><parent link="{}"/></sensor></robot>'


def test_an_imu_with_a_tag_of_one_kind_is_a_warning_with_its_remedy() -> None:
    """It counts as whole, which nobody asked for; naming what it measures ends that."""
    urdf = two_link_urdf().replace('</robot>', ACC.format('a', 'arm'))
    (warning,) = check_urdf(urdf, imus=['a']).warnings
    assert 'shows accelerometers only at the IMUs a: they are taken to measure angular' in warning
    assert "set 'imu.<name>.measures' to 'accelerometer'" in warning
    gyro = two_link_urdf().replace('</robot>', GYRO.format('g', 'arm'))
    (warning,) = check_urdf(gyro, imus=['g']).warnings
    assert 'shows gyroscopes only at the IMUs g: they are taken to measure accelerat' in warning
    for measures in ('both', 'accelerometer'):
        settings = {'imus': ['a', 'body'], 'imu.a.measures': measures}
        assert check_settings(EstimatorSettings.from_dict(settings), urdf).warnings == ()


@pytest.mark.parametrize(
    ('source', 'said'),
    [('zero', 'neglected'), ('filter', 'second derivative of the positions')],
)
def test_the_parameter_file_tells_where_the_motion_of_joints_comes_from(
    source: str, said: str
) -> None:
    given = {'imus': ['head'], 'contacts': ['root'], 'acceleration_source': source}
    given |= {'assumed_joints': ['neck'], 'assumed_positions': [0.0]}
    check = check_settings(EstimatorSettings.from_dict(given), nested_humanoid_urdf())
    (row,) = _rows(check, 'motion_of_joints')
    assert row['comes_from'] == f'velocity: as the messages say; acceleration: {said}'
    assert 'knee' in row['joints'] and 'neck' not in row['joints']
    assert 'Motion of joints' in [table.title for table in check.main_tables]


def test_an_imu_that_measures_half_is_called_so() -> None:
    """Where tags of both kinds are named, each counts as what its tag says."""
    urdf = two_link_urdf().replace('</robot>', ACC.format('a', 'arm'))
    urdf = urdf.replace('</robot>', GYRO.format('g', 'body'))
    check = check_urdf(urdf, imus=['a', 'g'])
    kinds = [row['kind'] for row in _rows(check, 'inertial_sensors')]
    assert kinds[2:] == ['IMU, accelerometer only', 'IMU, gyroscope only']


@pytest.mark.parametrize(
    ('given', 'said'),
    [
        ({}, 'nothing tells how'),
        ({'imus': ['heda']}, "'imus' names 'heda', but no frame"),
        ({'accelerometers': ['heda'], 'imus': ['head']}, "'accelerometers' names 'heda'"),
        ({'imus': ['head'], 'contacts': ['foott']}, "'contacts' names 'foott', but no frame"),
        (
            {'imus': ['head'], 'contacts': ['a'], 'contact.a.frame': 'foott'},
            "'contact.a.frame' is 'foott'",
        ),
        ({'imus': ['head'], 'touch_frames': ['foott']}, "'touch_frames' names 'foott'"),
        (
            {'imus': ['head'], 'assumed_joints': ['kne'], 'assumed_positions': [0.0]},
            "no assumed joint is named 'kne'",
        ),
        ({'imus': ['head'], 'imu.head.measures': 'accelerometer'}, 'gyroscope'),
        (
            {'imus': ['sole'], 'imu.sole': {'frame': 'hand', 'pose': [0.1, 0.0, 0.0] * 2}},
            "'imu.sole.frame_id' is empty",
        ),
        ({'imus': ['head'], 'ft_sensors': ['knee_ft']}, "'ft_sensors' names 'knee_ft'"),
        ({'imus': ['head'], 'joints': ['kne']}, "'joints' names 'kne'"),
    ],
)
def test_a_configuration_that_the_node_refuses_fails(
    given: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence and exit code 1, whatever else can be printed."""
    pytest.importorskip('yaml', reason='needs PyYAML')
    urdf, config = tmp_path / 'robot.urdf', tmp_path / 'robot.yaml'
    urdf.write_text(nested_humanoid_urdf())
    config.write_text(json.dumps({'/**': {'ros__parameters': given}}))
    assert main(['check', str(urdf), '--config', str(config)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith('inertial-estimation check: ')
    assert said in line


def test_what_only_the_estimator_refuses_comes_with_the_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The robot can be read; what its IMUs measure does not tell how it moves."""
    pytest.importorskip('yaml', reason='needs PyYAML')
    urdf, config, out = (tmp_path / name for name in ('robot.urdf', 'robot.yaml', 'out.json'))
    urdf.write_text(nested_humanoid_urdf())
    given = {'imus': ['head'], 'imu.head.measures': 'accelerometer', 'contacts': ['foot']}
    config.write_text(json.dumps({'/**': {'ros__parameters': given}}))
    settings = EstimatorSettings.from_dict(given)
    with pytest.raises(InertialEstimationError) as refused:
        build_estimator(settings, build_robot(settings, urdf.read_text()))
    assert main(['check', str(urdf), '--config', str(config), '--json', str(out)]) == 1
    said = capsys.readouterr()
    assert said.err == f"inertial-estimation check: '{urdf}': {refused.value}\n"
    assert 'leg_sensor' in said.out
    assert json.loads(out.read_text())['refusals'] == [str(refused.value)]


def test_without_imu_or_fixed_link_the_exit_code_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tables that can be made are there all the same."""
    urdf = tmp_path / 'robot.urdf'
    urdf.write_text(nested_humanoid_urdf())
    assert main(['check', str(urdf)]) == 1
    said = capsys.readouterr()
    assert 'give it a fixed_link or an IMU' in said.err
    assert 'leg_sensor' in said.out


def test_many_sensors_take_few_lines(
    shared_models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """77 tags: by link, unless all are asked for; and what was asked for comes last."""
    call = ['check', str(shared_models / 'icub_v2_5.urdf')]
    assert main(call) == 0
    short = capsys.readouterr().out
    assert len(short.splitlines()) < 70
    assert main([*call, '--all']) == 0
    whole = capsys.readouterr().out
    assert 'r_upper_leg_mtb_acc_11b5' in whole
    assert 'r_upper_leg_mtb_acc_11b5' not in short
    assert main([*call, '--contacts', 'l_sole', 'r_sole', 'chest']) == 0
    with_contacts = capsys.readouterr().out
    assert with_contacts.startswith(short)
    answer = with_contacts[len(short) :].strip()
    assert answer.startswith('If only these are touched: l_sole, r_sole, chest\n')
    assert 'no FT sensor informs the torques of l_elbow' in answer
    assert '…' in answer


def test_names_that_follow_each_other_are_cut_short() -> None:
    """Four or more; what is in between is there exactly once."""
    order = tuple('abcdefg')
    assert str(Names.of('abcd', order)) == 'a … d'
    assert str(Names.of('abc', order)) == 'a, b, c'
    assert str(Names.of('abdefg', order)) == 'a, b, d … g'
    assert str(Names.of('dcba', order)) == 'd, c, b, a'
    assert str(Names.of('abcd')) == 'a, b, c, d'
    assert str(Names.of('', order)) == ''


def test_help_says_what_the_exit_code_means(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(['check', '--help'])
    said = ' '.join(capsys.readouterr().out.split())
    assert 'Exit code: 0 the node would start with this robot' in said
    assert '1 it would refuse them, and the last line says why' in said


def test_contacts_that_stand_twice_are_refused_as_by_the_node() -> None:
    contacts = [Contact(name) for name in ('head', 'sole', 'sole')]
    check = check_urdf(nested_humanoid_urdf(), imus=['head'], contacts=contacts)
    assert check.refusals == ("'contacts' names 'sole' more than once: name it once",)
    apart = [Contact('sole'), Contact('sole', name='heel')]
    assert check_urdf(nested_humanoid_urdf(), imus=['head'], contacts=apart).refusals == ()
