# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Dependence of torques and external wrenches on sensors, joints and links [T Theorem 4.2].

It follows from the tree: both sides of a joint within its submodel give the same wrench [T 4.23],
and the side without a full wrench depends on less. Where contacts share a submodel, their wrenches
are taken to depend on all of it; elsewhere tables are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Indices, Mask
from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.balance import (
    Balance,
    Forest,
    build_balance,
    build_forest,
    child_links,
    masks,
)
from inertial_estimation.estimation.contacts import Contact, check_contacts
from inertial_estimation.estimation.link_motion import LinkMotions
from inertial_estimation.model.arguments import indices
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtSensor, Imu
from inertial_estimation.model.tree import Submodel, decompose


class Sides(NamedTuple):
    """Sides of the joint or missing FT sensor above each link; a row is empty where none is."""

    members: Mask
    """Links of the submodel of the link, shape (n_links, n_links)."""
    links: Mask
    """Links on the side that is summed, within the submodel, likewise."""
    moving: Mask
    """Links whose motion counts: these, or all if a contact among them shares the submodel."""
    away: Mask
    """True where this is the side away from the root of the robot, shape (n_links,)."""


def find_sides(
    robot: Robot,
    submodels: Sequence[Submodel],
    contact_links: Sequence[int] | Indices,
    unknowns: Sequence[int],
) -> Sides:
    """Return the side of every joint that is summed."""
    n = len(robot.links)
    own = masks([submodel.links for submodel in submodels], n)
    members = own[own.argmax(axis=0)] & ~masks([[one.root for one in submodels]], n).T
    beyond = members & robot.carried
    sizes = np.array(unknowns, dtype=np.intp)
    carriers = np.array(contact_links, dtype=np.intp)[sizes > 0]
    carried = members[:, carriers]
    alone = (carried.sum(axis=1) == 1) & (carried @ sizes[sizes > 0] == 6)
    loaded = beyond[:, carriers].any(axis=1)
    away = ~(alone & loaded)
    links = np.where(away[:, None], beyond, members & ~beyond)
    return Sides(members, links, np.where((loaded & ~alone)[:, None], members, links), away)


def sum_joints(robot: Robot, forest: Forest, links: Mask) -> Mask:
    """Return the joints that sums of net wrenches over links depend on, (n_sums, n_joints)."""
    child = child_links(robot)
    parent = [robot.links[k].parent for k in child]
    paths = masks(forest.path, len(child))
    return np.asarray(links @ paths | links[:, child] & links[:, parent])


class Tables(NamedTuple):
    """Dependence of results, one row each, as truth tables."""

    fts: Mask
    """Readings of FT sensors, shape (n_results, n_fts)."""
    sources: Mask
    """Readings of IMUs or the fixed link: the trees of the forest, (n_results, n_trees)."""
    joints: Mask
    """Position, velocity and acceleration of joints, shape (n_results, n_joints)."""
    links: Mask
    """Inertial parameters of links, shape (n_results, n_links)."""


class Dependence(NamedTuple):
    """Dependence of each kind of result."""

    submodels: Tables
    """Sum of external wrenches and residual of each submodel of the balance."""
    wrenches: Tables
    """External wrench of each contact of the balance."""
    torques: Tables
    """Torque of each joint."""
    external: Tables
    """External torque of each joint."""


def find_dependence(
    robot: Robot, forest: Forest, balance: Balance, unknowns: Sequence[int]
) -> Dependence:
    """Return the dependence of all results."""
    n_trees = sum(top.ft_sensor < 0 for top in forest.tops)
    owners = masks([[s] for s in forest.owner], n_trees)

    def tables(links: Mask) -> Tables:
        """Return the dependence of sums over links, one row each."""
        fts = _sensors_at(robot, balance.submodels, links)
        return Tables(fts, links @ owners, sum_joints(robot, forest, links), links)

    has_unknowns = np.array(unknowns, dtype=bool).reshape(-1, 1)
    wrenches = balance.members[balance.contact_submodel] & has_unknowns
    child = child_links(robot)
    sides = find_sides(robot, balance.submodels, balance.contact_links, unknowns)
    # An external torque depends on the wrenches, and on the joints from its own to the contacts.
    holds = balance.held[:, 1]
    external = tables(holds @ wrenches)
    onwards = balance.loading[:, child] & (holds @ holds.T) & ~np.eye(len(child), dtype=bool)
    external = external._replace(joints=external.joints | onwards)
    return Dependence(
        tables(balance.members), tables(wrenches), tables(sides.moving[child]), external
    )


def _sensors_at(robot: Robot, submodels: Sequence[Submodel], links: Mask) -> Mask:
    """Return the FT sensors in use that border on links of a submodel, (n_sums, n_fts)."""
    used = masks([[n for submodel in submodels for n in submodel.sensors]], len(robot.ft_sensors))
    ends = masks([{one.parent, one.child} for one in robot.ft_sensors], len(robot.links))
    return np.asarray(links @ ends.T & used)


@dataclass(frozen=True)
class ResultDependence:
    """Names that one torque or external wrench depends on; nothing else changes it."""

    name: str
    """Joint or contact."""
    fts: tuple[str, ...]
    imus: tuple[str, ...]
    """IMUs, or the fixed link."""
    joints: tuple[str, ...]
    """Joints whose position, velocity or acceleration counts."""
    links: tuple[str, ...]
    """Links whose inertial parameters count."""


