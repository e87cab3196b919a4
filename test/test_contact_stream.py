# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Points that somebody feels become contacts of an instant.

Not covered: what the contacts do to the estimate (test_touches.py), and the topic itself
(test_estimator_node.py).
"""

import numpy as np
import pytest
from robots import nested_humanoid_urdf

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contact_stream import MAX_PENDING, MAX_TRACKS, ContactStream
from inertial_estimation.model.robot import Robot

MS = 1_000_000
START = 1_000_000 * MS
ROBOT = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])


def make(**settings):
    return ContactStream(ROBOT, EstimatorSettings.from_dict(settings))


def push(stream, ms, frame, *point):
    stream.push(START + ms * MS, frame, np.array(point))


def at(stream, ms):
    return [(contact.frame, contact.point) for contact in stream.at(START + ms * MS)]


def test_a_touch_lives_until_it_times_out():
    stream = make(contact_timeout=0.1)
    push(stream, 10, 'hand', 0.0, 0.0, 0.1)
    assert at(stream, 9) == []
    assert at(stream, 10) == at(stream, 110) == [('hand', (0.0, 0.0, 0.1))]
    assert at(stream, 111) == []
    assert stream.at(START) == ()


def test_a_point_that_moves_is_one_contact():
    stream = make(touch_spacing=0.05)
    for k in range(20):
        push(stream, k, 'hand', 0.01 * k, 0.0, 0.0)
        assert at(stream, k) == [('hand', (0.01 * k, 0.0, 0.0))]


def test_points_apart_are_contacts_of_their_own_whoever_sends_them():
    """Two patches of one link, one of another, each with its own rate and clock."""
    stream = make(touch_spacing=0.05, contact_timeout=0.03)
    for ms in range(100):
        if ms % 5 == 0:
            push(stream, ms, 'hand', 0.0, 0.0, 1e-4 * ms)
        if ms % 7 == 3:
            push(stream, ms, 'hand', 0.2, 0.0, 1e-4 * ms)
        if ms % 11 == 6:
            push(stream, ms, 'foot', 0.0, 0.1, 0.0)
        if ms > 10:
            assert [frame for frame, _ in at(stream, ms)] == ['hand', 'hand', 'foot']


def test_points_of_one_message_cycle_are_apart_however_close():
    """Two fingertips, nearer to each other than the spacing, with one stamp."""
    stream = make(touch_spacing=0.05)
    for ms in (0, 10, 20):
        push(stream, ms, 'hand', 0.0, 0.0, 0.0)
        push(stream, ms, 'hand', 0.01, 0.0, 0.0)
        assert len(at(stream, ms)) == 2


def test_points_of_two_links_are_apart_wherever_they_are():
    """Each point is in the axes of its own frame: equal coordinates mean nothing."""
    stream = make(touch_spacing=0.05)
    for ms in (0, 10, 20):
        push(stream, ms, 'hand', 0.0, 0.0, 0.1)
        push(stream, ms + 1, 'foot', 0.0, 0.0, 0.1)
        assert at(stream, ms + 1) == [('hand', (0.0, 0.0, 0.1)), ('foot', (0.0, 0.0, 0.1))]


def test_a_point_belongs_to_the_nearest_contact():
    stream = make(touch_spacing=0.05)
    push(stream, 0, 'hand', 0.0, 0.0, 0.0)
    push(stream, 0, 'hand', 0.04, 0.0, 0.0)
    push(stream, 10, 'hand', 0.03, 0.0, 0.0)
    assert at(stream, 10) == [('hand', (0.0, 0.0, 0.0)), ('hand', (0.03, 0.0, 0.0))]


def test_two_senders_of_one_spot_are_one_contact_though_one_is_late():
    stream = make(contact_timeout=0.1, touch_spacing=0.05)
    for ms in range(0, 1000, 10):
        push(stream, ms, 'hand', 0.0, 0.0, 1e-4 * ms)
        push(stream, ms - 45, 'hand', 0.005, 0.0, 1e-4 * ms)
        # The late one is older wherever both tell.
        assert at(stream, ms) == [('hand', (0.0, 0.0, 1e-4 * ms))]


def test_a_point_enters_with_the_first_joint_state_that_is_not_earlier():
    stream = make()
    push(stream, 0, 'hand', 0.0, 0.0, 0.0)
    push(stream, 10, 'hand', 0.01, 0.0, 0.0)
    push(stream, 20, 'hand', 0.02, 0.0, 0.0)
    assert [at(stream, ms)[0][1][0] for ms in (0, 9, 10, 19, 25)] == [0.0, 0.0, 0.01, 0.01, 0.02]


def test_a_delayed_estimate_takes_what_was_felt_at_its_instant():
    stream = make(filter_delay=0.2, derivative_window=0.4, contact_timeout=0.05)
    for ms in range(1000):
        push(stream, ms, 'hand', 0.0, 0.0, 1e-4 * ms)
        if ms >= 200:
            assert at(stream, ms - 200) == [('hand', (0.0, 0.0, 1e-4 * (ms - 200)))]


def test_without_change_the_same_object_comes_back():
    stream = make()
    assert stream.at(START) is stream.at(START + MS)
    push(stream, 0, 'hand', 0.0, 0.0, 0.0)
    first = stream.at(START)
    assert stream.at(START + MS) is first
    push(stream, 2, 'hand', 0.0, 0.0, 0.0)
    assert stream.at(START + 2 * MS) is first


def test_a_kind_is_that_of_the_link():
    """The skin is a frame of the hand, turned by a quarter about x; its y is the hand's z."""
    skin = '<link name="skin"/><joint name="skin_joint" type="fixed">'
    skin += (
        '<parent link="hand"/><child link="skin"/><origin rpy="1.5707963267948966 0 0"/></joint>'
    )
    robot = Robot.from_urdf(nested_humanoid_urdf().replace('</robot>', skin + '</robot>'))

    def kinds(frames, **given):
        settings = EstimatorSettings.from_dict({'touch_frames': frames, **given})
        stream = ContactStream(robot, settings)
        for frame in ('skin', 'hand', 'foot'):
            stream.push(START, frame, np.zeros(3))
        return [(c.kind, np.round(c.direction, 12).tolist()) for c in stream.at(START)]

    axial = {'touch.hand.kind': 'axial_force', 'touch.hand.direction': [0.0, 0.0, 2.0]}
    other = ('wrench', [0.0, 0.0, 1.0])
    assert kinds(['hand'], **axial) == [
        ('axial_force', [0.0, 1.0, 0.0]),
        ('axial_force', [0.0, 0.0, 1.0]),
        other,
    ]
    # What is said of the frame itself comes first.
    force = {'touch.skin.kind': 'force'}
    assert [kind for kind, _ in kinds(['hand', 'skin'], **axial, **force)] == [
        'force',
        'axial_force',
        'wrench',
    ]
    assert [kind for kind, _ in kinds(['skin'], **force)] == ['force', 'force', 'wrench']
    # Only an axial force needs a direction.
    assert kinds(['hand'], **{'touch.hand.direction': [0.0, 0.0, 0.0]}) == [other] * 3


