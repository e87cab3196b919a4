# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Offset and matrix by the body beyond a sensor: exact without noise, scatter as stated with it.

What is not determined is refused; offsets of real logs are those that their owners print. Not
covered: the commands, in `test_calibrate`; matrices of real logs, as none with added masses is
public.
"""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hanging_body import CENTRE, GRAVITY, MASS, MATRIX, NOISE, OFFSET, counts, directions, wrenches
from scipy.spatial.transform import Rotation
from shared_data import SHARED
from wam import table

from inertial_estimation.calibration.in_situ_matrix import AddedMass, Weighed, in_situ_matrix
from inertial_estimation.calibration.in_situ_offset import (
    MOVING,
    NOT_FINITE,
    TOUCHED,
    accelerometer_bias,
    in_situ_offset,
)
from inertial_estimation.calibration.residual_statistics import USUAL_BIAS
from inertial_estimation.errors import LogError, ModelError
from inertial_estimation.findings import Level

EXACT = 1e-9
FIVE = 5.0


def swinging(n):
    """Return gravity of a leg that swings by 35 degrees one way, 45 the other, (n, 3) [m/s^2]."""
    t = np.arange(n) / n
    pitch = np.deg2rad(35) * np.sin(2 * np.pi * 11 * t)
    roll = np.deg2rad(45) * np.sin(2 * np.pi * t)
    parts = -np.sin(pitch), np.cos(pitch) * np.sin(roll), np.cos(pitch) * np.cos(roll)
    return GRAVITY * np.column_stack(parts)


def noisy(rng, n, gravity=None):
    """Return counts with noise, and accelerations."""
    g = directions(rng, n) if gravity is None else gravity
    return counts(wrenches(g) + rng.normal(size=(n, 6)) * NOISE), -g


def test_offset_of_the_thesis(rng):
    """Exact without noise; T 5.6 to 5.10 as printed, by g instead of the accelerometer."""
    g = directions(rng, 7)
    found = in_situ_offset(counts(wrenches(g)), -g)
    np.testing.assert_allclose(found.in_wrench(MATRIX)[0], OFFSET, atol=EXACT)
    assert found.gap > 1e6 and found.kept.all() and not any(found.left_out.values())
    raw, a = noisy(rng, 200)
    found = in_situ_offset(raw, a, bias=np.zeros(3))
    r, g = raw[found.kept], -a[found.kept]
    middle = r.mean(axis=0)
    U1 = np.linalg.svd((r - middle).T)[0][:, :3]
    rows = [np.hstack([np.kron(one[None], np.eye(3)), np.eye(3)]) for one in g]
    x = np.linalg.lstsq(np.vstack(rows), ((r - middle) @ U1).ravel(), rcond=None)[0]
    # Round-off of 3000 counts.
    np.testing.assert_allclose(found.offset, middle + U1 @ x[9:], atol=EXACT)


@pytest.mark.parametrize(('n', 'swings'), [(30, False), (1000, False), (1000, True)])
def test_deviations_are_those_of_many_draws(rng, n, swings):
    """Also those by an accelerometer bias, which swinging does not determine."""
    errors, ratios = [], []
    for _ in range(40):
        raw, a = noisy(rng, n, swinging(n) if swings else None)
        a += rng.normal(0.0, USUAL_BIAS, 3)
        fit = in_situ_offset(raw, a, matrix=MATRIX)
        found, deviations = fit.in_wrench(MATRIX)
        errors.append((found - OFFSET) / deviations)
        rows, of = np.column_stack([a, np.ones(n)])[fit.kept], fit.slopes
        white = np.kron(np.linalg.inv(rows.T @ rows), of.noise)
        ratios.append(np.diagonal(of.covariance) / np.diagonal(white))
    # 240 numbers, correlated by sixes; with 26 degrees of freedom a square is 8 % larger.
    assert 0.75 < np.sqrt(np.mean(np.square(errors))) < 1.3
    assert np.abs(errors).max() < FIVE + 1.0
    # Blocks are corrected by 40/36 for the unknowns, of which balanced ones need less.
    assert 0.97 < np.mean(ratios) < 40 / 36 + 0.03


def test_logs_that_determine_no_offset_are_refused(rng):
    n = 500
    raw, a = noisy(rng, n)
    dead, saturated, touched = raw.copy(), raw.copy(), raw.copy()
    dead[:, 4] = 77.0
    saturated[:, 1] = np.minimum(raw[:, 1], np.quantile(raw[:, 1], 0.8))
    pushes = 200.0 * NOISE * rng.normal(size=(n // 2, 6))
    touched[::2] += counts(pushes, offset=np.zeros(6))
    # 60 g on a sensor for hundreds of newtons: only the gap of the spectrum shows it.
    light = counts(0.02 * wrenches(-a) + NOISE * rng.normal(size=(n, 6)))
    # A joint that moves.
    g, bend = swinging(n), 0.15 * np.sin(np.arange(n) / 7.0)
    shin = np.column_stack([0.25 * np.sin(8 * bend), np.zeros(n), 0.25 * np.cos(8 * bend)])
    moved = wrenches(g)
    moved[:, 3:] += 1.5 * np.cross(shin, g)
    line = np.tile([[0.0, 0.6 * GRAVITY, -0.8 * GRAVITY], [0.0, 0.0, -GRAVITY]], (n // 2, 1))
    for readings, accelerations in (
        (counts(moved), -g), (counts(wrenches(line)), -line), (dead, a),
        (light, a), (saturated, a), (raw, a / GRAVITY),
    ):  # fmt: skip
        for sign in (1.0, -1.0):
            with pytest.raises(LogError):
                in_situ_offset(
                    sign * readings, accelerations, matrix=None if readings is dead else MATRIX
                )
    with pytest.raises(ModelError):
        in_situ_offset(raw, a, matrix=MATRIX @ np.diag([1, 1, 1, 1, 1, 0]))
    for readings, code in (touched, 'disturbed'), (raw * np.logspace(0, 4, 6), 'residual'):
        found = in_situ_offset(readings, a, matrix=MATRIX).findings(MATRIX, '')
        assert [one.code for one in found if one.level == Level.ERROR] == [code]


@pytest.mark.parametrize('channel', [1, 4])
def test_channel_of_noise_alone_is_named(rng, channel):
    raw, a = noisy(rng, 500)
    raw[:, channel] = raw[:, channel].mean() + rng.normal(size=500)
    with pytest.raises(LogError) as error:
        in_situ_offset(raw, a, matrix=MATRIX)
    assert str(channel + 1) in str(error.value).split()
    # Of a wrench, moments may not change.
    wrench = wrenches(-a) + rng.normal(size=(500, 6)) * NOISE
    wrench[:, channel] = NOISE[channel] * rng.normal(size=500)
    with nullcontext() if channel > 2 else pytest.raises(LogError):
        in_situ_offset(wrench, a, matrix=np.eye(6))


def test_moving_and_touched_samples_are_left_out_and_counted(rng):
    raw, a = noisy(rng, 600)
    clean, turning = in_situ_offset(raw, a, matrix=MATRIX), np.zeros((600, 3))
    pushed = rng.normal(size=(120, 6)) * np.repeat([8.0, 0.8], 3) + [0, 6, 4, 0, 0, 0.3]
    raw[:120] += np.linalg.solve(MATRIX, pushed.T).T
    a[200:230] *= 1.1
    turning[230:250, 1], turning[400] = 1.0, np.nan
    raw[300, 2], a[301, 0] = np.nan, np.inf
    found = in_situ_offset(raw, a, turning=turning, matrix=MATRIX)
    assert found.left_out[MOVING] == 50 and found.left_out[NOT_FINITE] == 2
    findings = {one.code: one.values for one in found.findings(MATRIX, 'ft')}
    assert findings['missing']['share'] == 2 / 600
    # Some pushes are as small as noise.
    assert 115 <= found.left_out[TOUCHED] <= 120
    assert found.kept.sum() + sum(found.left_out.values()) == 600
    errors = (found.in_wrench(MATRIX)[0] - OFFSET) / clean.in_wrench(MATRIX)[1]
    assert np.abs(errors).max() < FIVE


def test_drifting_offset_is_no_touch_and_is_reported(rng):
    raw, a = noisy(rng, 500)
    drift = np.array([2.0, 0.0, -3.0, 0.05, 0.0, 0.0])
    raw += np.linalg.solve(MATRIX, np.outer(drift, np.linspace(-0.5, 0.5, 500))).T
    found = in_situ_offset(raw, a, matrix=MATRIX)
    assert found.left_out[TOUCHED] == 0
    # The slope of 500 samples in time has a deviation of noise sqrt(12/500).
    limits = FIVE * NOISE * np.sqrt(12 / 500)
    assert (np.abs(found.drift(MATRIX)[0] - drift) < limits).all()
    assert any(one.code == 'offset_drift' for one in found.findings(MATRIX, 'ft'))


@pytest.mark.parametrize(('per_pose', 'of_accelerometer'), [(2, 0.005), (60, 0.1)])
def test_gravity_that_moves_on_with_time_is_no_drift(rng, per_pose, of_accelerometer):
    tilt = np.arccos(1.0 - 2.0 * (np.arange(18) + 0.5) / 18)
    around = np.pi * (1.0 + np.sqrt(5.0)) * np.arange(18)
    down = np.column_stack([np.cos(around) * np.sin(tilt), np.sin(around) * np.sin(tilt),
                            np.cos(tilt)])  # fmt: skip
    for order in (np.arange(18), rng.permutation(18)):
        for _ in range(15):
            g = np.repeat(GRAVITY * down[order], per_pose, axis=0)
            a = -g + of_accelerometer * rng.normal(size=g.shape)
            noise = NOISE * rng.normal(size=(len(g), 6))
            found = in_situ_offset(counts(wrenches(g) + noise), a, matrix=MATRIX)
            assert not any(one.code == 'offset_drift' for one in found.findings(MATRIX, 'ft'))
            drift, deviations = found.drift(MATRIX)
            assert np.abs(drift / deviations).max() < FIVE


def test_held_poses_and_coarse_converters_are_not_saturated(rng):
    poses = GRAVITY * np.repeat(np.vstack([np.eye(3), -np.eye(3)]), 50, axis=0)
    a = -poses + 0.03 * rng.normal(size=poses.shape)
    in_situ_offset(np.round(counts(wrenches(poses))), a, matrix=MATRIX)
    # Steps of a newton and a tenth of a newton metre, of forces that swing by 28 N.
    g, steps = directions(rng, 2000), np.repeat([1.0, 0.1], 3)
    in_situ_offset(steps * np.round(wrenches(g) / steps), -g, matrix=np.eye(6))


def test_bias_of_the_accelerometer(rng):
    g, bias = directions(rng, 300), np.array([0.1, -0.4, 0.7])
    a = -g + bias + 0.02 * rng.normal(size=g.shape)
    found = in_situ_offset(counts(wrenches(g)), a, matrix=MATRIX)
    estimate, deviations = accelerometer_bias(a)
    np.testing.assert_array_equal(found.bias, estimate)
    assert (np.abs(estimate - bias) <= FIVE * deviations).all()
    offset, deviations = found.in_wrench(MATRIX)
    assert (np.abs(offset - OFFSET) <= FIVE * deviations + 1e-8).all()
    a[:60] += [1.5, 0.0, 0.0]
    moved, deviations = accelerometer_bias(a)
    assert (np.abs(moved - bias) <= FIVE * deviations).all() and deviations.max() < 0.01
    # wrench = -M a, so that a bias d of a, if it stays, moves the offset by M d.
    found = in_situ_offset(counts(wrenches(g)), -g + 0.1 * bias, bias=np.zeros(3))
    expected = OFFSET + Weighed(MASS, MASS * CENTRE).matrix @ (0.1 * bias)
    np.testing.assert_allclose(found.in_wrench(MATRIX)[0], expected, atol=1e-8)


def test_bias_that_is_not_subtracted_is_in_the_deviations():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        g = directions(rng, 200)
        readings = wrenches(g) + rng.normal(size=(200, 6)) * NOISE
        found = in_situ_offset(
            readings, -g + 0.02 + 0.03 * rng.normal(size=g.shape), matrix=np.eye(6)
        )
        assert not found.bias.any()
        # Of a body of 2.9 kg.
        assert (np.abs(found.offset) < 3.0 * np.sqrt(np.diagonal(found.covariance))).all()


def test_gains_that_differ_by_a_percent_are_no_bias(rng):
    """In a few poses that are held; the error of a pose is the same in all of its samples."""
    ratios = []
    for _ in range(40):
        held = np.repeat(directions(rng, 20), 50, axis=0) * (1.0 + 0.01 * rng.normal(size=3))
        bias, deviations = accelerometer_bias(-held + 0.02 * rng.normal(size=held.shape))
        ratios.append(bias / deviations)
    # 14 if samples were independent.
    assert 0.6 < np.sqrt(np.mean(np.square(ratios))) < 2.0
    # A leg that swings determines no bias.
    assert np.isinf(accelerometer_bias(-swinging(500) * [1.01, 0.99, 1.0])[1]).all()


# ---- Matrix from added masses -------------------------------------------------------------------

NONE = (0.0, (0.0, 0.0, 0.0))
AT, OTHER = (0.2, 0.1, 0.3), (0.0, -0.2, 0.3)
GOOD = (NONE, (0.5, AT), (0.5, OTHER))
NEAR = 1e-8


def data_sets(rng, added, noise=0.0, n=400, gravity=None):
    """Return data sets of (mass, centre) pairs, numbered from 1."""
    found = []
    for k, (mass, at) in enumerate(added, 1):
        g = directions(rng, n) if gravity is None else gravity
        readings = wrenches(g, mass, at) + noise * rng.normal(size=(len(g), 6)) * NOISE
        found.append(AddedMass(str(k), counts(readings), -g, mass, np.array(at, dtype=float)))
    return found


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
    np.testing.assert_allclose(relative(found.matrix), 0.0, atol=NEAR)
    for k, one in enumerate(found.offsets):
        np.testing.assert_allclose(found.matrix @ one.offset, (k + 1) * OFFSET, atol=1e-6)
        added = found.weigh(one)
        np.testing.assert_allclose(added.mass, sets[k].mass, atol=NEAR)
        np.testing.assert_allclose(added.first_moment, sets[k].added.first_moment, atol=NEAR)
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
    np.testing.assert_allclose(relative(x[:36].reshape(6, 6, order='F')), 0.0, atol=NEAR)
    np.testing.assert_allclose(x[36], found.body.mass, atol=NEAR)
    np.testing.assert_allclose(x[37:], found.body.first_moment, atol=NEAR)
    np.testing.assert_allclose(found.body.centre, CENTRE, atol=NEAR)


def test_rotation_of_the_accelerometer(rng):
    S_R_A = Rotation.random(random_state=4).as_matrix()
    sets = data_sets(rng, GOOD, noise=1.0, gravity=swinging(500))
    plain = in_situ_matrix(sets, rotation=np.eye(3))
    turned = [replace(one, accelerations=one.accelerations @ S_R_A) for one in sets]
    known = in_situ_matrix(turned, rotation=S_R_A)
    np.testing.assert_allclose(relative(known.matrix, plain.matrix), 0.0, atol=NEAR)
    np.testing.assert_allclose(known.deviations, plain.deviations, rtol=1e-6)
    # Without it all is in the accelerometer's axes, the centres of the masses as well.
    unknown = in_situ_matrix([replace(one, centre=S_R_A.T @ one.centre) for one in turned])
    A_Xf_S = np.kron(np.eye(2), S_R_A.T)
    np.testing.assert_allclose(relative(unknown.matrix, A_Xf_S @ plain.matrix), 0.0, atol=NEAR)


def test_deviations_of_matrices_are_those_of_many_draws(rng):
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


# ---- Real sensors -------------------------------------------------------------------------------

DATA = SHARED / 'data'
# Seven poses of an ATI Axia80, five digits: weight, force offset, centre of mass z,
# moment offset (github.com/leledeyuan00/Gravity-Compensation-F-T-sensor).
AXIA = (10.80391, -2.13583, -2.76399, -13.07675, 0.05197, -0.15658, -0.07939, 0.12979)
# 24 orientations of an ATI Gamma with an IMU (doi 10.5281/zenodo.11075229).
NTNU_OFFSET = np.array([9.07633, -1.01814, 9.98482, 0.432449, -0.692162, -0.156746])
NTNU_BIAS = np.array([-0.00366, 0.00885, 0.07711])
G = 9.81


def columns_of(name, *groups):
    rows = table(DATA / name)
    return [np.array([[float(row[one]) for one in group] for row in rows]) for group in groups]


def axia(name):
    """Return wrenches (n, 6) in the sensor's frame and proper accelerations (n, 3)."""
    turns, wrenches = columns_of(
        f'axia80_static/{name}.csv', ('qx', 'qy', 'qz', 'qw'),
        ('fx_base', 'fy_base', 'fz_base', 'tx_base', 'ty_base', 'tz_base'),
    )  # fmt: skip
    S_R_B = Rotation.from_quat(turns).inv().as_matrix()
    turned = np.einsum('nij,nkj->nki', S_R_B, wrenches.reshape(-1, 2, 3)).reshape(-1, 6)
    return turned, 9.80665 * S_R_B[:, :, 2]


