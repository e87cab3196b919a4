# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Masses at points identify a humanoid from the wrench on its base link, as in A's Table V.

A's robot is another one; the relations between methods are compared with A's, not the figures.
An iCub without FT cuts, 33 links. Its true parameters are those of its model and of three more
masses in the box of each link, as of cables and boards, which the prior does not contain.
"""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from simulated_arm import swinging
from test_geometry import to_unit

from inertial_estimation import EquationBuilder, Problem, Robot, SampleBatch, Unknowns
from inertial_estimation.identification.information import Information, weighted_sum
from inertial_estimation.identification.solvers.answer import MIN_WEIGHT
from inertial_estimation.identification.solvers.mass_points import (
    composition,
    link_grids,
    solve_mass_points,
)
from inertial_estimation.identification.solvers.methods import solve_least_squares
from inertial_estimation.model.geometry import link_shapes
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.simulation.description import demo_package, icub_urdf

MODEL = 'iCubGenova02'
"""The one of icub-models whose inertias are those of its shapes, not enlarged for simulators."""
DURATION, RATE = 60, 50
"""Of each motion [s, Hz]."""
NOISE = np.array([2.0, 2.0, 2.0, 0.5, 0.5, 0.5])
"""Standard deviation of the measured wrench [N, Nm]."""
FREQUENCIES = 0.13, 0.31, 0.57, 0.93
"""Of the waves that a motion is the sum of [Hz]."""
WITH_AND_WITHOUT, WORSE = 0.05, 0.40
"""A's Table V: forces differ by less between (A) and (D), and from least squares."""
NOISE_ERROR = 0.1
"""Of root mean squares of 3000 values of noise."""


def wrenches(robot, truth, rng):
    """Return the equations of each component of the base link's wrench in a motion [A 33]."""
    n = len(robot.joint_names)
    motion = swinging(rng, DURATION, RATE, n + 6, waves=(FREQUENCIES, 0.05, 0.15))
    signals = motion.positions, motion.velocities, motion.accelerations
    q, v, a = (np.split(one, [n, n + 3], axis=1) for one in signals)
    # The attitude need not belong to the rates: gravity only has to come from all around.
    proper = Rotation.from_rotvec(q[1]).inv().apply(0.2 * a[2] - robot.gravity)
    samples = SampleBatch(
        motion.stamp_ns, q[0], v[0], a[0], v[1][:, None], proper[:, None], a[1][:, None],
        motion.ft_readings,
    )  # fmt: skip
    (kinds,) = EquationBuilder(robot).equations(samples)
    return [
        Information.of(rows.Y, rows.Y @ truth.reshape(-1) + noise * rng.normal(size=len(rows.Y)))
        for rows, noise in zip(kinds.values(), NOISE, strict=True)
    ]


@pytest.fixture(scope='module')
def experiment():
    """Return the problem of one motion, grids of the links, the truth and another motion."""
    pytest.importorskip('icub_models')
    rng = np.random.default_rng(0)
    share = Path(demo_package('icub_models').get_models_path()).parent.parent
    robot = Robot.from_urdf(icub_urdf(MODEL), ft_sensors=[], imus=['root_link'])
    shapes = link_shapes(robot, [share]).by_link
    grids = link_grids(robot.link_names, robot.parameters, shapes)
    truth = np.array(robot.parameters)
    for row, grid in zip(truth, grids, strict=True):
        places = grid.box.from_unit(rng.uniform(-0.8, 0.8, (3, 3)))
        row += composition(places) @ (row[0] * rng.uniform(0.0, 0.1, 3))
    seen, unseen = (wrenches(robot, truth, rng) for _ in range(2))
    rows = weighted_sum(seen, 1.0 / NOISE)
    problem = Problem.of(Unknowns(robot.link_names), rows, np.array(robot.parameters))
    return SimpleNamespace(problem=problem, grids=grids, truth=truth, seen=seen, unseen=unseen)


def test_equations_determine_all_base_parameters_of_33_links(experiment):
    assert len(experiment.grids) == 33
    assert all(len(grid.points) == 27 and grid.source == 'collision' for grid in experiment.grids)
    strengths = np.linalg.svd(experiment.problem.factor, compute_uv=False)
    assert strengths[233] > 1e-4 * strengths[0] > 1e6 * strengths[234]


def rms(rows, x):
    """Return the root mean square residual of each component of the wrench, (6,)."""
    return np.array([np.sqrt(one.squared_residual(x.reshape(-1)) / one.count) for one in rows])


def test_relations_of_methods_are_those_of_table_5(experiment):
    problem, grids, truth = experiment.problem, experiment.grids, experiment.truth
    answers = with_prior, plain, prior, without = (
        solve_mass_points(problem, grids=grids).parameters,
        solve_least_squares(problem).parameters,
        problem.prior,
        solve_mass_points(problem, grids=grids, weight=MIN_WEIGHT).parameters,
    )

    def inside(x):
        return [row[0] > 0 and (np.abs(to_unit(grid.box, row[1:4] / row[0])) <= 1.0).all()
                for grid, row in zip(grids, x, strict=True)]  # fmt: skip

    for x in (with_prior, prior, without):
        assert (consistency_margin(x) > 0).all() and all(inside(x))
    assert (consistency_margin(plain) > 0).sum() < 10 and not all(inside(plain))
    # The prior does not disturb the fit.
    for rows in (experiment.seen, experiment.unseen):
        assert np.abs(rms(rows, with_prior) / rms(rows, without) - 1.0).max() < WITH_AND_WITHOUT
    unseen = [rms(experiment.unseen, x) for x in answers]
    assert (unseen[0] < (1.0 + WORSE) * unseen[1]).all()
    # The masses that the prior lacks show most in the vertical force, as in A's table.
    assert unseen[2][2] > 10.0 * unseen[0][2]
    # Another motion is predicted to its noise.
    np.testing.assert_allclose(unseen[0], NOISE, rtol=NOISE_ERROR)
    true = [replace(one, rho=one.R @ truth.reshape(-1), energy=0.0) for one in experiment.unseen]
    assert (rms(true, with_prior) < rms(true, plain)).all()
    errors = [np.abs(x[:, 0] - truth[:, 0]).mean() for x in answers]
    assert errors[0] < min(errors[1:])
