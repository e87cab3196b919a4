# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The equations of a log that a fault of it breaks, and their residuals.

They are the balances of the submodels [T 4.19], joint torques against efforts [T 4.24], and each
IMU against its prediction from others [T 4.2, 4.4]. Constant FT offsets are free in each of them,
friction and drive inertia in those of torques.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.signal import savgol_filter

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.model.link_motions import (
    Motion,
    link_motions,
    poses_in_parents,
    poses_in_root,
)
from inertial_estimation.model.regressor import (
    free_sides,
    joint_axis,
    net_wrench_regressor,
    wrench_to_root,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensor_models import accelerometer, gyroscope
from inertial_estimation.model.spatial import wrench_transform
from inertial_estimation.sample import SampleBatch

PERIOD, WINDOW = 0.01, 0.15
"""Of samples that are compared, and of the filter of all signals [s]."""
SLIP = 0.02
"""Velocity over which friction changes its sign [rad/s or m/s]."""


class Equation(NamedTuple):
    """One kind of equations, k at each of n instants: value minus measured is zero."""

    kind: str
    name: str
    touched: bool
    """A contact may act."""
    value: Array
    measured: Array
    """Without the part of the FT sensors; shape (n, k), as the value."""
    loads: Array
    """Its slopes by the readings of FT sensors, (n, k, n_fts, 6)."""
    links: Array
    """Share of each link in the value, and slopes by its centre of mass, (n, k, n_links, 4)."""
    nuisance: Array
    """Columns that are free, (n, k, p)."""

    def take(self, rows: slice) -> Equation:
        """Return those of some instants."""
        return Equation(*self[:3], *(part[rows] for part in self[3:]))


class Fit:
    """The residuals of equations at some instants, without what is free in them."""

    def __init__(self, found: Sequence[Equation], readings: Array) -> None:
        self.equations, self.readings = found, readings
        self.raw: list[Array] = []
        self.kept: list[Mask] = []
        self.bases: list[Array] = []
        for b, one in enumerate(found):
            own = one.loads.any(axis=(0, 1, 3))
            felt = np.einsum('nksi,nsi->nk', one.loads[:, :, own], readings[:, own])
            r = one.value - one.measured - felt
            C = np.concatenate([one.loads.reshape(*r.shape, -1), one.nuisance], axis=2)
            self.kept.append(np.isfinite(r).all(axis=1) & np.isfinite(C).all(axis=(1, 2)))
            C = _flat(C[self.kept[b]])
            C = C / np.maximum(np.linalg.norm(C, axis=0), 1e-12)
            values, vectors = np.linalg.eigh(C.T @ C)
            used = values > 1e-8 * max(1.0, values.max(initial=0.0))
            self.bases.append(C @ (vectors[:, used] / np.sqrt(values[used])))
            self.raw.append(self.free(b, r))
        self.squares = np.array([mean_square(r) for r in self.raw])

    def free(self, b: int, values: Array) -> Array:
        """Return values (n, k, ...) of equations b without what is free in them, flat."""
        flat, Q = _flat(values[self.kept[b]]), self.bases[b]
        return np.asarray(flat - Q @ (Q.T @ flat))

    def moved(self, changes: dict[int, Array], readings: Array | None = None) -> Fit:
        """Return the fit with residuals of some equations less changes (n, k)."""
        fit = copy(self)
        fit.raw, fit.squares = list(self.raw), self.squares.copy()
        fit.readings = self.readings if readings is None else readings
        for b, change in changes.items():
            fit.raw[b] = self.raw[b] - self.free(b, change)
            fit.squares[b] = mean_square(fit.raw[b])
        return fit


def _flat(values: Array) -> Array:
    return values.reshape(values.shape[0] * values.shape[1], *values.shape[2:])


def mean_square(values: Array) -> float:
    """Return the mean square, NaN of nothing."""
    return float(np.mean(values**2)) if values.size else np.nan


def on_grid(samples: SampleBatch) -> SampleBatch:
    """Return all signals at even times, through one filter; few still poses as they are."""
    t = 1e-9 * (samples.stamp_ns - samples.stamp_ns[0])
    if len(t) < 2 or np.median(np.diff(t)) > WINDOW:
        return samples
    grid = np.arange(0.0, t.max(), PERIOD)

    def smooth(array: Array, order: int = 0) -> Array:
        columns = array.reshape(len(array), -1)
        found = np.full((len(grid), columns.shape[1]), np.nan)
        for k, column in enumerate(columns.T):
            known = np.flatnonzero(np.isfinite(column))
            if len(known) > 1:
                found[:, k] = np.interp(grid, t[known], column[known], np.nan, np.nan)
                after = np.clip(np.searchsorted(t[known], grid), 1, len(known) - 1)
                found[t[known][after] - t[known][after - 1] > WINDOW, k] = np.nan
        if found.size:
            window = 2 * round(0.5 * WINDOW / PERIOD) + 1
            found = savgol_filter(found, window, 3, order, PERIOD, axis=0, mode='nearest')
        return found.reshape(len(grid), *array.shape[1:])

    q, w, a = samples.positions, samples.angular_velocities, samples.proper_accelerations
    return SampleBatch(
        samples.stamp_ns[0] + (1e9 * grid).astype(np.int64),
        smooth(q), smooth(q, 1), smooth(q, 2), smooth(w), smooth(a), smooth(w, 1),
        smooth(samples.ft_readings),
        efforts=None if samples.efforts is None else smooth(samples.efforts),
    )  # fmt: skip


def equations(
    robot: Robot, x: SampleBatch, effort_rates: Array, touched: frozenset[int]
) -> list[Equation]:
    """Return all equations; effort_rates (n, n_joints); touched: links that may have contacts."""
    poses, n = poses_in_parents(robot, x.positions), len(x)
    n_links, n_fts, found = len(robot.links), len(robot.ft_sensors), []
    motions = link_motions(robot, x, poses, motion_sources(robot))
    Y = net_wrench_regressor(Motion(*(np.concatenate(part) for part in zip(*motions))))
    Y, inertias = Y.reshape(-1, n, 6, 10), robot.parameters[:, None, :, None]
    # The net wrench of each link [T 4.9], and its change with its centre of mass.
    net = np.concatenate([Y @ inertias, inertias[:, :, :1] * Y[..., 1:4]], axis=3)
    held = robot.frame(robot.fixed_frame)[0] if robot.fixed_frame else -1
    for submodel in robot.submodels:
        placed, may = poses_in_root(robot, submodel, poses), touched & {*submodel.links}
        links, loads = np.zeros((n, 6, n_links, 4)), np.zeros((n, 6, n_fts, 6))
        for k in submodel.links:
            links[:, :, k] = wrench_to_root(placed[k], net[k])
        at = np.full(n_fts, -1)
        for f in submodel.sensors:
            sensor = robot.ft_sensors[f]
            X = np.broadcast_to(wrench_transform(sensor.child_H_sensor), (n, 6, 6))
            if f == submodel.root_sensor:
                at[f], sign = submodel.root, -sensor.direction
            else:
                at[f], sign = sensor.parent, sensor.direction
                X = wrench_to_root(poses[sensor.child], X)
            loads[:, :, f] = sign * wrench_to_root(placed[at[f]], X)
        ground = held if held in submodel.links else -1
        for kind, axes in (('force', slice(3)), ('moment', slice(3, 6))):
            if ground < 0 and submodel.sensors:
                value, zero = links[:, axes, :, 0].sum(axis=2), np.zeros((n, 3))
                found.append(Equation(
                    kind, submodel.name, bool(may), value, zero, loads[:, axes], links[:, axes],
                    np.zeros((n, 3, 0)),
                ))  # fmt: skip
        for side in free_sides(robot, submodel, ground):
            j = side.joint
            if x.efforts is None or np.isfinite(x.efforts[:, j]).sum() < 2:
                continue
            axis = side.sign * joint_axis(placed[side.child], robot.links[side.child].motion)
            masks = np.isin(at, side.links), np.isin(np.arange(n_links), side.links)
            slopes, own = (
                np.einsum('ni,nikp->nkp', axis, np.where(mask[:, None], part, 0.0))[:, None]
                for part, mask in zip((loads, links), masks, strict=True)
            )
            v, value = x.velocities[:, j], own[..., 0].sum(axis=2)
            free = [np.ones(n), v, np.tanh(v / SLIP), x.accelerations[:, j], effort_rates[:, j]]
            found.append(Equation(
                'torque', robot.joint_names[j], not may.isdisjoint(side.links), value,
                x.efforts[:, j, None], slopes, own, np.stack(free, axis=1)[:, None],
            ))  # fmt: skip
    g, predicted = np.full((n, 1), np.linalg.norm(robot.gravity)), predicted_imus(robot, x)
    for k, imu in enumerate(robot.imus):
        a = x.proper_accelerations[:, k]
        for kind, value, measured in (
            ('gyroscope', predicted[0, :, k], x.angular_velocities[:, k]),
            ('accelerometer', predicted[1, :, k], a),
            ('gravity', g, np.linalg.norm(a, axis=1)[:, None]),
        ):
            loads, links, nothing = (
                np.broadcast_to(0.0, (*value.shape, *shape))
                for shape in ((n_fts, 6), (n_links, 4), (0,))
            )
            if np.isfinite(value).any():
                one = Equation(kind, imu.name, False, value, measured, loads, links, nothing)
                found.append(one)
    return found


def predicted_imus(robot: Robot, samples: SampleBatch) -> Array:
    """Return angular velocity and proper acceleration of each IMU by others, (2, n, n_imus, 3)."""
    found = np.full((2, len(samples), len(robot.imus), 3), np.nan)
    poses = poses_in_parents(robot, samples.positions)
    whole = [k for k, imu in enumerate(robot.imus) if imu.measures == 'both']
    for k, imu in enumerate(robot.imus):
        others = [m for m in whole if m != k]
        if others or robot.fixed_frame:
            w, dw, a = link_motions(robot, samples, poses, others)[imu.link]
            found[:, :, k] = (
                gyroscope(w, imu.L_H_S), accelerometer(w, np.hstack([a, dw]), imu.L_H_S)
            )  # fmt: skip
    return found


def motion_sources(robot: Robot) -> list[int]:
    """Return the IMUs that the motion is from: whole ones, else accelerometers."""
    kinds = [imu.measures for imu in robot.imus]
    best = 'both' if 'both' in kinds else 'accelerometer'
    return [k for k, kind in enumerate(kinds) if kind == best]
