# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tables and goals of benchmarks, for the terminal and as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table as RichTable


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
    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 120)
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
