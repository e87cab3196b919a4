# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Filtered logs: delay, gaps, derivatives, and the weight of correlated equations.

Then errors of the measured motion in equations, and their removal.

Not covered: a cutoff that the settings state against the one that follows from the motion.
"""

from dataclasses import replace

import numpy as np
import pytest
from robots import nested_humanoid_urdf, random_sample, two_link_urdf

from inertial_estimation import EquationBuilder, EquationChoice, Robot, SampleBatch
from inertial_estimation.errors import LogError
from inertial_estimation.identification.equations.builder import Observed
from inertial_estimation.identification.errors_in_variables import (
    StateNoise,
    WhiteNoise,
    errors_of_wandered,
    perturbation_errors,
    without_state_errors,
)
from inertial_estimation.identification.evidence import determined, gather
from inertial_estimation.identification.fit import fit
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.preparation import (
    EDGE,
    MotionSpectrum,
    Preparation,
    cutoff_problems,
    independent_share,
    prepare,
)
from inertial_estimation.identification.row_space import eliminated, wandered
from inertial_estimation.identification.unknowns import Term

RATE = 500.0
# What jittering stamps leave of 1 Hz, between which straight lines are drawn.
SMALL = 1e-3


def joint_log(t, positions, efforts=None):
    """Return a log of joints, (n, n_joints)."""
    nothing = np.full(positions.shape, np.nan)
    empty = np.zeros((len(t), 0, 3))
    return SampleBatch(
        np.round(t * 1e9).astype(np.int64) + 10**9, positions, nothing, nothing, empty, empty,
        empty, np.zeros((len(t), 0, 6)), efforts=efforts,
    )  # fmt: skip


def sines(t):
    """Return a log of two joints, an IMU and an FT sensor that follow sines of 1 Hz."""
    phase = 2 * np.pi * t[:, None] + np.arange(2)
    turning = (2 * np.pi * t[:, None] + np.arange(3))[:, None]
    return replace(
        joint_log(t, np.sin(phase), np.cos(phase)),
        angular_velocities=np.sin(turning),
        proper_accelerations=np.cos(turning),
        angular_accelerations=np.full(turning.shape, np.nan),
        ft_readings=np.tile(np.sin(phase[:, :1, None]), (1, 1, 6)),
    )


def assert_sines(found):
    w, t = 2 * np.pi, (found.stamp_ns * 1e-9 - 1)[:, None]
    phase = w * t + np.arange(2)
    for values, truth in (
        (found.positions, np.sin(phase)),
        (found.velocities / w, np.cos(phase)),
        (found.accelerations / w**2, -np.sin(phase)),
        (found.efforts, np.cos(phase)),
        (found.angular_accelerations[:, 0] / w, np.cos(w * t + np.arange(3))),
    ):
        np.testing.assert_allclose(values, truth, rtol=0, atol=SMALL)


@pytest.mark.parametrize('jitter', [0.0, 0.3])
def test_signals_and_their_derivatives_have_no_delay(jitter, rng):
    t = (np.arange(2000) + jitter * rng.uniform(-1, 1, 2000)) / RATE
    found = prepare(sines(t), Preparation(cutoff=20.0))
    assert_sines(found.samples)
    assert found.period == pytest.approx(1 / RATE, rel=jitter + 1e-9)


def test_edges_short_parts_and_missing_values_are_cut_off():
    t = np.arange(3000) / RATE
    t = np.delete(t, np.s_[1500:1700])
    t = np.delete(t, np.s_[-120:-80])
    raw = sines(t)
    raw.ft_readings[700, 0, 2] = np.nan
    found = prepare(raw, Preparation(cutoff=20.0, largest_gap=0.05)).samples
    assert_sines(found)
    kept = found.stamp_ns * 1e-9 - 1
    assert not ((kept > 3.0 - 0.2) & (kept < 3.4 + 0.19)).any()
    near = np.abs(kept - 700 / RATE) <= 0.2 + 1e-9
    assert (np.isnan(found.ft_readings[:, 0, 2]) == near).all()
    assert np.isfinite(found.ft_readings[:, 0, :2]).all()


@pytest.mark.parametrize('cutoff', [None, 20.0])
def test_log_without_a_part_is_refused(cutoff):
    raw = sines(np.arange(40) / RATE)
    with pytest.raises(LogError):
        prepare(raw, Preparation(cutoff=cutoff, largest_gap=0.5 / RATE))


def test_decimation_and_measured_velocities():
    raw = sines(np.arange(2000) / RATE)
    found, every = (prepare(raw, Preparation(every=n)).samples for n in (1, 7))
    np.testing.assert_array_equal(every.accelerations, found.accelerations[::7])
    raw = replace(raw, velocities=2 * raw.positions)
    found = prepare(raw, Preparation(measured_velocities=True)).samples
    np.testing.assert_allclose(found.velocities, 2 * found.positions, atol=1e-12)


def test_default_decimation_keeps_the_mean_of_products(rng):
    noise = rng.normal(size=(60 * int(RATE), 3))
    raw = sines(np.arange(len(noise)) / RATE)
    raw = replace(raw, efforts=noise[:, :2], angular_velocities=noise[:, None])
    found, all_samples = (prepare(raw, Preparation(every=n)).samples for n in (0, 1))
    assert 15 * len(found) < len(all_samples)
    means = [one.efforts.T @ one.efforts / len(one) for one in (found, all_samples)]
    short = prepare(raw.take(np.arange(round(0.7 * RATE))), Preparation()).samples
    assert 10 <= len(short) < 30
    # One sample more or less at the ends, of 158.
    np.testing.assert_allclose(means[0], means[1], atol=0.01 * np.trace(means[1]))


@pytest.mark.parametrize(
    ('cutoff', 'every', 'noise', 'count'),
    [
        (20, 10, 0.0, 0), (21, 10, 0.0, 1), (0, 10, 0.0, 1), (240, 1, 0.0, 0),
        (100, 1, 1e-3, 1), (0, 10, 1e-3, 2), (None, 1, 1e-3, 0), (None, 100, 1e-3, 0),
    ],
)  # fmt: skip
def test_cutoffs_that_leave_noise_or_fold_back_are_found(cutoff, every, noise, count, rng):
    raw = sines(np.arange(6000) / RATE)
    raw = replace(raw, angular_velocities=np.zeros_like(raw.angular_velocities))
    positions = raw.positions + noise * rng.normal(size=raw.positions.shape)
    found = prepare(replace(raw, positions=positions), Preparation(cutoff=cutoff, every=every))
    assert len(list(cutoff_problems(found))) == count


def test_friction_turns_like_filtered_efforts_and_not_at_rest():
    t, w = np.arange(8000)[:, None] * 0.001000123, 2 * np.pi * 1.1
    moving, still = np.sin(w * t), np.full_like(t, 2.345)
    raw = joint_log(t[:, 0], np.hstack([moving, still]), np.tile(np.sign(np.cos(w * t)), 2))
    found = prepare(raw, Preparation()).samples
    # A turn falls between two samples: 1 ms at 40 per second, the slope of the low pass.
    direction = found.directions[:, 0]
    np.testing.assert_allclose(direction, found.efforts[:, 0], rtol=0, atol=0.05)
    assert np.abs(direction - np.sign(found.velocities[:, 0])).max() > 0.9
    for values in (found.velocities, found.accelerations, found.directions):
        assert not values[:, 1].any()


STEP = 1e-3
LOGS = 60
# Of a standard deviation from 60 logs; three times 1 / sqrt(2 * 60).
SCATTER = 0.27
TERMS = (Term.VISCOUS, Term.OFFSET)


@pytest.fixture(scope='module')
def builder():
    robot = Robot.from_urdf(two_link_urdf(), fixed_link='body')
    return EquationBuilder(
        robot, EquationChoice(wrenches=False, efforts=('elbow',), friction=TERMS)
    )


@pytest.fixture(scope='module')
def motion(builder):
    """Return a log without noise."""
    t = np.arange(5000)[:, None] * STEP
    q = 0.8 * np.sin(3.1 * t) + 0.5 * np.sin(6.9 * t + 1.0)
    raw = joint_log(t[:, 0], q, np.zeros_like(q))
    found = prepare(raw, Preparation(cutoff=0.0, edges=0.0)).samples
    Y, y, _ = builder.equations(found)[0]['effort elbow']
    x = builder.blocks[0].unknowns.join(builder.robot.parameters, np.array([0.7, 0.2]))
    return replace(found, efforts=(Y @ x - y)[:, None])


@pytest.mark.parametrize('every', [0, 1, 40, 100])
# A prior of more weight would hold answers together that are as uncertain as stated.
@pytest.mark.parametrize(
    ('method', 'options'), [('least_squares', {}), ('entropic', {'weight': 0.1})]
)
def test_deviations_are_those_of_many_logs(builder, motion, every, method, options):
    how = Preparation(every=every)
    values, stated = [], []
    for k in range(LOGS):
        noise = 0.3 * np.random.default_rng(k).normal(size=motion.efforts.shape)
        found = prepare(replace(motion, efforts=motion.efforts + noise), how)
        evidence = gather(builder, found.samples, share=independent_share(found))
        answer = fit(builder.robot, evidence, method, options).blocks[0].answer
        values.append(answer.x[-len(TERMS) :])
        stated.append(answer.deviations[-len(TERMS) :])
    mean = np.sqrt(np.mean(np.square(stated), axis=0))
    np.testing.assert_allclose(mean / np.std(values, axis=0), 1.0, rtol=0, atol=SCATTER)


@pytest.mark.parametrize('seconds', [1.0, 10.0])
@pytest.mark.parametrize('method', ['least_squares', 'entropic'])
def test_truth_is_within_deviations_with_noise_of_encoders(builder, seconds, method, rng):
    """An exact URDF, and a motion from point to point."""
    t = np.arange(3000) / 50.0
    k, u = np.divmod(t / seconds, 1.0)
    targets = np.append(0.0, rng.uniform(-1.5, 1.5, 61))
    start, moved = targets[k.astype(int)], np.diff(targets)[k.astype(int)]
    q = (start + moved * (10 * u**3 - 15 * u**4 + 6 * u**5))[:, None]
    raw = joint_log(t, q, np.zeros_like(q))
    exact = prepare(raw, Preparation(cutoff=0.0, edges=0.0)).samples
    Y, y, _ = builder.equations(exact)[0]['effort elbow']
    truth = builder.blocks[0].unknowns.join(builder.robot.parameters, np.array([0.7, 0.2]))
    raw = raw.take(slice(EDGE, len(raw) - EDGE))
    errors = []
    for _ in range(10):
        noisy = replace(
            raw,
            positions=raw.positions + 1e-4 * rng.normal(size=raw.positions.shape),
            efforts=(Y @ truth - y + 0.005 * rng.normal(size=len(y)))[:, None],
        )
        found = prepare(noisy, Preparation())
        evidence = gather(builder, found.samples, share=independent_share(found))
        (block,) = fit(builder.robot, evidence, method).blocks
        known = determined(block.evidence.block, builder.bases[0].whole, block.information)
        combined = known.seen.grouping @ (block.answer.x - truth)
        errors.append(combined / known.deviations)
    # Of 50 numbers of unit variance: four deviations of their root mean square.
    assert np.sqrt(np.mean(np.square(errors))) < 1.4


@pytest.mark.parametrize('frequency', [0.2, 1.0, 5.0])
def test_cutoff_is_above_the_motion_and_below_its_noise(frequency, rng):
    t = np.arange(6000)[:, None] / RATE
    q = np.sin(2 * np.pi * frequency * t) + 1e-4 * rng.normal(size=t.shape)
    found = MotionSpectrum.of([(q, 2)], 1 / RATE).cutoff
    assert frequency < found < 10 * frequency
    # What rests adds nothing; units do not matter.
    both = np.hstack([1e3 * q, np.ones_like(q)])
    at_rest = np.zeros((len(t), 3))
    other = MotionSpectrum.of([(both, 2), (at_rest, 1)], 1.0)
    assert other.cutoff == pytest.approx(found / RATE)


# ---- Errors of the measured motion

N = 4000
# Four standard deviations of means of this number of equations.
CLOSE = 4.0 / np.sqrt(N)


def products(*errors):
    """Return the products of errors [dY dy] of some equations."""
    stacked = np.column_stack(errors)
    return stacked.T @ stacked


def solution(information):
    return np.linalg.lstsq(information.R, information.rho, rcond=None)[0]


@pytest.mark.parametrize('shared', [0.0, 1.5])
def test_attenuation_is_removed(rng, shared):
    """Y errs with the first column by some factor."""
    x, true = np.array([2.0, -1.0, 0.5]), rng.normal(size=(N, 3))
    E, again = 0.4 * rng.normal(size=(2, N, 3))
    y = true @ x + 0.1 * rng.normal(size=N) + shared * E[:, 0]
    plain = Information.of(true + E, y)
    errors = products(again, shared * again[:, 0])
    # Errors have 0.16 of 1.16 of the squares.
    attenuated = (x + 0.16 * shared * np.eye(3)[0]) / 1.16
    np.testing.assert_allclose(solution(plain), attenuated, atol=5 * CLOSE)
    for x0 in (x, np.zeros(3)):
        found = solution(without_state_errors(plain, errors, x0)[0])
        np.testing.assert_allclose(found, x, atol=8 * CLOSE)


def test_unknown_that_only_errors_distinguish_is_not_determined(rng):
    """The first unknown multiplies a constant and noise: an offset has the same equations."""
    E, again = 0.05 * rng.normal(size=(2, N))
    y = 9.81 * 3.0 + 0.1 * rng.normal(size=N)
    plain = Information.of(np.column_stack([9.81 + E, np.ones(N)]), y)
    assert solution(plain)[0] < 1.0
    errors = products(again, np.zeros((N, 2)))
    x0 = np.array([3.0, 0.0])
    found, onto = without_state_errors(plain, errors, x0)
    right = onto @ (plain.R.T @ (plain.rho - plain.R @ x0) + errors[:-1] @ [*x0, -1.0])
    np.testing.assert_allclose(found.R.T @ (found.rho - found.R @ x0), right, rtol=1e-6, atol=1e-6)
    strengths = np.linalg.svd(found.R, compute_uv=False)
    assert strengths[1] < 1e-6 * strengths[0]
    # Only the sum is determined, and the least change of x0 that fits it is zero.
    change = np.linalg.lstsq(found.R, found.rho - found.R @ x0, rcond=1e-6)[0]
    np.testing.assert_allclose(change, 0.0, atol=1e-3)


def test_directions_with_a_quarter_of_errors_are_dropped(rng):
    plain = Information.of(rng.normal(size=(N, 3)), rng.normal(size=N))
    H = plain.R.T @ plain.R
    for share, left in ((0.5, 0.0), (0.2, 0.8)):
        found, _ = without_state_errors(plain, np.pad(share * H, (0, 1)), np.ones(3))
        np.testing.assert_allclose(found.R.T @ found.R, left * H, atol=1e-9 * np.abs(H).max())


@pytest.mark.parametrize('deviation', [0.3, np.inf])
def test_shared_errors_stay_when_one_unknown_is_released(rng, deviation):
    """The second column is constant; noise of one accelerometer is in both."""
    motion, e, again = rng.normal(size=N), *(0.3 * rng.normal(size=(2, N)))
    constant = np.full(N, 9.81)
    y = 2.0 * motion + constant + 0.1 * rng.normal(size=N)
    rows = Information.of(np.column_stack([motion + e, constant + 3.0 * e]), y)
    errors = products(again, 3.0 * again, np.zeros(N))
    columns, by = np.array([1]), np.array([deviation])
    left, kept = wandered(rows, columns, by), errors_of_wandered(errors, rows, columns, by)
    first = eliminated(without_state_errors(left, kept, np.array([2.0, 5.0]))[0], columns)
    plain = eliminated(left, columns)
    assert plain.rho[0] / plain.R[0, 0] == pytest.approx(1.6, abs=2 * CLOSE)
    # Of an error that is as large as the motion, two times over.
    assert first.rho[0] / first.R[0, 0] == pytest.approx(2.0, abs=2 * CLOSE)
    assert np.abs(kept[1]).max() < 1e-3 * errors[0, 0]
    assert errors_of_wandered(errors, rows, columns, np.zeros(1)) is errors


def test_perturbation_has_the_size_of_the_errors(rng):
    """Compared with equations of the same motion with other noise, many times."""
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['root', 'head'])
    still = SampleBatch.stack([random_sample(robot, rng)] * 200)
    joints, imus = np.diag([1e-4, 1e-3, 1e-2]) ** 2, np.diag([3e-3, 3e-2, 1e-1]) ** 2
    noise = StateNoise.of(
        np.tile(joints, (len(robot.joint_names), 1, 1)), np.tile(imus, (2, 1, 1))
    )
    builder = EquationBuilder(robot, EquationChoice(offsets=('arm_sensor',)))
    perturbed = builder.equations(noise.perturbed(still, rng))
    found = [perturbation_errors(builder, Observed(still), noise, rng) for _ in range(8)]
    for k, kinds in enumerate(perturbed):
        for kind, rows in kinds.items():
            spread = np.var(rows.Y, axis=0) * len(rows.Y)
            squares = [np.square(one[k][kind][:, :-1]).sum(axis=0) for one in found]
            stated, moved = np.mean(squares, axis=0), spread > 1e-3 * spread.max()
            # 200 equations each: a tenth is one standard deviation of their ratio.
            np.testing.assert_allclose(stated[moved] / spread[moved], 1.0, atol=0.5)
            assert stated[~moved].max(initial=0.0) < 1e-2 * spread.max(initial=1.0)


def moving(rng, noise):
    t = np.arange(100)[:, None] / 100
    signals = 0.3 * np.sin(2 * np.pi * t * [0.5, 1.0, 2.0] + [0.1, 0.2, 0.3])
    return signals + noise * rng.normal(size=signals.shape)


def test_white_noise_of_moving_signals(rng):
    steady, shaken = WhiteNoise(), WhiteNoise()
    for k in range(60):
        found = steady.update(moving(rng, 1e-3))
        lowest = shaken.update(moving(rng, 1e-2 if k % 3 else 1e-3))
    # Of 60 windows of 96 differences, of which four in a row have much in common.
    np.testing.assert_allclose(np.sqrt(found), 1e-3, rtol=0.1)
    np.testing.assert_allclose(np.sqrt(lowest), 1e-3, rtol=0.2)
    assert (np.sqrt(WhiteNoise().update(moving(rng, 0.0))) < 1e-4).all()


def test_frozen_readings_do_not_lower_white_noise(rng):
    levels = WhiteNoise()
    for k in range(20):
        frozen = k in {0, 7}
        found = levels.update(np.ones((100, 9)) if frozen else rng.normal(size=(100, 9)))
        assert not found.any() if frozen else found.all()
    # One low level of a few may not be the mean of many yet.
    assert np.median(found) == pytest.approx(1.0, abs=0.2)


def test_noise_of_the_motion_is_what_samples_show(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['root'])

    def noisy(encoder):
        """Return a robot at rest with noise of positions alone."""
        still = SampleBatch.stack([random_sample(robot, rng)] * 100)
        still.positions[:] = still.positions + encoder * rng.normal(size=still.positions.shape)
        return still

    # Of positions 1e-3 and what a filter derives from them; of an IMU 0.03.
    root = np.array([[1e-3, 0, 0], [1e-2, 1e-2, 0], [0.3, 0.2, 0.1]])
    joints = np.tile(root @ root.T, (len(robot.joint_names), 1, 1))
    noise = StateNoise.of(joints, np.eye(3)[None] * 0.03**2)
    found = noise.measured(noisy(1e-4), WhiteNoise())
    # A tenth of what is stated, derivatives too: 100 samples determine it to a fifth.
    size = np.sqrt(np.linalg.eigvalsh(found.joints @ found.joints.transpose(0, 2, 1)))
    stated = np.sqrt(np.linalg.eigvalsh(root @ root.T))
    np.testing.assert_allclose(size / stated, 0.1, rtol=0.5)
    assert np.abs(found.imus).max() < 1e-12
    # Filtered readings do not show their noise, nor does a window of four samples.
    smooth = replace(noise, is_white=False)
    assert smooth.measured(noisy(1e-4), WhiteNoise()) is smooth
    short = noisy(1e-2).take(np.arange(4))
    np.testing.assert_array_equal(noise.measured(short, WhiteNoise()).joints, noise.joints)
    found = noise.measured(noisy(1e-2), WhiteNoise())
    size = np.linalg.norm(found.joints[:, 0], axis=1) / np.linalg.norm(noise.joints[:, 0], axis=1)
    np.testing.assert_allclose(size, 10.0, rtol=0.5)
    # Velocities that are readings too, and do not change here, have a level of their own.
    measured = replace(noise, measures_velocities=True).measured(noisy(1e-4), WhiteNoise())
    shares = np.linalg.norm(measured.joints, axis=2) / np.linalg.norm(noise.joints, axis=2)
    assert not shares[:, 1].any()
    np.testing.assert_allclose(shares[:, 2], shares[:, 0])
