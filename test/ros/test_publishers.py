# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Topics of standard deviations, internal wrenches and markers: when, under which names, and values.

Not covered: whether the numbers are right, which tests of the library check.
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, JOINTS, PERIOD_NS, SETTLE, START_NS, BenchRobot, figure
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PointStamped, WrenchStamped
from rclpy.lifecycle import TransitionCallbackReturn
from sensor_msgs.msg import JointState, MultiDOFJointState
from test_set_parameters import others
from visualization_msgs.msg import Marker, MarkerArray

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.cli.robot_check import check_settings
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.ros import publishers
from inertial_estimation.ros.conversions import point_to_message, stamp_to_ns
from inertial_estimation.ros.inertial_parameters import TOPIC, to_message
from inertial_estimation.ros.publishers import RateLimiter
from inertial_estimation.ros.subscriptions import LATCHED
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.messages import (
    Decoder,
)
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.stream_noise import stream_noise

N_SAMPLES = 16
"""Enough for the derivative filter, and some instants behind."""
TOPICS = {
    'external_wrench_deviations': (MultiDOFJointState, 'wrenches'),
    'residual_deviations': (MultiDOFJointState, 'residuals'),
    'joint_torque_deviations': (JointState, 'torques'),
    'external_joint_torque_deviations': (JointState, 'external_torques'),
}
NO_FILTERS = {'joint_states.acceleration_source': 'zero', 'angular_acceleration_source': 'zero'}
# The measured rate of stamps that are exactly regular, and the filter's answer at it.
ROUND_OFF = 1e-9


INNER = {
    'outputs.internal_wrench_joints': ['knee', 'leg_sensor_joint'],
    'outputs.net_wrench_links': ['head'],
    **NO_FILTERS,
}
INNER_TOPICS = {
    'internal_wrench/knee': 'shank',
    'internal_wrench/leg_sensor_joint': 'thigh',
    'net_wrench/head': 'head',
}


@pytest.fixture
def bench(context, monkeypatch):
    """Return a function that puts a robot on the bench, with no limit of time."""
    monkeypatch.setattr(publishers, 'MAX_SHARE', np.inf)
    made = []

    def make(**parameters):
        made.append(BenchRobot(context, HUMANOID | parameters))
        return made[-1]

    yield make
    for robot in made:
        robot.close()


def listen(robot):
    """Return the messages of each topic."""
    for topic, (kind, _) in TOPICS.items():
        robot.listen(kind, f'wrench_estimator/{topic}')
    return {topic: robot.heard[f'wrench_estimator/{topic}'] for topic in TOPICS}


def numbers(message):
    """Return what a message says as an array."""
    if isinstance(message, JointState):
        return np.array(message.effort)
    return np.array(
        [
            [w.force.x, w.force.y, w.force.z, w.torque.x, w.torque.y, w.torque.z]
            for w in message.wrench
        ]
    )


def send(robot, stamps, rng):
    """Publish readings at some stamps; return them."""
    wrenches = robot.listen_to_wrenches()
    sent = {}
    for stamp in stamps:
        sent[stamp] = robot.send_all(stamp, rng)
        robot.wait_for_stamp(wrenches, stamp)
    return sent


def by_hand(sent, touches=(), **parameters):
    """Return what the library says about the last of some readings."""
    sample, rates = sample_of(sent, **parameters)
    settings = EstimatorSettings.from_dict(HUMANOID | parameters)
    robot = build_robot(settings, settings.robot_description)
    estimator, noise = build_estimator(settings, robot), stream_noise(settings, robot, rates)
    assert noise.covers(sample)
    contacts = estimator.with_touches(touches) if touches else None
    return robot, Uncertainty(estimator, noise.model).of(sample, contacts)


def sample_of(sent, **parameters):
    """Return the sample that the library makes of the last of some readings, and the rates."""
    settings = EstimatorSettings.from_dict(HUMANOID | parameters)
    robot = build_robot(settings, settings.robot_description)
    assembler = SampleAssembler(robot, settings)
    for stamp, (q, v, wrenches, rates, acceleration) in sent.items():
        for k, wrench in enumerate(wrenches.values()):
            assembler.push_ft(k, stamp, wrench)
        assembler.push_imu(0, stamp, rates, acceleration)
        sample = assembler.push_joints(0, stamp, JOINTS, q, v, np.empty(0))
    return sample, assembler.rates()


