# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
``calibrate offset-without-model`` and ``calibrate matrix``: files in, tables and a file out.

Not covered: the mathematics, in `test_offset_in_situ` and `test_added_masses`.
"""

import json
import re

import numpy as np
import pytest
from hanging_body import CENTRE, MASS, MATRIX, NOISE, OFFSET, counts, directions, wrenches

from inertial_estimation.calibration.calibration_file import (
    SensorCalibration,
    as_entry,
    read,
    write,
)
from inertial_estimation.calibration.in_situ_steps import IN_ACCELEROMETER_AXES, ROTATION_FREE
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


def said(capsys):
    """Return what was printed, and what was said on failure, as one line each."""
    printed = capsys.readouterr()
    return ' '.join(printed.out.split()), ' '.join(printed.err.split())


def test_an_offset_goes_into_the_file_of_the_robot(rng, tmp_path, workshop, capsys):
    log = save(tmp_path / 'poses.npz', *poses(rng))
    out = tmp_path / 'out.json'
    picture = tmp_path / 'ellipsoid.png'
    drawn = ['--picture', str(picture)] if _draws() else []
    assert offset(
        log, '--ft', 'foot', '--calibration', workshop, '--out', workshop, '--json',
        str(out), *drawn,
    ) == 0  # fmt: skip
    printed, _ = said(capsys)
    assert 'offset without a model' in printed and ROTATION_FREE in printed
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
    assert ROTATION_FREE in step.notes
    assert not drawn or picture.read_bytes().startswith(b'\x89PNG')


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


def test_a_gyroscope_is_used_if_it_is_there(rng, tmp_path, capsys):
    time, raw, a = poses(rng)
    turning = np.zeros((300, 3))
    turning[:30] = 0.5
    log = save(tmp_path / 'log.npz', time, raw, a, gyroscope=turning)
    out = tmp_path / 'out.json'
    assert offset(log, '--ft', 'foot', '--json', str(out)) == 0
    assert json.loads(out.read_text())['left_out']['moving'] == 30
    assert '30 of 300' not in said(capsys)[0]


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


@pytest.mark.parametrize(
    ('columns', 'why'),
    [
        ({'accelerometer': np.zeros((9, 3))}, "no column 'raw'"),
        ({'raw': np.zeros((9, 6))}, "no column 'accelerometer'"),
        ({'raw': np.zeros((9, 5)), 'accelerometer': np.zeros((9, 3))}, '5 values.*expected 6'),
        ({'raw': np.zeros((9, 6)), 'accelerometer': np.zeros((8, 3))}, '8 instants.*9'),
    ],
)
def test_what_a_table_lacks_is_named(tmp_path, capsys, columns, why):
    np.savez(tmp_path / 'log.npz', **columns)
    assert offset(str(tmp_path / 'log.npz'), '--ft', 'foot') == 1
    assert re.search(why, said(capsys)[1])


def test_a_refusal_leaves_the_file_as_it_was(rng, tmp_path, workshop, capsys):
    time, raw, a = poses(rng)
    flat = a * [1.0, 1.0, 0.0]
    flat *= 9.8 / np.linalg.norm(flat, axis=1)[:, None]
    log = save(tmp_path / 'log.npz', time, raw, flat)
    with open(workshop) as file:
        before = file.read()
    assert offset(log, '--ft', 'foot', '--calibration', workshop, '--out', workshop) == 1
    assert '2 of 3 directions' in said(capsys)[1]
    with open(workshop) as file:
        assert file.read() == before


def test_another_sensor_or_an_unknown_temperature_are_refused(rng, tmp_path, workshop, capsys):
    log = save(tmp_path / 'log.npz', *poses(rng))
    assert offset(log, '--ft', 'feet', '--calibration', workshop) == 1
    assert 'there are foot, hand' in said(capsys)[1]
    warm = tmp_path / 'warm.yaml'
    thermal = SensorCalibration(MATRIX, temperature_coefficients=np.ones(6))
    write(warm, 'icub', {'foot': thermal})
    call = log, '--ft', 'foot', '--calibration', str(warm), '--out', str(warm)
    assert offset(*call) == 2
    assert 'give --temperature, that of this log' in said(capsys)[1]
    assert offset(*call, '--temperature', '31.5') == 0
    found = read(warm)[1]['foot']
    assert found.reference_temperature == 31.5 == found.provenance[0].temperature
    np.testing.assert_array_equal(found.temperature_coefficients, np.ones(6))


def test_what_is_read_is_not_written(rng, tmp_path, workshop, capsys):
    log = save(tmp_path / 'log.npz', *poses(rng))
    assert offset(log, '--ft', 'foot', '--out', log) == 2
    assert offset(log, '--ft', 'foot', '--calibration', workshop, '--json', workshop) == 2


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


def test_a_matrix_from_added_masses(rng, tmp_path, workshop, capsys):
    call = _matrix_call(rng, tmp_path)
    out, written, picture = (tmp_path / name for name in ('a.json', 'new.yaml', 'forces.svg'))
    drawn = ['--picture', str(picture)] if _draws() else []
    assert main([
        'calibrate', 'matrix', *call, '--ft', 'foot', '--imu-rpy', '0', '0', '0',
        '--calibration', workshop, '--out', str(written), '--json', str(out), *drawn,
    ]) == 0  # fmt: skip
    printed, _ = said(capsys)
    assert '40 of 40' in printed and 'masses of data sets that were not used' in printed
    figures = json.loads(out.read_text())
    assert figures['rank'] == 40 and figures['axes'] == 'sensor'
    errors = (np.array(figures['matrix']) - MATRIX) / figures['deviations']
    assert np.abs(errors).max() < 6.0
    assert figures['body_mass'] == pytest.approx(MASS, abs=0.05)
    weighed = figures['data_sets'][str(tmp_path / 'more.npz')]
    assert not weighed['fitted']
    # What T section 5.4 reaches.
    assert weighed['found_mass'] == pytest.approx(FURTHER[0], abs=0.05)
    robot, sensors = read(written)
    assert robot == 'icub'
    entry = as_entry(sensors['foot'])
    assert entry['matrix'] == figures['matrix']
    np.testing.assert_allclose(entry['offset'], OFFSET, atol=2.0)
    assert not drawn or picture.read_text().startswith('<?xml')


def test_without_a_rotation_the_axes_are_said_everywhere(rng, tmp_path, capsys):
    written = tmp_path / 'new.yaml'
    call = _matrix_call(rng, tmp_path)
    assert main(['calibrate', 'matrix', *call, '--ft', 'foot', '--out', str(written)]) == 0
    assert IN_ACCELEROMETER_AXES in said(capsys)[0]
    one = read(written)[1]['foot']
    assert IN_ACCELEROMETER_AXES in one.provenance[0].notes and one.axes == 'accelerometer'
    assert main(['calibrate', 'show', str(written)]) == 0
    assert 'foot: wrenches are in the axes of an accelerometer' in said(capsys)[0]
    # An offset that is found with it stays in these axes.
    log = save(tmp_path / 'poses.npz', *poses(rng))
    assert offset(
        log, '--ft', 'foot', '--calibration', str(written), '--out', str(written)
    ) == 0  # fmt: skip
    assert read(written)[1]['foot'].axes == 'accelerometer'


def test_a_matrix_in_other_axes_does_not_go_into_the_file_of_a_robot(
    rng, tmp_path, workshop, capsys
):
    call = [*_matrix_call(rng, tmp_path), '--ft', 'foot', '--calibration', workshop]
    assert main(['calibrate', 'matrix', *call, '--out', workshop]) == 1
    printed, refused = said(capsys)
    assert '40 of 40' in printed
    assert 'robots refuse a file with those of foot' in refused
    assert 'name another file to write, or give --imu-rpy, how the two are turned' in refused
    assert main(['calibrate', 'matrix', *call, '--out', str(tmp_path / 'turned.yaml')]) == 0


def test_readings_of_the_other_sign_are_doubted(rng, tmp_path, workshop, capsys):
    # The matrix changes sign with it: readings alone do not tell, the matrix before does.
    call = _matrix_call(rng, tmp_path)
    call += ['--ft', 'foot', '--imu-rpy', '0', '0', '0', '--calibration', workshop]
    assert main(['calibrate', 'matrix', *call]) == 0
    assert 'opposite' not in said(capsys)[0]
    # The code tells it also if no file is to be written.
    figures = tmp_path / 'new.json'
    call += ['--direction', 'parent_to_child', '--json', str(figures)]
    assert main(['calibrate', 'matrix', *call]) == 1
    printed, refused = said(capsys)
    assert 'about the opposite of the former matrix' in printed
    assert 'cannot be used, as the matrix is about the opposite' in refused
    found = json.loads(figures.read_text())
    (doubt,) = found['doubts']
    assert 'opposite' in doubt and doubt in found['warnings']
    assert found['off_former']['largest'] == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize(
    ('mistake', 'why'),
    [
        ('grams', r'forces are 9\d\d times those of the former .* kilograms'),
        ('millimetres', r'moments are 9\d\d times those of the former .* metres'),
        ('order', r'wrong order.* off the former matrix .*far\S* that of \S*side'),
        ('sign', 'about the opposite of the former matrix'),
    ],
)
def test_a_matrix_that_cannot_be_is_shown_and_not_written(
    rng, tmp_path, workshop, capsys, mistake, why
):
    call, written = _matrix_call(rng, tmp_path), tmp_path / 'new.yaml'
    call += ['--ft', 'foot', '--imu-rpy', '0', '0', '0', '--out', str(written)]
    if mistake == 'order':
        call[7], call[13] = call[13], call[7]
    elif mistake == 'sign':
        call += ['--direction', 'parent_to_child']
    else:
        columns = [2] if mistake == 'grams' else [3, 4, 5]
        for k in (first + column for first in range(0, 24, 6) for column in columns):
            call[k] = str(1000.0 * float(call[k]))
    assert main(['calibrate', 'matrix', *call, '--calibration', workshop]) == 1
    printed, refused = said(capsys)
    assert '40 of 40' in printed, refused
    assert re.search(why, printed.replace(f'{tmp_path}/', ''))
    assert f"'{written}' is not written, as " in refused and re.search(why, refused)
    remedy = 'give --direction child_to_parent' if mistake == 'sign' else 'centres of --data'
    assert f'{remedy}, or leave out --calibration' in refused
    assert not written.exists()
    # Nobody knows the former matrix: the size of loads is all that is odd.
    if mistake in ('grams', 'millimetres'):
        assert main(['calibrate', 'matrix', *call]) == 1
        refused = said(capsys)[1]
        assert re.search('masses are in kilograms|centres are in metres', refused)
        assert 'about right with --calibration' in refused and not written.exists()


@pytest.mark.parametrize('known', [True, False])
def test_a_matrix_that_its_own_data_contradict_is_not_written(
    rng, tmp_path, workshop, capsys, known
):
    call, written = _matrix_call(rng, tmp_path), tmp_path / 'new.yaml'
    call[9] = '0.25'
    call += ['--ft', 'foot', '--out', str(written)]
    call += ['--calibration', workshop] if known else []
    assert main(['calibrate', 'matrix', *call]) == 1
    printed, refused = said(capsys)
    assert '40 of 40' in printed and 'contradict each other' in printed, refused
    assert f"'{written}' is not written, as the data sets contradict each other" in refused
    assert "check masses and centres of --data, which are in the accelerometer's axes" in refused
    assert ('leave out --calibration' in refused) == known
    assert not written.exists()


def test_data_sets_that_share_samples_are_refused(rng, tmp_path, capsys):
    call = _matrix_call(rng, tmp_path)
    call[-5] = f'{call[1]}@1:5'
    assert main(['calibrate', 'matrix', *call, '--ft', 'foot']) == 2
    assert 'hold the same samples: name parts that do not overlap' in said(capsys)[1]


def test_the_help_says_what_separates_columns(capsys):
    for way in ('matrix', 'offset-without-model'):
        with pytest.raises(SystemExit):
            main(['calibrate', way, '--help'])
        assert 'with commas between their names as in fx,fy,fz,tx,ty,tz' in said(capsys)[0]


def test_errors_name_options(rng, tmp_path, capsys):
    log = save(tmp_path / 'log.npz', *poses(rng))
    assert offset(log, '--ft', 'foot', '--accelerometer-offset', 'nan', '0', '0') == 2
    assert '--accelerometer-offset is' in said(capsys)[1]
    assert offset(log, '--ft', 'foot', '--imu', '/imu') == 2
    assert '--imu is for bags' in said(capsys)[1]


@pytest.mark.parametrize(
    ('change', 'why'),
    [
        (lambda C: C, None),
        (lambda C: np.where(np.arange(6)[:, None] == 2, 0.0, C), 'rows fz are zero'),
        (lambda C: np.where(np.arange(6) == 1, 0.0, C), 'singular, of rank 5 of 6'),
        (lambda C: np.where(np.arange(6)[:, None] == 2, 2e-4 * C[1], C), 'singular, of rank 5'),
    ],
)
def test_a_singular_matrix_is_shown_with_a_warning(tmp_path, capsys, change, why):
    path, told = tmp_path / 'robot.yaml', tmp_path / 'told.json'
    write(path, 'icub', {'foot': SensorCalibration(change(MATRIX)), 'hand': SensorCalibration()})
    assert main(['calibrate', 'show', str(path), '--json', str(told)]) == 0
    printed, warnings = said(capsys)[0], json.loads(told.read_text())['warnings']
    assert ('warning:' in printed) == bool(why) == bool(warnings)
    if why:
        (warning,) = warnings
        assert warning.startswith('foot: the matrix is singular') and why in warning


def test_a_dead_channel_is_named_with_where_to_look(rng, tmp_path, workshop, capsys):
    call, written = _matrix_call(rng, tmp_path), tmp_path / 'new.yaml'
    for log in call[1::6]:
        held = dict(np.load(log))
        held['raw'][:, 2] = 5.0
        np.savez(log, **held)
    for way in (['matrix', *call], ['offset-without-model', call[1], '--calibration', workshop]):
        assert main(['calibrate', *way, '--ft', 'foot', '--out', str(written)]) == 1
        told = said(capsys)[1]
        assert 'number 3 (fz of a wrench) never changes while the others do' in told
        assert "look at the sensor's cable and topic, or at --readings" in told
    assert not written.exists()


def test_what_nothing_checks_is_said(rng, tmp_path, workshop, capsys):
    call = ['calibrate', 'matrix', *_matrix_call(rng, tmp_path), '--ft', 'foot']
    assert main(call) == 0
    assert 'nothing checks units and --direction' in said(capsys)[0]
    assert main([*call, '--calibration', workshop]) == 0
    assert 'nothing checks' not in said(capsys)[0]
    # A file with the identity says that readings are wrenches, which these are not.
    plain = tmp_path / 'plain.yaml'
    write(plain, 'icub', {'foot': SensorCalibration()})
    log = save(tmp_path / 'poses.npz', *poses(rng))
    assert main([*call, '--calibration', str(plain)]) == 1
    assert 'leave out --calibration if the readings are no wrenches' in said(capsys)[1]
    for more, taken in (([], 'for wrenches [N, Nm]'), (['--calibration', workshop], 'the matrix')):
        assert offset(log, '--ft', 'foot', *more) == 0
        printed, _ = said(capsys)
        assert 'nothing checks the unit of the readings' in printed and taken in printed


def test_data_sets_that_tell_no_matrix_are_refused_with_the_rank(rng, tmp_path, capsys):
    call = []
    for name, added in (('a', 0.0), ('b', 0.5), ('c', 1.0)):
        log = save(tmp_path / f'{name}.npz', *poses(rng, added, CENTRE + 0.1))
        call += ['--data', log, str(added), *map(str, CENTRE + 0.1)]
    written = tmp_path / 'new.yaml'
    assert main(['calibrate', 'matrix', *call, '--ft', 'foot', '--out', str(written)]) == 1
    assert 'tell 33 of 40 unknowns' in said(capsys)[1]
    assert not written.exists()


@pytest.mark.parametrize(
    ('numbers', 'why'),
    [(('half', '0', '0', '0'), "KG of .*is 'half'"), (('0.5', '0', 'y', '0'), "Y of .*is 'y'")],
)
def test_numbers_that_are_none_are_named(tmp_path, capsys, numbers, why):
    assert main(['calibrate', 'matrix', '--data', 'a.npz', *numbers, '--ft', 'foot']) == 2
    assert re.search(why, said(capsys)[1])


def _draws():
    """Tell whether pictures can be drawn."""
    from importlib.util import find_spec

    return find_spec('matplotlib') is not None
