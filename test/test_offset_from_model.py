# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
FT offsets from the model, with one support and with several that share the load in any way.

The readings come from a robot that is held by known wrenches, computed without the engine. Not
covered here: real robots (test_calibrate_offsets.py).
"""

from dataclasses import replace

import numpy as np
import pytest
from brute_force import link_poses, wrench_transform
from robots import nested_humanoid_urdf, random_sample
from shared_data import SHARED
from standing_biped import FEET, GRAVITY, biped, standing

from inertial_estimation.calibration.offset_from_model import _fit_free, offset_from_model
from inertial_estimation.calibration.residual_statistics import deviations_of_means
from inertial_estimation.errors import (
    CalibrationError,
    FrameNotFound,
    ModelError,
    NameNotFound,
    OffsetsNotUnique,
)
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.sensor_residuals import sensor_residuals
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch, SensorState

# Round-off of forces of about 1e3 N.
EXACT = 1e-9
SECOND = 1_000_000_000
SYMMETRY = 0.2
"""N of 177 N: the centre of mass is 0.1 mm off the middle of the robot that stands."""
SENSORS = ('l_leg', 'l_foot', 'r_leg', 'r_foot', 'arm')


@pytest.fixture
def robot():
    return biped()


@pytest.fixture
def offsets(rng):
    return rng.normal(0.0, [30.0, 30.0, 30.0, 2.0, 2.0, 2.0], (5, 6))


def repeated(samples, offsets, times=10):
    """Return instants 10 ms apart, each sample several times over, with offsets."""
    every = [
        s._replace(ft_readings=s.ft_readings + offsets) for s in samples for _ in range(times)
    ]
    return SampleBatch.stack(
        [s._replace(stamp_ns=SECOND + 10_000_000 * k) for k, s in enumerate(every)]
    )


def pose_of(robot, rng):
    return rng.uniform(-0.8, 0.8, len(robot.joint_names))


@pytest.mark.parametrize('support', ['l_sole', 'r_foot', 'root', 'hand'])
def test_one_support_tells_all_offsets(robot, rng, offsets, support):
    shot = standing(robot, pose_of(robot, rng), {support: 1.0}, up=rng.normal(size=3))
    found = offset_from_model(WrenchEstimator(robot), repeated([shot], offsets), [support])
    np.testing.assert_allclose(found.offsets, offsets, atol=EXACT)
    assert found.is_unique and not len(found.undetermined)


def test_two_supports_tell_sums_and_differences_whatever_the_split(robot, rng, offsets):
    positions = pose_of(robot, rng)
    push = rng.normal(0.0, 40.0, 6)
    shot = standing(
        robot, positions, {'l_sole': 0.8, 'r_sole': 0.2}, {'l_sole': push, 'r_sole': -push}
    )
    samples = repeated([shot], offsets)
    found = offset_from_model(WrenchEstimator(robot), samples, FEET, accept_split=True)
    np.testing.assert_allclose(found.offsets[4], offsets[4], atol=EXACT)
    np.testing.assert_array_equal(found.unique, [False] * 4 + [True])
    error = found.offsets - offsets
    assert np.abs(error[:4]).max() > 10.0
    # What is wrong is a wrench that one foot takes from the other, and nothing else.
    assert found.undetermined.shape == (6, 5, 6)
    scale = np.repeat([1.0, 0.1], 3)
    basis = found.undetermined.reshape(6, 30)
    np.testing.assert_allclose(basis @ basis.T, np.eye(6), atol=1e-12)
    white = (error / scale).ravel()
    np.testing.assert_allclose(basis.T @ (basis @ white), white, atol=1e-8)


def test_two_supports_tell_what_they_say_they_tell(robot, rng, offsets):
    shot = standing(robot, pose_of(robot, rng), {'l_sole': 0.7, 'r_sole': 0.3})
    samples = repeated([shot], offsets)
    found = offset_from_model(WrenchEstimator(robot), samples, FEET, accept_split=True)
    freedom = found.loads.freedom[0]
    # Each said sum, moved to the root link, is free of every way to share the load.
    _, predicted = _at_root(robot, samples[0], freedom)
    for one, sign, other in ((0, -1, 1), (2, -1, 3), (0, 1, 2)):
        np.testing.assert_allclose(predicted[one] + sign * predicted[other], 0.0, atol=1e-12)
    # Nothing else is told: 24 numbers, less 6 of the sharing, are three sums of six.
    assert np.linalg.matrix_rank(freedom[:4].reshape(24, 6)) == 6


def _at_root(robot, sample, wrenches):
    """Return wrenches of sensors, (n_fts, 6, k), child on parent about the root's origin."""
    poses = link_poses(robot, sample.positions)
    moved = [
        s.direction * wrench_transform(poses[s.child] @ s.child_H_sensor) @ w
        for s, w in zip(robot.ft_sensors, wrenches)
    ]
    return poses, np.array(moved)


