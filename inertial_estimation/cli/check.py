# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``check``."""

from __future__ import annotations

import argparse

from inertial_estimation.cli import base_parameters, files, identifiable
from inertial_estimation.cli.render import (
    FULL_WIDTH,
    all_tables,
    escape,
    findings_lines,
    show,
    write_json,
)
from inertial_estimation.cli.robot_check import check_settings, check_urdf
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.files import read_text
from inertial_estimation.errors import CallError, ModelError
from inertial_estimation.estimation.contacts import Contact

TABLES = ('ft_sensors', 'submodels', 'clusters', 'torque_dependence', 'wrench_dependence')
"""Printed without --full."""


def run(chosen: argparse.Namespace) -> int:
    """Describe a robot; return the exit code."""
    if bool(chosen.config) + bool(chosen.fixed_link) + bool(chosen.imu) > 1:
        raise CallError('give one of --imu, --fixed-link, --config')
    of_equations = chosen.identifiable or chosen.base_parameters
    if of_equations and (chosen.imu or chosen.contacts):
        raise CallError('--imu and --contacts go without --identifiable and --base-parameters')
    if (chosen.ft or chosen.efforts) and (chosen.config or not chosen.identifiable):
        raise CallError('--ft and --efforts go with --identifiable, without --config')
    urdf = files.load_urdf(chosen.urdf)
    return (_check_equations if of_equations else _check_robot)(chosen, urdf)


def _check_robot(chosen: argparse.Namespace, urdf: str) -> int:
    """Print sensors, submodels and dependence."""
    contacts = [Contact(frame) for frame in chosen.contacts]
    with files.naming(chosen.urdf):
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
    shown = {key: records[key] for key in (records if chosen.full else TABLES) if key in records}
    tables = all_tables(shown, full=chosen.full)
    width = FULL_WIDTH if chosen.full else None
    show(escape(summary), *tables, *findings_lines(found.findings), width=width)
    if found.refusals:
        with files.naming(chosen.urdf):
            raise ModelError('; '.join(found.refusals))
    return 0


def _check_equations(chosen: argparse.Namespace, urdf: str) -> int:
    """Print what logs can determine, or whether stated base parameters can be those of bodies."""
    with files.naming(chosen.urdf):
        if chosen.config:
            source = identifiable.source_of_file(chosen.config, urdf)
        else:
            source = identifiable.source_of_urdf(
                urdf, chosen.ft or (identifiable.ALL,), chosen.efforts, chosen.fixed_link
            )
    notes = map(escape, source.notes)
    if chosen.identifiable:
        with files.naming(chosen.urdf):
            found = identifiable.check_identifiable(source)
        write_json(chosen.json, found)
        tables = identifiable.identifiable_tables(found, full=chosen.full)
        show(escape(found['summary']), *tables, *notes)
        return 0
    text = read_text(chosen.base_parameters).removeprefix('\ufeff')
    with files.naming(chosen.base_parameters):
        found, shown, feasible = base_parameters.check_base_parameters(text, source.robot)
    write_json(chosen.json, found)
    show(*shown, *notes)
    return 0 if feasible else 1
