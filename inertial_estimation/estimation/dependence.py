# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which sensors, joints and links a wrench or a torque rests on [T Theorem 4.2].

Found from the tree alone. Where contacts share a submodel, all of their wrenches are taken to rest
on all of it, and a force at a point is taken to have a lever about every joint, which are at most
too much; elsewhere the tables are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.balance import Balance, subtrees
from inertial_estimation.estimation.forest import Forest
from inertial_estimation.estimation.sides import Side, border_sensors, find_sides
from inertial_estimation.model.robot import Robot

Mask = NDArray[np.bool_]


class Rests(NamedTuple):
    """Truth tables: what the results, one row each, rest on."""

    fts: Mask
    """Readings of FT sensors, shape (n_results, n_fts)."""
    sources: Mask
    """Readings of IMUs or the fixed link: the trees of the forest, (n_results, n_trees)."""
    joints: Mask
    """Position, velocity and acceleration of joints, shape (n_results, n_joints)."""
    links: Mask
    """Inertial parameters of links, shape (n_results, n_links)."""


class Dependence(NamedTuple):
    """What each kind of result rests on."""

    submodels: Rests
    """Sum of external wrenches and residual of each submodel of the balance."""
    wrenches: Rests
    """External wrench of each contact of the balance."""
    torques: Rests
    """Torque of each joint."""
    external: Rests
    """External torque of each joint."""


class JointDependence(NamedTuple):
    """Of `Dependence` what rests on joints; a column stands for all that is read of a joint."""

    submodels: Mask
    """Shape (n_submodels, n_joints): external wrenches and residual of a submodel."""
    torques: Mask
    """Shape (n_joints, n_joints): torque of the row's joint."""
    external: Mask
    """Shape (n_joints, n_joints): external torque of the row's joint."""


class _Basis(NamedTuple):
    """What one result rests on: a sum over links with sensors at its borders, and more joints."""

    links: frozenset[int] = frozenset()
    sensors: frozenset[int] = frozenset()
    joints: frozenset[int] = frozenset()


def find_dependence(
    robot: Robot, forest: Forest, balance: Balance, unknowns: Sequence[int]
) -> Dependence:
    """Find what everything rests on."""
    sums = [
        _Basis(frozenset(submodel.links), frozenset(border_sensors(submodel)))
        for submodel in balance.submodels
    ]
    wrenches = [
        sums[s] if unknowns[c] else _Basis() for c, s in enumerate(balance.contact_submodel)
    ]
    sides = find_sides(robot, balance.submodels, balance.contact_links, unknowns)
    chosen = [sides[k] for k in child_links(robot)]
    torques = [_Basis(side.rests_on, frozenset(side.sensors)) for side in chosen]
    external = _external(robot, balance, wrenches)
    return Dependence(*(_tables(robot, forest, b) for b in (sums, wrenches, torques, external)))


def joint_dependence(
    robot: Robot, forest: Forest, balance: Balance, unknowns: Sequence[int]
) -> JointDependence:
    """Find what rests on each joint."""
    depends = find_dependence(robot, forest, balance, unknowns)
    return JointDependence(
        depends.submodels.joints, depends.torques.joints, depends.external.joints
    )


def side_joints(robot: Robot, forest: Forest, side: Side) -> list[int]:
    """Return the joints that the wrench through a joint rests on."""
    return _sum_joints(robot, forest, side.rests_on)


def child_links(robot: Robot) -> list[int]:
    """Return the child link of each joint."""
    child = {link.joint: k for k, link in enumerate(robot.links) if link.joint >= 0}
    return [child[j] for j in range(len(child))]


def _external(robot: Robot, balance: Balance, wrenches: Sequence[_Basis]) -> list[_Basis]:
    """Return what external torques rest on: the wrenches, and the joints on to the contact."""
    child = child_links(robot)
    subtree = [frozenset(links) for links in subtrees(robot)]
    rests = []
    for j, factors in enumerate(balance.external_contacts):
        basis = _Basis()
        inside = np.array([k in subtree[child[j]] for k in child])
        for c in map(int, np.flatnonzero(factors)):
            on_the_way = balance.external_contacts[:, c] != 0
            onwards = on_the_way & (inside == (factors[c] > 0))
            onwards[j] = False
            joints = frozenset(map(int, np.flatnonzero(onwards)))
            wrench = wrenches[c]
            basis = _Basis(
                basis.links | wrench.links, basis.sensors | wrench.sensors, basis.joints | joints
            )
        rests.append(basis)
    return rests


def _tables(robot: Robot, forest: Forest, rests: Sequence[_Basis]) -> Rests:
    """Return truth tables."""
    n_trees = sum(top.ft_sensor < 0 for top in forest.tops)
    sizes = (len(robot.ft_sensors), n_trees, len(robot.joint_names), len(robot.links))
    tables = Rests(*(np.zeros((len(rests), size), dtype=bool) for size in sizes))
    for row, basis in enumerate(rests):
        tables.fts[row, list(basis.sensors)] = True
        tables.sources[row, [forest.owner[k] for k in basis.links]] = True
        tables.joints[row, [*_sum_joints(robot, forest, basis.links), *basis.joints]] = True
        tables.links[row, list(basis.links)] = True
    return tables


def _sum_joints(robot: Robot, forest: Forest, links: Iterable[int]) -> list[int]:
    """Return the joints that a sum of net wrenches over links rests on."""
    members = set(links)
    joints: set[int] = set()
    for k in members:
        joints |= forest.path[k]
        link = robot.links[k]
        if link.joint >= 0 and link.parent in members:
            joints.add(link.joint)
    return sorted(joints)
