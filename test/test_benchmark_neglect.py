# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The benchmark of neglected accelerations measures what it says.

That the estimator weighs the sensors as it should is in test_bodies.
"""

import json

import numpy as np
import pytest

from inertial_estimation.benchmark.neglect import (
    ALL,
    CHOICES,
    EVERY,
    JOINT_ACCELERATION,
    ONE,
    RATE,
    SETTLED,
    TITLE,
    TURNING,
    Choice,
    Recording,
    columns,
    measure,
)

# Newton: round-off of arrays, whose inverses are some tens.
ROUND_OFF = 1e-9
# A sum of two sines over five seconds is not quite its size.
SIZE = 0.2
# Peers at the same size of accelerations, other motions [N]: trunk, arms, legs, feet.
SUBMODELS = ('root_link', 'l_upper_arm', 'l_hip_3', 'l_foot')
PEERS = {
    ('zero', 'true'): (24.4, 2.9, 14.9, 1.3),
    ('true', 'zero'): (36.5, 5.6, 34.5, 3.5),
    ('zero', 'zero'): (43.4, 6.4, 38.5, 3.8),
}


@pytest.fixture
def icub(shared_models):
    return (shared_models / 'icub_sensorised.urdf').read_text()


def test_with_all_accelerations_there_is_no_error(icub):
    choices = [Choice(ALL, spin, 'true', noise=False) for spin in ('true', 'array')]
    for cost in measure(icub, [*choices, Choice(ONE, 'true', 'true', noise=False)]):
        assert max(cost.forces.values()) < ROUND_OFF
        assert cost.torque < ROUND_OFF


def test_one_imu_costs_as_much_as_peers_have_found(icub):
    found = {(c.choice.spin, c.choice.joints): c for c in measure(icub, CHOICES[:3])}
    for key, expected in PEERS.items():
        forces = [found[key].forces[name] for name in SUBMODELS]
        np.testing.assert_allclose(forces, expected, rtol=0.35)


def test_arrays_make_joint_accelerations_needless_where_they_are(icub):
    choices = [Choice(ALL, spin, 'zero', noise=False) for spin in ('true', 'array')]
    without, arrays = measure(icub, choices)
    for arm in ('l_upper_arm', 'r_upper_arm'):
        assert without.forces[arm] > 0.1
        assert arrays.forces[arm] < ROUND_OFF


def test_a_recording_is_as_large_as_it_says(icub):
    recording = Recording.make(icub, 0, 'head')
    robot = recording.robot(ALL)
    kinds = [imu.measures for imu in robot.imus]
    assert (kinds.count('accelerometer'), kinds.count('gyroscope')) == (55, 11)
    spins = recording.readings[ONE][2]
    for values, size in ((recording.joints[2], JOINT_ACCELERATION), (spins, TURNING)):
        np.testing.assert_allclose(np.sqrt((values**2).mean()), size, rtol=SIZE)
    for k in (1, 2):
        slopes = np.gradient(recording.joints[k - 1], 1.0 / RATE, axis=0)[1:-1]
        np.testing.assert_allclose(slopes, recording.joints[k][1:-1], atol=0.01)
    states = recording.samples(Choice(ALL, 'filter', 'filter', noise=True))
    assert len(states) == 500
    assert states.stamp_ns[0] == recording.stamps_ns[round(SETTLED * RATE)]
    assert states.stamp_ns[1] == recording.stamps_ns[round(SETTLED * RATE) + EVERY]
    assert np.isfinite(states.angular_accelerations).all()


def test_figures_are_a_table_and_json(icub):
    costs = measure(icub, CHOICES[:1])
    names = columns(costs)
    assert len(costs[0].row) == len(names)
    assert names[-1] == 'worst torque [Nm]' and 'worst torque' in TITLE
    figures = json.loads(json.dumps(costs[0].as_dict()))
    assert figures['median_force_error_n'] == costs[0].forces
