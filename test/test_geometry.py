# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Shapes of links, distances between them, and limits of joints, from URDFs."""

from itertools import combinations

import numpy as np
import pytest

from inertial_estimation.errors import ConfigError, ModelError, NameNotFound
from inertial_estimation.model.clearance import ZONE, SelfClearance
from inertial_estimation.model.geometry import SIDES, link_shapes
from inertial_estimation.model.joint_limits import joint_limits
from inertial_estimation.model.robot import Robot

ROUND_OFF = 1e-12  # metres: sums of a few numbers of the size of a link
MESH = 1e-6  # metres: single precision of a mesh file
LIBRARY = 1e-5  # the collision library iterates to 1e-6 of a distance where shapes are curved
STEP = 1e-6
INERTIAL = (
    '<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" '
    'ixz="0" iyz="0"/></inertial>'
)


# Shapes


def to_unit(box, points):
    """Return points as shares of the half lengths of a box."""
    return (points - box.L_H_S[:3, 3]) @ box.L_H_S[:3, :3] / box.half_lengths


def tag(kind, shape, origin='xyz="0 0 0"'):
    return f'<{kind}><origin {origin}/><geometry>{shape}</geometry></{kind}>'


def shapes_of(hand, forearm='', **options):
    """Return the shapes of an arm whose hand is fixed to its forearm; geometry as given."""
    text = f"""<robot name="arm"><link name="base">{INERTIAL}</link>
      <link name="forearm">{INERTIAL}{forearm}</link><link name="hand">{INERTIAL}{hand}</link>
      <joint name="elbow" type="revolute"><parent link="base"/><child link="forearm"/>
        <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
      <joint name="wrist" type="fixed"><parent link="forearm"/><child link="hand"/>
        <origin xyz="0 0 0.3" rpy="0 0 1.5707963267948966"/></joint></robot>"""
    return link_shapes(Robot.from_urdf(text, fixed_link='base'), **options)


def write_corner(path, size):
    """Write a tetrahedron from the origin along the axes as an ASCII STL."""
    corners = [f'vertex {x} {y} {z}' for x, y, z in size * np.eye(4)[:, 1:]]
    facets = [
        f'facet normal 0 0 0\nouter loop\n{a}\n{b}\n{c}\nendloop\nendfacet'
        for a, b, c in combinations(corners, 3)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('\n'.join(['solid corner', *facets, 'endsolid corner', '']))


def test_box_of_a_lumped_link_is_where_its_joint_puts_it():
    box = tag('collision', '<box size="0.2 0.1 0.4"/>', 'xyz="0.1 0 0"')
    shapes = shapes_of(box + tag('visual', '<sphere radius="9"/>'))
    assert list(shapes.by_link) == ['forearm'] and shapes.notes == ()
    found = shapes.by_link['forearm']
    assert found.source == 'collision'
    # The hand is turned by a quarter about z: its x is the forearm's y.
    np.testing.assert_allclose(found.box.L_H_S[:3, 3], [0, 0.1, 0.3], atol=ROUND_OFF)
    np.testing.assert_allclose(found.box.half_lengths, [0.1, 0.05, 0.2], atol=ROUND_OFF)
    np.testing.assert_allclose(np.ptp(found.vertices, axis=0), [0.1, 0.2, 0.4], atol=ROUND_OFF)
    np.testing.assert_allclose(to_unit(found.box, found.vertices) ** 2, 1.0, atol=1e-9)
    # Distances regard links of the URDF that have visual geometry only.
    both = shapes_of(tag('visual', '<sphere radius="9"/>'), box).by_link['forearm']
    assert [part.kind for part in both.parts] == ['box', 'sphere']
    assert np.abs(both.vertices).max() < 1.0


def test_points_of_round_shapes_fill_them_to_the_ends():
    for shape, half_length in (
        ('<sphere radius="0.1"/>', 0.1),
        ('<cylinder radius="0.1" length="0.4"/>', 0.2),
        ('<capsule radius="0.1" length="0.4"/>', 0.3),
    ):
        found = shapes_of(tag('visual', shape)).by_link['forearm']
        half_lengths = [0.1, 0.1, half_length]
        np.testing.assert_allclose(found.box.half_lengths, half_lengths, atol=ROUND_OFF)
        unit = to_unit(found.box, found.vertices)
        assert np.linalg.norm(unit[:, :2], axis=1).max() <= 1 + ROUND_OFF
        angles = np.linspace(0, 2 * np.pi, 50)
        reach = (unit @ np.array([np.cos(angles), np.sin(angles), np.zeros(50)])).max(axis=0)
        # An inscribed polygon is so much narrower than its circle.
        assert reach.min() >= np.cos(np.pi / SIDES) - ROUND_OFF


def test_meshes_are_found_in_folders_and_ros_packages(tmp_path, monkeypatch):
    mesh = '<mesh filename="package://some_robot/mesh.stl" scale="0.001 -0.001 0.002"/>'
    forearm = tag('collision', mesh, 'xyz="0 0 1"')
    write_corner(tmp_path / 'share/some_robot/mesh.stl', 100.0)
    box = shapes_of('', forearm, mesh_folders=[tmp_path / 'share']).by_link['forearm'].box
    np.testing.assert_allclose(box.half_lengths, [0.05, 0.05, 0.1], atol=MESH)
    np.testing.assert_allclose(box.L_H_S[:3, 3], [0.05, -0.05, 1.1], atol=MESH)
    shapes = shapes_of('', forearm + tag('visual', '<sphere radius="1"/>'))
    assert shapes.by_link['forearm'].source == 'visual'
    assert len(shapes.notes) == 1 and 'package://some_robot/mesh.stl' in shapes.notes[0]
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'/nowhere:{tmp_path}')
    assert shapes_of('', forearm).by_link['forearm'].source == 'collision'
    (tmp_path / 'broken.stl').write_text('nothing of the kind')
    write_corner(tmp_path / 'flat.stl', 1.0)
    broken = tag('collision', '<mesh filename="broken.stl"/>')
    flat = tag('visual', '<mesh filename="flat.stl" scale="1 1 0"/>')
    shapes = shapes_of('', broken + flat, mesh_folders=[tmp_path])
    assert shapes.by_link == {}
    assert 'broken.stl' in shapes.notes[0] and 'forearm' in shapes.notes[1]
    for shape in ('<box size="0.1 0 0.1"/>', '<box size="1 x 1"/>', '<cylinder radius="0.1"/>'):
        with pytest.raises(ModelError):
            shapes_of(tag('collision', shape))


