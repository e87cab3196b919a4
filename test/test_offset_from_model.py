# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
FT offsets from the model, with one support or several, and from torques; predicted readings.

The readings come from a robot that is held by known wrenches, computed without the engine. Each
sign of motion is tried alone; the readings are wrong then, which must not reach the offsets. Not
covered: real robots, in `test_calibrate`.
"""

from dataclasses import replace

import numpy as np
import pytest
from brute_force import link_poses
from consistent_readings import ConsistentReadings, random_motion
from robots import nested_humanoid_urdf
from scipy.signal import lfilter, savgol_coeffs
from shared_data import SHARED
from standing_biped import FEET, GRAVITY, biped, standing

from inertial_estimation.calibration.calibration_file import (
    OFFSETS_FROM_MODEL,
    Provenance,
    SensorCalibration,
)
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.calibration.offset_from_model import offset_from_model
from inertial_estimation.calibration.residual_statistics import deviations_of_means
from inertial_estimation.calibration.support_loads import support_loads
from inertial_estimation.calibration.tare import MAX_SAMPLES, TareRecorder
from inertial_estimation.cli.calibrate_log import in_hindsight, predict_wrenches
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CalibrationError, OffsetsNotUnique
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import Level
from inertial_estimation.logs.log import Log, TimeRange
from inertial_estimation.logs.offsets import (
    OffsetRequest,
    compute_offsets,
    offset_from_torques,
)
from inertial_estimation.logs.replay import replay
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch, SensorState

EXACT = 1e-9
SENSORS = ('l_leg', 'l_foot', 'r_leg', 'r_foot', 'arm')
ARM = 4
MS = 1_000_000
UPS = [0.0, 0.0, 1.0], [0.0, 0.8, 0.6], [1.0, 0.0, 0.2], [0.3, -0.9, 0.1]


@pytest.fixture(scope='module')
def robot():
    return biped()


@pytest.fixture
def offsets(rng):
    return rng.normal(0.0, [30.0, 30.0, 30.0, 2.0, 2.0, 2.0], (5, 6))


def repeated(samples, offsets, times=10, noise=None):
    """Return samples 10 ms apart, each a number of times, with offsets."""
    batch = SampleBatch.stack([
        one._replace(stamp_ns=10**9 + 10_000_000 * k, ft_readings=one.ft_readings + offsets)
        for k, one in enumerate(s for s in samples for _ in range(times))
    ])  # fmt: skip
    if noise is not None:
        batch.ft_readings[:] += 0.01 * noise.normal(size=batch.ft_readings.shape)
    return batch


def pose_of(robot, rng):
    return rng.uniform(-0.8, 0.8, len(robot.joint_names))


def on_one_foot(robot, rng, offsets, times=10, noise=None):
    """Return samples of one pose on the left foot."""
    return repeated([standing(robot, pose_of(robot, rng), {'l_sole': 1.0})], offsets, times, noise)


def turned(robot, rng, offsets, support, ups):
    """Return a second of samples for each direction of gravity, on one support."""
    pose = pose_of(robot, rng)
    shots = [standing(robot, pose + 0.2 * k, {support: 1.0}, up=up) for k, up in enumerate(ups)]
    samples = repeated(shots, offsets, times=100)
    stamps = samples.stamp_ns + np.repeat(np.arange(len(ups)) * 10**9, 100)
    return replace(samples, stamp_ns=stamps)


def squeezed(robot, rng, pose, share):
    """Return a sample of a robot whose feet share the load and push against each other."""
    push = rng.normal(0.0, 40.0, 6)
    shares = {'l_sole': share, 'r_sole': 1.0 - share}
    return standing(robot, pose, shares, {'l_sole': push, 'r_sole': -push})


@pytest.mark.parametrize(('support', 'imu'), [('r_foot', 'root'), ('root', 'l_thigh'),
                                              ('hand', 'r_shank')])  # fmt: skip
def test_one_support_determines_all_offsets(rng, offsets, support, imu):
    robot = biped(imus=[imu])
    shot = standing(robot, pose_of(robot, rng), {support: 1.0}, up=rng.normal(size=3))
    found = offset_from_model(WrenchEstimator(robot), repeated([shot], offsets), [support])
    np.testing.assert_allclose(found.offsets, offsets, atol=EXACT)
    assert found.unique.all() and not len(found.undetermined)


def test_two_supports_leave_the_shared_load_undetermined(robot, rng, offsets):
    samples = repeated([squeezed(robot, rng, pose_of(robot, rng), 0.8)], offsets)
    estimator = WrenchEstimator(robot)
    with pytest.raises(OffsetsNotUnique) as caught:
        offset_from_model(estimator, samples, FEET)
    assert caught.value.sensors == SENSORS[:4]
    alone = offset_from_model(estimator, samples, FEET, sensors=['arm'])
    np.testing.assert_array_equal(np.flatnonzero(alone.found), ARM)
    found, other = (
        offset_from_model(estimator, samples, feet, accept_split=True)
        for feet in (FEET, FEET[::-1])
    )
    np.testing.assert_allclose(other.offsets, found.offsets, atol=EXACT)
    for one in (alone, found):
        np.testing.assert_allclose(one.offsets[ARM], offsets[ARM], atol=EXACT)
    np.testing.assert_array_equal(found.unique, [False] * 4 + [True])
    assert np.abs(found.offsets - offsets)[:4].max() > 10.0
    # The error is a wrench that one foot takes from the other, and nothing else.
    basis = found.undetermined.reshape(6, 30)
    np.testing.assert_allclose(basis @ basis.T, np.eye(6), atol=1e-12)
    white = ((found.offsets - offsets) / np.repeat([1.0, 0.1], 3)).ravel()
    np.testing.assert_allclose(basis.T @ (basis @ white), white, atol=1e-8)


def test_poses_that_turn_sensors_apart_determine_more(robot, rng, offsets):
    pose = pose_of(robot, rng)
    # A degree or two would magnify model errors.
    near = [pose + rng.normal(0.0, 0.02, len(pose)) for _ in range(20)]
    far = [rng.uniform(-2.0, 2.0, len(pose)) for _ in range(40)]
    for poses, undetermined in (([pose] * 10, 6), (near, 6), (far, 0)):
        shots = [squeezed(robot, rng, one, rng.uniform(-0.5, 1.5)) for one in poses]
        found = offset_from_model(
            WrenchEstimator(robot), repeated(shots, offsets, times=1), FEET,
            accept_split=undetermined > 0, moving=True,
        )  # fmt: skip
        assert len(found.undetermined) == undetermined
    # Loads of a thousand newtons, magnified by three at most.
    np.testing.assert_allclose(found.offsets, offsets, atol=1e-8)
    assert found.spread.max() < 1e-8 and found.deviations.max() < 1e-8


@pytest.mark.parametrize('share', [0.5, 0.9])
def test_f1_both_feet_of_an_icub_carry_half_of_the_weight(rng, share):
    """Fault F1: a peer's calibration in double support predicts 353.7 N and 0.0 N."""
    path = SHARED / 'data/models/icub_sensorised.urdf'
    if not path.is_file():
        pytest.skip('the shared data folder is not beside this checkout')
    icub = Robot.from_urdf(path, imus=['root_link'])
    bent = {'hip_pitch': 0.4, 'knee': -0.8, 'ankle_pitch': -0.4, 'hip_roll': 0.1, 'elbow': 0.6}
    positions = np.array([bent.get(name.partition('_')[2], 0.0) for name in icub.joint_names])
    names = [sensor.name for sensor in icub.ft_sensors]
    left, right = (next(k for k, n in enumerate(names) if f'{s}_foot' in n) for s in 'lr')
    shot = standing(icub, positions, {'l_foot': share, 'r_foot': 1.0 - share})
    samples, feet = repeated([shot], 0.0), ('l_foot', 'r_foot')
    predicted = support_loads(WrenchEstimator(icub), samples, feet).readings
    forces = np.linalg.norm(predicted[0, [left, right], :3], axis=1)
    beyond = icub.parameters[icub.ft_sensors[left].child, 0]
    # The centre of mass is 0.1 mm off the middle: 0.2 of 177 N.
    np.testing.assert_allclose(forces, GRAVITY * (icub.mass / 2.0 - beyond), atol=0.2)


