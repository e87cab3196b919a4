# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What every method of identification must do, whatever it minimises.

A method is judged by the truth of exact rows and by its own account, never by another method.
Not covered: how good the answers are with noise and little data, and how long they take.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identification_problems import humanoid_case

from inertial_estimation.errors import InertialEstimationError, ModelError
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.result import Grade
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.solvers.coordinates import MAX_WEIGHT
from inertial_estimation.identification.solvers.divergence import parameters_of, whitening
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.identification.solvers.semidefinite import PriorTerm
from inertial_estimation.model.inertia import consistency_margin, pseudo_inertia

NEXT_TO_NOTHING = 1e-9
"""Weight of a prior that pulls rows by less than what methods promise."""
BASE = 10.0
"""The weakest combination is seen this much worse than the rows as a whole."""
SAME = 1e-5
"""
Round-off of the rows through an iterative method: the root of its gap, which is below 1e-9,
where the prior alone holds the answer, with a weight of 1e-2.
"""
STAYS = 1e-5
"""Of the prior, that it may be off where rows tell nothing: ten times an interior point's gap."""
POINTS_STAY = 1e-3
"""The same of masses at points: a regularization of 1e-4 against a weight of 1e-2."""
SMALL = 0.1
"""Noise that leaves bodies inside the cone."""
TRIALS = 20
AS_STATED = 0.2
"""Errors of 20 trials, about 10 independent numbers each, of a unit variance: four deviations."""
LIGHT = 1e-2
"""What the lightest prior changes of deviations that rows determine."""
WITHOUT_PRIOR = [
    ('mass_points', {'weight': None}),
    ('manifold', {'weight': None}),
    ('semidefinite', {'prior': PriorTerm.NONE}),
]
NOISE = 20.0
"""A fifth of the largest wrench: enough to make bodies that cannot exist."""


@pytest.fixture(params=sorted(SOLVERS))
def method(request):
    """Return each method in turn."""
    return SOLVERS[request.param]


@pytest.fixture
def case(rng):
    """Return rows of a small humanoid, with a prior that is 10 % off."""
    return humanoid_case(rng)


@pytest.fixture
def noise(case, rng):
    """Return noise of the rows."""
    return NOISE * rng.normal(size=len(case.y))


def light(method):
    """Return the options with which the prior weighs next to nothing."""
    return {'weight': NEXT_TO_NOTHING} if method.weighted else {}


def test_rows_without_noise_are_reproduced(method, case, rng):
    result = method(case.problem(), **light(method))
    unseen = humanoid_case(rng).Y
    expected = unseen @ case.truth
    error = np.linalg.norm(unseen @ result.x - expected) / np.linalg.norm(expected)
    assert error <= method.exactness


def test_base_parameters_are_recovered(method, case):
    result = method(case.problem(), **light(method))
    space = RowSpace.of(case.Y)
    base, true_base = (space.directions.T @ (space.scales * x) for x in (result.x, case.truth))
    error = np.linalg.norm(base - true_base) / np.linalg.norm(true_base)
    assert error <= BASE * method.exactness


def test_the_result_is_about_its_problem(method, case, noise):
    problem = case.problem(noise)
    result = method(problem)
    assert SOLVERS[result.method] is method
    assert result.unknowns == case.unknowns
    assert result.x.shape == result.deviations.shape == case.truth.shape
    assert result.mean_square == pytest.approx(problem.mean_square(result.x), rel=1e-9)
    assert result.rank == np.linalg.matrix_rank(case.Y)
    assert result.solve_time > 0.0
    np.testing.assert_array_equal(result.margins, consistency_margin(result.parameters))


def test_answers_are_optimal_by_their_own_account(method, case, noise):
    result = method(case.problem(noise))
    assert result.grade is Grade.OPTIMAL
    assert 0.0 <= result.optimality < 1e-6


def test_noise_leaves_bodies_consistent_or_is_reported(method, case, noise):
    result = method(case.problem(noise))
    assert result.consistent == method.consistent
    assert (result.margins.min() > 0.0) == method.consistent


def test_deviations_are_finite_where_something_tells(method, case, noise):
    """A silent sensor without prior is told by nothing; links are told by rows or a prior."""
    silent = case.Y.copy()
    silent[:, -1] = 0.0
    problem = replace(case, Y=silent).problem(noise)
    told = np.ones(len(case.truth), dtype=bool)
    told[-1] = False
    if method is SOLVERS['least_squares']:
        told = RowSpace.of(problem.factor).determined
        assert 0 < np.count_nonzero(told) < len(told)
    deviations = method(problem).deviations
    np.testing.assert_array_equal(np.isfinite(deviations), told)
    assert (deviations > 0.0).all()


