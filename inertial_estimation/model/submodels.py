# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The tree of links cut at its FT sensors into submodels [T section 4.5.1]."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from inertial_estimation.model.sensors import FtSensor
from inertial_estimation.model.tree import Link


@dataclass(frozen=True)
class Submodel:
    """Links that hang together between cuts."""

    name: str
    """Name of its root link."""
    root: int
    """Index of the link nearest to the root of the robot."""
    links: tuple[int, ...]
    """Indices of its links."""
    root_sensor: int
    """Index of the FT sensor towards the root of the robot, -1 if it holds that root."""
    child_sensors: tuple[int, ...]
    """Indices of the FT sensors away from the root."""


def decompose(
    links: Sequence[Link], ft_sensors: Sequence[FtSensor], cut: Collection[int]
) -> tuple[Submodel, ...]:
    """Cut the tree at some of its FT sensors."""
    root_of: list[int] = []
    for k, link in enumerate(links):
        is_root = link.parent < 0 or link.ft_sensor in cut
        root_of.append(k if is_root else root_of[link.parent])
    return tuple(
        Submodel(
            name=links[root].name,
            root=root,
            links=tuple(k for k, r in enumerate(root_of) if r == root),
            root_sensor=links[root].ft_sensor if links[root].ft_sensor in cut else -1,
            child_sensors=tuple(k for k in sorted(cut) if root_of[ft_sensors[k].parent] == root),
        )
        for root in sorted(set(root_of))
    )
