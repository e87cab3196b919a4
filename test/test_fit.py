# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Fits of whole robots, and FT offsets that submodels share.

Not covered: gains of drives.
"""

from dataclasses import replace

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample

from inertial_estimation.errors import ModelError
from inertial_estimation.identification import fit as fit_module
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.identification.evidence import friction_scales, gather
from inertial_estimation.identification.fit import (
    AGREEMENT,
    NOISE_PRIOR_WEIGHT,
    Submodel,
    determined_by_others,
    disagreement,
    fit,
)
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.noise import NoiseLevels, noise_levels
from inertial_estimation.identification.priors import entropic_model, prior_of_method
from inertial_estimation.identification.problem import Bounds
from inertial_estimation.identification.solvers.divergence import entropic_divergence, whitening
from inertial_estimation.identification.solvers.methods import SOLVERS, Distance
from inertial_estimation.identification.solvers.semidefinite import PriorTerm
from inertial_estimation.identification.unknowns import FT_OFFSET, Extra, Term, Unknowns
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


def test_noise_search_uses_the_prior_of_the_fit(scene, monkeypatch):
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


def test_before_is_the_prior_with_extras_fitted(scene):
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


OFFSET = np.array([3.0, -2.0, 4.0, 0.4, 0.2, -0.3])
NOISE = np.array([0.5, 0.5, 0.5, 0.05, 0.05, 0.05])
WEIGHT = 1e-2
# Round-off of eliminations, over the size of what is compared.
JOINT = 1e-9
# Of offsets by methods whose bodies constraints hold, which a quadratic prior knows nothing of;
# far below the deviations that are stated, 0.02 of the largest offset here.
NEARLY = 1e-3
# Of the objective of the entropic prior, over its value: far below what any noise changes.
LEAST = 1e-9


@pytest.fixture(scope='module')
def shared_scene():
    """Return a robot and evidence of readings with offsets and noise."""
    rng = np.random.default_rng(1)
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    names = tuple(sensor.name for sensor in robot.ft_sensors)
    samples = SampleBatch.stack([random_sample(robot, rng) for _ in range(60)])
    plain = EquationBuilder(robot)
    external = {}
    for block, rows in zip(plain.blocks, plain.equations(samples), strict=True):
        x = robot.parameters[list(block.submodel.links)].ravel()
        link = robot.link_names[block.submodel.root]
        external[link] = np.stack([rows[c].Y @ x - rows[c].y for c in COMPONENTS], axis=1)
    noise = NOISE * rng.normal(size=samples.ft_readings.shape)
    told = replace(samples, ft_readings=samples.ft_readings + OFFSET + noise)
    builder = EquationBuilder(robot, EquationChoice(offsets=names))
    return robot, gather(builder, told, external=external)


def joint_solve(found, priors):
    """Return all unknowns of one least squares of all submodels, as for each of them."""
    n_links = [block.answer.unknowns.n_inertial for block in found.blocks]
    names = sorted({str(e) for block in found.blocks for e in block.answer.unknowns.extras})
    starts = np.cumsum([0, *n_links])
    n = starts[-1] + len(names)
    total = Information.empty(n)
    columns = []
    for start, block, prior in zip(starts[:-1], found.blocks, priors, strict=True):
        unknowns = block.answer.unknowns
        own = np.r_[
            start + np.arange(unknowns.n_inertial),
            [starts[-1] + names.index(str(extra)) for extra in unknowns.extras],
        ].astype(int)
        rows = block.noise.information
        for Y, y in ((rows.R, rows.rho), *prior):
            placed = np.zeros((len(Y), n))
            placed[:, own] = Y
            total = total.add(placed, y)
        columns.append(own)
    x = np.linalg.lstsq(total.R, total.rho, rcond=1e-11)[0]
    return [x[own] for own in columns]


def quadratic(found, robot, method):
    """Return rows of the prior of each submodel."""
    rows = []
    for block in found.blocks:
        unknowns = block.answer.unknowns
        prior = found.prior[list(block.evidence.block.submodel.links)]
        Y = np.zeros((unknowns.n_inertial, len(unknowns)))
        for k, one in enumerate(prior):
            own = slice(10 * k, 10 * k + 10)
            Y[own, own] = (
                np.eye(10) if method == 'euclidean' else np.linalg.inv(whitening([one]))[0]
            )
        Y *= np.sqrt(WEIGHT * block.noise.information.count)
        rows.append([(Y, Y @ unknowns.join(prior))])
    return rows


@pytest.mark.parametrize('method', ['pullback', 'euclidean'])
def test_linear_methods_give_the_joint_answer(shared_scene, method):
    robot, evidence = shared_scene
    found = fit(robot, evidence, method, {'weight': WEIGHT})
    for block, x in zip(
        found.blocks, joint_solve(found, quadratic(found, robot, method)), strict=True
    ):
        size = np.abs(x).max()
        np.testing.assert_allclose(block.answer.x, x, rtol=0, atol=JOINT * size)


def test_least_squares_predict_as_the_joint_answer(shared_scene):
    robot, evidence = shared_scene
    found = fit(robot, evidence, 'least_squares')
    joint = joint_solve(found, [[]] * len(found.blocks))
    for block, x in zip(found.blocks, joint, strict=True):
        R = block.information.R
        size = np.abs(R @ x).max()
        np.testing.assert_allclose(R @ block.answer.x, R @ x, rtol=0, atol=JOINT * size)


@pytest.mark.parametrize('method', SOLVERS)
def test_submodels_agree(shared_scene, method):
    robot, evidence = shared_scene
    found = fit(robot, evidence, method)
    left = disagreement([(block.answer.unknowns, block.answer.x) for block in found.blocks])
    most = {
        'semidefinite': NEARLY,
        'mass_points': NEARLY,
        'entropic': AGREEMENT,
        'manifold': AGREEMENT,
    }
    assert left <= most.get(method, JOINT)
    for block in found.blocks:
        for name, value in block.answer.extras.items():
            term = name.rsplit('.', 1)[1]
            k = [one.value for one in FT_OFFSET].index(term)
            assert abs(value - OFFSET[k]) < 8 * NOISE[k]


def test_what_one_submodel_knows_helps_the_other(shared_scene):
    robot, evidence = shared_scene
    both = fit(robot, evidence, 'least_squares').blocks
    alone = [fit(robot, [one], 'least_squares').blocks[0] for one in evidence]
    for one, other in zip(both, alone, strict=True):
        n = one.answer.unknowns.n_inertial
        assert (one.answer.deviations[n:] <= other.answer.deviations[n:]).all()
    unsure = [
        np.isinf(block.answer.deviations[block.answer.unknowns.n_inertial :]) for block in alone
    ]
    assert any(some.any() for some in unsure)
    assert not any(
        np.isinf(block.answer.deviations[block.answer.unknowns.n_inertial :]).any()
        for block in both
    )


def test_the_entropic_answer_is_the_joint_minimum(shared_scene, rng):
    """No step of the shared offsets, with the best bodies for them, is better."""
    robot, evidence = shared_scene
    found = fit(robot, evidence, 'entropic', {'weight': WEIGHT})

    def objective(points):
        total = 0.0
        for block, x in zip(found.blocks, points, strict=True):
            rows = block.noise.information
            n = block.answer.unknowns.n_inertial
            prior = found.prior[list(block.evidence.block.submodel.links)]
            divergence = entropic_divergence(x[:n].reshape(-1, 10), prior).sum()
            total += 0.5 * rows.squared_residual(x) + WEIGHT * rows.count * divergence
        return total

    best = [block.answer.x for block in found.blocks]
    least = objective(best)
    names = sorted({str(e) for block in found.blocks for e in block.answer.unknowns.extras})
    for _ in range(20):
        step = dict(zip(names, 1e-2 * rng.normal(size=len(names)), strict=True))
        moved = []
        for block, x in zip(found.blocks, best, strict=True):
            own = block.answer.unknowns
            by = 1e-3 * np.abs(x[: own.n_inertial]) * rng.normal(size=own.n_inertial)
            moved.append(x + np.r_[by, [step[str(extra)] for extra in own.extras]])
        assert objective(moved) >= least * (1.0 - LEAST)


def test_offsets_are_told_in_the_order_of_each_submodel(rng):
    """Of three in a row; the one in the middle names its sensors the other way round."""
    extras = {name: Extra(name, FT_OFFSET[0]) for name in 'abc'}
    rows = [
        (Unknowns(('one',), (extras['a'],)), 11),
        (Unknowns(('two',), (extras['b'], extras['a'])), 12),
        (Unknowns(('three',), (extras['c'], extras['b'])), 12),
    ]
    truth = {'a': 1.0, 'b': -2.0, 'c': 5.0}
    submodels = []
    for unknowns, n in rows:
        x = np.r_[rng.normal(size=10), [truth[extra.of] for extra in unknowns.extras]]
        Y = rng.normal(size=(40, n))
        submodels.append(Submodel(unknowns, Information.of(Y, Y @ x), None))
    for one, said in zip(submodels, determined_by_others(submodels), strict=True):
        offsets = [truth[extra.of] for extra in one.unknowns.extras]
        x = np.r_[np.zeros(10), offsets]
        assert said.count == 0.0
        assert said.squared_residual(x) < JOINT
        known = [extra.of != 'c' for extra in one.unknowns.extras]
        told = np.linalg.norm(said.R[:, 10:], axis=0) > JOINT
        np.testing.assert_array_equal(told, known)


def test_other_unknowns_have_the_prior_of_the_fit():
    unknowns = Unknowns(('one',), (Extra('j', Term.VISCOUS), Extra('s', FT_OFFSET[0])))
    body = np.array([[1.0, 0, 0, 0, 0.1, 0, 0.1, 0, 0, 0.1]])
    scales = np.array([0.5, np.inf])
    found = prior_of_method(Distance.PULLBACK, {}, unknowns, body, body, scales, 9.0)
    x = np.r_[body[0], 2.0, 7.0]
    assert found.squared_residual(x) == pytest.approx(9.0 * (2.0 / 0.5) ** 2)
    for term in ('none', PriorTerm.NONE):
        options = {'prior': term}
        assert (
            prior_of_method(Distance.PULLBACK, options, unknowns, body, body, scales, 9.0) is None
        )
    options = {'prior': 'euclidean', 'scales': np.full((1, 10), 0.1)}
    found = prior_of_method(Distance.PULLBACK, options, unknowns, body, body, None, 1.0)
    assert found.squared_residual(x + 0.2 * np.eye(12)[3]) == pytest.approx(4.0)
