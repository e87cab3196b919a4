# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``check``."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from inertial_estimation.cli import identifiable
from inertial_estimation.cli.commands import ALL
from inertial_estimation.cli.files import load_urdf, naming
from inertial_estimation.cli.render import escape, findings_lines, records_table, show, write_json
from inertial_estimation.cli.robot_check import check_settings, check_urdf
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.files import read_text
from inertial_estimation.errors import CallError, ModelError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.identification.feasibility import (
    Consistency,
    Verdict,
    check_stated,
    read_base_parameters,
)
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.model.robot import Robot

Record = dict[str, Any]

TABLES = {
    'FT sensors': ('ft_sensors', ('sensor', 'joint', 'reads')),
    'Submodels': ('submodels', ()),
    'Motion sources': ('clusters', ()),
    'Dependence of joint torques': ('torque_dependence', ()),
    'Dependence of wrenches at contacts': ('wrench_dependence', ()),
}
"""Of each title, key and columns of the records; default: all."""
VERDICTS = 'cone', 'verdict', 'margin', 'distance', 'grade'
ROUND_OFF = 1e-6
"""Share of the distance below which a change is round-off of the solver."""


def run(chosen: argparse.Namespace) -> int:
    """Describe a robot; return the exit code."""
    if bool(chosen.config) + bool(chosen.fixed_link) + bool(chosen.imu) > 1:
        raise CallError('give one of --imu, --fixed-link, --config')
    if chosen.identifiable and chosen.base_parameters:
        raise CallError('--identifiable excludes --base-parameters')
    of_equations = chosen.identifiable or chosen.base_parameters
    if of_equations and (chosen.imu or chosen.contacts):
        raise CallError('--imu and --contacts go without --identifiable and --base-parameters')
    if (chosen.ft or chosen.efforts) and (chosen.config or not chosen.identifiable):
        raise CallError('--ft and --efforts go with --identifiable, without --config')
    urdf = load_urdf(chosen.urdf)
    return (_check_equations if of_equations else _check_robot)(chosen, urdf)


def _check_robot(chosen: argparse.Namespace, urdf: str) -> int:
    contacts = [Contact(frame) for frame in chosen.contacts]
    with naming(chosen.urdf, chosen.config):
        if chosen.config:
            settings = EstimatorSettings.from_yaml(chosen.config)
            found = check_settings(settings, urdf, contacts)
        else:
            found = check_urdf(
                urdf, imus=chosen.imu, fixed_link=chosen.fixed_link, contacts=contacts
            )
        write_json(chosen.json, found)
        show(escape(found['summary']))
        for title, (key, columns) in TABLES.items():
            if found.get(key):
                show('', records_table(title, found[key], columns))
        show(*findings_lines(found['findings']))
        if found['refusals']:
            raise ModelError('; '.join(found['refusals']))
    return 0


def _check_equations(chosen: argparse.Namespace, urdf: str) -> int:
    """Print what logs can determine, or whether stated base parameters can be those of bodies."""
    with naming(chosen.urdf, chosen.config):
        notes, contacts = list[str](), tuple[str, ...]()
        if chosen.config:
            settings = IdentifySettings.from_yaml(chosen.config)
            robot = settings.build_robot(urdf)
            choice, contacts = settings.choice(robot), settings.rows.contacts
        else:
            robot, choice, notes = identifiable.source_of_urdf(
                urdf, chosen.ft or (ALL,), chosen.efforts, chosen.fixed_link
            )
        locked = map(escape, notes)
        if chosen.identifiable:
            found = identifiable.check_identifiable(robot, choice, notes, contacts)
            write_json(chosen.json, found)
            show(escape(found['summary']), *identifiable.identifiable_tables(found), *locked)
            return 0
    text = read_text(chosen.base_parameters).removeprefix('\ufeff')
    with naming(chosen.base_parameters):
        found, shown, feasible = check_base_parameters(text, robot)
    write_json(chosen.json, found)
    show(*shown, *locked)
    return 0 if feasible else 1


def check_base_parameters(text: str, robot: Robot) -> tuple[Record, list[Any], bool]:
    """
    Check base parameters against the cones of 4x4 pseudo-inertias (full) and of 6x6 inertias.

    Returns the figures, their tables, and whether consistent parameters and passive drives exist.
    """
    stated = read_base_parameters(text, robot)
    names, values = stated.base.combinations(stated.unknowns.names), stated.values
    found: Record = {}
    for kind in (Consistency.FULL, Consistency.PHYSICAL):
        check = check_stated(robot, stated, consistency=kind)
        proof = check.certificate
        found[kind.value] = {
            'verdict': check.verdict.value, 'margin': check.margin, 'distance': check.distance,
            'grade': check.grade.value,
            'nearest': dict(zip(names, check.nearest.tolist(), strict=True)),
            'certificate': proof and {
                'weights': dict(zip(names, proof.normal.tolist(), strict=True)),
                'least': proof.offset, 'stated': float(proof.normal @ values),
            },
        }  # fmt: skip
    below = {
        names[k]: {
            'value': float(values[k]),
            'deviation': float(stated.deviations[k]) or None,
            'may_be_zero': bool(values[k] >= -stated.deviations[k]),
        }
        for k in np.flatnonzero(stated.below_zero)
    }
    verdicts = [{'cone': kind, **one} for kind, one in found.items()]
    negative = [{'combination': name, **one} for name, one in below.items()]
    tables = [
        records_table('Base parameters', verdicts, VERDICTS),
        records_table('Negative friction and drives', negative),
    ]
    full = found[Consistency.FULL.value]
    feasible = full['verdict'] == Verdict.FEASIBLE.value
    if not feasible:
        nearest = [
            {'combination': name, 'stated': value, 'nearest': near, 'change': near - value}
            for (name, near), value in zip(full['nearest'].items(), values.tolist(), strict=True)
            if abs(near - value) > ROUND_OFF * full['distance']
        ]
        title = f'Nearest feasible base parameters ({len(nearest)} of {len(values)} change)'
        tables.append(records_table(title, nearest))
    passive = all(one['may_be_zero'] for one in below.values())
    return found | {'below_zero': below}, tables, feasible and passive
