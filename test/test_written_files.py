# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
No subcommand overwrites a file that it reads, under any name, nor writes two outputs to one file.

Not covered: file systems that do not tell files apart by number.
"""

import os

import pytest

from inertial_estimation.cli import main
from inertial_estimation.cli.files import check_outputs
from inertial_estimation.demo.run import find_config
from inertial_estimation.errors import CallError, ConfigError


@pytest.fixture
def folder(tmp_path):
    """Return a folder of files without content, but for one that names another."""
    for name in (
        'arm.urdf',
        'run.npz',
        'node.yaml',
        'base.csv',
        'bag/metadata.yaml',
        'bag/b.mcap',
    ):
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
