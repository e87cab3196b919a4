# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What logs say of each submodel: rows of any number, reduced kind by kind.

Memory does not grow with the length of a log, and several logs are reduced one by one and merged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information import Information
from inertial_estimation.identification.rows import Block, RowBuilder
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

INSTANTS_AT_ONCE = 500
"""Samples whose rows are built together: enough to be fast, few enough to stay small."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Rows of one block."""

    block: Block
    kinds: Mapping[str, Information]
    """Rows of each kind, as they were measured: not weighted."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Instants of each kind that gave no row."""

    def merge(self, other: Evidence) -> Evidence:
        """
        Return this together with what another log says.

        Parameters
        ----------
        other : Evidence
            Of the same block.

        Returns
        -------
        Evidence

        """
        return Evidence(
            self.block,
            {kind: self.kinds[kind].merge(other.kinds[kind]) for kind in self.kinds},
            {kind: self.left_out[kind] + other.left_out[kind] for kind in self.kinds},
        )

    def residuals(self, x: Array) -> dict[str, float]:
        """
        Return the root mean square residual of each kind of row.

        Parameters
        ----------
        x : ndarray, shape (n_unknowns,)
            Unknowns of the block.

        Returns
        -------
        dict of str to float
            In the unit of the row [N, Nm]; NaN where there are no rows.

        """
        return {
            kind: float(np.sqrt(part.squared_residual(x) / part.count)) if part.count else np.nan
            for kind, part in self.kinds.items()
        }

    def signals(self) -> dict[str, float]:
        """
        Return the root mean square of the right-hand side of each kind of row.

        Returns
        -------
        dict of str to float
            In the unit of the row [N, Nm]; NaN where there are no rows.

        """
        return self.residuals(np.zeros(len(self.block.unknowns)))


def gather(
    builder: RowBuilder,
    samples: SampleBatch,
    *,
    external: Mapping[str, Array] | None = None,
    free: Mask | None = None,
) -> list[Evidence]:
    """
    Reduce the rows of a log.

    Parameters
    ----------
    builder : RowBuilder
        Builds them.
    samples : SampleBatch
        Of any number.
    external, free : optional
        As for `RowBuilder.rows`.

    Returns
    -------
    list of Evidence
        One for each block of the builder.

    """
    found = [
        {kind: Information.empty(len(block.unknowns)) for kind in block.kinds}
        for block in builder.blocks
    ]
    left_out = [dict.fromkeys(block.kinds, 0) for block in builder.blocks]
    for start in range(0, len(samples), INSTANTS_AT_ONCE):
        part = slice(start, start + INSTANTS_AT_ONCE)
        pushes = {name: wrench[part] for name, wrench in (external or {}).items()}
        rows = builder.rows(
            samples.take(part), external=pushes, free=None if free is None else free[part]
        )
        for k, of_block in enumerate(rows):
            for kind, (Y, y, missing) in of_block.items():
                found[k][kind] = found[k][kind].add(Y, y)
                left_out[k][kind] += missing
    return [
        Evidence(block, kinds, missing)
        for block, kinds, missing in zip(builder.blocks, found, left_out, strict=True)
    ]
