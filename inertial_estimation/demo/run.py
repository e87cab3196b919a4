# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Run the demo: a simulated iCub is pushed, then picks up a load that is identified.

Estimators with one and with several IMUs run as processes beside the simulated robot; their
recorded estimates are compared with the true values.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.demo.processes import INTERRUPTS, DemoError, Processes
from inertial_estimation.demo.scores import (
    AGE_LIMIT,
    LOAD_TIME,
    MISSED_LIMIT,
    Goal,
    Recording,
    push_goals,
    score_load,
)
from inertial_estimation.errors import CallError, ConfigError
from inertial_estimation.model.robot import Robot
from inertial_estimation.simulation.description import icub_urdf
from inertial_estimation.simulation.scenario import PICK_UP, SCENES, Scenario, carrying

RATE_HZ = 250
PERIOD = 0.5
"""Time between two looks at the newest estimates [s]."""
SHORTEST, LONGEST = 10.0, 600.0
"""Limits of the duration [s]; a longer recording would take over 500 MB."""
LOAD_SCENE = 1.0 + PICK_UP + LOAD_TIME
"""Length of the scene with the load [s]."""
SLOWEST = 3.0
"""Limit of the duration of a scene over that of its stamps."""
START_TIMEOUT = 60.0
"""Time for every estimator to publish [s]."""
ROBOT, IDENTIFIER = 'embedded_robot', 'parameter_identifier'
NOT_UPDATED = 'not_updated'
PUSHED, CARRYING = ('one_imu', 'several_imus'), ('updated', NOT_UPDATED)


def run(
    duration: float = 60.0,
    *,
    seed: int = 0,
    say: Callable[[str], object] = lambda line: None,
) -> dict[str, Any]:
    """Run all scenes [s]; return figures and goals, also to `say`."""
    if not SHORTEST <= duration <= LONGEST:
        raise CallError(f'duration {duration:g} s, expected {SHORTEST:g} to {LONGEST:g} s')
    if not 0 <= seed < 2**31:
        raise CallError(f'seed {seed}, expected 0 to {2**31 - 1}')
    missing = [name for name in ('rclpy', 'mujoco', 'icub_models') if not find_spec(name)]
    if missing:
        raise ConfigError(f"the demo needs {', '.join(missing)}: run 'make demo'")
    config = find_config()
    load_scene = LOAD_SCENE if duration >= LOAD_SCENE + SHORTEST else 0.0
    share = (duration - load_scene) / len(SCENES)
    scenes = [(make(share, seed), PUSHED, share) for make in SCENES.values()]
    if load_scene:
        scenes.append((carrying(load_scene, seed), CARRYING, load_scene))
    else:
        say(f'without the scene with a load, which needs --duration {LOAD_SCENE + SHORTEST:g}')
    figures: dict[str, Any] = {}
    goals: list[Goal] = []
    with _interruptible(), TemporaryDirectory() as folder:
        for scenario, estimators, time in scenes:
            say(f'scene {scenario.name}, seed {seed}')
            recording = _play(scenario, estimators, config, time, Path(folder))
            found = {name: recording.figures(name) for name in estimators}
            figures[scenario.name] = found
            for name, one in found.items():
                say(
                    f'  {name:14s} force {one["force_n"]:.2f} N, torque {one["torque_nm"]:.4f} '
                    f'Nm, age {1e3 * one["age_p50_s"]:.1f}/{1e3 * one["age_p99_s"]:.1f} ms, '
                    f'missed {one["missed_cycles"]:.0f}'
                )
            if scenario.loads:
                figures['load'], more = _load(recording, scenario)
                goals += more
    pushed = {scenario.name: figures[scenario.name] for scenario, _, _ in scenes[: len(SCENES)]}
    goals = push_goals(pushed) + goals
    for goal in goals:
        sign, verdict = ('<', '>')[goal.at_least], ('MISSED', 'met')[goal.reached]
        say(f'{verdict:6s} {goal.name}: {goal.value:.3g} ({sign}= {goal.limit:g})')
    every = [one for scenario, *_ in scenes for one in figures[scenario.name].values()]
    late, missed = (max(one[key] for one in every) for key in ('age_p50_s', 'missed_share'))
    if is_busy := late > AGE_LIMIT or missed > MISSED_LIMIT:
        say(
            f'this machine is too slow or busy: median age {1e3 * late:.0f} ms, '
            f'{missed:.0%} of the cycles missed'
        )
    return {
        'seed': seed,
        'busy': is_busy,
        'figures': figures,
        'goals': [{**goal._asdict(), 'reached': goal.reached} for goal in goals],
    }


