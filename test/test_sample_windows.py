# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Samples as stretches: rates, gaps, time that goes back, and what a touch spoils.

What the stretches are used for is in test_identifier_node.py.
"""

import numpy as np
import pytest
from robots import nested_humanoid_urdf

from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.sample_windows import WINDOW_NS, SampleWindows
from inertial_estimation.sample import Sample, SensorState

START_NS = 1_000_000_000_000
HAND, FOOT = 'hand', 'foot'


@pytest.fixture(scope='module')
def robot():
    return Robot.from_urdf(nested_humanoid_urdf(), fixed_link='root')


def sample(robot, stamp_ns):
    n, n_fts = len(robot.joint_names), len(robot.ft_sensors)
    zeros, none = np.zeros(n), np.empty((0, 3))
    return Sample(int(stamp_ns), zeros, zeros, zeros, none, none, none, np.zeros((n_fts, 6)))


def column(robot, frame):
    link = robot.frame(frame)[0]
    return next(k for k, one in enumerate(robot.submodels) if link in one.links)


def run(robot, stamps, touched=lambda stamp: (), rate=100.0, margin=0.2, held=()):
    stretches = SampleWindows(robot, rate, margin, held)
    found = [
        stretches.add(sample(robot, stamp), [Contact(frame) for frame in touched(stamp)])
        for stamp in stamps
    ]
    return [stretch for stretch in found if stretch is not None]


def test_old_readings_that_passed_for_new_ones_spoil_what_is_beside_their_sensor(robot):
    stretches, names = SampleWindows(robot, 100.0, 0.2, ()), [s.name for s in robot.ft_sensors]
    silent, found = names.index('arm_sensor'), []
    for stamp in regular(100.0, 6.0):
        states = np.full(len(names), SensorState.FRESH, dtype=np.uint8)
        seconds = 1e-9 * (stamp - START_NS)
        if 2.0 <= seconds < 3.0:
            states[silent] = SensorState.FROZEN
        elif seconds >= 5.0:
            # Noticed at once.
            states[silent] = SensorState.INVALID
        found.append(stretches.add(sample(robot, stamp)._replace(ft_states=states), ()))
    found = [stretch for stretch in found if stretch is not None]
    seconds = 1e-9 * (np.concatenate([one.samples.stamp_ns for one in found]) - START_NS)
    free = np.concatenate([one.free for one in found])
    spoiled = (seconds > 1.795) & (seconds < 3.195)
    for k, submodel in enumerate(robot.submodels):
        beside = silent in (submodel.root_sensor, *submodel.child_sensors)
        np.testing.assert_array_equal(free[:, k], ~(spoiled & beside))


def regular(rate, seconds, start_ns=START_NS):
    return start_ns + (np.arange(round(rate * seconds)) * 1e9 / rate).astype(np.int64)


@pytest.mark.parametrize('rate', [50.0, 100.0, 130.0, 250.0, 1000.0])
@pytest.mark.parametrize('margin', [0.0, 0.2, 3.0])
def test_samples_are_kept_once_in_order_at_the_rate(robot, rate, margin):
    found = run(robot, regular(rate, 10.0), margin=margin)
    stamps = np.concatenate([stretch.samples.stamp_ns for stretch in found])
    assert (np.diff(stamps) > 0).all()
    # Whole stretches of what is left of ten seconds without the margin.
    assert len(found) >= int(9.9 - margin)
    kept = min(rate, 100.0)
    for stretch in found:
        assert len(stretch.samples) == pytest.approx(kept, abs=1)
        assert stretch.free.all()
        assert np.ptp(stretch.samples.stamp_ns) < WINDOW_NS


def test_irregular_stamps_lose_no_stretch(robot, rng):
    stamps = START_NS + np.cumsum(rng.exponential(4e6, 5000)).astype(np.int64)
    found = run(robot, np.unique(stamps))
    kept = np.concatenate([stretch.samples.stamp_ns for stretch in found])
    assert np.isin(kept, stamps).all()
    assert (np.diff(kept) > 0).all()
    seconds = 1e-9 * (kept[-1] - kept[0])
    assert 75 < len(kept) / seconds <= 100.5


def test_a_gap_ends_a_stretch_and_nothing_spans_it(robot):
    gap = 600_000_000_000
    before = regular(100.0, 1.55)
    found = run(robot, [*before, *regular(100.0, 5.0, START_NS + gap)])
    for stretch in found:
        assert np.ptp(stretch.samples.stamp_ns) < WINDOW_NS
    kept = np.concatenate([stretch.samples.stamp_ns for stretch in found])
    assert np.isin(before, kept).all()


@pytest.mark.parametrize('back', [1, 10_000_000, 3_000_000_000, START_NS - 1])
def test_time_that_goes_back_begins_anew(robot, back):
    first = regular(100.0, 3.0)
    second = regular(100.0, 3.0, int(first[-1]) - back)
    touches = iter([*[()] * (len(first) - 1), [HAND], *[()] * len(second)])
    found = run(robot, [*first, *second], lambda stamp: next(touches))
    late = [stretch for stretch in found if stretch.samples.stamp_ns[0] in second]
    assert len(late) >= 2
    # A touch of the time before says nothing of the time after.
    assert all(stretch.free.all() for stretch in late)
    for stretch in found:
        assert (np.diff(stretch.samples.stamp_ns) > 0).all()


@pytest.mark.parametrize('margin', [0.0, 0.05, 0.5, 2.5])
@pytest.mark.parametrize('rate', [100.0, 250.0])
def test_a_touch_spoils_its_submodel_and_the_margin_around_it(robot, margin, rate, rng):
    stamps = regular(rate, 12.0)
    begins = START_NS + (1e9 * np.sort(rng.uniform(0.0, 12.0, 3))).astype(np.int64)
    ends = begins + (1e9 * rng.uniform(0.0, 1.0, 3)).astype(np.int64)

    def touched(stamp):
        return [HAND] if ((begins <= stamp) & (stamp <= ends)).any() else []

    hand = column(robot, HAND)
    felt = np.array([stamp for stamp in stamps if touched(stamp)])
    found = run(robot, stamps, touched, margin=margin)
    assert found
    for stretch in found:
        times = stretch.samples.stamp_ns
        near = np.abs(times[:, None] - felt).min(axis=1) <= 1e9 * margin
        np.testing.assert_array_equal(stretch.free[:, hand], ~near)
        assert np.delete(stretch.free, hand, axis=1).all()


def test_a_touch_between_two_samples_that_are_kept_counts(robot):
    stamps = regular(1000.0, 3.0)
    touch = stamps[1504]
    found = run(robot, stamps, lambda stamp: [FOOT] if stamp == touch else (), margin=0.02)
    spoiled = np.concatenate(
        [stretch.samples.stamp_ns[~stretch.free[:, column(robot, FOOT)]] for stretch in found]
    )
    assert len(spoiled) == 4
    assert np.abs(spoiled - touch).max() <= 20_000_000


def test_touches_of_any_frame_of_a_submodel_are_its(robot):
    found = run(robot, regular(100.0, 3.0), lambda stamp: ['sole', 'head'])
    free = np.concatenate([stretch.free for stretch in found])
    assert not free[:, column(robot, FOOT)].any()
    assert not free[:, column(robot, 'root')].any()
    assert free[:, column(robot, HAND)].all()


def test_held_frames_are_never_free(robot):
    found = run(robot, regular(100.0, 3.0), held=['sole'])
    free = np.concatenate([stretch.free for stretch in found])
    assert not free[:, column(robot, FOOT)].any()
    assert np.delete(free, column(robot, FOOT), axis=1).all()
    with pytest.raises(InertialEstimationError, match='soel'):
        SampleWindows(robot, 100.0, 0.2, ['soel'])


def test_dropped_samples_are_in_no_stretch_but_their_touches_count(robot):
    stretches = SampleWindows(robot, 100.0, 0.5, ())
    stamps = regular(100.0, 4.0)
    found = []
    for k, stamp in enumerate(stamps):
        touches = [Contact(HAND)] if k == 190 else []
        if k == 200:
            stretches.drop()
        stretch = stretches.add(sample(robot, stamp), touches)
        if stretch is not None and k >= 200:
            found.append(stretch)
    assert found[0].samples.stamp_ns[0] == stamps[200]
    near = found[0].samples.stamp_ns - stamps[190] <= 500_000_000
    np.testing.assert_array_equal(found[0].free[:, column(robot, HAND)], ~near)
