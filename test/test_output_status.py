# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Statuses of inputs and results, and when their findings are logged; without ROS.

Not covered: what of it arrives on /diagnostics (ros/test_estimator_node.py).
"""

import numpy as np
import pytest
from robots import nested_humanoid_urdf, random_sample

from inertial_estimation.config import EstimatorSettings, ImuSettings
from inertial_estimation.estimation.contact_stream import ContactStatistics, SlowSender
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dependence import dependence_table, find_informed
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import Level, finding
from inertial_estimation.model.robot import Robot
from inertial_estimation.outputs import result_checks
from inertial_estimation.outputs.cycle_times import CycleReport
from inertial_estimation.outputs.diagnostics import (
    REPORTS_TO_END,
    FindingLog,
    check_problems,
    check_sensor,
    check_skew,
    clock_status,
    common_skew,
    contacts_status,
    cycle_status,
    known_joints_status,
)
from inertial_estimation.outputs.result_checks import DependenceStatus, MomentumStatus
from inertial_estimation.sample import SensorState
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.router import Source
from inertial_estimation.signals.stream import StreamStatistics

RATE = 100
OMEGA = 2.0 * np.pi * 0.8
"""Of all joints and the IMU [rad/s]."""
START_NS = 1_000_000_000_000
NAN = float('nan')


def codes(findings):
    return [(one.code, one.level) for one in findings]


def source(name='foot', kind='ft'):
    return Source(kind, name, f'{kind}/{name}', lambda data, kind: None)


def streamed(**fields):
    """Return statistics of a stream that delivers well, but for some fields."""
    counts = dict.fromkeys(('used', 'refused', 'dropped', 'repeated', 'invalid'), 0)
    good = {'received': 5, 'first_stamp_ns': 1, 'last_stamp_ns': 5 * 10**7}
    times = {'longest_gap': 0.01, 'age': 0.0, 'rate': 100.0}
    return StreamStatistics(**counts | good | times | fields)


def test_a_finding_is_logged_once_and_its_end_once():
    log, one = FindingLog(), finding('clock', 'ft leg', what='late')
    begun, ended = [], []
    for is_there in [True] * 5 + [False, True] * 3 + [False] * 12 + [True]:
        new, over = log.update([one] if is_there else [])
        begun.append(len(new))
        ended.append(len(over))
    assert np.flatnonzero(begun).tolist() == [0, 23]
    assert np.flatnonzero(ended).tolist() == [10 + REPORTS_TO_END]


def test_findings_differ_by_subject_and_code():
    log = FindingLog()
    found = [finding('clock', subject, what='late') for subject in ('a', 'b')]
    found.append(finding('suboptimal', 'a', what='late'))
    assert len(log.update(found)[0]) == 3
    # Other figures of the same finding are no news.
    assert log.update([finding('clock', 'a', what='later')]) == ([], [])


@pytest.mark.parametrize(
    ('state', 'rate', 'fields', 'expected'),
    [
        (SensorState.FRESH, 100.0, {}, []),
        (None, 100.0, {}, []),
        (None, NAN, {}, [('missing', Level.ERROR)]),
        (SensorState.ABSENT, NAN, {'received': 0}, [('missing', Level.ERROR)]),
        (SensorState.STALE, 100.0, {}, [('missing', Level.ERROR)]),
        (SensorState.INVALID, 100.0, {}, [('missing', Level.ERROR)]),
        (SensorState.PARTIAL, 100.0, {}, [('missing', Level.WARNING)]),
        (SensorState.FROZEN, 100.0, {}, [('frozen', Level.ERROR)]),
        (SensorState.WARMING, 100.0, {'filter_lack': '3 of 7'}, [('no_derivative', Level.ERROR)]),
    ],
)
def test_states_of_a_sensor_are_findings(state, rate, fields, expected):
    found = check_sensor('ft foot', source(), streamed(**fields), rate, state)
    assert codes(found) == expected


def test_refused_messages_are_counted_together():
    assert not list(check_problems('ft foot', {}))
    (one,) = check_problems('ft foot', {'frame': 3, 'bytes': 2})
    assert one.values['count'] == 5


@pytest.mark.parametrize(
    ('skews', 'all_off', 'each_off'),
    [
        ((None, 9.0, 9.4), True, [False, False, False]),
        ((None, None, 9.0), False, [False, False, True]),
        ((9.0, 9.0, 0.0), False, [True, True, False]),
        ((9.0, 9.0, -9.0), False, [True, True, True]),
        ((0.1, 0.2, 0.0), False, [False, False, False]),
    ],
)
def test_a_clock_that_is_off_from_all_stamps_is_one_finding(skews, all_off, each_off):
    sources = [source(name) for name in ('foot', 'leg', 'arm')]
    for one, skew in zip(sources, skews):
        one.skew = skew
    common = common_skew(sources)
    assert bool(clock_status(common).findings) == all_off
    assert [bool(list(check_skew(one.name, one, common))) for one in sources] == each_off


def test_slow_senders_of_contacts_are_findings():
    status = contacts_status(ContactStatistics(9, 2, 0), [], [SlowSender('hand', 0.25, 4)], 0.1)
    assert codes(status.findings) == [('slow_contacts', Level.WARNING)]
    assert status.values['period of hand [ms]'] == '250.000'


def test_the_cycle_reports_failures_gaps_and_jumps():
    idle, times = CycleReport(0, 0, *[NAN] * 4), [0.01, 1e-4, 2e-4, 3e-4]

    def found(report, failure='', active=True):
        return codes(cycle_status(report, {}, failure, active=active).findings)

    assert found(idle) == [('missing', Level.ERROR)]
    assert found(idle, active=False) == []
    assert found(idle, 'singular') == [('suboptimal', Level.ERROR)]
    assert found(CycleReport(100, 0, *times)) == []
    assert found(CycleReport(100, 3, *times)) == [('late_cycle', Level.WARNING)]
    assert found(CycleReport(100, 0, *times, 2.0, 0.0)) == [('clock', Level.WARNING)]
    assert found(CycleReport(100, 0, *times, 0.0, 2.0)) == [('clock', Level.WARNING)]


def test_joints_without_position_or_velocity_are_named(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    statistics = SampleAssembler(robot.joint_names, [], ['head'], EstimatorSettings()).statistics()
    fresh = np.full(len(robot.joint_names), SensorState.FRESH, dtype=np.uint8)
    sample = random_sample(robot, rng)._replace(joint_states=fresh)
    assert known_joints_status(robot, sample, statistics).level == Level.INFO
    sample.velocities[0] = np.nan
    status = known_joints_status(robot, sample, statistics)
    assert status.level == Level.ERROR and robot.joint_names[0] in status.message
    fresh[1] = SensorState.ASSUMED
    fresh[2] = SensorState.STALE
    status = known_joints_status(robot, sample, statistics)
    assert status.level == Level.ERROR and robot.joint_names[2] in status.message


def humanoid(*contacts, imus=('head',)):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=list(imus))
    estimator = WrenchEstimator(robot, [Contact(name) for name in contacts])
    return robot, estimator, DependenceStatus(robot, estimator.contacts, acceleration_arrays=False)


def test_uninformed_torques_beyond_the_configured_are_warnings(rng):
    robot, estimator, dependence = humanoid('root', 'hand', 'foot')
    sample = random_sample(robot, rng)
    assert dependence.configured == ['neck']
    status = dependence.status(estimator.update(sample))
    assert codes(status.findings) == [('uninformed', Level.INFO)]
    assert status.values['torque neck'].startswith('no FT sensor')
    assert status.values['torque elbow'].startswith('arm_sensor')
    touched = tuple(Contact(name) for name in ('root', 'upper_arm', 'foot'))
    status = dependence.status(estimator.update(sample, touched))
    assert status.level == Level.WARNING
    assert status.findings[-1].values['joints'] == 'elbow'
    felt = tuple(Contact(name) for name in ('head', 'hand', 'foot'))
    assert not dependence.status(estimator.update(sample, felt)).findings


def test_the_dependence_follows_lost_sensors(rng):
    robot, estimator, dependence = humanoid('root', 'hand', 'foot', imus=('head', 'shank'))
    sample = random_sample(robot, rng)
    assert 'shank' in dependence.status(estimator.update(sample)).values['torque knee']
    for readings in sample[4:7]:
        readings[1] = np.nan
    sample.ft_readings[0] = np.nan
    estimate = estimator.update(sample)
    assert 'motion head' in dependence.status(estimate).values['torque knee']
    # Two submodels are merged, in which the first contact stays.
    assert dependence.uninformed_joints(estimate) == ['waist', 'neck', 'shoulder_joint', 'elbow']


def test_the_dependence_names_all_that_check_names(rng):
    robot, estimator, dependence = humanoid('head', 'hand', 'foot', imus=('head', 'shank'))
    values = dependence.status(estimator.update(random_sample(robot, rng))).values
    table = dependence_table(robot, estimator.contacts)
    for kind, rows in (('torque', table.torques), ('wrench', table.wrenches)):
        for row in rows:
            words = values[f'{kind} {row.name}'].replace(';', '').split(' ')
            assert set(words) >= {*row.fts, *row.imus, *row.joints, *row.links}


def test_unknown_torques_are_not_uninformed(rng):
    robot, estimator, dependence = humanoid('root', 'hand', 'foot')
    sample = random_sample(robot, rng)
    for readings in sample[1:8]:
        readings[...] = np.nan
    estimate = estimator.update(sample)
    assert not dependence.status(estimate).findings
    assert not dependence.uninformed_joints(estimate)


def test_the_dependence_is_found_anew_for_other_unknowns_only(rng, monkeypatch):
    robot, estimator, dependence = humanoid()
    found = []
    monkeypatch.setattr(
        result_checks, 'find_informed', lambda *given: found.append(given) or find_informed(*given)
    )
    for x in (0.0, 0.1, 0.2):
        moved = (Contact('hand', 'force', point=(x, 0, 0)), Contact('root'))
        dependence.status(estimator.update(random_sample(robot, rng), moved))
    assert len(found) == 1
    dependence.status(
        estimator.update(random_sample(robot, rng), (Contact('hand'), Contact('root')))
    )
    assert len(found) == 2


def momentum(rng, *, late=0.0, moves=1.0, seconds=4.0, silent=(), **settings):
    """Return the status after some seconds of noise; velocities may be late, joints silent."""
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    chosen = EstimatorSettings(imus=('head',), derivative_window=0.12, **settings)
    fts = [sensor.name for sensor in robot.ft_sensors]
    assembler = SampleAssembler(robot.joint_names, fts, ['head'], chosen)
    estimator = WrenchEstimator(robot, [Contact(name) for name in ('root', 'hand', 'foot')])
    checked = MomentumStatus(robot, chosen, assembler)
    n = len(robot.joint_names)
    reported = [joint not in silent for joint in robot.joint_names]
    names = [joint for joint in robot.joint_names if joint not in silent]
    phases, axes = rng.uniform(-np.pi, np.pi, n), rng.normal(size=(2, 3))
    for k in range(round(seconds * RATE)):
        time, stamp = k / RATE, START_NS + k * 10**9 // RATE
        angles, now = OMEGA * time + phases, np.sin(OMEGA * time)
        rate = moves * now * axes[0] + 3e-3 * rng.normal(size=3)
        for row in range(len(fts)):
            assembler.push_ft(row, stamp, rng.normal(size=6))
        assembler.push_imu(0, stamp, rate, np.array([0, 0, 9.81]) + moves * now * axes[1])
        sample = assembler.push_joints(
            0,
            stamp,
            names,
            (0.5 * moves * np.sin(angles) + 1e-4 * rng.normal(size=n))[reported],
            (0.5 * moves * OMEGA * np.cos(angles - OMEGA * late))[reported],
            np.empty(0),
        )
        if sample is not None:
            checked.add(sample, estimator.update(sample))
    return checked.status()


def test_right_filters_keep_the_momentum(rng):
    for velocities in ('filter', 'message'):
        status = momentum(rng, velocity_source=velocities)
        assert status.level == Level.INFO
        assert float(status.values['rate of momentum [N]']) > 5.0
        assert status.values['windows'] >= 6


@pytest.mark.parametrize(
    'given',
    [{'velocity_source': 'message', 'late': 0.08}, {'angular_acceleration_source': 'zero'}],
)
def test_wrong_accelerations_are_a_finding_of_momentum(rng, given):
    assert codes(momentum(rng, **given).findings) == [('momentum', Level.WARNING)]


def test_a_robot_at_rest_has_no_finding_of_momentum(rng):
    status = momentum(rng, moves=0.0)
    assert status.level == Level.INFO
    assert float(status.values['noise [N]']) > 0.01


def test_an_assumed_joint_has_no_noise_and_hides_no_error(rng):
    assumed = {'silent': ['neck'], 'assumed_joints': ('neck',), 'assumed_positions': (0.0,)}
    assert not momentum(rng, **assumed).findings
    assert momentum(rng, velocity_source='message', late=0.08, **assumed).findings


def test_the_noise_of_the_momentum_is_that_of_its_imu(rng):
    quiet, loud = (
        momentum(rng, moves=0.0, imu={'head': ImuSettings(gyroscope_noise=noise)})
        for noise in (0.003, 0.3)
    )
    assert float(loud.values['noise [N]']) > 10.0 * float(quiet.values['noise [N]'])


def test_a_filter_without_a_noise_is_not_checked(rng):
    status = momentum(rng, derivative_filter='adaptive_window')
    assert not status.findings
    assert status.values['noise [N]'] == 'nan'
