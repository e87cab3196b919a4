# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``check``."""

from __future__ import annotations

import argparse
from typing import Any

from inertial_estimation.errors import ConfigError
from inertial_estimation.verbs import files
from inertial_estimation.verbs.options import add_verb
from inertial_estimation.verbs.terminal import escape, show, table


def add(verbs: Any) -> None:
    """
    Add the verb that describes a robot.

    Parameters
    ----------
    verbs : object
        Where argparse keeps the verbs.

    """
    verb = add_verb(
        verbs, 'check', 'what the package makes of a robot description',
        'robot.urdf --imu torso_imu --contacts l_foot r_foot',
    )  # fmt: skip
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
        help='where the environment may touch the robot, a full wrench each: tells what every '
        "torque and external wrench rests on (default: the parameter file's, if there is one)",
    )  # fmt: skip
    verb.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> None:
    """Describe a robot."""
    from inertial_estimation.building import build_contacts, build_robot
    from inertial_estimation.check import check_robot, check_urdf
    from inertial_estimation.config import EstimatorSettings
    from inertial_estimation.estimation.contacts import Contact

    if bool(chosen.config) + bool(chosen.fixed_link) + bool(chosen.imu) > 1:
        raise ConfigError('give one of --imu, --fixed-link, --config: they exclude each other')
    files.check_writable(chosen.json)
    urdf = files.load_urdf(chosen.urdf)
    contacts = [Contact(frame) for frame in chosen.contacts]
    with files.naming(chosen.urdf):
        if chosen.config:
            settings = EstimatorSettings.from_yaml(chosen.config)
            contacts = contacts or build_contacts(settings)
            source = settings.angular_acceleration_source
            check = check_robot(build_robot(settings, urdf), (), contacts, source)
        else:
            check = check_urdf(
                urdf, imus=chosen.imu, fixed_link=chosen.fixed_link, contacts=contacts
            )
    files.write_json(chosen.json, check.as_dict())
    warnings = [f'[yellow]warning:[/] {escape(warning)}' for warning in check.warnings]
    tables = [table(*found) for found in check.tables]
    show(escape(check.summary), *tables, *warnings)
