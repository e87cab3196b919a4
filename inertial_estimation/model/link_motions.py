# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Motion of every link from what IMUs or a fixed link say of some, for many instants at once.

The estimator leaves this to Pinocchio, one instant at a time; a log of a minute has sixty
thousand, and regressors need the motions themselves. No linear velocity is needed [T 4.9].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.model.motion_sources import Source, assign_owners, serving_sources
from inertial_estimation.model.robot import Link, Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]


class Motion(NamedTuple):
    """Motion of one frame at n instants, each of shape (n, 3), in its own axes."""

    angular_velocity: Array
    """[rad/s]."""
    angular_acceleration: Array
    """[rad/s^2]."""
    proper_acceleration: Array
    """Of the frame's origin, minus gravity [m/s^2]."""


class Poses(NamedTuple):
    """Pose of one frame in another at n instants."""

    rotations: Array
    """Shape (n, 3, 3)."""
    origins: Array
    """Shape (n, 3) [m]."""


def poses_in_parents(robot: Robot, positions: Array) -> list[Poses]:
    """
    Return the pose of each link in its parent link.

    Parameters
    ----------
    robot : Robot
        Links and joints.
    positions : ndarray, shape (n, n_joints)
        Joint positions [rad or m].

    Returns
    -------
    list of Poses
        One for each link; that of the root link is the identity.

    """
    return [_pose_in_parent(link, positions) for link in robot.links]


def link_motions(
    robot: Robot, samples: SampleBatch, poses: Sequence[Poses], imus: Sequence[int] | None = None
) -> list[Motion]:
    """
    Return the motion of every link, each from the source that serves it.

    Parameters
    ----------
    robot : Robot
        Links, joints, IMUs, fixed link.
    samples : SampleBatch
        Joints and IMUs; NaN in a source or a joint makes NaN of what rests on it.
    poses : sequence of Poses
        As from `poses_in_parents`.
    imus : sequence of int, optional
        IMUs to go by, each measuring both quantities. Default: all of them that do.

    Returns
    -------
    list of Motion
        One for each link: of its origin, in its axes.

    Raises
    ------
    ModelError
        If there is neither an IMU nor a fixed link.

    """
    whole = [k for k, imu in enumerate(robot.imus) if imu.measures == 'both']
    chosen = whole if imus is None else imus
    if not chosen and not robot.fixed_frame:
        raise ModelError(
            'the motion of no link is known: name an IMU that measures both quantities in imus, '
            'or a fixed_link'
        )
    serving, sources = serving_sources(robot, chosen)
    owners = assign_owners(robot.links, sources)
    motions: list[Motion | None] = [None] * len(robot.links)
    for s, source in enumerate(sources):
        known = _of_fixed(robot, len(samples))
        if not robot.fixed_frame:
            known = _of_imu(samples, int(serving[s]))
        motions[source.link] = _at_link(known, source)
        _spread(robot, samples, poses, owners, source.link, motions)
    return [motion for motion in motions if motion is not None]


def to_axes(rotations: Array, vectors: Array) -> Array:
    """
    Return vectors in the axes that rotations lead to.

    Parameters
    ----------
    rotations : ndarray, shape (n, 3, 3)
        A_R_B.
    vectors : ndarray, shape (n, 3, ...)
        In the axes of B.

    Returns
    -------
    ndarray, shape (n, 3, ...)
        In the axes of A.

    """
    if vectors.ndim == 2:
        return np.asarray((rotations @ vectors[..., None])[..., 0])
    return np.asarray(rotations @ vectors)


def cross(a: Array, b: Array) -> Array:
    """
    Return the cross product of stacks of vectors; ``np.cross`` takes several times as long.

    Parameters
    ----------
    a, b : ndarray, shape (..., 3)
        Vectors in the same axes.

    Returns
    -------
    ndarray, shape (..., 3)

    """
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    found = np.empty(np.broadcast_shapes(a.shape, b.shape))
    found[..., 0] = ay * bz - az * by
    found[..., 1] = az * bx - ax * bz
    found[..., 2] = ax * by - ay * bx
    return found


