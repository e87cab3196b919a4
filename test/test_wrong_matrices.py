# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Recursive identification where the matrices of FT sensors are wrong: nobody touches, or somebody.

Not covered: what wrong matrices do to bodies.
"""

import numpy as np
from free_air import smooth_motion, with_readings
from test_recursion import NOISE, robot, settings

from inertial_estimation.identification.recursion.identifier import (
    RecursiveIdentifier,
    equal_parts,
)
from inertial_estimation.identification.recursion.innovation import Change

__all__ = ['robot']

WRONG = 0.1
"""Of each element, moments over a lever of 0.1 m."""
SIZES = np.array([1.0, 1.0, 1.0, 0.1, 0.1, 0.1])
SECONDS, PUSHED = 40.0, 30.0


def changes(robot, pushes):
    """Return what an identification notices of a robot that swings slowly."""
    rng = np.random.default_rng(2)
    samples = smooth_motion(robot, SECONDS, seed=1, swing=0.2)
    samples = with_readings(robot, samples, robot.parameters, pushes)
    for k in range(len(robot.ft_sensors)):
        matrix = np.eye(6) + WRONG * rng.normal(size=(6, 6)) * np.outer(SIZES, 1.0 / SIZES)
        samples.ft_readings[:, k] = samples.ft_readings[:, k] @ matrix.T
    samples.ft_readings[:] += NOISE * rng.normal(size=samples.ft_readings.shape)
    given = settings(
        robot, weight=0.1, half_life=600.0, force_walk=0.3, moment_walk=0.03, warm_up=3.0, gate=4.0
    )
    identifier = RecursiveIdentifier(robot, given)
    found = []
    for part in equal_parts(samples, 1.0):
        begin = 1e-9 * part.stamp_ns[0]
        found += [(begin, *change) for change in identifier.add(part)]
        identifier.refit()
    return found


def test_sway_of_offsets_is_accepted_and_a_push_rejected(robot):
    push = np.zeros((round(100 * SECONDS), 6))
    push[round(100 * PUSHED) :, :3] = [30.0, -20.0, 34.6]
    noticed = changes(robot, {'r_lower_leg': push})
    # The first is that of the push: swaying alone is none, for as long as nobody pushes.
    begin, submodel, change = noticed[0]
    assert (submodel, change) == ('r_hip_3', Change.TOUCHED)
    assert PUSHED <= begin < PUSHED + 2.0
    assert {name for _, name, _ in noticed} == {'r_hip_3'}
