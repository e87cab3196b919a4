# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Assumed joints that a bag reports after all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.sample import Array


@dataclass
class ReportedJoint:
    """A joint of ``assumed_joints`` whose position came."""

    joint: str
    assumed_position: float
    """Configured; it was used [rad or m]."""
    n_messages: int = 0
    """Joint states with a position of it."""
    largest_difference: float = 0.0
    """Between reported and assumed position [rad or m]."""


class AssumedWatch:
    """
    Notes which assumed joints are reported.

    A name without a number (NaN) is no report: it is why the joint is assumed.
    """

    def __init__(self, settings: EstimatorSettings) -> None:
        self._positions = dict(zip(settings.assumed_joints, settings.assumed_positions))
        self._places: dict[tuple[str, ...], list[int]] = {}
        self._found: dict[str, ReportedJoint] = {}

    @property
    def found(self) -> tuple[ReportedJoint, ...]:
        """The joints that were reported so far."""
        return tuple(self._found.values())

    def note(self, names: tuple[str, ...], positions: Array) -> None:
        """
        Look at a joint state.

        positions (n,) [rad or m].
        """
        if len(positions) != len(names):
            return
        places = self._places.get(names)
        if places is None:
            places = [k for k, name in enumerate(names) if name in self._positions]
            self._places[names] = places
        for k in places:
            if np.isfinite(positions[k]):
                self._count(names[k], float(positions[k]))

    def _count(self, name: str, position: float) -> None:
        assumed = self._positions[name]
        joint = self._found.setdefault(name, ReportedJoint(name, assumed))
        joint.n_messages += 1
        joint.largest_difference = max(joint.largest_difference, abs(position - assumed))
