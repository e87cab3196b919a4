# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Robust least squares over the parameters of a tool, an FT offset and the delay of an IMU.

FT sensor and IMU have clocks of their own. A spline through noisy samples is less noisy halfway
between them than at them, which would bias the delay towards half a sample; so both streams are
smoothed alike before they are evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.calibration.residual_statistics import (
    Blocks,
    covariances_by_blocks,
    huber_weights,
    require_shape,
    scales,
    undisturbed,
)
from inertial_estimation.errors import LogError, ModelError, ShapeError
from inertial_estimation.model.rigid_body import net_wrench

N_POINT, N_BODY = 4, 10
"""Inertial unknowns of a tool without inertia, and with it."""
NAMES = ('m', 'm cx', 'm cy', 'm cz', 'Ixx', 'Ixy', 'Iyy', 'Ixz', 'Iyz', 'Izz')
ROTATION_TOLERANCE = 1e-6
ROBUST_ROUNDS = 3
REACH = 0.05
"""Duration of a touch before and after its outliers [s]."""
GRID_STEPS = 4
"""Steps of the even grid in one standard deviation of the smoothing."""
SMOOTHING_REACH = 4.0
"""Standard deviations of the smoothing to either side."""
MIN_GAP_PERIODS = 4.0
MIN_SAMPLES = 8
MAX_SEARCHED = 4000
"""Samples in the search for the delay."""
COARSE_STEP, DELAY_TOLERANCE = 0.002, 1e-7
"""Of the first search for a delay, and of the last [s]."""
DERIVATIVE_STEP = 1e-4
"""For the derivative of the equations by the delay [s]."""
RANK_TOLERANCE = 1e-8
MIN_SIZE = 1e-12
"""[N, Nm]."""
EXACT = 1e-9
"""Share of the spread of the readings below which a residual is round-off."""


class DelayAtEdge(LogError):
    """The best delay is at the edge of what is searched."""


class ToolMotion(NamedTuple):
    """Readings of an FT sensor and of an IMU, each with a clock of its own."""

    ft_times: Array
    """Rising, shape (n,) [s]."""
    readings: Array
    """matrix raw, [force; moment] in and about the sensor frame, shape (n, 6) [N, Nm]."""
    imu_times: Array
    """Rising, shape (k,) [s]."""
    accelerations: Array
    """Proper, in the IMU's axes, shape (k, 3) [m/s^2]."""
    angular_velocities: Array | None = None
    """In the IMU's axes, shape (k, 3) [rad/s]."""
    sensor_H_imu: Array | None = None
    """Pose of the IMU in the sensor frame, shape (4, 4) [m]. Default: the same frame."""


class Stream(NamedTuple):
    """Samples of one stream on its own clock."""

    times: Array
    """Rising, shape (n,) [s]."""
    values: Array
    """Shape (n, m)."""

    @classmethod
    def clean(cls, what: str, times: Array, values: Array) -> Stream:
        """Return a stream without NaN and stamps that go back; times (n,) [s]."""
        if values.ndim != 2:
            raise ShapeError(what, (len(times), 'm'), values.shape)
        require_shape(f'times of {what}', times, len(values))
        kept = np.isfinite(times) & np.isfinite(values).all(axis=1)
        times, values = times[kept], values[kept]
        later = np.ones(len(times), dtype=bool)
        later[1:] = times[1:] > np.maximum.accumulate(times)[:-1]
        if later.sum() < MIN_SAMPLES:
            raise LogError(f'{what}: {later.sum()} usable samples, {MIN_SAMPLES} are needed')
        return cls(times[later], values[later])

    @property
    def period(self) -> float:
        """Usual time from one sample to the next [s]."""
        return float(np.median(np.diff(self.times)))

    def smooth(self, width: float) -> SmoothStream:
        """Smooth with a Gaussian of standard deviation `width` [s]."""
        from scipy.interpolate import CubicSpline
        from scipy.ndimage import gaussian_filter1d

        times, margin = self.times, SMOOTHING_REACH * width
        if times[-1] - times[0] <= 2.0 * margin:
            raise LogError(
                f'a stream of {times[-1] - times[0]:.3g} s is too short to be smoothed over '
                f'{2.0 * margin:.3g} s'
            )
        grid = np.arange(times[0], times[-1], width / GRID_STEPS)
        even = CubicSpline(times, self.values)(grid)
        smoothed = gaussian_filter1d(even, GRID_STEPS, axis=0, truncate=SMOOTHING_REACH)
        wide = np.flatnonzero(np.diff(times) > MIN_GAP_PERIODS * self.period)
        gaps = np.column_stack([times[wide] - margin, times[wide + 1] + margin])
        return SmoothStream(
            CubicSpline(grid, smoothed), times[0] + margin, grid[-1] - margin, gaps
        )


