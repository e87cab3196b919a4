# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The examples run and say what the README says of them.

Not covered: how good the estimates are (test_demo_scores.py, test_against_mujoco.py).
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import inertial_estimation

EXAMPLES = Path(__file__).resolve().parents[1] / 'examples'


def run(name, *arguments):
    """Run an example and return what it said and how it ended."""
    package = str(Path(inertial_estimation.__file__).parents[1])
    environment = {**os.environ, 'PYTHONPATH': package}
    command = [sys.executable, EXAMPLES / name, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_pushed_icub(tmp_path):
    pytest.importorskip('mujoco')
    pytest.importorskip('icub_models')
    pytest.importorskip('matplotlib')
    picture = tmp_path / 'picture.svg'
    done = run('pushed_icub.py', '--seconds', '3', '--picture', picture)
    assert done.returncode == 0, done.stderr
    errors = re.findall(r'force error (\S+) N rms', done.stdout)
    # One newton with noise is the demo's goal; several IMUs are better than one.
    assert len(errors) == 2
    assert 0.0 < float(errors[1]) < float(errors[0]) < 1.0
    assert picture.read_text().startswith('<?xml')


@pytest.mark.parametrize(
    ('arguments', 'said'),
    [
        (['--seconds', '0'], '--seconds is 0.0: take 2 to 600'),
        (['--seconds', 'nan'], '--seconds is nan: take 2 to 600'),
        (['--picture', 'nowhere/picture.svg'], "'nowhere/picture.svg': No such file or directory"),
    ],
)
def test_pushed_icub_refuses_what_it_cannot_do(arguments, said):
    if '--picture' in arguments:
        pytest.importorskip('matplotlib', reason='pictures need matplotlib')
    done = run('pushed_icub.py', *arguments)
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]
    assert 'Traceback' not in done.stderr
    assert not done.stdout
