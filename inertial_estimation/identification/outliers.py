# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Outliers in time: samples at which an unknown wrench acts on a robot.

`least_trimmed` fits the better half of the windows of a log, whatever the others contain
[Rousseeuw 1984]. A step fits the windows of a half H, estimates the noise s of each kind of
equation from the median window, and takes those into H with the smallest residuals in units of
that noise [Rousseeuw, Van Driessen 1999]; the noise of H alone would shrink to zero with windows
in which a joint rests. Steps end near their start, so there are several: the prior with friction
and offsets fitted, parts of the log, and all windows. The end counts at which this is least, with
P x = p the equations of the prior and n_k those of a kind in H:

    sum over kinds of  n_k log s_k  +  1/2 |P x - p|^2

`find_outliers` then finds the samples whose residuals exceed the noise both in the window that
ends there and in the one that begins there. A window shows weaker pushes than a sample does, and
samples beside a strong push have one window without it. Half of the windows determine parameters
poorly, so `refitted` fits all equations that agree, and all are compared with that fit in turn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask, Stamps
from inertial_estimation.identification.equations.builder import EquationBuilder, Observed
from inertial_estimation.identification.evidence import SAMPLES_AT_ONCE, Evidence, friction_scales
from inertial_estimation.identification.fit import fitted_at_prior
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.noise import noise_levels
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.priors import entropic_model, widened
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.model.robot import Robot

N_PARTS = 10
"""Parts of the log to start from."""
FIRST_STEPS, MAX_STEPS, BEST_STARTS = 4, 40, 3
"""Steps from every start, then from the best ones, and the number of these."""
MIN_RELATIVE_NOISE = 1e-7
"""Noise over the right-hand sides: normal equations are no more exact."""
SINGULAR = 1e-13
"""Singular values of normal equations below this share of the largest are zero."""
WINDOW_NS = 500_000_000
"""Length of windows: that of the shortest pushes."""
MIN_WINDOW_SHARE = 0.5
"""Share of a window that its equations are divided by at least."""
WEIGHT = 1e-2
"""Of the prior, over the number of equations."""
MAX_NUMBERS = 8_000_000
"""Of equations held at once: as many windows are taken, evenly over the logs."""
SAMPLES_IN_WINDOW = 12
NORMAL_MEDIAN = 0.6744897501960817
"""Median of the absolute value of a standard normal number."""


class WindowEquations(NamedTuple):
    """Equations of one kind."""

    system: Array
    """[Y y], shape (m, n_unknowns + 1)."""
    window: Indices
    """Of each equation, shape (m,)."""


class Trimmed(NamedTuple):
    """A fit to half of the windows."""

    objective: float
    x: Array
    """Unknowns, shape (n_unknowns,)."""
    noise: dict[str, float]
    """Root mean square residual of each kind in its median window."""
    kept: Mask
    """Windows in the half, shape (n_windows,)."""


class Reference(NamedTuple):
    """Unknowns and noise of one submodel with which equations are compared."""

    x: Array
    noise: Mapping[str, float]
    """Standard deviation of each kind of equation."""


