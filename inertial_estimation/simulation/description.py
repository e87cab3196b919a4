# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The robot of the demo, and its URDF as the simulator takes it: bodies with mass only."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

from inertial_estimation.errors import ModelError
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import parse

ICUB = 'iCubGazeboV2_5'
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
    return Path(path).read_text(encoding='utf-8')


def bodies_text(robot: Robot) -> str:
    """Return the URDF of the links with mass, without anything but inertia and joints."""
    tree = parse(robot.urdf)
    inertials = {link.get('name', ''): link.find('inertial') for link in tree.findall('link')}
    heavy = {name: tag for name, tag in inertials.items() if tag is not None}
    out = ElementTree.Element('robot', name=robot.name)
    options = ElementTree.SubElement(out, 'mujoco')
    ElementTree.SubElement(options, 'compiler', attrib=IMPORT_OPTIONS)
    for name, inertial in heavy.items():
        ElementTree.SubElement(out, 'link', name=name).append(inertial)
    for joint in tree.findall('joint'):
        child = joint.find('child')
        if child is not None and child.get('link') in heavy:
            out.append(joint)
    return ElementTree.tostring(out, encoding='unicode')