def test_a_split_is_refused_with_what_is_told_and_what_helps(robot, rng, offsets):
    shot = standing(robot, pose_of(robot, rng), {'l_sole': 0.5, 'r_sole': 0.5})
    samples = repeated([shot], offsets)
    with pytest.raises(OffsetsNotUnique) as caught:
        offset_from_model(WrenchEstimator(robot), samples, FEET)
    assert caught.value.sensors == SENSORS[:4]
    found = offset_from_model(WrenchEstimator(robot), samples, FEET, sensors=['arm'])
    np.testing.assert_allclose(found.offsets[4], offsets[4], atol=EXACT)
    assert found.sensors == ('arm',)


def test_matrices_and_temperatures_come_before_the_offsets(robot, rng, offsets):
    shot = standing(robot, pose_of(robot, rng), {'l_sole': 1.0})
    matrices = np.eye(6) + rng.normal(0.0, 0.1, (5, 6, 6))
    slopes, references = rng.normal(0.0, 1.0, (5, 6)), rng.uniform(20.0, 30.0, 5)
    calibration = FtCalibration(matrices, rng.normal(size=(5, 6)), slopes, references)
    warmth = references + 7.0
    raw = np.linalg.solve(matrices, (shot.ft_readings + offsets - 7.0 * slopes)[..., None])[..., 0]
    shot = shot._replace(ft_readings=raw, ft_temperatures=warmth)
    estimator = WrenchEstimator(robot, calibration=calibration)
    found = offset_from_model(estimator, repeated([shot], 0.0), ['l_sole'])
    np.testing.assert_allclose(found.offsets, offsets, atol=EXACT)
    np.testing.assert_allclose(found.temperatures, warmth)
    np.testing.assert_array_equal(found.calibration.matrices, matrices)


@pytest.mark.parametrize('supports', [('l_sole',), FEET])
def test_neither_base_nor_order_of_supports_matters(rng, offsets, supports):
    gravity = np.array([0.3, -0.5, -9.78])
    found = []
    positions = pose_of(biped(), rng)
    for more in ({'imus': ['root']}, {'imus': ['hand', 'l_thigh']}, {'imus': ['r_shank']},
                 {'fixed_link': 'root', 'imus': [], 'gravity': gravity}):  # fmt: skip
        robot = biped(**more)
        floating = biped(imus=more['imus'] or ['root'])
        shot = standing(floating, positions, {supports[0]: 0.6, supports[-1]: 0.4}
                        if len(supports) > 1 else {supports[0]: 1.0}, up=-gravity)  # fmt: skip
        if robot.fixed_frame:
            none = np.empty((0, 3))
            shot = shot._replace(angular_velocities=none, proper_accelerations=none,
                                 angular_accelerations=none)  # fmt: skip
            # The length of gravity here is that of the file's constant.
        for order in (supports, supports[::-1]):
            estimator = WrenchEstimator(robot)
            got = offset_from_model(
                estimator, repeated([shot], offsets), order, accept_split=True, stillness=None
            )
            found.append(got.offsets)
    size = np.linalg.norm(gravity) / 9.81
    assert abs(size - 1.0) < 0.01
    for other in found[1:-2]:
        np.testing.assert_allclose(other, found[0], atol=EXACT)
    np.testing.assert_allclose(found[-1], found[-2], atol=EXACT)


def test_poses_that_turn_the_sensors_against_each_other_tell_more(robot, rng, offsets):
    def shot(pose):
        push = rng.normal(0.0, 40.0, 6)
        share = rng.uniform(-0.5, 1.5)
        shares = {'l_sole': share, 'r_sole': 1.0 - share}
        return standing(robot, pose, shares, {'l_sole': push, 'r_sole': -push})

    straight = pose_of(robot, rng)
    one = repeated([shot(straight) for _ in range(10)], offsets, times=1)
    found = offset_from_model(WrenchEstimator(robot), one, FEET, accept_split=True, stillness=None)
    assert len(found.undetermined) == 6
    near = [straight + rng.normal(0.0, 0.02, len(straight)) for _ in range(20)]
    samples = repeated([shot(pose) for pose in near], offsets, times=1)
    found = offset_from_model(
        WrenchEstimator(robot), samples, FEET, accept_split=True, stillness=None
    )
    assert len(found.undetermined) == 6, 'a degree or two blows up what the model does wrong'
    far = [rng.uniform(-2.0, 2.0, len(straight)) for _ in range(40)]
    bent = repeated([shot(pose) for pose in far], offsets, times=1)
    found = offset_from_model(WrenchEstimator(robot), bent, FEET, stillness=None)
    assert found.is_unique
    # Loads of a thousand newtons, blown up by three at most.
    np.testing.assert_allclose(found.offsets, offsets, atol=1e-8)
    # What poses show of them differs, which is no spread of theirs.
    assert found.spread.max() < 1e-8 and found.deviations.max() < 1e-8


