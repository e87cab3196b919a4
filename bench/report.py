# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tables and goals of benchmarks, for the terminal and as JSON, and calls timed side by side."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table as RichTable

from inertial_estimation.arrays import Array


@dataclass(frozen=True)
class Goal:
    """A figure with the limit that it is meant to keep."""

    name: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def reached(self) -> bool:
        """Tell whether the limit is kept."""
        return bool(self.value >= self.limit if self.at_least else self.value <= self.limit)


class Table(NamedTuple):
    """Figures in rows."""

    title: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]


def show(tables: Iterable[Table], goals: Sequence[Goal] = ()) -> None:
    """Print tables, and which goals are reached."""
    width = None if sys.stdout.isatty() else 120
    console = Console(file=sys.stdout, highlight=False, markup=False, width=width)
    for title, columns, rows in tables:
        drawn = RichTable(title=title, title_justify='left')
        for k, column in enumerate(columns):
            drawn.add_column(column, justify='right' if k else 'left')
        for row in rows:
            drawn.add_row(*(f'{x:.4g}' if isinstance(x, float) else str(x) for x in row))
        console.print(drawn)
    for goal in goals:
        sign = '>=' if goal.at_least else '<='
        verdict = 'reached' if goal.reached else 'MISSED'
        console.print(f'{verdict:8s} {goal.name}: {goal.value:.3g} ({sign} {goal.limit:g})')


def write(path: Path | None, tables: Iterable[Table], goals: Sequence[Goal] = ()) -> None:
    """Write tables and goals as JSON."""
    if path is None:
        return
    figures = {
        'tables': [
            {'title': one.title, 'columns': list(one.columns), 'rows': [list(r) for r in one.rows]}
            for one in tables
        ],
        'goals': [asdict(goal) | {'reached': goal.reached} for goal in goals],
    }
    path.write_text(json.dumps(figures, default=float, indent=1), encoding='utf-8')


class Timed(NamedTuple):
    """A call, and how many of them make a block."""

    call: Callable[[], object]
    block: int


def interleave(contenders: Mapping[str, Timed], rounds: int) -> dict[str, Array]:
    """Run one small block of each call after the other, again and again; (rounds, block) [us]."""
    durations = {name: np.empty((rounds, timed.block)) for name, timed in contenders.items()}
    for k in range(-1, rounds):
        for name, (call, block) in contenders.items():
            for j in range(block):
                start = perf_counter_ns()
                call()
                spent = perf_counter_ns() - start
                if k >= 0:
                    durations[name][k, j] = spent / 1000.0
    return durations


def ratio(over: Array, under: Array) -> float:
    """Return how much longer one call takes than another; over, under (rounds, block)."""
    return float(np.median(np.median(over, axis=1) / np.median(under, axis=1)))
