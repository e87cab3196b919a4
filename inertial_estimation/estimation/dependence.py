# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Dependence of torques and external wrenches on sensors, joints and links [T Theorem 4.2].

It follows from the tree: both sides of a joint within its submodel give the same wrench [T 4.23],
and the side without a full wrench depends on less. Where contacts share a submodel, their wrenches
are taken to depend on all of it; elsewhere tables are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Mask
from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.balance import Balance, build_balance, subtrees
from inertial_estimation.estimation.contacts import Contact, check_contacts
from inertial_estimation.estimation.forest import Forest, build_forest
from inertial_estimation.estimation.link_motion import LinkMotions
from inertial_estimation.estimation.sensor_arrays import with_ways
from inertial_estimation.model.arguments import indices
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtSensor, Imu
from inertial_estimation.model.tree import Submodel, decompose


@dataclass(frozen=True, eq=False)
class Side:
    """The links on one side of a joint, within its submodel."""

    links: frozenset[int]
    away: bool
    """True if they are away from the root of the robot."""
    submodel: int
    """Row of their submodel."""
    moving: frozenset[int]
    """Links whose motion counts: these, or all if a contact among them shares the submodel."""
    sensors: tuple[int, ...]
    """FT sensors in use that count."""


def find_sides(
    robot: Robot,
    submodels: Sequence[Submodel],
    contact_links: Sequence[int],
    unknowns: Sequence[int],
) -> dict[int, Side]:
    """Return the side of every joint that is summed, by the child link of the joint."""
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
            moving = members if loaded and not alone else links
            sensors = tuple(
                n
                for n in submodel.sensors
                if {robot.ft_sensors[n].parent, robot.ft_sensors[n].child} & moving
            )
            sides[k] = Side(links, away, s, moving, sensors)
    return sides


def child_links(robot: Robot) -> list[int]:
    """Return the child link of each joint."""
    child = {link.joint: k for k, link in enumerate(robot.links) if link.joint >= 0}
    return [child[j] for j in range(len(child))]


def sum_joints(robot: Robot, forest: Forest, links: Iterable[int]) -> list[int]:
    """Return the joints that a sum of net wrenches over links depends on."""
    members, joints = set(links), set[int]()
    for k in members:
        joints |= forest.path[k]
        link = robot.links[k]
        if link.joint >= 0 and link.parent in members:
            joints.add(link.joint)
    return sorted(joints)


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


class _Basis(NamedTuple):
    """Links that one result sums over, sensors at their borders, and more joints."""

    links: frozenset[int] = frozenset()
    sensors: frozenset[int] = frozenset()
    joints: frozenset[int] = frozenset()


def find_dependence(
    robot: Robot, forest: Forest, balance: Balance, unknowns: Sequence[int]
) -> Dependence:
    """Return the dependence of all results."""
    sums = [
        _Basis(frozenset(submodel.links), frozenset(submodel.sensors))
        for submodel in balance.submodels
    ]
    wrenches = [
        sums[s] if unknowns[c] else _Basis() for c, s in enumerate(balance.contact_submodel)
    ]
    sides = find_sides(robot, balance.submodels, balance.contact_links, unknowns)
    torques = [_Basis(sides[k].moving, frozenset(sides[k].sensors)) for k in child_links(robot)]
    external = _external(robot, balance, wrenches)
    return Dependence(*(_tables(robot, forest, b) for b in (sums, wrenches, torques, external)))


def _external(robot: Robot, balance: Balance, wrenches: Sequence[_Basis]) -> list[_Basis]:
    """Return the bases of external torques: the wrenches, and the joints on to the contact."""
    child = child_links(robot)
    subtree = [frozenset(links) for links in subtrees(robot)]
    found = []
    for j, factors in enumerate(balance.external_contacts):
        basis = _Basis()
        inside = np.array([k in subtree[child[j]] for k in child])
        for c in map(int, np.flatnonzero(factors)):
            onwards = (balance.external_contacts[:, c] != 0) & (inside == (factors[c] > 0))
            onwards[j] = False
            more = wrenches[c]._replace(joints=frozenset(np.flatnonzero(onwards).tolist()))
            basis = _Basis(*(one | other for one, other in zip(basis, more)))
        found.append(basis)
    return found


