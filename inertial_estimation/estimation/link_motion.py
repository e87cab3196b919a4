# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Motion of each link with IMUs, from the readings of all sensors on links [T sections 4.4.2, 4.4.3].

Gyroscopes of a link are averaged by the inverse of their variances, and so are its accelerometers
after each is moved to the frame of its first IMU [T 4.11]. A motion that is not measured on a link
is carried there through the joints [T 3.7]. So the estimator sees one whole IMU for each link, in
the row of its first IMU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pinocchio as pin

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.forest import Forest, carry, motion_view
from inertial_estimation.estimation.sensor_arrays import (
    Bits,
    ImuLink,
    Layout,
    SensorSum,
    array_of,
    lay_out,
    mean_of,
    nominal_bits,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import cross, hat, motion_transform
from inertial_estimation.sample import Sample, SampleBatch

S = TypeVar('S', Sample, SampleBatch)


def replaced(sample: S, **fields: Any) -> S:
    """Return a sample, or a batch, with other fields."""
    if isinstance(sample, Sample):
        return sample._replace(**fields)
    return replace(sample, **fields)


class Motions(NamedTuple):
    """Motions of links in the axes of their frames, shape (..., n_imu_links, 3) each."""

    w: Array
    """Angular velocity [rad/s]."""
    dw: Array
    """Angular acceleration [rad/s^2]."""
    a: Array
    """Proper acceleration of the origin of the frame [m/s^2]."""


class Levers:
    """Points of some links; imu_links (n,); positions (n, 3) [m]."""

    def __init__(self, imu_links: Indices, positions: Array) -> None:
        self._imu_links = imu_links
        self._columns, self._hats = positions[..., None], hat(positions)

    def term(self, dw: Array, centripetal: Array) -> Array:
        """Return the acceleration of the points less that of the origins, (..., n, 3) [m/s^2]."""
        term = centripetal[..., self._imu_links, :, :] @ self._columns
        term -= self._hats @ dw[..., self._imu_links, :, None]
        found: Array = term[..., 0]
        return found


class Walk:
    """Carries motions from links to others through the joints."""

    def __init__(self, imu_links: Sequence[ImuLink], forest: Forest, known: Indices) -> None:
        self.to = np.setdiff1d(np.arange(len(imu_links)), known)
        """The links that are reached."""
        links = [imu_links[b].link for b in self.to]
        poses = np.array([imu_links[b].L_H_B for b in self.to])
        turned = np.tile(np.eye(4), (len(links), 1, 1))
        turned[:, :3, :3] = poses[:, :3, :3].swapaxes(1, 2)
        self.levers = Levers(self.to, (turned @ poses)[:, :3, 3])
        """Origins of their frames, from those of their links."""
        carrier, L_X_J = forest.carried()
        self._model, at = carry(forest.model, [carrier[k] for k in links])
        moved = [at[carrier[k]] for k in links]
        self._at = np.array([joint for joint, _ in moved])
        offsets = np.array([pose.inverse().homogeneous for _, pose in moved])
        self._B_X_J = motion_transform(turned) @ L_X_J[links] @ motion_transform(offsets)
        self._data = self._model.createData()
        self._views = motion_view(self._data.v), motion_view(self._data.a)
        self._lay_out_rows(forest, at, known)

    def _lay_out_rows(
        self, forest: Forest, at: Mapping[int, tuple[int, pin.SE3]], known: Indices
    ) -> None:
        """Find the rows of joints and roots in the vectors of the model."""
        old, new = forest.model.joints, self._model.joints
        moved = {old[i].idx_v: new[k] for i, (k, _) in at.items() if i}
        rows = forest.joint_rows.tolist()
        self._inside = np.array([j for j, row in enumerate(rows) if row in moved], dtype=np.intp)
        joints = [moved[rows[j]] for j in self._inside]
        self._q_rows = np.array([joint.idx_q for joint in joints], dtype=np.intp)
        self._v_rows = np.array([joint.idx_v for joint in joints], dtype=np.intp)
        tops = forest.top_rows[: len(known), 0].tolist()
        used = [s for s, row in enumerate(tops) if row in moved]
        self._known = known[used]
        starts = np.array([moved[tops[s]].idx_v for s in used], dtype=np.intp)[:, None]
        self._linear = (starts + np.arange(3)).ravel()
        self._angular = (starts + np.arange(3, 6)).ravel()
        self._q = pin.neutral(self._model)
        self._v, self._a = np.zeros((2, self._model.nv))

    def run(self, sample: Sample | SampleBatch, motion: Motions) -> Motions:
        """Return the motions of the links that are reached."""
        lead, n = motion.w.shape[:-2], len(self.to)
        count = len(sample) if isinstance(sample, SampleBatch) else 1
        given = [x[..., self._known, :].reshape(count, 3 * len(self._known)) for x in motion]
        joints = [
            np.atleast_2d(x)[:, self._inside]
            for x in (sample.positions, sample.velocities, sample.accelerations)
        ]
        motions = np.empty((2, count, n, 6))
        for i in range(count):
            self._q[self._q_rows] = joints[0][i]
            self._v[self._v_rows], self._a[self._v_rows] = joints[1][i], joints[2][i]
            self._v[self._angular] = given[0][i]
            self._a[self._angular], self._a[self._linear] = given[1][i], given[2][i]
            pin.forwardKinematics(self._model, self._data, self._q, self._v, self._a)
            for view, part in zip(self._views, motions):
                view.take(self._at, axis=0, out=part[i], mode='clip')
        v, a = (self._B_X_J @ motions[..., None])[..., 0]
        # From the spatial to the sensor acceleration: the point, not the field, is followed.
        a[..., :3] += cross(v[..., 3:], v[..., :3])
        parts = (v[..., 3:], a[..., 3:], a[..., :3])
        return Motions(*(x.reshape(*lead, n, 3) for x in parts))


PLANS_KEPT = 16
"""Each holds up to three of Pinocchio's workspaces."""


class LinkMotions:
    """The plans of a robot for any set of sensors that deliver."""

    def __init__(self, robot: Robot, *, arrays: bool = False) -> None:
        self._robot = robot
        self.arrays = arrays
        self.bits = nominal_bits(robot)
        """Quantities that each IMU delivers without faults."""
        self._plans: dict[Bits, MotionPlan] = {}
        self.nominal = MotionPlan(robot, self.bits, arrays)
        """The plan while every IMU delivers all that it measures."""
        if self.is_used and not self.nominal.layout.imu_links:
            needed = 'a gyroscope and an accelerometer'
            if arrays:
                needed += ', and three accelerometers of one link that are not on one line'
            raise ModelError(f"the IMUs of robot '{robot.name}' do not measure like {needed}")

    @property
    def is_used(self) -> bool:
        """True if IMUs are the source of the motion."""
        return bool(self.bits) and not self._robot.fixed_frame

    def plan(self, bits: Bits) -> MotionPlan:
        """Return the plan for what the IMUs deliver, new or kept."""
        if bits == self.bits:
            return self.nominal
        found = self._plans.get(bits)
        if found is None:
            if len(self._plans) >= PLANS_KEPT:
                del self._plans[next(iter(self._plans))]
            found = self._plans[bits] = MotionPlan(self._robot, bits, self.arrays)
        return found


class MotionPlan:
    """The motions of all links from the readings of one set of sensors."""

    def __init__(self, robot: Robot, bits: Bits, arrays: bool) -> None:
        if robot.fixed_frame:
            bits = (0,) * len(bits)
        self.layout: Layout = lay_out(robot, bits, arrays=arrays)
        imu_links = self.layout.imu_links
        self._arrays = arrays
        self._n_imus = len(robot.imus)
        leads = {imu_link.lead for imu_link in imu_links}
        self.serving = tuple(k in leads for k in range(self._n_imus))
        """For each IMU whether its row holds the motion of a link after `complete`."""
        used = frozenset().union(*self.layout.rows.values())
        self.used: Mask = np.isin(np.arange(self._n_imus), list(used))
        """IMUs that are used, shape (n_imus,)."""
        self.joints = frozenset().union(*self.layout.ways.values())
        """Joints through which something goes from link to link."""
        if imu_links and not self.layout.is_plain:
            self._lay_out(robot, imu_links)

    @property
    def is_plain(self) -> bool:
        """True if samples stay as they are: every link has just one whole IMU."""
        return self.layout.is_plain or not self.layout.imu_links

    def complete(self, sample: S) -> S:
        """Write the motion of each link into the row of its first IMU."""
        if self.is_plain:
            return sample
        shape = (*sample.angular_velocities.shape[:-2], len(self._leads), 3)
        motion = Motions(np.zeros(shape), np.zeros(shape), np.zeros(shape))
        self._find_angular_velocities(sample, motion)
        centripetal = _square(motion.w)
        if self._arrays:
            self._find_angular_accelerations(sample, motion, centripetal)
        self._find_accelerations(sample, motion, centripetal)
        return self._written(sample, motion)

    def _find_angular_velocities(self, sample: Sample | SampleBatch, motion: Motions) -> None:
        """Write angular velocities, and angular accelerations if they come with them."""
        motion.w[..., self._gyro_links, :] = self._gyroscopes.of(sample.angular_velocities)
        if not self._arrays:
            motion.dw[..., self._gyro_links, :] = self._gyroscopes.of(sample.angular_accelerations)
        walk = self._walks[0]
        if walk is not None:
            reached = walk.run(sample, motion)
            motion.w[..., walk.to, :] = reached.w
            motion.dw[..., walk.to, :] = reached.dw

    def _find_angular_accelerations(
        self, sample: Sample | SampleBatch, motion: Motions, centripetal: Array
    ) -> None:
        """Write angular accelerations from arrays."""
        squares = centripetal[..., self._array_links, :, :]
        squares = squares.reshape(*squares.shape[:-2], 9, 1)
        dw = self._array.of(sample.proper_accelerations) - (self._array_lever @ squares)[..., 0]
        motion.dw[..., self._array_links, :] = dw
        walk = self._walks[1]
        if walk is not None:
            motion.dw[..., walk.to, :] = walk.run(sample, motion).dw

    def _find_accelerations(
        self, sample: Sample | SampleBatch, motion: Motions, centripetal: Array
    ) -> None:
        """Write accelerations."""
        means = self._accelerometers.of(sample.proper_accelerations)
        # Only the mean of the positions counts, as the motion is linear in them [T 4.11].
        moved = self._levers.term(motion.dw, centripetal)
        motion.a[..., self._acc_links, :] = means - moved
        walk = self._walks[2]
        if walk is not None:
            # It came through the joints to the origin of the link; on from there with the turning
            # that is measured on the link, wherever its gyroscope sits.
            moved = walk.levers.term(motion.dw, centripetal)
            motion.a[..., walk.to, :] = walk.run(sample, motion).a + moved

    def _lay_out(self, robot: Robot, imu_links: Sequence[ImuLink]) -> None:
        """Lay out the constants of the plan."""
        self._leads = np.array([imu_link.lead for imu_link in imu_links])
        self._gyro_links = np.flatnonzero([bool(imu_link.gyroscopes) for imu_link in imu_links])
        self._acc_links = np.flatnonzero([bool(imu_link.accelerometers) for imu_link in imu_links])
        self._array_links = np.flatnonzero([imu_link.is_array for imu_link in imu_links])
        known = self._gyro_links, self._array_links, self._acc_links
        gyro_links, array_links, acc_links = (
            [imu_links[b] for b in rows.tolist()] for rows in known
        )
        blocks, _ = zip(*(mean_of(imu_link, robot, 'gyroscope') for imu_link in gyro_links))
        self._gyroscopes = SensorSum([imu_link.gyroscopes for imu_link in gyro_links], blocks)
        blocks, levers = zip(
            *(mean_of(imu_link, robot, 'accelerometer') for imu_link in acc_links)
        )
        self._accelerometers = SensorSum(
            [imu_link.accelerometers for imu_link in acc_links], blocks
        )
        self._levers = Levers(self._acc_links, np.array(levers))
        if self._arrays:
            blocks, levers = zip(*(array_of(imu_link, robot) for imu_link in array_links))
            self._array = SensorSum([imu_link.accelerometers for imu_link in array_links], blocks)
            self._array_lever = np.array(levers)
        self._walks = [
            None if forest is None else Walk(imu_links, forest, rows)
            for forest, rows in zip(self.layout.forests, known, strict=True)
        ]

    def _written(self, sample: S, motion: Motions) -> S:
        """Return the sample with the motions of the links."""
        found = np.zeros((3, *motion.w.shape[:-2], self._n_imus, 3))
        for rows, part in zip(found, motion):
            rows[..., self._leads, :] = part
        w, dw, a = found
        return replaced(
            sample,
            angular_velocities=w,
            proper_accelerations=a,
            angular_accelerations=dw,
        )


def _square(w: Array) -> Array:
    """Return w x w x as matrices, shape (..., 3, 3)."""
    squares = w[..., :, None] * w[..., None, :]
    lengths = np.einsum('...ii->...', squares)
    square: Array = squares - lengths[..., None, None] * np.eye(3)
    return square
