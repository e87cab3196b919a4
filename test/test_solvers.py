# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What every method of identification must do, whatever it minimises.

A method is judged by the truth of exact equations and by its own optimality, never by another
method. Not covered: how good the answers are with noise and little data, and how long they take.
"""

from dataclasses import replace

import numpy as np
import pytest
from identification_problems import CONSISTENT, humanoid_case, objective, random_bodies
from scipy.spatial.transform import Rotation

from inertial_estimation import Bounds, InertialEstimationError, Information, Problem, Unknowns
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.problem import Grade, LinearBounds
from inertial_estimation.identification.row_space import RowSpace, numerical_rank
from inertial_estimation.identification.solvers.divergence import (
    entropic_divergence,
    parameters_of,
    whitening,
)
from inertial_estimation.identification.solvers.manifold import solve_manifold
from inertial_estimation.identification.solvers.mass_points import (
    MASS_ERROR,
    box_grid,
    composition,
    link_grids,
    prior_roots,
    solve_mass_points,
)
from inertial_estimation.identification.solvers.methods import (
    SOLVERS,
    solve_entropic,
    solve_semidefinite,
)
from inertial_estimation.model.geometry import CORNERS, Box
from inertial_estimation.model.inertia import consistency_margin, pseudo_inertia

EXACTNESS = {
    'least_squares': 1e-9, 'euclidean': 1e-9, 'pullback': 1e-9, 'entropic': 1e-9,
    'semidefinite': 1e-8, 'manifold': 1e-8, 'mass_points': 1e-4,
}  # fmt: skip
"""Relative error of predicted wrenches without noise, with next to no weight of the prior."""
INVARIANT = ('entropic', 'semidefinite', 'manifold', 'pullback')
"""Methods of which another frame of a link only rotates and moves the answer."""
NEXT_TO_NOTHING = 1e-9
"""Weight of a prior that pulls predictions by less than what methods promise."""
BASE = 10.0  # the weakest combination is seen this much worse than the equations as a whole
SAME = 1e-5
"""Root of the gap of an iterative method, below 1e-9, against the weight of the prior, 1e-2."""
GAP = 1e-6  # of objectives, as far as an interior point goes
STAYS = 1e-5  # distance to a prior that nothing contradicts: ten times an interior point's gap
SMALL, NOISE = 0.1, 20.0
"""Noise that leaves links inside the cone, and a fifth of the largest wrench, which does not."""
TRIALS, AS_STATED = 20, 0.2
"""About 10 independent numbers each, of a unit variance: four deviations."""
LINK = slice(20, 30)


@pytest.fixture(params=sorted(SOLVERS))
def method(request):
    return SOLVERS[request.param]


@pytest.fixture
def case(rng):
    return humanoid_case(rng)


@pytest.fixture
def noise(case, rng):
    return NOISE * rng.normal(size=len(case.y))


def light(method):
    """Return the options with which the prior weighs next to nothing."""
    return {'weight': NEXT_TO_NOTHING} if method.weighted else {}


def test_exact_equations_give_exact_base_parameters(method, case, rng):
    result = method(case.problem(), **light(method))
    unseen = humanoid_case(rng).Y
    expected = unseen @ case.truth
    error = np.linalg.norm(unseen @ result.x - expected) / np.linalg.norm(expected)
    exact = EXACTNESS[method.name]
    assert error <= exact
    space = RowSpace.of(case.Y)
    base, true_base = (space.directions.T @ (space.scales * x) for x in (result.x, case.truth))
    assert np.linalg.norm(base - true_base) <= BASE * exact * np.linalg.norm(true_base)
    few = replace(case, Y=case.Y[:6], y=case.y[:6])
    result = method(few.problem(), **light(method))
    assert result.rank == 6
    assert np.linalg.norm(few.Y @ result.x - few.y) <= BASE * exact * np.linalg.norm(few.y)


def test_result_is_optimal_and_describes_its_problem(method, case, noise):
    problem = case.problem(noise)
    result = method(problem)
    assert result.grade is Grade.OPTIMAL and 0.0 <= result.optimality < 1e-6
    assert SOLVERS[result.method] is method
    assert result.unknowns == case.unknowns
    assert result.mean_square == pytest.approx(problem.mean_square(result.x), rel=1e-9)
    assert result.rank == np.linalg.matrix_rank(case.Y)
    np.testing.assert_array_equal(result.margins, consistency_margin(result.parameters))
    assert result.consistent == (method.name in CONSISTENT) == (result.margins.min() > 0.0)


def test_deviations_are_finite_where_determined(method, case, noise):
    silent = case.Y.copy()
    silent[:, -1] = 0.0
    problem = replace(case, Y=silent).problem(noise)
    determined = np.append(np.ones(len(case.truth) - 1, dtype=bool), False)
    has_prior = method.solve(problem, 1e-2).prior_rows is not None
    if not has_prior:
        null = np.linalg.svd(silent)[2][RowSpace.of(silent).rank :]
        determined = np.linalg.norm(null, axis=0) < 1e-9
        assert 0 < np.count_nonzero(determined) < len(determined)
    deviations = method(problem).deviations
    np.testing.assert_array_equal(np.isfinite(deviations), determined)
    assert (deviations > 0.0).all()
    if has_prior:
        known = replace(problem, extra_scales=np.array([np.inf, 0.3]))
        expected = 0.3 / np.sqrt(1e-2 * problem.count)
        assert method(known).deviations[-1] == pytest.approx(expected, rel=SAME)


@pytest.mark.parametrize('weight', [1e-6, 0.1])
@pytest.mark.parametrize('method', [one for one in SOLVERS.values() if one.weighted])
def test_no_neighbour_is_better(method, case, noise, rng, weight):
    problem = case.problem(noise)
    x = method(problem, weight=weight).x
    least = objective(method, problem, x, weight)
    random = 1e-3 * rng.normal(size=(100, len(x))) * np.abs(x)
    # Towards the prior every answer stays consistent.
    toward = np.outer(np.logspace(-6, 0, 10), problem.prior_point() - x)
    for moved in x + np.vstack([random, toward]):
        margins = consistency_margin(problem.unknowns.split(moved)[0])
        if (margins > 0).all() or method.name not in CONSISTENT:
            assert objective(method, problem, moved, weight) > least * (1 - GAP)


@pytest.mark.parametrize('method', [one for one in SOLVERS.values() if one.bounded])
def test_active_bounds_of_every_kind_are_kept(method, case, noise):
    problem = case.problem(noise)
    free = method(problem)
    parameters, n = free.parameters, len(case.prior)
    mass = np.tile([-np.inf, np.inf], (n, 1))
    mass[0, 0], mass[2, 1] = parameters[0, 0] + 0.3, 0.8 * parameters[2, 0]
    center = np.tile([[-np.inf] * 3, [np.inf] * 3], (n, 1, 1))
    center[1, 0, 0] = parameters[1, 1] / parameters[1, 0] + 0.01
    extras = np.array([[-np.inf, free.x[-2] - 0.1], [0.2, 0.2]])
    Q = np.full((n, 4, 4), np.nan)
    J = pseudo_inertia(parameters[4])
    Q[4] = np.diag([-1.0, -1.0, -1.0, 0.9 * np.trace(J[:3, :3]) / J[3, 3]])
    total = np.array([1.02 * parameters[:, 0].sum(), np.inf])
    bounds = Bounds(mass, center, Q, total, extras)
    within = replace(problem, bounds=bounds)
    found, slack = method(within), LinearBounds.of(within.bounds, within.unknowns).slack
    assert (slack(free.x) < 0.0).sum() >= len(slack(free.x)) - 1
    assert found.grade is Grade.OPTIMAL and found.consistent
    assert slack(found.x).min() > -1e-6
    assert np.count_nonzero(slack(found.x) < 1e-3) >= 4
    free_cost, cost = (objective(method, problem, one.x, 1e-2) for one in (free, found))
    assert free_cost < cost


@pytest.mark.parametrize('name', ['entropic', 'semidefinite', 'mass_points'])
def test_contradicting_bounds_are_named(case, name):
    n = len(case.prior)
    box = np.tile([[-9.0] * 3, [9.0] * 3], (n, 1, 1))
    box[2] += 15.0
    Q = np.tile(np.diag([-1.0, -1.0, -1.0, 1.0]), (n, 1, 1))
    bounds = Bounds(np.tile([0.1, np.inf], (n, 1)), box, Q)
    with pytest.raises(ModelError) as error:
        SOLVERS[name](replace(case.problem(), bounds=bounds))
    assert [link for link in case.unknowns.links if link in str(error.value)] == [
        case.unknowns.links[2]
    ]


def test_undetermined_unknowns_stay_at_the_prior(method, case, noise):
    """Link 2 and the offset of a moment are in no equation."""
    Y = case.Y.copy()
    Y[:, LINK] = Y[:, -1:] = 0.0
    found = method(replace(case, Y=Y, y=Y @ case.truth).problem(noise))
    away = np.linalg.solve(whitening(case.prior)[2], found.parameters[2] - case.prior[2])
    assert np.linalg.norm(away) <= max(STAYS, BASE * EXACTNESS[method.name])
    assert abs(found.x[-1]) <= SAME


def test_deviations_are_those_of_many_trials(method, case, rng):
    """Of unknowns that are determined, inside the cone, where constraints do not matter."""
    exact = replace(case, prior=case.parameters)
    determined = RowSpace.of(case.Y).determined
    errors = []
    for _ in range(TRIALS):
        result = method(exact.problem(SMALL * rng.normal(size=len(case.y))), **light(method))
        errors.append(((result.x - case.truth) / result.deviations)[determined])
    assert np.count_nonzero(determined) >= 20
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(1.0, rel=AS_STATED)


def test_order_merging_and_reduction_do_not_matter(method, case, noise, rng):
    values = case.y + noise
    whole = Problem(case.unknowns, case.Y, values, 0.0, float(len(values)), case.prior)
    before = whole.factor.copy(), whole.target.copy(), whole.prior.copy()
    expected = method(whole)
    for array, old in zip((whole.factor, whole.target, whole.prior), before, strict=True):
        np.testing.assert_array_equal(array, old)
    order = rng.permutation(len(values))
    parts = [Information.of(case.Y[k], values[k]) for k in np.split(order, [40, 101])]
    merged = parts[2].merge(parts[0].merge(parts[1]))
    found = method(Problem.of(case.unknowns, merged, case.prior))
    np.testing.assert_allclose(found.x, expected.x, rtol=SAME, atol=SAME)
    assert found.mean_square == pytest.approx(expected.mean_square, rel=1e-6)
    assert found.rank == expected.rank


@pytest.mark.parametrize('method', [SOLVERS[name] for name in INVARIANT])
def test_another_link_frame_moves_its_answer_along(method, case, noise, rng):
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    H = np.eye(4)
    H[:3, :3] = rotation * np.sign(np.linalg.det(rotation))
    H[:3, 3] = [0.3, -0.2, 0.1]
    moved = parameters_of(H @ pseudo_inertia(np.eye(10)) @ H.T).T
    Y, prior = case.Y.copy(), case.prior.copy()
    Y[:, LINK] = case.Y[:, LINK] @ np.linalg.inv(moved)
    prior[2] = moved @ prior[2]
    expected = method(case.problem(noise))
    expected.x[LINK] = moved @ expected.x[LINK]
    found = method(replace(case, Y=Y, prior=prior).problem(noise))
    np.testing.assert_allclose(found.x, expected.x, rtol=SAME, atol=SAME)


def test_inconsistent_prior_is_refused_by_link(method, case):
    wrong = case.prior.copy()
    wrong[3] = np.r_[1.0, np.zeros(3), 0.1, 0, 0.1, np.zeros(3)]
    with pytest.raises(ModelError) as error:
        method(replace(case, prior=wrong).problem())
    assert case.unknowns.links[3] in str(error.value)
    if method.weighted:
        with pytest.raises(InertialEstimationError) as error:
            method(case.problem(), weight=1e13)
        assert 'weight' in str(error.value)


def one_link(Y, values):
    """Return the problem of one link without offsets."""
    link = np.array([[2.0, 0.02, -0.04, 0.1, 0.05, 0.001, 0.04, 0.0, 0.002, 0.03]])
    return Problem.of(Unknowns(('link',)), Information.of(Y, Y @ link[0] + values), link)


def test_deviations_of_least_squares_are_those_of_the_textbook(rng):
    Y, noise = rng.normal(size=(50, 10)), 0.1 * rng.normal(size=50)
    problem, roots = one_link(Y, noise), np.sqrt(np.diag(np.linalg.inv(Y.T @ Y)))
    result = SOLVERS['least_squares'](problem)
    deviation = np.sqrt(50 * problem.mean_square(result.x) / (50 - 10))
    np.testing.assert_allclose(result.deviations, deviation * roots, rtol=1e-9)
    # A column of round-off has no direction in which the residual could be less.
    Y[:, 4] = 1e-16 * rng.normal(size=50)
    assert SOLVERS['least_squares'](one_link(Y, noise)).grade is Grade.OPTIMAL


def test_rank_does_not_depend_on_units_and_condition(case, rng):
    Y = case.Y * 10.0 ** np.random.default_rng(3).uniform(-6, 6, case.Y.shape[1])
    assert RowSpace.of(Y).rank == RowSpace.of(case.Y).rank == numerical_rank(Y.T @ Y) == 40
    Q, U = (np.linalg.qr(rng.normal(size=(n, 10)))[0] for n in (10, 30))
    problem = one_link(U * np.geomspace(1.0, 1e-7, 10) @ Q, 0.0)
    result = SOLVERS['least_squares'](problem)
    assert result.rank == 10
    np.testing.assert_allclose(result.x, problem.prior[0], atol=1e-8)


# ---- What single methods claim: the entropic prior, the cone, its manifold [M], masses at points

KEPT = 1e-6  # share of the bounds' numbers: what iterations leave
WIDTH = 1e-5  # of masses that are nearly known, which costs this times a multiplier
ROUND_OFF = 1e-12  # of sums of products of parameters
SAME_POINT = 1e-7  # two methods, one strictly convex objective: the root of their gaps


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
    """Truths are drawn around one prior, as far as its weight states."""
    case, size = humanoid_case(rng, off=0.0), 0.15
    errors, stated = [], []
    for _ in range(150):
        z = size * rng.normal(size=(len(case.prior), 10, 1))
        moved = case.prior + (whitening(case.prior) @ z)[..., 0]
        truth = case.unknowns.join(moved, np.array([3.0, -0.4]))
        y = case.Y @ truth + rng.normal(size=len(case.y))
        problem = Problem.of(case.unknowns, Information.of(case.Y, y), case.prior)
        result = solve_entropic(problem, weight=size**-2 / problem.count)
        errors.append(result.x - truth)
        stated.append(result.deviations)
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.mean(stated, axis=0)
    # By more than the draws show.
    assert ratio.max() < 1.2
    assert ratio.min() > 0.8


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


def test_manifold_has_the_minimum_of_a_flat_objective(noisy, rng):
    """With few equations and a weak prior."""
    # With a wrong curvature steps are short.
    assert solve_manifold(noisy).iterations < 40
    case = humanoid_case(rng, instants=5)
    few = case.problem(NOISE * rng.normal(size=len(case.y)))
    found, expected = (f(few, weight=1e-8) for f in (solve_manifold, solve_entropic))
    least, value = (objective(solve_entropic, few, one.x, 1e-8) for one in (expected, found))
    assert found.grade is Grade.OPTIMAL and value <= least * (1.0 + SAME_POINT)


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


def test_cuboid_without_shape_is_the_one_of_the_prior(box):
    """That with the prior's inertia is the one that it is made of [M 25]."""
    (grid,) = link_grids(('a',), even(box, 2.0)[None], {})
    found, expected = (
        np.sort(np.abs(points - box.L_H_S[:3, 3]).max(axis=0))
        for points in (grid.points, box.corners)
    )
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_prior_of_points_weighs_by_the_largest_error_in_the_box(box, rng):
    """Of any contents of the box whose mass is within its error [A 19-21]."""
    prior, places = even(box, 5.0), np.vstack([rng.uniform(-1.0, 1.0, (500, 3)), CORNERS])
    (W,) = prior_roots([box_grid(box)], prior[None])
    contents = composition(box.from_unit(places))
    error = MASS_ERROR * 5.0
    errors = np.hstack([mass * contents for mass in (5.0 - error, 5.0 + error)]) - prior[:, None]
    np.testing.assert_allclose(np.abs(W @ errors).max(axis=1), 1.0, atol=ROUND_OFF)


