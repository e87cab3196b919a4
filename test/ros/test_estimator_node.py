# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The estimator node in this process: topics, diagnostics, lifecycle, parameters, markers.

Not covered: whether deviations and internal wrenches are right, which tests of the library check.
The process and its signals are in test_node_process.py, statuses in ../test_outputs.py.
"""

import time
from functools import partial

import numpy as np
import pytest
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
    rows,
    stamp_of,
)
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PointStamped, WrenchStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from robots import random_sample
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState, MultiDOFJointState
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.reading_checks import COUNT
from inertial_estimation.estimation.reading_checks import PERIOD_NS as WINDOW_PERIOD_NS
from inertial_estimation.findings import Level, finding
from inertial_estimation.outputs import topics
from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.ros import estimator_node, late_outputs, subscriptions
from inertial_estimation.signals.messages import Decoder
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.sensor_noise import stream_noise

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
STAMPS = [START_NS + k * PERIOD_NS for k in range(17)]
"""Enough for the derivative filter, and some instants behind."""
ZEROS = [0.0] * len(JOINTS)


def test_faults_of_sources_and_of_the_estimator_are_reported(bench, rng, monkeypatch):
    robot = bench(**{'frozen_after': 0.03, 'filter.window': 0.02})
    wrenches = robot.listen_to_wrenches()
    robot.listen_to_diagnostics()
    for kind, topic in (
        (JointState, 'joint_states'), (WrenchStamped, 'ft/leg_sensor'), (Imu, 'imu/head'),
        (PointStamped, 'contacts'),
    ):  # fmt: skip
        for size in range(40):
            # An encapsulation, and nothing of sense after it.
            robot.publisher(kind, topic).publish(b'\x00\x01\x00\x00' + rng.bytes(size))
            robot.spin_briefly(4)
    for stamp in STAMPS:
        robot.send_ft('leg_sensor', stamp, [1.0] * 6)
        robot.send_imu('head', stamp, rng.standard_normal(3), [0.0, 0.0, 9.81])
        robot.spin_for(SETTLE)
        robot.send_joints(stamp, ZEROS, ZEROS)
    robot.wait_for_stamp(wrenches, stamp)
    status = robot.status('ft leg_sensor')
    assert status.level == DiagnosticStatus.ERROR and 'problem: ' in str(status.values)
    assert 'ft/arm_sensor' in robot.status('ft arm_sensor').message
    for task in ('imu head', 'joint states joint_states'):
        status = robot.status(task)
        assert status.level >= DiagnosticStatus.WARN and figure(status, 'filter lacks')
    assert robot.status('clock').level == DiagnosticStatus.WARN
    # Everything falls silent.
    for task in ('joints', 'ft leg_sensor', 'imu head', 'joint states joint_states'):
        assert robot.next_status(task).level == DiagnosticStatus.ERROR
    assert robot.status('clock').level == DiagnosticStatus.OK
    with pytest.raises(KeyError):
        robot.status('submodel root')
    estimator = robot.estimator.pipeline._estimator
    monkeypatch.setattr(estimator, 'step', lambda *_: np.linalg.inv(np.zeros((2, 2))))
    robot.send_all(stamp + PERIOD_NS, rng)
    status = robot.next_status('cycle')
    assert status.level == DiagnosticStatus.ERROR and 'Singular matrix' in status.message
    assert figure(status, 'failed cycles, total') == '1'


def test_second_publishers_of_the_same_sensors_and_joints_are_reported(bench, rng):
    """What depends on them is doubtful by the next window."""
    robot = bench(**NO_FILTERS)
    robot.listen_to_diagnostics()
    pipeline = robot.estimator.pipeline
    first, *others = STAMPS
    robot.send_all(first, rng)
    for kind, topic in ((JointState, 'joint_states'), (WrenchStamped, 'ft/leg_sensor')):
        robot.node.create_publisher(kind, topic, 1)
        robot.spin_until(lambda: robot.estimator.count_publishers(topic) == 2)  # noqa: B023
    tasks = 'joint states joint_states', 'ft leg_sensor', 'ft arm_sensor'

    def warned():
        robot.send_all(others.pop(), rng)
        found = [robot.status(task) for task in tasks]
        return ['2 publishers' in status.message for status in found]

    def doubtful():
        samples = [random_sample(pipeline.robot, rng) for _ in range(COUNT)]
        pipeline._judge(samples)
        step, estimate = pipeline._estimator.step(samples[0])
        marked = pipeline._checks.marked(estimate, step.plan)
        return (marked.contact_quality & Quality.DOUBTFUL).astype(bool).tolist()

    assert not any(doubtful())
    assert warned() == [True, True, False]
    # A link without moving parts depends on no joint, and that of the leg on its sensor.
    assert doubtful() == [True] * 4
    # One of them reports a joint of its own.
    robot.send_joints(others.pop(), [0.0], names=JOINTS[:1])
    assert warned() == [False, True, False]
    assert doubtful() == [False, False, True, True]


def test_second_publisher_is_one_only_if_more_messages_come(bench, rng):
    """That of a process that was killed is counted on for some time."""
    robot, stamp = bench(**NO_FILTERS), START_NS
    robot.listen_to_diagnostics()

    def mixed(step):
        nonlocal stamp
        for _ in range(5):
            stamp += step
            robot.send_ft('leg_sensor', stamp, rng.standard_normal(6))
        robot.spin_for(SETTLE)
        robot.status('ft leg_sensor')
        return robot.estimator.pipeline._checks.mixed

    assert not mixed(PERIOD_NS)
    assert not mixed(PERIOD_NS)
    other = robot.node.create_publisher(WrenchStamped, 'ft/leg_sensor', 1)
    robot.spin_until(lambda: robot.estimator.count_publishers('ft/leg_sensor') == 2)
    assert not mixed(PERIOD_NS)
    assert mixed(PERIOD_NS // 2) == {('leg_sensor', 'ft')}
    robot.node.destroy_publisher(other)
    robot.spin_until(lambda: robot.estimator.count_publishers('ft/leg_sensor') == 1)
    assert not mixed(PERIOD_NS)


def test_joints_in_degrees_are_named_and_results_doubtful_at_once(bench, rng):
    """A status comes before the next report, and results are good again with the input."""
    robot = bench(**NO_FILTERS)
    reports, quality = robot.listen_to_diagnostics(), robot.listen(JointState, '~/quality')
    stamp, findings = START_NS, []

    def send(positions, windows):
        nonlocal stamp
        for _ in range(windows * COUNT):
            stamp += WINDOW_PERIOD_NS
            for sensor in HUMANOID['ft_sensors']:
                robot.send_ft(sensor, stamp, rng.standard_normal(6))
            robot.send_imu('head', stamp, np.zeros(3), [0.0, 0.0, 9.81])
            robot.spin_for(SETTLE)
            robot.send_joints(stamp, positions, ZEROS)
            robot.spin_for(SETTLE)
        robot.spin_until(lambda: quality and stamp_of(quality[-1]) == stamp)
        findings[:] = [s for one in reports for s in one.status if s.name.endswith(': readings')]
        return np.array(quality[-1].effort, dtype=np.uint8) & Quality.DOUBTFUL

    assert not send(ZEROS, 1).any()
    send([100.0] * len(JOINTS), 1)
    # A link without moving parts depends on no joint.
    assert send([100.0] * len(JOINTS), 2).astype(bool).mean() > 0.8
    alone = [one for one in reports if len(one.status) == 1]
    assert alone and alone[0].status[0].level == DiagnosticStatus.ERROR
    assert not send(ZEROS, 3).any() and findings[-1].level == DiagnosticStatus.OK


def test_findings_are_logged_once_and_named_by_node(context, keep, capfd):
    robot = keep(BenchRobot(context, namespace='left'))
    messages = robot.listen_to_diagnostics()
    robot.spin_until(lambda: len(messages) > 1)
    assert all(one.name.startswith('left/wrench_estimator: ') for one in messages[0].status)
    assert capfd.readouterr().err.count('ft arm_sensor: ') == 1


def test_findings_of_all_levels_are_logged(bench, capfd):
    robot = bench()
    messages = robot.listen_to_diagnostics()
    for level in (Level.INFO, Level.WARNING):
        one = finding('suboptimal', f'thing {level}', level=level, what='it')
        messages.clear()
        make = partial(list, [Status('thing', (one,))])
        robot.estimator.pipeline._diagnostics.report(make, is_logged=True)
        robot.spin_until(lambda: any(s.name.endswith('thing') for m in messages for s in m.status))
        robot.spin_for(SETTLE)
    logged = capfd.readouterr().err
    assert 'thing 0' in logged and 'thing 1' in logged and 'Traceback' not in logged


def test_lifecycle(bench, rng):
    robot = bench(autostart=False, **NO_FILTERS)
    node = robot.estimator
    assert not robot.node.count_subscribers('/joint_states')
    # As ros2 lifecycle does.
    step = Transition(id=Transition.TRANSITION_CONFIGURE)
    assert robot.call('change_state', kind=ChangeState, transition=step).success
    (refused,) = node.set_parameters([Parameter('contacts', value=['sole'])])
    assert not refused.successful
    wrenches = robot.listen_to_wrenches()

    def publishes(stamp):
        """Send readings; return whether an estimate comes, where none does after some time."""
        wrenches.clear()
        robot.send_all(stamp, rng)
        robot.spin_until(lambda: wrenches, 4 * SETTLE, fails=False)
        return bool(wrenches)

    assert not publishes(STAMPS[0])
    assert node.trigger_activate() == SUCCESS
    robot.send_all(STAMPS[1], rng)
    robot.wait_for_stamp(wrenches, STAMPS[1])
    assert node.trigger_deactivate() == SUCCESS
    assert not publishes(STAMPS[2])
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
    node, wrenches = robot.estimator, robot.listen_to_wrenches()
    single = robot.listen(WrenchStamped, '~/external_wrench/hand')

    def change(**values):
        given = [Parameter(name.replace('__', '.'), value=v) for name, v in values.items()]
        return node.set_parameters_atomically(given)

    robot.send_all(START_NS, rng)
    robot.wait_for_stamp(wrenches, START_NS)
    robot.spin_until(lambda: single)
    late = START_NS + 6 * PERIOD_NS
    robot.send_joints(late, ZEROS, ZEROS)
    assert np.isnan(rows(robot.wait_for_stamp(wrenches, late))).any()
    robot.spin_for(SETTLE)
    # Single wrenches are published at every cycle, but for those that are not known.
    assert len(single) == 1
    ages = {f'ft__{name}__max_age': 1.0 for name in HUMANOID['ft_sensors']}
    found = change(**ages, imu__head__max_age=1.0, outputs__wrench_rate=20.0, contact_timeout=0.3)
    assert found.successful and node.settings.contact_timeout == 0.3
    single.clear()
    for stamp in range(late + PERIOD_NS, late + 11 * PERIOD_NS, PERIOD_NS):
        robot.send_joints(stamp, ZEROS, ZEROS)
        assert np.isfinite(rows(robot.wait_for_stamp(wrenches, stamp))).all()
    robot.spin_for(SETTLE)
    assert len(single) == 2
    # Others need a new configuration; those that may change must fit together.
    for values in ({'filter__window': 0.3}, {'frozen_after': 0.5}):
        found = change(outputs__wrench_rate=1.0, **values)
        assert not found.successful and next(iter(values)).replace('__', '.') in found.reason
    assert node.settings.outputs.wrench_rate == 20.0


def test_node_that_cannot_start_can_be_corrected(bench, tmp_path, capfd, monkeypatch):
    left = {'imu.hand.topic': 'imu/left_behind', 'imu.board.frame': 'neck'}
    robot = bench(
        contacts=['base'], robot_description='', **{'ft.arm_sensor.topic': 'not a topic'}, **left
    )
    description = robot.node.create_publisher(String, 'robot_description', LATCHED)
    (path := tmp_path / 'urdf').write_text(HUMANOID['robot_description'])
    # Text of a topic is no path; the description that comes next is tried in turn.
    for text, named in (str(path), 'is no URDF'), (path.read_text(), "'arm_sensor'"):
        description.publish(String(data=text))
        robot.spin_until(lambda text=text: robot.estimator._received_urdf == text)
        logged = capfd.readouterr().err
        assert named in logged and 'ros2 lifecycle' in logged
    node = robot.estimator
    node.set_parameters([Parameter('ft.arm_sensor.topic', value='')])
    assert node.trigger_configure() == FAILURE and "'base'" in capfd.readouterr().err
    assert not robot.node.count_subscribers('/joint_states')
    node.set_parameters([Parameter('contacts', value=['root'])])
    node.set_parameters([Parameter('tare_supports', value=['tail'])])
    assert node.trigger_configure() == FAILURE and "'tail'" in capfd.readouterr().err
    node.set_parameters([Parameter('tare_supports', value=['sole'])])
    with monkeypatch.context() as patched:
        patched.setattr(estimator_node, 'Taring', lambda *_: 1 / 0)
        assert node.trigger_configure() != SUCCESS
    # Nothing is left of a part of a pipeline.
    assert not [one for one in node.subscriptions if one.topic_name == '/joint_states']
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
    assert robot.call('reset').success
    robot.send_all(START_NS, rng)
    robot.wait_for_stamp(wrenches, START_NS)


# Results

TOPICS = {
    'external_wrench_deviations': (MultiDOFJointState, 'wrenches'),
    'residual_deviations': (MultiDOFJointState, 'residuals'),
    'joint_torque_deviations': (JointState, 'torques'),
    'external_joint_torque_deviations': (JointState, 'external_torques'),
}
JOINTS_INSIDE = ['knee', 'leg_sensor_joint']
INSIDE = {
    'outputs.internal_wrench_joints': JOINTS_INSIDE, 'outputs.net_wrench_links': ['head'],
}  # fmt: skip
FRAMES_INSIDE = {
    'internal_wrench/knee': 'shank', 'internal_wrench/leg_sensor_joint': 'thigh',
    'net_wrench/head': 'head',
}  # fmt: skip
# The measured rate of stamps that are exactly regular, and the filter's answer at it.
ROUND_OFF = 1e-9


@pytest.fixture(autouse=True)
def no_limit_of_time(monkeypatch):
    monkeypatch.setattr(late_outputs, 'MAX_SHARE', np.inf)


def at_rate(rate, **given):
    return {'outputs.deviations_rate': rate, **given}


def listen(robot):
    return {topic: robot.listen(kind, f'~/{topic}') for topic, (kind, _) in TOPICS.items()}


def send(robot, stamps, rng):
    wrenches = robot.listen_to_wrenches()
    sent = {}
    for stamp in stamps:
        sent[stamp] = robot.send_all(stamp, rng)
        robot.wait_for_stamp(wrenches, stamp)
    return sent


def deviations_of(library, contacts=None):
    sample, rates = library.samples[-1], library.assembler.rates()
    noise = stream_noise(library.settings, library.robot, rates)
    assert noise.covers(sample)
    return Uncertainty(library.estimator, noise.model).of(sample, contacts)


def test_results_equal_the_library(bench, rng):
    offset = {'ft.arm_sensor.offset': [1.0, -2.0, 3.0, 0.1, 0.2, -0.3]}
    given = at_rate(100.0, contacts=['sole', 'hand', 'root'], **INSIDE, **offset)
    robot = bench(**given | {'outputs.wrench_rate': 50.0})
    every = {
        'joint_torques': 'torques', 'external_joint_torques': 'external_torques',
        'quality': 'quality',
    }  # fmt: skip
    heard = listen(robot) | {topic: robot.listen(JointState, f'~/{topic}') for topic in every}
    heard |= {topic: robot.listen(WrenchStamped, f'~/{topic}') for topic in FRAMES_INSIDE}
    library = Library(send(robot, STAMPS, rng), **given)
    whole = robot.heard['wrench_estimator/external_wrenches']
    for sample in library.samples:
        estimate = library.estimator.update(sample)
        message = robot.wait_for_stamp(whole, sample.stamp_ns)
        assert message.joint_names == given['contacts']
        np.testing.assert_array_equal(rows(message), estimate.wrenches)
        for topic, name in every.items():
            message = robot.wait_for_stamp(heard[topic], sample.stamp_ns)
            if topic != 'quality':
                assert message.name == list(library.robot.joint_names)
                assert message.header.frame_id == 'root'
            np.testing.assert_array_equal(message.effort, getattr(estimate, name))
    assert np.isfinite(estimate.wrenches).all()
    latched = robot.listen(WrenchStamped, '~/ft_offset/arm_sensor', LATCHED)
    robot.spin_until(lambda: latched)
    assert (latched[0].header.frame_id, latched[0].wrench.force.y) == ('upper_arm', -2.0)
    # Those with a rate of their own, from the last sample.
    wanted = deviations_of(library)
    for topic, (kind, field) in TOPICS.items():
        message = robot.wait_for_stamp(heard[topic], sample.stamp_ns)
        found = message.effort if kind is JointState else rows(message)
        np.testing.assert_allclose(found, getattr(wanted, field), rtol=ROUND_OFF)
    assert (wanted.torques > 0.0).all() and np.isfinite(wanted.wrenches).all()
    assert heard['external_wrench_deviations'][-1].joint_names == given['contacts']
    assert heard['joint_torque_deviations'][-1].name == list(library.robot.joint_names)
    roots = heard['residual_deviations'][-1].joint_names
    assert roots == [submodel.name for submodel in library.robot.submodels]
    # The thigh has no contact: its residual is not zero, and has a deviation.
    assert (wanted.residuals[roots.index('thigh')] > 0.0).all()
    inside = InternalWrenches(library.estimator)
    net = inside.net(sample, estimate)[library.robot.link_names.index('head')]
    wrenches = [*inside.of(sample, estimate, JOINTS_INSIDE), net]
    for (topic, frame), values in zip(FRAMES_INSIDE.items(), wrenches, strict=True):
        message = robot.wait_for_stamp(heard[topic], sample.stamp_ns)
        assert message.header.frame_id == frame
        np.testing.assert_array_equal(Decoder('ft').read(message).values, values)
        assert STAMPS[-2] not in map(stamp_of, heard[topic])


def test_a_node_that_is_behind_estimates_the_newest_and_filters_the_rest(bench, rng, monkeypatch):
    robot = bench()
    robot.listen_to_diagnostics()
    sent = send(robot, STAMPS[:4], rng)
    wrenches = robot.heard['wrench_estimator/external_wrenches']

    def send_at_once(stamps):
        # Nothing spins the node while these come.
        with monkeypatch.context() as patched:
            patched.setattr(robot, 'spin_for', time.sleep)
            return {stamp: robot.send_all(stamp, rng) for stamp in stamps}

    sent |= send_at_once(STAMPS[4:])
    message = robot.wait_for_stamp(wrenches, STAMPS[-1])
    library = Library(sent)
    np.testing.assert_array_equal(
        rows(message), library.estimator.update(library.samples[-1]).wrenches
    )
    assert np.isfinite(rows(message)).all()
    assert list(map(stamp_of, wrenches)) == [*STAMPS[:4], STAMPS[-1]]
    status = robot.status('cycle')
    assert int(figure(status, 'missed cycles, total')) == len(STAMPS) - 5
    assert status.level == DiagnosticStatus.WARN
    assert float(figure(status, 'age p50 [us]')) > float(figure(status, 'cycle time p50 [us]'))
    # A stall costs no estimate, unless the node has been behind for long.
    last = STAMPS[-1]
    for recovery, count in ((60.0, 15), (0.0, 1)):
        monkeypatch.setattr(subscriptions, 'RECOVERY', recovery)
        soon = [last + k * PERIOD_NS // 10 for k in range(1, 16)]
        before, last = len(wrenches), soon[-1]
        send_at_once(soon)
        robot.wait_for_stamp(wrenches, last)
        assert list(map(stamp_of, wrenches))[before:] == soon[-count:]


def test_reported_contacts_replace_defaults_of_their_submodel(bench, rng):
    given = at_rate(50.0, touch_kind='force', **NO_FILTERS)
    robot = bench(**given)
    robot.listen_to_diagnostics()
    deviations = listen(robot)['external_wrench_deviations']
    arrays = robot.listen(MarkerArray, '~/markers')
    send(robot, STAMPS[:4], rng)
    robot.wait_for_stamp(deviations, STAMPS[2])
    robot.spin_for(SETTLE)
    assert list(map(stamp_of, deviations)) == STAMPS[:4:2]
    late, points = STAMPS[8], {'shank': (0.0, 0.1, 0.2), 'foot': (0.1, 0.0, 0.0)}
    for frame, point in (*points.items(), ('nowhere', (0.0, 0.0, 0.0))):
        robot.send_contact(late, frame, point)
    library = Library(send(robot, [late], rng), **given)
    touches = [Contact(frame, 'force', point) for frame, point in points.items()]
    contacts = library.estimator.with_touches(touches)
    wanted = library.estimator.update(library.samples[0], contacts)
    wrenches = robot.heard['wrench_estimator/external_wrenches']
    message = robot.wait_for_stamp(wrenches, late)
    np.testing.assert_array_equal(rows(message), wanted.wrenches)
    deviation = robot.wait_for_stamp(deviations, late)
    np.testing.assert_allclose(
        rows(deviation), deviations_of(library, contacts).wrenches, rtol=ROUND_OFF
    )
    names = [contact.name for contact in wanted.contacts]
    assert message.joint_names == deviation.joint_names == names != HUMANOID['contacts']
    status = robot.status('contacts')
    assert status.level == DiagnosticStatus.WARN and 'nowhere' in status.message
    # Markers of 30 Hz show them.
    robot.spin_until(lambda: len(arrays) == 2)
    found = [m.header.frame_id for m in arrays[-1].markers if m.ns == 'force_deviation']
    assert 'shank' in found and len(found) >= 4
    assert len(set(map(stamp_of, arrays[-1].markers))) == 1
    # They are not repeated: the defaults are back.
    send(robot, [late + 200_000_000], rng)
    assert wrenches[-1].joint_names == deviations[0].joint_names == HUMANOID['contacts']
    assert np.isfinite(rows(wrenches[-1])).all()


def test_contacts_that_push_have_their_normals_and_a_centre_of_pressure(bench, rng):
    sole = {'kind': 'surface', 'friction': 0.6, 'size': [0.2, 0.1]}
    given = {f'contact.sole.{key}': value for key, value in sole.items()} | {
        'touch_kind': 'unilateral', 'ft.foot_sensor.offset': [0.0, 0.0, 100.0, 0.0, 0.0, 0.0],
    } | NO_FILTERS  # fmt: skip
    robot = bench(**given)
    centres = robot.listen(PointStamped, '~/center_of_pressure/sole')
    robot.spin_for(SETTLE)
    robot.send_contact_pose(STAMPS[1], 'shank', (0.0, 0.1, 0.2), (0.0, 0.6, 0.0, 0.8))
    robot.spin_for(SETTLE)
    library = Library(send(robot, STAMPS[:2], rng), **given)
    touch = Contact('shank', 'unilateral', (0.0, 0.1, 0.2), (-0.96, 0.0, -0.28))
    contacts = [None, library.estimator.with_touches([touch])]
    pressed = 0
    for sample, own in zip(library.samples, contacts, strict=True):
        wanted = library.estimator.update(sample, own)
        message = robot.wait_for_stamp(
            robot.heard['wrench_estimator/external_wrenches'], sample.stamp_ns
        )
        np.testing.assert_allclose(rows(message), wanted.wrenches, rtol=0.0, atol=1e-3)
        force, moment = np.split(wanted.wrenches[0], 2)
        if force[2] > 5.0:
            message = robot.wait_for_stamp(centres, sample.stamp_ns)
            expected = [-moment[1] / force[2], moment[0] / force[2], 0.0]
            found = [message.point.x, message.point.y, message.point.z]
            np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-3)
            assert message.header.frame_id == 'sole'
            pressed += 1
    assert pressed


def test_without_subscribers_nothing_is_computed_and_what_is_missing_is_reported(
    bench, rng, monkeypatch
):
    robot = bench(**at_rate(1000.0, **INSIDE))
    robot.listen_to_diagnostics()
    asked = []
    with monkeypatch.context() as patched:
        for name in ('of', 'net'):
            patched.setattr(InternalWrenches, name, lambda *given: asked.append(given))
        send(robot, STAMPS[:2], rng)
    assert not asked and robot.estimator.pipeline.late._count == 0
    # The filter lacks samples, and the noise of its results is not known.
    heard = listen(robot)['joint_torque_deviations']
    send(robot, STAMPS[2:4], rng)
    assert not heard and robot.status('deviations').level == DiagnosticStatus.WARN
    send(robot, STAMPS[4:], rng)
    status = robot.next_status('deviations')
    assert status.level == DiagnosticStatus.OK
    assert int(figure(status, 'count')) == len(heard) > 0


@pytest.mark.parametrize(('cycles', 'rate'), [(100.0, 50.0), (250.0, 100.0), (100.0, 100.0)])
def test_rates_are_kept_on_average(rng, cycles, rate):
    stamps = (START_NS + 1e9 / cycles * (np.arange(1000) + rng.uniform(-0.1, 0.1, 1000))).tolist()
    limiter = topics.RateLimiter(rate)
    due = [limiter.is_due(round(stamp)) for stamp in stamps]
    assert sum(due) == pytest.approx(1000 * rate / cycles, rel=0.01)
    # Time that is set back blocks nothing.
    assert limiter.is_due(round(stamps[0]) - 10**9)
