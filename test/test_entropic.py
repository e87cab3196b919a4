# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The entropic prior: its divergence, the minimum, bounds, and deviations.

Not covered: what all methods have in common, in test_solver_contract.py; published answers, in
test_human_lee.py; times.
"""

from dataclasses import replace

import numpy as np
import pytest
from identification_problems import humanoid_case, random_bodies

from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Bounds, Grade, Problem
from inertial_estimation.identification.solvers.cone_newton import ConeNewton
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.divergence import (
    entropic_divergence,
    parameters_of,
    pullback_distance,
    whitening,
)
from inertial_estimation.identification.solvers.entropic import solve_entropic
from inertial_estimation.identification.solvers.linear_bounds import LinearBounds
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.inertia import pseudo_inertia

NOISE = 20.0  # A fifth of the largest wrench: enough to push links to the edge of the cone
STEP, DIFFERENCED = 1e-4, 1e-6  # round-off over the step, and its square
KEPT = 1e-6  # share of the bounds' numbers: what iterations leave


@pytest.fixture
def case(rng):
    return humanoid_case(rng)


@pytest.fixture
def noisy(case, rng):
    return case.problem(NOISE * rng.normal(size=len(case.y)))


def objective(problem, x, weight):
    parameters = problem.unknowns.split(x)[0]
    distance = entropic_divergence(parameters, problem.prior).sum()
    return 0.5 * problem.mean_square(x) + weight * distance


def test_divergence_is_that_of_log_determinants(case, rng):
    J, J0 = pseudo_inertia(case.parameters), pseudo_inertia(case.prior)
    ratio = np.linalg.solve(J0, J)
    expected = np.trace(ratio, axis1=1, axis2=2) - np.log(np.linalg.det(ratio)) - 4.0
    np.testing.assert_allclose(entropic_divergence(case.parameters, case.prior), expected)
    moves = 1e-5 * rng.normal(size=(len(case.prior), 10, 1))
    near = case.prior + (whitening(case.prior) @ moves)[..., 0]
    expected = 0.5 * np.sum(moves**2, axis=(1, 2))
    np.testing.assert_allclose(pullback_distance(near, case.prior), expected, rtol=1e-7)
    np.testing.assert_allclose(entropic_divergence(near, case.prior), expected, rtol=1e-4)


def test_slopes_of_the_objective_are_slopes(noisy, rng):
    none = np.zeros((0, len(noisy.factor))), np.zeros(0)
    newton = ConeNewton(Coordinates.of(noisy), 10.0, none, small=1.0)
    u, step = 0.1 * rng.normal(size=(2, len(noisy.factor)))
    values = [newton.objective(u + share * step)[0] for share in (STEP, -STEP)]
    slope = newton.objective(u)[1] @ step
    assert (values[0] - values[1]) / (2 * STEP) == pytest.approx(slope, rel=DIFFERENCED)


@pytest.mark.parametrize(('weight', 'steps'), [(1e-8, 40), (1e-5, 40), (1e-2, 20), (1.0, 20)])
def test_answer_takes_few_steps(noisy, weight, steps):
    """Newton's method on the logarithm itself takes more than a hundred."""
    result = solve_entropic(noisy, weight=weight)
    assert result.grade is Grade.OPTIMAL and result.consistent and result.iterations < steps


def test_start_from_an_earlier_answer_leads_to_the_same_sooner(case, rng):
    noise = rng.normal(size=len(case.y))
    first = solve_entropic(replace(case, Y=case.Y[:-60], y=case.y[:-60]).problem(noise[:-60]))
    cold = solve_entropic(case.problem(noise))
    warm = solve_entropic(case.problem(noise), start=first.x)
    assert warm.iterations <= cold.iterations
    np.testing.assert_allclose(warm.x, cold.x, rtol=1e-6, atol=1e-8)
    assert solve_entropic(case.problem(noise), start=cold.x).iterations <= 1


def test_start_at_the_edge_of_the_cone_leads_to_the_same(noisy):
    """To round-off the inverse of such a matrix, of which multipliers start, is not positive."""
    start = noisy.prior_point()
    shares, axes = np.linalg.eigh(pseudo_inertia(start[:10]))
    shares[0] = 1e-14 * shares[-1]
    start[:10] = parameters_of(axes @ np.diag(shares) @ axes.T)
    at_edge, cold = (solve_entropic(noisy, weight=1e-6, start=one) for one in (start, None))
    assert at_edge.grade is cold.grade is Grade.OPTIMAL
    least = objective(noisy, cold.x, 1e-6)
    assert objective(noisy, at_edge.x, 1e-6) == pytest.approx(least, rel=1e-9)


def test_deviations_are_errors_of_random_truths(rng):
    """Truths are drawn around one prior, as far as the divergence takes for one."""
    case = humanoid_case(rng, off=0.0)
    errors, stated = [], []
    for _ in range(150):
        z = 0.15 * rng.normal(size=(len(case.prior), 10, 1))
        moved = case.prior + (whitening(case.prior) @ z)[..., 0]
        truth = case.unknowns.join(moved, np.array([3.0, -0.4]))
        y = case.Y @ truth + rng.normal(size=len(case.y))
        result = solve_entropic(Problem.of(case.unknowns, Information.of(case.Y, y), case.prior))
        errors.append(result.x - truth)
        stated.append(result.deviations)
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.mean(stated, axis=0)
    # Never surer than right, by more than the draws show; what is determined is not blurred.
    assert ratio.max() < 1.2
    assert ratio[-2:].min() > 0.8


def far_off(seed, links=6):
    """Return a problem whose truth keeps all bounds and whose prior is far away, and the truth."""
    rng = np.random.default_rng(seed)
    truth, prior = random_bodies(rng, links), random_bodies(rng, links)
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
    return Problem(unknowns, rows / noise, y, 0.0, float(len(y)), prior, bounds=bounds), truth


def missed(problem, x):
    """Return by how much the worst bound is missed, over the size of its numbers."""
    bounds = LinearBounds.of(problem)
    sizes = np.abs(bounds.rows) @ np.abs(x) + np.abs(bounds.limits)
    return float((-bounds.slack(x) / sizes).max(initial=0.0))


@pytest.mark.parametrize('seed', [1, 2, 3])
def test_bounds_far_from_the_prior_are_kept(seed):
    """Draws where iterations that head straight for the bounds stay at the edge of the cone."""
    problem, truth = far_off(seed)
    assert missed(problem, truth.reshape(-1)) == 0.0
    found = solve_entropic(problem)
    assert found.grade is Grade.OPTIMAL and found.consistent and found.notes == ()
    assert missed(problem, found.x) < KEPT


@pytest.mark.parametrize('seed', [19, 58, 100, 243])
def test_prior_of_another_size_keeps_no_link_at_the_edge(seed):
    """Ample equations without noise; the mean square of the prior is 1e6 to 1e9."""
    rng = np.random.default_rng(seed)
    truth, prior = random_bodies(rng, 1), random_bodies(rng, 1)
    rows = rng.normal(size=(20, 10)) * 10.0 ** rng.uniform(-2, 2, 10)
    noise = 1e-4 * np.std(rows @ truth[0])
    y = rows @ truth[0] / noise + rng.normal(size=20)
    problem = Problem(Unknowns(('link',)), rows / noise, y, 0.0, 20.0, prior)
    found = solve_entropic(problem, weight=1e-7)
    assert found.grade is Grade.OPTIMAL
    # The truth fits no better; a hundredth is for what the prior costs.
    assert found.mean_square <= 1.01 * problem.mean_square(truth[0])
