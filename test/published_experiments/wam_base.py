# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Base parameters of S's WAM: Table 3, how they condition, and what depends on their choice."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.feasibility import (
    BaseParameterCheck,
    check_base_parameters,
)
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.solvers.semidefinite import PriorTerm, solve_semidefinite
from inertial_estimation.model.base_parameters import BaseParameters, conditioning_order
from published_experiments.wam_arm import N_UNKNOWNS, WamArm
from published_experiments.wam_experiment import (
    Data,
    bounds,
    relative_error,
    rows,
)

Array = NDArray[np.float64]

NAME = 'S: Sousa and Cortesao 2014, base parameters of the WAM'
EXACT = 1e-12
"""Groupings are products of a few lengths with few digits."""
SOLVED = 1e-5
"""Relative, of a cost that a solver found."""
WELL = 0.1
"""Condition numbers of S are those of recorded motions, ours of references: relative."""
ORDERS = {'as S': conditioning_order(7, 28), 'masses first': np.arange(N_UNKNOWNS)}


class Choice(NamedTuple):
    """What is found with one choice of columns."""

    name: str
    condition: float
    fitted: Array
    """Unknowns of FBPE, 4x4, shape (98,)."""
    mean_square: float
    """Of FBPE [N^2 m^2]."""
    check: BaseParameterCheck
    """Of OLS, 4x4."""
    corrected: float
    """Error of BPFC [%]."""


def condition(arm: WamArm, number: int) -> float:
    """Return the condition number of a reference over the base parameters of Table 3."""
    return float(np.linalg.cond(rows(arm, number)[:, arm.table3.independent]))


def compare_groupings(arm: WamArm, W: Array) -> tuple[int, float]:
    """
    Find base parameters from rows, and compare them with Table 3.

    W (n, 98).
    """
    found, published = BaseParameters.of_regressor(W, ORDERS['as S']), arm.table3
    ours, theirs = np.argsort(found.independent), np.argsort(published.independent)
    if not np.array_equal(found.independent[ours], published.independent[theirs]):
        return found.rank, np.inf
    off = found.grouping[ours] - published.grouping[theirs]
    return found.rank, float(np.abs(off).max())


def choose(arm: WamArm, data: Data, order: str) -> Choice:
    """Fit, test and correct with one choice of columns."""
    base, signs = BaseParameters.of_regressor(data.W, ORDERS[order]), bounds(arm, False)
    kept = data.W[:, base.independent]
    reduced = Information.of(kept, data.torques)
    problem = Problem(
        arm.unknowns, reduced.R @ base.grouping, reduced.rho, reduced.energy, reduced.count,
        arm.cad_parameters, bounds=signs,
    )  # fmt: skip
    ols = np.asarray(np.linalg.solve(reduced.R, reduced.rho), dtype=np.float64)
    check = check_base_parameters(base, ols, arm.unknowns, bounds=signs)
    fitted = solve_semidefinite(problem, prior=PriorTerm.NONE)
    return Choice(
        order,
        float(np.linalg.cond(kept)),
        fitted.x,
        fitted.mean_square,
        check,
        relative_error(data, check.x),
    )
