# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertia of a tool on an FT sensor, FT offset and delay of an IMU on the tool, from free motion.

reading = s Y(IMU at t + delay) [m, m c, I] + offset, with Y the Newton-Euler equations of one body
[T 2.80] about the sensor's origin, and s = -1 if the sensor reads the wrench of the tool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.ndimage import gaussian_filter1d
from scipy.optimize import minimize_scalar
from scipy.spatial.transform import Rotation

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.calibration.calibration_file import Provenance, SensorCalibration
from inertial_estimation.calibration.residual_statistics import (
    Blocks,
    contiguous_blocks,
    fit_by_blocks,
    huber_weights,
    require_direction,
    require_mostly_undisturbed,
    require_rotation,
    require_shape,
    scales,
    undisturbed,
)
from inertial_estimation.errors import LogError, ModelError
from inertial_estimation.model.arguments import numbers, stacked
from inertial_estimation.model.representations import net_wrench

N_POINT, N_BODY = 4, 10
"""Inertial unknowns of a tool without inertia, and with it."""
MAX_SAMPLES, MAX_SEARCHED = 20000, 4000
"""Samples that are compared, and those of the search for the delay."""
MIN_SPREAD = 0.5
"""Of proper accelerations along two axes [m/s^2]."""
MAX_MISALIGNMENT = 0.5
"""[rad]."""
ROBUST_ROUNDS = 3
REACH = 0.05
"""Duration of a touch before and after its outliers [s]."""
GRID_STEPS, SMOOTHING_REACH = 4, 4.0
"""Grid steps in a standard deviation of the smoothing; its deviations to either side."""
MAX_LENGTH = 1e6
"""Of a stream, in deviations of the smoothing: hours of data; more is a clock that jumped."""
MIN_GAP_PERIODS, MIN_SAMPLES = 4.0, 8
COARSE_STEP, DELAY_TOLERANCE, DERIVATIVE_STEP = 0.002, 1e-7, 1e-4
"""Of the first search for a delay, of the last, and of the derivative by it [s]."""
RANK_TOLERANCE, MIN_SIZE, EXACT = 1e-8, 1e-12, 1e-9
"""The last is the share of the spread of readings below which a residual is round-off."""


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
    """In the IMU's axes, shape (k, 3) [rad/s]; without them their terms are left out."""
    sensor_H_imu: Array | None = None
    """Pose of the IMU in the sensor frame, shape (4, 4) [m]. Default: the same frame."""


class ToolFit(NamedTuple):
    """Tool, offset and delay, with their standard deviations."""

    mass: float
    mass_deviation: float
    """[kg]."""
    centre: Array
    centre_deviations: Array
    """Centre of mass in the sensor frame, shape (3,) [m]."""
    inertia: Array | None
    inertia_deviations: Array | None
    """About the sensor's origin, xx xy yy xz yz zz [kg m^2]; None: not asked for, shape (6,)."""
    offset: Array
    offset_deviations: Array
    """Subtracted, shape (6,) [N, Nm]."""
    delay: float
    delay_deviation: float
    """Of the stamps of the IMU [s]; infinite deviation: not determined, taken as zero."""
    misalignment: float
    """Angle between the IMU's axes and those that fit forces best [rad]."""
    spreads: Array
    """Of proper accelerations along their principal axes, falling, shape (3,) [m/s^2]."""
    rms_offset_only: Array
    rms_without_delay: Array
    rms: Array
    """Residuals of the offset alone, with no delay, and of the fit, shape (6,) [N, Nm]."""
    residuals: Array
    """Of the fit at all samples that were compared, shape (n, 6) [N, Nm]."""
    used: Mask
    """Samples that were used; in the others something else acts, shape (n,)."""

    def calibration(self, before: SensorCalibration, date: str) -> SensorCalibration:
        """Return the calibration with this offset."""
        centre = ', '.join(f'{x:.4f}' for x in self.centre)
        step = Provenance(
            'offset from free motion of a tool', date, int(self.used.sum()), spread=self.rms,
            notes=[f'with a tool of {self.mass:.4f} kg at ({centre}) m'],
        )  # fmt: skip
        return before.after(step, offset=self.offset)


