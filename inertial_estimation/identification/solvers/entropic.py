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

from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.row_space import numerical_rank
from inertial_estimation.identification.solvers.cone_newton import minimise_within
from inertial_estimation.identification.solvers.coordinates import Coordinates
from inertial_estimation.identification.solvers.divergence import ENTROPIC
from inertial_estimation.identification.solvers.method import Answer, Method


def _entropic(problem: Problem, weight: float) -> Answer:
    """Minimise the objective within all bounds."""
    at = Coordinates.of(problem)
    extras = at.n_inertial + np.flatnonzero(at.drawn[at.n_inertial :])
    rows = at.with_rows(np.sqrt(weight) * np.eye(len(at.drawn))[extras])
    found = minimise_within(problem, rows, weight, small=weight)
    return Answer(
        at.unknowns(found.u), found.gap, found.grade, found.iterations, (),
        numerical_rank(at.gram), at,
        lambda: at.prior_rows(weight, at.shapes(found.u)),
    )  # fmt: skip


solve_entropic = Method('entropic', _entropic, ENTROPIC, 1e-9)
