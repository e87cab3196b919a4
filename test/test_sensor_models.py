# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Readings of the sensor models against Pinocchio.

Not covered: noise, offsets and calibration, which are no part of the models.
"""

import numpy as np
import pytest
from consistent_readings import ConsistentReadings, random_motion
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf

from inertial_estimation.model.free_floating import FreeFloatingModel
from inertial_estimation.model.representations import Representation
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensor_models import SensorModels

LEFT, MIXED = Representation.LEFT, Representation.MIXED
ROUND_OFF = 1e-10  # of some hundred N, Nm and m/s^2, through up to 57 joints
WRENCH = np.array([30.0, -20.0, 10.0, 2.0, -1.0, 3.0])
FIELDS = ('angular_velocities', 'proper_accelerations', 'angular_accelerations', 'ft_readings')


def assert_same_readings(ours, theirs):
    for field in FIELDS:
        got, expected = getattr(ours, field), getattr(theirs, field)
        np.testing.assert_allclose(got, expected, rtol=0, atol=ROUND_OFF, err_msg=field)


def test_floating_robot_against_pinocchio(rng):
    """IMUs on several links, FT sensors of both directions; other variables change nothing."""
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'hand', 'sole'])
    motion = random_motion(robot, rng)
    wrenches = {'hand': WRENCH, 'sole': -2 * WRENCH}
    theirs, _, _ = ConsistentReadings(robot).sample(motion, wrenches)
    v = np.append(np.zeros(3), motion.rate)
    state = FreeFloatingModel(robot).state(
        motion.positions, motion.velocities, None, v, representation=LEFT
    )
    models = SensorModels.floating(state, motion.accelerations, wrenches)
    assert_same_readings(models.sample(), theirs)
    np.testing.assert_allclose(models.reaction, 0, rtol=0, atol=ROUND_OFF)
    mixed = state.equations('sole', MIXED)
    acceleration = mixed.acceleration_from(models.variables, models.acceleration)
    assert_same_readings(SensorModels(state, mixed, acceleration, wrenches).sample(), theirs)


@pytest.mark.parametrize('held', ['base', 'tool'])
def test_reaction_holds_a_fixed_robot(held, rng):
    """Held on either side of the FT sensor; one joint is continuous."""
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link=held, imus=['slider'])
    motion = random_motion(robot, rng)
    state = FreeFloatingModel(robot).state(motion.positions, motion.velocities, base=held)
    accelerations = np.concatenate([np.zeros(6), motion.accelerations])
    given = state, state.equations(held, MIXED), accelerations
    models = SensorModels(*given)
    whole = SensorModels(*given, {held: models.reaction})
    np.testing.assert_allclose(whole.reaction, 0, rtol=0, atol=ROUND_OFF)
    assert_same_readings(whole.sample(), models.sample())
    if held == 'base':
        theirs, _, reaction = ConsistentReadings(robot).sample(motion, {})
        assert_same_readings(models.sample(), theirs)
        np.testing.assert_allclose(models.reaction, reaction, rtol=0, atol=ROUND_OFF)
