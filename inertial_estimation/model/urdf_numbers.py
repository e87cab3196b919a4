# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The numbers of a URDF, read strictly.

The parser behind Pinocchio drops the whole ``<inertial>`` of a link where one of its numbers is
none, and goes on: the link would weigh nothing.
"""

from __future__ import annotations

import re
from math import isfinite
from xml.etree.ElementTree import Element

from inertial_estimation.errors import ModelError

# What that parser takes; Python's float() also takes '1_0' and a space behind the number.
NUMBER = re.compile(r'\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?')
MOMENTS = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')


def check_numbers(root: Element) -> None:
    """Check the numbers of links and joints that make up the model."""
    for link in root.findall('link'):
        inertial = link.find('inertial')
        if inertial is not None:
            _check_inertial(inertial, f"link '{link.get('name', '')}'")
    for joint in root.findall('joint'):
        owner = f"joint '{joint.get('name', '')}'"
        _check_origin(joint, owner)
        axis = joint.find('axis')
        # Of joints without axis the parser does not read it either.
        if axis is None or joint.get('type') in ('fixed', 'floating'):
            continue
        if not any(three_numbers(axis, 'xyz', owner, '1 0 0')):
            raise ModelError(f"{owner}: <axis xyz='{axis.get('xyz')}'> has no direction")


def three_numbers(tag: Element, key: str, owner: str, default: str = '0 0 0') -> list[float]:
    """Read an attribute that holds a vector."""
    text = tag.get(key, default)
    values = [_number(part) for part in text.split()]
    numbers = [value for value in values if value is not None]
    if len(values) != 3 or len(numbers) != 3:
        raise ModelError(f"{owner}: <{tag.tag} {key}='{text}'> is not three finite numbers")
    return numbers


def _check_inertial(inertial: Element, owner: str) -> None:
    """Check mass, centre of mass and moments of inertia of a link."""
    _check_origin(inertial, owner)
    for name, keys in (('mass', ('value',)), ('inertia', MOMENTS)):
        tag = inertial.find(name)
        if tag is None:
            raise ModelError(f'{owner}: its <inertial> lacks <{name}>; add it, or leave both out')
        for key in keys:
            if _number(tag.get(key, '')) is None:
                given = f"{key}='{tag.get(key, '')}'"
                raise ModelError(f'{owner}: <{name} {given}> is no finite number')


def _check_origin(parent: Element, owner: str) -> None:
    """Check position and angles of an <origin>, if there is one."""
    origin = parent.find('origin')
    if origin is not None:
        for key in ('xyz', 'rpy'):
            three_numbers(origin, key, owner)


def _number(text: str) -> float | None:
    """Return a finite number, None if it is none."""
    if not NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if isfinite(value) else None
