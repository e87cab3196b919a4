# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""FT offsets of a replay: from the model with one support, and from a torque reference."""

from dataclasses import replace

import numpy as np
import pytest
from brute_force import link_poses
from consistent_readings import ConsistentReadings, random_motion
from robots import nested_humanoid_urdf
from scipy.signal import savgol_coeffs
from standing_biped import GRAVITY, biped, standing

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import LogError
from inertial_estimation.logs.log import Log
from inertial_estimation.logs.offsets import (
    OffsetRequest,
    compute_offsets,
    in_hindsight,
    offset_from_torques,
    predict_wrenches,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch, SensorState
from inertial_estimation.signals.assembler import SampleAssembler

# Round-off of forces of about 1e3 N, times the condition of the fits.
EXACT = 1e-8
OFFSETS = np.array([
    [3.0, -20.0, 45.0, 1.0, -0.4, 0.2],
    [-8.0, 12.0, -60.0, 0.3, 2.0, -0.7],
    [150.0, -4.0, 7.0, -1.5, 0.6, 0.9],
])  # fmt: skip
CONTACTS = ('root', 'thigh', 'sole', 'hand')
MODEL, TORQUES = OffsetRequest('model'), OffsetRequest('torques')
LEVEL, LIFTED = 0.17, -0.8
"""Of the right hip: the soles are level within 3 mm, or 0.3 m apart [rad]."""


@pytest.fixture
def humanoid():
    return Robot.from_urdf(nested_humanoid_urdf(), imus=[], fixed_link='root')


def settings(**more):
    return EstimatorSettings.from_dict({'fixed_link': 'root', 'contacts': list(CONTACTS), **more})


def log_of(robot, samples):
    """Return a log of samples, one a second."""
    samples = [one._replace(stamp_ns=(k + 1) * 10**9) for k, one in enumerate(samples)]
    statistics = SampleAssembler(robot, settings()).statistics()
    return Log(SampleBatch.stack(samples), 10**9, statistics)


def record(robot, rng, n, touched, offsets=OFFSETS):
    """Return a log of random motions with true torques as efforts."""
    source, samples = ConsistentReadings(robot), []
    for _ in range(n):
        pushes = {frame: rng.normal(0.0, 20.0, 6) for frame in touched}
        sample, torques, _ = source.sample(random_motion(robot, rng), pushes)
        readings = sample.ft_readings + offsets
        samples.append(sample._replace(ft_readings=readings, efforts=torques))
    return log_of(robot, samples)


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
        np.testing.assert_array_equal(found[0].assumed, np.abs(change).max(axis=1) > EXACT)


def test_prior_is_marked_where_some_of_it_is_left(rng):
    readings, slopes = rng.normal(0.0, 1.0, (200, 3, 6)), np.zeros((200, 2, 3, 6))
    # The first joint depends on all of the first sensor, the second on a sum of the others.
    slopes[:, 0, 0] = rng.normal(0.0, 1.0, (200, 6))
    slopes[:, 1, 1:] = rng.normal(0.0, 1.0, (200, 1, 1)) * [[[1, 0, 0, 0, 0, 0]]]
    torques, reference = np.zeros((200, 2)), np.zeros((200, 2))
    for assumed in np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool):
        fits = [
            offset_from_torques(readings, torques, slopes, reference, prior, assumed)
            for prior in (np.zeros((3, 6)), rng.normal(0.0, 1.0, (3, 6)) * assumed[:, None])
        ]
        changed = (np.abs(fits[1].offsets - fits[0].offsets) > EXACT).any(axis=1)
        np.testing.assert_array_equal(fits[0].assumed, changed)


def test_torques_determine_the_offsets_that_they_depend_on(humanoid, rng):
    log = record(humanoid, rng, 40, touched=('thigh', 'sole', 'hand'))
    found = compute_offsets(TORQUES, log, humanoid, settings()).fit
    felt = np.array([joint != 'neck' for joint in humanoid.joint_names])
    np.testing.assert_allclose(found.deviations[felt], 0.0, atol=EXACT)
    assert np.isnan(found.deviations[~felt]).all() and found.rank < 18
    # Without touches the model determines the others.
    log = record(humanoid, rng, 40, touched=())
    for request in (MODEL, TORQUES):
        found = compute_offsets(request, log, humanoid, settings())
        np.testing.assert_allclose(found.calibration.offsets, OFFSETS, atol=EXACT)


