# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The estimator node in this process: topics, diagnostics, lifecycle, parameters.

The process and its signals are in test_node_process.py, statuses in ../test_outputs.py.
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import (
    HUMANOID,
    JOINTS,
    LATCHED,
    NO_FILTERS,
    PERIOD_NS,
    SETTLE,
    START_NS,
    BenchRobot,
    Library,
    figure,
    problems,
    rows,
)
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PointStamped, WrenchStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.ros import estimator_node
from inertial_estimation.ros.conversions import point_to_message

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
STAMPS = [START_NS + k * PERIOD_NS for k in range(10)]
"""Enough to fill the derivative filter."""
ZEROS = [0.0] * len(JOINTS)


@pytest.mark.parametrize('has_events', [True, False])
def test_every_cycle_equals_the_library(bench, rng, monkeypatch, has_events):
    monkeypatch.setattr(estimator_node, 'has_events_executor', lambda: has_events)
    given = {'ft.arm_sensor.offset': [1.0, -2.0, 3.0, 0.1, 0.2, -0.3]}
    robot = bench(**given)
    wrenches = robot.listen_to_wrenches()
    others = {
        'joint_torques': 'torques', 'external_joint_torques': 'external_torques',
        'quality': 'quality',
    }  # fmt: skip
    for topic in others:
        robot.listen(JointState, f'wrench_estimator/{topic}')
    library = Library({stamp: robot.send_all(stamp, rng) for stamp in STAMPS}, **given)
    for sample in library.samples:
        estimate = library.estimator.update(sample)
        message = robot.wait_for_stamp(wrenches, sample.stamp_ns)
        assert message.joint_names == HUMANOID['contacts']
        np.testing.assert_array_equal(rows(message), estimate.wrenches)
        for topic, name in others.items():
            heard = robot.heard[f'wrench_estimator/{topic}']
            message = robot.wait_for_stamp(heard, sample.stamp_ns)
            if topic != 'quality':
                assert message.name == list(library.robot.joint_names)
                assert message.header.frame_id == 'root'
            np.testing.assert_array_equal(message.effort, getattr(estimate, name))
    assert np.isfinite(estimate.wrenches).all()
    robot.listen(WrenchStamped, 'wrench_estimator/ft_offset/arm_sensor', LATCHED)
    latched = robot.heard['wrench_estimator/ft_offset/arm_sensor']
    robot.spin_until(lambda: latched)
    assert (latched[0].header.frame_id, latched[0].wrench.force.y) == ('upper_arm', -2.0)


def test_reported_contacts_replace_defaults_of_their_submodel(bench, rng):
    robot = bench(touch_kind='force', **NO_FILTERS)
    wrenches = robot.listen_to_wrenches()
    robot.listen_to_diagnostics()
    points = {'shank': (0.0, 0.1, 0.2), 'foot': (0.1, 0.0, 0.0)}
    for frame, point in (*points.items(), ('nowhere', (0.0, 0.0, 0.0))):
        message = point_to_message(START_NS, frame, point)
        robot.publisher(PointStamped, 'contacts').publish(message)
    library = Library({START_NS: robot.send_all(START_NS, rng)}, **NO_FILTERS)
    message = robot.wait_for_stamp(wrenches, START_NS)
    assert message.joint_names == ['sole', 'hand', 'thigh', 'root', 'shank', 'foot']
    touches = [Contact(frame, 'force', point) for frame, point in points.items()]
    contacts = library.estimator.with_touches(touches)
    wanted = library.estimator.update(library.samples[0], contacts).wrenches
    np.testing.assert_array_equal(rows(message), wanted)
    assert np.isnan(wanted[[0, 2]]).all()
    status = robot.status('contacts')
    assert status.level == DiagnosticStatus.WARN and 'nowhere' in status.message
    # They are not repeated: the defaults are back.
    late = START_NS + 200_000_000
    robot.send_all(late, rng)
    message = robot.wait_for_stamp(wrenches, late)
    assert message.joint_names == HUMANOID['contacts'] and np.isfinite(rows(message)).all()


def test_bad_messages_cost_only_themselves(bench, rng):
    robot = bench(**NO_FILTERS)
    wrenches = robot.listen_to_wrenches()
    robot.listen_to_diagnostics()
    stamp = START_NS
    robot.send_all(stamp, rng)
    robot.send_ft('arm_sensor', stamp + 1, ZEROS, frame_id='foot')
    robot.send_ft('arm_sensor', 0, ZEROS)
    robot.send_imu('head', stamp + 1, [0.0] * 3, [0.0] * 3, frame_id='hand')
    robot.publisher(WrenchStamped, 'ft/leg_sensor').publish(b'\x00\x01\x00\x00 not a wrench')
    robot.send_joints(stamp + 1, position=ZEROS[:-1])
    robot.send_joints(0, position=ZEROS)
    robot.send_joints(stamp + 2, position=ZEROS, velocity=ZEROS[:-1])
    robot.send_joints(stamp + 3, names=['gripper', *JOINTS], position=[0.0, *ZEROS])
    robot.publisher(JointState, 'joint_states').publish(b'')
    robot.send_ft('foot_sensor', stamp + 3, [np.nan] * 6)
    robot.spin_for(SETTLE)
    robot.send_joints(stamp + 4, position=ZEROS, velocity=ZEROS)
    robot.wait_for_stamp(wrenches, stamp + 4)
    found = {
        'ft arm_sensor': [1, 1], 'imu head': [1], 'ft leg_sensor': [1],
        'joint states joint_states': [1, 1, 1, 1],
    }  # fmt: skip
    for task, counts in found.items():
        assert sorted(problems(robot.status(task)).values()) == counts, task
    assert figure(robot.status('joints'), 'not estimated') == 'gripper'
    assert robot.status('ft foot_sensor').level == DiagnosticStatus.ERROR
    assert figure(robot.status('submodel foot'), 'quality') == 'merged'