class SmoothStream(NamedTuple):
    """A stream that can be evaluated at any time."""

    spline: Callable[[Array], Array]
    first: float
    """From here on it is known [s]."""
    last: float
    """Up to here [s]."""
    gaps: Array
    """Where it is not known in between, shape (g, 2) [s]."""

    def knows(self, times: Array, around: float = 0.0) -> Mask:
        """Return at which times (n,) it is known, `around` [s] before and after."""
        known: Mask = (times - around >= self.first) & (times + around <= self.last)
        for begin, end in self.gaps:
            known &= (times + around < begin) | (times - around > end)
        return known


class ToolEquations(NamedTuple):
    """Regressor of inertial unknowns and offset at any time, from an IMU that may be late."""

    imu: SmoothStream
    """Columns of the inertial unknowns, then the proper acceleration, in the sensor frame."""
    n_inertial: int
    """`N_POINT` or `N_BODY`."""

    @classmethod
    def of(
        cls, imu: Stream, motion: ToolMotion, direction: int, n_inertial: int, width: float
    ) -> ToolEquations:
        """Build the regressor from the readings of an IMU; width of the smoothing [s]."""
        from scipy.interpolate import CubicSpline

        pose = np.eye(4) if motion.sensor_H_imu is None else np.asarray(motion.sensor_H_imu)
        require_shape('sensor_H_imu', pose, 4, 4)
        R, place = pose[:3, :3], pose[:3, 3]
        rotates = np.allclose(R.T @ R, np.eye(3), atol=ROTATION_TOLERANCE)
        if not rotates or np.linalg.det(R) < 0.0:
            raise ModelError("'sensor_H_imu' holds no rotation", about=('sensor_H_imu',))
        acceleration = imu.values[:, :3] @ R.T
        spin = rate = np.zeros_like(acceleration)
        if imu.values.shape[1] > 3:
            spin = imu.values[:, 3:] @ R.T
            rate = CubicSpline(imu.times, spin)(imu.times, 1)
        # From the IMU to the sensor's origin, about which the equations are.
        origin = acceleration - np.cross(rate, place) - np.cross(spin, np.cross(spin, place))
        proper = np.hstack([origin, rate])
        wrenches = [-direction * net_wrench(unit, spin, proper)
                    for unit in np.eye(N_BODY)[:n_inertial]]  # fmt: skip
        values = np.hstack([np.stack(wrenches, axis=2).reshape(len(proper), -1), origin])
        # Products of noisy signals are smoothed like the readings that they are to match.
        return cls(Stream(imu.times, values).smooth(width), n_inertial)

    def at(self, times: Array, delay: float) -> Array:
        """Return the regressor, (n, 6, n_inertial + 6); times (n,) [s], delay [s]."""
        inertial = self.imu.spline(times + delay)[:, :-3].reshape(len(times), 6, -1)
        offset = np.broadcast_to(np.eye(6), (len(times), 6, 6))
        return np.concatenate([inertial, offset], axis=2)

    def accelerations(self, times: Array) -> Array:
        """Return proper accelerations of the sensor's origin, (n, 3) [m/s^2]."""
        found: Array = self.imu.spline(times)[:, -3:]
        return found


class Solution(NamedTuple):
    """Solution of the equations of a tool."""

    unknowns: Array
    """m, m c, inertia if asked for, offset."""
    deviations: Array
    covariance: Array
    delay: float
    delay_deviation: float
    without_delay: Array
    """The unknowns that fit best with a delay of zero."""
    misalignment: float
    """[rad]."""
    used: Mask


