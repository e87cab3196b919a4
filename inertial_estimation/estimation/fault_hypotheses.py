# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Name the fault of a log: hypotheses, tested by how well each explains all residuals at once.

A hypothesis corrects the log by a few parameters. A contact may produce what a fitted parameter
does: it is judged by the links that no contact touches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, islice, permutations, product
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from inertial_estimation.arrays import Array
from inertial_estimation.estimation.fault_equations import PERIOD, Fit, motion_sources
from inertial_estimation.estimation.fault_scores import (
    DELAYS,
    FLOORS,
    INERTIAL,
    LEVER,
    MASS_ERROR,
    Change,
    FaultScores,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

MAX_TESTS, MAX_PAIRS = 8, 80
"""Corrections of the motion that are tried on all samples, exchanges on few."""
MAX_SECONDS = 600.0
"""Of a log that are looked at [s]."""
JUMP = 30.0
"""Standard deviation of jumps and drifts of an FT sensor that are faults [N]."""
MIN_SECONDS = 2.0
"""In a shorter log readings stay near their extremes, and few samples are left with each delay."""
UNITS, STANDARD, DEGREES = (1e-3, 1.0 / 9.80665, 1e3), 9.80665, 180.0 / np.pi
"""Factors of readings in kN, kgf and mN, standard gravity [m/s^2], and degrees in a radian."""
AXES = {'': slice(6), ' of force': slice(3), ' of moment': slice(3, 6)}
"""Whose unit may be another."""
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
"""Lead over usual errors of the model [nats]."""
LIMITS = {
    'gain': (1.1, 5.0), 'delay': (0.02, np.inf), 'jump': (5.0, np.inf), 'drift': (5.0, np.inf),
    'offset': (2.0, 30.0), 'turned': (5.0, np.inf), 'bias': (0.2, np.inf),
}  # fmt: skip
"""Smaller ones are usual, larger ones fit by chance [1, s, N, N, degrees, degrees, m/s^2]."""
FROZEN, SATURATED, MIN_KNOWN = 1.0, 0.05, 20
"""Time of one value [s], share of the samples at an extreme, samples that are judged."""
MOTION = ('positions', 'velocities', 'accelerations')


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
        size = f', factor {self.size:.3g}' if self.unit == '1' else f' {self.size:.3g} {self.unit}'
        return self.kind if np.isnan(self.size) else f'{self.kind}{size}'


What = tuple[str, str, float, str]
"""Subject, kind, size and unit of a hypothesis."""
Motion = tuple[What, float, Change]
"""Hypothesis, price of the parameters [nats], and the correction of the motion."""
Test = tuple[What, float, Array]
"""Hypothesis, price of the parameters [nats], and the mean squares that are left."""


class FaultSearch(FaultScores):
    """The hypotheses on a log; arguments as in `find_faults`."""

    def ft_hypotheses(self) -> Iterator[Test]:
        """Yield corrections of FT sensors."""
        F, stamps = self.null.readings, self.grid.stamp_ns[self.rows]
        times, usual = 1e-9 * (stamps - stamps[0]), JUMP * np.repeat([1.0, LEVER], 3)
        steps = np.linspace(0.0, times[-1], 42)[1:-1]
        for s, sensor in enumerate(self.robot.ft_sensors):
            grams, all_ = self.errors[1 + s][0], self.null.equations
            free = {b for b in grams if not all_[b].touched}
            scaled: list[tuple[str, float, float, Array]] = []
            for R in TURNS:
                text = ', '.join(('-' if r.sum() < 0 else '') + 'xyz'[abs(r).argmax()] for r in R)
                kind = 'sign' if text == '-x, -y, -z' else f'axes ({text})'
                price = 0.0 if kind == 'sign' else LOG_TURNS
                scaled.append((kind, np.nan, price, np.kron(np.eye(2), R) - np.eye(6)))
            for what, axes in AXES.items():
                part = np.diag(np.isin(np.arange(6), np.arange(6)[axes]).astype(float))
                v = part.reshape(36, 1)
                own = {
                    b: (v.T @ G @ v, v.T @ h)
                    for b, (G, h) in grams.items()
                    if b in free or not free
                }
                x, squares, _ = self.solve(own)
                if not len(x) or x[0] == -1.0:
                    continue
                gain = 1.0 / (1.0 + x[0])
                if free and not what:
                    yield (sensor.name, 'gain', gain, '1'), self.each, squares
                near = [unit for unit in UNITS if 0.7 < gain / unit < 1.4]
                scaled += [(f'unit{what}', u, 1.0, (1.0 / u - 1.0) * part) for u in near]
            left = self.left(grams, np.array([M.ravel() for *_, M in scaled]))
            for (kind, size, price, _), squares in zip(scaled, left, strict=True):
                yield (sensor.name, kind, size, '1'), price, squares
            if self.still:
                continue
            for delay in DELAYS:
                shifted = self.grid.ft_readings[self.rows + round(delay / PERIOD), s]
                squares = self.with_readings({s: shifted})
                yield (sensor.name, 'delay', delay, 's'), self.each, squares
            slopes = {b: all_[b].loads[s] for b in free}
            each = [
                self.grams({b: L * course[:, None, None] for b, L in slopes.items()})
                for course in (times / max(times[-1], PERIOD), *(times >= at for at in steps))
            ]
            many = {
                b: (np.stack([one[b][0] for one in each]), np.stack([one[b][1] for one in each]))
                for b in each[0]
            }
            x, squares, prices = self.solve(many, sizes=usual)
            kinds = ('drift', 0.0), *(('jump', self.each) for _ in steps)
            for (kind, extra), own, left, price in zip(kinds, x, squares, np.ravel(prices)):
                size = JUMP * float(np.linalg.norm(own))  # a moment counts as a force at the lever
                yield (sensor.name, kind, size, 'N'), float(price) + extra, left
        for s, u in combinations(range(F.shape[1]), 2):
            pair = f'{self.robot.ft_sensors[s].name} {self.robot.ft_sensors[u].name}'
            squares = self.with_readings({s: F[:, u], u: F[:, s]})
            yield (pair, 'exchanged', np.nan, ''), self.each, squares

    def link_hypotheses(self) -> Iterator[Test]:
        """Yield other masses of links, beyond their usual errors."""
        grams, all_ = self.errors[0][0], self.null.equations
        masses = {
            b: (np.diagonal(G)[::4, None, None], h[::4, None])
            for b, (G, h) in grams.items() if not all_[b].touched
        }  # fmt: skip
        x, found, _ = self.solve(masses)
        for link, change, mass, squares in (
            zip(self.robot.links, x, self.robot.parameters[:, 0], found) if len(x) else ()
        ):
            if change[0] > -1.0 and abs(change[0]) > 2.0 * MASS_ERROR:
                yield (
                    (link.name, 'mass', float(mass * (1.0 + change[0])), 'kg'),
                    self.each,
                    squares,
                )

    def changes(self) -> Iterator[Motion]:
        """Yield corrections of IMUs and joints without free parameters."""
        for k, imu in enumerate(self.robot.imus):
            M = np.zeros((3, 3))
            for one in self.null.equations:
                if one.name == imu.name and one.kind in ('gyroscope', 'accelerometer'):
                    known = np.isfinite(one.value + one.measured).all(axis=1)
                    M += one.value[known].T @ one.measured[known] / FLOORS[one.kind] ** 2
            turns, price = [R for R in TURNS if np.linalg.det(R) > 0.0], LOG_TURNS
            if M.any():  # another source of motion predicts it
                U, _, Vt = np.linalg.svd(M)
                turns, price = [U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt], 3 * self.each
            for R in turns:
                angle = float(np.degrees(np.linalg.norm(pin.log3(R))))
                yield (imu.name, 'turned', angle, 'deg'), price, _of_imu(k, R)
            for kind, unit, price, factors in (
                ('sign', np.nan, 2.0 * self.each, (-1.0, -1.0)),
                ('unit', 1.0 / STANDARD, 1.0, (1.0, STANDARD)),
                ('unit', DEGREES, 1.0, (1.0 / DEGREES, 1.0)),
            ):  # fmt: skip
                scaled = _of_imu(k, np.eye(3), factors=factors)
                yield (imu.name, kind, unit, '1'), price, scaled
        q, names = np.nan_to_num(self.grid.positions[self.rows]), self.robot.joint_names
        if np.abs(q).max(initial=0.0) > 2.0 * np.pi:  # degrees are soon more than a turn
            yield ('joint states', 'unit', DEGREES, '1'), 1.0, _of_joints(1.0 / DEGREES)
        for j in np.flatnonzero(np.abs(q).max(axis=0) > EPSILON).tolist():
            mirror = _of_joints(1.0 - 2.0 * np.eye(len(names))[j])
            yield (names[j], 'sign', np.nan, ''), 0.0, mirror

    def _slopes(self, moved: Sequence[Fit], fit: Fit) -> dict[int, Array]:
        """Return the columns of a fit by parameters that are moved by EPSILON, negative."""
        return {
            b: np.stack([(r - one.whole[b]) / EPSILON for one in moved], axis=2)
            for b, r in enumerate(fit.whole)
            if not fit.equations[b].touched
        }

    def exchanges(self, slopes: Sequence[dict[int, Array]], fit: Fit) -> Iterator[Motion]:
        """Yield pairs of joints whose exchange leaves least, by the slopes of their positions."""
        q, names = np.nan_to_num(self.grid.positions[self.few]), self.robot.joint_names
        moving = np.flatnonzero(np.ptp(q, axis=0) > EPSILON)
        if len(moving) < 2:
            return
        one, other = np.array([*combinations(moving.tolist(), 2)]).T
        gap, grams = np.sin(q[:, other] - q[:, one])[:, None], {}
        for b in slopes[0]:
            C = np.concatenate([own[b] for own in slopes], axis=2)
            free = fit.free(b, (C[..., one] - C[..., other]) * gap)
            if self.weights[b] > 0.0 and len(free):
                grams[b] = np.sum(free**2, axis=0)[:, None, None], (free.T @ fit.raw[b])[:, None]
        # Their size is free: slopes state the course of a large change, less its size.
        squares = np.broadcast_to(self.solve(grams, fit)[1], (len(one), len(self.base)))
        scores = self.score(squares, 0.0, fit.squares)
        for pair in np.argsort(scores)[: -1 - MAX_PAIRS : -1]:
            i, j, order = int(one[pair]), int(other[pair]), np.arange(len(names))
            order[[i, j]] = j, i
            what = f'{names[i]} {names[j]}', 'exchanged', np.nan, ''
            yield what, float(np.log(len(one))), _of_joints(order=order)

    def motion_hypotheses(self) -> Iterator[Test]:
        """Yield corrections of motion: screened on few samples, then on all."""
        unchanged, n = self._fit(lambda x: x, self.few), len(self.robot.joint_names)
        base = unchanged.squares
        fitted: list[tuple[str, str, str, Array, Callable[[Array], Change]]] = [
            (name, 'offset', 'deg', np.zeros(1), partial(_with_offset, unit))
            for name, unit in zip(self.robot.joint_names, np.eye(n))
        ]
        for k, imu in enumerate(self.robot.imus):
            bias = partial(_of_imu, k, np.eye(3))
            fitted.append((imu.name, 'bias', 'm/s^2', np.zeros(3), bias))
            fitted.append((imu.name, 'turned', 'deg', np.zeros(3), partial(_with_turn, k)))
        moves = [one[4](EPSILON * e) for one in fitted for e in np.eye(len(one[3]))]
        fits = self._fits(moves, self.few)
        slopes = [self._slopes(list(islice(fits, len(one[3]))), unchanged) for one in fitted]
        changes = [*self.changes(), *self.exchanges(slopes[:n], unchanged)]
        tried = zip(changes, self._fits([change for *_, change in changes], self.few), strict=True)
        rated = [(self.score(fit.squares, one[1], base), one) for one, fit in tried]
        best = [one for _, one in sorted(rated, key=lambda one: -one[0])[:MAX_TESTS]]
        fits = self._fits([change for *_, change in best], self.rows)
        yield from ((*one[:2], fit.squares) for one, fit in zip(best, fits, strict=True))
        screened = []
        for (subject, kind, unit, x, change_of), own in zip(fitted, slopes, strict=True):
            step, squares, _ = self.solve(self.grams(own, unchanged), unchanged)
            if len(step):
                score = self.score(squares, len(x) * self.each, base)
                screened.append((score, subject, kind, unit, x + step, change_of))
        for _, subject, kind, unit, x, change_of in sorted(screened, key=lambda one: -one[0])[:4]:
            moves = [change_of(x), *(change_of(x + EPSILON * e) for e in np.eye(len(x)))]
            fit, *moved = self._fits(moves, self.few)
            x = x + self.solve(self.grams(self._slopes(moved, fit), fit), fit)[0]
            size = float(np.linalg.norm(pin.log3(pin.exp3(x)) if kind == 'turned' else x))
            size *= DEGREES if unit == 'deg' else 1.0
            squares = self._fit(change_of(x), self.rows).squares
            touched = [one.touched for one in self.null.equations]
            squares = np.where(touched, self.base, squares)
            yield (subject, kind, size, unit), len(x) * self.each, squares

    def tests(self) -> list[Test]:
        """Return all hypotheses; those of the motion if the others leave something to explain."""
        found = [*self.ft_hypotheses(), *self.link_hypotheses()]
        best = max((self.score(squares, price) for _, price, squares in found), default=0.0)
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
    early = np.flatnonzero(samples.stamp_ns - samples.stamp_ns[0] < 1e9 * MAX_SECONDS)
    samples, readings = samples.take(early), readings[early]
    if len(samples) < MIN_KNOWN or not (robot.fixed_frame or motion_sources(robot)):
        return []
    if samples.stamp_ns[-1] - samples.stamp_ns[0] < 1e9 * MIN_SECONDS:
        return []
    if found := list(_repeated(robot, samples, readings)):
        return found
    search = FaultSearch(robot, samples, readings, touched)
    if search.score(np.zeros_like(search.base), 0.0) < MIN_SCORE:
        return []
    rated: list[Fault] = []
    rivals: list[tuple[Array, float]] | None = None
    for what, price, squares in search.tests():
        gains = search.gains(squares)
        fault = Fault(*what, float(gains.sum() - price), search.explained(gains, squares))
        if fault.score < MIN_SCORE or fault.explained < MIN_EXPLAINED or not _matters(fault):
            continue
        rivals = list(search.usual_gains()) if rivals is None else rivals
        others = (own[gains > 0.0].sum() - price for own, price in rivals)
        if fault.score > max(others, default=0.0) + CLEAR:
            rated.append(fault)
    rated.sort(key=lambda fault: -fault.score)
    alike = [one for one in rated if one.score > rated[0].score - ALIKE]
    return list({one.subject: one for one in reversed(alike)}.values())[::-1]


def _matters(fault: Fault) -> bool:
    """Return true if a fault is larger than what sensors and models usually have."""
    least, most = LIMITS.get(fault.kind.split()[0], (0.0, np.inf))
    size = max(fault.size, 1.0 / fault.size) if fault.kind == 'gain' else abs(fault.size)
    return not (size < least or size > most)


def _repeated(robot: Robot, samples: SampleBatch, readings: Array) -> Iterator[Fault]:
    """Yield FT sensors that stay at one value, or at their extremes."""
    times = 1e-9 * (samples.stamp_ns - samples.stamp_ns[0])
    for s, sensor in enumerate(robot.ft_sensors):
        F = readings[:, s]
        known = np.isfinite(F).all(axis=1)
        if known.sum() < MIN_KNOWN:
            continue
        low, high = np.nanmin(F, axis=0), np.nanmax(F, axis=0)
        ends = (low == F) | (high == F)
        same = (np.diff(F, axis=0) == 0.0).all(axis=1)
        same &= ~(ends & (low < high))[1:].all(axis=1)  # all axes saturated
        first, last = (
            np.flatnonzero(np.append(*parts)) for parts in ((True, ~same), (~same, True))
        )
        longest = float((times[last] - times[first]).max())
        if longest > FROZEN:
            yield Fault(sensor.name, 'frozen', longest, 's', np.inf, 1.0)
        elif (share := float(ends.mean(axis=0).max())) > max(SATURATED, 0.5 * MIN_KNOWN / len(F)):
            yield Fault(sensor.name, 'saturated', share, '1', np.inf, 1.0)
