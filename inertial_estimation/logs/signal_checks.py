# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Signals of a log that are missing at times, or do not change when they should, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError
from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtSensor
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]

STILL = 0.01
"""A joint that moves by less may have an effort that does not change [rad or m]."""
REMEDY = "check its column, or take the joint out of 'rows.efforts'"
LEAST = 5
"""Instants from which an effort that does not change is no chance."""


class Constant(NamedTuple):
    """Efforts that do not change in a log, in words, by joint."""

    moving: dict[str, str]
    """Of joints that move: nothing measures these."""
    resting: dict[str, str]
    """Of joints that do not: they may be right."""


def constant_efforts(robot: Robot, samples: SampleBatch, joints: Sequence[str]) -> Constant:
    """Return which efforts do not change."""
    found = Constant({}, {})
    if samples.efforts is None:
        return found
    for name in joints:
        k = robot.joint_names.index(name)
        known = _known(samples.efforts[:, k])
        if len(known) < LEAST or np.ptp(known):
            continue
        moves = span(samples.positions[:, k]) > STILL
        (found.moving if moves else found.resting)[name] = (
            f"effort of '{name}' is {known[0]:.4g} at all {len(known)} instants, which nothing "
            'measures'
        )
    return found


def require_live_efforts(logs: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse efforts that do not change in any log although their joint moves."""
    for log, said in logs.items():
        for joint, text in said.items():
            if all(joint in other for other in logs.values()):
                raise LogError(f'{log}: {text}: {REMEDY}')


def require_live_wrenches(robot: Robot, samples: SampleBatch) -> list[str]:
    """Refuse wrenches of FT sensors that do not change although the robot moves around them."""
    said: list[str] = []
    for s, sensor in enumerate(robot.ft_sensors):
        known = samples.ft_readings[:, s]
        known = known[np.isfinite(known).all(axis=1)]
        stuck = [] if len(known) < LEAST else np.flatnonzero(np.ptp(known, axis=0) == 0.0).tolist()
        if not stuck:
            continue
        moves = any(span(samples.positions[:, k]) > STILL for k in joints_around(robot, sensor))
        which = ', '.join(f'{COMPONENTS[k]} {known[0, k]:.4g}' for k in stuck)
        text = (
            f"wrench of '{sensor.name}' is the same at all {len(known)} instants ({which}), which "
            'nothing measures: check its columns, or take the sensor out of the settings'
        )
        if len(stuck) == len(COMPONENTS) and moves:
            raise LogError(text)
        said.append(text)
    return said


def joints_around(robot: Robot, sensor: FtSensor) -> list[int]:
    """Return the joints between the root link and a sensor, and those beyond it."""
    before, link = set(), sensor.parent
    while link >= 0:
        before.add(link)
        link = robot.links[link].parent
    beyond = {sensor.child}
    for k, one in enumerate(robot.links):  # parents come before children
        if one.parent in beyond:
            beyond.add(k)
    return sorted({robot.links[k].joint for k in before | beyond} - {-1})


def gap_warnings(robot: Robot, samples: SampleBatch, joints: Sequence[str]) -> list[str]:
    """Return which signals are missing at some instants, in words."""
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


def _signals(
    robot: Robot, samples: SampleBatch, joints: Sequence[str]
) -> Iterator[tuple[str, Array]]:
    """Yield the name of each signal that rows are made of, and its values, (n, k)."""
    for k, name in enumerate(robot.joint_names):
        yield f'position of {name}', samples.positions[:, k : k + 1]
    for name in joints if samples.efforts is not None else ():
        k = robot.joint_names.index(name)
        assert samples.efforts is not None
        yield f'effort of {name}', samples.efforts[:, k : k + 1]
    for k, sensor in enumerate(robot.ft_sensors):
        yield f'wrench of {sensor.name}', samples.ft_readings[:, k]


def _known(values: Array) -> Array:
    """Return those that are there."""
    return values[np.isfinite(values)]


def span(values: Array) -> float:
    """
    Return how far apart the largest and the smallest value are.

    values (n,).
    """
    known = _known(values)
    return float(np.ptp(known)) if len(known) else 0.0
