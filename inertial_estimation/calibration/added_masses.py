# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The calibration matrix of an FT sensor from masses that are added to the body beyond it [T 5.11].

Gravity g acts on the body and on what is added, an accelerometer at rest reads a = -g, and a
sensor that reads the wrench of the body on itself obeys

    matrix (raw - b_j) = (M_b + M_j) g,    M = [m 1; hat(m c)]

in each data set j. The matrix and the body's M_b are unknown, 36 + 4 numbers, M_j is known. Each
data set has an offset b_j of its own, as offsets drift while masses are mounted, and is reduced to
its slopes first (`raw_slopes`): their noise is that of a sample over the root of their number, so
that noise of the readings hardly shrinks the matrix, as it would if they were regressors.

The answer is unique if and only if the total masses are not all equal and the total centres of
mass are not on one line [T Lemma 5.2 asks for three data sets, which both need].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.added_mass_rows import UNKNOWNS, AddedMassRows
from inertial_estimation.calibration.affine_subspace import LEAST_GAP
from inertial_estimation.calibration.offset_in_situ import (
    LENGTH_SCALE,
    InSituOffset,
    offset_in_situ,
)
from inertial_estimation.calibration.quiet_samples import STILL_ACCELERATION, STILL_TURNING
from inertial_estimation.calibration.silent_channels import blamed, copies, silent
from inertial_estimation.calibration.weighing import Weighed
from inertial_estimation.errors import LogError, ModelError
from inertial_estimation.model.arguments import numbers

Array = NDArray[np.float64]

FEWEST_SETS = 3
"""[T Lemma 5.2]"""
ROTATION_ERROR = 1e-6
"""Of the product of a rotation with its transpose."""


class AddedMass(NamedTuple):
    """A data set: readings in several orientations with a known mass added."""

    name: str
    raw: Array
    """Shape (n, 6), in the order of time, in any unit, the same in all data sets."""
    accelerations: Array
    """Of an accelerometer on the body, in its own axes, shape (n, 3) [m/s^2]."""
    mass: float
    """That was added; 0: none [kg]."""
    centre: Array
    """
    Of the mass that was added, about the sensor's origin, shape (3,) [m]: in the sensor's axes,
    or in the accelerometer's if the rotation between the two is not known.
    """
    turning: Array | None = None
    """Of a gyroscope on the body, shape (n, 3) [rad/s]; None: there is none."""


@dataclass(frozen=True, eq=False)
class MatrixCalibration:
    """A calibration matrix and what speaks for it."""

    matrix: Array
    """From raw readings to wrenches, shape (6, 6) [N, Nm per raw unit]."""
    covariance: Array
    """Of the matrix by columns, the body's mass and first moment, shape (40, 40)."""
    body: Weighed
    """What is beyond the sensor without the masses that were added."""
    in_sensor_axes: bool
    """
    Whether wrenches are in the sensor's axes. Otherwise they are in those of the accelerometer,
    about the sensor's origin [T Remark 5.1].
    """
    rank: int
    """Of the equations, of 40."""
    singular_values: Array
    """Of the equations over what noise makes of them, falling, shape (40,)."""
    residuals: Array
    """
    Of the slopes of each data set, root mean square over what their noise leaves beside the
    unknowns: about 1 if all is as stated.
    """
    data_sets: tuple[AddedMass, ...]
    found: tuple[InSituOffset, ...]
    """Offset and slopes of each data set, in raw units."""
    direction: int
    """+1: the readings are the wrench of the body on the sensor, -1: of the sensor on the body."""
    rotation: Array
    """Of the accelerometer in the frame of the wrenches, shape (3, 3)."""

    @property
    def deviations(self) -> Array:
        """Standard deviations of the matrix, shape (6, 6)."""
        squares = np.diagonal(self.covariance)[:36]
        return np.asarray(np.sqrt(squares).reshape(6, 6, order='F'))

    @property
    def body_deviations(self) -> Array:
        """Standard deviations of mass and first moment, shape (4,) [kg, kg m]."""
        return np.asarray(np.sqrt(np.diagonal(self.covariance)[36:]))

    @property
    def offsets(self) -> Array:
        """Offset of each data set, which is subtracted, shape (n_sets, 6) [N, Nm]."""
        return np.array([self.matrix @ one.offset for one in self.found])

    def wrench_slopes(self, found: InSituOffset, matrix: Array | None = None) -> Array:
        """
        Return how the wrench of the body on the sensor follows gravity.

        matrix (6, 6); returns (6, 3).
        """
        seen = self.matrix if matrix is None else matrix
        return -self.direction * seen @ found.slopes.slopes @ self.rotation.T

    def gram(self, found: InSituOffset) -> Array:
        """
        Return the sum of squares of gravity about its mean in the frame of the wrenches.

        Returns (3, 3).
        """
        return np.asarray(self.rotation @ found.slopes.gram @ self.rotation.T)


