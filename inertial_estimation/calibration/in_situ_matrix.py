# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Calibration matrix of an FT sensor from masses added to the body beyond it [T 5.11].

In each data set j a sensor that reads the wrench of the body on itself obeys, with g = -a at rest,

    C (raw - b_j) = (M_b + M_j) g,    M = [m 1; hat(m c)].

C and M_b of the body are unknown, 36 + 4 numbers, M_j is known. Each data set has an offset b_j of
its own and is reduced to its slopes H_j by gravity first (`raw_slopes`):

    (W C F) (F^-1 H_j L_j) - W M_b L_j = W M_j L_j

with L_j the root of the sum of squares of gravity, F F' the noise of the raw channels and W the
inverse of the noise of the wrenches, so that noise adds numbers of size 1 to the coefficients: the
rank counts singular values above noise, whatever the raw units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from inertial_estimation.arrays import Array
from inertial_estimation.calibration.affine import matrix_change
from inertial_estimation.calibration.calibration_file import (
    NO_TEMPERATURE,
    Provenance,
    SensorCalibration,
)
from inertial_estimation.calibration.in_situ_offset import (
    GRAVITY,
    InSituOffset,
    deviations_of_wrench,
    in_situ_offset,
)
from inertial_estimation.calibration.raw_readings import still_channels
from inertial_estimation.calibration.residual_statistics import SCALE, names_of, require_direction
from inertial_estimation.errors import LogError, ModelError
from inertial_estimation.findings import Finding, Level, finding, limit_of
from inertial_estimation.model.arguments import numbers, rotation_matrix
from inertial_estimation.model.spatial import hat

