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

With unknown gains of drives, equations are linearised about a guess of the gains, see
`drive_gains`: otherwise gains and parameters of zero fit the logs without a payload best.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask, Stamps
from inertial_estimation.identification.drive_gains import (
    linearised,
    linearised_rows,
    settled,
    stepped,
)
from inertial_estimation.identification.equations.builder import EquationBuilder, Observed
from inertial_estimation.identification.equations.wrenches import EFFORT
from inertial_estimation.identification.evidence import Evidence, friction_scales
from inertial_estimation.identification.fit import fitted_at_prior
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.noise import noise_levels, spread
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.priors import entropic_model, widened
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.unknowns import gain_columns
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

N_PARTS = 10
"""Parts of the log to start from."""
FIRST_STEPS, MAX_STEPS, BEST_STARTS = 4, 40, 3
"""Steps from every start, then from the best ones, and the number of these."""
MIN_RELATIVE_NOISE = 1e-7
"""Noise over the right-hand sides: normal equations are no more exact."""
SINGULAR = 1e-13
"""Eigenvalues of normal equations below this share of the largest are zero."""
WINDOW_NS = 500_000_000
"""Length of windows: that of the shortest pushes."""
MIN_WINDOW_SHARE = 0.5
"""Share of a window that its equations are divided by at least."""
SAMPLES_AT_ONCE = 1500
NOISE_SAMPLES = 3000
"""Of each log from which the noise is estimated."""
REST_VELOCITY = 0.02
"""Velocity of a joint below which equations have a noise of their own: stiction [rad/s or m/s]."""
WEIGHT, STIFF = 1e-2, 1e6
"""Of the prior, as in all solvers, and of one that leaves the parameters as they are."""
MAX_NUMBERS = 8_000_000
"""Of equations held at once: as many windows are taken, evenly over the logs."""
SAMPLES_IN_WINDOW = 12


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
    kinds: Mapping[str, WindowEquations], n_windows: int, prior: Information, stiff: Information
) -> Trimmed:
    """Return the best fit to half of the windows; stiff: a prior that holds all parameters."""

    def sums(window: Indices, values: Array | None = None) -> Array:
        return np.bincount(window, values, minlength=n_windows).astype(np.float64)

    sizes = {
        kind: float(np.sqrt(np.mean(rows.system[:, -1] ** 2))) or 1.0
        for kind, rows in kinds.items()
    }
    counts = sums(np.concatenate([rows.window for rows in kinds.values()]))
    present = counts > 0

    def steps(kept: Mask, most: int, prior: Information, levels: dict[str, float]) -> Trimmed:
        for _ in range(most):
            x = _fitted_windows(kinds, kept, levels, prior)
            squares, levels = np.zeros(n_windows), {}
            for kind, (system, window) in kinds.items():
                left = system @ np.append(x, -1.0)
                own_counts, own = sums(window), sums(window, left**2)
                own_mean = own[own_counts > 0] / own_counts[own_counts > 0]
                level = float(np.sqrt(np.median(own_mean)))
                levels[kind] = max(level, MIN_RELATIVE_NOISE * sizes[kind])
                squares += sums(window, (left / levels[kind]) ** 2)
            score = np.where(present, squares / np.maximum(counts, 1), np.inf)
            better = np.argsort(score, kind='stable')[: (present.sum() + 1) // 2]
            before, kept = kept, np.isin(np.arange(n_windows), better)
            if (kept == before).all():
                break
        numbers = {kind: int(before[rows.window].sum()) for kind, rows in kinds.items()}
        total = sum(numbers[kind] * np.log(levels[kind]) for kind in numbers)
        pull = prior.R @ x - prior.rho
        objective = float((total + 0.5 * pull @ pull) / max(sum(numbers.values()), 1))
        return Trimmed(objective, x, levels, kept)

    at_prior = steps(present, FIRST_STEPS, stiff, sizes)
    parts = np.array_split(np.flatnonzero(present), N_PARTS)
    starts = [at_prior.kept, present, *(np.isin(np.arange(n_windows), part) for part in parts)]
    found = [steps(kept, FIRST_STEPS, prior, at_prior.noise) for kept in starts]
    found.sort(key=lambda one: one.objective)
    ends = [steps(one.kept, MAX_STEPS, prior, one.noise) for one in found[:BEST_STARTS]]
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
    values, vectors = np.linalg.eigh(G / np.outer(scales, scales))
    good = values > SINGULAR * values[-1]
    shares = vectors[:, good].T @ (g / scales) / values[good]
    return np.asarray(vectors[:, good] @ shares / scales)


def find_outliers(
    builder: EquationBuilder,
    observed: Observed,
    references: Sequence[Reference | None],
    limit: float,
    reach: float,
) -> tuple[Mask, list[dict[str, Array]]]:
    """
    Return the samples at which an unknown wrench seems to act, (n, n_blocks).

    limit: residual over the noise; reach: margin around such samples [s]. Also returns residuals
    of some of the other samples, by kind, for each block.
    """
    found = np.zeros((len(observed.samples), len(builder.blocks)), dtype=bool)
    left: list[dict[str, list[Array]]] = [defaultdict(list) for _ in references]
    stamps = observed.samples.stamp_ns
    for start in range(0, len(stamps), SAMPLES_AT_ONCE):
        stop = min(start + SAMPLES_AT_ONCE, len(stamps))
        first = int(np.searchsorted(stamps, stamps[start] - WINDOW_NS))
        last = int(np.searchsorted(stamps, stamps[stop - 1] + WINDOW_NS, side='right'))
        part, inner = slice(first, last), slice(start - first, stop - first)
        some = observed.take(part)
        for k, (one, (_, kinds)) in enumerate(zip(references, builder.sparse(some), strict=True)):
            if one is None:
                continue
            for kind, rows in kinds:
                residuals = rows.residuals(one.x)
                for name, here in regimes(builder.robot, some.samples, kind):
                    values = np.where(here, residuals, np.nan)
                    left[k][name].append(values[inner])
                    if name in one.noise:
                        size = windowed_size(stamps[part], values)
                        found[start:stop, k] |= (size > limit * one.noise[name])[inner]
    margin = round(reach * 1e9)
    for bad in found.T:
        times = stamps[bad]
        bad[:] = np.searchsorted(times, stamps + margin, side='right') > np.searchsorted(
            times, stamps - margin
        )
    every = -(-len(stamps) // NOISE_SAMPLES)
    others = []
    for kinds_left, bad in zip(left, found.T, strict=True):
        own = {kind: np.concatenate(parts)[~bad][::every] for kind, parts in kinds_left.items()}
        others.append({kind: values[np.isfinite(values)] for kind, values in own.items()})
    return found, others


def regimes(robot: Robot, samples: SampleBatch, kind: str) -> Iterator[tuple[str, Mask]]:
    """Yield the samples, (n,), in which a joint moves, and those in which it rests."""
    if not kind.startswith(EFFORT):
        yield kind, np.ones(len(samples), dtype=bool)
        return
    joint = robot.joint_names.index(kind.removeprefix(EFFORT))
    slow = np.abs(samples.velocities[:, joint]) < REST_VELOCITY
    yield kind, ~slow
    yield f'{kind} at rest', slow


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


def cleanest(
    builder: EquationBuilder, evidence: Sequence[Evidence], logs: Iterable[Observed], n_logs: int
) -> list[Reference | None]:
    """Return the reference of each submodel from the cleanest half of the windows of some logs."""
    robot = builder.robot
    widths = sum(len(block.kinds) * (len(block.unknowns) + 1) for block in builder.blocks)
    most = max(2, MAX_NUMBERS // (widths * SAMPLES_IN_WINDOW * n_logs))
    with one_thread():
        guesses = [_guess(robot, one) for one in evidence]
        parts: list[dict[str, list[WindowEquations]]] = [defaultdict(list) for _ in evidence]
        for k, log in enumerate(logs):
            chosen, window = _windows(log.samples.stamp_ns, most)
            some = log.take(chosen)
            for found, guess, (block, kinds) in zip(
                parts, guesses, builder.sparse(some), strict=True
            ):
                n = len(block.unknowns)
                for kind, sparse in kinds:
                    good = np.isfinite(sparse.residuals(np.zeros(n)))
                    system, _ = sparse.system(np.arange(n))
                    system = linearised_rows(system, guess, gain_columns(block.unknowns))
                    for name, here in regimes(robot, some.samples, kind):
                        own = WindowEquations(system[here[good]], window[good & here] + k * most)
                        found[name].append(own)
        return [
            _trimmed(robot, one, guess, found, n_logs * most)
            for one, guess, found in zip(evidence, guesses, parts, strict=True)
        ]


def _trimmed(
    robot: Robot,
    evidence: Evidence,
    guess: Array,
    parts: Mapping[str, Sequence[WindowEquations]],
    n_windows: int,
) -> Reference | None:
    """Return the reference of a submodel from parts of its equations."""
    kinds = {
        kind: WindowEquations(*map(np.concatenate, zip(*some, strict=True)))
        for kind, some in parts.items()
        if any(len(part.system) for part in some)
    }
    if not kinds:
        return None
    half = sum(len(one.system) for one in kinds.values()) / 2
    count = sum(evidence.used.values())
    prior, stiff = (_prior(robot, evidence, w * half, count, guess) for w in (WEIGHT, STIFF))
    found = least_trimmed(kinds, n_windows, prior, stiff)
    gains = gain_columns(evidence.block.unknowns)
    found.x[gains] = stepped(guess[gains], found.x[gains])
    return Reference(found.x, found.noise)


def refitted(
    robot: Robot, evidence: Evidence, left: Mapping[str, Array], before: Reference | None
) -> Reference | None:
    """Return the reference of a submodel from the equations that agree with the one before."""
    if before is None or not evidence.count:
        return before
    with one_thread():
        x = _fitted(robot, evidence, before.x)
    noise = {kind: float(spread(some)) for kind, some in left.items()}
    return Reference(x, {kind: level for kind, level in noise.items() if level > 0})


def _guess(robot: Robot, evidence: Evidence) -> Array:
    """Return unknowns to linearise about; zeros where no gain is unknown."""
    unknowns = evidence.block.unknowns
    if not len(gain_columns(unknowns)) or not evidence.count:
        return np.zeros(len(unknowns))
    prior = widened(robot.link_names, robot.parameters)[0][list(evidence.block.submodel.links)]
    return _fitted(robot, evidence, fitted_at_prior(evidence, prior))


def _fitted(robot: Robot, evidence: Evidence, x: Array) -> Array:
    """Return the fit to equations with a weak prior, gains from a guess on."""
    unknowns, count = evidence.block.unknowns, evidence.count
    gains = gain_columns(unknowns)

    def step(x: Array) -> Array:
        prior = _prior(robot, evidence, WEIGHT * count, count, x)
        levels = noise_levels(linearised(evidence.kinds, x, unknowns), prior=prior)
        fitted = levels.information.merge(prior)
        return RowSpace.of(fitted.R).solve(fitted.rho)

    return settled(step, x, gains)[0] if len(gains) else step(x)


def _prior(robot: Robot, evidence: Evidence, weight: float, count: float, x: Array) -> Information:
    """Return the prior: of inertial parameters with a weight, of friction as in a fit."""
    unknowns, links = evidence.block.unknowns, list(evidence.block.submodel.links)
    parameters = widened(robot.link_names, robot.parameters)[0][links]
    known = entropic_model(unknowns, parameters, parameters, None, weight)
    rows = np.eye(len(unknowns))[unknowns.n_inertial :]
    rows *= (np.sqrt(WEIGHT * count) / friction_scales(evidence, x))[:, None]
    return known.add(rows, np.zeros(len(rows)))


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
