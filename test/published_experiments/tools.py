# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Workshop tools at an FT sensor: always bodies that could exist, errors beside least squares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.priors import DEFAULT_PRIOR_WEIGHT as DEFAULT_WEIGHT
from inertial_estimation.table import Table
from published_experiments.experiment import Expectation, Finding
from published_experiments.tools_data import LEVELS, TOOLS
from published_experiments.tools_experiment import (
    DEFAULT,
    DRAWS,
    GUESS_MASS,
    GUESS_RADIUS,
    METHODS,
    ONE_ROW,
    ONE_ROW_PLACED,
    ORDINARY,
    PLACED,
    WEIGHTED,
    Score,
    weigh,
)

Array = NDArray[np.float64]

NAME = 'Nadeau et al. 2023: six simulated workshop tools at an FT sensor'
EXACT = 1e-9
"""Relative error without noise that is round-off; of the centre of mass, in metres."""
DRAWN = 1e-6
"""The same with a prior, where rows count as if they had a millionth of the signal as noise."""
SURE = 3.0
"""A mean difference beyond so many of its standard errors is none of chance."""
QUANTITIES = (('mass [%]', 100.0), ('centre of mass [mm]', 1000.0), ('inertia [%]', 100.0))
NOISY = tuple(level for level, size in LEVELS.items() if size)
_GUESS = f'ball of {GUESS_MASS:g} kg and {100 * GUESS_RADIUS:g} cm radius in the sensor'

Scores = Mapping[tuple[str, str, str], Score]
"""By tool, level of noise, method."""


def run(folder: Path, draws: int = DRAWS) -> Finding:
    """Weigh the tools."""
    scores = {(s.tool, s.level, s.method): s for s in weigh(folder, draws)}
    return Finding(
        NAME,
        (_summary(scores), *_medians(scores, draws), _shares(scores, draws)),
        (*(one.note for one in expectations(scores)), *unfinished(scores), _why(scores)),
        {'guess': _GUESS, 'draws': draws, 'scores': [_figures(s) for s in scores.values()]},
    )


def unfinished(scores: Scores) -> list[str]:
    """Return which methods ended before their optimum, in words."""
    return [
        f"'{score.method}' did not reach its optimum: {score.tool}, noise {score.level}, "
        f'{len(score.optimal) - np.count_nonzero(score.optimal)} of {len(score.optimal)} draws; '
        'what it promises of rows without noise holds where its grade is optimal'
        for score in scores.values()
        if not score.optimal.all()
    ]


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
                ratios[f'{QUANTITIES[k][0].split(" [")[0]}, {tool}, {level}'] = float(ratio[k])
    where = max(ratios, key=lambda name: ratios[name], default='')
    n = len(TOOLS) * len(NOISY) * len(QUANTITIES)
    return Worse(len(ratios), n, ratios.get(where, 1.0), where)


def expectations(scores: Scores) -> tuple[Expectation, ...]:
    """Hold the methods against what is asked of them."""
    off = {name: _exactness(scores, name) for name in (WEIGHTED, DEFAULT)}
    n, good = _consistent(scores, [name for name, one in METHODS.items() if one.consistent])
    n_plain, plain = _consistent(scores, [WEIGHTED])
    return (
        Expectation(
            f'without noise {WEIGHTED} and {DEFAULT} return the truth: off by '
            f'{off[WEIGHTED]:.1g} and {off[DEFAULT]:.1g} at most',
            off[WEIGHTED] <= EXACT and off[DEFAULT] <= DRAWN,
        ),
        Expectation(
            f'all answers of the methods that promise so are consistent: {good} of {n}; of '
            f'{WEIGHTED} {plain} of {n_plain}',
            good == n,
        ),
        _no_worse(scores, DEFAULT, ORDINARY),
        _no_worse(scores, DEFAULT, WEIGHTED),
        _no_worse(scores, ONE_ROW, ORDINARY),
        _no_worse(scores, ONE_ROW_PLACED, ORDINARY),
        _no_worse(scores, ONE_ROW_PLACED, WEIGHTED),
    )


