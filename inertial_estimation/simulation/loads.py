# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Loads on links of the simulated robot, attached and removed at given times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.model.robot import Robot
from inertial_estimation.simulation.description import demo_package
from inertial_estimation.simulation.scenario import Load


class Loads:
    """
    Changes the inertial parameters of bodies.

    Velocities stay, as of a hand that closes around a body which moves along with it.
    """

    def __init__(self, model: Any, robot: Robot, loads: Sequence[Load]) -> None:
        self._engine, self._model, self._loads = demo_package('mujoco'), model, tuple(loads)
        # Constants of a model are computed in a posture of their own.
        self._scratch = self._engine.MjData(model) if loads else None
        places = [robot.frame(load.frame) for load in loads]
        self._places = [(model.body(robot.link_names[link]).id, H) for link, H in places]
        bodies = sorted({body for body, _ in self._places})
        self._unloaded = {k: _second_moments(self._engine, model, k) for k in bodies}
        self._carried: tuple[bool, ...] = (False,) * len(self._loads)

    def update(self, time: float) -> None:
        """Set the loads of a time [s]."""
        carried = tuple(load.start <= time < load.end for load in self._loads)
        if carried == self._carried:
            return
        self._carried = carried
        moments = {k: M.copy() for k, M in self._unloaded.items()}
        for load, (body, H), is_carried in zip(self._loads, self._places, carried, strict=True):
            if is_carried:
                center = H[:3, 3] + H[:3, :3] @ load.center
                about_center = load.inertia / 2 * np.eye(3)
                moments[body] += _pseudo_inertia(load.mass, center, about_center)
        for body, M in moments.items():
            _set_inertia(self._engine, self._model, body, M)
        self._engine.mj_setConst(self._model, self._scratch)


def _second_moments(engine: Any, model: Any, body: int) -> Array:
    """Return the pseudo-inertia of a body about its origin, shape (4, 4)."""
    nine, center, mass = np.zeros(9), model.body_ipos[body], float(model.body_mass[body])
    engine.mju_quat2Mat(nine, model.body_iquat[body])
    principal, R = model.body_inertia[body], nine.reshape(3, 3)
    return _pseudo_inertia(mass, center, R @ np.diag(principal.sum() / 2 - principal) @ R.T)


def _pseudo_inertia(mass: float, center: Array, about_center: Array) -> Array:
    """Return the pseudo-inertia from the second moments (3, 3) about the centre [kg m^2]."""
    M = np.empty((4, 4))
    M[:3, :3] = about_center + mass * np.outer(center, center)
    M[:3, 3] = M[3, :3] = mass * center
    M[3, 3] = mass
    return M


def _set_inertia(engine: Any, model: Any, body: int, M: Array) -> None:
    """Set mass, centre of mass and inertia of a body."""
    mass = M[3, 3]
    center = M[:3, 3] / mass
    moments, axes = np.linalg.eigh(M[:3, :3] - mass * np.outer(center, center))
    # Axes that make a mirror image are no rotation.
    axes[:, 0] *= np.linalg.det(axes)
    quaternion = np.zeros(4)
    engine.mju_mat2Quat(quaternion, np.ascontiguousarray(axes).reshape(9))
    model.body_mass[body], model.body_ipos[body] = mass, center
    model.body_inertia[body] = moments.sum() - moments
    model.body_iquat[body] = quaternion
