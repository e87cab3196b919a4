# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The adaptive window against its definition: the longest window all of whose samples fit.

Not covered: what all filters have in common (test_derivatives.py), and which band suits a robot.
"""

import numpy as np
import pytest

from inertial_estimation.signals.adaptive_window import (
    GROWTH,
    LINE,
    PARABOLA,
    SPARE,
    AdaptiveWindowFilter,
)

START_NS = 1_457_614_036_659_765_005
WINDOW, BAND = 0.1, 1e-4
MS = 1_000_000
# Of a fit over 5 ms to values of order one: eps / (5 ms)^2, with some room.
ROUND_OFF = 1e-9


def regular_stamps(n, period_ns=2 * MS):
    return START_NS + period_ns * np.arange(n)


def jittering_stamps(n):
    return START_NS + np.cumsum(np.random.default_rng(7).integers(MS, 3 * MS, n))


def fill(stamps, values, **options):
    filter_ = AdaptiveWindowFilter(values.shape[1], WINDOW, BAND, **options)
    for stamp, row in zip(stamps.tolist(), values):
        filter_.append(stamp, row)
    return filter_


def by_definition(times, values, degree):
    """Return derivatives at time 0 and the length of the longest window that fits, by numpy."""
    nearest = np.argsort(np.abs(times), kind='stable')
    size, found = degree + 1 + SPARE[degree], None
    while True:
        size = min(size, len(times))
        rows = np.sort(nearest[:size])
        t, y = times[rows], values[rows]
        fit = np.polynomial.Polynomial.fit(t, y, degree)
        fits = np.abs(fit(t) - y).max() <= BAND
        if fits or found is None:
            at_zero = [fit(0.0), fit.deriv(1)(0.0), fit.deriv(2)(0.0)]
            found = at_zero[degree], t[-1] - t[0]
        if not fits or size == len(times):
            return found
        size = max(size + 1, int(GROWTH * size))


@pytest.mark.parametrize('lag_ms', [0, 20, 33])
@pytest.mark.parametrize('stamps', [regular_stamps(120), jittering_stamps(120)])
def test_it_is_the_longest_window_that_fits(stamps, lag_ms):
    rng = np.random.default_rng(0)
    t = 1e-9 * (stamps - stamps[0])[:, None]
    speeds = np.array([0.0, 1.0, 5.0, 30.0])
    values = 0.05 * np.sin(speeds * t + speeds) + BAND * rng.uniform(-0.7, 0.7, (120, 4))
    filter_ = fill(stamps, values)
    instant = int(stamps[-1]) - lag_ms * MS
    fits, lengths = filter_.fit_at(instant)
    inside = stamps >= stamps[-1] - round(1e9 * WINDOW)
    for degree in (LINE, PARABOLA):
        for channel in range(4):
            wanted, length = by_definition(
                1e-9 * (stamps[inside] - instant), values[inside, channel], degree
            )
            assert fits[degree, channel] == pytest.approx(wanted, rel=1e-6)
            assert lengths[degree - 1, channel] == pytest.approx(length)
    # At rest as long as can be, shorter the quicker the motion.
    assert lengths[0, 0] == pytest.approx(1e-9 * (stamps[-1] - stamps[inside][0]))
    assert lengths[0, 3] < 0.5 * lengths[0, 0]
    assert (lengths[1] >= lengths[0] - 1e-12).all()


@pytest.mark.parametrize('stamps', [regular_stamps(120), jittering_stamps(120)])
def test_lines_and_parabolas_are_differentiated_exactly(stamps):
    t = 1e-9 * (stamps - stamps[-1])[:, None]
    filter_ = fill(stamps, np.hstack([1.0 + 2.0 * t, 0.3 - 0.5 * t + 3.0 * t**2]))
    line, parabola = filter_.evaluate().T
    np.testing.assert_allclose(line, [2.0, 0.0], atol=1e3 * ROUND_OFF)
    assert parabola[1] == pytest.approx(6.0, abs=1e6 * ROUND_OFF)
    # The slope is that of the middle of the line's window.
    length = filter_.fit_at(int(stamps[-1]))[1][0, 1]
    assert (-0.5 - parabola[0]) / 6.0 == pytest.approx(0.5 * length, rel=0.1)


def test_the_window_grows_at_rest_and_shrinks_in_motion():
    stamps = regular_stamps(1500)
    t = 1e-9 * (stamps - stamps[0])
    rng = np.random.default_rng(1)
    moving = (t > 1.0) & (t < 2.0)
    values = np.where(moving, 0.1 * (1.0 - np.cos(2 * np.pi * (t - 1.0))), 0.0)
    values = (values + BAND * rng.uniform(-0.6, 0.6, t.size))[:, None]
    filter_ = AdaptiveWindowFilter(1, WINDOW, BAND)
    lengths = np.full((1500, 2), np.nan)
    slopes = np.full(1500, np.nan)
    for k, (stamp, row) in enumerate(zip(stamps.tolist(), values)):
        filter_.append(stamp, row)
        fits, found = filter_.fit_at(stamp)
        lengths[k], slopes[k] = found[:, 0], fits[1, 0]
    rest = (t > 0.2) & (t < 1.0) | (t > 2.2)
    np.testing.assert_allclose(lengths[rest], WINDOW)
    accelerating = (t > 1.15) & (t < 1.2)
    assert (lengths[accelerating] < WINDOW * np.array([0.3, 0.9])).all()
    # A line all of whose samples lie within the band of it has no steeper error than this.
    assert np.abs(slopes[rest]).max() < 2.0 * 2.0 * BAND / WINDOW


def test_a_value_beyond_the_band_ends_the_window_before_it():
    stamps = regular_stamps(120)
    values = np.zeros((120, 2))
    values[100, 0] = 3.0 * BAND
    length = fill(stamps, values).fit_at(int(stamps[-1]))[1]
    assert length[0, 0] <= 1e-9 * (stamps[-1] - stamps[101]) + 1e-12
    assert length[0, 1] == pytest.approx(WINDOW)
