# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The equations of a log that a fault of it breaks, and their residuals.

They are the balances of the submodels [T 4.19], joint torques against efforts [T 4.24], and each
IMU against its prediction from another source [T 4.2, 4.4]. Constant FT offsets are free in each
of them, friction and drive inertia in those of torques.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.signal import savgol_filter

from inertial_estimation.arrays import Array, Indices
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
from inertial_estimation.model.tree import Source, assign_owners
from inertial_estimation.sample import SampleBatch

PERIOD, WINDOW = 0.01, 0.15
"""Of samples that are compared, and of the filter of all signals [s]."""
SLIP = 0.02
"""Velocity over which friction changes its sign [rad/s or m/s]."""


class Equation(NamedTuple):
    """One kind of equations, three or one at each instant: value minus measured is zero."""

    kind: str
    value: Array
    """Shape (n, k)."""
    measured: Array
    loads: dict[int, Array]
    """Slopes of the measured part by the readings of FT sensors, (n, k, 6)."""
    links: dict[int, Array]
    """Of each link: its share in the value, and slopes by its centre of mass, (n, k, 4)."""
    nuisance: Array
    """Columns that are free, (n, k, p)."""
    touched: bool
    """A contact may act."""
    name: str = ''

    def take(self, rows: slice) -> Equation:
        """Return those of some instants."""
        loads = {f: L[rows] for f, L in self.loads.items()}
        links = {k: C[rows] for k, C in self.links.items()}
        return self._replace(
            value=self.value[rows], measured=self.measured[rows], loads=loads, links=links,
            nuisance=self.nuisance[rows],
        )  # fmt: skip


def on_grid(samples: SampleBatch) -> SampleBatch:
    """Return all signals at even times, through one filter; few still poses as they are."""
    t = 1e-9 * (samples.stamp_ns - samples.stamp_ns[0])
    names = ('positions', 'angular_velocities', 'proper_accelerations', 'ft_readings')
    efforts = samples.positions * np.nan if samples.efforts is None else samples.efforts
    values = {name: getattr(samples, name) for name in names} | {'efforts': efforts}
    if len(t) < 2 or np.median(np.diff(t)) > WINDOW:
        return replace(samples, **values)
    grid = np.arange(0.0, t.max(), PERIOD)
    n, window = len(grid), 2 * round(0.5 * WINDOW / PERIOD) + 1

    def resampled(array: Array) -> Array:
        columns = array.reshape(len(array), -1)
        found = np.full((n, columns.shape[1]), np.nan)
        for k, column in enumerate(columns.T):
            known = np.flatnonzero(np.isfinite(column))
            if len(known) > 1:
                found[:, k] = np.interp(grid, t[known], column[known], np.nan, np.nan)
                after = np.clip(np.searchsorted(t[known], grid), 1, len(known) - 1)
                found[t[known][after] - t[known][after - 1] > WINDOW, k] = np.nan
        return found.reshape(n, *array.shape[1:])

    def smooth(array: Array, order: int = 0) -> Array:
        if not array.size:
            return array
        return np.asarray(
            savgol_filter(array, window, 3, deriv=order, delta=PERIOD, axis=0, mode='nearest')
        )

    raw = {name: resampled(value) for name, value in values.items()}
    q, w = raw['positions'], raw['angular_velocities']
    found: dict[str, Any] = {name: smooth(value) for name, value in raw.items()}
    return SampleBatch(
        stamp_ns=(samples.stamp_ns[0] + 1e9 * grid).astype(np.int64),
        velocities=smooth(q, 1),
        accelerations=smooth(q, 2),
        angular_accelerations=smooth(w, 1),
        **found,
    )


