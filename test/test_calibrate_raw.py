# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""``calibrate offset-without-model``, ``matrix``, ``show``: files in, a calibration file out."""

import json
from pathlib import Path

import numpy as np
import pytest
from bag_messages import IMU, WRENCH, imu, wrench, write_bag
from hanging_body import MASS, MATRIX, NOISE, OFFSET, counts, directions, wrenches

from inertial_estimation.calibration.calibration_file import (
    SensorCalibration,
    as_entry,
    read,
    write,
)
from inertial_estimation.cli import main
from inertial_estimation.errors import NameNotFound
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.log import LogSlice
from inertial_estimation.logs.sensor_log import read_body_log

SECOND = 1_000_000_000
START = 1_700_000_000
SETS = {'none': (0.0, (0, 0, 0)), 'far': (0.5, (0.3, -0.05, 0.1)), 'side': (0.5, (0.0, 0.2, 0.1))}
FURTHER = (0.7, (0.1, 0.1, 0.2))


def poses(rng, added=0.0, at=(0, 0, 0), n=300):
    """Return times, raw readings and accelerations."""
    g = directions(rng, n)
    found = wrenches(g, added, at) + rng.normal(size=(n, 6)) * NOISE
    return START + np.arange(n) / 10, counts(found), -g


LAYOUT = """
log:
  time: time
  ft_sensors: {foot: raw}
  imus: {imu: {accelerometer: accelerometer, gyroscope: gyroscope}}
"""


def save(path, time, raw, a, gyroscope=0.0):
    gyroscope = np.broadcast_to(gyroscope, a.shape)
    np.savez(path, time=time, raw=raw, accelerometer=a, gyroscope=gyroscope)
    path.with_name('layout.yaml').write_text(LAYOUT)
    return str(path)


@pytest.fixture
def workshop(tmp_path):
    """Return a calibration file with a matrix that is off by 2 %."""
    path = tmp_path / 'robot.yaml'
    sensors = {'foot': SensorCalibration(1.02 * MATRIX), 'hand': SensorCalibration()}
    write(path, 'icub', sensors)
    return str(path)


def call(way, *more):
    config = next(Path(one) for one in more if one.endswith('.npz')).with_name('layout.yaml')
    return main(['calibrate', way, *more, '--ft', 'foot', '--config', str(config)])


def test_offset_goes_into_the_file_of_the_robot(rng, tmp_path, workshop):
    turning = np.zeros((300, 3))
    turning[:30] = 0.5
    log = save(tmp_path / 'poses.npz', *poses(rng), gyroscope=turning)
    out = tmp_path / 'out.json'
    files = '--calibration', workshop, '--out', workshop, '--json', str(out)
    assert call('offset-without-model', log, *files) == 0
    robot, sensors = read(workshop)
    assert robot == 'icub' and set(sensors) == {'foot', 'hand'}
    np.testing.assert_array_equal(sensors['foot'].matrix, 1.02 * MATRIX)
    figures = json.loads(out.read_text())['sensors']['foot']
    assert figures['left_out']['moving'] == 30
    np.testing.assert_array_equal(sensors['foot'].offset, figures['offset'])
    errors = (sensors['foot'].offset / 1.02 - OFFSET) / figures['deviations']
    assert np.abs(errors).max() < 5.0
    (step,) = sensors['foot'].provenance
    assert step.date == '2023-11-14T22:13:20+00:00' and step.samples == 270
    np.testing.assert_allclose(step.spread, 1.02 * NOISE, rtol=0.2)


