# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What errors of the inertial parameters do to the generalised forces of the forest."""

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
from inertial_estimation.uncertainty.products import product

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
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
