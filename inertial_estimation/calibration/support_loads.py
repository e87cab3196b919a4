# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What FT sensors should read while nothing but some supports touches the robot [T section 4.7].

The wrenches of the supports add up to the net wrench of the whole robot [T 4.27]. A sensor with
all supports on one side is told by the net wrenches of the other side [T 4.28]. Where supports
stand on both sides the sensor feels how they share the load, which nothing tells: the shortest
wrenches that add up stand in for it, and what else is possible is told as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from inertial_estimation.estimation.balance import subtrees
from inertial_estimation.estimation.contact_forces import noise_scale
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.forest import build_geometry, pose_view
from inertial_estimation.estimation.transforms import (
    compose,
    cross_matrix,
    row_pose,
    to_child,
    to_parent,
)
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
ASSUMED = np.uint8(Quality.ASSUMED)
Place = tuple[int, Array]
"""A link, and the pose of a frame in it."""


@dataclass(frozen=True, eq=False)
class SupportLoads:
    """What FT sensors should read at some instants, as they count wrenches."""

    readings: Array
    """
    Shape (n, n_fts, 6), [force; torque] in each sensor's frame [N, Nm]; NaN where what it rests
    on is missing. Of all ways to share the load that of the shortest support wrenches.
    """
    freedom: Array
    """
    What the readings may be besides, shape (n, n_fts, 6, 6 (m - 1)) for m supports: one column
    for each way to change how the load is shared, a newton strong. Zero for a sensor that is told.
    """
    beyond: Mask
    """Which supports each sensor has on the side of its child link, shape (n_fts, m)."""
    assumed: Mask
    """Sensors whose readings rest on a joint that nobody reports, shape (n_fts,)."""
    gravity: Array
    """Gravity in each sensor's axes as what moves the robot tells it, (n, n_fts, 3) [m/s^2]."""

    def take(self, rows: Mask) -> SupportLoads:
        """
        Return some of the instants.

        Parameters
        ----------
        rows : ndarray of bool, shape (n,)
            Which.

        Returns
        -------
        SupportLoads

        """
        return replace(
            self,
            readings=self.readings[rows],
            freedom=self.freedom[rows],
            gravity=self.gravity[rows],
        )

    @property
    def shared(self) -> Mask:
        """Sensors with supports on both sides, shape (n_fts,)."""
        return np.asarray(self.beyond.any(axis=1) & ~self.beyond.all(axis=1))


def free_estimate(estimator: WrenchEstimator, samples: SampleBatch) -> WrenchEstimate:
    """
    Estimate as if no FT sensor read anything and nothing touched the robot.

    Parameters
    ----------
    estimator : WrenchEstimator
        Robot and inertial parameters; its contacts and its calibration do not matter.
    samples : SampleBatch
        Joints and IMUs; the FT readings do not matter.

    Returns
    -------
    WrenchEstimate
        The residuals are the net wrenches of the submodels.

    Raises
    ------
    ShapeError, ModelError
        As `WrenchEstimator.batch`.

    """
    bare = WrenchEstimator(estimator.robot, acceleration_arrays=estimator.motion.arrays)
    return bare.batch(replace(samples, ft_readings=np.zeros_like(samples.ft_readings)))


def support_loads(
    robot: Robot,
    samples: SampleBatch,
    free: WrenchEstimate,
    supports: Sequence[str],
    length_scale: float,
) -> SupportLoads:
    """
    Predict what FT sensors read.

    Parameters
    ----------
    robot : Robot
        Links, sensors and frames.
    samples : SampleBatch
        Joints and IMUs.
    free : WrenchEstimate
        From `free_estimate` of them.
    supports : sequence of str
        Frames at which the environment acts, with any wrench.
    length_scale : float
        A moment of this size counts as a force of one where the shortest wrenches are sought [m].

    Returns
    -------
    SupportLoads

    Raises
    ------
    FrameNotFound
        If there is no such frame.

    """
    places = [robot.frame(support, "'supports' names it") for support in supports]
    net = free.residuals
    assumed = np.logical_or.reduce(free.submodel_quality & ASSUMED != 0, axis=0)
    poses = _Poses(robot, samples)
    n, m, n_fts = len(samples), len(places), len(robot.ft_sensors)
    subtree = subtrees(robot)
    beyond = np.array(
        [[link in subtree[s.child] for link, _ in places] for s in robot.ft_sensors], dtype=bool
    ).reshape(n_fts, m)
    held = np.array(
        [[s.root in subtree[ft.child] for s in robot.submodels] for ft in robot.ft_sensors],
        dtype=bool,
    ).reshape(n_fts, -1)
    moved = [
        poses.to_root((s.root, np.eye(4)), net[:, k, None])[:, 0]
        for k, s in enumerate(robot.submodels)
    ]
    net_at_root = np.stack(moved, axis=1)
    split = _Split(poses, places, net_at_root.sum(axis=1), length_scale)
    readings, freedom = np.empty((n, n_fts, 6)), np.zeros((n, n_fts, 6, 6 * (m - 1)))
    resting = np.zeros(n_fts, dtype=bool)
    gravity = np.empty((n, n_fts, 3))
    upward = _proper_acceleration(robot, samples, poses)
    for k, sensor in enumerate(robot.ft_sensors):
        place = sensor.child, sensor.child_H_sensor
        # Parent on child: the side beyond is held by it, or it holds all but that side.
        rests_on = held[k] if not beyond[k].all() else ~held[k]
        through = net_at_root[:, rests_on].sum(axis=1) * (-1.0 if beyond[k].all() else 1.0)
        if beyond[k].any() and not beyond[k].all():
            rests_on = np.ones_like(held[k])
            through = through - split.wrenches[:, beyond[k]].sum(axis=1)
            columns = -split.freedom[:, beyond[k]].sum(axis=1)
            local = poses.from_root(place, columns.swapaxes(1, 2))
            freedom[:, k] = -sensor.direction * local.swapaxes(1, 2)
        readings[:, k] = -sensor.direction * poses.from_root(place, through[:, None])[:, 0]
        resting[k] = assumed[rests_on].any()
        gravity[:, k] = -poses.axes_from_root(place, upward)
    return SupportLoads(readings, freedom, beyond, resting, gravity)


