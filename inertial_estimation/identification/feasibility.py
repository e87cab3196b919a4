# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Base parameters of physically consistent links, and the nearest ones that have some [S 51-56].

The test asks for the consistent parameters of largest margin, the smallest eigenvalue over all
links. If even that is negative, the multipliers are a certificate: a half-space of base parameters
that holds those of all consistent links, and not the given ones. It can be checked without any
solver. The distance of the correction depends on which columns were kept, and on units; whether
base parameters are feasible does not. It is a test, no estimator.

Stated base parameters are read from text with commas:

    combination,value
    upper.Izz + tool.Izz + 0.09 tool.m,0.1432
    shoulder.viscous,0.61
    wrist_2+wrist_3.viscous,0.2

Names are those of `Unknowns`; ``+`` between two joints is a coupling. A value may be off by half
of its last digit, as printed numbers are. A column ``deviation`` may have its standard deviation.
The verdict ignores combinations of friction and drives alone, whose small values are measured
negative half of the time.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import Enum
from io import StringIO
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError, NameNotFound
from inertial_estimation.identification.priors import widened
from inertial_estimation.identification.problem import Bounds, Grade, LinearBounds
from inertial_estimation.identification.solvers.conic import Block, ConicSolution, Kind, minimise
from inertial_estimation.identification.solvers.divergence import components, symmetric
from inertial_estimation.identification.unknowns import Extra, Term, Unknowns
from inertial_estimation.model.base_parameters import BaseParameters, parse_combination
from inertial_estimation.model.identifiable import null_space
from inertial_estimation.model.inertia import INERTIAL, pseudo_inertia, spatial_inertia
from inertial_estimation.model.robot import Robot

MARGIN = 1e-6
"""
Eigenvalue by which a correction is inside the cone, in SI units [S 21], for links like balls of
one kilogramme; in proportion to the least eigenvalue of others.
"""
BALL_EIGENVALUE = 5e-3
"""Least eigenvalue of the pseudo-inertia of such a ball."""
RESOLUTION = 2e-6
"""
A margin of this share of the least eigenvalue of links of the scale, times the largest base
parameter over their mass where that is more than one, has no certain sign.
"""
MAX_MARGIN_RATIO = 200.0
"""Larger shares of it are not looked for: links without equations have any margin."""
MAX_SIZE_RATIO = 10.0
"""Size of links for which certificates hold, over the nearest ones."""
COLUMNS, DEVIATION = ('combination', 'value'), 'deviation'
NOT_NEGATIVE = (Term.VISCOUS, Term.COULOMB, Term.DRIVE_INERTIA)
"""Other unknowns that are not negative in any robot [S 28]."""
NULL_CHANGE = 1e-6
"""A combination that changes more in the null space of all sensors is no base parameter."""


class Consistency(str, Enum):
    """Consistency that is asked of the parameters of a link."""

    PHYSICAL = 'physical'
    """Positive mass and positive inertia about the centre of mass: the 6x6 cone [S 17]."""
    FULL = 'full'
    """The triangle inequality as well: the 4x4 cone [W; T Definition 6.2]."""

    def matrix(self, parameters: Array) -> Array:
        """Return the matrices, (..., k, k), that must be positive semidefinite."""
        return (
            pseudo_inertia(parameters) if self is Consistency.FULL else spatial_inertia(parameters)
        )

    def margins(self, parameters: Array) -> Array:
        """Return their smallest eigenvalues, (...)."""
        return np.asarray(np.linalg.eigvalsh(self.matrix(parameters))[..., 0], dtype=np.float64)

    def rows(self, congruence: Array) -> Array:
        """Return the map of parameters to their matrix C M C' as a vector; C (..., k, k)."""
        C = congruence[..., None, :, :]
        matrices = C @ self.matrix(np.eye(10)) @ np.swapaxes(C, -1, -2)
        # Backwards they are columns of the triangle, as Clarabel has them, of axes in reverse.
        return np.swapaxes(components(matrices)[..., ::-1], -1, -2)


class Verdict(str, Enum):
    """Existence of consistent links with the base parameters."""

    FEASIBLE = 'feasible'
    INFEASIBLE = 'infeasible'
    UNDECIDED = 'undecided'
    """On the boundary up to round-off, or the solver failed."""


