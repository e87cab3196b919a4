# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Calibration matrix of an FT sensor from masses added to the body beyond it [T 5.11].

Gravity g acts on the body and on what is added, an accelerometer at rest reads a = -g, and a
sensor that reads the wrench of the body on itself obeys in each data set j

    C (raw - b_j) = (M_b + M_j) g,    M = [m 1; hat(m c)].

C and M_b of the body are unknown, 36 + 4 numbers, M_j is known. Each data set has an offset b_j of
its own and is reduced to its slopes H_j by gravity first (`raw_slopes`), which shrinks the noise
of the regressors by the root of the number of samples:

    (W C F) (F^-1 H_j L_j) - W M_b L_j = W M_j L_j

with L_j the root of the sum of squares of gravity, F F' the noise of the raw channels and W the
inverse of the noise of the wrenches. The unknowns are scaled so that noise adds numbers of size 1
to the coefficients: the rank counts singular values above noise, whatever the raw units.

The answer is unique if and only if the total masses are not all equal and the total centres of
mass are not on one line [T Lemma 5.2 asks for three data sets, which both need].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.accelerometer import GRAVITY
from inertial_estimation.calibration.calibration_file import (
    ACCELEROMETER,
    NO_TEMPERATURE,
    SENSOR,
    Provenance,
    SensorCalibration,
)
from inertial_estimation.calibration.in_situ_offset import (
    LENGTH_SCALE,
    MIN_GAP,
    InSituOffset,
    in_situ_offset,
)
from inertial_estimation.calibration.raw_slopes import RawSlopes
from inertial_estimation.errors import LogError, ModelError
from inertial_estimation.findings import Finding, Level, finding, limit_of
from inertial_estimation.model.arguments import numbers
from inertial_estimation.model.spatial import hat

Array = NDArray[np.float64]

UNKNOWNS, OF_MATRIX = 40, 36
MIN_DATA_SETS = 3
"""[T Lemma 5.2]"""
WEIGHT_ROUNDS = 4
"""Of weighing the equations by the noise of wrenches that the last matrix implies."""
MIN_OVER_NOISE = 3.0
"""Singular values below so many times the expected largest of noise count as zero."""
MIN_VARIANCE_RATIO = 1e-3
"""Of the covariance of residuals, which 40 blocks determine no better."""
ROUND_OFF = 1e-9
MAX_RESIDUAL_OVER_NOISE = 3.0
MAX_RESIDUAL = 0.07
"""
Of what was added, left beyond noise: play of 1 % of the swing, as data sheets admit, leaves 0.06
of 0.5 kg on a body of 3 kg; a centre that is 5 cm off 0.05 to 0.3.
"""
MAX_LASTING, MAX_LASTING_RESIDUAL = 25.0, 0.03
"""
Residual over errors that last within data sets, and of what was added: play leaves 12 times at
most, gains of the accelerometer that differ by 3 % a share of 0.023, a centre 5 cm off 14 to 70.
"""
MAX_SCALE_ERROR = 0.01
"""Of the accelerometer's gravity."""
MAX_MASS, MAX_DISTANCE = 50.0, 3.0
"""Of a body in the hand, and its centre from the sensor [kg, m]: more is another unit."""
FIRST_MOMENTS = np.array(hat(np.eye(3)))
"""Derivatives of hat(first moment) by its coordinates, shape (3, 3, 3)."""
MAX_WRENCH_RATIO, MAX_FORCE_MIXING, MIN_MOMENT_RATIO = 3.0, 0.3, 0.2
"""
Readings are wrenches if forces come out as so many newtons at most (or one over it; pounds: 2.2),
mix by that share (gauges of 32 real sensors: 1.9), and moments are so large (gauges: 0.03).
"""


class Weighed(NamedTuple):
    """Mass and first moment of a body."""

    mass: float
    """[kg]"""
    first_moment: Array
    """In the frame of the wrenches, shape (3,) [kg m]."""

    @property
    def centre(self) -> Array:
        """Centre of mass, shape (3,) [m]; NaN without mass."""
        return self.first_moment / self.mass if self.mass else np.full(3, np.nan)

    @property
    def matrix(self) -> Array:
        """M, from gravity to the weight of the body, shape (6, 3) [T 5.2b]."""
        first_moment = np.asarray(self.first_moment, dtype=np.float64)
        return np.vstack([self.mass * np.eye(3), hat(first_moment)])

    def less(self, other: Weighed) -> Weighed:
        """Return the difference of two bodies."""
        return Weighed(self.mass - other.mass, self.first_moment - other.first_moment)


