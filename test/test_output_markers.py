# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Records of the markers: what there is, where, how long and in which colour.

The oracle of the inertia markers integrates over their volume. Not covered: rviz.
"""

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from robots import nested_humanoid_urdf, random_sample
from test_set_parameters import others

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.outputs.markers import (
    CLEAR_ARROWS,
    CUBE,
    FORCE_SCALE,
    GREEN,
    GREY,
    INERTIA_IN_USE,
    INERTIA_OF_URDF,
    MIN_DIAMETER,
    ORANGE,
    PALE_ARROWS,
    RED,
    RED_ARROW,
    SPHERE,
    TEXT,
    WRENCH_LIFETIME_NS,
    YELLOW,
    health_markers,
    inertia_markers,
    link_balls,
    momentum_markers,
    sensor_markers,
    uninformed_markers,
    wrench_markers,
)
from inertial_estimation.sample import SensorState
from inertial_estimation.uncertainty.deviations import Deviations

CONFIG = Path(__file__).parents[1] / 'config'
ROUND_OFF = 1e-12
"""Lengths are below a metre."""
POINT = (0.0, 0.1, 0.2)
# Relative to the largest number of a link: round-off of roots and squares.
SAME = 1e-9
KINDS = {'inertia_cuboid', 'inertia_ellipsoid'}
DESCRIBED = {'described_cuboid', 'described_ellipsoid'}


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
        found.setdefault(marker.namespace, []).append(marker)
    return found


def test_an_ellipsoid_of_two_deviations_is_at_the_tip_of_each_force(estimate):
    rows = np.arange(1.0, 19.0).reshape(3, 6)
    found = by_kind(wrench_markers(estimate, deviations_of(estimate, rows)))
    for arrow, surface, sigma in zip(found['force'], found['force_deviation'], rows):
        assert surface.shape == SPHERE
        assert surface.frame == arrow.frame
        tip = np.array(surface.position)
        np.testing.assert_allclose(tip, np.array(arrow.points[1]), atol=ROUND_OFF)
        # Two deviations on either side, as long as an arrow of that force.
        wanted = 4.0 * FORCE_SCALE * sigma[:3]
        np.testing.assert_allclose(surface.scale, wanted, atol=ROUND_OFF)
    hand = found['force'][1]
    np.testing.assert_allclose(np.array(hand.points[0]), POINT, atol=ROUND_OFF)
    length = np.linalg.norm(np.array(hand.points[1]) - POINT)
    wanted = FORCE_SCALE * np.linalg.norm(estimate.wrenches[1, :3])
    assert length == pytest.approx(wanted)


def test_what_is_not_known_has_no_ellipsoid(estimate):
    rows = np.ones((3, 6))
    rows[0], rows[1], rows[2] = np.inf, np.nan, 0.0
    for given in (deviations_of(estimate, rows), None):
        assert 'force_deviation' not in by_kind(wrench_markers(estimate, given))


def test_an_ellipsoid_has_a_least_diameter(estimate):
    rows = np.zeros((3, 6))
    rows[:, 2] = 2.0
    found = by_kind(wrench_markers(estimate, deviations_of(estimate, rows)))
    for marker in found['force_deviation']:
        np.testing.assert_array_equal(
            marker.scale, [MIN_DIAMETER, MIN_DIAMETER, 8.0 * FORCE_SCALE]
        )


def test_deviations_of_long_ago_or_of_other_contacts_are_not_shown(estimate):
    good = deviations_of(estimate, np.ones((3, 6)))
    shown = [
        'force_deviation' in by_kind(wrench_markers(estimate, given))
        for given in (
            good,
            good._replace(stamp_ns=estimate.stamp_ns - WRENCH_LIFETIME_NS),
            good._replace(stamp_ns=estimate.stamp_ns - WRENCH_LIFETIME_NS - 1),
            good._replace(contacts=good.contacts[::-1]),
        )
    ]
    assert shown == [True, True, False, False]


@pytest.mark.parametrize(
    ('quality', 'colour'),
    [
        (0, RED_ARROW),
        (Quality.ASSUMED, PALE_ARROWS[0]),
        (Quality.MERGED, PALE_ARROWS[0]),
        (Quality.UNDETERMINED | Quality.ASSUMED, CLEAR_ARROWS[0]),
    ],
)
def test_the_colour_of_an_arrow_says_how_it_came_about(estimate, quality, colour):
    flags = np.full_like(estimate.contact_quality, quality)
    found = by_kind(wrench_markers(estimate._replace(contact_quality=flags), None))
    assert [marker.colour for marker in found['force']] == [colour] * 3


@pytest.mark.parametrize(
    ('quality', 'colour'),
    [
        (0, GREEN),
        (Quality.ASSUMED, YELLOW),
        (Quality.UNDETERMINED, YELLOW),
        (Quality.MERGED | Quality.ASSUMED, ORANGE),
        (Quality.MISSING | Quality.MERGED, RED),
    ],
)
def test_the_colour_of_a_link_is_that_of_its_quality(robot, estimate, quality, colour):
    flags = np.full_like(estimate.submodel_quality, quality)
    markers = health_markers(link_balls(robot), estimate._replace(submodel_quality=flags))
    assert {marker.colour for marker in markers} == {colour}


def test_links_are_balls_in_the_colour_of_their_submodel(robot, estimate):
    flags = np.zeros_like(estimate.submodel_quality)
    flags[1] = Quality.MISSING
    markers = health_markers(link_balls(robot), estimate._replace(submodel_quality=flags))
    red = {marker.index for marker in markers if marker.colour == RED}
    assert red == set(robot.submodels[1].links)
    assert {marker.index for marker in markers} == set(range(len(robot.links)))
    for marker in markers:
        mass, moment = robot.parameters[marker.index, 0], robot.parameters[marker.index, 1:4]
        at = np.array(marker.position)
        np.testing.assert_allclose(at, moment / mass, atol=ROUND_OFF)
        assert marker.frame == robot.link_names[marker.index]


def test_sensors_that_are_not_whole_are_marked_where_they_sit(robot, rng):
    sample = random_sample(robot, rng)
    assert sensor_markers(robot, sample) == []
    fts = np.array([SensorState.FRESH, SensorState.STALE, SensorState.FRESH], dtype=np.uint8)
    imus = np.array([SensorState.PARTIAL], dtype=np.uint8)
    markers = sensor_markers(robot, sample._replace(ft_states=fts, imu_states=imus))
    box, label, imu_box, imu_label = markers
    sensor = robot.ft_sensors[1]
    assert (box.shape, label.shape) == (CUBE, TEXT)
    assert box.frame == robot.link_names[sensor.child]
    np.testing.assert_array_equal(np.array(box.position), sensor.child_H_sensor[:3, 3])
    assert (label.text, box.colour) == (f'{sensor.name}: stale', RED)
    assert (imu_label.text, imu_box.colour) == ('head: partial', YELLOW)
    assert len({(marker.namespace, marker.index) for marker in markers}) == 4


def test_joints_that_no_ft_informs_are_grey(robot):
    (ball,) = uninformed_markers(robot, ['neck'])
    assert (ball.frame, ball.colour) == ('head', GREY)
    assert uninformed_markers(robot, []) == []


def test_the_momentum_is_named_only_when_it_fails(robot):
    assert momentum_markers(robot, '') == []
    (label,) = momentum_markers(robot, '3.00 N unexplained')
    assert label.frame == 'root'
    assert label.text == '3.00 N unexplained'


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
        *wrench_markers(estimate, deviations_of(estimate, np.ones((3, 6)))),
        *sensor_markers(robot, lost),
        *uninformed_markers(robot, ['neck']),
        *momentum_markers(robot, 'wrong'),
        *health_markers(link_balls(robot), estimate),
        *inertia_markers(robot, 1.1 * robot.parameters)[1:],
    ]
    assert sorted(by_kind(markers)) == sorted(listed)


def parameters_of(marker, mass):
    """Return the inertial parameters of a marker of uniform density, by quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(3)
    if marker.shape == CUBE:
        x, y, z = np.meshgrid(nodes, nodes, nodes, indexing='ij')
        shares = np.einsum('i,j,k->ijk', weights, weights, weights)
    else:
        # A ball's r^2 dr sin(t) dt dp: exact for squares.
        radius, height = 0.5 * (nodes + 1.0), nodes
        angle = 2.0 * np.pi * np.arange(8) / 8
        r, c, p = np.meshgrid(radius, height, angle, indexing='ij')
        ring = np.sqrt(1.0 - c**2)
        x, y, z = r * ring * np.cos(p), r * ring * np.sin(p), r * c
        shares = np.einsum('i,j,k->ijk', weights * radius**2, weights, np.ones(8))
    points = np.stack([x, y, z], axis=-1).reshape(-1, 3) * 0.5 * np.array(marker.scale)
    points = points @ pin.Quaternion(np.array(marker.orientation)).matrix().T + marker.position
    m = mass * shares.ravel() / shares.sum()
    about = np.einsum('n,ni,nj->ij', m, points, points)
    inertia = np.trace(about) * np.eye(3) - about
    return np.array([mass, *(m @ points), *inertia[np.tril_indices(3)]])


