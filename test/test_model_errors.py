# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What several poses tell of offsets and of errors of the model, and how well means are known.

The readings come from a robot whose masses the estimator has wrong by a known amount.
"""

import numpy as np
import pytest
from scipy.signal import lfilter
from standing_biped import biped, standing

from inertial_estimation.calibration.model_errors import pose_errors
from inertial_estimation.calibration.serial_means import deviations_of_means
from inertial_estimation.calibration.supported_offsets import supported_offsets
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

EXACT = 1e-9
ARM = 4
LACKING = 0.3
"""Mass that the model's hand lacks [kg]."""
AT = np.array([0.1, -0.2, 0.05])
"""Where in the hand [m]."""
UPWARD = ([0.0, 0.0, 1.0], [0.0, 0.8, 0.6], [1.0, 0.0, 0.2], [0.3, -0.9, 0.1])


def held(robot: Robot, rng, offsets, ups, noise=0.0):
    """Return poses that are held for a second each."""
    samples = []
    positions = rng.uniform(-0.8, 0.8, len(robot.joint_names))
    for pose, up in enumerate(ups):
        shot = standing(robot, positions + 0.2 * pose, {'root': 1.0}, up=up)
        for k in range(100):
            readings = shot.ft_readings + offsets + rng.normal(0.0, noise, (5, 6))
            stamp = 1_000_000_000 * (1 + pose) + 10_000_000 * k
            samples.append(shot._replace(stamp_ns=stamp, ft_readings=readings))
    return SampleBatch.stack(samples)


def with_lighter_hand(robot: Robot) -> np.ndarray:
    """Return parameters in which the hand lacks a point mass."""
    parameters = robot.parameters.copy()
    hand = robot.link_names.index('hand')
    parameters[hand, 0] -= LACKING
    parameters[hand, 1:4] -= LACKING * AT
    return parameters


@pytest.fixture
def robot():
    return biped()


@pytest.fixture
def offsets(rng):
    return rng.normal(0.0, 10.0, (5, 6))


def test_poses_that_agree_are_offsets(robot, rng, offsets):
    samples = held(robot, rng, offsets, UPWARD, noise=0.01)
    found = supported_offsets(WrenchEstimator(robot), samples, ['root'])
    # Five standard deviations of a mean of 400 readings with noise of 0.01.
    np.testing.assert_allclose(found.offsets, offsets, atol=2.5e-3)
    for poses in found.poses.values():
        assert poses.verdict.startswith('offset: 4 poses agree within 0.')
        assert len(poses.residuals) == 4
        assert poses.turn > 1.0


def test_what_turns_with_gravity_is_told_from_the_offset(robot, rng, offsets):
    samples = held(robot, rng, offsets, UPWARD)
    lighter = WrenchEstimator(robot.with_parameters(with_lighter_hand(robot)))
    found = supported_offsets(lighter, samples, ['root'])
    arm = found.poses['arm']
    assert arm.verdict.startswith('model error: 4 poses differ by')
    assert '100 % of it as if +0.30 kg were lacking' in arm.verdict
    assert arm.mass == pytest.approx(LACKING, abs=EXACT)
    np.testing.assert_allclose(arm.first_moment, LACKING * AT, atol=EXACT)
    np.testing.assert_allclose(arm.remaining, 0.0, atol=EXACT)
    assert np.abs(found.offsets[ARM] - offsets[ARM]).max() > 0.5
    np.testing.assert_allclose(found.offsets[ARM] + arm.constant, offsets[ARM], atol=EXACT)
    assert found.poses['l_leg'].verdict.startswith('offset')


def test_the_side_that_is_summed_may_be_the_one_above(robot, rng, offsets):
    # Carried by the hand, its sensor feels all that hangs on it: what lacks there is in the root.
    positions = rng.uniform(-0.8, 0.8, len(robot.joint_names))
    shots = [standing(robot, positions, {'hand': 1.0}, up=up) for up in UPWARD]
    samples = SampleBatch.stack([
        shot._replace(stamp_ns=1 + 10_000_000 * (100 * p + k))
        for p, shot in enumerate(shots) for k in range(100)
    ])  # fmt: skip
    parameters = robot.parameters.copy()
    parameters[0, 0] -= LACKING
    found = supported_offsets(
        WrenchEstimator(robot.with_parameters(parameters)), samples, ['hand']
    )
    assert found.poses['arm'].mass == pytest.approx(LACKING, abs=EXACT)


