# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Wrenches through joints and net wrenches of links, on request [T 4.9, 4.22-4.25]."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ModelError, NameNotFound
from inertial_estimation.estimation.balance import child_links, masks
from inertial_estimation.estimation.contacts import ContactSet
from inertial_estimation.estimation.dependence import find_sides, sum_joints
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.faults import alike
from inertial_estimation.estimation.plan import Plan
from inertial_estimation.estimation.step import Step
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.arguments import names
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import compose, cross_matrix, row_pose, to_child, to_parent
from inertial_estimation.sample import Sample, SampleBatch

GONE = np.uint8(Quality.DROPPED | Quality.ABSENT)
"""Contacts with one of these flags take no part."""


class _Sums:
    """Factors of net wrenches, and of wrenches through the joint above each link, for a plan."""

    def __init__(self, robot: Robot, plan: Plan) -> None:
        dynamics, forest = plan.dynamics, plan.dynamics.forest
        n, n_sensors = len(robot.links), len(robot.ft_sensors)
        joints, J_H_L = zip(*forest.carriers)
        self._joints, self._poses = np.array(joints), row_pose(np.array([*map(np.array, J_H_L)]))
        self._support = dynamics.support
        self._support_poses = row_pose(dynamics.support_H_L)
        # The force of a joint of the forest holds the net wrenches of all links beyond.
        carried, parents = {joint: k for k, joint in enumerate(joints)}, forest.model.parents
        net = np.eye(n)
        for k, joint in enumerate(joints):
            if parents[joint] in carried:
                net[carried[parents[joint]], k] = -1.0
        balance, missing = plan.balance, plan.missing_joints
        unknowns = [plan.contacts[c].unknowns for c in plan.active]
        sides = find_sides(robot, balance.submodels, balance.contact_links, unknowns)
        forest = plan.motion.reaching(forest)
        needed = sum_joints(robot, forest, sides.moving)
        # A sum on the parent's side goes to the child's frame through the joint itself.
        child = child_links(robot)
        needed[child, np.arange(len(child))] |= ~sides.away[child]
        paths = masks(forest.path, len(missing))
        self._lost = np.asarray(np.stack([paths[:, missing], needed[:, missing]]).any(axis=2))
        counts = np.where(sides.away[:, None], 1.0, -1.0) * sides.links
        sensors = np.zeros((n, n_sensors))
        for s, sensor in enumerate(robot.ft_sensors):
            if plan.used_fts[s]:
                sensors[:, s] = counts[:, sensor.child] - counts[:, sensor.parent]
                sensors[sensor.child, s] = -1.0
        if not (robot.fixed_frame or plan.used_imus.any()):
            self._lost[:] = True
        others = np.zeros((n, n_sensors + len(balance.contact_links)))
        through = [counts @ net, sensors, -counts[:, balance.contact_links]]
        self._factors = np.stack([np.hstack([net, others]), np.hstack(through)])

    def of(self, step: Step) -> Array:
        """Return net wrenches and wrenches through joints, (2, n_links, 6), after `solve`."""
        dynamics = step.plan.dynamics
        forces = dynamics.forces[self._joints].reshape(-1, 2, 3)
        local = to_child(self._poses, forces, cross_matrix(self._poses[:, 3]))
        frames = compose(dynamics.poses[self._support], self._support_poses)
        cross = cross_matrix(frames[:, 3])
        beyond = to_parent(frames, local, cross).reshape(-1, 6)
        terms = step.terms[step.plan.frames.sensors :]
        sums = self._factors @ np.concatenate([beyond, terms])
        found = to_child(frames, sums.reshape(2, -1, 2, 3), cross).reshape(sums.shape)
        found[self._lost] = np.nan
        return found


