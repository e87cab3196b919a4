# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What a calibration without a model loses by errors that no deviation of it holds.

Noise of an accelerometer where gravity hardly moves, play of the sensor, loads that are not as
stated: of a body of 3 kg that hangs on a sensor, with loads of 0.5 kg.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.published.experiment import Finding
from inertial_estimation.calibration.added_mass_rows import AddedMassRows
from inertial_estimation.calibration.added_masses import (
    AddedMass,
    MatrixCalibration,
    matrix_from_added_masses,
)
from inertial_estimation.calibration.matrix_doubts import matrix_doubts
from inertial_estimation.calibration.offset_in_situ import LENGTH_SCALE, offset_in_situ
from inertial_estimation.calibration.quiet_samples import GRAVITY
from inertial_estimation.calibration.weighing import Weighed, weight_matrix
from inertial_estimation.table import Table

Array = NDArray[np.float64]

NAME = 'a body of 3 kg on a sensor: noise, play, loads that are not as stated'
BODY = Weighed(3.0, 3.0 * np.array([0.01, -0.02, 0.15]))
LOADS = ((0.0, (0.0, 0.0, 0.0)), (0.5, (0.3, 0.0, 0.05)), (0.5, (0.0, 0.2, 0.05)))
"""Mass [kg] and centre [m] of what is added in each data set."""
NOISE = np.repeat([0.15, 0.007], 3)
"""Of the readings [N, Nm]."""
TILTED, LONG = 400, 3000
"""Samples of a log for an offset, and of a data set for a matrix."""
TILTS, ACCELEROMETERS = (30.0, 45.0), (0.1, 0.03)
"""To each side about two axes [degrees]; noise [m/s^2]."""
SWING, SWINGS = np.deg2rad([35.0, 45.0]), 11
"""Of the leg to and fro and sideways [rad], and how often it goes to and fro meanwhile."""
PLAY = 0.005
"""Half of the play, over the largest force or moment of the swing."""
ASIDE = (0.01, 0.02, 0.05)
"""By which the centre of one load is off [m]."""
HEAVIER = (0.1, 0.2)
"""Share by which the mass of one load is off."""
DRAWS = 100
"""Of noise alone for offsets."""
SOME = 20
"""Of loads for matrices."""
SEED = 7


class Tilted(NamedTuple):
    """Offsets from a body that is tilted."""

    tilt: float
    """[degrees]"""
    noise: float
    """Of the accelerometer [m/s^2]."""
    error: float
    """Mean error of the force along gravity, over the weight."""
    deviation: float
    """The stated one, over the weight."""


@dataclass(frozen=True)
class Loaded:
    """Matrices from loads of which something is wrong, smallest and largest of several."""

    what: str
    left: tuple[float, float]
    """By the equations, over what was added."""
    over_noise: tuple[float, float]
    """What is left of the worst data set, over noise."""
    error: tuple[float, float]
    """Of the matrix, largest along any direction, moments over `LENGTH_SCALE`."""
    doubted: int
    """How many of them would not be written."""


def run(folder: Path) -> Finding:
    """Calibrate with each error."""
    tilted = [offsets(tilt, noise) for tilt in TILTS for noise in ACCELEROMETERS]
    loaded = [matrices('as stated'), matrices('play of 1 % of the swing', play=PLAY)]
    loaded += [matrices(f'one centre {1e2 * d:g} cm off', aside=d) for d in ASIDE]
    loaded += [matrices(f'one mass {share:.0%} off', heavier=share) for share in HEAVIER]
    figures = {
        'tilted': [one._asdict() for one in tilted], 'loads': [asdict(one) for one in loaded]
    }  # fmt: skip
    return Finding(NAME, (_tilt_table(tilted), _load_table(loaded)), (), figures)


def offsets(tilt: float, noise: float) -> Tilted:
    """
    Find offsets of a body that is tilted to all sides about two axes.

    tilt [degrees]; noise [m/s^2].
    """
    weight = BODY.mass * GRAVITY
    found = []
    for draw in range(DRAWS):
        rng = np.random.default_rng((SEED, draw))
        gravity = _tilted(rng, np.deg2rad(tilt))
        read = wrenches(gravity, *LOADS[0]) + rng.normal(size=(len(gravity), 6)) * NOISE
        accelerations = -gravity + rng.normal(scale=noise, size=gravity.shape)
        one = offset_in_situ(read, accelerations, matrix=np.eye(6), what='tilted')
        found.append((one.offset[2], one.deviations[2]))
    error, deviation = np.mean(found, axis=0) / weight
    return Tilted(tilt, noise, float(abs(error)), float(deviation))


