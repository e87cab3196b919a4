# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Offsets of FT sensors that go with the bodies that are told.

A refit finds offsets together with all bodies. Where rows tell too little of a body it is not
told, and who uses the offsets uses the description beside them: an offset that was found with
another body is then off by the difference of the two weights. So between submodels that are as
described, offsets are those that fit their rows best as they are. Where a neighbour is told, they
stay what they were found to be with it.
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
def offsets_in_use(
    known: Sequence[Knowledge], refitted: Collection[str], found: Mapping[str, float]
) -> dict[str, float]:
    """
    Return the offsets that fit what is told of bodies.

    Parameters
    ----------
    known : sequence of Knowledge
        Those that have rows in units of their noise.
    refitted : collection of str
        Submodels whose bodies are told; the others are as described.
    found : mapping of str to float
        Offsets by the names of their columns, found with all bodies [N, Nm].

    Returns
    -------
    dict of str to float
        By the same names, in the same order [N, Nm].

    """
    kept = {
        name for one in known if one.block.submodel.name in refitted for name in one.offset_names
    }
    names = [name for name in found if name not in kept]
    if not names:
        return dict(found)
    rows = Information.empty(len(names))
    for one in known:
        if set(one.offset_names) - kept:
            placed, right = _rows_as_described(one, names, found)
            rows = rows.add(placed, right)
    fitted = dict(zip(names, RowSpace.of(rows.R).solve(rows.rho).tolist(), strict=True))
    return {name: fitted.get(name, value) for name, value in found.items()}


def _rows_as_described(
    one: Knowledge, names: Sequence[str], found: Mapping[str, float]
) -> tuple[Array, Array]:
    """Return rows of some offsets, the bodies as described, the other offsets as found."""
    information, n = one.drawn, one.block.unknowns.n_inertial
    assert information is not None
    given = np.array([0.0 if name in names else found[name] for name in one.offset_names])
    x = np.zeros(information.n)
    x[:n], x[one.offsets] = one.prior.reshape(-1), given
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
