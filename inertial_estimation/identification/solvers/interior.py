# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Bodies that keep all bounds, or the proof that none do: a semidefinite program of few steps."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.solvers.body_program import BodyProgram, PriorTerm
from inertial_estimation.identification.solvers.cones import Consistency
from inertial_estimation.identification.solvers.constraints import (
    body_block,
    bound_blocks,
    contradiction,
)
from inertial_estimation.identification.solvers.linear_bounds import LinearBounds

Array = NDArray[np.float64]

WEIGHT = 1.0
"""Of the prior against rows: the answer is only where another method starts."""
MARGINS = (1e-2, 1e-6, 0.0)
"""Shares of the prior that bodies are to exceed, one after the other until some do."""


def within_bounds(problem: Problem) -> Array | None:
    """
    Return unknowns that keep all bounds, as far inside the cone as they can.

    Parameters
    ----------
    problem : Problem
        With a consistent prior and bounds.

    Returns
    -------
    ndarray, shape (n,) or None
        Some of a good fit, in the accuracy of the solver. None if it failed, or is not installed.

    Raises
    ------
    ModelError
        If bounds contradict each other whatever the bodies, with their names.

    """
    if find_spec('clarabel') is None:
        return None
    program = BodyProgram.of(problem, WEIGHT, PriorTerm.PULLBACK, None)
    (bounds,) = bound_blocks(LinearBounds.of(problem), problem.prior_point(), program.to_x)
    full = Consistency.FULL
    for margin in MARGINS:
        bodies = body_block(problem.unknowns, problem.prior, program.maps, program.n, full, margin)
        found = program.solve([bodies, bounds], np.zeros(program.n), np.inf)
        if found.feasible:
            return np.asarray(problem.prior_point() + program.to_x @ found.x)
    bad = contradiction([bodies], bounds, found)
    raise ModelError(
        f'no bodies keep all bounds; these are against each other: {", ".join(bad)}; widen them'
    )
