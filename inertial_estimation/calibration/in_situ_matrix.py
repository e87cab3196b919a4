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
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.calibration.accelerometer import GRAVITY
from inertial_estimation.calibration.affine import matrix_change
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
from inertial_estimation.errors import LogError, ModelError
from inertial_estimation.findings import Finding, Level, finding, limit_of
from inertial_estimation.model.arguments import numbers
from inertial_estimation.model.spatial import hat

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


@dataclass(frozen=True, eq=False)
class AddedMass:
    """Data set: readings in several orientations with a known mass added."""

    name: str
    raw: Array
    """In the order of time, in any unit, the same in all data sets, shape (n, 6)."""
    accelerations: Array
    """Of an accelerometer on the body, in its own axes, shape (n, 3) [m/s^2]."""
    mass: float = 0.0
    """That was added; 0: none [kg]."""
    centre: Array = field(default_factory=lambda: np.zeros(3))
    """
    Of the added mass about the sensor's origin [m]: in the sensor's axes, or in the
    accelerometer's if the rotation between the two is not known, shape (3,).
    """
    turning: Array | None = None
    """Of a gyroscope on the body, shape (n, 3) [rad/s]."""

    def __post_init__(self) -> None:
        """Check mass and centre."""
        centre = numbers(f"the centre of the mass added in '{self.name}'", self.centre, (3,))
        object.__setattr__(self, 'centre', centre)
        if not 0.0 <= self.mass < np.inf:
            raise ModelError(f"the mass added in '{self.name}' is {self.mass!r} kg")

    @property
    def added(self) -> Weighed:
        """Added mass and its first moment."""
        return Weighed(self.mass, self.mass * self.centre)


@dataclass(frozen=True, eq=False)
class InSituMatrix:
    """Calibration matrix from added masses."""

    matrix: Array
    """From raw readings to wrenches, shape (6, 6) [N, Nm per raw unit]."""
    covariance: Array
    """Of the matrix by columns, then mass and first moment of the body, shape (40, 40)."""
    body: Weighed
    """Body beyond the sensor without the added masses."""
    in_sensor_axes: bool
    """
    Whether wrenches are in the sensor's axes; else in those of the accelerometer, about the
    sensor's origin [T Remark 5.1].
    """
    singular_values: Array
    """Of the equations over those of noise, falling, shape (40,)."""
    residuals: Array
    """Of the slopes of each data set, root mean square over their noise, shape (n_sets,)."""
    share_left: float
    """Residual of all data sets over the slopes of what was added."""
    lasting: float
    """Residual over errors that last within data sets."""
    data_sets: tuple[AddedMass, ...]
    offsets: tuple[InSituOffset, ...]
    """Offset and slopes of each data set, in raw units."""
    direction: int
    """+1: readings are the wrench of the body on the sensor, -1: of the sensor on the body."""
    rotation: Array
    """Of the accelerometer in the frame of the wrenches, shape (3, 3)."""

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
        C, R = self.matrix if matrix is None else matrix, self.rotation
        slopes = -self.direction * C @ offset.slopes.slopes @ R.T
        factor = np.linalg.cholesky(R @ offset.slopes.gram @ R.T)
        mass = float(np.trace(slopes[:3] @ factor @ factor.T) / np.trace(factor @ factor.T))
        columns = (FIRST_MOMENTS @ factor).reshape(3, 9).T
        first_moment = np.linalg.lstsq(columns, (slopes[3:] @ factor).reshape(-1), rcond=None)[0]
        return Weighed(mass, first_moment)

    def change(self, former: Array | None = None, *, turned: bool = False) -> float:
        """
        Return the distance of the matrix from a former one (6, 6), see `matrix_change`.

        Of readings that are wrenches from the identity; NaN if nothing is known. turned: the
        former one is in the axes of an accelerometer.
        """
        if former is None and not self._reads_wrenches():
            return float('nan')
        ratio = self._ratio(np.eye(6) if former is None else former)
        return matrix_change(_unrotated(ratio) if turned or not self.in_sensor_axes else ratio)

    def findings(
        self, subject: str, former: Array | None = None, *, turned: bool = False
    ) -> Iterator[Finding]:
        """Yield findings about the matrix; errors if it must not be used."""
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
        scale = np.diag(_scale(LENGTH_SCALE))
        ratio: Array = scale[:, None] * (self.matrix @ np.linalg.inv(former)) / scale
        return ratio

    def _reads_wrenches(self) -> bool:
        """Return True if the matrix takes readings for wrenches."""
        ratio = self._ratio(np.eye(6))
        gains = np.maximum(np.linalg.svd(ratio[:3, :3], compute_uv=False), np.finfo(float).tiny)
        size = float(np.exp(np.log(gains).mean()))
        if not self.in_sensor_axes:
            ratio = _unrotated(ratio)
        mixed = min(
            float(np.linalg.norm(ratio[:3] / size - sign * np.eye(3, 6), 2)) for sign in (1, -1)
        )
        moments = np.linalg.svd(ratio[3:, 3:], compute_uv=False).min() / size
        is_force = 1.0 / MAX_WRENCH_RATIO < size < MAX_WRENCH_RATIO
        return bool(is_force and mixed < MAX_FORCE_MIXING and moments > MIN_MOMENT_RATIO)


