# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How far missing sensors and joints reach into the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from inertial_estimation.estimation.balance import Balance, subtrees
from inertial_estimation.estimation.body_motion import MotionPlan
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dependence import joint_dependence
from inertial_estimation.estimation.estimate import Flags, Quality
from inertial_estimation.estimation.forest import Forest
from inertial_estimation.model.robot import Robot


@dataclass(frozen=True)
class Working:
    """Which sensors deliver, and which joints do not."""

    imus: tuple[bool, ...]
    """Of IMUs that share a link, or measure in part: whether the row holds a body's motion."""
    fts: tuple[bool, ...]
    missing_joints: tuple[bool, ...]
    assumed_joints: tuple[bool, ...]
    motion: MotionPlan | None = None
    """How the motions of bodies come about; None: each IMU tells its own."""


# As numbers of the arrays' own type: an enumeration counts as a 64-bit integer beside them.
ASSUMED, MERGED, MISSING = map(np.uint8, (Quality.ASSUMED, Quality.MERGED, Quality.MISSING))


class Qualities(NamedTuple):
    """`Quality` of every result as far as it follows from the working sensors."""

    contacts: Flags
    """Shape (n_contacts,), all that were asked for."""
    torques: Flags
    """Shape (n_joints,)."""
    external: Flags
    """Shape (n_joints,)."""
    submodels: Flags
    """Shape (n_submodels,), rows of ``robot.submodels``."""


def find_qualities(
    robot: Robot,
    forest: Forest,
    balance: Balance,
    contacts: Sequence[Contact],
    active: Sequence[int],
    working: Working,
) -> Qualities:
    """Mark all results that something missing or assumed reaches."""
    n = len(robot.joint_names)
    unknowns = [contacts[c].unknowns for c in active]
    sums = np.zeros(len(balance.submodels), dtype=np.uint8)
    torques, external = np.zeros(n, dtype=np.uint8), np.zeros(n, dtype=np.uint8)
    if any(working.missing_joints) or any(working.assumed_joints):
        depends = joint_dependence(robot, forest, balance, unknowns)
        for flag, joints in (
            (MISSING, working.missing_joints),
            (ASSUMED, working.assumed_joints),
        ):
            mask = np.array(joints, dtype=bool)
            sums[depends.submodels[:, mask].any(axis=1)] |= flag
            torques[depends.torques[:, mask].any(axis=1)] |= flag
            external[depends.external[:, mask].any(axis=1)] |= flag
    if not robot.fixed_frame and not any(working.imus):
        for flags in (sums, torques, external):
            flags |= MISSING
    carriers = {robot.frame(contact.frame)[0] for contact in contacts if contact.unknowns}
    _mark_merged(robot, balance, carriers, sums, torques, external)
    holder = {k: s for s, submodel in enumerate(balance.submodels) for k in submodel.links}
    wrenches = np.zeros(len(contacts), dtype=np.uint8)
    for c in set(range(len(contacts))).difference(active):
        link = robot.frame(contacts[c].frame)[0]
        wrenches[c] = Quality.DROPPED | (sums[holder[link]] & MERGED)
    for c, s in enumerate(balance.contact_submodel):
        if unknowns[c]:
            wrenches[active[c]] = sums[s]
    submodels = np.full(len(robot.submodels), MERGED)
    submodels[own_rows(robot, balance)] = sums
    for flags in (wrenches, torques, external, submodels):
        flags.flags.writeable = False
    return Qualities(wrenches, torques, external, submodels)


def own_rows(robot: Robot, balance: Balance) -> list[int]:
    """Return the row of each submodel of a balance among the robot's own."""
    rows = {submodel.root: row for row, submodel in enumerate(robot.submodels)}
    return [rows[submodel.root] for submodel in balance.submodels]


def _mark_merged(
    robot: Robot,
    balance: Balance,
    contact_links: set[int],
    sums: Flags,
    torques: Flags,
    external: Flags,
) -> None:
    """Mark what a missing FT sensor spoils."""
    roots = {submodel.root for submodel in balance.submodels}
    subtree = {robot.links[k].joint: set(links) for k, links in enumerate(subtrees(robot))}
    base = robot.base
    lost = {sensor.child for sensor in robot.ft_sensors if sensor.child not in roots}
    for s, submodel in enumerate(balance.submodels):
        members = frozenset(submodel.links)
        if not members & lost:
            continue
        sums[s] |= MERGED
        spoiled = members & (lost | contact_links)
        for j, beyond in enumerate(balance.beyond):
            if beyond & spoiled:
                torques[j] |= MERGED
            touched = members & contact_links
            if touched - subtree[j] if base in subtree[j] else touched & subtree[j]:
                external[j] |= MERGED
