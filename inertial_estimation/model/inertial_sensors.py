# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Accelerometers, gyroscopes and IMUs of a robot: from tags and descriptions to their places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from xml.etree.ElementTree import Element

import numpy as np

from inertial_estimation.errors import FrameNotFound, ModelError
from inertial_estimation.model import urdf as urdf_text
from inertial_estimation.model.sensors import (
    Array,
    Imu,
    LinkSensor,
    LinkSensorSpec,
    check_unique,
    read_only,
)

Place = tuple[int, Array]
"""Index of a link, and a pose in it of shape (4, 4) [m]."""

KINDS = ('accelerometer', 'gyroscope')
LISTS = {'accelerometer': 'accelerometers', 'gyroscope': 'gyroscopes', 'IMU': 'imus'}
"""The list that names the sensors of a kind."""
SAME_FRAME = 1e-6
"""Rotations closer than this are the same; URDF exporters print six digits or more [rad]."""
SAME_PLACE = 1e-4
"""Frames closer than this are one; URDF exporters print six digits or more [m, rad]."""
SAME_BOARD = 0.01
"""A gyroscope this close to an accelerometer, axes alike, is an IMU with it [m]."""


def same_place(one: Place, other: Place) -> bool:
    """Return whether two frames are one."""
    return one[0] == other[0] and np.allclose(one[1], other[1], rtol=0.0, atol=SAME_PLACE)


@dataclass(frozen=True, eq=False)
class InertialSensors:
    """
    The accelerometers and gyroscopes of a robot, and the IMUs that they make.

    An IMU is the pair of them at one frame; a description may also place one as a whole, or name
    one of the two alone.
    """

    bodies: Mapping[str, Place]
    """Links and joints of the URDF."""
    tags: Mapping[str, Mapping[str, LinkSensor]]
    """Sensors with a tag by name, for ``accelerometer`` and ``gyroscope``."""
    accelerometers: tuple[LinkSensor, ...]
    """Those in use."""
    gyroscopes: tuple[LinkSensor, ...]
    """Likewise."""

    @classmethod
    def read(
        cls,
        root: Element,
        bodies: Mapping[str, Place],
        accelerometers: Iterable[str | LinkSensorSpec] | None,
        gyroscopes: Iterable[str | LinkSensorSpec] | None,
    ) -> InertialSensors:
        """Place the chosen sensors on the links."""
        accs, gyros = (_tagged(root, kind, bodies) for kind in KINDS)
        return cls(
            bodies=bodies,
            tags={'accelerometer': accs, 'gyroscope': gyros},
            accelerometers=_choose('accelerometer', accelerometers, bodies, accs, gyros),
            gyroscopes=_choose('gyroscope', gyroscopes, bodies, gyros, accs),
        )

    @cached_property
    def frames(self) -> Mapping[str, Place]:
        """Every frame with a name; of equal names the link's, then the accelerometer's."""
        return {**{n: (s.link, s.L_H_S) for n, s in self._by_name.items()}, **self.bodies}

    def pairs(self) -> tuple[Imu, ...]:
        """Return the IMUs that accelerometers and gyroscopes in use make."""
        imus = []
        free = list(self.gyroscopes)
        for acc in self.accelerometers:
            partner = next((gyro for gyro in free if not _apart(acc, gyro)), None)
            if partner is not None:
                free.remove(partner)
                imus.append(Imu(acc.name, acc.name, acc.link, acc.L_H_S))
        return tuple(imus)

    def imus(self, chosen: Iterable[str | tuple[str, str] | LinkSensorSpec]) -> tuple[Imu, ...]:
        """Return IMUs in use."""
        specs = [_described('IMU', given) for given in chosen]
        named = {spec.frame or spec.name for spec in specs if spec.pose is None}
        imus = tuple(self._imu(spec, named) for spec in specs)
        check_unique('IMUs', [imu.name for imu in imus])
        return imus

    @cached_property
    def _by_name(self) -> dict[str, LinkSensor]:
        """Every sensor; of equal names the accelerometer, and the one in use."""
        groups = (
            self.tags['gyroscope'].values(),
            self.gyroscopes,
            self.tags['accelerometer'].values(),
            self.accelerometers,
        )
        return {sensor.name: sensor for group in groups for sensor in group}

    def _imu(self, spec: LinkSensorSpec, named: set[str]) -> Imu:
        """Return the IMU of a description, one of several at frames that are named."""
        frame, link, L_H_S = self._imu_place(spec)
        measures, presumed = (spec.measures, '') if spec.measures else self._kind_at(frame, named)
        return Imu(
            spec.name,
            frame,
            link,
            L_H_S,
            measures,
            spec.accelerometer_noise,
            spec.gyroscope_noise,
            presumed,
        )

    def _imu_place(self, spec: LinkSensorSpec) -> tuple[str, int, Array]:
        """Return frame and place of a described IMU."""
        frame = spec.frame or spec.name
        if spec.pose is not None:
            # Its readings are in a frame of its own, which only its name stands for.
            frame = spec.name
        elif frame in self._by_name and not self._by_name[frame].has_tag and not spec.measures:
            # Many descriptions have one tag only for an IMU; a configuration has no such excuse.
            acc = self._accelerometer_of(spec.name, self._by_name[frame])
            return frame, acc.link, acc.L_H_S
        return frame, *_place('IMU', spec, self.bodies, self._by_name)

    def _kind_at(self, frame: str, named: set[str]) -> tuple[str, str]:
        """Return what an IMU at a frame measures, and which of it no tag shows."""
        sensor = self._by_name.get(frame)
        if sensor is None or not sensor.has_tag:
            return 'both', ''
        if all(named & set(tags) for tags in self.tags.values()):
            found = self._kinds_at(frame, sensor, named)
            return (found[0] if len(found) == 1 else 'both'), ''
        found = self._kinds_at(frame, sensor, set())
        return 'both', '' if len(found) == 2 else next(k for k in KINDS if k not in found)

    def _kinds_at(self, frame: str, sensor: LinkSensor, taken: set[str]) -> list[str]:
        """Return the kinds of which a sensor is at a frame, or beside it and not taken."""
        groups = zip(KINDS, (self.accelerometers, self.gyroscopes), strict=True)
        return [
            kind
            for kind, used in groups
            if any(
                other.name == frame or not (other.name in taken or _apart(sensor, other))
                for other in (*self.tags[kind].values(), *used)
            )
        ]

    def _accelerometer_of(self, imu: str, sensor: LinkSensor) -> LinkSensor:
        """Return the accelerometer of the pair that a described sensor belongs to."""
        is_acc = sensor in self.accelerometers
        for other in self.gyroscopes if is_acc else self.accelerometers:
            if not _apart(sensor, other):
                return sensor if is_acc else other
        kind, missing = KINDS if is_acc else reversed(KINDS)
        raise ModelError(f"IMU '{imu}' is at {kind} '{sensor.name}', which has no {missing} there")


