# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The tree of a robot: links of a URDF with FT joints cut and other fixed joints lumped.

Cut at its FT sensors, the tree falls into submodels [T section 4.5.1].
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from inertial_estimation.arrays import Array, read_only
from inertial_estimation.errors import ModelError, NameNotFound
from inertial_estimation.model.arguments import numbers
from inertial_estimation.model.sensors import FtSensor, FtSpec, check_unique
from inertial_estimation.model.urdf import (
    ONE_DOF,
    check_joints,
    free_ft_joints,
    ft_specs,
    joint_types,
)

ROOT_JOINT = '/root'
"""Pinocchio's name for the joint above the root link; no joint of a URDF is called so."""


Place = tuple[int, Array]
"""Index of a link, and a pose in it of shape (4, 4) [m]."""


@dataclass(frozen=True, eq=False)
class Link:
    """A rigid body and the joint or FT sensor that ties it to its parent."""

    name: str
    parent: int
    """Index of the parent link, -1 for the root."""
    joint: int
    """Index into ``joint_names``, -1 for the root and beyond an FT sensor."""
    ft_sensor: int
    """Index into ``ft_sensors`` of the sensor towards the root, -1 if a joint is there."""
    P_H_L: Array
    """Pose of this link in its parent at joint position zero, shape (4, 4) [m]."""
    motion: Array
    """Motion subspace of the joint in this link's frame, (6,) [linear; angular]; zero if none."""


def select_ft_specs(root: Element, chosen: Iterable[str | FtSpec] | None) -> list[FtSpec]:
    """Return the sensors to cut at: given ones, named tags, or all tags."""
    tags = ft_specs(root)
    specs = []
    for item in tags if chosen is None else chosen:
        if isinstance(item, FtSpec):
            specs.append(item)
            continue
        if item not in tags:
            raise NameNotFound('FT sensor tag', item, tags, f"'ft_sensors' names {item!r}")
        found = tags[item]
        if isinstance(found, ModelError):
            raise found
        specs.append(found)
    check_unique('FT sensors', [spec.name for spec in specs])
    return specs


def cut_model(
    root: Element,
    specs: list[FtSpec],
    joints: Iterable[str] | None,
    locked_positions: Mapping[str, float],
) -> pin.Model:
    """Return Pinocchio's model with a floating root, floating FT joints, other joints locked."""
    types = joint_types(root)
    kept = set(check_joints(types, joints))
    for name, position in locked_positions.items():
        if name not in types:
            raise NameNotFound('joint', name, types, f"'locked_positions' names {name!r}")
        if name in kept or types[name] not in (*ONE_DOF, 'mimic'):
            raise ModelError(
                f"locked_positions names '{name}' of type '{types[name]}', no locked joint"
            )
        numbers(f'locked_positions[{name!r}]', position, ())
    if ROOT_JOINT in types:
        raise ModelError(f"joint '{ROOT_JOINT}' has the name of the joint of a floating robot")
    text = free_ft_joints(root, specs)
    try:
        model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer(), ROOT_JOINT)
    except (ValueError, RuntimeError) as error:
        raise ModelError(f'Pinocchio cannot read the robot description: {error}') from error
    kept |= {ROOT_JOINT, *(spec.joint for spec in specs)}
    locked = [k for k in range(1, model.njoints) if model.names[k] not in kept]
    if not locked:
        return model
    q = pin.neutral(model)
    for name, position in locked_positions.items():
        joint = model.joints[model.getJointId(name)]
        # Continuous joints have two entries.
        value = position if joint.nq == 1 else (np.cos(position), np.sin(position))
        q[joint.idx_q : joint.idx_q + joint.nq] = value
    return pin.buildReducedModel(model, locked, q)


def read_links(model: pin.Model, ft_joints: list[str]) -> tuple[tuple[Link, ...], tuple[str, ...]]:
    """Read links and joint names; Pinocchio's joint k + 1 moves link k."""
    names: dict[int, str] = {}
    for frame in model.frames:
        if frame.type == pin.FrameType.BODY:
            names.setdefault(frame.parentJoint, frame.name)
    links: list[Link] = []
    joint_names: list[str] = []
    neutral = pin.neutral(model)
    for k in range(1, model.njoints):
        joint = ft_sensor = -1
        motion = np.zeros(6)
        if model.names[k] in ft_joints:
            ft_sensor = ft_joints.index(model.names[k])
        elif k > 1:
            joint = len(joint_names)
            joint_names.append(model.names[k])
            one = model.joints[k]
            data = one.createData()
            # It reads its own entries of the configuration of the whole model.
            one.calc(data, neutral)
            motion = np.asarray(data.S).reshape(6)
        placement = model.jointPlacements[k].homogeneous if k > 1 else np.eye(4)
        links.append(
            Link(
                name=names[k],
                parent=model.parents[k] - 1 if k > 1 else -1,
                joint=joint,
                ft_sensor=ft_sensor,
                P_H_L=read_only(placement),
                motion=read_only(motion),
            )
        )
    return tuple(links), tuple(joint_names)


