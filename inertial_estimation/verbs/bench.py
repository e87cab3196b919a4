# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``bench``."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inertial_estimation.errors import CallError, ConfigError
from inertial_estimation.verbs import files
from inertial_estimation.verbs.options import INTERRUPTED, add_verb, install_advice
from inertial_estimation.verbs.terminal import escape, progress_bars, show, table

if TYPE_CHECKING:
    from inertial_estimation.benchmark.published.run import Experiment
    from inertial_estimation.benchmark.run import Goal

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

WITHOUT_GOALS = ('--published', '--calibration', '--real-robots')
"""Runs that say what is expected, and have nothing to reach."""
NEEDED = ('icub_models', 'idyntree', 'clarabel', 'cvxpy')
NEEDED_PUBLISHED = ('icub_models', 'clarabel', 'osqp')
NEEDED_BACKGROUND = ('icub_models', 'mujoco')


def add(verbs: Any) -> None:
    """
    Add the verb that measures times.

    Parameters
    ----------
    verbs : object
        Where argparse keeps the verbs.

    """
    verb = add_verb(
        verbs, 'bench',
        'times beside iDynTree and cvxpy; derivative filters; cost of what is neglected; missed '
        'cycles',
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
        '--identifier', type=float, metavar='S', default=0.0,
        help='also run the identifier beside the simulated robot for so long, at half the rate of '
        'the cycles [s] (default: %(default)g, not at all)',
    )  # fmt: skip
    verb.add_argument(
        '--pairs', type=int, metavar='N', default=0,
        help='also compare the cycle time of the node with the identifier beside it and without, '
        'in turn, at the rate of the cycles: 20 for a figure to rely on '
        '(default: %(default)d, not at all)',
    )  # fmt: skip
    verb.add_argument(
        '--pair-seconds', type=float, metavar='S', default=10.0,
        help='length of each half of a pair [s] (default: %(default)g)',
    )  # fmt: skip
    verb.add_argument(
        '--sensors', metavar='URDF',
        help='robot whose accelerometers and gyroscopes tell what it costs to neglect '
        'accelerations (default: iCubGenova02 of icub-models)',
    )  # fmt: skip
    verb.add_argument(
        '--real-robots', type=Path, metavar='FOLDER',
        help='instead of all else: methods of identification beside each other on logs of a '
        'Panda, UR10e, TX40 and TIAGo, which are not part of the package; gains of drives from a '
        'known payload (default: times)',
    )  # fmt: skip
    verb.add_argument(
        '--figaroh', metavar='PYTHON',
        help='interpreter that has FIGAROH, as a further method on the real robots '
        '(default: without)',
    )  # fmt: skip
    verb.add_argument(
        '--published', type=Path, metavar='FOLDER',
        help="instead of all else: experiments of identification's sources on synthetic data and "
        'on published tables, which are not part of the package (default: times)',
    )  # fmt: skip
    verb.add_argument(
        '--calibration', type=Path, metavar='FOLDER',
        help='instead of all else: offsets and matrices of FT sensors on published readings and '
        'on synthetic ones with the matrices of real sensors, which are not part of the package '
        '(default: times)',
    )  # fmt: skip
    verb.add_argument(
        '--background', action='store_true',
        help='instead of all else: what identification beside a working robot brings, on a '
        'simulated one whose description is wrong (default: times)',
    )  # fmt: skip
    verb.add_argument(
        '--yoga', type=Path, metavar='FOLDER',
        help='instead of all else: what identification predicts of the readings of a real iCub on '
        'one foot, from a log that is not part of the package (default: times)',
    )  # fmt: skip
    verb.add_argument(
        '--play', action='store_true',
        help='the log of the robot on one foot is also played to the identifier in real time, '
        'which takes a minute (default: not)',
    )  # fmt: skip
    verb.add_argument(
        '--picture', type=Path, metavar='FILE',
        help='errors over time of the run in the background as a picture (default: none)',
    )  # fmt: skip
    verb.add_argument(
        '--strict', action='store_true',
        help='exit code 1 if a goal is missed; runs on published experiments, calibrations and '
        'real arms have no goals (default: 0, and the tables say which are missed)',
    )  # fmt: skip
    verb.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    """Measure what is asked for; return the exit code."""
    if chosen.figaroh and not chosen.real_robots:
        raise CallError('--figaroh is for --real-robots')
    if chosen.picture and not chosen.background:
        raise CallError('--picture is for --background')
    if chosen.play and not chosen.yoga:
        raise CallError('--play is for --yoga')
    kinds = {
        '--published': (chosen.published, _run_published),
        '--calibration': (chosen.calibration, _run_calibration),
        '--real-robots': (chosen.real_robots, _compare_robots),
        '--background': (chosen.background, _run_background),
        '--yoga': (chosen.yoga, _run_yoga),
    }
    asked = [name for name, (given, _) in kinds.items() if given]
    if len(asked) > 1:
        raise CallError(f'{" and ".join(asked)} are {len(asked)} runs')
    if chosen.strict and asked and asked[0] in WITHOUT_GOALS:
        raise CallError(f'--strict is for runs with goals, and {asked[0]} has none')
    goals = (kinds[asked[0]][1] if asked else _measure)(chosen)
    missed = [goal.name for goal in goals if not goal.reached]
    if missed:
        show(f'{len(missed)} of {len(goals)} goals are missed')
    return 1 if missed and chosen.strict else 0


