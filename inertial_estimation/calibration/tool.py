# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What hangs on an FT sensor, its offset, and the delay of an IMU beside it, from free motion.

reading = s Y(IMU at t + delay) [m, m c, I] + offset, with Y the Newton-Euler equations of one body
[T 2.80] about the sensor's origin, and s = -1 if the sensor tells what the tool exerts on it. The
offset is the one that goes with this IMU: what its accelerometer is off by counts as a force of
the tool's mass in the sensor's frame, which no motion tells from an offset.

Without angular velocities the terms that need them are left out: they are small in slow motion,
and none in rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.blocks import contiguous_blocks
from inertial_estimation.calibration.delay import DelayAtEdge, SmoothStream, Stream, clean, smooth
from inertial_estimation.calibration.tool_rows import ToolRows
from inertial_estimation.calibration.tool_solution import Solution, solve
from inertial_estimation.errors import LogError, ModelError, ShapeError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST_INSTANTS = 20000
"""Of a longer log as many are used, evenly spread; the smoothing has used all of it."""
FEWEST_POSES = 4
"""Ten unknowns, of which a pose tells three by its force and at most two by its moment."""
MOST_LEFT_OUT = 0.5
ROTATED = 0.5
"""Angle from which the axes of the IMU are taken to be wrong [rad]."""


@dataclass(frozen=True)
class ToolSettings:
    """How a tool is identified."""

    direction: int = 1
    """+1: the reading is the wrench of the tool on what carries it; -1: the opposite one."""
    inertia: bool = False
    """Identify the inertia too, which needs angular velocities that change."""
    most_delay: float = 0.05
    """The IMU may be later, or earlier, by so much [s]; 0: by nothing."""
    least_spread: float = 0.5
    """By which proper accelerations must spread along two axes [m/s^2]."""
    n_blocks: int = 10
    """Contiguous parts of the log, the draws that deviations rest on."""
    reach: float = 0.05
    """How long a touch lasts before and after what shows of it [s]."""
    smoothing: float | None = None
    """Standard deviation of the smoothing [s]; None: one period of the slower stream."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.direction not in (1, -1):
            raise ModelError(
                f"'direction' is {self.direction}, expected 1 or -1", about=('direction',)
            )
        for name in ('most_delay', 'least_spread', 'reach'):
            value = getattr(self, name)
            if not 0.0 <= value < np.inf:
                raise ModelError(f"'{name}' is {value}, expected 0 or more", about=(name,))
        if self.smoothing is not None and not 0.0 < self.smoothing < np.inf:
            raise ModelError(f"'smoothing' is {self.smoothing}, expected seconds above 0")


class ToolMotion(NamedTuple):
    """What an FT sensor and an IMU say, each with a clock of its own."""

    ft_times: Array
    """Rising, shape (n,) [s]."""
    readings: Array
    """matrix raw, [force; moment] in and about the sensor frame, shape (n, 6) [N, Nm]."""
    imu_times: Array
    """Rising, shape (k,) [s]."""
    accelerations: Array
    """Proper, in the IMU's axes, shape (k, 3) [m/s^2]."""
    angular_velocities: Array | None = None
    """In the IMU's axes, shape (k, 3) [rad/s]; None: not measured."""
    sensor_H_imu: Array | None = None
    """Pose of the IMU in the sensor frame, shape (4, 4) [m]; None: the same frame."""