def weigh(wrench_slopes: Array, gram: Array) -> Weighed:
    """
    Return the body whose weight fits measured slopes best.

    wrench_slopes (6, 3) [N, Nm per m/s^2]; gram (3, 3): sum of squares of gravity.
    """
    forces, moments = wrench_slopes[:3], wrench_slopes[3:]
    mass = float(np.trace(forces @ gram) / np.trace(gram))
    factor = np.linalg.cholesky(gram)
    columns = (FIRST_MOMENTS @ factor).reshape(3, 9).T
    first_moment = np.linalg.lstsq(columns, (moments @ factor).reshape(-1), rcond=None)[0]
    return Weighed(mass, first_moment)


@dataclass(frozen=True, eq=False)
class AddedMass:
    """
    Data set: readings in several orientations with a known mass added.

    Parameters
    ----------
    name : str
    raw : ndarray, shape (n, 6)
        In the order of time, in any unit, the same in all data sets.
    accelerations : ndarray, shape (n, 3)
        Of an accelerometer on the body, in its own axes [m/s^2].
    mass : float
        That was added; 0: none [kg].
    centre : ndarray, shape (3,)
        Of the added mass about the sensor's origin [m]: in the sensor's axes, or in the
        accelerometer's if the rotation between the two is not known.
    turning : ndarray, shape (n, 3), optional
        Of a gyroscope on the body [rad/s].

    """

    name: str
    raw: Array
    accelerations: Array
    mass: float = 0.0
    centre: Array = field(default_factory=lambda: np.zeros(3))
    turning: Array | None = None

    def __post_init__(self) -> None:
        """Check mass and centre."""
        centre = numbers(f"the centre of the mass added in '{self.name}'", self.centre, (3,))
        object.__setattr__(self, 'centre', centre)
        if not (np.isfinite(self.mass) and self.mass >= 0.0):
            raise ModelError(
                f"the mass added in '{self.name}' is {self.mass!r}, expected 0 kg or more"
            )

    @property
    def added(self) -> Weighed:
        """Added mass and its first moment."""
        return Weighed(self.mass, self.mass * self.centre)


