# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What of ``bench`` runs nodes: each measurement is a process of its own, which needs ROS."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli.arguments import INTERRUPTED
from inertial_estimation.cli.render import show, table
from inertial_estimation.errors import ConfigError

if TYPE_CHECKING:
    from bench.run import Goal

CYCLE_COLUMNS = (
    'joint states sent', 'missed by the node', 'by a bare reader', 'by the node alone',
    'rate [Hz]', 'cycle time p50 [us]', 'p99 [us]', 'max [us]', 'standard deviations sent',
    'time each [us]', 'added to cycle time',
)  # fmt: skip
IDENTIFIER_COLUMNS = (
    'joint states sent', 'received', 'samples', 'refits', 'published', 'share of a core',
    'longest stretch [ms]', 'longest refit [ms]',
)  # fmt: skip
PAIR_COLUMNS = (
    'pairs', 'rate [Hz]', 'cycle time p50 without [us]', 'with [us]', 'p99 without [us]',
    'with [us]', 'ratio of medians', 'share of a core', 'refits', 'published',
)  # fmt: skip


def measure(chosen: argparse.Namespace) -> tuple[dict[str, Any], list[Goal]]:
    """Measure and show what was asked for."""
    from bench.run import GOAL_COLUMNS

    figures: dict[str, Any] = {}
    goals: list[Goal] = []
    if chosen.cycles > 0:
        runs = _cycles(chosen.cycles, chosen.rate)
        figures['cycles'], figures['cycles_with_deviations'] = runs
        show(table('Cycles of the node', CYCLE_COLUMNS, list(map(_cycle_row, runs))))
    if chosen.identifier > 0:
        figures['identifier'] = load = _identifier(chosen.identifier, chosen.rate / 2)
        show(table('Identifier', IDENTIFIER_COLUMNS, [identifier_row(load)]))
    if chosen.pairs:
        figures['pairs'] = load = _pairs(chosen.pairs, chosen.pair_seconds, chosen.rate)
        goals += pair_goals(load)
        show(
            table('Estimator without and with the identifier', PAIR_COLUMNS, [pair_row(load)]),
            table('Goals of the pairs', GOAL_COLUMNS, [goal.row for goal in goals]),
        )
    return figures, goals


def _cycle_row(figures: dict[str, Any]) -> list[str]:
    """Return how the cycles of the node went as text."""
    *values, time, share = figures.values()
    row = [f'{v:.1f}' if isinstance(v, float) else str(v) for v in values]
    return [*row, '' if time is None else f'{time:.0f}', f'{share:.1%}' if time else '']


def _cycles(duration: float, rate: float) -> list[dict[str, Any]]:
    """Compare what node and bare reader miss; what needs ROS is a process of its own."""
    from bench.robots import CONTACTS, ONE_IMU
    from inertial_estimation.simulation.description import icub_urdf

    contacts = [contact.name for contact in CONTACTS]
    job = {
        'urdf': icub_urdf(),
        'parameters': {'imus': list(ONE_IMU), 'contacts': contacts},
        'rate': rate,
        'duration': duration,
    }
    done = in_ros('cycles', job)
    return list(done)


def _identifier(duration: float, rate: float) -> dict[str, Any]:
    """Measure what the identifier costs."""
    from inertial_estimation.simulation.description import icub_urdf

    parameters = {'fixed_link': 'root_link', 'velocity_source': 'filter'}
    job = {'urdf': icub_urdf(), 'parameters': parameters, 'rate': rate, 'duration': duration}
    return dict(in_ros('identifier', job))


def identifier_row(load: dict[str, Any]) -> list[str]:
    """Return what the identifier costs as text."""
    *counts, share, stretch, refit = load.values()
    return [*map(str, counts), f'{share:.1%}', f'{1e3 * stretch:.0f}', f'{1e3 * refit:.0f}']


def _pairs(pairs: int, seconds: float, rate: float) -> dict[str, Any]:
    """Compare the estimator with and without the identifier beside it."""
    from bench.robots import CONTACTS
    from inertial_estimation.simulation.description import icub_urdf

    fixed = 'root_link'
    contacts = [contact.name for contact in CONTACTS if contact.name != fixed]
    job = {
        'urdf': icub_urdf(),
        'parameters': {'fixed_link': fixed, 'contacts': contacts},
        'rate': round(rate),
        'pairs': pairs,
        'seconds': seconds,
    }
    return dict(in_ros('pairs', job))


def pair_row(load: dict[str, Any]) -> list[str]:
    """Return what pairs say as text."""
    pairs, *times, ratio, share, refits, updates = load.values()
    return [
        str(pairs), *(f'{value:.0f}' for value in times), f'{ratio:.3f}', f'{share:.1%}',
        str(refits), str(updates),
    ]  # fmt: skip


def pair_goals(load: dict[str, Any]) -> tuple[Goal, ...]:
    """Hold what pairs say against the goals."""
    from bench.run import Goal

    return (
        Goal('cycle time with the identifier / without', load['median_ratio'], 1.1),
        Goal("identifier's share of a core", load['processor_share'], 0.15),
    )


def in_ros(module: str, job: dict[str, Any]) -> Any:
    """Return what a process with ROS says to a job."""
    done = subprocess.run(
        [sys.executable, '-c', f'from bench.nodes.{module} import main; exit(main())'],
        input=json.dumps(job),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode == INTERRUPTED:
        raise KeyboardInterrupt
    if done.returncode:
        raise ConfigError('the nodes could not be measured, see above; this needs ROS')
    return json.loads(done.stdout)
