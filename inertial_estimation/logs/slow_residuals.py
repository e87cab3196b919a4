# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Joints whose residual comes from where they hardly move: stiction that no row describes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.fit import RobotFit
from inertial_estimation.identification.outliers import EFFORT, Observed

Array = NDArray[np.float64]

SLOW = 0.05
"""Velocity below which stiction may hold a joint [rad/s or m/s]."""
LARGER = 2.0
"""Residual there over that in motion from which a dead zone is worth trying."""
MOST = 0.6
"""Share of the squared residual that comes from there."""
LEAST = 30
"""Rows that each of the two must have."""
WATCHED = 1500
"""Instants of each log that are looked at."""


class Squares(NamedTuple):
    """Sum of squared residuals, and of how many rows."""

    total: float = 0.0
    rows: int = 0

    def plus(self, residuals: Array) -> Squares:
        """
        Return the sum with further ones.

        residuals (n,).
        """
        known = residuals[np.isfinite(residuals)]
        return Squares(self.total + float(known @ known), self.rows + len(known))

    @property
    def mean(self) -> float:
        """Root mean square."""
        return float(np.sqrt(self.total / self.rows)) if self.rows else np.nan


def watched(observed: Observed) -> Observed:
    """Return some instants of a log, evenly spread: enough to look at residuals."""
    return observed.take(slice(None, None, max(1, len(observed.samples) // WATCHED)))


def stiction_warnings(
    builder: EquationBuilder, logs: Sequence[Observed], found: RobotFit
) -> list[str]:
    """Return whose residual comes from where they hardly move, in words."""
    sizes = _sizes(builder, logs, found)
    odd = {
        kind: slow.mean / fast.mean
        for kind, (slow, fast) in sizes.items()
        if min(slow.rows, fast.rows) >= LEAST
        and slow.mean > LARGER * fast.mean
        and slow.total > MOST * (slow.total + fast.total)
    }
    if not odd:
        return []
    said = ', '.join(f'{kind[len(EFFORT) :]} ({ratio:.2g} times)' for kind, ratio in odd.items())
    return [
        f'most of what is left comes from where joints are slower than {SLOW:g} rad/s or m/s, and '
        f'residuals are larger there than in motion: {said}; rows do not know of stiction: leave '
        f"such parts out, by 'rows.dead_zone: {SLOW:g}' or LOG@FROM:TO"
    ]


def _sizes(
    builder: EquationBuilder, logs: Sequence[Observed], found: RobotFit
) -> dict[str, tuple[Squares, Squares]]:
    """Return what is left of the rows of each joint, slow and in motion."""
    unknowns = {block.name: block.answer.x for block in found.blocks}
    sizes: dict[str, tuple[Squares, Squares]] = {}
    for samples, external, free, carried in logs:
        blocks = builder.sparse(samples, external=external, free=free, carried=carried)
        for block, kinds in blocks:
            x = unknowns.get(block.submodel.name)
            if x is None:
                continue
            for kind, rows in kinds:
                if not kind.startswith(EFFORT):
                    continue
                left = rows.residuals(x)
                joint = builder.robot.joint_names.index(kind[len(EFFORT) :])
                slow = np.abs(samples.velocities[:, joint]) < SLOW
                before = sizes.get(kind, (Squares(), Squares()))
                sizes[kind] = (before[0].plus(left[slow]), before[1].plus(left[~slow]))
    return sizes