class ToolProblem(NamedTuple):
    """Readings of a tool, and what they are fitted to."""

    equations: ToolEquations
    times: Array
    """Shape (n,) [s]."""
    measured: Array
    """Shape (n, 6) [N, Nm]."""
    blocks: Blocks
    name: str

    def solve(self, most: float) -> Solution:
        """Fit tool, offset and a delay within `most` [s]."""
        eq, times, measured = self.equations, self.times, self.measured
        spreads = np.linalg.norm(measured.std(axis=0).reshape(2, 3), axis=1)
        start = np.maximum(np.repeat(spreads, 3), MIN_SIZE)
        sizes, weights = start, np.ones(len(times))
        if most > 0.0:
            # Unlike rest, the motion must determine a delay.
            covariance = self._covariance(sizes, self._fit(sizes, weights, 0.0), 0.0, True)
            most *= bool(np.sqrt(covariance[-1, -1]) < most)
        has_delay = most > 0.0
        for _ in range(ROBUST_ROUNDS):
            delay = self._search(sizes, weights, most)
            left = measured - eq.at(times, delay) @ self._fit(sizes, weights, delay)
            sizes = np.maximum(scales(left), EXACT * start)
            weights = huber_weights(left)
        used = undisturbed(times, left, REACH)
        if used.sum() <= eq.n_inertial + 6:
            used = np.ones(len(times), dtype=bool)
        weights = used.astype(np.float64)
        delay = self._search(sizes, weights, most)
        found = self._fit(sizes, weights, delay, strict=True)
        draws = np.unique(self.blocks[used], return_inverse=True)[1]
        kept = self._replace(times=times[used], measured=measured[used], blocks=draws)
        covariance = kept._covariance(sizes, found, delay, has_delay)
        deviations, n = np.sqrt(np.diag(covariance)), len(found)
        return Solution(
            unknowns=found,
            deviations=deviations[:n],
            covariance=covariance[:n, :n],
            delay=delay,
            delay_deviation=float(deviations[n]) if has_delay else np.inf,
            without_delay=self._fit(sizes, weights, 0.0),
            misalignment=kept._misalignment(found, delay),
            used=used,
        )

    def _search(self, sizes: Array, weights: Array, most: float) -> float:
        """Return the delay of the smallest residual [s]."""
        if most == 0.0:
            return 0.0
        from scipy.optimize import minimize_scalar

        n = len(self.times)
        few = np.unique(np.linspace(0, n - 1, min(n, MAX_SEARCHED)).astype(np.intp))
        root = np.sqrt(weights[few])[:, None] / sizes

        def cost(delay: float) -> float:
            regressor = self.equations.at(self.times[few], delay)
            whole = np.concatenate([regressor, self.measured[few, :, None]], axis=2)
            stacked = (root[..., None] * whole).reshape(6 * len(few), -1)
            # The last diagonal element of the triangle is the norm of the residual.
            R = np.asarray(np.linalg.qr(stacked, mode='r'))
            return abs(float(R[-1, -1]))

        n = max(2, int(np.ceil(most / COARSE_STEP)))
        tried = np.linspace(-most, most, 2 * n + 1)
        best = int(np.argmin([cost(delay) for delay in tried]))
        if best in (0, 2 * n):
            raise DelayAtEdge(
                f"the streams fit best with a delay of {tried[best]:.3g} s, the limit "
                "'max_delay'", about=('max_delay',),
            )  # fmt: skip
        bounds, options = (tried[best - 1], tried[best + 1]), {'xatol': DELAY_TOLERANCE}
        return float(minimize_scalar(cost, bounds=bounds, method='bounded', options=options).x)

    def _fit(self, sizes: Array, weights: Array, delay: float, *, strict: bool = False) -> Array:
        """Return the unknowns; strict: refuse one that is not determined."""
        root = np.sqrt(weights)[:, None] / sizes
        regressor = self.equations.at(self.times, delay)
        Y = (root[..., None] * regressor).reshape(6 * len(self.times), -1)
        lengths = np.linalg.norm(Y, axis=0)
        known = lengths > 0.0
        U, sigma, Vt = np.linalg.svd(Y / np.where(known, lengths, 1.0), full_matrices=False)
        kept = sigma > RANK_TOLERANCE * sigma[0]
        if strict and not kept.all():
            worst, n = int(np.abs(Vt[-1]).argmax()), self.equations.n_inertial
            unknown = NAMES[worst] if worst < n else f'offset {worst - n + 1}'
            raise LogError(
                f'the log does not determine {unknown} of the tool on {self.name}',
                about=('inertia',),
            )
        projected = U[:, kept].T @ (root * self.measured).ravel()
        solved: Array = Vt[kept].T @ (projected / sigma[kept])
        return solved / np.where(known, lengths, 1.0)

    def _covariance(self, sizes: Array, found: Array, delay: float, delayed: bool) -> Array:
        """Return the covariance of the unknowns and, last, of the delay if it is unknown."""
        eq, times, step = self.equations, self.times, DERIVATIVE_STEP
        Y = whole = eq.at(times, delay)
        if delayed:
            slope = (eq.at(times, delay + step) - eq.at(times, delay - step)) / (2.0 * step)
            whole = np.concatenate([Y, (slope @ found)[..., None]], axis=2)
        whole = whole / sizes[:, None]
        left = (self.measured - Y @ found) / sizes
        stacked = whole.reshape(-1, whole.shape[2])
        lengths = np.linalg.norm(stacked, axis=0)
        scale = np.where(lengths > 0.0, lengths, 1.0)
        U, sigma, Vt = np.linalg.svd(stacked / scale, full_matrices=False)
        kept = sigma > RANK_TOLERANCE * sigma[0]
        draws = np.repeat(self.blocks, 6)
        of_basis = covariances_by_blocks(U[:, kept], left.reshape(-1, 1), draws)[0]
        back = (Vt[kept].T / sigma[kept]) / scale[:, None]
        covariance: Array = back @ of_basis @ back.T
        # A delay that changes nothing is not determined.
        free = np.flatnonzero(lengths == 0.0)
        covariance[free, free] = np.inf
        return covariance

    def _misalignment(self, found: Array, delay: float) -> float:
        """Return the angle between the IMU's axes and those that fit forces best [rad]."""
        Y = self.equations.at(self.times, delay)[:, :3]
        explained = Y[..., 0] * found[0]
        wanted = self.measured[:, :3] - Y[..., 1:] @ found[1:]
        a, f = explained - explained.mean(axis=0), wanted - wanted.mean(axis=0)
        U, _, Vt = np.linalg.svd(f.T @ a)
        R = U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt
        # By the sine where it is small: the cosine of 1e-8 is 1.
        twist = np.linalg.norm([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
        return float(np.arctan2(twist, np.trace(R) - 1.0))