def _no_worse(scores: Scores, method: str, reference: str) -> Expectation:
    """Return that errors of a method are no worse than those of another one."""
    found = worse(scores, method, reference)
    return Expectation(
        f"errors of '{method}' are no worse than those of {reference}; worse in {found.text}",
        not found.cases,
    )


def _why(scores: Scores) -> str:
    """Return what keeps the default from being as good."""
    rows = max(score.rows for score in scores.values())
    return (
        f"'{DEFAULT}' is held back by the weight of its prior: beside "
        f'{rows:g} rows it counts as {DEFAULT_WEIGHT.rows:g} that say "{_GUESS}", and no tool is '
        f"like that. A better guess alone does not do ('{PLACED}': worse than {WEIGHTED} in "
        f'{worse(scores, PLACED, WEIGHTED).text}); with the weight of one row '
        '(--weight 1-row) '
        f'the plain guess is worse than {WEIGHTED} in {worse(scores, ONE_ROW, WEIGHTED).text}'
    )


def _surely_positive(differences: Array) -> NDArray[np.bool_]:
    """Return which columns have a mean above zero, not by chance."""
    n = len(differences)
    error = differences.std(axis=0, ddof=1) / np.sqrt(n)
    return np.asarray(differences.mean(axis=0) > SURE * error)


def _exactness(scores: Scores, method: str) -> float:
    """Return the largest error without noise."""
    return max(float(scores[tool, 'none', method].errors.max()) for tool in TOOLS)


def _consistent(scores: Scores, methods: Sequence[str]) -> tuple[int, int]:
    """Return how many answers there are, and how many are bodies that could exist."""
    flags = np.concatenate([s.consistent for s in scores.values() if s.method in methods])
    return len(flags), int(flags.sum())


def _summary(scores: Scores) -> Table:
    """Return what each method is, and how it does."""
    rows = []
    for name, method in METHODS.items():
        n, good = _consistent(scores, [name])
        against = (worse(scores, name, reference) for reference in (ORDINARY, WEIGHTED))
        best = np.concatenate([s.optimal for s in scores.values() if s.method == name])
        shares = (f'{100 * good / n:.0f}', f'{100 * best.mean():.0f}')
        rows.append((name, method.text, *shares, *(one.text for one in against)))
    return Table(
        f'Methods; prior: {_GUESS}',
        (
            '',
            'method',
            'consistent [%]',
            'optimal [%]',
            f'worse than {ORDINARY}',
            f'worse than {WEIGHTED}',
        ),
        tuple(rows),
    )


def _medians(scores: Scores, draws: int) -> Iterator[Table]:
    """Yield the errors of each quantity."""
    for k, (quantity, unit) in enumerate(QUANTITIES):
        medians = {key: unit * float(np.median(s.errors[:, k])) for key, s in scores.items()}
        yield _table(f'Error of {quantity}, median of {draws} draws', medians)


def _shares(scores: Scores, draws: int) -> Table:
    """Return how many answers are consistent."""
    shares = {key: 100.0 * float(s.consistent.mean()) for key, s in scores.items()}
    return _table(f'Consistent answers, share of {draws} draws [%]', shares)


def _table(title: str, figures: Mapping[tuple[str, str, str], float]) -> Table:
    """Return a figure of all methods for each tool and level."""
    rows = tuple(
        (tool, level, *(f'{figures[tool, level, name]:.3g}' for name in METHODS))
        for tool in TOOLS
        for level in LEVELS
    )
    return Table(title, ('tool', 'noise', *METHODS), rows)


def _figures(score: Score) -> dict[str, Any]:
    """Return a score for a machine, errors as shares and metres."""
    names = ('mass', 'center_of_mass', 'inertia')
    return {
        'tool': score.tool,
        'noise': score.level,
        'method': score.method,
        'consistent': float(score.consistent.mean()),
        'optimal': float(score.optimal.mean()),
        'errors': dict(zip(names, np.median(score.errors, axis=0).tolist(), strict=True)),
    }
