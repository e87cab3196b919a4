# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""All that is shown of identification beside a working robot, as tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.background import situations
from bench.background.base_errors import BaseOf
from bench.background.carried_load import carried_load
from bench.background.standing_log import (
    ONSET,
    SECONDS,
    StandingLog,
    at_random,
    record,
)
from bench.background.standing_still import STRETCHES, standing_still
from bench.background.torque_errors import (
    DESCRIPTIONS,
    JOINTS,
    Run,
    run,
)
from bench.run import GOAL_COLUMNS, Goal
from bench.timing import Progress
from inertial_estimation.table import Table

Array = NDArray[np.float64]

SEEDS = (0, 1, 2, 3)
"""Of wrong descriptions."""
LATE = 30.0
"""From here on errors count [s]."""
SPANS = ((0.0, ONSET), (ONSET, 10.0), (10.0, 20.0), (20.0, LATE), (LATE, SECONDS))
"""Of the table over time [s]."""
GROUPS = {
    'shoulders': [k for k, name in enumerate(JOINTS) if 'shoulder' in name],
    'elbows': [k for k, name in enumerate(JOINTS) if 'elbow' in name],
}
HALF = 0.5
"""Of the error with the URDF: what is left with identified parameters at most."""


@dataclass(frozen=True, eq=False)
class Background:
    """What was found."""

    log: StandingLog
    runs: tuple[Run, ...]
    """One for each wrong description."""
    goals: tuple[Goal, ...]

    def tables(self) -> tuple[Table, ...]:
        """Return all for a person."""
        goals = Table('Working robots', GOAL_COLUMNS, tuple(goal.row for goal in self.goals))
        return _over_time(self.runs), _by_run(self.runs), _base(self.runs), goals

    def as_dict(self) -> dict[str, Any]:
        """Return all for a machine."""
        return {
            'goals': [
                {
                    'name': goal.name,
                    'value': _finite(goal.value),
                    'limit': float(goal.limit),
                    'reached': bool(goal.reached),
                }
                for goal in self.goals
            ],
            'joints': list(JOINTS),
            'descriptions': list(DESCRIPTIONS),
            'runs': [_run_dict(one) for one in self.runs],
        }


def run_all(
    *,
    seeds: Sequence[int] = SEEDS,
    seconds: float = SECONDS,
    stretches: int = STRETCHES,
    progress: Progress = lambda done: None,
) -> Background:
    """Seconds [s]."""
    log = record(at_random(seconds), seconds, progress=lambda done: progress(0.1 * done))
    runs = []
    for seed in seeds:
        runs.append(run(log, seed))
        progress(0.1 + 0.3 * len(runs) / len(seeds))
    goals = [_goal(runs)]
    for situation in (situations.drift, situations.push, situations.payload, carried_load):
        goals += situation()
        progress(0.4 + 0.02 * len(goals))
    goals += standing_still(stretches, progress=lambda done: progress(0.5 + 0.5 * done))
    return Background(log, tuple(runs), tuple(goals))


def rms(runs: Sequence[Run], first: float, last: float, joints: Sequence[int]) -> Array:
    """
    Return errors of torques over some time, of all wrong descriptions together.

    first, last [s]; returns (4,) [Nm].
    """
    kept = [
        one.squares[(one.times > first + HALF) & (one.times < last + HALF)][..., list(joints)]
        for one in runs
    ]
    found = np.concatenate(kept)
    if not len(found):
        return np.full(len(DESCRIPTIONS), np.nan)
    return np.asarray(np.sqrt(np.mean(found, axis=(0, 2))))


def _goal(runs: Sequence[Run]) -> Goal:
    """Return the one of the torques."""
    urdf, _, identified, _ = rms(runs, LATE, np.inf, range(len(JOINTS)))
    name = f'torques of shoulders and elbows after {LATE:g} s: error / that with the URDF'
    return Goal(name, float(identified / urdf), HALF)


def _over_time(runs: Sequence[Run]) -> Table:
    """Return errors span by span."""
    columns = ['seconds']
    for group in GROUPS:
        columns += [f'{group}, {name}' for name in DESCRIPTIONS]
    rows = []
    for first, last in SPANS:
        row = [f'{first:g} to {last:g}']
        for joints in GROUPS.values():
            row += [f'{value:.3f}' for value in rms(runs, first, last, joints)]
        rows.append(tuple(row))
    title = f'Torques [Nm]: rms error with each description; motion begins after {ONSET:g} s'
    return Table(title, tuple(columns), tuple(rows))


def _by_run(runs: Sequence[Run]) -> Table:
    """Return errors after a while by wrong description."""
    rows = []
    for one in runs:
        errors = rms([one], LATE, np.inf, range(len(JOINTS)))
        rows.append((
            str(one.seed),
            *(f'{value:.3f}' for value in errors),
            f'{errors[2] / errors[0]:.2f}',
            f'{one.offset_error:.2f}',
            ', '.join(one.refitted),
        ))  # fmt: skip
    columns = ('seed', *DESCRIPTIONS, 'ratio', 'force offset, off [N]', 'refitted')
    return Table(f'Torques [Nm] after {LATE:g} s, by wrong URDF', columns, tuple(rows))


def _base(runs: Sequence[Run]) -> Table:
    """Return how far base parameters are off over time."""
    seconds = [int(last) for _, last in SPANS]
    rows = []
    for one in runs:
        for part in one.base.submodels:
            errors = [part.error(part.found[min(s, len(part.found)) - 1]) for s in seconds]
            moments = part.of_moments()
            last = part.error(part.found[-1], moments)
            rows.append((
                str(one.seed),
                part.submodel.name,
                f'{part.error(part.described):.2f}',
                *(f'{error:.2f}' for error in errors),
                f'{part.error(part.described, moments):.2f}',
                f'{last:.2f}',
            ))  # fmt: skip
    after = (f'{s} s' for s in seconds)
    columns = ('seed', 'submodel', 'URDF', *after, 'masses and moments: URDF', 'at the end')
    title = 'Base parameters: rms error over the spread of wrong URDFs'
    return Table(title, columns, tuple(rows))


def _run_dict(one: Run) -> dict[str, Any]:
    """Return one run for a machine."""
    return {
        'seed': one.seed,
        'times': one.times.tolist(),
        'rms_errors': np.sqrt(one.squares).tolist(),
        'least_margin': _finite(one.least_margin),
        'refitted': list(one.refitted),
        'force_offset_error': one.offset_error,
        'base_parameters': {part.submodel.name: _base_dict(part) for part in one.base.submodels},
    }


def _base_dict(part: BaseOf) -> dict[str, Any]:
    """Return base parameters of a submodel for a machine."""
    return {
        'kept': list(part.names),
        'true': part.true.tolist(),
        'described': part.described.tolist(),
        'spread': part.spread.tolist(),
        'found': np.array(part.found).tolist(),
    }


def _finite(value: float) -> float | None:
    """Return what JSON can hold."""
    return float(value) if np.isfinite(value) else None