def _pose_in_parent(link: Link, positions: Array) -> Poses:
    """Return where a link is in its parent [T 3.19 corrected]."""
    n = len(positions)
    rotations = np.broadcast_to(link.P_H_L[:3, :3], (n, 3, 3))
    origins = np.broadcast_to(link.P_H_L[:3, 3], (n, 3))
    if link.joint < 0:
        return Poses(rotations, origins)
    q = positions[:, link.joint]
    linear, axis = link.motion[:3], link.motion[3:]
    if not axis.any():
        return Poses(rotations, origins + q[:, None] * (link.P_H_L[:3, :3] @ linear))
    x, y, z = axis
    turn = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    sine, versine = np.sin(q)[:, None, None], (1.0 - np.cos(q))[:, None, None]
    return Poses(rotations @ (np.eye(3) + sine * turn + versine * (turn @ turn)), origins)


def _of_imu(samples: SampleBatch, imu: int) -> Motion:
    """Return what an IMU says of its own frame."""
    return Motion(
        samples.angular_velocities[:, imu],
        samples.angular_accelerations[:, imu],
        samples.proper_accelerations[:, imu],
    )


def _of_fixed(robot: Robot, n: int) -> Motion:
    """Return the motion of a frame at rest."""
    rest = np.zeros((n, 3))
    return Motion(rest, rest, np.broadcast_to(-robot.gravity, (n, 3)))


def _at_link(known: Motion, source: Source) -> Motion:
    """Return the motion of a link's origin from that of a frame on it [T 4.11 corrected]."""
    R, p = source.L_H_S[:3, :3], source.L_H_S[:3, 3]
    w, dw, a = (part @ R.T for part in known)
    return Motion(w, dw, a - cross(dw, p) - cross(w, cross(w, p)))


def _spread(
    robot: Robot,
    samples: SampleBatch,
    poses: Sequence[Poses],
    owners: Sequence[int],
    start: int,
    motions: list[Motion | None],
) -> None:
    """Carry the motion of a link to all that the same source serves."""
    waiting = [start]
    while waiting:
        k = waiting.pop()
        here = motions[k]
        assert here is not None
        parent = robot.links[k].parent
        neighbours = [c for c, link in enumerate(robot.links) if link.parent == k]
        for other in (*neighbours, *([parent] if parent >= 0 else [])):
            if owners[other] != owners[start] or motions[other] is not None:
                continue
            child = other if other != parent else k
            step = _outwards if other != parent else _inwards
            motions[other] = step(here, poses[child], *_joint_motion(robot.links[child], samples))
            waiting.append(other)


def _joint_motion(link: Link, samples: SampleBatch) -> tuple[Array, Array, Array, Array]:
    """Return the angular and linear rates of a joint and their rates, in the child's axes."""
    if link.joint < 0:
        return (np.zeros(3),) * 4
    rate = samples.velocities[:, link.joint, None]
    rate_of_rate = samples.accelerations[:, link.joint, None]
    linear, angular = link.motion[:3], link.motion[3:]
    return angular * rate, angular * rate_of_rate, linear * rate, linear * rate_of_rate


def _outwards(
    parent: Motion, pose: Poses, turn: Array, turn_rate: Array, slide: Array, slide_rate: Array
) -> Motion:
    """Return the motion of a child link."""
    w_P, dw_P, a_P = parent
    to_child = np.swapaxes(pose.rotations, -1, -2)
    p = pose.origins
    carried = to_axes(to_child, a_P + cross(dw_P, p) + cross(w_P, cross(w_P, p)))
    w_0, dw_0 = to_axes(to_child, w_P), to_axes(to_child, dw_P)
    w = w_0 + turn
    return Motion(
        w,
        dw_0 + turn_rate + cross(w_0, np.broadcast_to(turn, w_0.shape)),
        carried + slide_rate + 2.0 * cross(w_0, np.broadcast_to(slide, w_0.shape)),
    )


def _inwards(
    child: Motion, pose: Poses, turn: Array, turn_rate: Array, slide: Array, slide_rate: Array
) -> Motion:
    """Return the motion of a parent link; undoes `_outwards`."""
    w, dw, a = child
    w_0 = w - turn
    dw_0 = dw - turn_rate - cross(w_0, np.broadcast_to(turn, w_0.shape))
    a_0 = a - slide_rate - 2.0 * cross(w_0, np.broadcast_to(slide, w_0.shape))
    w_P, dw_P = to_axes(pose.rotations, w_0), to_axes(pose.rotations, dw_0)
    p = pose.origins
    a_P = to_axes(pose.rotations, a_0) - cross(dw_P, p) - cross(w_P, cross(w_P, p))
    return Motion(w_P, dw_P, a_P)