@dataclass(frozen=True)
class UninformedTorques:
    """Torques of a submodel that depend on no FT sensor, only on model and motion."""

    joints: tuple[str, ...]
    submodel: str
    contact: str
    """
    Link on the other side of the joints: with the submodel's contact there, torques would depend
    on FT sensors; empty if no FT sensor in use borders on the submodel.
    """


@dataclass(frozen=True)
class DependenceTable:
    """Dependence of all torques and external wrenches, for one set of sensors and contacts."""

    torques: tuple[ResultDependence, ...]
    """In the order of the joints."""
    wrenches: tuple[ResultDependence, ...]
    """In the order of the contacts."""
    uninformed: tuple[UninformedTorques, ...]


def dependence_table(
    robot: Robot,
    contacts: Sequence[Contact],
    *,
    imus: Iterable[str | int] | None = None,
    fts: Iterable[str | int] | None = None,
    acceleration_arrays: bool = False,
) -> DependenceTable:
    """
    Return the dependence of every torque and external wrench.

    Parameters
    ----------
    robot : Robot
        With a fixed link or an IMU.
    contacts : sequence of Contact
        Those that take part.
    imus, fts : iterable of str or int, optional
        Sensors that work, by name or row; default: all.
    acceleration_arrays : bool, optional
        As of the estimator.

    Returns
    -------
    DependenceTable

    Raises
    ------
    NameNotFound
        If a contact names a frame, or one of the lists a sensor, that the robot does not have.
    ModelError
        If the IMUs measure the motion of no link, or an argument is of another type.

    """
    contacts, used = check_contacts(contacts), _sensors('fts', fts, 'FT sensor', robot.ft_sensors)
    motion = LinkMotions(robot, arrays=acceleration_arrays)
    working = _sensors('imus', imus, 'IMU', robot.imus)
    if not (working or robot.fixed_frame):
        raise ModelError(f"robot '{robot.name}' has no fixed_link, and 'imus' names none")
    plan = motion.plan(tuple(b if k in working else 0 for k, b in enumerate(motion.bits)))
    _, sources = robot.motion_sources(np.flatnonzero(plan.serving).tolist())
    forest = plan.reaching(build_forest(robot, sources))
    submodels = decompose(robot.links, robot.ft_sensors, used)
    links = [robot.frame(contact.frame)[0] for contact in contacts]
    balance = build_balance(robot, forest, submodels, used, links)
    unknowns = [contact.unknowns for contact in contacts]
    found = find_dependence(robot, forest, balance, unknowns)
    motions = [robot.fixed_frame] if robot.fixed_frame else [imu.name for imu in robot.imus]
    read = np.zeros((len(sources), len(motions)), dtype=bool)
    for row, source in enumerate(sources):
        read[row, [0] if robot.fixed_frame else list(plan.rows[source.link])] = True
    fts_names = [sensor.name for sensor in robot.ft_sensors]
    names = fts_names, motions, robot.joint_names, robot.link_names

    def named(results: Sequence[str], tables: Tables) -> tuple[ResultDependence, ...]:
        tables = tables._replace(sources=tables.sources @ read)
        rows = [
            [tuple(known[k] for k in np.flatnonzero(table[row]).tolist())
             for table, known in zip(tables, names, strict=True)]
            for row in range(len(results))
        ]  # fmt: skip
        return tuple(ResultDependence(result, *row) for result, row in zip(results, rows))

    return DependenceTable(
        named(robot.joint_names, found.torques),
        named([contact.name for contact in contacts], found.wrenches),
        find_uninformed(robot, contacts, used),
    )


def find_uninformed(
    robot: Robot, contacts: Sequence[Contact], fts: Sequence[int]
) -> tuple[UninformedTorques, ...]:
    """Return the torques without an FT sensor, by submodel and by the side that is summed."""
    submodels = decompose(robot.links, robot.ft_sensors, fts)
    links = [robot.frame(contact.frame)[0] for contact in contacts]
    sides = find_sides(robot, submodels, links, [contact.unknowns for contact in contacts])
    informed = np.asarray(_sensors_at(robot, submodels, sides.moving).any(axis=1))
    found = []
    groups: dict[tuple[int, bool], list[int]] = {}
    for k in child_links(robot).tolist():
        if not informed[k]:
            s = next(s for s, submodel in enumerate(submodels) if k in submodel.links)
            groups.setdefault((s, bool(sides.away[k])), []).append(k)
    for (s, away), children in groups.items():
        submodel, contact = submodels[s], ''
        if submodel.sensors:
            # Away from the root: beyond most of the joints.
            last = children[int(robot.carried[np.ix_(children, children)].sum(axis=0).argmax())]
            contact = robot.link_names[last if away else submodel.root]
        joints = tuple(robot.joint_names[robot.links[k].joint] for k in children)
        found.append(UninformedTorques(joints, submodel.name, contact))
    return tuple(found)


def _sensors(
    argument: str, given: Iterable[str | int] | None, kind: str, sensors: Sequence[FtSensor | Imu]
) -> list[int]:
    known = [sensor.name for sensor in sensors]
    every = range(len(known)) if given is None else indices(argument, given, kind, known)
    return sorted(set(every))