@dataclass(frozen=True, eq=False)
class InSituMatrix:
    """
    Calibration matrix from added masses.

    Attributes
    ----------
    matrix : ndarray, shape (6, 6)
        From raw readings to wrenches [N, Nm per raw unit].
    covariance : ndarray, shape (40, 40)
        Of the matrix by columns, then mass and first moment of the body.
    body : Weighed
        Body beyond the sensor without the added masses.
    in_sensor_axes : bool
        Whether wrenches are in the sensor's axes; else in those of the accelerometer, about the
        sensor's origin [T Remark 5.1].
    singular_values : ndarray, shape (40,)
        Of the equations over those of noise, falling.
    residuals : ndarray, shape (n_sets,)
        Of the slopes of each data set, root mean square over their noise.
    share_left : float
        Residual of all data sets over the slopes of what was added.
    lasting : float
        Residual over errors that last within data sets.
    data_sets : tuple of AddedMass
    offsets : tuple of InSituOffset
        Offset and slopes of each data set, in raw units.
    direction : int
        +1: readings are the wrench of the body on the sensor, -1: of the sensor on the body.
    rotation : ndarray, shape (3, 3)
        Of the accelerometer in the frame of the wrenches.

    """

    matrix: Array
    covariance: Array
    body: Weighed
    in_sensor_axes: bool
    singular_values: Array
    residuals: Array
    share_left: float
    lasting: float
    data_sets: tuple[AddedMass, ...]
    offsets: tuple[InSituOffset, ...]
    direction: int
    rotation: Array

    @property
    def deviations(self) -> Array:
        """Standard deviations of the matrix, shape (6, 6)."""
        squares = np.diagonal(self.covariance)[:OF_MATRIX]
        return np.asarray(np.sqrt(squares).reshape(6, 6, order='F'))

    @property
    def body_deviations(self) -> Array:
        """Standard deviations of mass and first moment, shape (4,) [kg, kg m]."""
        return np.asarray(np.sqrt(np.diagonal(self.covariance)[OF_MATRIX:]))

    def weigh(self, offset: InSituOffset, matrix: Array | None = None) -> Weighed:
        """Return the body of a data set, as this matrix or another one (6, 6) reads it."""
        gram = self.rotation @ offset.slopes.gram @ self.rotation.T
        return weigh(self.wrench_slopes(offset, matrix), np.asarray(gram))

    def wrench_slopes(self, offset: InSituOffset, matrix: Array | None = None) -> Array:
        """Return the slopes of the wrench of the body on the sensor by gravity, (6, 3)."""
        C = self.matrix if matrix is None else matrix
        return -self.direction * C @ offset.slopes.slopes @ self.rotation.T

    def change(self, former: Array | None = None, *, turned: bool = False) -> float:
        """
        Return how far the matrix is from a former one (6, 6), as a share of it.

        The largest change of a wrench along any direction, by either of the two; of readings that
        are wrenches from the identity; NaN if nothing is known. turned: the former one is in the
        axes of an accelerometer.
        """
        if former is None:
            if not self._reads_wrenches():
                return float('nan')
            former = np.eye(6)
        ratio = self._ratio(former)
        if turned or not self.in_sensor_axes:
            U, _, Vt = np.linalg.svd(ratio[:3, :3])
            # A rotation, so that the other direction shows as the other sign.
            R = np.sign(np.linalg.det(U @ Vt)) * U @ Vt
            ratio = np.kron(np.eye(2), R.T) @ ratio
        pair = (ratio, np.linalg.inv(ratio))
        return max(float(np.linalg.norm(one - np.eye(6), 2)) for one in pair)

    def findings(
        self, subject: str, former: Array | None = None, *, turned: bool = False
    ) -> Iterator[Finding]:
        """Yield what speaks against the matrix; errors if it must not be used."""
        change = self.change(former, turned=turned)
        if change > limit_of('matrix_change'):
            of = 'the former matrix' if former is not None else 'the identity of wrenches'
            text = f'matrix differs from {of} by {change:.2g} times that along some direction'
            yield finding('matrix_change', subject, level=Level.ERROR, what=text, change=change)
        left = float(np.sqrt((self.residuals**2).mean()))
        if left > MAX_RESIDUAL_OVER_NOISE and (
            self.share_left > MAX_RESIDUAL
            or (self.share_left > MAX_LASTING_RESIDUAL and self.lasting > MAX_LASTING)
        ):
            yield finding(
                'residual', subject, level=Level.ERROR, what='slopes of the data sets',
                share=self.share_left, over_noise=left, lasting=self.lasting,
            )  # fmt: skip
        bodies = {'body': self.body} | {one.name: one.added for one in self.data_sets if one.mass}
        for name, body in bodies.items():
            distance = float(np.linalg.norm(body.centre))
            if not 0.0 < body.mass < MAX_MASS or distance > MAX_DISTANCE:
                text = f'{name} has a mass of {body.mass:.3g} kg at {distance:.3g} m'
                yield finding('inertia', subject, level=Level.ERROR, what=text)
        for one, offset in zip(self.data_sets, self.offsets, strict=True):
            yield from offset.findings(self.matrix, f'{subject}, {one.name}')
            scale = offset.gravity / GRAVITY
            if abs(scale - 1.0) > MAX_SCALE_ERROR:
                yield finding('scale', subject, what=f'gravity in {one.name}', factor=scale)

    def calibration(
        self, date: str, temperature: float = NO_TEMPERATURE, notes: Sequence[str] = ()
    ) -> SensorCalibration:
        """Return the calibration, with the offset of the last data set."""
        last = self.offsets[-1]
        squares = np.diagonal(self.matrix @ last.slopes.noise @ self.matrix.T)
        step = Provenance(
            f'matrix from added masses, {len(self.offsets)} data sets', date,
            sum(one.slopes.n_samples for one in self.offsets), temperature,
            tuple(np.sqrt(squares).tolist()), tuple(notes),
        )  # fmt: skip
        axes = SENSOR if self.in_sensor_axes else ACCELEROMETER
        return SensorCalibration(
            self.matrix, self.matrix @ last.offset, provenance=(step,), axes=axes
        )

    def _ratio(self, former: Array) -> Array:
        """Return the matrix over a former one, moments over the length scale, (6, 6)."""
        scale = np.repeat([1.0, 1.0 / LENGTH_SCALE], 3)
        ratio: Array = scale[:, None] * (self.matrix @ np.linalg.inv(former)) / scale
        return ratio

    def _reads_wrenches(self) -> bool:
        """Return whether the readings are wrenches, by what the matrix does with them."""
        ratio = self._ratio(np.eye(6))
        gains = np.maximum(np.linalg.svd(ratio[:3, :3], compute_uv=False), np.finfo(float).tiny)
        size = float(np.exp(np.log(gains).mean()))
        if not 1.0 / MAX_WRENCH_RATIO < size < MAX_WRENCH_RATIO:
            return False
        if not self.in_sensor_axes:
            U, _, Vt = np.linalg.svd(ratio[:3, :3])
            R = np.sign(np.linalg.det(U @ Vt)) * U @ Vt
            ratio = np.kron(np.eye(2), R.T) @ ratio
        plain = np.eye(3, 6)
        mixed = min(float(np.linalg.norm(ratio[:3] / size - one, 2)) for one in (plain, -plain))
        moments = np.linalg.svd(ratio[3:, 3:], compute_uv=False) / size
        return bool(mixed < MAX_FORCE_MIXING and moments.min() > MIN_MOMENT_RATIO)