def test_deviations_of_offsets_that_poses_tell_are_as_large_as_errors(rng):
    """Twelve numbers, six ways to share the load, as another twelve poses show them."""
    offsets = 30.0 * rng.normal(size=12)
    freedom = np.repeat(rng.normal(size=(12, 12, 6)), 20, axis=0)
    ratios = []
    for _ in range(30):
        shared = (freedom @ (20.0 * rng.normal(size=(240, 6, 1))))[..., 0]
        each, left = _fit_free(offsets + shared + 0.3 * rng.normal(size=(240, 12)), freedom)
        assert not left.size
        ratios.append((each.mean(axis=0) - offsets) / deviations_of_means(each))
    # 360 ratios, some of which go together.
    assert 0.75 < np.sqrt(np.mean(np.square(ratios))) < 1.3


def test_a_guess_differs_from_the_truth_by_the_share_that_was_not_half(robot, rng, offsets):
    # F1 without symmetry: whatever is guessed, both feet together carry the weight.
    shot = standing(robot, pose_of(robot, rng), {'l_sole': 0.5, 'r_sole': 0.5})
    found = offset_from_model(
        WrenchEstimator(robot), repeated([shot], offsets), FEET, accept_split=True
    )
    _, wrong = _at_root(robot, shot, (found.offsets - offsets)[..., None])
    np.testing.assert_allclose(wrong[1] + wrong[3], 0.0, atol=1e-8)


@pytest.mark.parametrize('length_scale', [0.1, 0.3])
def test_f3_a_guess_is_right_if_supports_bear_the_least_about_their_own_frames(
    robot, rng, offsets, length_scale
):
    positions = pose_of(robot, rng)
    poses = link_poses(robot, positions)
    frames = [robot.frame(foot) for foot in FEET]
    origins = [(poses[link] @ L_H_F)[:3, 3] for link, L_H_F in frames]
    scale = np.repeat([1.0, length_scale], 3)
    sums = np.hstack([wrench_transform(_at(origin)) * scale for origin in origins])
    held = _held(robot, positions)
    shares = np.linalg.pinv(sums) @ held
    at_root = [sums[:, 6 * k : 6 * k + 6] @ shares[6 * k : 6 * k + 6] for k in range(2)]
    squeeze = {foot: w - 0.5 * held for foot, w in zip(FEET, at_root, strict=True)}
    shot = standing(robot, positions, dict.fromkeys(FEET, 0.5), squeeze)
    found = offset_from_model(
        WrenchEstimator(robot), repeated([shot], offsets), FEET,
        accept_split=True, length_scale=length_scale,
    )  # fmt: skip
    np.testing.assert_allclose(found.offsets, offsets, atol=1e-8)


def _at(origin):
    """Return the pose of a frame with the root link's axes."""
    pose = np.eye(4)
    pose[:3, 3] = origin
    return pose


def _held(robot, positions):
    """Return what holds the robot at rest, about the root link's origin: its weight."""
    poses = link_poses(robot, positions)
    masses = robot.parameters[:, 0]
    moments = robot.parameters[:, 1:4]
    force = np.array([0.0, 0.0, GRAVITY])
    centres = sum(m * H[:3, 3] + H[:3, :3] @ h for m, H, h in zip(masses, poses, moments))
    return np.concatenate([masses.sum() * force, np.cross(centres, force)])


@pytest.fixture(scope='module')
def icub():
    path = SHARED / 'data/models/icub_sensorised.urdf'
    if not path.is_file():
        pytest.skip('the shared data folder is not beside this checkout')
    return Robot.from_urdf(path, imus=['root_link'])


