# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
URDF text: strict numbers, sensor tags, and joints that must stay cuts.

Simulators repeat sensors inside ``<gazebo>``: there only the FT sensor of a fixed joint without a
tag of its own counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import copy
from math import isfinite
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError, NameNotFound
from inertial_estimation.model.sensors import FtSpec, check_unique

FT_TAG = "sensor[@type='force_torque']"
ONE_DOF = ('revolute', 'continuous', 'prismatic')
MOMENTS = ('ixx', 'ixy', 'iyy', 'ixz', 'iyz', 'izz')
"""In the order of `model.inertia`."""
# What the parser behind Pinocchio takes; float() also takes '1_0' and a space behind the number.
NUMBER = re.compile(r'\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?')
LIMITS = ('lower', 'upper', 'velocity', 'acceleration')
"""Of the limits of a joint; a URDF may lack the last, and of continuous joints the first two."""
EFFORT = 'effort'


def load_text(urdf: str | Path) -> str:
    """Return the text of a URDF given as text or as path of a UTF-8 file; line ends are kept."""
    if isinstance(urdf, str) and is_xml(urdf):
        return urdf
    try:
        text = Path(urdf).read_bytes().decode('utf-8-sig')
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, 'strerror', 'it is no UTF-8 text')
        raise ModelError(f"cannot read the URDF '{urdf}': {reason}") from error
    if not is_xml(text):
        raise ModelError(f"'{urdf}' is no URDF")
    return text


def is_xml(text: str) -> bool:
    """Return true if a text can be a URDF; otherwise it may be a path."""
    return text.lstrip().startswith('<')


def parse(text: str) -> Element:
    """Return the ``<robot>`` element of a URDF text."""
    try:
        root = ElementTree.fromstring(text.lstrip())
    except ElementTree.ParseError as error:
        raise ModelError(f'the robot description is not valid XML: {error}') from error
    if root.tag != 'robot':
        raise ModelError(f'the robot description starts with <{root.tag}>, expected <robot>')
    return root


def ft_specs(root: Element) -> dict[str, FtSpec | ModelError]:
    """Return the FT sensors of the ``<sensor type="force_torque">`` tags, by name."""
    specs: dict[str, FtSpec | ModelError] = {}
    tags = root.findall(FT_TAG)
    fixed = {name for name, kind in joint_types(root).items() if kind == 'fixed'}
    fixed -= {parent.get('joint') for parent in root.findall(f'{FT_TAG}/parent')}
    for gazebo in root.findall('gazebo'):
        joint, names = gazebo.get('reference', ''), [tag.get('name') for tag in tags]
        own = [tag for tag in gazebo.findall(FT_TAG) if tag.get('name') not in names]
        if own and joint in fixed:
            fixed.remove(joint)
            tags.append(_of_gazebo(own[0], joint))
    for tag in tags:
        name = tag.get('name', '')
        if name in specs:
            raise ModelError(f"two <sensor> tags are named '{name}'; names must be unique")
        try:
            specs[name] = _ft_spec(name, tag)
        except ModelError as error:
            specs[name] = error
    return specs


def _of_gazebo(tag: Element, joint: str) -> Element:
    """Return the URDF tag of a sensor of SDFormat."""
    pose, found = tag.findtext('pose', '0 0 0 0 0 0').split(), copy(tag)
    ElementTree.SubElement(found, 'parent', joint=joint)
    ElementTree.SubElement(found, 'origin', xyz=' '.join(pose[:3]), rpy=' '.join(pose[3:]))
    return found


