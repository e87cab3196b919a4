# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A bag is played to the identifier, which hears what is in it; figures are a matter of `bench`.

Not covered: how evenly messages come; whether all of them do on a busy machine.
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bag_messages import JOINT_STATE, WRENCH, joint_state, wrench, write_bag
from free_air import smooth_motion, with_readings
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.errors import ConfigError
from inertial_estimation.identification.priors import widened
from inertial_estimation.model.robot import Robot
from inertial_estimation.verbs.bench_nodes import in_ros

pytestmark = pytest.mark.live

SECONDS, RATE = 6.0, 100.0
OFFSET = np.array([6.0, -4.0, 9.0, 0.5, -0.3, 0.2])
NOISE = np.array([0.05, 0.05, 0.05, 0.002, 0.002, 0.002])
CONFIG = """
/**:
  ros__parameters:
    fixed_link: base
    velocity_source: filter
    ft_sensors: [wrist_sensor]
    joint_topics: [/joint_states]
    least_told: 1
    ft:
      wrist_sensor: {topic: /ft, frame_id: wrist_sensor}
"""
# Of an arm whose body is known, with derivatives of a filter.
FORCE, MOMENT = 0.3, 0.03


@pytest.fixture
def job(tmp_path):
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    samples = smooth_motion(robot, SECONDS, RATE, seed=4)
    samples = with_readings(robot, samples, widened(robot.link_names, robot.parameters)[0])
    rng = np.random.default_rng(0)
    readings = samples.ft_readings[:, 0] + OFFSET
    readings += NOISE * rng.normal(size=readings.shape)
    messages = []
    for stamp, q, reading in zip(samples.stamp_ns.tolist(), samples.positions, readings):
        messages.append(('/ft', WRENCH, stamp, wrench(stamp, 'wrist_sensor', reading)))
        states = joint_state(stamp, robot.joint_names, q)
        messages.append(('/joint_states', JOINT_STATE, stamp, states))
    config = tmp_path / 'node.yaml'
    config.write_text(CONFIG)
    return {
        'urdf': arm_with_wrist_sensor_urdf(),
        'config': str(config),
        'bag': str(write_bag(tmp_path / 'bag', messages)),
        'start_ns': int(samples.stamp_ns[0]) - 1,
        'stop_ns': int(samples.stamp_ns[-1]) + 1,
    }


def test_what_is_played_is_told(job):
    answer = in_ros('bench_played', job)
    assert answer['sent'] == 2 * round(SECONDS * RATE)
    assert 0 < answer['samples'] <= answer['sent'] // 2
    stamps = [one['stamp_ns'] for one in answer['refits']]
    assert stamps == sorted(set(stamps)) != []
    last = answer['refits'][-1]
    off = np.array(last['offsets']['wrist_sensor']) - OFFSET
    assert np.abs(off[:3]).max() < FORCE
    assert np.abs(off[3:]).max() < MOMENT
    assert last['least_margin'] > 0.0
    # Every refit that told a body went out as an update, and was heard.
    telling = sum(bool(one['refitted']) for one in answer['refits'])
    assert len(answer['update_margins']) == telling > 0
    assert min(answer['update_margins']) > 0.0


def test_a_bag_without_a_topic_is_refused(job, tmp_path, capfd):
    node = tmp_path / 'node.yaml'
    node.write_text(CONFIG.replace('topic: /ft', 'topic: /other'))
    with pytest.raises(ConfigError, match='could not be measured'):
        in_ros('bench_played', job)
    assert "'/other'" in capfd.readouterr().err