def test_compact_links_off_centre_cannot_be_represented(rng):
    """The least spread is |s| (1 - |s|) d^2 along each axis; notes and deviations state it."""
    box = Box(np.eye(4), np.array([0.1, 0.1, 0.1]))
    compact = even(Box(np.eye(4), np.full(3, 3e-5**0.5)), 1.0)[None]
    compact[0, 1] = 0.05
    compact[0, [6, 9]] += 0.05**2
    Y = 1e4 * np.tile(np.eye(10), (20, 1))
    rows = Information.of(Y, Y @ compact[0] + rng.normal(size=len(Y)))
    problem = Problem.of(Unknowns(('arm',)), rows, compact)
    result = solve_mass_points(problem, grids=[box_grid(box)])
    assert result.consistent and result.grade is Grade.OPTIMAL
    spread = pseudo_inertia(result.parameters[0])[0, 0]
    mass, first = result.parameters[0, :2]
    share = first / mass / 0.1
    assert spread - first**2 / mass >= mass * share * (1 - share) * 0.01 - ROUND_OFF
    assert 'arm' in result.notes[0]
    finer = solve_mass_points(problem, grids=[box_grid(box, 9)])
    assert finer.mean_square < 0.1 * result.mean_square
    assert finer.deviations.max() < 0.3 * result.deviations.max()
    for one in (result, finer):
        assert (np.abs(one.x - compact[0]) < 4.0 * one.deviations).all()
