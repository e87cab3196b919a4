# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How much rows count: the noise of each kind from its residuals, and outliers.

Rows of different kinds (forces, moments, efforts of each joint) have noise of their own, which
nobody states. It shows in the residuals, which depend on the weights, which are one over the
noise: both are found together by least squares that are weighted anew until nothing moves [S
81-83; re-weighted least squares].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.identification.information import Information, weighted_sum
from inertial_estimation.identification.row_space import RowSpace

Array = NDArray[np.float64]

SETTLED = 1e-6
"""Relative change of every noise level at which the search ends."""
EXACT = 1e-6
"""
Noise over the size of the right-hand sides that counts as none: such rows get the weight of
rows with this much. No sensor has less; a prior then pulls by about the square of it, and heavier
rows would only bring the round-off of solvers nearer.
"""
NORMAL_MEDIAN = 0.6744897501960817
"""Median of the absolute value of a standard normal number."""


@dataclass(frozen=True, eq=False)
class NoiseLevels:
    """Noise of each kind of row."""

    deviations: dict[str, float]
    """Standard deviation of each kind, in its unit."""
    freedom: dict[str, float]
    """Rows of each kind that the fit did not use up."""
    information: Information
    """All rows in units of their noise, merged."""
    iterations: int
    settled: bool
    """Whether the last iteration changed next to nothing."""
    untold: Mapping[str, str] = field(default_factory=dict)
    """Kinds whose rows are not used as nothing is left to tell their noise, and why."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of them before they are believed."""
        notes = [
            f'{why}; these rows are left out: record more to use them'
            for why in self.untold.values()
        ]
        if not self.settled:
            notes.append(f'the noise of the rows did not settle in {self.iterations} iterations')
        return tuple(notes)


def noise_levels(
    kinds: Mapping[str, Information],
    *,
    prior: Information | None = None,
    max_iterations: int = 100,
    settled: float = SETTLED,
) -> NoiseLevels:
    """Return the noise of each kind of row, by least squares that are weighted anew."""
    parts = {name: part for name, part in kinds.items() if part.count > 0}
    if not parts:
        raise ModelError('there are no rows to fit: no sample was usable')
    search = _Search(parts, {name: _size(part) for name, part in parts.items()})
    if prior is None:
        return search.told(search.sizes, None, max_iterations, settled)
    try:
        start = search.told(search.sizes, None, max_iterations, settled).deviations
    except ModelError:
        # Few rows are all used up where no prior holds the fit.
        start = {}
    return search.told(search.sizes | start, prior, max_iterations, settled)


class UndeterminedNoiseError(ModelError):
    """Nothing tells the noise of any kind of row."""


class _UsedUpError(ModelError):
    """Nothing is left of a kind of row to tell its noise."""

    def __init__(self, kind: str, count: float, used: float) -> None:
        self.why = (
            f'there are as good as {count:.3g} rows of independent noise, of which the fit uses '
            f'up {used:.4g}'
        )
        super().__init__(f'the noise of {kind} rows cannot be told: {self.why}')
        self.kind = kind


@dataclass(frozen=True, eq=False)
class _Search:
    """Least squares that are weighted anew."""

    parts: Mapping[str, Information]
    """Kinds that have rows."""
    sizes: dict[str, float]
    """Of their right-hand sides."""

    def told(
        self,
        start: Mapping[str, float],
        prior: Information | None,
        max_iterations: int,
        settled: float,
    ) -> NoiseLevels:
        """Return where noise levels lead to, of the kinds that tell theirs."""
        parts, untold = dict(self.parts), {}
        while True:
            try:
                some = {name: start[name] for name in parts}
                found = _Search(parts, self.sizes).run(some, prior, max_iterations, settled)
            except _UsedUpError as error:
                if len(parts) == 1:
                    raise UndeterminedNoiseError(
                        f'nothing tells the noise of any rows: of {error.kind}, for one, '
                        f'{error.why}; record more, or take fewer unknowns'
                    ) from error
                untold[error.kind] = str(error)
                del parts[error.kind]
            else:
                return replace(found, untold=untold)

    def run(
        self,
        start: Mapping[str, float],
        prior: Information | None,
        max_iterations: int,
        settled: float,
    ) -> NoiseLevels:
        """Return where noise levels lead to."""
        found, done, count = dict(start), False, 0
        while count < max_iterations and not done:
            merged = _merged(self.parts, found)
            fitted = merged if prior is None else merged.merge(prior)
            levels, freedom = _levels(self.parts, found, fitted, self.sizes)
            done = all(abs(levels[name] - found[name]) <= settled * found[name] for name in levels)
            found, count = levels, count + 1
        return NoiseLevels(found, freedom, _merged(self.parts, found), count, done)


