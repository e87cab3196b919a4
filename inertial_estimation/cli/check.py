# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``check``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from inertial_estimation.cli import files
from inertial_estimation.cli.arguments import add_verb
from inertial_estimation.cli.render import escape, findings_lines, show, table, write_json
from inertial_estimation.errors import CallError, ModelError

Record = dict[str, Any]

FULL_WIDTH = 120
MAX_NAMES = 4
"""Names that a cell holds without --full."""


def add(commands: Any) -> None:
    """Add the subcommand."""
    command = add_verb(
        commands, 'check', 'describe a robot: sensors, submodels, dependence, consistency',
        'robot.urdf --imu torso_imu --contacts l_foot r_foot',
    )  # fmt: skip
    command.description = (
        'Describe a robot. Exit code 0: the node would start with it; 1: it would not, and the '
        'last line states why; 2: wrong call.'
    )
    command.add_argument('urdf', metavar='URDF', help='robot description')
    command.add_argument(
        '--imu', action='append', metavar='FRAME', help='IMU in use, repeatable (default: all)'
    )
    command.add_argument('--fixed-link', default='', metavar='FRAME', help='frame at rest')
    command.add_argument('--config', metavar='YAML', help='parameter file of the node')
    command.add_argument(
        '--contacts', nargs='+', default=[], metavar='FRAME', help='contacts, with a wrench each'
    )
    command.add_argument(
        '--base-parameters', metavar='FILE', help='base parameters to check for consistency'
    )
    command.add_argument(
        '--identifiable', action='store_true', help='combinations that logs can determine'
    )
    command.add_argument(
        '--ft', nargs='+', metavar='SENSOR', help="FT sensors for that, 'all' or 'none'"
    )
    command.add_argument(
        '--efforts', nargs='+', metavar='JOINT', help="joint efforts for that, or 'all'"
    )
    command.add_argument('--full', '--all', action='store_true', help='print every name and pose')
    command.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    """Describe a robot; return the exit code."""
    if bool(chosen.config) + bool(chosen.fixed_link) + bool(chosen.imu) > 1:
        raise CallError('give one of --imu, --fixed-link, --config')
    if not chosen.identifiable and (chosen.ft or chosen.efforts):
        raise CallError('--ft and --efforts go with --identifiable')
    inputs = (chosen.urdf, chosen.base_parameters, *files.config_files(chosen.config))
    files.check_outputs((chosen.json,), inputs)
    urdf = files.load_urdf(chosen.urdf)
    if chosen.base_parameters:
        return _check_base_parameters(chosen, urdf)
    if chosen.identifiable:
        return _check_identifiable(chosen, urdf)
    return _check_robot(chosen, urdf)


def _check_robot(chosen: argparse.Namespace, urdf: str) -> int:
    """Print sensors, submodels and dependence."""
    from inertial_estimation.cli.robot_check import check_settings, check_urdf
    from inertial_estimation.config import EstimatorSettings
    from inertial_estimation.estimation.contacts import Contact

    contacts = [Contact(frame) for frame in chosen.contacts]
    with files.naming(chosen.urdf):
        if chosen.config:
            settings = EstimatorSettings.from_yaml(chosen.config)
            found = check_settings(settings, urdf, contacts)
        else:
            found = check_urdf(
                urdf, imus=chosen.imu, fixed_link=chosen.fixed_link, contacts=contacts
            )
    write_json(chosen.json, found.as_dict())
    show(
        escape(found.robot.summary),
        *_tables(found.records, full=chosen.full),
        *findings_lines(found.findings),
        width=FULL_WIDTH if chosen.full else None,
    )
    if found.refusals:
        with files.naming(chosen.urdf):
            raise ModelError('; '.join(found.refusals))
    return 0


