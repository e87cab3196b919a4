# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The identifier in this process: samples in, latched parameters out; services and state file.

What the recursion makes of rows is in test_recursion.py, stretches in test_stretches.py, the
process and its launch file in test_launch.py.
"""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import ARRIVED, LATCHED, SETTLE, BenchRobot, figure
from diagnostic_msgs.msg import DiagnosticStatus
from free_air import smooth_motion, with_readings
from geometry_msgs.msg import InertiaStamped, PointStamped, WrenchStamped
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger

from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.priors import widened
from inertial_estimation.identification.solvers.divergence import whitening
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.model.parameter_update import fingerprint
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf_export import export_urdf
from inertial_estimation.ros import identifier_status
from inertial_estimation.ros.conversions import point_to_message
from inertial_estimation.ros.identifier_messages import PAYLOAD, PROGRESS, SEPARATOR
from inertial_estimation.ros.identifier_node import IdentifierNode
from inertial_estimation.ros.identifier_status import lost_sensors
from inertial_estimation.ros.inertial_parameters import (
    UNCERTAINTY_TOPIC,
    from_message,
    roots_from_message,
)
from inertial_estimation.sample import Sample, SensorState

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
NOISE = np.array([0.02, 0.02, 0.02, 0.001, 0.001, 0.001])
OFFSET = np.array([6.0, -4.0, 9.0, 0.5, -0.3, 0.2])
FREE = ('upper_arm', 'thigh', 'foot')
"""Submodels that nothing holds."""
MASS_ERROR = 0.01
"""Of a submodel, over its mass: noise of 0.02 N leaves a tenth of it."""
FRICTION_ERROR = 0.05
"""A tenth of what it is: accelerations come from a filter [Nm s/rad, Nm]."""
GAIN = 12.5
"""Torque over current [Nm/A]."""
NOTHING_COMES = 0.5
"""How long a latched message may take that was published before [s]."""
FORCE_ERROR, MOMENT_ERROR = 0.2, 0.02
"""Of offsets, a twentieth of what they are [N, Nm]."""


@pytest.fixture(scope='module')
def truth():
    return Robot.from_urdf(nested_humanoid_urdf(), fixed_link='root')


@pytest.fixture(scope='module')
def described(truth):
    """Return a description whose bodies are off by a tenth in each whitened coordinate."""
    rng = np.random.default_rng(3)
    bodies, _ = widened(truth.link_names, truth.parameters)
    moves = 0.1 * rng.normal(size=(len(bodies), 10))
    return export_urdf(truth, bodies + np.einsum('lij,lj->li', whitening(bodies), moves))


@pytest.fixture(scope='module')
def moving(truth):
    return motion(truth, 12.0)


@pytest.fixture
def bench(context, described):
    """Return a function that puts an identifier with some parameters on the bench."""
    made = []

    def make(**parameters):
        given = {'robot_description': described, 'fixed_link': 'root', 'least_told': 3}
        made.append(BenchRobot(context, given | parameters, IdentifierNode))
        return made[-1]

    yield make
    for robot in made:
        robot.close()


def motion(robot, seconds, seed=0, swing=0.8, parameters=None):
    """Return samples of all joints on the move, with noise and offsets of the FT sensors."""
    samples = smooth_motion(robot, seconds, seed=seed, swing=swing)
    bodies = robot.parameters if parameters is None else parameters
    samples = with_readings(robot, samples, bodies)
    noise = np.random.default_rng(seed).normal(size=samples.ft_readings.shape)
    samples.ft_readings[:] += OFFSET + NOISE * noise
    return samples


def later(samples, seconds):
    return replace(samples, stamp_ns=samples.stamp_ns + round(1e9 * seconds))


def feed(robot, samples):
    for k in range(len(samples)):
        robot.estimator.pipeline.take(samples[k])


def heard(robot, message_type, topic, qos=LATCHED):
    """Return what a subscriber that comes late hears of a latched topic."""
    robot.listen(message_type, topic, qos)
    with suppress(TimeoutError):
        robot.spin_until(lambda: robot.heard[topic], NOTHING_COMES)
    robot.spin_for(SETTLE)
    return robot.heard[topic]


def parameters_of(robot):
    """Return the newest parameters, None if there are none."""
    robot.heard.pop('inertial_parameters', None)
    messages = heard(robot, Float64MultiArray, 'inertial_parameters')
    return from_message(robot.estimator.pipeline.robot, messages[-1]) if messages else None


def call(robot, kind, service, **request):
    client = robot.node.create_client(kind, f'/parameter_identifier/{service}')
    robot.spin_until(client.service_is_ready)
    future = client.call_async(kind.Request(**request))
    robot.spin_until(future.done)
    robot.node.destroy_client(client)
    return future.result()


def masses(robot, parameters):
    return {
        submodel.name: parameters[list(submodel.links), 0].sum() for submodel in robot.submodels
    }


def seconds_with_rows(robot):
    known = robot.estimator.pipeline.identifier.memories
    return {one.block.submodel.name: one.seconds for one in known}


def assert_near_the_truth(truth, parameters, names=FREE):
    found, true = masses(truth, parameters), masses(truth, truth.parameters)
    for name in names:
        assert found[name] == pytest.approx(true[name], rel=MASS_ERROR)


def test_samples_become_parameters(bench, truth, moving):
    robot = bench()
    before = masses(truth, robot.estimator.pipeline.robot.parameters)
    true = masses(truth, truth.parameters)
    # Or there would be nothing to find.
    assert all(abs(before[name] / true[name] - 1.0) > 2 * MASS_ERROR for name in FREE)
    feed(robot, moving)
    found = parameters_of(robot)
    assert_near_the_truth(truth, found)
    described = robot.estimator.pipeline.robot.parameters
    held = list(truth.submodels[0].links)
    np.testing.assert_array_equal(found[held], described[held])
    (urdf,) = heard(robot, String, 'parameter_identifier/robot_description')
    again = Robot.from_urdf(urdf.data, fixed_link='root')
    # A URDF says inertia about the centre of mass, in ten digits.
    np.testing.assert_allclose(again.parameters, found, atol=1e-8)
    assert not robot.node.get_publishers_info_by_topic('/robot_description')


def test_how_sure_parameters_are_goes_with_them(bench, truth, moving):
    robot = bench()
    feed(robot, moving)
    found = parameters_of(robot)
    (message,) = heard(robot, Float64MultiArray, UNCERTAINTY_TOPIC)
    of, roots = roots_from_message(robot.estimator.pipeline.robot, message)
    assert of == fingerprint(found)
    held = list(truth.submodels[0].links)
    assert not roots[held].any()
    for submodel in truth.submodels[1:]:
        links = list(submodel.links)
        # Of the mass of a submodel: noise of 0.02 N and the prior leave little, but something.
        deviation = np.linalg.norm(roots[links, 0].sum(axis=0))
        assert 0.0 < deviation < MASS_ERROR * truth.parameters[links, 0].sum()


def test_inertias_are_about_the_centres_of_mass(bench, truth, moving):
    robot = bench()
    feed(robot, moving)
    found = parameters_of(robot)
    n = len(truth.links)
    every = QoSProfile(depth=n, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    messages = heard(robot, InertiaStamped, 'parameter_identifier/inertias', every)
    assert [message.header.frame_id for message in messages] == list(truth.link_names)
    for message, row in zip(messages, found):
        one = message.inertia
        center = np.array([one.com.x, one.com.y, one.com.z])
        np.testing.assert_allclose([one.m, *one.m * center], row[:4], rtol=1e-12)
        about = np.array([one.ixx, one.ixy, one.iyy, one.ixz, one.iyz, one.izz])
        shift = one.m * (center @ center * np.eye(3) - np.outer(center, center))
        np.testing.assert_allclose(about + shift[np.tril_indices(3)], row[4:], atol=1e-12)


def test_offsets_are_found(bench, truth, moving):
    robot = bench()
    feed(robot, moving)
    for sensor in truth.ft_sensors:
        (offset,) = heard(robot, WrenchStamped, f'parameter_identifier/ft_offset/{sensor.name}')
        force, torque = offset.wrench.force, offset.wrench.torque
        np.testing.assert_allclose(
            [force.x, force.y, force.z], OFFSET[:3], atol=FORCE_ERROR
        )  # fmt: skip
        np.testing.assert_allclose(
            [torque.x, torque.y, torque.z], OFFSET[3:], atol=MOMENT_ERROR
        )  # fmt: skip


def test_at_rest_no_offset_is_told_from_weight(bench, truth):
    robot = bench()
    feed(robot, motion(truth, 8.0, swing=0.0))
    (offset,) = heard(robot, WrenchStamped, 'parameter_identifier/ft_offset/arm_sensor')
    assert np.isnan([offset.wrench.force.x, offset.wrench.force.y, offset.wrench.force.z]).any()


def test_base_parameters_and_progress_are_labelled(bench, truth, moving):
    robot = bench()
    feed(robot, moving)
    (base,) = heard(robot, Float64MultiArray, 'parameter_identifier/base_parameters')
    rows, columns = base.layout.dim
    labels = rows.label.split(SEPARATOR)
    assert columns.label.split(' ') == ['value', 'standard_deviation']
    numbers = np.array(base.data).reshape(rows.size, columns.size)
    assert len(labels) == len(set(labels)) == len(numbers)
    assert {label.split(': ')[0] for label in labels} == set(FREE)
    known = np.isfinite(numbers[:, 1])
    assert known.any()
    offset = labels.index('foot: foot_sensor.force_x')
    assert numbers[offset, 0] == pytest.approx(OFFSET[0], abs=FORCE_ERROR)
    assert 0.0 < numbers[offset, 1] < FORCE_ERROR
    (progress,) = heard(robot, Float64MultiArray, 'parameter_identifier/progress')
    rows, columns = progress.layout.dim
    assert rows.label.split(SEPARATOR) == [submodel.name for submodel in truth.submodels]
    assert tuple(columns.label.split(' ')) == PROGRESS
    table = np.array(progress.data).reshape(rows.size, columns.size)
    figures = dict(zip(PROGRESS, table[1:].T))
    assert (figures['seconds'] > 8.0).all()
    assert (figures['told'] >= 3).all()
    assert (figures['rank'] <= figures['base_parameters']).all()
    assert figures['rank'].sum() == known.sum()
    assert (figures['force_after'] < figures['force_before']).all()
    assert np.isnan(figures['effort_after']).all()


def test_topics_become_parameters(bench, truth, moving):
    robot = bench(acceleration_source='zero')
    robot.listen(Float64MultiArray, 'inertial_parameters', LATCHED)
    contacts = robot.publisher(PointStamped, 'contacts')
    slow = smooth_motion(truth, 12.0, swing=0.8)
    # Nearly at rest all the time: what accelerations do is a matter of their filter.
    slow = replace(slow, velocities=0.0 * slow.velocities, accelerations=0.0 * slow.accelerations)
    slow = with_readings(truth, slow, truth.parameters)
    slow.ft_readings[:] += OFFSET
    touched = slow.stamp_ns[0] + 2_000_000_000
    for k in range(len(slow)):
        sample = slow[k]
        for sensor, reading in zip(truth.ft_sensors, sample.ft_readings):
            robot.send_ft(sensor.name, sample.stamp_ns, reading)
        if sample.stamp_ns < touched:
            contacts.publish(point_to_message(sample.stamp_ns, 'hand', [0.0, 0.0, 0.0]))
        robot.send_joints(
            sample.stamp_ns, truth.joint_names, position=sample.positions,
            velocity=sample.velocities,
        )  # fmt: skip
        # Best effort, and a second deep: who sends all at once loses some.
        robot.spin_briefly(1)
    robot.spin_until(lambda: robot.heard['inertial_parameters'])
    seconds = seconds_with_rows(robot)
    assert seconds['upper_arm'] < seconds['thigh'] - 1.5
    assert seconds['root'] == 0.0
    found = from_message(truth, robot.heard['inertial_parameters'][-1])
    assert_near_the_truth(truth, found)


def test_what_is_touched_is_not_learned_from(bench, truth, moving):
    robot = bench(contact_timeout=100.0)
    contacts = robot.publisher(PointStamped, 'contacts')
    feed(robot, moving.take(slice(0, 1)))
    contacts.publish(point_to_message(int(moving.stamp_ns[0]), 'hand', [0.0, 0.0, 0.0]))
    robot.spin_for(ARRIVED)
    feed(robot, moving.take(slice(1, None)))
    seconds = seconds_with_rows(robot)
    assert seconds['upper_arm'] == 0.0
    assert seconds['thigh'] > 8.0
    assert_near_the_truth(truth, parameters_of(robot), ('thigh', 'foot'))


def test_a_load_is_told_with_its_centre(bench, truth):
    loaded = truth.parameters.copy()
    center = np.array([0.03, -0.02, 0.1])
    inertia = (center @ center) * np.eye(3) - np.outer(center, center) + 0.001 * np.eye(3)
    loaded[truth.link_names.index('hand')] += [1.0, *center, *inertia[np.tril_indices(3)]]
    samples, later = motion(truth, 22.0), motion(truth, 22.0, parameters=loaded)
    robot = bench(payload_links=['hand'])
    feed(robot, samples.take(slice(0, 1000)))
    (nothing,) = heard(robot, Float64MultiArray, 'parameter_identifier/payloads')
    assert nothing.layout.dim[0].size == len(nothing.data) == 0
    feed(robot, later.take(slice(1000, None)))
    robot.heard.clear()
    *_, found = heard(robot, Float64MultiArray, 'parameter_identifier/payloads')
    rows, columns = found.layout.dim
    assert rows.label == 'upper_arm: hand'
    assert tuple(columns.label.split(' ')) == PAYLOAD
    numbers = np.array(found.data)
    # FT noise of 0.02 N and 0.001 Nm on 1 kg, of ten seconds at 100 Hz.
    assert numbers[0] == pytest.approx(1.0, abs=0.01)
    np.testing.assert_allclose(numbers[1:4], center, atol=0.002)
    assert (numbers[4:] > 0.0).all() and numbers[4:].max() < 0.01
    robot.listen_to_diagnostics()
    assert figure(robot.status('submodel upper_arm'), 'payload').startswith(f'{numbers[0]:.3f} kg')


def test_bodies_are_refitted_after_every_stretch_at_any_rate(bench, moving):
    robot = bench()
    # 250 Hz: every second or third sample gives rows, and no stretch is as long as the other.
    stamps = moving.stamp_ns[0] + 4_000_000 * np.arange(len(moving))
    feed(robot, replace(moving, stamp_ns=stamps))
    seconds = int((stamps[-1] - stamps[0]) // 1_000_000_000)
    warm_up = robot.estimator.settings.warm_up
    assert robot.estimator.pipeline.report.refits >= seconds - warm_up - 1


def test_held_frames_give_no_rows_and_no_warning(bench, moving, monkeypatch):
    monkeypatch.setattr(identifier_status, 'MAX_WAIT', 0)
    robot = bench(held_frames=['sole'])
    robot.listen_to_diagnostics()
    feed(robot, moving)
    assert seconds_with_rows(robot)['foot'] == 0.0
    status = robot.status('submodel foot')
    assert status.level == DiagnosticStatus.OK
    assert robot.status('submodel root').level == DiagnosticStatus.OK


def test_at_rest_nothing_is_published_and_after_a_while_that_is_a_warning(
    bench, truth, monkeypatch
):
    robot = bench()
    robot.listen_to_diagnostics()
    still = motion(truth, 10.0, swing=0.0)
    feed(robot, still)
    assert parameters_of(robot) is None
    assert heard(robot, Float64MultiArray, 'parameter_identifier/progress')
    status = robot.status('submodel upper_arm')
    assert status.level == DiagnosticStatus.OK
    monkeypatch.setattr(identifier_status, 'MAX_WAIT', 0)
    assert robot.next_status('submodel upper_arm').level == DiagnosticStatus.WARN


def test_diagnostics_say_what_was_learned(bench, moving):
    robot = bench()
    robot.listen_to_diagnostics()
    feed(robot, moving)
    status = robot.status('submodel upper_arm')
    assert status.message == 'identified'
    assert float(figure(status, 'time with equations [s]')) > 8.0
    told, possible = map(int, figure(status, 'base parameters identified').split(' of '))
    assert 10 < told <= possible
    before, after = map(float, figure(status, 'error of force before, after [N]').split(', '))
    assert after < before
    recursion = robot.status('recursion')
    assert int(figure(recursion, 'updates')) > 5
    assert int(figure(recursion, 'failures, total')) == 0


def test_rows_that_are_left_out_are_a_warning_with_the_reason(bench, truth, moving):
    robot = bench()
    robot.listen_to_diagnostics()
    feed(robot, moving)
    assert robot.next_status('submodel foot').message == 'identified'
    pushed = later(motion(truth, 6.0, seed=1), 20.0)
    # To and fro, which no offset does.
    times = 1e-9 * (pushed.stamp_ns - pushed.stamp_ns[0])
    pushed.ft_readings[:, :, 0] += 50.0 * np.sin(4.0 * times)[:, None]
    feed(robot, pushed)
    status = robot.next_status('submodel foot')
    assert status.level == DiagnosticStatus.WARN
    assert float(figure(status, 'disturbed for [s]')) > 1.0
    # A pause leaves nothing out.
    call(robot, SetBool, 'enable', data=False)
    assert robot.next_status('submodel foot').level == DiagnosticStatus.OK


def test_a_submodel_without_rows_names_the_sensor_that_is_lost(bench, truth, moving):
    robot = bench()
    robot.listen_to_diagnostics()
    feed(robot, moving)
    lost = later(motion(truth, 7.0, seed=1), 12.0)
    names = [sensor.name for sensor in truth.ft_sensors]
    lost.ft_readings[:, names.index('arm_sensor')] = np.nan
    feed(robot, lost)
    status = robot.next_status('submodel upper_arm')
    assert status.level == DiagnosticStatus.WARN
    assert 'arm_sensor' in status.message
    # What does not need it goes on.
    assert robot.next_status('submodel foot').message == 'identified'
    feed(robot, later(motion(truth, 3.0, seed=2), 19.0))
    assert robot.next_status('submodel upper_arm').message == 'identified'


@pytest.mark.parametrize(
    ('spoil', 'said'),
    [
        (lambda s: s.ft_readings.fill(np.nan), ["FT sensor 'arm_sensor'"]),
        (lambda s: s.angular_velocities.fill(np.nan), ["IMU 'head' (stale)"]),
        (lambda s: s.velocities.__setitem__(0, np.nan), ["joint 'hip_joint'"]),
        (lambda s: None, []),
    ],
)
def test_sensors_are_named_in_the_order_of_what_lacks_first(spoil, said):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'], joints=['hip_joint'])
    zeros, three = np.zeros(1), np.zeros((1, 3))
    sample = Sample(
        1, zeros, zeros.copy(), zeros, three, three.copy(), three.copy(),
        np.zeros((len(robot.ft_sensors), 6)), imu_states=np.array([SensorState.STALE]),
    )  # fmt: skip
    spoil(sample)
    arm = next(one for one in robot.submodels if one.name == 'upper_arm')
    assert lost_sensors(robot, arm, sample) == said


def test_joint_states_without_efforts_are_a_warning_with_the_remedy(context):
    arm = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    samples = with_readings(arm, smooth_motion(arm, 3.0), arm.parameters)
    parameters = {
        'robot_description': arm_with_wrist_sensor_urdf(), 'fixed_link': 'base',
        'efforts': ['all'],
    }  # fmt: skip
    robot = BenchRobot(context, parameters, IdentifierNode)
    try:
        robot.listen_to_diagnostics()
        feed(robot, samples)
        status = robot.status('submodel base')
        assert status.level == DiagnosticStatus.WARN
        assert all(name in status.message for name in arm.joint_names)
    finally:
        robot.close()


def test_no_joint_states_are_an_error(bench):
    robot = bench()
    reports = robot.listen_to_diagnostics()
    # Nobody asks for the first one.
    robot.spin_until(lambda: reports)
    status = robot.status('recursion')
    assert status.level == DiagnosticStatus.ERROR
    assert robot.status('ft arm_sensor').level == DiagnosticStatus.ERROR


def test_a_body_that_cannot_exist_is_refused_and_the_last_update_holds(bench, truth, moving):
    robot = bench()
    robot.listen_to_diagnostics()
    feed(robot, moving)
    good = parameters_of(robot)
    identifier = robot.estimator.pipeline.identifier
    whole = identifier.refit

    def spoiled():
        refit = whole()
        refit.parameters[-1, 0] = -1.0
        return refit

    identifier.refit = spoiled
    feed(robot, later(moving, 12.0).take(slice(0, 400)))
    np.testing.assert_array_equal(parameters_of(robot), good)
    status = robot.status('recursion')
    assert status.level == DiagnosticStatus.ERROR
    assert int(figure(status, 'refused updates')) > 0
    del identifier.refit
    feed(robot, later(moving, 16.0).take(slice(0, 400)))
    assert not np.array_equal(parameters_of(robot), good)


def test_lifecycle(bench, truth, moving):
    robot = bench(autostart=False)
    node = robot.estimator
    assert call(robot, Trigger, 'save').message == 'not configured'
    assert not call(robot, SetBool, 'enable', data=True).success
    assert node.trigger_configure() == SUCCESS
    feed(robot, moving)
    assert not any(seconds_with_rows(robot).values())
    assert node.trigger_activate() == SUCCESS
    feed(robot, later(moving, 20.0))
    assert_near_the_truth(truth, parameters_of(robot))
    assert node.trigger_deactivate() == SUCCESS
    before = seconds_with_rows(robot)
    feed(robot, later(moving, 40.0))
    assert seconds_with_rows(robot) == before
    assert node.trigger_cleanup() == SUCCESS
    assert node.pipeline is None
    assert node.trigger_configure() == SUCCESS
    assert not any(seconds_with_rows(robot).values())


def test_time_that_is_set_back_costs_nothing_that_was_learned(bench, truth, moving):
    robot = bench()
    feed(robot, later(moving, 1000.0))
    before = seconds_with_rows(robot)
    feed(robot, moving)
    after = seconds_with_rows(robot)
    for name in FREE:
        # Ten stretches more: time never counts backwards.
        assert 8.0 < after[name] - before[name] < 12.0
    assert_near_the_truth(truth, parameters_of(robot))


def test_refits_go_on_after_time_was_set_back(bench, moving, tmp_path):
    path = str(tmp_path / 'state.json')
    robot = bench(state_file=path)
    feed(robot, later(moving, 1000.0))
    refits = robot.estimator.pipeline.report.refits
    assert refits > 5
    feed(robot, moving)
    # One for each stretch once their noise is known, though the last one was in the future.
    assert robot.estimator.pipeline.report.refits > refits + 8
    # A state that was saved in the future, as before a simulation that begins anew.
    feed(robot, later(moving, 1000.0))
    call(robot, Trigger, 'save')
    robot.estimator.trigger_deactivate()
    again = bench(state_file=path)
    assert again.estimator.pipeline.report.refits == 1
    feed(again, moving)
    assert again.estimator.pipeline.report.refits > 8


def test_reset_forgets_what_was_learned(bench, moving):
    robot = bench()
    feed(robot, moving)
    published = parameters_of(robot)
    answer = call(robot, Trigger, 'reset')
    assert answer.success
    assert 'forgot' in answer.message
    assert not any(seconds_with_rows(robot).values())
    np.testing.assert_array_equal(parameters_of(robot), published)


def test_what_was_published_stays_after_a_reset_of_a_robot_at_rest(bench, truth, moving):
    robot = bench()
    feed(robot, moving)
    published, report = parameters_of(robot), robot.estimator.pipeline.report
    call(robot, Trigger, 'reset')
    refits = report.refits
    feed(robot, later(motion(truth, 8.0, swing=0.0), 20.0))
    # They tell nothing of bodies: neither other ones, nor that the description holds again.
    assert report.refits > refits
    np.testing.assert_array_equal(parameters_of(robot), published)


def test_linear_algebra_that_fails_ends_no_process(bench, moving, monkeypatch):
    robot = bench()
    pipeline = robot.estimator.pipeline

    def refit():
        raise ValueError('array must not contain infs or NaNs')

    with monkeypatch.context() as patched:
        patched.setattr(pipeline.identifier, 'refit', refit)
        feed(robot, moving.take(slice(0, 500)))
        robot.listen_to_diagnostics()
        assert 'must not contain infs' in robot.status('recursion').message
    feed(robot, moving.take(slice(500, None)))
    assert parameters_of(robot) is not None


def test_a_pause_learns_nothing(bench, moving):
    robot = bench()
    assert call(robot, SetBool, 'enable', data=False).success
    feed(robot, moving)
    assert not any(seconds_with_rows(robot).values())
    robot.listen_to_diagnostics()
    feed(robot, later(moving, 12.0).take(slice(0, 10)))
    assert 'paused' in robot.status('recursion').message
    assert call(robot, SetBool, 'enable', data=True).success
    feed(robot, later(moving, 600.0))
    # Ten minutes of pause are no time with rows.
    assert max(seconds_with_rows(robot).values()) < 12.0
    assert seconds_with_rows(robot)['foot'] > 8.0


@pytest.mark.parametrize(
    'parameters',
    [
        {'held_frames': ['soel']},
        {'efforts': ['kneee']},
        {'friction': ['stiction']},
        {'wrench_rows': False},
        {'fixed_link': 'rooot'},
        {'state_file': '/nowhere/at/all/state.json'},
        {'gate': 1.0},
        {'payload_links': ['haand']},
    ],
)
def test_what_does_not_fit_is_refused_at_configuration(bench, parameters):
    robot = bench(**parameters)
    assert robot.estimator.pipeline is None
    # Nothing is left behind that would hear of another calibration, or that a second try would
    # trip over.
    assert not [one for one in robot.estimator.subscriptions if 'calibration' in one.topic_name]
    assert robot.estimator.trigger_configure() == FAILURE


@pytest.mark.parametrize(
    'parameters', [{'rows_rate': 0.0}, {'niceness': 20}, {'least_told': 0}, {'rows_raet': 10.0}]
)
def test_values_out_of_range_and_unknown_names_are_refused_at_once(bench, parameters):
    with pytest.raises(InertialEstimationError):
        bench(**parameters)


def test_what_is_known_survives_a_restart(bench, truth, moving, tmp_path):
    path = tmp_path / 'state.json'
    first = bench(state_file=str(path))
    answer = call(first, Trigger, 'save')
    assert not answer.success
    assert not path.exists()
    feed(first, moving)
    answer = call(first, Trigger, 'save')
    assert answer.success
    assert str(path) in answer.message
    published, known = parameters_of(first), seconds_with_rows(first)
    text = path.read_text()
    first.estimator.trigger_deactivate()
    # Nothing new was known.
    assert path.read_text() == text
    assert first.estimator.trigger_cleanup() == SUCCESS
    second = bench(state_file=str(path))
    assert seconds_with_rows(second) == known
    # The same rows, from another start.
    np.testing.assert_allclose(parameters_of(second), published, atol=1e-6)
    assert_near_the_truth(truth, parameters_of(second))


@pytest.mark.parametrize('end', ['trigger_deactivate', 'trigger_shutdown', 'destroy_node'])
def test_what_is_known_is_saved_at_the_end(bench, moving, tmp_path, end):
    path = tmp_path / 'state.json'
    robot = bench(state_file=str(path))
    feed(robot, moving)
    assert not path.exists()
    getattr(robot.estimator, end)()
    assert path.exists()


def test_what_is_known_is_saved_now_and_then(bench, moving, tmp_path, monkeypatch):
    path = tmp_path / 'state.json'
    robot = bench(state_file=str(path), save_period=1.0)
    monkeypatch.setattr(robot.estimator.pipeline._state, '_due', 0.0)
    feed(robot, moving)
    assert path.exists()
    assert call(robot, Trigger, 'save').success
    assert call(robot, Trigger, 'save').success


@pytest.mark.parametrize('kind', ['cut off', 'of another robot'])
def test_a_file_that_cannot_be_used_is_set_aside(bench, moving, tmp_path, kind):
    path = tmp_path / 'state.json'
    other = bench(state_file=str(path), ft_offsets=kind != 'of another robot')
    feed(other, moving)
    assert call(other, Trigger, 'save').success
    content = path.read_bytes()
    content = content[:-100] if kind == 'cut off' else content
    other.estimator.pipeline._state = None
    path.write_bytes(content)
    earlier = path.with_name('state.json.refused')
    earlier.write_bytes(b'the state of days')
    robot = bench(state_file=str(path))
    assert not any(seconds_with_rows(robot).values())
    aside = path.with_name('state.json.refused.2')
    assert aside.read_bytes() == content
    assert earlier.read_bytes() == b'the state of days'
    assert not path.exists()
    robot.listen_to_diagnostics()
    status = robot.status('state file')
    assert status.level == DiagnosticStatus.WARN
    assert str(aside) in status.message
    answer = call(robot, Trigger, 'restore')
    assert not answer.success
    assert 'cannot read' in answer.message


def test_restore_takes_back_what_was_learned_since(bench, moving, tmp_path):
    robot = bench(state_file=str(tmp_path / 'state.json'))
    feed(robot, moving)
    call(robot, Trigger, 'save')
    known = seconds_with_rows(robot)
    feed(robot, later(moving, 12.0))
    assert seconds_with_rows(robot) != known
    answer = call(robot, Trigger, 'restore')
    assert answer.success, answer.message
    assert seconds_with_rows(robot) == known


def test_without_a_file_saving_says_so(bench):
    robot = bench()
    for service in ('save', 'restore'):
        answer = call(robot, Trigger, service)
        assert not answer.success
        assert "'state_file'" in answer.message


FRICTION = {'viscous': 0.8, 'coulomb': 0.5, 'drive_inertia': 0.1}


def with_efforts(robot, samples):
    """Return samples whose joints report their efforts, with friction and drives in them."""
    joint = JointModel(tuple(map(Term, FRICTION)))
    builder = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names, joint=joint))
    samples = replace(samples, efforts=np.zeros_like(samples.positions))
    for block, kinds in zip(builder.blocks, builder.equations(samples)):
        extras = np.array([FRICTION[extra.term.value] for extra in block.unknowns.extras])
        x = block.unknowns.join(robot.parameters[list(block.submodel.links)], extras)
        for kind, (Y, y, _) in kinds.items():
            if kind.startswith('effort '):
                column = robot.joint_names.index(kind.removeprefix('effort '))
                samples.efforts[:, column] = Y @ x - y
    return samples


def test_efforts_of_an_arm_tell_friction_and_drives(context):
    arm = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    samples = with_efforts(arm, with_readings(arm, smooth_motion(arm, 14.0), arm.parameters))
    rng = np.random.default_rng(0)
    samples.efforts[:] += 0.01 * rng.normal(size=samples.efforts.shape)
    samples.ft_readings[:] += OFFSET + NOISE * rng.normal(size=samples.ft_readings.shape)
    parameters = {
        'robot_description': arm_with_wrist_sensor_urdf(), 'fixed_link': 'base',
        'efforts': ['all'], 'friction': list(FRICTION), 'least_told': 3,
        # They report currents.
        'effort_gains': [GAIN] * len(arm.joint_names),
    }  # fmt: skip
    robot = BenchRobot(context, parameters, IdentifierNode)
    try:
        robot.listen_to_diagnostics()
        for k in range(len(samples)):
            sample = samples[k]
            robot.send_ft('wrist_sensor', sample.stamp_ns, sample.ft_readings[0])
            robot.send_joints(
                sample.stamp_ns, arm.joint_names, position=sample.positions,
                velocity=sample.velocities, effort=sample.efforts / GAIN,
            )  # fmt: skip
            robot.spin_briefly(2)
        status = robot.status('submodel base')
        assert status.message == 'identified'
        assert figure(status, 'error of effort before, after [Nm or N]')
        (base,) = heard(robot, Float64MultiArray, 'parameter_identifier/base_parameters')
        labels = base.layout.dim[0].label.split(SEPARATOR)
        numbers = np.array(base.data).reshape(-1, 2)
        for joint in arm.joint_names:
            for term in ('viscous', 'coulomb'):
                value, deviation = numbers[labels.index(f'base: {joint}.{term}')]
                assert value == pytest.approx(FRICTION[term], abs=FRICTION_ERROR)
                assert 0.0 < deviation < FRICTION_ERROR
    finally:
        robot.close()
