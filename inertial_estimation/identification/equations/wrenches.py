# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Sparse equations, net wrenches of links, and wrenches on a submodel [T 4.9, 7.2-7.4].

The regressor is that of `model.regressor` for many samples, with samples last: operations run over
contiguous memory, and columns are taken out in LAPACK's order.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.identification.unknowns import FT_OFFSET, Unknowns
from inertial_estimation.model.link_motions import Motion, Poses, to_axes
from inertial_estimation.model.regressor import wrench_to_root
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.tree import Submodel

COMPONENTS = tuple(term.value for term in FT_OFFSET)
"""Kinds of wrench equations [N, Nm]."""
EFFORT = 'effort '
"""Prefix of the kinds of effort equations."""
_INERTIA = ((0, 1, 3), (1, 2, 4), (3, 4, 5))
"""Index of each entry of an inertia tensor in Ixx, Ixy, Iyy, Ixz, Iyz, Izz."""


class Part(NamedTuple):
    """Some columns of a regressor."""

    columns: Indices
    """Shape (k,)."""
    values: Array
    """Shape (k, n): samples last."""


class SparseEquations(NamedTuple):
    """Equations ``Y x = y`` of n samples; a column is in one part, or zero."""

    n_unknowns: int
    parts: tuple[Part, ...]
    y: Array
    """Shape (n,)."""
    usable: Mask
    """Samples that may be used if they hold numbers, shape (n,)."""

    def dense(self, columns: Indices | None = None) -> Array:
        """Return [Y y] of some columns or all, (n, k + 1), NaN where it is not usable."""
        columns = np.arange(self.n_unknowns) if columns is None else columns
        places = np.full(self.n_unknowns, -1)
        places[columns] = np.arange(len(columns))
        transposed = np.zeros((len(columns) + 1, len(self.y)))
        for part in self.parts:
            to = places[part.columns]
            kept = to >= 0
            transposed[to[kept]] = part.values[kept]
        transposed[-1] = np.where(self.usable, self.y, np.nan)
        return transposed.T

    def system(self, columns: Indices | None = None) -> tuple[Array, Mask]:
        """Return [Y y] of usable samples, (m, k + 1) in LAPACK's order, and their mask, (n,)."""
        transposed = self.dense(columns).T
        # The sum of a row is finite where all of it is.
        good = np.isfinite(transposed.sum(axis=0))
        if not good.all():
            transposed = transposed[:, good]
        return transposed.T, good

    def residuals(self, x: Array) -> Array:
        """Return Y x - y, (n,)."""
        found = np.where(self.usable, -self.y, np.nan)
        for part in self.parts:
            found += x[part.columns] @ part.values
        return found


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
    forces[:, 1:4] = _products(R, _hat(dw) + _products(_hat(w), _hat(w)))
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


def _of_inertia(v: Array) -> Array:
    """Return the matrices that give I v from the six entries of I, shape (3, 6, n_links, n)."""
    found = np.zeros((3, 6, *v.shape[1:]))
    for row, places in enumerate(_INERTIA):
        for column, place in enumerate(places):
            found[row, place] = v[column]
    return found


def _products(A: Array, B: Array) -> Array:
    """Return A B of each link and sample."""
    return np.asarray(np.einsum('ijln,jkln->ikln', A, B))


class Load(NamedTuple):
    """A wrench on a submodel from outside: on the right-hand side, and columns of unknowns."""

    link: int
    """Link that it acts on."""
    wrench: Array
    """Known part, about the submodel's root in its axes, shape (n, 6) [N, Nm]."""
    names: tuple[str, ...] = ()
    """Of unknowns."""
    slopes: Array | None = None
    """Regressor of these, shape (6, k, n)."""

    def along(self, unknowns: Unknowns, axis: Array | int) -> tuple[list[Part], Array]:
        """Return columns and known part, (n,), along an axis, (n, 6), or of one component."""
        is_component = isinstance(axis, int)
        known = self.wrench[:, axis] if is_component else np.einsum('ni,ni->n', axis, self.wrench)
        if self.slopes is None:
            return [], known
        s = self.slopes[axis] if is_component else np.einsum('ni,ikn->kn', axis, self.slopes)
        return [Part(unknowns.columns(self.names), s)], known


def sensor_loads(
    robot: Robot,
    submodel: Submodel,
    readings: Array,
    poses: Sequence[Poses],
    placed: Mapping[int, Poses],
    offsets: Container[str],
) -> list[Load]:
    """Return the wrenches on a submodel by FT readings, (n, n_sensors, 6) [T 4.19, 4.20]."""
    found = []
    for s in submodel.sensors:
        sensor = robot.ft_sensors[s]
        # Child on parent, as seen from the parent's side.
        link, sign = sensor.parent, float(sensor.direction)
        if s == submodel.root_sensor:
            link, sign = submodel.root, -sign
            child = placed[link]
        else:
            R, p = placed[link].rotations, placed[link].origins
            further = poses[sensor.child]
            child = Poses(R @ further.rotations, p + to_axes(R, further.origins))
        root_H_sensor = fixed_at(child, sensor.child_H_sensor)
        load = Load(link, sign * wrench_to_root(root_H_sensor, readings[:, s]))
        if sensor.name in offsets:
            eye = np.broadcast_to(np.eye(6), (len(readings), 6, 6))
            slopes = sign * wrench_to_root(root_H_sensor, eye)
            names = tuple(f'{sensor.name}.{part}' for part in COMPONENTS)
            load = load._replace(names=names, slopes=slopes.transpose(1, 2, 0))
        found.append(load)
    return found


def fixed_at(pose: Poses, L_H_F: Array) -> Poses:
    """Return the poses of a frame that is fixed to a link, L_H_F (4, 4)."""
    R, p = L_H_F[:3, :3], np.broadcast_to(L_H_F[:3, 3], pose.origins.shape)
    return Poses(pose.rotations @ R, pose.origins + to_axes(pose.rotations, p))