def test_a_prior_of_another_unknown_tells_of_it(method, case, noise):
    if method is SOLVERS['least_squares']:
        pytest.skip('the method has no prior')
    silent = case.Y.copy()
    silent[:, -1] = 0.0
    problem = replace(case, Y=silent).problem(noise)
    problem = replace(problem, extra_scales=np.array([np.inf, 0.3]))
    assert method(problem).deviations[-1] == pytest.approx(0.3, rel=SAME)


def test_what_no_row_tells_stays_at_the_prior(method, case, noise):
    link, Y = 2, case.Y.copy()
    Y[:, 10 * link : 10 * link + 10] = 0.0
    Y[:, -1] = 0.0
    blind = replace(case, Y=Y, y=Y @ case.truth)
    problem = replace(blind.problem(noise), prior_extras=np.array([0.0, 0.7]))
    found = method(problem)
    assert whitened(found.parameters[link], case.prior[link]) <= stays(method)
    assert found.x[-1] == pytest.approx(0.7, rel=SAME)


def test_a_prior_that_fits_the_rows_stays_whole(method, case):
    """Rows that tell too little, and nothing new: neither sums nor shares may change."""
    at = case.unknowns.join(case.prior, np.zeros(2))
    fitting = replace(case, Y=case.Y[:30], y=case.Y[:30] @ at)
    found = method(fitting.problem())
    assert max(map(whitened, found.parameters, case.prior)) <= stays(method)


@pytest.mark.parametrize(('name', 'options'), WITHOUT_PRIOR)
def test_deviations_without_prior_are_those_of_the_rows(name, options, case, noise):
    found = SOLVERS[name](case.problem(noise), **options, noise=NOISE)
    expected = SOLVERS['least_squares'](case.problem(noise), noise=NOISE)
    np.testing.assert_allclose(found.deviations, expected.deviations, rtol=SAME)


def test_deviations_are_those_of_many_trials(method, case, rng):
    """Of what rows determine one by one, inside the cone, where constraints do not matter."""
    exact = replace(case, prior=case.parameters)
    told = RowSpace.of(case.Y).determined
    errors = []
    for _ in range(TRIALS):
        result = method(exact.problem(SMALL * rng.normal(size=len(case.y))), **light(method))
        errors.append(((result.x - case.truth) / result.deviations)[told])
    assert np.count_nonzero(told) >= 20
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(1.0, rel=AS_STATED)


def test_known_noise_scales_deviations(method, case, noise):
    options = light(method)
    problem = case.problem(noise)
    told = RowSpace.of(case.Y).determined
    one, two = (method(problem, **options, noise=k * NOISE).deviations[told] for k in (1, 2))
    np.testing.assert_allclose(two, 2 * one, rtol=LIGHT)


def test_order_of_samples_does_not_matter(method, case, noise, rng):
    expected = method(case.problem(noise))
    order = rng.permutation(len(case.y))
    shuffled = replace(case, Y=case.Y[order], y=case.y[order])
    assert_same(method(shuffled.problem(noise[order])), expected)


def test_merging_does_not_matter(method, case, noise):
    expected = method(case.problem(noise))
    values = case.y + noise
    logs = [Information.of(case.Y[part], values[part])
            for part in (slice(0, 40), slice(40, 101), slice(101, None))]  # fmt: skip
    for merged in (logs[0].merge(*logs[1:]), logs[2].merge(logs[0].merge(logs[1]))):
        assert_same(method(Problem.of(case.unknowns, merged, case.prior)), expected)


def test_rows_need_not_be_reduced(method, case, noise):
    problem = Problem(case.unknowns, case.Y, case.y + noise, 0.0, float(len(case.y)), case.prior)
    assert_same(method(problem), method(case.problem(noise)))