class Certificate(NamedTuple):
    """Base parameters b of links within the bounds have ``normal @ b >= offset``."""

    normal: Array
    """Shape (n_base,)."""
    offset: float
    multipliers: Array
    """
    Positive semidefinite Z of each link, (n_links, k, k). With the matrix M of a link and
    multipliers of bounds, ``normal @ K x = sum tr(Z M(x)) + bounds`` for all x: the proof.
    """
    mismatch: float
    """Largest difference of the two sides by unit unknowns: what the proof is exact to."""


class BaseParameterCheck(NamedTuple):
    """The answer of `check_base_parameters`."""

    verdict: Verdict
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
    """Of the search for them."""


def check_base_parameters(
    base: BaseParameters,
    values: Array,
    unknowns: Unknowns,
    *,
    consistency: Consistency = Consistency.FULL,
    bounds: Bounds | None = None,
    rounding: Array | None = None,
    mass: float = 1.0,
    moment: float = 0.01,
) -> BaseParameterCheck:
    """
    Check whether consistent links have given base parameters, and find the nearest that some have.

    values (n_base,); rounding (n_base,); mass [kg] and moment [kg m^2] of links like balls of
    about the right size.
    """
    test = _Test(base, values, rounding, unknowns, consistency, bounds or Bounds(), mass, moment)
    solution = test.widest()
    margin = test.unit * float(solution.x[-1]) if solution.feasible else -np.inf
    # In proportion to the largest base parameter over the mass of links.
    size = max(1.0, float(np.abs(values).max(initial=0.0) / mass))
    resolution, aimed = RESOLUTION * test.unit * size, MARGIN * test.unit / BALL_EIGENVALUE
    verdict, certificate = Verdict.UNDECIDED, None
    if margin > resolution and solution.grade is Grade.OPTIMAL:
        verdict = Verdict.FEASIBLE
        if rounding is None and margin >= aimed:
            x = test.sizes * solution.x[:-1]
            return BaseParameterCheck(verdict, margin, None, values, 0.0, x, solution.grade)
    near = test.nearest(aimed)
    x = test.sizes * near.x[:-1]
    if margin < -resolution:
        proof = test.certificate(solution)
        off = 0.0 if rounding is None else np.abs(proof.normal) @ rounding
        missed = proof.offset - proof.normal @ values - off
        if missed > MAX_SIZE_RATIO * proof.mismatch * np.abs(x).sum():
            verdict, certificate = Verdict.INFEASIBLE, proof
    nearest = base.of(x)
    distance = float(np.linalg.norm(nearest - values))
    return BaseParameterCheck(verdict, margin, certificate, nearest, distance, x, near.grade)