@pytest.mark.parametrize(
    ('stamp', 'frame', 'point', 'said'),
    [
        (0, 'hand', (0.0, 0.0, 0.0), 'header.stamp is zero'),
        (START, 'hnad', (0.0, 0.0, 0.0), "'hnad', which is no frame"),
        (START, 'hand', (0.0, np.nan, 0.0), 'not finite'),
    ],
)
def test_what_cannot_be_used_is_counted_and_costs_nothing_else(stamp, frame, point, said):
    stream = make()
    push(stream, 0, 'foot', 0.0, 0.0, 0.0)
    stream.push(stamp, frame, np.array(point))
    assert len(at(stream, 0)) == 1
    ((problem, count),) = stream.problems.items()
    assert said in problem and count == 1
    assert stream.statistics().received == 2


def test_floods_are_bounded():
    stream = make(touch_spacing=0.0)
    for k in range(MAX_TRACKS + 5):
        push(stream, 0, 'hand', float(k), 0.0, 0.0)
        stream.push(START, f'nonsense {k}', np.zeros(3))
    assert len(at(stream, 0)) == MAX_TRACKS
    assert stream.statistics().dropped == 5
    assert len(stream.problems) <= 21
    for k in range(2 * MAX_PENDING):
        push(stream, 1 + k, 'hand', 0.0, 0.0, 0.0)
    assert at(stream, 2 * MAX_PENDING)


def test_a_clock_that_goes_back_begins_anew():
    stream = make(contact_timeout=0.1)
    push(stream, 10_000, 'hand', 0.0, 0.0, 0.0)
    assert at(stream, 10_000)
    assert at(stream, 100) == []
    push(stream, 110, 'foot', 0.0, 0.0, 0.0)
    assert at(stream, 110) == [('foot', (0.0, 0.0, 0.0))]
    assert at(stream, 10_000) == []


def test_reset_forgets_points_and_keeps_counting():
    stream = make()
    push(stream, 0, 'hand', 0.0, 0.0, 0.0)
    stream.reset()
    assert at(stream, 0) == []
    assert stream.statistics().received == 1