def _unrotated(ratio: Array) -> Array:
    """Return a matrix (6, 6) without the rotation that its forces have most of."""
    U, _, Vt = np.linalg.svd(ratio[:3, :3])
    # A rotation, so that the other direction shows as the other sign.
    R = np.sign(np.linalg.det(U @ Vt)) * U @ Vt
    return np.asarray(np.kron(np.eye(2), R.T) @ ratio)


def _scale(length_scale: float) -> Array:
    """Return the matrix (6, 6) that makes forces and moments comparable."""
    return np.diag(np.repeat([1.0, 1.0 / length_scale], 3))


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

    def offsets(matrix: Array | None, **options: float) -> tuple[InSituOffset, ...]:
        return tuple(
            in_situ_offset(
                one.raw, one.accelerations, turning=one.turning, matrix=matrix, bias=bias,
                length_scale=length_scale, what=f"data set '{one.name}'", **options,
            )
            for one in sets
        )  # fmt: skip

    scale = _scale(length_scale)
    try:
        found = offsets(former, min_gap=min_gap)
    except LogError as refused:
        if former is not None:
            raise
        # Channels in units of their own hide the body: the matrix of slopes makes them comparable.
        try:
            rough = offsets(None, min_gap=0.0, max_unexplained=np.inf)
            matrix = _Equations(sets, rough, R, direction, scale).matrix
            found = offsets(matrix, min_gap=min_gap)
        except (LogError, np.linalg.LinAlgError):
            raise refused from None
    equations = _Equations(sets, found, R, direction, scale)
    rank = int((equations.over_noise > MIN_OVER_NOISE).sum())
    if rank < UNKNOWNS:
        raise LogError(
            f'the data sets determine {rank} of {UNKNOWNS} unknowns of matrix and body (the next '
            f'singular value is {equations.over_noise[rank]:.2g} times the noise, limit '
            f'{MIN_OVER_NOISE:g}): total masses are equal, total centres on one line, or a '
            'channel is dead'
        )
    residuals, share_left, lasting = equations.residuals()
    return InSituMatrix(
        matrix=equations.matrix,
        covariance=equations.covariance(),
        body=equations.body,
        in_sensor_axes=rotation is not None,
        singular_values=equations.over_noise,
        residuals=residuals,
        share_left=share_left,
        lasting=lasting,
        data_sets=sets,
        offsets=found,
        direction=direction,
        rotation=R,
    )


