# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The matrix from added masses: when it is unique, exact without noise, honest with it.

Not covered: the command, in `test_calibrate_in_situ`; real matrices, in
`test_benchmark_calibration`.
"""

from dataclasses import replace

import numpy as np
import pytest
from hanging_body import (
    CENTRE,
    MASS,
    MATRIX,
    OFFSET,
    counts,
    data_set,
    data_sets,
    directions,
    swinging,
)
from scipy.spatial.transform import Rotation

from inertial_estimation.calibration.in_situ_matrix import Weighed, in_situ_matrix, weigh
from inertial_estimation.calibration.in_situ_offset import in_situ_offset
from inertial_estimation.errors import LogError, ModelError, ShapeError
from inertial_estimation.findings import Level

NONE = (0.0, (0.0, 0.0, 0.0))
AT, OTHER = (0.2, 0.1, 0.3), (0.0, -0.2, 0.3)
GOOD = (NONE, (0.5, AT), (0.5, OTHER))
# Round-off through a matrix of condition 200, and through equations of about a thousand.
EXACT = 1e-8
# Ranks 33, 34 and 36 of 40, by theory.md section 3.
DEGENERATE = [
    (NONE, (0.5, AT), (1.0, AT), (1.5, AT)),
    ((0.5, tuple(CENTRE)), (1.0, AT), NONE, (0.7, AT)),
    ((0.5, AT), (0.5, OTHER), (0.5, (0.2, -0.1, 0.4))),
]


def relative(found, true=MATRIX):
    """Return how far a matrix is from the true one, in wrenches with moments in Nm per 0.1 m."""
    scale = np.repeat([1.0, 10.0], 3)
    return scale[:, None] * (found @ np.linalg.inv(true) - np.eye(6)) / scale


@pytest.mark.parametrize('noise', [0.0, 1.0])
@pytest.mark.parametrize('added', DEGENERATE)
def test_a_matrix_that_is_not_unique_is_refused(rng, added, noise):
    with pytest.raises(LogError):
        in_situ_matrix(data_sets(rng, added, noise=noise))


@pytest.mark.parametrize('added', [GOOD, GOOD[::-1], (*GOOD, (1.0, (0.1, 0.1, 0.1)))])
def test_without_noise_it_is_exact(rng, added):
    found = in_situ_matrix(data_sets(rng, added))
    np.testing.assert_allclose(relative(found.matrix), 0.0, atol=EXACT)
    assert found.body.mass == pytest.approx(MASS, abs=EXACT)
    np.testing.assert_allclose(found.body.centre, CENTRE, atol=EXACT)
    for one in found.offsets:
        np.testing.assert_allclose(found.matrix @ one.offset, OFFSET, atol=1e-6)


def test_the_stacked_equations_of_the_thesis_have_the_same_solution_and_rank(rng):
    sets = data_sets(rng, GOOD, n=40)
    found = in_situ_matrix(sets)
    b = np.linalg.solve(MATRIX, OFFSET)
    H = np.concatenate([Weighed(*one).matrix.reshape(-1, order='F')[:, None] for one in (
        (1.0, np.zeros(3)), *((0.0, e) for e in np.eye(3)))], axis=1)  # fmt: skip
    Theta, beta = [], []
    for one in sets:
        r, g = one.raw - b, -one.accelerations
        Theta.append(np.hstack([np.kron(r, np.eye(6)), -np.kron(g, np.eye(6)) @ H]))
        beta.append((g @ Weighed(one.mass, one.mass * one.centre).matrix.T).reshape(-1))
    x, _, rank, _ = np.linalg.lstsq(np.concatenate(Theta), np.concatenate(beta), rcond=1e-10)
    assert rank == 40
    np.testing.assert_allclose(relative(x[:36].reshape(6, 6, order='F')), 0.0, atol=EXACT)
    np.testing.assert_allclose(x[36], found.body.mass, atol=EXACT)
    np.testing.assert_allclose(x[37:], found.body.first_moment, atol=EXACT)


def test_the_rotation_of_the_accelerometer_is_taken_into_account_or_named(rng):
    S_R_A = Rotation.random(random_state=4).as_matrix()
    turned = [
        replace(one, accelerations=one.accelerations @ S_R_A) for one in data_sets(rng, GOOD)
    ]
    known = in_situ_matrix(turned, rotation=S_R_A)
    assert known.in_sensor_axes
    np.testing.assert_allclose(relative(known.matrix), 0.0, atol=EXACT)
    # Not known: all is in the accelerometer's axes, the centres of the masses as well.
    unknown = in_situ_matrix([replace(one, centre=S_R_A.T @ one.centre) for one in turned])
    assert not unknown.in_sensor_axes
    A_Xf_S = np.kron(np.eye(2), S_R_A.T)
    np.testing.assert_allclose(relative(unknown.matrix, A_Xf_S @ MATRIX), 0.0, atol=EXACT)
    np.testing.assert_allclose(unknown.body.centre, S_R_A.T @ CENTRE, atol=EXACT)


def test_deviations_do_not_depend_on_how_the_accelerometer_is_turned(rng):
    S_R_A = Rotation.random(random_state=4).as_matrix()
    # Orientations that are far from even, so that slopes are known better along some axes.
    sets = [
        data_set(rng, str(k), *one, noise=1.0, gravity=swinging(500))
        for k, one in enumerate(GOOD)
    ]  # fmt: skip
    plain = in_situ_matrix(sets, rotation=np.eye(3))
    turned = [replace(one, accelerations=one.accelerations @ S_R_A) for one in sets]
    found = in_situ_matrix(turned, rotation=S_R_A)
    np.testing.assert_allclose(relative(found.matrix, plain.matrix), 0.0, atol=EXACT)
    np.testing.assert_allclose(found.deviations, plain.deviations, rtol=1e-6)


def test_standard_deviations_are_those_of_many_draws(rng):
    errors, of_body, residuals = [], [], []
    for _ in range(30):
        found = in_situ_matrix(data_sets(rng, GOOD, noise=1.0, n=100))
        errors.append((found.matrix - MATRIX) / found.deviations)
        of_body.append((found.body.mass - MASS) / found.body_deviations[0])
        residuals.append(found.residuals)
    assert 0.75 < np.sqrt(np.mean(np.square(errors))) < 1.3
    assert 0.6 < np.sqrt(np.mean(np.square(of_body))) < 1.5
    # Of 54 equations 14 are left over: 30 draws of about five for each data set.
    np.testing.assert_allclose(np.sqrt(np.mean(np.square(residuals), axis=0)), 1.0, atol=0.25)


def test_offsets_that_drift_between_data_sets_do_not_matter(rng):
    sets = []
    for k, (added, at) in enumerate(GOOD):
        one = data_set(rng, str(k), added, at)
        sets.append(replace(one, raw=one.raw + np.linalg.solve(MATRIX, k * OFFSET)))
    found = in_situ_matrix(sets)
    np.testing.assert_allclose(relative(found.matrix), 0.0, atol=EXACT)
    np.testing.assert_allclose(found.matrix @ found.offsets[2].offset, 3 * OFFSET, atol=1e-6)


UNITS = np.array([1.0, 30.0, 0.1, 300.0, 3.0, 1e-2])
"""Of channels, of which nobody knows."""


def scaled(sets):
    """Return data sets in other units."""
    return [replace(one, raw=UNITS * one.raw) for one in sets]


def test_units_that_differ_by_channels_need_no_former_matrix(rng):
    sets = data_sets(rng, GOOD, noise=1.0, gravity=swinging(600))
    with pytest.raises(LogError):
        in_situ_offset(scaled(sets)[0].raw, sets[0].accelerations)
    known = in_situ_matrix(sets, former=MATRIX)
    found = in_situ_matrix(scaled(sets))
    # Round-off through a matrix of condition 200 and units of 10^4.
    np.testing.assert_allclose(found.matrix * UNITS, known.matrix, rtol=1e-6, atol=1e-9)
    gaps = [[one.subspace.gap for one in answer.offsets] for answer in (found, known)]
    # The matrix that was found is within a hundredth of the right one.
    np.testing.assert_allclose(*gaps, rtol=0.1)


@pytest.mark.parametrize('units', [np.ones(6), UNITS])
def test_a_joint_that_moves_is_not_taken_for_units(rng, units):
    sets = []
    for one in data_sets(rng, GOOD, noise=1.0, gravity=swinging(600)):
        bend = 0.15 * np.sin(np.arange(600) / 7.0)
        shin = np.column_stack([0.25 * np.sin(8 * bend), 0 * bend, 0.25 * np.cos(8 * bend)])
        moment = 1.5 * np.cross(shin, -one.accelerations)
        moved = counts(np.hstack([0 * moment, moment]), offset=np.zeros(6))
        sets.append(replace(one, raw=units * (one.raw + moved)))
    with pytest.raises(LogError):
        in_situ_matrix(sets)


def test_touches_in_one_data_set_are_left_out(rng):
    sets = data_sets(rng, GOOD, noise=1.0)
    raw = sets[1].raw.copy()
    raw[50:100] += counts(np.tile([9.0, 9.0, 9.0, 1.0, 1.0, 1.0], (50, 1)), offset=np.zeros(6))
    plain = in_situ_matrix(sets)
    found = in_situ_matrix([sets[0], replace(sets[1], raw=raw), sets[2]])
    assert found.offsets[1].left_out['touched'] == 50
    errors = (found.matrix - MATRIX) / plain.deviations
    assert np.abs(errors).max() < 6.0


@pytest.mark.parametrize('n', [1, 2])
def test_too_few_data_sets_are_refused(rng, n):
    with pytest.raises(LogError):
        in_situ_matrix(data_sets(rng, GOOD[:n]))


def test_what_is_wrong_is_named(rng):
    sets = data_sets(rng, GOOD)
    with pytest.raises(ModelError):
        in_situ_matrix([replace(sets[0], mass=-1.0), *sets[1:]])
    with pytest.raises(ShapeError):
        in_situ_matrix([replace(sets[0], centre=np.zeros(2)), *sets[1:]])
    with pytest.raises(ModelError):
        in_situ_matrix([sets[0], sets[1], sets[1]])
    with pytest.raises(ModelError):
        in_situ_matrix(sets, rotation=-np.eye(3))
    with pytest.raises(ModelError):
        in_situ_matrix(sets, direction=0)
    flat = directions(rng, 400) * [1.0, 1.0, 0.0]
    flat *= 9.8 / np.linalg.norm(flat, axis=1)[:, None]
    with pytest.raises(LogError):
        in_situ_matrix([*sets[:2], data_set(rng, '3', 0.5, OTHER, gravity=flat)])


def test_what_a_body_weighs_is_least_squares_over_the_orientations_that_were_there(rng):
    gravity = swinging(300)
    slopes = rng.normal(size=(6, 3))
    centred = gravity - gravity.mean(axis=0)
    found = weigh(slopes, centred.T @ centred)
    units = [Weighed(1.0, np.zeros(3)).matrix, *(Weighed(0.0, e).matrix for e in np.eye(3))]
    columns = np.stack([(centred @ unit.T).ravel() for unit in units], axis=1)
    x = np.linalg.lstsq(columns, (centred @ slopes.T).ravel(), rcond=None)[0]
    np.testing.assert_allclose(found.mass, x[0], rtol=1e-10)
    np.testing.assert_allclose(found.first_moment, x[1:], rtol=1e-10)


def codes(found, former=None):
    """Return the codes of errors of a matrix."""
    return {one.code for one in found.findings('ft', former) if one.level == Level.ERROR}


def test_a_matrix_as_stated_has_no_errors(rng):
    found = in_situ_matrix(data_sets(rng, GOOD, noise=1.0), rotation=np.eye(3))
    assert not codes(found, 1.2 * MATRIX) and not codes(found)
    assert found.change(1.2 * MATRIX) == pytest.approx(0.2, abs=0.02)
    assert np.isnan(found.change()), 'counts'


@pytest.mark.parametrize(
    ('mistake', 'code'),
    [('grams', 'matrix_change'), ('millimetres', 'matrix_change'), ('sign', 'matrix_change'),
     ('order', 'matrix_change')],
)  # fmt: skip
def test_a_matrix_far_from_the_former_one_is_an_error(rng, mistake, code):
    sets = data_sets(rng, GOOD, noise=1.0)
    direction = -1 if mistake == 'sign' else 1
    if mistake == 'grams':
        sets = [replace(one, mass=1000.0 * one.mass) for one in sets]
    elif mistake == 'millimetres':
        sets = [replace(one, centre=1000.0 * one.centre) for one in sets]
    elif mistake == 'order':
        sets = [sets[0], replace(sets[1], centre=sets[2].centre),
                replace(sets[2], centre=sets[1].centre)]  # fmt: skip
    found = in_situ_matrix(sets, rotation=np.eye(3), direction=direction)
    assert code in codes(found, MATRIX)
    # Without a former matrix a body that nobody holds shows wrong units.
    assert ('inertia' in codes(found)) == (mistake in ('grams', 'millimetres'))


def test_readings_that_are_wrenches_are_compared_with_the_identity(rng):
    sets = [replace(one, raw=one.raw @ MATRIX.T) for one in data_sets(rng, GOOD, noise=1.0)]
    assert in_situ_matrix(sets, rotation=np.eye(3)).change() < 0.05
    found = in_situ_matrix(sets, rotation=np.eye(3), direction=-1)
    assert found.change() == pytest.approx(2.0, abs=0.1) and codes(found) == {'matrix_change'}


def test_a_centre_that_is_not_as_stated_is_an_error(rng):
    sets = data_sets(rng, (*GOOD, (0.7, (0.1, 0.1, 0.2))), noise=1.0)
    sets[1] = replace(sets[1], centre=sets[1].centre + np.array([0.1, 0.0, 0.0]))
    assert 'residual' in codes(in_situ_matrix(sets, rotation=np.eye(3)), MATRIX)
