# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What was found of a whole robot, submodel by submodel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.information.evidence import Evidence
from inertial_estimation.identification.information.information import Information
from inertial_estimation.identification.information.reweighting import NoiseLevels
from inertial_estimation.identification.result import Identification
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.robot import Robot

Array = NDArray[np.float64]

UNSEEN = 1e-12
"""A link whose columns are a smaller share of the largest changes no row."""


@dataclass(frozen=True, eq=False)
class BlockFit:
    """One submodel."""

    evidence: Evidence
    noise: NoiseLevels
    """Of each kind of row, from what no unknowns explain."""
    information: Information
    """Its rows in units of their noise, and what other submodels say of offsets."""
    answer: Identification
    before: Array
    """Unknowns with the prior's bodies and all else fitted, shape (n_unknowns,)."""
    weight: float | None = None
    """Of the prior against the mean of the rows; None: it has none."""
    missed: tuple[str, ...] = ()
    """Bounds that the answer does not keep."""

    @property
    def name(self) -> str:
        """Name of the submodel."""
        return self.evidence.block.submodel.name

    @property
    def kinds(self) -> list[str]:
        """Kinds of rows that were fitted: those whose noise is told."""
        return list(self.noise.deviations)

    @property
    def links_seen(self) -> list[bool]:
        """Which of its links change any row, as a base that stands still does not."""
        return links_seen(self.information, self.answer.unknowns)


@dataclass(frozen=True, eq=False)
class RobotFit:
    """All submodels."""

    robot: Robot
    prior: Array
    """Parameters of all links, shape (n_links, 10): the robot's, points and sticks widened."""
    widened: tuple[str, ...]
    """Links whose prior had to be widened."""
    blocks: tuple[BlockFit, ...]
    """Of the submodels that have rows."""
    untold: Mapping[str, str] = field(default_factory=dict)
    """Submodels whose rows are too few to tell their noise, which stay as they were, and why."""

    @property
    def parameters(self) -> Array:
        """Inertial parameters of all links, (n_links, 10); the robot's where there are no rows."""
        found = self.robot.parameters.copy()
        for block in self.blocks:
            found[list(block.evidence.block.submodel.links)] = block.answer.parameters
        return found

    @property
    def described(self) -> Array:
        """
        The same for a robot description, (n_links, 10): the robot's where an answer is the prior.
        """
        found = self.parameters
        same = (found == self.prior).all(axis=1)
        found[same] = self.robot.parameters[same]
        return found

    @property
    def payloads(self) -> dict[str, Array]:
        """Parameters of each payload about the origin of its frame, (10,), by name."""
        found = {}
        for block in self.blocks:
            extras = block.answer.extras
            for payload in block.evidence.block.payloads:
                values = payload.known()
                values[np.isnan(values)] = [extras[str(extra)] for extra in payload.extras()]
                found[payload.name] = values
        return found

    @property
    def consistent(self) -> bool:
        """Whether all answers are bodies that could exist."""
        return all(block.answer.consistent for block in self.blocks)


def links_seen(rows: Information, unknowns: Unknowns) -> list[bool]:
    """Return which links change any row."""
    changes = np.linalg.norm(rows.R[:, : unknowns.n_inertial], axis=0)
    least = UNSEEN * changes.max(initial=0.0)
    return [bool((link > least).any()) for link in changes.reshape(len(unknowns.links), -1)]


def require_bounds(found: RobotFit) -> None:
    """Raise unless all bounds are kept."""
    missed = [name for block in found.blocks for name in block.missed]
    if missed:
        raise ModelError(
            f'these bounds are not kept: {", ".join(missed)}; see whether they contradict each '
            'other, or choose a method that keeps bounds'
        )
