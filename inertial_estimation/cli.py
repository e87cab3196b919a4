# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The command ``inertial-estimation``: one verb for each job."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Any

from inertial_estimation.errors import ConfigError, InertialEstimationError, ModelError
from inertial_estimation.output import check_writable, write_whole

INTERRUPTED, PIPE_BROKEN = 130, 141
"""What a shell reports of a process that SIGINT or SIGPIPE ended."""
EXTRAS = {'replay': 'bags', 'demo': 'demo', 'bench': 'demo,oracle'}
"""What a verb needs beyond what every installation has."""
CYCLE_COLUMNS = (
    'joint states sent', 'missed by the node', 'by a bare reader', 'by the node alone',
    'rate [Hz]', 'cycle time p50 [us]', 'p99 [us]', 'max [us]', 'standard deviations sent',
    'time each [us]', 'added to cycle time',
)  # fmt: skip


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
        Exit code: 0 done, 1 the job failed, 2 the call was wrong, 130 interrupted, 141 whoever
        read the output stopped reading.

    """
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes once more at its end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_BROKEN


def _run(arguments: Sequence[str] | None) -> int:
    """Run a verb; say in one line why it failed."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if chosen.verb is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        return int(chosen.run(chosen) or 0)
    except BrokenPipeError:
        raise
    except (InertialEstimationError, OSError) as error:
        said = str(error)
    except ModuleNotFoundError as error:
        said = f'{error}: {_install_advice(chosen.verb)}'
    except KeyboardInterrupt:
        return INTERRUPTED
    # Readers of YAML answer in several lines.
    sys.stderr.write(f'inertial-estimation {chosen.verb}: {" ".join(said.split())}\n')
    return 1


def _install_advice(verb: str) -> str:
    """Say how to get what a verb needs."""
    what = f"'.[{EXTRAS[verb]}]'" if verb in EXTRAS else '.'
    return f'in the checkout, run pip install {what}'


def _parser() -> argparse.ArgumentParser:
    """Return the parser with all verbs."""
    parser = argparse.ArgumentParser(
        prog='inertial-estimation',
        description='External wrenches and joint torques from distributed force/torque sensors '
        'and IMUs: one verb for each job.',
        epilog='options and an example of a verb: inertial-estimation VERB --help',
    )
    verbs = parser.add_subparsers(dest='verb', metavar='VERB')
    for add in (_add_check, _add_replay, _add_demo, _add_bench):
        add(verbs)
    return parser


def _add_verb(verbs: Any, name: str, job: str, example: str) -> argparse.ArgumentParser:
    """Add a verb that may write JSON."""
    verb: argparse.ArgumentParser = verbs.add_parser(
        name, help=job, description=job, epilog=f'example: inertial-estimation {name} {example}'
    )
    verb.add_argument(
        '--json', type=Path, metavar='FILE',
        help='also write what is found for a machine (default: no file)',
    )  # fmt: skip
    return verb


def _add_check(verbs: Any) -> None:
    """Add the verb that describes a robot."""
    verb = _add_verb(
        verbs, 'check', 'what the package makes of a robot description',
        'robot.urdf --imu torso_imu --contacts l_foot r_foot',
    )  # fmt: skip
    verb.add_argument('urdf', metavar='URDF', help='robot description file')
    verb.add_argument(
        '--imu', action='append', metavar='FRAME',
        help='IMU in use, repeatable (default: all that the description has tags of)',
    )  # fmt: skip
    verb.add_argument(
        '--fixed-link', default='', metavar='FRAME',
        help='instead of IMUs: frame at rest (default: none)',
    )  # fmt: skip
    verb.add_argument(
        '--config', metavar='YAML',
        help="instead of both: the node's parameter file (default: none)",
    )  # fmt: skip
    verb.add_argument(
        '--contacts', nargs='+', default=[], metavar='FRAME',
        help='where the environment may touch the robot, a full wrench each: tells what every '
        "torque and external wrench rests on (default: the parameter file's, if there is one)",
    )  # fmt: skip
    verb.set_defaults(run=_check)


def _check(chosen: argparse.Namespace) -> None:
    """Describe a robot."""
    from inertial_estimation.building import build_contacts, build_robot
    from inertial_estimation.check import check_robot, check_urdf
    from inertial_estimation.config import EstimatorSettings
    from inertial_estimation.estimation.contacts import Contact

    if bool(chosen.config) + bool(chosen.fixed_link) + bool(chosen.imu) > 1:
        raise ConfigError('give one of --imu, --fixed-link, --config: they exclude each other')
    _check_writable(chosen.json)
    urdf = _load_urdf(chosen.urdf)
    contacts = [Contact(frame) for frame in chosen.contacts]
    with _naming(chosen.urdf):
        if chosen.config:
            settings = EstimatorSettings.from_yaml(chosen.config)
            contacts = contacts or build_contacts(settings)
            source = settings.angular_acceleration_source
            check = check_robot(build_robot(settings, urdf), (), contacts, source)
        else:
            check = check_urdf(
                urdf, imus=chosen.imu, fixed_link=chosen.fixed_link, contacts=contacts
            )
    _write_json(chosen.json, check.as_dict())
    warnings = [f'[yellow]warning:[/] {_escape(warning)}' for warning in check.warnings]
    tables = [_rich_table(*table) for table in check.tables]
    _print(_escape(check.summary), *tables, *warnings)


