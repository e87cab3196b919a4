# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""``calibrate offsets``, ``affine``, ``temperature``: bags in, calibration files out."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip('rosbags')

from bag_messages import (
    IMU,
    JOINT_STATE,
    POINT,
    TEMPERATURE,
    WRENCH,
    imu,
    joint_state,
    point,
    temperature,
    wrench,
    write_bag,
)
from brute_force import link_poses
from robots import arm_with_wrist_sensor_urdf
from shared_data import SHARED
from standing_biped import biped, biped_urdf, standing
from test_affine import OFFSET, UNITS, loads, off_by

from inertial_estimation.calibration.affine import AffineSettings, fit_affine
from inertial_estimation.calibration.calibration_file import SensorCalibration, read, write
from inertial_estimation.calibration.configured_estimator import (
    build_estimator,
    sensor_calibrations,
)
from inertial_estimation.calibration.offset_from_model import offset_from_model
from inertial_estimation.calibration.sensor_fits import calibrate_affine
from inertial_estimation.cli import main
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import LogError
from inertial_estimation.findings import Level
from inertial_estimation.logs.log import TimeRange
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.predicted_wrenches import in_hindsight, predict_wrenches
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.link_motions import link_motions, poses_in_parents
from inertial_estimation.model.regressor import net_wrench_regressor
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

CONFIG = Path(__file__).resolve().parents[1] / 'config'
DATA = SHARED / 'data'
START = 1_700_000_000_000_000_000
MS = 1_000_000
SENSORS = ('l_leg', 'l_foot', 'r_leg', 'r_foot', 'arm')
# What keeps the sensors alive, times the mass.
EXACT = 1e-6
SETTINGS = {
    'imus': ['root'],
    'contacts': ['l_sole', 'r_sole'],
    'ft_sensors': list(SENSORS),
    **{f'ft.{sensor}.frame_id': f'{sensor}_frame' for sensor in SENSORS},
}


