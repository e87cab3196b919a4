# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Identification of a whole robot from the equations of its submodels.

Each submodel is a problem of its own but for the FT offsets that it shares. The noise of its kinds
of equations is estimated first; then the chosen method solves. Links of submodels without
equations keep their parameters.

FT offsets are unknowns of both submodels beside a sensor. Each submodel is eliminated onto them,
and what the others determine of its own are further equations of it. Its answer is then that of a
joint fit of all submodels,

    minimise  sum over submodels of  1/2 |R x - rho|^2 + count * weight * distance to the prior

A distance that is not quadratic is developed about the answers, repeatedly until they agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import LogError, ModelError, NameNotFound
from inertial_estimation.identification.drive_gains import (
    geared,
    linearised,
    require_scale,
    settled,
)
from inertial_estimation.identification.evidence import Evidence, friction_scales
from inertial_estimation.identification.information import Information, weighted_sum
from inertial_estimation.identification.matrix_errors import MatrixEquations, matrix_covariances
from inertial_estimation.identification.noise import (
    NoiseLevels,
    UndeterminedNoiseError,
    noise_levels,
)
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.priors import (
    PRIOR_WEIGHT,
    entropic_model,
    prior_model,
    widened,
)
from inertial_estimation.identification.problem import (
    Bounds,
    Identification,
    LinearBounds,
    Problem,
)
from inertial_estimation.identification.row_space import (
    ZERO_COLUMN,
    determined_by_others,
    shared_offsets,
)
from inertial_estimation.identification.solvers.answer import Method, require_weight
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.identification.unknowns import OF_A_BODY, Unknowns, gain_columns
from inertial_estimation.model.robot import Robot

NO_BOUNDS = Bounds()
NOISE_PRIOR_WEIGHT = 1.0
"""
Largest weight of the prior, times the equations, while the noise is estimated: with more a wrong
prior would be taken for noise.
"""
MAX_ROUNDS = 6
"""Of fits until submodels agree on the offsets that they share."""
AGREEMENT = 1e-7
"""Difference of an offset between submodels, over the largest one, up to which they agree."""
BOUND_TOLERANCE = 1e-6
"""Violation of a bound over the size of its terms and their deviations."""
ACTIVE_BOUND = 1e-3
"""Slack of a bound over the same, up to which it holds the answer."""


@dataclass(frozen=True, eq=False)
class BlockFit:
    """Identification of one submodel."""

    evidence: Evidence
    noise: NoiseLevels
    information: Information
    """Its equations in units of their noise, and what others determine of its offsets."""
    answer: Identification
    before: Array
    """Prior parameters with all other unknowns fitted, shape (n_unknowns,)."""
    missed: tuple[str, ...]
    """Bounds that are violated."""
    held: Mapping[str, float]
    """Bounds that hold the answer, and their values; NaN: an ellipsoid."""
    links_seen: list[bool]
    """Links on which some equation depends, as none does on a base at rest."""
    by_matrices: Array | float = 0.0
    """Root of the covariance of the answer by errors of FT matrices, shape (n_unknowns, 36 k)."""

    @property
    def name(self) -> str:
        """Name of the submodel."""
        return self.evidence.block.submodel.name


@dataclass(frozen=True, eq=False)
class RobotFit:
    """Identification of all submodels."""

    robot: Robot
    prior: Array
    """Of all links, strictly consistent, shape (n_links, 10)."""
    widened: tuple[str, ...]
    """Links whose prior is not that of the robot."""
    blocks: tuple[BlockFit, ...]
    """Submodels with equations."""
    undetermined: Mapping[str, str] = field(default_factory=dict)
    """Submodels with too few equations to determine their noise, and why."""

    @property
    def parameters(self) -> Array:
        """Parameters of all links, (n_links, 10); the robot's without equations."""
        found = self.robot.parameters.copy()
        for block in self.blocks:
            found[list(block.evidence.block.submodel.links)] = block.answer.parameters
        return found

    @property
    def described(self) -> Array:
        """The same for a URDF, (n_links, 10): the robot's where an answer is the prior."""
        found = self.parameters
        same = (found == self.prior).all(axis=1)
        found[same] = self.robot.parameters[same]
        return found

    @property
    def payloads(self) -> dict[str, Array]:
        """Parameters of each payload about the origin of its frame, (10,), by name."""
        found = {}
        for block in self.blocks:
            answer = dict(zip(block.answer.unknowns.names, block.answer.x, strict=True))
            for payload in block.evidence.block.payloads:
                names = [f'{payload.name}.{term.value}' for term in OF_A_BODY]
                found[payload.name] = np.array([answer.get(one, payload.mass) for one in names])
        return found

    @property
    def consistent(self) -> bool:
        """True if all answers are strictly fully physically consistent."""
        return all(block.answer.consistent for block in self.blocks)


