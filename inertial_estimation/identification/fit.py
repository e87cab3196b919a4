# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A whole robot from its evidence: block by block, rows weighted by their noise.

Each submodel is a problem of its own, but for the offsets of the sensors between two of them: on
these they have to agree. Its kinds of rows have noise of their own, which is found first; then the
chosen method solves. Links of submodels without rows stay as they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError, ModelError, NameNotFound
from inertial_estimation.identification.information.evidence import Evidence
from inertial_estimation.identification.information.information import Information
from inertial_estimation.identification.information.reweighting import NoiseLevels, noise_levels
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.prior_models import prior_of_method
from inertial_estimation.identification.priors import widened
from inertial_estimation.identification.problem import Bounds, Problem
from inertial_estimation.identification.result import Identification
from inertial_estimation.identification.rows.friction_scales import friction_scales
from inertial_estimation.identification.shared_offsets import (
    Submodel,
    disagreement,
    told_by_others,
)
from inertial_estimation.identification.solvers.coordinates import require_weight
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.identification.solvers.quadratic_priors import prior_rows
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.robot import Robot

Array = NDArray[np.float64]

NO_BOUNDS = Bounds()
WEIGHT = 1e-2
"""Of the prior, where none is given, as in all solvers."""
NOISE_PRIOR = 1.0
"""
Most that the prior weighs where the noise is told, times the rows: bodies are then of the size of
the prior's. With all its weight a wrong prior would pass for noise of a long log.
"""
ROUNDS = 6
"""Of fits at most, until submodels agree on the offsets of the sensors between them."""
AGREED = 1e-7
"""Difference of two values of an offset, over the largest one, below which they are one."""
WORSE = 100.0
"""Mean square over that of the prior's bodies which no method can mean."""


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

    @property
    def name(self) -> str:
        """Name of the submodel."""
        return self.evidence.block.submodel.name


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

    @property
    def parameters(self) -> Array:
        """Inertial parameters of all links, (n_links, 10); the robot's where there are no rows."""
        found = self.robot.parameters.copy()
        for block in self.blocks:
            found[list(block.evidence.block.submodel.links)] = block.answer.parameters
        return found

    @property
    def consistent(self) -> bool:
        """Whether all answers are bodies that could exist."""
        return all(block.answer.consistent for block in self.blocks)


