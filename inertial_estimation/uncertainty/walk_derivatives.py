# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How a motion that came through joints changes with where it came from and with the joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from inertial_estimation.estimation.forest import Forest
from inertial_estimation.estimation.link_motion import Motions, Walk
from inertial_estimation.estimation.sensor_arrays import ImuLink
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import hat
from inertial_estimation.sample import Sample

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


V_BY_Q, A_BY_Q, A_BY_V, BY_A, NOTHING = range(5)
"""Kinds of derivatives, in Pinocchio's order; a velocity has by v what acceleration has by a."""
KINDS = 5


class WalkChanges(NamedTuple):
    """
    Derivatives of the motions of the bodies that are reached, shape (n_given, n_to, 9).

    For each of the numbers that are given: angular velocity, acceleration (that of the origin of
    the link) and angular acceleration, along the axes of the body.
    """

    by_bodies: Array
    """By angular velocity, acceleration and angular acceleration of each body it comes from."""
    by_joints: Array
    """By position, velocity and acceleration of each joint on the way."""


class _Given(NamedTuple):
    """Where the derivatives by each number that is given stand among Pinocchio's."""

    velocity: Indices
    """Those of the velocities, shape (n_given,)."""
    acceleration: Indices


class WalkDerivatives(Walk):
    """A walk and its derivatives; Pinocchio has those of the motions of joints."""

    def __init__(
        self, robot: Robot, bodies: Sequence[ImuLink], forest: Forest, known: Indices
    ) -> None:
        super().__init__(robot, bodies, forest, known)
        self._given = _given(self._angular, self._linear, self._v_rows, self._model.nv)

    @property
    def sources(self) -> Indices:
        """Bodies that the motions come from, in the order of `WalkChanges.by_bodies`."""
        return self._known

    @property
    def inside(self) -> Indices:
        """Joints on the way, in the order of `WalkChanges.by_joints`."""
        return self._inside

    def differentiate(self, sample: Sample, motion: Motions) -> WalkChanges:
        """Return the derivatives at one instant."""
        self.run(sample, motion)
        model, data, frame = self._model, self._data, pin.ReferenceFrame.LOCAL
        pin.computeForwardKinematicsDerivatives(model, data, self._q, self._v, self._a)
        given, n_to = self._given, len(self._at)
        parts = np.zeros((n_to, KINDS, 6, model.nv))
        for part, at in zip(parts, self._at.tolist()):
            part[:NOTHING] = pin.getJointAccelerationDerivatives(model, data, at, frame)
        parts = (self._B_X_J[:, None] @ parts).transpose(1, 3, 0, 2).reshape(-1, n_to, 6)
        v = (self._B_X_J @ self._views[0][self._at][..., None])[..., 0]
        dv, da = parts.take(given.velocity, axis=0), parts.take(given.acceleration, axis=0)
        # The sensor acceleration is the spatial one plus w x v.
        bend = np.concatenate([-hat(v[:, 3:]), hat(v[:, :3])], axis=2).swapaxes(1, 2)
        da[..., :3] -= (dv.swapaxes(0, 1) @ bend).swapaxes(0, 1)
        changes = np.concatenate([dv[..., 3:], da], axis=2)
        n_bodies = 9 * len(self._known)
        return WalkChanges(changes[:n_bodies], changes[n_bodies:])


def _given(angular: Indices, linear: Indices, joints: Indices, nv: int) -> _Given:
    """Lay out the numbers that are given: nine of each body, three of each joint."""
    bodies = np.stack([angular.reshape(-1, 3), linear.reshape(-1, 3), angular.reshape(-1, 3)], 1)
    columns = np.r_[bodies.ravel(), np.repeat(joints, 3)]

    def rows(of_bodies: tuple[int, ...], of_joints: tuple[int, ...]) -> Indices:
        kinds = np.tile(np.repeat(of_bodies, 3), len(bodies)), np.tile(of_joints, len(joints))
        places: Indices = nv * np.concatenate(kinds).astype(np.intp) + columns
        return places

    return _Given(
        rows((BY_A, NOTHING, NOTHING), (V_BY_Q, BY_A, NOTHING)),
        rows((A_BY_V, BY_A, BY_A), (A_BY_Q, A_BY_V, BY_A)),
    )
