# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
``calibrate``: logs in, calibration files out.

Not covered: ``tool``, in `test_tool`, and ``live``, in `ros/test_calibration_session`.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rosbags')

from bag_messages import imu, joint_state, point, sent, temperature, wrench, write_bag
from brute_force import link_poses
from hanging_body import MASS, MATRIX, NOISE, OFFSET, counts, directions, wrenches
from replays import MS, START
from robots import arm_with_wrist_sensor_urdf
from shared_data import SHARED
from simulated_arm import swinging, tool_readings
from standing_biped import biped, biped_urdf, standing
from test_affine import K, off_by

from inertial_estimation.calibration.calibration_file import (
    ActiveCalibration,
    Provenance,
    SensorCalibration,
    as_entry,
    read,
    write,
)
from inertial_estimation.calibration.configured_estimator import (
    build_calibration,
    build_estimator,
    sensor_calibrations,
)
from inertial_estimation.calibration.offset_from_model import offset_from_model
from inertial_estimation.calibration.sensor_fits import calibrate_affine
from inertial_estimation.cli import main
from inertial_estimation.cli.calibrate_log import in_hindsight, predict_wrenches
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.findings import Level
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.log import LogSlice, TimeRange
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.sensor_log import read_body_log
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.robot import Robot

CONFIG = Path(__file__).resolve().parents[1] / 'config'
DATA = SHARED / 'data'
EXACT = 1e-6


def save(folder, bag, messages, urdf, **parameters):
    """Write a bag, and the files that a call needs beside it."""
    write_bag(folder / bag, list(messages))
    (folder / 'robot.urdf').write_text(urdf)
    (folder / 'node.yaml').write_text(json.dumps({'/**': {'ros__parameters': parameters}}))


def call(way, bag, *more):
    robot, config = (bag.with_name(name) for name in ('robot.urdf', 'node.yaml'))
    options = '--robot', robot, '--config', config, *more
    return main(['calibrate', way, str(bag), *map(str, options)])


SENSORS = ('l_leg', 'l_foot', 'r_leg', 'r_foot', 'arm')
SETTINGS = {
    'imus': ['root'],
    'contacts': ['l_sole', 'r_sole'],
    'ft_sensors': list(SENSORS),
    **{f'ft.{sensor}.frame_id': f'{sensor}_frame' for sensor in SENSORS},
}


