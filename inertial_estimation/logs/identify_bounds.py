# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What is known beforehand of links, joints and sensors, from the file of ``identify``.

    bounds:
      mass: {upper_arm: [1.0, 3.0], hand: [0.2, .inf]}               # of links [kg]
      center_of_mass: {hand: {lower: [-0.1, -0.1, 0], upper: [0.1, 0.1, 0.2]}}   # box [m]
      total_mass: [4.0, 6.0]               # of a submodel, or {submodel: [4.0, 6.0]} [kg]
      extras: {viscous: [0, .inf], elbow.coulomb: [0, 5]}  # a term of all joints, or one unknown
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.identification.problem import Bounds
from inertial_estimation.identification.rows.builder import Block
from inertial_estimation.identification.unknowns import Unknowns

Array = NDArray[np.float64]

BOUNDS = ('mass', 'center_of_mass', 'total_mass', 'extras')


def read_bounds(said: Mapping[str, Any], blocks: Iterable[Block]) -> dict[str, Bounds]:
    """
    Return the bounds of each submodel.

    Parameters
    ----------
    said : mapping
        What stands under ``bounds``.
    blocks : iterable of Block
        Whose links and other unknowns the bounds are of.

    Returns
    -------
    dict of str to Bounds
        By the name of the submodel; empty if nothing is said.

    Raises
    ------
    NameNotFound
        If no link, submodel or unknown has a name.
    ConfigError
        If a bound cannot be read, or leaves nothing.

    """
    if not said:
        return {}
    blocks = list(blocks)
    groups = {key: _mapping(said.get(key) or {}, f'bounds.{key}') for key in BOUNDS[:2]}
    extras = _mapping(said.get('extras') or {}, 'bounds.extras')
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
        box = _mapping(value, where)
        if set(box) != {'lower', 'upper'}:
            raise ConfigError(f"'{where}' holds {sorted(box)}, expected lower and upper")
        corners = [_numbers(box[key], 3, f'{where}.{key}') for key in ('lower', 'upper')]
        for axis, low, high in zip('xyz', *corners, strict=True):
            _require_order(low, high, f'{where} along {axis}')
        found[unknowns.links.index(name)] = corners
    return found


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


def _mapping(said: object, name: str) -> Mapping[str, Any]:
    """Return what must be a mapping."""
    if not isinstance(said, Mapping):
        raise ConfigError(f"'{name}' is {said!r}, expected names and values below it")
    return said


def _require_known(kind: str, groups: Iterable[Mapping[str, Any]], known: list[str]) -> None:
    """Raise if a name is not known."""
    for group in groups:
        for name in group:
            if name not in known:
                raise NameNotFound(kind, str(name), known, "'bounds' names it")
