# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Name the fault of a log: hypotheses, tested by how well each explains all residuals at once.

A hypothesis corrects the log by a few parameters. A contact may produce what a fitted parameter
does: it is judged by the links that no contact touches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations, islice, permutations, product
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.linalg import norm

from inertial_estimation.arrays import Array
from inertial_estimation.estimation.fault_equations import PERIOD, Fit, motion_sources
from inertial_estimation.estimation.fault_scores import (
    DELAYS,
    FLOORS,
    INERTIAL,
    MOTION,
    Change,
    FaultScores,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import AXES as NAMES
from inertial_estimation.sample import SampleBatch

MAX_TESTS = 8
"""Corrections of the motion that are tried on all samples, and hypotheses beside usual errors."""
MIN_SECONDS, MAX_SECONDS = 2.0, 600.0
"""Of a log; in a shorter one readings stay near their extremes [s]."""
JUMP = 15.0 * np.repeat([1.0, 0.1], 3)
"""Standard deviations of jumps and drifts [N, Nm]: a hundredth of the range of iCub's sensors."""
STEPS = 40
"""Places of jumps that are tried."""
G, DEGREES = 9.80665, 180.0 / np.pi
"""Standard gravity [m/s^2], and degrees in a radian."""
UNITS = (1e-3, 1.0 / G, 1e3)
"""Factors of readings in kN, kgf and mN."""
AXES = {'': range(6), ' of force': range(3), ' of moment': range(3, 6)}
AXES |= {f' of {axis}': range(k, k + 1) for k, axis in enumerate(NAMES)}
"""Single axes whose unit may be another."""
EYE = np.eye(3)
TURNS = [
    EYE[list(order)] * np.array(signs)[:, None]
    for order, signs in product(permutations(range(3)), product((1.0, -1.0), repeat=3))
][1:]
"""Exchanges and signs of axes; rotations by right angles among them."""
LOG_TURNS = float(np.log(23.0))
"""Price of one of the turns by right angles."""
EPSILON = 0.02
"""Step of finite differences [rad or m]."""
MIN_SCORE, ALIKE, MIN_EXPLAINED = 5.0, 3.0, 0.4
"""Least score of a fault, lead that decides [nats], and least share that is explained."""
LIMITS = {
    'gain': (1.1, 5.0), 'jump': (5.0, np.inf), 'drift': (5.0, np.inf), 'offset': (2.0, 30.0),
    'turned': (5.0, np.inf), 'bias': (0.2, np.inf),
}  # fmt: skip
"""Smaller ones are usual, larger ones fit by chance [1, N, N, degrees, degrees, m/s^2]."""
FITTED = {'gain', 'jump', 'drift', 'mass', 'offset', 'bias'}
"""Faults whose signs a contact may produce as well."""
FROZEN, SATURATED, MIN_KNOWN = 1.0, 0.05, 20
"""Time of one value [s], share of the samples at an extreme, samples that are judged."""


class Fault(NamedTuple):
    """A fault that explains the residuals of a log."""

    subject: str
    kind: str
    """As in 'axes x -> y', 'sign', 'delay'."""
    size: float = np.nan
    unit: str = ''
    score: float = 0.0
    """Gain in log likelihood, less the price of the parameters."""
    explained: float = 1.0
    """Share of the squared residuals that it removes, in the equations that it changes."""

    @property
    def what(self) -> str:
        """Kind and size."""
        size = f', factor {self.size:.3g}' if self.unit == '1' else f' {self.size:.3g} {self.unit}'
        return self.kind if np.isnan(self.size) else f'{self.kind}{size}'

    @property
    def matters(self) -> bool:
        """Larger than what sensors and models usually have, and no fit by chance."""
        least, most = LIMITS.get(self.kind.split()[0], (0.0, np.inf))
        size = max(self.size, 1.0 / self.size) if self.kind == 'gain' else abs(self.size)
        return not (size < least or size > most)


class FaultSearch(FaultScores):
    """The hypotheses on a log, with their prices as scores; arguments as in `find_faults`."""

    def ft_hypotheses(self) -> Iterator[tuple[Fault, Fit]]:
        """Yield corrections of FT sensors."""
        F, names = self.null.readings, [one.name for one in self.robot.ft_sensors]
        stamps = self.grid.stamp_ns[self.rows]
        times = 1e-9 * (stamps - stamps[0])
        steps = times >= np.linspace(0.0, times[-1], STEPS + 2)[1:-1, None]
        courses = [('drift', 6.0, times[None] / max(times[-1], PERIOD)), ('jump', 7.0, steps)]
        courses, delays = ([], ()) if self.still else (courses, DELAYS)
        for s, name in enumerate(names):
            for R in TURNS:
                text = ', '.join(('-' if r.sum() < 0 else '') + 'xyz'[abs(r).argmax()] for r in R)
                kind = 'sign' if text == '-x, -y, -z' else f'axes ({text})'
                price = 0.0 if kind == 'sign' else LOG_TURNS
                turned = F[:, s] @ np.kron(np.eye(2), R).T
                yield Fault(name, kind, score=-price), self.with_readings({s: turned})
            loads = {
                b: one.loads[:, :, s] for b, one in enumerate(self.null.equations)
                if one.loads[:, :, s].any()
            }  # fmt: skip
            for what, axes in AXES.items():
                part = F[:, s] * np.isin(np.arange(6), axes)
                x, _ = self.fitted({b: L @ part[..., None] for b, L in loads.items()})
                gain = float(1.0 / (1.0 + x[0])) if len(x) and x[0] != -1.0 else np.nan
                units = [(f'unit{what}', unit, 1.0) for unit in UNITS if 0.7 < gain / unit < 1.4]
                for kind, factor, price in ([] if what else [('gain', gain, self.each)]) + units:
                    scaled = self.with_readings({s: F[:, s] + (1.0 / factor - 1.0) * part})
                    yield Fault(name, kind, factor, '1', -price), scaled
            for delay in delays:
                shifted = self.grid.ft_readings[self.rows + round(delay / PERIOD), s]
                late = Fault(name, 'delay', delay, 's', -self.each)
                yield late, self.with_readings({s: shifted})
            for kind, price, own in courses:
                fits = [
                    self.fitted({b: L * c[:, None, None] * JUMP for b, L in loads.items()}, 1.0)
                    for c in own
                ]
                k = int(np.argmax([self.score(squares, self.null.squares) for _, squares in fits]))
                x, cost = fits[k][0], price * self.each
                if len(x):
                    moved = self.with_readings({s: F[:, s] + np.outer(own[k], x * JUMP)})
                    size = JUMP[0] * float(norm(x))
                    yield Fault(name, kind, size, 'N', -cost - 0.5 * float(x @ x)), moved
        for s, u in combinations(range(len(names)), 2):
            swapped = self.with_readings({s: F[:, u], u: F[:, s]})
            yield Fault(f'{names[s]} {names[u]}', 'exchanged', score=-self.each), swapped

    def link_hypotheses(self) -> Iterator[tuple[Fault, Fit]]:
        """Yield other masses of links."""
        for k, link in enumerate(self.robot.links):
            columns = {
                b: -one.links[:, :, k, :1] for b, one in enumerate(self.null.equations)
                if one.links[:, :, k, 0].any()
            }  # fmt: skip
            x, _ = self.fitted(columns)
            if len(x) and x[0] > -1.0:
                mass = float(self.robot.parameters[k, 0] * (1.0 + x[0]))
                moved = self.null.moved({b: C @ x for b, C in columns.items()})
                yield Fault(link.name, 'mass', mass, 'kg', -self.each), moved

    def changes(self) -> Iterator[tuple[Fault, Change]]:
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
                turned = Fault(
                    imu.name, 'turned', float(np.degrees(norm(pin.log3(R)))), 'deg', -price
                )
                yield turned, partial(_of_imu, k=k, turn=R)
            for unit, factors in (1.0 / G, (1.0, G)), (DEGREES, (1.0 / DEGREES, 1.0)):
                wrong = Fault(imu.name, 'unit', unit, '1', -1.0)
                yield wrong, partial(_of_imu, k=k, factors=factors)
        q, names = np.nan_to_num(self.grid.positions[self.rows]), self.robot.joint_names
        if np.abs(q).max(initial=0.0) > 2.0 * np.pi:  # degrees are soon more than a turn
            wrong = Fault('joint states', 'unit', DEGREES, '1', -1.0)
            yield wrong, partial(_of_joints, factors=1.0 / DEGREES)
        for j in np.flatnonzero(np.abs(q).max(axis=0) > EPSILON).tolist():
            mirror = 1.0 - 2.0 * np.eye(len(names))[j]
            yield Fault(names[j], 'sign'), partial(_of_joints, factors=mirror)
        pairs = [*combinations(np.flatnonzero(np.ptp(q, axis=0) > EPSILON).tolist(), 2)]
        for i, j in pairs:
            order = np.arange(len(names))
            order[[i, j]] = j, i
            exchanged = Fault(f'{names[i]} {names[j]}', 'exchanged', score=-np.log(len(pairs)))
            yield exchanged, partial(_of_joints, order=order)

    def fitted_changes(self, null: Fit) -> Iterator[tuple[Fault, Change]]:
        """Yield offsets of joints and biases of accelerometers, from few samples."""
        n = len(self.robot.joint_names)
        fitted: list[tuple[Fault, float, Array, Callable[..., SampleBatch]]] = [
            (Fault(name, 'offset', unit='deg'), DEGREES, np.eye(n)[j : j + 1], _of_joints)
            for j, name in enumerate(self.robot.joint_names)
        ]
        fitted += [
            (Fault(imu.name, 'bias', unit='m/s^2'), 1.0, EYE, partial(_of_imu, k=k))
            for k, imu in enumerate(self.robot.imus)
        ]
        moves = [partial(one, offset=EPSILON * e) for *_, basis, one in fitted for e in basis]
        fits = self.fits(moves, self.few)
        for fault, factor, basis, change in fitted:
            moved = [*islice(fits, len(basis))]
            columns = {
                b: np.stack([null.raw[b] - one.raw[b] for one in moved], axis=1) / EPSILON
                for b in np.flatnonzero(~self.touched).tolist()
            }
            x, _ = self.solve(columns, null)
            if len(x):
                size, price = factor * float(norm(x)), len(x) * self.each
                yield fault._replace(size=size, score=-price), partial(change, offset=x @ basis)

    def motion_hypotheses(self) -> Iterator[tuple[Fault, Fit]]:
        """Yield corrections of motion: screened on few samples, the best ones on all."""
        (null,) = self.fits([lambda x: x], self.few)
        changes = [one for one in (*self.changes(), *self.fitted_changes(null)) if one[0].matters]
        fits = self.fits([change for _, change in changes], self.few)
        scores = [
            one.score + self.score(fit.squares, null.squares, one.kind in FITTED)
            for (one, _), fit in zip(changes, fits, strict=True)
        ]
        best = [changes[k] for k in np.argsort(scores)[: -1 - MAX_TESTS : -1]]
        fits = self.fits([change for _, change in best], self.rows)
        yield from ((one, fit) for (one, _), fit in zip(best, fits, strict=True))


def _of_joints(
    x: SampleBatch, factors: Any = 1.0, offset: Any = 0.0, order: Any = slice(None)
) -> SampleBatch:
    """Change positions to factors q[order] + offset."""
    q, v, a = (factors * getattr(x, name)[:, order] for name in MOTION)
    return replace(x, positions=q + offset, velocities=v, accelerations=a)


def _of_imu(
    x: SampleBatch, k: int, turn: Any = EYE, offset: Any = 0.0, factors: Any = (1.0, 1.0)
) -> SampleBatch:
    """Change an IMU to factors (rates, accelerations) turn (a - offset)."""
    arrays = {name: getattr(x, name).copy() for name in INERTIAL}
    for name, factor, shift in zip(INERTIAL, np.repeat(factors, [2, 1]), (0.0, 0.0, offset)):
        arrays[name][:, k] = factor * (arrays[name][:, k] - shift) @ turn.T
    return replace(x, **arrays)


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
        Frames at which a contact may act.

    Returns
    -------
    list of Fault
        Empty: none explains the residuals, or there is nothing to explain.

    """
    times = np.asarray(1e-9 * (samples.stamp_ns - samples.stamp_ns[:1]), dtype=np.float64)
    early = np.flatnonzero(times < MAX_SECONDS)
    samples, readings = samples.take(early), readings[early]
    sources = robot.fixed_frame or motion_sources(robot)
    if len(early) < MIN_KNOWN or times[-1] < MIN_SECONDS or not sources:
        return []
    if found := list(_repeated(robot, times[early], readings)):
        return found
    search = FaultSearch(robot, samples, readings, touched)
    null, (base, usual) = search.null.squares, search.beside_usual(search.null)
    if search.score(0.0 * null, null) < MIN_SCORE:
        return []
    tests = [
        (one.score + search.score(fit.squares, null, one.kind in FITTED), one, fit)
        for part in (search.ft_hypotheses, search.link_hypotheses, search.motion_hypotheses)
        for one, fit in part() if one.matters
    ]  # fmt: skip
    rated: list[Fault] = []
    for first, one, fit in sorted(tests, key=lambda test: -test[0])[:MAX_TESTS]:
        left, paid = search.beside_usual(fit)
        score = one.score + search.score(left, base, one.kind in FITTED) - paid + usual
        explained = search.explained(left, base)
        if min(first, score) > MIN_SCORE and explained > MIN_EXPLAINED:
            rated.append(one._replace(score=score, explained=explained))
    rated.sort(key=lambda fault: -fault.score)
    alike = [one for one in rated if one.score > rated[0].score - ALIKE]
    return list({one.subject: one for one in reversed(alike)}.values())[::-1]


def _repeated(robot: Robot, times: Array, readings: Array) -> Iterator[Fault]:
    """Yield FT sensors that stay at one value, or at their extremes."""
    for sensor, F in zip(robot.ft_sensors, np.moveaxis(readings, 1, 0), strict=True):
        if np.isfinite(F).all(axis=1).sum() < MIN_KNOWN:
            continue
        low, high = np.nanmin(F, axis=0), np.nanmax(F, axis=0)
        ends = (low == F) | (high == F)
        # All axes saturated is not frozen.
        moves = (np.diff(F, axis=0) != 0.0).any(axis=1) | (ends & (low < high))[1:].all(axis=1)
        first = np.flatnonzero(np.append(True, moves))
        longest = float((times[np.append(first[1:], len(F)) - 1] - times[first]).max())
        share = float(ends.mean(axis=0).max())
        if longest > FROZEN:
            yield Fault(sensor.name, 'frozen', longest, 's', np.inf)
        elif share > max(SATURATED, 0.5 * MIN_KNOWN / len(F)):
            yield Fault(sensor.name, 'saturated', share, '1', np.inf)
