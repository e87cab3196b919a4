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

import numpy as np

from inertial_estimation.arrays import Array, Indices
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
TOUCHED_SHARE, CONTACT_SHARE = 0.2, 0.5
"""Shares of a signal where a contact may act: no fault, and as likely a contact as a fault."""
DELAYS = (-0.1, -0.05, -0.02, 0.02, 0.05, 0.1)
"""That are tried [s]."""
LINK_ERROR = np.array([0.1, 0.02, 0.02, 0.02])
"""Standard deviations of usual errors of a link, of its mass [1] and centre of mass [m]."""
MATRIX_ERROR = 0.05 * np.outer(np.repeat([1.0, 0.1], 3), np.repeat([1.0, 10.0], 3)).ravel()
"""Those of the matrix of an FT sensor, with a lever of 0.1 m."""
INERTIAL = ('angular_velocities', 'angular_accelerations', 'proper_accelerations')
MOTION = ('positions', 'velocities', 'accelerations')
Change = Callable[[SampleBatch], SampleBatch]
"""Corrects samples that lie on a grid."""
Columns = dict[int, Array]
"""Slopes (m, p) of the flat residuals of equations, negative, without what is free in them."""


class FaultScores:
    """Scores of corrections of a log; arguments as in `find_faults`."""

    def __init__(
        self, robot: Robot, samples: SampleBatch, readings: Array, touched: Collection[str]
    ) -> None:
        self.robot = robot
        self.contacts = frozenset(robot.frame(frame)[0] for frame in touched)
        rates = {name: getattr(samples, name) for name in INERTIAL[:2]}
        for name, values in rates.items():  # what no gyroscope measures is neglected
            rates[name] = np.where(np.isnan(values).all(axis=0), 0.0, values)
        positions = samples.positions.copy()
        if samples.joint_states is not None:
            positions[samples.joint_states == SensorState.ASSUMED] = np.nan
        known = replace(samples, positions=positions, ft_readings=readings, **rates)
        self.grid = on_grid(known)
        self.still, n = self.grid is known, len(self.grid)
        # A late effort is no fault: it is filtered more than positions are.
        self.rates = np.zeros_like(self.grid.positions)
        if not self.still and self.grid.efforts is not None:
            self.rates = np.gradient(self.grid.efforts, PERIOD, axis=0)
        margin = 0 if self.still else round((DELAYS[-1] + 0.01) / PERIOD)
        places = np.linspace(margin, n - 1 - margin, max(0, min(MAX_SAMPLES, n - 2 * margin)))
        self.rows = np.unique(places.round().astype(int))
        self.few = self.rows[:: max(1, len(self.rows) // SCREENED)]
        seconds = np.inf if self.still else 1e-9 * float(np.ptp(self.grid.stamp_ns[self.rows]))
        (self.null,) = self.fits([lambda x: x], self.rows)
        self.touched = np.array([one.touched for one in self.null.equations])
        times = np.where(self.touched, CONTACT_TIME, CORRELATION)
        independent = np.minimum(len(self.rows), seconds / times)
        share = np.array([one.mean() for one in self.null.kept])
        each = np.array([one.value.shape[1] for one in self.null.equations])
        used = np.array([Q.shape[1] for Q in self.null.bases])
        self.weights = np.maximum(independent * share * each - used, 0.0)
        self.weights[~np.isfinite(self.null.squares)] = 0.0
        self.floors = np.array([FLOORS[one.kind] ** 2 for one in self.null.equations])
        self.most = np.full(len(self.floors), np.inf)
        for b in np.flatnonzero(self.touched & (self.weights > 0.0)).tolist():
            # All that the sensors feel may be a contact.
            value = self.null.free(b, self.null.equations[b].value)
            signal = max(mean_square(value), mean_square(value - self.null.raw[b]))
            self.floors[b] += TOUCHED_SHARE**2 * signal
            self.most[b] = CONTACT_SHARE**2 * signal
        self.each = 0.5 * float(np.log(independent.max(initial=2.0)))
        """Price of one fitted parameter."""

    def fits(self, changes: Sequence[Change], rows: Indices) -> Iterator[Fit]:
        """Yield the fits of changes, whose equations are built together, which saves most time."""
        n = len(rows)
        for first in range(0, len(changes), MAX_TOGETHER):
            parts = [change(self.grid.take(rows)) for change in changes[first:][:MAX_TOGETHER]]
            x = SampleBatch(**{
                name: np.concatenate([getattr(one, name) for one in parts])
                for name in Sample._fields if getattr(parts[0], name) is not None
            })  # fmt: skip
            rates = np.tile(self.rates[rows], (len(parts), 1))
            found = equations(self.robot, x, rates, self.contacts)
            for k, part in enumerate(parts):
                own = slice(k * n, k * n + n)
                yield Fit([one.take(own) for one in found], part.ft_readings)

    def gains(self, squares: Array, base: Array) -> Array:
        """Return the gain in log likelihood of each equation."""
        before, after = (np.minimum(one, self.most) + self.floors for one in (base, squares))
        known = (self.weights > 0.0) & np.isfinite(before + after)
        ratio = np.divide(after, before, out=np.ones(len(before)), where=known)
        return np.asarray(-0.5 * self.weights * np.log(ratio))

    def score(self, squares: Array, base: Array, fitted: bool = False) -> float:
        """Return the gain in log likelihood; of what is fitted, where no contact may act."""
        return float(self.gains(squares, base) @ ~(fitted & self.touched))

    def explained(self, squares: Array, base: Array) -> float:
        """Return the share of the squares beyond usual errors that goes, where it gains."""
        gains = self.gains(squares, base)
        before, after = (np.nan_to_num(one) - self.floors for one in (base, squares))
        shares = 1.0 - np.maximum(after, 0.0) / np.maximum(before, 1e-12)
        return float(np.maximum(gains, 0.0) @ shares / max(np.abs(gains).sum(), 1e-9))

    def solve(self, columns: Columns, fit: Fit, prior: float = 0.0) -> tuple[Array, Array]:
        """Fit r - C x over all equations, with a prior weight of x; return x and mean squares."""
        x, squares, grams = np.zeros(0), fit.squares.copy(), {}
        for b, C in columns.items():
            # Where more remains of the log as it is, a contact acts.
            if self.weights[b] > 0.0 and len(C) and self.null.squares[b] <= self.most[b]:
                grams[b] = C.T @ C / len(C), C.T @ fit.raw[b] / len(C)
        for _ in range(3 if grams else 0):
            weights = self.weights / (squares + self.floors)
            A = np.sum([weights[b] * G for b, (G, _) in grams.items()], axis=0)
            y = np.sum([weights[b] * h for b, (_, h) in grams.items()], axis=0)
            small = 1e-9 * max(1e-9, np.diagonal(A).max())  # directions without effect
            x = np.linalg.solve(A + (prior + small) * np.eye(len(A)), y)
            for b, (G, h) in grams.items():
                squares[b] = max(fit.squares[b] - x @ (2.0 * h - G @ x), 0.0)
        return x, squares

    def fitted(self, columns: Columns, prior: float = 0.0) -> tuple[Array, Array]:
        """Fit columns (n, k, p) where no contact may act."""
        free = {b: self.null.free(b, C) for b, C in columns.items() if not self.touched[b]}
        return self.solve(free, self.null, prior)

    def with_readings(self, readings: dict[int, Array]) -> Fit:
        """Return the fit with other readings of some FT sensors (n, 6)."""
        F = self.null.readings.copy()
        for s, other in readings.items():  # unchanged where a delayed one is not known
            F[:, s] = np.where(np.isfinite(other), other, F[:, s])
        left = [*readings]
        change = np.nan_to_num(F - self.null.readings)[:, left]
        changes = {
            b: np.einsum('nksi,nsi->nk', one.loads[:, :, left], change)
            for b, one in enumerate(self.null.equations)
            if self.weights[b] > 0.0 and one.loads[:, :, left].any()
        }
        return self.null.moved(changes, F)

    def beside_usual(self, fit: Fit) -> tuple[Array, float]:
        """Return the mean squares beside usual errors of the model, and the price of these."""
        F, columns = np.nan_to_num(fit.readings), {}
        for b, one in enumerate(fit.equations):
            if one.loads.any() or one.links.any():
                shape = one.value.shape
                links = one.links * LINK_ERROR
                loads = one.loads[..., None] * F[:, None, :, None]
                loads = loads.reshape(*shape, -1, 36) * MATRIX_ERROR
                parts = links.reshape(*shape, -1), loads.reshape(*shape, -1)
                columns[b] = fit.free(b, np.concatenate(parts, axis=2))
        x, squares = self.solve(columns, fit, 1.0)
        return squares, 0.5 * float(x @ x)
