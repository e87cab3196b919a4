# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The tables of the demo: live on a terminal, now and then where nobody watches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from types import TracebackType
from typing import Any

import numpy as np

from inertial_estimation.demo.load_results import IDENTIFIER, NOT_UPDATED, UPDATED, Carried
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
    """Where tables go; a context manager."""

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
        """Show the state of a scene."""
        if not report['wrenches']:
            return
        short = self._console.is_terminal and self._console.height < FULL_HEIGHT
        self._refresh(_live_tables(title, report, self._estimators, short))

    def show_load(self, title: str, report: dict[str, Any]) -> None:
        """Show the state of the scene in which something is picked up."""
        self._refresh(_load(title, report))

    def _refresh(self, tables: Any) -> None:
        """Show tables, but not too often where they pile up."""
        if self._console.is_terminal:
            self._live.update(tables)
        elif monotonic() - self._printed >= PRINT_PERIOD:
            self._printed = monotonic()
            self._console.print(tables)

    def summarize(self, results: Sequence[Result], carried: Carried | None = None) -> None:
        """Print the results and what they mean."""
        self._live.stop()
        self._console.print(_summary(results))
        if carried is not None:
            self._console.print(_load(carried.scene, carried.report, carried.cpu_percent))
        for text, met in goals(results, carried):
            self.say(f'{"met   " if met else "MISSED"}  {text}')
        if carried is not None and carried.reason:
            self.say(f'{carried.scene}: {carried.reason}')
        if late := lateness(results, carried):
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


def _load(
    title: str, report: Mapping[str, Any], cpu_percent: Mapping[str, float] | None = None
) -> Any:
    """Return what is known of something that was picked up above the false forces."""
    from rich.console import Group
    from rich.markup import escape

    table = _table(title, ['', 'truth', 'identified'])
    rows = _identified(report) if 'load' in report else []
    rows.append(
        ('updates/inconsistent', '', f'{report["updates"]}/{report["inconsistent_updates"]}')
    )
    if cpu_percent is not None:
        cell = f'{cpu_percent[IDENTIFIER]:.0f}/{sum(cpu_percent.values()):.0f}'
        rows.append(('CPU identifier/all [%]', '', cell))
    for name, *cells in rows:
        table.add_row(escape(name), *cells)
    return Group(table, _false_forces(report)) if 'load' in report else table


def _identified(report: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return name, truth and what was found of the figures of a load."""
    true, found = report['load']['center_m'], report['payload_center_m']
    mass = _number(report['load']['mass_kg'], 3)
    return [
        ('the arm is heavier by [kg]', mass, _number(report['mass_gain_kg'], 3)),
        ('  for the first time after [s]', '', _number(report['followed_after_s'], 1)),
        ('picked up [kg]', mass, _number(report['payload_mass_kg'], 3)),
        ('  centre of mass in the hand [mm]', _millimetres(true), _millimetres(found)),
    ]


def _false_forces(report: Mapping[str, Any]) -> Any:
    """Return what estimators take a load for."""
    from rich.markup import escape

    spans = {'before': 'before', 'at_first': 'first second', 'now': 'last second'}
    table = _table('', [escape('false force at the hand [N]'), *spans.values()])
    for name, said in ((UPDATED, 'with updates'), (NOT_UPDATED, 'by the description')):
        forces = report['false_force_n'][name]
        table.add_row(said, *(_number(forces[span], 2) for span in spans))
    return table


def _millimetres(place: Sequence[float]) -> str:
    """Return a place given in metres."""
    return ' '.join(_number(1e3 * value, 1) for value in place)


def _number(value: float, digits: int) -> str:
    """Return a number; a dash while there is none."""
    return '-' if value != value else f'{value:.{digits}f}'


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