def _ft_spec(name: str, tag: Element) -> FtSpec:
    """Read one force_torque tag; outside frame 'sensor' its <origin> means nothing."""
    parent = tag.find('parent')
    joint = parent.get('joint', '') if parent is not None else ''
    if not joint:
        raise ModelError(f"FT sensor '{name}': the tag lacks <parent joint='...'/>")
    frame = tag.findtext('force_torque/frame', 'child').strip()
    # Of frame 'parent', software disagrees about the point of the moment.
    direction = tag.findtext('force_torque/measure_direction', 'child_to_parent').strip()
    for value, known in (
        (frame, ('child', 'sensor')),
        (direction, ('child_to_parent', 'parent_to_child')),
    ):
        if value not in known:
            raise ModelError(f"FT sensor '{name}' has '{value}', expected {' or '.join(known)}")
    pose = origin_pose(tag, f"FT sensor '{name}'") if frame == 'sensor' else np.eye(4)
    return FtSpec(name, joint, direction == 'child_to_parent', pose)


def link_sensor_tags(root: Element, kind: str) -> list[tuple[str, str, Array]]:
    """Return name, link and pose of every accelerometer or gyroscope tag."""
    tags: list[tuple[str, str, Array]] = []
    for tag in root.findall(f"sensor[@type='{kind}']"):
        parent, name = tag.find('parent'), tag.get('name', '')
        if parent is not None and parent.get('link'):
            if name in (other for other, _, _ in tags):
                raise ModelError(f"two {kind} tags are named '{name}'; names must be unique")
            tags.append((name, parent.get('link', ''), origin_pose(tag, f"{kind} '{name}'")))
    return tags


def joint_types(root: Element) -> dict[str, str]:
    """Return the type of every joint; ``mimic`` for joints that copy another one."""
    return {
        joint.get('name', ''): 'mimic'
        if joint.find('mimic') is not None
        else joint.get('type', '')
        for joint in root.findall('joint')
    }


def check_joints(types: dict[str, str], selected: Iterable[str] | None) -> list[str]:
    """Return the joints that move, after refusing those that the package cannot treat."""
    chosen = [n for n, t in types.items() if t != 'fixed'] if selected is None else list(selected)
    for name in chosen:
        if name not in types:
            raise NameNotFound('joint', name, types, f"'joints' names {name!r}")
        kind = types[name]
        if kind == 'fixed':
            raise ModelError(f"joint '{name}' is fixed; leave it out of the joints")
        if kind not in ONE_DOF:
            raise ModelError(
                f"joint '{name}' is of type '{kind}': name in 'joints' those to keep, without it"
            )
    return chosen


def free_ft_joints(root: Element, specs: Iterable[FtSpec]) -> str:
    """Return the URDF text with every FT joint ``floating``, so that Pinocchio keeps the cut."""
    joints = {joint.get('name', ''): joint for joint in root.findall('joint')}
    cut: dict[str, str] = {}
    for spec in specs:
        if spec.joint not in joints:
            where = f"FT sensor '{spec.name}' sits on joint '{spec.joint}'"
            raise NameNotFound('joint', spec.joint, joints, where)
        joint = joints[spec.joint]
        kind = joint.get('type')
        if spec.joint in cut:
            raise ModelError(
                f"joint '{spec.joint}' would hold two FT sensors: "
                f"'{cut[spec.joint]}' and '{spec.name}'"
            )
        if kind != 'fixed':
            raise ModelError(
                f"FT sensor '{spec.name}' sits on joint '{spec.joint}' of type '{kind}'; "
                'only a fixed joint can be cut'
            )
        joint.set('type', 'floating')
        cut[spec.joint] = spec.name
    return ElementTree.tostring(root, encoding='unicode')


