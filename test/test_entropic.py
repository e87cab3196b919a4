# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The entropic prior: its divergence and derivatives, the minimum, bounds, and how sure it is.

Not covered: what all methods have in common, in test_solver_contract.py; published answers, in
test_human_lee.py; times.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identification_problems import bodies, humanoid_case

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Bounds, Problem
from inertial_estimation.identification.result import Grade
from inertial_estimation.identification.solvers.constraints import LinearBounds
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.deviations import Curvature
from inertial_estimation.identification.solvers.divergence import (
    entropic_divergence,
    entropic_gradient,
    entropic_hessian,
    entropic_roots,
    parameters_of,
    pullback_distance,
    symmetric,
    whitening,
)
from inertial_estimation.identification.solvers.entropic import solve_entropic
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.inertia import pseudo_inertia

STEP = 1e-6
"""Of differences, whose error is its square over the round-off: 1e-9."""
NOISE = 20.0
"""A fifth of the largest wrench: enough to push bodies to where none can exist."""


@pytest.fixture
def case(rng):
    """Return rows of a small humanoid, with a prior that is 10 % off."""
    return humanoid_case(rng)


@pytest.fixture
def noisy(case, rng):
    """Return its problem with much noise."""
    return case.problem(NOISE * rng.normal(size=len(case.y)))


def objective(problem, x, weight):
    """Return what is minimised, by its definition."""
    parameters = problem.unknowns.split(x)[0]
    distance = entropic_divergence(parameters, problem.prior).sum()
    return 0.5 * problem.mean_square(x) + weight * distance


def test_pseudo_inertia_and_back(rng):
    parameters = rng.normal(size=(5, 10))
    np.testing.assert_allclose(parameters_of(pseudo_inertia(parameters)), parameters, atol=1e-14)


def test_divergence_is_that_of_log_determinants(case):
    J, J0 = pseudo_inertia(case.parameters), pseudo_inertia(case.prior)
    ratio = np.linalg.solve(J0, J)
    expected = np.trace(ratio, axis1=1, axis2=2) - np.log(np.linalg.det(ratio)) - 4.0
    np.testing.assert_allclose(entropic_divergence(case.parameters, case.prior), expected)


def test_divergence_near_the_prior_is_the_pullback_distance(case, rng):
    moves = 1e-5 * rng.normal(size=(len(case.prior), 10, 1))
    near = case.prior + (whitening(case.prior) @ moves)[..., 0]
    expected = 0.5 * np.sum(moves**2, axis=(1, 2))
    np.testing.assert_allclose(pullback_distance(near, case.prior), expected, rtol=1e-7)
    np.testing.assert_allclose(entropic_divergence(near, case.prior), expected, rtol=1e-4)


def test_derivatives_are_those_of_differences(rng):
    z = 0.2 * rng.normal(size=(1, 10))
    gradient, hessian = entropic_gradient(symmetric(z)), entropic_hessian(symmetric(z))
    ahead, behind = (symmetric(z + sign * STEP * np.eye(10)) for sign in (1.0, -1.0))

    def value(S):
        return np.trace(S, axis1=1, axis2=2) - np.linalg.slogdet(np.eye(4) + S)[1]

    np.testing.assert_allclose(gradient[0], (value(ahead) - value(behind)) / (2 * STEP), atol=1e-8)
    slopes = (entropic_gradient(ahead) - entropic_gradient(behind)) / (2 * STEP)
    np.testing.assert_allclose(hessian[0], slopes, atol=1e-8)
    roots = entropic_roots(symmetric(z))[0]
    np.testing.assert_allclose(roots.T @ roots, hessian[0], atol=1e-12)


@pytest.mark.parametrize('weight', [1e-8, 1e-5, 1e-2, 1.0])
def test_the_answer_is_the_minimum(noisy, rng, weight):
    result = solve_entropic(noisy, weight=weight)
    assert result.grade is Grade.OPTIMAL and result.consistent
    least = objective(noisy, result.x, weight)
    toward = noisy.prior_point() - result.x
    # Along a line through the minimum the objective rises on both sides, outside to infinity.
    for direction in (toward, 1e-2 * rng.normal(size=len(toward)) * np.abs(result.x)):
        for step in (-1e-2, 1e-2):
            assert objective(noisy, result.x + step * direction, weight) > least


