# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The causal differentiator, step by step and in batch.

Not covered: how much noise a window lets through (a choice, not a property), and time jumps,
which its owner turns into a reset (test_streams.py).
"""

import numpy as np
import pytest

from inertial_estimation.config.schema import settings_of
from inertial_estimation.config.settings import EstimatorSettings
from inertial_estimation.errors import ShapeError
from inertial_estimation.estimation.savitzky_golay import SavitzkyGolayFilter, differentiate
from inertial_estimation.estimation.windows import REGULAR_TOLERANCE, least_samples

WINDOW = 0.1
ORDER = 3
START_NS = 1_457_614_036_659_765_005
# Round-off of values of order one times the largest weight, about 60 / (0.05 s)^2.
ROUND_OFF = 1e-10
# Of the batch form, relative to the largest derivative of the log.
BATCH_ROUND_OFF = 1e-12


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
    steps = [filter_.update(int(t), x) for t, x in zip(stamps, values)]
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


def test_nearly_regular_stamps_cost_no_more_than_the_tolerance():
    rng = np.random.default_rng(2)
    stamps = regular_stamps(300) + rng.integers(-20, 21, 300)
    velocity = run_stepwise(stamps, 1e-9 * (stamps - stamps[0])[:, None])[0]
    filled = np.isfinite(velocity)
    np.testing.assert_allclose(velocity[filled], 1.0, atol=REGULAR_TOLERANCE)


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
        derivatives = filter_.update(stamp, np.zeros(1))
        assert np.isfinite(derivatives).all() == filter_.ready
        ready.append(filter_.ready)
    assert ready.index(True) == 75


@pytest.mark.parametrize('hz', [5, 25, 30, 50])
def test_a_stream_too_slow_for_a_fit_gives_nan_and_says_why(hz):
    stamps = regular_stamps(50, period_ns=1_000_000_000 // hz)
    filter_ = SavitzkyGolayFilter(1, WINDOW, ORDER)
    for stamp in stamps.tolist():
        assert np.isnan(filter_.update(stamp, np.zeros(1))).all()
    assert 'of at least 7 samples in derivative_window (0.1 s)' in filter_.lack
    assert filter_.lack.endswith('too short for this rate and derivative_order 3')
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


def test_a_window_that_fills_is_not_called_too_short():
    filter_ = SavitzkyGolayFilter(1, WINDOW, ORDER)
    assert filter_.lack.startswith('0 of at least 7 samples')
    for stamp in regular_stamps(4, period_ns=10_000_000).tolist():
        filter_.append(stamp, np.zeros(1))
    assert filter_.lack == '4 of at least 7 samples in derivative_window (0.1 s), which is filling'


def test_the_setting_tells_how_many_samples_are_needed():
    window = next(s for s in settings_of(EstimatorSettings) if s.name == 'derivative_window')
    assert f'derivative_order + {least_samples(0)} samples' in window.description


def test_after_a_gap_the_window_fills_again():
    stamps = regular_stamps(400)
    stamps[200:] += 1_000_000_000
    velocity = run_stepwise(stamps, 1e-9 * (stamps - stamps[0])[:, None])[0][:, 0]
    assert np.isnan(velocity[200:275]).all()
    np.testing.assert_allclose(velocity[275:], 1.0, atol=ROUND_OFF)


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
    again = np.array([filter_.update(int(t), x) for t, x in zip(stamps, values)])
    np.testing.assert_array_equal(again.swapaxes(0, 1), run_stepwise(stamps, values))


def test_results_belong_to_the_caller():
    stamps = regular_stamps(150)
    values, *_ = cubic(stamps)
    filter_ = SavitzkyGolayFilter(2, WINDOW, ORDER)
    results = [filter_.update(int(t), x) for t, x in zip(stamps, values)]
    kept = results[-2].copy()
    filter_.update(int(stamps[-1]) + 1_000_000, values[0])
    np.testing.assert_array_equal(results[-2], kept)


def test_batch_refuses_values_that_do_not_match_the_stamps():
    with pytest.raises(ShapeError, match='values'):
        differentiate(regular_stamps(5), np.zeros((4, 2)), WINDOW, ORDER)
