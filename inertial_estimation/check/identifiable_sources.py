# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which rows are asked about: from names, from the node's file or from that of ``identify``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inertial_estimation.building import build_robot
from inertial_estimation.check.descriptions import hidden_sensors, usable_joints
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.files import load_mapping
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.identification.equations.builder import EquationChoice
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.model import urdf as urdf_text
from inertial_estimation.model.robot import Robot

ALL, NONE = 'all', 'none'
OF_IDENTIFY = ('log', 'parameters')
"""One of these is in every file of ``identify``, and in none of the node."""
WITH_OPTION, IN_FILE = 'with --fixed-link', "as 'fixed_link' in the file"
OTHERS_KNOWN = 'predictions take friction, drives and offsets of sensors for known'


@dataclass(frozen=True, eq=False)
class RowSource:
    """A robot, and the rows that its logs would give."""

    robot: Robot
    choice: EquationChoice
    contacts: tuple[str, ...] = ()
    """Frames where something unknown acts all the time."""
    notes: tuple[str, ...] = ()
    """What to know of it."""


def source_of_urdf(
    urdf: str,
    ft_sensors: Sequence[str] = (ALL,),
    efforts: Sequence[str] = (),
    fixed_link: str = '',
) -> RowSource:
    """Return the rows of some sensors."""
    root = urdf_text.parse(urdf)
    joints, _ = usable_joints(urdf_text.joint_types(root))
    used = _chosen('FT sensor', ft_sensors, list(urdf_text.ft_specs(root)))
    robot = Robot.from_urdf(urdf, joints=joints, ft_sensors=used, imus=(), fixed_link=fixed_link)
    choice = EquationChoice(efforts=_chosen('joint', efforts, robot.joint_names))
    presumed = _presumed(robot, bool(used or choice.efforts), WITH_OPTION)
    return RowSource(robot, choice, notes=(*locked_notes(urdf), *hidden_sensors(root), *presumed))


def locked_notes(urdf: str) -> tuple[str, ...]:
    """Say which joints do not move here, since the package cannot treat them."""
    types = urdf_text.joint_types(urdf_text.parse(urdf))
    joints, _ = usable_joints(types)
    return tuple(
        f"joint '{name}' is of type '{kind}': it is locked at zero here"
        for name, kind in types.items()
        if kind != 'fixed' and name not in joints
    )


def source_of_file(path: str | Path, urdf: str, efforts: Sequence[str] = ()) -> RowSource:
    """Return the rows that a file describes."""
    if not set(OF_IDENTIFY).intersection(load_mapping(Path(path))):
        robot = build_robot(EstimatorSettings.from_yaml(path), urdf)
        choice = EquationChoice(efforts=_chosen('joint', efforts, robot.joint_names))
        forces = bool(robot.ft_sensors or choice.efforts)
        return RowSource(robot, choice, notes=_presumed(robot, forces, IN_FILE))
    if efforts:
        raise ConfigError(
            f"'{path}' says under 'rows' which efforts are used: leave --efforts out"
        )
    settings = IdentifySettings.from_yaml(path)
    if settings.parameters is not None:
        node = EstimatorSettings.from_yaml(settings.parameters)
        robot = build_robot(node, urdf, cut=not settings.base_link)
    else:
        cuts: dict[str, Any] = {'ft_sensors': []} if settings.base_link else {}
        robot = Robot.from_urdf(urdf, **dict(settings.robot) | cuts)
    choice = settings.choice(robot)
    others = (choice.efforts and choice.joint.terms) or choice.gains or choice.offsets
    known = settings.external or (settings.layout is not None and settings.layout.external)
    forces = bool(known or robot.ft_sensors or choice.efforts)
    notes = (*_presumed(robot, forces, IN_FILE), *((OTHERS_KNOWN,) if others else ()))
    return RowSource(robot, choice, settings.contacts, notes)


def _chosen(kind: str, names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return names, in the order in which they are known."""
    if list(names) in ([ALL], [NONE]):
        return tuple(known) if names[0] == ALL else ()
    for name in names:
        if name in (ALL, NONE) and name not in known:
            raise ConfigError(f"'{name}' stands alone, or {kind}s are named")
        if name not in known:
            raise NameNotFound(kind, name, known)
    return tuple(name for name in known if name in names)


def _presumed(robot: Robot, forces: bool, remedy: str) -> tuple[str, ...]:
    """Return what is taken for granted of a robot without a fixed link."""
    if robot.fixed_frame:
        return ()
    said = (
        'the robot is taken to float, each part of it untouched at times: name the link that is '
        f'bolted down, if there is one, {remedy}',
    )
    if forces:
        return said
    return (
        *said,
        'no sensor measures a force: all is told up to one common factor only, unless external '
        'wrenches are known',
    )
