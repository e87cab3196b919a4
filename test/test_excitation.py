# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Fourier motions, the condition number of their equations with its gradient, the search."""

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation import EquationBuilder, EquationChoice, Robot, SampleBatch
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.excitation.excitation_regressor import ExcitationRegressor
from inertial_estimation.identification.excitation.search import (
    ExcitationSearch,
    FourierBasis,
    FourierMotion,
    descend,
)
from inertial_estimation.identification.unknowns import OF_A_JOINT
from inertial_estimation.model.joint_limits import joint_limits

STEP, DIFFERENCED = 1e-6, 1e-7
"""Square of the step, and round-off over it, at slopes of order 0.01 to ten."""
ROUND_OFF = 1e-8  # singular values of two ways to the same equations
EXACT = 1e-12  # sums of a dozen numbers of order one
BETTER = 2.0  # random starts are a few times worse than what the search makes of them
BASIS = FourierBasis(6.0, 3)
SHOULDER = {'lower': -1.0, 'upper': 2.0, 'velocity': 2.0}


def test_motion_is_the_formula_of_s_with_its_rates(rng):
    motion = FourierMotion(BASIS, ('a', 'b'), rng.normal(size=(2, BASIS.size)))
    t, w = 1.3, 2 * np.pi / BASIS.period * np.arange(1, 4)
    a, b = motion.coefficients[0, :3], motion.coefficients[0, 3:6]
    expected = motion.coefficients[0, -1] + np.sum(a / w * np.sin(w * t) - b / w * np.cos(w * t))
    np.testing.assert_allclose(motion.at(np.array([t]))[0, 0, 0], expected, atol=EXACT)
    t, step = rng.uniform(0.0, 6.0, 20), 1e-5
    slopes = (motion.at(t + step) - motion.at(t - step)) / (2 * step)
    np.testing.assert_allclose(motion.at(t)[1:], slopes[:2], atol=1e-8)
    # From rest to rest.
    rest = BASIS.at_rest()
    np.testing.assert_allclose(rest.T @ rest, np.eye(BASIS.size - 2), atol=EXACT)
    motion = FourierMotion(BASIS, ('a',), rng.normal(size=(1, BASIS.size - 2)) @ rest.T)
    begin, end = np.swapaxes(motion.at(np.array([0.0, BASIS.period])), 0, 1)
    np.testing.assert_allclose(begin[1:], 0.0, atol=EXACT)
    np.testing.assert_allclose(end, begin, atol=10 * EXACT)


@pytest.mark.parametrize('n', [9, 20, 40])
def test_overshoot_between_samples_is_bounded_tightly(rng, n):
    coefficients = rng.normal(size=(300, BASIS.size))
    few, dense = (
        np.abs(coefficients @ BASIS.matrices(BASIS.times(k))[0].T).max(axis=1) for k in (n, 2000)
    )
    share = (dense / few).max()
    assert share <= BASIS.overshoot(n)
    assert share - 1.0 > 0.1 * (BASIS.overshoot(n) - 1.0)


def test_descent_stays_where_the_function_is_finite():
    """A narrow valley beside a wall: least at (1, 1) [Rosenbrock]."""

    def valley(x):
        u, bent = x[0], x[1] - x[0] ** 2
        if u < -1.3:
            return np.inf, np.zeros(2)
        slopes = np.array([-2.0 * (1.0 - u) - 400.0 * bent * u, 200.0 * bent])
        return (1.0 - u) ** 2 + 100.0 * bent**2, slopes

    found = descend(valley, np.array([-1.2, 1.0]), np.eye(2), lambda: False)
    np.testing.assert_allclose(found, 1.0, atol=1e-2)
    once = descend(valley, np.array([-1.2, 1.0]), np.eye(2), lambda: True)
    assert valley(found)[0] < 1e-4 < valley(once)[0] < valley(np.array([-1.2, 1.0]))[0]


@pytest.fixture
def arm():
    """Return a fixed arm with a revolute, a continuous and a prismatic joint, not cut."""
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), ft_sensors=(), fixed_link='base')