UNKNOWNS, OF_MATRIX = 40, 36
MIN_DATA_SETS = 3
"""[T Lemma 5.2]"""
WEIGHT_ROUNDS = 4
"""Of weighing the equations by the noise of wrenches that the last matrix implies."""
MIN_OVER_NOISE = 3.0
"""Singular values below this multiple of the expected largest of noise count as zero."""
ROUND_OFF = 1e-9
MAX_RESIDUAL_OVER_NOISE, MAX_RESIDUAL = 3.0, 0.07
"""Over noise and what was added: 1 % play of 0.5 kg makes 0.06, 5 cm of its centre 0.02 to 0.3."""
MAX_LASTING, MAX_LASTING_RESIDUAL = 25.0, 0.03
"""Over errors that last in data sets, and over what was added: play makes 12, 5 cm 14 or more."""
MIN_VARIANCE_RATIO = 1e-3
"""Of the covariance of residuals, which 40 blocks determine no better."""
MAX_SCALE_ERROR = 0.01
"""Of the accelerometer's gravity."""
MAX_MASS, MAX_DISTANCE = 50.0, 3.0
"""Of a body in the hand, and its centre from the sensor [kg, m]: more is another unit."""
UNIT_BODIES = np.zeros((4, 6, 3))
"""M of a unit mass and of unit first moments, shape (4, 6, 3)."""
UNIT_BODIES[0, :3], UNIT_BODIES[1:, 3:] = np.eye(3), hat(np.eye(3))


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
        return np.tensordot([self.mass, *self.first_moment], UNIT_BODIES, 1)


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
    """Of the added mass about the sensor's origin, in its axes, shape (3,) [m]."""
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

    def offset(self, matrix: Array | None, bias: Array | None) -> InSituOffset:
        """Return the offset and slopes of this data set, see `in_situ_offset`."""
        return in_situ_offset(
            self.raw, self.accelerations, turning=self.turning, matrix=matrix, bias=bias,
            what=f"data set '{self.name}'",
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class InSituMatrix:
    """Calibration matrix from added masses."""

    matrix: Array
    """From raw readings to wrenches, shape (6, 6) [N, Nm per raw unit]."""
    covariance: Array
    """Of the matrix by columns, then mass and first moment of the body, shape (40, 40)."""
    body: Weighed
    """Body beyond the sensor without the added masses."""
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

    def weigh(self, offset: InSituOffset) -> Weighed:
        """Return the load added in a data set, as weighed by the matrix."""
        C, R = self.matrix, self.rotation
        factor = np.linalg.cholesky(R @ offset.slopes.gram @ R.T)
        left = -self.direction * C @ offset.slopes.slopes @ R.T - self.body.matrix
        columns = (UNIT_BODIES @ factor).reshape(4, 18).T
        x = np.linalg.lstsq(columns, (left @ factor).reshape(-1), rcond=None)[0]
        return Weighed(float(x[0]), x[1:])

    def change(self, former: Array) -> float:
        """Return the distance from a former matrix (6, 6), see `matrix_change`."""
        return matrix_change(self.matrix @ np.linalg.inv(former) / np.outer(SCALE, 1.0 / SCALE))

    def findings(self, subject: str, former: Array | None = None) -> Iterator[Finding]:
        """Yield findings about the matrix; errors if it must not be used; former (6, 6)."""
        change = 0.0 if former is None else self.change(former)
        if change > limit_of('matrix_change'):
            yield finding('matrix_change', subject, change=change)
        left = float(np.sqrt((self.residuals**2).mean()))
        lasting = self.lasting > MAX_LASTING
        largest = MAX_LASTING_RESIDUAL if lasting else MAX_RESIDUAL
        if left > MAX_RESIDUAL_OVER_NOISE and self.share_left > largest:
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
        step = Provenance(
            f'matrix from added masses, {len(self.offsets)} data sets', date,
            sum(one.slopes.n_samples for one in self.offsets), temperature,
            deviations_of_wrench(self.matrix, last.slopes.noise), notes,
        )  # fmt: skip
        return SensorCalibration(self.matrix, self.matrix @ last.offset, provenance=(step,))


def in_situ_matrix(
    data_sets: Sequence[AddedMass],
    *,
    rotation: Array | None = None,
    direction: int = 1,
    former: Array | None = None,
    bias: Array | None = None,
) -> InSituMatrix:
    """
    Identify the calibration matrix from added masses.

    Parameters
    ----------
    data_sets : sequence of AddedMass
        Three or more.
    rotation : ndarray, shape (3, 3), optional
        Of the accelerometer in the sensor's frame. Default: the same axes. If it is not known,
        wrenches and centres of the masses are in the accelerometer's axes [T Remark 5.1].
    direction : int
        +1 if the readings are the wrench of the body on the sensor, -1 if that of the sensor on
        the body.
    former : ndarray, shape (6, 6), optional
        Approximate matrix, which makes channels comparable, see `in_situ_offset`.
    bias : ndarray, shape (3,), optional
        Of the accelerometer [m/s^2]; affects offsets only. Default: from gravity, in each data
        set whose orientations determine it.

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
    require_direction(direction)
    if len(set(names)) < len(names):
        raise ModelError(f'two data sets have one name: {", ".join(names)}')
    if len(sets) < MIN_DATA_SETS:
        raise LogError(f'{len(sets)} data sets, a matrix needs {MIN_DATA_SETS} [T Lemma 5.2]')
    if not any(one.added.mass for one in sets):
        raise LogError('no data set has an added mass')
    R = rotation_matrix('rotation', np.eye(3) if rotation is None else rotation)
    found = tuple(one.offset(former, bias) for one in sets)
    slopes = [one.slopes for one in found]
    counts = [one.n_samples for one in slopes]
    equations = _Equations(
        # Gravity is the opposite of what an accelerometer reads.
        H=np.array([-direction * one.slopes @ R.T for one in slopes]),
        L=np.asarray(np.linalg.cholesky([R @ one.gram @ R.T for one in slopes])),
        F=np.linalg.cholesky(np.average([one.noise for one in slopes], axis=0, weights=counts)),
        added=np.array([one.added.matrix for one in sets]),
    )
    fit = equations.solve(np.diag(1.0 / SCALE))
    # Over the largest singular value that is expected of noise.
    values = np.asarray(np.linalg.svd(fit.coefficients, compute_uv=False))
    over_noise = values / (np.sqrt(3.0 * len(sets)) + np.sqrt(6.0))
    rank = int((over_noise > MIN_OVER_NOISE).sum())
    if rank < UNKNOWNS:
        noise = np.mean([np.diagonal(one.noise) for one in slopes], axis=0)
        still = still_channels(np.mean([one.slopes for one in slopes], axis=0), noise**-0.5)
        dead = f'channel {names_of(still)}' if still.any() else 'a channel'
        raise LogError(
            f'the data sets determine {rank} of {UNKNOWNS} unknowns (the next is '
            f'{over_noise[rank]:.2g} times the noise, limit {MIN_OVER_NOISE:g}): total masses are '
            f'equal, total centres on one line, or {dead} is dead'
        )
    for _ in range(WEIGHT_ROUNDS):
        fit = equations.solve(np.asarray(np.linalg.inv(fit.matrix @ equations.F)))
    # Covariance of the equations.
    moves = [np.kron(L.T @ R, fit.weight @ fit.matrix) for L in equations.L]
    noise = block_diag(*(
        move @ one.covariance[:18, :18] @ move.T for move, one in zip(moves, slopes, strict=True)
    ))  # fmt: skip
    gain = fit.unscale @ np.linalg.pinv(fit.coefficients)
    residuals, share_left, lasting = equations.residuals(fit, noise)
    return InSituMatrix(
        matrix=fit.matrix, covariance=gain @ noise @ gain.T, body=fit.body,
        singular_values=over_noise, residuals=residuals, share_left=share_left, lasting=lasting,
        data_sets=sets, offsets=found, direction=direction, rotation=R,
    )  # fmt: skip


class _Fit(NamedTuple):
    """Least-squares solution with weight W, of C by columns, then M_b."""

    matrix: Array
    body: Weighed
    weight: Array
    coefficients: Array
    """Scaled, shape (18 n_sets, 40)."""
    unscale: Array
    """From unknowns of the scaled equations to C and M_b, shape (40, 40)."""


class _Equations(NamedTuple):
    H: Array
    L: Array
    F: Array
    added: Array
    """M_j, shape (n_sets, 6, 3)."""

    def solve(self, weight: Array) -> _Fit:
        """Solve by least squares with weight W."""
        whitened = np.linalg.solve(self.F, self.H @ self.L)
        of_body = _columns(weight @ UNIT_BODIES @ self.L[:, None])
        of_body = np.moveaxis(of_body, 1, 2).reshape(-1, 4)
        size = np.linalg.norm(np.hstack(list(whitened)), 2)
        lengths = np.linalg.norm(of_body, axis=0) / size
        of_matrix = np.vstack([np.kron(one.T, np.eye(6)) for one in whitened])
        coefficients = np.hstack([of_matrix, -of_body / lengths])
        of_wrench = np.kron(np.linalg.inv(self.F).T, np.linalg.inv(weight))
        unscale = block_diag(of_wrench, np.diag(1.0 / lengths))
        right = _columns(weight @ self.added @ self.L).reshape(-1)
        x = unscale @ np.linalg.lstsq(coefficients, right, rcond=None)[0]
        body = Weighed(float(x[36]), x[37:])
        return _Fit(x[:36].reshape(6, 6, order='F'), body, weight, coefficients, unscale)

    def residuals(self, fit: _Fit, noise: Array) -> tuple[Array, float, float]:
        """Return residuals over noise, (n_sets,), over what was added, and over lasting errors."""
        n = len(self.H)
        left = fit.matrix @ self.H - fit.body.matrix - self.added
        weighted = _columns(fit.weight @ left @ self.L)
        # Unknowns take a part of the noise.
        U = np.linalg.svd(fit.coefficients)[0]
        freedom = 1.0 - (U[:, :UNKNOWNS].reshape(n, 18, UNKNOWNS) ** 2).sum(axis=2).mean(axis=1)
        over_noise = np.sqrt((weighted**2).mean(axis=1) / np.maximum(freedom, ROUND_OFF))
        added = float(np.linalg.norm(self.added / SCALE[:, None]))
        share = float(np.linalg.norm(left / SCALE[:, None])) / added
        across = U[:, UNKNOWNS:].T
        variances, axes = np.linalg.eigh(across @ noise @ across.T)
        variances = np.maximum(variances, MIN_VARIANCE_RATIO * variances.max())
        total = axes.T @ across @ weighted.reshape(-1)
        lasting = float(np.sqrt((total**2 / variances).mean()))
        return over_noise, share / np.sqrt(1.0 - UNKNOWNS / (18.0 * n)), lasting


def _columns(matrices: Array) -> Array:
    """Return matrices (..., 6, 3) by columns, (..., 18)."""
    return np.swapaxes(matrices, -1, -2).reshape(*matrices.shape[:-2], 18)
