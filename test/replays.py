# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Readings of a small log of the humanoid, as columns and as messages."""

import numpy as np
import pytest

pytest.importorskip('rosbags')

from bag_messages import IMU, JOINT_STATE, WRENCH, imu, joint_state, wrench

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


def humanoid_messages(robot, n=60, delay_ms=0.0):
    """Return the messages of the columns, those of FT sensors recorded with a delay."""
    columns, messages = humanoid_columns(robot, n), []
    for k in range(n):
        stamp = START + 5 * k * MS
        data = joint_state(stamp, robot.joint_names, *(columns[key][k] for key in 'qve'))
        messages.append(('/joint_states', JOINT_STATE, stamp + 2 * MS, data))
        data = imu(stamp, 'head', columns['w'][k], columns['a'][k])
        messages.append(('/imu/head', IMU, stamp + MS, data))
        for name in SETTINGS['ft_sensors']:
            frame = SETTINGS.get(f'ft.{name}.frame_id', name)
            recorded = stamp + MS + round(delay_ms * MS)
            messages.append(
                (f'/ft/{name}', WRENCH, recorded, wrench(stamp, frame, columns[name][k]))
            )
    return sorted(messages, key=lambda message: message[2])