def equations(
    robot: Robot,
    x: SampleBatch,
    effort_rates: Array,
    touched: frozenset[int],
    grounds: dict[int, int],
) -> list[Equation]:
    """
    Return all equations of samples; effort_rates (n, n_joints).

    touched: links at which a contact may act; grounds: links that hold a submodel.
    """
    poses, n = poses_in_parents(robot, x.positions), len(x)
    motions = link_motions(robot, x, poses, motion_sources(robot))
    Y = net_wrench_regressor(Motion(*(np.concatenate(part) for part in zip(*motions))))
    Y, inertias = Y.reshape(-1, n, 6, 10), robot.parameters[:, None, :, None]
    # The net wrench of each link [T 4.9], and its change with its centre of mass.
    net = np.concatenate([Y @ inertias, inertias[:, :, :1] * Y[..., 1:4]], axis=3)
    efforts, found = x.efforts, []
    assert efforts is not None
    for s, submodel in enumerate(robot.submodels):
        placed = poses_in_root(robot, submodel, poses)
        links = {k: wrench_to_root(placed[k], net[k]) for k in submodel.links}
        at: dict[int, int] = {}
        loads: dict[int, Array] = {}
        for f in submodel.sensors:
            sensor = robot.ft_sensors[f]
            X = np.broadcast_to(wrench_transform(sensor.child_H_sensor), (n, 6, 6))
            if f == submodel.root_sensor:
                at[f], sign = submodel.root, -sensor.direction
            else:
                at[f], sign = sensor.parent, sensor.direction
                X = wrench_to_root(poses[sensor.child], X)
            loads[f] = sign * wrench_to_root(placed[at[f]], X)
        ground = grounds.get(s, -1)
        if ground < 0 and loads:
            for kind, axes in (('force', slice(3)), ('moment', slice(3, 6))):
                own = {k: wrench[:, axes] for k, wrench in links.items()}
                value = np.sum(list(own.values()), axis=0)[..., 0]
                slopes = {f: load[:, axes] for f, load in loads.items()}
                zero, none = np.zeros((n, 3)), np.zeros((n, 3, 0))
                may = not touched.isdisjoint(submodel.links)
                found.append(Equation(kind, value, zero, slopes, own, none, may, submodel.name))
        for side in free_sides(robot, submodel, ground):
            measured = efforts[:, side.joint, None]
            if np.isfinite(measured).sum() < 2:
                continue
            axis = side.sign * joint_axis(placed[side.child], robot.links[side.child].motion)
            own = {k: np.einsum('ni,nij->nj', axis, links[k])[:, None] for k in side.links}
            slopes = {
                f: np.einsum('ni,nij->nj', axis, load)[:, None]
                for f, load in loads.items()
                if at[f] in side.links
            }
            v = x.velocities[:, side.joint]
            free = np.column_stack([
                np.ones(n), v, np.tanh(v / SLIP), x.accelerations[:, side.joint],
                effort_rates[:, side.joint],
            ])[:, None]  # fmt: skip
            value = np.sum(list(own.values()), axis=0)[..., 0]
            may, name = not touched.isdisjoint(side.links), robot.joint_names[side.joint]
            found.append(Equation('torque', value, measured, slopes, own, free, may, name))
    none = np.zeros((n, 3, 0))
    for kind, predicted, readings in zip(
        ('gyroscope', 'accelerometer'), predicted_imus(robot, x),
        (x.angular_velocities, x.proper_accelerations), strict=True,
    ):  # fmt: skip
        found += [
            Equation(kind, predicted[:, k], readings[:, k], {}, {}, none, False, imu.name)
            for k, imu in enumerate(robot.imus)
            if np.isfinite(predicted[:, k]).any()
        ]
    g = float(np.linalg.norm(robot.gravity))
    sizes = np.linalg.norm(x.proper_accelerations, axis=2)
    found += [
        Equation('gravity', np.full((n, 1), g), sizes[:, k, None], {}, {}, none[:, :1], False,
                 imu.name)
        for k, imu in enumerate(robot.imus)
    ]  # fmt: skip
    return found


def imu_sources(robot: Robot) -> Indices:
    """
    Return the row of the IMU that predicts each IMU, (n_imus,).

    That is the nearest other one that measures both quantities, -1 if there is none; with a fixed
    link, which comes after all IMUs, it is that.
    """
    n_imus = len(robot.imus)
    if robot.fixed_frame:
        return np.full(n_imus, n_imus, dtype=np.intp)
    found = np.full(n_imus, -1, dtype=np.intp)
    whole = [m for m, imu in enumerate(robot.imus) if imu.measures == 'both']
    for k, imu in enumerate(robot.imus):
        others = [m for m in whole if m != k]
        if others:
            sources = [Source(robot.imus[m].name, robot.imus[m].link, np.eye(4)) for m in others]
            owners = assign_owners(robot.links, sources, rigid_sensors=True)
            found[k] = others[owners[imu.link]]
    return found


def predicted_imus(robot: Robot, samples: SampleBatch) -> Array:
    """Return predicted angular velocities and proper accelerations, (2, n, n_imus, 3)."""
    found = np.full((2, len(samples), len(robot.imus), 3), np.nan)
    poses, sources = poses_in_parents(robot, samples.positions), imu_sources(robot)
    left = np.flatnonzero(sources >= 0).tolist()
    while left:  # many at once: those whose sources are not among them
        group: dict[int, int] = {}
        for k in left:
            if sources[k] not in group and k not in group.values():
                group[k] = int(sources[k])
        motions = link_motions(robot, samples, poses, sorted({*group.values()}))
        for k in group:
            imu = robot.imus[k]
            w, dw, a = motions[imu.link]
            found[0, :, k] = gyroscope(w, imu.L_H_S)
            found[1, :, k] = accelerometer(w, np.hstack([a, dw]), imu.L_H_S)
        left = [k for k in left if k not in group]
    return found


def motion_sources(robot: Robot) -> list[int]:
    """Return the IMUs that the motion is from: whole ones, else accelerometers."""
    kinds = [imu.measures for imu in robot.imus]
    best = 'both' if 'both' in kinds else 'accelerometer'
    return [k for k, kind in enumerate(kinds) if kind == best]
