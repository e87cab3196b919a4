# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Samples from messages: clock, ages, frozen and invalid readings, parts of joint states, delay.

Not covered: bytes (test_router.py), filters by themselves (test_derivatives.py), missing values in
an estimate (test_wrench_estimator.py).
"""

from types import SimpleNamespace

import numpy as np
import pytest
from robots import random_sample

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ModelError
from inertial_estimation.sample import SampleBatch, SensorState
from inertial_estimation.signals.assembler import SampleAssembler

JOINTS = ('hip', 'knee', 'ankle', 'elbow')
NONE = np.empty(0)
MS = 1_000_000
START = 1_000_000 * MS
FRESH, ASSUMED, ABSENT, STALE, FROZEN, INVALID, WARMING, PARTIAL = SensorState
FILTERED = {
    'joint_states.acceleration_source': 'filter', 'joint_states.velocity_source': 'filter'
}  # fmt: skip
# Cubic motion through a cubic filter: round-off of weights of about 1e4 only.
FILTER_ROUND_OFF = 1e-8
EXACT = 1e-12  # a few operations on numbers of order one
# The same of stamps that are rounded to a nanosecond.
STAMP_ROUND_OFF = 1e-5


def make(fts=('leg', 'foot'), imus=(), joints=JOINTS, measures=('both',) * 4, **settings):
    settings.setdefault('joint_states.acceleration_source', 'zero')
    robot = SimpleNamespace(
        joint_names=joints,
        ft_sensors=[SimpleNamespace(name=name) for name in fts],
        imus=[SimpleNamespace(name=n, measures=m) for n, m in zip(imus, measures)],
    )
    return SampleAssembler(robot, EstimatorSettings.from_dict(settings))


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


def imu(assembler, ms, rate, acceleration=1.0, index=0):
    values = (np.broadcast_to(x, 3).astype(float) for x in (rate, acceleration))
    assembler.push_imu(index, START + round(ms * MS), *values)


def test_joint_values_are_mapped_by_name():
    assembler = make(**{'joint_states.velocity_source': 'message'})
    sample = joint_state(
        assembler, 5, ('elbow', 'tail', 'hip', 'ankle', 'knee'), [4.0, 9.0, 1.0, 3.0, 2.0],
        velocities=np.array([40.0, 90.0, 10.0, 30.0, 20.0]),
        efforts=np.array([0.4, 0.9, 0.1, 0.3, 0.2]),
    )  # fmt: skip
    assert sample.stamp_ns == START + 5 * MS
    np.testing.assert_array_equal(sample.positions, [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(sample.velocities, [10.0, 20.0, 30.0, 40.0])
    np.testing.assert_array_equal(sample.efforts, [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_array_equal(sample.accelerations, np.zeros(4))
    np.testing.assert_array_equal(sample.joint_states, [FRESH] * 4)
    assert assembler.statistics().ignored_joints == ('tail',)
    # Assumed joints stand still.
    given = {'assumed': ['elbow', 'knee'], 'assumed_positions': [0.5, -0.25]}
    sample = joint_state(make(joint_states=given), 0, ('hip', 'ankle'), [1.0, 3.0])
    np.testing.assert_array_equal(sample.positions, [1.0, -0.25, 3.0, 0.5])
    assert not sample.velocities[[1, 3]].any() and not sample.accelerations[[1, 3]].any()
    np.testing.assert_array_equal(sample.joint_states, [FRESH, ASSUMED, FRESH, ASSUMED])


def test_a_joint_named_twice_in_a_message_is_not_known():
    """Which of its two positions is right nothing tells."""
    assembler, names = make(), ('hip', 'knee', 'ankle', 'knee', 'tail', 'tail', 'elbow')
    joint_state(assembler, 0)
    joint_state(assembler, 50, names)
    sample = joint_state(assembler, 200, names)
    np.testing.assert_array_equal(sample.joint_states, [FRESH, STALE, FRESH, FRESH])
    np.testing.assert_array_equal(sample.positions, [1.0, np.nan, 3.0, 7.0])
    doubled, tail = sorted(assembler.statistics().ignored_joints)
    assert doubled.startswith('knee') and doubled != 'knee' and tail == 'tail'


def test_absent_and_stale_sensors():
    assembler = make(**{'ft_sensors': ['leg', 'foot'], 'ft.leg.max_age': 0.05})
    ft(assembler, 0, 1.0)
    fresh, stale = joint_state(assembler, 50), joint_state(assembler, 50.001)
    np.testing.assert_array_equal(fresh.ft_states, [FRESH, ABSENT])
    np.testing.assert_array_equal(stale.ft_states, [STALE, ABSENT])
    assert np.isfinite(fresh.ft_readings[0]).all() and np.isnan(stale.ft_readings).all()
    statistics = assembler.statistics().fts['leg']
    assert (statistics.received, statistics.used) == (1, 1)
    assert statistics.age == pytest.approx(0.050001)


def test_nan_is_invalid_and_repeated_readings_freeze_and_thaw():
    assembler, states = make(('leg', 'foot', 'hand'), ('head',)), []
    for ms in range(0, 201, 10):
        ft(assembler, ms, np.nan if ms <= 150 else ms)
        ft(assembler, ms, ms if ms <= 50 or ms > 150 else 50.0, index=1)
        ft(assembler, ms, ms, index=2)
        imu(assembler, ms, 0.0, np.inf)
        sample = joint_state(assembler, ms)
        states.append([*sample.ft_states, *sample.imu_states])
    wanted = np.array([[INVALID, FRESH, FRESH, INVALID]] * 16 + [[FRESH] * 3 + [INVALID]] * 5)
    wanted[10:16, 1] = FROZEN
    np.testing.assert_array_equal(states, wanted)
    leg, foot = (assembler.statistics().fts[name] for name in ('leg', 'foot'))
    assert (leg.used, leg.invalid) == (5, 16)
    head = assembler.statistics().imus['head']
    assert not leg.frozen_intervals and not head.frozen_intervals
    assert foot.frozen_intervals == ((START + 50 * MS, START + 60 * MS, START + 150 * MS),)
    assert foot.repeated == 10


def test_readings_at_the_end_of_their_range_are_invalid():
    assembler = make(('leg', 'foot'), **{'ft.leg.range': [100.0] * 3 + [5.0] * 3})
    for ms, reading, state in ((10, 4.0, FRESH), (20, 5.0, INVALID), (30, -4.9, FRESH)):
        for index in range(2):
            ft(assembler, ms, reading, index=index)
        sample = joint_state(assembler, ms)
        np.testing.assert_array_equal(sample.ft_states, [state, FRESH])
        assert np.isfinite(sample.ft_readings[0]).all() == (state == FRESH)
    assert assembler.statistics().fts['leg'].invalid == 1


def test_several_topics_join_and_the_first_triggers():
    assembler = make(**{'joint_states.max_age': 0.05})
    legs = JOINTS[:3]
    assert joint_state(assembler, 1, ('elbow',), [4.0], source=1) is None
    np.testing.assert_array_equal(joint_state(assembler, 2, legs).positions, [1.0, 2.0, 3.0, 4.0])
    assert joint_state(assembler, 30, ('elbow',), [5.0], source=1) is None
    assert joint_state(assembler, 20, legs).positions[3] == 4.0, 'a later stamp must wait'
    assert joint_state(assembler, 40, legs).positions[3] == 5.0
    old = joint_state(assembler, 81, legs)
    np.testing.assert_array_equal(old.joint_states, [FRESH, FRESH, FRESH, STALE])
    assert np.isnan(old.positions[3])


def test_the_lead_joint_triggers_until_it_is_silent():
    assembler = make(**{'joint_states.max_age': 0.1})
    assert joint_state(assembler, 1, ('ankle', 'elbow')) is not None
    for ms in (2, 10):
        assert joint_state(assembler, ms, ('hip', 'knee')) is not None
        assert joint_state(assembler, ms + 5, ('ankle', 'elbow')) is None
    assert joint_state(assembler, 110, ('ankle', 'elbow')) is None
    sample = joint_state(assembler, 111, ('ankle', 'elbow'))
    np.testing.assert_array_equal(sample.joint_states, [STALE, STALE, FRESH, FRESH])
    assert joint_state(assembler, 125, ('hip', 'knee')) is not None
    assert joint_state(assembler, 131, ('ankle', 'elbow')) is None


@pytest.mark.parametrize('velocity_source', ['message', 'filter'])
def test_joints_whose_position_is_nan_are_those_of_another_topic(velocity_source, rng):
    """Their derivatives use the stamps of that topic."""
    assembler = make(**FILTERED | {'joint_states.velocity_source': velocity_source})
    for ms in np.cumsum(rng.uniform(4.0, 6.0, 60)):
        s, t = 1e-3 * (ms - 1.0), 1e-3 * ms
        joint_state(assembler, ms - 1.0, ('elbow',), [s**3], source=1, velocities=np.array([7.0]))
        sample = joint_state(
            assembler, ms, JOINTS, [t**2, 2 * t**2, 3 * t**2, np.nan],
            velocities=np.array([4.0, 5.0, 6.0, np.nan]),
        )  # fmt: skip
    filtered = [2 * t, 4 * t, 6 * t, 3 * s**2]
    wanted = filtered if velocity_source == 'filter' else [4.0, 5.0, 6.0, 7.0]
    np.testing.assert_allclose(sample.velocities, wanted, atol=STAMP_ROUND_OFF)
    np.testing.assert_allclose(sample.accelerations, [2.0, 4.0, 6.0, 6 * s], atol=STAMP_ROUND_OFF)
    np.testing.assert_array_equal(sample.joint_states, [FRESH] * 4)
    alone = joint_state(make(), 0, JOINTS, [1.0, np.nan, 3.0, 4.0])
    np.testing.assert_array_equal(alone.joint_states, [FRESH, INVALID, FRESH, FRESH])


def test_a_backward_time_jump_resets_everything():
    assembler = make(**FILTERED, imus=('head',))
    for ms in range(1000, 1300, 5):
        ft(assembler, ms, ms)
        imu(assembler, ms, ms)
        before = joint_state(assembler, ms, JOINTS, np.full(4, 1e-3 * ms))
    assert np.isfinite(before.accelerations).all()
    assert joint_state(assembler, ms) is None, 'a repeated stamp'
    after = joint_state(assembler, 500, JOINTS, np.zeros(4))
    assert np.isnan(after.accelerations).all()
    assert after.ft_states[0] == after.imu_states[0] == ABSENT
    ft(assembler, 501, 5.0)
    assert joint_state(assembler, 505).ft_readings[0, 0] == 5.0
    # Of one sensor alone it is the sensor's; a stamp of zero is none.
    ft(assembler, 400, 6.0)
    assembler.push_ft(0, 0, np.zeros(6))
    assert assembler.push_joints(0, 0, JOINTS, np.zeros(4), NONE, NONE) is None
    joint_state(assembler, 510)
    ft(assembler, 515, 7.0)
    assert joint_state(assembler, 515).ft_readings[0, 0] == 7.0
    statistics = assembler.statistics()
    assert (statistics.fts['leg'].refused, statistics.fts['leg'].restarts) == (1, 1)
    assert statistics.resets == 1


def test_queues_and_ever_new_names_do_not_fill_the_memory():
    assembler = make()
    for ms in range(3000):
        ft(assembler, ms, ms)
    leg = assembler.statistics().fts['leg']
    assert (leg.received, leg.dropped) == (3000, 3000 - 1024)
    assert (leg.rate, leg.longest_gap) == (pytest.approx(1000.0), pytest.approx(1e-3))
    assert assembler.rates().fts[0] == leg.rate
    assert joint_state(assembler, 2999).ft_readings[0, 0] == 2999.0
    for ms in range(3000, 4000):
        names = (*JOINTS, f'tail {ms}')
        assert (joint_state(assembler, ms, names).positions == [1.0, 2.0, 3.0, 4.0]).all()
    assert len(assembler.joints._layouts) < 500
    assert len(assembler.statistics().ignored_joints) < 500


@pytest.mark.parametrize('options', [{}, {'filter.delay': 0.02}, {'filter.smooth_readings': True}])
def test_an_imu_that_leaves_out_a_triple_is_partial(options):
    """Not so one that does not measure it."""
    kinds = ('accelerometer', 'gyroscope', 'both', 'both')
    assembler = make((), ('a', 'g', 'no_rate', 'no_acceleration'), measures=kinds, **options)
    for ms in range(0, 200, 2):
        rate, acceleration = 1e-3 * ms, 2.0 + 1e-3 * ms
        for k in range(2):
            imu(assembler, ms, rate, acceleration, k)
        imu(assembler, ms, np.nan, acceleration, 2)
        imu(assembler, ms, rate, np.nan, 3)
        sample = joint_state(assembler, ms)
    np.testing.assert_array_equal(sample.imu_states, [FRESH, FRESH, PARTIAL, PARTIAL])
    for field, absent in (
        (sample.angular_velocities, (0, 2)),
        (sample.angular_accelerations, (0, 2)),
        (sample.proper_accelerations, (1, 3)),
    ):
        assert np.flatnonzero(np.isnan(field).all(axis=1)).tolist() == list(absent)
        assert np.isnan(field).sum() == 6


# Samples of an instant in the past

DELAY = 0.02
C = np.array([0.7, -1.2, 0.4, 2.0])
"""Coefficients of the cubic that every stream follows, of seconds since `START`."""


def cubic(t):
    """Return value, first and second derivative."""
    return C @ [1, t, t**2, t**3], C @ [0, 1, 2 * t, 3 * t**2], C @ [0, 0, 2, 6 * t]


def play(until_ms, faults=None, **settings):
    """Push streams in the order of their stamps; return the samples by milliseconds."""
    given = FILTERED | {'filter.delay': DELAY} | settings
    assembler = make(('leg',), ('head',), JOINTS[:2], **given)
    streams = (('joints', 5.0, 0.0), ('ft', 3.0, 0.7), ('imu', 7.0, 1.3))
    events = [(ms, kind) for kind, *at in streams for ms in np.arange(at[1], until_ms, at[0])]
    samples = {}
    for ms, kind in sorted(events):
        stamp = START + round(ms * MS)
        value = (faults or {}).get(kind, lambda ms, x: x)(ms, cubic(1e-9 * (stamp - START))[0])
        if kind == 'ft':
            ft(assembler, ms, value)
        elif kind == 'imu':
            imu(assembler, ms, value, value + 9.81)
        elif sample := joint_state(assembler, ms, JOINTS[:2], np.array([value, -value])):
            samples[round(1e-6 * (sample.stamp_ns - START))] = sample
    return samples


@pytest.mark.parametrize(('delay', 'smooth'), [(DELAY, False), (DELAY, True), (0.0, True)])
def test_a_sample_is_of_one_instant(delay, smooth):
    samples = play(400.0, **{'filter.smooth_readings': smooth, 'filter.delay': delay})
    last = 395 - round(1e3 * delay)
    assert list(samples) == list(range(0, last + 5, 5))
    sample = samples[last]
    value, first, second = cubic(1e-3 * last)
    states = [*sample.joint_states, *sample.ft_states, *sample.imu_states]
    np.testing.assert_array_equal(states, [FRESH] * 4)
    # Without delay a reading is as old as its stamp.
    age = 0.0 if delay else 7e-3 * 1.1
    # Between two messages the curve is nearly a line: a'' dt^2 / 8.
    near = FILTER_ROUND_OFF + age * abs(first) if smooth else np.abs(second) * 7e-3**2 / 8
    for found, wanted, atol in (
        (sample.positions, [value, -value], FILTER_ROUND_OFF if smooth else EXACT * abs(value)),
        (sample.velocities, [first, -first], FILTER_ROUND_OFF),
        (sample.accelerations, [second, -second], STAMP_ROUND_OFF),
        (sample.ft_readings[0], value, near),
        (sample.angular_velocities[0], value, near),
        (sample.proper_accelerations[0], value + 9.81, near),
        (sample.angular_accelerations[0], first, FILTER_ROUND_OFF + age * abs(second)),
    ):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=atol)


def test_delayed_ages_and_frozen_sensors():
    def frozen(ms, value):
        return 0.123 if 300.0 < ms < 400.0 else value

    samples = play(700.0, {'imu': frozen, 'ft': frozen})
    # Constant since 302 ms, seen at 357.3 ms; the newest reading is 20 ms ahead of the instant.
    states = [samples[ms].imu_states[0] for ms in (330, 335, 340, 395, 410, 675)]
    assert states == [FRESH, FRESH, FROZEN, FROZEN, WARMING, FRESH]
    assert np.isnan(samples[340].angular_accelerations).all()
    assert [samples[ms].ft_states[0] for ms in (340, 405)] == [FROZEN, FRESH]
    found = samples[675].angular_accelerations[0, 0]
    assert found == pytest.approx(cubic(0.675)[1], abs=FILTER_ROUND_OFF)


# Batches of samples


@pytest.mark.parametrize('optional', [False, True])
def test_stacking_indexing_and_taking(nested_humanoid, rng, optional):
    samples = [random_sample(nested_humanoid, rng)._replace(stamp_ns=START + k) for k in range(7)]
    if optional:
        samples = [one._replace(efforts=np.ones(6), ft_states=np.zeros(3)) for one in samples]
    batch = SampleBatch.stack(samples)
    assert len(batch) == len(list(batch)) == 7
    for taken in (slice(1, 4), slice(None, None, 2), np.array([5, 0]), slice(None)):
        part, expected = batch.take(taken), np.arange(7)[taken]
        assert len(part) == len(expected) and isinstance(part[0].stamp_ns, int)
        for sample, k in zip(part, expected):
            for a, b, c in zip(sample, samples[k], batch[k - 7], strict=True):
                assert (a is None) == (b is None) == (c is None)
                if a is not None:
                    np.testing.assert_array_equal(a, b)
                    np.testing.assert_array_equal(c, b)
    samples[0].positions[:] = 100.0
    assert (batch[0].positions != 100.0).all()
    assert np.shares_memory(batch[0].positions, batch.positions)
    # A field that one sample lacks is left out.
    assert SampleBatch.stack([*samples, samples[0]._replace(efforts=None)]).efforts is None
    with pytest.raises(ModelError):
        SampleBatch.stack([])
