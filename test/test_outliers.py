# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Outliers in time: the least trimmed fit, and samples with unknown wrenches.

Not covered: whole logs, see test_disturbed.py.
"""

import numpy as np
import pytest
from robots import two_link_urdf

from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.outliers import (
    MIN_WINDOW_SHARE,
    WINDOW,
    Observed,
    Reference,
    WindowRows,
    find_outliers,
    least_trimmed,
    windowed_size,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

UNKNOWNS, WINDOWS, ROWS = 8, 60, 20
NOISE = {'fine': 0.05, 'coarse': 2.0}
# Half of 1200 rows of the finer kind for 8 unknowns: five deviations of an estimate.
CLOSE = 5 * NOISE['fine'] / np.sqrt(WINDOWS * ROWS / 2)
# Of the median window, each of 20 rows.
SPREAD = 0.15
ROUND_OFF = 1e-12


def prior_of(x, weight):
    """Return rows that draw to a vector."""
    return Information.of(weight * np.eye(UNKNOWNS), weight * x)


@pytest.fixture
def case(rng):
    """Return rows of two kinds of which some windows are disturbed alike, and the truth."""
    truth, pushed = rng.normal(size=UNKNOWNS), rng.normal(size=UNKNOWNS)

    def build(share, lever=1.0):
        """In what is disturbed another truth holds, and more moves: the worst that can be."""
        bad = np.zeros(WINDOWS, dtype=bool)
        while bad.mean() < share:
            start = rng.integers(WINDOWS)
            bad[start : start + min(3, round(share * WINDOWS) - bad.sum())] = True
        window = np.repeat(np.arange(WINDOWS), ROWS)
        kinds = {}
        for kind, noise in NOISE.items():
            Y = rng.normal(size=(len(window), UNKNOWNS))
            Y[bad[window]] *= lever
            y = Y @ truth + noise * rng.normal(size=len(window))
            y += np.where(bad[window], Y @ pushed, 0.0)
            kinds[kind] = WindowRows(np.column_stack([Y, y]), window)
        return kinds, bad

    return build, truth


@pytest.mark.parametrize('share', [0.0, 0.2, 0.45])
@pytest.mark.parametrize('off', [0.1, 3.0])
@pytest.mark.parametrize('lever', [1.0, 4.0])
def test_what_the_better_half_says_is_found(case, rng, share, off, lever):
    """
    Whether the description is about right or far off.

    A fit to all windows follows the disturbed ones where the lever is long, and what agrees with
    it is what is disturbed.
    """
    build, truth = case
    kinds, bad = build(share, lever)
    wrong = truth + off * rng.normal(size=UNKNOWNS)
    found = least_trimmed(kinds, WINDOWS, prior_of(wrong, 1e-3), prior_of(wrong, 1e3))
    assert not (found.kept & bad).any()
    assert found.kept.sum() == WINDOWS // 2
    np.testing.assert_allclose(found.x, truth, atol=CLOSE)
    if share < 0.3:
        # Beyond that the median window is among the worst of the clean ones.
        for kind, noise in NOISE.items():
            assert found.noise[kind] == pytest.approx(noise, rel=SPREAD)


def test_windows_and_kinds_without_rows_do_not_count(case):
    build, truth = case
    kinds, _ = build(0.2)
    moved = {kind: WindowRows(one.system, 2 * one.window) for kind, one in kinds.items()}
    prior = prior_of(truth, 1e-3)
    plain, other = least_trimmed(kinds, WINDOWS, prior, prior), least_trimmed(
        moved, 2 * WINDOWS, prior, prior
    )  # fmt: skip
    np.testing.assert_allclose(plain.x, other.x, atol=ROUND_OFF)
    assert not other.kept[1::2].any()


def test_the_edges_of_a_push_are_where_they_are():
    """An instant is off if the windows on both sides are."""
    stamps = np.arange(0, 6_000_000_000, 10_000_000)
    pushed = (stamps >= 2_000_000_000) & (stamps < 4_000_000_000)
    off = windowed_size(stamps, np.where(pushed, 30.0, 0.0)) > 3.0
    # A hundredth of a window of squares is as much as this limit.
    early = np.flatnonzero(off != pushed)
    assert len(early) <= 2
    np.testing.assert_allclose(windowed_size(stamps, np.ones(len(stamps))), 1.0)


def test_few_rows_do_not_make_a_window():
    stamps = np.arange(0, 2_000_000_000, 10_000_000)
    left = np.full(len(stamps), np.nan)
    left[100] = 1.0
    size = windowed_size(stamps, left)
    rows = round(WINDOW / 0.01) + 1
    assert size.max() == pytest.approx(np.sqrt(1.0 / (MIN_WINDOW_SHARE * rows)))
    assert np.isfinite(size).all()


RATE = 100
PUSHED = slice(400, 500)


@pytest.fixture
def pushed(rng):
    """Return what builds rows, a log at rest with one push, and what is true of it."""
    robot = Robot.from_urdf(two_link_urdf(), fixed_link='body')
    builder = EquationBuilder(robot, EquationChoice(wrenches=False, efforts=('elbow',)))
    n = 1000
    zero, empty = np.zeros((n, 1)), np.zeros((n, 0, 3))
    stamps = np.arange(n) * (10**9 // RATE)
    efforts = rng.normal(size=(n, 1))
    efforts[PUSHED] += 50.0
    samples = SampleBatch(
        stamps, zero, zero + 1.0, zero, empty, empty, empty, np.zeros((n, 0, 6)), efforts=efforts
    )
    (rows,) = builder.equations(samples)
    # Right-hand sides without the weight that holds the arm.
    samples.efforts[:, 0] += rows['effort elbow'].Y @ robot.parameters.ravel()
    return (
        builder,
        Observed(samples, {}, np.ones((n, 1), dtype=bool), np.zeros((n, 0), dtype=bool)),
        robot,
    )


@pytest.mark.parametrize('reach', [0.0, 0.3])
def test_what_is_near_a_push_is_suspect_too(pushed, reach):
    builder, observed, robot = pushed
    references = Reference(robot.parameters.ravel(), {'effort elbow': 1.0})
    at = np.flatnonzero(find_outliers(builder, observed, [references], 5.0, reach).at[:, 0])
    margin = round(reach * RATE)
    # A window is off before few of its rows are; how many, the push decides.
    spread = round(WINDOW * RATE / 4)
    assert abs(at[0] - (PUSHED.start - margin)) <= spread
    assert abs(at[-1] - (PUSHED.stop - 1 + margin)) <= spread
    np.testing.assert_array_equal(np.diff(at), 1)
    assert len(at) >= PUSHED.stop - PUSHED.start + 2 * margin - 2 * spread


def test_the_reach_is_that_long(pushed):
    builder, observed, robot = pushed
    references = Reference(robot.parameters.ravel(), {'effort elbow': 1.0})
    counts = [
        int(find_outliers(builder, observed, [references], 5.0, reach).at.sum())
        for reach in (0.0, 0.3)
    ]
    assert counts[1] - counts[0] == 2 * round(0.3 * RATE)
