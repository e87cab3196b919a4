# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Positions and velocities that a table of numbers repeats to the bit while the other ones go on.

A joint at rest repeats both. One of them is taken for frozen only where they contradict each
other: the velocity says that the joint moves while its position stays, or the position moves in
another way than by a velocity that stays. Without velocities in the log nothing tells.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.logs.repeated import NANOSECONDS, long_runs
from inertial_estimation.logs.signal_checks import STILL
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]

DRIFT = 0.02
"""Error of a velocity at rest that is none of a frozen signal [rad/s or m/s]."""
STEP = 10.0
"""Percentile of the changes from one instant to the next that is the step of a coarse signal."""


def without_frozen_motion(
    robot: Robot, samples: SampleBatch, after: float, velocities: bool
) -> tuple[SampleBatch, list[str]]:
    """
    Return samples without positions and velocities that are frozen.

    after [s].
    """
    if not after or len(samples) < 2:
        return samples, []
    t = np.asarray(samples.stamp_ns * NANOSECONDS, dtype=np.float64)
    kept = replace(
        samples, positions=samples.positions.copy(), velocities=samples.velocities.copy()
    )
    counts: dict[int, list[str]] = {}
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
                counts.setdefault(count, []).append(f'{what} of {name}')
    return kept, [
        f'{", ".join(names)}: the same to the bit for {after:g} s and more, at {count} of '
        f'{len(samples)} instants, while positions and velocities of the joint contradict each '
        "other; what rests on them gives no rows there and within 'preparation.edges' of there; "
        "if they are right, 'rows.frozen_after: 0' keeps them"
        for count, names in counts.items()
    ]


def _against(t: Array, q: Array, v: Array, first: int, last: int) -> bool:
    """Tell whether a position changes otherwise than its velocity says, in a part of a log."""
    part = slice(first, last + 1)
    if not (np.isfinite(q[part]).all() and np.isfinite(v[part]).all()):
        return False
    times, moved, rate = t[part] - t[first], q[part] - q[first], v[part]
    areas = 0.5 * (rate[1:] + rate[:-1]) * np.diff(times)
    off = np.abs(moved - np.append(0.0, np.cumsum(areas)))
    return bool((off > STILL + _step(q) + (DRIFT + _step(v)) * times).any())


def _step(values: Array) -> float:
    """Return the step in which a signal is told."""
    changes = np.abs(np.diff(values[np.isfinite(values)]))
    changes = changes[changes > 0.0]
    return float(np.percentile(changes, STEP)) if len(changes) else 0.0
