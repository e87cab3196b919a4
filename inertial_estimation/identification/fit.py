# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Offsets of FT sensors, which are unknowns of both submodels that the sensor is between.

All else that submodels do not know is their own. So each is eliminated onto the offsets, and what
the others say of those of a submodel are further rows of it: its answer is then that of a joint
fit of all submodels,

    minimise  sum over submodels of  1/2 |R x - rho|^2 + count * weight * distance to the prior

and so are the offsets, of which there is one value. The distance has to be quadratic to be
eliminated. One that is not is developed about the answers, which is repeated until they agree.

What was found of a whole robot, submodel by submodel.

A whole robot from its evidence: block by block, rows weighted by their noise.

Each submodel is a problem of its own, but for the offsets of the sensors between two of them: on
these they have to agree. Its kinds of rows have noise of their own, which is found first; then the
chosen method solves. Links of submodels without rows stay as they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError, ModelError, NameNotFound
from inertial_estimation.identification.drive_gains import (
    geared,
    linearised,
    require_scale,
    settled,
    shifted,
)
from inertial_estimation.identification.evidence import Evidence, friction_scales
from inertial_estimation.identification.information import Information, weighted_sum
from inertial_estimation.identification.noise import (
    NoiseLevels,
    UndeterminedNoiseError,
    noise_levels,
)
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.priors import (
    against_the_mean,
    entropic_model,
    prior_of_method,
    widened,
)
from inertial_estimation.identification.problem import Bounds, Problem
from inertial_estimation.identification.result import Identification
from inertial_estimation.identification.row_space import eliminated
from inertial_estimation.identification.solvers.coordinates import require_weight
from inertial_estimation.identification.solvers.linear_bounds import LinearBounds
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.identification.unknowns import FT_OFFSET, Unknowns, gain_columns
from inertial_estimation.model.robot import Robot

Array = NDArray[np.float64]
Columns = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Submodel:
    """What is known of one submodel."""

    unknowns: Unknowns
    rows: Information
    """Its own, in units of their noise."""
    prior: Information | None
    """Rows of its prior against the sum of squares of these, or none."""


def shared_names(unknowns: Sequence[Unknowns]) -> list[str]:
    """Return the offsets that are unknowns of more than one submodel."""
    names = [str(extra) for one in unknowns for extra in one.extras if extra.term in FT_OFFSET]
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]


def told_by_others(submodels: Sequence[Submodel]) -> list[Information | None]:
    """Return for each submodel what the others say of its offsets."""
    shared = shared_names([one.unknowns for one in submodels])
    kept = [_columns(one.unknowns, shared) for one in submodels]
    said = [
        _onto(one, columns, shared) if len(columns) else None
        for one, columns in zip(submodels, kept, strict=True)
    ]
    found: list[Information | None] = []
    for k, (one, columns) in enumerate(zip(submodels, kept, strict=True)):
        others = [part for j, part in enumerate(said) if j != k and part is not None]
        if not len(columns) or not others:
            found.append(None)
            continue
        names = [one.unknowns.names[c] for c in columns]
        mine = np.array([shared.index(name) for name in names], dtype=np.intp)
        together = others[0].merge(*others[1:])
        beyond = np.setdiff1d(np.arange(len(shared)), mine)
        left = eliminated(together, beyond)
        # What is left has the offsets in the order of all, not in that of the submodel.
        order = columns[np.argsort(mine)]
        found.append(_placed(left, order, len(one.unknowns)))
    return found


def disagreement(submodels: Sequence[tuple[Unknowns, Array]]) -> float:
    """Return by how much values of one offset differ between submodels."""
    shared = shared_names([unknowns for unknowns, _ in submodels])
    values: dict[str, list[float]] = {name: [] for name in shared}
    for unknowns, x in submodels:
        for column in _columns(unknowns, shared):
            values[unknowns.names[column]].append(float(x[column]))
    largest = max((abs(v) for some in values.values() for v in some), default=0.0)
    return max((max(v) - min(v) for v in values.values()), default=0.0) / max(1.0, largest)


