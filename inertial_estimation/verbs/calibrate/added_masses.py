# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``calibrate matrix``: the matrix of a sensor from masses that are added."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli import files
from inertial_estimation.errors import CalibrationError, CallError
from inertial_estimation.verbs.calibrate import common_options, raw_options
from inertial_estimation.verbs.options import add_verb
from inertial_estimation.verbs.terminal import escape, progress_bars, show, table

if TYPE_CHECKING:
    from inertial_estimation.calibration.added_masses import AddedMass, Array
    from inertial_estimation.calibration.offset_in_situ import InSituOffset

FIELDS = ('LOG', 'KG', 'X', 'Y', 'Z')
"""Of a data set: what was added, and its centre of mass about the sensor's origin [m]."""

UNCHECKED = (
    'nothing checks units and --direction, as no former matrix is known: give the one of the '
    'workshop with --calibration if there is any'
)
OF_WRENCHES = (
    'the readings are taken for wrenches [N, Nm], as their forces show, and the identity for the '
    'former matrix'
)


def add(ways: Any) -> None:
    """Add the way that finds a matrix from added masses."""
    way = add_verb(
        ways, 'matrix',
        'the matrix of a sensor from three data sets or more with known masses added to the body '
        'beyond it, of which nothing else is known',
        '--data none.npz 0 0 0 0 --data far.npz 0.51 0.3 0 0.05 --data side.npz 0.51 0 0.2 0.05 '
        '--ft l_foot_ft --imu-rpy 0 0 0 --out icub.yaml', 'calibrate',
    )  # fmt: skip
    way.add_argument(
        '--data', nargs=5, action='append', metavar=FIELDS, required=True,
        help='a log, or a part of one as LOG@FROM:TO, with the mass that was added [kg] and its '
        "centre about the sensor's origin [m]; three or more: total masses must not all be equal, "
        'nor total centres on one line',
    )  # fmt: skip
    way.add_argument(
        '--validate', nargs=5, action='append', metavar=FIELDS, default=[],
        help='the same, to be weighed with the matrix and not used for it (default: none)',
    )  # fmt: skip
    common_options.add_placement(
        way, '', "not known; wrenches and centres are in the accelerometer's axes"
    )
    raw_options.add_signals(way)
    raw_options.add_file(way)
    way.set_defaults(run=_run, names=raw_options.NAMES)


def _run(chosen: argparse.Namespace) -> None:
    """Find the matrix."""
    from inertial_estimation.calibration import in_situ_tables as tables
    from inertial_estimation.calibration.added_masses import matrix_from_added_masses
    from inertial_estimation.calibration.former_matrix import change, prior_matrix
    from inertial_estimation.calibration.in_situ_pictures import draw_forces
    from inertial_estimation.calibration.in_situ_steps import (
        IN_ACCELEROMETER_AXES,
        matrix_step,
        matrix_warnings,
    )
    from inertial_estimation.calibration.matrix_doubts import matrix_doubts
    from inertial_estimation.calibration.wrench_axes import SENSOR

    _refuse_overlaps([*chosen.data, *chosen.validate])
    raw_options.check_files(chosen, [said[0] for said in (*chosen.data, *chosen.validate)])
    before = common_options.before(chosen)
    workshop = None if before is None else before.matrix
    sets, date = _read(chosen, chosen.data, 'data')
    others, _ = _read(chosen, chosen.validate, 'validate')
    found = matrix_from_added_masses(
        sets, rotation=_rotation(chosen.imu_rpy), workshop=workshop,
        bias=chosen.accelerometer_offset, direction=common_options.direction_of(chosen),
    )  # fmt: skip
    turned = before is not None and before.axes != SENSOR
    doubts = matrix_doubts(found, workshop, turned=turned)
    # A matrix that cannot be makes no channels comparable.
    metric = workshop if doubts else found.matrix
    judged = [(one, _offset(one, metric, chosen)) for one in others]
    warnings = [*doubts, *matrix_warnings(found, workshop, turned=turned)]
    if before is not None and before.temperature_coefficients.any():
        warnings.append('temperature coefficients of the former matrix do not hold any more')
    prior = prior_matrix(found, workshop)
    files.write_json(
        chosen.json,
        {'sensor': chosen.ft, 'date': date, 'warnings': warnings, 'doubts': list(doubts)}
        | tables.matrix_dict(found, judged, prior, turned=turned),
    )
    if chosen.picture:
        draw_forces(found, workshop, chosen.picture)
    fitted = list(zip(sets, found.found, strict=True))
    shown = [
        tables.matrix_table(found),
        tables.body_table(found),
        tables.offsets_table(found),
        tables.subspace_table({one.name: offset for one, offset in (*fitted, *judged)}),
        tables.weighing_table(found, fitted, workshop, 'masses of the data sets'),
    ]
    if judged:
        title = 'masses of data sets that were not used'
        shown.append(tables.weighing_table(found, judged, workshop, title))
    said = [] if found.in_sensor_axes else [escape(IN_ACCELEROMETER_AXES)]
    if prior is None:
        said.append(escape(UNCHECKED))
    else:
        said += [escape(OF_WRENCHES)] * (workshop is None)
        by = change(found, prior, turned=turned).in_words()
        said.append(escape(f'the matrix differs from the former one by {by}'))
    said += [f'[yellow]warning:[/] {escape(text)}' for text in warnings]
    show(*(table(*one) for one in shown), *said)
    # At the end: what was found is seen even if it does not belong into that file.
    if doubts:
        raise _refused(chosen, doubts, workshop)
    raw_options.write(
        chosen, matrix_step(found, date, chosen.temperature, workshop, turned=turned)
    )


