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

from inertial_estimation.errors import ConfigError, NameNotFound, ShapeError
from inertial_estimation.identification import evidence
from inertial_estimation.identification.equations.builder import (
    COMPONENTS,
    EquationBuilder,
    EquationChoice,
    random_samples,
)
from inertial_estimation.identification.equations.friction import Coupling, JointModel
from inertial_estimation.identification.equations.wrenches import wrench_columns
from inertial_estimation.identification.evidence import (
    FRICTION_SHARES,
    Gathering,
    determinable,
    determined,
    friction_scales,
    gather,
)
from inertial_estimation.identification.information import weighted_sum
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.model.base_parameters import BaseParameters, conditioning_order
from inertial_estimation.model.free_floating import FreeFloating
from inertial_estimation.model.link_motions import link_motions, poses_in_parents
from inertial_estimation.model.regressor import submodel_regressors
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


def test_equations_of_floating_robot_with_known_contacts(humanoid, rng):
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


def test_effort_equations_include_friction_and_drive_inertia(arm, rng):
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


# Orthogonal transforms and a few products, over the size of what they work on.
REDUCTION_ROUND_OFF = 1e-11
# Base parameters of noise-free rows, over the largest.
EXACT = 1e-9


def builders():
    """Return builders of rows of all kinds."""
    humanoid = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    sensors = tuple(sensor.name for sensor in humanoid.ft_sensors)
    arm = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    coupled = (Coupling(('shoulder', 'elbow')),)
    return {
        'humanoid': EquationBuilder(
            humanoid,
            EquationChoice(efforts=humanoid.joint_names, joint=JointModel(), offsets=sensors),
        ),
        'arm': EquationBuilder(
            arm,
            EquationChoice(
                efforts=arm.joint_names,
                joint=JointModel(sign_width=0.3, dead_zone=0.05),
                couplings=coupled,
                gains=('lift',),
            ),
        ),
    }


@pytest.fixture(params=['humanoid', 'arm'])
def builder(request):
    return builders()[request.param]


def test_what_is_reduced_says_what_all_rows_say(builder, monkeypatch):
    monkeypatch.setattr(evidence, 'SAMPLES_AT_ONCE', 70)
    samples = random_samples(builder.robot, 300, seed=4)
    samples.positions[17, 0] = np.nan
    found, rows = gather(builder, samples), builder.equations(samples)
    for one, kinds in zip(found, rows, strict=True):
        assert set(one.kinds) == set(kinds)
        for kind, (Y, y, left_out) in kinds.items():
            part = one.kinds[kind]
            size = np.linalg.norm(Y) ** 2
            np.testing.assert_allclose(part.R.T @ part.R, Y.T @ Y, atol=REDUCTION_ROUND_OFF * size)
            np.testing.assert_allclose(
                part.R.T @ part.rho, Y.T @ y,
                atol=REDUCTION_ROUND_OFF * np.linalg.norm(Y) * max(np.linalg.norm(y), 1.0),
            )  # fmt: skip
            energy = part.rho @ part.rho + part.energy
            assert energy == pytest.approx(
                float(y @ y), rel=REDUCTION_ROUND_OFF, abs=REDUCTION_ROUND_OFF
            )
            assert (part.count, one.left_out[kind]) == (len(y), left_out)


def test_base_parameters_of_noise_free_rows_are_exact(builder, rng):
    samples = random_samples(builder.robot, 300, seed=5)
    for one, kinds in zip(gather(builder, samples), builder.equations(samples), strict=True):
        truth = rng.normal(size=len(one.block.unknowns))
        # Right-hand sides that the truth gives: what the rows said is taken out, this put in.
        parts = [
            type(part).of(part.R, part.R @ truth) for part in one.kinds.values() if part.count
        ]
        merged = weighted_sum(parts, [1.0] * len(parts))
        x = RowSpace.of(merged.R).solve(merged.rho)
        Y = np.vstack([row.Y for row in kinds.values()])
        scale = np.abs(Y @ truth).max()
        np.testing.assert_allclose(Y @ x, Y @ truth, atol=EXACT * scale)


