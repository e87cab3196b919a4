# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Fits of whole robots: FT offsets that submodels share, then gains of drives from currents."""

from dataclasses import replace
from functools import reduce
from itertools import product

import numpy as np
import pytest
from identification_problems import CONSISTENT, DISTANCES
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample
from simulated_arm import efforts_of

from bench.live_robots import smooth_motion, with_readings
from inertial_estimation import Bounds, EquationBuilder, EquationChoice, Robot, SampleBatch
from inertial_estimation.errors import LogError, ModelError
from inertial_estimation.identification.equations.payloads import Payload
from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.identification.evidence import Evidence, gather
from inertial_estimation.identification.fit import AGREEMENT, disagreement, fit
from inertial_estimation.identification.information import Information, weighted_sum
from inertial_estimation.identification.solvers.divergence import ENTROPIC
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.identification.unknowns import FT_OFFSET, OF_A_JOINT, gain_columns
from inertial_estimation.logs.fit_findings import fit_findings
from inertial_estimation.model.ft_calibration import WRENCH_SCALE
from inertial_estimation.model.inertia import inertia_seen_from, parameters_of, spatial_inertia
from inertial_estimation.simulation.description import icub_urdf

# Of sums of squares of some hundred equations, and of eliminations.
ROUND_OFF = 1e-9


@pytest.fixture(scope='module')
def arm_and_efforts():
    """Return an arm on a table and noisy efforts, which do not depend on its base."""
    rng = np.random.default_rng(1)
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base', ft_sensors=[])
    samples = SampleBatch.stack([random_sample(robot, rng) for _ in range(80)])
    samples = replace(samples, efforts=5.0 * rng.normal(size=samples.positions.shape))
    builder = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names))
    return robot, gather(builder, samples)


@pytest.mark.parametrize('method', SOLVERS)
def test_links_without_equations_keep_every_bit(arm_and_efforts, method):
    robot, evidence = arm_and_efforts
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


def test_bounds_move_links_without_equations(arm_and_efforts):
    robot, evidence = arm_and_efforts
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


def shared_offsets(seed, samples_of, matrix_error=0.0, n_logs=1):
    """Return a robot and equations of readings with errors of matrices, offsets and noise."""
    rng = np.random.default_rng(seed)
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    names = tuple(sensor.name for sensor in robot.ft_sensors)
    plain, builder = EquationBuilder(robot), EquationBuilder(robot, EquationChoice(offsets=names))
    logs = [samples_of(robot, rng) for _ in range(n_logs)]
    about = np.concatenate([log.ft_readings for log in logs]).mean(axis=0)
    E = matrix_error * rng.normal(size=(len(names), 6, 6))
    parts = []
    for log in logs:
        external = {}
        for block, rows in zip(plain.blocks, plain.equations(log), strict=True):
            x = robot.parameters[list(block.submodel.links)].ravel()
            link = robot.link_names[block.submodel.root]
            external[link] = np.stack([rows[c].Y @ x - rows[c].y for c in COMPONENTS], axis=1)
        loads = (log.ft_readings - about) / WRENCH_SCALE
        errors = OFFSET + WRENCH_SCALE * np.einsum('kab,nkb->nka', E, loads)
        errors += NOISE * rng.normal(size=loads.shape)
        log = replace(log, ft_readings=log.ft_readings + errors)
        parts.append(gather(builder, log, about=about + OFFSET, external=external))
    return robot, [reduce(Evidence.merge, blocks) for blocks in zip(*parts, strict=True)]


def everywhere(robot, rng):
    return SampleBatch.stack([random_sample(robot, rng) for _ in range(60)])


def near_a_pose(robot, rng):
    """Return samples of a slow and small motion, in which the load follows the joints."""
    samples = SampleBatch.stack([random_sample(robot, rng)] * 400)
    moved = rng.uniform(-1.0, 1.0, samples.positions.shape)
    slopes = (
        30.0 * rng.normal(size=(moved.shape[1], *samples.ft_readings.shape[1:])) * WRENCH_SCALE
    )
    return replace(
        samples,
        positions=samples.positions + 0.3 * moved,
        ft_readings=samples.ft_readings + np.einsum('nj,jka->nka', moved, slopes),
    )


