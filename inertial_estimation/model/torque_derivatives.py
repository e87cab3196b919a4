# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Regressor of joint torques and measured wrenches, and gradients of functions of it.

`regressor` gives rows for logs, from whatever is known of the motion. Here the motion is chosen:
a robot on a fixed base, and the gradient of any function of all rows over positions, velocities
and accelerations, in one pass back over what gave the rows. With S_k the motion subspace of the
joint of link k and everything in the axes of link k, parent p,

    V_k = X V_p + S_k q'           A_k = X A_p + S_k q'' + V_k x S_k q'
    s_j,k = X s_j,p, s_k,k = S_k   row of joint j, columns of link k: s_j,k' B(A_k, V_k)

where ``B(A, V) parameters`` is the net wrench M A + V x* M V [T 4.9], A holding minus gravity at
the base. Of what is carried along, X m, the change with the joint's position is (X m) x S_k.

FT sensors cut the robot: the torque of a joint depends on the links up to the next sensor, and the
wrench on a submodel beyond a sensor is six more rows, as of six joints at its root link that turn
and slide about its axes and never move: there the s are the unit vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.model.link_motions import poses_in_parents
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import (
    hat,
    inverse_pose,
    motion_cross,
    motion_transform,
    wrench_cross,
)


class _AtLink(NamedTuple):
    """Quantities of the pass outwards at one link, in its axes, at n instants."""

    X: Array
    """From the parent, shape (n, 6, 6)."""
    velocity: Array
    """Shape (n, 6), [linear; angular] [m/s, rad/s]."""
    acceleration: Array
    """Shape (n, 6), spatial, without gravity [m/s^2, rad/s^2]."""
    axes: Array
    """Directions of its rows: (n, k, 6), the joints of the submodel up to this link, or more."""
    B: Array
    """Net wrench over the link's parameters, shape (n, 6, 10)."""


class TorqueRows(NamedTuple):
    """Rows at n instants, and what `TorqueRegressor.gradient` needs."""

    Y: Array
    """
    Shape (n, n_rows, 10 n_links), columns as those of `model.inertia` link by link: torques of
    the joints, then for each submodel beyond an FT sensor the wrench on it, [force; moment] in
    and about the axes of its root link.
    """
    velocities: Array
    """Of the joints, shape (n, n_joints)."""
    links: tuple[_AtLink | None, ...]
    """For each link; None: it does not move."""


class TorqueRegressor:
    """
    Rows of the joint torques of a robot on a fixed base, and of the wrenches beyond FT sensors.
    """

    def __init__(self, robot: Robot) -> None:
        if not robot.fixed_frame or robot.frame(robot.fixed_frame)[0] != 0:
            raise ModelError(
                f"the root link '{robot.link_names[0]}' must be the fixed link: torques of joints "
                'between the two would balance an unmeasured wrench'
            )
        self.robot = robot
        beyond = [submodel for submodel in robot.submodels if submodel.root != 0]
        first = len(robot.joint_names)
        self.wrench_rows = {
            submodel.root: tuple(range(first + 6 * k, first + 6 * k + 6))
            for k, submodel in enumerate(beyond)
        }
        """Rows of the wrench on each submodel beyond an FT sensor, by its root link."""
        self.n_rows = first + 6 * len(beyond)
        self._chains = _chains(robot, self.wrench_rows)
        _, L_H_fixed = robot.frame(robot.fixed_frame)
        self._rest = np.concatenate([-L_H_fixed[:3, :3] @ robot.gravity, np.zeros(3)])

    def rows(self, positions: Array, velocities: Array, accelerations: Array) -> TorqueRows:
        """
        Return the rows at n instants.

        positions, velocities, accelerations (n, n_joints) [rad or m, and their rates].
        """
        links = self.robot.links
        n = len(positions)
        Y = np.zeros((n, self.n_rows, len(links), 10))
        poses = poses_in_parents(self.robot, positions)
        found: list[_AtLink | None] = [None] * len(links)
        for k, chain in enumerate(self._chains):
            if not chain:
                continue
            P_H_L = np.zeros((n, 4, 4))
            P_H_L[:, :3, :3], P_H_L[:, :3, 3] = poses[k]
            P_H_L[:, 3, 3] = 1.0
            X, parent = motion_transform(inverse_pose(P_H_L)), found[links[k].parent]
            at = self._outwards(k, X, parent, velocities, accelerations)
            Y[:, chain, k] = at.axes @ at.B
            found[k] = at
        return TorqueRows(Y.reshape(n, -1, 10 * len(links)), velocities, tuple(found))

    def gradient(self, rows: TorqueRows, slopes: Array) -> tuple[Array, Array, Array]:
        """
        Return the gradient of a function of the rows over the motion.

        slopes (n, n_rows, 10 n_links); returns positions, velocities, accelerations (n, n_joints).
        """
        links, rates = self.robot.links, rows.velocities
        of_q, of_v, of_a = np.zeros((3, *rates.shape))
        blocks = slopes.reshape(*slopes.shape[:2], len(links), 10)
        moving = {k: at for k, at in enumerate(rows.links) if at is not None}
        back = {k: _Back(at, blocks[:, self._chains[k], k]) for k, at in moving.items()}
        for k in reversed(moving):
            at, mine = moving[k], back[k]
            if links[k].joint >= 0:
                joint = links[k].joint
                of_q[:, joint], of_v[:, joint], of_a[:, joint] = _through(
                    links[k].motion, rates[:, joint, None], at, mine
                )
            if links[k].parent in back:
                parent = back[links[k].parent]
                parent.velocity += (mine.velocity[:, None] @ at.X)[:, 0]
                parent.acceleration += (mine.acceleration[:, None] @ at.X)[:, 0]
                if links[k].joint >= 0:
                    parent.axes += mine.axes[:, :-1] @ at.X
        return of_q, of_v, of_a

    def _outwards(
        self, k: int, X: Array, parent: _AtLink | None, velocities: Array, accelerations: Array
    ) -> _AtLink:
        """Return what is at a link from what is at its parent, None: the base."""
        S, joint = self.robot.links[k].motion, self.robot.links[k].joint
        n = len(X)
        if parent is None:
            velocity, acceleration = np.zeros((n, 6)), X @ self._rest
            axes = np.zeros((n, 0, 6))
        else:
            velocity = (X @ parent.velocity[..., None])[..., 0]
            acceleration = (X @ parent.acceleration[..., None])[..., 0]
            axes = parent.axes @ np.swapaxes(X, 1, 2)
        if joint >= 0:
            rate, rate_of_rate = velocities[:, joint, None], accelerations[:, joint, None]
            velocity = velocity + S * rate
            acceleration = acceleration + S * rate_of_rate - rate * (velocity @ motion_cross(S).T)
            axes = np.concatenate([axes, np.broadcast_to(S, (n, 1, 6))], axis=1)
        else:
            axes = np.broadcast_to(np.eye(6), (n, 6, 6))
        B = _momentum(acceleration) + wrench_cross(velocity) @ _momentum(velocity)
        return _AtLink(X, velocity, acceleration, axes, B)


