# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Derivative filters: polynomials, the definition of each filter, gaps, NaN.

Not covered: time jumps, which reset a filter from outside (test_streams.py), and which filter
suits a robot (bench/derivatives.py).
"""

from dataclasses import replace

import numpy as np
import pytest

from inertial_estimation.config.settings import EstimatorSettings
from inertial_estimation.signals import savitzky_golay
from inertial_estimation.signals.derivatives import (
    FIRST_VARIANCE,
    SETTLING,
    KalmanFilter,
    gyroscope_differentiator,
    joint_differentiator,
    model,
)
from inertial_estimation.signals.savitzky_golay import (
    CUBIC,
    QUINTIC,
    SavitzkyGolayFilter,
    solve_together,
)

WINDOW = 0.1
START_NS = 1_457_614_036_659_765_005
MS = 1_000_000
KINDS = ('savitzky_golay', 'quintic', 'kalman')
ORDERS = (CUBIC, QUINTIC)
# Round-off of values of order one times the largest weight, about 60 / (0.05 s)^2.
ROUND_OFF = 1e-10


def make(kind='savitzky_golay', n_channels=2):
    if kind == 'kalman':
        return KalmanFilter(n_channels, 1e-4, 10.0)
    return SavitzkyGolayFilter(n_channels, WINDOW, QUINTIC if kind == 'quintic' else CUBIC)


def run(filter_, stamps, values):
    """Return the derivatives after each sample, shape (n, 2, n_channels)."""
    found = []
    for stamp, row in zip(stamps.tolist(), values):
        filter_.append(stamp, row)
        found.append(filter_.evaluate_at(stamp)[1:])
    return np.array(found)


def regular_stamps(n, period_ns=MS):
    return START_NS + period_ns * np.arange(n)


def jittering_stamps(n, rng, period_ns=10 * MS):
    """Stamps of a real stream: 10 ms with jitter, and some gaps of 20 ms."""
    steps = period_ns + rng.integers(-3 * MS, 3 * MS, n)
    steps[rng.random(n) < 0.05] += period_ns
    return START_NS + np.cumsum(steps)


@pytest.mark.parametrize('lag_ns', [0, 31_400_000, 50_000_000])
@pytest.mark.parametrize('kind', ['regular', 'jittering'])
@pytest.mark.parametrize('order', ORDERS)
def test_polynomials_are_exact_at_any_instant_in_the_window(order, kind, lag_ns, rng):
    stamps = regular_stamps(300) if kind == 'regular' else jittering_stamps(300, rng)
    t = 1e-9 * (stamps - stamps[-1])[:, None]
    polynomials = [np.polynomial.Polynomial(rng.normal(size=order + 1)) for _ in range(2)]
    filter_ = SavitzkyGolayFilter(2, WINDOW, order)
    run(filter_, stamps, np.hstack([p(t) for p in polynomials]))
    at = -1e-9 * lag_ns
    wanted = np.array([[p(at), p.deriv(1)(at), p.deriv(2)(at)] for p in polynomials]).T
    found = filter_.evaluate_at(int(stamps[-1]) - lag_ns)
    np.testing.assert_allclose(found, wanted, atol=1e4 * ROUND_OFF)


@pytest.mark.parametrize('lag_ns', [0, 31_400_000])
def test_filters_that_are_solved_together_are_those_alone(lag_ns, rng, monkeypatch):
    """Two of equal stamps, one with its own, a regular one, and one that is not ready."""
    monkeypatch.setattr(savitzky_golay, 'compiled', None)
    jittering = [jittering_stamps(60, rng) for _ in range(2)]
    windows = [*jittering, jittering[0], regular_stamps(60, 10 * MS), jittering[1][-3:]]
    filters, alone = [make() for _ in windows], [make() for _ in windows]
    for stamps, *pair in zip(windows, filters, alone):
        values = rng.normal(size=(len(stamps), 2))
        for filter_ in pair:
            for stamp, row in zip(stamps.tolist(), values):
                filter_.append(stamp, row)
    at = min(int(stamps[-1]) for stamps in windows) - lag_ns
    for _ in range(2):
        solve_together(filters, at)
        for filter_, one in zip(filters, alone):
            np.testing.assert_array_equal(filter_.evaluate_at(at), one.evaluate_at(at))
    assert filters[0]._weights is filters[2]._weights


@pytest.mark.skipif(savitzky_golay.compiled is None, reason='installed without a compiler')
@pytest.mark.parametrize('lag_ns', [0, 31_400_000])
@pytest.mark.parametrize('stamps', [regular_stamps(230), jittering_stamps])
@pytest.mark.parametrize('order', ORDERS)
def test_compiled_polynomials_are_those_of_numpy(order, stamps, lag_ns, rng, monkeypatch):
    """Also of positions far from zero, and beside a channel that is not a number."""
    stamps = stamps(230, rng) if callable(stamps) else stamps
    values = 3.0 + rng.normal(size=(230, 32))
    values[-2, 5] = np.nan
    found = []
    for compiled in (savitzky_golay.compiled, None):
        monkeypatch.setattr(savitzky_golay, 'compiled', compiled)
        filter_ = SavitzkyGolayFilter(32, WINDOW, order)
        run(filter_, stamps, values)
        found.append(filter_.evaluate_at(int(stamps[-1]) - lag_ns))
    assert np.isnan(found[0]).any(axis=0).tolist() == [column == 5 for column in range(32)]
    # Round-off times the condition of a quintic's Gram matrix, about 1e5, in units of a window.
    scales = np.array([[1.0], [2.0 / WINDOW], [4.0 / WINDOW**2]])
    np.testing.assert_allclose(found[0] / scales, found[1] / scales, rtol=0, atol=ROUND_OFF)


def test_a_centred_quintic_errs_less_and_has_less_noise(rng):
    """Than a cubic over half of its window, as for what the identifier takes."""
    stamps = regular_stamps(400, 5 * MS)
    t = 1e-9 * (stamps - stamps[-1])[:, None]
    values = np.hstack([np.sin(2.0 * np.pi * t), rng.standard_normal((400, 100))])
    usual = EstimatorSettings.from_dict({'filter.window': 0.12}).filter
    errors = []
    for given in (replace(usual, delay=0.06), usual.centred()):
        filter_ = joint_differentiator(replace(EstimatorSettings(), filter=given), 101)
        for stamp, row in zip(stamps.tolist(), values):
            filter_.append(stamp, row)
        at = int(stamps[-1]) - round(1e9 * given.delay)
        found = filter_.evaluate_at(at)[2]
        exact = -((2.0 * np.pi) ** 2) * np.sin(-2.0 * np.pi * given.delay)
        errors.append((abs(found[0] - exact), np.sqrt((found[1:] ** 2).mean())))
    assert errors[1][0] < 0.1 * errors[0][0] and errors[1][1] < errors[0][1]


def test_the_window_must_be_filled():
    """Three quarters of it, by three samples more than fix the polynomial."""
    ready = np.isfinite(run(make(), regular_stamps(100), np.zeros((100, 2))))[:, 0, 0]
    assert ready.tolist() == [False] * 75 + [True] * 25
    for n, filled in ((CUBIC + 3, False), (CUBIC + 4, True)):
        filter_ = make()
        run(filter_, regular_stamps(n, round(1e9 * WINDOW) // (n - 1)), np.zeros((n, 2)))
        assert (filter_.ready, filter_.lack == '') == (filled, filled)


@pytest.mark.parametrize('gap_ms', [26, 30, 32, 95])
def test_a_gap_does_not_amplify_noise(gap_ms, rng):
    """A fit that extrapolates to a single sample behind a gap of 95 ms has 500-fold noise."""
    stamps = regular_stamps(600)
    stamps[300:] += (gap_ms - 1) * MS
    found = run(make(n_channels=50), stamps, rng.standard_normal((600, 50)))
    for derivative in found.swapaxes(0, 1):
        usual = np.sqrt((derivative[150:300] ** 2).mean())
        behind = derivative[300:420][np.isfinite(derivative[300:420]).all(axis=1)]
        assert np.sqrt((behind**2).mean(axis=1)).max() < 3.0 * usual
    waits = int(np.isnan(found[300:, 0, 0]).sum())
    assert abs(waits - (75 if gap_ms > 30 else gap_ms - 25)) <= 1


@pytest.mark.parametrize('kind', KINDS)
def test_a_reset_forgets_and_nan_costs_its_own_channel(kind, rng):
    stamps = jittering_stamps(200, rng)
    values = np.sin(1e-9 * (stamps - START_NS)[:, None] * [1.0, 2.0])
    filter_ = make(kind)
    clean = run(filter_, stamps, values)
    filter_.reset()
    np.testing.assert_array_equal(run(filter_, stamps, values), clean)
    filter_.reset()
    values[100, 0] = np.nan
    dirty = run(filter_, stamps, values)
    np.testing.assert_array_equal(dirty[:, :, 1], clean[:, :, 1])
    np.testing.assert_array_equal(dirty[:100], clean[:100])
    assert np.isnan(dirty[100:105, :, 0]).all()
    assert np.isfinite(dirty[-1]).all()


@pytest.mark.parametrize('kind', KINDS)
def test_settings_reach_the_filter_they_are_for(kind, rng):
    stamps = regular_stamps(300, 4 * MS)
    values = np.sin(6.0e-9 * (stamps - stamps[0]))[:, None] + 1e-4 * rng.normal(size=(300, 1))

    def found(new, *arguments, **given):
        filter_ = new(EstimatorSettings.from_dict({'filter.kind': kind, **given}), *arguments)
        return np.nansum(np.abs(run(filter_, stamps, np.tile(values, filter_.n_channels))))

    noisy, kalman = {'joint_states.position_noise': 2e-2}, kind == 'kalman'
    for name, new, argument in (
        ('joint', joint_differentiator, 1), ('gyroscope', gyroscope_differentiator, 3e-3)
    ):  # fmt: skip
        usual = found(new, argument)
        assert (found(new, argument, **{'filter.joint_jerk': 7.0}) != usual) == kalman
        assert (found(new, argument, **noisy) != usual) == (kalman and name == 'joint')
        assert (found(new, argument, **{'filter.window': 0.2}) != usual) == (not kalman)
    assert (found(gyroscope_differentiator, 2e-2) != usual) == kalman


# Kalman filter: the conditional mean of its process, without recursion

NOISE, JERK = 1e-3, 20.0
DENSITY = (JERK / NOISE) ** 2
# Relative to the largest number of each derivative: the oracle is solved by orthogonal factors.
MEAN_ROUND_OFF = 1e-9


def simulate(stamps, n_channels, rng):
    """Return noisy values of the process, (n, n_channels)."""
    states = np.zeros((len(stamps), 3, n_channels))
    for k in range(1, len(stamps)):
        transition, added = model(1e-9 * (stamps[k] - stamps[k - 1]), JERK**2)
        root = np.linalg.cholesky(added)
        states[k] = transition @ states[k - 1] + root @ rng.standard_normal((3, n_channels))
    return states[:, 0] + NOISE * rng.standard_normal((len(stamps), n_channels))


def conditional_mean(stamps, values, instant):
    """Return the mean of the state at an instant: the likeliest path, by least squares."""
    times = np.unique(np.append(stamps, instant))
    n, rate = len(times), DENSITY**0.2
    first = np.sqrt([1.0, FIRST_VARIANCE * rate**2, FIRST_VARIANCE * rate**4])
    rows, wanted = [np.eye(3, 3 * n) / first[:, None]], [np.outer([1.0, 0.0, 0.0], values[0])]
    for k in range(1, n):
        transition, added = model(1e-9 * (times[k] - times[k - 1]), DENSITY)
        row = np.zeros((3, 3 * n))
        row[:, 3 * k - 3 : 3 * k + 3] = np.hstack([-transition, np.eye(3)])
        rows.append(np.linalg.solve(np.linalg.cholesky(added), row))
        wanted.append(np.zeros((3, values.shape[1])))
    measured = 3 * np.searchsorted(times, stamps[1:])
    rows.append(np.eye(3 * n)[measured])
    wanted.append(values[1:])
    # In units of the first variances all columns are of one size.
    scales = np.tile([1.0, rate, rate**2], n)
    path = np.linalg.lstsq(np.vstack(rows) * scales, np.vstack(wanted), rcond=None)[0]
    k = int(np.searchsorted(times, instant))
    return (scales[:, None] * path)[3 * k : 3 * k + 3]


@pytest.mark.parametrize('kind', ['irregular', 'steady', 'unsteady'])
@pytest.mark.parametrize('ahead_ns', [0, 25 * MS, 26_500_000])
def test_the_kalman_filter_is_the_conditional_mean(kind, ahead_ns, rng):
    """After 100 equal intervals its gains are steady; not so where one of them changed."""
    stamps = START_NS + np.cumsum(rng.integers(MS, 10 * MS, 60))
    if kind != 'irregular':
        stamps = regular_stamps(100, 5 * MS)
        stamps[-3:] += MS * (kind == 'unsteady')
    values = simulate(stamps, 2, rng)
    filter_ = KalmanFilter(2, NOISE, JERK, delay=0.05)
    run(filter_, stamps, values)
    instant = int(stamps[-1]) - ahead_ns
    wanted = conditional_mean(stamps, values, instant)
    scale = MEAN_ROUND_OFF * np.abs(wanted).max(axis=1, keepdims=True)
    found = filter_.evaluate_at(instant)
    assert (np.abs(found - wanted) < scale).all()


def test_the_kalman_filter_settles_again_after_nan_and_gaps(rng):
    stamps = regular_stamps(200, 4 * MS)
    values = simulate(stamps, 2, rng)
    values[100, 0] = np.nan
    unknown = np.flatnonzero(np.isnan(run(KalmanFilter(2, NOISE, JERK), stamps, values)[:, 0, 0]))
    # SETTLING times (interval / density)^(1/6), and the sample that was lost.
    settling = int(np.ceil(SETTLING * (4e-3 / DENSITY) ** (1 / 6) / 4e-3)) + 1
    np.testing.assert_array_equal(unknown[unknown >= 100], np.arange(100, 100 + settling))
    stamps[100:] += 500 * MS
    known = np.isfinite(run(KalmanFilter(1, NOISE, JERK), stamps, np.ones((200, 1)))[:, 0, 0])
    np.testing.assert_array_equal(known[100:], known[:100])
