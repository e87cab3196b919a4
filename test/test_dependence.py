# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A result depends on exactly the sensors, joints and links whose change changes it.

One joint, FT sensor, IMU or link at a time is disturbed: position, velocity and acceleration; the
whole reading; all inertial parameters. Where a submodel's wrench is split, some of what is marked
may happen not to change; nothing that changes is ever unmarked. Not covered: missing FT sensors
and IMUs (test_quality.py), what is printed of it (test_cli.py).
"""

import numpy as np
import pytest
from robots import (
    all_kinds,
    arm_with_wrist_sensor_urdf,
    at_ends,
    at_roots,
    nested_humanoid_urdf,
    random_sample,
    two_link_urdf,
)
from test_newton_euler import nested

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dependence import dependence_table
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot

# Relative to the largest number: far above round-off, far below what a disturbance does.
CHANGED = 1e-9
ROBOTS = {
    'humanoid, imu at the head': (nested_humanoid_urdf(), {'imus': ['head']}),
    'humanoid, imus around joints': (nested_humanoid_urdf(), {'imus': ['chest', 'hip', 'shank']}),
    'humanoid, fixed foot': (nested_humanoid_urdf(), {'fixed_link': 'foot'}),
    'humanoid without sensors': (nested_humanoid_urdf(), {'imus': ['root'], 'ft_sensors': []}),
    'arm held by its tip': (arm_with_wrist_sensor_urdf(), {'fixed_link': 'tip'}),
    'two links': (two_link_urdf(), {'imus': ['arm']}),
}


def with_known_wrenches(robot):
    known = [Contact(name, 'known', wrench=(1, 2, 3, 4, 5, 6)) for name in robot.link_names]
    return [*known, *at_ends(robot)]


def without(robot, sample, fts, imus):
    """Return a sample in which some sensors are lost, and IMUs measure what they do."""
    fields = {name: np.array(getattr(sample, name)) for name in (*PER_IMU, 'ft_readings')}
    fields['ft_readings'][[s.name in fts for s in robot.ft_sensors]] = np.nan
    for k, imu in enumerate(robot.imus):
        for name in PER_IMU:
            measured = imu.measures != ('gyroscope' if 'proper' in name else 'accelerometer')
            if imu.name in imus or not measured:
                fields[name][k] = np.nan
    return sample._replace(**fields)


def root_and_end(robot):
    """Return two full wrenches in every submodel of several links."""
    ends = {(s.links[0], s.links[-1]) for s in robot.submodels}
    return [Contact(robot.link_names[k]) for k in sorted({k for pair in ends for k in pair})]


SETS = [at_roots, at_ends, with_known_wrenches, root_and_end, lambda robot: at_ends(robot)[::2]]
PER_IMU = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')
THINGS = ('fts', 'imus', 'joints', 'links')


def disturbances(robot, sample, rng):
    """Yield kind and name of a thing, with the robot and the sample when it is another."""
    for k, name in enumerate(robot.joint_names):
        step = np.eye(len(robot.joint_names))[k]
        yield 'joints', name, robot, sample._replace(
            positions=sample.positions + 0.7 * step,
            velocities=sample.velocities + step,
            accelerations=sample.accelerations + 3.0 * step,
        )  # fmt: skip
    for k, sensor in enumerate(robot.ft_sensors):
        readings = sample.ft_readings.copy()
        readings[k] += rng.normal(0.0, 10.0, 6)
        yield 'fts', sensor.name, robot, sample._replace(ft_readings=readings)
    for k, imu in enumerate(robot.imus):
        readings = {name: getattr(sample, name).copy() for name in PER_IMU}
        for rows in readings.values():
            rows[k] += rng.normal(size=3)
        yield 'imus', imu.name, robot, sample._replace(**readings)
    for k, name in enumerate(robot.link_names):
        parameters = np.array(robot.parameters)
        parameters[k] += rng.uniform(0.5, 1.5, 10)
        yield 'links', name, robot.with_parameters(parameters), sample


def what_moves(robot, contacts, rng, *, lost_fts=(), lost_imus=(), **options):
    """Return for each kind of thing and each result the names that move it."""
    sample = without(robot, random_sample(robot, rng), lost_fts, lost_imus)
    before = WrenchEstimator(robot, contacts, **options).update(sample)
    moves = {
        result: {thing: [set() for _ in getattr(before, result)] for thing in THINGS}
        for result in ('torques', 'wrenches')
    }
    for thing, name, other, disturbed in disturbances(robot, sample, rng):
        after = WrenchEstimator(other, contacts, **options).update(disturbed)
        for result, found in moves.items():
            a, b = getattr(before, result), getattr(after, result)
            size = max(1.0, np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))
            changed = (np.abs(a - b) > CHANGED * size).reshape(len(a), a[0:1].size).any(axis=1)
            for row in np.flatnonzero(changed):
                found[thing][row].add(name)
    return moves


def assert_exact(robot, contacts, rng, *, lost_fts=(), lost_imus=(), **options):
    """Check that exactly the named things move each torque and each external wrench."""
    table = dependence_table(
        robot,
        contacts,
        fts=[s.name for s in robot.ft_sensors if s.name not in lost_fts],
        imus=[imu.name for imu in robot.imus if imu.name not in lost_imus],
        **options,
    )
    moves = what_moves(robot, contacts, rng, lost_fts=lost_fts, lost_imus=lost_imus, **options)
    assert [row.name for row in table.torques] == list(robot.joint_names)
    for result, rows in (('torques', table.torques), ('wrenches', table.wrenches)):
        for thing in THINGS:
            named = [set(getattr(row, thing)) for row in rows]
            if thing == 'imus' and robot.fixed_frame:
                summed = [row.links for row in rows]
                assert named == [{robot.fixed_frame} if links else set() for links in summed]
                continue
            assert named == moves[result][thing], f'{result} and {thing}'


@pytest.mark.parametrize('contacts', SETS)
@pytest.mark.parametrize('name', ROBOTS)
def test_exactly_what_is_named_moves_a_result(name, contacts, rng):
    text, options = ROBOTS[name]
    robot = Robot.from_urdf(text, **options)
    assert_exact(robot, contacts(robot), rng)


@pytest.mark.parametrize(
    ('lost_fts', 'contacts'),
    [
        (['leg_sensor'], ['thigh', 'hand', 'foot']),
        (['foot_sensor'], ['chest', 'hand', 'sole']),
        (['arm_sensor', 'leg_sensor'], ['hand', 'foot']),
        (['arm_sensor', 'leg_sensor', 'foot_sensor'], ['root']),
    ],
)
@pytest.mark.parametrize('lost_imus', [[], ['foot', 'hand']])
def test_exactly_what_is_named_moves_where_sensors_are_lost(lost_fts, lost_imus, contacts, rng):
    """Submodels merge, and other IMUs serve."""
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'foot', 'hand'])
    chosen = [Contact(name) for name in contacts]
    assert_exact(robot, chosen, rng, lost_fts=lost_fts, lost_imus=lost_imus)


@pytest.mark.parametrize('arrays', [False, True])
def test_exactly_what_is_named_moves_where_imus_measure_halves(arrays, rng):
    robot = nested()
    assert_exact(robot, at_ends(robot), rng, acceleration_arrays=arrays)


@pytest.mark.parametrize('contacts', [*SETS, all_kinds])
@pytest.mark.parametrize('lost', [[], [0, 2], [0, 1, 2]])
def test_uninformed_torques_are_those_without_ft_sensor(lost, contacts):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'foot'])
    table = dependence_table(robot, contacts(robot), fts=[k for k in range(3) if k not in lost])
    joints = {joint for group in table.uninformed for joint in group.joints}
    assert joints == {row.name for row in table.torques if not row.fts}