def test_solids_have_the_inertia_of_their_links(robot, rng):
    parameters = others(robot, rng)
    markers = inertia_markers(robot, parameters)[1:]
    assert {m.namespace for m in markers} == KINDS | DESCRIBED
    assert len(markers) == 4 * len(robot.links)
    assert len({(m.namespace, m.index) for m in markers}) == len(markers)
    for marker in markers:
        used = marker.namespace in KINDS
        row = (parameters if used else robot.parameters)[marker.index]
        assert marker.frame == robot.link_names[marker.index]
        assert marker.colour == (INERTIA_IN_USE if used else INERTIA_OF_URDF)
        assert marker.frame_locked
        found = parameters_of(marker, row[0])
        np.testing.assert_allclose(
            found, row, atol=SAME * np.abs(row).max(), err_msg=marker.namespace
        )


def test_the_description_is_beside_only_where_it_is_another(robot, rng):
    assert {m.namespace for m in inertia_markers(robot, robot.parameters)[1:]} == KINDS
    parameters = robot.parameters.copy()
    parameters[2] *= 1.5
    beside = [m for m in inertia_markers(robot, parameters) if m.namespace in DESCRIBED]
    assert [m.index for m in beside] == [2, 2]
    # One number is enough.
    parameters[1, 4] *= 1.01
    beside = [m for m in inertia_markers(robot, parameters) if m.namespace in DESCRIBED]
    assert sorted(m.index for m in beside) == [1, 1, 2, 2]


