# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The page on identification names settings and methods that there are.

Not covered: its figures.
"""

import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from inertial_estimation.identification.rows.preparation import Preparation
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.logs.columns import Layout
from inertial_estimation.logs.identify_settings import GROUPS, ROWS, IdentifySettings
from inertial_estimation.logs.identify_shapes import SHAPES

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / 'docs' / 'identification.md').read_text(encoding='utf-8')
CONFIGS = sorted((ROOT / 'config').glob('identify_*.yaml'))


def first_cells(heading):
    """Return the code in the first column of the first table below a heading."""
    table = PAGE.split(heading)[1].split('\n|---')[1].split('\n\n')[0]
    lines = table.splitlines()[1:]
    return [re.findall('`([^`]+)`', line.split('|')[1]) for line in lines]


def test_settings_exist():
    names = [name for cell in first_cells('## The file') for name in cell]
    known = {
        'preparation': {field.name for field in fields(Preparation)},
        'rows': set(ROWS),
        'log': {field.name for field in fields(Layout)},
        'shapes': set(SHAPES),
    }
    for name in names:
        group, _, setting = name.partition('.')
        assert group in {*GROUPS, 'log', 'payloads'}
        assert not setting or setting in known[group], name
    for group, settings in (('rows', ROWS), ('shapes', SHAPES)):
        said = {name[len(group) + 1 :] for name in names if name.startswith(f'{group}.')}
        assert said == set(settings)


def test_methods_are_all_there_is():
    cells = first_cells('## The methods')
    assert {name for cell in cells for name in cell} == set(SOLVERS)


@pytest.mark.parametrize('path', CONFIGS, ids=lambda path: path.stem)
def test_settings_that_are_shipped_can_be_read(path):
    settings = IdentifySettings.from_yaml(path)
    assert (settings.layout is None) == (settings.parameters is not None)
    assert settings.reject == 0.0
    assert set(yaml.safe_load(path.read_text())) <= {*GROUPS, 'log', 'parameters', 'payloads'}


def test_there_are_settings_of_four_arms_a_payload_and_a_humanoid():
    assert len(CONFIGS) == 6
