# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Distances between the links of an arm that can fold onto itself, and what nearness costs.

Not covered: the collision library itself.
"""

import numpy as np
import pytest

from inertial_estimation.errors import ConfigError, FrameNotFound, ModelError
from inertial_estimation.identification.excitation.search import ZONE, KeepAway
from inertial_estimation.model.clearance import SelfClearance
from inertial_estimation.model.robot import Robot

STEP = 1e-6
# The collision library iterates to 1e-6 of a distance where shapes are curved.
LIBRARY = 1e-5
# The same over the step, were it random; it is smooth, and much better.
DIFFERENCED = 1e-4
ARM = 0.5
RADIUS = 0.05
LOWER, UPPER = np.full(3, -3.0), np.full(3, 3.0)


def link(name, shape, x=0.0, kind='collision'):
    return (
        f'<link name="{name}"><inertial><origin xyz="{ARM / 2} 0 0"/><mass value="1"/>'
        '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>'
        f'<{kind}><origin xyz="{x} 0 0" rpy="0 1.5707963267948966 0"/>'
        f'<geometry>{shape}</geometry></{kind}></link>'
    )


def folding_urdf(last=f'<sphere radius="{RADIUS}"/>', kind='collision'):
    """Return three moving links of a planar arm whose tip is a sphere that can meet its base."""
    rod = f'<cylinder radius="{RADIUS / 2}" length="{ARM / 2}"/>'
    joints = ''.join(
        f'<joint name="joint_{k}" type="revolute"><parent link="link_{k - 1}"/>'
        f'<child link="link_{k}"/><origin xyz="{ARM if k > 1 else 0} 0 0"/><axis xyz="0 0 1"/>'
        '<limit lower="-3" upper="3" velocity="2" acceleration="5" effort="20"/></joint>'
        for k in (1, 2, 3)
    )
    links = [link('link_0', f'<box size="{RADIUS} {RADIUS} {RADIUS}"/>')]
    links += [link(f'link_{k}', rod, ARM / 2) for k in (1, 2)]
    links += [link('link_3', last, ARM, kind)]
    return f'<robot name="folding">{"".join(links)}{joints}</robot>'


def read(urdf, **options):
    robot = Robot.from_urdf(urdf, fixed_link='link_0')
    return SelfClearance.of_robot(robot, LOWER, UPPER, **options)


def links_of(clearance):
    return {clearance.names(k) for k in range(len(clearance.pairs))}


NO_NEIGHBOURS = {"'link_0' and 'link_2'", "'link_0' and 'link_3'", "'link_1' and 'link_3'"}
GAP = ARM / 4 - RADIUS / 2
"""Between base and first rod, with all joints at zero; other neighbours have more."""


def test_neighbours_are_pairs_if_they_are_apart_with_joints_at_zero():
    neighbours = {f"'link_{k}' and 'link_{k + 1}'" for k in range(3)}
    apart = read(folding_urdf(), margin=GAP - LIBRARY)
    assert links_of(apart) == NO_NEIGHBOURS | neighbours and apart.unchecked == ()
    near = read(folding_urdf(), margin=GAP + LIBRARY)
    assert near.unchecked == ("'link_0' and 'link_1'",)
    assert links_of(near) == NO_NEIGHBOURS | neighbours - set(near.unchecked)
    none = read(folding_urdf(), margin=2 * ARM)
    assert links_of(none) == NO_NEIGHBOURS and set(none.unchecked) == neighbours


def test_neighbours_that_fold_onto_each_other_are_seen():
    keep = KeepAway(read(folding_urdf()), margin=0.02)
    found = keep.nearest(np.array([[0.0, 0.0, 0.0], [0.0, np.pi - 0.05, 0.0]]))
    assert found.links == "'link_1' and 'link_2'" and found.distance < 0.0


def test_ignored_links_are_no_pairs():
    ignored = [('link_3', 'link_0'), ('link_0', 'link_1')]
    found = links_of(read(folding_urdf(), ignored=ignored))
    assert not found & {"'link_0' and 'link_3'", "'link_0' and 'link_1'"}
    assert NO_NEIGHBOURS - {"'link_0' and 'link_3'"} <= found


def test_distance_of_a_tip_that_nearly_comes_home():
    third = 2 * np.pi / 3
    # An equilateral triangle, with its last corner off by a small turn.
    turned = 0.2
    near = read(folding_urdf()).near(np.array([[0.0, third, third - turned]]), 0.2)
    found = {(pair, float(d)) for pair, d in zip(near.pairs.tolist(), near.distances, strict=True)}
    clearance = read(folding_urdf())
    tip = ARM * np.array([1 + np.cos(third), np.sin(third)])
    tip += ARM * np.array([np.cos(2 * third - turned), np.sin(2 * third - turned)])
    outside = np.maximum(np.abs(tip) - RADIUS / 2, 0.0)
    wanted = np.linalg.norm(outside) - RADIUS
    distances = [d for pair, d in found if clearance.names(pair) == "'link_0' and 'link_3'"]
    np.testing.assert_allclose(distances, [wanted], atol=LIBRARY)


def test_slopes_are_slopes(rng):
    clearance = read(folding_urdf())
    q = np.array([0.1, 2.0, 1.9]) + 0.1 * rng.normal(size=(4, 3))
    near = clearance.near(q, 1.0)
    slopes = clearance.slopes(q, near)
    for j in range(3):
        step = STEP * np.eye(3)[j]
        up, down = clearance.near(q + step, 1.0), clearance.near(q - step, 1.0)
        np.testing.assert_array_equal(up.pairs, near.pairs)
        slope = (up.distances - down.distances) / (2 * STEP)
        np.testing.assert_allclose(slopes[:, j], slope, atol=DIFFERENCED)
    assert np.abs(slopes[:, 1:]).max() > 0.1


def test_far_pairs_are_left_out():
    assert not len(read(folding_urdf()).near(np.zeros((5, 3)), 0.01).distances)


def test_what_always_touches_is_left_out_and_said():
    huge = read(folding_urdf('<sphere radius="2.0"/>'), margin=2 * ARM)
    assert links_of(huge) == {"'link_0' and 'link_2'"}
    assert "parts of 'link_1' and 'link_3' touch in nearly all postures" in huge.notes[1]


def test_visual_geometry_stands_in():
    assert len(read(folding_urdf(kind='visual')).pairs) == 6


def test_a_missing_mesh_is_said_and_left_out():
    found = read(folding_urdf('<mesh filename="package://nowhere/tip.stl"/>'), margin=ARM)
    assert links_of(found) == {"'link_0' and 'link_2'"}
    assert 'tip.stl' in found.notes[0] and 'link_3' in found.notes[0]


@pytest.mark.parametrize('shape', ['<sphere radius="-1"/>', '<box size="1 0 1"/>'])
def test_sizes_that_are_none(shape):
    with pytest.raises(ModelError):
        read(folding_urdf(shape))


def test_an_unknown_link_is_not_ignored():
    with pytest.raises(FrameNotFound, match='link_9'):
        read(folding_urdf(), ignored=[('link_0', 'link_9')])


def test_capsules_and_boxes_count_too():
    q = np.array([[0.0, 2.2, 2.1]])
    for shape in ('<capsule radius="0.04" length="0.1"/>', '<box size="0.1 0.1 0.1"/>'):
        assert len(read(folding_urdf(shape)).near(q, 0.3).distances)


def test_nearness_costs_more_and_more_and_its_slope_is_right():
    keep = KeepAway(read(folding_urdf()), margin=0.01)
    third = 2 * np.pi / 3
    turns = np.linspace(0.35, 0.15, 9)
    q = np.column_stack([np.zeros(9), np.full(9, third), third - turns])
    costs = np.array([keep.penalty(row[None]).value for row in q])
    left = np.array([keep.nearest(row[None]).distance for row in q]) - keep.margin
    far, touching = left > ZONE, left <= 0.0
    assert far.any() and touching.any() and not (far | touching).all()
    assert (costs[far] == 0.0).all() and np.isinf(costs[touching]).all()
    between = q[~(far | touching)]
    cost = keep.penalty(between)
    for k, j in np.ndindex(between.shape):
        step = np.zeros_like(between)
        step[k, j] = STEP
        slope = (keep.penalty(between + step).value - keep.penalty(between - step).value) / (
            2 * STEP
        )
        np.testing.assert_allclose(cost.gradient[k, j], slope, rtol=1e-3, atol=1e-3)


def test_who_is_nearest():
    keep = KeepAway(read(folding_urdf()), margin=0.01)
    third = 2 * np.pi / 3
    found = keep.nearest(np.array([[0.0, 0.0, 0.0], [0.0, third, third]]))
    assert found.links == "'link_0' and 'link_3'"
    assert found.instant == 1 and found.distance < 0.0
    assert keep.nearest(np.zeros((1, 3))).distance == np.inf


def test_a_negative_margin():
    with pytest.raises(ConfigError):
        KeepAway(read(folding_urdf()), -0.1)
