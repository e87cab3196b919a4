# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logs of a robot on a pole whose limbs are in free air: smooth motion, readings that fit it."""

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

SINES = 4
"""Of each joint."""
SLOWEST, FASTEST = 0.05, 0.8
"""Of the sines [Hz]."""
START_NS = 1_000_000_000
"""Stamp of the first sample [ns]."""


def smooth_motion(
    robot: Robot, seconds: float, rate: float = 100.0, seed: int = 0, swing: float = 0.4
) -> SampleBatch:
    """
    Let all joints follow sums of sines about zero.

    Parameters
    ----------
    robot : Robot
        With a fixed link.
    seconds, rate : float
        How long, and samples per second [s, Hz].
    seed : int
        Of the sines.
    swing : float
        Size of each sine [rad].

    Returns
    -------
    SampleBatch
        FT sensors read zero.

    """
    rng = np.random.default_rng(seed)
    n, joints = round(seconds * rate), len(robot.joint_names)
    t = np.arange(n) / rate
    q, v, a = np.zeros((3, n, joints))
    for _ in range(SINES):
        w = 2 * np.pi * rng.uniform(SLOWEST, FASTEST, joints)
        phase, size = rng.uniform(0, 2 * np.pi, joints), swing * rng.normal(size=joints) / 2
        q += size * np.sin(np.outer(t, w) + phase)
        v += size * w * np.cos(np.outer(t, w) + phase)
        a -= size * w**2 * np.sin(np.outer(t, w) + phase)
    none = np.zeros((n, len(robot.imus), 3))
    stamps = START_NS + (t * 1e9).astype(np.int64)
    readings = np.zeros((n, len(robot.ft_sensors), 6))
    return SampleBatch(stamps, q, v, a, none, none, none, readings)


def with_readings(
    robot: Robot,
    samples: SampleBatch,
    parameters: Array,
    pushes: Mapping[str, Array] | None = None,
) -> SampleBatch:
    """
    Return samples with what FT sensors read, from the tips of the limbs inward.

    Parameters
    ----------
    robot : Robot
        With a fixed link that no FT sensor is the root of.
    samples : SampleBatch
        Its motion.
    parameters : ndarray, shape (n_links, 10)
        Inertial parameters of its links.
    pushes : mapping of str to ndarray, shape (n, 6), optional
        What acts on links, in and about them [N, Nm]. Default: nothing does.

    Returns
    -------
    SampleBatch

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
