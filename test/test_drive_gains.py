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

from inertial_estimation.errors import LogError
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.equations.payloads import Payload
from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.fit import fit
from inertial_estimation.identification.information import weighted_sum
from inertial_estimation.identification.problem import Bounds
from inertial_estimation.identification.unknowns import Term, gain_columns
from inertial_estimation.logs.fit_findings import uncertain_gains
from inertial_estimation.model.rigid_body import inertia_seen_from, parameters_of, spatial_inertia
from inertial_estimation.model.robot import Robot

GEARED = ('shoulder', 'elbow', 'lift')
GAINS = np.array([12.0, 0.5, 3.0])
FRICTION = np.array([[0.7, 0.4, -0.1, 0.2], [0.2, 0.3, 0.05, 0.1], [1.0, 0.5, 0.2, 0.3]])
FULL = {'center_of_mass': (0.05, -0.03, 0.1), 'inertia': (0.02, 0.001, 0.03, -0.002, 0.003, 0.025)}
# Round-off of rows whose scale is told by a payload that is a small part of them.
EXACT = 1e-8


def arm(**options):
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base', **options)


def payload(mass=2.0, **known):
    return Payload('disc', 'tip', mass, **known)


def heavier(robot, body):
    """Return a robot with a payload as a part of the link that carries it."""
    link, L_H_F = robot.frame(body.frame)
    whole = payload(body.mass, **FULL).known()
    parameters = robot.parameters.copy()
    parameters[link] += parameters_of(inertia_seen_from(spatial_inertia(whole), L_H_F))
    return robot.with_parameters(parameters)


def currents(robot, body, rng, noise=0.0):
    """Return samples whose efforts are currents, and when the payload was there."""
    choice = EquationChoice(efforts=robot.joint_names, payloads=(body,), gains=robot.joint_names,
                       joint=JointModel(sign_width=0.3))  # fmt: skip
    builder = EquationBuilder(robot, choice)
    samples = builder.random_samples(int(rng.integers(1000)))
    there = np.arange(len(samples)) % 2.0
    samples = replace(samples, efforts=np.zeros_like(samples.velocities))
    efforts = np.zeros((2, *samples.velocities.shape))
    for k, one in enumerate((robot, heavier(robot, body))):
        plain = EquationBuilder(one, EquationChoice(efforts=robot.joint_names)).equations(samples)[
            0
        ]
        links = one.parameters[list(one.submodels[0].links)].reshape(-1)
        efforts[k] = np.transpose(
            [plain[f'effort {name}'].Y @ links - plain[f'effort {name}'].y
             for name in robot.joint_names]
        )  # fmt: skip
    torques = np.where(there[:, None] > 0, efforts[1], efforts[0])
    for j in range(len(robot.joint_names)):
        columns = choice.joint.columns(samples.velocities[:, j], samples.accelerations[:, j])
        torques[:, j] += columns @ FRICTION[j]
    found = torques / GAINS
    found += noise * found.std(axis=0) * rng.normal(size=found.shape)
    return builder, replace(samples, efforts=found), there[:, None]


def identified(builder, samples, there, method='least_squares', bounds=None, **options):
    evidence = gather(builder, samples, carried=there)
    return fit(builder.robot, evidence, method, options, bounds).blocks[0]


def gains_of(block):
    columns = gain_columns(block.answer.unknowns)
    return block.answer.x[columns], block.answer.deviations[columns]


@pytest.mark.parametrize('known', [{}, {'center_of_mass': FULL['center_of_mass']}, FULL])
def test_a_payload_of_known_mass_tells_gains_bodies_and_friction(rng, known):
    robot, body = arm(ft_sensors=[]), payload(**known)
    builder, samples, there = currents(robot, body, rng)
    block = identified(builder, samples, there)
    np.testing.assert_allclose(gains_of(block)[0], GAINS, rtol=EXACT)
    unknown = np.isnan(body.known())
    truth = np.concatenate(
        [robot.parameters[list(robot.submodels[0].links)].reshape(-1), FRICTION.reshape(-1),
         GAINS, payload(**FULL).known()[unknown]]
    )  # fmt: skip
    for part in block.evidence.kinds.values():
        lacking = part.R @ (block.answer.x - truth)
        assert np.linalg.norm(lacking) < EXACT * np.linalg.norm(part.R * truth)


def test_a_payload_beyond_an_ft_sensor_is_a_part_of_its_link(rng):
    robot, body = arm(), payload()
    builder = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names, payloads=(body,)))
    samples = builder.random_samples()
    loaded = builder.equations(samples, carried=np.ones((len(samples), 1)))
    heavy = heavier(robot, body)
    plain = EquationBuilder(heavy, EquationChoice(efforts=robot.joint_names)).equations(samples)
    for block, own, others in zip(builder.blocks, loaded, plain, strict=True):
        links = list(block.submodel.links)
        x = robot.parameters[links].reshape(-1)
        if block.payloads:
            x = np.append(x, payload(**FULL).known()[1:])
        for kind, (Y, y, _) in own.items():
            expected = others[kind].Y @ heavy.parameters[links].reshape(-1) - others[kind].y
            np.testing.assert_allclose(Y @ x - y, expected, atol=EXACT * np.abs(expected).max())
    assert [len(block.payloads) for block in builder.blocks] == [0, 1]


