# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Identifiable subspaces: known ranks, Theorems 7.1-7.3 of the thesis, and what they predict.

Not covered: friction and other unknowns of joints, which `test_wam7` has.
"""

from pathlib import Path

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, two_link_urdf

from inertial_estimation.errors import FrameNotFound, NameNotFound
from inertial_estimation.model.identifiable import (
    Rows,
    excitable,
    null_space,
    predictability,
    random_states,
)
from inertial_estimation.model.regressor import submodel_regressors
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.submodels import decompose

# Sines of angles: round-off of a few hundred columns, and of their condition.
ROUND_OFF = 1e-10
RIGHT = np.pi / 2


def icub(name):
    models = pytest.importorskip('icub_models')
    return Robot.from_urdf(Path(models.get_model_file(name)))


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


def complement(rows):
    """Return orthonormal columns that all rows are orthogonal to."""
    _, values, right = np.linalg.svd(rows, full_matrices=True)
    return right[int(np.sum(values > 1e-9 * values.max(initial=0.0))) :].T


def subspace_distance(one, other):
    """Return the sine of the largest angle between two subspaces; 1: other dimensions."""
    if one.shape != other.shape:
        return 1.0
    return outside(one, other) if one.size else 0.0


@pytest.mark.parametrize('rows', Rows)
def test_null_space_does_not_depend_on_the_states(floating, rows):
    for submodel in (*floating.submodels, whole(floating)):
        one, other = (null_space(floating, submodel, rows, seed) for seed in (0, 1))
        assert subspace_distance(one, other) < ROUND_OFF


def test_ranks_of_floating_submodels(floating):
    total = 0
    for submodel in floating.submodels:
        revolute, prismatic = revolute_joints(floating, submodel)
        n = 10 * len(submodel.links)
        rank = n - null_space(floating, submodel).shape[1]
        # A mass on the axis belongs to either side: 3. An inertia that does not turn: 6.
        assert rank == 10 + 7 * revolute + 4 * prismatic
        total += rank
    if all(link.motion[3:].any() for link in floating.links if link.joint >= 0):
        assert total == 10 * len(floating.submodels) + 7 * len(floating.joint_names)


def blocks_of_submodels(robot):
    """Return orthonormal columns of what the wrenches of all submodels tell."""
    columns = []
    for submodel in robot.submodels:
        basis = complement(null_space(robot, submodel).T)
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
    base = complement(null_space(floating, submodel).T)
    full = row_space(everything)
    assert subspace_distance(base, full) < ROUND_OFF
    assert outside(base, row_space(rows.torques.reshape(-1, n))) < ROUND_OFF


def test_theorem_7_2_submodels_tell_what_the_whole_does(floating):
    basis = complement(null_space(floating, whole(floating)).T)
    parts = blocks_of_submodels(floating)
    assert outside(parts, basis) < ROUND_OFF
    if floating.ft_sensors:
        assert parts.shape[1] > basis.shape[1]


def test_theorem_7_3_a_submodel_tells_its_torques(floating):
    samples = random_states(floating, 5 * len(floating.links))
    found = submodel_regressors(excitable(floating), samples)
    for submodel, rows in zip(floating.submodels, found, strict=True):
        basis = complement(null_space(floating, submodel).T)
        for torque in np.moveaxis(rows.torques, 1, 0):
            assert outside(basis, row_space(torque)) < ROUND_OFF


def row_space(Y):
    scales = np.linalg.norm(Y, axis=0)
    largest = scales.max() or 1.0
    scales[scales < ROUND_OFF * largest] = largest
    null = complement(Y / scales) / scales[:, None]
    return complement(np.linalg.qr(null)[0].T)


def test_what_a_force_plate_tells_of_a_base_at_rest(arm_with_wrist_sensor):
    """The base link's inertia is never seen; its weight and two moments of it are."""
    submodel = arm_with_wrist_sensor.submodels[0]
    null = null_space(arm_with_wrist_sensor, submodel)
    direction = np.zeros((len(null), 1))
    direction[9] = 1.0
    assert outside(null, direction) < ROUND_OFF
    direction[9], direction[0] = 0.0, 1.0
    assert outside(null, direction) > 0.1


