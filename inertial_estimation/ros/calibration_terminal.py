# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a calibration session shows on a terminal, and the keys that it takes from there."""

import os
import select
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel

from inertial_estimation.calibration.collection import KEPT
from inertial_estimation.calibration.conductor import Conductor, Phase
from inertial_estimation.calibration.coverage_pictures import LEGEND, coverage_lines

PROCEED, AGAIN, STOP = '\n', 'r', 'q'
KEYS = 'Enter: go on    r: begin this data set anew    q: stop, to go on later'
PERIOD = 0.25
"""Time between two pictures [s]."""
LINE_PERIOD = 2.0
"""Time between two lines where nobody watches [s]."""


class Display:
    """Shows a session on standard error: a picture on a terminal, else a line now and then."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self._console = Console(stderr=True, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._watched = self._console.is_terminal
        self._shown_at = float('-inf')
        self._line = ''

    def __enter__(self) -> 'Display':
        """Begin."""
        if self._watched:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Say what is left to be said, and give the terminal back."""
        self._tell()
        if self._watched:
            self._live.stop()

    def show(self, now: float, complaints: Sequence[str]) -> None:
        """
        Show how things stand, if it is time.

        now [s].
        """
        self._tell()
        gone = now - self._shown_at
        if self._watched and gone >= PERIOD:
            self._shown_at = now
            self._live.update(self._picture(now, complaints), refresh=True)
        elif not self._watched and gone >= LINE_PERIOD:
            line = '; '.join((self._conductor.instruction(now), *complaints))
            if line != self._line:
                self._shown_at, self._line = now, line
                self._console.print(escape(line), soft_wrap=True)

    def _tell(self) -> None:
        """Say what happened."""
        notes = self._conductor.notes
        while notes:
            self._console.print(escape(notes.pop(0)), soft_wrap=True)

    def _picture(self, now: float, complaints: Sequence[str]) -> Any:
        """Return what is drawn."""
        conductor, session = self._conductor, self._conductor.session
        load = session.load
        title = f'data set {session.step + 1} of {len(session.plan.loads)}: {load.name}'
        lines = [f'[bold]{escape(conductor.instruction(now))}[/]', '']
        if conductor.phase is Phase.COLLECTING:
            lines += [*map(escape, figures(conductor)), '']
            lines += [*coverage_lines(session.collection.coverage()), LEGEND, '']
        lines += [f'[yellow]{escape(text)}[/]' for text in complaints]
        return Panel(Group(*lines, f'[dim]{KEYS}[/]'), title=escape(title), title_align='left')


def figures(conductor: Conductor) -> list[str]:
    """Return the figures of the open data set."""
    one = conductor.session.collection
    coverage, wanted = one.coverage(), conductor.session.plan.wanted
    found = coverage.orientations
    spreads = '-' if found is None else '  '.join(f'{x:.0%}' for x in found.spreads)
    gap = f'{coverage.gap:.0f}' if coverage.gap == coverage.gap else '-'
    counts = {why: n for why, n in one.counts().items() if why != KEPT}
    left_out = ', '.join(f'{n} {why}' for why, n in counts.items()) or 'none'
    return [
        f'still moments {coverage.n_moments} of {wanted.moments}; directions '
        f'{coverage.n_directions} of {wanted.directions}',
        f'gravity spreads by {spreads} of g, wanted {wanted.spread:.0%}; condition '
        f'{coverage.condition:.1f}',
        f'readings: third singular value {gap} times the fourth',
        f'now: {one.state or "-"}; readings left out: {left_out}',
    ]


@contextmanager
def keys() -> Iterator[Any]:
    """Take single keys from standard input, of a terminal without waiting for Enter."""
    source = sys.stdin.fileno() if sys.stdin is not None else -1
    before = _single_keys(source)
    open_ = source >= 0

    def read() -> str:
        nonlocal open_
        if not open_ or not select.select([source], [], [], 0.0)[0]:
            return ''
        data = os.read(source, 1024)
        open_ = bool(data)
        return data.decode(errors='replace').replace('\r', '\n')

    try:
        yield read
    finally:
        if before is not None:
            import termios

            termios.tcsetattr(source, termios.TCSADRAIN, before)


def _single_keys(source: int) -> Any:
    """Take keys one by one from a terminal; return how it was set before, None: it is none."""
    if source < 0 or not os.isatty(source):
        return None
    import termios
    import tty

    before = termios.tcgetattr(source)
    tty.setcbreak(source)
    return before
