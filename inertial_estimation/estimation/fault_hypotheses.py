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
from inertial_estimation.estimation.fault_equations import PERIOD, motion_sources
from inertial_estimation.estimation.fault_scores import (
    DELAYS,
    FLOORS,
    INERTIAL,
    LEVER,
    Change,
    FaultScores,
    Fit,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import AXES as NAMES
from inertial_estimation.sample import SampleBatch

MAX_TESTS, MAX_PAIRS = 8, 80
"""Corrections of the motion that are tried on all samples, exchanges on few."""
MAX_SECONDS = 600.0
"""Of a log that are looked at [s]."""
JUMP = 15.0 * np.repeat([1.0, LEVER], 3)
"""Standard deviations of jumps and drifts [N, Nm]: a hundredth of the range of iCub's sensors."""
STEPS = 40
"""Places of jumps that are tried."""
MIN_SECONDS = 2.0
"""In a shorter log readings stay near their extremes, and few samples are left with each delay."""
UNITS, STANDARD, DEGREES = (1e-3, 1.0 / 9.80665, 1e3), 9.80665, 180.0 / np.pi
"""Factors of readings in kN, kgf and mN, standard gravity [m/s^2], and degrees in a radian."""
AXES = {'': range(6), ' of force': range(3), ' of moment': range(3, 6)}
AXES |= {f' of {axis}': range(k, k + 1) for k, axis in enumerate(NAMES)}
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
MAX_FINAL, MIN_SCORE, ALIKE = 8, 5.0, 3.0
"""Hypotheses compared beside usual errors, least score of a fault, lead that decides [nats]."""
MIN_EXPLAINED, MIN_ALONE, MIN_BESIDE = 0.5, 0.7, 0.2
"""Least share explained beside usual errors; less, if that without them is more."""
LIMITS = {
    'gain': (1.1, 5.0), 'delay': (0.02, np.inf), 'jump': (5.0, np.inf), 'drift': (5.0, np.inf),
    'offset': (2.0, 30.0), 'turned': (5.0, np.inf), 'bias': (0.2, np.inf),
}  # fmt: skip
"""Smaller ones are usual, larger ones fit by chance [1, s, N, N, degrees, degrees, m/s^2]."""
FITTED = {'gain', 'jump', 'drift', 'mass', 'offset', 'bias'}
"""What a contact may produce as well."""
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
Test = tuple[What, float, Fit]
"""Hypothesis, price of the parameters [nats], and what it leaves."""


class FaultSearch(FaultScores):
    """The hypotheses on a log; arguments as in `find_faults`."""

    def ft_hypotheses(self) -> Iterator[Test]:
        """Yield corrections of FT sensors."""
        free, F = self.judged(self.null, True), self.null.readings
        stamps = self.grid.stamp_ns[self.rows]
        times = 1e-9 * (stamps - stamps[0])
        steps = np.linspace(0.0, times[-1], STEPS + 2)[1:-1, None]
        courses = np.vstack([times / max(times[-1], PERIOD), times >= steps])
        for s, sensor in enumerate(self.robot.ft_sensors):
            loads = {b: one.loads[s] for b, one in enumerate(free.equations) if s in one.loads}
            for R in TURNS:
                text = ', '.join(('-' if r.sum() < 0 else '') + 'xyz'[abs(r).argmax()] for r in R)
                kind = 'sign' if text == '-x, -y, -z' else f'axes ({text})'
                price = 0.0 if kind == 'sign' else LOG_TURNS
                turned = F[:, s] @ np.kron(np.eye(2), R).T
                yield (sensor.name, kind, np.nan, '1'), price, self.with_readings({s: turned})
            for what, axes in AXES.items():
                part = F[:, s] * np.isin(np.arange(6), axes)
                x, _ = self.solve({b: L @ part[..., None] for b, L in loads.items()}, free)
                gain = float(1.0 / (1.0 + x[0])) if len(x) and x[0] != -1.0 else np.nan
                units = [(f'unit{what}', unit, 1.0) for unit in UNITS if 0.7 < gain / unit < 1.4]
                if not what:
                    units.append(('gain', gain, self.each))
                for kind, factor, price in units:
                    scaled = self.with_readings({s: F[:, s] + (1.0 / factor - 1.0) * part})
                    yield (sensor.name, kind, factor, '1'), price, scaled
            if self.still:
                continue
            for delay in DELAYS:
                shifted = self.grid.ft_readings[self.rows + round(delay / PERIOD), s]
                late = self.with_readings({s: shifted})
                yield (sensor.name, 'delay', delay, 's'), self.each, late
            columns = [{b: L * c[:, None, None] * JUMP for b, L in loads.items()} for c in courses]
            fits = [self.solve(one, free, 1.0) for one in columns]
            jump = 1 + int(np.argmax([self.score(squares, 0.0) for _, squares in fits[1:]]))
            for kind, price, k in (('drift', 6.0, 0), ('jump', 7.0, jump)):
                if len(x := fits[k][0]):
                    moved = self.with_readings({s: F[:, s] + np.outer(courses[k], x * JUMP)})
                    size, cost = JUMP[0] * float(np.linalg.norm(x)), price * self.each
                    yield (sensor.name, kind, size, 'N'), cost + 0.5 * float(x @ x), moved
        for s, u in combinations(range(F.shape[1]), 2):
            pair = f'{self.robot.ft_sensors[s].name} {self.robot.ft_sensors[u].name}'
            swapped = self.with_readings({s: F[:, u], u: F[:, s]})
            yield (pair, 'exchanged', np.nan, ''), self.each, swapped

    def link_hypotheses(self) -> Iterator[Test]:
        """Yield other masses of links."""
        free, all_ = self.judged(self.null, True), [*enumerate(self.null.equations)]
        for k, link in enumerate(self.robot.links):
            columns = {b: -one.links[k][..., :1] for b, one in all_ if k in one.links}
            x, _ = self.solve(columns, free)
            if len(x) and x[0] > -1.0:
                mass = float(self.robot.parameters[k, 0] * (1.0 + x[0]))
                moved = self.null.moved({b: C @ x for b, C in columns.items()})
                yield (link.name, 'mass', mass, 'kg'), self.each, moved

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
            for unit, factors in (
                (1.0 / STANDARD, (1.0, STANDARD)),
                (DEGREES, (1.0 / DEGREES, 1.0)),
            ):
                scaled = _of_imu(k, np.eye(3), factors=factors)
                yield (imu.name, 'unit', unit, '1'), 1.0, scaled
        q, names = np.nan_to_num(self.grid.positions[self.rows]), self.robot.joint_names
        if np.abs(q).max(initial=0.0) > 2.0 * np.pi:  # degrees are soon more than a turn
            yield ('joint states', 'unit', DEGREES, '1'), 1.0, _of_joints(1.0 / DEGREES)
        for j in np.flatnonzero(np.abs(q).max(axis=0) > EPSILON).tolist():
            mirror = _of_joints(1.0 - 2.0 * np.eye(len(names))[j])
            yield (names[j], 'sign', np.nan, ''), 0.0, mirror

    def exchanges(self, slopes: Sequence[dict[int, Array]], fit: Fit) -> Iterator[Motion]:
        """Yield pairs of joints whose exchange leaves least, by the slopes of their positions."""
        q, names = np.nan_to_num(self.grid.positions[self.few]), self.robot.joint_names
        moving = np.flatnonzero(np.ptp(q, axis=0) > EPSILON)
        if len(moving) < 2:
            return
        one, other = np.array([*combinations(moving.tolist(), 2)]).T
        gap = np.sin(q[:, other] - q[:, one])[:, None]
        squares = np.tile(fit.squares, (len(one), 1))
        for b in slopes[0]:
            C = np.concatenate([own[b] for own in slopes], axis=2)
            free = fit.free(b, (C[..., one] - C[..., other]) * gap)
            if free.size:  # its size is free: slopes state the course of a large change
                norms = np.maximum(np.sum(free**2, axis=0), 1e-9)
                squares[:, b] -= (fit.raw[b] @ free) ** 2 / norms / len(free)
        scores = self.score(squares, 0.0, fit.squares)
        for pair in np.argsort(scores)[: -1 - MAX_PAIRS : -1]:
            i, j, order = int(one[pair]), int(other[pair]), np.arange(len(names))
            order[[i, j]] = j, i
            what = f'{names[i]} {names[j]}', 'exchanged', np.nan, ''
            yield what, float(np.log(len(one))), _of_joints(order=order)

    def motion_hypotheses(self) -> Iterator[Test]:
        """Yield corrections of motion: screened on few samples, the best ones on all."""
        unchanged, units = self.fit(lambda x: x, self.few), np.eye(len(self.robot.joint_names))
        fitted: list[tuple[str, str, str, float, Array, Callable[[Array], Change]]] = [
            (name, 'offset', 'deg', DEGREES, unit[None], partial(_of_joints, 1.0))
            for name, unit in zip(self.robot.joint_names, units)
        ]
        fitted += [
            (imu.name, 'bias', 'm/s^2', 1.0, np.eye(3), partial(_of_imu, k, np.eye(3)))
            for k, imu in enumerate(self.robot.imus)
        ]
        moves = [change_of(EPSILON * e) for *_, basis, change_of in fitted for e in basis]
        fits, slopes, rated = self.fits(moves, self.few), [], []
        for subject, kind, unit, factor, basis, change_of in fitted:
            moved = [*islice(fits, len(basis))]
            slopes.append({
                b: np.stack([(r - one.whole[b]) / EPSILON for one in moved], axis=2)
                for b, r in enumerate(unchanged.whole) if not unchanged.equations[b].touched
            })  # fmt: skip
            x, squares = self.solve(slopes[-1], unchanged)
            if len(x):
                what = subject, kind, factor * float(np.linalg.norm(x)), unit
                one = what, len(x) * self.each, change_of(x @ basis)
                rated.append((self.score(squares, one[1], unchanged.squares), one))
        changes = [*self.changes(), *self.exchanges(slopes[: len(units)], unchanged)]
        fits = self.fits([change for *_, change in changes], self.few)
        rated += [
            (self.score(fit.squares, one[1], unchanged.squares), one)
            for one, fit in zip(changes, fits, strict=True)
        ]
        best = [one for _, one in sorted(rated, key=lambda one: -one[0])[:MAX_TESTS]]
        fits = self.fits([change for *_, change in best], self.rows)
        yield from ((*one[:2], fit) for one, fit in zip(best, fits, strict=True))


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
    hypotheses = search.ft_hypotheses(), search.link_hypotheses(), search.motion_hypotheses()
    tests: list[Test] = [
        (what, price, search.judged(fit, what[1] in FITTED))
        for part in hypotheses for what, price, fit in part if _matters(*what)
    ]  # fmt: skip
    scores = [search.score(fit.squares, price) for _, price, fit in tests]
    best = [int(k) for k in np.argsort(scores)[: -1 - MAX_FINAL : -1] if scores[k] > MIN_SCORE]
    rated: list[Fault] = []
    bases = [search.beside_usual(search.judged(search.null, k)) for k in (False, True) if best]
    for what, price, fit in (tests[k] for k in best):
        base, usual = bases[what[1] in FITTED]
        left, paid = search.beside_usual(fit)
        score = float(search.score(left, price + paid - usual, base))
        alone, beside = search.explained(fit.squares, search.base), search.explained(left, base)
        if score > MIN_SCORE and beside > (MIN_BESIDE if alone > MIN_ALONE else MIN_EXPLAINED):
            rated.append(Fault(*what, score, max(alone, beside)))
    rated.sort(key=lambda fault: -fault.score)
    alike = [one for one in rated if one.score > rated[0].score - ALIKE]
    return list({one.subject: one for one in reversed(alike)}.values())[::-1]


def _matters(_: str, kind: str, size: float, unit: str) -> bool:
    """Return true if a fault is larger than what sensors and models usually have."""
    least, most = LIMITS.get(kind.split()[0], (0.0, np.inf))
    size = max(size, 1.0 / size) if kind == 'gain' else abs(size)
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