def test_matrices_and_temperatures_come_before_the_offsets(robot, rng, offsets):
    shot = standing(robot, pose_of(robot, rng), {'l_sole': 1.0})
    matrices = np.eye(6) + rng.normal(0.0, 0.1, (5, 6, 6))
    slopes, references = rng.normal(0.0, 1.0, (5, 6)), rng.uniform(20.0, 30.0, 5)
    calibration = FtCalibration(matrices, rng.normal(size=(5, 6)), slopes, references)
    raw = np.linalg.solve(matrices, (shot.ft_readings + offsets - 7.0 * slopes)[..., None])[..., 0]
    shot = shot._replace(ft_readings=raw, ft_temperatures=references + 7.0)
    estimator = WrenchEstimator(robot, calibration=calibration)
    found = offset_from_model(estimator, repeated([shot], 0.0), ['l_sole'])
    np.testing.assert_allclose(found.offsets, offsets, atol=EXACT)
    np.testing.assert_allclose(found.temperatures, references + 7.0)
    np.testing.assert_array_equal(found.calibration.matrices, matrices)


def test_samples_without_a_reading_cost_their_sensor_only(robot, rng, offsets):
    samples = on_one_foot(robot, rng, offsets, 40)
    samples.ft_readings[:25, 2], samples.ft_readings[:35, 3] = np.nan, np.nan
    found = offset_from_model(WrenchEstimator(robot), samples, ['l_sole'])
    np.testing.assert_array_equal(found.found, [True, True, True, False, True])
    np.testing.assert_array_equal(found.n_samples, [40, 40, 15, 0, 40])
    assert found.left_out['missing'] == 25
    np.testing.assert_array_equal(found.offsets[3], 0.0)
    with pytest.raises(CalibrationError):
        offset_from_model(WrenchEstimator(robot), samples, ['l_sole'], sensors=['r_foot'])
    bare = WrenchEstimator(biped(ft_sensors=[], imus=['root']))
    with pytest.raises(CalibrationError):
        offset_from_model(bare, replace(samples, ft_readings=np.zeros((40, 0, 6))), ['l_sole'])


