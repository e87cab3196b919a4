# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The MuJoCo model of the robot: servos, sensor sites, feet and ground."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from inertial_estimation.errors import ModelError
from inertial_estimation.simulation.description import Description, Placement, demo_package

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
    'hip': Servo(1500.0, 30.0, 0.1),
    'knee': Servo(1500.0, 30.0, 0.1),
    'ankle': Servo(1500.0, 30.0, 0.1),
    'torso': Servo(1500.0, 30.0, 0.1),
    'shoulder': Servo(400.0, 8.0, 0.05),
    'elbow': Servo(400.0, 8.0, 0.05),
    'wrist': Servo(300.0, 5.0, 0.03),
    'neck': Servo(300.0, 5.0, 0.03),
}


def build_model(
    description: Description,
    *,
    fixed: bool,
    imus: Mapping[str, str],
    frames: Iterable[str],
    timestep: float,
) -> Any:
    """
    Return the compiled model.

    timestep [s].
    """
    mujoco = demo_package('mujoco')
    try:
        spec = mujoco.MjSpec.from_string(description.bodies_text)
    except ValueError as error:
        raise ModelError(f'the simulator cannot read the robot description: {error}') from error
    _set_options(mujoco, spec.option, timestep)
    for joint in spec.joints:
        _add_servo(mujoco, spec, joint)
    for frame in dict.fromkeys(frames):
        _add_site(spec, f'frame/{frame}', description.placement(frame))
    _add_sensors(mujoco, spec, description, imus)
    if not fixed:
        spec.body(description.root).add_freejoint(name='base')
        _add_ground(mujoco, spec, description)
    return spec.compile()


def _set_options(mujoco: Any, option: Any, timestep: float) -> None:
    """Choose solver and integrator."""
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


def _add_servo(mujoco: Any, spec: Any, joint: Any) -> None:
    """Add the servo of a joint."""
    servo = next((s for part, s in SERVOS.items() if part in joint.name.split('_')), None)
    if servo is None:
        raise ModelError(f"no servo is known for joint '{joint.name}'")
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


def _add_sensors(
    mujoco: Any, spec: Any, description: Description, imus: Mapping[str, str]
) -> None:
    """Add FT sensors and IMUs."""
    kinds = mujoco.mjtSensor
    tags = {f'ft/{tag.name}': tag.placement for tag in description.force_torque}
    units = {f'imu/{name}': description.placement(frame) for name, frame in imus.items()}
    for site, placement in (tags | units).items():
        _add_site(spec, site, placement)
    blocks = [(kinds.mjSENS_FORCE, tags), (kinds.mjSENS_TORQUE, tags), (kinds.mjSENS_GYRO, units)]
    blocks += [(kinds.mjSENS_ACCELEROMETER, units), (kinds.mjSENS_FRAMEANGACC, units)]
    for kind, sites in blocks:
        for site in sites:
            spec.add_sensor(type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=site)


def _add_site(spec: Any, name: str, placement: Placement) -> None:
    """Add a frame to a body."""
    spec.body(placement.body).add_site(
        name=name,
        pos=placement.position,
        quat=np.roll(placement.rotation.as_quat(), 1),
    )


def _add_ground(mujoco: Any, spec: Any, description: Description) -> None:
    """Add a floor and the boxes of the feet, the only geometries that collide."""
    spec.worldbody.add_geom(
        name='ground',
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[5.0, 5.0, 0.1],
        contype=_GROUND,
        conaffinity=_FOOT,
    )
    for sole in SOLES:
        box = description.placement(sole).moved(np.array(SOLE_CENTRE), Rotation.identity())
        spec.body(box.body).add_geom(
            name=sole,
            type=mujoco.mjtGeom.mjGEOM_BOX,
            size=SOLE_HALF_SIZE,
            pos=box.position,
            quat=np.roll(box.rotation.as_quat(), 1),
            mass=0.0,
            contype=_FOOT,
            conaffinity=_GROUND,
        )
