# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Links with several sensors, or with accelerometers or gyroscopes alone.

What brute force (`brute_force.body_motions`) finds is taken for true. How messages become samples
with parts that are absent is in test_streams.
"""

from contextlib import suppress
from functools import cache
from pathlib import Path

import brute_force
import numpy as np
import pytest
from consistent_readings import ConsistentReadings, random_motion
from robots import assert_close, at_ends, nested_humanoid_urdf, random_sample, two_link_urdf
from scipy.spatial.transform import Rotation

from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.link_motion import LinkMotions
from inertial_estimation.estimation.sensor_arrays import spread
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import LinkSensorSpec
from inertial_estimation.sample import SampleBatch

# Relative to the largest number of a result: round-off on the way through some thirty joints, of
# arrays blown up by their inverse.
ROUND_OFF = 1e-11
# A batch: the order of sums alone.
SUMS = 1e-12
SENSORISED = Path(__file__).resolve().parents[2] / 'shared/data/models/icub_sensorised.urdf'
MEASURED = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')


def spec(name, link, xyz=(0.0, 0.0, 0.0), measures='both', noise=(1.0, 1.0)):
    """Return a sensor at a point of a link, turned somehow; noise: accelerometer, gyroscope."""
    pose = np.eye(4)
    turn = 0.3 * np.arange(1, 4) + np.array(xyz)
    pose[:3, :3], pose[:3, 3] = Rotation.from_rotvec(turn).as_matrix(), xyz
    return LinkSensorSpec(name, link, pose, measures, *noise)


@cache
def nested():
    """Return a robot with whole IMUs, parts, several on a link, and two arrays."""
    acc, gyro = 'accelerometer', 'gyroscope'
    specs = [
        spec('h1', 'head', (0.1, 0.0, 0.05), acc, (0.02, 1.0)),
        spec('h2', 'head', (0.0, 0.1, 0.0), acc, (0.05, 1.0)),
        spec('h3', 'head', (-0.1, 0.0, 0.0), 'both', (0.03, 0.01)),
        spec('h4', 'head', (0.0, 0.0, 0.0), gyro, (1.0, 0.02)),
        spec('c', 'chest', (0.2, 0.1, 0.0), acc),
        spec('a', 'hand', (0.0, 0.02, 0.1), gyro),
        spec('t', 'thigh', (0.05, 0.0, -0.1), gyro),
        spec('f1', 'foot', (0.1, 0.02, 0.0), acc, (0.05, 1.0)),
        spec('f2', 'foot', (-0.1, 0.02, 0.0), acc, (0.04, 1.0)),
        spec('f3', 'foot', (0.0, -0.05, 0.03), acc, (0.03, 1.0)),
    ]
    return Robot.from_urdf(nested_humanoid_urdf(), imus=specs)


@cache
def sensorised():
    """Return the iCub with its 55 accelerometers and 11 gyroscopes, each for itself."""
    if not SENSORISED.is_file():
        pytest.skip('the shared data folder is not beside this checkout')
    robot = Robot.from_urdf(SENSORISED)
    rng = np.random.default_rng(3)
    tags = {'accelerometer': robot.accelerometers, 'gyroscope': robot.gyroscopes}
    specs = [
        LinkSensorSpec(tag.name, '', None, kind, *rng.uniform(0.02, 0.06, 2))
        for kind, found in tags.items()
        for tag in found
    ]
    return Robot.from_urdf(SENSORISED, imus=specs)


@pytest.fixture(params=[nested, sensorised])
def robot(request):
    return request.param()


def measured_only(robot, sample):
    """Put NaN where an IMU does not measure."""
    kinds, fields = np.array([imu.measures for imu in robot.imus]), {}
    for name in MEASURED:
        other = 'gyroscope' if name == 'proper_accelerations' else 'accelerometer'
        fields[name] = np.where((kinds == other)[:, None], np.nan, getattr(sample, name))
    return sample._replace(**fields)


def any_subset(robot, rng, *, arrays):
    """Return IMUs that deliver: enough of them to tell how one link moves."""
    while True:
        chosen = np.flatnonzero(rng.uniform(size=len(robot.imus)) < rng.choice([0.15, 0.5, 0.9]))
        imus = [
            LinkSensorSpec(i.name, robot.link_names[i.link], i.L_H_S, i.measures)
            for i in (robot.imus[k] for k in chosen)
        ]
        with suppress(ModelError):
            LinkMotions(some := Robot.from_urdf(robot.urdf, imus=imus), arrays=arrays)
            if len(some.imus):
                return chosen.tolist()


def only(sample, rows):
    """Return the sample with the readings of some IMUs alone."""
    kept = np.isin(np.arange(len(sample.angular_velocities)), rows)[:, None]
    fields = {name: np.where(kept, getattr(sample, name), np.nan) for name in MEASURED}
    return sample._replace(**fields)


def consistent_sample(robot, rng):
    """Return readings of all IMUs under random wrenches, and these wrenches."""
    contacts = at_ends(robot)
    plain = Robot.from_urdf(robot.urdf, imus=[robot.link_names[0]])
    wrenches = {c.frame: rng.normal(0.0, 20.0, 6) for c in contacts}
    sample, torques, _ = ConsistentReadings(plain).sample(random_motion(plain, rng), wrenches)
    motions = brute_force.link_motions(plain, sample, [0])
    readings = [brute_force.motion_of_frame(imu.L_H_S, motions[imu.link]) for imu in robot.imus]
    rates, accelerations, spins = (np.array([r[k] for r in readings]) for k in range(3))
    sample = sample._replace(
        angular_velocities=rates, proper_accelerations=accelerations, angular_accelerations=spins
    )
    return measured_only(robot, sample), np.array(list(wrenches.values())), torques


@pytest.mark.parametrize('arrays', [False, True])
def test_any_sensors_that_suffice_find_wrenches_and_torques(robot, arrays, rng):
    estimator = WrenchEstimator(robot, at_ends(robot), acceleration_arrays=arrays)
    for _ in range(10):
        sample, wrenches, torques = consistent_sample(robot, rng)
        for rows in (any_subset(robot, rng, arrays=arrays), list(range(len(robot.imus)))):
            estimate = estimator.update(only(sample, rows))
            assert_close(estimate.wrenches, wrenches, 1e-9)
            assert_close(estimate.torques, torques, 1e-9)
            assert not estimate.quality.any()


@pytest.mark.parametrize('arrays', [False, True])
def test_contradicting_readings_are_weighed_as_by_hand(robot, arrays, rng):
    contacts = at_ends(robot)
    estimator = WrenchEstimator(robot, contacts, acceleration_arrays=arrays)
    samples = [measured_only(robot, random_sample(robot, rng)) for _ in range(10)]
    chosen = [any_subset(robot, rng, arrays=arrays) for _ in range(5)]
    chosen += [list(range(len(robot.imus)))] * 5
    faulty = [only(sample, rows) for sample, rows in zip(samples, chosen)]
    batch = estimator.batch(SampleBatch.stack(faulty))
    for k, rows in enumerate(chosen):
        estimate = estimator.update(faulty[k])
        answer = brute_force.estimate(robot, samples[k], contacts, imus=rows, arrays=arrays)
        assert_close(estimate.wrenches, answer.wrenches, ROUND_OFF)
        assert_close(estimate.torques, answer.torques, ROUND_OFF)
        assert set(np.flatnonzero(estimate.used_imus)) <= set(rows)
        assert_close(batch.wrenches[k], estimate.wrenches, SUMS)
        assert_close(batch.torques[k], estimate.torques, SUMS)
        np.testing.assert_array_equal(batch.used_imus[k], estimate.used_imus)
        np.testing.assert_array_equal(batch.torque_quality[k], estimate.torque_quality)


def test_only_accelerometers_off_one_line_are_an_array():
    line = np.array([[0.0, 0, 0], [0.1, 0, 0], [0.3, 0, 0]])
    assert spread(line) < SUMS
    assert spread(line + np.diag([0, 0.03, 0])) > 0.01
    # Two of the four are off the longer diagonal, by 30 mm each; twice as many, as far.
    cross = np.array([[0.1, 0, 0], [-0.1, 0, 0], [0, 0.03, 0], [0, -0.03, 0]])
    for points in (cross, np.tile(cross, (2, 1))):
        np.testing.assert_allclose(spread(points), 0.03 / np.sqrt(2.0), rtol=SUMS)
    imus = [spec(f'{k}', 'body', xyz, 'accelerometer') for k, xyz in enumerate(line)]
    robot = Robot.from_urdf(two_link_urdf(), imus=[*imus, spec('g', 'body', measures='gyroscope')])
    with pytest.raises(ModelError):
        WrenchEstimator(robot, acceleration_arrays=True)
