# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A bag with a contacts topic: touches come and go in one table.

Not covered: how points become contacts (test_contact_stream.py) and what they do to an estimate
(test_touches.py).
"""

import numpy as np
import pytest
from bag_messages import JOINT_STATE, POINT, STORE, WRENCH, point, write_bag
from replays import codes, replay_bag
from robots import nested_humanoid_urdf
from test_replay import MS, SETTINGS, START, humanoid_messages

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.logs.bag import BagReader
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.replay import run
from inertial_estimation.model.configured_robot import build_robot

# A batch and a step sum in another order.
ROUND_OFF = 1e-12
POINTS = {'shank': (0.0, 0.1, 0.2), 'foot': (0.1, 0.0, 0.0)}


@pytest.fixture
def settings():
    return EstimatorSettings.from_dict(SETTINGS | {'touch_kind': 'force', 'contact_timeout': 0.02})


@pytest.fixture
def robot(settings):
    return build_robot(settings, nested_humanoid_urdf())


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
def bag(tmp_path, messages):
    return write_bag(tmp_path / 'bag', messages)


def test_every_sample_is_estimated_with_what_was_felt_then(bag, robot, settings):
    replay = run(open_log(bag, robot, settings), robot, settings)
    estimate, samples = replay.estimate, replay.recording.samples
    defaults = list(SETTINGS['contacts'])
    names = [contact.name for contact in estimate.contacts]
    assert names == [*defaults, 'shank', 'foot']
    there = (estimate.contact_quality & Quality.ABSENT) == 0
    ms = (samples.stamp_ns - START) / MS
    assert there[:, : len(defaults)].all()
    np.testing.assert_array_equal(there[:, names.index('shank')], (ms >= 100) & (ms <= 170))
    np.testing.assert_array_equal(there[:, names.index('foot')], (ms >= 120) & (ms <= 140))
    estimator = build_estimator(settings, robot)
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


def test_what_a_touch_leaves_open_is_a_residual(tmp_path, bag, robot, settings):
    """The point force stands for the full wrench of the default contact while it lasts."""
    out = tmp_path / 'out'
    report = replay_bag(bag, nested_humanoid_urdf(), settings, out=out)
    replay = run(open_log(bag, robot, settings), robot, settings)
    # The shank belongs to the submodel of the thigh; one touch of the foot takes the sole's place.
    assert [r.submodel for r in report.residuals] == ['thigh', 'foot']
    names = [contact.name for contact in replay.estimate.contacts]
    touched = np.isfinite(replay.estimate.wrenches[:, names.index('shank'), 0])
    thigh = [submodel.name for submodel in robot.submodels].index('thigh')
    values = replay.estimate.residuals[touched, thigh]
    (found, _) = report.residuals
    assert 5 < found.n_samples == len(values) < 60
    np.testing.assert_allclose(found.rms, np.sqrt(np.mean(values**2, axis=0)), rtol=1e-9)
    assert max(found.rms) > 0.1
    with BagReader(out) as reader:
        topic = '/wrench_estimator/residual/thigh'
        read = [STORE.deserialize_cdr(m.data, WRENCH) for m in reader.messages([topic])]
    known = np.isfinite(replay.estimate.residuals[:, thigh]).all(axis=1)
    np.testing.assert_array_equal(
        [m.wrench.force.x for m in read], replay.estimate.residuals[known, thigh, 0]
    )


def test_the_bag_that_is_written_names_what_is_there(tmp_path, bag, settings):
    out = tmp_path / 'out'
    replay_bag(bag, nested_humanoid_urdf(), settings, out=out)
    with BagReader(out) as reader:
        read = {
            topic: [m.data for m in reader.messages([f'/wrench_estimator/{topic}'])]
            for topic in ('external_wrenches', 'quality')
        }
    found = set()
    for wrenches, quality in zip(read['external_wrenches'], read['quality'], strict=True):
        names = STORE.deserialize_cdr(wrenches, 'sensor_msgs/msg/MultiDOFJointState').joint_names
        message = STORE.deserialize_cdr(quality, JOINT_STATE)
        said = [n.removeprefix('external_wrench/') for n in message.name if '_wrench/' in n]
        assert said == names
        assert not (message.effort.astype(int) & Quality.ABSENT).any()
        found.add(tuple(names))
    defaults = tuple(SETTINGS['contacts'])
    assert found == {defaults, (*defaults, 'shank'), (*defaults, 'shank', 'foot')}


def test_points_that_cannot_be_used_are_warned_of(tmp_path, messages, settings):
    messages = sorted([*messages, touch(130, 'nowhere', (0.0,) * 3)], key=lambda m: m[2])
    bag = write_bag(tmp_path / 'other', messages)
    report = replay_bag(bag, nested_humanoid_urdf(), settings)
    assert ('refused_message', 'contacts') in codes(report)
