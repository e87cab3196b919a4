# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Estimates, and the quality of each of their figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntFlag
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.estimation.contacts import Contact, ContactKind
from inertial_estimation.model.robot import Robot

Flags = NDArray[np.uint8]
MIN_NORMAL_FORCE = 5.0
"""Of a centre of pressure [N]: moment noise of 0.005 Nm moves it by 1 mm there."""


class Quality(IntFlag):
    """Origin of a wrench, torque or residual; 0 means that the sensors determine it."""

    ASSUMED = 1
    """It depends on a joint whose position is not reported."""
    MERGED = 2
    """An FT sensor is missing; the submodels on its two sides were taken together."""
    UNDETERMINED = 4
    """The sensors do not distinguish it from others: the shortest of all solutions."""
    DROPPED = 8
    """This default contact gave way to a reported one, or to another of its merged submodel."""
    MISSING = 16
    """NaN: a joint or IMU that it depends on is missing."""
    ABSENT = 32
    """NaN, in tables of whole logs: this contact was not there at that instant."""
    UNLIMITED = 64
    """It breaks the limits of contacts that only push: the solver found nothing within them."""
    DOUBTFUL = 128
    """It depends on a joint or sensor whose readings are impossible, or of two publishers."""


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
    """
    Torque of the external wrenches at each joint, J' f, (n_joints,) [Nm or N]. ``robot.base`` is
    taken to be at rest: if it is not, another base gives others [T Remark 3.14].
    """
    residuals: Array
    """
    External wrench of each submodel that no contact explains, environment on robot, in and about
    the frame of its root link, (n_submodels, 6) [N, Nm]. NaN for one that merged into another.
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
    limits: Flags
    """`Limit` that holds each contact, against the least squares, shape (n_contacts,)."""
    used_imus: NDArray[np.bool_]
    """IMUs that were used, shape (n_imus,)."""
    used_fts: NDArray[np.bool_]
    """FT sensors that were used, shape (n_fts,)."""

    @property
    def quality(self) -> Flags:
        """`Quality` of every result in the order of `result_names`, shape (n_results,)."""
        return np.concatenate(
            (
                self.contact_quality,
                self.torque_quality,
                self.external_torque_quality,
                self.submodel_quality,
            ),
            axis=-1,
        )

    def at(self, k: int | Indices) -> WrenchEstimate:
        """
        Return the estimate of one sample of a batch, or of some.

        Parameters
        ----------
        k : int, or ndarray of int
            Sample, or samples.

        Returns
        -------
        WrenchEstimate

        """
        values = (value if value is self.contacts else value[k] for value in cast(Any, self))
        return WrenchEstimate._make(values)


def result_names(robot: Robot, contacts: Iterable[Contact]) -> list[str]:
    """Return the subject of each entry of `WrenchEstimate.quality`."""
    kinds = {
        'external_wrench': [contact.name for contact in contacts],
        'joint_torque': robot.joint_names,
        'external_joint_torque': robot.joint_names,
        'residual': [submodel.name for submodel in robot.submodels],
    }
    return [f'{kind}/{name}' for kind, names in kinds.items() for name in names]


def centers_of_pressure(estimate: WrenchEstimate, surfaces: Sequence[int]) -> Array:
    """Return where the surfaces carry no tangential moment, (n_surfaces, 3) [m]; NaN: nowhere."""
    contacts, found = estimate.contacts, np.full((len(surfaces), 3), np.nan)
    for row, k in enumerate(surfaces):
        normal = np.array(contacts[k].direction)
        force, moment = estimate.wrenches[k].reshape(2, 3)
        # A reported contact may be there in place of the surface.
        if contacts[k].kind is ContactKind.SURFACE and (load := normal @ force) > MIN_NORMAL_FORCE:
            point = np.array(contacts[k].point)
            found[row] = point + np.cross(normal, moment - np.cross(point, force)) / load
    return found
