# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What calibrations in place leave in the file of a robot, and what to know of them before use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.added_masses import MatrixCalibration
from inertial_estimation.calibration.calibration_file import (
    NO_TEMPERATURE,
    Provenance,
    SensorCalibration,
)
from inertial_estimation.calibration.former_matrix import prior_matrix
from inertial_estimation.calibration.matrix_doubts import load_doubts, prior_warnings
from inertial_estimation.calibration.offset_in_situ import InSituOffset
from inertial_estimation.calibration.quiet_samples import GRAVITY
from inertial_estimation.calibration.wrench_axes import ACCELEROMETER, SENSOR
from inertial_estimation.errors import CallError

Array = NDArray[np.float64]

ROTATION_FREE = 'whatever the rotation between sensor and accelerometer is [T Remark 5.1]'
IN_ACCELEROMETER_AXES = (
    "wrenches are in the accelerometer's axes, about the sensor's origin: the rotation between "
    'the two was not given [T Remark 5.1]'
)
SCALE_DOUBT = 0.01
"""An accelerometer that is off by a larger share of gravity is worth a word."""
DRIFT_DOUBT = 5.0
"""Drift over its own deviation from which it is said."""
GAP_DOUBT = 15.0
"""Third spread over the fourth below which it is said."""
LEFT_OUT_DOUBT = 0.1
"""Share of samples that are left out from which it is said."""
RESIDUAL_DOUBT = 3.0
"""What a data set leaves over the noise from which it is said."""


def offset_step(
    found: InSituOffset,
    before: SensorCalibration,
    date: str,
    temperature: float = NO_TEMPERATURE,
) -> SensorCalibration:
    """
    Return the calibration of a sensor with an offset without a model.

    temperature [degrees Celsius].
    """
    thermal = bool(before.temperature_coefficients.any())
    if thermal and np.isnan(temperature):
        raise CallError(
            "the readings of this sensor depend on its temperature: give 'temperature', that of "
            'this log',
            about=('temperature',),
        )
    notes = (ROTATION_FREE, *offset_warnings(found, before.matrix))
    step = Provenance(
        'offset without a model', date, found.slopes.n_samples, temperature,
        _spread(before.matrix, found), notes,
    )  # fmt: skip
    return replace(
        before,
        offset=found.in_wrench(before.matrix)[0],
        reference_temperature=temperature if thermal else before.reference_temperature,
        provenance=(*before.provenance, step),
    )


def matrix_step(
    found: MatrixCalibration,
    date: str,
    temperature: float = NO_TEMPERATURE,
    former: Array | None = None,
    *,
    turned: bool = False,
) -> SensorCalibration:
    """
    Return the calibration of a sensor with a matrix from added masses.

    temperature [degrees Celsius]; former (6, 6).
    """
    notes = [] if found.in_sensor_axes else [IN_ACCELEROMETER_AXES]
    last = found.found[-1]
    step = Provenance(
        f'matrix from added masses, {len(found.found)} data sets',
        date,
        sum(one.slopes.n_samples for one in found.found),
        temperature,
        _spread(found.matrix, last),
        (*notes, *matrix_warnings(found, former, turned=turned)),
    )
    return SensorCalibration(
        found.matrix,
        found.matrix @ last.offset,
        provenance=(step,),
        axes=SENSOR if found.in_sensor_axes else ACCELEROMETER,
    )


def offset_warnings(found: InSituOffset, matrix: Array) -> tuple[str, ...]:
    """
    Return what to know before an offset is used.

    matrix (6, 6).
    """
    said = []
    if found.bias.bias.any():
        values = ', '.join(f'{x:.3f}' for x in found.bias.bias)
        said.append(f'a bias of the accelerometer of ({values}) m/s^2 was taken off')
    drift, deviations = found.drift(matrix)
    if (np.abs(drift) > DRIFT_DOUBT * deviations).any():
        values = ', '.join(f'{x:.3g}' for x in drift)
        said.append(
            f'the offset drifts by about ({values}) N, Nm during the log and is that of its '
            'middle: wait until the sensor is warm'
        )
    if found.subspace.gap < GAP_DOUBT:
        said.append(
            f'the third spread of the readings is only {found.subspace.gap:.1f} times the fourth: '
            'something may have moved or touched a little, or the load is light for the noise'
        )
    n = len(found.kept)
    if (lost := n - int(found.kept.sum())) > LEFT_OUT_DOUBT * n:
        reasons = ', '.join(f'{count} {why}' for why, count in found.left_out.items() if count)
        said.append(f'{lost} of {n} samples are left out: {reasons}')
    return tuple(said)


def matrix_warnings(
    found: MatrixCalibration, former: Array | None = None, *, turned: bool = False
) -> tuple[str, ...]:
    """
    Return what to know before a matrix is used, beside what speaks against it.

    former (6, 6).
    """
    said = [*prior_warnings(found, former, turned=turned)]
    if prior_matrix(found, former) is not None:
        # Without a former matrix they are doubts.
        said += load_doubts(found.data_sets)
    for one, offset, residual in zip(found.data_sets, found.found, found.residuals, strict=True):
        said += [f'{one.name}: {text}' for text in offset_warnings(offset, found.matrix)]
        off = offset.gravity / GRAVITY - 1.0
        if abs(off) > SCALE_DOUBT:
            said.append(
                f'{one.name}: the accelerometer reads {offset.gravity:.2f} m/s^2, {off:+.1%} from '
                'standard gravity: the matrix is off by as much'
            )
        if residual > RESIDUAL_DOUBT:
            said.append(
                f'{one.name}: what it leaves is {residual:.1f} times the noise: its mass or '
                'centre may not be as stated, or something moved'
            )
    if found.body.mass <= 0.0:
        said.append(
            f'the body without masses would weigh {found.body.mass:.3g} kg: a mass or a centre is '
            'not as stated'
        )
    return tuple(said)


def _spread(matrix: Array, found: InSituOffset) -> tuple[float, ...]:
    """Return the root mean square of what remained [N, Nm]."""
    squares = np.diagonal(matrix @ found.slopes.noise @ matrix.T)
    return tuple(float(x) for x in np.sqrt(squares))
