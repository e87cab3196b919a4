# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
First-order effects of every source of noise on every result.

A step is linear in the generalised forces of the forest and in the FT readings: its answers to
unit wrenches are its derivatives. Positions move, besides, the frames in which wrenches are
measured, expressed and summed: these derivatives are differences of steps at positions nearby.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.forest import pose_view
from inertial_estimation.estimation.plan import Plan
from inertial_estimation.estimation.step import NEARLY, Step, split_wrench
from inertial_estimation.model.spatial import apply, compose, wrench_transform
from inertial_estimation.uncertainty.link_motion_noise import LinkChanges
from inertial_estimation.uncertainty.motion_noise import MotionDerivatives

POSITION_STEP = 1e-7
"""Of a difference: half of it and round-off over it are its relative errors [rad or m]."""


class Roots(NamedTuple):
    """Noise of the sources: roots of covariances."""

    joints: Array
    """Lower triangular, of position, velocity and acceleration, shape (n_joints, 3, 3)."""
    imus: Array
    """Lower triangular, of the IMUs that serve, shape (n_serving, 3, 3)."""
    fts: Array
    """Of the FT wrenches, shape (n_fts, 6, 6)."""
    link_changes: LinkChanges | None = None
    """Where a link does not have just one whole IMU."""
    parameter_changes: Array | None = None
    """From `ParameterNoise.changes`; None: the inertial parameters are exact."""


class Disturbances(NamedTuple):
    """
    Changes of the results by one standard deviation of each source; the sources are independent.

    Rows are the external wrenches of all contacts and the residuals of all submodels (six each),
    the joint torques, and the external joint torques; NaN where there is no estimate.
    """

    motion: Array
    """
    Of three sources for each joint, then for each axis of each IMU that serves, shape
    (n_rows, n_joints + 3 n_serving, 3) [N, Nm]. Where a link does not have just one whole IMU:
    of each IMU of the robot.
    """
    fts: Array
    """Of six for each FT sensor, shape (n_rows, n_fts, 6) [N, Nm]."""
    undetermined: Mask
    """Rows that hold something the sensors do not determine, shape (n_rows,)."""
    parameters: Array
    """Of the errors of the inertial parameters, shape (n_rows, n_errors) [N, Nm]."""

    @property
    def deviations(self) -> Array:
        """Standard deviation of each row, shape (n_rows,) [N, Nm]; infinite if undetermined."""
        n = len(self.undetermined)
        parts = (self.motion, self.fts, self.parameters)
        deviations: Array = np.linalg.norm(
            np.hstack([part.reshape(n, -1) for part in parts]), axis=1
        )
        deviations[self.undetermined & ~np.isnan(deviations)] = np.inf
        return deviations


