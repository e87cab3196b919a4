# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The tables of the demo: live on a terminal, now and then where nobody watches."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from types import TracebackType
from typing import Any

import numpy as np

from inertial_estimation.demo.results import Estimator, Figures, Result, goals, lateness
from inertial_estimation.sample import Array

PRINT_PERIOD = 5.0
"""Time between two tables where there is no terminal [s]."""
PLAIN_WIDTH = 120
FULL_HEIGHT = 34
"""Lines that the live tables take; where there are fewer, they show no moments."""
LIVE_HZ = 4

_ERRORS = (
    ('force rms [N]', 'force_rms_n', 2),
    ('  all contacts [N]', 'force_rms_all_contacts_n', 2),
    ('torque rms [Nm]', 'torque_rms_nm', 4),
)
_TWIN_ERROR = '  true FTs [N]'
_TIMES = (
    ('cycle p50/p99/max [us]', 'cycle_time_us', 0),
    ('age p50/p99/max [ms]', 'age_ms', 1),
)
_LEGEND = (
    'force rms: length of the error at a contact, over contacts and time; all contacts: of their '
    'errors as one vector; true FTs: of a twin with noise-free FT sensors; torque rms: over '
    'joints and time; CPU: of one processor'
)


class Display:
    """
    Where tables go; a context manager.

    Parameters
    ----------
    estimators : sequence of Estimator
        Those whose estimates are shown.

    """

    def __init__(self, estimators: Sequence[Estimator]) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(highlight=False)
        self._console = console
        if not console.is_terminal:
            self._console = Console(highlight=False, width=PLAIN_WIDTH)
        self._live = Live(console=console, refresh_per_second=LIVE_HZ, transient=True)
        self._estimators = estimators
        self._printed = 0.0

    def __enter__(self) -> Display:
        """Take the terminal, if there is one."""
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the terminal back."""
        self._live.stop()

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, markup=False, soft_wrap=True)

    def show(self, title: str, report: dict[str, Any]) -> None:
        """
        Show the state of a scene.

        Parameters
        ----------
        title : str
            Scene and time.
        report : dict
            What the watcher wrote.

        """
        if not report['wrenches']:
            return
        short = self._console.is_terminal and self._console.height < FULL_HEIGHT
        tables = _live_tables(title, report, self._estimators, short)
        if self._console.is_terminal:
            self._live.update(tables)
        elif monotonic() - self._printed >= PRINT_PERIOD:
            self._printed = monotonic()
            self._console.print(tables)

    def summarize(self, results: Sequence[Result]) -> None:
        """
        Print the results and what they mean.

        Parameters
        ----------
        results : sequence of Result
            Of all scenes.

        """
        self._live.stop()
        self._console.print(_summary(results))
        for text, met in goals(results):
            self.say(f'{"met   " if met else "MISSED"}  {text}')
        if late := lateness(results):
            self.say(late)


def _live_tables(
    title: str, report: dict[str, Any], estimators: Sequence[Estimator], short: bool
) -> Any:
    """Return the table of the contacts above the one of the estimators."""
    from rich.console import Group

    found = report['estimators']
    figures = [
        (_imus(estimator), found[estimator.name], found[estimator.twin])
        for estimator in estimators
    ]
    return Group(_contacts(title, report, estimators, short), _figures('', figures))


def _contacts(
    title: str, report: dict[str, Any], estimators: Sequence[Estimator], short: bool
) -> Any:
    """Return estimated against true wrenches: two lines for each contact."""
    table = _table(title, ['contact', '', 'truth', *map(_imus, estimators)])
    names = ['truth', *(estimator.name for estimator in estimators)]
    wrenches = np.array([report['wrenches'][name] for name in names])
    for k, contact in enumerate(report['contacts']):
        table.add_row(contact, 'N', *(_vector(force, 1) for force in wrenches[:, k, :3]))
        if not short:
            table.add_row('', 'Nm', *(_vector(moment, 2) for moment in wrenches[:, k, 3:]))
    return table


def _vector(values: Array, digits: int) -> str:
    """Return three numbers in columns."""
    return ' '.join(f'{value:5.{digits}f}' for value in values)


def _summary(results: Sequence[Result]) -> Any:
    """Return the table of the results."""
    columns = [
        (f'{result.scene}\n{_imus(result.estimator)}', result.figures, result.twin_figures)
        for result in results
    ]
    table = _figures('', columns)
    cpu = [(r.cpu_percent[r.estimator.name], sum(r.cpu_percent.values())) for r in results]
    table.add_row('CPU own/all [%]', *(f'{own:.0f}/{every:.0f}' for own, every in cpu))
    table.caption, table.caption_justify = _LEGEND, 'left'
    return table


def _figures(title: str, columns: Sequence[tuple[str, Figures, Figures]]) -> Any:
    """Return how good and how fast estimators are, from head, figures, figures of the twin."""
    from rich.markup import escape

    table = _table(title, ['', *(head for head, _, _ in columns)])
    rows = [
        (name, [f'{figures[key]:.{digits}f}' for _, figures, _ in columns])
        for name, key, digits in _ERRORS
    ]
    twins = [f'{twin["force_rms_n"]:.2f}' for _, _, twin in columns]
    rows.insert(1, (_TWIN_ERROR, twins))
    rows += [
        (name, [_slashed(figures[key], digits) for _, figures, _ in columns])
        for name, key, digits in _TIMES
    ]
    rows.append(('missed cycles', [str(figures['missed_cycles']) for _, figures, _ in columns]))
    for name, cells in rows:
        table.add_row(escape(name), *cells)
    return table


def _table(title: str, columns: Sequence[str]) -> Any:
    """Return an empty table."""
    from rich import box
    from rich.table import Table

    table = Table(title=title or None, title_justify='left', box=box.SIMPLE)
    for k, column in enumerate(columns):
        table.add_column(column, justify='left' if k == 0 else 'right')
    return table


def _imus(estimator: Estimator) -> str:
    """Return how many IMUs an estimator uses."""
    count = len(estimator.imus)
    return f'{count} IMU{"s" * (count > 1)}'


def _slashed(figures: Figures, digits: int) -> str:
    """Return figures between slashes; a dash while there are none."""
    if any(value != value for value in figures.values()):
        return '-'
    return '/'.join(f'{value:.{digits}f}' for value in figures.values())
