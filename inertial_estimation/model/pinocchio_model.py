# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Joints and bodies of the robot as Pinocchio's."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

Array = NDArray[np.float64]


def joint_model(motion: Array) -> pin.JointModel:
    """
    Return Pinocchio's joint for a motion subspace; one row of q for continuous joints too.

    Parameters
    ----------
    motion : ndarray, shape (6,)
        [linear; angular], one of the two a unit vector and the other zero.

    Returns
    -------
    pinocchio.JointModel

    """
    linear, angular = motion[:3], motion[3:]
    if linear.any():
        return pin.JointModelPrismaticUnaligned(linear)
    return pin.JointModelRevoluteUnaligned(angular)


def make_inertia(parameters: Array) -> pin.Inertia:
    """
    Return Pinocchio's inertia without its checks, massless links included.

    Parameters
    ----------
    parameters : ndarray, shape (10,)
        As in `model.inertia`.

    Returns
    -------
    pinocchio.Inertia

    """
    if parameters[0] != 0.0:
        return pin.Inertia.FromDynamicParameters(parameters)
    inertia = pin.Inertia.Zero()
    xx, xy, yy, xz, yz, zz = parameters[4:]
    inertia.inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return inertia