class Sensitivities:
    """Derivatives of all results of one plan."""

    def __init__(self, plan: Plan, rank_tolerance: float) -> None:
        self._plan, self._rank_tolerance = plan, rank_tolerance
        dynamics, n_fts = plan.dynamics, len(plan.ft_directions)
        n_joints = dynamics.jacobian.shape[1]
        self._motion = MotionDerivatives(dynamics)
        model = dynamics.geometry.model
        self._model, self._data = model, model.createData()
        self._poses = pose_view(self._data)
        # Steps of no wrench, of a unit of each top and FT sensor, of the sample, and beside it.
        top_rows = dynamics.forest.top_rows.ravel()
        self._n_tops, n_units = len(top_rows), len(top_rows) + 6 * n_fts
        self._units = slice(1, 1 + n_units)
        self._beside = slice(1 + n_units, None)
        n = 2 + n_units + n_joints
        self._step = Step(plan, rank_tolerance, (n,))
        self._tau, self._fts = np.zeros((n, len(dynamics.tau))), np.zeros((n, n_fts, 6))
        self._tau[1 + np.arange(self._n_tops), top_rows] = 1.0
        self._fts.reshape(n, -1)[1 + self._n_tops : 1 + n_units] = np.eye(6 * n_fts)
        self._at = np.empty((n, *dynamics.poses.shape))
        self._jacobians = np.empty((n, *dynamics.jacobian.shape))
        self._shifts = POSITION_STEP * np.eye(n_joints)

    def evaluate(
        self, step: Step, positions: Array, readings: Array, roots: Roots
    ) -> Disturbances:
        """Return the disturbances of the sample that was run last; FT wrenches (n_fts, 6)."""
        dynamics, n_joints = step.plan.dynamics, len(positions)
        self._at[:], self._jacobians[:] = dynamics.poses, dynamics.jacobian
        self._tau[self._beside], self._fts[self._beside] = dynamics.tau, readings
        for k, shift in enumerate(self._shifts, start=self._beside.start + 1):
            pin.computeJointJacobians(self._model, self._data, positions + shift)
            self._at[k], self._jacobians[k] = self._poses, self._data.J.reshape(6, n_joints)
        self._step.place(step.contacts)
        estimates = self._step.solve(0, self._tau, self._at, self._jacobians, self._fts)
        found = _rows(estimates)
        by_unit = (found[self._units] - found[0]).T
        beside = found[self._beside]
        motion = self._motion.noise(dynamics, roots.joints, roots.imus, roots.link_changes)
        values = self._through(by_unit, motion.reshape(-1, motion.shape[2]).T)
        values = values.reshape(len(values), len(motion), 3)
        by_position = (beside[1:] - beside[0]).T / POSITION_STEP
        values[:, :n_joints, 0] += by_position * roots.joints[:, 0, 0]
        by_reading = by_unit[:, self._n_tops :].reshape(len(values), -1, 1, 6) @ roots.fts
        parameters = np.zeros((len(values), 0))
        if roots.parameter_changes is not None:
            parameters = self._through(by_unit, roots.parameter_changes)
        undetermined = self._undetermined(step, estimates.ranks[0], len(values))
        return Disturbances(values, by_reading[:, :, 0], undetermined, parameters)

    def _through(self, by_unit: Array, changes: Array) -> Array:
        """Return the changes of results with generalised forces, (n_rows, n_changes)."""
        values: Array = by_unit[:, : self._n_tops] @ changes[: self._n_tops]
        own = changes[self._n_tops :]
        values[len(values) - 2 * len(own) : len(values) - len(own)] += own
        return values

    def _undetermined(self, step: Step, ranks: Array, n_rows: int) -> Mask:
        """Return the rows that hold combinations of unknowns that the sensors do not determine."""
        plan, found = self._plan, np.zeros(n_rows, dtype=bool)
        if all((ranks[plan.residual_rows[s.rows]] == s.unknowns).all() for s in plan.splits):
            return found
        frames, n_active, axes = plan.frames, len(plan.active), plan.dynamics.jacobian.T
        row_poses = compose(plan.dynamics.poses[frames.support], frames.pose)
        poses = np.tile(np.eye(4), (len(row_poses), 1, 1))
        poses[:, :3] = row_poses.swapaxes(1, 2)
        to_root = wrench_transform(poses)
        # Every wrench and torque is a covector times the sum of contacts with some factors.
        of_contacts = np.linalg.inv(to_root[frames.contacts : frames.contacts + n_active])
        covectors = np.concatenate([of_contacts.reshape(-1, 6), axes, axes])
        of_torques = plan.balance.joint_factors[:, :, frames.contacts :].swapaxes(0, 1)
        factors = np.concatenate([np.repeat(np.eye(n_active), 6, axis=0), *of_torques])
        rows = np.append(
            6 * plan.active[:, None] + np.arange(6), np.arange(n_rows - 2 * len(axes), n_rows)
        )
        for split, local in zip(plan.splits, step.columns, strict=True):
            u = split.unknowns
            active = split.owner.argmax(axis=0).reshape(-1, u)
            for k, reference in enumerate(split.reference):
                columns = apply(to_root[split.frames[k]], local[k])
                seen = columns @ np.linalg.inv(to_root[reference]).T
                noise = seen[u:] if split.noise is None else split.noise
                # The wrench of a unit of each unknown gives what is determined of that unknown.
                kept = split_wrench(seen[:u], seen[:u], noise, self._rank_tolerance).unknowns
                held = factors[:, active[k]] * (covectors @ columns[:u].T) @ (np.eye(u) - kept)
                sizes = (covectors**2).sum(axis=1) * (columns[:u] ** 2).sum()
                found[rows] |= (held**2).sum(axis=1) > NEARLY * sizes
        return found


def _rows(estimates: WrenchEstimate) -> Array:
    """Return all results of each estimate as one row."""
    kinds = estimates.wrenches, estimates.residuals, estimates.torques, estimates.external_torques
    return np.concatenate([kind.reshape(len(kind), -1) for kind in kinds], axis=1)