@pytest.mark.parametrize(
    ('state', 'celsius', 'reason'),
    [
        (SensorState.FROZEN, 20.0, 'frozen'),
        (SensorState.FRESH, np.nan, 'temperature'),
        (SensorState.FRESH, 20.0, 'channel 3 (fz)'),
    ],
)
def test_sensor_without_offset_has_a_reason(robot, rng, offsets, state, celsius, reason):
    samples = on_one_foot(robot, rng, offsets, 20, noise=rng)
    states, temperatures = np.zeros((20, 5), dtype=np.uint8), np.full((20, 5), 20.0)
    states[:, ARM], temperatures[:, ARM] = state, celsius
    # Of sensors that need none, some are measured now and then, or never.
    temperatures[::2, 1], temperatures[:, 2] = np.nan, np.nan
    if state:
        samples.ft_readings[:, ARM] = np.nan
    elif 'channel' in reason:
        samples.ft_readings[:, ARM, 2] = 7.0
    samples = replace(samples, ft_states=states, ft_temperatures=temperatures)
    slopes = 0.1 * (np.arange(5) == ARM)[:, None] * np.ones(6)
    thermal = FtCalibration(np.tile(np.eye(6), (5, 1, 1)), np.zeros((5, 6)), slopes, np.zeros(5))
    estimator = WrenchEstimator(robot, calibration=thermal)
    found = offset_from_model(estimator, samples, ['l_sole'])
    assert list(found.silent) == ['arm'] and reason in found.silent['arm']
    np.testing.assert_array_equal(found.temperatures[:3], [20.0, 20.0, np.nan])
    # A simulated sensor may be without noise in some channels.
    given = offset_from_model(estimator, samples, ['l_sole'], noisy=False)
    assert ('channel' in reason) == (not given.silent)


