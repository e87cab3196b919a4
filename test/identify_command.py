# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""``inertial-estimation identify`` on the files 'robot.urdf' and 'logs.yaml' of a folder."""

import json

import pytest

from inertial_estimation.cli import main


def run(folder, *arguments):
    """Run the command with its report in 'o.json', and return the exit code."""
    files = ('--robot', folder / 'robot.urdf', '--config', folder / 'logs.yaml')
    return main(list(map(str, ['identify', *arguments, *files, '--json', folder / 'o.json'])))


def report(folder):
    """Return the report, which holds finite numbers only."""
    return json.loads((folder / 'o.json').read_text(), parse_constant=pytest.fail)


def codes(folder):
    """Return code and subject of the findings, without the name of the log."""
    found = report(folder)['findings']
    return {(one['code'], one['subject'].split(': ')[-1]) for one in found}


def refused(folder, capsys, *arguments):
    """Return the error, in one line, of a run that writes nothing."""
    before = set(folder.iterdir())
    outputs = ('--out-urdf', folder / 'o.urdf', '--out-yaml', folder / 'o.yaml')
    assert run(folder, *arguments, *outputs) == 1
    error = capsys.readouterr().err
    assert error.count('\n') == 1 and set(folder.iterdir()) == before
    return error