FLOATING, FIXED = biped(), biped(imus=[], fixed_link='l_sole')
FEET_OFFSETS = np.random.default_rng(3).normal(0.0, 20.0, (5, 6))


def of_feet(**more):
    contacts = ['l_sole', 'r_sole', 'root']
    return EstimatorSettings.from_dict({'fixed_link': 'l_sole', 'contacts': contacts, **more})


def stand(right_hip, shares, tilt=0.0):
    """Return a still pose for each share of the weight that the right foot carries."""
    positions = right_hip * (np.array(FLOATING.joint_names) == 'r_hip_pitch')
    link, L_H_sole = FLOATING.frame('l_sole')
    root_R_sole = (link_poses(FLOATING, positions)[link] @ L_H_sole)[:3, :3]
    samples, up = [], root_R_sole @ [0.0, np.sin(tilt), np.cos(tilt)]
    for share in shares:
        one = standing(FLOATING, positions, {'l_sole': 1.0 - share, 'r_sole': share}, up=up)
        samples.append(one._replace(ft_readings=one.ft_readings + FEET_OFFSETS))
    return log_of(FLOATING, samples)


def on_left_foot(log, request=MODEL):
    """Compute offsets of a robot whose left foot is fixed, without an IMU."""
    names = 'angular_velocities', 'proper_accelerations', 'angular_accelerations'
    bare = {name: getattr(log.samples, name)[:, :0] for name in names}
    log = replace(log, samples=replace(log.samples, **bare))
    return compute_offsets(request, log, FIXED, of_feet())


def test_one_foot_in_the_air_gives_the_offsets():
    found = on_left_foot(stand(LIFTED, [0.0] * 4))
    np.testing.assert_allclose(found.calibration.offsets, FEET_OFFSETS, atol=EXACT)
    slight = on_left_foot(stand(LIFTED, [0.0, 0.1] * 2))
    assert found.findings == slight.findings == ()


@pytest.mark.parametrize(('hip', 'shares'), [(LEVEL, [0.5] * 4), (LIFTED, [0.0, 0.3] * 2)])
def test_second_support_is_refused_unless_the_first_is_named(hip, shares):
    log, request = stand(hip, shares), OffsetRequest('model', support='l_sole')
    with pytest.raises(LogError):
        on_left_foot(log)
    found = on_left_foot(log, request)
    # The load of the other foot is in the offsets, and the fit shows nothing of it.
    weight = GRAVITY * FLOATING.mass
    assert np.abs(found.calibration.offsets - FEET_OFFSETS).max() > 0.1 * weight
    (one,) = found.findings
    assert (one.subject, one.code) == ('r_sole', 'second_support')
    assert one.values['share'] == (hip == LEVEL)
    # Without the readings of a sensor the submodels on both sides are one.
    for silent in ('l_foot', 'r_foot') if hip == LIFTED else ():
        names = [sensor.name for sensor in FIXED.ft_sensors]
        readings = log.samples.ft_readings.copy()
        readings[:, names.index(silent)] = np.nan
        silenced = replace(log, samples=replace(log.samples, ft_readings=readings))
        findings = on_left_foot(silenced, request).findings
        assert [o.subject for o in findings if o.code == 'second_support'] == ['r_sole']


def test_imu_determines_the_vertical():
    given = of_feet(fixed_link='', imus=['root'])
    request = OffsetRequest('model', support='l_sole')
    # On a slope of 30 degrees the feet are not level.
    for tilt, n_findings in ((0.0, 1), (np.pi / 6, 0)):
        log = stand(LEVEL, [0.0] * 4, tilt)
        assert len(compute_offsets(request, log, FLOATING, given).findings) == n_findings


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
