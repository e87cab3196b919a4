# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Change of momentum against the impulse of the estimated wrenches [T 2.84, 2.85, 3.83].

    h' + omega x h = sum of all external wrenches about the centre of mass - [m a^g; 0]

in the axes of S, the frame of an IMU in use or the fixed frame, with angular velocity omega and
proper acceleration a^g; h is the momentum relative to a frame that moves along with the origin of
S and does not turn. Integrated over a window the left side needs no accelerations. The wrenches
add up to the net wrenches of all links [T 4.18], so masses and FT sensors cancel: the check finds
accelerations that are not the derivatives of the velocities.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.model.pinocchio_model import (
    free_floating_model,
    pose_view,
    set_carried_inertias,
    supports,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import compose, cross, cross_matrix, row_pose, to_parent
from inertial_estimation.sample import Sample

MISSING = np.uint8(Quality.MISSING)
PERIOD_NS = 20_000_000
"""Between the samples that are looked at: fifty for each period of a motion of 1 Hz."""
LONGEST_STEP_NS = 50_000_000
"""With longer ones the integral would err by more than 1 % of a motion of 1 Hz."""
WINDOW_NS = 500_000_000
"""About half a period of the motion of a humanoid: errors of the same sign add up."""
WINDOWS = 20
"""That count in a report."""
LEAST_WINDOWS = 4
"""With fewer of them, two seconds, one event would decide."""
NOISE_FACTOR = 4.0
"""Of the standard deviation: the root mean square of four windows gets there by no chance."""
PART = 0.25
"""Of the change of momentum: right filters leave an eighth of it in the noise of the demo."""


class MomentumReport(NamedTuple):
    """Root mean squares over the last windows, forces [N] and moments [Nm]."""

    windows: int
    unexplained: Array
    """Mean force and moment of a window that the momentum contradicts, shape (2,)."""
    change: Array
    """Mean rate at which the momentum changed in a window, shape (2,)."""


class MomentumCheck:
    """Compares the change of momentum with the impulse of the wrenches, window by window."""

    def __init__(self, robot: Robot) -> None:
        self._robot = self._next = robot
        self._model = free_floating_model(robot)
        self._data = self._model.createData()
        self._joint_of, self._J_H_L = supports(robot)
        self._poses = pose_view(self._data)
        self._whole = np.array([imu.measures == 'both' for imu in robot.imus], dtype=bool)
        self._results: deque[tuple[Array, Array]] = deque(maxlen=WINDOWS)
        self._usable: tuple[int, Array] | None = None
        """Source and positions of the last instant that could be used."""
        self._source = -1
        self._window: tuple[int, Array] | None = None
        self._last: tuple[int, Array] = 0, np.zeros(6)
        self._impulse = np.zeros(6)
        self._contacts: tuple[Contact, ...] | None = None
        self._at: tuple[Indices, Array] = np.empty(0, dtype=np.intp), np.empty((0, 4, 3))
        """Joint of the model that carries each contact and submodel, and its row pose there."""

    def set_parameters(self, parameters: Array) -> None:
        """Go on with the parameters (n_links, 10) of the estimates that are added from now on."""
        if parameters is not self._next.parameters:
            self._next = self._robot.with_parameters(parameters)

    def add(self, sample: Sample, estimate: WrenchEstimate) -> Array | None:
        """Take an instant; return what a window that ends leaves unexplained, (2,) [N, Nm]."""
        stamp, source = sample.stamp_ns, self._source
        step = stamp - self._last[0]
        if self._window is not None and 0 <= step < PERIOD_NS:
            return None
        self._source = self._find_source(sample, estimate)
        if self._source != source or not 0 < step <= LONGEST_STEP_NS:
            self._window = None
        if self._next is not self._robot:
            # The jump of momentum that other parameters cause is no impulse.
            watched = self._window is not None
            before = self._momentum_now(sample)[0] if watched else 0.0
            set_carried_inertias(self._model, self._next, (self._joint_of, self._J_H_L))
            self._robot = self._next
            if watched:
                self._impulse += self._momentum_now(sample)[0] - before
        if self._source < 0:
            return None
        momentum, rate = self._momentum_and_rate(sample, estimate)
        if not np.isfinite([momentum, rate]).all():
            self._source, self._window = -1, None
            return None
        self._usable, closed = (self._source, sample.positions), None
        if self._window is not None:
            begin, first = self._window
            self._impulse += 0.5e-9 * step * (self._last[1] + rate)
            if stamp - begin >= WINDOW_NS:
                span, self._window = 1e-9 * (stamp - begin), None
                change = (momentum - first) / span
                self._results.append((self._impulse / span - change, change))
                closed = np.linalg.norm(self._results[-1][0].reshape(2, 3), axis=1)
        if self._window is None:
            self._window, self._impulse = (stamp, momentum), np.zeros(6)
        self._last = stamp, rate
        return closed

    @property
    def imu(self) -> str:
        """Name of the IMU that was used last; empty: none yet, or the robot has a fixed frame."""
        if self._usable is None or self._robot.fixed_frame:
            return ''
        return self._robot.imus[self._usable[0]].name

    def report(self) -> MomentumReport:
        """Return the root mean squares over the last windows."""
        if not self._results:
            return MomentumReport(0, np.full(2, np.nan), np.full(2, np.nan))
        # Shape (windows, unexplained or change, force or moment, 3).
        rows = np.array(list(self._results)).reshape(-1, 2, 2, 3)
        unexplained, change = np.sqrt((rows**2).sum(axis=-1).mean(axis=0))
        return MomentumReport(len(rows), unexplained, change)

    def deviation(self, angular_velocity: float, velocities: Array) -> Array:
        """Return the share of noise of the velocities (n_joints,) in the last position, (2,)."""
        if self._usable is None:
            return np.full(2, np.nan)
        turning = 0.0 if self._robot.fixed_frame else angular_velocity
        # Another thread may ask, while `add` uses its own data.
        source, positions = self._usable
        data = self._model.createData()
        # The momentum is linear in these: one column for each.
        columns = [
            self._momentum(source, positions, row[3:], row[:3], data)[0]
            for row in np.diag(np.concatenate([np.full(3, turning), velocities]))
        ]
        of_momentum = np.sqrt((np.array(columns).reshape(-1, 2, 3) ** 2).sum(axis=(0, 2)))
        # Both ends of the window, each in the momentum and in the integral of what filters made.
        return np.asarray(2.0 * of_momentum / (1e-9 * WINDOW_NS))

    def _find_source(self, sample: Sample, estimate: WrenchEstimate) -> int:
        """Return the first IMU in use with both readings, 0 with a fixed frame; -1: none."""
        flags = estimate.submodel_quality, estimate.contact_quality
        if any((own & MISSING).any() for own in flags):
            return -1
        if self._robot.fixed_frame:
            return 0
        finite = np.isfinite(sample.angular_velocities) & np.isfinite(sample.proper_accelerations)
        rows = np.flatnonzero(estimate.used_imus & self._whole & finite.all(axis=1))
        return int(rows[0]) if len(rows) else -1

    def _momentum_and_rate(self, sample: Sample, estimate: WrenchEstimate) -> tuple[Array, Array]:
        """Return h and the rate that the estimate gives it, (6,) each."""
        h, R, omega = self._momentum_now(sample)
        robot, proper = self._robot, -self._robot.gravity
        if not robot.fixed_frame:
            proper = sample.proper_accelerations[self._source]
        if estimate.contacts is not self._contacts:
            places = [robot.frame(contact.frame) for contact in estimate.contacts]
            places += [(submodel.root, np.eye(4)) for submodel in robot.submodels]
            links = [link for link, _ in places]
            local = row_pose(self._J_H_L[links] @ np.array([H for _, H in places]))
            self._contacts, self._at = estimate.contacts, (self._joint_of[links], local)
        frames = compose(self._poses[self._at[0]], self._at[1])
        rows = np.concatenate([estimate.wrenches, estimate.residuals])
        # NaN are contacts that gave way and submodels that merged: their rows are empty.
        pairs = np.where(np.isnan(rows), 0.0, rows).reshape(-1, 2, 3)
        arms = cross_matrix(frames[:, 3] - self._data.com[0])
        rate = (to_parent(frames, pairs, arms).sum(axis=0) @ R).reshape(6)
        rate[:3] -= robot.mass * proper
        return h, rate - cross(omega, h.reshape(2, 3)).reshape(6)

    def _momentum_now(self, sample: Sample) -> tuple[Array, Array, Array]:
        """Return h (6,), the axes of S in the root link (3, 3), angular velocity of S (3,)."""
        fixed = bool(self._robot.fixed_frame)
        omega = np.zeros(3) if fixed else sample.angular_velocities[self._source]
        h, R = self._momentum(self._source, sample.positions, sample.velocities, omega, self._data)
        return h, R, omega

    def _momentum(
        self, source: int, positions: Array, velocities: Array, omega: Array, data: pin.Data
    ) -> tuple[Array, Array]:
        """Return h in the axes of S (6,) and the axes of S in the root link (3, 3)."""
        robot, model = self._robot, self._model
        if robot.fixed_frame:
            link, L_H_S = robot.frame(robot.fixed_frame)
        else:
            link, L_H_S = robot.imus[source].link, robot.imus[source].L_H_S
        q, v = pin.neutral(model), np.zeros(model.nv)
        q[7:], v[6:] = positions, velocities
        pin.forwardKinematics(model, data, q, v)
        joint, J_H_S = int(self._joint_of[link]), pin.SE3(self._J_H_L[link] @ L_H_S)
        root_H_S = data.oMi[joint] * J_H_S
        # The root link moves such that the origin of S rests and turns as the gyroscope measures.
        lack = pin.Motion(np.zeros(3), omega) - J_H_S.actInv(data.v[joint])
        v[:6] = root_H_S.act(lack).vector
        root_h = pin.computeCentroidalMomentum(model, data, q, v).vector
        R = root_H_S.rotation
        return (root_h.reshape(2, 3) @ R).reshape(6), R


def is_doubtful(report: MomentumReport, deviation: Array) -> bool:
    """Return true if more is unexplained than noise (2,) [N, Nm] and a good filter leave."""
    far = report.unexplained > NOISE_FACTOR * deviation
    far &= report.unexplained > PART * report.change
    return report.windows >= LEAST_WINDOWS and bool(far.any())
