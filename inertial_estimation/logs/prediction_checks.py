# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Whether logs that were not fitted are of the robot as it was found: signs, columns, units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from inertial_estimation.identification.evidence import Evidence
from inertial_estimation.identification.fit import BlockFit, RobotFit
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.unknowns import gain_columns
from inertial_estimation.logs.fit_checks import MOST, told_factor

WORSE = 3.0
"""
Times what the fit leaves of its own logs, from which others contradict it if they leave `MOST`.
"""
SOME, FAR = 0.15, 10.0
"""The same of shares that are smaller."""
OPPOSITE = -0.5
"""Factor of what is predicted below which a sign is turned."""


def prediction_warnings(log: str, found: RobotFit, unseen: list[Evidence]) -> list[str]:
    """Return of which rows a log leaves most although the fit does not, in words."""
    of_block = {one.block.submodel.name: one for one in unseen}
    return [
        f'{log}: {block.name}: what was found does not predict what was measured: '
        f'{", ".join(odd)}; {_causes(odd)}'
        for block in found.blocks
        if (odd := dict(_odd(block, of_block[block.name])))
    ]


def _causes(odd: dict[str, float]) -> str:
    """Return why that may be."""
    factors = np.array(list(odd.values()))
    factors = factors[np.isfinite(factors)]
    turned = len(factors) > 1 and bool((factors < OPPOSITE).all())
    first = 'their sign is turned, as it seems; ' if turned else ''
    return (
        f"{first}check the signs, order and units of this log's columns, that it has the payloads "
        "that 'payloads' says, and that nothing touched the robot; or the fitted logs tell too "
        'little: fit longer ones'
    )


def _odd(block: BlockFit, unseen: Evidence) -> Iterator[tuple[str, float]]:
    """Yield rows that are predicted badly, and how many times the prediction they are."""
    x = block.answer.x
    signals, left = unseen.signals(x), unseen.residuals(x)
    fitted, own = block.evidence.signals(x), block.evidence.residuals(x)
    factors = _factors(block, unseen)
    for kind, signal in signals.items():
        if not (signal > 0.0 and fitted[kind] > 0.0):
            continue
        share, usual = left[kind] / signal, own[kind] / fitted[kind]
        worse = share > MOST and share > WORSE * usual
        # A signal that is all but noise is small where noise is what it was.
        loud = left[kind] > WORSE * own[kind]
        if loud and (worse or (share > SOME and share > FAR * usual)):
            text = f'{kind} (leaves {100 * share:.0f} %'
            told = np.isfinite(factors[kind])
            text += f', {factors[kind]:.2g} times the prediction)' if told else ')'
            yield text, factors[kind]


def _factors(block: BlockFit, unseen: Evidence) -> dict[str, float]:
    """Return how many times what the bodies that were found predict is measured, where told."""
    columns = gain_columns(block.answer.unknowns)
    gains = block.answer.x[columns]

    def in_torques(rows: Information) -> Information:
        R = rows.R.copy()
        R[:, columns] = 0.0
        return replace(rows, R=R, rho=rows.rho - rows.R[:, columns] @ gains)

    kinds = {kind: in_torques(rows) for kind, rows in unseen.kinds.items()}
    judged = replace(block, evidence=replace(unseen, kinds=kinds), before=block.answer.x)
    return {kind: told_factor(judged, kind) for kind in kinds}