def _add_replay(verbs: Any) -> None:
    """Add the verb that runs the estimator over a bag."""
    verb = _add_verb(
        verbs, 'replay', 'run the estimator over a ROS 2 bag, without ROS',
        'walk.mcap --robot robot.urdf --config robot.yaml --range 5 20 --out results',
    )  # fmt: skip
    verb.add_argument('bag', metavar='BAG', help='bag: its folder, or its mcap or db3 file')
    verb.add_argument('--robot', required=True, metavar='URDF', help='robot description file')
    verb.add_argument('--config', required=True, metavar='YAML', help="the node's parameter file")
    verb.add_argument(
        '--range', nargs=2, type=float, metavar=('FROM', 'TO'), default=(-inf, inf),
        help='what is estimated, in seconds after the first FT message (default: all)',
    )  # fmt: skip
    verb.add_argument(
        '--offsets-from', choices=('settings', 'model', 'torques'), default='settings',
        help='where the constant FT offsets come from: the parameter file, the model, or the '
        'torques that the robot itself reports. The model presumes that the support is the only '
        'contact throughout the offset range, of which only a second foot on the ground is '
        'noticed; it also has a say with torques, in what these do not tell, if a support is '
        'named or a link is fixed (default: %(default)s)',
    )  # fmt: skip
    verb.add_argument(
        '--offset-range', nargs=2, type=float, metavar=('FROM', 'TO'), default=(-inf, inf),
        help='the part of the log from which the offsets are computed, in seconds as above '
        '(default: all)',
    )  # fmt: skip
    verb.add_argument(
        '--support', default='', metavar='FRAME',
        help='the only contact in the offset range (default: fixed_link of the parameter file)',
    )  # fmt: skip
    verb.add_argument(
        '--out', type=Path, metavar='FOLDER',
        help='new folder for a bag with wrenches and torques (default: none is written)',
    )  # fmt: skip
    verb.add_argument(
        '--through', nargs='+', default=[], metavar='JOINT',
        help='joints whose whole wrench, what the parent link does to the child link, goes into '
        'that bag (default: none)',
    )  # fmt: skip
    verb.set_defaults(run=_replay)


def _replay(chosen: argparse.Namespace) -> None:
    """Run the estimator over a bag."""
    from inertial_estimation.config import EstimatorSettings
    from inertial_estimation.logs.job import replay_bag
    from inertial_estimation.logs.offsets import OffsetRequest
    from inertial_estimation.logs.recording import TimeRange
    from inertial_estimation.logs.tables import make_tables

    if chosen.offsets_from == 'settings' and (chosen.support or chosen.offset_range[0] > -inf):
        raise ConfigError('--support and --offset-range need --offsets-from model or torques')
    if chosen.through and chosen.out is None:
        raise ConfigError('--through writes wrenches into a bag: name its folder with --out')
    if chosen.json and chosen.out not in chosen.json.parents:
        _check_writable(chosen.json)
    urdf = _load_urdf(chosen.robot)
    with _progress() as progress:
        report = replay_bag(
            chosen.bag,
            urdf,
            EstimatorSettings.from_yaml(chosen.config),
            time_range=TimeRange(*chosen.range),
            offsets=OffsetRequest(
                chosen.offsets_from, TimeRange(*chosen.offset_range), chosen.support
            ),
            out=chosen.out,
            through=chosen.through,
            progress=progress,
        )
    _write_json(chosen.json, report.as_dict())
    _print(_escape(report.summary), *(_rich_table(*table) for table in make_tables(report)))


def _add_demo(verbs: Any) -> None:
    """Add the verb that pushes a simulated robot."""
    verb = _add_verb(
        verbs, 'demo', 'a simulated iCub is pushed, estimated beside true forces',
        '--duration 20 --json demo.json',
    )  # fmt: skip
    verb.add_argument(
        '--duration', type=float, default=60.0, metavar='S',
        help='whole run [s] (default: %(default)g)',
    )  # fmt: skip
    verb.add_argument(
        '--seed', type=int, default=0, help='of motion, pushes and noise (default: %(default)d)'
    )
    verb.set_defaults(run=_demo)


def _demo(chosen: argparse.Namespace) -> int:
    """Push a simulated robot."""
    from inertial_estimation.demo.run import run

    return run(chosen.duration, chosen.json, seed=chosen.seed)


