# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Logs reduced to what they say of each submodel: the same as all their rows say.

Not covered: how fast, and in how much memory; that is for ``inertial-estimation bench``.
"""

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf

from inertial_estimation.identification.information import evidence
from inertial_estimation.identification.information.evidence import Gathering, gather
from inertial_estimation.identification.information.information import weighted_sum
from inertial_estimation.identification.information.random_states import random_samples
from inertial_estimation.identification.information.row_space import RowSpace
from inertial_estimation.identification.rows.builder import RowBuilder, RowChoice
from inertial_estimation.identification.rows.friction import Coupling, JointModel
from inertial_estimation.identification.rows.wrench_columns import wrench_columns
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
        'humanoid': RowBuilder(
            humanoid,
            RowChoice(efforts=humanoid.joint_names, joint=JointModel(), offsets=sensors),
        ),
        'arm': RowBuilder(
            arm,
            RowChoice(
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
    monkeypatch.setattr(evidence, 'INSTANTS_AT_ONCE', 70)
    samples = random_samples(builder.robot, 300, seed=4)
    samples.positions[17, 0] = np.nan
    found, rows = gather(builder, samples), builder.rows(samples)
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
    for one, kinds in zip(gather(builder, samples), builder.rows(samples), strict=True):
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
