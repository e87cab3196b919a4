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
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.forest import pose_view
from inertial_estimation.model.arguments import numbers
from inertial_estimation.model.pinocchio_model import (
    free_floating_model,
    set_carried_inertias,
    supports,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import compose, cross, cross_matrix, row_pose, to_parent
from inertial_estimation.sample import Sample

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
        self._contacts: tuple[Contact, ...] | None = None
        self._joints: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._frames = np.empty((0, 4, 3))
        self._results: deque[tuple[Array, Array]] = deque(maxlen=WINDOWS)
        self._n_windows = 0
        self._positions: Array | None = None
        self._source = self._last_source = -1
        self._window: tuple[int, Array] | None = None
        self._last: tuple[int, Array] = 0, np.zeros(6)
        self._impulse = np.zeros(6)

    def set_parameters(self, parameters: Array) -> None:
        """
        Go on with other inertial parameters: those of the estimates that are added from now on.

        parameters (n_links, 10).
        """
        self._next = self._robot.with_parameters(parameters)

    def add(self, sample: Sample, estimate: WrenchEstimate) -> None:
        """Take an instant; most are passed over."""
        if not (isinstance(sample, Sample) and isinstance(estimate, WrenchEstimate)):
            raise ModelError("'sample' is no Sample, or 'estimate' no WrenchEstimate")
        stamp = sample.stamp_ns
        step = stamp - self._last[0]
        if self._window is not None and 0 <= step < PERIOD_NS:
            return
        source = self._find_source(sample, estimate)
        if self._next is not self._robot:
            self._change_parameters(sample, source)
        found = None if source is None else self._instant(sample, estimate, source)
        if found is None or source != self._source or not 0 < step <= LONGEST_STEP_NS:
            self._window = None
        self._source = -1 if source is None else source
        if found is None:
            return
        momentum, rate = found
        if self._window is not None:
            self._impulse += 0.5e-9 * step * (self._last[1] + rate)
            self._close(stamp, momentum, self._window)
        if self._window is None:
            self._window, self._impulse = (stamp, momentum), np.zeros(6)
        self._last = stamp, rate

    @property
    def imu(self) -> str:
        """Name of the IMU that was used last; empty: none yet, or the robot has a fixed frame."""
        known = self._last_source >= 0 and not self._robot.fixed_frame
        return self._robot.imus[self._last_source].name if known else ''

    @property
    def n_windows(self) -> int:
        """Windows that were full so far."""
        return self._n_windows

    @property
    def last(self) -> Array:
        """Mean force and moment of the last of them that the momentum contradicts, (2,); NaN."""
        if not self._results:
            return np.full(2, np.nan)
        norms: Array = np.linalg.norm(self._results[-1][0].reshape(2, 3), axis=1)
        return norms

    def report(self) -> MomentumReport:
        """Return the root mean squares over the last windows."""
        if not self._results:
            return MomentumReport(0, np.full(2, np.nan), np.full(2, np.nan))
        # Shape (windows, unexplained or change, force or moment, 3).
        rows = np.array(self._results).reshape(-1, 2, 2, 3)
        unexplained, change = np.sqrt((rows**2).sum(axis=-1).mean(axis=0))
        return MomentumReport(len(rows), unexplained, change)

    def deviation(self, angular_velocity: float, velocities: Array) -> Array:
        """
        Return about how much noise leaves unexplained, in the last position of the robot.

        angular_velocity [rad/s]; velocities (n_joints,) [rad/s or m/s]; returns (2,) [N].
        """
        numbers('angular_velocity', angular_velocity, (), finite=False)
        joints = (len(self._robot.joint_names),)
        velocities = numbers('velocities', velocities, joints, finite=False)
        if self._positions is None:
            return np.full(2, np.nan)
        place = self._place(self._last_source)
        if self._robot.fixed_frame:
            angular_velocity = 0.0
        # The momentum is linear in these: one column for each.
        columns = [
            self._momentum(place, self._positions, row[3:], row[:3])[0]
            for row in np.diag(np.concatenate([np.full(3, angular_velocity), velocities]))
        ]
        of_momentum = np.sqrt((np.array(columns).reshape(-1, 2, 3) ** 2).sum(axis=(0, 2)))
        # Both ends of the window, each in the momentum and in the integral of what filters made.
        return np.asarray(2.0 * of_momentum / (1e-9 * WINDOW_NS))

    def _change_parameters(self, sample: Sample, source: int | None) -> None:
        """Use the next parameters; the jump of momentum that they cause is no impulse."""
        watched = None if self._window is None else source
        before = np.zeros(6) if watched is None else self._momentum_now(sample, watched)
        set_carried_inertias(self._model, self._next, (self._joint_of, self._J_H_L))
        self._robot = self._next
        if watched is not None:
            self._impulse += self._momentum_now(sample, watched) - before

    def _close(self, stamp: int, momentum: Array, window: tuple[int, Array]) -> None:
        """Keep the result of a window that is full, and begin again."""
        begin, first = window
        if stamp - begin >= WINDOW_NS:
            span = 1e-9 * (stamp - begin)
            change = (momentum - first) / span
            self._results.append((self._impulse / span - change, change))
            self._n_windows += 1
            self._window = None

    def _find_source(self, sample: Sample, estimate: WrenchEstimate) -> int | None:
        """Return the first IMU in use with both readings; 0 with a fixed frame."""
        if self._robot.fixed_frame:
            return 0
        finite = np.isfinite(sample.angular_velocities) & np.isfinite(sample.proper_accelerations)
        rows = np.flatnonzero(estimate.used_imus & self._whole & finite.all(axis=1))
        return int(rows[0]) if len(rows) else None

    def _place(self, source: int) -> tuple[int, Array]:
        """Return link and pose of the frame of a source."""
        if self._robot.fixed_frame:
            return self._robot.frame(self._robot.fixed_frame)
        return self._robot.imus[source].link, self._robot.imus[source].L_H_S

    def _instant(
        self, sample: Sample, estimate: WrenchEstimate, source: int
    ) -> tuple[Array, Array] | None:
        """Return the momentum and its estimated rate; None: something is missing."""
        flags = np.bitwise_or.reduce(estimate.submodel_quality)
        flags |= np.bitwise_or.reduce(estimate.contact_quality, initial=0)
        if flags & Quality.MISSING:
            return None
        proper = -self._robot.gravity
        if not self._robot.fixed_frame:
            proper = sample.proper_accelerations[source]
        omega = self._turning(sample, source)
        h, R = self._momentum(self._place(source), sample.positions, sample.velocities, omega)
        self._positions, self._last_source = sample.positions, source
        rate = (self._sum(estimate) @ R).reshape(6)
        rate[:3] -= self._robot.mass * proper
        rate -= cross(omega, h.reshape(2, 3)).reshape(6)
        return (h, rate) if np.isfinite([h, rate]).all() else None

    def _turning(self, sample: Sample, source: int) -> Array:
        """Return the angular velocity of a source in its axes (3,) [rad/s]."""
        return np.zeros(3) if self._robot.fixed_frame else sample.angular_velocities[source]

    def _momentum_now(self, sample: Sample, source: int) -> Array:
        """Return h in the axes of S (6,)."""
        place, omega = self._place(source), self._turning(sample, source)
        return self._momentum(place, sample.positions, sample.velocities, omega)[0]

    def _momentum(
        self, place: tuple[int, Array], positions: Array, velocities: Array, omega: Array
    ) -> tuple[Array, Array]:
        """Return h in the axes of S (6,) and the axes of S in the root link (3, 3)."""
        model, data = self._model, self._data
        q, v = pin.neutral(model), np.zeros(model.nv)
        q[7:], v[6:] = positions, velocities
        pin.forwardKinematics(model, data, q, v)
        joint = int(self._joint_of[place[0]])
        J_H_S = pin.SE3(self._J_H_L[place[0]] @ place[1])
        root_H_S = data.oMi[joint] * J_H_S
        # The root link moves such that the origin of S rests and turns as the gyroscope measures.
        lack = pin.Motion(np.zeros(3), omega) - J_H_S.actInv(data.v[joint])
        v[:6] = root_H_S.act(lack).vector
        root_h = pin.computeCentroidalMomentum(model, data, q, v).vector
        R = root_H_S.rotation
        return (root_h.reshape(2, 3) @ R).reshape(6), R

    def _sum(self, estimate: WrenchEstimate) -> Array:
        """Return the sum of external wrenches about the centre of mass, in root axes (2, 3)."""
        if estimate.contacts is not self._contacts:
            self._prepare(estimate.contacts)
        frames = compose(self._poses[self._joints], self._frames)
        rows = np.concatenate([estimate.wrenches, estimate.residuals])
        # NaN are contacts that gave way and submodels that merged: their rows are empty.
        pairs = np.nan_to_num(rows).reshape(-1, 2, 3)
        arms = cross_matrix(frames[:, 3] - self._data.com[0])
        return np.asarray(to_parent(frames, pairs, arms).sum(axis=0))

    def _prepare(self, contacts: tuple[Contact, ...]) -> None:
        """Find where these contacts and the roots of the submodels are fixed."""
        places = [self._robot.frame(contact.frame) for contact in contacts]
        places += [(submodel.root, np.eye(4)) for submodel in self._robot.submodels]
        links = np.array([link for link, _ in places], dtype=np.intp)
        self._joints = self._joint_of[links]
        self._frames = row_pose(self._J_H_L[links] @ np.array([H for _, H in places]))
        self._contacts = contacts


def is_doubtful(report: MomentumReport, deviation: Array) -> bool:
    """Return true if more is unexplained than noise (2,) [N, Nm] and a good filter leave."""
    far = report.unexplained > NOISE_FACTOR * deviation
    far &= report.unexplained > PART * report.change
    return report.windows >= LEAST_WINDOWS and bool(far.any())
