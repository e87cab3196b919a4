# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The examples run.

Not covered: how good the estimates are (test_demo_scores.py, test_simulation.py).
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
    for name in ('mujoco', 'icub_models', 'matplotlib'):
        pytest.importorskip(name)
    picture, example = tmp_path / 'picture.svg', EXAMPLES / 'pushed_icub.py'
    done = subprocess.run(
        [sys.executable, example, '--seconds', '3', '--picture', picture],
        env={**os.environ, 'PYTHONPATH': str(Path(inertial_estimation.__file__).parents[1])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # One newton with noise is the demo's goal; several IMUs are better than one.
    one, several = map(float, re.findall(r'force error (\S+) N rms', done.stdout))
    assert 0.0 < several < one < 1.0
    assert picture.read_text().startswith('<?xml')
