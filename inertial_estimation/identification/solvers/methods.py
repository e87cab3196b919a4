# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Methods of identification: solvers with their properties.

A new method is its own file and an entry here; refits offer those of `config.groups.LIVE_METHODS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from inertial_estimation.errors import NameNotFound
from inertial_estimation.identification.problem import Identification, Problem
from inertial_estimation.identification.solvers.divergence import Distance
from inertial_estimation.identification.solvers.entropic import solve_entropic
from inertial_estimation.identification.solvers.least_squares import (
    solve_euclidean,
    solve_least_squares,
    solve_pullback,
)
from inertial_estimation.identification.solvers.manifold import solve_manifold
from inertial_estimation.identification.solvers.mass_points import solve_mass_points
from inertial_estimation.identification.solvers.semidefinite import solve_semidefinite


@dataclass(frozen=True)
class Method:
    """A solver with its properties; calling it solves."""

    solve: Callable[..., Identification]
    """``solve(problem, **options)``."""
    distance: Distance
    exactness: float
    """Relative error of predicted wrenches without noise, with next to no weight of the prior."""
    weighted: bool = True
    """``weight`` is an option."""
    consistent: bool = True
    """Every answer is fully physically consistent."""
    invariant: bool = True
    """Another frame of a link only rotates and moves its answer."""
    bounded: bool = True
    """Bounds are kept."""

    def __call__(self, problem: Problem, **options: Any) -> Identification:
        """Solve."""
        return self.solve(problem, **options)


_LINEAR = {'consistent': False, 'bounded': False}
SOLVERS: Mapping[str, Method] = {
    'entropic': Method(solve_entropic, Distance.ENTROPIC, 1e-9),
    'semidefinite': Method(solve_semidefinite, Distance.PULLBACK, 1e-8),
    'mass_points': Method(
        solve_mass_points, Distance.NONE, 1e-4, weighted=False, invariant=False
    ),
    'manifold': Method(solve_manifold, Distance.ENTROPIC, 1e-8),
    'pullback': Method(solve_pullback, Distance.PULLBACK, 1e-9, **_LINEAR),
    'euclidean': Method(solve_euclidean, Distance.EUCLIDEAN, 1e-9, invariant=False, **_LINEAR),
    'least_squares': Method(
        solve_least_squares, Distance.NONE, 1e-9, weighted=False, invariant=False, **_LINEAR
    ),
}  # fmt: skip


def solve(problem: Problem, method: str = 'entropic', **options: Any) -> Identification:
    """
    Solve an identification problem.

    Parameters
    ----------
    problem : Problem
        Equations, prior and bounds.
    method : str
        A key of `SOLVERS`.
    **options
        Of the method, e.g. ``weight`` of the prior.

    Returns
    -------
    Identification

    Raises
    ------
    NameNotFound
        If there is no such method.

    """
    if method not in SOLVERS:
        raise NameNotFound('method', method, SOLVERS)
    return SOLVERS[method](problem, **options)
