# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Calls of what a user may switch on: touches, forces that share a submodel, deviations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle

import numpy as np

from bench import neglect
from bench.robots import CONTACTS, SQUEEZE
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample
from inertial_estimation.simulation.noise import NoiseLevels
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.filtered_noise import independent
from inertial_estimation.uncertainty.sensor_noise import NoiseModel

SHARED = 'update, two forces in one submodel'
TOUCHED = 'update, a touch whose point moves'
SENSED = 'update, all {} sensors on links'
DEVIATIONS = 'deviations, 1 IMU'
DEVIATIONS_SENSED = 'deviations, all {} sensors on links'

Step = Callable[[Sample], object]


def steps(robot: Robot) -> dict[str, tuple[Robot, Step]]:
    """Return what is timed beside the plain update, by name, with the robot of its samples."""
    sensed = neglect.with_all_sensors(neglect.urdf())
    contacts = [Contact(submodel.name) for submodel in sensed.submodels]
    n = len(sensed.imus)
    return {
        SHARED: (robot, WrenchEstimator(robot, SQUEEZE).update),
        TOUCHED: (robot, _touched(robot)),
        SENSED.format(n): (sensed, WrenchEstimator(sensed, contacts).update),
        DEVIATIONS: (robot, _deviations(robot, CONTACTS)),
        DEVIATIONS_SENSED.format(n): (sensed, _deviations(sensed, contacts)),
    }


def _touched(robot: Robot) -> Step:
    """Return a step with a force whose point is another one each time."""
    estimator = WrenchEstimator(robot, CONTACTS)
    points = cycle((0.0, 0.0, 1e-3 * k) for k in range(64))

    def step(sample: Sample) -> object:
        touch = Contact(CONTACTS[-1].frame, 'force', next(points))
        return estimator.update(sample, estimator.with_touches([touch]))

    return step


def _deviations(robot: Robot, contacts: Sequence[Contact]) -> Step:
    """Return a step that finds standard deviations; how large the noise is costs nothing."""
    levels = NoiseLevels()
    joint = independent(levels.encoder, 0.05, 1.0)
    imu = independent(levels.gyroscope, levels.accelerometer, 1.0)
    noise = NoiseModel.uniform(robot, joint=joint, imu=imu, ft=np.full(6, 0.1))
    return Uncertainty(WrenchEstimator(robot, contacts), noise).of
