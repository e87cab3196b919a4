# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
IMU orientations and magnetometers against each other, from readings of the sensor models.

Not covered: the models themselves (test_sensor_models.py) and logs (test_attitude_checks.py).
"""

from __future__ import annotations

import numpy as np
import pytest
from floating_states import random_pose
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf
from scipy.spatial.transform import Rotation

from inertial_estimation.estimation.attitude_residuals import (
    field_residuals,
    orientation_residuals,
    reference_field_residuals,
)
from inertial_estimation.estimation.relative_rotation import RelativeRotations
from inertial_estimation.model.free_floating import FreeFloating
from inertial_estimation.model.representations import Representation
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensor_models import SensorModels
from inertial_estimation.model.sensors import LinkSensorSpec

EXACT = 1e-10
"""Of rotations through up to six joints, and of a field in units of its own length."""
N = 12
A_FIELD = np.array([22e-6, 3e-6, -42e-6])
"""About that of the earth [T]."""
LENGTH = float(np.linalg.norm(A_FIELD))


class Log:
    """What the IMUs of a robot and the magnetometers in them read in random positions."""

    def __init__(self, robot: Robot, rng, n: int = N) -> None:
        model, n_joints = FreeFloating(robot), len(robot.joint_names)
        self.robot, base = robot, robot.fixed_frame
        self.positions = rng.uniform(-3.0, 3.0, (n, n_joints))
        A_H_B = random_pose(rng)
        self.A_R_fixed = A_H_B[:3, :3]
        self.ref_R_A = Rotation.random(len(robot.imus), random_state=8).as_matrix()
        self.orientations = np.empty((n, len(robot.imus), 3, 3))
        self.fields = np.empty((n, len(robot.imus), 3))
        for i, q in enumerate(self.positions):
            pose = A_H_B if base else random_pose(rng)
            state = model.state(q, np.zeros(n_joints), pose, base=base)
            equations = state.equations(base, Representation.LEFT)
            models = SensorModels(state, equations, np.zeros(6 + n_joints))
            for k, imu in enumerate(robot.imus):
                self.orientations[i, k] = models.orientation(imu, self.ref_R_A[k])
                self.fields[i, k] = models.magnetometer(imu, A_FIELD)

    def turned(self):
        return orientation_residuals(self.robot, self.positions, self.orientations)


@pytest.fixture
def humanoid(rng) -> Robot:
    """Return the humanoid with IMUs on four links, one of them at a pose of its own."""
    board = LinkSensorSpec('board', 'hand', random_pose(rng))
    return Robot.from_urdf(nested_humanoid_urdf(), imus=['head', board, 'sole', 'shank'])


@pytest.fixture
def log(humanoid, rng) -> Log:
    return Log(humanoid, rng)


def assert_zero(values, size=1.0) -> None:
    np.testing.assert_allclose(values, 0, rtol=0, atol=EXACT * size)


def assert_nan(values) -> None:
    assert np.isnan(values).all()


def rotation_of(vector):
    return Rotation.from_rotvec(vector).as_matrix()


# ---- Orientations ------------------------------------------------------------------------------


def test_exact_orientations_leave_nothing(log):
    found = log.turned()
    assert_zero(found.rotations)
    # Head and board, sole and shank are nearest to each other.
    sources = RelativeRotations(log.robot).sources
    assert sources.tolist() == [1, 0, 3, 2]
    for k, m in enumerate(sources):
        wanted = log.ref_R_A[m] @ log.ref_R_A[k].T
        np.testing.assert_allclose(found.references[k], wanted, rtol=0, atol=EXACT)
    turned = Rotation.from_matrix(log.orientations[1:, 0] @ log.orientations[0, 0].T)
    assert turned.magnitude().max() > 1.0


@pytest.mark.parametrize('held', ['base', 'tool'])
def test_a_fixed_link_predicts_every_imu(held, rng):
    """One joint is continuous and one prismatic."""
    urdf = arm_with_wrist_sensor_urdf()
    robot = Robot.from_urdf(urdf, fixed_link=held, imus=['base', 'upper', 'tip'])
    log = Log(robot, rng)
    found = log.turned()
    assert_zero(found.rotations)
    for k in range(3):
        wanted = (log.ref_R_A[k] @ log.A_R_fixed).T
        np.testing.assert_allclose(found.references[k], wanted, rtol=0, atol=EXACT)
    assert_zero(field_residuals(robot, log.positions, log.fields), LENGTH)
    alone = orientation_residuals(robot, log.positions, log.orientations[:, [2]], ['tip'])
    assert_zero(alone.rotations)


def test_a_wrong_reading_shows_with_the_opposite_sign_where_it_is(log):
    """Others are not drawn along; the source sees it turned into its own axes."""
    error = np.array([0.1, -0.2, 0.3])
    log.orientations[4, 0] = log.orientations[4, 0] @ rotation_of(error)
    found = log.turned().rotations
    np.testing.assert_allclose(found[4, 0], -error, rtol=0, atol=EXACT)
    other = np.linalg.norm(found[4, 1])
    np.testing.assert_allclose(other, np.linalg.norm(error), rtol=0, atol=EXACT)
    found[4, :2] = 0.0
    assert_zero(found)


def test_a_third_of_the_readings_may_be_wrong(humanoid, rng):
    log = Log(humanoid, rng, 60)
    log.orientations[::3, 2] = Rotation.random(20, random_state=9).as_matrix()
    found = log.turned().rotations
    right = np.arange(60) % 3 > 0
    assert_zero(found[right])
    assert_zero(found[:, :2])
    assert np.linalg.norm(found[~right, 2], axis=1).min() > 0.1


def test_an_imu_with_wrong_axes_is_seen_once_the_robot_turns(log):
    """Whatever frame it has chosen: a wrong place is no other reference frame."""
    X = rotation_of([0.0, 0.0, np.pi / 2])
    log.orientations[:, 2] = log.orientations[:, 2] @ X
    found = np.linalg.norm(log.turned().rotations, axis=2)
    assert np.sqrt(np.mean(found[:, 2] ** 2)) > 0.5
    log.orientations[:] = log.orientations[[0]]
    log.positions[:] = log.positions[[0]]
    assert_zero(log.turned().rotations)


@pytest.mark.filterwarnings('error')
def test_what_is_missing_takes_what_rests_on_it(log):
    log.orientations[1, 0, 2, 2] = np.nan
    log.orientations[2, 3] = np.inf
    log.positions[3, log.robot.joint_names.index('neck')] = np.nan
    log.positions[4, log.robot.joint_names.index('knee')] = 1e35
    found = log.turned().rotations
    gone = np.zeros((N, 4), dtype=bool)
    gone[1, :2] = gone[2, 2:] = gone[3, :2] = True
    # The knee is above the shank: the joint between shank and sole is not.
    assert_nan(found[gone])
    assert_zero(found[~gone])


# ---- Magnetometers -----------------------------------------------------------------------------


def test_the_field_is_carried_from_one_magnetometer_to_the_next(log):
    assert_zero(field_residuals(log.robot, log.positions, log.fields), LENGTH)
    iron = np.array([3e-6, -2e-6, 1e-6])
    log.fields[:, 1] += iron
    found = field_residuals(log.robot, log.positions, log.fields)
    np.testing.assert_allclose(found[:, 1], np.tile(-iron, (N, 1)), rtol=0, atol=EXACT * LENGTH)
    size = np.linalg.norm(found[:, 0], axis=1)
    np.testing.assert_allclose(size, np.linalg.norm(iron), rtol=0, atol=EXACT * LENGTH)
    assert_zero(found[:, 2:], LENGTH)


def test_the_field_is_constant_in_the_reference_frame(log):
    log.fields[5, 2] *= 1.5
    log.fields[6, 1, 0] = np.nan
    log.orientations[7, 0] = np.nan
    found = reference_field_residuals(log.orientations, log.fields)
    np.testing.assert_allclose(found.fields, log.ref_R_A @ A_FIELD, rtol=0, atol=EXACT * LENGTH)
    np.testing.assert_allclose(
        found.residuals[5, 2], -log.fields[5, 2] / 3, rtol=0, atol=EXACT * LENGTH
    )
    assert_nan(found.residuals[[6, 7], [1, 0]])
    found.residuals[[5, 6, 7], [2, 1, 0]] = 0.0
    assert_zero(found.residuals, LENGTH)


# ---- Arguments ---------------------------------------------------------------------------------
