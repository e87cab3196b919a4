# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
An ATI Axia80 with a tool at the end of an arm, in static poses: what its owners found, and here.

They fit weight, offset and one coordinate of the centre of mass to readings turned into the base
frame. The offset without a model presumes neither that weight is as long in all orientations nor
that moments are arms times forces, so that gains of the sensor that differ do not go into it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from bench.published.data_sets import read_table
from bench.published.experiment import Expectation, Finding
from inertial_estimation.calibration.offset_in_situ import InSituOffset, offset_in_situ
from inertial_estimation.calibration.quiet_samples import GRAVITY
from inertial_estimation.table import Table

Array = NDArray[np.float64]

NAME = 'Axia80 with a tool in static poses (leledeyuan00/Gravity-Compensation-F-T-sensor)'
SEVEN, SIXTY = 'axia80_static/poses7.csv', 'axia80_static/poses60.csv'
FILES = (SEVEN, SIXTY)
QUATERNION = ('qx', 'qy', 'qz', 'qw')
WRENCH = ('fx_base', 'fy_base', 'fz_base', 'tx_base', 'ty_base', 'tz_base')
PUBLISHED = {
    'weight [N]': 10.80391,
    'force offset x [N]': -2.13583,
    'force offset y [N]': -2.76399,
    'force offset z [N]': -13.07675,
    'centre of mass z [m]': 0.05197,
    'moment offset x [Nm]': -0.15658,
    'moment offset y [Nm]': -0.07939,
    'moment offset z [Nm]': 0.12979,
}
"""Of seven poses, with five digits after the point."""
HALF_DIGIT = 0.5e-5
CHANNELS = ('fx [N]', 'fy [N]', 'fz [N]', 'mx [Nm]', 'my [Nm]', 'mz [Nm]')


class Poses(NamedTuple):
    """Readings in static poses."""

    wrenches: Array
    """Of the tool on the sensor, in its frame, with offset, shape (n, 6) [N, Nm]."""
    accelerations: Array
    """What an accelerometer in that frame would read, shape (n, 3) [m/s^2]."""


def read_poses(path: Path) -> Poses:
    """Read poses and turn the wrenches back into the sensor's frame."""
    rows = read_table(path, (*QUATERNION, *WRENCH))
    turns, wrenches = (
        np.array([[float(row[name]) for name in names] for row in rows])
        for names in (QUATERNION, WRENCH)
    )
    S_R_B = Rotation.from_quat(turns).inv().as_matrix()
    parts = wrenches.reshape(-1, 2, 3)
    turned = np.einsum('nij,nkj->nki', S_R_B, parts).reshape(-1, 6)
    return Poses(turned, GRAVITY * S_R_B[:, :, 2])


def owners_fit(poses: Poses) -> dict[str, float]:
    """Return what the owners' least squares find."""
    n = len(poses.wrenches)
    up = poses.accelerations / GRAVITY
    ones = np.tile(np.eye(3), (n, 1, 1))
    forces = np.concatenate([-up[:, :, None], ones], axis=2).reshape(-1, 4)
    weight, *force = np.linalg.lstsq(forces, poses.wrenches[:, :3].reshape(-1), rcond=None)[0]
    arms = np.cross([0.0, 0.0, 1.0], -weight * up)
    moments = np.concatenate([arms[:, :, None], ones], axis=2).reshape(-1, 4)
    centre, *moment = np.linalg.lstsq(moments, poses.wrenches[:, 3:].reshape(-1), rcond=None)[0]
    return dict(zip(PUBLISHED, map(float, (weight, *force, centre, *moment)), strict=True))


def run(folder: Path) -> Finding:
    """Fit the offsets."""
    seven, sixty = (read_poses(folder / name) for name in FILES)
    fits = owners_fit(seven), owners_fit(sixty)
    found = tuple(
        offset_in_situ(poses.wrenches, poses.accelerations, matrix=np.eye(6), what=name)
        for poses, name in zip((seven, sixty), FILES, strict=True)
    )
    return Finding(
        NAME,
        (_published_table(fits), _offset_table(fits, found), _subspace_table(found)),
        tuple(one.note for one in expectations(fits[0], found)),
        {
            'published': PUBLISHED,
            'owners_fit': list(fits),
            'offsets': [one.offset.tolist() for one in found],
            'deviations': [one.deviations.tolist() for one in found],
            'spreads': [one.subspace.spreads.tolist() for one in found],
            'drift': [one.slopes.drift.tolist() for one in found],
        },
    )


def expectations(
    fit: dict[str, float], found: tuple[InSituOffset, ...]
) -> tuple[Expectation, ...]:
    """Hold what was found against what the owners print."""
    worst = max(abs(fit[name] - value) for name, value in PUBLISHED.items())
    gap = min(one.subspace.gap for one in found)
    return (
        Expectation(
            f"the owners' figures come out to every digit: off by {worst:.1e} at most, half a "
            f'digit is {HALF_DIGIT:.0e}',
            worst <= HALF_DIGIT,
        ),
        Expectation(
            f'the readings lie in an affine subspace of three dimensions: gap {gap:.0f} at least',
            gap > 100.0,
        ),
    )


def _published_table(fits: tuple[dict[str, float], ...]) -> Table:
    """Return the owners' figures beside those of the same fit."""
    rows = tuple(
        (name, f'{value:.5f}', f'{fits[0][name]:.5f}', f'{fits[1][name]:.5f}')
        for name, value in PUBLISHED.items()
    )
    columns = ('', 'published, 7 poses', 'here, 7 poses', 'here, 60 other poses')
    return Table('Axia80: weight, centre and offset by the model of its owners', columns, rows)


def _offset_table(fits: tuple[dict[str, float], ...], found: tuple[InSituOffset, ...]) -> Table:
    """Return offsets with a model and without."""
    modelled = [[v for name, v in fit.items() if 'offset' in name] for fit in fits]
    rows = []
    for k, channel in enumerate(CHANNELS):
        row = [channel]
        for one, with_model in zip(found, modelled, strict=True):
            row += [
                f'{with_model[k]:.4f}',
                f'{one.offset[k]:.4f} ± {one.deviations[k]:.4f}',
                f'{one.slopes.drift[k]:.4f}',
            ]
        rows.append(tuple(row))
    return Table(
        'Axia80: offsets with a model and without [T 5.10]',
        (
            '', '7 poses: with', 'without', 'drift', '60 poses: with', 'without', 'drift',
        ),
        tuple(rows),
    )  # fmt: skip


def _subspace_table(found: tuple[InSituOffset, ...]) -> Table:
    """Return how flat the readings are."""
    rows = tuple(
        (
            name,
            ', '.join(f'{x:.3g}' for x in one.subspace.spreads),
            f'{one.subspace.gap:.0f}',
            f'{one.unexplained:.1%}',
        )
        for name, one in zip(('7 poses', '60 poses'), found, strict=True)
    )
    return Table(
        'Axia80: spread of the readings along the directions of the subspace and off it [T 5.7]',
        ('', 'spreads [N, or Nm per 0.1 m]', 'third over fourth', 'left by gravity'),
        rows,
    )
