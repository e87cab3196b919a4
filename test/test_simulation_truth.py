# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The truth of the embedded robot obeys Newton and Euler, as an independent library sees them.

Pinocchio reads the same URDF with the FT joints opened and gets nothing but the joint motion, the
reading of the IMU at the root link and the external wrenches. Not covered: how realistic servos,
contacts and friction are, and the noise (test_simulation.py).
"""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip('mujoco', reason='the embedded robot runs in mujoco')
pytest.importorskip('icub_models', reason='the embedded robot is the iCub of icub-models')

from inertial_estimation.simulation.robot import PHYSICS_HZ, SimulatedRobot
from inertial_estimation.simulation.scenario import SCENES, Push, Scenario, pole, standing
from inertial_estimation.simulation.truth import Snapshot

BALANCE = 1e-9
"""N and Nm: round-off and solver leave 1e-12 of 400 N; a forgotten term would show."""
KINEMATICS = 1e-9
"""m/s^2, rad/s^2, rad/s: round-off of two libraries at 30 m/s^2, through ten joints."""
PUSH = 1e-9
"""N and Nm: sums of other forces that cancel, of up to 400 N, about points up to 1 m away."""
SECONDS = 7.0
EVERY = 0.014
"""s between the instants that are checked: several in every edge of a push."""


def run(scenario: Scenario, seconds: float = SECONDS) -> tuple[SimulatedRobot, list[Snapshot]]:
    """Run a scenario at 500 Hz and return every seventh snapshot."""
    robot = SimulatedRobot(scenario)
    stride = round(EVERY * 500)
    snapshots = [robot.step() for _ in range(round(seconds * 500))]
    return robot, snapshots[stride - 1 :: stride]


@pytest.fixture(scope='module', params=list(SCENES))
def scene(request: pytest.FixtureRequest) -> tuple[Scenario, SimulatedRobot, list[Snapshot]]:
    scenario = SCENES[request.param](SECONDS, 3)
    return scenario, *run(scenario)


class Oracle:
    """Dynamics of the same robot by pinocchio, in free fall: gravity comes with the IMU."""

    def __init__(self, robot: SimulatedRobot) -> None:
        tree = ElementTree.fromstring(robot.urdf)
        tags = {tag.get('name'): tag.find('parent') for tag in tree.findall('sensor')}
        ft_joints = [tags[name].get('joint') for name in robot.ft_names]
        for joint in tree.findall('joint'):
            if joint.get('name') in ft_joints:
                joint.set('type', 'floating')
        text = ElementTree.tostring(tree, encoding='unicode')
        self.model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
        self.model.gravity.setZero()
        self.data = self.model.createData()
        self.root_imu = robot.imu_names.index('root_link')
        self.ft_rows = [self.model.idx_vs[self.model.getJointId(name)] for name in ft_joints]
        joints = [self.model.getJointId(name) for name in robot.joint_names]
        self.q_rows = [self.model.idx_qs[joint] for joint in joints]
        self.rows = [self.model.idx_vs[joint] for joint in joints]

    def state(self, snapshot: Snapshot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return configuration, velocity and proper acceleration, the root link at the origin."""
        q = pin.neutral(self.model)
        v, a = np.zeros((2, self.model.nv))
        v[3:6] = snapshot.angular_velocities[self.root_imu]
        a[:3] = snapshot.proper_accelerations[self.root_imu]
        a[3:6] = snapshot.angular_accelerations[self.root_imu]
        q[self.q_rows] = snapshot.positions
        v[self.rows] = snapshot.velocities
        a[self.rows] = snapshot.accelerations
        return q, v, a

    def forces(self, snapshot: Snapshot, wrenches: dict[str, np.ndarray]) -> np.ndarray:
        """Return the generalised forces of the motion under wrenches at frames of the URDF."""
        external = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for name, wrench in wrenches.items():
            frame = self.model.frames[self.model.getFrameId(name)]
            external[frame.parentJoint] += frame.placement.act(pin.Force(wrench))
        return pin.rnea(self.model, self.data, *self.state(snapshot), external)

    def assert_closed(self, snapshot: Snapshot, wrenches: dict[str, np.ndarray]) -> None:
        """Assert that nothing is left over, at the base, in the FT sensors and in the joints."""
        forces = self.forces(snapshot, wrenches)
        np.testing.assert_allclose(forces[:6], 0.0, atol=BALANCE)
        # A joint's force is what the parent does to the child, a reading the opposite.
        readings = [-forces[row : row + 6] for row in self.ft_rows]
        np.testing.assert_allclose(snapshot.ft_wrenches, readings, rtol=0.0, atol=BALANCE)
        np.testing.assert_allclose(snapshot.torques, forces[self.rows], rtol=0.0, atol=BALANCE)