def _columns(unknowns: Unknowns, names: Sequence[str]) -> Columns:
    """Return which unknowns have one of some names."""
    extras = [k for k, name in enumerate(unknowns.names) if name in names]
    return np.array(extras, dtype=np.intp)


def _onto(one: Submodel, columns: Columns, shared: Sequence[str]) -> Information:
    """Return what one submodel says of all shared offsets."""
    rows = one.rows if one.prior is None else one.rows.merge(one.prior)
    left = eliminated(rows, np.setdiff1d(np.arange(rows.n), columns))
    places = [shared.index(one.unknowns.names[c]) for c in columns]
    return _placed(left, np.array(places, dtype=np.intp), len(shared))


def _placed(rows: Information, columns: Columns, n: int) -> Information:
    """Return rows of n unknowns of which they hold some; they count as none."""
    Y = np.zeros((rows.n, n))
    Y[:, columns] = rows.R
    return replace(Information.of(Y, rows.rho), count=0.0, energy=0.0)


UNSEEN = 1e-12
"""A link whose columns are a smaller share of the largest changes no row."""


@dataclass(frozen=True, eq=False)
class BlockFit:
    """One submodel."""

    evidence: Evidence
    noise: NoiseLevels
    """Of each kind of row, from what no unknowns explain."""
    information: Information
    """Its rows in units of their noise, and what other submodels say of offsets."""
    answer: Identification
    before: Array
    """Unknowns with the prior's bodies and all else fitted, shape (n_unknowns,)."""
    weight: float | None = None
    """Of the prior against the mean of the rows; None: it has none."""
    missed: tuple[str, ...] = ()
    """Bounds that the answer does not keep."""

    @property
    def name(self) -> str:
        """Name of the submodel."""
        return self.evidence.block.submodel.name

    @property
    def kinds(self) -> list[str]:
        """Kinds of rows that were fitted: those whose noise is told."""
        return list(self.noise.deviations)

    @property
    def links_seen(self) -> list[bool]:
        """Which of its links change any row, as a base that stands still does not."""
        return links_seen(self.information, self.answer.unknowns)


@dataclass(frozen=True, eq=False)
class RobotFit:
    """All submodels."""

    robot: Robot
    prior: Array
    """Parameters of all links, shape (n_links, 10): the robot's, points and sticks widened."""
    widened: tuple[str, ...]
    """Links whose prior had to be widened."""
    blocks: tuple[BlockFit, ...]
    """Of the submodels that have rows."""
    untold: Mapping[str, str] = field(default_factory=dict)
    """Submodels whose rows are too few to tell their noise, which stay as they were, and why."""

    @property
    def parameters(self) -> Array:
        """Inertial parameters of all links, (n_links, 10); the robot's where there are no rows."""
        found = self.robot.parameters.copy()
        for block in self.blocks:
            found[list(block.evidence.block.submodel.links)] = block.answer.parameters
        return found

    @property
    def described(self) -> Array:
        """
        The same for a robot description, (n_links, 10): the robot's where an answer is the prior.
        """
        found = self.parameters
        same = (found == self.prior).all(axis=1)
        found[same] = self.robot.parameters[same]
        return found

    @property
    def payloads(self) -> dict[str, Array]:
        """Parameters of each payload about the origin of its frame, (10,), by name."""
        found = {}
        for block in self.blocks:
            extras = block.answer.extras
            for payload in block.evidence.block.payloads:
                values = payload.known()
                values[np.isnan(values)] = [extras[str(extra)] for extra in payload.extras()]
                found[payload.name] = values
        return found

    @property
    def consistent(self) -> bool:
        """Whether all answers are bodies that could exist."""
        return all(block.answer.consistent for block in self.blocks)


def links_seen(rows: Information, unknowns: Unknowns) -> list[bool]:
    """Return which links change any row."""
    changes = np.linalg.norm(rows.R[:, : unknowns.n_inertial], axis=0)
    least = UNSEEN * changes.max(initial=0.0)
    return [bool((link > least).any()) for link in changes.reshape(len(unknowns.links), -1)]


