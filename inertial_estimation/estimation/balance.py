# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
From IMU readings to net wrenches, and their balance in each submodel [T sections 4.4.2-4.6].

Two Pinocchio models share the work. The *forest* holds one tree for each IMU (or for the fixed
link). Its roots and its FT joints have six degrees of freedom, so their entries of one ``rnea``
are sums of net wrenches; gravity is zero and the roots get the proper acceleration, so readings
enter untransformed. A tree walks some joints against the URDF: axis negated, placement inverted.
The *geometry* is rooted at the URDF root and gives the places of links and joint axes.

External wrenches of submodels and loads of joints [T sections 4.5, 4.6] are sums, the *balance*,
of three kinds of terms about the root link's origin in its axes: sums of net wrenches below the
tops of the forest, FT measurements (child on parent), and external wrenches at the contacts. Their
factors are decided once for a set of sensors and contacts; a factor of zero adds exactly zero, as
what is missing is taken out before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.model.pinocchio_model import joint_model, make_inertia
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import inverse_pose, motion_transform
from inertial_estimation.model.tree import Source, Submodel, assign_owners


@dataclass(frozen=True, eq=False)
class Top:
    """A joint of the forest with six degrees of freedom: the root of a tree, or an FT sensor."""

    link: int
    """Link in whose frame, moved by `L_H_top`, its wrench is expressed."""
    L_H_top: Array
    """Pose of its frame in that link, shape (4, 4) [m]."""
    ft_sensor: int
    """Index of the FT sensor, -1 for the root of a tree."""
    above: int
    """The link it hangs from, -1 for the root of a tree."""
    below: int
    """The link it carries, -1 for the root of an empty tree."""


@dataclass(frozen=True, eq=False)
class Forest:
    """The trees, and where their quantities stand in Pinocchio's vectors."""

    model: pin.Model
    owner: tuple[int, ...]
    """For each link, the index of the source that serves it."""
    tops: tuple[Top, ...]
    """First the root of each tree in the order of the sources, then FT sensors within trees."""
    top_rows: Indices
    """Rows of ``tau`` that are the wrench of each top, shape (n_tops, 6)."""
    joint_rows: Indices
    """Row of ``tau`` of each joint; -1 for a joint between two trees, shape (n_joints,)."""
    joints_between_trees: tuple[int, ...]
    """Joints that no tree holds."""
    path: tuple[frozenset[int], ...]
    """For each link the joints between it and the root of its tree."""
    carriers: tuple[tuple[int, pin.SE3], ...]
    """For each link Pinocchio's index of the joint that carries it alone, and its pose there."""

    def carried(self) -> tuple[list[int], Array]:
        """Return the joint that carries each link, and L_X_J, shape (n_links, 6, 6)."""
        joints, poses = zip(*self.carriers)
        J_H_L = np.array([pose.homogeneous for pose in poses])
        return list(joints), motion_transform(inverse_pose(J_H_L))

    def set_inertias(self, parameters: Array) -> None:
        """Give the links inertial parameters; parameters (n_links, 10)."""
        inertias = self.model.inertias
        # Not added: Pinocchio's sums divide by max(mass, epsilon), which ruins negative masses.
        for (joint, J_H_L), row in zip(self.carriers, parameters, strict=True):
            inertias[joint] = J_H_L.act(make_inertia(row))


def build_forest(
    robot: Robot, sources: Sequence[Source], *, rigid_sensors: bool = False
) -> Forest:
    """Build one tree of links for each source, rooted in its frame."""
    owner = assign_owners(robot.links, sources, rigid_sensors=rigid_sensors)
    model = pin.Model()
    model.gravity = pin.Motion.Zero()
    children: list[list[int]] = [[] for _ in robot.links]
    for k, link in enumerate(robot.links):
        if link.parent >= 0:
            children[link.parent].append(k)
    joint_ids = [0] * len(robot.joint_names)
    path: list[frozenset[int]] = [frozenset()] * len(robot.links)
    carriers = [(0, pin.SE3.Identity())] * len(robot.links)
    tops: list[tuple[int, Top]] = []

    def add(k: int, came_from: int, joint: int, J_H_L: pin.SE3, way: frozenset[int]) -> None:
        """Attach link k to a joint of the tree, and its neighbours beyond their joints."""
        carriers[k], path[k] = (joint, J_H_L), way
        for to in (*children[k], robot.links[k].parent):
            if to in (-1, came_from) or owner[to] != owner[k]:
                continue
            edge = k if to == robot.links[k].parent else to
            link = robot.links[edge]
            placement, J_H_to = J_H_L, pin.SE3(link.P_H_L).inverse()
            if edge == to:
                placement, J_H_to = J_H_L * pin.SE3(link.P_H_L), pin.SE3.Identity()
            if link.ft_sensor >= 0:
                free = pin.JointModelFreeFlyer()
                new = model.addJoint(joint, free, placement, f'ft_{link.ft_sensor}')
                tops.append((new, Top(edge, np.eye(4), link.ft_sensor, k, to)))
                add(to, k, new, J_H_to, way)
            else:
                one = joint_model(link.motion if edge == to else -link.motion)
                new = model.addJoint(joint, one, placement, f'joint_{link.joint}')
                joint_ids[link.joint] = new
                add(to, k, new, J_H_to, way | {link.joint})

    for s, source in enumerate(sources):
        free, is_empty = pin.JointModelFreeFlyer(), owner[source.link] != s
        root = model.addJoint(0, free, pin.SE3.Identity(), f'root_{s}')
        below = -1 if is_empty else source.link
        tops.append((root, Top(source.link, source.L_H_S, -1, -1, below)))
        if not is_empty:
            add(source.link, -1, root, pin.SE3(source.L_H_S).inverse(), frozenset())
    tops.sort(key=lambda item: item[1].ft_sensor >= 0)
    joints = model.joints
    forest = Forest(
        model=model,
        owner=owner,
        tops=tuple(top for _, top in tops),
        top_rows=np.array([np.arange(6) + joints[i].idx_v for i, _ in tops], dtype=np.intp),
        joint_rows=np.array([joints[i].idx_v if i else -1 for i in joint_ids], dtype=np.intp),
        joints_between_trees=tuple(j for j, i in enumerate(joint_ids) if not i),
        path=tuple(path),
        carriers=tuple(carriers),
    )
    forest.set_inertias(robot.parameters)
    return forest