class _Test:
    """Conic programs in unknowns that are scaled to about one, and one more variable."""

    def __init__(
        self,
        base: BaseParameters,
        values: Array,
        rounding: Array | None,
        unknowns: Unknowns,
        consistency: Consistency,
        bounds: Bounds,
        mass: float,
        moment: float,
    ) -> None:
        self.base, self.values, self.rounding = base, values, rounding
        ball = np.array([mass, 0, 0, 0, moment, 0, moment, 0, 0, moment], dtype=np.float64)
        of_link = mass * np.sqrt(1.5 * moment / mass) ** np.repeat([0, 1, 2], [1, 3, 6])
        self.links, extras = unknowns.links, np.ones(len(unknowns.extras))
        self.sizes = np.append(np.tile(of_link, len(self.links)), extras)
        self.unit = float(Consistency.FULL.margins(ball))
        self.bounds = LinearBounds.of(bounds, unknowns)
        self.root = np.diag(np.diagonal(consistency.matrix(ball)) ** -0.5)
        self.of_link = consistency.rows(self.root[None])[0]
        self.largest = np.asarray(np.abs(base.grouping * self.sizes).max(axis=1))
        """By which equations of scaled unknowns are divided, shape (n_base,)."""

    def cone(self, margin: float | None) -> list[Block]:
        """Return consistency and bounds, with a margin or with the last variable as such."""
        unit = np.tile(components(self.root @ self.root)[::-1], len(self.links))
        matrices = np.kron(np.eye(len(self.links)), self.of_link * self.sizes[:10])
        G = np.zeros((len(unit), len(self.sizes) + 1))
        G[:, : matrices.shape[1]] = matrices
        G[:, -1] = -unit * self.unit if margin is None else 0.0
        h = -(margin or 0.0) * unit
        blocks = [Block(Kind.SEMIDEFINITE, G, h, len(self.links))]
        if self.bounds.names:
            rows = self.bounds.rows * self.sizes
            largest = np.abs(rows).max(axis=1)
            G = np.pad(rows / largest[:, None], ((0, 0), (0, 1)))
            h = -self.bounds.limits / largest
            blocks.append(Block(Kind.NONNEGATIVE, G, h))
        return blocks

    def widest(self) -> ConicSolution:
        """Return links of largest margin with the base parameters, up to their rounding [S 51]."""
        K, values = self.base.grouping * self.sizes, self.values / self.largest
        K = np.pad(K / self.largest[:, None], ((0, 0), (0, 1)))
        wanted = [Block(Kind.ZERO, K, -values)]
        if self.rounding is not None:
            # Slabs thinner than the solver's tolerance, 1e-8, have no interior for it.
            off = np.maximum(self.rounding / self.largest, 1e-7 * np.abs(values))
            wanted = [
                Block(Kind.NONNEGATIVE, K, off - values),
                Block(Kind.NONNEGATIVE, -K, off + values),
            ]
        less = -np.eye(K.shape[1])[-1:]
        cap = Block(Kind.NONNEGATIVE, less, np.array([MAX_MARGIN_RATIO]))
        return minimise(less[0], [*self.cone(None), *wanted, cap])

    def nearest(self, margin: float) -> ConicSolution:
        """Return the unknowns whose base parameters are nearest to the given ones [S 55]."""
        n = len(self.sizes) + 1
        size = min(1.0, float(np.abs(self.values).max(initial=0.0))) or 1.0
        K = np.pad(self.base.grouping * self.sizes / size, ((0, 0), (0, 1)))
        # The distance itself: its square would be lost in round-off long before it is zero.
        lengths = np.vstack([np.eye(n)[-1:], K])
        missed = np.concatenate([[0.0], -self.values / size])
        reached = Block(Kind.SECOND_ORDER, lengths, missed)
        solution = minimise(np.eye(n)[-1], [*self.cone(margin), reached])
        if not solution.feasible:
            names = ', '.join(self.bounds.names)
            raise ModelError(f'no consistent parameters are within the bounds: {names}')
        return solution

    def certificate(self, solution: ConicSolution) -> Certificate:
        """Return the half-space of the multipliers."""
        cone = self.cone(None)
        # The margin counts in units of the scale.
        shares = [self.unit * z for z in solution.multipliers]
        normal, *less = shares[len(cone) : -1]
        normal = (sum(less) - normal) / self.largest
        offset = -float(sum(z @ block.h for block, z in zip(cone[1:], shares[1:], strict=False)))
        seen = np.sum([b.G.T @ z for b, z in zip(cone, shares, strict=False)], axis=0)
        multipliers = (
            self.root @ symmetric(shares[0].reshape(len(self.links), -1)[:, ::-1]) @ self.root
        )
        mismatch = np.abs(self.base.grouping.T @ normal - seen[:-1] / self.sizes).max()
        return Certificate(normal, offset, multipliers, float(mismatch))


@dataclass(frozen=True, eq=False)
class StatedBaseParameters:
    """Base parameters as stated in a text."""

    unknowns: Unknowns
    base: BaseParameters
    values: Array
    """Shape (n_base,)."""
    rounding: Array
    """Half of the last digit of each, shape (n_base,)."""
    deviations: Array
    """Standard deviation of each, zero where none is stated, shape (n_base,)."""

    @property
    def of_links(self) -> NDArray[np.bool_]:
        """Combinations that have parameters of links, shape (n_base,)."""
        return np.asarray(self.base.grouping[:, : self.unknowns.n_inertial].any(axis=1))

    @property
    def below_zero(self) -> NDArray[np.bool_]:
        """Combinations of friction and drives alone that no robot has, shape (n_base,)."""
        extras = self.base.grouping[:, self.unknowns.n_inertial :]
        terms = [extra.term for extra in self.unknowns.extras]
        allowed = np.array([term not in NOT_NEGATIVE for term in terms], dtype=np.bool_)
        asked = ~self.of_links & (extras >= 0.0).all(axis=1) & ~extras[:, allowed].any(axis=1)
        return np.asarray(asked & (self.values < -self.rounding))


