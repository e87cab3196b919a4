# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logs of a robot on a pole whose limbs are in free air: smooth motion, readings that fit it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from inertial_estimation.identification.rows.outer_wrenches import sensor_pushes
from inertial_estimation.identification.rows.wrench_columns import wrench_columns
from inertial_estimation.model.link_motions import link_motions, poses_in_parents
from inertial_estimation.model.regressor import poses_in_root
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = np.ndarray


def smooth_motion(
    robot: Robot, seconds: float, rate: float = 100.0, seed: int = 0, swing: float = 0.4
) -> SampleBatch:
    """Return all joints on sums of sines about zero, of a robot with a fixed link."""
    rng = np.random.default_rng(seed)
    n, joints = round(seconds * rate), len(robot.joint_names)
    t = np.arange(n) / rate
    q, v, a = np.zeros((3, n, joints))
    for _ in range(4):
        w = 2 * np.pi * rng.uniform(0.05, 0.8, joints)
        phase, size = rng.uniform(0, 2 * np.pi, joints), swing * rng.normal(size=joints) / 2
        q += size * np.sin(np.outer(t, w) + phase)
        v += size * w * np.cos(np.outer(t, w) + phase)
        a -= size * w**2 * np.sin(np.outer(t, w) + phase)
    none = np.zeros((n, len(robot.imus), 3))
    stamps = 1_000_000_000 + (t * 1e9).astype(np.int64)
    readings = np.zeros((n, len(robot.ft_sensors), 6))
    return SampleBatch(stamps, q, v, a, none, none, none, readings)


def with_readings(
    robot: Robot,
    samples: SampleBatch,
    parameters: Array,
    pushes: dict[str, Array] | None = None,
) -> SampleBatch:
    """
    Return samples with what FT sensors read; pushes (n, 6) act on links, in and about them.

    Submodels with an FT sensor at their root, from the tips inward.
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
        for name, wrench in (pushes or {}).items():
            link = robot.link_names.index(name)
            if link in submodel.links:
                force = np.einsum('nij,nj->ni', placed[link].rotations, wrench[:, :3])
                moment = np.einsum('nij,nj->ni', placed[link].rotations, wrench[:, 3:])
                net[:, :3] -= force
                net[:, 3:] -= moment + np.cross(placed[link].origins, force)
        root = np.zeros((len(samples), 6, 6))
        for push in sensor_pushes(robot, submodel, readings, poses, placed, names):
            assert push.offset is not None
            if push.offset[0] == names[submodel.root_sensor]:
                root = push.offset[1]
            else:
                net -= push.wrench
        readings[:, submodel.root_sensor] = np.linalg.solve(root, net[..., None])[..., 0]
    return replace(samples, ft_readings=readings)
