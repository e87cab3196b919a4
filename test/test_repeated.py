# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which motion makes a repeated reading of an FT sensor a frozen one, and which length an effort.

Not covered: what becomes of the rows: test_identify_doubts.py; positions and velocities:
test_frozen_motion.py.
"""

from dataclasses import replace

import numpy as np
import pytest
from robots import nested_humanoid_urdf

from inertial_estimation.logs.repeated import FROZEN_AFTER, LEAST, without_repeated
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

RATE = 100.0
N = 300
STUCK = slice(100, 200)


@pytest.fixture
def robot():
    """Return a robot with FT sensors in several branches."""
    return Robot.from_urdf(nested_humanoid_urdf())


def samples(robot, rng, moving=()):
    """Return a log in which some joints move and all FT sensors are stuck for a second."""
    n, sensors, imus = len(robot.joint_names), len(robot.ft_sensors), len(robot.imus)
    q = np.zeros((N, n))
    for name in moving:
        q[:, robot.joint_names.index(name)] = np.linspace(0.0, 0.3, N)
    readings = rng.normal(size=(N, sensors, 6))
    readings[STUCK] = readings[STUCK.start]
    rest, three = np.zeros((N, n)), np.zeros((N, imus, 3))
    stamps = np.round(np.arange(N) / RATE * 1e9).astype(np.int64)
    return SampleBatch(stamps, q, rest, rest, three, three, three, readings)


def frozen(robot, log, **options):
    """Return which sensors lost readings, and what is said."""
    found, said = without_repeated(robot, log, (), **options)
    lost = np.isnan(found.ft_readings).all(axis=2)
    np.testing.assert_array_equal(np.isnan(found.ft_readings).any(axis=2), lost)
    return {s.name: np.flatnonzero(lost[:, k]) for k, s in enumerate(robot.ft_sensors)}, said


def around(robot, joint, sensor):
    """Tell whether a joint is on the way from the root to a sensor or beyond it, by names."""
    parents = [link.parent for link in robot.links]
    (moved,) = (k for k, link in enumerate(robot.links) if link.joint == joint)

    def way(link):
        return set() if link < 0 else {link, *way(parents[link])}

    return moved in way(sensor.parent) or sensor.child in way(moved)


def test_an_ft_sensor_at_rest_may_stay_the_same(robot, rng):
    log = samples(robot, rng)
    lost, (said,) = frozen(robot, log)
    assert not any(map(len, lost.values()))
    assert 'arm_sensor' in said and 'leg_sensor' in said and f'at 99 of {N} instants' in said
    assert 'they count as rows' in said


def test_an_ft_sensor_is_frozen_if_a_joint_moves_that_it_feels(robot, rng):
    told = set()
    for k, joint in enumerate(robot.joint_names):
        lost, said = frozen(robot, samples(robot, rng, [joint]))
        for sensor in robot.ft_sensors:
            expected = around(robot, k, sensor)
            told.add(expected)
            # The first of them is a reading, the others are repeated.
            where = np.arange(STUCK.start + 1, STUCK.stop) if expected else []
            np.testing.assert_array_equal(lost[sensor.name], where)
            (told_of,) = (text for text in said if f'wrench of {sensor.name}' in text)
            assert ('while joints moved' in told_of) == expected
    assert told == {True, False}


def test_how_long_a_reading_must_stay_is_up_to_the_user(robot, rng):
    log = samples(robot, rng, robot.joint_names)
    # A hundred equal ones span 0.99 s.
    for after, some in ((0.0, False), (FROZEN_AFTER, True), (0.98, True), (1.0, False)):
        lost, said = frozen(robot, log, after=after)
        assert bool(said) == some == any(map(len, lost.values()))
    assert without_repeated(robot, log, (), 0.0)[0] is log


def test_a_log_that_is_given_stays_as_it_was(robot, rng):
    log = samples(robot, rng, robot.joint_names)
    before = log.ft_readings.copy()
    without_repeated(robot, log, ())
    np.testing.assert_array_equal(log.ft_readings, before)
    short = log.take(slice(0, LEAST - 1))
    assert without_repeated(robot, replace(short), ())[1] == []


def lost_efforts(robot, effort, rate):
    """Return which efforts of a joint that moves are taken for frozen."""
    n, joint = len(effort), robot.joint_names[0]
    q, efforts = np.zeros((2, n, len(robot.joint_names)))
    q[:, 0], efforts[:, 0] = np.linspace(0.0, 10.0, n), effort
    three = np.zeros((n, len(robot.imus), 3))
    log = SampleBatch(
        np.round(np.arange(n) / rate * 1e9).astype(np.int64), q, q, q, three, three, three,
        np.full((n, len(robot.ft_sensors), 6), np.nan), efforts=efforts,
    )  # fmt: skip
    found, _ = without_repeated(robot, log, [joint])
    return np.flatnonzero(np.isnan(found.efforts[:, 0]))


@pytest.mark.parametrize('share', [0.0, 0.15, 0.5])
def test_long_runs_are_frozen_whatever_share_a_driver_repeats(robot, rng, share):
    """A driver that is asked too often tells many values twice, as that of the Panda's log."""
    rate, n = 1000.0, 8000
    fresh = rng.random(n) >= share
    fresh[0] = True
    effort = rng.normal(size=n)[np.maximum.accumulate(np.where(fresh, np.arange(n), 0))]
    assert not len(lost_efforts(robot, effort, rate))
    effort[3000:6000] = 0.5
    np.testing.assert_array_equal(lost_efforts(robot, effort, rate), np.arange(3001, 6000))


@pytest.mark.parametrize('step', [0.3, 1.0, 5.0])
def test_a_coarse_signal_stays_the_same_where_it_turns(robot, rng, step):
    """Of waves of 5 in such steps; it stays for up to 0.9 s where a wave turns."""
    t = np.arange(0.0, 12.0, 0.01)
    wave = 5.0 * np.sin(2 * np.pi * 0.3 * t) + rng.normal(0.0, 0.05, len(t))
    assert not len(lost_efforts(robot, step * np.round(wave / step), 100.0))
