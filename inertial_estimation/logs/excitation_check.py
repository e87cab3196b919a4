# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Whether logs move a robot enough to tell anything, and which of its joints they do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError
from inertial_estimation.identification.determined import (
    Determined,
    determined,
    in_words,
)
from inertial_estimation.identification.evidence import Evidence
from inertial_estimation.identification.information import weighted_sum
from inertial_estimation.logs.log_reader import STILL
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]

TILTED = 0.05
"""Change of the direction of a proper acceleration from which its IMU counts as moved."""


@dataclass(frozen=True, eq=False)
class Reach:
    """Between which values the positions of joints and the directions of IMUs were."""

    lows: Array
    highs: Array
    """Shape (n_joints + 3 n_imus,); NaN where nothing is known."""

    @classmethod
    def of(cls, samples: SampleBatch) -> Reach:
        """Return the reach of some samples."""
        pulls = samples.proper_accelerations
        lengths = np.linalg.norm(pulls, axis=-1, keepdims=True)
        directions = np.divide(pulls, lengths, out=np.zeros_like(pulls), where=lengths > 0)
        values = np.hstack([samples.positions, directions.reshape(len(pulls), -1)])
        known = np.isfinite(values)
        empty = ~known.any(axis=0)
        lows = np.where(known, values, np.inf).min(axis=0)
        highs = np.where(known, values, -np.inf).max(axis=0)
        return cls(np.where(empty, np.nan, lows), np.where(empty, np.nan, highs))

    def merge(self, other: Reach) -> Reach:
        """Return the reach of both."""
        return Reach(np.fmin(self.lows, other.lows), np.fmax(self.highs, other.highs))

    def still(self, robot: Robot) -> list[str]:
        """Return the joints that do not move, among those whose positions are known."""
        n = len(robot.joint_names)
        stays = self.highs[:n] - self.lows[:n] <= STILL
        return [name for name, one in zip(robot.joint_names, stays, strict=True) if one]

    def moves(self, robot: Robot) -> bool:
        """Tell whether a joint moves."""
        n = len(robot.joint_names)
        return bool((self.highs[:n] - self.lows[:n] > STILL).any())

    def tilts(self, robot: Robot) -> bool:
        """Tell whether an IMU is turned against gravity."""
        n = len(robot.joint_names)
        return bool((self.highs[n:] - self.lows[n:] > TILTED).any())


def require_motion(
    robot: Robot, reach: Reach, evidence: Sequence[Evidence], bases: Sequence[BaseParameters]
) -> None:
    """Refuse logs in which nothing moves."""
    if reach.moves(robot) or reach.tilts(robot):
        return
    said = []
    for one, base in zip(evidence, bases, strict=True):
        parts = [part for part in one.kinds.values() if part.count]
        if parts:
            found = determined(one.block, base, weighted_sum(parts, [1.0] * len(parts)))
            said.append(f'{one.block.submodel.name}: {rank_in_words(found)}')
    if not said:
        # Without rows nothing can be said of them here; the fit says why.
        return
    raise LogError(
        f'the logs hold no motion to identify from: no joint moves by more than {STILL:g} rad or '
        f'm; {"; ".join(said)}; record a motion that excites them'
    )


def rank_in_words(found: Determined) -> str:
    """Return how much rows determine."""
    text = f'{found.reached} of {found.possible} combinations of unknowns are determined'
    return f'{text}, not {in_words(found.missing)}' if found.missing else text


def excitation_warnings(
    robot: Robot, reach: Reach, found: Iterable[tuple[str, Determined]]
) -> list[str]:
    """Return what of a robot logs do not excite, in words."""
    said = []
    still = reach.still(robot)
    if still:
        said.append(
            f'joints that do not move by more than {STILL:g} rad or m: {", ".join(still)}; what '
            'they tie together is known only as one body: --lock them'
        )
    for name, one in found:
        if one.missing:
            said.append(f'{name}: {rank_in_words(one)}; the prior fills up')
    return said