@pytest.fixture(scope='module')
def shared_scene():
    """Return a robot and equations of readings with offsets and noise."""
    return shared_offsets(1, everywhere)


def offset_errors(robot, evidence):
    """Return errors of all offsets over their deviations."""
    answers = [block.answer for block in fit(robot, evidence, 'least_squares').blocks]
    return [
        abs(value - OFFSET[FT_OFFSET.index(extra.term)]) / deviation
        for one in answers
        for extra, value, deviation in zip(
            one.unknowns.extras, one.extras.values(), one.deviations[one.unknowns.n_inertial :]
        )
    ]


@pytest.mark.parametrize(('matrix_error', 'n_logs'), [(0.0, 1), (0.05, 1), (0.05, 4)])
def test_errors_of_ft_matrices_count_in_deviations(matrix_error, n_logs):
    """Also where logs, each near a pose of its own, are merged."""
    stated, by_noise = [], []
    for seed in range(2, 12):
        robot, evidence = shared_offsets(seed, near_a_pose, matrix_error, n_logs)
        stated += offset_errors(robot, evidence)
        by_noise += offset_errors(robot, [replace(one, matrices={}) for one in evidence])
    stated, by_noise = np.array(stated), np.array(by_noise)
    # Normal numbers have 0.95; matrices of few sensors are drawn, so it scatters by 0.05.
    assert np.mean(stated < 2.0) > 0.85
    if matrix_error:
        assert np.mean(by_noise < 2.0) < 0.5
    else:
        # Deviations stay near those of noise where there is no other error.
        assert np.median(by_noise / stated) < 1.1


@pytest.mark.parametrize('error', [0.0, 0.03, 0.2])
def test_errors_of_ft_matrices_are_found_on_separate_limbs(error):
    """Readings are noisy, and a gain of each limb explains all of them."""
    pytest.importorskip('icub_models', reason='needs the URDF of icub-models')
    rng = np.random.default_rng(3)
    robot = Robot.from_urdf(icub_urdf(), fixed_link='root_link')
    names = tuple(sensor.name for sensor in robot.ft_sensors)
    samples = with_readings(robot, smooth_motion(robot, 20.0, 20.0), robot.parameters)
    loads, count = samples.ft_readings.copy(), len(names)
    E = error * rng.normal(size=(count, 6, 6)) * WRENCH_SCALE[:, None] / WRENCH_SCALE
    samples.ft_readings[:] += np.einsum('kab,nkb->nka', E, loads)
    samples.ft_readings[:] += 0.1 * WRENCH_SCALE * rng.normal(size=loads.shape)
    about = samples.ft_readings.mean(axis=0)
    # In the other direction, from readings to loads, about their mean.
    offsets = np.stack([e @ np.linalg.solve(np.eye(6) + e, at) for e, at in zip(E, about)])
    builder = EquationBuilder(robot, EquationChoice(offsets=names))
    # The pole holds the root link.
    evidence = gather(builder, samples, about=about)[1:]
    shares, growths = [], []
    for block in fit(robot, evidence).blocks:
        unknowns, x = block.answer.unknowns, block.answer.x
        links = list(block.evidence.block.submodel.links)
        extras = [offsets[names.index(e.of), FT_OFFSET.index(e.term)] for e in unknowns.extras]
        away = x - unknowns.join(robot.parameters[links], np.array(extras))
        shares += (np.abs(away) / block.answer.deviations).tolist()
        by_matrices = np.linalg.norm(block.by_matrices, axis=1)
        growths += (by_matrices / block.answer.deviations).tolist()
    assert np.mean(np.array(shares) < 2.0) > 0.9
    assert np.median(growths) > 0.5 if error else np.max(growths) < 0.3


