# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Methods of identification by name.

A new method is a `Method` and an entry here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inertial_estimation.errors import NameNotFound
from inertial_estimation.identification.problem import Identification, Problem
from inertial_estimation.identification.solvers.consistent import (
    solve_entropic,
    solve_semidefinite,
)
from inertial_estimation.identification.solvers.least_squares import (
    solve_euclidean,
    solve_least_squares,
    solve_pullback,
)
from inertial_estimation.identification.solvers.manifold import solve_manifold
from inertial_estimation.identification.solvers.mass_points import solve_mass_points
from inertial_estimation.identification.solvers.method import Method

SOLVERS: Mapping[str, Method] = {
    method.name: method
    for method in (
        solve_entropic, solve_semidefinite, solve_mass_points, solve_manifold, solve_pullback,
        solve_euclidean, solve_least_squares,
    )
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
