# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
From exact readings of the embedded robot the engine finds the truth of the physics engine.

Both scenes; one IMU, several of them, and no IMU but a pole that does not move. Not covered:
noise, and joint velocities and accelerations that are derived from positions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip('mujoco', reason='the embedded robot runs in mujoco')
pytest.importorskip('icub_models', reason='the embedded robot is the iCub of icub-models')

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.simulation.robot import IMUS, SimulatedRobot
from inertial_estimation.simulation.scenario import SCENES
from inertial_estimation.simulation.truth import Snapshot

EXACT = 1e-9
"""N and Nm: the physics engine leaves 1e-12 of 400 N open; a forgotten term would show."""
SECONDS = 6.0
EVERY = 7
"""Of the snapshots at 500 Hz that are looked at: several in every edge of a push."""
PER_JOINT = ('positions', 'velocities', 'accelerations', 'efforts')
PER_IMU = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')
IMU_SETS = [('root_link',), ('head_imu_0',), ('l_forearm',), ('chest', 'r_foot'), tuple(IMUS)]


class Scene(NamedTuple):
    """A run of the embedded robot."""

    robot: SimulatedRobot
    snapshots: list[Snapshot]


def run(name: str) -> Scene:
    """Run a scene of the demonstration."""
    robot = SimulatedRobot(SCENES[name](SECONDS, 1))
    snapshots = [robot.step() for _ in range(round(500 * SECONDS))]
    return Scene(robot, snapshots[EVERY - 1 :: EVERY])


@pytest.fixture(scope='module', params=list(SCENES))
def scene(request: pytest.FixtureRequest) -> Scene:
    return run(request.param)


def readings(scene: Scene, robot: Robot) -> SampleBatch:
    """Return what exact sensors say, rows in the order of the estimator's robot."""
    batch = SampleBatch.stack([snapshot.sample() for snapshot in scene.snapshots])
    joints = [scene.robot.joint_names.index(name) for name in robot.joint_names]
    imus = [scene.robot.imu_names.index(imu.name) for imu in robot.imus]
    return replace(
        batch,
        **{field: getattr(batch, field)[:, joints] for field in PER_JOINT},
        **{field: getattr(batch, field)[:, imus] for field in PER_IMU},
    )


def assert_truth(scene: Scene, robot: Robot) -> None:
    """Assert that wrenches and torques are those of the simulator, and nothing is left over."""
    batch = readings(scene, robot)
    contacts = [Contact(frame) for frame in scene.robot.contact_frames]
    estimate = WrenchEstimator(robot, contacts).batch(batch)
    truth = np.array([snapshot.external_wrenches for snapshot in scene.snapshots])
    np.testing.assert_allclose(estimate.wrenches, truth, rtol=0.0, atol=EXACT)
    np.testing.assert_allclose(estimate.torques, batch.efforts, rtol=0.0, atol=EXACT)
    assert np.linalg.norm(truth[:, :, :3], axis=2).max() > 100.0
    assert np.abs(batch.efforts).max() > 5.0
    assert np.abs(batch.accelerations).max() > 5.0


@pytest.mark.parametrize('imus', IMU_SETS, ids=lambda imus: f'{len(imus)} {imus[0]}')
def test_exact_readings_give_the_truth(scene: Scene, imus: tuple[str, ...]) -> None:
    assert_truth(
        scene, Robot.from_urdf(scene.robot.urdf, ft_sensors=scene.robot.ft_names, imus=imus)
    )


def test_a_pole_takes_the_place_of_imus() -> None:
    scene = run('pole')
    robot = Robot.from_urdf(
        scene.robot.urdf, ft_sensors=scene.robot.ft_names, fixed_link='root_link'
    )
    assert_truth(scene, robot)
