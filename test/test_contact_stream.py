# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Reported points become contacts of an instant, which replace default contacts; slow senders.

Not covered: the topic itself (test_estimator_node.py).
"""

import numpy as np
import pytest
from robots import nested_humanoid_urdf, random_sample
from scipy.spatial.transform import Rotation

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.contact_stream import (
    MAX_PENDING,
    MAX_TRACKS,
    ContactStream,
)
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.sender_rates import SenderRates
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot

MS = 1_000_000
START = 1_700_000_000_000 * MS
ROBOT = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])


def make(**settings):
    return ContactStream(ROBOT, EstimatorSettings.from_dict(settings))


def push(stream, ms, frame, *point):
    stream.push(START + ms * MS, frame, np.array(point))


def at(stream, ms):
    return [(contact.frame, contact.point) for contact in stream.at(START + ms * MS)]


def test_touch_lives_until_it_times_out():
    stream = make(contact_timeout=0.1)
    push(stream, 10, 'hand', 0.0, 0.0, 0.1)
    assert at(stream, 9) == []
    assert at(stream, 10) == at(stream, 110) == [('hand', (0.0, 0.0, 0.1))]
    assert stream.at(START + 50 * MS) is stream.at(START + 60 * MS)
    assert at(stream, 111) == []
    # A clock that goes back begins anew.
    push(stream, 10_000, 'hand', 0.0, 0.0, 0.0)
    assert at(stream, 10_000)
    assert at(stream, 100) == []
    push(stream, 110, 'foot', 0.0, 0.0, 0.0)
    assert at(stream, 110) == [('foot', (0.0, 0.0, 0.0))]
    assert at(stream, 10_000) == []
    stream.reset()
    assert at(stream, 110) == [] and stream.statistics().received == 3


def test_points_apart_are_contacts_of_their_own():
    """Two patches of one link that move, one of another, each with its own rate and clock."""
    stream = make(contact_timeout=0.03)
    for ms in range(100):
        if ms % 5 == 0:
            push(stream, ms, 'hand', 0.0, 0.0, 1e-3 * ms)
        if ms % 7 == 3:
            push(stream, ms, 'hand', 0.2, 0.0, 1e-3 * ms)
        if ms % 11 == 6:
            push(stream, ms, 'foot', 0.0, 0.1, 0.0)
        if ms > 10:
            assert [frame for frame, _ in at(stream, ms)] == ['hand', 'hand', 'foot']


def test_two_senders_of_one_spot_are_one_contact():
    stream = make(contact_timeout=0.1)
    for ms in range(0, 1000, 10):
        push(stream, ms, 'hand', 0.0, 0.0, 1e-4 * ms)
        push(stream, ms - 45, 'hand', 0.005, 0.0, 1e-4 * ms)
        # The late one is older wherever both report.
        assert at(stream, ms) == [('hand', (0.0, 0.0, 1e-4 * ms))]


def test_delayed_estimate_takes_the_point_of_its_instant():
    stream = make(**{'filter.delay': 0.2, 'filter.window': 0.4}, contact_timeout=0.05)
    # A change while the node runs keeps the delay.
    stream.set_timeout(0.05)
    for ms in range(1000):
        push(stream, ms, 'hand', 0.0, 0.0, 1e-4 * ms)
        if ms >= 200:
            assert at(stream, ms - 200) == [('hand', (0.0, 0.0, 1e-4 * (ms - 200)))]


@pytest.mark.parametrize(
    ('stamp', 'frame', 'point'),
    [
        (0, 'hand', (0.0, 0.0, 0.0)),
        (START, 'hnad', (0.0, 0.0, 0.0)),
        (START, 'hand', (0.0, np.nan, 0.0)),
    ],
)
def test_unusable_points_are_counted_and_cost_nothing_else(stamp, frame, point):
    stream = make()
    push(stream, 0, 'foot', 0.0, 0.0, 0.0)
    stream.push(stamp, frame, np.array(point))
    assert len(at(stream, 0)) == 1
    assert list(stream.problems.values()) == [1]
    assert stream.statistics().received == 2


def test_floods_are_bounded():
    stream = make()
    for k in range(MAX_TRACKS + 5):
        push(stream, 0, 'hand', float(k), 0.0, 0.0)
        stream.push(START, f'nonsense {k}', np.zeros(3))
    assert len(at(stream, 0)) == MAX_TRACKS
    assert stream.statistics().dropped == 5
    assert len(stream.problems) <= 21
    for k in range(2 * MAX_PENDING):
        push(stream, 1 + k, 'hand', 0.0, 0.0, 0.0)
    assert at(stream, 2 * MAX_PENDING)


# Slow senders


TIMEOUT, PERIOD = 0.1, 0.25
SLOW = np.arange(0.0, 2.0, PERIOD)  # eight messages [s]


def rates_of(seconds):
    rates = SenderRates(TIMEOUT)
    for second in seconds:
        rates.note(START + round(1e9 * second), 'hand')
    return rates


def slow_at_the_end(*seconds):
    return rates_of(seconds).slow_now(START + round(1e9 * seconds[-1]))


@pytest.mark.parametrize('apart', [0.0, 1e-3])
@pytest.mark.parametrize('points', [1, 3])
def test_sender_with_long_regular_gaps_is_slow(points, apart):
    """Several points of one message are one."""
    (slow,) = slow_at_the_end(*(SLOW[:, None] + apart * np.arange(points)).ravel())
    assert (slow.frame, slow.n_gaps) == ('hand', 7)
    assert slow.period == pytest.approx(PERIOD, rel=1e-8)


def test_fast_irregular_and_interleaved_senders_are_not_slow():
    assert not slow_at_the_end(*np.arange(0.0, 2.0, 0.09))
    assert not slow_at_the_end(0.0, 0.25, 0.5)
    assert not slow_at_the_end(*np.cumsum([0.3, 0.7, 0.2, 1.5, 0.4, 3.0, 0.15, 0.9]))
    early, late = np.arange(0.0, 3.0, 0.15), np.arange(0.0, 3.0, 0.15) + 0.075
    assert slow_at_the_end(*early)
    assert not rates_of(np.sort([*early, *late])).ever_slow
    ended = rates_of(SLOW)
    assert not ended.slow_now(START + 4_000_000_000)
    assert [slow.n_gaps for slow in ended.ever_slow] == [7]


# Default contacts that give way

DEFAULTS = ('root', 'hand', 'thigh', 'sole')
# Normals


def test_a_pose_pushes_against_its_z_axis(rng):
    """A point has no normal: it is a force there, and a wrench where wrenches are reported."""
    turn = Rotation.random(random_state=3)
    pose = np.concatenate([[0.1, 0.0, 0.2], turn.as_quat()])
    for given, kinds in (
        ({'touch_kind': 'unilateral'}, ('unilateral', 'force')),
        ({'touch_kind': 'friction_cone', 'touch_friction': 0.4}, ('friction_cone', 'force')),
        ({'touch_kind': 'force'}, ('force', 'force')), ({}, ('wrench', 'wrench')),
    ):  # fmt: skip
        stream = make(**given)
        stream.push(START, 'hand', pose)
        stream.push(START, 'foot', pose[:3])
        normal, point = stream.at(START)
        assert (normal.kind, point.kind) == kinds and normal.frame == 'hand'
        np.testing.assert_allclose(normal.direction, -turn.as_matrix()[:, 2], atol=1e-15)
        assert normal.point == point.point == (0.1, 0.0, 0.2)
        assert normal.friction == given.get('touch_friction', 0.0)
    # One spot, whatever topic it comes from; the newest message counts.
    stream.push(START + MS, 'hand', pose[:3])
    assert [contact.direction for contact in stream.at(START + MS)] == [(0.0, 0.0, 1.0)] * 2
    with pytest.raises(ModelError):
        make(touch_kind='friction_cone')


@pytest.mark.parametrize('quaternion', [(0, 0, 0, 0), (0, 0, 0, 0.9), (0, np.nan, 0, 1)])
def test_a_pose_without_a_rotation_is_counted(quaternion):
    stream = make(touch_kind='unilateral')
    stream.push(START, 'hand', np.array([0.0, 0.0, 0.0, *quaternion]))
    assert not stream.at(START) and stream.problems.total() == 1


# Two ways to the same least-squares solution, relative to the largest number.
ROUND_OFF = 1e-12


@pytest.fixture(params=[['head'], ['head', 'hand', 'shank']])
def estimator(request):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=request.param)
    return WrenchEstimator(robot, [Contact(frame) for frame in DEFAULTS])


@pytest.mark.parametrize('kind', ['wrench', 'force', 'axial_force', 'unilateral'])
def test_only_the_touched_submodel_leaves_its_default(estimator, kind, rng):
    """Fault F5 of others: one touch, and the defaults of all submodels change."""
    touch = Contact('shank', kind, (0.02, -0.03, 0.1))
    sample = random_sample(estimator.robot, rng)
    got = estimator.update(sample, estimator.with_touches([touch]))
    wanted = estimator.update(sample, [Contact('root'), Contact('hand'), Contact('sole'), touch])
    for name in ('torques', 'external_torques', 'residuals'):
        a, b = getattr(got, name), getattr(wanted, name)
        np.testing.assert_allclose(a, b, rtol=0.0, atol=ROUND_OFF * np.abs(b).max(initial=1.0))
    assert [contact.name for contact in got.contacts] == [*DEFAULTS, 'shank']
    left = np.delete(got.wrenches, 2, axis=0)
    np.testing.assert_allclose(left, wanted.wrenches, rtol=0.0, atol=1e3 * ROUND_OFF)
    assert np.isfinite(left).all() and np.isnan(got.wrenches[2]).all()
    np.testing.assert_array_equal(got.contact_quality, [0, 0, Quality.DROPPED, 0, 0])


@pytest.mark.parametrize('lost', ['leg_sensor', 'foot_sensor'])
def test_where_submodels_merge_the_touch_stays(estimator, lost, rng):
    """The thigh is touched; with a sensor lost its submodel swallows a neighbour's default."""
    sample = random_sample(estimator.robot, rng)
    names = [sensor.name for sensor in estimator.robot.ft_sensors]
    sample.ft_readings[names.index(lost)] = np.nan
    touches = estimator.with_touches([Contact('shank', 'force', (0.0, 0.0, 0.2))])
    quality = estimator.update(sample, touches).contact_quality
    given_way = Quality.DROPPED | Quality.MERGED
    neighbour, other = ('root', 'sole') if lost == 'leg_sensor' else ('sole', 'root')
    expected = {'shank': Quality.MERGED, 'thigh': given_way, neighbour: given_way, other: 0}
    found = dict(zip([contact.name for contact in touches.contacts], quality))
    assert found == expected | {'hand': 0}