def fit_tool(
    motion: ToolMotion,
    *,
    direction: int = 1,
    inertia: bool = False,
    max_delay: float = 0.05,
    name: str = 'the FT sensor',
) -> ToolFit:
    """
    Identify a tool on an FT sensor from free motion.

    A bias of the accelerometer acts as a constant force of the tool's mass, and is part of the
    offset.

    Parameters
    ----------
    motion : ToolMotion
        Readings of FT sensor and IMU while nothing touches the tool.
    direction : int
        +1: the reading is the wrench of the tool on what carries it; -1: the opposite one.
    inertia : bool
        Identify the inertia too, which needs angular velocities that change.
    max_delay : float
        Largest delay of the IMU, either way [s]; 0: none.
    name : str
        Name of the sensor in errors.

    Returns
    -------
    ToolFit

    Raises
    ------
    ShapeError
        If the arrays do not belong together.
    ModelError
        If the pose is none, or there are no angular velocities for an inertia.
    LogError
        If the log is too short, does not turn enough, is disturbed most of the time, needs a
        larger delay, or gives a negative mass or other axes of the IMU.

    """
    require_direction(direction)
    if not 0.0 <= max_delay < np.inf:
        raise ModelError(f"'max_delay' is {max_delay}, expected 0 or more", about=('max_delay',))
    values = stacked('accelerations', motion.accelerations, 3)
    if motion.angular_velocities is not None:
        values = np.hstack([values, motion.angular_velocities])
    elif inertia:
        raise ModelError("'inertia' needs angular velocities", about=('inertia',))
    ft_times, readings = _clean(
        'the FT readings', motion.ft_times, stacked('readings', motion.readings, 6)
    )
    imu_times, values = _clean('the readings of the IMU', motion.imu_times, values)
    n = N_BODY if inertia else N_POINT
    columns = _regressor_columns(imu_times, values, motion.sensor_H_imu, -direction, n)
    # A spline through noisy samples is less noisy halfway between them than at them, which would
    # bias the delay towards half a sample: both streams are smoothed alike.
    period = float(max(np.median(np.diff(ft_times)), np.median(np.diff(imu_times))))
    ft, imu = _smooth(ft_times, readings, period), _smooth(imu_times, columns, period)
    first, last = max(ft.first, imu.first + max_delay), min(ft.last, imu.last - max_delay)
    times = np.arange(first, last, max(period, (last - first) / MAX_SAMPLES))
    times = times[ft.knows(times) & imu.knows(times, max_delay)]
    if not len(times):
        raise LogError(
            f'FT sensor and IMU are never known together, {max_delay:g} s before and after'
        )
    measured = ft.spline(times)
    problem = _Problem(imu.spline, n, times, measured, contiguous_blocks(times))
    proper = imu.spline(times)[:, -3:]
    spreads = np.linalg.svd(proper - proper.mean(axis=0))[1] / np.sqrt(len(times))
    if spreads[1] < MIN_SPREAD:
        text = ', '.join(f'{x:.2g}' for x in spreads)
        raise LogError(
            f'gravity in the frame of {name} spreads by {text} m/s^2 along its axes, two must '
            f'reach {MIN_SPREAD:g}'
        )
    sizes = np.repeat(np.linalg.norm(measured.std(axis=0).reshape(2, 3), axis=1), 3)
    start = sizes = np.maximum(sizes, MIN_SIZE)
    weights, most = np.ones(len(times)), max_delay
    at_once, rank = problem.solve(sizes, weights, 0.0)
    if rank < n + 6:
        raise LogError(
            f'the log determines {rank} of {n + 6} unknowns of the tool and offset of {name}',
            about=('inertia',),
        )
    if most > 0.0:
        # Unlike rest, the motion must determine a delay.
        most *= bool(np.sqrt(problem.covariance(sizes, at_once, 0.0, True)[-1, -1]) < most)
    at_edge = False
    for _ in range(ROBUST_ROUNDS):
        delay = problem.best_delay(sizes, weights, most)
        at_edge |= abs(delay) == most > 0.0
        residuals = problem.residuals(problem.solve(sizes, weights, delay)[0], delay)
        sizes = np.maximum(scales(residuals), EXACT * start)
        weights = huber_weights(residuals)
    used = undisturbed(times, residuals, REACH)
    weights = used.astype(np.float64)
    delay = problem.best_delay(sizes, weights, most)
    x, at_once = (problem.solve(sizes, weights, one)[0] for one in (delay, 0.0))
    blocks = np.unique(problem.blocks[used], return_inverse=True)[1]
    kept = problem._replace(times=times[used], measured=measured[used], blocks=blocks)
    at_edge |= abs(delay) == most > 0.0
    # With wrong axes no delay fits, which shows without a delay as well.
    shown = (at_once, 0.0) if at_edge else (x, delay)
    if shown[0][0] <= 0.0:
        raise LogError(
            f'the mass on {name} is {shown[0][0]:.3g} kg: wrong direction of its readings, or IMU '
            'axes'
        )
    misalignment = kept.misalignment(*shown)
    if misalignment > MAX_MISALIGNMENT:
        raise LogError(
            f'forces on {name} fit best with the axes of the IMU turned by '
            f'{np.degrees(misalignment):.0f} degrees'
        )
    if at_edge:
        raise LogError(
            f"the streams fit best with a delay at the limit 'max_delay', {most:.3g} s",
            about=('max_delay',),
        )
    require_mostly_undisturbed(int((~used).sum()), len(used), name)
    covariance = kept.covariance(sizes, x, delay, most > 0.0)
    deviations, mass, centre = np.sqrt(np.diag(covariance)), float(x[0]), x[1:4] / x[0]
    # c = h / m, to first order.
    to_centre = np.column_stack([-centre, np.eye(3)]) / mass
    residuals = problem.residuals(x, delay)
    return ToolFit(
        mass=mass,
        mass_deviation=float(deviations[0]),
        centre=centre,
        centre_deviations=np.sqrt(np.diag(to_centre @ covariance[:4, :4] @ to_centre.T)),
        inertia=x[4:n] if inertia else None,
        inertia_deviations=deviations[4:n] if inertia else None,
        offset=x[n:],
        offset_deviations=deviations[n : n + 6],
        delay=delay,
        delay_deviation=float(deviations[-1]) if most > 0.0 else np.inf,
        misalignment=misalignment,
        spreads=spreads,
        rms_offset_only=measured[used].std(axis=0),
        rms_without_delay=np.sqrt((problem.residuals(at_once, 0.0)[used] ** 2).mean(axis=0)),
        rms=np.sqrt((residuals[used] ** 2).mean(axis=0)),
        residuals=residuals,
        used=used,
    )


