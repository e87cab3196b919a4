# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Logs: bags that rosbags writes, tables of the same readings, units, layouts, parts, locked joints.

Not covered: written bags, and one that ros2 bag recorded, in test_replay.py; temperatures in the
node, in ros/test_model_updates.py.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
import yaml

pytest.importorskip('rosbags')

from bag_messages import WRENCH, joint_state, sent, temperature, wrench, write_bag
from replays import MS, SETTINGS, START, humanoid_columns, humanoid_messages
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf
from rosbags.rosbag2 import CompressionMode

from inertial_estimation.calibration.calibration_file import SensorCalibration, write
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.cli import main
from inertial_estimation.cli.calibrate_log import in_hindsight
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.schema import read
from inertial_estimation.errors import ConfigError, LogError, NameNotFound
from inertial_estimation.logs.bag import BagReader, deserialize
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.log import LogSlice, no_progress
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.reduction import LogReader
from inertial_estimation.logs.replay import replay
from inertial_estimation.logs.table_formats import Layout
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.router import Source

FTS = tuple(SETTINGS['ft_sensors'])
LEG = FTS.index('leg_sensor')


def layout_of(robot):
    return {
        'time': 't', 'joints': list(robot.joint_names), 'positions': 'q', 'velocities': 'v',
        'efforts': 'e', 'ft_sensors': {name: name for name in FTS},
        'imus': {'head': {'gyroscope': 'w', 'accelerometer': 'a'}},
    }  # fmt: skip


@pytest.fixture
def files(tmp_path):
    settings = EstimatorSettings.from_dict(SETTINGS)
    robot = build_robot(settings, nested_humanoid_urdf())
    np.savez(tmp_path / 'log.npz', **humanoid_columns(robot))
    bag = write_bag(tmp_path / 'bag', humanoid_messages(robot))
    return bag, tmp_path / 'log.npz', robot, settings


def test_table_gives_the_samples_of_a_bag(files, tmp_path, capsys):
    bag, table, robot, settings = files
    layout = read(Layout, layout_of(robot), 'log')
    one = open_log(bag, robot, settings)
    other = open_log(table, robot, settings, layout=layout)
    for name in ('positions', 'velocities', 'accelerations', 'angular_accelerations',
                 'proper_accelerations', 'ft_readings', 'efforts'):  # fmt: skip
        wanted, found = getattr(one.samples, name), getattr(other.samples, name)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * np.nanmax(np.abs(wanted)))
    wanted = replay(robot, one, settings).wrenches
    found = replay(robot, other, settings).wrenches
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * np.nanmax(np.abs(wanted)))
    # The command.
    texts = {
        'robot': nested_humanoid_urdf(),
        'config': json.dumps({'/**': {'ros__parameters': SETTINGS}}),
        'layout': json.dumps({'log': layout_of(robot)}),
    }
    call = ['replay', table, '--json', tmp_path / 'out.json']
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        call += [f'--{name}', tmp_path / name]
    assert main(list(map(str, call))) == 0
    figures = (tmp_path / 'out.json').read_text()
    assert json.loads(figures)['n_samples'] == 60
    # Figures do not depend on what else is written.
    capsys.readouterr()
    assert main([*map(str, call), '--out', str(tmp_path / 'results'), '--full']) == 0
    assert (tmp_path / 'out.json').read_text() == figures
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_reading_that_leaps_does_not_spoil_its_smoothed_neighbours(files, tmp_path):
    _, _, robot, settings = files
    columns = humanoid_columns(robot)
    columns['leg_sensor'][30] += 5000.0
    bag = write_bag(tmp_path / 'leaping', humanoid_messages(robot, columns=columns))
    readings = open_log(bag, robot, in_hindsight(settings)).samples.ft_readings
    assert np.isfinite(readings).any() and np.nanmax(np.abs(readings)) < 50.0