def require_bounds(found: RobotFit) -> None:
    """Raise unless all bounds are kept."""
    missed = [name for block in found.blocks for name in block.missed]
    if missed:
        raise ModelError(
            f'these bounds are not kept: {", ".join(missed)}; see whether they contradict each '
            'other, or choose a method that keeps bounds'
        )


NO_BOUNDS = Bounds()
NOISE_PRIOR = 1.0
"""
Most that the prior weighs where the noise is told, times the rows: bodies are then of the size of
the prior's. With all its weight a wrong prior would pass for noise of a long log.
"""
ROUNDS = 6
"""Of fits at most, until submodels agree on the offsets of the sensors between them."""
AGREED = 1e-7
"""Difference of two values of an offset, over the largest one, below which they are one."""
KEPT = 1e-6
"""Share of its terms by which a bound may be missed: solvers keep theirs to fewer digits."""
WORSE = 100.0
"""Mean square over that of the prior's bodies which no method can mean."""


def fit(
    robot: Robot,
    evidence: Sequence[Evidence],
    method: str = 'entropic',
    options: Mapping[str, Any] | None = None,
    bounds: Mapping[str, Bounds] | None = None,
    own_options: Mapping[str, Mapping[str, Any]] | None = None,
) -> RobotFit:
    """Identify what the links of a robot weigh."""
    if method not in SOLVERS:
        raise NameNotFound('method', method, SOLVERS)
    prior, changed = widened(robot.link_names, robot.parameters)
    asked = []
    for one in evidence:
        if not any(part.count for part in one.kinds.values()):
            continue
        name = one.block.submodel.name
        limits = (bounds or {}).get(name, NO_BOUNDS)
        chosen = {**(options or {}), **(own_options or {}).get(name, {})}
        if SOLVERS[method].weighted:
            chosen = against_the_mean(chosen, sum(part.count for part in one.kinds.values()))
        links = list(one.block.submodel.links)
        asked.append(_Asked(one, prior[links], limits, method, chosen))
    if not asked:
        raise LogError('the logs give no row: see what was left out, and why')
    untold: dict[str, str] = {}
    with one_thread():
        alone = [_told_block(one, untold) for one in asked]
        pairs = [(one, found) for one, found in zip(asked, alone, strict=True) if found]
        if not pairs:
            raise UndeterminedNoiseError(
                '; '.join(f'{name}: {why}' for name, why in untold.items())
            )
        blocks = _agreed([one for one, _ in pairs], [found for _, found in pairs])
    return RobotFit(robot, prior, changed, tuple(blocks), untold)


def _told_block(asked: _Asked, untold: dict[str, str]) -> BlockFit | None:
    """Identify one submodel, or note why its rows are too few."""
    try:
        return _fit_block(asked)
    except UndeterminedNoiseError as error:
        untold[asked.evidence.block.submodel.name] = str(error)
        return None


def _fit_block(asked: _Asked) -> BlockFit:
    """Identify one submodel."""
    evidence = asked.evidence
    known = [one.name for one in evidence.block.payloads if one.mass is not None]
    require_scale(evidence.kinds, asked.unknowns, known)
    solve = _with_gains if len(gain_columns(asked.unknowns)) else _without_gains
    try:
        noise, answer, before = solve(asked)
    except np.linalg.LinAlgError as error:
        raise _trouble(evidence, str(error)) from error
    # Bounds and shapes may keep an answer away from a prior that fits better.
    limited = asked.bounds is not NO_BOUNDS or 'grids' in asked.options
    if not limited and not answer.mean_square < WORSE * max(
        1.0, _mean_square(evidence, before, noise)
    ):
        raise _trouble(evidence, 'the answer fits the rows much worse than the prior does')
    answer = _unseen_stay(asked, noise, answer)
    missed = _missed(asked, noise.information, answer.x)
    return BlockFit(evidence, noise, asked.together(noise), answer, before, asked.weight, missed)


