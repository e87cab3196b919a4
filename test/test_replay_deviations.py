# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Standard deviations of a log: in the report, its tables, and the bag that is written.

Not covered: the numbers themselves (test_uncertainty.py, test_stream_noise.py).
"""

import numpy as np
import pytest

pytest.importorskip('rosbags')

from bag_messages import JOINT_STATE, POINT, STORE, point, write_bag
from replays import replay_bag
from robots import nested_humanoid_urdf
from test_replay import MS, SETTINGS, START, humanoid_messages

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.logs.bag import BagReader
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.replay import rows_at_rate, run, with_deviations
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.signals.messages import MULTI_DOF_JOINT_STATE
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.stream_noise import stream_noise

RATE = 200.0
"""Of all streams of the log [Hz]."""
LAST = 59


def settings_of(**given):
    return EstimatorSettings.from_dict(SETTINGS | {'contacts': ['root', 'sole', 'hand']} | given)


@pytest.fixture
def settings():
    return settings_of()


@pytest.fixture
def robot(settings):
    return build_robot(settings, nested_humanoid_urdf())


@pytest.fixture
def bag(tmp_path, robot):
    return write_bag(tmp_path / 'bag', humanoid_messages(robot))


def test_some_instants_are_what_the_library_says_of_them(bag, robot, settings):
    replay = run(open_log(bag, robot, settings), robot, settings)
    assert replay.deviations is None
    found = with_deviations(replay, np.array([0, 40, LAST])).deviations
    assert found.lack == ''
    noise = stream_noise(settings, robot, replay.recording.rates).model
    uncertainty = Uncertainty(build_estimator(settings, robot), noise)
    wanted = uncertainty.of(replay.recording.samples[LAST])
    np.testing.assert_array_equal(found.wrenches[2], wanted.wrenches)
    np.testing.assert_array_equal(found.torques[2], wanted.torques)
    np.testing.assert_array_equal(found.external_torques[2], wanted.external_torques)
    np.testing.assert_array_equal(found.residuals[2], wanted.residuals)
    assert np.isfinite(found.torques[1:]).all()
    # The filters are not filled yet.
    assert np.isnan(found.torques[0]).all()


def test_the_bag_holds_them_decimated(tmp_path, robot, bag):
    settings, out = settings_of(**{'outputs.deviations_rate': 50.0}), tmp_path / 'out'
    replay_bag(bag, nested_humanoid_urdf(), settings, out=out)
    replay = run(open_log(bag, robot, settings), robot, settings)
    rows = rows_at_rate(replay.recording.samples.stamp_ns, 50.0)
    assert rows.tolist() == list(range(0, LAST + 1, 4))
    found = with_deviations(replay, rows).deviations
    with BagReader(out) as reader:
        read = {
            topic: [
                STORE.deserialize_cdr(m.data, type_)
                for m in reader.messages([f'/wrench_estimator/{topic}_deviations'])
            ]
            for topic, type_ in (
                ('external_wrench', MULTI_DOF_JOINT_STATE), ('joint_torque', JOINT_STATE),
                ('external_joint_torque', JOINT_STATE), ('residual', MULTI_DOF_JOINT_STATE),
            )
        }  # fmt: skip
    assert {len(messages) for messages in read.values()} == {len(rows)}
    assert read['external_wrench'][-1].joint_names == ['root', 'sole', 'hand']
    assert read['residual'][-1].joint_names == [submodel.name for submodel in robot.submodels]
    assert read['external_wrench'][-1].wrench[1].torque.z == found.wrenches[-1, 1, 5]
    thigh = read['residual'][-1].joint_names.index('thigh')
    assert read['residual'][-1].wrench[thigh].force.x == found.residuals[-1, thigh, 0] > 0.0
    for topic, values in (
        ('joint_torque', found.torques),
        ('external_joint_torque', found.external_torques),
    ):
        assert tuple(read[topic][-1].name) == robot.joint_names
        np.testing.assert_array_equal(read[topic][-1].effort, values[-1])


def test_touches_have_theirs_while_they_last(tmp_path, robot):
    settings = settings_of(
        **{'outputs.deviations_rate': RATE}, contact_timeout=0.02, touch_kind='force'
    )
    touches = [
        (
            '/contacts',
            POINT,
            START + ms * MS + MS,
            point(START + ms * MS, 'shank', (0.0, 0.1, 0.2)),
        )
        for ms in range(200, 250, 5)
    ]
    messages = sorted([*humanoid_messages(robot), *touches], key=lambda m: m[2])
    out = tmp_path / 'out'
    bag = write_bag(tmp_path / 'touched', messages)
    report = replay_bag(bag, nested_humanoid_urdf(), settings, out=out)
    (shank,) = (wrench for wrench in report.wrenches if wrench.contact == 'shank')
    deviation = np.array(shank.standard_deviation)
    assert (deviation[:3] > 0.0).all()
    with BagReader(out) as reader:
        names = [
            STORE.deserialize_cdr(m.data, MULTI_DOF_JOINT_STATE).joint_names
            for m in reader.messages(['/wrench_estimator/external_wrench_deviations'])
        ]
    assert 0 < sum('shank' in own for own in names) < len(names)
