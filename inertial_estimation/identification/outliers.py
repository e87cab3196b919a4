# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A fit that nearly half of the rows cannot spoil: least trimmed squares of windows of time.

What acts on a robot acts for a while, so windows are judged and not rows. The fit is sought whose
better half of the windows is best, whatever the others say [Rousseeuw 1984]. A step fits the
windows of a half H, tells the noise s of each kind of row from the median window, and takes those
into H of which the fit leaves least in units of that noise [Rousseeuw, Van Driessen 1999]. The
median of all windows is used since the noise in H shrinks to nothing where H can choose windows
in which a joint rests. Steps end where nothing moves, near their start, so there are several:

* the description with friction and offsets refitted, which is good where its bodies are;
* stretches of time, as what acts leaves some of them alone;
* all windows, which is good where little is disturbed: a fit to more than that may follow what is
  disturbed, if the robot moves more there.

The end counts at which this is least, with P x = p the rows of the prior and n_k those of a kind
in H:

    sum over kinds of  n_k log s_k  +  1/2 |P x - p|^2

Half of the windows are let go, disturbed or not: the answer is one from which to judge them all.

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

from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.information import Information
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

STRETCHES = 10
"""Stretches of time to start from."""
FIRST_STEPS = 4
"""From every start."""
BEST = 3
"""Starts that are followed to the end."""
LAST_STEPS = 40
"""From these, at most."""
EXACT = 1e-7
"""Noise over the size of right-hand sides that counts as none: normal equations leave more."""
SINGULAR = 1e-13
"""Eigenvalues of normal equations below this share of the largest are zero."""


class WindowRows(NamedTuple):
    """Rows of one kind."""

    system: Array
    """[Y y], shape (m, n_unknowns + 1)."""
    window: NDArray[np.intp]
    """Of each row, shape (m,)."""


class Trimmed(NamedTuple):
    """A fit to half of the windows."""

    objective: float
    """What is minimised."""
    x: Array
    """Unknowns, shape (n_unknowns,)."""
    noise: dict[str, float]
    """Root mean square residual of each kind in its median window, in its unit."""
    kept: Mask
    """Which windows, shape (n_windows,)."""


def least_trimmed(
    kinds: Mapping[str, WindowRows], n_windows: int, prior: Information, stiff: Information
) -> Trimmed:
    """Return the fit whose better half of the windows is best."""
    search = _Search(kinds, n_windows, prior)
    described = search.steps(search.all, FIRST_STEPS, stiff)
    starts = [described.kept, search.all, *search.stretches()]
    found = [search.steps(kept, FIRST_STEPS, prior, described.noise) for kept in starts]
    found.sort(key=lambda one: one.objective)
    ends = [search.steps(one.kept, LAST_STEPS, prior, one.noise) for one in found[:BEST]]
    return min(ends, key=lambda one: one.objective)


class _Search:
    """Rows, and the steps that are taken with them."""

    def __init__(
        self, kinds: Mapping[str, WindowRows], n_windows: int, prior: Information
    ) -> None:
        self._kinds = kinds
        self._prior = prior
        self._sizes = {
            kind: float(np.sqrt(np.mean(rows.system[:, -1] ** 2))) or 1.0
            for kind, rows in kinds.items()
        }
        windows = np.concatenate([rows.window for rows in kinds.values()])
        self._counts = np.bincount(windows, minlength=n_windows)
        self.all: Mask = self._counts > 0
        """Windows with rows."""

    def stretches(self) -> Iterator[Mask]:
        """Yield consecutive windows."""
        for part in np.array_split(np.flatnonzero(self.all), STRETCHES):
            kept = np.zeros(len(self.all), dtype=bool)
            kept[part] = True
            yield kept

    def steps(
        self, kept: Mask, count: int, prior: Information, noise: dict[str, float] | None = None
    ) -> Trimmed:
        """Take steps from some windows, at most so many."""
        levels = dict(self._sizes) if noise is None else noise
        for _ in range(count):
            x = self._fitted(kept, levels, prior)
            left = {kind: rows.system @ np.append(x, -1.0) for kind, rows in self._kinds.items()}
            levels = self._levels(left)
            before, kept = kept, self._better_half(left, levels)
            if (kept == before).all():
                break
        return Trimmed(self._objective(x, levels, before), x, levels, kept)

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

    def _levels(self, left: Mapping[str, Array]) -> dict[str, float]:
        """Return the noise that residuals show in the median window."""
        found, n = {}, len(self._counts)
        for kind, rows in self._kinds.items():
            counts = np.bincount(rows.window, minlength=n)
            squares = np.bincount(rows.window, left[kind] ** 2, minlength=n)
            mine = counts > 0
            level = float(np.sqrt(np.median(squares[mine] / counts[mine])))
            found[kind] = max(level, EXACT * self._sizes[kind])
        return found

    def _better_half(self, left: Mapping[str, Array], levels: Mapping[str, float]) -> Mask:
        """Return the windows of which least is left."""
        n = len(self._counts)
        squares = np.zeros(n)
        for kind, rows in self._kinds.items():
            squares += np.bincount(rows.window, (left[kind] / levels[kind]) ** 2, minlength=n)
        score = np.where(self.all, squares / np.maximum(self._counts, 1), np.inf)
        kept = np.zeros(n, dtype=bool)
        kept[np.argsort(score, kind='stable')[: (self.all.sum() + 1) // 2]] = True
        return kept

    def _objective(self, x: Array, levels: Mapping[str, float], kept: Mask) -> float:
        """Return what is minimised, over the rows."""
        counts = {kind: int(kept[rows.window].sum()) for kind, rows in self._kinds.items()}
        total = sum(counts[kind] * np.log(levels[kind]) for kind in counts)
        pull = self._prior.R @ x - self._prior.rho
        return float((total + 0.5 * pull @ pull) / max(sum(counts.values()), 1))


WINDOW = 0.5
"""Length of the windows [s]: about as long as the shortest pushes, and many rows for the noise."""
MIN_WINDOW_SHARE = 0.5
"""Share of a window that its rows are divided by at least: a few rows do not make it suspect."""
SAMPLES_AT_ONCE = 1500
NOISE_SAMPLES = 3000
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
    """As for `EquationBuilder.equations`, each of shape (n, 6) [N, Nm]."""
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
    builder: EquationBuilder, observed: Observed, unknowns: Sequence[Array | None]
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
    builder: EquationBuilder,
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
    every = -(-len(stamps) // NOISE_SAMPLES)
    for start in range(0, len(stamps), SAMPLES_AT_ONCE):
        stop = min(start + SAMPLES_AT_ONCE, len(stamps))
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
        n = np.maximum(counts[last] - counts[first], MIN_WINDOW_SHARE * (last - first))
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
