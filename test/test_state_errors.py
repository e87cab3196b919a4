# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Errors in the variables of a regression, and rows without them.

Not covered: what they do to a whole robot, which is in test_background.
"""

from dataclasses import replace

import numpy as np
import pytest
from robots import nested_humanoid_urdf, random_sample

from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.errors_in_variables import (
    StateErrors,
    StateNoise,
    WhiteNoise,
    errors_of_wandered,
    perturbation_errors,
    without_state_errors,
)
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.row_space import eliminated, wandered
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

N = 4000
# Four standard deviations of means of so many rows.
CLOSE = 4.0 / np.sqrt(N)


def noisy_rows(rng, errors, y_errors, x, spread=1.0):
    """Return rows whose columns have errors, and those errors."""
    true = spread * rng.normal(size=(N, len(x)))
    E, e = errors * rng.normal(size=true.shape), y_errors * rng.normal(size=N)
    return true + E, true @ x + 0.1 * rng.normal(size=N) + e, np.column_stack([E, e])


def solved(information):
    return np.linalg.lstsq(information.R, information.rho, rcond=None)[0]


def test_least_squares_is_attenuated_and_this_is_not(rng):
    x = np.array([2.0, -1.0, 0.5])
    Y, y, _ = noisy_rows(rng, 0.4, 0.0, x)
    _, _, again = noisy_rows(rng, 0.4, 0.0, x)
    plain, errors = Information.of(Y, y), StateErrors.of([again], 3)
    # 0.16 of 1.16.
    np.testing.assert_allclose(solved(plain), x / 1.16, atol=5 * CLOSE)
    np.testing.assert_allclose(solved(without_state_errors(plain, errors, x)), x, atol=5 * CLOSE)
    # About another x0 it is right too: both products are.
    found = solved(without_state_errors(plain, errors, np.zeros(3)))
    np.testing.assert_allclose(found, x, atol=8 * CLOSE)


def test_errors_that_the_right_side_shares_are_counted(rng):
    x, E = np.array([2.0, -1.0]), 0.3 * rng.normal(size=(N, 2))
    true = rng.normal(size=(N, 2))
    # y errs as the first column does: the first unknown is attenuated by less, or by more.
    y = true @ x + 1.5 * E[:, 0]
    E2 = 0.3 * rng.normal(size=(N, 2))
    errors = StateErrors.of([np.column_stack([E2, 1.5 * E2[:, 0]])], 2)
    plain = Information.of(true + E, y)
    assert np.abs(solved(plain) - x).max() > 0.05
    # Without them the first would be off by 1.5 x 0.09, which is twice this.
    np.testing.assert_allclose(solved(without_state_errors(plain, errors, x)), x, atol=CLOSE)


def test_what_errors_alone_move_is_not_told(rng):
    """The first unknown multiplies one constant and noise: an offset passes for it."""
    E = 0.05 * rng.normal(size=N)
    Y = np.column_stack([9.81 + E, np.ones(N)])
    y = 9.81 * 3.0 + 0.1 * rng.normal(size=N)
    plain = Information.of(Y, y)
    assert solved(plain)[0] < 1.0
    again = np.column_stack([0.05 * rng.normal(size=N), np.zeros(N), np.zeros(N)])
    x0 = np.array([3.0, 0.0])
    found = without_state_errors(plain, StateErrors.of([again], 2), x0)
    strengths = np.linalg.svd(found.R, compute_uv=False)
    assert strengths[1] < 1e-6 * strengths[0]
    # All that is left is the sum, and the least change of x0 that fits it is none.
    rest = found.rho - found.R @ x0
    change = np.linalg.lstsq(found.R, rest, rcond=1e-6)[0]
    np.testing.assert_allclose(change, 0.0, atol=1e-3)


def test_what_only_errors_move_spoils_nothing_else(rng):
    """As rows of kinds that hold no more than a few directions of all unknowns."""
    n, told = 8, 3
    base, x = rng.normal(size=(told, n)), rng.normal(size=n)
    plain = Information.of(rng.normal(size=(N, told)) @ base, rng.normal(size=N))
    H = plain.R.T @ plain.R
    outside = np.linalg.svd(base)[2][told:]
    inside = 0.1 * rng.normal(size=(N, told)) @ base
    beyond = 0.1 * rng.normal(size=(N, n - told)) @ outside
    rows = [np.column_stack([inside, np.zeros(N)]), np.column_stack([beyond, np.zeros(N)])]
    # Errors of the two have nothing in common.
    alone, both = StateErrors.of(rows[:1], n), StateErrors.of(rows[:1], n)
    both = both.add(StateErrors.of(rows[1:], n))
    for errors in (alone, both):
        found = without_state_errors(plain, errors, x)
        # Least squares of squares, over a direction that is told by a hundredth of the largest.
        np.testing.assert_allclose(
            found.R.T @ found.R, H - alone.gram, atol=1e-10 * np.abs(H).max()
        )
        wanted = plain.R.T @ (plain.rho - plain.R @ x) + alone.gram @ x
        right = found.R.T @ (found.rho - found.R @ x)
        np.testing.assert_allclose(right, wanted, atol=1e-10 * np.abs(wanted).max())


def test_directions_with_a_quarter_of_errors_are_dropped(rng):
    plain = Information.of(rng.normal(size=(N, 3)), rng.normal(size=N))
    H = plain.R.T @ plain.R
    errors = StateErrors(0.5 * H, np.zeros(3))
    assert not without_state_errors(plain, errors, np.ones(3)).R.any()
    errors = StateErrors(0.2 * H, np.zeros(3))
    found = without_state_errors(plain, errors, np.ones(3))
    np.testing.assert_allclose(found.R.T @ found.R, 0.8 * H, atol=1e-9 * np.abs(H).max())


@pytest.mark.parametrize('deviation', [0.3, np.inf])
def test_errors_that_two_bodies_share_stay_when_one_is_let_go(rng, deviation):
    """The second only weighs; noise of one accelerometer goes into both."""
    motion, e, again = rng.normal(size=N), *(0.3 * rng.normal(size=(2, N)))
    constant = np.full(N, 9.81)
    y = 2.0 * motion + constant + 0.1 * rng.normal(size=N)
    rows = Information.of(np.column_stack([motion + e, constant + 3.0 * e]), y)
    errors = StateErrors.of([np.column_stack([again, 3.0 * again, np.zeros(N)])], 2)
    columns, by = np.array([1]), np.array([deviation])
    left = wandered(rows, columns, by)
    kept = errors_of_wandered(errors, rows, columns, by)
    changed = np.array([2.0, 5.0])
    first = eliminated(without_state_errors(left, kept, changed), columns)
    plain = eliminated(left, columns)
    assert plain.rho[0] / plain.R[0, 0] == pytest.approx(1.6, abs=2 * CLOSE)
    # Of an error that is as large as the motion, two times over.
    assert first.rho[0] / first.R[0, 0] == pytest.approx(2.0, abs=2 * CLOSE)
    # Of the second one itself nothing is left.
    assert np.abs(kept.gram[1]).max() < 1e-3 * errors.gram[0, 0]
    assert errors_of_wandered(errors, rows, columns, np.zeros(1)) is errors


def test_errors_fade_and_are_let_go_as_rows_are(rng):
    one, other = (StateErrors.of([rng.normal(size=(9, 4))], 3) for _ in range(2))
    both = one.add(other, kept=0.25)
    np.testing.assert_allclose(both.gram, 0.25 * one.gram + other.gram)
    np.testing.assert_allclose(both.cross, 0.25 * one.cross + other.cross)
    left = both.without(np.array([1]))
    assert not left.gram[1].any() and not left.gram[:, 1].any() and not left.cross[1]
    assert left.gram[0, 2] == both.gram[0, 2]


def test_rows_are_shaken_as_much_as_samples_are(rng):
    """Held against rows of the same motion with other noise, many times."""
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['root', 'head'])
    sample = random_sample(robot, rng)
    still = SampleBatch.stack([sample] * 200)
    joints = np.diag([1e-4, 1e-3, 1e-2]) ** 2
    imus = np.diag([3e-3, 3e-2, 1e-1]) ** 2
    noise = StateNoise.of(
        np.tile(joints, (len(robot.joint_names), 1, 1)), np.tile(imus, (2, 1, 1))
    )
    builder = EquationBuilder(robot, EquationChoice(offsets=('arm_sensor',)))
    shaken = builder.equations(noise.perturbed(still, rng))
    found = [perturbation_errors(builder, still, noise, rng) for _ in range(8)]
    for k, (block, kinds) in enumerate(zip(builder.blocks, shaken, strict=True)):
        n = len(block.unknowns)
        for kind, rows in kinds.items():
            spread = np.var(rows.Y, axis=0) * len(rows.Y)
            stated = np.mean([np.square(one[k][kind][:, :n]).sum(axis=0) for one in found], axis=0)
            heard = spread > 1e-3 * spread.max()
            # 200 rows each: a tenth is one standard deviation of their ratio.
            np.testing.assert_allclose(stated[heard] / spread[heard], 1.0, atol=0.5)
            assert stated[~heard].max(initial=0.0) < 1e-2 * spread.max(initial=1.0)


def moving(rng, seconds=1.0, noise=0.0):
    t = np.arange(round(100 * seconds)) / 100
    signals = 0.3 * np.sin(2 * np.pi * t[:, None] * [0.5, 1.0, 2.0] + [0.1, 0.2, 0.3])
    return signals + noise * rng.normal(size=signals.shape)


def test_white_noise_is_seen_through_motion(rng):
    levels = WhiteNoise()
    for _ in range(60):
        found = levels.update(moving(rng, noise=1e-3))
    # Of 60 stretches of 96 differences, of which four in a row have much in common.
    np.testing.assert_allclose(np.sqrt(found), 1e-3, rtol=0.1)
    assert (np.sqrt(WhiteNoise().update(moving(rng))) < 1e-4).all()


def test_what_shakes_for_a_while_is_no_noise(rng):
    levels = WhiteNoise()
    for k in range(60):
        found = levels.update(moving(rng, noise=1e-2 if k % 3 else 1e-3))
    np.testing.assert_allclose(np.sqrt(found), 1e-3, rtol=0.2)


def test_stuck_readings_do_not_lower_white_noise(rng):
    levels = WhiteNoise()
    for k in range(20):
        stuck = k in {0, 7}
        found = levels.update(np.ones((100, 9)) if stuck else rng.normal(size=(100, 9)))
        assert not found.any() if stuck else found.all()
    # One low level of a few may not be the mean of many yet.
    assert np.median(found) == pytest.approx(1.0, abs=0.2)


def noisy_samples(robot, rng, encoder):
    """Return a robot at rest whose encoders have noise, and whose IMUs have none."""
    still = SampleBatch.stack([random_sample(robot, rng)] * 100)
    still.positions[:] = still.positions + encoder * rng.normal(size=still.positions.shape)
    return still


def test_stated_noise_is_no_more_than_samples_show(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['root'])
    n = len(robot.joint_names)
    # Of positions 1e-3 and what a filter derives from them; of an IMU 0.03.
    root = np.array([[1e-3, 0, 0], [1e-2, 1e-2, 0], [0.3, 0.2, 0.1]])
    noise = StateNoise.of(np.tile(root @ root.T, (n, 1, 1)), np.eye(3)[None] * 0.03**2)
    samples, levels = noisy_samples(robot, rng, 1e-4), WhiteNoise()
    found = noise.at_most(samples, levels)
    # A tenth of what is stated, derivatives too: 100 samples tell it to a fifth.
    size = np.sqrt(np.linalg.eigvalsh(found.joints @ found.joints.transpose(0, 2, 1)))
    stated = np.sqrt(np.linalg.eigvalsh(root @ root.T))
    np.testing.assert_allclose(size / stated, 0.1, rtol=0.5)
    assert np.abs(found.imus).max() < 1e-12
    # More than is stated it never is, and filtered readings tell nothing of their noise.
    louder = noise.at_most(noisy_samples(robot, rng, 1e-2), WhiteNoise())
    np.testing.assert_allclose(louder.joints, noise.joints)
    smooth = replace(noise, is_white=False)
    assert smooth.at_most(samples, levels) is smooth


def test_acceleration_noise_is_capped_with_positions(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['root'])
    joints = np.array([[1e-6, 0, 1e-5], [0, 1e-4, 0], [1e-5, 0, 1e-2]])
    joints_of_all = np.tile(joints, (len(robot.joint_names), 1, 1))
    noise = StateNoise.of(joints_of_all, np.zeros((1, 3, 3)), measures_velocities=True)
    found = noise.at_most(noisy_samples(robot, rng, 1e-4), WhiteNoise())
    shares = np.linalg.norm(found.joints, axis=2) / np.sqrt(np.diag(joints))
    # Velocities stand still.
    assert not shares[:, 1].any()
    np.testing.assert_allclose(shares[:, 0], 0.1, rtol=0.5)
    np.testing.assert_allclose(shares[:, 2], shares[:, 0])
