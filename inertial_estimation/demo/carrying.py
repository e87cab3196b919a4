# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The scene of the demo in which a hand picks something up: an identifier works beside estimators.

One estimator takes over what is identified, the other one goes by the robot description.
"""

from __future__ import annotations

import json
from pathlib import Path
from time import monotonic

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.demo.display import Display
from inertial_estimation.demo.load_results import IDENTIFIER, NOT_UPDATED, UPDATED, Carried
from inertial_estimation.demo.load_scores import WITHIN
from inertial_estimation.demo.processes import Process, Processes
from inertial_estimation.demo.stage import (
    ROBOT,
    Report,
    environment,
    start_node,
    start_robot,
    watch,
)
from inertial_estimation.simulation.scenario import PICK_UP, Scenario

STARTING = 9.0
"""For processes to start in [s]."""
NEEDED = STARTING + PICK_UP + WITHIN
"""How long the scene takes [s]."""
PATIENCE = 30.0
"""How much longer it may take on a machine that is too slow or busy [s]."""


def carry(scenario: Scenario, config: Path, duration: float, display: Display) -> Carried:
    """
    Run the scene.

    duration [s].
    """
    display.say(
        f"scene '{scenario.name}', seed {scenario.seed}: robot, identifier and 2 estimators start"
    )
    end = monotonic() + duration

    def is_over(_: float, report: Report) -> bool:
        late = monotonic() - end
        return late > (0.0 if report['complete'] else PATIENCE)

    with Processes(environment()) as processes:
        watcher = _start_nodes(processes, scenario, config)
        imus = EstimatorSettings.from_yaml(config, UPDATED).imus
        start_robot(processes, scenario, imus, duration + PATIENCE, audience=3)
        seen = watch(
            processes,
            watcher,
            is_over,
            lambda report: display.show_load(
                f"scene '{scenario.name}', {max(end - monotonic(), 0.0):.0f} s left", report
            ),
        )
    return Carried(scenario.name, *seen)


def _start_nodes(processes: Processes, scenario: Scenario, config: Path) -> Process:
    """Start watcher, identifier and estimators, which wait for the robot; return the watcher."""
    (load,) = scenario.loads
    asked = {
        'robot': ROBOT,
        'identifier': IDENTIFIER,
        'estimators': [UPDATED, NOT_UPDATED],
        'config': str(config),
        'link': load.frame,
    }
    watcher = processes.start(
        'watcher', 'inertial_estimation.demo.load_watcher', [json.dumps(asked)], reports=True
    )
    contacts = f'contacts:=[{", ".join(scenario.contacts)}]'
    for node in (UPDATED, NOT_UPDATED):
        start_node(processes, node, 'ros.estimator_node', config, contacts)
    start_node(processes, IDENTIFIER, 'ros.identifier_node', config)
    return watcher
