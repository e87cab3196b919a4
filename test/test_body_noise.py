# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Standard deviations where links have several sensors, or parts of an IMU: coverage, derivatives.

Not covered: the motions themselves (test_bodies.py), and robots with whole IMUs
(test_uncertainty.py).
"""

import numpy as np
import pytest
from noisy_robots import at_roots, repeated, usual_noise
from robots import nested_humanoid_urdf, random_sample
from test_imu_links import nested, sensorised, spec
from test_uncertainty import IMU_FIELDS, JOINT_FIELDS, check_coverage

from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.uncertainty.body_noise import BodyNoise
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.sensor_noise import triangular_root

# Two IMUs that are averaged err by half the variance; first differences at a thousandth.
AVERAGED = 1e-3
# Parts of a standard deviation by which readings are moved, and what first differences then err by
# where motions bend, in parts of a motion's whole deviation.
STEP = 1e-4
DIFFERED = 2e-5
ROUND_OFF = 1e-9
PARTS = ('gyroscope', 'accelerometer')


@pytest.mark.parametrize('arrays', [False, True])
def test_coverage_with_parts_of_imus(arrays, rng):
    robot = nested()
    sample = random_sample(robot, rng)
    noise = usual_noise(robot)
    check_coverage(robot, at_roots(robot), sample, noise, rng, acceleration_arrays=arrays)


def beside_a_joint_that_is_fixed():
    """Return a robot whose sensors lie on both sides of an FT sensor, with no joint between."""
    specs = [
        spec(f'f{k}', 'foot', (0.1 * k, 0.02 * k**2, 0.0), 'accelerometer', (0.05, 1.0))
        for k in range(-1, 2)
    ]
    return Robot.from_urdf(nested_humanoid_urdf(), imus=[*specs, spec('s', 'shank')])


def moved_readings(robot, sample, roots, used):
    """Return a sample with each reading moved by little, and one that is not moved."""
    n_joints, n_imus = len(robot.joint_names), len(robot.imus)
    n = 3 * n_joints + 9 * n_imus
    columns = repeated(sample, n + 1)
    for k, name in enumerate(JOINT_FIELDS):
        for j in range(n_joints):
            columns[name][3 * j : 3 * j + 3, j] += STEP * roots[0][j, k]
    for k, name in enumerate(IMU_FIELDS):
        for i in range(n_imus):
            for axis in range(3):
                start = 3 * n_joints + 9 * i + 3 * axis
                columns[name][start : start + 3, i, axis] += STEP * roots[1][i, k] * used[k, i]
    return SampleBatch(**columns)


@pytest.mark.parametrize('arrays', [False, True])
@pytest.mark.parametrize('make_robot', [nested, sensorised, beside_a_joint_that_is_fixed])
def test_changes_are_those_of_the_motions_of_the_bodies(make_robot, arrays, rng):
    """By first differences of what completes a sample, reading by reading."""
    robot = make_robot()
    sample, noise = random_sample(robot, rng), usual_noise(robot)
    plan = WrenchEstimator(robot, at_roots(robot), acceleration_arrays=arrays).motion.nominal
    roots = triangular_root(noise.joints), triangular_root(noise.imus)
    kinds = [imu.measures for imu in robot.imus]
    turns, shakes = (np.array([k in ('both', kind) for k in kinds]) for kind in PARTS)
    whole = plan.complete(moved_readings(robot, sample, roots, np.array([turns, shakes, turns])))
    serving = np.flatnonzero(plan.serving)
    motions = np.stack([getattr(whole, name)[:, serving] for name in IMU_FIELDS], axis=-1)
    expected = (motions[:-1] - motions[-1]).reshape(len(motions) - 1, -1, 3) / STEP
    completed = plan.complete(sample)
    noises = [
        BodyNoise(robot, plan, arrays, roots[1], combined=combined) for combined in (False, True)
    ]
    n = 3 * len(robot.joint_names)
    got = np.zeros((n // 3 + 3 * len(robot.imus), 3, 3 * len(serving), 3))
    (joints, changes), combined = (x.changes(completed, serving, roots[0]) for x in noises)
    got[joints], got[n // 3 :] = changes[: len(joints)], changes[len(joints) :]
    size = np.sqrt((expected**2).sum(axis=0))
    assert (size > 0.0).all()
    np.testing.assert_allclose(got.reshape(expected.shape) / size, expected / size, atol=DIFFERED)
    # Combined sources are others, with the same covariances.
    products = [np.einsum('abij,abkl->ijkl', x, x) for x in (got, combined.changes)]
    scale = size[:, :, None, None] * size
    np.testing.assert_allclose(products[1] / scale, products[0] / scale, atol=ROUND_OFF)
    assert len(combined.changes) < len(changes)


def test_disturbances_of_single_imus_add_up_to_the_deviations(rng):
    robot = nested()
    sample = random_sample(robot, rng)
    uncertainty = Uncertainty(WrenchEstimator(robot, at_roots(robot)), usual_noise(robot))
    found = uncertainty.disturbances(sample)
    assert found.motion.shape[1] == len(robot.joint_names) + 3 * len(robot.imus)
    deviations = uncertainty.of(sample)
    n = len(robot.joint_names)
    np.testing.assert_allclose(found.deviations[-2 * n : -n], deviations.torques, rtol=ROUND_OFF)


@pytest.mark.parametrize('lost', ['h4', 'c', 'a'])
def test_coverage_when_one_of_them_fails(lost, rng):
    robot = nested()
    sample = random_sample(robot, rng)
    row = [imu.name for imu in robot.imus].index(lost)
    sample.angular_velocities[row] = np.nan
    sample.proper_accelerations[row] = np.nan
    check_coverage(robot, at_roots(robot), sample, usual_noise(robot), rng)


def test_two_imus_at_one_place_are_quieter_than_one(rng):
    def deviations(n):
        specs = [spec(f'h{k}', 'head') for k in range(n)]
        robot = Robot.from_urdf(nested_humanoid_urdf(), imus=specs)
        noise = usual_noise(robot)
        only = type(noise)(
            np.zeros_like(noise.joints), noise.imus, np.zeros_like(noise.fts),
            noise.assumed_positions,
        )  # fmt: skip
        sample = random_sample(robot, np.random.default_rng(0))
        same = [np.repeat(x[:1], n, axis=0) for x in sample[4:7]]
        sample = sample._replace(
            **dict(zip(sample._fields[4:7], same)), positions=np.zeros(6), velocities=np.zeros(6)
        )
        estimator = WrenchEstimator(robot, at_roots(robot))
        return Uncertainty(estimator, only).of(sample).torques

    np.testing.assert_allclose(deviations(2), deviations(1) / np.sqrt(2.0), rtol=AVERAGED)