def test_readings_of_a_bag(rng, tmp_path):
    time, raw, a = poses(rng, n=60)
    pytest.importorskip('rosbags')
    messages = []
    for at, reading, acceleration in zip(np.round(time * SECOND).astype(int).tolist(), raw, a):
        messages.append(('/foot/raw', WRENCH, at, wrench(at, 'foot', reading)))
        # Its stamps are early, by as much as the settings add.
        data = imu(at - SECOND // 10, 'imu', np.zeros(3), acceleration)
        messages.append(('/foot/imu', IMU, at, data))
    bag = write_bag(tmp_path / 'bag', messages)
    node = {'imus': ['imu'], 'imu.imu': {'topic': 'foot/imu', 'time_offset': 0.1}}
    node['ft.foot.topic'] = 'foot/raw'
    (tmp_path / 'node.yaml').write_text(json.dumps({'/**': {'ros__parameters': node}}))
    settings = IdentifySettings.from_yaml(tmp_path / 'node.yaml')
    found = read_body_log(LogSlice.parse(f'{bag}@1:3'), settings, 'foot')
    np.testing.assert_array_equal(found.raw, raw[10:30])
    np.testing.assert_array_equal(found.accelerations, a[10:30])
    np.testing.assert_array_equal(found.turning, 0.0)
    assert found.date == '2023-11-14T22:13:21+00:00'
    with pytest.raises(NameNotFound):
        read_body_log(LogSlice(bag), settings, 'hand')


def test_refusal_leaves_files_as_they_were(rng, tmp_path, workshop, capsys):
    time, raw, a = poses(rng)
    flat = a * [1.0, 1.0, 0.0]
    flat *= 9.8 / np.linalg.norm(flat, axis=1)[:, None]
    log, before = save(tmp_path / 'log.npz', time, raw, flat), Path(workshop).read_text()
    for code, *more in (
        (1, '--calibration', workshop, '--out', workshop),
        (1, '--calibration', workshop, '--ft', 'feet'),
        (1, '--imu', '/imu'),
        (2, '--out', log),
        (2, '--accelerometer-offset', 'nan', '0', '0'),
    ):
        assert call('offset-without-model', log, *more) == code
    assert '--accelerometer-offset' in capsys.readouterr().err
    assert Path(workshop).read_text() == before


def test_temperature_is_needed_with_coefficients(rng, tmp_path, capsys):
    log, warm = save(tmp_path / 'log.npz', *poses(rng)), tmp_path / 'warm.yaml'
    write(warm, 'icub', {'foot': SensorCalibration(MATRIX, temperature_coefficients=np.ones(6))})
    given = 'offset-without-model', log, '--calibration', str(warm), '--out', str(warm)
    assert call(*given) == 2 and '--temperature' in capsys.readouterr().err
    assert call(*given, '--temperature', '31.5') == 0
    found = read(warm)[1]['foot']
    assert found.reference_temperature == 31.5 == found.provenance[0].temperature
    np.testing.assert_array_equal(found.temperature_coefficients, np.ones(6))


def test_matrix_from_added_masses(rng, tmp_path, workshop):
    out, written, data = tmp_path / 'a.json', tmp_path / 'new.yaml', []
    for name, (added, at) in (*SETS.items(), ('more', FURTHER)):
        time, raw, a = poses(rng, added, at)
        if name == 'more':
            raw[:30, 2] = np.nan
        log = save(tmp_path / f'{name}.npz', time, raw, a)
        option = '--validate' if name == 'more' else '--data'
        data += [option, log, str(added), *map(str, at)]
    data += ['--imu-rpy', '0', '0', '0', '--calibration', workshop, '--out', str(written)]
    assert call('matrix', *data, '--direction', 'parent_to_child') == 1 and not written.exists()
    assert call('matrix', *data, '--json', str(out)) == 0
    whole = json.loads(out.read_text())
    figures = whole['sensors']['foot']
    ((code, values),) = [(one['code'], one['values']) for one in whole['findings']]
    assert figures['rank'] == 40 and code == 'missing' and values['share'] == 0.1
    errors = (np.array(figures['matrix']) - MATRIX) / figures['deviations']
    assert np.abs(errors).max() < 6.0
    # T section 5.4 reaches this.
    assert figures['body_mass'] == pytest.approx(MASS, abs=0.05)
    weighed = whole['data_sets'][-1]
    assert weighed['residual_over_noise'] is None
    assert weighed['found_mass'] == pytest.approx(FURTHER[0], abs=0.05)
    robot, sensors = read(written)
    assert robot == 'icub' and as_entry(sensors['foot'])['matrix'] == figures['matrix']
    np.testing.assert_allclose(sensors['foot'].offset, OFFSET, atol=2.0)


def test_singular_matrix_is_shown_with_a_warning(tmp_path, capsys):
    path, out = tmp_path / 'robot.yaml', tmp_path / 'out.json'
    singular = np.where(np.arange(6)[:, None] == 2, 0.0, MATRIX)
    write(path, 'icub', {'foot': SensorCalibration(singular), 'hand': SensorCalibration(MATRIX)})
    assert main(['calibrate', 'show', str(path), '--json', str(out)]) == 0
    assert set(json.loads(out.read_text())['sensors']) == {'foot', 'hand'}
    assert capsys.readouterr().out.count('warning') == 1