def external(robot: SimulatedRobot, snapshot: Snapshot) -> dict[str, np.ndarray]:
    """Return the external wrenches by frame."""
    return dict(zip(robot.contact_frames, snapshot.external_wrenches))


def test_motion_wrenches_and_torques_close(scene) -> None:
    scenario, robot, snapshots = scene
    oracle = Oracle(robot)
    for snapshot in snapshots:
        oracle.assert_closed(snapshot, external(robot, snapshot))
    # The scene pushes and moves meanwhile.
    forces = np.array([snapshot.external_wrenches for snapshot in snapshots])[:, :, :3]
    pushed = [robot.contact_frames.index(push.frame) for push in scenario.pushes]
    assert len(pushed) >= 3
    assert np.linalg.norm(forces[:, pushed], axis=2).max(axis=0).min() > 7.0
    assert np.ptp([snapshot.positions for snapshot in snapshots], axis=0).max() > 0.3


def test_imus_agree_with_the_motion(scene) -> None:
    _, robot, snapshots = scene
    oracle = Oracle(robot)
    model, data, local = oracle.model, oracle.data, pin.LOCAL
    frames = [model.getFrameId(name) for name in robot.imu_names]
    for snapshot in snapshots[:: len(snapshots) // 50]:
        pin.forwardKinematics(model, data, *oracle.state(snapshot))
        rates = [pin.getFrameVelocity(model, data, f, local).angular for f in frames]
        linear = [pin.getFrameClassicalAcceleration(model, data, f, local).linear for f in frames]
        angular = [pin.getFrameAcceleration(model, data, f, local).angular for f in frames]
        for mine, theirs in (
            (snapshot.angular_velocities, rates),
            (snapshot.proper_accelerations, linear),
            (snapshot.angular_accelerations, angular),
        ):
            np.testing.assert_allclose(mine, theirs, rtol=0.0, atol=KINEMATICS)


def test_a_push_beside_the_contact_frame_is_told_at_the_contact_frame() -> None:
    push = Push(0.1, 0.4, 'l_elbow_1', (20.0, -30.0, 10.0, 1.0, 0.5, -1.0), edge=0.1)
    robot, snapshots = run(replace(pole(seed=1), pushes=(push,)), 0.5)
    oracle = Oracle(robot)
    hand = robot.contact_frames.index('l_hand')
    for snapshot in snapshots:
        strength = push.at(snapshot.time_ns * 1e-9)
        pushed = np.zeros(6) if strength is None else strength
        pole_only = {'root_link': external(robot, snapshot)['root_link']}
        oracle.assert_closed(snapshot, {**pole_only, 'l_elbow_1': pushed})
        pin.framesForwardKinematics(oracle.model, oracle.data, oracle.state(snapshot)[0])
        H = oracle.data.oMf
        elbow, at_hand = (H[oracle.model.getFrameId(f)] for f in ('l_elbow_1', 'l_hand'))
        moved = at_hand.actInv(elbow.act(pin.Force(pushed))).vector
        np.testing.assert_allclose(snapshot.external_wrenches[hand], moved, rtol=0.0, atol=PUSH)


def test_the_stop_of_a_joint_is_part_of_its_torque() -> None:
    bent = replace(pole(seed=1), motion={}, posture={**pole().posture, 'l_knee': 0.05})
    push = Push(0.1, 0.5, 'l_lower_leg', (60.0, 0.0, 0.0, 0.0, -40.0, 0.0), edge=0.2)
    robot, snapshots = run(replace(bent, pushes=(push,)), 0.6)
    knee = robot.joint_names.index('l_knee')
    limit = ElementTree.fromstring(robot.urdf).find("joint[@name='l_knee']/limit")
    assert max(snapshot.positions[knee] for snapshot in snapshots) > float(limit.get('upper'))
    oracle = Oracle(robot)
    for snapshot in snapshots:
        oracle.assert_closed(snapshot, external(robot, snapshot))


@pytest.mark.parametrize('scenario', [pole(seed=2), standing(seed=2)], ids=lambda s: s.name)
def test_encoders_see_the_accelerations_that_the_forces_cause(scenario: Scenario) -> None:
    robot = SimulatedRobot(scenario, rate_hz=PHYSICS_HZ)
    snapshots = [robot.step() for _ in range(3 * PHYSICS_HZ)]
    period = 1.0 / PHYSICS_HZ
    before, after = snapshots[-2], snapshots[-1]
    for now, then in ((snapshots[-200], snapshots[-199]), (before, after)):
        gained = (then.velocities - now.velocities) / period
        np.testing.assert_allclose(gained, now.accelerations, rtol=0.0, atol=KINEMATICS)
        moved = (then.positions - now.positions) / period
        np.testing.assert_allclose(moved, then.velocities, rtol=0.0, atol=KINEMATICS)
