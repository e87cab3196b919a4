# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Samples of an instant in the past: whatever meets in one equation is of that instant.

Not covered: how much smaller errors become (the benchmark prints it), and samples without delay
(test_streams.py).
"""

import numpy as np
import pytest

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.sample import SensorState
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.derivatives import differentiate_with, joint_differentiator

JOINTS = ('hip', 'knee')
NONE = np.empty(0)
MS = 1_000_000
START = 1_000_000 * MS
DELAY = 0.02
FILTERS = ('savitzky_golay', 'kalman', 'adaptive_window')
# Cubic motion through a cubic filter: round-off of weights of about 1e4 only.
FILTER_ROUND_OFF = 1e-8
# The same of stamps that are rounded to a nanosecond.
STAMP_ROUND_OFF = 1e-5
C = np.array([0.7, -1.2, 0.4, 2.0])
"""Coefficients of the cubic that everything here follows, of seconds since `START`."""


def cubic(t):
    """Return value, first and second derivative."""
    return (
        C @ [1.0, t, t**2, t**3],
        C @ [0.0, 1.0, 2 * t, 3 * t**2],
        C @ [0.0, 0.0, 2.0, 6 * t],
    )


def make(**settings):
    settings.setdefault('velocity_source', 'filter')
    settings.setdefault('filter_delay', DELAY)
    return SampleAssembler(JOINTS, ('leg',), ('head',), EstimatorSettings.from_dict(settings))


def seconds(stamp_ns):
    return 1e-9 * (stamp_ns - START)


def play(assembler, until_ms, joints=5.0, ft=3.0, imu=7.0, faults=None):
    """Push streams of different periods [ms] in the order of their stamps; return the samples."""
    faults = faults or {}
    events = []
    for kind, period, phase in (('joints', joints, 0.0), ('ft', ft, 0.7), ('imu', imu, 1.3)):
        events += [(ms, kind) for ms in np.arange(phase, until_ms, period)]
    samples = []
    for ms, kind in sorted(events):
        stamp = START + round(ms * MS)
        value = cubic(seconds(stamp))[0]
        value = faults.get(kind, lambda ms, value: value)(ms, value)
        if value is None:
            continue
        if kind == 'ft':
            assembler.push_ft(0, stamp, np.full(6, value))
        elif kind == 'imu':
            assembler.push_imu(0, stamp, np.full(3, value), np.full(3, value + 9.81))
        else:
            velocities = np.array([cubic(seconds(stamp))[1], 8.0])
            positions = np.array([value, -value])
            samples.append(assembler.push_joints(0, stamp, JOINTS, positions, velocities, NONE))
    return samples


def test_all_of_a_sample_is_of_its_stamp():
    samples = play(make(), 400.0)
    assert samples[3] is None
    assert samples[4].stamp_ns == START
    sample = samples[-1]
    assert sample.stamp_ns == START + 375 * MS
    value, first, second = cubic(seconds(sample.stamp_ns))
    fresh = SensorState.FRESH
    np.testing.assert_array_equal(sample.joint_states, [fresh] * 2)
    np.testing.assert_array_equal([*sample.ft_states, *sample.imu_states], [fresh] * 2)
    np.testing.assert_allclose(sample.positions, [value, -value], rtol=1e-12)
    np.testing.assert_allclose(sample.velocities, [first, -first], atol=FILTER_ROUND_OFF)
    np.testing.assert_allclose(sample.accelerations, [second, -second], atol=STAMP_ROUND_OFF)
    np.testing.assert_allclose(sample.angular_accelerations[0], first, atol=FILTER_ROUND_OFF)
    # Between two messages the curve is nearly a line: a'' dt^2 / 8.
    chord = np.abs(second) * 7e-3**2 / 8
    np.testing.assert_allclose(sample.ft_readings[0], value, atol=chord)
    np.testing.assert_allclose(sample.angular_velocities[0], value, atol=chord)
    np.testing.assert_allclose(sample.proper_accelerations[0], value + 9.81, atol=chord)


@pytest.mark.parametrize('kind', FILTERS)
def test_every_filter_gives_in_a_sample_what_it_gives_for_a_log(kind):
    settings = {'derivative_filter': kind, 'velocity_source': 'filter', 'filter_delay': DELAY}
    samples = [sample for sample in play(make(**settings), 600.0) if sample]
    stamps = np.array([sample.stamp_ns for sample in samples])
    log = START + 5 * MS * np.arange(120)
    values = np.array([cubic(seconds(stamp))[0] for stamp in log])[:, None] * [1.0, -1.0]
    filter_ = joint_differentiator(EstimatorSettings.from_dict(settings), 2)
    first, second = differentiate_with(filter_, log, values, DELAY)
    np.testing.assert_array_equal(stamps, log[: len(stamps)])
    np.testing.assert_array_equal([s.velocities for s in samples], first[: len(stamps)])
    np.testing.assert_array_equal([s.accelerations for s in samples], second[: len(stamps)])
    assert np.isfinite(first[60 : len(stamps)]).all()
    assert np.isnan(first[len(stamps) :]).all()


def test_a_part_with_other_stamps_is_interpolated_to_the_instant():
    assembler = make(joint_topics=['joint_states', 'hand'])
    for ms in np.arange(0.0, 300.0, 4.0):
        for source, name, at in ((1, 'knee', ms + 1.5), (0, 'hip', ms + 2.0)):
            stamp = START + round(at * MS)
            position = np.array([cubic(seconds(stamp))[0]])
            sample = assembler.push_joints(source, stamp, (name,), position, NONE, NONE)
    value, first, second = cubic(seconds(sample.stamp_ns))
    np.testing.assert_allclose(sample.positions, value, atol=np.abs(second) * 4e-3**2 / 8)
    assert sample.positions[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(sample.velocities, first, atol=FILTER_ROUND_OFF)
    np.testing.assert_allclose(sample.accelerations, second, atol=STAMP_ROUND_OFF)


def test_jittering_joint_states_give_increasing_stamps_that_are_theirs():
    assembler = make()
    rng = np.random.default_rng(0)
    pushed = START + np.cumsum(rng.integers(2 * MS, 8 * MS, 200))
    made, delays = [], []
    for stamp in pushed.tolist():
        sample = assembler.push_joints(0, stamp, JOINTS, np.zeros(2), NONE, NONE)
        if sample:
            delays.append(1e-9 * (stamp - sample.stamp_ns))
            made.append(sample.stamp_ns)
    assert (np.diff(made) > 0).all()
    assert set(made) <= set(pushed.tolist())
    # Of two that come to lie the delay back at once the second waits, unless too many do.
    assert len(made) > 180
    assert min(delays) >= DELAY
    assert max(delays) < DELAY + 3 * 0.008
    assert assembler.statistics().samples == len(made)


def test_ages_are_reckoned_from_the_instant():
    assembler = make(**{'ft_sensors': ['leg'], 'ft.leg.max_age': 0.03})
    samples = play(assembler, 400.0, faults={'ft': lambda ms, v: v if ms < 300.0 else None})
    states = {s.stamp_ns: s.ft_states[0] for s in samples if s}
    # The last reading is of 297.7 ms.
    assert states[START + 325 * MS] == SensorState.FRESH
    assert states[START + 330 * MS] == SensorState.STALE
    assert assembler.statistics().fts['leg'].age == pytest.approx(0.375 - 0.2977)


def test_a_sensor_is_frozen_as_soon_as_its_newest_reading_shows_it():
    assembler = make()

    def frozen(ms, value):
        return value if not 300.0 < ms < 400.0 else 0.123

    samples = play(assembler, 700.0, faults={'imu': frozen, 'ft': frozen})
    states = {round(1e3 * seconds(s.stamp_ns)): s for s in samples if s}
    # Standing since 302 ms, seen at 357.3 ms; the newest reading is 20 ms ahead of the instant.
    assert states[330].imu_states[0] == SensorState.FRESH
    assert states[335].imu_states[0] == SensorState.FRESH
    assert states[340].imu_states[0] == SensorState.FROZEN
    assert np.isnan(states[340].angular_accelerations).all()
    # Thawed at 400 ms: until the instant is past the standing values, then until the filter is
    # filled again.
    assert states[395].imu_states[0] == SensorState.FROZEN
    assert states[410].imu_states[0] == SensorState.WARMING
    assert states[340].ft_states[0] == SensorState.FROZEN
    assert states[405].ft_states[0] == SensorState.FRESH
    for ms in range(410, 680, 5):
        found = states[ms].angular_accelerations[0, 0]
        if np.isfinite(found):
            wanted = cubic(1e-3 * ms)[1]
            assert found == pytest.approx(wanted, abs=FILTER_ROUND_OFF)
    assert np.isfinite(found)


def test_a_gap_of_the_joint_states_costs_derivatives_and_nothing_else():
    assembler = make()
    samples = play(
        assembler, 900.0, faults={'joints': lambda ms, v: None if 400 < ms < 600 else v}
    )
    made = [s for s in samples if s]
    gaps = np.diff([s.stamp_ns for s in made])
    assert gaps.max() == 200 * MS
    known = np.isfinite([s.accelerations[0] for s in made])
    at = np.array([round(1e3 * seconds(s.stamp_ns)) for s in made])
    assert known[(at > 90) & (at <= 380)].all()
    assert not known[(at > 400) & (at < 655)].any()
    assert known[at > 680].all()


@pytest.mark.parametrize('delay', [0.0, DELAY])
def test_smoothed_readings_are_the_polynomial_at_the_instant(delay):
    assembler = make(smooth_readings=True, filter_delay=delay)
    samples = play(assembler, 400.0)
    sample = samples[-1]
    value, first, second = cubic(seconds(sample.stamp_ns))
    assert sample.stamp_ns == START + round((0.395 - delay) * 1e9)
    # Without delay a reading is as old as its stamp says.
    age = 0.0 if delay else 7e-3
    np.testing.assert_allclose(
        sample.ft_readings[0], value, atol=FILTER_ROUND_OFF + age * abs(first) * 1.1
    )
    np.testing.assert_allclose(
        sample.angular_velocities[0], value, atol=FILTER_ROUND_OFF + age * abs(first) * 1.1
    )
    np.testing.assert_allclose(
        sample.angular_accelerations[0], first, atol=FILTER_ROUND_OFF + age * abs(second) * 1.1
    )
    np.testing.assert_allclose(sample.positions, [value, -value], atol=FILTER_ROUND_OFF)


def test_a_smoothed_reading_is_warming_until_the_window_is_filled_and_invalid_if_it_is():
    def broken(ms, value):
        return np.nan if 300.0 < ms < 303.0 else value

    samples = play(make(smooth_readings=True), 600.0, faults={'ft': broken, 'imu': broken})
    states = {round(1e3 * seconds(s.stamp_ns)): s for s in samples if s}
    for ms, sample in states.items():
        if 5 <= ms < 50 or 310 <= ms < 380:
            assert sample.ft_states[0] == SensorState.WARMING
            assert np.isnan(sample.ft_readings).all()
            assert sample.imu_states[0] == SensorState.WARMING
    assert states[200].ft_states[0] == SensorState.FRESH
    assert states[300].ft_states[0] == SensorState.INVALID
    assert states[500].ft_states[0] == SensorState.FRESH
    assert states[500].imu_states[0] == SensorState.FRESH
