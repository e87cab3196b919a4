# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
FT offsets of a replay: what depends on assumed joints, offsets from torques, predicted readings.

Not covered: offsets from the model, in `test_offset_from_model`; the sources of a real log, in
`test_replay`.
"""

from dataclasses import replace

import numpy as np
import pytest
from consistent_readings import ConsistentReadings, random_motion
from robots import nested_humanoid_urdf
from scipy.signal import savgol_coeffs

from inertial_estimation.config import EstimatorSettings
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