def carry(
    model: pin.Model, wanted: Iterable[int]
) -> tuple[pin.Model, dict[int, tuple[int, pin.SE3]]]:
    """Return a model of the joints that carry some joints of a forest, and of no others."""
    needed = set()
    for joint in wanted:
        while joint and joint not in needed:
            needed.add(joint)
            joint = model.parents[joint]
    small = pin.Model()
    at = {0: (0, pin.SE3.Identity())}
    for joint in sorted(needed):
        parent, pose = at[model.parents[joint]]
        pose = pose * model.jointPlacements[joint]
        if model.names[joint].startswith('ft_'):
            at[joint] = parent, pose
        else:
            new = small.addJoint(parent, model.joints[joint], pose, model.names[joint])
            at[joint] = new, pin.SE3.Identity()
    return small, at


@dataclass(frozen=True, eq=False)
class Balance:
    """
    The sums for one set of FT sensors and contacts.

    The factors have one column for each top, each FT sensor and each contact, in that order.
    """

    submodels: tuple[Submodel, ...]
    """The submodels left when sensors that are not used do not cut."""
    members: Mask
    """Links of each submodel, shape (n_submodels, n_links)."""
    contact_links: Indices
    """Link of each contact."""
    contact_submodel: Indices
    """Index of the submodel of each contact."""
    beyond: Mask
    """Links of its submodel beyond each joint, seen from the root, shape (n_joints, n_links)."""
    loading: Mask
    """Links of the robot on the side of each joint without the base, shape (n_joints, n_links)."""
    submodel_factors: Array
    """Sum of the external wrenches on each submodel [T 4.19], shape (n_submodels, n_terms)."""
    joint_factors: Array
    """
    Terms added to each joint's ``tau`` of the forest for its torque [T 4.24, 4.25], and those of
    its external torque, shape (n_joints, 2, n_terms).
    """
    held: Mask
    """Contacts in each joint's torque, and in its external one, (n_joints, 2, n_contacts)."""


def build_balance(
    robot: Robot,
    forest: Forest,
    submodels: tuple[Submodel, ...],
    used_sensors: Iterable[int],
    contact_links: Sequence[int],
) -> Balance:
    """Find the sums."""
    used = masks([used_sensors], len(robot.ft_sensors))
    # Column -1 is that of no link.
    below, above = [top.below for top in forest.tops], [top.above for top in forest.tops]
    far = np.array([sensor.child for sensor in robot.ft_sensors], dtype=np.intp)
    near = np.array([sensor.parent for sensor in robot.ft_sensors], dtype=np.intp)

    def measured(links: Mask) -> Array:
        """Return the factors of tops and FT measurements in: net wrenches - wrenches at cuts."""
        counts = np.pad(links.astype(np.float64), ((0, 0), (0, 1)))
        tops, fts = counts[:, below] - counts[:, above], counts[:, far] - counts[:, near]
        return np.hstack([tops, fts * used])

    child, places = child_links(robot), np.array(contact_links, dtype=np.intp)
    members = masks([submodel.links for submodel in submodels], len(robot.links))
    owner = members.argmax(axis=0)
    subtree = robot.carried[child]
    # What the joint's tau of the forest holds already is the same on both sides of each top.
    beyond = subtree & members[owner[child]]
    torques = np.hstack([measured(beyond), -1.0 * beyond[:, places]])
    # In J' f [T 3.64] of the joint above the link.
    turned = subtree[:, [robot.base]]
    loading = subtree ^ turned
    external = np.zeros_like(torques)
    external[:, external.shape[1] - len(places) :] = loading[:, places] * np.where(turned, -1, 1)
    sums, factors = measured(members), np.stack([torques, external], axis=1)
    return Balance(
        submodels=submodels,
        members=members,
        contact_links=places,
        contact_submodel=owner[places],
        beyond=beyond,
        loading=loading,
        submodel_factors=np.pad(sums, ((0, 0), (0, len(places)))),
        joint_factors=factors,
        held=factors[..., external.shape[1] - len(places) :] != 0,
    )


def masks(rows: Iterable[Iterable[int]], size: int) -> Mask:
    """Return a mask for each list of indices, shape (n, size)."""
    indices = [list(row) for row in rows]
    found = np.zeros((len(indices), size), dtype=bool)
    for mask, row in zip(found, indices):
        mask[row] = True
    return found


def child_links(robot: Robot) -> Indices:
    """Return the child link of each joint."""
    child = {link.joint: k for k, link in enumerate(robot.links)}
    return np.array([child[j] for j in range(len(robot.joint_names))], dtype=np.intp)
