# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``calibrate affine``: matrices and offsets from the model."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli import files
from inertial_estimation.errors import CallError
from inertial_estimation.verbs.calibrate.common_options import (
    add_outputs,
    add_sensors,
    not_written,
)
from inertial_estimation.verbs.calibrate.log_options import (
    LEFT,
    RobotLog,
    add_bag,
    add_robot,
    add_support,
    check_files,
    read_log,
    save,
    say_support,
    settings_of,
    stretch_of,
    time_range,
)
from inertial_estimation.verbs.options import add_verb
from inertial_estimation.verbs.terminal import escape, progress_bars, show, table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from inertial_estimation.logs.affine_calibration import AffineRequest, AffineResult
    from inertial_estimation.logs.stretch import Stretch

NAMES = {
    'weight': '--prior-weight', 'prior_deviation': '--prior-deviation', 'n_blocks': '--blocks',
    'sensors': '--ft', 'support': '--support', 'supports': '--support',
    'test_range': '--validate',
}  # fmt: skip
"""What arguments of the library are called here."""


def add(ways: Any) -> None:
    """Add the way that fits matrices to what the model says."""
    way = add_verb(
        ways, 'affine', 'matrix and offset of FT sensors from the model, while one contact '
        'carries the robot',
        'swing.mcap@5:40 --validate swing.mcap@40:75 --robot robot.urdf --config robot.yaml',
        'calibrate',
    )  # fmt: skip
    way.description = (
        'fit matrix and offset of each FT sensor to what the model says of the side without the '
        'only contact. The matrix in use so far is the prior; how much it counts is what predicts '
        'contiguous blocks of the log best that are held out in turn. Where loads did not change '
        'it stays, which is said. Instants in which something else acts are left out and counted'
    )
    add_bag(way)
    way.add_argument(
        '--validate', metavar='LOG@FROM:TO',
        help='another part of the same log, to be predicted with what is found and not used for '
        'it (default: none)',
    )  # fmt: skip
    add_robot(way)
    add_support(way)
    add_sensors(way, 'FT sensors to fit', 'those whose side rests on no assumed joint')
    way.add_argument(
        '--prior-weight', type=float, metavar='W',
        help='of the matrix so far: what counts as readings that spread by the root of it in each '
        'direction, inf: it stays [N^2] (default: by cross-validation)',
    )  # fmt: skip
    way.add_argument(
        '--prior-deviation', type=float, default=0.1, metavar='D',
        help='of its elements, 1 being the matrix itself, for the deviations of what is found '
        '(default: %(default)s)',
    )  # fmt: skip
    way.add_argument(
        '--blocks', type=int, default=10, metavar='N',
        help='parts of the log that are held out in turn (default: %(default)s)',
    )  # fmt: skip
    way.add_argument(
        '--accept-doubts', action='store_true',
        help='write a matrix that is doubtful all the same, with the doubts as notes (default: it '
        'is shown, but not written)',
    )  # fmt: skip
    add_outputs(way, LEFT)
    way.set_defaults(run=_run, names=NAMES)


def _run(chosen: argparse.Namespace) -> None:
    """Fit matrices."""
    from inertial_estimation.logs.affine_calibration import calibrate_affine
    from inertial_estimation.logs.calibration_figures import affine_dict, affine_tables

    check_files(chosen)
    request = _request(chosen)
    ranges = [one for one in (request.time_range, request.test_range) if one is not None]
    settings = settings_of(chosen)
    say_support(chosen, settings)
    with progress_bars() as progress:
        log = read_log(chosen, settings, ranges, progress)
        results, refused = calibrate_affine(log.predicted, log.calibrations, request)
    if chosen.picture is not None:
        _draw(chosen.picture, log, request, results)
    files.write_json(chosen.json, affine_dict(results) | {'refused': refused})
    show(*(table(*found) for found in affine_tables(results)))
    for result in results:
        show(*(f'[yellow]note:[/] {escape(f"{result.name}: {note}")}' for note in result.notes))
    show(*(f'[yellow]not fitted:[/] {escape(reason)}' for reason in refused.values()))
    # At the end: what was found is seen even if it does not belong into that file.
    doubts = [f'{result.name} {doubt}' for result in results for doubt in result.doubts]
    if chosen.out is not None and doubts and not chosen.accept_doubts:
        raise not_written(chosen.out, doubts, _remedy(results))
    _write(chosen, log, request, results)


