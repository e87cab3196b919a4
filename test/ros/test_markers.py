# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What rviz is given to draw: which markers there are, where, how long and in which colour.

Not covered: the picture that rviz makes of them; each colour of submodels is in
test_conversions.py.
"""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, PERIOD_NS, START_NS, BenchRobot
from geometry_msgs.msg import PointStamped
from robots import nested_humanoid_urdf, random_sample
from visualization_msgs.msg import Marker, MarkerArray

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros import budget
from inertial_estimation.ros.conversions import point_to_message, stamp_to_ns
from inertial_estimation.ros.inertia_markers import inertia_markers
from inertial_estimation.ros.marker_colours import (
    FORCE,
    GLASS_FORCE,
    GREY,
    PALE_FORCE,
    RED,
    YELLOW,
)
from inertial_estimation.ros.state_markers import (
    health_balls,
    health_markers,
    momentum_markers,
    sensor_markers,
    uninformed_markers,
)
from inertial_estimation.ros.wrench_markers import (
    FORCE_SCALE,
    LIFETIME_NS,
    THINNEST,
    WrenchMarkers,
    ellipsoid,
)
from inertial_estimation.sample import SensorState
from inertial_estimation.uncertainty.deviations import Deviations

NO_FILTERS = {'acceleration_source': 'zero', 'angular_acceleration_source': 'zero'}
CONFIG = Path(__file__).parents[2] / 'config'
ROUND_OFF = 1e-12
"""Lengths are below a metre."""
POINT = (0.0, 0.1, 0.2)


@pytest.fixture
def robot():
    return Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])


@pytest.fixture
def estimate(robot, rng):
    contacts = [Contact('root'), Contact('hand', 'force', POINT), Contact('foot')]
    return WrenchEstimator(robot, contacts).update(random_sample(robot, rng))


def deviations_of(estimate, rows):
    """Return standard deviations of an estimate, of which only the wrenches matter."""
    nothing = np.empty(0)
    return Deviations(estimate.stamp_ns, estimate.contacts, rows, nothing, nothing, nothing)


def by_kind(markers):
    """Return markers by namespace."""
    found = {}
    for marker in markers:
        found.setdefault(marker.ns, []).append(marker)
    return found


def corner(point):
    return np.array([point.x, point.y, point.z])


def diameters(marker):
    return np.array([marker.scale.x, marker.scale.y, marker.scale.z])


def test_an_ellipsoid_of_two_deviations_is_at_the_tip_of_each_force(estimate):
    rows = np.arange(1.0, 19.0).reshape(3, 6)
    found = by_kind(WrenchMarkers().of(estimate, deviations_of(estimate, rows)))
    for arrow, surface, sigma in zip(found['force'], found['force_deviation'], rows):
        assert surface.type == Marker.SPHERE
        assert surface.header.frame_id == arrow.header.frame_id
        tip = corner(surface.pose.position)
        np.testing.assert_allclose(tip, corner(arrow.points[1]), atol=ROUND_OFF)
        # Two deviations on either side, as long as an arrow of that force.
        wanted = 4.0 * FORCE_SCALE * sigma[:3]
        np.testing.assert_allclose(diameters(surface), wanted, atol=ROUND_OFF)
    hand = found['force'][1]
    np.testing.assert_allclose(corner(hand.points[0]), POINT, atol=ROUND_OFF)
    length = np.linalg.norm(corner(hand.points[1]) - POINT)
    wanted = FORCE_SCALE * np.linalg.norm(estimate.wrenches[1, :3])
    assert length == pytest.approx(wanted)


def test_what_is_not_known_has_no_ellipsoid(estimate):
    rows = np.ones((3, 6))
    rows[0], rows[1], rows[2] = np.inf, np.nan, 0.0
    markers = WrenchMarkers()
    assert 'force_deviation' not in by_kind(markers.of(estimate, deviations_of(estimate, rows)))
    assert 'force_deviation' not in by_kind(markers.of(estimate, None))


def test_what_errs_along_one_direction_is_still_drawn():
    np.testing.assert_array_equal(ellipsoid(np.array([0.0, 0.0, 2.0])),
                                  [THINNEST, THINNEST, 8.0 * FORCE_SCALE])  # fmt: skip


def test_deviations_of_long_ago_or_of_other_contacts_are_not_shown(estimate):
    good = deviations_of(estimate, np.ones((3, 6)))
    shown = [
        'force_deviation' in by_kind(WrenchMarkers().of(estimate, given))
        for given in (
            good,
            good._replace(stamp_ns=estimate.stamp_ns - LIFETIME_NS),
            good._replace(stamp_ns=estimate.stamp_ns - LIFETIME_NS - 1),
            good._replace(contacts=good.contacts[::-1]),
        )
    ]
    assert shown == [True, True, False, False]


@pytest.mark.parametrize(
    ('quality', 'colour'),
    [
        (0, FORCE),
        (Quality.ASSUMED, PALE_FORCE),
        (Quality.MERGED, PALE_FORCE),
        (Quality.UNDETERMINED | Quality.ASSUMED, GLASS_FORCE),
    ],
)
def test_the_colour_of_an_arrow_says_how_it_came_about(estimate, quality, colour):
    flags = np.full_like(estimate.contact_quality, quality)
    found = by_kind(WrenchMarkers().of(estimate._replace(contact_quality=flags), None))
    assert [marker.color for marker in found['force']] == [colour] * 3


def test_links_are_balls_in_the_colour_of_their_submodel(robot, estimate):
    flags = np.zeros_like(estimate.submodel_quality)
    flags[1] = Quality.MISSING
    markers = health_markers(health_balls(robot), estimate._replace(submodel_quality=flags))
    red = {marker.id for marker in markers if marker.color == RED}
    assert red == set(robot.submodels[1].links)
    assert {marker.id for marker in markers} == set(range(len(robot.links)))
    for marker in markers:
        mass, moment = robot.parameters[marker.id, 0], robot.parameters[marker.id, 1:4]
        at = corner(marker.pose.position)
        np.testing.assert_allclose(at, moment / mass, atol=ROUND_OFF)
        assert marker.header.frame_id == robot.link_names[marker.id]


def test_sensors_that_are_not_whole_are_marked_where_they_sit(robot, rng):
    sample = random_sample(robot, rng)
    assert sensor_markers(robot, sample) == []
    fts = np.array([SensorState.FRESH, SensorState.STALE, SensorState.FRESH], dtype=np.uint8)
    imus = np.array([SensorState.PARTIAL], dtype=np.uint8)
    markers = sensor_markers(robot, sample._replace(ft_states=fts, imu_states=imus))
    box, label, imu_box, imu_label = markers
    sensor = robot.ft_sensors[1]
    assert (box.type, label.type) == (Marker.CUBE, Marker.TEXT_VIEW_FACING)
    assert box.header.frame_id == robot.link_names[sensor.child]
    np.testing.assert_array_equal(corner(box.pose.position), sensor.child_H_sensor[:3, 3])
    assert (label.text, box.color) == (f'{sensor.name}: stale', RED)
    assert (imu_label.text, imu_box.color) == ('head: partial', YELLOW)
    assert len({(marker.ns, marker.id) for marker in markers}) == 4


def test_joints_that_no_ft_informs_are_grey(robot):
    (ball,) = uninformed_markers(robot, ['neck'])
    assert (ball.header.frame_id, ball.color) == ('head', GREY)
    assert uninformed_markers(robot, []) == []


def test_the_momentum_is_named_only_when_it_fails(robot):
    assert momentum_markers(robot, '') == []
    (label,) = momentum_markers(robot, '3.00 N unexplained')
    assert label.header.frame_id == 'root'
    assert label.text == 'momentum: 3.00 N unexplained'


def test_every_kind_is_in_the_rviz_file_and_can_be_switched_off(robot, estimate, rng):
    yaml = pytest.importorskip('yaml', reason='needs PyYAML')
    rviz = yaml.safe_load((CONFIG / 'wrench_estimator.rviz').read_text())
    listed = [
        name
        for display in rviz['Visualization Manager']['Displays']
        for name in display.get('Namespaces', ())
    ]
    lost = random_sample(robot, rng)._replace(imu_states=np.array([SensorState.STALE]))
    markers = [
        *WrenchMarkers().of(estimate, deviations_of(estimate, np.ones((3, 6)))),
        *sensor_markers(robot, lost),
        *uninformed_markers(robot, ['neck']),
        *momentum_markers(robot, 'wrong'),
        *health_markers(health_balls(robot), estimate),
        *inertia_markers(robot, 1.1 * robot.parameters),
    ]
    assert sorted(by_kind(markers)) == sorted(listed)


@pytest.fixture
def bench(context, monkeypatch):
    """Return a function that puts a robot with some parameters on the bench, without a budget."""
    monkeypatch.setattr(budget, 'SHARE', np.inf)
    made = []

    def make(**parameters):
        made.append(BenchRobot(context, HUMANOID | parameters))
        return made[-1]

    yield make
    for robot in made:
        robot.close()


def test_who_watches_the_markers_sees_how_sure_forces_are(bench, rng):
    robot = bench(visualization_rate=1000.0, deviations_rate=50.0, touch_kind='force',
                  **NO_FILTERS)  # fmt: skip
    wrenches = robot.listen_to_wrenches()
    robot.send_all(START_NS, rng)
    robot.wait_for_stamp(wrenches, START_NS)
    assert robot.estimator.pipeline.deviations.count == 0
    robot.listen(MarkerArray, 'wrench_estimator/markers')
    stamps = [START_NS + k * PERIOD_NS for k in range(2, 6)]
    for stamp in stamps:
        point = point_to_message(stamp, 'shank', POINT)
        robot.publisher(PointStamped, 'contacts').publish(point)
        robot.send_all(stamp, rng)
        robot.wait_for_stamp(wrenches, stamp)
    # Every second cycle, as deviations_rate says, though markers come with each.
    assert robot.estimator.pipeline.deviations.count == 2
    arrays = robot.heard['wrench_estimator/markers']
    robot.spin_until(lambda: len(arrays) == len(stamps))
    found = by_kind(arrays[-1].markers)
    frames = [marker.header.frame_id for marker in found['force_deviation']]
    assert 'shank' in frames and len(frames) >= len(found['force'])
    stamped = {stamp_to_ns(marker.header.stamp) for marker in arrays[-1].markers}
    assert stamped == {stamps[-1]}
