# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Logs reduced to what they say of each submodel: the same as all their rows say.

Not covered: how fast, and in how much memory; that is for ``inertial-estimation bench``.
"""

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf

from inertial_estimation.identification import evidence
from inertial_estimation.identification.equations.builder import (
    EquationBuilder,
    EquationChoice,
    random_samples,
)
from inertial_estimation.identification.equations.friction import Coupling, JointModel
from inertial_estimation.identification.equations.wrenches import wrench_columns
from inertial_estimation.identification.evidence import Gathering, gather
from inertial_estimation.identification.information import weighted_sum
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.model.base_parameters import BaseParameters, conditioning_order
from inertial_estimation.model.link_motions import link_motions, poses_in_parents
from inertial_estimation.model.regressor import submodel_regressors
from inertial_estimation.model.robot import Robot

# Orthogonal transforms and a few products, over the size of what they work on.
ROUND_OFF = 1e-11
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
            np.testing.assert_allclose(part.R.T @ part.R, Y.T @ Y, atol=ROUND_OFF * size)
            np.testing.assert_allclose(
                part.R.T @ part.rho, Y.T @ y,
                atol=ROUND_OFF * np.linalg.norm(Y) * max(np.linalg.norm(y), 1.0),
            )  # fmt: skip
            energy = part.rho @ part.rho + part.energy
            assert energy == pytest.approx(float(y @ y), rel=ROUND_OFF, abs=ROUND_OFF)
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
                part.R.T @ part.R, whole.R.T @ whole.R, atol=ROUND_OFF * size
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
        np.testing.assert_allclose(found, expected, atol=ROUND_OFF * np.abs(expected).max())


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


def test_what_is_kept_of_a_kind_comes_in_the_order_of_all_columns(builder):
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
