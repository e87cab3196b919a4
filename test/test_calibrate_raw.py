# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""``calibrate offset-without-model``, ``matrix``, ``show``: files in, a calibration file out."""

import json

import numpy as np
import pytest
from hanging_body import CENTRE, MASS, MATRIX, NOISE, OFFSET, counts, directions, wrenches

from inertial_estimation.calibration.calibration_file import (
    SensorCalibration,
    as_entry,
    read,
    write,
)
from inertial_estimation.cli import main
from inertial_estimation.errors import ConfigError, LogError, NameNotFound
from inertial_estimation.logs.raw_log import RawSignals, read_raw_log

SECOND = 1_000_000_000
START = 1_700_000_000
SETS = {'none': (0.0, (0, 0, 0)), 'far': (0.5, (0.3, -0.05, 0.1)), 'side': (0.5, (0.0, 0.2, 0.1))}
FURTHER = (0.7, (0.1, 0.1, 0.2))


def poses(rng, added=0.0, at=(0, 0, 0), n=300):
    """Return time, raw readings and accelerations."""
    g = directions(rng, n)
    found = wrenches(g, added, at) + rng.normal(size=(n, 6)) * NOISE
    return START + np.arange(n) / 10, counts(found), -g


def save(path, time, raw, a, **more):
    """Write a table."""
    np.savez(path, time=time, raw=raw, accelerometer=a, **more)
    return str(path)


@pytest.fixture
def workshop(tmp_path):
    """Return a calibration file with a matrix that is off a little."""
    path = tmp_path / 'robot.yaml'
    write(path, 'icub', {'foot': SensorCalibration(matrix=MATRIX * 1.02),
                         'hand': SensorCalibration()})  # fmt: skip
    return str(path)


def offset(*more):
    return main(['calibrate', 'offset-without-model', *more])


def test_an_offset_goes_into_the_file_of_the_robot(rng, tmp_path, workshop):
    log = save(tmp_path / 'poses.npz', *poses(rng))
    out = tmp_path / 'out.json'
    assert offset(
        log, '--ft', 'foot', '--calibration', workshop, '--out', workshop, '--json', str(out)
    ) == 0  # fmt: skip
    robot, sensors = read(workshop)
    assert robot == 'icub' and set(sensors) == {'foot', 'hand'}
    np.testing.assert_array_equal(sensors['foot'].matrix, MATRIX * 1.02)
    figures = json.loads(out.read_text())
    np.testing.assert_array_equal(sensors['foot'].offset, figures['offset'])
    errors = (sensors['foot'].offset / 1.02 - OFFSET) / figures['deviations']
    assert np.abs(errors).max() < 5.0
    (step,) = sensors['foot'].provenance
    assert step.method == 'offset without a model'
    assert step.date == '2023-11-14T22:13:20+00:00'
    assert step.n_samples == 300 == figures['samples']
    np.testing.assert_allclose(step.spread, 1.02 * NOISE, rtol=0.2)


def test_columns_units_and_parts_can_be_named(rng, tmp_path):
    time, raw, a = poses(rng)
    names = [f'c{k}' for k in range(6)]
    path = tmp_path / 'log.csv'
    table = np.column_stack([time, raw, a / 9.80665])
    header = ','.join(['t', *names, 'ax', 'ay', 'az'])
    np.savetxt(path, table, delimiter=',', header=header, comments='', fmt='%.12g')
    signals = RawSignals(tuple(names), ('ax', 'ay', 'az'), (), 't', 'g')
    log = read_raw_log(f'{path}@1:2', signals)
    np.testing.assert_allclose(log.raw, raw[10:20], rtol=1e-9)
    np.testing.assert_allclose(log.accelerations, a[10:20], rtol=1e-9)
    assert log.turning is None
    assert log.date.startswith('2023-11-14')


def test_a_gyroscope_is_used_if_it_is_there(rng, tmp_path):
    time, raw, a = poses(rng)
    turning = np.zeros((300, 3))
    turning[:30] = 0.5
    log = save(tmp_path / 'log.npz', time, raw, a, gyroscope=turning)
    out = tmp_path / 'out.json'
    assert offset(log, '--ft', 'foot', '--json', str(out)) == 0
    assert json.loads(out.read_text())['left_out']['moving'] == 30


def test_a_table_without_times_has_the_date_of_its_file(rng, tmp_path):
    _, raw, a = poses(rng)
    np.savez(tmp_path / 'log.npz', raw=raw, accelerometer=a)
    log = read_raw_log(str(tmp_path / 'log.npz'), RawSignals())
    assert log.date[:2] == '20' and log.date.endswith('+00:00')
    with pytest.raises(LogError):
        read_raw_log(f'{tmp_path / "log.npz"}@0:3', RawSignals())
    np.savez(tmp_path / 'back.npz', raw=raw, accelerometer=a, time=np.arange(300)[::-1])
    with pytest.raises(LogError):
        read_raw_log(str(tmp_path / 'back.npz'), RawSignals())