def messages_of(shots, names, offsets, touched=()):
    """Yield messages of poses that are held for 3 s each, 100 a second."""
    for k in range(300 * len(shots)):
        shot, stamp = shots[k // 300], START + 10 * k * MS
        still = shot.positions, np.zeros(len(names))
        yield sent('/joint_states', joint_state, stamp, names, *still, late_ns=2 * MS)
        # Readings that repeat to the last digit count as frozen.
        live = 1e-9 * np.sin(k + np.arange(6))
        rates, proper = shot.angular_velocities[0], shot.proper_accelerations[0]
        yield sent('/imu/root', imu, stamp, 'root', rates + live[:3], proper + live[3:])
        for sensor, reading in zip(SENSORS, shot.ft_readings + offsets + live):
            yield sent(f'/ft/{sensor}', wrench, stamp, f'{sensor}_frame', reading)
        if k in touched:
            yield sent('/contacts', point, stamp, 'hand', [0.0, 0.0, 0.0])


def test_offsets_become_a_calibration_file_of_the_node(tmp_path, rng):
    robot, output, figures = biped(), tmp_path / 'ft.yaml', tmp_path / 'found.json'
    positions = rng.uniform(-0.5, 0.5, len(robot.joint_names))
    shots = [
        standing(robot, positions + 0.3 * k, {'l_sole': 1.0}, up=up)
        for k, up in enumerate(([0.0, 0.0, 1.0], [0.3, 0.4, 0.8]))
    ]
    offsets = rng.normal(0.0, 10.0, (5, 6))
    messages = messages_of(shots, list(robot.joint_names), offsets, touched=range(100, 150))
    save(tmp_path, 'bag', messages, biped_urdf(), **SETTINGS)
    more = '--support', 'l_sole', '--out', output, '--json', figures
    assert not call('offsets', tmp_path / 'bag', *more)
    found = json.loads(figures.read_text())
    assert not found['undetermined'] and not found['findings']
    assert found['left_out']['touched'] >= 50
    (step,) = read(output)[1]['arm'].provenance
    assert step.date == '2023-11-14T22:13:20+00:00' and step.samples > 300 and not step.notes
    given = EstimatorSettings.from_dict({**SETTINGS, 'calibration_file': str(output)})
    used = build_estimator(given, build_robot(given, biped_urdf())).calibration
    np.testing.assert_allclose(used.offsets, offsets, atol=EXACT)
    # The same log as a table.
    samples = open_log(tmp_path / 'bag', robot, EstimatorSettings.from_dict(SETTINGS)).samples
    times = (samples.stamp_ns - START) / 1e9
    columns = {'t': times, 'q': samples.positions, 'v': samples.velocities}
    columns |= {'w': samples.angular_velocities[:, 0], 'a': samples.proper_accelerations[:, 0]}
    columns |= {sensor: samples.ft_readings[:, k] for k, sensor in enumerate(SENSORS)}
    np.savez(tmp_path / 'table.npz', **columns)
    layout = {
        'time': 't', 'joints': list(robot.joint_names), 'positions': 'q', 'velocities': 'v',
        'ft_sensors': {sensor: sensor for sensor in SENSORS},
        'imus': {'root': {'gyroscope': 'w', 'accelerometer': 'a'}},
    }  # fmt: skip
    (tmp_path / 'layout.yaml').write_text(json.dumps({'log': layout}))
    more = '--layout', tmp_path / 'layout.yaml', '--support', 'l_sole', '--json', figures
    assert not call('offsets', tmp_path / 'table.npz', *more)
    sensors = json.loads(figures.read_text())['sensors']
    tabled = [sensors[sensor]['offset'] for sensor in SENSORS]
    np.testing.assert_allclose(tabled, offsets, atol=EXACT)
    # A shared load must be accepted, and is noted.
    more = '--support', 'l_sole', 'r_sole', '--out', output
    assert call('offsets', tmp_path / 'bag', *more) == 1
    assert not call('offsets', tmp_path / 'bag', *more, '--accept-split')
    sensors = read(output)[1]
    assert sensors['l_leg'].provenance[0].notes and not sensors['arm'].provenance[0].notes


def test_assumed_support_beside_another_contact_writes_nothing(tmp_path, rng):
    """The robot sets down its other foot; the configuration fixes the first."""
    robot, output, figures = biped(), tmp_path / 'ft.yaml', tmp_path / 'found.json'
    link, L_H_sole = robot.frame('l_sole')
    shots = []
    for bend, share in ((0.0, 1.0), (0.3, 0.5)):
        positions = np.full(len(robot.joint_names), bend)
        up = (link_poses(robot, positions)[link] @ L_H_sole)[:3, 2]
        shares = {'l_sole': share, 'r_sole': 1.0 - share}
        shots.append(standing(robot, positions, shares, up=up))
    messages = messages_of(shots, list(robot.joint_names), rng.normal(0.0, 10.0, (5, 6)))
    fixed = {**SETTINGS, 'fixed_link': 'l_sole', 'imus': []}
    save(tmp_path, 'bag', messages, biped_urdf(), **fixed)
    assert call('offsets', tmp_path / 'bag', '--out', output, '--json', figures) == 1
    findings = json.loads(figures.read_text())['findings']
    codes = [one['code'] for one in findings if one['level'] == 'error']
    assert {'second_support', 'residual'} == set(codes) and not output.exists()
    # A support that is named is not trusted either.
    named = '--support', 'l_sole', '--out', output
    assert call('offsets', tmp_path / 'bag', *named) == 1 and not output.exists()
    assert not call('offsets', tmp_path / 'bag', *named, '--accept')
    notes = read(output)[1]['l_leg'].provenance[0].notes
    assert 'r_sole' in str(notes) and any('accepted' in note for note in notes)
    # Both feet stand all the time, which only their heights show.
    positions = 0.17 * (np.array(robot.joint_names) == 'r_hip_pitch')
    up = (link_poses(robot, positions)[link] @ L_H_sole)[:3, 2]
    shot = standing(robot, positions, {'l_sole': 0.5, 'r_sole': 0.5}, up=up)
    messages = messages_of([shot], list(robot.joint_names), rng.normal(0.0, 10.0, (5, 6)))
    save(tmp_path, 'level', messages, biped_urdf(), **fixed)
    more = '--support', 'l_sole', '--out', tmp_path / 'level.yaml', '--json', figures
    assert call('offsets', tmp_path / 'level', *more) == 1 and not more[3].exists()
    *others, error = json.loads(figures.read_text())['findings']
    assert (error['code'], error['subject']) == ('second_support', 'r_sole')
    # One pose shows no wrong sign.
    assert {(one['code'], one['level']) for one in others} == {('unexcited', 'info')}


RATE, SECONDS = 100, 60.0
JOINTS = ['shoulder', 'elbow', 'lift']
WRIST_NOISE = np.repeat([0.02, 0.001], 3)
NODE = {
    'fixed_link': 'base',
    'ft_sensors': ['wrist_sensor'],
    'joint_states.topics': ['/joint_states'],
    'joint_states.velocity_source': 'filter',
    'joint_states.acceleration_source': 'filter',
    'filter.window': 0.2,
    'contacts': ['base', 'tip'],
    'ft.wrist_sensor.topic': '/ft',
    'ft.wrist_sensor.frame_id': 'wrist',
    'ft.wrist_sensor.noise': WRIST_NOISE.tolist(),
    'ft.wrist_sensor.temperature_topic': '/ft_temperature',
}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Write URDF, parameters, and bags of a sensor with a wrong matrix, or that warms up."""
    folder, rng = tmp_path_factory.mktemp('arm'), np.random.default_rng(5)
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    t = np.arange(round(SECONDS * RATE)) / RATE
    warmth = 25.0 + 6.0 * (1.0 - np.exp(-t / 12.0))
    samples = swinging(rng, SECONDS, RATE, n_fts=1, waves=((0.05, 0.13, 0.31), 0.5, 1.0))
    loads = tool_readings(robot, samples)
    noisy = loads + WRIST_NOISE * rng.normal(size=loads.shape) + OFFSET
    raw = np.linalg.solve(off_by(rng), noisy.T).T
    warming, pushes = noisy - K * (warmth[:, None] - 25.0), np.zeros_like(noisy)
    for at in range(0, len(t), 500):
        # For half of the time, as large as the tool is heavy.
        pushes[at : at + 250, :3] = rng.normal(0.0, 15.0, 3)
    for name, readings, unit in (
        ('moving', raw, 1.0), ('warming', warming, 1.0), ('pushed', warming + pushes, 1.0),
        ('degrees', raw, 180.0 / np.pi),
    ):  # fmt: skip
        messages = []
        for k, stamp in enumerate((START + samples.stamp_ns).tolist()):
            messages.append(sent('/ft', wrench, stamp, 'wrist', readings[k]))
            messages.append(
                sent('/joint_states', joint_state, stamp, JOINTS, unit * samples.positions[k])
            )
            if k % 100 == 0:
                warm = float(warmth[k])
                messages.append(sent('/ft_temperature', temperature, stamp, 'wrist', warm))
        save(folder, name, messages, arm_with_wrist_sensor_urdf(), **NODE)
    return folder


def test_matrix_of_a_simulated_arm(folder, tmp_path):
    saved, figures = tmp_path / 'arm.yaml', tmp_path / 'a.json'
    more = '--validate', f'{folder / "moving"}@45:60', '--out', saved, '--json', figures
    assert not call('affine', folder / 'moving@0:45', *more)
    found = json.loads(figures.read_text())['sensors']['wrist_sensor']
    assert (np.array(found['test_rms']) < 0.3 * np.array(found['test_rms_before']))[:3].all()
    np.testing.assert_allclose(found['test_rms'], 0.0, atol=0.15)
    robot, sensors = read(saved)
    assert robot == 'arm_with_wrist_sensor'
    np.testing.assert_array_equal(sensors['wrist_sensor'].matrix, found['matrix'])


def test_temperature_coefficients_of_a_simulated_arm(folder, tmp_path):
    saved = tmp_path / 'arm.yaml'
    assert not call('temperature', folder / 'warming', '--out', saved)
    sensor = read(saved)[1]['wrist_sensor']
    # The filter leaves 0.01 N of motions up to 0.3 Hz, over 6 K, and noise of 0.02 N.
    np.testing.assert_allclose(sensor.temperature_coefficients, K, atol=0.005)
    at_25 = sensor.offset + K * (sensor.reference_temperature - 25.0)
    np.testing.assert_allclose(at_25, OFFSET, atol=0.05)


def accepts(path, call):
    """Return whether a file is written only with --accept, and states so."""
    assert call() == 1 and not path.exists()
    assert call('--accept') == 0
    (sensor,) = read(path)[1].values()
    return any(note.startswith('accepted') for note in sensor.provenance[-1].notes)


@pytest.mark.parametrize('way', ['affine', 'temperature'])
def test_pushes_for_half_of_the_time_must_be_accepted(folder, tmp_path, way):
    saved = tmp_path / 'arm.yaml'
    assert accepts(saved, lambda *more: call(way, folder / 'pushed', '--out', saved, *more))


def test_errors_name_options(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    for way, part, more, named, code in (
        ('affine', 'moving@70:80', (), '70', 1),
        ('affine', 'moving@0:45', ('--validate', 'moving@40:60'), '--validate', 2),
        ('temperature', 'warming', ('--ft', 'wrst'), '--ft', 2),
        ('affine', 'degrees', (), 'elbow: position', 1),
        ('offsets', 'degrees', (), 'elbow: position', 1),
    ):
        assert call(way, folder / part, *more) == code
        assert named in capsys.readouterr().err


FROM, HALF, TO = 13.07, 39.355, 65.64
"""When the left sole of the real robot is flat, and the middle of that [s]."""
README_RIDGE = np.array([1.17, 2.10, 4.35, 0.67, 0.23, 0.14])
"""Residuals of r_leg in the README of the log, from one half for the other [N, Nm]."""


def test_touches_of_the_other_foot_of_a_real_robot_are_left_out():
    """The right foot scrapes the ground until 17 s and stands on it from 62 s on."""
    if not (DATA / 'icub_yoga_left' / 'bag').is_dir():
        pytest.skip('no real log')
    settings = in_hindsight(EstimatorSettings.from_yaml(CONFIG / 'icub_yoga_left.yaml'))
    robot = build_robot(settings, str(DATA / 'models' / 'icub_v2_5.urdf'))
    log = open_log(DATA / 'icub_yoga_left' / 'bag', robot, settings)
    predicted = predict_wrenches(log.within(TimeRange(FROM, TO)), robot, settings)
    calibrations = sensor_calibrations(settings, robot)
    first, second = (TimeRange(*one).mask(predicted.times) for one in ((FROM, HALF), (HALF, TO)))
    (leg, foot), refused = calibrate_affine(predicted, calibrations, first, test=second)
    assert refused.keys() == {'l_arm_ft', 'r_arm_ft', 'l_leg_ft', 'l_foot_ft'}
    times, k = predicted.times, list(calibrations).index('r_leg_ft')
    known = np.isfinite(predicted.samples.ft_readings[:, k] + predicted.wrenches[:, k]).all(axis=1)
    out = times[(times < HALF) & ~leg.used & known]
    # Its fx steps by 20 N at 24.6 s.
    assert (out < 25.0).all() and 0 < foot.fit.n_disturbed < 700
    before, after = leg.test['rms_before'], leg.test['rms']
    assert (after[1:] < 0.85 * README_RIDGE[1:]).all()
    assert np.mean((after / README_RIDGE) ** 2) < 0.3 and (after < before)[1:4].all()
    # 0.38 kg in free air hardly load the foot's sensor: most of the matrix is the prior's.
    assert 'unexcited' in {one.code for one in foot.findings}
    errors = {one.code for one in leg.findings if one.level == Level.ERROR}
    assert errors == {'matrix_change', 'disturbed'}


BETWEEN, NEAR = 42.6, 0.5
"""Weight between leg and foot sensors of an iCub by the model, and how near it is [N]."""


@pytest.mark.skipif(not DATA.is_dir(), reason='needs ../shared/data')
def test_tipping_offsets_leave_the_weight_between_leg_and_foot():
    """On both feet; 42.95 N and 47.97 N along the legs with the offsets of its own software."""
    settings = EstimatorSettings.from_yaml(CONFIG / 'icub_foot_tipping.yaml')
    robot = build_robot(settings, str(DATA / 'models' / 'icub_genova01.urdf'))
    log = open_log(DATA / 'icub_foot_tipping' / 'setup07' / 'bag', robot, settings)
    samples = log.within(TimeRange(0.0, 2.0)).samples
    feet, estimator = ('l_sole', 'r_sole'), build_estimator(settings, robot)
    own = offset_from_model(estimator, samples, feet, accept_split=True).offsets
    # It stands still.
    poses = link_poses(robot, np.nanmean(samples.positions, axis=0))
    forces = (np.nanmean(samples.ft_readings, axis=0) - own)[:, :3]
    fts = {ft.name: (poses[ft.child] @ ft.child_H_sensor)[:3, :3] for ft in robot.ft_sensors}
    at_root = {name: R @ force for (name, R), force in zip(fts.items(), forces, strict=True)}
    for side in 'lr':
        between = at_root[f'{side}_leg_ft'] - at_root[f'{side}_foot_ft']
        assert np.linalg.norm(between) == pytest.approx(BETWEEN, abs=NEAR)


# ---- By the body beyond a sensor ----------------------------------------------------------------

SETS = {'none': (0.0, (0, 0, 0)), 'far': (0.5, (0.3, -0.05, 0.1)), 'side': (0.5, (0.0, 0.2, 0.1))}
FURTHER = (0.7, (0.1, 0.1, 0.2))


def poses(rng, added=0.0, at=(0, 0, 0), n=300):
    """Return times, raw readings and accelerations."""
    g = directions(rng, n)
    found = wrenches(g, added, at) + rng.normal(size=(n, 6)) * NOISE
    return START / 1e9 + np.arange(n) / 10, counts(found), -g


LAYOUT = """
log:
  time: time
  ft_sensors: {foot: raw}
  imus: {imu: {accelerometer: accelerometer, gyroscope: gyroscope}}
"""


def save_table(path, time, raw, a, gyroscope=0.0):
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


def call_raw(way, *more):
    config = next(Path(one) for one in more if one.endswith('.npz')).with_name('layout.yaml')
    return main(['calibrate', way, *more, '--ft', 'foot', '--config', str(config)])


def test_offset_goes_into_the_file_of_the_robot(rng, tmp_path, workshop):
    turning = np.zeros((300, 3))
    turning[:30] = 0.5
    log = save_table(tmp_path / 'poses.npz', *poses(rng), gyroscope=turning)
    out = tmp_path / 'out.json'
    files = '--calibration', workshop, '--out', workshop, '--json', str(out)
    assert call_raw('offset-without-model', log, *files) == 0
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
    messages = []
    for at, reading, acceleration in zip(np.round(1e9 * time).astype(int).tolist(), raw, a):
        messages.append(sent('/foot/raw', wrench, at, 'foot', reading))
        # Its stamps are early, by as much as the settings add.
        readings = 'imu', np.zeros(3), acceleration
        messages.append(sent('/foot/imu', imu, at - 100 * MS, *readings, late_ns=100 * MS))
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
    log, before = save_table(tmp_path / 'log.npz', time, raw, flat), Path(workshop).read_text()
    for code, *more in (
        (1, '--calibration', workshop, '--out', workshop),
        (1, '--calibration', workshop, '--ft', 'feet'),
        (2, '--imu', '/imu'),
        (2, '--out', log),
        (2, '--accelerometer-offset', 'inf', '0', '0'),
    ):
        assert call_raw('offset-without-model', log, *more) == code
    assert '--accelerometer-offset' in capsys.readouterr().err
    assert Path(workshop).read_text() == before


def test_touched_poses_must_be_accepted(rng, tmp_path, workshop):
    time, raw, a = poses(rng)
    raw[::2] += counts(200.0 * NOISE * rng.normal(size=(150, 6)), offset=np.zeros(6))
    log, out = save_table(tmp_path / 'poses.npz', time, raw, a), tmp_path / 'new.yaml'
    more = '--calibration', workshop, '--out', str(out)
    assert accepts(out, lambda *insist: call_raw('offset-without-model', log, *more, *insist))


def test_temperature_is_needed_with_coefficients(rng, tmp_path, capsys):
    log, warm = save_table(tmp_path / 'log.npz', *poses(rng)), tmp_path / 'warm.yaml'
    write(warm, 'icub', {'foot': SensorCalibration(MATRIX, temperature_coefficients=np.ones(6))})
    given = 'offset-without-model', log, '--calibration', str(warm), '--out', str(warm)
    assert call_raw(*given) == 2 and '--temperature' in capsys.readouterr().err
    assert call_raw(*given, '--temperature', '31.5') == 0
    found = read(warm)[1]['foot']
    assert found.reference_temperature == 31.5 == found.provenance[0].temperature
    np.testing.assert_array_equal(found.temperature_coefficients, np.ones(6))


def test_matrix_from_added_masses(rng, tmp_path, workshop):
    out, written, data = tmp_path / 'a.json', tmp_path / 'new.yaml', []
    for name, (added, at) in (*SETS.items(), ('more', FURTHER)):
        time, raw, a = poses(rng, added, at)
        if name == 'more':
            raw[:30, 2] = np.nan
        log = save_table(tmp_path / f'{name}.npz', time, raw, a)
        option = '--validate' if name == 'more' else '--data'
        data += [option, log, str(added), *map(str, at)]
    data += ['--imu-rpy', '0', '0', '0', '--calibration', workshop, '--out', str(written)]
    wrong = '--direction', 'parent_to_child'
    assert accepts(written, lambda *insist: call_raw('matrix', *data, *wrong, *insist))
    written.unlink()
    assert call_raw('matrix', *data, '--json', str(out)) == 0
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


# ---- Calibration files --------------------------------------------------------------------------

STEP = Provenance(
    'offsets from the model, one support: sole', '2026-11-22T10:00:00+00:00', 1200, 31.5,
    (0.1, 0.2, 0.3, 0.01, 0.02, 0.03), ('legs share the load',),
)  # fmt: skip
ARM = 'arm_with_wrist_sensor'
SINGULAR = np.eye(6)[[0, 1, 2, 3, 3, 5]]


def some_sensor(seed=0):
    rng = np.random.default_rng(seed)
    return SensorCalibration(
        rng.normal(size=(6, 6)), rng.normal(size=6), rng.normal(size=6), 25.125, (STEP,)
    )


def test_all_digits_are_read_back_and_other_sensors_stay(tmp_path):
    path = tmp_path / 'icub.yaml'
    write(path, 'icub', {'left': some_sensor(0), 'right': some_sensor(2)})
    write(path, 'icub', {'left': some_sensor(1)})
    robot, found = read(path)
    assert robot == 'icub' and list(found) == ['left', 'right']
    for k, one in enumerate(found.values(), 1):
        assert one.same_as(some_sensor(k)) and one.provenance == (STEP,)
    before = path.read_text()
    with pytest.raises(ConfigError):
        write(path, 'ergocub', {'left': some_sensor(2)})
    # An offset does not go beside another matrix.
    one = some_sensor(1)
    with pytest.raises(ConfigError):
        write(path, 'icub', {'left': replace(one, matrix=2.0 * one.matrix)}, keeps=('matrix',))
    assert path.read_text() == before
    write(path, 'icub', {'left': replace(one, offset=np.ones(6))}, keeps=('matrix',))
    np.testing.assert_array_equal(read(path)[1]['left'].offset, np.ones(6))
    for right, wrong in ('version: 1', 'version: 7'), ('temperature: 25.125', 'temperature: .nan'):
        path.write_text(before.replace(right, wrong, 1))
        with pytest.raises(ConfigError):
            read(path)
    path.write_text(
        'ft_calibration: {version: 1, robot: arm, sensors: {wrist: {offset: [1, 2, 3, 4, 5, 6], '
        'provenance: [{date: 2026-11-24}]}}}'
    )
    wrist = read(path)[1]['wrist']
    assert wrist.same_as(SensorCalibration(offset=np.arange(1.0, 7.0)))
    assert [step.date for step in wrist.provenance] == ['2026-11-24']


def calibration_of_arm(path, **given):
    """Return the calibration of an arm whose parameters name a file."""
    settings = EstimatorSettings.from_dict(
        {'fixed_link': 'base', 'contacts': ['tip'], 'calibration_file': str(path), **given}
    )
    return build_calibration(settings, build_robot(settings, arm_with_wrist_sensor_urdf()))


def test_unusable_calibrations_are_refused(tmp_path):
    path = tmp_path / 'arm.yaml'
    settings = EstimatorSettings.from_dict({'fixed_link': 'base', 'contacts': ['tip']})
    built = build_robot(settings, arm_with_wrist_sensor_urdf())
    for robot, sensor in ('leg', some_sensor(5)), (ARM, SensorCalibration(SINGULAR)):
        path.unlink(missing_ok=True)
        write(path, robot, {'wrist_sensor': sensor})
        with pytest.raises(ConfigError):
            calibration_of_arm(path)
        active = ActiveCalibration(built, {'wrist_sensor': SensorCalibration()}, [])
        with pytest.raises(ConfigError):
            active.restore(str(path), *read(path))
        assert active.sensors['wrist_sensor'].same_as(SensorCalibration())
    path.unlink()
    write(path, ARM, {'wrst_sensor': some_sensor(5)})
    with pytest.raises(NameNotFound) as error:
        calibration_of_arm(path)
    assert error.value.name == 'wrst_sensor'
    write(path, ARM, {'wrist_sensor': some_sensor(5), 'not_in_use': some_sensor(6)})
    found = calibration_of_arm(path)
    np.testing.assert_array_equal(found.matrices[0], some_sensor(5).matrix)
    np.testing.assert_array_equal(found.offsets[0], some_sensor(5).offset)
    with pytest.raises(ConfigError):
        calibration_of_arm(path, **{'ft.wrist_sensor.offset': [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]})
    # A file is found beside the parameters that name it.
    node = tmp_path / 'node.yaml'
    node.write_text('/**: {ros__parameters: {fixed_link: base, calibration_file: arm.yaml}}')
    assert EstimatorSettings.from_yaml(node).calibration_file == str(path)