def test_offsets_that_are_not_determined_have_no_value():
    def at_rest(robot, rng):
        return SampleBatch.stack([random_sample(robot, rng)] * 60)

    for block in fit(*shared_offsets(1, at_rest), 'least_squares').blocks:
        values, unknowns = list(block.answer.extras.values()), block.answer.unknowns
        is_known = np.isfinite(block.answer.deviations[unknowns.n_inertial :])
        assert not is_known.all()
        np.testing.assert_array_equal(np.isfinite(values), is_known)


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


JOINTS = ('shoulder', 'elbow', 'lift')
GAINS = np.array([12.0, 0.5, 3.0])
FRICTION = np.array([[0.7, 0.4, -0.1, 0.2], [0.2, 0.3, 0.05, 0.1], [1.0, 0.5, 0.2, 0.3]])
DISC = np.array([2.0, 0.1, -0.06, 0.2, 0.042, 0.004, 0.055, -0.012, 0.009, 0.032])
"""Parameters of a payload of 2 kg about its frame."""
# Round-off of equations whose scale is determined by a payload that is a small part of them.
EXACT = 1e-8


@pytest.fixture
def arm():
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base', ft_sensors=[])


def payload(mass=2.0):
    return Payload('disc', 'tip', mass)


def loaded(robot, body):
    """Return a robot with a payload as a part of the link that carries it."""
    link, L_H_F = robot.frame(body.frame)
    whole = DISC * body.mass / DISC[0]
    parameters = robot.parameters.copy()
    parameters[link] += parameters_of(inertia_seen_from(spatial_inertia(whole), L_H_F))
    return robot.with_parameters(parameters)


def currents(robot, body, rng, noise=0.0):
    """Return samples whose efforts are currents, and when the payload was there."""
    choice = EquationChoice(
        efforts=JOINTS, payloads=(body,), gains=JOINTS, friction=OF_A_JOINT, sign_width=0.3
    )
    builder = EquationBuilder(robot, choice)
    samples = builder.random_samples(int(rng.integers(1000)))
    there = (np.arange(len(samples)) % 2.0)[:, None]
    found = np.where(
        there > 0, efforts_of(loaded(robot, body), samples), efforts_of(robot, samples)
    )
    v, a = samples.velocities, samples.accelerations
    found += np.einsum('knj,jk->nj', np.stack([v, np.tanh(v / 0.3), np.ones_like(v), a]), FRICTION)
    found /= GAINS
    found += noise * found.std(axis=0) * rng.normal(size=found.shape)
    return builder, replace(samples, efforts=found), there


def identified(builder, samples, there):
    """Return the fit, and the gains and their deviations."""
    found = fit(builder.robot, gather(builder, samples, carried=there), 'least_squares')
    answer = found.blocks[0].answer
    columns = gain_columns(answer.unknowns)
    return found, answer.x[columns], answer.deviations[columns]


def test_payload_beyond_an_ft_sensor_is_a_part_of_its_link(arm_with_wrist_sensor):
    robot, body = arm_with_wrist_sensor, payload()
    builder = EquationBuilder(robot, EquationChoice(efforts=JOINTS, payloads=(body,)))
    samples = builder.random_samples()
    carried = builder.equations(samples, carried=np.ones((len(samples), 1)))
    heavy = loaded(robot, body)
    plain = EquationBuilder(heavy, EquationChoice(efforts=JOINTS)).equations(samples)
    assert [len(block.payloads) for block in builder.blocks] == [0, 1]
    for block, own, others in zip(builder.blocks, carried, plain, strict=True):
        links = list(block.submodel.links)
        x = robot.parameters[links].reshape(-1)
        if block.payloads:
            x = np.append(x, DISC[1:])
        for kind, (Y, y, _) in own.items():
            expected = others[kind].Y @ heavy.parameters[links].reshape(-1) - others[kind].y
            np.testing.assert_allclose(Y @ x - y, expected, atol=EXACT * np.abs(expected).max())


