# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The arithmetic of one step, or of many at once: the same code with a leading axis.

Wrenches on the way are about the root link's origin in its axes, one row [force; torque] each.
A wrench is split among several contacts by least squares [T section 4.5.3], weighed by the noise
of the submodel's own FT sensors: force noise 1, moment noise ``length_scale``, each at its own
sensor, or at the root link without any. Of all solutions the shortest is taken, moments divided by
the same length. Combinations of unknowns that show in the sensors by less than ``rank_tolerance``
are left at zero, as noise would be blown up by more than its inverse. Contacts that only push
then change the answer where it breaks their limits (`contact_limits`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.estimation.contact_limits import ContactLimits, Solution, split_wrench
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dynamics import compiled
from inertial_estimation.estimation.estimate import Flags, Quality, WrenchEstimate
from inertial_estimation.estimation.plan import LOST, Plan
from inertial_estimation.model.spatial import cross_matrix

UNDETERMINED, UNLIMITED = np.uint8(Quality.UNDETERMINED), np.uint8(Quality.UNLIMITED)


class Step:
    """Follows a plan, again and again, in the same workspace."""

    def __init__(self, plan: Plan, rank_tolerance: float, lead: tuple[int, ...] = ()) -> None:
        self.plan = plan
        self._rank_tolerance = rank_tolerance
        self._lead = lead
        frames, balance = plan.frames, plan.balance
        n_frames, n_measured = len(frames.support), frames.contacts
        n_terms = n_measured + len(plan.active)
        self._supports = np.empty((*lead, n_frames, 4, 3))
        self._frames = np.empty((*lead, n_frames, 4, 3))
        self._cross = np.empty((*lead, n_frames, 9))
        # With the matrices X and Y of a frame, root_f = local_f @ X and local_f = Y @ root_f:
        # X = [R, RK; 0, R], Y = [R, 0; RK, R], with R the row rotation and f @ K = p x f.
        # For an exact answer, X of what is measured and Y of the contacts are enough; the compiled
        # step needs them for contacts that share a wrench or know theirs.
        is_compiled = compiled is not None and 0 not in lead
        stop, start = (n_measured, n_measured) if plan.exact else (n_frames, 0)
        if is_compiled and (plan.exact or not (plan.splits or len(plan.known))):
            stop, start = 0, n_frames
        self._X = np.zeros((*lead, stop, 6, 6))
        self._Y = np.zeros((*lead, n_frames - start, 6, 6))
        R, K = self._frames[..., :3, :], self._cross.reshape(*lead, n_frames, 3, 3)
        self._maps = [
            (np.einsum('...iaib->...iab', maps.reshape(*maps.shape[:-2], 2, 3, 2, 3)),
             R[..., rows, None, :, :], levers, R[..., rows, :, :], K[..., rows, :, :])
            for maps, levers, rows in (
                (self._X, self._X[..., :3, 3:], slice(stop)),
                (self._Y, self._Y[..., 3:, :3], slice(start, n_frames)),
            )
            if maps.size
        ]  # fmt: skip
        """Blocks R and RK of both, and what goes there."""
        self._from_measured = self._X[..., :n_measured, :, :]
        self._at_contacts = self._Y[..., n_measured - start : n_terms - start, :, :]
        self._local = np.empty((*lead, n_measured, 6))
        self._tops = self._local[..., : frames.sensors, :]
        self._readings = self._local[..., frames.sensors :, :]
        self.terms = np.zeros((*lead, n_terms, 6))
        """Wrenches of tops, FT sensors and contacts about the root link, after `solve`."""
        self._measured = self.terms[..., :n_measured, :]
        self._external = self.terms[..., n_measured:, :]
        self._totals = balance.submodel_factors[:, :n_measured].copy()
        self._exact = self._totals[balance.contact_submodel] if plan.exact else None
        self._factors = balance.joint_factors.transpose(1, 2, 0).copy()
        self._bound = None
        if is_compiled:
            forest = plan.dynamics.forest
            arrays = (
                frames.support, frames.transposed_pose, forest.top_rows, plan.ft_directions,
                self._totals[:0] if self._exact is None else self._exact,
                balance.joint_factors, forest.joint_rows, plan.active, self._frames, self.terms,
            )  # fmt: skip
            self._bound = compiled.bind(*map(np.ascontiguousarray, arrays))
            # What is left over is expressed at the root links as wrenches at contacts are.
            at_frames, none = np.zeros((*lead, n_frames, 6)), np.zeros(0)
            self._left, self._no_torques = at_frames[..., frames.roots :, :], (none, none)
            arrays = (
                *arrays[:6], forest.joint_rows[:0], plan.residual_rows, self._frames, at_frames,
            )  # fmt: skip
            self._bound_residuals = compiled.bind(*map(np.ascontiguousarray, arrays))
        gaps = [np.asarray(flags & LOST != 0) for flags in plan.quality]
        gaps[3][np.setdiff1d(np.arange(len(plan.ranks)), plan.residual_rows)] = True
        gaps[0], gaps[3] = (np.repeat(gaps[k][:, None], 6, axis=1) for k in (0, 3))
        self._blank = [np.where(gap, np.nan, np.zeros((*lead, *gap.shape))) for gap in gaps]
        """To wrenches, torques, external torques, residuals: NaN without an estimate, else 0."""
        self._blank[3].flags.writeable = False
        self.contacts = plan.contacts
        """Contacts of the step, where they are then."""
        self.columns = [split.columns.copy() for split in plan.splits]
        """Their unknowns for each split of the plan, as `Split.columns`."""
        # For each split and submodel: contacts, their first unknowns, the torques that hold them.
        held = np.moveaxis(balance.held, 1, 0)
        self._members = [
            [(plan.active[m], n, held[..., m]) for m, n in zip(split.members, split.starts)]
            for split in plan.splits
        ]
        self._limits = [ContactLimits(split.limits) for split in plan.splits]
        flags = (plan.ranks, *plan.quality, plan.no_limits, plan.used_imus, plan.used_fts)
        self._flags: tuple[Any, ...] = tuple(np.broadcast_to(a, (*lead, len(a))) for a in flags)

    def place(self, contacts: tuple[Contact, ...]) -> None:
        """Move the contacts of the plan to other points of their frames."""
        if contacts is self.contacts:
            return
        self.contacts = contacts
        for split, columns, own in zip(self.plan.splits, self.columns, self._members):
            for k, (members, starts, _) in enumerate(own):
                for c, start in zip(members.tolist(), starts.tolist()):
                    contact = contacts[c]
                    if contact.kind.has_point:
                        rows = slice(start, start + contact.unknowns)
                        columns[k, rows] = split.scales[k, rows] * contact.basis().T

    def solve(
        self,
        stamp_ns: int | NDArray[np.int64],
        tau: Array,
        poses: Array,
        axes: Array,
        ft_wrenches: Array,
    ) -> WrenchEstimate:
        """
        Turn the results of `Dynamics.run` and the measured wrenches into an estimate.

        stamp_ns (...) [ns]; tau (..., nv); poses (..., n_supports, 4, 3); axes (..., n_joints,
        6); ft_wrenches (..., n_fts, 6) [N, Nm].
        """
        plan, flags = self.plan, self._flags
        self._measure(tau, poses, ft_wrenches)
        residuals = self._blank[3]
        if self._exact is None:
            residuals = residuals.copy()
            totals = np.matmul(self._totals, self._measured)
            flags = self._find_external(totals)
            left = totals - np.matmul(plan.carried, self._external)
            if self._bound is None:
                roots = self._Y[..., plan.frames.roots :, :, :]
                residuals[..., plan.residual_rows, :] += _from_root(roots, left)
            else:
                self._left[...] = left
                compiled.project(self._bound_residuals, tau, axes, residuals, *self._no_torques)
        results = self._project(tau, axes)
        if len(plan.known):
            results[0][..., plan.active[plan.known], :] = plan.known_wrenches
        return WrenchEstimate._make((stamp_ns, self.contacts, *results, residuals, *flags))

    def _measure(self, tau: Array, poses: Array, ft_wrenches: Array) -> None:
        """Move what is measured to the root link: net wrenches below the tops, FT readings."""
        plan, frames = self.plan, self.plan.frames
        if self._bound is not None:
            compiled.measure(self._bound, tau, poses, ft_wrenches)
            if self._maps:
                self._set_maps()
            return
        poses.take(frames.support, axis=-3, out=self._supports, mode='clip')
        np.matmul(frames.transposed_pose, self._supports, out=self._frames)
        self._set_maps()
        tau.take(plan.dynamics.forest.top_rows, axis=-1, out=self._tops, mode='clip')
        np.multiply(ft_wrenches, plan.ft_directions, out=self._readings)
        _to_root(self._from_measured, self._local, self._measured)
        if self._exact is not None:
            np.matmul(self._exact, self._measured, out=self._external)

    def _set_maps(self) -> None:
        """Set X and Y from the frames."""
        cross_matrix(self._frames[..., 3, :], out=self._cross)
        for diagonals, both, levers, R, K in self._maps:
            diagonals[...] = both
            np.matmul(R, K, out=levers)

    def _project(self, tau: Array, axes: Array) -> tuple[Array, Array, Array]:
        """Return wrenches at contacts, torques and external ones, local form [T 4.24, 4.25]."""
        forest = self.plan.dynamics.forest
        wrenches, torques, external, _ = self._blank
        wrenches, torques, external = wrenches.copy(), torques.copy(), external.copy()
        if self._bound is not None:
            compiled.project(self._bound, tau, axes, wrenches, torques, external)
            return wrenches, torques, external
        wrenches[..., self.plan.active, :] += _from_root(self._at_contacts, self._external)
        loads = self.terms @ axes.swapaxes(-1, -2)
        projected = np.einsum('ktj,...tj->...kj', self._factors, loads)
        held = tau.take(forest.joint_rows, axis=-1)
        if forest.joints_between_trees:
            held[..., forest.joints_between_trees] = 0.0
        torques += held + projected[..., 0, :]
        external += projected[..., 1, :]
        return wrenches, torques, external

    def _find_external(self, totals: Array) -> tuple[Any, ...]:
        """Share the sums out among the contacts; return the flags with what was found."""
        plan, external = self.plan, self._external
        external[...] = 0.0
        if len(plan.known):
            maps = self._X[..., plan.frames.contacts + plan.known, :, :]
            external[..., plan.known, :] = _to_root(maps, plan.known_wrenches)
            totals = totals - np.matmul(plan.carried, external)
        external[..., plan.single, :] = totals[..., plan.single_rows, :]
        if not plan.splits:
            return self._flags
        flags = (flag.copy() for flag in self._flags[:6])
        ranks, contact, torque, load, submodel, limits = flags
        for k, (split, columns) in enumerate(zip(plan.splits, self.columns)):
            solution = self._split(k, columns, totals, contact, limits)
            rows = plan.residual_rows[split.rows]
            ranks[..., rows] = solution.rank
            submodel[..., rows] |= solution.left_out * UNDETERMINED
            if not solution.determined.all():
                self._mark(k, solution, contact, (torque, load))
        return ranks, contact, torque, load, submodel, limits, *self._flags[6:]

    def _split(
        self, number: int, local: Array, totals: Array, contact: Flags, limits: Flags
    ) -> Solution:
        """Share the sums of some submodels out among their contacts, within their limits."""
        split = self.plan.splits[number]
        n, last = len(split.rows), 1 + split.unknowns
        columns = _to_root(self._X[..., split.frames, :, :], local)
        rows = np.concatenate([totals[..., split.rows, None, :], columns], axis=-2)
        seen = _from_root(self._Y[..., split.reference, None, :, :], rows)
        noise = seen[..., last:, :] if split.noise is None else split.noise
        solution = split_wrench(seen[..., 0, :], seen[..., 1:last, :], noise, self._rank_tolerance)
        for place in self._limits[number].broken(solution.unknowns):
            self._keep_limits(number, place, solution, contact, limits)
        parts = solution.unknowns[..., None] * columns[..., : split.unknowns, :]
        parts = parts.reshape(*self._lead, n * split.unknowns, 6)
        self._external += np.matmul(split.owner, parts)
        return solution

    def _keep_limits(
        self, number: int, at: tuple[int, ...], solution: Solution, contact: Flags, limits: Flags
    ) -> None:
        """Replace the unknowns of an instant and submodel, and mark the contacts that are held."""
        split, active, instant, k = self.plan.splits[number], self.plan.active, at[:-1], at[-1]
        found = self._limits[number].keep(
            k, solution.unknowns[at], solution.axes[at], solution.shown[at]
        )
        if found is None:
            contact[instant][active[split.members[k]]] |= UNLIMITED
            return
        solution.unknowns[at], held = found
        kinds = split.limit_flags[k, held]
        np.bitwise_or.at(limits[instant], active[split.limited[k, held]], kinds)

    def _mark(
        self, number: int, solution: Solution, contact: Flags, torques: tuple[Flags, Flags]
    ) -> None:
        """Mark contacts with an undetermined unknown, torques with some of these but not all."""
        undetermined = ~solution.determined
        for k, (contacts, starts, held) in enumerate(self._members[number]):
            lost = np.logical_or.reduceat(undetermined[..., k, :], starts, axis=-1)
            contact[..., contacts] |= lost * UNDETERMINED
            known = ~solution.left_out[..., k, None]
            for flags, holds in zip(torques, held):
                some = (lost[..., None, :] & holds).any(axis=-1)
                every = (holds | ~lost[..., None, :]).all(axis=-1) & known
                flags |= (some & ~every) * UNDETERMINED


def _to_root(X: Array, local: Array, out: Array | None = None) -> Array:
    """Move wrenches (..., 6) from their frames to the root link."""
    rows = None if out is None else out[..., None, :]
    return np.matmul(local[..., None, :], X, out=rows)[..., 0, :]


def _from_root(Y: Array, wrenches: Array) -> Array:
    """Move wrenches (..., 6) from the root link to their frames."""
    return np.asarray(np.matmul(Y, wrenches[..., None])[..., 0])
