# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The Kalman differentiator against the Riccati equation, dense Gaussian algebra and a simulation.

Not covered: whether its model fits the motion of a robot (the benchmark prints what it costs), and
what all filters have in common (test_derivatives.py).
"""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

from inertial_estimation.signals.fixed_lag import (
    gains_of_step,
    model,
    smoother_gain,
    steady_gains,
)
from inertial_estimation.signals.kalman import FIRST_VARIANCE, SETTLING, KalmanFilter

NOISE, JERK = 1e-3, 20.0
DENSITY = (JERK / NOISE) ** 2
START_NS = 1_457_614_036_659_765_005
# Relative, of a Riccati equation whose entries span ten orders of magnitude.
RICCATI_ROUND_OFF = 1e-6
# Relative to the largest derivative: the dense covariance has a condition number of about 1e12.
DENSE_ROUND_OFF = 1e-3
# Relative, of an rms over about 5000 independent values.
SAMPLING = 0.05
# The same sums in another order; derivatives are by so much larger than values at this rate.
SUMS = 1e-9


def step(filter_, stamp_ns, values):
    filter_.append(stamp_ns, values)
    return filter_.evaluate()


def irregular_stamps(n, rng, period_ns=5_000_000):
    return START_NS + np.cumsum(rng.integers(period_ns // 4, 2 * period_ns, n))


def simulate(stamps, n_channels, rng):
    """Return states (n, 3, n_channels) of the process and noisy values (n, n_channels)."""
    states = np.zeros((len(stamps), 3, n_channels))
    for k in range(1, len(stamps)):
        transition, added = model(1e-9 * (stamps[k] - stamps[k - 1]), JERK**2)
        root = np.linalg.cholesky(added)
        states[k] = transition @ states[k - 1] + root @ rng.standard_normal((3, n_channels))
    return states, states[:, 0] + NOISE * rng.standard_normal((len(stamps), n_channels))


def conditional_mean(stamps, values, instant):
    """Return the mean of the state at an instant, given the values: dense, without recursion."""
    times = 1e-9 * (np.append(stamps, instant) - stamps[0])
    rate = DENSITY**0.2
    first = np.diag([1.0, FIRST_VARIANCE * rate**2, FIRST_VARIANCE * rate**4])

    def covariance(s, t):
        early = min(s, t)
        there = model(early, DENSITY)[0] @ first @ model(early, DENSITY)[0].T
        there = there + (model(early, DENSITY)[1] if early else 0.0)
        return model(s - early, DENSITY)[0] @ there @ model(t - early, DENSITY)[0].T

    later = times[1:-1]
    among = np.array([[covariance(s, t)[0, 0] for t in later] for s in later])
    across = np.array([covariance(times[-1], t)[:, 0] for t in later]).T
    mean = np.array([[1.0], [0.0], [0.0]]) * values[0]
    return mean + across @ np.linalg.solve(among + np.eye(len(later)), values[1:] - values[0])


@pytest.mark.parametrize('interval', [1e-3, 4e-3, 2e-2])
def test_steady_gains_solve_the_riccati_equation_of_the_textbook(interval):
    gains = steady_gains(interval, DENSITY)
    transition, added = model(interval, JERK**2)
    measures = np.array([[1.0], [0.0], [0.0]])
    predicted = solve_discrete_are(transition.T, measures, added, [[NOISE**2]])
    np.testing.assert_allclose(
        gains.predicted_covariance * NOISE**2, predicted, rtol=RICCATI_ROUND_OFF
    )
    gain = predicted @ measures / (measures.T @ predicted @ measures + NOISE**2)
    np.testing.assert_allclose(gains.gain, gain, rtol=RICCATI_ROUND_OFF)
    again = gains_of_step(gains.covariance, interval, DENSITY)
    np.testing.assert_allclose(again.covariance, gains.covariance, rtol=RICCATI_ROUND_OFF)
    np.testing.assert_allclose(
        gains.back, smoother_gain(gains.covariance, again), rtol=RICCATI_ROUND_OFF
    )


def test_at_a_high_rate_the_errors_decay_like_a_butterworth_filter():
    interval = 1e-4
    gains = steady_gains(interval, DENSITY)
    closed = (np.eye(3) - gains.gain @ [[1.0, 0.0, 0.0]]) @ gains.transition
    rates = np.log(np.linalg.eigvals(closed).astype(complex)) / interval
    corner = (DENSITY / interval) ** (1 / 6)
    wanted = corner * np.exp(1j * np.pi * np.array([2 / 3, 1.0, 4 / 3]))
    discretisation = 0.05
    np.testing.assert_allclose(
        np.sort_complex(rates), np.sort_complex(wanted), rtol=discretisation
    )


@pytest.mark.parametrize('regular', [True, False])
def test_the_filter_is_the_conditional_mean_of_all_samples_so_far(regular):
    rng = np.random.default_rng(0)
    stamps = irregular_stamps(60, rng)
    if regular:
        stamps = START_NS + 5_000_000 * np.arange(60)
    values = simulate(stamps, 2, rng)[1]
    filter_ = KalmanFilter(2, NOISE, JERK)
    for stamp, row in zip(stamps.tolist(), values):
        got = step(filter_, stamp, row)
    assert filter_.ready
    wanted = conditional_mean(stamps, values, stamps[-1])[1:]
    for k in range(2):
        atol = DENSE_ROUND_OFF * np.abs(wanted[k]).max()
        np.testing.assert_allclose(got[k], wanted[k], rtol=0.0, atol=atol)


@pytest.mark.parametrize('share', [0.0, 0.3])
def test_an_instant_in_the_past_is_the_conditional_mean_given_the_later_samples(share):
    rng = np.random.default_rng(1)
    stamps = irregular_stamps(60, rng)
    values = simulate(stamps, 2, rng)[1]
    filter_ = KalmanFilter(2, NOISE, JERK, delay=0.05)
    for stamp, row in zip(stamps.tolist(), values):
        filter_.append(stamp, row)
    instant = int(stamps[-6] + share * (stamps[-5] - stamps[-6]))
    wanted = conditional_mean(stamps, values, instant)
    for got, row in zip(filter_.evaluate_at(instant), wanted):
        np.testing.assert_allclose(got, row, rtol=0.0, atol=DENSE_ROUND_OFF * np.abs(row).max())


@pytest.mark.parametrize('irregular', [0, 4])
def test_weights_of_later_samples_do_what_the_sweep_through_them_does(irregular):
    """Where the interval changed, an instant lies before the gains were steady again."""
    rng = np.random.default_rng(5)
    stamps = START_NS + 2_000_000 * np.arange(400)
    stamps[190 : 190 + irregular] += 300_000
    values = simulate(stamps, 3, rng)[1]
    values[150, 1] = np.nan
    filter_ = KalmanFilter(3, NOISE, JERK, delay=0.2)
    for stamp, row in zip(stamps.tolist(), values):
        filter_.append(stamp, row)
    steady = filter_._smoother.steady_steps
    assert steady < 190 if irregular else steady > 190
    instants = [
        int(stamps[-1 - lag]) + offset for lag in (0, 1, 7, 90, 190) for offset in (-700_000, 0)
    ]
    quick = [filter_.evaluate_at(instant) for instant in instants]
    filter_._smoother.steady_steps = 0
    for instant, got in zip(instants, quick):
        wanted = filter_.evaluate_at(instant)
        assert np.isfinite(wanted[:, ::2]).all()
        size = np.abs(values[-1]).max() * np.array([[1.0], [1e2], [1e4]])
        np.testing.assert_allclose(got / size, wanted / size, rtol=0.0, atol=SUMS)


def test_a_regular_stream_comes_to_the_steady_gain_and_back():
    rng = np.random.default_rng(2)
    stamps = START_NS + 2_000_000 * np.arange(300)
    stamps[250:] += 700_000
    values = simulate(stamps, 1, rng)[1]
    filter_ = KalmanFilter(1, NOISE, JERK)
    covariance, steady = None, []
    for k, (stamp, row) in enumerate(zip(stamps.tolist(), values)):
        filter_.append(stamp, row)
        if k:
            interval = 1e-9 * (stamps[k] - stamps[k - 1])
            covariance = gains_of_step(covariance, interval, DENSITY).covariance
        else:
            covariance = filter_._covariance
        np.testing.assert_allclose(filter_._covariance, covariance, rtol=1e-5)
        steady.append(filter_._steady is not None)
    assert steady.index(True) < 200
    assert all(steady[200:250])
    assert not any(steady[250:])


@pytest.mark.parametrize('delay', [0.0, 0.02])
def test_errors_are_those_that_the_riccati_equation_promises_and_no_other_jerk_does_better(delay):
    rng = np.random.default_rng(3)
    stamps = START_NS + 4_000_000 * np.arange(250)
    states, values = simulate(stamps, 400, rng)
    lag = round(delay / 4e-3)
    errors = {}
    for factor in (0.25, 1.0, 4.0):
        filter_ = KalmanFilter(400, NOISE, factor * JERK, delay)
        squares = []
        for k, (stamp, row) in enumerate(zip(stamps.tolist(), values)):
            filter_.append(stamp, row)
            if k > 150 and k % 10 == 0:
                found = filter_.evaluate_at(int(stamps[k - lag]))
                squares.append((found - states[k - lag]) ** 2)
        errors[factor] = np.sqrt(np.mean(squares, axis=(0, 2)))
    assert (errors[1.0] < errors[0.25]).all()
    assert (errors[1.0] < errors[4.0]).all()
    promised = NOISE * np.sqrt(np.diag(steady_gains(4e-3, DENSITY).covariance))
    if delay:
        assert (errors[1.0][1:] < 0.7 * promised[1:]).all()
    else:
        np.testing.assert_allclose(errors[1.0], promised, rtol=SAMPLING)


def test_nan_costs_its_own_channel_until_it_has_settled():
    stamps = START_NS + 4_000_000 * np.arange(200)
    values = simulate(stamps, 2, np.random.default_rng(4))[1]

    def run(rows):
        filter_ = KalmanFilter(2, NOISE, JERK)
        return np.array([step(filter_, int(t), row) for t, row in zip(stamps, rows)])

    clean = run(values)
    values[100, 0] = np.nan
    dirty = run(values)
    np.testing.assert_array_equal(dirty[:, :, 1], clean[:, :, 1])
    unknown = np.flatnonzero(np.isnan(dirty[100:, 0, 0]))
    np.testing.assert_array_equal(unknown, np.arange(unknown.size))
    settled = 100 + unknown.size
    # SETTLING times (interval / density)^(1/6), and the sample that was lost.
    assert unknown.size == int(np.ceil(SETTLING * (4e-3 / DENSITY) ** (1 / 6) / 4e-3)) + 1
    left = 0.05 * np.nanstd(clean[:, :, 0], axis=0)
    assert (np.abs(dirty[settled + 1 :, :, 0] - clean[settled + 1 :, :, 0]) < left).all()


def test_a_gap_beyond_the_settling_time_starts_anew():
    stamps = START_NS + 4_000_000 * np.arange(200)
    stamps[100:] += 500_000_000
    values = np.ones((200, 1))
    filter_ = KalmanFilter(1, NOISE, JERK)
    known = [np.isfinite(step(filter_, int(t), x)).all() for t, x in zip(stamps, values)]
    first = known.index(True)
    np.testing.assert_array_equal(known[100:], known[:100])
    assert first > 5
