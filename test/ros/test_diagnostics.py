# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Sentences of the diagnostics, and when they are logged.

Not covered: the sentences that test_estimator_node.py reads from the topic.
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, PERIOD_NS, START_NS, BenchRobot, figure
from rclpy.parameter import Parameter
from robots import nested_humanoid_urdf, random_sample
from sensor_msgs.msg import Imu

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contact_stream import ContactStatistics
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dependence import dependence_table, find_informed
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.conversions import ns_to_stamp
from inertial_estimation.ros.cycles import CycleReport
from inertial_estimation.ros.dependence import STAYS, DependenceWatch
from inertial_estimation.ros.diagnostics import ERROR, OK, WARN, Task
from inertial_estimation.ros.estimate_tasks import cycle_task, known_joints_task
from inertial_estimation.ros.estimator_node import EstimatorNode
from inertial_estimation.ros.monitor import MAX_CAUSES, WELL, Reminder, full_name
from inertial_estimation.ros.source_tasks import clock_task, contacts_task, sensor_task
from inertial_estimation.ros.sources import NOTHING, Source
from inertial_estimation.sample import SensorState
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.stream import StreamStatistics


def test_missing_velocities_come_with_the_remedy(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    assembler = SampleAssembler(robot.joint_names, [], ['head'], EstimatorSettings())
    fresh = np.full(len(robot.joint_names), SensorState.FRESH, dtype=np.uint8)
    sample = random_sample(robot, rng)._replace(joint_states=fresh)
    assert known_joints_task(robot, sample, assembler.statistics()).message == 'all fresh'
    sample.velocities[0] = np.nan
    task = known_joints_task(robot, sample, assembler.statistics())
    assert task.level == ERROR
    assert f'no velocities of {robot.joint_names[0]}: ' in task.message
    assert 'velocity_source: filter' in task.message


def test_what_is_neglected_of_joints_is_said(context, monkeypatch):
    parameters = {'acceleration_source': 'zero', 'angular_acceleration_source': 'zero'}
    said = []
    monkeypatch.setattr(
        EstimatorNode,
        'get_logger',
        lambda node, real=EstimatorNode.get_logger: Told(real(node), said),
    )
    robot = BenchRobot(context, HUMANOID | parameters)
    try:
        robot.listen_to_diagnostics()
        motion = figure(robot.status('joints'), 'motion of joints')
        assert motion == 'velocity: as the messages say; acceleration: neglected'
        (line,) = (text for text in said if text.startswith('neglected, as configured: '))
        assert 'joint accelerations (acceleration_source: zero)' in line
        assert 'angular accelerations (angular_acceleration_source: zero)' in line
    finally:
        robot.close()


class Told:
    """A logger whose information is kept."""

    def __init__(self, logger, said):
        self._logger, self.info = logger, said.append

    def __getattr__(self, name):
        return getattr(self._logger, name)


def streamed(**fields):
    """Return statistics of a stream that delivers well, but for some fields."""
    counts = dict.fromkeys(('used', 'refused', 'dropped', 'repeated', 'invalid'), 0)
    good = {'received': 5, 'first_stamp_ns': 1, 'last_stamp_ns': 5 * 10**7}
    times = {'longest_gap': 0.01, 'age': 0.0, 'rate': 100.0}
    return StreamStatistics(**counts | good | times | fields)


def warned(*reports):
    """Return the messages that each report of one task leads to."""
    reminder = Reminder()
    return [[task.message for task in reminder.news([task]).begun] for task in reports]


def test_the_dependence_names_the_sensors_of_each_torque(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    estimator = WrenchEstimator(robot, [Contact(name) for name in ('head', 'hand', 'foot')])
    sample = random_sample(robot, rng)
    watch = DependenceWatch(robot, estimator.contacts)
    assert watch.configured == ''
    elsewhere = tuple(Contact(name) for name in ('root', 'hand', 'foot'))
    task = watch.task(estimator.update(sample, elsewhere))
    assert task.level == WARN
    assert task.message.startswith('no FT sensor informs the torques of neck now; ')
    assert task.values['torque elbow'].startswith('arm_sensor; ')
    assert task.values['torque neck'].startswith('no FT sensor; ')
    assert "for example 'head'" in task.values['remedy in submodel root']
    task = watch.task(estimator.update(sample))
    assert (task.level, task.message) == (OK, 'FT sensors inform every torque')


def test_what_is_configured_is_no_warning_but_what_is_added_is(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    estimator = WrenchEstimator(robot, [Contact(name) for name in ('root', 'hand', 'foot')])
    sample = random_sample(robot, rng)
    watch = DependenceWatch(robot, estimator.contacts)
    assert watch.configured.startswith('no FT sensor informs the torques of neck: ')
    assert "for example 'head'" in watch.configured
    task = watch.task(estimator.update(sample))
    assert task.level == OK
    assert task.message == 'FT sensors inform every torque but, as configured, those of neck'
    assert task.values['torque neck'].startswith('no FT sensor; ')
    assert "for example 'head'" in task.values['remedy in submodel root']
    touched = tuple(Contact(name) for name in ('root', 'upper_arm', 'foot'))
    task = watch.task(estimator.update(sample, touched))
    assert task.level == WARN
    assert task.message.startswith('no FT sensor informs the torques of elbow now; ')
    felt = tuple(Contact(name) for name in ('head', 'hand', 'foot'))
    task = watch.task(estimator.update(sample, felt))
    assert (task.level, task.message) == (OK, 'FT sensors inform every torque')


def test_the_dependence_follows_what_was_used(rng):
    """A lost sensor brings two submodels together, in which the first contact stays."""
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    estimator = WrenchEstimator(robot, [Contact(name) for name in ('root', 'hand', 'foot')])
    sample = random_sample(robot, rng)
    sample.ft_readings[0] = np.nan
    task = DependenceWatch(robot, estimator.contacts).task(estimator.update(sample))
    assert task.values['torque elbow'].startswith('no FT sensor; ')
    said = 'no FT sensor informs the torques of waist, shoulder_joint, elbow now; '
    assert task.message.startswith(said)


def test_the_dependence_is_found_when_something_changes(rng, monkeypatch):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    estimator = WrenchEstimator(robot)
    watch = DependenceWatch(robot, estimator.contacts)
    found = []
    monkeypatch.setattr(
        'inertial_estimation.ros.dependence.find_informed',
        lambda *given: found.append(given) or find_informed(*given),
    )
    for x in (0.0, 0.1, 0.2):
        moved = [Contact('hand', 'force', point=(x, 0, 0)), Contact('root')]
        watch.task(estimator.update(random_sample(robot, rng), tuple(moved)))
    assert len(found) == 1
    watch.task(estimator.update(random_sample(robot, rng), (Contact('hand'), Contact('root'))))
    assert len(found) == 2


@pytest.mark.parametrize(
    ('options', 'said'),
    [
        ({'imus': ['head']}, 'root, which floats: about another base they are others'),
        ({'imus': ['head'], 'external_torque_base': 'sole'},
         'foot, which floats: about another base they are others'),
        ({'fixed_link': 'sole'}, 'foot, the fixed link'),
        ({'fixed_link': 'sole', 'external_torque_base': 'root'}, 'root, not the fixed link foot'),
    ],
)  # fmt: skip
def test_the_base_of_external_torques_is_said(options, said, rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), **options)
    estimate = WrenchEstimator(robot).update(random_sample(robot, rng))
    assert DependenceWatch(robot, []).task(estimate).values['external joint torques about'] == said


def test_the_dependence_names_all_that_check_names(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'shank'])
    estimator = WrenchEstimator(robot, [Contact(name) for name in ('head', 'hand', 'foot')])
    values = (
        DependenceWatch(robot, estimator.contacts)
        .task(estimator.update(random_sample(robot, rng)))
        .values
    )
    found = dependence_table(robot, estimator.contacts)
    for kind, rows in (('torque', found.torques), ('wrench', found.wrenches)):
        for row in rows:
            said = values[f'{kind} {row.name}']
            for kinds, names in (('IMUs', row.imus), ('joints', row.joints), ('links', row.links)):
                (part,) = [p for p in said.split('; ') if p.startswith(kinds)] or ['']
                # Of names in a row the first and the last are said.
                assert bool(names) == bool(part)
                assert all(name in part for name in (names[:1] + names[-1:]))
    assert 'IMUs shank' in values['torque knee']
    assert 'links ' in values['torque knee']


def test_an_imu_that_is_lost_changes_what_results_rest_on(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'shank'])
    estimator = WrenchEstimator(robot)
    watch = DependenceWatch(robot, estimator.contacts)
    sample = random_sample(robot, rng)
    assert 'IMUs shank' in watch.task(estimator.update(sample)).values['torque knee']
    for readings in sample[4:7]:
        readings[1] = np.nan
    task = watch.task(estimator.update(sample))
    assert 'IMUs head' in task.values['torque knee']
    assert task.level == OK


