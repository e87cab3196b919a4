# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Calibrations in place as tables for a person and as figures for a machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.added_masses import AddedMass, MatrixCalibration
from inertial_estimation.calibration.affine_subspace import DIMENSIONS
from inertial_estimation.calibration.former_matrix import change
from inertial_estimation.calibration.offset_in_situ import InSituOffset
from inertial_estimation.calibration.tables import AXES
from inertial_estimation.calibration.weighing import semiaxes, weigh
from inertial_estimation.table import Table

Array = NDArray[np.float64]
Judged = Sequence[tuple[AddedMass, InSituOffset]]


def offset_table(found: InSituOffset, matrix: Array) -> Table:
    """
    Return an offset by channels.

    matrix (6, 6).
    """
    offset, deviations = found.in_wrench(matrix)
    drift, of_drift = found.drift(matrix)
    rows = tuple(
        (
            f'{k + 1}', f'{found.offset[k]:.5g}', f'{found.deviations[k]:.2g}',
            AXES[k], f'{offset[k]:.4g}', f'{deviations[k]:.2g}',
            f'{drift[k]:.2g} ± {of_drift[k]:.1g}',
        )
        for k in range(6)
    )  # fmt: skip
    columns = (
        'channel', 'raw', 'deviation', 'wrench', 'offset [N, Nm]', 'deviation',
        'drift during the log',
    )  # fmt: skip
    return Table('offset without a model', columns, rows)


def subspace_table(found: Mapping[str, InSituOffset]) -> Table:
    """Return what speaks for offsets."""
    rows = tuple(
        (
            name,
            '  '.join(f'{x:.3g}' for x in one.subspace.spreads[:DIMENSIONS]),
            '  '.join(f'{x:.2g}' for x in one.subspace.spreads[DIMENSIONS:]),
            f'{one.subspace.gap:.0f}',
            '  '.join(f'{x:.0%}' for x in one.orientations.spreads),
            f'{one.unexplained:.1%}',
            str(one.slopes.n_samples),
            *(str(count) for count in one.left_out.values()),
        )
        for name, one in found.items()
    )
    reasons = tuple(next(iter(found.values())).left_out)
    columns = (
        'log', 'spreads in the subspace [N, Nm/0.1 m]', 'off it', 'gap', 'gravity moves by, of g',
        'accelerometer leaves', 'samples', *reasons,
    )  # fmt: skip
    return Table('readings along six directions [T 5.7]; samples that are left out', columns, rows)


def matrix_table(found: MatrixCalibration) -> Table:
    """Return a matrix and its standard deviations."""
    rows = tuple(
        (axis, *(f'{x:.5g} ± {s:.1g}' for x, s in zip(values, deviations, strict=True)))
        for axis, values, deviations in zip(AXES, found.matrix, found.deviations, strict=True)
    )
    return Table('matrix [N, Nm per raw unit]', ('', *(f'raw {k}' for k in range(1, 7))), rows)


def body_table(found: MatrixCalibration) -> Table:
    """Return rank and body."""
    mass, centre = found.body.mass, found.body.centre
    row = (
        f'{found.rank} of 40',
        f'{found.singular_values[-1]:.1f}',
        f'{mass:.3f} ± {found.body_deviations[0]:.1g}',
        '  '.join(f'{x:.4f}' for x in centre),
        'the sensor' if found.in_sensor_axes else 'the accelerometer',
    )
    columns = (
        'rank', 'smallest singular value over noise', 'body without masses [kg]', 'its centre [m]',
        'axes of',
    )  # fmt: skip
    return Table('what the data sets tell', columns, (row,))


def offsets_table(found: MatrixCalibration) -> Table:
    """Return the offset of each data set."""
    rows = tuple(
        (one.name, f'{residual:.1f}', *(f'{x:.4g}' for x in offset))
        for one, offset, residual in zip(
            found.data_sets, found.offsets, found.residuals, strict=True
        )
    )
    return Table(
        'offsets [N, Nm]; the last one holds', ('data set', 'left over noise', *AXES), rows
    )