@pytest.mark.parametrize(
    ('ups', 'said'),
    [
        (UPWARD[:1], 'one pose: an error of the model cannot be told from the offset'),
        (([0.0, 0.0, 1.0], [0.0, 0.15, 1.0]), 'degrees only: an error of the model cannot'),
    ],
)
def test_too_little_turning_tells_nothing(robot, rng, offsets, ups, said):
    positions = rng.uniform(-0.8, 0.8, len(robot.joint_names))
    shots = [standing(robot, positions, {'root': 1.0}, up=up) for up in ups]
    samples = SampleBatch.stack([
        shot._replace(stamp_ns=1 + 10_000_000 * (50 * p + k))
        for p, shot in enumerate(shots) for k in range(50)
    ])  # fmt: skip
    lighter = WrenchEstimator(robot.with_parameters(with_lighter_hand(robot)))
    found = supported_offsets(lighter, samples, ['root'])
    assert said in found.poses['arm'].verdict
    assert np.isnan(found.poses['arm'].mass)


def test_what_turns_with_something_else_is_no_mass(rng):
    gravity = 9.81 * np.array([[0, 0, -1.0], [1, 0, 0], [0, 1, 0], [0, -0.6, 0.8]])
    wrong = np.zeros((4, 6))
    wrong[:, :3] = [[3, 0, 0], [-3, 3, 0], [0, 3, 3], [2, 0, 0]]
    labels = np.repeat(np.arange(4), 20)
    found = pose_errors(wrong[labels], gravity[labels], labels, 1.0)
    assert 'not as a wrong mass would' in found.verdict


@pytest.mark.parametrize(('n', 'most'), [(2, 0.45), (3, 0.2)])
def test_moments_that_differ_by_chance_are_seldom_put_down_to_a_mass(rng, n, most):
    """A first moment explains two of the three numbers by which two poses differ."""
    called = 0
    labels = np.repeat(np.arange(n), 20)
    for _ in range(200):
        gravity = rng.normal(size=(n, 3))
        gravity *= 9.81 / np.linalg.norm(gravity, axis=1)[:, None]
        wrong = np.hstack([np.zeros((n, 3)), rng.normal(size=(n, 3))])
        found = pose_errors(wrong[labels], gravity[labels], labels, 1.0)
        called += 'were lacking' in found.verdict
    # Without regard to that 0.55 and 0.3 of them are; 200 draws tell it to 0.03.
    assert called < 200 * most


@pytest.mark.parametrize('memory', [0.0, 0.9])
def test_means_of_samples_that_resemble_their_neighbours(rng, memory):
    # First-order noise: its correlations add up to (1 + memory) / (1 - memory).
    n, repeats = 2000, 300
    noise = rng.normal(size=(n + 200, repeats))
    signal = np.empty_like(noise)
    last = np.zeros(repeats)
    for k, row in enumerate(noise):
        signal[k] = last = memory * last + row
    signal = signal[200:]
    told = deviations_of_means(signal)
    # The spread of 300 means is known to 4 %, and the figure is a little short of the truth.
    assert np.median(told) == pytest.approx(signal.mean(axis=0).std(), rel=0.15)


def test_means_of_signals_of_ten_times_their_memory(rng):
    """A tare of two seconds while a robot sways; its mean follows the sway."""
    signal = lfilter([1.0], [1.0, -0.9], rng.normal(size=(400, 400)), axis=0)[200:]
    ratios = signal.mean(axis=0) / deviations_of_means(signal)
    # Of 400 means; it would be 1.4 if the mean were taken for the truth.
    assert 0.9 < np.sqrt(np.mean(ratios**2)) < 1.3
    white = rng.normal(size=(10, 400))
    ratios = white.mean(axis=0) / deviations_of_means(white)
    assert 0.8 < np.sqrt(np.mean(ratios**2)) < 1.2


def test_deviations_of_short_and_constant_signals():
    assert np.isnan(deviations_of_means(np.ones((1, 2)))).all()
    np.testing.assert_array_equal(deviations_of_means(np.full((50, 2), 7.0)), 0.0)
    drift = np.linspace(0.0, 1.0, 100)[:, None]
    assert deviations_of_means(drift) > 0.1, 'a drift is no hundred samples'


def test_poses_that_differ_though_gravity_hardly_turns_are_said_to(rng):
    gravity = 9.81 * np.array([[0, 0, -1.0], [0, -0.1, -0.995]])
    labels = np.repeat(np.arange(2), 50)
    differences = 0.1 * rng.normal(size=(100, 6))
    alike = pose_errors(differences, gravity[labels], labels, 1.0).verdict
    assert alike.startswith('gravity turns by 6 degrees only') and 'differ' not in alike
    differences[50:, 0] += 15.0
    verdict = pose_errors(differences, gravity[labels], labels, 1.0).verdict
    assert 'which holds both, and 2 poses differ by 7.5 N' in verdict
