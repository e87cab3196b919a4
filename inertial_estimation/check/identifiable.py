# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What logs could tell of what the links weigh, and what that predicts [T 7, S 29-39]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from inertial_estimation.check.identifiable_sources import RowSource
from inertial_estimation.check.records import Names
from inertial_estimation.check.table import Row, Table
from inertial_estimation.identification.determined import determinable
from inertial_estimation.identification.equations.builder import COMPONENTS, Block, EquationBuilder
from inertial_estimation.identification.unknowns import INERTIAL
from inertial_estimation.logs.freedom import submodel_of
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.identifiable import Predictability, excitable, predictability

MOST = 8
"""So many names are grouped with the one that is kept before a printed combination is cut."""
SMALL = 1e-6
"""Smaller factors are not printed: joints of many descriptions are off by so little."""
ALL, NOTHING = 'all', '-'


@dataclass(frozen=True, eq=False)
class Told:
    """What rows of one submodel can tell at all."""

    block: Block
    base: BaseParameters
    kinds: tuple[str, ...]
    """Of its rows; none where something unknown acts all the time."""

    @property
    def kept(self) -> list[str]:
        """Unknowns that stand first in its base parameters."""
        return [self.block.unknowns.names[k] for k in self.base.independent.tolist()]

    @property
    def terms(self) -> list[list[tuple[float, str]]]:
        """Factors and names of what is grouped with each of them."""
        return self.base.terms(self.block.unknowns.names)

    @property
    def alone(self) -> list[str]:
        """Unknowns that are base parameters as they are."""
        return [name for name, terms in zip(self.kept, self.terms, strict=True) if not terms]

    @property
    def never(self) -> list[str]:
        """Unknowns that change no row."""
        return [self.block.unknowns.names[k] for k in self.base.untold().tolist()]

    @property
    def rows(self) -> str:
        """Its rows, in words."""
        efforts = sum(kind not in COMPONENTS for kind in self.kinds)
        said = ['wrench'] if COMPONENTS[0] in self.kinds else []
        said += [f'{efforts} effort{"s" if efforts > 1 else ""}'] if efforts else []
        return ', '.join(said) or NOTHING


