# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Whether any bodies have given base parameters, and the nearest ones that some have [S 51-56].

The test asks for the bodies of largest margin, the smallest eigenvalue over all links. If even
that is negative, the multipliers are a certificate: a half-space of base parameters that holds
all that bodies can have, and not the given ones. It can be checked without any solver.

The distance of the correction depends on which columns were kept, and on units; whether base
parameters are feasible does not. It is a test, no estimator.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import Enum
from io import StringIO
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.config.files import from_json
from inertial_estimation.errors import ModelError, NameNotFound, ShapeError
from inertial_estimation.identification.priors import widened
from inertial_estimation.identification.problem import Bounds, Problem
from inertial_estimation.identification.result import Grade
from inertial_estimation.identification.solvers.conic import (
    Block,
    ConicSolution,
    Consistency,
    Kind,
    matrix,
    minimise,
    vector,
)
from inertial_estimation.identification.solvers.constraints import LinearBounds
from inertial_estimation.identification.unknowns import INERTIAL, Extra, Term, Unknowns
from inertial_estimation.model.base_parameters import BaseParameters, parse_combination
from inertial_estimation.model.identifiable import null_space
from inertial_estimation.model.robot import Robot

Array = NDArray[np.float64]

MARGIN = 1e-6
"""
Eigenvalue by which a correction is inside the cone, in SI units [S 21], where bodies are like
balls of one kilogramme; in proportion to the least eigenvalue of others.
"""
BALL = 5e-3
"""Least eigenvalue of the pseudo-inertia of such a ball."""
RESOLUTION = 2e-6
"""
A margin of this share of the least eigenvalue of bodies of the scale, times the largest base
parameter over their mass where that is more than one, is neither sign for sure.
"""
GREATEST_MARGIN = 200.0
"""Larger shares of it are not looked for: links that nothing is known of have any margin."""
LARGER = 10.0
"""Size of links for which certificates hold, over the nearest ones."""