@pytest.mark.parametrize('cut', [False, True])
def test_equations_are_those_that_logs_are_fitted_to(arm, arm_with_wrist_sensor, rng, cut):
    robot = arm_with_wrist_sensor if cut else arm
    efforts = ('shoulder', 'lift') if cut else arm.joint_names
    q, v, a = states = rng.normal(size=(3, 30, 3))
    none, readings = np.zeros((len(q), 0, 3)), np.zeros((len(q), len(robot.ft_sensors), 6))
    samples = SampleBatch(
        np.arange(len(q)), q, v, a, none, none, none, readings, efforts=np.zeros((len(q), 3))
    )
    choice = EquationChoice(wrenches=cut, efforts=efforts, friction=OF_A_JOINT)
    equations = EquationBuilder(robot, choice).equations(samples)
    found = ExcitationRegressor(robot, efforts=efforts)
    expected = [
        np.linalg.cond(np.vstack([kind.Y for kind in rows.values()])[:, one.base.independent])
        for rows, one in zip(equations, found.submodels, strict=True)
    ]
    np.testing.assert_allclose(found.conditions(states), expected, rtol=ROUND_OFF)


def test_without_efforts_only_links_beyond_a_sensor_count(arm, arm_with_wrist_sensor):
    found = ExcitationRegressor(arm_with_wrist_sensor, efforts=())
    assert [(one.name, one.base.rank) for one in found.submodels] == [('tool', 10)]
    with pytest.raises(ModelError):
        ExcitationRegressor(arm, efforts=())


@pytest.mark.parametrize('efforts', [None, ('elbow',)])
def test_slopes_of_the_bound_are_slopes(arm_with_wrist_sensor, rng, efforts):
    regressor = ExcitationRegressor(arm_with_wrist_sensor, efforts=efforts)
    states, widths = rng.normal(size=(3, 30, 3)), np.array([0.3, 0.5, 0.7])
    _, found = regressor.bound(states, 6.0, widths)
    for which, k, j in [(0, 0, 0), (0, 20, 2), (1, 7, 1), (1, 29, 0), (2, 7, 1), (2, 20, 2)]:
        bounds = []
        for sign in (1, -1):
            moved = states.copy()
            moved[which, k, j] += sign * STEP
            bounds.append(regressor.bound(moved, 6.0, widths)[0])
        slope = (bounds[0] - bounds[1]) / (2 * STEP)
        np.testing.assert_allclose(found[which, k, j], slope, atol=DIFFERENCED)
    assert np.abs(found).max() > 100 * DIFFERENCED


def test_search_keeps_within_limits_and_gets_better(arm):
    limits = joint_limits(arm, {'shoulder': SHOULDER}, acceleration=4.0)
    search, dense = ExcitationSearch(ExcitationRegressor(arm), limits, BASIS), BASIS.times(3001)
    start, runs = (
        search.motion(search.random_start(np.random.default_rng(0))),
        search.run(starts=3),
    )
    at_start = max(search.regressor.conditions(start.at(dense)))
    for motion in (start, *(found.motion for found in runs)):
        q, v, a = motion.at(dense)
        assert (q > limits.lower).all() and (q < limits.upper).all()
        assert (np.abs(v) < limits.velocity).all() and (np.abs(a) < limits.acceleration).all()
        np.testing.assert_allclose(motion.at(np.zeros(1))[1:], 0.0, atol=EXACT)
    for found in runs:
        assert found.complete and found.condition < at_start / BETTER
        conditions = search.regressor.conditions(found.motion.at(dense))
        assert max(conditions) == pytest.approx(found.condition, rel=1e-2)
    assert runs[0].condition <= runs[1].condition <= runs[2].condition
    # The seed decides.
    one, same, other = (search.run(starts=1, seed=seed)[0].motion for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.coefficients, same.coefficients)
    assert not np.array_equal(one.coefficients, other.coefficients)
