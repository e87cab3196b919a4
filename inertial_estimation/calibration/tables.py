# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Calibrations as tables for a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from inertial_estimation.calibration.calibration_file import Provenance, SensorCalibration
from inertial_estimation.calibration.wrench_axes import SENSOR
from inertial_estimation.table import Table

AXES = ('fx', 'fy', 'fz', 'tx', 'ty', 'tz')


def sensor_tables(sensors: Mapping[str, SensorCalibration]) -> tuple[Table, ...]:
    """Return what sensors are calibrated with, and where that came from."""
    numbers = tuple(row for name, sensor in sensors.items() for row in _number_rows(name, sensor))
    steps = tuple(
        _step_row(name, step) for name, sensor in sensors.items() for step in sensor.provenance
    )
    shown = [
        Table('subtracted offsets, and what changes them [N, Nm]', ('sensor', '', *AXES), numbers)
    ]
    if steps:
        columns = ('sensor', 'method', 'date', 'instants', 'degrees C', *AXES, 'notes')
        shown.append(
            Table('where it came from; root mean square of what remained [N, Nm]', columns, steps)
        )
    return tuple(shown)


def sensor_warnings(sensors: Mapping[str, SensorCalibration]) -> tuple[str, ...]:
    """Return which sensors are calibrated with what cannot be."""
    said = []
    for name, sensor in sensors.items():
        if sensor.axes != SENSOR:
            said.append(
                f'{name}: wrenches are in the axes of an {sensor.axes}, turned against those of '
                'the sensor in a way that nobody told: nodes and replays refuse it'
            )
        # Rows are made equally long, as units and gains differ.
        lengths = np.linalg.norm(sensor.matrix, axis=1)
        if silent := [axis for axis, length in zip(AXES, lengths, strict=True) if not length]:
            said.append(
                f'{name}: the matrix is singular, its rows {", ".join(silent)} are zero: the '
                'wrench is zero there whatever the sensor reads'
            )
        elif (rank := int(np.linalg.matrix_rank(sensor.matrix / lengths[:, None]))) < len(AXES):
            said.append(
                f'{name}: the matrix is singular, of rank {rank} of {len(AXES)}: some wrenches '
                'cannot be told from none; calibrate it anew, or take the one of the workshop'
            )
    return tuple(said)


def _number_rows(name: str, sensor: SensorCalibration) -> Iterable[tuple[str, ...]]:
    """Yield what a sensor is calibrated with."""
    yield name, 'offset', *(f'{x:.4g}' for x in sensor.offset)
    for axis, row in zip(AXES, sensor.matrix, strict=True):
        yield '', f'matrix {axis}', *(f'{x:.5g}' for x in row)
    if sensor.temperature_coefficients.any():
        said = f'per degree above {sensor.reference_temperature:.4g}'
        yield '', said, *(f'{x:.3g}' for x in sensor.temperature_coefficients)


def _step_row(name: str, step: Provenance) -> tuple[str, ...]:
    """Return where a calibration came from."""
    spread = [f'{x:.3g}' for x in step.spread] or ['-'] * 6
    warmth = f'{step.temperature:.1f}' if step.temperature == step.temperature else '-'
    samples = str(step.n_samples or '-')
    return name, step.method, step.date, samples, warmth, *spread, '; '.join(step.notes)
