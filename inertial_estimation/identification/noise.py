# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Noise of each kind of equation, by iteratively reweighted least squares.

Kinds of equations (forces, moments, efforts of each joint) have noise of their own. It shows in
the residuals, which depend on the weights, which are one over the noise: both are found together
[S 81-83].
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.information import Information, weighted_sum
from inertial_estimation.identification.row_space import RowSpace

Array = NDArray[np.float64]

MAX_ROUNDS = 100
SETTLED = 1e-6
"""Relative change of every noise level at which the search ends."""
MIN_RELATIVE_NOISE = 1e-6
"""Noise over the right-hand sides; less would only bring the round-off of solvers nearer."""
MIN_FREEDOM = 0.5
"""Equations that a fit must leave to determine the noise; less is round-off."""
NORMAL_MEDIAN = 0.6744897501960817
"""Median of the absolute value of a standard normal number."""


@dataclass(frozen=True, eq=False)
class NoiseLevels:
    """Noise of each kind of equation."""

    deviations: dict[str, float]
    """Standard deviation of each kind, in its unit."""
    freedom: dict[str, float]
    """Equations of each kind that the fit did not use up."""
    information: Information
    """All equations in units of their noise, merged."""
    settled: bool
    """The last iteration changed next to nothing."""
    undetermined: Mapping[str, str] = field(default_factory=dict)
    """Kinds that are not used, as nothing is left to determine their noise, and why."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Kinds that are left out, and whether the search ended."""
        notes = tuple(f'left out: {why}' for why in self.undetermined.values())
        return notes if self.settled else (*notes, f'noise still changes after {MAX_ROUNDS} steps')


class UndeterminedNoiseError(ModelError):
    """The noise of no kind of equation is determined."""


class _UsedUpError(ModelError):
    """The fit uses up all equations of a kind."""

    def __init__(self, kind: str, count: float, used: float) -> None:
        super().__init__(f'{kind}: a fit uses up {used:.4g} of {count:.3g} equations')
        self.kind = kind


def noise_levels(
    kinds: Mapping[str, Information], *, prior: Information | None = None
) -> NoiseLevels:
    """Return the noise of each kind of equation; `prior`: equations of unit noise."""
    parts = {name: part for name, part in kinds.items() if part.count > 0}
    if not parts:
        raise ModelError('there are no equations: no sample was usable')
    sizes = {
        name: float(np.sqrt((float(part.rho @ part.rho) + part.energy) / part.count)) or 1.0
        for name, part in parts.items()
    }
    start = sizes
    if prior is not None:
        # Few equations are all used up where no prior holds the fit.
        with suppress(ModelError):
            start = sizes | _search(parts, sizes, sizes, None).deviations
    return _search(parts, start, sizes, prior)


def _search(
    parts: Mapping[str, Information],
    start: Mapping[str, float],
    sizes: Mapping[str, float],
    prior: Information | None,
) -> NoiseLevels:
    """Return the noise of those kinds that determine it."""
    left, undetermined = dict(parts), {}
    while True:
        try:
            found = _iterate(left, start, sizes, prior)
        except _UsedUpError as error:
            if len(left) == 1:
                raise UndeterminedNoiseError(f'noise is not determined: {error}') from error
            undetermined[error.kind] = str(error)
            del left[error.kind]
        else:
            return replace(found, undetermined=undetermined)


def _iterate(
    parts: Mapping[str, Information],
    start: Mapping[str, float],
    sizes: Mapping[str, float],
    prior: Information | None,
) -> NoiseLevels:
    def merged(levels: Mapping[str, float]) -> Information:
        return weighted_sum(parts.values(), [1.0 / levels[name] for name in parts])

    found, settled = {name: start[name] for name in parts}, False
    freedom: dict[str, float] = {}
    for _ in range(MAX_ROUNDS):
        rows = merged(found) if prior is None else merged(found).merge(prior)
        space = RowSpace.of(rows.R)
        x = space.solve(rows.rho)
        whitening = space.directions / space.scales[:, None] / space.strengths
        levels = {}
        for name, part in parts.items():
            used = float(np.sum((part.R @ whitening / found[name]) ** 2))
            freedom[name] = part.count - used
            level = np.sqrt(part.squared_residual(x) / max(freedom[name], MIN_FREEDOM))
            levels[name] = max(float(level), MIN_RELATIVE_NOISE * sizes[name])
        least = min(parts, key=lambda name: freedom[name])
        if freedom[least] < MIN_FREEDOM:
            count = parts[least].count
            raise _UsedUpError(least, count, count - freedom[least])
        settled = all(abs(levels[name] - found[name]) <= SETTLED * found[name] for name in levels)
        found = levels
        if settled:
            break
    return NoiseLevels(found, freedom, merged(found), settled)


def spread(residuals: Array) -> Array:
    """Return the noise of residuals along the first axis by their scaled median size."""
    if not np.isfinite(residuals).any():
        return np.full(residuals.shape[1:], np.nan)
    return np.asarray(np.nanmedian(np.abs(residuals), axis=0) / NORMAL_MEDIAN)