def test_ft_sensor_or_a_known_torque_determines_gains(arm, arm_with_wrist_sensor, rng):
    builder = EquationBuilder(arm_with_wrist_sensor, EquationChoice(efforts=JOINTS, gains=JOINTS))
    samples = builder.random_samples()
    samples.efforts[:] = efforts_of(arm_with_wrist_sensor, samples) / GAINS
    np.testing.assert_allclose(identified(builder, samples, None)[1], GAINS, rtol=EXACT)
    builder, samples, there = currents(arm, payload(), rng)
    choice = replace(builder.choice, payloads=(), gains=JOINTS[:2])
    samples.efforts[:, 2] *= GAINS[2]
    unloaded = samples.take(np.flatnonzero(there[:, 0] == 0))
    _, gains, _ = identified(EquationBuilder(arm, choice), unloaded, None)
    np.testing.assert_allclose(gains, GAINS[:2], rtol=EXACT)


def test_gains_with_noise_are_unbiased_within_deviations(arm, rng):
    """With the current as a column, least squares would shrink them."""
    scores, shrunk = [], []
    for _ in range(30):
        found, values, deviations = identified(*currents(arm, payload(), rng, noise=0.1))
        (block,) = found.blocks
        scores.append((values - GAINS) / deviations)
        weights = [1 / s for s in block.noise.deviations.values()]
        rows = weighted_sum(block.evidence.kinds.values(), weights)
        plain = np.linalg.lstsq(rows.R, rows.rho, rcond=1e-10)[0]
        shrunk.append((plain[gain_columns(block.answer.unknowns)] - GAINS) / deviations)
    # Thirty runs: the mean of their scores is known to 0.18, their size to a tenth.
    assert np.abs(np.mean(scores, axis=0)).max() < 0.6
    assert 0.7 < np.sqrt(np.mean(np.square(scores))) < 1.3
    assert np.mean(shrunk, axis=0).max() < -1.0


@pytest.mark.parametrize('wrong', ['drive', 'prior'])
def test_signs_of_gains_are_those_that_fit_best(arm, wrong):
    """A drive of negative sign, or a prior whose links are metres off."""
    builder, samples, there = currents(arm, payload(), np.random.default_rng(0))
    sign = np.array([1.0, -1.0 if wrong == 'drive' else 1.0, 1.0])
    samples.efforts[:] *= sign
    if wrong == 'prior':
        prior, moved = arm.parameters.copy(), np.tile(np.eye(4), (len(arm.links), 1, 1))
        moved[:, :3, 3] = 3.0 * np.random.default_rng(2).normal(size=(len(prior), 3))
        for row, pose in zip(prior, moved, strict=True):
            row[:] = parameters_of(inertia_seen_from(spatial_inertia(row), pose))
        builder = EquationBuilder(arm.with_parameters(prior), builder.choice)
    found, gains, _ = identified(builder, samples, there)
    (block,) = found.blocks
    assert (block.before[gain_columns(block.answer.unknowns)] < 0.0).any()
    np.testing.assert_allclose(gains, sign * GAINS, rtol=EXACT)


def test_light_payload_leaves_gains_uncertain(arm, rng):
    spreads = []
    for mass, uncertain in ((2.0, False), (0.005, True)):
        found, _, deviations = identified(*currents(arm, payload(mass), rng, noise=0.1))
        spreads.append(deviations)
        names = {one.subject for one in fit_findings(found)}
        assert [f'{name}.drive_gain' in names for name in JOINTS] == [uncertain] * 3
    assert (spreads[1] > 10 * spreads[0]).all()


def test_payload_of_unknown_mass_needs_torques(arm, rng):
    builder, samples, there = currents(arm, payload(), rng)
    choice = replace(builder.choice, payloads=(payload(None),))
    with pytest.raises(LogError):
        identified(EquationBuilder(arm, choice), samples, there)
    builder = EquationBuilder(arm, replace(choice, gains=()))
    samples = replace(samples, efforts=samples.efforts * GAINS)
    found, *_ = identified(builder, samples, there)
    np.testing.assert_allclose(found.payloads['disc'], DISC, atol=EXACT)