@pytest.mark.parametrize(('support', 'link'), [('root', 'hand'), ('hand', 'root')])
def test_missing_mass_of_the_model_turns_with_gravity(robot, rng, offsets, support, link):
    """The side that is summed is the hand, or all but the hand."""
    mass, at = 0.3, np.array([0.1, -0.2, 0.05])
    samples = turned(robot, rng, offsets, support, UPS)
    right = offset_from_model(WrenchEstimator(robot), samples, [support])
    assert not right.findings
    parameters, k = robot.parameters.copy(), robot.link_names.index(link)
    parameters[k, :4] -= [mass, *(mass * at)]
    lighter = WrenchEstimator(robot.with_parameters(parameters))
    found = offset_from_model(lighter, samples, [support])
    arm = found.poses['arm']
    assert arm.turn > 1.0 and len(arm.residuals) == 4
    about = (arm.residuals - arm.residuals.mean(axis=0)).reshape(-1, 2, 3)
    np.testing.assert_allclose(arm.differing**2, (about**2).sum(axis=2).mean(axis=0))
    assert ('arm', 'offset_drift') in {(one.subject, one.code) for one in found.findings}
    assert arm.mass == pytest.approx(mass, abs=EXACT)
    assert np.abs(found.offsets[ARM] - offsets[ARM]).max() > 0.5
    if link == 'hand':
        assert 'l_leg' not in {one.subject for one in found.findings}


@pytest.mark.parametrize('unit', [1000.0, 1.0 / GRAVITY])
def test_readings_in_another_unit_are_an_error(robot, rng, offsets, unit):
    samples = turned(robot, rng, offsets, 'root', UPS[:3])
    samples.ft_readings[:] *= unit
    found = offset_from_model(WrenchEstimator(robot), samples, ['root'])
    errors = [one for one in found.findings if one.code == 'scale']
    assert {one.level for one in errors} == {Level.ERROR}
    assert {one.subject for one in errors} == set(SENSORS)
    assert [one.values['factor'] for one in errors] == pytest.approx([unit] * len(errors))
    # Nmm: the forces are right.
    samples.ft_readings[..., :3] /= unit
    found = offset_from_model(WrenchEstimator(robot), samples, ['root'])
    texts = [one.text for one in found.findings if one.code == 'scale']
    assert texts and all('moment' in text for text in texts)


@pytest.mark.parametrize('sensor', SENSORS)
def test_wrong_sign_in_motion_is_no_second_support(robot, rng, offsets, sensor):
    samples = turned(robot, rng, offsets, 'root', UPS)
    samples.ft_readings[:, SENSORS.index(sensor)] *= -1.0
    found = offset_from_model(WrenchEstimator(robot), samples, ['root'], moving=True)
    assert {(one.code, one.subject) for one in found.findings} == {('scale', sensor)}


LEVEL, LIFTED = 0.17, -0.8
"""Of the right hip: the soles are level within 3 mm, or 0.3 m apart [rad]."""


@pytest.mark.parametrize(
    ('hip', 'shares', 'tilt', 'silent', 'level'),
    [
        (LIFTED, (0.0, 0.0), 0.0, '', None),
        # A change that is no more than a model error.
        (LIFTED, (0.0, 0.1), 0.0, '', None),
        (LIFTED, (0.0, 0.3), 0.0, '', 0.0),
        # Without the readings of a sensor the submodels on both sides are one.
        (LIFTED, (0.0, 0.3), 0.0, 'l_foot', 0.0),
        (LIFTED, (0.0, 0.3), 0.0, 'r_foot', 0.0),
        (LEVEL, (0.0, 0.0), 0.0, '', 1.0),
        (LEVEL, (0.5, 0.5), 0.0, '', 1.0),
        # On a slope of 30 degrees the feet are not level.
        (LEVEL, (0.0, 0.0), np.pi / 6, '', None),
    ],
)
def test_second_support_is_reported(robot, offsets, hip, shares, tilt, silent, level):
    """Its load is in the offsets, and the fit shows nothing of it."""
    positions = hip * (np.array(robot.joint_names) == 'r_hip_pitch')
    link, L_H_sole = robot.frame('l_sole')
    root_R_sole = (link_poses(robot, positions)[link] @ L_H_sole)[:3, :3]
    up = root_R_sole @ [0.0, np.sin(tilt), np.cos(tilt)]
    shots = [
        standing(robot, positions, {'l_sole': 1.0 - share, 'r_sole': share}, up=up)
        for share in shares
    ]
    samples = repeated(shots, offsets)
    if silent:
        samples.ft_readings[:, SENSORS.index(silent)] = np.nan
    estimator = WrenchEstimator(robot, [Contact(name) for name in (*FEET, 'root')])
    found = offset_from_model(estimator, samples, ['l_sole'], moving=True)
    supports = [one for one in found.findings if one.code == 'second_support']
    assert [one.subject for one in supports] == ['r_sole'] * (level is not None)
    assert all(one.values['share'] == level for one in supports)
    if any(shares):
        assert np.abs(found.offsets - offsets).max() > 0.04 * GRAVITY * robot.mass
    else:
        np.testing.assert_allclose(found.offsets, offsets, atol=EXACT)


