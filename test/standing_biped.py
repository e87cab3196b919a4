# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A floating robot with two legs and an arm; each leg has a sensor at the hip and at the foot."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from consistent_readings import ConsistentReadings, Motion
from robots import _ft, _joint, _link

from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample

FEET = ('l_sole', 'r_sole')
GRAVITY = 9.81


def biped_urdf() -> str:
    """Return its description; the sensors are turned and count in both directions."""
    turned = '<origin xyz="0.01 -0.02 0.03" rpy="0.4 0.1 -2.0"/>'
    text = _link('root', 8.0) + _link('hand', 1.1)
    text += _joint('shoulder', 'revolute', 'root', 'upper_arm', '0 0.3 0.2', '1 0 0')
    text += _link('upper_arm', 1.3) + _joint('arm_ft', 'fixed', 'upper_arm', 'hand', '0 0 -0.2')
    for side, y in (('l', 0.1), ('r', -0.1)):
        text += _link(f'{side}_hip', 1.5) + _link(f'{side}_thigh', 2.5)
        text += _link(f'{side}_shank', 2.0) + _link(f'{side}_foot', 0.9)
        text += _link(f'{side}_sole', 0.0001, '0 0 0')
        text += _joint(f'{side}_hip_pitch', 'revolute', 'root', f'{side}_hip', f'0 {y} -0.1',
                       '0 1 0')  # fmt: skip
        text += _joint(f'{side}_leg_ft', 'fixed', f'{side}_hip', f'{side}_thigh', '0 0 -0.05')
        text += _joint(f'{side}_knee', 'revolute', f'{side}_thigh', f'{side}_shank', '0 0 -0.3',
                       '0 1 0')  # fmt: skip
        text += _joint(f'{side}_foot_ft', 'fixed', f'{side}_shank', f'{side}_foot', '0 0 -0.3')
        text += _joint(f'{side}_sole_joint', 'fixed', f'{side}_foot', f'{side}_sole',
                       '0.03 0.01 -0.05')  # fmt: skip
    text += _ft('l_leg', 'l_leg_ft', 'sensor', 'child_to_parent', turned)
    text += _ft('l_foot', 'l_foot_ft', 'sensor', 'parent_to_child', turned)
    text += _ft('r_leg', 'r_leg_ft') + _ft('r_foot', 'r_foot_ft') + _ft('arm', 'arm_ft')
    return f'<robot name="biped">{text}</robot>'


def biped(**more: object) -> Robot:
    """Return the robot, floating with an IMU at its root unless asked for otherwise."""
    return Robot.from_urdf(biped_urdf(), **(more or {'imus': ['root']}))


def standing(
    robot: Robot,
    positions: np.ndarray,
    shares: Mapping[str, float],
    squeeze: Mapping[str, np.ndarray] | None = None,
    up: np.ndarray = (0.0, 0.0, 1.0),
) -> Sample:
    """
    Return what the sensors say while supports hold the robot still.

    Each support carries its share of what holds the robot, and a wrench of its own besides, in
    and about the root link's frame [N, Nm]; these must add up to zero. `up` is in the root link.
    """
    source = ConsistentReadings(robot)
    rest = Motion(positions, 0 * positions, 0 * positions, np.zeros(3))
    proper = GRAVITY * np.asarray(up) / np.linalg.norm(up)
    poses = {name: source.pose(rest, name) for name in shares}
    whole = _holding(source, rest, proper)
    wrenches = {}
    for name, share in shares.items():
        at_root = share * whole + (0.0 if squeeze is None else squeeze[name])
        R, p = poses[name][:3, :3], poses[name][:3, 3]
        force, moment = at_root[:3], at_root[3:]
        wrenches[name] = np.concatenate([R.T @ force, R.T @ (moment - np.cross(p, force))])
    return source.sample(rest, wrenches)[0]


def _holding(source: ConsistentReadings, rest: Motion, proper: np.ndarray) -> np.ndarray:
    """Return the wrench about the root link's origin that holds the robot against gravity."""
    import pinocchio as pin

    q, v, a = source._state(rest)
    a[:3] = proper
    return pin.rnea(source.model, source.data, q, v, a)[:6].copy()
