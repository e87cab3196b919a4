# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Net wrenches of links and wrenches on a submodel from outside [T 4.9, 7.2-7.4].

The regressor is that of `model.regressor` for many samples, with samples last: operations run over
contiguous memory, and columns are taken out in LAPACK's order.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.equations.sparse_equations import Part
from inertial_estimation.identification.unknowns import FT_OFFSET, Unknowns
from inertial_estimation.model.link_motions import (
    Motion,
    Poses,
    link_motions,
    poses_in_parents,
    to_axes,
)
from inertial_estimation.model.regressor import poses_in_root, wrench_to_root
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.submodels import Submodel
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]

COMPONENTS = tuple(term.value for term in FT_OFFSET)
"""Kinds of wrench equations [N, Nm]."""
_INERTIA = ((0, 1, 3), (1, 2, 4), (3, 4, 5))
"""Index of each entry of an inertia tensor in Ixx, Ixy, Iyy, Ixz, Iyz, Izz."""


def wrench_columns(
    links: Sequence[int], placed: Mapping[int, Poses], motions: Sequence[Motion]
) -> Array:
    """Return the regressor of the net wrenches of links at the root, (6, 10 n_links, n)."""
    w, dw, a = (_samples_last(parts) for parts in zip(*(motions[k] for k in links), strict=True))
    R = _samples_last([placed[k].rotations for k in links])
    p = _samples_last([placed[k].origins for k in links])
    n = a.shape[-1]
    found = np.zeros((6, len(links), 10, n))
    forces, moments = (np.moveaxis(half, 1, 2) for half in (found[:3], found[3:]))
    forces[:, 0] = np.einsum('ijln,jln->iln', R, a)
    forces[:, 1:4] = _products(R, _hat(dw) + _hat_squared(w))
    moments[:, 1:4] = -_products(R, _hat(a))
    # From the origin of the link to that of the root.
    for row, (after, last) in enumerate(((1, 2), (2, 0), (0, 1))):
        moments[row, :4] += p[after] * forces[last, :4] - p[last] * forces[after, :4]
    moments[:, 4:] = _products(R, _of_inertia(dw) + _products(_hat(w), _of_inertia(w)))
    return found.reshape(6, 10 * len(links), n)


def _samples_last(parts: Sequence[Array]) -> Array:
    """Return an array for each link, (n, ...), as one of shape (..., n_links, n)."""
    stacked = np.array(parts)
    return np.ascontiguousarray(stacked.transpose(*range(2, stacked.ndim), 0, 1))


def _hat(v: Array) -> Array:
    """Return the matrices of cross products, shape (3, 3, n_links, n)."""
    found = np.zeros((3, *v.shape))
    found[0, 1], found[0, 2], found[1, 2] = -v[2], v[1], -v[0]
    found[1, 0], found[2, 0], found[2, 1] = v[2], -v[1], v[0]
    return found


def _hat_squared(v: Array) -> Array:
    """Return hat(v) hat(v) = v v' - |v|^2."""
    found: Array = v[:, None] * v
    squares = v * v
    for axis in range(3):
        found[axis, axis] = -squares[axis - 2] - squares[axis - 1]
    return found


def _of_inertia(v: Array) -> Array:
    """Return the matrices that give I v from the six entries of I, shape (3, 6, n_links, n)."""
    found = np.zeros((3, 6, *v.shape[1:]))
    for row, places in enumerate(_INERTIA):
        for column, place in enumerate(places):
            found[row, place] = v[column]
    return found


def _products(A: Array, B: Array) -> Array:
    return np.asarray(np.einsum('ijln,jkln->ikln', A, B))


class Push(NamedTuple):
    """A wrench on a submodel from outside."""

    link: int
    """Link that it acts on."""
    wrench: Array
    """Shape (n, 6), about the submodel's root in its axes [N, Nm]."""
    offset: tuple[str, Array] | None
    """FT sensor and derivative of the wrench by minus its offset, (n, 6, 6); None: known."""


class Contact(NamedTuple):
    """A known wrench of the environment."""

    link: int
    L_H_C: Array
    """Pose of its frame in the link, shape (4, 4)."""
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
    """Return the wrenches on a submodel by FT readings, (n, n_sensors, 6) [T 4.17]."""
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
            parent, further = placed[link], poses[sensor.child]
            root_H_child = Poses(
                parent.rotations @ further.rotations,
                parent.origins + to_axes(parent.rotations, further.origins),
            )
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


def pushed(
    unknowns: Unknowns, pushes: Iterable[Push], n: int, axis: Array | int
) -> tuple[list[Part], Array]:
    """Return columns and right-hand sides, (n,), along an axis, (n, 6), or of one component."""
    parts, y = [], np.zeros(n)
    for _, wrench, offset in pushes:
        is_component = isinstance(axis, int)
        y += wrench[:, axis] if is_component else np.einsum('ni,ni->n', axis, wrench)
        if offset is not None:
            name, slopes = offset
            columns = unknowns.columns(f'{name}.{part}' for part in COMPONENTS)
            values = slopes[:, axis].T if is_component else np.einsum('ni,nik->kn', axis, slopes)
            parts.append(Part(columns, values))
    return parts, y


def fixed_at(pose: Poses, L_H_F: Array) -> Poses:
    """Return the poses of a frame that is fixed to a link, L_H_F (4, 4)."""
    return Poses(
        pose.rotations @ L_H_F[:3, :3],
        pose.origins + to_axes(pose.rotations, np.broadcast_to(L_H_F[:3, 3], pose.origins.shape)),
    )


def with_readings(
    robot: Robot,
    samples: SampleBatch,
    parameters: Array,
    pushes: Mapping[str, Array] | None = None,
) -> SampleBatch:
    """
    Return samples with simulated FT readings, from the tips of the limbs inward.

    pushes: wrenches by link, (n, 6) in and about its frame [N, Nm].
    """
    names = [sensor.name for sensor in robot.ft_sensors]
    readings = np.zeros((len(samples), len(names), 6))
    poses = poses_in_parents(robot, samples.positions)
    motions = link_motions(robot, samples, poses)
    acting = [(robot.link_names.index(name), wrench) for name, wrench in (pushes or {}).items()]
    for submodel in reversed(robot.submodels):
        if submodel.root_sensor < 0:
            continue
        placed = poses_in_root(robot, submodel, poses)
        columns = wrench_columns(submodel.links, placed, motions)
        net = np.einsum('ckn,k->nc', columns, parameters[list(submodel.links)].reshape(-1))
        net -= sum(
            (wrench_to_root(placed[k], wrench) for k, wrench in acting if k in placed),
            start=np.zeros(6),
        )
        root = np.zeros((len(samples), 6, 6))
        for push in sensor_pushes(robot, submodel, readings, poses, placed, names):
            assert push.offset is not None
            if push.offset[0] == names[submodel.root_sensor]:
                root = push.offset[1]
            else:
                net -= push.wrench
        readings[:, submodel.root_sensor] = np.linalg.solve(root, net[..., None])[..., 0]
    return replace(samples, ft_readings=readings)
