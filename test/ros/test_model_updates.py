# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertial parameters and FT calibration of a running node: used, refused, saved, restored.

The oracle is the library with the same numbers. Not covered: where updates and their covariances
come from (test_recursion.py).
"""

from dataclasses import replace

import numpy as np
import pytest
from bag_messages import temperature
from bench_robot import (
    HUMANOID,
    JOINTS,
    LATCHED,
    NO_FILTERS,
    PERIOD_NS,
    SETTLE,
    START_NS,
    BenchRobot,
    figure,
)
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState, Temperature
from std_msgs.msg import Float64MultiArray, String
from test_set_parameters import others
from test_uncertainty import no_noise, roots_of
from visualization_msgs.msg import Marker, MarkerArray

from bench.live_robots import smooth_motion, with_readings
from inertial_estimation.calibration.calibration_file import (
    Provenance,
    SensorCalibration,
    from_text,
    read,
    stack_calibrations,
    write,
)
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.model_update import SAMPLE_PERIOD_NS
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.parameter_update import ParameterUpdate, calibration_fingerprint
from inertial_estimation.model.robot import Robot
from inertial_estimation.outputs.encoders import topic_names
from inertial_estimation.ros import estimator_node, late_outputs
from inertial_estimation.ros.inertial_parameters import (
    OFFSETS_TOPIC,
    TOPIC,
    UNCERTAINTY_TOPIC,
    to_messages,
)
from inertial_estimation.uncertainty.deviations import Uncertainty

SETTINGS = EstimatorSettings.from_dict(HUMANOID)
ROBOT = build_robot(SETTINGS, SETTINGS.robot_description)
UNCALIBRATED = dict.fromkeys(HUMANOID['ft_sensors'], SensorCalibration())
CALIBRATION = stack_calibrations(UNCALIBRATED.values())
OPEN = {'frozen_after': 0.0, 'model.publisher': 'robot'}
# Squares of deviations are added and subtracted again.
SQUARES = 1e-9


class Bench(BenchRobot):
    """Sends the same readings at each stamp, and keeps the sample and the torques."""

    def __init__(self, context, **parameters):
        super().__init__(context, HUMANOID | NO_FILTERS | OPEN | parameters)
        self.heard_torques = self.listen(JointState, '~/joint_torques', 1000)
        self.listen_to_diagnostics()
        self.stamp_ns = START_NS
        rng = np.random.default_rng(5)
        self.wrenches = {name: rng.normal(size=6) for name in HUMANOID['ft_sensors']}
        self.positions, self.velocities = 0.3 * rng.normal(size=(2, len(JOINTS)))

    def torques(self):
        """Send the readings with the next stamp; return their torques."""
        estimator = self.estimator.pipeline._estimator

        def step(sample, contacts):
            self.sample = sample
            return WrenchEstimator.step(estimator, sample, contacts)

        estimator.step = step
        self._report = None
        self.stamp_ns += PERIOD_NS
        for name, wrench in self.wrenches.items():
            self.send_ft(name, self.stamp_ns, wrench)
        self.send_imu('head', self.stamp_ns, (0.1, -0.2, 0.3), (1.0, 2.0, 9.0))
        self.spin_for(0.03)
        self.send_joints(self.stamp_ns, self.positions, self.velocities)
        return np.array(self.wait_for_stamp(self.heard_torques, self.stamp_ns).effort)

    def check(self, parameters=None, offsets=0.0, **sensors):
        """Compare the torques with those of the library; sensors: their calibrations."""
        torques = self.torques()
        robot = ROBOT if parameters is None else ROBOT.with_parameters(parameters)
        calibration = stack_calibrations((UNCALIBRATED | sensors).values())
        calibration = calibration.with_offsets(calibration.offsets + offsets)
        wanted = build_estimator(SETTINGS, robot, calibration).update(self.sample).torques
        assert np.isfinite(torques).all()
        np.testing.assert_array_equal(torques, wanted)

    def update(self, given, topic=TOPIC, **others):
        """Publish a message, or parameters, and wait until the estimator has read it."""
        message = message_of(given, topic, **others) if isinstance(given, np.ndarray) else given
        before = self.state()
        self.publisher(Float64MultiArray, topic, LATCHED).publish(message)
        self.spin_until(lambda: self.state() != before)

    def state(self):
        model, updates = self.estimator.pipeline._model, self.estimator.pipeline._updates
        return (
            model.taken, updates._refused, dict(updates._refusals), id(model.waiting),
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
    'URDF': lambda m: setattr(m.layout.dim[1], 'label', m.layout.dim[1].label[:-1]),
}


def test_updates_are_used_or_refused(make, rng):
    bench, parameters = make(), others(ROBOT, rng)
    shown = bench.listen(MarkerArray, '~/inertia_markers', LATCHED)
    bench.check()
    bench.spin_until(lambda: shown)
    assert shown[0].markers[0].action == Marker.DELETEALL
    assert {one.ns for one in shown[0].markers[1:]} == {'inertia_cuboid', 'inertia_ellipsoid'}
    assert bench.model('source') == ('URDF',)
    for name in ('save_model', 'restore_model'):
        assert 'model.file' in bench.call(name).message
    bench.update(parameters)
    bench.check(parameters)
    # Markers follow at most once a second, with the URDF beside.
    bench.spin_for(SETTLE)
    assert len(shown) == 1
    bench.stamp_ns += 10**9
    bench.check(parameters)
    bench.spin_until(lambda: len(shown) > 1)
    assert len(shown[1].markers) == 2 * len(shown[0].markers) - 1
    for count, change in enumerate(REFUSED.values(), start=1):
        message = message_of(ROBOT.parameters)
        change(message)
        bench.update(message)
        assert bench.next_status('model').level == DiagnosticStatus.WARN
        assert bench.model('updates refused') == (str(count),)
    bench.check(parameters)
    bench.update(parameters)
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


def test_updates_for_another_urdf_are_refused(make, rng):
    bench, parameters = make(), others(ROBOT, rng)
    same = ROBOT.urdf.replace('<joint', '<!-- a comment -->\n <joint')
    ours = Robot.from_urdf(same, ft_sensors=HUMANOID['ft_sensors'], imus=HUMANOID['imus'])
    bench.update(to_messages(ours, ParameterUpdate(parameters))[TOPIC])
    bench.check(parameters)
    # The masses are those of this robot, but an arm is attached elsewhere.
    other = replace(ROBOT, urdf=ROBOT.urdf.replace('xyz="0 0.2 0.2"', 'xyz="0 0.2 0.3"'))
    bench.update(to_messages(other, ParameterUpdate(ROBOT.parameters))[TOPIC])
    bench.check(parameters)
    assert 'URDF' in bench.next_status('model').message


@pytest.mark.parametrize('publisher', ['robot', '/robot', ''])
def test_updates_of_other_nodes_are_refused(make, rng, publisher):
    bench, parameters = make(**{'model.publisher': publisher}), others(ROBOT, rng)
    bench.update(parameters)
    stranger = Node('stranger', context=bench.node.context)
    stranger.create_publisher(Float64MultiArray, TOPIC, LATCHED)
    bench.spin_until(lambda: bench.estimator.count_publishers(TOPIC) == 2)
    newer = others(ROBOT, rng)
    bench.update(newer)
    assert ('stranger' in bench.next_status('model').message) == bool(publisher)
    bench.check(parameters if publisher else newer)
    stranger.destroy_node()


def test_offsets_and_covariance_come_with_an_update(make, rng, monkeypatch):
    monkeypatch.setattr(late_outputs, 'MAX_SHARE', np.inf)
    bench = make(**{'outputs.deviations_rate': 1e9 / PERIOD_NS})
    bench.listen(JointState, '~/joint_torque_deviations')
    topic = topic_names([sensor.name for sensor in ROBOT.ft_sensors])[1]
    heard = bench.listen(WrenchStamped, f'~/ft_offset/{topic}', LATCHED)
    for _ in range(3):
        bench.torques()

    def deviations():
        bench.torques()
        newest = bench.estimator.pipeline.late.newest
        assert newest.stamp_ns == bench.stamp_ns
        return newest.torques

    parameters, roots = others(ROBOT, rng), roots_of(ROBOT, rng)
    offsets, usual = rng.normal(size=(len(ROBOT.ft_sensors), 6)), deviations()
    bench.update(parameters, UNCERTAINTY_TOPIC, roots=roots)
    # An update that comes first has no offsets until their message comes.
    bench.update(parameters)
    bench.update(offsets_beside(parameters, offsets), OFFSETS_TOPIC)
    bench.check(parameters, offsets)
    force = CALIBRATION.offsets[1, 0]
    bench.spin_until(lambda: heard and heard[-1].wrench.force.x == force + offsets[1, 0])
    found = deviations()
    text, uncertainty = bench.model('FT offsets that go with it [N], [Nm]', 'uncertainty')
    assert f'{ROBOT.ft_sensors[1].name} {np.linalg.norm(offsets[1, :3]):.2f}' in text
    assert uncertainty == 'in deviations'
    bench.update(parameters, UNCERTAINTY_TOPIC, roots=np.zeros_like(roots))
    by_sensors = deviations()
    estimator = build_estimator(SETTINGS, ROBOT.with_parameters(parameters))
    by_parameters = Uncertainty(estimator, no_noise(ROBOT), roots).of(bench.sample).torques
    assert (by_parameters > by_sensors).any()
    np.testing.assert_allclose(found, np.hypot(by_sensors, by_parameters), rtol=SQUARES)
    # Unreadable ones, and those of an update that is reverted.
    spoiled = (
        message_of(parameters, UNCERTAINTY_TOPIC, roots=roots),
        offsets_beside(parameters, -offsets),
    )
    for message, topic in zip(spoiled, (UNCERTAINTY_TOPIC, OFFSETS_TOPIC)):
        message.layout.dim[2].size += 1
        bench.update(message, topic)
        assert topic in bench.next_status('model').message
    np.testing.assert_allclose(deviations(), by_sensors, rtol=SQUARES)
    bench.check(parameters, offsets)
    bench.call('revert_model')
    np.testing.assert_allclose(deviations(), usual, rtol=SQUARES)
    assert bench.model('uncertainty') == ('none',)
    bench.check()


def test_updates_are_held_reverted_saved_and_restored(make, rng, tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    path, link = tmp_path / 'model.json', tmp_path / 'link'
    link.symlink_to(path)
    bench = make(**{'model.file': '~/link'})
    first, second, third = (others(ROBOT, rng) for _ in range(3))
    assert not bench.call('restore_model').success
    bench.update(first)
    assert bench.call('save_model').success
    path.chmod(0o600)
    assert bench.call('save_model').success
    assert path.stat().st_mode & 0o777 == 0o600 and link.is_symlink()
    assert bench.call('hold_model', True).success
    bench.update(second)
    bench.check(first)
    assert bench.model('held', 'update waits') == ('True', 'True')
    assert bench.call('hold_model', False).success
    bench.check(second)
    whole = path.read_text()
    path.write_text(whole[:-40])
    assert not bench.call('restore_model').success
    bench.check(second)
    assert bench.call('revert_model').success
    bench.update(third)
    bench.check()
    assert bench.model('source', 'held') == ('URDF', 'True')
    assert bench.call('hold_model', False).success
    path.write_text(whole)
    assert bench.call('restore_model').success
    bench.check(first)
    assert bench.model('source', 'held') == ('file', 'True')


def test_update_that_fits_worse_is_reported_and_not_used(context, keep):
    held = OPEN | {'fixed_link': 'root', 'imus': []}
    bench = keep(BenchRobot(context, HUMANOID | NO_FILTERS | held))
    bench.listen_to_diagnostics()
    pipeline = bench.estimator.pipeline
    robot, model = pipeline.robot, pipeline._model
    motion = smooth_motion(robot, 60.0, 1e9 / SAMPLE_PERIOD_NS)
    motion.accelerations[:] = 0.0
    samples = with_readings(robot, motion, robot.parameters)
    sent = iter(range(len(samples)))

    def send(until):
        while not until():
            bench.send_sample(robot, samples[next(sent)])
            bench.spin_briefly(4)

    send(lambda: model._trial.is_informed)
    for scale, source in ((0.5, 'URDF'), (1.0, 'update'), (2.0, 'update')):
        count = model.taken + model.worse
        message = to_messages(robot, ParameterUpdate(scale * robot.parameters))[TOPIC]
        bench.publisher(Float64MultiArray, TOPIC, LATCHED).publish(message)
        bench.spin_until(lambda: model._offered is not None)
        send(lambda: model.taken + model.worse > count)  # noqa: B023
        send(lambda: model.progress == 1.0)
        status = bench.next_status('model')
        assert (status.level == DiagnosticStatus.WARN) == (scale != 1.0)
        assert figure(status, 'source') == source
        np.testing.assert_array_equal(pipeline._estimator.robot.parameters, robot.parameters)
    assert figure(status, 'updates that fit worse') == '2'


# Calibration of the FT sensors

OTHER = 'other_sensor'
ONE = SensorCalibration(
    1.1 * np.eye(6),
    np.arange(1.0, 7.0),
    provenance=(Provenance('by hand', '2026-11-22', samples=7),),
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'robot.yaml'


def test_file_is_written_restored_and_published(make, path):
    bench = make(calibration_file=str(path))
    bench.check()
    status = bench.next_status('ft_calibration')
    assert status.level == DiagnosticStatus.WARN and str(path) in status.message
    assert not bench.call('restore').success
    assert bench.call('save').success and read(path)[1].keys() == UNCALIBRATED.keys()
    assert bench.next_status('ft_calibration').level == DiagnosticStatus.OK
    offsets = bench.listen(WrenchStamped, '~/ft_offset/leg_sensor', LATCHED)
    texts = bench.listen(String, 'ft_calibration', LATCHED)
    bench.estimator.pipeline._calibration.take({'arm_sensor': ONE})
    write(path, ROBOT.name, {'leg_sensor': ONE, OTHER: ONE})
    answer = bench.call('restore')
    assert answer.success and 'arm_sensor' in answer.message and OTHER in answer.message
    bench.check(leg_sensor=ONE)
    status = bench.next_status('ft_calibration')
    assert figure(status, 'leg_sensor: method') == 'by hand'
    assert figure(status, 'leg_sensor: offset [N], [Nm]') == '3.742, 8.7750'
    assert figure(status, 'arm_sensor: method') == 'parameters'
    bench.spin_until(lambda: offsets and offsets[-1].wrench.torque.z == ONE.offset[5])
    bench.spin_until(lambda: '1.1' in texts[-1].data)
    robot, sensors = from_text(texts[-1].data, 'topic')
    assert robot == ROBOT.name and list(sensors) == list(UNCALIBRATED)
    assert sensors['leg_sensor'].same_as(ONE)
    assert sensors['leg_sensor'].provenance[0].method == 'by hand'
    # Saving keeps other sensors of the file.
    bench.estimator.pipeline._calibration.take({'arm_sensor': ONE})
    assert figure(bench.next_status('ft_calibration'), 'saved') == 'False'
    assert bench.call('save').success
    saved = read(path)[1]
    assert set(saved) == {OTHER, *UNCALIBRATED} and saved['arm_sensor'].same_as(ONE)
    assert figure(bench.next_status('ft_calibration'), 'saved') == 'True'
    assert bench.call('clear_tare').success
    assert figure(bench.next_status('ft_calibration'), 'saved') == 'False'
    # A tare is cleared back to the file that was restored.
    assert bench.call('restore').success
    bench.estimator.pipeline._calibration.take({'leg_sensor': SensorCalibration()})
    bench.check(arm_sensor=ONE)
    assert bench.call('clear_tare').success
    bench.check(arm_sensor=ONE, leg_sensor=ONE)


def test_temperature_of_a_sensor_is_used(make, path):
    thermal = SensorCalibration(
        offset=np.ones(6), temperature_coefficients=np.arange(1.0, 7.0), reference_temperature=21.0
    )
    write(path, ROBOT.name, {'leg_sensor': thermal})
    given = {'calibration_file': str(path), 'ft.leg_sensor.temperature_topic': 'leg/temperature'}
    bench = make(**given)
    bench.check(leg_sensor=thermal)
    assert np.isnan(bench.sample.ft_temperatures).all()
    status = bench.status('ft_calibration')
    assert status.level == DiagnosticStatus.WARN and 'leg_sensor' in status.message
    assert bench.status('temperature leg_sensor').level == DiagnosticStatus.ERROR
    message = temperature(START_NS, '', 31.0)
    bench.publisher(Temperature, 'leg/temperature').publish(message)
    bench.check(leg_sensor=thermal)
    np.testing.assert_array_equal(bench.sample.ft_temperatures, [np.nan, 31.0, np.nan])
    assert bench.status('ft_calibration').level == DiagnosticStatus.OK
