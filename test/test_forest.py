# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which IMU serves which link, the trees that follow, and where links are.

Not covered: what the trees compute (test_newton_euler.py).
"""

import brute_force
import numpy as np
import pinocchio as pin
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, two_link_urdf
from scipy.spatial.transform import Rotation

from inertial_estimation.estimation.forest import (
    build_forest,
    build_geometry,
    joint_model,
    make_inertia,
    pose_view,
)
from inertial_estimation.model.motion_sources import Source, assign_owners, serving_sources
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.tree import Link

# Chains of ten transforms of order one.
ROUND_OFF = 1e-12
# Six digits of a unit axis, as exporters print them.


def tree(parents, cuts=()):
    """Return bare links: link k hangs from parents[k], by an FT sensor where k is cut."""
    return [
        Link(
            name=f'l{k}',
            parent=parent,
            joint=-1 if parent < 0 or k in cuts else k,
            ft_sensor=list(cuts).index(k) if k in cuts else -1,
            P_H_L=np.eye(4),
            motion=np.zeros(6),
        )
        for k, parent in enumerate(parents)
    ]


def owners(links, imu_links, **options):
    sources = [Source(f'i{k}', k, np.eye(4)) for k in imu_links]
    return assign_owners(links, sources, **options)


CHAIN = [-1, 0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ('parents', 'cuts', 'imus', 'expected'),
    [
        (CHAIN, (), [3], [0] * 7),
        (CHAIN, (), [6, 1], [1, 1, 1, 1, 0, 0, 0]),
        # Link 3 is as far from both: the IMU on the side of the root serves it.
        (CHAIN, (), [5, 1], [1, 1, 1, 1, 0, 0, 0]),
        (CHAIN, (), [1, 5], [0, 0, 0, 0, 1, 1, 1]),
        # Nearest, but beyond a sensor, while the own submodel has an IMU.
        (CHAIN, (4,), [0, 4], [0, 0, 0, 0, 1, 1, 1]),
        # The own submodel has none: the nearest of the neighbours.
        (CHAIN, (2, 5), [0, 5], [0, 0, 0, 1, 1, 1, 1]),
        (CHAIN, (2, 5), [1, 6], [0, 0, 0, 0, 1, 1, 1]),
        (CHAIN, (2, 4), [6], [0] * 7),
        # Two submodels without any in a row; link 3 is as far from both.
        (CHAIN, (1, 3, 5), [0, 6], [0, 0, 0, 0, 1, 1, 1]),
        # Of two on one link the first serves.
        (CHAIN, (), [2, 2, 6], [0, 0, 0, 0, 0, 2, 2]),
        # A fork: both arms are as near to the root link; the first IMU serves it.
        ([-1, 0, 0, 1, 2], (), [3, 4], [0, 0, 1, 0, 1]),
        ([-1, 0, 0, 1, 2], (), [4, 3], [0, 1, 0, 1, 0]),
        # An IMU a step beyond a sensor does not shine through a submodel that has its own.
        ([-1, 0, 1, 2, 2, 4], (1, 3), [3, 5], [1, 1, 1, 0, 1, 1]),
    ],
)
def test_the_nearest_imu_serves(parents, cuts, imus, expected):
    assert owners(tree(parents, cuts), imus) == tuple(expected)


@pytest.mark.parametrize(
    ('parents', 'cuts', 'imus', 'expected'),
    [
        # Without sensors it is the same.
        (CHAIN, (), [5, 1], [1, 1, 1, 1, 0, 0, 0]),
        # Link 3: one joint away across two sensors, or two joints away.
        (CHAIN, (2, 3), [5, 0], [1, 1, 1, 1, 0, 0, 0]),
        # Equally many joints: the sensor makes the difference, then the side of the root.
        (CHAIN, (2, 4), [0, 6], [0, 0, 0, 0, 1, 1, 1]),
        (CHAIN, (1, 4), [6, 0], [1, 1, 1, 1, 0, 0, 0]),
        (CHAIN, (4,), [2, 6], [0, 0, 0, 0, 0, 1, 1]),
        # A source on a link serves it, though another is joined rigidly.
        (CHAIN, (1, 2, 3), [1, 3], [0, 0, 0, 1, 1, 1, 1]),
    ],
)
def test_of_motions_the_source_behind_the_fewest_joints_serves(parents, cuts, imus, expected):
    assert owners(tree(parents, cuts), imus, rigid_sensors=True) == tuple(expected)


@pytest.mark.parametrize('seed', range(60))
def test_owners_of_random_trees(seed):
    """Compare with the oracle, which walks distances instead of spreading from the IMUs."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    parents = [-1, *(int(rng.integers(0, k)) for k in range(1, n))]
    cuts = tuple(k for k in range(1, n) if rng.random() < 0.25)
    imus = [int(k) for k in rng.integers(0, n, rng.integers(1, 6))]
    robot = _BareRobot(tree(parents, cuts))
    got = owners(robot.links, imus)
    assert list(got) == brute_force.owners(robot, imus)
    assert_connected(robot.links, got)
    got = owners(robot.links, imus, rigid_sensors=True)
    assert list(got) == brute_force.owners_of_motion(robot, imus)
    assert_connected(robot.links, got)


