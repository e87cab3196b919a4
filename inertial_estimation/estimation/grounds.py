# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What every torque and external wrench rests on, by name, and which torques no FT informs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.balance import build_balance, subtrees
from inertial_estimation.estimation.bodies import with_ways
from inertial_estimation.estimation.body_motion import BodyMotion
from inertial_estimation.estimation.contacts import Contact, check_contacts
from inertial_estimation.estimation.dependence import Rests, child_links, find_dependence
from inertial_estimation.estimation.forest import build_forest
from inertial_estimation.estimation.sides import Side, border_sensors, find_sides
from inertial_estimation.model.arguments import check_kind, rows
from inertial_estimation.model.motion_sources import serving_sources
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.submodels import Submodel, decompose

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Grounds:
    """What one result rests on [T Theorem 4.2]; nothing else moves it."""

    name: str
    """Joint or contact."""
    fts: tuple[str, ...]
    """FT sensors."""
    imus: tuple[str, ...]
    """IMUs, or the fixed link."""
    joints: tuple[str, ...]
    """Joints whose position, velocity or acceleration counts."""
    links: tuple[str, ...]
    """Links whose inertial parameters count."""


@dataclass(frozen=True)
class Uninformed:
    """Torques of a submodel that no FT sensor informs: the model and the IMUs tell them alone."""

    joints: tuple[str, ...]
    submodel: str
    contact: str
    """
    Link on the other side of the joints: a contact there, instead of those that were named, lets
    FT sensors inform the torques; empty if the submodel has no FT sensor in use at its borders.
    """

    def __str__(self) -> str:
        """Return a warning with the remedy."""
        joints = ', '.join(self.joints)
        said = f'no FT sensor informs the torques of {joints}: model and motion tell them alone'
        if not self.contact:
            return f"{said}, as no FT sensor in use borders on submodel '{self.submodel}'"
        return (
            f'{said}. This holds if nothing touches the robot on the other side of them; if '
            f"something does, make that place the contact of submodel '{self.submodel}', for "
            f"example '{self.contact}'"
        )


@dataclass(frozen=True)
class GroundsTable:
    """What all torques and external wrenches rest on, for one set of sensors and contacts."""

    torques: tuple[Grounds, ...]
    """In the order of the joints."""
    wrenches: tuple[Grounds, ...]
    """In the order of the contacts."""
    uninformed: tuple[Uninformed, ...]


def find_grounds(
    robot: Robot,
    contacts: Sequence[Contact],
    *,
    imus: Iterable[str | int] | None = None,
    fts: Iterable[str | int] | None = None,
    acceleration_arrays: bool = False,
) -> GroundsTable:
    """
    Find what every torque and external wrench rests on.

    Parameters
    ----------
    robot : Robot
        With a fixed link or an IMU.
    contacts : sequence of Contact
        Those that take part. Where several with unknowns share a submodel, or one is a force on
        the axis of a joint, what is named is at most too much; elsewhere it is exact.
    imus, fts : iterable of str or int, optional
        Sensors that work, by name or row; default: all.
    acceleration_arrays : bool, optional
        As of the estimator.

    Returns
    -------
    GroundsTable

    Raises
    ------
    NameNotFound
        If a contact names a frame, or one of the lists a sensor, that the robot does not have.
    ModelError
        If the IMUs do not tell how any link moves, or what is given is something else.

    """
    check_kind('robot', robot, Robot, 'Robot.from_urdf(...) makes one')
    contacts, used = check_contacts(contacts), _fts(robot, fts)
    motion = BodyMotion(robot, arrays=acceleration_arrays)
    working = _imus(robot, imus)
    plan = motion.plan(tuple(b if k in working else 0 for k, b in enumerate(motion.bits)))
    _, sources = serving_sources(robot, np.flatnonzero(plan.serving).tolist())
    forest = with_ways(build_forest(robot, sources), plan.layout.ways)
    submodels = decompose(robot.links, robot.ft_sensors, used)
    links = [robot.frame(contact.frame)[0] for contact in contacts]
    balance = build_balance(robot, forest, submodels, used, links)
    unknowns = [contact.unknowns for contact in contacts]
    found = find_dependence(robot, forest, balance, unknowns)
    if not robot.fixed_frame:
        read = np.zeros((len(sources), len(robot.imus)), dtype=bool)
        for row, source in enumerate(sources):
            read[row, list(plan.layout.rows[source.link])] = True
        found = found._replace(
            torques=found.torques._replace(sources=found.torques.sources @ read),
            wrenches=found.wrenches._replace(sources=found.wrenches.sources @ read),
        )
    names = (
        [sensor.name for sensor in robot.ft_sensors],
        [robot.fixed_frame] if robot.fixed_frame else [imu.name for imu in robot.imus],
        robot.joint_names,
        robot.link_names,
    )
    return GroundsTable(
        _named(robot.joint_names, found.torques, names),
        _named([contact.name for contact in contacts], found.wrenches, names),
        _uninformed(robot, submodels, find_sides(robot, submodels, links, unknowns)),
    )