def _run_background(chosen: argparse.Namespace) -> Sequence[Goal]:
    """Identify beside simulated robots at work."""
    from inertial_estimation import pictures
    from inertial_estimation.benchmark.background import picture, run

    files.check_outputs((chosen.json, chosen.picture), ())
    _require(NEEDED_BACKGROUND)
    if chosen.picture:
        pictures.require(chosen.picture)
    with progress_bars() as progress:
        found = run.run_all(progress=lambda done: progress('working robots', done))
    show(*(table(*one) for one in found.tables()))
    files.write_json(chosen.json, found.as_dict())
    if chosen.picture:
        picture.draw(found, chosen.picture)
    return found.goals


def _run_yoga(chosen: argparse.Namespace) -> Sequence[Goal]:
    """Identify beside a real robot on one foot."""
    from inertial_estimation.benchmark.yoga import log, run

    files.check_outputs((chosen.json,), log.data_files(chosen.yoga))
    if chosen.play and find_spec('rclpy') is None:
        raise ConfigError('--play needs ROS: source it, or leave it out')
    with progress_bars() as progress:
        read = log.read_log(chosen.yoga, lambda done: progress('reading', done))
    played = None
    if chosen.play:
        played = run.played_of(_in_ros('bench_played', read.as_job()))
    found = run.compare(read, played)
    show(*(table(*one) for one in found.tables()))
    files.write_json(chosen.json, found.as_dict())
    return found.goals


def _run_published(chosen: argparse.Namespace) -> Sequence[Goal]:
    """Run the experiments of the sources."""
    from inertial_estimation.benchmark.published import run

    return _experiments(chosen, chosen.published, run.EXPERIMENTS, NEEDED_PUBLISHED)


def _run_calibration(chosen: argparse.Namespace) -> Sequence[Goal]:
    """Calibrate FT sensors."""
    from inertial_estimation.benchmark.calibration.experiments import EXPERIMENTS

    return _experiments(chosen, chosen.calibration, EXPERIMENTS)


def _experiments(
    chosen: argparse.Namespace,
    folder: Path,
    experiments: Sequence[Experiment],
    needed: Sequence[str] = (),
) -> Sequence[Goal]:
    """Run experiments on data sets, show what they find, and return that there is no goal."""
    from inertial_estimation.benchmark.published import run

    files.check_outputs((chosen.json,), run.data_files(folder, experiments))
    _require(needed)
    with progress_bars() as progress:
        found = run.run_all(folder, lambda done: progress('experiments', done), experiments)
    for finding in found:
        tables = (table(*one) for one in finding.tables)
        show(f'\n[bold]{escape(finding.name)}[/bold]', *tables, *map(escape, finding.notes))
    files.write_json(chosen.json, run.as_dict(found))
    return ()


def _compare_robots(chosen: argparse.Namespace) -> Sequence[Goal]:
    """Compare methods on real robots."""
    from inertial_estimation.benchmark.real_robots import run

    files.check_outputs((chosen.json,), run.data_files(chosen.real_robots))
    with progress_bars() as progress:
        found = run.run_all(
            chosen.real_robots, chosen.figaroh, lambda done: progress('real robots', done)
        )
    show(*(table(*one) for one in found.tables()), *map(escape, found.notes()))
    files.write_json(chosen.json, found.as_dict())
    return ()


