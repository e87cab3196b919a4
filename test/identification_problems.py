# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Problems of identification with a known truth, from regressors of the small robots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from robots import nested_humanoid_urdf, random_sample

from inertial_estimation import Information, Problem, Robot, SampleBatch, submodel_regressors
from inertial_estimation.identification.solvers.answer import Method
from inertial_estimation.identification.solvers.divergence import (
    entropic_divergence,
    parameters_of,
    whitening,
)
from inertial_estimation.identification.unknowns import Extra, Term, Unknowns
from inertial_estimation.model.inertia import pseudo_inertia

Array = np.ndarray


def pullback_distance(parameters: Array, prior: Array) -> Array:
    """Return half the squared distance of each link in the metric at the prior."""
    change = np.linalg.solve(pseudo_inertia(prior), pseudo_inertia(parameters - prior))
    return 0.5 * np.trace(change @ change, axis1=-2, axis2=-1)


DISTANCES = {
    'none': lambda parameters, prior: np.zeros(len(prior)),
    'euclidean': lambda parameters, prior: 0.5 * np.sum((parameters - prior) ** 2, axis=-1),
    'pullback': pullback_distance,
    'entropic': entropic_divergence,
}
"""Distance of each link by the name of that which a method minimises."""
CONSISTENT = {'entropic', 'semidefinite', 'mass_points', 'manifold'}
"""Methods whose every answer is fully physically consistent."""


def objective(method: Method, problem: Problem, x: Array, weight: float) -> float:
    """Return what a method minimises."""
    distances = DISTANCES[method.distance.name](problem.unknowns.split(x)[0], problem.prior)
    return 0.5 * problem.mean_square(x) + weight * distances.sum()


@dataclass(frozen=True, eq=False)
class Case:
    """Equations whose truth is known, and a prior near it."""

    unknowns: Unknowns
    Y: Array
    y: Array
    truth: Array
    prior: Array

    @property
    def parameters(self) -> Array:
        """True inertial parameters, shape (n_links, 10)."""
        return self.unknowns.split(self.truth)[0]

    def problem(self, noise: Array | float = 0.0) -> Problem:
        """Return the problem of all equations, with noise on their right-hand sides."""
        return Problem.of(self.unknowns, Information.of(self.Y, self.y + noise), self.prior)


def humanoid_case(rng: np.random.Generator, instants: int = 60, off: float = 0.1) -> Case:
    """
    Return wrenches of the largest submodel of the humanoid and of an FT sensor's offset.

    The prior is the truth, moved by ``off`` in each whitened coordinate.
    """
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    submodel = max(robot.submodels, key=lambda one: len(one.links))
    samples = SampleBatch.stack([random_sample(robot, rng) for _ in range(instants)])
    (rows,) = submodel_regressors(robot, samples, [submodel])
    names = tuple(robot.links[k].name for k in submodel.links)
    offsets = np.zeros((instants, 6, 2))
    offsets[:, 0, 0] = offsets[:, 5, 1] = 1.0
    Y = np.concatenate([rows.wrench, offsets], axis=2).reshape(6 * instants, -1)
    parameters = robot.parameters[list(submodel.links)]
    unknowns = Unknowns(names, (Extra('sensor', Term.FORCE_X), Extra('sensor', Term.MOMENT_Z)))
    truth = unknowns.join(parameters, np.array([3.0, -0.4]))
    moves = off * rng.normal(size=(len(names), 10, 1))
    prior = parameters + (whitening(parameters) @ moves)[..., 0]
    return Case(unknowns, Y, Y @ truth, truth, prior)


def random_bodies(rng: np.random.Generator, n: int) -> Array:
    """Return parameters of masses and sizes over two orders of magnitude, shape (n, 10)."""
    roots = rng.normal(size=(n, 4, 4)) * 10.0 ** rng.uniform(-1.5, -0.5, (n, 4, 1))
    roots[:, 3] /= np.linalg.norm(roots[:, 3], axis=1)[:, None]
    roots *= 10.0 ** rng.uniform(-0.7, 0.5, (n, 1, 1))
    return parameters_of(roots @ np.swapaxes(roots, 1, 2))
