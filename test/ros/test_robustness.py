# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Faults from outside: paths that are no files of this package, and text that is no path.

Not covered: messages that are damaged or wrong (test_estimator_node.py).
"""

import os

import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, LATCHED
from std_msgs.msg import String
from std_srvs.srv import Trigger

from inertial_estimation.ros.estimator_node import EstimatorNode
from inertial_estimation.ros.identifier_node import IdentifierNode

NODES = pytest.mark.parametrize('kind', [EstimatorNode, IdentifierNode])
FOREIGN = pytest.mark.parametrize('what', ['text', 'link', 'pipe', 'folder'])


@NODES
def test_text_of_a_topic_is_no_path(bench, tmp_path, kind):
    path = tmp_path / 'urdf'
    path.write_text(HUMANOID['robot_description'])
    robot = bench(kind, robot_description='')
    publisher = robot.node.create_publisher(String, 'robot_description', LATCHED)
    publisher.publish(String(data=str(path)))
    robot.spin_until(lambda: robot.estimator._received_urdf)
    assert robot.estimator.pipeline is None
    publisher.publish(String(data=HUMANOID['robot_description']))
    robot.spin_until(lambda: robot.estimator.pipeline is not None)


@NODES
@pytest.mark.parametrize('parameter', ['robot_description_file', 'calibration_file'])
@pytest.mark.parametrize('what', ['secret', 'device', 'pipe'])
def test_only_regular_files_are_read_and_never_quoted(
    bench, tmp_path, capfd, kind, parameter, what
):
    path = '/dev/zero' if what == 'device' else tmp_path / what
    if what == 'secret':
        path.write_text('password: [hunter2\n')
    elif what == 'pipe':
        os.mkfifo(path)
    given = {'robot_description': ''} if parameter == 'robot_description_file' else {}
    robot = bench(kind, **given, **{parameter: str(path)})
    assert robot.estimator.pipeline is None
    logged = capfd.readouterr().err
    assert str(path) in logged and 'hunter2' not in logged


def foreign(folder, what):
    """Return a path of something that this package did not write."""
    path, target = folder / 'file', folder / 'target'
    if what == 'text':
        path.write_text('{"version": 3}')
    elif what == 'link':
        target.write_text('of others')
        path.symlink_to(target)
    elif what == 'pipe':
        os.mkfifo(path)
    else:
        path.mkdir()
    return path


def held(path):
    return (os.lstat(path).st_mode, path.read_text() if path.is_file() else None)


@FOREIGN
@pytest.mark.parametrize(
    ('parameter', 'service'), [('model.file', 'save_model'), ('calibration_file', 'save')]
)
def test_estimator_replaces_no_foreign_file(bench, tmp_path, what, parameter, service):
    path = foreign(tmp_path, what)
    before = held(path)
    # A calibration is read at the start, so it appears while the node runs.
    aside = path.rename(tmp_path / 'aside')
    robot = bench(**{parameter: str(path)})
    aside.rename(path)
    assert not robot.call(Trigger, service).success
    assert held(path) == before


@FOREIGN
def test_identifier_leaves_foreign_files_alone(bench, tmp_path, what):
    path = foreign(tmp_path, what)
    before, names = held(path), sorted(tmp_path.iterdir())
    robot = bench(IdentifierNode, state_file=str(path))
    assert robot.estimator.pipeline is None
    assert held(path) == before and sorted(tmp_path.iterdir()) == names


def test_saved_model_keeps_mode_and_link(bench, tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    robot = bench(**{'model.file': '~/link'})
    path = tmp_path / 'model'
    (tmp_path / 'link').symlink_to(path)
    assert robot.call(Trigger, 'save_model').success
    path.chmod(0o600)
    assert robot.call(Trigger, 'save_model').success
    assert path.stat().st_mode & 0o777 == 0o600 and (tmp_path / 'link').is_symlink()
    assert robot.call(Trigger, 'restore_model').success
