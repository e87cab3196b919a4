# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Gains of drives whose efforts are currents: ``K i = Y pi + friction``, with K unknown.

The noise is in the current. With the current as a column of least squares, gains and parameters
would shrink together: smaller torques leave smaller residuals. Minimised is the residual of the
current, ``i - (Y pi + friction) / K``, in units of its noise. It is linear in all but K, so it is
linearised about a guess K0 until K stays:

    Y pi + friction - (K - K0) i0  =  K0 i,     i0 = (Y pi0 + friction0) / K0

The column of a gain is the current that the model predicts, with next to no noise. All that is
needed of the equations is in their triangle. A known payload, or a measured wrench, stands on the
right-hand side; without one all gains and parameters could be twice as large.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.errors import LogError
from inertial_estimation.identification.information import Information, weighted_sum
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.unknowns import Unknowns, gain_columns

MAX_EXPLAINED = 1e-6
"""
Residual over right-hand sides that the unknowns but gains explain: a payload that is always there
leaves 1e-15, one that is gone for a second in an hour 1e-2.
"""
SETTLED = 1e-9
"""Relative change of every gain at which the search ends."""
MAX_ROUNDS = 100
MAX_STEP = 2.0
"""Factor by which a gain changes at a time."""


def require_scale(kinds: Mapping[str, Information], unknowns: Unknowns) -> None:
    """Raise unless equations determine the size of torques where gains are unknown."""
    gains = gain_columns(unknowns)
    if not len(gains):
        return
    rows = weighted_sum(kinds.values(), [1.0] * len(kinds))
    space = RowSpace.of(np.delete(rows.R, gains, axis=1))
    rest = rows.rho - space.left @ (space.left.T @ rows.rho)
    left, size = (float(one @ one) + rows.energy for one in (rest, rows.rho))
    if not left > MAX_EXPLAINED**2 * size:
        joints = ', '.join(geared(unknowns))
        raise LogError(
            f'the gains of {joints} are not determined: no known payload or wrench, or always '
            'the same payload'
        )


def geared(unknowns: Unknowns) -> list[str]:
    """Return the joints with unknown gains."""
    return [unknowns.extras[k - unknowns.n_inertial].of for k in gain_columns(unknowns)]


def linearised(
    kinds: Mapping[str, Information], x: Array, unknowns: Unknowns
) -> dict[str, Information]:
    """Return equations with the noise of the currents, linearised about a guess, (n,)."""
    gains = gain_columns(unknowns)
    others = np.append(x, -1.0)
    others[gains] = 0.0
    found = dict(kinds)
    for kind, part in kinds.items():
        # Equations of one kind hold one gain or none.
        for k in gains[part.R[:, gains].any(axis=0)]:
            system = part.system
            current = system[:, k].copy()
            system[:, k] = -(system @ others) / x[k]
            system[:, -1] -= current * x[k]
            of_kind = Information.of(system[:, :-1], system[:, -1])
            found[kind] = replace(of_kind, count=part.count)
    return found


def settled(solve: Callable[[Array], Array], x: Array, gains: Indices) -> tuple[Array, Mask]:
    """Linearise and solve until the gains stay; return the unknowns and the gains that do not."""
    x = x.copy()
    x[gains] = np.where(np.abs(x[gains]) > 0.0, x[gains], 1.0)
    moving = np.ones(len(gains), dtype=bool)
    for _ in range(MAX_ROUNDS):
        guess, x = x[gains], solve(x).copy()
        share = x[gains] / guess
        x[gains] = guess * np.clip(1.0 + share, 1.0 / MAX_STEP, MAX_STEP)
        moving = ~(np.abs(share) <= SETTLED)
        if not moving.any():
            break
    return x, moving