def test_f1_both_feet_of_an_icub_are_predicted_at_half_of_the_weight(icub, rng):
    """F1: a peer's calibration in double support predicts 353.7 N and 0.0 N."""
    bent = {'hip_pitch': 0.4, 'knee': -0.8, 'ankle_pitch': -0.4, 'hip_roll': 0.1, 'elbow': 0.6}
    positions = np.array([bent.get(name.partition('_')[2], 0.0) for name in icub.joint_names])
    names = [sensor.name for sensor in icub.ft_sensors]
    left, right = (next(k for k, n in enumerate(names) if f'{s}_foot' in n) for s in 'lr')
    offsets = rng.normal(0.0, 30.0, (len(names), 6))
    feet = ('l_foot', 'r_foot')
    for share in (0.5, 0.9):
        shot = standing(icub, positions, {'l_foot': share, 'r_foot': 1.0 - share})
        samples = repeated([shot], offsets)
        for length_scale in (1.0, 0.1, 0.05):
            found = offset_from_model(
                WrenchEstimator(icub), samples, feet, accept_split=True, length_scale=length_scale
            )
            forces = np.linalg.norm(found.loads.readings[0, [left, right], :3], axis=1)
            beyond = icub.parameters[icub.ft_sensors[left].child, 0]
            half = GRAVITY * (icub.mass / 2.0 - beyond)
            np.testing.assert_allclose(forces, half, atol=SYMMETRY)
            white = ((found.offsets - offsets) / np.repeat([1.0, length_scale], 3)).ravel()
            basis = found.undetermined.reshape(6, -1)
            np.testing.assert_allclose(basis.T @ (basis @ white), white, atol=1e-7)


def test_f3_the_frame_of_a_support_matters_to_no_reading_that_is_told(robot, rng, offsets):
    shot = standing(robot, pose_of(robot, rng), {'l_sole': 0.9, 'r_sole': 0.1})
    samples = repeated([shot], offsets)
    estimator = WrenchEstimator(robot)
    lever = robot.frame('l_sole')[1][:3, 3]
    assert np.linalg.norm(lever) > 0.05
    soles = offset_from_model(estimator, samples, FEET, accept_split=True)
    feet = offset_from_model(estimator, samples, ('l_foot', 'r_foot'), accept_split=True)
    change = ((feet.offsets - soles.offsets) / np.repeat([1.0, 0.1], 3)).ravel()
    assert np.abs(change).max() > 0.01, 'the shortest wrenches are about their frames'
    basis = soles.undetermined.reshape(6, 30)
    np.testing.assert_allclose(basis.T @ (basis @ change), change, atol=1e-8)
    alone = standing(robot, pose_of(robot, rng), {'l_sole': 1.0})
    samples = repeated([alone], offsets)
    for frame in ('l_sole', 'l_foot'):
        found = offset_from_model(estimator, samples, [frame])
        np.testing.assert_allclose(found.offsets, offsets, atol=EXACT)