class _Equations:
    """
    Equations of reduced data sets, see the module, and their least-squares solution.

    Unknowns are C by columns, then M_b; the weight W is the inverse noise of the wrenches.
    """

    def __init__(
        self, sets: Sequence[AddedMass], found: Sequence[InSituOffset], R: Array, direction: int,
        scale: Array,
    ) -> None:  # fmt: skip
        slopes = [one.slopes for one in found]
        # Gravity is the opposite of what an accelerometer reads.
        self._H = [-direction * one.slopes @ R.T for one in slopes]
        self._L = [np.linalg.cholesky(R @ one.gram @ R.T) for one in slopes]
        self._known = [one.added.matrix for one in sets]
        moves = [np.kron((R.T @ L).T, np.eye(6)) for L in self._L]
        self._covariances = [
            move @ one.covariance[:18, :18] @ move.T for one, move in zip(slopes, moves)
        ]
        total = sum(one.n_samples for one in slopes)
        noise = np.sum([one.noise * one.n_samples for one in slopes], axis=0) / total
        self._F = np.asarray(np.linalg.cholesky(noise), dtype=np.float64)
        self._solve(scale)
        sigma = np.linalg.svd(self._coefficients, compute_uv=False)
        sigma = np.concatenate([sigma, np.zeros(UNKNOWNS - len(sigma))])
        self.over_noise = np.asarray(sigma / (np.sqrt(3.0 * len(slopes)) + np.sqrt(6.0)))
        """Singular values over the largest expected of noise, shape (40,)."""
        for _ in range(WEIGHT_ROUNDS):
            self._solve(np.linalg.inv(self.matrix @ self._F))

    def _solve(self, weight: Array) -> None:
        """Solve by least squares with weight W."""
        whitened = [np.linalg.solve(self._F, H @ L) for H, L in zip(self._H, self._L, strict=True)]
        size = np.linalg.norm(np.hstack(whitened), 2)
        units = [np.vstack([np.eye(3), np.zeros((3, 3))])]
        units += [np.vstack([np.zeros((3, 3)), one]) for one in FIRST_MOMENTS]
        of_body = np.hstack([
            [(weight @ one @ L).reshape(-1, order='F') for one in units] for L in self._L
        ])  # fmt: skip
        lengths = np.linalg.norm(of_body, axis=1) / size
        coefficients = np.vstack([np.kron(one.T, np.eye(6)) for one in whitened])
        self._unscale = np.zeros((UNKNOWNS, UNKNOWNS))
        self._unscale[:36, :36] = np.kron(np.linalg.inv(self._F).T, np.linalg.inv(weight))
        self._unscale[36:, 36:] = np.diag(1.0 / lengths)
        self._coefficients = np.hstack([coefficients, -(of_body / lengths[:, None]).T])
        right = np.concatenate([self._weighted(weight @ M, j) for j, M in enumerate(self._known)])
        x = self._unscale @ np.linalg.lstsq(self._coefficients, right, rcond=None)[0]
        self._weight = weight
        self.matrix = x[:OF_MATRIX].reshape(6, 6, order='F')
        self.body = Weighed(float(x[36]), x[37:])

    def _weighted(self, matrix: Array, j: int) -> Array:
        """Return a matrix (6, 3) times the root of gravity in data set j, by columns, (18,)."""
        found: Array = (matrix @ self._L[j]).reshape(-1, order='F')
        return found

    def covariance(self) -> Array:
        """Return the covariance of the unknowns, (40, 40)."""
        gain = self._unscale @ np.linalg.pinv(self._coefficients)
        move = np.kron(np.eye(3), self._weight @ self.matrix)
        total = np.zeros((UNKNOWNS, UNKNOWNS))
        for j, covariance in enumerate(self._covariances):
            part = gain[:, 18 * j : 18 * (j + 1)] @ move
            total += part @ covariance @ part.T
        return total

    def residuals(self) -> tuple[Array, float, float]:
        """
        Return the residuals of each data set over their noise, (n_sets,), and two of all.

        Over the slopes of what was added, and over what errors that last within data sets leave.
        """
        M_b, n = self.body.matrix, len(self._H)
        left = [self.matrix @ H - M_b - M for H, M in zip(self._H, self._known, strict=True)]
        weighted = [self._weighted(self._weight @ one, j) for j, one in enumerate(left)]
        U = np.linalg.svd(self._coefficients)[0]
        # Unknowns take a part of the noise.
        freedom = 1.0 - (U[:, :UNKNOWNS].reshape(n, 18, UNKNOWNS) ** 2).sum(axis=2).mean(axis=1)
        free = freedom > ROUND_OFF
        squares = np.where(free, (np.array(weighted) ** 2).mean(axis=1), np.nan)
        over_noise = np.sqrt(squares / np.where(free, freedom, 1.0))
        scale = np.diag(_scale(LENGTH_SCALE))[:, None]
        added = float(np.linalg.norm([scale * M for M in self._known]))
        seen = np.sqrt(max(1.0 - UNKNOWNS / (18.0 * n), ROUND_OFF))
        share = (
            float(np.linalg.norm([scale * one for one in left])) / seen / added if added else 0.0
        )
        across, move = U[:, UNKNOWNS:], np.kron(np.eye(3), self._weight @ self.matrix)
        total, spread = np.zeros(across.shape[1]), np.zeros((across.shape[1],) * 2)
        for j, covariance in enumerate(self._covariances):
            part = across[18 * j : 18 * (j + 1)]
            total += part.T @ weighted[j]
            spread += part.T @ move @ covariance @ move.T @ part
        variances, axes = np.linalg.eigh(spread)
        variances = np.maximum(variances, MIN_VARIANCE_RATIO * variances.max())
        lasting = float(np.sqrt(((axes.T @ total) ** 2 / variances).mean()))
        return np.asarray(over_noise), share, lasting
