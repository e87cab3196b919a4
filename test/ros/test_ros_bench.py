# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The comparison of missed cycles counts right; what it counts is a matter of `make bench`."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.ros.bench import _compare, measure_cycle_loss

RATE, DURATION = 100.0, 2.0


def test_stamps_are_compared_from_the_first_that_both_know():
    sent = np.arange(100, 200, 10)
    read, estimated = np.array([110, 120, 140, 160, 180]), np.array([120, 130, 180, 190])
    loss = _compare(sent, read, estimated, np.array([1.0, 2.0, 3.0]))
    # 140, 150, 160, 170 are not estimated; 130, 150, 170, 190 not read.
    assert loss[:4] == (8, 4, 4, 2)
    assert loss.duration_p50 == 2.0


def test_silence_is_an_error():
    with pytest.raises(InertialEstimationError, match='0 estimated'):
        _compare(np.arange(5), np.arange(5), np.empty(0), np.empty(0))


def test_three_processes_find_each_other_and_end():
    settings = EstimatorSettings.from_dict(HUMANOID)
    loss = measure_cycle_loss(settings, settings.robot_description, rate=RATE, duration=DURATION)
    assert 0 < loss.sent <= RATE * DURATION
    assert 0 <= loss.node_only_missed <= loss.node_missed < loss.sent
    assert 0.0 < loss.duration_p50 <= loss.duration_p99 <= loss.duration_max
