# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Joints without end stops, reported within one turn.

Not covered: joints with end stops more than a turn apart, whose positions are taken as they are.
"""

from dataclasses import replace

import numpy as np
import pytest
import yaml
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.identification.preparation import Preparation, prepare
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.log import LogSlice, no_progress
from inertial_estimation.logs.log_reader import open_logs

SPEED = 2.0


@pytest.fixture
def opened(tmp_path):
    """Return a function that opens a log of a shoulder that turns (q1) or stands at pi (q0)."""
    t = np.arange(2000) / 200.0
    turned = np.mod(SPEED * t + np.pi, 2 * np.pi) - np.pi
    turned[700:703] = np.nan
    still = np.where(np.arange(2000) % 2, np.pi - 1e-3, -np.pi + 1e-3)
    np.savez(tmp_path / 'log.npz', t=t, q1=turned, q2=4.0 * np.sign(np.sin(t)), q3=0 * t, q0=still)

    def opened(column, lock=()):
        given = {
            'robot': {'fixed_link': 'base'},
            'log': {'time': 't', 'joints': ['shoulder', 'elbow', 'lift'],
                    'positions': {'columns': [column, 'q2', 'q3']}},
            'rows': {'efforts': 'all'},
        }  # fmt: skip
        (tmp_path / 'log.yaml').write_text(yaml.safe_dump(given))
        settings = IdentifySettings.from_yaml(tmp_path / 'log.yaml')
        log = LogSlice.parse(tmp_path / 'log.npz')
        reader = open_logs(arm_with_wrist_sensor_urdf(), settings, lock, log, no_progress)
        return reader.robot, reader.read(log)

    return opened


def test_a_joint_that_turns_on_has_a_constant_speed(opened):
    _, log = opened('q1')
    samples = replace(log.samples, ft_readings=np.zeros((2000, 1, 6)))
    found = prepare(samples, Preparation()).samples
    known = np.isfinite(found.velocities[:, 0])
    assert known.mean() > 0.9
    # What the low pass leaves of the ends of the log.
    np.testing.assert_allclose(found.velocities[known, 0], SPEED, rtol=2e-3)
    # The elbow has end stops: its jumps are taken as they are.
    assert np.ptp(log.samples.positions[:, 1]) == 8.0


def test_a_locked_joint_may_stand_half_a_turn_away(opened):
    assert 'shoulder' not in opened('q0', ['shoulder'])[0].joint_names
