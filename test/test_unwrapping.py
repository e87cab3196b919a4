# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Joints without end stops, reported within one turn.

Not covered: joints with end stops more than a turn apart, whose positions are taken as they are.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.identification.preparation import Preparation, prepare
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.log import LogSlice, no_progress
from inertial_estimation.logs.log_reader import open_logs

SPEED = 2.0
# Of the speed of a joint that turns evenly: what the low pass leaves of the ends of the log.
SMALL = 2e-3


@pytest.fixture
def reader(tmp_path):
    """Return what reads a log of the first joint on and on around, and of it."""
    t = np.arange(2000) / 200.0
    turned = np.mod(SPEED * t + np.pi, 2 * np.pi) - np.pi
    turned[700:703] = np.nan
    still = np.where(np.arange(2000) % 2, np.pi - 1e-3, -np.pi + 1e-3)
    np.savez(tmp_path / 'log.npz', t=t, q1=turned, q2=4.0 * np.sign(np.sin(t)), q3=0 * t, q0=still)
    said = {
        'robot': {'fixed_link': 'base'},
        'log': {'time': 't', 'joints': ['shoulder', 'elbow', 'lift'],
                'positions': {'columns': ['q1', 'q2', 'q3']}},
        'rows': {'efforts': 'all'},
    }  # fmt: skip
    (tmp_path / 'logs.yaml').write_text(yaml.safe_dump(said))
    return tmp_path


def opened(folder: Path, lock=(), column='q1'):
    """Return the reader of a log, and the log."""
    text = (folder / 'logs.yaml').read_text().replace('q1', column)
    (folder / 'own.yaml').write_text(text)
    log = LogSlice.parse(folder / 'log.npz')
    settings = IdentifySettings.from_yaml(folder / 'own.yaml')
    robot = open_logs(arm_with_wrist_sensor_urdf(), settings, lock, log, no_progress)
    return robot, robot.read(log)


def test_a_joint_that_turns_on_and_on_has_an_even_speed(reader):
    _, log = opened(reader)
    samples = replace(log.samples, ft_readings=np.zeros((2000, 1, 6)))
    found = prepare(samples, Preparation()).samples
    known = np.isfinite(found.velocities[:, 0])
    assert known.mean() > 0.9
    np.testing.assert_allclose(found.velocities[known, 0], SPEED, rtol=SMALL)
    # The elbow has end stops, and jumps as it is told to.
    assert np.ptp(log.samples.positions[:, 1]) == 8.0


def test_a_locked_joint_may_stand_half_a_turn_away(reader):
    robot, _ = opened(reader, ['shoulder'], 'q0')
    assert 'shoulder' not in robot.robot.joint_names
