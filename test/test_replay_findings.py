# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What a replay says about itself: momentum, sensors against each other, dependence, what is judged.

Not covered: the checks themselves (test_momentum_check.py, test_sensor_residuals.py,
test_dependence.py), and wrenches through joints (test_replay_through.py).
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rosbags')

from bag_messages import (
    IMU,
    JOINT_STATE,
    POINT,
    WRENCH,
    imu,
    joint_state,
    point,
    wrench,
    write_bag,
)
from consistent_readings import ConsistentReadings, random_motion
from replays import TWO_IMUS, codes, figures, record, replay_bag, report_of, setup
from robots import nested_humanoid_urdf
from test_replay import MS, SETTINGS, START, humanoid_messages

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dependence import dependence_table
from inertial_estimation.estimation.momentum_check import MomentumCheck
from inertial_estimation.logs.log import Log, TimeRange
from inertial_estimation.logs.offsets import OffsetRequest
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.replay import replay, run
from inertial_estimation.logs.sensor_agreement import momentum_record
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.free_floating import FreeFloating
from inertial_estimation.sample import SampleBatch, SensorState
from inertial_estimation.signals.assembler import build_assembler

# Sums of squares in another order; a batch and a step sum in another order, too.
ROUND_OFF = 1e-9
# Readings of some hundred N and 10 m/s^2 that fit together.
EXACT = 1e-8
# Filtered noise of two seconds: some twenty windows of a filter, three axes.
NOISE_OF_FEW = 0.4
LONG = 500
"""Cycles of 5 ms: four windows of half a second, and the time that filters take to fill."""


@pytest.fixture
def settings():
    return EstimatorSettings.from_dict(SETTINGS)


@pytest.fixture
def robot(settings):
    return build_robot(settings, nested_humanoid_urdf())


# ---- Motion ------------------------------------------------------------------------------------


# ---- Momentum ----------------------------------------------------------------------------------


def test_the_momentum_is_judged_as_by_the_node(tmp_path, robot, settings):
    bag = write_bag(tmp_path / 'bag', humanoid_messages(robot, LONG))
    replay = run(open_log(bag, robot, settings), robot, settings)
    found = SimpleNamespace(**momentum_record(replay))
    check, estimator = MomentumCheck(robot), build_estimator(settings, robot)
    for k in range(LONG):
        sample = replay.recording.samples[k]
        check.add(sample, estimator.update(sample))
    wanted = check.report()
    assert found.windows == wanted.windows == 4
    unexplained = found.unexplained_force_n, found.unexplained_moment_nm
    np.testing.assert_allclose(unexplained, wanted.unexplained, rtol=ROUND_OFF)
    change = found.change_of_linear_momentum_n, found.change_of_angular_momentum_nm
    np.testing.assert_allclose(change, wanted.change, rtol=ROUND_OFF)
    assert 0.0 < found.noise_force_n < np.inf
    assert not found.doubtful_s


def test_accelerations_that_are_not_those_of_the_velocities_are_warned_of(
    tmp_path, robot, settings
):
    bag = write_bag(tmp_path / 'bag', humanoid_messages(robot, LONG))
    recording = open_log(bag, robot, settings)
    samples = recording.samples
    wrong = replace(samples, angular_accelerations=samples.angular_accelerations + 20.0)
    report = figures(replay(robot, replace(recording, samples=wrong), settings))
    ((first, last),) = report.checks.momentum.doubtful_s
    assert (first, last) == (report.time_range_s[0], report.time_range_s[1])
    assert ('momentum', '') in codes(report)


def test_an_assumed_joint_has_no_noise(tmp_path, robot):
    settings = EstimatorSettings.from_dict(
        SETTINGS | {'assumed_joints': ['neck'], 'assumed_positions': [0.0]}
    )
    bag = write_bag(tmp_path / 'bag', humanoid_messages(robot, LONG))
    found = SimpleNamespace(
        **momentum_record(run(open_log(bag, robot, settings), robot, settings))
    )
    assert np.isfinite([found.noise_force_n, found.noise_moment_nm]).all()


def test_more_than_twenty_windows_count_all(rng):
    robot, settings = setup()
    one = record(robot, rng, n=1)
    n = 60 * 11
    samples = one.take(np.zeros(n, dtype=np.intp))
    samples = replace(samples, stamp_ns=1_000_000_000 + 20_000_000 * np.arange(n))
    found = report_of(samples, robot, settings).checks.momentum
    # Twenty windows take 500 periods of 20 ms; the next stretch begins one later.
    assert found.windows == 20 + (n - 502) // 25
    assert np.isnan(found.noise_force_n) and not found.doubtful_s


def test_without_a_window_there_is_no_momentum(rng):
    robot, settings = setup()
    report = report_of(record(robot, rng), robot, settings)
    assert report.checks.momentum is None


