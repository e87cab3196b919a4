# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Checks of logs before they become equations: each yields findings.

Readings of a robot at rest, and of one without noise, may stay the same and be right. An effort is
frozen only while its joint moves, an FT sensor while a joint moves that leads to it or lies beyond
it, a position or a velocity only where the two contradict each other. IMUs are not judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.integrate import cumulative_trapezoid

from inertial_estimation.arrays import Array
from inertial_estimation.estimation.reading_checks import MAX_EXCESS
from inertial_estimation.findings import Finding, Level, finding, limit_of
from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.identification.preparation import Preparation
from inertial_estimation.logs.bag import runs
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import limits_of, parse
from inertial_estimation.sample import SampleBatch

KINDS = 'position', 'velocity', 'effort', 'wrench'
"""Of measured signals."""
MIN_MOTION = limit_of('motion')
OUTLIER_SHARE, RATING_SHARE = 0.01, 0.1
"""Shares of the samples that may be anything, that may exceed a rating."""
VELOCITY_SPAN, MIN_CORRELATION = 0.2, 0.5
"""Time over which positions and velocities are compared [s], and least correlation."""
MIN_RATE, MAX_RATE = 5.0, 5e4
"""Of logs of robots in motion [Hz]."""
MIN_REPEATS = 5
"""Samples of a frozen run."""
COARSE_SHARE = 0.1
"""Share of repeated values, in shorter runs, from which a signal repeats itself in use too."""
USUAL_SHARE, USUAL_FACTOR = 0.9, 20.0
"""Quantile of the length of such runs, and the factor of it from which a run is frozen."""
MIN_LEVELS = 20
"""Different values below which a signal that repeats itself in use is not judged."""
VELOCITY_ERROR = 0.02
"""Error of a velocity at rest that is no fault [rad/s or m/s]."""
RESOLUTION_PERCENTILE = 10.0
"""Of the changes between samples, for the resolution of a coarse signal."""


class Measured(NamedTuple):
    """A measured signal of equations."""

    subject: str
    what: str
    values: Array
    """Shape (n, k), a view of the samples."""
    joints: list[int]
    """Those whose motion changes it."""

    def moves(self, positions: Array) -> bool:
        """Return true if one of its joints moves; positions (n, n_joints)."""
        return any(span(positions[:, k]) > MIN_MOTION for k in self.joints)


def signals(
    robot: Robot, samples: SampleBatch, joints: Collection[str], kinds: Collection[str] = KINDS
) -> Iterator[Measured]:
    """Yield signals of some kinds, with the efforts of some joints."""
    for k, name in enumerate(robot.joint_names):
        for what, values in (
            ('position', samples.positions), ('velocity', samples.velocities),
            ('effort', samples.efforts if name in joints else None),
        ):  # fmt: skip
            if what in kinds and values is not None:
                yield Measured(name, what, values[:, k, None], [k])
    for s, sensor in enumerate(robot.ft_sensors if 'wrench' in kinds else ()):
        # Between the root link and the sensor, and beyond it.
        before, link = set(), sensor.parent
        while link >= 0:
            before.add(link)
            link = robot.links[link].parent
        beyond = {sensor.child}
        for k, one in enumerate(robot.links):  # parents come before children
            if one.parent in beyond:
                beyond.add(k)
        around = sorted({robot.links[k].joint for k in before | beyond} - {-1})
        yield Measured(sensor.name, 'wrench', samples.ft_readings[:, s], around)


def span(values: Array) -> float:
    """Return the range of the known values (n,)."""
    known = values[np.isfinite(values)]
    return float(np.ptp(known)) if len(known) else 0.0


def missing_values(
    robot: Robot, samples: SampleBatch, joints: Sequence[str], kinds: Collection[str]
) -> Iterator[Finding]:
    """Yield signals of equations, with efforts of some joints, that samples lack."""
    for one in signals(robot, samples, joints, kinds):
        share = float((~np.isfinite(one.values)).any(axis=1).mean())
        if share:
            yield finding('missing', one.subject, what=one.what, share=share)
    for name in joints if samples.efforts is None else ():
        yield finding('missing', name, what='effort', share=1.0)
    for k, imu in enumerate(robot.imus):
        both = samples.angular_velocities[:, k], samples.proper_accelerations[:, k]
        if not any(np.isfinite(values).all(axis=1).any() for values in both):
            yield finding('missing', imu.name, what='reading', share=1.0)


