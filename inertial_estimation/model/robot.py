# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The robot: links, joints and sensors of a URDF, with the FT sensors as cuts.

A *link* is what remains rigid after the FT joints are cut and all other fixed joints are lumped;
it is named after its topmost URDF link. Link 0 is the root. A *joint* moves and has one degree of
freedom. The order of ``link_names``, ``joint_names``, ``ft_sensors``, ``imus`` and ``submodels``
is the row order of every array of the package.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, read_only
from inertial_estimation.errors import ModelError, NameNotFound
from inertial_estimation.model.arguments import numbers
from inertial_estimation.model.sensors import FtSensor, FtSpec, Imu, LinkSensorSpec, check_unique
from inertial_estimation.model.tree import (
    Link,
    Place,
    Source,
    Submodel,
    assign_owners,
    cut_model,
    decompose,
    place_ft,
    read_frames,
    read_links,
    select_ft_specs,
)
from inertial_estimation.model.urdf import check_tree, link_sensor_tags, load_text, parse

__all__ = ['STANDARD_GRAVITY', 'Robot']

STANDARD_GRAVITY = (0.0, 0.0, -9.81)
MAX_GRAVITY = 25.0
"""Largest gravity that is accepted, that of Jupiter [m/s^2]."""
SAME_FRAME = 1e-6
"""Rotations closer than this are the same; URDF exporters print six digits or more [rad]."""
SAME_PLACE = 1e-4
"""Frames closer than this are one; URDF exporters print six digits or more [m, rad]."""
SAME_BOARD = 0.01
"""A gyroscope this close to an accelerometer, axes alike, is an IMU with it [m]."""


