# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Combinations of parameters that the equations of a robot's logs can determine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inertial_estimation.cli.render import table
from inertial_estimation.cli.robot_check import hidden_sensors, usable_joints
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.files import load_mapping
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.identification.equations.builder import (
    Block,
    EquationBuilder,
    EquationChoice,
)
from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.identification.unknowns import INERTIAL
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.reduction import submodel_of
from inertial_estimation.model import urdf as urdf_text
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.identifiable import Predictability, excitable, predictability
from inertial_estimation.model.robot import Robot

MAX_TERMS = 8
"""Terms of a combination that are printed."""
MIN_FACTOR = 1e-6
"""Smaller factors are not printed: joints of many URDFs are off by so little."""
ALL, NONE = 'all', 'none'


@dataclass(frozen=True, eq=False)
class EquationSource:
    """A robot, and the equations that its logs would give."""

    robot: Robot
    choice: EquationChoice
    contacts: tuple[str, ...] = ()
    """Frames of unknown contacts throughout the logs."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Identifiable:
    """Combinations that the equations of one submodel can determine."""

    block: Block
    base: BaseParameters
    kinds: tuple[str, ...]
    """Of its equations."""

    @property
    def kept(self) -> list[str]:
        """Unknowns that stand first in its base parameters."""
        return [self.block.unknowns.names[k] for k in self.base.independent.tolist()]

    @property
    def terms(self) -> list[list[tuple[float, str]]]:
        """Factors and names of the unknowns that are grouped with each of them."""
        return self.base.terms(self.block.unknowns.names)

    @property
    def alone(self) -> list[str]:
        """Unknowns that are base parameters."""
        return [name for name, terms in zip(self.kept, self.terms, strict=True) if not terms]

    @property
    def never(self) -> list[str]:
        """Unknowns that change no equation."""
        return [self.block.unknowns.names[k] for k in self.base.untold().tolist()]


@dataclass(frozen=True, eq=False)
class IdentifiableReport:
    """Identifiable combinations of a robot, and the predictions that they allow."""

    source: EquationSource
    submodels: tuple[Identifiable, ...]
    predictions: Predictability

    @property
    def rank(self) -> int:
        """Identifiable combinations of all unknowns."""
        return sum(one.base.rank for one in self.submodels)

    @property
    def summary(self) -> str:
        """Robot and measured quantities."""
        robot = self.source.robot
        fixed = f"'{robot.fixed_frame}' fixed" if robot.fixed_frame else 'floating'
        fts = ', '.join(sensor.name for sensor in robot.ft_sensors) or 'none'
        efforts = ', '.join(self.source.choice.efforts) or 'none'
        return f"robot '{robot.name}', {fixed}; FT sensors: {fts}; efforts: {efforts}"

    def tables(self, *, whole: bool = False) -> Iterator[Any]:
        """Yield the tables that are printed."""
        columns = ('submodel', 'links', 'unknowns', 'rank', 'alone', 'never')
        rows = [
            (one.block.submodel.name, len(one.block.submodel.links), len(one.block.unknowns),
             one.base.rank, len(one.alone), len(one.never))
            for one in self.submodels
        ]  # fmt: skip
        yield table(f'Identifiable: {self.rank} base parameters', columns, rows)
        for one in self.submodels:
            grouped = list(_groups(one, whole))
            if grouped:
                yield table(f'{one.block.submodel.name}: combinations', ('combination',), grouped)
        for title, names in (
            ('Identifiable one by one', [name for one in self.submodels for name in one.alone]),
            ('Never identifiable', [name for one in self.submodels for name in one.never]),
        ):
            if names:
                yield table(title, ('of', 'parameters'), list(_by_owner(names)))
        lacking, without = self.predictions.torques, self.predictions.torques_without_fts
        predictions = [
            *((f'torque of {name}', n, without[name]) for name, n in lacking.items()),
            *((f'wrench on {name}', n, None) for name, n in self.predictions.wrenches.items()),
        ]
        title = f'Combinations that predictions lack, of {self.predictions.rank} identified'
        yield table(title, ('prediction', 'with FT readings', 'without'), predictions)

    def as_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        source, lacking = self.source, self.predictions
        return {
            'summary': self.summary,
            'notes': list(source.notes),
            'fixed_link': source.robot.fixed_frame or None,
            'ft_sensors': [sensor.name for sensor in source.robot.ft_sensors],
            'efforts': list(source.choice.efforts),
            'contacts': list(source.contacts),
            'rank': self.rank,
            'submodels': [
                {
                    'name': one.block.submodel.name,
                    'rows': list(one.kinds),
                    'links': list(one.block.unknowns.links),
                    'unknowns': len(one.block.unknowns),
                    'rank': one.base.rank,
                    'base_parameters': one.base.records(one.block.unknowns.names),
                    'alone': one.alone,
                    'never': one.never,
                }
                for one in self.submodels
            ],
            'predictions': {
                'identified': lacking.rank,
                'torques_lacking': lacking.torques,
                'torques_without_fts_lacking': lacking.torques_without_fts,
                'wrenches_lacking': lacking.wrenches,
            },
        }


def check_identifiable(source: EquationSource) -> IdentifiableReport:
    """Return what equations can determine, however the robot moves."""
    robot, choice = source.robot, source.choice
    builder = EquationBuilder(excitable(robot), choice)
    silent = {submodel_of(robot, frame) for frame in source.contacts}
    found = []
    for k, (block, base) in enumerate(zip(builder.blocks, builder.base_parameters(), strict=True)):
        nothing = BaseParameters.of_null_space(np.eye(len(block.unknowns)))
        found.append(Identifiable(block, *((nothing, ()) if k in silent else (base, block.kinds))))
    predictions = predictability(
        robot,
        efforts=choice.efforts,
        wrenches=[one.block.submodel.name for one in found if COMPONENTS[0] in one.kinds],
        contacts=source.contacts,
    )
    return IdentifiableReport(source, tuple(found), predictions)


def _groups(one: Identifiable, whole: bool) -> Iterator[tuple[str]]:
    """Yield the base parameters of several unknowns."""
    for name, terms in zip(one.kept, one.terms, strict=True):
        shown = [term for term in terms if whole or abs(term[0]) >= MIN_FACTOR]
        if terms:
            yield (readable_combination(name, shown, None if whole else MAX_TERMS),)


def _by_owner(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each link or joint with its parameters among names."""
    owners: dict[str, list[str]] = {}
    for name in names:
        owner, parameter = name.rsplit('.', 1)
        owners.setdefault(owner, []).append(parameter)
    for owner, parameters in owners.items():
        yield owner, ALL if set(parameters) == set(INERTIAL) else ', '.join(parameters)


