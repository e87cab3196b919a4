# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The node in this process: what goes in, what comes out, what goes wrong.

Latency is a matter of the benchmark; the process and its signals are in test_node_process.py.
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

import rclpy
from bench_robot import (
    HUMANOID,
    JOINTS,
    LATCHED,
    PERIOD_NS,
    SETTLE,
    START_NS,
    BenchRobot,
    figure,
    overrides,
    problems,
)
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PointStamped, WrenchStamped
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.ros import estimator_node
from inertial_estimation.ros.conversions import point_to_message
from inertial_estimation.ros.estimator_node import EstimatorNode
from inertial_estimation.signals.assembler import SampleAssembler

SUCCESS = TransitionCallbackReturn.SUCCESS
N_SAMPLES = 10
"""Enough to fill the derivative filter."""

BOARD = {
    'robot_description': HUMANOID['robot_description'].replace(
        '</robot>',
        '<link name="neck_board"/><joint name="neck_board_joint" type="fixed">'
        '<parent link="head"/><child link="neck_board"/><origin rpy="1.5 0 0"/></joint></robot>',
    )
}
"""With a turned frame on the head."""
NO_FILTERS = {'joint_states.acceleration_source': 'zero', 'angular_acceleration_source': 'zero'}


@pytest.fixture
def bench(context):
    """Return a function that puts a robot with some parameters on the bench."""
    made = []

    def make(**parameters):
        made.append(BenchRobot(context, HUMANOID | parameters))
        return made[-1]

    yield make
    for robot in made:
        robot.close()


def samples_of_the_library(sent, **parameters):
    """Yield the samples that the library makes of readings."""
    settings = EstimatorSettings.from_dict(HUMANOID | parameters)
    assembler = SampleAssembler(build_robot(settings, settings.robot_description), settings)
    for stamp_ns, (q, v, wrenches, rates, acceleration) in sent.items():
        for k, wrench in enumerate(wrenches.values()):
            assembler.push_ft(k, stamp_ns, wrench)
        assembler.push_imu(0, stamp_ns, rates, acceleration)
        yield assembler.push_joints(0, stamp_ns, JOINTS, q, v, np.empty(0))


def estimates_of_the_library(sent, **parameters):
    """Yield what the library makes of the same readings."""
    settings = EstimatorSettings.from_dict(HUMANOID | parameters)
    estimator = build_estimator(settings, build_robot(settings, settings.robot_description))
    for sample in samples_of_the_library(sent, **parameters):
        yield estimator.update(sample)


def rows(message):
    """Return the wrenches of a message as an array."""
    return np.array(
        [
            [w.force.x, w.force.y, w.force.z, w.torque.x, w.torque.y, w.torque.z]
            for w in message.wrench
        ]
    )


@pytest.mark.parametrize('has_events', [True, False])
def test_every_cycle_equals_the_library(bench, rng, monkeypatch, has_events):
    monkeypatch.setattr(estimator_node, 'has_events_executor', lambda: has_events)
    robot = bench()
    wrenches = robot.listen_to_wrenches()
    robot.listen(JointState, 'wrench_estimator/joint_torques')
    robot.listen(JointState, 'wrench_estimator/external_joint_torques')
    stamps = [START_NS + k * PERIOD_NS for k in range(N_SAMPLES)]
    sent = {stamp: robot.send_all(stamp, rng) for stamp in stamps}
    settings = EstimatorSettings.from_dict(HUMANOID)
    joint_names = build_robot(settings, settings.robot_description).joint_names
    for stamp, estimate in zip(stamps, estimates_of_the_library(sent)):
        message = robot.wait_for_stamp(wrenches, stamp)
        assert message.joint_names == HUMANOID['contacts']
        np.testing.assert_array_equal(rows(message), estimate.wrenches)
        for topic, base, torques in (
            ('joint_torques', 'root', estimate.torques),
            ('external_joint_torques', 'root', estimate.external_torques),
        ):
            message = robot.wait_for_stamp(robot.heard[f'wrench_estimator/{topic}'], stamp)
            assert message.name == list(joint_names)
            assert message.header.frame_id == base
            np.testing.assert_array_equal(message.effort, torques)
    assert np.isfinite(estimate.wrenches).all()