@dataclass(frozen=True, eq=False)
class Robot:
    """
    A robot as the estimators see it; build one with `Robot.from_urdf`.

    All arrays are read-only.
    """

    name: str
    urdf: str
    """The text it was read from."""
    links: tuple[Link, ...]
    joint_names: tuple[str, ...]
    parameters: Array
    """Inertial parameters about each link's origin, shape (n_links, 10), as in `model.inertia`."""
    frames: Mapping[str, Place]
    """
    Link and pose in it, of shape (4, 4) [m], of every URDF link, joint, accelerometer and
    gyroscope; of equal names the link's.
    """
    ft_sensors: tuple[FtSensor, ...]
    accelerometers: tuple[Imu, ...]
    gyroscopes: tuple[Imu, ...]
    imus: tuple[Imu, ...]
    fixed_frame: str
    """Frame that is at rest in the world, empty if the robot floats."""
    gravity: Array
    """Gravity in the axes of the fixed frame, shape (3,) [m/s^2]."""
    external_torque_base: str = ''
    """Frame whose link is `base`; empty: the fixed frame, else the root link."""

    @classmethod
    def from_urdf(
        cls,
        urdf: str | Path,
        *,
        joints: Iterable[str] | None = None,
        locked_positions: Mapping[str, float] | None = None,
        ft_sensors: Iterable[str | FtSpec] | None = None,
        imus: Iterable[str | LinkSensorSpec] | None = None,
        fixed_link: str = '',
        gravity: Sequence[float] = STANDARD_GRAVITY,
        external_torque_base: str = '',
    ) -> Robot:
        """
        Read a robot from a URDF.

        Parameters
        ----------
        urdf : str or Path
            The text (starts with ``<``) or the path of the file.
        joints : iterable of str, optional
            Joints to keep; the others are locked. Default: all that move.
        locked_positions : mapping of str to float, optional
            Positions of locked joints [rad or m]. Default: zero.
        ft_sensors : iterable of str or FtSpec, optional
            Sensors to cut at: names of ``<sensor type="force_torque">`` tags or descriptions.
            Default: every tag.
        imus : iterable of str or LinkSensorSpec, optional
            IMUs in use: the name of a sensor tag, a link or a joint, or a description.
            Default: none with a fixed link, otherwise each accelerometer and gyroscope of one
            link whose frames agree.
        fixed_link : str, optional
            Frame that is at rest in the world.
        gravity : sequence of float, shape (3,)
            Gravity in the axes of that frame, up to 25 in any direction [m/s^2].
        external_torque_base : str, optional
            Link, or frame on the link, that external joint torques take to be at rest. Default:
            the fixed link, else the root link.

        Returns
        -------
        Robot

        Raises
        ------
        ModelError
            If the URDF cannot be used; the message names the element.
        NameNotFound
            If a joint, frame or sensor does not exist.

        """
        text = load_text(urdf)
        root = parse(text)
        check_tree(root)
        specs = select_ft_specs(root, ft_sensors)
        model = cut_model(root, specs, joints, locked_positions or {})
        links, joint_names = read_links(model, [spec.joint for spec in specs])
        bodies = read_frames(model)
        accelerometers = _link_sensors(root, 'accelerometer', bodies)
        gyroscopes = _link_sensors(root, 'gyroscope', bodies)
        tags = {sensor.name: sensor for sensor in (*gyroscopes, *accelerometers)}
        frames = {name: (tag.link, tag.L_H_S) for name, tag in tags.items()} | bodies
        if imus is None:
            chosen = () if fixed_link else _paired(accelerometers, gyroscopes)
        else:
            given = [LinkSensorSpec(one) if isinstance(one, str) else one for one in imus]
            check_unique('IMUs', [spec.name for spec in given])
            chosen = tuple(_imu(spec, tags, bodies, frames) for spec in given)
        down = numbers('gravity', gravity, (3,))
        size = float(np.linalg.norm(down))
        if size > MAX_GRAVITY:
            raise ModelError(f"'gravity' is {size:g} m/s^2, expected up to {MAX_GRAVITY:g}")
        robot = cls(
            name=root.get('name', ''),
            urdf=text,
            links=links,
            joint_names=joint_names,
            parameters=read_only([i.toDynamicParameters() for i in model.inertias[1:]]),
            frames=frames,
            ft_sensors=tuple(place_ft(spec, links, k) for k, spec in enumerate(specs)),
            accelerometers=accelerometers,
            gyroscopes=gyroscopes,
            imus=chosen,
            fixed_frame=fixed_link,
            gravity=down,
            external_torque_base=external_torque_base,
        )
        ends = {'fixed_link': fixed_link, 'external_torque_base': external_torque_base}
        for argument, frame in ends.items():
            if frame:
                robot.frame(frame, f"'{argument}' is {frame!r}")
        return robot

    def __repr__(self) -> str:
        return f'<{self.summary}>'

    @property
    def summary(self) -> str:
        """Counts of links, joints and sensors, and the mass, in one line."""
        return (
            f"robot '{self.name}': {len(self.links)} links, {len(self.joint_names)} joints, "
            f'{self.mass:.3f} kg; used: {len(self.ft_sensors)} FT sensors, {len(self.imus)} IMUs '
            f'(URDF: {len(self.accelerometers)} accelerometers, {len(self.gyroscopes)} gyroscopes)'
        )

    @cached_property
    def link_names(self) -> tuple[str, ...]:
        """Names of the links."""
        return tuple(link.name for link in self.links)

    @cached_property
    def carried(self) -> NDArray[np.bool_]:
        """Mask of the links that each link carries, itself included, (n_links, n_links)."""
        found = np.eye(len(self.links), dtype=bool)
        for k, link in enumerate(self.links):
            if link.parent >= 0:
                found[:, k] |= found[:, link.parent]
        found.flags.writeable = False
        return found

    @cached_property
    def submodels(self) -> tuple[Submodel, ...]:
        """The tree cut at every FT sensor [T section 4.5.1]; the first one holds the root."""
        return decompose(self.links, self.ft_sensors, cut=range(len(self.ft_sensors)))

    @property
    def mass(self) -> float:
        """Total mass [kg]."""
        return float(self.parameters[:, 0].sum())

    @cached_property
    def base(self) -> int:
        """Link that is at rest for external joint torques J' f [T Remark 3.14]."""
        frame = self.external_torque_base or self.fixed_frame
        return self.frame(frame)[0] if frame else 0

    @property
    def base_frame(self) -> str:
        """Frame that external joint torques are about: the one that was named, else the link."""
        return self.external_torque_base or self.links[self.base].name

    def submodel_of(self, frame: str) -> int:
        """Return the index of the submodel that a frame belongs to."""
        link, _ = self.frame(frame)
        return next(k for k, submodel in enumerate(self.submodels) if link in submodel.links)

    def frame(self, name: str, where: str = '') -> tuple[int, Array]:
        """
        Return the link that carries a frame, and the frame's pose in it.

        Parameters
        ----------
        name : str
            URDF link, joint or sensor tag.
        where : str, optional
            For the error, as in `errors.NameNotFound`.

        Returns
        -------
        link : int
            Index of the link.
        L_H_frame : ndarray, shape (4, 4)
            Pose [m].

        Raises
        ------
        NameNotFound
            If there is no such frame.

        """
        if name not in self.frames:
            raise NameNotFound('frame', name, self.frames, where)
        return self.frames[name]

    @property
    def ft_frames(self) -> list[str]:
        """Frame of each FT sensor in tf, which has only those of links."""
        return [
            self.links[ft.child].name if np.array_equal(ft.child_H_sensor, np.eye(4)) else ft.name
            for ft in self.ft_sensors
        ]

    def frames_at(self, link: int, L_H_S: Array) -> set[str]:
        """Return the frames that coincide with a pose (4, 4) in a link."""
        return {name for name, place in self.frames.items() if same_place(place, (link, L_H_S))}

    def motion_sources(self, imus: Iterable[int]) -> tuple[NDArray[np.intp], list[Source]]:
        """Return the IMUs that some link is nearest to, or the fixed frame, as sources."""
        if self.fixed_frame:
            return np.empty(0, dtype=np.intp), [
                Source(self.fixed_frame, *self.frame(self.fixed_frame))
            ]
        chosen = list(imus)
        sources = [Source(imu.name, imu.link, imu.L_H_S) for imu in (self.imus[k] for k in chosen)]
        serving = sorted(set(assign_owners(self.links, sources)))
        return np.array([chosen[s] for s in serving], dtype=np.intp), [sources[s] for s in serving]

    def with_parameters(self, parameters: Array) -> Robot:
        """
        Return the same robot with other inertial parameters.

        Parameters
        ----------
        parameters : ndarray, shape (n_links, 10)
            As in `model.inertia`.

        Returns
        -------
        Robot

        Raises
        ------
        ModelError
            If they are no numbers.
        ShapeError
            If the shape is another.

        """
        values = numbers('parameters', parameters, self.parameters.shape, finite=False)
        # A copy keeps the cached properties of links and joints.
        other = copy(self)
        object.__setattr__(other, 'parameters', values)
        return other


