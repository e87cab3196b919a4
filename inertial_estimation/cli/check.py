# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``check``."""

from __future__ import annotations

import argparse

from inertial_estimation.cli import files
from inertial_estimation.cli.arguments import COMMANDS, FLAG, FULL, NAMES, Command
from inertial_estimation.cli.render import (
    FULL_WIDTH,
    all_tables,
    escape,
    findings_lines,
    show,
    write_json,
)
from inertial_estimation.errors import CallError, ModelError

TABLES = ('ft_sensors', 'submodels', 'clusters', 'torque_dependence', 'wrench_dependence')
FULL_COLUMNS = ('xyz_m', 'rpy_rad', 'frame')
"""Printed with --full, as further tables are."""


def _run(chosen: argparse.Namespace) -> int:
    """Describe a robot; return the exit code."""
    if bool(chosen.config) + bool(chosen.fixed_link) + bool(chosen.imu) > 1:
        raise CallError('give one of --imu, --fixed-link, --config')
    if not chosen.identifiable and (chosen.ft or chosen.efforts):
        raise CallError('--ft and --efforts go with --identifiable')
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
    records = found.records
    if not chosen.full:
        records = {
            key: [{k: v for k, v in one.items() if k not in FULL_COLUMNS} for one in records[key]]
            for key in TABLES
            if key in records
        }
    tables = all_tables(records, full=chosen.full)
    width = FULL_WIDTH if chosen.full else None
    show(escape(found.robot.summary), *tables, *findings_lines(found.findings), width=width)
    if found.refusals:
        with files.naming(chosen.urdf):
            raise ModelError('; '.join(found.refusals))
    return 0


def _check_base_parameters(chosen: argparse.Namespace, urdf: str) -> int:
    """Print whether consistent parameters have some base parameters; return the exit code."""
    from inertial_estimation.cli.base_parameters import check_base_parameters
    from inertial_estimation.cli.identifiable import locked_notes, source_of_file, source_of_urdf
    from inertial_estimation.config.files import read_text

    if chosen.imu or chosen.contacts or chosen.identifiable:
        raise CallError('--base-parameters goes with --fixed-link or --config alone')
    text = read_text(chosen.base_parameters).removeprefix('\ufeff')
    with files.naming(chosen.urdf):
        if chosen.config:
            robot = source_of_file(chosen.config, urdf).robot
        else:
            robot = source_of_urdf(urdf, fixed_link=chosen.fixed_link).robot
    with files.naming(chosen.base_parameters):
        found, tables, feasible = check_base_parameters(text, robot)
    write_json(chosen.json, found)
    notes = () if chosen.config else locked_notes(urdf)
    show(*tables, *map(escape, notes))
    return 0 if feasible else 1


def _check_identifiable(chosen: argparse.Namespace, urdf: str) -> int:
    """Print the combinations that logs can determine; return the exit code."""
    from inertial_estimation.cli.identifiable import (
        check_identifiable,
        identifiable_tables,
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
        found = check_identifiable(source)
    write_json(chosen.json, found)
    tables = identifiable_tables(found, full=chosen.full)
    show(escape(found['summary']), *tables, *map(escape, source.notes))
    return 0


COMMAND = Command(
    COMMANDS['check'], 'robot.urdf --imu torso_imu --contacts l_foot r_foot', _run,
    (('urdf', 'URDF', 'robot description'),
     ('--imu', 'FRAME', 'IMU in use, repeatable (default: all)', {'action': 'append'}),
     ('--fixed-link', 'FRAME', 'frame at rest', {'default': ''}),
     ('--config', 'YAML', 'parameter file of the node'),
     ('--contacts', 'FRAME', 'contacts, with a wrench each', NAMES),
     ('--base-parameters', 'FILE', 'base parameters to check for consistency'),
     ('--identifiable', None, 'combinations that logs can determine', FLAG),
     ('--ft', 'SENSOR', "FT sensors for that, 'all' or 'none'", NAMES),
     ('--efforts', 'JOINT', "joint efforts for that, or 'all'", NAMES), FULL),
    'Exit code 0: the node would start with it; 1: it would not, and the last line states why; 2: '
    'wrong call.',
)  # fmt: skip