def _remedy(results: Sequence[AffineResult]) -> str:
    """Return what helps against doubts, and how to insist."""
    fine = ' '.join(result.name for result in results if not result.doubts)
    others = f', or those without a doubt with --ft {fine}' if fine else ''
    return (
        'make sure that --support alone carries the robot, and name a part of the log with larger '
        'loads in which nothing else bears on the sensor, or a larger --prior-weight, with which '
        f'more of the matrix stays{others}; --accept-doubts writes it all the same'
    )


def _request(chosen: argparse.Namespace) -> AffineRequest:
    """Return what is asked for."""
    from inertial_estimation.calibration.affine_types import AffineSettings
    from inertial_estimation.logs.affine_calibration import AffineRequest

    fitted = stretch_of(chosen)
    tested = None if chosen.validate is None else _tested(chosen.validate, fitted)
    return AffineRequest(
        tuple(chosen.ft),
        time_range(fitted),
        None if tested is None else time_range(tested),
        AffineSettings(
            weight=chosen.prior_weight,
            prior_deviation=chosen.prior_deviation,
            n_blocks=chosen.blocks,
        ),
    )


def _tested(said: str, fitted: Stretch) -> Stretch:
    """Return the part that what is found is tested on, which must be a part of its own."""
    from inertial_estimation.logs.stretch import Stretch

    tested = Stretch.parse(said)
    if tested.path.resolve() != fitted.path.resolve():
        raise CallError(
            f"'{tested}' of --validate is another log: name a part of '{fitted.path}' that is not "
            'fitted'
        )
    if tested.overlaps(fitted):
        raise CallError(
            f"'{tested}' of --validate and '{fitted}', which is fitted, hold the same samples, "
            'and would agree whatever is found: name parts that do not overlap, as '
            'LOG@0:30 --validate LOG@30:60'
        )
    return tested


def _write(
    chosen: argparse.Namespace,
    log: RobotLog,
    request: AffineRequest,
    results: Sequence[AffineResult],
) -> None:
    """Write the calibration file, if asked to."""
    from inertial_estimation.logs.affine_calibration import calibration_of
    from inertial_estimation.logs.calibration_figures import date_of

    predicted, date = log.predicted, date_of(log.origin_ns)
    warmth = predicted.samples.ft_temperatures
    names = list(log.calibrations)
    inside = request.time_range.mask(predicted.times)
    found = {}
    for result in results:
        row = names.index(result.name)
        found[result.name] = calibration_of(
            result, log.calibrations[result.name], support=predicted.support, date=date,
            temperature=nan if warmth is None else _mean(warmth[inside, row]),
        )  # fmt: skip
    save(chosen.out, log.robot.name, found)


def _draw(
    path: Path, log: RobotLog, request: AffineRequest, results: Sequence[AffineResult]
) -> None:
    """Draw what is left of the readings, before and after."""
    import numpy as np

    from inertial_estimation.verbs.calibrate.picture import Residuals, draw

    times, drawn = log.predicted.times, []
    inside = request.time_range.mask(times)
    for result in results:
        used = np.zeros(len(inside), dtype=bool)
        used[inside] = result.fit.used
        drawn.append(
            Residuals(result.name, times, result.residuals_before, result.residuals, used)
        )
    draw(drawn, path)


def _mean(values: NDArray[Any]) -> float:
    """Return the mean of what is known, NaN if nothing is."""
    import numpy as np

    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else nan