def check_stated(
    robot: Robot, stated: StatedBaseParameters, consistency: Consistency = Consistency.FULL
) -> BaseParameterCheck:
    """Check stated base parameters up to their rounding, for links like those of the robot."""
    n = stated.unknowns.n_inertial
    with_links = np.asarray(stated.base.grouping[stated.of_links, n:].any(axis=0))
    limits = [
        [0.0 if among and extra.term in NOT_NEGATIVE else -np.inf, np.inf]
        for extra, among in zip(stated.unknowns.extras, with_links, strict=True)
    ]
    mean = widened(robot.link_names, robot.parameters)[0].mean(axis=0)
    return check_base_parameters(
        stated.base,
        stated.values,
        stated.unknowns,
        consistency=consistency,
        bounds=Bounds(extras=np.array(limits).reshape(-1, 2)),
        rounding=stated.rounding,
        mass=float(mean[0]),
        moment=float(mean[[4, 6, 9]].mean()),
    )


def read_base_parameters(text: str, robot: Robot) -> StatedBaseParameters:
    """Read stated base parameters of a robot."""
    rows = list(csv.DictReader(StringIO(text)))
    if not rows or any(row.get(column) is None for row in rows for column in COLUMNS):
        raise ModelError(f'base parameters need rows with the columns {", ".join(COLUMNS)}')
    combinations = [row['combination'] for row in rows]
    unknowns = Unknowns(robot.link_names, _extras(combinations, robot))
    base = BaseParameters.parse(combinations, unknowns.names)
    if len(set(base.independent.tolist())) < base.rank:
        raise ModelError('each combination of base parameters must begin with another name')
    inertial = base.grouping[:, : unknowns.n_inertial].reshape(base.rank, -1, 10)
    for submodel in robot.submodels:
        of_links = inertial[:, list(submodel.links)].reshape(base.rank, -1)
        changes = np.abs(of_links @ null_space(robot, submodel)).max(axis=1, initial=0.0)
        if (bad := np.flatnonzero(changes > NULL_CHANGE)).size:
            raise ModelError(
                f"'{combinations[bad[0]]}' ({len(bad)} in all) is no base parameter of "
                f"'{robot.name}': it depends on parameters that no sensor determines"
            )
    values, rounding = np.array([_number(row['value'], row['combination']) for row in rows]).T
    stated = [(row.get(DEVIATION) or '0').strip() or '0' for row in rows]
    deviations = [_number(text, name)[0] for text, name in zip(stated, combinations, strict=True)]
    if (least := min(deviations)) < 0.0:
        raise ModelError(f"the deviation {least:g} of '{combinations[deviations.index(least)]}'")
    return StatedBaseParameters(unknowns, base, values, rounding, np.array(deviations))


def _extras(combinations: Sequence[str], robot: Robot) -> tuple[Extra, ...]:
    """Return the unknowns of joints and sensors that combinations name."""
    inertial, terms = set(Unknowns(robot.link_names).names), {term.value for term in Term}
    found: dict[Extra, None] = {}
    for name in (name for text in combinations for name in parse_combination(text)):
        if name in inertial:
            continue
        owner, _, term = name.rpartition('.')
        stated, parts = f"'{name}' is stated", [owner]
        if term in INERTIAL:
            raise NameNotFound('link', owner, robot.link_names, stated)
        if term not in terms:
            raise NameNotFound('parameter', term, [*INERTIAL, *(terms - {*INERTIAL})], stated)
        known = (*robot.joint_names, *(sensor.name for sensor in robot.ft_sensors))
        if owner not in known and owner.count('+') == 1:
            # A coupling, between two joints.
            parts, known = owner.split('+'), robot.joint_names
            if parts[0] == parts[1]:
                raise ModelError(f'{stated}, but a coupling is of two joints')
        for part in parts:
            if part not in known:
                raise NameNotFound('joint', part, known, stated)
        found[Extra(owner, Term(term))] = None
    return tuple(found)


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
