# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
``calibrate offsets``: from a bag to a calibration file, tables, figures and a picture.

A robot that is held by known wrenches is written to a bag. Then real iCubs: one that stands on
both feet, whose offsets another software computed, and one on its left foot.
"""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rosbags')

from bag_messages import (
    IMU,
    JOINT_STATE,
    POINT,
    WRENCH,
    imu,
    joint_state,
    point,
    wrench,
    write_bag,
)
from brute_force import link_poses
from shared_data import SHARED
from standing_biped import biped, biped_urdf, standing

from inertial_estimation.building import build_estimator, build_robot
from inertial_estimation.calibration.calibration_file import SensorCalibration, read, write
from inertial_estimation.calibration.supported_offsets import supported_offsets
from inertial_estimation.cli import main
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.logs.log import TimeRange
from inertial_estimation.logs.offset_calibration import (
    OffsetCalibrationRequest,
    calibrate_offsets,
)
from inertial_estimation.logs.open_log import open_log

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


def test_a_bag_becomes_a_calibration_file_that_the_node_can_use(held, capsys):
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
        assert step.n_samples > 300
        assert not any(note.startswith('model error') for note in step.notes)
    assert sensors['r_leg'].provenance[0].notes[0].startswith('offset: 2 poses agree')
    said = json.loads(figures.read_text())
    assert said['is_unique'] and not said['undetermined']
    assert said['left_out']['touched'] >= 50
    assert said['left_out']['moving'] > 0, 'from pose to pose'
    assert len(said['sensors']['arm']['poses']['residuals']) == 2
    shown = capsys.readouterr().out
    for part in ('offsets to subtract', 'l_foot', 'touched', 'moving', 'what several poses tell'):
        assert part in shown
    given = EstimatorSettings.from_dict({**SETTINGS, 'calibration_file': str(output)})
    used = build_estimator(given, build_robot(given, biped_urdf())).calibration
    np.testing.assert_allclose(used.offsets, offsets, atol=EXACT)


def test_a_split_must_be_accepted_and_is_marked(held, capsys):
    folder, offsets = held
    supports = ('--support', 'l_sole', 'r_sole')
    assert call(folder, *supports) == 1
    assert 'not unique' in capsys.readouterr().err
    output = folder / 'ft.yaml'
    assert not call(folder, *supports, '--ft', 'arm', '--out', str(output))
    np.testing.assert_allclose(read(output)[1]['arm'].offset, offsets[4], atol=EXACT)
    assert not call(folder, *supports, '--accept-split', '--out', str(output))
    _, sensors = read(output)
    (step,) = sensors['l_leg'].provenance
    assert step.method == 'offsets from the model, supports: l_sole, r_sole'
    assert step.notes[0].startswith('not unique')
    assert not any(note.startswith('not unique') for note in sensors['arm'].provenance[0].notes)


@pytest.mark.parametrize('way', ['offsets', 'temperature'])
def test_a_window_that_is_too_short_for_the_rate_is_named(held, capsys, way):
    folder, _ = held
    node = SETTINGS | {'derivative_window': 0.05}
    (folder / 'node.yaml').write_text(json.dumps({'/**': {'ros__parameters': node}}))
    assert main([
        'calibrate', way, str(folder / 'bag'), '--robot', str(folder / 'robot.urdf'),
        '--config', str(folder / 'node.yaml'), '--support', 'l_sole',
    ]) == 1  # fmt: skip
    told = ' '.join(capsys.readouterr().err.split())
    assert 'derivative_window (0.05 s): it is too short for this rate' in told
    assert 'set a longer derivative_window in the parameter file' in told


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


def test_a_support_that_nobody_named_is_said_first_and_writes_nothing_if_doubted(
    on_both_feet, capsys
):
    folder, offsets = on_both_feet
    output = folder / 'ft.yaml'
    assert call(folder, '--out', str(output)) == 1
    said = capsys.readouterr()
    assert said.out.startswith('assumed: l_sole alone carries and touches the robot')
    assert 'offsets to subtract' in said.out, 'what was found is shown all the same'
    why = ' '.join(said.err.split())
    assert f"'{output}' is not written, as r_sole is level with the support" in why
    assert 'name all that carries the robot with --support, or --support l_sole if' in why
    assert not output.exists()
    # Without a file nothing is refused; the figures say what was assumed.
    figures = folder / 'found.json'
    assert not call(folder, '--json', str(figures))
    told = json.loads(figures.read_text())
    assert told['support_assumed'] and told['doubts']
    capsys.readouterr()
    # Whoever names the support knows better; the doubt goes into the file.
    assert not call(folder, '--support', 'l_sole', '--out', str(output))
    assert 'assumed: ' not in capsys.readouterr().out
    assert 'doubtful: r_sole' in str(read(output)[1]['l_leg'].provenance[0].notes)
    both = ('--support', 'l_sole', 'r_sole', '--accept-split')
    assert not call(folder, *both, '--out', str(output))
    np.testing.assert_allclose(read(output)[1]['arm'].offset, offsets[4], atol=EXACT)


def test_the_calibration_so_far_can_be_named(held, capsys):
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
    assert 'of --calibration is not there' in capsys.readouterr().err
    former.unlink()
    write(former, 'other', {'arm': SensorCalibration(matrix)})
    assert call(folder, *more) == 1
    assert f"'{former}' of --calibration is of robot 'other', not of" in capsys.readouterr().err


@pytest.mark.parametrize(
    ('more', 'told', 'code'),
    [
        (('--support', 'l_sole', '--ft', 'leg'), "--ft names 'leg', but no FT sensor is named", 1),
        (('--support', 'l_sole', 'l_sole'), "--support names 'l_sole' twice", 2),
        (('--support', 'l_sole', 'r_sole'), 'squeeze the ground (--accept-split)', 1),
    ],
)
def test_errors_name_options(held, capsys, more, told, code):
    assert call(held[0], *more) == code
    assert told in ' '.join(capsys.readouterr().err.split())


@pytest.mark.skipif(find_spec('matplotlib') is None, reason='matplotlib is not installed')
def test_what_is_left_is_drawn(held):
    folder, _ = held
    picture = folder / 'left.svg'
    assert not call(folder, '--support', 'l_sole', '--picture', str(picture))
    assert '<svg' in picture.read_text()


def test_what_cannot_be_done_is_refused_before_the_work(held, capsys):
    folder, _ = held
    assert call(folder) == 2
    assert 'name them with --support, or give a fixed_link' in capsys.readouterr().err
    assert call(folder, '--support', 'l_soul') == 1
    assert "--support names 'l_soul', but no frame is named 'l_soul'" in capsys.readouterr().err
    assert call(folder, '--support', 'l_sole', part='@2.8:3.2')
    assert 'can be used, 10 are needed' in capsys.readouterr().err


# ---- Real robots -------------------------------------------------------------------------------

PRINTED = np.array([
    [-4.11735, 111.148, -131.104, -13.423, 1.36924, -1.04304],
    [-52.0296, -5.64247, -18.0923, -0.516052, 9.91345, 0.717567],
    [-5.65084, -10.5031, -24.6174, 1.95779, 2.61084, 0.0036913],
    [-17.4992, -0.910681, 18.0613, -0.824831, 3.32657, -0.252851],
])  # fmt: skip
"""Offsets of the authors of the log, from a double-support calibration of another software."""
LEGS = {'l': (0, 1, 47.97), 'r': (2, 3, 42.95)}
"""Leg, foot, and leg minus foot along z with these offsets, as the README of the data has it."""
STILL = TimeRange(0.0, 2.0)


@pytest.fixture(scope='module')
def tipping():
    """Return settings, robot and log of an iCub that stands on both feet before it tips over."""
    bag = DATA / 'icub_foot_tipping' / 'setup07' / 'bag'
    if not bag.is_dir():
        pytest.skip('the shared data folder is not beside this checkout')
    settings = EstimatorSettings.from_yaml(CONFIG / 'icub_foot_tipping.yaml')
    robot = build_robot(settings, str(DATA / 'models' / 'icub_genova01.urdf'))
    return settings, robot, open_log(bag, robot, settings)


def leg_minus_foot(robot, samples, wrenches, leg, foot):
    """Return the mean difference of two sensors in the axes of the first, (3,) [N]."""
    found = []
    for positions, row in zip(samples.positions, wrenches):
        poses = link_poses(robot, positions)
        A, B = (
            poses[robot.ft_sensors[k].child][:3, :3] @ robot.ft_sensors[k].child_H_sensor[:3, :3]
            for k in (leg, foot)
        )
        found.append(row[leg, :3] - A.T @ B @ row[foot, :3])
    return np.nanmean(found, axis=0)


def test_the_offsets_of_others_leave_what_they_measured(tipping):
    _, robot, recording = tipping
    samples = recording.within(STILL).samples
    for leg, foot, measured in LEGS.values():
        z = leg_minus_foot(robot, samples, samples.ft_readings - PRINTED, leg, foot)[2]
        assert abs(z - measured) < 0.5


def test_offsets_of_a_robot_on_both_feet_are_not_written_as_of_one(tipping, tmp_path, capsys):
    output = tmp_path / 'ft.yaml'
    code = main([
        'calibrate', 'offsets', f'{DATA}/icub_foot_tipping/setup07/bag@0:2.5', '--robot',
        str(DATA / 'models' / 'icub_genova01.urdf'), '--config',
        str(CONFIG / 'icub_foot_tipping.yaml'), '--out', str(output),
    ])  # fmt: skip
    assert code == 1 and not output.exists()
    assert 'is not written, as r_sole is level' in capsys.readouterr().err


def test_own_offsets_leave_the_weight_between_the_sensors(tipping):
    settings, robot, recording = tipping
    samples = recording.within(STILL).samples
    estimator = build_estimator(settings, robot)
    found = supported_offsets(estimator, samples, ['l_sole', 'r_sole'], accept_split=True)
    assert found.told == ('l_leg_ft - l_foot_ft', 'r_leg_ft - r_foot_ft', 'l_leg_ft + r_leg_ft')
    assert not found.unique.any() and len(found.undetermined) == 6
    wrenches = samples.ft_readings - found.offsets
    for leg, foot, _ in LEGS.values():
        force = leg_minus_foot(robot, samples, wrenches, leg, foot)
        # 4.35 kg of thigh and shank, as the README of the data has it.
        assert abs(np.linalg.norm(force) - 42.6) < 0.3
    # Both legs carry what is above them: all but what is between and below the sensors.
    both = np.linalg.norm(np.nanmean(wrenches[:, [0, 2], :3].sum(axis=1), axis=0))
    below = sum(
        robot.parameters[k, 0]
        for s in (0, 2)
        for k in range(len(robot.links))
        if k in _beyond(robot, robot.ft_sensors[s].child)
    )
    assert both == pytest.approx(9.81 * (robot.mass - below), abs=1.0)


def _beyond(robot, child):
    """Return the links beyond a sensor."""
    found = {child}
    for k, link in enumerate(robot.links):
        if link.parent in found:
            found.add(k)
    return found


def test_a_tipping_robot_is_no_still_one(tipping):
    settings, robot, recording = tipping
    found = supported_offsets(
        build_estimator(settings, robot),
        recording.samples,
        ['l_sole', 'r_sole'],
        accept_split=True,
    )
    assert found.left_out['moving'] > 150
    # It tips over from 7 s on.
    late = recording.times[found.instants.used.any(axis=1)]
    assert late.max() < 7.0


def test_poses_of_a_hanging_leg_show_its_wrong_matrix():
    bag = DATA / 'icub_yoga_left' / 'bag'
    if not bag.is_dir():
        pytest.skip('the shared data folder is not beside this checkout')
    result = calibrate_offsets(
        bag,
        DATA / 'models' / 'icub_v2_5.urdf',
        EstimatorSettings.from_yaml(CONFIG / 'icub_yoga_left.yaml'),
        OffsetCalibrationRequest(time_range=TimeRange(13.07, 65.64)),
    )
    leg = result.found.poses['r_leg_ft']
    assert leg.verdict.startswith('model error') and "suspect the sensor's matrix" in leg.verdict
    assert leg.turn > 1.0 and leg.rotating[0] > 5.0
    assert result.found.is_unique and not result.doubts
    # The sensors of a leg that hangs rest on no arm, which nobody logged.
    names = [sensor.name for sensor in result.robot.ft_sensors]
    assumed = {name for name, is_so in zip(names, result.found.assumed) if is_so}
    assert assumed == {'l_arm_ft', 'r_arm_ft', 'l_leg_ft', 'l_foot_ft'}
