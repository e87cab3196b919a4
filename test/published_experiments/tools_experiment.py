# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What methods make of noisy readings of tools that nobody knows.

The prior is a guess, the same one for all tools. Masses at points are left out: they need the
shape of a tool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.evidence import Evidence
from inertial_estimation.identification.fit import fit
from inertial_estimation.identification.information import weighted_sum
from inertial_estimation.identification.priors import PriorRows
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.result import Grade, Identification
from inertial_estimation.identification.solvers.least_squares import solve_least_squares
from inertial_estimation.identification.solvers.semidefinite import PriorTerm
from inertial_estimation.model.robot import Robot
from published_experiments.tools_data import (
    LEVELS,
    LINK,
    TOOLS,
    Body,
    Tool,
    ball,
)

Array = NDArray[np.float64]

GUESS_MASS, GUESS_RADIUS = 0.3, 0.1
"""Of the ball that is guessed, its centre in the sensor [kg, m]."""
DRAWS = 20
"""Of the noise, at each level."""


def guessed_robot() -> Robot:
    """Return one link at the sensor that is the guess, seen by an IMU at its origin."""
    guess = ball(GUESS_MASS, np.zeros(3), GUESS_RADIUS)
    robot = Robot.from_urdf(f'<robot name="{LINK}"><link name="{LINK}"/></robot>', imus=[LINK])
    return robot.with_parameters(guess.parameters[None])


class Method(NamedTuple):
    """A way to weigh a tool."""

    text: str
    """What it is."""
    solve: Callable[[Robot, Evidence], Identification]
    """From the guess and what readings say."""
    consistent: bool = True
    """Whether it promises bodies that could exist."""


def _fit(robot: Robot, seen: Evidence, method: str, **options: object) -> Identification:
    """Return the answer of a method as `identify` gives it."""
    return fit(robot, [seen], method, options).blocks[0].answer


def _ordinary(robot: Robot, seen: Evidence) -> Identification:
    """Return least squares without weights."""
    rows = weighted_sum(seen.kinds.values(), [1.0] * len(seen.kinds))
    return solve_least_squares(Problem.of(seen.block.unknowns, rows, robot.parameters))


def _rows(seen: Evidence) -> float:
    """Return the number of rows."""
    return sum(part.count for part in seen.kinds.values())


def _placed(robot: Robot, seen: Evidence) -> Robot:
    """Return a ball where least squares say, which reaches back to the sensor."""
    body = Body.of(_fit(robot, seen, 'least_squares').parameters[0])
    radius = float(np.linalg.norm(body.center))
    return robot.with_parameters(ball(body.mass, body.center, radius).parameters[None])


ORDINARY, WEIGHTED, DEFAULT = 'OLS', 'WLS', 'default'
PLACED, ONE_ROW, ONE_ROW_PLACED = 'placed', 'one row', 'one row, placed'
METHODS: Mapping[str, Method] = {
    ORDINARY: Method('least squares, rows in N and Nm', _ordinary, consistent=False),
    WEIGHTED: Method(
        'least squares, rows in units of their noise: --method least_squares',
        lambda robot, seen: _fit(robot, seen, 'least_squares'),
        consistent=False,
    ),
    DEFAULT: Method(
        'identify as it is: entropic prior, weight of 10 rows',
        lambda robot, seen: _fit(robot, seen, 'entropic'),
    ),
    'semidefinite': Method(
        '--method semidefinite: pullback prior, weight of 10 rows',
        lambda robot, seen: _fit(robot, seen, 'semidefinite'),
    ),
    'LMI': Method(
        'semidefinite without prior',
        lambda robot, seen: _fit(robot, seen, 'semidefinite', prior=PriorTerm.NONE),
    ),
    'manifold': Method(
        '--method manifold: entropic prior, weight of 10 rows',
        lambda robot, seen: _fit(robot, seen, 'manifold'),
    ),
    PLACED: Method(
        'default; prior: a ball where least squares say, of that mass, that reaches the sensor',
        lambda robot, seen: _fit(_placed(robot, seen), seen, 'entropic'),
    ),
    ONE_ROW: Method(
        'entropic prior, which weighs as much as one row: --weight 1-row',
        lambda robot, seen: _fit(robot, seen, 'entropic', weight=PriorRows(1.0)),
    ),
    ONE_ROW_PLACED: Method(
        'both',
        lambda robot, seen: _fit(_placed(robot, seen), seen, 'entropic', weight=PriorRows(1.0)),
    ),
}


