# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Readings that a table of numbers repeats to the bit, as a sensor that sends its last value does.

Readings of a robot at rest, and of one without noise, may stay the same and be right. An effort is
frozen only while its joint moves, an FT sensor while a joint moves that leads to it or lies beyond
it, a position or a velocity only where the two contradict each other. IMUs are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.findings import Finding, Level, finding
from inertial_estimation.logs.checks import MIN_MOTION, joints_around, span
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

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


def without_frozen_readings(
    robot: Robot, samples: SampleBatch, joints: Sequence[str], after: float, *, velocities: bool
) -> tuple[SampleBatch, list[Finding]]:
    """
    Return samples with NaN in place of frozen values, and findings.

    joints: those whose efforts are used; after [s]; velocities: whether those of the log are used.
    """
    if not after or len(samples) < 2:
        return samples, []
    copied = ('positions', 'velocities', 'ft_readings', 'efforts')
    copies: dict[str, Any] = {
        name: None if (values := getattr(samples, name)) is None else values.copy()
        for name in copied
    }
    kept = replace(samples, **copies)
    t = np.asarray(samples.stamp_ns * 1e-9, dtype=np.float64)
    found = [
        *_freeze_signals(robot, t, samples, kept, joints, after),
        *_freeze_motion(robot, t, samples, kept, after, velocities=velocities),
    ]
    return kept, found


def _freeze_signals(
    robot: Robot, t: Array, samples: SampleBatch, kept: SampleBatch, joints: Sequence[str],
    after: float,
) -> Iterator[Finding]:  # fmt: skip
    """Put NaN in place of frozen efforts and FT readings, and yield findings."""
    signals: list[tuple[str, str, Array, Sequence[int]]] = [
        (one.name, 'wrench', kept.ft_readings[:, s], joints_around(robot, one))
        for s, one in enumerate(robot.ft_sensors)
    ]
    if kept.efforts is not None:
        columns = [robot.joint_names.index(name) for name in joints]
        efforts = [
            (robot.joint_names[k], 'effort', kept.efforts[:, k, None], [k]) for k in columns
        ]
        signals = [*efforts, *signals]
    for subject, what, values, around in signals:
        least = max(after, USUAL_FACTOR * _usual_time(t, values, after))
        runs = [] if len(t) < MIN_REPEATS else _long_runs(t, values, least)
        moved = samples.positions[:, around]
        frozen, still = np.zeros((2, len(t)), dtype=bool)
        for first, last in runs:
            moving = any(span(q) > MIN_MOTION for q in moved[first : last + 1].T)
            (frozen if moving else still)[first + 1 : last + 1] = True
        values[frozen] = np.nan
        if frozen.any():
            yield finding('frozen', subject, what=what, share=float(frozen.mean()))
        elif still.any() and what == 'wrench':
            share = float(still.mean())
            yield finding('frozen', subject, level=Level.INFO, what=f'{what} at rest', share=share)


def _freeze_motion(
    robot: Robot, t: Array, samples: SampleBatch, kept: SampleBatch, after: float, *,
    velocities: bool,
) -> Iterator[Finding]:  # fmt: skip
    """Put NaN in place of frozen positions and velocities, and yield findings."""
    for k, name in enumerate(robot.joint_names):
        q, v = samples.positions[:, k], samples.velocities[:, k]
        for what, values, left in (
            ('position', q, kept.positions),
            *((('velocity', v, kept.velocities),) if velocities else ()),
        ):
            count = 0
            for first, last in _long_runs(t, values[:, None], after):
                if _contradicts(t, q, v, slice(first, last + 1)):
                    left[first + 1 : last + 1, k] = np.nan
                    count += last - first
            if count:
                yield finding('frozen', name, what=what, share=count / len(t))


def _long_runs(t: Array, values: Array, after: float) -> list[tuple[int, int]]:
    """Return first and last sample of long runs of equal values (n, k), t (n,) and after [s]."""
    starts, ends = _runs(values)
    long = (ends - starts >= MIN_REPEATS) & (t[ends] - t[starts] >= after)
    return list(zip(starts[long].tolist(), ends[long].tolist(), strict=True))


def _runs(values: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first and the last sample of each run of equal values."""
    same = (values[1:] == values[:-1]).all(axis=1)
    ends = np.flatnonzero(np.append(~same, True))
    return np.append(0, ends[:-1] + 1), ends


def _usual_time(t: Array, values: Array, after: float) -> float:
    """Return the usual length of runs of a coarse signal [s]; 0: it is not coarse."""
    starts, ends = _runs(values)
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
    if not (np.isfinite(q[part]).all() and np.isfinite(v[part]).all()):
        return False
    times, moved, rate = t[part] - t[part.start], q[part] - q[part.start], v[part]
    areas = 0.5 * (rate[1:] + rate[:-1]) * np.diff(times)
    off = np.abs(moved - np.append(0.0, np.cumsum(areas)))
    limit = MIN_MOTION + _resolution(q) + (VELOCITY_ERROR + _resolution(v)) * times
    return bool((off > limit).any())


def _resolution(values: Array) -> float:
    """Return the step of a coarse signal."""
    changes = np.abs(np.diff(values[np.isfinite(values)]))
    changes = changes[changes > 0.0]
    return float(np.percentile(changes, RESOLUTION_PERCENTILE)) if len(changes) else 0.0
