# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Name the fault of a log: hypotheses, tested by how well each explains all residuals at once.

A hypothesis corrects the log by a few parameters. Its score is the gain in log likelihood of the
`fault_equations`, with the variance of each equation free, less half the logarithm of the number
of independent samples for each parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, permutations, product
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.estimation.fault_equations import (
    PERIOD,
    Fit,
    equations,
    mean_square,
    motion_sources,
    on_grid,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch, SensorState

MAX_SECONDS = 600.0
"""Of a log that are looked at [s]."""
MAX_SAMPLES, SCREENED, MAX_TESTS = 200, 50, 8
"""Instants of the final scores, and of the first ones of corrections of the motion."""
CORRELATION = 0.3
"""Time after which errors of the model are independent [s]."""
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
MAX_GAIN = 5.0
MASS_ERROR, COM_ERROR = 0.1, 0.02
"""Standard deviations of usual errors of a link, of its mass [1] and centre of mass [m]."""
MATRIX_ERROR = 0.05 * np.outer(np.repeat([1.0, 0.1], 3), np.repeat([1.0, 10.0], 3)).ravel()
"""Those of the matrix of an FT sensor, with a lever of 0.1 m."""
UNUSUAL = 5.0
"""Errors of the model that are no usual ones [standard deviations]."""
UNITS, STANDARD = (1e-3, 1.0 / 9.80665, 1e3), 9.80665
"""Factors of readings in kN, kgf and mN, and standard gravity [m/s^2]."""
TURNS = [
    np.eye(3)[list(order)] * np.array(signs)[:, None]
    for order, signs in product(permutations(range(3)), product((1.0, -1.0), repeat=3))
][1:]
"""Exchanges and signs of axes; rotations by right angles among them."""
LOG_TURNS = float(np.log(23.0))
"""Price of one of the turns by right angles."""
EPSILON = 0.02
"""Step of finite differences [rad or m]."""
MIN_SCORE, MIN_EXPLAINED, ALIKE, DONE = 20.0, 0.7, 3.0, 0.8
"""Least score of a fault, least share it explains, lead that decides [nats], share that is all."""
CLEAR = 10.0
"""Lead over usual errors of the model, and what a right fault never loses elsewhere [nats]."""
LIMITS = {
    'gain': (1.1, np.inf), 'delay': (0.02, np.inf), 'jump': (3.0, np.inf), 'drift': (3.0, np.inf),
    'offset': (2.0, 45.0), 'turned': (5.0, np.inf), 'bias': (0.2, np.inf),
}  # fmt: skip
"""Smaller ones are usual, larger ones fit by chance [1, s, N, N, degrees, degrees, m/s^2]."""
FROZEN, SATURATED, MIN_KNOWN = 1.0, 0.05, 20
"""Time of one value [s], share of the samples at an extreme, samples that are judged."""
MOTION = ('positions', 'velocities', 'accelerations')
INERTIAL = ('angular_velocities', 'angular_accelerations', 'proper_accelerations')
Change = Callable[[SampleBatch], SampleBatch]
"""Corrects samples that lie on a grid."""


class Fault(NamedTuple):
    """A fault that explains the residuals of a log."""

    subject: str
    kind: str
    """As in 'axes x -> y', 'sign', 'delay'."""
    size: float
    unit: str
    score: float
    """Gain in log likelihood, less the price of the parameters."""
    explained: float
    """Share of the squared residuals that it removes, in the equations that it changes."""

    @property
    def what(self) -> str:
        """Kind and size."""
        return self.kind if np.isnan(self.size) else f'{self.kind} {self.size:.3g} {self.unit}'


class Test(NamedTuple):
    """The outcome of a hypothesis."""

    subject: str
    kind: str
    size: float
    unit: str
    price: float
    """Of its parameters and of the number of its like [nats]."""
    squares: Array
    sensor: int = -1
    """Whose sign it changes."""


class FaultSearch:
    """Scores hypotheses on a log."""

    def __init__(
        self,
        robot: Robot,
        samples: SampleBatch,
        readings: Array,
        touched: frozenset[int],
        grounds: dict[int, int],
    ) -> None:
        self.robot, self.touched, self.grounds = robot, touched, grounds
        self.grid = on_grid(replace(samples, ft_readings=readings))
        margin = max(round((abs(DELAYS[0]) + 0.01) / PERIOD), 0)
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
        seconds = 1e-9 * float(np.ptp(self.grid.stamp_ns[self.rows]))
        independent = len(self.rows) if self.still else min(len(self.rows), seconds / CORRELATION)
        share = np.array([one.mean() for one in self.null.kept])
        each = np.array([one.value.shape[1] for one in self.null.equations])
        used = np.array([b.shape[1] for b in self.null.bases])
        self.weights = np.maximum(independent * share * each - used, 0.0)
        self.weights[~np.isfinite(self.null.squares())] = 0.0
        self.independent = max(independent, 2.0)
        self.base = self.null.squares()
        self.each = 0.5 * float(np.log(self.independent))
        """Price of one fitted parameter."""

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
        x = change(self.grid.take(rows))
        found = equations(self.robot, x, self.rates[rows], self.touched, self.grounds)
        return Fit(found, x.ft_readings)

    def score(self, squares: Array, price: float, base: Array | None = None) -> float:
        """Return the gain in log likelihood less the price of the hypothesis."""
        return float(self.gains(squares, base).sum() - price)

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
        return float(np.maximum(gains, 0.0) @ shares / np.abs(gains).sum())

    def linear(
        self, columns: dict[int, Array], fit: Fit | None = None, sizes: Array | None = None
    ) -> tuple[Array, Array, float]:
        """
        Fit r - C x over all equations; columns C (n, k, p), usual sizes of x (p,).

        Return x over its sizes, mean squares and the price of x; without sizes it has none.
        """
        fit = fit or self.null
        squares, price = fit.squares(), 0.0
        x: Array = np.empty(0)
        used = (self.weights > 0.0) & np.isfinite(squares)
        scale = 1.0 if sizes is None else sizes
        freed = {b: fit.free(b, C * scale) for b, C in columns.items() if used[b]}
        for _ in range(3 if freed else 0):
            A, y = 0.0 if sizes is None else np.eye(len(sizes)), 0.0
            for b, C in freed.items():
                weight = self.weights[b] / max(1, len(C)) / (squares[b] + self.floors[b])
                A, y = A + weight * C.T @ C, y + weight * C.T @ fit.raw[b]
            x = np.asarray(np.linalg.lstsq(A, y, rcond=1e-9)[0], dtype=np.float64)
            if sizes is not None:
                price = 0.5 * float(x @ x + np.linalg.slogdet(A)[1])
            for b, C in freed.items():
                squares[b] = mean_square(fit.raw[b] - C @ x)
        return x, squares, price

    def with_readings(self, s: int, readings: Array) -> Array:
        """Return the mean squares with other readings of an FT sensor (n, 6)."""
        squares, change = self.base.copy(), readings - self.null.readings[:, s]
        for b, one in enumerate(self.null.equations):
            if s in one.loads and self.weights[b] > 0.0:
                moved, raw = (one.loads[s] @ change[..., None])[..., 0], self.null.raw[b]
                known: Mask = np.logical_and.reduce(np.isfinite(moved), axis=1)
                left = raw - self.null.free(b, np.where(known[:, None], moved, 0.0))
                # Where a signal ends, a delayed reading is not known: both on the same rows.
                same = np.repeat(known[self.null.kept[b]], moved.shape[1])
                squares[b] *= mean_square(left[same]) / mean_square(raw[same])
        return squares

    def ft_hypotheses(self) -> Iterator[Test]:
        """Yield corrections of FT sensors."""
        F, stamps = self.null.readings, self.grid.stamp_ns[self.rows]
        n, times = len(F), 1e-9 * (stamps - stamps[0])
        for s, sensor in enumerate(self.robot.ft_sensors):
            own = [b for b, one in enumerate(self.null.equations) if s in one.loads]
            if not any(self.weights[b] > 0.0 for b in own):
                continue
            for R in TURNS:
                turned = (F[:, s].reshape(n, 2, 3) @ R.T).reshape(n, 6)
                text = ', '.join(('-' if r.sum() < 0 else '') + 'xyz'[abs(r).argmax()] for r in R)
                kind = 'sign' if text == '-x, -y, -z' else f'axes ({text})'
                price = 0.0 if kind == 'sign' else LOG_TURNS
                sign, squares = s if kind == 'sign' else -1, self.with_readings(s, turned)
                yield Test(sensor.name, kind, np.nan, '', price, squares, sign)
            split = np.zeros((n, 6, 2))
            split[:, :3, 0], split[:, 3:, 1] = F[:, s, :3], F[:, s, 3:]
            slopes = {b: self.null.equations[b].loads[s] for b in own}
            for what, columns in (
                ('', split.sum(axis=2)[..., None]), (' of force', split[..., :1]),
                (' of moment', split[..., 1:]),
            ):  # fmt: skip
                x, squares, _ = self.linear({b: L @ columns for b, L in slopes.items()})
                gain = 1.0 / (1.0 + x[0]) if len(x) and x[0] != -1.0 else np.nan
                if not what and 1.0 / MAX_GAIN < gain < MAX_GAIN:
                    yield Test(sensor.name, 'gain', gain, '1', self.each, squares)
                for size in (unit for unit in UNITS if 0.7 < gain / unit < 1.4):
                    readings = F[:, s] + (1.0 / size - 1.0) * columns[..., 0]
                    squares = self.with_readings(s, readings)
                    yield Test(sensor.name, f'unit{what}', size, '1', 1.0, squares)
            if self.still:
                continue
            for delay in DELAYS:
                shifted = self.grid.ft_readings[self.rows + round(delay / PERIOD), s]
                squares = self.with_readings(s, shifted)
                yield Test(sensor.name, 'delay', delay, 's', self.each, squares)
            # The change of a contact looks the same.
            if any(self.null.equations[b].touched for b in own):
                continue
            ramp = (times - times[0])[:, None, None] * np.eye(6)
            x, squares, _ = self.linear({b: L @ ramp for b, L in slopes.items()})
            if len(x):
                size = float(np.linalg.norm(x[:3]) * np.ptp(times))
                yield Test(sensor.name, 'drift', size, 'N', 6 * self.each, squares)
            for at in np.linspace(times[0], times[-1], 42)[1:-1]:
                step = (times >= at)[:, None, None] * np.eye(6)
                x, squares, _ = self.linear({b: L @ step for b, L in slopes.items()})
                if len(x):
                    size, price = float(np.linalg.norm(x[:3])), 7 * self.each
                    yield Test(sensor.name, 'jump', size, 'N', price, squares)
        for s, u in combinations(range(len(self.robot.ft_sensors)), 2):
            one, other = self.robot.ft_sensors[s].name, self.robot.ft_sensors[u].name
            readings = F.copy()
            readings[:, [s, u]] = F[:, [u, s]]
            squares = Fit(self.null.equations, readings).squares()
            yield Test(f'{one} {other}', 'exchanged', np.nan, '', self.each, squares)

    def link_hypotheses(self) -> Iterator[Test]:
        """Yield other masses of links, beyond their usual errors."""
        for k, link in enumerate(self.robot.links):
            columns = {
                b: -one.links[k][..., :1]
                for b, one in enumerate(self.null.equations)
                if k in one.links
            }
            x, squares, _ = self.linear(columns)
            if len(x) and x[0] > -1.0 and abs(x[0]) > 2.0 * MASS_ERROR:
                mass = self.robot.parameters[k, 0]
                yield Test(link.name, 'mass', float(mass * (1.0 + x[0])), 'kg', self.each, squares)

    def model_errors(self) -> Iterator[tuple[Array, float]]:
        """Yield gains and prices of usual errors of all masses, and of each FT matrix."""
        links, F, found = self.robot.links, self.null.readings, []
        columns = {
            b: np.concatenate([
                -one.links[k] if k in one.links else np.zeros((*one.value.shape, 4))
                for k in range(len(links))
            ], axis=2)
            for b, one in enumerate(self.null.equations) if one.links
        }  # fmt: skip
        found.append((columns, np.tile([MASS_ERROR, *3 * [COM_ERROR]], len(links))))
        found += [(self._matrix_columns(s), MATRIX_ERROR) for s in range(F.shape[1])]
        for columns, sizes in found:
            x, squares, price = self.linear(columns, sizes=sizes)
            if np.abs(x).max(initial=0.0) < UNUSUAL:
                yield self.gains(squares), price

    def _matrix_columns(self, s: int) -> dict[int, Array]:
        F = self.null.readings[:, s, None, None]
        return {
            b: (one.loads[s][..., None] * F).reshape(*one.value.shape, 36)
            for b, one in enumerate(self.null.equations) if s in one.loads
        }  # fmt: skip

    def with_sign(self, s: int) -> tuple[Array, float]:
        """Return mean squares with the other sign beside matrix errors, and the price of these."""
        readings = self.null.readings.copy()
        readings[:, s] *= -1.0
        fit = Fit(self.null.equations, readings)
        _, squares, price = self.linear(self._matrix_columns(s), fit, MATRIX_ERROR)
        return squares, price

    def _late(self, names: Sequence[str], delay: float, k: Any = slice(None)) -> Change:
        """Return the change to values that were measured later, in columns k."""

        def change(x: SampleBatch) -> SampleBatch:
            rows = np.round(1e-9 * (x.stamp_ns - self.grid.stamp_ns[0]) / PERIOD).astype(int)
            arrays = {name: getattr(x, name).copy() for name in names}
            for name, array in arrays.items():
                array[:, k] = getattr(self.grid, name)[rows + round(delay / PERIOD)][:, k]
            return replace(x, **arrays)

        return change

    def motion_changes(self) -> Iterator[tuple[str, str, float, str, float, Change]]:
        """Yield corrections of joints, IMUs and efforts without free parameters."""
        m = len(self.robot.joint_names)
        if m:
            degrees = 180.0 / np.pi
            yield 'joint states', 'unit', degrees, '1', 1.0, _of_joints(1.0 / degrees)
        for k, imu in enumerate(self.robot.imus):
            # With another source of motion, `_starts` finds the turn.
            known = any(e.kind == 'accelerometer' and e.name == imu.name
                        for e in self.null.equations)  # fmt: skip
            for R in (R for R in TURNS if np.linalg.det(R) > 0.0 and not known):
                angle = float(np.degrees(np.linalg.norm(pin.log3(R))))
                yield imu.name, 'turned', angle, 'deg', LOG_TURNS, _of_imu(k, R)
            for kind, unit, factors in (
                ('sign', np.nan, (-1.0, -1.0)), ('unit', 1.0 / STANDARD, (1.0, STANDARD)),
                ('unit', 180.0 / np.pi, (np.pi / 180.0, 1.0)),
            ):  # fmt: skip
                price = 2 * self.each if kind == 'sign' else 1.0
                yield imu.name, kind, unit, '1', price, _of_imu(k, np.eye(3), factors=factors)
        if self.still:
            return
        for delay in DELAYS:
            if m:
                yield 'joint states', 'delay', delay, 's', self.each, self._late(MOTION, delay)
            for k, imu in enumerate(self.robot.imus):
                yield imu.name, 'delay', delay, 's', self.each, self._late(INERTIAL, delay, k)

    def refined(self, start: Array, change: Callable[[Array], Change]) -> tuple[Array, Fit]:
        """Fit the parameters of a change by Gauss-Newton steps, from a start."""
        x, fit = start, self._fit(change(start), self.few)
        for _ in range(2):
            moved = [self._fit(change(x + EPSILON * e), self.few) for e in np.eye(len(x))]
            A, y = np.zeros((len(x), len(x))), np.zeros(len(x))
            for b, r in enumerate(fit.raw):
                if self.weights[b] and len(r) and all(len(one.raw[b]) == len(r) for one in moved):
                    C = np.array([(one.raw[b] - r) / EPSILON for one in moved]).T
                    size = mean_square(r) + self.floors[b]
                    weight = self.weights[b] / max(1, len(r)) / size
                    A, y = A + weight * C.T @ C, y + weight * C.T @ r
            x = x - np.linalg.lstsq(A, y, rcond=1e-9)[0]
            fit = self._fit(change(x), self.few)
        return x, self._fit(change(x), self.rows)

    def motion_hypotheses(self) -> Iterator[Test]:
        """Yield corrections of motion: screened on few samples, then on all."""
        near = self._fit(lambda x: x, self.few)
        base, m = near.squares(), len(self.robot.joint_names)
        one, slopes, screened = np.eye(m), [], []
        for j in range(m):
            moved = self._fit(_of_joints(1.0, EPSILON * one[j]), self.few)
            slopes.append({
                b: (r - near.whole[b]) / EPSILON
                for b, r in enumerate(moved.whole)
                if self.weights[b] > 0.0 and not np.array_equal(r, near.whole[b], equal_nan=True)
            })  # fmt: skip
            x, squares, _ = self.linear({b: -S[..., None] for b, S in slopes[j].items()}, near)
            if len(x):
                screened.append((self.score(squares, self.each, base), j, x))
        rated: list[tuple[float, Any, float, Change]] = []
        for change_of in (*self.motion_changes(), *self._signs(slopes, near)):
            price, change = change_of[4:]
            squares = self._fit(change, self.few).squares()
            rated.append((self.score(squares, price, base), change_of[:4], price, change))
        rated.sort(key=lambda one: -one[0])
        for _, (subject, kind, size, unit), price, change in rated[:MAX_TESTS]:
            squares = self._fit(change, self.rows).squares()
            yield Test(subject, kind, size, unit, price, squares)
        for _, j, x in sorted(screened, key=lambda one: -one[0])[:3]:
            found, fit = self.refined(x, partial(_with_offset, one[j]))
            size = float(np.degrees(-found[0]))
            yield Test(self.robot.joint_names[j], 'offset', size, 'deg', self.each, fit.squares())
        for k, imu in enumerate(self.robot.imus):
            bias, fit = self.refined(np.zeros(3), partial(_of_imu, k, np.eye(3)))
            size = float(np.linalg.norm(bias))
            yield Test(imu.name, 'bias', size, 'm/s^2', 3 * self.each, fit.squares())
            for start in self._starts(k):
                turn, fit = self.refined(start, partial(_with_turn, k))
                angle = float(np.degrees(np.linalg.norm(pin.log3(pin.exp3(turn)))))
                yield Test(imu.name, 'turned', angle, 'deg', 3 * self.each, fit.squares())

    def _signs(
        self, slopes: Sequence[dict[int, Array]], near: Fit
    ) -> Iterator[tuple[str, str, float, str, float, Change]]:
        """Yield changes of sign and exchanges of joints, the likeliest to first order."""
        q, names, base = self.grid.positions[self.few], self.robot.joint_names, near.squares()
        moves = np.flatnonzero(np.ptp(np.nan_to_num(q), axis=0) > EPSILON).tolist()
        away = np.flatnonzero(np.abs(np.nan_to_num(q)).max(axis=0) > EPSILON).tolist()
        rated = []
        for i, j in [*combinations(moves, 2), *zip(away, away)]:
            squares = base.copy()
            steps = {i: -2.0 * q[:, i]} if i == j else {i: q[:, j] - q[:, i], j: q[:, i] - q[:, j]}
            for b in set().union(*(slopes[k] for k in steps)):
                step = sum(d[:, None] * slopes[k].get(b, 0.0) for k, d in steps.items())
                squares[b] = mean_square(near.raw[b] + near.free(b, np.asarray(step)))
            rated.append((self.score(squares, 0.0, base), i, j))
        price = float(np.log(max(1, len(moves)) ** 2 / 2))
        most = 2 * MAX_TESTS if len(rated) > 6 * MAX_TESTS else len(rated)
        for _, i, j in sorted(rated, reverse=True)[:most]:
            order = list(range(len(names)))
            order[i], order[j] = j, i
            mirror = _of_joints(1.0 - 2.0 * np.eye(len(names))[i])
            if i == j:
                yield names[i], 'sign', np.nan, '', 0.0, mirror
            else:
                pair, swap = f'{names[i]} {names[j]}', _of_joints(order=order)
                yield pair, 'exchanged', np.nan, '', price, swap

    def _starts(self, k: int) -> Iterator[Array]:
        """Yield rotation vectors: none, and the one that fits an IMU to its prediction."""
        yield np.zeros(3)
        M = np.zeros((3, 3))
        for one in self.null.equations:
            if one.name == self.robot.imus[k].name and one.kind in ('gyroscope', 'accelerometer'):
                known = np.isfinite(one.value + one.measured).all(axis=1)
                y, r = one.value[known], one.measured[known]
                M += y.T @ r / FLOORS[one.kind] ** 2
        if M.any():
            U, _, Vt = np.linalg.svd(M)
            yield pin.log3(U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt)

    def tests(self) -> list[Test]:
        """Return all hypotheses; those of the motion if the others leave something to explain."""
        found = [*self.ft_hypotheses(), *self.link_hypotheses()]
        best = max((self.score(one.squares, one.price) for one in found), default=0.0)
        whole = self.score(np.zeros_like(self.base), 0.0)
        if len(self.robot.ft_sensors) < 2 or best < DONE * whole:
            found += self.motion_hypotheses()
        return found


def _of_joints(factors: Any = 1.0, offset: Any = 0.0, order: Any = slice(None)) -> Change:
    """Return the change to positions factors q[order] + offset."""

    def change(x: SampleBatch) -> SampleBatch:
        q, v, a = (factors * getattr(x, name)[:, order] for name in MOTION)
        return replace(x, positions=q + offset, velocities=v, accelerations=a)

    return change


def _of_imu(k: int, turn: Array, bias: Any = 0.0, factors: Sequence[float] = (1.0, 1.0)) -> Change:
    """Return the change of an IMU to factors (rates, accelerations) turn (a - bias)."""

    def change(x: SampleBatch) -> SampleBatch:
        arrays = {name: getattr(x, name).copy() for name in INERTIAL}
        for name, factor, shift in zip(INERTIAL, np.repeat(factors, [2, 1]), (0.0, 0.0, bias)):
            arrays[name][:, k] = factor * (arrays[name][:, k] - shift) @ turn.T
        return replace(x, **arrays)

    return change


def _with_offset(unit: Array, offset: Array) -> Change:
    return _of_joints(1.0, offset[0] * unit)


def _with_turn(k: int, turn: Array) -> Change:
    return _of_imu(k, pin.exp3(turn))


def find_faults(
    robot: Robot, samples: SampleBatch, readings: Array, touched: Collection[str] = ()
) -> list[Fault]:
    """
    Name the fault of a log, the likeliest first; others that explain it as well come after it.

    Parameters
    ----------
    robot : Robot
        With a fixed link or with IMUs.
    samples : SampleBatch
        A log of some seconds, or still poses.
    readings : ndarray, shape (n, n_fts, 6)
        Of FT sensors after calibration [N, Nm].
    touched : collection of str
        Frames at which a contact may act. The first one that is fixed holds its submodel.

    Returns
    -------
    list of Fault
        Empty: none explains the residuals, or there is nothing to explain.

    """
    held = [frame for frame in (robot.fixed_frame, *touched) if frame][:1]
    grounds = {robot.submodel_of(frame): robot.frame(frame)[0] for frame in held}
    early = np.flatnonzero(samples.stamp_ns - samples.stamp_ns[0] < 1e9 * MAX_SECONDS)
    samples, readings = samples.take(early), readings[early]
    positions = samples.positions.copy()
    if samples.joint_states is not None:
        positions[samples.joint_states == SensorState.ASSUMED] = np.nan
    places = frozenset(robot.frame(frame)[0] for frame in touched)
    # What no gyroscope measures is neglected.
    rates = [
        np.where(np.isnan(one).all(axis=0), 0.0, one)
        for one in (samples.angular_velocities, samples.angular_accelerations)
    ]
    known = replace(
        samples, positions=positions, angular_velocities=rates[0], angular_accelerations=rates[1]
    )
    if len(samples) < MIN_KNOWN or not (robot.fixed_frame or motion_sources(robot)):
        return []
    found = list(_repeated(robot, known, readings))
    search = FaultSearch(robot, known, readings, places, grounds)
    if not len(search.rows) or search.score(np.zeros_like(search.base), 0.0) < MIN_SCORE:
        return found
    # The price of one of many.
    likes = {
        name: float(np.log(len(names)))
        for names in (
            robot.joint_names, robot.link_names, [one.name for one in robot.imus],
            [one.name for one in robot.ft_sensors],
        )
        for name in names
    }  # fmt: skip
    rated, rivals = [], None
    for test in search.tests():
        gains = search.gains(test.squares)
        if test.sensor >= 0 and gains[gains < 0.0].sum() < -CLEAR and gains.sum() > MIN_SCORE:
            # What the matrix errs by, it does with either sign.
            squares, price = search.with_sign(test.sensor)
            test = test._replace(squares=squares, price=test.price + price)
            gains = search.gains(squares)
        score = float(gains.sum()) - test.price - likes.get(test.subject, 0.0)
        if score < MIN_SCORE or gains[gains < 0.0].sum() < -CLEAR:
            continue
        explained = search.explained(gains, test.squares)
        fault = Fault(test.subject, test.kind, test.size, test.unit, score, explained)
        if rivals is None:
            rivals = list(search.model_errors())
        others = (own[gains > 0.0].sum() - price for own, price in rivals)
        if (
            explained > MIN_EXPLAINED
            and score > max(others, default=0.0) + CLEAR
            and _matters(fault)
        ):
            rated.append(fault)
    rated.sort(key=lambda fault: -fault.score)
    alike = [one for one in rated if one.score > rated[0].score - ALIKE]
    return found or list({one.subject: one for one in reversed(alike)}.values())[::-1]


def _matters(fault: Fault) -> bool:
    """Return true if a fault is larger than what sensors and models usually have."""
    least, most = LIMITS.get(fault.kind.split()[0], (0.0, np.inf))
    size = max(fault.size, 1.0 / fault.size) if fault.kind == 'gain' else abs(fault.size)
    return not (size < least or size > most)


def _repeated(robot: Robot, samples: SampleBatch, readings: Array) -> Iterator[Fault]:
    """Yield FT sensors that stay at one value, or at their extremes."""
    steps = 1e-9 * np.diff(samples.stamp_ns)
    for s, sensor in enumerate(robot.ft_sensors):
        F = readings[:, s]
        same = (np.diff(F, axis=0) == 0.0).all(axis=1)
        known = np.isfinite(F).all(axis=1)
        if known.sum() < MIN_KNOWN:
            continue
        low, high = np.nanmin(F, axis=0), np.nanmax(F, axis=0)
        ends = (low == F) | (high == F)
        runs = np.split(steps, np.flatnonzero(~same) + 1) if len(steps) else []
        longest = max((float(run[1:].sum()) for run in runs), default=0.0)
        if longest > FROZEN:
            yield Fault(sensor.name, 'frozen', longest, 's', np.inf, 1.0)
        elif (share := float(ends.mean(axis=0).max())) > max(SATURATED, 0.5 * MIN_KNOWN / len(F)):
            yield Fault(sensor.name, 'saturated', share, '1', np.inf, 1.0)
