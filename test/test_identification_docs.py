# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The page on identification names settings, methods and commands that there are; its code runs.

Not covered: its figures.
"""

import re
import shlex
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import yaml
from real_arms.robots import ROBOTS
from simulated_arm import MASSES, arm, arm_urdf, efforts_of, moving

from inertial_estimation.cli import _parser
from inertial_estimation.identification.preparation import Preparation
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.logs.columns import Layout
from inertial_estimation.logs.identify_bounds import BOUNDS
from inertial_estimation.logs.identify_settings import GROUPS, ROWS, IdentifySettings
from inertial_estimation.logs.identify_shapes import SHAPES
from inertial_estimation.model.robot import Robot

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / 'docs' / 'identification.md').read_text(encoding='utf-8')
MOMENT = 1e-3
"""Prior and friction without any noise leave this of first moments of some 0.1 [kg m]."""
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
        'bounds': set(BOUNDS),
    }
    for name in names:
        group, _, setting = name.partition('.')
        assert group in {*GROUPS, 'log', 'payloads'}
        assert not setting or setting in known[group], name
    log = {'ft_sensors', 'imus', 'external'}
    assert log <= {name[len('log.') :] for name in names if name.startswith('log.')}
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


def test_a_file_that_explains_every_setting_does():
    """What is switched off by a `#` can be switched on."""
    text = (ROOT / 'config' / 'identify_panda.yaml').read_text(encoding='utf-8')
    block = re.search(r'((?:  # .*\n)+)  external:', text).group(1)
    sensors = re.sub(r'^  # ', '  ', block.split('\n', 1)[1], flags=re.MULTILINE)
    said = yaml.safe_load(text.replace(block, sensors))
    layout = Layout.read(said['log'])
    assert set(layout.ft_sensors) == {'wrist'} and set(layout.imus) == {'base_imu'}
    assert set(said['log']) == {field.name for field in fields(Layout)}
    assert set(said['preparation']) == {field.name for field in fields(Preparation)}
    assert set(said['rows']) == set(ROWS)


def test_there_are_settings_of_four_arms_a_payload_and_a_humanoid():
    assert len(CONFIGS) == 6


def commands():
    """Return the calls of the command, without the name of the program."""
    blocks = re.findall(r'```bash\n(.*?)```', PAGE, re.DOTALL)
    lines = '\n'.join(blocks).replace('\\\n', ' ').splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith('inertial-estimation ')]


def test_commands_are_calls():
    assert len(commands()) >= 9
    for call in commands():
        assert _parser().parse_args(call).command == call[0]


def test_commands_of_real_arms_split_their_logs_as_the_benchmark_does():
    found = [_parser().parse_args(call) for call in commands() if call[0] == 'identify']
    splits = {(one.config, *one.logs, '', *one.validate, one.robot) for one in found}
    for robot in ROBOTS:
        assert (robot.config, *robot.fitted, '', *robot.predicted, robot.urdf) in splits


def test_the_code_runs(monkeypatch, tmp_path, rng):
    monkeypatch.chdir(tmp_path)
    Path('arm.urdf').write_text(arm_urdf([1.3 * mass for mass in MASSES]))
    log = moving(rng, 10.0, 100.0)
    efforts = efforts_of(arm(), log)
    signals = {'q': log.positions, 'v': log.velocities, 'a': log.accelerations}
    np.savez('run.npz', t=1e-9 * log.stamp_ns, efforts=efforts, **signals)
    names = {}
    for code in re.findall(r'```python\n(.*?)```', PAGE, re.DOTALL):
        exec(code, names)
    assert names['found'].consistent
    again, truth = (Robot.from_urdf(text, fixed_link='base').parameters[-1]
                    for text in (names['urdf'], arm_urdf()))  # fmt: skip
    # The first moments of the last link are determined.
    np.testing.assert_allclose(again[[1, 3]], truth[[1, 3]], rtol=0, atol=MOMENT)
