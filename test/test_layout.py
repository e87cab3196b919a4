# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logs as tables of numbers: units, gears, couplings, and what is wrong with a file or layout."""

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf

from inertial_estimation.errors import ConfigError, LogError, NameNotFound
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.setting_values import read
from inertial_estimation.logs.table import Layout
from inertial_estimation.model.robot import Robot

N = 5


@pytest.fixture
def arm():
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')


def layout(**changes):
    """Return a layout of a log of two joints."""
    given = {'time': 't', 'joints': ['elbow', 'shoulder'], 'positions': 'q'}
    return read(Layout, given | changes, 'log')


@pytest.fixture
def npz(tmp_path, rng):
    path = tmp_path / 'log.npz'
    arrays = {
        't': np.arange(N) * 0.01,
        'q': rng.normal(size=(N, 2)),
        'i': rng.normal(size=(N, 2)),
        'v1': rng.normal(size=N),
        'v2': rng.normal(size=N),
        'late': np.arange(N) * 1e20,
        'short': rng.normal(size=(N - 2, 2)),
    }
    np.savez(path, **arrays)
    return path, arrays


def test_columns_go_to_their_joints_and_the_rest_is_missing(arm, npz):
    path, arrays = npz
    found = open_log(
        path, arm, layout=layout(velocities={'columns': ['v1', 'v2'], 'unit': 'deg/s'})
    ).samples
    elbow, shoulder, lift = (arm.joint_names.index(j) for j in ('elbow', 'shoulder', 'lift'))
    np.testing.assert_array_equal(found.stamp_ns, np.arange(N) * 10_000_000)
    np.testing.assert_array_equal(found.positions[:, [elbow, shoulder]], arrays['q'])
    np.testing.assert_allclose(found.velocities[:, shoulder], np.deg2rad(arrays['v2']))
    assert np.isnan(found.positions[:, lift]).all()
    for missing in (found.efforts, found.accelerations, found.ft_readings):
        assert np.isnan(missing).all()
    assert found.ft_temperatures is None


def test_gears_couplings_and_units(arm, npz):
    path, arrays = npz
    matrix = [[2.0, 0.0], [3.0, 4.0]]
    given = layout(
        positions={'columns': 'q', 'divided_by': matrix, 'offset': [0.0, 1.5]},
        efforts={'columns': 'i', 'unit': 'mA', 'scale': [10.0, 20.0]},
    )
    given.require_torques(('elbow', 'shoulder'))
    found = open_log(path, arm, layout=given).samples
    rows = [arm.joint_names.index(j) for j in ('elbow', 'shoulder')]
    driven = (found.positions[:, rows] - [0.0, 1.5]) @ np.transpose(matrix)
    np.testing.assert_allclose(driven, arrays['q'])
    np.testing.assert_allclose(found.efforts[:, rows], arrays['i'] * [0.01, 0.02])
    # Of joints that turn and that slide.
    given = {'joints': ['elbow', 'lift'], 'positions': {'columns': 'q', 'unit': ['deg', 'mm']}}
    found = open_log(path, arm, layout=layout(**given)).samples
    rows = [arm.joint_names.index(j) for j in given['joints']]
    np.testing.assert_allclose(found.positions[:, rows], arrays['q'] * [np.pi / 180, 1e-3])


def test_csv_with_sensors(tmp_path, rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    joints = list(robot.joint_names)
    header = ['ms', *joints, *(f'w{k}' for k in range(6)), *(f'a{k}' for k in range(6)), 'warm']
    values = rng.normal(size=(N, len(header)))
    values[:, 0] = 10.0 * np.arange(N)
    path = tmp_path / 'log.csv'
    rows = [','.join(map(str, row)) for row in values.tolist()]
    path.write_text('\n'.join([','.join(header), *rows]))
    given = {
        'time': {'columns': 'ms', 'unit': 'ms'},
        'joints': joints,
        'positions': {'columns': joints},
        'ft_sensors': {'leg_sensor': {'columns': [f'w{k}' for k in range(6)]}},
        'temperatures': {'leg_sensor': {'columns': 'warm', 'unit': 'degC', 'offset': 1.0}},
        'imus': {
            'head': {
                'gyroscope': {'columns': ['a0', 'a1', 'a2'], 'unit': 'deg/s'},
                'accelerometer': {'columns': ['a3', 'a4', 'a5'], 'unit': 'g'},
            }
        },
    }
    found = open_log(path, robot, layout=read(Layout, given, 'log')).samples
    n = len(joints)
    leg = [ft.name for ft in robot.ft_sensors].index('leg_sensor')
    np.testing.assert_allclose(found.ft_readings[:, leg], values[:, n + 1 : n + 7])
    np.testing.assert_allclose(found.angular_velocities[:, 0], np.deg2rad(values[:, n + 7 : -4]))
    np.testing.assert_allclose(found.proper_accelerations[:, 0], 9.80665 * values[:, -4:-1])
    np.testing.assert_allclose(found.ft_temperatures[:, leg], values[:, -1] + 1.0)
    for of_sensors in (found.ft_readings, found.ft_temperatures):
        assert np.isnan(np.delete(of_sensors, leg, axis=1)).all()


@pytest.mark.parametrize(
    'changes',
    [
        {'positions': {'columns': 'q', 'unit': 'rads'}},
        {'positions': {'columns': 'q', 'divided_by': [[1, 1], [1, 1]]}},
        {'imus': {'head': {'gyroscope': 'g'}}},
    ],
)
def test_wrong_layout_is_refused(changes):
    with pytest.raises((ConfigError, NameNotFound)):
        layout(**changes)


def test_logs_without_the_columns_are_refused(arm, npz, tmp_path):
    path, _ = npz
    for one in (
        layout(positions='p'),
        layout(velocities='short'),
        layout(time='late'),
        layout(ft_sensors={'wrist': 'q'}),
    ):
        with pytest.raises((LogError, NameNotFound)):
            open_log(path, arm, layout=one)
    for name, text in (
        ('none.csv', None), ('ragged.csv', 't,q\n1,2\n1\n'), ('words.csv', 't\nx\n'),
        ('no.npz', 't,q'), ('log.mat', 't'),
    ):  # fmt: skip
        if text:
            (tmp_path / name).write_text(text)
        with pytest.raises((LogError, ConfigError)):
            open_log(tmp_path / name, arm, layout=layout())
