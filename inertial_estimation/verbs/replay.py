# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``replay``."""

from __future__ import annotations

import argparse
from math import inf
from pathlib import Path
from typing import Any

from inertial_estimation.errors import CallError
from inertial_estimation.verbs import files
from inertial_estimation.verbs.options import add_verb
from inertial_estimation.verbs.terminal import escape, progress_bars, show, table


def add(verbs: Any) -> None:
    """Add the verb that runs the estimator over a bag."""
    verb = add_verb(
        verbs, 'replay', 'run the estimator over a ROS 2 bag, without ROS',
        'walk.mcap --robot robot.urdf --config robot.yaml --range 5 20 --out results',
    )  # fmt: skip
    verb.add_argument('bag', metavar='BAG', help='bag: its folder, or its mcap or db3 file')
    verb.add_argument('--robot', required=True, metavar='URDF', help='robot description file')
    verb.add_argument('--config', required=True, metavar='YAML', help="the node's parameter file")
    verb.add_argument(
        '--range', nargs=2, type=float, metavar=('FROM', 'TO'), default=(-inf, inf),
        help='what is estimated, in seconds after the first FT message (default: all)',
    )  # fmt: skip
    verb.add_argument(
        '--offsets-from', choices=('settings', 'model', 'torques'), default='settings',
        help='where the constant FT offsets come from: the parameter file, the model, or the '
        'torques that the robot itself reports. The model presumes that the support is the only '
        'contact throughout the offset range, of which only a second foot on the ground is '
        'noticed; it also has a say with torques, in what these do not tell, if a support is '
        'named or a link is fixed (default: %(default)s)',
    )  # fmt: skip
    verb.add_argument(
        '--offset-range', nargs=2, type=float, metavar=('FROM', 'TO'), default=(-inf, inf),
        help='the part of the log from which the offsets are computed, in seconds as above '
        '(default: all)',
    )  # fmt: skip
    verb.add_argument(
        '--support', default='', metavar='FRAME',
        help='the only contact in the offset range (default: fixed_link of the parameter file)',
    )  # fmt: skip
    verb.add_argument(
        '--out', type=Path, metavar='FOLDER',
        help='new folder for a bag with wrenches and torques (default: none is written)',
    )  # fmt: skip
    verb.add_argument(
        '--through', nargs='+', default=[], metavar='JOINT',
        help='joints whose whole wrench, what the parent link does to the child link, is told, '
        'and goes into that bag if there is one, besides internal_wrench_joints of the parameter '
        'file (default: those alone)',
    )  # fmt: skip
    verb.add_argument(
        '--net', nargs='+', default=[], metavar='LINK',
        help='links whose net wrench, what moves the link against gravity, is told, and goes into '
        'that bag if there is one, besides net_wrench_links of the parameter file (default: those '
        'alone)',
    )  # fmt: skip
    verb.set_defaults(run=_run, names={'supports': '--support'})


def _run(chosen: argparse.Namespace) -> None:
    """Run the estimator over a bag."""
    from inertial_estimation.config import EstimatorSettings
    from inertial_estimation.logs.job import replay_bag
    from inertial_estimation.logs.offsets import OffsetRequest
    from inertial_estimation.logs.recording import TimeRange
    from inertial_estimation.logs.tables import make_tables

    if chosen.offsets_from == 'settings' and (chosen.support or chosen.offset_range[0] > -inf):
        raise CallError('--support and --offset-range need --offsets-from model or torques')
    if chosen.json and chosen.out not in chosen.json.parents:
        inputs = (chosen.bag, chosen.robot, *files.config_files(chosen.config))
        files.check_outputs((chosen.json,), inputs)
    urdf = files.load_urdf(chosen.robot)
    with progress_bars() as progress:
        report = replay_bag(
            chosen.bag,
            urdf,
            EstimatorSettings.from_yaml(chosen.config),
            time_range=TimeRange(*chosen.range),
            offsets=OffsetRequest(
                chosen.offsets_from, TimeRange(*chosen.offset_range), chosen.support
            ),
            out=chosen.out,
            through=chosen.through,
            net=chosen.net,
            progress=progress,
        )
    files.write_json(chosen.json, report.as_dict())
    show(escape(report.summary), *(table(*found) for found in make_tables(report)))