def weighing_table(
    found: MatrixCalibration, judged: Judged, workshop: Array | None, title: str
) -> Table:
    """
    Return what matrices say of added masses, as T Tables 5.1 to 5.3.

    workshop (6, 6).
    """
    rows = []
    for one, offset in judged:
        row = [one.name, f'{one.mass:g}', _text(np.asarray(one.centre)) if one.mass else '-']
        for matrix in (found.matrix, workshop):
            row += ['-'] * 3 if matrix is None else _weighed(found, one, offset, matrix)
        rows.append(tuple(row))
    columns = (
        'data set', 'added [kg]', 'centre [m]',
        'found [kg]', 'its centre', 'semi-axes [N]',
        'before [kg]', 'its centre', 'semi-axes [N]',
    )  # fmt: skip
    shown = 9 if workshop is not None else 6
    return Table(title, columns[:shown], tuple(row[:shown] for row in rows))


def offset_dict(found: InSituOffset, matrix: Array) -> dict[str, Any]:
    """
    Return an offset for a machine.

    matrix (6, 6).
    """
    offset, deviations = found.in_wrench(matrix)
    drift, of_drift = found.drift(matrix)
    gap = found.subspace.gap
    return {
        'raw_offset': found.offset.tolist(),
        'raw_deviations': found.deviations.tolist(),
        'offset': offset.tolist(),
        'deviations': deviations.tolist(),
        'drift': drift.tolist(),
        'drift_deviations': of_drift.tolist(),
        'singular_values': found.subspace.singular_values.tolist(),
        'gap': gap if np.isfinite(gap) else None,
        'gravity_spreads': found.orientations.spreads.tolist(),
        'gravity': found.gravity,
        'accelerometer_bias': found.bias.bias.tolist(),
        'unexplained': found.unexplained,
        'samples': found.slopes.n_samples,
        'left_out': dict(found.left_out),
    }


def matrix_dict(
    found: MatrixCalibration, judged: Judged, prior: Array | None = None, *, turned: bool = False
) -> dict[str, Any]:
    """
    Return a matrix for a machine.

    prior (6, 6).
    """
    names = [one.name for one in found.data_sets]
    pairs = [*zip(found.data_sets, found.found, strict=True), *judged]
    return {
        'matrix': found.matrix.tolist(),
        'deviations': found.deviations.tolist(),
        'axes': 'sensor' if found.in_sensor_axes else 'accelerometer',
        'off_former': None if prior is None else change(found, prior, turned=turned).as_dict(),
        'rank': found.rank,
        'singular_values_over_noise': found.singular_values.tolist(),
        'body_mass': found.body.mass,
        'body_first_moment': found.body.first_moment.tolist(),
        'body_deviations': found.body_deviations.tolist(),
        'residuals_over_noise': dict(zip(names, found.residuals.tolist(), strict=True)),
        'data_sets': {
            one.name: {
                'fitted': one.name in names,
                'added_mass': one.mass,
                'centre': np.asarray(one.centre).tolist(),
                'found_mass': (weighed := _added(found, offset, found.matrix)).mass,
                'found_first_moment': weighed.first_moment.tolist(),
                **offset_dict(offset, found.matrix),
            }
            for one, offset in pairs
        },
    }


def _added(found: MatrixCalibration, offset: InSituOffset, matrix: Array) -> Any:
    """Return what a matrix says was added to the body."""
    return weigh(found.wrench_slopes(offset, matrix), found.gram(offset)).less(found.body)


def _weighed(
    found: MatrixCalibration, one: AddedMass, offset: InSituOffset, matrix: Array
) -> list[str]:
    """Return mass, centre and semi-axes as text."""
    added = _added(found, offset, matrix)
    axes = semiaxes(found.wrench_slopes(offset, matrix), offset.gravity)
    centre = _text(added.centre) if one.mass else '-'
    return [f'{added.mass:.3f}', centre, '  '.join(f'{x:.1f}' for x in axes)]


def _text(values: Array) -> str:
    """Return a vector as text."""
    return '  '.join(f'{x + 0.0:.3f}' for x in values)
