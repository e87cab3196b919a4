# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How the command behaves as a command: help, wrong files, pipes, interrupts, files it writes."""

import json
import os
import signal
import subprocess
import sys

import pytest
from robots import nested_humanoid_urdf

from inertial_estimation import cli
from inertial_estimation.cli import files, main
from inertial_estimation.cli.files import check_outputs
from inertial_estimation.demo.run import find_config
from inertial_estimation.errors import CallError, ConfigError

MAIN = 'import sys; from inertial_estimation.cli import main; sys.exit(main())'
BINARY = bytes(range(256))
TIMEOUT = 60.0
"""Long, because the machine may be busy; nothing waits for it to pass [s]."""
VERBS = ('check', 'replay', 'identify', 'excite', 'demo')
WAYS = [
    'offsets',
    'offset-without-model',
    'matrix',
    'affine',
    'temperature',
    'tool',
    'live',
    'show',
]
"""Subcommands of ``calibrate``."""


@pytest.fixture
def urdf(tmp_path):
    """Return a robot description file."""
    path = tmp_path / 'robot.urdf'
    path.write_text(nested_humanoid_urdf())
    return str(path)


@pytest.fixture
def config(tmp_path):
    """Return a parameter file."""
    path = tmp_path / 'robot.yaml'
    path.write_text('wrench_estimator: {ros__parameters: {imus: [head]}}')
    return str(path)


def make_wrong(kind, folder, name='wrong'):
    """Return a path with which something is wrong."""
    path = folder / name
    if kind == 'folder':
        path.mkdir()
    elif kind == 'empty':
        path.touch()
    elif kind == 'binary':
        path.write_bytes(BINARY)
    elif kind == 'malformed':
        path.write_text('<robot name="a">\n  [1: {')
    return str(path)


def refusal(capsys, *arguments):
    """Run the command; return the one line that it fails with."""
    assert main(arguments) == 1
    (line,) = (line for line in capsys.readouterr().err.splitlines() if line)
    assert line.startswith(f'inertial-estimation {arguments[0]}: ')
    return line


@pytest.mark.parametrize('options', [('--imu', 'head', '--fixed-link', 'foot'), ('--unknown',)])
def test_wrong_call_has_exit_code_2(options, urdf, capsys):
    try:
        code = main(['check', urdf, *options])
    except SystemExit as left:
        code = left.code
    assert code == 2
    assert capsys.readouterr().err


