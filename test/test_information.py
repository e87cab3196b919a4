# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Reduced equations, noise of each kind of equation by reweighting, and priors of URDFs.

Not covered: speed.
"""

import numpy as np
import pytest

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.noise import MIN_RELATIVE_NOISE, noise_levels
from inertial_estimation.identification.priors import SMALLEST_RADIUS, widened
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.solvers.mass_points import composition
from inertial_estimation.model.inertia import consistency_margin, pseudo_inertia

ILL = 1e-9
"""Error over the largest unknown at condition 1e7; normal equations lose to 1e-2 there."""
LEVELS = {'force': 2.0, 'moment': 0.05, 'effort': 0.4}
COUNTS = {'force': 300, 'moment': 240, 'effort': 15}
N = 8
FIVE_SIGMA = 5.0
"""Of a standard deviation from f equations, which is known to 1 / sqrt(2 f)."""


def test_ill_conditioned_equations_keep_their_digits():
    """Products of integers below 2^53, so that the equations are exact; condition 1e7."""
    rng = np.random.default_rng(7)
    base = rng.integers(-(2**23), 2**23, size=(400, 5))
    Y = np.hstack([base, base + rng.integers(-1, 2, size=(400, 5))]).astype(float)
    assert np.linalg.cond(Y) > 1e7
    x = rng.integers(-9, 10, size=10).astype(float)
    y = Y @ x
    some, rest = Information.of(Y[:100], y[:100]), Information.of(Y[150:], y[150:])
    information = some.add(Y[100:150], y[100:150]).merge(rest)
    assert information.count == 400
    found = np.linalg.solve(information.R, information.rho)
    np.testing.assert_allclose(found, x, atol=ILL * np.abs(x).max())


@pytest.fixture
def kinds(rng):
    """Return equations of each kind with its noise; nothing depends on two more unknowns."""
    x, kinds = rng.normal(size=N), {}
    for kind, level in LEVELS.items():
        Y = rng.normal(size=(COUNTS[kind], N)) * level * 3.0
        y = Y @ x + level * rng.normal(size=len(Y))
        kinds[kind] = Information.of(np.pad(Y, ((0, 0), (0, 2))), y)
    return kinds


def test_noise_of_each_kind_is_found(kinds):
    found = noise_levels(kinds)
    assert found.notes == ()
    for kind, level in LEVELS.items():
        error = FIVE_SIGMA / np.sqrt(2.0 * (COUNTS[kind] - 1))
        assert found.deviations[kind] == pytest.approx(level, rel=error)
    # The merged equations are in units of their noise.
    x = RowSpace.of(found.information.R).solve(found.information.rho)
    freedom = sum(COUNTS.values()) - N
    assert found.information.squared_residual(x) == pytest.approx(freedom, rel=1e-4)


def test_units_of_a_kind_do_not_matter(kinds, rng):
    one, other = noise_levels(kinds), noise_levels(kinds | {'force': kinds['force'].scaled(1e3)})
    expected = one.deviations | {'force': 1e3 * one.deviations['force']}
    assert other.deviations == pytest.approx(expected, rel=1e-4)
    # Exact equations have the least noise, in the unit of what they measure.
    Y, x = rng.normal(size=(40, 4)), rng.normal(size=4)
    found = noise_levels({'exact': Information.of(Y, Y @ x)})
    size = np.sqrt(np.mean((Y @ x) ** 2))
    assert found.deviations['exact'] == pytest.approx(MIN_RELATIVE_NOISE * size)


def test_kind_of_too_few_equations_is_left_out(rng, kinds):
    few = Information.of(np.eye(N + 2)[N:], np.ones(2))
    with pytest.raises(ModelError) as error:
        noise_levels({'wrist': few})
    assert 'wrist' in str(error.value)
    found, without = noise_levels(kinds | {'wrist': few}), noise_levels(kinds)
    assert found.deviations == pytest.approx(without.deviations)
    assert found.information.count == without.information.count
    assert 'wrist' in found.notes[0]
    # With a prior the fit does not use them up.
    prior = Information.of(1e3 * np.eye(N + 2), np.zeros(N + 2))
    few = Information.of(rng.normal(size=(3, N + 2)), rng.normal(size=3))
    assert 'wrist' in noise_levels(kinds | {'wrist': few}, prior=prior).deviations


def test_prior_keeps_short_logs_from_fitting_their_noise(rng):
    """30 equations of 20 unknowns that a prior knows but for a little."""
    prior, truth = Information.of(np.eye(20) / 0.01, np.zeros(20)), {'force': 2.0, 'moment': 0.5}
    squares = dict.fromkeys(truth, 0.0)
    for _ in range(60):
        x, kinds = 0.01 * rng.normal(size=20), {}
        for kind, level in truth.items():
            Y = rng.normal(size=(15, 20))
            kinds[kind] = Information.of(Y, Y @ x + level * rng.normal(size=15))
        for kind, level in noise_levels(kinds, prior=prior).deviations.items():
            squares[kind] += level**2 / 60
    # 60 estimates from 15 equations each: known to 1 / sqrt(2 * 900), times five.
    assert np.sqrt(list(squares.values())) == pytest.approx(list(truth.values()), rel=0.12)


def test_wrong_prior_is_not_taken_for_noise(rng):
    prior = Information.of(15.0 * np.eye(10), np.zeros(10))
    Y = rng.normal(size=(200, 10))
    y = Y.sum(axis=1)
    exact = noise_levels({'all': Information.of(Y, y)}, prior=prior)
    assert exact.deviations['all'] <= 2.0 * MIN_RELATIVE_NOISE * np.sqrt(10.0)
    noisy = noise_levels({'all': Information.of(Y, y + 0.1 * rng.normal(size=200))}, prior=prior)
    assert noisy.deviations['all'] == pytest.approx(0.1, rel=FIVE_SIGMA / np.sqrt(2.0 * 190))


# ---- Priors, widened until they are strictly consistent

BODY = np.array([2.0, 0.2, 0.0, -0.1, 0.06, 0.001, 0.08, 0.0, 0.0, 0.06])
BALL = SMALLEST_RADIUS**2 / 5
ROUND_OFF = 1e-12  # parallel axes to and fro
POINT, STICK = (
    composition(np.array(points, dtype=float)) @ np.full(len(points), 0.5)
    for points in ([(1, 2, 3)], [(0, 3, 1), (0, 3, 2)])
)
BROKEN = np.array([1.0, 0, 0, 0, 0.052, 0, 0.03, 0, 0, 0.02])  # ixx > Iyy + Izz


@pytest.mark.parametrize(
    ('parameters', 'moments'),
    [
        (POINT, [0.5 * BALL] * 3),
        # Two points a metre apart: 2 * 0.5 kg * (0.5 m)^2 along their line.
        (STICK, [BALL, BALL, 0.25]),
        (BROKEN, [BALL, 0.021, 0.031]),
    ],
    ids=['point', 'stick', 'triangle inequality'],
)
def test_second_moments_are_raised_to_a_small_ball(parameters, moments):
    found, changed = widened('ab', np.array([BODY, parameters]))
    assert changed == ('b',)
    assert (consistency_margin(found) > 0).all()
    np.testing.assert_array_equal(found[0], BODY)
    np.testing.assert_array_equal(found[1, :4], parameters[:4])
    J = pseudo_inertia(found[1])
    central = J[:3, :3] - np.outer(J[:3, 3], J[:3, 3]) / J[3, 3]
    np.testing.assert_allclose(np.linalg.eigvalsh(central), moments, atol=ROUND_OFF)


def test_frames_get_a_mass():
    """As URDFs describe frames: no mass, and at most a trace of inertia."""
    trace = np.array([0, 0, 0, 0, 5e-8, 0, 5e-8, 0, 0, 5e-8])
    found, changed = widened('ab', np.array([trace, np.zeros(10)]))
    assert changed == ('a', 'b') and (found[:, 0] > 0).all()
    np.testing.assert_allclose(found[0, 4:], trace[4:], atol=1e-6 * 5e-8)
    for impossible in (1e5 * trace, np.where(np.arange(10) == 4, -0.1, BODY), np.nan * BODY):
        with pytest.raises(ModelError) as error:
            widened(['arm', 'leg'], np.array([BODY, impossible]))
        assert 'leg' in str(error.value)
