# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Wrenches through joints in the report of a replay.

Not covered: the wrenches themselves (test_internal_wrenches.py), and the bag that is written
(test_replay_touches.py).
"""

import json

import numpy as np
import pytest

pytest.importorskip('rosbags')

from bag_messages import write_bag
from robots import nested_humanoid_urdf
from test_replay import SETTINGS, humanoid_messages

from inertial_estimation.building import build_estimator, build_robot
from inertial_estimation.cli import main
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.logs.bag import BagReader
from inertial_estimation.logs.job import replay_bag
from inertial_estimation.logs.recording import read_samples
from inertial_estimation.logs.replay import run
from inertial_estimation.logs.tables import make_tables

# The same sums; squares are added in one go.
ROUND_OFF = 1e-12


@pytest.fixture
def settings():
    return EstimatorSettings.from_dict(SETTINGS)


@pytest.fixture
def robot(settings):
    return build_robot(settings, nested_humanoid_urdf())


@pytest.fixture
def bag(tmp_path, robot):
    return write_bag(tmp_path / 'bag', humanoid_messages(robot))


def test_the_report_has_their_size_and_where_they_come_from(bag, robot, settings):
    joints = ['knee', robot.ft_sensors[1].joint]
    report = replay_bag(bag, nested_humanoid_urdf(), settings, through=joints)
    replay = run(read_samples(bag, robot, settings), robot, settings)
    internal = InternalWrenches(build_estimator(settings, robot))
    wanted = internal.of(replay.recording.samples, replay.estimate, joints)
    assert [through.joint for through in report.checks.through] == joints
    assert [through.frame for through in report.checks.through] == internal.frames(joints)
    for column, through in enumerate(report.checks.through):
        known = wanted[np.isfinite(wanted[:, column]).all(axis=1), column]
        assert 0 < through.n_samples == len(known) <= 60
        assert through.nan_share == pytest.approx(1.0 - len(known) / 60)
        for axes, rms, largest in (
            (slice(3), through.rms_force_n, through.max_force_n),
            (slice(3, 6), through.rms_moment_nm, through.max_moment_nm),
        ):
            sizes = np.linalg.norm(known[:, axes], axis=1)
            np.testing.assert_allclose(rms, np.sqrt(np.mean(sizes**2)), rtol=ROUND_OFF)
            np.testing.assert_allclose(largest, sizes.max(), rtol=ROUND_OFF)
    knee, sensor = report.checks.through
    assert 'sum over' in knee.obtained[0]
    assert sensor.obtained[0].startswith('measured by FT leg_sensor')
    table = next(t for t in make_tables(report) if t.title.startswith('Wrenches through'))
    assert [row[0] for row in table.rows] == joints
    assert report.as_dict()['checks']['through'][0]['joint'] == 'knee'


def test_nobody_asked_is_no_table(bag, settings):
    report = replay_bag(bag, nested_humanoid_urdf(), settings)
    assert report.checks.through == ()
    assert not [t for t in make_tables(report) if t.title.startswith('Wrenches through')]


def test_a_joint_that_is_named_twice_is_refused_before_the_work(tmp_path, bag, settings):
    out = tmp_path / 'out'
    with pytest.raises(ConfigError, match='through knee is asked for more than once'):
        replay_bag(
            bag, nested_humanoid_urdf(), settings, out=out, through=['knee', 'elbow', 'knee']
        )
    assert not out.exists()


def test_what_is_written_is_what_is_told(tmp_path, bag, settings):
    out = tmp_path / 'out'
    report = replay_bag(bag, nested_humanoid_urdf(), settings, out=out, through=['knee'])
    with BagReader(out) as reader:
        topic = reader.topics['/wrench_estimator/internal_wrench/knee']
    assert topic.n_messages == report.checks.through[0].n_samples


def test_no_bag_has_to_be_written_for_them(tmp_path, bag, capsys):
    urdf, config = tmp_path / 'robot.urdf', tmp_path / 'config.yaml'
    urdf.write_text(nested_humanoid_urdf(), encoding='utf-8')
    config.write_text(json.dumps({'/**': {'ros__parameters': SETTINGS}}), encoding='utf-8')
    arguments = ['--robot', str(urdf), '--config', str(config), '--through', 'knee']
    assert not main(['replay', str(bag), *arguments])
    assert 'Wrenches through joints' in capsys.readouterr().out