class _Back:
    """Gradient over what one link's rows are made of, shaped as in `_AtLink`."""

    def __init__(self, at: _AtLink, slopes: Array) -> None:
        of_B = np.swapaxes(at.axes, 1, 2) @ slopes
        self.axes = slopes @ np.swapaxes(at.B, 1, 2)
        self.acceleration = of_B.reshape(-1, 60) @ _MOMENTUM.reshape(60, 6)
        # V x* L(V): its transpose is -(V x); the rest is the change of V before the cross.
        through = -motion_cross(at.velocity) @ of_B
        self.velocity = through.reshape(-1, 60) @ _MOMENTUM.reshape(60, 6)
        self.velocity -= _sum_of_crosses(of_B @ np.swapaxes(_momentum(at.velocity), 1, 2))


def _through(S: Array, rate: Array, at: _AtLink, mine: _Back) -> tuple[Array, Array, Array]:
    """Return the gradient over a joint's position, velocity and acceleration, (n,) each."""
    S_cross = motion_cross(S)
    # Through V_k x S q' = -q' (S x) V_k, a part of A_k.
    mine.velocity -= rate * (mine.acceleration @ S_cross)
    S_V = at.velocity @ S_cross.T
    # S x (X V_p) = S x V_k; in X A_p what S q'' added is crossed to nothing.
    S_A = (at.acceleration + rate * S_V) @ S_cross.T
    of_q = -_dot(mine.velocity, S_V) - _dot(mine.acceleration, S_A)
    of_q -= _dot(mine.axes[:, :-1], at.axes[:, :-1] @ S_cross.T)
    of_v = mine.velocity @ S - _dot(mine.acceleration, S_V)
    return of_q, of_v, mine.acceleration @ S


def _chains(robot: Robot, wrench_rows: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Return the rows of each link: its submodel's wrench, then joints up to its own."""
    found: list[list[int]] = []
    for k, link in enumerate(robot.links):
        if link.joint >= 0:
            found.append([*found[link.parent], link.joint])
        else:
            found.append(list(wrench_rows.get(k, ())))
    return found


def _momentum_map() -> Array:
    """Return T with M v = T_ikm parameters_k v_m, shape (6, 10, 6)."""
    T = np.zeros((6, 10, 6))
    T[:3, 0, :3] = np.eye(3)
    for axis, turned in enumerate(hat(np.eye(3))):
        T[:3, 1 + axis, 3:] = -turned
        T[3:, 1 + axis, :3] = turned
    for k, (i, j) in enumerate(((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))):
        T[3 + i, 4 + k, 3 + j] = T[3 + j, 4 + k, 3 + i] = 1.0
    return T


_MOMENTUM = _momentum_map()


def _momentum(motion: Array) -> Array:
    """Return the spatial momentum over a link's parameters, shape (n, 6, 10)."""
    return np.asarray((motion @ _MOMENTUM.reshape(60, 6).T).reshape(-1, 6, 10))


def _sum_of_crosses(products: Array) -> Array:
    """Return the sum of v x* f from the sum of v f', shape (n, 6)."""
    linear, force, moment = products[:, :3, :3], products[:, 3:, :3], products[:, 3:, 3:]
    return np.concatenate([_axial(force), _axial(linear) + _axial(moment)], axis=1)


def _axial(products: Array) -> Array:
    """Return the sum of a x b from the sum of a b', shape (n, 3)."""
    turned = products - np.swapaxes(products, 1, 2)
    return np.stack([turned[:, 1, 2], turned[:, 2, 0], turned[:, 0, 1]], axis=1)


def _dot(a: Array, b: Array) -> Array:
    """Return the sum of products at each instant, shape (n,)."""
    return np.asarray((a * b).reshape(len(a), -1).sum(axis=1))
