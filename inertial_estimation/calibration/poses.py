# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The poses in which a robot is held, out of a log."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

NEAR = 0.05
"""
Poses differ if a joint [rad or m], or gravity's direction in a sensor, does by more than this.

Gravity on a kilogram then changes by half a newton, the noise of a good FT sensor.
"""
MOST_POSES = 200
"""What differs from all of so many belongs to none: a slow motion is no series of poses."""


def find_poses(positions: Array, gravity: Array, used: NDArray[np.bool_]) -> Labels:
    """
    Group instants by pose.

    positions (n, n_joints) [rad or m]; gravity (n, n_fts, 3); used (n,); returns (n,).
    """
    n = len(positions)
    lengths = np.linalg.norm(gravity, axis=2, keepdims=True)
    directions = gravity / np.where(lengths > 0.0, lengths, 1.0)
    features = np.nan_to_num(np.concatenate([positions, directions.reshape(n, -1)], axis=1))
    labels = np.full(n, -1, dtype=np.intp)
    left = np.flatnonzero(used)
    for pose in range(MOST_POSES):
        if not len(left):
            break
        near = (np.abs(features[left] - features[left[0]]) < NEAR).all(axis=1)
        labels[left[near]] = pose
        left = left[~near]
    return labels