def test_weak_priors_take_few_iterations(noisy):
    # Newton's method on the logarithm itself takes more than a hundred.
    assert solve_entropic(noisy, weight=1e-2).iterations < 20
    assert solve_entropic(noisy, weight=1e-8).iterations < 40


def test_a_weak_prior_leads_to_the_edge_of_what_can_be(noisy):
    margins = [solve_entropic(noisy, weight=w).margins.min() for w in (1.0, 1e-2, 1e-4, 1e-6)]
    assert (np.diff(margins) < 0.0).all() and min(margins) > 0.0


def test_starting_from_the_answer_takes_no_steps(noisy):
    first = solve_entropic(noisy)
    again = solve_entropic(noisy, start=first.x)
    assert again.iterations <= 1
    np.testing.assert_allclose(again.x, first.x, rtol=1e-6, atol=1e-8)


def test_starting_from_an_earlier_answer_leads_to_the_same(case, rng):
    noise = rng.normal(size=len(case.y))
    first = solve_entropic(replace(case, Y=case.Y[:-60], y=case.y[:-60]).problem(noise[:-60]))
    cold = solve_entropic(case.problem(noise))
    warm = solve_entropic(case.problem(noise), start=first.x)
    assert warm.iterations <= cold.iterations
    np.testing.assert_allclose(warm.x, cold.x, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize('thin', [1e-8, 1e-12, 1e-14])
def test_a_start_at_the_edge_of_what_can_be_leads_to_the_same(noisy, thin):
    # To round-off the inverse of such a body, which multipliers start from, is no body.
    start = noisy.prior_point()
    shares, axes = np.linalg.eigh(pseudo_inertia(start[:10]))
    shares[0] = thin * shares[-1]
    start[:10] = parameters_of(axes @ np.diag(shares) @ axes.T)
    for weight in (1e-2, 1e-6):
        at_edge, cold = (solve_entropic(noisy, weight=weight, start=one) for one in (start, None))
        assert at_edge.grade is cold.grade is Grade.OPTIMAL
        least = objective(noisy, cold.x, weight)
        assert objective(noisy, at_edge.x, weight) == pytest.approx(least, rel=1e-9)


def test_a_start_that_cannot_exist_is_refused(noisy):
    start = noisy.prior_point()
    start[10] = -1.0
    with pytest.raises(ModelError):
        solve_entropic(noisy, start=start)


def test_a_budget_that_runs_out_leaves_consistent_bodies(noisy):
    for budget in range(6):
        result = solve_entropic(noisy, weight=1e-4, max_iterations=budget)
        assert result.grade is Grade.STOPPED
        assert result.iterations == budget and result.consistent


def test_deviations_are_how_far_answers_are_from_the_truth(rng):
    # Truths are drawn around one prior, as far as the divergence takes for one.
    case = humanoid_case(rng, off=0.0)
    errors, stated = [], []
    for _ in range(150):
        z = 0.15 * rng.normal(size=(len(case.prior), 10, 1))
        moved = case.prior + (whitening(case.prior) @ z)[..., 0]
        truth = case.unknowns.join(moved, np.array([3.0, -0.4]))
        y = case.Y @ truth + rng.normal(size=len(case.y))
        problem = Problem.of(case.unknowns, Information.of(case.Y, y), case.prior)
        result = solve_entropic(problem)
        errors.append(result.x - truth)
        stated.append(result.deviations)
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.mean(stated, axis=0)
    # Never surer than right, by more than the draws tell; what rows determine is not blurred.
    assert ratio.max() < 1.2
    assert ratio[-2:].min() > 0.8


def test_bounds_that_do_not_bind_change_nothing(noisy):
    free = solve_entropic(noisy)
    wide = np.array([[0.0, 1e3]] * len(noisy.prior))
    bounded = solve_entropic(replace(noisy, bounds=Bounds(mass=wide, total_mass=wide[0])))
    np.testing.assert_array_equal(bounded.x, free.x)


def bounds_that_bind(free):
    """Return bounds of every kind that a free answer does not keep."""
    parameters = free.parameters
    n = len(parameters)
    mass = np.tile([-np.inf, np.inf], (n, 1))
    mass[2, 1] = 0.8 * parameters[2, 0]
    center = np.empty((n, 2, 3))
    center[:, 0], center[:, 1] = -np.inf, np.inf
    com = parameters[:, 1:4] / parameters[:, :1]
    center[1, 0, 0] = com[1, 0] + 0.01
    center[3, 1, 2] = com[3, 2] - 0.01
    ellipsoids = np.full((n, 4, 4), np.nan)
    J = pseudo_inertia(parameters[4])
    ellipsoids[4] = np.diag([-1.0, -1.0, -1.0, 0.9 * np.trace(J[:3, :3]) / J[3, 3]])
    total = np.array([1.02 * parameters[:, 0].sum(), np.inf])
    extras = np.array([[-np.inf, free.x[-2] - 0.1], [-np.inf, np.inf]])
    return Bounds(mass, center, ellipsoids, total, extras)


def test_bounds_that_bind_are_kept_and_cost_least(noisy, rng):
    free = solve_entropic(noisy)
    problem = replace(noisy, bounds=bounds_that_bind(free))
    bounds = LinearBounds.of(problem)
    assert (bounds.slack(free.x) < 0.0).sum() == len(bounds.names) == 6
    result = solve_entropic(problem)
    assert result.grade is Grade.OPTIMAL and result.consistent
    slack = bounds.slack(result.x)
    assert slack.min() > -1e-7
    assert np.count_nonzero(slack < 1e-4) >= 3
    least = objective(problem, result.x, 1e-2)
    toward_prior = problem.prior_point() - result.x
    for _ in range(200):
        moved = result.x + 0.02 * rng.normal() * toward_prior
        moved = moved + 1e-3 * rng.normal(size=len(moved)) * np.abs(moved)
        if bounds.slack(moved).min() >= 0.0:
            assert objective(problem, moved, 1e-2) > least - 1e-6


def test_bounds_that_no_body_keeps_are_named(noisy):
    n = len(noisy.prior)
    mass = np.tile([0.0, 1.0], (n, 1))
    bounds = Bounds(mass=mass, total_mass=np.array([n + 1.0, np.inf]))
    with pytest.raises(ModelError) as caught:
        solve_entropic(replace(noisy, bounds=bounds))
    assert 'least mass' not in str(caught.value)


def test_the_curvature_comes_from_rows_where_their_product_is_too_inexact(case, monkeypatch):
    from scipy.linalg import lapack

    coordinates = Coordinates.of(case.problem())
    gram = coordinates.factor.T @ coordinates.factor
    shapes = symmetric(0.1 * np.ones((len(case.prior), 10)))
    usual = Curvature.of(coordinates, gram, shapes, 1e-2).root
    monkeypatch.setattr(lapack, 'dpotrf', lambda H, **options: (H, 1))
    other = Curvature.of(coordinates, gram, shapes, 1e-2).root
    H = usual.T @ usual
    np.testing.assert_allclose(other.T @ other, H, atol=1e-10 * np.abs(H).max())


def far_body(seed):
    """Return a link that rows tell in full, with next to no noise, and a prior of another size."""
    rng = np.random.default_rng(seed)
    truth, prior = bodies(rng, 1), bodies(rng, 1)
    rows = rng.normal(size=(20, 10)) * 10.0 ** rng.uniform(-2, 2, 10)
    noise = 1e-4 * np.std(rows @ truth[0])
    y = rows @ truth[0] / noise + rng.normal(size=20)
    return Problem(Unknowns(('link',)), rows / noise, y, 0.0, 20.0, prior), truth[0]


@pytest.mark.parametrize('seed', [19, 36, 58, 100, 194, 243])
def test_a_prior_that_is_far_off_keeps_nothing_at_the_edge_of_the_cone(seed):
    # The mean square of the prior is 1e6 to 1e9: products of its weight are too small.
    problem, truth = far_body(seed)
    found = solve_entropic(problem, weight=1e-7)
    assert found.grade is Grade.OPTIMAL
    # The truth fits no better; a hundredth is for what the prior costs.
    assert found.mean_square <= 1.01 * problem.mean_square(truth)
