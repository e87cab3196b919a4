# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What is said to rest on a joint is what changes when the joint's reading is changed.

Position, velocity and acceleration are disturbed one joint at a time. Where a submodel's wrench is
split, some of what is marked may happen not to change; nothing that changes is ever unmarked. Not
covered: missing FT sensors and IMUs (test_quality.py).
"""

import numpy as np
import pytest
from robots import (
    arm_with_wrist_sensor_urdf,
    nested_humanoid_urdf,
    random_sample,
    two_link_urdf,
)

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot

# Relative to the largest number: far above round-off, far below what a disturbance does.
CHANGED = 1e-9
FLAGS = {
    'wrenches': 'contact_quality',
    'torques': 'torque_quality',
    'external_torques': 'external_torque_quality',
    'residuals': 'submodel_quality',
}
ROBOTS = {
    'humanoid, imu at the head': (nested_humanoid_urdf(), {'imus': ['head']}),
    'humanoid, imu at the foot': (nested_humanoid_urdf(), {'imus': ['foot']}),
    'humanoid, imus at head and foot': (nested_humanoid_urdf(), {'imus': ['head', 'foot']}),
    'humanoid, imus around joints': (nested_humanoid_urdf(), {'imus': ['chest', 'hip', 'shank']}),
    'humanoid, fixed foot': (nested_humanoid_urdf(), {'fixed_link': 'foot'}),
    'humanoid without sensors': (nested_humanoid_urdf(), {'imus': ['root'], 'ft_sensors': []}),
    'arm on the ground': (arm_with_wrist_sensor_urdf(), {'fixed_link': 'base'}),
    'arm held by its tip': (arm_with_wrist_sensor_urdf(), {'fixed_link': 'tip'}),
    'two links': (two_link_urdf(), {'imus': ['arm']}),
}


def at_roots(robot):
    return [Contact(submodel.name) for submodel in robot.submodels]


def at_ends(robot):
    return [Contact(robot.link_names[submodel.links[-1]]) for submodel in robot.submodels]


def with_known_wrenches(robot):
    known = [Contact(name, 'known', wrench=(1, 2, 3, 4, 5, 6)) for name in robot.link_names]
    return [*known, *at_ends(robot)]


def nowhere(robot):
    return []


def split(robot):
    kinds = ['force', 'wrench', 'axial_force', 'known']
    point = (0.1, 0.2, -0.1)
    return [
        Contact(name, kinds[k % 4], point, wrench=(1, 2, 3, 4, 5, 6))
        for k, name in enumerate(robot.link_names)
    ]


def what_changes(estimator, rng):
    """Return for each result a table: row changes when column's joint is disturbed."""
    n = len(estimator.robot.joint_names)
    sample = random_sample(estimator.robot, rng)
    before = estimator.update(sample)
    tables = {name: np.zeros((len(getattr(before, name)), n), dtype=bool) for name in FLAGS}
    for j, step in enumerate(np.eye(n)):
        after = estimator.update(
            sample._replace(
                positions=sample.positions + 0.7 * step,
                velocities=sample.velocities + step,
                accelerations=sample.accelerations + 3.0 * step,
            )
        )
        for name, table in tables.items():
            a, b = getattr(before, name), getattr(after, name)
            size = max(1.0, np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))
            changed = np.abs(a - b) > CHANGED * size
            table[:, j] = changed if changed.ndim == 1 else changed.any(axis=1)
    return tables


def what_is_said(estimator, rng, flag):
    """Return the same tables from the quality of estimates with one joint missing or assumed."""
    n = len(estimator.robot.joint_names)
    sample = random_sample(estimator.robot, rng)
    columns = []
    for j in range(n):
        positions, states = sample.positions.copy(), np.zeros(n, dtype=np.uint8)
        if flag == Quality.MISSING:
            positions[j] = np.nan
        else:
            states[j] = 1
        columns.append(estimator.update(sample._replace(positions=positions, joint_states=states)))
    return {
        name: np.array([getattr(e, quality) & flag != 0 for e in columns]).T
        for name, quality in FLAGS.items()
    }


@pytest.mark.parametrize('flag', [Quality.MISSING, Quality.ASSUMED])
@pytest.mark.parametrize('contacts', [at_roots, at_ends, with_known_wrenches, nowhere])
@pytest.mark.parametrize('name', ROBOTS)
def test_what_is_marked_is_what_changes(name, contacts, flag, rng):
    text, options = ROBOTS[name]
    robot = Robot.from_urdf(text, **options)
    estimator = WrenchEstimator(robot, contacts(robot))
    changed, said = what_changes(estimator, rng), what_is_said(estimator, rng, flag)
    for result in ('wrenches', 'torques', 'external_torques'):
        np.testing.assert_array_equal(said[result], changed[result], err_msg=result)
    # A residual is zero where a full wrench takes up everything, marked or not.
    assert not (changed['residuals'] & ~said['residuals']).any()
    if contacts is nowhere:
        np.testing.assert_array_equal(said['residuals'], changed['residuals'])


@pytest.mark.parametrize('name', ROBOTS)
def test_nothing_that_changes_is_unmarked_where_wrenches_are_split(name, rng):
    text, options = ROBOTS[name]
    robot = Robot.from_urdf(text, **options)
    estimator = WrenchEstimator(robot, split(robot))
    said = what_is_said(estimator, rng, Quality.MISSING)
    for result, changed in what_changes(estimator, rng).items():
        assert not (changed & ~said[result]).any(), result


@pytest.mark.parametrize('contacts', [at_ends, split])
@pytest.mark.parametrize('imus', [['head'], ['head', 'l_foot', 'r_hand']])
def test_a_real_robot(imus, contacts, rng, shared_models):
    robot = Robot.from_urdf(shared_models / 'icub_v2_5.urdf', imus=imus)
    estimator = WrenchEstimator(robot, contacts(robot))
    said = what_is_said(estimator, rng, Quality.MISSING)
    for result, changed in what_changes(estimator, rng).items():
        assert not (changed & ~said[result]).any(), result
        if contacts is at_ends and result != 'residuals':
            assert not (said[result] & ~changed).any(), result
