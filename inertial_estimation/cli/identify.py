# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``identify``."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli import files
from inertial_estimation.cli.arguments import add_verb
from inertial_estimation.cli.render import escape, progress_bars, show, table
from inertial_estimation.errors import CallError, ConfigError, ModelError

if TYPE_CHECKING:
    from inertial_estimation.identification.priors import PriorRows

METHODS = (
    'entropic', 'semidefinite', 'mass_points', 'manifold', 'pullback', 'euclidean',
    'least_squares',
)  # fmt: skip
"""Those of `identification.solvers.methods`, which takes too long to import for a help text."""


def add(verbs: Any) -> None:
    """Add the verb that identifies what the links weigh."""
    verb = add_verb(
        verbs, 'identify', 'find out from logs what the links of a robot weigh',
        'run1.npz run2.npz --robot arm.urdf --config arm_logs.yaml --validate run3.npz '
        '--out-urdf identified.urdf',
    )  # fmt: skip
    verb.add_argument(
        'logs', nargs='+', metavar='LOG',
        help='npz or csv tables, or bags; a part of one as LOG@FROM:TO, in seconds after its '
        'first sample',
    )  # fmt: skip
    verb.add_argument('--robot', required=True, metavar='URDF', help='robot description file')
    verb.add_argument(
        '--config', required=True, metavar='YAML',
        help='which columns are which signals, the filter, the rows; for bags it names the '
        "parameter file of the node in place of columns, as 'parameters: FILE', or is that file, "
        'for rows of wrenches alone',
    )  # fmt: skip
    verb.add_argument(
        '--method', choices=METHODS, default='entropic', help='solver (default: %(default)s)'
    )
    verb.add_argument(
        '--weight', type=_weight, metavar='NUMBER[-rows]',
        help='of the prior: as many independent rows of each submodel, 1-row for tools and '
        'payloads of which little is known; or a number, against the mean squared residual '
        '(default: 10-rows)',
    )  # fmt: skip
    verb.add_argument(
        '--validate', nargs='+', default=[], metavar='LOG',
        help='logs or parts of logs to predict, which are not fitted (default: none)',
    )  # fmt: skip
    verb.add_argument(
        '--lock', nargs='+', default=[], metavar='JOINT',
        help='joints that the logs do not move: what they tie together is one body, all of whose '
        'parameters may be found beyond an FT sensor (default: none)',
    )  # fmt: skip
    verb.add_argument(
        '--out-urdf', type=Path, metavar='FILE',
        help='the robot description with what was found; not written, with exit code 1, where no '
        'body weighs like that or bounds are not kept (default: no file)',
    )  # fmt: skip
    verb.add_argument(
        '--out-yaml', type=Path, metavar='FILE',
        help='friction, drives and offsets that were found, with their standard deviations '
        '(default: no file)',
    )  # fmt: skip
    verb.set_defaults(run=_run)


def _weight(text: str) -> float | PriorRows:
    """Return the weight of a prior."""
    from inertial_estimation.identification.priors import prior_weight

    try:
        return prior_weight(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _run(chosen: argparse.Namespace) -> int:
    """Identify a robot."""
    from inertial_estimation.identification.fit import require_bounds
    from inertial_estimation.identification.solvers.methods import SOLVERS
    from inertial_estimation.logs.identify import identify
    from inertial_estimation.logs.identify_exports import extras_yaml, identify_dict
    from inertial_estimation.logs.identify_settings import IdentifySettings
    from inertial_estimation.logs.identify_tables import identify_tables
    from inertial_estimation.logs.identify_warnings import lightened_warnings
    from inertial_estimation.logs.stretch import Stretch
    from inertial_estimation.model.urdf_encoding import encoded
    from inertial_estimation.model.urdf_export import export_urdf
    from inertial_estimation.output import write_whole

    if chosen.weight is not None and not SOLVERS[chosen.method].weighted:
        raise CallError(
            f'--weight is of the prior against the rows, which {chosen.method} does not have'
        )
    logs = [Stretch.parse(log).path for log in (*chosen.logs, *chosen.validate)]
    files.check_outputs(
        (chosen.json, chosen.out_urdf, chosen.out_yaml),
        (chosen.robot, *files.config_files(chosen.config), *logs),
    )
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
            mesh_folders=(Path(chosen.robot).parent,),
            progress=progress,
        )
    written, refusal = None, None
    if chosen.out_urdf is not None:
        try:
            require_bounds(report.fit)
            written = export_urdf(report.fit.robot, report.fit.described)
            report = replace(report, warnings=(*report.warnings, *lightened_warnings(report.fit)))
        except ModelError as error:
            # All else is worth having, so that one sees what went wrong.
            refusal = ModelError(f"'{chosen.out_urdf}' is not written: {error}")
    files.write_json(chosen.json, identify_dict(report))
    if written is not None:
        write_whole(chosen.out_urdf, encoded(written))
    if chosen.out_yaml is not None:
        write_whole(chosen.out_yaml, extras_yaml(report))
    said = [f'[yellow]warning:[/] {escape(text)}' for text in report.warnings]
    show(*(table(*found) for found in identify_tables(report)), *said)
    if refusal is not None:
        raise refusal
    return 0
