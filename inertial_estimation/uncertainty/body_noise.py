# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Noise of the motions of bodies that do not have just one whole IMU.

There several sensors are averaged, and what a body lacks comes through the joints. So the noise
of one reading reaches several bodies, and that of a joint too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from inertial_estimation.estimation.forest import Forest
from inertial_estimation.estimation.link_motion import MotionPlan, Motions, Walk
from inertial_estimation.estimation.sensor_arrays import ImuLink, array_of, mean_of
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import hat
from inertial_estimation.sample import Sample
from inertial_estimation.uncertainty.products import product

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


TURN, SHIFT, SPIN = (slice(k, k + 3) for k in (0, 3, 6))
"""Signals of an IMU and of a body, in the order of their covariances."""
IMU_FIELDS = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')


class BodyChanges(NamedTuple):
    """What one standard deviation of each source does to the motions of bodies."""

    joints: Indices
    """Joints through which a motion comes."""
    changes: Array
    """
    First of three sources for each of these joints, then of those of the IMUs in threes, shape
    (n_joints + n, 3, 3 n_serving, 3): axes of the bodies; angular velocity, proper and angular
    acceleration.
    """


class BodyNoise:
    """
    What noise of joints and IMUs does to the motions of the bodies of one plan.

    imu_roots (n_imus, 3, 3).
    """

    def __init__(
        self, robot: Robot, plan: MotionPlan, arrays: bool, imu_roots: Array, *, combined: bool
    ) -> None:
        bodies = plan.layout.imu_links
        self._leads = np.array([body.lead for body in bodies])
        self._joints = np.array(sorted(plan.joints), dtype=np.intp)
        self._sources = _sources(robot, bodies, arrays, imu_roots, combined)
        self._shaken = np.flatnonzero([bool(body.accelerometers) for body in bodies])
        self._levers = _Points(
            [mean_of(bodies[b], robot, 'accelerometer')[1] for b in self._shaken]
        )
        self._spun = np.flatnonzero([arrays and body.is_array for body in bodies])
        self._array_levers = np.array(
            [array_of(bodies[b], robot)[1].reshape(3, 3, 3) for b in self._spun]
        )
        measured = (
            [bool(body.gyroscopes) for body in bodies],
            [body.is_array for body in bodies],
            [bool(body.accelerometers) for body in bodies],
        )
        self._walks = [
            None
            if forest is None
            else WalkDerivatives(robot, bodies, forest, np.flatnonzero(known))
            for forest, known in zip(plan.layout.forests, measured, strict=True)
        ]
        # Origins of the frames from those of the links, in the axes of the frames.
        origins = [body.L_H_B[:3, :3].T @ body.L_H_B[:3, 3] for body in bodies]
        last = self._walks[2]
        self._origins = None if last is None else _Points([origins[b] for b in last.to])
        self._arrays = arrays

    def changes(self, sample: Sample, serving: Indices, joint_roots: Array) -> BodyChanges:
        """
        Return what one standard deviation of each source does to the motions of bodies.

        joint_roots (n_joints, 3, 3).
        """
        m = len(self._joints)
        own = np.zeros((m, 3, m, 3))
        own[np.arange(m), :, np.arange(m)] = joint_roots[self._joints].swapaxes(1, 2)
        moved = np.concatenate([np.zeros((len(self._leads), 3 * m, 9)), self._sources], axis=1)
        self._spread(sample, own.reshape(3 * m, m, 3), moved)
        at = [self._leads.tolist().index(row) for row in serving.tolist()]
        asked = moved[at].reshape(len(at), -1, 3, 3, 3).transpose(1, 2, 0, 4, 3)
        return BodyChanges(self._joints, asked.reshape(-1, 3, 3 * len(at), 3))

    def _spread(self, sample: Sample, joints: Array, moved: Array) -> None:
        """Carry changes of the means of the bodies' sensors, and of joints, to all motions."""
        leads, shaken, walk = self._leads, self._shaken, self._walks[2]
        turn, shift, spin = (getattr(sample, name)[leads] for name in IMU_FIELDS)
        motion = Motions(turn, spin, shift)
        self._carry(0, (TURN,) if self._arrays else (TURN, SPIN), sample, motion, joints, moved)
        if self._arrays:
            by_turn = _swings(self._array_levers, turn[self._spun])
            moved[self._spun, :, SPIN] -= moved[self._spun, :, TURN] @ by_turn.swapaxes(1, 2)
            self._carry(1, (SPIN,), sample, motion, joints, moved)
        moved[shaken, :, SHIFT] -= self._levers.leap(turn[shaken], moved[shaken])
        self._carry(2, (SHIFT,), sample, motion, joints, moved)
        if walk is not None and self._origins is not None:
            to = walk.to
            moved[to, :, SHIFT] += self._origins.leap(turn[to], moved[to])

    def _carry(
        self, number: int, signals: tuple[slice, ...],
        sample: Sample, motion: Motions, joints: Array, moved: Array,
    ) -> None:  # fmt: skip
        """Carry changes of some signals through the joints of a walk."""
        walk = self._walks[number]
        if walk is None:
            return
        n_to, (by_bodies, by_joints) = len(walk.to), walk.differentiate(sample, motion)
        given = moved[walk.sources].swapaxes(0, 1).reshape(moved.shape[1], len(by_bodies))
        reached = product(given, by_bodies.reshape(len(by_bodies), 9 * n_to))
        inside = np.searchsorted(self._joints, walk.inside)
        given = joints[:, inside].reshape(len(joints), len(by_joints))
        reached[: len(joints)] += product(given, by_joints.reshape(len(by_joints), 9 * n_to))
        found = reached.reshape(len(reached), n_to, 9).swapaxes(0, 1)
        for signal in signals:
            moved[walk.to, :, signal] = found[..., signal]


