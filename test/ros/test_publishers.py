# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Topics of standard deviations, internal wrenches and markers: when, under which names, and values.

Not covered: whether the numbers are right, which tests of the library check.
"""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import (
    HUMANOID,
    LATCHED,
    NO_FILTERS,
    PERIOD_NS,
    SETTLE,
    START_NS,
    Library,
    figure,
    rows,
)
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PointStamped, WrenchStamped
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy
from sensor_msgs.msg import JointState, MultiDOFJointState
from test_set_parameters import others
from visualization_msgs.msg import Marker, MarkerArray

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.model.parameter_update import ParameterUpdate
from inertial_estimation.outputs.table import Output, Pace
from inertial_estimation.ros import estimator_node, publishers
from inertial_estimation.ros.conversions import point_to_message, stamp_to_ns
from inertial_estimation.ros.inertial_parameters import TOPIC, to_messages
from inertial_estimation.signals.messages import POINT, Decoder
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.stream_noise import stream_noise

CONFIG = Path(__file__).parents[2] / 'config'
STAMPS = [START_NS + k * PERIOD_NS for k in range(16)]
"""Enough for the derivative filter, and some instants behind."""
TOPICS = {
    'external_wrench_deviations': (MultiDOFJointState, 'wrenches'),
    'residual_deviations': (MultiDOFJointState, 'residuals'),
    'joint_torque_deviations': (JointState, 'torques'),
    'external_joint_torque_deviations': (JointState, 'external_torques'),
}
JOINTS_INSIDE = ['knee', 'leg_sensor_joint']
INSIDE = {
    'outputs.internal_wrench_joints': JOINTS_INSIDE, 'outputs.net_wrench_links': ['head'],
    **NO_FILTERS,
}  # fmt: skip
FRAMES_INSIDE = {
    'internal_wrench/knee': 'shank', 'internal_wrench/leg_sensor_joint': 'thigh',
    'net_wrench/head': 'head',
}  # fmt: skip
# The measured rate of stamps that are exactly regular, and the filter's answer at it.
ROUND_OFF = 1e-9


@pytest.fixture(autouse=True)
def no_limit_of_time(monkeypatch):
    monkeypatch.setattr(publishers, 'MAX_SHARE', np.inf)


def at_rate(rate, **given):
    """Return parameters with a rate of the deviations."""
    return {'outputs.deviations_rate': rate, **given}


def listen(robot):
    """Return the messages of each topic of deviations."""
    for topic, (kind, _) in TOPICS.items():
        robot.listen(kind, f'wrench_estimator/{topic}')
    return {topic: robot.heard[f'wrench_estimator/{topic}'] for topic in TOPICS}


def stamps_of(messages):
    return [stamp_to_ns(message.header.stamp) for message in messages]


def send(robot, stamps, rng):
    """Publish readings at some stamps; return them."""
    wrenches = robot.listen_to_wrenches()
    sent = {}
    for stamp in stamps:
        sent[stamp] = robot.send_all(stamp, rng)
        robot.wait_for_stamp(wrenches, stamp)
    return sent


def deviations_of(library, touches=()):
    """Return the deviations of the last sample."""
    sample, rates = library.samples[-1], library.assembler.rates()
    noise = stream_noise(library.settings, library.robot, rates)
    assert noise.covers(sample)
    contacts = library.estimator.with_touches(touches) if touches else None
    return Uncertainty(library.estimator, noise.model).of(sample, contacts)


def test_deviations_equal_the_library(bench, rng):
    given = at_rate(100.0, contacts=['sole', 'hand', 'root'])
    robot = bench(**given)
    heard = listen(robot)
    library = Library(send(robot, STAMPS, rng), **given)
    wanted = deviations_of(library)
    for topic, (kind, field) in TOPICS.items():
        message = robot.wait_for_stamp(heard[topic], STAMPS[-1])
        found = message.effort if kind is JointState else rows(message)
        np.testing.assert_allclose(found, getattr(wanted, field), rtol=ROUND_OFF)
    assert (wanted.torques > 0.0).all() and np.isfinite(wanted.wrenches).all()
    names = heard['external_wrench_deviations'][-1].joint_names
    assert names == robot.heard['wrench_estimator/external_wrenches'][-1].joint_names
    assert heard['joint_torque_deviations'][-1].name == list(library.robot.joint_names)
    roots = heard['residual_deviations'][-1].joint_names
    assert roots == [submodel.name for submodel in library.robot.submodels]
    # The thigh has no contact: its residual is not zero, and has a deviation.
    assert (wanted.residuals[roots.index('thigh')] > 0.0).all()


def test_deviations_are_decimated_and_follow_the_contacts(bench, rng):
    given = at_rate(50.0, touch_kind='force', **NO_FILTERS)
    robot = bench(**given)
    heard = listen(robot)['external_wrench_deviations']
    robot.listen(MarkerArray, 'wrench_estimator/markers')
    send(robot, STAMPS[:4], rng)
    robot.wait_for_stamp(heard, STAMPS[2])
    robot.spin_for(SETTLE)
    assert stamps_of(heard) == STAMPS[:4:2]
    assert heard[0].joint_names == HUMANOID['contacts']
    late, point = STAMPS[8], (0.0, 0.1, 0.2)
    message = point_to_message(late, 'shank', point)
    robot.publisher(PointStamped, 'contacts').publish(message)
    robot.spin_for(SETTLE)
    library = Library(send(robot, [late], rng), **given)
    message = robot.wait_for_stamp(heard, late)
    assert message.joint_names == [*HUMANOID['contacts'], 'shank']
    wanted = deviations_of(library, [Contact('shank', 'force', point)])
    np.testing.assert_allclose(rows(message), wanted.wrenches, rtol=ROUND_OFF)
    assert np.isnan(wanted.wrenches[2]).all()  # the thigh gave way
    # Markers of 30 Hz show them.
    assert robot.estimator.pipeline.publishers._count == 3
    arrays = robot.heard['wrench_estimator/markers']
    robot.spin_until(lambda: len(arrays) == 2)
    found = [m.header.frame_id for m in arrays[-1].markers if m.ns == 'force_deviation']
    assert 'shank' in found and len(found) >= 4
    assert len(set(stamps_of(arrays[-1].markers))) == 1


def test_without_subscribers_nothing_is_computed(bench, rng, monkeypatch):
    robot = bench(**at_rate(1000.0, **INSIDE))
    robot.listen_to_diagnostics()
    asked = []
    with monkeypatch.context() as patched:
        for name in ('of', 'net'):
            patched.setattr(InternalWrenches, name, lambda *given: asked.append(given))
        send(robot, STAMPS[:1], rng)
    assert not asked and robot.estimator.pipeline.publishers._count == 0
    listen(robot)
    send(robot, STAMPS[1:2], rng)
    status = robot.status('deviations')
    assert status.level == DiagnosticStatus.OK and figure(status, 'count') == '1'


def test_missing_deviations_are_a_finding(bench, rng):
    robot = bench(**at_rate(1000.0, **{'filter.window': 2.0 * PERIOD_NS * 1e-9}))
    robot.listen_to_diagnostics()
    heard = listen(robot)['joint_torque_deviations']
    send(robot, STAMPS, rng)
    assert not heard and robot.status('deviations').level == DiagnosticStatus.WARN
    robot.estimator.set_parameters([Parameter('outputs.deviations_rate', value=0.0)])
    assert robot.next_status('deviations').level == DiagnosticStatus.OK


@pytest.mark.parametrize(('cycles', 'rate'), [(100.0, 50.0), (250.0, 100.0), (100.0, 100.0)])
def test_rates_are_kept_on_average(rng, cycles, rate):
    stamps = (START_NS + 1e9 / cycles * (np.arange(1000) + rng.uniform(-0.1, 0.1, 1000))).tolist()
    limiter = publishers.RateLimiter(rate)
    due = [limiter.is_due(round(stamp)) for stamp in stamps]
    assert sum(due) == pytest.approx(1000 * rate / cycles, rel=0.01)
    # Time that is set back blocks nothing.
    assert limiter.is_due(round(stamps[0]) - 10**9)


def test_another_output_is_one_row(bench, rng, monkeypatch):
    row = Output(
        'joint_point', POINT, Pace.WRENCH, lambda results: results.sample.positions[:3],
        frames=lambda layout: [layout.robot.base_frame],
    )  # fmt: skip
    monkeypatch.setattr(publishers, 'OUTPUTS', (*publishers.OUTPUTS, row))
    robot = bench(**NO_FILTERS)
    robot.listen(PointStamped, 'wrench_estimator/joint_point')
    library = Library(send(robot, STAMPS[:1], rng), **NO_FILTERS)
    heard = robot.heard['wrench_estimator/joint_point']
    at = robot.wait_for_stamp(heard, STAMPS[0]).point
    np.testing.assert_array_equal([at.x, at.y, at.z], library.samples[0].positions[:3])
    robot.send_joints(STAMPS[1], position=[np.nan] * 6, velocity=[0.0] * 6)
    robot.spin_for(SETTLE)
    assert len(heard) == 1


@pytest.mark.parametrize('rate', [0.0, 50.0])
def test_internal_wrenches_equal_the_library_at_their_rate(bench, rng, rate):
    robot = bench(**INSIDE, **{'outputs.wrench_rate': rate})
    for topic in FRAMES_INSIDE:
        robot.listen(WrenchStamped, f'wrench_estimator/{topic}')
    library = Library(send(robot, STAMPS[:3], rng), **INSIDE)
    inside, sample = InternalWrenches(library.estimator), library.samples[-1]
    estimate = library.estimator.update(sample)
    net = inside.net(sample, estimate)[library.robot.link_names.index('head')]
    wanted = [*inside.of(sample, estimate, JOINTS_INSIDE), net]
    for (topic, frame), values in zip(FRAMES_INSIDE.items(), wanted, strict=True):
        heard = robot.heard[f'wrench_estimator/{topic}']
        message = robot.wait_for_stamp(heard, STAMPS[2])
        assert message.header.frame_id == frame
        np.testing.assert_array_equal(Decoder('ft').read(message).values, values)
        assert len(heard) == (2 if rate else 3)


def test_inertia_markers_come_when_the_model_changes(bench, rng, monkeypatch):
    monkeypatch.setattr(estimator_node, 'BLEND_TIME', 0.0)
    robot = bench(**NO_FILTERS)
    heard = robot.heard['wrench_estimator/inertia_markers']
    robot.listen(MarkerArray, 'wrench_estimator/inertia_markers', LATCHED)
    seconds = [START_NS + k * 1_100_000_000 for k in range(5)]
    send(robot, seconds[:2], rng)
    robot.spin_until(lambda: heard)
    first, *solids = heard[0].markers
    assert len(heard) == 1 and first.action == Marker.DELETEALL
    assert {marker.ns for marker in solids} == {'inertia_cuboid', 'inertia_ellipsoid'}
    model = robot.estimator.pipeline.robot
    update = to_messages(model, ParameterUpdate(others(model, rng)))[TOPIC]
    robot.publisher(type(update), TOPIC, LATCHED).publish(update)
    robot.spin_until(lambda: robot.estimator.pipeline._updates._taken)
    send(robot, seconds[2:], rng)
    robot.spin_until(lambda: len(heard) > 1)
    assert len(heard) == 2 and len(heard[1].markers) == 1 + 2 * len(solids)


def test_every_topic_of_the_rviz_file_is_published(bench):
    yaml = pytest.importorskip('yaml', reason='needs PyYAML')
    pytest.importorskip('icub_models', reason='needs the URDF of icub-models')
    from inertial_estimation.simulation.description import icub_urdf

    types = {'Wrench': 'WrenchStamped', 'Effort': 'JointState', 'MarkerArray': 'MarkerArray'}
    rviz = yaml.safe_load((CONFIG / 'wrench_estimator.rviz').read_text())
    settings = EstimatorSettings.from_yaml(CONFIG / 'icub.yaml')
    given = {name: value for name, value in settings.to_parameters().items() if value != []}
    given |= {
        'outputs.internal_wrench_joints': ['l_knee'], 'outputs.net_wrench_links': ['chest'],
        'robot_description': icub_urdf(),
    }  # fmt: skip
    node = bench(**given).node
    for display in rviz['Visualization Manager']['Displays']:
        kind = types.get(display['Class'].partition('/')[2])
        if kind is not None:
            topic = display['Topic']
            (found,) = node.get_publishers_info_by_topic('/' + topic['Value'].lstrip('/'))
            latched = topic['Durability Policy'] == 'Transient Local'
            assert found.topic_type.endswith(f'/{kind}'), topic
            assert (found.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL) >= latched
