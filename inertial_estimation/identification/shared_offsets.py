# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
FT offsets as unknowns of both submodels beside a sensor.

Each submodel is eliminated onto the offsets, and what the others determine of its own are further
equations of it. Its answer is then that of a joint fit of all submodels,

    minimise  sum over submodels of  1/2 |R x - rho|^2 + count * weight * distance to the prior

A distance that is not quadratic is developed about the answers, repeatedly until they agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information import Information
from inertial_estimation.identification.row_space import eliminated
from inertial_estimation.identification.unknowns import FT_OFFSET, Unknowns

Array = NDArray[np.float64]
Columns = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Submodel:
    """Equations of one submodel."""

    unknowns: Unknowns
    rows: Information
    """In units of their noise."""
    prior: Information | None


def determined_by_others(submodels: Sequence[Submodel]) -> list[Information | None]:
    """Return for each submodel what the others determine of its offsets."""
    shared = _shared_names([one.unknowns for one in submodels])
    kept = [_columns(one.unknowns, shared) for one in submodels]
    parts = [
        _onto(one, columns, shared) if len(columns) else None
        for one, columns in zip(submodels, kept, strict=True)
    ]
    found: list[Information | None] = []
    for k, (one, columns) in enumerate(zip(submodels, kept, strict=True)):
        others = [part for j, part in enumerate(parts) if j != k and part is not None]
        if not len(columns) or not others:
            found.append(None)
            continue
        mine = np.array([shared.index(one.unknowns.names[c]) for c in columns], dtype=np.intp)
        beyond = np.setdiff1d(np.arange(len(shared)), mine)
        left = eliminated(others[0].merge(*others[1:]), beyond)
        # The offsets are in the order of all, not in that of the submodel.
        found.append(_placed(left, columns[np.argsort(mine)], len(one.unknowns)))
    return found


def disagreement(submodels: Sequence[tuple[Unknowns, Array]]) -> float:
    """Return the largest difference of an offset between submodels, over the largest offset."""
    shared = _shared_names([unknowns for unknowns, _ in submodels])
    values: dict[str, list[float]] = {name: [] for name in shared}
    for unknowns, x in submodels:
        for column in _columns(unknowns, shared):
            values[unknowns.names[column]].append(float(x[column]))
    largest = max((abs(v) for some in values.values() for v in some), default=0.0)
    return max((max(v) - min(v) for v in values.values()), default=0.0) / max(1.0, largest)


def _shared_names(unknowns: Sequence[Unknowns]) -> list[str]:
    """Return the offsets that are unknowns of more than one submodel."""
    names = [str(extra) for one in unknowns for extra in one.extras if extra.term in FT_OFFSET]
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]


def _columns(unknowns: Unknowns, names: Sequence[str]) -> Columns:
    found = [k for k, name in enumerate(unknowns.names) if name in names]
    return np.array(found, dtype=np.intp)


def _onto(one: Submodel, columns: Columns, shared: Sequence[str]) -> Information:
    """Return what one submodel determines of all shared offsets."""
    rows = one.rows if one.prior is None else one.rows.merge(one.prior)
    left = eliminated(rows, np.setdiff1d(np.arange(rows.n), columns))
    places = [shared.index(one.unknowns.names[c]) for c in columns]
    return _placed(left, np.array(places, dtype=np.intp), len(shared))


def _placed(rows: Information, columns: Columns, n: int) -> Information:
    """Return equations of some of n unknowns; they count as none."""
    Y = np.zeros((rows.n, n))
    Y[:, columns] = rows.R
    return replace(Information.of(Y, rows.rho), count=0.0, energy=0.0)