# Distances between links


ARM, RADIUS = 0.5, 0.05
LOWER, UPPER = np.full(3, -3.0), np.full(3, 3.0)
THIRD = 2 * np.pi / 3


def folding_urdf(last=f'<sphere radius="{RADIUS}"/>'):
    """Return three moving links of a planar arm whose tip is a sphere that can meet its base."""
    shapes = [f'<box size="{RADIUS} {RADIUS} {RADIUS}"/>']
    shapes += [f'<cylinder radius="{RADIUS / 2}" length="{ARM / 2}"/>'] * 2 + [last]
    text = ''.join(
        f'<link name="link_{k}">{INERTIAL}'
        + tag('collision', shape, f'xyz="{x} 0 0" rpy="0 1.5707963267948966 0"')
        + '</link>'
        for k, (shape, x) in enumerate(zip(shapes, (0.0, ARM / 2, ARM / 2, ARM)))
    )
    text += ''.join(
        f'<joint name="joint_{k}" type="revolute"><parent link="link_{k - 1}"/>'
        f'<child link="link_{k}"/><origin xyz="{ARM if k > 1 else 0} 0 0"/><axis xyz="0 0 1"/>'
        '<limit lower="-3" upper="3" velocity="2" acceleration="5" effort="20"/></joint>'
        for k in (1, 2, 3)
    )
    return f'<robot name="folding">{text}</robot>'


def folding(*last, **options):
    robot = Robot.from_urdf(folding_urdf(*last), fixed_link='link_0')
    return SelfClearance(robot, LOWER, UPPER, **options)


def links_of(clearance):
    return set(map(clearance.names, clearance.pairs))


def pair(a, b):
    return f"'link_{a}' and 'link_{b}'"


NO_NEIGHBOURS = {pair(0, 2), pair(0, 3), pair(1, 3)}


def test_neighbours_apart_at_zero_are_pairs():
    gap = ARM / 4 - RADIUS / 2  # between base and first rod; other neighbours have more
    neighbours = {pair(k, k + 1) for k in range(3)}
    apart = folding(margin=gap - LIBRARY)
    assert links_of(apart) == NO_NEIGHBOURS | neighbours and apart.unchecked == ()
    near = folding(margin=gap + LIBRARY)
    assert near.unchecked == (pair(0, 1),)
    assert links_of(near) == NO_NEIGHBOURS | neighbours - {pair(0, 1)}
    # Only neighbours are left out for being near, not the root and the last link.
    assert links_of(folding(margin=3 * ARM)) == NO_NEIGHBOURS
    ignored = links_of(folding(ignored=[('link_3', 'link_0'), ('link_0', 'link_1')]))
    assert ignored == (NO_NEIGHBOURS | neighbours) - {pair(0, 3), pair(0, 1)}
    huge = folding('<sphere radius="2.0"/>', margin=2 * ARM)
    assert links_of(huge) == {pair(0, 2)} and any(pair(1, 3) in note for note in huge.notes)


