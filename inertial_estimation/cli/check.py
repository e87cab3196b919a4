# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``check``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli import files
from inertial_estimation.cli.arguments import add_verb
from inertial_estimation.cli.render import escape, show, table
from inertial_estimation.errors import CallError, ModelError

if TYPE_CHECKING:
    from inertial_estimation.check import Check


def add(verbs: Any) -> None:
    """Add the verb that describes a robot."""
    verb = add_verb(
        verbs, 'check', 'what the package makes of a robot description',
        'robot.urdf --imu torso_imu --contacts l_foot r_foot',
    )  # fmt: skip
    verb.description = (
        'what the package makes of a robot description. Exit code: 0 the node would start with '
        'this robot, these IMUs or fixed link and these contacts; 1 it would refuse them, and the '
        'last line says why; 2 the call was wrong'
    )
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
        help='where the environment may touch the robot, a full wrench each: says at the end what '
        "every torque and external wrench rests on (default: the parameter file's, if there is "
        'one)',
    )  # fmt: skip
    verb.add_argument(
        '--base-parameters', metavar='FILE',
        help='instead of all that but the fixed link or the file, which may be one of identify: '
        'whether bodies have these base parameters, and the nearest that some have; rows of '
        'combination,value such as "upper.Izz + 0.09 tool.m,0.143", with a third column '
        'deviation where friction may be zero, or the JSON of identify. Exit code: 0 some have, '
        '1 none, or friction is negative (default: none are checked)',
    )  # fmt: skip
    _add_identifiable(verb)
    verb.add_argument(
        '--all', action='store_true',
        help='print every sensor with its pose, every name and every term of a combination '
        '(default: counts, and of names that follow each other the first and the last)',
    )  # fmt: skip
    verb.set_defaults(run=_run)


def _add_identifiable(verb: argparse.ArgumentParser) -> None:
    """Add what asks for identifiable combinations."""
    verb.add_argument(
        '--identifiable', action='store_true',
        help='instead of all that: which combinations of inertial parameters logs could tell, '
        'however the robot moves, and which torques and wrenches these predict; the file may be '
        'one of identify too, for its rows. Exit code: 0 they are told, 1 nothing tells any, or '
        'the call names what does not exist (default: not asked)',
    )  # fmt: skip
    verb.add_argument(
        '--ft', nargs='+', metavar='SENSOR',
        help="FT sensors whose readings tell it, 'all' or 'none' (default: all, or those of the "
        'file)',
    )  # fmt: skip
    verb.add_argument(
        '--efforts', nargs='+', metavar='JOINT',
        help="joints whose reported efforts tell it, or 'all' (default: none, or those of the "
        'file)',
    )  # fmt: skip


def _run(chosen: argparse.Namespace) -> int:
    """Describe a robot; return the exit code."""
    if bool(chosen.config) + bool(chosen.fixed_link) + bool(chosen.imu) > 1:
        raise CallError('give one of --imu, --fixed-link, --config: they exclude each other')
    if not chosen.identifiable and (chosen.ft or chosen.efforts):
        raise CallError('--ft and --efforts go with --identifiable')
    inputs = (chosen.urdf, chosen.base_parameters, *files.config_files(chosen.config))
    files.check_outputs((chosen.json,), inputs)
    urdf = files.load_urdf(chosen.urdf)
    if chosen.base_parameters:
        return _check_base_parameters(chosen, urdf)
    if chosen.identifiable:
        return _check_identifiable(chosen, urdf)
    with files.naming(chosen.urdf):
        check = _check(chosen, urdf)
    files.write_json(chosen.json, check.as_dict())
    tables = check.tables if chosen.all else check.main_tables
    show(escape(check.summary), *(table(*found) for found in tables), *_warnings(check.warnings))
    if check.dependence:
        _show_dependence(check, whole=chosen.all)
    if not check.refusals:
        return 0
    with files.naming(chosen.urdf):
        raise ModelError('; besides, '.join(check.refusals))


def _check_base_parameters(chosen: argparse.Namespace, urdf: str) -> int:
    """Say whether any bodies have base parameters; return the exit code."""
    from inertial_estimation.check.base_parameters import check_base_parameters
    from inertial_estimation.check.identifiable_sources import (
        locked_notes,
        source_of_file,
        source_of_urdf,
    )

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
    files.write_json(chosen.json, report.as_dict())
    notes = () if chosen.config else locked_notes(urdf)
    show(*(table(*found) for found in report.tables), *map(escape, notes))
    return 0 if report.feasible else 1


def _check_identifiable(chosen: argparse.Namespace, urdf: str) -> int:
    """Say what logs could tell; return the exit code."""
    from inertial_estimation.check.identifiable import check_identifiable
    from inertial_estimation.check.identifiable_sources import source_of_file, source_of_urdf

    if chosen.imu or chosen.contacts:
        raise CallError('--identifiable goes without --imu and --contacts: any motion is assumed')
    if chosen.config and chosen.ft:
        raise CallError('--ft goes without --config, which names the FT sensors')
    efforts = chosen.efforts or ()
    with files.naming(chosen.urdf):
        if chosen.config:
            source = source_of_file(chosen.config, urdf, efforts)
        else:
            source = source_of_urdf(urdf, chosen.ft or ('all',), efforts, chosen.fixed_link)
        report = check_identifiable(source)
    files.write_json(chosen.json, report.as_dict())
    tables = (table(*found) for found in report.tables(whole=chosen.all))
    show(escape(report.summary), *tables, *map(escape, report.notes(whole=chosen.all)))
    return 0


def _check(chosen: argparse.Namespace, urdf: str) -> Check:
    """Return what is found."""
    from inertial_estimation.check import check_settings, check_urdf
    from inertial_estimation.config import EstimatorSettings
    from inertial_estimation.estimation.contacts import Contact

    contacts = [Contact(frame) for frame in chosen.contacts]
    if chosen.config:
        return check_settings(EstimatorSettings.from_yaml(chosen.config), urdf, contacts)
    return check_urdf(urdf, imus=chosen.imu, fixed_link=chosen.fixed_link, contacts=contacts)


def _show_dependence(check: Check, *, whole: bool) -> None:
    """Print what results rest on, under a heading of its own."""
    from inertial_estimation.check.records import TO

    tables = check.dependence_tables(whole=whole)
    said = [f'\n[bold]If only these are touched: {escape(", ".join(check.contacts))}[/]']
    if any(f' {TO} ' in cell for found in tables for row in found.rows for cell in row):
        said.append(
            f'a {TO} d: all from a to d, in the order in which --json lists sensors, joints and '
            'links; --all prints every name'
        )
    show(*said, *(table(*found) for found in tables), *_warnings(check.uninformed))


def _warnings(said: Iterable[str]) -> list[str]:
    """Return warnings as text with markup."""
    return [f'[yellow]warning:[/] {escape(warning)}' for warning in said]
