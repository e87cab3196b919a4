# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Combinations of parameters that the equations of a robot's logs can determine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from inertial_estimation.cli.commands import ALL, NONE
from inertial_estimation.cli.render import records_table, table
from inertial_estimation.cli.robot_check import usable_joints
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.logs.identify_settings import chosen
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.identifiable import excitable, predictability
from inertial_estimation.model.inertia import INERTIAL
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import ft_specs, parse

Record = dict[str, Any]
MAX_TERMS = 8
"""Terms of a combination that are printed."""
MIN_FACTOR = 1e-6
"""Smaller factors are not printed: joints of many URDFs are off by so little."""


def check_identifiable(
    robot: Robot, choice: EquationChoice, notes: Sequence[str] = (), contacts: Sequence[str] = ()
) -> Record:
    """
    Return the combinations that equations can determine, however the robot moves.

    contacts: frames of unknown contacts throughout the logs.
    """
    builder = EquationBuilder(excitable(robot), choice)
    unusable = {robot.submodel_of(frame) for frame in contacts}
    submodels: list[Record] = []
    for k, (block, (base, _)) in enumerate(zip(builder.blocks, builder.bases, strict=True)):
        names, kinds = block.unknowns.names, list(block.kinds)
        if k in unusable:
            base, kinds = BaseParameters.of_null_space(np.eye(len(names))), []
        records = base.records(names)
        submodels.append({
            'name': block.submodel.name, 'links': list(block.unknowns.links), 'equations': kinds,
            'unknowns': len(names), 'rank': base.rank, 'base_parameters': records,
            'never': [names[k] for k in base.undetermined()],
        })  # fmt: skip
    lacking = predictability(
        robot,
        efforts=choice.efforts,
        wrenches=[one['name'] for one in submodels if COMPONENTS[0] in one['equations']],
        contacts=contacts,
    )
    fixed = f"'{robot.fixed_frame}' fixed" if robot.fixed_frame else 'floating'
    fts = ', '.join(sensor.name for sensor in robot.ft_sensors) or 'none'
    return {
        'summary': f"robot '{robot.name}', {fixed}; FT sensors: {fts}; "
        f'efforts: {", ".join(choice.efforts) or "none"}',
        'notes': notes,
        'rank': sum(one['rank'] for one in submodels),
        'submodels': submodels,
        'predictions': {
            'identified': lacking.rank,
            'torques_lacking': lacking.torques,
            'torques_without_fts_lacking': lacking.torques_without_fts,
            'wrenches_lacking': lacking.wrenches,
        },
    }


def identifiable_tables(found: Record) -> Iterator[Any]:
    """Yield the tables that are printed."""
    submodels = found['submodels']
    yield records_table(
        f'Identifiable: {found["rank"]} base parameters', submodels, ('name', 'unknowns', 'rank')
    )
    for one in submodels:
        texts = [readable(base) for base in one['base_parameters'] if base['terms']]
        title = f'{one["name"]}: combinations'
        yield table(title, ('', 'combination'), enumerate(texts, 1)) if texts else None
    bases = [base for one in submodels for base in one['base_parameters']]
    for title, names in (
        ('Identifiable one by one', [base['kept'] for base in bases if not base['terms']]),
        ('Never identifiable', [name for one in submodels for name in one['never']]),
    ):
        owners: dict[str, list[str]] = {}
        for name in names:
            owner, _, parameter = name.rpartition('.')
            owners.setdefault(owner, []).append(parameter)
        listed = [
            (owner, ALL if set(own) == set(INERTIAL) else ', '.join(own))
            for owner, own in owners.items()
        ]
        yield table(title, ('of', 'parameters'), listed) if listed else None
    lacking = found['predictions']
    without = lacking['torques_without_fts_lacking']
    rows = [
        *(
            (f'torque of {name}', n, without[name])
            for name, n in lacking['torques_lacking'].items()
        ),
        *((f'wrench on {name}', n, None) for name, n in lacking['wrenches_lacking'].items()),
    ]
    title = f'Combinations that predictions lack, of {lacking["identified"]} identified'
    yield table(title, ('prediction', 'with FT readings', 'without'), rows)


def source_of_urdf(
    urdf: str,
    ft_sensors: Sequence[str] = (ALL,),
    efforts: Sequence[str] = (),
    fixed_link: str = '',
) -> tuple[Robot, EquationChoice, list[str]]:
    """Return robot and equations of some sensors, and joints that are locked."""
    root = parse(urdf)
    joints, others = usable_joints(root)
    sensors, drives = ([x for x in one if x != NONE] for one in (ft_sensors, efforts))
    used = chosen(sensors, 'FT sensor', '', list(ft_specs(root)))
    robot = Robot.from_urdf(urdf, joints=joints, ft_sensors=used, imus=(), fixed_link=fixed_link)
    choice = EquationChoice(efforts=chosen(drives, 'joint', '', robot.joint_names))
    return robot, choice, [f'locked: joint {one}' for one in others]


def readable(base: Record) -> str:
    """Return a base parameter with four digits."""
    terms = [term for term in base['terms'].items() if abs(term[1]) >= MIN_FACTOR]
    text = str(base['kept'])
    for name, factor in terms[:MAX_TERMS]:
        size = '' if (digits := f'{abs(factor):.4g}') == '1' else f'{digits} '
        text += f' {"-" if factor < 0 else "+"} {size}{name}'
    more = len(terms) - MAX_TERMS
    return f'{text} and {more} more' if more > 0 else text