@dataclass(frozen=True, eq=False)
class IdentifiableReport:
    """What the rows of a robot can tell at all."""

    source: RowSource
    told: tuple[Told, ...]
    """Of each submodel."""
    predictions: Predictability

    @property
    def rank(self) -> int:
        """Combinations of all unknowns that rows can tell."""
        return sum(told.base.rank for told in self.told)

    @property
    def summary(self) -> str:
        """What is taken to be measured."""
        robot, efforts = self.source.robot, self.source.choice.efforts
        stands = f"'{robot.fixed_frame}' at rest" if robot.fixed_frame else 'nothing at rest'
        used = ', '.join(sensor.name for sensor in robot.ft_sensors) or 'none'
        every = len(efforts) == len(robot.joint_names)
        of = 'every joint' if efforts and every else ', '.join(efforts) or 'no joint'
        return f"robot '{robot.name}', {stands}; FT sensors: {used}; efforts of {of}"

    def tables(self, *, whole: bool = False) -> Iterator[Table]:
        """Yield what is printed."""
        yield self._submodels()
        for told in self.told:
            if len(told.alone) < told.base.rank:
                yield _groupings(told, whole)
        for title, names in (
            ('Told one by one', [name for told in self.told for name in told.alone]),
            ('Never told', [name for told in self.told for name in told.never]),
        ):
            if names:
                yield Table(title, ('of', 'parameters'), tuple(_by_owner(names)))
        title = f"Predictions, of {self.predictions.rank} combinations of the links' parameters"
        rows = _prediction_rows(self.predictions)
        columns = ('prediction', 'with FT readings', 'without')
        yield Table(title, columns, tuple(rows if whole else _together(rows)))

    def notes(self, *, whole: bool = False) -> list[str]:
        """Return what to know of the tables."""
        found = list(self.source.notes)
        if not whole and any(_is_cut(terms) for told in self.told for terms in told.terms):
            found.append(
                f'combinations end after {MOST + 1} names, and factors below {SMALL:g} are not '
                'printed: --all prints them, --json has all in full'
            )
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return all of it for a machine."""
        source, said = self.source, self.predictions
        return {
            'summary': self.summary,
            'notes': list(source.notes),
            'fixed_link': source.robot.fixed_frame or None,
            'ft_sensors': [sensor.name for sensor in source.robot.ft_sensors],
            'efforts': list(source.choice.efforts),
            'contacts': list(source.contacts),
            'rank': self.rank,
            'submodels': [_submodel_dict(told) for told in self.told],
            'predictions': {
                'identified': said.rank,
                'torques_lacking': said.torques,
                'torques_without_fts_lacking': said.torques_without_fts,
                'wrenches_lacking': said.wrenches,
            },
        }

    def _submodels(self) -> Table:
        """Return how much is told of each submodel."""
        rows = tuple(
            (
                told.block.submodel.name,
                told.rows,
                str(len(told.block.submodel.links)),
                str(len(told.block.unknowns)),
                str(told.base.rank),
                str(len(told.alone)),
                str(len(told.never)),
            )
            for told in self.told
        )
        columns = ('submodel', 'rows', 'links', 'unknowns', 'rank', 'alone', 'never')
        return Table(f'Identifiable: {self.rank} base parameters', columns, rows)


def check_identifiable(source: RowSource) -> IdentifiableReport:
    """Return what rows can tell at all, however the robot moves."""
    robot, choice = source.robot, source.choice
    builder = EquationBuilder(excitable(robot), choice)
    silent = {submodel_of(robot, frame) for frame in source.contacts}
    told = []
    for k, (block, base) in enumerate(zip(builder.blocks, determinable(builder), strict=True)):
        nothing = BaseParameters.of_null_space(np.eye(len(block.unknowns)))
        told.append(Told(block, *((nothing, ()) if k in silent else (base, block.kinds))))
    predictions = predictability(
        robot,
        efforts=choice.efforts,
        wrenches=[one.block.submodel.name for one in told if COMPONENTS[0] in one.kinds],
        contacts=source.contacts,
    )
    return IdentifiableReport(source, tuple(told), predictions)


def _prediction_rows(found: Predictability) -> list[Row]:
    """Return a row for the torque of each joint and the wrench on each submodel."""
    rows = [
        (f'torque of {name}', _lacking(lacking), _lacking(found.torques_without_fts[name]))
        for name, lacking in found.torques.items()
    ]
    return [*rows, *((f'wrench on {name}', _lacking(k), '') for name, k in found.wrenches.items())]


def _lacking(number: int) -> str:
    """Return a number of lacking combinations in words."""
    return f'{number} lacking' if number else 'yes'


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


def _groupings(told: Told, whole: bool) -> Table:
    """Return the base parameters of a submodel that are no unknowns by themselves."""
    rows = []
    for name, terms in zip(told.kept, told.terms, strict=True):
        shown = [term for term in terms if whole or abs(term[0]) >= SMALL]
        if terms:
            rows.append((readable_combination(name, shown, None if whole else MOST),))
    return Table(f'{told.block.submodel.name}: told together', ('combination',), tuple(rows))


def _is_cut(terms: Sequence[tuple[float, str]]) -> bool:
    """Return whether terms are not all printed."""
    return len(terms) > MOST or any(abs(factor) < SMALL for factor, _ in terms)


def _by_owner(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each link or joint with its parameters among names."""
    owners: dict[str, list[str]] = {}
    for name in names:
        owner, parameter = name.rsplit('.', 1)
        owners.setdefault(owner, []).append(parameter)
    for owner, parameters in owners.items():
        yield owner, ALL if set(parameters) == set(INERTIAL) else ', '.join(parameters)


def _together(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield rows, neighbours that say the same as one."""
    for answers, group in groupby(rows, key=lambda row: row[1:]):
        names = [row[0] for row in group]
        yield (str(Names.of(names, names)), *answers)


def _submodel_dict(told: Told) -> dict[str, Any]:
    """Return one submodel for a machine."""
    unknowns = told.block.unknowns
    return {
        'name': told.block.submodel.name,
        'rows': list(told.kinds),
        'links': list(unknowns.links),
        'unknowns': len(unknowns),
        'rank': told.base.rank,
        'base_parameters': told.base.records(unknowns.names),
        'alone': told.alone,
        'never': told.never,
    }
