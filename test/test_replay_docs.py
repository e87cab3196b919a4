# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The configuration of docs/replay.md, read out of the page and run over a bag.

Not covered: the figures themselves (test_replay.py).
"""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rosbags')

from bag_messages import IMU, JOINT_STATE, WRENCH, imu, joint_state, wrench, write_bag
from robots import nested_humanoid_urdf

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.logs import figures
from inertial_estimation.logs.job import replay_bag
from inertial_estimation.logs.tables import make_tables

PAGE = Path(__file__).resolve().parents[1] / 'docs' / 'replay.md'
START = 1_700_000_000_000_000_000
MS = 1_000_000
JOINTS = ['waist', 'shoulder_joint', 'elbow', 'hip_joint', 'knee']
TOPICS = {
    '/ft/arm_sensor': 'arm_sensor',
    '/leg/wrench': 'leg_frame',
    '/ft/foot_sensor': 'foot_sensor',
}


@pytest.fixture
def settings(tmp_path):
    text = re.search(r'```yaml\n(.*?)```', PAGE.read_text(encoding='utf-8'), re.DOTALL).group(1)
    (tmp_path / 'mine.yaml').write_text(text, encoding='utf-8')
    return EstimatorSettings.from_yaml(tmp_path / 'mine.yaml')


def replay(tmp_path, settings, joints=tuple(JOINTS), neck=None):
    """Replay a bag of 300 ms; positions of the neck are in it if they are given."""
    rng = np.random.default_rng(11)
    names = [*joints, *([] if neck is None else ['neck'])]
    messages = []
    for ms in range(0, 300, 5):
        stamp = START + ms * MS
        positions = [0.1 * np.sin(0.01 * ms + k) for k in range(len(joints))]
        positions += [] if neck is None else [neck]
        data = imu(stamp, 'head', rng.normal(0.0, 0.1, 3), [0.0, 1e-4 * ms, 9.81])
        messages.append(('/head/imu', IMU, stamp, data))
        for topic, frame in TOPICS.items():
            data = wrench(stamp, frame, rng.normal(0.0, 10.0, 6))
            messages.append((topic, WRENCH, stamp, data))
        messages.append(
            ('/joint_states', JOINT_STATE, stamp, joint_state(stamp, names, positions))
        )
    bag = write_bag(tmp_path / 'bag', messages)
    return replay_bag(bag, nested_humanoid_urdf(), settings, out=tmp_path / 'out')


def reported(report):
    """Return the warnings of assumed joints that are reported."""
    return [warning for warning in report.warnings if warning.startswith('assumed, yet')]


def test_the_configuration_of_the_page_works(tmp_path, settings):
    report = replay(tmp_path, settings)
    assert [wrench.contact for wrench in report.wrenches] == ['root', 'thigh', 'sole', 'hand']
    assert all(wrench.n_samples > 40 for wrench in report.wrenches)
    assert not reported(report)
    assert {c.state for c in report.causes} == {'assumed', 'starting'}


def test_an_assumed_joint_that_is_reported_is_a_warning_with_its_remedy(tmp_path, settings):
    report = replay(tmp_path, settings, neck=0.25)
    (warning,) = reported(report)
    assert 'neck (60 messages, up to 0.25 rad or m from the assumed 0)' in warning
    assert 'out of assumed_joints' in warning
    assert report.as_dict()['warnings'][0] == warning
    table = next(table for table in make_tables(report) if table.title == 'Warnings')
    assert table.rows[0] == (warning,)


def test_a_name_without_a_position_is_no_report(tmp_path, settings):
    assert not reported(replay(tmp_path, settings, neck=np.nan))


def test_a_joint_that_never_came_is_named(tmp_path, settings):
    report = replay(tmp_path, settings, joints=('waist', 'hip_joint', 'knee', 'shoulder_joint'))
    (cause,) = (cause for cause in report.causes if cause.state == 'absent')
    assert (cause.cause, cause.nan_contacts) == ('joint elbow never came', ('hand',))
    assert next(w for w in report.wrenches if w.contact == 'hand').n_samples == 0


def test_without_contacts_there_are_torques_and_residuals(tmp_path, settings):
    report = replay(tmp_path, dataclasses.replace(settings, contacts=()))
    assert 'no contact is assumed' in report.summary
    assert [r.submodel for r in report.residuals] == ['root', 'thigh', 'foot', 'upper_arm']
    assert all(np.isfinite((*r.mean, *r.rms)).all() for r in report.residuals)
    titles = [table.title for table in make_tables(report)]
    assert 'External wrenches' not in titles
    assert 'Residuals: what no contact explains' in titles
    assert 'Joint torques that the robot does not report' in titles
    assert all(torque.n_samples > 40 for torque in report.estimated_torques)


def test_the_page_is_short_and_explains_keys_and_tables(tmp_path, settings):
    page = PAGE.read_text(encoding='utf-8')
    assert len(page.splitlines()) < 120
    for field in dataclasses.fields(figures.CauseReport):
        told = field.name in ('cause', 'kind', 'name', 'state', 'n_samples', 'sample_share')
        assert told or field.name.endswith('_s') or f'`{field.name}`' in page, field.name
    for table in make_tables(replay(tmp_path, settings, neck=0.1)):
        assert table.title.split(',')[0] in page, table.title
