# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A URDF with other inertial parameters and all else unchanged.

A link of the robot may be several of the URDF, lumped at fixed or locked joints. The topmost one
takes the difference, or the heaviest one where the topmost is but a frame with next to no mass.
Where no body could be that difference, the others are made lighter, all by the same factor: each
keeps its shape, and what moves in other programs keeps a mass.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from xml.etree.ElementTree import Element
from xml.parsers import expat

import numpy as np
from scipy.linalg import eigh

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.model.inertia import (
    consistency_margin,
    inertia_complaint,
    inertia_seen_from,
    parameters_of,
    pseudo_inertia,
    spatial_inertia,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import inverse_pose
from inertial_estimation.model.urdf import MOMENTS, origin_pose, parse

FRAME_MASS_SHARE = 0.01
"""Share of the mass of a lump below which its topmost link is but a frame."""


def export_urdf(robot: Robot, parameters: Array) -> str:
    """
    Return the URDF of a robot with other inertial parameters.

    parameters (n_links, 10).
    """
    new = robot.with_parameters(parameters).parameters
    wanted: dict[str, Array] = {}
    for k in _changed(robot, new):
        if complaint := inertia_complaint(new[k]):
            raise ModelError(f"'{robot.link_names[k]}' {complaint}: nothing is exported")
        wanted |= _of_lump(robot, k, new[k])
    return _rewritten(robot.urdf, wanted) if wanted else robot.urdf


def lightened(robot: Robot, parameters: Array) -> dict[str, float]:
    """
    Return the links of the URDF that an export makes lighter without a measurement of them.

    parameters (n_links, 10).
    """
    found = {}
    for k in _changed(robot, parameters):
        others = _of_lump(robot, k, parameters[k])
        others.pop(_taker(robot, k))
        for name, own in others.items():
            before = _described(robot.urdf, name)
            largest = np.abs(before).argmax()
            found[name] = float(own[largest] / before[largest])
    return found


def _changed(robot: Robot, parameters: Array) -> list[int]:
    """Return the links with other parameters, (n_links, 10)."""
    return np.flatnonzero((parameters != robot.parameters).any(axis=1)).tolist()


def inertial_of(link: Element) -> Array:
    """Return the inertial parameters of one ``<link>`` by itself, (10,)."""
    inertial = link.find('inertial')
    if inertial is None:
        return np.zeros(10)
    mass, inertia = inertial.find('mass'), inertial.find('inertia')
    if mass is None or inertia is None:
        return np.zeros(10)
    moments = (float(inertia.get(key, '0')) for key in MOMENTS)
    central = np.array([float(mass.get('value', '0')), 0, 0, 0, *moments])
    pose = origin_pose(inertial, f"link '{link.get('name')}'")
    return parameters_of(inertia_seen_from(spatial_inertia(central), pose))


def _of_lump(robot: Robot, index: int, new: Array) -> dict[str, Array]:
    """Return the parameters of those URDF links of one link that get others."""
    taker = _taker(robot, index)
    L_H_taker = robot.frames[taker][1]
    rest = robot.parameters[index] - _seen_from(_described(robot.urdf, taker), L_H_taker)
    taker_H_L = inverse_pose(L_H_taker)
    if consistency_margin(new - rest) > 0:
        return {taker: _seen_from(new - rest, taker_H_L)}
    # Half of the most: the link that takes the rest is then as far inside what a body can be.
    most = 1.0 / eigh(pseudo_inertia(rest), pseudo_inertia(new), eigvals_only=True)[-1]
    share = float(most) / 2
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
    """Return the URDF link of one link that takes the new parameters."""
    top = robot.link_names[index]
    masses = {name: _described(robot.urdf, name)[0] for name in _lumped(robot, index)}
    if masses[top] >= FRAME_MASS_SHARE * sum(masses.values()):
        return top
    return max(masses, key=lambda name: masses[name])


def _lumped(robot: Robot, index: int) -> list[str]:
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
    return {tag.get('name', ''): tag for tag in parse(text).iter('link')}


def _rewritten(text: str, wanted: Mapping[str, Array]) -> str:
    """Return a text with some inertials replaced."""
    data = text.encode()
    edits: list[tuple[int, int, bytes]] = []
    parser = expat.ParserCreate('utf-8')
    path: list[str] = []
    link, inertial = '', (-1, -1)

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal link, inertial
        path.append(tag)
        if path == ['robot', 'link']:
            link, inertial = attributes.get('name', ''), (-1, -1)
        elif path == ['robot', 'link', 'inertial']:
            inertial = (parser.CurrentByteIndex, -1)

    def end(tag: str) -> None:
        nonlocal inertial
        at = parser.CurrentByteIndex
        if path == ['robot', 'link', 'inertial']:
            inertial = (inertial[0], data.index(b'>', at) + 1)
        elif path == ['robot', 'link'] and link in wanted:
            new = _tag(wanted[link]).encode()
            if inertial[0] >= 0:
                edits.append((*inertial, new))
            elif data.startswith(b'</link', at):
                edits.append((at, at, new))
            else:  # <link name="..."/>
                edits.append((at - 2, at, b'>' + new + b'</link>'))
        path.pop()

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(data, True)
    for begin, stop, new in reversed(edits):
        data = data[:begin] + new + data[stop:]
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
