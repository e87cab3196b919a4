# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Predicted FT readings while only some supports touch the robot [T section 4.7].

The wrenches of the supports add up to the net wrench of the whole robot [T 4.27]. A sensor with
all supports on one side reads the net wrenches of the other side [T 4.28]. With supports on both
sides its reading depends on how they share the load, which is not determined: the smallest support
wrenches that add up give the prediction, and `SupportLoads.freedom` the alternatives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.calibration.residual_statistics import SCALE
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import Finding, finding, limit_of
from inertial_estimation.model.link_motions import link_poses
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import apply, inverse_pose, wrench_transform
from inertial_estimation.model.tree import decompose
from inertial_estimation.sample import SampleBatch

ASSUMED = np.uint8(Quality.ASSUMED)
MAX_LEVEL_DIFFERENCE = 0.02
"""Of heights of contacts on the same ground [m]."""
MAX_LEVEL_SHARE = 0.5
"""Of the samples."""


@dataclass(frozen=True, eq=False)
class SupportLoads:
    """Predicted readings of all FT sensors."""

    readings: Array
    """Shape (n, n_fts, 6), [force; torque] in each sensor's frame [N, Nm]; NaN: not known."""
    freedom: Array
    """By the sharing of the load, zero where there is none, (n, n_fts, 6, 6 m) for m supports."""
    shared: Mask
    """Sensors with supports on both sides, shape (n_fts,)."""
    sides: Mask
    """Submodels that each sensor's prediction is summed over, shape (n_fts, n_submodels)."""
    assumed: Mask
    """Sensors whose predictions depend on an assumed joint, shape (n_fts,)."""
    pulls: Array
    """Force that a kilogram on the summed side adds to each reading, (n, n_fts, 3) [m/s^2]."""
    free: WrenchEstimate
    """Estimate without FT readings and supports."""


def support_loads(
    estimator: WrenchEstimator, samples: SampleBatch, supports: Sequence[str]
) -> SupportLoads:
    """Predict the readings of all FT sensors."""
    robot = estimator.robot
    places = [robot.frame(support, f"'supports' names '{support}'") for support in supports]
    bare = WrenchEstimator(robot, acceleration_arrays=estimator.motion.arrays)
    free = bare.batch(replace(samples, ft_readings=np.zeros_like(samples.ft_readings)))
    # A missing joint is put at zero: the net wrench of its submodel is missing as well, and with
    # it every prediction that depends on the joint.
    poses = link_poses(robot, np.where(np.isfinite(samples.positions), samples.positions, 0.0))
    net = np.stack(
        [
            apply(wrench_transform(poses[submodel.root]), free.residuals[:, k])
            for k, submodel in enumerate(robot.submodels)
        ],
        axis=1,
    )
    # Wrenches about the root link's origin by unit wrenches of the supports.
    units = np.concatenate(
        [wrench_transform(poses[k] @ k_H_F) * SCALE for k, k_H_F in places], axis=2
    )
    inverse = np.linalg.pinv(units)
    smallest = apply(inverse, net.sum(axis=1))
    sharing = np.eye(units.shape[2]) - inverse @ units
    n, n_fts = len(samples), len(robot.ft_sensors)
    readings, pulls = np.empty((n, n_fts, 6)), np.empty((n, n_fts, 3))
    freedom, shared = np.zeros((n, n_fts, 6, units.shape[2])), np.zeros(n_fts, dtype=bool)
    sides = np.ones((n_fts, len(robot.submodels)), dtype=bool)
    upward = proper_acceleration(robot, samples, poses)
    for s, sensor in enumerate(robot.ft_sensors):
        held = robot.carried[sensor.child, [one.root for one in robot.submodels]]
        beyond = robot.carried[sensor.child, [link for link, _ in places]]
        shared[s] = beyond.any() and not beyond.all()
        to_sensor = wrench_transform(inverse_pose(poses[sensor.child] @ sensor.child_H_sensor))
        # Of the parent on the child: what holds the side beyond, or what all but that side pulls.
        sign = -1.0 if beyond.all() else 1.0
        side = ~held if beyond.all() else held
        through = sign * net[:, side].sum(axis=1)
        if shared[s]:
            own = np.repeat(beyond, 6)
            through -= apply(units[:, :, own], smallest[:, own])
            freedom[:, s] = sensor.direction * to_sensor @ units[:, :, own] @ sharing[:, own]
        else:
            sides[s] = side
        readings[:, s] = -sensor.direction * apply(to_sensor, through)
        pulls[:, s] = -sensor.direction * sign * apply(to_sensor[:, :3, :3], upward)
    assumed = np.logical_or.reduce(free.submodel_quality & ASSUMED != 0, axis=0)
    depends = np.asarray((sides & assumed).any(axis=1))
    return SupportLoads(readings, freedom, shared, sides, depends, pulls, free)


