# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logs as tables of numbers: units, gears, couplings, and what is wrong with a file or layout."""

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf

from inertial_estimation.errors import ConfigError, LogError, NameNotFound
from inertial_estimation.logs.layout import Layout
from inertial_estimation.logs.table import load_table
from inertial_estimation.model.robot import Robot

N = 5


@pytest.fixture
def arm():
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')


def layout(**changes):
    """Return a layout of a log of two joints."""
    said = {'time': 't', 'joints': ['elbow', 'shoulder'], 'positions': 'q'}
    return Layout.read(said | changes)


@pytest.fixture
def npz(tmp_path, rng):
    path = tmp_path / 'log.npz'
    arrays = {
        't': np.arange(N) * 0.01,
        'q': rng.normal(size=(N, 2)),
        'i': rng.normal(size=(N, 2)),
        'v1': rng.normal(size=N),
        'v2': rng.normal(size=N),
        'names': np.array(['a', 'b']),
        'late': np.arange(N) * 1e20,
        'empty': np.zeros((0, 2)),
        'short': rng.normal(size=(N - 2, 2)),
        'w': rng.normal(size=N - 1),
    }
    np.savez(path, **arrays)
    return path, arrays


def test_columns_go_to_their_joints_and_the_rest_is_missing(arm, npz):
    path, arrays = npz
    found = layout(velocities={'columns': ['v1', 'v2'], 'unit': 'deg/s'}).samples(path, arm)
    elbow, shoulder, lift = (arm.joint_names.index(j) for j in ('elbow', 'shoulder', 'lift'))
    np.testing.assert_array_equal(found.stamp_ns, np.arange(N) * 10_000_000)
    np.testing.assert_array_equal(found.positions[:, [elbow, shoulder]], arrays['q'])
    np.testing.assert_allclose(found.velocities[:, shoulder], np.deg2rad(arrays['v2']))
    assert np.isnan(found.positions[:, lift]).all()
    for missing in (found.efforts, found.accelerations, found.ft_readings):
        assert np.isnan(missing).all()


def test_gears_and_couplings(arm, npz):
    path, arrays = npz
    matrix = [[2.0, 0.0], [3.0, 4.0]]
    found = layout(
        positions={'columns': 'q', 'divided_by': matrix, 'offset': [0.0, 1.5]},
        efforts={'columns': 'i', 'unit': 'mA', 'scale': [10.0, 20.0]},
    ).samples(path, arm)
    rows = [arm.joint_names.index(j) for j in ('elbow', 'shoulder')]
    np.testing.assert_allclose(
        (found.positions[:, rows] - [0.0, 1.5]) @ np.array(matrix).T, arrays['q']
    )
    np.testing.assert_allclose(found.efforts[:, rows], arrays['i'] * [0.01, 0.02])


def test_units_of_joints_that_turn_and_that_slide(arm, npz):
    path, arrays = npz
    said = {'joints': ['elbow', 'lift'], 'positions': {'columns': 'q', 'unit': ['deg', 'mm']}}
    found = layout(**said).samples(path, arm)
    rows = [arm.joint_names.index(j) for j in ('elbow', 'lift')]
    np.testing.assert_allclose(found.positions[:, rows], arrays['q'] * [np.pi / 180, 1e-3])
    for unit, _ in (
        ('deg', "'lift' slides"),
        (['deg', 'deg'], 'slides'),
        ('m', "'elbow' turns"),
    ):
        said['positions'] = {'columns': 'q', 'unit': unit}
        with pytest.raises(ConfigError):
            layout(**said).samples(path, arm)


