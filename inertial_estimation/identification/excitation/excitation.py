# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How well the efforts of a motion tell what a robot weighs, and what would make it better.

The condition number is that of the stacked rows over the base parameters, in SI units and without
scaling of rows or columns, as S states it: the largest singular value of W over the least. Where
singular values meet it has a kink, so what is minimised is, with P growing,

    log ||W||_P + log ||W^+||_P      P-norms of singular values; from above to log of the condition

Rows over friction and drive inertia follow S 27. The sign of a velocity has no slope: while a
motion is being made better it is a tanh.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.rows.friction import JointModel
from inertial_estimation.identification.unknowns import Term, Unknowns
from inertial_estimation.model.base_parameters import BaseParameters, conditioning_order
from inertial_estimation.model.identifiable import STATES_PER_COLUMN, random_states
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.torque_derivatives import TorqueRegressor

Array = NDArray[np.float64]


class Judged(NamedTuple):
    """A smooth bound of the condition number of a motion, and its gradient."""

    bound: float
    """Its logarithm."""
    condition: float
    """The condition number itself, with smooth signs."""
    slopes: Array
    """Gradient of `bound` over positions, velocities, accelerations, shape (3, n, n_joints)."""


class EffortRegressor:
    """
    Rows of the efforts of all joints over the base parameters.

    Parameters
    ----------
    robot : Robot
        On a fixed base, as for `TorqueRegressor`; its inertial parameters are not used.
    joint : JointModel
        Friction and drive inertia that are unknown too. Its ``sign_width`` is used by `condition`
        only, its ``dead_zone`` not at all: it tells which rows of a log to leave out.

    Raises
    ------
    ModelError
        If the robot has no joint, or as `TorqueRegressor`.

    """

    def __init__(self, robot: Robot, joint: JointModel) -> None:
        if not robot.joint_names:
            raise ModelError(f"robot '{robot.name}' has no joint that moves")
        self.robot = robot
        self.joint = joint
        extras = [extra for name in robot.joint_names for extra in joint.extras(name)]
        self.unknowns = Unknowns(robot.link_names, tuple(extras))
        self._torques = TorqueRegressor(robot)
        n = int(np.ceil(STATES_PER_COLUMN * len(self.unknowns))) + 8
        states = random_states(robot, n)
        Y = self._stacked(states.positions, states.velocities, states.accelerations)
        order = conditioning_order(len(robot.links), len(extras))
        self.base = BaseParameters.of_regressor(Y.reshape(-1, Y.shape[-1]), order)

    def rows(self, motion: Array) -> Array:
        """
        Return the rows of a motion over the base parameters.

        Parameters
        ----------
        motion : ndarray, shape (3, n, n_joints)
            Positions, velocities, accelerations.

        Returns
        -------
        ndarray, shape (n n_joints, n_base)

        """
        Y = self._stacked(*motion)
        return np.asarray(Y.reshape(-1, Y.shape[-1])[:, self.base.independent])

    def torques(self, motion: Array) -> Array:
        """
        Return the rows of the joint torques over the links' parameters alone.

        Parameters
        ----------
        motion : ndarray, shape (3, n, n_joints)
            As for `rows`.

        Returns
        -------
        ndarray, shape (n, n_joints, 10 n_links)

        """
        return self._torques.rows(*motion).Y

    def condition(self, motion: Array) -> float:
        """
        Return the condition number of a motion.

        Parameters
        ----------
        motion : ndarray, shape (3, n, n_joints)
            As for `rows`.

        Returns
        -------
        float

        """
        values = np.linalg.svd(np.linalg.qr(self.rows(motion), mode='r'), compute_uv=False)
        return float(values[0] / values[-1]) if values[-1] > 0.0 else float('inf')

    def judge(self, motion: Array, sharpness: float, sign_widths: Array) -> Judged:
        """
        Return a smooth bound of the condition number, and how the motion changes it.

        Parameters
        ----------
        motion : ndarray, shape (3, n, n_joints)
            As for `rows`.
        sharpness : float
            P; the bound is above the condition number by a factor of n_base^(2 / P) at most.
        sign_widths : ndarray, shape (n_joints,)
            Velocity at which tanh stands for the sign [rad/s or m/s].

        Returns
        -------
        Judged

        """
        rows = self._torques.rows(*motion)
        columns, rates = _smooth_columns(self.joint, motion, sign_widths)
        Y = self._join(rows.Y, columns)
        kept = self.base.independent
        n, joints, unknowns = Y.shape
        W = Y.reshape(-1, unknowns)[:, kept] / np.sqrt(n)
        _, values, right = np.linalg.svd(np.linalg.qr(W, mode='r'))
        values = np.maximum(values, np.finfo(float).tiny)
        bound, of_values = _smooth_condition(values, sharpness)
        slopes = np.zeros_like(Y)
        # Of W = U S V' the slopes are U diag(..) V', and U = W V / S.
        of_W = W @ ((right.T * (of_values / values)) @ right)
        slopes[:, :, kept] = of_W.reshape(n, joints, -1) / np.sqrt(n)
        found = np.array(self._torques.gradient(rows, slopes[:, :, : self.unknowns.n_inertial]))
        own = self._own(slopes)
        found[1] += np.einsum('njt,njt->nj', own, rates[0])
        found[2] += np.einsum('njt,njt->nj', own, rates[1])
        return Judged(bound, float(values[0] / values[-1]), found)

    def _stacked(self, positions: Array, velocities: Array, accelerations: Array) -> Array:
        """Return the rows over all unknowns, shape (n, n_joints, n_unknowns)."""
        columns = [
            self.joint.columns(velocities[:, j], accelerations[:, j])
            for j in range(velocities.shape[1])
        ]
        Y = self._torques.rows(positions, velocities, accelerations).Y
        return self._join(Y, np.stack(columns, axis=1))

    def _join(self, Y: Array, columns: Array) -> Array:
        """Return rows with what each joint has of its own, columns of shape (n, n_joints, k)."""
        n, joints, terms = columns.shape
        joined = np.zeros((n, joints, len(self.unknowns)))
        joined[:, :, : Y.shape[-1]] = Y
        for j in range(joints):
            joined[:, j, Y.shape[-1] + terms * j :][:, :terms] = columns[:, j]
        return joined

    def _own(self, slopes: Array) -> Array:
        """Return what `_join` put in of each joint, shape (n, n_joints, k)."""
        n, joints, _ = slopes.shape
        own = slopes[:, :, self.unknowns.n_inertial :].reshape(
            n, joints, joints, len(self.joint.terms)
        )
        return np.asarray(np.einsum('njjt->njt', own))


def _smooth_columns(joint: JointModel, motion: Array, widths: Array) -> tuple[Array, Array]:
    """Return columns of friction, (n, n_joints, k), and slopes over velocity and acceleration."""
    _, v, a = motion
    sign = np.tanh(v / widths)
    one, zero = np.ones_like(v), np.zeros_like(v)
    each = {
        Term.VISCOUS: (v, one, zero),
        Term.COULOMB: (sign, (1.0 - sign**2) / widths, zero),
        Term.OFFSET: (one, zero, zero),
        Term.DRIVE_INERTIA: (a, zero, one),
    }
    found = np.zeros((3, *v.shape, len(joint.terms)))
    for k, term in enumerate(joint.terms):
        found[..., k] = each[term]
    return found[0], found[1:]


def _smooth_condition(values: Array, P: float) -> tuple[float, Array]:
    """Return the logarithm of the bound from singular values, largest first, and slopes."""
    up, down = (values / values[0]) ** P, (values[-1] / values) ** P
    bound = np.log(values[0] / values[-1]) + np.log(up.sum() * down.sum()) / P
    return float(bound), (up / up.sum() - down / down.sum()) / values
