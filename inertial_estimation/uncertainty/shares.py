# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Contacts that share the external wrench of a submodel: derivatives by that wrench and by the pose.

The unknowns are ``u = pinv(A) b`` with A and b whitened by the noise of the submodel's sensors,
and both move with the joints. For a full-rank A the derivative of the pseudo-inverse is Golub
and Pereyra's; here small singular values count as zero, and the pseudo-inverse is a function g of
the singular values (1/s, or 0). Its derivative in the directions of the singular vectors i and j
follows from the divided differences (g_i - g_j) / (s_i - s_j) and (g_i + g_j) / (s_i + s_j).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.plan import Plan, Split
from inertial_estimation.estimation.step import NEARLY, split_wrench
from inertial_estimation.uncertainty.loads import Loads
from inertial_estimation.uncertainty.products import product

Array = NDArray[np.float64]


class Problem(NamedTuple):
    """
    The least squares of n submodels of a size; wrenches are rows, ``d`` is by the positions.

    All wrenches may be about any point and turn with any frame.
    """

    totals: Array
    """The sums to share out, shape (n, 6)."""
    dtotals: Array
    """Shape (n, n_joints, 6)."""
    columns: Array
    """What a unit of each unknown adds, shape (n, n_unknowns, 6)."""
    dcolumns: Array
    """Shape (n, n_unknowns, n_joints, 6)."""
    noise: Array
    """Disturbances of the sums that weigh them, shape (n, n_noise, 6)."""
    dnoise: Array | None
    """Shape (n, n_noise, n_joints, 6); None if they rest."""


class Answer(NamedTuple):
    """Its solution."""

    unknowns: Array
    """Shape (n, n_unknowns)."""
    dunknowns: Array
    """Shape (n, n_unknowns, n_joints)."""
    inverse: Array
    """``unknowns = inverse @ total``, shape (n, n_unknowns, 6)."""
    blind: tuple[Array, ...]
    """Undetermined combinations of each submodel, shape (n_unknowns, n_combinations)."""


def solve(problem: Problem, rank_tolerance: float) -> Answer:
    """Solve as `step.split_wrench` does, and differentiate."""
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
    inverse = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)
    bent = _bent(s, rank, drows[:, :-1], total)
    bent[:, :n] += inverse[..., None] * drows[:, -1, :, :n].swapaxes(1, 2)
    u_inverse = u[..., :n] * inverse[:, None]
    return Answer(
        unknowns=(u_inverse @ total[:, :n, None])[..., 0],
        dunknowns=u @ bent,
        inverse=u_inverse @ turned[..., :n].swapaxes(1, 2),
        blind=tuple(own[:, r:] for own, r in zip(u, rank)),
    )


def _changes(problem: Problem, u: Array, rows: Array, whiten: Array, turned: Array) -> Array:
    """
    Return how columns and totals change in the axes of the singular vectors.

    Returns (n, n_unknowns + 1, n_joints, 6).
    """
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
        moved = (dnoise.reshape(n, m * n_joints, 6) @ turned).reshape(n, m, n_joints * 6)
        changes += (half @ noise.swapaxes(1, 2) @ moved).reshape(changes.shape)
        felt = half @ dnoise.reshape(n, m * n_joints, 6).swapaxes(1, 2)
        felt = felt.reshape(n, n_rows, m, n_joints).swapaxes(2, 3)
        changes += felt @ (noise @ turned)[:, None]
    return changes


def _bent(s: Array, rank: NDArray[np.int64], change: Array, total: Array) -> Array:
    """
    Return what a change of the matrix does to the solution, in the axes of singular vectors.

    s (n, min(n_unknowns, 6); rank (n,); change (n, n_unknowns, n_joints, 6); total (n, 6); returns
    (n, n_unknowns, n_joints).
    """
    n, n_unknowns, n_joints, _ = change.shape
    size = max(n_unknowns, 6)
    square = np.zeros((n, size, n_joints, size))
    square[:, :n_unknowns, :, :6] = change
    right = np.zeros((n, 1, size))
    right[:, 0, :6] = total
    straight, crossed = _weights(s, rank, size)
    bent: Array = np.einsum('nikj,nij->nik', square, straight * right)
    bent += np.einsum('njki,nij->nik', square, crossed * right)
    return bent[:, :n_unknowns]


