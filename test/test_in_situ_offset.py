# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Offsets without a model: exact without noise, honest with it, refused where data do not tell them.

Not covered: the command, in `test_calibrate_in_situ`; real readings as the authors publish them,
in `test_benchmark_calibration`.
"""

import numpy as np
import pytest
from hanging_body import (
    GRAVITY,
    MATRIX,
    NOISE,
    OFFSET,
    counts,
    directions,
    swinging,
    wrenches,
)
from scipy.spatial.transform import Rotation

from inertial_estimation.calibration.accelerometer import (
    MIN_GRAVITY_SPREAD,
    MOVING,
    NOT_FINITE,
    TOUCHED,
    accelerometer_bias,
    orientations,
)
from inertial_estimation.calibration.in_situ_matrix import Weighed
from inertial_estimation.calibration.in_situ_offset import affine_subspace, in_situ_offset
from inertial_estimation.errors import LogError
from inertial_estimation.model.spatial import hat

# Round-off of wrenches of some 50 N, through a matrix of condition 200 and back.
EXACT = 1e-9
# Deviations: 1 draw in 10^6 is off by more than five, of six channels and some draws.
FIVE = 5.0


def noisy(rng, n, gravity=None):
    """Return counts with noise, and what an accelerometer reads."""
    g = directions(rng, n) if gravity is None else gravity
    return counts(wrenches(g) + rng.normal(size=(n, 6)) * NOISE), -g


def evenly(n):
    """Return unit vectors from up to down, evenly around, shape (n, 3)."""
    tilt = np.arccos(1.0 - 2.0 * (np.arange(n) + 0.5) / n)
    around = np.pi * (1.0 + np.sqrt(5.0)) * np.arange(n)
    return np.column_stack(
        [np.cos(around) * np.sin(tilt), np.sin(around) * np.sin(tilt), np.cos(tilt)]
    )


@pytest.mark.parametrize('n', [7, 30, 500])
def test_without_noise_it_is_exact(rng, n):
    g = directions(rng, n)
    found = in_situ_offset(counts(wrenches(g)), -g)
    np.testing.assert_allclose(found.in_wrench(MATRIX)[0], OFFSET, atol=EXACT)
    assert found.subspace.gap > 1e6
    assert found.kept.all() and not any(found.left_out.values())


def test_the_rotation_of_the_accelerometer_does_not_matter(rng):
    raw, a = noisy(rng, 400)
    plain = in_situ_offset(raw, a, matrix=MATRIX)
    turned = in_situ_offset(raw, a @ Rotation.random(random_state=3).as_matrix(), matrix=MATRIX)
    np.testing.assert_allclose(turned.offset, plain.offset, rtol=1e-9)
    np.testing.assert_allclose(turned.deviations, plain.deviations, rtol=1e-6)


@pytest.mark.parametrize('n', [30, 1000])
@pytest.mark.parametrize('swings', [False, True])
def test_standard_deviations_are_those_of_many_draws(rng, n, swings):
    errors = []
    for _ in range(40):
        raw, a = noisy(rng, n, swinging(n) if swings else None)
        found, deviations = in_situ_offset(raw, a, matrix=MATRIX).in_wrench(MATRIX)
        errors.append((found - OFFSET) / deviations)
    # The mean square of 240 numbers, of which six at a time go together somewhat; with 26 degrees
    # of freedom a square is 8 % larger.
    assert 0.75 < np.sqrt(np.mean(np.square(errors))) < 1.3
    assert np.abs(errors).max() < FIVE + 1.0


def test_the_subspace_is_that_of_the_body(rng):
    g = directions(rng, 200)
    raw = counts(wrenches(g))
    found = affine_subspace(raw)
    inside = found.coordinates(raw)
    np.testing.assert_allclose(inside[:, 3:], 0.0, atol=1e-8 * np.abs(inside).max())
    np.testing.assert_allclose(
        raw, found.point + inside @ found.basis.T, atol=1e-9 * np.abs(raw).max()
    )
    # On an ellipsoid [T Lemma 5.1].
    centre, shape = in_situ_offset(raw, -g).ellipsoid()
    on_sphere = np.linalg.solve(shape, (inside[:, :3] - centre).T)
    np.testing.assert_allclose(np.linalg.norm(on_sphere, axis=0), 1.0, atol=1e-8)


def test_it_is_the_offset_of_the_thesis(rng):
    """T 5.6 to 5.10 as they are printed, by g instead of the accelerometer."""
    raw, a = noisy(rng, 200)
    found = in_situ_offset(raw, a, bias=np.zeros(3))
    r, g = raw[found.kept], -a[found.kept]
    middle = r.mean(axis=0)
    U1 = np.linalg.svd((r - middle).T)[0][:, :3]
    rows = [np.hstack([np.kron(one[None], np.eye(3)), np.eye(3)]) for one in g]
    x = np.linalg.lstsq(np.vstack(rows), ((r - middle) @ U1).ravel(), rcond=None)[0]
    # Round-off of 3000 counts.
    np.testing.assert_allclose(found.offset, middle + U1 @ x[9:], atol=1e-9)


def test_a_joint_that_moves_beyond_the_sensor_is_refused(rng):
    n = 500
    g = swinging(n)
    found = wrenches(g)
    bend = 0.15 * np.sin(np.arange(n) / 7.0)
    shin = np.column_stack([0.25 * np.sin(8 * bend), np.zeros(n), 0.25 * np.cos(8 * bend)])
    found[:, 3:] += 1.5 * np.cross(shin, g)
    with pytest.raises(LogError):
        in_situ_offset(counts(found), -g, matrix=MATRIX)


@pytest.mark.parametrize('n_excited', [0, 1])
def test_orientations_in_a_line_are_refused(n_excited):
    g = np.tile([0.0, 0.0, -GRAVITY], (50, 1))
    if n_excited:
        g[::2] = [0.0, 0.6 * GRAVITY, -0.8 * GRAVITY]
    with pytest.raises(LogError):
        in_situ_offset(counts(wrenches(g)), -g)


def test_near_the_plane_it_is_refused_just_below_the_limit(rng):
    angles = rng.uniform(0, 2 * np.pi, 400)
    for share, enough in ((0.9, False), (1.1, True)):
        tilt = np.sqrt(1 - (across := share * MIN_GRAVITY_SPREAD * np.resize([1, -1], 400)) ** 2)
        g = GRAVITY * np.column_stack([tilt * np.sin(angles), across, tilt * np.cos(angles)])
        assert (orientations(-g).n_excited == 3) is enough


def test_samples_that_move_or_are_touched_are_left_out_and_counted(rng):
    raw, a = noisy(rng, 600)
    clean = in_situ_offset(raw, a, matrix=MATRIX)
    pushed = rng.normal(size=(120, 6)) * np.repeat([8.0, 0.8], 3) + [0, 6, 4, 0, 0, 0.3]
    raw[:120] += np.linalg.solve(MATRIX, pushed.T).T
    a[200:250] *= 1.1
    raw[300, 2] = np.nan
    a[301, 0] = np.inf
    found = in_situ_offset(raw, a, matrix=MATRIX)
    assert found.left_out[MOVING] == 50 and found.left_out[NOT_FINITE] == 2
    # Some pushes are as small as noise.
    assert 115 <= found.left_out[TOUCHED] <= 120
    assert found.kept.sum() + sum(found.left_out.values()) == 600
    errors = (found.in_wrench(MATRIX)[0] - OFFSET) / clean.in_wrench(MATRIX)[1]
    assert np.abs(errors).max() < FIVE


def test_a_gyroscope_tells_what_turns(rng):
    raw, a = noisy(rng, 100)
    turning = np.zeros((100, 3))
    turning[:20, 1] = 1.0
    turning[30] = np.nan
    assert in_situ_offset(raw, a, turning=turning).left_out[MOVING] == 20


def test_what_is_touched_most_of_the_time_is_refused(rng):
    raw, a = noisy(rng, 400)
    raw[::2] += np.linalg.solve(MATRIX, (rng.normal(size=(200, 6)) * 20.0 * NOISE * 10).T).T
    with pytest.raises(LogError):
        in_situ_offset(raw, a, matrix=MATRIX)


def test_an_offset_that_drifts_is_no_touch_and_is_said(rng):
    raw, a = noisy(rng, 500)
    drift = np.array([2.0, 0.0, -3.0, 0.05, 0.0, 0.0])
    raw += np.linalg.solve(MATRIX, np.outer(drift, np.linspace(-0.5, 0.5, 500))).T
    found = in_situ_offset(raw, a, matrix=MATRIX)
    assert found.left_out[TOUCHED] == 0
    # The slope of 500 samples in time has a deviation of noise sqrt(12/500).
    limits = FIVE * NOISE * np.sqrt(12 / 500)
    assert (np.abs(found.drift(MATRIX)[0] - drift) < limits).all()
    assert any(one.code == 'offset_drift' for one in found.findings(MATRIX, 'ft'))


@pytest.mark.parametrize(('per_pose', 'of_accelerometer'), [(2, 0.005), (60, 0.02), (60, 0.1)])
def test_gravity_that_moves_on_with_time_is_no_drift(rng, per_pose, of_accelerometer):
    """From up to down, noise of the accelerometer alone tells time and gravity apart."""
    ratios = []
    for mixed in (False, True):
        for _ in range(15):
            order = rng.permutation(18) if mixed else np.arange(18)
            g = np.repeat(GRAVITY * evenly(18)[order], per_pose, axis=0)
            read = -g + of_accelerometer * rng.normal(size=g.shape)
            noise = NOISE * rng.normal(size=(len(g), 6))
            found = in_situ_offset(counts(wrenches(g) + noise), read, matrix=MATRIX)
            assert not any(one.code == 'offset_drift' for one in found.findings(MATRIX, 'ft'))
            drift, deviations = found.drift(MATRIX)
            ratios.append(drift / deviations)
    assert np.abs(ratios).max() < FIVE


def test_an_accelerometer_in_another_unit_is_named(rng):
    raw, a = noisy(rng, 50)
    with pytest.raises(LogError):
        in_situ_offset(raw, a / GRAVITY)


@pytest.mark.parametrize('reading', [np.zeros(6), np.array([1e4, 3.1, -7.7, 0.3, 1.0, 2.0])])
def test_a_frozen_sensor_is_refused(rng, reading):
    with pytest.raises(LogError):
        in_situ_offset(np.tile(reading, (100, 1)), -directions(rng, 100))


@pytest.mark.parametrize('dead', range(6))
@pytest.mark.parametrize('matrix', [None, MATRIX])
def test_a_channel_that_never_changes_is_named(rng, dead, matrix):
    raw, a = noisy(rng, 200)
    raw[:, dead] = 77.0
    with pytest.raises(LogError):
        in_situ_offset(raw, a, matrix=matrix)


def test_a_force_that_stands_still_is_named_and_the_moment_of_a_body_in_line_is_not(rng):
    g = directions(rng, 300)
    inline = g @ Weighed(2.0, np.array([0.0, 0.0, 0.3])).matrix.T + OFFSET
    inline += NOISE * rng.normal(size=inline.shape)
    assert in_situ_offset(inline, -g).offset[5] == pytest.approx(OFFSET[5], abs=NOISE[5])
    inline[:, 2] = OFFSET[2] + 1e-2 * rng.normal(size=300)
    with pytest.raises(LogError):
        in_situ_offset(inline, -g)


@pytest.mark.parametrize('matrix', [None, np.eye(6)])
def test_units_that_differ_by_channels_are_named_as_a_cause(rng, matrix):
    raw, a = noisy(rng, 300)
    raw *= np.logspace(0, 4, 6)
    with pytest.raises(LogError):
        in_situ_offset(raw, a, matrix=matrix)
    in_situ_offset(raw, a, matrix=MATRIX / np.logspace(0, 4, 6))


@pytest.mark.parametrize('gravity', [directions, lambda rng, n: swinging(n)])
@pytest.mark.parametrize('sign', [1, -1])
def test_a_channel_at_the_end_of_its_range_is_named(rng, gravity, sign):
    raw, a = noisy(rng, 600, gravity(rng, 600))
    raw *= sign
    end = np.quantile(raw[:, 1], 0.8)
    raw[:, 1] = np.minimum(raw[:, 1], end)
    with pytest.raises(LogError):
        in_situ_offset(raw, a, matrix=MATRIX)
    with pytest.raises(LogError):
        in_situ_offset(-raw, a, matrix=MATRIX)


def test_poses_that_are_held_and_coarse_converters_are_not_saturated(rng):
    # A sixth of all samples in each of six poses, without noise but for that of the accelerometer.
    poses = GRAVITY * np.repeat(np.vstack([np.eye(3), -np.eye(3)]), 50, axis=0)
    read = -poses + 0.03 * rng.normal(size=poses.shape)
    in_situ_offset(np.round(counts(wrenches(poses))), read, matrix=MATRIX)
    # A newton a step, of forces that swing by 28 N to both sides, and a tenth of a newton metre.
    g = directions(rng, 2000)
    steps = np.repeat([1.0, 0.1], 3)
    found = in_situ_offset(steps * np.round(wrenches(g) / steps), -g, matrix=np.eye(6))
    assert found.kept.sum() > 1900


def test_pushes_to_the_end_of_the_range_are_touches(rng):
    raw, a = noisy(rng, 600)
    raw[100:140, 1] = raw[:, 1].max() + 1000.0
    assert in_situ_offset(raw, a, matrix=MATRIX).left_out[TOUCHED] == 40


def test_a_bias_of_the_accelerometer_goes_into_the_force_as_documented(rng):
    g = directions(rng, 100)
    bias = np.array([0.05, -0.02, 0.03])
    found = in_situ_offset(counts(wrenches(g)), -g + bias, bias=np.zeros(3))
    # wrench = -M a there, so that a bias d of a moves the offset by M d.
    expected = OFFSET + np.vstack([2.9 * np.eye(3), hat(2.9 * np.array([0.01, -0.02, 0.15]))]) @ (
        bias
    )
    np.testing.assert_allclose(found.in_wrench(MATRIX)[0], expected, atol=1e-8)


@pytest.mark.parametrize('noise', [0.0, 0.02])
def test_orientations_all_around_tell_the_bias_of_the_accelerometer(rng, noise):
    g = directions(rng, 300)
    bias = np.array([0.1, -0.4, 0.7])
    read = -g + bias + noise * rng.normal(size=g.shape)
    found = in_situ_offset(counts(wrenches(g)), read, matrix=MATRIX)
    assert not any(found.left_out.values())
    limits = FIVE * found.bias.deviations + 1e-9
    assert (np.abs(found.bias.bias - bias) <= limits).all()
    offset, deviations = found.in_wrench(MATRIX)
    assert (np.abs(offset - OFFSET) <= FIVE * deviations + 1e-8).all()


def test_the_deviations_of_the_bias_are_those_of_many_draws(rng):
    errors = []
    for _ in range(60):
        g = directions(rng, 100)
        found = accelerometer_bias(-g + [0.3, 0.0, 0.0] + 0.02 * rng.normal(size=g.shape))
        errors.append((found.bias - [0.3, 0.0, 0.0]) / found.deviations)
    assert 0.75 < np.sqrt(np.mean(np.square(errors))) < 1.35


def test_gains_that_differ_by_a_percent_are_no_bias(rng):
    """In a few poses that are held; the error of a pose is the same in all of its samples."""
    ratios = []
    for _ in range(40):
        held = np.repeat(directions(rng, 20), 50, axis=0) * (1.0 + 0.01 * rng.normal(size=3))
        found = accelerometer_bias(-held + 0.02 * rng.normal(size=held.shape))
        ratios.append(found.bias / found.deviations)
    # Were samples independent it would be 14.
    assert 0.6 < np.sqrt(np.mean(np.square(ratios))) < 2.0


def test_what_is_not_known_of_the_bias_is_part_of_the_deviations(rng):
    errors = []
    for _ in range(40):
        g = directions(rng, 60)
        raw = counts(wrenches(g) + 0.01 * NOISE * rng.normal(size=(60, 6)))
        held = (1.0 + 0.005 * rng.normal(size=60))[:, None] * -g + [0.0, 0.4, 0.0]
        found, deviations = in_situ_offset(raw, held, matrix=MATRIX).in_wrench(MATRIX)
        errors.append(((found - OFFSET) / deviations)[:3])
    assert 0.6 < np.sqrt(np.mean(np.square(errors))) < 1.3


def test_a_leg_that_swings_tells_no_bias(rng):
    g = swinging(500) * [1.01, 0.99, 1.0]
    found = accelerometer_bias(-g)
    assert np.isinf(found.deviations).all() and not found.is_significant
    assert not found.bias.any()
