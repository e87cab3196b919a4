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
samples beside a strong push have one window without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.identification.equations.builder import EquationBuilder, Observed
from inertial_estimation.identification.information import Information
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

N_PARTS = 10
"""Parts of the log to start from."""
FIRST_STEPS = 4
"""From every start."""
BEST_STARTS = 3
"""That are followed to the end."""
MAX_STEPS = 40
"""From these."""
MIN_RELATIVE_NOISE = 1e-7
"""Noise over the right-hand sides: normal equations are no more exact."""
SINGULAR = 1e-13
"""Eigenvalues of normal equations below this share of the largest are zero."""
WINDOW = 0.5
"""Length of windows [s]: that of the shortest pushes."""
MIN_WINDOW_SHARE = 0.5
"""Share of a window that its equations are divided by at least."""
SAMPLES_AT_ONCE = 1500
NOISE_SAMPLES = 3000
"""Of each log from which the noise is estimated."""
NANOSECONDS = 1e-9
EFFORT = 'effort '
"""Prefix of the kinds of effort equations."""
REST_VELOCITY = 0.02
"""Velocity of a joint below which equations have a noise of their own: stiction [rad/s or m/s]."""


class WindowEquations(NamedTuple):
    """Equations of one kind."""

    system: Array
    """[Y y], shape (m, n_unknowns + 1)."""
    window: NDArray[np.intp]
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


def least_trimmed(
    kinds: Mapping[str, WindowEquations], n_windows: int, prior: Information, stiff: Information
) -> Trimmed:
    """Return the best fit to half of the windows; stiff: a prior that holds all parameters."""
    search = _Search(kinds, n_windows)
    at_prior = search.steps(search.all, FIRST_STEPS, stiff)
    parts = np.array_split(np.flatnonzero(search.all), N_PARTS)
    starts = [at_prior.kept, search.all, *(np.isin(np.arange(n_windows), part) for part in parts)]
    found = [search.steps(kept, FIRST_STEPS, prior, at_prior.noise) for kept in starts]
    found.sort(key=lambda one: one.objective)
    ends = [search.steps(one.kept, MAX_STEPS, prior, one.noise) for one in found[:BEST_STARTS]]
    return min(ends, key=lambda one: one.objective)