class _Points:
    """One point of each of some bodies, from the origin, in the axes of its frame [m]."""

    def __init__(self, positions: Sequence[Array]) -> None:
        self._positions = np.array(positions)
        self._by_signals = np.zeros((len(positions), 9, 3))
        self._by_signals[:, SPIN] = hat(self._positions)

    def leap(self, turn: Array, moved: Array) -> Array:
        """Return the change of ``dw x r + w x (w x r)`` with both motions, (n_bodies, n, 3)."""
        outer = turn[:, :, None] * self._positions[:, None]
        along = np.einsum('bii->b', outer)[:, None, None] * np.eye(3)
        self._by_signals[:, TURN] = along + outer.swapaxes(1, 2) - 2.0 * outer
        found: Array = moved @ self._by_signals
        return found


def _sources(
    robot: Robot, bodies: tuple[ImuLink, ...], arrays: bool, roots: Array, combined: bool
) -> Array:
    """Return what sources do to the means of the bodies' sensors, shape (n_bodies, n, 9)."""
    n_imus, n_bodies = len(robot.imus), len(bodies)
    # Body; IMU, axis of it, source; signal and axis of the body.
    found = np.zeros((n_bodies, n_imus, 3, 3, 9))
    for b, body in enumerate(bodies):
        parts = [(TURN, 0, 'gyroscope'), (SHIFT, 1, 'accelerometer')]
        if not arrays:
            parts.append((SPIN, 2, 'gyroscope'))
        elif body.is_array:
            parts.append((SPIN, 1, 'array'))
        for signal, of, kind in parts:
            rows = list(body.gyroscopes if kind == 'gyroscope' else body.accelerometers)
            if rows:
                mean = array_of(body, robot) if kind == 'array' else mean_of(body, robot, kind)
                blocks = np.einsum('kia,kc->kaci', mean[0], roots[rows, of])
                found[b, rows, :, :, signal] += blocks
    each: Array = found.reshape(n_bodies, 9 * n_imus, 9)
    return _combined(each) if combined else each


def _combined(sources: Array) -> Array:
    """Return as few sources as disturb each body alike: a triangular root of its covariance."""
    pieces = []
    for b, own in enumerate(sources):
        measured = np.repeat(own.reshape(-1, 3, 3).any(axis=(0, 2)), 3)
        piece = np.zeros((len(sources), measured.sum(), 9))
        piece[b][:, measured] = np.linalg.qr(own[:, measured], mode='r')
        pieces.append(piece)
    return np.concatenate(pieces, axis=1)


def _swings(levers: Array, turn: Array) -> Array:
    """Return the derivative of ``lever : w x w x`` by w, (n, 3, 3, 3) and (n, 3)."""
    w = turn[:, None, None]
    ahead, behind = (levers * w).sum(axis=3), (levers * w.swapaxes(2, 3)).sum(axis=2)
    traces = np.trace(levers, axis1=2, axis2=3)
    by_turn: Array = ahead + behind - 2.0 * traces[:, :, None] * turn[:, None]
    return by_turn
