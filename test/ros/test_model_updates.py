# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertial parameters on topics while the node runs: used, refused, held, reverted, saved.

The oracle is the library with the same parameters. Not covered: where updates and their
covariances come from (test_recursion.py).
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, LATCHED, PERIOD_NS, RepeatingRobot, figure
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from test_set_parameters import others
from test_uncertainty import no_noise, roots_of

from inertial_estimation.calibration.configured_estimator import build_calibration, build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.parameter_update import ParameterUpdate, calibration_fingerprint
from inertial_estimation.ros import estimator_node, publishers
from inertial_estimation.ros.inertial_parameters import (
    OFFSETS_TOPIC,
    TOPIC,
    UNCERTAINTY_TOPIC,
    to_messages,
)
from inertial_estimation.signals.messages import topic_names
from inertial_estimation.uncertainty.deviations import Uncertainty

SETTINGS = EstimatorSettings.from_dict(HUMANOID)
ROBOT = build_robot(SETTINGS, SETTINGS.robot_description)
CALIBRATION = build_calibration(SETTINGS, ROBOT)
# Squares of deviations are added and subtracted again.
SQUARES = 1e-9


class Bench(RepeatingRobot):
    """Compares the torques with those of the library."""

    def expected(self, parameters=None, offsets=0.0):
        """Return the torques by the library."""
        robot = ROBOT if parameters is None else ROBOT.with_parameters(parameters)
        estimator = build_estimator(SETTINGS, robot)
        estimator.set_calibration(CALIBRATION.with_offsets(CALIBRATION.offsets + offsets))
        return estimator.update(self.sample).torques

    def check(self, parameters=None, offsets=0.0):
        torques = self.torques()
        assert np.isfinite(torques).all()
        np.testing.assert_array_equal(torques, self.expected(parameters, offsets))

    def update(self, message, topic=TOPIC):
        """Publish a message, and wait until the estimator has read it."""
        before = self.state()
        self.publisher(Float64MultiArray, topic, LATCHED).publish(message)
        self.spin_until(lambda: self.state() != before)

    def state(self):
        model, updates = self.estimator.pipeline._model, self.estimator.pipeline._updates
        return (
            updates._taken, updates._refused, dict(updates._refusals), id(model.waiting),
            list(map(id, model._parts)), model.offsets.tolist(),
        )  # fmt: skip

    def model(self, *keys):
        return tuple(figure(self.next_status('model'), key) for key in keys)


def message_of(parameters, topic=TOPIC, **others):
    return to_messages(ROBOT, ParameterUpdate(parameters, **others))[topic]


