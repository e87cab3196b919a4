# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Derivatives of contacts that share the wrench of a submodel.

Shared wrenches are differentiated by the sum that they share and by the pose. The unknowns are
``u = pinv(A) b`` with A and b whitened by the noise of the submodel's sensors, and both move with
the joints. The derivative of the pseudo-inverse is Golub and Pereyra's for a constant rank, in the
axes of the singular vectors; small singular values count as zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.estimation.contact_limits import (
    FREEDOM,
    ContactLimits,
    holding,
    split_wrench,
)
from inertial_estimation.estimation.plan import Plan, Split


class Problem(NamedTuple):
    """Least squares of n submodels of a size; wrenches are rows, ``d`` is by the positions."""

    totals: Array
    """The sums to split, shape (n, 6)."""
    dtotals: Array
    """Shape (n, n_joints, 6)."""
    columns: Array
    """Wrench of a unit of each unknown, shape (n, n_unknowns, 6)."""
    dcolumns: Array
    """Shape (n, n_unknowns, n_joints, 6)."""
    noise: Array
    """Disturbances of the sums that weigh them, shape (n, n_noise, 6)."""
    dnoise: Array | None
    """Shape (n, n_noise, n_joints, 6); None if they rest."""


def solve(
    problem: Problem, rank_tolerance: float, limits: ContactLimits
) -> tuple[Array, Array, Array, tuple[Array, ...]]:
    """
    Solve as `contact_limits.split_wrench` does, within the limits, and differentiate.

    Returns unknowns (n, n_unknowns); by positions (n, n_unknowns, n_joints); by the totals, (n,
    n_unknowns, 6); undetermined combinations of each submodel (n_unknowns, n_combinations).
    """
    totals, columns, noise = problem.totals, problem.columns, problem.noise
    # Rows times `whiten` have unit noise: whiten whiten' is the inverse of noise' noise.
    whiten = np.linalg.inv(np.linalg.qr(noise, mode='r'))
    white = columns @ whiten
    rank = split_wrench((totals[:, None] @ whiten)[:, 0], white, np.ones(6), rank_tolerance).rank
    u, s, vt = np.linalg.svd(white)
    turned = whiten @ vt.swapaxes(1, 2)
    rows = np.concatenate([u.swapaxes(1, 2) @ columns, totals[:, None]], axis=1)
    drows = _changes(problem, u, rows, whiten, turned)
    total = (totals[:, None] @ turned)[:, 0]
    n = s.shape[1]
    kept = np.arange(n) < rank[:, None]
    s_inverse = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)
    bent = _bent(s_inverse, drows[:, :-1], total)
    bent[:, :n] += s_inverse[..., None] * drows[:, -1, :, :n].swapaxes(1, 2)
    u_inverse = u[..., :n] * s_inverse[:, None]
    unknowns = (u_inverse @ total[:, :n, None])[..., 0]
    bent = u @ bent
    for (k,) in limits.broken(unknowns):
        if (found := limits.keep(k, unknowns[k], u[k, :, :n], s[k])) is not None:
            x, held = found
            free, dmoved = _held(limits.rows[k, held], u[k], s[k], drows[k, :-1], x - unknowns[k])
            unknowns[k], bent[k] = x, free @ (bent[k] - dmoved)
            u_inverse[k] = free @ u_inverse[k]
    inverse = u_inverse @ turned[..., :n].swapaxes(1, 2)
    return unknowns, bent, inverse, tuple(own[:, r:] for own, r in zip(u, rank))


def _held(rows: Array, u: Array, s: Array, change: Array, moved: Array) -> tuple[Array, Array]:
    """
    Differentiate ``H (x - x0) = G' multipliers, G x = 0`` with the limits G that hold.

    rows (n_held, n_unknowns); u, s: singular vectors and values; change (n_unknowns, n_joints, 6)
    of the whitened rows, between the singular vectors; moved = x - x0. Returns K (n_unknowns,
    n_unknowns) and d (n_unknowns, n_joints) in ``dx = K (dx0 - d)``.
    """
    square = np.zeros(len(u))
    square[: len(s)] = s**2
    h_inverse = (u / (square + FREEDOM**2)) @ u.T
    n, at = len(s), u.T @ moved
    # dH = dA'A + A'dA.
    dh = change[..., :n] @ (s * at[:n])
    dh[:n] += s[:, None] * np.einsum('njk,n->kj', change, at)[:n]
    return holding(rows, h_inverse), h_inverse @ u @ dh


