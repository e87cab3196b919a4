# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Affine, temperature and tool calibrations as tables for a person and figures for a machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.tables import AXES
from inertial_estimation.calibration.tool import ToolFit
from inertial_estimation.logs.affine_calibration import AffineResult
from inertial_estimation.logs.affine_notes import OWN
from inertial_estimation.logs.thermal_calibration import ThermalResult
from inertial_estimation.table import Table

Array = NDArray[np.float64]


def date_of(stamp_ns: int) -> str:
    """Return when a log was recorded."""
    return datetime.fromtimestamp(stamp_ns // 1_000_000_000, timezone.utc).isoformat()


def affine_tables(results: Sequence[AffineResult]) -> tuple[Table, ...]:
    """Return what affine fits found and what they rest on."""
    columns = ('sensor', 'what is left, rms [N, Nm]', 'instants', 'left out', *AXES)
    left = tuple(row for result in results for row in _affine_left(result))
    found = tuple(row for result in results for row in _affine_numbers(result))
    told = tuple(row for result in results for row in _directions(result))
    return (
        Table('readings minus the model', columns, left),
        Table('matrix on what the matrix so far makes of readings, and offset', (
            'sensor', '', *AXES), found),
        Table(
            'directions of the readings, those that moved most first',
            ('sensor', 'spread [N]', 'told by', *AXES), told,
        ),
    )  # fmt: skip


def affine_dict(results: Sequence[AffineResult]) -> dict[str, Any]:
    """Return the same for a machine."""
    return {result.name: _affine_entry(result) for result in results}


def thermal_tables(results: Sequence[ThermalResult]) -> tuple[Table, ...]:
    """Return what temperature fits found and what they rest on."""
    rows = []
    for name, fit, *_ in results:
        rows += [
            (name, f'per degree above {fit.reference:.2f} [N/K, Nm/K]', *_row(fit.coefficients)),
            ('', 'deviation', *_row(fit.deviations)),
            ('', 'offset [N, Nm]', *_row(fit.offset)),
            ('', 'deviation', *_row(fit.offset_deviations)),
            ('', 'left without coefficients, rms', *_row(fit.rms_before)),
            ('', 'left with them, rms', *_row(fit.rms)),
        ]
    told = tuple(
        (
            name, f'{fit.range[0]:.2f} to {fit.range[1]:.2f}', f'{fit.explained_by_time:.3f}',
            f'{fit.explained_by_load:.3f}', str(int(fit.used.sum())), str(fit.n_disturbed),
        )
        for name, fit, *_ in results
    )  # fmt: skip
    grounds = ('sensor', 'degrees C', 'explained by time', 'by the load', 'instants', 'left out')
    return (
        Table('temperature coefficients', ('sensor', '', *AXES), tuple(rows)),
        Table('what they rest on', grounds, told),
    )


def thermal_dict(results: Sequence[ThermalResult]) -> dict[str, Any]:
    """Return the same for a machine."""
    return {
        name: {
            'coefficients': fit.coefficients.tolist(),
            'coefficient_deviations': fit.deviations.tolist(),
            'reference_temperature': fit.reference,
            'offset': fit.offset.tolist(),
            'offset_deviations': fit.offset_deviations.tolist(),
            'temperatures': list(fit.range),
            'explained_by_time': fit.explained_by_time,
            'explained_by_load': fit.explained_by_load,
            'rms_before': fit.rms_before.tolist(),
            'rms': fit.rms.tolist(),
            'samples': int(fit.used.sum()),
            'left_out': fit.n_disturbed,
            'notes': list(notes),
        }
        for name, fit, _, _, notes in results
    }


def tool_tables(name: str, fit: ToolFit) -> tuple[Table, ...]:
    """Return what hangs on a sensor."""
    late = 'not told by this log' if np.isinf(fit.delay_deviation) else (
        f'{1e3 * fit.delay:.3f}')  # fmt: skip
    rows = [
        ('mass [kg]', f'{fit.mass:.5g}', f'{fit.mass_deviation:.2g}'),
        *_vector_rows('centre of mass', 'm', 'xyz', fit.centre, fit.centre_deviations),
    ]
    if fit.inertia is not None and fit.inertia_deviations is not None:
        axes = ('xx', 'xy', 'yy', 'xz', 'yz', 'zz')
        rows += _vector_rows(
            "inertia about the sensor's origin", 'kg m^2', axes, fit.inertia,
            fit.inertia_deviations,
        )  # fmt: skip
    rows += _vector_rows('offset', 'N, Nm', AXES, fit.offset, fit.offset_deviations)
    rows += [
        ('the IMU is later by [ms]', late, f'{1e3 * fit.delay_deviation:.2g}'),
        ('axes of the IMU off by [degrees]', f'{np.degrees(fit.misalignment):.2f}', ''),
    ]
    left = (
        ('the mean alone', *_row(fit.rms_offset_only)),
        ('the tool, without a delay', *_row(fit.rms_without_delay)),
        ('the tool', *_row(fit.rms)),
    )
    out = f'{int(fit.used.sum())} instants, {fit.n_disturbed} left out as something else acts'
    return (
        Table(f'what hangs on {name}', ('', 'value', 'deviation'), tuple(rows)),
        Table(f'what is left of the readings, rms [N, Nm]; {out}', ('with', *AXES), left),
    )


def tool_dict(fit: ToolFit) -> dict[str, Any]:
    """Return the same for a machine."""
    told = bool(np.isfinite(fit.delay_deviation))
    found: dict[str, Any] = {
        'mass': fit.mass,
        'mass_deviation': fit.mass_deviation,
        'centre_of_mass': fit.centre.tolist(),
        'centre_of_mass_deviations': fit.centre_deviations.tolist(),
        'offset': fit.offset.tolist(),
        'offset_deviations': fit.offset_deviations.tolist(),
        'delay': fit.delay if told else None,
        'delay_deviation': fit.delay_deviation if told else None,
        'misalignment': fit.misalignment,
        'rms_offset_only': fit.rms_offset_only.tolist(),
        'rms_without_delay': fit.rms_without_delay.tolist(),
        'rms': fit.rms.tolist(),
        'samples': int(fit.used.sum()),
        'left_out': fit.n_disturbed,
    }
    if fit.inertia is not None and fit.inertia_deviations is not None:
        found['inertia'] = fit.inertia.tolist()
        found['inertia_deviations'] = fit.inertia_deviations.tolist()
    return found


def _affine_left(result: AffineResult) -> Iterable[tuple[str, ...]]:
    """Yield what is left of a sensor's readings."""
    fit = result.fit
    n, out = str(int(fit.used.sum())), str(fit.n_disturbed)
    yield result.name, 'the matrix so far, best offset', n, out, *_row(fit.rms_offset_only)
    yield '', 'fitted', n, out, *_row(fit.rms)
    if fit.validation is not None:
        yield '', 'fitted, blocks held out', n, out, *_row(fit.rms_held_out)
    if (tested := result.tested) is not None:
        n, out = str(tested.n_samples), str(tested.n_disturbed)
        yield '', 'the matrix so far, test range', n, out, *_row(tested.rms_before)
        yield '', 'fitted, test range', n, out, *_row(tested.rms)


def _affine_numbers(result: AffineResult) -> Iterable[tuple[str, ...]]:
    """Yield the matrix of a sensor, beside that so far, and the offset."""
    fit = result.fit
    for k, axis in enumerate(AXES):
        pairs = zip(fit.correction[k], fit.matrix_deviations[k], strict=True)
        name = result.name if k == 0 else ''
        yield name, axis, *(f'{x:.4g} ± {d:.1g}' for x, d in pairs)
    pairs = zip(fit.offset, fit.offset_deviations, strict=True)
    yield '', 'offset [N, Nm]', *(f'{x:.4g} ± {d:.1g}' for x, d in pairs)


def _directions(result: AffineResult) -> Iterable[tuple[str, ...]]:
    """Yield what a sensor's log moved, and who tells the matrix there."""
    fit = result.fit
    for k, (direction, spread, share) in enumerate(
        zip(fit.directions, fit.spreads, fit.shares, strict=True)
    ):
        who = f'the log ({share:.0%})' if share >= OWN else f'the matrix so far ({1 - share:.0%})'
        yield result.name if k == 0 else '', f'{spread:.3g}', who, *_row(direction)


def _affine_entry(result: AffineResult) -> dict[str, Any]:
    """Return one sensor for a machine."""
    fit, tested = result.fit, result.tested
    entry: dict[str, Any] = {
        'matrix': fit.matrix.tolist(),
        'offset': fit.offset.tolist(),
        'correction': fit.correction.tolist(),
        'correction_deviations': fit.matrix_deviations.tolist(),
        'offset_deviations': fit.offset_deviations.tolist(),
        'prior_weight': None if np.isinf(fit.weight) else fit.weight,
        'directions': fit.directions.tolist(),
        'spreads': fit.spreads.tolist(),
        'shares_of_the_log': fit.shares.tolist(),
        'gains': fit.gains.tolist(),
        'rms_offset_only': fit.rms_offset_only.tolist(),
        'rms': fit.rms.tolist(),
        'samples': int(fit.used.sum()),
        'left_out': fit.n_disturbed,
        'notes': list(result.notes),
        'doubts': list(result.doubts),
    }
    if fit.validation is not None:
        entry['rms_held_out'] = fit.rms_held_out.tolist()
        weights = [None if np.isinf(w) else float(w) for w in fit.validation.weights]
        scores = fit.validation.scores().tolist()
        entry['cross_validation'] = {'weights': weights, 'scores': scores}
    if tested is not None:
        entry['test'] = {
            'rms_before': tested.rms_before.tolist(),
            'rms': tested.rms.tolist(),
            'samples': tested.n_samples,
            'left_out': tested.n_disturbed,
        }
    return entry


def _vector_rows(
    what: str, unit: str, axes: Sequence[str], values: Array, deviations: Array
) -> list[tuple[str, str, str]]:
    """Return one row a number."""
    return [
        (f'{what} {axis} [{unit}]', f'{x:.5g}', f'{d:.2g}')
        for axis, x, d in zip(axes, values, deviations, strict=True)
    ]


def _row(values: Array) -> tuple[str, ...]:
    """Return six numbers as text."""
    return tuple(f'{x:.3g}' for x in values)