def offsets_beside(parameters, offsets):
    on = calibration_fingerprint(CALIBRATION)
    return message_of(parameters, OFFSETS_TOPIC, offsets=offsets, calibration=on)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Take over updates within one cycle."""
    monkeypatch.setattr(estimator_node, 'BLEND_TIME', 0.0)


@pytest.fixture
def make(context, keep):
    """Return a function that makes a bench."""
    return lambda **parameters: keep(Bench(context, **parameters))


def set_number(message, link, column, value):
    message.data[10 * ROBOT.link_names.index(link) + column] = value


def swap_names(message):
    first, second, *rest = message.layout.dim[0].label.split(' ')
    message.layout.dim[0].label = ' '.join([second, first, *rest])


REFUSED = {
    'NaN': lambda m: set_number(m, 'head', 0, np.nan),
    'mass': lambda m: set_number(m, 'hip', 0, 1e6),
    'masses': lambda m: setattr(m, 'data', [10.0 * number for number in m.data]),
    'inertia': lambda m: set_number(m, 'thigh', 4, -1.0),
    'order': swap_names,
    'shape': lambda m: m.data.pop(),
    'columns': lambda m: setattr(m.layout.dim[1], 'size', 6),
}


def test_updates_are_used_or_refused(make, rng):
    bench, parameters = make(), others(ROBOT, rng)
    bench.check()
    assert bench.model('source') == ('URDF',)
    bench.update(message_of(parameters))
    bench.check(parameters)
    for count, change in enumerate(REFUSED.values(), start=1):
        message = message_of(ROBOT.parameters)
        change(message)
        bench.update(message)
        assert bench.next_status('model').level == DiagnosticStatus.WARN
        assert bench.model('updates refused') == (str(count),)
    bench.check(parameters)
    bench.update(message_of(parameters))
    assert bench.next_status('model').level == DiagnosticStatus.OK
    mass = f'{parameters[:, 0].sum():.4f}'
    keys = 'source', 'updates used', 'total mass [kg]'
    assert bench.model(*keys) == ('update', '2', mass)
    # A node that is configured again reads the latched messages, an inactive one at once.
    for step in ('deactivate', 'cleanup', 'configure'):
        getattr(bench.estimator, f'trigger_{step}')()
    bench.spin_until(lambda: bench.state()[0])
    bench.estimator.trigger_activate()
    bench.check(parameters)


def test_ft_offsets_come_with_an_update(make, rng):
    bench, parameters = make(), others(ROBOT, rng)
    topic = topic_names([sensor.name for sensor in ROBOT.ft_sensors])[1]
    bench.listen(WrenchStamped, f'wrench_estimator/ft_offset/{topic}', LATCHED)
    bench.check()
    offsets = rng.normal(size=(len(ROBOT.ft_sensors), 6))
    # An update that comes first has no offsets until their message comes.
    bench.update(message_of(parameters))
    bench.update(offsets_beside(parameters, offsets), OFFSETS_TOPIC)
    bench.check(parameters, offsets)
    heard, force = bench.heard[f'wrench_estimator/ft_offset/{topic}'], CALIBRATION.offsets[1, 0]
    bench.spin_until(lambda: heard and heard[-1].wrench.force.x == force + offsets[1, 0])
    spoiled = offsets_beside(parameters, offsets)
    spoiled.layout.dim[2].size += 1
    bench.update(spoiled, OFFSETS_TOPIC)
    assert bench.next_status('model').level == DiagnosticStatus.WARN
    (text,) = bench.model('FT offsets that go with it [N], [Nm]')
    assert f'{ROBOT.ft_sensors[1].name} {np.linalg.norm(offsets[1, :3]):.2f}' in text
    bench.call('revert_model')
    bench.check()


def test_change_goes_on_when_the_clock_is_set_back(make, rng, monkeypatch):
    monkeypatch.setattr(estimator_node, 'BLEND_TIME', 6e-9 * PERIOD_NS)
    bench, parameters, done = make(), others(ROBOT, rng), []
    bench.torques()
    bench.update(message_of(parameters))
    for back in (0, 0, 0, 10**9, 0, 0, 0, 0, 0):
        bench.stamp_ns -= back
        bench.torques()
        done.append(bench.estimator.pipeline._model.progress)
    assert 0.0 < done[2] < 1.0 and done[-1] == 1.0
    assert (np.diff(done) >= 0.0).all()
    bench.check(parameters)


def test_deviations_hold_the_covariance_of_an_update(make, rng, monkeypatch):
    monkeypatch.setattr(publishers, 'MAX_SHARE', np.inf)
    bench = make(**{'outputs.deviations_rate': 1e9 / PERIOD_NS})
    bench.listen(JointState, 'wrench_estimator/joint_torque_deviations')
    for _ in range(3):
        bench.torques()

    def deviations():
        bench.torques()
        newest = bench.estimator.pipeline.publishers.newest
        assert newest.stamp_ns == bench.stamp_ns
        return newest.torques

    parameters, roots = others(ROBOT, rng), roots_of(ROBOT, rng)
    messages = [
        (message_of(parameters, UNCERTAINTY_TOPIC, roots=roots), UNCERTAINTY_TOPIC),
        (message_of(parameters), TOPIC),
    ]
    usual = deviations()
    for message, topic in messages:
        bench.update(message, topic)
    found = deviations()
    assert bench.model('uncertainty') == ('in deviations',)
    bench.update(
        message_of(parameters, UNCERTAINTY_TOPIC, roots=np.zeros_like(roots)), UNCERTAINTY_TOPIC
    )
    by_sensors = deviations()
    estimator = build_estimator(SETTINGS, ROBOT.with_parameters(parameters))
    by_parameters = Uncertainty(estimator, no_noise(ROBOT), roots).of(bench.sample).torques
    assert (by_parameters > by_sensors).any()
    np.testing.assert_allclose(found, np.hypot(by_sensors, by_parameters), rtol=SQUARES)
    # Those of another update, unreadable ones, and those of an update that is reverted.
    bench.update(message_of(others(ROBOT, rng), UNCERTAINTY_TOPIC, roots=roots), UNCERTAINTY_TOPIC)
    np.testing.assert_allclose(deviations(), by_sensors, rtol=SQUARES)
    spoiled = message_of(parameters, UNCERTAINTY_TOPIC, roots=roots)
    swap_names(spoiled)
    bench.update(spoiled, UNCERTAINTY_TOPIC)
    np.testing.assert_allclose(deviations(), by_sensors, rtol=SQUARES)
    assert bench.next_status('model').level == DiagnosticStatus.WARN
    bench.call('revert_model')
    np.testing.assert_allclose(deviations(), usual, rtol=SQUARES)
    assert bench.model('uncertainty') == ('none',)


def test_updates_are_held_reverted_saved_and_restored(make, rng, tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    path, link = tmp_path / 'model.json', tmp_path / 'link'
    link.symlink_to(path)
    bench = make(**{'model.file': '~/link'})
    first, second, third = (others(ROBOT, rng) for _ in range(3))
    assert not bench.call('restore_model').success
    bench.update(message_of(first))
    assert bench.call('save_model').success
    path.chmod(0o600)
    assert bench.call('save_model').success
    assert path.stat().st_mode & 0o777 == 0o600 and link.is_symlink()
    assert bench.call('hold_model', True).success
    bench.update(message_of(second))
    bench.check(first)
    assert bench.model('held', 'update waits') == ('True', 'True')
    assert bench.call('hold_model', False).success
    bench.check(second)
    whole = path.read_text()
    path.write_text(whole[:-40])
    assert not bench.call('restore_model').success
    bench.check(second)
    assert bench.call('revert_model').success
    bench.update(message_of(third))
    bench.check()
    assert bench.model('source', 'held') == ('URDF', 'True')
    assert bench.call('hold_model', False).success
    path.write_text(whole)
    assert bench.call('restore_model').success
    bench.check(first)
    assert bench.model('source', 'held') == ('file', 'True')


def test_without_file_services_fail(make):
    bench = make()
    for name in ('save_model', 'restore_model'):
        answer = bench.call(name)
        assert not answer.success and 'model.file' in answer.message
    bench.check()
