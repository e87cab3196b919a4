# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Where wrenches of the environment are expressed: about which point, in which axes.

    l_sole: {..., xyz: [0.02, 0, -0.01], rpy: [0, 0, 1.57]}   # fixed to the frame
    tip: {..., axes: base}                                    # about the tip, in axes elsewhere

Without any of these it is the frame's own origin and axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError
from inertial_estimation.logs.setting_values import as_mapping, as_numbers
from inertial_estimation.model.link_motions import Poses, poses_in_parents
from inertial_estimation.model.regressor import poses_in_root, wrench_to_root
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.submodels import decompose
from inertial_estimation.model.urdf import pose_from_xyz_rpy

Array = NDArray[np.float64]

KEYS = ('xyz', 'rpy', 'axes')


@dataclass(frozen=True, eq=False)
class WrenchPlace:
    """Point and axes of the wrench at one frame."""

    name: str
    """Full name of the setting, for messages."""
    frame: str
    """Frame of the robot that it acts at."""
    F_H_W: Array
    """Pose in that frame of the point and, unless `axes` says others, the axes, (4, 4) [m]."""
    axes: str
    """Frame of the robot in whose axes it is; empty: those of `F_H_W`."""

    @classmethod
    def split(cls, said: object, frame: str, name: str) -> tuple[WrenchPlace, object]:
        """Read the place of a wrench from its settings."""
        if not isinstance(said, Mapping):
            return cls(name, frame, np.eye(4), ''), said
        body = as_mapping(said, name)
        axes = body.get('axes', '')
        if not isinstance(axes, str):
            raise ConfigError(f"'{name}.axes' is {axes!r}, expected the name of a frame")
        if axes and 'rpy' in body:
            raise ConfigError(f"'{name}' has both axes and rpy: keep one of them")
        xyz, rpy = (_three(body, key, name) for key in ('xyz', 'rpy'))
        rest = {key: value for key, value in body.items() if key not in KEYS}
        return cls(name, frame, pose_from_xyz_rpy(xyz, rpy), axes), rest

    def check(self, robot: Robot) -> None:
        """Raise unless a robot has the frames."""
        robot.frame(self.frame, f"'{self.name}' is a wrench at '{self.frame}'")
        if self.axes:
            robot.frame(self.axes, f"'{self.name}.axes' is '{self.axes}'")

    def at_frame(self, robot: Robot, positions: Array, wrench: Array) -> Array:
        """
        Return a wrench about the origin of its frame in its axes.

        positions (n, n_joints) [rad or m]; wrench (n, 6) [force; torque]; returns (n, 6).
        """
        n = len(wrench)
        rotations = np.broadcast_to(self.F_H_W[:3, :3], (n, 3, 3))
        if self.axes:
            rotations = _between(robot, positions, self.frame, self.axes)
        origins = np.broadcast_to(self.F_H_W[:3, 3], (n, 3))
        return wrench_to_root(Poses(rotations, origins), wrench)


def _three(body: Mapping[str, Any], key: str, name: str) -> Array:
    """Return three numbers."""
    values = as_numbers(body.get(key, [0.0, 0.0, 0.0]), f'{name}.{key}')
    if values.shape != (3,):
        raise ConfigError(f"'{name}.{key}' is {body[key]!r}, expected three numbers")
    return values


def _between(robot: Robot, positions: Array, to: str, of: str) -> Array:
    """Return the rotations to the axes of one frame from those of another, shape (n, 3, 3)."""
    (whole,) = decompose(robot.links, robot.ft_sensors, cut=())
    placed = poses_in_root(robot, whole, poses_in_parents(robot, positions))
    a, b = (placed[link].rotations @ L_H_F[:3, :3] for link, L_H_F in map(robot.frame, (to, of)))
    return np.asarray(np.swapaxes(a, 1, 2) @ b)
