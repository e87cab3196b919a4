# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``excite``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli import files
from inertial_estimation.cli.arguments import add_verb
from inertial_estimation.cli.render import escape, progress_bars, show, table
from inertial_estimation.errors import CallError, ConfigError

if TYPE_CHECKING:
    from inertial_estimation.excite import ExciteSettings

FRICTION = ('viscous', 'coulomb', 'offset', 'drive_inertia')
ALL, NONE = 'all', 'none'
WARNINGS = 8
"""So many are printed: a robot with parts that touch all the time has one for each pair."""


def add(verbs: Any) -> None:
    """Add the verb that designs motions for identification."""
    verb = add_verb(
        verbs, 'excite', 'design a motion that tells most of what a robot weighs',
        '--robot arm.urdf --acceleration 3 --out-csv motion.csv',
    )  # fmt: skip
    verb.description = (
        'design a finite Fourier series, from rest to rest, within limits of position, velocity '
        'and acceleration, without self-collision but of neighbours that are near each other with '
        'joints at zero, that minimises the condition number of the '
        'rows of joint efforts and FT sensors over the base parameters (in SI units, not scaled); '
        'of a robot that FT sensors cut the worst one of its submodels'
    )
    verb.add_argument('--robot', required=True, metavar='URDF', help='robot description file')
    _add_robot(verb)
    _add_clearance(verb)
    _add_motion(verb)
    verb.add_argument(
        '--out-csv', type=Path, metavar='FILE',
        help='time, positions, velocities, accelerations (default: no file)',
    )  # fmt: skip
    verb.add_argument(
        '--rate', type=float, default=100.0, metavar='HZ',
        help='rows per second of that file, more than twice the cycles of the highest harmonic '
        '(default: %(default)s)',
    )  # fmt: skip
    verb.add_argument(
        '--out-trajectory', type=Path, metavar='FILE',
        help='YAML with the fields of trajectory_msgs/JointTrajectory (default: no file)',
    )  # fmt: skip
    verb.set_defaults(run=_run)


def _add_robot(verb: argparse.ArgumentParser) -> None:
    """Add what says how the robot stands and may move."""
    verb.add_argument(
        '--joints', nargs='+', metavar='JOINT',
        help='that move, the others stay at zero (default: all)',
    )  # fmt: skip
    verb.add_argument(
        '--fixed-link', default='', metavar='FRAME',
        help='what is at rest, on the root link (default: the root link)',
    )  # fmt: skip
    verb.add_argument(
        '--gravity', nargs=3, type=float, default=(0.0, 0.0, -9.81), metavar=('X', 'Y', 'Z'),
        help='in its axes [m/s^2] (default: 0 0 -9.81)',
    )  # fmt: skip
    verb.add_argument(
        '--limits', metavar='YAML',
        help='for each joint some of lower, upper, velocity, acceleration, in place of the '
        "description's: {elbow: {lower: -1.5, upper: 1.5}} (default: none)",
    )  # fmt: skip
    verb.add_argument(
        '--acceleration', type=float, metavar='LIMIT',
        help='of joints that have none there [rad/s^2 or m/s^2] (default: each must have one)',
    )  # fmt: skip


def _add_clearance(verb: argparse.ArgumentParser) -> None:
    """Add what says which parts keep away from each other, and how far."""
    verb.add_argument(
        '--clearance', type=float, default=0.02, metavar='M',
        help='between links, of neighbours those that keep it with joints at zero (default: '
        '%(default)s)',
    )  # fmt: skip
    verb.add_argument(
        '--ignore', nargs=2, action='append', default=[], metavar='LINK',
        help='two links that need not keep away from each other, repeatable (default: none)',
    )  # fmt: skip
    verb.add_argument(
        '--meshes', nargs='+', type=Path, default=[], metavar='FOLDER',
        help="where 'package://' begins (default: the ROS environment's, and the folder of the "
        'description)',
    )  # fmt: skip


def _add_motion(verb: argparse.ArgumentParser) -> None:
    """Add what says which motion is searched for, and how long."""
    verb.add_argument(
        '--ft', nargs='+', default=[NONE], metavar='SENSOR',
        help="FT sensors whose readings give rows, 'all' or 'none' (default: none)",
    )  # fmt: skip
    verb.add_argument(
        '--efforts', nargs='+', default=[ALL], metavar='JOINT',
        help="joints whose efforts give rows, 'all' or 'none' (default: all)",
    )  # fmt: skip
    verb.add_argument(
        '--friction', nargs='+', choices=(*FRICTION, NONE), default=list(FRICTION),
        help=f'unknown of each joint beside what links weigh (default: {" ".join(FRICTION)})',
    )  # fmt: skip
    verb.add_argument(
        '--period', type=float, default=20.0, metavar='S', help='(default: %(default)s)'
    )
    verb.add_argument(
        '--harmonics', type=int, default=5, metavar='N',
        help='the highest has this many cycles in a period (default: %(default)s)',
    )  # fmt: skip
    verb.add_argument(
        '--starts', type=int, default=5, metavar='N',
        help='random starts, the best result is kept (default: %(default)s)',
    )  # fmt: skip
    verb.add_argument(
        '--time', type=float, default=60.0, metavar='S',
        help='after which the search ends with what it has (default: %(default)s)',
    )  # fmt: skip
    verb.add_argument(
        '--seed', type=int, default=0, metavar='N',
        help='of the random starts; the same one gives the same motion if the time suffices '
        '(default: %(default)s)',
    )  # fmt: skip


