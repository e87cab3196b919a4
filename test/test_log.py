# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Parts of logs as the command names them, locked joints, and joints without end stops."""

from dataclasses import replace

import numpy as np
import pytest
import yaml
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.errors import ConfigError, LogError
from inertial_estimation.identification.preparation import Preparation, prepare
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.log import LogSlice, no_progress
from inertial_estimation.logs.log_reader import open_logs

STAMPS = 5 * 10**9 + np.arange(100, dtype=np.int64) * 100_000_000
SPEED = 2.0
# Of the speed of a joint that turns evenly: what the low pass leaves of the ends of the log.
SMALL = 2e-3


@pytest.mark.parametrize(
    ('text', 'rows'),
    [
        ('run.npz', (0, 100)),
        ('run.npz@2:4', (20, 40)),
        ('run.npz@9.5:', (95, 100)),
        ('run.npz@:0.35', (0, 4)),
        ('user@host.npz', (0, 100)),
        ('user@host.npz@0:1', (0, 10)),
    ],
)
def test_part_is_named_by_seconds_after_the_first_sample(text, rows):
    found = LogSlice.parse(text)
    assert found.rows(STAMPS).indices(100)[:2] == rows
    assert LogSlice.parse(str(found)) == found


@pytest.mark.parametrize('times', ['4:2', '-1:2', 'a:b', '1:nan', '3:3'])
def test_times_without_samples_are_refused(times):
    with pytest.raises(ConfigError):
        LogSlice.parse(f'run.npz@{times}')
    with pytest.raises(LogError):
        LogSlice.parse('run.npz@20:30').rows(STAMPS)


def test_parts_of_one_log_overlap_or_not():
    one = LogSlice.parse('run.npz@1:5')
    assert one.overlaps(LogSlice.parse('./run.npz@4:6'))
    assert one.overlaps(LogSlice.parse('run.npz'))
    assert not one.overlaps(LogSlice.parse('run.npz@5:6'))
    assert not one.overlaps(LogSlice.parse('other.npz@1:5'))


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
    log, given = (
        LogSlice.parse(folder / 'log.npz'),
        IdentifySettings.from_yaml(folder / 'logs.yaml'),
    )
    reader = open_logs(arm_with_wrist_sensor_urdf(), given, lock, log, no_progress)
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
