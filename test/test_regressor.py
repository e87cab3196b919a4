# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Regressors of wrenches and torques, what they determine, and base parameters.

Against the estimator's net wrenches, known ranks and Theorems 7.1-7.3. Not covered: the speed,
which `make bench` prints; the WAM, friction and the conditioning of its columns, see
`test_base_parameters`.
"""

from pathlib import Path

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample

from inertial_estimation.errors import InertialEstimationError, NameNotFound
from inertial_estimation.estimation.balance import subtrees
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.base_parameters import BaseParameters, parse_combination
from inertial_estimation.model.identifiable import (
    base_parameters,
    excitable,
    null_space,
    predictability,
    random_states,
)
from inertial_estimation.model.link_motions import link_motions, poses_in_parents
from inertial_estimation.model.regressor import (
    joint_axis,
    joints_without_gravity,
    net_wrench_regressor,
    poses_in_root,
    submodel_regressors,
    wrench_to_root,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.torque_derivatives import TorqueRegressor
from inertial_estimation.model.tree import decompose
from inertial_estimation.sample import SampleBatch

# Regressors


ROUND_OFF = 1e-10  # sums of some hundred products of numbers up to a thousand
N = 7
ROBOTS = {
    'fixed arm': (arm_with_wrist_sensor_urdf(), {'fixed_link': 'base'}),
    'IMUs': (nested_humanoid_urdf(), {'imus': ['hand', 'shank', 'chest']}),
}


def assert_near(got, expected):
    np.testing.assert_allclose(got, expected, rtol=0, atol=ROUND_OFF)


def random_batch(robot, rng):
    return SampleBatch.stack([random_sample(robot, rng) for _ in range(N)])


@pytest.mark.parametrize('ground', [-1, 3])
@pytest.mark.parametrize('name', ROBOTS)
def test_rows_are_sums_of_the_net_wrenches_of_the_estimator(name, ground, rng):
    robot = Robot.from_urdf(ROBOTS[name][0], **ROBOTS[name][1])
    samples, estimator = random_batch(robot, rng), WrenchEstimator(robot, [])
    poses = poses_in_parents(robot, samples.positions)
    motions = link_motions(robot, samples, poses)
    own = [net_wrench_regressor(m) @ p for m, p in zip(motions, robot.parameters, strict=True)]
    net = InternalWrenches(estimator).net(samples, estimator.batch(samples))
    assert_near(np.moveaxis(own, 0, 1), net)
    beyond = subtrees(robot)
    found = submodel_regressors(robot, samples, ground=ground)
    for submodel, rows in zip(robot.submodels, found, strict=True):
        parameters = robot.parameters[list(submodel.links)].reshape(-1)
        placed = poses_in_root(robot, submodel, poses)
        at_root = {k: wrench_to_root(placed[k], own[k]) for k in submodel.links}
        assert_near(rows.wrench @ parameters, sum(at_root.values()))
        for row, side in enumerate(rows.sides):
            axis = joint_axis(placed[side.child], robot.links[side.child].motion)
            carried = {*submodel.links} & {*beyond[side.child]}
            away = ground not in carried
            free = carried if away else {*submodel.links} - carried
            torque = (1 if away else -1) * axis * sum(at_root[k] for k in sorted(free))
            assert_near(rows.torques[:, row] @ parameters, torque.sum(axis=1))


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


def test_torque_rows_are_those_of_logs(held, rng):
    q, v, a = rng.normal(size=(3, 5, len(held.joint_names)))
    none, readings = np.zeros((5, 0, 3)), np.zeros((5, len(held.ft_sensors), 6))
    samples = SampleBatch(np.arange(5), q, v, a, none, none, none, readings)
    regressor = TorqueRegressor(held)
    Y = regressor.rows(np.array([q, v, a]))[0].reshape(5, -1, len(held.links), 10)
    found = submodel_regressors(held, samples, ground=0)
    for submodel, wanted in zip(held.submodels, found, strict=True):
        wrench = regressor.wrench_rows.get(submodel.root, ())
        own = Y[:, [*(side.joint for side in wanted.sides), *wrench]]
        both = [wanted.torques] if submodel.root == 0 else [wanted.torques, wanted.wrench]
        expected = np.concatenate(both, axis=1)
        assert_near(own[:, :, list(submodel.links)].reshape(expected.shape), expected)
        assert not np.delete(own, submodel.links, axis=2).any()


def test_torque_gradient_is_the_slope(held, rng):
    regressor, step = TorqueRegressor(held), 1e-6
    states = rng.normal(size=(3, 2, len(held.joint_names)))
    Y, gradient = regressor.rows(states)
    slopes = rng.normal(size=Y.shape)
    found = gradient(slopes)
    for index in np.ndindex(states.shape):
        moved = np.zeros_like(states)
        moved[index] = step
        change = regressor.rows(states + moved)[0] - regressor.rows(states - moved)[0]
        slope = np.sum(slopes * change) / (2 * step)
        np.testing.assert_allclose(found[index], slope, rtol=1e-5, atol=1e-5)


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


FLOATING = {
    'floating arm': lambda: Robot.from_urdf(arm_with_wrist_sensor_urdf(), imus=['base']),
    'humanoid': lambda: Robot.from_urdf(nested_humanoid_urdf(), imus=['hand', 'shank', 'chest']),
    'iCub': lambda: Robot.from_urdf(
        Path(pytest.importorskip('icub_models').get_model_file('iCubGazeboV2_5'))
    ),
}


def complement(rows):
    """Return orthonormal columns that all rows are orthogonal to."""
    _, values, right = np.linalg.svd(rows, full_matrices=True)
    return right[int(np.sum(values > 1e-9 * values.max(initial=0.0))) :].T


def row_space(Y):
    scales = np.linalg.norm(Y, axis=0)
    largest = scales.max() or 1.0
    scales[scales < SINES * largest] = largest
    return complement(np.linalg.qr(complement(Y / scales) / scales[:, None])[0].T)


def outside(basis, columns):
    """Return the sine of the largest angle of orthonormal columns to a subspace."""
    return float(np.linalg.norm(columns - basis @ (basis.T @ columns), 2))


@pytest.mark.parametrize('name', FLOATING)
def test_ranks_of_floating_submodels(name):
    """A mass on the axis belongs to either side: 3. An inertia that does not turn: 6."""
    floating = FLOATING[name]()
    for submodel in floating.submodels:
        links = [floating.links[k] for k in submodel.links if k != submodel.root]
        turning = sum(bool(link.motion[3:].any()) for link in links)
        sliding = sum(bool(link.motion[:3].any()) for link in links)
        rank = 10 * len(submodel.links) - null_space(floating, submodel).shape[1]
        assert rank == 10 + 7 * turning + 4 * sliding


@pytest.mark.parametrize('name', ['floating arm', 'humanoid'])
def test_theorems_on_submodels(name):
    """The base wrench (7.1), the submodels (7.2) and each of them (7.3) determine the torques."""
    floating = FLOATING[name]()
    (submodel,) = decompose(floating.links, floating.ft_sensors, cut=())
    n = 10 * len(submodel.links)
    samples = random_states(floating, max(n // 3, 5 * len(floating.links)))
    rows = submodel_regressors(excitable(floating), samples, [submodel])[0]
    everything = np.concatenate([rows.wrench, rows.torques], axis=1).reshape(-1, n)
    base = complement(null_space(floating, submodel).T)
    full = row_space(everything)
    assert full.shape == base.shape and outside(base, full) < SINES
    assert outside(base, row_space(rows.torques.reshape(-1, n))) < SINES
    columns = []
    found = submodel_regressors(excitable(floating), samples)
    for part, part_rows in zip(floating.submodels, found, strict=True):
        basis = complement(null_space(floating, part).T)
        for torque in np.moveaxis(part_rows.torques, 1, 0):
            assert outside(basis, row_space(torque)) < SINES
        placed = np.zeros((len(floating.links), 10, basis.shape[1]))
        placed[list(part.links)] = basis.reshape(len(part.links), 10, -1)
        columns.append(placed.reshape(-1, basis.shape[1]))
    parts = np.hstack(columns)
    assert outside(parts, base) < SINES
    assert parts.shape[1] > base.shape[1]


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