def find_config() -> Path:
    """Return the parameter file of the nodes."""
    installed = Path('share', 'inertial_estimation', 'config')
    prefixes = [sys.prefix, *os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)]
    folders = [
        Path(__file__).resolve().parents[2] / 'config',
        *(Path(prefix) / installed for prefix in prefixes if prefix),
    ]
    for folder in folders:
        if (folder / 'demo.yaml').is_file():
            return folder / 'demo.yaml'
    raise ConfigError(f'no demo.yaml in {", ".join(map(str, folders))}')


def _play(
    scenario: Scenario,
    estimators: Sequence[str],
    config: Path,
    duration: float,
    folder: Path,
) -> Recording:
    """Run one scene [s]."""
    nodes = dict.fromkeys(estimators, 'ros.estimator_node')
    if scenario.loads:
        nodes[IDENTIFIER] = 'ros.identifier_node'
    file = folder / f'{scenario.name}.npz'
    asked = {'robot': ROBOT, 'estimators': list(estimators), 'identifier': IDENTIFIER,
             'file': str(file)}  # fmt: skip
    imus = [imu for name in estimators for imu in EstimatorSettings.from_yaml(config, name).imus]
    robot = {
        'scene': scenario.name, 'rate': RATE_HZ, 'seed': scenario.seed, 'audience': len(nodes),
        'duration': duration + START_TIMEOUT, 'imus': f'[{", ".join(dict.fromkeys(imus))}]',
    }  # fmt: skip
    contacts = f'contacts:=[{", ".join(scenario.contacts)}]'
    with Processes() as processes:
        recorder = processes.start('recorder', 'demo.recorder', [json.dumps(asked)])
        for name, module in nodes.items():
            given = [] if name == IDENTIFIER else ['-p', contacts]
            if name == NOT_UPDATED:
                given += ['-r', 'inertial_parameters:=no_inertial_parameters']
            processes.start(
                name, module,
                ['--ros-args', '-r', f'__node:={name}', '--params-file', str(config), *given],
            )  # fmt: skip
        words = [word for name, value in robot.items() for word in ('-p', f'{name}:={value}')]
        processes.start(ROBOT, 'simulation.node', ['--ros-args', *words])
        limit = monotonic() + START_TIMEOUT
        while not (report := recorder.report()):
            processes.check()
            if monotonic() > limit:
                silent = f'published nothing within {START_TIMEOUT:g} s'
                raise DemoError('\n'.join(str(process.error(silent)) for process in processes))
            sleep(PERIOD)
        start, first = monotonic(), report
        # By the stamps of the robot, which a busy machine makes late.
        while report < first + duration and monotonic() < start + SLOWEST * duration:
            sleep(PERIOD)
            report = recorder.report() or report
            processes.check()
        recorder.end()
    return Recording(file, ROBOT)


def _load(recording: Recording, scenario: Scenario) -> tuple[dict[str, Any], list[Goal]]:
    """Return figures and goals of the scene with the load."""
    (load,) = scenario.loads
    robot = Robot.from_urdf(icub_urdf())
    link = robot.link_names.index(load.frame)
    submodel = next(one for one in robot.submodels if link in one.links)
    names = tuple(robot.link_names[k] for k in submodel.links)
    mass = float(robot.parameters[list(submodel.links), 0].sum())
    return score_load(recording, IDENTIFIER, CARRYING[0], names, submodel.name, mass)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP like SIGINT."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in INTERRUPTS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