def _clean(what: str, times: Array, values: Array) -> tuple[Array, Array]:
    """Return samples without NaN and stamps that go back; times (n,) [s], values (n, m)."""
    require_shape(f'times of {what}', times, len(values))
    kept = np.isfinite(times) & np.isfinite(values).all(axis=1)
    times, values = times[kept], values[kept]
    later = np.diff(np.maximum.accumulate(times), prepend=-np.inf) > 0.0
    if later.sum() < MIN_SAMPLES:
        raise LogError(f'{what}: {later.sum()} usable samples, {MIN_SAMPLES} are needed')
    return times[later], values[later]


def _regressor_columns(
    times: Array, values: Array, pose: Array | None, sign: int, n_inertial: int
) -> Array:
    """Return columns of the inertial unknowns, then the proper acceleration, at the sensor."""
    pose = np.eye(4) if pose is None else numbers('sensor_H_imu', pose, (4, 4))
    R, place = pose[:3, :3], pose[:3, 3]
    require_rotation('sensor_H_imu', R)
    acceleration = values[:, :3] @ R.T
    spin = rate = np.zeros_like(acceleration)
    if values.shape[1] > 3:
        spin = values[:, 3:] @ R.T
        rate = CubicSpline(times, spin)(times, 1)
    # From the IMU to the sensor's origin, about which the equations are.
    origin = acceleration - np.cross(rate, place) - np.cross(spin, np.cross(spin, place))
    proper = np.hstack([origin, rate])
    wrenches = [sign * net_wrench(unit, spin, proper) for unit in np.eye(N_BODY)[:n_inertial]]
    return np.hstack([np.stack(wrenches, axis=2).reshape(len(proper), -1), origin])


class _Smooth(NamedTuple):
    """A stream that can be evaluated from `first` to `last` [s], except in gaps (g, 2) [s]."""

    spline: Callable[[Array], Array]
    first: float
    last: float
    gaps: Array

    def knows(self, times: Array, around: float = 0.0) -> Mask:
        """Return at which times (n,) it is known, `around` [s] before and after."""
        known: Mask = (times - around >= self.first) & (times + around <= self.last)
        for begin, end in self.gaps:
            known &= (times + around < begin) | (times - around > end)
        return known


def _smooth(times: Array, values: Array, width: float) -> _Smooth:
    """Smooth a stream with a Gaussian of standard deviation `width` [s]."""
    margin, length = SMOOTHING_REACH * width, times[-1] - times[0]
    if length <= 2.0 * margin:
        raise LogError(
            f'a stream of {length:.3g} s is too short to be smoothed over {2.0 * margin:.3g} s'
        )
    if length > MAX_LENGTH * width:
        raise LogError(f'stamps reach over {length:.3g} s, limit {MAX_LENGTH * width:.3g} s')
    grid = np.arange(times[0], times[-1], width / GRID_STEPS)
    even = CubicSpline(times, values)(grid)
    smoothed = gaussian_filter1d(even, GRID_STEPS, axis=0, truncate=SMOOTHING_REACH)
    steps = np.diff(times)
    wide = np.flatnonzero(steps > MIN_GAP_PERIODS * np.median(steps))
    gaps = np.column_stack([times[wide] - margin, times[wide + 1] + margin])
    return _Smooth(CubicSpline(grid, smoothed), times[0] + margin, grid[-1] - margin, gaps)


