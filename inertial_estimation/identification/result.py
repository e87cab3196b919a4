# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a solver found, and how good it is by its own account."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.inertia import consistency_margin

Array = NDArray[np.float64]


class Grade(str, Enum):
    """How a solver stopped."""

    OPTIMAL = 'optimal'
    """Its optimality residual is below its tolerance."""
    STOPPED = 'stopped'
    """A budget of time or iterations ran out; the answer is usable, a better one exists."""
    INACCURATE = 'inaccurate'
    """Numerical trouble: the optimality residual stayed above the tolerance."""


@dataclass(frozen=True, eq=False)
class Identification:
    """The answer to a `Problem`."""

    method: str
    """Name of the solver."""
    unknowns: Unknowns
    x: Array
    """All unknowns, shape (n,)."""
    deviations: Array
    """
    Standard deviation of each unknown, shape (n,); infinite where the rows and what else the
    method goes by do not determine it, NaN where no rows are left to tell the noise, or nobody
    asked. Constraints and bounds that hold make an answer surer than that.
    """
    rank: int
    """Combinations of unknowns that the rows determine."""
    mean_square: float
    """Mean squared residual of the rows, in units of their noise where that is known."""
    optimality: float
    """Relative optimality residual: a gradient norm, a duality gap; its solver says which."""
    grade: Grade
    iterations: int
    solve_time: float
    """Seconds."""
    residuals: dict[str, float] = field(default_factory=dict)
    """Root mean square residual of each kind of row, in the unit of the row."""
    notes: tuple[str, ...] = ()
    """What to know of the answer beside its grade: links on a boundary, say."""

    @property
    def parameters(self) -> Array:
        """Inertial parameters, shape (n_links, 10), as in `model.inertia`."""
        return self.unknowns.split(self.x)[0]

    @property
    def extras(self) -> dict[str, float]:
        """The other unknowns by their names."""
        names = map(str, self.unknowns.extras)
        return dict(zip(names, self.unknowns.split(self.x)[1].tolist(), strict=True))

    @cached_property
    def margins(self) -> Array:
        """Smallest eigenvalue of each link's pseudo-inertia, shape (n_links,)."""
        return consistency_margin(self.parameters)

    @property
    def consistent(self) -> bool:
        """Whether every link is a body that could exist, strictly."""
        return bool((self.margins > 0).all())
