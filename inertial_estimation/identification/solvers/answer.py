# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Answers of solvers: their standard deviations, and the methods that return them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.problem import Grade, Identification, Problem
from inertial_estimation.identification.row_space import RowSpace, numerical_rank
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.divergence import Distance

MIN_WEIGHT, MAX_WEIGHT = 1e-12, 1e12
"""
Of a prior, over a mean squared residual of one. On logs of real arms a smaller one changes no
residual in five digits, and Newton steps end in round-off; from 1e14 on unknowns without a prior,
as offsets, are lost in it. At 1e12 the parameters are the prior's to 9 digits.
"""


def require_weight(weight: float) -> None:
    """Raise unless round-off leaves the weight of a prior an effect."""
    if not MIN_WEIGHT <= weight <= MAX_WEIGHT:
        text = f"'weight' is {weight:g}, expected {MIN_WEIGHT:g} to {MAX_WEIGHT:g}"
        raise ModelError(text, about=('weight',))


class Answer(NamedTuple):
    """Unknowns that a solver found, see `Identification`."""

    x: Array
    optimality: float
    grade: Grade
    iterations: int = 1
    notes: tuple[str, ...] = ()
    rank: int | None = None
    """None: by products of the equations."""
    coordinates: Coordinates | None = None
    """In which deviations are computed; None: the unknowns."""
    prior_rows: Callable[[], Array] | None = None
    """Returns the root of the weighted prior's curvature by these, (k, n_u); None: no prior."""
    missed: Array | float = 0.0
    """Error of what the method cannot represent, (n,)."""


@dataclass(frozen=True)
class Method:
    """A solver with its properties."""

    name: str
    solve: Callable[..., Answer]
    """``solve(problem, weight, **options)``."""
    distance: Distance
    """That it minimises beside the equations by default, see `priors`."""
    weighted: bool = True
    """Equations are weighed against a prior."""
    bounded: bool = True
    """Bounds are kept."""
    priors: Mapping[str, Distance] = field(default_factory=dict)
    """Distances by the option ``prior``."""

    def __call__(
        self, problem: Problem, *, weight: float = 1e-2, **options: Any
    ) -> Identification:
        """Solve a problem."""
        require_weight(weight)
        problem.require_consistent_prior()
        with one_thread():
            found = self.solve(problem, weight, **options)
            rank = found.rank
            if rank is None:
                rank = numerical_rank(problem.factor.T @ problem.factor)
            stated = deviations(problem, found, weight)
        return Identification(
            self.name, problem.unknowns, found.x, stated, rank, problem.mean_square(found.x),
            found.optimality, found.grade, found.iterations, found.notes,
        )  # fmt: skip


def deviations(problem: Problem, found: Answer, weight: float) -> Array:
    """
    Return the standard deviations of all unknowns by the curvature at an answer, (n,) [S 81-83].

    A prior that is worth N equations errs by 1 / sqrt(N) of its unit; errors of what a method
    cannot represent are added. Constraints are ignored: where a link is at the edge of consistency
    or a bound is active, the answer is more certain, since projection on a convex set never
    increases a distance. NaN if the fit uses up all equations: nothing shows their noise.
    """
    from scipy.linalg import solve_triangular

    at = found.coordinates
    factor = problem.factor / np.sqrt(problem.count) if at is None else at.factor
    prior = factor[:0] if found.prior_rows is None else found.prior_rows()
    R = np.asarray(np.linalg.qr(np.vstack([factor, prior]), mode='r'))
    if at is None:
        space = RowSpace.of(R)
        V = moved = space.inverse_root()
        undetermined = ~space.determined
    else:
        V = solve_triangular(R, np.eye(len(R)))
        moved = at.directions(V)
        undetermined = np.append(np.zeros(at.n_inertial, dtype=np.bool_), at.undetermined)
    seen, held = factor @ V, prior @ V
    freedom = problem.count - float(np.sum(seen**2))
    # Less than half an equation is round-off of a fit that uses up all of them.
    variance = problem.mean_square(found.x) / freedom if freedom >= 0.5 else np.nan
    by_noise, by_prior = (np.sum((moved @ part.T) ** 2, axis=1) for part in (seen, held))
    stated = np.hypot(np.sqrt(variance * by_noise + by_prior / problem.count), found.missed)
    return np.where(undetermined, np.inf, stated)
