# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which cycles the node misses that a bare reader of the same publisher does not.

Three processes: a publisher of ready-made bytes, the estimator, and a reader that does nothing
but note stamps, and subscribes to the standard deviations in a second, shorter run. Missing cycles
are found by comparing stamps with those that were sent since the node had its first result.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

import numpy as np

from bench.nodes.json_job import answer
from bench.nodes.processes import DRAIN, START_TIMEOUT, estimate, read, send
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import InertialEstimationError

SHARE_WITH_DEVIATIONS = 0.5
"""Part of the time that the node runs once more while somebody wants standard deviations."""
LAST_DOMAIN = 101
Job = tuple[Callable, tuple]
"""What a process does, and what it is given after its pipe and the ROS domain."""
LATE = 4.0
"""How many times as long as asked for a machine may take that cannot keep up with the rate."""


class CycleLoss(NamedTuple):
    """What became of the cycles that were sent."""

    sent: int
    """Joint states, from the first that both have received."""
    node_missed: int
    """Of these without an estimate."""
    reader_missed: int
    """Of these not received by the bare reader."""
    node_only_missed: int
    """Of these without an estimate although the bare reader received them."""
    rate: float
    """Rate at which they were really sent [Hz]."""
    duration_p50: float
    """Median duration of a cycle of the node, from decoded to published [s]."""
    duration_p99: float
    """Duration that one in a hundred exceeds [s]."""
    duration_max: float
    """Longest duration [s]."""
    deviations: int = 0
    """Instants whose standard deviations were published, in all of the cycles."""
    deviations_time: float = float('nan')
    """Mean time that they took, behind the cycle's publishing [s]."""
    deviations_share: float = 0.0
    """What they add to the time of the cycles, all in all."""
    cycles: int = 0
    """All of the node's cycles, also those before the first that is counted."""

    def as_dict(self) -> dict[str, float | None]:
        """Return the figures for a machine."""
        return {
            'sent': self.sent,
            'node_missed': self.node_missed,
            'reader_missed': self.reader_missed,
            'node_only_missed': self.node_only_missed,
            'rate_hz': self.rate,
            'cycle_time_p50_us': 1e6 * self.duration_p50,
            'cycle_time_p99_us': 1e6 * self.duration_p99,
            'cycle_time_max_us': 1e6 * self.duration_max,
            'deviations': self.deviations,
            'deviations_time_us': 1e6 * self.deviations_time if self.deviations else None,
            'deviations_share': self.deviations_share,
        }


def measure_cycle_loss(
    settings: EstimatorSettings,
    urdf: str,
    *,
    rate: float = 500.0,
    duration: float = 60.0,
    deviations: bool = False,
) -> CycleLoss:
    """
    Run the node and a bare reader beside each other and compare the stamps they saw.

    rate [Hz]; duration [s].
    """
    spawn = multiprocessing.get_context('spawn')
    stop, ready = spawn.Event(), spawn.Event()
    jobs: list[Job] = [
        (estimate, (settings, urdf, stop, ready, deviations)),
        (read, (settings, urdf, stop, deviations)),
        (send, (settings, urdf, rate, duration, ready)),
    ]
    with running(jobs) as (pipes, processes):
        # To find each other, and to be ready.
        sent = _receive(pipes[2], 2.0 * START_TIMEOUT + LATE * duration, 'publisher')
        time.sleep(DRAIN)
        stop.set()
        estimated, durations, *cost = _receive(pipes[0], START_TIMEOUT, 'estimator')
        received = _receive(pipes[1], START_TIMEOUT, 'reader')
        for process in processes:
            process.join(DRAIN)
    return _with_cost(
        _compare(sent, received, estimated, durations), float(durations.sum()), *cost
    )


def _with_cost(loss: CycleLoss, busy: float, count: int, seconds: float) -> CycleLoss:
    """Add what the standard deviations took, beside how long the cycles were busy."""
    if not count:
        return loss
    return loss._replace(
        deviations=count, deviations_time=seconds / count, deviations_share=seconds / busy
    )


@contextmanager
def running(jobs: Sequence[Job]) -> Iterator[tuple[list[Connection], list[BaseProcess]]]:
    """Run processes that talk to each other in a ROS domain of their own, and end them."""
    spawn, domain = multiprocessing.get_context('spawn'), 1 + os.getpid() % LAST_DOMAIN
    pipes: list[Connection] = []
    processes: list[BaseProcess] = []
    try:
        for job, arguments in jobs:
            mine, theirs = spawn.Pipe(duplex=False)
            process = spawn.Process(target=job, args=(theirs, domain, *arguments), daemon=True)
            _start_deaf(process)
            pipes.append(mine)
            processes.append(process)
        yield pipes, processes
    finally:
        for process in processes:
            process.kill()


def _start_deaf(process: BaseProcess) -> None:
    """Start a process that leaves ctrl-c to this one, from its first instant on."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.start()
    finally:
        signal.signal(signal.SIGINT, before)


def _compare(
    sent: np.ndarray, read: np.ndarray, estimated: np.ndarray, durations: np.ndarray
) -> CycleLoss:
    """Compare stamps, from the first that both have received."""
    if not len(estimated) or not len(read):
        raise InertialEstimationError(
            f'{len(sent)} joint states were sent, {len(estimated)} estimated, {len(read)} read'
        )
    counted = sent[sent >= max(estimated[0], read[0])]
    lost, unread = ~np.isin(counted, estimated), ~np.isin(counted, read)
    span = 1e-9 * (counted[-1] - counted[0])
    return CycleLoss(
        len(counted),
        int(lost.sum()),
        int(unread.sum()),
        int((lost & ~unread).sum()),
        float((len(counted) - 1) / span) if span > 0.0 else float('nan'),
        *(float(value) for value in np.percentile(durations, (50, 99, 100))),
        cycles=len(durations),
    )


def _receive(pipe: Connection, timeout: float, who: str):
    """Return what a process has to say."""
    if not pipe.poll(timeout):
        raise InertialEstimationError(f'the {who} has not answered within {timeout:.0f} s')
    try:
        return pipe.recv()
    except EOFError:
        raise InertialEstimationError(f'the {who} has ended without an answer') from None


def main() -> int:
    """Compare, for callers without ROS: JSON in on standard input, JSON out on standard output."""
    return answer(lambda job: _losses(**job))


def _losses(
    urdf: str, parameters: dict[str, Any], rate: float, duration: float
) -> list[dict[str, Any]]:
    """Compare without and with standard deviations."""
    settings = EstimatorSettings.from_dict(parameters)
    runs = {False: duration, True: SHARE_WITH_DEVIATIONS * duration}
    return [
        measure_cycle_loss(settings, urdf, rate=rate, duration=seconds, deviations=on).as_dict()
        for on, seconds in runs.items()
    ]