def _add_bench(verbs: Any) -> None:
    """Add the verb that measures times."""
    verb = _add_verb(
        verbs, 'bench',
        'times beside iDynTree; derivative filters; cost of what is neglected; missed cycles',
        '--cycles 60 --rate 500 --json bench.json',
    )  # fmt: skip
    verb.add_argument(
        '--cycles', type=float, metavar='S', default=0.0,
        help='also run the node beside a bare reader for so long, then for half as long with '
        'standard deviations subscribed, and compare what they miss [s] '
        '(default: %(default)g, not at all)',
    )  # fmt: skip
    verb.add_argument(
        '--rate', type=float, default=500.0, metavar='HZ',
        help='of the cycles [Hz] (default: %(default)g)',
    )  # fmt: skip
    verb.add_argument(
        '--sensors', metavar='URDF',
        help='robot whose accelerometers and gyroscopes tell what it costs to neglect '
        'accelerations (default: iCubGenova02 of icub-models)',
    )  # fmt: skip
    verb.set_defaults(run=_bench)


def _bench(chosen: argparse.Namespace) -> None:
    """Measure times."""
    from inertial_estimation.benchmark import derivatives, neglect
    from inertial_estimation.benchmark.run import COLUMNS, GOAL_COLUMNS, run

    if not (0 <= chosen.cycles < inf and 0 < chosen.rate < inf):
        raise ConfigError('--cycles must be 0 or more, --rate more than 0, both finite')
    if chosen.cycles and find_spec('rclpy') is None:
        raise ConfigError('--cycles needs ROS: source it, or leave the option out')
    _check_writable(chosen.json)
    missing = [name for name in ('icub_models', 'idyntree') if find_spec(name) is None]
    if missing:
        raise ConfigError(f'bench needs {", ".join(missing)}: {_install_advice("bench")}')
    costs = neglect.measure(_load_urdf(chosen.sensors) if chosen.sensors else neglect.urdf())
    with _progress() as progress:
        benchmark = run(progress=lambda done: progress('timing', done))
        scores = derivatives.compare(progress=lambda done: progress('derivatives', done))
    goals = [goal.row for goal in benchmark.goals]
    _print(
        _rich_table('Time per call', COLUMNS, benchmark.rows),
        _rich_table('Goals', GOAL_COLUMNS, goals),
        _rich_table(derivatives.TITLE, derivatives.COLUMNS, [score.row for score in scores]),
        _rich_table(neglect.TITLE, neglect.columns(costs), [cost.row for cost in costs]),
    )
    figures: dict[str, Any] = benchmark.as_dict()
    figures['derivatives'] = derivatives.as_dict(scores)
    figures['neglect'] = [cost.as_dict() for cost in costs]
    if chosen.cycles > 0:
        runs = _cycles(chosen.cycles, chosen.rate)
        figures['cycles'], figures['cycles_with_deviations'] = runs
        _print(_rich_table('Cycles of the node', CYCLE_COLUMNS, list(map(_cycle_row, runs))))
    _write_json(chosen.json, figures)


def _cycle_row(figures: dict[str, Any]) -> list[str]:
    """Return how the cycles of the node went as text."""
    *values, time, share = figures.values()
    row = [f'{v:.1f}' if isinstance(v, float) else str(v) for v in values]
    return [*row, '' if time is None else f'{time:.0f}', f'{share:.1%}' if time else '']


def _cycles(duration: float, rate: float) -> list[dict[str, Any]]:
    """
    Compare what node and bare reader miss; what needs ROS is a process of its own.

    First nobody asks for standard deviations, then, for half as long, somebody does.
    """
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
    if done.returncode == INTERRUPTED:
        raise KeyboardInterrupt
    if done.returncode:
        raise ConfigError('missed cycles could not be compared, see above; this needs ROS')
    return list(json.loads(done.stdout))


@contextmanager
def _progress() -> Iterator[Callable[[str, float], None]]:
    """Show a bar for each stage of a job, on standard error so that results can be piped."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: dict[str, Any] = {}

        def show(what: str, done: float) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=1.0)
            bars.update(tasks[what], completed=done)

        yield show


def _load_urdf(path: str) -> str:
    """Return the text of a URDF file; what is wrong with it is said with its name."""
    from inertial_estimation.model.urdf import load_text, parse

    text = load_text(Path(path))
    with _naming(path):
        parse(text)
    return text


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Say which file is meant by what is wrong with a robot description."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"'{path}': {error}") from error


def _print(*shown: Any) -> None:
    """Print text and tables; wide enough for them when nobody watches."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=160)
    # Written here, as rich would end the process by itself if nobody reads on.
    with console.capture() as captured:
        for item in shown:
            console.print(item)
    sys.stdout.write(captured.get())
    sys.stdout.flush()


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


def _check_writable(path: Path | None) -> None:
    """Refuse a path that could not be written, if there is one."""
    if path is not None:
        check_writable(path)


def _write_json(path: Path | None, data: Any) -> None:
    """Write what was printed for a machine, if asked to."""
    if path is not None:
        write_whole(path, json.dumps(data, indent=2) + '\n')


if __name__ == '__main__':
    sys.exit(main())
