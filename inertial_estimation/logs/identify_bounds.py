# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What is known beforehand of links, joints and sensors, from the file of ``identify``.

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
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.identification.equations.builder import Block
from inertial_estimation.identification.problem import Bounds
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.logs.setting_values import as_box, as_mapping, as_numbers, require_order

Array = NDArray[np.float64]

CORNERS = ('lower', 'upper')
BOUNDS = ('mass', 'center_of_mass', 'ellipsoids', 'total_mass', 'extras')


def read_bounds(entries: Mapping[str, Any], blocks: Iterable[Block]) -> dict[str, Bounds]:
    """Return the bounds of each submodel."""
    if all(value is None or value == {} for value in entries.values()):
        return {}
    blocks = list(blocks)
    groups = {key: as_mapping(entries.get(key) or {}, f'bounds.{key}') for key in BOUNDS[:3]}
    extras = as_mapping(entries.get('extras') or {}, 'bounds.extras')
    total = entries.get('total_mass')
    totals = total if isinstance(total, Mapping) else dict.fromkeys(
        [block.submodel.name for block in blocks] if total is not None else [], total
    )  # fmt: skip
    _require_known('link', groups.values(), [n for b in blocks for n in b.unknowns.links])
    _require_known('submodel', [totals], [block.submodel.name for block in blocks])
    names = [str(extra) for block in blocks for extra in block.unknowns.extras]
    terms = [extra.term.value for block in blocks for extra in block.unknowns.extras]
    _require_known('unknown', [extras], [*names, *dict.fromkeys(terms)])
    return {
        block.submodel.name: Bounds(
            mass=_masses(groups['mass'], block.unknowns),
            center_of_mass=_boxes(groups['center_of_mass'], block.unknowns),
            ellipsoids=_ellipsoids(groups['ellipsoids'], block.unknowns),
            total_mass=_total(totals, block.submodel.name),
            extras=_extras(extras, block.unknowns),
        )
        for block in blocks
    }


def _masses(entries: Mapping[str, Any], unknowns: Unknowns) -> Array | None:
    """Return the bounds of masses, (n_links, 2)."""
    ranges = {
        name: _positive(value, f'bounds.mass.{name}')
        for name, value in entries.items()
        if name in unknowns.links
    }
    if not ranges:
        return None
    return np.array([ranges.get(link, (-np.inf, np.inf)) for link in unknowns.links])


def _boxes(entries: Mapping[str, Any], unknowns: Unknowns) -> Array | None:
    """Return the boxes of centres of mass, (n_links, 2, 3)."""
    if not any(name in unknowns.links for name in entries):
        return None
    found = np.empty((len(unknowns.links), 2, 3))
    found[:, 0], found[:, 1] = -np.inf, np.inf
    for name, value in entries.items():
        if name not in unknowns.links:
            continue
        where = f'bounds.center_of_mass.{name}'
        box = as_mapping(value, where, CORNERS, CORNERS)
        corners = [box[key] for key in CORNERS]
        found[unknowns.links.index(name)] = as_box(corners, where, infinite=True)
    return found


def _ellipsoids(entries: Mapping[str, Any], unknowns: Unknowns) -> Array | None:
    """Return the ellipsoids that hold all mass, (n_links, 4, 4)."""
    if not any(name in unknowns.links for name in entries):
        return None
    found = np.full((len(unknowns.links), 4, 4), np.nan)
    for name, value in entries.items():
        if name in unknowns.links:
            found[unknowns.links.index(name)] = _ellipsoid(value, f'bounds.ellipsoids.{name}')
    return found


def _ellipsoid(entry: object, where: str) -> Array:
    """Return the matrix of one ellipsoid."""
    if not isinstance(entry, Mapping):
        return _checked(as_numbers(entry, where, (4, 4)), where)
    keys = ('center', 'semi_axes')
    as_mapping(entry, where, keys, keys)
    center, axes = (as_numbers(entry[key], f'{where}.{key}', (3,)) for key in keys)
    if not (axes > 0.0).all():
        raise ConfigError(f"'{where}' is {entry!r}, expected semi_axes above 0")
    # (x - center) in semi-axes has a length of one at most.
    to_ball = np.column_stack([np.diag(1.0 / axes), -center / axes])
    return np.asarray(np.diag([0.0, 0.0, 0.0, 1.0]) - to_ball.T @ to_ball)


def _checked(Q: Array, where: str) -> Array:
    """Return a matrix whose points inside are those of an ellipsoid."""
    if not np.array_equal(Q, Q.T):
        raise ConfigError(f"'{where}' is no symmetric matrix")
    # One direction that grows, three that shrink, and these fill the space of points.
    shrinks = bool((np.linalg.eigvalsh(Q[:3, :3]) < 0.0).all())
    if not shrinks or not np.linalg.eigvalsh(Q)[-1] > 0.0:
        raise ConfigError(
            f"'{where}' is no ellipsoid: its first three rows and columns must be negative "
            "definite, and somewhere inside [x; 1]' Q [x; 1] above 0"
        )
    return Q


def _total(entries: Mapping[str, Any], name: str) -> Array | None:
    """Return the bounds of the sum of masses, (2,)."""
    return np.array(_positive(entries[name], 'bounds.total_mass')) if name in entries else None


def _extras(entries: Mapping[str, Any], unknowns: Unknowns) -> Array | None:
    """Return the bounds of other unknowns, (n_extras, 2); one by its name goes before a term."""
    found = []
    for extra in unknowns.extras:
        name = next((n for n in (str(extra), extra.term.value) if n in entries), None)
        bound = (
            (-np.inf, np.inf) if name is None else _range(entries[name], f'bounds.extras.{name}')
        )
        found.append(bound)
    array = np.array(found).reshape(len(found), 2)
    return array if np.isfinite(array).any() else None


def _range(entry: object, name: str) -> tuple[float, float]:
    """Return a least and a greatest value."""
    low, high = as_numbers(entry, name, (2,), infinite=True).tolist()
    require_order(low, high, name)
    return low, high


def _positive(entry: object, name: str) -> tuple[float, float]:
    """Return a least and a greatest mass."""
    low, high = _range(entry, name)
    if high <= 0:
        raise ConfigError(f"'{name}' ends at {high:g} kg, and no body has a mass like that")
    return low, high


def _require_known(kind: str, groups: Iterable[Mapping[str, Any]], known: list[str]) -> None:
    """Raise if a name is not known."""
    for group in groups:
        for name in group:
            if name not in known:
                raise NameNotFound(kind, str(name), known, "'bounds' names it")
