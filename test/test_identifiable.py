# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The identifiable subspace, from structure against numbers; Theorems 7.1-7.3 of the thesis.

Not covered: friction and other unknowns of joints, which `test_wam7` has; torques of a submodel
that does not hold the fixed link, which are refused.
"""

from pathlib import Path

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, two_link_urdf

from inertial_estimation.errors import ModelError
from inertial_estimation.model.identifiable import (
    Rows,
    excitable,
    numeric_null_space,
    orthonormal,
    random_states,
    structural_null_space,
    subspace_distance,
)
from inertial_estimation.model.motion_spans import complement
from inertial_estimation.model.regressor import submodel_regressors
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.submodels import decompose

# Sines of angles: round-off of a few hundred columns, and of their condition.
ROUND_OFF = 1e-10
RIGHT = np.pi / 2


def icub(name):
    models = pytest.importorskip('icub_models')
    return Robot.from_urdf(Path(models.get_model_file(name)))


def held_chain_urdf():
    """Return five joints in a row whose torques a square of sine and cosine at once tells."""
    joints = (
        ('revolute', '0.3 -0.2 0.3', f'0 {RIGHT} -{RIGHT}', '1 0 0'),
        ('continuous', '0 0.3 0', f'{RIGHT} 0 {RIGHT}', '0 1 0'),
        ('revolute', '0 -0.2 0', '0 0 0', '0 0.6 0.8'),
        ('revolute', '0 -0.2 -0.2', f'0 {RIGHT} 0', '0 0 1'),
        ('prismatic', '0 -0.2 -0.2', '0 0 0', '1 0 0'),
    )
    links = ''.join(
        f'<link name="l{k}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" '
        'ixz="0" iyz="0"/></inertial></link>'
        for k in range(6)
    )
    tags = ''.join(
        f'<joint name="j{k}" type="{kind}"><parent link="l{k}"/><child link="l{k + 1}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
        '<limit lower="-3" upper="3" effort="1" velocity="1"/></joint>'
        for k, (kind, xyz, rpy, axis) in enumerate(joints)
    )
    return f'<robot name="chain">{links}{tags}</robot>'


FLOATING = {
    'two links': lambda: Robot.from_urdf(two_link_urdf(), imus=['body']),
    'floating arm': lambda: Robot.from_urdf(arm_with_wrist_sensor_urdf(), imus=['base']),
    'humanoid': lambda: Robot.from_urdf(nested_humanoid_urdf(), imus=['head']),
    'humanoid, several IMUs': lambda: Robot.from_urdf(
        nested_humanoid_urdf(), imus=['hand', 'shank', 'chest']
    ),
    'iCub 2.5': lambda: icub('iCubGazeboV2_5'),
    'iCub Genova': lambda: icub('iCubGenova02'),
}

FIXED = {
    'fixed arm': lambda: Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base'),
    'arm held at its middle': lambda: Robot.from_urdf(
        arm_with_wrist_sensor_urdf(), fixed_link='lower'
    ),
    'chain held inside, without gravity': lambda: Robot.from_urdf(
        held_chain_urdf(), fixed_link='l2', gravity=(0.0, 0.0, 0.0)
    ),
    'humanoid on its sole': lambda: Robot.from_urdf(nested_humanoid_urdf(), fixed_link='sole'),
}
ROBOTS = FLOATING | FIXED


@pytest.fixture(params=ROBOTS)
def robot(request):
    return ROBOTS[request.param]()


@pytest.fixture(params=FLOATING)
def floating(request):
    return FLOATING[request.param]()


def whole(robot):
    return decompose(robot.links, robot.ft_sensors, cut=())[0]


def revolute_joints(robot, submodel):
    motions = [
        robot.links[k].motion
        for k in submodel.links
        if k != submodel.root and robot.links[k].joint >= 0
    ]
    revolute = sum(bool(motion[3:].any()) for motion in motions)
    return revolute, len(motions) - revolute


@pytest.mark.parametrize('rows', Rows)
def test_structure_and_numbers_agree(robot, rows):
    for submodel in (*robot.submodels, whole(robot)):
        ground = robot.fixed_frame and robot.frame(robot.fixed_frame)[0]
        if rows is Rows.TORQUES and robot.fixed_frame and ground not in submodel.links:
            with pytest.raises(ModelError):
                structural_null_space(robot, submodel, rows)
            continue
        structural = structural_null_space(robot, submodel, rows)
        numeric = numeric_null_space(robot, submodel, rows)
        assert structural.shape == numeric.shape
        assert subspace_distance(structural, numeric) < ROUND_OFF


def test_ranks_of_floating_submodels(floating):
    total = 0
    for submodel in floating.submodels:
        revolute, prismatic = revolute_joints(floating, submodel)
        n = 10 * len(submodel.links)
        rank = n - structural_null_space(floating, submodel).shape[1]
        # A mass on the axis belongs to either side: 3. An inertia that does not turn: 6.
        assert rank == 10 + 7 * revolute + 4 * prismatic
        total += rank
    if all(link.motion[3:].any() for link in floating.links if link.joint >= 0):
        assert total == 10 * len(floating.submodels) + 7 * len(floating.joint_names)


def blocks_of_submodels(robot):
    """Return orthonormal columns of what the wrenches of all submodels tell."""
    columns = []
    for submodel in robot.submodels:
        basis = complement(structural_null_space(robot, submodel).T)
        placed = np.zeros((len(robot.links), 10, basis.shape[1]))
        placed[list(submodel.links)] = basis.reshape(len(submodel.links), 10, -1)
        columns.append(placed.reshape(-1, basis.shape[1]))
    return np.hstack(columns)


def outside(basis, columns):
    """Return the sine of the largest angle of orthonormal columns to a subspace."""
    return float(np.linalg.norm(columns - basis @ (basis.T @ columns), 2))


def test_theorem_7_1_the_base_wrench_tells_all(floating):
    submodel = whole(floating)
    n = 10 * len(submodel.links)
    rows = submodel_regressors(excitable(floating), random_states(floating, n // 3), [submodel])[0]
    everything = np.concatenate([rows.wrench, rows.torques], axis=1).reshape(-1, n)
    base = complement(structural_null_space(floating, submodel).T)
    full = row_space(everything)
    assert subspace_distance(base, full) < ROUND_OFF
    assert outside(base, row_space(rows.torques.reshape(-1, n))) < ROUND_OFF


def test_theorem_7_2_submodels_tell_what_the_whole_does(floating):
    basis = complement(structural_null_space(floating, whole(floating)).T)
    parts = blocks_of_submodels(floating)
    assert outside(parts, basis) < ROUND_OFF
    if floating.ft_sensors:
        assert parts.shape[1] > basis.shape[1]


def test_theorem_7_3_a_submodel_tells_its_torques(floating):
    samples = random_states(floating, 5 * len(floating.links))
    found = submodel_regressors(excitable(floating), samples)
    for submodel, rows in zip(floating.submodels, found, strict=True):
        basis = complement(structural_null_space(floating, submodel).T)
        for torque in np.moveaxis(rows.torques, 1, 0):
            assert outside(basis, row_space(torque)) < ROUND_OFF


def row_space(Y):
    scales = np.linalg.norm(Y, axis=0)
    largest = scales.max() or 1.0
    scales[scales < ROUND_OFF * largest] = largest
    null = complement(Y / scales) / scales[:, None]
    return complement(orthonormal(null).T)


def test_what_a_force_plate_tells_of_a_base_at_rest(arm_with_wrist_sensor):
    """The base link's inertia is never seen; its weight and two moments of it are."""
    submodel = arm_with_wrist_sensor.submodels[0]
    null = structural_null_space(arm_with_wrist_sensor, submodel)
    direction = np.zeros((len(null), 1))
    direction[9] = 1.0
    assert outside(null, direction) < ROUND_OFF
    direction[9], direction[0] = 0.0, 1.0
    assert outside(null, direction) > 0.1


def test_subspaces_of_other_dimension_are_far_apart():
    assert subspace_distance(np.eye(3)[:, :1], np.eye(3)[:, :2]) == 1.0
    assert subspace_distance(np.zeros((3, 0)), np.zeros((3, 0))) == 0.0


@pytest.mark.parametrize('rows', Rows)
def test_short_levers_are_levers(rows):
    """A joint a thousandth of a millimetre off another one: no round-off of structure."""
    spaces = []
    for lever in (0.3, 1e-6):
        urdf = arm_with_wrist_sensor_urdf().replace('xyz="0.3 0 0"', f'xyz="{lever} 0 0"')
        urdf = urdf.replace('xyz="0.2 0 0"', f'xyz="{lever} 0 0"')
        arm = Robot.from_urdf(urdf, fixed_link='base', ft_sensors=[])
        spaces.append(structural_null_space(arm, arm.submodels[0], rows).shape)
    assert spaces[0] == spaces[1]
