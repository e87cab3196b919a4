# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""When which submodel was in free air: rows under an unknown wrench say nothing [T 7.3]."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.logs.touches import Touches
from inertial_estimation.model.inertial_sensors import same_place
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Mask = NDArray[np.bool_]


def free_submodels(
    robot: Robot,
    stamps: NDArray[np.int64],
    contacts: Iterable[str],
    recorded: SampleBatch,
    touches: Touches | None,
    reach: float,
    known: Collection[str] = (),
) -> Mask:
    """
    Tell when no unknown wrench acts on which submodel.

    stamps (n,) [ns]; reach [s]; returns (n, n_submodels).
    """
    free = np.ones((len(stamps), len(robot.submodels)), dtype=bool)
    for frame in contacts:
        robot.frame(frame, f"'rows.contacts' names '{frame}'")
    free[:, sorted({submodel_of(robot, frame) for frame in contacts})] = False
    if touches is None:
        return free
    for number, felt in enumerate(touches.sets):
        unknown = {c.frame for c in felt if not _is_known(robot, c.frame, known)}
        columns = sorted({submodel_of(robot, frame) for frame in unknown})
        times = recorded.stamp_ns[touches.rows == number]
        if columns and len(times):
            free[_near(stamps, times, reach)[:, None], columns] = False
    return free


def submodel_of(robot: Robot, frame: str) -> int:
    """Return the submodel that a frame belongs to."""
    link, _ = robot.frame(frame)
    return next(k for k, submodel in enumerate(robot.submodels) if link in submodel.links)


def _is_known(robot: Robot, frame: str, known: Iterable[str]) -> bool:
    """Tell whether a frame is one of those whose wrenches are known, by whatever name."""
    return any(same_place(robot.frame(frame), robot.frame(name)) for name in known)


def _near(stamps: NDArray[np.int64], times: NDArray[np.int64], reach: float) -> NDArray[np.intp]:
    """Return the instants within reach of some times, both in order."""
    margin = round(reach * 1e9)
    first = np.searchsorted(times, stamps - margin)
    last = np.searchsorted(times, stamps + margin, side='right')
    return np.flatnonzero(last > first)
