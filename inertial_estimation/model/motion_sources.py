# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Motion source of each link: an IMU, or the fixed link [T 4.4.4]."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.model.robot import Robot
from inertial_estimation.model.tree import Link

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Source:
    """A frame whose motion is known: an IMU or the fixed link."""

    name: str
    link: int
    """Index of the link."""
    L_H_S: Array
    """Pose of the frame in the link, shape (4, 4) [m]."""


def assign_owners(
    links: Sequence[Link], sources: Sequence[Source], *, rigid_sensors: bool = False
) -> tuple[int, ...]:
    """Give each link to the source that is nearest in the tree."""
    # More than all FT sensors of the robot together.
    joint_step = len(links) if rigid_sensors else 1
    owner = [-1] * len(links)
    distance = [0] * len(links)
    neighbours: list[list[tuple[int, bool, bool]]] = [[] for _ in links]
    for k, link in enumerate(links):
        if link.parent >= 0:
            across = link.ft_sensor >= 0
            neighbours[link.parent].append((k, False, across))
            neighbours[k].append((link.parent, True, across))
    heap = [(0, False, source.link, s) for s, source in enumerate(sources)]
    for across_sensors in (True,) if rigid_sensors else (False, True):
        heapq.heapify(heap)
        while heap:
            d, _, k, s = heapq.heappop(heap)
            if owner[k] >= 0 and owner[k] != s:
                continue
            if owner[k] < 0:
                owner[k], distance[k] = s, d
            for other, upwards, across in neighbours[k]:
                if owner[other] < 0 and (across_sensors or not across):
                    step = 1 if across else joint_step
                    heapq.heappush(heap, (d + step, upwards, other, s))
        heap = [(distance[k], False, k, s) for k, s in enumerate(owner) if s >= 0]
    return tuple(owner)


def serving_sources(robot: Robot, imus: Sequence[int]) -> tuple[NDArray[np.intp], list[Source]]:
    """Return the sources of motion that serve at least one link."""
    if robot.fixed_frame:
        return np.empty(0, dtype=np.intp), [
            Source(robot.fixed_frame, *robot.frame(robot.fixed_frame))
        ]
    candidates = [
        Source(robot.imus[k].name, robot.imus[k].link, robot.imus[k].L_H_S) for k in imus
    ]
    serving = sorted(set(assign_owners(robot.links, candidates)))
    return np.array([imus[s] for s in serving], dtype=np.intp), [candidates[s] for s in serving]
