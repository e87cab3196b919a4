# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A bag of the demo's robot, whose skin reports pushes, against the truth of the simulation.

The messages are those of the node ``embedded_robot``, written without ROS. Not covered: how points
become contacts (test_contact_stream.py), and the node (test/ros).
"""

import numpy as np
import pytest

pytest.importorskip('rosbags')
pytest.importorskip('mujoco', reason='the embedded robot runs in mujoco')
pytest.importorskip('icub_models', reason='the embedded robot is the iCub of icub-models')

from bag_messages import (
    IMU,
    JOINT_STATE,
    POINT,
    WRENCH,
    imu,
    joint_state,
    point,
    wrench,
    write_bag,
)

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.replay import run
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.robot import Robot
from inertial_estimation.simulation.robot import SimulatedRobot
from inertial_estimation.simulation.scenario import standing

RATE = 200
SECONDS = 3.75
"""The third push comes at 3.8 s."""
START = 1_700_000_000_000_000_000
# Derivatives of exact positions over 0.1 s lag behind. A frame or a sign that is wrong costs 10 N.
FORCE = 0.2
"""N"""
# Of forces of 50 N.
ROUND_OFF = 1e-12
DEFAULTS = ['head', 'l_forearm', 'r_forearm', 'l_lower_leg', 'r_lower_leg', 'l_sole', 'r_sole']
SETTINGS = {
    'imus': ['chest'],
    'contacts': DEFAULTS,
    'contact_timeout': 0.02,
    'joint_states.velocity_source': 'filter',
    'touch_kind': 'force',
}


@pytest.fixture(scope='module')
def scene(tmp_path_factory):
    """Return bag, description, and by time in ns the wrenches on the pushed links."""
    scenario = standing(2.0 * SECONDS, 0)
    robot = SimulatedRobot(scenario, {'chest': 'chest'}, RATE)
    read = Robot.from_urdf(robot.urdf)
    messages, truth = [], {}
    for _ in range(round(SECONDS * RATE)):
        now = robot.step()
        stamp = START + now.time_ns
        for sensor, values in zip(read.ft_sensors, now.ft_wrenches):
            data = wrench(stamp, read.link_names[sensor.child], values)
            messages.append((f'/ft/{sensor.name}', WRENCH, stamp, data))
        data = imu(stamp, 'chest', now.angular_velocities[0], now.proper_accelerations[0])
        messages.append(('/imu/chest', IMU, stamp, data))
        felt = [p.frame for p in scenario.pushes if p.at(1e-9 * now.time_ns) is not None]
        messages += [('/contacts', POINT, stamp, point(stamp, f, np.zeros(3))) for f in felt]
        data = joint_state(stamp, robot.joint_names, now.positions)
        messages.append(('/joint_states', JOINT_STATE, stamp, data))
        wrenches = dict(zip(robot.contact_frames, now.external_wrenches))
        truth[stamp] = {frame: wrenches[frame] for frame in felt}
    return write_bag(tmp_path_factory.mktemp('skin') / 'bag', messages), robot.urdf, truth


@pytest.fixture(scope='module')
def settings():
    return EstimatorSettings.from_dict(SETTINGS)


@pytest.fixture(scope='module')
def replay(scene, settings):
    bag, urdf, _ = scene
    robot = build_robot(settings, urdf)
    return run(open_log(bag, robot, settings), robot, settings)


def test_push_is_recovered_about_its_link(scene, replay):
    frame, default = 'chest', 'head'
    _, _, truth = scene
    estimate, stamps = replay.estimate, replay.recording.samples.stamp_ns.tolist()
    names = [contact.name for contact in estimate.contacts]
    assert names == [*DEFAULTS, 'chest', 'l_hand']
    column, other = names.index(frame), names.index(default)
    assert (estimate.contacts[column].frame, estimate.contacts[column].kind) == (frame, 'force')
    pushed = np.array([frame in truth[stamp] for stamp in stamps])
    assert pushed.sum() > RATE
    error = estimate.wrenches[pushed, column] - [
        truth[s][frame] for s in stamps if frame in truth[s]
    ]
    assert np.sqrt(np.mean(error[:, :3] ** 2, axis=0)).max() < FORCE
    moments = estimate.wrenches[pushed, column, 3:]
    np.testing.assert_allclose(moments, 0.0, rtol=0.0, atol=ROUND_OFF)
    # While it lasts the default contact of its submodel gives way; before, it stands.
    flags = estimate.contact_quality
    assert (flags[pushed, other] & Quality.DROPPED).all()
    assert np.isnan(estimate.wrenches[pushed, other]).all()
    before = np.flatnonzero(pushed)[0] - 1
    assert not flags[before, other] & Quality.DROPPED
    assert np.isfinite(estimate.wrenches[before, other]).all()
    assert flags[before, column] & Quality.ABSENT