class _BareRobot:
    """As much of a robot as the oracle of the owners looks at."""

    def __init__(self, links):
        self.links = links
        self.ft_sensors = [_Cut(k) for k, link in enumerate(links) if link.ft_sensor >= 0]


class _Cut:
    def __init__(self, child):
        self.child = child


def assert_connected(links, owner):
    """Check that the links of each IMU hang together."""
    for s in set(owner):
        members = [k for k, o in enumerate(owner) if o == s]
        tops = [k for k in members if links[k].parent < 0 or owner[links[k].parent] != s]
        assert len(tops) == 1


def humanoid(*links):
    imus = [(f'imu_{k}', link) for k, link in enumerate(links)]
    return Robot.from_urdf(nested_humanoid_urdf(), imus=imus)


ROBOTS = {
    'two links': Robot.from_urdf(two_link_urdf(), imus=['arm']),
    'arm held by its tool': Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='tool'),
    'imu at the head': humanoid('head'),
    'imu at the foot': humanoid('foot'),
    'four imus': humanoid('root', 'chest', 'hand', 'sole'),
    'two imus at one link': humanoid('hip', 'hip', 'shank'),
}


@pytest.mark.parametrize('robot', ROBOTS.values(), ids=ROBOTS)
def test_the_books_of_a_forest(robot):
    imus, sources = serving_sources(robot, range(len(robot.imus)))
    forest = build_forest(robot, sources)
    assert forest.owner == assign_owners(robot.links, sources)
    inside = [j for j in range(len(robot.joint_names)) if j not in forest.joints_between_trees]
    n_tops = len(forest.tops)
    # Six rows for each top, one for each joint inside a tree, and nothing else.
    rows = [*forest.top_rows.ravel(), *forest.joint_rows[inside]]
    assert sorted(rows) == list(range(forest.model.nv))
    assert forest.model.nq == forest.model.nv + n_tops
    assert (forest.joint_rows[list(forest.joints_between_trees)] == -1).all()
    for k, source in enumerate(sources):
        top = forest.tops[k]
        assert (top.ft_sensor, top.above, top.link) == (-1, -1, source.link)
        assert sorted(top.below) == [n for n, o in enumerate(forest.owner) if o == k]
    for top in forest.tops[len(sources) :]:
        sensor = robot.ft_sensors[top.ft_sensor]
        assert top.above in (sensor.parent, sensor.child)
        assert top.below[0] == sensor.parent + sensor.child - top.above
    for k, link in enumerate(robot.links):
        if link.joint < 0:
            continue
        between = forest.owner[k] != forest.owner[link.parent]
        assert between == (link.joint in forest.joints_between_trees)
        below = forest.below[link.joint]
        assert bool(below) != between
        assert not between or len(imus) > 1
        if below:
            assert (k in below) != (link.parent in below)
            for n in range(len(robot.links)):
                assert (n in below) == (
                    link.joint in forest.path[n] and forest.owner[n] == forest.owner[k]
                )


