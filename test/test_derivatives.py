# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The Savitzky-Golay filter, step by step and in batch, and what all filters have in common.

Not covered: how much noise a window lets through (a choice, not a property), time jumps, which
the owner of a filter turns into a reset (test_streams.py), and what is peculiar to the other
filters (test_kalman.py, test_adaptive_window.py).
"""

import numpy as np
import pytest

from inertial_estimation.config.settings import EstimatorSettings
from inertial_estimation.errors import ShapeError
from inertial_estimation.signals.adaptive_window import AdaptiveWindowFilter
from inertial_estimation.signals.derivatives import (
    differentiate_with,
    gyroscope_differentiator,
    joint_differentiator,
)
from inertial_estimation.signals.kalman import KalmanFilter
from inertial_estimation.signals.savitzky_golay import SavitzkyGolayFilter, differentiate
from inertial_estimation.signals.windows import least_samples

WINDOW = 0.1
ORDER = 3
START_NS = 1_457_614_036_659_765_005
# Round-off of values of order one times the largest weight, about 60 / (0.05 s)^2.
ROUND_OFF = 1e-10
# Of the batch form, relative to the largest derivative of the log. Polynomials of order 5 through
# irregular stamps have matrices of condition 1e4, which times the precision is 2e-12.
BATCH_ROUND_OFF = 1e-11


def step(filter_, stamp_ns, values):
    filter_.append(stamp_ns, values)
    return filter_.evaluate()


def regular_stamps(n, period_ns=1_000_000):
    return START_NS + period_ns * np.arange(n)


def jittering_stamps(n, rng, period_ns=10_000_000):
    """Stamps of a real stream: 10 ms with jitter, and some gaps of 20 ms."""
    steps = period_ns + rng.integers(-3_000_000, 3_000_000, n)
    steps[rng.random(n) < 0.05] += period_ns
    return START_NS + np.cumsum(steps)


def cubic(stamps):
    """Return two cubic channels around the middle of the log, and their derivatives."""
    t = 1e-9 * (stamps - stamps[len(stamps) // 2])[:, None]
    c = np.array([[1.0, -0.3], [0.5, 2.0], [-0.7, 0.1], [0.9, -1.1]])
    values = c[0] + c[1] * t + c[2] * t**2 + c[3] * t**3
    return values, c[1] + 2 * c[2] * t + 3 * c[3] * t**2, 2 * c[2] + 6 * c[3] * t


def run_stepwise(stamps, values, window=WINDOW, order=ORDER):
    filter_ = SavitzkyGolayFilter(values.shape[1], window, order)
    steps = [step(filter_, int(t), x) for t, x in zip(stamps, values)]
    return np.array(steps).swapaxes(0, 1)


@pytest.mark.parametrize('kind', ['regular', 'jittering'])
def test_polynomials_are_differentiated_exactly(kind):
    rng = np.random.default_rng(0)
    stamps = regular_stamps(300) if kind == 'regular' else jittering_stamps(300, rng)
    values, first, second = cubic(stamps)
    got_first, got_second = run_stepwise(stamps, values)
    filled = np.isfinite(got_first[:, 0])
    assert filled.mean() > 0.7
    np.testing.assert_allclose(got_first[filled], first[filled], atol=ROUND_OFF)
    np.testing.assert_allclose(got_second[filled], second[filled], atol=1e2 * ROUND_OFF)


def test_true_stamps_are_used_where_a_nominal_rate_would_err():
    stamps = jittering_stamps(200, np.random.default_rng(1))
    velocity = run_stepwise(stamps, 1e-9 * (stamps - stamps[0])[:, None])[0]
    filled = np.isfinite(velocity)
    np.testing.assert_allclose(velocity[filled], 1.0, atol=ROUND_OFF)


@pytest.mark.parametrize('order', [2, 3, 5])
@pytest.mark.parametrize('period_ns', [333_333, 1_000_000, 10_000_000])
def test_batch_equals_steps(order, period_ns):
    rng = np.random.default_rng(3)
    stamps = np.concatenate(
        [
            regular_stamps(400, period_ns),
            regular_stamps(1)[0]
            + 400 * period_ns
            + np.cumsum(rng.integers(1, 2 * period_ns, 200)),
        ]
    )
    values = np.sin(1e-9 * (stamps - START_NS)[:, None] * [1.0, 5.0, 20.0])
    steps = run_stepwise(stamps, values, order=order)
    batch = np.array(differentiate(stamps, values, WINDOW, order))
    np.testing.assert_array_equal(np.isnan(steps), np.isnan(batch))
    for got, wanted in zip(batch, steps):
        largest = np.nanmax(np.abs(wanted))
        np.testing.assert_allclose(got, wanted, rtol=0.0, atol=BATCH_ROUND_OFF * largest)


def test_nothing_is_returned_before_the_window_is_filled():
    filter_ = SavitzkyGolayFilter(1, WINDOW, ORDER)
    ready = []
    for stamp in regular_stamps(100).tolist():
        derivatives = step(filter_, stamp, np.zeros(1))
        assert np.isfinite(derivatives).all() == filter_.ready
        ready.append(filter_.ready)
    assert ready.index(True) == 75


@pytest.mark.parametrize('hz', [5, 25, 30, 50])
def test_a_stream_too_slow_for_a_fit_gives_nan_(hz):
    stamps = regular_stamps(50, period_ns=1_000_000_000 // hz)
    filter_ = SavitzkyGolayFilter(1, WINDOW, ORDER)
    for stamp in stamps.tolist():
        assert np.isnan(step(filter_, stamp, np.zeros(1))).all()
    assert filter_.lack
    assert np.isnan(differentiate(stamps, np.zeros((50, 1)), WINDOW, ORDER)).all()


@pytest.mark.parametrize('order', [2, 3, 5])
def test_a_window_with_enough_samples_is_a_fit(order):
    least = least_samples(order)
    for n, ready in ((least - 1, False), (least, True)):
        filter_ = SavitzkyGolayFilter(1, WINDOW, order)
        for stamp in regular_stamps(n, period_ns=round(1e9 * WINDOW) // (n - 1)).tolist():
            filter_.append(stamp, np.zeros(1))
        assert filter_.ready == ready
        assert (filter_.lack == '') == ready


def test_after_a_gap_the_window_fills_again():
    stamps = regular_stamps(400)
    stamps[200:] += 1_000_000_000
    velocity = run_stepwise(stamps, 1e-9 * (stamps - stamps[0])[:, None])[0][:, 0]
    assert np.isnan(velocity[200:275]).all()
    np.testing.assert_allclose(velocity[275:], 1.0, atol=ROUND_OFF)


@pytest.mark.parametrize('order', [2, 3, 5])
@pytest.mark.parametrize('gap_ms', [26, 30, 32, 60, 80, 95])
def test_noise_is_not_blown_up_by_a_leap_over_a_gap(gap_ms, order, rng):
    """A lone sample behind a gap is extrapolated to: 500-fold noise at 95 ms."""
    stamps = regular_stamps(600)
    stamps[300:] += (gap_ms - 1) * 1_000_000
    noise = rng.standard_normal((600, 50))
    first, second = run_stepwise(stamps, noise, order=order)
    for derivative in (first, second):
        usual = np.sqrt((derivative[150:300] ** 2).mean())
        behind = derivative[300:420][np.isfinite(derivative[300:420]).all(axis=1)]
        assert np.sqrt((behind**2).mean(axis=1)).max() < 3.0 * usual
    waits = int(np.isnan(first[300:, 0]).sum())
    # Three quarters of the window have to be filled anyhow, by what is behind the gap in the end.
    assert abs(waits - (75 if gap_ms > 30 else gap_ms - 25)) <= 1
    assert np.isfinite(first[450:]).all()


def test_nan_costs_its_own_channel_for_one_window():
    stamps = regular_stamps(400)
    values, *_ = cubic(stamps)
    clean = run_stepwise(stamps, values)
    values[150, 0] = np.nan
    dirty = run_stepwise(stamps, values)
    np.testing.assert_array_equal(dirty[:, :, 1], clean[:, :, 1])
    assert np.isnan(dirty[:, 150:251, 0]).all()
    np.testing.assert_array_equal(dirty[:, 251:, 0], clean[:, 251:, 0])


def test_reset_forgets():
    stamps = regular_stamps(300)
    values, *_ = cubic(stamps)
    filter_ = SavitzkyGolayFilter(2, WINDOW, ORDER)
    for stamp, value in zip(stamps, values):
        filter_.append(int(stamp), value)
    filter_.reset()
    assert not filter_.ready
    again = np.array([step(filter_, int(t), x) for t, x in zip(stamps, values)])
    np.testing.assert_array_equal(again.swapaxes(0, 1), run_stepwise(stamps, values))


def make(kind, n_channels=2, delay=0.0):
    if kind == 'kalman':
        return KalmanFilter(n_channels, 1e-4, 10.0, delay)
    if kind == 'adaptive_window':
        return AdaptiveWindowFilter(n_channels, WINDOW, 1e-3)
    return SavitzkyGolayFilter(n_channels, WINDOW, ORDER)


KINDS = ('savitzky_golay', 'kalman', 'adaptive_window')


@pytest.mark.parametrize('lag_ns', [0, 13_000_000, 31_400_000, 50_000_000])
@pytest.mark.parametrize('order', [2, 3, 5])
@pytest.mark.parametrize('kind', ['regular', 'jittering'])
def test_polynomials_are_exact_at_any_instant_in_the_window(kind, order, lag_ns):
    rng = np.random.default_rng(5)
    stamps = regular_stamps(300) if kind == 'regular' else jittering_stamps(300, rng)
    t = 1e-9 * (stamps - stamps[-1])[:, None]
    polynomials = [np.polynomial.Polynomial(rng.normal(size=order + 1)) for _ in range(2)]
    values = np.hstack([p(t) for p in polynomials])
    filter_ = SavitzkyGolayFilter(2, WINDOW, order)
    for stamp, row in zip(stamps.tolist(), values):
        filter_.append(stamp, row)
    got = filter_.evaluate_at(int(stamps[-1]) - lag_ns)
    for p, found in zip(polynomials, got.T):
        wanted = [p(-1e-9 * lag_ns), p.deriv(1)(-1e-9 * lag_ns), p.deriv(2)(-1e-9 * lag_ns)]
        np.testing.assert_allclose(found, wanted, atol=1e4 * ROUND_OFF)


@pytest.mark.parametrize('kind', KINDS)
def test_nothing_is_known_without_samples_of_one_and_before_the_window(kind):
    filter_ = make(kind, delay=0.02)
    assert not filter_.ready
    assert filter_.lack
    assert np.isnan(filter_.evaluate()).all()
    assert np.isnan(filter_.evaluate_at(START_NS)).all()
    filter_.append(START_NS, np.zeros(2))
    assert np.isnan(filter_.evaluate()).all()
    assert np.isnan(filter_.evaluate_at(START_NS)).all()
    for stamp in (START_NS + 4_000_000 * np.arange(1, 200)).tolist():
        filter_.append(stamp, np.zeros(2))
    assert filter_.ready
    assert filter_.lack == ''
    assert np.isfinite(filter_.evaluate()).all()
    assert np.isnan(filter_.evaluate_at(START_NS)).all()


@pytest.mark.parametrize('kind', KINDS)
def test_any_filter_forgets_and_a_nan_costs_its_channel_only(kind):
    stamps = jittering_stamps(200, np.random.default_rng(8))
    values, *_ = cubic(stamps)
    filter_ = make(kind)

    def run(rows):
        filter_.reset()
        return np.array([step(filter_, int(t), x) for t, x in zip(stamps, rows)])

    clean = run(values)
    np.testing.assert_array_equal(run(values), clean)
    values[100, 0] = np.nan
    dirty = run(values)
    np.testing.assert_array_equal(dirty[:, :, 1], clean[:, :, 1])
    np.testing.assert_array_equal(dirty[:100], clean[:100])
    assert np.isnan(dirty[100:105, :, 0]).all()
    assert np.isfinite(dirty[-1]).all()


@pytest.mark.parametrize('delay', [0.0, 0.03])
@pytest.mark.parametrize('kind', KINDS)
def test_a_log_is_differentiated_as_step_by_step(kind, delay):
    stamps = jittering_stamps(150, np.random.default_rng(9))
    values, *_ = cubic(stamps)
    batch = np.array(differentiate_with(make(kind, delay=delay), stamps, values, delay))
    steps = np.full_like(batch, np.nan)
    filter_ = make(kind, delay=delay)
    for k, (stamp, row) in enumerate(zip(stamps.tolist(), values)):
        filter_.append(stamp, row)
        # Every sample that this one is the first to be the delay later than.
        earlier = stamps[k - 1] if k else 0
        for j in np.flatnonzero(
            (stamps + delay * 1e9 <= stamp) & (stamps + delay * 1e9 > earlier)
        ):
            steps[:, j] = filter_.evaluate_at(int(stamps[j]))[1:]
    np.testing.assert_array_equal(np.isnan(batch), np.isnan(steps))
    assert np.isfinite(batch).any()
    largest = np.nanmax(np.abs(steps))
    np.testing.assert_allclose(batch, steps, rtol=0.0, atol=BATCH_ROUND_OFF * largest)
    with pytest.raises(ShapeError):
        differentiate_with(make(kind), stamps, values[1:], delay)


def test_settings_choose_the_filter_and_its_parameters():
    chosen = EstimatorSettings(derivative_filter='kalman', filter_delay=0.3)
    assert isinstance(joint_differentiator(chosen, 5), KalmanFilter)
    assert joint_differentiator(chosen, 5).n_channels == 5
    chosen = EstimatorSettings(derivative_filter='adaptive_window')
    gyroscope = gyroscope_differentiator(chosen)
    assert isinstance(gyroscope, AdaptiveWindowFilter)
    assert gyroscope.n_channels == 3
    usual = joint_differentiator(EstimatorSettings(derivative_window=0.2, derivative_order=4), 1)
    assert isinstance(usual, SavitzkyGolayFilter)
    assert (usual.window, usual.order) == (0.2, 4)


@pytest.mark.parametrize('kind', ['kalman', 'adaptive_window'])
def test_noise_settings_reach_the_filter_they_are_for(kind):
    rng = np.random.default_rng(10)
    stamps = regular_stamps(300, period_ns=4_000_000)
    values = np.sin(6.0e-9 * (stamps - stamps[0]))[:, None] + 1e-4 * rng.normal(size=(300, 1))

    def rough(make_one, **given):
        differentiator = make_one(EstimatorSettings(derivative_filter=kind, **given))
        rows = np.tile(values, differentiator.n_channels)
        first = differentiate_with(differentiator, stamps, rows)[0][:, 0]
        return np.nanstd(np.diff(first))

    def joints(settings):
        return joint_differentiator(settings, 1)

    usual = rough(joints)
    assert rough(joints, derivative_joint_noise=1e-2) != usual
    assert rough(joints, derivative_gyroscope_noise=1e-2) == usual
    turning = rough(gyroscope_differentiator)
    assert rough(gyroscope_differentiator, derivative_gyroscope_noise=1e-5) != turning
    assert rough(gyroscope_differentiator, derivative_joint_noise=1e-2) == turning
    changed = kind == 'kalman'
    assert (rough(joints, derivative_joint_jerk=300.0) != usual) == changed
    assert (rough(gyroscope_differentiator, derivative_gyroscope_jerk=3.0) != turning) == changed
