# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``identify``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from inertial_estimation.errors import ConfigError
from inertial_estimation.verbs import files
from inertial_estimation.verbs.options import add_verb
from inertial_estimation.verbs.terminal import progress_bars, show, table

METHODS = ('entropic', 'least_squares', 'euclidean', 'pullback')


def add(verbs: Any) -> None:
    """
    Add the verb that identifies what the links weigh.

    Parameters
    ----------
    verbs : object
        Where argparse keeps the verbs.

    """
    verb = add_verb(
        verbs, 'identify', 'find out from logs what the links of a robot weigh',
        'run1.npz run2.npz --robot arm.urdf --config arm_logs.yaml --validate run3.npz '
        '--out-urdf identified.urdf',
    )  # fmt: skip
    verb.add_argument('logs', nargs='+', metavar='LOG', help='npz or csv tables, or bags')
    verb.add_argument('--robot', required=True, metavar='URDF', help='robot description file')
    verb.add_argument(
        '--config', required=True, metavar='YAML',
        help='which columns are which signals, the filter, the rows; for bags the parameter file '
        'of the node',
    )  # fmt: skip
    verb.add_argument(
        '--method', choices=METHODS, default='entropic', help='solver (default: %(default)s)'
    )
    verb.add_argument(
        '--weight', type=float, metavar='NUMBER',
        help='of the prior, against the mean squared residual (default: 0.01)',
    )  # fmt: skip
    verb.add_argument(
        '--validate', nargs='+', default=[], metavar='LOG',
        help='logs to predict, which are not fitted (default: none)',
    )  # fmt: skip
    verb.add_argument(
        '--lock', nargs='+', default=[], metavar='JOINT',
        help='joints that the logs do not move: what they tie together is one body, all of whose '
        'parameters may be found beyond an FT sensor (default: none)',
    )  # fmt: skip
    verb.add_argument(
        '--out-urdf', type=Path, metavar='FILE',
        help='the robot description with what was found; refused where no body weighs like that',
    )  # fmt: skip
    verb.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    """Identify a robot."""
    from inertial_estimation.logs.identify import identify
    from inertial_estimation.logs.identify_settings import IdentifySettings
    from inertial_estimation.logs.identify_tables import identify_dict, identify_tables
    from inertial_estimation.model.urdf_export import export_urdf
    from inertial_estimation.output import write_whole

    if chosen.weight is not None and chosen.method == 'least_squares':
        raise ConfigError('--weight is of the prior, which least_squares does not go by')
    for path in (chosen.json, chosen.out_urdf):
        files.check_writable(path)
    options = {} if chosen.weight is None else {'weight': chosen.weight}
    urdf = files.load_urdf(chosen.robot)
    with progress_bars() as progress:
        report = identify(
            chosen.logs,
            urdf,
            IdentifySettings.from_yaml(chosen.config),
            method=chosen.method,
            options=options,
            validate=chosen.validate,
            lock=chosen.lock,
            progress=progress,
        )
    files.write_json(chosen.json, identify_dict(report))
    show(*(table(*found) for found in identify_tables(report)))
    if chosen.out_urdf is not None:
        write_whole(chosen.out_urdf, export_urdf(report.fit.robot, report.fit.parameters))
    return 0
