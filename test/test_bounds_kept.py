# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Bounds that some bodies keep are kept, however far the prior is, and refused with a proof only.

Not covered: what bounds of each kind mean, see `test_entropic` and `test_semidefinite`.
"""

from dataclasses import replace

import numpy as np
import pytest
from identification_problems import bodies

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.problem import Bounds, Problem
from inertial_estimation.identification.result import Grade
from inertial_estimation.identification.solvers import entropic
from inertial_estimation.identification.solvers.constraints import LinearBounds
from inertial_estimation.identification.solvers.entropic import solve_entropic, within_bounds
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.inertia import pseudo_inertia

KEPT = 1e-6
"""Share of the bounds' numbers: what iterations of both methods leave."""
HARD = (1, 2, 3)
"""Draws where iterations that head straight for the bounds stay at the edge of the cone."""


def far_off(seed, links=6):
    """Return a problem whose truth keeps all bounds and whose prior is far away, and the truth."""
    rng = np.random.default_rng(seed)
    truth, prior = bodies(rng, links), bodies(rng, links)
    rows = rng.normal(size=(5 * links, 10 * links)) * 10.0 ** rng.uniform(-2, 2, 10 * links)
    x = truth.reshape(-1)
    masses, centers = truth[:, :1], truth[:, 1:4] / truth[:, :1]
    bounds = Bounds(
        mass=masses * [0.9, 1.1],
        center_of_mass=np.stack([centers - 0.03, centers + 0.02], axis=1),
        total_mass=masses.sum() * np.array([0.95, 1.1]),
    )
    unknowns = Unknowns(tuple(f'link_{k}' for k in range(links)))
    noise = 1e-2 * np.std(rows @ x)
    y = (rows @ x) / noise + rng.normal(size=len(rows))
    return Problem(unknowns, rows / noise, y, 0.0, float(len(y)), prior, bounds=bounds), x


def missed(problem, x):
    """Return by how much the worst bound is missed, over the size of its numbers."""
    bounds = LinearBounds.of(problem)
    sizes = np.abs(bounds.rows) @ np.abs(x) + np.abs(bounds.limits)
    return float((-bounds.slack(x) / sizes).max(initial=0.0))


@pytest.mark.parametrize('seed', HARD)
def test_bounds_that_the_truth_keeps_are_no_contradiction(seed):
    problem, truth = far_off(seed)
    assert missed(problem, truth) == 0.0
    found = solve_entropic(problem)
    assert found.grade is Grade.OPTIMAL and found.consistent
    assert missed(problem, found.x) < KEPT
    assert found.notes == ()


def test_a_budget_of_steps_that_ends_accuses_nobody(monkeypatch):
    problem, _ = far_off(1)
    for budget in (0, 3, 6):
        found = solve_entropic(problem, max_iterations=budget)
        assert found.grade is Grade.STOPPED and found.consistent
        assert missed(problem, found.x) < KEPT
        # Without bounds, with them, and once more from within.
        assert found.iterations <= 3 * budget
    monkeypatch.setattr(entropic, 'within_bounds', lambda problem: None)
    found = solve_entropic(problem, max_iterations=3)
    assert found.grade is Grade.STOPPED and found.consistent
    assert missed(problem, found.x) > KEPT
    (note,) = found.notes
    assert 'before these bounds were kept' in note and 'mass of link_' in note


def test_starts_within_bounds_are_consistent():
    for seed in range(4):
        x = within_bounds(far_off(seed)[0])
        assert np.linalg.eigvalsh(pseudo_inertia(x.reshape(-1, 10))).min() > 0.0


def test_what_contradicts_is_named():
    problem, truth = far_off(1)
    masses = truth.reshape(-1, 10)[:, :1] * [0.9, 1.1]
    heavy = np.array([2.0 * masses[:, 1].sum(), np.inf])
    near = replace(problem, prior=truth.reshape(-1, 10))
    impossible = replace(near, bounds=Bounds(mass=masses, total_mass=heavy))
    with pytest.raises(ModelError) as error:
        solve_entropic(impossible)
    assert 'least mass of' not in str(error.value)