def read_frames(model: pin.Model) -> dict[str, Place]:
    """Return link and pose of every named frame; of equal names a link wins over a joint."""
    frames: dict[str, Place] = {}
    for kinds in ((pin.FrameType.BODY,), (pin.FrameType.JOINT, pin.FrameType.FIXED_JOINT)):
        for frame in model.frames:
            if frame.type in kinds and frame.parentJoint > 0 and frame.name != ROOT_JOINT:
                pose = read_only(frame.placement.homogeneous)
                frames.setdefault(frame.name, (frame.parentJoint - 1, pose))
    return frames


def place_ft(spec: FtSpec, links: Sequence[Link], index: int) -> FtSensor:
    """Return the sensor with the links on its two sides."""
    child = next(k for k, link in enumerate(links) if link.ft_sensor == index)
    return FtSensor(
        name=spec.name,
        joint=spec.joint,
        parent=links[child].parent,
        child=child,
        child_H_sensor=read_only(spec.pose),
        direction=1 if spec.child_to_parent else -1,
    )


@dataclass(frozen=True)
class Submodel:
    """Links between cuts."""

    name: str
    """Name of its root link."""
    root: int
    """Index of the link nearest to the root of the robot."""
    links: tuple[int, ...]
    """Indices of its links."""
    root_sensor: int
    """Index of the FT sensor towards the root of the robot, -1 if it holds that root."""
    child_sensors: tuple[int, ...]
    """Indices of the FT sensors away from the root."""

    @property
    def sensors(self) -> tuple[int, ...]:
        """Indices of all FT sensors at its borders."""
        return (*((self.root_sensor,) if self.root_sensor >= 0 else ()), *self.child_sensors)


def decompose(
    links: Sequence[Link], ft_sensors: Sequence[FtSensor], cut: Collection[int]
) -> tuple[Submodel, ...]:
    """Cut the tree at some of its FT sensors."""
    root_of: list[int] = []
    for k, link in enumerate(links):
        is_root = link.parent < 0 or link.ft_sensor in cut
        root_of.append(k if is_root else root_of[link.parent])
    return tuple(
        Submodel(
            name=links[root].name,
            root=root,
            links=tuple(k for k, r in enumerate(root_of) if r == root),
            root_sensor=links[root].ft_sensor if links[root].ft_sensor in cut else -1,
            child_sensors=tuple(k for k in sorted(cut) if root_of[ft_sensors[k].parent] == root),
        )
        for root in sorted(set(root_of))
    )


@dataclass(frozen=True, eq=False)
class Source:
    """A frame whose motion is known: an IMU or the fixed link."""

    name: str
    link: int
    """Index of the link."""
    L_H_S: Array
    """Pose of the frame in the link, shape (4, 4) [m]."""


def assign_owners(
    links: Sequence[Link], sources: Sequence[Source], *, rigid_sensors: bool = False
) -> tuple[int, ...]:
    """Give each link to the source that is nearest in the tree."""
    # More than all FT sensors of the robot together.
    joint_step = len(links) if rigid_sensors else 1
    owner = [-1] * len(links)
    distance = [0] * len(links)
    neighbours: list[list[tuple[int, bool, bool]]] = [[] for _ in links]
    for k, link in enumerate(links):
        if link.parent >= 0:
            across = link.ft_sensor >= 0
            neighbours[link.parent].append((k, False, across))
            neighbours[k].append((link.parent, True, across))
    heap = [(0, False, source.link, s) for s, source in enumerate(sources)]
    for across_sensors in (True,) if rigid_sensors else (False, True):
        heapq.heapify(heap)
        while heap:
            d, _, k, s = heapq.heappop(heap)
            if owner[k] >= 0 and owner[k] != s:
                continue
            if owner[k] < 0:
                owner[k], distance[k] = s, d
            for other, upwards, across in neighbours[k]:
                if owner[other] < 0 and (across_sensors or not across):
                    step = 1 if across else joint_step
                    heapq.heappush(heap, (d + step, upwards, other, s))
        heap = [(distance[k], False, k, s) for k, s in enumerate(owner) if s >= 0]
    return tuple(owner)
