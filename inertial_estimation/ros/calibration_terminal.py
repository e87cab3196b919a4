# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Display of a calibration session on standard error, and its keys."""

import os
import select
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel

from inertial_estimation.calibration.collection import KEPT
from inertial_estimation.calibration.session import Conductor, Phase

PROCEED, AGAIN, STOP = '\n', 'r', 'q'
KEYS = 'Enter: continue    r: restart this data set    q: stop, to continue later'
PERIOD, LINE_PERIOD = 0.25, 2.0
"""Between two pictures on a terminal, and two lines elsewhere [s]."""


class Display:
    """Panel on a terminal, else a line now and then."""

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
        """Print the last notes, and restore the terminal."""
        self._print_notes()
        if self._watched:
            self._live.stop()

    def show(self, now: float, complaints: Sequence[str]) -> None:
        """Show the state, if it is time; now [s]."""
        self._print_notes()
        gone = now - self._shown_at
        if self._watched and gone >= PERIOD:
            self._shown_at = now
            self._live.update(self._panel(now, complaints), refresh=True)
        elif not self._watched and gone >= LINE_PERIOD:
            line = '; '.join((self._conductor.instruction(now), *complaints))
            if line != self._line:
                self._shown_at, self._line = now, line
                self._console.print(escape(line), soft_wrap=True)

    def _print_notes(self) -> None:
        """Print what happened."""
        notes = self._conductor.notes
        while notes:
            self._console.print(escape(notes.pop(0)), soft_wrap=True)

    def _panel(self, now: float, complaints: Sequence[str]) -> Any:
        """Return the panel of a terminal."""
        conductor, session = self._conductor, self._conductor.session
        title = f'data set {session.step + 1} of {len(session.plan.loads)}: {session.load.name}'
        lines = [f'[bold]{escape(conductor.instruction(now))}[/]', '']
        if conductor.phase is Phase.COLLECTING:
            lines += [*map(escape, figures(conductor)), '']
        lines += [f'[yellow]{escape(text)}[/]' for text in complaints]
        text = '\n'.join([*lines, f'[dim]{KEYS}[/]'])
        return Panel(text, title=escape(title), title_align='left')


def figures(conductor: Conductor) -> list[str]:
    """Return the figures of the open data set."""
    one = conductor.session.collection
    coverage, wanted = one.coverage(), conductor.session.plan.wanted
    found = coverage.orientations
    spreads = '-' if found is None else '  '.join(f'{x:.0%}' for x in found.spreads)
    counts = {why: n for why, n in one.counts().items() if why != KEPT}
    return [
        f'poses {coverage.counts.sum()} of {wanted.poses}; directions {coverage.n_directions} of '
        f'{wanted.directions}; missing {", ".join(coverage.missing) or "none"}',
        f'gravity spreads by {spreads} of g, limit {wanted.spread:.0%}; gap {coverage.gap:.0f}',
        f'now: {one.state or "-"}; left out: {counts or "none"}',
    ]


@contextmanager
def keys() -> Iterator[Any]:
    """Take single keys from standard input, of a terminal without waiting for Enter."""
    source = sys.stdin.fileno() if sys.stdin is not None else -1
    before = None
    if source >= 0 and os.isatty(source):
        import termios
        import tty

        before = termios.tcgetattr(source)
        tty.setcbreak(source)
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
            termios.tcsetattr(source, termios.TCSADRAIN, before)