def test_provenance_of_offsets(robot, rng, offsets):
    samples = on_one_foot(robot, rng, offsets, 20)
    found = offset_from_model(WrenchEstimator(robot), samples, ['l_sole'], sensors=['arm'])
    workshop = Provenance('workshop', '2020-01-01')
    before = dict.fromkeys(SENSORS, SensorCalibration(2.0 * np.eye(6), provenance=(workshop,)))
    changed = found.calibrations(before, '2026-11-22')
    assert tuple(changed) == ('arm',)
    np.testing.assert_array_equal(changed['arm'].matrix, 2.0 * np.eye(6))
    # The next tare takes the place of this one.
    again = found.calibrations(before | changed, 'later')['arm']
    method = f'{OFFSETS_FROM_MODEL}, one support: l_sole'
    assert [one.method for one in again.provenance] == [workshop.method, method]


def test_means_of_signals_of_ten_times_their_memory(rng):
    """A tare of two seconds while a robot sways; its mean follows the sway."""
    signal = lfilter([1.0], [1.0, -0.9], rng.normal(size=(400, 400)), axis=0)[200:]
    ratios = signal.mean(axis=0) / deviations_of_means(signal)
    # Of 400 means; 1.4 if the mean were taken for the truth.
    assert 0.9 < np.sqrt(np.mean(ratios**2)) < 1.3
    np.testing.assert_array_equal(deviations_of_means(np.full((50, 2), 7.0)), 0.0)


# ---- Motion and touches ------------------------------------------------------------------------

N, FIRST, LAST = 300, 100, 130
"""Samples 10 ms apart, and those that are disturbed."""
SETTLE = 30
"""Samples before and after that count as well: 0.3 s."""


@pytest.fixture
def samples(robot, rng, offsets):
    return on_one_foot(robot, rng, offsets, N)


@pytest.mark.parametrize(
    ('name', 'values'),
    [
        ('velocities', 0.5),
        ('angular_velocities', [[0.0, 0.3, 0.0]]),
        ('proper_accelerations', [[0.0, 1.0, 10.5]]),
    ],
)
def test_f12_motion_is_left_out_and_counted(robot, samples, offsets, name, values):
    """Fault F12: a peer knows whether its model is still, and does not look when it calibrates."""
    fields = {key: getattr(samples, key).copy() for key in (name, 'ft_readings')}
    # Wrong readings, whose own step is too small to be taken for a motion.
    fields['ft_readings'][FIRST:LAST] += 0.8
    if name == 'velocities':
        values = values * (np.array(robot.joint_names) == 'l_knee')
    fields[name][FIRST:LAST] = values
    found = offset_from_model(WrenchEstimator(robot), replace(samples, **fields), ['l_sole'])
    np.testing.assert_allclose(found.offsets, offsets, atol=EXACT)
    assert found.left_out['moving'] == LAST - FIRST + 2 * SETTLE
    np.testing.assert_array_equal(found.n_samples, N - found.left_out['moving'])


def test_vibrations_and_touches_are_left_out(robot, samples, offsets, rng):
    estimator = WrenchEstimator(robot)
    shaken, touched = samples.ft_readings.copy(), samples.ft_readings.copy()
    shaken[FIRST:LAST, 1, 2] += 50.0 * rng.normal(size=LAST - FIRST)
    # Slow enough to spread little within 0.2 s.
    touched[:, 4, 2] += np.interp(np.arange(N), [80, 120, 140, 180], [0.0, 25.0, 25.0, 0.0])
    for readings, tolerance, reason in ((shaken, EXACT, 'moving'), (touched, 0.1, 'touched')):
        given = replace(samples, ft_readings=readings)
        found = offset_from_model(estimator, given, ['l_sole'], noisy=False)
        # A touch below 1 % of the weight remains.
        np.testing.assert_allclose(found.offsets, offsets, atol=tolerance)
        assert found.left_out[reason] > 80
        assert sum(found.left_out.values()) == found.left_out[reason]
    # Reported ones.
    felt = np.abs(np.arange(N) - 149.5) < 100
    samples.ft_readings[felt, ARM] += 5.0
    found = offset_from_model(estimator, samples, ['l_sole'], felt=felt, noisy=False)
    np.testing.assert_allclose(found.offsets, offsets, atol=EXACT)
    assert found.left_out['touched'] == 200


