# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
FT offsets from a torque reference and from the model.

The readings come from a robot under known wrenches, computed without the engine. Not covered: how
good offsets are on a real robot, whose model is wrong; test_replay.py does that on a real log.
"""

from dataclasses import replace

import numpy as np
import pytest
from consistent_readings import ConsistentReadings, random_motion
from robots import nested_humanoid_urdf

from inertial_estimation.calibration.offset_from_torques import offset_from_torques
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.logs.log import Log
from inertial_estimation.logs.offsets import OffsetRequest, compute_offsets
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
SECOND = 1_000_000_000


@pytest.fixture
def fixed_humanoid():
    return Robot.from_urdf(nested_humanoid_urdf(), imus=[], fixed_link='root')


def settings(**more):
    return EstimatorSettings.from_dict({'fixed_link': 'root', 'contacts': list(CONTACTS), **more})


def record(robot, rng, n, touched):
    """Return n random instants, one a second, with true torques and readings that are off."""
    source = ConsistentReadings(robot)
    samples = []
    for k in range(n):
        pushes = {frame: rng.normal(0.0, 20.0, 6) for frame in touched}
        sample, torques, _ = source.sample(random_motion(robot, rng), pushes)
        samples.append(
            sample._replace(
                stamp_ns=(k + 1) * SECOND,
                ft_readings=sample.ft_readings + OFFSETS,
                efforts=torques,
            )
        )
    return recording_of(robot, SampleBatch.stack(samples))


def recording_of(robot, samples):
    fts = [sensor.name for sensor in robot.ft_sensors]
    statistics = SampleAssembler(robot.joint_names, fts, (), settings()).statistics()
    return Log(samples, SECOND, statistics)


def test_the_model_tells_the_offsets_of_a_robot_with_one_support(fixed_humanoid, rng):
    recording = record(fixed_humanoid, rng, 10, touched=())
    request = OffsetRequest('model')
    found = compute_offsets(request, recording, fixed_humanoid, settings())
    np.testing.assert_allclose(found.calibration.offsets, OFFSETS, atol=EXACT)
    assert found.model.rank == 18
    assert found.model.n_samples == 10
    np.testing.assert_allclose(found.model.deviations, 0.0, atol=EXACT)


def standing_on(robot, rng, frame, n=3):
    """Return a recording of a robot that feels nothing but one wrench at a frame."""
    source = ConsistentReadings(robot)
    samples = []
    for k in range(n):
        sample, *_ = source.sample(random_motion(robot, rng), {frame: rng.normal(0.0, 50.0, 6)})
        samples.append(sample._replace(stamp_ns=(k + 1) * SECOND))
    return recording_of(robot, SampleBatch.stack(samples))


@pytest.mark.parametrize('support', CONTACTS)
def test_an_offset_is_marked_if_it_depends_on_where_an_assumed_joint_stands(rng, support):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['chest'])
    given = EstimatorSettings.from_dict({'imus': ['chest'], 'contacts': list(CONTACTS)})
    samples = standing_on(robot, rng, support).samples
    for joint in range(len(robot.joint_names)):
        found = []
        for shift in (0.0, 0.5):
            states = np.zeros(samples.positions.shape, dtype=np.uint8)
            states[:, joint] = SensorState.ASSUMED
            positions = samples.positions.copy()
            positions[:, joint] += shift
            moved = replace(samples, positions=positions, joint_states=states)
            request = OffsetRequest('model', support=support)
            found.append(compute_offsets(request, recording_of(robot, moved), robot, given))
        change = found[1].calibration.offsets - found[0].calibration.offsets
        changed = np.abs(change).max(axis=1) > EXACT
        np.testing.assert_array_equal(found[0].model.assumed, changed)
        np.testing.assert_array_equal(found[0].assumed, changed)


def test_an_assumed_prior_is_marked_where_something_of_it_is_left(rng):
    readings = rng.normal(0.0, 1.0, (200, 3, 6))
    slopes = np.zeros((200, 2, 3, 6))
    # The first joint sees all of the first sensor, the second one what it shares with the third.
    slopes[:, 0, 0] = rng.normal(0.0, 1.0, (200, 6))
    slopes[:, 1, 1:] = rng.normal(0.0, 1.0, (200, 1, 1)) * [[[1, 0, 0, 0, 0, 0]]]
    torques, reference = np.zeros((200, 2)), np.zeros((200, 2))
    for assumed in ([1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]):
        assumed = np.array(assumed, dtype=bool)
        fits = [
            offset_from_torques(
                readings, torques, slopes, reference, prior=prior, prior_assumed=assumed
            )
            for prior in (np.zeros((3, 6)), rng.normal(0.0, 1.0, (3, 6)) * assumed[:, None])
        ]
        changed = (np.abs(fits[1].offsets - fits[0].offsets) > EXACT).any(axis=1)
        np.testing.assert_array_equal(fits[0].assumed, changed)
    assert not fits[0].assumed.any()
    without = offset_from_torques(readings, torques, slopes, reference)
    assert not without.assumed.any()


def test_torques_tell_the_offsets_that_they_depend_on(fixed_humanoid, rng):
    recording = record(fixed_humanoid, rng, 40, touched=('thigh', 'sole', 'hand'))
    found = compute_offsets(OffsetRequest('torques'), recording, fixed_humanoid, settings())
    felt = np.array([joint != 'neck' for joint in fixed_humanoid.joint_names])
    np.testing.assert_allclose(found.torques.deviations[felt], 0.0, atol=EXACT)
    assert np.isnan(found.torques.deviations[~felt]).all()
    assert found.torques.rank < 18, 'no joint feels the foot sensor, few axes the others'


def test_a_known_prior_survives_where_torques_say_nothing(fixed_humanoid, rng):
    recording = record(fixed_humanoid, rng, 40, touched=())
    found = compute_offsets(OffsetRequest('torques'), recording, fixed_humanoid, settings())
    np.testing.assert_allclose(found.calibration.offsets, OFFSETS, atol=EXACT)
