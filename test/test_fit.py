# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Fits of whole robots, and FT offsets that submodels share.

Not covered: gains of drives.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from identification_problems import CONSISTENT, DISTANCES
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample

from inertial_estimation import Bounds, EquationBuilder, EquationChoice, Robot, SampleBatch
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.fit import AGREEMENT, disagreement, fit
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.solvers.divergence import ENTROPIC
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.identification.unknowns import FT_OFFSET

# Of sums of squares of some hundred equations, and of eliminations.
ROUND_OFF = 1e-9


@pytest.fixture(scope='module')
def arm():
    """Return an arm on a table and noisy efforts, which do not depend on its base."""
    rng = np.random.default_rng(1)
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base', ft_sensors=[])
    samples = SampleBatch.stack([random_sample(robot, rng) for _ in range(80)])
    samples = replace(samples, efforts=5.0 * rng.normal(size=samples.positions.shape))
    builder = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names))
    return robot, gather(builder, samples)


@pytest.mark.parametrize('method', SOLVERS)
def test_links_without_equations_keep_every_bit(arm, method):
    robot, evidence = arm
    found = fit(robot, evidence, method)
    assert found.blocks[0].links_seen == [False] + [True] * (len(robot.links) - 1)
    np.testing.assert_array_equal(found.parameters[0], robot.parameters[0])
    assert not (found.parameters[1:] == robot.parameters[1:]).all(axis=1).any()
    # Those without mass keep none in a URDF.
    parameters = robot.parameters.copy()
    parameters[0] = 0.0
    found = fit(robot.with_parameters(parameters), evidence, method)
    np.testing.assert_array_equal(found.described[0], parameters[0])
    np.testing.assert_array_equal(found.described[1:], found.parameters[1:])


def test_bounds_move_links_without_equations(arm):
    robot, evidence = arm
    mass = np.tile([0.0, np.inf], (len(robot.links), 1))
    mass[0] = 2.0 * robot.parameters[0, 0], np.inf
    name = evidence[0].block.submodel.name
    found = fit(robot, evidence, 'semidefinite', bounds={name: Bounds(mass=mass)})
    assert found.parameters[0, 0] == pytest.approx(mass[0, 0], rel=1e-5)


OFFSET = np.array([3.0, -2.0, 4.0, 0.4, 0.2, -0.3])
NOISE = np.array([0.5, 0.5, 0.5, 0.05, 0.05, 0.05])
WEIGHT = 4.0
# Of offsets by methods with constraints on the parameters, of which a quadratic prior holds none;
# far below their deviations, 0.02 of the largest offset here.
NEARLY = 1e-3


@pytest.fixture(scope='module')
def shared_scene():
    """Return a robot and equations of readings with offsets and noise."""
    rng = np.random.default_rng(1)
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    names = tuple(sensor.name for sensor in robot.ft_sensors)
    samples = SampleBatch.stack([random_sample(robot, rng) for _ in range(60)])
    plain, external = EquationBuilder(robot), {}
    for block, rows in zip(plain.blocks, plain.equations(samples), strict=True):
        x = robot.parameters[list(block.submodel.links)].ravel()
        link = robot.link_names[block.submodel.root]
        external[link] = np.stack([rows[c].Y @ x - rows[c].y for c in COMPONENTS], axis=1)
    noise = NOISE * rng.normal(size=samples.ft_readings.shape)
    samples = replace(samples, ft_readings=samples.ft_readings + OFFSET + noise)
    builder = EquationBuilder(robot, EquationChoice(offsets=names))
    return robot, gather(builder, samples, external=external)


@pytest.mark.parametrize('method', SOLVERS)
def test_submodels_agree_on_their_offsets(shared_scene, method):
    found = fit(*shared_scene, method)
    left = disagreement([(block.answer.unknowns, block.answer.x) for block in found.blocks])
    allowed = AGREEMENT if SOLVERS[method].distance is ENTROPIC else NEARLY
    assert left <= (allowed if method in CONSISTENT else ROUND_OFF)
    for block in found.blocks:
        for extra, value in zip(block.answer.unknowns.extras, block.answer.extras.values()):
            k = FT_OFFSET.index(extra.term)
            assert abs(value - OFFSET[k]) < 8 * NOISE[k]


def test_prior_is_judged_with_offsets_that_fit_it_best(shared_scene):
    """By the noise of each kind of equations, as the answer is."""
    for block in fit(*shared_scene).blocks:
        rows, n = block.noise.information, block.answer.unknowns.n_inertial
        slope = rows.R[:, n:].T @ (rows.R @ block.before - rows.rho)
        assert np.abs(slope).max() <= ROUND_OFF * np.linalg.norm(rows.R[:, n:]) * np.sqrt(
            rows.squared_residual(block.before)
        )


def test_submodel_of_too_few_equations_keeps_its_parameters(shared_scene):
    robot, (one, *others) = shared_scene
    few = Information.of(np.eye(len(one.block.unknowns))[:2], np.ones(2))
    short = replace(one, kinds={'few': few})
    found = fit(robot, [short, *others], 'least_squares')
    assert list(found.undetermined) == [one.block.submodel.name]
    assert len(found.blocks) == len(others)
    links = list(one.block.submodel.links)
    np.testing.assert_array_equal(found.parameters[links], robot.parameters[links])
    with pytest.raises(ModelError):
        fit(robot, [short], 'least_squares')


def test_neighbours_make_offsets_more_certain(shared_scene):
    robot, evidence = shared_scene

    def deviations(block):
        return block.answer.deviations[block.answer.unknowns.n_inertial :]

    both = [deviations(block) for block in fit(robot, evidence, 'least_squares').blocks]
    alone = [deviations(fit(robot, [one], 'least_squares').blocks[0]) for one in evidence]
    assert all((one <= other).all() for one, other in zip(both, alone, strict=True))
    assert any(np.isinf(one).any() for one in alone)
    assert not any(np.isinf(one).any() for one in both)


@pytest.mark.parametrize('method', ['entropic', 'pullback', 'euclidean', 'least_squares'])
@pytest.mark.parametrize('size', [1e-2, 1e-4])
def test_answer_is_the_joint_minimum(shared_scene, method, size):
    options = {} if method == 'least_squares' else {'weight': WEIGHT}
    found = fit(*shared_scene, method, options)
    priors = [found.prior[list(one.evidence.block.submodel.links)] for one in found.blocks]

    def objective(points):
        total = 0.0
        for block, prior, x in zip(found.blocks, priors, points, strict=True):
            parameters, _ = block.answer.unknowns.split(x)
            distance = DISTANCES[SOLVERS[method].distance.name](parameters, prior).sum()
            total += 0.5 * block.noise.information.squared_residual(x) + WEIGHT * distance
        return total

    best = [block.answer.x for block in found.blocks]
    least = objective(best)
    names = sorted({str(e) for block in found.blocks for e in block.answer.unknowns.extras})
    # To and from the prior, by which a wrong weight shows, and along each offset.
    for name, share in product(('prior', *names), (size, -size)):
        moved = []
        for block, prior, x in zip(found.blocks, priors, best, strict=True):
            step = 1.0 * (np.array(block.answer.unknowns.names) == name)
            if name == 'prior':
                step = block.answer.unknowns.join(prior - block.answer.parameters)
            moved.append(x + share * step)
        assert objective(moved) >= least * (1.0 - ROUND_OFF), name