def second_supports(
    robot: Robot,
    samples: SampleBatch,
    differences: Array,
    support: str,
    contacts: Sequence[Contact],
) -> Iterator[Finding]:
    """
    Yield submodels that may carry the robot beside its only support.

    Offsets absorb the force of another contact, unless it changes; one that is level with the
    support may stand on the same ground. differences (n, n_fts, 6): reading minus prediction.
    """
    weight = robot.mass * float(np.linalg.norm(robot.gravity))
    if not len(samples) or not weight:
        return
    poses = link_poses(robot, samples.positions)
    known = np.isfinite(differences)
    means = np.where(known, differences, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    changes = differences - means
    # Of the child on the parent, in the root link.
    forces = [
        sensor.direction
        * apply((poses[sensor.child] @ sensor.child_H_sensor)[:, :3, :3], changes[:, s, :3])
        for s, sensor in enumerate(robot.ft_sensors)
    ]
    up = proper_acceleration(robot, samples, poses)
    up /= np.linalg.norm(up, axis=1, keepdims=True)

    def heights(frame: str, point: Sequence[float] = (0.0, 0.0, 0.0)) -> Array:
        link, L_H_F = robot.frame(frame)
        places = poses[link] @ L_H_F @ np.append(point, 1.0)
        return np.asarray((places[:, :3] * up).sum(axis=1))

    level: dict[str, float] = {}
    for contact in contacts:
        steps = heights(contact.frame, contact.point) - heights(support)
        count = max(int(np.isfinite(steps).sum()), 1)
        level[contact.name] = float((np.abs(steps) < MAX_LEVEL_DIFFERENCE).sum() / count)
    # A sensor without readings merges the submodels beside it.
    cut = np.flatnonzero(known.all(axis=2).any(axis=0)).tolist()
    for submodel in decompose(robot.links, robot.ft_sensors, cut):
        if robot.frame(support)[0] in submodel.links:
            continue
        total = sum((forces[s] for s in submodel.child_sensors), np.zeros((len(samples), 3)))
        if submodel.root_sensor >= 0:
            total -= forces[submodel.root_sensor]
        own = apply(poses[submodel.root][:, :3, :3].swapaxes(1, 2), total)
        own = own[np.isfinite(own).all(axis=1)]
        change = float(np.sqrt(own.var(axis=0).sum())) if len(own) else 0.0
        here = [c for c in contacts if robot.frame(c.frame)[0] in submodel.links]
        named = max(here, key=lambda c: level[c.name], default=None)
        share, part = level[named.name] if named else 0.0, change / weight
        if share > MAX_LEVEL_SHARE or part > limit_of('second_support'):
            name = named.name if named else submodel.name
            yield finding('second_support', name, share=share, change=change, part=part)


def proper_acceleration(robot: Robot, samples: SampleBatch, poses: Array) -> Array:
    """Return it, of the fixed link or first known IMU, in the root link, (n, 3) [m/s^2]."""
    if robot.fixed_frame:
        link, L_H_F = robot.frame(robot.fixed_frame)
        return np.asarray((poses[link] @ L_H_F)[:, :3, :3] @ -robot.gravity)
    found = np.full((len(samples), 3), np.nan)
    for k, imu in enumerate(robot.imus):
        if imu.measures != 'gyroscope':
            root_R_S = (poses[imu.link] @ imu.L_H_S)[:, :3, :3]
            turned = apply(root_R_S, samples.proper_accelerations[:, k])
            found = np.where(np.isfinite(found), found, turned)
    return found