class _Poses:
    """
    Where the frames of a robot are, instant by instant.

    A joint that is missing is put at zero: its submodel's net wrench is missing as well, and with
    it every reading that rests on where it stands.
    """

    def __init__(self, robot: Robot, samples: SampleBatch) -> None:
        self._geometry = build_geometry(robot)
        data = self._geometry.model.createData()
        view = pose_view(data)
        positions = np.where(np.isfinite(samples.positions), samples.positions, 0.0)
        self._poses = np.empty((len(positions), *view.shape))
        for k, q in enumerate(np.ascontiguousarray(positions)):
            pin.forwardKinematics(self._geometry.model, data, q)
            self._poses[k] = view

    def of(self, place: Place) -> Array:
        """Return the row poses of a frame in the root link, (n, 4, 3) [m]."""
        link, L_H_F = place
        geometry = self._geometry
        local = row_pose(geometry.support_H_L[link] @ L_H_F)
        return compose(self._poses[:, geometry.support[link]], local)

    def to_root(self, place: Place, wrenches: Array) -> Array:
        """Move wrenches, (n, m, 6), from a frame to the root link's."""
        pose = self.of(place)[:, None]
        pairs = wrenches.reshape(*wrenches.shape[:2], 2, 3)
        moved = to_parent(pose, pairs, cross_matrix(pose[..., 3, :]))
        return moved.reshape(wrenches.shape)

    def from_root(self, place: Place, wrenches: Array) -> Array:
        """Move wrenches, (n, m, 6), from the root link's frame to another."""
        pose = self.of(place)[:, None]
        pairs = wrenches.reshape(*wrenches.shape[:2], 2, 3)
        return to_child(pose, pairs, cross_matrix(pose[..., 3, :])).reshape(wrenches.shape)

    def axes_to_root(self, place: Place, vectors: Array) -> Array:
        """Turn vectors, (n, 3), from the axes of a frame to the root link's."""
        turned: Array = (vectors[:, None] @ self.of(place)[:, :3])[:, 0]
        return turned

    def axes_from_root(self, place: Place, vectors: Array) -> Array:
        """Turn vectors, (n, 3), from the root link's axes to those of a frame."""
        turned: Array = (self.of(place)[:, :3] @ vectors[..., None])[..., 0]
        return turned


class _Split:
    """The shortest wrenches of supports that add up, and what changes them without a sum."""

    def __init__(
        self, poses: _Poses, places: Sequence[Place], total: Array, length_scale: float
    ) -> None:
        n, m = len(total), len(places)
        units = np.broadcast_to(np.diag(noise_scale(length_scale)), (n, 6, 6))
        # One row for each unknown: what a unit of it adds, in newtons all.
        rows = np.concatenate([poses.to_root(place, units) for place in places], axis=1)
        u, s, vt = np.linalg.svd(rows, full_matrices=True)
        known: Mask = np.logical_and.reduce(np.isfinite(total), axis=1)
        image = (vt @ np.where(known[:, None], total, 0.0)[..., None])[..., 0] / s
        shortest = (u[..., :6] @ image[..., None])[..., 0]
        owned = rows.reshape(n, m, 6, 6)
        self.wrenches = (shortest.reshape(n, m, 1, 6) @ owned)[:, :, 0]
        """Of each support about the root link's origin, shape (n, m, 6) [N, Nm]."""
        self.wrenches[~known] = np.nan
        free = u[..., 6:].reshape(n, m, 6, -1)
        self.freedom = owned.swapaxes(-1, -2) @ free
        """Their changes, likewise, one for each free combination, (n, m, 6, 6 (m - 1))."""


def _proper_acceleration(robot: Robot, samples: SampleBatch, poses: _Poses) -> Array:
    """Return the proper acceleration that is known best, in the root link's axes, (n, 3)."""
    n = len(samples)
    if robot.fixed_frame:
        return poses.axes_to_root(robot.frame(robot.fixed_frame), np.tile(-robot.gravity, (n, 1)))
    found = np.full((n, 3), np.nan)
    for k, imu in enumerate(robot.imus):
        if imu.measures == 'gyroscope':
            continue
        turned = poses.axes_to_root((imu.link, imu.L_H_S), samples.proper_accelerations[:, k])
        found = np.where(np.isfinite(found), found, turned)
    return found