def _refused(
    chosen: argparse.Namespace, doubts: Sequence[str], former: Array | None
) -> CalibrationError:
    """Return the error that says why a matrix cannot be, whether or not a file was to hold it."""
    remedy = _remedy(chosen, doubts, former)
    if chosen.out is not None:
        return common_options.not_written(chosen.out, doubts, remedy)
    return CalibrationError(f'the matrix cannot be used, as {"; ".join(doubts)}: {remedy}')


def _remedy(chosen: argparse.Namespace, doubts: Sequence[str], former: Array | None) -> str:
    """Return what helps against a matrix that cannot be."""
    import numpy as np

    from inertial_estimation.calibration.matrix_doubts import OPPOSITE

    if any(OPPOSITE in doubt for doubt in doubts):
        now = common_options.direction_of(chosen)
        other = next(name for name, sign in common_options.DIRECTIONS.items() if sign != now)
        side = ', or leave out --calibration if it is of the other side'
        return f'give --direction {other}{side * (former is not None)}'
    remedy = 'check masses and centres of --data'
    if chosen.imu_rpy is None:
        remedy += ", which are in the accelerometer's axes without --imu-rpy"
    if former is None:
        return f'{remedy}, or give a matrix that is about right with --calibration'
    if np.array_equal(former, np.eye(6)):
        return (
            f'{remedy}, or leave out --calibration if the readings are no wrenches: its matrix is '
            'the identity, as that of readings that are'
        )
    return f'{remedy}, or leave out --calibration if it is of another sensor'


def _refuse_overlaps(said: Sequence[Sequence[str]]) -> None:
    """Raise if two data sets hold the same samples, which had one load only."""
    from inertial_estimation.logs.stretch import Stretch

    parts = [Stretch.parse(log) for log, *_ in said]
    for one, other in combinations(parts, 2):
        if one.overlaps(other):
            raise CallError(
                f"'{one}' and '{other}' of --data or --validate hold the same samples: name "
                'parts that do not overlap, as LOG@0:30 and LOG@30:60'
            )


def _read(
    chosen: argparse.Namespace, said: Sequence[Sequence[str]], option: str
) -> tuple[list[AddedMass], str]:
    """Read data sets, and return them with the date of the last one."""
    import numpy as np

    from inertial_estimation.calibration.added_masses import AddedMass
    from inertial_estimation.logs.raw_log import read_raw_log

    numbers = [
        [raw_options.number(text, f'--{option}: {name} of {log}')
         for name, text in zip(FIELDS[1:], rest, strict=True)]
        for log, *rest in said
    ]  # fmt: skip
    sets, date = [], ''
    signals = raw_options.signals_of(chosen)
    with progress_bars() as progress:
        for k, ((path, *_), (mass, *centre)) in enumerate(zip(said, numbers, strict=True)):
            progress('reading', k / len(said))
            log = read_raw_log(path, signals)
            centre_of = np.array(centre)
            sets.append(
                AddedMass(log.name, log.raw, log.accelerations, mass, centre_of, log.turning)
            )
            date = log.date
    return sets, date


def _offset(one: AddedMass, matrix: Array | None, chosen: argparse.Namespace) -> InSituOffset:
    """Return what a data set that was not used tells by itself."""
    from inertial_estimation.calibration.offset_in_situ import offset_in_situ

    return offset_in_situ(
        one.raw, one.accelerations, turning=one.turning, matrix=matrix,
        bias=chosen.accelerometer_offset, what=f"data set '{one.name}'",
    )  # fmt: skip


def _rotation(angles: Sequence[float] | None) -> Any:
    """Return a rotation matrix from roll, pitch and yaw."""
    from pinocchio.rpy import rpyToMatrix

    if angles is None:
        return None
    if not all(abs(angle) < float('inf') for angle in angles):
        raise CallError('--imu-rpy holds what is not finite, expected three angles [rad]')
    return rpyToMatrix(*angles)
