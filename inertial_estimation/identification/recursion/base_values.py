# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Base parameters of each submodel as its equations determine them, without the prior.

The combinations depend on the robot and its sensors; which of them are determined, and how well,
depends on the motion. One that is not has an infinite standard deviation [S 81-83].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.evidence import EXCITED
from inertial_estimation.identification.fit import determined_by_others
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.recursion.memory import SubmodelMemory
from inertial_estimation.identification.row_space import DETERMINED, RowSpace
from inertial_estimation.model.base_parameters import BaseParameters


@dataclass(frozen=True, eq=False)
class BaseValues:
    """Base parameters of one submodel."""

    submodel: str
    names: tuple[str, ...]
    """Combinations of unknowns, as `BaseParameters.combinations`."""
    values: Array
    """Shape (n_base,), in the unit of the unknown that stands first."""
    deviations: Array
    """Standard deviations by the equations alone, shape (n_base,)."""
    rank: int
    """Independent combinations that are determined."""


class BaseTable:
    """The base parameters of all submodels of a robot."""

    def __init__(self, builder: EquationBuilder) -> None:
        with one_thread():
            bases = builder.base_parameters()
        self._of = {
            block.submodel.name: (base, tuple(base.combinations(block.unknowns.names)))
            for block, base in zip(builder.blocks, bases, strict=True)
        }

    def of(self, submodel: str) -> BaseParameters:
        """Return the base parameters of a submodel."""
        return self._of[submodel][0]

    @one_thread()
    def values(
        self, memories: Sequence[SubmodelMemory], found: Mapping[str, Array]
    ) -> tuple[BaseValues, ...]:
        """Return values and deviations; found: all unknowns by submodel, (n_unknowns,)."""
        ready = [(one, one.corrected) for one in memories if one.information is not None]
        known = [(one.block.unknowns, information) for one, information in ready]
        others = determined_by_others(known) if len(known) > 1 else [None] * len(known)
        values = []
        for (one, information), other in zip(ready, others, strict=True):
            if one.name not in found:
                continue
            rows = information.R if other is None else np.vstack([information.R, other.R])
            base, labels = self._of[one.name]
            deviations, rank = _determined(base.grouping, RowSpace.of(rows, EXCITED))
            x = base.of(found[one.name])
            values.append(BaseValues(one.name, labels, x, deviations, rank))
        return tuple(values)


def _determined(grouping: Array, space: RowSpace) -> tuple[Array, int]:
    """Return the standard deviation of each combination, and how many are determined."""
    scaled = grouping / space.scales
    lengths = np.linalg.norm(scaled, axis=1)
    # Not by the independent columns: no base parameter holds what neighbours determine of offsets.
    outside = scaled @ space.missing / lengths[:, None]
    deviations = np.linalg.norm(scaled @ space.directions / space.strengths, axis=1)
    deviations[np.linalg.norm(outside, axis=1) > DETERMINED] = np.inf
    lost = np.linalg.matrix_rank(outside, tol=DETERMINED) if outside.size else 0
    return deviations, len(grouping) - int(lost)
