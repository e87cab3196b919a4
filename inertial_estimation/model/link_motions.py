# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Motion of every link from that of IMUs or a fixed link, for many instants at once.

The estimator leaves this to Pinocchio, one instant at a time; a log of a minute has sixty
thousand, and regressors need the motions themselves. No linear velocity is needed [T 4.9].
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import cross, hat
from inertial_estimation.model.tree import Submodel, assign_owners, decompose
from inertial_estimation.sample import SampleBatch


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
    """Return the pose of each link in its parent; positions (n, n_joints) [rad or m]."""
    P_H_L = np.array([link.P_H_L for link in robot.links])
    linear, axes = np.hsplit(np.array([link.motion for link in robot.links]), 2)
    q = _of_links(robot, positions)
    at_zero, across = P_H_L[:, :3, :3], hat(axes)
    turn = at_zero @ across
    sine, versine = np.sin(q)[..., None], 1.0 - np.cos(q)[..., None]
    # [T 3.19 corrected].
    rotations = at_zero[:, None] + sine * turn[:, None] + versine * (turn @ across)[:, None]
    slides = (at_zero @ linear[..., None])[..., 0]
    origins = P_H_L[:, None, :3, 3] + q * slides[:, None]
    return [Poses(*pose) for pose in zip(rotations, origins, strict=True)]


def poses_in_root(robot: Robot, submodel: Submodel, poses: Sequence[Poses]) -> dict[int, Poses]:
    """Return the poses of the links of a submodel in its root link."""
    n = len(poses[0].origins)
    found = {submodel.root: Poses(np.broadcast_to(np.eye(3), (n, 3, 3)), np.zeros((n, 3)))}
    for k in submodel.links:
        if k != submodel.root:
            above = found[robot.links[k].parent]
            origins = above.origins + to_axes(above.rotations, poses[k].origins)
            found[k] = Poses(above.rotations @ poses[k].rotations, origins)
    return found


def link_poses(robot: Robot, positions: Array) -> Array:
    """Return poses in the root link, (n_links, n, 4, 4) [m]; positions (n, n_joints)."""
    (whole,) = decompose(robot.links, robot.ft_sensors, cut=())
    found = np.tile(np.eye(4), (len(robot.links), len(positions), 1, 1))
    for link, pose in poses_in_root(robot, whole, poses_in_parents(robot, positions)).items():
        found[link, :, :3, :3], found[link, :, :3, 3] = pose.rotations, pose.origins
    return found


def link_motions(
    robot: Robot, samples: SampleBatch, poses: Sequence[Poses], imus: Sequence[int] | None = None
) -> list[Motion]:
    """Return the motion of every link, each from the source that serves it."""
    whole = [k for k, imu in enumerate(robot.imus) if imu.measures == 'both']
    chosen = whole if imus is None else imus
    if not chosen and not robot.fixed_frame:
        raise ModelError(
            'the motion of no link is known: name an IMU that measures both quantities in imus, '
            'or a fixed_link'
        )
    serving, sources = robot.motion_sources(chosen)
    owners = assign_owners(robot.links, sources)
    n = len(samples)
    motions = np.full((3, len(robot.links), n, 3), np.nan)
    # Angular rates of joints and their rates, linear ones likewise, in the axes of the children.
    slide, turn = np.split(np.array([link.motion for link in robot.links])[:, None], 2, axis=-1)
    rates = _of_links(robot, samples.velocities), _of_links(robot, samples.accelerations)
    joints = np.array([axis * rate for axis in (turn, slide) for rate in rates])
    for s, source in enumerate(sources):
        if robot.fixed_frame:
            known = np.zeros((n, 3)), np.zeros((n, 3)), np.broadcast_to(-robot.gravity, (n, 3))
        else:
            known = (
                samples.angular_velocities[:, serving[s]],
                samples.angular_accelerations[:, serving[s]],
                samples.proper_accelerations[:, serving[s]],
            )
        # From the frame of the source to the origin of its link [T 4.11 corrected].
        R, p = source.L_H_S[:3, :3], source.L_H_S[:3, 3]
        w, dw, a = (part @ R.T for part in known)
        motions[:, source.link] = w, dw, a - cross(dw, p) - cross(w, cross(w, p))
        served = [k for k, owner in enumerate(owners) if owner == s]
        _spread(robot, joints, poses, source.link, served, motions)
    return [Motion(*motions[:, k]) for k in range(len(robot.links))]


def to_axes(rotations: Array, vectors: Array) -> Array:
    """Return vectors (n, 3, ...) in the axes that rotations (n, 3, 3) lead to."""
    if vectors.ndim == 2:
        return np.asarray((rotations @ vectors[..., None])[..., 0])
    return np.asarray(rotations @ vectors)


def _spread(
    robot: Robot,
    joints: Array,
    poses: Sequence[Poses],
    start: int,
    served: Collection[int],
    motions: Array,
) -> None:
    """Carry the motion of a link to all that the same source serves, many links at once."""
    parents = [link.parent for link in robot.links]
    waiting, reached = set(served) - {start}, [start]
    while reached:
        children = [k for k in waiting if parents[k] in reached]
        below = [k for k in reached if parents[k] in waiting]
        if children:
            above = [parents[k] for k in children]
            motions[:, children] = _outwards(
                motions[:, above], _stacked(poses, children), joints[:, children]
            )
        if below:
            above = [parents[k] for k in below]
            motions[:, above] = _inwards(
                motions[:, below], _stacked(poses, below), joints[:, below]
            )
        reached = [*children, *(parents[k] for k in below)]
        waiting.difference_update(reached)


def _stacked(poses: Sequence[Poses], links: Sequence[int]) -> Poses:
    """Return the poses of some links as one, with these as first axis."""
    return Poses(*(np.array(part) for part in zip(*(poses[k] for k in links), strict=True)))


def _of_links(robot: Robot, values: Array) -> Array:
    """Return values of joints for the links they move, (n_links, n, 1); zero without a joint."""
    # That of links without a joint, whose index is -1, comes last.
    padded = np.column_stack([values, np.zeros(len(values))])
    return padded.T[[link.joint for link in robot.links], :, None]


def _outwards(parent: Array, pose: Poses, joint: Array) -> Array:
    """Return motions of children."""
    w_P, dw_P, a_P = parent
    turn, turn_rate, slide, slide_rate = joint
    p = pose.origins
    carried = a_P + cross(dw_P, p) + cross(w_P, cross(w_P, p))
    # Of all three at once: v'R is R'v.
    turned = np.stack([w_P, dw_P, carried], axis=-2) @ pose.rotations
    w_0, dw_0, a_0 = turned[..., 0, :], turned[..., 1, :], turned[..., 2, :]
    a = a_0 + slide_rate + 2.0 * cross(w_0, slide)
    return np.array([w_0 + turn, dw_0 + turn_rate + cross(w_0, turn), a])


def _inwards(child: Array, pose: Poses, joint: Array) -> Array:
    """Return motions of parents; undoes `_outwards`."""
    w, dw, a = child
    turn, turn_rate, slide, slide_rate = joint
    w_0 = w - turn
    dw_0 = dw - turn_rate - cross(w_0, turn)
    a_0 = a - slide_rate - 2.0 * cross(w_0, slide)
    w_P, dw_P, carried = (
        (pose.rotations @ vector[..., None])[..., 0] for vector in (w_0, dw_0, a_0)
    )
    p = pose.origins
    return np.array([w_P, dw_P, carried - cross(dw_P, p) - cross(w_P, cross(w_P, p))])
