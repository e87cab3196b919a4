# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What single methods claim: the entropic prior, the cone, its manifold [M], masses at points [A].

Not covered: what all methods have in common (test_solver_contract.py); published answers
(test_human_lee.py); which of several local optima without prior is found; times.
"""

from dataclasses import replace

import numpy as np
import pytest
from identification_problems import humanoid_case, objective, random_bodies
from scipy.spatial.transform import Rotation

from inertial_estimation import Bounds, Information, Problem, Unknowns
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.problem import Grade, LinearBounds
from inertial_estimation.identification.solvers.divergence import (
    entropic_divergence,
    parameters_of,
    whitening,
)
from inertial_estimation.identification.solvers.manifold import solve_manifold
from inertial_estimation.identification.solvers.mass_points import (
    box_grid,
    link_grids,
    solve_mass_points,
)
from inertial_estimation.identification.solvers.methods import (
    SOLVERS,
    solve_entropic,
    solve_semidefinite,
)
from inertial_estimation.model.geometry import CORNERS, Box, Shape
from inertial_estimation.model.inertia import pseudo_inertia

NOISE = 20.0  # A fifth of the largest wrench: enough to push links to the edge of the cone
KEPT = 1e-6  # share of the bounds' numbers: what iterations leave
WIDTH = 1e-5  # of masses that are nearly known, which costs this times a multiplier
ROUND_OFF = 1e-12  # of sums of products of parameters
SAME_POINT = 1e-7  # two methods, one strictly convex objective: the root of their gaps
CUBE = Box(np.eye(4), np.ones(3))


@pytest.fixture
def case(rng):
    return humanoid_case(rng)


@pytest.fixture
def noisy(case, rng):
    return case.problem(NOISE * rng.normal(size=len(case.y)))


def test_divergence_is_that_of_log_determinants(case, rng):
    J, J0 = pseudo_inertia(case.parameters), pseudo_inertia(case.prior)
    ratio = np.linalg.solve(J0, J)
    expected = np.trace(ratio, axis1=1, axis2=2) - np.log(np.linalg.det(ratio)) - 4.0
    np.testing.assert_allclose(entropic_divergence(case.parameters, case.prior), expected)
    # Near the prior there is no cancellation.
    moves = 1e-5 * rng.normal(size=(len(case.prior), 10, 1))
    near = case.prior + (whitening(case.prior) @ moves)[..., 0]
    expected = 0.5 * np.sum(moves**2, axis=(1, 2))
    np.testing.assert_allclose(entropic_divergence(near, case.prior), expected, rtol=1e-4)


@pytest.mark.parametrize(('weight', 'steps'), [(1e-8, 40), (1e-5, 40), (1e-2, 20), (1.0, 20)])
def test_answer_takes_few_steps(noisy, weight, steps):
    """Newton's method on the logarithm itself takes more than a hundred."""
    result = solve_entropic(noisy, weight=weight)
    assert result.grade is Grade.OPTIMAL and result.consistent and result.iterations < steps


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
    bounds = LinearBounds.of(problem.bounds, problem.unknowns)
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


@pytest.mark.parametrize('at_once', [False, True])
@pytest.mark.parametrize('method', ['entropic', 'semidefinite', 'mass_points'])
def test_bounds_that_leave_no_room_are_equations(method, at_once):
    """Least and greatest masses that are equal, or greatest ones that the total takes at once."""
    for seed in (1, 2, 5, 6):
        problem, truth = far_off(seed, links=3)
        mass, total = truth[:, :1], truth[:, 0].sum()
        exact = Bounds(mass=mass * [1.0, 1.0])
        if at_once:
            exact = Bounds(mass=mass * [0.9, 1.0], total_mass=np.array([total, np.inf]))
        nearly = Bounds(mass=mass * [1.0 - WIDTH, 1.0 + WIDTH])
        found, wider = (
            SOLVERS[method](replace(problem, bounds=bounds)) for bounds in (exact, nearly)
        )
        assert found.grade is wider.grade is Grade.OPTIMAL and found.consistent
        np.testing.assert_allclose(found.parameters[:, 0], truth[:, 0], rtol=1e-9)
        costs = [objective(SOLVERS[method], problem, one.x, 1e-2) for one in (found, wider)]
        assert costs[0] == pytest.approx(costs[1], rel=1e-3), seed


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


def heavy_and_light(seed):
    """Return 12 equations of two links of 10 and 0.02 kg, which fit nearly exactly."""
    rng = np.random.default_rng(seed)
    masses = np.array([10.0, 0.02])
    prior = np.zeros((2, 10))
    prior[:, 0] = masses
    prior[:, [4, 6, 9]] = (0.1 * masses * (0.3 * (masses / 10.0) ** (1 / 3)) ** 2)[:, None]
    Y = rng.normal(size=(12, 20))
    y = Y @ (1.3 * prior).reshape(-1)
    noise = 0.02 * np.std(y)
    information = Information.of(Y / noise, y / noise + rng.normal(size=12))
    return Problem.of(Unknowns(('heavy', 'light')), information, prior)


