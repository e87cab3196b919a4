# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Bounds of links, joints and sensors that are known beforehand, from the file of ``identify``.

    bounds:
      mass: {upper_arm: [1.0, 3.0], hand: [0.2, .inf]}               # of links [kg]
      center_of_mass: {hand: {lower: [-0.1, -0.1, 0], upper: [0.1, 0.1, 0.2]}}   # box [m]
      ellipsoids:                          # that hold all mass of a link, in its axes [m]
        hand: {center: [0, 0, 0.1], semi_axes: [0.1, 0.1, 0.2]}
        upper_arm: [[-25, 0, 0, 0], [0, -25, 0, 0], [0, 0, -4, 0], [0, 0, 0, 1]]   # see below
      total_mass: [4.0, 6.0]               # of a submodel, or {submodel: [4.0, 6.0]} [kg]
      extras: {viscous: [0, .inf], elbow.coulomb: [0, 5]}  # a term of all joints, or one unknown

Of four rows of four numbers Q, the points x with ``[x; 1]' Q [x; 1] >= 0`` are inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.identification.equations.builder import Block
from inertial_estimation.identification.problem import Bounds
from inertial_estimation.logs.setting_values import (
    box,
    each,
    interval,
    numbers,
    one_or_each,
    record,
)


def _mass(value: object, name: str) -> Array:
    """Read a least and a greatest mass."""
    found = interval(value, name)
    if found[1] <= 0.0:
        raise ConfigError(f"'{name}' ends at {found[1]:g} kg, and no body has a mass like that")
    return found


def _corners(value: object, name: str) -> Array:
    """Read a box."""
    corners = dict.fromkeys(('lower', 'upper'), numbers((3,), infinite=True))
    body = record(corners, corners)(value, name)
    return box([body[key] for key in corners], name, infinite=True)


def _ellipsoid(value: object, name: str) -> Array:
    """Read an ellipsoid as the matrix Q, (4, 4)."""
    if isinstance(value, Mapping):
        keys = dict.fromkeys(('center', 'semi_axes'), numbers((3,)))
        center, axes = (record(keys, keys)(value, name)[key] for key in keys)
        if not (axes > 0.0).all():
            raise ConfigError(f"'{name}.semi_axes' is {axes.tolist()}, expected numbers above 0")
        # (x - center) in semi-axes has a length of one at most.
        to_ball = np.column_stack([np.diag(1.0 / axes), -center / axes])
        return np.asarray(np.diag([0.0, 0.0, 0.0, 1.0]) - to_ball.T @ to_ball)
    Q: Array = numbers((4, 4))(value, name)
    # One direction that grows, three that shrink, and these fill the space of points.
    shrinks = bool((np.linalg.eigvalsh(Q[:3, :3]) < 0.0).all())
    if not (np.array_equal(Q, Q.T) and shrinks and np.linalg.eigvalsh(Q)[-1] > 0.0):
        raise ConfigError(
            f"'{name}' is no ellipsoid: its first three rows and columns must be negative "
            "definite, and somewhere inside [x; 1]' Q [x; 1] above 0"
        )
    return Q


BOUNDS = {
    'mass': each(_mass),
    'center_of_mass': each(_corners),
    'ellipsoids': each(_ellipsoid),
    'total_mass': one_or_each(_mass),
    'extras': each(interval),
}


def submodel_bounds(bounds: Mapping[str, Any], blocks: Iterable[Block]) -> dict[str, Bounds]:
    """Return the bounds of each submodel, of values that `BOUNDS` read."""
    if not any(len(value) for value in bounds.values()):
        return {}
    blocks = list(blocks)
    totals, extras = bounds.get('total_mass', {}), bounds.get('extras', {})
    submodels = [block.submodel.name for block in blocks]
    if not isinstance(totals, Mapping):
        totals = dict.fromkeys(submodels, totals)
    links = [name for block in blocks for name in block.unknowns.links]
    unknowns = [extra for block in blocks for extra in block.unknowns.extras]
    terms = dict.fromkeys(extra.term.value for extra in unknowns)
    of_links = ('mass', 'center_of_mass', 'ellipsoids')
    for kind, named, known in (
        *(('link', bounds.get(key, {}), links) for key in of_links),
        ('submodel', totals, submodels),
        ('unknown', extras, [*map(str, unknowns), *terms]),
    ):
        for name in named:
            if name not in known:
                raise NameNotFound(kind, name, known, "'bounds' names it")

    def stacked(names: Iterable[str], given: Mapping[str, Array], free: Any) -> Array | None:
        names = list(names)
        if not set(names) & set(given):
            return None
        return np.array([given.get(name, free) for name in names], dtype=np.float64)

    no_mass, no_box = (-np.inf, np.inf), np.array([[-np.inf] * 3, [np.inf] * 3])
    found = {}
    for block in blocks:
        own = block.unknowns
        # An unknown by its own name goes before its term.
        named = {str(e): extras.get(str(e), extras.get(e.term.value, no_mass)) for e in own.extras}
        bounded = any(np.isfinite(one).any() for one in named.values())
        found[block.submodel.name] = Bounds(
            mass=stacked(own.links, bounds.get('mass', {}), no_mass),
            center_of_mass=stacked(own.links, bounds.get('center_of_mass', {}), no_box),
            ellipsoids=stacked(own.links, bounds.get('ellipsoids', {}), np.full((4, 4), np.nan)),
            total_mass=totals.get(block.submodel.name),
            extras=stacked(named, named, no_mass) if bounded else None,
        )
    return found
