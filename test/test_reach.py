# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which results rest on assumed joints through the offset of an FT sensor.

Not covered: which offsets do (test_offset.py), and what a report makes of it (test_replay.py).
"""

import numpy as np
import pytest
from robots import nested_humanoid_urdf, random_sample, two_link_urdf

from inertial_estimation.calibration.offset import OffsetFit
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.offsets import OffsetRequest, Offsets
from inertial_estimation.logs.reach import find_assumed, find_reach
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.sample import SampleBatch

CONTACTS = ('root', 'thigh', 'sole', 'hand')
# Sensors at the borders of a contact's submodel. Torques are those of the links beyond the joint,
# or with a wrench beyond it of those on the other side, up to the first sensor [T 4.25].
FELT_BY_WRENCH = {
    'root': {'arm_sensor', 'leg_sensor'},
    'thigh': {'leg_sensor', 'foot_sensor'},
    'sole': {'foot_sensor'},
    'hand': {'arm_sensor'},
}
FELT_BY_TORQUE = {
    'waist': {'arm_sensor'},
    'neck': set(),
    'shoulder_joint': {'arm_sensor'},
    'elbow': {'arm_sensor'},
    'hip_joint': {'leg_sensor'},
    'knee': {'foot_sensor'},
}


@pytest.fixture
def humanoid():
    return Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])


@pytest.fixture
def estimator(humanoid):
    return WrenchEstimator(humanoid, [Contact(frame) for frame in CONTACTS])


def samples_of(robot, rng):
    return SampleBatch.stack([random_sample(robot, rng)])


def names_of(rows, sensors):
    return [{s.name for s, felt in zip(sensors, row) if felt} for row in rows]


def fit(assumed, deviations=()):
    return OffsetFit(np.zeros((3, 6)), np.array(deviations), 0, 1, np.array(assumed))


def test_results_feel_the_sensors_of_the_local_form(humanoid, estimator, rng):
    reach = find_reach(estimator, samples_of(humanoid, rng))
    sensors = humanoid.ft_sensors
    assert dict(zip(CONTACTS, names_of(reach.wrenches, sensors))) == FELT_BY_WRENCH
    assert dict(zip(humanoid.joint_names, names_of(reach.torques, sensors))) == FELT_BY_TORQUE


def test_failed_sensors_and_warming_filters_do_not_matter(humanoid, estimator, rng):
    samples = samples_of(humanoid, rng)
    wanted = find_reach(estimator, samples)
    for array in (samples.accelerations, samples.angular_accelerations, samples.ft_readings):
        array[:] = np.nan
    for got, table in zip(find_reach(estimator, samples), wanted):
        np.testing.assert_array_equal(got, table)


@pytest.mark.parametrize('name', ['arm_sensor', 'leg_sensor', 'foot_sensor'])
def test_an_assumed_offset_marks_what_feels_its_sensor(humanoid, estimator, rng, name):
    assumed = [sensor.name == name for sensor in humanoid.ft_sensors]
    calibration = FtCalibration.identity(3)
    samples = samples_of(humanoid, rng)
    offsets = Offsets(OffsetRequest('model'), calibration, 'sole', fit(assumed))
    reach = find_assumed(offsets, estimator, samples)
    for flags, results, felt in (
        (reach.wrenches, CONTACTS, FELT_BY_WRENCH),
        (reach.torques, humanoid.joint_names, FELT_BY_TORQUE),
    ):
        np.testing.assert_array_equal(flags, [name in felt[result] for result in results])


def test_a_torque_that_the_offsets_were_fitted_to_is_not_marked(humanoid, estimator, rng):
    joints = humanoid.joint_names
    deviations = [0.1 if joint == 'shoulder_joint' else np.nan for joint in joints]
    torques = fit([sensor.name == 'arm_sensor' for sensor in humanoid.ft_sensors], deviations)
    offsets = Offsets(
        OffsetRequest('torques'), FtCalibration.identity(3), 'sole', fit([True] * 3), torques
    )
    reach = find_assumed(offsets, estimator, samples_of(humanoid, rng))
    assert [j for j, flag in zip(joints, reach.torques) if flag] == ['waist', 'elbow']
    assert [c for c, flag in zip(CONTACTS, reach.wrenches) if flag] == ['root', 'hand']


def test_configured_offsets_and_robots_without_sensors_mark_nothing(humanoid, estimator, rng):
    offsets = Offsets(OffsetRequest(), FtCalibration.identity(3))
    reach = find_assumed(offsets, estimator, samples_of(humanoid, rng))
    assert not reach.wrenches.any()
    assert not reach.torques.any()
    pair = Robot.from_urdf(two_link_urdf(), imus=['body'])
    offsets = Offsets(OffsetRequest(), FtCalibration.identity(0))
    reach = find_assumed(offsets, WrenchEstimator(pair, [Contact('arm')]), samples_of(pair, rng))
    np.testing.assert_array_equal(reach.wrenches, [False])
    np.testing.assert_array_equal(reach.torques, [False])
