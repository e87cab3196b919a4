# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Motions played in MuJoCo against the torque regressor and the clearances.

Not covered: the simulator itself.
"""

import sys

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf
from test_geometry import LOWER, UPPER, folding_urdf

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.excitation.search import FourierBasis, FourierMotion
from inertial_estimation.model.clearance import SelfClearance
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.torque_derivatives import TorqueRegressor
from inertial_estimation.simulation import playback

pytest.importorskip('mujoco')

BASIS = FourierBasis(4.0, 2)


def test_efforts_are_those_of_the_torque_regressor(rng):
    urdf = arm_with_wrist_sensor_urdf()
    robot = Robot.from_urdf(urdf, ft_sensors=(), fixed_link='base', gravity=(3.0, 0.0, -9.0))
    rest = BASIS.at_rest()
    coefficients = 0.5 * rng.normal(size=(3, rest.shape[1])) @ rest.T
    motion, done = FourierMotion(BASIS, robot.joint_names, coefficients), []
    found = playback.play(robot, motion.at, 4.0, progress=lambda _, share: done.append(share))
    Y = TorqueRegressor(robot).rows(*motion.at(BASIS.times(4000))).Y
    wanted = np.abs(Y @ robot.parameters.reshape(-1)).max(axis=0)
    # Steps of 1 ms at accelerations of some rad/s^2, and the servo.
    np.testing.assert_allclose(found.efforts, wanted, rtol=5e-3)
    assert (found.tracking < 1e-3).all()
    assert found.touching == () and (done[0], done[-1]) == (0.0, 1.0)


@pytest.mark.parametrize(
    'shape', ['<sphere radius="0.05"/>', '<box size="0.1 0.1 0.1"/>',
              '<cylinder radius="0.05" length="0.1"/>', '<capsule radius="0.05" length="0.1"/>'],
)  # fmt: skip
def test_links_touch_that_have_no_clearance(shape):
    robot = Robot.from_urdf(folding_urdf(shape), fixed_link='link_0')
    clearance = SelfClearance.of_robot(robot, LOWER, UPPER)
    coefficients = np.zeros((3, BASIS.size))
    coefficients[:, -1] = posture = np.array([0.0, 2 * np.pi / 3, 2 * np.pi / 3])
    still = FourierMotion(BASIS, robot.joint_names, coefficients)
    found = playback.play(robot, still.at, 0.05, clearance)
    near = clearance.near(posture[None], 0.0)
    wanted = {clearance.names(k) for k in near.pairs[near.distances < 0.0]}
    assert set(found.touching) == wanted == {"'link_0' and 'link_3'"}


@pytest.mark.parametrize('simulator', [True, False])
def test_robots_without_mass_and_a_missing_simulator_are_refused(simulator, monkeypatch):
    urdf = folding_urdf()
    if simulator:
        urdf = urdf.replace('<mass value="1"/>', '<mass value="0"/>')
    else:
        monkeypatch.setitem(sys.modules, 'mujoco', None)
    robot = Robot.from_urdf(urdf, fixed_link='link_0')
    with pytest.raises(ModelError):
        playback.play(robot, lambda t: np.zeros((3, len(t), 3)), 0.1)