# ---- Dependence --------------------------------------------------------------------------------


def test_what_torques_rest_on_is_told_for_what_took_part(rng):
    robot, settings = setup()
    samples = record(robot, rng)
    samples.ft_readings[6:, 1] = np.nan
    samples.ft_states[6:, 1] = SensorState.STALE
    found = report_of(samples, robot, settings).checks.dependence
    contacts = [Contact(frame) for frame in TWO_IMUS['contacts']]
    wanted = dependence_table(robot, contacts)
    assert [tuple(row.fts) for row in found.torques] == [row.fts for row in wanted.torques]
    assert [tuple(row.imus) for row in found.wrenches] == [row.imus for row in wanted.wrenches]


def test_torques_that_no_sensor_informs_are_warned_of_with_their_share(rng):
    robot, settings = setup(contacts=['root', 'thigh', 'sole', 'hand'])
    report = report_of(record(robot, rng), robot, settings)
    (found,) = (one for one in report.findings if one.code == 'uninformed')
    assert found.values['joints'] == 'neck' and found.values['share'] == 1.0
    samples = record(robot, rng)
    samples.ft_readings[:2] = np.nan
    findings = report_of(samples, robot, settings).findings
    assert 0.25 in [one.values['share'] for one in findings if one.code == 'uninformed']


# ---- Sensors against each other ----------------------------------------------------------------


def consistent(robot, rng, n=20, frame='root'):
    """Return readings that fit together; only one link is touched."""
    readings = ConsistentReadings(robot)
    wrenches = {frame: np.array([30.0, -20.0, 10.0, 2.0, -1.0, 3.0])}
    samples = [readings.sample(random_motion(robot, rng), wrenches)[0] for _ in range(n)]
    batch = SampleBatch.stack(samples)
    return replace(batch, stamp_ns=1_000_000_000 * np.arange(1, n + 1))


def residuals_of(report):
    return {(r.sensor, r.quantity): r for r in report.checks.sensor_residuals}


def test_sensors_that_agree_leave_nothing(rng):
    robot, settings = setup(contacts=['root'])
    report = report_of(consistent(robot, rng), robot, settings)
    assert report.checks.residual_instants == 20
    found = residuals_of(report)
    assert len(found) == 2 * 2 + 2 * 3
    for residual in found.values():
        assert residual.n_instants == 20
        assert residual.rms <= residual.largest < EXACT * max(1.0, residual.rms_reading)
        assert not residual.doubtful


def test_what_disagrees_is_a_warning_with_its_cause(rng):
    robot, settings = setup(contacts=['root'])
    samples = consistent(robot, rng)
    samples.proper_accelerations[:, 1] *= -1.0
    samples.ft_readings[:, 0, :3] += 50.0
    report = report_of(samples, robot, settings)
    doubtful = {key for key, r in residuals_of(report).items() if r.doubtful}
    assert {('thigh', 'acceleration'), ('arm_sensor', 'force')} <= doubtful
    np.testing.assert_allclose(residuals_of(report)['arm_sensor', 'moment'].rms, 0, atol=500)
    assert {('sensor_residual', 'thigh'), ('sensor_residual', 'arm_sensor')} <= codes(report)


def test_without_contacts_no_ft_sensor_is_suspected(rng):
    robot, settings = setup(contacts=[])
    report = report_of(consistent(robot, rng, frame='sole'), robot, settings)
    force = residuals_of(report)['foot_sensor', 'force']
    assert force.n_instants == 20
    assert force.rms > 0.5 * force.rms_reading and not force.doubtful
    assert ('sensor_residual', 'foot_sensor') not in codes(report)


def test_a_bias_that_gravity_would_hide_is_a_warning(rng):
    robot, settings = setup(contacts=['root'])
    samples = consistent(robot, rng)
    samples.proper_accelerations[:, 1, 2] += 0.3
    report = report_of(samples, robot, settings)
    thigh = residuals_of(report)['thigh', 'acceleration']
    assert thigh.doubtful and thigh.constant
    assert thigh.rms < 0.25 * thigh.rms_change < 0.25 * thigh.rms_reading
    assert thigh.rms == pytest.approx(0.3)
    (found,) = (one for one in report.findings if one.subject == 'thigh')
    assert found.values['constant']


