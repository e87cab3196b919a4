# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Outputs of a replay: standard deviations, wrenches inside the robot, touches, and the written bag.

Not covered: the numbers themselves (test_uncertainty.py, test_internal_wrenches.py).
"""

import numpy as np
import pytest
from bag_messages import JOINT_STATE, POINT, STORE, WRENCH, point, write_bag
from replays import MS, SETTINGS, START, codes, humanoid_messages, replay_bag
from robots import nested_humanoid_urdf

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.logs.bag import BagReader
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.replay import rows_at_rate, run, with_deviations
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.signals.messages import MULTI_DOF_JOINT_STATE
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.stream_noise import stream_noise

# The same sums in another order.
ROUND_OFF = 1e-12
POINTS = {'shank': (0.0, 0.1, 0.2), 'foot': (0.1, 0.0, 0.0)}


@pytest.fixture
def settings():
    return EstimatorSettings.from_dict(SETTINGS)


@pytest.fixture
def robot(settings):
    return build_robot(settings, nested_humanoid_urdf())


@pytest.fixture
def bag(tmp_path, robot):
    return write_bag(tmp_path / 'bag', humanoid_messages(robot))


@pytest.fixture
def touch_settings():
    return EstimatorSettings.from_dict(SETTINGS | {'touch_kind': 'force', 'contact_timeout': 0.02})


def touch(ms, frame, values, topic='/contacts'):
    stamp = START + ms * MS
    return (topic, POINT, stamp, point(stamp, frame, values))


@pytest.fixture
def messages(robot):
    """Return a log: the shank is touched at a moving point from 100 to 150 ms, the foot once."""
    points = [touch(ms, 'shank', (0.0, 1e-4 * ms, 0.2)) for ms in range(100, 151, 10)]
    found = [*humanoid_messages(robot), *points, touch(120, 'foot', POINTS['foot'])]
    return sorted(found, key=lambda message: message[2])


@pytest.fixture
def touched(tmp_path, messages):
    return write_bag(tmp_path / 'touched', messages)


def test_deviations_are_those_of_the_library(bag, robot, settings):
    replay = run(open_log(bag, robot, settings), robot, settings)
    assert replay.deviations is None
    found = with_deviations(replay, np.array([0, 40, 59])).deviations
    assert found.lack == ''
    noise = stream_noise(settings, robot, replay.recording.rates).model
    uncertainty = Uncertainty(build_estimator(settings, robot), noise)
    wanted = uncertainty.of(replay.recording.samples[59])
    for name in ('wrenches', 'torques', 'external_torques', 'residuals'):
        np.testing.assert_array_equal(getattr(found, name)[2], getattr(wanted, name))
    assert np.isfinite(found.torques[1:]).all()
    # The filters are not filled yet.
    assert np.isnan(found.torques[0]).all()


def test_bag_holds_deviations_at_their_rate(tmp_path, robot, bag):
    contacts, out = ['root', 'sole', 'hand'], tmp_path / 'out'
    given = {'contacts': contacts, 'outputs.deviations_rate': 50.0}
    settings = EstimatorSettings.from_dict(SETTINGS | given)
    replay_bag(bag, nested_humanoid_urdf(), settings, out=out)
    replay = run(open_log(bag, robot, settings), robot, settings)
    rows = rows_at_rate(replay.recording.samples.stamp_ns, 50.0)
    assert rows.tolist() == list(range(0, 60, 4))
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
    assert read['external_wrench'][-1].joint_names == contacts
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


def test_inside_wrenches_are_reported_and_written(tmp_path, bag, robot):
    """As the node publishes it; what is asked for besides comes behind."""
    given = {'outputs.internal_wrench_joints': ['elbow'], 'outputs.net_wrench_links': ['shank']}
    settings = EstimatorSettings.from_dict(SETTINGS | given)
    out = tmp_path / 'out'
    args = bag, nested_humanoid_urdf(), settings
    report = replay_bag(*args, out=out, through=['knee', 'elbow'], net=['foot'])
    assert [through.joint for through in report.through] == ['elbow', 'knee']
    assert [net.link for net in report.net] == ['shank', 'foot']
    replay = run(open_log(bag, robot, settings), robot, settings)
    internal = InternalWrenches(build_estimator(settings, robot))
    wanted = internal.net(replay.recording.samples, replay.estimate)
    wanted = wanted[:, robot.link_names.index('foot')]
    known = wanted[np.isfinite(wanted).all(axis=1)]
    foot = report.net[1]
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


def test_samples_are_estimated_with_the_touches_of_their_time(touched, robot, touch_settings):
    replay = run(open_log(touched, robot, touch_settings), robot, touch_settings)
    estimate, samples = replay.estimate, replay.recording.samples
    defaults = list(SETTINGS['contacts'])
    names = [contact.name for contact in estimate.contacts]
    assert names == [*defaults, 'shank', 'foot']
    there = (estimate.contact_quality & Quality.ABSENT) == 0
    ms = (samples.stamp_ns - START) / MS
    assert there[:, : len(defaults)].all()
    np.testing.assert_array_equal(there[:, names.index('shank')], (ms >= 100) & (ms <= 170))
    np.testing.assert_array_equal(there[:, names.index('foot')], (ms >= 120) & (ms <= 140))
    estimator = build_estimator(touch_settings, robot)
    for k, now in enumerate(ms.tolist()):
        y = 1e-4 * min(150, 10 * (now // 10))
        touches = [Contact('shank', 'force', (0.0, y, 0.2))] * (100 <= now <= 170)
        touches += [Contact('foot', 'force', POINTS['foot'])] * (120 <= now <= 140)
        wanted = estimator.update(samples[k], estimator.with_touches(touches))
        rows = [names.index(contact.name) for contact in wanted.contacts]
        scale = np.nanmax(np.abs(wanted.wrenches), initial=1.0)
        np.testing.assert_allclose(
            estimate.wrenches[k, rows], wanted.wrenches, rtol=0.0, atol=ROUND_OFF * scale
        )
        np.testing.assert_array_equal(estimate.contact_quality[k, rows], wanted.contact_quality)
        np.testing.assert_array_equal(estimate.torque_quality[k], wanted.torque_quality)


def test_written_bag_names_the_contacts_that_are_there(tmp_path, touched, touch_settings):
    out = tmp_path / 'out'
    replay_bag(touched, nested_humanoid_urdf(), touch_settings, out=out)
    with BagReader(out) as reader:
        read = {
            topic: [m.data for m in reader.messages([f'/wrench_estimator/{topic}'])]
            for topic in ('external_wrenches', 'quality')
        }
    found = set()
    for wrenches, quality in zip(read['external_wrenches'], read['quality'], strict=True):
        names = STORE.deserialize_cdr(wrenches, 'sensor_msgs/msg/MultiDOFJointState').joint_names
        message = STORE.deserialize_cdr(quality, JOINT_STATE)
        known = [n.removeprefix('external_wrench/') for n in message.name if '_wrench/' in n]
        assert known == names
        assert not (message.effort.astype(int) & Quality.ABSENT).any()
        found.add(tuple(names))
    defaults = tuple(SETTINGS['contacts'])
    assert found == {defaults, (*defaults, 'shank'), (*defaults, 'shank', 'foot')}


def test_points_that_cannot_be_used_are_found(tmp_path, messages, touch_settings):
    messages = sorted([*messages, touch(130, 'nowhere', (0.0,) * 3)], key=lambda m: m[2])
    bag = write_bag(tmp_path / 'other', messages)
    report = replay_bag(bag, nested_humanoid_urdf(), touch_settings)
    assert ('refused_message', 'contacts') in codes(report)
