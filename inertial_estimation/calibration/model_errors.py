# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What several poses tell of offsets and of errors of the model.

An offset stays in the sensor's frame, whatever the pose. A mass that the model has wrong, or a
gain of the sensor, turns with gravity: what a sensor reads besides its prediction is then

    force  = offset + s dm g        moment = offset + s dh x g

with gravity g in the sensor's axes, the mass dm and the first moment dh about the sensor that the
model lacks on the side that is summed, and s = 1 where the sensor feels that side hang. With one
pose the two cannot be told apart, and the offset takes up all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.serial_means import deviations_of_means
from inertial_estimation.model.spatial import hat

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEAST_INSTANTS = 10
"""A pose that is held for fewer is none."""
LEAST_TURN = np.deg2rad(15.0)
"""By which gravity must turn in a sensor: errors of the model are blown up by four then."""
SIGNIFICANT = 3.0
"""Standard deviations of the noise that a difference between poses must exceed."""
NOTABLE = np.array([0.3, 0.03])
"""Smaller differences between poses are no matter [N, Nm]."""
MOSTLY = 0.7
"""Share of the differences that must turn with gravity to be put down to masses."""
TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class PoseErrors:
    """What the poses of a log say of one sensor."""

    residuals: Array
    """Mean of readings minus prediction and offset in each pose, shape (n_poses, 6) [N, Nm]."""
    gravity: Array
    """In the sensor's axes in each pose, shape (n_poses, 3) [m/s^2]."""
    turn: float
    """Largest angle between two of these [rad]."""
    rotating: Array
    """Root mean square of force and of moment that differ between poses, (2,) [N, Nm]."""
    remaining: Array
    """The same of what a mass and a first moment do not explain, shape (2,) [N, Nm]."""
    mass: float
    """That the model lacks on the side that is summed [kg]; NaN where poses do not tell."""
    first_moment: Array
    """Likewise about the sensor, in its axes, shape (3,) [kg m]."""
    constant: Array
    """What would have to be added to the offset if that were so, shape (6,) [N, Nm]."""
    verdict: str
    """In words."""


def pose_errors(
    differences: Array, gravity: Array, labels: NDArray[np.intp], sign: float
) -> PoseErrors:
    """
    Tell the errors of the model from an offset.

    differences (n, 6) [N, Nm]; gravity (n, 3) [m/s^2]; labels (n,).
    """
    known: Mask = np.logical_and.reduce(np.isfinite(differences), axis=1)
    held = [
        rows
        for pose in range(labels.max(initial=-1) + 1)
        if (rows := known & (labels == pose)).sum() >= LEAST_INSTANTS
    ]
    residuals = np.array([differences[rows].mean(axis=0) for rows in held]).reshape(-1, 6)
    pulls = np.array([gravity[rows].mean(axis=0) for rows in held]).reshape(-1, 3)
    noise = np.array([deviations_of_means(differences[rows]) for rows in held]).reshape(-1, 6)
    turn = _turn(pulls)
    centred = residuals - residuals.mean(axis=0) if len(held) else residuals
    rotating = _rms(centred)
    if len(held) < 2 or turn < LEAST_TURN:
        nothing = np.full(6, np.nan)
        return PoseErrors(
            residuals, pulls, turn, rotating, nothing[:2], np.nan, nothing[:3], nothing,
            _cannot_tell(len(held), turn, rotating, _rms(noise)),
        )  # fmt: skip
    fit = _fit(residuals, sign * pulls)
    return PoseErrors(
        residuals, pulls, turn, rotating, fit.remaining, fit.mass, fit.first_moment, fit.constant,
        _verdict(rotating, fit, _rms(noise), len(held)),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Masses:
    """A mass and a first moment that explain differences between poses."""

    mass: float
    first_moment: Array
    constant: Array
    remaining: Array
    taken: Array
    """Share of any differences that these explain by chance, of forces and of moments, (2,)."""


def _fit(residuals: Array, pulls: Array) -> _Masses:
    """Fit a mass to the forces and a first moment to the moments, each besides a constant."""
    n = len(residuals)
    ones = np.tile(np.eye(3), (n, 1))
    A = np.hstack([ones, pulls.reshape(-1, 1)])
    force = _solved(A, residuals[:, :3].ravel())
    B = np.hstack([ones, np.vstack([-hat(g) for g in pulls])])
    moment = _solved(B, residuals[:, 3:].ravel())
    left = np.hstack(
        [
            residuals[:, :3] - (A @ force).reshape(-1, 3),
            residuals[:, 3:] - (B @ moment).reshape(-1, 3),
        ]
    )
    # Differences have three numbers for each pose but one; two poses leave one of moments.
    unknowns = np.array([1, np.linalg.matrix_rank(B, tol=TOLERANCE * np.linalg.norm(B, 2)) - 3])
    return _Masses(
        float(force[3]), moment[3:], np.concatenate([force[:3], moment[:3]]), _rms(left),
        unknowns / (3.0 * (n - 1)),
    )  # fmt: skip


def _solved(A: Array, b: Array) -> Array:
    """Return the shortest least squares; two poses leave a part of a first moment open."""
    x: Array = np.asarray(np.linalg.lstsq(A, b, rcond=TOLERANCE)[0], dtype=np.float64)
    return x


def _cannot_tell(n_poses: int, turn: float, rotating: Array, noise: Array) -> str:
    """Say why the poses do not tell errors of the model."""
    if not n_poses:
        return 'no pose is held: an error of the model cannot be told from the offset'
    if n_poses < 2:
        return 'one pose: an error of the model cannot be told from the offset, which holds both'
    differ = ''
    if (rotating > np.maximum(SIGNIFICANT * noise, NOTABLE)).any():
        differ = f', and {n_poses} poses differ by {rotating[0]:.2g} N, {rotating[1]:.2g} Nm'
    return (
        f'gravity turns by {np.degrees(turn):.0f} degrees only: an error of the model cannot be '
        f'told from the offset, which holds both{differ}'
    )


def _verdict(rotating: Array, fit: _Masses, noise: Array, n_poses: int) -> str:
    """Say what the differences between poses come from."""
    over = rotating > np.maximum(SIGNIFICANT * noise, NOTABLE)
    size = f'{rotating[0]:.2g} N, {rotating[1]:.2g} Nm'
    if not over.any():
        return f'offset: {n_poses} poses agree within {size}'
    # The worse of the two that differ speaks, less what any differences would do.
    left = (fit.remaining / np.where(over, rotating, np.inf)) ** 2 / (1.0 - fit.taken)
    share = 1.0 - float(left.max())
    if share >= MOSTLY:
        return (
            f'model error: {n_poses} poses differ by {size}, {100 * share:.0f} % of it as if '
            f'{fit.mass:+.2f} kg were lacking'
        )
    return (
        f'model error: {n_poses} poses differ by {size}, not as a wrong mass would: suspect the '
        "sensor's matrix, joint zeros or a contact"
    )


def _turn(pulls: Array) -> float:
    """Return the largest angle between directions [rad]."""
    if len(pulls) < 2:
        return 0.0
    directions = pulls / np.linalg.norm(pulls, axis=1, keepdims=True)
    return float(np.arccos(np.clip(directions @ directions.T, -1.0, 1.0)).max())


def _rms(rows: Array) -> Array:
    """Return the root mean square of forces and of moments, shape (2,); NaN without rows."""
    if not len(rows):
        return np.full(2, np.nan)
    squares: Array = (rows.reshape(-1, 2, 3) ** 2).sum(axis=2)
    return np.asarray(np.sqrt(squares.mean(axis=0)))
