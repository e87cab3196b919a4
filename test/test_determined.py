# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What rows could tell of a robot, and what samples of one do."""

from dataclasses import replace

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf

from inertial_estimation.identification.determined import (
    determinable,
    determined,
    in_words,
)
from inertial_estimation.identification.equations.builder import (
    EquationBuilder,
    EquationChoice,
    random_samples,
)
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.information import weighted_sum
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.model.robot import Robot

FRICTION = JointModel(terms=(Term.VISCOUS, Term.COULOMB))


def told(builder, samples):
    """Return what samples determine of each block."""
    return [
        determined(
            one.block,
            base,
            weighted_sum(one.kinds.values(), [1.0] * len(one.kinds)),
        )
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
def arm():
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base', ft_sensors=[])


def test_a_joint_that_stands_still_is_missed_by_name(arm):
    builder = EquationBuilder(arm, EquationChoice(efforts=arm.joint_names, joint=FRICTION))
    samples = random_samples(arm, 200, seed=2)
    still = {
        name: np.where(np.array(arm.joint_names) == 'elbow', 0.0, getattr(samples, name))
        for name in ('positions', 'velocities', 'accelerations')
    }
    (whole,), (part,) = told(builder, samples), told(builder, replace(samples, **still))
    assert whole.missing == ()
    assert whole.possible == part.possible
    assert {'elbow.viscous', 'elbow.coulomb'} <= set(part.missing)
    assert 'shoulder.viscous' not in part.missing
    assert part.reached == part.possible - len(part.missing)


def test_one_pose_tells_as_many_combinations_as_it_has_rows(arm):
    builder = EquationBuilder(arm, EquationChoice(efforts=arm.joint_names))
    samples = random_samples(arm, 50, seed=3)
    pose = np.repeat(samples.positions[:1], 50, axis=0)
    zero = np.zeros_like(pose)
    (found,) = told(builder, replace(samples, positions=pose, velocities=zero, accelerations=zero))
    assert found.reached == len(arm.joint_names)


def test_many_names_are_cut_short():
    assert in_words(['a', 'b']) == 'a, b'
    assert in_words(list('abcdefgh'), 3) == 'a, b, c and 5 more'