class _Search:
    """Steps from some windows to others."""

    def __init__(self, kinds: Mapping[str, WindowEquations], n_windows: int) -> None:
        self._kinds = kinds
        self._sizes = {
            kind: float(np.sqrt(np.mean(rows.system[:, -1] ** 2))) or 1.0
            for kind, rows in kinds.items()
        }
        self._n = n_windows
        windows = np.concatenate([rows.window for rows in kinds.values()])
        self._counts = self._sums(windows)
        self.all: Mask = self._counts > 0
        """Windows with equations."""

    def _sums(self, window: NDArray[np.intp], values: Array | None = None) -> Array:
        """Return the sum of values, or their number, in each window."""
        return np.asarray(np.bincount(window, values, minlength=self._n), dtype=np.float64)

    def steps(
        self, kept: Mask, count: int, prior: Information, noise: dict[str, float] | None = None
    ) -> Trimmed:
        """Take at most some number of steps from some windows."""
        levels = dict(self._sizes) if noise is None else noise
        for _ in range(count):
            x = self._fitted(kept, levels, prior)
            left = {kind: rows.system @ np.append(x, -1.0) for kind, rows in self._kinds.items()}
            squares, levels = np.zeros(self._n), {}
            for kind, rows in self._kinds.items():
                counts, own = self._sums(rows.window), self._sums(rows.window, left[kind] ** 2)
                mine = counts > 0
                level = float(np.sqrt(np.median(own[mine] / counts[mine])))
                levels[kind] = max(level, MIN_RELATIVE_NOISE * self._sizes[kind])
                squares += self._sums(rows.window, (left[kind] / levels[kind]) ** 2)
            score = np.where(self.all, squares / np.maximum(self._counts, 1), np.inf)
            better = np.argsort(score, kind='stable')[: (self.all.sum() + 1) // 2]
            before, kept = kept, np.isin(np.arange(self._n), better)
            if (kept == before).all():
                break
        numbers = {kind: int(before[rows.window].sum()) for kind, rows in self._kinds.items()}
        total = sum(numbers[kind] * np.log(levels[kind]) for kind in numbers)
        pull = prior.R @ x - prior.rho
        objective = float((total + 0.5 * pull @ pull) / max(sum(numbers.values()), 1))
        return Trimmed(objective, x, levels, kept)

    def _fitted(self, kept: Mask, levels: Mapping[str, float], prior: Information) -> Array:
        """Return the unknowns that fit some windows."""
        rows = np.column_stack([prior.R, prior.rho])
        normal = rows.T @ rows
        for kind, (system, window) in self._kinds.items():
            mine = system[kept[window]]
            normal += mine.T @ mine / levels[kind] ** 2
        G, g = normal[:-1, :-1], normal[:-1, -1]
        scales = np.sqrt(np.diag(G))
        scales[scales == 0.0] = 1.0
        values, vectors = np.linalg.eigh(G / np.outer(scales, scales))
        good = values > SINGULAR * values[-1]
        shares = vectors[:, good].T @ (g / scales) / values[good]
        return np.asarray(vectors[:, good] @ shares / scales)


class Reference(NamedTuple):
    """Unknowns and noise of one submodel with which equations are compared."""

    x: Array
    noise: Mapping[str, float]
    """Standard deviation of each kind of equation."""


class Outliers(NamedTuple):
    """Samples at which an unknown wrench seems to act."""

    at: Mask
    """Shape (n, n_blocks)."""
    left: list[dict[str, Array]]
    """Residuals of some of the other samples, by kind, for each block."""


def regimes(robot: Robot, samples: SampleBatch, kind: str) -> Iterator[tuple[str, Mask]]:
    """Yield the samples, (n,), in which a joint moves, and those in which it rests."""
    if not kind.startswith(EFFORT):
        yield kind, np.ones(len(samples), dtype=bool)
        return
    joint = robot.joint_names.index(kind[len(EFFORT) :])
    slow = np.abs(samples.velocities[:, joint]) < REST_VELOCITY
    yield kind, ~slow
    yield f'{kind} at rest', slow


def find_outliers(
    builder: EquationBuilder,
    observed: Observed,
    references: Sequence[Reference | None],
    limit: float,
    reach: float,
) -> Outliers:
    """
    Return the samples at which an unknown wrench seems to act.

    limit: residual over the noise; reach: margin around such samples [s].
    """
    found = np.zeros((len(observed.samples), len(builder.blocks)), dtype=bool)
    left: list[dict[str, list[Array]]] = [{} for _ in references]
    stamps, span = observed.samples.stamp_ns, round(WINDOW / NANOSECONDS)
    every = -(-len(stamps) // NOISE_SAMPLES)
    for start in range(0, len(stamps), SAMPLES_AT_ONCE):
        stop = min(start + SAMPLES_AT_ONCE, len(stamps))
        first = int(np.searchsorted(stamps, stamps[start] - span))
        last = int(np.searchsorted(stamps, stamps[stop - 1] + span, side='right'))
        part, inner = slice(first, last), slice(start - first, stop - first)
        some = observed.take(part)
        for k, (one, (_, kinds)) in enumerate(zip(references, builder.sparse(some), strict=True)):
            if one is None:
                continue
            for kind, rows in kinds:
                all_left = rows.residuals(one.x)
                for name, here in regimes(builder.robot, some.samples, kind):
                    values = np.where(here, all_left, np.nan)
                    left[k].setdefault(name, []).append(values[inner])
                    if name in one.noise:
                        size = windowed_size(stamps[part], values)
                        found[start:stop, k] |= (size > limit * one.noise[name])[inner]
    at = np.stack([_near(stamps, column, reach) for column in found.T], axis=1)
    others = []
    for kinds_left, column in zip(left, at.T, strict=True):
        own = {kind: np.concatenate(parts)[~column][::every] for kind, parts in kinds_left.items()}
        others.append({kind: values[np.isfinite(values)] for kind, values in own.items()})
    return Outliers(at, others)


def windowed_size(stamps: NDArray[np.int64], residuals: Array) -> Array:
    """Return the smaller root mean square of the windows before and after each sample, (n,)."""
    span = round(WINDOW / NANOSECONDS)
    there = np.isfinite(residuals)
    squares = np.append(0.0, np.cumsum(np.where(there, residuals, 0.0) ** 2))
    counts = np.append(0, np.cumsum(there))
    here = np.arange(len(stamps))
    begin = np.searchsorted(stamps, stamps - span)
    end = np.searchsorted(stamps, stamps + span, side='right')

    def mean(first: NDArray[np.intp], last: NDArray[np.intp]) -> Array:
        n = np.maximum(counts[last] - counts[first], MIN_WINDOW_SHARE * (last - first))
        return np.asarray((squares[last] - squares[first]) / n)

    smaller = np.minimum(mean(begin, here + 1), mean(here, end))
    return np.asarray(np.sqrt(np.maximum(smaller, 0.0)))


def _near(stamps: NDArray[np.int64], bad: Mask, reach: float) -> Mask:
    """Return the samples within reach of bad ones."""
    margin = round(reach / NANOSECONDS)
    times = stamps[bad]
    first = np.searchsorted(times, stamps - margin)
    last = np.searchsorted(times, stamps + margin, side='right')
    return np.asarray(last > first)
