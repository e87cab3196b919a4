# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``calibrate offset-without-model``: raw readings and an accelerometer alone."""

from __future__ import annotations

import argparse
from typing import Any

from inertial_estimation.cli import files
from inertial_estimation.verbs.calibrate import common_options, raw_options
from inertial_estimation.verbs.options import add_verb
from inertial_estimation.verbs.terminal import escape, show, table

UNCHECKED = 'nothing checks the unit of the readings, nor whose wrench they are: '
OF_WRENCHES = 'they are taken for wrenches [N, Nm], and the offset is subtracted from them'
OF_MATRIX = 'they are taken for what the matrix of --calibration makes wrenches of'


def add(ways: Any) -> None:
    """Add the way that finds an offset without a model."""
    way = add_verb(
        ways, 'offset-without-model',
        'the offset of a sensor that carries one rigid body in several orientations, of which '
        'nothing is known, from its readings and an accelerometer on that body',
        'poses.npz --ft l_leg_ft --out icub.yaml --picture ellipsoid.png', 'calibrate',
    )  # fmt: skip
    way.add_argument(
        'log', metavar='LOG',
        help='npz or csv table, or bag; a part of one as LOG@FROM:TO, in seconds after its first '
        'readings',
    )  # fmt: skip
    raw_options.add_signals(way)
    raw_options.add_file(way)
    way.set_defaults(run=_run, names=raw_options.NAMES)


def _run(chosen: argparse.Namespace) -> None:
    """Find the offset."""
    from inertial_estimation.calibration.calibration_file import SensorCalibration
    from inertial_estimation.calibration.in_situ_pictures import draw_ellipsoid
    from inertial_estimation.calibration.in_situ_steps import (
        ROTATION_FREE,
        offset_step,
        offset_warnings,
    )
    from inertial_estimation.calibration.in_situ_tables import (
        offset_dict,
        offset_table,
        subspace_table,
    )
    from inertial_estimation.calibration.offset_in_situ import offset_in_situ
    from inertial_estimation.logs.raw_log import read_raw_log

    raw_options.check_files(chosen, (chosen.log,))
    before = common_options.before(chosen) or SensorCalibration()
    log = read_raw_log(chosen.log, raw_options.signals_of(chosen))
    found = offset_in_situ(
        log.raw, log.accelerations, turning=log.turning, matrix=before.matrix,
        bias=chosen.accelerometer_offset, what=log.name,
    )  # fmt: skip
    step = offset_step(found, before, log.date, chosen.temperature)
    warnings = offset_warnings(found, before.matrix)
    files.write_json(
        chosen.json,
        {'sensor': chosen.ft, 'log': log.name, 'date': log.date, 'warnings': list(warnings)}
        | offset_dict(found, before.matrix),
    )
    if chosen.picture:
        draw_ellipsoid(found, log.raw, chosen.picture)
    show(
        table(*offset_table(found, before.matrix)),
        table(*subspace_table({log.name: found})),
        escape(f'the offset holds {ROTATION_FREE}'),
        escape(UNCHECKED + (OF_WRENCHES if chosen.calibration is None else OF_MATRIX)),
        *(f'[yellow]warning:[/] {escape(text)}' for text in warnings),
    )
    # At the end: what was found is seen even if it does not belong into that file.
    raw_options.write(chosen, step, keeps_slopes=True)
