# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Accelerometers, gyroscopes and IMUs of a robot: from tags and specifications to their places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from xml.etree.ElementTree import Element

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError, NameNotFound
from inertial_estimation.model import urdf as urdf_text
from inertial_estimation.model.sensors import (
    Imu,
    LinkSensor,
    LinkSensorSpec,
    check_unique,
    read_only,
)

Place = tuple[int, Array]
"""Index of a link, and a pose in it of shape (4, 4) [m]."""

KINDS = ('accelerometer', 'gyroscope')
SAME_FRAME = 1e-6
"""Rotations closer than this are the same; URDF exporters print six digits or more [rad]."""
SAME_PLACE = 1e-4
"""Frames closer than this are one; URDF exporters print six digits or more [m, rad]."""
SAME_BOARD = 0.01
"""A gyroscope this close to an accelerometer, axes alike, is an IMU with it [m]."""


def same_place(one: Place, other: Place) -> bool:
    """Return true if two frames are one."""
    return one[0] == other[0] and np.allclose(one[1], other[1], rtol=0.0, atol=SAME_PLACE)


class InertialSensors:
    """The accelerometers and gyroscopes with a tag, and the IMUs that they make."""

    def __init__(self, root: Element, bodies: Mapping[str, Place]) -> None:
        self._bodies = bodies
        """Links and joints of the URDF."""
        self._tags: dict[str, dict[str, LinkSensor]] = {kind: {} for kind in KINDS}
        for kind, found in self._tags.items():
            for name, urdf_link, pose in urdf_text.link_sensor_tags(root, kind):
                if urdf_link not in bodies:
                    raise ModelError(f"{kind} '{name}' is on link '{urdf_link}', which is none")
                link, L_H_U = bodies[urdf_link]
                found[name] = LinkSensor(name, link, read_only(L_H_U @ pose))
        self.accelerometers, self.gyroscopes = (tuple(self._tags[k].values()) for k in KINDS)
        self._by_name = self._tags['gyroscope'] | self._tags['accelerometer']
        self.frames = {**{n: (s.link, s.L_H_S) for n, s in self._by_name.items()}, **bodies}
        """Every frame with a name; of equal names the link's, then the accelerometer's."""

    def pairs(self) -> tuple[Imu, ...]:
        """Return the IMUs that accelerometers and gyroscopes make."""
        imus, free = [], list(self.gyroscopes)
        for acc in self.accelerometers:
            partner = next((gyro for gyro in free if not _apart(acc, gyro)), None)
            if partner is not None:
                free.remove(partner)
                imus.append(Imu(acc.name, acc.name, acc.link, acc.L_H_S))
        return tuple(imus)

    def imus(self, chosen: Iterable[str | LinkSensorSpec]) -> tuple[Imu, ...]:
        """Return IMUs by name or by specification."""
        specs = [LinkSensorSpec(given) if isinstance(given, str) else given for given in chosen]
        check_unique('IMUs', [spec.name for spec in specs])
        found = []
        for spec in specs:
            # With a pose its readings are in a frame of its own, which only its name stands for.
            frame = (spec.frame or spec.name) if spec.pose is None else spec.name
            noise = spec.accelerometer_noise, spec.gyroscope_noise
            found.append(Imu(spec.name, frame, *self._place(spec), spec.measures, *noise))
        return tuple(found)

    def _place(self, spec: LinkSensorSpec) -> Place:
        """Return the place of a specification; a sensor wins over a link of the same name."""
        frame, bodies = spec.frame or spec.name, self._bodies
        if frame in self._by_name:
            place = self._by_name[frame].link, self._by_name[frame].L_H_S
            if spec.pose is None:
                return place
            if frame not in bodies or not same_place(place, bodies[frame]):
                raise ModelError(
                    f"IMU '{spec.name}' has a pose in sensor '{frame}', not in a link"
                )
        if frame not in bodies:
            where = f"IMU '{spec.name}' is at '{frame}' (imu.{spec.name}.frame, else its name)"
            raise NameNotFound('frame', frame, self.frames, where)
        link, L_H_F = bodies[frame]
        return link, L_H_F if spec.pose is None else read_only(L_H_F @ spec.pose)


def _apart(one: LinkSensor, other: LinkSensor) -> bool:
    """Return true if two sensors are too far apart, or turned, to be one IMU."""
    turned = np.abs(one.L_H_S[:3, :3] - other.L_H_S[:3, :3]).max()
    distance = np.linalg.norm(one.L_H_S[:3, 3] - other.L_H_S[:3, 3])
    return one.link != other.link or not turned < SAME_FRAME or not distance < SAME_BOARD