def constant_channels(robot: Robot, samples: SampleBatch) -> Iterator[Finding]:
    """Yield FT channels that never change. ERROR: all channels of a sensor that is moved."""
    for one in signals(robot, samples, (), ('wrench',)):
        known = one.values[np.isfinite(one.values).all(axis=1)]
        if len(known) < limit_of('constant'):
            continue
        stuck = np.flatnonzero(np.ptp(known, axis=0) == 0.0)
        dead = len(stuck) == len(COMPONENTS) and one.moves(samples.positions)
        for k in stuck:
            yield finding(
                'constant', one.subject, level=Level.ERROR if dead else None,
                what=COMPONENTS[k], value=float(known[0, k]), count=len(known),
            )  # fmt: skip


def urdf_limits(robot: Robot, samples: SampleBatch, torques: Collection[str]) -> Iterator[Finding]:
    """
    Yield joints beyond their end stops, faster or stronger than the URDF states.

    torques: joints whose efforts are torques. ERROR: beyond end stops by more than their range.
    """
    tags = {tag.get('name', ''): tag for tag in parse(robot.urdf).findall('joint')}
    for one in signals(robot, samples, torques, ('position', 'velocity', 'effort')):
        limits = limits_of(tags[one.subject])
        values = one.values[np.isfinite(one.values)]
        if not len(values):
            continue
        if one.what != 'position':
            limit = limits.get(one.what, np.nan)
            beyond = np.abs(values) > limit_of('rating') * limit
            if limit > 0.0 and beyond.mean() > RATING_SHARE:
                most = float(np.abs(values).max())
                yield finding('rating', one.subject, what=one.what, value=most, limit=limit)
            continue
        lower, upper = limits.get('lower', 0.0), limits.get('upper', 0.0)
        off = np.maximum(lower - values, values - upper)
        if 0.0 < upper - lower < np.inf and off.max() > limit_of('joint_limit'):
            far = np.mean(off > max(upper - lower, MAX_EXCESS)) > OUTLIER_SHARE
            yield finding(
                'joint_limit', one.subject, level=Level.ERROR if far else None,
                value=float(values[np.argmax(off)]), lower=lower, upper=upper,
            )  # fmt: skip


def velocities_against_positions(
    robot: Robot, samples: SampleBatch, largest_gap: float, level: Level
) -> Iterator[Finding]:
    """Yield joints whose velocities are not the derivatives of their positions."""
    t = np.asarray(samples.stamp_ns * 1e-9, dtype=np.float64)
    if len(t) < 2 or not (np.diff(t) > 0).all():
        return
    steps = np.diff(t)
    lag = min(max(1, round(VELOCITY_SPAN / float(np.median(steps)))), len(t) - 1)
    for k, name in enumerate(robot.joint_names):
        q, v = samples.positions[:, k], samples.velocities[:, k]
        known = np.isfinite(q) & np.isfinite(v)
        usable = known[1:] & known[:-1] & (steps <= largest_gap)
        # Changes over the span, and the integrals of the velocities over the same times.
        area = np.where(usable, 0.5 * (v[1:] + v[:-1]) * steps, 0.0)
        travelled, broken = (np.append(0.0, np.cumsum(one)) for one in (area, ~usable))
        whole = broken[lag:] == broken[:-lag]
        changes, integrals = ((one[lag:] - one[:-lag])[whole] for one in (q, travelled))
        moved, stated = (
            float(np.sqrt(np.mean(one**2))) if len(one) else 0.0 for one in (changes, integrals)
        )
        if max(moved, stated) < MIN_MOTION:
            continue
        factor = moved / stated if stated else np.inf
        product = float(np.mean(changes * integrals))
        alike = product / (moved * stated) if moved and stated else 0.0
        limit = limit_of('velocity')
        if not 1.0 / limit <= factor <= limit or alike < MIN_CORRELATION:
            yield finding('velocity', name, level=level, factor=factor, correlation=alike)


