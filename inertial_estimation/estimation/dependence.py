# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which joint measurements a submodel's wrench and a joint's torque rest on [T Theorem 4.2]."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.balance import Balance, subtrees
from inertial_estimation.estimation.forest import Forest
from inertial_estimation.model.robot import Robot

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class JointDependence:
    """Truth tables; a column stands for the position, velocity and acceleration of a joint."""

    submodels: Mask
    """Shape (n_submodels, n_joints): external wrenches and residual of a submodel."""
    torques: Mask
    """Shape (n_joints, n_joints): torque of the row's joint."""
    external: Mask
    """Shape (n_joints, n_joints): external torque of the row's joint."""


def joint_dependence(
    robot: Robot, forest: Forest, balance: Balance, unknowns: Sequence[int]
) -> JointDependence:
    """
    Find what rests on each joint.

    The motion of a link rests on the joints between it and the IMU that serves it; a sum of
    wrenches rests besides on the joints among the links that are summed. Where contacts share a
    submodel, all of their wrenches are taken to rest on all of it, which is at most too much.

    Parameters
    ----------
    robot : Robot
        Links and joints.
    forest : Forest
        Trees of links.
    balance : Balance
        Submodels and contacts.
    unknowns : sequence of int
        Number of unknowns of each contact of the balance.

    Returns
    -------
    JointDependence

    """
    n = len(robot.joint_names)
    submodels = np.zeros((len(balance.submodels), n), dtype=bool)
    for s, submodel in enumerate(balance.submodels):
        submodels[s, _sum_joints(robot, forest, submodel.links)] = True
    torques = np.zeros((n, n), dtype=bool)
    for j in range(n):
        links, whole = _torque_links(balance, j, unknowns)
        torques[j, _sum_joints(robot, forest, links)] = True
        if whole >= 0:
            torques[j] |= submodels[whole]
    return JointDependence(submodels, torques, _external(robot, balance, submodels, unknowns))


def _torque_links(balance: Balance, j: int, unknowns: Sequence[int]) -> tuple[frozenset[int], int]:
    """
    Return the links whose sum is a joint's torque, and a submodel it needs as a whole, or -1.

    A full wrench that is alone in its submodel takes up the whole sum: where it acts beyond the
    joint, the links beyond cancel and those on the other side remain.
    """
    beyond = balance.beyond[j]
    carriers = [c for c, factor in enumerate(balance.joint_contacts[j]) if factor and unknowns[c]]
    if not carriers:
        return beyond, -1
    s = balance.contact_submodel[carriers[0]]
    in_submodel = [unknowns[c] for c, other in enumerate(balance.contact_submodel) if other == s]
    if sum(in_submodel) == 6 and 6 in in_submodel:
        return frozenset(balance.submodels[s].links) - beyond, -1
    return beyond, s


def _external(robot: Robot, balance: Balance, submodels: Mask, unknowns: Sequence[int]) -> Mask:
    """Return what external torques rest on: the wrenches, and the joints on to the contact."""
    n = len(robot.joint_names)
    child = {link.joint: k for k, link in enumerate(robot.links) if link.joint >= 0}
    subtree = subtrees(robot)
    external = np.zeros((n, n), dtype=bool)
    for j, factors in enumerate(balance.external_contacts):
        inside = np.array([child[i] in subtree[child[j]] for i in range(n)])
        for c in map(int, np.flatnonzero(factors)):
            on_the_way = balance.external_contacts[:, c] != 0
            onwards = on_the_way & (inside == (factors[c] > 0))
            onwards[j] = False
            external[j] |= onwards
            if unknowns[c]:
                external[j] |= submodels[balance.contact_submodel[c]]
    return external


def _sum_joints(robot: Robot, forest: Forest, links: Iterable[int]) -> list[int]:
    """Return the joints that a sum of net wrenches over connected links rests on."""
    members = set(links)
    joints: set[int] = set()
    for k in members:
        joints |= forest.path[k]
        link = robot.links[k]
        if link.joint >= 0 and link.parent in members:
            joints.add(link.joint)
    return sorted(joints)