def _unseen_stay(asked: _Asked, noise: NoiseLevels, answer: Identification) -> Identification:
    """Return an answer whose links that no row sees are the prior's to the bit [A after 32]."""
    seen = links_seen(asked.together(noise), asked.unknowns)
    bodies, extras = asked.unknowns.split(answer.x)
    x = asked.unknowns.join(np.where(np.array(seen)[:, None], bodies, asked.prior), extras)
    rows = noise.information
    if not set(_missed(asked, rows, x)) <= set(_missed(asked, rows, answer.x)):
        return answer
    return replace(answer, x=x)


def _missed(asked: _Asked, rows: Information, x: Array) -> tuple[str, ...]:
    """Return the bounds that unknowns do not keep, whatever method they are of."""
    if asked.bounds is NO_BOUNDS:
        return ()
    bounds = LinearBounds.of(Problem.of(asked.unknowns, rows, asked.prior, bounds=asked.bounds))
    sizes = np.abs(bounds.rows) @ np.abs(x) + np.abs(bounds.limits)
    return tuple(np.array(bounds.names)[bounds.slack(x) < -KEPT * sizes].tolist())


def _agreed(asked: Sequence[_Asked], found: list[BlockFit]) -> list[BlockFit]:
    """Return fits of submodels that agree on the offsets that they share."""
    for _ in range(ROUNDS):
        left = disagreement([(one.answer.unknowns, one.answer.x) for one in found])
        if left <= AGREED:
            break
        told = told_by_others([one.submodel(fit) for one, fit in zip(asked, found, strict=True)])
        found = [
            fit if others is None else _fit_block(replace(one, others=others))
            for one, fit, others in zip(asked, found, told, strict=True)
        ]
    return found


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is asked of one submodel."""

    evidence: Evidence
    prior: Array
    """Of its links, shape (n_links, 10)."""
    bounds: Bounds
    method: str
    options: Mapping[str, Any]
    others: Information | None = None
    """What other submodels say of its offsets."""

    @property
    def unknowns(self) -> Unknowns:
        """Of the submodel."""
        return self.evidence.block.unknowns

    @property
    def weight(self) -> float | None:
        """Of the prior against the mean of the rows; None: it has none."""
        if not SOLVERS[self.method].weighted:
            return None
        weight: float | None = self.options['weight']
        if weight is not None:
            require_weight(weight)
        return weight

    def scales(self, x: Array | None) -> Array | None:
        """Return how far other unknowns may well be from zero, where that is used."""
        return friction_scales(self.evidence, x) if SOLVERS[self.method].weighted else None

    def together(self, noise: NoiseLevels) -> Information:
        """Return its rows in units of their noise, and what other submodels say."""
        own = noise.information
        return own if self.others is None else own.merge(self.others)

    def solved(
        self, kinds: Mapping[str, Information], x: Array | None = None
    ) -> tuple[NoiseLevels, Identification]:
        """Return the noise of rows, and what fits best; `x`: a guess with gains, if any."""
        prior, scales = None, self.scales(x)
        if self.weight is not None:
            weight = min(self.weight * sum(part.count for part in kinds.values()), NOISE_PRIOR)
            prior = entropic_model(self.unknowns, self.prior, self.prior, scales, weight)
        noise = noise_levels(kinds, prior=prior)
        problem = Problem.of(
            self.unknowns,
            self.together(noise),
            self.prior,
            bounds=self.bounds if x is None else shifted(self.bounds, self.unknowns, x),
            extra_scales=scales,
        )
        answer = SOLVERS[self.method](problem, **self.options)
        own = noise.information
        left = own.squared_residual(answer.x) / own.count
        return noise, replace(answer, mean_square=left, notes=(*noise.notes, *answer.notes))

    def submodel(self, found: BlockFit) -> Submodel:
        """Return its rows and its prior, near what was found."""
        rows, model = found.noise.information, None
        if self.weight is not None:
            guess = found.answer.x if len(gain_columns(self.unknowns)) else None
            model = prior_of_method(
                SOLVERS[self.method].distance, self.options, self.unknowns, self.prior,
                found.answer.parameters, self.scales(guess), self.weight * rows.count,
            )  # fmt: skip
        return Submodel(self.unknowns, rows, model)


def _without_gains(asked: _Asked) -> tuple[NoiseLevels, Identification, Array]:
    """Return noise, answer, and the unknowns with the prior's bodies."""
    noise, answer = asked.solved(asked.evidence.kinds)
    own = Problem.of(asked.unknowns, noise.information, asked.prior)
    return noise, answer, fitted_extras(own)


