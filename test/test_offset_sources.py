# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""FT offsets of a replay: from the model with one support, and from a torque reference."""

from dataclasses import replace

import numpy as np
import pytest
from consistent_readings import ConsistentReadings, Motion, random_motion
from robots import _ft, _links, nested_humanoid_urdf
from scipy.signal import savgol_coeffs

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
WEIGHT = 9.81 * (2 * 1.0 + 2 * 4.0 + 20.0)
LIFTED = 0.4


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


def two_feet_urdf():
    """Return a chain from a left foot over a pelvis to a right foot at the same height."""
    text = _links(l_foot=1.0, l_leg=4.0, pelvis=20.0, r_leg=4.0, r_foot=1.0)
    for name, parent, child, xyz in (
        ('l_ft', 'l_foot', 'l_leg', '0 0 0.1'), ('l_hip', 'l_leg', 'pelvis', '0 0 0.5'),
        ('r_hip', 'pelvis', 'r_leg', '0 -0.2 0'), ('r_ft', 'r_leg', 'r_foot', '0 0 -0.6'),
    ):  # fmt: skip
        text += (
            f'<joint name="{name}" type="{"revolute" if "hip" in name else "fixed"}">'
            f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{xyz}"/>'
            '<axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="9" velocity="9"/></joint>'
        )
        text += _ft(name, name) if 'ft' in name else ''
    return f'<robot name="two_feet">{text}</robot>'


@pytest.fixture
def feet():
    return Robot.from_urdf(two_feet_urdf(), imus=[], fixed_link='l_foot')


def of_feet(**more):
    contacts = ['l_foot', 'r_foot', 'pelvis']
    return EstimatorSettings.from_dict({'fixed_link': 'l_foot', 'contacts': contacts, **more})


def stand(robot, right_hip, pushes):
    """Return a still pose for each upward force at the right foot [N]."""
    source, samples = ConsistentReadings(robot), []
    hips = {'l_hip': 0.0, 'r_hip': right_hip}
    positions = np.array([hips[joint] for joint in robot.joint_names])
    for push in pushes:
        wrench = np.array([0.0, 0.0, push, 0.0, 0.0, 0.0])
        still = Motion(positions, *np.zeros((2, 2)), np.zeros(3))
        sample, *_ = source.sample(still, {'r_foot': wrench})
        samples.append(sample._replace(ft_readings=sample.ft_readings + OFFSETS[:2]))
    return log_of(robot, samples)


def test_one_foot_in_the_air_gives_the_offsets(feet):
    found = compute_offsets(MODEL, stand(feet, LIFTED, [0.0] * 4), feet, of_feet())
    np.testing.assert_allclose(found.calibration.offsets, OFFSETS[:2], atol=EXACT)
    slight = stand(feet, LIFTED, [0.0, 0.1 * WEIGHT] * 2)
    assert found.findings == compute_offsets(MODEL, slight, feet, of_feet()).findings == ()


@pytest.mark.parametrize(
    ('hip', 'pushes'), [(0.0, [WEIGHT / 2] * 4), (LIFTED, [0.0, 0.3 * WEIGHT] * 2)]
)
def test_second_support_is_refused_unless_the_first_is_named(feet, hip, pushes):
    log, request = stand(feet, hip, pushes), OffsetRequest('model', support='l_foot')
    with pytest.raises(LogError):
        compute_offsets(MODEL, log, feet, of_feet())
    found = compute_offsets(request, log, feet, of_feet())
    # The load of the other foot is in the offsets, and the fit shows nothing of it.
    assert np.abs(found.calibration.offsets - OFFSETS[:2]).max() > 0.1 * WEIGHT
    (one,) = found.findings
    assert (one.subject, one.code) == ('r_foot', 'second_support')
    assert one.values['share'] == (hip == 0.0)
    # Without the readings of a sensor the submodels on both sides are one.
    for silent in (0, 1) if hip else ():
        readings = log.samples.ft_readings.copy()
        readings[:, silent] = np.nan
        silenced = replace(log, samples=replace(log.samples, ft_readings=readings))
        findings = compute_offsets(request, silenced, feet, of_feet()).findings
        assert [o.subject for o in findings if o.code == 'second_support'] == ['r_foot']


def test_imu_determines_the_vertical():
    robot = Robot.from_urdf(two_feet_urdf(), imus=['pelvis'])
    fixed = Robot.from_urdf(two_feet_urdf(), imus=[], fixed_link='l_foot')
    # On a slope of 30 degrees the feet are not level.
    for tilt, n_findings in ((0.0, 1), (np.pi / 6, 0)):
        log = stand(fixed, 0.0, [0.0] * 4)
        up = 9.81 * np.array([[[0.0, np.sin(tilt), np.cos(tilt)]]] * 4)
        samples = replace(
            log.samples, angular_velocities=0.0 * up, proper_accelerations=up,
            angular_accelerations=0.0 * up,
        )  # fmt: skip
        given = of_feet(fixed_link='', imus=['pelvis'])
        request = OffsetRequest('model', support='l_foot')
        found = compute_offsets(request, replace(log, samples=samples), robot, given)
        assert len(found.findings) == n_findings


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