class Verdict(str, Enum):
    """Whether bodies have the base parameters."""

    FEASIBLE = 'feasible'
    INFEASIBLE = 'infeasible'
    UNDECIDED = 'undecided'
    """On the boundary up to round-off, or the solver failed."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """Base parameters b of bodies within the bounds have ``normal @ b >= offset``."""

    normal: Array
    """Shape (n_base,)."""
    offset: float
    multipliers: tuple[Array, ...]
    """
    Positive semidefinite Z of each link. With the matrix M of a link and multipliers of bounds,
    ``normal @ K x = sum tr(Z M(x)) + bounds`` for all x, which proves the inequality.
    """
    mismatch: float
    """Largest difference of the two sides by unit unknowns: what the proof is exact to."""


@dataclass(frozen=True, eq=False)
class BaseParameterCheck:
    """The answer of `check_base_parameters`."""

    verdict: Verdict
    consistency: Consistency
    margin: float
    """
    Largest possible smallest eigenvalue over all links [SI]; negative if infeasible, minus
    infinity if the bounds alone rule the base parameters out.
    """
    certificate: Certificate | None
    """If infeasible."""
    nearest: Array
    """Feasible base parameters nearest to the given ones, shape (n_base,) [S 55]."""
    distance: float
    """Euclidean, to the nearest ones."""
    x: Array
    """Unknowns that have the nearest base parameters, one choice of many, shape (n,)."""
    grade: Grade
    """How the search for them ended."""


def check_base_parameters(
    base: BaseParameters,
    values: Array,
    unknowns: Unknowns,
    *,
    consistency: Consistency = Consistency.FULL,
    bounds: Bounds | None = None,
    rounding: Array | None = None,
    scale: Array | None = None,
    margin: float | None = None,
) -> BaseParameterCheck:
    """
    Return whether bodies have given base parameters, and the nearest that some have.

    values (n_base,); rounding (n_base,); scale (n_links, 10).
    """
    _require_fit(base, values, unknowns)
    cone = _Cone(unknowns, consistency, bounds or Bounds(), _checked_scale(unknowns, scale))
    wanted = _Wanted(base, values, np.zeros(base.rank) if rounding is None else rounding)
    if margin is None:
        margin = MARGIN * cone.unit / BALL
    widest, solution = _widest(cone, wanted)
    verdict = _verdict(cone, widest, solution, values)
    certificate = None
    if verdict is Verdict.INFEASIBLE:
        certificate = _certificate(cone, wanted, solution)
        near = cone.sizes * _nearest(cone, wanted, margin).x[:-1]
        if not _proves(certificate, wanted, near):
            verdict, certificate = Verdict.UNDECIDED, None
    if rounding is None and verdict is Verdict.FEASIBLE and widest >= margin:
        x, nearest = cone.sizes * solution.x[:-1], values
    else:
        solution = _nearest(cone, wanted, margin)
        x = cone.sizes * solution.x[:-1]
        nearest = base.of(x)
    distance = float(np.linalg.norm(nearest - values))
    return BaseParameterCheck(
        verdict, consistency, widest, certificate, nearest, distance, x, solution.grade
    )


@dataclass(frozen=True, eq=False)
class _Wanted:
    """Base parameters that bodies should have."""

    base: BaseParameters
    values: Array
    off: Array
    """By how much they may be missed."""

    def blocks(self, sizes: Array) -> list[Block]:
        """Return them as blocks of scaled unknowns and one more variable."""
        from scipy.sparse import csc_array

        K = np.hstack([self.base.grouping * sizes, np.zeros((self.base.rank, 1))])
        exact = self.off == 0.0
        largest = self._largest(sizes)
        K, values, off = K / largest[:, None], self.values / largest, self.off / largest
        blocks = [
            Block(('exact',), Kind.ZERO, csc_array(K[exact]), -values[exact]),
            Block(('least',), Kind.NONNEGATIVE, csc_array(K[~exact]), (off - values)[~exact]),
            Block(('greatest',), Kind.NONNEGATIVE, csc_array(-K[~exact]), (off + values)[~exact]),
        ]
        return [block for block in blocks if len(block.h)]

    def _largest(self, sizes: Array) -> Array:
        """Return by what the rows of scaled unknowns are divided, shape (n_base,)."""
        return np.asarray(np.abs(self.base.grouping * sizes).max(axis=1))

    def normal(self, multipliers: Sequence[Array], labels: list[str], sizes: Array) -> Array:
        """Return the normal of the base parameters by the multipliers of these blocks."""
        normal = np.zeros(self.base.rank)
        exact = self.off == 0.0
        for label, z in zip(labels, multipliers, strict=True):
            if label == 'exact':
                normal[exact] -= z
            elif label == 'least':
                normal[~exact] -= z
            elif label == 'greatest':
                normal[~exact] += z
        return normal / self._largest(sizes)


class _Cone:
    """What bodies and bounds ask, in unknowns that are scaled to about one."""

    def __init__(
        self, unknowns: Unknowns, consistency: Consistency, bounds: Bounds, scale: Array
    ) -> None:
        self.links = unknowns.links
        self.consistency = consistency
        self.sizes = np.concatenate([_sizes(scale).reshape(-1), np.ones(len(unknowns.extras))])
        none = np.zeros((0, len(unknowns)))
        self.bounds = LinearBounds.of(
            Problem(unknowns, none, np.zeros(0), 0.0, 1.0, scale, bounds=bounds)
        )
        self.unit = float(Consistency.FULL.margins(scale).min())
        self.mass = float(scale[:, 0].max())
        self.roots = [np.diag(1 / np.sqrt(np.diag(M))) for M in consistency.matrix(scale)]

    def blocks(self, margin: float | None) -> list[Block]:
        """Return blocks of the scaled unknowns and one more variable."""
        from scipy.sparse import csc_array

        n = len(self.sizes)
        blocks = []
        for k, (link, root) in enumerate(zip(self.links, self.roots, strict=True)):
            unit = vector(root @ root)
            G = np.zeros((len(unit), n + 1))
            of_link = slice(10 * k, 10 * k + 10)
            G[:, of_link] = self.consistency.rows(root) * self.sizes[of_link]
            G[:, -1] = -unit * self.unit if margin is None else 0.0
            h = -(margin or 0.0) * unit
            blocks.append(Block((link,), Kind.SEMIDEFINITE, csc_array(G), h))
        if self.bounds.names:
            rows = self.bounds.rows * self.sizes
            largest = np.abs(rows).max(axis=1)
            G = np.hstack([rows, np.zeros((len(rows), 1))]) / largest[:, None]
            h = -self.bounds.limits / largest
            blocks.append(Block(self.bounds.names, Kind.NONNEGATIVE, csc_array(G), h))
        return blocks


def _widest(cone: _Cone, wanted: _Wanted) -> tuple[float, ConicSolution]:
    """Return the largest margin of bodies with the base parameters [S 51]."""
    from scipy.sparse import csc_array

    n = len(cone.sizes) + 1
    margin_only = np.zeros((1, n))
    margin_only[0, -1] = -1.0
    blocks = [
        *cone.blocks(None),
        *wanted.blocks(cone.sizes),
        Block(('cap',), Kind.NONNEGATIVE, csc_array(margin_only), np.array([GREATEST_MARGIN])),
    ]
    solution = minimise(csc_array((n, n)), margin_only[0], blocks)
    return (cone.unit * float(solution.x[-1]) if solution.feasible else -np.inf), solution


def _nearest(cone: _Cone, wanted: _Wanted, margin: float) -> ConicSolution:
    """Return the unknowns whose base parameters are nearest to the given ones [S 55]."""
    from scipy.sparse import csc_array

    n = len(cone.sizes) + 1
    distance = np.zeros((1, n))
    distance[0, -1] = 1.0
    size = min(1.0, float(np.abs(wanted.values).max(initial=0.0))) or 1.0
    K = np.hstack([wanted.base.grouping * cone.sizes / size, np.zeros((wanted.base.rank, 1))])
    # The distance itself: its square would be lost in round-off long before it is zero.
    lengths = csc_array(np.vstack([distance, K]))
    missed = np.concatenate([[0.0], -wanted.values / size])
    reached = Block(('distance',), Kind.SECOND_ORDER, lengths, missed)
    solution = minimise(csc_array((n, n)), distance[0], [*cone.blocks(margin), reached])
    if not solution.feasible:
        raise ModelError(
            'no bodies are within the bounds, whatever the base parameters: '
            f'{", ".join(cone.bounds.names)}'
        )
    return solution


def _verdict(cone: _Cone, widest: float, solution: ConicSolution, values: Array) -> Verdict:
    """Return the verdict of the largest margin."""
    size = max(1.0, float(np.abs(values).max(initial=0.0)) / cone.mass)
    resolution = RESOLUTION * cone.unit * size
    if not solution.feasible or widest < -resolution:
        return Verdict.INFEASIBLE
    if widest > resolution and solution.grade is Grade.OPTIMAL:
        return Verdict.FEASIBLE
    return Verdict.UNDECIDED


def _proves(certificate: Certificate, wanted: _Wanted, near: Array) -> bool:
    """Return whether base parameters are outside by more than the certificate may be off by."""
    beyond = certificate.offset - certificate.normal @ wanted.values
    beyond -= np.abs(certificate.normal) @ wanted.off
    return bool(beyond > LARGER * certificate.mismatch * np.abs(near).sum())


def _certificate(cone: _Cone, wanted: _Wanted, solution: ConicSolution) -> Certificate:
    """Return the half-space of the multipliers."""
    blocks = [*cone.blocks(None), *wanted.blocks(cone.sizes)]
    labels = [block.labels[0] for block in blocks]
    # The margin counts in units of the scale.
    shares = [cone.unit * z for z in solution.multipliers]
    normal = wanted.normal(shares, [*labels, 'cap'], cone.sizes)
    seen = np.zeros(len(cone.sizes))
    offset, multipliers = 0.0, list[Array]()
    for block, z in zip(blocks, shares, strict=False):
        if block.kind is Kind.SEMIDEFINITE:
            root = cone.roots[len(multipliers)]
            multipliers.append(root @ matrix(z) @ root)
        elif block.labels == cone.bounds.names:
            offset = -float(z @ block.h)
        else:
            continue
        seen += np.asarray(block.G.T @ z)[:-1] / cone.sizes
    mismatch = float(np.abs(wanted.base.grouping.T @ normal - seen).max())
    return Certificate(normal, offset, tuple(multipliers), mismatch)


def _sizes(scale: Array) -> Array:
    """Return how large parameters of bodies like these are, shape (n_links, 10)."""
    mass = scale[:, 0]
    length = np.sqrt((scale[:, 4] + scale[:, 6] + scale[:, 9]) / 2 / mass)
    sizes = np.ones((len(scale), 10)) * mass[:, None]
    sizes[:, 1:4] *= length[:, None]
    sizes[:, 4:] *= length[:, None] ** 2
    return sizes


def _checked_scale(unknowns: Unknowns, scale: Array | None) -> Array:
    """Return bodies of about the right size; by default balls of one kilogramme."""
    if scale is None:
        ball = np.zeros(10)
        ball[0], ball[[4, 6, 9]] = 1.0, 0.01
        return np.tile(ball, (len(unknowns.links), 1))
    if not (Consistency.FULL.margins(scale) > 0).all():
        raise ModelError('bodies that give the scale must be strictly consistent')
    return scale


def _require_fit(base: BaseParameters, values: Array, unknowns: Unknowns) -> None:
    """Raise unless values, groupings and unknowns belong together."""
    if values.shape != (base.rank,):
        raise ShapeError('values', (base.rank,), values.shape, 'one for each base parameter')
    wanted = (base.rank, len(unknowns))
    if base.grouping.shape != wanted:
        raise ShapeError('grouping', wanted, base.grouping.shape, 'one column per unknown')
    if not np.isfinite(values).all():
        raise ModelError('base parameters hold NaN or infinity')


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
        scale=_average_balls(robot),
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


def _average_balls(robot: Robot) -> Array:
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