def matrix_from_added_masses(
    data_sets: Sequence[AddedMass],
    *,
    rotation: Array | None = None,
    direction: int = 1,
    workshop: Array | None = None,
    bias: Array | None = None,
    length_scale: float = LENGTH_SCALE,
    least_gap: float = LEAST_GAP,
    still_acceleration: float = STILL_ACCELERATION,
    still_turning: float = STILL_TURNING,
) -> MatrixCalibration:
    """
    Find the calibration matrix.

    Parameters
    ----------
    data_sets : sequence of AddedMass
        Three or more.
    rotation : ndarray, shape (3, 3), optional
        Of the accelerometer in the sensor's frame. Default: unknown, and the wrenches are in the
        accelerometer's axes, as are the centres of the masses [T Remark 5.1].
    direction : int
        +1 if the readings are the wrench of the body on the sensor, -1 if that of the sensor on
        the body.
    workshop : ndarray, shape (6, 6), optional
        About the matrix, for the test of the subspace alone, see `offset_in_situ`.
    bias : ndarray, shape (3,), optional
        Of the accelerometer [m/s^2]; goes into offsets alone. Default: from gravity, in each data
        set whose orientations tell it.
    length_scale, least_gap, still_acceleration, still_turning : float
        As for `offset_in_situ`.

    Returns
    -------
    MatrixCalibration

    Raises
    ------
    ShapeError, ModelError
        If arrays do not belong together, or masses, centres or the rotation are none.
    LogError
        If a data set tells no offset, or the data sets do not tell the matrix; with the rank.

    """
    sets = tuple(data_sets)
    _check(sets, direction)
    if len(sets) < FEWEST_SETS:
        raise LogError(
            f'{len(sets)} data sets do not tell a matrix, {FEWEST_SETS} at least do: add another '
            'mass, or the same one at another place, off the line through the centres of mass '
            '[T Lemma 5.2]'
        )
    R = np.eye(3) if rotation is None else _checked_rotation(rotation)
    find = partial(
        _offsets, sets, bias=bias, length_scale=length_scale,
        still_acceleration=still_acceleration, still_turning=still_turning,
    )  # fmt: skip
    try:
        found = find(workshop, least_gap=least_gap)
    except LogError as refused:
        if workshop is not None:
            raise
        # Channels in units of their own hide the body: the matrix of slopes makes them comparable.
        try:
            rough = find(None, least_gap=0.0, most_unexplained=np.inf)
            _, matrix, _ = _rows(sets, rough, R, direction).solve_weighed(length_scale)
            found = find(matrix, least_gap=least_gap)
        except (LogError, np.linalg.LinAlgError):
            raise refused from None
    rows = _rows(sets, found, R, direction)
    rank, singular_values = rows.rank(np.diag(np.repeat([1.0, 1.0 / length_scale], 3)))
    if rank < UNKNOWNS:
        raise _too_low(sets, found, rank, singular_values)
    weight, matrix, body = rows.solve_weighed(length_scale)
    return MatrixCalibration(
        matrix=matrix,
        covariance=rows.covariance(weight, matrix),
        body=body,
        in_sensor_axes=rotation is not None,
        rank=rank,
        singular_values=singular_values,
        residuals=rows.residuals(weight, matrix, body),
        data_sets=sets,
        found=found,
        direction=direction,
        rotation=R,
    )


