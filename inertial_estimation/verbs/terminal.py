# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a verb shows: text, tables, and bars on long work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


def show(*shown: Any) -> None:
    """Print text and tables; wide enough for them when nobody watches."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=160)
    # Written here, as rich would end the process by itself if nobody reads on.
    with console.capture() as captured:
        for item in shown:
            console.print(item)
    sys.stdout.write(captured.get())
    sys.stdout.flush()


def escape(text: str) -> str:
    """Return text in which brackets mean brackets."""
    from rich.markup import escape

    return escape(text)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    """Return a table for a person."""
    from rich.table import Table

    drawn = Table(title=escape(title), title_justify='left')
    for column in columns:
        drawn.add_column(escape(column), overflow='fold')
    for row in rows:
        drawn.add_row(*map(escape, row))
    return drawn


@contextmanager
def progress_bars() -> Iterator[Callable[[str, float], None]]:
    """Show a bar for each stage of a job, on standard error so that results can be piped."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: dict[str, Any] = {}

        def show(what: str, done: float) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=1.0)
            bars.update(tasks[what], completed=done)

        yield show
