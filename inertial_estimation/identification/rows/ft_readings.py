# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What FT sensors read of a motion, of bodies and of what pushes them [T 7.3]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.rows.outer_wrenches import sensor_pushes
from inertial_estimation.identification.rows.wrench_columns import wrench_columns
from inertial_estimation.model.link_motions import Poses, link_motions, poses_in_parents
from inertial_estimation.model.regressor import poses_in_root, wrench_to_root
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]


def with_readings(
    robot: Robot,
    samples: SampleBatch,
    parameters: Array,
    pushes: Mapping[str, Array] | None = None,
) -> SampleBatch:
    """
    Return samples with what FT sensors read, from the tips of the limbs inward.

    parameters (n_links, 10); pushes (n, 6) [N, Nm].
    """
    names = [sensor.name for sensor in robot.ft_sensors]
    readings = np.zeros((len(samples), len(names), 6))
    poses = poses_in_parents(robot, samples.positions)
    motions = link_motions(robot, samples, poses)
    for submodel in reversed(robot.submodels):
        if submodel.root_sensor < 0:
            continue
        placed = poses_in_root(robot, submodel, poses)
        columns = wrench_columns(submodel.links, placed, motions)
        net = np.einsum('ckn,k->nc', columns, parameters[list(submodel.links)].reshape(-1))
        net -= _pushed(robot, placed, pushes or {})
        root = np.zeros((len(samples), 6, 6))
        for push in sensor_pushes(robot, submodel, readings, poses, placed, names):
            assert push.offset is not None
            if push.offset[0] == names[submodel.root_sensor]:
                root = push.offset[1]
            else:
                net -= push.wrench
        readings[:, submodel.root_sensor] = np.linalg.solve(root, net[..., None])[..., 0]
    return replace(samples, ft_readings=readings)


def _pushed(robot: Robot, placed: Mapping[int, Poses], pushes: Mapping[str, Array]) -> Array:
    """Return the sum of what acts on the links of a submodel, in and about its root."""
    links = ((robot.link_names.index(name), wrench) for name, wrench in pushes.items())
    found = [wrench_to_root(placed[k], wrench) for k, wrench in links if k in placed]
    return np.asarray(sum(found, start=np.zeros(6)))
