# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""``calibrate tool``: a simulated tool, and the real one in a bag."""

import json

import numpy as np
import pytest
import yaml
from shared_data import SHARED
from test_tool import BODY, OFFSET, POSE, recorded

from inertial_estimation.calibration.calibration_file import read
from inertial_estimation.cli import main

pytest.importorskip('rosbags')

from bag_messages import IMU, WRENCH, imu, wrench, write_bag

START = 1_700_000_000_000_000_000
FROZEN = 2e-3
"""Part of what is found that a reading changes which stays for a seventh of a second."""
# POSE of test_tool_fit.py as a URDF would say it.
RPY = (-np.pi / 2, np.pi / 2, 0.0)
PLACE = ('--imu-xyz', *map(str, POSE[:3, 3]), '--imu-rpy', *map(str, RPY))
BAGS = SHARED / 'data' / 'ntnu_fts_imu'


def write(path, motion, gyroscope=True):
    messages = []
    for t, reading in zip(motion.ft_times, motion.readings, strict=True):
        stamp = START + round(t * 1e9)
        messages.append((stamp, '/ft', WRENCH, wrench(stamp, 'ft', reading)))
    rows = zip(motion.imu_times, motion.accelerations, motion.angular_velocities, strict=True)
    for t, acceleration, rate in rows:
        stamp = START + round(t * 1e9)
        data = imu(stamp, 'imu', rate, acceleration, measures_rate=gyroscope)
        messages.append((stamp, '/imu', IMU, data))
    ordered = sorted(messages, key=lambda message: message[0])
    return write_bag(path, [(topic, kind, stamp, data) for stamp, topic, kind, data in ordered])


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    motion = recorded()
    readings = motion.readings.copy()
    readings[3000:3100] = readings[3000]  # A sensor that freezes for a seventh of a second.
    return write(tmp_path_factory.mktemp('tool') / 'bag', motion._replace(readings=readings))


def run(bag, *more):
    return main([
        'calibrate', 'tool', str(bag), '--ft', 'wrist', '--readings', '/ft', '--imu', '/imu',
        *map(str, more),
    ])  # fmt: skip


def test_a_simulated_tool(bag, tmp_path):
    told, saved = tmp_path / 'tool.json', tmp_path / 'arm.yaml'
    more = ('--inertia', '--json', told, '--out', saved)
    assert run(bag, *PLACE, *more, '--robot-name', 'arm') == 0
    found = json.loads(told.read_text())
    assert found['mass'] == pytest.approx(BODY[0], rel=FROZEN)
    np.testing.assert_allclose(found['offset'], OFFSET, atol=FROZEN * 10.0)
    assert found['delay'] == pytest.approx(0.0063, abs=1e-4)
    assert len(found['inertia']) == 6
    robot, sensors = read(saved)
    assert robot == 'arm'
    np.testing.assert_array_equal(sensors['wrist'].offset, found['offset'])
    assert 'free motion' in sensors['wrist'].provenance[0].method


def test_the_matrix_of_the_file_is_kept_and_used(bag, tmp_path):
    saved = tmp_path / 'arm.yaml'
    matrix = (2.0 * np.eye(6)).tolist()
    sensors = f'{{wrist: {{matrix: {matrix}}}}}'
    saved.write_text(f'ft_calibration: {{version: 1, robot: arm, sensors: {sensors}}}')
    assert run(bag, *PLACE, '--out', saved, '--robot-name', 'arm') == 1
    assert run(bag, *PLACE, '--out', saved, '--calibration', saved) == 0
    sensor = read(saved)[1]['wrist']
    np.testing.assert_array_equal(sensor.matrix, matrix)
    np.testing.assert_allclose(sensor.offset, 2.0 * OFFSET, atol=0.1)
    saved.write_text(
        'ft_calibration: {version: 1, robot: arm, sensors: {wrist: {axes: accelerometer}}}'
    )
    assert run(bag, *PLACE, '--calibration', saved) == 1


URDF = """
<robot name="arm">
  <link name="flange"/>
  <link name="tool"/>
  <link name="imu"/>
  <link name="loose"/>
  <joint name="wrist_joint" type="fixed"><parent link="flange"/><child link="tool"/></joint>
  <joint name="imu_joint" type="fixed"><parent link="tool"/><child link="imu"/>
    <origin xyz="{}" rpy="{}"/></joint>
  <joint name="hinge" type="revolute"><parent link="tool"/><child link="loose"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <sensor name="wrist" type="force_torque"><parent joint="wrist_joint"/>
    <force_torque><frame>child</frame><measure_direction>child_to_parent</measure_direction>
    </force_torque></sensor>
</robot>
""".format(' '.join(map(str, POSE[:3, 3])), ' '.join(map(str, RPY)))


