# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Samples in windows: rates, time set back, and samples that contacts disturb.

What they are used for is in ros/test_identifier_node.py.
"""

import numpy as np
import pytest
from robots import nested_humanoid_urdf, random_sample

from inertial_estimation import Contact, Robot, SensorState
from inertial_estimation.ros.sample_windows import WINDOW_NS, SampleWindows

START_NS = 1_000_000_000_000
ROBOT = Robot.from_urdf(nested_humanoid_urdf(), fixed_link='root')
SAMPLE = random_sample(ROBOT, np.random.default_rng(0))


def regular(rate, seconds, start_ns=START_NS):
    return start_ns + (np.arange(round(rate * seconds)) * 1e9 / rate).astype(np.int64)


def add(windows, stamp, touched=(), states=None):
    sample = SAMPLE._replace(stamp_ns=int(stamp), ft_states=states)
    return windows.add(sample, map(Contact, touched))


def run(stamps, touched=lambda stamp: (), margin=0.2, state=lambda stamp: None):
    """Return stamps, and for each submodel whether it was free, of each window."""
    windows = SampleWindows(ROBOT, 100.0, margin, ())
    found = [add(windows, stamp, touched(stamp), state(stamp)) for stamp in stamps]
    return [(one.samples.stamp_ns, one.free) for one in found if one is not None]


@pytest.mark.parametrize('rate', [50.0, 130.0, 1000.0])
@pytest.mark.parametrize('margin', [0.0, 3.0])
def test_samples_are_kept_once_in_order_at_the_rate(rate, margin):
    found = run(regular(rate, 10.0), margin=margin)
    assert (np.diff(np.concatenate([stamps for stamps, _ in found])) > 0).all()
    # Whole windows of ten seconds without the margin.
    assert len(found) >= int(9.9 - margin)
    for stamps, free in found:
        assert len(stamps) == pytest.approx(min(rate, 100.0), abs=1)
        assert free.all()
        assert np.ptp(stamps) < WINDOW_NS


@pytest.mark.parametrize('back', [1, 3_000_000_000, START_NS - 1])
def test_time_set_back_begins_again(back):
    first = regular(100.0, 3.0)
    second = regular(100.0, 3.0, int(first[-1]) - back)
    touches = iter([*[()] * (len(first) - 1), ['hand'], *[()] * len(second)])
    found = run([*first, *second], lambda stamp: next(touches))
    late = [free for stamps, free in found if stamps[0] in second]
    # Contacts of the time before do not count.
    assert len(late) >= 2 and all(free.all() for free in late)
    assert all((np.diff(stamps) > 0).all() for stamps, _ in found)


@pytest.mark.parametrize(('margin', 'rate'), [(0.0, 250.0), (0.05, 100.0), (2.5, 250.0)])
def test_contacts_disturb_their_submodel_and_the_margin(margin, rate, rng):
    begins = START_NS + (1e9 * np.sort(rng.uniform(0.0, 12.0, 3))).astype(np.int64)
    ends = begins + (1e9 * rng.uniform(0.0, 1.0, 3)).astype(np.int64)

    def touched(stamp):
        return ['hand'] if ((begins <= stamp) & (stamp <= ends)).any() else []

    stamps, hand = regular(rate, 12.0), ROBOT.submodel_of('hand')
    felt = np.array([stamp for stamp in stamps if touched(stamp)])
    found = run(stamps, touched, margin)
    assert found
    for times, free in found:
        near = np.abs(times[:, None] - felt).min(axis=1) <= 1e9 * margin
        np.testing.assert_array_equal(free[:, hand], ~near)
        assert np.delete(free, hand, axis=1).all()


def test_readings_before_a_frozen_state_count_as_disturbed():
    names = [sensor.name for sensor in ROBOT.ft_sensors]
    frozen = names.index('arm_sensor')

    def state(stamp):
        states, seconds = np.full(len(names), SensorState.FRESH), 1e-9 * (stamp - START_NS)
        # Invalid readings are noticed at once, frozen ones some time later.
        if seconds >= 5.0:
            states[frozen] = SensorState.INVALID
        elif 2.0 <= seconds < 3.0:
            states[frozen] = SensorState.FROZEN
        return states

    found = run(regular(100.0, 6.0), state=state)
    seconds = 1e-9 * (np.concatenate([stamps for stamps, _ in found]) - START_NS)
    free = np.concatenate([free for _, free in found])
    disturbed = (seconds > 1.795) & (seconds < 3.195)
    for k, submodel in enumerate(ROBOT.submodels):
        beside = frozen in (submodel.root_sensor, *submodel.child_sensors)
        np.testing.assert_array_equal(free[:, k], ~(disturbed & beside))


def test_contacts_count_for_samples_after_a_drop():
    windows, stamps, found = SampleWindows(ROBOT, 100.0, 0.5, ()), regular(100.0, 4.0), []
    for k, stamp in enumerate(stamps):
        if k == 200:
            windows.drop()
        window = add(windows, stamp, ['hand'] if k == 190 else [])
        if window is not None and k >= 200:
            found.append(window)
    samples, free = found[0]
    assert samples.stamp_ns[0] == stamps[200]
    near = samples.stamp_ns - stamps[190] <= 500_000_000
    np.testing.assert_array_equal(free[:, ROBOT.submodel_of('hand')], ~near)
