# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The Newton-Euler equations as regressors, linear in inertial parameters [T 7.2-7.5].

The net wrench of a link is ``regressor(motion) @ parameters``. Summed over a submodel about its
root it is the submodel regressor; projected on a joint's axis, over the links beyond the joint
and before the next FT sensor, it is the regressor of the torque of that joint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.model.link_motions import (
    Motion,
    Poses,
    link_motions,
    poses_in_parents,
    poses_in_root,
    to_axes,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import cross, hat
from inertial_estimation.model.tree import Submodel
from inertial_estimation.sample import SampleBatch

POSTURES = 5
"""At random, so that an axis is vertical in all of them only if it always is."""
LOADS = 1e-3
"""
Share of gravity along or about an axis from which it loads the joint: URDFs round right angles to
a few digits.
"""


def net_wrench_regressor(motion: Motion) -> Array:
    """Return the regressor of the net wrench of a link, (n, 6, 10) [T 4.9, 7.2]."""
    w, dw, a = motion
    Y = np.zeros((len(a), 6, 10))
    turning, squared = hat(w), hat(w) @ hat(w)
    Y[:, :3, 0] = a
    Y[:, :3, 1:4] = hat(dw) + squared
    Y[:, 3:, 1:4] = -hat(a)
    Y[:, 3:, 4:] = _inertia_times(dw) + turning @ _inertia_times(w)
    return Y


class FreeSide(NamedTuple):
    """The links of a submodel on one side of one of its joints."""

    joint: int
    """Index of the joint."""
    child: int
    """Link that the joint moves."""
    links: tuple[int, ...]
    """Indices of the links on this side."""
    sign: float
    """+1: the links away from the root of the robot, -1: the other ones, which push back."""


class SubmodelRegressor(NamedTuple):
    """Regressors of one submodel; columns are ten for each of its links, in its order."""

    wrench: Array
    """
    Sum of net wrenches about the submodel's root link, in its axes, (n, 6, 10 n_links) [T 7.2].
    """
    torques: Array
    """Torque of each of its joints before sensors and contacts, (n, n_joints, 10 n_links)."""
    sides: tuple[FreeSide, ...]
    """For each of these joints the links that its torque moves."""


def submodel_regressors(
    robot: Robot,
    samples: SampleBatch,
    submodels: Sequence[Submodel] | None = None,
    ground: int = -1,
) -> list[SubmodelRegressor]:
    """
    Return the regressors of submodels [T 7.2-7.5].

    Parameters
    ----------
    robot : Robot
        With a fixed link, or with IMUs that measure both quantities.
    samples : SampleBatch
        Motion of joints and IMUs at n instants.
    submodels : sequence of Submodel, optional
        Default: those between the FT sensors of the robot.
    ground : int
        Link that is held; torques move the sides without it. Default: none.

    Returns
    -------
    list of SubmodelRegressor

    Raises
    ------
    ModelError
        If the motion of no link is known.

    """
    poses = poses_in_parents(robot, samples.positions)
    motions = link_motions(robot, samples, poses)
    n, found = len(samples), []
    for submodel in robot.submodels if submodels is None else submodels:
        links, placed = submodel.links, poses_in_root(robot, submodel, poses)
        wrench = np.empty((n, 6, len(links), 10))
        for column, k in enumerate(links):
            wrench[:, :, column] = wrench_to_root(placed[k], net_wrench_regressor(motions[k]))
        sides = free_sides(robot, submodel, ground)
        torques = np.zeros((n, len(sides), len(links), 10))
        for row, side in enumerate(sides):
            columns = [links.index(k) for k in side.links]
            axis = side.sign * joint_axis(placed[side.child], robot.links[side.child].motion)
            torques[:, row, columns] = np.einsum('ni,nikp->nkp', axis, wrench[:, :, columns])
        n_columns = 10 * len(links)
        found.append(
            SubmodelRegressor(
                wrench.reshape(n, 6, n_columns),
                torques.reshape(n, len(sides), n_columns),
                sides,
            )
        )
    return found


def wrench_to_root(pose: Poses, wrenches: Array) -> Array:
    """Return wrenches (n, 6, ...) [force; torque] about another origin and in other axes."""
    forces = to_axes(pose.rotations, wrenches[:, :3])
    moments = to_axes(pose.rotations, wrenches[:, 3:])
    lever = to_axes(hat(pose.origins), forces)
    return np.concatenate([forces, moments + lever], axis=1)


def free_sides(robot: Robot, submodel: Submodel, ground: int = -1) -> tuple[FreeSide, ...]:
    """Return the side of each joint of a submodel that its torque moves [T 4.25]."""
    found = []
    for child in submodel.links:
        joint = robot.links[child].joint
        if child == submodel.root or joint < 0:
            continue
        carried = {child}
        for k in submodel.links:
            if robot.links[k].parent in carried:
                carried.add(k)
        outwards = ground not in carried
        links = tuple(k for k in submodel.links if (k in carried) == outwards)
        found.append(FreeSide(joint, child, links, 1.0 if outwards else -1.0))
    return tuple(found)


def joint_axis(pose: Poses, motion: Array) -> Array:
    """Return a motion subspace (6,) about another origin and in other axes, (n, 6)."""
    n = len(pose.origins)
    angular = to_axes(pose.rotations, np.broadcast_to(motion[3:], (n, 3)))
    linear = to_axes(pose.rotations, np.broadcast_to(motion[:3], (n, 3)))
    return np.concatenate([linear + cross(pose.origins, angular), angular], axis=1)


def _inertia_times(v: Array) -> Array:
    """Return the matrices that give I v from Ixx, Ixy, Iyy, Ixz, Iyz, Izz, shape (n, 3, 6)."""
    x, y, z = v[:, 0], v[:, 1], v[:, 2]
    L = np.zeros((len(v), 3, 6))
    L[:, 0, 0], L[:, 0, 1], L[:, 0, 3] = x, y, z
    L[:, 1, 1], L[:, 1, 2], L[:, 1, 4] = x, y, z
    L[:, 2, 3], L[:, 2, 4], L[:, 2, 5] = x, y, z
    return L


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
