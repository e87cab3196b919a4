# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
An ATI Gamma with an IMU on its load, in 24 orientations: offsets against those that are published.

The published ones are from orientations of the robot's arm and a model of the load. Here neither
is used: the readings and what the IMU reads, whose bias of 0.08 g gravity tells.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.published.data_sets import read_table
from bench.published.experiment import Expectation, Finding
from inertial_estimation.calibration.offset_in_situ import InSituOffset, offset_in_situ
from inertial_estimation.calibration.quiet_samples import STILL_ACCELERATION
from inertial_estimation.calibration.tables import AXES
from inertial_estimation.table import Table

Array = NDArray[np.float64]

NAME = 'ATI Gamma and IMU in 24 orientations (Skrede 2024, doi 10.5281/zenodo.11075229)'
FILE = 'ntnu_fts_imu/0-calibration_fts-accel.csv'
WRENCH = ('fx', 'fy', 'fz', 'tx', 'ty', 'tz')
IMU, GRAVITY = ('ax', 'ay', 'az'), ('gx', 'gy', 'gz')
G = 9.81
"""Of the unit of the IMU [m/s^2]."""
OFFSET = np.array([9.07633, -1.01814, 9.98482, 0.432449, -0.692162, -0.156746])
"""Published [N, Nm]."""
BIAS = np.array([-0.00366, 0.00885, 0.07711])
"""Published, of the IMU [g]."""
NEAR = np.repeat([0.05, 0.002], 3)
"""Residuals of the published fit are 0.086 N and 0.003 Nm in 24 poses [N, Nm]."""
WAYS = ('orientations of the arm', 'IMU', 'IMU, its bias not taken off')


def run(folder: Path) -> Finding:
    """Find the offset in three ways."""
    rows = read_table(folder / FILE, (*WRENCH, *IMU, *GRAVITY))
    wrenches, imu, gravity = (
        np.array([[float(row[name]) for name in names] for row in rows])
        for names in (WRENCH, IMU, GRAVITY)
    )
    found = (
        _offset(wrenches, -gravity),
        _offset(wrenches, G * imu),
        # With that bias, sizes differ as if the body moved.
        _offset(wrenches, G * imu, bias=np.zeros(3), still_acceleration=0.2 * G),
    )
    return Finding(
        NAME,
        (_table(found),),
        tuple(one.note for one in expectations(found)),
        {
            'published': OFFSET.tolist(),
            'offsets': dict(zip(WAYS, (one.offset.tolist() for one in found), strict=True)),
            'deviations': dict(zip(WAYS, (one.deviations.tolist() for one in found), strict=True)),
            'accelerometer_bias': (found[1].bias.bias / G).tolist(),
            'singular_values': found[1].subspace.singular_values.tolist(),
        },
    )


def expectations(found: tuple[InSituOffset, ...]) -> tuple[Expectation, ...]:
    """Hold offsets against the published ones."""
    said = []
    for way, one in zip(WAYS, found[:2], strict=False):
        off = np.abs(one.offset - OFFSET)
        said.append(
            Expectation(
                f'the offset by {way} and no model is within {NEAR[0]:g} N and {NEAR[3]:g} Nm of '
                f'the published one: off by {off[:3].max():.3f} N, {off[3:].max():.4f} Nm',
                bool((off <= NEAR).all()),
            )
        )
    off = float(np.abs(found[1].bias.bias / G - BIAS).max())
    said.append(
        Expectation(
            f'gravity tells the bias of the IMU to {off:.4f} g, 0.01 g at most', off < 0.01
        )
    )
    return tuple(said)


def _offset(
    wrenches: Array,
    accelerations: Array,
    bias: Array | None = None,
    still_acceleration: float = STILL_ACCELERATION,
) -> InSituOffset:
    """Return the offset without a model."""
    return offset_in_situ(
        wrenches, accelerations, matrix=np.eye(6), what=FILE, bias=bias,
        still_acceleration=still_acceleration,
    )  # fmt: skip


def _table(found: tuple[InSituOffset, ...]) -> Table:
    """Return the offsets beside each other."""
    rows = tuple(
        (
            f'{axis} [{"N" if k < 3 else "Nm"}]',
            f'{OFFSET[k]:.4f}',
            *(f'{one.offset[k]:.4f} ± {one.deviations[k]:.4f}' for one in found),
        )
        for k, axis in enumerate(AXES)
    )
    gaps = ('gap', '', *(f'{one.subspace.gap:.0f}' for one in found))
    return Table('ATI Gamma: offsets without a model', ('', 'published', *WAYS), (*rows, gaps))
