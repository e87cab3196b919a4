# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Playback of a designed motion in MuJoCo, an independent check of its torques and clearances.

The simulated robot is driven by computed torques and a servo, without friction. Links that touch
are reported and exert no forces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.model.clearance import Piece, SelfClearance
from inertial_estimation.model.inertia import pseudo_inertia
from inertial_estimation.model.robot import Robot
from inertial_estimation.simulation.description import demo_package

STEP = 1e-3
"""Time step of the physics [s]."""
STIFFNESS, DAMPING = 400.0, 40.0
"""Gains of the servo over the inertia [1/s^2, 1/s]: critically damped at 20 rad/s."""
TOUCH_EVERY = 10
"""Steps between two collision checks."""


class Played(NamedTuple):
    """Results of a playback."""

    tracking: Array
    """Largest error of each joint, shape (n_joints,) [rad or m]."""
    efforts: Array
    """Largest effort of each joint, shape (n_joints,) [Nm or N]."""
    touching: tuple[str, ...]
    """Pairs of links that touched."""


def play(
    robot: Robot,
    motion: Callable[[Array], Array],
    duration: float,
    clearance: SelfClearance | None = None,
    progress: Callable[[str, float], None] = lambda what, done: None,
) -> Played:
    """Play a motion; duration [s]."""
    engine = demo_package('mujoco')
    model = _compiled(engine, robot, None)
    data = engine.MjData(model)
    wanted = motion(np.asarray(np.arange(round(duration / STEP) + 1) * STEP))
    data.qpos[:], data.qvel[:] = wanted[0, 0], wanted[1, 0]
    touch = _Touch(engine, robot, clearance) if clearance is not None else None
    tracking: Array = np.zeros(model.nv)
    efforts: Array = np.zeros(model.nv)
    torque = np.zeros(model.nv)
    for k, (q, v, a) in enumerate(np.swapaxes(wanted, 0, 1)):
        engine.mj_step1(model, data)
        tracking = np.maximum(tracking, np.abs(q - data.qpos))
        rate = a + STIFFNESS * (q - data.qpos) + DAMPING * (v - data.qvel)
        engine.mj_mulM(model, data, torque, rate)
        data.qfrc_applied[:] = torque + data.qfrc_bias
        efforts = np.maximum(efforts, np.abs(data.qfrc_applied))
        if touch is not None and not k % TOUCH_EVERY:
            touch.look(data.qpos)
        engine.mj_step2(model, data)
        if not k % 1000:
            progress('playing', k / wanted.shape[1])
    progress('playing', 1.0)
    return Played(tracking, efforts, tuple(touch.names) if touch is not None else ())


class _Touch:
    """Collision checks in a model with geometries."""

    def __init__(self, engine: Any, robot: Robot, clearance: SelfClearance) -> None:
        self.names: dict[str, None] = {}
        self._engine = engine
        self._model = _compiled(engine, robot, clearance)
        self._data = engine.MjData(self._model)
        self._clearance = clearance
        self._kept = {pair: k for k, pair in enumerate(clearance.pairs)}
        self._piece = [int(self._model.geom(g).name) for g in range(self._model.ngeom)]

    def look(self, positions: Array) -> None:
        """Note the links that touch in a posture."""
        model, data = self._model, self._data
        data.qpos[:] = positions
        self._engine.mj_kinematics(model, data)
        self._engine.mj_comPos(model, data)
        self._engine.mj_collision(model, data)
        for contact in data.contact:
            one, other = sorted(self._piece[g] for g in contact.geom)
            if contact.dist < 0.0 and (one, other) in self._kept:
                self.names[self._clearance.names(self._kept[one, other])] = None


def _compiled(engine: Any, robot: Robot, clearance: SelfClearance | None) -> Any:
    """Return the compiled model; geometries are named by the numbers of the pieces."""
    spec = engine.MjSpec()
    spec.option.timestep = STEP
    spec.option.gravity = robot.frame(robot.fixed_frame)[1][:3, :3] @ robot.gravity
    spec.option.integrator = engine.mjtIntegrator.mjINT_EULER
    spec.compiler.balanceinertia = False
    bodies = [spec.worldbody]
    for k, link in enumerate(robot.links[1:], start=1):
        body = bodies[link.parent].add_body(name=link.name)
        _place(engine, body, link.P_H_L)
        _add_joint(engine, body, link.motion)
        _weigh(body, robot.parameters[k])
        bodies.append(body)
    for p, piece in enumerate(clearance.pieces if clearance is not None else ()):
        _add_geometry(engine, spec, bodies[piece.link], p, piece)
    try:
        return spec.compile()
    except ValueError as error:
        raise ModelError(f'MuJoCo refuses the robot: {" ".join(str(error).split())}') from error


def _place(engine: Any, thing: Any, pose: Array) -> None:
    """Set the pose of a body or geometry in its parent."""
    quaternion = np.zeros(4)
    engine.mju_mat2Quat(quaternion, np.ascontiguousarray(pose[:3, :3]).reshape(9))
    thing.pos, thing.quat = pose[:3, 3], quaternion


def _add_joint(engine: Any, body: Any, motion: Array) -> None:
    """Add the joint that moves a body."""
    turns = bool(motion[3:].any())
    kinds = engine.mjtJoint
    body.add_joint(
        type=kinds.mjJNT_HINGE if turns else kinds.mjJNT_SLIDE,
        axis=motion[3:] if turns else motion[:3],
    )


def _weigh(body: Any, parameters: Array) -> None:
    """Set the inertial parameters of a body."""
    mass = float(parameters[0])
    body.explicitinertial = True
    body.mass = mass
    if not mass:
        return
    centre = parameters[1:4] / mass
    second = pseudo_inertia(parameters)[:3, :3] - mass * np.outer(centre, centre)
    inertia = np.trace(second) * np.eye(3) - second
    body.ipos = centre
    body.fullinertia = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]


def _add_geometry(engine: Any, spec: Any, body: Any, number: int, piece: Piece) -> None:
    """Add a piece to a body."""
    kinds, shape = engine.mjtGeom, piece.shape
    kind = type(shape).__name__
    sizes = {
        'Box': lambda: (kinds.mjGEOM_BOX, list(shape.halfSide)),
        'Sphere': lambda: (kinds.mjGEOM_SPHERE, [shape.radius, 0, 0]),
        'Cylinder': lambda: (kinds.mjGEOM_CYLINDER, [shape.radius, shape.halfLength, 0]),
        'Capsule': lambda: (kinds.mjGEOM_CAPSULE, [shape.radius, shape.halfLength, 0]),
    }
    geometry = body.add_geom(name=str(number))
    if kind in sizes:
        geometry.type, geometry.size = sizes[kind]()
        _place(engine, geometry, piece.L_H_P)
        return
    # Meshes are moved to their centre of mass when compiled, and their geometry with them.
    mesh = spec.add_mesh(name=str(number))
    mesh.uservert = np.array(shape.points()).reshape(-1)
    geometry.type, geometry.meshname = kinds.mjGEOM_MESH, str(number)
    _place(engine, geometry, piece.L_H_P)
