# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Offsets of FT sensors that go with bodies, and how sure they are.

A refit finds offsets together with all bodies. Where rows tell too little of a body it is not
told, and who uses the offsets uses the description beside them: an offset that was found with
another body is then off by the difference of the two weights. So offsets are those that fit the
rows best beside the bodies that are used, and of two submodels beside a sensor the outer one says
it if it has rows: an arm is a part of few that its one sensor must fit, told or not, while a trunk
has the errors of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information.elimination import eliminated
from inertial_estimation.identification.information.information import Information
from inertial_estimation.identification.information.row_space import RowSpace
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.recursion.knowledge import OFFSET_SIZES, Knowledge

Array = NDArray[np.float64]


INNER = 1e-3
"""Weight of the rows of a submodel, over that of those one sensor further out."""
MOST = 3
"""Sensors further in from which on weights are alike: smaller ones would pass for round-off."""


@one_thread()
def fitted_offsets(known: Sequence[Knowledge], bodies: Mapping[str, Array]) -> dict[str, float]:
    """
    Return the offsets that fit bodies.

    bodies (n_links, 10).
    """
    names = tuple(dict.fromkeys(name for one in known for name in one.offset_names))
    if not names:
        return {}
    rows, depths = Information.empty(len(names)), _depths(known)
    for one, depth in zip(known, depths, strict=True):
        if len(one.offsets):
            weight = INNER ** min(max(depths) - depth, MOST)
            placed, right = _rows_beside(one, bodies[one.block.submodel.name], names)
            rows = rows.add(weight * placed, weight * right)
    return dict(zip(names, RowSpace.of(rows.R).solve(rows.rho).tolist(), strict=True))


def _depths(known: Sequence[Knowledge]) -> list[int]:
    """Return how many sensors lie between each submodel and the innermost one that it knows."""
    depths: list[int] = []
    beside: dict[str, int] = {}
    for one in known:
        depths.append(
            max((beside[name] + 1 for name in one.offset_names if name in beside), default=0)
        )
        for name in one.offset_names:
            beside.setdefault(name, depths[-1])
    return depths


def _rows_beside(one: Knowledge, bodies: Array, names: Sequence[str]) -> tuple[Array, Array]:
    """Return rows of offsets beside the bodies of a submodel."""
    information, n = one.drawn, one.block.unknowns.n_inertial
    assert information is not None
    rest = Information.of(
        information.R[:, n:], information.rho - information.R[:, :n] @ bodies.reshape(-1)
    )
    own = one.offsets - n
    left = eliminated(rest, np.setdiff1d(np.arange(rest.n), own))
    placed = np.zeros((left.n, len(names)))
    placed[:, [names.index(name) for name in one.offset_names]] = left.R
    return placed, left.rho


@one_thread()
def offset_deviations(known: Sequence[Knowledge], names: Sequence[str]) -> dict[str, float]:
    """
    Return how sure offsets are, beside bodies that may be off by as much as they may well be.
    """
    rows = Information.empty(len(names))
    for one in known:
        if not len(one.offsets):
            continue
        assert one.told is not None
        own = [names.index(name) for name in one.offset_names]
        left = eliminated(one.told.merge(one.loose_prior()), one.inner)
        placed = np.zeros((left.n + len(own), len(names)))
        placed[: left.n, own] = left.R
        placed[np.arange(left.n, len(placed)), own] = 1.0 / one.offset_scales(*OFFSET_SIZES)
        rows = rows.add(placed, np.zeros(len(placed)))
    if not names:
        return {}
    root = np.linalg.inv(rows.R)
    return dict(zip(names, np.linalg.norm(root, axis=1).tolist(), strict=True))