def test_distance_of_a_tip_that_nearly_comes_home():
    turned, clearance = 0.2, folding()  # an equilateral triangle, its last corner off by a turn
    near = clearance.near(np.array([[0.0, THIRD, THIRD - turned]]), 0.2)
    tip = ARM * np.array([1 + np.cos(THIRD), np.sin(THIRD)])
    tip += ARM * np.array([np.cos(2 * THIRD - turned), np.sin(2 * THIRD - turned)])
    wanted = np.linalg.norm(np.maximum(np.abs(tip) - RADIUS / 2, 0.0)) - RADIUS
    pairs = [clearance.names(clearance.pairs[k]) for k in near.pairs]
    np.testing.assert_allclose(near.distances[pairs.index(pair(0, 3))], wanted, atol=LIBRARY)
    for shape in ('<capsule radius="0.04" length="0.1"/>', '<box size="0.1 0.1 0.1"/>'):
        assert len(folding(shape).near(np.array([[0.0, 2.2, 2.1]]), 0.3).distances)


def test_links_beside_an_ft_sensor_are_one_body():
    urdf = folding_urdf().replace('name="joint_3" type="revolute"', 'name="joint_3" type="fixed"')
    sensor = '<sensor name="wrist" type="force_torque"><parent joint="joint_3"/></sensor></robot>'
    urdf = urdf.replace('</robot>', sensor)
    cut, whole = (
        SelfClearance(robot, LOWER[:2], UPPER[:2])
        for robot in (
            Robot.from_urdf(urdf, fixed_link='link_0', ft_sensors=ft) for ft in (None, ())
        )
    )
    assert len(cut.robot.links) > len(whole.robot.links)
    assert cut.pairs == whole.pairs
    q = np.array([[0.3, 2.6]])
    for one, other in zip(cut.near(q, 1.0), whole.near(q, 1.0), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_nearness_costs_more_and_more_with_the_right_gradient():
    keep, turns = folding(margin=0.01), np.linspace(0.35, 0.15, 9)
    q = np.column_stack([np.zeros(9), np.full(9, THIRD), THIRD - turns])
    costs = np.array([keep.penalty(row[None])[0] for row in q])
    left = np.array([keep.nearest(row[None])[0] for row in q]) - keep.margin
    far, touching = left > ZONE, left <= 0.0
    assert far.any() and touching.any() and not (far | touching).all()
    assert (costs[far] == 0.0).all() and np.isinf(costs[touching]).all()
    between = q[~(far | touching)]
    _, gradient = keep.penalty(between)
    step = STEP * np.random.default_rng(0).normal(size=between.shape)
    change = keep.penalty(between + step)[0] - keep.penalty(between - step)[0]
    np.testing.assert_allclose(np.sum(gradient * step), change / 2, rtol=1e-3)


# Limits


SHOULDER = {'lower': -1.0, 'upper': 2.0, 'velocity': 2.0}


def test_given_limits_come_before_those_of_the_urdf(arm_with_wrist_sensor):
    urdf = arm_with_wrist_sensor.urdf.replace('velocity="10"', 'velocity="10" acceleration="6"')
    given = {
        'shoulder': SHOULDER,  # continuous: the URDF has no positions of it
        'elbow': {'lower': -3.1, 'upper': 2.9, 'velocity': 10.0, 'acceleration': 6.5},
        'lift': {'lower': -2.9, 'upper': 3.00001, 'velocity': 573.0},  # rounded; degrees
    }
    found = joint_limits(Robot.from_urdf(urdf, fixed_link='base'), given, acceleration=60.0)
    assert found.joint_names == ('shoulder', 'elbow', 'lift')
    np.testing.assert_array_equal(found.lower, [-1.0, -3.1, -2.9])
    np.testing.assert_array_equal(found.acceleration, [60.0, 6.5, 6.0])
    np.testing.assert_array_equal(found.effort, [np.nan, 50.0, 50.0])
    for wrong, error in (
        ({}, ConfigError),
        ({'shoulder': SHOULDER | {'lower': 2.0}}, ConfigError),
        ({'elbow': {'speed': 1.0}}, NameNotFound),
    ):
        with pytest.raises(error):
            joint_limits(arm_with_wrist_sensor, wrong, 4.0)
    assert list(found.wider) == [
        ('elbow', 'lower', -3.1, -3.0),
        ('elbow', 'acceleration', 6.5, 6.0),
        ('lift', 'velocity', 573.0, 10.0),
    ]
