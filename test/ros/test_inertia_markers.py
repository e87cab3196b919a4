# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Bodies of uniform density that rviz is given for the links, and when it is given them.

The oracle integrates over their volume. Not covered: the picture that rviz makes of them.
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

import pinocchio as pin
from robots import nested_humanoid_urdf
from test_model_updates import ROBOT
from test_model_updates import make as make
from test_set_parameters import others
from visualization_msgs.msg import Marker, MarkerArray

from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.inertia_markers import LOOK_NS, inertia_markers
from inertial_estimation.ros.inertial_parameters import LATCHED, to_message
from inertial_estimation.ros.marker_colours import DESCRIBED_BODY, USED_BODY

# Relative to the largest number of a link: round-off of roots and squares.
SAME = 1e-9
TOPIC = 'wrench_estimator/inertia_markers'
KINDS = {'inertia_cuboid', 'inertia_ellipsoid'}
DESCRIBED = {'described_cuboid', 'described_ellipsoid'}


@pytest.fixture
def robot():
    return Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])


def parameters_of(marker, mass):
    """Return the inertial parameters of a marker of uniform density, by quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(3)
    if marker.type == Marker.CUBE:
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
    s, at, q = marker.scale, marker.pose.position, marker.pose.orientation
    points = np.stack([x, y, z], axis=-1).reshape(-1, 3) * 0.5 * np.array([s.x, s.y, s.z])
    points = points @ pin.Quaternion(q.w, q.x, q.y, q.z).matrix().T + [at.x, at.y, at.z]
    m = mass * shares.ravel() / shares.sum()
    about = np.einsum('n,ni,nj->ij', m, points, points)
    inertia = np.trace(about) * np.eye(3) - about
    return np.array([mass, *(m @ points), *inertia[np.tril_indices(3)]])


def test_solids_have_the_inertia_of_their_links(robot, rng):
    parameters = others(robot, rng)
    markers = inertia_markers(robot, parameters)
    assert {m.ns for m in markers} == KINDS | DESCRIBED
    assert len(markers) == 4 * len(robot.links)
    assert len({(m.ns, m.id) for m in markers}) == len(markers)
    for marker in markers:
        used = marker.ns in KINDS
        row = (parameters if used else robot.parameters)[marker.id]
        assert marker.header.frame_id == robot.link_names[marker.id]
        assert marker.color == (USED_BODY if used else DESCRIBED_BODY)
        assert marker.frame_locked
        found = parameters_of(marker, row[0])
        np.testing.assert_allclose(found, row, atol=SAME * np.abs(row).max(), err_msg=marker.ns)


def test_the_description_is_beside_only_where_it_is_another(robot, rng):
    assert {m.ns for m in inertia_markers(robot, robot.parameters)} == KINDS
    parameters = robot.parameters.copy()
    parameters[2] *= 1.5
    beside = [m for m in inertia_markers(robot, parameters) if m.ns in DESCRIBED]
    assert [m.id for m in beside] == [2, 2]
    # One number is enough.
    parameters[1, 4] *= 1.01
    beside = [m for m in inertia_markers(robot, parameters) if m.ns in DESCRIBED]
    assert sorted(m.id for m in beside) == [1, 1, 2, 2]


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
        markers = inertia_markers(robot, parameters)
        used = [m for m in markers if m.ns in KINDS]
        assert len(used) == 2 * (len(robot.links) - 1)
        assert all(m.id != 1 for m in used)
        for m in markers:
            sizes = [m.scale.x, m.scale.y, m.scale.z]
            assert np.isfinite(sizes).all() and min(sizes) > 0.0


def test_they_come_when_somebody_listens_and_when_the_model_changes(make, rng):
    bench, parameters = make(), others(ROBOT, rng)
    heard = bench.heard[TOPIC]
    bench.send()
    bench.listen(MarkerArray, TOPIC, LATCHED)

    def go_on():
        """Let a second go by, and some cycles."""
        bench.stamp_ns += LOOK_NS
        for _ in range(3):
            bench.torques()

    go_on()
    bench.spin_until(lambda: heard)
    go_on()
    assert len(heard) == 1
    first, *bodies = heard[0].markers
    assert first.action == Marker.DELETEALL
    assert {m.ns for m in bodies} == KINDS
    bench.update(to_message(ROBOT, parameters))
    go_on()
    bench.spin_until(lambda: len(heard) > 1)
    go_on()
    assert len(heard) == 2
    wanted = inertia_markers(ROBOT, parameters)
    # Colours have less digits in messages.
    for found, one in zip(heard[1].markers[1:], wanted, strict=True):
        for field in ('ns', 'id', 'type', 'pose', 'scale'):
            assert getattr(found, field) == getattr(one, field)


def test_without_visualization_there_are_none(make):
    bench = make(visualization_rate=0.0)
    names = [name for name, _ in bench.node.get_topic_names_and_types()]
    assert not any(name.endswith('inertia_markers') for name in names)
