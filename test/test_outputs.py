# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
No verb writes over what it reads, under whatever name, nor twice to one file.

Not covered: file systems that do not tell files apart by number.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from inertial_estimation.cli import main
from inertial_estimation.cli.files import check_outputs
from inertial_estimation.demo.run import find_config
from inertial_estimation.errors import CallError, ConfigError


def same(path: Path) -> Path:
    return path


def symbolic(path: Path) -> Path:
    link = path.with_name('link')
    link.symlink_to(path)
    return link


def hard(path: Path) -> Path:
    link = path.with_name('hard')
    os.link(path, link)
    return link


def roundabout(path: Path) -> Path:
    return path.parent / '..' / path.parent.name / path.name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of files that nobody could read, but for one that names another."""
    bag = tmp_path / 'bag'
    bag.mkdir()
    files = ('arm.urdf', 'run.npz', 'other.npz', 'node.yaml', 'base.csv', 'bag/metadata.yaml',
             'bag/bag_0.mcap')  # fmt: skip
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('as it was')
    (tmp_path / 'logs.yaml').write_text('parameters: node.yaml')
    return tmp_path


IDENTIFY = ('identify', '{}/run.npz@0:3', '{}/bag', '--robot', '{}/arm.urdf', '--config',
            '{}/logs.yaml', '--validate', '{}/other.npz@1:')  # fmt: skip
EXCITE = ('excite', '--robot', '{}/arm.urdf', '--limits', '{}/node.yaml')
CHECK = ('check', '{}/arm.urdf', '--config', '{}/logs.yaml', '--identifiable')
BASE = ('check', '{}/arm.urdf', '--base-parameters', '{}/base.csv')
REPLAY = ('replay', '{}/bag', '--robot', '{}/arm.urdf', '--config', '{}/node.yaml')
REPLAY_FILE = ('replay', '{}/bag/bag_0.mcap', *REPLAY[2:])
CALLS = [
    *((IDENTIFY, option, name)
      for option in ('--json', '--out-urdf', '--out-yaml')
      for name in ('arm.urdf', 'logs.yaml', 'node.yaml', 'run.npz', 'other.npz',
                   'bag/metadata.yaml', 'bag/bag_0.mcap')),
    *((EXCITE, option, name)
      for option in ('--json', '--out-csv', '--out-trajectory')
      for name in ('arm.urdf', 'node.yaml')),
    *((CHECK, '--json', name) for name in ('arm.urdf', 'logs.yaml', 'node.yaml')),
    (BASE, '--json', 'base.csv'),
    *((call, '--json', name)
      for call in (REPLAY, REPLAY_FILE)
      for name in ('arm.urdf', 'node.yaml', 'bag/metadata.yaml', 'bag/bag_0.mcap')),
]  # fmt: skip


@pytest.mark.parametrize(('call', 'option', 'name'), CALLS)
def test_an_output_that_is_read_is_refused_before_the_work(
    call: tuple[str, ...], option: str, name: str, folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = folder / name
    before = path.read_text()
    assert main([*(part.format(folder) for part in call), option, str(path)]) == 2
    said = capsys.readouterr().err
    assert 'is the same file and is read' in said
    assert said.count(str(path)) == 2
    assert path.read_text() == before


@pytest.mark.parametrize('name', [same, symbolic, hard, roundabout])
def test_a_file_has_many_names(name: Callable[[Path], Path], folder: Path) -> None:
    read = folder / 'arm.urdf'
    written = name(read)
    with pytest.raises(CallError) as caught:
        check_outputs([None, written], [None, '', read])
    assert f"'{written}'" in str(caught.value)
    assert f"'{read}'" in str(caught.value)


@pytest.mark.parametrize('name', [same, symbolic, hard, roundabout])
def test_two_outputs_are_two_files(name: Callable[[Path], Path], folder: Path) -> None:
    one = folder / 'arm.urdf'
    with pytest.raises(CallError):
        check_outputs([one, name(one)], [])


def test_what_is_not_read_may_be_written(folder: Path) -> None:
    old, new = folder / 'bag' / 'old.json', folder / 'new.json'
    old.touch()
    check_outputs([old, new], [folder / 'bag', folder / 'arm.urdf', folder / 'absent'])
    assert not new.exists()


def test_what_cannot_be_written_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError):
        check_outputs([folder / 'nowhere' / 'out.json'], [])


def test_the_demo_keeps_its_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    config = find_config()
    before = config.read_bytes()
    assert main(['demo', '--duration', '1', '--json', str(config)]) == 2
    assert 'is the same file and is read' in capsys.readouterr().err
    assert config.read_bytes() == before


def test_a_dash_is_no_output(tmp_path, monkeypatch):
    """Elsewhere it is standard output; here a file of that name would be left behind."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CallError):
        check_outputs([Path('-')], [])
    assert not list(tmp_path.iterdir())
