# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What delay and smoothing are worth on the simulated robot with noisy sensors.

Not covered: other motions and noise; longer runs.
"""

import numpy as np
import pytest

from inertial_estimation import Contact, EstimatorSettings, Robot, SampleAssembler, WrenchEstimator

pytest.importorskip('mujoco', reason='the simulated robot runs in mujoco')
pytest.importorskip('icub_models', reason='the simulated robot is the iCub of icub-models')

from inertial_estimation.simulation.noise import SensorNoise
from inertial_estimation.simulation.robot import SimulatedRobot
from inertial_estimation.simulation.scenario import SCENES

SECONDS, RATE = 3.0, 250
IMU = 'head_imu_0'
"""Far from the arms and legs: their wrenches rest on the accelerations of many joints."""
NO_EFFORTS = np.empty(0)


@pytest.fixture(scope='module')
def recorded():
    """Return the robot, and truth and readings of each instant."""
    simulated = SimulatedRobot(SCENES['pole'](SECONDS, 0), {IMU: IMU}, RATE)
    noise = SensorNoise(seed=1)
    snapshots = [simulated.step() for _ in range(round(SECONDS * RATE))]
    return simulated, [(snapshot, noise.apply(snapshot)) for snapshot in snapshots]


def force_error(recorded, **settings):
    """Return the rms error of the contacts' forces [N]."""
    simulated, instants = recorded
    robot = Robot.from_urdf(simulated.urdf, imus=[IMU])
    chosen = EstimatorSettings.from_dict({
        'joint_states.velocity_source': 'filter', 'filter.window': 0.12, 'imus': (IMU,),
        **settings,
    })  # fmt: skip
    fts = [sensor.name for sensor in robot.ft_sensors]
    rows = [simulated.ft_names.index(name) for name in fts]
    assembler = SampleAssembler(robot, chosen)
    estimator = WrenchEstimator(robot, [Contact(frame) for frame in simulated.contact_frames])
    truth, errors = {}, []
    for snapshot, reading in instants:
        stamp = reading.stamp_ns
        truth[stamp] = snapshot.external_wrenches[:, :3]
        for k, row in enumerate(rows):
            assembler.push_ft(k, stamp, reading.ft_readings[row])
        assembler.push_imu(
            0, stamp, reading.angular_velocities[0], reading.proper_accelerations[0]
        )
        sample = assembler.push_joints(
            0, stamp, simulated.joint_names, reading.positions, NO_EFFORTS, NO_EFFORTS
        )
        if sample is not None:
            errors.append(estimator.update(sample).wrenches[:, :3] - truth[sample.stamp_ns])
    errors = np.array(errors)
    known = np.isfinite(errors).all(axis=(1, 2))
    assert known.mean() > 0.9
    return np.sqrt((errors[known] ** 2).sum(axis=2).mean())


def test_the_longer_the_delay_the_smaller_the_error_and_smoothing_helps(recorded):
    plain = [force_error(recorded, **{'filter.delay': delay}) for delay in (0.0, 0.02, 0.06)]
    smooth = [
        force_error(recorded, **{'filter.delay': delay, 'filter.smooth_readings': True})
        for delay in (0.02, 0.06)
    ]
    assert plain[1] < 0.7 * plain[0]
    assert plain[2] < 0.9 * plain[1]
    assert smooth[0] < 0.85 * plain[1]
    assert smooth[1] < 0.65 * plain[2]