def test_an_ft_sensor_tells_gains(rng):
    robot = arm()
    builder, samples, _ = currents(robot, payload(), rng)
    builder = EquationBuilder(robot, replace(builder.choice, payloads=()))
    plain = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names)).equations(
        replace(samples, efforts=np.zeros_like(samples.efforts))
    )[0]
    links = robot.parameters[list(robot.submodels[0].links)].reshape(-1)
    for j, name in enumerate(robot.joint_names):
        columns = builder.choice.joint.columns(
            samples.velocities[:, j], samples.accelerations[:, j]
        )
        torque = plain[f'effort {name}'].Y @ links - plain[f'effort {name}'].y
        samples.efforts[:, j] = (torque + columns @ FRICTION[j]) / GAINS[j]
    np.testing.assert_allclose(gains_of(identified(builder, samples, None))[0], GAINS, rtol=EXACT)


def test_gains_with_noise_are_unbiased_within_deviations(rng):
    """With the current as a column, least squares would shrink them."""
    robot, scores, shrunk = arm(ft_sensors=[]), [], []
    for _ in range(30):
        builder, samples, there = currents(robot, payload(), rng, noise=0.1)
        block = identified(builder, samples, there)
        values, deviations = gains_of(block)
        scores.append((values - GAINS) / deviations)
        rows = weighted_sum(
            block.evidence.kinds.values(), [1 / s for s in block.noise.deviations.values()]
        )
        plain = np.linalg.lstsq(rows.R, rows.rho, rcond=1e-10)[0]
        columns = gain_columns(block.answer.unknowns)
        shrunk.append((plain[columns] - GAINS) / deviations)
    # Thirty runs: the mean of their scores is known to 0.18, their size to a tenth.
    assert np.abs(np.mean(scores, axis=0)).max() < 0.6
    assert 0.7 < np.sqrt(np.mean(np.square(scores))) < 1.3
    assert np.mean(shrunk, axis=0).max() < -1.0


def test_a_light_payload_tells_gains_badly_and_says_so(rng):
    robot, spreads = arm(ft_sensors=[]), []
    for mass in (2.0, 0.02):
        builder, samples, there = currents(robot, payload(mass), rng, noise=0.02)
        spreads.append(gains_of(identified(builder, samples, there))[1])
    assert (spreads[1] > 10 * spreads[0]).all()


def test_gains_that_are_hardly_told_are_named(rng):
    for mass, hardly in ((2.0, False), (0.005, True)):
        builder, samples, there = currents(arm(ft_sensors=[]), payload(mass), rng, noise=0.1)
        found = fit(builder.robot, gather(builder, samples, carried=there), 'least_squares')
        names = {one.subject for block in found.blocks for one in uncertain_gains(block, found)}
        assert [f'{name}.drive_gain' in names for name in GEARED] == [hardly] * 3


@pytest.mark.parametrize('known', [{}, FULL])
def test_a_payload_that_is_always_there_tells_no_gains(rng, known):
    """It may be a part of the link, and all else as large as one likes."""
    builder, samples, there = currents(arm(ft_sensors=[]), payload(**known), rng)
    with pytest.raises(LogError):
        identified(builder, samples, np.ones_like(there))


@pytest.mark.parametrize('there', [None, 'never'])
def test_without_a_payload_gains_are_refused(rng, there):
    builder, samples, loaded = currents(arm(ft_sensors=[]), payload(), rng)
    if there is None:
        builder = EquationBuilder(builder.robot, replace(builder.choice, payloads=()))
    with pytest.raises(LogError):
        identified(builder, samples, None if there is None else 0.0 * loaded)


def test_one_known_torque_tells_the_other_gains(rng):
    robot = arm(ft_sensors=[])
    builder, samples, there = currents(robot, payload(), rng)
    choice = replace(builder.choice, payloads=(), gains=('shoulder', 'elbow'))
    samples.efforts[:, 2] *= GAINS[2]
    unloaded = samples.take(np.flatnonzero(there[:, 0] == 0))
    block = identified(EquationBuilder(robot, choice), unloaded, None)
    np.testing.assert_allclose(gains_of(block)[0], GAINS[:2], rtol=EXACT)


def test_bounds_of_gains_are_kept(rng):
    builder, samples, there = currents(arm(ft_sensors=[]), payload(), rng, noise=0.02)
    extras = builder.blocks[0].unknowns.extras
    limits = np.tile([-np.inf, np.inf], (len(extras), 1))
    of_elbow = [str(extra) for extra in extras].index(f'elbow.{Term.DRIVE_GAIN.value}')
    limits[of_elbow] = 0.8, 2.0
    name = builder.blocks[0].submodel.name
    bounds = {name: Bounds(extras=limits)}
    free = gains_of(identified(builder, samples, there, 'entropic'))[0]
    kept = gains_of(identified(builder, samples, there, 'entropic', bounds))[0]
    assert free[1] == pytest.approx(GAINS[1], rel=0.1)
    assert kept[1] == pytest.approx(0.8, rel=1e-3)


def test_payload_of_unknown_mass_needs_torques(rng):
    robot, body = arm(ft_sensors=[]), payload(None)
    builder, samples, there = currents(robot, payload(), rng)
    unknown = EquationBuilder(robot, replace(builder.choice, payloads=(body,)))
    with pytest.raises(LogError):
        identified(unknown, samples, there)
    torques = replace(samples, efforts=samples.efforts * GAINS)
    choice = replace(builder.choice, payloads=(body,), gains=())
    evidence = gather(EquationBuilder(robot, choice), torques, carried=there)
    found = fit(robot, evidence, 'least_squares').payloads['disc']
    np.testing.assert_allclose(found, payload(**FULL).known(), atol=EXACT)
