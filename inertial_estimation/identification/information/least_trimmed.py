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
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information.information import Information

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
