# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Combinations of parameters that the equations of a robot's logs can determine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inertial_estimation.cli.render import Columns, records_table, table
from inertial_estimation.cli.robot_check import hidden_sensors, usable_joints
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.files import load_mapping
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.identification.unknowns import INERTIAL
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.model import urdf as urdf_text
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.identifiable import excitable, predictability
from inertial_estimation.model.robot import Robot

Record = dict[str, Any]
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


def check_identifiable(source: EquationSource) -> Record:
    """Return the combinations that equations can determine, however the robot moves."""
    robot, choice = source.robot, source.choice
    builder = EquationBuilder(excitable(robot), choice)
    unusable = {robot.submodel_of(frame) for frame in source.contacts}
    submodels: list[Record] = []
    for k, (block, base) in enumerate(zip(builder.blocks, builder.base_parameters(), strict=True)):
        names, kinds = block.unknowns.names, list(block.kinds)
        if k in unusable:
            base, kinds = BaseParameters.of_null_space(np.eye(len(names))), []
        records = base.records(names)
        one = {
            'name': block.submodel.name, 'rows': kinds, 'links': list(block.unknowns.links),
            'unknowns': len(names), 'rank': base.rank, 'base_parameters': records,
            'alone': [record['kept'] for record in records if not record['terms']],
            'never': [names[k] for k in base.undetermined()],
        }  # fmt: skip
        submodels.append(one)
    lacking = predictability(
        robot,
        efforts=choice.efforts,
        wrenches=[one['name'] for one in submodels if COMPONENTS[0] in one['rows']],
        contacts=source.contacts,
    )
    fixed = f"'{robot.fixed_frame}' fixed" if robot.fixed_frame else 'floating'
    fts = [sensor.name for sensor in robot.ft_sensors]
    return {
        'summary': f"robot '{robot.name}', {fixed}; FT sensors: {', '.join(fts) or 'none'}; "
        f'efforts: {", ".join(choice.efforts) or "none"}',
        'notes': list(source.notes),
        'fixed_link': robot.fixed_frame or None,
        'ft_sensors': fts,
        'efforts': list(choice.efforts),
        'contacts': list(source.contacts),
        'rank': sum(one['rank'] for one in submodels),
        'submodels': submodels,
        'predictions': {
            'identified': lacking.rank,
            'torques_lacking': lacking.torques,
            'torques_without_fts_lacking': lacking.torques_without_fts,
            'wrenches_lacking': lacking.wrenches,
        },
    }


def identifiable_tables(found: Record, *, full: bool) -> Iterator[Any]:
    """Yield the tables that are printed."""
    columns: Columns = {
        'submodel': 'name', 'links': lambda one: len(one['links']), 'unknowns': 'unknowns',
        'rank': 'rank', 'alone': lambda one: len(one['alone']),
        'never': lambda one: len(one['never']),
    }  # fmt: skip
    submodels = found['submodels']
    yield records_table(f'Identifiable: {found["rank"]} base parameters', submodels, columns)
    for one in submodels:
        grouped = [base for base in one['base_parameters'] if base['terms']]
        text: Columns = {'combination': lambda base: readable(base, full=full)}
        yield records_table(f'{one["name"]}: combinations', grouped, text)
    for title, key in (('Identifiable one by one', 'alone'), ('Never identifiable', 'never')):
        owners: dict[str, list[str]] = {}
        for name in (name for one in submodels for name in one[key]):
            owner, _, parameter = name.rpartition('.')
            owners.setdefault(owner, []).append(parameter)
        listed = [
            (owner, ALL if set(own) == set(INERTIAL) else ', '.join(own))
            for owner, own in owners.items()
        ]
        yield table(title, ('of', 'parameters'), listed) if listed else None
    lacking = found['predictions']
    without = lacking['torques_without_fts_lacking']
    torques, wrenches = lacking['torques_lacking'], lacking['wrenches_lacking']
    rows = [
        *((f'torque of {name}', n, without[name]) for name, n in torques.items()),
        *((f'wrench on {name}', n, None) for name, n in wrenches.items()),
    ]
    title = f'Combinations that predictions lack, of {lacking["identified"]} identified'
    yield table(title, ('prediction', 'with FT readings', 'without'), rows)


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
    """Return the joints that are locked, since their type is not supported."""
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
    robot = settings.build_robot(urdf)
    choice = settings.choice(robot)
    known = settings.rows.external or (settings.log is not None and settings.log.external)
    notes = _floating(robot, choice, known=bool(known))
    if (choice.efforts and choice.friction) or choice.gains or choice.offsets:
        notes = (*notes, 'predictions take friction, drives and FT offsets as known')
    return EquationSource(robot, choice, settings.rows.contacts, notes)


def _chosen(kind: str, names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return names, in the order in which they are known."""
    if list(names) in ([ALL], [NONE]):
        return tuple(known) if names[0] == ALL else ()
    for name in names:
        if name not in known:
            raise NameNotFound(kind, name, known)
    return tuple(name for name in known if name in names)


def _floating(robot: Robot, choice: EquationChoice, *, known: bool = False) -> tuple[str, ...]:
    """Return the assumptions about a robot without a fixed link."""
    if robot.fixed_frame:
        return ()
    notes = ['the robot floats: name the link that is fixed, if there is one']
    if not (known or robot.ft_sensors or choice.efforts):
        notes.append('without a force sensor all parameters share one unknown common factor')
    return tuple(notes)


def readable(base: Record, *, full: bool = False) -> str:
    """Return a base parameter with four digits."""
    terms = [term for term in base['terms'].items() if full or abs(term[1]) >= MIN_FACTOR]
    shown = terms if full else terms[:MAX_TERMS]
    text = str(base['kept'])
    for name, factor in shown:
        size = '' if (digits := f'{abs(factor):.4g}') == '1' else f'{digits} '
        text += f' {"-" if factor < 0 else "+"} {size}{name}'
    more = len(terms) - len(shown)
    return f'{text} and {more} more' if more else text
