# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Accelerometers, gyroscopes and IMUs of a robot: from tags and specifications to their places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from xml.etree.ElementTree import Element

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import FrameNotFound, ModelError
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

    An IMU is the pair of them at one frame; a specification may also place one as a whole, or name
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
        tags: dict[str, dict[str, LinkSensor]] = {kind: {} for kind in KINDS}
        for kind, found in tags.items():
            for name, urdf_link, pose in urdf_text.link_sensor_tags(root, kind):
                if urdf_link not in bodies:
                    raise ModelError(f"{kind} '{name}' is on link '{urdf_link}', which is none")
                link, L_H_U = bodies[urdf_link]
                found[name] = LinkSensor(name, link, read_only(L_H_U @ pose))
        both = tags['gyroscope'] | tags['accelerometer'], tags['accelerometer'] | tags['gyroscope']
        return cls(
            bodies,
            tags,
            _choose('accelerometer', accelerometers, bodies, tags, both[0]),
            _choose('gyroscope', gyroscopes, bodies, tags, both[1]),
        )

    @cached_property
    def frames(self) -> Mapping[str, Place]:
        """Every frame with a name; of equal names the link's, then the accelerometer's."""
        return {**{n: (s.link, s.L_H_S) for n, s in self._by_name.items()}, **self.bodies}

    def pairs(self) -> tuple[Imu, ...]:
        """Return the IMUs that accelerometers and gyroscopes in use make."""
        imus, free = [], list(self.gyroscopes)
        for acc in self.accelerometers:
            partner = next((gyro for gyro in free if not _apart(acc, gyro)), None)
            if partner is not None:
                free.remove(partner)
                imus.append(Imu(acc.name, acc.name, acc.link, acc.L_H_S))
        return tuple(imus)

    def imus(self, chosen: Iterable[str | tuple[str, str] | LinkSensorSpec]) -> tuple[Imu, ...]:
        """Return IMUs in use."""
        specs = [_specification('IMU', given) for given in chosen]
        named = {spec.frame or spec.name for spec in specs if spec.pose is None}
        check_unique('IMUs', [spec.name for spec in specs])
        return tuple(self._imu(spec, named) for spec in specs)

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
        """Return the IMU of a specification, one of several at frames that are named."""
        frame, (link, L_H_S) = self._imu_place(spec)
        measures, presumed = (spec.measures, '') if spec.measures else self._kind_at(frame, named)
        noise = spec.accelerometer_noise, spec.gyroscope_noise
        return Imu(spec.name, frame, link, L_H_S, measures, *noise, presumed)

    def _imu_place(self, spec: LinkSensorSpec) -> tuple[str, Place]:
        """Return frame and place of an IMU."""
        frame = spec.frame or spec.name
        if spec.pose is not None:
            # Its readings are in a frame of its own, which only its name stands for.
            frame = spec.name
        elif frame in self._by_name and not self._by_name[frame].has_tag and not spec.measures:
            # Many URDFs have one tag only for an IMU; a configuration has no such excuse.
            sensor = self._by_name[frame]
            is_acc = sensor in self.accelerometers
            others = self.gyroscopes if is_acc else self.accelerometers
            partner = next((other for other in others if not _apart(sensor, other)), None)
            if partner is None:
                kind, missing = KINDS if is_acc else reversed(KINDS)
                raise ModelError(
                    f"IMU '{spec.name}' is at {kind} '{sensor.name}', which has no {missing} there"
                )
            acc = sensor if is_acc else partner
            return frame, (acc.link, acc.L_H_S)
        return frame, _place('IMU', spec, self.bodies, self._by_name)

    def _kind_at(self, frame: str, named: set[str]) -> tuple[str, str]:
        """Return the quantities of an IMU at a frame, and the one of them without a tag."""
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


def _choose(
    kind: str,
    chosen: Iterable[str | LinkSensorSpec] | None,
    bodies: Mapping[str, Place],
    tags: Mapping[str, Mapping[str, LinkSensor]],
    known: Mapping[str, LinkSensor],
) -> tuple[LinkSensor, ...]:
    """Return the sensors in use: all tags, or chosen ones; of equal names this kind is known."""
    if chosen is None:
        return tuple(tags[kind].values())
    sensors = []
    for spec in (_specification(kind, given) for given in chosen):
        if spec.pose is None and not spec.frame and spec.name in tags[kind]:
            sensors.append(tags[kind][spec.name])
        else:
            place = _place(kind, spec, bodies, known)
            sensors.append(LinkSensor(spec.name, *place, has_tag=False))
    check_unique(f'{kind}s', [sensor.name for sensor in sensors])
    return tuple(sensors)


def _specification(kind: str, given: object) -> LinkSensorSpec:
    """Return a specification, also of a name alone, or of an IMU's name and frame."""
    if isinstance(given, str):
        return LinkSensorSpec(given)
    if isinstance(given, LinkSensorSpec):
        return given
    if kind == 'IMU' and isinstance(given, tuple) and len(given) == 2:
        return LinkSensorSpec(*given)
    raise ModelError(f"'{LISTS[kind]}' holds {given!r}, expected names or LinkSensorSpec")


def _place(
    kind: str,
    spec: LinkSensorSpec,
    bodies: Mapping[str, Place],
    sensors: Mapping[str, LinkSensor],
) -> Place:
    """Return the place of a specification; a sensor wins over a link of the same name."""
    frame = spec.frame or spec.name
    if frame in sensors:
        place = sensors[frame].link, sensors[frame].L_H_S
        if spec.pose is None:
            return place
        if frame not in bodies or not same_place(place, bodies[frame]):
            raise ModelError(
                f"{kind} '{spec.name}' has a pose in sensor '{frame}', expected in a link or joint"
            )
    if frame not in bodies:
        setting = f'{kind.lower()}.{spec.name}.frame'
        where, remedy = f"{kind} '{spec.name}' is at '{spec.frame}' ({setting})", ''
        if not spec.frame:
            where = f"'{LISTS[kind]}' names '{spec.name}'"
            remedy = f"or state its frame in '{setting}'"
        raise FrameNotFound(frame, {**bodies, **sensors}, where, remedy)
    link, L_H_F = bodies[frame]
    return link, L_H_F if spec.pose is None else read_only(L_H_F @ spec.pose)


def _apart(one: LinkSensor, other: LinkSensor) -> bool:
    """Return whether two sensors are too far apart, or turned, to be one IMU."""
    turned = np.abs(one.L_H_S[:3, :3] - other.L_H_S[:3, :3]).max()
    distance = np.linalg.norm(one.L_H_S[:3, 3] - other.L_H_S[:3, 3])
    return one.link != other.link or not turned < SAME_FRAME or not distance < SAME_BOARD
