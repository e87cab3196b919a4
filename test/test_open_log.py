# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Tables opened as logs, as bags of the same readings; parts of logs; locked joints.

Not covered: bags (test_bag.py, test_replay.py), units and layouts (test_layout.py).
"""

import json
from dataclasses import replace

import numpy as np
import pytest
import yaml

pytest.importorskip('rosbags')

from bag_messages import write_bag
from replays import SETTINGS, humanoid_columns, humanoid_messages
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf

from inertial_estimation.cli import main
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, LogError
from inertial_estimation.identification.preparation import Preparation, prepare
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.log import LogSlice, no_progress
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.reduction import LogReader
from inertial_estimation.logs.replay import replay
from inertial_estimation.logs.setting_values import read
from inertial_estimation.logs.table import Layout
from inertial_estimation.model.configured_robot import build_robot

FTS = tuple(SETTINGS['ft_sensors'])


def layout_of(robot):
    return {
        'time': 't', 'joints': list(robot.joint_names), 'positions': 'q', 'velocities': 'v',
        'efforts': 'e', 'ft_sensors': {name: name for name in FTS},
        'imus': {'head': {'gyroscope': 'w', 'accelerometer': 'a'}},
    }  # fmt: skip


@pytest.fixture
def files(tmp_path):
    settings = EstimatorSettings.from_dict(SETTINGS)
    robot = build_robot(settings, nested_humanoid_urdf())
    np.savez(tmp_path / 'log.npz', **humanoid_columns(robot))
    bag = write_bag(tmp_path / 'bag', humanoid_messages(robot))
    return bag, tmp_path / 'log.npz', robot, settings


def test_table_gives_the_samples_of_a_bag(files, tmp_path):
    bag, table, robot, settings = files
    layout = read(Layout, layout_of(robot), 'log')
    one = open_log(bag, robot, settings)
    other = open_log(table, robot, settings, layout=layout)
    for name in ('positions', 'velocities', 'accelerations', 'angular_accelerations',
                 'proper_accelerations', 'ft_readings', 'efforts'):  # fmt: skip
        wanted, found = getattr(one.samples, name), getattr(other.samples, name)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * np.nanmax(np.abs(wanted)))
    wanted = replay(robot, one, settings).wrenches
    found = replay(robot, other, settings).wrenches
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * np.nanmax(np.abs(wanted)))
    # The command.
    texts = {
        'robot': nested_humanoid_urdf(),
        'config': json.dumps({'/**': {'ros__parameters': SETTINGS}}),
        'layout': json.dumps({'log': layout_of(robot)}),
    }
    call = ['replay', table, '--json', tmp_path / 'out.json']
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        call += [f'--{name}', tmp_path / name]
    assert main(list(map(str, call))) == 0
    assert json.loads((tmp_path / 'out.json').read_text())['n_samples'] == 60


# ---- Parts of logs, locked joints -----------------------------------------------------

STAMPS = 5 * 10**9 + np.arange(100, dtype=np.int64) * 100_000_000
SPEED = 2.0
# Of the speed of a joint that turns evenly: what the low pass leaves of the ends of the log.
SMALL = 2e-3


def test_part_is_named_by_seconds_after_the_first_sample():
    for text, rows in (
        ('run.npz', (0, 100)), ('run.npz@2:4', (20, 40)), ('run.npz@:0.35', (0, 4)),
        ('user@host.npz', (0, 100)), ('user@host.npz@0:1', (0, 10)),
    ):  # fmt: skip
        found = LogSlice.parse(text)
        assert found.rows(STAMPS).indices(100)[:2] == rows
        assert LogSlice.parse(str(found)) == found
    for times in ('4:2', 'a:b'):
        with pytest.raises(ConfigError):
            LogSlice.parse(f'run.npz@{times}')
    with pytest.raises(LogError):
        LogSlice.parse('run.npz@20:30').rows(STAMPS)
    one = LogSlice.parse('run.npz@1:5')
    for other, overlaps in (
        ('./run.npz@4:6', True), ('run.npz', True), ('run.npz@5:6', False), ('o.npz@1:5', False)
    ):  # fmt: skip
        assert one.overlaps(LogSlice.parse(other)) == overlaps


def opened(folder, lock=(), column='turned'):
    """Return a reader and the log of an arm whose first joint turns on, or stands still."""
    t = np.arange(2000) / 200.0
    turned = np.mod(SPEED * t + np.pi, 2 * np.pi) - np.pi
    turned[700:703] = np.nan
    still = np.where(np.arange(2000) % 2, np.pi - 1e-3, -np.pi + 1e-3)
    jumps = 4.0 * np.sign(np.sin(t))
    np.savez(folder / 'log.npz', t=t, turned=turned, still=still, jumps=jumps, lift=0 * t)
    settings = {
        'robot': {'fixed_link': 'base'},
        'log': {'time': 't', 'joints': ['shoulder', 'elbow', 'lift'],
                'positions': {'columns': [column, 'jumps', 'lift']}},
    }  # fmt: skip
    (folder / 'logs.yaml').write_text(yaml.safe_dump(settings))
    log = LogSlice.parse(folder / 'log.npz')
    given = IdentifySettings.from_yaml(folder / 'logs.yaml')
    reader = LogReader(arm_with_wrist_sensor_urdf(), given, lock, log, no_progress)
    return reader, reader.read(log)


def test_continuous_joint_has_an_even_speed(tmp_path):
    _, log = opened(tmp_path)
    samples = replace(log.samples, ft_readings=np.zeros((2000, 1, 6)))
    found = prepare(samples, Preparation()).samples
    known = np.isfinite(found.velocities[:, 0])
    assert known.mean() > 0.9
    np.testing.assert_allclose(found.velocities[known, 0], SPEED, rtol=SMALL)
    # The elbow has end stops, and its positions are taken as they are.
    assert np.ptp(log.samples.positions[:, 1]) == 8.0


def test_locked_joint_may_stand_half_a_turn_away(tmp_path):
    reader, _ = opened(tmp_path, ['shoulder'], 'still')
    assert reader.robot.joint_names == ('elbow', 'lift')
    with pytest.raises(LogError):
        opened(tmp_path, ['elbow'])
