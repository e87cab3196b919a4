# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What FT sensors should read while nothing but some supports touches the robot [T section 4.7].

The wrenches of the supports add up to the net wrench of the whole robot [T 4.27]. A sensor with
all supports on one side is told by the net wrenches of the other side [T 4.28]. Where supports
stand on both sides the sensor feels how they share the load, which nothing tells: the shortest
wrenches that add up stand in for it, and what else is possible is told as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.frame_poses import FramePoses, Place, proper_acceleration
from inertial_estimation.estimation.balance import subtrees
from inertial_estimation.estimation.contacts import noise_scale
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
ASSUMED = np.uint8(Quality.ASSUMED)


@dataclass(frozen=True, eq=False)
class SupportLoads:
    """What FT sensors should read at some instants, as they count wrenches."""

    readings: Array
    """
    Shape (n, n_fts, 6), [force; torque] in each sensor's frame [N, Nm]; NaN where what it rests
    on is missing. Of all ways to share the load that of the shortest support wrenches.
    """
    freedom: Array
    """
    What the readings may be besides, shape (n, n_fts, 6, 6 (m - 1)) for m supports: one column
    for each way to change how the load is shared, a newton strong. Zero for a sensor that is told.
    """
    sides: Mask
    """Which submodels each sensor's reading is summed over, shape (n_fts, n_submodels)."""
    beyond: Mask
    """Which supports each sensor has on the side of its child link, shape (n_fts, m)."""
    assumed: Mask
    """Sensors whose readings rest on a joint that nobody reports, shape (n_fts,)."""
    gravity: Array
    """Gravity in each sensor's axes as what moves the robot tells it, (n, n_fts, 3) [m/s^2]."""

    @property
    def shared(self) -> Mask:
        """Sensors with supports on both sides, shape (n_fts,)."""
        return np.asarray(self.beyond.any(axis=1) & ~self.beyond.all(axis=1))


def free_estimate(estimator: WrenchEstimator, samples: SampleBatch) -> WrenchEstimate:
    """Estimate as if no FT sensor read anything and nothing touched the robot."""
    bare = WrenchEstimator(estimator.robot, acceleration_arrays=estimator.motion.arrays)
    return bare.batch(replace(samples, ft_readings=np.zeros_like(samples.ft_readings)))


def support_loads(
    robot: Robot,
    samples: SampleBatch,
    free: WrenchEstimate,
    supports: Sequence[str],
    length_scale: float,
) -> SupportLoads:
    """
    Predict what FT sensors read.

    length_scale [m].
    """
    places = [robot.frame(support, f"'supports' names '{support}'") for support in supports]
    poses = FramePoses(robot, samples)
    beyond, held = _beyond(robot, [link for link, _ in places])
    net = [
        poses.to_root((submodel.root, np.eye(4)), free.residuals[:, k, None])[:, 0]
        for k, submodel in enumerate(robot.submodels)
    ]
    net_at_root = np.stack(net, axis=1)
    split = _Split(poses, places, net_at_root.sum(axis=1), length_scale)
    n, m, n_fts = len(samples), len(places), len(robot.ft_sensors)
    readings, freedom = np.empty((n, n_fts, 6)), np.zeros((n, n_fts, 6, 6 * (m - 1)))
    sides, gravity = np.empty_like(held), np.empty((n, n_fts, 3))
    upward = proper_acceleration(robot, samples, poses)
    for k, sensor in enumerate(robot.ft_sensors):
        place = sensor.child, sensor.child_H_sensor
        # Parent on child: what holds the side beyond, or what all but that side pulls.
        all_beyond = beyond[k].all()
        sides[k] = ~held[k] if all_beyond else held[k]
        through = net_at_root[:, sides[k]].sum(axis=1) * (-1.0 if all_beyond else 1.0)
        if beyond[k].any() and not all_beyond:
            sides[k] = True
            through = through - split.wrenches[:, beyond[k]].sum(axis=1)
            columns = -split.freedom[:, beyond[k]].sum(axis=1)
            local = poses.from_root(place, columns.swapaxes(1, 2))
            freedom[:, k] = -sensor.direction * local.swapaxes(1, 2)
        readings[:, k] = -sensor.direction * poses.from_root(place, through[:, None])[:, 0]
        gravity[:, k] = -poses.axes_from_root(place, upward)
    assumed = np.logical_or.reduce(free.submodel_quality & ASSUMED != 0, axis=0)
    resting = np.asarray((sides & assumed).any(axis=1))
    return SupportLoads(readings, freedom, sides, beyond, resting, gravity)


def _beyond(robot: Robot, links: Sequence[int]) -> tuple[Mask, Mask]:
    """Tell which links, and which submodels, are on the child's side of each sensor."""
    subtree = subtrees(robot)
    n_fts = len(robot.ft_sensors)
    beyond = [[link in subtree[ft.child] for link in links] for ft in robot.ft_sensors]
    held = [[s.root in subtree[ft.child] for s in robot.submodels] for ft in robot.ft_sensors]
    return (
        np.array(beyond, dtype=bool).reshape(n_fts, len(links)),
        np.array(held, dtype=bool).reshape(n_fts, len(robot.submodels)),
    )


class _Split:
    """The shortest wrenches of supports that add up, and what changes them without a sum."""

    def __init__(
        self, poses: FramePoses, places: Sequence[Place], total: Array, length_scale: float
    ) -> None:
        n, m = len(total), len(places)
        units = np.broadcast_to(np.diag(noise_scale(length_scale)), (n, 6, 6))
        # One row for each unknown: what a unit of it adds, in newtons all.
        rows = np.concatenate([poses.to_root(place, units) for place in places], axis=1)
        u, s, vt = np.linalg.svd(rows, full_matrices=True)
        known: Mask = np.logical_and.reduce(np.isfinite(total), axis=1)
        image = (vt @ np.where(known[:, None], total, 0.0)[..., None])[..., 0] / s
        shortest = (u[..., :6] @ image[..., None])[..., 0]
        owned = rows.reshape(n, m, 6, 6)
        self.wrenches = (shortest.reshape(n, m, 1, 6) @ owned)[:, :, 0]
        """Of each support about the root link's origin, shape (n, m, 6) [N, Nm]."""
        self.wrenches[~known] = np.nan
        free = u[..., 6:].reshape(n, m, 6, -1)
        self.freedom = owned.swapaxes(-1, -2) @ free
        """Their changes, likewise, one for each free combination, (n, m, 6, 6 (m - 1))."""
