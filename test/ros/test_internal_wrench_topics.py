# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The topics of wrenches through joints and of net wrenches of links.

Not covered: whether the numbers are right (test_internal_wrenches.py).
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, JOINTS, PERIOD_NS, START_NS, BenchRobot
from geometry_msgs.msg import WrenchStamped
from rclpy.lifecycle import TransitionCallbackReturn

from inertial_estimation.building import build_assembler, build_estimator, build_robot
from inertial_estimation.check import check_settings
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.ros import budget
from inertial_estimation.ros.budget import Budget
from inertial_estimation.ros.conversions import wrench_from_message

GIVEN = {
    'acceleration_source': 'zero',
    'angular_acceleration_source': 'zero',
    'internal_wrench_joints': ['knee', 'leg_sensor_joint'],
    'net_wrench_links': ['head'],
}
FAST = {'visualization_rate': 1000.0}
TOPICS = {
    'internal_wrench/knee': 'shank',
    'internal_wrench/leg_sensor_joint': 'thigh',
    'net_wrench/head': 'head',
}


@pytest.fixture
def bench(context, monkeypatch):
    """Return a function that puts a robot with some parameters on the bench, without a budget."""
    monkeypatch.setattr(budget, 'SHARE', np.inf)
    made = []

    def make(**parameters):
        made.append(BenchRobot(context, HUMANOID | GIVEN | parameters))
        return made[-1]

    yield make
    for robot in made:
        robot.close()


def by_hand(stamp, sent):
    """Return what the library says: wrenches through the joints, and of all links."""
    settings = EstimatorSettings.from_dict(HUMANOID | GIVEN)
    robot = build_robot(settings, settings.robot_description)
    assembler, estimator = build_assembler(settings, robot), build_estimator(settings, robot)
    q, v, wrenches, rates, acceleration = sent
    for k, wrench in enumerate(wrenches.values()):
        assembler.push_ft(k, stamp, wrench)
    assembler.push_imu(0, stamp, rates, acceleration)
    sample = assembler.push_joints(0, stamp, JOINTS, q, v, np.empty(0))
    estimate = estimator.update(sample)
    internal = InternalWrenches(estimator)
    through = internal.of(sample, estimate, GIVEN['internal_wrench_joints'])
    return *through, internal.net(sample, estimate)[robot.link_names.index('head')]


def test_what_the_library_says_goes_out_in_the_frames_of_the_links(bench, rng):
    robot = bench(**FAST)
    for topic in TOPICS:
        robot.listen(WrenchStamped, f'wrench_estimator/{topic}')
    sent = robot.send_all(START_NS, rng)
    for (topic, frame), wanted in zip(TOPICS.items(), by_hand(START_NS, sent)):
        message = robot.wait_for_stamp(robot.heard[f'wrench_estimator/{topic}'], START_NS)
        assert message.header.frame_id == frame
        np.testing.assert_array_equal(wrench_from_message(message).wrench, wanted)


def test_nobody_who_listens_means_no_work(bench, rng, monkeypatch):
    robot = bench(**FAST)
    asked = []
    monkeypatch.setattr(InternalWrenches, 'of', lambda *given: asked.append(given))
    monkeypatch.setattr(InternalWrenches, 'net', lambda *given: asked.append(given))
    wrenches = robot.listen_to_wrenches()
    robot.send_all(START_NS, rng)
    robot.wait_for_stamp(wrenches, START_NS)
    assert not asked


def test_they_come_at_the_rate_of_what_is_for_people(bench, rng):
    robot = bench(visualization_rate=50.0)
    robot.listen(WrenchStamped, 'wrench_estimator/net_wrench/head')
    wrenches = robot.listen_to_wrenches()
    for k in range(4):
        robot.send_all(START_NS + k * PERIOD_NS, rng)
        robot.wait_for_stamp(wrenches, START_NS + k * PERIOD_NS)
    heard = robot.heard['wrench_estimator/net_wrench/head']
    robot.wait_for_stamp(heard, START_NS + 2 * PERIOD_NS)
    assert len(heard) == 2


@pytest.mark.parametrize(
    ('given', 'said'),
    [
        (
            {'internal_wrench_joints': ['knee', 'kneee']},
            "'internal_wrench_joints' names 'kneee', but no joint is named 'kneee'",
        ),
        (
            {'internal_wrench_joints': ['sole_joint']},
            "'internal_wrench_joints' names 'sole_joint': joint 'sole_joint' of type 'fixed' is",
        ),
        (
            {'net_wrench_links': ['haed']},
            "'net_wrench_links' names 'haed', but no link is named 'haed'; closest: head",
        ),
        (
            {'net_wrench_links': ['sole']},
            "'net_wrench_links' names 'sole', a frame fixed to link 'foot': name 'foot'",
        ),
    ],
)
def test_what_the_robot_does_not_have_is_refused(bench, given, said):
    settings = EstimatorSettings.from_dict(HUMANOID | given)
    (refusal,) = check_settings(settings, HUMANOID['robot_description']).refusals
    assert refusal.startswith(said)
    robot = bench(autostart=False, **given)
    assert robot.estimator.trigger_configure() == TransitionCallbackReturn.FAILURE
    assert not robot.node.count_publishers('/wrench_estimator/external_wrenches')


def test_a_name_that_stands_twice_is_refused():
    with pytest.raises(ConfigError, match='more than once'):
        EstimatorSettings(net_wrench_links=('head', 'head'))


def test_work_waits_until_cycles_have_paid_for_it():
    account = Budget()
    assert account.allows
    account.spend(1e-3)
    for _ in range(4):
        account.earn(1e-3)
        assert not account.allows
    account.earn(1.1e-3)
    assert account.allows
