# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Bounded least squares by guessing which bounds hold: exact within a few rounds from a good guess.

Each round solves for the variables that no bound holds; then bounds that are missed hold, and
those that pull do not. It may go in circles, from a bad guess or with bounds that compete.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.solvers.bounded_problem import (
    AT_FLOOR,
    BoundedProblem,
    Flags,
    inverse,
)

Array = NDArray[np.float64]

SAME_BOUND = 1e-12
"""Singular values below this share of the largest are bounds that repeat each other."""


@dataclass(frozen=True, eq=False)
class Settled:
    """Where it ended."""

    v: Array
    """Variables, shape (k,)."""
    y: Array
    """Multipliers of the rows C, shape (m,)."""
    rounds: int
    """That it took."""
    done: bool
    """Whether no bound was left to change."""


def settle(problem: BoundedProblem, pressed: Flags, active: Flags, rounds: int) -> Settled:
    """
    Minimise from a guess.

    pressed (k,); active (m,).
    """
    number, done = 0, False
    while not done and number < rounds:
        number += 1
        v, y = _solve(problem, pressed, active)
        gradient = problem.gradient(v) - problem.C.T @ y
        held = np.where(pressed, gradient > 0.0, v < problem.floor - AT_FLOOR)
        missed = problem.C @ v < problem.limits - AT_FLOOR
        now = np.where(active, y > 0.0, missed)
        done = bool((held == pressed).all() and (now == active).all())
        pressed, active = held, now
    return Settled(v, y, number, done)


def _solve(problem: BoundedProblem, pressed: Flags, active: Flags) -> tuple[Array, Array]:
    """Return variables and multipliers where some are at their floor and some rows at a limit."""
    v = np.where(pressed, problem.floor, 0.0)
    free = ~pressed
    back = inverse(problem.M[:, free], problem.d[free])
    y = np.zeros(len(active))
    step = back(-problem.gradient(v)[free][:, None])[:, 0]
    if active.any():
        G = problem.C[active][:, free]
        moved = back(G.T)
        missing = problem.limits[active] - G @ step - problem.C[active] @ v
        # Bounds may repeat each other: all masses and their total.
        y[active], *_ = np.linalg.lstsq(G @ moved, missing, rcond=SAME_BOUND)
        step = step + moved @ y[active]
    v[free] += step
    return v, y
