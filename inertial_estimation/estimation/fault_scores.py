# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Scores of corrections of a log, by the residuals that they leave in the `fault_equations`.

A score is the gain in log likelihood with the variance of each equation free, less half the
logarithm of the number of independent samples for each parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.estimation.fault_equations import PERIOD, Equation, equations, on_grid
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SampleBatch, SensorState

MAX_SAMPLES, SCREENED, MAX_TOGETHER = 200, 25, 16
"""Instants of the final and of the first scores, and corrections of the motion at once."""
CORRELATION, CONTACT_TIME = 0.3, 1.0
"""Time after which errors of the model are independent, and contacts [s]."""
FLOORS = {
    'gravity': 1.0, 'force': 0.3, 'moment': 0.03, 'torque': 0.1, 'gyroscope': 0.02,
    'accelerometer': 0.15,
}  # fmt: skip
"""Errors that are no fault [SI units]."""
TOUCHED_SHARE, LEVER = 0.2, 0.1
"""Share of a signal that is no fault where a contact may act, and lever of a force [m]."""
DELAYS = (-0.1, -0.05, -0.02, 0.02, 0.05, 0.1)
"""That are tried [s]."""
LINK_ERROR = np.array([0.1, 0.02, 0.02, 0.02])
"""Standard deviations of usual errors of a link, of its mass [1] and centre of mass [m]."""
MATRIX_ERROR = 0.05 * np.outer(np.repeat([1.0, 0.1], 3), np.repeat([1.0, 10.0], 3)).ravel()
"""Those of the matrix of an FT sensor, with a lever of 0.1 m."""
INERTIAL = ('angular_velocities', 'angular_accelerations', 'proper_accelerations')
Change = Callable[[SampleBatch], SampleBatch]
"""Corrects samples that lie on a grid."""
Columns = dict[int, Array]
"""Slopes (n, k, p) of the residuals of equations, negative."""


class Fit:
    """The residuals of equations, without what is free in them."""

    def __init__(self, found: Sequence[Equation], readings: Array) -> None:
        self.equations, self.readings = found, readings
        self.raw: list[Array] = []
        self.whole: list[Array] = []
        self.kept: list[Array] = []
        self.bases: list[Array] = []
        for one in found:
            r = one.value - one.measured
            for f, L in one.loads.items():
                r = r - (L @ readings[:, f, :, None])[..., 0]
            columns = np.concatenate([*one.loads.values(), one.nuisance], axis=2)
            known = np.isfinite(r).all(axis=1) & np.isfinite(columns).all(axis=(1, 2))
            C = _flat(columns[known])
            C = C / np.maximum(np.linalg.norm(C, axis=0), 1e-12)
            values, vectors = np.linalg.eigh(C.T @ C)
            used = values > 1e-8 * max(1.0, values.max(initial=0.0))
            self.bases.append(C @ (vectors[:, used] / np.sqrt(values[used])))
            self.kept.append(known)
            self.whole.append(r)
            self.raw.append(self.free(len(self.raw), r))
        self.squares = np.array([mean_square(r) for r in self.raw])

    def free(self, b: int, values: Array) -> Array:
        """Return values (n, k, ...) of equations b without what is free in them, flat."""
        flat, Q = _flat(values[self.kept[b]]), self.bases[b]
        return np.asarray(flat - Q @ (Q.T @ flat))

    def moved(self, changes: Columns, readings: Array | None = None) -> Fit:
        """Return the fit with residuals of some equations less changes (n, k)."""
        fit = copy(self)
        fit.raw, fit.squares = list(self.raw), self.squares.copy()
        fit.readings = self.readings if readings is None else readings
        for b, change in changes.items():
            fit.raw[b] = self.raw[b] - self.free(b, change)
            fit.squares[b] = mean_square(fit.raw[b])
        return fit


def _flat(values: Array) -> Array:
    return values.reshape(values.shape[0] * values.shape[1], *values.shape[2:])


def mean_square(values: Array) -> float:
    return float(np.mean(values**2)) if values.size else np.nan


