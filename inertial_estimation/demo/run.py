# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The demo: the embedded robot is pushed, and estimators with one and several IMUs follow.

Then it picks something up, and an identifier finds out what.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.demo.carrying import NEEDED, carry
from inertial_estimation.demo.display import Display
from inertial_estimation.demo.load_results import Carried
from inertial_estimation.demo.processes import INTERRUPTS
from inertial_estimation.demo.results import Estimator, Result, as_dict
from inertial_estimation.demo.scene import play
from inertial_estimation.errors import ConfigError
from inertial_estimation.output import check_writable, write_whole
from inertial_estimation.simulation.scenario import SCENES, carrying

LEAST_DURATION = 10.0
"""Below this little is left of a scene when all processes have started [s]."""
LONGEST_DURATION = 3600.0
"""Beyond this the robot's own limit would end a scene [s]."""
LARGEST_SEED = 2**31 - 1
"""What the parameter of the robot's node takes."""
TWIN = '_true_fts'
NODES = ('one_imu', 'several_imus')


def run(duration: float = 60.0, json_path: Path | None = None, *, seed: int = 0) -> int:
    """
    Run the demo.

    duration [s].
    """
    _check(duration, seed, json_path)
    config = find_config()
    estimators = [
        Estimator(name, EstimatorSettings.from_yaml(config, name).imus, name + TWIN)
        for name in NODES
    ]
    share, last = shares(duration)
    results: list[Result] = []
    carried: Carried | None = None
    with _interruptible(), Display(estimators) as display:
        for make_scenario in SCENES.values():
            scenario = make_scenario(share, seed)
            results += play(scenario, estimators, config, share, display)
        if last:
            carried = carry(carrying(last, seed), config, last, display)
        else:
            display.say(
                f"scene 'carrying' left out: it takes {NEEDED:g} s, the others "
                f'{LEAST_DURATION:g} s; take {LEAST_DURATION + NEEDED:g} s or more'
            )
        display.summarize(results, carried)
    if json_path is not None:
        found = {'seed': seed, **as_dict(results, carried)}
        write_whole(json_path, json.dumps(found, indent=2) + '\n')
    return 0


def shares(duration: float) -> tuple[float, float]:
    """
    Return how long scenes take.

    duration [s]; returns pushes, load [s].
    """
    load = NEEDED if duration >= NEEDED + LEAST_DURATION else 0.0
    return (duration - load) / len(SCENES), load


def find_config() -> Path:
    """Return the parameter file of the estimators."""
    installed = Path('share', 'inertial_estimation', 'config')
    prefixes = [sys.prefix, *os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)]
    folders = [
        Path(__file__).resolve().parents[2] / 'config',
        *(Path(prefix) / installed for prefix in prefixes if prefix),
    ]
    for folder in folders:
        if (folder / 'demo.yaml').is_file():
            return folder / 'demo.yaml'
    places = ', '.join(map(str, folders))
    raise ConfigError(f'demo.yaml is in none of {places}: install the package as a whole')


def _check(duration: float, seed: int, json_path: Path | None) -> None:
    """Refuse what would fail only at the end, or without a clear word."""
    if not duration >= LEAST_DURATION:
        raise ConfigError(f'a demo of {duration:g} s shows nothing: take {LEAST_DURATION:g} s')
    if duration > LONGEST_DURATION:
        raise ConfigError(f'a demo of {duration:g} s: take {LONGEST_DURATION:g} s at most')
    if not 0 <= seed <= LARGEST_SEED:
        raise ConfigError(f'the seed is {seed}: take one from 0 to {LARGEST_SEED}')
    if json_path is not None:
        check_writable(json_path)
    missing = [name for name in ('rclpy', 'rich', 'mujoco', 'icub_models') if not find_spec(name)]
    if missing:
        raise ConfigError(
            f'the demo needs {", ".join(missing)}: run `make demo`, which installs everything, or '
            "source ROS 2 and, in the checkout, run pip install '.[demo]'"
        )


@contextmanager
def _interruptible() -> Iterator[None]:
    """Treat the end of a session and of a service like ctrl-c, also in the background."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in INTERRUPTS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
