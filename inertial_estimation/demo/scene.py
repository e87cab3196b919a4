# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A scene of the demo with pushes: robot, estimators and watcher, from start to end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from inertial_estimation.demo.display import Display
from inertial_estimation.demo.processes import Process, Processes
from inertial_estimation.demo.results import Estimator, Result
from inertial_estimation.demo.stage import (
    ROBOT,
    Seen,
    environment,
    start_node,
    start_robot,
    watch,
)
from inertial_estimation.simulation.scenario import Scenario

LEAST_WATCHED = 2.0
"""A scene goes on for this long after all have begun, even if its time is over [s]."""


def play(
    scenario: Scenario,
    estimators: Sequence[Estimator],
    config: Path,
    duration: float,
    display: Display,
) -> list[Result]:
    """
    Run one scene.

    duration [s].
    """
    nodes = [name for e in estimators for name in (e.name, e.twin)]
    display.say(
        f"scene '{scenario.name}', seed {scenario.seed}: robot and {len(nodes)} estimators start"
    )
    end = monotonic() + duration
    imus = [imu for estimator in estimators for imu in estimator.imus]
    with Processes(environment()) as processes:
        watcher = _start_estimators(processes, scenario, nodes, config)
        start_robot(processes, scenario, imus, duration, audience=1 + len(nodes))
        seen = watch(
            processes,
            watcher,
            lambda seconds, _: seconds >= LEAST_WATCHED and monotonic() >= end,
            lambda report: display.show(
                f"scene '{scenario.name}', {max(end - monotonic(), 0.0):.0f} s left", report
            ),
        )
    return [_result(scenario, estimator, seen) for estimator in estimators]


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
        start_node(processes, node, 'ros.estimator_node', config, contacts)
    return watcher


def _result(scenario: Scenario, estimator: Estimator, seen: Seen) -> Result:
    """Return the result of one estimator."""
    report, cpu = seen
    return Result(
        scene=scenario.name,
        estimator=estimator,
        figures=report['estimators'][estimator.name],
        twin_figures=report['estimators'][estimator.twin],
        joint_acceleration_rms=report['joint_acceleration_rms'],
        cpu_percent=cpu,
    )