class FaultScores:
    """Scores of corrections of a log; arguments as in `find_faults`."""

    def __init__(
        self, robot: Robot, samples: SampleBatch, readings: Array, touched: Collection[str]
    ) -> None:
        held = [frame for frame in (robot.fixed_frame, *touched) if frame][:1]
        self.robot = robot
        self.grounds = {robot.submodel_of(frame): robot.frame(frame)[0] for frame in held}
        self.touched = frozenset(robot.frame(frame)[0] for frame in touched)
        rates = {name: getattr(samples, name).copy() for name in INERTIAL[:2]}
        for values in rates.values():  # what no gyroscope measures is neglected
            values[:, np.isnan(values).all(axis=0)] = 0.0
        positions = samples.positions.copy()
        if samples.joint_states is not None:
            positions[samples.joint_states == SensorState.ASSUMED] = np.nan
        known = replace(samples, positions=positions, ft_readings=readings, **rates)
        self.grid = on_grid(known)
        margin = round((DELAYS[-1] + 0.01) / PERIOD)
        n = len(self.grid)
        self.still = bool(n < 2 or np.diff(self.grid.stamp_ns[:2])[0] > 2e9 * PERIOD)
        # A late effort is no fault: it is filtered more than positions are.
        self.rates = np.zeros_like(self.grid.positions)
        if not self.still and self.grid.efforts is not None:
            self.rates = np.gradient(self.grid.efforts, PERIOD, axis=0)
        first, last = (0, n - 1) if self.still else (margin, n - 1 - margin)
        places = np.linspace(first, last, max(0, min(MAX_SAMPLES, last - first + 1)))
        self.rows = np.unique(places.round().astype(int))
        self.few = self.rows[:: max(1, len(self.rows) // SCREENED)]
        seconds = np.inf if self.still else 1e-9 * float(np.ptp(self.grid.stamp_ns[self.rows]))
        self.null = self.fit(lambda x: x, self.rows)
        self.base, all_ = self.null.squares, self.null.equations
        times = np.array([CONTACT_TIME if one.touched else CORRELATION for one in all_])
        independent = np.minimum(len(self.rows), seconds / times)
        share = np.array([one.mean() for one in self.null.kept])
        each = np.array([one.value.shape[1] for one in all_])
        used = np.array([Q.shape[1] for Q in self.null.bases])
        self.weights = np.maximum(independent * share * each - used, 0.0)
        self.weights[~np.isfinite(self.base)] = 0.0
        self.floors = np.array([FLOORS[one.kind] ** 2 for one in all_])
        for b, one in enumerate(all_):
            if one.touched:  # all that the sensors feel may be a contact
                both = one.value, one.value - self.null.whole[b]
                signal = max(mean_square(self.null.free(b, part)) for part in both)
                self.floors[b] += TOUCHED_SHARE**2 * np.nan_to_num(signal)
        self.each = 0.5 * float(np.log(independent.max(initial=2.0)))
        """Price of one fitted parameter."""

    def fit(self, change: Change, rows: Indices) -> Fit:
        return next(self.fits([change], rows))

    def fits(self, changes: Sequence[Change], rows: Indices) -> Iterator[Fit]:
        """Yield the fits of changes, whose equations are built together, which saves most time."""
        n = len(rows)
        for first in range(0, len(changes), MAX_TOGETHER):
            parts = [change(self.grid.take(rows)) for change in changes[first:][:MAX_TOGETHER]]
            columns = {name: [getattr(one, name) for one in parts] for name in Sample._fields}
            known = {k: np.concatenate(v) for k, v in columns.items() if v[0] is not None}
            x = SampleBatch(**known)
            rates = np.tile(self.rates[rows], (len(parts), 1))
            found = equations(self.robot, x, rates, self.touched, self.grounds)
            for k, part in enumerate(parts):
                own = [one.take(slice(k * n, k * n + n)) for one in found]
                yield Fit(own, part.ft_readings)

    def score(self, squares: Array, price: Any = 0.0, base: Array | None = None) -> Any:
        """Return the gain in log likelihood less the price of hypotheses (...)."""
        return self.gains(squares, base).sum(axis=-1) - price

    def gains(self, squares: Array, base: Array | None = None) -> Array:
        """Return the gain in log likelihood of each equation."""
        before = (self.base if base is None else base) + self.floors
        ratio = np.where(self.weights > 0.0, (squares + self.floors) / before, 1.0)
        return np.asarray(-0.5 * self.weights * np.log(np.where(np.isfinite(ratio), ratio, 1.0)))

    def explained(self, squares: Array, base: Array) -> float:
        """Return the share of the squares beyond usual errors that goes, where it gains."""
        gains = self.gains(squares, base)
        before, after = (np.maximum(one - self.floors, 0.0) for one in (base, squares))
        more = (gains > 0.0) & (before > 0.0)
        shares = np.where(gains > 0.0, 1.0, 0.0)
        shares[more] = 1.0 - after[more] / before[more]
        return float(np.maximum(gains, 0.0) @ shares / max(np.abs(gains).sum(), 1e-9))

    def solve(self, columns: Columns, fit: Fit, prior: float = 0.0) -> tuple[Array, Array]:
        """Fit r - C x over all equations, with a prior weight of x; return x and mean squares."""
        x, squares = np.empty(0), fit.squares.copy()
        used = (self.weights > 0.0) & np.isfinite(squares)
        free = {b: fit.free(b, C) for b, C in columns.items() if used[b]}
        grams = {}
        for b, C in free.items():
            if len(C):
                G, own = np.zeros((C.shape[1],) * 2), np.flatnonzero(C.any(axis=0))
                G[np.ix_(own, own)] = C[:, own].T @ C[:, own]  # most have no part in equations b
                grams[b] = G, C.T @ fit.raw[b]
        for _ in range(3 if grams else 0):
            A: Any = 0.0
            y: Any = 0.0
            for b, (G, h) in grams.items():
                weight = self.weights[b] / len(free[b]) / (squares[b] + self.floors[b])
                A, y = A + weight * G, y + weight * h
            small = 1e-9 * max(1e-9, np.diagonal(A).max())  # directions without effect
            x = np.linalg.solve(A + (prior + small) * np.eye(len(A)), y)
            for b, (G, h) in grams.items():
                gain = x @ (2.0 * h - G @ x) / len(free[b])
                squares[b] = max(fit.squares[b] - gain, 0.0)
        return x, squares

    def with_readings(self, readings: dict[int, Array]) -> Fit:
        """Return the fit with other readings of some FT sensors (n, 6)."""
        F, changes = self.null.readings.copy(), {}
        for s, other in readings.items():  # unchanged where a delayed one is not known
            F[:, s] = np.where(np.isfinite(other), other, F[:, s])
        for b, one in enumerate(self.null.equations):
            parts = [
                (one.loads[s] @ (F - self.null.readings)[:, s, :, None])[..., 0]
                for s in readings if s in one.loads
            ]  # fmt: skip
            if parts and self.weights[b] > 0.0:
                changes[b] = np.sum(parts, axis=0)
        return self.null.moved(changes, F)

    def judged(self, fit: Fit, fitted: bool) -> Fit:
        """Return a fit, of a fitted hypothesis without the squares that a contact may change."""
        fit, touched = copy(fit), [fitted and one.touched for one in fit.equations]
        fit.squares = np.where(touched, np.nan, fit.squares)
        return fit

    def beside_usual(self, fit: Fit) -> tuple[Array, float]:
        """Return the mean squares beside usual errors of the model, and the price of these."""
        F, links = np.nan_to_num(fit.readings), range(len(self.robot.links))
        fts = range(F.shape[1])
        columns = {
            b: np.concatenate([
                *(-one.links.get(k, np.zeros((*one.value.shape, 4))) for k in links),
                *((one.loads.get(s, np.zeros((*one.value.shape, 6)))[..., None]
                   * F[:, s, None, None]).reshape(*one.value.shape, 36) for s in fts),
            ], axis=2)
            for b, one in enumerate(fit.equations) if one.links
        }  # fmt: skip
        sizes = np.concatenate([np.tile(LINK_ERROR, len(links)), np.tile(MATRIX_ERROR, len(fts))])
        columns = {b: C * sizes for b, C in columns.items()}
        x, squares = self.solve(columns, fit, 1.0)
        return squares, 0.5 * float(x @ x)
