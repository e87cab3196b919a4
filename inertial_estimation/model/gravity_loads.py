# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which joints gravity loads: all but those that turn about the vertical or slide across it."""

from __future__ import annotations

import numpy as np

from inertial_estimation.model.link_motions import poses_in_parents
from inertial_estimation.model.robot import Robot

POSTURES = 5
"""At random, so that an axis is vertical in all of them only if it always is."""
LOADS = 1e-3
"""
Share of gravity along or about an axis from which it loads the joint: descriptions round right
angles to a few digits.
"""


def joints_without_gravity(robot: Robot) -> frozenset[str]:
    """Return the joints whose efforts gravity does not change in any posture."""
    if not robot.fixed_frame:
        return frozenset()
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (POSTURES, len(robot.joint_names)))
    rotations = [pose.rotations for pose in poses_in_parents(robot, q)]
    in_root = [rotations[0]]
    for k, link in enumerate(robot.links[1:], start=1):
        in_root.append(in_root[link.parent] @ rotations[k])
    fixed, pose = robot.frame(robot.fixed_frame)
    gravity = in_root[fixed] @ pose[:3, :3] @ robot.gravity
    found = []
    for R, link in zip(in_root, robot.links, strict=True):
        if link.joint < 0:
            continue
        in_link = np.einsum('nji,nj->ni', R, gravity)
        linear, axis = np.split(link.motion, 2)
        # A link's origin is on the axis it turns about.
        loads = np.cross(in_link, axis) if axis.any() else in_link @ linear
        if np.abs(loads).max() <= LOADS * np.linalg.norm(robot.gravity):
            found.append(robot.joint_names[link.joint])
    return frozenset(found)
