# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Identification from bags: a simulated arm whose wrist sensor is off, and a real robot."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from identify_command import refused, report, run
from robots import arm_with_wrist_sensor_urdf
from shared_data import SHARED
from simulated_arm import swinging, tool_readings

from inertial_estimation import EstimatorSettings, IdentifySettings, identify, open_log
from inertial_estimation.calibration.calibration_file import SensorCalibration, write
from inertial_estimation.cli import main
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.robot import Robot

pytest.importorskip('rosbags')

from bag_messages import JOINT_STATE, WRENCH, joint_state, wrench, write_bag

RATE = 200
SECONDS = 8.0
START = 1_700_000_000_000_000_000
JOINTS = ['shoulder', 'elbow', 'lift']
MATRIX = np.eye(6) + 0.2 * np.diag([1.0, 0.0, -1.0, 0.0, 1.0], k=1)
CONFIGURED = np.array([20.0, -5.0, 3.0, 0.4, -0.3, 0.2])
ON_TOP = np.array([1.5, -2.0, 0.7, 0.1, 0.05, -0.08])
"""Offset that the node's file does not know [N, Nm]."""
# The low pass at 20 Hz and central differences change motions below 2 Hz by this share of a signal
# of 5 N and 2 Nm.
OFFSET_ERROR = 0.05
MASS_ERROR = 0.01
NODE = {
    'fixed_link': 'base',
    'ft_sensors': ['wrist_sensor'],
    'joint_states.topics': ['/joint_states'],
    'ft': {'wrist_sensor': {'topic': '/ft', 'frame_id': 'wrist'}},
}
IDENTIFY = """
parameters: node.yaml
preparation: {cutoff: 20.0}
rows: {offsets: all}
"""
ICUB = SHARED / 'data' / 'icub_yoga_left' / 'bag'
LIGHT = '--weight', '1e-3'
CONFIG = Path(__file__).resolve().parents[1] / 'config'


def moving(robot, rng):
    """Return stamps, positions and readings, which are not calibrated."""
    samples = swinging(rng, SECONDS, RATE, n_fts=1)
    wrenches = tool_readings(robot, samples)
    raw = np.linalg.solve(MATRIX, (wrenches + CONFIGURED + ON_TOP).T).T
    return START + samples.stamp_ns, samples.positions, raw


@pytest.fixture
def files(tmp_path, rng):
    """Write a description that is wrong, the two settings, and what a bag is made of."""
    truth = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    wrong = arm_with_wrist_sensor_urdf().replace('value="0.5"', 'value="0.65"')
    (tmp_path / 'robot.urdf').write_text(wrong)
    (tmp_path / 'logs.yaml').write_text(IDENTIFY)
    write_node(tmp_path)
    return tmp_path, truth, moving(truth, rng)


def write_node(folder, **more):
    path, sensor = folder / 'calibration.yaml', SensorCalibration(MATRIX, CONFIGURED)
    write(path, 'arm_with_wrist_sensor', {'wrist_sensor': sensor})
    node = {'/**': {'ros__parameters': NODE | {'calibration_file': str(path)} | more}}
    (folder / 'node.yaml').write_text(yaml.safe_dump(node))


def record(path, stamps, positions, raw):
    messages = []
    for stamp, q, reading in zip(stamps.tolist(), positions, raw, strict=True):
        messages.append(('/ft', WRENCH, stamp, wrench(stamp, 'wrist', reading)))
        messages.append(('/joint_states', JOINT_STATE, stamp, joint_state(stamp, JOINTS, q)))
    return write_bag(path, messages)


def test_offsets_add_to_the_calibration_of_the_node(files):
    folder, truth, (stamps, q, raw) = files
    bag = record(folder / 'bag', stamps, q, raw)
    more = *LIGHT, '--validate', f'{bag}@6:', '--out-yaml', folder / 'o.yaml'
    assert run(folder, f'{bag}@0:6', *more) == 0
    found = report(folder)
    tool = truth.parameters[truth.link_names.index('tool')]
    assert found['links']['tool']['m'] == pytest.approx(tool[0], rel=MASS_ERROR)
    (block,) = found['submodels']
    for row in block['rows'].values():
        assert max(row['fit'], row['validation']) < OFFSET_ERROR
    text = (folder / 'o.yaml').read_text()
    assert 'ft.<sensor>.offset' in text
    offsets = [term['value'] for term in yaml.safe_load(text)['wrist_sensor'].values()]
    np.testing.assert_allclose(offsets, ON_TOP, rtol=0.0, atol=OFFSET_ERROR)


def test_open_log_of_a_robot_is_identified(files):
    """With the calibration of the parameter file, as the command reads it."""
    folder, truth, (stamps, q, raw) = files
    bag = record(folder / 'bag', stamps, q, raw - np.linalg.solve(MATRIX, ON_TOP))
    node = EstimatorSettings.from_yaml(folder / 'node.yaml')
    robot = build_robot(node, (folder / 'robot.urdf').read_text())
    log = open_log(bag, robot, node)
    settings = IdentifySettings(parameters=folder / 'node.yaml')
    found = identify(robot, log, settings, options={'weight': 1e-3})
    tool = truth.link_names.index('tool')
    assert found.parameters[tool, 0] == pytest.approx(truth.parameters[tool, 0], rel=MASS_ERROR)
    same = identify((folder / 'robot.urdf').read_text(), bag, settings, options={'weight': 1e-3})
    np.testing.assert_array_equal(found.parameters, same.parameters)


def test_assumed_joints_cost_equations_unless_locked(files, capsys, rng):
    folder, truth, _ = files
    assumed = {'joint_states.assumed': ['lift'], 'joint_states.assumed_positions': [0.1]}
    write_node(folder, **assumed)
    bag = record(folder / 'bag', *moving(truth, rng))
    assert 'lift: ' in refused(folder, capsys, bag)
    assert run(folder, bag, '--lock', 'lift') == 0
    assert report(folder)['submodels'][0]['rows']


@pytest.mark.skipif(not ICUB.exists(), reason='needs ../shared/data')
def test_offsets_of_a_real_icub_are_identified(tmp_path, capsys):
    out = tmp_path / 'o.json'
    arguments = ['identify', f'{ICUB}@13.1:38', '--robot', SHARED / 'data/models/icub_v2_5.urdf',
                 '--config', CONFIG / 'identify_icub_yoga.yaml', '--json', out,
                 '--validate', f'{ICUB}@38:65']  # fmt: skip
    assert main(list(map(str, arguments))) == 0
    found = json.loads(out.read_text())
    # Arms and trunk rest on the arms' joints, and the ground pushes the foot.
    assert [block['name'] for block in found['submodels']] == ['l_hip_3', 'r_hip_3', 'r_foot']
    frozen = next(one for one in found['findings'] if one['code'] == 'frozen')
    assert frozen['values']['share'] == pytest.approx(1474 / 2468)
    leg, hip, foot = found['submodels']
    # Of l_leg_ft 15 s of 25 s are frozen, with what the filter spreads.
    assert leg['left_out']['force_x'] > 0.6 * 489
    assert hip['left_out']['force_x'] == 0
    # From 300 N; the sensors' matrices are wrong in place, by the log's description.
    for block in (leg, hip, foot):
        for kind, row in block['rows'].items():
            assert row['validation'] < (15.0 if kind.startswith('force') else 3.0)
