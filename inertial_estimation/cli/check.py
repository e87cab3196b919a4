# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``check``."""

from __future__ import annotations

import argparse

from inertial_estimation.cli import base_parameters, identifiable
from inertial_estimation.cli.files import load_urdf, naming
from inertial_estimation.cli.render import escape, findings_lines, records_table, show, write_json
from inertial_estimation.cli.robot_check import check_settings, check_urdf
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.files import read_text
from inertial_estimation.errors import CallError, ModelError
from inertial_estimation.estimation.contacts import Contact

TABLES = {
    'FT sensors': ('ft_sensors', ('sensor', 'joint', 'reads')),
    'Submodels': ('submodels', ()),
    'Motion sources': ('clusters', ()),
    'Dependence of joint torques': ('torque_dependence', ()),
    'Dependence of wrenches at contacts': ('wrench_dependence', ()),
}
"""Of each title, key and columns of the records; default: all."""


def run(chosen: argparse.Namespace) -> int:
    """Describe a robot; return the exit code."""
    if bool(chosen.config) + bool(chosen.fixed_link) + bool(chosen.imu) > 1:
        raise CallError('give one of --imu, --fixed-link, --config')
    of_equations = chosen.identifiable or chosen.base_parameters
    if of_equations and (chosen.imu or chosen.contacts):
        raise CallError('--imu and --contacts go without --identifiable and --base-parameters')
    if (chosen.ft or chosen.efforts) and (chosen.config or not chosen.identifiable):
        raise CallError('--ft and --efforts go with --identifiable, without --config')
    urdf = load_urdf(chosen.urdf)
    return (_check_equations if of_equations else _check_robot)(chosen, urdf)


def _check_robot(chosen: argparse.Namespace, urdf: str) -> int:
    """Print sensors, submodels and dependence."""
    contacts = [Contact(frame) for frame in chosen.contacts]
    with naming(chosen.urdf):
        if chosen.config:
            settings = EstimatorSettings.from_yaml(chosen.config)
            found = check_settings(settings, urdf, contacts)
        else:
            found = check_urdf(
                urdf, imus=chosen.imu, fixed_link=chosen.fixed_link, contacts=contacts
            )
        summary, records = found.robot.summary, found.records
        state = {'summary': summary, 'findings': found.findings, 'refusals': found.refusals}
        write_json(chosen.json, {**state, **records})
        show(escape(summary))
        for title, (key, columns) in TABLES.items():
            if records.get(key):
                show('', records_table(title, records[key], columns))
        show(*findings_lines(found.findings))
        if found.refusals:
            raise ModelError('; '.join(found.refusals))
    return 0


def _check_equations(chosen: argparse.Namespace, urdf: str) -> int:
    """Print what logs can determine, or whether stated base parameters can be those of bodies."""
    with naming(chosen.urdf):
        if chosen.config:
            source = identifiable.source_of_file(chosen.config, urdf)
        else:
            source = identifiable.source_of_urdf(
                urdf, chosen.ft or (identifiable.ALL,), chosen.efforts, chosen.fixed_link
            )
    notes = map(escape, source.notes)
    if chosen.identifiable:
        with naming(chosen.urdf):
            found = identifiable.check_identifiable(source)
        write_json(chosen.json, found)
        show(escape(found['summary']), *identifiable.identifiable_tables(found), *notes)
        return 0
    text = read_text(chosen.base_parameters).removeprefix('\ufeff')
    with naming(chosen.base_parameters):
        found, shown, feasible = base_parameters.check_base_parameters(text, source.robot)
    write_json(chosen.json, found)
    show(*shown, *notes)
    return 0 if feasible else 1
