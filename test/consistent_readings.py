# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Readings that fit together: what the sensors of a robot say under known external wrenches.

Written against Pinocchio and the URDF alone, without the engine: FT joints become joints of six
degrees of freedom, and the acceleration of a floating base is the one that the wrenches cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample


class Motion(NamedTuple):
    """Joint positions, velocities, accelerations (n_joints,), rate of the root link (3,)."""

    positions: np.ndarray
    velocities: np.ndarray
    accelerations: np.ndarray
    rate: np.ndarray


def random_motion(robot: Robot, rng: np.random.Generator) -> Motion:
    """Return a fast motion [rad, rad/s, rad/s^2]; a fixed robot's root does not turn."""
    n = len(robot.joint_names)
    return Motion(
        positions=rng.uniform(-1.2, 1.2, n),
        velocities=rng.normal(0.0, 2.0, n),
        accelerations=rng.normal(0.0, 8.0, n),
        rate=np.zeros(3) if robot.fixed_frame else rng.normal(0.0, 1.0, 3),
    )


class ConsistentReadings:
    """
    A robot that moves as it is told and feels wrenches at named frames.

    It floats, or its root link is fixed.
    """

    def __init__(self, robot: Robot) -> None:
        tree = ElementTree.fromstring(robot.urdf)
        ft_joints = [sensor.joint for sensor in robot.ft_sensors]
        for joint in tree.findall('joint'):
            if joint.get('name') in ft_joints:
                joint.set('type', 'floating')
        text = ElementTree.tostring(tree, encoding='unicode')
        full = pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
        kept = {'root_joint', *ft_joints, *robot.joint_names}
        locked = [k for k in range(1, full.njoints) if full.names[k] not in kept]
        self.robot = robot
        self.model = pin.buildReducedModel(full, locked, pin.neutral(full))
        self.model.gravity.setZero()
        self.data = self.model.createData()
        self.frames = {frame.name: frame for frame in self.model.frames}
        self.rows = [self.model.idx_vs[self.model.getJointId(j)] for j in robot.joint_names]
        self.ft_rows = [self.model.idx_vs[self.model.getJointId(j)] for j in ft_joints]

    def sample(
        self, motion: Motion, wrenches: Mapping[str, np.ndarray]
    ) -> tuple[Sample, np.ndarray, np.ndarray]:
        """
        Return readings, joint torques (n_joints,) and the reaction at a fixed root link (6,).

        The wrenches are in and about their frames, environment on robot [N, Nm]. The reaction of
        a floating robot is zero.
        """
        q, v, a = self._state(motion)
        external = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for name, wrench in wrenches.items():
            frame = self.frames[name]
            external[frame.parentJoint] += frame.placement.act(pin.Force(np.asarray(wrench)))
        if self.robot.fixed_frame:
            a[:3] = -self.robot.gravity
        else:
            inertia = np.triu(pin.crba(self.model, self.data, q)[:6, :6])
            inertia += np.triu(inertia, 1).T
            for _ in range(2):  # the second round takes away the round-off of the first
                tau = pin.rnea(self.model, self.data, q, v, a, external)
                a[:6] -= np.linalg.solve(inertia, tau[:6])
        tau = pin.rnea(self.model, self.data, q, v, a, external).copy()
        pin.forwardKinematics(self.model, self.data, q, v, a)
        sample = Sample(0, *motion[:3], *self._imus(), np.array(self._fts(tau)).reshape(-1, 6))
        return sample, tau[self.rows], tau[:6]

    def pose(self, motion: Motion, frame: str) -> np.ndarray:
        """Return the pose of a frame in the root link, shape (4, 4) [m]."""
        q, _, _ = self._state(motion)
        pin.framesForwardKinematics(self.model, self.data, q)
        return np.asarray(self.data.oMf[self.model.getFrameId(frame)].homogeneous)

    def _state(self, motion: Motion) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return configuration, velocity and acceleration with the root link at the origin."""
        q = pin.neutral(self.model)
        v, a = np.zeros((2, self.model.nv))
        v[self.rows] = motion.positions
        q = pin.integrate(self.model, q, v)  # continuous joints have two rows of q
        v[self.rows], a[self.rows] = motion.velocities, motion.accelerations
        v[3:6] = motion.rate
        return q, v, a

    def _imus(self) -> np.ndarray:
        """Return rates, proper and angular accelerations of the IMUs, (3, n_imus, 3)."""
        found = []
        for imu in self.robot.imus:
            link = self.frames[self.robot.link_names[imu.link]]
            place = link.parentJoint, link.placement * pin.SE3(imu.L_H_S), pin.LOCAL
            found.append((
                pin.getFrameVelocity(self.model, self.data, *place).angular,
                pin.getFrameClassicalAcceleration(self.model, self.data, *place).linear,
                pin.getFrameAcceleration(self.model, self.data, *place).angular,
            ))  # fmt: skip
        return np.array(found).reshape(-1, 3, 3).swapaxes(0, 1)

    def _fts(self, tau: np.ndarray) -> list:
        """Return FT readings; a joint's force is what the parent does to the child."""
        return [
            -sensor.direction
            * pin.SE3(sensor.child_H_sensor).actInv(pin.Force(tau[row : row + 6])).vector
            for sensor, row in zip(self.robot.ft_sensors, self.ft_rows)
        ]
