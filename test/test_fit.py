# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Evidence of a robot to answers of its submodels: noise, prior, what is told.

Not covered: offsets that submodels share, which `test_shared_offsets` has; logs, which
`test_identify` has.
"""

from dataclasses import replace

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample

from inertial_estimation.errors import ModelError
from inertial_estimation.identification import fit as fit_module
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.evidence import friction_scales, gather
from inertial_estimation.identification.fit import NOISE_PRIOR_WEIGHT, fit
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.noise import NoiseLevels, noise_levels
from inertial_estimation.identification.priors import entropic_model
from inertial_estimation.identification.problem import Bounds
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

# Of sums of squares of some hundred rows.
ROUND_OFF = 1e-9


@pytest.fixture(scope='module')
def scene():
    """Return a robot and noisy evidence of it, efforts with friction among it."""
    rng = np.random.default_rng(0)
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    samples = SampleBatch.stack([random_sample(robot, rng) for _ in range(80)])
    samples = replace(samples, efforts=rng.normal(size=samples.positions.shape))
    builder = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names, joint=JointModel()))
    return robot, gather(builder, samples)


def test_the_prior_takes_part_in_the_search_for_noise_as_in_the_fit(scene, monkeypatch):
    robot, evidence = scene
    given = []

    def spy(kinds, *, prior=None):
        given.append(prior)
        return noise_levels(kinds, prior=prior)

    monkeypatch.setattr(fit_module, 'noise_levels', spy)
    found = fit(robot, evidence, 'pullback', {'weight': 1e-4})
    for block, rows in zip(found.blocks, given, strict=True):
        count = sum(part.count for part in block.evidence.kinds.values())
        links = list(block.evidence.block.submodel.links)
        bodies, scales = found.prior[links], friction_scales(block.evidence)
        weight = min(1e-4 * count, NOISE_PRIOR_WEIGHT)
        expected = entropic_model(block.answer.unknowns, bodies, bodies, scales, weight)
        np.testing.assert_allclose(rows.R.T @ rows.R, expected.R.T @ expected.R, rtol=ROUND_OFF)


def test_before_is_the_prior_with_all_else_fitted_to_what_it_leaves(scene):
    robot, evidence = scene
    found = fit(robot, evidence, 'least_squares')
    fitted = [block for block in found.blocks if block.answer.unknowns.extras]
    assert fitted
    for block in fitted:
        n, rows = block.answer.unknowns.n_inertial, block.noise.information
        links = list(block.evidence.block.submodel.links)
        np.testing.assert_array_equal(block.before[:n], found.prior[links].ravel())
        gradient = rows.R.T @ (rows.R @ block.before - rows.rho)
        size = np.linalg.norm(rows.R, axis=0) * np.linalg.norm(rows.rho)
        assert (np.abs(gradient[n:]) <= ROUND_OFF * size[n:]).all()


@pytest.mark.parametrize('method', ['manifold', 'mass_points'])
def test_a_method_that_can_do_without_prior_does(scene, method):
    robot, evidence = scene
    found = fit(robot, evidence, method, {'weight': None})
    assert all(block.answer.consistent for block in found.blocks)


@pytest.fixture(scope='module')
def arm():
    """Return an arm on a table and noisy efforts; they do not see what stands on the table."""
    rng = np.random.default_rng(1)
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base', ft_sensors=[])
    samples = SampleBatch.stack([random_sample(robot, rng) for _ in range(80)])
    samples = replace(samples, efforts=5.0 * rng.normal(size=samples.positions.shape))
    return robot, gather(
        EquationBuilder(robot, EquationChoice(efforts=robot.joint_names)), samples
    )


@pytest.mark.parametrize('method', SOLVERS)
def test_links_that_no_row_sees_stay_as_they_are_to_the_bit(arm, method):
    robot, evidence = arm
    found = fit(robot, evidence, method)
    assert found.blocks[0].links_seen == [False] + [True] * (len(robot.links) - 1)
    np.testing.assert_array_equal(found.parameters[0], robot.parameters[0])
    assert not (found.parameters[1:] == robot.parameters[1:]).all(axis=1).any()


def test_links_that_no_row_sees_need_no_body(arm):
    robot, _ = arm
    parameters = robot.parameters.copy()
    parameters[0] = 0.0
    bare = robot.with_parameters(parameters)
    found = fit(bare, arm[1])
    assert found.consistent
    np.testing.assert_array_equal(found.described[0], parameters[0])
    np.testing.assert_array_equal(found.described[1:], found.parameters[1:])


def test_bounds_move_links_that_no_row_sees(arm):
    robot, evidence = arm
    heavy = np.tile([0.0, np.inf], (len(robot.links), 1))
    heavy[0] = 2.0 * robot.parameters[0, 0], np.inf
    name = evidence[0].block.submodel.name
    found = fit(robot, evidence, 'semidefinite', bounds={name: Bounds(mass=heavy)})
    assert found.parameters[0, 0] == pytest.approx(heavy[0, 0], rel=1e-5)


def test_kinds_without_noise_are_told_in_the_notes(scene):
    robot, evidence = scene
    one = evidence[-1]
    few = Information.of(np.eye(len(one.block.unknowns))[:2], np.ones(2))
    kind = next(iter(one.kinds))
    answer = fit(robot, [replace(one, kinds={**one.kinds, kind: few})], 'least_squares')
    assert kind in answer.blocks[0].answer.notes[0]


def test_a_submodel_of_too_few_rows_stays_as_it_was(scene):
    robot, evidence = scene
    one, *others = evidence
    few = Information.of(np.eye(len(one.block.unknowns))[:2], np.ones(2))
    short = replace(one, kinds={'few': few})
    whole = fit(robot, evidence, 'least_squares')
    found = fit(robot, [short, *others], 'least_squares')
    name = one.block.submodel.name
    assert list(found.undetermined) == [name]
    assert whole.undetermined == {}
    assert [block.name for block in found.blocks] == [block.name for block in whole.blocks][1:]
    links = list(one.block.submodel.links)
    np.testing.assert_array_equal(found.parameters[links], robot.parameters[links])
    with pytest.raises(ModelError):
        fit(robot, [short], 'least_squares')


def test_noise_that_does_not_settle_is_told(scene, monkeypatch):
    robot, evidence = scene

    def impatient(kinds, *, prior=None) -> NoiseLevels:
        return noise_levels(kinds, prior=prior, max_iterations=1)

    monkeypatch.setattr(fit_module, 'noise_levels', impatient)
    assert fit(robot, evidence).blocks[0].answer.notes