def fit(
    robot: Robot,
    evidence: Sequence[Evidence],
    method: str = 'entropic',
    options: Mapping[str, Any] | None = None,
    bounds: Mapping[str, Bounds] | None = None,
    own_options: Mapping[str, Mapping[str, Any]] | None = None,
) -> RobotFit:
    """
    Identify what the links of a robot weigh.

    Parameters
    ----------
    robot : Robot
        Whose parameters are the prior.
    evidence : sequence of Evidence
        Of its submodels.
    method : str
        One of `SOLVERS`.
    options : mapping, optional
        For the solver.
    bounds : mapping of str to Bounds, optional
        By the name of the submodel.
    own_options : mapping of str to mapping, optional
        For the solver beside `options`, by the name of the submodel.

    Returns
    -------
    RobotFit

    Raises
    ------
    NameNotFound
        If there is no such method.
    LogError
        If no submodel has a row.
    ModelError
        If the prior of a link is impossible, or an answer is much worse than it.

    """
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
        asked.append(_Asked(one, prior[list(one.block.submodel.links)], limits, method, chosen))
    if not asked:
        raise LogError('the logs give no row: see what was left out, and why')
    with one_thread():
        blocks = [one.fit(one.noise(), None) for one in asked]
        blocks = _agreed(asked, blocks)
    return RobotFit(robot, prior, changed, tuple(blocks))


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is asked of one submodel."""

    evidence: Evidence
    prior: Array
    """Of its links, shape (n_links, 10)."""
    bounds: Bounds
    method: str
    options: Mapping[str, Any]

    @property
    def unknowns(self) -> Unknowns:
        """Of the submodel."""
        return self.evidence.block.unknowns

    @property
    def weight(self) -> float | None:
        """Of the prior against the mean of the rows; None: it has none."""
        if not SOLVERS[self.method].weighted:
            return None
        weight: float | None = self.options.get('weight', WEIGHT)
        if weight is not None:
            require_weight(weight)
        return weight

    @property
    def scales(self) -> Array | None:
        """How far unknowns beside those of links may well be from zero, where that is used."""
        return friction_scales(self.evidence) if SOLVERS[self.method].weighted else None

    def noise(self) -> NoiseLevels:
        """Return the noise of each kind of row."""
        rows = None
        if self.weight is not None:
            count = sum(part.count for part in self.evidence.kinds.values())
            rows = prior_rows(self.unknowns, self.prior, min(self.weight * count, NOISE_PRIOR))
        return noise_levels(self.evidence.kinds, prior=rows)

    def fit(self, noise: NoiseLevels, others: Information | None) -> BlockFit:
        """Return what fits best, with what other submodels say."""
        information = noise.information if others is None else noise.information.merge(others)
        own, rows = self._problem(noise.information), self._problem(information)
        try:
            answer = SOLVERS[self.method](rows, **self.options)
        except np.linalg.LinAlgError as error:
            raise _trouble(self.evidence, str(error)) from error
        before, left = fitted_extras(own), own.mean_square(answer.x)
        # Bounds and shapes may keep an answer away from a prior that fits better.
        limited = self.bounds is not NO_BOUNDS or 'grids' in self.options
        if not limited and not left < WORSE * max(1.0, own.mean_square(before)):
            raise _trouble(
                self.evidence, 'the answer fits the rows much worse than the prior does'
            )
        answer = replace(answer, mean_square=left, notes=(*noise.notes, *answer.notes))
        return BlockFit(self.evidence, noise, information, answer, before)

    def _problem(self, rows: Information) -> Problem:
        """Return what is to be solved."""
        return Problem.of(
            self.unknowns, rows, self.prior, bounds=self.bounds, extra_scales=self.scales
        )

    def submodel(self, found: BlockFit) -> Submodel:
        """Return its rows and its prior, near what was found."""
        rows, model = found.noise.information, None
        if self.weight is not None:
            model = prior_of_method(
                SOLVERS[self.method].distance, self.options, self.unknowns, self.prior,
                found.answer.parameters, self.scales, self.weight * rows.count,
            )  # fmt: skip
        return Submodel(self.unknowns, rows, model)


def _agreed(asked: Sequence[_Asked], found: list[BlockFit]) -> list[BlockFit]:
    """Return fits of submodels that agree on the offsets that they share."""
    for _ in range(ROUNDS):
        left = disagreement([(one.answer.unknowns, one.answer.x) for one in found])
        if left <= AGREED:
            break
        told = told_by_others([one.submodel(fit) for one, fit in zip(asked, found, strict=True)])
        found = [
            fit if others is None else one.fit(fit.noise, others)
            for one, fit, others in zip(asked, found, told, strict=True)
        ]
    return found


def _trouble(evidence: Evidence, why: str) -> ModelError:
    """Return what to say of a solver that got lost."""
    return ModelError(
        f"numerical trouble in submodel '{evidence.block.submodel.name}': {why}; give it more or "
        'other rows, or choose another method'
    )


def fitted_extras(problem: Problem) -> Array:
    """
    Return the unknowns that fit best while the bodies are the prior's.

    Parameters
    ----------
    problem : Problem
        Rows and prior.

    Returns
    -------
    ndarray, shape (n,)

    """
    n = problem.unknowns.n_inertial
    x = problem.prior_point()
    rest = problem.target - problem.factor[:, :n] @ x[:n]
    x[n:] = np.linalg.lstsq(problem.factor[:, n:], rest, rcond=None)[0]
    return x