def _weights(s: Array, rank: NDArray[np.int64], size: int) -> tuple[Array, Array]:
    """
    Return how the pseudo-inverse changes with the matrix F, both in axes of singular vectors.
    """
    values = np.zeros((len(s), size))
    values[:, : s.shape[1]] = s
    kept = np.arange(size) < rank[:, None]
    large, small = np.where(kept, values, 1.0), np.where(kept, 0.0, values)
    both = kept[:, :, None] & kept[:, None]
    # A kept row and a dropped column; the other way round is the transposed.
    one = (kept[:, :, None] & ~kept[:, None]) / (large[:, :, None] ** 2 - small[:, None] ** 2)
    straight = one + one.swapaxes(1, 2)
    other = one * small[:, None] / large[:, :, None]
    crossed = other + other.swapaxes(1, 2) - both / (large[:, :, None] * large[:, None])
    return straight, crossed


Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]


class Blind(NamedTuple):
    """Combinations of unknowns of one submodel that its sensors do not determine."""

    columns: Array
    """Wrench of a unit of each unknown about the root link's origin, shape (n_unknowns, 6)."""
    shared: Indices
    """The shared contact that each unknown belongs to, shape (n_unknowns,)."""
    combinations: Array
    """Orthonormal columns, shape (n_unknowns, n_combinations)."""

    def touches(self, covectors: Array, factors: Array) -> Mask:
        """
        Tell which results hold some of these combinations.

        covectors (n_rows, 6); factors (n_rows, n_shared); returns (n_rows,).
        """
        own = factors[:, self.shared]
        held = (own * (covectors @ self.columns.T)) @ self.combinations
        size = (covectors * covectors).sum(axis=1) * (self.columns * self.columns).sum()
        touched: Mask = (held * held).sum(axis=1) > NEARLY * size
        return touched


class Shares(NamedTuple):
    """The shared contacts at one instant; all about the root link's origin."""

    wrenches: Array
    """Wrench of each, shape (n_shared, 6) [N, Nm]."""
    changes: Array
    """Its derivative by the positions, the net wrenches kept, shape (n_shared, n_joints, 6)."""
    parts: Array
    """
    What part of the sum of its submodel each takes: ``wrench = part @ sum``, zero for known ones,
    shape (n_shared, 6, 6).
    """
    blind: tuple[Blind, ...]


class Placed(NamedTuple):
    """Where everything is at one instant."""

    to_root: Array
    """What moves wrenches, as rows, from each frame to the root link, (n_frames, 6, 6)."""
    from_root: Array
    """Back, as columns: its rows are the covectors of each frame, shape (n_frames, 6, 6)."""
    axes: Array
    """Joint axes about the root link's origin, shape (n_joints, 6)."""
    turn: Array
    """``wrench @ turn[:, k]`` is what joint k does to a wrench, shape (6, n_joints, 6)."""

    def turned(self, wrenches: Array) -> Array:
        """
        Return what the joints do to wrenches that are attached beyond them.

        wrenches (n, 6); returns (n, n_joints, 6).
        """
        change = product(wrenches, self.turn.reshape(6, -1))
        return change.reshape(len(wrenches), len(self.axes), 6)