def test_the_problem_is_left_as_it_is(method, case, noise):
    problem = case.problem(noise)
    before = [array.copy() for array in (problem.factor, problem.target, problem.prior)]
    method(problem)
    for array, old in zip((problem.factor, problem.target, problem.prior), before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_another_frame_of_a_link_moves_its_answer_along(method, case, noise, rng):
    if not method.invariant:
        pytest.skip('the method does not claim it')
    moved = frame_change(rng)
    link = 2
    columns = slice(10 * link, 10 * link + 10)
    Y, prior = case.Y.copy(), case.prior.copy()
    Y[:, columns] = case.Y[:, columns] @ np.linalg.inv(moved)
    prior[link] = moved @ prior[link]
    expected = method(case.problem(noise))
    expected.x[columns] = moved @ expected.x[columns]
    found = method(replace(case, Y=Y, prior=prior).problem(noise))
    np.testing.assert_allclose(found.x, expected.x, rtol=SAME, atol=SAME)


@pytest.mark.parametrize('value', [0.0, -1.0])
def test_a_prior_that_cannot_exist_is_refused(method, case, value):
    prior = case.prior.copy()
    prior[1] *= value
    with pytest.raises(ModelError, match='hip') as caught:
        method(replace(case, prior=prior).problem())
    assert 'chest' not in str(caught.value)


def test_a_prior_of_two_points_is_refused(method, case):
    prior = case.prior.copy()
    # A stick: its inertia about its axis is zero.
    prior[3] = [1.0, 0.0, 0.0, 0.0, 0.1, 0.0, 0.1, 0.0, 0.0, 0.0]
    with pytest.raises(ModelError, match='head'):
        method(replace(case, prior=prior).problem())


def test_a_prior_with_nan_is_refused(method, case):
    prior = case.prior.copy()
    prior[4, 7] = np.nan
    with pytest.raises(ModelError, match='shoulder'):
        method(replace(case, prior=prior).problem())


@pytest.mark.parametrize('bad', [np.nan, np.inf])
def test_rows_with_nan_are_refused(method, case, bad):
    problem = case.problem()
    target = problem.target.copy()
    target[3] = bad
    with pytest.raises(InertialEstimationError, match='NaN'):
        method(replace(problem, target=target))


@pytest.mark.parametrize('weight', [0.0, -1.0, np.nan, np.inf, 1e-13, 1e-30, 1e13, 1e30])
def test_a_weight_that_is_none_is_refused(method, case, weight):
    if not method.weighted:
        pytest.skip('the method has no weight')
    with pytest.raises(ModelError, match='weight'):
        method(case.problem(), weight=weight)


def test_the_heaviest_prior_leaves_other_unknowns_free(method, case, noise):
    if not method.weighted:
        pytest.skip('the method has no weight')
    result = method(case.problem(noise), weight=MAX_WEIGHT)
    np.testing.assert_allclose(result.parameters, case.prior, rtol=SAME, atol=SAME)
    free = case.unknowns.join(case.prior, result.x[-2:])
    slopes = case.Y[:, -2:].T @ (case.Y @ free - case.y - noise)
    sizes = np.linalg.norm(case.Y[:, -2:], axis=0) * np.linalg.norm(case.y)
    assert (np.abs(slopes) <= SAME * sizes).all()


def test_a_heavy_prior_stays(method, case, noise):
    if not method.weighted:
        pytest.skip('the method has no weight')
    result = method(case.problem(noise), weight=1e9)
    np.testing.assert_allclose(result.parameters, case.prior, rtol=1e-4, atol=1e-4)


def test_few_rows_do(method, case):
    few = replace(case, Y=case.Y[:6], y=case.y[:6])
    result = method(few.problem(), **light(method))
    assert result.rank == 6
    size = np.linalg.norm(few.y)
    assert np.linalg.norm(few.Y @ result.x - few.y) <= BASE * method.exactness * size


def assert_same(found, expected):
    """Compare two answers of one method to the same rows."""
    np.testing.assert_allclose(found.x, expected.x, rtol=SAME, atol=SAME)
    assert found.mean_square == pytest.approx(expected.mean_square, rel=1e-6)
    assert found.rank == expected.rank


def stays(method):
    """Return how far a method may leave a prior that nothing contradicts."""
    return POINTS_STAY if method is SOLVERS['mass_points'] else STAYS


def whitened(found, prior):
    """Return how far a body is from its prior, as a share of it in every direction."""
    return np.linalg.norm(np.linalg.solve(whitening(prior[None])[0], found - prior))


def frame_change(rng: np.random.Generator) -> np.ndarray:
    """Return the map of inertial parameters to another frame, shape (10, 10)."""
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    H = np.eye(4)
    H[:3, :3] = rotation * np.sign(np.linalg.det(rotation))
    H[:3, 3] = [0.3, -0.2, 0.1]
    return parameters_of(H @ pseudo_inertia(np.eye(10)) @ H.T).T
