# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Innovation test of the recursion where matrices of FT sensors are wrong by a tenth.

Not covered: inertial parameters that are identified then.
"""

import numpy as np
from test_recursion import NOISE, robot, settings

from bench.live_robots import equal_parts, smooth_motion, with_readings
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.innovation import Change

__all__ = ['robot']

SIZES = np.array([1.0, 1.0, 1.0, 0.1, 0.1, 0.1])  # moments over a lever of 0.1 m
SECONDS, PUSHED = 40.0, 30.0


def test_sway_of_offsets_is_accepted_and_a_push_rejected(robot):
    rng = np.random.default_rng(2)
    push = np.zeros((round(100 * SECONDS), 6))
    push[round(100 * PUSHED) :, :3] = [30.0, -20.0, 34.6]
    samples = smooth_motion(robot, SECONDS, seed=1, swing=0.2)
    samples = with_readings(robot, samples, robot.parameters, {'r_lower_leg': push})
    for k in range(len(robot.ft_sensors)):
        matrix = np.eye(6) + 0.1 * rng.normal(size=(6, 6)) * np.outer(SIZES, 1.0 / SIZES)
        samples.ft_readings[:, k] = samples.ft_readings[:, k] @ matrix.T
    samples.ft_readings[:] += NOISE * rng.normal(size=samples.ft_readings.shape)
    given = settings(robot, weight=0.1, half_life=600.0, force_walk=0.3, warm_up=3.0, gate=4.0)
    identifier, changes = RecursiveIdentifier(robot, given), []
    for part in equal_parts(samples, 1.0):
        changes += [(1e-9 * part.stamp_ns[0], *change) for change in identifier.add(part)]
        identifier.refit()
    # The first is that of the push: swaying alone is none.
    begin, submodel, change = changes[0]
    assert (submodel, change) == ('r_hip_3', Change.TOUCHED)
    assert PUSHED <= begin < PUSHED + 2.0
    assert {name for _, name, _ in changes} == {'r_hip_3'}
