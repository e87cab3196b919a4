# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A residual that is given, instead of a weight: the answer nearest to the prior that still fits.

    minimise  distance to the prior   subject to   mean((factor x - target)^2) <= greatest

The weight is the inverse of the constraint's multiplier, and the residual grows with it: one
search along one number [Lee, Wensing, Park 2020, section on the residual as a constraint].
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.result import Identification
from inertial_estimation.identification.solvers.coordinates import LEAST_WEIGHT, MOST_WEIGHT

LEAST = 1e-10
"""Least weight that is tried, over the mean square at the prior."""
GREATEST = 1e10
"""Greatest one likewise."""


def solve_within(
    problem: Problem,
    greatest: float,
    solve: Callable[..., Identification],
    *,
    tolerance: float = 1e-10,
) -> tuple[Identification, float]:
    """Return the answer nearest to the prior whose mean squared residual is within a bound."""
    from scipy.optimize import brentq

    at_prior = problem.mean_square(problem.prior_point())
    if not at_prior > greatest:
        raise ModelError(
            f'the prior fits the rows with a mean square of {at_prior:.6g}, within {greatest:.6g}'
            ': there is nothing to identify'
        )

    def excess(logarithm: float) -> float:
        return solve(problem, weight=float(np.exp(logarithm))).mean_square - greatest

    low = float(np.log(max(LEAST * at_prior, LEAST_WEIGHT)))
    high = float(np.log(min(GREATEST * at_prior, MOST_WEIGHT)))
    best = excess(low) + greatest
    if best > greatest:
        raise ModelError(f'no answer has a mean square of {greatest:.6g}; the least is {best:.6g}')
    logarithm = brentq(excess, low, high, xtol=tolerance, rtol=8 * np.finfo(float).eps)
    weight = float(np.exp(logarithm))
    return solve(problem, weight=weight), weight
