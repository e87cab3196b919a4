# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sensors of a robot: their specifications and places, and the calibration of FT sensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.model.arguments import pose_matrix

MEASURES = ('both', 'accelerometer', 'gyroscope')
"""Quantities that an IMU may measure."""
AXES = ('fx', 'fy', 'fz', 'tx', 'ty', 'tz')
"""Of the reading of an FT sensor."""


def check_unique(kind: str, names: Sequence[str]) -> None:
    """Check that no name stands twice: inputs and outputs are mapped by name."""
    for name in names:
        if names.count(name) > 1:
            raise ModelError(f"two {kind} are named '{name}'; names must be unique")


@dataclass(frozen=True, eq=False)
class FtSpec:
    """
    A six-axis FT sensor as the URDF tag, or a configuration, describes it.

    The moment is about the origin of the frame of the reading [T 4.1].

    Raises
    ------
    ModelError, ShapeError
        If the pose has the wrong shape, or no rotation in it.

    """

    name: str
    joint: str
    """Fixed joint that holds the sensor."""
    child_to_parent: bool = True
    """True: the reading is the wrench of the child side on the parent side."""
    pose: Array = field(default_factory=lambda: np.eye(4))
    """Pose of the sensor in the child link, shape (4, 4) [m]."""

    def __post_init__(self) -> None:
        pose_matrix(f"pose of FT sensor '{self.name}'", self.pose)


@dataclass(frozen=True, eq=False)
class LinkSensorSpec:
    """
    An IMU, or an accelerometer or gyroscope in its place, as a configuration describes it.

    Raises
    ------
    ModelError, ShapeError
        If the pose has the wrong shape or no rotation in it, or no frame is named for it; if it
        measures nothing that an IMU does, or its noise is negative.

    """

    name: str
    frame: str = ''
    """Place: a sensor tag, link or joint of the URDF; empty: the one of its name."""
    pose: Array | None = None
    """Pose of the sensor in that frame, then a link or joint, shape (4, 4) [m]; None: at it."""
    measures: str = 'both'
    """One of `MEASURES`."""
    accelerometer_noise: float = 1.0
    """Standard deviation, its weight beside others of its link; 0: exact [m/s^2]."""
    gyroscope_noise: float = 1.0
    """The same of the angular velocity [rad/s]."""

    def __post_init__(self) -> None:
        if self.measures not in MEASURES:
            raise ModelError(f"IMU '{self.name}' measures '{self.measures}', expected {MEASURES}")
        noise = self.accelerometer_noise, self.gyroscope_noise
        if not all(0.0 <= one < inf for one in noise):
            raise ModelError(f"noise of IMU '{self.name}' is {noise}")
        if self.pose is not None:
            pose_matrix(f"pose of sensor '{self.name}'", self.pose)
            if not self.frame:
                raise ModelError(f"sensor '{self.name}' has a pose without a frame")


@dataclass(frozen=True, eq=False)
class FtSensor:
    """A six-axis FT sensor of a robot: the fixed joint that is cut [T section 4.3.1]."""

    name: str
    joint: str
    parent: int
    """Index of the link on the side of the URDF root."""
    child: int
    """Index of the link on the other side."""
    child_H_sensor: Array
    """Pose of the sensor frame in the child link's frame, shape (4, 4) [m]."""
    direction: int
    """+1: the reading is the wrench of the child on the parent, -1: of the parent on the child."""


@dataclass(frozen=True, eq=False)
class Imu:
    """Accelerometer and gyroscope that report in one frame, or only one of the two."""

    name: str
    frame: str
    """Name of the frame of the readings; the IMU's own, where a pose places it."""
    link: int
    """Index of the link."""
    L_H_S: Array
    """Pose of the frame in the link's frame, shape (4, 4) [m]."""
    measures: str = 'both'
    """One of `MEASURES`; other quantities are not read, whatever its messages hold."""
    accelerometer_noise: float = 1.0
    """Standard deviation, of which ratios within a link count; 0: exact [m/s^2]."""
    gyroscope_noise: float = 1.0
    """The same of the angular velocity [rad/s]."""
