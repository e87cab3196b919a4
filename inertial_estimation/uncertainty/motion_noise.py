# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Changes of the generalised forces of the forest by noise of the motion and parameter errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.estimation.forest import Dynamics
from inertial_estimation.model.rigid_body import (
    inertia_seen_from,
    parameters_of,
    spatial_inertia,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.uncertainty.body_noise import BodyChanges
from inertial_estimation.uncertainty.products import product

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class MotionDerivatives:
    """
    The derivatives of the forest's inverse dynamics, and where they stand.

    Wrenches are linear in all accelerations (columns of the mass matrix); their derivatives by
    positions and velocities are Pinocchio's, analytic ones. The roots of the trees have the
    readings of their IMUs as velocity and acceleration, so an IMU's columns are the root's.
    """

    def __init__(self, dynamics: Dynamics) -> None:
        forest, nv = dynamics.forest, dynamics.forest.model.nv
        n_imus = len(dynamics.imus)
        inside = forest.joint_rows >= 0
        joints = np.maximum(forest.joint_rows, 0)
        linear, angular = (
            forest.top_rows[:n_imus, :3].ravel(),
            forest.top_rows[:n_imus, 3:].ravel(),
        )
        rows = np.concatenate([forest.top_rows.ravel(), joints])
        # Where the derivatives by joints, gyroscopes and accelerometers stand in memory.
        self._joints, self._angular, self._linear = (
            nv * rows + columns[:, None] for columns in (joints, angular, linear)
        )
        self._signals = np.zeros((len(joints) + 3 * n_imus, 3, len(rows)))
        self._between = (~inside).nonzero()[0]
        self._n_tops = forest.top_rows.size

    def noise(
        self,
        dynamics: Dynamics,
        joint_roots: Array,
        imu_roots: Array,
        body_changes: BodyChanges | None = None,
    ) -> Array:
        """
        Return what noise does to the generalised forces at the sample that was run last.

        joint_roots (n_joints, 3, 3); imu_roots (n_serving, 3, 3); returns (n_joints + 3 n_serving,
        3, 6 n_tops + n_joints) [N, Nm].
        """
        signals, n = self._signals, len(joint_roots)
        by_q, by_v, by_a = (x.reshape(-1) for x in dynamics_derivatives(dynamics))
        signals[:n, 0] = by_q.take(self._joints, mode='clip')
        signals[:n, 1] = by_v.take(self._joints, mode='clip')
        signals[:n, 2] = by_a.take(self._joints, mode='clip')
        signals[n:, 0] = by_v.take(self._angular, mode='clip')
        signals[n:, 1] = by_a.take(self._linear, mode='clip')
        signals[n:, 2] = by_a.take(self._angular, mode='clip')
        if len(self._between):
            signals[self._between] = 0.0
            signals[:, :, self._n_tops + self._between] = 0.0
        if body_changes is not None:
            return self._spread(joint_roots, body_changes)
        roots = np.concatenate([joint_roots, np.repeat(imu_roots, 3, axis=0)])
        mixed: Array = roots.swapaxes(1, 2) @ signals
        return mixed

    def _spread(self, joint_roots: Array, body_changes: BodyChanges) -> Array:
        """Return what `noise` does, where noise reaches several bodies."""
        (joints, changes), n = body_changes, len(joint_roots)
        by_body = self._signals[n:].reshape(-1, self._signals.shape[2])
        spread = product(changes.reshape(-1, len(by_body)), by_body).reshape(len(changes), 3, -1)
        mixed = np.empty((n + len(changes) - len(joints), *spread.shape[1:]))
        np.matmul(joint_roots.swapaxes(1, 2), self._signals[:n], out=mixed[:n])
        mixed[joints] += spread[: len(joints)]
        mixed[n:] = spread[len(joints) :]
        return mixed


def dynamics_derivatives(dynamics: Dynamics) -> tuple[Array, Array, Array]:
    """
    Return the derivatives of ``tau`` at the sample that the dynamics ran last.

    Returns by_q, by_v, by_a (nv, nv).
    """
    d = dynamics
    by_q, by_v, by_a = pin.computeRNEADerivatives(d.forest.model, d.forest_data, d.q, d.v, d.a)
    return by_q, by_v, by_a.T  # symmetric, and kept by columns


Parts = Sequence[tuple[Indices, Array]]


def independent_parts(robot: Robot, roots: Array) -> Parts:
    """
    Return the errors of inertial parameters that are independent of each other.

    roots (n_links, 10, r).
    """
    roots = np.asarray(roots, dtype=np.float64)
    n = len(robot.links)
    if roots.ndim != 3 or roots.shape[:2] != (n, 10):
        raise ShapeError('parameter_roots', (n, 10, 'r'), roots.shape, 'rows for each parameter')
    if not np.isfinite(roots).all():
        raise ModelError('parameter_roots hold NaN or infinity: zeros stand for what is exact')
    parts = []
    for submodel in robot.submodels:
        links = np.array(submodel.links, dtype=np.intp)
        own = roots[links].reshape(10 * len(links), -1)
        held = own.any(axis=0)
        if held.any():
            parts.append((links, own[:, held]))
    return parts


class ParameterNoise:
    """
    The errors of inertial parameters in one forest.

    Generalised forces are linear in the parameters: Pinocchio's joint torque regressor has the
    factors, for bodies in the frames of the forest's joints.
    """

    def __init__(self, dynamics: Dynamics, parts: Parts) -> None:
        forest = dynamics.forest
        self._between = forest.top_rows.size + np.flatnonzero(forest.joint_rows < 0)
        joints = np.maximum(forest.joint_rows, 0)
        self._rows = np.concatenate([forest.top_rows.ravel(), joints])
        units = spatial_inertia(np.eye(10))
        self._parts = []
        for links, root in parts:
            carriers = [forest.carriers[k] for k in links]
            seen = [
                parameters_of(inertia_seen_from(units, J_H_L.homogeneous)).T @ own
                for (_, J_H_L), own in zip(carriers, root.reshape(len(links), 10, -1))
            ]
            # Pinocchio counts joints from one.
            first = np.array([10 * (joint - 1) for joint, _ in carriers], dtype=np.intp)
            columns = (first[:, None] + np.arange(10)).ravel()
            self._parts.append((columns, np.concatenate(seen)))

    def changes(self, dynamics: Dynamics) -> Array:
        """
        Return what the errors do to the generalised forces at the sample that was run last.

        Returns (6 n_tops + n_joints, n_columns) [N, Nm].
        """
        d = dynamics
        factors = pin.computeJointTorqueRegressor(d.forest.model, d.forest_data, d.q, d.v, d.a)
        factors = factors[self._rows]
        factors[self._between] = 0.0
        return np.hstack([product(factors[:, columns], root) for columns, root in self._parts])