@dataclass(frozen=True, eq=False)
class Score:
    """One method on one tool at one level of noise."""

    tool: str
    level: str
    method: str
    consistent: Array
    """Whether the answer is a body that could exist, for each draw."""
    optimal: Array
    """Whether the method says that its answer is optimal, for each draw."""
    rows: float
    """Of one draw."""
    errors: Array
    """As of `Body.errors`, for each draw, shape (n, 3)."""


def weigh(folder: Path, draws: int = DRAWS, seed: int = 0) -> tuple[Score, ...]:
    """Weigh all tools at all levels of noise by all methods."""
    rng = np.random.default_rng(seed)
    robot = guessed_robot()
    builder = EquationBuilder(robot)
    found = []
    for name in TOOLS:
        tool = Tool.read(folder, name)
        for level, size in LEVELS.items():
            n = draws if size else 1
            seen = [tool.evidence(builder, size, rng) for _ in range(n)]
            found += [_score(tool, level, method, robot, seen) for method in METHODS]
    return tuple(found)


def _score(tool: Tool, level: str, method: str, robot: Robot, seen: list[Evidence]) -> Score:
    """Return how a method does on all draws of the noise."""
    answers = [METHODS[method].solve(robot, one) for one in seen]
    errors = [Body.of(answer.parameters[0]).errors(tool.truth) for answer in answers]
    return Score(
        tool.name,
        level,
        method,
        np.array([bool(answer.margins.min() > 0.0) for answer in answers]),
        np.array([answer.grade is Grade.OPTIMAL for answer in answers]),
        _rows(seen[0]),
        np.array(errors),
    )


SURE = 3.0
"""A mean difference beyond this number of its standard errors is not chance."""
QUANTITIES = ('mass', 'centre of mass', 'inertia')
NOISY = tuple(level for level, size in LEVELS.items() if size)
Scores = Mapping[tuple[str, str, str], 'Score']
"""By tool, level of noise, method."""


class Worse(NamedTuple):
    """Where errors of a method are larger than those of another one."""

    cases: int
    """Of `of`."""
    of: int
    """Tools, levels of noise and quantities."""
    most: float
    """Largest ratio of medians where they are larger, 1 if nowhere."""
    where: str
    """There; empty if nowhere."""

    @property
    def text(self) -> str:
        """How often, and how much at most."""
        if not self.cases:
            return f'0 of {self.of}'
        return f'{self.cases} of {self.of}, {self.most:.3g} times at most ({self.where})'


def worse(scores: Scores, method: str, reference: str) -> Worse:
    """Compare the errors of two methods on the same draws of the noise."""
    ratios: dict[str, float] = {}
    for tool in TOOLS:
        for level in NOISY:
            ours, theirs = (scores[tool, level, name].errors for name in (method, reference))
            ratio = np.median(ours, axis=0) / np.median(theirs, axis=0)
            for k in np.flatnonzero(_surely_positive(ours - theirs)):
                ratios[f'{QUANTITIES[k]}, {tool}, {level}'] = float(ratio[k])
    where = max(ratios, key=lambda name: ratios[name], default='')
    n = len(TOOLS) * len(NOISY) * len(QUANTITIES)
    return Worse(len(ratios), n, ratios.get(where, 1.0), where)


def _surely_positive(differences: Array) -> NDArray[np.bool_]:
    """Return which columns have a mean above zero, not by chance."""
    n = len(differences)
    error = differences.std(axis=0, ddof=1) / np.sqrt(n)
    return np.asarray(differences.mean(axis=0) > SURE * error)
