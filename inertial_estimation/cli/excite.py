# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``excite``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from inertial_estimation.cli.commands import ALL, FRICTION, NONE
from inertial_estimation.cli.files import load_urdf, naming
from inertial_estimation.cli.render import (
    findings_lines,
    progress_bars,
    records_table,
    show,
    write_json,
)
from inertial_estimation.config.files import load_mapping, write_whole
from inertial_estimation.errors import CallError
from inertial_estimation.identification.excitation.design import (
    Excitation,
    ExciteSettings,
    design_excitation,
)
from inertial_estimation.identification.excitation.search import FourierMotion
from inertial_estimation.identification.unknowns import Term

POINTS = 40
"""Of a trajectory for each harmonic; polynomials of fifth degree through them err by 1e-7."""
DIGITS = 10
MAX_LINES = 200_000
"""Of a table: 20 s at 10 kHz."""
LIMITS = ('lower', 'upper', 'velocity', 'acceleration', 'effort')
CONDITION = ('condition', 'complete')


def run(chosen: argparse.Namespace) -> None:
    """Design a motion and write it."""
    for name in ('period', 'rate', 'time'):
        if not getattr(chosen, name) > 0.0:
            raise CallError(f'--{name} is {getattr(chosen, name):g}, expected above 0')
    if (lines := chosen.rate * chosen.period) > MAX_LINES:
        raise CallError(f'--rate gives {lines:g} lines, expected 1 to {MAX_LINES}')
    if missing := [one for one in chosen.meshes if not Path(one).is_dir()]:
        raise CallError(f"--meshes names '{missing[0]}', which is no folder")
    urdf = load_urdf(chosen.robot)
    settings = ExciteSettings(
        joints=_names(chosen.joints), fixed_link=chosen.fixed_link,
        limits=load_mapping(Path(chosen.limits)) if chosen.limits else {},
        acceleration=chosen.acceleration, ft_sensors=_names(chosen.ft),
        efforts=_names(chosen.efforts),
        friction=tuple(Term(one) for one in FRICTION if one in chosen.friction),
        period=chosen.period, harmonics=chosen.harmonics, starts=chosen.starts,
        seconds=chosen.time, seed=chosen.seed, clearance=chosen.clearance,
        ignored=tuple(map(tuple, chosen.ignore)),
        mesh_folders=(*map(Path, chosen.meshes), Path(chosen.robot).parent),
    )  # fmt: skip
    with progress_bars() as progress, naming(chosen.robot):
        found = design_excitation(urdf, settings, progress)
        record = _record(found)
    write_json(chosen.json, record)
    if chosen.out_csv is not None:
        write_whole(chosen.out_csv, csv_text(found.motion, chosen.rate))
    if chosen.out_trajectory is not None:
        write_whole(chosen.out_trajectory, trajectory_text(found.motion))
    show(*_tables(record), *findings_lines(found.findings))


def _names(names: Sequence[str]) -> tuple[str, ...] | None:
    """Return names; None: all."""
    return {ALL: None, NONE: ()}.get(names[0], tuple(names))


def _record(found: Excitation) -> dict[str, Any]:
    """Return a motion for JSON."""
    motion, limits, (q, v, a) = found.motion, found.limits, found.states
    reached = (q.min(axis=0), q.max(axis=0), abs(v).max(axis=0), abs(a).max(axis=0), found.efforts)
    n, clearance = motion.basis.harmonics, found.clearance
    return {
        **{key: getattr(found.attempts[0], key) for key in CONDITION},
        'base_parameters': sum(one.base.rank for one in found.regressor.submodels),
        'submodels': [
            {'name': one.name, 'base_parameters': one.base.rank, 'condition': condition}
            for one, condition in zip(
                found.regressor.submodels, found.regressor.conditions(found.states), strict=True
            )
        ],
        'motion': {
            'period': motion.basis.period,
            'harmonics': n,
            'joints': {
                name: {'a': row[:n], 'b': row[n:-1], 'q0': row[-1]}
                for name, row in zip(motion.joint_names, motion.coefficients, strict=True)
            },
        },
        'joints': {
            name: {key: getattr(limits, key)[j] for key in LIMITS}
            | {f'{key}_reached': row[j] for key, row in zip(LIMITS, reached, strict=True)}
            for j, name in enumerate(motion.joint_names)
        },
        'clearance': clearance and found.nearest and {
            'pairs': len(clearance.pairs), 'nearest_m': found.nearest[0],
            'links': found.nearest[1], 'unchecked_neighbours': clearance.unchecked,
        },
        'findings': found.findings,
    }  # fmt: skip


def _tables(record: dict[str, Any]) -> Iterator[Any]:
    yield records_table('Condition number', [record], ('base_parameters', *CONDITION))
    yield records_table('Submodels', record['submodels'])
    joints = [{'joint': name, **one} for name, one in record['joints'].items()]
    for title, keys in (('positions', LIMITS[:2]), ('rates and efforts', LIMITS[2:])):
        columns = {'joint': 'joint'}
        for key in keys:
            columns |= {key: f'{key}_reached', f'{key} limit': key}
        yield records_table(f'Joints: {title}', joints, columns)
    if record['clearance']:
        yield records_table('Clearance', [record['clearance']])


def csv_text(motion: FourierMotion, rate_hz: float) -> str:
    """Return a period as a table of numbers."""
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