# ---- Messages of bags ---------------------------------------------------------------------------


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
@pytest.mark.parametrize('as_file', [False, True])
def test_messages_come_in_the_order_of_their_recording(tmp_path, storage, as_file):
    written = []
    for k in range(200):
        stamp = START + 10 * k * MS
        written.append(sent('/joint_states', joint_state, stamp, ['a'], [k], late_ns=MS))
        written.append(sent('/ft/leg', wrench, stamp, 'leg', [k] * 6, late_ns=2 * MS))
    # The second half of the first topic is written late.
    path = write_bag(tmp_path / 'bag', [*written[1::2], *written[::2]], storage)
    file = next(f for f in path.iterdir() if f.suffix in ('.mcap', '.db3'))
    path = file if as_file else path
    with BagReader(path) as bag:
        assert bag.topics['/ft/leg'] == (WRENCH, 200)
        read = list(bag.messages(['/joint_states', '/ft/leg']))
        only = list(bag.messages(['/ft/leg']))
        assert not list(bag.messages([]))
    assert [(m.topic, m.recorded_ns, m.data) for m in read] == [
        (topic, recorded, data) for topic, _, recorded, data in written
    ]
    assert [m.topic for m in only] == ['/ft/leg'] * 200
    # A part of a file.
    file.write_bytes(file.read_bytes()[:3000])
    with pytest.raises(LogError) as caught, BagReader(path) as bag:
        list(bag.messages(['/ft/leg']))
    assert str(path) in str(caught.value) and 'Error' not in str(caught.value)
    assert file.suffix != '.mcap' or f"'{file.name}' is cut off" in str(caught.value)


@pytest.mark.parametrize('mode', CompressionMode)
def test_pieces_of_chunks_that_overlap_are_the_messages(tmp_path, monkeypatch, mode):
    rng, names = np.random.default_rng(0), [f'joint_{k}' for k in range(200)]
    written = []
    for k in range(600):
        stamp, late = START + k * MS, int(rng.exponential(20)) * MS
        values = rng.normal(size=200).tolist()
        written.append(sent('/joint_states', joint_state, stamp, names, values, late_ns=late))
        written.append(sent('/ft/leg', wrench, stamp, 'leg', [float(k)] * 6, late_ns=late))
        written.append(sent('/other', wrench, stamp, 'leg', [float(k)] * 6))
    monkeypatch.setattr('inertial_estimation.logs.bag.PIECE', 250)
    with BagReader(write_bag(tmp_path / 'bag', written, compression=mode)) as reader:
        topics = ['/ft/leg', '/joint_states']
        wanted = [(one.topic, one.data) for one in reader.messages(topics)]
        is_indexed = reader._indexed(topics) is not None
        assert is_indexed is (mode is not CompressionMode.MESSAGE)
        found = [
            (place, topic, messages.one(row))
            for piece in reader.pieces(topics)
            for topic, (messages, places) in piece.items()
            for row, place in enumerate(places)
        ]
    assert [one[1:] for one in sorted(found)] == wanted


def test_messages_of_other_byte_order_are_read():
    """As objects of rosbags; ros/test_messages_against_rclpy.py has objects of all types."""
    data = joint_state(START, ['hip', 'knee'], [1.0, 2.0], [], [3.0, 4.0], little_endian=False)
    joints = Source('joints', '', '', deserialize)
    reading = joints.read(data)
    assert (reading.stamp_ns, reading.names) == (START, ('hip', 'knee'))
    np.testing.assert_array_equal([reading.positions, reading.efforts], [[1, 2], [3, 4]])
    assert len(reading.velocities) == 0 and joints.fallbacks == 1


# ---- Parts of logs, locked joints -----------------------------------------------------

STAMPS = 5 * 10**9 + np.arange(100, dtype=np.int64) * 100_000_000
SPEED = 2.0


