# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which joint measurements a submodel's wrench and a joint's torque rest on [T Theorem 4.2]."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.balance import Balance
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


def joint_dependence(robot: Robot, forest: Forest, balance: Balance) -> JointDependence:
    """
    Find what rests on each joint.

    The motion of a link rests on the joints between it and the IMU that serves it; a sum of
    wrenches rests besides on the joints among the links that are summed.

    Parameters
    ----------
    robot : Robot
        Links and joints.
    forest : Forest
        Trees of links.
    balance : Balance
        Submodels and contacts.

    Returns
    -------
    JointDependence

    """
    n = len(robot.joint_names)
    submodels = np.zeros((len(balance.submodels), n), dtype=bool)
    for s, submodel in enumerate(balance.submodels):
        submodels[s, _sum_joints(robot, forest, submodel.links)] = True
    torques = np.zeros((n, n), dtype=bool)
    for j, beyond in enumerate(balance.beyond):
        torques[j, _sum_joints(robot, forest, beyond)] = True
        for c in np.flatnonzero(balance.joint_contacts[j]):
            torques[j] |= submodels[balance.contact_submodel[c]]
    return JointDependence(submodels, torques, _external(robot, balance, submodels))


def _external(robot: Robot, balance: Balance, submodels: Mask) -> Mask:
    """Return what external torques rest on: the wrenches, and the joints from base to contact."""
    n = len(robot.joint_names)
    external = np.zeros((n, n), dtype=bool)
    for j, factors in enumerate(balance.external_contacts):
        for c in np.flatnonzero(factors):
            external[j] |= submodels[balance.contact_submodel[c]]
            external[j] |= balance.external_contacts[:, c] != 0
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
