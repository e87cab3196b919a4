# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Coverage of the standard deviations where links have several sensors, or parts of an IMU.

Not covered: the motions themselves (test_bodies.py), and robots with whole IMUs
(test_uncertainty.py).
"""

import numpy as np
import pytest
from noisy_robots import at_roots, usual_noise
from robots import nested_humanoid_urdf, random_sample
from test_bodies import nested, spec
from test_uncertainty import check_coverage

from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.uncertainty.deviations import Uncertainty

# Two IMUs that are averaged err by half the variance; first differences at a thousandth.
AVERAGED = 1e-3


@pytest.mark.parametrize('arrays', [False, True])
def test_coverage_with_parts_of_imus(arrays, rng):
    robot = nested()
    sample = random_sample(robot, rng)
    noise = usual_noise(robot)
    check_coverage(robot, at_roots(robot), sample, noise, rng, acceleration_arrays=arrays)


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