def test_rows_that_come_later_are_added(builder):
    samples = random_samples(builder.robot, 200, seed=6)
    growing = Gathering(builder)
    for part in (slice(0, 50), slice(50, 200)):
        growing.add(samples.take(part))
    for one, other in zip(growing.evidence(), gather(builder, samples), strict=True):
        for kind, part in one.kinds.items():
            whole = other.kinds[kind]
            size = np.linalg.norm(whole.R) ** 2
            np.testing.assert_allclose(
                part.R.T @ part.R, whole.R.T @ whole.R, atol=REDUCTION_ROUND_OFF * size
            )
            assert part.count == whole.count


def test_kinds_of_rows_keep_as_many_columns_as_they_can_tell():
    """
    A force tells no inertia; a moment about x tells Iyy - Izz and neither Iyy nor mc_x.

    The last joint's effort tells of the last link alone.
    """
    builder = builders()['arm']
    inner, tool = builder.bases
    block = builder.blocks[0]
    assert tool['force_x'].rank == 4
    assert tool['moment_x'].rank == 7
    lift = inner['effort lift']
    touched = np.flatnonzero(lift.grouping.any(axis=0))
    names = {block.unknowns.names[k].split('.')[0] for k in touched}
    assert names == {'slider', 'lift'}


def test_columns_are_those_of_the_regressor():
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    samples = random_samples(robot, 20, seed=7)
    poses = poses_in_parents(robot, samples.positions)
    motions = link_motions(robot, samples, poses)
    for submodel, rows in zip(robot.submodels, submodel_regressors(robot, samples), strict=True):
        found = wrench_columns(submodel.links, rows.root_poses, motions)
        expected = np.moveaxis(rows.wrench, 0, -1)
        np.testing.assert_allclose(
            found, expected, atol=REDUCTION_ROUND_OFF * np.abs(expected).max()
        )


def test_what_logs_left_out_adds_up(builder):
    samples = random_samples(builder.robot, 60, seed=4)
    other = random_samples(builder.robot, 50, seed=5)
    samples.positions[3, 0] = np.nan
    other.positions[[7, 8], 0] = np.nan
    lost = 0
    for one, two in zip(gather(builder, samples), gather(builder, other), strict=True):
        both = one.merge(two)
        lost += sum(two.left_out.values())
        for kind in both.kinds:
            assert both.left_out[kind] == one.left_out[kind] + two.left_out[kind]
            assert both.rows[kind] == one.rows[kind] + two.rows[kind]
            assert both.rows[kind] + both.left_out[kind] == 110
    assert lost > 0


def test_a_wide_dead_zone_leaves_states_to_tell_columns_by():
    arm = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    slow, wide = (
        EquationBuilder(
            arm, EquationChoice(efforts=arm.joint_names, joint=JointModel(dead_zone=zone))
        )
        for zone in (0.0, 1.5)
    )
    for one, other in zip(slow.bases, wide.bases, strict=True):
        assert {kind: base.rank for kind, base in one.items()} == {
            kind: base.rank for kind, base in other.items()
        }


def test_base_of_a_kind_keeps_the_order_of_columns(builder):
    for block, kinds in builder.sparse(builder.random_samples()):
        n = len(block.unknowns)
        order = conditioning_order(len(block.unknowns.links), len(block.unknowns.extras))
        for _, rows in kinds:
            system, _ = rows.system(np.arange(n), n)
            whole = BaseParameters.of_regressor(system[:, :-1], order)
            assert rows.base(order).independent.tolist() == whole.independent.tolist()


def test_small_factors_of_a_grouping_are_kept():
    """A link a tenth of a millimetre off: its mass counts 1e-8 m^2 in the inertia of the other."""
    urdf = arm_with_wrist_sensor_urdf().replace(
        '<origin xyz="0.3 0 0" rpy="0.3 -0.2 0.5"/>', '<origin xyz="0.0001 0 0" rpy="0 0 0"/>'
    )
    arm = Robot.from_urdf(urdf, fixed_link='base')
    builder = EquationBuilder(arm, EquationChoice(efforts=arm.joint_names))
    samples = builder.random_samples(seed=3)
    for one, rows in zip(gather(builder, samples), builder.equations(samples), strict=True):
        for kind, (Y, _, _) in rows.items():
            R = one.kinds[kind].R
            size = np.linalg.norm(Y, axis=0)
            touched = size > 1e-12 * size.max()
            scale = np.outer(size[touched], size[touched])
            np.testing.assert_allclose(
                (R.T @ R)[np.ix_(touched, touched)] / scale,
                (Y.T @ Y)[np.ix_(touched, touched)] / scale,
                rtol=0,
                atol=1e-8,
            )


