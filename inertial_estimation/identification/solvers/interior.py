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
from inertial_estimation.identification.solvers.conic import minimise
from inertial_estimation.identification.solvers.constraints import (
    body_block,
    bound_blocks,
    contradiction,
    drawn_inside,
    missed,
)
from inertial_estimation.identification.solvers.linear_bounds import LinearBounds

Array = NDArray[np.float64]

MARGINS = (1e-2, 1e-6, 0.0)
"""Shares of the prior that bodies are to exceed, one after the other until some do."""

ROUGH = 1e-5
"""Share of the largest variable by which a start may miss a bound."""


def within_bounds(problem: Problem) -> Array | None:
    """
    Return unknowns that keep all bounds, inside the cone and near the prior.

    Returns (n,).
    """
    from scipy.sparse import csc_array, identity

    if find_spec('clarabel') is None:
        return None
    program = BodyProgram.of(problem, 1.0, PriorTerm.PULLBACK, None)
    (bounds,) = bound_blocks(LinearBounds.of(problem), problem.prior_point(), program.to_x)
    near, no_slope = csc_array(identity(program.n)), np.zeros(program.n)
    for margin in MARGINS:
        bodies = body_block(
            problem.unknowns, problem.prior, program.maps, program.n, Consistency.FULL, margin
        )
        # Rows take no part: their numbers may be so large that none of these are left exact.
        found = minimise(near, no_slope, [bodies, bounds])
        z = drawn_inside(bodies, np.nan_to_num(found.x))
        if not missed(bounds, z, ROUGH):
            return np.asarray(problem.prior_point() + program.to_x @ z)
    bad = contradiction([bodies], bounds, found)
    if not bad:
        return None
    raise ModelError(
        f'no bodies keep all bounds; these are against each other: {", ".join(bad)}; widen them'
    )
