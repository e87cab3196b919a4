# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The topics of the standard deviations: when they speak, under which names, and what they say.

Not covered: whether the numbers are right (test_uncertainty.py, test_stream_noise.py), and what
they cost (`make bench`).
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, JOINTS, PERIOD_NS, SETTLE, START_NS, BenchRobot, figure
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PointStamped
from sensor_msgs.msg import JointState, MultiDOFJointState

from inertial_estimation.building import (
    build_assembler,
    build_estimator,
    build_noise,
    build_robot,
)
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.ros import budget
from inertial_estimation.ros.conversions import point_to_message, stamp_to_ns
from inertial_estimation.uncertainty.deviations import Uncertainty

N_SAMPLES = 16
"""Enough for the derivative filter, and some instants behind."""
TOPICS = {
    'external_wrench_deviations': (MultiDOFJointState, 'wrenches'),
    'residual_deviations': (MultiDOFJointState, 'residuals'),
    'joint_torque_deviations': (JointState, 'torques'),
    'external_joint_torque_deviations': (JointState, 'external_torques'),
}
NO_FILTERS = {'acceleration_source': 'zero', 'angular_acceleration_source': 'zero'}
# The measured rate of stamps that are exactly regular, and the filter's answer at it.
ROUND_OFF = 1e-9


@pytest.fixture
def bench(context, monkeypatch):
    """Return a function that puts a robot with some parameters on the bench, without a budget."""
    monkeypatch.setattr(budget, 'SHARE', np.inf)
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
    estimator, noise = build_estimator(settings, robot), build_noise(settings, robot, rates)
    assert noise.covers(sample)
    contacts = estimator.with_touches(touches) if touches else None
    return robot, Uncertainty(estimator, noise.model).of(sample, contacts)


def sample_of(sent, **parameters):
    """Return the sample that the library makes of the last of some readings, and the rates."""
    settings = EstimatorSettings.from_dict(HUMANOID | parameters)
    robot = build_robot(settings, settings.robot_description)
    assembler = build_assembler(settings, robot)
    for stamp, (q, v, wrenches, rates, acceleration) in sent.items():
        for k, wrench in enumerate(wrenches.values()):
            assembler.push_ft(k, stamp, wrench)
        assembler.push_imu(0, stamp, rates, acceleration)
        sample = assembler.push_joints(0, stamp, JOINTS, q, v, np.empty(0))
    return sample, assembler.rates()


@pytest.mark.parametrize('raw', [True, False])
def test_what_the_library_says_goes_out_under_the_names_of_the_results(bench, rng, raw):
    given = {'deviations_rate': 100.0, 'contacts': ['sole', 'hand', 'root'], 'raw': raw}
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
    robot = bench(deviations_rate=1000.0)
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
    robot = bench(deviations_rate=50.0, touch_kind='force', **NO_FILTERS)
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
    robot = bench(deviations_rate=1000.0, touch_kind='force', **NO_FILTERS)
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
    robot = bench(deviations_rate=1000.0, **NO_FILTERS)
    robot.listen_to_diagnostics()
    send(robot, [START_NS], rng)
    assert robot.estimator.pipeline.deviations.count == 0
    assert robot.status('deviations').message == 'nobody asks for them'
    listen(robot)
    send(robot, [START_NS + PERIOD_NS], rng)
    assert robot.estimator.pipeline.deviations.count == 1
    status = robot.status('deviations')
    assert status.level == DiagnosticStatus.OK
    assert status.message == 'published'
    assert figure(status, 'count') == '1'


def test_they_keep_within_their_share_of_the_cycles(bench, rng, monkeypatch):
    robot = bench(deviations_rate=1000.0, **NO_FILTERS)
    heard = listen(robot)['joint_torque_deviations']
    output = robot.estimator.pipeline.deviations
    monkeypatch.setattr(budget, 'SHARE', 0.2)
    sent = send(robot, [START_NS], rng)
    robot.wait_for_stamp(heard, START_NS)
    sample, _ = sample_of(sent, **NO_FILTERS)
    # Cycles of a microsecond: the evaluation before was worth hundreds of them.
    spent, cycles = output.seconds, 0
    while output.seconds == spent:
        cycles += 1
        later = sample._replace(stamp_ns=START_NS + cycles * PERIOD_NS)
        output.publish(later, None, 1e-6)
    assert cycles == pytest.approx(spent / 0.2 / 1e-6, rel=0.1, abs=500)


def test_rate_zero_means_no_topics(bench, rng):
    robot = bench(deviations_rate=0.0, **NO_FILTERS)
    send(robot, [START_NS], rng)
    for topic in TOPICS:
        assert not robot.node.count_publishers(f'/wrench_estimator/{topic}')


def test_why_nothing_goes_out_is_said(bench, rng):
    robot = bench(deviations_rate=1000.0, derivative_window=2.0 * PERIOD_NS * 1e-9)
    robot.listen_to_diagnostics()
    heard = listen(robot)['joint_torque_deviations']
    send(robot, [START_NS + k * PERIOD_NS for k in range(N_SAMPLES)], rng)
    assert not heard
    status = robot.status('deviations')
    assert status.level == DiagnosticStatus.WARN
    assert 'the noise of a stream is not known' in status.message
    assert 'its filter has not found its rate, or cannot use it' in status.message
    assert 'adaptive_window' not in status.message


def test_a_filter_that_can_never_be_judged_is_named_alone(bench, rng):
    robot = bench(deviations_rate=1000.0, derivative_filter='adaptive_window')
    robot.listen_to_diagnostics()
    heard = listen(robot)['joint_torque_deviations']
    send(robot, [START_NS + k * PERIOD_NS for k in range(N_SAMPLES)], rng)
    assert not heard
    message = robot.status('deviations').message
    assert 'derivative_filter is adaptive_window, whose noise cannot be stated' in message
    assert 'has not found its rate' not in message


def test_external_torques_are_about_the_frame_that_was_named(bench, rng):
    robot = bench(deviations_rate=100.0, external_torque_base='sole', **NO_FILTERS)
    heard = listen(robot)['external_joint_torque_deviations']
    robot.listen(JointState, 'wrench_estimator/external_joint_torques')
    send(robot, [START_NS], rng)
    torques = robot.heard['wrench_estimator/external_joint_torques']
    for messages in (heard, torques):
        assert robot.wait_for_stamp(messages, START_NS).header.frame_id == 'sole'