def test_a_refusal_leaves_the_file_as_it_was(rng, tmp_path, workshop):
    time, raw, a = poses(rng)
    flat = a * [1.0, 1.0, 0.0]
    flat *= 9.8 / np.linalg.norm(flat, axis=1)[:, None]
    log = save(tmp_path / 'log.npz', time, raw, flat)
    with open(workshop) as file:
        before = file.read()
    assert offset(log, '--ft', 'foot', '--calibration', workshop, '--out', workshop) == 1
    with open(workshop) as file:
        assert file.read() == before
    # Neither may what is read be written.
    assert offset(log, '--ft', 'foot', '--out', log) == 2
    assert offset(log, '--ft', 'foot', '--calibration', workshop, '--json', workshop) == 2


def test_temperature_is_needed_with_coefficients(rng, tmp_path, workshop, capsys):
    log = save(tmp_path / 'log.npz', *poses(rng))
    assert offset(log, '--ft', 'feet', '--calibration', workshop) == 1
    warm = tmp_path / 'warm.yaml'
    thermal = SensorCalibration(MATRIX, temperature_coefficients=np.ones(6))
    write(warm, 'icub', {'foot': thermal})
    call = log, '--ft', 'foot', '--calibration', str(warm), '--out', str(warm)
    assert offset(*call) == 2 and '--temperature' in capsys.readouterr().err
    assert offset(*call, '--temperature', '31.5') == 0
    found = read(warm)[1]['foot']
    assert found.reference_temperature == 31.5 == found.provenance[0].temperature
    np.testing.assert_array_equal(found.temperature_coefficients, np.ones(6))


def test_a_bag_gives_the_same_as_a_table(rng, tmp_path):
    pytest.importorskip('rosbags')
    from bag_messages import IMU, WRENCH, imu, wrench, write_bag

    time, raw, a = poses(rng, n=60)
    stamps = np.round(time * SECOND).astype(int)
    messages = []
    for stamp, reading, acceleration in zip(stamps, raw, a):
        at = int(stamp)
        messages.append(('/foot/raw', WRENCH, at, wrench(at, 'foot', reading)))
        messages.append(('/foot/imu', IMU, at, imu(at, 'imu', np.zeros(3), acceleration)))
    bag = write_bag(tmp_path / 'bag', messages)
    found = read_raw_log(str(bag), RawSignals())
    np.testing.assert_array_equal(found.raw, raw)
    np.testing.assert_array_equal(found.accelerations, a)
    np.testing.assert_array_equal(found.turning, 0.0)
    assert found.date == '2023-11-14T22:13:20+00:00'
    part = read_raw_log(f'{bag}@1:3', RawSignals(('/foot/raw',), imu='foot/imu'))
    np.testing.assert_array_equal(part.raw, raw[10:30])
    with pytest.raises(NameNotFound):
        read_raw_log(str(bag), RawSignals(('/foot/row',)))
    for name in ('accelerometer', 'gyroscope'):
        with pytest.raises(ConfigError):
            read_raw_log(str(bag), RawSignals(**{name: ('a',)}))
    other = [('/hand/raw', WRENCH, at, wrench(at, 'hand', raw[0]))]
    two = write_bag(tmp_path / 'two', [*messages, *other])
    with pytest.raises(LogError):
        read_raw_log(str(two), RawSignals())


def _matrix_call(rng, tmp_path):
    """Return the options that name data sets of `SETS`, and one to weigh."""
    call = []
    for name, (added, at) in (*SETS.items(), ('more', FURTHER)):
        log = save(tmp_path / f'{name}.npz', *poses(rng, added, at))
        option = '--validate' if name == 'more' else '--data'
        call += [option, log, str(added), *map(str, at)]
    return call


def test_a_matrix_from_added_masses(rng, tmp_path, workshop):
    call = _matrix_call(rng, tmp_path)
    out, written = tmp_path / 'a.json', tmp_path / 'new.yaml'
    assert main([
        'calibrate', 'matrix', *call, '--ft', 'foot', '--imu-rpy', '0', '0', '0',
        '--calibration', workshop, '--out', str(written), '--json', str(out),
    ]) == 0  # fmt: skip
    figures = json.loads(out.read_text())
    assert figures['rank'] == 40 and figures['axes'] == 'sensor' and not figures['findings']
    errors = (np.array(figures['matrix']) - MATRIX) / figures['deviations']
    assert np.abs(errors).max() < 6.0
    assert figures['body_mass'] == pytest.approx(MASS, abs=0.05)
    weighed = figures['data_sets'][str(tmp_path / 'more.npz')]
    # What T section 5.4 reaches.
    assert not weighed['fitted'] and weighed['found_mass'] == pytest.approx(FURTHER[0], abs=0.05)
    robot, sensors = read(written)
    assert robot == 'icub' and as_entry(sensors['foot'])['matrix'] == figures['matrix']
    np.testing.assert_allclose(sensors['foot'].offset, OFFSET, atol=2.0)


