# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The identifier in this process: samples in, latched parameters out; services and state file.

Not covered: the recursion (test_recursion.py), windows (test_sample_windows.py), the process and
its launch file (test_launch.py).
"""

from dataclasses import replace

import numpy as np
import pytest
from bench_robot import ARRIVED, LATCHED, SETTLE, BenchRobot, figure
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile
from robots import nested_humanoid_urdf
from std_msgs.msg import Float64MultiArray, String

from bench.live_robots import smooth_motion, with_readings, wrong_robot
from inertial_estimation.calibration.calibration_file import (
    OFFSETS_FROM_MODEL,
    Provenance,
    SensorCalibration,
    stack_calibrations,
    to_json,
)
from inertial_estimation.model.parameter_update import calibration_fingerprint, fingerprint
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf_export import export_urdf
from inertial_estimation.ros import identifier_outputs
from inertial_estimation.ros.calibration_updates import TOPIC as CALIBRATION_TOPIC
from inertial_estimation.ros.identifier_node import IdentifierNode
from inertial_estimation.ros.identifier_outputs import PAYLOAD, PROGRESS, SEPARATOR
from inertial_estimation.ros.inertial_parameters import (
    OFFSETS_TOPIC,
    UNCERTAINTY_TOPIC,
    from_message,
    offsets_from_message,
    roots_from_message,
)
from inertial_estimation.signals.messages import Decoder

SUCCESS = TransitionCallbackReturn.SUCCESS
NOISE = np.array([0.02, 0.02, 0.02, 0.001, 0.001, 0.001])
OFFSET = np.array([6.0, -4.0, 9.0, 0.5, -0.3, 0.2])
FREE = ('upper_arm', 'thigh', 'foot')
"""Submodels that nothing holds."""
MASS_ERROR = 0.01
"""Of a submodel, over its mass: noise of 0.02 N leaves a tenth of it."""
OFFSET_ERROR = np.repeat([0.2, 0.02], 3)
"""A twentieth of the offsets [N, Nm]."""
NOTHING_COMES = 0.5
"""How long a latched message may take that was published before [s]."""


@pytest.fixture(scope='module')
def truth():
    return Robot.from_urdf(nested_humanoid_urdf(), fixed_link='root')


@pytest.fixture(scope='module')
def urdf(truth):
    """Return a URDF whose parameters are off by a tenth in each whitened coordinate."""
    return export_urdf(truth, wrong_robot(truth, np.random.default_rng(3), 0.1).parameters)


@pytest.fixture(scope='module')
def moving(truth):
    return motion(truth, 12.0)


def motion(robot, seconds, seed=0, swing=0.8, parameters=None):
    samples = smooth_motion(robot, seconds, seed=seed, swing=swing)
    samples = with_readings(robot, samples, robot.parameters if parameters is None else parameters)
    noise = np.random.default_rng(seed).normal(size=samples.ft_readings.shape)
    samples.ft_readings[:] += OFFSET + NOISE * noise
    return samples


@pytest.fixture
def bench(context, keep, urdf):
    """Return a function that makes an identifier with some parameters."""
    given = {'robot_description': urdf, 'fixed_link': 'root'}
    return lambda **parameters: keep(BenchRobot(context, given | parameters, IdentifierNode))


def later(samples, seconds):
    return replace(samples, stamp_ns=samples.stamp_ns + round(1e9 * seconds))


def feed(robot, samples):
    for k in range(len(samples)):
        robot.estimator.pipeline.take(samples[k])


def heard(robot, message_type, topic, qos=LATCHED, count=1):
    """Return the messages of a latched topic, at least so many; count 0: none may come."""
    robot.heard.pop(topic, None)
    robot.listen(message_type, topic, qos)
    robot.spin_until(lambda: len(robot.heard[topic]) >= count)
    robot.spin_for(SETTLE if count else NOTHING_COMES)
    return robot.heard[topic]


def table(robot, topic):
    """Return the labels of rows and columns and the numbers of the newest table."""
    message = heard(robot, Float64MultiArray, f'parameter_identifier/{topic}')[-1]
    rows, columns = message.layout.dim
    labels = rows.label.split(SEPARATOR)
    numbers = np.array(message.data).reshape(rows.size, columns.size)
    return labels, tuple(columns.label.split(' ')), numbers


def parameters_of(robot):
    message = heard(robot, Float64MultiArray, 'inertial_parameters')[-1]
    return from_message(robot.estimator.pipeline.robot, message)


def seconds_of(robot):
    return {one.name: one.seconds for one in robot.estimator.pipeline.identifier.memories}


def test_results_are_published(bench, truth, moving):
    ran = bench()
    feed(ran, moving)
    found, given = parameters_of(ran), ran.estimator.pipeline.robot.parameters
    held = list(truth.submodels[0].links)
    np.testing.assert_array_equal(found[held], given[held])
    (text,) = heard(ran, String, 'parameter_identifier/robot_description')
    again = Robot.from_urdf(text.data, fixed_link='root')
    # A URDF has inertia about the centre of mass, in ten digits.
    np.testing.assert_allclose(again.parameters, found, atol=1e-8)
    assert not ran.node.get_publishers_info_by_topic('/robot_description')
    (message,) = heard(ran, Float64MultiArray, UNCERTAINTY_TOPIC)
    of, roots = roots_from_message(truth, message)
    assert of == fingerprint(found) and not roots[held].any()
    for submodel in truth.submodels[1:]:
        links = list(submodel.links)
        mass, before, wanted = (one[links, 0].sum() for one in (found, given, truth.parameters))
        deviation = np.linalg.norm(roots[links, 0].sum(axis=0))
        assert max(deviation, abs(mass - wanted)) < MASS_ERROR * wanted < abs(before - wanted)
        assert deviation > 0.0
    # Offsets go with these parameters and with the calibration that was subtracted.
    (message,) = heard(ran, Float64MultiArray, OFFSETS_TOPIC)
    *on, offsets = offsets_from_message(truth, message)
    calibration = stack_calibrations([SensorCalibration()] * len(truth.ft_sensors))
    assert on == [of, calibration_fingerprint(calibration)]
    for sensor, row in zip(truth.ft_sensors, offsets):
        (message,) = heard(ran, WrenchStamped, f'parameter_identifier/ft_offset/{sensor.name}')
        np.testing.assert_array_equal(Decoder('ft').read(message).values, row)
        assert (np.abs(row - OFFSET) < OFFSET_ERROR).all()
    # Inertias are about the centres of mass.
    every = QoSProfile(depth=len(truth.links), durability=DurabilityPolicy.TRANSIENT_LOCAL)
    topic, count = 'parameter_identifier/inertias', len(truth.links)
    messages = heard(ran, InertiaStamped, topic, every, count)
    assert [message.header.frame_id for message in messages] == list(truth.link_names)
    for one, row in zip((message.inertia for message in messages), found):
        center = np.array([one.com.x, one.com.y, one.com.z])
        about = np.array([one.ixx, one.ixy, one.iyy, one.ixz, one.iyz, one.izz])
        shift = one.m * (center @ center * np.eye(3) - np.outer(center, center))
        values = [one.m, *one.m * center, *about + shift[np.tril_indices(3)]]
        np.testing.assert_allclose(values, row, rtol=1e-12, atol=1e-12)
    labels, columns, numbers = table(ran, 'base_parameters')
    assert columns == ('value', 'standard_deviation')
    assert len(labels) == len(set(labels)) == len(numbers)
    assert {label.split(': ')[0] for label in labels} == set(FREE)
    value, deviation = numbers[labels.index('foot: foot_sensor.force_x')]
    assert value == pytest.approx(OFFSET[0], abs=OFFSET_ERROR[0])
    assert 0.0 < deviation < OFFSET_ERROR[0]
    names, columns, progress = table(ran, 'progress')
    assert (names, columns) == ([submodel.name for submodel in truth.submodels], PROGRESS)
    figures = dict(zip(PROGRESS, progress[1:].T))
    assert (figures['seconds'] > 8.0).all() and (figures['determined'] >= 3).all()
    assert (figures['rank'] <= figures['base_parameters']).all()
    assert figures['rank'].sum() == np.isfinite(numbers[:, 1]).sum()
    assert (figures['force_after'] < figures['force_before']).all()
    assert np.isnan(figures['effort_after']).all()
    ran.listen_to_diagnostics()
    assert ran.status('submodel upper_arm').message == 'identified'
    assert int(figure(ran.status('recursion'), 'updates')) > 5


def test_disturbed_and_loaded_submodels_have_no_equations(bench, truth, moving, monkeypatch):
    monkeypatch.setattr(identifier_outputs, 'MAX_WAIT', 0)
    robot = bench(contact_timeout=100.0, loaded_frames=['sole'])
    robot.listen_to_diagnostics()
    feed(robot, moving.take(slice(0, 1)))
    robot.send_contact(moving.stamp_ns[0], 'hand')
    robot.spin_for(ARRIVED)
    feed(robot, moving.take(slice(1, None)))
    seconds = seconds_of(robot)
    assert seconds['upper_arm'] == seconds['foot'] == 0.0
    assert seconds['thigh'] > 8.0
    # A submodel that is known to be loaded is no warning.
    assert robot.status('submodel foot').level == DiagnosticStatus.OK
    assert robot.status('submodel upper_arm').level == DiagnosticStatus.WARN


def test_payloads_are_published(bench, truth):
    loaded, center = truth.parameters.copy(), np.array([0.03, -0.02, 0.1])
    inertia = (center @ center) * np.eye(3) - np.outer(center, center) + 0.001 * np.eye(3)
    loaded[truth.link_names.index('hand')] += [1.0, *center, *inertia[np.tril_indices(3)]]
    robot = bench(payload_links=['hand'])
    feed(robot, motion(truth, 22.0).take(slice(0, 1000)))
    assert not table(robot, 'payloads')[2].size
    feed(robot, motion(truth, 22.0, parameters=loaded).take(slice(1000, None)))
    labels, columns, (numbers,) = table(robot, 'payloads')
    assert (labels, columns) == (['upper_arm: hand'], PAYLOAD)
    # FT noise of 0.02 N and 0.001 Nm on 1 kg, of ten seconds at 100 Hz.
    assert numbers[0] == pytest.approx(1.0, abs=0.01)
    np.testing.assert_allclose(numbers[1:4], center, atol=0.002)
    assert (numbers[4:] > 0.0).all() and numbers[4:].max() < 0.01
    robot.listen_to_diagnostics()
    assert figure(robot.status('submodel upper_arm'), 'payload').startswith(f'{numbers[0]:.3f} kg')


def test_at_rest_nothing_is_published(bench, truth, moving, monkeypatch):
    robot = bench()
    robot.listen_to_diagnostics()
    feed(robot, motion(truth, 8.0, swing=0.0))
    assert not heard(robot, Float64MultiArray, 'inertial_parameters', count=0)
    (offset,) = heard(robot, WrenchStamped, 'parameter_identifier/ft_offset/arm_sensor')
    assert np.isnan(Decoder('ft').read(offset).values[:3]).any()
    assert robot.status('submodel upper_arm').level == DiagnosticStatus.OK
    monkeypatch.setattr(identifier_outputs, 'MAX_WAIT', 0)
    assert robot.next_status('submodel upper_arm').level == DiagnosticStatus.WARN
    # Neither after a reset of a robot that had moved.
    feed(robot, later(moving, 20.0))
    published, report = parameters_of(robot), robot.estimator.pipeline.report
    assert robot.call('reset').success
    assert not any(seconds_of(robot).values())
    refits = report.counts['refits']
    feed(robot, later(motion(truth, 8.0, swing=0.0), 40.0))
    assert report.counts['refits'] > refits
    np.testing.assert_array_equal(parameters_of(robot), published)


def test_failures_keep_the_last_update_and_rejected_equations_warn(
    bench, truth, moving, monkeypatch
):
    robot = bench()
    robot.listen_to_diagnostics()
    assert robot.status('recursion').level == DiagnosticStatus.ERROR
    assert robot.status('ft arm_sensor').level == DiagnosticStatus.ERROR
    feed(robot, moving)
    good, identifier = parameters_of(robot), robot.estimator.pipeline.identifier
    whole = identifier.refit

    def spoiled():
        refit = whole()
        refit.parameters[-1, 0] = -1.0
        return refit

    def failed():
        raise ValueError('array must not contain infs or NaNs')

    for start, refit, count in (
        (12.0, spoiled, 'refused updates'),
        (16.0, failed, 'failures, total'),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(identifier, 'refit', refit)
            feed(robot, later(moving, start).take(slice(0, 400)))
            np.testing.assert_array_equal(parameters_of(robot), good)
            status = robot.next_status('recursion')
            assert status.level == DiagnosticStatus.ERROR
            assert int(figure(status, count)) > 0
    feed(robot, later(moving, 20.0).take(slice(0, 400)))
    assert not np.array_equal(parameters_of(robot), good)
    pushed = later(motion(truth, 6.0, seed=1), 40.0)
    # To and fro, as no offset is.
    times = 1e-9 * (pushed.stamp_ns - pushed.stamp_ns[0])
    pushed.ft_readings[:, :, 0] += 50.0 * np.sin(4.0 * times)[:, None]
    feed(robot, pushed)
    status = robot.next_status('submodel foot')
    assert status.level == DiagnosticStatus.WARN
    assert float(figure(status, 'disturbed for [s]')) > 1.0
    robot.call('enable', False)
    assert robot.next_status('submodel foot').level == DiagnosticStatus.OK
    # What a reset forgets is no finding any more.
    robot.estimator.pipeline.report.note_update('refused')
    assert robot.next_status('recursion').level == DiagnosticStatus.ERROR
    robot.call('reset')
    assert 'refused' not in robot.next_status('recursion').message


def test_lifecycle(bench, moving):
    robot = bench(autostart=False)
    node, start = robot.estimator, 0.0

    def gained(seconds=20.0):
        """Return the time with equations that the same motion adds, some time later."""
        nonlocal start
        before, start = seconds_of(robot)['foot'], start + seconds
        feed(robot, later(moving, start))
        return seconds_of(robot)['foot'] - before

    assert not robot.call('enable', True).success
    assert node.trigger_configure() == SUCCESS
    assert gained() == 0.0
    assert node.trigger_activate() == SUCCESS
    assert gained() > 8.0
    assert node.trigger_deactivate() == SUCCESS
    assert gained() == 0.0
    # Neither does a pause, whose ten minutes are no time with equations.
    assert node.trigger_activate() == SUCCESS
    assert robot.call('enable', False).success
    assert gained() == 0.0
    assert robot.call('enable', True).success
    assert 8.0 < gained(600.0) < 12.0
    assert node.trigger_deactivate() == node.trigger_cleanup() == SUCCESS
    assert node.pipeline is None
    assert node.trigger_configure() == SUCCESS
    assert not any(seconds_of(robot).values())


def test_state_survives_a_restart_or_is_set_aside(bench, moving, tmp_path, monkeypatch):
    path = tmp_path / 'state.json'
    first = bench(state_file=str(path))
    assert not first.call('save').success
    assert not path.exists()
    feed(first, moving)
    assert first.call('save').success
    published, known, text = parameters_of(first), seconds_of(first), path.read_text()
    feed(first, later(moving, 12.0))
    assert seconds_of(first) != known
    assert first.call('restore').success
    assert seconds_of(first) == known
    assert first.estimator.trigger_deactivate() == first.estimator.trigger_cleanup() == SUCCESS
    assert path.read_text() == text
    second = bench(state_file=str(path))
    assert seconds_of(second) == known
    # The same equations, from another start.
    np.testing.assert_allclose(parameters_of(second), published, atol=1e-6)
    # It is saved by itself when time is up.
    monkeypatch.setattr(second.estimator.pipeline.state, '_due', 0.0)
    feed(second, later(moving, 20.0))
    assert path.read_text() != text
    # That of another robot, and a truncated one, are set aside.
    content = path.read_bytes()
    path.with_name('state.json.refused').write_text('an earlier one')
    for k, (kept, given) in enumerate(((content, {'ft_sensors': ['leg_sensor']}),
                                       (content[:2000], {})), start=1):  # fmt: skip
        path.write_bytes(kept)
        robot, aside = bench(state_file=str(path), **given), tmp_path / f'state.json.refused{k}'
        assert not any(seconds_of(robot).values())
        assert aside.read_bytes() == kept and not path.exists()
        robot.listen_to_diagnostics()
        assert str(aside) in robot.status('state file').message
        assert not robot.call('restore').success
    assert path.with_name('state.json.refused').read_text() == 'an earlier one'
    feed(robot, later(moving, 40.0).take(slice(0, 600)))
    assert robot.call('save').success
    with pytest.raises(KeyError):
        robot.next_status('state file')


@pytest.mark.parametrize('text', ['', 3 * '\0'])
def test_empty_state_is_named_and_replaced(bench, moving, tmp_path, text):
    path = tmp_path / 'state.json'
    path.write_text(text)
    robot = bench(state_file=str(path))
    robot.listen_to_diagnostics()
    assert f"'{path}'" in robot.status('state file').message and path.read_text() == text
    assert not robot.call('restore').success
    feed(robot, moving.take(slice(0, 600)))
    assert robot.call('save').success and robot.call('restore').success
    assert [*tmp_path.iterdir()] == [path]


def test_tare_of_the_estimator_is_followed(bench, moving, rng, monkeypatch, tmp_path):
    """What parameters and offsets become is in `../test_calibration_followed.py`."""
    robot = bench(calibration_file=str(tmp_path / 'calibration.yaml'))
    robot.listen_to_diagnostics()
    feed(robot, moving)
    pipeline, tares = robot.estimator.pipeline, []
    take, names = pipeline.identifier.set_calibration, pipeline.refit.offsets
    monkeypatch.setattr(
        pipeline.identifier,
        'set_calibration',
        lambda calibration, tared: tares.append(set(tared)) or take(calibration, tared),
    )
    publisher = robot.node.create_publisher(String, CALIBRATION_TOPIC, LATCHED)
    step = Provenance(method=f'{OFFSETS_FROM_MODEL}, one support: foot', date='now')
    tared = {name: SensorCalibration(offset=OFFSET + rng.normal(size=6)) for name in names}
    tared['foot_sensor'] = replace(tared['foot_sensor'], provenance=(step,))
    publisher.publish(String(data=to_json('nested_humanoid', tared)))
    robot.spin_until(lambda: tares)
    assert tares == [{'foot_sensor'}]
    # The identifier publishes the offset that is left.
    offset = heard(robot, WrenchStamped, 'parameter_identifier/ft_offset/foot_sensor')[-1]
    left = (OFFSET - tared['foot_sensor'].offset)[0]
    assert abs(offset.wrench.force.x - left) < OFFSET_ERROR[0]
    status = robot.next_status('ft_calibration')
    assert status.level == DiagnosticStatus.OK
    assert figure(status, 'from') == 'the estimator' and figure(status, 'changes') == '1'
    # A calibration of another robot is refused.
    before = pipeline.identifier.calibration
    publisher.publish(String(data=to_json('another', {'foot_sensor': SensorCalibration()})))
    robot.spin_until(lambda: "'another'" in robot.next_status('ft_calibration').message)
    assert pipeline.identifier.calibration is before
