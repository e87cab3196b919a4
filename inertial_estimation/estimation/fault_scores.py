# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Scores of corrections of a log, by the residuals that they leave in the `fault_equations`.

A score is the gain in log likelihood with the variance of each equation free, less half the
logarithm of the number of independent samples for each parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.estimation.fault_equations import (
    PERIOD,
    Fit,
    equations,
    mean_square,
    on_grid,
)
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
FLOOR_SHARE, TOUCHED_SHARE = 0.05, 0.2
"""Of the change of the signal that is no fault either, and of a submodel that may be touched."""
LOAD_SHARE, LEVER = 0.005, 0.1
"""Share of the whole wrench of a submodel that is no fault, and lever of its force [m]."""
DELAYS = (-0.1, -0.05, -0.02, 0.02, 0.05, 0.1)
"""That are tried [s]."""
MASS_ERROR, COM_ERROR = 0.1, 0.02
"""Standard deviations of usual errors of a link, of its mass [1] and centre of mass [m]."""
MATRIX_ERROR = 0.05 * np.outer(np.repeat([1.0, 0.1], 3), np.repeat([1.0, 10.0], 3)).ravel()
"""Those of the matrix of an FT sensor, with a lever of 0.1 m."""
UNUSUAL = 5.0
"""Errors of the model that are no usual ones [standard deviations]."""
INERTIAL = ('angular_velocities', 'angular_accelerations', 'proper_accelerations')
Change = Callable[[SampleBatch], SampleBatch]
"""Corrects samples that lie on a grid."""
Grams = dict[int, tuple[Array, Array]]
"""Of equations: C' C (..., p, p) and C' r (..., p) of columns C and residuals r."""


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
        self.null = self._fit(lambda x: x, self.rows)
        self.floors = np.array([self._floor(b) for b in range(len(self.null.equations))])
        touched = np.array([one.touched for one in self.null.equations], dtype=bool)
        seconds = 1e-9 * float(np.ptp(self.grid.stamp_ns[self.rows]))
        times = np.where(touched, CONTACT_TIME, CORRELATION)
        independent = np.minimum(len(self.rows), np.where(self.still, np.inf, seconds / times))
        share = np.array([one.mean() for one in self.null.kept])
        each = np.array([one.value.shape[1] for one in self.null.equations])
        used = np.array([b.shape[1] for b in self.null.bases])
        self.weights = np.maximum(independent * share * each - used, 0.0)
        self.base = self.null.squares
        self.weights[~np.isfinite(self.base)] = 0.0
        self.each = 0.5 * float(np.log(independent.max(initial=2.0)))
        """Price of one fitted parameter."""
        self.errors = [(self.grams(columns), sizes) for columns, sizes in self.usual_errors()]
        """Of the links, and of the matrix of each FT sensor."""

    def _floor(self, b: int) -> float:
        """Return the squared error of equations that is no fault."""
        one = self.null.equations[b]
        share = TOUCHED_SHARE if one.touched else FLOOR_SHARE
        signal = mean_square(self.null.free(b, one.value))
        if one.touched:  # all that the sensors feel may be a contact
            signal = max(signal, mean_square(self.null.free(b, one.value - self.null.whole[b])))
        whole = mean_square(one.value[self.null.kept[b]]) if one.loads else 0.0
        if one.kind == 'moment':  # the force comes right before
            force = self.null.equations[b - 1].value[self.null.kept[b]]
            whole += LEVER**2 * mean_square(force)
        shares = share**2 * np.nan_to_num(signal) + LOAD_SHARE**2 * np.nan_to_num(whole)
        return float(FLOORS[one.kind] ** 2 + shares)

    def _fit(self, change: Change, rows: Indices) -> Fit:
        return next(self._fits([change], rows))

    def _fits(self, changes: Sequence[Change], rows: Indices) -> Iterator[Fit]:
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

    def score(self, squares: Array, price: Any, base: Array | None = None) -> Any:
        """Return the gain in log likelihood less the price of hypotheses (...)."""
        return self.gains(squares, base).sum(axis=-1) - price

    def gains(self, squares: Array, base: Array | None = None) -> Array:
        """Return the gain in log likelihood of each equation."""
        before = (self.base if base is None else base) + self.floors
        ratio = np.where(self.weights > 0.0, (squares + self.floors) / before, 1.0)
        return np.asarray(-0.5 * self.weights * np.log(np.where(np.isfinite(ratio), ratio, 1.0)))

    def explained(self, gains: Array, squares: Array) -> float:
        """Return the share of the squares beyond usual errors that goes, where it gains."""
        before, after = (np.maximum(one - self.floors, 0.0) for one in (self.base, squares))
        more = (gains > 0.0) & (before > 0.0)
        shares = np.where(gains > 0.0, 1.0, 0.0)
        shares[more] = 1.0 - after[more] / before[more]
        return float(np.maximum(gains, 0.0) @ shares / max(np.abs(gains).sum(), 1e-9))

    def grams(self, columns: dict[int, Array], fit: Fit | None = None) -> Grams:
        """Return C' C and C' r of each equation; columns C (n, k, p)."""
        fit, found = fit or self.null, {}
        for b, C in columns.items():
            if self.weights[b] > 0.0 and len(fit.raw[b]):
                free = fit.free(b, C)
                found[b] = free.T @ free, free.T @ fit.raw[b]
        return found

    def left(self, grams: Grams, x: Array, fit: Fit | None = None) -> Array:
        """Return the mean squares of r - C x; x (..., p)."""
        fit = fit or self.null
        squares = np.tile(fit.squares, (*x.shape[:-1], 1))
        for b, (G, h) in grams.items():
            gain = np.sum(x * (2.0 * h - (G @ x[..., None])[..., 0]), axis=-1)
            squares[..., b] = np.maximum(squares[..., b] - gain / len(fit.raw[b]), 0.0)
        return squares

    def solve(
        self, grams: Grams, fit: Fit | None = None, sizes: Array | None = None
    ) -> tuple[Array, Array, Any]:
        """
        Fit r - C x over all equations, of one hypothesis or many (...); usual sizes of x (p,).

        Return x over its sizes, mean squares and the price of x; without sizes it has none.
        """
        fit = fit or self.null
        x, squares, price = np.empty(0), fit.squares, 0.0
        if sizes is not None:
            grams = {b: (G * np.outer(sizes, sizes), h * sizes) for b, (G, h) in grams.items()}
        for _ in range(3 if grams else 0):
            A, y = 0.0 if sizes is None else np.eye(len(sizes)), 0.0
            for b, (G, h) in grams.items():
                weight = self.weights[b] / len(fit.raw[b]) / (squares[..., b] + self.floors[b])
                A, y = A + weight[..., None, None] * G, y + weight[..., None] * h
            x = (np.linalg.pinv(A, 1e-9, hermitian=True) @ np.asarray(y)[..., None])[..., 0]
            if sizes is not None:
                price = 0.5 * (np.sum(x * x, axis=-1) + np.linalg.slogdet(A)[1])
            squares = self.left(grams, x, fit)
        return x, squares, price

    def with_readings(self, readings: dict[int, Array]) -> Array:
        """Return the mean squares with other readings of some FT sensors (n, 6)."""
        squares = self.base.copy()
        changes = {s: F - self.null.readings[:, s] for s, F in readings.items()}
        for b, one in enumerate(self.null.equations):
            parts = [one.loads[s] @ d[..., None] for s, d in changes.items() if s in one.loads]
            if parts and self.weights[b] > 0.0:
                moved, raw = np.sum(parts, axis=0)[..., 0], self.null.raw[b]
                known: Mask = np.logical_and.reduce(np.isfinite(moved), axis=1)
                # Where a signal ends, a delayed reading is not known: both on the same rows.
                there = known[self.null.kept[b]]
                same = np.repeat(there, moved.shape[1])
                Q, before = self.null.bases[b][same], raw[same]
                after = before - moved[self.null.kept[b]][there].ravel()
                both = np.column_stack([before, after])
                x = Q.T @ both if same.all() else np.linalg.lstsq(Q, both, rcond=None)[0]
                usual, left = np.mean((both - Q @ x) ** 2, axis=0) if len(Q) else (0.0, 0.0)
                if usual > 0.0:
                    squares[b] *= left / usual
        return squares

    def usual_errors(self) -> Iterator[tuple[dict[int, Array], Array]]:
        """Yield columns and sizes of usual errors of all masses, and of each FT matrix."""
        links, F, all_ = self.robot.links, self.null.readings, [*enumerate(self.null.equations)]
        columns = {
            b: np.concatenate([
                -one.links[k] if k in one.links else np.zeros((*one.value.shape, 4))
                for k in range(len(links))
            ], axis=2)
            for b, one in all_ if one.links
        }  # fmt: skip
        yield columns, np.tile([MASS_ERROR, *3 * [COM_ERROR]], len(links))
        for s in range(F.shape[1]):
            columns = {
                b: (one.loads[s][..., None] * F[:, s, None, None]).reshape(*one.value.shape, 36)
                for b, one in all_ if s in one.loads
            }  # fmt: skip
            yield columns, MATRIX_ERROR

    def usual_gains(self) -> Iterator[tuple[Array, float]]:
        """Yield gains and prices of usual errors."""
        for grams, sizes in self.errors:
            x, squares, price = self.solve(grams, sizes=sizes)
            if np.abs(x).max(initial=0.0) < UNUSUAL:
                yield self.gains(squares), float(price)
