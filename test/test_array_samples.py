# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Samples of whole streams against those of the node's assembler, on random faulty streams."""

from dataclasses import asdict

import numpy as np
import pytest

pytest.importorskip('rosbags')

from bag_messages import JOINT_STATE, imu, joint_state, point, sent, wrench, write_bag
from robots import nested_humanoid_urdf

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.logs import array_samples, bag
from inertial_estimation.logs.array_samples import ArraySamples, Irregular
from inertial_estimation.logs.bag import BagReader
from inertial_estimation.logs.bag_samples import Bag
from inertial_estimation.logs.log import Log, no_progress
from inertial_estimation.logs.open_log import by_rows, open_log
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.signals import batch_stream, stream

START = 1_700_000_000_000_000_000
MS = 1_000_000
FTS = ('arm_sensor', 'leg_sensor', 'foot_sensor')
SETTINGS = {
    'imus': ['head'],
    'ft_sensors': list(FTS),
    'ft.arm_sensor': {'time_offset': 0.003},
    'ft.leg_sensor.frame_id': 'leg_frame',
    'ft.foot_sensor.range': [25.0] * 6,
    'contacts': ['root', 'hand'],
    'joint_states.max_age': 0.03,
}
# Sums of 20 products in another order, over weights of a second derivative.
ROUND_OFF = 1e-9
SECONDS = 0.1
"""Length of pieces."""


def stamps_of(rng, n, period_ns, jitter_ns):
    """Stamps with jitter, gaps, repetitions and exchanges."""
    steps = period_ns + np.round(jitter_ns * rng.normal(size=n)).astype(np.int64)
    steps[rng.random(n) < 0.01] *= rng.integers(2, 30)
    steps[rng.random(n) < 0.01] = 0
    return START + int(rng.integers(0, 50) * MS) + np.cumsum(np.maximum(steps, 0))


def faulty(rng, values):
    """Make some readings freeze, some NaN or infinite, some in part."""
    n = len(values)
    for _ in range(rng.integers(0, 3)):
        start = rng.integers(0, n)
        values[start : start + rng.integers(2, 60)] = values[start]
    for wrong in (np.nan, np.inf):
        values[rng.random(n) < 0.01, rng.integers(0, values.shape[1])] = wrong
    values[rng.random(n) < 0.01, :3] = np.nan
    return values


def random_messages(rng, robot, jitter_ns, joint_topics):
    n, period = 300, int(rng.integers(3, 7)) * MS
    streams, joints = [], np.array(robot.joint_names)

    def add(topic, make, first, values):
        late = np.round(2 * MS * rng.random(len(values))).astype(int).tolist()
        for ns, at, row in zip(stamps_of(rng, len(values), period, jitter_ns), late, values):
            streams.append(sent(topic, make, int(ns), *first, *row, late_ns=at))

    for name in FTS:
        values = faulty(rng, rng.normal(0.0, 10.0, (n, 6)))
        add(f'/ft/{name}', wrench, ('leg_frame' if name == 'leg_sensor' else name,),
            [[row] for row in values])  # fmt: skip
    values = faulty(rng, rng.normal(0.0, 1.0, (n, 6)))
    add('/imu/head', imu, ('head',), [[row[:3], row[3:]] for row in values])
    places = rng.normal(0.0, 0.05, (20, 3))
    add('/contacts', point, ('hand',), [[place] for place in places])
    halves = np.array_split(rng.permutation(len(joints)), 2)
    for topic, own in joint_topics(halves):
        for rows in own:
            q = faulty(rng, np.sin(0.02 * np.arange(n)[:, None] + rows))
            names = [*joints[rows], 'tail']
            values = [(names, [*row, 0.0], [], [*row, 1.0]) for row in q]
            add(topic, joint_state, (), values)
    return sorted(streams, key=lambda message: message[2])


LAYOUTS = {
    'one topic': lambda halves: [('/joint_states', [np.concatenate(halves)])],
    'two publishers': lambda halves: [('/joint_states', halves)],
    'two topics': lambda halves: [('/joint_states', halves[:1]), ('/more', halves[1:])],
}


def opened(reader, settings, robot):
    needs = np.zeros(len(robot.ft_sensors), dtype=bool)
    return Bag(reader, robot, settings, needs, no_progress)


def read_both(tmp_path, messages, settings, robot):
    with BagReader(write_bag(tmp_path / 'bag', messages)) as reader:
        one = opened(reader, settings, robot)
        (whole,), pieces = one.read_arrays(), list(one.read_arrays(SECONDS))
        return whole, one.read_messages(), pieces