def same_place(one: Place, other: Place) -> bool:
    """Return true if two frames are one."""
    return one[0] == other[0] and np.allclose(one[1], other[1], rtol=0.0, atol=SAME_PLACE)


def _link_sensors(root: Element, kind: str, bodies: Mapping[str, Place]) -> tuple[Imu, ...]:
    """Return the accelerometers or gyroscopes with a tag; bodies: links and joints."""
    found = []
    for name, urdf_link, pose in link_sensor_tags(root, kind):
        if urdf_link not in bodies:
            raise ModelError(f"{kind} '{name}' is on link '{urdf_link}', which is none")
        link, L_H_U = bodies[urdf_link]
        found.append(Imu(name, name, link, read_only(L_H_U @ pose), kind))
    return tuple(found)


def _paired(accelerometers: Iterable[Imu], gyroscopes: Iterable[Imu]) -> tuple[Imu, ...]:
    """Return the IMUs that accelerometers and gyroscopes of one link and place make."""

    def is_board(one: Imu, other: Imu) -> bool:
        turned = np.abs(one.L_H_S[:3, :3] - other.L_H_S[:3, :3]).max()
        distance = np.linalg.norm(one.L_H_S[:3, 3] - other.L_H_S[:3, 3])
        return bool(one.link == other.link and turned < SAME_FRAME and distance < SAME_BOARD)

    imus, free = [], list(gyroscopes)
    for acc in accelerometers:
        partner = next((gyro for gyro in free if is_board(acc, gyro)), None)
        if partner is not None:
            free.remove(partner)
            imus.append(Imu(acc.name, acc.name, acc.link, acc.L_H_S))
    return tuple(imus)


def _imu(
    spec: LinkSensorSpec,
    tags: Mapping[str, Imu],
    bodies: Mapping[str, Place],
    frames: Mapping[str, Place],
) -> Imu:
    """Return the IMU of a specification; a sensor wins over a link of the same name."""
    frame, noise = spec.frame or spec.name, (spec.accelerometer_noise, spec.gyroscope_noise)
    if frame not in frames:
        where = f"IMU '{spec.name}' is at '{frame}' (imu.{spec.name}.frame, else its name)"
        raise NameNotFound('frame', frame, frames, where)
    tag = tags.get(frame)
    place = bodies[frame] if tag is None else (tag.link, tag.L_H_S)
    if spec.pose is None:
        return Imu(spec.name, frame, *place, spec.measures, *noise)
    if frame not in bodies or not same_place(place, bodies[frame]):
        raise ModelError(f"IMU '{spec.name}' has a pose in sensor '{frame}', not in a link")
    # Its readings are in a frame of its own, which only its name stands for.
    link, L_H_F = bodies[frame]
    return Imu(spec.name, spec.name, link, read_only(L_H_F @ spec.pose), spec.measures, *noise)
