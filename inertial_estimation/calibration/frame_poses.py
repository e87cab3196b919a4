# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Where the frames of a robot are at the instants of a log, and what moves between them."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from inertial_estimation.estimation.forest import build_geometry, pose_view
from inertial_estimation.estimation.transforms import (
    compose,
    cross_matrix,
    row_pose,
    to_child,
    to_parent,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Place = tuple[int, Array]
"""A link, and the pose of a frame in it."""


class FramePoses:
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
        """
        Return where a frame is.

        Returns (n, 4, 3) [m].
        """
        link, L_H_F = place
        geometry = self._geometry
        local = row_pose(geometry.support_H_L[link] @ L_H_F)
        return compose(self._poses[:, geometry.support[link]], local)

    def to_root(self, place: Place, wrenches: Array) -> Array:
        """
        Move wrenches from a frame to the root link's.

        wrenches (n, m, 6) [N, Nm]; returns (n, m, 6).
        """
        pose = self.of(place)[:, None]
        pairs = wrenches.reshape(*wrenches.shape[:2], 2, 3)
        moved = to_parent(pose, pairs, cross_matrix(pose[..., 3, :]))
        return moved.reshape(wrenches.shape)

    def from_root(self, place: Place, wrenches: Array) -> Array:
        """
        Move wrenches from the root link's frame to another.

        wrenches (n, m, 6) [N, Nm]; returns (n, m, 6).
        """
        pose = self.of(place)[:, None]
        pairs = wrenches.reshape(*wrenches.shape[:2], 2, 3)
        return to_child(pose, pairs, cross_matrix(pose[..., 3, :])).reshape(wrenches.shape)

    def axes_to_root(self, place: Place, vectors: Array) -> Array:
        """
        Turn vectors from the axes of a frame to the root link's.

        vectors (n, 3); returns (n, 3).
        """
        turned: Array = (vectors[:, None] @ self.of(place)[:, :3])[:, 0]
        return turned

    def axes_from_root(self, place: Place, vectors: Array) -> Array:
        """
        Turn vectors from the root link's axes to those of a frame.

        vectors (n, 3); returns (n, 3).
        """
        turned: Array = (self.of(place)[:, :3] @ vectors[..., None])[..., 0]
        return turned


def proper_acceleration(robot: Robot, samples: SampleBatch, poses: FramePoses) -> Array:
    """
    Return the proper acceleration of the fixed link, or of the first IMU that tells.

    Returns (n, 3) [m/s^2].
    """
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
