# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Offsets of FT sensors, which are unknowns of both submodels that the sensor is between.

All else that submodels do not know is their own. So each is eliminated onto the offsets, and what
the others say of those of a submodel are further rows of it: its answer is then that of a joint
fit of all submodels,

    minimise  sum over submodels of  1/2 |R x - rho|^2 + count * weight * distance to the prior

and so are the offsets, of which there is one value. The distance has to be quadratic to be
eliminated. One that is not is developed about the answers, which is repeated until they agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information.elimination import eliminated
from inertial_estimation.identification.information.information import Information
from inertial_estimation.identification.unknowns import FT_OFFSET, Unknowns

Array = NDArray[np.float64]
Columns = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Submodel:
    """What is known of one submodel."""

    unknowns: Unknowns
    rows: Information
    """Its own, in units of their noise."""
    prior: Information | None
    """Rows of its prior against the sum of squares of these, or none."""


def shared_names(unknowns: Sequence[Unknowns]) -> list[str]:
    """Return the offsets that are unknowns of more than one submodel."""
    names = [str(extra) for one in unknowns for extra in one.extras if extra.term in FT_OFFSET]
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]


def told_by_others(submodels: Sequence[Submodel]) -> list[Information | None]:
    """Return for each submodel what the others say of its offsets."""
    shared = shared_names([one.unknowns for one in submodels])
    kept = [_columns(one.unknowns, shared) for one in submodels]
    said = [
        _onto(one, columns, shared) if len(columns) else None
        for one, columns in zip(submodels, kept, strict=True)
    ]
    found: list[Information | None] = []
    for k, (one, columns) in enumerate(zip(submodels, kept, strict=True)):
        others = [part for j, part in enumerate(said) if j != k and part is not None]
        if not len(columns) or not others:
            found.append(None)
            continue
        names = [one.unknowns.names[c] for c in columns]
        mine = np.array([shared.index(name) for name in names], dtype=np.intp)
        together = others[0].merge(*others[1:])
        beyond = np.setdiff1d(np.arange(len(shared)), mine)
        left = eliminated(together, beyond)
        # What is left has the offsets in the order of all, not in that of the submodel.
        order = columns[np.argsort(mine)]
        found.append(_placed(left, order, len(one.unknowns)))
    return found


def disagreement(submodels: Sequence[tuple[Unknowns, Array]]) -> float:
    """Return by how much values of one offset differ between submodels."""
    shared = shared_names([unknowns for unknowns, _ in submodels])
    values: dict[str, list[float]] = {name: [] for name in shared}
    for unknowns, x in submodels:
        for column in _columns(unknowns, shared):
            values[unknowns.names[column]].append(float(x[column]))
    largest = max((abs(v) for some in values.values() for v in some), default=0.0)
    return max((max(v) - min(v) for v in values.values()), default=0.0) / max(1.0, largest)


def _columns(unknowns: Unknowns, names: Sequence[str]) -> Columns:
    """Return which unknowns have one of some names."""
    extras = [k for k, name in enumerate(unknowns.names) if name in names]
    return np.array(extras, dtype=np.intp)


def _onto(one: Submodel, columns: Columns, shared: Sequence[str]) -> Information:
    """Return what one submodel says of all shared offsets."""
    rows = one.rows if one.prior is None else one.rows.merge(one.prior)
    left = eliminated(rows, np.setdiff1d(np.arange(rows.n), columns))
    places = [shared.index(one.unknowns.names[c]) for c in columns]
    return _placed(left, np.array(places, dtype=np.intp), len(shared))


def _placed(rows: Information, columns: Columns, n: int) -> Information:
    """Return rows of n unknowns of which they hold some; they count as none."""
    Y = np.zeros((rows.n, n))
    Y[:, columns] = rows.R
    return replace(Information.of(Y, rows.rho), count=0.0, energy=0.0)
