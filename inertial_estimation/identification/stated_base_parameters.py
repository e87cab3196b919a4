# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Stated base parameters: combinations and values, as text with commas.

    combination,value
    upper.Izz + tool.Izz + 0.09 tool.m,0.1432
    shoulder.viscous,0.61
    wrist_2+wrist_3.viscous,0.2

Names are those of `Unknowns`; ``+`` between two joints is a coupling. A value may be off by half
of its last digit, as printed numbers are. A column ``deviation`` may have its
standard deviation; the JSON of an identification has all three.

The verdict ignores combinations of friction and drives alone, whose small values are measured
negative half of the time, and the consistency of payloads, which are no part of the robot.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from io import StringIO
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.config.files import from_json
from inertial_estimation.errors import ModelError, NameNotFound
from inertial_estimation.identification.base_parameter_check import (
    BaseParameterCheck,
    check_base_parameters,
)
from inertial_estimation.identification.priors import widened
from inertial_estimation.identification.problem import Bounds
from inertial_estimation.identification.solvers.conic import Consistency
from inertial_estimation.identification.unknowns import INERTIAL, Extra, Term, Unknowns
from inertial_estimation.model.base_parameters import BaseParameters, parse_combination
from inertial_estimation.model.identifiable import null_space
from inertial_estimation.model.robot import Robot

Array = NDArray[np.float64]

COLUMNS, DEVIATION = ('combination', 'value'), 'deviation'
NOT_NEGATIVE = (Term.VISCOUS, Term.COULOMB, Term.DRIVE_INERTIA)
"""Other unknowns that are not negative in any robot [S 28]."""
COUPLED = '+'
"""Between the joints of a coupling, as `Coupling.name` has it."""
SEEN = 1e-6
"""A combination that changes more along a direction that no sensor sees is no base parameter."""


@dataclass(frozen=True, eq=False)
class StatedBaseParameters:
    """What was read."""

    unknowns: Unknowns
    base: BaseParameters
    values: Array
    """Shape (n_base,)."""
    rounding: Array
    """Half of the last digit of each, shape (n_base,)."""
    deviations: Array
    """Standard deviation of each, zero where none is stated, shape (n_base,)."""

    @property
    def of_bodies(self) -> NDArray[np.bool_]:
        """Combinations that have parameters of links, shape (n_base,)."""
        return np.asarray(self.base.grouping[:, : self.unknowns.n_inertial].any(axis=1))

    @property
    def below_zero(self) -> list[BelowZero]:
        """Combinations of friction and drives alone that are below what any robot has."""
        extras = self.base.grouping[:, self.unknowns.n_inertial :]
        terms = [extra.term for extra in self.unknowns.extras]
        allowed = np.array([term not in NOT_NEGATIVE for term in terms], dtype=np.bool_)
        asked = ~self.of_bodies & (extras >= 0.0).all(axis=1)
        asked &= ~extras[:, allowed].any(axis=1)
        names = self.base.combinations(self.unknowns.names)
        return [
            BelowZero(names[k], float(self.values[k]), float(self.deviations[k]))
            for k in np.flatnonzero(asked & (self.values < -self.rounding))
        ]


class BelowZero(NamedTuple):
    """Friction or a drive, stated negative."""

    combination: str
    value: float
    deviation: float
    """Zero: none is stated."""

    @property
    def may_be_zero(self) -> bool:
        """Whether it is within one deviation of zero."""
        return self.value >= -self.deviation


def read_base_parameters(text: str, robot: Robot) -> StatedBaseParameters:
    """Read stated base parameters of a robot."""
    rows, payloads = _rows(text)
    combinations = [row['combination'] for row in rows]
    unknowns = Unknowns(robot.link_names, _extras(combinations, robot, payloads))
    base = BaseParameters.parse(combinations, unknowns.names)
    if len(set(base.independent.tolist())) < base.rank:
        raise ModelError('each combination of base parameters must begin with another name')
    _require_identifiable(base, combinations, robot)
    numbers = [_number(row['value'], row['combination']) for row in rows]
    values, rounding = (np.array(column) for column in zip(*numbers, strict=True))
    deviations = np.array([_deviation(row) for row in rows])
    return StatedBaseParameters(unknowns, base, values, rounding, deviations)


def check_stated(
    robot: Robot, stated: StatedBaseParameters, consistency: Consistency = Consistency.FULL
) -> BaseParameterCheck:
    """Return whether bodies have stated base parameters, up to their rounding."""
    n = stated.unknowns.n_inertial
    columns = stated.base.grouping[stated.of_bodies, n:].T
    with_bodies = [bool(column.any()) for column in columns]
    limits = [
        [0.0 if among and extra.term in NOT_NEGATIVE else -np.inf, np.inf]
        for extra, among in zip(stated.unknowns.extras, with_bodies, strict=True)
    ]
    return check_base_parameters(
        stated.base,
        stated.values,
        stated.unknowns,
        consistency=consistency,
        bounds=Bounds(extras=np.array(limits).reshape(-1, 2)),
        rounding=stated.rounding,
        scale=_sizes(robot),
    )


