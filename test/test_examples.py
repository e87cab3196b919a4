# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The examples run.

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
    package = str(Path(inertial_estimation.__file__).parents[1])
    command = [sys.executable, EXAMPLES / name, *arguments]
    environment = {**os.environ, 'PYTHONPATH': package}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_pushed_icub(tmp_path):
    for name in ('mujoco', 'icub_models', 'matplotlib'):
        pytest.importorskip(name)
    picture = tmp_path / 'picture.svg'
    done = run('pushed_icub.py', '--seconds', '3', '--picture', picture)
    assert done.returncode == 0, done.stderr
    # One newton with noise is the demo's goal; several IMUs are better than one.
    one, several = map(float, re.findall(r'force error (\S+) N rms', done.stdout))
    assert 0.0 < several < one < 1.0
    assert picture.read_text().startswith('<?xml')


@pytest.mark.parametrize('arguments', [('--seconds', 'nan'), ('--picture', 'nowhere/a.svg')])
def test_pushed_icub_refuses_wrong_arguments(arguments):
    pytest.importorskip('matplotlib', reason='pictures need matplotlib')
    done = run('pushed_icub.py', *arguments)
    assert done.returncode == 2 and not done.stdout
    assert arguments[1] in done.stderr.splitlines()[-1] and 'Traceback' not in done.stderr
