# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Changes of the generalised forces of the forest by noise of the motion and parameter errors.

Where a link does not have just one whole IMU, several sensors are averaged, and what a link lacks
comes through the joints: the noise of one reading reaches several links, and that of a joint too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.estimation.balance import Forest
from inertial_estimation.estimation.dynamics import Dynamics
from inertial_estimation.estimation.link_motion import MotionPlan, Motions, Walk
from inertial_estimation.estimation.sensor_arrays import ImuLink
from inertial_estimation.model.inertia import inertia_seen_from, parameters_of, spatial_inertia
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import cross_matrix, hat
from inertial_estimation.sample import Sample

V_BY_Q, A_BY_Q, A_BY_V, BY_A, NOTHING = range(5)
"""Derivatives in Pinocchio's order; a velocity has by v what acceleration has by a."""
TURN, SHIFT, SPIN = (slice(k, k + 3) for k in (0, 3, 6))
"""Signals of an IMU and of a link, in the order of their covariances."""
IMU_FIELDS = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')


class WalkDerivatives(Walk):
    """A walk and its derivatives; Pinocchio has those of the motions of joints."""

    def __init__(self, imu_links: Sequence[ImuLink], forest: Forest, known: Indices) -> None:
        super().__init__(imu_links, forest, known)
        self.sources, self.inside = self._known, self._inside
        # Nine numbers of each source, three of each joint: where their derivatives are.
        angular, linear = self._angular.reshape(-1, 3), self._linear.reshape(-1, 3)
        columns = np.stack([angular, linear, angular], 1).ravel()
        columns = np.concatenate([columns, np.repeat(self._v_rows, 3)])

        def places(of_links: tuple[int, ...], of_joints: tuple[int, ...]) -> Indices:
            links = np.tile(np.repeat(of_links, 3), len(angular))
            kinds = np.concatenate([links, np.tile(of_joints, len(self._v_rows))])
            return np.asarray(self._model.nv * kinds.astype(np.intp) + columns)

        self._by_velocity = places((BY_A, NOTHING, NOTHING), (V_BY_Q, BY_A, NOTHING))
        self._by_acceleration = places((A_BY_V, BY_A, BY_A), (A_BY_Q, A_BY_V, BY_A))

    def differentiate(self, sample: Sample, motion: Motions) -> tuple[Array, Array]:
        """
        Return derivatives by angular velocity, acceleration, angular acceleration of sources.

        Then by position, velocity and acceleration of each joint inside: (n_given, n_to, 9) both.
        """
        self.run(sample, motion)
        model, data, frame = self._model, self._data, pin.ReferenceFrame.LOCAL
        pin.computeForwardKinematicsDerivatives(model, data, self._q, self._v, self._a)
        n_to = len(self._at)
        parts = np.zeros((n_to, NOTHING + 1, 6, model.nv))
        for part, at in zip(parts, self._at.tolist()):
            part[:NOTHING] = pin.getJointAccelerationDerivatives(model, data, at, frame)
        parts = (self._B_X_J[:, None] @ parts).transpose(1, 3, 0, 2).reshape(-1, n_to, 6)
        v = (self._B_X_J @ self._views[0][self._at][..., None])[..., 0]
        dv, da = parts.take(self._by_velocity, axis=0), parts.take(self._by_acceleration, axis=0)
        # The sensor acceleration is the spatial one plus w x v.
        bend = np.concatenate([-hat(v[:, 3:]), hat(v[:, :3])], axis=2).swapaxes(1, 2)
        da[..., :3] -= (dv.swapaxes(0, 1) @ bend).swapaxes(0, 1)
        changes = np.concatenate([dv[..., 3:], da], axis=2)
        n_sources = 9 * len(self.sources)
        return changes[:n_sources], changes[n_sources:]


