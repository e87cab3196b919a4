# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Changes of the generalised forces of the forest by noise of the motion and parameter errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.estimation.forest import Dynamics
from inertial_estimation.model.inertia import inertia_seen_from, parameters_of, spatial_inertia
from inertial_estimation.model.robot import Robot
from inertial_estimation.uncertainty.link_motion_noise import LinkChanges

Parts = Sequence[tuple[Indices, Array]]
"""Links of each submodel with uncertain parameters, and a root of their covariance."""


class MotionDerivatives:
    """
    Derivatives of the forest's inverse dynamics by the readings.

    Wrenches are linear in all accelerations (columns of the mass matrix); their derivatives by
    positions and velocities are Pinocchio's. The roots of the trees have the readings of their
    IMUs as velocity and acceleration, so an IMU's columns are the root's.
    """

    def __init__(self, dynamics: Dynamics) -> None:
        forest, nv = dynamics.forest, dynamics.forest.model.nv
        tops = forest.top_rows[: len(dynamics.imus)]
        joints = np.maximum(forest.joint_rows, 0)
        rows = np.concatenate([forest.top_rows.ravel(), joints])
        # Where the derivatives by joints, gyroscopes and accelerometers are in memory.
        self._joints, self._angular, self._linear = (
            nv * rows + columns.ravel()[:, None] for columns in (joints, tops[:, 3:], tops[:, :3])
        )
        self._signals = np.zeros((len(joints) + tops.size // 2, 3, len(rows)))
        self._between = np.flatnonzero(forest.joint_rows < 0)
        self._n_tops = forest.top_rows.size

    def noise(
        self,
        dynamics: Dynamics,
        joint_roots: Array,
        imu_roots: Array,
        link_changes: LinkChanges | None = None,
    ) -> Array:
        """
        Return what noise does to the generalised forces at the sample that was run last.

        joint_roots (n_joints, 3, 3); imu_roots (n_serving, 3, 3); returns (n_joints + 3 n_serving,
        3, 6 n_tops + n_joints) [N, Nm].
        """
        d, signals, n = dynamics, self._signals, len(joint_roots)
        by_q, by_v, by_a = pin.computeRNEADerivatives(d.forest.model, d.forest_data, d.q, d.v, d.a)
        # The mass matrix is symmetric, and kept by columns.
        by_q, by_v, by_a = by_q.reshape(-1), by_v.reshape(-1), by_a.T.reshape(-1)
        for rows, each, columns in (
            (slice(n), (by_q, by_v, by_a), (self._joints,) * 3),
            (slice(n, None), (by_v, by_a, by_a), (self._angular, self._linear, self._angular)),
        ):
            for k, (values, places) in enumerate(zip(each, columns, strict=True)):
                signals[rows, k] = values.take(places, mode='clip')
        if len(self._between):
            signals[self._between] = 0.0
            signals[:, :, self._n_tops + self._between] = 0.0
        if link_changes is None:
            roots = np.concatenate([joint_roots, np.repeat(imu_roots, 3, axis=0)])
            return np.asarray(roots.swapaxes(1, 2) @ signals)
        # Noise of a joint or an IMU reaches several links.
        joints, changes = link_changes
        by_link = signals[n:].reshape(-1, signals.shape[2])
        spread = (changes.reshape(-1, len(by_link)) @ by_link).reshape(len(changes), 3, -1)
        mixed = np.concatenate([joint_roots.swapaxes(1, 2) @ signals[:n], spread[len(joints) :]])
        mixed[joints] += spread[: len(joints)]
        return mixed


def independent_parts(robot: Robot, roots: Array) -> Parts:
    """Return the errors of inertial parameters by submodel; roots (n_links, 10, r)."""
    roots = np.asarray(roots, dtype=np.float64)
    n = len(robot.links)
    if roots.ndim != 3 or roots.shape[:2] != (n, 10):
        raise ShapeError('parameter_roots', (n, 10, 'r'), roots.shape)
    if not np.isfinite(roots).all():
        raise ModelError('parameter_roots hold NaN or infinity')
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
    Errors of inertial parameters in one forest.

    Generalised forces are linear in the parameters: Pinocchio's joint torque regressor has the
    factors, for links in the frames of the forest's joints.
    """

    def __init__(self, dynamics: Dynamics, parts: Parts) -> None:
        forest = dynamics.forest
        self._between = forest.top_rows.size + np.flatnonzero(forest.joint_rows < 0)
        self._rows = np.concatenate([forest.top_rows.ravel(), np.maximum(forest.joint_rows, 0)])
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
        return np.hstack([factors[:, columns] @ root for columns, root in self._parts])
