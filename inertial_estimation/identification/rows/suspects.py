# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Instants at which something acts on a robot that nobody has told of: residuals stick out.

Rows under an unknown wrench say nothing of what links weigh [T 7.3]. Such a wrench acts for a
while, and so does what it leaves in the rows. An instant is suspect if the rows of a kind are off
by many times their noise in the window that ends there, and in the one that begins there: what
pushes weakly is seen, as a whole window tells more than a row, and the instants just before and
after a strong push are not taken for disturbed, as one of their windows is clean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.rows.builder import RowBuilder
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

WINDOW = 0.5
"""Length of the windows [s]: about as long as the shortest pushes, and many rows for the noise."""
LEAST = 0.5
"""Share of a window that its rows are divided by at least: a few rows do not make it suspect."""
INSTANTS_AT_ONCE = 1500
INSTANTS_TOLD = 3000
"""Of each log, from which the noise is told."""
NANOSECONDS = 1e-9
EFFORT = 'effort '
"""How the kinds of rows of joints begin."""
SLOW = 0.02
"""
Velocity of a joint below which its rows have a noise of their own [rad/s or m/s]: stiction may be
anything up to the Coulomb friction there, while drives that stand still hardly vibrate.
"""


class Presumed(NamedTuple):
    """What is taken for true of one submodel while contacts are looked for."""

    x: Array
    """Unknowns."""
    noise: Mapping[str, float]
    """Standard deviation of each kind of row."""


class Observed(NamedTuple):
    """Samples of a log, and what is known of wrenches on the robot and of payloads at them."""

    samples: SampleBatch
    """In the order of stamps, n of them."""
    external: Mapping[str, Array]
    """As for `RowBuilder.rows`, each of shape (n, 6) [N, Nm]."""
    free: Mask
    """Where nothing unknown is known to act, shape (n, n_blocks)."""
    carried: Array
    """One where a payload is there, zero where it is not, shape (n, n_payloads)."""

    def take(self, some: slice | NDArray[np.intp]) -> Observed:
        """Return some of them."""
        external = {frame: wrench[some] for frame, wrench in self.external.items()}
        return Observed(self.samples.take(some), external, self.free[some], self.carried[some])


class Suspects(NamedTuple):
    """When something unknown seems to act."""

    at: Mask
    """Shape (n, n_blocks)."""
    left: list[dict[str, Array]]
    """Residuals at some of the other instants, by kind, for each block; none is NaN."""


def residuals_of(
    builder: RowBuilder, observed: Observed, unknowns: Sequence[Array | None]
) -> list[dict[str, Array]]:
    """
    Return what presumed unknowns leave of some rows.

    Returns (n,).
    """
    found = []
    samples, external, free, carried = observed
    blocks = builder.sparse(samples, external=external, free=free, carried=carried)
    for x, (_, kinds) in zip(unknowns, blocks, strict=True):
        of_block: dict[str, Array] = {}
        if x is not None:
            for kind, rows in kinds:
                left = rows.residuals(x)
                for name, here in regimes(builder.robot, samples, kind):
                    of_block[name] = np.where(here, left, np.nan)
        found.append(of_block)
    return found


def regimes(robot: Robot, samples: SampleBatch, kind: str) -> Iterator[tuple[str, Mask]]:
    """
    Yield the instants whose rows of a kind have the same noise: of joints that turn or rest.

    Returns (n,).
    """
    if not kind.startswith(EFFORT):
        yield kind, np.ones(len(samples), dtype=bool)
        return
    joint = robot.joint_names.index(kind[len(EFFORT) :])
    slow = np.abs(samples.velocities[:, joint]) < SLOW
    yield kind, ~slow
    yield f'{kind} at rest', slow


def suspects(
    builder: RowBuilder,
    observed: Observed,
    presumed: Sequence[Presumed | None],
    limit: float,
    reach: float,
) -> Suspects:
    """
    Return when something unknown seems to act on which submodel.

    reach [s].
    """
    found = np.zeros_like(observed.free)
    unknowns = [None if one is None else one.x for one in presumed]
    left: list[dict[str, list[Array]]] = [{} for _ in presumed]
    stamps, span = observed.samples.stamp_ns, round(WINDOW / NANOSECONDS)
    every = -(-len(stamps) // INSTANTS_TOLD)
    for start in range(0, len(stamps), INSTANTS_AT_ONCE):
        stop = min(start + INSTANTS_AT_ONCE, len(stamps))
        first = int(np.searchsorted(stamps, stamps[start] - span))
        last = int(np.searchsorted(stamps, stamps[stop - 1] + span, side='right'))
        part, inner = slice(first, last), slice(start - first, stop - first)
        residuals = residuals_of(builder, observed.take(part), unknowns)
        for k, kinds in enumerate(residuals):
            found[start:stop, k] = _off(stamps[part], kinds, presumed[k], limit)[inner]
            for kind, values in kinds.items():
                left[k].setdefault(kind, []).append(values[inner])
    at = np.stack([_near(stamps, column, reach) for column in found.T], axis=1)
    return Suspects(at, [_others(kinds, ~column, every) for kinds, column in zip(left, at.T)])


def _off(
    stamps: NDArray[np.int64], kinds: Mapping[str, Array], presumed: Presumed | None, limit: float
) -> Mask:
    """Return when some kind of row is off before as well as after."""
    found = np.zeros(len(stamps), dtype=bool)
    for kind, left in kinds.items():
        if presumed is not None and kind in presumed.noise:
            found |= windowed_size(stamps, left) > limit * presumed.noise[kind]
    return found


def _others(kinds: Mapping[str, list[Array]], others: Mask, every: int) -> dict[str, Array]:
    """Return one in so many of the residuals where nothing is suspect."""
    found = {}
    for kind, parts in kinds.items():
        values = np.concatenate(parts)[others][::every]
        found[kind] = values[np.isfinite(values)]
    return found


def windowed_size(stamps: NDArray[np.int64], residuals: Array) -> Array:
    """
    Return the smaller of the root mean squares before and after each instant.

    stamps (n,) [ns]; residuals (n,); returns (n,).
    """
    span = round(WINDOW / NANOSECONDS)
    there = np.isfinite(residuals)
    squares = np.append(0.0, np.cumsum(np.where(there, residuals, 0.0) ** 2))
    counts = np.append(0, np.cumsum(there))
    here = np.arange(len(stamps))
    edges = np.searchsorted(stamps, stamps - span), here, here + 1, np.searchsorted(
        stamps, stamps + span, side='right'
    )  # fmt: skip

    def mean(first: NDArray[np.intp], last: NDArray[np.intp]) -> Array:
        n = np.maximum(counts[last] - counts[first], LEAST * (last - first))
        return np.asarray((squares[last] - squares[first]) / n)

    smaller = np.minimum(mean(edges[0], edges[2]), mean(edges[1], edges[3]))
    return np.asarray(np.sqrt(np.maximum(smaller, 0.0)))


def _near(stamps: NDArray[np.int64], bad: Mask, reach: float) -> Mask:
    """Return the instants within reach of bad ones."""
    margin = round(reach / NANOSECONDS)
    times = stamps[bad]
    first = np.searchsorted(times, stamps - margin)
    last = np.searchsorted(times, stamps + margin, side='right')
    return np.asarray(last > first)
