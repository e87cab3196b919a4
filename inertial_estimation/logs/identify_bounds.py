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
from inertial_estimation.logs.setting_values import as_mapping

Array = NDArray[np.float64]

BOUNDS = ('mass', 'center_of_mass', 'ellipsoids', 'total_mass', 'extras')


def read_bounds(said: Mapping[str, Any], blocks: Iterable[Block]) -> dict[str, Bounds]:
    """Return the bounds of each submodel."""
    if all(value is None or value == {} for value in said.values()):
        return {}
    blocks = list(blocks)
    groups = {key: as_mapping(said.get(key) or {}, f'bounds.{key}') for key in BOUNDS[:3]}
    extras = as_mapping(said.get('extras') or {}, 'bounds.extras')
    total = said.get('total_mass')
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


def _masses(said: Mapping[str, Any], unknowns: Unknowns) -> Array | None:
    """Return the bounds of masses, (n_links, 2)."""
    ranges = {
        name: _positive(value, f'bounds.mass.{name}')
        for name, value in said.items()
        if name in unknowns.links
    }
    if not ranges:
        return None
    return np.array([ranges.get(link, (-np.inf, np.inf)) for link in unknowns.links])


def _boxes(said: Mapping[str, Any], unknowns: Unknowns) -> Array | None:
    """Return the boxes of centres of mass, (n_links, 2, 3)."""
    if not any(name in unknowns.links for name in said):
        return None
    found = np.empty((len(unknowns.links), 2, 3))
    found[:, 0], found[:, 1] = -np.inf, np.inf
    for name, value in said.items():
        if name not in unknowns.links:
            continue
        where = f'bounds.center_of_mass.{name}'
        box = as_mapping(value, where)
        if set(box) != {'lower', 'upper'}:
            raise ConfigError(f"'{where}' holds {sorted(box)}, expected lower and upper")
        corners = [_numbers(box[key], 3, f'{where}.{key}') for key in ('lower', 'upper')]
        for axis, low, high in zip('xyz', *corners, strict=True):
            _require_order(low, high, f'{where} along {axis}')
        found[unknowns.links.index(name)] = corners
    return found


def _ellipsoids(said: Mapping[str, Any], unknowns: Unknowns) -> Array | None:
    """Return the ellipsoids that hold all mass, (n_links, 4, 4)."""
    if not any(name in unknowns.links for name in said):
        return None
    found = np.full((len(unknowns.links), 4, 4), np.nan)
    for name, value in said.items():
        if name in unknowns.links:
            found[unknowns.links.index(name)] = _ellipsoid(value, f'bounds.ellipsoids.{name}')
    return found


def _ellipsoid(said: object, where: str) -> Array:
    """Return the matrix of one ellipsoid."""
    if not isinstance(said, Mapping):
        rows = said if isinstance(said, list) and len(said) == 4 else [said]
        return _checked(np.array([_numbers(row, 4, where) for row in rows]), where)
    if set(said) != {'center', 'semi_axes'}:
        raise ConfigError(
            f"'{where}' holds {sorted(map(str, said))}, expected center and semi_axes [m], or "
            'four rows of four numbers'
        )
    center, axes = (
        np.array(_numbers(said[k], 3, f'{where}.{k}')) for k in ('center', 'semi_axes')
    )
    if not ((axes > 0.0) & np.isfinite(axes) & np.isfinite(center)).all():
        raise ConfigError(f"'{where}' is {said!r}, expected finite numbers and semi_axes above 0")
    # (x - center) in semi-axes has a length of one at most.
    to_ball = np.column_stack([np.diag(1.0 / axes), -center / axes])
    return np.asarray(np.diag([0.0, 0.0, 0.0, 1.0]) - to_ball.T @ to_ball)


def _checked(Q: Array, where: str) -> Array:
    """Return a matrix whose points inside are those of an ellipsoid."""
    if Q.shape != (4, 4) or not np.isfinite(Q).all() or not np.array_equal(Q, Q.T):
        raise ConfigError(f"'{where}' is no symmetric matrix of four rows of four finite numbers")
    # One direction that grows, three that shrink, and these fill the space of points.
    shrinks = bool((np.linalg.eigvalsh(Q[:3, :3]) < 0.0).all())
    if not shrinks or not np.linalg.eigvalsh(Q)[-1] > 0.0:
        raise ConfigError(
            f"'{where}' is no ellipsoid: its first three rows and columns must be negative "
            "definite, and somewhere inside [x; 1]' Q [x; 1] above 0"
        )
    return Q


def _total(said: Mapping[str, Any], name: str) -> Array | None:
    """Return the bounds of the sum of masses, (2,)."""
    return np.array(_positive(said[name], 'bounds.total_mass')) if name in said else None


def _extras(said: Mapping[str, Any], unknowns: Unknowns) -> Array | None:
    """Return the bounds of other unknowns, (n_extras, 2); one by its name goes before a term."""
    found = []
    for extra in unknowns.extras:
        name = next((n for n in (str(extra), extra.term.value) if n in said), None)
        bound = (-np.inf, np.inf) if name is None else _range(said[name], f'bounds.extras.{name}')
        found.append(bound)
    array = np.array(found).reshape(len(found), 2)
    return array if np.isfinite(array).any() else None


def _range(said: object, name: str) -> tuple[float, float]:
    """Return a least and a greatest value."""
    low, high = _numbers(said, 2, name)
    _require_order(low, high, name)
    return low, high


def _positive(said: object, name: str) -> tuple[float, float]:
    """Return a least and a greatest mass."""
    low, high = _range(said, name)
    if high <= 0:
        raise ConfigError(f"'{name}' ends at {high:g} kg, and no body has a mass like that")
    return low, high


def _numbers(said: object, size: int, name: str) -> list[float]:
    """Return some numbers, which may be infinite."""
    try:
        values = np.array(said, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.full(size, np.nan)
    if values.shape != (size,) or np.isnan(values).any():
        raise ConfigError(f"'{name}' is {said!r}, expected {size} numbers")
    return [float(value) for value in values]


def _require_order(low: float, high: float, name: str) -> None:
    """Raise unless a bound leaves something."""
    if not low < high:
        raise ConfigError(f"'{name}' leaves nothing between {low:g} and {high:g}")


def _require_known(kind: str, groups: Iterable[Mapping[str, Any]], known: list[str]) -> None:
    """Raise if a name is not known."""
    for group in groups:
        for name in group:
            if name not in known:
                raise NameNotFound(kind, str(name), known, "'bounds' names it")