def test_deviations_are_those_of_the_library_with_its_names(bench, rng):
    given = {'outputs.deviations_rate': 100.0, 'contacts': ['sole', 'hand', 'root']}
    robot = bench(**given)
    heard = listen(robot)
    sent = send(robot, [START_NS + k * PERIOD_NS for k in range(N_SAMPLES)], rng)
    model, wanted = by_hand(sent, **given)
    for topic, (_, field) in TOPICS.items():
        message = robot.wait_for_stamp(heard[topic], max(sent))
        np.testing.assert_allclose(numbers(message), getattr(wanted, field), rtol=ROUND_OFF)
    assert (wanted.torques > 0.0).all()
    assert np.isfinite(wanted.wrenches).all()
    names = heard['external_wrench_deviations'][-1].joint_names
    assert names == robot.heard['wrench_estimator/external_wrenches'][-1].joint_names
    assert heard['joint_torque_deviations'][-1].name == list(model.joint_names)
    roots = heard['residual_deviations'][-1].joint_names
    assert roots == [submodel.name for submodel in model.submodels]
    # The thigh has no contact: its residual is not zero, and has a deviation.
    assert (wanted.residuals[roots.index('thigh')] > 0.0).all()


def test_before_a_filter_has_found_its_rate_nothing_goes_out(bench, rng):
    robot = bench(**{'outputs.deviations_rate': 1000.0})
    heard = listen(robot)['joint_torque_deviations']
    robot.listen(JointState, 'wrench_estimator/joint_torques')
    stamps = [START_NS + k * PERIOD_NS for k in range(N_SAMPLES)]
    send(robot, stamps, rng)
    robot.wait_for_stamp(heard, stamps[-1])
    torques = robot.heard['wrench_estimator/joint_torques']
    robot.wait_for_stamp(torques, stamps[-1])
    known = [m for m in torques if np.isfinite(m.effort).all()]
    first = stamps.index(stamp_to_ns(known[0].header.stamp))
    assert first > 0
    # Joints and gyroscope have their turn, one at a time.
    spoken = [stamp_to_ns(message.header.stamp) for message in heard]
    assert spoken == stamps[first + 2 :]
    assert all(np.isfinite(message.effort).all() for message in heard)


def test_they_are_decimated_and_follow_the_contacts(bench, rng):
    robot = bench(**{'outputs.deviations_rate': 50.0}, touch_kind='force', **NO_FILTERS)
    heard = listen(robot)['external_wrench_deviations']
    stamps = [START_NS + k * PERIOD_NS for k in range(4)]
    send(robot, stamps, rng)
    robot.wait_for_stamp(heard, stamps[2])
    robot.spin_for(SETTLE)
    assert [stamp_to_ns(message.header.stamp) for message in heard] == stamps[::2]
    assert heard[0].joint_names == HUMANOID['contacts']
    late = stamps[-1] + 4 * PERIOD_NS
    point = (0.0, 0.1, 0.2)
    robot.publisher(PointStamped, 'contacts').publish(point_to_message(late, 'shank', point))
    robot.spin_for(SETTLE)
    sent = send(robot, [late], rng)
    message = robot.wait_for_stamp(heard, late)
    assert message.joint_names == [*HUMANOID['contacts'], 'shank']
    touches = [Contact('shank', 'force', point)]
    _, wanted = by_hand(sent, touches, touch_kind='force', **NO_FILTERS)
    np.testing.assert_allclose(numbers(message), wanted.wrenches, rtol=ROUND_OFF)
    assert np.isnan(wanted.wrenches[2]).all()  # the thigh gave way
    assert np.isfinite(wanted.wrenches[-1]).all()


def test_several_touches_of_a_frame_have_the_names_of_the_wrenches(bench, rng):
    robot = bench(**{'outputs.deviations_rate': 1000.0}, touch_kind='force', **NO_FILTERS)
    heard = listen(robot)['external_wrench_deviations']
    touches = robot.publisher(PointStamped, 'contacts')
    for k in range(2):
        touches.publish(point_to_message(START_NS, 'shank', (0.0, 0.1, 0.2 * k)))
    robot.spin_for(SETTLE)
    send(robot, [START_NS], rng)
    names = robot.wait_for_stamp(heard, START_NS).joint_names
    assert names == robot.listen_to_wrenches()[-1].joint_names
    assert len(set(names)) == len(names) == len(HUMANOID['contacts']) + 2


