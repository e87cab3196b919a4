# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
First-order effects of every source of noise on every result.

Forces of the readings go through linear maps. Noise of the motion changes the net wrenches, and so
do errors of the inertial parameters (`motion_noise`). Noise of positions moves, besides, the
frames in which wrenches are measured, expressed and summed. A joint with axis J (six numbers about
the root link's origin) moves a wrench that is attached beyond it by ``J x* wrench`` and a covector
by ``J x covector``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.estimation.forest import Dynamics
from inertial_estimation.estimation.plan import Plan
from inertial_estimation.estimation.step import NEARLY
from inertial_estimation.model.spatial import compose, cross_matrix
from inertial_estimation.uncertainty.motion_noise import LinkChanges, MotionDerivatives
from inertial_estimation.uncertainty.shares import Placement, Shares, Sharing, find_loads


class Roots(NamedTuple):
    """Noise of the sources: roots of covariances."""

    joints: Array
    """Lower triangular, of position, velocity and acceleration, shape (n_joints, 3, 3)."""
    imus: Array
    """Lower triangular, of the IMUs that serve, shape (n_serving, 3, 3)."""
    fts: Array
    """Of the wrenches child on parent by the readings' noise, shape (n_fts, 6, 6)."""
    link_changes: LinkChanges | None = None
    """Where a link does not have just one whole IMU."""
    parameter_changes: Array | None = None
    """From `ParameterNoise.changes`; None: the inertial parameters are exact."""


class Disturbances(NamedTuple):
    """
    Changes of the results by one standard deviation of each source; the sources are independent.

    Rows are the wrenches of the active contacts (six each), the residuals of the submodels of the
    balance that have one (six each), the joint torques, and the external joint torques.
    """

    motion: Array
    """
    Of three sources for each joint, then for each axis of each IMU that serves, shape
    (n_rows, n_joints + 3 n_serving, 3) [N, Nm]. Where a link does not have just one whole IMU:
    of each IMU of the robot, or of as few sources as disturb the links alike.
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
        variances = sum(
            np.einsum('ij,ij->i', part.reshape(n, -1), part.reshape(n, -1))
            for part in (self.motion, self.fts, self.parameters)
        )
        deviations: Array = np.sqrt(variances)
        deviations[self.undetermined] = np.inf
        return deviations


class Sensitivities:
    """Derivatives of all results of one plan."""

    def __init__(self, plan: Plan, rank_tolerance: float) -> None:
        self.loads = loads = find_loads(plan)
        self._frames = plan.frames
        shares = len(loads.shared_contacts) > 0
        self._sharing = Sharing(plan, loads, rank_tolerance) if shares else None
        self._directions = plan.ft_directions
        self._top_rows = plan.dynamics.forest.top_rows
        self._motion = MotionDerivatives(plan.dynamics)
        n_frames, n_joints = len(loads.frames), loads.moved.shape[1]
        sizes = np.repeat([6, 1], [n_frames, 2 * n_joints])
        self._torque_rows = slice(6 * n_frames, 6 * n_frames + n_joints)
        self._row_factors = np.repeat(loads.measured, sizes, axis=0).T[:, None].copy()
        self._row_shared = np.repeat(loads.shared, sizes, axis=0)
        self._moved_terms = loads.moved[: plan.frames.contacts, :, None].copy()
        self._moves = loads.moves[:, :, None].copy()

    def evaluate(
        self, dynamics: Dynamics, columns: Sequence[Array], readings: Array, roots: Roots
    ) -> Disturbances:
        """Return the disturbances of the sample that was run last; readings (n_fts, 6)."""
        terms, placed = self._place(dynamics, readings)
        dterms = placed.turned(terms) * self._moved_terms
        shares = None
        if self._sharing is not None:
            shares = self._sharing.evaluate(placed, columns, terms, dterms)
        framed = placed.from_root[self.loads.frames].reshape(-1, 6)
        covectors = np.concatenate([framed, placed.axes, placed.axes])
        by_term = self._project(placed, covectors, shares, roots)
        motion = self._motion.noise(dynamics, roots.joints, roots.imus, roots.link_changes)
        values = self._through(by_term, motion.reshape(-1, motion.shape[2]).T)
        values = values.reshape(len(values), len(motion), 3)
        shifts = self._shifts(placed, shares, terms, dterms)
        values[:, : shifts.shape[1], 0] += shifts * roots.joints[:, 0, 0]
        by_reading = by_term[self._frames.sensors :].transpose(2, 0, 1)
        parameters = np.zeros((len(values), 0))
        if roots.parameter_changes is not None:
            parameters = self._through(by_term, roots.parameter_changes)
        undetermined = np.zeros(len(covectors), dtype=bool)
        for units, shared, combinations in () if shares is None else shares.undetermined:
            held = (self._row_shared[:, shared] * (covectors @ units.T)) @ combinations
            size = (covectors**2).sum(axis=1) * (units**2).sum()
            undetermined |= (held**2).sum(axis=1) > NEARLY * size
        return Disturbances(values, by_reading, undetermined, parameters)

    def _place(self, dynamics: Dynamics, readings: Array) -> tuple[Array, Placement]:
        """Return the measured terms about the root link's origin, and the frames."""
        frames = self._frames
        poses = compose(dynamics.poses.take(frames.support, axis=0), frames.pose)
        rotations = poses[:, :3]
        lever = rotations @ cross_matrix(np.ascontiguousarray(poses[:, 3]))
        to_root = np.zeros((len(poses), 6, 6))
        to_root[:, :3, :3] = to_root[:, 3:, 3:] = rotations
        from_root = to_root.copy()
        to_root[:, :3, 3:] = from_root[:, 3:, :3] = lever
        local = np.concatenate([dynamics.tau[self._top_rows], readings * self._directions])
        terms = np.matmul(local[:, None], to_root[: len(local)])[:, 0]
        axes = dynamics.jacobian.T
        turn = np.zeros((6, len(axes), 6))
        turn[:3, :, :3] = turn[3:, :, 3:] = cross_matrix(axes[:, 3:]).swapaxes(0, 1)
        turn[:3, :, 3:] = cross_matrix(axes[:, :3]).swapaxes(0, 1)
        return terms, Placement(to_root, from_root, axes, turn)

    def _project(
        self, placed: Placement, covectors: Array, shares: Shares | None, roots: Roots
    ) -> Array:
        """Return the results of unit wrenches at each term's frame, (n_measured, 6, n_rows)."""
        columns = np.ascontiguousarray(covectors.T)
        by_term = self._row_factors * columns
        if shares is not None:
            for k, part in enumerate(shares.parts):
                passed = part.T @ (self._row_shared[:, k] * columns)
                by_term += self.loads.shared_sums[k, :, None, None] * passed
        maps, sensors = placed.to_root[: len(by_term)], self._frames.sensors
        scaled = roots.fts.swapaxes(1, 2) @ maps[sensors:]
        return np.asarray(np.matmul(np.concatenate([maps[:sensors], scaled]), by_term))

    def _through(self, by_term: Array, changes: Array) -> Array:
        """Return the changes of results with generalised forces, (n_rows, n_changes)."""
        n_tops, n_rows = self._frames.sensors, by_term.shape[2]
        by_top = by_term[:n_tops].reshape(6 * n_tops, n_rows).T
        values: Array = by_top @ changes[: 6 * n_tops]
        values[self._torque_rows] += changes[6 * n_tops :]
        return values

    def _shifts(
        self, placed: Placement, shares: Shares | None, terms: Array, dterms: Array
    ) -> Array:
        """Return the derivatives by positions that move the frames, shape (n_rows, n_joints)."""
        loads, n_joints = self.loads, len(placed.axes)
        total = loads.measured @ terms
        change = loads.measured @ dterms.reshape(len(terms), -1)
        if shares is not None:
            total += loads.shared @ shares.wrenches
            change += loads.shared @ shares.changes.reshape(len(shares.wrenches), -1)
        change = change.reshape(len(total), n_joints, 6)
        change -= self._moves * placed.turned(total)
        n_frames = len(loads.frames)
        framed = placed.from_root[loads.frames] @ change[:n_frames].swapaxes(-1, -2)
        joints = change[n_frames:].reshape(2, n_joints, n_joints, 6) @ placed.axes[:, :, None]
        return np.concatenate(
            [framed.reshape(6 * n_frames, n_joints), joints.reshape(2 * n_joints, n_joints)]
        )