class ToolFit(NamedTuple):
    """A tool, an offset and a delay, with their deviations."""

    mass: float
    """[kg]."""
    mass_deviation: float
    """[kg]."""
    centre: Array
    """Centre of mass in the sensor frame, shape (3,) [m]."""
    centre_deviations: Array
    """[m]."""
    inertia: Array | None
    """About the sensor's origin, xx xy yy xz yz zz, shape (6,) [kg m^2]; None: not asked for."""
    inertia_deviations: Array | None
    """[kg m^2]."""
    offset: Array
    """Subtracted, shape (6,) [N, Nm]."""
    offset_deviations: Array
    """[N, Nm]."""
    delay: float
    """By which the stamps of the IMU are later [s]."""
    delay_deviation: float
    """[s]; infinite: the log does not tell the delay, which is taken to be zero."""
    misalignment: float
    """Angle of the turn that would take the IMU's axes to where forces fit best [rad]."""
    spreads: Array
    """Of the proper accelerations along their principal axes, shape (3,), falling [m/s^2]."""
    rms_offset_only: Array
    """What is left of the readings without their mean, shape (6,) [N, Nm]."""
    rms_without_delay: Array
    """What is left with a delay of zero, shape (6,) [N, Nm]."""
    rms: Array
    """What is left, shape (6,) [N, Nm]."""
    times: Array
    """Instants that were compared, on the clock of the FT sensor, shape (n,) [s]."""
    residuals: Array
    """What is left at each, shape (n, 6) [N, Nm]."""
    residuals_before: Array
    """What is left at each of the readings without their mean, shape (n, 6) [N, Nm]."""
    used: Mask
    """Instants that were used, shape (n,); in the others something else acts, or just beside."""

    @property
    def n_disturbed(self) -> int:
        """Instants that were left out as something else acts in them."""
        return int((~self.used).sum())


def fit_tool(
    motion: ToolMotion, settings: ToolSettings | None = None, *, name: str = 'the FT sensor'
) -> ToolFit:
    """
    Identify what hangs on an FT sensor from free motion.

    Parameters
    ----------
    motion : ToolMotion
        What the sensors say, on a body that nothing else touches.
    settings : ToolSettings, optional
        How.
    name : str, optional
        What the sensor is called, for messages.

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
        larger delay, or says that the mass is negative or the axes of the IMU are others.

    """
    chosen = settings or ToolSettings()
    ft, imu = _streams(motion, chosen)
    width = chosen.smoothing or max(ft.period, imu.period)
    rows = ToolRows.of(imu, motion, chosen, width)
    readings = smooth(ft, width)
    times = _instants(readings, rows.imu, max(ft.period, imu.period), chosen.most_delay)
    blocks = contiguous_blocks(times, chosen.n_blocks)
    return _fit(rows, times, readings.spline(times), blocks, chosen, name)


def fit_tool_poses(
    readings: Array,
    accelerations: Array,
    settings: ToolSettings | None = None,
    *,
    name: str = 'the FT sensor',
) -> ToolFit:
    """
    Identify what hangs on an FT sensor from poses in which it rests.

    readings (n, 6) [force; moment]; accelerations (n, 3) [m/s^2].
    """
    n = len(readings)
    for what, array, shape in (
        ('readings', readings, (n, 6)),
        ('accelerations', accelerations, (n, 3)),
    ):
        if array.shape != shape:
            raise ShapeError(what, shape, array.shape)
    kept = np.isfinite(np.hstack([readings, accelerations])).all(axis=1)
    if kept.sum() < FEWEST_POSES:
        raise LogError(
            f'{kept.sum()} usable poses of {name} do not tell mass, centre of mass and offset '
            f'apart: take {FEWEST_POSES} or more'
        )
    at_rest = replace(settings or ToolSettings(), inertia=False, most_delay=0.0, reach=0.0)
    rows = ToolRows.of_poses(accelerations[kept], at_rest.direction)
    numbers = np.flatnonzero(kept)
    found = _fit(
        rows, np.arange(len(numbers), dtype=np.float64), readings[kept],
        np.arange(len(numbers)), at_rest, name,
    )  # fmt: skip
    return found._replace(times=numbers.astype(np.float64))


def _fit(
    rows: ToolRows,
    times: Array,
    measured: Array,
    blocks: NDArray[np.intp],
    settings: ToolSettings,
    name: str,
) -> ToolFit:
    """Identify, and refuse what makes no sense."""
    spreads = _require_turns(rows, times, settings, name)
    try:
        found = solve(rows, times, measured, blocks, settings, name)
    except DelayAtEdge:
        # With axes that are others no delay fits, which shows without one as well.
        at_once = replace(settings, most_delay=0.0)
        _require_sense(solve(rows, times, measured, blocks, at_once, name), name)
        raise
    _require_undisturbed(found.used, name)
    _require_sense(found, name)
    return _graded(found, rows, times, measured, settings, spreads)