def check_tree(root: Element) -> None:
    """
    Check that links and joints make up a tree, and the numbers of the model.

    Pinocchio's parser only prints its errors, and drops the whole ``<inertial>`` of a link that
    holds anything but numbers.
    """
    links, joints = ([tag.get('name', '') for tag in root.findall(k)] for k in ('link', 'joint'))
    for known in (links, joints):
        check_unique('links or joints', known)
    for link in root.findall('link'):
        _check_inertial(link)
    above: dict[str, str] = {}
    for joint in root.findall('joint'):
        owner, kind = f"joint '{joint.get('name', '')}'", joint.get('type')
        parent, child = (
            '' if (tag := joint.find(side)) is None else tag.get('link', '')
            for side in ('parent', 'child')
        )
        for end in (parent, child):
            if end not in links:
                raise NameNotFound('link', end, links, f"{owner} names '{end}'")
        if child in above:
            raise ModelError(f"link '{child}' is the child of {owner} and another joint")
        above[child] = parent
        limit, axis = joint.find('limit'), joint.find('axis')
        if kind in ('revolute', 'prismatic') and limit is None:
            raise ModelError(f'{owner} has no <limit>')
        for key, text in ({} if limit is None else limit.attrib).items():
            if not _is_number(text):
                raise ModelError(f"{owner}: <limit {key}='{text}'> is no finite number")
        origin_pose(joint, owner)
        # The parser does not read the axis of fixed and floating joints either.
        if kind in ('fixed', 'floating') or axis is None:
            continue
        if not any(three_numbers(axis, 'xyz', owner, '1 0 0')):
            raise ModelError(f"{owner}: <axis xyz='{axis.get('xyz')}'> has no direction")
    roots = [name for name in links if name not in above]
    reached = roots[:1]
    for name in reached:
        reached += [child for child, parent in above.items() if parent == name]
    if len(reached) < len(links):
        lost = next(name for name in links if name not in reached)
        raise ModelError(f"link '{lost}' is in no tree with the root link '{roots[:1]}'")


def _check_inertial(link: Element) -> None:
    """Check the numbers of the ``<inertial>`` of a link, if there is one."""
    inertial, owner = link.find('inertial'), f"link '{link.get('name', '')}'"
    if inertial is None:
        return
    origin_pose(inertial, owner)
    for name, keys in (('mass', ('value',)), ('inertia', MOMENTS)):
        tag = inertial.find(name)
        if tag is None:
            raise ModelError(f'{owner}: its <inertial> lacks <{name}>')
        for key in keys:
            if not _is_number(tag.get(key, '')):
                given = f"{key}='{tag.get(key, '')}'"
                raise ModelError(f'{owner}: <{name} {given}> is no finite number')


def three_numbers(tag: Element, key: str, owner: str, default: str = '0 0 0') -> list[float]:
    """Read an attribute that holds a vector."""
    text = tag.get(key, default)
    parts = text.split()
    if len(parts) != 3 or not all(map(_is_number, parts)):
        raise ModelError(f"{owner}: <{tag.tag} {key}='{text}'> is not three finite numbers")
    return [float(part) for part in parts]


def _is_number(text: str) -> bool:
    """Return true if a text is a finite number to every parser of URDFs."""
    return NUMBER.fullmatch(text) is not None and isfinite(float(text))


def origin_pose(tag: Element, owner: str) -> Array:
    """Return the pose of the <origin> of a tag, identity where there is none."""
    origin = tag.find('origin')
    if origin is None:
        return np.eye(4)
    xyz, rpy = (three_numbers(origin, key, owner) for key in ('xyz', 'rpy'))
    return pose_from_xyz_rpy(xyz, rpy)


def pose_from_xyz_rpy(xyz: Iterable[float], rpy: Iterable[float]) -> Array:
    """Return the homogeneous matrix (4, 4) of a URDF origin [m, rad]."""
    (cr, sr), (cp, sp), (cy, sy) = ((np.cos(angle), np.sin(angle)) for angle in rpy)
    pose = np.eye(4)
    pose[:3, :3] = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    pose[:3, 3] = list(xyz)
    return pose


def limits_of(tag: Element) -> dict[str, float]:
    """Return the limits of a joint in the URDF; those of a continuous joint mean nothing."""
    limit = tag.find('limit')
    stated = {} if limit is None else limit.attrib
    found = dict[str, float]()
    for key in (*LIMITS, EFFORT):
        if key in stated and not (tag.get('type') == 'continuous' and key in LIMITS[:2]):
            found[key] = float(stated[key])
    return found
