# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Rows of joint torques and their gradient over the motion.

Not covered: what the rows mean, which `test_regressor` tests on those that logs are fitted to.
"""

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf

from inertial_estimation.errors import ModelError
from inertial_estimation.model.regressor import submodel_regressors
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.torque_derivatives import TorqueRegressor
from inertial_estimation.sample import SampleBatch

# Sums of some hundred products of numbers up to a thousand.
ROUND_OFF = 1e-10
STEP = 1e-6
# Square of the step, and round-off over it, of derivatives up to some thousand.
DIFFERENCED = 1e-5
ROBOTS = {'base': arm_with_wrist_sensor_urdf, 'root': nested_humanoid_urdf}


@pytest.fixture(params=[(root, cut) for root in ROBOTS for cut in (False, True)])
def robot(request):
    """Return a chain with a prismatic joint, or a tree, at rest on a slope, cut or whole."""
    root, cut = request.param
    gravity = (1.0, -2.0, -9.0)
    sensors = None if cut else ()
    return Robot.from_urdf(ROBOTS[root](), ft_sensors=sensors, fixed_link=root, gravity=gravity)


def motion(robot, rng, n=5):
    return rng.normal(size=(3, n, len(robot.joint_names)))


def test_rows_are_those_of_logs(robot, rng):
    q, v, a = motion(robot, rng)
    none = np.zeros((len(q), 0, 3))
    readings = np.zeros((len(q), len(robot.ft_sensors), 6))
    samples = SampleBatch(np.arange(len(q)), q, v, a, none, none, none, readings)
    regressor = TorqueRegressor(robot)
    Y = regressor.rows(q, v, a).Y
    Y = Y.reshape(len(q), regressor.n_rows, len(robot.links), 10)
    for submodel, wanted in zip(
        robot.submodels, submodel_regressors(robot, samples, ground=0), strict=True
    ):
        rows = [
            *(side.joint for side in wanted.sides),
            *regressor.wrench_rows.get(submodel.root, ()),
        ]
        both = [wanted.torques] if submodel.root == 0 else [wanted.torques, wanted.wrench]
        found = Y[:, rows]
        inner = found[:, :, list(submodel.links)].reshape(len(q), len(rows), -1)
        np.testing.assert_allclose(inner, np.concatenate(both, axis=1), atol=ROUND_OFF)
        others = [k for k in range(len(robot.links)) if k not in submodel.links]
        assert not found[:, :, others].any()


@pytest.mark.parametrize('which', range(3))
def test_gradient_is_the_slope(robot, rng, which):
    regressor = TorqueRegressor(robot)
    states = motion(robot, rng)
    rows = regressor.rows(*states)
    slopes = rng.normal(size=rows.Y.shape)
    found = regressor.gradient(rows, slopes)[which]
    for k, j in np.ndindex(states.shape[1:]):
        values = []
        for sign in (1, -1):
            moved = states.copy()
            moved[which, k, j] += sign * STEP
            values.append(np.sum(slopes * regressor.rows(*moved).Y))
        slope = (values[0] - values[1]) / (2 * STEP)
        np.testing.assert_allclose(found[k, j], slope, rtol=DIFFERENCED, atol=DIFFERENCED)


def test_a_floating_robot_is_refused(two_link):
    with pytest.raises(ModelError):
        TorqueRegressor(two_link)
