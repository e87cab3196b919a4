# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A real iCub on its left foot: a matrix from one half of a log, tested on the other.

The README of the data tells what its own affine maps leave of the sensor of the hanging leg. They
are fitted to, and tested on, all samples, also those in which the other foot touches the ground;
so are the ones here that are held against them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.published.experiment import Expectation, Finding
from bench.real_robots.robots import CONFIGS
from bench.yoga.log import BAG, CONFIG, ON_ONE_FOOT, URDF
from inertial_estimation.building import build_robot, sensor_calibrations
from inertial_estimation.calibration.affine_fit import fit_affine
from inertial_estimation.calibration.affine_types import AffineSettings
from inertial_estimation.calibration.calibration_file import SensorCalibration
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.logs.affine_calibration import AffineRequest, calibrate_affine
from inertial_estimation.logs.predicted_wrenches import (
    Predicted,
    in_hindsight,
    predict_wrenches,
)
from inertial_estimation.logs.recording import TimeRange, read_samples
from inertial_estimation.model.robot import Robot
from inertial_estimation.table import Table

Array = NDArray[np.float64]

NAME = 'iCub on one foot: matrices from the model (icub_yoga_left)'
FILES = (BAG, URDF)
SENSOR = 'r_leg_ft'
MARGIN = 0.5
"""
Of the time on one foot that the README seems to leave out at either end [s]. It does not say so:
this is inferred from its first row, the best constant offset, which no matrix enters and which
comes out to every digit with this and with neither 0.45 s nor 0.55 s. What is left with the whole
time is told beside it, as fx depends on it.
"""
MIDDLE = 0.5 * (ON_ONE_FOOT.start + ON_ONE_FOOT.stop)
FIRST = TimeRange(ON_ONE_FOOT.start + MARGIN, MIDDLE)
SECOND = TimeRange(MIDDLE, ON_ONE_FOOT.stop - MARGIN)
WHOLE = TimeRange(ON_ONE_FOOT.start, MIDDLE), TimeRange(MIDDLE, ON_ONE_FOOT.stop)
BENT = TimeRange(24.3, 41.0), TimeRange(41.0, 58.0)
"""
Halves of the time in which the hip is yawed by more than 0.92 rad [s]. Where it passes this, on
the way there and back, fx steps by 20 N.
"""
README_OFFSET = np.array([9.2, 5.2, 4.7, 0.55, 0.34, 0.16])
"""What the best constant offset leaves of all samples [N, Nm]."""
README_AFFINE = np.array([1.24, 2.34, 4.79, 0.72, 0.24, 0.14])
"""What an affine map leaves of the second half that is fitted to the first."""
README_RIDGE = np.array([1.17, 2.10, 4.35, 0.67, 0.23, 0.14])
"""The same with a ridge toward the identity."""
LAST_DIGIT = np.array([0.1, 0.1, 0.1, 0.01, 0.01, 0.01])
HALF_DIGIT = 0.005
"""Of the two rows above."""
COLUMNS = ('what is left, rms', 'fx', 'fy', 'fz [N]', 'tx', 'ty', 'tz [Nm]')


class Left(NamedTuple):
    """Root mean squares of what is left of the sensor, shape (6,) each [N, Nm]."""

    offset: Array
    """Of all samples by the best constant offset."""
    second: Array
    """Of the second half by what the first tells."""
    first: Array
    """Of the first half by what the second tells."""