def test_part_is_named_by_seconds_after_the_first_sample():
    for text, rows in (
        ('run.npz', (0, 100)), ('run.npz@2:4', (20, 40)), ('run.npz@:0.35', (0, 4)),
        ('user@host.npz', (0, 100)), ('user@host.npz@0:1', (0, 10)),
    ):  # fmt: skip
        found = LogSlice.parse(text)
        assert found.rows(STAMPS).tolist() == list(range(*rows))
        assert LogSlice.parse(str(found)) == found
    for times in ('4:2', 'a:b'):
        with pytest.raises(ConfigError):
            LogSlice.parse(f'run.npz@{times}')
    with pytest.raises(LogError):
        LogSlice.parse('run.npz@20:30').rows(STAMPS)
    one = LogSlice.parse('run.npz@1:5')
    for other, overlaps in (
        ('./run.npz@4:6', True), ('run.npz', True), ('run.npz@5:6', False), ('o.npz@1:5', False)
    ):  # fmt: skip
        assert one.overlaps(LogSlice.parse(other)) == overlaps


def opened(folder, lock=(), column='turned'):
    """Return a reader and the log of an arm whose first joint turns on, or stands still."""
    t = np.arange(2000) / 200.0
    turned = np.mod(SPEED * t + np.pi, 2 * np.pi) - np.pi
    turned[700:703] = np.nan
    still = np.where(np.arange(2000) % 2, np.pi - 1e-3, -np.pi + 1e-3)
    jumps = 4.0 * np.sign(np.sin(t))
    np.savez(folder / 'log.npz', t=t, turned=turned, still=still, jumps=jumps, lift=0 * t)
    settings = {
        'robot': {'fixed_link': 'base'},
        'log': {'time': 't', 'joints': ['shoulder', 'elbow', 'lift'],
                'positions': {'columns': [column, 'jumps', 'lift']}},
    }  # fmt: skip
    (folder / 'logs.yaml').write_text(yaml.safe_dump(settings))
    log = LogSlice.parse(folder / 'log.npz')
    given = IdentifySettings.from_yaml(folder / 'logs.yaml')
    reader = LogReader(arm_with_wrist_sensor_urdf(), given, lock, log, no_progress)
    return reader, reader.read(log)


def test_continuous_joint_turns_on(tmp_path):
    _, log = opened(tmp_path)
    steps = np.diff(log.samples.positions[:, :2], axis=0)
    # The first, less three positions that are missing. The elbow has end stops, and its positions
    # are taken as they are.
    turned = steps[np.isfinite(steps[:, 0]), 0]
    np.testing.assert_allclose(turned, SPEED / 200.0, atol=1e-9)
    assert len(turned) == 1995 and np.abs(steps[:, 1]).max() == 8.0


def test_locked_joint_may_stand_half_a_turn_away(tmp_path):
    reader, _ = opened(tmp_path, ['shoulder'], 'still')
    assert reader.robot.joint_names == ('elbow', 'lift')
    with pytest.raises(LogError):
        opened(tmp_path, ['elbow'])


# ---- Layouts ------------------------------------------------------------------------------------

N = 5


def layout(**changes):
    """Return a layout of a log of two joints."""
    given = {'time': 't', 'joints': ['elbow', 'shoulder'], 'positions': 'q'}
    return read(Layout, given | changes, 'log')