def _rows(text: str) -> tuple[list[dict[str, str]], tuple[str, ...]]:
    """Return what is stated, by the names of columns, and the names of payloads."""
    payloads: tuple[str, ...] = ()
    if text.lstrip().startswith('{'):
        rows, payloads = _identified(text)
    else:
        rows = list(csv.DictReader(StringIO(text)))
    if not rows or any(row.get(column) is None for row in rows for column in COLUMNS):
        raise ModelError(
            f'base parameters need rows with the columns {", ".join(COLUMNS)}, or the JSON of '
            'identify'
        )
    return rows, payloads


def _identified(text: str) -> tuple[list[dict[str, str]], tuple[str, ...]]:
    """Return the base parameters of the JSON of an identification, and its payloads."""
    try:
        found = from_json(text)
        return list(_records(found)), tuple(found.get('payloads') or ())
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ModelError(
            "this JSON is not that of identify, whose 'submodels' have 'base_parameters'; or give "
            f'rows with the columns {", ".join(COLUMNS)}'
        ) from error


def _records(found: Any) -> Iterator[dict[str, str]]:
    """Yield each base parameter of an identification once."""
    records = [one for block in found['submodels'] for one in block['base_parameters']]
    # Both neighbours of an FT sensor state its offset.
    for one in {record['combination']: record for record in records}.values():
        deviation = '' if one[DEVIATION] is None else repr(one[DEVIATION])
        values = (one['combination'], repr(one['value']), deviation)
        yield dict(zip((*COLUMNS, DEVIATION), values, strict=True))


def _sizes(robot: Robot) -> Array:
    """Return one ball about each link's origin that is like all links on average."""
    mean = widened(robot.link_names, robot.parameters)[0].mean(axis=0)
    ball = np.zeros(10)
    ball[0], ball[[4, 6, 9]] = mean[0], mean[[4, 6, 9]].mean()
    return np.tile(ball, (len(robot.links), 1))


def _extras(
    combinations: Sequence[str], robot: Robot, payloads: Sequence[str]
) -> tuple[Extra, ...]:
    """Return the unknowns of joints, sensors and payloads that combinations name."""
    inertial = set(Unknowns(robot.link_names).names)
    terms = {term.value for term in Term}
    owners = [*robot.joint_names, *(sensor.name for sensor in robot.ft_sensors)]
    found: dict[Extra, None] = {}
    for text in combinations:
        for name in parse_combination(text):
            if name in inertial:
                continue
            owner, _, term = name.rpartition('.')
            if term in INERTIAL and owner not in payloads:
                raise NameNotFound('link', owner, robot.link_names, f"'{name}' is stated")
            if term not in terms:
                raise NameNotFound(
                    'parameter', term, [*INERTIAL, *(terms - {*INERTIAL})], f"'{name}' is stated"
                )
            if owner not in payloads:
                _require_owner(name, owner, owners, robot)
            found[Extra(owner, Term(term))] = None
    return tuple(found)


def _require_owner(name: str, owner: str, owners: Sequence[str], robot: Robot) -> None:
    """Raise unless a name is that of a joint or sensor, or of two joints that are coupled."""
    if owner in owners:
        return
    parts = owner.split(COUPLED)
    for part in parts if len(parts) == 2 else [owner]:
        known = robot.joint_names if len(parts) == 2 else owners
        if part not in known:
            raise NameNotFound('joint', part, known, f"'{name}' is stated")
    if parts[0] == parts[-1]:
        raise ModelError(f"'{name}' is stated, but a coupling is of two joints")


def _require_identifiable(base: BaseParameters, combinations: Sequence[str], robot: Robot) -> None:
    """Raise if a combination depends on what no FT sensor, effort or force plate measures."""
    inertial = base.grouping[:, : 10 * len(robot.links)].reshape(base.rank, -1, 10)
    for submodel in robot.submodels:
        null = null_space(robot, submodel)
        of_links = inertial[:, list(submodel.links)].reshape(base.rank, -1)
        seen = np.abs(of_links @ null).max(axis=1, initial=0.0)
        bad = [text for text, size in zip(combinations, seen, strict=True) if size > SEEN]
        if bad:
            raise ModelError(
                f"'{bad[0]}' ({len(bad)} in all) is no base parameter of '{robot.name}': it "
                'changes with parameters that no sensor determines; state it for the frames and '
                'links of this description'
            )


def _deviation(row: dict[str, str]) -> float:
    """Return a deviation, zero where none is stated."""
    text = (row.get(DEVIATION) or '').strip()
    if not text:
        return 0.0
    number, _ = _number(text, row['combination'])
    if number < 0.0:
        raise ModelError(f"the deviation '{text}' of '{row['combination']}' is negative")
    return number


def _number(text: str, combination: str) -> tuple[float, float]:
    """Return a number and half of its last digit."""
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        number = Decimal('nan')
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int):
        raise ModelError(f"the value '{text}' of '{combination}' is no number")
    return float(number), 0.5 * 10.0**exponent
