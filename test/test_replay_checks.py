# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What a replay says about itself: momentum, sensors against each other, dependence, what is judged.

Not covered: the checks themselves (test_momentum_check.py, test_sensor_residuals.py,
test_dependence.py), and wrenches through joints (test_replay_through.py).
"""

import json
from dataclasses import replace

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
from robots import nested_humanoid_urdf
from test_causes import SETTINGS as TWO_IMUS
from test_causes import record, setup
from test_replay import MS, SETTINGS, START, humanoid_messages

from inertial_estimation.building import build_assembler, build_estimator, build_robot
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.body_report import report_bodies
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.grounds import find_grounds
from inertial_estimation.estimation.momentum_check import MomentumCheck
from inertial_estimation.estimation.momentum_verdict import momentum_advice
from inertial_estimation.logs.check_figures import CrossChecks, MomentumFigures
from inertial_estimation.logs.check_tables import check_tables
from inertial_estimation.logs.check_warnings import check_warnings
from inertial_estimation.logs.job import replay_bag
from inertial_estimation.logs.momentum import momentum_figures
from inertial_estimation.logs.motions import motion_reports
from inertial_estimation.logs.offsets import OffsetRequest, Offsets
from inertial_estimation.logs.recording import Recording, TimeRange, read_samples
from inertial_estimation.logs.replay import make_estimator, run
from inertial_estimation.logs.report import make_report
from inertial_estimation.logs.summaries import external_torque_reports
from inertial_estimation.logs.tables import make_tables
from inertial_estimation.model.free_floating import FreeFloating
from inertial_estimation.sample import SampleBatch, SensorState

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


def replay_of(samples, robot, settings):
    statistics = build_assembler(settings, robot).statistics()
    return run(Recording(samples, 1_000_000_000, statistics), robot, settings)


def report_of(samples, robot, settings):
    replay = replay_of(samples, robot, settings)
    return make_report(replay, Offsets(OffsetRequest(), replay.calibration))


# ---- Motion ------------------------------------------------------------------------------------


def test_what_is_neglected_is_said_in_the_words_of_the_node(rng):
    robot, settings = setup()
    given = {'angular_acceleration_source': 'zero', 'acceleration_source': 'zero'}
    report = report_of(record(robot, rng), robot, replace(settings, **given))
    links, joints = report.checks.motions
    plan = make_estimator(robot, settings).motion.nominal
    said = {body.link: body.text for body in report_bodies(robot, plan, 'zero')}
    assert links.names == tuple(said) and set(said.values()) == {links.text}
    assert 'angular acceleration: neglected' in links.text
    assert joints.names == robot.joint_names
    assert joints.text.endswith('acceleration: neglected')
    table = next(t for t in make_tables(report) if t.title == 'Where motions come from')
    assert [row[1] for row in table.rows] == [links.text, joints.text]
    assert report.as_dict()['checks']['motions'][0]['text'] == links.text


def test_an_assumed_joint_and_the_fixed_link_are_at_rest(rng):
    given = {'fixed_link': 'sole', 'imus': [], 'assumed_joints': ['neck']}
    robot, settings = setup(**given, assumed_positions=[0.0])
    link, joints, assumed = motion_reports(settings, make_estimator(robot, settings))
    assert (link.names, link.text) == (('sole',), 'at rest')
    assert 'neck' not in joints.names
    assert joints.text.endswith('acceleration: second derivative of the positions')
    assert (assumed.names, assumed.text) == (('neck',), 'at rest')


# ---- Momentum ----------------------------------------------------------------------------------


def test_the_momentum_is_judged_as_by_the_node(tmp_path, robot, settings):
    bag = write_bag(tmp_path / 'bag', humanoid_messages(robot, LONG))
    replay = run(read_samples(bag, robot, settings), robot, settings)
    found = momentum_figures(replay)
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
    recording = read_samples(bag, robot, settings)
    samples = recording.samples
    wrong = replace(samples, angular_accelerations=samples.angular_accelerations + 20.0)
    replay = run(replace(recording, samples=wrong), robot, settings)
    report = make_report(replay, Offsets(OffsetRequest(), replay.calibration))
    ((first, last),) = report.checks.momentum.doubtful_s
    assert (first, last) == (report.time_range_s[0], report.time_range_s[1])
    (said,) = (w for w in report.warnings if 'momentum does not change' in w)
    assert said.endswith(momentum_advice(settings))
    assert 'Does the momentum change as the wrenches say' in str(make_tables(report))
    assert json.loads(json.dumps(report.as_dict()))['checks']['momentum']['windows'] == 4


def test_an_assumed_joint_has_no_noise(tmp_path, robot):
    settings = EstimatorSettings.from_dict(
        SETTINGS | {'assumed_joints': ['neck'], 'assumed_positions': [0.0]}
    )
    bag = write_bag(tmp_path / 'bag', humanoid_messages(robot, LONG))
    found = momentum_figures(run(read_samples(bag, robot, settings), robot, settings))
    assert np.isfinite([found.noise_force_n, found.noise_moment_nm]).all()


def test_more_than_twenty_windows_count_all(rng):
    robot, settings = setup()
    one = record(robot, rng, n=1)
    n = 60 * 11
    samples = one.take(np.zeros(n, dtype=np.intp))
    samples = replace(samples, stamp_ns=1_000_000_000 + 20_000_000 * np.arange(n))
    found = momentum_figures(replay_of(samples, robot, settings))
    # Twenty windows take 500 periods of 20 ms; the next stretch begins one later.
    assert found.windows == 20 + (n - 502) // 25
    assert np.isnan(found.noise_force_n) and not found.doubtful_s


def test_without_a_window_there_is_no_momentum(rng):
    robot, settings = setup()
    report = report_of(record(robot, rng), robot, settings)
    assert report.checks.momentum is None
    assert 'momentum' not in str([table.title for table in make_tables(report)])


def test_the_warning_names_the_first_stretches_and_the_size():
    stretches = tuple((float(k), k + 1.0) for k in range(5))
    checks = CrossChecks(MomentumFigures(9, 1.5, 0.2, 3.0, 0.4, np.nan, np.nan, stretches))
    (warning,) = check_warnings(checks)
    assert '0.0 s to 1.0 s, 1.0 s to 2.0 s, 2.0 s to 3.0 s and 2 more' in warning
    assert '1.50 N and 0.200 Nm of a momentum that changes by 3.00 N and 0.400 Nm' in warning
    assert 'not known' in str(check_tables(checks))


def advice_of(**given):
    return momentum_advice(EstimatorSettings.from_dict(given))


def test_the_advice_names_what_is_neglected_and_then_the_delay_of_the_filter():
    plain = advice_of(imus=['head'], derivative_window=0.3)
    assert plain.startswith('derivatives of the newest sample lag: try filter_delay 0.15 (now 0)')
    assert 'bias' not in plain and 'places of the IMUs' in plain
    delayed = advice_of(imus=['head', 'thigh'], derivative_window=0.3, filter_delay=0.15)
    assert delayed.startswith('check derivative_filter and its window')
    assert delayed.endswith('a bias of one of the accelerometers')
    assert 'filter_delay 0.1 (now 0)' in advice_of(imus=['head'], derivative_filter='kalman')
    zero = {'acceleration_source': 'zero', 'angular_acceleration_source': 'zero'}
    both = 'acceleration_source and angular_acceleration_source zero neglects them'
    assert advice_of(imus=['head'], **zero).startswith(both)
    assert 'filter_delay' not in advice_of(imus=['head'], **zero)
    fixed = advice_of(fixed_link='root', **zero)
    assert fixed.startswith('acceleration_source zero neglects them') and 'IMU' not in fixed


def test_a_doubt_of_an_accelerometer_comes_first_in_the_advice(rng):
    """And the advice is that of the settings."""
    robot, settings = setup(contacts=['root'])
    samples = consistent(robot, rng)
    samples.proper_accelerations[:, 1, 2] += 1.5
    sensors = report_of(samples, robot, settings).checks.sensor_residuals
    figures = MomentumFigures(9, 1.5, 0.2, 3.0, 0.4, 0.1, 0.1, ((0.0, 1.0),), '', 'check this')
    said = [w for w in check_warnings(CrossChecks(figures)) if w.startswith('the momentum')]
    assert said[0].endswith('; check this')
    checks = CrossChecks(figures, sensor_residuals=sensors)
    (said,) = (w for w in check_warnings(checks) if w.startswith('the momentum'))
    assert 'first see what is said of the accelerometer of thigh; check this' in said


def test_a_noise_that_cannot_be_stated_is_said_to_be_so(tmp_path, robot):
    settings = EstimatorSettings.from_dict(SETTINGS | {'derivative_filter': 'adaptive_window'})
    bag = write_bag(tmp_path / 'bag', humanoid_messages(robot, LONG))
    report = replay_bag(bag, nested_humanoid_urdf(), settings)
    assert not report.checks.momentum.doubtful_s
    (table,) = (t for t in make_tables(report) if t.title.startswith('Does the momentum'))
    assert table.rows[0][-1].startswith('not told: ')
    assert table.rows[0][-1].endswith('adaptive_window, whose noise cannot be stated')


# ---- Dependence --------------------------------------------------------------------------------


def test_what_torques_rest_on_is_told_for_what_took_part(rng):
    robot, settings = setup()
    samples = record(robot, rng)
    samples.ft_readings[6:, 1] = np.nan
    samples.ft_states[6:, 1] = SensorState.STALE
    checks = report_of(samples, robot, settings).checks
    usual, without = checks.situations
    assert usual.label == 'default contacts, all sensors'
    assert (usual.sample_share, usual.first_s, usual.last_s) == (0.75, 0.0, 5.0)
    assert usual.contacts == tuple(TWO_IMUS['contacts'])
    contacts = [Contact(frame) for frame in TWO_IMUS['contacts']]
    wanted = find_grounds(robot, contacts)
    assert (usual.torques, usual.wrenches) == (wanted.torques, wanted.wrenches)
    assert without.label == 'without FT leg_sensor'
    assert without.contacts == ('root', 'sole', 'hand')
    kept = [Contact(frame) for frame in without.contacts]
    assert without.torques == find_grounds(robot, kept, fts=(0, 2)).torques
    table = next(t for t in check_tables(checks) if t.title.startswith('What the torques'))
    # Of the second row of sensors only what differs.
    start = next(k for k, row in enumerate(table.rows) if row[0] == without.label)
    joints = ', '.join(row[2] for row in table.rows[start:])
    assert 'hip_joint' in joints and 'elbow' not in joints


def test_an_imu_that_leaves_a_quantity_out_rests_on_the_way_to_another_one(rng):
    robot, settings = setup()
    samples = record(robot, rng)
    samples.proper_accelerations[4:, 0] = np.nan
    usual, partial = report_of(samples, robot, settings).checks.situations
    assert partial.label == 'only gyroscope of IMU head'
    narrow, _ = setup(**{'imu.head.measures': 'gyroscope'})
    wanted = find_grounds(narrow, [Contact(frame) for frame in TWO_IMUS['contacts']])
    assert partial.torques == wanted.torques != usual.torques


def test_torques_that_no_sensor_informs_are_warned_of_with_their_share(rng):
    robot, settings = setup(contacts=['root', 'thigh', 'sole', 'hand'])
    report = report_of(record(robot, rng), robot, settings)
    (warning,) = (w for w in report.warnings if 'no FT sensor informs' in w)
    assert warning.startswith('no FT sensor informs the torques of neck')
    samples = record(robot, rng)
    samples.ft_readings[:2] = np.nan
    warnings = report_of(samples, robot, settings).warnings
    assert any(w.startswith('in 25% of the samples no FT sensor informs') for w in warnings)


def test_touches_make_sets_of_contacts_of_their_own(tmp_path, robot):
    settings = EstimatorSettings.from_dict(
        SETTINGS | {'touch_kind': 'force', 'contact_timeout': 0.02}
    )
    # The point moves: the set of contacts is the same.
    touches = [touch(ms, 'shank', (0.0, 1e-4 * ms, 0.2)) for ms in range(150, 250, 10)]
    messages = sorted([*humanoid_messages(robot), *touches], key=lambda m: m[2])
    report = replay_bag(write_bag(tmp_path / 'bag', messages), nested_humanoid_urdf(), settings)
    labels = [situation.label for situation in report.checks.situations]
    assert labels == ['default contacts, all sensors', 'touched: shank (force)']
    touched = report.checks.situations[1]
    kinds = dict(zip(touched.contacts, touched.kinds, strict=True))
    assert kinds['shank'] == 'force' and kinds['sole'] == 'wrench' and 'thigh' not in kinds
    assert report.checks.situations_left_out == 0


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
    said = ' '.join(report.warnings)
    assert 'acceleration of thigh differs by' in said and 'axes or its stamps' in said
    assert 'force of arm_sensor differs by' in said and 'its offset or its scale' in said
    table = next(t for t in make_tables(report) if t.title.startswith('Sensors against'))
    assert table.rows[0][-1] == 'yes'


def test_without_contacts_no_ft_sensor_is_suspected(rng):
    robot, settings = setup(contacts=[])
    report = report_of(consistent(robot, rng, frame='sole'), robot, settings)
    force = residuals_of(report)['foot_sensor', 'force']
    assert force.n_instants == 20
    assert force.rms > 0.5 * force.rms_reading and not force.doubtful
    assert not any('foot_sensor differs' in warning for warning in report.warnings)


def test_a_bias_that_gravity_would_hide_is_a_warning(rng):
    robot, settings = setup(contacts=['root'])
    samples = consistent(robot, rng)
    samples.proper_accelerations[:, 1, 2] += 0.3
    report = report_of(samples, robot, settings)
    thigh = residuals_of(report)['thigh', 'acceleration']
    assert thigh.doubtful and thigh.constant
    assert thigh.rms < 0.25 * thigh.rms_change < 0.25 * thigh.rms_reading
    (said,) = (w for w in report.warnings if w.startswith('acceleration of thigh'))
    assert 'differs by 0.3 m/s^2 (rms, mostly as it reads (0.000, 0.000, 0.300) too much)' in said
    assert 'it has a bias' in said


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
    assert not any('thigh differs' in warning for warning in report.warnings)


def test_what_is_doubtful_comes_before_what_is_noise(tmp_path, robot):
    settings = EstimatorSettings.from_dict(SETTINGS | {'imus': ['head', 'thigh']})
    messages = still_messages(robot, np.random.default_rng(5), bias=1.0)
    bag = write_bag(tmp_path / 'bag', messages)
    report = replay_bag(bag, nested_humanoid_urdf(), settings, time_range=TimeRange(0.3, 9.0))
    table = next(t for t in make_tables(report) if t.title.startswith('Sensors against'))
    rows = [(row[0], row[1], row[-1]) for row in table.rows]
    assert {row[:2] for row in rows if row[2]} == {
        ('head', 'acceleration [m/s^2]'),
        ('thigh', 'acceleration [m/s^2]'),
    }
    assert all(row[2] for row in rows[:2]) and not any(row[2] for row in rows[2:])


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
    assert not [t for t in make_tables(report) if t.title.startswith('Sensors against')]


def test_an_imu_whose_messages_leave_a_quantity_out_is_partial(tmp_path, robot):
    """As by ``covariance[0] = -1``, in a bag."""
    settings = EstimatorSettings.from_dict(SETTINGS | {'imus': ['head', 'thigh']})
    thigh = [
        ('/imu/thigh', IMU, START + ms * MS, half_imu(START + ms * MS)) for ms in range(0, 300, 5)
    ]
    messages = sorted([*humanoid_messages(robot), *thigh], key=lambda m: m[2])
    report = replay_bag(write_bag(tmp_path / 'bag', messages), nested_humanoid_urdf(), settings)
    (cause,) = (c for c in report.causes if c.kind == 'imu')
    assert cause.cause == 'IMU thigh partial: measures only the acceleration'
    assert cause.nan_contacts == cause.nan_torques == ()
    assert [s.label for s in report.checks.situations] == ['only accelerometer of IMU thigh']
    tables = {table.title: table for table in make_tables(report)}
    rows = [row[0] for row in tables['Why results are NaN or in doubt'].rows]
    assert cause.cause in rows


def half_imu(stamp_ns):
    """Return a message whose angular velocity is absent."""
    acceleration = [0.1, 0.2, 9.8 + 1e-9 * (stamp_ns - START)]
    return imu(stamp_ns, 'thigh', np.zeros(3), acceleration, measures_rate=False)


# ---- External torques --------------------------------------------------------------------------


def test_what_external_wrenches_do_to_joints_is_told(rng):
    robot, settings = setup(external_torque_base='sole')
    samples = record(robot, rng)
    report = report_of(samples, robot, settings)
    estimate = replay_of(samples, robot, settings).estimate
    assert [t.joint for t in report.external_torques] == list(robot.joint_names)
    wanted = np.sqrt(np.mean(estimate.external_torques**2, axis=0))
    found = [t.rms for t in report.external_torques]
    np.testing.assert_allclose(found, wanted, rtol=ROUND_OFF)
    assert report.as_dict()['external_torque_base'] == 'sole'
    table = next(t for t in make_tables(report) if t.title == 'External joint torques, about sole')
    # Nothing touches the head: no wrench loads the neck.
    names = [row[0] for row in table.rows]
    assert 'neck' not in names and 'elbow' in names


def test_without_contacts_there_are_no_external_torques(rng):
    robot, settings = setup(contacts=[])
    assert report_of(record(robot, rng), robot, settings).external_torques == ()


def test_an_external_torque_rests_on_the_offsets_that_the_wrenches_beyond_it_rest_on(rng):
    robot, settings = setup()
    replay = replay_of(record(robot, rng), robot, settings)
    hand = np.array([contact.name == 'hand' for contact in replay.clean.contacts])
    judged = np.ones(len(replay.recording.samples), dtype=bool)
    found = external_torque_reports(replay, judged, hand)
    marked = {report.joint for report in found if report.assumed}
    assert {'elbow', 'shoulder_joint'} <= marked and not {'knee', 'neck'} & marked


# ---- What is judged, senders of touches, arrays ------------------------------------------------


def test_a_range_inside_that_of_the_offsets_judges_nothing(tmp_path, robot, settings):
    bag = write_bag(tmp_path / 'bag', humanoid_messages(robot))
    request = OffsetRequest('torques', TimeRange(0.0, 0.2))
    args = bag, nested_humanoid_urdf(), settings
    report = replay_bag(*args, offsets=request, time_range=TimeRange(0.05, 0.15))
    assert any(w.startswith('nothing is judged') for w in report.warnings)
    assert all(wrench.n_samples == 0 for wrench in report.wrenches)
    report = replay_bag(*args, offsets=request)
    assert not any('is judged' in w for w in report.warnings)


@pytest.mark.parametrize(
    ('efforts', 'why'),
    [
        (None, 'hold no efforts'),
        (np.nan, 'hold no efforts'),
        (0.0, 'never change'),
    ],
)
def test_torques_without_reference_are_said_to_be_unjudged(rng, efforts, why):
    robot, settings = setup()
    samples = record(robot, rng, n=20)
    if efforts is not None:
        samples = replace(samples, efforts=np.full_like(samples.positions, efforts))
    (warning,) = (w for w in report_of(samples, robot, settings).warnings if 'is judged' in w)
    assert warning.startswith('no torque is judged') and why in warning


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
    found = [w for w in report.warnings if w.startswith('touches lapse')]
    assert bool(found) == warned
    if warned:
        assert 'shank (4 times, every 0.05 s)' in found[0]
        assert 'contact_timeout (0.02 s)' in found[0]


def test_a_replay_takes_angular_accelerations_from_where_the_node_does(robot):
    settings = EstimatorSettings.from_dict(SETTINGS)
    assert not make_estimator(robot, settings).motion.arrays
    places = {'a': [0.0, 0.0, 0.0], 'b': [0.1, 0.0, 0.0], 'c': [0.0, 0.1, 0.0]}
    imus = {name: {'frame': 'head', 'pose': [*at, 0.0, 0.0, 0.0]} for name, at in places.items()}
    given = SETTINGS | {'imus': list(places), 'imu': imus, 'angular_acceleration_source': 'array'}
    settings = EstimatorSettings.from_dict(given)
    robot = build_robot(settings, nested_humanoid_urdf())
    assert make_estimator(robot, settings).motion.arrays
    assert make_estimator(robot, settings, contacts=(Contact('root'),)).motion.arrays
