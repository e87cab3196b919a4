# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Equations with the entropic prior: the default of refits while the robot works.

    minimise  1/2 mean((factor x - target)^2)  +  weight * sum of log-det divergences to the prior

The divergence is regulariser and barrier in one [Lee, Wensing, Park 2020]: the problem is smooth
and strictly convex, and `cone_newton` solves it in a few steps, strictly consistent at each.
"""

from __future__ import annotations

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.row_space import numerical_rank
from inertial_estimation.identification.solvers.cone_newton import minimise_within
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.divergence import ENTROPIC
from inertial_estimation.identification.solvers.linear_bounds import LinearBounds
from inertial_estimation.identification.solvers.method import Answer, Method

MIN_START = 1e-2
"""Least eigenvalue of a start, over the prior: from nearer the edge there are more steps."""


def _entropic(problem: Problem, weight: float, *, start: Array | None = None) -> Answer:
    """Minimise the objective within all bounds; start (n,)."""
    at = Coordinates.of(problem)
    first = np.zeros(len(at.drawn))
    if start is not None:
        first = at.coordinates(start)
        least = 1.0 + float(np.linalg.eigvalsh(at.shapes(first)).min())
        if least < MIN_START:
            first *= (1.0 - MIN_START) / (1.0 - least)
    extras = at.n_inertial + np.flatnonzero(at.drawn[at.n_inertial :])
    rows = at.with_rows(np.sqrt(weight) * np.eye(len(first))[extras])
    found = minimise_within(LinearBounds.of(problem), rows, first, weight, small=weight)
    return Answer(
        at.unknowns(found.u), found.gap, found.grade, found.iterations, (),
        numerical_rank(at.gram), at,
        lambda: at.prior_rows(weight, at.shapes(found.u)),
    )  # fmt: skip


solve_entropic = Method('entropic', _entropic, ENTROPIC, 1e-9)
