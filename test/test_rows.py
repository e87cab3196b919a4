# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Rows of samples that the models of the sensors make: true unknowns must solve them.

Not covered: which rows determine what; that is `test_base_parameters.py`.
"""

from dataclasses import replace

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample

from inertial_estimation.errors import ConfigError, NameNotFound, ShapeError
from inertial_estimation.identification.equations.builder import (
    COMPONENTS,
    EquationBuilder,
    EquationChoice,
)
from inertial_estimation.identification.equations.friction import Coupling, JointModel
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.model.free_floating import FreeFloating
from inertial_estimation.model.representations import Representation
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensor_models import SensorModels
from inertial_estimation.sample import SampleBatch

# A few dozen transforms of forces of some hundred newton.
ROUND_OFF = 1e-9
N = 12
FRAMES = ('sole', 'hand', 'head')


def moved(robot, rng, frames=()):
    """Return samples of a robot that moves, with efforts, and the wrenches that act on it."""
    model, samples = FreeFloating(robot), []
    wrenches = {frame: rng.normal(0.0, 20.0, (N, 6)) for frame in frames}
    for k in range(N):
        motion = random_sample(robot, rng)
        acting = {frame: wrench[k] for frame, wrench in wrenches.items()}
        v = np.zeros(6) if robot.fixed_frame else rng.normal(0.0, 1.0, 6)
        state = model.state(
            motion.positions,
            motion.velocities,
            None,
            v,
            base=robot.fixed_frame,
            representation=Representation.LEFT,
        )
        if robot.fixed_frame:
            variables = state.equations(robot.fixed_frame, Representation.LEFT)
            acceleration = np.concatenate([np.zeros(6), motion.accelerations])
            sensors = SensorModels(state, variables, acceleration, acting)
        else:
            sensors = SensorModels.floating(state, motion.accelerations, acting)
        efforts = sensors.variables.inverse_dynamics(sensors.acceleration)
        for frame, wrench in acting.items():
            J = state.jacobian(frame, sensors.variables, Representation.LEFT)
            efforts = efforts - J.T @ wrench
        samples.append(sensors.sample()._replace(efforts=efforts[6:]))
    return SampleBatch.stack(samples), wrenches


def truth(robot, block, extras=()):
    """Return the true unknowns of a block."""
    return block.unknowns.join(robot.parameters[list(block.submodel.links)], np.array(extras))


def assert_solved(rows, x, kinds):
    assert set(rows) == set(kinds)
    for kind, (Y, y, _) in rows.items():
        np.testing.assert_allclose(Y @ x, y, rtol=0, atol=ROUND_OFF, err_msg=kind)


@pytest.fixture
def humanoid():
    return Robot.from_urdf(nested_humanoid_urdf(), imus=['hand', 'root'])


@pytest.fixture
def arm():
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')


def test_wrenches_and_efforts_of_a_floating_robot_with_known_contacts(humanoid, rng):
    samples, wrenches = moved(humanoid, rng, FRAMES)
    builder = EquationBuilder(humanoid, EquationChoice(efforts=humanoid.joint_names))
    found = builder.equations(samples, external=wrenches)
    for block, rows in zip(builder.blocks, found, strict=True):
        assert_solved(rows, truth(humanoid, block), block.kinds)
        assert {len(row.y) for row in rows.values()} == {N}
    assert sum(len(block.kinds) for block in builder.blocks) == 6 * len(builder.blocks) + len(
        humanoid.joint_names
    )


@pytest.mark.parametrize('held', ['root', 'foot', 'shank', 'hand'])
def test_a_robot_held_somewhere_tells_no_wrench_there(held, rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), fixed_link=held)
    samples, wrenches = moved(robot, rng, ['head'])
    builder = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names))
    link = robot.frame(held)[0]
    for block, rows in zip(
        builder.blocks, builder.equations(samples, external=wrenches), strict=True
    ):
        assert (COMPONENTS[0] in rows) == (link not in block.submodel.links)
        assert_solved(rows, truth(robot, block), block.kinds)


def test_offsets_are_unknowns_of_both_neighbours(humanoid, rng):
    samples, wrenches = moved(humanoid, rng, FRAMES)
    offset = np.array([3.0, -2.0, 5.0, 0.3, 0.1, -0.2])
    samples.ft_readings[:] += offset
    names = tuple(sensor.name for sensor in humanoid.ft_sensors)
    builder = EquationBuilder(
        humanoid, EquationChoice(efforts=humanoid.joint_names, offsets=names)
    )
    for block, rows in zip(
        builder.blocks, builder.equations(samples, external=wrenches), strict=True
    ):
        borders = len(block.unknowns.extras) // 6
        assert borders == len(block.submodel.child_sensors) + (block.submodel.root_sensor >= 0)
        assert_solved(rows, truth(humanoid, block, np.tile(offset, borders)), block.kinds)


def test_friction_and_drive_inertia_are_what_the_effort_holds_beyond_the_links(arm, rng):
    samples, _ = moved(arm, rng)
    model = JointModel(sign_width=0.3)
    values = rng.normal(0.0, 1.0, (len(arm.joint_names), 4))
    for j in range(len(arm.joint_names)):
        columns = model.columns(samples.velocities[:, j], samples.accelerations[:, j])
        samples.efforts[:, j] += columns @ values[j]
    builder = EquationBuilder(arm, EquationChoice(efforts=arm.joint_names, joint=model))
    root, tool = builder.blocks
    rows, others = builder.equations(samples)
    assert_solved(rows, truth(arm, root, values.reshape(-1)), root.kinds)
    assert_solved(others, truth(arm, tool), COMPONENTS)


def test_a_gain_turns_currents_into_efforts(arm, rng):
    samples, _ = moved(arm, rng)
    gains = np.array([2.0, 0.5, 10.0])
    samples.efforts[:] /= gains
    choice = EquationChoice(efforts=arm.joint_names, gains=arm.joint_names)
    builder = EquationBuilder(arm, choice)
    assert_solved(
        builder.equations(samples)[0],
        truth(arm, builder.blocks[0], gains),
        builder.blocks[0].kinds,
    )
    assert [extra.term for extra in builder.blocks[0].unknowns.extras] == [Term.DRIVE_GAIN] * 3


def test_a_drive_that_turns_with_two_joints_loads_both(arm, rng):
    """Its power is its friction times the sum of both velocities: each joint has all of it."""
    samples, _ = moved(arm, rng)
    model = JointModel(sign_width=0.3)
    coupling = Coupling(('shoulder', 'elbow'))
    one, other = (arm.joint_names.index(name) for name in coupling.joints)
    both = samples.velocities[:, one] + samples.velocities[:, other]
    rates = samples.accelerations[:, one] + samples.accelerations[:, other]
    viscous, coulomb, inertia = rng.normal(size=3)
    load = viscous * both + coulomb * np.tanh(both / 0.3) + inertia * rates
    samples.efforts[:, one] += load
    samples.efforts[:, other] += load
    builder = EquationBuilder(
        arm, EquationChoice(efforts=arm.joint_names, joint=model, couplings=(coupling,))
    )
    block, rows = builder.blocks[0], builder.equations(samples)[0]
    extras = np.zeros(len(block.unknowns.extras))
    names = [str(extra) for extra in block.unknowns.extras]
    for name in coupling.joints:
        extras[names.index(f'{name}.viscous')] = viscous
        extras[names.index(f'{name}.drive_inertia')] = inertia
    extras[-3:] = viscous, coulomb, inertia
    assert names[-3:] == [f'shoulder+elbow.{term.value}' for term in coupling.terms]
    assert_solved(rows, truth(arm, block, extras), block.kinds)


def test_couplings_that_cannot_be_are_refused(arm):
    with pytest.raises(ConfigError):
        EquationBuilder(
            arm, EquationChoice(efforts=('elbow',), couplings=(Coupling(('shoulder', 'elbow')),))
        )
    with pytest.raises(ConfigError):
        Coupling(('elbow', 'elbow'))
    with pytest.raises(ConfigError):
        Coupling(('elbow', 'lift'), (Term.OFFSET,))


def test_a_dead_zone_of_one_joint(arm, rng):
    samples, _ = moved(arm, rng)
    slow = np.abs(samples.velocities[:, 1]) < 1.0
    choice = EquationChoice(efforts=arm.joint_names, dead_zones={arm.joint_names[1]: 1.0})
    rows = EquationBuilder(arm, choice).equations(samples)[0]
    assert rows[f'effort {arm.joint_names[1]}'].left_out == slow.sum()
    assert rows[f'effort {arm.joint_names[0]}'].left_out == 0
    with pytest.raises(NameNotFound):
        EquationBuilder(arm, EquationChoice(efforts=arm.joint_names, dead_zones={'elbw': 1.0}))


def test_a_slow_joint_gives_no_rows(arm, rng):
    samples, _ = moved(arm, rng)
    slow = np.abs(samples.velocities[:, 1]) < 1.0
    assert 0 < slow.sum() < N
    builder = EquationBuilder(
        arm, EquationChoice(efforts=arm.joint_names, joint=JointModel(dead_zone=1.0))
    )
    rows = builder.equations(samples)[0][f'effort {arm.joint_names[1]}']
    assert (len(rows.y), rows.left_out) == (N - slow.sum(), slow.sum())


def test_what_is_missing_or_not_free_costs_its_own_rows(humanoid, rng):
    samples, wrenches = moved(humanoid, rng, FRAMES)
    wrenches['sole'][3] = np.nan
    samples.ft_readings[5, 0] = np.nan
    samples.velocities[7, humanoid.joint_names.index('neck')] = np.nan
    free = np.ones((N, len(humanoid.submodels)), dtype=bool)
    free[1, 0] = False
    builder = EquationBuilder(humanoid, EquationChoice(efforts=humanoid.joint_names))
    found = builder.equations(samples, external=wrenches, free=free)
    left = {
        (block.submodel.name, kind): row.left_out
        for block, rows in zip(builder.blocks, found, strict=True)
        for kind, row in rows.items()
    }
    assert left['foot', 'force_x'] == 1
    assert left['thigh', 'effort knee'] == 0
    assert left['upper_arm', 'force_x'] == 1  # its sensor
    assert left['root', 'force_x'] == 3  # the sensor, the neck, not free
    assert left['root', 'effort hip_joint'] == 1  # not free
    assert left['root', 'effort neck'] == 2


def test_bad_choices_are_refused_by_name(arm, humanoid, rng):
    with pytest.raises(NameNotFound):
        EquationBuilder(arm, EquationChoice(efforts=('elbw',)))
    with pytest.raises(NameNotFound):
        EquationBuilder(arm, EquationChoice(offsets=('wrist',)))
    bare = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base', ft_sensors=[])
    with pytest.raises(ConfigError):
        EquationBuilder(bare)
    samples, _ = moved(humanoid, rng)
    with pytest.raises(ShapeError):
        EquationBuilder(humanoid).equations(samples, external={'head': np.zeros(6)})
    with pytest.raises(ConfigError):
        JointModel(dead_zone=-1.0)
    with pytest.raises(ConfigError):
        JointModel(terms=(Term.MOMENT_X,))
    rows = EquationBuilder(arm, EquationChoice(efforts=arm.joint_names)).equations(
        replace(moved(arm, rng)[0], efforts=None)
    )
    assert len(rows[0]['effort elbow'].y) == 0
