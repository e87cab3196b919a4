# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Unknowns in coordinates that are zero at the prior and in which its distance is simple.

Links come first, ten coordinates each. Other unknowns are over their scales; those of infinite
scale have no prior, and only combinations of them that rows determine are coordinates: the rest
stays where the prior has it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.arguments import require_number
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.row_space import DETERMINED, RowSpace
from inertial_estimation.identification.solvers.divergence import whitening

Array = NDArray[np.float64]

MIN_WEIGHT, MAX_WEIGHT = 1e-12, 1e12
"""
Of a prior, over a mean squared residual of one. On logs of real arms a smaller one changes no
residual in five digits, and Newton steps end in round-off; from 1e14 on unknowns without a prior,
as offsets, are lost in it. At 1e12 the parameters are the prior's to 9 digits.
"""


@dataclass(frozen=True, eq=False)
class Coordinates:
    """An affine map u -> x, and the rows in u, over the root of their number."""

    origin: Array
    """Unknowns at u = 0: the prior, shape (n,)."""
    links: Array
    """Inertial parameters from the coordinates of each link, shape (n_links, 10, 10)."""
    extras: Array
    """Other unknowns from the rest of the coordinates, shape (n_extras, k)."""
    drawn: Array
    """One for coordinates that are drawn to the prior, zero for free ones, shape (n_u,)."""
    undetermined: NDArray[np.bool_]
    """Free unknowns that rows do not determine, shape (n_extras,)."""
    factor: Array
    """Rows in u, shape (r, n_u)."""
    target: Array
    """Their right-hand sides, shape (r,)."""
    rest: float
    """Mean square that no unknowns can explain."""

    @classmethod
    def of(cls, problem: Problem, links: Array | None = None) -> Coordinates:
        """Return the coordinates of a problem; links (n_links, 10, 10)."""
        problem.require_consistent_prior()
        maps = whitening(problem.prior) if links is None else links
        inertial = problem.unknowns.n_inertial
        extras, drawn, undetermined = _extras(problem, problem.factor[:, inertial:])
        factor = _times_maps(problem.factor, maps, extras)
        origin = problem.prior_point()
        root = np.sqrt(problem.count)
        return cls(
            origin,
            maps,
            extras,
            np.concatenate([np.ones(inertial), drawn]),
            undetermined,
            factor / root,
            (problem.target - problem.factor @ origin) / root,
            problem.energy / problem.count,
        )

    @property
    def n_inertial(self) -> int:
        """Coordinates of links."""
        return 10 * len(self.links)

    def unknowns(self, u: Array) -> Array:
        """Return the unknowns of coordinates; u (n_u,); returns (n,)."""
        return self.origin + self.directions(u)

    def directions(self, u: Array) -> Array:
        """Return by how much the unknowns change with the coordinates; u (n_u,); returns (n,)."""
        z = u[: self.n_inertial].reshape(len(self.links), 10, -1)
        inertial = (self.links @ z).reshape(self.n_inertial, *u.shape[1:])
        return np.concatenate([inertial, self.extras @ u[self.n_inertial :]])

    def gradients(self, rows: Array) -> Array:
        """Return rows on unknowns as rows on coordinates; rows (k, n); returns (k, n_u)."""
        return _times_maps(rows, self.links, self.extras)

    def coordinates(self, x: Array) -> Array:
        """
        Return the coordinates of unknowns; undoes `unknowns` where it can be undone.

        x (n,); returns (n_u,).
        """
        difference = x - self.origin
        moved = difference[: self.n_inertial].reshape(len(self.links), 10, 1)
        z = np.linalg.solve(self.links, moved).reshape(-1)
        rest, *_ = np.linalg.lstsq(self.extras, difference[self.n_inertial :], rcond=None)
        return np.concatenate([z, rest])


def _times_maps(rows: Array, links: Array, extras: Array) -> Array:
    """Return rows on unknowns times the maps of their coordinates."""
    inertial = 10 * len(links)
    by_link = np.swapaxes(rows[:, :inertial].reshape(len(rows), len(links), 10), 0, 1)
    moved = np.empty((len(rows), inertial + extras.shape[1]))
    moved[:, :inertial] = np.swapaxes(by_link @ links, 0, 1).reshape(len(rows), inertial)
    moved[:, inertial:] = rows[:, inertial:] @ extras
    return moved


def require_weight(weight: float) -> None:
    """Raise unless round-off leaves the weight of a prior an effect."""
    require_number('weight', weight)
    if not MIN_WEIGHT <= weight <= MAX_WEIGHT:
        raise ModelError(
            f'the weight of the prior must be from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}, not '
            f'{weight:g}, where round-off decides; without a prior use least squares, or a method '
            'that can do without, and what is known for sure is a bound'
        )


def _extras(problem: Problem, columns: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return the map of the other unknowns, which of its columns are drawn, and what is open."""
    n = columns.shape[1]
    scales = np.full(n, np.inf) if problem.extra_scales is None else problem.extra_scales
    known = np.flatnonzero(np.isfinite(scales))
    free = np.flatnonzero(np.isinf(scales))
    undetermined = np.zeros(n, dtype=np.bool_)
    mapping = np.zeros((n, len(known)))
    mapping[known, np.arange(len(known))] = scales[known]
    if not len(free):
        return mapping, np.ones(len(known)), undetermined
    space = RowSpace.of(columns[:, free])
    combinations = np.zeros((n, space.rank))
    combinations[free] = _row_space(space)
    undetermined[free] = np.linalg.norm(space.missing, axis=1) > DETERMINED
    drawn = np.concatenate([np.ones(len(known)), np.zeros(space.rank)])
    return np.hstack([mapping, combinations]), drawn, undetermined


def _row_space(space: RowSpace) -> Array:
    """Return unscaled combinations that rows determine, shape (n, rank)."""
    if space.rank == len(space.scales):
        return np.diag(1.0 / space.scales)
    return space.directions / space.scales[:, None]
