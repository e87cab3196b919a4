# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which weight of a prior predicts the blocks of a log best that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.blocks import away_from
from inertial_estimation.calibration.ridge import Spectrum
from inertial_estimation.errors import LogError

Array = NDArray[np.float64]


class CrossValidation(NamedTuple):
    """What each weight leaves of blocks that are held out in turn."""

    weights: Array
    """Of the prior, rising, the last infinite, shape (g,) [N^2]."""
    squares: Array
    """Mean square of what is left of each component, shape (g, 6) [N^2]."""

    def scores(self) -> Array:
        """
        Return one figure for each weight, smaller is better.

        Returns (g,).
        """
        best = self.squares.min(axis=0)
        floor = 1e-24 * max(1.0, float(self.squares.max()))
        found: Array = (self.squares / np.maximum(best, floor)).mean(axis=1)
        return found


def hold_out_blocks(
    wrenches: Array,
    missing: Array,
    times: Array,
    blocks: NDArray[np.intp],
    *,
    gap: float,
    weights: Sequence[float],
) -> CrossValidation:
    """
    Fit without each block in turn, and predict it.

    wrenches, missing (n, 6) [N]; times (n,) [s]; blocks (n,); gap [s]; weights [N^2].
    """
    n_blocks = int(blocks[-1]) + 1
    squares = np.zeros((len(weights), wrenches.shape[1]))
    for block in range(n_blocks):
        held_out = blocks == block
        used = away_from(times, held_out, gap)
        if used.sum() <= wrenches.shape[1]:
            raise LogError(
                f'gaps of {gap:g} s beside a block leave {used.sum()} samples to fit: '
                'take a longer log or a smaller gap'
            )
        spectrum = Spectrum.of(wrenches[used], missing[used])
        for k, weight in enumerate(weights):
            D, offset = spectrum.correction(weight)
            left = wrenches[held_out] @ D.T - offset - missing[held_out]
            squares[k] += (left**2).sum(axis=0)
    return CrossValidation(np.array(weights, dtype=np.float64), squares / len(wrenches))
