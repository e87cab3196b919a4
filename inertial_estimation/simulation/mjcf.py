# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The MuJoCo model of the robot: servos, sensor sites, feet and ground."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from inertial_estimation.arrays import Array
from inertial_estimation.model.robot import Robot
from inertial_estimation.simulation.description import bodies_text, demo_package

SOLES = ('l_sole', 'r_sole')
SOLE_CENTRE = (0.03, 0.0, 0.01)
"""Centre of the box that stands in for a foot, in the sole frame [m]."""
SOLE_HALF_SIZE = (0.085, 0.036, 0.01)
"""Half the edges of that box: the outline of the sole [m]."""
TOLERANCE = 1e-14
"""Tolerance of the constraint solver: its residual is missing in the balance of forces."""
_FOOT, _GROUND = 1, 2


@dataclass(frozen=True)
class Servo:
    """A position servo with the inertia of its motor."""

    stiffness: float
    """[Nm/rad]"""
    damping: float
    """[Nm s/rad]"""
    rotor_inertia: float
    """Seen through the gear [kg m^2]; it never shows in an FT sensor."""


SERVOS: Mapping[str, Servo] = {
    **dict.fromkeys(('hip', 'knee', 'ankle', 'torso'), Servo(1500.0, 30.0, 0.1)),
    **dict.fromkeys(('shoulder', 'elbow'), Servo(400.0, 8.0, 0.05)),
    **dict.fromkeys(('wrist', 'neck'), Servo(300.0, 5.0, 0.03)),
}


def build_model(
    robot: Robot,
    *,
    fixed: bool,
    imus: Mapping[str, str],
    frames: Iterable[str],
    timestep: float,
) -> Any:
    """Return the compiled model; timestep [s]."""
    mujoco = demo_package('mujoco')
    spec = mujoco.MjSpec.from_string(bodies_text(robot))
    option = spec.option
    option.timestep = timestep
    # Explicit: an implicit integrator gives light, damped joints up to 20 % less acceleration
    # than it reports, and encoders would contradict IMUs and FT sensors. The rotor inertias
    # keep the explicit one stable.
    option.integrator = mujoco.mjtIntegrator.mjINT_EULER
    option.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP
    option.solver = mujoco.mjtSolver.mjSOL_NEWTON
    option.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    option.tolerance = TOLERANCE
    option.gravity = (0.0, 0.0, -9.81)
    for joint in spec.joints:
        _add_servo(mujoco, spec, joint)
    for frame in dict.fromkeys(frames):
        _add_site(spec, robot, f'frame/{frame}', robot.frame(frame))
    _add_sensors(mujoco, spec, robot, imus)
    if not fixed:
        spec.body(robot.link_names[0]).add_freejoint(name='base')
        _add_ground(mujoco, spec, robot)
    return spec.compile()


def _add_servo(mujoco: Any, spec: Any, joint: Any) -> None:
    servo = next(s for part, s in SERVOS.items() if part in joint.name.split('_'))
    joint.armature = servo.rotor_inertia
    spec.add_actuator(
        name=joint.name,
        target=joint.name,
        trntype=mujoco.mjtTrn.mjTRN_JOINT,
        gaintype=mujoco.mjtGain.mjGAIN_FIXED,
        biastype=mujoco.mjtBias.mjBIAS_AFFINE,
        gainprm=[servo.stiffness] + [0.0] * 9,
        biasprm=[0.0, -servo.stiffness, -servo.damping] + [0.0] * 7,
    )


def _add_sensors(mujoco: Any, spec: Any, robot: Robot, imus: Mapping[str, str]) -> None:
    kinds = mujoco.mjtSensor
    fts = {f'ft/{s.name}': (s.child, s.child_H_sensor) for s in robot.ft_sensors}
    units = {f'imu/{name}': robot.frame(frame) for name, frame in imus.items()}
    for site, place in (fts | units).items():
        _add_site(spec, robot, site, place)
    blocks = [(kinds.mjSENS_FORCE, fts), (kinds.mjSENS_TORQUE, fts), (kinds.mjSENS_GYRO, units)]
    blocks += [(kinds.mjSENS_ACCELEROMETER, units), (kinds.mjSENS_FRAMEANGACC, units)]
    for kind, sites in blocks:
        for site in sites:
            spec.add_sensor(type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=site)


def _add_site(spec: Any, robot: Robot, name: str, place: tuple[int, Array]) -> None:
    link, pose = place
    body = spec.body(robot.link_names[link])
    body.add_site(name=name, pos=pose[:3, 3], quat=_quaternion(pose))


def _quaternion(pose: Array) -> Array:
    """Return the rotation of a pose as w, x, y, z."""
    return np.roll(Rotation.from_matrix(pose[:3, :3]).as_quat(), 1)


def _add_ground(mujoco: Any, spec: Any, robot: Robot) -> None:
    """Add a floor and the boxes of the feet, the only geometries that collide."""
    spec.worldbody.add_geom(
        name='ground',
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[5.0, 5.0, 0.1],
        contype=_GROUND,
        conaffinity=_FOOT,
    )
    for sole in SOLES:
        link, pose = robot.frame(sole)
        spec.body(robot.link_names[link]).add_geom(
            name=sole,
            type=mujoco.mjtGeom.mjGEOM_BOX,
            size=SOLE_HALF_SIZE,
            pos=pose[:3, 3] + pose[:3, :3] @ SOLE_CENTRE,
            quat=_quaternion(pose),
            mass=0.0,
            contype=_FOOT,
            conaffinity=_GROUND,
        )