def messages_of(shots, names, offsets, touched=()):
    """Return messages of poses that are held for 3 s each, 100 a second."""
    messages = []
    for k in range(300 * len(shots)):
        shot, stamp = shots[k // 300], START + 10 * k * MS
        data = joint_state(stamp, names, shot.positions, np.zeros(len(names)))
        messages.append(('/joint_states', JOINT_STATE, stamp + 2 * MS, data))
        # No sensor repeats itself to the last digit for long: such a one would count as frozen.
        live = 1e-9 * np.sin(k + np.arange(6))
        data = imu(
            stamp, 'root', shot.angular_velocities[0] + live[:3],
            shot.proper_accelerations[0] + live[3:],
        )  # fmt: skip
        messages.append(('/imu/root', IMU, stamp + MS, data))
        for sensor, reading in zip(SENSORS, shot.ft_readings + offsets + live):
            data = wrench(stamp, f'{sensor}_frame', reading)
            messages.append((f'/ft/{sensor}', WRENCH, stamp + MS, data))
        if k in touched:
            data = point(stamp, 'hand', [0.0, 0.0, 0.0])
            messages.append(('/contacts', POINT, stamp + MS, data))
    return messages


@pytest.fixture
def held(tmp_path, rng):
    """Return what the command needs, and the offsets in the bag."""
    robot = biped()
    positions = rng.uniform(-0.5, 0.5, len(robot.joint_names))
    shots = [
        standing(robot, positions + 0.3 * k, {'l_sole': 1.0}, up=up)
        for k, up in enumerate(([0.0, 0.0, 1.0], [0.3, 0.4, 0.8]))
    ]
    offsets = rng.normal(0.0, 10.0, (5, 6))
    names = list(robot.joint_names)
    write_bag(tmp_path / 'bag', messages_of(shots, names, offsets, touched=range(100, 150)))
    (tmp_path / 'robot.urdf').write_text(biped_urdf())
    (tmp_path / 'node.yaml').write_text(json.dumps({'/**': {'ros__parameters': SETTINGS}}))
    return tmp_path, offsets


def call(folder, *more, part=''):
    """Run the command."""
    return main([
        'calibrate', 'offsets', f'{folder / "bag"}{part}', '--robot', str(folder / 'robot.urdf'),
        '--config', str(folder / 'node.yaml'), *more,
    ])  # fmt: skip


def test_offsets_become_a_calibration_file_that_the_node_uses(held, capsys):
    folder, offsets = held
    output, figures = folder / 'ft.yaml', folder / 'found.json'
    assert not call(folder, '--support', 'l_sole', '--out', str(output), '--json', str(figures))
    robot, sensors = read(output)
    assert robot == 'biped' and tuple(sensors) == SENSORS
    for k, sensor in enumerate(sensors.values()):
        np.testing.assert_allclose(sensor.offset, offsets[k], atol=EXACT)
        (step,) = sensor.provenance
        assert step.method == 'offsets from the model, one support: l_sole'
        assert step.date == '2023-11-14T22:13:20+00:00'
        assert step.n_samples > 300 and not step.notes
    found = json.loads(figures.read_text())
    assert found['is_unique'] and not found['undetermined'] and not found['findings']
    assert found['left_out']['touched'] >= 50
    assert found['left_out']['moving'] > 0, 'from pose to pose'
    assert len(found['sensors']['arm']['poses']['residuals']) == 2
    given = EstimatorSettings.from_dict({**SETTINGS, 'calibration_file': str(output)})
    used = build_estimator(given, build_robot(given, biped_urdf())).calibration
    np.testing.assert_allclose(used.offsets, offsets, atol=EXACT)


def test_a_split_must_be_accepted_and_is_noted(held, capsys):
    folder, offsets = held
    supports = ('--support', 'l_sole', 'r_sole')
    assert call(folder, *supports) == 1
    output = folder / 'ft.yaml'
    assert not call(folder, *supports, '--ft', 'arm', '--out', str(output))
    np.testing.assert_allclose(read(output)[1]['arm'].offset, offsets[4], atol=EXACT)
    assert not call(folder, *supports, '--accept-split', '--out', str(output))
    _, sensors = read(output)
    (step,) = sensors['l_leg'].provenance
    assert step.method == 'offsets from the model, supports: l_sole, r_sole'
    assert step.notes and not sensors['arm'].provenance[0].notes


@pytest.fixture
def on_both_feet(tmp_path, rng):
    """Return what the command needs; the robot stands on both feet, the file fixes one of them."""
    robot = biped()
    still = np.zeros(len(robot.joint_names))
    poses = link_poses(robot, still)
    frames = (robot.frame(sole) for sole in ('l_sole', 'r_sole'))
    left, right = (poses[link] @ L_H_sole for link, L_H_sole in frames)
    # Upward as far as both soles are as high.
    along = (left - right)[:3, 3] / np.linalg.norm((left - right)[:3, 3])
    up = np.array([0.0, 0.0, 1.0]) - along[2] * along
    shot = standing(robot, still, {'l_sole': 0.5, 'r_sole': 0.5}, up=up)
    offsets = rng.normal(0.0, 10.0, (5, 6))
    write_bag(tmp_path / 'bag', messages_of([shot], list(robot.joint_names), offsets))
    (tmp_path / 'robot.urdf').write_text(biped_urdf())
    gravity = -9.81 * left[:3, :3].T @ up / np.linalg.norm(up)
    node = SETTINGS | {'fixed_link': 'l_sole', 'imus': [], 'gravity': gravity.tolist()}
    (tmp_path / 'node.yaml').write_text(json.dumps({'/**': {'ros__parameters': node}}))
    return tmp_path, offsets


def test_an_assumed_support_beside_another_contact_writes_nothing(on_both_feet, capsys):
    folder, offsets = on_both_feet
    output, figures = folder / 'ft.yaml', folder / 'found.json'
    assert call(folder, '--out', str(output)) == 1 and not output.exists()
    # Without a file nothing is refused.
    assert not call(folder, '--json', str(figures))
    found = json.loads(figures.read_text())
    (one,) = found['findings']
    assert found['support_assumed'] and one['code'] == 'second_support'
    # A support that is named is believed; the finding goes into the file.
    assert not call(folder, '--support', 'l_sole', '--out', str(output))
    assert 'r_sole' in str(read(output)[1]['l_leg'].provenance[0].notes)
    both = ('--support', 'l_sole', 'r_sole', '--accept-split')
    assert not call(folder, *both, '--out', str(output))
    np.testing.assert_allclose(read(output)[1]['arm'].offset, offsets[4], atol=EXACT)


def test_the_former_calibration_can_be_named(held, capsys):
    folder, offsets = held
    former = folder / 'former.yaml'
    matrix = 2.0 * np.eye(6)
    write(former, 'biped', {'arm': SensorCalibration(matrix)})
    more = ('--support', 'l_sole', '--ft', 'arm', '--calibration', str(former))
    assert not call(folder, *more, '--out', str(former))
    found = read(former)[1]['arm']
    np.testing.assert_array_equal(found.matrix, matrix)
    assert np.abs(found.offset - offsets[4]).max() > 1.0, 'readings count twice'
    assert call(folder, *more[:-1], str(folder / 'none.yaml')) == 1
    former.unlink()
    write(former, 'other', {'arm': SensorCalibration(matrix)})
    assert call(folder, *more) == 1


@pytest.mark.parametrize(
    ('more', 'part', 'named', 'code'),
    [
        (('--support', 'l_sole', '--ft', 'leg'), '', '--ft', 1),
        (('--support', 'l_sole', 'l_sole'), '', '--support', 2),
        (('--support', 'l_sole', 'r_sole'), '', '--accept-split', 1),
        ((), '', '--support', 2),
        (('--support', 'l_soul'), '', '--support', 1),
        (('--support', 'l_sole'), '@2.8:3.2', '10', 1),
    ],
)
def test_errors_name_options(held, capsys, more, part, named, code):
    assert call(held[0], *more, part=part) == code
    assert named in capsys.readouterr().err


@pytest.fixture(scope='module')
def tipping():
    """Return settings, robot and log of an iCub that stands on both feet before it tips over."""
    bag = DATA / 'icub_foot_tipping' / 'setup07' / 'bag'
    if not bag.is_dir():
        pytest.skip('the shared data folder is not beside this checkout')
    settings = EstimatorSettings.from_yaml(CONFIG / 'icub_foot_tipping.yaml')
    robot = build_robot(settings, str(DATA / 'models' / 'icub_genova01.urdf'))
    return settings, robot, open_log(bag, robot, settings)


def test_offsets_of_a_robot_on_both_feet_are_not_written_as_of_one(tipping, tmp_path):
    output = tmp_path / 'ft.yaml'
    code = main([
        'calibrate', 'offsets', f'{DATA}/icub_foot_tipping/setup07/bag@0:2.5', '--robot',
        str(DATA / 'models' / 'icub_genova01.urdf'), '--config',
        str(CONFIG / 'icub_foot_tipping.yaml'), '--out', str(output),
    ])  # fmt: skip
    assert code == 1 and not output.exists()


def test_a_tipping_robot_is_not_still(tipping):
    settings, robot, recording = tipping
    found = offset_from_model(
        build_estimator(settings, robot), recording.samples, ['l_sole', 'r_sole'],
        accept_split=True,
    )  # fmt: skip
    assert found.left_out['moving'] > 150 and not found.unique.any()
    # It tips over from 7 s on.
    assert recording.times[found.used.any(axis=1)].max() < 7.0


def test_poses_of_a_hanging_leg_show_its_wrong_matrix(tmp_path):
    bag, told = DATA / 'icub_yoga_left' / 'bag', tmp_path / 'found.json'
    if not bag.is_dir():
        pytest.skip('no real log')
    assert not main([
        'calibrate', 'offsets', f'{bag}@13.07:65.64', '--robot',
        str(DATA / 'models' / 'icub_v2_5.urdf'), '--config',
        str(CONFIG / 'icub_yoga_left.yaml'), '--json', str(told),
    ])  # fmt: skip
    found = json.loads(told.read_text())
    leg = found['sensors']['r_leg_ft']['poses']
    assert leg['turn'] > 1.0 and leg['differing'][0] > 5.0 and found['is_unique']
    assert ('r_leg_ft', 'offset_drift') in {(f['subject'], f['code']) for f in found['findings']}
    assumed = {name for name, one in found['sensors'].items() if one['assumed']}
    assert assumed == {'l_arm_ft', 'r_arm_ft', 'l_leg_ft', 'l_foot_ft'}


RATE, SECONDS = 100, 60.0
JOINTS = ['shoulder', 'elbow', 'lift']
K = np.array([0.5, -0.2, 1.0, 0.01, 0.02, -0.03])
NOISE = np.repeat([0.02, 0.001], 3)
NODE = {
    'fixed_link': 'base',
    'ft_sensors': ['wrist_sensor'],
    'joint_topics': ['/joint_states'],
    'velocity_source': 'filter',
    'acceleration_source': 'filter',
    'derivative_window': 0.2,
    'contacts': ['base', 'tip'],
    'ft': {
        'wrist_sensor': {'topic': '/ft', 'frame_id': 'wrist', 'noise': NOISE.tolist()},
    },
}
FROM, HALF, TO = 13.07, 39.355, 65.64
"""When the left sole of the real robot is flat, and the middle of that [s]."""
README_RIDGE = np.array([1.17, 2.10, 4.35, 0.67, 0.23, 0.14])
"""What the README of the log reports for r_leg, from one half for the other [N, Nm]."""


def warmth(t):
    return 25.0 + 6.0 * (1.0 - np.exp(-t / 12.0))


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Write a description, the node's settings, and bags of a sensor that is off."""
    folder = tmp_path_factory.mktemp('arm')
    rng = np.random.default_rng(5)
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    t = np.arange(round(SECONDS * RATE)) / RATE
    q, v, a = np.zeros((3, len(t), 3))
    for f in (0.05, 0.13, 0.31):
        size = np.array([1.2, 0.9, 0.1]) * rng.uniform(0.5, 1.0, 3)
        phase, w = rng.uniform(0, 6, 3), 2 * np.pi * f
        q += size * np.sin(w * t[:, None] + phase)
        v += w * size * np.cos(w * t[:, None] + phase)
        a -= w**2 * size * np.sin(w * t[:, None] + phase)
    stamps = START + np.round(t * 1e9).astype(np.int64)
    empty = np.zeros((len(t), 0, 3))
    samples = SampleBatch(stamps, q, v, a, empty, empty, empty, np.zeros((len(t), 1, 6)))
    tool = robot.link_names.index('tool')
    motions = link_motions(robot, samples, poses_in_parents(robot, q))
    wrenches = -net_wrench_regressor(motions[tool]) @ robot.parameters[tool]
    matrix = off_by(rng)
    np.savez(folder / 'truth.npz', matrix=matrix)
    noisy = wrenches + NOISE * rng.normal(size=wrenches.shape)
    (folder / 'arm.urdf').write_text(arm_with_wrist_sensor_urdf())
    (folder / 'node.yaml').write_text(yaml.safe_dump({'/**': {'ros__parameters': NODE}}))
    touched = noisy.copy()
    touched[2000:2080, 0] += 15.0
    raw = np.linalg.solve(matrix, (touched + OFFSET).T).T
    record(folder / 'moving', stamps, q, raw, warmth(t))
    warm = noisy + OFFSET - K * (warmth(t)[:, None] - 25.0)
    record(folder / 'warming', stamps, q, warm, warmth(t))
    record(folder / 'cold', stamps, q, warm, 25.0 + 0.01 * t)
    part = slice(0, 20 * RATE)
    dead = raw.copy()
    dead[:, 0] = 1.0
    record(folder / 'dead', stamps[part], q[part], dead[part], warmth(t[part]))
    # Of another sensor than the matrix so far, which lets a third of one force through.
    loud = (noisy + OFFSET) / np.array([1.0, 1.0, 0.3, 1.0, 1.0, 1.0])
    record(folder / 'loud', stamps[part], q[part], loud[part], warmth(t[part]))
    record(folder / 'kelvin', stamps[part], q[part], warm[part], 273.15 + warmth(t[part]))
    return folder


def record(path, stamps, positions, raw, temperatures):
    messages = []
    rows = zip(stamps.tolist(), positions, raw, temperatures, strict=True)
    for k, (stamp, q, reading, degrees) in enumerate(rows):
        messages.append(('/ft', WRENCH, stamp, wrench(stamp, 'wrist', reading)))
        messages.append(('/joint_states', JOINT_STATE, stamp, joint_state(stamp, JOINTS, q)))
        if k % 100 == 0:
            data = temperature(stamp, 'wrist', float(degrees))
            messages.append(('/ft_temperature', TEMPERATURE, stamp, data))
    return write_bag(path, messages)


def run(folder, way, bag, *more, part=''):
    return main([
        'calibrate', way, f'{folder / bag}{part}', '--robot', str(folder / 'arm.urdf'),
        '--config', str(folder / 'node.yaml'), *map(str, more),
    ])  # fmt: skip


def test_the_matrix_of_a_simulated_arm(folder, tmp_path):
    truth = np.load(folder / 'truth.npz')['matrix']
    saved, told = tmp_path / 'arm.yaml', tmp_path / 'found.json'
    more = ('--validate', f'{folder / "moving"}@45:60', '--out', saved, '--json', told)
    assert run(folder, 'affine', 'moving', *more, part='@0:45') == 0
    found = json.loads(told.read_text())['wrist_sensor']
    # A touch of 0.8 s, what the filter smears and a tenth of a second to either side.
    assert 80 <= found['n_disturbed'] <= 140
    test = found['test']
    assert (np.array(test['rms'])[:3] < 0.3 * np.array(test['rms_before'])[:3]).all()
    np.testing.assert_allclose(test['rms'], 0.0, atol=0.15)
    # Along what the log determines: errors within some deviations.
    deviations = np.array(found['matrix_deviations'])
    error = (np.array(found['matrix']) - truth) / deviations
    sure = deviations / np.outer(UNITS, 1 / UNITS) < 0.02
    assert sure.sum() >= 6 and np.abs(error[sure]).max() < 8.0
    robot, sensors = read(saved)
    assert robot == 'arm_with_wrist_sensor'
    np.testing.assert_array_equal(sensors['wrist_sensor'].matrix, found['matrix'])
    (step,) = sensors['wrist_sensor'].provenance
    assert step.method == 'matrix and offset from the model, one support: base'


@pytest.mark.parametrize(
    ('part', 'validate'),
    [('@0:45', 'moving@40:60'), ('@0:45', 'moving'), ('@0:45', 'warming@45:60')],
)
def test_what_is_fitted_does_not_test_itself(folder, part, validate):
    assert run(folder, 'affine', 'moving', '--validate', folder / validate, part=part) == 2


def test_a_picture_is_drawn(folder, tmp_path):
    pytest.importorskip('matplotlib')
    picture = tmp_path / 'left.png'
    assert run(folder, 'affine', 'moving', '--picture', picture) == 0
    assert picture.read_bytes().startswith(b'\x89PNG')
    assert run(folder, 'affine', 'moving', '--picture', 'left.xyz') == 2


@pytest.mark.parametrize(
    ('part', 'more', 'named', 'code'),
    [
        ('', ('--ft', 'wrist'), '--ft', 1),
        ('@70:80', (), '70', 1),
        ('@8:7', (), '8', 2),
        ('@1:1.2', (), '10 blocks', 1),
        ('', ('--prior-weight', '-1'), '--prior-weight', 2),
        ('', ('--prior-weight', '1e-9', '--blocks', '1', '--ft', 'wrist_sensor'), '--blocks', 2),
        ('', ('--support', 'nowhere'), '--support', 1),
    ],
)
def test_affine_errors_name_options(folder, capsys, part, more, named, code):
    assert run(folder, 'affine', 'moving', *more, part=part) == code
    assert named in capsys.readouterr().err


def test_a_dead_channel_is_refused_unless_the_sensor_has_no_noise(folder, tmp_path, capsys):
    saved = tmp_path / 'arm.yaml'
    assert run(folder, 'affine', 'dead', '--out', saved) == 1
    assert 'channel 1 (fx)' in capsys.readouterr().err and not saved.exists()
    ft = {'wrist_sensor': NODE['ft']['wrist_sensor'] | {'frozen_after': 0.0}}
    node = tmp_path / 'node.yaml'
    node.write_text(yaml.safe_dump({'/**': {'ros__parameters': NODE | {'ft': ft}}}))
    main([
        'calibrate', 'affine', str(folder / 'dead'), '--robot', str(folder / 'arm.urdf'),
        '--config', str(node),
    ])  # fmt: skip
    assert 'channel 1' not in capsys.readouterr().err


def test_a_matrix_far_from_the_former_one_is_written_on_request_only(folder, tmp_path):
    saved, told = tmp_path / 'arm.yaml', tmp_path / 'found.json'
    more = ('--out', saved, '--json', told)
    assert run(folder, 'affine', 'loud', *more) == 1 and not saved.exists()
    assert 'matrix_change' in {one['code'] for one in json.loads(told.read_text())['findings']}
    # Without a file to write nothing is refused.
    assert run(folder, 'affine', 'loud') == 0
    assert run(folder, 'affine', 'loud', '--accept-doubts', *more) == 0
    assert read(saved)[1]['wrist_sensor'].provenance[0].notes


def test_a_file_of_another_robot_stays(folder, tmp_path):
    saved = tmp_path / 'other.yaml'
    saved.write_text('ft_calibration: {version: 1, robot: another, sensors: {}}\n')
    assert run(folder, 'affine', 'moving', '--out', saved) == 1
    assert run(folder, 'temperature', 'moving', '--calibration', saved) == 1


def test_the_temperature_coefficients_of_a_simulated_arm(folder, tmp_path):
    saved, told = tmp_path / 'arm.yaml', tmp_path / 'found.json'
    more = ('--temperature-topic', 'wrist_sensor=/ft_temperature', '--reference-temperature', 25)
    more += ('--out', saved, '--json', told, '--ft', 'wrist_sensor')
    assert run(folder, 'temperature', 'warming', *more) == 0
    found = json.loads(told.read_text())['wrist_sensor']
    # What a filter makes of motions up to 0.3 Hz, 0.01 N, over 6 K, and noise of 0.02 N.
    np.testing.assert_allclose(found['coefficients'], K, atol=0.005)
    np.testing.assert_allclose(found['offset'], OFFSET, atol=0.05)
    sensor = read(saved)[1]['wrist_sensor']
    assert sensor.reference_temperature == 25.0
    np.testing.assert_array_equal(sensor.temperature_coefficients, found['coefficients'])


@pytest.mark.parametrize(
    ('bag', 'more', 'named', 'code'),
    [
        ('cold', ('wrist_sensor=/ft_temperature',), '--least-change', 1),
        ('warming', (), '--temperature-topic', 2),
        ('warming', ('wrist=/ft_temperature',), '--temperature-topic', 1),
        ('warming', ('wrist_sensor=/ft',), 'WrenchStamped', 1),
        ('warming', ('wrist_sensor=/t',), '/t', 1),
        ('warming', ('/ft_temperature',), '--temperature-topic', 2),
        ('kelvin', ('wrist_sensor=/ft_temperature',), 'Celsius', 1),
        ('dead', ('wrist_sensor=/ft_temperature',), 'channel 1 (fx)', 1),
    ],
)
def test_temperatures_that_determine_nothing_are_refused(folder, capsys, bag, more, named, code):
    given = [word for one in more for word in ('--temperature-topic', one)]
    assert run(folder, 'temperature', bag, *given) == code
    assert named in capsys.readouterr().err


@cache
def icub():
    """Return readings and predictions of the real log, and calibrations."""
    bag, urdf = DATA / 'icub_yoga_left' / 'bag', DATA / 'models' / 'icub_v2_5.urdf'
    if not (bag.exists() and urdf.exists()):
        pytest.skip('no real log')
    settings = in_hindsight(EstimatorSettings.from_yaml(CONFIG / 'icub_yoga_left.yaml'))
    robot = build_robot(settings, urdf.read_text())
    recording = open_log(bag, robot, settings).within(TimeRange(FROM, TO))
    return predict_wrenches(recording, robot, settings), sensor_calibrations(settings, robot)


def fits(start, stop, *sensors, test=None):
    """Return fits to a part of the real log."""
    predicted, calibrations = icub()
    mask = TimeRange(start, stop).mask(predicted.times)
    test = None if test is None else TimeRange(*test).mask(predicted.times)
    return calibrate_affine(predicted, calibrations, mask, test=test, sensors=sensors)[0]


def errors_of(fit):
    return {one.code for one in fit.findings if one.level == Level.ERROR}


def test_touches_of_the_other_foot_are_noticed():
    """The right foot scrapes the ground until 17 s and stands on it from 62 s on."""
    leg, foot = fits(FROM, HALF, 'r_leg_ft', 'r_foot_ft', test=(HALF, TO))
    times = icub()[0].times
    out = times[(times < HALF) & ~leg.used & np.isfinite(leg.residuals).all(axis=1)]
    assert ((out < 17.0) | ((out > 21.0) & (out < 25.0))).all()
    for result in (leg, foot):
        assert 0 < result.fit.n_disturbed < 700
    before, after = leg.test_rms
    # What is left where nothing touches: a fraction of the README's figures, but for fx.
    assert (after[1:] < 0.85 * README_RIDGE[1:]).all()
    assert np.mean((after / README_RIDGE) ** 2) < 0.6
    assert (after < before)[[0, 1, 2, 3, 4]].all()
    # 0.38 kg in free air move the sensor of the foot hardly: most of the matrix is the prior's.
    assert (foot.fit.shares < 0.5).sum() >= 2
    assert 'unexcited' in {one.code for one in foot.findings}


def test_where_errors_of_a_real_leg_begin():
    """Where the hip is on one side of a step of 20 N in fx all the time, the matrix is fine."""
    assert 'matrix_change' in errors_of(fits(FROM, HALF, 'r_leg_ft')[0])
    assert not errors_of(fits(FROM, 22.4, 'r_leg_ft')[0])
    assert not errors_of(fits(24.0, 58.0, 'r_foot_ft')[0])


def test_a_matrix_of_the_opposite_sign_is_an_error_although_all_gains_are_one(rng):
    times, wrenches = loads(rng)
    fit = fit_affine(-wrenches, wrenches, times)
    np.testing.assert_allclose(fit.gains, 1.0, atol=1e-3)
    (one,) = (f for f in fit.findings('ft', wrenches, AffineSettings()) if f.level == Level.ERROR)
    assert one.code == 'matrix_change' and one.values['change'] == pytest.approx(2.0, abs=0.01)


def test_readings_that_do_not_follow_the_model_are_an_error():
    predicted, calibrations = icub()
    row = list(calibrations).index('r_leg_ft')
    readings = predicted.samples.ft_readings.copy()
    noise = np.random.default_rng(0).normal(size=readings[:, row].shape)
    readings[:, row] = readings[:, row].mean(axis=0) + NOISE * noise
    deaf = predicted._replace(samples=replace(predicted.samples, ft_readings=readings))
    whole = np.ones(len(predicted.times), dtype=bool)
    (leg,), _ = calibrate_affine(deaf, calibrations, whole, sensors=('r_leg_ft',))
    assert 'residual' in errors_of(leg)


def test_sensors_with_assumed_joints_are_fitted_only_when_named():
    predicted, calibrations = icub()
    whole = np.ones(len(predicted.times), dtype=bool)
    found, refused = calibrate_affine(predicted, calibrations, whole)
    assert [result.name for result in found] == ['r_leg_ft', 'r_foot_ft'] and not refused
    (stance,), _ = calibrate_affine(predicted, calibrations, whole, sensors=('l_leg_ft',))
    assert stance.assumed
    silent = predicted.samples.ft_readings.copy()
    silent[:, list(calibrations).index('r_foot_ft')] = np.nan
    part = predicted._replace(samples=replace(predicted.samples, ft_readings=silent))
    found, refused = calibrate_affine(part, calibrations, whole)
    assert [result.name for result in found] == ['r_leg_ft'] and list(refused) == ['r_foot_ft']
    with pytest.raises(LogError):
        calibrate_affine(part, calibrations, whole, sensors=('r_foot_ft',))
