# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Consistent fits within bounds, by their optimality and against published solutions.

Not covered: what all solvers have in common, see `test_solver_contract`; how long it takes.
"""

import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csc_array
from shared_data import SHARED

from inertial_estimation.errors import InertialEstimationError, ModelError
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Bounds, Problem
from inertial_estimation.identification.result import Grade
from inertial_estimation.identification.solvers.conic import (
    Block,
    Consistency,
    Kind,
    _contradict,
    matrix,
    minimise,
    vector,
)
from inertial_estimation.identification.solvers.constraints import (
    LinearBounds,
    body_block,
    drawn_inside,
)
from inertial_estimation.identification.solvers.entropic import solve_entropic
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.identification.solvers.quadratic import (
    solve_euclidean,
    solve_pullback,
)
from inertial_estimation.identification.solvers.semidefinite import (
    MARGIN,
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


def test_notes_tell_which_links_are_bodies_only_just(problem):
    free = solve_semidefinite(problem, prior=PriorTerm.NONE)
    assert any(note.startswith('at the edge') for note in free.notes)
    assert solve_semidefinite(problem, weight=1e6).notes == ()
    physical = solve_semidefinite(problem, prior=PriorTerm.NONE, consistency=Consistency.PHYSICAL)
    assert not physical.consistent
    assert any(note.startswith('no body could exist') for note in physical.notes)


def test_a_heavy_prior_wins(problem):
    found = solve_semidefinite(problem, weight=1e9)
    np.testing.assert_allclose(found.parameters, problem.prior, atol=1e-4)


def test_scales_of_the_euclidean_prior(problem):
    loose = np.ones(problem.prior.shape)
    loose[0] = 100.0
    tight, free = (
        solve_semidefinite(problem, prior=PriorTerm.EUCLIDEAN, weight=1.0, scales=scales)
        for scales in (None, loose)
    )
    moved = [np.linalg.norm(found.parameters[0] - problem.prior[0]) for found in (tight, free)]
    assert moved[1] > moved[0]


def test_other_unknowns_are_drawn_by_their_scales(problem):
    tight = replace(problem, extra_scales=np.array([1e-6, np.inf]))
    found = solve_semidefinite(tight, weight=1.0)
    assert abs(found.x[-2]) < 1e-4 < abs(solve_semidefinite(problem, weight=1.0).x[-2])


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


def test_equal_limits_fix_a_mass(problem):
    limits = np.tile([-np.inf, np.inf], (len(problem.prior), 1))
    limits[1] = 2.0
    found = solve_semidefinite(bounded(problem, mass=limits))
    assert found.parameters[1, 0] == pytest.approx(2.0, abs=1e-5)
    assert found.grade is Grade.OPTIMAL


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


def test_masses_that_cannot_have_their_total_are_named_and_nothing_else(problem):
    """However far apart the numbers are: solvers prove less."""
    n = len(problem.prior)
    links = problem.unknowns.links
    limits = np.tile([-np.inf, np.inf], (n, 1))
    limits[0], limits[1], limits[2] = (0.5, 20.0), (3.0, 20.0), (2.0, 20.0)
    impossible = bounded(problem, mass=limits, total_mass=np.array([1.0, 4.0]))
    for solve in (solve_semidefinite, solve_entropic):
        with pytest.raises(ModelError) as error:
            solve(impossible)
        assert f'least mass of {links[1]}, least mass of {links[2]}, greatest' in str(error.value)
        assert f'of {links[0]}' not in str(error.value)
        assert 'greatest mass' not in str(error.value)
    few = np.tile([0.0, 1e-3], (n, 1))
    with pytest.raises(ModelError):
        solve_semidefinite(bounded(problem, mass=few, total_mass=np.array([1.0, 4.0])))
    exact = np.tile([0.1, 0.1], (n, 1))
    fixed = LinearBounds.of(bounded(problem, mass=exact, total_mass=np.full(2, 0.1 * n)))
    assert len(fixed.names) == 2 * n + 2


def test_boxes_and_ellipsoids_that_exclude_each_other(problem):
    n = len(problem.prior)
    box = np.tile([[0.5] * 3, [0.6] * 3], (n, 1, 1))
    Q = np.tile(np.diag([-1.0, -1.0, -1.0, 0.01]), (n, 1, 1))
    least = np.tile([0.1, np.inf], (n, 1))
    with pytest.raises(ModelError):
        solve_semidefinite(bounded(problem, center_of_mass=box, ellipsoids=Q, mass=least))


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


def test_without_the_solver_the_error_says_what_to_install(problem, monkeypatch):
    monkeypatch.setitem(sys.modules, 'clarabel', None)
    with pytest.raises(InertialEstimationError):
        solve_semidefinite(problem)


def test_a_spent_budget_is_said(problem):
    assert solve_semidefinite(problem, time_limit=0.0).grade is Grade.STOPPED


def test_the_objective_of_the_program_is_the_stated_one(problem, rng):
    program = BodyProgram.of(problem, 0.3, PriorTerm.PULLBACK, None)
    z = rng.normal(size=program.n)
    x = problem.prior_point() + program.to_x @ z
    stated = objective(problem, x, 0.3, PriorTerm.PULLBACK)
    assert program.rows.squared_residual(z) / 2 == pytest.approx(stated)


def test_vectors_have_the_inner_product_of_matrices(rng):
    A, B = rng.normal(size=(2, 3, 5, 5))
    A, B = A + np.swapaxes(A, 1, 2), B + np.swapaxes(B, 1, 2)
    np.testing.assert_allclose(
        np.sum(vector(A) * vector(B), axis=-1), np.trace(A @ B, axis1=1, axis2=2)
    )
    np.testing.assert_allclose(matrix(vector(A)), A)


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


@pytest.fixture
def light_last(rng):
    """Return a problem of links from ten kilogrammes to a few grammes, with much noise."""
    masses = np.geomspace(10.0, 0.005, 4)
    prior = np.zeros((4, 10))
    prior[:, 0] = masses
    length = 0.3 * (masses / 10.0) ** (1 / 3)
    prior[:, [4, 6, 9]] = (0.1 * masses * length**2)[:, None]
    rows = rng.normal(size=(60, 40))
    y = rows @ (1.3 * prior).reshape(-1)
    noise = 0.02 * np.std(y)
    unknowns = Unknowns(tuple(f'link_{k}' for k in range(4)))
    information = Information.of(rows / noise, y / noise + rng.normal(size=60))
    return Problem.of(unknowns, information, prior)


@pytest.mark.parametrize('term', PriorTerm)
def test_light_links_keep_their_margin_too(light_last, term):
    found = solve_semidefinite(light_last, prior=term)
    root = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(light_last.prior)))
    seen = root @ pseudo_inertia(found.parameters) @ np.swapaxes(root, -1, -2)
    assert found.consistent
    assert np.linalg.eigvalsh(seen).min() > 0.99 * MARGIN


def test_a_prior_that_misses_by_far_does_not_spoil_the_grade(unknowns, rows, truth, prior, rng):
    noise = 1e-4 * np.std(rows @ truth)
    y = (rows @ truth) / noise + rng.normal(size=len(rows))
    problem = Problem.of(unknowns, Information.of(rows / noise, y), prior)
    low = np.tile([0.0, np.inf], (len(prior), 1))
    low[0] = 1.001 * truth[0], np.inf
    found = solve_semidefinite(replace(problem, bounds=Bounds(mass=low)))
    assert found.grade is Grade.OPTIMAL and found.notes == ()


def program_of(problem):
    """Return a program with rows only, and bounds of its variables below by -1."""
    program = BodyProgram.of(problem, 0.3, PriorTerm.PULLBACK, None)
    G = csc_array(np.eye(program.n))
    return program, Block(('each',) * program.n, Kind.NONNEGATIVE, G, np.ones(program.n))


def test_the_gap_counts_what_is_left_of_the_gradient(problem):
    program, block = program_of(problem)
    least = program.unconstrained()
    z = 1.01 * least
    above = program.above(z, [block], [np.zeros(program.n)])
    assert above >= program.objective(z) - program.objective(least) > 0.0


def test_the_gap_counts_multipliers_of_what_is_not_at_its_bound(problem):
    program, _ = program_of(problem)
    z = 1.01 * program.unconstrained()
    gradient = program.gradient(z)
    # Multipliers that make up the whole gradient, at bounds that are far away.
    signs = np.where(gradient >= 0.0, 1.0, -1.0)
    h = np.abs(z) + 1e-2
    block = Block(('each',) * program.n, Kind.NONNEGATIVE, csc_array(np.diag(signs)), h)
    above = program.above(z, [block], [np.abs(gradient)])
    assert above >= program.objective(z) - program.objective(program.unconstrained()) > 0.0
    far = replace(problem, energy=problem.energy + 1e12)
    program = BodyProgram.of(far, 0.3, PriorTerm.PULLBACK, None)
    expected = float(np.abs(gradient) @ (signs * z + h))
    assert program.above(z, [block], [np.abs(gradient)]) == pytest.approx(expected, rel=1e-3)


def test_huge_links_are_told(problem):
    heavy = replace(problem, target=1e3 * problem.target)
    notes = solve_semidefinite(heavy, prior=PriorTerm.NONE).notes
    assert any(note.startswith('each as heavy as') for note in notes)


def test_almost_proven_is_not_proven():
    # The second bound gives way only where the second variable is 1e5.
    for far, feasible in ((0.0, False), (1e-5, True)):
        G = csc_array(np.array([[1.0, 0.0], [-1.0, far]]))
        block = Block(('least', 'greatest'), Kind.NONNEGATIVE, G, np.array([-2.0, 1.0]))
        for curvature in (csc_array((2, 2)), csc_array(np.eye(2))):
            assert minimise(curvature, np.zeros(2), [block]).feasible is feasible


def test_the_order_of_bounds_of_the_total_mass_is_checked(problem):
    with pytest.raises(ModelError):
        solve_semidefinite(bounded(problem, total_mass=np.array([5.0, 4.0])))


def test_ellipsoids_with_some_nan_are_refused(problem):
    Q = np.full((len(problem.prior), 4, 4), np.nan)
    Q[1, 0, 0] = 1.0
    with pytest.raises(ModelError):
        bounded(problem, ellipsoids=Q)


@pytest.mark.parametrize('name', sorted(SOLVERS))
def test_no_rows_at_all_are_a_problem_too(unknowns, prior, name):
    none = Problem(unknowns, np.zeros((0, len(unknowns))), np.zeros(0), 0.0, 1.0, prior)
    found = SOLVERS[name](none)
    np.testing.assert_allclose(found.parameters, prior, atol=1e-2)


def test_what_is_outside_is_drawn_to_the_edge_and_nothing_else(problem, rng):
    program = BodyProgram.of(problem, 0.3, PriorTerm.PULLBACK, None)
    bodies = body_block(
        problem.unknowns, problem.prior, program.maps, program.n, Consistency.FULL, MARGIN
    )
    z = np.zeros(program.n)
    z[10:20] = 3.0 * rng.normal(size=10)
    z[20:30] = 0.01 * rng.normal(size=10)
    drawn = drawn_inside(bodies, z)
    np.testing.assert_array_equal(np.delete(drawn, slice(10, 20)), np.delete(z, slice(10, 20)))
    link = problem.prior[1] + program.maps[1] @ drawn[10:20]
    root = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(problem.prior[1])))
    seen = np.linalg.eigvalsh(root @ pseudo_inertia(link) @ root.T)
    assert seen.min() == pytest.approx(MARGIN, rel=1e-3)
    np.testing.assert_allclose(drawn[10:20] * z[10], z[10:20] * drawn[10])


def test_multipliers_that_leave_too_much_prove_nothing():
    G = csc_array(np.array([[1.0], [-1.0]]))
    block = Block(('least', 'greatest'), Kind.NONNEGATIVE, G, np.array([-2.0, 1.0]))
    assert _contradict([block], [np.array([1.0, 1.0])])
    assert not _contradict([block], [np.array([1.0, 1.0 + 1e-5])])
    # Multipliers outside of the dual cone count as what they are inside.
    assert not _contradict([block], [np.array([1.0, -1.0])])


def test_what_the_solver_leaves_outside_does_not_stay_there():
    """A draw where its last digits put the lighter of two links beyond its margin."""
    rng = np.random.default_rng(34)
    masses = np.array([10.0, 0.02])
    prior = np.zeros((2, 10))
    prior[:, 0] = masses
    prior[:, [4, 6, 9]] = (0.1 * masses * (0.3 * (masses / 10.0) ** (1 / 3)) ** 2)[:, None]
    rows = rng.normal(size=(12, 20))
    y = rows @ (1.3 * prior).reshape(-1)
    noise = 0.02 * np.std(y)
    information = Information.of(rows / noise, y / noise + rng.normal(size=12))
    problem = Problem.of(Unknowns(('heavy', 'light')), information, prior)
    found = solve_semidefinite(problem, prior=PriorTerm.NONE)
    assert found.grade is Grade.OPTIMAL and found.consistent
    root = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(prior)))
    seen = root @ pseudo_inertia(found.parameters) @ np.swapaxes(root, -1, -2)
    assert np.linalg.eigvalsh(seen).min() > 0.9 * MARGIN
