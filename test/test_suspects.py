# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Instants at which rows stick out, and what is near them.

Not covered: whole logs with pushes, which `test_disturbed` has.
"""

import numpy as np
import pytest
from robots import two_link_urdf

from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.outliers import WINDOW, Observed, Reference, find_outliers
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

RATE = 100
PUSHED = slice(400, 500)


@pytest.fixture
def pushed(rng):
    """Return what builds rows, a log at rest with one push, and what is true of it."""
    robot = Robot.from_urdf(two_link_urdf(), fixed_link='body')
    builder = EquationBuilder(robot, EquationChoice(wrenches=False, efforts=('elbow',)))
    n = 1000
    zero, empty = np.zeros((n, 1)), np.zeros((n, 0, 3))
    stamps = np.arange(n) * (10**9 // RATE)
    efforts = rng.normal(size=(n, 1))
    efforts[PUSHED] += 50.0
    samples = SampleBatch(
        stamps, zero, zero + 1.0, zero, empty, empty, empty, np.zeros((n, 0, 6)), efforts=efforts
    )
    (rows,) = builder.equations(samples)
    # Right-hand sides without the weight that holds the arm.
    samples.efforts[:, 0] += rows['effort elbow'].Y @ robot.parameters.ravel()
    return (
        builder,
        Observed(samples, {}, np.ones((n, 1), dtype=bool), np.zeros((n, 0), dtype=bool)),
        robot,
    )


@pytest.mark.parametrize('reach', [0.0, 0.3])
def test_what_is_near_a_push_is_suspect_too(pushed, reach):
    builder, observed, robot = pushed
    references = Reference(robot.parameters.ravel(), {'effort elbow': 1.0})
    at = np.flatnonzero(find_outliers(builder, observed, [references], 5.0, reach).at[:, 0])
    margin = round(reach * RATE)
    # A window is off before few of its rows are; how many, the push decides.
    spread = round(WINDOW * RATE / 4)
    assert abs(at[0] - (PUSHED.start - margin)) <= spread
    assert abs(at[-1] - (PUSHED.stop - 1 + margin)) <= spread
    np.testing.assert_array_equal(np.diff(at), 1)
    assert len(at) >= PUSHED.stop - PUSHED.start + 2 * margin - 2 * spread


def test_the_reach_is_that_long(pushed):
    builder, observed, robot = pushed
    references = Reference(robot.parameters.ravel(), {'effort elbow': 1.0})
    counts = [
        int(find_outliers(builder, observed, [references], 5.0, reach).at.sum())
        for reach in (0.0, 0.3)
    ]
    assert counts[1] - counts[0] == 2 * round(0.3 * RATE)