def test_scales_are_the_size_of_efforts():
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    choice = EquationChoice(
        efforts=robot.joint_names,
        joint=JointModel(terms=(Term.VISCOUS, Term.OFFSET)),
        couplings=(Coupling(('shoulder', 'elbow'), (Term.COULOMB,)),),
        gains=('lift',),
        offsets=('wrist_sensor',),
    )
    evidence = gather(EquationBuilder(robot, choice), random_samples(robot, 100))[0]
    names = [str(extra) for extra in evidence.block.unknowns.extras]
    found = dict(zip(names, friction_scales(evidence), strict=True))
    sizes = evidence.signals()
    assert found['elbow.viscous'] == sizes['effort elbow']
    assert found['elbow.offset'] == FRICTION_SHARES[Term.OFFSET] * sizes['effort elbow']
    shared = (sizes['effort shoulder'] + sizes['effort elbow']) / 2
    np.testing.assert_allclose(found['shoulder+elbow.coulomb'], shared)
    assert np.isinf(found['lift.drive_gain'])
    assert np.isinf([found[name] for name in names if name.startswith('wrist_sensor')]).all()
    assert (np.array(list(found.values())) > 0).all()


FRICTION = JointModel(terms=(Term.VISCOUS, Term.COULOMB))


def told(builder, samples):
    """Return what samples determine of each block."""
    return [
        determined(one.block, base, weighted_sum(one.kinds.values(), [1.0] * len(one.kinds)))
        for one, base in zip(gather(builder, samples), determinable(builder), strict=True)
    ]


def test_all_submodels_of_a_moving_robot():
    """10 + 7 (links - 1) of each submodel with an unknown wrench nowhere [T Theorem 7.2]."""
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    builder = EquationBuilder(robot)
    for one, block in zip(told(builder, random_samples(robot, 300, seed=1)), builder.blocks):
        moving = sum(robot.links[k].joint >= 0 for k in block.submodel.links[1:])
        if all(robot.links[k].motion[3:].any() for k in block.submodel.links[1:]):
            assert one.possible == 10 + 7 * moving
        assert (one.reached, one.missing) == (one.possible, ())


@pytest.fixture
def fixed_arm():
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base', ft_sensors=[])


def test_a_joint_that_stands_still_is_missed_by_name(fixed_arm):
    builder = EquationBuilder(
        fixed_arm, EquationChoice(efforts=fixed_arm.joint_names, joint=FRICTION)
    )
    samples = random_samples(fixed_arm, 200, seed=2)
    still = {
        name: np.where(np.array(fixed_arm.joint_names) == 'elbow', 0.0, getattr(samples, name))
        for name in ('positions', 'velocities', 'accelerations')
    }
    (whole,), (part,) = told(builder, samples), told(builder, replace(samples, **still))
    assert whole.missing == ()
    assert whole.possible == part.possible
    assert {'elbow.viscous', 'elbow.coulomb'} <= set(part.missing)
    assert 'shoulder.viscous' not in part.missing
    assert part.reached == part.possible - len(part.missing)


def test_one_pose_tells_as_many_combinations_as_it_has_rows(fixed_arm):
    builder = EquationBuilder(fixed_arm, EquationChoice(efforts=fixed_arm.joint_names))
    samples = random_samples(fixed_arm, 50, seed=3)
    pose = np.repeat(samples.positions[:1], 50, axis=0)
    zero = np.zeros_like(pose)
    (found,) = told(builder, replace(samples, positions=pose, velocities=zero, accelerations=zero))
    assert found.reached == len(fixed_arm.joint_names)
