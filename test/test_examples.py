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


def test_pushed_icub(tmp_path):
    pytest.importorskip('mujoco')
    pytest.importorskip('icub_models')
    pytest.importorskip('matplotlib')
    picture = tmp_path / 'picture.svg'
    command = [sys.executable, EXAMPLES / 'pushed_icub.py', '--seconds', '3', '--picture', picture]
    package = str(Path(inertial_estimation.__file__).parents[1])
    environment = {**os.environ, 'PYTHONPATH': package}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    errors = re.findall(r'force error (\S+) N rms', done.stdout)
    # One newton with noise is the demo's goal; several IMUs are better than one.
    assert len(errors) == 2
    assert 0.0 < float(errors[1]) < float(errors[0]) < 1.0
    assert picture.read_text().startswith('<?xml')
