# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Methods beside each other on logs of real arms, which are not part of the package.

Each robot is fitted on one part of its logs and predicted on others, cut where the filter cannot
carry anything across. All methods solve the same rows; errors are in the unit of the rows, and
over the measured efforts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.evidence import Evidence
from inertial_estimation.identification.noise import noise_levels
from inertial_estimation.logs.log import LogSlice
from inertial_estimation.model.inertia import consistency_margin
from real_arms.arm import Arm, Found
from real_arms.robots import RealRobot

Array = NDArray[np.float64]

STARTS = 41
"""Places in a log where little data are taken from."""


@dataclass(frozen=True, eq=False)
class Scored:
    """One method on one robot."""

    method: str
    fitted: dict[str, float]
    """Root mean square residual of each joint [N, Nm]."""
    predicted: dict[str, float]
    total_fitted: float
    """Root of all squares of residuals over those of efforts."""
    total_predicted: float
    mass: float
    """Sum of all links [kg]."""
    margin: float
    """Least eigenvalue of a pseudo-inertia."""
    rank: int
    """Combinations of unknowns that the rows determine; 0 if the method does not say."""
    time: float
    """Of the solver [s]."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """All methods on one robot."""

    robot: RealRobot
    rank: int
    rows: int
    signals: dict[str, float]
    """Root mean square of the predicted efforts of each joint [N, Nm]."""
    scores: tuple[Scored, ...]
    short: dict[float, dict[str, Array]]
    """By seconds and method: held-out errors over the efforts, one for each start."""


def compare(robot: RealRobot, data: Path, configs: Path) -> Comparison:
    """Compare the methods on one robot."""
    arm = Arm(robot, data, configs)
    seen = arm.evidence([arm.stretch(said) for said in robot.fitted])
    unseen = arm.evidence([arm.stretch(said) for said in robot.predicted])
    noise = noise_levels(seen.kinds)
    scores = []
    for method, solve in arm.methods(seen, noise.deviations).items():
        found = solve()
        scores.append(_scored(method, found, seen, unseen))
    short = {seconds: _short(arm, seconds, noise.deviations, unseen) for seconds in robot.short}
    rank = max(score.rank for score in scores)
    rows = sum(seen.rows.values())
    return Comparison(robot, rank, rows, unseen.signals(), tuple(scores), short)


def _scored(method: str, found: Found, seen: Evidence, unseen: Evidence) -> Scored:
    """Return how well unknowns do."""
    parameters = seen.block.unknowns.split(found.x)[0]
    return Scored(
        method,
        seen.residuals(found.x),
        unseen.residuals(found.x),
        _total(seen, found.x),
        _total(unseen, found.x),
        float(parameters[:, 0].sum()),
        float(consistency_margin(parameters).min()),
        found.rank,
        found.time,
    )


def _total(evidence: Evidence, x: Array) -> float:
    """Return residuals over efforts, of all rows together."""
    zero = np.zeros_like(x)
    parts = [part for part in evidence.kinds.values() if part.count]
    squares = [sum(part.squared_residual(at) for part in parts) for at in (x, zero)]
    return float(np.sqrt(squares[0] / squares[1]))


def _short(
    arm: Arm, seconds: float, noise: Mapping[str, float], unseen: Evidence
) -> dict[str, Array]:
    """Return held-out errors of fits to rows of some seconds, from several starts."""
    first = arm.stretch(arm.robot.fitted[0])
    # What the filter takes at the edges is recorded beyond these seconds.
    edge = arm.settings.preparation.edges
    errors: dict[str, list[float]] = {}
    for start in np.linspace(first.start, first.stop - seconds - 2 * edge, STARTS):
        part = LogSlice(first.path, start, start + seconds + 2 * edge)
        for method, solve in arm.methods(arm.evidence([part]), noise).items():
            errors.setdefault(method, []).append(_total(unseen, solve().x))
    return {method: np.array(values) for method, values in errors.items()}
