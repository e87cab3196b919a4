# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Wrenches through joints and net wrenches of links, on request [T 4.9, 4.22-4.25].

They are summed link by link, which takes longer than the estimator's sums of torques alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, ModelError, NameNotFound, ShapeError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dependence import find_sides, sum_joints
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.faults import (
    NUMBERS,
    SampleShapes,
    alike,
    check_numbers,
    delivered,
    find_faults,
    with_known_temperatures,
)
from inertial_estimation.estimation.forest import Dynamics
from inertial_estimation.estimation.sensor_arrays import ACCELEROMETER, GYROSCOPE, with_ways
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.arguments import names
from inertial_estimation.model.representations import net_wrench
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import (
    apply,
    compose,
    cross,
    cross_matrix,
    row_pose,
    to_child,
    to_parent,
)
from inertial_estimation.model.tree import decompose
from inertial_estimation.model.urdf import joint_types, parse
from inertial_estimation.sample import Sample, SampleBatch

GONE = np.uint8(Quality.DROPPED | Quality.ABSENT)
"""Contacts with one of these flags take no part."""
CHUNK = 256
"""Samples of a batch that are worked on at once."""
MODELS_KEPT = 2
"""Models of sets of IMUs; each holds Pinocchio's workspace, tens of megabytes for a humanoid."""
Model = tuple[Dynamics, list[int], Array]
"""Dynamics, the joint of its forest that carries each link, and L_X_J, (n_links, 6, 6)."""


class InternalSums:
    """
    The wrenches of some instants that agree in what works, ready to be summed.

    wrenches (n, n_contacts, 6) [N, Nm]; readings (n, n_fts, 6) [N, Nm]; used_fts (n_fts,); missing
    (n_joints,).
    """

    def __init__(
        self,
        robot: Robot,
        model: Model,
        ways: Mapping[int, Iterable[int]],
        samples: SampleBatch,
        contacts: Sequence[Contact],
        wrenches: Array,
        readings: Array,
        used_fts: Mask,
        missing: Mask,
    ) -> None:
        dynamics, joints, L_X_J = model
        self._robot, self._forest = robot, with_ways(dynamics.forest, ways)
        self._missing = frozenset(np.flatnonzero(missing).tolist())
        used = np.flatnonzero(used_fts).tolist()
        self._sensor_above = {robot.ft_sensors[k].child: k for k in used}
        places = [robot.frame(contact.frame) for contact in contacts]
        self._contact_links = [link for link, _ in places]
        submodels = decompose(robot.links, robot.ft_sensors, used)
        unknowns = [contact.unknowns for contact in contacts]
        self._sides = find_sides(robot, submodels, self._contact_links, unknowns)
        motions = np.empty((2, len(samples), len(joints), 6))
        supports = np.empty((len(samples), *dynamics.poses.shape))
        for i in range(len(samples)):
            dynamics.run(samples[i])
            supports[i] = dynamics.poses
            data = dynamics.forest_data
            motions[:, i] = [[part[j].vector for j in joints] for part in (data.v, data.a_gf)]
        v, a = apply(L_X_J, motions)
        # From the spatial to the sensor acceleration: the point, not the field, is followed.
        a[..., :3] += cross(v[..., 3:], v[..., :3])
        self._in_links = net_wrench(dynamics.parameters, v[..., 3:], a)
        geometry = dynamics.geometry
        self._frames = compose(supports[:, geometry.support], row_pose(geometry.support_H_L))
        self._net = self._to_root(range(len(robot.links)), self._in_links)
        self._external = self._to_root(self._contact_links, wrenches, [pose for _, pose in places])
        signs = np.array([[sensor.direction] for sensor in robot.ft_sensors]).reshape(-1, 1)
        self._child_on_parent = self._to_root(
            [sensor.child for sensor in robot.ft_sensors],
            signs * readings,
            [sensor.child_H_sensor for sensor in robot.ft_sensors],
        )

    def net(self) -> Array:
        """Return the net wrenches of all links in and about their frames, (n, n_links, 6)."""
        lost = [bool(self._forest.path[k] & self._missing) for k in range(len(self._frames[0]))]
        return np.where(np.array(lost)[:, None], np.nan, self._in_links)

    def local(self, k: int) -> Array:
        """Return the wrench of its parent on link k in the local form, (n, 6) [N, Nm]."""
        if k in self._sensor_above:
            return self._at(k, -self._child_on_parent[:, self._sensor_above[k]])
        side = self._sides[k]
        needed = set(sum_joints(self._robot, self._forest, side.moving))
        if not side.away:
            # The sum is on the parent's side: to the child's frame it goes through this joint.
            needed.add(self._robot.links[k].joint)
        if self._missing & needed:
            return np.full((len(self._net), 6), np.nan)
        total = self._sum(side.links)
        for child, s in self._sensor_above.items():
            if self._robot.ft_sensors[s].parent in side.links:
                total -= self._child_on_parent[:, s]
            elif child in side.links:
                total += self._child_on_parent[:, s]
        return self._at(k, total if side.away else -total)

    def _sum(self, links: Iterable[int]) -> Array:
        """Return the sum of net wrenches minus external wrenches over links."""
        # Rows are picked, not multiplied by zero: NaN elsewhere has no effect.
        rows = sorted(links)
        contacts = [c for c, link in enumerate(self._contact_links) if link in set(rows)]
        total: Array = self._net[:, rows].sum(axis=1) - self._external[:, contacts].sum(axis=1)
        return total

    def _to_root(self, links: Sequence[int], rows: Array, poses: Sequence[Array] = ()) -> Array:
        """Move wrenches from frames on links to the root link."""
        frames = self._frames[:, list(links)]
        if len(poses):
            frames = compose(frames, row_pose(np.array(poses)))
        pairs = rows.reshape(*rows.shape[:-1], 2, 3)
        return to_parent(frames, pairs, cross_matrix(frames[..., 3, :])).reshape(rows.shape)

    def _at(self, k: int, row: Array) -> Array:
        """Move a wrench from the root link to a link's frame."""
        frame = self._frames[:, k]
        pairs = row.reshape(-1, 2, 3)
        return to_child(frame, pairs, cross_matrix(frame[:, 3])).reshape(-1, 6)


