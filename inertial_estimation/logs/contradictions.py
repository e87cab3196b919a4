# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Whether the fitted logs are of one robot: payloads, signs, columns and units of each.

Rows of one kind are fitted by any bodies whatsoever, once for each log and once for all together.
What only one fit for all leaves is what logs contradict each other by; descriptions, bounds and
other rows have no part in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.evidence import Evidence
from inertial_estimation.identification.fit import BlockFit, RobotFit
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.unknowns import gain_columns

Array = NDArray[np.float64]

NOISE, SHARE = 5.0, 0.1
"""
Times what logs leave that are fitted one by one, and share of what was measured, that one fit for
all leaves of a log from which it contradicts the others. Runs of one real arm stay below 2.1, a
wrist whose friction changes while it moves comes to 3.5; 10 s with a payload of a tenth of the
arm's weight that nobody named come to 18.
"""
SEVERAL = 2.5
"""Such times where two kinds of rows or more have them: not one joint's friction then."""
REMEDY = (
    "check that 'logs' of each payload matches those with it and not those without it, the signs, "
    'order and units of the columns, that no sensor was zeroed in between, and that nothing '
    'touched the robot'
)


def contradiction_warnings(
    found: RobotFit, of_logs: Mapping[str, Sequence[Evidence]]
) -> list[str]:
    """Return which of the fitted logs contradict the others, in words."""
    said = []
    for block in found.blocks:
        logs = {
            log: next(one for one in evidence if one.block.submodel.name == block.name)
            for log, evidence in of_logs.items()
        }
        said += _of_block(block, logs)
    return said


def _of_block(block: BlockFit, logs: Mapping[str, Evidence]) -> list[str]:
    """Return what contradicts in the rows of one submodel."""
    gains = gain_columns(block.answer.unknowns)
    left = [
        (log, kind, of_log)
        for kind in block.kinds
        for log, of_log in _compared(
            {log: _system(one.kinds[kind], gains) for log, one in logs.items()}
        )
        if of_log.share > SHARE and of_log.excess > SEVERAL
    ]
    least = SEVERAL if len({kind for _, kind, _ in left}) > 1 else NOISE
    odd: dict[str, dict[str, _Left]] = {}
    for log, kind, of_log in left:
        if of_log.excess > least:
            odd.setdefault(log, {})[kind] = of_log
    worst_first = sorted(odd, key=lambda log: -max(one.excess for one in odd[log].values()))
    return [
        f'{log}: {block.name}: the fitted logs contradict each other: one fit for all, whatever '
        f'the bodies, leaves far more of this one than fits of each do: {_listed(odd[log])}; '
        f'{REMEDY}'
        for log in worst_first
    ]


def _listed(odd: Mapping[str, _Left]) -> str:
    """Return kinds of rows with what is left of them."""
    return ', '.join(
        f'{kind} ({100 * left.share:.0f} %, {left.excess:.2g} times as much)'
        for kind, left in odd.items()
    )


class _System(NamedTuple):
    """Rows of one kind of one log, up to an orthogonal transform."""

    columns: Array
    target: Array
    instants: float


class _Left(NamedTuple):
    """What one fit for all logs leaves of one of them."""

    share: float
    """Of what was measured."""
    excess: float
    """Times what logs leave that are fitted one by one."""


def _compared(logs: Mapping[str, _System]) -> Iterator[tuple[str, _Left]]:
    """Yield what one fit for all leaves of each log, where logs by themselves tell their noise."""
    logs = {log: one for log, one in logs.items() if one.instants}
    systems = list(logs.values())
    alone = [_rest(one.columns, one.target) for one in systems]
    free = [max(one.instants - rank, 0.0) for one, (_, rank) in zip(systems, alone, strict=True)]
    if len(systems) < 2 or not sum(free) > 0.0:
        return
    noise = np.sqrt(sum(float(rest @ rest) for rest, _ in alone) / sum(free))
    together, _ = _rest(
        np.vstack([one.columns for one in systems]),
        np.concatenate([one.target for one in systems]),
    )
    ends = np.cumsum([len(one.target) for one in systems])[:-1]
    for log, one, rest in zip(logs, systems, np.split(together, ends), strict=True):
        left, signal = (np.linalg.norm(v) / np.sqrt(one.instants) for v in (rest, one.target))
        if signal > 0.0 and noise > 0.0:
            yield log, _Left(float(left / signal), float(left / noise))


def _system(rows: Information, gains: NDArray[np.intp]) -> _System:
    """Return rows as what was measured and all that may explain it."""
    n = rows.n
    system = np.zeros((n + 1, n + 1))
    system[:n, :n], system[:n, n], system[n, n] = rows.R, rows.rho, np.sqrt(rows.energy)
    own = gains[np.linalg.norm(rows.R[:, gains], axis=0) > 0.0]
    measured = own[0] if len(own) else n  # rows of one kind hold one gain or none
    return _System(np.delete(system, measured, axis=1), system[:, measured], rows.count)


def _rest(columns: Array, target: Array) -> tuple[Array, int]:
    """Return what no unknowns explain, and how many are told."""
    space = RowSpace.of(columns)
    return target - space.left @ (space.left.T @ target), len(space.strengths)