def _tables(records: Record, *, full: bool) -> Iterator[Any]:
    """Yield the tables of a robot."""

    def names(values: list[str] | tuple[str, ...]) -> str:
        values = list(values)
        if full or len(values) <= MAX_NAMES:
            return ', '.join(values) or '-'
        return f'{values[0]} … {values[-1]} ({len(values)})'

    rows = [
        (one['sensor'], one['joint'], ' on '.join(one['reads'].values()),
         *((_pose(one['pose_in_child_link']),) if full else ()))
        for one in records['ft_sensors']
    ]  # fmt: skip
    columns = ('FT sensor', 'joint', 'reads', *(('pose in child link',) if full else ()))
    yield table('FT sensors', columns, rows)
    if full:
        sensors = [
            (one['sensor'], one['kind'], one['on_link'], _pose(one['pose_in_link']))
            for one in records['inertial_sensors']
        ]
        yield table('Inertial sensors', ('sensor', 'kind', 'link', 'pose in link'), sensors)
    submodels = [
        (one['submodel'], one['sensor_towards_root'], names(one['sensors_beyond']),
         f'{one["mass_kg"]:.3f}', names(one['links']))
        for one in records['submodels']
    ]  # fmt: skip
    columns = ('submodel', 'inner FT sensor', 'outer FT sensors', 'mass [kg]', 'links')
    yield table('Submodels', columns, submodels)
    clusters = [
        (one['source'], one['on_link'], names(one['serves'])) for one in records['clusters']
    ]
    yield table('Motion sources', ('source', 'link', 'motion of links'), clusters)
    for key, kind in (('torque_dependence', 'torque of'), ('wrench_dependence', 'wrench at')):
        if key in records:
            dependence = [
                (one['name'], names(one['fts']), names(one['imus']), names(one['joints']),
                 names(one['links']))
                for one in records[key]
            ]  # fmt: skip
            title = f'Dependence with contacts at {", ".join(records["contacts"])}'
            yield table(title, (kind, 'FT sensors', 'IMUs', 'joints', 'links'), dependence)


def _pose(pose: Record) -> str:
    """Return a pose as text."""
    return ' '.join(f'{v:.4g}' for v in (*pose['xyz_m'], *pose['rpy_rad']))


def _check_base_parameters(chosen: argparse.Namespace, urdf: str) -> int:
    """Print whether consistent parameters have some base parameters; return the exit code."""
    from inertial_estimation.cli.base_parameters import check_base_parameters
    from inertial_estimation.cli.identifiable import locked_notes, source_of_file, source_of_urdf

    if chosen.imu or chosen.contacts or chosen.identifiable:
        raise CallError('--base-parameters goes with --fixed-link or --config alone')
    text = files.load_text(chosen.base_parameters)
    with files.naming(chosen.urdf):
        if chosen.config:
            robot = source_of_file(chosen.config, urdf).robot
        else:
            robot = source_of_urdf(urdf, fixed_link=chosen.fixed_link).robot
    with files.naming(chosen.base_parameters):
        report = check_base_parameters(text, robot)
    write_json(chosen.json, report.as_dict())
    notes = () if chosen.config else locked_notes(urdf)
    show(*report.tables(), *map(escape, notes))
    return 0 if report.feasible else 1


def _check_identifiable(chosen: argparse.Namespace, urdf: str) -> int:
    """Print the combinations that logs can determine; return the exit code."""
    from inertial_estimation.cli.identifiable import (
        check_identifiable,
        source_of_file,
        source_of_urdf,
    )

    if chosen.imu or chosen.contacts:
        raise CallError('--identifiable goes without --imu and --contacts')
    if chosen.config and chosen.ft:
        raise CallError('--ft goes without --config, which names the FT sensors')
    efforts = chosen.efforts or ()
    with files.naming(chosen.urdf):
        if chosen.config:
            source = source_of_file(chosen.config, urdf, efforts)
        else:
            source = source_of_urdf(urdf, chosen.ft or ('all',), efforts, chosen.fixed_link)
        report = check_identifiable(source)
    write_json(chosen.json, report.as_dict())
    notes = map(escape, report.source.notes)
    show(escape(report.summary), *report.tables(whole=chosen.full), *notes)
    return 0
