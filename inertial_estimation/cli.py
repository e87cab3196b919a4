# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The command ``inertial-estimation``: one verb for each job."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

from inertial_estimation.errors import ConfigError, InertialEstimationError
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import load_text


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: the process's own.

    Returns
    -------
    int
        Exit code: 0 done, 1 the job failed, 2 the call was wrong.

    """
    parser = _parser()
    chosen = parser.parse_args(arguments)
    try:
        return int(chosen.run(chosen) or 0)
    except InertialEstimationError as error:
        sys.stderr.write(f'inertial-estimation {chosen.verb}: {error}\n')
        return 1
    except ModuleNotFoundError as error:
        sys.stderr.write(
            f'inertial-estimation {chosen.verb}: {error}; the extras bags, demo and oracle bring '
            "what the verbs need: pip install '.[bags,demo,oracle]' in the checkout\n"
        )
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    """Return the parser with all verbs."""
    parser = argparse.ArgumentParser(prog='inertial-estimation', description=__doc__)
    verbs = parser.add_subparsers(dest='verb', metavar='VERB', required=True)
    for add in (_add_check, _add_replay, _add_demo, _add_bench):
        add(verbs)
    return parser


def _add_check(verbs: Any) -> None:
    """Add the verb that describes a robot."""
    verb = verbs.add_parser('check', help='what the package makes of a robot description')
    verb.add_argument('urdf', help='URDF file')
    verb.add_argument('--imu', action='append', metavar='FRAME', help='IMU in use (repeatable)')
    verb.add_argument('--fixed-link', default='', metavar='FRAME', help='frame at rest')
    verb.add_argument(
        '--config',
        metavar='YAML',
        help="instead: the node's parameter file",
    )
    verb.add_argument('--json', type=Path, metavar='FILE', help='write the findings for a machine')
    verb.set_defaults(run=_check)


def _check(chosen: argparse.Namespace) -> None:
    """Describe a robot."""
    from inertial_estimation.check import check_robot, check_urdf

    if bool(chosen.config) + bool(chosen.fixed_link) + bool(chosen.imu) > 1:
        raise ConfigError('give one of --imu, --fixed-link, --config: they exclude each other')
    if chosen.config:
        check = check_robot(_configured_robot(chosen.urdf, chosen.config))
    else:
        check = check_urdf(Path(chosen.urdf), imus=chosen.imu, fixed_link=chosen.fixed_link)
    console = _console()
    console.print(check.summary)
    for table in check.tables:
        console.print(_rich_table(*table))
    for warning in check.warnings:
        console.print(f'[yellow]warning:[/] {_escape(warning)}')
    _write_json(chosen.json, check.as_dict())


def _add_replay(verbs: Any) -> None:
    """Add the verb that runs the estimator over a bag."""
    verb = verbs.add_parser('replay', help='run the estimator over a ROS 2 bag, without ROS')
    verb.add_argument('bag', help='bag: its folder, or its mcap or db3 file')
    verb.add_argument('--robot', required=True, metavar='URDF', help='robot description file')
    verb.add_argument('--config', required=True, metavar='YAML', help="the node's parameter file")
    verb.add_argument(
        '--range', nargs=2, type=float, metavar=('FROM', 'TO'), default=(-inf, inf),
        help='what is estimated, in seconds after the first FT message',
    )  # fmt: skip
    verb.add_argument(
        '--offsets-from', choices=('settings', 'model', 'torques'), default='settings',
        help='where the constant FT offsets come from: the parameter file, the model, or the '
        'torques that the robot itself reports. The model presumes that the support is the only '
        'contact throughout the offset range, which nothing checks; it also has a say with '
        'torques, in what these do not tell, if a support is named or a link is fixed',
    )  # fmt: skip
    verb.add_argument(
        '--offset-range', nargs=2, type=float, metavar=('FROM', 'TO'), default=(-inf, inf),
        help='the part of the log from which the offsets are computed',
    )  # fmt: skip
    verb.add_argument(
        '--support', default='', metavar='FRAME',
        help='the only contact in the offset range; default: the fixed_link of the parameter file',
    )  # fmt: skip
    verb.add_argument('--out', type=Path, metavar='FOLDER', help='write wrenches and torques')
    verb.add_argument('--json', type=Path, metavar='FILE', help='write the figures for a machine')
    verb.set_defaults(run=_replay)


def _replay(chosen: argparse.Namespace) -> None:
    """Run the estimator over a bag."""
    from inertial_estimation.config import EstimatorSettings
    from inertial_estimation.logs.job import replay_bag
    from inertial_estimation.logs.offsets import OffsetRequest
    from inertial_estimation.logs.replay import TimeRange
    from inertial_estimation.logs.tables import make_tables

    if chosen.offsets_from == 'settings' and (chosen.support or chosen.offset_range[0] > -inf):
        raise ConfigError('--support and --offset-range need --offsets-from model or torques')
    with _progress() as progress:
        report = replay_bag(
            chosen.bag,
            Path(chosen.robot),
            EstimatorSettings.from_yaml(chosen.config),
            time_range=TimeRange(*chosen.range),
            offsets=OffsetRequest(
                chosen.offsets_from, TimeRange(*chosen.offset_range), chosen.support
            ),
            out=chosen.out,
            progress=progress,
        )
    console = _console()
    console.print(_escape(report.summary))
    for table in make_tables(report):
        console.print(_rich_table(*table))
    _write_json(chosen.json, report.as_dict())


def _add_demo(verbs: Any) -> None:
    """Add the verb that pushes a simulated robot."""
    verb = verbs.add_parser(
        'demo', help='a simulated iCub is pushed, estimated beside true forces'
    )
    verb.add_argument('--duration', type=float, default=60.0, metavar='S', help='whole run [s]')
    verb.add_argument('--seed', type=int, default=0, help='of motion, pushes and noise')
    verb.add_argument('--json', type=Path, metavar='FILE', help='write the results for a machine')
    verb.set_defaults(run=_demo)


def _demo(chosen: argparse.Namespace) -> int:
    """Push a simulated robot."""
    from inertial_estimation.demo.run import run

    return run(chosen.duration, chosen.json, seed=chosen.seed)


def _add_bench(verbs: Any) -> None:
    """Add the verb that measures times."""
    verb = verbs.add_parser('bench', help='times of the engine beside iDynTree; missed cycles')
    verb.add_argument(
        '--cycles', type=float, metavar='S', default=0.0,
        help='also run the node beside a bare reader for so long and compare what they miss [s]',
    )  # fmt: skip
    verb.add_argument('--rate', type=float, default=500.0, metavar='HZ', help='of the cycles')
    verb.add_argument('--json', type=Path, metavar='FILE', help='write the figures for a machine')
    verb.set_defaults(run=_bench)


def _bench(chosen: argparse.Namespace) -> None:
    """Measure times."""
    from inertial_estimation.benchmark.run import COLUMNS, GOAL_COLUMNS, run

    if chosen.cycles < 0 or chosen.rate <= 0:
        raise ConfigError('--cycles must be 0 or more, --rate more than 0')
    with _progress() as progress:
        benchmark = run(progress=lambda done: progress('timing', done))
    console = _console()
    console.print(_rich_table('Time per call', COLUMNS, benchmark.rows))
    goals = [goal.row for goal in benchmark.goals]
    console.print(_rich_table('Goals', GOAL_COLUMNS, goals))
    figures: dict[str, Any] = benchmark.as_dict()
    if chosen.cycles > 0:
        figures['cycles'] = loss = _cycles(chosen.cycles, chosen.rate)
        rows = [(name.replace('_', ' '), f'{value:.6g}') for name, value in loss.items()]
        console.print(_rich_table('Cycles of the node', ('figure', 'value'), rows))
    _write_json(chosen.json, figures)


def _cycles(duration: float, rate: float) -> dict[str, float]:
    """Compare what node and bare reader miss; what needs ROS is a process of its own."""
    import subprocess

    from inertial_estimation.benchmark.robots import CONTACTS, ONE_IMU
    from inertial_estimation.simulation.description import icub_urdf

    contacts = [contact.name for contact in CONTACTS]
    job = {
        'urdf': icub_urdf(),
        'parameters': {'imus': list(ONE_IMU), 'contacts': contacts},
        'rate': rate,
        'duration': duration,
    }
    done = subprocess.run(
        [sys.executable, '-c', 'from inertial_estimation.ros.bench import main; exit(main())'],
        input=json.dumps(job),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ConfigError('missed cycles could not be compared, see above; this needs ROS')
    return dict(json.loads(done.stdout))


@contextmanager
def _progress() -> Iterator[Callable[[str, float], None]]:
    """Show a bar for each stage of a job, on standard error so that results can be piped."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def show(what: str, done: float) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=1.0)
            bars.update(tasks[what], completed=done)

        yield show


def _configured_robot(urdf: str, config: str) -> Robot:
    """Return the robot as the node would build it."""
    from inertial_estimation.config import EstimatorSettings
    from inertial_estimation.estimation.building import build_robot

    return build_robot(EstimatorSettings.from_yaml(config), load_text(Path(urdf)))


def _console() -> Any:
    """Return where tables go; wide enough for them when nobody watches."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=160)


def _escape(text: str) -> str:
    """Return text in which brackets mean brackets."""
    from rich.markup import escape

    return escape(text)


def _rich_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    """Return a table for a person."""
    from rich.table import Table

    table = Table(title=title, title_justify='left')
    for column in columns:
        table.add_column(_escape(column), overflow='fold')
    for row in rows:
        table.add_row(*map(_escape, row))
    return table


def _write_json(path: Path | None, data: Any) -> None:
    """Write what was printed for a machine, if asked to."""
    if path is None:
        return
    try:
        path.write_text(json.dumps(data, indent=2) + '\n', encoding='utf-8')
    except OSError as error:
        raise ConfigError(f"cannot write '{path}': {error}") from error
