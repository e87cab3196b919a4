# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Named linear bounds of the unknowns [S 25-28; W]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.identification.problem import Bounds
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.inertia import pseudo_inertia


@dataclass(frozen=True, eq=False)
class LinearBounds:
    """Inequalities ``rows @ x >= limits`` on all unknowns."""

    rows: Array
    """Shape (k, n)."""
    limits: Array
    """Shape (k,)."""
    names: tuple[str, ...]
    values: Array
    """Of the quantities at the bounds, shape (k,); NaN: an ellipsoid."""

    @classmethod
    def of(cls, bounds: Bounds, unknowns: Unknowns) -> LinearBounds:
        """Return the finite bounds: x >= l and -x >= -u."""
        n, rows, limits, names, values = len(unknowns), [], [], [], []
        for name, columns, mass, pair in _quantities(bounds, unknowns):
            for value, sign, side in zip(pair, (1.0, -1.0), ('least', 'greatest'), strict=True):
                if np.isfinite(value):
                    row = np.zeros(n)
                    row[columns] = sign
                    if mass is not None:
                        row[mass] = -sign * value
                    rows.append(row)
                    limits.append(0.0 if mass is not None else sign * value)
                    names.append(f'{side} {name}')
                    values.append(value)
        for k, Q in enumerate(() if bounds.ellipsoids is None else bounds.ellipsoids):
            if np.isfinite(Q).all():
                row = np.zeros(n)
                row[10 * k : 10 * k + 10] = np.einsum('ij,pij->p', Q, pseudo_inertia(np.eye(10)))
                rows.append(row)
                limits.append(0.0)
                names.append(f'ellipsoid of {unknowns.links[k]}')
                values.append(np.nan)
        return cls(np.array(rows).reshape(-1, n), np.array(limits), tuple(names), np.array(values))

    def slack(self, x: Array) -> Array:
        """Return the slack of each bound, positive inside, (k,); unknowns (n,)."""
        return np.asarray(self.rows @ x - self.limits)


def _quantities(
    bounds: Bounds, unknowns: Unknowns
) -> Iterator[tuple[str, int | slice, int | None, Array]]:
    """Yield name, columns, column of the mass that it is divided by, and limits."""
    if bounds.mass is not None:
        for k, pair in enumerate(bounds.mass):
            yield f'mass of {unknowns.links[k]}', 10 * k, None, pair
    if bounds.center_of_mass is not None:
        for k, box in enumerate(bounds.center_of_mass):
            for axis, pair in enumerate(box.T):
                name = f'{"xyz"[axis]} of the centre of mass of {unknowns.links[k]}'
                yield name, 10 * k + 1 + axis, 10 * k, pair
    if bounds.total_mass is not None:
        yield 'total mass', slice(0, unknowns.n_inertial, 10), None, bounds.total_mass
    if bounds.extras is not None:
        for k, pair in enumerate(bounds.extras):
            yield str(unknowns.extras[k]), unknowns.n_inertial + k, None, pair
