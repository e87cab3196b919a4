# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Readings of the sensor models against Pinocchio and the physics engine.

Not covered: noise, offsets and calibration, which are no part of the models.
"""

import numpy as np
import pytest
from consistent_readings import ConsistentReadings, random_motion
from floating_states import random_state
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf

from inertial_estimation.errors import FrameNotFound, ShapeError
from inertial_estimation.model.free_floating import FreeFloatingModel
from inertial_estimation.model.representations import Representation
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensor_models import SensorModels

LEFT, MIXED = Representation.LEFT, Representation.MIXED
ROUND_OFF = 1e-10  # of some hundred N, Nm and m/s^2, through up to 57 joints
TRUTH = 1e-9  # N, Nm, m/s^2, rad/s: the physics engine leaves 1e-12 of 400 N open
WRENCH = np.array([30.0, -20.0, 10.0, 2.0, -1.0, 3.0])
FIELDS = ('angular_velocities', 'proper_accelerations', 'angular_accelerations', 'ft_readings')


def assert_same_readings(ours, theirs, tolerance=ROUND_OFF):
    for field in FIELDS:
        got, expected = getattr(ours, field), getattr(theirs, field)
        np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance, err_msg=field)


def seen_from_root(robot, positions, velocities, angular_velocity, pose=None):
    """Return a state whose root turns as given, in its own axes."""
    v = np.concatenate([np.zeros(3), angular_velocity])
    return FreeFloatingModel(robot).state(positions, velocities, pose, v, representation=LEFT)


def test_floating_robot_against_pinocchio(rng):
    """IMUs on several links, FT sensors of both directions; other variables change nothing."""
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'hand', 'sole'])
    motion = random_motion(robot, rng)
    wrenches = {'hand': WRENCH, 'sole': -2 * WRENCH}
    theirs, _, _ = ConsistentReadings(robot).sample(motion, wrenches)
    state = seen_from_root(robot, motion.positions, motion.velocities, motion.rate)
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
    given = (
        state,
        state.equations(held, MIXED),
        np.concatenate([np.zeros(6), motion.accelerations]),
    )
    models = SensorModels(*given)
    whole = SensorModels(*given, {held: models.reaction})
    np.testing.assert_allclose(whole.reaction, 0, rtol=0, atol=ROUND_OFF)
    assert_same_readings(whole.sample(), models.sample())
    if held == 'base':
        theirs, _, reaction = ConsistentReadings(robot).sample(motion, {})
        assert_same_readings(models.sample(), theirs)
        np.testing.assert_allclose(models.reaction, reaction, rtol=0, atol=ROUND_OFF)


def test_wrong_shapes_and_frames_are_refused(nested_humanoid, rng):
    state, n = random_state(nested_humanoid, rng), len(nested_humanoid.joint_names)
    equations = state.equations('', LEFT)
    with pytest.raises(ShapeError):
        SensorModels.floating(state, np.zeros(n + 1))
    with pytest.raises(FrameNotFound):
        SensorModels(state, equations, np.zeros(n + 6), {'wing': WRENCH})
