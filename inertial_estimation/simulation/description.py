# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Parts of a URDF for the simulator: bodies with mass, frames fixed to them, FT sensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
from scipy.spatial.transform import Rotation

from inertial_estimation.arrays import Array
from inertial_estimation.errors import FrameNotFound, ModelError

ICUB = 'iCubGazeboV2_5'
SIGNS = {'child_to_parent': 1.0, 'parent_to_child': -1.0}
"""Sign of an FT reading against what the child does to the parent."""
IMPORT_OPTIONS = {
    # A fixed joint stays a joint between two bodies, or no sensor could sit in it.
    'fusestatic': 'false',
    'boundmass': '0',
    'boundinertia': '0',
    'balanceinertia': 'false',
}


def demo_package(name: str) -> ModuleType:
    """Import a package of the extra `demo`."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ModelError(
            f"the package '{name}' is not installed ({error}): pip install '.[demo]'"
        ) from error


def icub_urdf(model: str = ICUB) -> str:
    """Return the URDF text of an iCub that the package icub-models brings."""
    path = demo_package('icub_models').get_model_file(model)
    try:
        return Path(path).read_text(encoding='utf-8')
    except OSError as error:
        raise ModelError(f"no URDF of '{model}' at '{path}': {error.strerror}") from error


@dataclass(frozen=True)
class Placement:
    """A frame fixed to a body: the body's name and the pose of the frame in it."""

    body: str
    position: Array
    """Origin of the frame in the body, shape (3,) [m]."""
    rotation: Rotation
    """Axes of the frame in the body."""

    def moved(self, position: Array, rotation: Rotation) -> Placement:
        """Return the placement of a frame that is given in this one [m]."""
        origin = self.position + self.rotation.apply(position)
        return Placement(self.body, origin, self.rotation * rotation)


@dataclass(frozen=True)
class ForceTorqueTag:
    """An FT sensor tag: name, frame and direction."""

    name: str
    child_link: str
    placement: Placement
    """The sensor frame in the child link."""
    sign: float
    """One of `SIGNS`."""


@dataclass(frozen=True)
class Description:
    """The parts of a URDF that its motion and its sensors depend on."""

    text: str
    """The whole URDF, as it is published."""
    bodies_text: str
    """URDF of the bodies with mass only, for the simulator."""
    root: str
    """Name of the root link."""
    frames: Mapping[str, Placement]
    """Every link of the URDF, as a frame of the body that carries it."""
    force_torque: tuple[ForceTorqueTag, ...]

    def placement(self, frame: str) -> Placement:
        """Return the pose of a link of the URDF."""
        if frame not in self.frames:
            raise FrameNotFound(frame, self.frames)
        return self.frames[frame]


def describe(urdf: str) -> Description:
    """Read a URDF."""
    try:
        tree = ElementTree.fromstring(urdf)
    except ElementTree.ParseError as error:
        raise ModelError(f'the robot description is no XML: {error}') from error
    heavy = {_name(link) for link in tree.iter('link') if link.find('inertial') is not None}
    joints = {_child(joint): joint for joint in tree.findall('joint')}
    frames = {_name(link): _placement(_name(link), joints, heavy) for link in tree.findall('link')}
    roots = sorted(set(frames) - set(joints))
    if len(roots) != 1:
        raise ModelError(f'a robot has one root link; this description has {roots}')
    sensors = tuple(
        _force_torque(tag, joints, frames)
        for tag in tree.findall('sensor')
        if tag.get('type') == 'force_torque'
    )
    return Description(urdf, _bodies_text(tree, heavy), roots[0], frames, sensors)


def _bodies_text(tree: ElementTree.Element, heavy: set[str]) -> str:
    """Return the URDF of the links with mass, without anything but inertia and joints."""
    out = ElementTree.Element('robot', name=tree.get('name', 'robot'))
    ElementTree.SubElement(
        ElementTree.SubElement(out, 'mujoco'), 'compiler', attrib=IMPORT_OPTIONS
    )
    for link in tree.findall('link'):
        if _name(link) in heavy:
            ElementTree.SubElement(out, 'link', name=_name(link)).extend(link.iter('inertial'))
    out.extend(joint for joint in tree.findall('joint') if _child(joint) in heavy)
    return ElementTree.tostring(out, encoding='unicode')


def _placement(link: str, joints: Mapping[str, ElementTree.Element], heavy: set[str]) -> Placement:
    """Return a link as a frame of the nearest body with mass above it, or of itself."""
    if link in heavy:
        return Placement(link, np.zeros(3), Rotation.identity())
    if link not in joints or joints[link].get('type') != 'fixed':
        raise ModelError(f"link '{link}' moves but has no mass; give it an <inertial>")
    above = _placement(_link(joints[link], 'parent'), joints, heavy)
    return above.moved(*_pose(joints[link].find('origin')))


def _force_torque(
    tag: ElementTree.Element,
    joints: Mapping[str, ElementTree.Element],
    frames: Mapping[str, Placement],
) -> ForceTorqueTag:
    """Return one FT sensor tag."""
    name = _name(tag)
    joint = tag.find('parent')
    wanted = '' if joint is None else joint.get('joint', '')
    child = next((c for c, j in joints.items() if _name(j) == wanted), None)
    if child is None:
        raise ModelError(f"FT sensor '{name}' sits in joint '{wanted}', which does not exist")
    frame = tag.findtext('force_torque/frame', 'child').strip()
    direction = tag.findtext('force_torque/measure_direction', 'child_to_parent').strip()
    if frame not in ('child', 'sensor') or direction not in SIGNS:
        raise ModelError(
            f"FT sensor '{name}' has frame '{frame}' and direction '{direction}'; the frame must "
            f"be 'child' or 'sensor', the direction one of {list(SIGNS)}"
        )
    placement = frames[child]
    if frame == 'sensor':
        placement = placement.moved(*_pose(tag.find('origin')))
    return ForceTorqueTag(name, child, placement, SIGNS[direction])


def _pose(origin: ElementTree.Element | None) -> tuple[Array, Rotation]:
    """Return position [m] and rotation of an <origin>."""
    values = [
        np.zeros(3) if origin is None else np.array(origin.get(key, '0 0 0').split(), float)
        for key in ('xyz', 'rpy')
    ]
    return values[0], Rotation.from_euler('xyz', values[1])


def _name(element: ElementTree.Element) -> str:
    """Return the name of a link, joint or sensor."""
    return element.get('name', '')


def _child(joint: ElementTree.Element) -> str:
    """Return the link below a joint."""
    return _link(joint, 'child')


def _link(joint: ElementTree.Element, side: str) -> str:
    """Return the link on one side of a joint."""
    element = joint.find(side)
    if element is None:
        raise ModelError(f"joint '{_name(joint)}' has no <{side}>")
    return element.get('link', '')
