# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Equations of samples against known parameters; their reduction and rank.

Not covered: filtering of logs.
"""

from dataclasses import replace

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample

from inertial_estimation import EquationBuilder, EquationChoice, FreeFloatingModel, Robot
from inertial_estimation.errors import ConfigError
from inertial_estimation.identification import evidence
from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.identification.evidence import determined, friction_scales, gather
from inertial_estimation.identification.information import weighted_sum
from inertial_estimation.identification.unknowns import OF_A_JOINT, Term
from inertial_estimation.model.representations import Representation
from inertial_estimation.model.sensor_models import floating_acceleration, sensor_readings
from inertial_estimation.sample import SampleBatch

# A few dozen transforms of forces of some hundred newton.
ROUND_OFF = 1e-9
# Orthogonal transforms and a few products, over the size of what they work on.
REDUCTION_ROUND_OFF = 1e-11
N = 12
FRAMES = ('sole', 'hand', 'head')
JOINTS = ('shoulder', 'elbow', 'lift')


def moving(robot, rng, frames=()):
    """Return samples of a robot that moves, with efforts, and the wrenches that act on it."""
    model, samples = FreeFloatingModel(robot), []
    wrenches = {frame: rng.normal(0.0, 20.0, (N, 6)) for frame in frames}
    left, fixed = Representation.LEFT, robot.fixed_frame
    for k in range(N):
        motion = random_sample(robot, rng)
        acting = {frame: wrench[k] for frame, wrench in wrenches.items()}
        v = np.zeros(6) if fixed else rng.normal(0.0, 1.0, 6)
        state = model.state(
            motion.positions, motion.velocities, None, v, base=fixed, representation=left
        )
        equations = state.equations(fixed, left)
        acceleration = np.concatenate([np.zeros(6), motion.accelerations])
        if not fixed:
            acceleration = floating_acceleration(state, motion.accelerations, acting)
        sample, _ = sensor_readings(state, equations, acceleration, acting)
        efforts = equations.inverse_dynamics(acceleration)
        for frame, wrench in acting.items():
            efforts = efforts - state.jacobian(frame, equations, left).T @ wrench
        samples.append(sample._replace(efforts=efforts[6:]))
    return SampleBatch.stack(samples), wrenches


def assert_solved(builder, samples, extras=(), **known):
    """Assert that the robot's parameters and extras of each block solve all equations."""
    found = builder.equations(samples, **known)
    extras = extras or [()] * len(found)
    for block, values, rows in zip(builder.blocks, extras, found, strict=True):
        parameters = builder.robot.parameters[list(block.submodel.links)]
        x = block.unknowns.join(parameters, np.array(values, dtype=float))
        assert set(rows) == set(block.kinds)
        for kind, (Y, y, _) in rows.items():
            assert len(y) == N
            np.testing.assert_allclose(Y @ x, y, rtol=0, atol=ROUND_OFF, err_msg=kind)


@pytest.fixture
def humanoid():
    return Robot.from_urdf(nested_humanoid_urdf(), imus=['hand', 'root'])


@pytest.fixture
def arm(arm_with_wrist_sensor):
    return arm_with_wrist_sensor


@pytest.mark.parametrize('held', ['root', 'shank'])
def test_submodel_that_the_ground_holds_has_no_wrench_equations(held, rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), fixed_link=held)
    samples, wrenches = moving(robot, rng, ['head'])
    builder = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names))
    assert_solved(builder, samples, external=wrenches)
    link = robot.frame(held)[0]
    for block in builder.blocks:
        assert (COMPONENTS[0] in block.kinds) == (link not in block.submodel.links)


def test_offsets_are_unknowns_of_both_neighbours(humanoid, rng):
    samples, wrenches = moving(humanoid, rng, FRAMES)
    offset = np.array([3.0, -2.0, 5.0, 0.3, 0.1, -0.2])
    samples.ft_readings[:] += offset
    names = tuple(sensor.name for sensor in humanoid.ft_sensors)
    choice = EquationChoice(efforts=humanoid.joint_names, offsets=names)
    builder = EquationBuilder(humanoid, choice)
    borders = [
        len(block.submodel.child_sensors) + (block.submodel.root_sensor >= 0)
        for block in builder.blocks
    ]
    assert_solved(builder, samples, [np.tile(offset, k) for k in borders], external=wrenches)
    kinds = sum(len(block.kinds) for block in builder.blocks)
    assert kinds == 6 * len(builder.blocks) + len(humanoid.joint_names)


