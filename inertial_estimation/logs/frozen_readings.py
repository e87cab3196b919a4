# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Readings that a table of numbers repeats to the bit, as a sensor that sends its last value does.

Readings of a robot at rest, and of one without noise, may stay the same and be right. An effort is
frozen only while its joint moves, an FT sensor while a joint moves that leads to it or lies beyond
it, a position or a velocity only where the two contradict each other. IMUs are not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.integrate import cumulative_trapezoid

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.findings import Finding, finding
from inertial_estimation.logs.checks import MIN_MOTION, signals
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
    t = np.asarray(samples.stamp_ns * 1e-9, dtype=np.float64)
    q, v = samples.positions, samples.velocities
    kept = replace(
        samples, positions=q.copy(), velocities=v.copy(), ft_readings=samples.ft_readings.copy(),
        efforts=None if samples.efforts is None else samples.efforts.copy(),
    )  # fmt: skip
    found = []
    for one in signals(robot, kept, joints, velocities=velocities):
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


def runs(values: Array) -> tuple[Indices, Indices]:
    """Return the first and the last sample of each run of equal values (n, k)."""
    same = (values[1:] == values[:-1]).all(axis=1)
    ends = np.flatnonzero(np.append(~same, True))
    return np.append(0, ends[:-1] + 1), ends


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
