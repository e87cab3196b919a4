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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.findings import Finding, Level, finding
from inertial_estimation.logs.checks import MIN_MOTION, joints_around, span
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Runs = list[tuple[int, int]]

FROZEN_AFTER = 0.2
"""Default time from which a reading that is equal to the bit is frozen [s]."""
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


class _Signal(NamedTuple):
    """A signal that may be frozen."""

    subject: str
    what: str
    values: Array
    """Shape (n, k); a view of the samples."""
    joints: Sequence[int]
    """Whose motion changes it."""
    noisy: bool
    """Whether it changes at rest too."""


def without_frozen_readings(
    robot: Robot,
    samples: SampleBatch,
    joints: Sequence[str],
    after: float = FROZEN_AFTER,
    *,
    velocities: bool = True,
) -> tuple[SampleBatch, list[Finding]]:
    """
    Return samples with NaN in place of frozen values, and findings.

    joints: those whose efforts are used; after [s]; velocities: whether those of the log are used.
    """
    if not after or len(samples) < 2:
        return samples, []
    copied = ('positions', 'velocities', 'ft_readings', 'efforts')
    values = {name: getattr(samples, name) for name in copied}
    copies: dict[str, Any] = {k: None if v is None else v.copy() for k, v in values.items()}
    kept = replace(samples, **copies)
    t = np.asarray(samples.stamp_ns * 1e-9, dtype=np.float64)
    findings = []
    for signal in _signals(robot, kept, joints):
        long = _repeated(t, signal.values, after)
        frozen = _in_motion(long, samples.positions[:, signal.joints])
        signal.values[frozen] = np.nan
        if frozen.any():
            share = float(frozen.mean())
            findings.append(finding('frozen', signal.subject, what=signal.what, share=share))
        elif signal.noisy and long.any():
            findings.append(
                finding(
                    'frozen', signal.subject, level=Level.INFO, what=f'{signal.what} at rest',
                    share=float(long.mean()),
                )
            )  # fmt: skip
    return kept, findings + list(_freeze_motion(robot, t, samples, kept, after, velocities))


def _freeze_motion(
    robot: Robot, t: Array, samples: SampleBatch, kept: SampleBatch, after: float, velocities: bool
) -> Iterator[Finding]:
    """Put NaN in place of frozen positions and velocities, and yield findings."""
    for k, name in enumerate(robot.joint_names):
        q, v = samples.positions[:, k], samples.velocities[:, k]
        judged = {'position': (q, kept.positions)}
        if velocities:
            judged['velocity'] = (v, kept.velocities)
        for what, (values, left) in judged.items():
            runs = [run for run in long_runs(t, values[:, None], after) if _against(t, q, v, *run)]
            for first, last in runs:
                left[first + 1 : last + 1, k] = np.nan
            count = sum(last - first for first, last in runs)
            if count:
                yield finding('frozen', name, what=what, share=count / len(t))


def _signals(robot: Robot, samples: SampleBatch, joints: Sequence[str]) -> Iterator[_Signal]:
    """Yield efforts and FT sensors."""
    for name in joints if samples.efforts is not None else ():
        k = robot.joint_names.index(name)
        assert samples.efforts is not None
        yield _Signal(name, 'effort', samples.efforts[:, k : k + 1], [k], False)
    for s, sensor in enumerate(robot.ft_sensors):
        around = joints_around(robot, sensor)
        yield _Signal(sensor.name, 'wrench', samples.ft_readings[:, s], around, True)


def long_runs(t: Array, values: Array, after: float) -> Runs:
    """
    Return first and last sample of each long run of equal values.

    t (n,) [s]; values (n, k); after [s].
    """
    starts, ends = _runs(values)
    long = (ends - starts >= MIN_REPEATS) & (t[ends] - t[starts] >= after)
    return list(zip(starts[long].tolist(), ends[long].tolist(), strict=True))


def _runs(values: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first and the last sample of each run of equal values."""
    same = (values[1:] == values[:-1]).all(axis=1)
    ends = np.flatnonzero(np.append(~same, True))
    return np.append(0, ends[:-1] + 1), ends


def _repeated(t: Array, values: Array, after: float) -> Mask:
    """Return the samples (n,) that repeat the one before, in runs of unusual length."""
    found = np.zeros(len(t), dtype=bool)
    if len(t) < MIN_REPEATS:
        return found
    for first, last in long_runs(t, values, max(after, USUAL_FACTOR * _usual(t, values, after))):
        found[first + 1 : last + 1] = True
    return found


def _usual(t: Array, values: Array, after: float) -> float:
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


def _in_motion(repeated: Mask, positions: Array) -> Mask:
    """Return the runs of repeated values (n,) in which a joint moves, positions (n, k)."""
    found = np.zeros(len(repeated), dtype=bool)
    edges = np.diff(np.concatenate([[False], repeated, [False]]).astype(int))
    starts, stops = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        # The first of them, which is repeated, is the one before.
        if any(span(q) > MIN_MOTION for q in positions[start - 1 : stop].T):
            found[start:stop] = True
    return found


def _against(t: Array, q: Array, v: Array, first: int, last: int) -> bool:
    """Return whether a position changes otherwise than its velocity states, in a run."""
    part = slice(first, last + 1)
    if not (np.isfinite(q[part]).all() and np.isfinite(v[part]).all()):
        return False
    times, moved, rate = t[part] - t[first], q[part] - q[first], v[part]
    areas = 0.5 * (rate[1:] + rate[:-1]) * np.diff(times)
    off = np.abs(moved - np.append(0.0, np.cumsum(areas)))
    limit = MIN_MOTION + _resolution(q) + (VELOCITY_ERROR + _resolution(v)) * times
    return bool((off > limit).any())


def _resolution(values: Array) -> float:
    """Return the step of a coarse signal."""
    changes = np.abs(np.diff(values[np.isfinite(values)]))
    changes = changes[changes > 0.0]
    return float(np.percentile(changes, RESOLUTION_PERCENTILE)) if len(changes) else 0.0
