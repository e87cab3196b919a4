# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The code of docs/modelling.md runs, and its tables name what exists.

Not covered: whether the equations named are the right ones.
"""

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).resolve().parents[1] / 'docs' / 'modelling.md'
NAMES = re.findall(r'`(\w+\.\w+(?:\.\w+)?)`', PAGE.read_text().partition('| what |')[2])


@pytest.mark.parametrize('name', NAMES)
def test_the_table_names_what_exists(name):
    module, *path = name.split('.')
    found = import_module(f'inertial_estimation.model.{module}')
    for part in path:
        found = getattr(found, part)
    assert found.__doc__


def test_the_table_is_not_empty():
    assert len(NAMES) > 15


def test_the_code_runs(shared_models, monkeypatch, tmp_path):
    (tmp_path / 'icub.urdf').write_bytes((shared_models / 'icub_v2_5.urdf').read_bytes())
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in re.findall(r'```python\n(.*?)```', PAGE.read_text(), re.DOTALL):
        exec(code, names)
    n = names['n']
    assert names['J'].shape == (6, 6 + n)
    power = names['forces'] @ names['equations'].velocity
    np.testing.assert_allclose(names['same'] @ names['other'].velocity, power, rtol=1e-10)
    np.testing.assert_allclose(names['average'].mass_matrix[:6, 6:], 0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(names['sample'].ft_readings[0], names['wrench'], rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(names['field']), np.hypot(22, 42), rtol=1e-12)
