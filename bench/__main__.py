# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Measure times, and run experiments on shared data: ``python -m bench``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.nodes import tables as bench_nodes
from inertial_estimation.cli import files
from inertial_estimation.cli.render import escape, progress_bars, show, table
from inertial_estimation.errors import CallError, ConfigError, InertialEstimationError

if TYPE_CHECKING:
    from bench.published.run import Experiment
    from bench.run import Goal

WITHOUT_GOALS = ('--published', '--calibration', '--real-robots')
"""Runs that say what is expected, and have nothing to reach."""
NEEDED = ('icub_models', 'idyntree', 'clarabel', 'cvxpy')
NEEDED_PUBLISHED = ('icub_models', 'clarabel', 'osqp')
NEEDED_BACKGROUND = ('icub_models', 'mujoco')


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is asked for; return the exit code."""
    parser = _parser()
    try:
        return _run(parser.parse_args(arguments))
    except InertialEstimationError as error:
        parser.exit(2 if isinstance(error, CallError) else 1, f'bench: {error}\n')


def _parser() -> argparse.ArgumentParser:
    """Return the options."""
    verb = argparse.ArgumentParser('bench', description=__doc__)
    verb.add_argument('--json', type=Path, metavar='FILE', help='also write the figures as JSON')
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
    return verb


def _run(chosen: argparse.Namespace) -> int:
    """Run what is asked for."""
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
    from bench.background import picture, run
    from inertial_estimation import pictures

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
    from bench.yoga import log, run

    files.check_outputs((chosen.json,), log.data_files(chosen.yoga))
    if chosen.play and find_spec('rclpy') is None:
        raise ConfigError('--play needs ROS: source it, or leave it out')
    with progress_bars() as progress:
        read = log.read_log(chosen.yoga, lambda done: progress('reading', done))
    played = None
    if chosen.play:
        played = run.played_of(bench_nodes.in_ros('played', read.as_job()))
    found = run.compare(read, played)
    show(*(table(*one) for one in found.tables()))
    files.write_json(chosen.json, found.as_dict())
    return found.goals


def _run_published(chosen: argparse.Namespace) -> Sequence[Goal]:
    """Run the experiments of the sources."""
    from bench.published import run

    return _experiments(chosen, chosen.published, run.EXPERIMENTS, NEEDED_PUBLISHED)


def _run_calibration(chosen: argparse.Namespace) -> Sequence[Goal]:
    """Calibrate FT sensors."""
    from bench.calibration.experiments import EXPERIMENTS

    return _experiments(chosen, chosen.calibration, EXPERIMENTS)


def _experiments(
    chosen: argparse.Namespace,
    folder: Path,
    experiments: Sequence[Experiment],
    needed: Sequence[str] = (),
) -> Sequence[Goal]:
    """Run experiments on data sets, show what they find, and return that there is no goal."""
    from bench.published import run

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
    from bench.real_robots import run

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
    from bench import (
        derivatives,
        joint_refit,
        neglect,
        reduction,
        refit,
    )
    from bench.run import COLUMNS, GOAL_COLUMNS, run

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
    of_nodes, goals_of_nodes = bench_nodes.measure(chosen)
    figures |= of_nodes
    goals += goals_of_nodes
    files.write_json(chosen.json, figures)
    return goals


def _require(packages: Sequence[str]) -> None:
    """Raise unless packages are installed."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise ConfigError(f'bench needs {", ".join(missing)}')


if __name__ == '__main__':
    raise SystemExit(main())
