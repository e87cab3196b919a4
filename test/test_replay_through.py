# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Wrenches through joints and net wrenches of links in the report of a replay.

Not covered: the wrenches themselves (test_internal_wrenches.py), and the bag that is written
(test_replay_touches.py).
"""

import numpy as np
import pytest

pytest.importorskip('rosbags')

from bag_messages import STORE, WRENCH, write_bag
from replays import replay_bag
from robots import nested_humanoid_urdf
from test_replay import SETTINGS, humanoid_messages

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.logs.bag import BagReader
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.replay import run
from inertial_estimation.model.configured_robot import build_robot

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
    replay = run(open_log(bag, robot, settings), robot, settings)
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


def test_what_the_parameter_file_names_is_told_and_written(tmp_path, bag, robot):
    """As the node publishes it; what is asked for besides comes behind."""
    given = {'outputs.internal_wrench_joints': ['elbow'], 'outputs.net_wrench_links': ['shank']}
    settings = EstimatorSettings.from_dict(SETTINGS | given)
    out = tmp_path / 'out'
    args = bag, nested_humanoid_urdf(), settings
    report = replay_bag(*args, out=out, through=['knee', 'elbow'], net=['foot'])
    assert [through.joint for through in report.checks.through] == ['elbow', 'knee']
    assert [net.link for net in report.checks.net] == ['shank', 'foot']
    replay = run(open_log(bag, robot, settings), robot, settings)
    internal = InternalWrenches(build_estimator(settings, robot))
    wanted = internal.net(replay.recording.samples, replay.estimate)
    wanted = wanted[:, robot.link_names.index('foot')]
    known = wanted[np.isfinite(wanted).all(axis=1)]
    foot = report.checks.net[1]
    assert 0 < foot.n_samples == len(known)
    forces = np.linalg.norm(known[:, :3], axis=1)
    np.testing.assert_allclose(foot.rms_force_n, np.sqrt(np.mean(forces**2)), rtol=ROUND_OFF)
    np.testing.assert_allclose(foot.max_force_n, forces.max(), rtol=ROUND_OFF)
    with BagReader(out) as reader:
        topic = '/wrench_estimator/net_wrench/foot'
        found = [STORE.deserialize_cdr(m.data, WRENCH) for m in reader.messages([topic])]
        assert '/wrench_estimator/internal_wrench/elbow' in reader.topics
        assert '/wrench_estimator/net_wrench/shank' in reader.topics
    assert {message.header.frame_id for message in found} == {'foot'}
    read = [[m.wrench.force.x, m.wrench.torque.z] for m in found]
    np.testing.assert_array_equal(read, known[:, [0, 5]])
