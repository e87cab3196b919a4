# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Answer of a solver, graded by its optimality residual."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.inertia import consistency_margin

Array = NDArray[np.float64]


class Grade(str, Enum):
    """Grade of an answer: the optimality residual is small, a budget ran out, it stayed large."""

    OPTIMAL = 'optimal'
    STOPPED = 'stopped'
    INACCURATE = 'inaccurate'


@dataclass(frozen=True, eq=False)
class Identification:
    """
    Answer to a `Problem`.

    Attributes
    ----------
    method : str
        Name of the solver.
    unknowns : Unknowns
    x : ndarray, shape (n,)
        All unknowns.
    deviations : ndarray, shape (n,)
        Standard deviation of each; infinite where it is not determined, NaN where no equations are
        left to estimate the noise or they were not asked for. Active constraints, which make an
        answer more certain, are not counted.
    rank : int
        Combinations of unknowns that the equations determine.
    mean_square : float
        Mean squared residual, in units of the noise where that is known.
    optimality : float
        Relative optimality residual, as the solver defines it.
    grade : Grade
    iterations : int
    solve_time : float
        [s].
    notes : tuple of str
        Remarks of the solver, such as links on the boundary.

    """

    method: str
    unknowns: Unknowns
    x: Array
    deviations: Array
    rank: int
    mean_square: float
    optimality: float
    grade: Grade
    iterations: int
    solve_time: float
    notes: tuple[str, ...] = ()

    @property
    def parameters(self) -> Array:
        """Inertial parameters, shape (n_links, 10)."""
        return self.unknowns.split(self.x)[0]

    @property
    def extras(self) -> dict[str, float]:
        """The other unknowns by name."""
        names = map(str, self.unknowns.extras)
        return dict(zip(names, self.unknowns.split(self.x)[1].tolist(), strict=True))

    @cached_property
    def margins(self) -> Array:
        """Smallest eigenvalue of each link's pseudo-inertia, shape (n_links,)."""
        return consistency_margin(self.parameters)

    @property
    def consistent(self) -> bool:
        """True if every link is strictly fully physically consistent."""
        return bool((self.margins > 0).all())
