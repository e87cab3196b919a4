# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Centres of pressure of the surfaces that carry the robot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.estimation.contacts import ContactKind
from inertial_estimation.estimation.estimate import WrenchEstimate

MIN_NORMAL_FORCE = 5.0
"""Of a centre of pressure [N]: moment noise of 0.005 Nm moves it by 1 mm there."""


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