def _offsets(
    sets: Sequence[AddedMass], matrix: Array | None, **options: Any
) -> tuple[InSituOffset, ...]:
    """Return what each data set tells by itself."""
    return tuple(
        offset_in_situ(
            one.raw, one.accelerations, turning=one.turning, matrix=matrix,
            what=f"data set '{one.name}'", **options,
        )
        for one in sets
    )  # fmt: skip


def _rows(
    sets: Sequence[AddedMass], found: Sequence[InSituOffset], R: Array, direction: int
) -> AddedMassRows:
    """Return the equations."""
    known = [Weighed(one.mass, one.mass * np.asarray(one.centre, dtype=float)) for one in sets]
    return AddedMassRows.of([one.slopes for one in found], known, R, direction)


def _check(sets: Sequence[AddedMass], direction: int) -> None:
    """Raise if masses, centres or names are none."""
    if direction not in (1, -1):
        raise ModelError(f"'direction' is {direction!r}, expected 1 or -1")
    names = [one.name for one in sets]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ModelError(f"two data sets are named '{twice[0]}': give each a name of its own")
    for one in sets:
        numbers(f"the centre of the mass added in '{one.name}'", one.centre, (3,))
        if not (np.isfinite(one.mass) and one.mass >= 0.0):
            raise ModelError(
                f"the mass added in '{one.name}' is {one.mass!r}, expected kilograms, 0 or more"
            )


def _checked_rotation(rotation: Array) -> Array:
    """Return a rotation, or refuse what is none."""
    R = numbers('rotation', rotation, (3, 3))
    if np.abs(R @ R.T - np.eye(3)).max() > ROTATION_ERROR or np.linalg.det(R) < 0.0:
        raise ModelError('rotation is no rotation matrix: its rows must be unit vectors, right-'
                         'handed and at right angles')  # fmt: skip
    return R


def _too_low(
    sets: Sequence[AddedMass], found: Sequence[InSituOffset], rank: int, singular_values: Array
) -> LogError:
    """Return why the data sets do not tell the matrix: channels, or masses."""
    why = _why(sets, rank, singular_values)
    used = [
        (one.raw[of.kept], one.accelerations[of.kept]) for one, of in zip(sets, found, strict=True)
    ]
    every = np.all([silent(*one) for one in used], axis=0)
    pairs = set.intersection(*(copies(raw) for raw, _ in used))
    if channels := blamed(every, pairs, ' in all data sets'):
        return LogError(f'{channels}. Else: {why}', about=('readings',))
    return LogError(why)


def _why(sets: Sequence[AddedMass], rank: int, singular_values: Array) -> str:
    """Say why the data sets do not tell the matrix, as far as the masses tell."""
    said = (
        f'the data sets tell {rank} of {UNKNOWNS} unknowns of matrix and body (the next singular '
        f'value is {singular_values[rank]:.2g} times the noise)'
    )
    masses = {round(one.mass, 6) for one in sets}
    places = {tuple(np.round(one.centre, 6)) for one in sets if one.mass}
    if len(masses) == 1:
        return f'{said}: all total masses are equal; add another mass, or take one away'
    if len(places) == 1:
        return (
            f'{said}: all masses were added at one place, so that all total centres of mass are '
            'on one line; add one at another place, off that line'
        )
    return (
        f'{said}: the total centres of mass are on one line, or too near to it for this noise, or '
        'the total masses are too alike; add a mass off the line through body and masses, a '
        'larger one, or record for longer'
    )