def fit(
    robot: Robot,
    evidence: Sequence[Evidence],
    method: str = 'entropic',
    options: Mapping[str, Any] | None = None,
    bounds: Mapping[str, Bounds] | None = None,
) -> RobotFit:
    """
    Identify a robot; bounds by submodel.

    The option `weight` is the number of independent equations that the prior is worth, and
    `grids` of `mass_points` are by link.
    """
    if method not in SOLVERS:
        raise NameNotFound('method', method, SOLVERS)
    prior, changed = widened(robot.link_names, robot.parameters)
    tasks = []
    for one in evidence:
        if one.count:
            chosen, block = dict(options or {}), one.block
            if SOLVERS[method].weighted:
                weight = chosen.get('weight', PRIOR_WEIGHT)
                require_weight(weight)
                # Solvers weigh the prior against the mean of the equations.
                chosen['weight'] = weight / one.count
            if 'grids' in chosen:
                chosen['grids'] = tuple(chosen['grids'][name] for name in block.unknowns.links)
            limits = (bounds or {}).get(block.submodel.name, NO_BOUNDS)
            links = list(block.submodel.links)
            tasks.append(_Task(one, prior[links], limits, SOLVERS[method], chosen))
    if not tasks:
        raise LogError('the logs give no equations')
    undetermined: dict[str, str] = {}
    blocks: dict[_Task, BlockFit] = {}
    with one_thread():
        for task in tasks:
            try:
                blocks[task] = task.fit()
            except UndeterminedNoiseError as error:
                undetermined[task.evidence.block.submodel.name] = str(error)
        if not blocks:
            reasons = '; '.join(f'{name}: {why}' for name, why in undetermined.items())
            raise UndeterminedNoiseError(reasons)
        for _ in range(MAX_ROUNDS):
            answers = [one.answer for one in blocks.values()]
            if disagreement([(one.unknowns, one.x) for one in answers]) <= AGREEMENT:
                break
            others = determined_by_others(
                [(task.unknowns, task.with_prior(block)) for task, block in blocks.items()]
            )
            for task, other in zip(blocks, others, strict=True):
                if other is not None:
                    blocks[task] = task.fit(other)
        # Equations with gains are linearised, and so not those of the products.
        if with_offsets := [
            task
            for task in blocks
            if task.evidence.matrices and not len(gain_columns(task.unknowns))
        ]:
            roots = matrix_covariances([one.with_matrices(blocks[one]) for one in with_offsets])
            for task, root in zip(with_offsets, roots, strict=True):
                found = blocks[task]
                both = np.hypot(found.answer.deviations, np.linalg.norm(root, axis=1))
                answer = replace(found.answer, deviations=both)
                blocks[task] = replace(found, answer=answer, by_matrices=root)
    return RobotFit(robot, prior, changed, tuple(blocks.values()), undetermined)


