# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Gains of drives whose efforts are currents: ``K i = Y pi + friction``, with K unknown.

The noise is in the current. Least squares with the current as a column would take it for exact,
and shrink gains and bodies together: smaller torques leave smaller residuals. What is minimised
is the residual of the current, ``i - (Y pi + friction) / K``, in units of its noise. It is
linear in all but K, so it is linearised about a guess K0 and solved until K stays:

    Y pi + friction - (K - K0) i0  =  K0 i,     i0 = (Y pi0 + friction0) / K0

The column of a gain is the current that the model predicts, which has next to no noise. All that
is needed of the rows is in their triangle. A known payload, or a measured wrench, stands on the
right-hand side; where nothing does, all gains and bodies could be twice as large.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError
from inertial_estimation.identification.information import Information, weighted_sum
from inertial_estimation.identification.problem import Bounds
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.unknowns import Unknowns, gain_columns

Array = NDArray[np.float64]

NOTHING = 1e-12
"""Right-hand sides of less than this share of the rows are round-off."""
EXPLAINED = 1e-6
"""
Share of right-hand sides that bodies leave up to which these tell nothing else: round-off of a
payload that is always there leaves 1e-15, one that is gone for a second in an hour 1e-2.
"""
SETTLED = 1e-9
"""Relative change of every gain at which the search ends."""
ROUNDS = 100
"""Linearisations at most."""
STRIDE = 2.0
"""A gain changes by no more than this factor at a time."""


def require_scale(
    kinds: Mapping[str, Information], unknowns: Unknowns, payloads: Sequence[str] = ()
) -> None:
    """Refuse unknown gains where nothing says how large a torque is."""
    if not len(gain_columns(unknowns)):
        return
    told = any(
        np.hypot(np.linalg.norm(part.rho), np.sqrt(part.energy)) > NOTHING * np.linalg.norm(part.R)
        for part in kinds.values()
    )
    if told and not _explained(kinds, gain_columns(unknowns)):
        return
    text = (
        f'the gains of {", ".join(geared(unknowns))} cannot be told: with all gains and all '
        'bodies twice as large these logs would be the same'
    )
    if told:
        what = f'payload {", ".join(payloads)}' if payloads else 'what is known'
        raise LogError(
            f'{text}, since {what} is in all of them alike and might as well be a part of '
            "its link; add a log of the robot without it, which its 'logs' under 'payloads' do "
            'not match, or with another known one, or an FT sensor, or a joint whose torque '
            'is known'
        )
    raise LogError(
        f"{text}; add a log with a payload of known mass and name it under 'payloads', or an FT "
        'sensor, or a joint whose torque is known'
    )


def _explained(kinds: Mapping[str, Information], gains: NDArray[np.intp]) -> bool:
    """Tell whether bodies and the like explain right-hand sides in full, with gains of zero."""
    rows = weighted_sum(kinds.values(), [1.0] * len(kinds))
    space = RowSpace.of(np.delete(rows.R, gains, axis=1))
    rest = rows.rho - space.left @ (space.left.T @ rows.rho)
    left, size = (float(one @ one) + rows.energy for one in (rest, rows.rho))
    return left <= EXPLAINED**2 * size


def geared(unknowns: Unknowns) -> list[str]:
    """Return the joints whose gains are unknown."""
    return [unknowns.extras[k - unknowns.n_inertial].of for k in gain_columns(unknowns)]


def linearised(
    kinds: Mapping[str, Information], x: Array, unknowns: Unknowns
) -> dict[str, Information]:
    """
    Return rows whose noise is that of the currents, linearised about a guess.

    x (n,).
    """
    gains = gain_columns(unknowns)
    return {kind: _linearised(part, x, gains) for kind, part in kinds.items()}


def _linearised(part: Information, x: Array, gains: NDArray[np.intp]) -> Information:
    """Return the rows of one kind, which hold one gain or none."""
    if not part.R[:, gains].any():
        return part
    # With the corner as a last row, all inner products of the rows are there.
    system = np.column_stack(
        [np.vstack([part.R, np.zeros(part.n)]), np.append(part.rho, np.sqrt(part.energy))]
    )
    system = linearised_rows(system, x, gains)
    return replace(Information.of(system[:, :-1], system[:, -1]), count=part.count)


def linearised_rows(system: Array, x: Array, gains: NDArray[np.intp]) -> Array:
    """
    Return rows of one kind likewise.

    system (m, n + 1) [Y y]; x (n,); returns (m, n + 1).
    """
    found = system.copy()
    others = np.append(x, -1.0)
    others[gains] = 0.0
    for k in gains:
        if system[:, k].any():
            found[:, k] = -(system @ others) / x[k]
            found[:, -1] -= system[:, k] * x[k]
    return found


def settled(
    solve: Callable[[Array], Array], x: Array, gains: NDArray[np.intp]
) -> tuple[Array, NDArray[np.bool_]]:
    """
    Linearise and solve until the gains stay.

    x (n,); gains (k,); returns x (n,); moving (k,).
    """
    x = x.copy()
    x[gains] = np.where(np.abs(x[gains]) > 0.0, x[gains], 1.0)
    moving = np.ones(len(gains), dtype=bool)
    for _ in range(ROUNDS):
        guess, x = x[gains], solve(x).copy()
        share = x[gains] / guess
        x[gains] = stepped(guess, x[gains])
        moving = ~(np.abs(share) <= SETTLED)
        if not moving.any():
            break
    return x, moving


def stepped(guess: Array, change: Array) -> Array:
    """
    Return gains after a step that is not too long.

    guess (k,); change (k,); returns (k,).
    """
    return np.asarray(guess * np.clip(1.0 + change / guess, 1.0 / STRIDE, STRIDE))


def shifted(bounds: Bounds, unknowns: Unknowns, x: Array) -> Bounds:
    """
    Return bounds of changes of gains.

    x (n,).
    """
    if bounds.extras is None:
        return bounds
    of_gains = gain_columns(unknowns)
    extras = bounds.extras.copy()
    extras[of_gains - unknowns.n_inertial] -= x[of_gains, None]
    return replace(bounds, extras=extras)
