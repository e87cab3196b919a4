# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Messages of a small bag of the humanoid."""

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


def humanoid_messages(robot, n=60, delay_ms=0.0):
    """Return 5 ms cycles of all topics of the humanoid, FT messages recorded with a delay."""
    rng = np.random.default_rng(7)
    names = list(robot.joint_names)
    frames = ('arm_sensor', 'leg_frame', 'foot_sensor')
    messages = []
    for k in range(n):
        ms = 5 * k
        stamp = START + ms * MS
        positions = np.sin(1e-3 * ms * np.arange(1.0, len(names) + 1.0))
        efforts = rng.normal(0.0, 1.0, len(names))
        data = joint_state(stamp, names, positions, np.zeros(len(names)), efforts)
        messages.append(('/joint_states', JOINT_STATE, stamp + 2 * MS, data))
        data = imu(stamp, 'head', rng.normal(0.0, 0.1, 3), [0.1, 0.2, 9.8 + 1e-4 * ms])
        messages.append(('/imu/head', IMU, stamp + MS, data))
        for frame, topic in zip(frames, ('arm_sensor', 'leg_sensor', 'foot_sensor')):
            data = wrench(stamp, frame, rng.normal(0.0, 10.0, 6))
            recorded = stamp + MS + round(delay_ms * MS)
            messages.append((f'/ft/{topic}', WRENCH, recorded, data))
    return sorted(messages, key=lambda message: message[2])