class _Problem(NamedTuple):
    """Least squares over m, m c, inertia if asked for, and offset, for any delay of the IMU."""

    columns: Callable[[Array], Array]
    """Of the inertial unknowns, then the proper acceleration, by time [s]."""
    n_inertial: int
    times: Array
    """Shape (n,) [s]."""
    measured: Array
    """Shape (n, 6) [N, Nm]."""
    blocks: Blocks

    def regressor(self, delay: float) -> Array:
        """Return the regressor, (n, 6, n_inertial + 6)."""
        n = len(self.times)
        inertial = self.columns(self.times + delay)[:, :-3].reshape(n, 6, self.n_inertial)
        return np.concatenate([inertial, np.broadcast_to(np.eye(6), (n, 6, 6))], axis=2)

    def residuals(self, x: Array, delay: float) -> Array:
        """Return the residuals of the readings, (n, 6) [N, Nm]."""
        return np.asarray(self.measured - self.regressor(delay) @ x)

    def solve(self, sizes: Array, weights: Array, delay: float) -> tuple[Array, int]:
        """Return the unknowns and the rank; sizes (6,) of residuals, weights (n,)."""
        root = np.sqrt(weights)[:, None] / sizes
        Y = (root[..., None] * self.regressor(delay)).reshape(root.size, -1)
        lengths = np.linalg.norm(Y, axis=0)
        lengths[lengths == 0.0] = 1.0
        wanted = (root * self.measured).ravel()
        x, _, rank, _ = np.linalg.lstsq(Y / lengths, wanted, rcond=RANK_TOLERANCE)
        return x / lengths, int(rank)

    def best_delay(self, sizes: Array, weights: Array, most: float) -> float:
        """Return the delay of the smallest residual, at most `most` either way [s]."""
        if most == 0.0:
            return 0.0
        n = len(self.times)
        few = np.unique(np.linspace(0, n - 1, min(n, MAX_SEARCHED)).astype(np.intp))
        part = self._replace(times=self.times[few], measured=self.measured[few])
        root = (np.sqrt(weights[few])[:, None] / sizes)[..., None]

        def cost(delay: float) -> float:
            whole = np.concatenate([part.regressor(delay), part.measured[..., None]], axis=2)
            # The last diagonal element of the triangle is the norm of the residual.
            stacked = (root * whole).reshape(6 * len(few), -1)
            triangle = np.asarray(np.linalg.qr(stacked, mode='r'))
            return abs(float(triangle[-1, -1]))

        n = max(2, int(np.ceil(most / COARSE_STEP)))
        tried = np.linspace(-most, most, 2 * n + 1)
        best = int(np.argmin([cost(delay) for delay in tried]))
        if best in (0, 2 * n):
            return float(tried[best])
        bounds, options = (tried[best - 1], tried[best + 1]), {'xatol': DELAY_TOLERANCE}
        return float(minimize_scalar(cost, bounds=bounds, method='bounded', options=options).x)

    def covariance(self, sizes: Array, x: Array, delay: float, delayed: bool) -> Array:
        """Return the covariance of the unknowns and, last, of the delay if it is unknown."""
        Y, step = self.regressor(delay), DERIVATIVE_STEP
        left = (self.measured - Y @ x) / sizes
        if delayed:
            slope = (self.regressor(delay + step) - self.regressor(delay - step)) / (2.0 * step)
            Y = np.concatenate([Y, (slope @ x)[..., None]], axis=2)
        columns = (Y / sizes[:, None]).reshape(left.size, -1)
        draws = np.repeat(self.blocks, 6)
        return np.asarray(fit_by_blocks(columns, left.reshape(-1, 1), draws)[1][0])

    def misalignment(self, x: Array, delay: float) -> float:
        """Return the angle between the IMU's axes and those that fit forces best [rad]."""
        Y = self.regressor(delay)[:, :3]
        explained = Y[..., 0] * x[0]
        wanted = self.measured[:, :3] - Y[..., 1:] @ x[1:]
        a, f = explained - explained.mean(axis=0), wanted - wanted.mean(axis=0)
        return float(Rotation.align_vectors(f, a)[0].magnitude())