class LinkMotionNoise:
    """Noise of the motions of the links of one plan; imu_roots (n_imus, 3, 3)."""

    def __init__(self, plan: MotionPlan, imu_roots: Array) -> None:
        self._plan, links = plan, plan.imu_links
        self.joints = np.array(sorted(plan.joints), dtype=np.intp)
        """Joints through which a motion comes."""
        self._sources = _sources(plan, imu_roots)
        known = plan.turning, plan.spun, plan.shaken
        self._walks = [
            None if forest is None else WalkDerivatives(links, forest, rows)
            for forest, rows in zip(plan.forests, known, strict=True)
        ]

    def changes(self, sample: Sample, serving: Indices, joint_roots: Array) -> Array:
        """
        Return the changes of the motions of links by one standard deviation of each source.

        Of three sources for each joint in `joints`, then those of the IMUs in threes, in axes of
        links, (n_joints + n, 3, 3 n_serving, 3); serving: IMUs; joint_roots (n_joints, 3, 3).
        """
        plan, m = self._plan, len(self.joints)
        joints: Array = np.zeros((m, 3, m, 3))
        joints[np.arange(m), :, np.arange(m)] = joint_roots[self.joints].swapaxes(1, 2)
        joints = joints.reshape(3 * m, m, 3)
        moved = np.concatenate([np.zeros((len(plan.leads), 3 * m, 9)), self._sources], axis=1)
        turn, shift, spin = (getattr(sample, name)[plan.leads] for name in IMU_FIELDS)
        motion, spun, shaken = Motions(turn, spin, shift), plan.spun, plan.shaken

        def carry(number: int, *signals: slice) -> None:
            """Carry changes of some signals through the joints of a walk."""
            walk = self._walks[number]
            if walk is None:
                return
            inside, n_to = np.searchsorted(self.joints, walk.inside), len(walk.to)
            by_links, by_joints = (
                each.reshape(len(each), 9 * n_to) for each in walk.differentiate(sample, motion)
            )
            given = moved[walk.sources].swapaxes(0, 1).reshape(moved.shape[1], len(by_links))
            reached = given @ by_links
            given = joints[:, inside].reshape(len(joints), len(by_joints))
            reached[: len(joints)] += given @ by_joints
            found = reached.reshape(len(reached), n_to, 9).swapaxes(0, 1)
            for signal in signals:
                moved[walk.to, :, signal] = found[..., signal]

        if plan.arrays:
            carry(0, TURN)
            # By the derivative of ``lever : w x w x`` by w.
            levers, w = plan.array_levers.reshape(-1, 3, 3, 3), turn[spun][:, None, None]
            by_turn = (levers * w).sum(axis=3) + (levers * w.swapaxes(2, 3)).sum(axis=2)
            by_turn -= 2.0 * np.trace(levers, axis1=2, axis2=3)[:, :, None] * turn[spun][:, None]
            moved[spun, :, SPIN] -= moved[spun, :, TURN] @ by_turn.swapaxes(1, 2)
            carry(1, SPIN)
        else:
            carry(0, TURN, SPIN)
        moved[shaken, :, SHIFT] -= _leap(plan.levers, turn[shaken], moved[shaken])
        carry(2, SHIFT)
        if (walk := self._walks[2]) is not None:
            moved[walk.to, :, SHIFT] += _leap(walk.origins, turn[walk.to], moved[walk.to])
        at = [plan.leads.tolist().index(row) for row in serving.tolist()]
        asked = moved[at].reshape(len(at), -1, 3, 3, 3).transpose(1, 2, 0, 4, 3)
        return asked.reshape(-1, 3, 3 * len(at), 3)


def _sources(plan: MotionPlan, roots: Array) -> Array:
    """Return changes of the means of links, (n_links, n, 9), by roots of their covariances."""
    # Link; IMU, axis of it, source; signal and axis of the link.
    found = np.zeros((len(plan.leads), len(roots), 3, 3, 9))
    parts = [(plan.gyroscopes, plan.turning, TURN, 0)]
    parts.append((plan.accelerometers, plan.shaken, SHIFT, 1))
    if plan.arrays:
        parts.append((plan.array, plan.spun, SPIN, 1))
    else:
        parts.append((plan.gyroscopes, plan.turning, SPIN, 2))
    for sums, links, signal, of in parts:
        blocks = sums.matrix_T.reshape(len(sums.rows), 3, len(links), 3)
        changes = np.einsum('kiba,kc->bkica', blocks, roots[sums.rows, of])
        found[links[:, None], sums.rows, :, :, signal] += changes
    pieces = []
    for k, own in enumerate(found.reshape(len(found), -1, 9)):
        measured = np.repeat(own.reshape(-1, 3, 3).any(axis=(0, 2)), 3)
        piece = np.zeros((len(found), measured.sum(), 9))
        piece[k][:, measured] = np.linalg.qr(own[:, measured], mode='r')
        pieces.append(piece)
    return np.concatenate(pieces, axis=1)


def _leap(positions: Array, turn: Array, moved: Array) -> Array:
    """Return the change of ``dw x r + w x (w x r)`` with both motions, (n_links, n, 3)."""
    r = positions[..., 0]
    outer = turn[:, :, None] * r[:, None]
    by_signals = np.zeros((len(r), 9, 3))
    by_signals[:, SPIN] = -cross_matrix(r)
    along = np.einsum('bii->b', outer)[:, None, None] * np.eye(3)
    by_signals[:, TURN] = along + outer.swapaxes(1, 2) - 2.0 * outer
    return np.asarray(moved @ by_signals)


