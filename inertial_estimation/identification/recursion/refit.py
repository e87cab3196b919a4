# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a refit of a robot that is identified while it works has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.recursion.excitation import Excitation
from inertial_estimation.identification.rows.outer_wrenches import COMPONENTS

Array = NDArray[np.float64]

OFFSET_TOLD = np.repeat([2.0, 0.2], 3)
"""Standard deviation up to which an offset is told [N, Nm]."""


def told_up_to(column: str) -> float:
    """Return the standard deviation up to which the column of an offset is told."""
    return float(OFFSET_TOLD[COMPONENTS.index(column.rpartition('.')[2])])


@dataclass(frozen=True, eq=False)
class Refit:
    """What is known of a robot at one time."""

    stamp_ns: int
    """Of the last sample that went in."""
    parameters: Array
    """Inertial parameters of all links, shape (n_links, 10); strictly consistent."""
    offsets: Mapping[str, Array]
    """
    Of FT sensors, shape (6,) each, [force; torque]: those that fit the rows best beside these
    parameters [N, Nm].
    """
    subtracted: Mapping[str, Array]
    """
    What of them is to be subtracted by who sees contacts, shape (6,) each [N, Nm]: it comes with
    bodies and follows the rest as slowly as sensors drift (`FollowedOffsets`). NaN where nothing
    has told it yet.
    """
    offset_deviations: Mapping[str, Array]
    """
    Their standard deviations, shape (6,) each [N, Nm]; errors that all rows share are not in them.
    Beyond `OFFSET_TOLD` nothing tells the offset: it is near zero because nothing speaks for
    another one.
    """
    refitted: tuple[str, ...]
    """Submodels whose links are what rows tell; those of the others are the prior."""
    excitation: Mapping[str, Excitation]
    """What the rows of each submodel tell."""
    reasons: Mapping[str, str]
    """Why a submodel was not refitted, by its name."""
    before: Mapping[str, Mapping[str, float]]
    """
    Root mean square of what the description, with all but its bodies fitted, left of the newest
    rows before these were worked in, by submodel and kind [N, Nm].
    """
    after: Mapping[str, Mapping[str, float]]
    """The same of what had been found then."""
    least_margin: float
    """Smallest eigenvalue of a link's pseudo-inertia."""
    parameter_roots: Array
    """
    How sure the parameters are, shape (n_links, 10, r): the rows of the links of a submodel are a
    root F of the covariance F F' of their parameters. Zero for submodels that were not refitted.
    """

    @property
    def told_offsets(self) -> dict[str, Array]:
        """Offsets as of `offsets`, NaN where nothing tells them [N, Nm]."""
        return {
            name: np.where(self.offset_deviations[name] <= OFFSET_TOLD, offset, np.nan)
            for name, offset in self.offsets.items()
        }