def source_of_urdf(
    urdf: str,
    ft_sensors: Sequence[str] = (ALL,),
    efforts: Sequence[str] = (),
    fixed_link: str = '',
) -> EquationSource:
    """Return the equations of some sensors."""
    root = urdf_text.parse(urdf)
    joints, _ = usable_joints(urdf_text.joint_types(root))
    used = _chosen('FT sensor', ft_sensors, list(urdf_text.ft_specs(root)))
    robot = Robot.from_urdf(urdf, joints=joints, ft_sensors=used, imus=(), fixed_link=fixed_link)
    choice = EquationChoice(efforts=_chosen('joint', efforts, robot.joint_names))
    notes = (*locked_notes(urdf), *map(str, hidden_sensors(root)))
    return EquationSource(robot, choice, notes=(*notes, *_floating(robot, choice)))


def locked_notes(urdf: str) -> tuple[str, ...]:
    """Return which joints do not move here, since the package cannot treat them."""
    types = urdf_text.joint_types(urdf_text.parse(urdf))
    joints, _ = usable_joints(types)
    return tuple(
        f"joint '{name}' of type '{kind}' is locked at zero"
        for name, kind in types.items()
        if kind != 'fixed' and name not in joints
    )


def source_of_file(path: str | Path, urdf: str, efforts: Sequence[str] = ()) -> EquationSource:
    """Return the equations that a parameter file of the node, or a file of identify, describes."""
    if not {'log', 'parameters'}.intersection(load_mapping(Path(path))):
        robot = build_robot(EstimatorSettings.from_yaml(path), urdf)
        choice = EquationChoice(efforts=_chosen('joint', efforts, robot.joint_names))
        return EquationSource(robot, choice, notes=_floating(robot, choice))
    if efforts:
        raise ConfigError(f"--efforts does not go with '{path}', which names them under 'rows'")
    settings = IdentifySettings.from_yaml(path)
    if settings.parameters is not None:
        node = EstimatorSettings.from_yaml(settings.parameters)
        robot = build_robot(node, urdf, cut=not settings.base_link)
    else:
        cuts: dict[str, Any] = {'ft_sensors': []} if settings.base_link else {}
        robot = Robot.from_urdf(urdf, **dict(settings.robot) | cuts)
    choice = settings.choice(robot)
    known = settings.external or (settings.layout is not None and settings.layout.external)
    notes = _floating(robot, choice, known=bool(known))
    if (choice.efforts and choice.joint.terms) or choice.gains or choice.offsets:
        notes = (*notes, 'predictions take friction, drives and FT offsets as known')
    return EquationSource(robot, choice, settings.contacts, notes)


def _chosen(kind: str, names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return names, in the order in which they are known."""
    if list(names) in ([ALL], [NONE]):
        return tuple(known) if names[0] == ALL else ()
    for name in names:
        if name in (ALL, NONE) and name not in known:
            raise ConfigError(f"'{name}' goes without names of {kind}s")
        if name not in known:
            raise NameNotFound(kind, name, known)
    return tuple(name for name in known if name in names)


def _floating(robot: Robot, choice: EquationChoice, *, known: bool = False) -> tuple[str, ...]:
    """Return what is assumed of a robot without a fixed link."""
    if robot.fixed_frame:
        return ()
    notes = ('the robot floats: name the link that is fixed, if there is one',)
    if known or robot.ft_sensors or choice.efforts:
        return notes
    return (*notes, 'without a force sensor all parameters share one unknown common factor')


def readable_combination(
    kept: str, terms: Sequence[tuple[float, str]], most: int | None = None
) -> str:
    """Return a combination with four digits, names of one factor together."""
    shared: dict[str, list[str]] = {}
    for factor, name in terms[:most]:
        shared.setdefault(f'{factor:+.4g}', []).append(name)
    text = kept
    for signed, names in shared.items():
        sign, size = signed[0], signed[1:]
        if size == '1':
            text += ''.join(f' {sign} {name}' for name in names)
        else:
            inner = ' + '.join(names)
            text += f' {sign} {size} ' + (inner if len(names) == 1 else f'({inner})')
    cut = 0 if most is None else max(len(terms) - most, 0)
    return f'{text} and {cut} more' if cut else text