def in_situ_matrix(
    data_sets: Sequence[AddedMass],
    *,
    rotation: Array | None = None,
    direction: int = 1,
    former: Array | None = None,
    bias: Array | None = None,
    length_scale: float = LENGTH_SCALE,
    min_gap: float = MIN_GAP,
) -> InSituMatrix:
    """
    Identify the calibration matrix from added masses.

    Parameters
    ----------
    data_sets : sequence of AddedMass
        Three or more.
    rotation : ndarray, shape (3, 3), optional
        Of the accelerometer in the sensor's frame. Default: unknown, and wrenches and centres of
        the masses are in the accelerometer's axes [T Remark 5.1].
    direction : int
        +1 if the readings are the wrench of the body on the sensor, -1 if that of the sensor on
        the body.
    former : ndarray, shape (6, 6), optional
        Approximate matrix, for the test of the subspace alone, see `in_situ_offset`.
    bias : ndarray, shape (3,), optional
        Of the accelerometer [m/s^2]; affects offsets only. Default: from gravity, in each data
        set whose orientations determine it.
    length_scale, min_gap : float
        As for `in_situ_offset`.

    Returns
    -------
    InSituMatrix

    Raises
    ------
    ShapeError, ModelError
        If arrays do not belong together, or the rotation is none.
    LogError
        If a data set determines no offset, or the data sets do not determine the matrix.

    """
    sets = tuple(data_sets)
    names = [one.name for one in sets]
    if direction not in (1, -1):
        raise ModelError(f"'direction' is {direction!r}, expected 1 or -1")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ModelError(f"two data sets are named '{twice[0]}'")
    if len(sets) < MIN_DATA_SETS:
        raise LogError(
            f'{len(sets)} data sets, {MIN_DATA_SETS} are needed for a matrix [T Lemma 5.2]'
        )
    R = np.eye(3) if rotation is None else numbers('rotation', rotation, (3, 3))
    if np.abs(R @ R.T - np.eye(3)).max() > 1e-6 or np.linalg.det(R) < 0.0:
        raise ModelError("'rotation' is no rotation matrix")
    find = partial(_offsets, sets, bias=bias, length_scale=length_scale)
    try:
        found = find(former, min_gap=min_gap)
    except LogError as refused:
        if former is not None:
            raise
        # Channels in units of their own hide the body: the matrix of slopes makes them comparable.
        try:
            rough = find(None, min_gap=0.0, max_unexplained=np.inf)
            _, matrix, _ = _Equations(sets, rough, R, direction).solve(length_scale)
            found = find(matrix, min_gap=min_gap)
        except (LogError, np.linalg.LinAlgError):
            raise refused from None
    equations = _Equations(sets, found, R, direction)
    scale = np.diag(np.repeat([1.0, 1.0 / length_scale], 3))
    singular_values = equations.over_noise(scale)
    rank = int((singular_values > MIN_OVER_NOISE).sum())
    if rank < UNKNOWNS:
        raise LogError(
            f'the data sets determine {rank} of {UNKNOWNS} unknowns of matrix and body (the next '
            f'singular value is {singular_values[rank]:.2g} times the noise, limit '
            f'{MIN_OVER_NOISE:g}): total masses are equal, total centres on one line, or a '
            'channel is dead'
        )
    weight, matrix, body = equations.solve(length_scale)
    return InSituMatrix(
        matrix=matrix,
        covariance=equations.covariance(weight, matrix),
        body=body,
        in_sensor_axes=rotation is not None,
        singular_values=singular_values,
        residuals=equations.residuals(weight, matrix, body),
        share_left=equations.share_left(matrix, body),
        lasting=equations.over_lasting(weight, matrix, body),
        data_sets=sets,
        offsets=found,
        direction=direction,
        rotation=R,
    )