@dataclass(frozen=True, eq=False)
class _Task:
    """Identification of one submodel by a method."""

    evidence: Evidence
    prior: Array
    """Of its links, shape (n_links, 10)."""
    bounds: Bounds
    method: Method
    options: Mapping[str, Any]

    @property
    def unknowns(self) -> Unknowns:
        return self.evidence.block.unknowns

    def fit(self, others: Information | None = None) -> BlockFit:
        """Estimate noise and unknowns; others: equations of its offsets by other submodels."""
        require_scale(self.evidence.kinds, self.unknowns)
        try:
            noise, answer, before = self._search(others)
        except np.linalg.LinAlgError as error:
            name = self.evidence.block.submodel.name
            raise ModelError(f"submodel '{name}': {error}") from error
        own = noise.information
        information = own if others is None else own.merge(others)
        changes = np.linalg.norm(information.R[:, : self.unknowns.n_inertial], axis=0)
        least = ZERO_COLUMN * changes.max(initial=0.0)
        seen = (changes.reshape(len(self.prior), -1) > least).any(axis=1)
        missed, held = (), dict[str, float]()
        if self.bounds is NO_BOUNDS:
            # Links on which no equation depends stay exactly at the prior.
            parameters, extras = self.unknowns.split(answer.x)
            x = self.unknowns.join(np.where(seen[:, None], parameters, self.prior), extras)
            answer = replace(answer, x=x)
        else:
            bounds = LinearBounds.of(self.bounds, self.unknowns)
            # With the deviations a bound at zero has a size too.
            spreads = np.nan_to_num(answer.deviations, nan=0.0, posinf=0.0)
            sizes = np.abs(bounds.rows) @ (np.abs(answer.x) + spreads) + np.abs(bounds.limits)
            slack = bounds.slack(answer.x) / np.maximum(sizes, np.finfo(float).tiny)
            names = np.array(bounds.names)
            missed = tuple(names[slack < -BOUND_TOLERANCE].tolist())
            active = np.abs(slack) <= ACTIVE_BOUND
            held = dict(zip(names[active].tolist(), bounds.values[active].tolist(), strict=True))
        return BlockFit(
            self.evidence, noise, information, answer, before, missed, held, seen.tolist()
        )

    def with_prior(self, found: BlockFit) -> Information:
        """Return its equations, and those of its prior about an answer."""
        rows = found.noise.information
        if not self.method.weighted:
            return rows
        distance = self.method.priors.get(self.options.get('prior', ''), self.method.distance)
        if distance.rows is None:
            return rows
        model = prior_model(
            distance.rows, self.unknowns, self.prior, found.answer.parameters,
            friction_scales(self.evidence, found.answer.x), self.options['weight'] * rows.count,
        )  # fmt: skip
        return rows.merge(model)

    def with_matrices(self, found: BlockFit) -> MatrixEquations:
        """Return its equations with those of errors of matrices, about an answer."""
        products = [
            self.evidence.matrices[kind] / level**2
            for kind, level in found.noise.deviations.items()
        ]
        return MatrixEquations(
            self.unknowns, np.sum(products, axis=0), found.noise.information,
            self.with_prior(found), found.answer.x,
        )  # fmt: skip

    def _search(self, others: Information | None) -> tuple[NoiseLevels, Identification, Array]:
        """Return noise, answer, and the prior parameters with all else fitted."""
        gains, evidence = gain_columns(self.unknowns), self.evidence
        before = guess = self.unknowns.join(self.prior)
        if len(gains):
            before = fitted_at_prior(evidence, self.prior)
            # Steps keep the sign of a gain, which a wrong prior may turn in the guess.
            guess = before.copy()
            guess[gains] = np.abs(guess[gains])
        found = []
        for start in (guess, before) if (before[gains] < 0.0).any() else (guess,):
            last: list[tuple[NoiseLevels, Identification]] = []

            def solve(x: Array, last: list[Any] = last) -> Array:
                last[:] = [self._solved(x, others)]
                return np.asarray(last[0][1].x)

            x, moving = settled(solve, start, gains)
            residuals, signals = evidence.residuals(x), evidence.signals(x)
            left = sum((residuals[k] / signals[k]) ** 2 for k in signals if signals[k] > 0.0)
            found.append((left, x, moving, *last[0]))
        _, x, moving, noise, answer = min(found, key=lambda one: one[0])
        notes = answer.notes
        if moving.any():
            joints = ', '.join(np.array(geared(self.unknowns))[moving])
            notes = (*notes, f'gains still change: {joints}')
        if not len(gains):
            before = Problem.of(self.unknowns, noise.information, self.prior).fitted_extras()
        return noise, replace(answer, x=x, notes=notes), before

    def _solved(self, x: Array, others: Information | None) -> tuple[NoiseLevels, Identification]:
        """Return noise and answer of equations whose gains are linearised about a guess."""
        kinds, prior, scales = linearised(self.evidence.kinds, x, self.unknowns), None, None
        if self.method.weighted:
            scales = friction_scales(self.evidence, x)
            weight = min(self.options['weight'] * self.evidence.count, NOISE_PRIOR_WEIGHT)
            prior = entropic_model(self.unknowns, self.prior, self.prior, scales, weight)
        noise = noise_levels(kinds, prior=prior)
        own, bounds = noise.information, self.bounds
        if bounds.extras is not None:
            # Of gains, equations determine the change from the guess.
            gains, extras = gain_columns(self.unknowns), bounds.extras.copy()
            extras[gains - self.unknowns.n_inertial] -= x[gains, None]
            bounds = replace(bounds, extras=extras)
        problem = Problem.of(
            self.unknowns, own if others is None else own.merge(others), self.prior,
            bounds=bounds, extra_scales=scales,
        )  # fmt: skip
        answer = self.method(problem, **self.options)
        left = own.squared_residual(answer.x) / own.count
        return noise, replace(answer, mean_square=left, notes=(*noise.notes, *answer.notes))


def fitted_at_prior(evidence: Evidence, prior: Array) -> Array:
    """Return the prior parameters with all other unknowns fitted, gains among them, (n,)."""
    kinds, unknowns = evidence.kinds, evidence.block.unknowns

    def best(rows: Mapping[str, Information]) -> Array:
        together = weighted_sum(rows.values(), [1.0] * len(rows))
        return Problem.of(unknowns, together, prior).fitted_extras()

    return settled(
        lambda x: best(linearised(kinds, x, unknowns)), best(kinds), gain_columns(unknowns)
    )[0]


def disagreement(submodels: Sequence[tuple[Unknowns, Array]]) -> float:
    """Return the largest difference of an offset between submodels, over the largest offset."""
    values = [
        [x[unknowns.names.index(name)] for unknowns, x in submodels if name in unknowns.names]
        for name in shared_offsets(submodels)
    ]
    largest = max((float(np.abs(one).max()) for one in values), default=0.0)
    return max((float(np.ptp(one)) for one in values), default=0.0) / max(1.0, largest)
