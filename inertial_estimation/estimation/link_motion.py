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
from inertial_estimation.estimation.balance import Forest, build_forest, carry
from inertial_estimation.estimation.sensor_arrays import (
    DELIVERS,
    Bits,
    ImuLink,
    SensorSum,
    array_of,
    find_imu_links,
    mean_of,
)
from inertial_estimation.model.pinocchio_model import motion_view
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import cross, cross_matrix, motion_transform
from inertial_estimation.model.tree import Source
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
        self.nominal = MotionPlan(robot, arrays, self.bits)
        """The plan while every IMU delivers all that it measures."""
        self._others = lru_cache(PLANS_KEPT)(partial(MotionPlan, robot, arrays))
        if self.bits and not (robot.fixed_frame or self.nominal.imu_links):
            needed = 'a gyroscope and an accelerometer'
            if arrays:
                needed += ', and three accelerometers of one link that are not on one line'
            raise ModelError(f"the IMUs of robot '{robot.name}' do not measure like {needed}")

    def plan(self, bits: Bits) -> MotionPlan:
        """Return the plan for what the IMUs deliver, new or kept."""
        return self.nominal if bits == self.bits else self._others(bits)


class MotionPlan:
    """
    The motions of all links with IMUs from the readings of one set of sensors.

    They are read in frames, those of the first IMU of each link. A fixed robot has none of them.
    """

    def __init__(self, robot: Robot, arrays: bool, bits: Bits) -> None:
        self.arrays, n = arrays, len(robot.imus)
        links = () if robot.fixed_frame else find_imu_links(robot, bits)
        self.turning, self.spun, self.shaken = known = (
            np.flatnonzero([bool(one.gyroscopes) for one in links]),
            np.flatnonzero([one.is_array for one in links]),
            np.flatnonzero([bool(one.accelerometers) for one in links]),
        )
        """Links on which angular velocity, angular and proper acceleration are measured."""
        if not (len(self.turning) and len(self.shaken) and (len(self.spun) or not arrays)):
            links = ()
        self.imu_links = links
        """Those with a sensor that delivers; empty if the motion of no link is known."""
        self.leads = np.array([one.lead for one in links], dtype=np.intp)
        """First IMU of each."""
        whole = (one.accelerometers == one.gyroscopes == (one.lead,) for one in links)
        self.is_plain = not links or (not arrays and all(whole))
        """True if samples stay as they are: every link has just one whole IMU."""
        self.forests: list[Forest | None] = [None] * 3
        """Trees through which each motion reaches the links that lack it; None: none lacks it."""
        for k, rows in enumerate(known):
            if len(rows) < len(links) and (arrays or k != 1):
                sources = [Source('', links[b].link, links[b].L_H_B) for b in rows]
                self.forests[k] = build_forest(robot, sources, rigid_sensors=True)
        uses = self._uses(n)
        self.rows = {one.link: frozenset(k for k in own if k < n) for one, own in uses}
        """IMUs that the motion of each of these links depends on."""
        self.ways = {one.link: frozenset(k - n for k in own if k >= n) for one, own in uses}
        """Joints through which it comes."""
        every = np.arange(n)
        self.serving: Mask = np.isin(every, self.leads)
        """IMUs whose row holds the motion of a link after `complete`, shape (n_imus,)."""
        self.used: Mask = np.isin(every, list(frozenset().union(*self.rows.values())))
        """IMUs that are used, shape (n_imus,)."""
        self.joints = frozenset().union(*self.ways.values())
        """Joints through which something goes from link to link."""
        if not self.is_plain:
            self._set_constants(robot)

    def reaching(self, forest: Forest) -> Forest:
        """Return trees whose links depend on the joints of `ways` as well."""
        more = [self.ways.get(forest.tops[s].link, frozenset()) for s in forest.owner]
        path = tuple(path | joints for path, joints in zip(forest.path, more, strict=True))
        return replace(forest, path=path)

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
        found = np.zeros((3, *lead, len(self.serving), 3))
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

    def _uses(self, n: int) -> list[tuple[ImuLink, frozenset[int]]]:
        """Return the IMUs that the motion of each link depends on, and joints as n + index."""
        at = {one.link: b for b, one in enumerate(self.imu_links)}

        def traced(forest: Forest | None, kind: str) -> list[tuple[int, frozenset[int]]]:
            """Return the link on which a motion of each link is measured, and its dependence."""
            found = []
            for b, one in enumerate(self.imu_links):
                source, joints = b, frozenset[int]()
                if forest is not None:
                    source = at[forest.tops[forest.owner[one.link]].link]
                    joints = forest.path[one.link]
                imus = frozenset(getattr(self.imu_links[source], kind))
                found.append((source, imus | {n + j for j in joints}))
            return found

        turn = traced(self.forests[0], 'gyroscopes')
        spin = traced(self.forests[1], 'accelerometers') if self.arrays else turn
        spin = [(source, own | turn[source][1]) for source, own in spin]
        shift = traced(self.forests[2], 'accelerometers')
        return [
            (one, own.union(*(motion[k][1] for motion in (turn, spin) for k in (source, b))))
            for b, (one, (source, own)) in enumerate(zip(self.imu_links, shift, strict=True))
        ]

    def _set_constants(self, robot: Robot) -> None:
        """Set the weights and levers of the sensors of each link, and the walks."""
        links = [self.imu_links[b] for b in self.turning]
        blocks, _ = zip(*(mean_of(one, robot, 'gyroscope') for one in links))
        self.gyroscopes = SensorSum([one.gyroscopes for one in links], blocks)
        links = [self.imu_links[b] for b in self.shaken]
        blocks, levers = zip(*(mean_of(one, robot, 'accelerometer') for one in links))
        self.accelerometers = SensorSum([one.accelerometers for one in links], blocks)
        self.levers = np.array(levers)[..., None]
        if self.arrays:
            links = [self.imu_links[b] for b in self.spun]
            blocks, levers = zip(*(array_of(one, robot) for one in links))
            self.array = SensorSum([one.accelerometers for one in links], blocks)
            self.array_levers = np.array(levers)
        self.walks = [
            None if forest is None else Walk(self.imu_links, forest, rows)
            for forest, rows in zip(self.forests, (self.turning, self.spun, self.shaken))
        ]
