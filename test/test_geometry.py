# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Shapes of links are read from URDFs where they are drawn.

Not covered: formats of meshes beyond STL, which the mesh library reads.
"""

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from inertial_estimation.errors import ModelError
from inertial_estimation.model.geometry import SIDES, Box, link_shapes
from inertial_estimation.model.robot import Robot

# Metres: sums of a few numbers of the size of a link.
ROUND_OFF = 1e-12
# Single precision of a mesh file, metres.
MESH = 1e-6
# An inscribed polygon is so much narrower than its circle.
INSCRIBED = 1.0 - np.cos(np.pi / SIDES)


def urdf(hand: str, wrist_tag: str = '') -> str:
    """Return an arm whose hand is fixed to its forearm; geometry of both as given."""
    inertial = (
        '<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" '
        'ixz="0" iyz="0"/></inertial>'
    )
    return f"""<robot name="arm">
      <link name="base">{inertial}</link>
      <link name="forearm">{inertial}{wrist_tag}</link>
      <link name="hand">{inertial}{hand}</link>
      <joint name="elbow" type="revolute"><parent link="base"/><child link="forearm"/>
        <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
      <joint name="wrist" type="fixed"><parent link="forearm"/><child link="hand"/>
        <origin xyz="0 0 0.3" rpy="0 0 1.5707963267948966"/></joint></robot>"""


def tag(kind: str, shape: str, origin: str = 'xyz="0 0 0"') -> str:
    return f'<{kind}><origin {origin}/><geometry>{shape}</geometry></{kind}>'


def read(text: str, **options):
    return link_shapes(Robot.from_urdf(text, fixed_link='base'), **options)


def write_cube(path: Path, size: float) -> None:
    """Write a cube from the origin as an ASCII STL."""
    corners = size * np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    facets = []
    for a, b, c, d in quads:
        for triangle in ((a, b, c), (a, c, d)):
            lines = [f'vertex {x} {y} {z}' for x, y, z in corners[list(triangle)]]
            facets.append(
                'facet normal 0 0 0\nouter loop\n' + '\n'.join(lines) + '\nendloop\nendfacet'
            )
    path.write_text('solid cube\n' + '\n'.join(facets) + '\nendsolid cube\n')


def test_a_box_of_a_lumped_link_is_where_its_joint_puts_it():
    shape = tag('collision', '<box size="0.2 0.1 0.4"/>', 'xyz="0.1 0 0"')
    shapes = read(urdf(shape))
    assert list(shapes.by_link) == ['forearm'] and shapes.notes == ()
    found = shapes.by_link['forearm']
    # The hand is turned by a quarter about z: its x is the forearm's y.
    np.testing.assert_allclose(found.box.L_H_S[:3, 3], [0, 0.1, 0.3], atol=ROUND_OFF)
    np.testing.assert_allclose(found.box.half_lengths, [0.1, 0.05, 0.2], atol=ROUND_OFF)
    np.testing.assert_allclose(np.ptp(found.vertices, axis=0), [0.1, 0.2, 0.4], atol=ROUND_OFF)
    np.testing.assert_allclose(found.box.to_unit(found.vertices) ** 2, 1.0, atol=1e-9)


def test_several_shapes_make_one_box_along_the_axes_of_the_link():
    shapes = tag('collision', '<sphere radius="0.1"/>') + tag(
        'collision', '<cylinder radius="0.05" length="0.2"/>', 'xyz="0 0 0.5"'
    )
    box = read(urdf(shapes)).by_link['forearm'].box
    np.testing.assert_array_equal(box.L_H_S[:3, :3], np.eye(3))
    np.testing.assert_allclose(box.L_H_S[:3, 3], [0, 0, 0.55], atol=ROUND_OFF)
    np.testing.assert_allclose(box.half_lengths, [0.1, 0.1, 0.35], atol=ROUND_OFF)


@pytest.mark.parametrize(
    ('shape', 'half_lengths', 'radius'),
    [
        ('<sphere radius="0.1"/>', (0.1, 0.1, 0.1), 0.1),
        ('<cylinder radius="0.1" length="0.4"/>', (0.1, 0.1, 0.2), 0.1),
        ('<capsule radius="0.1" length="0.4"/>', (0.1, 0.1, 0.3), 0.1),
    ],
)
def test_points_of_round_shapes_are_inside_them_and_reach_all_ends(shape, half_lengths, radius):
    found = read(urdf(tag('visual', shape))).by_link['forearm']
    assert found.source == 'visual'
    np.testing.assert_allclose(found.box.half_lengths, half_lengths, atol=ROUND_OFF)
    around = np.linalg.norm((found.box.to_unit(found.vertices) * half_lengths)[:, :2], axis=1)
    assert around.max() <= radius + ROUND_OFF
    unit = found.box.to_unit(found.vertices)
    assert np.abs(unit).max() <= 1 + ROUND_OFF
    angles = np.linspace(0, 2 * np.pi, 50)
    reach = (unit @ np.array([np.cos(angles), np.sin(angles), np.zeros(50)])).max(axis=0)
    assert reach.min() >= 1 - INSCRIBED - ROUND_OFF


def test_collision_geometry_goes_before_visual():
    both = tag('visual', '<sphere radius="9"/>') + tag('collision', '<sphere radius="1"/>')
    assert read(urdf(both)).by_link['forearm'].source == 'collision'


def test_meshes_are_read_with_their_scale_where_the_file_is(tmp_path):
    (tmp_path / 'some_robot').mkdir()
    write_cube(tmp_path / 'some_robot' / 'cube.stl', 100.0)
    mesh = '<mesh filename="package://some_robot/cube.stl" scale="0.001 0.001 0.002"/>'
    text = urdf('', tag('collision', mesh, 'xyz="0 0 1"'))
    box = read(text, mesh_folders=[tmp_path]).by_link['forearm'].box
    np.testing.assert_allclose(box.half_lengths, [0.05, 0.05, 0.1], atol=MESH)
    np.testing.assert_allclose(box.L_H_S[:3, 3], [0.05, 0.05, 1.1], atol=MESH)


def test_folders_of_ros_are_searched(tmp_path, monkeypatch):
    (tmp_path / 'share' / 'some_robot').mkdir(parents=True)
    write_cube(tmp_path / 'share' / 'some_robot' / 'cube.stl', 1.0)
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'/nowhere:{tmp_path}')
    text = urdf('', tag('visual', '<mesh filename="package://some_robot/cube.stl"/>'))
    assert 'forearm' in read(text).by_link


def test_a_missing_mesh_is_said_and_other_geometry_is_taken(tmp_path):
    mesh = tag('collision', '<mesh filename="package://some_robot/cube.stl"/>')
    shapes = read(urdf('', mesh + tag('visual', '<sphere radius="1"/>')), mesh_folders=[tmp_path])
    assert shapes.by_link['forearm'].source == 'visual'
    assert len(shapes.notes) == 1 and 'package://some_robot/cube.stl' in shapes.notes[0]


def test_a_broken_mesh_and_a_flat_one_are_said(tmp_path):
    (tmp_path / 'broken.stl').write_text('nothing of the kind')
    write_cube(tmp_path / 'flat.stl', 1.0)
    broken = tag('collision', '<mesh filename="broken.stl"/>')
    flat = tag('visual', '<mesh filename="flat.stl" scale="1 1 0"/>')
    shapes = read(urdf('', broken + flat), mesh_folders=[tmp_path])
    assert shapes.by_link == {}
    assert 'broken.stl' in shapes.notes[0] and 'flat' in shapes.notes[1]


@pytest.mark.parametrize(
    'shape',
    [
        '<box size="0.1 0 0.1"/>',
        '<box size="0.1 much 0.1"/>',
        '<sphere radius="-1"/>',
        '<cylinder radius="0.1"/>',
    ],
)
def test_impossible_sizes_are_refused(shape):
    with pytest.raises(ModelError):
        read(urdf(tag('collision', shape)))


def test_boxes_go_there_and_back(rng):
    from scipy.spatial.transform import Rotation

    pose = np.eye(4)
    pose[:3, :3] = Rotation.random(random_state=3).as_matrix()
    pose[:3, 3] = rng.normal(size=3)
    box = Box(pose, np.array([0.1, 0.2, 0.3]))
    points = rng.normal(size=(5, 3))
    np.testing.assert_allclose(box.to_unit(box.from_unit(points)), points, atol=ROUND_OFF)
    np.testing.assert_allclose(box.corners.mean(axis=0), pose[:3, 3], atol=ROUND_OFF)


def test_angles_of_an_origin_turn_about_fixed_axes():
    """Roll, then pitch, then yaw, about the axes of the link: of x, y, z the last turns last."""
    text = tag('collision', '<box size="2 4 6"/>', 'xyz="0 0 0" rpy="0.3 -0.4 0.5"')
    box = read(urdf('', text)).by_link['forearm'].box
    turns = [pin.utils.rotate(axis, angle) for axis, angle in zip('xyz', (0.3, -0.4, 0.5))]
    np.testing.assert_allclose(
        box.L_H_S[:3, :3], turns[2] @ turns[1] @ turns[0], rtol=0, atol=ROUND_OFF
    )


def test_mirrored_meshes_are_mirrored(tmp_path):
    (tmp_path / 'some_robot').mkdir()
    write_cube(tmp_path / 'some_robot' / 'cube.stl', 1.0)
    mesh = '<mesh filename="package://some_robot/cube.stl" scale="1 -1 1"/>'
    box = read(urdf('', tag('collision', mesh)), mesh_folders=[tmp_path]).by_link['forearm'].box
    np.testing.assert_allclose(box.L_H_S[:3, 3], [0.5, -0.5, 0.5], atol=MESH)
