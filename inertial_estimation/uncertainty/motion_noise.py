# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What noise of joints and IMUs does to the generalised forces of the forest."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from inertial_estimation.estimation.forest import Dynamics
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
