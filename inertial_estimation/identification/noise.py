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
from dataclasses import dataclass

import numpy as np

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.information import Information, weighted_sum
from inertial_estimation.identification.row_space import independent_fit

MAX_ROUNDS = 100
SETTLED, ROUGH = 1e-6, 1e-2
"""Relative change of every noise level at which the search ends, and that for a start of it."""
MAX_STEPS = 20.0
"""Rounds that one may go ahead."""
MIN_RELATIVE_NOISE = 1e-6
"""Noise over the right-hand sides; less would only bring the round-off of solvers nearer."""
MIN_FREEDOM = 0.5
"""Equations that a fit must leave to determine the noise; less is round-off."""


@dataclass(frozen=True, eq=False)
class NoiseLevels:
    """Noise of each kind of equation."""

    deviations: dict[str, float]
    """Standard deviation of each kind, in its unit."""
    information: Information
    """All equations in units of their noise, merged."""
    notes: tuple[str, ...]
    """Kinds that are left out, as their fit leaves no equations, and whether the search ended."""


class UndeterminedNoiseError(ModelError):
    """The noise of no kind of equation is determined."""


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
            start = sizes | _search(parts, sizes, sizes, None, ROUGH).deviations
    return _search(parts, start, sizes, prior)


def _search(
    parts: Mapping[str, Information],
    start: Mapping[str, float],
    sizes: Mapping[str, float],
    prior: Information | None,
    precision: float = SETTLED,
) -> NoiseLevels:
    """Return the noise of those kinds that determine it."""
    left, found, notes = dict(parts), dict(start), list[str]()
    rounds, settled, last = 0, False, None
    while True:
        own = weighted_sum(left.values(), [1.0 / found[name] for name in left])
        if settled:
            return NoiseLevels(found, own, tuple(notes))
        if rounds == MAX_ROUNDS:
            notes.append(f'noise still changes after {MAX_ROUNDS} steps')
            return NoiseLevels(found, own, tuple(notes))
        rows = own if prior is None else own.merge(prior)
        x, columns, root = independent_fit(rows)
        used = {
            name: float(np.sum((part.R[:, columns] @ root / found[name]) ** 2))
            for name, part in left.items()
        }
        freedom = {name: part.count - used[name] for name, part in left.items()}
        least = min(left, key=lambda name: freedom[name])
        if freedom[least] < MIN_FREEDOM:
            count = left.pop(least).count
            why = f'{least}: a fit uses up {used[least]:.4g} of {count:.3g} equations'
            if not left:
                raise UndeterminedNoiseError(f'noise is not determined: {why}')
            notes.append(f'left out: {why}')
            found, rounds, last = {name: start[name] for name in left}, 0, None
            continue
        levels = {}
        for name, part in left.items():
            level = np.sqrt(part.squared_residual(x) / freedom[name])
            levels[name] = max(float(level), MIN_RELATIVE_NOISE * sizes[name])
        settled = all(abs(levels[name] - found[name]) <= precision * found[name] for name in left)
        now, before = (np.log(list(one.values())) for one in (levels, found))
        step, ahead = now - before, now
        if last is not None and not settled:
            # Each round goes about the same share of the way: every second time all of it.
            bend = last - step
            ahead = now + min(max(step @ bend / (bend @ bend or 1.0), 0.0), MAX_STEPS) * step
            step = None
        last = step
        found, rounds = dict(zip(left, np.exp(ahead).tolist())), rounds + 1