def _size(part: Information) -> float:
    """Return the root mean square of the right-hand sides, one where they are zero."""
    square = (float(part.rho @ part.rho) + part.energy) / part.count
    return float(np.sqrt(square)) or 1.0


def _merged(parts: Mapping[str, Information], levels: Mapping[str, float]) -> Information:
    """Return all rows in units of their noise."""
    return weighted_sum(parts.values(), [1.0 / levels[name] for name in parts])


def _levels(
    parts: Mapping[str, Information],
    found: Mapping[str, float],
    merged: Information,
    sizes: Mapping[str, float],
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the noise that residuals show, and the rows of each kind that are left for it."""
    space = RowSpace.of(merged.R)
    x = space.solve(merged.rho)
    whitening = space.directions / space.scales[:, None] / space.strengths
    used = {
        name: float(np.sum((part.R @ whitening / found[name]) ** 2))
        for name, part in parts.items()
    }
    freedom = {name: part.count - used[name] for name, part in parts.items()}
    least = min(freedom, key=lambda name: freedom[name])
    # Less than half a row is round-off of a fit that uses up all of them.
    if freedom[least] < 0.5:
        raise _UsedUpError(least, parts[least].count, used[least])
    levels = {}
    for name, part in parts.items():
        level = np.sqrt(part.squared_residual(x) / freedom[name])
        levels[name] = max(float(level), EXACT * sizes[name])
    return levels, freedom


class Loss(Enum):
    """How residuals count, and from how many deviations on less, for 95 % efficiency."""

    HUBER = 1.345
    """Large ones linearly: a long-tailed noise."""
    TUKEY = 4.685
    """Very large ones not at all: contacts that nobody noticed."""


def robust_weights(residuals: Array, noise: Array, loss: Loss = Loss.TUKEY) -> Array:
    """
    Return how much samples count, from 0 to 1.

    residuals (n,); noise (); returns (n,).
    """
    rows = residuals[:, None] if residuals.ndim == 1 else residuals
    levels = np.atleast_1d(np.asarray(noise, dtype=float))
    if levels.shape not in ((1,), rows.shape[1:]):
        raise ShapeError('noise', rows.shape[1:], levels.shape, 'one for each row of a sample')
    if not (levels > 0.0).all():
        raise ModelError(f'noise must be positive, not {levels.min():g}')
    present = np.isfinite(rows)
    squares = np.where(present, rows / levels, 0.0) ** 2
    size = np.sqrt(squares.sum(axis=1) / np.maximum(present.sum(axis=1), 1))
    share = size / loss.value
    if loss is Loss.HUBER:
        weights = 1.0 / np.maximum(share, 1.0)
    else:
        weights = np.maximum(0.0, 1.0 - share**2) ** 2
    return np.where(present.any(axis=1), weights, 0.0)


def spread(residuals: Array) -> Array:
    """
    Return the noise of rows in spite of outliers: the median size, scaled.

    residuals (n,); returns ().
    """
    if not np.isfinite(residuals).any():
        return np.full(residuals.shape[1:], np.nan)
    return np.asarray(np.nanmedian(np.abs(residuals), axis=0) / NORMAL_MEDIAN)