class InternalWrenches:
    """
    Compute the wrenches through joints, and net wrenches of links.

    Nothing of this takes part in `WrenchEstimator.update`; each call runs the dynamics again.

    Parameters
    ----------
    estimator : WrenchEstimator
        Makes the estimates, with the inertial parameters that it has now.

    """

    def __init__(self, estimator: WrenchEstimator) -> None:
        self._estimator = estimator
        self._robot = robot = estimator.robot
        self._shapes = SampleShapes(robot)
        self._motion, self._used = estimator.motion, estimator.used
        self._models: dict[bytes, Model] = {}
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
        cuts = self._cut_at(joints)
        return self._filled(
            sample, estimate, len(cuts),
            lambda sums: np.stack([sums.local(k) for k in cuts], axis=1) if cuts else 0.0,
        )  # fmt: skip

    def net(self, sample: Sample | SampleBatch, estimate: WrenchEstimate) -> Array:
        """
        Return the net wrench of every link [T 4.9], arguments as in `of`.

        Returns (n_links, 6) or (n, n_links, 6) [N, Nm] in and about the links' frames; NaN where
        the motion of a link is not known.
        """
        return self._filled(sample, estimate, len(self._robot.links), InternalSums.net)

    def _filled(
        self,
        sample: Sample | SampleBatch,
        estimate: WrenchEstimate,
        n_rows: int,
        wanted: Callable[[InternalSums], Array | float],
    ) -> Array:
        """Return rows of wrenches for one instant or many, NaN where nothing is known."""
        is_batch = isinstance(sample, SampleBatch)
        found = np.full((len(sample) if is_batch else 1, n_rows, 6), np.nan)
        for rows, sums in self._parts(sample, estimate):
            found[rows] = wanted(sums)
        return found if is_batch else np.asarray(found[0])

    def frames(self, joints: Iterable[str] | str) -> list[str]:
        """Return the child links of joints, in whose frames their wrenches are."""
        return [self._robot.links[k].name for k in self._cut_at(joints)]

    def _cut_at(self, joints: Iterable[str] | str) -> list[int]:
        """Return the child links of joints."""
        chosen = names('joints', joints)
        for name in chosen:
            if name not in self._cuts:
                types = joint_types(parse(self._robot.urdf))
                if name not in types:
                    raise NameNotFound('joint', name, self._cuts)
                raise ModelError(f"joint '{name}' ({types[name]}) is rigid and holds no FT sensor")
        return [self._cuts[name] for name in chosen]

    def _parts(
        self, sample: Sample | SampleBatch, estimate: WrenchEstimate
    ) -> Iterator[tuple[Indices, InternalSums]]:
        """Yield the instants that agree in what works, unless its motion is unknown."""
        if not isinstance(estimate, WrenchEstimate):
            raise ModelError(f'a {type(estimate).__name__} is given, expected a WrenchEstimate')
        if isinstance(sample, SampleBatch):
            self._shapes.check_batch(sample)
        else:
            self._shapes.check(sample)
            check_numbers(sample)
        calibration, robot = self._estimator.calibration, self._robot
        if isinstance(sample, SampleBatch):
            samples, estimates = sample, estimate
        else:
            samples = SampleBatch.stack([sample])
            fields: dict[str, Any] = {
                n: np.asarray(v)[None] for n, v in estimate._asdict().items()
            }
            estimates = estimate._replace(**{**fields, 'contacts': estimate.contacts})
        samples = with_known_temperatures(samples, calibration)
        readings = calibration.apply(samples.ft_readings, samples.ft_temperatures)
        for name, size in (('used_fts', len(robot.ft_sensors)), ('used_imus', len(robot.imus))):
            shape = getattr(estimates, name).shape
            if shape != (len(samples), size):
                raise ShapeError(f'{name} of the estimate', (len(samples), size), shape)
        if not np.array_equal(samples.stamp_ns, estimates.stamp_ns):
            raise ModelError('the estimate is of another sample: their stamps differ')
        missing = find_faults(samples, self._used).joints
        dropped = (estimates.contact_quality & GONE) != 0
        bits = delivered(samples, self._motion)
        parts = [bits & kind != 0 for kind in (ACCELEROMETER, GYROSCOPE)]
        kinds = [missing, dropped, estimates.used_imus, estimates.used_fts, *parts]
        for (lost, out, imus, fts, *_), members in alike(*kinds):
            if not (imus.any() or self._robot.fixed_frame) or not len(members):
                continue
            plan = self._motion.plan(tuple(bits[members[0]].tolist()))
            if not plan.is_plain:
                imus = np.array(plan.serving)
            active = np.flatnonzero(~out)
            for start in range(0, len(members), CHUNK):
                rows = members[start : start + CHUNK]
                part = samples.take(rows)
                # Zeros for missing joints; results that depend on them become NaN after the sums.
                joints = {n: np.where(lost, 0.0, getattr(part, n)) for n in NUMBERS[:3]}
                yield (
                    rows,
                    InternalSums(
                        self._robot,
                        self._model(imus),
                        plan.layout.ways,
                        plan.complete(replace(part, **joints)),
                        [estimates.contacts[c] for c in active],
                        estimates.wrenches[rows][:, active],
                        readings[rows],
                        fts,
                        lost,
                    ),
                )

    def _model(self, imus: Mask) -> Model:
        """Return the models for the IMUs in use, new or kept."""
        key = imus.tobytes()
        if key not in self._models:
            if len(self._models) >= MODELS_KEPT:
                del self._models[next(iter(self._models))]
            dynamics = Dynamics(self._robot, np.flatnonzero(imus).tolist())
            self._models[key] = dynamics, *dynamics.forest.carried()
        self._models[key][0].use(self._estimator.robot.parameters)
        return self._models[key]


def build_internal_wrenches(
    settings: EstimatorSettings, estimator: WrenchEstimator
) -> InternalWrenches:
    """Check the joints and links that the settings name."""
    wrenches, robot = InternalWrenches(estimator), estimator.robot
    where = "'internal_wrench_joints' names '{}'"
    for joint in settings.outputs.internal_wrench_joints:
        try:
            wrenches.frames([joint])
        except NameNotFound as error:
            raise NameNotFound('joint', joint, error.known, where.format(joint)) from error
        except ModelError as error:
            raise ConfigError(f'{where.format(joint)}: {error}') from error
    for link in settings.outputs.net_wrench_links:
        where = f"'net_wrench_links' names '{link}'"
        if link not in robot.link_names and link in robot.frames:
            body = robot.link_names[robot.frame(link)[0]]
            raise ConfigError(f"{where}, a frame fixed to link '{body}': name '{body}'")
        if link not in robot.link_names:
            raise NameNotFound('link', link, robot.link_names, where)
    return wrenches
