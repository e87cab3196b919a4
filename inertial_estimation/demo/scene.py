# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""One scene of the demo: robot, estimators and watcher, from start to end."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from inertial_estimation.demo.display import Display
from inertial_estimation.demo.processes import DemoError, Process, Processes
from inertial_estimation.demo.results import Estimator, Result
from inertial_estimation.simulation.scenario import Scenario

RATE_HZ = 250
"""Joint states per second: six processes keep real time with it on two processors."""
START_LIMIT = 60.0
"""How long it may take until every estimator has estimated something [s]."""
LEAST_WATCHED = 2.0
"""A scene goes on for this long after that, even if its time is over [s]."""
SPARE = START_LIMIT
"""The robot goes on for longer than a scene, which the demo ends [s]."""
REFRESH = 0.25
"""Time between two looks at the processes [s]."""
ROBOT = 'embedded_robot'
LAST_DOMAIN = 101
"""The ports of higher domains are those that the operating system hands out."""


def play(
    scenario: Scenario,
    estimators: Sequence[Estimator],
    config: Path,
    duration: float,
    display: Display,
) -> list[Result]:
    """
    Run one scene.

    Parameters
    ----------
    scenario : Scenario
        What happens.
    estimators : sequence of Estimator
        They and their twins run side by side.
    config : Path
        Their parameter file.
    duration : float
        From the start of the processes to the moment they are asked to end, if they started in
        time [s].
    display : Display
        Shows what goes on.

    Returns
    -------
    list of Result
        One for each estimator.

    Raises
    ------
    DemoError
        If a process ended too early, or an estimator did not begin in time.

    """
    nodes = [name for e in estimators for name in (e.name, e.twin)]
    display.say(
        f"scene '{scenario.name}', seed {scenario.seed}: robot and {len(nodes)} estimators start"
    )
    begin = monotonic()
    with Processes(_environment()) as processes:
        watcher = _start_estimators(processes, scenario, nodes, config)
        _start_robot(processes, scenario, estimators, duration)
        while _next_report(processes, watcher) is None:
            if monotonic() > begin + START_LIMIT:
                raise DemoError(f'no estimate within {START_LIMIT:g} s\n{processes.last_words()}')
        before = (monotonic(), processes.cpu_times())
        end = max(begin + duration, before[0] + LEAST_WATCHED)
        while (left := end - monotonic()) > 0.0:
            report = _next_report(processes, watcher)
            if report is not None:
                display.show(f"scene '{scenario.name}', {left:.0f} s left", report)
        cpu = _percent(before, (monotonic(), processes.cpu_times()))
        report = watcher.last_report()
    return [_result(scenario, estimator, report, cpu) for estimator in estimators]


def _next_report(processes: Processes, watcher: Process) -> dict[str, Any] | None:
    """Return the next report that knows all estimators, if it comes soon."""
    report: dict[str, Any] | None = watcher.report(REFRESH)
    processes.check()
    return report if report and report['estimators'] else None


def _environment() -> dict[str, str]:
    """Return the environment of the processes: this machine only, in a domain of their own."""
    domain = str(1 + os.getpid() % LAST_DOMAIN)
    return {
        'ROS_DOMAIN_ID': domain,
        **os.environ,
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
    }


def _start_estimators(
    processes: Processes, scenario: Scenario, nodes: list[str], config: Path
) -> Process:
    """Start watcher and estimators, which wait for the robot; return the watcher."""
    moving = [joint for joint, acceleration in scenario.motion.items() if acceleration]
    asked = {'robot': ROBOT, 'estimators': nodes, 'moving': moving}
    watcher = processes.start(
        'watcher', 'inertial_estimation.demo.watcher', [json.dumps(asked)], reports=True
    )
    contacts = f'contacts:=[{", ".join(scenario.contacts)}]'
    for node in nodes:
        processes.start(
            node,
            'inertial_estimation.ros.estimator_node',
            ['--ros-args', '-r', f'__node:={node}', '--params-file', str(config), '-p', contacts],
        )
    return watcher


def _start_robot(
    processes: Processes,
    scenario: Scenario,
    estimators: Sequence[Estimator],
    duration: float,
) -> None:
    """Start the robot, with the IMUs that anybody uses; it waits until all are there."""
    imus = dict.fromkeys(imu for estimator in estimators for imu in estimator.imus)
    given = {
        'scene': scenario.name,
        'rate': RATE_HZ,
        'seed': scenario.seed,
        'duration': duration + SPARE,
        'imus': f'[{", ".join(imus)}]',
        'audience': 1 + 2 * len(estimators),
    }
    parameters = [text for name, value in given.items() for text in ('-p', f'{name}:={value}')]
    processes.start(ROBOT, 'inertial_estimation.simulation.node', ['--ros-args', *parameters])


def _percent(
    first: tuple[float, Mapping[str, float]], last: tuple[float, Mapping[str, float]]
) -> dict[str, float]:
    """Return the processor time of each process between two moments, in percent."""
    (begin, before), (end, after) = first, last
    return {name: 100.0 * (after[name] - before[name]) / (end - begin) for name in before}


def _result(
    scenario: Scenario, estimator: Estimator, report: Mapping[str, Any], cpu: Mapping[str, float]
) -> Result:
    """Return the result of one estimator."""
    return Result(
        scene=scenario.name,
        estimator=estimator,
        figures=report['estimators'][estimator.name],
        twin_figures=report['estimators'][estimator.twin],
        joint_acceleration_rms=report['joint_acceleration_rms'],
        cpu_percent=cpu,
    )