def _tagged(root: Element, kind: str, bodies: Mapping[str, Place]) -> dict[str, LinkSensor]:
    """Place the accelerometer or gyroscope tags on the links."""
    sensors = {}
    for name, urdf_link, pose in urdf_text.link_sensor_tags(root, kind):
        if urdf_link not in bodies:
            raise ModelError(f"{kind} '{name}' sits on link '{urdf_link}', which does not exist")
        link, L_H_U = bodies[urdf_link]
        sensors[name] = LinkSensor(name, link, read_only(L_H_U @ pose))
    return sensors


def _choose(
    kind: str,
    chosen: Iterable[str | LinkSensorSpec] | None,
    bodies: Mapping[str, Place],
    tags: Mapping[str, LinkSensor],
    others: Mapping[str, LinkSensor],
) -> tuple[LinkSensor, ...]:
    """Return the sensors in use: all tags, or chosen ones."""
    if chosen is None:
        return tuple(tags.values())
    sensors = []
    for spec in (_described(kind, given) for given in chosen):
        if spec.pose is None and not spec.frame and spec.name in tags:
            sensors.append(tags[spec.name])
            continue
        place = _place(kind, spec, bodies, {**others, **tags})
        sensors.append(LinkSensor(spec.name, *place, has_tag=False))
    check_unique(f'{kind}s', [sensor.name for sensor in sensors])
    return tuple(sensors)


def _described(kind: str, given: object) -> LinkSensorSpec:
    """Return a description, also of a name alone, or of an IMU's name and frame."""
    if isinstance(given, str):
        return LinkSensorSpec(given)
    if isinstance(given, LinkSensorSpec):
        return given
    if kind == 'IMU' and isinstance(given, tuple) and len(given) == 2:
        return LinkSensorSpec(*given)
    raise ModelError(f"'{LISTS[kind]}' holds {given!r}, expected names or LinkSensorSpec")


def _missing(kind: str, spec: LinkSensorSpec, known: Iterable[str]) -> FrameNotFound:
    """Return that a sensor is where the robot has no frame."""
    setting = f'{kind.lower()}.{spec.name}.frame'
    if spec.frame:
        where = f"{kind} '{spec.name}' sits at '{spec.frame}' ({setting})"
        return FrameNotFound(spec.frame, known, where)
    where = f"'{LISTS[kind]}' names '{spec.name}'"
    return FrameNotFound(spec.name, known, where, f"or state in '{setting}' where it sits")


def _place(
    kind: str,
    spec: LinkSensorSpec,
    bodies: Mapping[str, Place],
    sensors: Mapping[str, LinkSensor],
) -> Place:
    """Return where a description puts a sensor."""
    frame = spec.frame or spec.name
    # A sensor wins over a link of the same name.
    if frame in sensors and spec.pose is None:
        return sensors[frame].link, sensors[frame].L_H_S
    if frame not in bodies and frame not in sensors:
        raise _missing(kind, spec, {**bodies, **sensors})
    if spec.pose is None:
        return bodies[frame]
    if frame in sensors:
        place = sensors[frame].link, sensors[frame].L_H_S
        if frame not in bodies or not same_place(place, bodies[frame]):
            raise ModelError(
                f"{kind} '{spec.name}' has a pose in sensor '{frame}', expected in a link or joint"
            )
    link, L_H_F = bodies[frame]
    return link, read_only(L_H_F @ spec.pose)


def _apart(one: LinkSensor, other: LinkSensor) -> bool:
    """Return whether two sensors are too far apart, or turned, to be one IMU."""
    turned = np.abs(one.L_H_S[:3, :3] - other.L_H_S[:3, :3]).max()
    distance = np.linalg.norm(one.L_H_S[:3, 3] - other.L_H_S[:3, 3])
    return one.link != other.link or not turned < SAME_FRAME or not distance < SAME_BOARD
