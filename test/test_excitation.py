# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The condition number of a motion, its gradient, and the search for better ones.

Not covered: the command around it and the WAM, see `test_excite`.
"""

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.errors import ModelError, NameNotFound
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.excitation.excitation_regressor import ExcitationRegressor
from inertial_estimation.identification.excitation.fourier import FourierBasis
from inertial_estimation.identification.excitation.search import ExcitationSearch
from inertial_estimation.model.identifiable import Rows, null_space
from inertial_estimation.model.joint_limits import joint_limits
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

STEP = 1e-6
# Square of the step, and round-off over it, at slopes of order 0.01.
DIFFERENCED = 1e-7
# Singular values of two ways to the same rows.
ROUND_OFF = 1e-8
# Random starts are a few times worse than what the search makes of them.
BETTER = 2.0
BASIS = FourierBasis(6.0, 3)
LIMITS = {'shoulder': {'lower': -1.0, 'upper': 2.0, 'velocity': 2.0}}


@pytest.fixture
def arm():
    """Return a fixed arm with a revolute, a continuous and a prismatic joint, not cut."""
    urdf = arm_with_wrist_sensor_urdf()
    return Robot.from_urdf(urdf, ft_sensors=(), fixed_link='base')


@pytest.fixture
def regressor(arm):
    return ExcitationRegressor(arm, JointModel())


@pytest.fixture
def cut_arm():
    """Return the same arm, cut by the FT sensor at its wrist."""
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')


@pytest.fixture(params=['efforts', 'wrenches too', 'wrenches, one effort'])
def any_regressor(request, arm, cut_arm):
    """Return a regressor over efforts, over wrenches, in another order of the joints."""
    order = ('lift', 'shoulder', 'elbow')
    if request.param == 'efforts':
        return ExcitationRegressor(arm, JointModel())
    efforts = None if request.param == 'wrenches too' else ['elbow']
    return ExcitationRegressor(cut_arm, JointModel(), efforts, order)


def search(regressor, **options):
    limits = joint_limits(regressor.robot, LIMITS, acceleration=4.0)
    return ExcitationSearch(regressor, limits, BASIS, **options)


def states(rng, n=30):
    return rng.normal(size=(3, n, 3))


def test_without_friction_the_base_is_that_of_structure(arm):
    found = ExcitationRegressor(arm, JointModel(terms=()))
    null = null_space(arm, arm.submodels[0], Rows.TORQUES)
    assert found.submodels[0].base.rank == 10 * len(arm.links) - null.shape[1]
    np.testing.assert_allclose(found.submodels[0].base.grouping @ null, 0.0, atol=ROUND_OFF)


def test_rows_are_those_that_logs_are_fitted_to(arm, regressor, rng):
    q, v, a = motion = states(rng)
    none = np.zeros((len(q), 0, 3))
    samples = SampleBatch(
        np.arange(len(q)), q, v, a, none, none, none, np.zeros((len(q), 0, 6)),
        efforts=np.zeros((len(q), 3)),
    )  # fmt: skip
    choice = EquationChoice(wrenches=False, efforts=arm.joint_names, joint=JointModel())
    builder = EquationBuilder(arm, choice)
    assert builder.blocks[0].unknowns == regressor.unknowns
    rows = builder.equations(samples)[0]
    stacked = np.vstack([rows[f'effort {name}'].Y for name in arm.joint_names])
    wanted = np.linalg.cond(stacked[:, regressor.submodels[0].kept])
    np.testing.assert_allclose(regressor.condition(motion), wanted, rtol=ROUND_OFF)


def test_rows_of_a_cut_arm_are_those_that_logs_are_fitted_to(cut_arm, rng):
    q, v, a = motion = states(rng)
    none = np.zeros((len(q), 0, 3))
    samples = SampleBatch(
        np.arange(len(q)), q, v, a, none, none, none, np.zeros((len(q), 1, 6)),
        efforts=np.zeros((len(q), 3)),
    )  # fmt: skip
    efforts = ('shoulder', 'lift')
    builder = EquationBuilder(cut_arm, EquationChoice(efforts=efforts, joint=JointModel()))
    found = ExcitationRegressor(cut_arm, JointModel(), efforts)
    assert [one.kinds for one in found.submodels] == ['2 efforts', 'wrench']
    wanted = []
    for rows, one in zip(builder.equations(samples), found.submodels, strict=True):
        stacked = np.vstack([kind.Y for kind in rows.values()])
        wanted.append(np.linalg.cond(stacked[:, one.base.independent]))
    np.testing.assert_allclose(found.conditions(motion), wanted, rtol=ROUND_OFF)
    assert found.condition(motion) == max(found.conditions(motion))
    turned = ExcitationRegressor(cut_arm, JointModel(), efforts, ('lift', 'elbow', 'shoulder'))
    again = turned.conditions(motion[..., [2, 1, 0]])
    np.testing.assert_allclose(again, wanted, rtol=ROUND_OFF)


def test_without_efforts_only_what_is_beyond_a_sensor_is_told(arm, cut_arm):
    found = ExcitationRegressor(cut_arm, JointModel(), ())
    assert [(one.name, one.base.rank) for one in found.submodels] == [('tool', 10)]
    with pytest.raises(ModelError):
        ExcitationRegressor(arm, JointModel(), ())
    with pytest.raises(NameNotFound, match='elbo'):
        ExcitationRegressor(arm, JointModel(), ['elbo'])


@pytest.mark.parametrize('which', range(3))
def test_slopes_are_slopes(any_regressor, rng, which):
    regressor = any_regressor
    motion, widths = states(rng), np.array([0.3, 0.5, 0.7])
    found = regressor.judge(motion, 6.0, widths).slopes[which]
    assert np.abs(found).max() > 100 * DIFFERENCED
    for k, j in [(0, 0), (7, 1), (20, 2), (29, 0)]:
        bounds = []
        for sign in (1, -1):
            moved = motion.copy()
            moved[which, k, j] += sign * STEP
            bounds.append(regressor.judge(moved, 6.0, widths).bound)
        np.testing.assert_allclose(
            found[k, j], (bounds[0] - bounds[1]) / (2 * STEP), atol=DIFFERENCED
        )


@pytest.mark.parametrize('sharpness', [2.0, 8.0, 64.0])
def test_the_bound_is_as_tight_as_is_said(regressor, rng, sharpness):
    found = regressor.judge(states(rng), sharpness, np.ones(3))
    over = found.bound - np.log(found.condition)
    assert 0.0 < over <= 2.0 / sharpness * np.log(regressor.rank)


@pytest.mark.parametrize('seed', range(3))
def test_search_keeps_within_limits_and_gets_better(regressor, seed):
    made = search(regressor, seed=seed, starts=1)
    (found,) = made.run()
    assert found.complete
    dense = BASIS.instants(3001)
    for motion in (found.start, found.motion):
        q, v, a = motion.at(dense)
        assert (q > made.limits.lower).all() and (q < made.limits.upper).all()
        assert (np.abs(v) < made.limits.velocity).all()
        assert (np.abs(a) < made.limits.acceleration).all()
        np.testing.assert_allclose(motion.at(np.zeros(1))[1:], 0.0, atol=1e-12)
    start, end = (regressor.condition(m.at(dense)) for m in (found.start, found.motion))
    assert end < start / BETTER


def test_the_seed_decides(regressor):
    one, same = (search(regressor, starts=2).run() for _ in range(2))
    other = search(regressor, starts=2, seed=1).run()
    assert one[0].condition <= one[1].condition
    np.testing.assert_array_equal(one[0].motion.coefficients, same[0].motion.coefficients)
    assert not np.array_equal(one[0].motion.coefficients, other[0].motion.coefficients)


def test_time_ends_the_search_with_something_within_limits(regressor):
    told = []
    made = search(
        regressor, starts=50, seconds=1e-6, progress=lambda what, done: told.append(done)
    )
    (found,) = made.run()
    assert not found.complete
    assert (np.abs(found.motion.at(BASIS.instants(1000))[1]) < made.limits.velocity).all()
    assert told[0] == 0.0 and told[-1] == 1.0
