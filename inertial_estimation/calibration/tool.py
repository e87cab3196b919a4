# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertia of a tool on an FT sensor, FT offset and delay of an IMU on the tool, from free motion.

reading = s Y(IMU at t + delay) [m, m c, I] + offset, with Y the Newton-Euler equations of one body
[T 2.80] about the sensor's origin, and s = -1 if the sensor reads the wrench of the tool. A bias
of the accelerometer acts as a constant force of the tool's mass, and is part of the offset.
Without angular velocities their terms are left out: they are small in slow motion, none at rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.calibration.calibration_file import Provenance, SensorCalibration
from inertial_estimation.calibration.residual_statistics import (
    contiguous_blocks,
    require_mostly_undisturbed,
)
from inertial_estimation.calibration.tool_solution import (
    N_BODY,
    N_POINT,
    DelayAtEdge,
    SmoothStream,
    Solution,
    Stream,
    ToolEquations,
    ToolMotion,
    ToolProblem,
)
from inertial_estimation.errors import LogError, ModelError

MAX_SAMPLES = 20000
"""Longer logs are thinned; the smoothing has used all of them."""
MIN_SPREAD = 0.5
"""Of proper accelerations along two axes [m/s^2]."""
MAX_MISALIGNMENT = 0.5
"""[rad]."""


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
    times: Array
    """Samples that were compared, on the clock of the FT sensor, shape (n,) [s]."""
    residuals: Array
    residuals_before: Array
    """Of the fit, and of the offset alone, shape (n, 6) [N, Nm]."""
    used: Mask
    """Samples that were used; in the others something else acts, shape (n,)."""

    @property
    def n_disturbed(self) -> int:
        """Samples that were left out."""
        return int((~self.used).sum())

    def calibration(self, before: SensorCalibration, date: str) -> SensorCalibration:
        """Return the calibration with this offset."""
        centre = ', '.join(f'{x:.4f}' for x in self.centre)
        step = Provenance(
            'offset from free motion of a tool', date, int(self.used.sum()),
            spread=tuple(self.rms.tolist()),
            notes=(f'with a tool of {self.mass:.4f} kg at ({centre}) m',),
        )  # fmt: skip
        return before.after(step, offset=self.offset)


def fit_tool(
    motion: ToolMotion,
    *,
    direction: int = 1,
    inertia: bool = False,
    max_delay: float = 0.05,
    n_blocks: int = 10,
    name: str = 'the FT sensor',
) -> ToolFit:
    """
    Identify a tool on an FT sensor from free motion.

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
    n_blocks : int
        Contiguous parts of the log for deviations.
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
    if direction not in (1, -1):
        raise ModelError(f"'direction' is {direction}, expected 1 or -1", about=('direction',))
    if not 0.0 <= max_delay < np.inf:
        raise ModelError(f"'max_delay' is {max_delay}, expected 0 or more", about=('max_delay',))
    values = motion.accelerations
    if motion.angular_velocities is not None:
        values = np.hstack([values, motion.angular_velocities])
    elif inertia:
        raise ModelError("'inertia' needs angular velocities", about=('inertia',))
    ft = Stream.clean('the FT readings', motion.ft_times, motion.readings)
    imu = Stream.clean('the readings of the IMU', motion.imu_times, values)
    period = max(ft.period, imu.period)
    n = N_BODY if inertia else N_POINT
    equations = ToolEquations.of(imu, motion, direction, n, period)
    readings = ft.smooth(period)
    times = _common_times(readings, equations.imu, period, max_delay)
    measured = readings.spline(times)
    blocks = contiguous_blocks(times, n_blocks)
    problem = ToolProblem(equations, times, measured, blocks, name)
    accelerations = equations.accelerations(times)
    spreads = np.linalg.svd(accelerations - accelerations.mean(axis=0))[1] / np.sqrt(len(times))
    if spreads[1] < MIN_SPREAD:
        text = ', '.join(f'{x:.2g}' for x in spreads)
        raise LogError(
            f'gravity in the frame of {name} spreads by {text} m/s^2 along its axes, two must '
            f'reach {MIN_SPREAD:g}'
        )
    try:
        found = problem.solve(max_delay)
    except DelayAtEdge:
        # With wrong axes no delay fits, which shows without a delay as well.
        _require_plausible(problem.solve(0.0), name)
        raise
    used = found.used
    require_mostly_undisturbed(int((~used).sum()), len(used), name)
    _require_plausible(found, name)
    x, deviations = found.unknowns, found.deviations
    mass = float(x[0])
    centre = x[1:4] / mass
    # c = h / m, to first order.
    to_centre = np.column_stack([-centre, np.eye(3)]) / mass
    residuals = measured - equations.at(times, found.delay) @ x
    at_once = measured - equations.at(times, 0.0) @ found.without_delay
    return ToolFit(
        mass=mass,
        mass_deviation=float(deviations[0]),
        centre=centre,
        centre_deviations=np.sqrt(np.diag(to_centre @ found.covariance[:4, :4] @ to_centre.T)),
        inertia=x[4:n] if inertia else None,
        inertia_deviations=deviations[4:n] if inertia else None,
        offset=x[n:],
        offset_deviations=deviations[n : n + 6],
        delay=found.delay,
        delay_deviation=found.delay_deviation,
        misalignment=found.misalignment,
        spreads=spreads,
        rms_offset_only=measured[used].std(axis=0),
        rms_without_delay=np.sqrt((at_once[used] ** 2).mean(axis=0)),
        rms=np.sqrt((residuals[used] ** 2).mean(axis=0)),
        times=times,
        residuals=residuals,
        residuals_before=measured - measured[used].mean(axis=0),
        used=used,
    )


def _common_times(readings: SmoothStream, imu: SmoothStream, period: float, most: float) -> Array:
    """Return times at which both streams are known whatever the delay is, evenly spread [s]."""
    first, last = max(readings.first, imu.first + most), min(readings.last, imu.last - most)
    if last - first < period:
        raise LogError(f'FT sensor and IMU are known together for {max(0.0, last - first):.3g} s')
    times = np.arange(first, last, max(period, (last - first) / MAX_SAMPLES))
    known = times[readings.knows(times) & imu.knows(times, most)]
    if not len(known):
        raise LogError(f'gaps leave no sample at which both are known {most:g} s before and after')
    return known


def _require_plausible(found: Solution, name: str) -> None:
    """Refuse a negative mass, and axes of the IMU that do not fit."""
    mass = float(found.unknowns[0])
    if mass <= 0.0:
        raise LogError(
            f"the mass on {name} is {mass:.3g} kg: wrong 'direction' or 'sensor_H_imu'",
            about=('direction', 'sensor_H_imu'),
        )
    if found.misalignment > MAX_MISALIGNMENT:
        raise LogError(
            f'forces on {name} fit best with the axes of the IMU turned by '
            f"{np.degrees(found.misalignment):.0f} degrees against 'sensor_H_imu'",
            about=('sensor_H_imu',),
        )