def test_every_cycle_says_how_its_results_were_obtained(bench, rng):
    robot = bench(**NO_FILTERS)
    robot.listen(JointState, 'wrench_estimator/quality')
    heard = robot.heard['wrench_estimator/quality']
    robot.send_all(START_NS, rng)
    assert not any(robot.wait_for_stamp(heard, START_NS).effort)
    late = START_NS + PERIOD_NS
    robot.send_ft('arm_sensor', late, [np.nan] * 6)
    robot.spin_for(SETTLE)
    robot.send_joints(late, position=np.zeros(len(JOINTS)), velocity=np.zeros(len(JOINTS)))
    message = robot.wait_for_stamp(heard, late)
    said = dict(zip(message.name, message.effort))
    assert said['external_wrench/sole'] == 0
    assert said['external_wrench/hand'] == Quality.MERGED
    assert said['external_wrench/root'] == Quality.MERGED | Quality.DROPPED
    assert said['joint_torque/knee'] == 0
    assert said['joint_torque/elbow'] == Quality.MERGED


def send_point(robot, stamp_ns, frame_id, point, topic='contacts'):
    """Publish a point that somebody feels."""
    message = point_to_message(stamp_ns, frame_id, point)
    robot.publisher(PointStamped, topic).publish(message)


def test_touches_replace_the_defaults_of_their_submodel(bench, rng):
    robot = bench(touch_kind='force', **NO_FILTERS)
    wrenches = robot.listen_to_wrenches()
    send_point(robot, START_NS, 'shank', (0.0, 0.1, 0.2))
    send_point(robot, START_NS, 'foot', (0.1, 0.0, 0.0))
    sent = {START_NS: robot.send_all(START_NS, rng)}
    message = robot.wait_for_stamp(wrenches, START_NS)
    assert message.joint_names == ['sole', 'hand', 'thigh', 'root', 'shank', 'foot']
    settings = EstimatorSettings.from_dict(HUMANOID | NO_FILTERS)
    model = build_robot(settings, settings.robot_description)
    estimator = build_estimator(settings, model)
    touches = [
        Contact('shank', 'force', (0.0, 0.1, 0.2)),
        Contact('foot', 'force', (0.1, 0.0, 0.0)),
    ]
    sample = next(samples_of_the_library(sent, **NO_FILTERS))
    wanted = estimator.update(sample, estimator.with_touches(touches))
    np.testing.assert_array_equal(rows(message), wanted.wrenches)
    assert np.isnan(wanted.wrenches[[0, 2]]).all()
    # Nobody repeats them: the defaults are back.
    late = START_NS + 200_000_000
    robot.send_all(late, rng)
    message = robot.wait_for_stamp(wrenches, late)
    assert message.joint_names == HUMANOID['contacts']
    assert np.isfinite(rows(message)).all()


def test_points_that_cannot_be_used_are_said(bench, rng):
    robot = bench(**NO_FILTERS)
    diagnostics = robot.listen_to_diagnostics()
    wrenches = robot.listen_to_wrenches()
    send_point(robot, START_NS, 'nowhere', (0.0, 0.0, 0.0))
    robot.send_all(START_NS, rng)
    assert robot.wait_for_stamp(wrenches, START_NS).joint_names == HUMANOID['contacts']

    def said():
        tasks = [t for d in diagnostics for t in d.status if t.name.endswith(': contacts')]
        return [t.message for t in tasks if t.level == DiagnosticStatus.WARN]

    robot.spin_until(said)
    assert "'nowhere'" in said()[0]


def test_offsets_are_subtracted_and_announced(bench, rng):
    offset = [1.0, -2.0, 3.0, 0.1, 0.2, -0.3]
    given = {'ft.arm_sensor.offset': offset, **NO_FILTERS}
    robot = bench(**given)
    wrenches = robot.listen_to_wrenches()
    sent = {START_NS: robot.send_all(START_NS, rng)}
    (estimate,) = estimates_of_the_library(sent, **given)
    np.testing.assert_array_equal(
        rows(robot.wait_for_stamp(wrenches, START_NS)), estimate.wrenches
    )
    # Late on purpose: the topic is latched.
    robot.listen(WrenchStamped, 'wrench_estimator/ft_offset/arm_sensor', LATCHED)
    announced = robot.heard['wrench_estimator/ft_offset/arm_sensor']
    robot.spin_until(lambda: announced)
    assert announced[0].header.frame_id == 'upper_arm'
    assert announced[0].wrench.force.y == offset[1]


