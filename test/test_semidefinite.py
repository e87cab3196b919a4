# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Consistent fits within bounds, by their optimality and against published solutions.

Not covered: what all solvers have in common, see `test_solver_contract`; how long it takes.
"""

from dataclasses import replace

import numpy as np
import pytest
from shared_data import SHARED

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Bounds, Problem
from inertial_estimation.identification.result import Grade
from inertial_estimation.identification.solvers.conic import (
    Consistency,
)
from inertial_estimation.identification.solvers.quadratic import (
    solve_euclidean,
    solve_pullback,
)
from inertial_estimation.identification.solvers.semidefinite import (
    BodyProgram,
    PriorTerm,
    solve_semidefinite,
)
from inertial_estimation.identification.unknowns import Extra, Term, Unknowns
from inertial_estimation.model.identifiable import excitable, random_states
from inertial_estimation.model.inertia import pseudo_inertia
from inertial_estimation.model.regressor import submodel_regressors

# The solver stops when bounds are missed by this share of their numbers.
SOLVER = 1e-6
# Of costs against those of other solvers: both stop somewhere near the optimum.
OTHER_SOLVER = 2e-6
# An active bound is approached from inside, as far as the objective can tell.
BOUND = 1e-3
# The noise is estimated from residuals, which the cone changes where it holds a link.
SAME_RESIDUAL = 1e-2
N = 60


@pytest.fixture
def unknowns(nested_humanoid):
    links = [nested_humanoid.links[k].name for k in nested_humanoid.submodels[0].links]
    return Unknowns(tuple(links), (Extra('waist', Term.OFFSET), Extra('neck', Term.VISCOUS)))


@pytest.fixture
def prior(nested_humanoid):
    return nested_humanoid.parameters[list(nested_humanoid.submodels[0].links)]


@pytest.fixture
def rows(nested_humanoid, rng):
    submodel = nested_humanoid.submodels[0]
    samples = random_states(nested_humanoid, N)
    found = submodel_regressors(excitable(nested_humanoid), samples, [submodel])[0]
    Y = found.wrench.reshape(-1, 10 * len(submodel.links))
    return np.hstack([Y, rng.normal(size=(len(Y), 2))])


@pytest.fixture
def truth(prior, rng):
    return np.concatenate([(prior * rng.uniform(0.6, 1.5, (len(prior), 1))).ravel(), [0.3, 0.5]])


@pytest.fixture
def problem(unknowns, rows, truth, prior, rng):
    y = rows @ truth
    y += rng.normal(0.0, 0.3 * np.std(y), len(y))
    return Problem.of(unknowns, Information.of(rows, y), prior)


def objective(problem, x, weight, term):
    difference = pseudo_inertia(problem.unknowns.split(x)[0] - problem.prior)
    if term is PriorTerm.PULLBACK:
        root = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(problem.prior)))
        distance = np.sum((root @ difference @ np.swapaxes(root, -1, -2)) ** 2)
    else:
        distance = np.sum((problem.unknowns.split(x)[0] - problem.prior) ** 2)
    return problem.mean_square(x) / 2 + weight * distance / 2


@pytest.mark.parametrize('term', PriorTerm)
@pytest.mark.parametrize('consistency', Consistency)
def test_answers_are_optimal_and_in_their_cone(problem, term, consistency):
    found = solve_semidefinite(problem, prior=term, consistency=consistency)
    assert found.grade is Grade.OPTIMAL
    assert found.optimality < 1e-5
    assert (consistency.margins(found.parameters) > 0).all()
    assert found.rank == np.linalg.matrix_rank(problem.factor)
    assert found.mean_square == pytest.approx(problem.mean_square(found.x))
    if consistency is Consistency.FULL:
        assert found.consistent


@pytest.mark.parametrize('term', [PriorTerm.EUCLIDEAN, PriorTerm.PULLBACK])
def test_no_consistent_neighbour_is_better(problem, rng, term):
    weight = 1e-3
    found = solve_semidefinite(problem, prior=term, weight=weight)
    least = objective(problem, found.x, weight, term)
    tried = 0
    for _ in range(200):
        x = found.x + 1e-3 * rng.normal(size=len(found.x)) * (np.abs(found.x) + 1e-2)
        if (Consistency.FULL.margins(problem.unknowns.split(x)[0]) > 0).all():
            tried += 1
            assert objective(problem, x, weight, term) > least * (1 - SOLVER)
    # Towards the prior every answer stays consistent.
    for step in np.logspace(-6, 0, 20):
        x = found.x + step * (problem.prior_point() - found.x)
        assert objective(problem, x, weight, term) > least * (1 - SOLVER)
        tried += 1
    assert tried >= 20


def test_deviations_inside_the_cone_are_those_without_it(problem):
    weight = 100.0
    found, expected = (
        solve(problem, weight=weight) for solve in (solve_semidefinite, solve_pullback)
    )
    assert expected.consistent
    np.testing.assert_allclose(found.deviations, expected.deviations, rtol=SOLVER)
    euclidean = solve_semidefinite(problem, weight=weight, prior=PriorTerm.EUCLIDEAN)
    np.testing.assert_allclose(
        euclidean.deviations, solve_euclidean(problem, weight=weight, noise=None).deviations,
        rtol=SAME_RESIDUAL,
    )  # fmt: skip
    silent = solve_semidefinite(problem, with_deviations=False)
    assert np.isnan(silent.deviations).all()


def test_the_smaller_cone_fits_no_better(problem):
    full, physical = (
        solve_semidefinite(problem, prior=PriorTerm.NONE, consistency=consistency)
        for consistency in (Consistency.FULL, Consistency.PHYSICAL)
    )
    assert physical.mean_square <= full.mean_square * (1 + SOLVER)
    least, *_ = np.linalg.lstsq(problem.factor, problem.target, rcond=None)
    assert problem.mean_square(least) <= physical.mean_square * (1 + SOLVER)


def test_rows_without_noise_give_the_truth_where_they_tell(unknowns, rows, truth, prior):
    exact = Problem.of(unknowns, Information.of(rows, rows @ truth), prior)
    found = solve_semidefinite(exact, weight=1e-12)
    np.testing.assert_allclose(rows @ found.x, rows @ truth, atol=1e-4)
    assert found.consistent


def test_the_margin_keeps_the_answer_inside(problem):
    found = solve_semidefinite(problem, prior=PriorTerm.NONE, margin=0.1)
    root = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(problem.prior)))
    seen = root @ pseudo_inertia(found.parameters) @ np.swapaxes(root, -1, -2)
    assert np.linalg.eigvalsh(seen).min() > 0.1 - SOLVER


def test_scales_of_the_euclidean_prior(problem):
    loose = np.ones(problem.prior.shape)
    loose[0] = 100.0
    tight, free = (
        solve_semidefinite(problem, prior=PriorTerm.EUCLIDEAN, weight=1.0, scales=scales)
        for scales in (None, loose)
    )
    moved = [np.linalg.norm(found.parameters[0] - problem.prior[0]) for found in (tight, free)]
    assert moved[1] > moved[0]


def bounded(problem, **bounds):
    return replace(problem, bounds=Bounds(**bounds))


def test_bounds_are_met_and_matter(problem):
    free = solve_semidefinite(problem)
    masses = free.parameters[:, 0]
    n = len(masses)
    limits = np.stack([np.full(n, -np.inf), np.full(n, np.inf)], axis=1)
    limits[0] = masses[0] + 0.3, masses[0] + 0.4
    found = solve_semidefinite(bounded(problem, mass=limits))
    assert found.parameters[0, 0] == pytest.approx(masses[0] + 0.3, abs=BOUND)
    total = np.array([-np.inf, masses.sum() - 0.5])
    found = solve_semidefinite(bounded(problem, total_mass=total))
    assert found.parameters[:, 0].sum() == pytest.approx(masses.sum() - 0.5, abs=BOUND)
    extras = np.array([[-np.inf, np.inf], [free.x[-1] + 0.1, np.inf]])
    found = solve_semidefinite(bounded(problem, extras=extras))
    assert found.x[-1] == pytest.approx(free.x[-1] + 0.1, abs=BOUND)


def test_centres_of_mass_stay_in_their_boxes(problem):
    free = solve_semidefinite(problem)
    centers = free.parameters[:, 1:4] / free.parameters[:, :1]
    box = np.stack([centers + 0.01, centers + 0.02], axis=1)
    found = solve_semidefinite(bounded(problem, center_of_mass=box))
    now = found.parameters[:, 1:4] / found.parameters[:, :1]
    assert (now > box[:, 0] - 1e-5).all() and (now < box[:, 1] + 1e-5).all()


def test_ellipsoids_hold_all_mass(problem):
    free = solve_semidefinite(problem)
    ball = np.diag([-1.0, -1.0, -1.0, 0.0])
    Q = np.full((len(problem.prior), 4, 4), np.nan)
    J = pseudo_inertia(free.parameters[0])
    ball[3, 3] = 0.8 * np.trace(J[:3, :3]) / J[3, 3]
    Q[0] = ball
    found = solve_semidefinite(bounded(problem, ellipsoids=Q))
    assert np.trace(ball @ pseudo_inertia(found.parameters[0])) > -1e-5
    assert np.trace(ball @ J) < -1e-2


def test_contradictions_are_named_and_nothing_else(problem):
    n = len(problem.prior)
    limits = np.stack([np.zeros(n), np.full(n, 50.0)], axis=1)
    limits[2, 0] = 5.0
    impossible = bounded(problem, mass=limits, total_mass=np.array([0.0, 4.0]))
    other = problem.unknowns.links[1]
    with pytest.raises(ModelError) as error:
        solve_semidefinite(impossible)
    assert 'greatest total mass' in str(error.value)
    assert other not in str(error.value)


def test_bad_input_is_refused(problem):
    with pytest.raises(ModelError, match='weight'):
        solve_semidefinite(problem, weight=0.0)
    with pytest.raises(ModelError, match='margin'):
        solve_semidefinite(problem, margin=1.0)
    with pytest.raises(ModelError, match='scales'):
        solve_semidefinite(problem, scales=np.zeros(problem.prior.shape))
    singular = problem.prior.copy()
    singular[1, 4:] = 0.0
    with pytest.raises(ModelError):
        solve_semidefinite(replace(problem, prior=singular))


def test_the_objective_of_the_program_is_the_stated_one(problem, rng):
    program = BodyProgram.of(problem, 0.3, PriorTerm.PULLBACK, None)
    z = rng.normal(size=program.n)
    x = problem.prior_point() + program.to_x @ z
    stated = objective(problem, x, 0.3, PriorTerm.PULLBACK)
    assert program.rows.squared_residual(z) / 2 == pytest.approx(stated)


@pytest.fixture
def human():
    file = SHARED / 'data' / 'human_lee2020' / 'human_lee2020.npz'
    if not file.is_file():
        pytest.skip('the shared data folder is not beside this checkout')
    return dict(np.load(file))


def test_the_euclidean_solution_of_lee_wensing_park(human):
    """Theirs is a sum, |W (A x - b)|^2 + gamma |x - prior|^2: twice the count of our mean."""
    A, b, gamma = human['A'], human['b'], float(human['gamma'])
    weights = 1 / np.sqrt(np.tile(human['sigma_diag'], len(b) // 3))
    links = tuple(f'link_{k}' for k in range(16))
    information = Information.of(weights[:, None] * A, weights * b)
    problem = Problem.of(
        Unknowns(links), information, human['prior'], bounds=Bounds(ellipsoids=human['Q'])
    )
    found = solve_semidefinite(
        problem, weight=gamma / len(b), prior=PriorTerm.EUCLIDEAN, margin=1e-9
    )

    def cost(x):
        missed = weights * (A @ x.ravel() - b)
        return missed @ missed + gamma * np.sum((x - human['prior']) ** 2)

    theirs = human['sol_euclidean']
    assert cost(found.parameters) == pytest.approx(cost(theirs), rel=OTHER_SOLVER)
    np.testing.assert_allclose(found.parameters, theirs, atol=1e-3)
    slack = np.einsum('kij,kji->k', human['Q'], pseudo_inertia(found.parameters))
    active = slack < 1e-4 * np.abs(np.einsum('kii->k', human['Q']))
    assert active.any()
    without = solve_semidefinite(
        replace(problem, bounds=Bounds()),
        weight=gamma / len(b),
        prior=PriorTerm.EUCLIDEAN,
        margin=1e-9,
    )
    assert cost(without.parameters) < 0.99 * cost(theirs)


def test_a_prior_that_misses_by_far_does_not_spoil_the_grade(unknowns, rows, truth, prior, rng):
    noise = 1e-4 * np.std(rows @ truth)
    y = (rows @ truth) / noise + rng.normal(size=len(rows))
    problem = Problem.of(unknowns, Information.of(rows / noise, y), prior)
    low = np.tile([0.0, np.inf], (len(prior), 1))
    low[0] = 1.001 * truth[0], np.inf
    found = solve_semidefinite(replace(problem, bounds=Bounds(mass=low)))
    assert found.grade is Grade.OPTIMAL and found.notes == ()
