# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
One fault at a time in exact readings of random motions is named first; none is named without.

Not covered: real logs and noise (bench/corrupted_logs.py counts them).
"""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from consistent_readings import ConsistentReadings, random_motion
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf
from scipy.spatial.transform import Rotation

from inertial_estimation.estimation.fault_equations import on_grid
from inertial_estimation.estimation.fault_hypotheses import MIN_SECONDS, find_faults
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

N = 60
UNITS = np.repeat([1.0, 0.1], 3)
SOLE = {'root': np.array([30.0, -20.0, 10.0, 2.0, -1.0, 3.0])}


@pytest.fixture(scope='module')
def case():
    """Return a humanoid with two IMUs, touched at its root only, and readings 1 s apart."""
    robot, rng = (
        Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'sole']),
        np.random.default_rng(7),
    )
    source = ConsistentReadings(robot)
    samples = SampleBatch.stack([
        source.sample(random_motion(robot, rng), SOLE)[0]._replace(stamp_ns=k * 10**9)
        for k in range(N)
    ])  # fmt: skip
    return robot, samples


def named(robot, samples, touched=('root',)):
    """Return subject and kind of the faults."""
    faults = find_faults(robot, samples, samples.ft_readings, touched)
    return [(one.subject, one.kind) for one in faults]


def slow(motion):
    """Return a motion of a tenth of the rates."""
    rest = (0.1 * part for part in motion[1:])
    return motion._replace(**dict(zip(motion._fields[1:], rest, strict=True)))


def with_readings(samples, s, change):
    readings = samples.ft_readings.copy()
    readings[:, s] = change(readings[:, s])
    return replace(samples, ft_readings=readings)


def test_signals_are_unknown_outside_of_their_messages(case):
    samples = case[1]
    samples = replace(samples, stamp_ns=20_000_000 * np.arange(N))
    readings = samples.ft_readings.copy()
    readings[:10, 0] = readings[-10:, 0] = np.nan
    found = on_grid(replace(samples, ft_readings=readings)).ft_readings
    assert np.isnan(found[:20, 0]).all() and np.isnan(found[-20:, 0]).all()
    assert np.isfinite(found[40:-40, 0]).all() and np.isfinite(found[:, 1:]).all()


def test_exact_readings_have_no_fault(case):
    assert named(*case) == []


@pytest.mark.parametrize('n', range(19, N + 1, 3))
def test_only_logs_of_some_seconds_are_searched(n, case):
    """From 0.1 to 2.4 s: faster than the steps between the poses, so that residuals are large."""
    samples = case[1].take(np.arange(n))
    for step_ns in (5_000_000, 15_000_000, 41_000_000):
        found = named(case[0], replace(samples, stamp_ns=step_ns * np.arange(n)))
        assert not found or (n - 1) * step_ns >= 1e9 * MIN_SECONDS


@pytest.mark.parametrize(
    ('kind', 'change'),
    [
        ('axes (y, x, z)', lambda F: F[:, [1, 0, 2, 4, 3, 5]]),
        ('sign', lambda F: -F),
        ('gain', lambda F: 1.3 * F),
        ('unit of moment', lambda F: F * [1, 1, 1, 1e3, 1e3, 1e3]),
        ('unit of fy', lambda F: F * [1, 1e-3, 1, 1, 1, 1]),
        ('saturated', lambda F: np.clip(F, *np.quantile(F, [0.2, 0.8], axis=0))),
    ],
)
def test_fault_of_an_ft_sensor_is_named(kind, change, case):
    robot, samples = case
    s = len(robot.ft_sensors) - 1
    found = named(robot, with_readings(samples, s, change))
    assert found[0] == (robot.ft_sensors[s].name, kind)


def test_two_ft_sensors_exchanged_are_named(case):
    robot, samples = case
    readings = samples.ft_readings.copy()
    readings[:, [0, 1]] = readings[:, [1, 0]]
    names = ' '.join(sensor.name for sensor in robot.ft_sensors[:2])
    assert named(robot, replace(samples, ft_readings=readings))[0] == (names, 'exchanged')


@pytest.fixture(scope='module')
def loaded(case):
    """
    Return the humanoid on its sole: leg and foot sensor in series feel the same load.

    Masses are wrong by 5 %, the matrices of both sensors by 3 %.
    """
    robot, rng = case[0], np.random.default_rng(3)
    source, load = ConsistentReadings(robot), np.array([30.0, 40.0, 400.0, 5.0, 5.0, 1.0])
    wrenches = ({'sole': load * rng.uniform(0.8, 1.2, 6)} for _ in range(N))
    samples = SampleBatch.stack([
        source.sample(slow(random_motion(robot, rng)), one)[0]._replace(stamp_ns=k * 10**9)
        for k, one in enumerate(wrenches)
    ])  # fmt: skip
    for s in (1, 2):
        matrix = np.eye(6) + 0.03 * rng.standard_normal((6, 6)) * np.outer(UNITS, 1.0 / UNITS)
        samples = with_readings(samples, s, lambda F, matrix=matrix: F @ matrix.T)
    masses = 1.0 + 0.05 * rng.standard_normal((len(robot.links), 1))
    return robot.with_parameters(robot.parameters * masses), samples


@pytest.mark.parametrize('contacts', [('sole',), ('root', 'sole')])
@pytest.mark.parametrize('wrong', ['', 'leg_sensor', 'foot_sensor', 'leg_sensor foot_sensor'])
def test_fault_among_sensors_in_series_is_named(wrong, contacts, loaded):
    robot, samples = loaded
    rows = [k for k, sensor in enumerate(robot.ft_sensors) if sensor.name in wrong.split()]
    readings = samples.ft_readings.copy()
    readings[:, rows] = readings[:, rows[::-1]] if len(rows) > 1 else -readings[:, rows]
    kind = 'exchanged' if len(rows) > 1 else 'sign'
    expected = [(wrong, kind)] if wrong else []
    assert named(robot, replace(samples, ft_readings=readings), contacts) == expected


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_order_of_contacts_does_not_count(sign):
    """A light arm that is held at its base; contacts at the tool are possible too."""
    robot, rng = (
        Robot.from_urdf(arm_with_wrist_sensor_urdf(), imus=['tip']),
        np.random.default_rng(0),
    )
    source, poses = ConsistentReadings(robot), Rotation.random(N, random_state=0)
    weights = np.pad(poses.apply([0.0, 0.0, 9.81 * robot.mass]), [(0, 0), (0, 3)])
    samples = SampleBatch.stack([
        source.sample(slow(random_motion(robot, rng)), {'base': w})[0]._replace(stamp_ns=k * 10**9)
        for k, w in enumerate(weights)
    ])  # fmt: skip
    light = robot.parameters * np.repeat([0.1, 1.0], [4, len(robot.links) - 4])[:, None]
    samples = with_readings(samples, 0, lambda F: sign * F)
    for contacts in (('base', 'tool'), ('tool', 'base')):
        expected = [('wrist_sensor', 'sign')] if sign < 0.0 else []
        assert named(robot.with_parameters(light), samples, contacts) == expected


@pytest.mark.parametrize('axis', [0, 2])
def test_turned_imu_accuses_itself(axis, case):
    robot, samples = case
    R = pin.exp3(np.pi * np.eye(3)[axis])
    for k, imu in enumerate(robot.imus):
        arrays = {}
        for name in ('angular_velocities', 'proper_accelerations', 'angular_accelerations'):
            arrays[name] = getattr(samples, name).copy()
            arrays[name][:, k] = arrays[name][:, k] @ R
        assert named(robot, replace(samples, **arrays))[0] == (imu.name, 'turned')


def test_joint_with_the_wrong_sign_or_zero_is_named(case):
    robot, samples = case
    motion = {
        name: getattr(samples, name) for name in ('positions', 'velocities', 'accelerations')
    }
    j = len(robot.joint_names) - 1
    mirrored = {name: values * (1.0 - 2.0 * np.eye(j + 1)[j]) for name, values in motion.items()}
    name = robot.joint_names[j]
    assert named(robot, replace(samples, **mirrored))[0] == (name, 'sign')
    off = samples.positions + np.radians(15.0) * np.eye(j + 1)[j]
    assert named(robot, replace(samples, positions=off))[0] == (name, 'offset')


def test_wrong_mass_is_named(case):
    robot, samples = case
    k = robot.ft_sensors[0].child
    parameters = robot.parameters.copy()
    parameters[k] *= 2.0
    wrong = robot.with_parameters(parameters)
    assert named(wrong, samples)[0] == (robot.link_names[k], 'mass')
    # A contact may push as much.
    assert named(wrong, samples, ['root', robot.link_names[k]]) == []


@pytest.mark.parametrize('seed', [1, 2, 4])
def test_usual_errors_of_the_model_are_no_fault(seed, case):
    robot, samples = case
    rng = np.random.default_rng(seed)
    parameters = robot.parameters * (1.0 + 0.05 * rng.standard_normal((len(robot.links), 1)))
    matrix = np.eye(6) + 0.03 * rng.standard_normal((6, 6)) * np.outer(UNITS, 1.0 / UNITS)
    wrong = with_readings(samples, 0, lambda F: F @ matrix.T)
    assert named(robot.with_parameters(parameters), wrong) == []


def test_sign_of_a_real_sensor_with_a_wrong_matrix_is_named():
    pytest.importorskip('mujoco')
    from bench import corrupted_logs, log_streams

    if not log_streams.DATA.is_dir():
        pytest.skip('needs ../shared/data')
    robot, samples, contacts, _ = corrupted_logs.CASES['yoga'](1)
    s = [sensor.name for sensor in robot.ft_sensors].index('r_foot_ft')
    wrong = with_readings(samples, s, lambda F: -F)
    found = find_faults(robot, wrong, wrong.ft_readings, contacts)
    assert [(one.subject, one.kind) for one in found] == [('r_foot_ft', 'sign')]