def _offsets(
    sets: Sequence[AddedMass], matrix: Array | None, **options: Any
) -> tuple[InSituOffset, ...]:
    """Return the offset of each data set."""
    return tuple(
        in_situ_offset(
            one.raw, one.accelerations, turning=one.turning, matrix=matrix,
            what=f"data set '{one.name}'", **options,
        )
        for one in sets
    )  # fmt: skip


class _Equations:
    """Equations of reduced data sets, see the module; unknowns are C by columns, then M_b."""

    def __init__(
        self, sets: Sequence[AddedMass], found: Sequence[InSituOffset], R: Array, direction: int
    ) -> None:
        slopes: list[RawSlopes] = [one.slopes for one in found]
        # Gravity is the opposite of what an accelerometer reads.
        self._H = [-direction * one.slopes @ R.T for one in slopes]
        self._L = [np.linalg.cholesky(R @ one.gram @ R.T) for one in slopes]
        self._known = [one.added.matrix for one in sets]
        self._covariances = []
        for one, L in zip(slopes, self._L, strict=True):
            move = np.kron((R.T @ L).T, np.eye(6))
            self._covariances.append(move @ one.covariance[:18, :18] @ move.T)
        total = sum(one.n_samples for one in slopes)
        noise = np.sum([one.noise * one.n_samples for one in slopes], axis=0) / total
        self._F = np.asarray(np.linalg.cholesky(noise), dtype=np.float64)

    def over_noise(self, weight: Array) -> Array:
        """Return the singular values over the largest expected of noise, (40,)."""
        sigma = np.linalg.svd(self._scaled(weight)[0], compute_uv=False)
        sigma = np.concatenate([sigma, np.zeros(UNKNOWNS - len(sigma))])
        return np.asarray(sigma / (np.sqrt(3.0 * len(self._H)) + np.sqrt(6.0)))

    def solve(self, length_scale: float) -> tuple[Array, Array, Weighed]:
        """Return W, C and the body, the equations weighted by the noise of the wrenches."""
        weight = np.diag(np.repeat([1.0, 1.0 / length_scale], 3))
        matrix, body = self._solve(weight)
        for _ in range(WEIGHT_ROUNDS):
            weight = np.asarray(np.linalg.inv(matrix @ self._F))
            matrix, body = self._solve(weight)
        return weight, matrix, body

    def covariance(self, weight: Array, matrix: Array) -> Array:
        """Return the covariance of the unknowns, (40, 40)."""
        coefficients, unscale = self._scaled(weight)
        gain = unscale @ np.linalg.pinv(coefficients)
        move = np.kron(np.eye(3), weight @ matrix)
        total = np.zeros((UNKNOWNS, UNKNOWNS))
        for j, covariance in enumerate(self._covariances):
            part = gain[:, 18 * j : 18 * (j + 1)] @ move
            total += part @ covariance @ part.T
        return total

    def residuals(self, weight: Array, matrix: Array, body: Weighed) -> Array:
        """Return residuals over the noise that the unknowns leave of the readings', (n_sets,)."""
        U = np.linalg.svd(self._scaled(weight)[0], full_matrices=False)[0]
        freedom = 1.0 - (U.reshape(len(self._H), -1, UNKNOWNS) ** 2).sum(axis=2).mean(axis=1)
        left = self._left(matrix, body)
        squares = np.array([
            ((weight @ one @ L) ** 2).mean() for one, L in zip(left, self._L, strict=True)
        ])  # fmt: skip
        free = freedom > ROUND_OFF
        return np.asarray(np.sqrt(np.where(free, squares, np.nan) / np.where(free, freedom, 1.0)))

    def over_lasting(self, weight: Array, matrix: Array, body: Weighed) -> float:
        """Return the residual over what errors that last within data sets leave."""
        free = np.linalg.svd(self._scaled(weight)[0])[0][:, UNKNOWNS:]
        left, spread = np.zeros(free.shape[1]), np.zeros((free.shape[1],) * 2)
        move = np.kron(np.eye(3), weight @ matrix)
        for j, (one, L) in enumerate(zip(self._left(matrix, body), self._L, strict=True)):
            part = free[18 * j : 18 * (j + 1)]
            left += part.T @ (weight @ one @ L).reshape(-1, order='F')
            spread += part.T @ move @ self._covariances[j] @ move.T @ part
        squares, axes = np.linalg.eigh(spread)
        squares = np.maximum(squares, MIN_VARIANCE_RATIO * squares.max())
        return float(np.sqrt(((axes.T @ left) ** 2 / squares).mean()))

    def share_left(self, matrix: Array, body: Weighed) -> float:
        """Return the residual over the slopes of what was added."""
        scale = np.repeat([1.0, 1.0 / LENGTH_SCALE], 3)[:, None]
        left = [scale * one for one in self._left(matrix, body)]
        added = float(np.linalg.norm([scale * M for M in self._known]))
        seen = max(1.0 - UNKNOWNS / (18.0 * len(left)), ROUND_OFF)
        return float(np.linalg.norm(left)) / np.sqrt(seen) / added if added else 0.0

    def _left(self, matrix: Array, body: Weighed) -> list[Array]:
        """Return the residuals C H_j - M_b - M_j, (6, 3) each."""
        M_b = body.matrix
        return [matrix @ H - M_b - M for H, M in zip(self._H, self._known, strict=True)]

    def _solve(self, weight: Array) -> tuple[Array, Weighed]:
        """Return C and the body by least squares with weight W."""
        coefficients, unscale = self._scaled(weight)
        right = np.concatenate([
            (weight @ M @ L).reshape(-1, order='F')
            for M, L in zip(self._known, self._L, strict=True)
        ])  # fmt: skip
        x = unscale @ np.linalg.lstsq(coefficients, right, rcond=None)[0]
        return x[:OF_MATRIX].reshape(6, 6, order='F'), Weighed(float(x[36]), x[37:])

    def _scaled(self, weight: Array) -> tuple[Array, Array]:
        """Return coefficients (18 n, 40) of scaled unknowns, and the map to unknowns (40, 40)."""
        whitened = [np.linalg.solve(self._F, H @ L) for H, L in zip(self._H, self._L, strict=True)]
        size = np.linalg.norm(np.hstack(whitened), 2)
        units = [np.vstack([np.eye(3), np.zeros((3, 3))])]
        units += [np.vstack([np.zeros((3, 3)), one]) for one in FIRST_MOMENTS]
        of_body = np.hstack([
            [(weight @ one @ L).reshape(-1, order='F') for one in units] for L in self._L
        ])  # fmt: skip
        lengths = np.linalg.norm(of_body, axis=1) / size
        coefficients = np.vstack([np.kron(one.T, np.eye(6)) for one in whitened])
        unscale = np.zeros((UNKNOWNS, UNKNOWNS))
        unscale[:36, :36] = np.kron(np.linalg.inv(self._F).T, np.linalg.inv(weight))
        unscale[36:, 36:] = np.diag(1.0 / lengths)
        return np.hstack([coefficients, -(of_body / lengths[:, None]).T]), unscale
