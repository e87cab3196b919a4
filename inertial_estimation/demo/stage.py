# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What scenes of the demo have in common: robot, nodes and watcher, from start to end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from inertial_estimation.demo.processes import DemoError, Process, Processes
from inertial_estimation.simulation.scenario import Scenario

RATE_HZ = 250
"""Joint states per second: six processes keep real time with it on two processors."""
START_LIMIT = 60.0
"""How long it may take until every estimator has estimated something [s]."""
SPARE = START_LIMIT
"""The robot goes on for longer than a scene, which the demo ends [s]."""
REFRESH = 0.25
"""Time between two looks at the processes [s]."""
ROBOT = 'embedded_robot'
LAST_DOMAIN = 101
"""The ports of higher domains are those that the operating system hands out."""

Report = dict[str, Any]


class Seen(NamedTuple):
    """What is known when a scene is over."""

    report: Report
    """The watcher's last one."""
    cpu_percent: dict[str, float]
    """Of one processor, by process."""


def environment() -> dict[str, str]:
    """Return the environment of the processes: this machine only, in a domain of their own."""
    domain = str(1 + os.getpid() % LAST_DOMAIN)
    return {
        'ROS_DOMAIN_ID': domain,
        **os.environ,
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
    }


def start_node(
    processes: Processes, name: str, module: str, config: Path, *parameters: str
) -> None:
    """Start a node, which waits for the robot."""
    given = [text for parameter in parameters for text in ('-p', parameter)]
    arguments = ['--ros-args', '-r', f'__node:={name}', '--params-file', str(config), *given]
    processes.start(name, f'inertial_estimation.{module}', arguments)


def start_robot(
    processes: Processes, scenario: Scenario, imus: Iterable[str], duration: float, audience: int
) -> None:
    """Duration [s]."""
    given = {
        'scene': scenario.name,
        'rate': RATE_HZ,
        'seed': scenario.seed,
        'duration': duration + SPARE,
        'imus': f'[{", ".join(dict.fromkeys(imus))}]',
        'audience': audience,
    }
    parameters = [text for name, value in given.items() for text in ('-p', f'{name}:={value}')]
    processes.start(ROBOT, 'inertial_estimation.simulation.node', ['--ros-args', *parameters])


def watch(
    processes: Processes,
    watcher: Process,
    is_over: Callable[[float, Report], bool],
    show: Callable[[Report], object],
) -> Seen:
    """Follow a scene to its end."""
    limit = monotonic() + START_LIMIT
    while (report := _next_report(processes, watcher)) is None:
        if monotonic() > limit:
            raise DemoError(f'no estimate within {START_LIMIT:g} s\n{processes.last_words()}')
    before = (monotonic(), processes.cpu_times())
    while not is_over(monotonic() - before[0], report):
        new = _next_report(processes, watcher)
        if new is not None:
            report = new
            show(report)
    cpu = _percent(before, (monotonic(), processes.cpu_times()))
    return Seen(watcher.last_report(), cpu)


def _next_report(processes: Processes, watcher: Process) -> Report | None:
    """Return the next report that knows all estimators, if it comes soon."""
    report: Report | None = watcher.report(REFRESH)
    processes.check()
    return report if report and report['estimators'] else None


def _percent(
    first: tuple[float, Mapping[str, float]], last: tuple[float, Mapping[str, float]]
) -> dict[str, float]:
    """Return the processor time of each process between two moments, in percent."""
    (begin, before), (end, after) = first, last
    return {name: 100.0 * (after[name] - before[name]) / (end - begin) for name in before}
