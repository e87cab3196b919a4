# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The comparison of missed cycles counts right; what it counts is a matter of `make bench`."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID
from rclpy.serialization import deserialize_message

from inertial_estimation.building import accepted_frame_ids, build_robot
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.ros.bench import _compare, measure_cycle_loss
from inertial_estimation.ros.bench_motion import periodic_motion
from inertial_estimation.ros.bench_pairs import Window, compared
from inertial_estimation.ros.bench_processes import topics_of
from inertial_estimation.simulation.description import icub_urdf
from inertial_estimation.verbs.bench_nodes import (
    IDENTIFIER_COLUMNS,
    PAIR_COLUMNS,
    identifier_row,
    in_ros,
    pair_goals,
    pair_row,
)

pytestmark = pytest.mark.live

RATE, DURATION = 100.0, 1.0


def test_stamps_are_compared_from_the_first_that_both_know():
    sent = np.arange(100, 200, 10)
    read, estimated = np.array([110, 120, 140, 160, 180]), np.array([120, 130, 180, 190])
    loss = _compare(sent, read, estimated, np.array([1.0, 2.0, 3.0]))
    # 140, 150, 160, 170 are not estimated; 130, 150, 170, 190 not read.
    assert loss[:4] == (8, 4, 4, 2)
    assert loss.duration_p50 == 2.0
    figures = loss.as_dict()
    assert figures['node_only_missed'] == 2
    assert figures['rate_hz'] == loss.rate == pytest.approx(7 / 70e-9)
    assert figures['cycle_time_p99_us'] == pytest.approx(1e6 * loss.duration_p99)


def test_silence_is_an_error():
    with pytest.raises(InertialEstimationError, match='0 estimated'):
        _compare(np.arange(5), np.arange(5), np.empty(0), np.empty(0))


def test_messages_carry_frames_that_the_node_accepts():
    pytest.importorskip('icub_models', reason='the benchmark runs on the iCub of icub-models')
    # Some of its sensors are named like a frame elsewhere.
    settings, urdf = EstimatorSettings.from_dict({'imus': ['root_link']}), icub_urdf()
    robot = build_robot(settings, urdf)
    *topics, _ = topics_of(settings, urdf)
    sensors = (*robot.ft_sensors, *robot.imus)
    assert len(topics) == len(sensors) == 7
    for topic, sensor in zip(topics, sensors):
        message = deserialize_message(bytes(topic.data), topic.kind)
        assert message.header.frame_id in accepted_frame_ids(settings, robot, sensor)


def test_three_processes_find_each_other_and_end():
    settings = EstimatorSettings.from_dict(HUMANOID)
    loss = measure_cycle_loss(settings, settings.robot_description, rate=RATE, duration=DURATION)
    assert 0 < loss.sent <= RATE * DURATION
    assert loss.cycles >= loss.sent - loss.node_missed
    assert 0 <= loss.node_only_missed <= loss.node_missed < loss.sent
    assert 0.0 < loss.duration_p50 <= loss.duration_p99 <= loss.duration_max
    assert loss.as_dict()['deviations_time_us'] is None


def test_what_the_standard_deviations_take_is_told():
    settings = EstimatorSettings.from_dict(HUMANOID | {'deviations_rate': RATE})
    loss = measure_cycle_loss(
        settings, settings.robot_description, rate=RATE, duration=DURATION, deviations=True
    )
    assert 0 < loss.deviations <= loss.cycles
    busy = loss.deviations * loss.deviations_time / loss.deviations_share
    assert loss.as_dict()['deviations_time_us'] == pytest.approx(1e6 * loss.deviations_time)
    # All cycles, also those that nobody counted at the start.
    assert busy > loss.duration_p50 * (loss.sent - loss.node_missed) / 2


def test_the_identifier_is_measured_beside_the_simulated_robot():
    pytest.importorskip('mujoco', reason='needs the simulator')
    pytest.importorskip('icub_models', reason='the benchmark runs on the iCub of icub-models')
    parameters = {'fixed_link': 'root_link', 'velocity_source': 'filter'}
    job = {'urdf': icub_urdf(), 'parameters': parameters, 'rate': RATE, 'duration': 4.0}
    load = in_ros('bench_identifier', job)
    assert load['sent'] == 400
    assert 0 < load['samples'] <= load['received'] <= load['sent']
    assert load['processor_share'] > 0.0
    assert len(identifier_row(load)) == len(IDENTIFIER_COLUMNS) == len(load)


def test_halves_of_pairs_are_told_apart_by_stamps():
    windows = [
        (Window(0, 10, 0.0), Window(10, 20, 4e-9)),
        (Window(30, 40, 0.0), Window(20, 30, 6e-9)),
    ]
    stamps = np.arange(0, 50, 2)
    on = (stamps >= 10) & (stamps < 30)
    load = compared(windows, stamps, np.where(on, 3e-6, 2e-6), [5, 12, 22, 23], [5, 22])
    assert load.pairs == 2
    assert load.median_ratio == pytest.approx(1.5)
    assert (load.cycle_time_p50_off_us, load.cycle_time_p50_on_us) == pytest.approx((2.0, 3.0))
    # Ten nanoseconds of twenty; without it none are counted.
    assert load.processor_share == pytest.approx(0.5)
    assert (load.refits, load.updates) == (3, 1)
    with pytest.raises(InertialEstimationError, match='no estimates'):
        compared(windows, stamps[:10], np.ones(10), [12, 22], [])
    # Nothing it does costs nothing, which is no figure.
    with pytest.raises(InertialEstimationError, match='no refit in 1 of 2 halves'):
        compared(windows, stamps, np.ones(len(stamps)), [12, 30], [])


def test_the_moving_robot_agrees_with_itself_where_the_motion_repeats():
    settings = EstimatorSettings.from_dict({'fixed_link': 'root'} | HUMANOID | {'imus': []})
    robot = build_robot(settings, settings.robot_description)
    samples = periodic_motion(robot, 20)
    step = samples.velocities[-1] / 20
    # Half of a step squared times the acceleration is what a straight line misses.
    curved = np.abs(samples.accelerations).max() / 20**2
    np.testing.assert_allclose(samples.positions[-1] + step, samples.positions[0], atol=curved)
    assert np.ptp(samples.ft_readings, axis=0).max() > 1.0


def test_pairs_of_estimator_with_and_without_identifier():
    pytest.importorskip('icub_models', reason='the benchmark runs on the iCub of icub-models')
    parameters = {'fixed_link': 'root_link', 'contacts': ['l_forearm', 'r_forearm']}
    job = {
        'urdf': icub_urdf(), 'parameters': parameters, 'rate': 100, 'pairs': 1, 'seconds': 6.0,
    }  # fmt: skip
    load = in_ros('bench_pairs', job)
    assert load['processor_share'] > 0.0
    assert 0.0 < load['rate_hz'] <= 2 * job['rate']
    assert 0 < load['updates'] <= load['refits']
    assert len(pair_row(load)) == len(PAIR_COLUMNS) == len(load)
    assert len(pair_goals(load)) == 2
