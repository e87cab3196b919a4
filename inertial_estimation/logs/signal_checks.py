# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Signals of a log that are missing at times, or do not change when they should, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

STILL = 0.01
"""A joint that moves by less may have an effort that does not change [rad or m]."""
FROZEN_AFTER = 0.2
"""A reading that is equal to the bit for so long is frozen [s]."""
LEAST = 5
"""Instants that this must be."""
COARSE = 0.1
"""Share of repeated values, outside of such stretches, from which they are no sign of that."""
NANOSECONDS = 1e-9
EFFORT, WRENCH = 'effort of ', 'wrench of '
"""How the names of signals begin."""


def require_live_efforts(robot: Robot, samples: SampleBatch, joints: Sequence[str]) -> list[str]:
    """
    Refuse efforts that do not change although their joint moves.

    Parameters
    ----------
    robot : Robot
        Whose joints they are.
    samples : SampleBatch
        As recorded.
    joints : sequence of str
        Whose efforts give rows.

    Returns
    -------
    list of str
        Efforts of joints at rest that do not change either, in words.

    Raises
    ------
    LogError
        With the joint and the value.

    """
    said: list[str] = []
    efforts = samples.efforts
    if efforts is None:
        return said
    for name in joints:
        k = robot.joint_names.index(name)
        known = _known(efforts[:, k])
        if len(known) < LEAST or np.ptp(known):
            continue
        text = (
            f"effort of '{name}' is {known[0]:.4g} at all {len(known)} instants, which nothing "
            "measures: check its column, or take the joint out of 'rows.efforts'"
        )
        if _span(samples.positions[:, k]) > STILL:
            raise LogError(text)
        said.append(text)
    return said


def gap_warnings(robot: Robot, samples: SampleBatch, joints: Sequence[str]) -> list[str]:
    """
    Return which signals are missing at some instants, in words.

    Parameters
    ----------
    robot : Robot
        Whose joints and sensors they are of.
    samples : SampleBatch
        As recorded.
    joints : sequence of str
        Whose efforts give rows.

    Returns
    -------
    list of str

    """
    counts: dict[int, list[str]] = {}
    for what, values in _signals(robot, samples, joints):
        missing = int((~np.isfinite(values)).any(axis=1).sum())
        counts.setdefault(missing, []).append(what)
    return [
        f'{", ".join(names)}: missing at {count} of {len(samples)} instants; what rests on them '
        "gives no rows there and within 'preparation.edges' of there"
        for count, names in counts.items()
        if 0 < count < len(samples)
    ]


def repeated_warnings(robot: Robot, samples: SampleBatch, joints: Sequence[str]) -> list[str]:
    """
    Return which efforts and FT sensors repeat themselves for a while, in words.

    Parameters
    ----------
    robot, samples, joints
        As for `gap_warnings`.

    Returns
    -------
    list of str

    """
    t = np.asarray(samples.stamp_ns * NANOSECONDS, dtype=np.float64)
    counts: dict[int, list[str]] = {}
    for what, values in _signals(robot, samples, joints):
        owner = what.removeprefix(EFFORT)
        if owner == what and not what.startswith(WRENCH):
            continue
        moves = None
        if owner != what:
            moves = samples.positions[:, robot.joint_names.index(owner)]
        count = _repeated(t, values, moves)
        counts.setdefault(count, []).append(what)
    return [
        f'{", ".join(names)}: one reading repeated to the bit, for {FROZEN_AFTER:g} s and more, '
        f'at {count} of {len(samples)} instants; they count as rows: put NaN there, or leave '
        'these parts of the log out (LOG@FROM:TO)'
        for count, names in counts.items()
        if count
    ]


def _signals(
    robot: Robot, samples: SampleBatch, joints: Sequence[str]
) -> Iterator[tuple[str, Array]]:
    """Yield the name of each signal that rows are made of, and its values, (n, k)."""
    for k, name in enumerate(robot.joint_names):
        yield f'position of {name}', samples.positions[:, k : k + 1]
    for name in joints if samples.efforts is not None else ():
        k = robot.joint_names.index(name)
        assert samples.efforts is not None
        yield f'{EFFORT}{name}', samples.efforts[:, k : k + 1]
    for k, sensor in enumerate(robot.ft_sensors):
        yield f'{WRENCH}{sensor.name}', samples.ft_readings[:, k]


def _repeated(t: Array, values: Array, moves: Array | None) -> int:
    """Return the instants of long runs of equal values, of a joint that moves meanwhile."""
    if len(t) < LEAST:
        return 0
    same = (values[1:] == values[:-1]).all(axis=1)
    ends = np.flatnonzero(np.append(~same, True))
    starts = np.append(0, ends[:-1] + 1)
    long = (ends - starts >= LEAST) & (t[ends] - t[starts] >= FROZEN_AFTER)
    lengths = ends - starts + 1
    # What is told in a few coarse steps is equal all the time.
    if np.sum(lengths[~long] - 1) >= COARSE * lengths[~long].sum():
        return 0
    runs = zip(starts[long].tolist(), ends[long].tolist(), strict=True)
    return sum(
        last - first + 1
        for first, last in runs
        if moves is None or _span(moves[first : last + 1]) > STILL
    )


def _known(values: Array) -> Array:
    """Return those that are there."""
    return values[np.isfinite(values)]


def _span(values: Array) -> float:
    """Return how far apart the largest and the smallest one are."""
    known = _known(values)
    return float(np.ptp(known)) if len(known) else 0.0
