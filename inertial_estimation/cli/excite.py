# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``excite``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli import files
from inertial_estimation.cli.arguments import COMMANDS, add_options, add_verb
from inertial_estimation.cli.render import (
    Columns,
    findings_lines,
    progress_bars,
    records_table,
    show,
    table,
    write_json,
)
from inertial_estimation.errors import CallError

if TYPE_CHECKING:
    from inertial_estimation.identification.excitation.design import Excitation, ExciteSettings
    from inertial_estimation.identification.excitation.search import FourierMotion

FRICTION = ('viscous', 'coulomb', 'offset', 'drive_inertia')
ALL, NONE = 'all', 'none'
POINTS = 40
"""Of a trajectory for each harmonic; polynomials of fifth degree through them err by 1e-7."""
DIGITS = 10
MAX_LINES = 200_000
"""Of a table: 20 s at 10 kHz."""
LIMITS = ('lower', 'upper', 'velocity', 'acceleration', 'effort')
ATTEMPTS = {'start': 'condition_at_start', 'end': 'condition', 'complete': 'complete'}
SUBMODELS: Columns = {
    'submodel': 'name', 'equations': 'rows', 'base parameters': 'base_parameters',
    'at start': 'condition_at_start', 'at end': 'condition',
}  # fmt: skip
CLEARANCE: Columns = {
    'nearest [m]': 'nearest', 'links': 'links', 'neighbours not checked': 'unchecked_neighbours'
}  # fmt: skip


def add(commands: Any) -> None:
    """Add the subcommand."""
    verb = add_verb(
        commands, 'excite', COMMANDS['excite'],
        '--robot arm.urdf --acceleration 3 --out-csv motion.csv',
    )  # fmt: skip
    verb.description = (
        'Design a Fourier series from rest to rest, within limits and without self-collision, '
        'that minimises the condition number of the regressor over the base parameters.'
    )
    number, count, path = {'type': float}, {'type': int}, {'type': Path}
    names = {'nargs': '+'}
    add_options(
        verb,
        ('--robot', 'URDF', 'URDF file', {'required': True}),
        ('--joints', 'JOINT', 'moving joints; default: all', names),
        ('--fixed-link', 'FRAME', 'frame at rest; default: the root link', {'default': ''}),
        ('--gravity', ('X', 'Y', 'Z'), 'in the axes of that frame; default: 0 0 -9.81 [m/s^2]',
         {'nargs': 3, 'default': (0.0, 0.0, -9.81)} | number),
        ('--limits', 'YAML', 'limits of joints: {elbow: {lower: -1.5, upper: 1.5}}', {}),
        ('--acceleration', 'LIMIT', 'of joints without a limit [rad/s^2 or m/s^2]', number),
        ('--clearance', 'M', 'between links; default: %(default)s [m]',
         {'default': 0.02} | number),
        ('--ignore', 'LINK', 'pair of links that is not kept apart; repeatable',
         {'nargs': 2, 'action': 'append', 'default': []}),
        ('--meshes', 'FOLDER', 'folders of package:// and of relative names of meshes',
         {'default': []} | names | path),
        ('--ft', 'SENSOR', "FT sensors that give equations, 'all' or 'none'; default: none",
         {'default': [NONE]} | names),
        ('--efforts', 'JOINT',
         "joints whose efforts give equations, 'all' or 'none'; default: all",
         {'default': [ALL]} | names),
        ('--friction', 'TERM', f'unknowns of each joint: {", ".join(FRICTION)} (default) or none',
         {'choices': (*FRICTION, NONE), 'default': list(FRICTION)} | names),
        ('--period', 'S', 'of the motion; default: %(default)s [s]', {'default': 20.0} | number),
        ('--harmonics', 'N', 'of the Fourier series; default: %(default)s',
         {'default': 5} | count),
        ('--starts', 'N', 'random starts of the search; default: %(default)s',
         {'default': 5} | count),
        ('--time', 'S', 'limit of the search; default: %(default)s [s]',
         {'default': 60.0} | number),
        ('--seed', 'N', 'of the random starts; default: %(default)s', {'default': 0} | count),
        ('--out-csv', 'FILE', 'time, positions, velocities, accelerations', path),
        ('--rate', 'HZ', 'lines a second of that file; default: %(default)s',
         {'default': 100.0} | number),
        ('--out-trajectory', 'FILE', 'YAML with the fields of trajectory_msgs/JointTrajectory',
         path),
    )  # fmt: skip
    verb.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    """Design a motion and write it."""
    from inertial_estimation.config.files import write_whole
    from inertial_estimation.identification.excitation.design import design_excitation
    from inertial_estimation.identification.excitation.search import FourierBasis

    outputs = (chosen.json, chosen.out_csv, chosen.out_trajectory)
    files.check_outputs(outputs, (chosen.robot, chosen.limits))
    basis = FourierBasis(chosen.period, chosen.harmonics)
    lines, least = chosen.rate * basis.period, 2 * basis.harmonics
    if chosen.rate <= 0.0 or (chosen.out_csv and not least < lines <= MAX_LINES):
        raise CallError(f'--rate gives {lines:g} lines, expected {least} to {MAX_LINES}')
    urdf, settings = files.load_urdf(chosen.robot), _settings(chosen)
    with progress_bars() as progress, files.naming(chosen.robot):
        found = design_excitation(urdf, settings, progress)
        record = _record(found)
    write_json(chosen.json, record)
    if chosen.out_csv is not None:
        write_whole(chosen.out_csv, csv_text(found.motion, chosen.rate))
    if chosen.out_trajectory is not None:
        write_whole(chosen.out_trajectory, trajectory_text(found.motion))
    show(*_tables(record), *findings_lines(found.findings))
    return 0


