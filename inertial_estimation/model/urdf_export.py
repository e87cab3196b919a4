# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A robot description with other inertial parameters, every other byte as it was.

A link of the robot may be several of the URDF, lumped at fixed or locked joints. The topmost one
takes the difference, or the heaviest one where the topmost is but a frame with next to no mass.
Where no body could be that difference, the others are made lighter, all by the same factor: each
keeps its shape, and what moves in other programs keeps a mass.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from xml.etree.ElementTree import Element
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.model import urdf as urdf_text
from inertial_estimation.model.inertia import consistency_margin, inertia_complaint
from inertial_estimation.model.rigid_body import (
    inertia_seen_from,
    parameters_of,
    spatial_inertia,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import inverse_pose
from inertial_estimation.model.urdf_numbers import three_numbers

Array = NDArray[np.float64]


class _Place(NamedTuple):
    """Where a link stands in a text, in bytes."""

    opening: tuple[int, int]
    """Of its first tag."""
    inertial: tuple[int, int] | None
    """Of its inertial, if it has one."""


def export_urdf(robot: Robot, parameters: Array) -> str:
    """
    Return the description of a robot with other inertial parameters.

    parameters (n_links, 10).
    """
    new = robot.with_parameters(parameters).parameters
    wanted: dict[str, Array] = {}
    for k, name in enumerate(robot.link_names):
        if np.array_equal(new[k], robot.parameters[k]):
            continue
        complaint = inertia_complaint(new[k])
        if complaint:
            raise ModelError(f"'{name}' {complaint}: nothing is exported")
        wanted |= _of_lump(robot, k, new[k])
    return _rewritten(robot.urdf, wanted)


def lightened(robot: Robot, parameters: Array) -> dict[str, float]:
    """
    Return which links of the description an export makes lighter, though nobody measured that.

    parameters (n_links, 10).
    """
    found = {}
    for k in range(len(robot.link_names)):
        if np.array_equal(parameters[k], robot.parameters[k]):
            continue
        taker = _taker(robot, k)
        for name, own in _of_lump(robot, k, parameters[k]).items():
            if name != taker:
                before = _described(robot.urdf, name)
                largest = np.abs(before).argmax()
                found[name] = float(own[largest] / before[largest])
    return found


def inertial_of(link: Element) -> Array:
    """
    Return the inertial parameters of one ``<link>`` by itself.

    Returns (10,).
    """
    inertial = link.find('inertial')
    if inertial is None:
        return np.zeros(10)
    mass, inertia = inertial.find('mass'), inertial.find('inertia')
    if mass is None or inertia is None:
        return np.zeros(10)
    xx, xy, yy, xz, yz, zz = (float(inertia.get(key, '0')) for key in MOMENTS)
    central = np.array([float(mass.get('value', '0')), 0, 0, 0, xx, xy, yy, xz, yz, zz])
    origin = inertial.find('origin')
    pose = np.eye(4)
    if origin is not None:
        owner = f"link '{link.get('name')}'"
        xyz, rpy = (three_numbers(origin, key, owner) for key in ('xyz', 'rpy'))
        pose = urdf_text.pose_from_xyz_rpy(xyz, rpy)
    return parameters_of(inertia_seen_from(spatial_inertia(central), pose))


MOMENTS = ('ixx', 'ixy', 'iyy', 'ixz', 'iyz', 'izz')


FRAME = 0.01
"""Share of the mass of a lump below which its topmost link is but a frame."""
HALVINGS = 50
"""Of the range in which the greatest share lies that leaves a body."""


def _of_lump(robot: Robot, index: int, new: Array) -> dict[str, Array]:
    """Return the parameters of those URDF links of one link that get others."""
    taker = _taker(robot, index)
    L_H_taker = robot.frames[taker][1]
    rest = robot.parameters[index] - _seen_from(_described(robot.urdf, taker), L_H_taker)
    taker_H_L = inverse_pose(L_H_taker)
    if consistency_margin(new - rest) > 0:
        return {taker: _seen_from(new - rest, taker_H_L)}
    # Half of the most: the link that takes the rest is then as far inside what a body can be.
    share = _most(new, rest) / 2
    others = [name for name in _lumped(robot, index) if name != taker]
    lighter = {name: share * _described(robot.urdf, name) for name in others}
    taken = {taker: _seen_from(new - share * rest, taker_H_L)}
    return taken | {name: own for name, own in lighter.items() if own.any()}


def _seen_from(parameters: Array, A_H_B: Array) -> Array:
    """Return parameters about the origin of B about that of A; the same bits where it is one."""
    if np.array_equal(A_H_B, np.eye(4)):
        return parameters
    return parameters_of(inertia_seen_from(spatial_inertia(parameters), A_H_B))


def _taker(robot: Robot, index: int) -> str:
    """Return which URDF link of one link takes what is new."""
    top = robot.link_names[index]
    masses = {name: _described(robot.urdf, name)[0] for name in _lumped(robot, index)}
    if masses[top] >= FRAME * sum(masses.values()):
        return top
    return max(masses, key=lambda name: masses[name])


def _lumped(robot: Robot, index: int) -> list[str]:
    """Return the URDF links of one link."""
    return [name for name in _link_tags(robot.urdf) if robot.frames[name][0] == index]


@lru_cache(maxsize=1024)
def _described(text: str, name: str) -> Array:
    """Return the parameters of a link of a text; a running robot exports one text often."""
    parameters = inertial_of(_link_tags(text)[name])
    parameters.flags.writeable = False
    return parameters


@lru_cache(maxsize=2)
def _link_tags(text: str) -> Mapping[str, Element]:
    """Return the ``<link>`` of each name."""
    return {tag.get('name', ''): tag for tag in urdf_text.parse(text).iter('link')}


def _most(whole: Array, part: Array) -> float:
    """Return the greatest share of a part, below one, that a body can be without."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        inside = consistency_margin(whole - middle * part) > 0
        low, high = (middle, high) if inside else (low, middle)
    return low


def _rewritten(text: str, wanted: dict[str, Array]) -> str:
    """Return a text with some inertials replaced."""
    data = text.encode()
    places = _places(data)
    edits: list[tuple[int, int, bytes]] = []
    for name, parameters in wanted.items():
        opening, inertial = places[name]
        tag = _tag(parameters).encode()
        if inertial is not None:
            edits.append((*inertial, tag))
        elif data[opening[1] - 2 : opening[1]] == b'/>':
            edits.append((opening[1] - 2, opening[1], b'>' + tag + b'</link>'))
        else:
            edits.append((opening[1], opening[1], tag))
    for start, stop, tag in sorted(edits, reverse=True):
        data = data[:start] + tag + data[stop:]
    return data.decode()


def _tag(parameters: Array) -> str:
    """Return an inertial about the centre of mass in the axes of the link, to every digit."""
    center = np.eye(4)
    if parameters[0]:
        center[:3, 3] = -parameters[1:4] / parameters[0]
    central = parameters_of(inertia_seen_from(spatial_inertia(parameters), center))
    xyz = ' '.join(repr(float(-value)) for value in center[:3, 3])
    moments = ' '.join(
        f'{key}="{float(value)!r}"' for key, value in zip(MOMENTS, central[4:], strict=True)
    )
    return (
        f'<inertial><origin xyz="{xyz}" rpy="0 0 0"/><mass value="{float(parameters[0])!r}"/>'
        f'<inertia {moments}/></inertial>'
    )


@lru_cache(maxsize=2)
def _places(data: bytes) -> Mapping[str, _Place]:
    """Return where each link and its inertial stand."""
    parser = expat.ParserCreate('utf-8')
    path: list[str] = []
    found: dict[str, _Place] = {}
    current = ''

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal current
        path.append(tag)
        at = parser.CurrentByteIndex
        if path == ['robot', 'link']:
            current = attributes.get('name', '')
            found[current] = _Place((at, _tag_end(data, at)), None)
        elif path == ['robot', 'link', 'inertial']:
            found[current] = found[current]._replace(inertial=(at, _tag_end(data, at)))

    def end(tag: str) -> None:
        if path == ['robot', 'link', 'inertial']:
            begin = found[current].inertial
            assert begin is not None
            if data[begin[1] - 2 : begin[1]] != b'/>':
                stop = _tag_end(data, parser.CurrentByteIndex)
                found[current] = found[current]._replace(inertial=(begin[0], stop))
        path.pop()

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(data, True)
    return found


def _tag_end(data: bytes, start: int) -> int:
    """Return the position behind the tag that starts at a position."""
    quote = 0
    for k in range(start, len(data)):
        byte = data[k]
        if quote:
            quote = 0 if byte == quote else quote
        elif byte in b'"\'':
            quote = byte
        elif byte == ord('>'):
            return k + 1
    return len(data)
