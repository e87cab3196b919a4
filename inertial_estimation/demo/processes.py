# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Processes of the demo: they end with it, and an early end is an error."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from subprocess import DEVNULL, STDOUT, Popen, TimeoutExpired
from tempfile import TemporaryFile
from time import monotonic

from inertial_estimation.errors import InertialEstimationError

LAST_DOMAIN = 101
"""Ports of higher domains are used by the operating system."""
PATIENCE = 5.0
"""Time for a process to end after an interrupt [s]."""
LAST_LINES, LAST_WIDTH, LAST_BYTES = 20, 200, 50_000
"""Limits of the output of a process that is read, and shown when it has ended."""
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-c, the end of a service, the end of a session."""
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class DemoError(InertialEstimationError, RuntimeError):
    """A process ended too early, or does not respond."""


class Process:
    """A Python process of this package."""

    def __init__(self, name: str, module: str, arguments: Sequence[str]) -> None:
        self.name, self._output = name, TemporaryFile()  # noqa: SIM115 - closed by finish
        domain = {'ROS_DOMAIN_ID': str(1 + os.getpid() % LAST_DOMAIN)}
        # A session of its own: ctrl-c reaches the demo alone, which ends them in order.
        self.popen = Popen(
            [sys.executable, '-m', 'inertial_estimation_nodes', f'inertial_estimation.{module}',
             *arguments],
            stdin=DEVNULL, stdout=self._output, stderr=STDOUT, start_new_session=True,
            env={**domain, **os.environ, 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'},
            preexec_fn=_end_with_parent,
        )  # fmt: skip

    def lines(self) -> list[str]:
        """Return the last lines that it wrote."""
        file = self._output.fileno()
        start = max(0, os.fstat(file).st_size - LAST_BYTES)
        return os.pread(file, LAST_BYTES, start).decode(errors='replace').splitlines()

    def report(self) -> float:
        """Return the newest line that is a number; 0: there is none."""
        for line in reversed(self.lines()):
            with suppress(ValueError):
                return float(line)
        return 0.0

    def end(self) -> None:
        """Interrupt it, and wait for its end."""
        self.popen.send_signal(signal.SIGINT)
        try:
            self.popen.wait(PATIENCE)
        except TimeoutExpired:
            raise DemoError(f'{self.name} did not end within {PATIENCE:g} s') from None
        if self.popen.returncode:
            raise self.error('ended')

    def error(self, what: str) -> DemoError:
        """Return an error with exit code or signal, and the last lines."""
        code = self.popen.poll()
        if code is not None:
            what += f' with exit code {code}' if code >= 0 else f' by {signal.Signals(-code).name}'
        lines = self.lines()[-LAST_LINES:] or ['(no output)']
        return DemoError('\n  '.join([f'{self.name} {what}', *(s[:LAST_WIDTH] for s in lines)]))


class Processes(list[Process]):
    """Processes that end together; a context manager."""

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self:
            process.popen.send_signal(signal.SIGINT)
        deadline = monotonic() + PATIENCE
        for process in self:
            try:
                process.popen.wait(max(deadline - monotonic(), 0.0))
            except TimeoutExpired:
                process.popen.kill()
                process.popen.wait()

    def start(self, name: str, module: str, arguments: Sequence[str]) -> Process:
        """Start a process."""
        # An interrupt in between would leave a process that is in no list, and lives on.
        signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
        try:
            self.append(Process(name, module, arguments))
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)
        return self[-1]

    def check(self) -> None:
        """Raise if a process has ended."""
        for process in self:
            if process.popen.poll() is not None:
                raise process.error('ended')


def _end_with_parent() -> None:
    """Ask Linux to end this process when its parent ends in any way; let it be interrupted."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