@pytest.mark.parametrize('suffix', ['.npz', '.csv'])
def test_columns_go_to_their_joints_and_sensors_in_si(nested_humanoid, suffix, tmp_path, rng):
    sizes = {'q': 2, 'v': 2, 'i': 2, 'w': 6, 'g': 3, 'a': 3, 'warm': 1}
    path, values = (
        tmp_path / f'log{suffix}',
        {k: rng.normal(size=(N, n)) for k, n in sizes.items()},
    )
    values['ms'] = 10.0 * np.arange(N)[:, None]
    columns = {k: [f'{k}{axis}' for axis in range(one.shape[1])] for k, one in values.items()}
    if suffix == '.npz':
        columns = {k: k for k in values}
        np.savez(path, **values)
    else:
        header = ','.join(name for names in columns.values() for name in names)
        np.savetxt(path, np.hstack([*values.values()]), delimiter=',', header=header, comments='')
    matrix, offset = [[2.0, 0.0], [3.0, 4.0]], [0.0, 1.5]
    given = layout(
        time={'columns': columns['ms'], 'unit': 'ms'}, joints=['elbow', 'knee'],
        positions={'columns': columns['q'], 'unit': 'deg', 'divided_by': matrix, 'offset': offset},
        velocities={'columns': columns['v'], 'unit': ['deg/s', 'mm/s']},
        efforts={'columns': columns['i'], 'unit': 'mA', 'scale': [10.0, 20.0]},
        ft_sensors={'leg_sensor': columns['w']},
        temperatures={'leg_sensor': {'columns': columns['warm'], 'offset': 1.0}},
        imus={'head': {
            'gyroscope': {'columns': columns['g'], 'unit': 'deg/s'},
            'accelerometer': {'columns': columns['a'], 'unit': 'g'},
        }},
    )  # fmt: skip
    given.require_torques(('elbow', 'knee'))
    found = open_log(path, nested_humanoid, layout=given).samples
    joints = [nested_humanoid.joint_names.index(name) for name in ('elbow', 'knee')]
    np.testing.assert_array_equal(found.stamp_ns, np.arange(N) * 10_000_000)
    for wanted, one in (
        (np.deg2rad(values['q']), (found.positions[:, joints] - offset) @ np.transpose(matrix)),
        (values['v'] * [np.pi / 180, 1e-3], found.velocities[:, joints]),
        (values['i'] * [0.01, 0.02], found.efforts[:, joints]),
        (values['w'], found.ft_readings[:, LEG]),
        (values['warm'][:, 0] + 1.0, found.ft_temperatures[:, LEG]),
        (np.deg2rad(values['g']), found.angular_velocities[:, 0]),
        (9.80665 * values['a'], found.proper_accelerations[:, 0]),
    ):
        np.testing.assert_allclose(one, wanted)
    for of_joints in (found.positions, found.velocities, found.efforts):
        assert np.isnan(np.delete(of_joints, joints, axis=1)).all()
    for of_sensors in (found.ft_readings, found.ft_temperatures):
        assert np.isnan(np.delete(of_sensors, LEG, axis=1)).all()
    assert np.isnan(found.accelerations).all()


def test_rows_with_broken_times_are_left_out_or_outside_of_a_part(nested_humanoid, tmp_path):
    times = np.arange(10) * 0.1
    times[4:6], times[8] = np.nan, 0.05
    path, given = tmp_path / 'log.npz', layout(joints=['elbow', 'knee'])
    np.savez(path, t=times, q=np.arange(20.0).reshape(10, 2))
    whole = open_log(path, nested_humanoid, layout=given)
    assert len(whole.samples) == 8
    ((source, problem),) = whole.problems.items()
    assert source == 'log.time' and [*problem.values()] == [2] and 'row 5' in next(iter(problem))
    elbow = nested_humanoid.joint_names.index('elbow')
    np.savez(tmp_path / 'none.npz', t=np.full(3, np.nan), q=np.zeros((3, 2)))
    with pytest.raises(LogError):
        open_log(tmp_path / 'none.npz', nested_humanoid, layout=given)
    part = open_log(f'{path}@0.15:0.75', nested_humanoid, layout=given)
    assert part.samples.positions[:, elbow].tolist() == [4.0, 6.0, 12.0, 14.0]


def test_wrong_layouts_and_tables_are_refused(arm_with_wrist_sensor, tmp_path):
    path, times = tmp_path / 'log.npz', np.arange(N)
    np.savez(path, t=times * 0.01, q=np.ones((N, 2)), late=times * 1e20, short=np.ones((3, 2)))
    for changes in (
        {'positions': {'columns': 'q', 'unit': 'rads'}},
        {'positions': {'columns': 'q', 'divided_by': [[1, 1], [1, 1]]}},
        {'imus': {'head': {'gyroscope': 'g'}}},
        {'positions': 'p'}, {'velocities': 'short'}, {'time': 'late'},
        {'ft_sensors': {'wrist': 'q'}},
    ):  # fmt: skip
        with pytest.raises((ConfigError, LogError, NameNotFound)):
            open_log(path, arm_with_wrist_sensor, layout=layout(**changes))
    for name, text in (
        ('none.csv', None), ('ragged.csv', 't,q\n1,2\n1\n'), ('words.csv', 't\nx\n'),
        ('no.npz', 't,q'), ('log.mat', 't'),
    ):  # fmt: skip
        if text:
            (tmp_path / name).write_text(text)
        with pytest.raises((LogError, ConfigError)):
            open_log(tmp_path / name, arm_with_wrist_sensor, layout=layout())


