# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Sums of wrenches: external wrenches of submodels and loads of joints [T sections 4.5, 4.6].

Three kinds of *terms* enter, about the root link's origin in its axes: sums of net wrenches below
the tops of the forest, FT measurements (child on parent), and external wrenches at the contacts.
Their factors are decided once for a set of sensors and contacts; a factor of zero adds exactly
zero, as what is missing is taken out before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.estimation.forest import Forest
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.tree import Submodel

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Balance:
    """
    The sums for one set of FT sensors and contacts.

    The factors have one column for each top, each FT sensor and each contact, in that order.
    """

    submodels: tuple[Submodel, ...]
    """The submodels left when sensors that are not used do not cut."""
    contact_links: tuple[int, ...]
    """Link of each contact."""
    contact_submodel: tuple[int, ...]
    """Index of the submodel of each contact."""
    beyond: tuple[frozenset[int], ...]
    """For each joint: links of its submodel on the side away from the root of the robot."""
    joint_contacts: Integers
    """Factors of the contacts in each joint's torque, shape (n_joints, n_contacts)."""
    external_contacts: Integers
    """Factors of the contacts in each joint's external torque, shape (n_joints, n_contacts)."""
    submodel_factors: Array
    """Sum of the external wrenches on each submodel [T 4.19], shape (n_submodels, n_terms)."""
    joint_factors: Array
    """
    What turns each joint's ``tau`` of the forest into its torque [T 4.24, 4.25], and then what
    loads it from outside, shape (n_joints, 2, n_terms).
    """


def build_balance(
    robot: Robot,
    forest: Forest,
    submodels: tuple[Submodel, ...],
    used_sensors: Iterable[int],
    contact_links: Sequence[int],
) -> Balance:
    """Find the sums."""
    used = sorted(used_sensors)
    n_links, n_contacts = len(robot.links), len(contact_links)
    submodel_of = {k: s for s, submodel in enumerate(submodels) for k in submodel.links}
    by_submodel = []
    for submodel in submodels:
        counts = _counts(submodel.links, n_links)
        net, sensors = _net_factors(forest, counts), _sensor_factors(robot, used, counts)
        by_submodel.append([*net, *sensors, *[0] * n_contacts])
    n_other = len(forest.tops) + len(robot.ft_sensors)
    subtree = subtrees(robot)
    beyond: list[frozenset[int]] = []
    by_joint, external = [], []
    for k, link in enumerate(robot.links):
        if link.joint < 0:
            continue
        own = frozenset(subtree[k]).intersection(submodels[submodel_of[k]].links)
        counts = _counts(own, n_links)
        # What the joint's tau of the forest holds already is the same on both sides of each top.
        net = _net_factors(forest, counts)
        contacts = [-int(counts[c]) for c in contact_links]
        beyond.append(own)
        by_joint.append([*net, *_sensor_factors(robot, used, counts), *contacts])
        # In J' f [T 3.64] of the joint above the link.
        turned = robot.base in subtree[k]
        sign = -1 if turned else 1
        factors = [sign if (c in subtree[k]) != turned else 0 for c in contact_links]
        external.append([*[0] * n_other, *factors])
    n_joints = len(by_joint)
    joint_factors = np.array([by_joint, external], dtype=np.int64)
    joint_factors = joint_factors.reshape(2, n_joints, n_other + n_contacts)
    return Balance(
        submodels=submodels,
        contact_links=tuple(contact_links),
        contact_submodel=tuple(submodel_of[k] for k in contact_links),
        beyond=tuple(beyond),
        joint_contacts=joint_factors[0, :, n_other:],
        external_contacts=joint_factors[1, :, n_other:],
        submodel_factors=np.array(by_submodel, dtype=np.float64),
        joint_factors=np.moveaxis(joint_factors, 0, 1).astype(np.float64),
    )


def subtrees(robot: Robot) -> list[list[int]]:
    """Return each link together with all links beyond it, seen from the root of the robot."""
    found = [[k] for k in range(len(robot.links))]
    for k in reversed(range(len(robot.links))):
        if robot.links[k].parent >= 0:
            found[robot.links[k].parent] += found[k]
    return found


def _counts(links: Iterable[int], n_links: int) -> Integers:
    """Return the factor of each link: one if it is listed, else zero."""
    counts = np.zeros(n_links, dtype=np.int64)
    counts[list(links)] = 1
    return counts


def _net_factors(forest: Forest, counts: Integers) -> list[int]:
    """Return the factor of each top in a sum of net wrenches."""
    return [
        int(counts[top.below[0]] - (counts[top.above] if top.above >= 0 else 0))
        if top.below
        else 0
        for top in forest.tops
    ]


def _sensor_factors(robot: Robot, used: Sequence[int], counts: Integers) -> list[int]:
    """Return the factor of each FT measurement in: net wrenches - wrenches through sensors."""
    factors = [0] * len(robot.ft_sensors)
    for k in used:
        sensor = robot.ft_sensors[k]
        factors[k] = int(counts[sensor.child] - counts[sensor.parent])
    return factors