def test_help_imports_nothing_heavy():
    code = (
        'import sys; from inertial_estimation.cli import _parser; _parser().format_help(); '
        "sys.exit(bool({'numpy', 'rich', 'yaml'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, '-c', code], check=False).returncode == 0


@pytest.mark.parametrize('verb', [*VERBS, *(f'calibrate {way}' for way in WAYS)])
def test_help_fits_80_columns_and_its_example_is_a_call(verb, capsys, monkeypatch):
    monkeypatch.setenv('COLUMNS', '80')
    with pytest.raises(SystemExit):
        main([*verb.split(), '--help'])
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    text = ' '.join(shown.split())
    example = text[text.index('Example: inertial-estimation ') :].split()[2:]
    chosen = cli._parser().parse_args(example)
    assert verb.split() == [chosen.command, *filter(None, [getattr(chosen, 'way', None)])]


@pytest.mark.parametrize('kind', ['absent', 'folder', 'empty', 'binary', 'malformed'])
@pytest.mark.parametrize('verb', ['check', 'replay'])
def test_a_wrong_urdf_is_named_once(verb, kind, config, tmp_path, capsys):
    wrong = make_wrong(kind, tmp_path)
    rest = ['bag', '--config', config, '--robot', wrong] if verb == 'replay' else [wrong]
    assert refusal(capsys, verb, *rest).count(wrong) == 1


@pytest.mark.parametrize('kind', ['absent', 'folder', 'empty', 'binary', 'malformed'])
@pytest.mark.parametrize('ending', ['', '.mcap', '.db3'])
def test_a_wrong_bag_is_named(kind, ending, urdf, config, tmp_path, capsys):
    pytest.importorskip('rosbags', reason='needs rosbags')
    wrong = make_wrong(kind, tmp_path, f'wrong{ending}')
    assert wrong in refusal(capsys, 'replay', wrong, '--robot', urdf, '--config', config)


@pytest.mark.parametrize('verb', ['check', 'replay'])
def test_unwritable_file_is_refused_first(verb, tmp_path, capsys):
    # None of the other files exists: it does not get as far as to miss them.
    rest = {'check': ['u'], 'replay': ['b', '--robot', 'u', '--config', 'c']}[verb]
    absent = tmp_path / 'nowhere' / 'out.json'
    for path in (tmp_path, absent):
        assert refusal(capsys, verb, *rest, '--json', str(path)).count(str(path)) == 1


def test_closed_pipe_costs_neither_traceback_nor_json(urdf, tmp_path):
    out = tmp_path / 'out.json'
    command = [sys.executable, '-c', MAIN, 'check', urdf, '--imu', 'head', '--json', str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b''
    assert process.wait(TIMEOUT) == 128 + signal.SIGPIPE
    assert json.loads(out.read_text())


def test_output_in_ascii_without_trailing_blanks(urdf):
    command = [sys.executable, '-c', MAIN, 'check', urdf, '--imu', 'head', '--contacts', 'foot']
    env = {**os.environ, 'PYTHONIOENCODING': 'ascii'}
    done = subprocess.run(command, env=env, capture_output=True, timeout=TIMEOUT, check=False)
    assert (done.returncode, done.stderr) == (0, b'')
    lines = done.stdout.decode('ascii').splitlines()
    assert any('leg_sensor' in line for line in lines)
    assert all(line == line.rstrip() for line in lines)


def test_interrupt_prints_nothing(urdf, monkeypatch, capsys):
    def interrupted(path):
        raise KeyboardInterrupt

    monkeypatch.setattr(files, 'load_urdf', interrupted)
    assert main(['check', urdf]) == 128 + signal.SIGINT
    assert capsys.readouterr() == ('', '')


# ---- Outputs that would replace inputs -------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """Return a folder of files without content, but for one that names another."""
    for name in 'arm.urdf', 'run.npz', 'node.yaml', 'base.csv', 'bag/metadata.yaml', 'bag/b.mcap':
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('as it was')
    (tmp_path / 'logs.yaml').write_text('parameters: node.yaml')
    return tmp_path


IDENTIFY = 'identify {0}/run.npz@0:3 {0}/bag --robot {0}/arm.urdf --config {0}/logs.yaml'
EXCITE = 'excite --robot {0}/arm.urdf --limits {0}/node.yaml'
CHECK = 'check {0}/arm.urdf --config {0}/logs.yaml --identifiable'
BASE = 'check {0}/arm.urdf --base-parameters {0}/base.csv'
REPLAY = 'replay {0}/bag --robot {0}/arm.urdf --config {0}/node.yaml'


@pytest.mark.parametrize(
    ('call', 'option', 'name'),
    [
        (IDENTIFY, '--json', 'arm.urdf'),
        (IDENTIFY, '--out-urdf', 'node.yaml'),
        (IDENTIFY, '--json', 'bag/b.mcap'),
        (EXCITE, '--out-trajectory', 'node.yaml'),
        (CHECK, '--json', 'node.yaml'),
        (BASE, '--json', 'base.csv'),
        (REPLAY, '--json', 'bag/metadata.yaml'),
    ],
)
def test_an_output_that_is_read_is_refused_before_the_work(call, option, name, folder, capsys):
    path = folder / name
    before = path.read_text()
    assert main([*call.format(folder).split(), option, str(path)]) == 2
    assert capsys.readouterr().err.count(str(path)) == 2
    assert path.read_text() == before


def test_the_demo_keeps_its_configuration(capsys):
    before = find_config().read_bytes()
    assert main(['demo', '--duration', '1', '--json', str(find_config())]) == 2
    assert find_config().read_bytes() == before


@pytest.mark.parametrize('kind', ['same', 'symbolic', 'hard', 'roundabout'])
def test_a_file_is_recognised_under_other_names(kind, folder):
    path = other = folder / 'arm.urdf'
    if kind == 'symbolic':
        (other := folder / 'link').symlink_to(path)
    elif kind == 'hard':
        os.link(path, other := folder / 'link')
    elif kind == 'roundabout':
        other = folder / '..' / folder.name / 'arm.urdf'
    for outputs, inputs in (([None, other], [None, '', path]), ([path, other], [])):
        with pytest.raises(CallError):
            check_outputs(outputs, inputs)


def test_what_is_not_read_may_be_written(folder):
    (old := folder / 'bag' / 'old.json').touch()
    check_outputs([old, folder / 'new.json'], [folder / 'bag', folder / 'arm.urdf'])
    assert not (folder / 'new.json').exists()
    with pytest.raises(ConfigError):
        check_outputs([folder / 'nowhere' / 'out.json'], [])
