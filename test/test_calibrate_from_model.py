# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
``calibrate affine`` and ``calibrate temperature``: a simulated arm, and the real iCub on one foot.

Not covered: the least squares themselves, in test_affine_fit.py and test_temperature_fit.py.
"""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from robots import arm_with_wrist_sensor_urdf
from shared_data import SHARED
from test_affine_fit import OFFSET, UNITS, loads, off_by

from inertial_estimation.building import build_robot, sensor_calibrations
from inertial_estimation.calibration.affine_fit import fit_affine
from inertial_estimation.calibration.affine_types import AffineSettings
from inertial_estimation.calibration.calibration_file import read
from inertial_estimation.cli import main
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import LogError
from inertial_estimation.logs.affine_calibration import AffineRequest, calibrate_affine
from inertial_estimation.logs.affine_notes import doubts_of
from inertial_estimation.logs.log import TimeRange
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.predicted_wrenches import in_hindsight, predict_wrenches
from inertial_estimation.model.link_motions import link_motions, poses_in_parents
from inertial_estimation.model.regressor import net_wrench_regressor
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

pytest.importorskip('rosbags')

from bag_messages import (
    JOINT_STATE,
    TEMPERATURE,
    WRENCH,
    joint_state,
    temperature,
    wrench,
    write_bag,
)

RATE, SECONDS = 100, 60.0
START = 1_700_000_000_000_000_000
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
CONFIG = Path(__file__).resolve().parents[1] / 'config' / 'icub_yoga_left.yaml'
DATA = SHARED / 'data'
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


def test_the_matrix_of_a_simulated_arm(folder, tmp_path, capsys):
    truth = np.load(folder / 'truth.npz')['matrix']
    saved, told = tmp_path / 'arm.yaml', tmp_path / 'found.json'
    more = ('--validate', f'{folder / "moving"}@45:60', '--out', saved, '--json', told)
    assert run(folder, 'affine', 'moving', *more, part='@0:45') == 0
    out = capsys.readouterr().out
    assert 'fitted, test range' in out and 'the log (' in out
    found = json.loads(told.read_text())['wrist_sensor']
    assert np.shape(found['matrix']) == (6, 6)
    # A touch of 0.8 s, what the filter smears and a tenth of a second to either side.
    assert 80 <= found['left_out'] <= 140
    test = found['test']
    assert (np.array(test['rms'])[:3] < 0.3 * np.array(test['rms_before'])[:3]).all()
    np.testing.assert_allclose(test['rms'], 0.0, atol=0.15)
    # Along what the log tells: errors within some deviations.
    error = (np.array(found['matrix']) - truth) / np.array(found['correction_deviations'])
    told_well = np.array(found['correction_deviations']) / np.outer(UNITS, 1 / UNITS) < 0.02
    assert told_well.sum() >= 6
    assert np.abs(error[told_well]).max() < 8.0
    robot, sensors = read(saved)
    assert robot == 'arm_with_wrist_sensor'
    np.testing.assert_array_equal(sensors['wrist_sensor'].matrix, found['matrix'])
    (step,) = sensors['wrist_sensor'].provenance
    assert step.method == 'matrix and offset from the model, one support: base'
    assert step.date == '2023-11-14T22:13:20+00:00'


def test_what_was_found_is_used_next_time(folder, tmp_path):
    """The file is the prior of the next calibration, which then has nothing to add."""
    saved, told = tmp_path / 'arm.yaml', tmp_path / 'found.json'
    assert run(folder, 'affine', 'moving', '--out', saved) == 0
    again = tmp_path / 'again'
    again.mkdir()
    node = {'/**': {'ros__parameters': NODE | {'calibration_file': str(saved)}}}
    (again / 'node.yaml').write_text(yaml.safe_dump(node))
    code = main([
        'calibrate', 'affine', str(folder / 'moving'), '--robot', str(folder / 'arm.urdf'),
        '--config', str(again / 'node.yaml'), '--json', str(told),
        '--out', str(again / 'b.yaml'),
    ])  # fmt: skip
    assert code == 0
    found = json.loads(told.read_text())['wrist_sensor']
    unit = np.array(found['correction']) * np.outer(1.0 / UNITS, UNITS)
    np.testing.assert_allclose(unit, np.eye(6), atol=0.05)
    assert len(read(again / 'b.yaml')[1]['wrist_sensor'].provenance) == 2


@pytest.mark.parametrize(
    ('part', 'validate', 'told'),
    [
        ('@0:45', 'moving@40:60', 'hold the same samples'),
        ('', 'moving@40:60', 'name parts that do not overlap'),
        ('@0:45', 'moving', 'hold the same samples'),
        ('@0:45', 'warming@45:60', 'is another log: name a part of'),
    ],
)
def test_what_is_fitted_does_not_test_itself(folder, capsys, part, validate, told):
    assert run(folder, 'affine', 'moving', '--validate', folder / validate, part=part) == 2
    assert told in capsys.readouterr().err


def test_the_support_that_nobody_named_is_said_first(folder, capsys):
    assert run(folder, 'affine', 'moving') == 0
    assert capsys.readouterr().out.startswith('assumed: base alone carries')
    assert run(folder, 'affine', 'moving', '--support', 'base') == 0
    assert 'assumed: ' not in capsys.readouterr().out


def test_a_picture_is_drawn(folder, tmp_path):
    pytest.importorskip('matplotlib')
    picture = tmp_path / 'left.png'
    assert run(folder, 'affine', 'moving', '--picture', picture) == 0
    assert picture.read_bytes().startswith(b'\x89PNG')


@pytest.mark.parametrize(
    ('part', 'more', 'told', 'code'),
    [
        ('', ('--ft', 'wrist'), "--ft names 'wrist', but no FT sensor is named 'wrist'", 1),
        ('@70:80', (), 'no sample lies between 70.0 s and 80.0 s', 1),
        ('@8:7', (), 'FROM must be before TO', 2),
        ('@1:1.2', (), 'usable samples are too few for 10 blocks of 5: take a longer log, or '
         'fewer --blocks', 1),
        ('', ('--prior-weight', '-1'), '--prior-weight is -1.0', 2),
        ('', ('--prior-weight', '1e-9', '--ft', 'wrist_sensor', '--blocks', '1'),
         '--blocks is 1, expected', 2),
        ('', ('--prior-deviation', '0'), '--prior-deviation is 0.0', 2),
        ('', ('--support', 'nowhere'), "--support names 'nowhere', but no frame is named", 1),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said(folder, capsys, part, more, told, code):
    assert run(folder, 'affine', 'moving', *more, part=part) == code
    assert told in capsys.readouterr().err


def test_a_channel_that_never_changes_is_named_unless_the_sensor_may_have_no_noise(
    folder, tmp_path, capsys
):
    saved = tmp_path / 'arm.yaml'
    assert run(folder, 'affine', 'dead', '--out', saved) == 1
    assert 'wrist_sensor: of six readings number 1 (fx of a wrench) never changes while' in (
        capsys.readouterr().err
    )
    assert not saved.exists()
    ft = {'wrist_sensor': NODE['ft']['wrist_sensor'] | {'frozen_after': 0.0}}
    node = tmp_path / 'node.yaml'
    node.write_text(yaml.safe_dump({'/**': {'ros__parameters': NODE | {'ft': ft}}}))
    main([
        'calibrate', 'affine', str(folder / 'dead'), '--robot', str(folder / 'arm.urdf'),
        '--config', str(node),
    ])  # fmt: skip
    assert 'never changes' not in capsys.readouterr().err


def test_a_matrix_far_from_the_one_there_was_is_shown_and_not_written(folder, tmp_path, capsys):
    saved, told = tmp_path / 'arm.yaml', tmp_path / 'found.json'
    more = ('--out', saved, '--json', told)
    assert run(folder, 'affine', 'loud', *more) == 1
    caught = capsys.readouterr()
    assert "'wrist_sensor'" not in caught.err and 'readings minus the model' in caught.out
    said = 'wrist_sensor lets 0.3'
    assert f'is not written, as {said}' in caught.err and '--accept-doubts' in caught.err
    assert json.loads(told.read_text())['wrist_sensor']['doubts'] and not saved.exists()
    # Without a file to write nothing is held back.
    assert run(folder, 'affine', 'loud') == 0
    assert run(folder, 'affine', 'loud', '--accept-doubts', *more) == 0
    (step,) = read(saved)[1]['wrist_sensor'].provenance
    assert any('of what came through pass' in note for note in step.notes)


def test_a_picture_of_an_unknown_kind_is_refused(folder, capsys):
    pytest.importorskip('matplotlib', reason='pictures need matplotlib')
    assert run(folder, 'affine', 'moving', '--picture', 'left.xyz') == 2
    assert "a picture 'left.xyz' cannot be drawn" in capsys.readouterr().err


def test_a_file_of_another_robot_stays(folder, tmp_path, capsys):
    saved = tmp_path / 'other.yaml'
    saved.write_text('ft_calibration: {version: 1, robot: another, sensors: {}}\n')
    assert run(folder, 'affine', 'moving', '--out', saved) == 1
    assert "is the calibration of robot 'another'" in capsys.readouterr().err


def test_the_temperature_coefficients_of_a_simulated_arm(folder, tmp_path, capsys):
    saved, told = tmp_path / 'arm.yaml', tmp_path / 'found.json'
    more = ('--temperature-topic', 'wrist_sensor=/ft_temperature', '--reference-temperature', 25)
    more += ('--out', saved, '--json', told)
    assert run(folder, 'temperature', 'warming', *more) == 0
    assert 'explained by time' in capsys.readouterr().out
    found = json.loads(told.read_text())['wrist_sensor']
    # What a filter makes of motions up to 0.3 Hz, 0.01 N, over 6 K, and noise of 0.02 N.
    np.testing.assert_allclose(found['coefficients'], K, atol=0.005)
    np.testing.assert_allclose(found['offset'], OFFSET, atol=0.05)
    sensor = read(saved)[1]['wrist_sensor']
    assert sensor.reference_temperature == 25.0
    np.testing.assert_array_equal(sensor.temperature_coefficients, found['coefficients'])
    assert 'from 2' in sensor.provenance[0].notes[0]
    assert run(folder, 'temperature', 'warming', *more, '--ft', 'wrist_sensor') == 0
    again = json.loads(told.read_text())
    assert list(again) == ['wrist_sensor']
    assert again['wrist_sensor']['coefficients'] == pytest.approx(found['coefficients'])


def test_sensors_are_chosen_among_those_with_temperatures(folder, capsys):
    topic = ('--temperature-topic', 'wrist_sensor=/ft_temperature')
    assert run(folder, 'temperature', 'warming', *topic, '--ft', 'wrist') == 1
    assert "--ft names 'wrist', but no FT sensor is named" in capsys.readouterr().err
    assert run(folder, 'temperature', 'warming', '--ft', 'wrist_sensor') == 2
    said = capsys.readouterr().err
    assert "--ft names 'wrist_sensor', of which the log has no temperature" in said
    assert 'with --temperature-topic, or leave it out' in said


@pytest.mark.parametrize('way', ['affine', 'temperature'])
def test_a_calibration_of_another_robot_is_called_by_its_option(folder, tmp_path, capsys, way):
    saved = tmp_path / 'other.yaml'
    saved.write_text('ft_calibration: {version: 1, robot: another, sensors: {}}\n')
    assert run(folder, way, 'moving', '--calibration', saved) == 1
    assert f"'{saved}' of --calibration is of robot 'another'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ('bag', 'more', 'told', 'code'),
    [
        ('cold', ('wrist_sensor=/ft_temperature',), 'stays between 25.03 and 25.57', 1),
        ('cold', ('wrist_sensor=/ft_temperature',), 'by less than --least-change, 2 K', 1),
        ('warming', (), 'has a temperature: name --temperature-topic', 2),
        ('warming', ('wrist=/ft_temperature',), "--temperature-topic names 'wrist', but no FT", 1),
        ('warming', ('wrist_sensor=/ft',), 'holds geometry_msgs/msg/WrenchStamped', 1),
        ('warming', ('wrist_sensor=/t',), "no topic of the bag is named '/t'", 1),
        ('warming', ('/ft_temperature',), 'expected SENSOR=TOPIC', 2),
        ('kelvin', ('wrist_sensor=/ft_temperature',), 'if it is in kelvin', 1),
        ('dead', ('wrist_sensor=/ft_temperature',), 'number 1 (fx of a wrench) never changes', 1),
    ],
)
def test_temperatures_that_do_not_tell_are_refused(folder, capsys, bag, more, told, code):
    given = [word for one in more for word in ('--temperature-topic', one)]
    assert run(folder, 'temperature', bag, *given) == code
    assert told in capsys.readouterr().err


@cache
def icub():
    """Return what the sensors of the real log say and should say, and their calibrations."""
    bag, urdf = DATA / 'icub_yoga_left' / 'bag', DATA / 'models' / 'icub_v2_5.urdf'
    if not (bag.exists() and urdf.exists()):
        pytest.skip(f'no real log: {bag} or {urdf} is not there')
    settings = in_hindsight(EstimatorSettings.from_yaml(CONFIG))
    robot = build_robot(settings, urdf.read_text())
    recording = open_log(bag, robot, settings).within(TimeRange(FROM, TO))
    return predict_wrenches(recording, robot, settings), sensor_calibrations(settings, robot)


def test_touches_of_the_other_foot_are_noticed():
    """The right foot scrapes the ground until 17 s and stands on it from 62 s on."""
    predicted, calibrations = icub()
    request = AffineRequest(
        ('r_leg_ft', 'r_foot_ft'), TimeRange(FROM, HALF), TimeRange(HALF, TO), AffineSettings()
    )
    (leg, foot), _ = calibrate_affine(predicted, calibrations, request)
    out = predicted.times[: len(leg.fit.used)][~leg.fit.used]
    assert ((out < 17.0) | ((out > 21.0) & (out < 25.0))).all()
    for result in (leg, foot):
        assert 0 < result.fit.n_disturbed < 700
        # The last three seconds of the second half.
        assert 250 < result.tested.n_disturbed < 700
    # What is left where nothing touches: a fraction of the README's figures, but for fx.
    assert (leg.tested.rms[1:] < 0.85 * README_RIDGE[1:]).all()
    assert np.mean((leg.tested.rms / README_RIDGE) ** 2) < 0.6
    assert (leg.tested.rms < leg.tested.rms_before)[[0, 1, 2, 3, 4]].all()
    # 0.38 kg in free air move the sensor of the foot hardly: most of the matrix is the prior's.
    assert (foot.fit.shares < 0.5).sum() >= 2
    assert any('hardly changed' in note for note in foot.notes)


def test_what_bears_on_a_leg_for_half_of_a_real_log_is_said():
    """By 20 N in fx where the hip passes a yaw of 0.92 rad, at 22.5 s, and back at 58.9 s."""
    predicted, calibrations = icub()
    request = AffineRequest(('r_leg_ft', 'r_foot_ft'), TimeRange(FROM, TO))
    (leg, foot), _ = calibrate_affine(predicted, calibrations, request)
    there, back = [note for note in leg.notes if 'and stay' in note]
    assert there.startswith('from 22.4 s to 24.2 s')
    assert back.startswith('from 58.2 s to 58.7 s')
    assert 'by -22.' in there and 'by 10.' in back
    assert not any('and stay' in note for note in foot.notes)


def test_where_doubts_about_a_real_leg_begin():
    """Where the hip is on one side of its step all the time, the matrix is one to be used."""
    predicted, calibrations = icub()

    def doubts(start, stop, name='r_leg_ft'):
        request = AffineRequest((name,), TimeRange(start, stop))
        return calibrate_affine(predicted, calibrations, request).sensors[0].doubts

    (half,) = doubts(FROM, HALF)
    assert half.startswith('lets 0.1') and 'spreads by 36 N, of which 1.' in half
    assert not doubts(FROM, 22.4)
    assert not doubts(24.0, 58.0, 'r_foot_ft')


def test_a_matrix_of_the_opposite_sign_is_a_doubt_although_all_gains_are_one(rng):
    times, wrenches = loads(rng)
    fit = fit_affine(-wrenches, wrenches, times)
    np.testing.assert_allclose(fit.gains, 1.0, atol=1e-3)
    (doubt,) = doubts_of(fit, wrenches, AffineSettings())
    assert doubt.startswith('differs from the matrix there was by 2 times')


def test_readings_that_do_not_follow_the_model_are_a_doubt():
    """As with a support that is not the one that carries the robot."""
    predicted, calibrations = icub()
    row = list(calibrations).index('r_leg_ft')
    readings = predicted.samples.ft_readings.copy()
    noise = np.random.default_rng(0).normal(size=readings[:, row].shape)
    readings[:, row] = readings[:, row].mean(axis=0) + NOISE * noise
    deaf = predicted._replace(samples=replace(predicted.samples, ft_readings=readings))
    (leg,) = calibrate_affine(deaf, calibrations, AffineRequest(('r_leg_ft',))).sensors
    assert any('do not follow what the model says' in doubt for doubt in leg.doubts)


def test_sensors_whose_side_is_a_guess_are_fitted_only_when_named():
    predicted, calibrations = icub()
    found, refused = calibrate_affine(predicted, calibrations, AffineRequest())
    assert [result.name for result in found] == ['r_leg_ft', 'r_foot_ft'] and not refused
    (stance,), _ = calibrate_affine(predicted, calibrations, AffineRequest(('l_leg_ft',)))
    assert 'rests on joints that nobody reports' in stance.notes


def test_sensors_that_nobody_named_are_left_out_where_the_log_does_not_tell_them():
    predicted, calibrations = icub()
    silent = predicted.samples.ft_readings.copy()
    silent[:, list(calibrations).index('r_foot_ft')] = np.nan
    deaf = predicted._replace(samples=replace(predicted.samples, ft_readings=silent))
    found, refused = calibrate_affine(deaf, calibrations, AffineRequest())
    assert [result.name for result in found] == ['r_leg_ft']
    assert 'no instant has both a reading of r_foot_ft' in refused['r_foot_ft']
    with pytest.raises(LogError):
        calibrate_affine(deaf, calibrations, AffineRequest(('r_leg_ft', 'r_foot_ft')))