def least_trimmed(
    kinds: Mapping[str, WindowEquations], n_windows: int, prior: Information, start: Array
) -> Trimmed:
    """Return the best fit to half of the windows; start: unknowns of the prior, (n_unknowns,)."""

    def sums(window: Indices, values: Array | None = None) -> Array:
        return np.bincount(window, values, minlength=n_windows).astype(np.float64)

    counts = sums(np.concatenate([rows.window for rows in kinds.values()]))
    present = counts > 0

    def better_half(x: Array) -> tuple[dict[str, float], Mask]:
        squares, levels = np.zeros(n_windows), {}
        for kind, (system, window) in kinds.items():
            left = system @ np.append(x, -1.0)
            own_counts, own = sums(window), sums(window, left**2)
            own_mean = own[own_counts > 0] / own_counts[own_counts > 0]
            least = MIN_RELATIVE_NOISE * float(np.sqrt(np.mean(system[:, -1] ** 2)) or 1.0)
            levels[kind] = max(float(np.sqrt(np.median(own_mean))), least)
            squares += own / levels[kind] ** 2
        score = np.where(present, squares / np.maximum(counts, 1), np.inf)
        better = np.argsort(score, kind='stable')[: (present.sum() + 1) // 2]
        return levels, np.isin(np.arange(n_windows), better)

    def steps(kept: Mask, most: int, levels: dict[str, float]) -> Trimmed:
        for _ in range(most):
            x, before = _fitted_windows(kinds, kept, levels, prior), kept
            levels, kept = better_half(x)
            if (kept == before).all():
                break
        numbers = {kind: int(before[rows.window].sum()) for kind, rows in kinds.items()}
        total = sum(numbers[kind] * np.log(levels[kind]) for kind in numbers)
        pull = prior.R @ x - prior.rho
        objective = float((total + 0.5 * pull @ pull) / max(sum(numbers.values()), 1))
        return Trimmed(objective, x, levels, kept)

    levels, at_prior = better_half(start)
    parts = np.array_split(np.flatnonzero(present), N_PARTS)
    starts = [at_prior, present, *(np.isin(np.arange(n_windows), part) for part in parts)]
    found = [steps(kept, FIRST_STEPS, levels) for kept in starts]
    found.sort(key=lambda one: one.objective)
    ends = [steps(one.kept, MAX_STEPS, one.noise) for one in found[:BEST_STARTS]]
    return min(ends, key=lambda one: one.objective)


def _fitted_windows(
    kinds: Mapping[str, WindowEquations],
    kept: Mask,
    levels: Mapping[str, float],
    prior: Information,
) -> Array:
    """Return the unknowns that fit some windows, by normal equations."""
    rows = np.column_stack([prior.R, prior.rho])
    normal = rows.T @ rows
    for kind, (system, window) in kinds.items():
        mine = system[kept[window]]
        normal += mine.T @ mine / levels[kind] ** 2
    G, g = normal[:-1, :-1], normal[:-1, -1]
    scales = np.sqrt(np.diag(G))
    scales[scales == 0.0] = 1.0
    shares = np.linalg.lstsq(G / np.outer(scales, scales), g / scales, rcond=SINGULAR)[0]
    return np.asarray(shares / scales)


def find_outliers(
    builder: EquationBuilder,
    observed: Observed,
    references: Sequence[Reference],
    limit: float,
    margin: float,
) -> tuple[Mask, list[dict[str, Array]]]:
    """
    Return the samples at which an unknown wrench seems to act, (n, n_blocks).

    limit: residual over the noise; margin: around such samples [s]. Also returns residuals
    of the other samples, by kind, for each block.
    """
    found = np.zeros((len(observed.samples), len(builder.blocks)), dtype=bool)
    left: list[dict[str, list[Array]]] = [defaultdict(list) for _ in references]
    stamps = observed.samples.stamp_ns
    for start in range(0, len(stamps), SAMPLES_AT_ONCE):
        stop = min(start + SAMPLES_AT_ONCE, len(stamps))
        first = int(np.searchsorted(stamps, stamps[start] - WINDOW_NS))
        last = int(np.searchsorted(stamps, stamps[stop - 1] + WINDOW_NS, side='right'))
        part, inner = slice(first, last), slice(start - first, stop - first)
        blocks = builder.sparse(observed.take(part))
        for k, (one, (_, kinds)) in enumerate(zip(references, blocks, strict=True)):
            for kind, rows in kinds:
                residuals = rows.residuals(one.x)
                left[k][kind].append(residuals[inner])
                size = windowed_size(stamps[part], residuals)
                found[start:stop, k] |= (size > limit * one.noise.get(kind, np.inf))[inner]
    margin_ns = round(margin * 1e9)
    for bad in found.T:
        times = stamps[bad]
        before = np.searchsorted(times, stamps - margin_ns)
        bad[:] = np.searchsorted(times, stamps + margin_ns, side='right') > before
    others = [
        {kind: np.concatenate(parts)[~bad] for kind, parts in own.items()}
        for own, bad in zip(left, found.T, strict=True)
    ]
    return found, others


def windowed_size(stamps: Stamps, residuals: Array) -> Array:
    """Return the smaller root mean square of the windows before and after each sample, (n,)."""
    there = np.isfinite(residuals)
    squares = np.append(0.0, np.cumsum(np.where(there, residuals, 0.0) ** 2))
    counts = np.append(0, np.cumsum(there))
    here = np.arange(len(stamps))
    begin = np.searchsorted(stamps, stamps - WINDOW_NS)
    end = np.searchsorted(stamps, stamps + WINDOW_NS, side='right')

    def mean(first: Indices, last: Indices) -> Array:
        n = np.maximum(counts[last] - counts[first], MIN_WINDOW_SHARE * (last - first))
        return np.asarray((squares[last] - squares[first]) / n)

    smaller = np.minimum(mean(begin, here + 1), mean(here, end))
    return np.asarray(np.sqrt(np.maximum(smaller, 0.0)))


@one_thread()
def cleanest(
    builder: EquationBuilder, evidence: Sequence[Evidence], logs: Iterable[Observed], n_logs: int
) -> list[Reference]:
    """Return the reference of each submodel from the cleanest half of the windows of some logs."""
    widths = sum(len(block.kinds) * (len(block.unknowns) + 1) for block in builder.blocks)
    most = max(2, MAX_NUMBERS // (widths * SAMPLES_IN_WINDOW * n_logs))
    parts: list[dict[str, list[WindowEquations]]] = [defaultdict(list) for _ in evidence]
    for k, log in enumerate(logs):
        chosen, window = _windows(log.samples.stamp_ns, most)
        for found, (_, kinds) in zip(parts, builder.sparse(log.take(chosen)), strict=True):
            for kind, rows in kinds:
                system, good = rows.system()
                if good.any():
                    found[kind].append(WindowEquations(system, window[good] + k * most))
    references = []
    for one, found in zip(evidence, parts, strict=True):
        together = {
            kind: WindowEquations(*map(np.concatenate, zip(*some, strict=True)))
            for kind, some in found.items()
        }
        if not together:
            references.append(Reference(np.zeros(len(one.block.unknowns)), {}))
            continue
        half = sum(len(rows.system) for rows in together.values()) / 2
        prior, parameters = _prior(builder.robot, one, WEIGHT * half)
        start = fitted_at_prior(one, parameters)
        trimmed = least_trimmed(together, n_logs * most, prior, start)
        references.append(Reference(trimmed.x, trimmed.noise))
    return references


@one_thread()
def refitted(
    robot: Robot, evidence: Evidence, left: Mapping[str, Array], before: Reference
) -> Reference:
    """Return the reference of a submodel from the equations that agree with the one before."""
    if not evidence.count:
        return before
    prior, _ = _prior(robot, evidence, WEIGHT * evidence.count)
    fitted = noise_levels(evidence.kinds, prior=prior).information.merge(prior)
    noise = {
        kind: float(np.nanmedian(np.abs(residuals))) / NORMAL_MEDIAN
        for kind, residuals in left.items()
        if np.isfinite(residuals).any()
    }
    known = {kind: level for kind, level in noise.items() if level > 0}
    return Reference(RowSpace.of(fitted.R).solve(fitted.rho), known)


def _prior(robot: Robot, evidence: Evidence, weight: float) -> tuple[Information, Array]:
    """Return the equations of a prior of some weight, and its parameters, (n_links, 10)."""
    block = evidence.block
    prior = widened(robot.link_names, robot.parameters)[0][list(block.submodel.links)]
    scales = friction_scales(evidence)
    return entropic_model(block.unknowns, prior, prior, scales, weight), prior


def _windows(stamps: Stamps, most: int) -> tuple[Indices, Indices]:
    """Return samples of some windows, and the window of each."""
    numbers, first, counts = np.unique(
        (stamps - stamps[0]) // WINDOW_NS, return_index=True, return_counts=True
    )
    some = np.unique(np.linspace(0, len(numbers) - 1, min(most, len(numbers))).astype(int))
    picked = [
        first[k] + np.unique(np.linspace(0, counts[k] - 1, SAMPLES_IN_WINDOW).astype(int))
        for k in some
    ]
    window = np.repeat(np.arange(len(some)), [len(one) for one in picked])
    return np.concatenate(picked).astype(np.intp), window
