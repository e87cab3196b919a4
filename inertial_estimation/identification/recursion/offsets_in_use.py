# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Offsets of FT sensors that go with bodies, and how sure they are.

A refit finds offsets together with all bodies. Where rows tell too little of a body it is not
told, and who uses the offsets uses the description beside them: an offset that was found with
another body is then off by the difference of the two weights. So offsets are those that fit the
rows best beside the bodies that are used. Where a submodel is told its rows say what offsets it
has, whatever the description of its neighbour does to those of that one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information.elimination import eliminated
from inertial_estimation.identification.information.information import Information
from inertial_estimation.identification.information.row_space import RowSpace
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.recursion.knowledge import OFFSET_SIZES, Knowledge

Array = NDArray[np.float64]


@one_thread()
def fitted_offsets(
    known: Sequence[Knowledge], refitted: Collection[str], bodies: Mapping[str, Array]
) -> dict[str, float]:
    """
    Return the offsets that fit bodies.

    Parameters
    ----------
    known : sequence of Knowledge
        Those that have rows in units of their noise.
    refitted : collection of str
        Submodels whose bodies are told; the others are as described.
    bodies : mapping of str to ndarray, shape (n_links, 10)
        That are used, by submodel.

    Returns
    -------
    dict of str to float
        By the names of their columns [N, Nm].

    """
    told = [one for one in known if one.block.submodel.name in refitted]
    others = [one for one in known if one.block.submodel.name not in refitted]
    fitted: dict[str, float] = {}
    for group in (told, others):
        names = [name for one in group for name in one.offset_names if name not in fitted]
        names = list(dict.fromkeys(names))
        rows = Information.empty(len(names))
        for one in group:
            if set(one.offset_names) & set(names):
                rows = rows.add(*_rows_beside(one, bodies[one.block.submodel.name], names, fitted))
        fitted |= dict(zip(names, RowSpace.of(rows.R).solve(rows.rho).tolist(), strict=True))
    return fitted


def _rows_beside(
    one: Knowledge, bodies: Array, names: Sequence[str], fitted: Mapping[str, float]
) -> tuple[Array, Array]:
    """Return rows of some offsets beside bodies and the offsets that are known by now."""
    information, n = one.drawn, one.block.unknowns.n_inertial
    assert information is not None
    x = np.zeros(information.n)
    x[:n] = bodies.reshape(-1)
    x[one.offsets] = [0.0 if name in names else fitted[name] for name in one.offset_names]
    rest = Information.of(information.R[:, n:], information.rho - information.R @ x)
    own = one.offsets - n
    left = eliminated(rest, np.setdiff1d(np.arange(rest.n), own))
    free = [k for k, name in enumerate(one.offset_names) if name in names]
    placed = np.zeros((left.n, len(names)))
    placed[:, [names.index(one.offset_names[k]) for k in free]] = left.R[:, free]
    return placed, left.rho


@one_thread()
def offset_deviations(known: Sequence[Knowledge], names: Sequence[str]) -> dict[str, float]:
    """
    Return how sure offsets are, beside bodies that may be off by as much as they may well be.

    Parameters
    ----------
    known : sequence of Knowledge
        Those that have rows in units of their noise.
    names : sequence of str
        Of the columns of the offsets.

    Returns
    -------
    dict of str to float
        Standard deviations [N, Nm]. Errors that all rows share are not in them. Of an offset that
        rows do not tell it is about the one of `OFFSET_SIZES`, or that of a body that passes for
        it.

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
