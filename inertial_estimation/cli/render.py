# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The renderer of text, tables, findings and JSON, and progress bars."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inertial_estimation.findings import Finding, alike

Columns = Mapping[str, str | Callable[[Any], Any]]
"""By heading, the key of the values of a record, or a function of it."""
UNITS = {'n': 'N', 'nm': 'Nm', 's': 's', 'm': 'm', 'rad': 'rad', 'hz': 'Hz', 'kg': 'kg'}
"""Units by the last part of a key."""
TITLES = {
    key: f'{what}; counts, rate and gap are those of the whole log'
    for key, what in (('fts', 'FT sensors'), ('imus', 'IMUs'), ('joint_states', 'Joint states'))
}
"""By key; other titles are made of it."""
MAX_LIST = 4
"""Names in a cell; of more, the first and the last."""
WIDTH, MAX_CELL = 80, 36
"""Of a line, and of a cell that is not folded."""
COLOURS = ('cyan', 'yellow', 'red')
"""Of findings, by level."""


def show(*items: Any) -> None:
    """Print text and tables, None: nothing, in the width of the terminal, else in `WIDTH`."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDTH)
    # Written here, as rich would end the process by itself on a broken pipe.
    with console.capture() as captured:
        for item in items:
            if item is not None:
                console.print(item)
    lines = ''.join(f'{line.rstrip()}\n' for line in captured.get().splitlines())
    encoding = sys.stdout.encoding or 'utf-8'
    sys.stdout.write(lines.encode(encoding, 'replace').decode(encoding))
    sys.stdout.flush()


def escape(text: str) -> str:
    """Return text in which brackets mean brackets."""
    from rich.markup import escape

    return escape(text)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Any:
    """Return a table; columns of numbers are right-aligned."""
    from rich.table import Table

    drawn = Table(
        title=escape(title), title_justify='left', title_style='bold', box=None,
        padding=(0, 2, 0, 0),
    )  # fmt: skip
    body = [[cell(value) for value in row] for row in rows]
    for k, column in enumerate(columns):
        numbers = all(_is_number(row[k]) for row in body) and bool(body)
        drawn.add_column(
            escape(column), justify='right' if numbers else 'left', overflow='fold',
            no_wrap=k == 0 and not numbers,
        )  # fmt: skip
    for row in body:
        drawn.add_row(*map(escape, row))
    return drawn


def records_table(
    title: str, records: Iterable[Mapping[str, Any]], columns: Columns | Sequence[str] = ()
) -> Any:
    """Return a table of records, or None without any; of columns by key, those with values."""
    records = list(records)
    if not records:
        return None
    if not isinstance(columns, Mapping):
        keys = [k for k in columns or records[0] if any(cell(one[k]) != '-' for one in records)]
        columns = {heading(key): key for key in keys}
    rows = [
        [record[key] if isinstance(key, str) else key(record) for key in columns.values()]
        for record in records
    ]
    return table(title, list(columns), rows)


def all_tables(data: Mapping[str, Any], title: str = '') -> Iterator[Any]:
    """Yield a table of each mapping and of each list of records in some data, and within them."""
    for key, value in data.items():
        records = value
        if isinstance(value, Mapping) and all(isinstance(one, Mapping) for one in value.values()):
            records = [{'name': name, **one} for name, one in value.items()]
        # Findings have lines of their own.
        if not records or not _is_nested(records) or key == 'findings':
            continue
        name = heading(key) if title else TITLES.get(key, heading(key).capitalize())
        name = f'\n{title}: {name}' if title else f'\n{name}'
        if isinstance(records, Mapping):
            yield table(name, ('', 'value'), records.items())
            continue
        parts = [{k: v for k, v in one.items() if _is_nested(v)} for one in records]
        nested = {k for one in parts for k in one}
        for keys in _fitting(records, [key for key in records[0] if key not in nested]):
            yield records_table(name, records, keys)
            name = ''
        for one, part in zip(records, () if title else parts, strict=False):
            yield from all_tables(part, str(next(iter(one.values()))))


def _fitting(records: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> Iterator[list[str]]:
    """Yield keys of columns that fit a line, the first of them with each."""
    sizes = [
        min(max(map(len, [heading(key), *(cell(one[key]) for one in records)])), MAX_CELL) + 2
        for key in keys
    ]
    begin, room = 1, WIDTH - sizes[0]
    for k, size in enumerate(sizes[1:], start=1):
        if size > room:
            yield [keys[0], *keys[begin:k]]
            begin, room = k, WIDTH - sizes[0]
        room -= size
    yield [keys[0], *keys[begin:]]


def _is_nested(value: Any) -> bool:
    """Return true for a mapping, or a list of them."""
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)
    )


def heading(key: str) -> str:
    """Return the heading of a key: ``rms_force_n`` is 'rms force [N]'."""
    *words, last = key.removeprefix('n_').split('_')
    unit = f'[{UNITS[last]}]' if words and last in UNITS else last
    return ' '.join([*words, unit])


def cell(value: Any) -> str:
    """Return a value as text: four digits, a dash for what is not known."""
    if value is None or value == '' or (isinstance(value, float) and math.isnan(value)):
        return '-'
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    if isinstance(value, float):
        return f'{value:.4g}'
    if isinstance(value, list | tuple):
        if len(value) > MAX_LIST and not isinstance(value[0], float):
            return f'{cell(value[0])} … {cell(value[-1])} ({len(value)})'
        return ', '.join(map(cell, value)) or '-'
    return str(value)


def _is_number(text: str) -> bool:
    """Return true if a cell holds a number or a dash."""
    try:
        float(text.rstrip('%'))
    except ValueError:
        return text == '-'
    return True


def findings_lines(findings: Sequence[Finding]) -> list[str]:
    """Return lines with markup, the most severe first, those of the same code and level as one."""
    lines = []
    for first, others in alike(sorted(findings, key=lambda one: -one.level)):
        text = escape(f'{first}{f" (also {cell(others)})" if others else ""}')
        lines.append(f'[{COLOURS[first.level]}]{first.level.name.lower()}[/] {text}')
    return lines


def plain(value: Any) -> Any:
    """Return a value as JSON has it: null for what is not finite."""
    if hasattr(value, 'as_dict'):
        return plain(value.as_dict())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, 'tolist'):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_json(path: Path | None, data: Any) -> None:
    """Write figures as JSON, if a file is named."""
    if path is not None:
        import json

        from inertial_estimation.config.files import write_whole

        write_whole(path, json.dumps(plain(data), indent=2) + '\n')


@contextmanager
def progress_bars() -> Iterator[Callable[[str, float], None]]:
    """Show a bar for each stage of a job, on standard error so that results can be piped."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda what, done: None
        return
    with Progress(console=console, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def progress(stage: str, done: float) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=1.0)
            bars.update(tasks[stage], completed=done)

        yield progress