def test_friction_and_drive_inertia_load_their_joint_and_coupled_drives_both(arm, rng):
    """Power of a coupled drive is its friction times the sum of both velocities."""
    samples, _ = moving(arm, rng)
    values, (viscous, coulomb, inertia) = rng.normal(size=(3, 4)), rng.normal(size=3)
    v, a = samples.velocities, samples.accelerations
    terms = np.stack([v, np.tanh(v / 0.3), np.ones_like(v), a])
    samples.efforts[:] += np.einsum('knj,jk->nj', terms, values)
    speed, change = v[:, :2].sum(axis=1), a[:, :2].sum(axis=1)
    drive = viscous * speed + coulomb * np.tanh(speed / 0.3) + inertia * change
    samples.efforts[:, :2] += drive[:, None]
    choice = EquationChoice(
        efforts=JOINTS, friction=OF_A_JOINT, sign_width=0.3, couplings=(JOINTS[:2],)
    )
    builder = EquationBuilder(arm, choice)
    names = [str(extra) for extra in builder.blocks[0].unknowns.extras]
    shared = ('viscous', 'coulomb', 'drive_inertia')
    assert names[-3:] == [f'shoulder+elbow.{term}' for term in shared]
    # Each of both joints has all of what its own motion takes from the drive.
    values[:2] += [viscous, 0.0, 0.0, inertia]
    assert_solved(builder, samples, [[*values.reshape(-1), viscous, coulomb, inertia], ()])
    scales = dict(zip(names, friction_scales(gather(builder, samples)[0]), strict=True))
    mean = (scales['shoulder.viscous'] + scales['elbow.viscous']) / 2
    assert scales['shoulder+elbow.viscous'] == pytest.approx(mean)
    for wrong in (('elbow', 'elbow'), ('elbow', 'tip')):
        with pytest.raises(ConfigError):
            EquationBuilder(arm, replace(choice, couplings=(wrong,)))


def test_missing_values_and_dead_zones_cost_their_own_equations(humanoid, rng):
    samples, wrenches = moving(humanoid, rng, FRAMES)
    wrenches['sole'][3] = np.nan
    samples.ft_readings[5, 0] = np.nan
    samples.velocities[7, humanoid.joint_names.index('neck')] = np.nan
    free = np.ones((N, len(humanoid.submodels)), dtype=bool)
    free[1, 0] = False
    slow = np.sum(np.abs(samples.velocities[:, humanoid.joint_names.index('knee')]) < 1.0)
    assert 0 < slow < N
    choice = EquationChoice(efforts=humanoid.joint_names, dead_zones={'knee': 1.0})
    builder = EquationBuilder(humanoid, choice)
    found = builder.equations(samples, external=wrenches, free=free)
    left = {
        (block.submodel.name, kind): row.left_out
        for block, rows in zip(builder.blocks, found, strict=True)
        for kind, row in rows.items()
    }
    assert left['foot', 'force_x'] == 1
    assert left['thigh', 'effort knee'] == slow
    assert left['upper_arm', 'force_x'] == 1  # its sensor
    assert left['root', 'force_x'] == 3  # the sensor, the neck, not free
    assert left['root', 'effort hip_joint'] == 1  # not free
    assert left['root', 'effort neck'] == 2
    rows = builder.equations(replace(samples, efforts=None), external=wrenches)
    assert len(rows[0]['effort neck'].y) == 0


@pytest.mark.parametrize('name', ['humanoid', 'arm'])
def test_reduced_equations_have_the_products_of_all(humanoid, arm, name, monkeypatch):
    monkeypatch.setattr(evidence, 'SAMPLES_AT_ONCE', 70)
    robot, others = {
        'humanoid': (humanoid, {'offsets': tuple(one.name for one in humanoid.ft_sensors)}),
        'arm': (arm, {
            'sign_width': 0.3, 'dead_zones': dict.fromkeys(JOINTS, 0.05),
            'couplings': (JOINTS[:2],), 'gains': ('lift',),
        }),
    }[name]  # fmt: skip
    choice = EquationChoice(efforts=robot.joint_names, friction=OF_A_JOINT, **others)
    builder = EquationBuilder(robot, choice)
    samples = builder.random_samples(4, 300)
    samples.positions[17, 0] = np.nan
    some = [gather(builder, samples.take(part)) for part in (slice(0, 50), slice(50, 300))]
    merged = [one.merge(two) for one, two in zip(*some, strict=True)]
    for found in (gather(builder, samples), merged):
        for one, kinds in zip(found, builder.equations(samples), strict=True):
            assert set(one.kinds) == set(kinds)
            for kind, (Y, y, left_out) in kinds.items():
                part, rows = one.kinds[kind], np.column_stack([Y, y])
                R = np.column_stack([part.R, part.rho])
                products = R.T @ R
                products[-1, -1] += part.energy
                size = np.maximum(np.linalg.norm(rows, axis=0), 1.0)
                atol = REDUCTION_ROUND_OFF * size.max() * size
                assert (np.abs(products - rows.T @ rows) <= atol).all()
                assert (part.count, one.left_out[kind]) == (len(y), left_out)
                assert one.used[kind] + left_out == 300


def determined_by(builder, samples):
    """Return what samples determine of each block."""
    return [
        determined(one.block, base, weighted_sum(one.kinds.values(), [1.0] * len(one.kinds)))
        for one, (base, _) in zip(gather(builder, samples), builder.bases, strict=True)
    ]


def test_rank_with_a_joint_at_rest():
    arm = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base', ft_sensors=[])
    friction = (Term.VISCOUS, Term.COULOMB)
    builder = EquationBuilder(arm, EquationChoice(efforts=JOINTS, friction=friction))
    samples = builder.random_samples(2, 200)
    still = {
        name: getattr(samples, name) * [1.0, 0.0, 1.0]
        for name in ('positions', 'velocities', 'accelerations')
    }
    (whole,), (part,) = (
        determined_by(builder, one) for one in (samples, replace(samples, **still))
    )
    assert whole.missing == ()
    assert whole.possible == part.possible == part.seen.rank + len(part.missing)
    assert {'elbow.viscous', 'elbow.coulomb'} <= set(part.missing)
    assert 'shoulder.viscous' not in part.missing