def test_sources_that_serve_nothing_get_no_tree(nested_humanoid):
    text = nested_humanoid.urdf
    robot = Robot.from_urdf(text, imus=[('a', 'head'), ('b', 'head'), ('c', 'foot')])
    imus, sources = serving_sources(robot, [0, 1, 2])
    np.testing.assert_array_equal(imus, [0, 2])
    assert [source.name for source in sources] == ['a', 'c']
    imus, sources = serving_sources(robot, [1, 2])
    np.testing.assert_array_equal(imus, [1, 2])


# Pinocchio's parts


@pytest.mark.parametrize('sign', [1, -1])
@pytest.mark.parametrize('prismatic', [False, True])
def test_joints_move_as_their_subspace_says(prismatic, sign, rng):
    axis = rng.normal(size=3)
    axis *= sign / np.linalg.norm(axis)
    motion = np.array([*axis, 0, 0, 0] if prismatic else [0, 0, 0, *axis])
    model = pin.Model()
    model.addJoint(0, joint_model(motion), pin.SE3.Identity(), 'joint')
    assert (model.nq, model.nv) == (1, 1)
    data = model.createData()
    for q in (0.0, 0.3, -7.0, 100.0):
        J = pin.computeJointJacobians(model, data, np.array([q]))
        M = data.oMi[1]
        turn = np.eye(3) if prismatic else Rotation.from_rotvec(q * axis).as_matrix()
        np.testing.assert_allclose(M.rotation, turn, rtol=0, atol=ROUND_OFF)
        moved = q * axis if prismatic else np.zeros(3)
        np.testing.assert_allclose(M.translation, moved, rtol=0, atol=ROUND_OFF * 100)
        local = brute_force.wrench_transform(M.homogeneous).T @ np.reshape(J, 6)
        np.testing.assert_allclose(local, motion, rtol=0, atol=ROUND_OFF * 100)


@pytest.mark.parametrize('mass', [2.0, 0.0, -1.5, 1e-9])
def test_inertias_keep_their_parameters(mass, rng):
    parameters = np.array([mass, *(mass * rng.normal(size=3)), *rng.normal(size=6)])
    inertia = make_inertia(parameters)
    np.testing.assert_allclose(inertia.toDynamicParameters(), parameters, rtol=0, atol=ROUND_OFF)


@pytest.mark.parametrize('robot', ROBOTS.values(), ids=ROBOTS)
def test_the_geometry_places_every_link_and_axis(robot, rng):
    geometry = build_geometry(robot)
    assert geometry.model.nv == geometry.model.nq == len(robot.joint_names)
    data = geometry.model.createData()
    view = pose_view(data)
    q = rng.uniform(-3, 3, len(robot.joint_names))
    J = np.asarray(pin.computeJointJacobians(geometry.model, data, q)).reshape(6, -1)
    expected = brute_force.link_poses(robot, q)
    for k, link in enumerate(robot.links):
        rows = view[geometry.support[k]]
        support = np.eye(4)
        support[:3, :3], support[:3, 3] = rows[:3].T, rows[3]
        got = support @ geometry.support_H_L[k]
        np.testing.assert_allclose(got, expected[k], rtol=0, atol=ROUND_OFF)
        if link.joint >= 0:
            # Motions move with the transpose of the inverse of what moves wrenches.
            X = np.linalg.inv(brute_force.wrench_transform(expected[k])).T
            np.testing.assert_allclose(J[:, link.joint], X @ link.motion, rtol=0, atol=ROUND_OFF)
