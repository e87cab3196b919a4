# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A humanoid's links by masses at points, beside other methods, as in A's Tables I-V and Fig. 3.

Masses at points (A), least squares (B), the prior alone (C) and masses at points without prior
(D) on the motion that was used and on another one of `humanoid_experiment`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.solvers.least_squares import solve_least_squares
from inertial_estimation.identification.solvers.mass_points import solve_mass_points
from inertial_estimation.model.inertia import consistency_margin
from published_experiments.humanoid_experiment import Experiment

Array = NDArray[np.float64]

LINKS = {
    'L1 upper trunk': 'chest', 'L2 lower trunk': 'root_link', 'L3 right upper leg': 'r_upper_leg',
    'L4 right foot': 'r_ankle_2', 'L5 left upper arm': 'l_shoulder_3', 'L6 left hand': 'l_hand',
}  # fmt: skip
"""Links of A's tables."""
PER_AXIS = (3, 4, 5)
"""Points along each edge of the boxes."""


@dataclass(frozen=True, eq=False)
class Score:
    """How well one method does."""

    method: str
    parameters: Array
    """Shape (n_links, 10)."""
    seen: Array
    """Root mean square error of each component on the motion that was used, (6,) [N, Nm]."""
    unseen: Array
    """The same on the other motion."""
    exact: Array
    """The same, of what the wrench was before the noise."""
    consistent: int
    """Links that are bodies that could exist."""
    inside: int
    """Links whose centre of mass is in their box."""
    mass_error: float
    """Mean error of a link's mass [kg]."""
    time: float
    """[s]."""


def compare(experiment: Experiment) -> tuple[Score, ...]:
    """Compare the four methods of A's Table V."""
    problem, grids = experiment.problem(), experiment.grids()
    results = {
        '(A) mass points': solve_mass_points(problem, grids),
        '(B) least squares': solve_least_squares(problem),
        '(D) mass points, no prior': solve_mass_points(problem, grids, weight=None),
    }
    scores = [
        _score(experiment, name, result.parameters, result.solve_time)
        for name, result in results.items()
    ]
    scores.insert(2, _score(experiment, '(C) prior', experiment.prior, 0.0))
    return tuple(scores)


def points(experiment: Experiment, per_axis: Sequence[int] = PER_AXIS) -> tuple[Score, ...]:
    """Compare numbers of points."""
    scores = []
    for number in per_axis:
        grids = experiment.grids(number)
        start = perf_counter()
        result = solve_mass_points(experiment.problem(), grids)
        duration = perf_counter() - start
        scores.append(_score(experiment, f'{number**3}', result.parameters, duration))
    return tuple(scores)


def _rms(values: Array, count: float) -> float:
    """Return the root of a sum of squares over a number."""
    return float(np.sqrt(values @ values / count))


def _score(experiment: Experiment, method: str, parameters: Array, time: float) -> Score:
    """Return how good parameters are."""
    x = parameters.reshape(-1)
    off = x - experiment.truth.reshape(-1)
    seen, unseen = (
        np.array([np.sqrt(rows.squared_residual(x) / rows.count) for rows in motion])
        for motion in (experiment.seen, experiment.unseen)
    )
    inside = [
        mass > 0 and bool((np.abs(grid.box.to_unit(first / mass)) <= 1.0).all())
        for grid, mass, first in zip(experiment.grids(), parameters[:, 0], parameters[:, 1:4])
    ]
    return Score(
        method=method,
        parameters=parameters,
        seen=seen,
        unseen=unseen,
        exact=np.array([_rms(rows.R @ off, rows.count) for rows in experiment.unseen]),
        consistent=int(np.count_nonzero(consistency_margin(parameters) > 0)),
        inside=sum(inside),
        mass_error=float(np.abs(parameters[:, 0] - experiment.truth[:, 0]).mean()),
        time=time,
    )
