# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertial parameters that come while the node runs: taken over, refused, held, reverted, saved.

The oracle is the library with the same parameters. Not covered: where updates come from; how long
a cycle takes that takes one over.
"""

import json

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, JOINTS, PERIOD_NS, START_NS, BenchRobot, figure
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from test_set_parameters import others
from visualization_msgs.msg import MarkerArray

from inertial_estimation.calibration.configured_estimator import build_calibration, build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.model_update import STEP_NS
from inertial_estimation.estimation.momentum_check import MomentumCheck
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.ros import model_updates
from inertial_estimation.ros.conversions import stamp_to_ns
from inertial_estimation.ros.inertial_parameters import (
    OFFSETS_TOPIC,
    TOPIC,
    offsets_from_message,
    offsets_to_message,
    to_message,
)
from inertial_estimation.ros.subscriptions import LATCHED
from inertial_estimation.signals.encoders import topic_names

SETTINGS = EstimatorSettings.from_dict(HUMANOID)
ROBOT = build_robot(SETTINGS, SETTINGS.robot_description)
CALIBRATION = build_calibration(SETTINGS, ROBOT)
STILL = {'acceleration_source': 'zero', 'angular_acceleration_source': 'zero'}
AT_ONCE = {**STILL, 'model_blend_time': 0.0}
# The same readings count again and again.
LASTING = {
    f'{kind}.{name}.{limit}': value
    for kind, names in (('ft', HUMANOID['ft_sensors']), ('imu', HUMANOID['imus']))
    for name in names
    for limit, value in (('max_age', 10.0), ('frozen_after', 0.0))
}
CYCLE_NS = 2_000_000
"""At 500 Hz."""
# Relative to the largest torque: round-off of sums over some ten links.
ROUND_OFF = 1e-12
# Of a sum of some fifty instants.
SMALL = 1e-9


class Bench(BenchRobot):
    """Sends the same readings again and again, and knows what comes of them."""

    def __init__(self, context, **parameters):
        super().__init__(context, HUMANOID | AT_ONCE | LASTING | parameters)
        self.heard_torques = self.heard['wrench_estimator/joint_torques']
        self.listen(JointState, 'wrench_estimator/joint_torques', 1000)
        self.listen_to_diagnostics()
        self.stamp_ns = START_NS
        rng = np.random.default_rng(5)
        self.wrenches = {name: rng.normal(size=6) for name in HUMANOID['ft_sensors']}
        self.positions, self.velocities = 0.3 * rng.normal(size=(2, len(JOINTS)))

    def send(self):
        """Send the readings with the next stamp; return the stamp."""
        self._report = None
        self.stamp_ns += PERIOD_NS
        for name, wrench in self.wrenches.items():
            self.send_ft(name, self.stamp_ns, wrench)
        self.send_imu('head', self.stamp_ns, (0.1, -0.2, 0.3), (1.0, 2.0, 9.0))
        self.spin_for(0.03)
        self.send_joints(self.stamp_ns, position=self.positions, velocity=self.velocities)
        return self.stamp_ns

    def torques(self):
        """Return what comes of the readings, and keep the sample that they made."""
        estimator = self.estimator.pipeline._estimator

        def update(sample, contacts):
            self.sample = sample
            return WrenchEstimator.update(estimator, sample, contacts)

        estimator.update = update
        stamp = self.send()
        return np.array(self.wait_for_stamp(self.heard_torques, stamp).effort)

    def update(self, message):
        """Publish an update, and wait until the estimator has looked at it."""
        before = self.seen()
        self.publisher(Float64MultiArray, TOPIC, LATCHED).publish(message)
        self.spin_until(lambda: self.seen() != before)

    def seen(self):
        """Return what an update changes."""
        updates = self.estimator.pipeline._updates
        return updates._taken, updates._refused, id(updates._model.waiting)

    def call(self, name, data=None):
        """Call a service; return its answer."""
        kind = Trigger if data is None else SetBool
        client = self.node.create_client(kind, f'wrench_estimator/{name}')
        request = Trigger.Request() if data is None else SetBool.Request(data=data)
        self.spin_until(client.service_is_ready)
        future = client.call_async(request)
        self.spin_until(future.done)
        self.node.destroy_client(client)
        self._report = None
        return future.result()

    def model(self):
        """Return the values of the task."""
        return {value.key: value.value for value in self.status('model').values}


@pytest.fixture
def make(context):
    """Return a function that makes a bench."""
    made = []

    def bench(**parameters):
        made.append(Bench(context, **parameters))
        return made[-1]

    yield bench
    for one in made:
        one.close()


def expected(bench, parameters=None):
    """Return the torques that the library makes of the readings of a bench."""
    robot = ROBOT if parameters is None else ROBOT.with_parameters(parameters)
    estimator = build_estimator(SETTINGS, robot)
    return estimator.update(bench.sample).torques


def check(bench, parameters=None):
    """Compare the torques of the node with those of the library."""
    torques = bench.torques()
    assert np.isfinite(torques).all()
    np.testing.assert_array_equal(torques, expected(bench, parameters))


def test_an_update_is_taken_over(make, rng):
    bench, parameters = make(), others(ROBOT, rng)
    check(bench)
    assert bench.model()['source'] == 'URDF'
    bench.update(to_message(ROBOT, parameters))
    check(bench, parameters)
    status = bench.next_status('model')
    assert (status.level, figure(status, 'source')) == (DiagnosticStatus.OK, 'update')
    assert figure(status, 'updates taken over') == '1'
    assert figure(status, 'total mass [kg]') == f'{parameters[:, 0].sum():.4f}'


def test_a_node_that_is_configured_anew_takes_over_what_waits(make, rng):
    bench, parameters = make(), others(ROBOT, rng)
    bench.update(to_message(ROBOT, parameters))
    bench.estimator.trigger_deactivate()
    bench.estimator.trigger_cleanup()
    bench.estimator.trigger_configure()
    bench.spin_until(lambda: bench.seen()[0])
    bench.estimator.trigger_activate()
    check(bench, parameters)


def beside(parameters, rows, calibration=CALIBRATION):
    """Return the message of offsets that go with parameters."""
    names = [sensor.name for sensor in ROBOT.ft_sensors]
    return offsets_to_message(ROBOT, dict(zip(names, rows)), parameters, calibration)


def test_offsets_of_ft_sensors_come_with_an_update(make, rng):
    bench, parameters = make(), others(ROBOT, rng)
    names = topic_names([sensor.name for sensor in ROBOT.ft_sensors])
    topics = [f'wrench_estimator/ft_offset/{name}' for name in names]
    for topic in topics:
        bench.listen(WrenchStamped, topic, LATCHED)
    check(bench)
    told = rng.normal(size=(len(names), 6))
    told[0, 2] = np.nan
    offsets = bench.publisher(Float64MultiArray, OFFSETS_TOPIC, LATCHED)
    # A node that hears the update first subtracts nothing until it has heard of the offsets.
    bench.update(to_message(ROBOT, parameters))
    offsets.publish(beside(parameters, told))
    subtracted = np.nan_to_num(told)
    model = bench.estimator.pipeline._model
    bench.spin_until(lambda: np.array_equal(model.offsets, subtracted))
    torques = bench.torques()
    estimator = build_estimator(SETTINGS, ROBOT.with_parameters(parameters))
    estimator.set_calibration(CALIBRATION.with_offsets(CALIBRATION.offsets + subtracted))
    np.testing.assert_array_equal(torques, estimator.update(bench.sample).torques)
    bench.spin_until(
        lambda: (
            bench.heard[topics[1]]
            and bench.heard[topics[1]][-1].wrench.force.x == CALIBRATION.offsets[1, 0] + told[1, 0]
        )
    )
    found = figure(bench.next_status('model'), 'FT offsets that go with it [N], [Nm]')
    assert f'{ROBOT.ft_sensors[1].name} {np.linalg.norm(told[1, :3]):.2f}' in found
    # Those that were found with another calibration go with no update.
    newer = others(ROBOT, rng)
    offsets.publish(beside(newer, told, CALIBRATION.with_offsets(CALIBRATION.offsets + 1.0)))
    bench.spin_for(0.2)
    bench.update(to_message(ROBOT, newer))
    status = bench.next_status('model')
    assert status.level == DiagnosticStatus.WARN
    bench.call('revert_model')
    check(bench)


def test_an_inactive_node_takes_offsets_over_at_once(make, rng):
    bench, parameters = make(), others(ROBOT, rng)
    bench.estimator.trigger_deactivate()
    bench.update(to_message(ROBOT, parameters))
    told = rng.normal(size=(len(ROBOT.ft_sensors), 6))
    bench.publisher(Float64MultiArray, OFFSETS_TOPIC, LATCHED).publish(beside(parameters, told))
    pipeline = bench.estimator.pipeline
    bench.spin_until(lambda: np.array_equal(pipeline._model.offsets, told))
    assert pipeline._model.progress == 1.0
    subtracted = pipeline._estimator.calibration.offsets
    np.testing.assert_array_equal(subtracted, CALIBRATION.offsets + told)


@pytest.mark.parametrize(
    'change',
    [
        lambda m: m.data.__setitem__(0, np.inf),
        lambda m: m.data.pop(),
        lambda m: m.layout.dim.pop(),
        lambda m: setattr(m.layout.dim[2], 'label', 'beside x'),
        lambda m: setattr(m.layout.dim[0], 'label', 'arm'),
    ],
)
def test_offsets_that_cannot_be_read_are_refused(change):
    message = beside(ROBOT.parameters, np.zeros((len(ROBOT.ft_sensors), 6)))
    change(message)
    with pytest.raises(ModelError):
        offsets_from_message(ROBOT, message)


def spoil(change):
    """Return a message whose data or layout is changed."""
    message = to_message(ROBOT, ROBOT.parameters)
    change(message)
    return message


def set_number(message, link, column, value):
    """Write one number."""
    message.data[10 * ROBOT.link_names.index(link) + column] = value


def swap_names(message):
    """Let the first two links change places."""
    first, second, *rest = message.layout.dim[0].label.split(' ')
    message.layout.dim[0].label = ' '.join([second, first, *rest])


REFUSED = {
    'NaN': lambda m: set_number(m, 'head', 0, np.nan),
    'mass': lambda m: set_number(m, 'hip', 0, 1e6),
    'masses': lambda m: setattr(m, 'data', [10.0 * number for number in m.data]),
    'body': lambda m: set_number(m, 'thigh', 4, -1.0),
    'order': swap_names,
    'shape': lambda m: m.data.pop(),
    'size': lambda m: setattr(m.layout.dim[0], 'size', 3),
    'columns': lambda m: setattr(m.layout.dim[1], 'size', 6),
    'layout': lambda m: m.layout.dim.pop(),
}


def test_what_cannot_be_used_is_refused_with_a_reason(make, rng):
    bench, parameters = make(), others(ROBOT, rng)
    bench.update(to_message(ROBOT, parameters))
    for count, change in enumerate(REFUSED.values(), start=1):
        bench.update(spoil(change))
        status = bench.next_status('model')
        assert status.level == DiagnosticStatus.WARN
        assert figure(status, 'updates refused') == str(count)
        check(bench, parameters)
    bench.update(to_message(ROBOT, parameters))
    check(bench, parameters)
    status = bench.next_status('model')
    assert (status.level, figure(status, 'source')) == (DiagnosticStatus.OK, 'update')


def test_updates_can_be_switched_off(make, rng):
    bench = make(take_inertial_parameters=False)
    bench.node.create_publisher(Float64MultiArray, TOPIC, LATCHED).publish(
        to_message(ROBOT, others(ROBOT, rng))
    )
    bench.spin_for(0.2)
    check(bench)
    answer = bench.call('hold_model', True)
    assert not answer.success
    assert 'take_inertial_parameters' in answer.message
    assert bench.call('revert_model').success


def test_held_updates_wait_and_the_newest_comes_in(make, rng):
    bench, (first, second, third) = make(), (others(ROBOT, rng) for _ in range(3))
    bench.update(to_message(ROBOT, first))
    assert bench.call('hold_model', True).success
    bench.update(to_message(ROBOT, second))
    bench.update(to_message(ROBOT, third))
    check(bench, first)
    values = bench.model()
    assert (values['held'], values['update kept aside']) == ('True', 'True')
    assert bench.call('hold_model', False).success
    check(bench, third)
    assert bench.call('hold_model', False).success
    check(bench, third)


def test_revert_goes_back_to_the_urdf_and_stays_there(make, rng):
    bench, (first, second) = make(), (others(ROBOT, rng) for _ in range(2))
    bench.update(to_message(ROBOT, first))
    check(bench, first)
    assert bench.call('revert_model').success
    bench.update(to_message(ROBOT, second))
    check(bench)
    values = bench.model()
    assert (values['source'], values['held']) == ('URDF', 'True')
    bench.call('hold_model', False)
    check(bench, second)


def test_a_set_is_saved_and_restored(make, rng, tmp_path):
    path = tmp_path / 'model.json'
    bench, (first, second) = make(model_file=str(path)), (others(ROBOT, rng) for _ in range(2))
    assert 'cannot read' in bench.call('restore_model').message
    bench.update(to_message(ROBOT, first))
    assert bench.call('save_model').success
    assert [file.name for file in tmp_path.iterdir()] == ['model.json']
    bench.update(to_message(ROBOT, second))
    check(bench, second)
    answer = bench.call('restore_model')
    assert answer.success
    check(bench, first)
    values = bench.model()
    assert (values['source'], values['held']) == ('file', 'True')


def test_a_corrupt_file_is_refused_with_the_reason(make, rng, tmp_path):
    path = tmp_path / 'model.json'
    bench, parameters = make(model_file=str(path)), others(ROBOT, rng)
    bench.call('save_model')
    whole = path.read_text()
    bench.update(to_message(ROBOT, parameters))
    found = json.loads(whole)
    for text in (
        whole[:-40],
        whole.replace('5.0', '6.0', 1),
        json.dumps(found | {'version': 7}),
        json.dumps(found | {'version': '\ud800'}),
        '[' * 100_000,
    ):
        path.write_text(text)
        answer = bench.call('restore_model')
        assert not answer.success
        check(bench, parameters)
    assert figure(bench.status('model'), 'held') == 'False'


def test_a_service_answers_what_nobody_expected_and_the_node_goes_on(
    make, rng, tmp_path, monkeypatch
):
    def fail(*_):
        raise RuntimeError('half a pair: \ud800')

    bench = make(model_file=str(tmp_path / 'model.json'))
    bench.call('save_model')
    monkeypatch.setattr(model_updates, 'from_text', fail)
    answer = bench.call('restore_model')
    assert not answer.success
    parameters = others(ROBOT, rng)
    bench.update(to_message(ROBOT, parameters))
    check(bench, parameters)


def test_there_may_be_nowhere_to_save(make, tmp_path):
    bench = make()
    for name in ('save_model', 'restore_model'):
        answer = bench.call(name)
        assert not answer.success
        assert "'model_file' is empty" in answer.message
    bench.close()


def test_a_file_that_cannot_be_written_is_no_end(make, tmp_path):
    bench = make(model_file=str(tmp_path / 'nowhere' / 'model.json'))
    answer = bench.call('save_model')
    assert not answer.success
    assert 'cannot write' in answer.message
    check(bench)


def test_no_cycle_is_missed_and_torques_go_smoothly(make, rng):
    """Joint states at 500 Hz by their stamps; an update in the middle takes 0.2 s."""
    seconds, n = 0.2, 300
    bench = make(model_blend_time=seconds, joint_max_age=10.0, queue_depth=1000)
    parameters = others(ROBOT, rng, 0.8)
    before = bench.torques()
    first = bench.stamp_ns
    for k in range(1, n + 1):
        if k == 100:
            bench.update(to_message(ROBOT, parameters))
        bench.send_joints(
            first + k * CYCLE_NS, position=bench.positions, velocity=bench.velocities
        )
        bench.spin_for(0.0)
    bench.wait_for_stamp(bench.heard_torques, first + n * CYCLE_NS)
    came = {stamp_to_ns(m.header.stamp): np.array(m.effort) for m in bench.heard_torques}
    stamps = [first + k * CYCLE_NS for k in range(n + 1)]
    assert [stamp for stamp in stamps if stamp not in came] == []
    assert len(bench.heard_torques) == n + 1
    torques = np.array([came[stamp] for stamp in stamps])
    after = expected(bench, parameters)
    # A whole number of cycles is as long as a step.
    share = np.abs(after - before) * 1e-9 * STEP_NS / seconds
    noise = ROUND_OFF * np.abs(torques).max()
    assert (np.abs(np.diff(torques, axis=0)) <= share + noise).all()
    assert (np.abs(after - before) > 0.01).any()
    np.testing.assert_array_equal(torques[0], before)
    np.testing.assert_array_equal(torques[-1], after)
    assert figure(bench.status('cycle'), 'failed cycles, total') == '0'


def test_an_inactive_node_changes_at_once(make, rng):
    bench, parameters = make(model_blend_time=60.0), others(ROBOT, rng)
    bench.estimator.trigger_deactivate()
    bench.update(to_message(ROBOT, parameters))
    bench.estimator.trigger_activate()
    check(bench, parameters)


def test_the_momentum_check_has_the_masses_in_use(make, rng):
    """A new one beside it, with the same parameters, says the same of the same instants."""
    bench, parameters = make(), others(ROBOT, rng)
    bench.update(to_message(ROBOT, parameters))
    watched = bench.estimator.pipeline._momentum
    fresh = MomentumCheck(ROBOT.with_parameters(parameters))
    estimator = build_estimator(SETTINGS, ROBOT.with_parameters(parameters))
    for _ in range(53):
        bench.torques()
        fresh.add(bench.sample, estimator.update(bench.sample))
    report, expected_report = watched._check.report(), fresh.report()
    assert report.windows == expected_report.windows == 1
    np.testing.assert_allclose(report.unexplained, expected_report.unexplained, rtol=SMALL)


def test_markers_show_the_masses_in_use(make, rng):
    bench, parameters = make(), others(ROBOT, rng)
    bench.listen(MarkerArray, 'wrench_estimator/markers')
    bench.update(to_message(ROBOT, parameters))
    bench.send()
    heard = bench.heard['wrench_estimator/markers']

    def balls():
        return [m for array in heard for m in array.markers if m.ns == 'health']

    bench.spin_until(balls)
    head = ROBOT.link_names.index('head')
    ball = next(ball for ball in balls() if ball.id == head)
    place = [ball.pose.position.x, ball.pose.position.y, ball.pose.position.z]
    np.testing.assert_allclose(place, parameters[head, 1:4] / parameters[head, 0])