def matrices(what: str, *, play: float = 0.0, aside: float = 0.0, heavier: float = 0.0) -> Loaded:
    """
    Find matrices from the loads.

    aside [m].
    """
    rows, doubted = [], 0
    for draw in range(SOME):
        rng = np.random.default_rng((SEED, draw))
        sets = [_data_set(rng, str(k), *load, play) for k, load in enumerate(LOADS)]
        drawn = rng.normal(size=3)
        off = sets[1].centre + aside * drawn / np.linalg.norm(drawn)
        sets[1] = sets[1]._replace(centre=off, mass=(1.0 + heavier) * sets[1].mass)
        found = matrix_from_added_masses(sets, rotation=np.eye(3), workshop=np.eye(6))
        doubted += bool(matrix_doubts(found, np.eye(6)))
        rows.append((_share_left(found), float(found.residuals.max()), _error(found.matrix)))
    left, over_noise, error = (
        (float(min(column)), float(max(column))) for column in zip(*rows, strict=True)
    )
    return Loaded(what, left, over_noise, error, doubted)


def _tilted(rng: np.random.Generator, most: float) -> Array:
    """Return gravity of a body that is tilted about two axes, shape (n, 3) [m/s^2]."""
    return _gravity(*rng.uniform(-most, most, (2, TILTED)))


def _gravity(roll: Array, pitch: Array) -> Array:
    """Return gravity in the axes of a body, shape (n, 3) [m/s^2]."""
    parts = -np.sin(pitch), np.cos(pitch) * np.sin(roll), np.cos(pitch) * np.cos(roll)
    return GRAVITY * np.column_stack(parts)


def _data_set(
    rng: np.random.Generator, name: str, mass: float, centre: tuple[float, ...], play: float
) -> AddedMass:
    """Return a data set of a leg that swings to and fro, and once or so sideways."""
    turns = 2.0 * np.pi * rng.uniform(0.5, 1.5) * np.linspace(0.0, 1.0, LONG)
    phases = rng.uniform(0.0, 2.0 * np.pi, 2)
    pitch = SWING[0] * np.sin(SWINGS * turns + phases[0])
    gravity = _gravity(SWING[1] * np.sin(turns + phases[1]), pitch)
    read = _with_play(wrenches(gravity, mass, centre), play)
    read += rng.normal(size=read.shape) * NOISE
    return AddedMass(name, read, -gravity, mass, np.array(centre, dtype=float))


def wrenches(gravity: Array, mass: float, centre: tuple[float, ...]) -> Array:
    """Return what body and load make the sensor read, shape (n, 6) [N, Nm]."""
    M = weight_matrix(BODY.mass, BODY.first_moment) + weight_matrix(mass, mass * np.array(centre))
    return np.asarray(gravity @ M.T)


def _with_play(wanted: Array, share: float) -> Array:
    """Return what a sensor reads that follows only as far as its play."""
    largest = np.abs(wanted).reshape(-1, 2, 3).max(axis=(0, 2))
    play, read, at = share * np.repeat(largest, 3), np.empty_like(wanted), wanted[0]
    for k, one in enumerate(wanted):
        at = read[k] = np.clip(at, one - play, one + play)
    return read


def _share_left(found: MatrixCalibration) -> float:
    """Return what the equations leave, over what was added."""
    rows = AddedMassRows.of(
        [one.slopes for one in found.found],
        [Weighed(one.mass, one.mass * np.asarray(one.centre)) for one in found.data_sets],
        found.rotation,
        found.direction,
    )
    return rows.share_left(found.matrix, found.body, LENGTH_SCALE)


def _error(matrix: Array) -> float:
    """Return how far a matrix is off the identity along the worst direction."""
    scale = np.repeat([1.0, 1.0 / LENGTH_SCALE], 3)
    return float(np.linalg.norm(scale[:, None] * (matrix - np.eye(6)) / scale, 2))


def _tilt_table(found: list[Tilted]) -> Table:
    """Return what noise of the accelerometer costs."""
    rows = tuple(
        (f'{one.tilt:g}', f'{one.noise:g}', f'{one.error:.2%}', f'{one.deviation:.2%}')
        for one in found
    )
    return Table(
        f'Noise of the accelerometer, {TILTED} samples tilted about two axes: force along gravity',
        ('up to [deg]', 'noise [m/s^2]', 'off, of the weight', 'stated deviation'),
        rows,
    )


def _load_table(found: list[Loaded]) -> Table:
    """Return what is left, and how wrong the matrix is."""
    percent: Callable[[float], str] = '{:.1%}'.format
    rows = tuple(
        (one.what, *(f'{text(low)} to {text(high)}' for text, (low, high) in (
            (percent, one.left), ('{:.1f}'.format, one.over_noise), (percent, one.error),
        )), f'{one.doubted} of {SOME}')
        for one in found
    )  # fmt: skip
    return Table(
        f'Matrices from two loads of 0.5 kg, {SOME} draws',
        (
            'what is wrong',
            'left, of what was added',
            'left over noise',
            'matrix off',
            'not written',
        ),
        rows,
    )
