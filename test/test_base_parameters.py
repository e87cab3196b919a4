# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Base parameters: which columns are kept, what is grouped with them, and the way back.

Not covered: the WAM and what the order of its columns does to conditioning, see `test_wam7`.
"""

import numpy as np
import pytest

from inertial_estimation.errors import InertialEstimationError, NameNotFound, ShapeError
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.base_parameters import (
    BaseParameters,
    conditioning_order,
    parse_combination,
    unexcited_directions,
)
from inertial_estimation.model.identifiable import (
    Rows,
    excitable,
    null_space,
    random_states,
)
from inertial_estimation.model.regressor import submodel_regressors

# Products of a few dozen numbers up to a hundred.
ROUND_OFF = 1e-11


@pytest.fixture
def submodel(nested_humanoid):
    return nested_humanoid.submodels[0]


@pytest.fixture
def names(nested_humanoid, submodel):
    return Unknowns(tuple(nested_humanoid.links[k].name for k in submodel.links)).names


@pytest.fixture
def base(nested_humanoid, submodel):
    return BaseParameters.of_null_space(null_space(nested_humanoid, submodel))


@pytest.fixture
def Y(nested_humanoid, submodel):
    samples = random_states(nested_humanoid, 40)
    return submodel_regressors(excitable(nested_humanoid), samples, [submodel])[0].wrench.reshape(
        -1, 10 * len(submodel.links)
    )


def test_kept_columns_and_groups_give_all_rows(base, Y, rng):
    x = rng.normal(size=Y.shape[1])
    np.testing.assert_allclose(Y[:, base.independent] @ base.of(x), Y @ x, atol=1e-9)
    np.testing.assert_array_equal(base.grouping[:, base.independent], np.eye(base.rank))


def test_structure_and_numbers_group_alike(base, Y):
    numeric = BaseParameters.of_regressor(Y)
    np.testing.assert_array_equal(numeric.independent, base.independent)
    np.testing.assert_allclose(numeric.grouping, base.grouping, atol=ROUND_OFF)


def test_triangles_group_as_their_rows_do(Y):
    triangle = Information.of(Y, np.zeros(len(Y))).R
    np.testing.assert_allclose(
        BaseParameters.of_regressor(triangle).grouping,
        BaseParameters.of_regressor(Y).grouping,
        atol=ROUND_OFF,
    )


def test_the_order_decides_what_is_kept(nested_humanoid, submodel, base):
    null = null_space(nested_humanoid, submodel)
    masses = list(range(0, len(null), 10))
    others = [k for k in conditioning_order(len(null) // 10) if k % 10]
    other = BaseParameters.of_null_space(null, masses + others)
    assert other.rank == base.rank
    assert set(other.independent) > set(masses)
    assert not set(base.independent) > set(masses)


def test_of_each_link_inertia_comes_first_and_mass_last():
    order = conditioning_order(2, 3)
    np.testing.assert_array_equal(order[:10], [4, 5, 7, 6, 8, 9, 1, 2, 3, 0])
    np.testing.assert_array_equal(order[19:], [10, 20, 21, 22])


def test_there_and_back_with_a_prior(base, rng):
    x, prior = rng.normal(size=(2, base.grouping.shape[1]))
    found = base.standard(base.of(x), prior)
    np.testing.assert_allclose(base.of(found), base.of(x), atol=ROUND_OFF)
    # What rows do not tell is the prior's.
    null = np.eye(len(x)) - base.basis() @ base.basis().T
    np.testing.assert_allclose(null @ found, null @ prior, atol=ROUND_OFF)
    np.testing.assert_allclose(base.standard(base.of(prior), prior), prior, atol=ROUND_OFF)


def test_poor_excitation_keeps_less_and_the_prior_gives_the_rest(
    nested_humanoid, submodel, base, Y, rng
):
    """Only gravity, slowly turned: no rotational inertia can be told."""
    samples = random_states(nested_humanoid, 40)
    for array in (samples.velocities, samples.accelerations):
        array[:] = 0.0
    samples.angular_velocities[:] = samples.angular_accelerations[:] = 0.0
    static = submodel_regressors(excitable(nested_humanoid), samples, [submodel])[0]
    rows = static.wrench.reshape(-1, Y.shape[1])
    poor = BaseParameters.of_regressor(rows)
    assert poor.rank < base.rank
    x, prior = rng.normal(size=(2, Y.shape[1]))
    found = poor.standard(poor.of(x), prior)
    np.testing.assert_allclose(rows @ found, rows @ x, atol=1e-9)
    inertias = found.reshape(-1, 10)[:, 4:]
    np.testing.assert_allclose(inertias, prior.reshape(-1, 10)[:, 4:], atol=ROUND_OFF)


def test_directions_that_were_not_excited_have_no_effect(Y):
    null = unexcited_directions(Y)
    assert null.shape[1] == Y.shape[1] - np.linalg.matrix_rank(Y)
    np.testing.assert_allclose(Y @ null, 0.0, atol=1e-9)


def test_a_higher_tolerance_keeps_less(Y):
    assert BaseParameters.of_regressor(Y, tolerance=0.3).rank < BaseParameters.of_regressor(Y).rank


def test_nothing_seen_is_nothing_kept():
    assert BaseParameters.of_regressor(np.zeros((3, 10))).rank == 0


def test_combinations_can_be_read_back(base, names):
    again = BaseParameters.parse(base.combinations(names), names)
    np.testing.assert_array_equal(again.independent, base.independent)
    # Nine digits are printed.
    np.testing.assert_allclose(again.grouping, base.grouping, rtol=1e-8, atol=1e-9)


def test_combinations_as_papers_write_them():
    assert parse_combination('L - 1.1 l + 0.3 (m_3 + m_4 - a)') == {
        'L': 1.0,
        'l': -1.1,
        'm_3': 0.3,
        'm_4': 0.3,
        'a': -0.3,
    }
    # The factor of a parenthesis ends with it.
    assert parse_combination('a + 2 (b + c) - d') == {'a': 1.0, 'b': 2.0, 'c': 2.0, 'd': -1.0}
    assert parse_combination('- a - (b - 2 c)') == {'a': -1.0, 'b': -1.0, 'c': 2.0}


@pytest.mark.parametrize('text', ['', '3', 'a b', 'a +'])
def test_what_is_no_combination_is_refused(text):
    with pytest.raises(InertialEstimationError):
        parse_combination(text)


def test_bad_input_is_named(base, names, Y):
    with pytest.raises(NameNotFound, match='foo'):
        BaseParameters.parse(['foo'], names)
    with pytest.raises(ShapeError, match='order'):
        BaseParameters.of_regressor(Y, order=[0, 0, 1])
    with pytest.raises(ShapeError, match='Y'):
        unexcited_directions(np.zeros(3))
    with pytest.raises(InertialEstimationError, match='independent'):
        BaseParameters.of_null_space(np.ones((10, 2)))


def test_torques_keep_less_than_the_wrench(arm_with_wrist_sensor):
    submodel = arm_with_wrist_sensor.submodels[0]
    wrench, torques = (
        BaseParameters.of_null_space(null_space(arm_with_wrist_sensor, submodel, rows))
        for rows in Rows
    )
    assert torques.rank < wrench.rank


def test_a_combination_that_barely_holds_a_column_is_not_solved_for_it():
    """Descriptions have angles of 1e-6 rad in place of zero; the order would ask for the last."""
    null_space = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.5], [1e-6, 0.0]])
    base = BaseParameters.of_null_space(null_space, [0, 1, 2, 3])
    assert sorted(base.independent.tolist()) == [1, 3]
    assert np.abs(base.grouping).max() < 3.0
    alone = BaseParameters.of_null_space(np.array([[0.0], [1e-6], [1e-7]]), [0, 1, 2])
    assert alone.rank == 2


def test_columns_that_barely_differ_are_two(rng):
    """Of lengths one, 1e-5 apart; round-off is 1e-16."""
    Y = rng.normal(size=(60, 10))
    Y[:, 6] = Y[:, 4] + 1e-5 * rng.normal(size=60)
    assert BaseParameters.of_regressor(Y).rank == 10
    Y[:, 6] = Y[:, 4]
    assert BaseParameters.of_regressor(Y).rank == 9


def test_a_small_share_in_a_combination_is_one(rng):
    """A column that vanishes with 1e-5 of another one is a combination of it."""
    Y = rng.normal(size=(60, 10))
    Y[:, 6] = 1e-5 * Y[:, 4]
    found = BaseParameters.of_regressor(Y)
    x = rng.normal(size=10)
    np.testing.assert_allclose(Y[:, found.independent] @ found.of(x), Y @ x, rtol=0, atol=1e-9)
    assert found.rank == 9
