# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
From messages to samples: clock, ages, frozen and invalid readings, parts of the joint state.

Not covered: the bytes of messages (test_messages.py), the derivatives themselves
(test_derivatives.py), and what an estimate makes of a missing value (test_wrench_estimator.py).
"""

import numpy as np
import pytest

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.sample import SensorState
from inertial_estimation.signals.assembler import SampleAssembler

JOINTS = ('hip', 'knee', 'ankle', 'elbow')
NONE = np.empty(0)
MS = 1_000_000
START = 1_000_000 * MS
# Cubic motion through a cubic filter: round-off of weights of about 1e4 only.
FILTER_ROUND_OFF = 1e-8


def make(fts=('leg', 'foot'), imus=(), **settings):
    settings.setdefault('acceleration_source', 'zero')
    return SampleAssembler(JOINTS, fts, imus, EstimatorSettings.from_dict(settings))


def joint_state(
    assembler, ms, names=JOINTS, positions=None, source=0, velocities=NONE, efforts=NONE
):
    if positions is None:
        positions = np.arange(1.0, len(names) + 1.0)
    return assembler.push_joints(
        source, START + round(ms * MS), tuple(names), np.asarray(positions), velocities, efforts
    )


def ft(assembler, ms, value, index=0):
    assembler.push_ft(index, START + round(ms * MS), np.full(6, float(value)))


def test_values_go_to_their_rows_by_name():
    assembler = make(velocity_source='message')
    names = ('elbow', 'tail', 'hip', 'ankle', 'knee')
    sample = joint_state(
        assembler, 5, names, [4.0, 9.0, 1.0, 3.0, 2.0],
        velocities=np.array([40.0, 90.0, 10.0, 30.0, 20.0]),
        efforts=np.array([0.4, 0.9, 0.1, 0.3, 0.2]),
    )  # fmt: skip
    assert sample.stamp_ns == START + 5 * MS
    np.testing.assert_array_equal(sample.positions, [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(sample.velocities, [10.0, 20.0, 30.0, 40.0])
    np.testing.assert_array_equal(sample.efforts, [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_array_equal(sample.accelerations, np.zeros(4))
    np.testing.assert_array_equal(sample.joint_states, np.full(4, SensorState.FRESH))
    assert assembler.statistics().ignored_joints == {'tail': 1}


def test_joint_states_that_are_not_wanted_fill_the_filters_all_the_same():
    every, some = make(velocity_source='filter'), make(velocity_source='filter')
    for ms in range(40):
        for assembler in (every, some):
            ft(assembler, ms, ms)
        wanted = joint_state(every, ms, positions=np.full(4, 1e-3 * ms**2))
        some.wanted_ns = START + 10 * (ms // 10) * MS + 9 * MS
        found = joint_state(some, ms, positions=np.full(4, 1e-3 * ms**2))
        assert (found is not None) == (ms % 10 == 9)
        if found is not None:
            for one, other in zip(found, wanted):
                np.testing.assert_array_equal(one, other)
    assert np.isfinite(found.accelerations).all()
    # Time that is set back wants everything.
    some.wanted_ns = START + 1000 * MS
    assert joint_state(some, 5) is not None


def test_a_sensor_that_never_spoke_is_absent_and_an_old_one_stale():
    assembler = make(**{'ft_sensors': ['leg', 'foot'], 'ft.leg.max_age': 0.05})
    ft(assembler, 0, 1.0)
    fresh, stale = joint_state(assembler, 50), joint_state(assembler, 50.001)
    np.testing.assert_array_equal(fresh.ft_states, [SensorState.FRESH, SensorState.ABSENT])
    np.testing.assert_array_equal(stale.ft_states, [SensorState.STALE, SensorState.ABSENT])
    assert np.isfinite(fresh.ft_readings[0]).all()
    assert np.isnan(stale.ft_readings).all()
    statistics = assembler.statistics().fts['leg']
    assert (statistics.received, statistics.used) == (1, 1)
    assert statistics.age == pytest.approx(0.050001)


def test_a_reading_with_nan_is_invalid_and_costs_nobody_else():
    assembler = make()
    reading = np.arange(6.0)
    reading[4] = np.nan
    assembler.push_ft(0, START, reading)
    ft(assembler, 0, 7.0, index=1)
    sample = joint_state(assembler, 1)
    np.testing.assert_array_equal(sample.ft_states, [SensorState.INVALID, SensorState.FRESH])
    assert np.isnan(sample.ft_readings[0]).all()
    np.testing.assert_array_equal(sample.ft_readings[1], np.full(6, 7.0))
    statistics = assembler.statistics().fts['leg']
    assert (statistics.used, statistics.invalid) == (0, 1)


def test_a_sensor_that_sends_nothing_but_nan_is_invalid_and_not_frozen():
    assembler = make(imus=('head',))
    states = []
    for ms in range(0, 201, 10):
        ft(assembler, ms, np.nan if ms <= 150 else ms)
        ft(assembler, ms, np.nan if ms > 20 else 7.0, index=1)
        assembler.push_imu(0, START + ms * MS, np.zeros(3), np.full(3, np.inf))
        sample = joint_state(assembler, ms)
        states.append([*sample.ft_states, *sample.imu_states])
    states = np.array(states)
    assert (states[:16, 0] == SensorState.INVALID).all()
    assert (states[16:, 0] == SensorState.FRESH).all()
    assert (states[3:, 1:] == SensorState.INVALID).all()
    statistics = assembler.statistics()
    for stream in (*statistics.fts.values(), *statistics.imus.values()):
        assert (stream.frozen, stream.frozen_intervals) == (0, ())
    assert (statistics.fts['leg'].used, statistics.fts['leg'].invalid) == (5, 16)


def test_a_sensor_freezes_when_the_repeat_has_lasted_and_thaws_at_once():
    assembler = make()
    states = []
    for ms in range(0, 201, 10):
        ft(assembler, ms, ms if ms <= 50 or ms > 150 else 50.0)
        ft(assembler, ms, ms, index=1)
        states.append(joint_state(assembler, ms).ft_states)
    frozen = np.array(states) == SensorState.FROZEN
    np.testing.assert_array_equal(np.flatnonzero(frozen[:, 0]), np.arange(10, 16))
    assert not frozen[:, 1].any()
    statistics = assembler.statistics().fts
    interval = (START + 50 * MS, START + 60 * MS, START + 150 * MS)
    assert statistics['leg'].frozen_intervals == (interval,)
    assert statistics['leg'].repeated == 10
    assert statistics['foot'].frozen_intervals == ()


def test_assumed_joints_stand_still_and_say_so():
    assembler = make(assumed_joints=['elbow', 'knee'], assumed_positions=[0.5, -0.25])
    sample = joint_state(assembler, 0, ('hip', 'ankle'), [1.0, 3.0])
    np.testing.assert_array_equal(sample.positions, [1.0, -0.25, 3.0, 0.5])
    np.testing.assert_array_equal(sample.velocities[[1, 3]], [0.0, 0.0])
    np.testing.assert_array_equal(sample.accelerations[[1, 3]], [0.0, 0.0])
    fresh, assumed = SensorState.FRESH, SensorState.ASSUMED
    np.testing.assert_array_equal(sample.joint_states, [fresh, assumed, fresh, assumed])


def test_parts_on_several_topics_join_and_the_first_topic_triggers():
    assembler = make(joint_max_age=0.05)
    assert joint_state(assembler, 1, ('elbow',), [4.0], source=1) is None
    sample = joint_state(assembler, 2, ('hip', 'knee', 'ankle'), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(sample.positions, [1.0, 2.0, 3.0, 4.0])
    assert joint_state(assembler, 30, ('elbow',), [5.0], source=1) is None
    late = joint_state(assembler, 20, ('hip', 'knee', 'ankle'), [1.0, 2.0, 3.0])
    assert late.positions[3] == 4.0, 'a part with a later stamp must wait'
    assert joint_state(assembler, 40, ('hip', 'knee', 'ankle')).positions[3] == 5.0
    old = joint_state(assembler, 81, ('hip', 'knee', 'ankle'))
    np.testing.assert_array_equal(old.joint_states, [*[SensorState.FRESH] * 3, SensorState.STALE])
    assert np.isnan(old.positions[3])


def test_several_publishers_on_the_first_topic_make_one_sample_a_cycle():
    assembler = make()
    made = []
    for ms in range(0, 50, 10):
        made.append(joint_state(assembler, ms + 1, ('ankle', 'elbow'), [3.0, 4.0]))
        made.append(joint_state(assembler, ms + 2, ('hip', 'knee'), [1.0, 2.0]))
    # The first message came before anybody knew of an earlier joint.
    assert [sample is not None for sample in made] == [True] + [True, False] * 4 + [True]
    np.testing.assert_array_equal(made[-1].positions, [1.0, 2.0, 3.0, 4.0])


def test_when_the_leading_publisher_falls_silent_the_next_one_leads():
    assembler = make(joint_max_age=0.1)
    for ms in (0, 10):
        joint_state(assembler, ms, ('hip', 'knee'))
        assert joint_state(assembler, ms + 5, ('ankle', 'elbow')) is None
    assert joint_state(assembler, 110, ('ankle', 'elbow')) is None
    sample = joint_state(assembler, 111, ('ankle', 'elbow'))
    np.testing.assert_array_equal(sample.joint_states, [*[SensorState.STALE] * 2, 0, 0])
    assert joint_state(assembler, 121, ('ankle', 'elbow')) is not None
    assert joint_state(assembler, 125, ('hip', 'knee')) is not None
    assert joint_state(assembler, 131, ('ankle', 'elbow')) is None


def test_publishers_that_leave_out_the_joints_of_each_other_with_nan():
    assembler = make(acceleration_source='filter', velocity_source='filter')
    nan = np.nan
    for ms in range(0, 300, 5):
        x = 1e-3 * ms
        joint_state(assembler, ms + 2, JOINTS, [nan, nan, x, -x])
        sample = joint_state(assembler, ms, JOINTS, [2 * x, x, nan, nan])
    np.testing.assert_allclose(sample.velocities, [2.0, 1.0, 1.0, -1.0], atol=FILTER_ROUND_OFF)
    np.testing.assert_array_equal(sample.joint_states, np.zeros(4))


@pytest.mark.parametrize('velocity_source', ['message', 'filter'])
def test_joint_derivatives_come_from_the_stamps_of_their_own_topic(velocity_source):
    assembler = make(acceleration_source='filter', velocity_source=velocity_source)
    rng = np.random.default_rng(0)
    for ms in np.cumsum(rng.uniform(4.0, 6.0, 60)):
        t = 1e-3 * (ms - 1.0)
        joint_state(assembler, ms - 1.0, ('elbow',), [t**3], source=1, velocities=np.array([7.0]))
        t = 1e-3 * ms
        sample = joint_state(
            assembler, ms, JOINTS[:3], np.array([1.0, 2.0, 3.0]) * t**2,
            velocities=np.array([4.0, 5.0, 6.0]),
        )  # fmt: skip
    # Stamps are rounded to a nanosecond, positions are not.
    rounding = 1e-5
    s = t - 1e-3
    filtered = [2 * t, 4 * t, 6 * t, 3 * s**2]
    wanted = filtered if velocity_source == 'filter' else [4.0, 5.0, 6.0, 7.0]
    np.testing.assert_allclose(sample.velocities, wanted, atol=rounding)
    np.testing.assert_allclose(sample.accelerations, [2.0, 4.0, 6.0, 6 * s], atol=rounding)


def push_imu_motion(assembler, last_ms):
    """Push a gyroscope whose angular acceleration is (2, -3, 0.5) t and one that is still."""
    for ms in range(0, last_ms + 1, 2):
        t = 1e-3 * ms
        gyroscope = np.array([1.0, -1.5, 0.25]) * t**2
        assembler.push_imu(0, START + ms * MS, gyroscope, np.array([0.1, 0.2, 9.81]) + 1e-9 * ms)
        still = np.full(3, 1e-9 * ms)
        assembler.push_imu(1, START + ms * MS, still, still)


def test_angular_acceleration_is_that_of_the_reading_in_use():
    assembler = make(imus=('head', 'chest'))
    push_imu_motion(assembler, 300)
    sample = joint_state(assembler, 205)
    t = 0.204
    np.testing.assert_allclose(
        sample.angular_accelerations[0], np.array([2.0, -3.0, 0.5]) * t, atol=FILTER_ROUND_OFF
    )
    np.testing.assert_allclose(sample.angular_accelerations[1], 1e-6, atol=FILTER_ROUND_OFF)
    np.testing.assert_allclose(sample.angular_velocities[0], np.array([1.0, -1.5, 0.25]) * t**2)
    np.testing.assert_allclose(sample.proper_accelerations[0, 2], 9.81 + 204e-9, rtol=1e-12)


def test_an_imu_is_warming_until_its_filter_is_filled():
    assembler = make(imus=('head', 'chest'))
    states, samples = [], []
    for ms in range(0, 200, 2):
        gyroscope = np.full(3, 1e-3 * ms)
        bad = np.array([np.nan if ms == 100 else 0.0, 0.0, 0.0])
        assembler.push_imu(0, START + ms * MS, gyroscope + bad, gyroscope)
        assembler.push_imu(1, START + ms * MS, gyroscope, gyroscope)
        samples.append(joint_state(assembler, ms))
        states.append(samples[-1].imu_states)
    states = np.array(states)
    fresh, warming, invalid = SensorState.FRESH, SensorState.WARMING, SensorState.INVALID
    filled = 38  # at 76 ms, the first stamp at which 75 ms are spanned
    assert (states[:filled] == warming).all()
    assert (states[filled:, 1] == fresh).all()
    np.testing.assert_array_equal(np.flatnonzero(states[:, 0] == invalid), [50])
    # The window of 0.1 s holds the NaN of 100 ms until 200 ms.
    np.testing.assert_array_equal(states[filled:50, 0], np.full(12, fresh))
    np.testing.assert_array_equal(states[51:, 0], np.full(49, warming))
    for sample, state in zip(samples, states):
        finite = np.isfinite(sample.angular_accelerations).all(axis=1)
        np.testing.assert_array_equal(finite, state == fresh)
        finite = np.isfinite(sample.angular_velocities).all(axis=1)
        np.testing.assert_array_equal(finite, state != invalid)
    chest = assembler.statistics().imus['chest']
    assert (chest.used, chest.unfiltered, chest.filter_lack) == (62, filled, '')


def test_a_stream_too_slow_for_the_filter_stays_warming_and_says_why():
    assembler = make(acceleration_source='filter', imus=('head',))
    for ms in range(0, 3000, 33):
        assembler.push_imu(0, START + ms * MS, np.full(3, 1e-3 * ms), np.ones(3))
        sample = joint_state(assembler, ms, velocities=np.zeros(4))
        assert (sample.joint_states == SensorState.WARMING).all()
        assert sample.imu_states[0] == SensorState.WARMING
        assert np.isfinite(sample.positions).all()
        assert np.isnan(sample.accelerations).all()
    statistics = assembler.statistics()
    for stream in (*statistics.joints.values(), statistics.imus['head']):
        assert stream.used == 0
        assert stream.unfiltered == stream.received
        assert stream.filter_lack


def test_a_frozen_imu_does_not_pass_for_a_body_at_rest():
    assembler = make(imus=('head',))
    states, accelerations = [], []
    for ms in range(0, 500, 2):
        turning = max(min(ms, 200), ms - 100)
        gyroscope = np.full(3, 1e-3 * turning)
        assembler.push_imu(0, START + ms * MS, gyroscope, gyroscope)
        sample = joint_state(assembler, ms)
        states.append(sample.imu_states[0])
        accelerations.append(sample.angular_accelerations[0, 0])
    states, accelerations = np.array(states), np.array(accelerations)
    frozen = np.flatnonzero(states == SensorState.FROZEN)
    np.testing.assert_array_equal(frozen, np.arange(125, 151))
    assert np.isnan(accelerations[125:151]).all()
    thawed = accelerations[151:]
    np.testing.assert_allclose(thawed[np.isfinite(thawed)], 1.0, atol=FILTER_ROUND_OFF)
    assert np.isfinite(thawed[-1])


def test_time_set_back_resets_everything():
    assembler = make(acceleration_source='filter', velocity_source='filter', imus=('head',))
    push = np.ones(3)
    for ms in range(1000, 1300, 5):
        ft(assembler, ms, ms)
        assembler.push_imu(0, START + ms * MS, push * ms, push)
        before = joint_state(assembler, ms, JOINTS, np.full(4, 1e-3 * ms))
    assert np.isfinite(before.accelerations).all()
    after = joint_state(assembler, 500, JOINTS, np.zeros(4))
    assert np.isnan(after.accelerations).all()
    assert after.ft_states[0] == after.imu_states[0] == SensorState.ABSENT
    ft(assembler, 501, 5.0)
    assert joint_state(assembler, 505).ft_readings[0, 0] == 5.0
    assert assembler.statistics().resets == 1


def test_one_part_whose_stamps_go_back_costs_itself_only():
    assembler = make(acceleration_source='filter', velocity_source='filter')
    for ms in range(0, 300, 5):
        # The elbow's publisher swaps every tenth pair of messages.
        for late in (4, -1) if ms % 50 == 0 and ms else (4,):
            joint_state(assembler, ms + late, ('elbow',), [1e-3 * (ms + late)], source=1)
        sample = joint_state(assembler, ms + 4, JOINTS[:3], np.full(3, 1e-3 * (ms + 4)))
    assert np.isfinite(sample.accelerations[:3]).all()
    assert np.isnan(sample.accelerations[3])
    statistics = assembler.statistics()
    assert statistics.resets == 0
    assert {n[0]: s.restarts for n, s in statistics.joints.items()} == {'0': 0, '1': 5}
    assert {n[0]: s.unfiltered > 20 for n, s in statistics.joints.items()} == {
        '0': False,
        '1': True,
    }


def test_a_sensor_whose_clock_goes_back_first_starts_anew():
    assembler = make()
    ft(assembler, 1000, 1.0)
    joint_state(assembler, 1000)
    ft(assembler, 500, 2.0)
    assert joint_state(assembler, 510).ft_readings[0, 0] != 1.0
    ft(assembler, 520, 3.0)
    assert joint_state(assembler, 520).ft_readings[0, 0] == 3.0
    assert assembler.statistics().fts['leg'].restarts == 1


def test_without_reset_earlier_messages_are_refused_and_counted():
    assembler = make(reset_on_time_jump=False)
    ft(assembler, 1000, 1.0)
    joint_state(assembler, 1000)
    ft(assembler, 500, 2.0)
    assert joint_state(assembler, 500) is None
    assert joint_state(assembler, 1001).ft_readings[0, 0] == 1.0
    statistics = assembler.statistics()
    assert statistics.fts['leg'].refused == 1
    assert [part.refused for part in statistics.joints.values()] == [1]


def test_stamps_of_zero_and_repeated_stamps_are_refused():
    assembler = make()
    assembler.push_ft(0, 0, np.zeros(6))
    assert assembler.push_joints(0, 0, JOINTS, np.zeros(4), NONE, NONE) is None
    assert joint_state(assembler, 0) is not None
    assert joint_state(assembler, 0) is None
    statistics = assembler.statistics()
    assert statistics.fts['leg'].refused == 1
    assert statistics.malformed == 1


def test_a_queue_without_joint_states_is_bounded_and_says_so():
    assembler = make()
    for ms in range(3000):
        ft(assembler, ms, ms)
    statistics = assembler.statistics().fts['leg']
    assert statistics.received == 3000
    assert statistics.dropped == 3000 - 1024
    assert joint_state(assembler, 2999).ft_readings[0, 0] == 2999.0


# IMUs in part

NO_TRIPLE = np.full(3, np.nan)


def test_an_imu_that_leaves_out_a_triple_is_partial():
    assembler = make(imus=('head', 'chest'), angular_acceleration_source='zero')
    triple = np.array([1.0, 2.0, 3.0])
    assembler.push_imu(0, START, NO_TRIPLE, triple)
    assembler.push_imu(1, START, triple, NO_TRIPLE)
    sample = joint_state(assembler, 0)
    np.testing.assert_array_equal(sample.imu_states, [SensorState.PARTIAL] * 2)
    np.testing.assert_array_equal(sample.angular_velocities, [NO_TRIPLE, triple])
    np.testing.assert_array_equal(sample.proper_accelerations, [triple, NO_TRIPLE])
    np.testing.assert_array_equal(sample.angular_accelerations, [NO_TRIPLE, np.zeros(3)])
    assert [s.used for s in assembler.statistics().imus.values()] == [1, 1]


@pytest.mark.parametrize('options', [{}, {'filter_delay': 0.02}, {'smooth_readings': True}])
def test_what_an_imu_does_not_measure_is_not_looked_at(options):
    settings = EstimatorSettings(acceleration_source='zero', **options)
    kinds = ('accelerometer', 'gyroscope')
    assembler = SampleAssembler(JOINTS, (), kinds, settings, kinds)
    for ms in range(0, 200, 2):
        gyroscope = np.full(3, 1e-3 * ms)
        for k in range(2):
            assembler.push_imu(k, START + ms * MS, gyroscope, 2.0 + gyroscope)
        sample = joint_state(assembler, ms)
    fresh = SensorState.FRESH
    np.testing.assert_array_equal(sample.imu_states, [fresh, fresh])
    for field, absent in (
        (sample.angular_velocities, 0),
        (sample.angular_accelerations, 0),
        (sample.proper_accelerations, 1),
    ):
        assert np.isnan(field[absent]).all()
        assert np.isfinite(field[1 - absent]).all()
    np.testing.assert_allclose(sample.angular_accelerations[1], 1.0, rtol=0, atol=1e-6)