def _streams(motion: ToolMotion, settings: ToolSettings) -> tuple[Stream, Stream]:
    """Return the two streams without what cannot be used."""
    if settings.inertia and motion.angular_velocities is None:
        raise ModelError(
            "'inertia' is asked for, but there are no angular velocities: take an IMU with "
            'gyroscopes, or leave it out',
            about=('inertia',),
        )
    values = motion.accelerations
    if motion.angular_velocities is not None:
        values = np.hstack([values, motion.angular_velocities])
    ft = clean('the FT readings', motion.ft_times, motion.readings)
    return ft, clean('the readings of the IMU', motion.imu_times, values)


def _instants(readings: SmoothStream, imu: SmoothStream, period: float, most: float) -> Array:
    """Return when both are known whatever the delay is, evenly spread."""
    first, last = max(readings.first, imu.first + most), min(readings.last, imu.last - most)
    if last - first < period:
        raise LogError(
            f'FT sensor and IMU are known together for {max(0.0, last - first):.3g} s: record '
            'both for longer, with stamps of one clock'
        )
    times = np.arange(first, last, max(period, (last - first) / MOST_INSTANTS))
    known = times[readings.knows(times) & imu.knows(times, most)]
    if not len(known):
        raise LogError(
            f'the readings have gaps so often that at no instant both are known {most:g} s before '
            'and after it: allow a smaller delay, or record without gaps'
        )
    return known


def _require_turns(rows: ToolRows, times: Array, settings: ToolSettings, name: str) -> Array:
    """Return the spreads of proper acceleration; raise if mass or centre are not told."""
    accelerations = rows.accelerations(times)
    spreads: Array = np.linalg.svd(accelerations - accelerations.mean(axis=0))[1]
    spreads = spreads / np.sqrt(len(times))
    if spreads[1] < settings.least_spread:
        missing = 'mass and centre of mass' if spreads[0] < settings.least_spread else (
            'centre of mass along one axis'
        )  # fmt: skip
        raise LogError(
            f'gravity in the frame of {name} spreads by {spreads[0]:.2g}, {spreads[1]:.2g} and '
            f'{spreads[2]:.2g} m/s^2 along its axes, of which two must reach '
            f'{settings.least_spread:g}: the {missing} cannot be told from an offset; turn it '
            'about two axes, or about one that is not vertical by more'
        )
    return spreads


def _require_undisturbed(used: Mask, name: str) -> None:
    """Raise if most instants are left out."""
    if used.sum() < MOST_LEFT_OUT * len(used):
        raise LogError(
            f'{(~used).sum()} of {len(used)} instants of {name} are far from what the others '
            'say: choose a part of the log in which nothing touches the tool'
        )


def _require_sense(found: Solution, name: str) -> None:
    """Raise if a sign or axes are wrong."""
    mass = float(found.unknowns[0])
    if mass <= 0.0:
        raise LogError(
            f'the mass on {name} comes out as {mass:.3g} kg: the readings are of the other '
            "'direction', or the axes of the IMU are not those of 'sensor_H_imu'",
            about=('direction', 'sensor_H_imu'),
        )
    if found.misalignment > ROTATED:
        raise LogError(
            f'forces on {name} fit best with the axes of the IMU turned by '
            f"{np.degrees(found.misalignment):.0f} degrees: its pose in the sensor's frame is "
            "wrong, see 'sensor_H_imu'",
            about=('sensor_H_imu',),
        )


def _graded(
    found: Solution,
    rows: ToolRows,
    times: Array,
    measured: Array,
    settings: ToolSettings,
    spreads: Array,
) -> ToolFit:
    """Return what was found with what is left and deviations."""
    x, deviations = found.unknowns, found.deviations
    mass, n = float(x[0]), rows.n_inertial
    centre = x[1:4] / mass
    # c = h / m, to first order.
    to_centre = np.column_stack([-centre, np.eye(3)]) / mass
    spread = np.sqrt(np.diag(to_centre @ found.covariance[:4, :4] @ to_centre.T))
    used = found.used
    residuals = measured - rows.at(times, found.delay) @ x
    at_once = measured - rows.at(times, 0.0) @ found.without_delay
    return ToolFit(
        mass=mass,
        mass_deviation=float(deviations[0]),
        centre=centre,
        centre_deviations=spread,
        inertia=x[4:n] if settings.inertia else None,
        inertia_deviations=deviations[4:n] if settings.inertia else None,
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
