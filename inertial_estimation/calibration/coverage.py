# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which directions of gravity a data set holds, which it lacks, and whether that is enough.

A person turns a body by words such as "+x -z down". So the sphere is cut into 26 directions: the
axes, the edges and the corners of a cube. Whether they are enough is told by the spread of gravity
itself, not by how many were visited: legs that tilt by 40 degrees reach a third of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.affine_subspace import LEAST_GAP
from inertial_estimation.calibration.excitation import ENOUGH, Orientations, orientations

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

STEPS = tuple(step for step in product((1, 0, -1), repeat=3) if any(step))
"""Of the 26 directions along x, y and z."""
DIRECTIONS: Array = np.array([np.array(step) / np.linalg.norm(step) for step in STEPS])
"""Unit vectors, shape (26, 3)."""
NAMES = tuple(
    ' '.join(f'{"+" if sign > 0 else "-"}{axis}' for axis, sign in zip('xyz', step, strict=True)
             if sign)
    for step in STEPS
)  # fmt: skip
"""Such as '+x -z'."""
CELLS = 6.0
"""Directions whose coordinates agree within a sixth of their length are alike."""
NEAR = np.cos(np.deg2rad(60.0))
"""Directions that are asked for lie within 60 degrees of one that was reached."""
WEIGHT = 0.1
"""Of the samples so far, how many a direction that is asked for would add."""
MOST_DISAGREEMENT = 0.05
"""
What moments may leave of one rigid body over the third spread of the readings: hysteresis of 3 %
leaves 2 %, a hand that pushes a body of 3 kg by 3 N in every second pose 9 %.
"""
SUGGESTED = 3
"""Directions that are asked for at a time."""


class Wanted(NamedTuple):
    """What is enough for a data set."""

    moments: int = 40
    """Still moments; fewer do not tell which are touched, see `raw_slopes`."""
    directions: int = 12
    """
    That are not alike, see `cell_of`. The readings of four poses always lie in three dimensions,
    whatever moves beyond the sensor, so that their subspace says nothing.
    """
    spread: float = 0.1
    """
    Of gravity along each direction, over its size: tilting by 40 degrees to each side of a pose
    about two axes.
    """


USUALLY_WANTED = Wanted()


@dataclass(frozen=True, eq=False)
class Coverage:
    """What a data set reaches."""

    counts: Indices
    """Still moments with gravity nearest to each of the 26 directions, shape (26,)."""
    orientations: Orientations | None
    """None: there is no still moment yet."""
    n_directions: int
    """That are not alike, see `cell_of`."""
    gap: float
    """Third singular value of the readings over the fourth; NaN: not known yet."""
    disagreement: float
    """
    What moments leave of one rigid body beyond noise, over the third spread of the readings; NaN:
    not known yet.
    """
    suggestions: tuple[str, ...]
    """Directions that would help most and are not far, best first."""
    shortfalls: tuple[str, ...]
    """What is lacking; empty: enough."""

    @property
    def is_enough(self) -> bool:
        """Whether the data set may be closed."""
        return not self.shortfalls

    @property
    def n_moments(self) -> int:
        """Still moments."""
        return int(self.counts.sum())

    @property
    def condition(self) -> float:
        """Largest spread of gravity over the smallest; infinite: a direction is missing."""
        if self.orientations is None or self.orientations.spreads[-1] <= 0.0:
            return float('inf')
        return float(self.orientations.spreads[0] / self.orientations.spreads[-1])

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the directions that were not reached."""
        return tuple(name for name, n in zip(NAMES, self.counts, strict=True) if not n)


def nearest(directions: Array) -> Indices:
    """
    Return which of the 26 directions is nearest.

    directions (..., 3); returns (...).
    """
    return np.asarray(np.argmax(directions @ DIRECTIONS.T, axis=-1))


def coverage_of(
    accelerations: Array,
    gap: float = np.nan,
    wanted: Wanted = USUALLY_WANTED,
    disagreement: float = np.nan,
) -> Coverage:
    """
    Tell what a data set reaches.

    accelerations (n, 3) [m/s^2].
    """
    n = len(accelerations)
    if not n:
        none = (f'0 still moments, expected {wanted.moments}',)
        return Coverage(
            np.zeros(len(STEPS), dtype=np.intp), None, 0, np.nan, np.nan, NAMES[:1], none
        )
    down = -accelerations / np.linalg.norm(accelerations, axis=1)[:, None]
    counts = np.bincount(nearest(down), minlength=len(STEPS))
    found = orientations(accelerations)
    n_directions = len({cell_of(one) for one in accelerations})
    said = [
        f'{many} {what}, expected {least}'
        for many, what, least in (
            (n, 'still moments', wanted.moments),
            (n_directions, 'directions', wanted.directions),
        )
        if many < least
    ]
    return Coverage(
        counts, found, n_directions, gap, disagreement, _suggestions(down, counts),
        (*said, *_shortfalls(found, gap, wanted, disagreement)),
    )  # fmt: skip


def cell_of(acceleration: Array) -> tuple[int, ...]:
    """
    Return what directions share that are alike, within ten degrees or so.

    acceleration (3,).
    """
    unit = acceleration / np.linalg.norm(acceleration)
    return tuple(int(x) for x in np.round(CELLS * unit))


def _shortfalls(found: Orientations, gap: float, wanted: Wanted, disagreement: float) -> list[str]:
    """Say what spreads and gap lack."""
    said = []
    least = max(wanted.spread, ENOUGH)
    for spread, axis in zip(found.spreads, found.directions, strict=True):
        if spread < least:
            along = ', '.join(f'{x + 0.0:.2f}' for x in axis)
            said.append(f'gravity along ({along}) spreads by {spread:.1%}, expected {least:.0%}')
    if gap < LEAST_GAP:
        said.append(
            f'the readings move along more than three directions (gap {gap:.1f}, expected '
            f'{LEAST_GAP:g}): hold all joints beyond the sensor, let nothing touch'
        )
    if disagreement > MOST_DISAGREEMENT:
        said.append(
            f'the moments do not agree on one rigid body by {disagreement:.0%} of what gravity '
            f'moves the readings, expected {MOST_DISAGREEMENT:.0%} at most: something touches it '
            'often, or is loose'
        )
    return said


def _suggestions(down: Array, counts: Indices) -> tuple[str, ...]:
    """Return directions nearby that raise the smallest spread most."""
    reached = DIRECTIONS[counts > 0]
    mean = down.mean(axis=0)
    square = (down - mean).T @ (down - mean) / len(down)
    gains = np.full(len(STEPS), -np.inf)
    for k, direction in enumerate(DIRECTIONS):
        if counts[k] or (reached @ direction).max() < NEAR:
            continue
        off = direction - mean
        with_it = (square + WEIGHT / (1.0 + WEIGHT) * np.outer(off, off)) / (1.0 + WEIGHT)
        gains[k] = np.linalg.eigvalsh(with_it)[0]
    best = np.argsort(-gains, kind='stable')[:SUGGESTED]
    return tuple(NAMES[k] for k in best if np.isfinite(gains[k]))
