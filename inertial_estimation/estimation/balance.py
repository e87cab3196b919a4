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

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.estimation.forest import Forest
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.tree import Submodel


@dataclass(frozen=True, eq=False)
class Balance:
    """
    The sums for one set of FT sensors and contacts.

    The factors have one column for each top, each FT sensor and each contact, in that order.
    """

    submodels: tuple[Submodel, ...]
    """The submodels left when sensors that are not used do not cut."""
    members: Mask
    """Links of each submodel, shape (n_submodels, n_links)."""
    contact_links: Indices
    """Link of each contact."""
    contact_submodel: Indices
    """Index of the submodel of each contact."""
    beyond: Mask
    """Links of its submodel beyond each joint, seen from the root, shape (n_joints, n_links)."""
    loading: Mask
    """Links of the robot on the side of each joint without the base, shape (n_joints, n_links)."""
    submodel_factors: Array
    """Sum of the external wrenches on each submodel [T 4.19], shape (n_submodels, n_terms)."""
    joint_factors: Array
    """
    Terms added to each joint's ``tau`` of the forest for its torque [T 4.24, 4.25], and those of
    its external torque, shape (n_joints, 2, n_terms).
    """
    held: Mask
    """Contacts in each joint's torque, and in its external one, (n_joints, 2, n_contacts)."""


def build_balance(
    robot: Robot,
    forest: Forest,
    submodels: tuple[Submodel, ...],
    used_sensors: Iterable[int],
    contact_links: Sequence[int],
) -> Balance:
    """Find the sums."""
    used = masks([used_sensors], len(robot.ft_sensors))
    # Column -1 is that of no link.
    below, above = [top.below for top in forest.tops], [top.above for top in forest.tops]
    far = np.array([sensor.child for sensor in robot.ft_sensors], dtype=np.intp)
    near = np.array([sensor.parent for sensor in robot.ft_sensors], dtype=np.intp)

    def measured(links: Mask) -> Array:
        """Return the factors of tops and FT measurements in: net wrenches - wrenches at cuts."""
        counts = np.pad(links.astype(np.float64), ((0, 0), (0, 1)))
        tops, fts = counts[:, below] - counts[:, above], counts[:, far] - counts[:, near]
        return np.hstack([tops, fts * used])

    child, places = child_links(robot), np.array(contact_links, dtype=np.intp)
    members = masks([submodel.links for submodel in submodels], len(robot.links))
    owner = members.argmax(axis=0)
    subtree = robot.carried[child]
    # What the joint's tau of the forest holds already is the same on both sides of each top.
    beyond = subtree & members[owner[child]]
    torques = np.hstack([measured(beyond), -1.0 * beyond[:, places]])
    # In J' f [T 3.64] of the joint above the link.
    turned = subtree[:, [robot.base]]
    loading = subtree ^ turned
    external = np.zeros_like(torques)
    external[:, external.shape[1] - len(places) :] = loading[:, places] * np.where(turned, -1, 1)
    sums, factors = measured(members), np.stack([torques, external], axis=1)
    return Balance(
        submodels=submodels,
        members=members,
        contact_links=places,
        contact_submodel=owner[places],
        beyond=beyond,
        loading=loading,
        submodel_factors=np.pad(sums, ((0, 0), (0, len(places)))),
        joint_factors=factors,
        held=factors[..., external.shape[1] - len(places) :] != 0,
    )


def masks(rows: Iterable[Iterable[int]], size: int) -> Mask:
    """Return a mask for each list of indices, shape (n, size)."""
    indices = [list(row) for row in rows]
    found = np.zeros((len(indices), size), dtype=bool)
    for mask, row in zip(found, indices):
        mask[row] = True
    return found


def child_links(robot: Robot) -> Indices:
    """Return the child link of each joint."""
    child = {link.joint: k for k, link in enumerate(robot.links)}
    return np.array([child[j] for j in range(len(robot.joint_names))], dtype=np.intp)
