# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Base parameters of submodels over time, against the truth [T 7.9, Fig. 7.3]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bench.background.wrong_description import WRONG
from inertial_estimation.identification.solvers.divergence import whitening
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.identifiable import structural_null_space
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.submodels import Submodel

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BaseOf:
    """Base parameters of one submodel."""

    submodel: Submodel
    names: tuple[str, ...]
    """Columns that are kept."""
    grouping: BaseParameters
    true: Array
    """Shape (n_base,)."""
    described: Array
    """By the wrong description, shape (n_base,)."""
    spread: Array
    """Standard deviation that wrong descriptions have, shape (n_base,)."""
    found: list[Array] = field(default_factory=list)
    """After each second, shape (n_base,) each."""

    @classmethod
    def of(cls, robot: Robot, wrong: Robot, submodel: Submodel) -> BaseOf:
        """Group the parameters of a submodel by what the sum of its wrenches can tell."""
        links = list(submodel.links)
        grouping = BaseParameters.of_null_space(structural_null_space(robot, submodel))
        names = Unknowns(tuple(robot.link_names[k] for k in links)).names
        maps = WRONG * whitening(robot.parameters[links])
        K = grouping.grouping.reshape(grouping.rank, len(links), 10)
        return cls(
            submodel,
            tuple(names[k] for k in grouping.independent),
            grouping,
            grouping.of(robot.parameters[links].reshape(-1)),
            grouping.of(wrong.parameters[links].reshape(-1)),
            np.linalg.norm(np.einsum('bli,lij->blj', K, maps), axis=(1, 2)),
        )

    def of_moments(self) -> NDArray[np.intp]:
        """Return those that are masses and first moments, on which weight depends, shape (k,)."""
        return np.flatnonzero([name.rpartition('.')[2].startswith('m') for name in self.names])

    def error(self, base: Array, chosen: NDArray[np.intp] | None = None) -> float:
        """
        Return how wrong base parameters are: 1 is as wrong as descriptions are.

        base (n_base,).
        """
        ratios = (base - self.true) / self.spread
        return float(np.sqrt(np.mean(ratios[... if chosen is None else chosen] ** 2)))


@dataclass(frozen=True, eq=False)
class BaseErrors:
    """Of several submodels."""

    submodels: tuple[BaseOf, ...]

    @classmethod
    def of(cls, robot: Robot, wrong: Robot, names: Sequence[str]) -> BaseErrors:
        """Return what there is to be noted."""
        chosen = (one for one in robot.submodels if one.name in names)
        return cls(tuple(BaseOf.of(robot, wrong, one) for one in chosen))

    def note(self, robot: Robot) -> None:
        """Note what is believed after a second."""
        for one in self.submodels:
            links = list(one.submodel.links)
            one.found.append(one.grouping.of(robot.parameters[links].reshape(-1)))
