# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
FT offsets: fitted beside parameters, and tracked.

A refit finds offsets together with all parameters. Where a submodel keeps those of the URDF, an
offset that was found with others would be off by the difference of the two weights. So offsets are
fitted beside the parameters that are in use. Of two submodels beside a sensor the outer one counts
if it has equations: it has fewer links. Arrays have six numbers for each sensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.recursion.memory import LEVER, OFFSET_SIZES, SubmodelMemory
from inertial_estimation.identification.row_space import RowSpace, eliminated

DRIFT = 0.15
"""Fastest drift of offsets that the tracker follows, over their random walk [1/sqrt(s)]."""
INNER_WEIGHT = 1e-3
"""Weight of the equations of a submodel over that of those one sensor further out."""
MAX_WEIGHTED_DEPTH = 3
"""Sensors further in beyond which weights are equal: smaller ones would be round-off."""
MAX_INTERVAL = 10.0
"""Time between two refits that counts for the tracker [s]."""
SETTLING = 20.0
"""Time of the initial mean of the tracker, and time constant of what it has refused [s]."""


@one_thread()
def fitted_offsets(memories: Sequence[SubmodelMemory], parameters: Sequence[Array]) -> Array:
    """Return the offsets that fit best beside parameters of each submodel; NaN: no equations."""
    # Sensors between each submodel and the innermost one.
    beside, depths = np.full(memories[0].n_offsets, -1), []
    for one in memories:
        depths.append(int(beside[one.own].max(initial=-1)) + 1)
        beside[one.own] = np.where(beside[one.own] < 0, depths[-1], beside[one.own])
    rows = Information.empty(len(beside))
    for one, depth, own in zip(memories, depths, parameters, strict=True):
        if len(one.offsets):
            weight = INNER_WEIGHT ** min(max(depths) - depth, MAX_WEIGHTED_DEPTH)
            information, n = one.regularised, one.block.unknowns.n_inertial
            known = information.R[:, :n] @ own.reshape(-1)
            rest = Information.of(information.R[:, n:], information.rho - known)
            left = eliminated(rest, np.setdiff1d(np.arange(rest.n), one.offsets - n))
            rows = rows.add(weight * one.placed(left.R), weight * left.rho)
    return np.where(beside < 0, np.nan, RowSpace.of(rows.R).solve(rows.rho))


@one_thread()
def offset_deviations(memories: Sequence[SubmodelMemory]) -> Array:
    """Return the standard deviations of offsets beside parameters with their loose prior."""
    rows = Information.empty(memories[0].n_offsets)
    for one in memories:
        if len(one.offsets):
            left = eliminated(one.corrected.merge(one.loose_prior), one.inner)
            weak = np.diag(1.0 / one.offset_scales(*OFFSET_SIZES))
            both = one.placed(np.vstack([left.R, weak]))
            rows = rows.add(both, np.zeros(len(both)))
    found, has = np.full(rows.n, np.inf), np.flatnonzero(np.diag(rows.R))
    found[has] = np.linalg.norm(np.linalg.inv(rows.R[np.ix_(has, has)]), axis=1)
    return found


class Proposal(NamedTuple):
    """Offsets to be subtracted."""

    values: Array
    """NaN: never determined [N, Nm]."""
    refused: Array
    """Recent changes by new parameters that were not taken [N, Nm]."""
    ages: Array
    """Time for which they have been determined [s]."""


class OffsetTracker:
    """
    Offsets to be subtracted by an estimator.

    On a robot that stands still a push looks like a change of the offset, which equations follow
    at once; subtracting that would hide the push. So what is subtracted changes for two reasons
    only. First, with the parameters: by what these change of the fitted offsets, as far as that
    leads to the readings; the rest is refused, as it may be a load or a push, and so is what later
    undoes refused changes. Second, towards the fitted offsets, no faster than sensors drift: force
    and moment [N/s, Nm/s]. At first, and after a jump, it is the mean of the fitted ones, which
    sway with the posture where matrices are wrong.
    """

    def __init__(self, n: int, force_walk: float) -> None:
        self._drifts = DRIFT * force_walk, DRIFT * LEVER * force_walk
        self.now = Proposal(np.full(n, np.nan), np.zeros(n), np.zeros(n))
        """Offsets that are subtracted."""

    def proposed(self, found: Array, before: Array, determined: Mask, seconds: float) -> Proposal:
        """
        Return the offsets to be subtracted after some time [s].

        found, before: fitted beside the new parameters and beside those in use [N, Nm].
        """
        seconds, now = min(max(seconds, 0.0), MAX_INTERVAL), self.now
        known = np.isfinite(now.values) & np.isfinite(found)
        values, refused = np.where(determined, found, now.values), now.refused.copy()
        ages = np.where(np.isnan(now.values), 0.0, now.ages + seconds * determined)
        kept = float(np.exp(-seconds / SETTLING))
        # Components of each force and of each moment.
        for k, vector in enumerate(np.arange(len(found)).reshape(-1, 3)):
            at = vector[known[vector]]
            if not len(at):
                continue
            wanted, old, owed = found[at], now.values[at], kept * now.refused[at]
            change = owed + (wanted - before[at])
            owed = _share_along(change, owed) * owed
            new = change - owed
            taken = _share_along(wanted - old, new) * new
            left = np.where(determined[at], wanted - (old + taken), 0.0)
            # No faster than the drift; at first as the mean.
            distance, age = float(np.linalg.norm(left)), float(now.ages[at].min())
            drift = seconds * self._drifts[k % 2]
            settling = seconds / (age + seconds) if seconds and age < SETTLING else 0.0
            share = max(min(1.0, drift / distance) if distance else 1.0, settling)
            values[at] = old + taken + share * left
            refused[at] = change - taken
        return Proposal(values, refused, ages)

    def forget(self, which: Indices | Mask) -> None:
        """Start some offsets again."""
        self.now.values[which], self.now.refused[which] = np.nan, 0.0


def _share_along(wanted: Array, change: Array) -> float:
    """Return the share of a change, from 0 to 1, that leads to what is wanted."""
    size = float(change @ change)
    return min(max(float(wanted @ change) / size, 0.0), 1.0) if size else 0.0
