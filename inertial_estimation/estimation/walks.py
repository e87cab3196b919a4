# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Motions of some bodies, carried to others through the joints [T 3.7, 4.4.3]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from inertial_estimation.estimation.bodies import Body
from inertial_estimation.estimation.forest import Forest
from inertial_estimation.estimation.net_wrenches import carriers
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import hat, motion_transform
from inertial_estimation.sample import Sample, SampleBatch

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class Motions(NamedTuple):
    """How bodies move, in the axes of their frames, shape (..., n_bodies, 3) each."""

    turn: Array
    """Angular velocity [rad/s]."""
    spin: Array
    """Angular acceleration [rad/s^2]."""
    shift: Array
    """Proper acceleration of the origin of the frame [m/s^2]."""


class Levers:
    """Points of some bodies; bodies (n,); positions (n, 3) [m]."""

    def __init__(self, bodies: Indices, positions: Array) -> None:
        self._bodies = bodies
        self._columns, self._hats = positions[..., None], hat(positions)

    def term(self, spin: Array, centripetal: Array) -> Array:
        """
        Return by how much the acceleration of the points differs from that of the origins.

        spin (..., n_bodies, 3) [rad/s^2]; centripetal (..., n_bodies, 3, 3) [1/s^2]; returns (...,
        n, 3) [m/s^2].
        """
        term = centripetal[..., self._bodies, :, :] @ self._columns
        term -= self._hats @ spin[..., self._bodies, :, None]
        found: Array = term[..., 0]
        return found


class Walk:
    """Carries motions from bodies to others through the joints."""

    def __init__(
        self, robot: Robot, bodies: Sequence[Body], forest: Forest, known: Indices
    ) -> None:
        self.to = np.setdiff1d(np.arange(len(bodies)), known)
        """The bodies that are reached."""
        links = [bodies[b].link for b in self.to]
        poses = np.array([bodies[b].L_H_B for b in self.to])
        turned = np.tile(np.eye(4), (len(links), 1, 1))
        turned[:, :3, :3] = poses[:, :3, :3].swapaxes(1, 2)
        self.levers = Levers(self.to, (turned @ poses)[:, :3, 3])
        """Origins of their frames, from those of their links."""
        carrier, L_X_J = carriers(robot, forest)
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
        """Find where joints and roots stand in the vectors of the model."""
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
        """Return the motions of the bodies that are reached."""
        lead, n = motion.turn.shape[:-2], len(self.to)
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
        a[..., :3] += _cross(v[..., 3:], v[..., :3])
        parts = (v[..., 3:], a[..., 3:], a[..., :3])
        return Motions(*(x.reshape(*lead, n, 3) for x in parts))


def carry(
    model: pin.Model, wanted: Iterable[int]
) -> tuple[pin.Model, dict[int, tuple[int, pin.SE3]]]:
    """Return a model of the joints that carry some joints of a forest, and of no others."""
    needed = set()
    for joint in wanted:
        while joint and joint not in needed:
            needed.add(joint)
            joint = model.parents[joint]
    small = pin.Model()
    at = {0: (0, pin.SE3.Identity())}
    for joint in sorted(needed):
        parent, pose = at[model.parents[joint]]
        pose = pose * model.jointPlacements[joint]
        if model.names[joint].startswith('ft_'):
            at[joint] = parent, pose
        else:
            new = small.addJoint(parent, model.joints[joint], pose, model.names[joint])
            at[joint] = new, pin.SE3.Identity()
    return small, at


def motion_view(motions: pin.StdVec_Motion) -> Array:
    """
    Return all velocities or accelerations of Pinocchio's data as one array that shares its memory.

    Returns (n_joints + 1, 6) [linear; angular].
    """
    first = motions[0].linear
    start, size = first.__array_interface__['data'][0], 6 * first.itemsize
    for i, motion in enumerate(motions):
        parts = (motion.linear, motion.angular)
        found = tuple(part.__array_interface__['data'][0] for part in parts)
        if found != (start + i * size, start + i * size + 3 * first.itemsize):
            raise RuntimeError('this version of Pinocchio keeps motions in an unknown way')
    shape, strides = (len(motions), 6), (size, first.itemsize)
    return np.lib.stride_tricks.as_strided(first, shape, strides, writeable=False)


def _cross(a: Array, b: Array) -> Array:
    """Return a x b, sooner than `numpy.cross`."""
    after, before = [1, 2, 0], [2, 0, 1]
    product: Array = a[..., after] * b[..., before] - a[..., before] * b[..., after]
    return product