def sample_rate(samples: SampleBatch, how: Preparation) -> Iterator[Finding]:
    """Yield stamps whose unit is wrong, by the rate that follows."""
    steps = np.abs(np.diff(samples.stamp_ns))
    if not steps.any():
        return
    # Stamps that are rounded stand still most of the time.
    period = float(np.median(steps) or np.mean(steps)) * 1e-9
    cutoff = how.cutoff or 0.0
    slow = 1.0 / period < MIN_RATE and (cutoff >= 0.5 / period or period > how.largest_gap)
    if 1.0 / period > MAX_RATE or slow:
        what = (
            f'rate {1.0 / period:.4g} Hz, expected {MIN_RATE:g} to {MAX_RATE:g} Hz, or cutoff '
            'below half of it and no longer gaps than largest_gap'
        )
        yield finding('clock', 'time', level=Level.ERROR, what=what)


def without_frozen_readings(
    robot: Robot, samples: SampleBatch, joints: Sequence[str], after: float, kinds: Collection[str]
) -> tuple[SampleBatch, list[Finding]]:
    """Return samples with NaN where signals repeat themselves for a time [s], and findings."""
    if not after or len(samples) < 2:
        return samples, []
    t = np.asarray(samples.stamp_ns * 1e-9, dtype=np.float64)
    q, v = samples.positions, samples.velocities
    kept = replace(
        samples, positions=q.copy(), velocities=v.copy(), ft_readings=samples.ft_readings.copy(),
        efforts=None if samples.efforts is None else samples.efforts.copy(),
    )  # fmt: skip
    found = []
    for one in signals(robot, kept, joints, kinds):
        of_motion = one.what in ('position', 'velocity')
        usual = 0.0 if of_motion else _usual_time(t, one.values, after)
        least = max(after, USUAL_FACTOR * usual)
        frozen = np.zeros(len(t), dtype=bool)
        for first, last in zip(*runs(one.values), strict=True):
            part = slice(first, last + 1)
            if last - first >= MIN_REPEATS and t[last] - t[first] >= least:
                frozen[first + 1 : last + 1] = (
                    _contradicts(t, q[:, one.joints[0]], v[:, one.joints[0]], part)
                    if of_motion
                    else one.moves(q[part])
                )
        one.values[frozen] = np.nan
        if frozen.any():
            share = float(frozen.mean())
            found.append(finding('frozen', one.subject, what=one.what, share=share))
    return kept, found


def _usual_time(t: Array, values: Array, after: float) -> float:
    """Return the usual length of runs of a coarse signal [s]; 0: it is not coarse."""
    starts, ends = runs(values)
    times, repeated = t[ends] - t[starts], ends - starts
    short = (repeated < MIN_REPEATS) | (times < after)
    times, repeated = times[short], repeated[short]
    if not repeated.any() or repeated.sum() < COARSE_SHARE * (repeated + 1).sum():
        return 0.0
    if len(np.unique(values, axis=0)) < MIN_LEVELS:
        return np.inf
    order = np.argsort(times)
    covered = np.cumsum(repeated[order])
    return float(times[order][np.searchsorted(covered, USUAL_SHARE * covered[-1])])


def _contradicts(t: Array, q: Array, v: Array, part: slice) -> bool:
    """Return true if a position changes otherwise than its velocity states, in a run."""
    times, moved, rate = t[part] - t[part.start], q[part] - q[part.start], v[part]
    if not (np.isfinite(moved).all() and np.isfinite(rate).all()):
        return False
    off = np.abs(moved - cumulative_trapezoid(rate, times, initial=0.0))
    limit = MIN_MOTION + _resolution(q) + (VELOCITY_ERROR + _resolution(v)) * times
    return bool((off > limit).any())


def _resolution(values: Array) -> float:
    """Return the step of a coarse signal."""
    changes = np.abs(np.diff(values[np.isfinite(values)]))
    changes = changes[changes > 0.0]
    return float(np.percentile(changes, RESOLUTION_PERCENTILE)) if len(changes) else 0.0
