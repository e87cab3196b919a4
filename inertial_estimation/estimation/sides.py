# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
On which side of a joint the local form of its wrench sums [T Theorem 4.2].

Both sides of a joint within its submodel say the same once the wrenches of the contacts are known
[T 4.23]. A full wrench that is alone in its submodel is itself what the sums leave; the side
without it rests on less, and needs no estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inertial_estimation.estimation.balance import subtrees
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.submodels import Submodel


@dataclass(frozen=True, eq=False)
class Side:
    """The links on one side of a joint, within its submodel."""

    links: frozenset[int]
    away: bool
    """Whether they are the ones away from the root of the robot."""
    submodel: int
    """Row of their submodel."""
    rests_on: frozenset[int]
    """
    The links whose motion counts: these; the whole submodel if a contact among them shares it with
    others or does not explain it.
    """
    sensors: tuple[int, ...]
    """FT sensors in use that count."""


def find_sides(
    robot: Robot,
    submodels: Sequence[Submodel],
    contact_links: Sequence[int],
    unknowns: Sequence[int],
) -> dict[int, Side]:
    """Find the side of every joint that is summed."""
    subtree = subtrees(robot)
    carriers = [(k, n) for k, n in zip(contact_links, unknowns, strict=True) if n]
    sides = {}
    for s, submodel in enumerate(submodels):
        members = frozenset(submodel.links)
        own = [(link, n) for link, n in carriers if link in members]
        alone = len(own) == 1 and own[0][1] == 6
        for k in members - {submodel.root}:
            beyond = members.intersection(subtree[k])
            loaded = any(link in beyond for link, _ in own)
            away = not (alone and loaded)
            links = beyond if away else members - beyond
            rests_on = members if loaded and not alone else links
            sensors = tuple(n for n in border_sensors(submodel) if _ends(robot, n) & rests_on)
            sides[k] = Side(links, away, s, rests_on, sensors)
    return sides


def border_sensors(submodel: Submodel) -> tuple[int, ...]:
    """Return the FT sensors in use around a submodel."""
    root = (submodel.root_sensor,) if submodel.root_sensor >= 0 else ()
    return (*root, *submodel.child_sensors)


def _ends(robot: Robot, sensor: int) -> set[int]:
    """Return the two links that an FT sensor joins."""
    return {robot.ft_sensors[sensor].parent, robot.ft_sensors[sensor].child}
