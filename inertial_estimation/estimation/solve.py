# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The arithmetic of one step, or of many at once: the same code with a leading axis.

Wrenches on the way are about the root link's origin in its axes, one row [force; torque] each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.contact_forces import Split, split_wrench
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.plan import LOST, Plan, SharedSubmodel
from inertial_estimation.estimation.transforms import (
    compose,
    cross_matrix,
    to_child,
    to_parent,
    wrench_transform,
)

Array = NDArray[np.float64]
Frames = slice | NDArray[np.intp]


def solve(
    plan: Plan,
    stamp_ns: int | NDArray[np.int64],
    tau: Array,
    poses: Array,
    jacobian: Array,
    ft_wrenches: Array,
    length_scale: float,
    rank_tolerance: float,
) -> WrenchEstimate:
    """
    Turn the results of `Dynamics.run` and the measured wrenches into an estimate.

    Parameters
    ----------
    plan : Plan
        The indices to follow.
    stamp_ns : int or ndarray, shape (...)
        Stamps [ns].
    tau : ndarray, shape (..., nv)
        Generalised forces of the forest.
    poses : ndarray, shape (..., n_supports, 4, 3)
        Row poses of the geometry.
    jacobian : ndarray, shape (..., 6, n_joints)
        Joint axes about the root link's origin.
    ft_wrenches : ndarray, shape (..., n_fts, 6)
        Measured wrenches in the sensor frames, as each sensor counts them [N, Nm].
    length_scale, rank_tolerance : float
        As in `contact_forces.split_wrench`.

    Returns
    -------
    WrenchEstimate

    """
    return _Step(plan, stamp_ns, tau, poses, jacobian, ft_wrenches).solve(
        length_scale, rank_tolerance
    )


