# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the estimator says about one instant, and how each figure came about."""

from __future__ import annotations

from enum import IntFlag
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.contacts import Contact

Array = NDArray[np.float64]
Flags = NDArray[np.uint8]


class Quality(IntFlag):
    """How a wrench, torque or residual was obtained; 0 means that the sensors determine it."""

    ASSUMED = 1
    """It rests on a joint whose position nobody reports."""
    MERGED = 2
    """An FT sensor is missing; the submodels on its two sides were taken together."""
    UNDETERMINED = 4
    """The sensors do not tell it apart from others: of all answers the shortest was taken."""
    DROPPED = 8
    """This default contact gave way to another one of its merged submodel."""
    MISSING = 16
    """NaN: a joint or IMU that it rests on is missing."""


class WrenchEstimate(NamedTuple):
    """
    External wrenches, joint torques and residuals of one instant, or of many.

    Rows follow the contacts, ``robot.joint_names`` and ``robot.submodels``. For a batch every
    array has one leading axis for the instants. NaN stands where nothing could be estimated.
    """

    stamp_ns: int | NDArray[np.int64]
    """Stamp of the sample [ns]."""
    contacts: tuple[Contact, ...]
    wrenches: Array
    """Environment on robot at each contact, in and about its frame, (n_contacts, 6) [N, Nm]."""
    torques: Array
    """Torque through each joint, local form [T 4.24, 4.25], (n_joints,) [Nm or N]."""
    external_torques: Array
    """What the external wrenches do to each joint, J' f, base at rest, (n_joints,) [Nm or N]."""
    residuals: Array
    """
    What no contact explains in each submodel, environment on robot, in and about the frame of its
    root link, shape (n_submodels, 6) [N, Nm]. NaN for a submodel that merged into another.
    """
    ranks: NDArray[np.int64]
    """Combinations of unknowns that the sensors determine, shape (n_submodels,)."""
    contact_quality: Flags
    """`Quality` of each wrench, shape (n_contacts,)."""
    torque_quality: Flags
    """`Quality` of each torque, shape (n_joints,)."""
    external_torque_quality: Flags
    """`Quality` of each external torque, shape (n_joints,)."""
    submodel_quality: Flags
    """`Quality` of each residual, shape (n_submodels,)."""
    used_imus: NDArray[np.bool_]
    """IMUs that were used, shape (n_imus,)."""
    used_fts: NDArray[np.bool_]
    """FT sensors that were used, shape (n_fts,)."""