def test_motion_in_all_samples_is_refused(robot, samples):
    velocities = samples.velocities.copy()
    velocities[:, 0] = 0.11
    moved = replace(samples, velocities=velocities)
    with pytest.raises(CalibrationError) as caught:
        offset_from_model(WrenchEstimator(robot), moved, ['l_sole'])
    assert robot.joint_names[0] in str(caught.value)


@pytest.mark.parametrize('stated', [1.0, 0.0])
def test_accelerations_that_contradict_the_momentum_are_left_out(stated):
    robot = biped(fixed_link='root', imus=[])
    t = 0.01 * np.arange(300)[:, None] + np.zeros(len(robot.joint_names))
    w, none = 6.0 * np.pi, np.empty((300, 0, 3))
    samples = SampleBatch(
        (1e9 * t[:, 0]).astype(np.int64) + 1,
        0.5 * np.sin(w * t), 0.5 * w * np.cos(w * t), -stated * 0.5 * w * w * np.sin(w * t),
        none, none, none, np.zeros((300, len(robot.ft_sensors), 6)),
    )  # fmt: skip
    found = offset_from_model(
        WrenchEstimator(robot), samples, ['root'], min_samples=1, moving=True
    )
    assert (found.left_out['momentum'] > 0) == (stated == 0.0)


def test_many_samples_are_thinned_and_no_touch_is_lost(robot, samples):
    recorder, shot = TareRecorder(robot, ['l_sole'], 10.0), samples[0]
    for k in range(10_001):
        is_over = recorder.add(
            shot._replace(stamp_ns=10**12 + k * MS), [Contact('hand')] if k == 105 else ()
        )
        assert is_over == (k == 10_000)
    assert recorder.done == 1.0
    found, felt = recorder.recorded()
    assert MAX_SAMPLES <= len(found) <= MAX_SAMPLES + 1
    assert (np.diff(found.stamp_ns) == 10 * MS).all()
    assert np.flatnonzero(felt).tolist() == [11] and recorder.touched == {'hand'}


# ---- Sources of the offsets of a replay ---------------------------------------------------------

# Round-off of forces of about 1e3 N, times the condition of the fits.
ROUND_OFF = 1e-8
OFFSETS = np.array([
    [3.0, -20.0, 45.0, 1.0, -0.4, 0.2],
    [-8.0, 12.0, -60.0, 0.3, 2.0, -0.7],
    [150.0, -4.0, 7.0, -1.5, 0.6, 0.9],
])  # fmt: skip
CONTACTS = ('root', 'thigh', 'sole', 'hand')
MODEL, TORQUES = OffsetRequest('model'), OffsetRequest('torques')


@pytest.fixture
def humanoid():
    return Robot.from_urdf(nested_humanoid_urdf(), imus=[], fixed_link='root')


def settings(**more):
    return EstimatorSettings.from_dict({'fixed_link': 'root', 'contacts': list(CONTACTS), **more})


def record(robot, rng, n, touched, offsets=OFFSETS):
    """Return a log of random motions, one a second, with true torques as efforts."""
    source, samples = ConsistentReadings(robot), []
    for k in range(1, n + 1):
        pushes = {frame: rng.normal(0.0, 20.0, 6) for frame in touched}
        sample, torques, _ = source.sample(random_motion(robot, rng), pushes)
        readings = sample.ft_readings + offsets
        samples.append(sample._replace(stamp_ns=k * 10**9, ft_readings=readings, efforts=torques))
    return Log(SampleBatch.stack(samples), 10**9)