def _measure(chosen: argparse.Namespace) -> Sequence[Goal]:
    """Measure times."""
    from inertial_estimation.benchmark import (
        derivatives,
        joint_refit,
        neglect,
        reduction,
        refit,
    )
    from inertial_estimation.benchmark.run import COLUMNS, GOAL_COLUMNS, run

    if not (0 <= chosen.cycles < inf and 0 < chosen.rate < inf and 0 <= chosen.identifier < inf):
        raise CallError(
            '--cycles and --identifier must be 0 or more, --rate more than 0, all finite'
        )
    if not (chosen.pairs >= 0 and 1.0 <= chosen.pair_seconds < inf):
        raise CallError('--pairs must be 0 or more, --pair-seconds 1 or more and finite')
    live = chosen.cycles or chosen.identifier or chosen.pairs
    if live and find_spec('rclpy') is None:
        raise ConfigError(
            '--cycles, --identifier and --pairs need ROS: source it, or leave them out'
        )
    files.check_outputs((chosen.json,), (chosen.sensors,))
    _require(NEEDED)
    costs = neglect.measure(files.load_urdf(chosen.sensors) if chosen.sensors else neglect.urdf())
    with progress_bars() as progress:
        benchmark = run(progress=lambda done: progress('timing', done))
        scores = derivatives.compare(progress=lambda done: progress('derivatives', done))
        refits = refit.measure(progress=lambda done: progress('identification', done))
        joint = joint_refit.measure(progress=lambda done: progress('refits', done))
    logs = reduction.measure()
    goals = [
        *benchmark.goals, *refit.goals(refits), *joint_refit.goals(joint), *reduction.goals(logs)
    ]  # fmt: skip
    show(
        table('Time per call', COLUMNS, benchmark.rows),
        table(refit.TITLE, refit.COLUMNS, refit.rows(refits)),
        table(joint_refit.TITLE, joint_refit.COLUMNS, joint_refit.rows(joint)),
        table(reduction.TITLE, reduction.COLUMNS, [one.row for one in logs]),
        table('Goals', GOAL_COLUMNS, [goal.row for goal in goals]),
        table(derivatives.TITLE, derivatives.COLUMNS, [score.row for score in scores]),
        table(neglect.TITLE, neglect.columns(costs), [cost.row for cost in costs]),
    )
    figures: dict[str, Any] = benchmark.as_dict()
    figures['derivatives'] = derivatives.as_dict(scores)
    figures['identification'] = refit.as_dict(refits)
    figures['joint_refit'] = joint_refit.as_dict(joint)
    figures['logs'] = reduction.as_dict(logs)
    figures['neglect'] = [cost.as_dict() for cost in costs]
    if chosen.cycles > 0:
        runs = _cycles(chosen.cycles, chosen.rate)
        figures['cycles'], figures['cycles_with_deviations'] = runs
        show(table('Cycles of the node', CYCLE_COLUMNS, list(map(_cycle_row, runs))))
    if chosen.identifier > 0:
        load = _identifier(chosen.identifier, chosen.rate / 2)
        figures['identifier'] = load
        show(table('Identifier', IDENTIFIER_COLUMNS, [_identifier_row(load)]))
    if chosen.pairs:
        figures['pairs'] = load = _pairs(chosen.pairs, chosen.pair_seconds, chosen.rate)
        of_pairs = _pair_goals(load)
        goals += of_pairs
        show(
            table('Estimator without and with the identifier', PAIR_COLUMNS, [_pair_row(load)]),
            table('Goals', GOAL_COLUMNS, [goal.row for goal in of_pairs]),
        )
    files.write_json(chosen.json, figures)
    return goals


def _require(packages: Sequence[str]) -> None:
    """Raise unless packages are installed."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise ConfigError(f'bench needs {", ".join(missing)}: {install_advice("bench")}')


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
    from inertial_estimation.benchmark.robots import CONTACTS, ONE_IMU
    from inertial_estimation.simulation.description import icub_urdf

    contacts = [contact.name for contact in CONTACTS]
    job = {
        'urdf': icub_urdf(),
        'parameters': {'imus': list(ONE_IMU), 'contacts': contacts},
        'rate': rate,
        'duration': duration,
    }
    done = _in_ros('bench', job)
    return list(done)


def _identifier(duration: float, rate: float) -> dict[str, Any]:
    """Measure what the identifier costs."""
    from inertial_estimation.simulation.description import icub_urdf

    parameters = {'fixed_link': 'root_link', 'velocity_source': 'filter'}
    job = {'urdf': icub_urdf(), 'parameters': parameters, 'rate': rate, 'duration': duration}
    return dict(_in_ros('bench_identifier', job))


def _identifier_row(load: dict[str, Any]) -> list[str]:
    """Return what the identifier costs as text."""
    *counts, share, stretch, refit = load.values()
    return [*map(str, counts), f'{share:.1%}', f'{1e3 * stretch:.0f}', f'{1e3 * refit:.0f}']


def _pairs(pairs: int, seconds: float, rate: float) -> dict[str, Any]:
    """Compare the estimator with and without the identifier beside it."""
    from inertial_estimation.benchmark.robots import CONTACTS
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
    return dict(_in_ros('bench_pairs', job))


def _pair_row(load: dict[str, Any]) -> list[str]:
    """Return what pairs say as text."""
    pairs, *times, ratio, share, refits, updates = load.values()
    return [
        str(pairs), *(f'{value:.0f}' for value in times), f'{ratio:.3f}', f'{share:.1%}',
        str(refits), str(updates),
    ]  # fmt: skip


def _pair_goals(load: dict[str, Any]) -> tuple[Goal, ...]:
    """Hold what pairs say against the goals."""
    from inertial_estimation.benchmark.run import Goal

    return (
        Goal('cycle time with the identifier / without', load['median_ratio'], 1.1),
        Goal("identifier's share of a core", load['processor_share'], 0.15),
    )


def _in_ros(module: str, job: dict[str, Any]) -> Any:
    """Return what a process with ROS says to a job."""
    done = subprocess.run(
        [sys.executable, '-c', f'from inertial_estimation.ros.{module} import main; exit(main())'],
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