def test_a_fixed_link_stands_in_the_place_of_imus(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), fixed_link='sole')
    estimator = WrenchEstimator(robot)
    task = DependenceWatch(robot, []).task(estimator.update(random_sample(robot, rng)))
    assert 'fixed link sole' in task.values['torque knee']


def test_torques_that_are_not_known_are_no_matter_of_ft_sensors(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    estimator = WrenchEstimator(robot, [Contact(name) for name in ('root', 'hand', 'foot')])
    watch = DependenceWatch(robot, estimator.contacts)
    sample = random_sample(robot, rng)
    assert watch.task(estimator.update(sample)).level == OK
    for readings in sample[1:8]:
        readings[...] = np.nan
    estimate = estimator.update(sample)
    assert np.isnan(estimate.torques).all()
    task = watch.task(estimate)
    assert (task.level, task.message) == (OK, 'no torque is known')
    assert watch.news == ''
    assert watch.uninformed_joints(estimate) == []


def test_of_torques_in_part_only_the_known_ones_count(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    estimator = WrenchEstimator(robot, [Contact(name) for name in ('head', 'hand', 'foot')])
    sample = random_sample(robot, rng)
    sample.positions[robot.joint_names.index('hip_joint')] = np.nan
    estimate = estimator.update(sample)
    watch = DependenceWatch(robot, estimator.contacts)
    task = watch.task(estimate)
    unknown = [n for n, t in zip(robot.joint_names, estimate.torques) if np.isnan(t)]
    assert unknown and len(unknown) < len(robot.joint_names)
    for name in unknown:
        assert task.values[f'torque {name}'] == 'not known'
    assert task.message == 'FT sensors inform every torque that is known'


def test_what_lasts_by_nature_is_said_once():
    lasts = Task('dependence', WARN, 'no FT sensor', {}, repeats=False)
    other = Task('dependence', WARN, 'no FT sensor here either', {}, repeats=False)
    said = warned(*[lasts] * 20, other, lasts)
    assert [k for k, messages in enumerate(said) if messages] == [0, 20]


def test_what_lasts_by_nature_is_not_said_with_every_touch():
    lasts = Task('dependence', WARN, 'no FT sensor', {}, repeats=False)
    well = Task('dependence', OK, 'FT sensors inform every torque', {})
    other = Task('dependence', WARN, 'no FT sensor here either', {}, repeats=False)
    said = warned(lasts, well, lasts, well, other, lasts, *[well] * WELL, lasts)
    assert [bool(messages) for messages in said] == [
        True, False, False, False, True, False, *[False] * (WELL + 1)
    ]  # fmt: skip
    # Nor is said that it is over.
    reminder = Reminder()
    assert not any(reminder.news([task]).over for task in (lasts, *[well] * WELL))


def test_a_changed_dependence_is_news_once_and_no_warning(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    estimator = WrenchEstimator(robot)
    sample = random_sample(robot, rng)
    defaults = [Contact(name) for name in ('head', 'hand', 'foot')]
    watch = DependenceWatch(robot, defaults)
    touched = [Contact('head'), Contact('upper_arm'), Contact('foot')]
    news = []
    for contacts in (defaults, defaults, touched, touched, defaults, touched):
        task = watch.task(estimator.update(sample, tuple(contacts)))
        news.append(watch.news)
    assert [bool(text) for text in news] == [False, False, True, False, True, False]
    assert 'elbow on no FT sensor (before: arm_sensor)' in news[2]
    assert 'elbow on arm_sensor (before: no FT sensor)' in news[4]
    assert task.level == WARN
    assert task.message.startswith('no FT sensor informs the torques of elbow now; ')


class Listened:
    """A logger whose warnings are kept."""

    def __init__(self, logger, said):
        self._logger, self.warning = logger, said.append

    def __getattr__(self, name):
        return getattr(self._logger, name)


def test_the_dependence_is_on_the_topic_and_what_is_configured_is_logged_once(
    context, rng, monkeypatch
):
    said, real = [], EstimatorNode.get_logger
    monkeypatch.setattr(EstimatorNode, 'get_logger', lambda node: Listened(real(node), said))
    known_at_once = {'acceleration_source': 'zero', 'angular_acceleration_source': 'zero'}
    robot = BenchRobot(context, HUMANOID | known_at_once)
    try:
        wrenches = robot.listen_to_wrenches()
        robot.listen_to_diagnostics()
        robot.send_all(START_NS, rng)
        robot.wait_for_stamp(wrenches, START_NS)
        status = robot.status('dependence')
        assert figure(status, 'external joint torques about').startswith('root, which floats')
        assert figure(status, 'torque knee')
        assert status.level == OK
        assert status.message.startswith('FT sensors inform every torque but, as configured, ')
        for k in range(1, 3):
            robot.send_all(START_NS + k * PERIOD_NS, rng)
            assert robot.next_status('dependence').level == OK
        (once,) = (text for text in said if 'no FT sensor informs' in text)
        assert once.endswith(STAYS)
    finally:
        robot.close()


def test_the_same_cause_is_said_once_however_long_it_lasts():
    stale = Task('ft foot', ERROR, 'stale', {})
    said = warned(*[stale] * 100)
    assert [k for k, messages in enumerate(said) if messages] == [0]


def test_ever_new_causes_do_not_fill_the_log():
    said = warned(*(Task('ft foot', ERROR, f'cause {k}', {}) for k in range(3 * MAX_CAUSES)))
    assert sum(map(len, said)) == MAX_CAUSES


def test_another_cause_is_said_at_once():
    stale, frozen = (Task('ft foot', ERROR, message, {}) for message in ('stale', 'frozen'))
    # The one that came and went is not said again while the sensor stays bad.
    assert warned(stale, frozen, stale, frozen) == [['stale'], ['frozen'], [], []]


def test_the_end_is_said_once_and_what_comes_after_it_is_new():
    stale, fresh = Task('ft foot', ERROR, 'stale', {}), Task('ft foot', OK, 'fresh', {})
    reminder = Reminder()
    # A moment in which it is well ends nothing.
    reports = [stale, *[fresh] * (WELL - 1), stale, *[fresh] * (2 * WELL), stale]
    news = [reminder.news([task]) for task in reports]
    assert [k for k, one in enumerate(news) if one.begun] == [0, len(reports) - 1]
    assert [(k, one.over) for k, one in enumerate(news) if one.over] == [(2 * WELL, [fresh])]


def test_a_count_alone_is_no_other_cause():
    def missing(count):
        report = CycleReport(500, count, 0.002, 1e-4, 1e-4, 1e-4)
        return cycle_task(report, count, 0, 0, active=True)

    said = warned(*map(missing, (1, 2, 3)))
    assert said == [['the stamps of joint states leave out 1 cycles'], [], []]


def test_a_jump_and_a_stop_are_said_once_with_their_length():
    def after(**gap):
        report = CycleReport(500, 0, 0.002, 1e-4, 1e-4, 1e-4, **gap)
        return cycle_task(report, 0, 0, 0, active=True)

    assert warned(after(), after(stopped=4.0), after()) == [[], ['no joint states for 4.0 s'], []]
    said = warned(after(jumped=7200.0), after(), after(jumped=60.0))
    assert said == [['the stamps of joint states jumped forward by 7200.0 s'], [], []]


def test_a_skew_that_grows_is_no_other_cause():
    source = Source('ft', 'foot', 'ft/foot')

    def at(skew):
        source.skew = skew
        return sensor_task(source, streamed(), 100.0, SensorState.FRESH, {})

    assert at(2.0).level == WARN
    assert [bool(messages) for messages in warned(at(2.0), at(3.1))] == [True, False]


def test_two_senders_of_one_stamp_are_named_with_the_remedy():
    source = Source('contacts', 'contacts', 'contacts')
    task = contacts_task(source, ContactStatistics(9, 2, 0, {'forearm': 3}), {})
    assert task.level == OK
    assert task.message.startswith('2 live; on forearm points of one stamp were closer than ')
    assert 'add 1 ns' in task.message
    assert task.values['began beside another on forearm'] == 3
    assert contacts_task(source, ContactStatistics(9, 2, 0), {}).message == '2 live'


def test_a_clock_that_is_off_from_all_stamps_is_one_warning():
    sources = [Source('ft', name, f'ft/{name}') for name in ('foot', 'leg', 'arm')]
    levels = {}
    for skews in ((None, 9.0, 9.4), (None, None, 9.0), (9.0, 9.0, 0.0), (9.0, 9.0, -9.0)):
        for source, skew in zip(sources, skews):
            source.skew = skew
        clock = clock_task(sources)
        own = [sensor_task(s, streamed(), 100.0, SensorState.FRESH, {}) for s in sources]
        levels[skews] = clock.level == WARN, [task.level == WARN for task in own]
        if clock.level == WARN:
            assert 'use_sim_time: true' in clock.message
            assert '9.2 s behind the clock of the node' in clock.message
    assert levels == {
        (None, 9.0, 9.4): (True, [False, False, False]),
        (None, None, 9.0): (False, [False, False, True]),
        (9.0, 9.0, 0.0): (False, [True, True, False]),
        (9.0, 9.0, -9.0): (False, [True, True, True]),
    }


def test_an_imu_that_leaves_out_one_quantity_names_the_remedy():
    source = Source('imu', 'foot', 'imu/foot')
    task = sensor_task(source, streamed(), 100.0, SensorState.PARTIAL, {}, 'accelerometer')
    assert task.level == WARN
    assert 'the angular velocity is absent there, the acceleration is used' in task.message
    assert task.message.endswith('set imu.foot.measures: accelerometer')
    task = sensor_task(source, streamed(), 100.0, SensorState.PARTIAL, {}, 'gyroscope')
    assert 'the acceleration is absent there' in task.message
    task = sensor_task(source, streamed(), 100.0, SensorState.FRESH, {}, 'gyroscope')
    assert (task.level, task.message) == (OK, 'fresh, measures the angular velocity only')


@pytest.mark.parametrize(
    ('given', 'said'),
    [
        ({}, {'imu shank'}),
        ({'imu.shank.measures': 'accelerometer'}, set()),
    ],
)
def test_an_accelerometer_alone_is_one_warning_at_most(context, rng, given, said):
    parameters = {'imus': ['head', 'shank'], 'contacts': ['sole', 'hand', 'head']}
    robot = BenchRobot(context, HUMANOID | parameters | given)
    try:
        wrenches = robot.listen_to_wrenches()
        robot.listen_to_diagnostics()
        for k in range(12):
            stamp = START_NS + k * PERIOD_NS
            robot.send_imu('shank', stamp, [np.nan] * 3, rng.standard_normal(3))
            robot.send_all(stamp, rng)
            robot.wait_for_stamp(wrenches, stamp)
        task = robot.status('imu shank')
        report = robot._report.values()
        # The bench stamps its messages with a clock of its own.
        bad = {s.name for s in report if s.level != OK and 'behind the clock' not in s.message}
        assert {name.removeprefix('wrench_estimator: ') for name in bad} == said
        assert ('imu.shank.measures: accelerometer' in task.message) == bool(said)
    finally:
        robot.close()


@pytest.mark.parametrize('raw', [True, False])
def test_an_imu_that_declares_to_measure_nothing_is_told_from_nan(context, rng, raw):
    parameters = {'imus': ['head', 'shank'], 'contacts': ['sole', 'hand', 'head'], 'raw': raw}
    robot = BenchRobot(context, HUMANOID | parameters)
    try:
        wrenches = robot.listen_to_wrenches()
        robot.listen_to_diagnostics()
        message = Imu()
        message.header.stamp, message.header.frame_id = ns_to_stamp(START_NS), 'shank'
        message.angular_velocity_covariance[0] = -1.0
        message.linear_acceleration_covariance[0] = -1.0
        robot.publisher(Imu, 'imu/shank').publish(message)
        robot.send_all(START_NS, rng)
        robot.wait_for_stamp(wrenches, START_NS)
        task = robot.status('imu shank')
        assert task.level == ERROR
        assert task.message == f'not used: {NOTHING} (topic imu/shank)'
        later = START_NS + PERIOD_NS
        robot.send_imu('shank', later, [np.nan] * 3, [np.nan] * 3)
        robot.send_all(later, rng)
        robot.wait_for_stamp(wrenches, later)
        assert robot.status('imu shank').message == 'not used: invalid (topic imu/shank)'
    finally:
        robot.close()


def test_a_filling_filter_is_one_cause_and_its_problem_another():
    source = Source('imu', 'head', 'imu/head')

    def filling(count, *problems):
        statistics = streamed(filter_lack=f'{count} of at least 4 samples')
        new = dict.fromkeys(problems, 1)
        return sensor_task(source, statistics, 100.0, SensorState.WARMING, new)

    said = warned(filling(1), filling(2), filling(3, 'header.stamp is zero'))
    assert [bool(messages) for messages in said] == [True, False, True]
    assert '3 of at least 4 samples; header.stamp is zero' in said[2][0]


def test_a_refused_sample_is_an_error_with_its_cause():
    idle = CycleReport(0, 0, *[np.nan] * 4)
    task = cycle_task(idle, 0, 0, 3, active=True, failure='Singular matrix')
    assert (task.level, task.message) == (ERROR, 'no estimate: Singular matrix')
    assert cycle_task(idle, 0, 0, 3, active=True).message == 'no joint states: no estimate'


def test_an_error_of_the_estimator_is_reported_once(context, monkeypatch, rng):
    robot = BenchRobot(context, HUMANOID | {'autostart': True})
    try:
        estimator = robot.estimator.pipeline._estimator

        def refuse(sample, contacts):
            raise np.linalg.LinAlgError('Singular matrix')

        heard = robot.listen_to_diagnostics()

        def said():
            return [status.message for message in heard for status in message.status]

        monkeypatch.setattr(estimator, 'update', refuse)
        robot.send_all(START_NS, rng)
        robot.spin_until(lambda: 'no estimate: Singular matrix' in said())
        status = robot.status('cycle')
        assert status.message == 'no joint states: no estimate'
        assert figure(status, 'failed cycles, total') == '1'
    finally:
        robot.close()


def test_the_time_while_inactive_is_not_missed(context, rng):
    robot = BenchRobot(context, HUMANOID | {'autostart': True})
    try:
        node, cycles = robot.estimator, robot.estimator.pipeline.cycles
        robot.listen_to_diagnostics()
        stamps = START_NS + PERIOD_NS * np.array([0, 1, 2, 500, 501, 502])
        for k, stamp in enumerate(stamps.tolist()):
            if k == 3:
                node.trigger_deactivate()
                node.trigger_activate()
            robot.send_all(stamp, rng)
            robot.spin_until(lambda k=k: len(cycles.since(0)[0]) > k)
        assert figure(robot.status('cycle'), 'missed cycles, total') == '0'
    finally:
        robot.close()


def test_stamps_that_went_back_are_said_once():
    reminder = Reminder()
    said = [reminder.resets(total) for total in (0, 1, 1, 3)]
    assert [bool(text) for text in said] == [False, True, False, True]
    assert '2 times' in said[-1]


def test_nodes_of_two_namespaces_are_told_apart(context):
    node = EstimatorNode(context=context, namespace='left', parameter_overrides=[
        Parameter('autostart', value=False)
    ])  # fmt: skip
    try:
        assert full_name(node) == 'left/wrench_estimator'
    finally:
        node.destroy_node()