class Informed(NamedTuple):
    """Which FT sensors inform which torques."""

    fts: dict[str, tuple[str, ...]]
    """By joint."""
    uninformed: tuple[Uninformed, ...]


def find_informed(robot: Robot, contacts: Sequence[Contact], fts: Iterable[str | int]) -> Informed:
    """Find the FT sensors that inform torques, and nothing else: quick enough beside a loop."""
    contacts = check_contacts(contacts)
    submodels = decompose(robot.links, robot.ft_sensors, _fts(robot, fts))
    links = [robot.frame(contact.frame)[0] for contact in contacts]
    sides = find_sides(robot, submodels, links, [contact.unknowns for contact in contacts])
    sensors = {
        joint: tuple(robot.ft_sensors[s].name for s in sides[k].sensors)
        for joint, k in zip(robot.joint_names, child_links(robot), strict=True)
    }
    return Informed(sensors, _uninformed(robot, submodels, sides))


def _fts(robot: Robot, given: Iterable[str | int] | None) -> list[int]:
    """Return the rows of FT sensors."""
    known = [sensor.name for sensor in robot.ft_sensors]
    return sorted(
        set(range(len(known)) if given is None else rows('fts', given, 'FT sensor', known))
    )


def _imus(robot: Robot, given: Iterable[str | int] | None) -> frozenset[int]:
    """Return the rows of IMUs; some are needed unless a link is fixed."""
    known = [imu.name for imu in robot.imus]
    chosen = frozenset(range(len(known)) if given is None else rows('imus', given, 'IMU', known))
    if not (chosen or robot.fixed_frame):
        raise ModelError(
            f"nothing tells how robot '{robot.name}' moves: give it a fixed_link, or name an IMU"
        )
    return chosen


def _named(
    results: Sequence[str], rests: Rests, names: Sequence[Sequence[str]]
) -> tuple[Grounds, ...]:
    """Return truth tables by name."""
    return tuple(
        Grounds(
            result,
            *(
                tuple(known[k] for k in np.flatnonzero(table[row]).tolist())
                for table, known in zip(rests, names, strict=True)
            ),
        )
        for row, result in enumerate(results)
    )


def _uninformed(
    robot: Robot, submodels: Sequence[Submodel], sides: Mapping[int, Side]
) -> tuple[Uninformed, ...]:
    """Return the joints without FT sensor, by submodel and by the side that is summed."""
    groups: dict[tuple[int, bool], list[int]] = {}
    for k in child_links(robot):
        if not sides[k].sensors:
            groups.setdefault((sides[k].submodel, sides[k].away), []).append(k)
    found = []
    for (s, away), children in groups.items():
        submodel, contact = submodels[s], ''
        if border_sensors(submodel):
            contact = robot.link_names[_beyond_most(robot, children) if away else submodel.root]
        joints = tuple(robot.joint_names[robot.links[k].joint] for k in children)
        found.append(Uninformed(joints, submodel.name, contact))
    return tuple(found)


def _beyond_most(robot: Robot, children: Sequence[int]) -> int:
    """Return which of the child links of some joints has most of these joints above it."""
    subtree = subtrees(robot)
    return max(children, key=lambda k: sum(k in subtree[other] for other in children))