@pytest.mark.parametrize('support', CONTACTS)
def test_offset_is_marked_if_it_depends_on_an_assumed_joint(rng, support):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['chest'])
    given = EstimatorSettings.from_dict({'imus': ['chest'], 'contacts': list(CONTACTS)})
    log = record(robot, rng, 3, (support,), 0.0)
    for joint in range(len(robot.joint_names)):
        found = []
        for shift in (0.0, 0.5):
            states = np.zeros(log.samples.positions.shape, dtype=np.uint8)
            states[:, joint] = SensorState.ASSUMED
            positions = log.samples.positions.copy()
            positions[:, joint] += shift
            moved = replace(log.samples, positions=positions, joint_states=states)
            request = OffsetRequest('model', support=support)
            found.append(compute_offsets(request, replace(log, samples=moved), robot, given))
        change = found[1].calibration.offsets - found[0].calibration.offsets
        np.testing.assert_array_equal(found[0].assumed, np.abs(change).max(axis=1) > ROUND_OFF)


def test_offsets_are_those_of_the_range_that_is_estimated(humanoid, rng):
    log, later = record(humanoid, rng, 12, ('root',)), TimeRange(5.5, 20.0)
    shifted = log.samples.ft_readings.copy()
    shifted[:5] += 7.0
    log = replace(log, samples=replace(log.samples, ft_readings=shifted))
    found = replay(humanoid, log, settings(), time_range=later, offsets=MODEL)
    np.testing.assert_allclose(found.offsets.calibration.offsets, OFFSETS, atol=ROUND_OFF)


def test_prior_is_marked_where_some_of_it_is_left(rng):
    readings, slopes = rng.normal(0.0, 1.0, (200, 3, 6)), np.zeros((200, 2, 3, 6))
    # The first joint depends on all of the first sensor, the second on a sum of the others.
    slopes[:, 0, 0] = rng.normal(0.0, 1.0, (200, 6))
    slopes[:, 1, 1:] = rng.normal(0.0, 1.0, (200, 1, 1)) * [[[1, 0, 0, 0, 0, 0]]]
    torques, reference = np.zeros((200, 2)), np.zeros((200, 2))
    for assumed in np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool):
        fits = [
            offset_from_torques(readings, torques, slopes, reference, prior, [assumed])
            for prior in (np.zeros((3, 6)), rng.normal(0.0, 1.0, (3, 6)) * assumed[:, None])
        ]
        changed = (np.abs(fits[1][0] - fits[0][0]) > ROUND_OFF).any(axis=1)
        np.testing.assert_array_equal(fits[0][1], [changed])


def test_torques_determine_the_offsets_that_they_depend_on(humanoid, rng):
    log = record(humanoid, rng, 40, touched=('thigh', 'sole', 'hand'))
    found = compute_offsets(TORQUES, log, humanoid, settings())
    felt = np.array([joint != 'neck' for joint in humanoid.joint_names])
    estimator = build_estimator(settings(), humanoid, calibration=found.calibration)
    off = estimator.batch(log.samples).torques - log.samples.efforts
    np.testing.assert_allclose(off[:, felt], 0.0, atol=ROUND_OFF)
    # Without touches the model determines the others.
    log = record(humanoid, rng, 40, touched=())
    for request in (MODEL, TORQUES):
        found = compute_offsets(request, log, humanoid, settings())
        np.testing.assert_allclose(found.calibration.offsets, OFFSETS, atol=ROUND_OFF)


def test_noise_of_predictions_is_that_of_a_filter_in_hindsight(humanoid, rng):
    sensors = [sensor.name for sensor in humanoid.ft_sensors]
    given = settings(
        ft_sensors=sensors, **{'filter.window': 1.0, f'ft.{sensors[1]}.noise': [2.0] * 6}
    )
    hindsight = in_hindsight(given)
    assert hindsight.filter.delay == 0.5
    log = record(humanoid, rng, 3, ())
    log = replace(log, samples=replace(log.samples, stamp_ns=log.samples.stamp_ns // 100))
    plain, filtered = (predict_wrenches(log, humanoid, one).noise for one in (given, hindsight))
    assert (plain[1] == 2.0).all()
    weights = np.linalg.norm(savgol_coeffs(101, 3))
    np.testing.assert_allclose(filtered[1], 2.0 * weights, rtol=0.01)
