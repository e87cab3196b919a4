# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Readings that a table of numbers repeats to the bit, as of a sensor that sends its last value.

Of a robot at rest, and of one without noise, readings may stay the same and be right. So an effort
is taken for frozen only where its joint moves meanwhile, an FT sensor where a joint does that
leads from the root link to it or is beyond it. What positions and velocities repeat is in
`frozen_motion`; IMUs are not judged: at rest they look the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.logs.signal_checks import STILL, joints_around, span
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

FROZEN_AFTER = 0.2
"""A reading that is equal to the bit for so long is frozen, unless somebody says otherwise [s]."""
LEAST = 5
"""Instants that this must be."""
COARSE = 0.1
"""Share of repeated values, in shorter runs, from which a signal repeats itself in use too."""
USUAL, BEYOND = 0.9, 20.0
"""
Share of these values that lie in runs which are no longer than usual, and how many times as long
as such a run one must be.
"""
LEVELS = 20
"""Different values below which a signal that repeats itself in use may do so for any time."""
NANOSECONDS = 1e-9


_MOVING = (
    'while joints moved; what rests on them gives no rows there and within '
    "'preparation.edges' of there; if they are right, 'rows.frozen_after: 0' keeps them"
)
_AT_REST = (
    'at rest, where they may be right: they count as rows; if they are not, put NaN there, or '
    'leave these parts of the log out (LOG@FROM:TO)'
)


class _Signal(NamedTuple):
    """What may be frozen."""

    name: str
    values: Array
    """Shape (n, k); a view of the samples."""
    joints: Sequence[int]
    """Whose motion changes it."""
    noisy: bool
    """Whether it hardly stays the same at rest either."""


def without_repeated(
    robot: Robot, samples: SampleBatch, joints: Sequence[str], after: float = FROZEN_AFTER
) -> tuple[SampleBatch, list[str]]:
    """
    Return samples without what frozen efforts and FT sensors repeat.

    after [s].
    """
    if not after:
        return samples, []
    efforts = None if samples.efforts is None else samples.efforts.copy()
    kept = replace(samples, efforts=efforts, ft_readings=samples.ft_readings.copy())
    t = np.asarray(samples.stamp_ns * NANOSECONDS, dtype=np.float64)
    counts: dict[tuple[str, int], list[str]] = {}
    for signal in _signals(robot, kept, joints):
        long = _repeated(t, signal.values, after)
        frozen = _in_motion(long, samples.positions[:, signal.joints])
        signal.values[frozen] = np.nan
        at_rest = int((long & ~frozen).sum()) if signal.noisy else 0
        for what, count in ((_MOVING, int(frozen.sum())), (_AT_REST, at_rest)):
            if count:
                counts.setdefault((what, count), []).append(signal.name)
    return kept, [
        f'{", ".join(names)}: one reading repeated to the bit, for {after:g} s and more, '
        f'at {count} of {len(samples)} instants {what}'
        for (what, count), names in counts.items()
    ]


def _signals(robot: Robot, samples: SampleBatch, joints: Sequence[str]) -> Iterator[_Signal]:
    """Yield what may be frozen."""
    for name in joints if samples.efforts is not None else ():
        k = robot.joint_names.index(name)
        assert samples.efforts is not None
        yield _Signal(f'effort of {name}', samples.efforts[:, k : k + 1], [k], False)
    for s, sensor in enumerate(robot.ft_sensors):
        around = joints_around(robot, sensor)
        yield _Signal(f'wrench of {sensor.name}', samples.ft_readings[:, s], around, True)


def long_runs(t: Array, values: Array, after: float) -> list[tuple[int, int]]:
    """
    Return where values stay the same to the bit for long.

    t (n,) [s]; values (n, k); after [s].
    """
    starts, ends = _runs(values)
    long = (ends - starts >= LEAST) & (t[ends] - t[starts] >= after)
    return list(zip(starts[long].tolist(), ends[long].tolist(), strict=True))


def _runs(values: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first and the last instant of each run of equal values."""
    same = (values[1:] == values[:-1]).all(axis=1)
    ends = np.flatnonzero(np.append(~same, True))
    return np.append(0, ends[:-1] + 1), ends


def _repeated(t: Array, values: Array, after: float) -> Mask:
    """Return where values are those of the instant before, in runs that are no usual ones."""
    found = np.zeros(len(t), dtype=bool)
    if len(t) < LEAST:
        return found
    for first, last in long_runs(t, values, max(after, BEYOND * _usual(t, values, after))):
        found[first + 1 : last + 1] = True
    return found


def _usual(t: Array, values: Array, after: float) -> float:
    """Return how long runs of a signal are that repeats itself in use, as in coarse steps [s]."""
    starts, ends = _runs(values)
    times, repeated = t[ends] - t[starts], ends - starts
    short = (repeated < LEAST) | (times < after)
    times, repeated = times[short], repeated[short]
    if not repeated.any() or repeated.sum() < COARSE * (repeated + 1).sum():
        return 0.0
    if len(np.unique(values, axis=0)) < LEVELS:
        return np.inf
    order = np.argsort(times)
    covered = np.cumsum(repeated[order])
    return float(times[order][np.searchsorted(covered, USUAL * covered[-1])])


def _in_motion(repeated: Mask, positions: Array) -> Mask:
    """Return those runs of repeated values in which something moves."""
    found = np.zeros(len(repeated), dtype=bool)
    edges = np.diff(np.concatenate([[False], repeated, [False]]).astype(int))
    starts, stops = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        # The first of them, which is repeated, is the one before.
        if any(span(q) > STILL for q in positions[start - 1 : stop].T):
            found[start:stop] = True
    return found