def test_frozen_silent_and_unfiltered_sources_are_reported(bench, rng):
    robot = bench(**{'frozen_after': 0.03, 'filter.window': 0.02})
    wrenches = robot.listen_to_wrenches()
    robot.listen_to_diagnostics()
    for stamp in STAMPS:
        robot.send_ft('leg_sensor', stamp, [1.0] * 6)
        robot.send_imu('head', stamp, rng.standard_normal(3), [0.0, 0.0, 9.81])
        robot.spin_for(SETTLE)
        robot.send_joints(stamp, position=ZEROS, velocity=ZEROS)
    robot.wait_for_stamp(wrenches, stamp)
    assert robot.status('ft leg_sensor').level == DiagnosticStatus.ERROR
    assert 'ft/arm_sensor' in robot.status('ft arm_sensor').message
    for task in ('imu head', 'joint states joint_states'):
        status = robot.status(task)
        assert status.level >= DiagnosticStatus.WARN and figure(status, 'filter lacks')
    assert robot.status('clock').level == DiagnosticStatus.WARN
    # Everything falls silent.
    for task in ('joints', 'ft leg_sensor', 'imu head', 'joint states joint_states'):
        assert robot.next_status(task).level == DiagnosticStatus.ERROR
    assert robot.status('clock').level == DiagnosticStatus.OK


def test_error_of_the_estimator_is_counted_and_reported(bench, monkeypatch, rng):
    robot = bench()
    heard = robot.listen_to_diagnostics()

    def refuse(sample, contacts):
        raise np.linalg.LinAlgError('Singular matrix')

    monkeypatch.setattr(robot.estimator.pipeline._estimator, 'update', refuse)
    robot.send_all(START_NS, rng)
    robot.spin_until(
        lambda: any('Singular matrix' in s.message for message in heard for s in message.status)
    )
    status = robot.status('cycle')
    assert status.level == DiagnosticStatus.ERROR
    assert figure(status, 'failed cycles, total') == '1'


def test_findings_are_logged_once_and_named_by_node(context, keep, capfd):
    robot = keep(BenchRobot(context, namespace='left'))
    messages = robot.listen_to_diagnostics()
    robot.spin_until(lambda: len(messages) > 1)
    assert all(one.name.startswith('left/wrench_estimator: ') for one in messages[0].status)
    assert capfd.readouterr().err.count('ft arm_sensor: ') == 1


def test_lifecycle(bench, rng):
    robot = bench(autostart=False, **NO_FILTERS)
    node = robot.estimator
    assert not robot.node.count_subscribers('/joint_states')
    # As ros2 lifecycle does.
    step = Transition(id=Transition.TRANSITION_CONFIGURE)
    assert robot.call(ChangeState, 'change_state', transition=step).success
    (refused,) = node.set_parameters([Parameter('contacts', value=['sole'])])
    assert not refused.successful
    wrenches = robot.listen_to_wrenches()
    robot.send_all(STAMPS[0], rng)
    robot.spin_for(4 * SETTLE)
    assert not wrenches
    step = Transition(id=Transition.TRANSITION_ACTIVATE)
    assert robot.call(ChangeState, 'change_state', transition=step).success
    robot.send_all(STAMPS[1], rng)
    robot.wait_for_stamp(wrenches, STAMPS[1])
    assert node.trigger_deactivate() == SUCCESS
    wrenches.clear()
    robot.send_all(STAMPS[2], rng)
    robot.spin_for(4 * SETTLE)
    assert not wrenches
    # Time while inactive is not missed.
    assert node.trigger_activate() == SUCCESS
    robot.listen_to_diagnostics()
    for stamp in (START_NS + period * PERIOD_NS for period in (50, 51)):
        robot.send_all(stamp, rng)
        robot.wait_for_stamp(wrenches, stamp)
    assert figure(robot.status('cycle'), 'missed cycles, total') == '0'
    assert node.trigger_deactivate() == node.trigger_cleanup() == SUCCESS
    robot.spin_until(lambda: not robot.node.count_subscribers('/joint_states'))
    (accepted,) = node.set_parameters([Parameter('contacts', value=['sole'])])
    assert accepted.successful
    assert node.trigger_configure() == SUCCESS
    assert node.settings.contacts == ('sole',)
    assert node.trigger_shutdown() == SUCCESS