def degenerate():
    """Return parameters of what has no volume."""
    point = [1.0, 0.1, 0.0, 0.0, 0.0, 0.0, 0.01, 0.0, 0.0, 0.01]
    stick = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.01, 0.0, 0.0, 0.01]
    plate = [1.0, 0.0, 0.0, 0.0, 0.01, 0.0, 0.02, 0.0, 0.0, 0.03]
    impossible = [1.0, 0.0, 0.0, 0.0, 0.01, 0.0, 0.01, 0.0, 0.0, 0.03]
    negative = [-1.0, 0.0, 0.0, 0.0, 0.01, 0.0, 0.01, 0.0, 0.0, 0.01]
    unknown = [1.0, np.nan, 0.0, 0.0, 0.01, 0.0, 0.01, 0.0, 0.0, 0.01]
    return np.array([[0.0] * 10, point, stick, plate, impossible, negative, unknown])


def test_what_has_no_volume_has_no_marker(robot):
    for row in degenerate():
        parameters = robot.parameters.copy()
        parameters[1] = row
        markers = inertia_markers(robot, parameters)[1:]
        used = [m for m in markers if m.namespace in KINDS]
        assert len(used) == 2 * (len(robot.links) - 1)
        assert all(m.index != 1 for m in used)
        for m in markers:
            assert np.isfinite(m.scale).all() and min(m.scale) > 0.0