@pytest.mark.filterwarnings('ignore:invalid value encountered')
@pytest.mark.parametrize('seed', range(4))
@pytest.mark.parametrize('topics', LAYOUTS)
@pytest.mark.parametrize(('delay', 'smooth'), [(0.0, False), (0.05, True), (0.03, False)])
def test_arrays_are_the_samples_of_the_assembler(
    tmp_path, monkeypatch, topics, seed, delay, smooth
):
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        # Readings are lost where joint states stay away for longer than this.
        for module in (stream, batch_stream):
            monkeypatch.setattr(module, 'MAX_QUEUE', 8)
    robot_settings = {
        **SETTINGS,
        'joint_states.topics': ['/joint_states', '/more'][: 1 + (topics == 'two topics')],
        'joint_states.velocity_source': ('filter', 'message')[seed % 2],
        'filter': {
            'kind': ('savitzky_golay', 'quintic')[seed // 2 % 2],
            'window': 0.1,
            'delay': delay,
            'smooth_readings': smooth,
        },
    }
    settings = EstimatorSettings.from_dict(robot_settings)
    robot = build_robot(settings, nested_humanoid_urdf())
    # Exact stamps, jitter that counts as none, and real jitter.
    jitter_ns = rng.choice([0, 30, 100_000])
    messages = random_messages(rng, robot, jitter_ns, LAYOUTS[topics])
    monkeypatch.setattr(bag, 'PIECE', 100)
    monkeypatch.setattr(array_samples, 'HELD_NS', 20 * MS)
    found, wanted, pieces = read_both(tmp_path, messages, settings, robot)
    assert_same(found, wanted)
    assert len(pieces) > 3
    assert_same(Log.joined(pieces), wanted)


def assert_same(found, wanted):
    """Compare the logs of arrays and of messages."""
    for name in wanted.samples.__slots__:
        one, other = getattr(found.samples, name), getattr(wanted.samples, name)
        if other is None or other.dtype != np.float64:
            np.testing.assert_array_equal(one, other, name)
            continue
        # What is infinite for one is unknown to both.
        finite = np.isfinite(other)
        assert np.array_equal(np.isfinite(one), finite), name
        scale = np.abs(other[finite]).max(initial=1.0)
        np.testing.assert_allclose(one[finite], other[finite], rtol=0, atol=ROUND_OFF * scale)
    one, other = asdict(found.statistics), asdict(wanted.statistics)
    assert one == other
    for name in ('origin_ns', 'problems', 'late'):
        assert getattr(found, name) == getattr(wanted, name)
    assert found.touches.sets == wanted.touches.sets
    np.testing.assert_array_equal(found.touches.rows, wanted.touches.rows)
    np.testing.assert_array_equal(np.concatenate(found.rates), np.concatenate(wanted.rates))


@pytest.mark.filterwarnings('ignore:invalid value encountered')
@pytest.mark.parametrize('seed', range(4))
def test_table_in_arrays_is_that_of_its_rows(seed):
    rng = np.random.default_rng(seed)
    settings = EstimatorSettings.from_dict({**SETTINGS, 'joint_states.velocity_source': 'filter'})
    robot = build_robot(settings, nested_humanoid_urdf())
    n, joints = 300, len(robot.joint_names)
    stamps = stamps_of(rng, n, 4 * MS, rng.choice([0, 30, 100_000]))
    if seed % 2:
        # A clock that begins at zero: its first rows count as without a stamp.
        stamps -= stamps[0]
    angles = faulty(rng, np.sin(0.02 * np.arange(n)[:, None] + np.arange(joints)))
    motion = faulty(rng, rng.normal(0.0, 1.0, (n, 6)))
    readings = [faulty(rng, rng.normal(0.0, 10.0, (n, 6))) for _ in FTS]
    samples = SampleBatch(
        stamps, angles, 0.1 * angles, np.full((n, joints), np.nan), motion[:, None, :3],
        motion[:, None, 3:], np.full((n, 1, 3), np.nan), np.stack(readings, axis=1),
        efforts=angles if seed > 1 else None,
    )  # fmt: skip
    streams = ArraySamples(robot, settings)
    streams.add_table(samples)
    assert_same(streams.log(), by_rows(samples, robot, settings))


@pytest.mark.parametrize(
    'change',
    [
        {'filter': {'kind': 'kalman'}},
        'clock set back',
        'joints reported twice',
        'stamp of zero',
        'other byte order',
    ],
)
def test_logs_that_need_the_assembler_get_it(tmp_path, change):
    own = change if isinstance(change, dict) else {}
    settings = EstimatorSettings.from_dict({**SETTINGS, **own})
    robot = build_robot(settings, nested_humanoid_urdf())
    messages = random_messages(np.random.default_rng(0), robot, 0, LAYOUTS['one topic'])
    names, stamp = list(robot.joint_names), START + 3000 * MS
    values = [0.1] * len(names)
    odd = {
        'clock set back': [(START, names)],
        'joints reported twice': [(stamp, names[:2])],
        'stamp of zero': [(0, names)],
    }.get(str(change), [])
    data = [joint_state(at, some, values[: len(some)]) for at, some in odd]
    if change == 'other byte order':
        data = [joint_state(stamp, names, values, little_endian=False)]
    messages += [('/joint_states', JOINT_STATE, stamp, one) for one in data]
    path = write_bag(tmp_path / 'bag', messages)
    with BagReader(path) as reader:
        one = opened(reader, settings, robot)
        with pytest.raises(Irregular):
            list(one.read_arrays())
        wanted = one.read_messages()
    found = open_log(path, robot, settings)
    np.testing.assert_array_equal(found.samples.positions, wanted.samples.positions)
    assert found.problems == wanted.problems
