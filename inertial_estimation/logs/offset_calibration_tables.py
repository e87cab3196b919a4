# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Offsets from the model as tables for a person and figures for a machine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from inertial_estimation.calibration.calibration_file import as_entry
from inertial_estimation.calibration.tables import AXES
from inertial_estimation.logs.offset_calibration import OffsetCalibration
from inertial_estimation.sample import Array
from inertial_estimation.table import Row, Table

CAUSES_SHOWN = 5
"""The others are in the figures for a machine."""


def offset_tables(result: OffsetCalibration) -> tuple[Table, ...]:
    """Return what was found for a person."""
    found = result.found
    used = int(found.instants.used.any(axis=1).sum())
    left_out = (('used', str(used)), *((why, str(n)) for why, n in found.left_out.items()))
    causes = tuple((str(cause),) for cause in found.instants.causes[:CAUSES_SHOWN])
    tables = [
        Table(
            f'offsets to subtract [N, Nm], carried by {", ".join(found.supports)}',
            ('sensor', '', *AXES, 'instants', 'told'),
            tuple(_offset_rows(result)),
        ),
        Table(
            'what several poses tell', ('sensor', 'poses', 'gravity turns', 'verdict'),
            tuple(_verdict_rows(result)),
        ),
        Table(
            'readings minus prediction and offset in each pose [N, Nm]',
            ('sensor', 'pose', *AXES),
            tuple(_pose_rows(result)),
        ),
        Table('told although single sensors are not', ('sum or difference',),
              tuple((text,) for text in found.told)),
        Table('instants', ('', 'number'), left_out),
        Table('what moved', ('most often first',), causes),
        Table('doubts', ('that the support is the only contact',),
              tuple((text,) for text in result.doubts)),
    ]  # fmt: skip
    return tuple(table for table in tables if table.rows)


def offset_dict(result: OffsetCalibration) -> dict[str, Any]:
    """Return the same for a machine."""
    found = result.found
    return {
        'robot': result.robot.name,
        'date': result.date,
        'supports': list(found.supports),
        'sensors': {
            sensor.name: _sensor(result, k)
            for k, sensor in enumerate(result.robot.ft_sensors)
            if found.found[k]
        },
        'is_unique': found.is_unique,
        'told': list(found.told),
        'undetermined': _numbers(found.undetermined),
        'length_scale_m': found.length_scale,
        'left_out': dict(found.left_out),
        'moved': [cause._asdict() for cause in found.instants.causes],
        'doubts': list(result.doubts),
        'not_found': result.found.silent,
    }


def _sensor(result: OffsetCalibration, k: int) -> dict[str, Any]:
    """Return what was found of one sensor."""
    found, name = result.found, result.robot.ft_sensors[k].name
    entry: dict[str, Any] = {
        'offset': _numbers(found.offsets[k]),
        'deviation': _numbers(found.deviations[k]),
        'spread': _numbers(found.spread[k]),
        'samples': int(found.n_samples[k]),
        'unique': bool(found.unique[k]),
        'assumed': bool(found.assumed[k]),
        'temperature': _numbers(found.temperatures[k]),
        'calibration': as_entry(result.calibrations[name]),
    }
    if name in found.poses:
        poses = found.poses[name]
        entry['poses'] = {
            'verdict': poses.verdict,
            'residuals': _numbers(poses.residuals),
            'gravity': _numbers(poses.gravity),
            'turn_rad': poses.turn,
            'differ_by': _numbers(poses.rotating),
            'not_by_mass': _numbers(poses.remaining),
            'mass_lacking': _numbers(poses.mass),
            'first_moment_lacking': _numbers(poses.first_moment),
            'offset_more_if_so': _numbers(poses.constant),
        }
    return entry


def _numbers(values: Array | float) -> Any:
    """Return numbers as lists, None for NaN."""
    array = np.asarray(values, dtype=np.float64)
    plain = array.astype(object)
    plain[~np.isfinite(array)] = None
    return plain.tolist()


def _offset_rows(result: OffsetCalibration) -> Iterable[Row]:
    """Yield offsets, how well they are known, and by what they were known before."""
    found = result.found
    for k, sensor in enumerate(result.robot.ft_sensors):
        if not found.found[k]:
            continue
        told = 'yes' if found.unique[k] else 'no, a guess'
        told += ', assumed joints' if found.assumed[k] else ''
        offset = (f'{x:.4g}' for x in found.offsets[k])
        yield sensor.name, 'offset', *offset, str(found.n_samples[k]), told
        yield '', 'deviation', *(f'{x:.2g}' for x in found.deviations[k]), '', ''
        yield '', 'spread', *(f'{x:.2g}' for x in found.spread[k]), '', ''


def _verdict_rows(result: OffsetCalibration) -> Iterable[Row]:
    """Yield what the poses tell of each sensor."""
    for name, poses in result.found.poses.items():
        turn = f'{np.degrees(poses.turn):.0f} degrees'
        yield name, str(len(poses.residuals)), turn, poses.verdict


def _pose_rows(result: OffsetCalibration) -> Iterable[Row]:
    """Yield what is left in each pose, where there are several."""
    for name, poses in result.found.poses.items():
        if len(poses.residuals) > 1:
            for p, row in enumerate(poses.residuals):
                yield name if p == 0 else '', str(p + 1), *(f'{x:.2f}' for x in row)
            if np.isfinite(poses.constant).all():
                yield '', 'constant part', *(f'{x:.2f}' for x in poses.constant)