def _with_gains(asked: _Asked) -> tuple[NoiseLevels, Identification, Array]:
    """Return the same where gains are unknown."""
    unknowns = asked.unknowns
    gains = gain_columns(unknowns)
    before = bodies_stay(asked.evidence, asked.prior)
    # Steps keep the sign of a gain, and bodies that are far off may turn it in the guess.
    guesses = [before.copy()]
    guesses[0][gains] = np.abs(before[gains])
    if (before[gains] < 0.0).any():
        guesses.append(before)
    found = [_from_guess(asked, guess) for guess in guesses]
    x, moving, noise, answer = min(found, key=lambda one: _left(asked.evidence, one[0]))
    notes = answer.notes
    if moving.any():
        joints = ', '.join(np.array(geared(unknowns))[moving])
        notes = (*notes, f'the search for the gains did not end: {joints}')
    return noise, replace(answer, x=x, notes=notes), before


def _from_guess(
    asked: _Asked, guess: Array
) -> tuple[Array, NDArray[np.bool_], NoiseLevels, Identification]:
    """Return what fits best, gains that do not stay, noise and answer, from a guess on."""
    kinds, unknowns = asked.evidence.kinds, asked.unknowns
    found: list[tuple[NoiseLevels, Identification]] = []

    def all_fitted(x: Array) -> Array:
        found[:] = [asked.solved(linearised(kinds, x, unknowns), x)]
        return found[0][1].x

    x, moving = settled(all_fitted, guess, gain_columns(unknowns))
    return x, moving, *found[0]


def _left(evidence: Evidence, x: Array) -> float:
    """Return how much of what was measured unknowns leave: the sum of squared shares."""
    left, signals = evidence.residuals(x), evidence.signals(x)
    return sum((left[kind] / signals[kind]) ** 2 for kind in left if signals[kind] > 0.0)


def bodies_stay(evidence: Evidence, prior: Array) -> Array:
    """
    Return the unknowns that fit best while the bodies are the prior's, where gains are unknown.

    prior (n_links, 10); returns (n,).
    """
    kinds, unknowns = evidence.kinds, evidence.block.unknowns

    def best(rows: Mapping[str, Information]) -> Array:
        together = weighted_sum(rows.values(), [1.0] * len(rows))
        return fitted_extras(Problem.of(unknowns, together, prior))

    return settled(
        lambda x: best(linearised(kinds, x, unknowns)), best(kinds), gain_columns(unknowns)
    )[0]


def _mean_square(evidence: Evidence, x: Array, noise: NoiseLevels) -> float:
    """Return the mean squared residual of all rows in units of their noise."""
    squares = [
        evidence.kinds[kind].squared_residual(x) / deviation**2
        for kind, deviation in noise.deviations.items()
    ]
    return sum(squares) / sum(evidence.kinds[kind].count for kind in noise.deviations)


def _trouble(evidence: Evidence, why: str) -> ModelError:
    """Return what to say of a solver that got lost."""
    return ModelError(
        f"numerical trouble in submodel '{evidence.block.submodel.name}': {why}; give it more or "
        'other rows, or choose another method'
    )


def fitted_extras(problem: Problem) -> Array:
    """
    Return the unknowns that fit best while the bodies are the prior's.

    Returns (n,).
    """
    n = problem.unknowns.n_inertial
    x = problem.prior_point()
    rest = problem.target - problem.factor[:, :n] @ x[:n]
    x[n:] = np.linalg.lstsq(problem.factor[:, n:], rest, rcond=None)[0]
    return x
