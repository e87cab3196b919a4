# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
FT sensors whose readings never change.

Not covered: efforts that do not, and signals that are missing: test_identify_doubts.py.
"""

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.errors import LogError
from inertial_estimation.logs.signal_checks import LEAST, require_live_wrenches
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

N = 50


@pytest.fixture
def robot():
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')


def log(robot, readings, moving=True, n=N):
    """Return a log of some readings of the only FT sensor."""
    q = np.zeros((n, len(robot.joint_names)))
    q[:, 0] = np.linspace(0.0, 0.5, n) if moving else 0.0
    none = np.zeros((n, len(robot.imus), 3))
    stamps = np.arange(n, dtype=np.int64) * 10_000_000
    return SampleBatch(stamps, q, q, q, none, none, none, readings[:, None])


@pytest.mark.parametrize('value', [0.0, 1.5])
def test_a_wrench_that_never_changes_is_refused(robot, value):
    readings = np.full((N, 6), value)
    readings[3] = np.nan
    said = f"'wrist_sensor' is the same at all {N - 1} instants.*moment_z {value:g}.*columns"
    with pytest.raises(LogError, match=said):
        require_live_wrenches(robot, log(robot, readings))


def test_at_rest_and_of_single_components_it_is_told(robot, rng):
    (said,) = require_live_wrenches(robot, log(robot, np.ones((N, 6)), moving=False))
    assert 'force_x 1, force_y 1' in said
    readings = rng.normal(size=(N, 6))
    assert require_live_wrenches(robot, log(robot, readings)) == []
    readings[:, 2] = 0.0
    (said,) = require_live_wrenches(robot, log(robot, readings))
    assert '(force_z 0)' in said


def test_a_few_equal_readings_are_a_chance(robot):
    n = LEAST - 1
    assert require_live_wrenches(robot, log(robot, np.zeros((n, 6)), n=n)) == []
    assert require_live_wrenches(robot, log(robot, np.full((N, 6), np.nan))) == []