def test_rates_and_timeouts_change_while_the_node_runs(bench, rng):
    robot = bench(**NO_FILTERS)
    node, topic = robot.estimator, 'wrench_estimator/external_wrench/hand'
    wrenches = robot.listen_to_wrenches()
    robot.listen(WrenchStamped, topic)

    def change(**values):
        given = [Parameter(name.replace('__', '.'), value=v) for name, v in values.items()]
        return node.set_parameters_atomically(given)

    robot.send_all(START_NS, rng)
    robot.wait_for_stamp(wrenches, START_NS)
    robot.spin_until(lambda: robot.heard[topic])
    late = START_NS + 6 * PERIOD_NS
    robot.send_joints(late, position=ZEROS, velocity=ZEROS)
    assert np.isnan(rows(robot.wait_for_stamp(wrenches, late))).any()
    robot.spin_for(SETTLE)
    # Single wrenches are published at every cycle, but for those that are not known.
    assert len(robot.heard[topic]) == 1
    ages = {f'ft__{name}__max_age': 1.0 for name in HUMANOID['ft_sensors']}
    found = change(**ages, imu__head__max_age=1.0, outputs__wrench_rate=20.0, contact_timeout=0.3)
    assert found.successful and node.settings.contact_timeout == 0.3
    robot.heard[topic].clear()
    for stamp in range(late + PERIOD_NS, late + 11 * PERIOD_NS, PERIOD_NS):
        robot.send_joints(stamp, position=ZEROS, velocity=ZEROS)
        assert np.isfinite(rows(robot.wait_for_stamp(wrenches, stamp))).all()
    robot.spin_for(SETTLE)
    assert len(robot.heard[topic]) == 2
    # Others need a new configuration; those that may change must fit together.
    for values in ({'filter__window': 0.3}, {'frozen_after': 0.5}):
        found = change(outputs__wrench_rate=1.0, **values)
        assert not found.successful and next(iter(values)).replace('__', '.') in found.reason
    assert node.settings.outputs.wrench_rate == 20.0


def test_node_that_cannot_start_can_be_corrected(bench, capfd):
    left = {'imu.hand.topic': 'imu/left_behind', 'imu.board.frame': 'neck'}
    robot = bench(
        contacts=['base'], robot_description='', **{'ft.arm_sensor.topic': 'not a topic'}, **left
    )
    description = robot.node.create_publisher(String, 'robot_description', LATCHED)
    description.publish(String(data=HUMANOID['robot_description']))
    robot.spin_until(lambda: robot.estimator._received_urdf)
    logged = capfd.readouterr().err
    assert "'arm_sensor'" in logged and 'ros2 lifecycle' in logged
    node = robot.estimator
    node.set_parameters([Parameter('ft.arm_sensor.topic', value='')])
    assert node.trigger_configure() == FAILURE and "'base'" in capfd.readouterr().err
    assert not robot.node.count_subscribers('/joint_states')
    node.set_parameters([Parameter('contacts', value=['root'])])
    assert node.trigger_configure() == node.trigger_activate() == SUCCESS
    # Groups of no listed name are a warning; once it is listed, the group is as it was given.
    assert 'imu.hand, imu.board' in capfd.readouterr().err
    assert not node.has_parameter('imu.hand.topic')
    assert node.trigger_deactivate() == node.trigger_cleanup() == SUCCESS
    node.set_parameters([Parameter('imus', value=['hand'])])
    assert node.trigger_configure() == SUCCESS
    assert node.settings.imu_of('hand').topic == 'imu/left_behind'
    assert ': imu.board\n' in capfd.readouterr().err
    # What was started by hand is not started by another robot description.
    assert node.trigger_cleanup() == SUCCESS
    description.publish(String(data=HUMANOID['robot_description'] + ' '))
    robot.spin_until(lambda: robot.estimator._received_urdf.endswith(' '))
    assert node.pipeline is None


def test_simulated_time_may_be_set_back(bench, rng):
    robot = bench(use_sim_time=True, **NO_FILTERS)
    wrenches = robot.listen_to_wrenches()
    robot.listen_to_diagnostics()
    clock = robot.node.create_publisher(Clock, '/clock', 1)
    robot.spin_until(lambda: clock.get_subscription_count())
    for stamp in (2 * START_NS, START_NS):
        message = Clock()
        message.clock.sec, message.clock.nanosec = divmod(stamp, 10**9)
        clock.publish(message)
        now = robot.estimator.get_clock().now
        robot.spin_until(lambda now=now, stamp=stamp: now().nanoseconds == stamp)
        robot.send_all(stamp, rng)
        # Had the clock not emptied the buffers, the joint state would have, sensors and all.
        assert np.isfinite(rows(robot.wait_for_stamp(wrenches, stamp))).all()
    assert abs(float(figure(robot.status('imu head'), 'age [ms]'))) < 1.0
    wrenches.clear()
    # Without the reset this stamp would be a repeated one.
    assert robot.call(Trigger, 'reset').success
    robot.send_all(START_NS, rng)
    robot.wait_for_stamp(wrenches, START_NS)
