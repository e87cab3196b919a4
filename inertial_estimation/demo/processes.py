# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Processes of the demo: they end with it, and an early end is an error."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from tempfile import TemporaryFile
from time import monotonic
from typing import IO, Any

from inertial_estimation.errors import InertialEstimationError

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-c, the end of a service, the end of a session."""
LAST_DOMAIN = 101
"""Ports of higher domains are used by the operating system."""
PATIENCE = 5.0
"""Time for a process to end after an interrupt [s]."""
LAST_LINES, LAST_WIDTH, LAST_BYTES = 20, 200, 10_000
"""Limits of the shown output of a process that has ended."""
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class DemoError(InertialEstimationError, RuntimeError):
    """A process ended too early, or does not respond."""


class Process:
    """A Python process of this package."""

    def __init__(
        self,
        name: str,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        reports: bool = False,
    ) -> None:
        self.name = name
        self._output: IO[bytes] = TemporaryFile()  # noqa: SIM115 - closed by finish
        self._text = b''
        # A session of its own: ctrl-c reaches the demo alone, which ends them in order.
        self._popen = Popen(
            [sys.executable, '-m', 'inertial_estimation_nodes', f'inertial_estimation.{module}',
             *arguments],
            stdin=DEVNULL,
            stdout=PIPE if reports else self._output,
            stderr=self._output,
            env=environment,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )  # fmt: skip

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._popen.poll() is not None

    @property
    def processor_time(self) -> float:
        """Processor time of all its threads so far [s]; 0 if it has ended."""
        try:
            fields = Path(f'/proc/{self._popen.pid}/stat').read_text().rpartition(')')[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def report(self, timeout: float) -> Any:
        """Return the newest report; None after the timeout [s]."""
        pipe = self._popen.stdout
        if pipe is None:
            return None
        with DefaultSelector() as selector:
            selector.register(pipe, EVENT_READ)
            if not selector.select(timeout):
                return None
        self._text += os.read(pipe.fileno(), 1 << 20)
        *lines, self._text = self._text.split(b'\n')
        return json.loads(lines[-1]) if lines else None

    def end(self) -> None:
        """Interrupt the process, and wait for its end."""
        self.interrupt()
        try:
            self._popen.communicate(timeout=PATIENCE)
        except TimeoutExpired:
            raise DemoError(f'{self.name} did not end within {PATIENCE:g} s') from None
        if self._popen.returncode:
            raise DemoError(self.obituary())

    def interrupt(self) -> None:
        """Send SIGINT."""
        if not self.ended:
            self._popen.send_signal(signal.SIGINT)

    def finish(self, timeout: float) -> None:
        """Wait for the end, and kill the process after the timeout [s]."""
        try:
            self._popen.wait(max(timeout, 0.0))
        except TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        if self._popen.stdout is not None:
            self._popen.stdout.close()
        self._output.close()

    def obituary(self) -> str:
        """Return the exit code or signal, and the last output."""
        code = self._popen.returncode
        cause = f'exit code {code}' if code >= 0 else f'signal {signal.Signals(-code).name}'
        return f'{self.name} ended with {cause}\n{self.output()}'

    def output(self) -> str:
        """Return the last lines that the process wrote."""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - LAST_BYTES))
        lines = self._output.read().decode(errors='replace').splitlines()
        return '\n'.join(
            f'  {line[:LAST_WIDTH]}' for line in lines[-LAST_LINES:] or ['(no output)']
        )


class Processes:
    """Processes that end together; a context manager."""

    def __init__(self) -> None:
        domain = str(1 + os.getpid() % LAST_DOMAIN)
        self._environment = {
            'ROS_DOMAIN_ID': domain,
            **os.environ,
            'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
        }
        self._all: list[Process] = []

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        with _postponed_signals():
            for process in self._all:
                process.interrupt()
            deadline = monotonic() + PATIENCE
            for process in self._all:
                process.finish(deadline - monotonic())

    def start(
        self, name: str, module: str, arguments: Sequence[str], *, reports: bool = False
    ) -> Process:
        """Start a process."""
        with _postponed_signals():
            process = Process(name, module, arguments, self._environment, reports=reports)
            self._all.append(process)
        return process

    def check(self) -> None:
        """Raise if a process has ended."""
        for process in self._all:
            if process.ended:
                raise DemoError(process.obituary())

    def output(self) -> str:
        """Return the last lines that each process wrote."""
        return '\n'.join(f'{p.name}:\n{p.output()}' for p in self._all)

    def processor_times(self) -> dict[str, float]:
        """Return the processor time of each process so far [s]."""
        return {process.name: process.processor_time for process in self._all}


@contextmanager
def _postponed_signals() -> Iterator[None]:
    """Postpone interrupts, so that no process is left behind."""
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in INTERRUPTS
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for arrived in came:
            signal.raise_signal(arrived)


def _end_with_parent() -> None:
    """Ask Linux to end this process when its parent is killed."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