def _run(chosen: argparse.Namespace) -> int:
    """Design a motion."""
    from inertial_estimation.excite import design
    from inertial_estimation.excite.tables import design_dict, design_tables
    from inertial_estimation.excite.writing import check_rate, csv_text, trajectory_text
    from inertial_estimation.identification.excitation.fourier import FourierBasis
    from inertial_estimation.output import write_whole

    if not 0.0 < chosen.rate < float('inf'):
        raise CallError(f'--rate is {chosen.rate}, expected a positive number')
    files.check_outputs(
        (chosen.json, chosen.out_csv, chosen.out_trajectory),
        (chosen.robot, chosen.limits),
    )
    urdf = files.load_urdf(chosen.robot)
    if chosen.joints is None:
        _require_usable(chosen.robot, urdf)
    settings = _settings(chosen)
    if chosen.out_csv is not None:
        check_rate(FourierBasis(chosen.period, chosen.harmonics), chosen.rate)
    with progress_bars() as progress, files.naming(chosen.robot):
        found = design(urdf, settings, progress)
    files.write_json(chosen.json, design_dict(found))
    if chosen.out_csv is not None:
        write_whole(chosen.out_csv, csv_text(found.motion, chosen.rate))
    if chosen.out_trajectory is not None:
        write_whole(chosen.out_trajectory, trajectory_text(found.motion))
    show(*(table(*drawn) for drawn in design_tables(found)))
    _warn(found.warnings)
    return 0


def _require_usable(path: str, urdf: str) -> None:
    """Raise if not all joints of a description can move by themselves."""
    from inertial_estimation.check.descriptions import usable_joints
    from inertial_estimation.model.urdf import joint_types, parse

    types = joint_types(parse(urdf))
    usable, _ = usable_joints(types)
    others = [name for name, kind in types.items() if kind != 'fixed' and name not in usable]
    if others:
        raise ConfigError(
            f"'{path}': joint '{others[0]}' is of type '{types[others[0]]}', which no motion is "
            f'designed for: leave it out, with --joints {" ".join(usable)}'
        )


def _warn(warnings: Sequence[str]) -> None:
    """Print warnings, of many the first ones."""
    shown = [f'[yellow]warning:[/] {escape(warning)}' for warning in warnings[:WARNINGS]]
    if len(warnings) > WARNINGS:
        shown.append(f'and {len(warnings) - WARNINGS} more warnings, which --json lists')
    show(*shown)


def _settings(chosen: argparse.Namespace) -> ExciteSettings:
    """Return what is asked for."""
    from inertial_estimation.config.files import load_mapping
    from inertial_estimation.excite import ExciteSettings
    from inertial_estimation.identification.unknowns import Term

    if NONE in chosen.friction and len(chosen.friction) > 1:
        raise CallError(f"--friction is either '{NONE}' or some of {', '.join(FRICTION)}")
    terms = [term for term in FRICTION if term in chosen.friction]
    return ExciteSettings(
        joints=None if chosen.joints is None else _once('--joints', chosen.joints),
        fixed_link=chosen.fixed_link,
        gravity=tuple(chosen.gravity),
        limits=load_mapping(Path(chosen.limits)) if chosen.limits else {},
        acceleration=chosen.acceleration,
        ft_sensors=_chosen('--ft', chosen.ft),
        efforts=_chosen('--efforts', chosen.efforts),
        friction=tuple(map(Term, terms)),
        period=chosen.period,
        harmonics=chosen.harmonics,
        starts=chosen.starts,
        seconds=chosen.time,
        seed=chosen.seed,
        clearance=chosen.clearance,
        ignored=tuple(map(tuple, chosen.ignore)),
        mesh_folders=(*chosen.meshes, Path(chosen.robot).parent),
    )


def _chosen(option: str, names: Sequence[str]) -> tuple[str, ...] | None:
    """Return names; None: all."""
    if list(names) in ([ALL], [NONE]):
        return None if names[0] == ALL else ()
    if ALL in names or NONE in names:
        raise CallError(f"{option} is either '{ALL}', '{NONE}' or names")
    return _once(option, names)


def _once(option: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return names; raise if one stands twice, where another may have been meant."""
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise CallError(f"{option} names '{twice[0]}' more than once: name it once")
    return tuple(names)
