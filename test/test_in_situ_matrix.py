# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The matrix from added masses: unique or refused, exact without noise, scatter as stated with it.

Not covered: the command, in `test_calibrate_raw`.
"""

from dataclasses import replace

import numpy as np
import pytest
from hanging_body import CENTRE, MASS, MATRIX, OFFSET, data_set, data_sets, swinging
from scipy.spatial.transform import Rotation

from inertial_estimation.calibration.in_situ_matrix import Weighed, in_situ_matrix
from inertial_estimation.errors import LogError
from inertial_estimation.findings import Level

NONE = (0.0, (0.0, 0.0, 0.0))
AT, OTHER = (0.2, 0.1, 0.3), (0.0, -0.2, 0.3)
GOOD = (NONE, (0.5, AT), (0.5, OTHER))
EXACT = 1e-8


def relative(found, true=MATRIX):
    """Return the relative error of a matrix, moments in Nm per 0.1 m."""
    scale = np.repeat([1.0, 10.0], 3)
    return scale[:, None] * (found @ np.linalg.inv(true) - np.eye(6)) / scale


@pytest.mark.parametrize('noise', [0.0, 1.0])
def test_matrix_that_is_not_unique_is_refused(rng, noise):
    for added in (
        (NONE, (0.5, AT), (1.0, AT), (1.5, AT)),
        ((0.5, tuple(CENTRE)), (1.0, AT), NONE, (0.7, AT)),
        ((0.5, AT), (0.5, OTHER), (0.5, (0.2, -0.1, 0.4))),
        GOOD[:2],
        (NONE, NONE, NONE),
    ):
        with pytest.raises(LogError):
            in_situ_matrix(data_sets(rng, added, noise=noise))


def test_stacked_equations_of_the_thesis_have_the_same_solution(rng):
    """Exact without noise, whatever the offset of each data set."""
    sets = data_sets(rng, (*GOOD, (1.0, (0.1, 0.1, 0.1))), n=40)
    drifting = [
        replace(one, raw=one.raw + np.linalg.solve(MATRIX, k * OFFSET))
        for k, one in enumerate(sets)
    ]
    found = in_situ_matrix(drifting)
    np.testing.assert_allclose(relative(found.matrix), 0.0, atol=EXACT)
    for k, one in enumerate(found.offsets):
        np.testing.assert_allclose(found.matrix @ one.offset, (k + 1) * OFFSET, atol=1e-6)
        added = found.weigh(one)
        np.testing.assert_allclose(added.mass, sets[k].mass, atol=EXACT)
        np.testing.assert_allclose(added.first_moment, sets[k].added.first_moment, atol=EXACT)
    b = np.linalg.solve(MATRIX, OFFSET)
    bodies = [Weighed(1.0, np.zeros(3)), *(Weighed(0.0, e) for e in np.eye(3))]
    H = np.stack([body.matrix.reshape(-1, order='F') for body in bodies], axis=1)
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
    np.testing.assert_allclose(found.body.centre, CENTRE, atol=EXACT)


def test_rotation_of_the_accelerometer(rng):
    S_R_A = Rotation.random(random_state=4).as_matrix()
    sets = [
        data_set(rng, str(k), *one, noise=1.0, gravity=swinging(500))
        for k, one in enumerate(GOOD)
    ]  # fmt: skip
    plain = in_situ_matrix(sets, rotation=np.eye(3))
    turned = [replace(one, accelerations=one.accelerations @ S_R_A) for one in sets]
    known = in_situ_matrix(turned, rotation=S_R_A)
    np.testing.assert_allclose(relative(known.matrix, plain.matrix), 0.0, atol=EXACT)
    np.testing.assert_allclose(known.deviations, plain.deviations, rtol=1e-6)
    # Without it all is in the accelerometer's axes, the centres of the masses as well.
    unknown = in_situ_matrix([replace(one, centre=S_R_A.T @ one.centre) for one in turned])
    A_Xf_S = np.kron(np.eye(2), S_R_A.T)
    np.testing.assert_allclose(relative(unknown.matrix, A_Xf_S @ plain.matrix), 0.0, atol=EXACT)


def test_deviations_are_those_of_many_draws(rng):
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


def codes(found, former=None):
    return {one.code for one in found.findings('ft', former) if one.level == Level.ERROR}


@pytest.mark.parametrize('mistake', ['', 'grams', 'millimetres', 'sign', 'order'])
def test_wrong_statements_are_errors(rng, mistake):
    sets = data_sets(rng, (*GOOD, (0.7, (0.1, 0.1, 0.2))), noise=1.0)
    if mistake == 'grams':
        sets = [replace(one, mass=1000.0 * one.mass) for one in sets]
    elif mistake == 'millimetres':
        sets = [replace(one, centre=1000.0 * one.centre) for one in sets]
    elif mistake == 'order':
        sets[1:3] = [replace(one, centre=sets[3 - k].centre) for k, one in enumerate(sets[1:3], 1)]
    direction = -1 if mistake == 'sign' else 1
    found = in_situ_matrix(sets, rotation=np.eye(3), direction=direction)
    assert ('matrix_change' in codes(found, MATRIX)) == bool(mistake)
    # Without a former matrix an implausible body shows wrong units.
    assert ('inertia' in codes(found)) == (mistake in ('grams', 'millimetres'))
    if not mistake:
        assert not codes(found, 1.2 * MATRIX) and not codes(found)
        assert found.change(1.2 * MATRIX) == pytest.approx(0.2, abs=0.02)
    elif mistake == 'sign':
        assert found.change(MATRIX) == pytest.approx(2.0, abs=0.1)


def test_centre_that_is_five_centimetres_off_is_an_error():
    """Half leave no more than play may, but many times the errors that last."""
    flagged = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        sets = data_sets(rng, GOOD, noise=1.0, n=600)
        assert 'residual' not in codes(in_situ_matrix(sets))
        off = rng.normal(size=3)
        sets[1] = replace(sets[1], centre=sets[1].centre + 0.05 * off / np.linalg.norm(off))
        flagged += 'residual' in codes(in_situ_matrix(sets))
    assert flagged == 8