def _changes(problem: Problem, u: Array, rows: Array, whiten: Array, turned: Array) -> Array:
    """Return changes of columns and totals in singular axes, (n, n_unknowns + 1, n_joints, 6)."""
    n, n_rows, _ = rows.shape
    n_joints = problem.dtotals.shape[1]
    dcolumns = u.swapaxes(1, 2) @ problem.dcolumns.reshape(n, n_rows - 1, n_joints * 6)
    drows = np.concatenate([dcolumns, problem.dtotals.reshape(n, 1, n_joints * 6)], axis=1)
    changes: Array = drows.reshape(n, n_rows * n_joints, 6) @ turned
    changes = changes.reshape(n, n_rows, n_joints, 6)
    if problem.dnoise is not None:
        noise, dnoise = problem.noise, problem.dnoise
        half = -0.5 * rows @ whiten @ whiten.swapaxes(1, 2)
        m = noise.shape[1]
        flat = dnoise.reshape(n, m * n_joints, 6)
        moved = (flat @ turned).reshape(n, m, n_joints * 6)
        changes += (half @ noise.swapaxes(1, 2) @ moved).reshape(changes.shape)
        weights = (half @ flat.swapaxes(1, 2)).reshape(n, n_rows, m, n_joints)
        changes += weights.swapaxes(2, 3) @ (noise @ turned)[:, None]
    return changes


def _bent(s_inverse: Array, change: Array, total: Array) -> Array:
    """
    Return the change of the solution with the matrix, in the axes of singular vectors.

    s_inverse (n, min(n_unknowns, 6)), zero where dropped; change (n, n_unknowns, n_joints, 6);
    total (n, 6); returns (n, n_unknowns, n_joints).
    """
    n, n_unknowns, n_joints, _ = change.shape
    size = max(n_unknowns, 6)
    square = np.zeros((n, size, n_joints, size))
    square[:, :n_unknowns, :, :6] = change
    inverse, right = np.zeros((n, size)), np.zeros((n, 1, size))
    inverse[:, : s_inverse.shape[1]], right[:, 0, :6] = s_inverse, total
    one = inverse[:, :, None] ** 2 * (inverse == 0.0)[:, None]
    straight, crossed = one + one.swapaxes(1, 2), -inverse[:, :, None] * inverse[:, None]
    bent: Array = np.einsum('nikj,nij->nik', square, straight * right)
    bent += np.einsum('njki,nij->nik', square, crossed * right)
    return bent[:, :n_unknowns]


class Shares(NamedTuple):
    """The shared contacts of one sample; all about the root link's origin."""

    wrenches: Array
    """Wrench of each, shape (n_shared, 6) [N, Nm]."""
    changes: Array
    """Its derivative by the positions, the net wrenches kept, shape (n_shared, n_joints, 6)."""
    parts: Array
    """``wrench = part @ sum`` of its submodel, zero for known ones, shape (n_shared, 6, 6)."""
    undetermined: list[tuple[Array, Indices, Array]]
    """
    Of submodels with such unknowns: wrenches of their units (n_unknowns, 6), their contacts, and
    orthonormal combinations (n_unknowns, n_combinations).
    """


class Placement(NamedTuple):
    """Frames and joint axes of one sample."""

    to_root: Array
    """Transforms of wrenches, as rows, from each frame to the root link, (n_frames, 6, 6)."""
    from_root: Array
    """Back, as columns: its rows are the covectors of each frame, shape (n_frames, 6, 6)."""
    axes: Array
    """Joint axes about the root link's origin, shape (n_joints, 6)."""
    turn: Array
    """``wrench @ turn[:, k]`` is the derivative of a wrench by joint k, shape (6, n_joints, 6)."""

    def turned(self, wrenches: Array) -> Array:
        """Return the derivatives (n, n_joints, 6) of wrenches (n, 6) beyond the joints."""
        change = wrenches @ self.turn.reshape(6, -1)
        return np.asarray(change.reshape(len(wrenches), len(self.axes), 6))


