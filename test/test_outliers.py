# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Outliers in time: the least trimmed fit, and samples with unknown wrenches.

Not covered: whole logs, see test_disturbed.py.
"""

import numpy as np
import pytest
from robots import two_link_urdf
from simulated_arm import swinging

from inertial_estimation.identification.equations.builder import (
    EquationBuilder,
    EquationChoice,
    Observed,
)
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.outliers import (
    WINDOW_NS,
    Reference,
    WindowEquations,
    find_outliers,
    least_trimmed,
)
from inertial_estimation.model.robot import Robot

UNKNOWNS, WINDOWS, EQUATIONS = 8, 60, 20
NOISE = {'fine': 0.05, 'coarse': 2.0}
# Half of 1200 equations of the finer kind for 8 unknowns: five deviations of an estimate.
CLOSE = 5 * NOISE['fine'] / np.sqrt(WINDOWS * EQUATIONS / 2)
# Of the median window, each of 20 equations.
SPREAD = 0.15


def regressors(rng, levers=1.0):
    """Return the window of each equation, and regressors."""
    window = np.repeat(np.arange(WINDOWS), EQUATIONS)
    return window, rng.normal(size=(len(window), UNKNOWNS)) * np.resize(levers, WINDOWS)[
        window, None
    ]


def prior_of(x, weight):
    return Information.of(weight * np.eye(UNKNOWNS), weight * x)


@pytest.mark.parametrize('share', [0.0, 0.2, 0.45])
@pytest.mark.parametrize('off', [0.1, 3.0])
@pytest.mark.parametrize('lever', [1.0, 4.0])
def test_cleaner_half_is_found(rng, share, off, lever):
    """
    All disturbed windows follow another truth, the worst case, and have larger regressors.

    A fit to all windows then agrees with them and not with the clean ones.
    """
    truth, pushed = rng.normal(size=(2, UNKNOWNS))
    bad = np.zeros(WINDOWS, dtype=bool)
    while bad.mean() < share:
        start = rng.integers(WINDOWS)
        bad[start : start + min(3, round(share * WINDOWS) - bad.sum())] = True
    kinds = {}
    for kind, noise in NOISE.items():
        window, Y = regressors(rng, np.where(bad, lever, 1.0))
        y = Y @ truth + noise * rng.normal(size=len(window)) + bad[window] * (Y @ pushed)
        kinds[kind] = WindowEquations(np.column_stack([Y, y]), window)
    wrong = truth + off * rng.normal(size=UNKNOWNS)
    prior = prior_of(wrong, 1e-3)
    found = least_trimmed(kinds, WINDOWS, prior, wrong)
    assert not (found.kept & bad).any()
    assert found.kept.sum() == WINDOWS // 2
    np.testing.assert_allclose(found.x, truth, atol=CLOSE)
    if share < 0.3:
        # Beyond that the median window is among the worst of the clean ones.
        assert found.noise == pytest.approx(NOISE, rel=SPREAD)
    # Windows without equations do not count.
    moved = {kind: WindowEquations(one.system, 2 * one.window) for kind, one in kinds.items()}
    other = least_trimmed(moved, 2 * WINDOWS, prior, wrong)
    np.testing.assert_allclose(other.x, found.x, atol=1e-12)


def test_objective_weighs_noise_of_the_half_against_the_prior(rng):
    (window, Y), wrong = regressors(rng), rng.normal(size=UNKNOWNS)
    kinds = {
        kind: WindowEquations(np.column_stack([Y, noise * rng.normal(size=len(window))]), window)
        for kind, noise in NOISE.items()
    }
    found = least_trimmed(kinds, WINDOWS, prior_of(wrong, 30.0), wrong)
    count = EQUATIONS * found.kept.sum()
    pull = 900.0 * np.sum((found.x - wrong) ** 2) / 2
    assert pull > 0.01 * count
    total = count * sum(np.log(level) for level in found.noise.values()) + pull
    assert found.objective == pytest.approx(total / (2 * count), rel=1e-9)


@pytest.mark.parametrize('nearer', [0, 1])
def test_prior_decides_between_equal_halves(rng, nearer):
    truths, (window, Y) = rng.normal(size=(2, UNKNOWNS)), regressors(rng)
    y = np.einsum('ni,ni->n', Y, truths[window % 2]) + NOISE['fine'] * rng.normal(size=len(window))
    kinds = {'one': WindowEquations(np.column_stack([Y, y]), window)}
    found = least_trimmed(kinds, WINDOWS, prior_of(truths[nearer], 30.0), truths[nearer])
    np.testing.assert_allclose(found.x, truths[nearer], atol=CLOSE)


RATE, PUSHED = 100, slice(400, 500)


def test_outliers_are_the_push_and_its_margin(rng):
    robot = Robot.from_urdf(two_link_urdf(), fixed_link='body')
    builder = EquationBuilder(robot, EquationChoice(wrenches=False, efforts=('elbow',)))
    samples = swinging(rng, 10.0, RATE, n_joints=1)
    (rows,) = builder.equations(samples)
    efforts = rng.normal(size=(len(samples), 1))
    efforts[PUSHED] += 50.0
    samples.efforts[:] = efforts + (rows['effort elbow'].Y @ robot.parameters.ravel())[:, None]
    observed = Observed(samples)
    references = [Reference(robot.parameters.ravel(), {'effort elbow': 1.0})]
    at, near = (
        np.flatnonzero(find_outliers(builder, observed, references, 5.0, reach)[0][:, 0])
        for reach in (0.0, 0.3)
    )
    # A window is off before few of its samples are.
    spread = round(WINDOW_NS * 1e-9 * RATE / 4)
    assert abs(at[0] - PUSHED.start) <= spread
    assert abs(at[-1] - (PUSHED.stop - 1)) <= spread
    np.testing.assert_array_equal(near, np.arange(at[0] - 30, at[-1] + 31))
