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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.errors import LogError
from inertial_estimation.identification.information import Information, weighted_sum
from inertial_estimation.identification.problem import Bounds
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.unknowns import Unknowns, gain_columns

ROUND_OFF = 1e-12
"""Right-hand sides over the regressor below which they are zero."""
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


def require_scale(
    kinds: Mapping[str, Information], unknowns: Unknowns, payloads: Sequence[str] = ()
) -> None:
    """Raise unless equations determine the size of torques where gains are unknown."""
    gains = gain_columns(unknowns)
    if not len(gains):
        return
    known = any(
        np.hypot(np.linalg.norm(part.rho), np.sqrt(part.energy))
        > ROUND_OFF * np.linalg.norm(part.R)
        for part in kinds.values()
    )
    rows = weighted_sum(kinds.values(), [1.0] * len(kinds))
    space = RowSpace.of(np.delete(rows.R, gains, axis=1))
    rest = rows.rho - space.left @ (space.left.T @ rows.rho)
    left, size = (float(one @ one) + rows.energy for one in (rest, rows.rho))
    if known and left > MAX_EXPLAINED**2 * size:
        return
    what = f'payload {", ".join(payloads)} is in all logs' if known else 'no known payload'
    raise LogError(f'the gains of {", ".join(geared(unknowns))} are not determined: {what}')


def geared(unknowns: Unknowns) -> list[str]:
    """Return the joints with unknown gains."""
    return [unknowns.extras[k - unknowns.n_inertial].of for k in gain_columns(unknowns)]


def linearised(
    kinds: Mapping[str, Information], x: Array, unknowns: Unknowns
) -> dict[str, Information]:
    """Return equations with the noise of the currents, linearised about a guess, (n,)."""
    gains = gain_columns(unknowns)
    found = dict(kinds)
    for kind, part in kinds.items():
        if part.R[:, gains].any():
            # With the corner as a last row, all inner products of the equations are there.
            right = np.append(part.rho, np.sqrt(part.energy))
            system = np.column_stack([np.pad(part.R, ((0, 1), (0, 0))), right])
            system = linearised_rows(system, x, gains)
            of_kind = Information.of(system[:, :-1], system[:, -1])
            found[kind] = replace(of_kind, count=part.count)
    return found


def linearised_rows(system: Array, x: Array, gains: Indices) -> Array:
    """Return equations [Y y] of one kind, (m, n + 1), likewise."""
    found = system.copy()
    others = np.append(x, -1.0)
    others[gains] = 0.0
    for k in gains:
        if system[:, k].any():
            found[:, k] = -(system @ others) / x[k]
            found[:, -1] -= system[:, k] * x[k]
    return found


def settled(solve: Callable[[Array], Array], x: Array, gains: Indices) -> tuple[Array, Mask]:
    """Linearise and solve until the gains stay; return the unknowns and the gains that do not."""
    x = x.copy()
    x[gains] = np.where(np.abs(x[gains]) > 0.0, x[gains], 1.0)
    moving = np.ones(len(gains), dtype=bool)
    for _ in range(MAX_ROUNDS):
        guess, x = x[gains], solve(x).copy()
        share = x[gains] / guess
        x[gains] = stepped(guess, x[gains])
        moving = ~(np.abs(share) <= SETTLED)
        if not moving.any():
            break
    return x, moving


def stepped(guess: Array, change: Array) -> Array:
    """Return gains after a limited step."""
    return np.asarray(guess * np.clip(1.0 + change / guess, 1.0 / MAX_STEP, MAX_STEP))


def shifted(bounds: Bounds, unknowns: Unknowns, x: Array) -> Bounds:
    """Return bounds with those of gains in terms of their change from a guess."""
    if bounds.extras is None:
        return bounds
    of_gains = gain_columns(unknowns)
    extras = bounds.extras.copy()
    extras[of_gains - unknowns.n_inertial] -= x[of_gains, None]
    return replace(bounds, extras=extras)