class Sharing:
    """
    The shared contacts (n_shared,) of one plan, those whose wrench is known or split from a sum.

    moved (n_frames, n_joints): 1 where a joint moves a frame of the plan; sums (n_shared,
    n_measured): factors of the measured terms in the sum of their submodel.
    """

    def __init__(
        self, plan: Plan, moved: Array, shared: Indices, sums: Array, rank_tolerance: float
    ) -> None:
        self._moved, self._rank_tolerance = moved, rank_tolerance
        self._contacts = plan.frames.contacts + shared
        self._known = np.searchsorted(shared, plan.known)
        self._known_wrenches = plan.known_wrenches
        owners = plan.balance.contact_submodel[shared]
        known = np.isin(np.arange(len(owners)), self._known)
        # With each split the shared contacts of its unknowns (n, n_unknowns), the factors of the
        # measured terms in the sums (n, n_measured), and of the known contacts (n, n_shared).
        self._splits: list[tuple[Split, ContactLimits, Indices, Array, Array]] = []
        for split in plan.splits:
            rows = np.searchsorted(shared, split.owner.argmax(axis=0)).reshape(len(split.rows), -1)
            minus = np.equal.outer(split.rows, owners) & known
            factors = sums[rows[:, 0]], minus.astype(np.float64)
            self._splits.append((split, ContactLimits(split.limits), rows, *factors))

    def evaluate(
        self, placed: Placement, columns: Sequence[Array], terms: Array, dterms: Array
    ) -> Shares:
        """Solve for the shared contacts; terms (n, 6), and by the positions (n, n_joints, 6)."""
        n, n_joints = len(self._contacts), len(placed.axes)
        wrenches, changes = np.zeros((n, 6)), np.zeros((n, n_joints, 6))
        parts, undetermined = np.zeros((n, 6, 6)), []
        if len(self._known):
            at = self._contacts[self._known]
            wrenches[self._known] = (self._known_wrenches[:, None] @ placed.to_root[at])[:, 0]
            moved = self._moved[at, :, None]
            changes[self._known] = placed.turned(wrenches[self._known]) * moved
        for (split, limits, shared, factors, known), local in zip(
            self._splits, columns, strict=True
        ):
            totals = factors @ terms - known @ wrenches
            dtotals = np.tensordot(factors, dterms, 1) - np.tensordot(known, changes, 1)
            problem = self._problem(placed, split, local, totals, dtotals)
            unknowns, dunknowns, inverse, open_ = solve(problem, self._rank_tolerance, limits)
            belongs = 1.0 * np.equal.outer(np.arange(n), shared.ravel())
            units = problem.columns.reshape(-1, 6)
            own = belongs @ (unknowns.reshape(-1, 1) * units)
            wrenches += own
            bent = dunknowns.reshape(len(units), -1, 1) * units[:, None]
            changes += np.tensordot(belongs, bent, 1)
            changes += placed.turned(own) * self._moved[self._contacts][..., None]
            parts += np.tensordot(belongs, units[:, :, None] * inverse.reshape(-1, 1, 6), 1)
            each = zip(problem.columns, shared, open_, strict=True)
            undetermined += [one for one in each if one[2].shape[1]]
        return Shares(wrenches, changes, parts, undetermined)

    def _problem(
        self, placed: Placement, split: Split, local: Array, totals: Array, dtotals: Array
    ) -> Problem:
        """Return the least squares of a split, as seen from its reference frames."""
        u = split.unknowns
        columns = (local[:, :, None] @ placed.to_root[split.frames])[:, :, 0]
        resting = self._moved[split.reference]
        moved = self._moved[split.frames] - resting[:, None]
        n, n_columns, _ = columns.shape
        dcolumns = placed.turned(columns.reshape(-1, 6)).reshape(n, n_columns, -1, 6)
        dcolumns *= moved[..., None]
        if split.noise is None:
            noise, dnoise = columns[:, u:], dcolumns[:, u:]
        else:
            noise, dnoise = split.noise[:, None] * placed.to_root[split.reference], None
        dtotals = dtotals - placed.turned(totals) * resting[..., None]
        return Problem(totals, dtotals, columns[:, :u], dcolumns[:, :u], noise, dnoise)