@pytest.mark.skipif(not DATA.is_dir(), reason='needs ../shared/data')
def test_axia_spectrum_offset_and_drift_are_the_published():
    found = in_situ_offset(*axia('poses7'))
    # As the description of the data prints them, with their last digits.
    singular_values = (18.2, 14.5, 5.28, 0.0051, 0.0012, 0.00003)
    digits = (0.05, 0.05, 0.005, 0.00005, 0.00005, 0.000005)
    assert (np.abs(found.singular_values - singular_values) <= digits).all()
    assert found.gap > 100.0
    offset = in_situ_offset(*axia('poses7'), matrix=np.eye(6)).offset
    # Gains that differ by 8 % between axes go into an offset of the model.
    np.testing.assert_allclose(offset[:3], AXIA[1:4], atol=0.2)
    np.testing.assert_allclose(offset[3:], AXIA[5:], atol=0.002)
    drift = in_situ_offset(*axia('poses60'), matrix=np.eye(6)).slopes.drift
    assert drift[2] == pytest.approx(-2.3, abs=0.1)
    assert np.abs(np.delete(drift, 2)).max() < 0.02


@pytest.mark.skipif(not DATA.is_dir(), reason='needs ../shared/data')
@pytest.mark.parametrize('source', ['gravity', 'imu'])
def test_ntnu_offset_without_a_model(source):
    wrenches, imu, gravity = columns_of(
        'ntnu_fts_imu/0-calibration_fts-accel.csv', ('fx', 'fy', 'fz', 'tx', 'ty', 'tz'),
        ('ax', 'ay', 'az'), ('gx', 'gy', 'gz'),
    )  # fmt: skip
    accelerations = -gravity if source == 'gravity' else G * imu
    found = in_situ_offset(wrenches, accelerations, matrix=np.eye(6))
    # Residuals of the published fit are 0.086 N and 0.003 Nm in 24 poses.
    assert (np.abs(found.offset - NTNU_OFFSET) <= np.repeat([0.05, 0.002], 3)).all()
    if source == 'imu':
        np.testing.assert_allclose(found.bias / G, NTNU_BIAS, atol=0.01)
