# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Readings of a small log of the humanoid, as columns and as messages."""

import numpy as np
import pytest

pytest.importorskip('rosbags')

from bag_messages import imu, joint_state, sent, wrench

START = 1_700_000_000_000_000_000
MS = 1_000_000
SETTINGS = {
    'imus': ['head'],
    'contacts': ['root', 'thigh', 'sole', 'hand'],
    'ft_sensors': ['arm_sensor', 'leg_sensor', 'foot_sensor'],
    'ft.leg_sensor.frame_id': 'leg_frame',
    'ft.foot_sensor.offset': [1.0, -2.0, 3.0, 0.1, -0.2, 0.3],
    'joint_states.velocity_source': 'filter',
}


def humanoid_columns(robot, n=60):
    """Return readings every 5 ms, by quantity or FT sensor, with times in seconds."""
    rng, t = np.random.default_rng(7), 5e-3 * np.arange(n)
    n_joints = len(robot.joint_names)
    return {
        # A stamp of zero is none.
        't': t + 1.0,
        'q': np.sin(t[:, None] * np.arange(1.0, n_joints + 1.0)),
        'v': np.zeros((n, n_joints)),
        'e': rng.normal(0.0, 1.0, (n, n_joints)),
        'w': rng.normal(0.0, 0.1, (n, 3)),
        'a': np.column_stack([0.1 + 0.0 * t, 0.2 + 0.0 * t, 9.8 + 0.1 * t]),
        **{name: rng.normal(0.0, 10.0, (n, 6)) for name in SETTINGS['ft_sensors']},
    }


def humanoid_messages(robot, n=60, delay_ms=0.0, columns=None):
    """Return the messages of the columns, those of FT sensors recorded with a delay."""
    columns, messages = columns or humanoid_columns(robot, n), []
    for k in range(len(columns['t'])):
        stamp = START + 5 * k * MS
        values = robot.joint_names, *(columns[key][k] for key in 'qve')
        messages.append(sent('/joint_states', joint_state, stamp, *values, late_ns=2 * MS))
        values = 'head', columns['w'][k], columns['a'][k]
        messages.append(sent('/imu/head', imu, stamp, *values, late_ns=MS))
        for name in SETTINGS['ft_sensors']:
            values = SETTINGS.get(f'ft.{name}.frame_id', name), columns[name][k]
            late_ns = MS + round(delay_ms * MS)
            messages.append(sent(f'/ft/{name}', wrench, stamp, *values, late_ns=late_ns))
    return sorted(messages, key=lambda message: message[2])
