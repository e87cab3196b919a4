# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertia of a tool on an FT sensor, FT offset and delay of an IMU on the tool, from free motion.

reading = s Y(IMU at t + delay) [m, m c, I] + offset, with Y the Newton-Euler equations of one body
[T 2.80] about the sensor's origin, and s = -1 if the sensor reads the wrench of the tool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.ndimage import gaussian_filter1d
from scipy.optimize import minimize_scalar
from scipy.spatial.transform import Rotation

import inertial_estimation.calibration.residual_statistics as stats
from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.calibration.calibration_file import Provenance, SensorCalibration
from inertial_estimation.errors import LogError, ModelError
from inertial_estimation.findings import Finding, Level, finding
from inertial_estimation.model.arguments import pose_matrix, stacked
from inertial_estimation.model.representations import net_wrench

N_POINT, N_BODY = 4, 10
"""Inertial unknowns of a tool without inertia, and with it."""
MAX_SAMPLES, MAX_SEARCHED = 20000, 4000
"""Samples that are compared, and those of the search for the delay."""
MIN_SPREAD = 0.5
"""Of proper accelerations along two axes [m/s^2]."""
MAX_MISALIGNMENT = 0.5
"""[rad]."""
MIN_TOUCH = 0.02
"""Smallest deviation of samples from the fit, over the load: a touch is six times as large."""
START_SAMPLES, ROUNDS = 4, 2
REACH = 0.05
"""Duration of a touch before and after its outliers [s]."""
GRID_STEPS, SMOOTHING_REACH = 4, 4.0
"""Grid steps in a standard deviation of the smoothing; its deviations to either side."""
MAX_LENGTH = 1e6
"""Of a stream, in deviations of the smoothing: hours of data; more is a clock that jumped."""
MIN_GAP_PERIODS, MIN_SAMPLES = 4.0, 8
COARSE_STEP, DELAY_TOLERANCE, DERIVATIVE_STEP = 0.002, 1e-7, 1e-4
"""Of the first search for a delay, of the last, and of the derivative by it [s]."""
USUAL_GAIN_ERROR = 0.05
"""Of an axis; residuals in which noise hides it show little of the errors of gains."""
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
    noise: Array
    """Standard deviations of readings from one to the next, shape (6,) [N, Nm]."""
    residuals: Array
    """Of the fit at all samples that were compared, shape (n, 6) [N, Nm]."""
    used: Mask
    """Samples that were used; in the others something else acts, shape (n,)."""

    def findings(self, subject: str) -> Iterator[Finding]:
        """Yield the errors of a log that contradicts the rigid body."""
        what, left_out = 'free motion of a tool', float((~self.used).mean())
        sizes = self.rms, self.rms_offset_only, self.noise
        yield from stats.contradictions(subject, what, *sizes, left_out)
        if self.mass <= 0.0:
            what = f'mass {self.mass:.3g} kg: wrong direction of the readings, or IMU axes'
            yield finding('inertia', subject, level=Level.ERROR, what=what)
        elif self.misalignment > MAX_MISALIGNMENT:
            angle = np.degrees(self.misalignment)
            what = f'forces fit best with the axes of the IMU turned by {angle:.0f} degrees'
            share = float(np.linalg.norm(self.rms[:3]) / np.linalg.norm(self.rms_offset_only[:3]))
            yield finding('residual', subject, level=Level.ERROR, what=what, share=share)

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
    bias_deviation: float = stats.USUAL_BIAS,
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
    bias_deviation : float
        Standard deviation of the bias of the accelerometer, a part of that of the offset [m/s^2].
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
        If the log is too short, does not turn enough, or needs a larger delay.

    """
    stats.require_direction(direction)
    if not 0.0 <= max_delay < np.inf:
        raise ModelError(f"'max_delay' is {max_delay}, expected 0 or more", about=('max_delay',))
    values = stacked('accelerations', motion.accelerations, 3)
    if motion.angular_velocities is not None:
        values = np.hstack([values, motion.angular_velocities])
    elif inertia:
        raise ModelError("'inertia' needs angular velocities", about=('inertia',))
    readings = stacked('readings', motion.readings, 6)
    ft_times, readings = _clean('the FT readings', motion.ft_times, readings)
    imu_times, values = _clean('the readings of the IMU', motion.imu_times, values)
    n = N_BODY if inertia else N_POINT
    columns = _regressor_columns(imu_times, values, motion.sensor_H_imu, -direction, n)
    # A spline through noisy samples is less noisy halfway between them than at them, which would
    # bias the delay towards half a sample: both streams are smoothed alike.
    period = float(max(np.median(np.diff(ft_times)), np.median(np.diff(imu_times))))
    ft, imu = _smooth(ft_times, readings, period), _smooth(imu_times, columns, period)
    first = max(ft.gaps[0, 1], imu.gaps[0, 1] + max_delay)
    last = min(ft.gaps[-1, 0], imu.gaps[-1, 0] - max_delay)
    times = np.arange(first, last, max(period, (last - first) / MAX_SAMPLES))
    times = times[ft.knows(times) & imu.knows(times, max_delay)]
    if not len(times):
        raise LogError(f'FT sensor and IMU are never known together, {max_delay:g} s around')
    measured = ft.spline(times)
    problem = _Problem(imu.spline, n, times, measured, stats.contiguous_blocks(times))
    proper = imu.spline(times)[:, -3:]
    spreads = np.linalg.svd(proper - proper.mean(axis=0))[1] / np.sqrt(len(times))
    if spreads[1] < MIN_SPREAD:
        text = ', '.join(f'{x:.2g}' for x in spreads)
        where = f'along the axes of {name}, two must reach {MIN_SPREAD:g}'
        raise LogError(f'gravity spreads by {text} m/s^2 {where}')
    loads = np.repeat(np.linalg.norm(measured.std(axis=0).reshape(2, 3), axis=1), 3)
    sizes = loads = np.maximum(loads, MIN_SIZE)
    used, most, delay = np.ones(len(times), dtype=bool), max_delay, 0.0
    at_once, rank = problem.solve(sizes, used, 0.0)
    if rank < n + 6:
        text = f'the log determines {rank} of {n + 6} unknowns of the tool and offset of {name}'
        raise LogError(text, about=('inertia',))
    if most > 0.0:
        # Unlike rest, the motion must determine a delay.
        most *= bool(np.sqrt(problem.covariance(sizes, at_once, 0.0, True)[-1, -1]) < most)
    at_edge = False
    for _ in range(ROUNDS):
        used = problem.undisturbed(sizes, MIN_TOUCH * loads, delay)
        delay = problem.best_delay(sizes, used, most)
        at_edge |= abs(delay) == most > 0.0
        x = problem.solve(sizes, used, delay)[0]
        left = problem.residuals(x, delay)[used]
        signals = measured[used] - left - x[n:]
        # Noise alone: an axis whose gain is wrong is not outvoted for that.
        gains = (left * signals).sum(axis=0) / np.maximum((signals**2).sum(axis=0), MIN_SIZE)
        sizes = np.maximum(stats.scales(left - gains * signals), EXACT * loads)
    x, at_once = (problem.solve(sizes, used, one)[0] for one in (delay, 0.0))
    blocks = np.unique(problem.blocks[used], return_inverse=True)[1]
    kept = problem._replace(times=times[used], measured=measured[used], blocks=blocks)
    # With wrong axes no delay fits, which shows without a delay as well.
    shown, at = (at_once, 0.0) if at_edge else (x, delay)
    Y = kept.regressor(at)[:, :3]
    explained, wanted = Y[..., 0] * shown[0], kept.measured[:, :3] - Y[..., 1:] @ shown[1:]
    a, f = explained - explained.mean(axis=0), wanted - wanted.mean(axis=0)
    misalignment = float(Rotation.align_vectors(f, a)[0].magnitude())
    if at_edge:
        if at_once[0] > 0.0 and misalignment <= MAX_MISALIGNMENT:
            text = f"the streams fit best with a delay at the limit 'max_delay', {most:.3g} s"
            raise LogError(text, about=('max_delay',))
        x, delay, most = at_once, 0.0, 0.0
    covariance = kept.covariance(sizes, x, delay, most > 0.0)
    deviations, mass, centre = np.sqrt(np.diag(covariance)), float(x[0]), x[1:4] / x[0]
    # c = h / m, to first order.
    to_centre = np.column_stack([-centre, np.eye(3)]) / mass
    arms = np.sqrt(centre @ centre - centre**2)
    of_bias = bias_deviation * mass * np.concatenate([np.ones(3), arms])
    residuals = problem.residuals(x, delay)
    return ToolFit(
        mass=mass, mass_deviation=float(deviations[0]), centre=centre,
        centre_deviations=np.sqrt(np.diag(to_centre @ covariance[:4, :4] @ to_centre.T)),
        inertia=x[4:n] if inertia else None,
        inertia_deviations=deviations[4:n] if inertia else None, offset=x[n:],
        offset_deviations=np.hypot(deviations[n : n + 6], of_bias), delay=delay,
        delay_deviation=float(deviations[-1]) if most > 0.0 else np.inf,
        misalignment=misalignment, spreads=spreads, rms_offset_only=measured[used].std(axis=0),
        rms_without_delay=np.sqrt((problem.residuals(at_once, 0.0)[used] ** 2).mean(axis=0)),
        rms=np.sqrt((residuals[used] ** 2).mean(axis=0)),
        noise=stats.scales(np.diff(readings, axis=0)) / np.sqrt(2.0), residuals=residuals,
        used=used,
    )  # fmt: skip


def _solve(Y: Array, measured: Array, sizes: Array) -> tuple[Array, int]:
    """Return the unknowns and the rank; Y (n, 6, p), measured (n, 6), sizes (6,) of residuals."""
    rows = (Y / sizes[:, None]).reshape(6 * len(Y), -1)
    lengths = np.linalg.norm(rows, axis=0)
    lengths[lengths == 0.0] = 1.0
    target = (measured / sizes).ravel()
    x, _, rank, _ = np.linalg.lstsq(rows / lengths, target, rcond=RANK_TOLERANCE)
    return x / lengths, int(rank)


def _clean(what: str, times: Array, values: Array) -> tuple[Array, Array]:
    """Return samples without NaN and stamps that go back; times (n,) [s], values (n, m)."""
    stats.require_shape(f'times of {what}', times, len(values))
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
    pose = pose_matrix('sensor_H_imu', np.eye(4) if pose is None else pose)
    R, place = pose[:3, :3], pose[:3, 3]
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
    """A stream that can be evaluated but in gaps (g, 2) [s], the first and last outside of it."""

    spline: Callable[[Array], Array]
    gaps: Array

    def knows(self, times: Array, around: float = 0.0) -> Mask:
        """Return at which times (n,) it is known, `around` [s] before and after."""
        known: Mask = np.ones(len(times), dtype=bool)
        for begin, end in self.gaps:
            known &= (times + around <= begin) | (times - around >= end)
        return known


def _smooth(times: Array, values: Array, width: float) -> _Smooth:
    """Smooth a stream with a Gaussian of standard deviation `width` [s]."""
    margin, length = SMOOTHING_REACH * width, times[-1] - times[0]
    if length <= 2.0 * margin:
        raise LogError(f'a stream of {length:.3g} s, smoothed over {2.0 * margin:.3g} s')
    if length > MAX_LENGTH * width:
        raise LogError(f'stamps reach over {length:.3g} s, limit {MAX_LENGTH * width:.3g} s')
    grid = np.arange(times[0], times[-1], width / GRID_STEPS)
    even = CubicSpline(times, values)(grid)
    smoothed = gaussian_filter1d(even, GRID_STEPS, axis=0, truncate=SMOOTHING_REACH)
    steps = np.diff(times)
    wide = np.flatnonzero(steps > MIN_GAP_PERIODS * np.median(steps))
    begins = np.array([-np.inf, *(times[wide] - margin), grid[-1] - margin])
    ends = np.array([times[0] + margin, *(times[wide + 1] + margin), np.inf])
    return _Smooth(CubicSpline(grid, smoothed), np.column_stack([begins, ends]))


class _Problem(NamedTuple):
    """Least squares over m, m c, inertia if asked for, and offset, for any delay of the IMU."""

    columns: Callable[[Array], Array]
    """Of the inertial unknowns, then the proper acceleration, by time [s]."""
    n_inertial: int
    times: Array
    """Shape (n,) [s]."""
    measured: Array
    """Shape (n, 6) [N, Nm]."""
    blocks: Indices

    def regressor(self, delay: float) -> Array:
        """Return the regressor, (n, 6, n_inertial + 6)."""
        n = len(self.times)
        inertial = self.columns(self.times + delay)[:, :-3].reshape(n, 6, self.n_inertial)
        return np.concatenate([inertial, np.broadcast_to(np.eye(6), (n, 6, 6))], axis=2)

    def residuals(self, x: Array, delay: float) -> Array:
        """Return the residuals of the readings, (n, 6) [N, Nm]."""
        return np.asarray(self.measured - self.regressor(delay) @ x)

    def solve(self, sizes: Array, used: Mask, delay: float) -> tuple[Array, int]:
        """Return the unknowns and the rank; sizes (6,) of residuals, used (n,)."""
        return _solve(self.regressor(delay)[used], self.measured[used], sizes)

    def undisturbed(self, sizes: Array, least: Array, delay: float) -> Mask:
        """Return the samples (n,) in which nothing acts on the body; least (6,): no touch."""
        Y = self.regressor(delay)

        def left_by(some: Indices | Mask) -> Array:
            return np.asarray(self.measured - Y @ _solve(Y[some], self.measured[some], sizes)[0])

        fits = stats.consensus(left_by, len(Y), least, 1, START_SAMPLES)
        return ~stats.near(~fits, self.times, REACH)

    def best_delay(self, sizes: Array, used: Mask, most: float) -> float:
        """Return the delay of the smallest residual, at most `most` either way [s]."""
        if most == 0.0:
            return 0.0
        few = np.flatnonzero(used)
        few = few[np.unique(np.linspace(0, len(few) - 1, MAX_SEARCHED).astype(np.intp))]
        part = self._replace(times=self.times[few], measured=self.measured[few])

        def cost(delay: float) -> float:
            whole = np.concatenate([part.regressor(delay), part.measured[..., None]], axis=2)
            # The last diagonal element of the triangle is the norm of the residual.
            stacked = (whole / sizes[:, None]).reshape(6 * len(few), -1)
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
        # Each axis has an error of its gain as well, of the size that residuals beyond noise show.
        Y, step = self.regressor(delay), DERIVATIVE_STEP
        left = ((self.measured - Y @ x) / sizes).reshape(-1, 1)
        signals = (Y @ x - x[-6:]) / sizes
        if delayed:
            slope = (self.regressor(delay + step) - self.regressor(delay - step)) / (2.0 * step)
            Y = np.concatenate([Y, (slope @ x)[..., None]], axis=2)
        columns = (Y / sizes[:, None]).reshape(left.size, -1)
        by_gain = (signals[..., None] * np.eye(6)).reshape(left.size, 6)
        draws, back = np.repeat(self.blocks, 6), np.linalg.pinv(columns)
        of_gains = np.zeros((columns.shape[1],) * 2)
        for gains in by_gain[:, :3], by_gain[:, 3:]:
            taken = back @ gains
            basis, values, _ = np.linalg.svd(gains - columns @ taken, full_matrices=False)
            shown = basis.T @ left
            likely = np.abs(shown[:, 0]) < stats.MAX_MODEL_ERROR * values
            basis, shown, energy = basis[:, likely], shown[likely], values[likely] ** 2
            left = left - basis @ shown
            noise = np.diagonal(stats.covariances_by_blocks(basis, left, draws)[0]) / energy
            squares = np.maximum(shown[:, 0] ** 2 / energy - noise, 0.0)
            weights = 1.0 / (1.0 + noise / USUAL_GAIN_ERROR**2)
            of_gains += weights @ squares / max(weights.sum(), 1.0) * taken @ taken.T
        return np.asarray(stats.fit_by_blocks(columns, left, draws)[1][0] + of_gains)
