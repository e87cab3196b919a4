# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A floating robot with two legs and an arm; each leg has a sensor at the hip and at the foot."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pinocchio as pin
from consistent_readings import ConsistentReadings, Motion
from robots import _ft, _joint, _link, _links

from inertial_estimation import Robot, Sample

FEET = ('l_sole', 'r_sole')
GRAVITY = 9.81


def biped_urdf() -> str:
    """Return its URDF; the sensors are turned and count in both directions."""
    turned = '<origin xyz="0.01 -0.02 0.03" rpy="0.4 0.1 -2.0"/>'
    text = _links(root=8.0, hand=1.1, upper_arm=1.3)
    text += _joint('shoulder', 'revolute', 'root', 'upper_arm', '0 0.3 0.2', '1 0 0')
    text += _joint('arm_ft', 'fixed', 'upper_arm', 'hand', '0 0 -0.2')
    for side, y in (('l', 0.1), ('r', -0.1)):
        text += _links(**{f'{side}_hip': 1.5, f'{side}_thigh': 2.5, f'{side}_shank': 2.0})
        text += _link(f'{side}_foot', 0.9) + _link(f'{side}_sole', 0.0001, '0 0 0')
        for joint, parent, child, place in (
            ('hip_pitch', 'root', 'hip', f'0 {y} -0.1'),
            ('leg_ft', f'{side}_hip', 'thigh', '0 0 -0.05'),
            ('knee', f'{side}_thigh', 'shank', '0 0 -0.3'),
            ('foot_ft', f'{side}_shank', 'foot', '0 0 -0.3'),
            ('sole_joint', f'{side}_foot', 'sole', '0.03 0.01 -0.05'),
        ):
            kind = 'revolute' if joint in ('hip_pitch', 'knee') else 'fixed'
            child = f'{side}_{child}'
            text += _joint(f'{side}_{joint}', kind, parent, child, place, '0 1 0')
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
    Return the readings of the sensors while supports hold the robot still.

    Each support carries its share of what holds the robot, and a wrench of its own besides, in
    and about the root link's frame [N, Nm]; these must add up to zero. `up` is in the root link.
    """
    source = ConsistentReadings(robot)
    rest = Motion(positions, 0 * positions, 0 * positions, np.zeros(3))
    q, v, a = source._state(rest)
    a[:3] = GRAVITY * np.asarray(up) / np.linalg.norm(up)
    # Wrench about the root link's origin that holds the robot against gravity.
    whole = pin.rnea(source.model, source.data, q, v, a)[:6].copy()
    wrenches = {}
    for name, share in shares.items():
        at_root = share * whole + (0.0 if squeeze is None else squeeze[name])
        pose = source.pose(rest, name)
        R, p = pose[:3, :3], pose[:3, 3]
        force, moment = at_root[:3], at_root[3:]
        wrenches[name] = np.concatenate([R.T @ force, R.T @ (moment - np.cross(p, force))])
    return source.sample(rest, wrenches)[0]
