# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Regressors of wrenches and torques, what they determine, and base parameters.

Against the thesis written out (brute_force.py) and known ranks. Not covered: the WAM, friction and
the conditioning of its columns, see `test_base_parameters`.
"""

from pathlib import Path

import brute_force
import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample

from inertial_estimation.errors import InertialEstimationError, NameNotFound
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.base_parameters import BaseParameters, parse_combination
from inertial_estimation.model.identifiable import (
    base_parameters,
    excitable,
    null_space,
    predictability,
    random_states,
)
from inertial_estimation.model.regressor import joints_without_gravity, submodel_regressors
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.torque_derivatives import TorqueRegressor
from inertial_estimation.model.tree import decompose
from inertial_estimation.sample import SampleBatch

# Regressors


ROUND_OFF = 1e-10  # sums of some hundred products of numbers up to a thousand
N = 5
ROBOTS = {
    'fixed arm': lambda: Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base'),
    'floating arm': lambda: Robot.from_urdf(arm_with_wrist_sensor_urdf(), imus=['base']),
    'humanoid': lambda: Robot.from_urdf(nested_humanoid_urdf(), imus=['hand', 'sole', 'chest']),
    'iCub': lambda: Robot.from_urdf(
        Path(pytest.importorskip('icub_models').get_model_file('iCubGazeboV2_5'))
    ),
}


def assert_near(got, expected):
    np.testing.assert_allclose(got, expected, rtol=0, atol=ROUND_OFF)


def random_batch(robot, rng):
    return SampleBatch.stack([random_sample(robot, rng) for _ in range(N)])


@pytest.mark.parametrize('ground', [-1, 3])
@pytest.mark.parametrize('name', ['fixed arm', 'humanoid'])
def test_rows_are_sums_of_the_net_wrenches_of_the_thesis(name, ground, rng):
    robot = ROBOTS[name]()
    samples = random_batch(robot, rng)
    found = submodel_regressors(robot, samples, ground=ground)
    for t, sample in enumerate(samples):
        motions = brute_force.link_motions(robot, sample, range(len(robot.imus)))
        net = brute_force.net_wrenches(robot, motions)
        poses = brute_force.link_poses(robot, sample.positions)
        for submodel, rows in zip(robot.submodels, found, strict=True):
            links = set(submodel.links)
            parameters = robot.parameters[list(submodel.links)].reshape(-1)
            total = brute_force.summed(robot, poses, submodel.root, links, net, {})
            assert_near(rows.wrench[t] @ parameters, total)
            for row, side in enumerate(rows.sides):
                far = links & brute_force.beyond(robot, side.child)
                moved, sign = (links - far, -1) if ground in far else (far, 1)
                wrench = brute_force.summed(robot, poses, side.child, moved, net, {})
                torque = sign * robot.links[side.child].motion @ wrench
                assert_near(rows.torques[t, row] @ parameters, torque)


def test_missing_joint_costs_what_depends_on_it(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    samples = random_batch(robot, rng)
    samples.velocities[2, robot.joint_names.index('knee')] = np.nan
    for submodel, rows in zip(robot.submodels, submodel_regressors(robot, samples), strict=True):
        missing = np.flatnonzero(np.isnan(rows.wrench).any(axis=(1, 2))).tolist()
        assert missing == ([2] if submodel.name in ('thigh', 'foot') else [])


# Rows and gradients for chosen motions


@pytest.fixture(params=[(root, cut) for root in ('base', 'root') for cut in (False, True)])
def held(request):
    """Return a chain with a prismatic joint, or a tree, at rest on a slope, cut or whole."""
    root, cut = request.param
    text = arm_with_wrist_sensor_urdf() if root == 'base' else nested_humanoid_urdf()
    sensors, gravity = None if cut else (), (1.0, -2.0, -9.0)
    return Robot.from_urdf(text, ft_sensors=sensors, fixed_link=root, gravity=gravity)


def test_torque_rows_are_those_of_logs_and_have_slopes(held, rng):
    states, step = rng.normal(size=(3, 2, len(held.joint_names))), 1e-6
    none, readings = np.zeros((2, 0, 3)), np.zeros((2, len(held.ft_sensors), 6))
    samples = SampleBatch(np.arange(2), *states, none, none, none, readings)
    regressor = TorqueRegressor(held)
    Y, gradient = regressor.rows(states)
    of_links = Y.reshape(2, -1, len(held.links), 10)
    found = submodel_regressors(held, samples, ground=0)
    for submodel, wanted in zip(held.submodels, found, strict=True):
        wrench = regressor.wrench_rows.get(submodel.root, ())
        own = of_links[:, [*(side.joint for side in wanted.sides), *wrench]]
        both = [wanted.torques] if submodel.root == 0 else [wanted.torques, wanted.wrench]
        expected = np.concatenate(both, axis=1)
        assert_near(own[:, :, list(submodel.links)].reshape(expected.shape), expected)
        assert not np.delete(own, submodel.links, axis=2).any()
    slopes = rng.normal(size=Y.shape)
    sloped = gradient(slopes)
    for index in np.ndindex(states.shape):
        moved = np.zeros_like(states)
        moved[index] = step
        change = regressor.rows(states + moved)[0] - regressor.rows(states - moved)[0]
        slope = np.sum(slopes * change) / (2 * step)
        np.testing.assert_allclose(sloped[index], slope, rtol=1e-5, atol=1e-5)


# Gravity


@pytest.mark.parametrize(
    ('along', 'names'),
    [
        ((0.001, 0.0, -9.81), {'shoulder'}),  # rounded angles of a URDF
        ((0.0, -9.81, 0.0), set()),  # on a wall
        ((0.0, 0.0, 0.0), {'shoulder', 'elbow', 'lift'}),
    ],
)
def test_joints_without_gravity_have_no_torque_at_rest(along, names, rng):
    """Gravity is given in the axes of the shoulder, whose third is its own."""
    urdf = arm_with_wrist_sensor_urdf()
    axes = Robot.from_urdf(urdf, fixed_link='base', ft_sensors=()).links[1].P_H_L[:3, :3]
    robot = Robot.from_urdf(urdf, fixed_link='base', ft_sensors=(), gravity=axes @ along)
    assert joints_without_gravity(robot) == names
    q = rng.uniform(-1.0, 1.0, (4, 3))
    Y, _ = TorqueRegressor(robot).rows(np.array([q, 0 * q, 0 * q]))
    torques = np.abs(Y @ robot.parameters.reshape(-1)).max(axis=0)
    small = {n for n, torque in zip(robot.joint_names, torques, strict=True) if torque < 0.1}
    assert small == names


# Identifiable subspaces


SINES = 1e-10  # sines of angles, of a few hundred columns and of their condition


@pytest.mark.parametrize('name', ['floating arm', 'humanoid', 'iCub'])
def test_null_spaces_of_floating_submodels(name, rng):
    """A mass on the axis belongs to either side: 3. An inertia that does not turn: 6."""
    floating = ROBOTS[name]()
    samples = random_batch(excitable(floating), rng)
    for submodel in (*floating.submodels, *decompose(floating.links, floating.ft_sensors, ())):
        links = [floating.links[k] for k in submodel.links if k != submodel.root]
        turning = sum(bool(link.motion[3:].any()) for link in links)
        sliding = sum(bool(link.motion[:3].any()) for link in links)
        null = null_space(floating, submodel)
        assert null.shape[0] - null.shape[1] == 10 + 7 * turning + 4 * sliding
        np.testing.assert_allclose(null.T @ null, np.eye(null.shape[1]), atol=SINES)
        rows = submodel_regressors(excitable(floating), samples, [submodel])[0]
        for Y in (rows.wrench, rows.torques):
            assert np.abs(Y @ null).max(initial=0.0) <= SINES * np.abs(Y).max(initial=0.0)


def test_short_levers_are_levers():
    """Joints a micrometre off another one are as many as joints far apart."""
    shapes = []
    for lever in (0.3, 1e-6):
        urdf = arm_with_wrist_sensor_urdf()
        for far in ('0.3', '0.2'):
            urdf = urdf.replace(f'xyz="{far} 0 0"', f'xyz="{lever} 0 0"')
        arm = Robot.from_urdf(urdf, fixed_link='base', ft_sensors=[])
        shapes.append(null_space(arm, arm.submodels[0]).shape)
    assert shapes[0] == shapes[1]


# Predictions; bolted robots are in test_base_parameters.py


def test_measured_quantities_decide_what_can_be_predicted(nested_humanoid, arm_with_wrist_sensor):
    found, joints = predictability(nested_humanoid), len(nested_humanoid.joint_names)
    assert found.rank == 10 * len(nested_humanoid.submodels) + 7 * joints
    for lacking in (found.torques, found.torques_without_fts, found.wrenches):
        assert set(lacking.values()) == {0}
    last = nested_humanoid.submodels[-1]
    touched = predictability(nested_humanoid, contacts=[last.name])
    inner = sum(nested_humanoid.links[k].joint >= 0 for k in last.links)
    assert touched.rank == found.rank - 10 - 7 * inner
    assert touched.wrenches[last.name] > 0
    elbow = predictability(arm_with_wrist_sensor, efforts=['elbow'], wrenches=())
    assert elbow.torques['elbow'] == 0 < elbow.torques['shoulder']
    assert elbow.wrenches['tool'] > 0


# Base parameters


def test_kept_columns_and_groups_give_all_equations(nested_humanoid, rng):
    submodel = nested_humanoid.submodels[0]
    base, samples = base_parameters(nested_humanoid, submodel), random_states(nested_humanoid, 40)
    rows = submodel_regressors(excitable(nested_humanoid), samples, [submodel])[0]
    Y = rows.wrench.reshape(-1, 10 * len(submodel.links))
    x, prior = rng.normal(size=(2, Y.shape[1]))
    np.testing.assert_allclose(Y[:, base.independent] @ base.of(x), Y @ x, atol=1e-9)
    np.testing.assert_array_equal(base.grouping[:, base.independent], np.eye(base.rank))
    measured = BaseParameters.of_regressor(Y)
    np.testing.assert_array_equal(measured.independent, base.independent)
    np.testing.assert_allclose(measured.grouping, base.grouping, atol=SINES)
    # The unexcited part of the unknowns is the prior's.
    found, null = base.standard(base.of(x), prior), np.eye(len(x)) - base.basis() @ base.basis().T
    np.testing.assert_allclose(base.of(found), base.of(x), atol=SINES)
    np.testing.assert_allclose(null @ found, null @ prior, atol=SINES)
    # Combinations can be read back; nine digits are printed.
    names = Unknowns(tuple(nested_humanoid.links[k].name for k in submodel.links)).names
    again = BaseParameters.parse(base.combinations(names), names)
    np.testing.assert_array_equal(again.independent, base.independent)
    np.testing.assert_allclose(again.grouping, base.grouping, rtol=1e-8, atol=1e-9)
    for text in ('', '3', 'a b', 'a +'):
        with pytest.raises(InertialEstimationError):
            parse_combination(text)
    with pytest.raises(NameNotFound):
        BaseParameters.parse(['foo'], names)


def test_columns_that_barely_take_part_or_differ(rng):
    """URDFs have angles of 1e-6 rad in place of zero; the order would ask for the last column."""
    null = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.5], [1e-6, 0.0]])
    base = BaseParameters.of_null_space(null, [0, 1, 2, 3])
    assert sorted(base.independent.tolist()) == [1, 3]
    assert np.abs(base.grouping).max() < 3.0
    Y = rng.normal(size=(60, 10))
    for column, rank in (
        (Y[:, 4] + 1e-5 * rng.normal(size=60), 10), (Y[:, 4], 9), (1e-5 * Y[:, 4], 9)
    ):  # fmt: skip
        Y[:, 6] = column
        assert BaseParameters.of_regressor(Y).rank == rank