@pytest.mark.parametrize('rate', [50.0, 0.0])
def test_single_wrenches_have_their_rate_and_no_nan(bench, rng, rate):
    robot = bench(**{'outputs.wrench_rate': rate}, **NO_FILTERS)
    topic = 'wrench_estimator/external_wrench/hand'
    robot.listen(WrenchStamped, topic)
    wrenches = robot.listen_to_wrenches()
    for k in range(N_SAMPLES):
        stamp = START_NS + k * PERIOD_NS
        if k == N_SAMPLES - 1:
            robot.spin_for(2 * SETTLE)
            robot.heard[topic].clear()
            # Both of 50 Hz at once, but the joint of the arm is not known any more.
            stamp += 10 * PERIOD_NS
            robot.send_joints(stamp, position=[np.nan] * len(JOINTS))
            robot.send_joints(stamp, names=JOINTS[:3], position=[0.0] * 3)
            break
        robot.send_all(stamp, rng)
        robot.wait_for_stamp(wrenches, stamp)
        robot.spin_for(SETTLE)
        assert len(robot.heard[topic]) == 1 + (k // 2 if rate else k)
    assert np.isnan(rows(robot.wait_for_stamp(wrenches, stamp))).any()
    robot.spin_for(2 * SETTLE)
    assert not robot.heard[topic]


def test_bad_messages_cost_only_themselves(bench, rng):
    robot = bench(**NO_FILTERS)
    wrenches = robot.listen_to_wrenches()
    robot.listen_to_diagnostics()
    zeros = [0.0] * len(JOINTS)
    stamp = START_NS
    robot.send_all(stamp, rng)
    robot.send_ft('arm_sensor', stamp + 1, zeros, frame_id='foot')
    robot.send_ft('arm_sensor', 0, zeros)
    robot.send_imu('head', stamp + 1, [0.0] * 3, [0.0] * 3, frame_id='hand')
    robot.publisher(WrenchStamped, 'ft/leg_sensor').publish(b'\x00\x01\x00\x00 not a wrench')
    robot.send_joints(stamp + 1, position=zeros[:-1])
    robot.send_joints(0, position=zeros)
    robot.send_joints(stamp + 2, position=zeros, velocity=zeros[:-1])
    robot.send_joints(stamp + 3, names=['gripper', *JOINTS], position=[0.0, *zeros])
    robot.publisher(JointState, 'joint_states').publish(b'')
    robot.send_ft('foot_sensor', stamp + 3, [np.nan] * 6)
    robot.spin_for(SETTLE)
    robot.send_joints(stamp + 4, position=zeros, velocity=zeros)
    robot.wait_for_stamp(wrenches, stamp + 4)

    arm = problems(robot.status('ft arm_sensor'))
    assert sorted(arm.values()) == [1, 1]
    assert sum("'foot'" in problem for problem in arm) == 1
    (problem,) = problems(robot.status('imu head'))
    assert "'hand'" in problem
    assert len(problems(robot.status('ft leg_sensor'))) == 1
    found = problems(robot.status('joint states joint_states'))
    assert sorted(found.values()) == [1, 1, 1, 1]
    assert figure(robot.status('joints'), 'not estimated') == 'gripper'
    foot = robot.status('ft foot_sensor')
    assert foot.level == DiagnosticStatus.ERROR
    assert 'invalid' in foot.message
    assert figure(robot.status('submodel foot'), 'quality') == 'merged'


def test_big_endian_is_read_by_rclpy_and_counted(bench, rng):
    robot = bench()
    robot.listen_to_diagnostics()
    robot.send_all(START_NS, rng)
    big = b'\0\0\0\0' + np.array([1001, 0], '>u4').tobytes() + b'\0\0\0\x05foot\0' + bytes(3)
    big += bytes(-(len(big) - 4) % 8) + np.arange(6.0).astype('>f8').tobytes()
    robot.publisher(WrenchStamped, 'ft/foot_sensor').publish(big)
    robot.spin_for(SETTLE)
    foot = robot.status('ft foot_sensor')
    assert figure(foot, 'decode fallbacks') == '1'
    # A frame of the foot's link, but not the sensor's: it got as far as the frame.
    assert any("'foot'" in said for said in problems(foot))


def test_frozen_and_silent_sensors_are_named(bench, rng):
    robot = bench(**{'ft.leg_sensor.frozen_after': 0.03}, **NO_FILTERS)
    wrenches = robot.listen_to_wrenches()
    robot.listen_to_diagnostics()
    for k in range(N_SAMPLES):
        stamp = START_NS + k * PERIOD_NS
        robot.send_ft('leg_sensor', stamp, [1.0] * 6)
        robot.send_imu('head', stamp, rng.standard_normal(3), [0.0, 0.0, 9.81])
        robot.spin_for(SETTLE)
        robot.send_joints(stamp, position=[0.0] * 6, velocity=[0.0] * 6)
    robot.wait_for_stamp(wrenches, stamp)
    assert robot.status('ft leg_sensor').level == DiagnosticStatus.ERROR
    assert 'ft/arm_sensor' in robot.status('ft arm_sensor').message
    assert robot.status('imu head').level == DiagnosticStatus.OK
    # The bench stamps its messages with a clock of its own.
    assert robot.status('clock').level == DiagnosticStatus.WARN


def test_a_robot_that_falls_silent_is_not_reported_as_well(bench, rng):
    robot = bench(**NO_FILTERS)
    wrenches = robot.listen_to_wrenches()
    robot.listen_to_diagnostics()
    robot.send_all(START_NS, rng)
    robot.wait_for_stamp(wrenches, START_NS)
    assert robot.status('joints').level == DiagnosticStatus.OK
    for task in ('joints', 'ft leg_sensor', 'imu head', 'joint states joint_states'):
        status = robot.next_status(task)
        assert status.level == DiagnosticStatus.ERROR


def test_a_filter_that_never_fills_says_why(bench, rng):
    robot = bench(**{'filter.window': 2.0 * PERIOD_NS * 1e-9})
    wrenches = robot.listen_to_wrenches()
    robot.listen_to_diagnostics()
    for k in range(N_SAMPLES):
        robot.send_all(START_NS + k * PERIOD_NS, rng)
        robot.spin_for(SETTLE)
    robot.wait_for_stamp(wrenches, START_NS + (N_SAMPLES - 1) * PERIOD_NS)
    for task in ('imu head', 'joint states joint_states'):
        status = robot.status(task)
        assert status.level >= DiagnosticStatus.WARN
        assert figure(status, 'filter lacks')


def test_waits_for_the_description_on_its_topic(bench, rng):
    robot = bench(robot_description='')
    assert not robot.node.count_publishers('/wrench_estimator/external_wrenches')
    publisher = robot.node.create_publisher(String, 'robot_description', LATCHED)
    publisher.publish(String(data='<robot name="nothing"/>'))
    robot.spin_for(2 * SETTLE)
    assert robot.estimator.pipeline is None
    publisher.publish(String(data=HUMANOID['robot_description']))
    wrenches = robot.listen_to_wrenches()
    robot.send_all(START_NS, rng)
    robot.wait_for_stamp(wrenches, START_NS)


def test_a_description_file_keeps_its_bytes_and_its_encoding(bench, tmp_path):
    path = tmp_path / 'robot.urdf'
    text = '<?xml version="1.0" encoding="ISO-8859-1"?>\r\n<!-- \u00fc -->\r\n'
    text += HUMANOID['robot_description']
    path.write_bytes(text.encode('latin-1'))
    robot = bench(autostart=False, robot_description='', robot_description_file=str(path))
    assert robot.estimator.trigger_configure() == SUCCESS
    assert robot.estimator.pipeline.robot.urdf == text


@pytest.mark.parametrize('data', [None, b'<!-- \xfc --><robot/>'])
def test_a_description_file_that_cannot_be_read_is_named(bench, tmp_path, monkeypatch, data):
    heard = []
    monkeypatch.setattr(
        EstimatorNode,
        'get_logger',
        lambda node, real=EstimatorNode.get_logger: Listened(real(node), heard),
    )
    path = tmp_path / 'robot.urdf'
    if data is not None:
        path.write_bytes(data)
    robot = bench(autostart=False, robot_description='', robot_description_file=str(path))
    assert robot.estimator.trigger_configure() == TransitionCallbackReturn.FAILURE
    (sentence,) = heard
    assert sentence.startswith("'robot_description_file': ")
    assert str(path) in sentence


def test_lifecycle(bench, rng):
    robot = bench(autostart=False)
    estimator = robot.estimator
    assert not robot.node.count_subscribers('/joint_states')
    assert estimator.trigger_configure() == SUCCESS
    wrenches = robot.listen_to_wrenches()
    robot.send_all(START_NS, rng)
    robot.spin_for(4 * SETTLE)
    assert not wrenches
    assert estimator.trigger_activate() == SUCCESS
    robot.send_all(START_NS + PERIOD_NS, rng)
    robot.wait_for_stamp(wrenches, START_NS + PERIOD_NS)
    assert estimator.trigger_deactivate() == SUCCESS
    wrenches.clear()
    robot.send_all(START_NS + 2 * PERIOD_NS, rng)
    robot.spin_for(4 * SETTLE)
    assert not wrenches
    assert estimator.trigger_cleanup() == SUCCESS
    robot.spin_until(lambda: not robot.node.count_subscribers('/joint_states'))
    assert estimator.trigger_configure() == SUCCESS
    assert estimator.trigger_shutdown() == SUCCESS


def test_parameters_change_only_while_unconfigured(bench):
    robot = bench(autostart=False)
    estimator = robot.estimator
    assert estimator.trigger_configure() == SUCCESS
    change = [Parameter('contacts', value=['sole'])]
    (refused,) = estimator.set_parameters(change)
    assert not refused.successful
    assert 'clean up' in refused.reason
    assert estimator.trigger_cleanup() == SUCCESS
    (accepted,) = estimator.set_parameters(change)
    assert accepted.successful
    assert estimator.trigger_configure() == SUCCESS
    assert estimator.settings.contacts == ('sole',)


def test_a_robot_that_does_not_fit_leaves_the_node_unconfigured(bench):
    robot = bench(contacts=['sole', 'wing'], autostart=False)
    assert robot.estimator.trigger_configure() == TransitionCallbackReturn.FAILURE
    robot.estimator.set_parameters([Parameter('contacts', value=['sole'])])
    assert robot.estimator.trigger_configure() == SUCCESS


def test_a_node_that_cannot_start_says_how_to_go_on(bench, monkeypatch, rng):
    said = []
    monkeypatch.setattr(
        EstimatorNode,
        'get_logger',
        lambda node, real=EstimatorNode.get_logger: Listened(real(node), said),
    )
    robot = bench(contacts=['base'])
    estimator = robot.estimator
    assert "no frame is named 'base'" in said[0]
    assert '/wrench_estimator' in said[1]
    estimator.set_parameters([Parameter('contacts', value=['root'])])
    assert estimator.trigger_configure() == estimator.trigger_activate() == SUCCESS
    wrenches = robot.listen_to_wrenches()
    robot.send_all(START_NS, rng)
    robot.wait_for_stamp(wrenches, START_NS)


def test_groups_that_a_command_line_leaves_behind_are_named_and_not_used(bench, monkeypatch):
    said = []
    monkeypatch.setattr(
        EstimatorNode,
        'get_logger',
        lambda node, real=EstimatorNode.get_logger: Listened(real(node), said),
    )
    left = {'imu.hand.topic': 'imu/left_behind', 'imu.board.frame': 'neck'}
    robot = bench(autostart=False, **left)
    estimator = robot.estimator
    assert estimator.trigger_configure() == SUCCESS
    assert 'imu.hand, imu.board' in said[0]
    assert not estimator.has_parameter('imu.hand.topic')
    # Named again, the group is the one that was given.
    assert estimator.trigger_cleanup() == SUCCESS
    estimator.set_parameters([Parameter('imus', value=['hand'])])
    assert estimator.trigger_configure() == SUCCESS
    assert estimator.settings.imu_of('hand').topic == 'imu/left_behind'
    assert said[-1].endswith(': imu.board')


class Listened:
    """A logger whose warnings and errors are kept."""

    def __init__(self, logger, said):
        self._logger, self.warning, self.error = logger, said.append, said.append

    def __getattr__(self, name):
        return getattr(self._logger, name)


def test_topics_that_ros_refuses(bench):
    robot = bench(**{'ft.arm_sensor.topic': 'not a topic', 'autostart': False})
    assert robot.estimator.trigger_configure() == TransitionCallbackReturn.FAILURE
    assert not robot.node.count_subscribers('/joint_states')


@pytest.mark.parametrize(
    ('given', 'error'),
    [({'jonits': ['a']}, NameNotFound), ({'length_scale': 1}, ConfigError)],
)
def test_wrong_parameters_are_refused_at_once(context, given, error):
    with pytest.raises(error):
        EstimatorNode(context=context, parameter_overrides=overrides(given))


def test_reset_service(bench, rng):
    robot = bench()
    wrenches = robot.listen_to_wrenches()
    client = robot.node.create_client(Trigger, 'wrench_estimator/reset')
    robot.spin_until(client.service_is_ready)
    robot.send_all(START_NS, rng)
    robot.wait_for_stamp(wrenches, START_NS)
    answers = []
    while not answers:
        # Ready or not, a request may get lost while the two are still finding each other.
        client.call_async(Trigger.Request()).add_done_callback(answers.append)
        robot.spin_for(4 * SETTLE)
    assert answers[0].result().success
    wrenches.clear()
    # Without the reset this stamp would be a repeated one.
    robot.send_all(START_NS, rng)
    robot.wait_for_stamp(wrenches, START_NS)


def test_simulated_time_may_be_set_back(bench, rng):
    robot = bench(use_sim_time=True, **NO_FILTERS)
    wrenches = robot.listen_to_wrenches()
    robot.listen_to_diagnostics()
    clock = robot.node.create_publisher(Clock, '/clock', 1)
    robot.spin_until(lambda: clock.get_subscription_count())

    def set_clock(stamp_ns):
        message = Clock()
        message.clock.sec, message.clock.nanosec = divmod(stamp_ns, 10**9)
        clock.publish(message)
        now = robot.estimator.get_clock().now
        robot.spin_until(lambda: now().nanoseconds == stamp_ns)

    for stamp in (2 * START_NS, START_NS):
        set_clock(stamp)
        robot.send_all(stamp, rng)
        # Had the clock not emptied the buffers, the joint state would have, sensors and all.
        assert np.isfinite(rows(robot.wait_for_stamp(wrenches, stamp))).all()
    assert abs(float(figure(robot.status('imu head'), 'age [ms]'))) < 1.0


def test_backward_stamps_alone_start_anew_too(bench, rng):
    robot = bench(**NO_FILTERS)
    wrenches = robot.listen_to_wrenches()
    # The joint state that is set back empties everything, so the cycle after it is whole again.
    for stamp in (2 * START_NS, START_NS, START_NS + PERIOD_NS):
        robot.send_all(stamp, rng)
        finite = np.isfinite(rows(robot.wait_for_stamp(wrenches, stamp))).all()
        assert finite == (stamp != START_NS)


def test_joint_states_in_parts_from_several_topics(bench, rng):
    robot = bench(**{'joint_states.topics': ['left', 'right']}, **NO_FILTERS)
    wrenches = robot.listen_to_wrenches()
    for name in HUMANOID['ft_sensors']:
        robot.send_ft(name, START_NS, rng.standard_normal(6))
    robot.send_imu('head', START_NS, [0.0] * 3, [0.0, 0.0, 9.81])
    robot.send_joints(START_NS, JOINTS[:4], 'right', position=[0.0] * 4, velocity=[0.0] * 4)
    robot.spin_for(SETTLE)
    robot.send_joints(START_NS + 1, JOINTS[4:], 'left', position=[0.0] * 2, velocity=[0.0] * 2)
    message = robot.wait_for_stamp(wrenches, START_NS + 1)
    assert np.isfinite(rows(message)).any()


def test_every_topic_of_the_rviz_file_is_received(context, rng):
    yaml = pytest.importorskip('yaml', reason='needs PyYAML')
    pytest.importorskip('icub_models', reason='needs the robot description of icub-models')
    from pathlib import Path

    from inertial_estimation.simulation.description import icub_urdf

    config = Path(__file__).parents[2] / 'config'
    rviz = yaml.safe_load((config / 'wrench_estimator.rviz').read_text())
    settings = EstimatorSettings.from_yaml(config / 'icub.yaml')
    robot = build_robot(settings, icub_urdf())
    given = settings.to_parameters()
    given = {name: value for name, value in given.items() if value != []}
    inside = {'outputs.internal_wrench_joints': ['l_knee'], 'outputs.net_wrench_links': ['chest']}
    bench = BenchRobot(context, given | inside | {'robot_description': icub_urdf()})
    try:
        topics = _listen_to_rviz_topics(bench, rviz)
        latched = bench.node.create_publisher(String, 'robot_description', LATCHED)
        latched.publish(String(data=icub_urdf()))
        n = len(robot.joint_names)
        stamp = START_NS
        while not all(bench.heard[topic] for topic in topics):
            for sensor in robot.ft_sensors:
                frame = robot.link_names[sensor.child]
                bench.send_ft(sensor.name, stamp, 10.0 * rng.standard_normal(6), frame)
            for imu in robot.imus:
                bench.send_imu(imu.name, stamp, 0.1 * rng.standard_normal(3), [0.0, 0.0, 9.81])
            bench.send_joints(
                stamp,
                robot.joint_names,
                position=1e-3 * rng.standard_normal(n),
                velocity=[0.0] * n,
            )
            bench.spin_for(0.01)
            stamp += PERIOD_NS
            assert stamp < START_NS + 1000 * PERIOD_NS
        arrays = bench.heard['wrench_estimator/markers']
        kinds = {marker.ns for array in arrays for marker in array.markers}
        (listed,) = (
            display['Namespaces']
            for display in rviz['Visualization Manager']['Displays']
            if display.get('Topic', {}).get('Value') == 'wrench_estimator/markers'
        )
        assert {'force', 'moment', 'health'} <= kinds <= set(listed)
    finally:
        bench.close()


def _listen_to_rviz_topics(bench, rviz):
    """Subscribe to every topic of an rviz file as rviz would; return the topics."""
    from visualization_msgs.msg import MarkerArray

    types = {
        'Wrench': WrenchStamped,
        'Effort': JointState,
        'MarkerArray': MarkerArray,
        'RobotModel': String,
    }
    topics = []
    for display in rviz['Visualization Manager']['Displays']:
        topic = display.get('Topic') or display.get('Description Topic')
        if topic is None:
            continue
        latched = topic['Durability Policy'] == 'Transient Local'
        bench.node.create_subscription(
            types[display['Class'].partition('/')[2]],
            topic['Value'],
            bench.heard[topic['Value']].append,
            LATCHED if latched else topic['Depth'],
        )
        topics.append(topic['Value'])
    assert len(set(topics)) == len(topics) > 8
    return topics


def test_an_imu_named_like_a_frame_elsewhere_is_told_apart_from_it(bench):
    robot = bench(**{'imus': ['head'], 'imu.head.frame': 'neck_board'}, **BOARD)
    robot.listen_to_diagnostics()
    robot.send_imu('head', START_NS, [0.0] * 3, [0.0, 0.0, 9.81], frame_id='head')
    robot.send_imu('head', START_NS + 1, [0.0] * 3, [0.0, 0.0, 9.81], frame_id='neck_board')
    assert list(problems(robot.status('imu head')).values()) == [1]


def test_nothing_of_rclpy_is_left_global():
    assert not rclpy.ok()
