# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Masses at points of the links' shapes, and what they can and cannot be [A].

What every method must do is in test_solver_contract. Not covered: how long it takes, which the
benchmark of a humanoid prints.
"""

from dataclasses import replace

import numpy as np
import pytest
from identification_problems import humanoid_case
from scipy.optimize import nnls
from scipy.spatial.transform import Rotation

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Bounds, Problem
from inertial_estimation.identification.result import Grade
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.solvers import bounded_least_squares
from inertial_estimation.identification.solvers.bounded_least_squares import (
    BoundedProblem,
    fit_bounded,
)
from inertial_estimation.identification.solvers.constraints import LinearBounds
from inertial_estimation.identification.solvers.mass_points import solve_mass_points
from inertial_estimation.identification.solvers.point_grids import (
    box_grid,
    composition,
    hull_grid,
    link_grids,
    mass_errors,
    middle_bodies,
    prior_roots,
    to_box,
)
from inertial_estimation.identification.solvers.principal_bodies import PrincipalBodies
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.geometry import CORNERS, Box, Shape
from inertial_estimation.model.inertia import consistency_margin, pseudo_inertia

pytest.importorskip('clarabel')

# Sums of products of parameters.
ROUND_OFF = 1e-12
# An exact active set, after round-off of a condition of the problem of about 1e6.
EXACT = 1e-8
# Pull of the regularization on what rows determine, at its default.
PULL = 1e-3
NOISE = 20.0
TIGHT = 1e-9


def turned_box(half_lengths=(0.1, 0.2, 0.3)) -> Box:
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec([0.3, -0.2, 0.9]).as_matrix()
    pose[:3, 3] = [0.5, -0.1, 0.2]
    return Box(pose, np.array(half_lengths))


def even(box: Box, mass: float) -> np.ndarray:
    """Return the parameters of a box of even density, shape (10,)."""
    return PrincipalBodies(
        np.array([mass]),
        box.L_H_S[None, :3, 3],
        box.L_H_S[None, :3, :3],
        mass * box.half_lengths[None] ** 2 / 3,
    ).parameters[0]


@pytest.fixture
def case(rng):
    """Return rows of a small humanoid, with a prior that is 10 % off."""
    return humanoid_case(rng)


@pytest.fixture
def noisy(case, rng):
    """Return its problem with much noise."""
    return case.problem(NOISE * rng.normal(size=len(case.y)))


# The points.


def test_masses_make_up_the_pseudo_inertia_of_points(rng):
    points, masses = rng.normal(size=(5, 3)), rng.uniform(size=5)
    homogeneous = np.column_stack([points, np.ones(5)])
    expected = (homogeneous * masses[:, None]).T @ homogeneous
    found = pseudo_inertia(composition(points) @ masses)
    np.testing.assert_allclose(found, expected, atol=ROUND_OFF)


@pytest.mark.parametrize('per_axis', [3, 4])
def test_points_of_a_box_fill_it_evenly(per_axis):
    box = turned_box()
    grid = box_grid(box, per_axis)
    assert len(grid.points) == per_axis**3
    assert np.linalg.matrix_rank(grid.P) == 10
    unit = box.to_unit(grid.points)
    np.testing.assert_allclose(unit.min(axis=0), -1.0, atol=ROUND_OFF)
    np.testing.assert_allclose(unit.max(axis=0), 1.0, atol=ROUND_OFF)
    np.testing.assert_allclose(unit.mean(axis=0), 0.0, atol=ROUND_OFF)


def test_points_of_a_hull_are_inside_it_and_reach_its_ends():
    tetrahedron = np.array([[0, 0, 0], [0.3, 0, 0], [0, 0.3, 0], [0, 0, 0.3]])
    grid = hull_grid(Shape(tetrahedron, Box.around(tetrahedron), 'collision'), 5)
    assert np.linalg.matrix_rank(grid.P) == 10
    assert grid.points.min() >= -TIGHT and grid.points.sum(axis=1).max() <= 0.3 + TIGHT
    for corner in tetrahedron:
        assert np.linalg.norm(grid.points - corner, axis=1).min() < TIGHT


@pytest.mark.parametrize(
    ('shape', 'said'),
    [
        (Shape(CORNERS * [1, 1, 0], Box(np.eye(4), np.ones(3)), 'visual'), 'flat'),
        (Shape(CORNERS, Box(np.eye(4), np.array([1.0, 1.0, 0.0])), 'visual'), 'holds no body'),
    ],
)
def test_shapes_without_volume_are_refused_by_name(shape, said):
    hulls = said == 'flat'
    with pytest.raises(ModelError):
        link_grids(('arm',), even(turned_box(), 1.0)[None], {'arm': shape}, hulls=hulls)


def test_shape_goes_before_config_before_prior():
    prior = np.array([even(turned_box(), 2.0)] * 3)
    shape = Shape(CORNERS, Box(np.eye(4), np.ones(3)), 'visual')
    configured = {name: Box(np.eye(4), np.full(3, 2.0)) for name in 'ab'}
    grids = link_grids(('a', 'b', 'c'), prior, {'a': shape}, configured=configured)
    assert [grid.source for grid in grids] == ['visual', 'config', 'cuboid']
    # The cuboid with the prior's inertia is the one that it is made of [M 25].
    found = np.sort(np.abs(grids[2].points - turned_box().L_H_S[:3, 3]).max(axis=0))
    expected = np.sort(np.abs(turned_box().corners - turned_box().L_H_S[:3, 3]).max(axis=0))
    np.testing.assert_allclose(found, expected, atol=1e-9)


# The prior of a box.


def test_parameters_about_a_box_are_those_of_the_body_there():
    box = turned_box()
    about = to_box(box) @ even(box, 3.0)
    x, y, z = box.half_lengths**2
    expected = [3, 0, 0, 0, y + z, 0, x + z, 0, 0, x + y]
    np.testing.assert_allclose(about, expected, atol=ROUND_OFF)


def test_the_middle_of_the_bounds_is_a_body_in_the_box():
    masses = np.array([1.0, 10.0])
    grids = [box_grid(turned_box()), box_grid(turned_box())]
    np.testing.assert_array_equal(mass_errors(masses), [2.0, 5.0])
    bodies = middle_bodies(grids, masses)
    assert (consistency_margin(bodies) > 0).all()
    # Between max(0, m - dm) and m + dm.
    np.testing.assert_allclose(bodies[:, 0], [1.5, 10.0])
    about = to_box(turned_box()) @ bodies[1]
    x, y, z = turned_box().half_lengths ** 2
    np.testing.assert_allclose(about[1:4], 0.0, atol=ROUND_OFF)
    np.testing.assert_allclose(about[[4, 6, 9]], 7.5 * np.array([y + z, x + z, x + y]))


def test_weights_are_inverse_squares_of_the_distance_to_the_farther_bound():
    grid, mass = box_grid(turned_box()), 10.0
    prior = even(turned_box(), mass)
    (root,) = prior_roots([grid], prior[None])
    change = np.linalg.inv(to_box(turned_box()))
    for column, size in ((0, 5.0), (1, 15.0 * 0.1), (5, 15.0 * 0.1 * 0.2)):
        moved = root @ change[:, column] * size
        assert np.linalg.norm(moved) == pytest.approx(1.0)


# The solver of the masses.


def bounded(rng, bounds=None, n=6, k=20) -> BoundedProblem:
    """Return a small problem of non-negative variables, with bounds of its unknowns."""
    A, X = rng.normal(size=(n, n)), rng.normal(size=(n, k))
    none = LinearBounds(np.zeros((0, n)), np.zeros(0), ())
    return BoundedProblem(
        A, rng.normal(size=n), X, np.full(k, 0.01), rng.normal(size=k), np.zeros(k), bounds or none
    )


def test_it_is_exact(rng):
    fit = bounded(rng)
    found = fit_bounded(fit, 4000, np.inf)
    root = np.sqrt(fit.d)
    rows = np.vstack([fit.A @ fit.X, np.diag(root)])
    expected, _ = nnls(rows, np.append(fit.b, root * fit.v0))
    np.testing.assert_allclose(found.v, expected, atol=EXACT)
    assert found.optimality < ROUND_OFF and not found.stopped


@pytest.mark.parametrize('rows', [0, 3])
def test_interior_point_finds_the_same_active_set(rng, monkeypatch, rows):
    free = bounded(rng)
    C = rng.normal(size=(rows, 6))
    limits = C @ (free.X @ np.ones(20)) - 0.1
    fit = replace(free, bounds=LinearBounds(C, limits, ('row',) * rows))
    expected = fit_bounded(fit, 4000, np.inf)
    assert expected.iterations < bounded_least_squares.ROUNDS
    monkeypatch.setattr(bounded_least_squares, 'ROUNDS', 1)
    found = fit_bounded(fit, 4000, np.inf)
    np.testing.assert_allclose(found.v, expected.v, atol=EXACT)
    assert found.optimality < ROUND_OFF


@pytest.mark.parametrize('total', [0.98, 1.0])
@pytest.mark.parametrize('seed', [51, 52, 53])
def test_many_bounds_that_compete_are_met(seed, total):
    """
    Masses, their total, and tight boxes of all centres: guesses go in circles.

    A total that is known exactly leaves no room inside its two bounds.
    """
    rng = np.random.default_rng(seed)
    case = humanoid_case(rng, off=0.15)
    mass, first = case.parameters[:, 0], case.parameters[:, 1:4]
    center = first / mass[:, None]
    bounds = Bounds(
        mass=np.stack([0.9 * mass, 1.1 * mass], axis=1),
        total_mass=np.array([total, 1.0]) * mass.sum(),
        center_of_mass=np.stack([center - 0.02, center + 0.02], axis=1),
    )
    problem = case.problem(NOISE * rng.normal(size=len(case.y)))
    result = solve_mass_points(replace(problem, bounds=bounds))
    assert result.consistent and result.grade is Grade.OPTIMAL
    found = result.parameters
    assert (np.abs(found[:, 0] / mass - 1.0) <= 0.1 + EXACT).all()
    assert total - EXACT <= found[:, 0].sum() / mass.sum() <= 1.0 + EXACT
    assert (np.abs(found[:, 1:4] / found[:, :1] - center) <= 0.02 + EXACT).all()
    assert result.optimality < ROUND_OFF * 100


def test_bounds_of_unknowns_hold_with_their_multipliers(rng):
    rows = rng.normal(size=(3, 6))
    free = bounded(np.random.default_rng(3))
    x = free.X @ fit_bounded(free, 4000, np.inf).v
    # The first two must give way, the third does not matter; the second is there twice.
    limits = rows @ x + [0.1, 0.2, -1.0]
    twice = [0, 1, 1, 2]
    bounds = LinearBounds(rows[twice], limits[twice], ('a', 'b', 'b again', 'c'))
    fit = replace(free, bounds=bounds)
    found = fit_bounded(fit, 4000, np.inf)
    slack = bounds.slack(fit.X @ found.v)
    np.testing.assert_allclose(slack[:3], 0.0, atol=EXACT)
    assert slack[3] > 0.0 and found.v.min() >= 0.0
    assert found.optimality < EXACT
    for _ in range(20):
        other = np.maximum(found.v + 1e-3 * rng.normal(size=len(found.v)), 0.0)
        if bounds.slack(fit.X @ other).min() >= 0.0:
            assert objective(fit, other) >= objective(fit, found.v)


def objective(fit: BoundedProblem, v: np.ndarray) -> float:
    residual = fit.A @ (fit.X @ v) - fit.b
    return (residual @ residual + fit.d @ (v - fit.v0) ** 2) / 2


# The method.


def test_centres_of_mass_are_in_their_boxes_and_bodies_consistent(noisy):
    grids = link_grids(noisy.unknowns.links, noisy.prior, {})
    result = solve_mass_points(noisy, grids)
    assert result.grade is Grade.OPTIMAL and result.consistent
    for grid, parameters in zip(grids, result.parameters, strict=True):
        inside = grid.box.to_unit(parameters[1:4] / parameters[0])
        assert np.abs(inside).max() < 1.0


def test_the_prior_does_not_disturb_what_rows_determine(case):
    """(A 32): base parameters of least squares, the rest from the prior."""
    few = case.problem()
    heavy = solve_mass_points(few, weight=1e3)
    light = solve_mass_points(few, weight=1e-3)
    space = RowSpace.of(few.factor)
    for result in (heavy, light):
        error = few.factor @ result.x - few.target
        assert np.linalg.norm(error) < PULL * np.linalg.norm(few.target)
    # Mass moves between links that rows do not tell apart only as far as the prior says.
    base = [space.directions.T @ (space.scales * result.x) for result in (heavy, light)]
    np.testing.assert_allclose(base[0], base[1], rtol=PULL, atol=PULL * np.abs(base[0]).max())


def test_a_base_map_says_what_the_prior_leaves_alone(case):
    n = case.unknowns.n_inertial
    one, two = (
        solve_mass_points(case.problem(), weight=1e5, base_map=base_map)
        for base_map in (None, np.zeros((1, n)))
    )
    # With nothing to leave alone the prior draws everything.
    distance = [np.linalg.norm(result.parameters - case.prior) for result in (one, two)]
    assert distance[1] < 0.5 * distance[0]
    assert two.mean_square > 10.0 * one.mean_square


def test_compact_bodies_off_centre_cannot_be_represented():
    """The least spread is |s| (1 - |s|) d^2 along each axis, and the notes tell."""
    box = Box(np.eye(4), np.array([0.1, 0.1, 0.1]))
    place = 0.5
    compact = PrincipalBodies(
        np.ones(1), np.array([[place * 0.1, 0.0, 0.0]]), np.eye(3)[None], np.full((1, 3), 1e-5)
    ).parameters
    rows = Information.of(1e3 * np.eye(10), 1e3 * compact[0])
    problem = Problem.of(Unknowns(('arm',)), rows, compact)
    grid = box_grid(box)
    result = solve_mass_points(problem, [grid])
    assert result.consistent and result.grade is Grade.OPTIMAL
    spread = pseudo_inertia(result.parameters[0])[0, 0]
    mass, first = result.parameters[0, :2]
    share = first / mass / 0.1
    assert spread - first**2 / mass >= mass * share * (1 - share) * 0.01 - ROUND_OFF
    assert len(result.notes) == 2 and 'arm' in result.notes[0]
    finer = solve_mass_points(problem, [box_grid(box, 9)])
    assert finer.mean_square < 0.1 * result.mean_square


def test_bounds_are_met(noisy):
    free = solve_mass_points(noisy)
    n = len(free.parameters)
    mass = np.tile([-np.inf, np.inf], (n, 1))
    mass[1, 0] = free.parameters[1, 0] + 0.1
    box = np.tile([[-np.inf], [np.inf]], (n, 1, 3)).reshape(n, 2, 3)
    center = free.parameters[2, 3] / free.parameters[2, 0]
    box[2, 1, 2] = center - 0.01
    total = np.array([0.0, free.parameters[:, 0].sum() - 0.2])
    extras = np.array([[-np.inf, np.inf], [0.1, 0.2]])
    bounds = Bounds(mass=mass, center_of_mass=box, total_mass=total, extras=extras)
    result = solve_mass_points(replace(noisy, bounds=bounds))
    assert result.grade is Grade.OPTIMAL and result.consistent
    found = result.parameters
    assert found[1, 0] >= mass[1, 0] - EXACT
    assert found[2, 3] / found[2, 0] <= box[2, 1, 2] + EXACT
    assert found[:, 0].sum() <= total[1] + EXACT
    assert 0.1 - EXACT <= result.x[-1] <= 0.2 + EXACT


def test_bounds_that_contradict_each_other_are_named(noisy):
    n = len(noisy.prior)
    mass = np.tile([-np.inf, np.inf], (n, 1))
    mass[1, 0] = 50.0
    bounds = Bounds(mass=mass, total_mass=np.array([0.0, 40.0]))
    with pytest.raises(ModelError) as caught:
        solve_mass_points(replace(noisy, bounds=bounds))
    assert 'total mass' in str(caught.value)


def test_a_budget_ends_with_an_answer_that_is_consistent(noisy):
    result = solve_mass_points(noisy, time_limit=1e-9)
    assert result.consistent and result.grade is not Grade.OPTIMAL


def test_extras_without_rows_stay_at_their_prior(case):
    silent = case.Y.copy()
    silent[:, -1] = 0.0
    problem = replace(
        replace(case, Y=silent, y=silent @ case.truth).problem(),
        prior_extras=np.array([1.0, 0.7]),
    )
    result = solve_mass_points(problem)
    assert result.x[-1] == pytest.approx(0.7)
    assert result.x[-2] == pytest.approx(case.truth[-2], rel=PULL)


def test_the_prior_leaves_alone_only_what_rows_tell_whatever_the_extras(case):
    """A row that an unknown offset takes up tells of no link."""
    n = case.unknowns.n_inertial
    rows = np.zeros((1, len(case.unknowns)))
    rows[0, [0, n]] = 1.0
    problem = Problem.of(case.unknowns, Information.of(rows, np.array([100.0])), case.prior)
    result = solve_mass_points(problem, weight=1e3)
    np.testing.assert_allclose(result.parameters, case.prior, rtol=PULL, atol=PULL)
    assert rows[0] @ result.x == pytest.approx(100.0, rel=PULL)