def run(folder: Path) -> Finding:
    """Fit matrices to halves."""
    settings = in_hindsight(EstimatorSettings.from_yaml(CONFIGS / CONFIG))
    robot = build_robot(settings, (folder / URDF).read_text(encoding='utf-8'))
    calibrations = sensor_calibrations(settings, robot)
    # Readings as they are, as those of the README; only derivatives are filtered.
    plain = _predicted(folder, robot, replace(settings, smooth_readings=False))
    filtered = _predicted(folder, robot, settings)
    row = list(calibrations).index(SENSOR)
    left, whole = with_all_samples(plain, row), with_all_samples(plain, row, WHOLE)
    rows = {
        'best constant offset, all samples: README of the data': README_OFFSET,
        'best constant offset, all samples: here': left.offset,
        'first half to second, all samples: README, affine map': README_AFFINE,
        'first half to second, all samples: README, ridge': README_RIDGE,
        'first half to second, all samples: here': left.second,
        'second half to first, all samples: here': left.first,
        'first half to second, all samples, whole time: here': whole.second,
        'second half to first, all samples, whole time: here': whole.first,
        **_without_touches(filtered, calibrations),
    }
    table = Table(
        'One foot: matrix of the hanging leg from one part of the log, tested on another',
        COLUMNS,
        tuple((name, *_numbers(row)) for name, row in rows.items()),
    )
    notes = [one.note for one in expectations(left)]
    figures = {name: row.tolist() for name, row in rows.items()}
    return Finding(NAME, (table,), tuple(notes), {'left': figures})


def with_all_samples(
    predicted: Predicted, row: int, parts: tuple[TimeRange, TimeRange] = (FIRST, SECOND)
) -> Left:
    """Fit and test as the README of the data does."""
    raw, wanted = predicted.samples.ft_readings[:, row], predicted.wrenches[:, row]
    times = predicted.times
    halves = [part.mask(times) for part in parts]
    whole = halves[0] | halves[1]
    tested = []
    for fitted, other in (halves, halves[::-1]):
        fit = fit_affine(
            raw[fitted], wanted[fitted], times[fitted],
            usable=np.ones(fitted.sum(), dtype=bool), name=SENSOR,
        )  # fmt: skip
        tested.append(_rms(raw[other] @ fit.matrix.T - fit.offset - wanted[other]))
    return Left(np.nanstd(raw[whole] - wanted[whole], axis=0), *tested)


def expectations(left: Left) -> tuple[Expectation, ...]:
    """Hold what is left against the README of the data."""
    same = np.abs(left.offset - README_OFFSET) <= 0.5 * LAST_DIGIT
    better = left.second <= README_AFFINE + HALF_DIGIT
    ratio = float(np.sqrt(np.mean((left.second / README_RIDGE) ** 2)))
    return (
        Expectation(
            f'the samples are those of the README: the best constant offset leaves what it prints '
            f'in {same.sum()} of 6 components', bool(same.all()),
        ),
        Expectation(
            f'what the first half tells leaves no more of the second than the affine map of the '
            f'README in {better.sum()} of 6 components (fx {left.second[0]:.2f} N, there '
            f'{README_AFFINE[0]:.2f} N)', bool(better.all()),
        ),
        Expectation(
            f'over what its ridge leaves that is {ratio:.2f} on average', ratio < 1.0,
        ),
    )  # fmt: skip


def _predicted(folder: Path, robot: Robot, settings: EstimatorSettings) -> Predicted:
    """Return readings and predictions of the time on one foot."""
    recording = read_samples(folder / BAG, robot, settings).within(ON_ONE_FOOT)
    return predict_wrenches(recording, robot, settings)


def _without_touches(
    predicted: Predicted, calibrations: dict[str, SensorCalibration]
) -> dict[str, Array]:
    """Return what ``calibrate affine`` leaves, which leaves out touches and filters readings."""
    found = {}
    for name, fitted, tested in (
        ('first half to second, without touches', FIRST, SECOND),
        ('second half to first, without touches', SECOND, FIRST),
        ('24 to 41 s to 41 to 58 s, hip yawed', *BENT),
    ):
        request = AffineRequest((SENSOR,), fitted, tested, AffineSettings())
        result = calibrate_affine(predicted, calibrations, request).sensors[0]
        assert result.tested is not None
        found[f'{name}: workshop matrix, best offset'] = result.tested.rms_before
        found[f'{name}: here'] = result.tested.rms
    return found


def _rms(values: Array) -> Array:
    """Return the root mean square of each column over the rows that are known."""
    found: Array = np.sqrt(np.nanmean(values**2, axis=0))
    return found


def _numbers(row: Sequence[float] | Array) -> list[str]:
    """Return a row as text."""
    return [f'{x:.{digits}f}' for x, digits in zip(row, (2, 2, 2, 3, 3, 3), strict=True)]