@pytest.mark.parametrize('rows', Rows)
def test_short_levers_are_levers(rows):
    """A joint a millimetre off another one."""
    spaces = []
    for lever in (0.3, 1e-3):
        urdf = arm_with_wrist_sensor_urdf().replace('xyz="0.3 0 0"', f'xyz="{lever} 0 0"')
        urdf = urdf.replace('xyz="0.2 0 0"', f'xyz="{lever} 0 0"')
        arm = Robot.from_urdf(urdf, fixed_link='base', ft_sensors=[])
        spaces.append(null_space(arm, arm.submodels[0], rows).shape)
    assert spaces[0] == spaces[1]


def test_ft_sensors_of_a_floating_robot_tell_all(nested_humanoid):
    found = predictability(nested_humanoid)
    joints = len(nested_humanoid.joint_names)
    assert found.rank == 10 * len(nested_humanoid.submodels) + 7 * joints
    for lacking in (found.torques, found.torques_without_fts, found.wrenches):
        assert set(lacking.values()) == {0}
    assert tuple(found.torques) == nested_humanoid.joint_names


def test_fewer_sensors_tell_less_and_predict_what_is_left(nested_humanoid):
    few = predictability(nested_humanoid, ft_sensors=['arm_sensor'])
    assert few.rank == 10 * 2 + 7 * len(nested_humanoid.joint_names)
    assert set(few.wrenches) == {'root', 'upper_arm'}
    assert set(few.torques.values()) == {0}


def test_a_bolted_base_needs_efforts_or_a_force_plate(arm_with_wrist_sensor):
    wrist_only = predictability(arm_with_wrist_sensor)
    assert all(lacking > 0 for lacking in wrist_only.torques.values())
    assert wrist_only.wrenches['tool'] == 0 < wrist_only.wrenches['base']
    efforts = predictability(arm_with_wrist_sensor, efforts=arm_with_wrist_sensor.joint_names)
    assert set(efforts.torques.values()) == {0}
    assert efforts.wrenches['base'] > 0
    plate = predictability(arm_with_wrist_sensor, base_wrench=True)
    assert set(plate.torques.values()) == set(plate.wrenches.values()) == {0}
    assert wrist_only.rank < efforts.rank < plate.rank


def test_one_effort_tells_of_the_joints_beyond(arm_with_wrist_sensor):
    found = predictability(arm_with_wrist_sensor, efforts=['elbow'])
    assert found.torques['elbow'] == 0
    assert found.torques['shoulder'] > 0


def test_what_is_touched_all_the_time_tells_nothing(nested_humanoid):
    free = predictability(nested_humanoid)
    whole = nested_humanoid.submodels[-1]
    frame = nested_humanoid.link_names[whole.links[-1]]
    touched = predictability(nested_humanoid, contacts=[frame])
    joints = sum(nested_humanoid.links[k].joint >= 0 for k in whole.links)
    assert touched.rank == free.rank - 10 - 7 * joints
    assert touched.wrenches[whole.name] > 0
    with pytest.raises(FrameNotFound):
        predictability(nested_humanoid, contacts=['nowhere'])


def test_without_wrenches_only_efforts_tell(arm_with_wrist_sensor):
    joints = arm_with_wrist_sensor.joint_names
    both = predictability(arm_with_wrist_sensor, efforts=joints)
    efforts = predictability(arm_with_wrist_sensor, efforts=joints, wrenches=())
    assert efforts.rank < both.rank
    assert efforts.wrenches['tool'] > 0 == both.wrenches['tool']


def test_unknown_names_are_named(nested_humanoid):
    with pytest.raises(NameNotFound):
        predictability(nested_humanoid, ft_sensors=['arm_sensr'])
    with pytest.raises(NameNotFound):
        predictability(nested_humanoid, efforts=['kne'])


def test_short_levers_hide_nothing(arm_with_wrist_sensor):
    """The elbow a tenth of a millimetre off the shoulder: small effects are no round-off."""
    urdf = arm_with_wrist_sensor.urdf
    long, short = (
        predictability(
            Robot.from_urdf(urdf.replace('xyz="0.3 0 0"', f'xyz="{x} 0 0"'), fixed_link='base'),
            efforts=['elbow'],
        )
        for x in (0.3, 1e-4)
    )
    assert short == long
