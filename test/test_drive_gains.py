# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Gains of drives from currents, with a payload of known mass or an FT sensor.

Not covered: reading logs and settings, which `test_identify_payloads` does.
"""

from dataclasses import replace

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf
from simulated_arm import efforts_of

from inertial_estimation import EquationBuilder, EquationChoice, Robot
from inertial_estimation.errors import LogError
from inertial_estimation.identification.equations.payloads import Payload
from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.fit import fit
from inertial_estimation.identification.information import weighted_sum
from inertial_estimation.identification.unknowns import OF_A_JOINT, gain_columns
from inertial_estimation.logs.fit_findings import fit_findings
from inertial_estimation.model.inertia import inertia_seen_from, parameters_of, spatial_inertia

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


def test_known_payload_determines_gains_parameters_and_friction(arm, rng):
    found, gains, _ = identified(*currents(arm, payload(), rng))
    np.testing.assert_allclose(gains, GAINS, rtol=EXACT)
    (block,) = found.blocks
    links = arm.parameters[list(arm.submodels[0].links)].reshape(-1)
    truth = np.concatenate([links, FRICTION.reshape(-1), GAINS, DISC[1:]])
    for part in block.evidence.kinds.values():
        lacking = part.R @ (block.answer.x - truth)
        assert np.linalg.norm(lacking) < EXACT * np.linalg.norm(part.R * truth)


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