def test_the_stated_noise_behind_the_filters_is_what_it_leaves(tmp_path, robot):
    """A still robot: the residual is noise, and the gyroscope at rest is none to doubt."""
    settings = EstimatorSettings.from_dict(SETTINGS | {'imus': ['head', 'thigh']})
    messages = still_messages(robot, np.random.default_rng(5), bias=0.0)
    bag = write_bag(tmp_path / 'bag', messages)
    report = replay_bag(bag, nested_humanoid_urdf(), settings, time_range=TimeRange(0.3, 9.0))
    for residual in residuals_of(report).values():
        if residual.kind == 'imu':
            assert residual.noise_is_whole and not residual.doubtful
            assert residual.rms == pytest.approx(residual.noise, rel=NOISE_OF_FEW), residual
    assert ('sensor_residual', 'thigh') not in codes(report)


def still_messages(robot, rng, bias, n=400):
    """Return two seconds of a robot at rest with the stated noise; the thigh's z has a bias."""
    names, zero = list(robot.joint_names), np.zeros(len(robot.joint_names))
    state = FreeFloating(robot).state(zero, zero)
    gravity = {name: state.pose(name)[2, :3] * 9.81 for name in ('head', 'thigh')}
    gravity['thigh'] = gravity['thigh'] + [0.0, 0.0, bias]
    messages = []
    for k in range(n):
        stamp = START + 5 * k * MS
        for name, proper in gravity.items():
            read = rng.normal(0.0, 3e-3, 3), proper + rng.normal(0.0, 0.03, 3)
            messages.append((f'/imu/{name}', IMU, stamp, imu(stamp, name, *read)))
        for frame, topic in zip(
            ('arm_sensor', 'leg_frame', 'foot_sensor'), SETTINGS['ft_sensors']
        ):
            data = wrench(stamp, frame, rng.normal(0.0, 0.1, 6))
            messages.append((f'/ft/{topic}', WRENCH, stamp, data))
        data = joint_state(stamp, names, rng.normal(0.0, 1e-4, len(names)))
        messages.append(('/joint_states', JOINT_STATE, stamp, data))
    return messages


def test_a_sensor_that_nothing_else_tells_has_no_row(rng):
    robot, settings = setup(imus=['head'])
    report = report_of(record(robot, rng, n=20), robot, settings)
    found = residuals_of(report)
    assert found['head', 'acceleration'].n_instants == 0
    # Every submodel has a contact: no FT sensor can be told from the others.
    assert found['leg_sensor', 'force'].n_instants == 0


# ---- External torques --------------------------------------------------------------------------


def test_what_external_wrenches_do_to_joints_is_told(rng):
    robot, settings = setup(external_torque_base='sole')
    samples = record(robot, rng)
    report = report_of(samples, robot, settings)
    statistics = build_assembler(settings, robot).statistics()
    estimate = run(Log(samples, 1_000_000_000, statistics), robot, settings).estimate
    assert [t.joint for t in report.external_torques] == list(robot.joint_names)
    wanted = np.sqrt(np.mean(estimate.external_torques**2, axis=0))
    found = [t.rms for t in report.external_torques]
    np.testing.assert_allclose(found, wanted, rtol=ROUND_OFF)
    assert report.external_torque_base == 'sole'


def test_without_contacts_there_are_no_external_torques(rng):
    robot, settings = setup(contacts=[])
    assert report_of(record(robot, rng), robot, settings).external_torques == []


# ---- What is judged, senders of touches, arrays ------------------------------------------------


def test_a_range_inside_that_of_the_offsets_judges_nothing(tmp_path, robot, settings):
    bag = write_bag(tmp_path / 'bag', humanoid_messages(robot))
    request = OffsetRequest('torques', TimeRange(0.0, 0.2))
    args = bag, nested_humanoid_urdf(), settings
    report = replay_bag(*args, offsets=request, time_range=TimeRange(0.05, 0.15))
    assert report.judged_s == 0.0
    assert all(wrench.n_samples == 0 for wrench in report.wrenches)
    assert replay_bag(*args, offsets=request).judged_s > 0.0


def touch(ms, frame, values):
    stamp = START + ms * MS
    return ('/contacts', POINT, stamp, point(stamp, frame, values))


@pytest.mark.parametrize(
    ('every', 'warned'), [([10] * 20, False), ([50] * 5, True), ([10, 90, 10, 10, 120], False)]
)
def test_a_sender_that_is_slower_than_the_timeout_is_warned_of(tmp_path, robot, every, warned):
    settings = EstimatorSettings.from_dict(SETTINGS | {'contact_timeout': 0.02})
    touches = [touch(int(ms), 'shank', (0.0, 0.1, 0.2)) for ms in np.cumsum(every)]
    messages = sorted([*humanoid_messages(robot), *touches], key=lambda m: m[2])
    report = replay_bag(write_bag(tmp_path / 'bag', messages), nested_humanoid_urdf(), settings)
    found = [one for one in report.findings if one.code == 'slow_contacts']
    assert bool(found) == warned
    if warned:
        assert found[0].values == {'count': 4, 'period': pytest.approx(0.05)}