def test_axes_of_the_accelerometer_stay_apart(rng, tmp_path, workshop, capsys):
    written = tmp_path / 'new.yaml'
    call = [*_matrix_call(rng, tmp_path), '--ft', 'foot']
    assert main(['calibrate', 'matrix', *call, '--out', str(written)]) == 0
    assert read(written)[1]['foot'].axes == 'accelerometer'
    assert main(['calibrate', 'show', str(written)]) == 0
    assert 'accelerometer' in capsys.readouterr().out
    # An offset that is found with it stays in these axes.
    log = save(tmp_path / 'poses.npz', *poses(rng))
    assert offset(log, '--ft', 'foot', '--calibration', str(written), '--out', str(written)) == 0
    assert read(written)[1]['foot'].axes == 'accelerometer'
    # It does not go into the file of a robot.
    call += ['--calibration', workshop]
    assert main(['calibrate', 'matrix', *call, '--out', workshop]) == 1


@pytest.mark.parametrize('mistake', ['grams', 'millimetres', 'order', 'sign', 'mass'])
def test_a_matrix_that_cannot_be_is_not_written(rng, tmp_path, workshop, mistake):
    call, written, told = _matrix_call(rng, tmp_path), tmp_path / 'new.yaml', tmp_path / 'a.json'
    call += ['--ft', 'foot', '--imu-rpy', '0', '0', '0', '--out', str(written)]
    call += ['--calibration', workshop, '--json', str(told)]
    if mistake == 'order':
        call[7], call[13] = call[13], call[7]
    elif mistake == 'sign':
        call += ['--direction', 'parent_to_child']
    elif mistake == 'mass':
        call[9] = '0.25'
    else:
        columns = [2] if mistake == 'grams' else [3, 4, 5]
        for k in (first + column for first in range(0, 24, 6) for column in columns):
            call[k] = str(1000.0 * float(call[k]))
    assert main(['calibrate', 'matrix', *call]) == 1 and not written.exists()
    codes = {one['code'] for one in json.loads(told.read_text())['findings']}
    assert ('residual' if mistake == 'mass' else 'matrix_change') in codes


def test_errors_name_options(rng, tmp_path, capsys):
    log = save(tmp_path / 'log.npz', *poses(rng))
    assert offset(log, '--ft', 'foot', '--accelerometer-offset', 'nan', '0', '0') == 2
    assert '--accelerometer-offset' in capsys.readouterr().err
    assert offset(log, '--ft', 'foot', '--imu', '/imu') == 2
    call = _matrix_call(rng, tmp_path)
    call[-5] = f'{call[1]}@1:5'
    assert main(['calibrate', 'matrix', *call, '--ft', 'foot']) == 2
    assert '--validate' in capsys.readouterr().err
    numbers = ('half', '0', '0', '0')
    assert main(['calibrate', 'matrix', '--data', 'a.npz', *numbers, '--ft', 'foot']) == 2
    assert 'half' in capsys.readouterr().err


def test_data_sets_that_determine_no_matrix_are_refused(rng, tmp_path, capsys):
    call, written = [], tmp_path / 'new.yaml'
    for name, added in (('a', 0.0), ('b', 0.5), ('c', 1.0)):
        log = save(tmp_path / f'{name}.npz', *poses(rng, added, CENTRE + 0.1))
        call += ['--data', log, str(added), *map(str, CENTRE + 0.1)]
    assert main(['calibrate', 'matrix', *call, '--ft', 'foot', '--out', str(written)]) == 1
    assert '33 of 40' in capsys.readouterr().err and not written.exists()


def test_a_dead_channel_is_named(rng, tmp_path, capsys):
    log = save(tmp_path / 'log.npz', *poses(rng))
    held = dict(np.load(log))
    held['raw'][:, 2] = 5.0
    np.savez(log, **held)
    assert offset(log, '--ft', 'foot') == 1
    assert 'channel 3 (fz)' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('change', 'rank'),
    [
        (lambda C: C, None),
        (lambda C: np.where(np.arange(6)[:, None] == 2, 0.0, C), 5),
        (lambda C: np.where(np.arange(6) == 1, 0.0, C), 5),
    ],
)
def test_a_singular_matrix_is_shown_with_a_warning(tmp_path, capsys, change, rank):
    path, told = tmp_path / 'robot.yaml', tmp_path / 'told.json'
    write(path, 'icub', {'foot': SensorCalibration(change(MATRIX)), 'hand': SensorCalibration()})
    assert main(['calibrate', 'show', str(path), '--json', str(told)]) == 0
    assert set(json.loads(told.read_text())['sensors']) == {'foot', 'hand'}
    assert ('rank 5' in capsys.readouterr().out) == bool(rank)
