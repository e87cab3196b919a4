# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The command as a command: help, wrong files, pipes, interrupts, files it writes; and ``check``.

Not covered: the other subcommands, which have tests of their own.
"""

import json
import os
import signal
import subprocess
import sys
from argparse import Namespace

import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf

from inertial_estimation.cli import check, main
from inertial_estimation.cli.commands import COMMANDS, METHODS, parser
from inertial_estimation.cli.files import check_outputs
from inertial_estimation.cli.robot_check import check_urdf
from inertial_estimation.errors import CallError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.findings import alike, finding

MAIN = 'import sys; from inertial_estimation.cli import main; sys.exit(main())'
VERBS = sorted({*COMMANDS, *(f'calibrate {way}' for way in METHODS)} - {'calibrate'})
TIMEOUT = 60.0
"""Long, because the machine may be busy; nothing waits for it to pass [s]."""


@pytest.fixture
def urdf(tmp_path):
    """Return a robot description file."""
    path = tmp_path / 'robot.urdf'
    path.write_text(nested_humanoid_urdf())
    return str(path)


def refusal(capsys, *arguments):
    """Run the command; return the one line that it fails with."""
    assert main(arguments) == 1
    (line,) = (line for line in capsys.readouterr().err.splitlines() if line)
    assert line.startswith(f'inertial-estimation {arguments[0]}: ')
    return line


def test_wrong_call_has_exit_code_2(urdf, capsys):
    assert main(['check', urdf, '--imu', 'head', '--fixed-link', 'foot']) == 2
    assert capsys.readouterr().err
    # A name that an option gives; a folder that does not exist.
    for option in '--imu', '--contacts':
        assert main(['check', urdf, option, 'heat']) == 2
    for wrong in ('--meshes', f'{urdf}.meshes'), ('--period', '-1'), ('--time', '0'):
        assert main(['excite', '--robot', urdf, *wrong]) == 2
    assert main(['demo', '--duration', '-1']) == 2
    assert 'head' in capsys.readouterr().err


def test_merged_findings_show_the_largest():
    some = [
        finding('missing', name, what='x', share=share)
        for name, share in zip('abc', (0.1, 0.3, 0.2))
    ]
    assert [(one.subject, others) for one, others in alike(some)] == [('b', ['a', 'c'])]


def test_help_imports_nothing_heavy():
    code = (
        'import sys; from inertial_estimation.cli.commands import parser; parser().format_help(); '
        "sys.exit(bool({'numpy', 'rich', 'yaml'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, '-c', code], check=False).returncode == 0


@pytest.mark.parametrize('verb', VERBS)
def test_help_fits_80_columns_and_its_example_is_a_call(verb, capsys, monkeypatch):
    monkeypatch.setenv('COLUMNS', '80')
    with pytest.raises(SystemExit):
        main([*verb.split(), '--help'])
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    text = ' '.join(shown.split())
    example = text[text.index('Example: inertial-estimation ') :].split()[2:]
    chosen = parser().parse_args(example)
    assert verb.split() == [chosen.command, *filter(None, [getattr(chosen, 'way', None)])]


WRONG = {
    'absent': b'', 'folder': b'', 'empty': b'', 'binary': bytes(range(256)),
    'malformed': b'<robot name="a">\n  [1: {',
}  # fmt: skip


@pytest.mark.parametrize('kind', WRONG)
def test_wrong_files_are_named(kind, urdf, tmp_path, capsys):
    pytest.importorskip('rosbags', reason='needs rosbags')
    config = tmp_path / 'robot.yaml'
    config.write_text('wrench_estimator: {ros__parameters: {imus: [head]}}')
    for name in ('wrong', 'wrong.mcap', 'wrong.db3'):
        wrong = tmp_path / name
        if kind == 'folder':
            wrong.mkdir()
        elif kind != 'absent':
            wrong.write_bytes(WRONG[kind])
        wrong = str(wrong)
        replay = ('--config', str(config), '--robot')
        for call in (['check', wrong], ['replay', 'bag', *replay, wrong]):
            assert refusal(capsys, *call).count(wrong) == 1
        assert wrong in refusal(capsys, 'replay', wrong, *replay, urdf)


def test_unwritable_file_is_refused_first(tmp_path, capsys):
    # None of the other files exists: it does not get as far as to miss them.
    for path in (tmp_path, tmp_path / 'nowhere' / 'out.json'):
        for call in ('check u', 'replay b --robot u --config c'):
            assert refusal(capsys, *call.split(), '--json', str(path)).count(str(path)) == 1


@pytest.mark.parametrize('pipe', ['closed', 'ascii'])
def test_output_needs_neither_reader_nor_unicode(pipe, urdf, tmp_path):
    out = tmp_path / 'out.json'
    options = ('--imu', 'head', '--contacts', 'foot', '--json', str(out))
    with subprocess.Popen(
        [sys.executable, '-c', MAIN, 'check', urdf, *options],
        env={**os.environ, 'PYTHONIOENCODING': 'ascii'},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        if pipe == 'closed':
            process.stdout.close()
        else:
            lines = process.stdout.read().decode('ascii').splitlines()
            assert any('leg_sensor' in line for line in lines)
            assert all(line == line.rstrip() for line in lines)
        assert process.stderr.read() == b''
    assert process.wait(TIMEOUT) == (128 + signal.SIGPIPE if pipe == 'closed' else 0)
    assert json.loads(out.read_text())


def test_interrupt_prints_nothing(urdf, monkeypatch, capsys):
    def interrupted(path):
        raise KeyboardInterrupt

    monkeypatch.setattr(check, 'load_urdf', interrupted)
    assert main(['check', urdf]) == 128 + signal.SIGINT
    assert capsys.readouterr() == ('', '')


# ---- Outputs that would replace inputs -------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """Return a folder of files without content."""
    names = 'arm.urdf', 'run.npz', 'node.yaml', 'logs.yaml', 'base.csv'
    for name in (*names, 'bag/metadata.yaml', 'bag/b.mcap'):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('as it was')
    (tmp_path / 'link').symlink_to(tmp_path / 'arm.urdf')
    return tmp_path


IDENTIFY = 'identify {0}/run.npz@0:3 {0}/bag --robot {0}/arm.urdf --config {0}/logs.yaml'
EXCITE = 'excite --robot {0}/arm.urdf --limits {0}/node.yaml'
BASE = 'check {0}/arm.urdf --base-parameters {0}/base.csv'
REPLAY = 'replay {0}/bag --robot {0}/arm.urdf --config {0}/node.yaml'


@pytest.mark.parametrize(
    ('call', 'option', 'name'),
    [
        (IDENTIFY, '--json', 'arm.urdf'),
        (IDENTIFY, '--out-urdf', 'run.npz'),
        (IDENTIFY, '--json', 'bag/b.mcap'),
        (EXCITE, '--out-trajectory', 'node.yaml'),
        (BASE, '--json', 'base.csv'),
        (BASE, '--json', 'link'),
        (REPLAY, '--json', 'bag/metadata.yaml'),
    ],
)
def test_an_output_that_is_read_is_refused_before_the_work(call, option, name, folder, capsys):
    path = folder / name
    before = path.read_text()
    assert main([*call.format(folder).split(), option, str(path)]) == 2
    assert capsys.readouterr().err.count(str(folder)) == 2
    assert path.read_text() == before


def test_outputs_are_two_files_and_may_lie_in_a_folder_that_is_read(folder):
    with pytest.raises(CallError):
        check_outputs(Namespace(json=folder / 'bag' / '..' / 'new', out=folder / 'new'))
    (old := folder / 'bag' / 'old.json').touch()
    check_outputs(Namespace(json=old, log=f'{folder / "bag"}@0:1'))


# ---- Robots that are checked -----------------------------------------------------------


def codes(check):
    return [(one.code, one.subject) for one in check['findings']]


def test_sensors_submodels_motion_sources_and_dependence_are_reported():
    contacts = [Contact(name) for name in ('chest', 'upper_arm', 'thigh', 'foot')]
    check = check_urdf(nested_humanoid_urdf(), imus=['head'], contacts=contacts)
    found = json.loads(json.dumps(check | {'findings': []}, allow_nan=False))
    sensors, submodels, torques, wrenches = (
        {row[name]: row for row in found[key]}
        for key, name in (
            ('ft_sensors', 'sensor'), ('submodels', 'submodel'),
            ('torque_dependence', 'name'), ('wrench_dependence', 'name'),
        )
    )  # fmt: skip
    assert sensors['foot_sensor']['reads'] == 'shank on foot'
    assert sensors['leg_sensor']['xyz_m'] == [0.01, -0.02, 0.03]
    assert sensors['leg_sensor']['rpy_rad'] == [0.4, 0.1, -2.0]
    assert submodels['thigh']['mass_kg'] == 4.5
    assert submodels['thigh']['sensors_beyond'] == ['foot_sensor']
    assert submodels['root']['sensor_towards_root'] is None
    assert torques['knee']['fts'] == ['foot_sensor'] and torques['elbow']['fts'] == []
    assert set(torques['knee']['joints']) == {'waist', 'neck', 'hip_joint', 'knee'}
    assert list(wrenches) == ['chest', 'upper_arm', 'thigh', 'foot']
    assert ('uninformed', 'upper_arm') in codes(check)
    # Thigh and shank have no IMU of their own, and the foot's is near.
    without = check_urdf(nested_humanoid_urdf(), imus=['head', 'foot'])
    serves = {row['source']: row['serves'] for row in without['clusters']}
    assert serves['foot'] == ['thigh', 'shank', 'foot'] and 'hip' in serves['head']
    lost = check_urdf(nested_humanoid_urdf(), imus=[], contacts=[Contact('foot')])
    assert all('torque_dependence' not in one for one in (without, lost))


def test_parts_that_cannot_be_used_are_reported():
    hidden = '<gazebo reference="{}"><sensor name="other" type="force_torque"/></gazebo>'
    urdf = (
        arm_with_wrist_sensor_urdf()
        .replace('<frame>child</frame>', '<frame>parent</frame>')
        .replace('<axis xyz="0 1 0"/>', '<axis xyz="0 1 0"/><mimic joint="shoulder"/>')
        .replace('<mass value="2.0"/>', '<mass value="-2.0"/>')
    )
    # The wrist has its tag outside as well.
    for joint, found in ('elbow', True), ('wrist_sensor_joint', False):
        check = check_urdf(urdf.replace('</robot>', f'{hidden.format(joint)}</robot>'))
        assert ('inertia', 'upper') in codes(check)
        assert (('suboptimal', 'other') in codes(check)) == found
        refusals = ' '.join(check['refusals'])
        assert all(name in refusals for name in ("'wrist_sensor'", "'elbow'"))


@pytest.mark.parametrize(
    ('given', 'name'),
    [
        ({}, ''),
        ({'imus': ['heda']}, "'heda'"),
        ({'imus': ['head'], 'contacts': ['foott']}, "'foott'"),
        ({'imus': ['head'], 'imu.head.measures': 'accelerometer'}, 'gyroscope'),
        (
            {'imus': ['sole'], 'imu.sole': {'frame': 'hand', 'pose': [0.1, 0.0, 0.0] * 2}},
            'imu.sole.frame_id',
        ),
        ({'imus': ['head'], 'ft_sensors': ['knee_ft']}, "'knee_ft'"),
        ({'imus': ['head'], 'joints': ['kne']}, "'kne'"),
    ],
)
def test_settings_that_the_node_refuses_fail(given, name, urdf, tmp_path, capsys):
    config = tmp_path / 'robot.yaml'
    config.write_text(json.dumps({'/**': {'ros__parameters': given}}))
    assert name in refusal(capsys, 'check', urdf, '--config', str(config))
