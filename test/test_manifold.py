# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The manifold of bodies, and what optimization on it finds [M].

What every method must do is in test_solver_contract. Not covered: which of several local optima
without prior is found.
"""

from dataclasses import replace

import numpy as np
import pytest
from identification_problems import humanoid_case
from scipy.spatial.transform import Rotation
from shoulder import (
    PACES,
    arm,
    arm_problem,
)

from inertial_estimation.identification.problem import Bounds, Problem
from inertial_estimation.identification.result import Grade
from inertial_estimation.identification.solvers.entropic import solve_entropic
from inertial_estimation.identification.solvers.least_squares import solve_least_squares
from inertial_estimation.identification.solvers.manifold import solve_manifold
from inertial_estimation.identification.solvers.manifold_objective import ManifoldObjective
from inertial_estimation.identification.solvers.principal_bodies import PrincipalBodies
from inertial_estimation.identification.solvers.semidefinite import PriorTerm, solve_semidefinite
from inertial_estimation.model.inertia import consistency_margin

# Sums of products of parameters.
ROUND_OFF = 1e-12
# Central differences with steps of 1e-5, second ones of 1e-4, of a smooth function.
SLOPE, CURVE = 1e-6, 1e-4
# Two methods, one strictly convex objective: the root of their gaps.
SAME_POINT = 1e-7
# Least squares and the manifold where no constraint is active: round-off of a condition of 1e4.
AGREE = 1e-8
# What noise, and filters of fast paths, leave of M's experiment [kg, kg m, kg m^2].
TRUE = 3e-3
# Bodies just inside the cone, against its edge.
EDGE = 1e-3
NOISE = 20.0


def some_bodies(rng, n=4) -> PrincipalBodies:
    return PrincipalBodies(
        rng.uniform(0.1, 3.0, n),
        rng.normal(0.0, 0.2, (n, 3)),
        Rotation.random(n, random_state=1).as_matrix(),
        rng.uniform(0.001, 0.02, (n, 3)),
    )


def test_bodies_go_there_and_back(rng):
    bodies = some_bodies(rng)
    found = PrincipalBodies.of(bodies.parameters)
    np.testing.assert_allclose(found.parameters, bodies.parameters, atol=ROUND_OFF)
    np.testing.assert_allclose(found.mass, bodies.mass, atol=ROUND_OFF)
    np.testing.assert_allclose(found.moments, np.sort(bodies.moments), atol=ROUND_OFF)
    np.testing.assert_allclose(np.linalg.det(found.axes), 1.0, atol=ROUND_OFF)
    assert (consistency_margin(bodies.parameters) > 0).all()


def test_the_jacobian_is_the_derivative(rng):
    bodies = some_bodies(rng)
    free = np.full((4, 7), np.inf)
    for k in range(10):
        step = np.zeros((4, 10))
        step[:, k] = 1e-6
        ahead, behind = (bodies.moved(s * step, -free, free).parameters for s in (1, -1))
        np.testing.assert_allclose(bodies.jacobian[:, :, k], (ahead - behind) / 2e-6, atol=1e-8)


@pytest.mark.parametrize('weight', [0.0, 0.1])
def test_slopes_are_derivatives(rng, weight):
    case = humanoid_case(rng)
    problem = replace(
        case.problem(NOISE * rng.normal(size=len(case.y))), extra_scales=np.array([2.0, np.inf])
    )
    objective = ManifoldObjective.of(problem, weight)
    n = len(problem.unknowns)
    straight = np.ones(len(problem.prior), dtype=bool)
    point = objective.moved(objective.start(), 0.1 * rng.normal(size=n), straight)
    slope = objective.slope(point)
    assert slope.free.all() and slope.straight(len(problem.prior)).all()
    for _ in range(5):
        step = rng.normal(size=n)
        near = [
            objective.value(objective.moved(point, s * 1e-5 * step, straight)) for s in (-1, 1)
        ]
        far = [objective.value(objective.moved(point, s * 1e-4 * step, straight)) for s in (-1, 1)]
        assert slope.gradient @ step == pytest.approx((near[1] - near[0]) / 2e-5, rel=SLOPE)
        second = (far[0] + far[1] - 2 * objective.value(point)) / 1e-8
        assert step @ slope.hessian @ step == pytest.approx(second, rel=CURVE)


def test_with_a_prior_it_finds_what_the_convex_method_finds(rng):
    case = humanoid_case(rng)
    problem = case.problem(NOISE * rng.normal(size=len(case.y)))
    found, expected = solve_manifold(problem), solve_entropic(problem)
    assert found.grade is Grade.OPTIMAL
    np.testing.assert_allclose(found.x, expected.x, rtol=SAME_POINT, atol=SAME_POINT)
    np.testing.assert_allclose(found.deviations, expected.deviations, rtol=10 * SAME_POINT)
    silent = solve_manifold(problem, with_deviations=False)
    assert np.isnan(silent.deviations).all()


@pytest.mark.parametrize('weight', [1e-2, None])
def test_every_iterate_can_be_used(rng, weight):
    case = humanoid_case(rng)
    problem = case.problem(NOISE * rng.normal(size=len(case.y)))
    values = []
    for budget in range(8):
        result = solve_manifold(problem, weight=weight, max_iterations=budget)
        assert result.consistent
        assert result.iterations <= budget
        values.append(ManifoldObjective.of(problem, weight or 0.0).value(_point(problem, result)))
    assert (np.diff(values) <= 0.0).all()
    assert values[3] < values[0]
    assert solve_manifold(problem, weight=weight, max_iterations=1).grade is Grade.STOPPED


def test_a_body_at_the_edge_has_deviations(rng):
    """Noise far beyond the signal, against a prior that weighs next to nothing."""
    case = humanoid_case(rng, instants=20)
    problem = case.problem(3 * NOISE * rng.normal(size=len(case.y)))
    for weight in (1e-2, 1e-8):
        result = solve_manifold(problem, weight=weight)
        assert result.consistent
        assert (result.deviations > 0.0).all() and np.isfinite(result.deviations).all()


def test_without_prior_noise_that_asks_for_impossible_bodies_comes_to_an_end(rng):
    """The search does not crawl along the boundary, and what it finds is as good as the cone."""
    problem = humanoid_case(rng).problem(NOISE * rng.normal(size=360))
    found = solve_manifold(problem, weight=None)
    expected = solve_semidefinite(problem, prior=PriorTerm.NONE)
    assert found.grade is Grade.OPTIMAL
    assert found.mean_square == pytest.approx(expected.mean_square, rel=EDGE)


@pytest.mark.parametrize('pace', PACES[:2])
def test_slow_paths_need_the_manifold(pace):
    problem = arm_problem(pace)
    plain, bodies = solve_least_squares(problem), solve_manifold(problem, weight=None)
    assert not plain.consistent
    assert bodies.consistent and bodies.grade is Grade.OPTIMAL
    assert bodies.mean_square < 1.01 * plain.mean_square


@pytest.mark.parametrize('pace', PACES[2:])
def test_on_fast_paths_both_agree(pace):
    problem, truth = arm_problem(pace), arm()
    plain, bodies = solve_least_squares(problem), solve_manifold(problem, weight=None)
    assert plain.consistent and bodies.consistent
    assert (np.abs(bodies.x - plain.x) <= AGREE * np.abs(truth).max()).all()
    np.testing.assert_allclose(bodies.parameters[0], truth, atol=TRUE)


def test_bounds_are_met(rng):
    case = humanoid_case(rng)
    noisy = case.problem(NOISE * rng.normal(size=len(case.y)))
    free = solve_manifold(noisy).parameters
    mass = np.tile([-np.inf, np.inf], (5, 1))
    mass[1, 1] = free[1, 0] - 0.05
    box = np.tile([[-np.inf], [np.inf]], (5, 1, 3)).reshape(5, 2, 3)
    box[2, 0, 0] = free[2, 1] / free[2, 0] + 0.01
    extras = np.array([[-np.inf, np.inf], [0.1, 0.2]])
    bounds = Bounds(mass=mass, center_of_mass=box, extras=extras)
    result = solve_manifold(replace(noisy, bounds=bounds))
    assert result.grade is Grade.OPTIMAL and result.consistent
    assert result.parameters[1, 0] == mass[1, 1]
    assert result.parameters[2, 1] / result.parameters[2, 0] == pytest.approx(box[2, 0, 0])
    assert 0.1 <= result.x[-1] <= 0.2


def _point(problem: Problem, result):
    """Return the point of an answer."""
    objective = ManifoldObjective.of(problem, 0.0)
    start = objective.start()
    return start._replace(
        bodies=PrincipalBodies.of(result.parameters),
        extras=problem.unknowns.split(result.x)[1],
    )


def test_a_mass_far_below_the_prior_is_kept(rng):
    case = humanoid_case(rng)
    mass = np.tile([0.0, np.inf], (5, 1))
    mass[1, 1] = 1e-4 * case.prior[1, 0]
    problem = replace(case.problem(), bounds=Bounds(mass=mass))
    objective = ManifoldObjective.of(problem, 1e-2)
    assert objective.low[1, 0] <= objective.high[1, 0] == mass[1, 1]
    assert solve_manifold(problem, max_iterations=30).parameters[1, 0] == mass[1, 1]


def test_starts_and_steps_stay_within_bounds(rng):
    case = humanoid_case(rng)
    center = case.prior[:, 1:4] / case.prior[:, :1]
    box = np.stack([center + 0.01, center + 0.02], axis=1)
    extras = np.array([[0.1, 0.2], [-np.inf, np.inf]])
    problem = replace(case.problem(), bounds=Bounds(center_of_mass=box, extras=extras))
    objective = ManifoldObjective.of(problem, 1e-2)
    start = objective.start()
    assert start.extras[0] == 0.1
    bent = np.zeros(5, dtype=bool)
    # A large step either way, one link after the other and all other unknowns.
    for sign in (-1.0, 1.0):
        step = np.full(len(problem.unknowns), 0.5 * sign)
        there = objective.moved(start, step, bent)
        assert (there.bodies.center >= box[:, 0]).all() and (
            there.bodies.center <= box[:, 1]
        ).all()
        assert there.extras[0] in (0.1, 0.2)


def test_an_answer_that_is_nearly_there_is_not_optimal(rng):
    case = humanoid_case(rng)
    problem = case.problem(NOISE * rng.normal(size=len(case.y)))
    found = [solve_manifold(problem, max_iterations=budget) for budget in range(30)]
    assert any(1e-7 < one.optimality < 1e-3 for one in found)
    for one in found:
        assert (one.grade is Grade.OPTIMAL) == (one.optimality <= 1e-7)
