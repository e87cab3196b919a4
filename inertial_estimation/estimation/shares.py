# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How the contacts that share a submodel answer to its external wrench and to the pose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.contact_forces import NEARLY
from inertial_estimation.estimation.loads import Loads
from inertial_estimation.estimation.plan import Plan
from inertial_estimation.estimation.split_derivatives import Problem, solve
from inertial_estimation.estimation.splits import Split

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]


class Blind(NamedTuple):
    """Combinations of unknowns of one submodel that its sensors do not tell."""

    columns: Array
    """Wrench of a unit of each unknown about the root link's origin, shape (n_unknowns, 6)."""
    shared: Indices
    """The shared contact that each unknown belongs to, shape (n_unknowns,)."""
    combinations: Array
    """Orthonormal columns, shape (n_unknowns, n_combinations)."""

    def touches(self, covectors: Array, factors: Array) -> Mask:
        """
        Tell which results hold some of these combinations.

        Parameters
        ----------
        covectors : ndarray, shape (n_rows, 6)
            Covector of each result.
        factors : ndarray, shape (n_rows, n_shared)
            Factor of each shared contact in its load.

        Returns
        -------
        ndarray of bool, shape (n_rows,)

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

        Parameters
        ----------
        wrenches : ndarray, shape (n, 6)
            About the root link's origin.

        Returns
        -------
        ndarray, shape (n, n_joints, 6)

        """
        change: Array = wrenches @ self.turn.reshape(6, -1)
        return change.reshape(len(wrenches), len(self.axes), 6)


class Sharing:
    """
    The shared contacts of one plan.

    Parameters
    ----------
    plan : Plan
        What one step follows; its workspace is not kept.
    loads : Loads
        Which contacts are shared.
    rank_tolerance : float
        As in `contact_forces.split_wrench`.

    """

    def __init__(self, plan: Plan, loads: Loads, rank_tolerance: float) -> None:
        self._loads = loads
        self._rank_tolerance = rank_tolerance
        self._contacts = plan.frames.contacts + loads.shared_contacts
        self._known = np.searchsorted(loads.shared_contacts, plan.known)
        self._known_wrenches = plan.known_wrenches
        owners = np.array(plan.balance.contact_submodel, dtype=np.intp)[loads.shared_contacts]
        known = np.isin(np.arange(len(owners)), self._known)
        self._splits: list[tuple[int, int, Indices, Indices]] = []
        self._layouts = plan.splits
        for number, split in enumerate(plan.splits):
            of_unknown = split.owner.argmax(axis=0).reshape(len(split.rows), -1)
            for k, s in enumerate(split.rows):
                shared = np.searchsorted(loads.shared_contacts, of_unknown[k])
                self._splits.append((number, k, shared, np.flatnonzero(known & (owners == s))))

    def evaluate(
        self, placed: Placed, columns: Sequence[Array], terms: Array, dterms: Array
    ) -> Shares:
        """
        Solve for the shared contacts.

        Parameters
        ----------
        placed : Placed
            Where everything is.
        columns : sequence of ndarray
            The columns of each split, for the points of the contacts at this instant.
        terms : ndarray, shape (n_measured, 6)
            Measured terms about the root link's origin [N, Nm].
        dterms : ndarray, shape (n_measured, n_joints, 6)
            Their derivatives by the positions.

        Returns
        -------
        Shares

        """
        n, n_joints = len(self._contacts), len(placed.axes)
        wrenches, changes = np.zeros((n, 6)), np.zeros((n, n_joints, 6))
        parts, blind = np.zeros((n, 6, 6)), []
        if len(self._known):
            at = self._contacts[self._known]
            wrenches[self._known] = (self._known_wrenches[:, None] @ placed.to_root[at])[:, 0]
            changes[self._known] = self._moved(placed, wrenches[self._known], at)
        for number, k, shared, known in self._splits:
            factors = self._loads.shared_sums[shared[0]]
            problem = self._problem(
                placed,
                self._layouts[number],
                k,
                columns[number][k],
                factors @ terms - wrenches[known].sum(axis=0),
                np.tensordot(factors, dterms, 1) - changes[known].sum(axis=0),
            )
            answer = solve(problem, self._rank_tolerance)
            unit = np.equal.outer(np.arange(n), shared).astype(np.float64)
            wrenches += unit @ (answer.unknowns[:, None] * problem.columns)
            moved = answer.unknowns[:, None, None] * problem.dcolumns
            moved += answer.dunknowns[:, :, None] * problem.columns[:, None]
            changes += np.tensordot(unit, moved, 1)
            parts += np.einsum('ca,ai,aj->cij', unit, problem.columns, answer.inverse)
            if answer.blind.shape[1]:
                blind.append(Blind(problem.columns, shared, answer.blind))
        return Shares(wrenches, changes, parts, tuple(blind))

    def _problem(
        self, placed: Placed, split: Split, k: int, local: Array, total: Array, dtotal: Array
    ) -> Problem:
        """Lay out the least squares of the k-th submodel of a split."""
        n = split.unknowns
        at = split.frames[k]
        if split.noise is None:
            noise, noise_at = local[n:], at[n:]
        else:
            noise, noise_at = np.diag(split.noise), np.repeat(split.reference[k], 6)
        columns = (local[:n, None] @ placed.to_root[at[:n]])[:, 0]
        noise = (noise[:, None] @ placed.to_root[noise_at])[:, 0]
        return Problem(
            total,
            dtotal,
            columns,
            self._moved(placed, columns, at[:n]),
            noise,
            self._moved(placed, noise, noise_at),
        )

    def _moved(self, placed: Placed, wrenches: Array, frames: Indices) -> Array:
        """Return what positions do to wrenches that are attached to frames of the plan."""
        return placed.turned(wrenches) * self._loads.moved[frames, :, None]