def test_csv_with_sensors(tmp_path, rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    joints = list(robot.joint_names)
    header = ['ms', *joints, *(f'w{k}' for k in range(6)), *(f'a{k}' for k in range(6))]
    values = rng.normal(size=(N, len(header)))
    values[:, 0] = 10.0 * np.arange(N)
    path = tmp_path / 'log.csv'
    rows = [','.join(map(str, row)) for row in values.tolist()]
    path.write_text('\n'.join([','.join(header), *rows]))
    said = {
        'time': {'columns': 'ms', 'unit': 'ms'},
        'joints': joints,
        'positions': {'columns': joints},
        'ft_sensors': {'leg_sensor': {'columns': [f'w{k}' for k in range(6)]}},
        'imus': {
            'head': {
                'gyroscope': {'columns': ['a0', 'a1', 'a2'], 'unit': 'deg/s'},
                'accelerometer': {'columns': ['a3', 'a4', 'a5'], 'unit': 'g'},
            }
        },
    }
    found = Layout.read(said).samples(path, robot)
    n = len(joints)
    leg = [ft.name for ft in robot.ft_sensors].index('leg_sensor')
    np.testing.assert_allclose(found.ft_readings[:, leg], values[:, n + 1 : n + 7])
    np.testing.assert_allclose(found.angular_velocities[:, 0], np.deg2rad(values[:, n + 7 : -3]))
    np.testing.assert_allclose(found.proper_accelerations[:, 0], 9.80665 * values[:, -3:])
    assert np.isnan(np.delete(found.ft_readings, leg, axis=1)).all()


@pytest.mark.parametrize(
    ('changes', 'said'),
    [
        ({'positions': {'columns': 'q', 'unit': 'rads'}}, 'rads.*rad, deg'),
        ({'positions': {'columns': 'q', 'gear': 2}}, "'gear'"),
        ({'positions': {'columns': 'q', 'scale': 2, 'divided_by': 2}}, 'both'),
        ({'positions': {'columns': 'q', 'divided_by': [[1, 1], [1, 1]]}}, 'singular'),
        ({'positions': {'columns': 'q', 'scale': 'two'}}, 'a number'),
        ({'positions': {'unit': 'rad'}}, 'columns'),
        ({'imus': {'head': {'gyroscope': 'g'}}}, 'accelerometer'),
        ({'joints': 3}, 'list of names'),
        ({'joints': ['elbow', 'elbow']}, "'log.joints' has 'elbow' 2 times"),
        ({'positions': {'columns': ['q1', 'q1']}}, "'log.positions.columns' has 'q1' 2 times"),
        ({'efforts': 'q'}, "'log.positions' and 'log.efforts' both name column 'q'"),
        (
            {'ft_sensors': {'a': 'w', 'b': 'w'}},
            "'log.ft_sensors.a' and 'log.ft_sensors.b' both name column 'w'",
        ),
        ({'tme': 't'}, "'tme'.*time"),
    ],
)
def test_a_layout_that_makes_no_sense_is_refused(changes, said):
    with pytest.raises((ConfigError, NameNotFound)):
        layout(**changes)
    with pytest.raises(ConfigError):
        Layout.read({'time': 't', 'joints': []})


def test_a_log_that_does_not_hold_it_is_refused(arm, npz, tmp_path):
    path, _ = npz
    for one, _ in (
        (layout(positions='p'), "no column 'p' for log.positions; it has"),
        (layout(positions='v1'), 'hold 1 values.*expected 2'),
        (layout(positions={'columns': 'q', 'scale': [1, 2, 3]}), '3 values in scale'),
        (layout(positions={'columns': 'q', 'scale': [[1, 2]]}), '1 x 2, expected 2 x 2'),
        (layout(positions='names'), 'no plain numbers'),
        (layout(velocities='short'), 'log.velocities has 3 instants, log.time has 5'),
        (layout(positions={'columns': ['v1', 'w']}), "'v1' has 5, 'w' has 4"),
        (layout(positions={'columns': 'q', 'unit': ['rad'] * 3}), '3 values in unit'),
        (layout(positions={'columns': 'q', 'scale': 1e12}), 'its unit or scale'),
        (layout(time='late'), 'more than 9e'),
        (layout(velocities='empty'), "'empty' for log.velocities is empty"),
        (layout(joints=['elbow', 'shouldr']), 'shouldr'),
        (layout(ft_sensors={'wrist': 'q'}), 'FT sensor'),
    ):
        with pytest.raises((LogError, NameNotFound)):
            one.samples(path, arm)
    for name, text in (('no.csv', 't,q\n1,2\n1\n'), ('empty.csv', ''), ('words.csv', 't\nx\n')):
        (tmp_path / name).write_text(text)
        with pytest.raises(LogError):
            layout().samples(tmp_path / name, arm)
    (tmp_path / 'no.npz').write_text('t,q')
    with pytest.raises(LogError):
        layout().samples(tmp_path / 'no.npz', arm)
    with pytest.raises(LogError):
        layout().samples(tmp_path / 'none.csv', arm)
    with pytest.raises(LogError):
        layout().samples(tmp_path / 'log.mat', arm)


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('t;q\n1,5;2\n', 'semicolons separate its columns, expected commas, and points'),
        ('t\tq\n1\t2\n', 'tabs separate'),
        ('t,q\n0,1\n\n1,x-2\n', "line 4 holds 'x-2' in column 'q'"),
        ('t,q\n0,1\n1,2,3\n', 'line 3 has 3 cells, not 2'),
    ],
)
def test_what_is_wrong_in_a_csv_is_said_with_its_place(tmp_path, text, said):
    path = tmp_path / 'log.csv'
    path.write_text(text)
    with pytest.raises(LogError):
        load_table(path)
