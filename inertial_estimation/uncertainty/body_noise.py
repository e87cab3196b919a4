# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Noise of the motions of bodies that do not have just one whole IMU.

There several sensors are averaged, and what a body lacks comes through the joints. So the noise
of one reading reaches several bodies, and that of a joint too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.body_motion import MotionPlan
from inertial_estimation.estimation.faults import ABSURD
from inertial_estimation.sample import Sample, SampleBatch

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

STEP = 1e-3
"""
Part of a standard deviation by which readings are moved.

The motions are of second degree in the readings: errors of first differences go down with it.
"""
JOINT_FIELDS = ('positions', 'velocities', 'accelerations')
IMU_FIELDS = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')


def body_changes(
    plan: MotionPlan, sample: Sample, serving: Indices, joint_roots: Array, imu_roots: Array
) -> Array:
    """
    Return what noise of joints and IMUs does to the motions of bodies, by first differences.

    Parameters
    ----------
    plan : MotionPlan
        How the motions come from the readings; it is not plain.
    sample : Sample
        As measured; what the plan does not use may be missing.
    serving : ndarray of int
        Rows of the completed sample that hold the bodies asked for.
    joint_roots : ndarray, shape (n_joints, 3, 3)
        Triangular roots of the covariances of position, velocity and acceleration.
    imu_roots : ndarray, shape (n_imus, 3, 3)
        Likewise of angular velocity, proper acceleration and angular acceleration.

    Returns
    -------
    ndarray, shape (n_joints + 3 n_imus, 3, 3 n_serving, 3)
        One standard deviation of each of the three independent sources of a joint or of an axis
        of an IMU changes each axis of a body: angular velocity, proper and angular acceleration.

    """
    n_joints, n_imus = len(joint_roots), len(imu_roots)
    on_ways = np.isin(np.arange(n_joints), list(plan.joints))
    joint_roots = joint_roots * on_ways[:, None, None]
    imu_roots = imu_roots * _used(plan, n_imus)[:, :, None]
    # Sources of a joint or IMU that move something that is used.
    joints, of_joints = np.nonzero(joint_roots.any(axis=1))
    imus, of_imus = np.nonzero(imu_roots.any(axis=1))
    n = len(joints) + 3 * len(imus)
    moved = _repeated(sample, n + 1)
    rows = 1 + np.arange(n)
    by_joint, by_axis = rows[: len(joints)], rows[len(joints) :].reshape(-1, 3)
    axes = np.arange(3)
    for k, name in enumerate(JOINT_FIELDS):
        moved[name][by_joint, joints] += STEP * joint_roots[joints, k, of_joints]
    for k, name in enumerate(IMU_FIELDS):
        moved[name][by_axis, imus[:, None], axes] += STEP * imu_roots[imus, k, of_imus, None]
    whole = plan.complete(SampleBatch(**moved))
    motions = np.stack([getattr(whole, name)[:, serving] for name in IMU_FIELDS], axis=-1)
    found = ((motions - motions[0]) / STEP).reshape(n + 1, 3 * len(serving), 3)
    changes = np.zeros((n_joints + 3 * n_imus, 3, 3 * len(serving), 3))
    changes[joints, of_joints] = found[by_joint]
    changes[n_joints + 3 * imus[:, None] + axes, of_imus[:, None]] = found[by_axis]
    return changes


def _used(plan: MotionPlan, n_imus: int) -> NDArray[np.bool_]:
    """Tell which signals of each IMU are used, shape (n_imus, 3)."""
    used = np.zeros((n_imus, 3), dtype=bool)
    for body in plan.layout.bodies:
        used[list(body.gyroscopes), 0] = used[list(body.gyroscopes), 2] = True
        used[list(body.accelerometers), 1] = True
    return used


def _repeated(sample: Sample, n: int) -> dict[str, Any]:
    """Return the readings n times, zero where they are missing or absurd."""
    columns: dict[str, Any] = {'stamp_ns': np.full(n, sample.stamp_ns)}
    for name in (*JOINT_FIELDS, *IMU_FIELDS, 'ft_readings'):
        values = getattr(sample, name)
        known = np.where(np.abs(values) < ABSURD, values, 0.0)
        columns[name] = np.repeat(known[None], n, axis=0)
    return columns