def test_without_prior_every_answer_is_optimal_and_consistent():
    """With fewer equations than unknowns, so that linear equations are nearly singular."""
    for seed in range(60):
        found = solve_semidefinite(heavy_and_light(seed), prior='none')
        assert found.grade is Grade.OPTIMAL and found.consistent, seed
        # The gap ends at round-off and not at the limit of iterations.
        assert found.iterations < 100, seed


def test_manifold_has_the_minimum_of_the_convex_method(noisy, rng):
    found, expected = solve_manifold(noisy), solve_entropic(noisy)
    # With a wrong curvature steps are short.
    assert found.grade is Grade.OPTIMAL and found.iterations < 40
    np.testing.assert_allclose(found.x, expected.x, rtol=SAME_POINT, atol=SAME_POINT)
    np.testing.assert_allclose(found.deviations, expected.deviations, rtol=10 * SAME_POINT)
    # With few equations and a weak prior the objective is flat.
    case = humanoid_case(rng, instants=5)
    few = case.problem(NOISE * rng.normal(size=len(case.y)))
    found, expected = (f(few, weight=1e-8) for f in (solve_manifold, solve_entropic))
    least, value = (objective(solve_entropic, few, one.x, 1e-8) for one in (expected, found))
    assert found.grade is Grade.OPTIMAL and value <= least * (1.0 + SAME_POINT)


@pytest.mark.parametrize('weight', [1e-2, 1e-10])
def test_every_iterate_is_consistent_and_no_worse(noisy, weight):
    values = []
    for budget in range(30):
        result = solve_manifold(noisy, weight=weight, max_iterations=budget)
        assert result.consistent and result.iterations <= budget
        assert (result.grade is Grade.OPTIMAL) == (result.optimality <= 1e-9)
        values.append(objective(solve_entropic, noisy, result.x, weight))
    assert (np.diff(values) <= ROUND_OFF * values[0]).all() and values[3] < values[0]


@pytest.fixture
def box():
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec([0.3, -0.2, 0.9]).as_matrix()
    pose[:3, 3] = [0.5, -0.1, 0.2]
    return Box(pose, np.array([0.1, 0.2, 0.3]))


def even(box, mass):
    """Return the parameters of a box of even density, shape (10,)."""
    about = np.diag([*(mass * box.half_lengths**2 / 3), mass])
    return parameters_of(box.L_H_S @ about @ box.L_H_S.T)


def test_shape_goes_before_config_before_prior(box):
    prior = np.array([even(box, 2.0)] * 3)
    flat = Shape(CORNERS * [1, 1, 0], Box(np.eye(4), np.array([1.0, 1.0, 0.0])), 'visual')
    with pytest.raises(ModelError) as error:
        link_grids(('a', 'b', 'c'), prior, {'b': flat})
    assert "'b'" in str(error.value)
    shapes = {'a': Shape(CORNERS, CUBE, 'visual')}
    grids = link_grids(('a', 'b', 'c'), prior, shapes, configured=dict.fromkeys('ab', CUBE))
    assert [grid.source for grid in grids] == ['visual', 'config', 'cuboid']
    # The cuboid with the prior's inertia is the one that it is made of [M 25].
    found, expected = (
        np.sort(np.abs(points - box.L_H_S[:3, 3]).max(axis=0))
        for points in (grids[2].points, box.corners)
    )
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_compact_links_off_centre_cannot_be_represented():
    """The least spread is |s| (1 - |s|) d^2 along each axis, and notes name the link."""
    box = Box(np.eye(4), np.array([0.1, 0.1, 0.1]))
    compact = even(Box(np.eye(4), np.full(3, 3e-5**0.5)), 1.0)[None]
    compact[0, 1] = 0.05
    compact[0, [6, 9]] += 0.05**2
    rows = Information.of(1e3 * np.eye(10), 1e3 * compact[0])
    problem = Problem.of(Unknowns(('arm',)), rows, compact)
    result = solve_mass_points(problem, grids=[box_grid(box)])
    assert result.consistent and result.grade is Grade.OPTIMAL
    spread = pseudo_inertia(result.parameters[0])[0, 0]
    mass, first = result.parameters[0, :2]
    share = first / mass / 0.1
    assert spread - first**2 / mass >= mass * share * (1 - share) * 0.01 - ROUND_OFF
    assert 'arm' in result.notes[0]
    assert (
        solve_mass_points(problem, grids=[box_grid(box, 9)]).mean_square < 0.1 * result.mean_square
    )