class Sharing:
    """The shared contacts of one plan."""

    def __init__(self, plan: Plan, loads: Loads, rank_tolerance: float) -> None:
        self._loads = loads
        self._rank_tolerance = rank_tolerance
        self._contacts = plan.frames.contacts + loads.shared_contacts
        self._known = np.searchsorted(loads.shared_contacts, plan.known)
        self._known_wrenches = plan.known_wrenches
        owners = np.array(plan.balance.contact_submodel, dtype=np.intp)[loads.shared_contacts]
        known = np.isin(np.arange(len(owners)), self._known)
        self._splits = []
        for split in plan.splits:
            active = split.owner.argmax(axis=0)
            shared = np.searchsorted(loads.shared_contacts, active).reshape(len(split.rows), -1)
            minus = np.equal.outer(split.rows, owners) & known
            factors = loads.shared_sums[shared[:, 0]]
            self._splits.append(_Layout(split, shared, factors, minus.astype(np.float64)))

    def evaluate(
        self, placed: Placed, columns: Sequence[Array], terms: Array, dterms: Array
    ) -> Shares:
        """
        Solve for the shared contacts.

        terms (n_measured, 6) [N, Nm]; dterms (n_measured, n_joints, 6).
        """
        n, n_joints = len(self._contacts), len(placed.axes)
        wrenches, changes = np.zeros((n, 6)), np.zeros((n, n_joints, 6))
        parts, blind = np.zeros((n, 6, 6)), []
        if len(self._known):
            at = self._contacts[self._known]
            wrenches[self._known] = (self._known_wrenches[:, None] @ placed.to_root[at])[:, 0]
            moved = self._loads.moved[at, :, None]
            changes[self._known] = placed.turned(wrenches[self._known]) * moved
        for layout, local in zip(self._splits, columns, strict=True):
            totals = layout.factors @ terms - layout.known @ wrenches
            dtotals = np.tensordot(layout.factors, dterms, 1)
            dtotals -= np.tensordot(layout.known, changes, 1)
            problem = self._problem(placed, layout.split, local, totals, dtotals)
            answer = solve(problem, self._rank_tolerance)
            own = _own_part(placed, problem, answer, self._loads.moved[self._contacts], layout)
            for out, part in zip((wrenches, changes, parts), own, strict=True):
                out += part
            blind += [
                Blind(problem.columns[k], layout.shared[k], combinations)
                for k, combinations in enumerate(answer.blind)
                if combinations.shape[1]
            ]
        return Shares(wrenches, changes, parts, tuple(blind))

    def _problem(
        self, placed: Placed, split: Split, local: Array, totals: Array, dtotals: Array
    ) -> Problem:
        """Lay out the least squares of a split, as seen from its reference frames."""
        u = split.unknowns
        columns = (local[:, :, None] @ placed.to_root[split.frames])[:, :, 0]
        resting = self._loads.moved[split.reference]
        moved = self._loads.moved[split.frames] - resting[:, None]
        n, n_columns, _ = columns.shape
        dcolumns = placed.turned(columns.reshape(-1, 6)).reshape(n, n_columns, -1, 6)
        dcolumns *= moved[..., None]
        if split.noise is None:
            noise, dnoise = columns[:, u:], dcolumns[:, u:]
        else:
            noise, dnoise = split.noise[:, None] * placed.to_root[split.reference], None
        dtotals = dtotals - placed.turned(totals) * resting[..., None]
        return Problem(totals, dtotals, columns[:, :u], dcolumns[:, :u], noise, dnoise)


class _Layout(NamedTuple):
    """What does not change of a split."""

    split: Split
    shared: Indices
    """The shared contact of each unknown, shape (n, n_unknowns)."""
    factors: Array
    """Of the measured terms in the sums, shape (n, n_measured)."""
    known: Array
    """1 where a shared contact is known and in the submodel, shape (n, n_shared)."""


def _own_part(
    placed: Placed, problem: Problem, answer: Answer, moved: Array, layout: _Layout
) -> tuple[Array, Array, Array]:
    """Return wrenches, changes and parts of the contacts of one split, zero for the others."""
    belongs = np.equal.outer(np.arange(len(moved)), layout.shared.ravel()).astype(np.float64)
    columns, unknowns = problem.columns.reshape(-1, 6), answer.unknowns.reshape(-1, 1)
    wrenches = belongs @ (unknowns * columns)
    dunknowns = answer.dunknowns.reshape(len(columns), -1, 1)
    changes = np.tensordot(belongs, dunknowns * columns[:, None], 1)
    changes += placed.turned(wrenches) * moved[..., None]
    parts = np.tensordot(belongs, columns[:, :, None] * answer.inverse.reshape(-1, 1, 6), 1)
    return wrenches, changes, parts
