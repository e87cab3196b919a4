# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Regressor of joint torques and measured wrenches of a robot on a fixed base, and its gradient.

In the axes of the root link, with S_i the screw of the joint of link i and sums over the joints
from the root to link k,

    V_k = sum S_i q_i'    A_k = A_0 + sum S_i q_i'' + V_i x S_i q_i'    row_j,k = s_j' B(A_k, V_k)

where ``B(A, V) parameters`` is the net wrench M A + V x* M V [T 4.9], A_0 minus gravity, and s_j
the screw of a joint, or the axes of the root link of a submodel beyond an FT sensor. A position
q_i moves all that link i carries, so that in the axes of any link k beyond, with w = V_i x S_i,

    dV_k/dq_i = w    dA_k/dq_i = A_i x S_i + w x (V_k - V_i)    ds_j/dq_i = s_j x S_i
    dV_k/dq_i' = S_i    dA_k/dq_i' = (2 V_i - V_k) x S_i    dA_k/dq_i'' = S_i
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.model.inertia import spatial_inertia
from inertial_estimation.model.link_motions import poses_in_parents
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import (
    apply,
    inverse_pose,
    motion_cross,
    motion_transform,
    wrench_cross,
)

_LINEAR = spatial_inertia(np.eye(10)).swapaxes(0, 1)
"""T with M(x) v = T_ikm x_k v_m, shape (6, 10, 6)."""
_QUADRATIC = np.einsum('aij,jpb->ipab', wrench_cross(np.eye(6)), _LINEAR)
_QUADRATIC = (_QUADRATIC + _QUADRATIC.swapaxes(2, 3)) / 2
"""Q with v x* M(x) v = Q_ipab x_p v_a v_b, shape (6, 10, 6, 6)."""


class TorqueRegressor:
    """Torques of joints by the links up to the next FT sensors, and wrenches beyond those."""

    def __init__(self, robot: Robot) -> None:
        if not robot.fixed_frame or robot.frame(robot.fixed_frame)[0] != 0:
            raise ModelError(
                f"the root link '{robot.link_names[0]}' must be the fixed link: torques of joints "
                'between the two would balance an unmeasured wrench'
            )
        self.robot = robot
        joints = [k for k, link in enumerate(robot.links) if link.joint >= 0]
        joints.sort(key=lambda k: robot.links[k].joint)
        self._joints = np.array(joints, dtype=np.intp)
        """Links that joints move, in the order of the joints."""
        beyond = [submodel.root for submodel in robot.submodels if submodel.root != 0]
        first = len(joints)
        self.wrench_rows = {k: tuple(first + 6 * i + np.arange(6)) for i, k in enumerate(beyond)}
        """Rows of the wrench on each submodel beyond an FT sensor, by its root link."""
        owner = np.zeros(len(robot.links), dtype=np.intp)
        for submodel in robot.submodels:
            owner[list(submodel.links)] = submodel.root
        of_links = robot.carried & (owner == owner[:, None])
        self._covered = of_links[[*joints, *np.repeat(beyond, 6).astype(int)]]
        """Links whose parameters are in a row, (n_rows, n_links)."""

    def rows(self, states: Array) -> tuple[Array, Callable[[Array], Array]]:
        """
        Return the regressor (n, n_rows, 10 n_links), and the gradient of functions of it.

        states (3, n, n_joints): positions [rad or m], velocities, accelerations. Rows are torques
        of the joints, then for each submodel beyond an FT sensor the wrench on it, [force; moment]
        in and about the axes of its root link. The second result takes slopes of the shape of the
        first to slopes of the shape of the states.
        """
        robot, joints, carried = self.robot, self._joints, self.robot.carried.astype(float)
        poses, screws = joint_screws(robot, states[0])
        rates = np.zeros((2, *screws.shape[:2], 1))
        rates[:, :, joints, 0] = states[1:]
        V = carried.T @ (rates[0] * screws)
        turned = apply(motion_cross(V), screws)
        A = carried.T @ (rates[1] * screws + rates[0] * turned)
        A[..., :3] -= robot.frame(robot.fixed_frame)[1][:3, :3] @ robot.gravity
        to_link = motion_transform(inverse_pose(poses))
        V_link, A_link = apply(to_link, V), apply(to_link, A)
        B_link = A_link @ _LINEAR.reshape(60, 6).T
        squares = V_link[..., :, None] * V_link[..., None, :]
        B_link += squares.reshape(*A.shape[:2], 36) @ _QUADRATIC.reshape(60, 36).T
        B = to_link.swapaxes(-1, -2) @ B_link.reshape(*A.shape, 10)
        of_roots = motion_transform(poses[:, list(self.wrench_rows)]).swapaxes(-1, -2)
        axes = np.concatenate([screws[:, joints], of_roots.reshape(len(B), -1, 6)], axis=1)
        Y = np.einsum('nrs,nksp,rk->nrkp', axes, B, self._covered, optimize=True)

        def gradient(slopes: Array) -> Array:
            of_Y = slopes.reshape(Y.shape) * self._covered[..., None]
            of_B = to_link @ np.einsum('nrs,nrkp->nksp', axes, of_Y, optimize=True)
            of_B = of_B.reshape(*A.shape[:2], 60)
            of_A = apply(to_link.swapaxes(-1, -2), of_B @ _LINEAR.reshape(60, 6))
            squares = (of_B @ _QUADRATIC.reshape(60, 36)).reshape(*A.shape, 6)
            of_V = apply(to_link.swapaxes(-1, -2), 2.0 * apply(squares, V_link))
            crossed = carried @ apply(motion_cross(V).swapaxes(-1, -2), of_A)
            of_A, of_V = carried @ of_A, carried @ of_V
            of_axes = np.einsum('nrkp,nksp->nrks', of_Y, B, optimize=True)
            of_axes = self._covered[..., None] * (carried @ of_axes)
            back = motion_cross(axes).swapaxes(-1, -2)[:, :, None]
            of_V, of_axes = of_V - crossed, apply(back, of_axes).sum(axis=1)
            twice = apply(motion_cross(A), screws) + apply(motion_cross(V), turned)
            of_q = _dot(of_V, turned) + _dot(of_A, twice) + _dot(of_axes, screws)
            of_v = _dot(of_V, screws) + 2.0 * _dot(of_A, turned)
            return np.array([of_q, of_v, _dot(of_A, screws)])[..., joints]

        return Y.reshape(*Y.shape[:2], -1), gradient


def joint_screws(robot: Robot, positions: Array) -> tuple[Array, Array]:
    """
    Return poses of links in the root link, and the screw of the joint of each link in its axes.

    positions (n, n_joints); poses (n, n_links, 4, 4); screws (n, n_links, 6), zero if fixed.
    """
    poses = np.tile(np.eye(4), (len(positions), len(robot.links), 1, 1))
    for k, (link, pose) in enumerate(
        zip(robot.links, poses_in_parents(robot, positions), strict=True)
    ):
        if link.parent >= 0:
            poses[:, k, :3, :3], poses[:, k, :3, 3] = pose
            poses[:, k] = poses[:, link.parent] @ poses[:, k]
    motions = np.array([link.motion for link in robot.links])
    return poses, apply(motion_transform(poses), motions)


def _dot(a: Array, b: Array) -> Array:
    """Return the sum of products of components (..., 6)."""
    return np.asarray((a * b).sum(axis=-1))
