# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Instants at which something acts on a robot that nobody has told of: residuals stick out.

Rows under an unknown wrench say nothing of what links weigh [T 7.3]. Such a wrench shows in rows
that are off by many times their noise, all at once and for a while.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.rows.builder import RowBuilder
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

INSTANTS_AT_ONCE = 1500
NANOSECONDS = 1e-9


class Presumed(NamedTuple):
    """What is taken for true of one submodel while contacts are looked for."""

    x: Array
    """Unknowns."""
    noise: Mapping[str, float]
    """Standard deviation of each kind of row."""


def residuals_of(
    builder: RowBuilder,
    samples: SampleBatch,
    unknowns: Sequence[Array | None],
    external: Mapping[str, Array] | None = None,
) -> list[dict[str, Array]]:
    """
    Return what presumed unknowns leave of some rows.

    Parameters
    ----------
    builder : RowBuilder
        Builds the rows.
    samples : SampleBatch
        Not many: all is held at once.
    unknowns : sequence of ndarray or None
        For each block; None where nothing is presumed.
    external : optional
        As for `RowBuilder.rows`.

    Returns
    -------
    list of dict of str to ndarray, shape (n,)
        By kind, for each block; NaN where an instant gives no row.

    """
    return [
        {} if x is None else {kind: rows.residuals(x) for kind, rows in kinds}
        for x, (_, kinds) in zip(unknowns, builder.sparse(samples, external=external), strict=True)
    ]


def suspects(
    builder: RowBuilder,
    samples: SampleBatch,
    presumed: Sequence[Presumed | None],
    limit: float,
    reach: float,
    external: Mapping[str, Array] | None = None,
) -> Mask:
    """
    Return when something unknown seems to act on which submodel.

    Parameters
    ----------
    builder : RowBuilder
        Builds the rows.
    samples : SampleBatch
        In the order of stamps.
    presumed : sequence of Presumed or None
        For each block; None where nothing is presumed, and nothing suspected.
    limit : float
        A row that is off by more than so many deviations is suspect.
    reach : float
        And what is recorded so long before and after, as filters spread it [s].
    external : optional
        As for `RowBuilder.rows`.

    Returns
    -------
    ndarray of bool, shape (n, n_blocks)

    """
    found = np.zeros((len(samples), len(presumed)), dtype=bool)
    unknowns = [None if known is None else known.x for known in presumed]
    for start in range(0, len(samples), INSTANTS_AT_ONCE):
        part = slice(start, start + INSTANTS_AT_ONCE)
        pushes = {frame: wrench[part] for frame, wrench in (external or {}).items()}
        left_over = residuals_of(builder, samples.take(part), unknowns, pushes)
        for k, kinds in enumerate(left_over):
            known = presumed[k]
            for kind, left in kinds.items():
                if known is not None and kind in known.noise:
                    found[part, k] |= np.abs(left) > limit * known.noise[kind]
    return np.stack([_near(samples.stamp_ns, column, reach) for column in found.T], axis=1)


def _near(stamps: NDArray[np.int64], bad: Mask, reach: float) -> Mask:
    """Return the instants within reach of bad ones."""
    margin = round(reach / NANOSECONDS)
    times = stamps[bad]
    first = np.searchsorted(times, stamps - margin)
    last = np.searchsorted(times, stamps + margin, side='right')
    return np.asarray(last > first)