# ---- Temperatures of FT sensors -----------------------------------------------------------------

SECOND = 1000 * MS
THERMAL = SETTINGS | {'ft.leg_sensor.temperature_topic': 'leg/temperature'}


def test_the_newest_temperature_is_held_until_it_is_too_old():
    settings = EstimatorSettings.from_dict(THERMAL)
    assembler = SampleAssembler(build_robot(settings, nested_humanoid_urdf()), settings)

    def temperatures(after):
        one = np.zeros(1)
        sample = assembler.push_joints(0, START + after, ('knee',), one, one, np.zeros(0))
        return sample.ft_temperatures

    assert np.isnan(temperatures(0)).all()
    # The first sensor has no topic.
    for sensor, seconds, celsius in ((LEG, 1, 20.0), (LEG, 2, 21.0), (0, 1, 50.0)):
        assembler.push_temperature(sensor, START + seconds * SECOND, celsius)
    for tenths, celsius in ((5, np.nan), (10, 20.0), (19, 20.0), (20, 21.0), (620, 21.0)):
        found = temperatures(tenths * SECOND // 10)
        np.testing.assert_array_equal(found, [np.nan, celsius, np.nan])
    assert np.isnan(temperatures(62 * SECOND + 1)[LEG])
    counted = assembler.statistics().temperatures['leg_sensor']
    assert (counted.received, counted.used) == (2, 4)


def test_bags_have_temperatures_and_estimates_use_them(tmp_path):
    path = tmp_path / 'calibration.yaml'
    settings = EstimatorSettings.from_dict(
        THERMAL | {'calibration_file': str(path), 'ft.foot_sensor.offset': [0.0] * 6}
    )
    robot = build_robot(settings, nested_humanoid_urdf())
    sensor = SensorCalibration(temperature_coefficients=np.arange(6.0), reference_temperature=20)
    write(path, robot.name, {'leg_sensor': sensor})
    cold = humanoid_messages(robot, 60)
    warm = [
        sent('/leg/temperature', temperature, START + 5 * k * MS, 'anywhere', 20.0 + k)
        for k in range(1, 60, 2)
    ]
    bag = write_bag(tmp_path / 'bag', sorted([*cold, *warm], key=lambda message: message[2]))
    samples = open_log(bag, robot, settings).samples
    expected = np.full((60, 3), np.nan)
    expected[1:, LEG] = 20.0 + (np.arange(1, 60) - 1) // 2 * 2 + 1
    np.testing.assert_array_equal(samples.ft_temperatures, expected)
    estimator = build_estimator(settings, robot)
    found, last = estimator.batch(samples).wrenches[-1], estimator.update(samples[-1]).wrenches
    np.testing.assert_allclose(found, last, rtol=1e-12, atol=1e-12)
    readings = samples.ft_readings[-1] + np.outer(np.eye(3)[LEG], 59.0 * np.arange(6.0))
    by_hand = samples[-1]._replace(ft_readings=readings, ft_temperatures=None)
    plain = build_estimator(replace(settings, calibration_file=''), robot).update(by_hand)
    np.testing.assert_allclose(found, plain.wrenches, rtol=1e-12, atol=1e-12)
    # A bag without the topic is refused if a sensor needs it.
    bag = write_bag(tmp_path / 'cold', cold)
    with pytest.raises(NameNotFound):
        open_log(bag, robot, settings)
    write(path, robot.name, {'leg_sensor': SensorCalibration()})
    assert np.isnan(open_log(bag, robot, settings).samples.ft_temperatures).all()