class MotionDerivatives:
    """
    Derivatives of the forest's inverse dynamics by the readings.

    The roots of the trees have the readings of their IMUs as velocity and acceleration.
    """

    def __init__(self, dynamics: Dynamics) -> None:
        forest, nv = dynamics.forest, dynamics.forest.model.nv
        tops = forest.top_rows[: len(dynamics.imus)]
        joints = np.maximum(forest.joint_rows, 0)
        rows = np.concatenate([forest.top_rows.ravel(), joints])
        # Where the derivatives by joints, gyroscopes and accelerometers are in memory.
        self._joints, self._angular, self._linear = (
            nv * rows + columns.ravel()[:, None] for columns in (joints, tops[:, 3:], tops[:, :3])
        )
        self._signals = np.zeros((len(joints) + tops.size // 2, 3, len(rows)))
        self._between = np.flatnonzero(forest.joint_rows < 0)
        self._n_tops = forest.top_rows.size

    def noise(
        self,
        dynamics: Dynamics,
        joint_roots: Array,
        imu_roots: Array,
        links: tuple[Indices, Array] | None,
    ) -> Array:
        """
        Return the effect on generalised forces, (n_joints + 3 n_serving, 3, 6 n_tops + n_joints).

        joint_roots (n_joints, 3, 3); imu_roots (n_serving, 3, 3); links: as of `LinkMotionNoise`.
        """
        d, signals, n = dynamics, self._signals, len(joint_roots)
        by_q, by_v, by_a = pin.computeRNEADerivatives(d.forest.model, d.forest_data, d.q, d.v, d.a)
        # The mass matrix is symmetric, and kept by columns.
        by_q, by_v, by_a = by_q.reshape(-1), by_v.reshape(-1), by_a.T.reshape(-1)
        for rows, each, columns in (
            (slice(n), (by_q, by_v, by_a), (self._joints,) * 3),
            (slice(n, None), (by_v, by_a, by_a), (self._angular, self._linear, self._angular)),
        ):
            for k, (values, places) in enumerate(zip(each, columns, strict=True)):
                signals[rows, k] = values.take(places, mode='clip')
        if len(self._between):
            signals[self._between] = 0.0
            signals[:, :, self._n_tops + self._between] = 0.0
        if links is None:
            roots = np.concatenate([joint_roots, np.repeat(imu_roots, 3, axis=0)])
            return np.asarray(roots.swapaxes(1, 2) @ signals)
        # Noise of a joint or an IMU reaches several links.
        joints, changes = links
        n_columns = signals.shape[2]
        by_link = signals[n:].reshape(-1, n_columns)
        spread = changes.reshape(-1, len(by_link)) @ by_link
        spread = spread.reshape(len(changes), 3, n_columns)
        mixed = np.concatenate([joint_roots.swapaxes(1, 2) @ signals[:n], spread[len(joints) :]])
        mixed[joints] += spread[: len(joints)]
        return mixed


class ParameterNoise:
    """
    Errors of inertial parameters in one forest; roots (n_links, 10, r), independent by submodel.

    Pinocchio's joint torque regressor has the factors, for links in frames of the forest's joints.
    """

    def __init__(self, robot: Robot, dynamics: Dynamics, roots: Array) -> None:
        forest = dynamics.forest
        self._between = forest.top_rows.size + np.flatnonzero(forest.joint_rows < 0)
        self._rows = np.concatenate([forest.top_rows.ravel(), np.maximum(forest.joint_rows, 0)])
        units, self._parts = spatial_inertia(np.eye(10)), []
        for submodel in robot.submodels:
            uncertain = roots[list(submodel.links)].any(axis=(0, 1))
            carriers = [(*forest.carriers[k], roots[k][:, uncertain]) for k in submodel.links]
            seen = [
                parameters_of(inertia_seen_from(units, J_H_L.homogeneous)).T @ own
                for _, J_H_L, own in carriers
            ]
            # Pinocchio counts joints from one.
            first = np.array([10 * (joint - 1) for joint, *_ in carriers], dtype=np.intp)
            columns = (first[:, None] + np.arange(10)).ravel()
            self._parts.append((columns, np.concatenate(seen)))

    def changes(self, dynamics: Dynamics) -> Array:
        """Return their effect on generalised forces, (6 n_tops + n_joints, n_columns) [N, Nm]."""
        d = dynamics
        factors = pin.computeJointTorqueRegressor(d.forest.model, d.forest_data, d.q, d.v, d.a)
        factors = factors[self._rows]
        factors[self._between] = 0.0
        return np.hstack([factors[:, columns] @ root for columns, root in self._parts])
