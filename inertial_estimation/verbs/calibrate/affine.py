# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``calibrate affine``: matrices and offsets from the model."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING, Any

from inertial_estimation.verbs import files
from inertial_estimation.verbs.calibrate.log_options import (
    RobotLog,
    add_log,
    add_outputs,
    add_range,
    check_files,
    read_log,
    save,
)
from inertial_estimation.verbs.options import add_verb
from inertial_estimation.verbs.terminal import escape, progress_bars, show, table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from inertial_estimation.logs.affine_calibration import AffineRequest, AffineResult


def add(ways: Any) -> None:
    """
    Add the way that fits matrices to what the model says.

    Parameters
    ----------
    ways : object
        Where argparse keeps the ways of the verb.

    """
    way = add_verb(
        ways, 'affine', 'matrix and offset of FT sensors from the model, while one contact '
        'carries the robot',
        'swing.mcap --robot robot.urdf --config robot.yaml --range 5 40 --test-range 40 75',
        'calibrate',
    )  # fmt: skip
    way.description = (
        'fit matrix and offset of each FT sensor to what the model says of the side without the '
        'only contact. The matrix in use so far is the prior; how much it counts is what predicts '
        'contiguous blocks of the log best that are held out in turn. Where loads did not change '
        'it stays, which is said. Instants in which something else acts are left out and counted'
    )
    add_log(way)
    add_range(way, '--test-range', 'what is found is tested on it', 'none')
    way.add_argument(
        '--sensors', nargs='+', default=[], metavar='SENSOR',
        help='FT sensors to fit (default: those whose side rests on no assumed joint)',
    )  # fmt: skip
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
    add_outputs(way)
    way.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> None:
    """Fit matrices."""
    from inertial_estimation.logs.affine_calibration import calibrate_affine
    from inertial_estimation.logs.calibration_figures import affine_dict, affine_tables

    check_files(chosen)
    request = _request(chosen)
    ranges = filter(None, (request.time_range, request.test_range))
    with progress_bars() as progress:
        log = read_log(chosen, ranges, progress)
        results, refused = calibrate_affine(log.predicted, log.calibrations, request)
    _write(chosen, log, request, results)
    files.write_json(chosen.json, affine_dict(results) | {'refused': refused})
    show(*(table(*found) for found in affine_tables(results)))
    for result in results:
        show(*(f'[yellow]note:[/] {escape(f"{result.name}: {note}")}' for note in result.notes))
    show(*(f'[yellow]not fitted:[/] {escape(reason)}' for reason in refused.values()))


def _request(chosen: argparse.Namespace) -> AffineRequest:
    """Return what is asked for."""
    from inertial_estimation.calibration.affine_types import AffineSettings
    from inertial_estimation.logs.affine_calibration import AffineRequest
    from inertial_estimation.logs.recording import TimeRange

    return AffineRequest(
        tuple(chosen.sensors),
        TimeRange(*chosen.range),
        None if chosen.test_range is None else TimeRange(*chosen.test_range),
        AffineSettings(
            weight=chosen.prior_weight,
            prior_deviation=chosen.prior_deviation,
            n_blocks=chosen.blocks,
        ),
    )


def _write(
    chosen: argparse.Namespace,
    log: RobotLog,
    request: AffineRequest,
    results: Sequence[AffineResult],
) -> None:
    """Write calibration file and picture, if asked to."""
    import numpy as np

    from inertial_estimation.logs.affine_calibration import calibration_of
    from inertial_estimation.logs.calibration_figures import date_of
    from inertial_estimation.verbs.calibrate.picture import Residuals, draw

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
    save(chosen.output, log.robot.name, found)
    if chosen.picture is not None:
        drawn = []
        for result in results:
            used = np.zeros(len(inside), dtype=bool)
            used[inside] = result.fit.used
            drawn.append(
                Residuals(
                    result.name, predicted.times, result.residuals_before, result.residuals, used
                )
            )
        draw(drawn, chosen.picture)


def _mean(values: NDArray[Any]) -> float:
    """Return the mean of what is known, NaN if nothing is."""
    import numpy as np

    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else nan
