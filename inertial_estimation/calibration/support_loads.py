# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Predicted FT readings while only some supports touch the robot [T section 4.7].

The wrenches of the supports add up to the net wrench of the whole robot [T 4.27]. A sensor with
all supports on one side reads the net wrenches of the other side [T 4.28]. With supports on both
sides its reading depends on how they share the load, which is not determined: the smallest support
wrenches that add up give the prediction, and `SupportLoads.freedom` the alternatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.estimation.balance import subtrees
from inertial_estimation.estimation.contacts import noise_scale
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.forest import build_geometry, pose_view
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import (
    compose,
    cross_matrix,
    row_pose,
    to_child,
    to_parent,
)
from inertial_estimation.sample import SampleBatch

Place = tuple[int, Array]
"""A link, and the pose of a frame in it."""
ASSUMED = np.uint8(Quality.ASSUMED)


@dataclass(frozen=True, eq=False)
class SupportLoads:
    """Predicted readings of all FT sensors."""

    readings: Array
    """Shape (n, n_fts, 6), [force; torque] in each sensor's frame [N, Nm]; NaN: not known."""
    freedom: Array
    """
    Changes of the readings with the sharing of the load, (n, n_fts, 6, 6 (m - 1)) for m supports:
    a column for each combination of 1 N. Zero for a sensor with all supports on one side.
    """
    sides: Mask
    """Submodels that each sensor's prediction is summed over, shape (n_fts, n_submodels)."""
    beyond: Mask
    """Supports on the side of each sensor's child link, shape (n_fts, m)."""
    assumed: Mask
    """Sensors whose predictions depend on an assumed joint, shape (n_fts,)."""
    gravity: Array
    """In each sensor's axes, shape (n, n_fts, 3) [m/s^2]."""

    @property
    def shared(self) -> Mask:
        """Sensors with supports on both sides, shape (n_fts,)."""
        return np.asarray(self.beyond.any(axis=1) & ~self.beyond.all(axis=1))


def support_loads(
    estimator: WrenchEstimator, samples: SampleBatch, supports: Sequence[str], length_scale: float
) -> tuple[SupportLoads, WrenchEstimate]:
    """
    Predict the readings of all FT sensors.

    Also return the estimate without FT readings and contacts, from which they follow.
    length_scale [m]: moment over force that counts as equally large in the smallest wrenches.
    """
    robot = estimator.robot
    bare = WrenchEstimator(robot, acceleration_arrays=estimator.motion.arrays)
    free = bare.batch(replace(samples, ft_readings=np.zeros_like(samples.ft_readings)))
    places = [robot.frame(support, f"'supports' names '{support}'") for support in supports]
    poses = FramePoses(robot, samples)
    n, m, n_fts = len(samples), len(places), len(robot.ft_sensors)
    subtree = subtrees(robot)
    beyond, held = (
        np.array([[k in subtree[ft.child] for k in links] for ft in robot.ft_sensors], dtype=bool)
        .reshape(n_fts, len(links))
        for links in ([link for link, _ in places], [s.root for s in robot.submodels])
    )  # fmt: skip
    net = [
        poses.to_root((submodel.root, np.eye(4)), free.residuals[:, k, None])[:, 0]
        for k, submodel in enumerate(robot.submodels)
    ]
    net_at_root = np.stack(net, axis=1)
    wrenches, sharing = _smallest_wrenches(poses, places, net_at_root.sum(axis=1), length_scale)
    readings, freedom = np.empty((n, n_fts, 6)), np.zeros((n, n_fts, 6, 6 * (m - 1)))
    sides, gravity = np.empty_like(held), np.empty((n, n_fts, 3))
    upward = proper_acceleration(robot, samples, poses)
    for k, sensor in enumerate(robot.ft_sensors):
        place = sensor.child, sensor.child_H_sensor
        # Parent on child: what holds the side beyond, or what all but that side pulls.
        all_beyond = beyond[k].all()
        sides[k] = ~held[k] if all_beyond else held[k]
        through = net_at_root[:, sides[k]].sum(axis=1) * (-1.0 if all_beyond else 1.0)
        if beyond[k].any() and not all_beyond:
            sides[k] = True
            through = through - wrenches[:, beyond[k]].sum(axis=1)
            columns = -sharing[:, beyond[k]].sum(axis=1)
            local = poses.from_root(place, columns.swapaxes(1, 2))
            freedom[:, k] = -sensor.direction * local.swapaxes(1, 2)
        readings[:, k] = -sensor.direction * poses.from_root(place, through[:, None])[:, 0]
        gravity[:, k] = -poses.axes_from_root(place, upward)
    assumed = np.logical_or.reduce(free.submodel_quality & ASSUMED != 0, axis=0)
    depends = np.asarray((sides & assumed).any(axis=1))
    return SupportLoads(readings, freedom, sides, beyond, depends, gravity), free