class InternalWrenches:
    """
    Compute the wrenches through joints, and net wrenches of links.

    Nothing of this takes part in `WrenchEstimator.update`; each call estimates again.

    Parameters
    ----------
    estimator : WrenchEstimator
        Makes the estimates, with the inertial parameters that it has now.

    """

    def __init__(self, estimator: WrenchEstimator) -> None:
        self._estimator, robot = estimator, estimator.robot
        self._sums: WeakKeyDictionary[Plan, _Sums] = WeakKeyDictionary()
        self._names = [link.name for link in robot.links]
        joints = {link.joint: k for k, link in enumerate(robot.links)}
        self._cuts = {name: joints[j] for j, name in enumerate(robot.joint_names)}
        self._cuts |= {sensor.joint: sensor.child for sensor in robot.ft_sensors}

    def of(
        self, sample: Sample | SampleBatch, estimate: WrenchEstimate, joints: Iterable[str] | str
    ) -> Array:
        """
        Return the wrench through joints in the local form [T 4.23, 4.25].

        Parameters
        ----------
        sample : Sample or SampleBatch
            Its readings.
        estimate : WrenchEstimate
            Its estimate.
        joints : iterable of str, or str
            Joints of the robot, and fixed joints that hold an FT sensor.

        Returns
        -------
        ndarray, shape (n_joints, 6); for a batch (n, n_joints, 6)
            [force; torque] of the parent link on the child link, in and about the joint's frame,
            which is the child link's [N, Nm]. The torque of the estimate is its component along
            the joint's axis. For an FT sensor in use it is the reading, for one that is missing
            its prediction. NaN where a value that it depends on is missing; for a sum over the
            parent's side that is the joint itself as well, which the torque does not depend on.

        """
        return np.asarray(self._found(sample, estimate, 1)[..., self._cut_at(joints), :])

    def net(self, sample: Sample | SampleBatch, estimate: WrenchEstimate) -> Array:
        """
        Return the net wrench of every link [T 4.9], arguments as in `of`.

        Returns (n_links, 6) or (n, n_links, 6) [N, Nm] in and about the links' frames; NaN where
        the motion of a link is not known.
        """
        return self._found(sample, estimate, 0)

    def frames(self, joints: Iterable[str] | str, where: str = '') -> list[str]:
        """Return the child links of joints, in whose frames their wrenches are."""
        return [self._names[k] for k in self._cut_at(joints, where)]

    def _cut_at(self, joints: Iterable[str] | str, where: str = '') -> list[int]:
        """Return the child links of joints."""
        chosen = names('joints', joints)
        for name in chosen:
            if name not in self._cuts:
                raise NameNotFound(
                    'joint that moves or holds an FT sensor', name, self._cuts, where
                )
        return [self._cuts[name] for name in chosen]

    def _found(self, sample: Sample | SampleBatch, estimate: WrenchEstimate, kind: int) -> Array:
        """Return net wrenches (0), or those through the joints (1), of all links."""
        if not np.array_equal(sample.stamp_ns, estimate.stamp_ns):
            raise ModelError('the estimate is of another sample: their stamps differ')
        stays = np.atleast_2d((estimate.contact_quality & GONE) == 0)
        samples: Any = sample if isinstance(sample, SampleBatch) else [sample]
        found = np.empty((len(stays), len(self._names), 6))
        for (present,), rows in alike(stays):
            # One set for all of its samples: the estimator knows it by its identity.
            contacts = ContactSet.reported(compress(estimate.contacts, present.tolist()))
            for i in rows.tolist():
                step = self._estimator.step(samples[i], contacts)[0]
                if step.plan not in self._sums:
                    self._sums[step.plan] = _Sums(self._estimator.robot, step.plan)
                found[i] = self._sums[step.plan].of(step)[kind]
        return found if isinstance(sample, SampleBatch) else found[0]


def build_internal_wrenches(
    settings: EstimatorSettings, estimator: WrenchEstimator
) -> InternalWrenches:
    """Check the joints and links that the settings name."""
    wrenches, known = InternalWrenches(estimator), estimator.robot.link_names
    for joint in settings.outputs.internal_wrench_joints:
        wrenches.frames(joint, f"'internal_wrench_joints' names '{joint}'")
    for link in settings.outputs.net_wrench_links:
        if link not in known:
            raise NameNotFound('link', link, known, f"'net_wrench_links' names '{link}'")
    return wrenches
