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
import pinocchio as pin

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.contact_limits import NEARLY
from inertial_estimation.estimation.dynamics import Dynamics
from inertial_estimation.estimation.plan import Plan
from inertial_estimation.model.spatial import cross_matrix
from inertial_estimation.uncertainty.motion_noise import MotionDerivatives, ParameterNoise
from inertial_estimation.uncertainty.shares import Placement, Shares, Sharing


class Disturbances(NamedTuple):
    """
    Changes of the results by one standard deviation of each independent source [N, Nm].

    Rows: active contacts and residuals of submodels (six each), torques, external torques.
    """

    motion: Array
    """Of three sources a joint, then of each axis of an IMU or as few that disturb links alike."""
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
    """
    Derivatives of all results of one plan, each ``value = tau + h . load``.

    A load is a sum, with the factors of the balance, of net wrenches below tops, FT measurements,
    and wrenches of contacts that share one; the covector `h` is an axis of a joint or frame. There
    are loads of active contacts, submodels with a residual, torques and external torques.
    """

    def __init__(self, plan: Plan, rank_tolerance: float) -> None:
        dynamics, balance, frames = plan.dynamics, plan.balance, plan.frames
        self._dynamics, self._frames = dynamics, frames
        self._directions = plan.ft_directions
        self._motion = MotionDerivatives(dynamics)
        self.parameters: ParameterNoise | None = None
        """None: the inertial parameters are exact."""
        self._checked: Array | None = None
        n_measured, n_contacts, n_joints = frames.contacts, len(plan.active), len(balance.beyond)
        owners, sums = balance.contact_submodel, balance.submodel_factors[:, :n_measured]
        shared = np.setdiff1d(np.arange(n_contacts), plan.single)
        self.residual_rows = free = np.setdiff1d(np.arange(len(sums)), plan.single_rows)
        """Rows of the submodels that have a residual, among the balance's."""
        # Factors of the measured terms (tops, then FT sensors), and of the contacts that share.
        by_contact = np.zeros((n_contacts, n_measured + len(shared)))
        by_contact[shared, n_measured + np.arange(len(shared))] = 1.0
        others = -1.0 * np.equal.outer(np.arange(len(sums)), owners[shared])
        by_contact[plan.single] = np.hstack([sums, others])[plan.single_rows]
        pieces = [by_contact, np.hstack([sums, others])[free]]
        for kind in (0, 1):
            factors = balance.joint_factors[:, kind]
            own = np.pad(factors[:, :n_measured], ((0, 0), (0, len(shared))))
            pieces.append(own + factors[:, n_measured:] @ by_contact)
        factors = np.vstack(pieces)
        self._measured = factors[:, :n_measured].copy()
        self._shared = factors[:, n_measured:].copy()
        model = dynamics.geometry
        ancestors = np.zeros((model.njoints, model.njoints - 1))
        for k in range(1, model.njoints):
            ancestors[k] = ancestors[model.parents[k]]
            ancestors[k, model.joints[k].idx_v] = 1.0
        moved, joints = ancestors[frames.support], ancestors[1:]
        self._moved_terms = moved[:n_measured, :, None].copy()
        # Frames of the first loads: of the active contacts, then of root links.
        places = [frames.contacts + np.arange(n_contacts), frames.roots + free]
        self._places = np.concatenate(places).astype(np.intp)
        self._moves = np.vstack([moved[self._places], joints, joints])[:, :, None].copy()
        n_frames = len(self._places)
        sizes = np.repeat([6, 1], [n_frames, 2 * n_joints])
        self._torque_rows = slice(6 * n_frames, 6 * n_frames + n_joints)
        self._row_factors = np.repeat(self._measured, sizes, axis=0).T[:, None].copy()
        self._row_shared = np.repeat(self._shared, sizes, axis=0)
        self._shared_sums = sums[owners[shared]]
        self._sharing = None
        if len(shared):
            self._sharing = Sharing(plan, moved, shared, self._shared_sums, rank_tolerance)

    def evaluate(
        self,
        columns: Sequence[Array],
        readings: Array,
        joint_roots: Array,
        imu_roots: Array,
        ft_roots: Array,
        links: tuple[Indices, Array] | None = None,
    ) -> Disturbances:
        """
        Return the disturbances of the sample that was run last; readings (n_fts, 6).

        Roots of the covariances, lower triangular: joint_roots (n_joints, 3, 3); imu_roots
        (n_serving, 3, 3); ft_roots (n_fts, 6, 6), of the wrenches child on parent; links: joints
        and changes of `LinkMotionNoise` where a link does not have just one whole IMU.
        """
        dynamics = self._dynamics
        if self._checked is not dynamics.parameters:
            # Pinocchio's sums of inertias divide by masses.
            model, data = dynamics.forest.model, dynamics.forest.model.createData()
            pin.computeSubtreeMasses(model, data)
            for k in set(model.parents.tolist()) - {0}:
                if data.mass[k] < 0.0:
                    text = f"the links beyond '{model.names[k]}' weigh {data.mass[k]:.3g} kg"
                    raise ModelError(f'{text}: standard deviations need positive sums')
            self._checked = dynamics.parameters
        terms, placed = self._place(dynamics, readings)
        dterms = placed.turned(terms) * self._moved_terms
        shares = None
        if self._sharing is not None:
            shares = self._sharing.evaluate(placed, columns, terms, dterms)
        framed = placed.from_root[self._places].reshape(-1, 6)
        covectors = np.concatenate([framed, placed.axes, placed.axes])
        by_term = self._project(placed, covectors, shares, ft_roots)
        motion = self._motion.noise(dynamics, joint_roots, imu_roots, links)
        values = self._through(by_term, motion.reshape(-1, motion.shape[2]).T)
        values = values.reshape(len(values), len(motion), 3)
        shifts = self._shifts(placed, shares, terms, dterms)
        values[:, : shifts.shape[1], 0] += shifts * joint_roots[:, 0, 0]
        by_reading = by_term[self._frames.sensors :].transpose(2, 0, 1)
        parameters = np.zeros((len(values), 0))
        if self.parameters is not None:
            parameters = self._through(by_term, self.parameters.changes(dynamics))
        undetermined = np.zeros(len(covectors), dtype=bool)
        for units, shared, combinations in () if shares is None else shares.undetermined:
            held = (self._row_shared[:, shared] * (covectors @ units.T)) @ combinations
            size = (covectors**2).sum(axis=1) * (units**2).sum()
            undetermined |= (held**2).sum(axis=1) > NEARLY * size
        return Disturbances(values, by_reading, undetermined, parameters)

    def _place(self, dynamics: Dynamics, readings: Array) -> tuple[Array, Placement]:
        """Return the measured terms about the root link's origin, and the frames."""
        frames = self._frames
        poses = frames.transposed_pose @ dynamics.poses.take(frames.support, axis=0)
        rotations = poses[:, :3]
        lever = rotations @ cross_matrix(np.ascontiguousarray(poses[:, 3]))
        to_root = np.zeros((len(poses), 6, 6))
        to_root[:, :3, :3] = to_root[:, 3:, 3:] = rotations
        from_root = to_root.copy()
        to_root[:, :3, 3:] = from_root[:, 3:, :3] = lever
        local = np.concatenate(
            [dynamics.tau[dynamics.forest.top_rows], readings * self._directions]
        )
        terms = np.matmul(local[:, None], to_root[: len(local)])[:, 0]
        axes = dynamics.axes
        turn = np.zeros((6, len(axes), 6))
        turn[:3, :, :3] = turn[3:, :, 3:] = cross_matrix(axes[:, 3:]).swapaxes(0, 1)
        turn[:3, :, 3:] = cross_matrix(axes[:, :3]).swapaxes(0, 1)
        return terms, Placement(to_root, from_root, axes, turn)

    def _project(
        self, placed: Placement, covectors: Array, shares: Shares | None, ft_roots: Array
    ) -> Array:
        """Return the results of unit wrenches at each term's frame, (n_measured, 6, n_rows)."""
        columns = np.ascontiguousarray(covectors.T)
        by_term = self._row_factors * columns
        if shares is not None:
            for k, part in enumerate(shares.parts):
                passed = part.T @ (self._row_shared[:, k] * columns)
                by_term += self._shared_sums[k, :, None, None] * passed
        maps, sensors = placed.to_root[: len(by_term)], self._frames.sensors
        scaled = ft_roots.swapaxes(1, 2) @ maps[sensors:]
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
        n_joints, n_frames = len(placed.axes), len(self._places)
        total = self._measured @ terms
        change = self._measured @ dterms.reshape(len(terms), -1)
        if shares is not None:
            total += self._shared @ shares.wrenches
            change += self._shared @ shares.changes.reshape(len(shares.wrenches), -1)
        change = change.reshape(len(total), n_joints, 6)
        change -= self._moves * placed.turned(total)
        framed = placed.from_root[self._places] @ change[:n_frames].swapaxes(-1, -2)
        joints = change[n_frames:].reshape(2, n_joints, n_joints, 6) @ placed.axes[:, :, None]
        return np.concatenate(
            [framed.reshape(6 * n_frames, n_joints), joints.reshape(2 * n_joints, n_joints)]
        )