def test_nobody_who_listens_means_no_work(bench, rng):
    robot = bench(**{'outputs.deviations_rate': 1000.0}, **NO_FILTERS)
    robot.listen_to_diagnostics()
    send(robot, [START_NS], rng)
    assert robot.estimator.pipeline.publishers.count == 0
    listen(robot)
    send(robot, [START_NS + PERIOD_NS], rng)
    assert robot.estimator.pipeline.publishers.count == 1
    status = robot.status('deviations')
    assert status.level == DiagnosticStatus.OK
    assert figure(status, 'count') == '1'


def test_they_keep_within_their_share_of_the_cycles(bench, rng, monkeypatch):
    robot = bench(**{'outputs.deviations_rate': 1000.0}, **NO_FILTERS)
    heard = listen(robot)['joint_torque_deviations']
    output = robot.estimator.pipeline.publishers
    monkeypatch.setattr(publishers, 'MAX_SHARE', 0.2)
    sent = send(robot, [START_NS], rng)
    robot.wait_for_stamp(heard, START_NS)
    sample, _ = sample_of(sent, **NO_FILTERS)
    # Cycles of a microsecond: the evaluation before was worth hundreds of them.
    spent, cycles = output.seconds, 0
    while output.seconds == spent:
        cycles += 1
        later = sample._replace(stamp_ns=START_NS + cycles * PERIOD_NS)
        output._publish_deviations(later, None, 1e-6)
    assert cycles == pytest.approx(spent / 0.2 / 1e-6, rel=0.1, abs=500)


def test_rate_zero_means_no_topics(bench, rng):
    robot = bench(**{'outputs.deviations_rate': 0.0}, **NO_FILTERS)
    send(robot, [START_NS], rng)
    for topic in TOPICS:
        assert not robot.node.count_publishers(f'/wrench_estimator/{topic}')


def test_why_nothing_goes_out_is_said(bench, rng):
    robot = bench(**{'outputs.deviations_rate': 1000.0, 'filter.window': 2.0 * PERIOD_NS * 1e-9})
    robot.listen_to_diagnostics()
    heard = listen(robot)['joint_torque_deviations']
    send(robot, [START_NS + k * PERIOD_NS for k in range(N_SAMPLES)], rng)
    assert not heard
    status = robot.status('deviations')
    assert status.level == DiagnosticStatus.WARN


def inner_of_the_library(stamp, sent):
    """Return what the library says: wrenches through the joints, and of all links."""
    settings = EstimatorSettings.from_dict(HUMANOID | INNER)
    robot = build_robot(settings, settings.robot_description)
    assembler, estimator = SampleAssembler(robot, settings), build_estimator(settings, robot)
    q, v, wrenches, rates, acceleration = sent
    for k, wrench in enumerate(wrenches.values()):
        assembler.push_ft(k, stamp, wrench)
    assembler.push_imu(0, stamp, rates, acceleration)
    sample = assembler.push_joints(0, stamp, JOINTS, q, v, np.empty(0))
    estimate = estimator.update(sample)
    internal = InternalWrenches(estimator)
    through = internal.of(sample, estimate, INNER['outputs.internal_wrench_joints'])
    return *through, internal.net(sample, estimate)[robot.link_names.index('head')]


def test_inner_wrenches_are_those_of_the_library(bench, rng):
    robot = bench(**INNER)
    for topic in INNER_TOPICS:
        robot.listen(WrenchStamped, f'wrench_estimator/{topic}')
    sent = robot.send_all(START_NS, rng)
    for (topic, frame), wanted in zip(INNER_TOPICS.items(), inner_of_the_library(START_NS, sent)):
        message = robot.wait_for_stamp(robot.heard[f'wrench_estimator/{topic}'], START_NS)
        assert message.header.frame_id == frame
        np.testing.assert_array_equal(Decoder('ft').read(message).values, wanted)


def test_inner_wrenches_without_subscribers_cost_nothing(bench, rng, monkeypatch):
    robot = bench(**INNER)
    asked = []
    monkeypatch.setattr(InternalWrenches, 'of', lambda *given: asked.append(given))
    monkeypatch.setattr(InternalWrenches, 'net', lambda *given: asked.append(given))
    wrenches = robot.listen_to_wrenches()
    robot.send_all(START_NS, rng)
    robot.wait_for_stamp(wrenches, START_NS)
    assert not asked


