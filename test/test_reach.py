# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which results rest on assumed joints through the offset of an FT sensor.

Not covered: which offsets do (test_offset.py), and what a report makes of it (test_replay.py).
"""

import numpy as np
import pytest
from robots import nested_humanoid_urdf, random_sample, two_link_urdf

from inertial_estimation.calibration.offset import OffsetFit, fit_offsets
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.offsets import OffsetRequest, Offsets
from inertial_estimation.logs.reach import (
    MOST_POSES,
    ROUND_OFF,
    Slopes,
    find_assumed_offsets,
    find_slopes,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.sample import SampleBatch

# Round-off of torques of about 1e3 Nm.
EXACT = 1e-10
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


def find_assumed(offsets, estimator, samples):
    """Return which results rest on assumed joints through any sensor."""
    return find_assumed_offsets(offsets, estimator, samples).of_any_sensor


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


def modelled(assumed):
    """Return offsets from the model of which some rest on assumed joints."""
    whole = np.eye(18)[:, np.repeat(assumed, 6)]
    return OffsetFit(np.zeros((3, 6)), np.zeros(18), 18, 1, np.array(assumed), whole, 1.0)


def fitted(slopes, joint, assumed):
    """Return offsets that were fitted to one torque in some poses, the prior being assumed."""
    n, n_joints, n_fts, _ = slopes.shape
    reference = np.full((n, n_joints), np.nan)
    reference[:, joint] = 0.0
    readings, torques = np.zeros((n, n_fts, 6)), np.zeros((n, n_joints))
    fit = fit_offsets(readings, torques, slopes, reference, prior_assumed=np.array(assumed))
    calibration = FtCalibration.identity(n_fts)
    return Offsets(OffsetRequest('torques'), calibration, 'sole', modelled(assumed), fit)


def posed(samples, robot, joint, angles):
    """Return a sample once for each angle of a joint."""
    many = samples.take(np.zeros(len(angles), dtype=int))
    many.positions[:, robot.joint_names.index(joint)] = angles
    return many


def test_results_feel_the_sensors_of_the_local_form(humanoid, estimator, rng):
    reach = find_slopes(estimator, samples_of(humanoid, rng)).reach
    sensors = humanoid.ft_sensors
    assert dict(zip(CONTACTS, names_of(reach.wrenches, sensors))) == FELT_BY_WRENCH
    assert dict(zip(humanoid.joint_names, names_of(reach.torques, sensors))) == FELT_BY_TORQUE


def test_failed_sensors_and_warming_filters_do_not_matter(humanoid, estimator, rng):
    samples = samples_of(humanoid, rng)
    wanted = find_slopes(estimator, samples)
    for array in (samples.accelerations, samples.angular_accelerations, samples.ft_readings):
        array[:] = np.nan
    for got, table in zip(find_slopes(estimator, samples), wanted):
        np.testing.assert_array_equal(got, table)


@pytest.mark.parametrize('name', ['arm_sensor', 'leg_sensor', 'foot_sensor'])
def test_an_assumed_offset_marks_what_feels_its_sensor(humanoid, estimator, rng, name):
    assumed = [sensor.name == name for sensor in humanoid.ft_sensors]
    calibration = FtCalibration.identity(3)
    samples = samples_of(humanoid, rng)
    offsets = Offsets(OffsetRequest('model'), calibration, 'sole', modelled(assumed))
    reach = find_assumed(offsets, estimator, samples)
    for flags, results, felt in (
        (reach.wrenches, CONTACTS, FELT_BY_WRENCH),
        (reach.torques, humanoid.joint_names, FELT_BY_TORQUE),
    ):
        np.testing.assert_array_equal(flags, [name in felt[result] for result in results])


def test_a_torque_that_the_offsets_were_fitted_to_is_not_marked(humanoid, estimator, rng):
    joints, samples = humanoid.joint_names, samples_of(humanoid, rng)
    slopes = find_slopes(estimator, samples).torques
    arm = [sensor.name == 'arm_sensor' for sensor in humanoid.ft_sensors]
    offsets = fitted(slopes, joints.index('shoulder_joint'), arm)
    reach = find_assumed(offsets, estimator, samples)
    assert [j for j, flag in zip(joints, reach.torques) if flag] == ['waist', 'elbow']
    assert [c for c, flag in zip(CONTACTS, reach.wrenches) if flag] == ['root', 'hand']


# The waist feels the arm's sensor along an axis that turns with the shoulder: by half a degree
# less than the tolerance, by a radian more.
@pytest.mark.parametrize(('turned', 'marked'), [(0.0, False), (0.01, False), (1.0, True)])
def test_a_fitted_torque_is_marked_if_some_pose_feels_what_others_did_not(
    humanoid, estimator, rng, turned, marked
):
    waist, samples = humanoid.joint_names.index('waist'), samples_of(humanoid, rng)
    slopes = find_slopes(estimator, samples).torques
    arm = [sensor.name == 'arm_sensor' for sensor in humanoid.ft_sensors]
    offsets = fitted(slopes, waist, arm)
    # One pose out of more than are tried.
    angle = samples.positions[0, humanoid.joint_names.index('shoulder_joint')]
    angles = np.full(2 * MOST_POSES, angle)
    angles[-1] += turned
    many = posed(samples, humanoid, 'shoulder_joint', angles)
    assert find_assumed(offsets, estimator, many).torques[waist] == marked
    known = fitted(slopes, waist, [not flag for flag in arm])
    assert not find_assumed(known, estimator, many).torques[waist], 'another prior is assumed'


def test_a_marked_torque_is_one_that_follows_the_assumed_prior(humanoid, estimator, rng):
    joints, waist = humanoid.joint_names, humanoid.joint_names.index('waist')
    samples = samples_of(humanoid, rng)
    there = posed(samples, humanoid, 'shoulder_joint', [-1.0])
    here = posed(samples, humanoid, 'shoulder_joint', [0.4])
    arm = np.array([sensor.name == 'arm_sensor' for sensor in humanoid.ft_sensors])
    slopes = find_slopes(estimator, here).torques
    only = np.where(np.arange(len(joints)) == waist, 0.0, np.nan)[None]
    found = []
    for prior in (np.zeros((3, 6)), rng.normal(0.0, 1.0, (3, 6)) * arm[:, None]):
        zeros = np.zeros((1, 3, 6)), np.zeros((1, len(joints)))
        fit = fit_offsets(*zeros, slopes, only, prior=prior, prior_assumed=arm)
        calibration = FtCalibration(np.tile(np.eye(6), (3, 1, 1)), fit.offsets)
        other = WrenchEstimator(humanoid, estimator.contacts, calibration=calibration)
        found.append([other.batch(poses).torques[0, waist] for poses in (here, there)])
    change = np.abs(np.subtract(*found))
    assert change[0] < EXACT < 0.01 < change[1]
    offsets = fitted(slopes, waist, arm)
    marks = [find_assumed(offsets, estimator, poses).torques[waist] for poses in (here, there)]
    assert marks == [False, True]


def test_matrices_of_the_calibration_do_not_matter(humanoid, estimator, rng):
    matrices = rng.normal(0.0, 1e-3, (3, 6, 6))
    matrices[1] = 0.0
    calibration = FtCalibration(matrices, np.ones((3, 6)))
    other = WrenchEstimator(humanoid, estimator.contacts, calibration=calibration)
    samples = samples_of(humanoid, rng)
    for got, wanted in zip(find_slopes(other, samples), find_slopes(estimator, samples)):
        np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(other.calibration.matrices, matrices)


def test_what_cancels_but_for_round_off_is_not_felt(humanoid, rng):
    # Both contacts are beyond the waist and take up all that the arm's sensor says.
    estimator = WrenchEstimator(humanoid, [Contact('chest'), Contact('head')])
    reach = find_slopes(estimator, samples_of(humanoid, rng)).reach
    names = names_of(reach.torques, humanoid.ft_sensors)
    assert names[humanoid.joint_names.index('waist')] == {'leg_sensor'}
    # Whatever the engine leaves: the same with numbers; a pose may be unknown.
    wrenches, torques = np.zeros((2, 1, 6, 3, 6)), np.zeros((2, 4, 3, 6))
    wrenches[0, 0, 5, 2, 1] = 2.0
    wrenches[0, 0, 5, 1, 1] = 0.5 * ROUND_OFF
    torques[0, 0, 1, 3] = 3.0 * ROUND_OFF
    torques[0, 1, 2, 3] = 1.0 * ROUND_OFF
    torques[1, :3], torques[:, 3] = np.nan, np.nan
    reach = Slopes(wrenches, torques).reach
    np.testing.assert_array_equal(reach.wrenches, [[False, False, True]])
    np.testing.assert_array_equal(np.argwhere(reach.torques), [[0, 1]])
    tiny = Slopes(np.zeros((1, 0, 6, 3, 6)), np.full((1, 1, 3, 6), 1e-15))
    assert not tiny.reach.torques.any()


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
