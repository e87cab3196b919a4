# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Why results of a replay are NaN or in doubt, against the estimate's own flags.

Not covered: whether those flags are right (test_quality.py), and a real log (test_replay.py).
"""

from dataclasses import replace

import numpy as np
import pytest
from robots import nested_humanoid_urdf, random_sample

from inertial_estimation.building import build_assembler, build_robot
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.logs.causes import find_causes
from inertial_estimation.logs.offsets import OffsetRequest, Offsets
from inertial_estimation.logs.reach import Reach
from inertial_estimation.logs.recording import Recording
from inertial_estimation.logs.replay import run
from inertial_estimation.logs.report import make_report
from inertial_estimation.logs.tables import make_tables
from inertial_estimation.sample import SampleBatch, SensorState

SETTINGS = {
    'imus': ['head', 'thigh'],
    'contacts': ['root', 'thigh', 'sole', 'hand'],
    'ft_sensors': ['arm_sensor', 'leg_sensor', 'foot_sensor'],
}
N = 8
ARM, LEG, FOOT = range(3)
STALE, ABSENT = SensorState.STALE, SensorState.ABSENT
MOTION = ('positions', 'velocities', 'accelerations')
IMU = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')
PARTS = (('angular_velocities', 'angular_accelerations'), ('proper_accelerations',))
DOUBTFUL = np.uint8(Quality.ASSUMED | Quality.MERGED | Quality.UNDETERMINED)


def setup(**more):
    settings = EstimatorSettings.from_dict({**SETTINGS, **more})
    return build_robot(settings, nested_humanoid_urdf()), settings


def record(robot, rng, n=N):
    samples = SampleBatch.stack([random_sample(robot, rng) for _ in range(n)])
    sizes = len(robot.joint_names), len(robot.imus), len(robot.ft_sensors)
    states = [np.zeros((n, size), dtype=np.uint8) for size in sizes]
    return replace(
        samples,
        stamp_ns=1_000_000_000 * np.arange(1, n + 1),
        joint_states=states[0],
        imu_states=states[1],
        ft_states=states[2],
        efforts=None,
    )


def lose(samples, names, states, rows, column, state):
    """Take the values of one joint or sensor out of some samples, for a reason."""
    for name in names:
        getattr(samples, name)[rows, column] = np.nan
    getattr(samples, states)[rows, column] = state


def replay_of(samples, robot, settings):
    statistics = build_assembler(settings, robot).statistics()
    return run(Recording(samples, 1_000_000_000, statistics), robot, settings)


def causes_of(samples, robot, settings):
    nothing = Reach(*(np.zeros((n, len(robot.ft_sensors)), bool) for n in (
        len(settings.contacts), len(robot.joint_names))))  # fmt: skip
    return find_causes(replay_of(samples, robot, settings), nothing)


def test_nothing_is_said_where_everything_is_measured(rng):
    robot, settings = setup()
    samples = record(robot, rng)
    assert causes_of(samples, robot, settings) == ()
    replay = replay_of(samples, robot, settings)
    report = make_report(replay, Offsets(OffsetRequest(), replay.calibration))
    assert not [table for table in make_tables(report) if table.title.startswith('Why')]


def test_a_failed_ft_sensor_names_who_gave_way_to_whom(rng):
    robot, settings = setup()
    samples = record(robot, rng)
    lose(samples, ['ft_readings'], 'ft_states', slice(2, 6), LEG, STALE)
    (cause,) = causes_of(samples, robot, settings)
    assert cause.cause == 'FT leg_sensor too old'
    assert (cause.n_samples, cause.sample_share, cause.first_s, cause.last_s) == (4, 0.5, 2, 5)
    assert (cause.nan_contacts, cause.gave_way_to) == (('thigh',), ('root',))
    assert cause.doubtful_contacts == ('root',)
    assert cause.nan_torques == ()


def test_two_failed_ft_sensors_are_told_apart(rng):
    robot, settings = setup()
    samples = record(robot, rng)
    lose(samples, ['ft_readings'], 'ft_states', slice(None), ARM, ABSENT)
    lose(samples, ['ft_readings'], 'ft_states', slice(0, 3), FOOT, SensorState.FROZEN)
    arm, foot = causes_of(samples, robot, settings)
    assert arm.cause == 'FT arm_sensor never came'
    assert (arm.nan_contacts, arm.gave_way_to) == (('hand',), ('root',))
    assert (foot.nan_contacts, foot.gave_way_to) == (('sole',), ('thigh',))
    assert 'knee' in foot.doubtful_torques
    assert 'knee' not in arm.doubtful_torques


@pytest.mark.parametrize(
    ('what', 'state', 'said'),
    [
        ('joint', ABSENT, 'joint elbow had not come yet'),
        ('joint', STALE, 'joint elbow too old'),
        ('joint', SensorState.WARMING, 'joint elbow derivative filter not filled yet'),
        ('velocity', SensorState.FRESH, 'joint elbow without velocity'),
        ('reading', SensorState.FRESH, 'joint elbow NaN or infinite'),
    ],
)
def test_a_missing_joint_is_named_with_its_reason(rng, what, state, said):
    robot, settings = setup()
    samples = record(robot, rng)
    lost = ['velocities'] if what == 'velocity' else MOTION
    lose(samples, lost, 'joint_states', slice(2, 4), robot.joint_names.index('elbow'), state)
    (cause,) = causes_of(samples, robot, settings)
    assert cause.cause.startswith(said)
    assert cause.nan_contacts == ('hand',)
    lost = np.isnan(replay_of(samples, robot, settings).clean.torques)
    check([cause], 'nan_torques', names(robot, lost))
    assert cause.sample_share == 0.25


def test_the_start_of_a_log_is_one_cause_and_spoils_no_other(rng):
    robot, settings = setup(assumed_joints=['elbow'], assumed_positions=[0.0])
    samples = record(robot, rng, n=100)
    samples.stamp_ns[:] = 1_000_000_000 + 10_000_000 * np.arange(100)
    samples.joint_states[:, robot.joint_names.index('elbow')] = SensorState.ASSUMED
    (usual,) = causes_of(samples, robot, settings)
    lose(samples, ['ft_readings'], 'ft_states', slice(0, 2), ARM, ABSENT)
    lose(samples, IMU, 'imu_states', slice(0, 5), slice(0, 2), SensorState.WARMING)
    lose(samples, MOTION, 'joint_states', slice(3, 7), 0, SensorState.WARMING)
    start, assumed = causes_of(samples, robot, settings)
    assert assumed == usual
    assert start.cause.startswith('start of the log')
    assert (start.n_samples, start.first_s, start.last_s) == (7, 0.0, 0.06)
    assert start.nan_contacts == tuple(SETTINGS['contacts'])
    # What comes after a while, or goes and comes again, is named.
    lose(samples, ['ft_readings'], 'ft_states', slice(20, 30), FOOT, SensorState.WARMING)
    assert [cause.name for cause in causes_of(samples, robot, settings)] == [
        '', 'elbow', 'foot_sensor',
    ]  # fmt: skip


def test_what_comes_late_is_named(rng):
    robot, settings = setup()
    samples = record(robot, rng)
    lose(samples, ['ft_readings'], 'ft_states', slice(0, 6), FOOT, ABSENT)
    (cause,) = causes_of(samples, robot, settings)
    assert cause.cause == 'FT foot_sensor had not come yet'


def test_one_imu_of_two_costs_nothing_and_both_cost_all(rng):
    robot, settings = setup()
    samples = record(robot, rng)
    lose(samples, IMU, 'imu_states', slice(0, 4), 0, STALE)
    (cause,) = causes_of(samples, robot, settings)
    assert (cause.cause, cause.nan_contacts) == ('IMU head too old', ())
    lose(samples, IMU, 'imu_states', slice(3, 5), 1, SensorState.INVALID)
    head, thigh = causes_of(samples, robot, settings)
    assert head.nan_contacts == thigh.nan_contacts == tuple(SETTINGS['contacts'])
    assert (head.n_samples, thigh.n_samples) == (4, 2)


def leave_out(samples, rows, column, *quantities):
    """Let an IMU leave a quantity out, as covariance[0] = -1 says."""
    lose(samples, quantities, 'imu_states', rows, column, SensorState.PARTIAL)


@pytest.mark.parametrize(
    ('quantities', 'rest'),
    [
        (PARTS[0], 'acceleration'),
        (PARTS[1], 'angular velocity'),
    ],
)
def test_an_imu_that_leaves_a_quantity_out_has_not_failed(rng, quantities, rest):
    robot, settings = setup()
    samples = record(robot, rng)
    leave_out(samples, slice(2, 6), 0, *quantities)
    (cause,) = causes_of(samples, robot, settings)
    assert cause.cause == f'IMU head partial: measures only the {rest}'
    assert (cause.state, cause.n_samples) == (f'only_{rest.replace(" ", "_")}', 4)
    assert cause.nan_contacts == cause.nan_torques == cause.doubtful_torques == ()


def test_what_an_imu_is_declared_to_measure_is_no_cause(rng):
    robot, settings = setup(**{'imu.head.measures': 'gyroscope'})
    samples = record(robot, rng)
    samples.proper_accelerations[:, 0] = np.nan
    assert causes_of(samples, robot, settings) == ()


def test_two_partial_imus_do_for_one_whole_one(rng):
    robot, settings = setup()
    samples = record(robot, rng)
    leave_out(samples, slice(None), 0, 'proper_accelerations')
    leave_out(samples, slice(None), 1, 'angular_velocities', 'angular_accelerations')
    assert np.isfinite(replay_of(samples, robot, settings).clean.torques).all()
    causes = causes_of(samples, robot, settings)
    assert [cause.name for cause in causes] == ['head', 'thigh']
    assert not any(cause.nan_contacts or cause.nan_torques for cause in causes)


def test_contacts_that_are_not_told_apart_are_named_together(rng):
    robot, settings = setup(contacts=['root', 'thigh', 'shank', 'sole', 'hand'])
    causes = causes_of(record(robot, rng), robot, settings)
    assert [c.cause for c in causes] == ['the sensors do not tell apart: thigh, shank']
    assert causes[0].doubtful_contacts == ('thigh', 'shank')
    assert 'knee' in causes[0].doubtful_torques


def test_causes_explain_all_that_the_estimate_flags_and_nothing_else(rng):
    for trial in range(15):
        more = {'contacts': ['root', 'thigh', 'shank', 'hand']} if trial % 3 == 0 else {}
        robot, settings = setup(**more)
        samples = record(robot, rng)
        for column in rng.choice(len(robot.joint_names), rng.integers(0, 3), replace=False):
            rows = rng.random(N) < 0.5
            if rng.random() < 0.4:
                samples.joint_states[:, column] = SensorState.ASSUMED
            else:
                lose(samples, MOTION, 'joint_states', rows, column, STALE)
        for k in rng.choice(3, rng.integers(0, 4), replace=False):
            lose(samples, ['ft_readings'], 'ft_states', rng.random(N) < 0.5, k, STALE)
        if trial % 2:
            leave_out(samples, rng.random(N) < 0.5, 0, *PARTS[trial % 4 == 1])
        lose(samples, IMU, 'imu_states', rng.random(N) < 0.3, rng.integers(2), STALE)
        estimate = replay_of(samples, robot, settings).clean
        causes = causes_of(samples, robot, settings)
        contacts = np.array(settings.contacts)
        check(causes, 'nan_contacts', contacts[np.isnan(estimate.wrenches).any(axis=(0, 2))])
        check(causes, 'nan_torques', names(robot, np.isnan(estimate.torques)))
        lost = np.uint8(Quality.DROPPED)
        flags = estimate.contact_quality
        doubted = ((flags & DOUBTFUL != 0) & (flags & lost == 0)).any(axis=0)
        check(causes, 'doubtful_contacts', contacts[doubted])
        check(causes, 'doubtful_torques', names(robot, estimate.torque_quality & DOUBTFUL != 0))


def names(robot, flags):
    return np.array(robot.joint_names)[flags.any(axis=0)]


def check(causes, field, wanted):
    assert {name for cause in causes for name in getattr(cause, field)} == set(wanted), field


def test_joints_that_fail_alike_share_a_line(rng):
    robot, settings = setup(imus=['root', 'thigh'])
    samples = record(robot, rng)
    for joint in ('waist', 'shoulder_joint'):
        column = robot.joint_names.index(joint)
        lose(samples, MOTION, 'joint_states', slice(None), column, ABSENT)
    lose(samples, IMU, 'imu_states', slice(0, 2), slice(0, 2), STALE)
    replay = replay_of(samples, robot, settings)
    report = make_report(replay, Offsets(OffsetRequest(), replay.calibration))
    table = next(t for t in make_tables(report) if t.title == 'Why results are NaN or in doubt')
    lines = {row[0]: row for row in table.rows}
    assert len(lines) == len(table.rows) == 3
    lost = lines['joints waist, shoulder_joint never came'][4]
    assert lost == 'root, hand; torques of waist, neck, shoulder_joint, elbow'
    assert lines['joints waist, shoulder_joint never came'][1] == '100.0'
    assert lines['IMU root too old'][4] == 'all contacts; all torques'
