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

from inertial_estimation.estimation.balance import Balance, subtrees
from inertial_estimation.model.robot import Robot


@dataclass(frozen=True, eq=False)
class Side:
    """The links on one side of a joint, within its submodel."""

    links: frozenset[int]
    away: bool
    """Whether they are the ones away from the root of the robot."""
    submodel: int
    """Row of their submodel in the balance."""
    shared: bool
    """
    Whether a contact among them has unknowns: they rest on the whole submodel, which it shares
    with other contacts or does not explain.
    """
    sensors: tuple[int, ...]
    """FT sensors in use at the borders of the submodel that these links hold."""


def find_sides(robot: Robot, balance: Balance, unknowns: Sequence[int]) -> dict[int, Side]:
    """
    Find the side of every joint that is summed.

    Parameters
    ----------
    robot : Robot
        Links, joints and FT sensors.
    balance : Balance
        Submodels and contacts.
    unknowns : sequence of int
        Number of unknowns of each contact of the balance.

    Returns
    -------
    dict of int to Side
        By the child link of each joint, and of each FT sensor that is not in use.

    """
    subtree = subtrees(robot)
    sides = {}
    for s, submodel in enumerate(balance.submodels):
        carriers = [
            (link, unknowns[c])
            for c, link in enumerate(balance.contact_links)
            if balance.contact_submodel[c] == s and unknowns[c]
        ]
        alone = len(carriers) == 1 and carriers[0][1] == 6
        members = frozenset(submodel.links)
        for k in members - {submodel.root}:
            beyond = members.intersection(subtree[k])
            loaded = any(link in beyond for link, _ in carriers)
            away = not (alone and loaded)
            links = beyond if away else members - beyond
            sensors = _border_sensors(robot, balance, s, links)
            sides[k] = Side(links, away, s, loaded and not alone, sensors)
    return sides


def border_sensors(balance: Balance, s: int) -> tuple[int, ...]:
    """
    Return the FT sensors in use around a submodel.

    Parameters
    ----------
    balance : Balance
        Submodels.
    s : int
        Row of the submodel.

    Returns
    -------
    tuple of int

    """
    submodel = balance.submodels[s]
    root = (submodel.root_sensor,) if submodel.root_sensor >= 0 else ()
    return (*root, *submodel.child_sensors)


def _border_sensors(
    robot: Robot, balance: Balance, s: int, links: frozenset[int]
) -> tuple[int, ...]:
    """Return those of them that some links of the submodel hold."""
    return tuple(
        k
        for k in border_sensors(balance, s)
        if robot.ft_sensors[k].parent in links or robot.ft_sensors[k].child in links
    )