def _settings(chosen: argparse.Namespace) -> ExciteSettings:
    """Return the settings of a call."""
    from inertial_estimation.config.files import load_mapping
    from inertial_estimation.identification.excitation.design import ExciteSettings
    from inertial_estimation.identification.unknowns import Term

    if NONE in chosen.friction and len(chosen.friction) > 1:
        raise CallError(f"--friction is either '{NONE}' or some of {', '.join(FRICTION)}")
    return ExciteSettings(
        joints=None if chosen.joints is None else _names('--joints', chosen.joints),
        fixed_link=chosen.fixed_link,
        gravity=tuple(chosen.gravity),
        limits=load_mapping(Path(chosen.limits)) if chosen.limits else {},
        acceleration=chosen.acceleration,
        ft_sensors=_names('--ft', chosen.ft),
        efforts=_names('--efforts', chosen.efforts),
        friction=tuple(Term(one) for one in FRICTION if one in chosen.friction),
        period=chosen.period,
        harmonics=chosen.harmonics,
        starts=chosen.starts,
        seconds=chosen.time,
        seed=chosen.seed,
        clearance=chosen.clearance,
        ignored=tuple(map(tuple, chosen.ignore)),
        mesh_folders=(*chosen.meshes, Path(chosen.robot).parent),
    )


def _names(option: str, names: Sequence[str]) -> tuple[str, ...] | None:
    """Return names; None: all."""
    if list(names) in ([ALL], [NONE]):
        return None if names[0] == ALL else ()
    if ALL in names or NONE in names:
        raise CallError(f"{option} is either '{ALL}', '{NONE}' or names")
    if len(set(names)) < len(names):
        raise CallError(f'{option} names one more than once: {", ".join(names)}')
    return tuple(names)


def _record(found: Excitation) -> dict[str, Any]:
    """Return a motion for JSON."""
    motion, limits, (q, v, a) = found.motion, found.limits, found.states
    reached = (q.min(axis=0), q.max(axis=0), abs(v).max(axis=0), abs(a).max(axis=0), found.efforts)
    n, clearance = motion.basis.harmonics, found.clearance
    attempts = [{key: getattr(one, key) for key in ATTEMPTS.values()} for one in found.attempts]
    return {
        **attempts[0],
        'base_parameters': sum(one.base.rank for one in found.regressor.submodels),
        'submodels': [
            {'name': one.name, 'rows': one.kinds, 'unknowns': len(one.columns),
             'base_parameters': one.base.rank, 'condition_at_start': start, 'condition': end}
            for one, start, end in found.submodel_conditions
        ],
        'attempts': attempts,
        'motion': {
            'period': motion.basis.period,
            'harmonics': n,
            'joints': {
                name: {'a': row[:n], 'b': row[n:-1], 'q0': row[-1]}
                for name, row in zip(motion.joint_names, motion.coefficients, strict=True)
            },
        },
        'joints': {
            name: {
                **{key: getattr(limits, key)[j] for key in LIMITS},
                'reached': {key: row[j] for key, row in zip(LIMITS, reached, strict=True)},
            }
            for j, name in enumerate(motion.joint_names)
        },
        'clearance': clearance and found.nearest and {
            'nearest': found.nearest[0],
            'links': found.nearest[1],
            'pairs': len(clearance.pairs),
            'unchecked_neighbours': clearance.unchecked,
        },
        'findings': found.findings,
    }  # fmt: skip


def _tables(record: dict[str, Any]) -> Iterator[Any]:
    """Yield the tables that are printed."""
    yield f'[bold]{record["base_parameters"]} base parameters[/]'
    yield records_table('Condition number', record['attempts'], ATTEMPTS)
    if len(record['submodels']) > 1:
        yield records_table('Submodels', record['submodels'], SUBMODELS)
    for title, keys in (('position', LIMITS[:2]), ('rates and effort', LIMITS[2:])):
        rows = [
            (name, *(number for key in keys for number in (one['reached'][key], one[key])))
            for name, one in record['joints'].items()
        ]
        columns = [column for key in keys for column in (key, 'limit')]
        yield table(f'Joints: {title}', ('joint', *columns), rows)
    if near := record['clearance']:
        yield records_table(f'Clearance of {near["pairs"]} pairs', [near], CLEARANCE)


def csv_text(motion: FourierMotion, rate_hz: float) -> str:
    """Return a period as a table of numbers."""
    import numpy as np

    n = int(np.floor(motion.basis.period * rate_hz * (1 + np.finfo(float).eps)))
    t, text = np.arange(n + 1) / rate_hz, StringIO()
    names = [f'{kind}_{joint}' for kind in 'qva' for joint in motion.joint_names]
    np.savetxt(
        text, np.column_stack([t, *motion.at(t)]), f'%.{DIGITS}g', ',',
        header=','.join(['time', *names]), comments='',
    )  # fmt: skip
    return text.getvalue()


def trajectory_text(motion: FourierMotion) -> str:
    """Return a period as YAML with the fields of trajectory_msgs/JointTrajectory."""
    import numpy as np
    import yaml

    n, points = POINTS * motion.basis.harmonics, []
    t = motion.basis.period * np.arange(n + 1) / n
    # Without a minus before zero.
    for time, states in zip(t, np.round(np.swapaxes(motion.at(t), 0, 1), DIGITS) + 0.0):
        second, nanosecond = divmod(round(float(time) * 1e9), 10**9)
        keys = ('positions', 'velocities', 'accelerations')
        point: dict[str, object] = dict(zip(keys, states.tolist(), strict=True))
        points.append({**point, 'time_from_start': {'sec': second, 'nanosec': nanosecond}})
    whole = {'joint_names': list(motion.joint_names), 'points': points}
    return str(yaml.safe_dump(whole, default_flow_style=None, sort_keys=False, width=10_000))