def _tables(robot: Robot, forest: Forest, bases: Sequence[_Basis]) -> Tables:
    """Return truth tables."""
    n_trees = sum(top.ft_sensor < 0 for top in forest.tops)
    sizes = (len(robot.ft_sensors), n_trees, len(robot.joint_names), len(robot.links))
    tables = Tables(*(np.zeros((len(bases), size), dtype=bool) for size in sizes))
    for row, basis in enumerate(bases):
        tables.fts[row, list(basis.sensors)] = True
        tables.sources[row, [forest.owner[k] for k in basis.links]] = True
        tables.joints[row, [*sum_joints(robot, forest, basis.links), *basis.joints]] = True
        tables.links[row, list(basis.links)] = True
    return tables


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

    def __str__(self) -> str:
        return f'torques of {", ".join(self.joints)} depend on no FT sensor'


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
    forest = with_ways(build_forest(robot, sources), plan.layout.ways)
    submodels = decompose(robot.links, robot.ft_sensors, used)
    links = [robot.frame(contact.frame)[0] for contact in contacts]
    balance = build_balance(robot, forest, submodels, used, links)
    unknowns = [contact.unknowns for contact in contacts]
    found = find_dependence(robot, forest, balance, unknowns)
    motions = [robot.fixed_frame] if robot.fixed_frame else [imu.name for imu in robot.imus]
    read = np.zeros((len(sources), len(motions)), dtype=bool)
    for row, source in enumerate(sources):
        read[row, [0] if robot.fixed_frame else list(plan.layout.rows[source.link])] = True
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
        _uninformed(robot, submodels, find_sides(robot, submodels, links, unknowns)),
    )


def find_uninformed(
    robot: Robot, contacts: Sequence[Contact], fts: Iterable[str | int]
) -> tuple[UninformedTorques, ...]:
    """Return the torques that depend on no FT sensor, without the rest of the table."""
    submodels = decompose(
        robot.links, robot.ft_sensors, _sensors('fts', fts, 'FT sensor', robot.ft_sensors)
    )
    links = [robot.frame(contact.frame)[0] for contact in contacts]
    sides = find_sides(robot, submodels, links, [contact.unknowns for contact in contacts])
    return _uninformed(robot, submodels, sides)


def _sensors(
    argument: str, given: Iterable[str | int] | None, kind: str, sensors: Sequence[FtSensor | Imu]
) -> list[int]:
    """Return the rows of sensors that work."""
    known = [sensor.name for sensor in sensors]
    every = range(len(known)) if given is None else indices(argument, given, kind, known)
    return sorted(set(every))


def _uninformed(
    robot: Robot, submodels: Sequence[Submodel], sides: Mapping[int, Side]
) -> tuple[UninformedTorques, ...]:
    """Return the joints without FT sensor, by submodel and by the side that is summed."""
    groups: dict[tuple[int, bool], list[int]] = {}
    for k in child_links(robot):
        if not sides[k].sensors:
            groups.setdefault((sides[k].submodel, sides[k].away), []).append(k)
    found, subtree = [], subtrees(robot)
    for (s, away), children in groups.items():
        submodel, contact = submodels[s], ''
        if submodel.sensors:
            # Away from the root: beyond most of the joints.
            last = max(children, key=lambda k: sum(k in subtree[other] for other in children))
            contact = robot.link_names[last if away else submodel.root]
        joints = tuple(robot.joint_names[robot.links[k].joint] for k in children)
        found.append(UninformedTorques(joints, submodel.name, contact))
    return tuple(found)
