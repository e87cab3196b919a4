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

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pinocchio as pin

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.forest import Forest, carry, motion_view
from inertial_estimation.estimation.sensor_arrays import (
    DELIVERS,
    Bits,
    ImuLink,
    Layout,
    SensorSum,
    array_of,
    lay_out,
    mean_of,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import cross, cross_matrix, motion_transform
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


class Walk:
    """Carries motions from links to others through the joints."""

    def __init__(self, imu_links: Sequence[ImuLink], forest: Forest, known: Indices) -> None:
        self.to = np.setdiff1d(np.arange(len(imu_links)), known)
        """The links that are reached."""
        links = [imu_links[b].link for b in self.to]
        poses = np.array([imu_links[b].L_H_B for b in self.to])
        turned = np.tile(np.eye(4), (len(links), 1, 1))
        turned[:, :3, :3] = poses[:, :3, :3].swapaxes(1, 2)
        self.origins: Array = (turned @ poses)[:, :3, 3:]
        """Origins of their frames from those of their links, in the axes of the frames."""
        carrier, L_X_J = forest.carried()
        self._model, at = carry(forest.model, [carrier[k] for k in links])
        moved = [at[carrier[k]] for k in links]
        self._at = np.array([joint for joint, _ in moved])
        offsets = np.array([pose.inverse().homogeneous for _, pose in moved])
        self._B_X_J = motion_transform(turned) @ L_X_J[links] @ motion_transform(offsets)
        self._data = self._model.createData()
        self._views = motion_view(self._data.v), motion_view(self._data.a)
        # Rows of joints and roots in the vectors of the model.
        old, new = forest.model.joints, self._model.joints
        joints = {old[i].idx_v: new[k] for i, (k, _) in at.items() if i}
        rows = forest.joint_rows.tolist()
        self._inside = np.array([j for j, row in enumerate(rows) if row in joints], dtype=np.intp)
        inside = [joints[rows[j]] for j in self._inside]
        self._q_rows = np.array([joint.idx_q for joint in inside], dtype=np.intp)
        self._v_rows = np.array([joint.idx_v for joint in inside], dtype=np.intp)
        tops = forest.top_rows[: len(known), 0].tolist()
        used = [s for s, row in enumerate(tops) if row in joints]
        self._known = known[used]
        starts = np.array([joints[tops[s]].idx_v for s in used], dtype=np.intp)[:, None]
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
        self.arrays = arrays
        self.bits: Bits = tuple(DELIVERS[imu.measures] for imu in robot.imus)
        """Quantities that each IMU delivers without faults."""
        self.is_used = bool(self.bits) and not robot.fixed_frame
        """True if IMUs are the source of the motion."""
        self.nominal = MotionPlan(robot, arrays, self.bits)
        """The plan while every IMU delivers all that it measures."""
        self._others = lru_cache(PLANS_KEPT)(partial(MotionPlan, robot, arrays))
        if self.is_used and not self.nominal.layout.imu_links:
            needed = 'a gyroscope and an accelerometer'
            if arrays:
                needed += ', and three accelerometers of one link that are not on one line'
            raise ModelError(f"the IMUs of robot '{robot.name}' do not measure like {needed}")

    def plan(self, bits: Bits) -> MotionPlan:
        """Return the plan for what the IMUs deliver, new or kept."""
        return self.nominal if bits == self.bits else self._others(bits)


class MotionPlan:
    """The motions of all links from the readings of one set of sensors."""

    def __init__(self, robot: Robot, arrays: bool, bits: Bits) -> None:
        if robot.fixed_frame:
            bits = (0,) * len(bits)
        self.layout: Layout = lay_out(robot, bits, arrays=arrays)
        imu_links = self.layout.imu_links
        self.arrays = arrays
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
        lead: tuple[int, ...] = sample.angular_velocities.shape[:-2]
        parts = np.zeros((3, *lead, len(self.leads), 3))
        w, dw, a = motion = Motions(*parts)
        w[..., self.turning, :] = self.gyroscopes.of(sample.angular_velocities)
        if not self.arrays:
            dw[..., self.turning, :] = self.gyroscopes.of(sample.angular_accelerations)
        self._carry(0, sample, motion, w=True, dw=not self.arrays)
        # Points move by w x w x r + dw x r.
        squares = w[..., :, None] * w[..., None, :]
        squares -= np.einsum('...ii->...', squares)[..., None, None] * np.eye(3)
        if self.arrays:
            flat = squares[..., self.spun, :, :].reshape(*lead, len(self.spun), 9, 1)
            swing = (self.array_levers @ flat)[..., 0]
            dw[..., self.spun, :] = self.array.of(sample.proper_accelerations) - swing
            self._carry(1, sample, motion, dw=True)
        turning = squares - cross_matrix(dw)
        # Only the mean of the positions counts, as the motion is linear in them [T 4.11].
        moved = (turning[..., self.shaken, :, :] @ self.levers)[..., 0]
        a[..., self.shaken, :] = self.accelerometers.of(sample.proper_accelerations) - moved
        self._carry(2, sample, motion, a=True)
        walk = self.walks[2]
        if walk is not None:
            # It came through the joints to the origin of the link; on from there with the turning
            # that is measured on the link, wherever its gyroscope sits.
            a[..., walk.to, :] += (turning[..., walk.to, :, :] @ walk.origins)[..., 0]
        found = np.zeros((3, *lead, self._n_imus, 3))
        found[..., self.leads, :] = parts
        w, dw, a = found
        return replaced(
            sample, angular_velocities=w, proper_accelerations=a, angular_accelerations=dw
        )

    def _carry(
        self, number: int, sample: Sample | SampleBatch, motion: Motions, **wanted: bool
    ) -> None:
        """Carry some of the motions to the links that lack them."""
        walk = self.walks[number]
        if walk is not None:
            reached = walk.run(sample, motion)
            for name in (name for name, is_wanted in wanted.items() if is_wanted):
                getattr(motion, name)[..., walk.to, :] = getattr(reached, name)

    def _lay_out(self, robot: Robot, imu_links: Sequence[ImuLink]) -> None:
        """Lay out the constants of the plan."""
        self.leads = np.array([one.lead for one in imu_links])
        self.turning = np.flatnonzero([bool(one.gyroscopes) for one in imu_links])
        self.spun = np.flatnonzero([one.is_array for one in imu_links])
        self.shaken = np.flatnonzero([bool(one.accelerometers) for one in imu_links])
        links = [imu_links[b] for b in self.turning.tolist()]
        blocks, _ = zip(*(mean_of(one, robot, 'gyroscope') for one in links))
        self.gyroscopes = SensorSum([one.gyroscopes for one in links], blocks)
        links = [imu_links[b] for b in self.shaken.tolist()]
        blocks, levers = zip(*(mean_of(one, robot, 'accelerometer') for one in links))
        self.accelerometers = SensorSum([one.accelerometers for one in links], blocks)
        self.levers = np.array(levers)[..., None]
        if self.arrays:
            links = [imu_links[b] for b in self.spun.tolist()]
            blocks, levers = zip(*(array_of(one, robot) for one in links))
            self.array = SensorSum([one.accelerometers for one in links], blocks)
            self.array_levers = np.array(levers)
        known = self.turning, self.spun, self.shaken
        self.walks = [
            None if forest is None else Walk(imu_links, forest, rows)
            for forest, rows in zip(self.layout.forests, known, strict=True)
        ]
