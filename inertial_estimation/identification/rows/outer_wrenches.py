# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What pushes on a submodel from outside: FT sensors at its borders, known contacts [T 7.2]."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.rows.sparse_rows import Part
from inertial_estimation.identification.unknowns import FT_OFFSET, Unknowns
from inertial_estimation.model.link_motions import Poses, to_axes
from inertial_estimation.model.regressor import wrench_to_root
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.submodels import Submodel

Array = NDArray[np.float64]

COMPONENTS = tuple(term.value for term in FT_OFFSET)
"""Kinds of the rows of a wrench [N, Nm]."""


class Push(NamedTuple):
    """A wrench on a submodel from outside."""

    link: int
    """Link that it acts on."""
    wrench: Array
    """Shape (n, 6), about the submodel's root in its axes [N, Nm]."""
    offset: tuple[str, Array] | None
    """FT sensor, and how the wrench falls with its offset, shape (n, 6, 6); None: known."""


class Contact(NamedTuple):
    """A known wrench of the environment."""

    link: int
    """Link that it acts on."""
    L_H_C: Array
    """Pose of its frame there, shape (4, 4)."""
    wrench: Array
    """Shape (n, 6), about that frame's origin in its axes [N, Nm]."""


def border_sensors(submodel: Submodel) -> tuple[int, ...]:
    """Return the FT sensors at the borders of a submodel."""
    root = () if submodel.root_sensor < 0 else (submodel.root_sensor,)
    return (*root, *submodel.child_sensors)


def sensor_pushes(
    robot: Robot,
    submodel: Submodel,
    readings: Array,
    poses: Sequence[Poses],
    placed: Mapping[int, Poses],
    offsets: Container[str],
) -> list[Push]:
    """
    Return the wrenches on a submodel that its FT sensors read [T 4.17].

    readings (n, n_sensors, 6) [N, Nm].
    """
    found = []
    for s in border_sensors(submodel):
        sensor = robot.ft_sensors[s]
        # Child on parent, as seen from the parent's side.
        sign = float(sensor.direction)
        if s == submodel.root_sensor:
            link, sign = submodel.root, -sign
            root_H_child = placed[link]
        else:
            link = sensor.parent
            root_H_child = _after(placed[link], poses[sensor.child])
        root_H_sensor = fixed_at(root_H_child, sensor.child_H_sensor)
        slopes = None
        if sensor.name in offsets:
            eye = np.broadcast_to(np.eye(6), (len(readings), 6, 6))
            slopes = (sensor.name, sign * wrench_to_root(root_H_sensor, eye))
        wrench = sign * wrench_to_root(root_H_sensor, readings[:, s])
        found.append(Push(link, wrench, slopes))
    return found


def contact_pushes(
    submodel: Submodel, contacts: Iterable[Contact], placed: Mapping[int, Poses]
) -> list[Push]:
    """Return the known wrenches on a submodel."""
    return [
        Push(link, wrench_to_root(fixed_at(placed[link], L_H_C), wrench), None)
        for link, L_H_C, wrench in contacts
        if link in submodel.links
    ]


def pushed(unknowns: Unknowns, pushes: Iterable[Push], axis: Array) -> tuple[list[Part], Array]:
    """
    Return what wrenches from outside add to rows along an axis.

    axis (n, 6); returns y (n,).
    """
    parts, y = [], np.zeros(len(axis))
    for push in pushes:
        y += np.einsum('ni,ni->n', axis, push.wrench)
        if push.offset is not None:
            name, slopes = push.offset
            columns = unknowns.columns(f'{name}.{part}' for part in COMPONENTS)
            parts.append(Part(columns, np.einsum('ni,nik->kn', axis, slopes)))
    return parts, y


def pushed_component(
    unknowns: Unknowns, pushes: Iterable[Push], component: int, n: int
) -> tuple[list[Part], Array]:
    """
    Return what wrenches from outside add to rows of one of their components.

    Returns y (n,).
    """
    parts, y = [], np.zeros(n)
    for push in pushes:
        y += push.wrench[:, component]
        if push.offset is not None:
            name, slopes = push.offset
            columns = unknowns.columns(f'{name}.{part}' for part in COMPONENTS)
            parts.append(Part(columns, slopes[:, component].T))
    return parts, y


def fixed_at(pose: Poses, L_H_F: Array) -> Poses:
    """
    Return where a frame fixed to a link is.

    L_H_F (4, 4) [m].
    """
    return Poses(
        pose.rotations @ L_H_F[:3, :3],
        pose.origins + to_axes(pose.rotations, np.broadcast_to(L_H_F[:3, 3], pose.origins.shape)),
    )


def _after(pose: Poses, further: Poses) -> Poses:
    """Return the composition of two poses."""
    return Poses(
        pose.rotations @ further.rotations,
        pose.origins + to_axes(pose.rotations, further.origins),
    )
