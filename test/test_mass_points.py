# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Masses at points of the links' shapes, and what they can and cannot be [A].

What every method must do is in test_solver_contract. Not covered: how long it takes.
"""

from dataclasses import replace

import numpy as np
import pytest
from identification_problems import humanoid_case
from scipy.spatial.transform import Rotation

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Bounds, Grade, Problem
from inertial_estimation.identification.solvers.divergence import parameters_of
from inertial_estimation.identification.solvers.mass_points import (
    box_grid,
    link_grids,
    solve_mass_points,
)
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.geometry import CORNERS, Box, Shape
from inertial_estimation.model.inertia import pseudo_inertia

ROUND_OFF = 1e-12  # of sums of products of parameters
EXACT = 1e-8  # an exact active set, after round-off of a condition of the problem of about 1e6
NOISE = 20.0
CUBE = Box(np.eye(4), np.ones(3))


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


@pytest.fixture
def case(rng):
    return humanoid_case(rng)


@pytest.mark.parametrize('hulls', [False, True])
def test_shape_without_volume_is_refused_by_link(box, hulls):
    around = CUBE if hulls else Box(np.eye(4), np.array([1.0, 1.0, 0.0]))
    flat = Shape(CORNERS * [1, 1, 0], around, 'visual')
    with pytest.raises(ModelError, match='arm'):
        link_grids(('arm',), even(box, 1.0)[None], {'arm': flat}, hulls=hulls)


def test_shape_goes_before_config_before_prior(box):
    prior = np.array([even(box, 2.0)] * 3)
    shapes = {'a': Shape(CORNERS, CUBE, 'visual')}
    grids = link_grids(('a', 'b', 'c'), prior, shapes, configured=dict.fromkeys('ab', CUBE))
    assert [grid.source for grid in grids] == ['visual', 'config', 'cuboid']
    # The cuboid with the prior's inertia is the one that it is made of [M 25].
    found, expected = (
        np.sort(np.abs(points - box.L_H_S[:3, 3]).max(axis=0))
        for points in (grids[2].points, box.corners)
    )
    np.testing.assert_allclose(found, expected, atol=1e-9)


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
    assert len(result.notes) == 2 and 'arm' in result.notes[0]
    assert (
        solve_mass_points(problem, grids=[box_grid(box, 9)]).mean_square < 0.1 * result.mean_square
    )
