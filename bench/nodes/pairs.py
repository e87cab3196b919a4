# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What an identifier costs the estimator beside it, and itself.

Three processes: a robot that moves, the estimator, and the identifier, which is cleaned up in one
half of each pair, so that it listens to nothing, and goes on in the other with what it knew. Which
half comes first changes from pair to pair. What passes until it has published an update, and the
first second of each half after that, is not counted.

It is not stopped by a signal (SIGSTOP): beside a robot that sends some thousand messages a second
it often heard nothing when it went on, and what hears nothing costs nothing.
"""

import multiprocessing
import os
import time
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from bench.nodes.cycles import Job, _receive, running
from bench.nodes.json_job import answer
from bench.nodes.motion import identify, move
from bench.nodes.processes import START_TIMEOUT, estimate
from inertial_estimation.config import EstimatorSettings, IdentifierSettings
from inertial_estimation.errors import InertialEstimationError

SETTLE = 1.0
"""Of each half, not counted [s]."""
LONGEST_START = 60.0
"""Until the identifier has published, or has given all back [s]."""
POLL = 0.1
CUSHION = 60.0
"""For the last refit and two interpreters to end [s]."""


class Window(NamedTuple):
    """Half of a pair."""

    start_ns: int
    stop_ns: int
    processor: float
    """Time of the processor that the identifier took [s]."""


class PairedLoad(NamedTuple):
    """What pairs say."""

    pairs: int
    rate_hz: float
    """Joint states that the estimator took."""
    cycle_time_p50_off_us: float
    cycle_time_p50_on_us: float
    cycle_time_p99_off_us: float
    cycle_time_p99_on_us: float
    median_ratio: float
    """Median over the pairs of the ratio of medians, on over off."""
    processor_share: float
    """Of one core, by all threads of the identifier while it runs."""
    refits: int
    """While the identifier was measured."""
    updates: int
    """Published meanwhile."""


def measure_pairs(
    urdf: str, parameters: Mapping[str, Any], *, rate: int, pairs: int, seconds: float
) -> PairedLoad:
    """
    Run the estimator with and without the identifier beside it, in turn.

    seconds [s].
    """
    spawn = multiprocessing.get_context('spawn')
    stop, wanted, works = (spawn.Event() for _ in range(3))
    estimator = EstimatorSettings.from_dict(dict(parameters))
    with TemporaryDirectory() as folder:
        kept = {'state_file': str(Path(folder, 'identifier.json'))}
        identifier = IdentifierSettings.from_dict({**parameters, **kept})
        jobs: list[Job] = [
            (estimate, (estimator, urdf, stop)),
            (identify, (identifier, urdf, stop, wanted, works)),
            (move, (estimator, urdf, stop, rate)),
        ]
        with running(jobs) as (pipes, processes):
            wanted.set()
            _receive(pipes[2], 2 * START_TIMEOUT, 'robot')
            switch = Switch(processes[1], wanted, works)
            windows = [_pair(switch, seconds, on_first=not k % 2) for k in range(pairs)]
            stop.set()
            stamps, durations, *_ = _receive(pipes[0], CUSHION, 'estimator')
            refits, updates = _receive(pipes[1], CUSHION, 'identifier')
            for process in processes:
                process.join(SETTLE)
    return compared(windows, stamps, durations, refits, updates)


def compared(
    windows: list[tuple[Window, Window]],
    stamps: np.ndarray,
    durations: np.ndarray,
    refits: Sequence[int],
    updates: Sequence[int],
) -> PairedLoad:
    """
    Compare the cycles of both halves of pairs.

    stamps (n,) [ns]; durations (n,) [s].
    """
    halves = [
        [durations[(stamps >= half.start_ns) & (stamps < half.stop_ns)] for half in pair]
        for pair in windows
    ]
    if not halves or any(not len(half) for pair in halves for half in pair):
        raise InertialEstimationError('the estimator made no estimates in a part of the time')
    running = [half for _, half in windows]
    made, published = (
        [sum(half.start_ns <= stamp < half.stop_ns for stamp in stamps) for half in running]
        for stamps in (refits, updates)
    )
    if not all(made):
        raise InertialEstimationError(
            f'the identifier made no refit in {made.count(0)} of {len(made)} halves in which it '
            'ran: what it costs was not measured'
        )
    ratios = [float(np.median(on) / np.median(off)) for off, on in halves]
    off, on = (np.concatenate([pair[k] for pair in halves]) for k in range(2))
    span = sum(1e-9 * (half.stop_ns - half.start_ns) for pair in windows for half in pair)
    return PairedLoad(
        len(windows),
        (len(off) + len(on)) / span,
        *(1e6 * float(np.percentile(half, p)) for p in (50, 99) for half in (off, on)),
        float(np.median(ratios)),
        sum(half.processor for half in running)
        / sum(1e-9 * (half.stop_ns - half.start_ns) for half in running),
        sum(made),
        sum(published),
    )


class Switch(NamedTuple):
    """What runs the identifier, or has it give all back."""

    process: BaseProcess
    wanted: Event
    works: Event

    @property
    def processor_time(self) -> float:
        """Time of the processor that it has taken [s]."""
        return processor_time(int(self.process.pid or 0))

    def turn(self, on: bool) -> None:
        """Run it or not; return when that is so."""
        (self.wanted.set if on else self.wanted.clear)()
        deadline = time.monotonic() + LONGEST_START
        while self.works.is_set() != on:
            if not self.process.is_alive():
                raise InertialEstimationError('the process of the identifier has ended')
            if time.monotonic() > deadline:
                what = 'published nothing' if on else 'did not stop'
                raise InertialEstimationError(f'the identifier {what} for {LONGEST_START:g} s')
            time.sleep(POLL)


def _pair(switch: Switch, seconds: float, *, on_first: bool) -> tuple[Window, Window]:
    """Let the identifier run and rest; return the half without it, and the half with it."""
    found = {on: _half(switch, seconds, on) for on in (on_first, not on_first)}
    return found[False], found[True]


def _half(switch: Switch, seconds: float, on: bool) -> Window:
    """Return a half of a pair."""
    switch.turn(on)
    time.sleep(SETTLE)
    start, busy = time.time_ns(), switch.processor_time
    time.sleep(seconds)
    return Window(start, time.time_ns(), switch.processor_time - busy)


def processor_time(pid: int) -> float:
    """Return the time of the processor that all threads of a process have taken."""
    fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    # User and system time are fields 14 and 15; the name, up to the bracket, is the second.
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def main() -> int:
    """Compare, for callers without ROS: JSON in on standard input, JSON out on standard output."""
    return answer(lambda job: measure_pairs(**job)._asdict())