def on_robot(tmp_path, bag, *more, imus=('imu',), frame='ft'):
    (tmp_path / 'arm.urdf').write_text(URDF)
    node = {
        'imus': list(imus),
        'ft': {'wrist': {'topic': '/ft', 'frame_id': frame}},
        'imu': {'imu': {'topic': '/imu', 'frame_id': 'imu'}},
    }
    (tmp_path / 'node.yaml').write_text(yaml.safe_dump({'/**': {'ros__parameters': node}}))
    return main([
        'calibrate', 'tool', str(bag), '--robot', str(tmp_path / 'arm.urdf'), '--config',
        str(tmp_path / 'node.yaml'), *map(str, more),
    ])  # fmt: skip


def test_the_description_of_a_robot_says_how_its_sensors_sit(bag, tmp_path):
    told, saved = tmp_path / 'tool.json', tmp_path / 'arm.yaml'
    more = ('--ft', 'wrist', '--imu', 'imu', '--json', told, '--out', saved)
    assert on_robot(tmp_path, bag, *more) == 0
    assert json.loads(told.read_text())['mass'] == pytest.approx(BODY[0], rel=FROZEN)
    assert list(read(saved)[1]) == ['wrist']
    assert read(saved)[0] == 'arm'


@pytest.mark.parametrize(
    ('more', 'given', 'code', 'named'),
    [
        (('--ft', 'wrst', '--imu', 'imu'), {}, 1, '--ft'),
        (('--ft', 'wrist', '--imu', 'gyro'), {}, 1, '--imu'),
        (('--ft', 'wrist', '--imu', 'imu'), {'frame': 'flange'}, 1, 'flange'),
        (('--ft', 'wrist', '--imu', 'loose'), {'imus': ('imu', 'loose')}, 1, 'loose'),
        (('--ft', 'wrist', '--imu', 'imu', '--direction', 'child_to_parent'), {}, 2,
         '--direction'),
    ],
)  # fmt: skip
def test_sensors_that_do_not_go_together_are_refused(
    bag, tmp_path, capsys, more, given, code, named
):
    assert on_robot(tmp_path, bag, *more, **given) == code
    assert named in capsys.readouterr().err


@pytest.mark.parametrize(
    ('part', 'more', 'named', 'code'),
    [
        ('', (), 'wrist', 1),
        ('', (*PLACE, '--direction', 'parent_to_child', '--most-delay', '0'), '--direction', 1),
        ('', (*PLACE, '--imu', '/gyro'), '/gyro', 1),
        ('', (*PLACE, '--imu', '/ft'), 'WrenchStamped', 1),
        ('', (*PLACE, '--most-delay', '0.004'), '--most-delay', 1),
        ('', (*PLACE, '--blocks', '1'), '--blocks', 2),
        ('@20:30', PLACE, '/ft', 1),
        ('@1:1.2', PLACE, '10 blocks', 1),
    ],
)
def test_errors_name_options(bag, capsys, part, more, named, code):
    assert run(f'{bag}{part}', *more) == code
    assert named in capsys.readouterr().err


def test_readings_and_gyroscopes_are_asked_for(bag, tmp_path, capsys):
    assert main(['calibrate', 'tool', str(bag), '--ft', 'wrist', '--imu', '/imu']) == 2
    silent = write(tmp_path / 'bag', recorded(seconds=2.0), gyroscope=False)
    assert run(silent, *PLACE, '--inertia') == 2
    assert '--inertia' in capsys.readouterr().err


@pytest.mark.parametrize('name', ['bag_baseline', 'bag_vibrations'])
def test_the_bags_of_a_real_tool(tmp_path, name):
    bag = BAGS / name
    if not bag.exists():
        pytest.skip(f'no real log: {bag} is not there')
    told = tmp_path / 'tool.json'
    code = main([
        'calibrate', 'tool', str(bag), '--ft', 'wrist', '--readings', '/fts/wrench', '--imu',
        '/imu', '--imu-rpy', *map(str, RPY), '--accelerometer-offset', '-0.0359', '0.0868',
        '0.7562', '--json', str(told),
    ])  # fmt: skip
    assert code == 0
    found = json.loads(told.read_text())
    assert found['mass'] == pytest.approx(0.9323, abs=0.005)
    np.testing.assert_allclose(found['centre'], [0.0, 0.0, 0.044], atol=5e-4)
    assert 0.0055 < found['delay'] < 0.0075