def test_one_support_is_what_leaving_each_sensor_out_says(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    samples = SampleBatch.stack([
        random_sample(robot, rng)._replace(stamp_ns=k + 1) for k in range(20)
    ])  # fmt: skip
    estimator = WrenchEstimator(robot)
    for support in ('root', 'sole', 'hand'):
        found = offset_from_model(estimator, samples, [support], stillness=None)
        for k in range(len(robot.ft_sensors)):
            alone = np.full_like(samples.ft_readings, np.nan)
            alone[:, k] = samples.ft_readings[:, k]
            asked = replace(samples, ft_readings=alone)
            missing = sensor_residuals(estimator, asked, [Contact(support)]).ft_readings[:, k]
            # Forces of up to a thousand newtons.
            np.testing.assert_allclose(
                found.offsets[k], -missing.mean(axis=0), rtol=1e-12, atol=1e-10
            )


def test_instants_without_a_reading_cost_their_sensor_only(robot, rng, offsets):
    shot = standing(robot, pose_of(robot, rng), {'l_sole': 1.0})
    samples = repeated([shot], offsets, times=40)
    samples.ft_readings[:25, 2] = np.nan
    samples.ft_readings[:35, 3] = np.nan
    found = offset_from_model(WrenchEstimator(robot), samples, ['l_sole'])
    np.testing.assert_array_equal(found.found, [True, True, True, False, True])
    np.testing.assert_array_equal(found.n_samples, [40, 40, 15, 0, 40])
    assert found.left_out['missing'] == 25, 'of those that speak often enough'
    np.testing.assert_array_equal(found.offsets[3], 0.0)
    with pytest.raises(CalibrationError):
        offset_from_model(WrenchEstimator(robot), samples, ['l_sole'], sensors=['r_foot'])
    samples.ft_readings[:, 3] = np.nan
    with pytest.raises(CalibrationError):
        offset_from_model(WrenchEstimator(robot), samples, ['l_sole'], sensors=['r_foot'])


@pytest.mark.parametrize(
    ('supports', 'sensors', 'error'),
    [
        ([], None, ModelError),
        (['l_sole', 'l_sole'], None, ModelError),
        (['l_soul'], None, FrameNotFound),
        (['l_sole'], [], ModelError),
        (['l_sole'], ['l_log'], NameNotFound),
    ],
)
def test_what_makes_no_sense_is_refused(robot, rng, supports, sensors, error):
    samples = repeated([standing(robot, pose_of(robot, rng), {'l_sole': 1.0})], 0.0)
    with pytest.raises(error):
        offset_from_model(WrenchEstimator(robot), samples, supports, sensors=sensors)


def test_a_channel_that_never_changes_while_others_do_tells_no_offset(robot, rng, offsets):
    shot = standing(robot, pose_of(robot, rng), {'l_sole': 1.0})
    samples = repeated([shot], offsets, 40)
    samples.ft_readings[:] += 0.01 * rng.normal(size=samples.ft_readings.shape)
    samples.ft_readings[:, 4, 2] = 7.0
    estimator = WrenchEstimator(robot)
    found = offset_from_model(estimator, samples, ['l_sole'])
    assert found.sensors == SENSORS[:4]
    assert list(found.silent) == ['arm']
    # All that is asked for must be told.
    with pytest.raises(CalibrationError):
        offset_from_model(estimator, samples, ['l_sole'], sensors=['arm'])
    # A simulated sensor may be without noise in some channels.
    given = offset_from_model(estimator, samples, ['l_sole'], noisy=np.arange(5) < 4)
    assert given.sensors == SENSORS and not given.silent


@pytest.mark.parametrize(
    ('state', 'temperature', 'reason'),
    [
        (SensorState.FROZEN, 20.0, 'frozen'),
        (SensorState.INVALID, 20.0, 'invalid'),
        (SensorState.ABSENT, 20.0, 'absent'),
        (SensorState.FRESH, np.nan, 'temperature'),
        (SensorState.FRESH, 299.4, 'Celsius'),
    ],
)
def test_a_sensor_without_offset_has_a_reason(robot, rng, offsets, state, temperature, reason):
    shot = standing(robot, pose_of(robot, rng), {'l_sole': 1.0})
    samples = repeated([shot], offsets, 20)
    states, warmth = np.zeros((20, 5), dtype=np.uint8), np.full((20, 5), 20.0)
    states[:, 4], warmth[:, 4] = state, temperature
    if state:
        samples.ft_readings[:, 4] = np.nan
    samples = replace(samples, ft_states=states, ft_temperatures=warmth)
    slopes = np.zeros((5, 6))
    slopes[4] = 0.1
    thermal = FtCalibration(np.tile(np.eye(6), (5, 1, 1)), np.zeros((5, 6)), slopes, np.zeros(5))
    estimator = WrenchEstimator(robot, calibration=thermal)
    found = offset_from_model(estimator, samples, ['l_sole'])
    assert list(found.silent) == ['arm'] and reason in found.silent['arm']
    with pytest.raises(CalibrationError):
        offset_from_model(estimator, samples, ['l_sole'], sensors=['arm'])


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


def test_poses_that_agree_are_offsets(robot, rng, offsets):
    samples = held(robot, rng, offsets, UPWARD, noise=0.01)
    found = offset_from_model(WrenchEstimator(robot), samples, ['root'])
    # Five standard deviations of a mean of 400 readings with noise of 0.01.
    np.testing.assert_allclose(found.offsets, offsets, atol=2.5e-3)
    for poses in found.poses.values():
        assert not poses.is_significant
        assert len(poses.residuals) == 4
        assert poses.turn > 1.0


def test_what_turns_with_gravity_is_told_from_the_offset(robot, rng, offsets):
    samples = held(robot, rng, offsets, UPWARD)
    lighter = WrenchEstimator(robot.with_parameters(with_lighter_hand(robot)))
    found = offset_from_model(lighter, samples, ['root'])
    arm = found.poses['arm']
    assert arm.is_significant
    assert {one.code for one in found.findings(SENSORS)} == {'offset_drift'}
    assert arm.mass == pytest.approx(LACKING, abs=EXACT)
    np.testing.assert_allclose(arm.first_moment, LACKING * AT, atol=EXACT)
    assert np.abs(found.offsets[ARM] - offsets[ARM]).max() > 0.5
    assert not found.poses['l_leg'].is_significant


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
    found = offset_from_model(
        WrenchEstimator(robot.with_parameters(parameters)), samples, ['hand']
    )
    assert found.poses['arm'].mass == pytest.approx(LACKING, abs=EXACT)