class _Step:
    """The intermediate results of one step."""

    def __init__(
        self,
        plan: Plan,
        stamp_ns: int | NDArray[np.int64],
        tau: Array,
        poses: Array,
        jacobian: Array,
        ft_wrenches: Array,
    ) -> None:
        self.plan = plan
        self.stamp_ns = stamp_ns
        self.tau = tau
        self.jacobian = jacobian
        self.lead = tau.shape[:-1]
        self.n_tops = len(plan.dynamics.forest.tops)
        self.n_measured = self.n_tops + len(plan.ft_directions)
        self.n_terms = self.n_measured + len(plan.active)
        self.frames = compose(poses.take(plan.frame_support, axis=-3), plan.frame_pose)
        self.cross = cross_matrix(self.frames[..., 3, :])
        self.terms = np.zeros((*self.lead, 1 + 2 * self.n_terms, 6))
        local = np.empty((*self.lead, self.n_measured, 6))
        local[..., : self.n_tops, :] = tau.take(plan.dynamics.forest.top_rows, axis=-1)
        local[..., self.n_tops :, :] = ft_wrenches * plan.ft_directions
        self._set_terms(0, self.n_measured, self._to_root(slice(0, self.n_measured), local))

    def solve(self, length_scale: float, rank_tolerance: float) -> WrenchEstimate:
        """Find the external wrenches first, then what they and the sensors do to the joints."""
        plan, quality = self.plan, self.plan.quality
        totals = plan.balance.submodel_sums(self.terms)
        residuals = np.zeros((*self.lead, len(plan.ranks), 6))
        flags: tuple[NDArray[Any], ...] = (
            plan.ranks,
            *quality,
            plan.used_imus,
            plan.used_fts,
        )
        if self.lead or not plan.exact:
            flags = tuple(np.broadcast_to(a, (*self.lead, len(a))).copy() for a in flags)
        ranks, contact, torque, external, _, _, _ = flags
        if plan.exact:
            world = totals.take(plan.contact_rows, axis=-2)
            wrenches = self._from_root(slice(self.n_measured, self.n_terms), world)
        else:
            world, wrenches = self._known(totals)
            self._single(totals, world, wrenches)
            self._free(totals, residuals)
            for shared in plan.shared:
                split = self._shared(shared, totals, length_scale, rank_tolerance)
                wrenches[..., shared.contacts, :] = split.wrenches
                residuals[..., plan.residual_rows[shared.row], :] = split.residual
                ranks[..., plan.residual_rows[shared.row]] = split.rank
                _mark(shared, split.rank, plan, contact, torque, external)
                moved = self._to_root(self.n_measured + shared.contacts, split.wrenches)
                world[..., shared.contacts, :] = moved
        self._set_terms(self.n_measured, self.n_terms, world)
        torques, external_torques = self._torques()
        estimate = WrenchEstimate(
            self.stamp_ns, plan.contacts, wrenches, torques, external_torques, residuals, *flags
        )
        return estimate if plan.complete else _with_gaps(estimate, plan)

    def _to_root(self, frames: Frames, local: Array) -> Array:
        """Move wrenches, one row each, from their frames to the root link."""
        poses, cross = self.frames[..., frames, :, :], self.cross[..., frames, :, :]
        return to_parent(poses, local.reshape(*local.shape[:-1], 2, 3), cross).reshape(local.shape)

    def _from_root(self, frames: Frames, rows: Array) -> Array:
        """Move wrenches, one row each, from the root link to their frames."""
        poses, cross = self.frames[..., frames, :, :], self.cross[..., frames, :, :]
        return to_child(poses, rows.reshape(*rows.shape[:-1], 2, 3), cross).reshape(rows.shape)

    def _transforms(self, frames: Frames) -> Array:
        """Return the matrices that move wrenches from the frames to the root link."""
        return wrench_transform(self.frames[..., frames, :, :], self.cross[..., frames, :, :])

    def _set_terms(self, start: int, stop: int, values: Array) -> None:
        """Write terms and negated terms."""
        self.terms[..., 1 + start : 1 + stop, :] = values
        shift = 1 + self.n_terms
        np.negative(values, out=self.terms[..., shift + start : shift + stop, :])

    def _known(self, totals: Array) -> tuple[Array, Array]:
        """Take known wrenches off the sums; return the contacts' wrenches, zero where unknown."""
        plan = self.plan
        wrenches = np.zeros((*self.lead, len(plan.active), 6))
        world = np.zeros_like(wrenches)
        wrenches[..., plan.known, :] = plan.known_wrenches
        world[..., plan.known, :] = self._to_root(
            self.n_measured + plan.known, wrenches[..., plan.known, :]
        )
        for c in plan.known:
            totals[..., plan.contact_rows[c], :] -= world[..., c, :]
        return world, wrenches

    def _single(self, totals: Array, world: Array, wrenches: Array) -> None:
        """Give the whole sum to a full wrench that is alone in its submodel [T 4.21]."""
        plan = self.plan
        world[..., plan.single, :] = totals[..., plan.contact_rows[plan.single], :]
        wrenches[..., plan.single, :] = self._from_root(
            self.n_measured + plan.single, world[..., plan.single, :]
        )

    def _free(self, totals: Array, residuals: Array) -> None:
        """Give the sum of a submodel without unknowns to its residual."""
        plan = self.plan
        residuals[..., plan.residual_rows[plan.free], :] = self._from_root(
            self.n_terms + plan.free, totals[..., plan.free, :]
        )

    def _shared(
        self, shared: SharedSubmodel, totals: Array, length_scale: float, rank_tolerance: float
    ) -> Split:
        """Split the sum of a submodel, seen from its root link."""
        root = np.array([self.n_terms + shared.row])
        B_Xf_A = np.linalg.inv(self._transforms(root))
        total = self._from_root(root, totals[..., [shared.row], :])
        return split_wrench(
            total[..., 0, :],
            shared.bases,
            B_Xf_A @ self._transforms(self.n_measured + shared.contacts),
            B_Xf_A @ self._transforms(self.n_tops + shared.sensors),
            length_scale,
            rank_tolerance,
        )

    def _torques(self) -> tuple[Array, Array]:
        """Return joint torques in the local form [T 4.25] and external joint torques."""
        balance, forest = self.plan.balance, self.plan.dynamics.forest
        sums = balance.joint_sums(self.terms).take(balance.joint_group, axis=-2)
        projected = np.einsum('...ij,...kji->...kj', self.jacobian, sums)
        held = self.tau.take(forest.joint_rows, axis=-1)
        if forest.joints_between_trees:
            held[..., forest.joints_between_trees] = 0.0
        return projected[..., 0, :] + held, projected[..., 1, :]


def _mark(
    shared: SharedSubmodel,
    rank: NDArray[np.int64],
    plan: Plan,
    contact: NDArray[np.uint8],
    torque: NDArray[np.uint8],
    external: NDArray[np.uint8],
) -> None:
    """Mark what the sensors do not determine."""
    flag = np.where(rank < shared.unknowns, Quality.UNDETERMINED, 0).astype(np.uint8)[..., None]
    contact[..., plan.active[shared.contacts]] |= flag
    torque |= flag * shared.undetermined_torques
    external |= flag * shared.undetermined_external


def _with_gaps(estimate: WrenchEstimate, plan: Plan) -> WrenchEstimate:
    """Write NaN where nothing could be estimated, and give every contact its row."""
    wrenches = np.full((*estimate.wrenches.shape[:-2], len(plan.contacts), 6), np.nan)
    wrenches[..., plan.active, :] = estimate.wrenches
    wrenches[..., (plan.quality.contacts & LOST) != 0, :] = np.nan
    estimate.torques[..., (plan.quality.torques & LOST) != 0] = np.nan
    estimate.external_torques[..., (plan.quality.external & LOST) != 0] = np.nan
    estimate.residuals[..., (plan.quality.submodels & LOST) != 0, :] = np.nan
    absorbed = np.ones(len(plan.ranks), dtype=bool)
    absorbed[plan.residual_rows] = False
    estimate.residuals[..., absorbed, :] = np.nan
    return estimate._replace(wrenches=wrenches)