def test_inner_wrenches_have_their_rate(bench, rng):
    robot = bench(**{'outputs.wrench_rate': 50.0}, **INNER)
    robot.listen(WrenchStamped, 'wrench_estimator/net_wrench/head')
    wrenches = robot.listen_to_wrenches()
    for k in range(4):
        robot.send_all(START_NS + k * PERIOD_NS, rng)
        robot.wait_for_stamp(wrenches, START_NS + k * PERIOD_NS)
    heard = robot.heard['wrench_estimator/net_wrench/head']
    robot.wait_for_stamp(heard, START_NS + 2 * PERIOD_NS)
    assert len(heard) == 2


@pytest.mark.parametrize(
    'given',
    [
        {'outputs.internal_wrench_joints': ['knee', 'kneee']},
        {'outputs.internal_wrench_joints': ['sole_joint']},
        {'outputs.net_wrench_links': ['haed']},
        {'outputs.net_wrench_links': ['sole']},
    ],
)
def test_what_the_robot_does_not_have_is_refused(bench, given):
    settings = EstimatorSettings.from_dict(HUMANOID | given)
    assert len(check_settings(settings, HUMANOID['robot_description']).refusals) == 1
    robot = bench(autostart=False, **given)
    assert robot.estimator.trigger_configure() == TransitionCallbackReturn.FAILURE
    assert not robot.node.count_publishers('/wrench_estimator/external_wrenches')


def test_work_waits_until_cycles_have_taken_their_share():
    limiter = RateLimiter(0.0)
    assert limiter.is_due(START_NS)
    limiter.spend(1e-3)
    for _ in range(4):
        limiter.earn(1e-3)
        assert not limiter.is_due(START_NS)
    limiter.earn(1.1e-3)
    assert limiter.is_due(START_NS)


def test_markers_show_deviations_to_their_subscribers(bench, rng):
    robot = bench(**{'outputs.deviations_rate': 50.0}, touch_kind='force', **NO_FILTERS)
    send(robot, [START_NS], rng)
    assert robot.estimator.pipeline.publishers.count == 0
    robot.listen(MarkerArray, 'wrench_estimator/markers')
    stamps = [START_NS + k * PERIOD_NS for k in range(2, 10)]
    for stamp in stamps:
        point = point_to_message(stamp, 'shank', (0.0, 0.1, 0.2))
        robot.publisher(PointStamped, 'contacts').publish(point)
        send(robot, [stamp], rng)
    assert robot.estimator.pipeline.publishers.count == 4
    arrays = robot.heard['wrench_estimator/markers']
    # 30 Hz of 100 Hz.
    robot.spin_until(lambda: len(arrays) == 2)
    found = [m.header.frame_id for m in arrays[-1].markers if m.ns == 'force_deviation']
    assert 'shank' in found and len(found) >= 4
    assert len({stamp_to_ns(marker.header.stamp) for marker in arrays[-1].markers}) == 1


def test_inertia_markers_come_when_the_model_changes(bench, rng):
    robot, topic = (
        bench(**{'model.blend_time': 0.0}, **NO_FILTERS),
        'wrench_estimator/inertia_markers',
    )
    heard = robot.heard[topic]
    robot.listen(MarkerArray, topic, LATCHED)
    seconds = [START_NS + k * 1_100_000_000 for k in range(5)]
    send(robot, seconds[:2], rng)
    robot.spin_until(lambda: heard)
    assert len(heard) == 1
    first, *solids = heard[0].markers
    assert first.action == Marker.DELETEALL
    assert {marker.ns for marker in solids} == {'inertia_cuboid', 'inertia_ellipsoid'}
    model = robot.estimator.pipeline.robot
    update = to_message(model, others(model, rng))
    robot.publisher(type(update), TOPIC, LATCHED).publish(update)
    robot.spin_until(lambda: robot.estimator.pipeline._updates._taken)
    send(robot, seconds[2:], rng)
    robot.spin_until(lambda: len(heard) > 1)
    assert len(heard[1].markers) == 1 + 2 * len(solids)
    assert len(heard) == 2