def _smallest_wrenches(
    poses: FramePoses, places: Sequence[Place], total: Array, length_scale: float
) -> tuple[Array, Array]:
    """
    Return support wrenches about the root link's origin, and their changes that keep the sum.

    total (n, 6) [N, Nm]; returns (n, m, 6) [N, Nm] and (n, m, 6, 6 (m - 1)).
    """
    n, m = len(total), len(places)
    units = np.broadcast_to(np.diag(noise_scale(length_scale)), (n, 6, 6))
    # A row for each unknown: the wrench of a unit of it.
    rows = np.concatenate([poses.to_root(place, units) for place in places], axis=1)
    u, s, vt = np.linalg.svd(rows, full_matrices=True)
    known: Mask = np.logical_and.reduce(np.isfinite(total), axis=1)
    image = (vt @ np.where(known[:, None], total, 0.0)[..., None])[..., 0] / s
    shortest = (u[..., :6] @ image[..., None])[..., 0]
    owned = rows.reshape(n, m, 6, 6)
    wrenches = (shortest.reshape(n, m, 1, 6) @ owned)[:, :, 0]
    wrenches[~known] = np.nan
    return wrenches, owned.swapaxes(-1, -2) @ u[..., 6:].reshape(n, m, 6, -1)


class FramePoses:
    """
    Poses of frames in the root link at all samples.

    A missing joint is put at zero: the net wrench of its submodel is missing as well, and with it
    every prediction that depends on it.
    """

    def __init__(self, robot: Robot, samples: SampleBatch, missing: float = 0.0) -> None:
        self._geometry = build_geometry(robot)
        data = self._geometry.model.createData()
        view = pose_view(data)
        positions = np.where(np.isfinite(samples.positions), samples.positions, missing)
        self._poses = np.empty((len(positions), *view.shape))
        for k, q in enumerate(np.ascontiguousarray(positions)):
            pin.forwardKinematics(self._geometry.model, data, q)
            self._poses[k] = view

    def of(self, place: Place) -> Array:
        """Return poses of a frame as rows, (n, 4, 3) [m]."""
        link, L_H_F = place
        geometry = self._geometry
        local = row_pose(geometry.support_H_L[link] @ L_H_F)
        return compose(self._poses[:, geometry.support[link]], local)

    def to_root(self, place: Place, wrenches: Array) -> Array:
        """Move wrenches (n, m, 6) from a frame to the root link's [N, Nm]."""
        pose = self.of(place)[:, None]
        pairs = wrenches.reshape(*wrenches.shape[:2], 2, 3)
        return to_parent(pose, pairs, cross_matrix(pose[..., 3, :])).reshape(wrenches.shape)

    def from_root(self, place: Place, wrenches: Array) -> Array:
        """Move wrenches (n, m, 6) from the root link's frame to another [N, Nm]."""
        pose = self.of(place)[:, None]
        pairs = wrenches.reshape(*wrenches.shape[:2], 2, 3)
        return to_child(pose, pairs, cross_matrix(pose[..., 3, :])).reshape(wrenches.shape)

    def axes_to_root(self, place: Place, vectors: Array) -> Array:
        """Turn vectors (n, 3) from the axes of a frame to the root link's."""
        turned: Array = (vectors[:, None] @ self.of(place)[:, :3])[:, 0]
        return turned

    def axes_from_root(self, place: Place, vectors: Array) -> Array:
        """Turn vectors (n, 3) from the root link's axes to those of a frame."""
        turned: Array = (self.of(place)[:, :3] @ vectors[..., None])[..., 0]
        return turned


def proper_acceleration(robot: Robot, samples: SampleBatch, poses: FramePoses) -> Array:
    """Return that of the fixed link, or of the first IMU that is known, (n, 3) [m/s^2]."""
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
